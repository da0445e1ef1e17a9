"""`Config` to `Plan`: members chosen, defaults and natural ranges filled in, sizes and thresholds as numbers."""

from __future__ import annotations

import math
import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from gerd.config import values as config_values
from gerd.config.actor import Actor
from gerd.config.base import at, plain
from gerd.config.config import Config
from gerd.config.expression import evaluate
from gerd.config.functions import usable, values_at
from gerd.config.sweep import KEPT_MEMBERS, config_of, relatives
from gerd.config.transform import Transform
from gerd.errors import ConfigError
from gerd.geometry import exactmath, shapes
from gerd.geometry.parameters import PARAMETERS_OF
from gerd.plan.plan import AMOUNTS, INTENSITY_ONE, ActorPlan, Anywhere, Look, Operation, Pixel, Plan, RecordedNoise
from gerd.plan.values import Boundary, Choice, Growth, Normal, Pair, PairChoice, Series, Size, Uniform, Value

Array = NDArray[np.float64]

# How a config writes a number, and a push that changes with time.
Written = float | config_values.Uniform | config_values.Normal | config_values.Choice
WrittenPair = Written | config_values.PairChoice | tuple[Written, Written]
Pushed = Written | config_values.Profile | config_values.Expression | config_values.Function

NATURAL_SIZE = (0.1, 0.4)  # in shares of the smaller frame side
NATURAL_SHEAR = (-0.5, 0.5)
NATURAL_ROTATION = (0.0, 360.0)  # degrees
MOST_BEFORE = 5_000_000  # accelerated steps before t = 0, of all actors: about a gigabyte
MOST_LIMITED_BEFORE = 100_000  # of them where a speed limit looks at one after the other: some seconds


def plan_of(config: Config) -> Plan:
    """What the recordings of a member are drawn from; equal configs of the same family have the same plan."""
    return _plan(config_of(config))


@lru_cache(maxsize=KEPT_MEMBERS)
def _plan(config: Config) -> Plan:
    full = config.upsampling * config.upsampling * INTENSITY_ONE
    thresholds = config.integrator.thresholds
    family = relatives(config.family)
    actors = tuple(_actor(config, number, family) for number in range(len(config.actors)))
    path = config.origin.path
    plan = Plan(
        seed=config.seed,
        width=config.sensor.width,
        height=config.sensor.height,
        steps=config.steps,
        step_us=config.step_us,
        exact=config.timing == "exact",
        rate=config.rate,
        warmup=config.integrator.warmup,
        path_end=sys.maxsize if path is None else path.steps - 1,
        upsampling=config.upsampling,
        pixel=Pixel(
            threshold_on=max(1, round(thresholds.on * full)),
            threshold_off=max(1, round(thresholds.off * full)),
            reset_to_zero=config.integrator.reset == "zero",
            initial=config.initial,
            **{name: at(config, path) for name, path in AMOUNTS.items()},
            drops_refractory=config.integrator.refractory == "drop",
            recorded=_recorded(config),
            queue_us=config.readout.queue_us,
            camera=None if config.camera.number == "each" else config.camera.number,
        ),
        actors=actors,
        operations=tuple(map(_operation, config.transform)),
        error=partial(_error, config),
    )
    _check_warmup(config, plan)
    return plan


def _recorded(config: Config) -> RecordedNoise | None:
    """The file of recorded noise: beside the config, or in the current folder if nobody knows where that was."""
    if (recorded := config.noise.recorded) is None:
        return None
    path = Path(config.origin.directory or ".") / recorded.file
    return RecordedNoise(str(path), recorded.sha256, config.steps * config.step_us)


def _error(config: Config, path: str, message: str) -> ConfigError:
    return config.error(path, message, plain(at(config, path)))


def _check_warmup(config: Config, plan: Plan) -> None:
    """An error if the warm-up is too long: its motion is held whole, unlike that of the recording."""
    if not any(actor.is_pushed for actor in plan.actors):
        return
    steps = math.ceil((plan.warmup + 1) * config.fastest)
    if steps * len(plan.cast) > MOST_BEFORE:
        together = steps * len(plan.cast)
        message = f"times the time scale and the actors, makes {together} accelerated steps; allowed: {MOST_BEFORE}"
        raise plan.error("integrator.warmup", message)
    limited = any(math.isfinite(limit) for actor in plan.actors for limit in actor.speed_limit)
    if limited and steps > MOST_LIMITED_BEFORE:
        message = f"times the time scale, makes {steps} steps with a speed limit; allowed: {MOST_LIMITED_BEFORE}"
        raise plan.error("integrator.warmup", message)


def _actor(config: Config, number: int, family: list[Config]) -> ActorPlan:
    actor = config.actors[number]
    move = actor.translation
    members = [member for member in family if number < len(member.actors)] or [config]
    if move.start == "centre":
        position: Pair | Anywhere = (config.sensor.width / 2, config.sensor.height / 2)
    elif isinstance(move.start, str):
        position = Anywhere(tuple(_look(member, number) for member in members))
    else:
        position = _pair(move.start)
    look = _look(config, number)
    repeat = (actor.repeat,) if isinstance(actor.repeat, int) else tuple(actor.repeat.options)
    low, high = _bounds(config, actor)
    return ActorPlan(
        number=number,
        shapes=look.shapes,
        intensity=_value(actor.intensity),
        repeat=repeat,
        border=move.border,
        position=position,
        size=look.size,
        rotation=look.rotation,
        shear=look.shear,
        velocity=(
            _pair(move.velocity),
            _speed(actor.scale.velocity),
            _speed(actor.rotation.velocity),
            _speed(actor.shear.velocity),
        ),
        acceleration=_acceleration(config, number),
        low=low,
        high=high,
        speed_limit=_speed_limit(actor),
    )


def _look(config: Config, number: int) -> Look:
    actor = config.actors[number]
    width = config.sensor.width
    height = config.sensor.height
    side = min(width, height)
    natural_size = Uniform(NATURAL_SIZE[0] * side, NATURAL_SIZE[1] * side)
    return Look(
        width=width,
        height=height,
        margin=actor.translation.margin,
        shapes=tuple(shapes.outline(rings) for rings in actor.rings),
        size=_start(actor.scale.start, natural_size),
        rotation=_start(actor.rotation.start, Uniform(*NATURAL_ROTATION)),
        shear=_start(actor.shear.start, Uniform(*NATURAL_SHEAR)),
    )


@overload
def _start(value: Written | str, natural: Uniform) -> Value: ...
@overload
def _start(value: WrittenPair | str, natural: Uniform) -> Size: ...
def _start(value: WrittenPair | str, natural: Uniform) -> Size:
    """The number or numbers at t = 0; a word stands for the natural range."""
    return natural if isinstance(value, str) else _size(value)


def _value(value: Written) -> Value:
    """A number as the config writes it, as a plain value."""
    match value:
        case config_values.Uniform():
            return Uniform(*value.uniform)
        case config_values.Normal():
            return Normal(*value.normal)
        case config_values.Choice():
            return Choice(value.choice)
    return float(value)


def _pair(value: WrittenPair) -> Pair:
    """A plain value for each of two axes, which draw separately, unless whole pairs are listed."""
    if isinstance(value, config_values.PairChoice):
        return PairChoice(value.choice)
    x, y = value if isinstance(value, tuple) else (value, value)
    return _value(x), _value(y)


@overload
def _size(value: Written) -> Value: ...
@overload
def _size(value: WrittenPair) -> Size: ...
def _size(value: WrittenPair) -> Size:
    """A plain value for both sides, which then have the same draw, or a pair."""
    return _pair(value) if isinstance(value, tuple | config_values.PairChoice) else _value(value)


@overload
def _speed(value: Written | config_values.Boundary) -> Value | Boundary: ...
@overload
def _speed(value: WrittenPair | config_values.Boundary | config_values.Factor) -> Size | Boundary | Growth: ...
def _speed(value: WrittenPair | config_values.Boundary | config_values.Factor) -> Size | Boundary | Growth:
    """A velocity other than that of the position, as a plain value."""
    match value:
        case config_values.Boundary():
            return Boundary(_value(value.boundary))
        case config_values.Factor():
            return Growth(_value(value.factor))
    return _size(value)


def _bounds(config: Config, actor: Actor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Where each parameter is folded back: the frame's borders, the limits on scale and shear."""
    margin = actor.translation.margin
    sides = (config.sensor.width, config.sensor.height)
    least_size, largest_size = _range(actor.scale.limits)
    least_shear, largest_shear = _range(actor.shear.limits)
    free = actor.translation.border == "free"
    near = (-math.inf, -math.inf) if free else (margin, margin)
    far = (math.inf, math.inf) if free else (sides[0] - margin, sides[1] - margin)
    low = (*near, least_size, least_size, -math.inf, least_shear)
    high = (*far, largest_size, largest_size, math.inf, largest_shear)
    return low, high


def _range(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    low, high = limits
    return -math.inf if low is None else low, math.inf if high is None else high


def _speed_limit(actor: Actor) -> tuple[float, ...]:
    """The largest speed of each parameter."""
    limits = {name: getattr(actor, name).speed_limit for name in PARAMETERS_OF}
    fastest = {name: math.inf if limit is None else limit for name, limit in limits.items()}
    fastest["rotation"] = float(exactmath.radians(fastest["rotation"]))
    return tuple(fastest[name] for name, parameters in PARAMETERS_OF.items() for _ in parameters)


def _acceleration(config: Config, number: int) -> tuple[Value | Series | None, ...]:
    """The acceleration of each parameter; None: that of the size along y is that of the size along x."""
    result: list[Value | Series | None] = []
    for name, parameters in PARAMETERS_OF.items():
        value = getattr(config.actors[number], name).acceleration
        path = f"actors.{number}.{name}.acceleration"
        for axis in range(len(parameters)):
            if name == "scale" and axis and not isinstance(value, tuple):
                result.append(None)
                continue
            result.append(_push(config, value[axis] if isinstance(value, tuple) else value, path, axis))
    return tuple(result)


def _push(config: Config, value: Pushed, path: str, axis: int) -> Value | Series:
    """An acceleration along one axis: drawn in each step, or a function of time."""
    match value:
        case config_values.Profile():
            return partial(_of_profile, config, value, path)
        case config_values.Expression():
            return partial(_of_expression, config, value, path)
        case config_values.Function():
            return partial(_of_function, config, path, axis)
    return _value(value)


def _of_profile(config: Config, profile: config_values.Profile, path: str, t: Array) -> Array:
    if profile.profile == "pulse":
        return np.where((t >= profile.at) & (t < profile.at + profile.duration), profile.amplitude, 0.0)
    if profile.profile == "square":
        share = np.mod(t / profile.period + profile.phase / 360.0, 1.0)
        return profile.amplitude * np.where(share < 0.5, 1.0, -1.0)
    angle = 4 * exactmath.HALF_PI * (t / profile.period) + exactmath.radians(profile.phase)
    return usable(config, profile.amplitude * exactmath.sincos(angle)[0], t, path, profile.model_dump())


def _of_expression(config: Config, expression: config_values.Expression, path: str, t: Array) -> Array:
    try:
        numbers = evaluate(expression.expression, t)
    except ValueError as error:
        raise config.error(path, str(error), expression.expression) from None
    return usable(config, numbers, t, path, expression.expression)


def _of_function(config: Config, path: str, axis: int, t: Array) -> Array:
    """What a Python function gives along an axis; it is run only here, where a motion is asked for."""
    sampled = config.sampled
    written = at(sampled, path)
    may_be_pairs = path.endswith(".translation.acceleration") and not isinstance(written, tuple)
    value = written[axis] if isinstance(written, tuple) else written
    numbers = values_at(sampled, value, path, may_be_pairs, t)
    return numbers[:, axis] if numbers.ndim == 2 else numbers


def _operation(entry: Transform) -> Operation:
    """One entry of `transform`, as plain values."""
    kind, values = next(iter(entry.model_dump().items()))
    about: tuple[float, float] | Literal["centre"] = getattr(entry, "about", "centre")
    return Operation(
        kind,
        tuple(values) if isinstance(values, tuple | list) else (values,),
        None if about == "centre" else about,
        getattr(entry, "epoch", 0.0),
    )

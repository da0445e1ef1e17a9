"""An actor's four transformations, as the config writes them, to a `Trajectory` for a batch of recordings.

Degrees become radians here. Natural ranges, boundary velocities and growth factors are worked out here. A start that
is drawn beyond a border or limit is its mirror image (on a torus: its copy) inside; its velocity is as configured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.actor import Actor
from gerd.config.config import Config
from gerd.config.expression import evaluate
from gerd.config.functions import usable, values_at
from gerd.config.values import FACTORS, LARGEST, Boundary, Expression, Factor, Function, Profile, Uniform
from gerd.geometry import exactmath
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT, PARTS, ROTATION, SCALE_X, SHEAR, X, derivatives, matrix
from gerd.geometry.shapes import RADIUS, Outline
from gerd.geometry.shapes import outline as shape_outline
from gerd.geometry.trajectory import Trajectory, slowed
from gerd.scene.sampling import START, VELOCITY, Source

Array = NDArray[np.float64]

NATURAL_SIZE = (0.1, 0.4)  # in shares of the smaller frame side
NATURAL_SHEAR = (-0.5, 0.5)
NATURAL_ROTATION = (0.0, 360.0)  # degrees
MOST_BEFORE = 5_000_000  # accelerated steps before t = 0, of all actors: about a gigabyte
CIRCLE_SIDES = 256  # of the polygon that stands for a circle whose boundary moves
SLOWEST = 1e-9  # slower motion along the normal, relative to the speed of the points, is rounding


def motion(config: Config, source: Source, outlines: Sequence[Outline], family: Sequence[Config]) -> Trajectory:
    """The motion of an actor of entry `source.actor`, leading axis the recordings.

    `outlines` are those of the shapes that it can have.
    `family` holds the members of a sweep: where the natural range of positions depends on a swept size, the range
    that is natural for all of them is used, so that the members share their positions.
    """
    actor = config.actors[source.actor]
    start = np.zeros((len(source.rows), PARAMETER_COUNT))
    start[:, SCALE_X:] = _start_but_position(config, source)
    relatives = [member for member in family if source.actor < len(member.actors)] or [config]
    start[:, X:SCALE_X] = _position(config, source, relatives)
    low, high = _bounds(config, actor, start)
    wrap = np.zeros(start.shape, np.bool_)
    wrap[:, X:SCALE_X] = actor.translation.border == "wrap"
    base = np.zeros_like(start)
    outside = (start < low) | (start > high)
    if outside.any():
        inside = Trajectory.at_rest(start, low, high, wrap).parameters([0.0])[:, 0, 0]
        start = np.where(outside, inside, start)
    velocity = _velocity(config, source, outlines, start)
    if isinstance(actor.scale.velocity, Factor):
        sizes = PARTS["scale"]
        base[:, sizes] = start[:, sizes]
        low[:, sizes] = exactmath.log(low[:, sizes] / base[:, sizes])
        high[:, sizes] = exactmath.log(np.minimum(high[:, sizes], LARGEST) / base[:, sizes])
        start[:, sizes] = 0.0
    limit = _speed_limit(actor, start)
    velocity = slowed(velocity, limit) + 0.0  # 0 has no sign
    if all(getattr(actor, part).acceleration == 0.0 for part in PARTS):
        return Trajectory(start, velocity, None, limit, low, high, wrap, base)

    def push(first: int, count: int) -> Array:
        return _acceleration(config, source, np.arange(first, first + count))

    _check_warmup(config)
    return Trajectory(start, velocity, push, limit, low, high, wrap, base)


def _check_warmup(config: Config) -> None:
    """The motion before t = 0 is held whole, unlike that of the recording."""
    steps = math.ceil((config.integrator.warmup + 1) * config.fastest) * len(config.cast)
    if steps > MOST_BEFORE:
        message = f"times the time scale and the actors, makes {steps} accelerated steps; allowed: {MOST_BEFORE}"
        raise config.error("integrator.warmup", message, config.integrator.warmup)


def _start_but_position(config: Config, source: Source) -> Array:
    """(rows, 4): scale x, scale y, rotation and shear at t = 0."""

    def drawn_from(start: Any, low: float, high: float) -> Any:
        return Uniform(uniform=(low, high)) if isinstance(start, str) else start  # the natural range

    actor, side = config.actors[source.actor], min(config.sensor.width, config.sensor.height)
    size = source.size(drawn_from(actor.scale.start, NATURAL_SIZE[0] * side, NATURAL_SIZE[1] * side), START)
    turn = source.sample(drawn_from(actor.rotation.start, *NATURAL_ROTATION), START, ROTATION)
    shear = source.sample(drawn_from(actor.shear.start, *NATURAL_SHEAR), START, SHEAR)
    return np.column_stack([size, exactmath.radians(turn), shear])


def _position(config: Config, source: Source, relatives: Sequence[Config]) -> Array:
    """(rows, 2): the centre at t = 0."""
    start = config.actors[source.actor].translation.start
    frame = np.array([config.sensor.width, config.sensor.height], np.float64)
    if start == "centre":
        return np.broadcast_to(frame / 2, (len(source.rows), 2))
    if not isinstance(start, str):
        return source.pair(start, START, X)
    low, high = np.zeros((len(source.rows), 2)), np.full((len(source.rows), 2), np.inf)
    for member in relatives:
        parameters = np.zeros((len(source.rows), ORDERS, PARAMETER_COUNT))
        parameters[:, 0, SCALE_X:] = _start_but_position(member, source)
        relative = member.actors[source.actor]
        linear = matrix(parameters)[:, :2, :2]
        extents = np.stack([np.stack(shape_outline(rings).extent(linear), axis=1) for rings in relative.rings])
        smallest, largest = np.moveaxis(_drawn(source, extents), 1, 0)
        margin, side = relative.translation.margin, np.array([member.sensor.width, member.sensor.height], np.float64)
        low = np.maximum(low, np.maximum(-smallest, margin))
        high = np.minimum(high, side - np.maximum(largest, margin))
    middle = (low + high) / 2  # of a shape that does not fit into the frame
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    share = source.pair(Uniform(uniform=(0.0, 1.0)), START, X)
    return np.where(low < high, low + (high - low) * share, middle)


def _drawn(source: Source, of_shapes: Array) -> Array:
    """(rows, …) from (shapes, rows, …): what belongs to the shape that is drawn for each recording."""
    return of_shapes[source.shape(len(of_shapes)), np.arange(len(source.rows))]


def _velocity(config: Config, source: Source, outlines: Sequence[Outline], start: Array) -> Array:
    actor = config.actors[source.actor]
    velocity = np.zeros_like(start)
    velocity[:, X:SCALE_X] = source.pair(actor.translation.velocity, VELOCITY, X)
    for name in ("scale", "rotation", "shear"):
        value, parameters = getattr(actor, name).velocity, PARTS[name]
        if isinstance(value, Boundary):
            wanted = source.sample(value.boundary, VELOCITY, parameters[0])
            moved = np.stack([_boundary_speed(outline, start, parameters) for outline in outlines])
            if not moved.all():
                message = f"{name} does not move the outline of this shape; allowed: a number"
                path = f"actors.{source.actor}.{name}.velocity.boundary"
                raise config.error(path, message, value.model_dump()["boundary"])
            velocity[:, parameters] = (wanted / _drawn(source, moved))[:, None]
        elif isinstance(value, Factor):
            # a Gaussian factor may fall outside
            factor = np.clip(source.sample(value.factor, VELOCITY, parameters[0]), *FACTORS)
            velocity[:, parameters] = exactmath.log(factor)[:, None]
        elif name == "scale":
            velocity[:, parameters] = source.size(value, VELOCITY)
        else:
            speed = source.sample(value, VELOCITY, parameters[0])
            velocity[:, parameters[0]] = exactmath.radians(speed) if name == "rotation" else speed
    return velocity


def _boundary_speed(outline: Outline, start: Array, moving: list[int]) -> Array:
    """(rows,): mean distance along the normal that the outline moves per unit of the parameters `moving`."""
    parameters = np.zeros((len(start), ORDERS, PARAMETER_COUNT))
    parameters[:, 0] = start
    parameters[:, 1, moving] = 1.0
    at, speed = matrix(parameters)[:, None, :2, :2], derivatives(parameters)[0][:, None, :2, :2]
    ends, tangent = _sides(outline)
    along_x, along_y = _mapped(at, tangent)
    length = np.sqrt(along_x * along_x + along_y * along_y)
    # the part along the normal at both ends of each side, times the side's length
    moved = (x * along_y - y * along_x for x, y in (_mapped(speed, end) for end in ends))
    swept = _mean_size(*moved)
    result = np.cumsum(swept, axis=1)[:, -1] / np.cumsum(length, axis=1)[:, -1]
    return np.where(result > SLOWEST * np.abs(speed).max(axis=(1, 2, 3)), result, 0.0)


def _mean_size(first: Array, last: Array) -> Array:
    """The mean of |x| while x runs evenly from `first` to `last`: two triangles where it passes 0."""
    a, b = np.abs(first), np.abs(last)
    total = a + b
    return np.where(first * last >= 0, total / 2, (a * a + b * b) / (2 * np.where(total > 0, total, 1.0)))


def _sides(outline: Outline) -> tuple[tuple[Array, Array], Array]:
    """The two ends of each side and the side itself as a vector; the circle as short sides about their middles."""
    if not outline.is_circle:
        sides = outline.segments
        return (sides[:, 0], sides[:, 1]), sides[:, 1] - sides[:, 0]
    sine, cosine = exactmath.sincos(np.arange(CIRCLE_SIDES) * (4 * exactmath.HALF_PI / CIRCLE_SIDES))
    points = RADIUS * np.stack([cosine, sine], axis=1)
    return (points, points), np.stack([-sine, cosine], axis=1)


def _mapped(linear: Array, vectors: Array) -> tuple[Array, Array]:
    """x and y (rows, vectors) of the vectors under linear maps (rows, 1, 2, 2), in plain arithmetic."""
    x, y = vectors[:, 0], vectors[:, 1]
    return linear[..., 0, 0] * x + linear[..., 0, 1] * y, linear[..., 1, 0] * x + linear[..., 1, 1] * y


def _bounds(config: Config, actor: Actor, start: Array) -> tuple[Array, Array]:
    """Where each parameter is folded back: the frame's borders, the limits on scale and shear."""
    low, high = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    if actor.translation.border != "free":
        low[:, X:SCALE_X] = actor.translation.margin
        high[:, X:SCALE_X] = np.array([config.sensor.width, config.sensor.height]) - actor.translation.margin
    for parameters, limits in ((PARTS["scale"], actor.scale.limits), (PARTS["shear"], actor.shear.limits)):
        low[:, parameters] = -np.inf if limits[0] is None else limits[0]
        high[:, parameters] = np.inf if limits[1] is None else limits[1]
    return low, high


def _acceleration(config: Config, source: Source, steps: NDArray[np.int64]) -> Array:
    """(rows, 6, steps): what holds on [k, k + 1) for each k of `steps`."""
    actor = config.actors[source.actor]
    push = np.zeros((len(source.rows), PARAMETER_COUNT, len(steps)))
    for name, parameters in PARTS.items():
        written, path = getattr(actor, name).acceleration, f"actors.{source.actor}.{name}.acceleration"
        for axis, parameter in enumerate(parameters):
            value = written[axis] if isinstance(written, tuple) else written
            if name == "scale" and axis and value is written:  # one size for both sides
                push[:, parameter] = push[:, SCALE_X]
            elif len(steps) and value != 0.0:
                pairs = name == "translation" and value is written  # a function for both axes may give both
                numbers = _stepwise(config, source, value, parameter, steps, path, pairs)
                push[:, parameter] = exactmath.radians(numbers) if parameter == ROTATION else numbers
    return push + 0.0  # 0 has no sign, which would show only where another recording of the batch is accelerated


def _stepwise(
    config: Config, source: Source, value: Any, parameter: int, steps: NDArray[np.int64], path: str, pairs: bool
) -> Array:
    t = steps.astype(np.float64)
    match value:
        case Profile(profile="pulse"):
            return np.where((t >= value.at) & (t < value.at + value.duration), value.amplitude, 0.0)
        case Profile():
            if value.profile == "square":
                share = np.mod(t / value.period + value.phase / 360.0, 1.0)
                return value.amplitude * np.where(share < 0.5, 1.0, -1.0)
            angle = 4 * exactmath.HALF_PI * (t / value.period) + exactmath.radians(value.phase)
            return usable(config, value.amplitude * exactmath.sincos(angle)[0], t, path, value.model_dump())
        case Expression():
            try:
                numbers = evaluate(value.expression, t)
            except ValueError as error:
                raise config.error(path, str(error), value.expression) from None
            return usable(config, numbers, t, path, value.expression)
        case Function():
            numbers = values_at(config, value, path, pairs, t)
            return numbers[:, parameter] if numbers.ndim == 2 else numbers
    return source.each_step(value, parameter, steps)


def _speed_limit(actor: Actor, start: Array) -> Array:
    """(rows, 6): the largest speed of each parameter."""
    limit = np.full_like(start, np.inf)
    for part, parameters in PARTS.items():
        if (fastest := getattr(actor, part).speed_limit) is not None:
            limit[:, parameters] = fastest
    limit[:, ROTATION] = exactmath.radians(limit[:, ROTATION])
    return limit

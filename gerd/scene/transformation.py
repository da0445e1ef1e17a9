"""Transformations g of a whole scene: scenes in, scenes out, drawn from the transformed geometry with the same draws.

A transformation of space and time takes the motion T(t) of every actor to G(t)·T(s·t), where

    G(t) p = A·p + b + v·t + a·t²/2

is an affine map of the frame at step t, and s a time scale. Other transformations change an effect of the camera. The
random draws stay as they are, so that x and g·x differ in g and in nothing else; the initial states of the integrators
and the background noise belong to the sensor, and stay where they are. Lengths are in pixels, times in steps. The
`transform` of a config and the measures of symmetry both use these transformations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from gerd.calls import explained
from gerd.errors import GerdError, check_number, shorten
from gerd.geometry import exactmath
from gerd.geometry.seen import UNMOVED, MovingMap, Pair, Seen
from gerd.plan.plan import Operation, Plan
from gerd.scene.scenes import Scenes


@dataclass(frozen=True)
class Transformation:
    """One g; make it with the functions below. `amount` is what a curve is drawn over."""

    kind: str
    amount: float
    neutral: float = 0.0  # the amount that changes nothing
    space: MovingMap = UNMOVED  # G, measured from the middle of the frame
    time_scale: float = 1.0
    amounts: tuple[tuple[str, float], ...] = ()  # of `Pixel`, that are set to these values; the others stay
    name: str = ""  # what it does, where kind and amount do not say it

    def __post_init__(self) -> None:
        numbers = (self.amount, self.time_scale, *(value for _, value in self.amounts), *vars(self.space).values())
        for value in numbers:
            if not np.isfinite(np.asarray(value, np.float64)).all():
                raise GerdError(f"{self.kind} {value}: allowed: finite numbers")

    def __str__(self) -> str:
        return self.name or f"{self.kind} {self.amount:g}"

    @property
    def moves(self) -> bool:
        """Whether it changes places in the frame."""
        return self.space != UNMOVED

    def frame(self, width: int, height: int) -> MovingMap:
        """G, for a sensor of this size, measured from its corner."""
        return self.space.about((width / 2, height / 2))

    def then(self, later: Transformation) -> Transformation:
        """This transformation and `later` after it, as one; it has the amount of this one."""
        _check_kind("then", later)
        return replace(
            self,
            space=self.space.then(later.space, later.time_scale),
            kind=f"{self.kind} then {later.kind}",
            time_scale=self.time_scale * later.time_scale,
            name=f"{self} then {later}",
            amounts=tuple(dict([*self.amounts, *later.amounts]).items()),
        )

    def inverse(self) -> Transformation:
        """The transformation that takes this one back."""
        if self.amounts:
            raise GerdError(f"{self}: what the camera does cannot be taken back")
        return replace(
            self,
            kind=f"inverse {self.kind}",
            space=self.space.inverse(self.time_scale),
            time_scale=1 / self.time_scale,
            name=f"inverse of {self}",
        )

    def about(self, point: Pair, width: int, height: int) -> Transformation:
        """The transformation that turns, scales, shears or mirrors about `point`, in pixels."""
        x, y = point
        return replace(self, space=self.space.about((x - width / 2, y - height / 2)))

    def __call__(self, scenes: Scenes) -> Scenes:
        """g·x: the transformed scenes."""
        trajectory = scenes.trajectory.scaled(self.time_scale) if self.time_scale != 1.0 else scenes.trajectory
        if self.moves:
            if any(scenes.wraps):
                actor = scenes.wraps.index(True)
                raise GerdError(
                    f"actors.{actor}.translation.border: got 'wrap': {self} would move the seams of the torus; "
                    "allowed: bounce, free"
                )
            trajectory = Seen.of(trajectory, self.frame(scenes.width, scenes.height))
        changed: dict[str, Any] = dict(self.amounts)
        pixel = replace(scenes.pixel, **changed)
        if not scenes.exact and pixel.is_read_out:
            raise GerdError(f"{self}: allowed with timing: exact; in step timing an event stands for its whole step")
        return replace(scenes, trajectory=trajectory, pixel=pixel)


def identity() -> Transformation:
    """Everything as it is."""
    return Transformation("identity", 0.0, name="identity")


def composed(*parts: Transformation) -> Transformation:
    """All of them, the first one first, as one transformation; its amount is that of the first."""
    for part in parts:
        _check_kind("composed", part)
    return reduce(Transformation.then, parts) if parts else identity()


@explained
def translation(x: float, y: float = 0.0) -> Transformation:
    """Everything `x` pixels farther right and `y` farther down; fractions of a pixel count."""
    _check("translation", x, y)
    return Transformation("translation", _length(x, y), space=MovingMap(shift=(x, y)))


@explained
def rotation(degrees: float) -> Transformation:
    """Everything turned about the middle of the frame, clockwise on the screen."""
    _check("rotation", degrees)
    sine, cosine = (float(part) for part in exactmath.sincos(exactmath.radians(degrees)))
    return Transformation("rotation", degrees, space=MovingMap(((cosine, -sine), (sine, cosine))))


@explained
def scale(x: float, y: float | None = None) -> Transformation:
    """Everything `x` times as large and as far from the middle of the frame; along y `y` times. Negative: mirrored."""
    down = x if y is None else y
    _check("scale", x, down)
    if x == 0 or down == 0:
        raise GerdError(f"scale {x if y is None else (x, y)}: allowed: factors other than 0")
    name = "" if x == down else f"scale ({x:g}, {down:g})"
    return Transformation("scale", x, 1.0, MovingMap(((x, 0.0), (0.0, down))), name=name)


@explained
def shear(factor: float) -> Transformation:
    """Everything moved right by `factor` times its distance below the middle of the frame."""
    _check("shear", factor)
    return Transformation("shear", factor, space=MovingMap(((1.0, factor), (0.0, 1.0))))


@explained
def mirror(axis: str) -> Transformation:
    """Left and right exchanged (x) or top and bottom (y), about the middle of the frame; or nothing (none)."""
    signs = {"none": (1.0, 1.0), "x": (-1.0, 1.0), "y": (1.0, -1.0)}
    if not isinstance(axis, str) or axis not in signs:
        raise GerdError(f"mirror {axis!r}: allowed: x, y, none")
    across, down = signs[axis]
    space = MovingMap(((across, 0.0), (0.0, down)))
    return Transformation("mirror", float(axis != "none"), space=space, name=f"mirror {axis}")


@explained
def affine(first: tuple[float, float, float], second: tuple[float, float, float]) -> Transformation:
    """The map with these two rows of three numbers, from the middle of the frame: (x, y) to (a·x + b·y + c, …)."""
    try:
        (a, b, right), (c, d, down) = first, second
    except (TypeError, ValueError):
        rows = f"{shorten(first)}, {shorten(second)}"
        raise GerdError(f"affine {rows}: allowed: two rows of three numbers, (a, b, x), (c, d, y)") from None
    _check("affine", a, b, right, c, d, down)
    determinant = a * d - b * c
    if determinant == 0:
        raise GerdError(f"affine {first}, {second}: a·d - b·c is 0; allowed: a map that can be taken back")
    return Transformation("affine", determinant, 1.0, MovingMap(((a, b), (c, d)), (right, down)))


@explained
def velocity(x: float, y: float = 0.0, epoch: float = 0.0) -> Transformation:
    """A Galilean boost: everything moves by (x, y) pixels per step more; at step `epoch` it is where it was."""
    _check("velocity", x, y, epoch)
    return Transformation("velocity", _length(x, y), space=_moving((x, y), (0.0, 0.0), epoch))


@explained
def acceleration(x: float, y: float = 0.0, epoch: float = 0.0) -> Transformation:
    """Everything is accelerated by (x, y) pixels per step² more; at step `epoch` it is where it was, as fast."""
    _check("acceleration", x, y, epoch)
    return Transformation("acceleration", _length(x, y), space=_moving((0.0, 0.0), (x, y), epoch))


def _moving(velocity: Pair, acceleration: Pair, epoch: float) -> MovingMap:
    """A map with this velocity and acceleration that has moved nothing yet at step `epoch`."""
    vx, vy = velocity
    ax, ay = acceleration
    half = epoch * epoch / 2
    shift = (0.0 - vx * epoch + ax * half, 0.0 - vy * epoch + ay * half)
    return MovingMap(shift=shift, velocity=(vx - ax * epoch, vy - ay * epoch), acceleration=acceleration)


@explained
def time_scale(factor: float) -> Transformation:
    """Everything moves along the same path `factor` times as fast."""
    _check("time_scale", factor)
    if not factor > 0:
        raise GerdError(f"time_scale {factor}: allowed: a positive factor")
    return Transformation("time_scale", factor, 1.0, time_scale=factor)


@explained
def background(probability: float) -> Transformation:
    """Background noise of this level, of which ON and OFF are equally likely."""
    g = _with_amount("background", probability)
    return replace(g, amounts=(*g.amounts, ("background_on", 0.0), ("background_off", 0.0)))


@explained
def shape_noise(probability: float) -> Transformation:
    """Shape noise of this level."""
    return _with_amount("shape_noise", probability)


@explained
def hot(share: float) -> Transformation:
    """This share of the camera's pixels is hot; those of a smaller share are among those of a larger one."""
    return replace(_with_amount("hot_share", share), kind="hot")


@explained
def dead(share: float) -> Transformation:
    """This share of the camera's pixels is dead; those of a smaller share are among those of a larger one."""
    return _with_amount("dead", share)


@explained
def threshold_spread(deviation: float) -> Transformation:
    """Thresholds of the camera's pixels differ with this standard deviation; their pattern stays, and grows with it."""
    _check("threshold_spread", deviation)
    if deviation < 0:
        raise GerdError(f"threshold_spread {deviation}: allowed: a number from 0 on, as a share of a full count")
    return Transformation("threshold_spread", deviation, amounts=(("spread", deviation),))


@explained
def log_response(background: float) -> Transformation:
    """Integrators see logarithms, on a background of this brightness; 0: they see counts."""
    check_number("log_response", background)
    if background < 0:
        raise GerdError(f"log_response {background}: allowed: a brightness above 0, or 0 for a linear response")
    return Transformation("log_response", background, amounts=(("log_response", float(background)),))


@explained
def refractory(us: float) -> Transformation:
    """A pixel has no second event within so many microseconds of the camera's time."""
    _check("refractory", us)
    if us < 0:
        raise GerdError(f"refractory {us:g}: allowed: microseconds, from 0 on")
    return Transformation("refractory", us, amounts=(("refractory_us", us),))


@explained
def latency(us: float) -> Transformation:
    """Events arrive so many microseconds after they happen; in exact timing."""
    return Transformation("latency", us, amounts=(("latency_us", _microseconds("latency", us)),))


@explained
def jitter(us: float) -> Transformation:
    """Events arrive at times that differ with this standard deviation, none before it happens; in exact timing."""
    return Transformation("jitter", us, amounts=(("jitter_us", _microseconds("jitter", us)),))


@explained
def bus(us: float) -> Transformation:
    """Each event takes up a serial bus for so many microseconds, which others wait for; in exact timing."""
    return Transformation("bus", us, amounts=(("bus_us", _microseconds("bus", us)),))


@explained
def leak(hz: float) -> Transformation:
    """Integrators gain their ON threshold so many times a second of the camera's time."""
    _check("leak", hz)
    if hz < 0:
        raise GerdError(f"leak {hz:g}: allowed: times a second, from 0 on")
    return Transformation("leak", hz, amounts=(("leak_hz", hz),))


@explained
def density(kept: float) -> Transformation:
    """This share of the events is kept; those of a smaller share are among those of a larger one."""
    return Transformation("density", _share("density", kept), 1.0, amounts=(("event_noise", 1.0 - kept),))


def _with_amount(name: str, share: float) -> Transformation:
    return Transformation(name, _share(name, share), amounts=((name, share),))


_OF_SPACE_AND_TIME = (translation, rotation, scale, shear, velocity, acceleration, time_scale)
_MAKERS = (
    *_OF_SPACE_AND_TIME,
    background,
    shape_noise,
    density,
    hot,
    dead,
    threshold_spread,
    log_response,
    refractory,
    leak,
    latency,
    jitter,
    bus,
)
KINDS: dict[str, Callable[[float], Transformation]] = {make.__name__: make for make in _MAKERS}  # with one amount
UNITS = {
    "refractory": "µs",
    "leak": "Hz",
    "latency": "µs",
    "jitter": "µs",
    "bus": "µs",
    "translation": "px",
    "rotation": "°",
    "velocity": "px/step",
    "acceleration": "px/step²",
}


def planned(plan: Plan) -> Transformation:
    """What a config's `transform` does."""
    return composed(*(_read(operation, plan) for operation in plan.operations))


_WRITTEN: dict[str, Callable[..., Transformation]] = {  # by the names in a config
    "translate": translation,
    "rotate": rotation,
    "scale": scale,
    "shear": shear,
    "mirror": mirror,
    "affine": affine,
    "time_scale": time_scale,
}
_SINCE_EPOCH: dict[str, Callable[..., Transformation]] = {"boost": velocity, "accelerate": acceleration}


def _read(operation: Operation, plan: Plan) -> Transformation:
    """What one entry of the list does."""
    if operation.kind in _SINCE_EPOCH:
        return _SINCE_EPOCH[operation.kind](*operation.values, epoch=operation.epoch)
    g = _WRITTEN[operation.kind](*operation.values)
    return g if operation.about is None else g.about(operation.about, plan.width, plan.height)


def _length(x: float, y: float) -> float:
    """The length of a vector; it has a sign if the vector lies along x."""
    return x if y == 0 else float(np.hypot(x, y))


def _microseconds(name: str, value: float) -> float:
    check_number(name, value)
    if not 0 <= value <= 1e6:
        raise GerdError(f"{name} {value:g}: allowed: microseconds from 0 to 1000000")
    return value


def _check_kind(name: str, part: Any) -> None:
    if not isinstance(part, Transformation):
        raise GerdError(f"{name}: {shorten(part)}: allowed: transformations, such as transformation.rotation(30)")


def _check(name: str, *numbers: float) -> None:
    for number in numbers:
        check_number(name, number)


def _share(name: str, value: float) -> float:
    check_number(name, value)
    if not 0 <= value <= 1:
        raise GerdError(f"{name} {value}: allowed: a probability from 0 to 1")
    return value

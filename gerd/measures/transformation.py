"""Transformations g of a whole scene: scenes in, scenes out, drawn from the transformed geometry with the same draws.

A transformation of space and time takes the motion T(t) of every actor to G(t)·T(s·t), where

    G(t) p = A·p + b + v·t + a·t²/2

is an affine map of the frame at step t, and s a time scale. Others change what the sensor adds: its three noises. The
random draws stay as they are, so that x and g·x differ in g and in nothing else; the initial states of the integrators
and the background noise belong to the sensor, and stay where they are. Lengths are in pixels, times in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.errors import GerdError
from gerd.geometry import exactmath
from gerd.geometry.trajectory import Trajectory, derivatives, matrix
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]
Pair = tuple[float, float]


@dataclass(frozen=True)
class Transformation:
    """One g; make it with the functions below. `amount` is what a curve is drawn over."""

    kind: str
    amount: float
    neutral: float = 0.0  # the amount that changes nothing
    linear: tuple[Pair, Pair] = ((1.0, 0.0), (0.0, 1.0))  # A, about the middle of the frame
    shift: Pair = (0.0, 0.0)
    velocity: Pair = (0.0, 0.0)
    acceleration: Pair = (0.0, 0.0)
    epoch: float = 0.0  # the step at which velocity and acceleration have moved nothing yet
    time_scale: float = 1.0
    background: float | None = None  # probabilities; None: as the scene has it
    shape_noise: float | None = None
    event_noise: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "kind" and value is not None and not np.isfinite(np.asarray(value, np.float64)).all():
                raise GerdError(f"{self.kind} {value}: allowed are finite numbers")

    def __str__(self) -> str:
        return f"{self.kind} {self.amount:g}"

    @property
    def moves(self) -> bool:
        """Whether it changes places in the frame."""
        still = Transformation(self.kind, 0.0)
        return any(
            getattr(self, name) != getattr(still, name) for name in ("linear", "shift", "velocity", "acceleration")
        )

    def frame(self, width: int, height: int) -> Frame:
        """G, for a sensor of this size."""
        centre = np.array([width, height]) / 2
        linear, velocity, push = (np.array(part) for part in (self.linear, self.velocity, self.acceleration))
        at = self.epoch
        drift = velocity - push * at
        shift = (centre - linear @ centre) + np.array(self.shift) - velocity * at + push * (at * at / 2)
        return Frame(linear, shift, drift, push)

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
            if isinstance(trajectory, Seen):
                raise GerdError(f"{self}: the scene has been transformed already; allowed is one transformation")
            trajectory = Seen.of(trajectory, self.frame(scenes.width, scenes.height))
        noises = {name: getattr(self, name) for name in ("background", "shape_noise", "event_noise")}
        changed = {name: value for name, value in noises.items() if value is not None}
        return replace(scenes, trajectory=trajectory, **changed)


def translation(x: float, y: float = 0.0) -> Transformation:
    """Everything `x` pixels farther right and `y` farther down; fractions of a pixel count."""
    return Transformation("translation", _length(x, y), shift=(x, y))


def rotation(degrees: float) -> Transformation:
    """Everything turned about the middle of the frame, clockwise on the screen."""
    sine, cosine = (float(part) for part in exactmath.sincos(exactmath.radians(degrees)))
    return Transformation("rotation", degrees, linear=((cosine, -sine), (sine, cosine)))


def scale(factor: float) -> Transformation:
    """Everything `factor` times as large and as far from the middle of the frame."""
    _positive("scale", factor)
    return Transformation("scale", factor, 1.0, linear=((factor, 0.0), (0.0, factor)))


def shear(factor: float) -> Transformation:
    """Everything moved right by `factor` times its distance below the middle of the frame."""
    return Transformation("shear", factor, linear=((1.0, factor), (0.0, 1.0)))


def velocity(x: float, y: float = 0.0, epoch: float = 0.0) -> Transformation:
    """A Galilean boost: everything moves by (x, y) pixels per step more; at step `epoch` it is where it was."""
    return Transformation("velocity", _length(x, y), velocity=(x, y), epoch=epoch)


def acceleration(x: float, y: float = 0.0, epoch: float = 0.0) -> Transformation:
    """Everything is accelerated by (x, y) pixels per step² more; at step `epoch` it is where it was, as fast."""
    return Transformation("acceleration", _length(x, y), acceleration=(x, y), epoch=epoch)


def time_scale(factor: float) -> Transformation:
    """The same motion, `factor` times as fast."""
    _positive("time_scale", factor)
    return Transformation("time_scale", factor, 1.0, time_scale=factor)


def background(probability: float) -> Transformation:
    """Background noise of this level."""
    return Transformation("background", _share("background", probability), background=probability)


def shape_noise(probability: float) -> Transformation:
    """Shape noise of this level."""
    return Transformation("shape_noise", _share("shape_noise", probability), shape_noise=probability)


def density(kept: float) -> Transformation:
    """This share of the events is kept; those of a smaller share are among those of a larger one."""
    return Transformation("density", _share("density", kept), 1.0, event_noise=1.0 - kept)


_MAKERS = (translation, rotation, scale, shear, velocity, acceleration, time_scale, background, shape_noise, density)
KINDS: dict[str, Callable[[float], Transformation]] = {make.__name__: make for make in _MAKERS}
UNITS = {"translation": "px", "rotation": "°", "velocity": "px/step", "acceleration": "px/step²"}


def _length(x: float, y: float) -> float:
    """Of a vector; along x it has a sign."""
    return x if y == 0 else float(np.hypot(x, y))


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise GerdError(f"{name} {value}: allowed is a positive factor")


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise GerdError(f"{name} {value}: allowed is a probability from 0 to 1")
    return value


@dataclass(frozen=True)
class Frame:
    """G(t) p = linear·p + shift + velocity·t + push·t²/2, with t in steps of the recording."""

    linear: Array  # (2, 2)
    shift: Array  # (2,)
    velocity: Array
    push: Array

    @property
    def is_shift(self) -> bool:
        return bool((self.linear == np.eye(2)).all())

    def moved(self, times: ArrayLike) -> Array:
        """(times, 2): the part of G that does not depend on the place."""
        t = np.asarray(times, np.float64)[:, None]
        return self.shift + t * (self.velocity + self.push * (t * 0.5))

    def G(self, times: ArrayLike) -> Array:
        """(times, 3, 3)."""
        result = np.zeros((len(np.asarray(times)), 3, 3))
        result[:, :2, :2], result[:, :2, 2], result[:, 2, 2] = self.linear, self.moved(times), 1.0
        return result


@dataclass(frozen=True)
class Seen(Trajectory):
    """The motion G(t)·T(t) as another camera sees T: borders and limits are seen through G, too."""

    through: Frame | None = None

    @classmethod
    def of(cls, motion: Trajectory, through: Frame) -> Seen:
        return cls(**{field.name: getattr(motion, field.name) for field in fields(Trajectory)}, through=through)

    def entries(self, times: ArrayLike, device: str | None = None) -> tuple[Any, ...]:
        assert self.through is not None
        a, b, x, c, d, y = super().entries(times, device)
        right, down = np.ascontiguousarray(self.through.moved(times).T)
        if device is not None:
            import torch

            right, down = torch.from_numpy(right).to(device), torch.from_numpy(down).to(device)
        if self.through.is_shift:
            return a, b, x + right, c, d, y + down
        (p, q), (r, s) = self.through.linear.tolist()
        mixed = ((p * top + q * bottom, r * top + s * bottom) for top, bottom in ((a, c), (b, d), (x, y)))
        (a, c), (b, d), (x, y) = mixed
        return a, b, x + right, c, d, y + down

    def parameters(self, times: ArrayLike) -> Array:
        assert self.through is not None
        own = super().parameters(times)
        t = np.asarray(times, np.float64)[:, None]
        through = self.through
        drift = np.stack([through.moved(times), through.velocity + through.push * t, through.push + 0.0 * t], axis=-2)
        if through.is_shift:
            own[..., :2] += drift
            return own
        L, L1, L2 = (through.linear @ part[..., :2, :2] for part in (matrix(own), *derivatives(own)))
        places = np.einsum("ij,...j->...i", through.linear, own[..., :2]) + drift
        return np.concatenate([places, _factored(L, L1, L2)], axis=-1)


def _factored(L: Array, L1: Array, L2: Array) -> Array:
    """(…, 3, 4): scale x, scale y, rotation, shear of L = Rotate·Shear·Scale, and their derivatives from those of L."""
    turn = np.arctan2(L[..., 1, 0], L[..., 0, 0])
    sine, cosine = exactmath.sincos(turn)
    back = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)
    U, M, N = (back @ part for part in (L, L1, L2))  # U = ((a, e), (0, b)), upper triangular
    a, e, b = U[..., 0, 0], U[..., 0, 1], U[..., 1, 1]
    spin = M[..., 1, 0] / a  # from R⁻¹L' = spin·J·U + U' with J a quarter turn
    a1, e1, b1 = M[..., 0, 0], M[..., 0, 1] + spin * b, M[..., 1, 1] - spin * e
    spin1 = (N[..., 1, 0] - 2 * spin * a1) / a  # from R⁻¹L'' = (spin'·J - spin²)·U + 2·spin·J·U' + U''
    a2 = N[..., 0, 0] + spin * spin * a
    e2 = N[..., 0, 1] + spin1 * b + spin * spin * e + 2 * spin * b1
    b2 = N[..., 1, 1] - spin1 * e + spin * spin * b - 2 * spin * e1
    k = e / b
    k1 = (e1 - k * b1) / b
    k2 = (e2 - 2 * k1 * b1 - k * b2) / b
    orders = ((a, b, turn, k), (a1, b1, spin, k1), (a2, b2, spin1, k2))
    return np.stack([np.stack(order, -1) for order in orders], -2)

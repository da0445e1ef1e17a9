"""Motion: the six parameters of an affine map as functions of time, and T, T', T'' from them.

A parameter's free path is piecewise quadratic in the trajectory's own time: start + velocity · t plus the
double integral of an acceleration that is constant on each [k, k + 1). Borders and limits fold the free path
back, as a mirror (`bounce`, limits) or a torus (`wrap`) would: position, velocity and acceleration are those of
the folded path. So T, T' and T'' exist in closed form at any real time, past or future.

At an instant where a derivative jumps (a reflection, or a whole t at which the acceleration changes) the value
on the later side is given. A wrap moves the position by the frame's size; the derivatives do not see that jump.

    T = Translate(x, y) · Rotate(rotation) · Shear(shear) · Scale(scale_x, scale_y)

takes a shape's unit frame to sensor pixels. Angles are in radians here, times in steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd import exactmath

Array = NDArray[np.float64]

PARAMETERS = ("x", "y", "scale_x", "scale_y", "rotation", "shear")
X, Y, SCALE_X, SCALE_Y, ROTATION, SHEAR = range(6)
_ARRAYS = ("start", "velocity", "acceleration", "low", "high", "wrap", "base")


@dataclass(frozen=True)
class Trajectory:
    """Motion of one actor or of many: every array has the same leading axes, written `…` here."""

    start: Array  # (…, 6) at t = 0
    velocity: Array  # (…, 6) at t = 0
    acceleration: Array  # (…, 6, intervals); no intervals: never accelerated
    first: int  # acceleration[…, 0] holds on [first, first + 1); outside the intervals it is 0
    low: Array  # (…, 6) border or limit; -inf for none
    high: Array  # (…, 6)
    wrap: NDArray[np.bool_]  # (…, 6) fold as a torus instead of a mirror
    base: Array  # (…, 6) 0: the path is the parameter; otherwise the parameter is base · exp(path)
    rate: float = 1.0  # own time per step: the time scale
    more: Callable[[int, int], Array] | None = None  # (first, intervals) → acceleration, for times beyond those above

    def __getitem__(self, item: Any) -> Trajectory:
        """The motions that `item` picks from the leading axes."""
        more = self.more
        picked: Any = {name: getattr(self, name)[item] for name in _ARRAYS}
        return replace(self, **picked, more=None if more is None else lambda first, count: more(first, count)[item])

    @classmethod
    def joined(cls, motions: Sequence[Trajectory], rows: int, rate: float) -> Trajectory:
        """The motions of several actors, each with leading axis (rows,), as one with leading axes (rows, actors)."""
        if not motions:
            return cls.at_rest(np.zeros((rows, 0, 6))).scaled(rate)
        arrays: Any = {name: np.stack([getattr(motion, name) for motion in motions], axis=1) for name in _ARRAYS}

        def more(first: int, count: int) -> Array:
            return np.stack([motion.more(first, count) for motion in motions if motion.more is not None], axis=1)

        return cls(**arrays, first=motions[0].first, rate=rate, more=more)

    @classmethod
    def at_rest(
        cls, start: Array, low: ArrayLike = -np.inf, high: ArrayLike = np.inf, wrap: ArrayLike = False
    ) -> Trajectory:
        """No motion: the parameters `start` (…, 6), folded at borders and limits."""
        none = np.zeros_like(start)
        low, high, wrap = (np.broadcast_to(given, start.shape) for given in (low, high, wrap))
        return cls(start, none, none[..., None][..., :0], 0, low, high, wrap, none)

    def scaled(self, factor: float) -> Trajectory:
        """The same path run `factor` times as fast: T_s(t) = T(s · t)."""
        return replace(self, rate=self.rate * factor)

    def boosted(self, velocity: Sequence[float]) -> Trajectory:
        """A Galilean boost: the free path moves by `velocity` (x, y; pixels per step) more in each step."""
        boost = np.zeros(6)
        boost[:2] = np.asarray(velocity, np.float64) / self.rate
        return replace(self, velocity=self.velocity + boost)

    def parameters(self, times: ArrayLike) -> Array:
        """(…, times, 3, 6): each parameter with its velocity and acceleration per step, at `times` in steps."""
        t = np.asarray(times, np.float64) * self.rate
        covering = self._covering(t)
        result = np.empty((*self.start.shape[:-1], len(t), 3, 6))
        for i in range(6):
            low, high, wrap = self.low[..., i, None], self.high[..., i, None], self.wrap[..., i, None]
            u, speed, push = covering._free(i, t)
            flip = _flipped(u, speed, push, low, high, wrap)
            u, speed, push = _folded(u, low, high, wrap), np.where(flip, -speed, speed), np.where(flip, -push, push)
            base = self.base[..., i, None]
            if base.any():
                u = np.where(base != 0, base * exactmath.exp(u), u)
                grown = u * (speed * speed + push)
                speed, push = np.where(base != 0, u * speed, speed), np.where(base != 0, grown, push)
            result[..., 0, i] = u
            result[..., 1, i] = speed * self.rate
            result[..., 2, i] = push * (self.rate * self.rate)
        return result

    def values(self, times: ArrayLike) -> list[Array]:
        """The six parameters alone, each (…, times), or (…, 1) where it rests: what a picture needs, and no more."""
        t = np.asarray(times, np.float64) * self.rate
        covering = self._covering(t)
        result = []
        for i in range(6):
            resting = not (self.velocity[..., i].any() or covering.acceleration[..., i, :].any())
            u = self.start[..., i, None] if resting else covering._free(i, t)[0]
            u = _folded(u, self.low[..., i, None], self.high[..., i, None], self.wrap[..., i, None])
            base = self.base[..., i, None]
            result.append(np.where(base != 0, base * exactmath.exp(u), u) if base.any() else u)
        return result

    def T(self, times: ArrayLike) -> Array:
        """(…, times, 3, 3): the transformation at `times`."""
        shape = (*self.start.shape[:-1], len(np.asarray(times)))
        return _matrix(affine(self.values(times)), shape)

    def _covering(self, t: Array) -> Trajectory:
        """The same motion with accelerations for all own times `t`."""
        end = self.first + self.acceleration.shape[-1]
        if self.more is None or end == self.first or len(t) == 0:
            return self
        low, high = math.floor(t.min()), math.floor(t.max()) + 1
        if self.first <= low and high <= end:
            return self
        low, high = min(low, self.first), max(high, end)
        return replace(self, acceleration=self.more(low, high - low), first=low)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        return _integrals(self.acceleration, self.first)

    def _free(self, i: int, t: Array) -> tuple[Array, Array, Array]:
        """Parameter i and its velocity and acceleration, each (…, t), at own times `t` before any border."""
        start, velocity = self.start[..., i, None], self.velocity[..., i, None]
        u = start + velocity * t
        a = self.acceleration[..., i, :]
        if not a.any():
            return u, np.broadcast_to(velocity, u.shape), np.zeros_like(u)
        gained, moved = (part[..., i, :] for part in self._sums)
        k = np.floor(t)
        knot = np.clip(k - self.first, 0, a.shape[-1]).astype(np.int64)  # the last knot starts a free flight
        since = t - (knot + self.first)
        pushed = np.concatenate([a, np.zeros((*a.shape[:-1], 1))], axis=-1)
        push = np.where(k < self.first, 0.0, pushed[..., knot])
        speed = gained[..., knot]
        return u + (moved[..., knot] + since * (speed + push * 0.5 * since)), velocity + (speed + push * since), push


def _integrals(a: Array, first: int) -> tuple[Array, Array]:
    """Velocity and distance that the accelerations (…, intervals) have added at each knot; 0 at t = 0."""
    # Summed outwards from t = 0, so that a longer recording or warm-up does not change a bit of the path.
    origin = min(max(-first, 0), a.shape[-1])
    gained = np.zeros((*a.shape[:-1], a.shape[-1] + 1))
    gained[..., origin + 1 :] = np.cumsum(a[..., origin:], axis=-1)
    gained[..., :origin] = -np.cumsum(a[..., :origin][..., ::-1], axis=-1)[..., ::-1]
    per_interval = gained[..., :-1] + a * 0.5
    moved = np.zeros_like(gained)
    moved[..., origin + 1 :] = np.cumsum(per_interval[..., origin:], axis=-1)
    moved[..., :origin] = -np.cumsum(per_interval[..., :origin][..., ::-1], axis=-1)[..., ::-1]
    return gained, moved


def _cells(u: Array, low: Array, high: Array) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """How many sizes `u` is away from its anchor; the anchor; the size; and whether there are two bounds."""
    bounded = np.isfinite(low) & np.isfinite(high)
    size = np.where(bounded, high, 1.0) - np.where(bounded, low, 0.0)
    anchor = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    return (u - anchor) / size, anchor, size, bounded


def _folded(u: Array, low: Array, high: Array, wrap: NDArray[np.bool_]) -> Array:
    """`u` (…, times) folded into [low, high], either of which may be infinite."""
    outside = ~((u >= low) & (u < high)).all(axis=-1)
    if not outside.any():
        return u
    result = u.copy()
    result[outside] = _fold(u[outside], low[outside], high[outside], wrap[outside])
    return result


def _fold(u: Array, low: Array, high: Array, wrap: NDArray[np.bool_]) -> Array:
    cells, anchor, size, bounded = _cells(u, low, high)
    cell = np.floor(cells)
    rest = u - cell * size
    odd = np.mod(cell, 2.0) == 1.0
    mirrored = np.clip(np.where(odd, (anchor + np.where(bounded, high, 0.0)) - rest, rest), low, high)  # of rounding
    cyclic = np.where((cells == cell) | (rest < low) | (rest >= high), anchor, rest)  # in [low, high)
    beyond = np.where(np.isfinite(low), u < low, u > high)  # one limit only: reflect there once
    once = np.where(beyond, anchor - (u - anchor), u)
    folded = np.where(bounded, np.where(wrap, cyclic, mirrored), once)
    return np.where((u >= low) & (u < high), u, folded)  # cells are rounded: what is inside stays as it is


def _flipped(
    u: Array, speed: Array, push: Array, low: Array, high: Array, wrap: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether the folded path runs against the free one, on the later side of an instant of reflection."""
    inside = (u > low) & (u < high)
    if inside.all():
        return np.zeros(u.shape, np.bool_)
    cells, _, _, bounded = _cells(u, low, high)
    cell = np.floor(cells)
    leaving = (speed < 0) | ((speed == 0) & (push < 0))
    cell = np.where((cells == cell) & leaving, cell - 1, cell)  # on the edge, about to be in the cell below
    beyond = np.where(np.isfinite(low), cell < 0, np.isfinite(high) & (cell >= 0))
    return ~inside & np.where(bounded, ~wrap & (np.mod(cell, 2.0) == 1.0), beyond)


def affine(values: Sequence[Array]) -> tuple[Array, ...]:
    """The six entries a, b, x, c, d, y of T = ((a, b, x), (c, d, y), (0, 0, 1)) from the six parameters."""
    x, y, scale_x, scale_y, rotation, shear = values
    across = shear * scale_y
    if not rotation.any():  # sine 0 and cosine 1, as below
        return scale_x, across, x, np.zeros_like(scale_x), scale_y, y
    sine, cosine = exactmath.sincos(rotation)
    return (
        cosine * scale_x,
        cosine * across - sine * scale_y,
        x,
        sine * scale_x,
        sine * across + cosine * scale_y,
        y,
    )


def _matrix(entries: Sequence[Array], shape: tuple[int, ...]) -> Array:
    result = np.zeros((*shape, 3, 3))
    for k, entry in enumerate(entries):
        result[..., k // 3, k % 3] = entry
    result[..., 2, 2] = 1.0
    return result


def matrix(parameters: Array) -> Array:
    """T (…, 3, 3) from parameters (…, 3, 6)."""
    return _matrix(affine([parameters[..., 0, i] for i in range(6)]), parameters.shape[:-2])


def derivatives(parameters: Array) -> tuple[Array, Array]:
    """T' and T'' (…, 3, 3) per step, by the product rule on Rotate · (Shear · Scale)."""
    value, speed, push = parameters[..., 0, :], parameters[..., 1, :], parameters[..., 2, :]
    sine, cosine = exactmath.sincos(value[..., ROTATION])
    turn = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)
    quarter = np.stack([np.stack([-sine, -cosine], -1), np.stack([cosine, -sine], -1)], -2)
    spin, spin_push = speed[..., ROTATION, None, None], push[..., ROTATION, None, None]
    turn_1 = spin * quarter
    turn_2 = spin_push * quarter - spin * spin * turn

    k, k1, k2 = value[..., SHEAR], speed[..., SHEAR], push[..., SHEAR]
    s, s1, s2 = value[..., SCALE_Y], speed[..., SCALE_Y], push[..., SCALE_Y]
    form = _upper(value[..., SCALE_X], k * s, s)
    form_1 = _upper(speed[..., SCALE_X], k1 * s + k * s1, s1)
    form_2 = _upper(push[..., SCALE_X], k2 * s + 2.0 * k1 * s1 + k * s2, s2)

    first = np.zeros((*value.shape[:-1], 3, 3))
    second = np.zeros_like(first)
    first[..., :2, :2] = _product(turn_1, form) + _product(turn, form_1)
    second[..., :2, :2] = _product(turn_2, form) + 2.0 * _product(turn_1, form_1) + _product(turn, form_2)
    first[..., :2, 2] = speed[..., :2]
    second[..., :2, 2] = push[..., :2]
    return first, second


def _upper(a: Array, b: Array, d: Array) -> Array:
    """The matrices ((a, b), (0, d))."""
    return np.stack([np.stack([a, b], -1), np.stack([np.zeros_like(d), d], -1)], -2)


def _product(m: Array, n: Array) -> Array:
    """m · n of 2×2 matrices in plain arithmetic: a BLAS may fuse or reorder, and then bits depend on the machine."""
    return m[..., :, 0, None] * n[..., None, 0, :] + m[..., :, 1, None] * n[..., None, 1, :]

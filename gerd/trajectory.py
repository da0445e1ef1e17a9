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

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

    def __getitem__(self, item: Any) -> Trajectory:
        """The motions that `item` picks from the leading axes."""
        return replace(self, **{name: getattr(self, name)[item] for name in _ARRAYS})

    @classmethod
    def joined(cls, motions: Sequence[Trajectory], rows: int, rate: float) -> Trajectory:
        """The motions of several actors, each with leading axis (rows,), as one with leading axes (rows, actors)."""
        if not motions:
            empty = np.zeros((rows, 0, 6))
            return cls(empty, empty, empty[..., None][..., :0], 0, empty, empty, empty.astype(np.bool_), empty, rate)
        arrays = {name: np.stack([getattr(motion, name) for motion in motions], axis=1) for name in _ARRAYS}
        return cls(**arrays, first=motions[0].first, rate=rate)

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
        values = self._folded(np.asarray(times, np.float64) * self.rate)
        values[..., 1, :] *= self.rate
        values[..., 2, :] *= self.rate * self.rate
        return values

    def T(self, times: ArrayLike) -> Array:
        """(…, times, 3, 3): the transformation at `times`."""
        return matrix(self.parameters(times))

    def _free(self, t: Array) -> Array:
        """The free path (…, t, 3, 6) at own times `t`, before any border."""
        steps = t[:, None]
        start, velocity = self.start[..., None, :], self.velocity[..., None, :]
        path = np.empty((*self.start.shape[:-1], len(t), 3, 6))
        path[..., 0, :] = start + velocity * steps
        path[..., 1, :] = velocity
        path[..., 2, :] = 0.0
        intervals = self.acceleration.shape[-1]
        if intervals:
            gained, moved = self._integrals()
            k = np.floor(t)
            knot = np.clip(k - self.first, 0, intervals).astype(np.int64)  # the last knot starts a free flight
            since = (t - (knot + self.first))[:, None]
            pushed = np.concatenate([self.acceleration, np.zeros((*self.start.shape, 1))], axis=-1)
            before = (k < self.first)[:, None]
            push = np.where(before, 0.0, np.moveaxis(pushed, -1, -2)[..., knot, :])
            speed = np.moveaxis(gained, -1, -2)[..., knot, :]
            path[..., 0, :] += np.moveaxis(moved, -1, -2)[..., knot, :] + since * (speed + push * 0.5 * since)
            path[..., 1, :] += speed + push * since
            path[..., 2, :] = push
        return path

    def _integrals(self) -> tuple[Array, Array]:
        """Velocity and distance that the acceleration has added at each knot (…, 6, intervals + 1); 0 at t = 0."""
        # Summed outwards from t = 0, so that a longer recording or warm-up does not change a bit of the path.
        a = self.acceleration
        origin = min(max(-self.first, 0), a.shape[-1])
        gained = np.zeros((*a.shape[:-1], a.shape[-1] + 1))
        gained[..., origin + 1 :] = np.cumsum(a[..., origin:], axis=-1)
        gained[..., :origin] = -np.cumsum(a[..., :origin][..., ::-1], axis=-1)[..., ::-1]
        per_interval = gained[..., :-1] + a * 0.5
        moved = np.zeros_like(gained)
        moved[..., origin + 1 :] = np.cumsum(per_interval[..., origin:], axis=-1)
        moved[..., :origin] = -np.cumsum(per_interval[..., :origin][..., ::-1], axis=-1)[..., ::-1]
        return gained, moved

    def _folded(self, t: Array) -> Array:
        """The path (…, t, 3, 6) at own times `t`, folded at borders and limits and exponentiated where asked."""
        path = self._free(t)
        for i in range(6):
            low, high = self.low[..., i], self.high[..., i]
            if np.isfinite(low).any() or np.isfinite(high).any():
                _fold(path[..., i], low[..., None], high[..., None], self.wrap[..., i][..., None])
            if self.base[..., i].any():
                _grow(path[..., i], self.base[..., i][..., None])
        return path


def _fold(path: Array, low: Array, high: Array, wrap: NDArray[np.bool_]) -> None:
    """Fold (…, t, 3) values into [low, high] in place."""
    u, speed, push = path[..., 0], path[..., 1], path[..., 2]
    bounded = np.isfinite(low) & np.isfinite(high)
    size = np.where(bounded, high, 1.0) - np.where(bounded, low, 0.0)
    anchor = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    cells = (u - anchor) / size
    cell = np.floor(cells)
    leaving = (speed < 0) | ((speed == 0) & (push < 0))
    cell = np.where((cells == cell) & leaving, cell - 1, cell)  # on the edge, about to be in the cell below
    odd = np.mod(cell, 2.0) == 1.0
    rest = u - cell * size
    mirrored = np.where(odd, (anchor + np.where(bounded, high, 0.0)) - rest, rest)
    cyclic = np.where(cells == np.floor(cells), anchor, rest)  # a wrapped position lies in [low, high)
    beyond = np.where(np.isfinite(low), cell < 0, cell >= 0)  # one limit only: reflect there once
    once = np.where(beyond, anchor - (u - anchor), u)
    free = ~(np.isfinite(low) | np.isfinite(high))
    flip = np.where(bounded & ~wrap, odd, ~bounded & ~free & beyond)
    path[..., 0] = np.where(free, u, np.where(bounded, np.where(wrap, cyclic, mirrored), once))
    path[..., 1] = np.where(flip, -speed, speed)
    path[..., 2] = np.where(flip, -push, push)


def _grow(path: Array, base: Array) -> None:
    """Replace a logarithm's path (…, t, 3) by base · exp(path) in place, where base is not 0."""
    speed, push = path[..., 1].copy(), path[..., 2].copy()
    size = base * exactmath.exp(path[..., 0])
    path[..., 0] = np.where(base != 0, size, path[..., 0])
    path[..., 1] = np.where(base != 0, size * speed, speed)
    path[..., 2] = np.where(base != 0, size * (speed * speed + push), push)


def matrix(parameters: Array) -> Array:
    """T (…, 3, 3) from parameters (…, 3, 6)."""
    value = parameters[..., 0, :]
    sine, cosine = exactmath.sincos(value[..., ROTATION])
    across = value[..., SHEAR] * value[..., SCALE_Y]
    result = np.zeros((*value.shape[:-1], 3, 3))
    result[..., 0, 0] = cosine * value[..., SCALE_X]
    result[..., 0, 1] = cosine * across - sine * value[..., SCALE_Y]
    result[..., 1, 0] = sine * value[..., SCALE_X]
    result[..., 1, 1] = sine * across + cosine * value[..., SCALE_Y]
    result[..., 0, 2] = value[..., X]
    result[..., 1, 2] = value[..., Y]
    result[..., 2, 2] = 1.0
    return result


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

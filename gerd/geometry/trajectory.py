"""Motion: the six parameters of T as functions of time.

A parameter's free path is piecewise quadratic in the trajectory's own time: start + velocity · t plus the
double integral of an acceleration that is constant on each [k, k + 1). Borders and limits fold the free path
back, as a mirror (`bounce`, limits) or a torus (`wrap`) would: position, velocity and acceleration are those of
the folded path. So T, T' and T'' exist in closed form at any real time, past or future. Accelerations are held for a
window of time only, with the sums of those before it: a recording of any length can be followed in bounded memory.

At an instant where a derivative jumps (a reflection, or a whole t at which the acceleration changes) the value
on the later side is given. A wrap moves the position by the frame's size; the derivatives do not see that jump.
Times are in steps, units and order of the parameters those of `parameters.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.geometry import exactmath
from gerd.geometry.folding import flipped, fold, folded
from gerd.geometry.parameters import (
    ORDERS,
    PARAMETER_COUNT,
    PARAMETERS_OF,
    ROTATION,
    SCALE_X,
    SCALE_Y,
    SHEAR,
    X,
    Y,
    affine,
    from_entries,
)

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float64]
Send = Callable[..., "list[Tensor]"]  # arrays to PyTorch tensors on some device
Picked = int | slice | NDArray[np.int64] | tuple[int | slice | NDArray[np.int64], ...]  # of the leading axes

WINDOW = 2**19  # `held`, unless it is given
LIMITED_WINDOW = 2**12  # intervals that are held of each motion with a speed limit, which is applied one by one
_ARRAYS = ("start", "velocity", "speed_limit", "low", "high", "wrap", "base")


@dataclass(frozen=True)
class Knots:
    """The acceleration on each [k, k + 1) of a window of time, and what it has added since t = 0 at each whole k."""

    first: int
    acceleration: Array  # (…, 6, intervals); [..., 0] holds on [first, first + 1)
    gained: Array  # (…, 6, intervals + 1) velocity
    moved: Array  # (…, 6, intervals + 1) distance

    @property
    def end(self) -> int:
        return self.first + self.acceleration.shape[-1]

    @cached_property
    def pushed(self) -> list[bool]:
        """Whether each parameter of any motion is or has been accelerated here."""
        each = self.acceleration.any(axis=-1) | (self.gained[..., 0] != 0) | (self.moved[..., 0] != 0)
        return [bool(pushed) for pushed in each.reshape(-1, PARAMETER_COUNT).any(axis=0)]

    def __getitem__(self, item: Picked) -> Knots:
        return Knots(self.first, self.acceleration[item], self.gained[item], self.moved[item])


@dataclass(frozen=True)
class Trajectory:
    """Motion of one actor or of many: every array has the same leading axes, written `…` here."""

    start: Array  # (…, 6) at t = 0
    velocity: Array  # (…, 6) at t = 0
    push: Callable[[int, int], Array] | None  # (first, intervals) → acceleration (…, 6, intervals); None: none ever
    speed_limit: Array  # (…, 6) inf for none; x and y have one limit, on the speed in the plane
    low: Array  # (…, 6) border or limit; -inf for none
    high: Array  # (…, 6)
    wrap: NDArray[np.bool_]  # (…, 6) fold as a torus instead of a mirror
    base: Array  # (…, 6) 0: the path is the parameter; otherwise the parameter is base · exp(path)
    rate: float = 1.0  # own time per step: the time scale
    knots: Knots | None = None  # where the sums of the accelerations have got to
    held: int = WINDOW  # intervals of all motions together whose accelerations are held at a time

    def __getitem__(self, item: Picked) -> Trajectory:
        """The motions that `item` picks from the leading axes."""
        push, knots = self.push, self.knots
        picked: dict[str, Any] = {name: getattr(self, name)[item] for name in _ARRAYS}
        return replace(
            self,
            **picked,
            push=None if push is None else lambda first, count: push(first, count)[item],
            knots=None if knots is None else knots[item],
        )

    @classmethod
    def joined(
        cls, motions: Sequence[Trajectory], rows: int, rate: float, push: Callable[[int, int], Array] | None
    ) -> Trajectory:
        """The motions of several actors, each with leading axis (rows,), as one with leading axes (rows, actors).

        They are not accelerated yet: `push` is what accelerates them all.
        """
        if not motions:
            return cls.at_rest(np.zeros((rows, 0, PARAMETER_COUNT))).scaled(rate)
        arrays: dict[str, Any] = {name: _beside([getattr(motion, name) for motion in motions]) for name in _ARRAYS}
        return cls(**arrays, push=push, rate=rate)

    @classmethod
    def at_rest(
        cls, start: Array, low: ArrayLike = -np.inf, high: ArrayLike = np.inf, wrap: ArrayLike = False
    ) -> Trajectory:
        """No motion: the parameters `start` (…, 6), folded at borders and limits."""
        none = np.zeros_like(start)
        unlimited = np.full_like(start, np.inf)
        low, high, wrap = (
            bound if isinstance(bound, np.ndarray) else np.full(start.shape, bound) for bound in (low, high, wrap)
        )
        return cls(start, none, None, unlimited, low, high, wrap, none)

    def scaled(self, factor: float) -> Trajectory:
        """A trajectory that runs along this path `factor` times as fast: T_s(t) = T(s · t)."""
        return replace(self, rate=self.rate * factor)

    def in_own_time(self) -> Trajectory:
        """A trajectory that runs along this path at its own speed."""
        return replace(self, rate=1.0)

    def unwrapped(self) -> Trajectory:
        """The motion on a plane in place of a torus: where it came back on the other side, it goes straight on."""
        low = np.where(self.wrap, -np.inf, self.low)
        high = np.where(self.wrap, np.inf, self.high)
        return replace(self, low=low, high=high)

    def resumed(self, begin: float, end: float) -> Trajectory:
        """This motion with its sums kept at `begin` (in steps), so that times up to `end` need no restart at 0."""
        low = math.floor(begin * self.rate)
        high = math.floor(end * self.rate) + 1
        return self._covering(low, min(high, low + self._window))

    def parameters(self, times: ArrayLike) -> Array:
        """(…, times, 3, 6): each parameter with its velocity and acceleration per step, at `times` in steps."""
        t = np.asarray(times, np.float64) * self.rate
        parts = [motion._parameters(t[part]) for part, motion in self._pieces(t)]
        result = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return np.moveaxis(result, -1, -3)

    def _parameters(self, t: Array) -> Array:
        """(…, 3, 6, t) at own times `t`."""
        result = np.empty((*self.start.shape[:-1], ORDERS, PARAMETER_COUNT, len(t)))
        low, high, wrap = self.low[..., None], self.high[..., None], self.wrap[..., None]
        u, speed, push = self._free_path(t)
        flip = flipped(u, speed, push, low, high, wrap)
        u = folded(u, low, high, wrap)
        if flip is not None:
            speed, push = np.where(flip, -speed, speed), np.where(flip, -push, push)
        values, speeds, pushes = (result[..., order, :, :] for order in range(ORDERS))
        values[:], speeds[:], pushes[:] = u, speed, push
        grows = self.base != 0
        if grows.any():
            u, speed, push = (part[grows] for part in (values, speeds, pushes))
            u = self.base[grows][:, None] * exactmath.exp(u)
            values[grows], speeds[grows], pushes[grows] = u, u * speed, u * (speed * speed + push)
        if self.rate != 1.0:
            speeds *= self.rate
            pushes *= self.rate * self.rate
        return result

    def _free_path(self, t: Array) -> tuple[Array, Array, Array]:
        """All parameters (…, 6, t), and their velocities and accelerations, at own times `t` before any border.

        These are (…, 6, 1) if nothing is accelerated.
        """
        u = self.start[..., None] + self.velocity[..., None] * t
        speed = self.velocity[..., None]
        push = np.zeros_like(speed)
        pushed = [i for i in range(PARAMETER_COUNT) if self._pushed(i)]
        if pushed:
            speed, push = np.broadcast_to(speed, u.shape).copy(), np.zeros_like(u)
        for i in pushed:
            u[..., i, :], speed[..., i, :], push[..., i, :] = self._free(i, t)
        return u, speed, push

    def entries(self, times: ArrayLike, send: Send | None = None) -> tuple[Any, ...]:
        """The entries of T that `affine` gives, each (…, times), or (…, 1) where it rests: what a picture needs.

        `times` are common to all motions, or have axes that broadcast against the leading ones, and one more.
        With `send` they are PyTorch tensors, with the same bits, and mostly worked out on the device.
        """
        t = np.asarray(times, np.float64) * self.rate
        pieces = list(self._pieces(t))
        if send is None:
            return affine(self._values(t, pieces))
        import torch

        start, speed, low, high, wrap, clock = send(self.start, self.velocity, self.low, self.high, self.wrap, t)
        values: list[Any] = []
        stays_inside = self._stays_inside(t)
        for i in range(PARAMETER_COUNT):
            if self.base[..., i].any() or any(motion._pushed(i) for _, motion in pieces):
                values += send(self._value(i, t, pieces))
                continue
            u = start[..., i, None]
            if self.velocity[..., i].any():
                u = u + speed[..., i, None] * clock
            if not stays_inside[i]:
                u = fold(torch, u, low[..., i, None], high[..., i, None], wrap[..., i, None])
            values.append(u)
        turned = self.start[..., ROTATION].any() or self.velocity[..., ROTATION].any()
        return affine(values, torch if turned or any(motion._pushed(ROTATION) for _, motion in pieces) else None)

    def _stays_inside(self, t: Array) -> list[bool]:
        """Whether each parameter, if nothing pushes it, is between its bounds at the times `t`.

        It then is at the first and at the last of them: rounding keeps the order of sums and products.
        """
        ends = [self.start + self.velocity * time for time in (t.min(), t.max())]
        inside = np.logical_and(*((self.low <= end) & (end < self.high) for end in ends))
        return [bool(inside[..., i].all()) for i in range(PARAMETER_COUNT)]

    def _values(self, t: Array, pieces: list[tuple[slice, Trajectory]]) -> list[Array]:
        """All parameters at own times `t`, each (…, times), or (…, 1) where it rests."""
        low, high, wrap = self.low[..., None], self.high[..., None], self.wrap[..., None]
        at_rest = folded(self.start[..., None], low, high, wrap)
        values = [at_rest[..., i, :] for i in range(PARAMETER_COUNT)]
        own = [i for i in range(PARAMETER_COUNT) if any(motion._pushed(i) for _, motion in pieces)]
        if self.base.any():
            own = sorted({*own, *PARAMETERS_OF["scale"]})
        moving = self.velocity.reshape(-1, PARAMETER_COUNT).any(axis=0)
        straight = [i for i in np.flatnonzero(moving).tolist() if i not in own]
        if straight:  # those between them are worked out, too: a slice costs nothing
            part = slice(straight[0], straight[-1] + 1)
            u = self.start[..., part, None] + self.velocity[..., part, None] * t[..., None, :]
            u = folded(u, low[..., part, :], high[..., part, :], wrap[..., part, :])
            for i in straight:
                values[i] = u[..., i - straight[0], :]
        for i in own:
            values[i] = self._value(i, t, pieces)
        return values

    def _value(self, i: int, t: Array, pieces: list[tuple[slice, Trajectory]]) -> Array:
        """Parameter i at own times `t`."""
        resting = not (self.velocity[..., i].any() or any(motion._pushed(i) for _, motion in pieces))
        paths = [motion._free(i, t[..., part])[0] for part, motion in pieces if not resting]
        u = np.concatenate(paths, axis=-1) if len(paths) > 1 else (paths or [self.start[..., i, None]])[0]
        u = folded(u, self.low[..., i, None], self.high[..., i, None], self.wrap[..., i, None])
        base = self.base[..., i, None]
        return np.where(base != 0, base * exactmath.exp(u), u) if base.any() else u

    def fastest(self, reach: Array, first: int, stop: int) -> Array:
        """(…, units), or (…, 1): on [k, k + 1) of own time, no point within `reach` (…) of a shape's origin is faster.

        In pixels per unit of own time, from bounds on each parameter: |v| + reach · (|rotation'| · S + S'), where S is
        the larger size plus |shear| · |scale y|, and S' a bound on its change. A bound on a parameter within a unit is
        its larger value at the unit's two ends plus half its largest speed.
        """
        units = np.arange(first, stop + 1, dtype=np.float64)
        pieces = list(self._pieces(units))
        speeds, sizes = [], []
        for i in range(PARAMETER_COUNT):
            ends = np.abs(self.velocity[..., i, None])
            if any(motion._pushed(i) for _, motion in pieces):
                ends = np.abs(np.concatenate([motion._free(i, units[part])[1] for part, motion in pieces], axis=-1))
            if i in (SCALE_X, SCALE_Y, SHEAR):
                values = np.abs(self._value(i, units, pieces))
                grows = self.base[..., i, None] != 0
                ends = np.where(grows, values * ends, ends) if grows.any() else ends
                sizes.append(_larger(values) + _larger(ends) * 0.5)
            speeds.append(_larger(ends))
        x, y, wide_1, high_1, turn, shear_1 = speeds
        wide, high, shear = sizes
        size = np.maximum(wide, high) + shear * high
        change = np.maximum(wide_1, high_1) + (shear_1 * high + shear * high_1)
        return np.sqrt(x * x + y * y) + reach[..., None] * (turn * size + change)

    def T(self, times: ArrayLike) -> Array:
        """(…, times, 3, 3): the transformation at `times`."""
        return from_entries(self.entries(times), (*self.start.shape[:-1], len(np.asarray(times))))

    def _pieces(self, t: Array) -> Iterator[tuple[slice, Trajectory]]:
        """Slices of own times `t`, each with this motion as it holds the accelerations for them."""
        if self.push is None or t.size == 0:
            yield slice(None), self
            return
        whole = np.floor(t).astype(np.int64).reshape(-1, t.shape[-1])
        motion = self
        begin = 0
        while begin < t.shape[-1]:
            rest = whole[:, begin:]
            low = int(rest.min())
            high = int(rest.max()) + 1
            if high - low > self._window:
                low = int(rest[:, 0].min())
                high = min(high, max(low + self._window, int(rest[:, 0].max()) + 1))
            motion = motion._covering(low, high)
            outside = np.flatnonzero(((rest < low) | (rest >= high)).any(axis=0))
            count = int(outside[0]) if len(outside) else rest.shape[1]
            yield slice(begin, begin + count), motion
            begin += count

    @property
    def _window(self) -> int:
        """Intervals to hold at a time."""
        fitting = max(64, self.held // max(1, math.prod(self.start.shape[:-1])))
        return min(fitting, LIMITED_WINDOW) if np.isfinite(self.speed_limit).any() else fitting

    def _covering(self, low: int, high: int) -> Trajectory:
        """This motion with knots for own times from `low` up to `high`, carried on from those it has."""
        if self.push is None:
            return self
        knots = self.knots
        if knots is None or low < knots.first:
            knots = self._from_zero(min(low, 0), max(0, min(high, self._window)))
        while knots.end < high:
            knots = self._carried_on(knots, min(max(low, knots.first), knots.end), min(high, knots.end + self._window))
        return self if knots is self.knots else replace(self, knots=knots)

    def _from_zero(self, low: int, high: int) -> Knots:
        """Knots from `low` to `high`, with 0 in between. Summed outwards, so that no bit depends on either."""
        assert self.push is not None
        a = self.push(low, high - low)
        zero = np.zeros(a.shape[:-1])
        after = self._summed(a[..., -low:], zero, zero, 1.0)
        before = self._summed(a[..., :-low][..., ::-1], zero, zero, -1.0)
        first = (0, 1, 1)  # 0 is in both halves of the sums
        halves = zip(before, after, first, strict=True)
        return Knots(low, *(np.concatenate([early[..., ::-1], late[..., k:]], axis=-1) for early, late, k in halves))

    def _carried_on(self, knots: Knots, low: int, high: int) -> Knots:
        """Knots from `low`, which is one of `knots`, to `high`, which is beyond their end."""
        assert self.push is not None
        late = self._summed(self.push(knots.end, high - knots.end), knots.gained[..., -1], knots.moved[..., -1], 1.0)
        kept = slice(low - knots.first, None)
        early = (knots.acceleration[..., kept], knots.gained[..., kept][..., :-1], knots.moved[..., kept][..., :-1])
        return Knots(low, *(np.concatenate(both, axis=-1) for both in zip(early, late, strict=True)))

    def _summed(self, a: Array, gained: Array, moved: Array, sign: float) -> tuple[Array, Array, Array]:
        """Accelerations in order of growing |t|, as the speed limits leave them, and the sums at each of their ends."""
        speeds = np.cumsum(np.concatenate([gained[..., None], sign * a], axis=-1), axis=-1)
        limited = np.isfinite(self.speed_limit)
        if limited.any():
            for k in range(a.shape[-1]):
                wanted = self.velocity + (speeds[..., k] + sign * a[..., k])
                allowed = slowed(wanted, self.speed_limit) - self.velocity
                speeds[..., k + 1] = np.where(limited, allowed, speeds[..., k + 1])
            a = np.where(limited[..., None], sign * np.diff(speeds, axis=-1), a)
        earlier = speeds[..., :-1] if sign > 0 else speeds[..., 1:]  # at the start of each interval
        ways = np.cumsum(np.concatenate([moved[..., None], sign * (earlier + a * 0.5)], axis=-1), axis=-1)
        return a, speeds, ways

    def _pushed(self, i: int) -> bool:
        """Whether parameter i is or has been accelerated where the knots are."""
        return self.knots is not None and self.knots.pushed[i]

    def _free(self, i: int, t: Array) -> tuple[Array, Array, Array]:
        """Parameter i and its velocity and acceleration, each (…, t), at own times `t` before any border."""
        velocity = self.velocity[..., i, None]
        u = self.start[..., i, None] + velocity * t
        knots = self.knots
        if knots is None or not self._pushed(i):
            return u, np.broadcast_to(velocity, u.shape), np.zeros_like(u)
        k = np.floor(t).astype(np.int64)
        since = t - k
        at = k - knots.first
        push, speed, way = (_taken(part[..., i, :], at) for part in (knots.acceleration, knots.gained, knots.moved))
        return u + (way + since * (speed + push * 0.5 * since)), velocity + (speed + push * since), push


def _beside(parts: list[Array]) -> Array:
    """(rows, parts, …) from arrays (rows, …)."""
    return np.stack(parts, axis=1) if len(parts) > 1 else parts[0][:, None]


def _larger(ends: Array) -> Array:
    """(…, units): the larger of the values at the two ends of each unit; (…, 1) stays as it is."""
    return ends if ends.shape[-1] == 1 else np.maximum(ends[..., :-1], ends[..., 1:])


def _taken(values: Array, at: NDArray[np.int64]) -> Array:
    """values[…, at] for numbers `at` that are common to all motions, or have axes of their own."""
    if at.ndim == 1:
        return values[..., at]
    return np.take_along_axis(values, np.broadcast_to(at, (*values.shape[:-1], at.shape[-1])), -1)


def slowed(speed: Array, limit: Array) -> Array:
    """Velocities (…, 6), none faster than its limit; x and y together keep their direction."""
    if (limit == np.inf).all():
        return speed
    x, y = speed[..., X], speed[..., Y]
    size = np.sqrt(x * x + y * y)
    fast = size > limit[..., X]
    result = np.clip(speed, -limit, limit)
    for i in (X, Y):
        result[..., i] = np.where(fast, speed[..., i] / np.where(fast, size, 1.0), speed[..., i])
        result[..., i] *= np.where(fast, limit[..., X], 1.0)
    return result

"""Motion as another camera sees it: a trajectory T and a moving affine map G in, the trajectory G(t)·T(t) out.

    G(t) p = A·p + b + v·t + a·t²/2

Points p are in pixels and t in steps. Maps of this kind form a group: one after the other, even at different speeds,
they are again a map of this kind.
The parameters of G·T are found without dividing by a size, so that a shape may pass through size 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.geometry import exactmath
from gerd.geometry.parameters import SCALE_X, X, Y
from gerd.geometry.trajectory import Send, Trajectory

Array = NDArray[np.float64]
Some = NDArray[np.floating[Any]]  # numbers of any precision
Pair = tuple[float, float]


@dataclass(frozen=True)
class MovingMap:
    """G, in plain numbers: A about the origin, b, v and a."""

    linear: tuple[Pair, Pair] = ((1.0, 0.0), (0.0, 1.0))
    shift: Pair = (0.0, 0.0)
    velocity: Pair = (0.0, 0.0)
    acceleration: Pair = (0.0, 0.0)

    @property
    def is_shift(self) -> bool:
        return self.linear == MovingMap.linear

    @property
    def is_steady(self) -> bool:
        """Whether G is the same at all times."""
        return not (any(self.velocity) or any(self.acceleration))

    @property
    def determinant(self) -> float:
        (a, b), (c, d) = self.linear
        return a * d - b * c

    def applied(self, point: tuple[Any, Any]) -> tuple[Any, Any]:
        """A·p for one point, or for arrays of x and y."""
        (a, b), (c, d) = self.linear
        return a * point[0] + b * point[1], c * point[0] + d * point[1]

    def about(self, point: Pair) -> MovingMap:
        """The map that does about `point` what this one does about the origin."""
        x, y = self.applied(point)
        return replace(self, shift=((point[0] - x) + self.shift[0], (point[1] - y) + self.shift[1]))

    def then(self, later: MovingMap, rate: float = 1.0) -> MovingMap:
        """This map, run `rate` times as fast, and `later` after it: later.G(t) · G(rate · t)."""
        columns = [later.applied(column) for column in zip(*self.linear, strict=True)]
        (a, c), (b, d) = columns
        moved = (
            _sum(later.applied(own), more, factor)
            for own, more, factor in (
                (self.shift, later.shift, 1.0),
                (self.velocity, later.velocity, rate),
                (self.acceleration, later.acceleration, rate * rate),
            )
        )
        return MovingMap(((a, b), (c, d)), *moved)

    def inverse(self, rate: float = 1.0) -> MovingMap:
        """The map that takes this one back at a speed of `rate`: `inverse(rate).then(self, rate)` changes nothing."""
        (a, b), (c, d) = self.linear
        size = self.determinant
        back = MovingMap(((d / size, -b / size), (-c / size, a / size)))
        factors = ((self.shift, 1.0), (self.velocity, rate), (self.acceleration, rate * rate))
        moved = (_sum(back.applied(part), (0.0, 0.0), -1.0 / factor) for part, factor in factors)
        return MovingMap(back.linear, *moved)

    def moved(self, times: ArrayLike) -> Array:
        """(…, 2) for times (…): the part of G that does not depend on the point."""
        t = np.asarray(times, np.float64)[..., None]
        return np.array(self.shift) + t * (np.array(self.velocity) + np.array(self.acceleration) * (t * 0.5))

    def takes(self, x: Some, y: Some, times: Some) -> tuple[Array, Array]:
        """Where it takes points, each at a time of its own."""
        right, down = self.applied((x, y))
        shift = self.moved(times)
        return right + shift[..., 0], down + shift[..., 1]

    def G(self, times: ArrayLike) -> Array:
        """(times, 3, 3)."""
        result = np.zeros((len(np.asarray(times)), 3, 3))
        result[:, :2, :2] = self.linear
        result[:, :2, 2] = self.moved(times)
        result[:, 2, 2] = 1.0
        return result


def _sum(own: Pair, more: Pair, factor: float) -> Pair:
    return own[0] * factor + more[0], own[1] * factor + more[1]


UNMOVED = MovingMap()


@dataclass(frozen=True)
class Seen(Trajectory):
    """The motion G(t)·T(t): borders and limits are seen through G, too."""

    through: MovingMap = UNMOVED

    @classmethod
    def of(cls, motion: Trajectory, through: MovingMap) -> Seen:
        if isinstance(motion, Seen):
            return replace(motion, through=motion.through.then(through))
        return cls(**{field.name: getattr(motion, field.name) for field in fields(Trajectory)}, through=through)

    def scaled(self, factor: float) -> Seen:
        return replace(self, rate=self.rate * factor, through=self.through.then(UNMOVED, factor))

    def in_own_time(self) -> Seen:
        return replace(self, rate=1.0, through=self.through.then(UNMOVED, 1.0 / self.rate))

    def entries(self, times: ArrayLike, send: Send | None = None) -> tuple[Any, ...]:
        a, b, x, c, d, y = super().entries(times, send)
        right, down = np.ascontiguousarray(np.moveaxis(self.through.moved(times), -1, 0))
        if send is not None:
            right, down = send(right, down)
        if self.through.is_shift:
            return a, b, x + right, c, d, y + down
        (a, c), (b, d), (x, y) = (self.through.applied(column) for column in ((a, c), (b, d), (x, y)))
        return a, b, x + right, c, d, y + down

    def fastest(self, reach: Array, first: int, stop: int) -> Array:
        (a, b), (c, d) = self.through.linear
        square = a * a + b * b + c * c + d * d
        area = self.through.determinant
        stretch = math.sqrt((square + math.sqrt(max(square * square - 4 * area * area, 0.0))) / 2)  # of A, at most
        units = np.arange(first, stop + 1, dtype=np.float64)[:, None]
        drift = np.array(self.through.velocity) + np.array(self.through.acceleration) * units
        ends = np.sqrt(drift[:, 0] * drift[:, 0] + drift[:, 1] * drift[:, 1])
        return stretch * super().fastest(reach, first, stop) + np.maximum(ends[:-1], ends[1:])

    def parameters(self, times: ArrayLike) -> Array:
        result = super().parameters(times)
        through = self.through
        t = np.asarray(times, np.float64)[:, None]
        speed = np.array(through.velocity)
        push = np.array(through.acceleration)
        drift = np.stack([through.moved(times), speed + push * t, push + 0.0 * t], axis=-2)
        if not through.is_shift:
            result[..., X], result[..., Y] = through.applied((result[..., X], result[..., Y]))
            result[..., SCALE_X:] = _but_position(through, result[..., SCALE_X:])
        result[..., :SCALE_X] += drift
        return result


def _but_position(through: MovingMap, own: Array) -> Array:
    """(…, 3, 4): scale x, scale y, rotation and shear of A·Rotate·Shear·Scale, and their derivatives.

    `own` has those of Rotate·Shear·Scale in the same order.

    A = Rotate·P·M, with P symmetric and positive and M a mirror (y to -y) or nothing. M passes Rotate and Shear, whose
    signs it changes, and ends in the scale of y. P·Rotate is again a rotation and a triangle ((α, ε), (0, β)).
    """
    (a, b), (c, d) = through.linear
    sign = 1.0 if through.determinant > 0 else -1.0
    b, d = b * sign, d * sign
    turn = exactmath.angle(a + d, c - b)
    sin, cos = (float(part) for part in exactmath.sincos(turn))
    P = MovingMap(((cos * a + sin * c, cos * b + sin * d), (cos * c - sin * a, cos * d - sin * b)))
    size_x = own[..., 0]
    size_y = own[..., 1] * sign
    angle = own[..., 2] * sign
    shear = own[..., 3] * sign
    sine, cosine = exactmath.sincos(angle[..., 0])
    x, y = P.applied((cosine, sine))
    x_, y_ = P.applied((-sine, cosine))  # the derivatives of x and y by the angle
    area = P.determinant
    α = np.sqrt(x * x + y * y)
    ε = (x * x_ + y * y_) / α
    β = area / α
    lean = ε / α
    ratio = β / α
    excess = β * β - α * α
    turned = turn + (angle[..., 0] + exactmath.angle(cosine * x + sine * y, cosine * y - sine * x))
    # each with its first and second derivative by the angle
    stretch_x = _in_time(angle, α, ε, excess / α)
    stretch_y = _in_time(angle, β, -β * lean, β * (2 * lean * lean - excess / (α * α)))
    rotation = _in_time(angle, turned, ratio, -2 * ratio * lean)
    stretch = _in_time(angle, α * α / area, 2 * α * ε / area, 2 * (excess + ε * ε) / area)
    slant = _in_time(angle, ε / β, (excess + ε * ε) / area, -4 * α * ε / area)
    new = _times(stretch_x, size_x), _times(stretch_y, size_y), rotation, _times(stretch, shear) + slant
    return np.stack(new, axis=-1)


def _in_time(angle: Array, value: Array, first: Array, second: Array) -> Array:
    """(…, 3): a function of the angle with its derivatives in time, by the chain rule from those by the angle."""
    speed, push = angle[..., 1], angle[..., 2]
    return np.stack([value, first * speed, second * (speed * speed) + first * push], axis=-1)


def _times(f: Array, g: Array) -> Array:
    """(…, 3): the product f · g with its first and second derivative."""
    return np.stack(
        [
            f[..., 0] * g[..., 0],
            f[..., 1] * g[..., 0] + f[..., 0] * g[..., 1],
            f[..., 2] * g[..., 0] + 2 * f[..., 1] * g[..., 1] + f[..., 0] * g[..., 2],
        ],
        axis=-1,
    )

"""An event camera in continuous time, written from the model alone: exact areas in, passages of the threshold out.

The area that a shape covers of a pixel is a mixed difference of Q(x, y), the shape's area left of x and above y, which
has a closed form for polygons (a sum over sides) and for ellipses with upright axes. Nothing here imports `gerd`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

Array = np.ndarray
Area = Callable[[float], Array]  # time in steps → (height, width) covered shares


def below_side(top: Array, x: Array, y: Array) -> Array:
    """∫ min(X(Y), x) dY along a side ((x0, y0), (x1, y1)), over its part with Y <= y; signed by its direction."""
    (x0, y0), (x1, y1) = top
    if y0 == y1:
        return np.zeros(np.broadcast_shapes(x.shape, y.shape))
    sign = 1.0
    if y0 > y1:
        x0, y0, x1, y1, sign = x1, y1, x0, y0, -1.0
    end = np.clip(y, y0, y1)
    slope = (x1 - x0) / (y1 - y0)
    at_end = x0 + slope * (end - y0)
    if slope == 0:
        return sign * np.minimum(x0, x) * (end - y0)
    meets = np.clip(y0 + (x - x0) / slope, y0, end)  # where the side passes x
    first, last = (x0 + slope * (meets - y0) + x0) / 2 * (meets - y0), (at_end + x0 + slope * (meets - y0)) / 2
    if slope > 0:  # left of x before it meets it
        return sign * (first + x * (end - meets))
    return sign * (x * (meets - y0) + last * (end - meets))


def polygon_area(points: Array, height: int, width: int) -> Array:
    """(height, width): the share of each pixel that a polygon covers."""
    x, y = np.arange(width + 1.0)[None, :], np.arange(height + 1.0)[:, None]
    total = sum(below_side(np.stack([a, b]), x, y) for a, b in zip(points, np.roll(points, -1, axis=0), strict=True))
    return np.abs(np.diff(np.diff(total, axis=0), axis=1))


def disk_quadrant(p: Array, q: Array) -> Array:
    """The area of the unit disk with X <= p and Y <= q."""
    p, q = np.clip(p, -1, 1), np.clip(q, -1, 1)

    def cap(y: Array) -> Array:  # ∫ sqrt(1 - Y²) dY from -1 to y
        return (y * np.sqrt(1 - y * y) + np.arcsin(y) + np.pi / 2) / 2

    edge = np.sqrt(1 - p * p)  # the vertical line at p meets the circle at Y = ∓ edge
    low, high = np.minimum(q, -edge), np.clip(q, -edge, edge)
    rest = np.maximum(q, edge)
    between = p * (high + edge) + (cap(high) - cap(-edge))
    outside = 2 * cap(low) + 2 * (cap(rest) - cap(edge))  # whole chords, if p is right of the centre
    return np.where(p >= 0, outside + between, between)


def ellipse_area(centre: tuple[float, float], radii: tuple[float, float], height: int, width: int) -> Array:
    """(height, width): the share of each pixel that an upright ellipse covers."""
    p = (np.arange(width + 1.0)[None, :] - centre[0]) / radii[0]
    q = (np.arange(height + 1.0)[:, None] - centre[1]) / radii[1]
    return np.diff(np.diff(disk_quadrant(p, q), axis=0), axis=1) * radii[0] * radii[1]


def passages(
    area: Area, begin: float, end: float, interval: float, threshold: float, state: float
) -> dict[tuple[int, int], list[tuple[float, int]]]:
    """The events of each pixel (y, x) as (time in steps, polarity), for a camera that starts at `begin`.

    `state` is that of all integrators at the start, in covered shares. Between samples, `interval` apart, an area is
    taken as linear, which is a small error for a small interval.
    """
    moments = np.linspace(begin, end, int(np.ceil((end - begin) / interval)) + 1)
    before = area(moments[0])
    level = np.full(before.shape, state)  # what an integrator holds
    events: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for early, late in pairwise(moments):
        after = area(late)
        change = after - before
        reach = np.abs(level + change) >= threshold
        for y, x in zip(*np.nonzero(reach), strict=True):
            v, move = level[y, x], change[y, x]
            up = 1 if move > 0 else -1
            passed = 0.0
            while (v + (move - passed)) * up >= threshold:
                passed += up * threshold - v
                v = 0.0
                events.setdefault((int(y), int(x)), []).append((early + (late - early) * passed / move, int(up > 0)))
            level[y, x] = v + (move - passed)
        level = np.where(reach, level, level + change)
        before = after
    return events

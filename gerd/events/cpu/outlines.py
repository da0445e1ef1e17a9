"""Outlines at one instant, on the CPU: maps T and shapes in their unit frame in, what sub-rows can cross out.

These are the rules `_sides` and `_ellipse` of `rasterise.py`, with the same bits. Most of an outline with very many
sides lies between the centres of two sub-rows, and no sub-row crosses it: such sides cost the place of their ends,
which is found for many sides in one vector loop, and nothing else.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import numpy as np

from gerd.events.compiled import apart, compiled, inlined
from gerd.geometry.shapes import RADIUS

LANES = 8  # numbers that vector instructions take together; arrays have room for as many more
AT_ONCE = 256  # sides whose ends are placed together
NONE = np.uint64(0)

Ellipse = namedtuple("Ellipse", "centre_y reach centre_x tilt width")  # as in `rasterise.py`
# Room for the sides of one piece that sub-rows cross: each crosses the sub-rows begin … end - 1, at
# x_top + (y - top) · slope. And for those that are placed together: heights of both ends (2, AT_ONCE), the first
# sub-rows at or below them, and the numbers of those that are crossed.
Sides = namedtuple("Sides", "begin end top bottom x_top slope heights rows crossed")


@inlined
def row_at(y, most):
    """The first sub-row whose centre is at or below y, clipped to 0 … most."""
    return np.int64(min(max(np.ceil(y - 0.5), 0.0), most))


@inlined
def vector_range(low, high):
    """range(high - low), and on to a multiple of LANES: so there is no rest that vector instructions would leave."""
    return range(NONE, np.uint64((high - low + LANES - 1) // LANES * LANES))


@inlined
def in_sub_pixels(T, right, down, f):
    """The entries of T in sub-pixels, for a copy of its actor that lies so many pixels right and down of it."""
    return T[0] * f, T[1] * f, (T[2] + right) * f, T[3] * f, T[4] * f, (T[5] + down) * f


@inlined
def placed_ellipse(T, is_there):
    """The circle under T, if it is there."""
    a, b, x, c, d, y = T
    spread = c * c + d * d
    safe = spread if spread > 0 else 1.0
    reach = RADIUS * RADIUS * spread if is_there else 0.0
    return Ellipse(y, reach, x, (a * c + b * d) / safe, abs(a * d - b * c) / safe)


@compiled
def place_sides(first, stop, unit, T, most, sides):
    """Put the sides first … stop - 1 that sub-rows cross, as T places them, into `sides`; how many they are.

    unit: (4, …): x and y of both ends of each side in the unit frame.
    """
    number = 0
    for start in range(first, stop, AT_ONCE):
        end = min(start + AT_ONCE, stop)
        for which in range(2):
            heights, rows = sides.heights[which], sides.rows[which]
            place(unit[2 * which], unit[2 * which + 1], start, end, T[3:], heights)
            find_rows(heights, end - start, float(most), rows)
        crossed = list_crossed(sides.rows[0], sides.rows[1], end - start, sides.crossed)
        for i in range(crossed):
            put_side(sides.crossed[i], start, unit, T, sides, number + i)
        number += crossed
    return number


@apart
def place(across, down, begin, end, line, placed):
    """One coordinate of the points begin … end - 1, which lie at `across` and `down` in the unit frame."""
    p, q, shift = line
    for i in vector_range(begin, end):
        at = np.uint64(begin) + i
        placed[i] = (p * across[at] + q * down[at]) + shift


@apart
def find_rows(heights, number, most, rows):
    """`row_at` of each height."""
    for i in vector_range(0, number):
        rows[i] = np.int32(min(max(np.ceil(heights[i] - 0.5), 0.0), most))


@compiled
def list_crossed(rows_0, rows_1, number, crossed):
    """Put the numbers of the sides between whose ends there is a sub-row into `crossed`; how many they are."""
    found = NONE
    for i in range(np.uint64(number)):
        crossed[found] = np.int32(i)
        found += np.uint64(rows_0[i] != rows_1[i])
    return np.int64(found)


@inlined
def put_side(which, start, unit, T, sides, number):
    """Put one of the sides that are placed into `sides`."""
    a, b, x = T[0], T[1], T[2]
    at = start + which
    y0, y1 = sides.heights[0, which], sides.heights[1, which]
    x0, x1 = (a * unit[0, at] + b * unit[1, at]) + x, (a * unit[2, at] + b * unit[3, at]) + x
    row_0, row_1 = sides.rows[0, which], sides.rows[1, which]
    upward = y0 > y1
    top, bottom = (y1, y0) if upward else (y0, y1)
    x_top, x_bottom = (x1, x0) if upward else (x0, x1)
    sides.begin[number], sides.end[number] = min(row_0, row_1), max(row_0, row_1)
    sides.top[number], sides.bottom[number], sides.x_top[number] = top, bottom, x_top
    sides.slope[number] = (x_bottom - x_top) / (bottom - top)

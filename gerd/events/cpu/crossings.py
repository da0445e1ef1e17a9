"""What all compiled parts of the `cpu` backend share, and where sub-rows cross outlines.

A recording goes from frame to frame at a cost that follows what changes: the crossings of every sub-row are found here,
compared with those of the frame before in `changes.py`, and the pixels between them fire in `steps.py` or
`instants.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

import math

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.arguments import (
    Chance,
    Changes,
    Crossings,
    Draws,
    Model,
    Noise,
    Pieces,
    Pixels,
    Room,
    Scene,
    Scratch,
    Sensor,
    Sums,
)
from gerd.events.cpu.rules import ONE, column, crossing_of_side, crossings_of_ellipse

ABSENT = np.int32(2**30)  # in place of a crossing that is not there
NEAR = 4  # pixels
LANES = 8  # rows that vector instructions take together; arrays of rows have room for as many more
BIAS = 2**30  # integrators are kept with this added, so that 0 means: not touched yet

ZERO = np.int64(0)
NOTHING, NONE, ALL = np.int32(0), np.uint64(0), np.uint64(2**64 - 1)
WORD_BITS, WORD_SHIFT, WORD_MASK = 64, np.uint64(6), np.uint64(63)  # pixels in a word of `touched`
DE_BRUIJN, WINDOW = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)  # each window of the upper 6 bits is another number
BIT_NUMBERS = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_NUMBERS[((1 << _bit) * int(DE_BRUIJN) & (2**64 - 1)) >> int(WINDOW)] = _bit


@inlined
def named(scene, old, new, pixels, changes, draws, scratch, room):
    """What a recording goes through the kernels with: plain tuples, as `compiled.py` hands them over, with names."""
    sensor, pieces, model, noise, chance = scene
    nearer, seen_before, seen_after, cover_before, cover_after, lists, sums = scratch
    return (
        Scene(Sensor(*sensor), Pieces(*pieces), Model(*model), Noise(*noise), Chance(*chance)),
        Crossings(*old), Crossings(*new), Pixels(*pixels), Changes(*changes), Draws(*draws),
        Scratch(nearer, seen_before, seen_after, Crossings(*cover_before), Crossings(*cover_after), lists, Sums(*sums)),
        Room(*room),
    )  # fmt: skip


@inlined
def touch(touched, y, x):
    touched[y, np.uint64(x) >> WORD_SHIFT] |= ONE << (np.uint64(x) & WORD_MASK)


@inlined
def touch_range(touched, y, left, right):
    """Touch the pixels left … right of a row."""
    first, last = left // WORD_BITS, right // WORD_BITS
    from_left, up_to_right = ALL << (np.uint64(left) & WORD_MASK), ALL >> (WORD_MASK - (np.uint64(right) & WORD_MASK))
    if first == last:
        touched[y, first] |= from_left & up_to_right
    else:
        touched[y, first] |= from_left
        for word in range(first + 1, last):
            touched[y, word] = ALL
        touched[y, last] |= up_to_right


@inlined
def bit_number(bit):
    """Which bit of a word with one bit set it is."""
    return BIT_NUMBERS[(bit * DE_BRUIJN) >> WINDOW]


@inlined
def row_at(y, most):
    """The first sub-row whose centre is at or below y, clipped to 0 … most."""
    return np.int64(min(max(np.ceil(y - 0.5), 0.0), most))


@inlined
def unsigned_range(low, high):
    """range(low, high) of numbers that are not negative: as unsigned ones, arrays take them without a test."""
    return range(np.uint64(low), np.uint64(max(low, high)))


@inlined
def vector_range(low, high):
    """range(high - low), and on to a multiple of LANES: so there is no rest that vector instructions would leave."""
    return range(NONE, np.uint64((high - low + LANES - 1) // LANES * LANES))


@inlined
def centre(s, y, f):
    """The height of the middle of sub-row s of pixel row y, in sub-pixels."""
    return (s + 0.5) + float(np.int32(y)) * f


@inlined
def hull(low, high, other_low, other_high):
    """The rows from the first to the last of two ranges, either of which may be empty."""
    if low >= high:
        return other_low, other_high
    if other_low >= other_high:
        return low, high
    return min(low, other_low), max(high, other_high)


@inlined
def rows_of(piece, old, new):
    """The pixel rows that a piece meets in one of two frames."""
    return hull(old.low[piece], old.high[piece], new.low[piece], new.high[piece])


@inlined
def columns_of(piece, old, new):
    """The columns, in sub-pixels, that a piece meets in one of two frames: the first, and the end."""
    return min(old.left[piece], new.left[piece]), max(old.right[piece], new.right[piece])


@compiled
def find_crossings(pieces, coefficients, sensor, frame):
    """The crossings of each piece in ascending order: cols[slot, s, y] for sub-row s of the pixel rows low … high - 1.

    A piece has two slots if it is convex, otherwise as many as sides: those not used repeat the last crossing, and all
    are ABSENT in a sub-row that the piece does not cross; none is in the rows whole_low … whole_high - 1. Loops along y
    are written so that they can be compiled to vector instructions: few arrays in each.
    """
    f, rows, right = sensor.f, sensor.height * sensor.f, float(sensor.width * sensor.f)
    for piece in range(len(pieces.is_ellipse)):
        sides = coefficients[pieces.first[piece] : pieces.first[piece + 1]]
        cols = frame.cols[pieces.slot[piece] : pieces.slot[piece + 1]]
        begins, ends = cols[0], cols[len(cols) - 1]
        top, bottom = pixel_rows(sides, pieces.is_ellipse[piece], rows, f)
        if pieces.is_ellipse[piece]:
            cross_ellipse(sides[0], f, right, top, bottom, begins, ends)
        elif pieces.convex[piece]:
            cross_convex(sides, f, rows, right, top, bottom, begins, ends)
        else:
            cross_any(sides, f, rows, right, top, bottom, cols)
        frame.low[piece], frame.high[piece] = top, bottom
        frame.left[piece], frame.right[piece] = extent_of(begins, ends, top, bottom)
        while top < bottom and (not pieces.convex[piece] or any_absent(begins, top)):
            top += 1
        while top < bottom and any_absent(begins, bottom - 1):
            bottom -= 1
        frame.whole_low[piece], frame.whole_high[piece] = top, bottom


@inlined
def pixel_rows(sides, is_ellipse, rows, f):
    """The pixel rows that a piece can meet, as first and end."""
    begin, end = rows, ZERO
    if is_ellipse:
        extent = math.sqrt(sides[0, 1])
        begin, end = row_at(sides[0, 0] - extent - 1.0, rows), row_at(sides[0, 0] + extent + 1.0, rows)
    else:
        for side in range(len(sides)):
            begin, end = min(begin, row_at(sides[side, 0], rows)), max(end, row_at(sides[side, 1], rows))
    return begin // f, max(begin // f, (end + f - 1) // f)


@compiled
def any_absent(begins, y):
    absent = False
    for s in range(len(begins)):
        absent |= begins[s, y] == ABSENT
    return absent


@compiled
def extent_of(begins, ends, low, high):
    """The first column of some rows and the last; ABSENT and -1 if there is none."""
    left, right = ABSENT, np.int32(-1)
    for s in range(len(begins)):
        for y in unsigned_range(low, high):
            left = min(left, begins[s, y])
        for y in unsigned_range(low, high):
            right = max(right, ends[s, y] if ends[s, y] != ABSENT else np.int32(-1))
    return left, right


@compiled
def cross_ellipse(ellipse, f, right, low, high, begins, ends):
    centre_y, reach, centre_x, tilt, width = ellipse[0], ellipse[1], ellipse[2], ellipse[3], ellipse[4]
    for s in range(f):
        for y in unsigned_range(low, high):
            enters, leaves, crosses = crossings_of_ellipse(centre(s, y, f), centre_y, reach, centre_x, tilt, width)
            begins[s, y] = column(enters, right) if crosses else ABSENT
            ends[s, y] = column(leaves, right) if crosses else ABSENT


@compiled
def cross_convex(sides, f, rows, right, low, high, begins, ends):
    """Each side is asked in the sub-rows between its ends only: it crosses all of them and no others."""
    for s in range(f):
        for y in unsigned_range(low, high):
            begins[s, y] = ABSENT
        for y in unsigned_range(low, high):
            ends[s, y] = -1
    for side in range(len(sides)):
        top, bottom, x_top, slope = sides[side, 0], sides[side, 1], sides[side, 2], sides[side, 3]
        begin, end = row_at(top, rows), row_at(bottom, rows)
        for s in range(f):
            for y in unsigned_range(max(0, begin - s + f - 1) // f, max(0, end - s + f - 1) // f):
                x, _ = crossing_of_side(centre(s, y, f), top, bottom, x_top, slope)
                crossing = column(x, right)
                begins[s, y], ends[s, y] = min(begins[s, y], crossing), max(ends[s, y], crossing)
    for s in range(f):
        for y in unsigned_range(low, high):
            ends[s, y] = ends[s, y] if ends[s, y] >= 0 else ABSENT


@compiled
def cross_any(sides, f, rows, right, low, high, cols):
    for k in range(len(cols)):
        for s in range(f):
            for y in unsigned_range(low, high):
                cols[k, s, y] = ABSENT
    for side in range(len(sides)):
        top, bottom, x_top, slope = sides[side, 0], sides[side, 1], sides[side, 2], sides[side, 3]
        for r in range(row_at(top, rows), row_at(bottom, rows)):
            x, _ = crossing_of_side(r + 0.5, top, bottom, x_top, slope)
            insert(cols, r // f, r % f, column(x, right))
    for k in range(1, len(cols)):
        for s in range(f):
            for y in range(low, high):
                if cols[k, s, y] == ABSENT:
                    cols[k, s, y] = cols[k - 1, s, y]


@inlined
def insert(cols, y, s, crossing):
    """Put a crossing among those of its sub-row, in ascending order."""
    k = 0
    while cols[k, s, y] != ABSENT:
        k += 1
    while k > 0 and cols[k - 1, s, y] > crossing:
        cols[k, s, y] = cols[k - 1, s, y]
        k -= 1
    cols[k, s, y] = crossing

"""What all compiled parts of the `cpu` backend share, and where sub-rows cross outlines.

A recording goes from frame to frame at a cost that follows what changes: the crossings of every sub-row are found here,
compared with those of the frame before in `changes.py`, and the pixels between them fire in `steps.py` or
`instants.py`. However many sides an outline has, each is asked only in the sub-rows that it crosses.
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
from gerd.events.cpu.outlines import Sides, in_sub_pixels, place_sides, placed_ellipse, row_at
from gerd.events.cpu.rules import ONE, column, crossing_of_side, crossings_of_ellipse

ABSENT = np.int32(2**30)  # in place of a crossing that is not there
NEAR = 4  # pixels
SHORT = 4  # pixel rows: a side that crosses fewer of them is followed sub-row by sub-row
BIAS = 2**30  # integrators are kept with this added, so that 0 means: not touched yet

GAPS = (1968, 861, 336, 112, 48, 21, 7, 3, 1)  # widths of the steps in which many columns are sorted

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
    nearer, seen_before, seen_after, cover_before, cover_after, lists, sums, sides = scratch
    return (
        Scene(Sensor(*sensor), Pieces(*pieces), Model(*model), Noise(*noise), Chance(*chance)),
        Crossings(*old), Crossings(*new), Pixels(*pixels), Changes(*changes), Draws(*draws),
        Scratch(
            nearer, seen_before, seen_after, Crossings(*cover_before), Crossings(*cover_after), lists, Sums(*sums),
            Sides(*sides),
        ),
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
def unsigned_range(low, high):
    """range(low, high) of numbers that are not negative: as unsigned ones, arrays take them without a test."""
    return range(np.uint64(low), np.uint64(max(low, high)))


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


@inlined
def find_crossings(maps, pieces, sensor, sides, frame):
    """The crossings of each piece in ascending order, from T of each actor (actors, 6).

    Those of a convex piece are cols[slot, s, y] and cols[slot + 1, s, y] for sub-row s of the pixel rows low …
    high - 1: ABSENT where it is not crossed, which is so in none of the rows whole_low … whole_high - 1. Those of any
    other, number n = `listed`, are columns[first[n, r]] … columns[first[n, r + 1] - 1] for sub-row r of all rows.
    """
    f, rows, right, listed = sensor.f, sensor.height * sensor.f, float(sensor.width * sensor.f), ZERO
    for piece in range(len(pieces.convex)):
        T = in_sub_pixels(maps[pieces.actor[piece]], pieces.offset[piece, 0], pieces.offset[piece, 1], f)
        begin, end = pieces.first[piece], pieces.end[piece]
        top, bottom, number = ZERO, ZERO, ZERO
        if pieces.is_ellipse[piece]:
            ellipse = placed_ellipse(T, begin < end)
            extent = math.sqrt(ellipse.reach)
            top, bottom = row_at(ellipse.centre_y - extent - 1.0, rows), row_at(ellipse.centre_y + extent + 1.0, rows)
        else:
            number = place_sides(begin, end, pieces.unit, T, rows, sides)
            top, bottom = rows_of_sides(number, sides)
        top, bottom = top // f, (bottom + f - 1) // f
        frame.low[piece], frame.high[piece] = top, bottom
        if pieces.convex[piece]:
            begins, ends = frame.cols[pieces.slot[piece]], frame.cols[pieces.slot[piece] + 1]
            if pieces.is_ellipse[piece]:
                cross_ellipse(ellipse, f, right, top, bottom, begins, ends)
            else:
                cross_convex(number, sides, f, right, top, bottom, begins, ends)
            frame.left[piece], frame.right[piece] = extent_of(begins, ends, top, bottom)
            while top < bottom and any_absent(begins, top):
                top += 1
            while top < bottom and any_absent(begins, bottom - 1):
                bottom -= 1
        else:
            first = frame.first[pieces.listed[piece]]
            listed = list_crossings(number, sides, top * f, bottom * f, right, listed, first, frame.columns)
            frame.left[piece], frame.right[piece] = extent_of_lists(first, frame.columns, top * f, bottom * f)
            bottom = top
        frame.whole_low[piece], frame.whole_high[piece] = top, bottom


@inlined
def rows_of_sides(number, sides):
    """The sub-rows that some sides cross, as first and end; 0 and 0 if there is none."""
    begin, end = np.int32(ABSENT if number > 0 else 0), NOTHING
    for i in unsigned_range(ZERO, number):
        begin, end = min(begin, sides.begin[i]), max(end, sides.end[i])
    return np.int64(begin), np.int64(end)


@inlined
def crossings_at(piece, y, s, frame, pieces, pair):
    """The columns at which sub-row s of pixel row y crosses a piece, in ascending order. `pair` is room for two."""
    number = 0
    if frame.low[piece] <= y < frame.high[piece]:
        if not pieces.convex[piece]:
            first, r = frame.first[pieces.listed[piece]], y * np.int64(frame.cols.shape[1]) + s
            return frame.columns[first[r] : first[r + 1]]
        pair[0], pair[1] = frame.cols[pieces.slot[piece], s, y], frame.cols[pieces.slot[piece] + 1, s, y]
        number = 2 if pair[0] < pair[1] else 0  # both are ABSENT if one is
    return pair[:number]


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
def extent_of_lists(first, columns, low, high):
    """`extent_of` of the sub-rows low … high - 1 of a piece that is not convex."""
    left, right = ABSENT, np.int32(-1)
    for r in unsigned_range(low, high):
        begin, end = np.uint64(first[r]), np.uint64(first[r + ONE])
        if begin < end:
            left, right = min(left, columns[begin]), max(right, columns[end - ONE])
    return left, right


@compiled
def cross_ellipse(ellipse, f, right, low, high, begins, ends):
    centre_y, reach, centre_x, tilt, width = ellipse
    for s in range(f):
        for y in unsigned_range(low, high):
            enters, leaves, crosses = crossings_of_ellipse(centre(s, y, f), centre_y, reach, centre_x, tilt, width)
            begins[s, y] = column(enters, right) if crosses else ABSENT
            ends[s, y] = column(leaves, right) if crosses else ABSENT


@compiled
def cross_convex(number, sides, f, right, low, high, begins, ends):
    for s in range(f):
        for y in unsigned_range(low, high):
            begins[s, y] = ABSENT
        for y in unsigned_range(low, high):
            ends[s, y] = -1
    for i in range(number):
        begin, end = np.int64(sides.begin[i]), np.int64(sides.end[i])
        if end - begin < SHORT * f:
            follow(i, sides, f, right, begins, ends)
            continue
        top, bottom, x_top, slope = sides.top[i], sides.bottom[i], sides.x_top[i], sides.slope[i]
        for s in range(f):
            for y in unsigned_range(max(0, begin - s + f - 1) // f, max(0, end - s + f - 1) // f):
                x, _ = crossing_of_side(centre(s, y, f), top, bottom, x_top, slope)
                crossing = column(x, right)
                begins[s, y], ends[s, y] = min(begins[s, y], crossing), max(ends[s, y], crossing)
    for s in range(f):
        for y in unsigned_range(low, high):
            ends[s, y] = ends[s, y] if ends[s, y] >= 0 else ABSENT


@inlined
def follow(i, sides, f, right, begins, ends):
    """Cross a side of a convex piece with one sub-row after the other."""
    y, s = np.int64(sides.begin[i]) // f, np.int64(sides.begin[i]) % f
    for r in range(sides.begin[i], sides.end[i]):
        x, _ = crossing_of_side(r + 0.5, sides.top[i], sides.bottom[i], sides.x_top[i], sides.slope[i])
        crossing = column(x, right)
        begins[s, y], ends[s, y] = min(begins[s, y], crossing), max(ends[s, y], crossing)
        s += 1
        if s == f:
            y, s = y + 1, ZERO


@compiled
def list_crossings(number, sides, low, high, right, start, first, columns):
    """List the crossings of the sub-rows low … high - 1 in `columns`, from `start` on; the end of the lists.

    `first` counts sides that begin or end at a sub-row, then has the end of each list, from where it is filled.
    """
    for r in unsigned_range(low, high + 1):
        first[r] = 0
    for i in unsigned_range(ZERO, number):
        first[np.uint64(sides.begin[i])] += 1
        first[np.uint64(sides.end[i])] -= 1
    crossing, end = ZERO, start
    for r in unsigned_range(low, high + 1):
        crossing += first[r]
        end += crossing
        first[r] = end
    for i in unsigned_range(ZERO, number):
        top, bottom, x_top, slope = sides.top[i], sides.bottom[i], sides.x_top[i], sides.slope[i]
        for r in range(np.uint64(sides.begin[i]), np.uint64(sides.end[i])):
            x, _ = crossing_of_side(float(np.int64(r)) + 0.5, top, bottom, x_top, slope)
            first[r] -= 1
            columns[np.uint64(first[r])] = column(x, right)
    for r in unsigned_range(low, high):
        sort_columns(columns, np.uint64(first[r]), np.uint64(first[r + ONE]))
    return end


@inlined
def put_in_order(columns, one, other):
    """Exchange two columns if the second is the less."""
    low, high = min(columns[one], columns[other]), max(columns[one], columns[other])
    columns[one], columns[other] = low, high


@inlined
def sort_columns(columns, begin, end):
    """Sort columns[begin:end]: 2 or 4 of them, as most often, without a branch, and many in steps of several widths."""
    if end - begin == 2:
        put_in_order(columns, begin, begin + ONE)
    elif end - begin == 4:
        one, two, three = begin + ONE, begin + ONE + ONE, begin + ONE + ONE + ONE
        put_in_order(columns, begin, one)
        put_in_order(columns, two, three)
        put_in_order(columns, begin, two)
        put_in_order(columns, one, three)
        put_in_order(columns, one, two)
    elif end - begin > 4:
        sort_many(columns, np.int64(begin), np.int64(end))


@compiled
def sort_many(columns, begin, end):
    for gap in GAPS:
        for i in range(begin + gap, end):
            k, crossing = i, columns[i]
            while k >= begin + gap and columns[k - gap] > crossing:
                columns[k] = columns[k - gap]
                k -= gap
            columns[k] = crossing

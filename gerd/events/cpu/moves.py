"""By how much moves of crossings change pixels, on the CPU: columns before and after in, changes of counts out.

From its column on, a crossing adds to all sub-pixels of its sub-row. Where one crossing has moved in all rows of a
range, the moves are added up for many rows at a time (`move`); any others by how much they raise the counts from one
pixel to the next (`add_end`), which is then followed along the row (`take_rises`). Compiled by `compiled.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import apart, compiled, inlined
from gerd.events.cpu.crossings import (
    ABSENT,
    NEAR,
    NONE,
    NOTHING,
    WORD_BITS,
    WORD_MASK,
    WORD_SHIFT,
    bit_number,
    touch_range,
    unsigned_range,
)
from gerd.events.cpu.outlines import vector_range
from gerd.events.cpu.rules import ONE

TWO, THREE = np.uint64(2), np.uint64(3)


@compiled
def move(before, after, low, high, weight, changes, sums):
    """Add up what the moves of one crossing change in the rows low … high - 1, all of which it crosses.

    In each pixel row, how much farther right the crossings were is added up over the sub-rows: as far as the end of the
    first pixel between old and new crossings, of the second, of the third, and as a whole. Where they are spread over
    more than NEAR pixels, each move is added by itself.
    """
    if low >= high:
        return
    f, least, most, moved = len(before), sums.least, sums.most, (sums.first, sums.second, sums.third, sums.whole)
    clear(low, high, least, most, *moved)
    for s in range(0, f, 2):
        other = min(s + 1, f - 1)
        reach(before[s], before[other], after[s], after[other], low, high, least, most)
    find_pixels(low, high, 1.0 / f, least, most)
    for s in range(0, f - 3, 4):
        add_four(
            before[s], before[s + 1], before[s + 2], before[s + 3],
            after[s], after[s + 1], after[s + 2], after[s + 3], low, high, np.int32(f), least, *moved,
        )  # fmt: skip
    for s in range(f // 4 * 4, f):
        add_one(before[s], after[s], low, high, np.int32(f), least, *moved)
    find_amounts(low, high, weight, least, most, *moved)
    put_amounts(before, after, low, high, weight, sums, changes)


@apart
def clear(low, high, least, most, first, second, third, whole):
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        least[y], most[y] = ABSENT, 0
        first[y], second[y], third[y], whole[y] = 0, 0, 0, 0


@apart
def reach(b0, b1, a0, a1, low, high, least, most):
    """Put the least and the most of some crossings into `least` and `most`, if they are not less or more already."""
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        least[y] = min(least[y], min(min(b0[y], b1[y]), min(a0[y], a1[y])))
        most[y] = max(most[y], max(max(b0[y], b1[y]), max(a0[y], a1[y])))


@apart
def find_pixels(low, high, pixels_per_column, least, most):
    """The first pixel and the last between such crossings, in place of the columns. Halves keep rounding errors off."""
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        least[y] = np.int32((least[y] + 0.5) * pixels_per_column)
        most[y] = np.int32((max(most[y], np.int32(1)) - 0.5) * pixels_per_column)


@inlined
def farther(was, now, end):
    """How much farther right a crossing was, as far as `end`."""
    return min(was, end) - min(now, end)


@apart
def add_one(before, after, low, high, f, least, first, second, third, whole):
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        was, now, end = before[y], after[y], (least[y] + np.int32(1)) * f
        first[y] += farther(was, now, end)
        second[y] += farther(was, now, end + f)
        third[y] += farther(was, now, end + f + f)
        whole[y] += was - now


@apart
def add_four(b0, b1, b2, b3, a0, a1, a2, a3, low, high, f, least, first, second, third, whole):
    """`add_one` of four sub-rows at a time."""
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        end = (least[y] + np.int32(1)) * f
        w0, w1, w2, w3, n0, n1, n2, n3 = b0[y], b1[y], b2[y], b3[y], a0[y], a1[y], a2[y], a3[y]
        first[y] += farther(w0, n0, end) + farther(w1, n1, end) + farther(w2, n2, end) + farther(w3, n3, end)
        end += f
        second[y] += farther(w0, n0, end) + farther(w1, n1, end) + farther(w2, n2, end) + farther(w3, n3, end)
        end += f
        third[y] += farther(w0, n0, end) + farther(w1, n1, end) + farther(w2, n2, end) + farther(w3, n3, end)
        whole[y] += (w0 - n0) + (w1 - n1) + (w2 - n2) + (w3 - n3)


@apart
def find_amounts(low, high, weight, least, most, first, second, third, whole):
    """What NEAR pixels change by, in place of the sums; in place of `most`, bits for those that do, -1 if more do."""
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        a, b, c, d = first[y], second[y] - first[y], third[y] - second[y], whole[y] - third[y]
        first[y], second[y], third[y], whole[y] = weight * a, weight * b, weight * c, weight * d
        bits = np.int32(a != 0) | np.int32(b != 0) << 1 | np.int32(c != 0) << 2 | np.int32(d != 0) << 3
        most[y] = bits if most[y] - least[y] < NEAR else -1


@compiled
def put_amounts(before, after, low, high, weight, sums, changes):
    """Add these amounts up in `changes`."""
    for y in unsigned_range(low, high):
        if sums.most[y] < 0:
            add_moves(before, after, np.int64(y), weight, changes)
            continue
        change, touched = changes.change[y], changes.touched[y]
        x, bits = np.uint64(sums.least[y]), np.uint64(sums.most[y])
        change[x] += sums.first[y]
        change[x + ONE] += sums.second[y]
        change[x + TWO] += sums.third[y]
        change[x + THREE] += sums.whole[y]
        touched[x >> WORD_SHIFT] |= bits << (x & WORD_MASK)
        touched[(x >> WORD_SHIFT) + ONE] |= (bits >> ONE) >> (WORD_MASK - (x & WORD_MASK))


@compiled
def add_moves(before, after, y, weight, changes):
    """Add up the moves of one crossing in one pixel row, wherever they go."""
    least, most = ABSENT, NOTHING
    for s in range(len(before)):
        was, now = before[s, y], after[s, y]
        if was != now:
            add_end(was, np.int32(-1), np.int32(len(before)), changes)
            add_end(now, np.int32(1), np.int32(len(before)), changes)
            least, most = min(least, min(was, now)), max(most, max(was, now))
    if least < most:
        take_rises(y, changes.pixel_of[least], changes.pixel_of[most], weight, changes)


@inlined
def add_end(end, sign, f, changes):
    """Note that the sub-pixels of a sub-row are more by one from a column on, or less by one."""
    pixel = changes.pixel_of[np.uint64(end)]
    x = np.uint64(pixel)
    changes.rises[x] += sign * ((pixel + np.int32(1)) * f - end)
    changes.rises[x + ONE] += sign * (end - pixel * f)
    changes.marks[x >> WORD_SHIFT] |= ONE << (x & WORD_MASK)


@compiled
def take_rises(y, left, right, weight, changes):
    """Put what rises in the pixels left … right + 1 of a row into `changes`, and forget it."""
    total, edge, carried = NOTHING, np.uint64(0), NONE
    rises, marks, change, touched = changes.rises, changes.marks, changes.change[y], changes.touched[y]
    for word in unsigned_range(np.int64(left) // WORD_BITS, (np.int64(right) + 1) // WORD_BITS + 1):
        rest = marks[word] | (marks[word] << ONE) | carried
        carried = marks[word] >> WORD_MASK
        marks[word] = NONE
        while rest:
            bit = rest & (~rest + ONE)
            rest ^= bit
            x = (word << WORD_SHIFT) + np.uint64(bit_number(bit))
            if total != 0 and edge < x:
                for between in range(edge, x):
                    change[between] += weight * total
                touch_range(changes.touched, y, np.int64(edge), np.int64(x - ONE))
            total += rises[x]
            rises[x] = 0
            change[x] += weight * total
            touched[word] |= bit if total != 0 else NONE
            edge = x + ONE

"""The compiled part of the `cpu` backend: one recording, step by step, visiting only what changes.

For each step the crossings of every sub-row are found, compared with those of the step before, and the
difference is added up in the pixels between old and new crossings; no other pixel is looked at, except those that
still hold more than a threshold from an earlier step. Names are those of `definition.py`.

Compiled by `cpu.py`. What an edit of another file could change comes in as an argument, or is checked there,
because numba's cache looks at one file only.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
MULTIPLIER_A, MULTIPLIER_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEP_A, KEY_STEP_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
INITIAL, SHAPE, EVENT, BACKGROUND = np.int64(2), np.int64(3), np.int64(4), np.int64(5)  # purposes
BLOCK = 32
END = np.int64(2**40)  # beyond every column
ABSENT = np.int32(2**30)  # in place of a crossing that is not there
NEAR = 4  # pixels
MOST_SPLIT = 3  # nearer pieces that cut a piece into two parts each; behind more of them it is walked through
BIAS = 2**30  # integrators are kept with this added, so that 0 means: not touched yet
TOGETHER = 16  # integrators that get their initial state when one of them is touched

ZERO = np.int64(0)
NOTHING, NONE, ONE, ALL = np.int32(0), np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
SIX, BITS = np.uint64(6), np.uint64(63)  # a word of `touched` has 64 bits
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # each 6-bit window is another number
BIT_NUMBERS = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_NUMBERS[((1 << _bit) * int(DE_BRUIJN) & (2**64 - 1)) >> 58] = _bit

# The kernels allocate nothing, so that they need no counts of references; and only the last one can be called from
# Python: a call of another ends the process. Without either, compiling takes two thirds of the time.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
compiled: Any = njit(**OPTIONS, no_cpython_wrapper=True)
inlined: Any = njit(**OPTIONS, no_cpython_wrapper=True, forceinline=True)  # a call passes every array field by field


@inlined
def words(key, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`. Only the lower halves count; they are taken where it costs nothing."""
    a, b, c, d = np.uint64(element), np.uint64(step), np.uint64(index), np.uint64(purpose)
    key_a, key_b = np.uint64(key), np.uint64(key) >> SHIFT
    for _ in range(ROUNDS):
        first, second = (a & LOW) * MULTIPLIER_A, (c & LOW) * MULTIPLIER_B
        a, b, c, d = (second >> SHIFT) ^ b ^ key_a, second, (first >> SHIFT) ^ d ^ key_b, first
        key_a, key_b = key_a + KEY_STEP_A, key_b + KEY_STEP_B
    return a & LOW, b & LOW, c & LOW, d & LOW


@inlined
def bit_number(bit):
    """Which bit of a word with one bit set it is."""
    return BIT_NUMBERS[(bit * DE_BRUIJN) >> np.uint64(58)]


@inlined
def column(x, most):
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … most."""
    return np.int32(min(max(np.ceil(x - 0.5), 0.0), most))


@inlined
def row_at(y, most):
    """The first sub-row whose centre is at or below y, clipped to 0 … most."""
    return np.int64(min(max(np.ceil(y - 0.5), 0.0), most))


@inlined
def rows_of(low, high):
    """range(low, high) of numbers that are not negative: as unsigned ones, arrays take them without a test."""
    return range(np.uint64(low), np.uint64(max(low, high)))


@compiled
def find_crossings(pieces, coefficients, geometry, frame):
    """The crossings of each piece in ascending order: cols[slot, s, y] for sub-row s of the pixel rows low … high - 1.

    A piece has two slots if it is convex, otherwise as many as sides: those not used repeat the last crossing, and all
    are ABSENT in a sub-row that the piece does not cross; none is in the rows whole_low … whole_high - 1. Loops along y
    are written so that they can be compiled to vector instructions: few arrays in each.
    """
    cols, low, high, whole_low, whole_high, left, right = frame
    first, is_ellipse, convex, slot = pieces
    width, height, f = geometry
    rows, wide = height * f, float(width * f)
    for piece in range(len(is_ellipse)):
        sides = coefficients[first[piece] : first[piece + 1]]
        begin, end = rows, 0
        if is_ellipse[piece]:
            extent = math.sqrt(sides[0, 1])
            begin, end = row_at(sides[0, 0] - extent - 1.0, rows), row_at(sides[0, 0] + extent + 1.0, rows)
        else:
            for side in range(len(sides)):
                begin, end = min(begin, row_at(sides[side, 0], rows)), max(end, row_at(sides[side, 1], rows))
        top, bottom = begin // f, max(begin // f, (end + f - 1) // f)
        begins, ends = cols[slot[piece]], cols[slot[piece + 1] - 1]
        if is_ellipse[piece]:
            cross_ellipse(sides[0], f, wide, top, bottom, begins, ends)
        elif convex[piece]:
            cross_convex(sides, f, rows, wide, top, bottom, begins, ends)
        else:
            cross_any(sides, f, rows, wide, top, bottom, cols[slot[piece] : slot[piece + 1]])
        low[piece], high[piece] = top, bottom
        while top < bottom and (not convex[piece] or any_absent(begins, top)):
            top += 1
        while top < bottom and any_absent(begins, bottom - 1):
            bottom -= 1
        whole_low[piece], whole_high[piece] = top, bottom
        left[piece], right[piece] = extent_of(begins, ends, low[piece], high[piece])


@compiled
def any_absent(begins, y):
    found = False
    for s in range(len(begins)):
        found |= begins[s, y] == ABSENT
    return found


@compiled
def extent_of(begins, ends, low, high):
    """The first column of some rows and the last; ABSENT and -1 if there is none."""
    left, right = ABSENT, np.int32(-1)
    for s in range(len(begins)):
        for y in rows_of(low, high):
            left = min(left, begins[s, y])
        for y in rows_of(low, high):
            right = max(right, ends[s, y] if ends[s, y] != ABSENT else np.int32(-1))
    return left, right


@compiled
def cross_ellipse(ellipse, f, wide, low, high, begins, ends):
    centre_y, reach, centre_x, tilt, width = ellipse[0], ellipse[1], ellipse[2], ellipse[3], ellipse[4]
    for s in range(f):
        for y in rows_of(low, high):
            dy = ((s + 0.5) + float(np.int32(y)) * f) - centre_y
            gap = reach - dy * dy
            half = width * math.sqrt(max(gap, 0.0))
            middle = centre_x + tilt * dy
            begins[s, y] = column(middle - half, wide) if gap > 0.0 else ABSENT
            ends[s, y] = column(middle + half, wide) if gap > 0.0 else ABSENT


@compiled
def cross_convex(sides, f, rows, wide, low, high, begins, ends):
    for s in range(f):
        for y in rows_of(low, high):
            begins[s, y] = ABSENT
        for y in rows_of(low, high):
            ends[s, y] = -1
    for side in range(len(sides)):
        top, x_top, slope = sides[side, 0], sides[side, 2], sides[side, 3]
        begin, end = row_at(top, rows), row_at(sides[side, 1], rows)
        for s in range(f):
            for y in rows_of(max(0, begin - s + f - 1) // f, max(0, end - s + f - 1) // f):
                x = x_top + (((s + 0.5) + float(np.int32(y)) * f) - top) * slope
                found = column(x, wide)
                begins[s, y], ends[s, y] = min(begins[s, y], found), max(ends[s, y], found)
    for s in range(f):
        for y in rows_of(low, high):
            ends[s, y] = ends[s, y] if ends[s, y] >= 0 else ABSENT


@compiled
def cross_any(sides, f, rows, wide, low, high, cols):
    for k in range(len(cols)):
        for s in range(f):
            for y in rows_of(low, high):
                cols[k, s, y] = ABSENT
    for side in range(len(sides)):
        top, x_top, slope = sides[side, 0], sides[side, 2], sides[side, 3]
        for r in range(row_at(top, rows), row_at(sides[side, 1], rows)):
            found = column(x_top + ((r + 0.5) - top) * slope, wide)
            y, s, k = r // f, r % f, 0
            while cols[k, s, y] != ABSENT:
                k += 1
            while k > 0 and cols[k - 1, s, y] > found:
                cols[k, s, y] = cols[k - 1, s, y]
                k -= 1
            cols[k, s, y] = found
    for k in range(1, len(cols)):
        for s in range(f):
            for y in range(low, high):
                if cols[k, s, y] == ABSENT:
                    cols[k, s, y] = cols[k - 1, s, y]


@compiled
def compare(pieces, intensity, geometry, old, new, change, touched, scratch):
    """Add up in `change` how the activation of each pixel differs between the old and the new crossings.

    The activation is a sum over crossings: one at column c adds the intensity of its piece to all sub-pixels from c
    on, or takes it away where the piece ends. So each crossing is compared with its former self, and no other.
    Returns where something may have changed: pixel rows, and words of `touched` in them, each as first and end.
    """
    convex, slot = pieces[2], pieces[3]
    begin, end, pixel_of = geometry[1], 0, scratch[4]
    leftmost, rightmost = ABSENT, np.int32(1)  # columns; the last one is looked up as rightmost - 1
    old_cols, old_low, old_high, old_whole_low, old_whole_high, old_left, old_right = old
    new_cols, new_low, new_high, new_whole_low, new_whole_high, new_left, new_right = new
    nearer, visible_old, visible_new, lists, sums, more, least, most = scratch[5:]
    for piece in range(len(intensity)):
        low, high = hull(old_low[piece], old_high[piece], new_low[piece], new_high[piece])
        if low >= high:
            continue
        begin, end = min(begin, low), max(end, high)
        befores, afters = old_cols[slot[piece] : slot[piece + 1]], new_cols[slot[piece] : slot[piece + 1]]
        absent_outside(befores, old_low[piece], old_high[piece], low, high)
        absent_outside(afters, new_low[piece], new_high[piece], low, high)
        left, right = min(old_left[piece], new_left[piece]), max(old_right[piece], new_right[piece])
        leftmost, rightmost = min(leftmost, left), max(rightmost, right)
        simple, found = convex[piece], 0
        for other in range(piece + 1, len(intensity)):
            top, bottom = hull(old_low[other], old_high[other], new_low[other], new_high[other])
            if top < high and low < bottom:
                other_left = min(old_left[other], new_left[other])
                other_right = max(old_right[other], new_right[other])
                if other_left < right and left < other_right:
                    simple = simple and convex[other]
                    nearer[found] = other
                    found += 1
        if found > 0 and (not simple or found > MOST_SPLIT):
            walk(
                nearer[:found], befores, afters, old, new, slot, low, high, intensity[piece],
                change, touched, pixel_of, lists,
            )  # fmt: skip
            continue
        number, cut = len(befores), 0
        if found > 0:
            split(nearer[:found], befores, old, slot, low, high, visible_old)
            split(nearer[:found], afters, new, slot, low, high, visible_new)
            befores, afters, number = visible_old, visible_new, 2 << found
        top = min(max(old_whole_low[piece], new_whole_low[piece]), high)
        bottom = max(top, min(old_whole_high[piece], new_whole_high[piece]))
        first, last = low, high
        for k in range(number):
            if found > 0 and k > 1 and k & (k - 1) == 0:  # these parts come from the next cut, and end where it does
                other = nearer[cut]
                first, last = hull(old_low[other], old_high[other], new_low[other], new_high[other])
                first, last, cut = max(first, low), min(last, high), cut + 1
            weight = intensity[piece] if k % 2 == 0 else -intensity[piece]
            for y in range(first, min(last, top)):
                draw_row(befores[0], afters[0], befores[k], afters[k], y, weight, change, touched, pixel_of)
            move(
                befores[k], afters[k], max(first, top), min(last, bottom), weight,
                change, touched, pixel_of, sums, more, least, most,
            )  # fmt: skip
            for y in range(max(first, bottom), last):
                draw_row(befores[0], afters[0], befores[k], afters[k], y, weight, change, touched, pixel_of)
    if begin >= end or leftmost >= rightmost:
        return begin, end, 0, 0
    return begin, end, pixel_of[leftmost] >> 6, (pixel_of[rightmost - 1] >> 6) + 1


@inlined
def hull(low, high, other_low, other_high):
    """The rows from the first to the last of two ranges, either of which may be empty."""
    if low >= high:
        return other_low, other_high
    if other_low >= other_high:
        return low, high
    return min(low, other_low), max(high, other_high)


@compiled
def absent_outside(cols, low, high, first, last):
    """Mark the rows first … last - 1 that are not in low … high - 1."""
    if low >= high:
        low = high = last
    if first < low or high < last:
        for k in range(len(cols)):
            for s in range(cols.shape[1]):
                for y in rows_of(first, low):
                    cols[k, s, y] = ABSENT
                for y in rows_of(high, last):
                    cols[k, s, y] = ABSENT


@compiled
def split(nearer, cols, frame, slot, low, high, visible):
    """The crossings of what is seen of a convex piece: its span, cut in two by each nearer one, in fixed places."""
    f = cols.shape[1]
    for s in range(f):
        for y in rows_of(low, high):
            visible[0, s, y] = cols[0, s, y]
        for y in rows_of(low, high):
            visible[1, s, y] = cols[1, s, y]
    for i in range(len(nearer)):
        first, last = max(frame[1][nearer[i]], low), min(frame[2][nearer[i]], high)
        cut_begins, cut_ends = frame[0][slot[nearer[i]]], frame[0][slot[nearer[i]] + 1]
        for k in range(1 << i):
            begins, ends = visible[2 * k], visible[2 * k + 1]
            more_begins, more_ends = visible[2 * k + (2 << i)], visible[2 * k + (2 << i) + 1]
            for s in range(f):
                for y in rows_of(low, high):
                    more_begins[s, y] = more_ends[s, y] = ends[s, y]
                for y in rows_of(first, last):
                    more_begins[s, y] = min(ends[s, y], max(begins[s, y], cut_ends[s, y]))
                for y in rows_of(first, last):
                    ends[s, y] = max(begins[s, y], min(ends[s, y], cut_begins[s, y]))


@compiled
def move(before, after, low, high, weight, change, touched, pixel_of, sums, more, least, most):
    """Add up what the moves of one crossing change in the rows low … high - 1, all of which it crosses.

    In each pixel row, the share of a pixel that lies left of a crossing is added up over the sub-rows, before and
    after. Where the crossings are spread over more than NEAR pixels, each move is drawn by itself.
    """
    f = np.int32(len(before))
    for y in rows_of(low, high):
        least[y] = ABSENT
    for y in rows_of(low, high):
        most[y] = 0
    for s in range(f):
        for y in rows_of(low, high):
            least[y] = min(least[y], min(before[s, y], after[s, y]))
            most[y] = max(most[y], max(before[s, y], after[s, y]))
    widest = np.int32(0)
    for y in rows_of(low, high):
        least[y] = pixel_of[least[y]]
        most[y] = pixel_of[max(most[y], 1) - 1]
        widest = max(widest, most[y] - least[y])
    for k in range(0, min(widest + 1, NEAR), 2):
        for y in rows_of(low, high):
            sums[y] = 0
            more[y] = 0
        for s in range(f):
            for y in rows_of(low, high):
                edge = (least[y] + np.int32(k)) * f
                was, now = before[s, y] - edge, after[s, y] - edge
                sums[y] += min(max(was, NOTHING), f) - min(max(now, NOTHING), f)
                more[y] += min(max(was - f, NOTHING), f) - min(max(now - f, NOTHING), f)
        for y in rows_of(low, high):
            if most[y] - least[y] < NEAR:
                x = np.uint64(least[y] + k)
                if sums[y] != 0:
                    change[y, x] += weight * sums[y]
                    touched[y, x >> SIX] |= ONE << (x & BITS)
                if more[y] != 0:
                    x += ONE
                    change[y, x] += weight * more[y]
                    touched[y, x >> SIX] |= ONE << (x & BITS)
    if widest >= NEAR:
        for y in range(low, high):
            if most[y] - least[y] >= NEAR:
                draw_row(before, after, before, after, y, weight, change, touched, pixel_of)


@compiled
def draw_row(first_before, first_after, before, after, y, weight, change, touched, pixel_of):
    """Add up the moves of one crossing in one pixel row. One that comes or goes does so at its piece's left end."""
    f = len(before)
    for s in range(f):
        was, now = before[s, y], after[s, y]
        if first_before[s, y] == ABSENT:
            was = first_after[s, y]
        elif first_after[s, y] == ABSENT:
            now = first_before[s, y]
        if was != now:
            draw(change, touched, y, was, now, weight, pixel_of, f)


@inlined
def draw(change, touched, y, was, now, weight, pixel_of, f):
    """Add up the move of one crossing in one sub-row, pixel by pixel."""
    start, stop, amount = min(was, now), max(was, now), weight if now < was else -weight
    left, right = np.int64(pixel_of[start]), np.int64(pixel_of[stop - 1])
    if left == right:
        change[y, left] += amount * (stop - start)
    else:
        change[y, left] += amount * ((left + 1) * f - start)
        for x in range(left + 1, right):
            change[y, x] += amount * f
        change[y, right] += amount * (stop - right * f)
    first, last = left >> 6, right >> 6
    if first == last:
        touched[y, first] |= (ALL << np.uint64(left & 63)) & (ALL >> np.uint64(63 - (right & 63)))
    else:
        touched[y, first] |= ALL << np.uint64(left & 63)
        for word in range(first + 1, last):
            touched[y, word] = ALL
        touched[y, last] |= ALL >> np.uint64(63 - (right & 63))


@compiled
def walk(nearer, befores, afters, old, new, slot, low, high, bright, change, touched, pixel_of, lists):
    """What changes of a piece that many others, or concave ones, may hide: along each sub-row through all crossings."""
    f = befores.shape[1]
    for y in range(low, high):
        for s in range(f):
            was_number = unhidden(nearer, befores, old, slot, y, s, lists[0], lists[2])
            now_number = unhidden(nearer, afters, new, slot, y, s, lists[1], lists[2])
            i, j, here, was, now = 0, 0, np.int64(0), False, False
            while i < was_number or j < now_number:
                there = min(
                    np.int64(lists[0, i]) if i < was_number else END, np.int64(lists[1, j]) if j < now_number else END
                )
                if was != now and here < there:
                    draw(change, touched, y, there if now else here, here if now else there, bright, pixel_of, f)
                while i < was_number and lists[0, i] == there:
                    i, was = i + 1, not was
                while j < now_number and lists[1, j] == there:
                    j, now = j + 1, not now
                here = there


@compiled
def unhidden(nearer, cols, frame, slot, y, s, ends, spare):
    """Put the crossings of what is seen of a piece in one sub-row into `ends`, ascending; how many they are."""
    number = 0
    if cols[0, s, y] != ABSENT:
        for k in range(0, len(cols) - 1, 2):
            if cols[k, s, y] < cols[k + 1, s, y]:
                ends[number], ends[number + 1] = cols[k, s, y], cols[k + 1, s, y]
                number += 2
    for i in range(len(nearer)):
        other = nearer[i]
        base, most = slot[other], slot[other + 1] - 1
        if y < frame[1][other] or y >= frame[2][other] or frame[0][base, s, y] == ABSENT:
            continue
        for k in range(base, most, 2):
            cut_begin, cut_end = frame[0][k, s, y], frame[0][k + 1, s, y]
            if cut_begin >= cut_end:
                continue
            found = 0
            for n in range(0, number, 2):
                before, after = min(ends[n + 1], cut_begin), max(ends[n], cut_end)
                if ends[n] < before:
                    spare[found], spare[found + 1] = ends[n], before
                    found += 2
                if after < ends[n + 1]:
                    spare[found], spare[found + 1] = after, ends[n + 1]
                    found += 2
            for n in range(found):
                ends[n] = spare[n]
            number = found
    return number


@compiled
def scattered(key, step, index, purpose, table, width, first, last, drawn, picked):
    """What a scattered noise picks from some rows, by the rule of `noise.py`: how many pixels it puts into `picked`.

    A pixel is put there as pixel · 2 + polarity. The rows have groups of four blocks; first … last - 1 are taken. The
    blocks in which something is picked are listed first, so that their words, too, are drawn in one loop.
    """
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + 3) // 4
    counting, choosing, listed = drawn
    rare, found = np.uint64(min(table[0, 0], table[1, 0])), 0
    for begin in range(first, last, counting.shape[1]):
        number, hits = min(counting.shape[1], last - begin), ZERO
        draw_words(key, begin, step, index, purpose, number, counting)
        for i in range(number):
            if counting[4, i] < rare:
                continue
            y = np.int64(np.uint32(begin + i) // np.uint32(groups))
            group = begin + i - y * groups
            for block in range(4 * group, min(4 * group + 4, blocks)):
                word, size = np.int64(counting[block & 3, i]), min(width - block * BLOCK, BLOCK)
                if word >= table[0 if size == BLOCK else 1, 0]:
                    listed[0, hits], listed[1, hits] = y * blocks + block, word
                    listed[2, hits], listed[3, hits] = y * width + block * BLOCK, size
                    hits += 1
        draw_listed(key, listed[0], step, index, purpose + 256, hits, choosing)
        for i in range(hits):
            word, size, count = listed[1, i], listed[3, i], 1
            while count < size and word >= table[0 if size == BLOCK else 1, count]:
                count += 1
            polarities = choosing[0, i]
            chosen = choose(key, listed[0, i], step, index, purpose, size, count, choosing[:, i])
            while chosen:
                bit = chosen & (~chosen + ONE)
                chosen ^= bit
                picked[found] = (listed[2, i] + bit_number(bit)) * 2 + (1 if polarities & bit else 0)
                found += 1
    return found


@compiled
def draw_words(key, begin, step, index, purpose, number, drawn):
    """Philox for consecutive elements, and the largest of the words, in a loop that compiles to vector instructions."""
    for i in rows_of(ZERO, number):
        a, b, c, d = words(key, np.uint64(begin) + i, step, index, purpose)
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i], drawn[4, i] = a, b, c, d, max(max(a, b), max(c, d))


@compiled
def begin_block(key, index, pixel, number, initial, spread, v):
    """The initial state of some neighbouring integrators: v has those of one row, from `pixel` on."""
    for i in rows_of(ZERO, number):
        chance = words(key, np.uint64(pixel) + i, 0, index, INITIAL)[0]
        drawn = np.int64((chance * np.uint64(2 * spread + 1)) >> SHIFT) - spread
        v[i] = np.int32((drawn if spread > 0 else initial) + BIAS)


@compiled
def forget(v, begun, number):
    """Integrators that another recording has begun are again not touched yet."""
    width = v.shape[1]
    for i in range(number):
        y, block = begun[i] // width, begun[i] % width
        for x in range(block, min(block + TOGETHER, width)):
            v[y, x] = 0


@compiled
def draw_listed(key, elements, step, index, purpose, number, drawn):
    """Philox for some elements, likewise."""
    for i in rows_of(ZERO, number):
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i] = words(key, elements[i], step, index, purpose)


@inlined
def choose(key, element, step, index, purpose, size, count, four):
    """Floyd's sample of `count` out of `size` pixels as a mask. `four` has the words of round 1, and is used up."""
    chosen = NONE
    for i in range(1, count + 1):
        if i % 4 == 0:
            four[0], four[1], four[2], four[3] = words(key, element, step, index, purpose + 256 * (1 + i // 4))
        word = four[i % 4]
        j = size - count + (i - 1)
        bit = ONE << ((word * np.uint64(j + 1)) >> SHIFT)
        if chosen & bit:
            bit = ONE << np.uint64(j)
        chosen |= bit
    return chosen


@compiled
def covered(pieces, frame, y, width, f):
    """First pixel and end of the part of row y that crossings enclose."""
    cols, low, high = frame[0], frame[1], frame[2]
    slot = pieces[3]
    left, right = width, 0
    for piece in range(len(low)):
        if low[piece] <= y < high[piece]:
            for s in range(f):
                begin, end = cols[slot[piece], s, y], cols[slot[piece + 1] - 1, s, y]
                if begin != ABSENT and begin < end:
                    left, right = min(left, begin // f), max(right, (end - 1) // f + 1)
    return left, right


@compiled
def show(width, first, last, activation, change, touched, hidden, was):
    """Bring `activation` up to date, and let what was missing in the last frame reappear."""
    for y in range(first, last):
        for word in range(touched.shape[1]):
            rest = touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * 64 + bit_number(bit)
                activation[y, x] += change[y, x]
    for i in range(was):
        y, x = hidden[0, i] // width, hidden[0, i] % width
        change[y, x] += hidden[1, i]
        touched[y, x >> 6] |= ONE << np.uint64(x & 63)


@compiled
def hide(key, step, index, table, pieces, geometry, new, activation, change, touched, hidden, drawn, picked):
    """Shape noise: take the pixels that are missing in this frame out of it; how many there are.

    `hidden` keeps the pixel and the activation of each of them.
    """
    width, height, f = geometry
    groups = (width + 4 * BLOCK - 1) // (4 * BLOCK)
    begin, end = height, ZERO
    for piece in range(len(pieces[1])):
        begin, end = hull(begin, end, new[1][piece], new[2][piece])
    now = 0
    for y in range(begin, end):
        left, right = covered(pieces, new, y, width, f)
        if left >= right:
            continue
        first = y * groups
        found = scattered(
            key, step, index, SHAPE, table, width,
            first + left // (4 * BLOCK), first + (right - 1) // (4 * BLOCK) + 1, drawn, picked,
        )  # fmt: skip
        for i in range(found):
            x = picked[i] // 2 - y * width
            if activation[y, x] != 0:
                hidden[0, now], hidden[1, now] = picked[i] // 2, activation[y, x]
                now += 1
                change[y, x] -= activation[y, x]
                touched[y, x >> 6] |= ONE << np.uint64(x & 63)
    return now


@njit(**OPTIONS)
def simulate_steps(
    coefficients, steps, fresh, pieces, intensity, geometry, model, noise, identity, state, scratch, room
):  # fmt: skip
    """Run one recording over the frames at `steps`, as long as there is room for what one more step could bring.

    Puts the keys and background flags of the events at steps >= 0 into `room`; how many steps were done, how many
    events there are.

    With `fresh`, the first frame is the one before the first step: it is compared with nothing and fires nothing.
    """
    width, height, _ = geometry
    threshold, to_zero, initial, spread = model
    shape_table, has_shape, drop_below, background_table, has_background = noise
    key, index = identity
    keys, background = room
    old, new, activation, v, begun, counts, change, touched = state
    hidden, pending, drawn, picked = scratch[:4]
    if fresh:
        forget(v, begun, counts[2])
        counts[0] = counts[1] = counts[2] = 0
    made = ZERO
    groups = (width + 4 * BLOCK - 1) // (4 * BLOCK)
    for i in range(len(steps)):
        if made + 2 * height * width > len(keys):  # in a step, a pixel fires once and has one event of background noise
            return i, made
        step = steps[i]
        find_crossings(pieces, coefficients[i], geometry, new)
        reference = fresh and i == 0
        first, last, left, right = height, ZERO, ZERO, ZERO
        if has_shape or not reference:
            first, last, left, right = compare(pieces, intensity, geometry, old, new, change, touched, scratch)
        if has_shape:
            show(width, first, last, activation, change, touched, hidden, counts[1])
            counts[1] = hide(
                key, step, index, shape_table, pieces, geometry, new,
                activation, change, touched, hidden, drawn, picked,
            )  # fmt: skip
            first, last, left, right = 0, height, 0, touched.shape[1]
        old, new = new, old
        if reference:
            for y in range(first, last):
                for x in range(width):
                    change[y, x] = 0
                for word in range(touched.shape[1]):
                    touched[y, word] = NONE
            continue
        for k in range(counts[0]):
            y, x = pending[k] // width, pending[k] % width
            touched[y, x >> 6] |= ONE << np.uint64(x & 63)
            first, last = hull(first, last, y, y + 1)
            left, right = hull(left, right, x >> 6, (x >> 6) + 1)
        counts[0] = 0
        found, other = 0, 0
        if has_background and step >= 0:
            every = height * groups
            found = scattered(key, step, index, BACKGROUND, background_table, width, ZERO, every, drawn, picked)
        offset = step * height * width * 2
        for y in range(first, last):
            for word in range(left, right):
                rest = touched[y, word]
                touched[y, word] = NONE
                while rest:
                    bit = rest & (~rest + ONE)
                    rest ^= bit
                    x = word * 64 + bit_number(bit)
                    pixel = y * width + x
                    if v[y, x] == 0:
                        block = x // TOGETHER * TOGETHER
                        number = min(TOGETHER, width - block)
                        begin_block(key, index, y * width + block, number, initial, spread, v[y, block:])
                        begun[counts[2]] = y * width + block
                        counts[2] += 1
                    now = np.int64(v[y, x]) - BIAS + change[y, x]
                    change[y, x] = 0
                    if -threshold <= now <= threshold:
                        v[y, x] = now + BIAS
                        continue
                    polarity = 1 if now > threshold else 0
                    if to_zero:
                        now = 0
                    else:
                        now += -threshold if polarity else threshold
                        if now > threshold or now < -threshold:
                            pending[counts[0]] = pixel
                            counts[0] += 1
                    v[y, x] = now + BIAS
                    if step < 0:
                        continue
                    if drop_below > 0 and np.int64(words(key, pixel, step, index, EVENT)[0]) < drop_below:
                        continue
                    place = pixel * 2 + polarity
                    while other < found and picked[other] < place:
                        keys[made], background[made] = offset + picked[other], True
                        made += 1
                        other += 1
                    if other < found and picked[other] == place:
                        other += 1
                    keys[made], background[made] = offset + place, False
                    made += 1
        while other < found:
            keys[made], background[made] = offset + picked[other], True
            made += 1
            other += 1
    return len(steps), made

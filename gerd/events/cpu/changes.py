"""What changes from one frame to the next, on the CPU: the crossings of both in, by how much pixels change out.

Each crossing is compared with its former self, and the difference is added up in the pixels between the two. No other
pixel is looked at. That changes no bit: counts are integers, whose sum does not depend on its order. Where nearer
pieces hide a part, what is seen is compared. Compiled by `compiled.py`, as a part of what uses it.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import apart, compiled, inlined
from gerd.events.cpu.arguments import Area
from gerd.events.cpu.crossings import (
    ABSENT,
    NEAR,
    NOTHING,
    WORD_BITS,
    WORD_MASK,
    WORD_SHIFT,
    ZERO,
    columns_of,
    rows_of,
    touch_range,
    unsigned_range,
    vector_range,
)
from gerd.events.cpu.rules import ONE

END = np.int64(2**63 - 1)  # beyond every column
MOST_SPLIT = 3  # spans of nearer pieces that cut a piece into two parts each; behind more of them it is walked through
LAYERS, LAYER_SLOTS = np.arange(MOST_SPLIT), 2 * np.arange(MOST_SPLIT + 1)  # those spans, as if they were pieces
TWO, THREE = np.uint64(2), np.uint64(3)


@compiled
def compare(scene, old, new, changes, scratch):
    """Add up in `changes` how the activation of each pixel differs between two frames; where it may.

    The activation is a sum over crossings: one at column c adds the intensity of its piece to all sub-pixels from c
    on, or takes it away where the piece ends. So each crossing is compared with its former self, and no other.
    """
    begin, end, pixel_of = scene.sensor.height, ZERO, changes.pixel_of
    leftmost, rightmost = ABSENT, np.int32(1)  # columns; the last one is looked up as rightmost - 1
    for piece in range(len(scene.pieces.intensity)):
        low, high = rows_of(piece, old, new)
        if low < high:
            begin, end = min(begin, low), max(end, high)
            left, right = columns_of(piece, old, new)
            leftmost, rightmost = min(leftmost, left), max(rightmost, right)
            compare_piece(piece, low, high, scene.pieces, old, new, changes, scratch)
    if begin >= end or leftmost >= rightmost:
        return Area(begin, end, ZERO, ZERO)
    left, right = pixel_of[leftmost] // WORD_BITS, pixel_of[rightmost - 1] // WORD_BITS + 1
    return Area(begin, end, np.int64(left), np.int64(right))


@inlined
def compare_piece(piece, low, high, pieces, old, new, changes, scratch):
    """Add what one piece changes from the old frame to the new one, in the pixel rows low … high - 1."""
    base, stop = pieces.slot[piece], pieces.slot[piece + 1]
    befores, afters, intensity = old.cols[base:stop], new.cols[base:stop], pieces.intensity[piece]
    absent_outside(befores, old.low[piece], old.high[piece], low, high)
    absent_outside(afters, new.low[piece], new.high[piece], low, high)
    covering, simple = find_nearer(piece, low, high, pieces, old, new, scratch.nearer)
    nearer, number, cut = scratch.nearer[:covering], len(befores), 0
    cutting, slot, hides_old, hides_new = nearer, pieces.slot, old, new
    if covering > 1 and simple:
        hides_old, hides_new, slot = scratch.cover_before, scratch.cover_after, LAYER_SLOTS
        layers = unite(nearer, old, pieces.slot, low, high, hides_old, scratch.seen_before)
        layers = max(layers, unite(nearer, new, pieces.slot, low, high, hides_new, scratch.seen_before))
        cutting, simple = LAYERS[:layers], layers <= MOST_SPLIT
    if covering > 0:
        if not simple:
            walk_through(nearer, befores, afters, old, new, pieces.slot, low, high, intensity, changes, scratch.lists)
            return
        split(cutting, befores, hides_old, slot, low, high, scratch.seen_before)
        split(cutting, afters, hides_new, slot, low, high, scratch.seen_after)
        befores, afters, number = scratch.seen_before, scratch.seen_after, 2 << len(cutting)
    top = min(max(old.whole_low[piece], new.whole_low[piece]), high)
    bottom = max(top, min(old.whole_high[piece], new.whole_high[piece]))
    first, last, shows = low, high, True
    for k in range(number):
        if covering > 0 and k > 1 and k & (k - 1) == 0:  # these parts come from the next cut, and end where it does
            first, last = rows_of(cutting[cut], hides_old, hides_new)
            first, last, cut = max(first, low), min(last, high), cut + 1
        if covering > 0 and k % 2 == 0:
            shows = any_span(befores[k], befores[k + 1], first, last) | any_span(afters[k], afters[k + 1], first, last)
        if not shows:
            continue
        weight = intensity if k % 2 == 0 else -intensity
        for y in range(first, min(last, top)):
            add_moves(befores[0], afters[0], befores[k], afters[k], y, weight, changes)
        move(befores[k], afters[k], max(first, top), min(last, bottom), weight, changes, scratch.sums)
        for y in range(max(first, bottom), last):
            add_moves(befores[0], afters[0], befores[k], afters[k], y, weight, changes)


@compiled
def any_span(begins, ends, low, high):
    """Whether there is a span in some rows that has a length."""
    found = NOTHING
    for s in range(len(begins)):
        for y in unsigned_range(low, high):
            found |= np.int32(begins[s, y] < ends[s, y])
    return found != 0


@inlined
def find_nearer(piece, low, high, pieces, old, new, nearer):
    """Put the nearer pieces that may cover one into `nearer`: how many they are, and whether all of them are convex."""
    number, simple = 0, pieces.convex[piece]
    left, right = columns_of(piece, old, new)
    for other in range(piece + 1, len(pieces.convex)):
        top, bottom = rows_of(other, old, new)
        other_left, other_right = columns_of(other, old, new)
        if top < high and low < bottom and other_left < right and left < other_right:
            simple = simple and pieces.convex[other]
            nearer[number] = other
            number += 1
    return number, simple


@compiled
def unite(nearer, frame, slot, low, high, cover, rest):
    """Put the union of convex pieces into `cover`, as spans in layers; how many layers it takes, or one too many.

    A span goes into the first layer in which it meets another one of its sub-row, or finds none. `rest` is room.
    """
    layers = 0
    for layer in range(MOST_SPLIT):
        cover.low[layer] = cover.high[layer] = high
    for i in range(len(nearer) - 1, -1, -1):
        first, last = max(frame.low[nearer[i]], low), min(frame.high[nearer[i]], high)
        begins, ends = frame.cols[slot[nearer[i]]], frame.cols[slot[nearer[i]] + 1]
        for s in range(len(begins)):
            for y in unsigned_range(first, last):
                rest[0, s, y] = begins[s, y]
            for y in unsigned_range(first, last):
                rest[1, s, y] = ends[s, y]
        layer, left_over = 0, first < last
        while left_over:
            if layer == MOST_SPLIT:
                return MOST_SPLIT + 1
            if layer == layers:
                cover.low[layer], cover.high[layer], layers = low, high, layers + 1
                absent_outside(cover.cols[2 * layer : 2 * layer + 2], high, high, low, high)
            left_over = join(cover.cols[2 * layer], cover.cols[2 * layer + 1], rest[0], rest[1], first, last)
            layer += 1
    return layers


@compiled
def join(layer_begins, layer_ends, begins, ends, low, high):
    """Take the spans that meet one of a layer, or find none, into it; whether there are others, which are left over."""
    left_over = NOTHING
    for s in range(len(begins)):
        for y in unsigned_range(low, high):
            begin, end, held, held_end = begins[s, y], ends[s, y], layer_begins[s, y], layer_ends[s, y]
            is_there, is_free = begin < end, held == ABSENT
            joins = is_there & (is_free | ((begin <= held_end) & (held <= end)))
            layer_begins[s, y] = min(begin, held) if joins else held
            layer_ends[s, y] = (end if is_free else max(end, held_end)) if joins else held_end
            begins[s, y] = ABSENT if joins else begin
            ends[s, y] = ABSENT if joins else end
            left_over |= np.int32(is_there & ~joins)
    return left_over != 0


@compiled
def absent_outside(cols, low, high, first, last):
    """Mark the rows first … last - 1 that are not in low … high - 1."""
    if low >= high:
        low = high = last
    if first < low or high < last:
        for k in range(len(cols)):
            for s in range(cols.shape[1]):
                for y in unsigned_range(first, low):
                    cols[k, s, y] = ABSENT
                for y in unsigned_range(high, last):
                    cols[k, s, y] = ABSENT


@compiled
def split(nearer, cols, frame, slot, low, high, visible):
    """The crossings of what is seen of a convex piece: its span, cut in two by each nearer one, in fixed slots."""
    f = cols.shape[1]
    for s in range(f):
        for y in unsigned_range(low, high):
            visible[0, s, y] = cols[0, s, y]
        for y in unsigned_range(low, high):
            visible[1, s, y] = cols[1, s, y]
    for i in range(len(nearer)):
        first, last = max(frame.low[nearer[i]], low), min(frame.high[nearer[i]], high)
        cut_begins, cut_ends = frame.cols[slot[nearer[i]]], frame.cols[slot[nearer[i]] + 1]
        for k in range(1 << i):
            begins, ends = visible[2 * k], visible[2 * k + 1]
            more_begins, more_ends = visible[2 * k + (2 << i)], visible[2 * k + (2 << i) + 1]
            for s in range(f):
                for y in unsigned_range(low, high):
                    more_begins[s, y] = more_ends[s, y] = ends[s, y]
                for y in unsigned_range(first, last):
                    more_begins[s, y] = min(ends[s, y], max(begins[s, y], cut_ends[s, y]))
                for y in unsigned_range(first, last):
                    ends[s, y] = max(begins[s, y], min(ends[s, y], cut_begins[s, y]))


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
            add_moves(before, after, before, after, np.int64(y), weight, changes)
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
def add_moves(first_before, first_after, before, after, y, weight, changes):
    """Add up the moves of one crossing in one pixel row. One that comes or goes does so at its piece's left end.

    From its column on, a crossing adds to all sub-pixels of its sub-row. By how much that rises from one pixel to the
    next is added up first, in `changes.rises`.
    """
    f, pixel_of, rises, least, most = np.int32(len(before)), changes.pixel_of, changes.rises, ABSENT, NOTHING
    for s in range(len(before)):
        was, now = before[s, y], after[s, y]
        if first_before[s, y] == ABSENT:
            was = first_after[s, y]
        elif first_after[s, y] == ABSENT:
            now = first_before[s, y]
        if was != now:
            old, new = pixel_of[was], pixel_of[now]
            rises[np.uint64(old)] += was - (old + 1) * f
            rises[np.uint64(old) + ONE] += old * f - was
            rises[np.uint64(new)] += (new + 1) * f - now
            rises[np.uint64(new) + ONE] += now - new * f
            least, most = min(least, min(was, now)), max(most, max(was, now))
    if least < most:
        add_rises(y, np.int64(pixel_of[least]), np.int64(pixel_of[most]), weight, changes)
        touch_range(changes.touched, y, np.int64(pixel_of[least]), np.int64(pixel_of[most - 1]))


@inlined
def add_rises(y, left, right, weight, changes):
    """Put what rises in the pixels left … right + 1 of a row into `changes`, and forget it."""
    total, rises, change = NOTHING, changes.rises, changes.change[y]
    for x in unsigned_range(left, right + 2):
        total += rises[x]
        rises[x] = 0
        change[x] += weight * total


@inlined
def add_move(y, was, now, weight, f, changes):
    """Add up the move of one crossing in one sub-row, pixel by pixel."""
    change, touched = changes.change, changes.touched
    start, stop, amount = min(was, now), max(was, now), weight if now < was else -weight
    left, right = np.int64(changes.pixel_of[start]), np.int64(changes.pixel_of[stop - 1])
    if left == right:
        change[y, left] += amount * (stop - start)
    else:
        change[y, left] += amount * ((left + 1) * f - start)
        for x in range(left + 1, right):
            change[y, x] += amount * f
        change[y, right] += amount * (stop - right * f)
    touch_range(touched, y, left, right)


@compiled
def walk_through(nearer, befores, afters, old, new, slot, low, high, intensity, changes, lists):
    """What changes of a piece that many others, or concave ones, may hide: along each sub-row through all crossings."""
    f, ends_before, ends_after, spare = befores.shape[1], lists[0], lists[1], lists[2]
    for y in range(low, high):
        for s in range(f):
            count_before = unhidden(nearer, befores, old, slot, y, s, ends_before, spare)
            count_after = unhidden(nearer, afters, new, slot, y, s, ends_after, spare)
            i, j, start, was, now = 0, 0, np.int64(0), False, False
            while i < count_before or j < count_after:
                stop = min(
                    np.int64(ends_before[i]) if i < count_before else END,
                    np.int64(ends_after[j]) if j < count_after else END,
                )
                if was != now and start < stop:
                    add_move(y, stop if now else start, start if now else stop, intensity, f, changes)
                while i < count_before and ends_before[i] == stop:
                    i, was = i + 1, not was
                while j < count_after and ends_after[j] == stop:
                    j, now = j + 1, not now
                start = stop


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
        if frame.low[other] <= y < frame.high[other] and frame.cols[base, s, y] != ABSENT:
            for k in range(base, most, 2):
                number = cut_out(frame.cols[k, s, y], frame.cols[k + 1, s, y], ends, number, spare)
    return number


@inlined
def cut_out(begin, end, ends, number, spare):
    """Take the columns begin … end - 1 out of the spans in `ends`; how many ends there are then."""
    if begin >= end:
        return number
    left_over = 0
    for n in range(0, number, 2):
        before, after = min(ends[n + 1], begin), max(ends[n], end)
        if ends[n] < before:
            spare[left_over], spare[left_over + 1] = ends[n], before
            left_over += 2
        if after < ends[n + 1]:
            spare[left_over], spare[left_over + 1] = after, ends[n + 1]
            left_over += 2
    for n in range(left_over):
        ends[n] = spare[n]
    return left_over

"""What nearer pieces hide of a piece, on the CPU: the crossings of a frame in, those of what is seen of a piece out.

Convex pieces behind a few convex ones are cut many sub-rows at a time (`unite`, `split`), and others sub-row by sub-row
(`seen_of`). Compiled by `compiled.py`, as a part of what uses it.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.crossings import ABSENT, NOTHING, columns_of, crossings_at, rows_of, unsigned_range

MOST_SPLIT = 3  # spans of nearer pieces that cut a piece into two parts each; behind more of them it is walked through
LAYERS, LAYER_SLOTS = np.arange(MOST_SPLIT), 2 * np.arange(MOST_SPLIT + 1)  # those spans, as if they were pieces


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


@inlined
def seen_of(piece, nearer, y, s, frame, pieces, lists):
    """The columns between which a piece is seen in sub-row s of pixel row y, ascending. `lists` (4, …) is room."""
    ends, spare = crossings_at(piece, y, s, frame, pieces, lists[0]), 1
    for i in range(len(nearer)):
        cutting = crossings_at(nearer[i], y, s, frame, pieces, lists[3])
        if len(cutting) > 0 and len(ends) > 0:
            ends = lists[spare, : cut_out(cutting, ends, lists[spare])]
            spare = 3 - spare
    return ends


@compiled
def cut_out(cutting, ends, left):
    """Put what spans leave of others into `left`, all of them in ascending order; how many ends there are."""
    number, first = 0, 0
    for n in range(0, len(ends), 2):
        begin, end = ends[n], ends[n + 1]
        while first < len(cutting) and cutting[first + 1] <= begin:
            first += 2
        cut = first
        while cut < len(cutting) and cutting[cut] < end:
            if begin < cutting[cut]:
                left[number], left[number + 1] = begin, cutting[cut]
                number += 2
            begin = max(begin, cutting[cut + 1])
            cut += 2
        if begin < end:
            left[number], left[number + 1] = begin, end
            number += 2
    return number

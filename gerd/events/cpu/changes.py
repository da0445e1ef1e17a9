"""What changes from one frame to the next, on the CPU: the crossings of both in, by how much pixels change out.

Each crossing is compared with its former self, and the difference is added up in the pixels between the two. No other
pixel is looked at. That changes no bit: counts are integers, whose sum does not depend on its order. Where nearer
pieces hide a part, what is seen is compared. Compiled by `compiled.py`, as a part of what uses it.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.arguments import Area
from gerd.events.cpu.crossings import (
    ABSENT,
    NOTHING,
    WORD_BITS,
    ZERO,
    columns_of,
    rows_of,
    unsigned_range,
)
from gerd.events.cpu.hidden import (
    LAYER_SLOTS,
    LAYERS,
    MOST_SPLIT,
    find_nearer,
    seen_of,
    split,
    unite,
)
from gerd.events.cpu.moves import add_end, move, take_rises


@inlined
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
    covering, simple = find_nearer(piece, low, high, pieces, old, new, scratch.nearer)
    nearer, layers, top, bottom = scratch.nearer[:covering], 0, high, high
    cutting, slots, hides_old, hides_new = nearer, pieces.slot, old, new
    if covering > 1 and simple:
        hides_old, hides_new, slots = scratch.cover_before, scratch.cover_after, LAYER_SLOTS
        layers = unite(nearer, old, pieces.slot, low, high, hides_old, scratch.seen_before)
        layers = max(layers, unite(nearer, new, pieces.slot, low, high, hides_new, scratch.seen_before))
        cutting = LAYERS[:layers]
    if simple and layers <= MOST_SPLIT:
        top = min(max(old.whole_low[piece], new.whole_low[piece]), high)
        bottom = max(top, min(old.whole_high[piece], new.whole_high[piece]))
        compare_whole(piece, top, bottom, cutting, slots, hides_old, hides_new, pieces, old, new, changes, scratch)
    for i in range((top - low) + (high - bottom)):
        y = low + i if low + i < top else low + i + (bottom - top)
        walk_through(piece, nearer, y, pieces, old, new, changes, scratch.lists)


@inlined
def compare_whole(piece, top, bottom, cutting, slots, hides_old, hides_new, pieces, old, new, changes, scratch):
    """What a convex piece changes in the pixel rows top … bottom - 1, all of whose sub-rows cross it in both frames."""
    slot, intensity = pieces.slot[piece], pieces.intensity[piece]
    befores, afters = old.cols[slot : slot + 2], new.cols[slot : slot + 2]
    if len(cutting) > 0:
        split(cutting, befores, hides_old, slots, top, bottom, scratch.seen_before)
        split(cutting, afters, hides_new, slots, top, bottom, scratch.seen_after)
        befores, afters = scratch.seen_before, scratch.seen_after
    first, last, cut, shows = top, bottom, 0, True
    for k in range(2 << len(cutting)):
        if k > 1 and k & (k - 1) == 0:  # the parts from here on come from the next cut, and end where it does
            first, last = rows_of(cutting[cut], hides_old, hides_new)
            first, last, cut = max(first, top), min(last, bottom), cut + 1
        if len(cutting) > 0 and k % 2 == 0:
            shows = any_span(befores[k], befores[k + 1], first, last) | any_span(afters[k], afters[k + 1], first, last)
        if shows:
            move(befores[k], afters[k], first, last, intensity if k % 2 == 0 else -intensity, changes, scratch.sums)


@compiled
def any_span(begins, ends, low, high):
    """Whether there is a span in some rows that has a length."""
    found = NOTHING
    for s in range(len(begins)):
        for y in unsigned_range(low, high):
            found |= np.int32(begins[s, y] < ends[s, y])
    return found != 0


@inlined
def walk_through(piece, nearer, y, pieces, old, new, changes, lists):
    """What one piece changes in a pixel row, by all crossings of what is seen of it."""
    f = np.int32(old.cols.shape[1])
    left, right = columns_of(piece, old, new)
    if left <= right:
        for s in range(f):
            add_ends(seen_of(piece, nearer, y, s, old, pieces, lists), np.int32(-1), f, changes)
            add_ends(seen_of(piece, nearer, y, s, new, pieces, lists), np.int32(1), f, changes)
        take_rises(y, changes.pixel_of[left], changes.pixel_of[right], pieces.intensity[piece], changes)


@inlined
def add_ends(ends, sign, f, changes):
    """Note where spans of sub-pixels, by their ends, add to the counts of a row, or with `sign` -1 take away."""
    for k in unsigned_range(ZERO, len(ends)):
        add_end(ends[k], sign, f, changes)
        sign = -sign

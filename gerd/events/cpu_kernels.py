"""The compiled part of the `cpu` backend: one recording, step by step, at a cost that follows what changes.

The rules come first, `words` to `passage_us`, as in `definition.py`. The rest is the walk. It finds the crossings of
every sub-row, compares them with those of the step before, and adds up the difference in the pixels between old and
new crossings. No other pixel is looked at, except those that still hold more than a threshold from an earlier step.
That changes no bit: counts are integers, whose sum does not depend on its order, and an integrator whose count stays
as it is, within the threshold, does not fire. Exact timing walks likewise from instant to instant, in
`exact_kernels.py`.

Compiled by `compiled.py`, which looks at this file only: what an edit of another could change comes in as an argument,
or is checked in `cpu.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from gerd.events.compiled import apart, compiled, inlined

LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
MULTIPLIER_A, MULTIPLIER_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEP_A, KEY_STEP_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
INITIAL, SHAPE, EVENT, BACKGROUND, TIME = np.int64(2), np.int64(3), np.int64(4), np.int64(5), np.int64(8)  # purposes
BLOCK, GROUP, ROUND = 64, 4, 256
END = np.int64(2**63 - 1)  # beyond every column and every key
ABSENT = np.int32(2**30)  # in place of a crossing that is not there
NEAR = 4  # pixels
LANES = 8  # rows that vector instructions take together; arrays of rows have room for as many more
MOST_SPLIT = 3  # spans of nearer pieces that cut a piece into two parts each; behind more of them it is walked through
LAYERS, LAYER_SLOTS = np.arange(MOST_SPLIT), 2 * np.arange(MOST_SPLIT + 1)  # those spans, as if they were pieces
BIAS = 2**30  # integrators are kept with this added, so that 0 means: not touched yet
TOGETHER = 16  # integrators that get their initial state when one of them is touched
PENDING, HIDDEN, BEGUN = 0, 1, 2  # places in `Pixels.numbers`

ZERO = np.int64(0)
NOTHING, NONE, ONE, ALL = np.int32(0), np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
TWO, THREE = np.uint64(2), np.uint64(3)
WORD_BITS, WORD_SHIFT, WORD_MASK = 64, np.uint64(6), np.uint64(63)  # pixels in a word of `touched`
DE_BRUIJN, WINDOW = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)  # each window of the upper 6 bits is another number
BIT_NUMBERS = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_NUMBERS[((1 << _bit) * int(DE_BRUIJN) & (2**64 - 1)) >> int(WINDOW)] = _bit


Sensor = namedtuple("Sensor", "width height f")  # pixels, and the upsampling
Pieces = namedtuple(
    "Pieces", "first is_ellipse convex slot intensity"
)  # `rasterise.Borders`; slots in `Crossings.cols`
# largest: of an initial state that is uniform, else 0. The last three are for a stationary one: how many actors there
# are, and how many of them are darker than the background.
Model = namedtuple("Model", "threshold to_zero initial largest stationary actors dark")
Noise = namedtuple("Noise", "shape has_shape drop_below background has_background")  # tables and a bound: `noise.py`
Source = namedtuple("Source", "seed index")  # of random words
Scene = namedtuple("Scene", "sensor pieces model noise source")  # what stays as it is over a recording
Crossings = namedtuple("Crossings", "cols low high whole_low whole_high left right")  # see `find_crossings`
# What a recording carries from step to step: integrators (height, width), counts before shape noise, and lists of
# pixels: those that still hold more than a threshold, those that shape noise takes out of the last frame, with their
# counts, and the first pixels of blocks of v that have their initial state. `numbers` is how long the lists are. In
# exact timing with event noise, `fired` counts the events of each pixel.
Pixels = namedtuple("Pixels", "v activation numbers pending hidden hidden_counts begun fired")
# Since the step before: by how much (height, width + NEAR), bits for the pixels (height, words, one more than need be),
# and the pixel of each column. Room for one row (width + 2), which holds 0; see `add_moves`.
# Room for the pixels that changed, as y · 2³² + x, and for the keys, within a step, of those that fire.
Changes = namedtuple("Changes", "change touched pixel_of rises listed fired")
Sums = namedtuple("Sums", "least most first second third whole")  # room for one number in each pixel row; see `move`
# Room for comparing two frames: pieces, crossings of what is seen of a piece in both, of what hides it, crossings in a
# sub-row, and one number in each pixel row.
Scratch = namedtuple("Scratch", "nearer seen_before seen_after cover_before cover_after lists sums")
# Room for a scattered noise: words (4, groups) for the counts of blocks, and the largest of four; the groups where
# something is picked; of the blocks where it is, words (4, blocks), number, and word for the count; keys of the picked
# pixels. The lists of groups and blocks have room for one more, which is put down in vain.
Draws = namedtuple("Draws", "counting largest group choosing block word picked")
Room = namedtuple("Room", "keys background")  # for events; in exact timing keys hold the flag, as in `exact.packed`
Area = namedtuple("Area", "top bottom left right")  # pixel rows, and words of `touched` in them, each as first and end


@inlined
def words(seed, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`. Only the lower halves count; they are taken where it costs nothing."""
    a, b, c, d = np.uint64(element), np.uint64(step), np.uint64(index), np.uint64(purpose)
    key_a, key_b = np.uint64(seed), np.uint64(seed) >> SHIFT
    for _ in range(ROUNDS):
        first, second = (a & LOW) * MULTIPLIER_A, (c & LOW) * MULTIPLIER_B
        a, b, c, d = (second >> SHIFT) ^ b ^ key_a, second, (first >> SHIFT) ^ d ^ key_b, first
        key_a, key_b = key_a + KEY_STEP_A, key_b + KEY_STEP_B
    return a & LOW, b & LOW, c & LOW, d & LOW


@inlined
def column(x, right):
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … right."""
    return np.int32(min(max(np.ceil(x - 0.5), 0.0), right))


@inlined
def crossing_of_side(y, top, bottom, x_top, slope):
    """Where a side crosses the line at y, and whether it does."""
    return x_top + (y - top) * slope, (top <= y) & (y < bottom)


@inlined
def crossings_of_ellipse(y, centre_y, reach, centre_x, tilt, width):
    """Where the line at y enters and leaves an ellipse, and whether it does."""
    dy = y - centre_y
    gap = reach - dy * dy
    half = width * math.sqrt(max(gap, 0.0))
    middle = centre_x + tilt * dy
    return middle - half, middle + half, gap > 0.0


@inlined
def initial_state(word, largest):
    """An integrator before the first step: -largest … largest."""
    return np.int64((word * np.uint64(2 * largest + 1)) >> SHIFT) - largest


@inlined
def stationary_state(word, threshold, upward):
    """An integrator after shapes have passed: 0 … threshold - 1 after a change upward, otherwise its negative."""
    state = np.int64((word * np.uint64(threshold)) >> SHIFT)
    return state if upward else -state


@inlined
def how_many(word, table):
    """How many pixels of a block a word picks: the number of bounds in the block's table that it reaches."""
    count = 0
    while count < BLOCK and word >= table[count]:
        count += 1
    return count


@inlined
def pick(word, last, chosen):
    """Floyd's pick out of the pixels 0 … last: any of them, or the last one if that is in the mask `chosen`."""
    pixel = (word * np.uint64(last + 1)) >> SHIFT
    return np.uint64(last) if chosen & (ONE << pixel) else pixel


@inlined
def integrate_and_fire(state, change, threshold, to_zero):
    """An integrator with its change, whether it fires OFF or ON, and what the reset leaves."""
    integrated = state + change
    off, on = integrated < -threshold, integrated > threshold
    reset = 0 if to_zero else integrated - threshold * (np.int64(on) - np.int64(off))
    return integrated, off, on, reset if off | on else integrated


@inlined
def dropped(word, bound):
    """Whether event noise drops an event."""
    return np.int64(word) < bound


@inlined
def passages(state, change, threshold):
    """How often an integrator passes its threshold while its count changes, and what is left."""
    along, size = -state if change < 0 else state, abs(change)
    number = max((along + size) // threshold, 0) if size > 0 else 0
    return number, state + change - threshold * (-number if change < 0 else number)


@inlined
def passage_us(begin, length, missing, size, us_per_unit):
    """When a change by `size`, which takes `length` from `begin`, has come to `missing`: in µs, rounded up."""
    return np.int64(np.ceil((begin + length * (float(missing) / float(size))) * us_per_unit))


@inlined
def key(tick, pixel, p, sensor):
    """The key of an event, as in `keys.py`."""
    return (tick * sensor.height * sensor.width + pixel) * 2 + p


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
    """Likewise the columns."""
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
    """The same for one piece, in the pixel rows low … high - 1."""
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


@compiled
def scattered(source, step, purpose, table, sensor, first, last, draws):
    """What a scattered noise picks from some blocks, as `noise.py` says: how many keys it puts into `draws.picked`.

    Blocks go in groups of four; the groups first … last - 1 are taken. The blocks in which something is picked are
    listed first, so that their words, too, are drawn in one loop.
    """
    most, number, pixels = len(draws.largest), 0, sensor.height * sensor.width
    for begin in range(first, last, most):
        groups = min(most, last - begin)
        draw_counts(source, begin, step, purpose, groups, draws)
        hits = list_blocks(begin, groups, table, pixels, draws)
        draw_choices(source, step, purpose, hits, draws)
        for i in range(hits):
            block = np.int64(draws.block[i])
            size = min(pixels - block * BLOCK, BLOCK)
            count = how_many(draws.word[i], table[0 if size == BLOCK else 1])
            chosen, polarities = choose(source, block, step, purpose, size, count, draws.choosing[:, i])
            while chosen:
                bit = chosen & (~chosen + ONE)
                chosen ^= bit
                p = 1 if polarities & bit else 0
                draws.picked[number] = key(step, block * BLOCK + bit_number(bit), p, sensor)
                number += 1
    return number


@inlined
def groups_of(sensor):
    """How many groups of blocks a frame has."""
    return (sensor.height * sensor.width + GROUP * BLOCK - 1) // (GROUP * BLOCK)


@compiled
def draw_counts(source, begin, step, purpose, number, draws):
    """Philox for consecutive groups, and the largest of the words, in a loop that compiles to vector instructions."""
    drawn, largest = draws.counting, draws.largest
    for i in unsigned_range(ZERO, number):
        a, b, c, d = words(source.seed, np.uint64(begin) + i, step, source.index, purpose)
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i], largest[i] = a, b, c, d, max(max(a, b), max(c, d))


@compiled
def list_blocks(begin, groups, table, pixels, draws):
    """List the blocks of some groups in which something is picked; how many they are.

    Few are, and where is hard to foresee. So each is put down, and the next one in its place if it is none of them.
    """
    hits, found, blocks = ZERO, ZERO, (pixels + BLOCK - 1) // BLOCK
    rare = np.uint64(min(table[0, 0], table[1, 0]))
    for i in unsigned_range(ZERO, groups):
        draws.group[found] = i
        found += np.int64(draws.largest[i] >= rare)
    for n in unsigned_range(ZERO, found):
        i = draws.group[n]
        first = (begin + np.int64(i)) * GROUP
        for block in range(first, first + GROUP):
            word, is_whole = draws.counting[block - first, i], (block + 1) * BLOCK <= pixels
            draws.block[hits], draws.word[hits] = np.uint64(block), np.int64(word)
            hits += np.int64((np.int64(word) >= table[0 if is_whole else 1, 0]) & (block < blocks))
    return hits


@compiled
def draw_choices(source, step, purpose, number, draws):
    """Philox for the listed blocks, likewise."""
    drawn = draws.choosing
    for i in unsigned_range(ZERO, number):
        a, b, c, d = words(source.seed, draws.block[i], step, source.index, purpose + ROUND)
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i] = a, b, c, d


@inlined
def choose(source, block, step, purpose, size, count, four):
    """Floyd's sample of `count` out of `size` pixels, as masks: all of them, and those that are ON.

    `four` has the words of round 1, and is used up.
    """
    chosen, polarities = NONE, NONE
    for i in range(count):
        if i % 4 == 0 and i > 0:
            later = purpose + ROUND * (1 + i // 4)
            four[0], four[1], four[2], four[3] = words(source.seed, block, step, source.index, later)
        number = pick(four[i % 4], size - count + i, chosen)
        chosen |= ONE << number
        polarities |= (four[i % 4] & ONE) << number
    return chosen, polarities


@compiled
def covered(pieces, frame, y, sensor):
    """First pixel and end of the part of row y that crossings enclose."""
    left, right = sensor.width, ZERO
    for piece in range(len(pieces.convex)):
        if frame.low[piece] <= y < frame.high[piece]:
            for s in range(sensor.f):
                begin = frame.cols[pieces.slot[piece], s, y]
                end = frame.cols[pieces.slot[piece + 1] - 1, s, y]
                if begin != ABSENT and begin < end:
                    left, right = min(left, begin // sensor.f), max(right, (end - 1) // sensor.f + 1)
    return left, right


@compiled
def show(area, width, pixels, changes):
    """Bring `activation` up to date, and let what was missing in the last frame reappear."""
    for y in range(area.top, area.bottom):
        for word in range(changes.touched.shape[1]):
            rest = changes.touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * WORD_BITS + bit_number(bit)
                pixels.activation[y, x] += changes.change[y, x]
    for i in range(pixels.numbers[HIDDEN]):
        y, x = pixels.hidden[i] // width, pixels.hidden[i] % width
        changes.change[y, x] += pixels.hidden_counts[i]
        touch(changes.touched, y, x)


@compiled
def hide(step, scene, frame, pixels, changes, draws):
    """Shape noise: take the pixels that are missing in this frame out of it, and keep their activations."""
    sensor, pieces, activation = scene.sensor, scene.pieces, pixels.activation
    wide = GROUP * BLOCK  # pixels in a group
    begin, end, done = sensor.height, ZERO, ZERO
    for piece in range(len(pieces.convex)):
        begin, end = hull(begin, end, frame.low[piece], frame.high[piece])
    number = 0
    for y in range(begin, end):
        left, right = covered(pieces, frame, y, sensor)
        if left >= right:
            continue
        first, last = max(done, (y * sensor.width + left) // wide), (y * sensor.width + right - 1) // wide + 1
        done = last  # a group may have pixels of several rows, and is asked once
        for i in range(scattered(scene.source, step, SHAPE, scene.noise.shape, sensor, first, last, draws)):
            pixel = (draws.picked[i] - key(step, 0, 0, sensor)) // 2
            row, x = pixel // sensor.width, pixel % sensor.width
            if activation[row, x] != 0:
                pixels.hidden[number], pixels.hidden_counts[number] = pixel, activation[row, x]
                number += 1
                changes.change[row, x] -= activation[row, x]
                touch(changes.touched, row, x)
    pixels.numbers[HIDDEN] = number


@inlined
def find_changes(step, reference, scene, old, new, pixels, changes, draws, scratch):
    """Add up what differs between two frames, shape noise included; where it may. A reference is compared with none."""
    area = Area(scene.sensor.height, ZERO, ZERO, ZERO)
    if scene.noise.has_shape or scene.model.stationary or not reference:
        area = compare(scene, old, new, changes, scratch)
    if scene.noise.has_shape:
        show(area, scene.sensor.width, pixels, changes)
        hide(step, scene, new, pixels, changes, draws)
        area = Area(ZERO, scene.sensor.height, ZERO, np.int64(changes.touched.shape[1]))
    return area


@compiled
def discard(area, changes):
    """Forget the changes in some rows."""
    for y in range(area.top, area.bottom):
        for x in range(changes.change.shape[1]):
            changes.change[y, x] = 0
        for word in range(changes.touched.shape[1]):
            changes.touched[y, word] = NONE


@compiled
def touch_pending(area, pixels, changes):
    """Mark the pixels that still hold more than a threshold; the area with them."""
    top, bottom, left, right = area
    width = pixels.v.shape[1]
    for i in range(pixels.numbers[PENDING]):
        y, x = pixels.pending[i] // width, pixels.pending[i] % width
        touch(changes.touched, y, x)
        top, bottom = hull(top, bottom, y, y + 1)
        left, right = hull(left, right, x // WORD_BITS, x // WORD_BITS + 1)
    pixels.numbers[PENDING] = 0
    return Area(top, bottom, left, right)


@compiled
def begin_block(y, x, model, source, pixels):
    """The initial state of the integrator at a pixel, and of some neighbours in its row."""
    width, block = pixels.v.shape[1], x // TOGETHER * TOGETHER
    pixel, v = y * width + block, pixels.v[y, block:]
    for i in unsigned_range(ZERO, min(TOGETHER, width - block)):
        word, other, _, _ = words(source.seed, np.uint64(pixel) + i, 0, source.index, INITIAL)
        drawn = initial_state(word, model.largest) if model.largest > 0 else model.initial
        if model.stationary:
            left_by_dark = np.int64((other * np.uint64(model.actors)) >> SHIFT) < model.dark
            drawn = stationary_state(word, model.threshold, left_by_dark)
        v[i] = np.int32(drawn + BIAS)
    pixels.begun[pixels.numbers[BEGUN]] = pixel
    pixels.numbers[BEGUN] += 1


@compiled
def begin_covered(area, scene, pixels, changes):
    """The stationary state of the integrators that a shape covers in the first picture, which is in `changes`."""
    model, source = scene.model, scene.source
    for y in range(area.top, area.bottom):
        for word in range(area.left, area.right):
            rest = changes.touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * WORD_BITS + bit_number(bit)
                if changes.change[y, x] != 0:
                    if pixels.v[y, x] == 0:
                        begin_block(y, x, model, source, pixels)
                    drawn = words(source.seed, y * scene.sensor.width + x, 0, source.index, INITIAL)[0]
                    state = stationary_state(drawn, model.threshold, changes.change[y, x] > 0)
                    pixels.v[y, x] = np.int32(state + BIAS)


@compiled
def forget(pixels):
    """Integrators that another recording has begun are again not touched yet, and nothing is pending or hidden."""
    width = pixels.v.shape[1]
    for i in range(pixels.numbers[BEGUN]):
        y, block = pixels.begun[i] // width, pixels.begun[i] % width
        for x in range(block, min(block + TOGETHER, width)):
            pixels.v[y, x] = 0
            if len(pixels.fired) > 1:
                pixels.fired[y, x] = 0
    pixels.numbers[PENDING] = pixels.numbers[HIDDEN] = pixels.numbers[BEGUN] = 0


@compiled
def fire(step, area, scene, pixels, changes, picked, number, room, made):
    """Let the touched pixels of an area fire; events and background noise go into the room. The events so far."""
    touched = list_touched(area, changes)
    firing = integrate(touched, scene, pixels, changes)
    if step < 0:
        return made
    if scene.noise.drop_below > 0:
        firing = keep(step, firing, scene, changes.fired)
    return merge(key(step, 0, 0, scene.sensor), changes.fired[:firing], picked[:number], room, made)


@compiled
def list_touched(area, changes):
    """Put the touched pixels of an area into `changes.listed`, and touch none any more; how many they were."""
    number, touched, listed = ZERO, changes.touched, changes.listed
    for y in unsigned_range(area.top, area.bottom):
        for word in unsigned_range(area.left, area.right):
            rest, first = touched[y, word], (y << SHIFT) + (word << WORD_SHIFT)
            touched[y, word] = NONE
            while rest:
                listed[number] = first + np.uint64(bit_number(rest & (~rest + ONE)))
                rest &= rest - ONE
                number += 1
    return number


@compiled
def integrate(number, scene, pixels, changes):
    """Let the integrators of the listed pixels fire: how many do. Their keys in a step go into `changes.fired`.

    Whether one fires is hard to foresee, so nothing is skipped where it does not.
    """
    model, v, change, listed, fired = scene.model, pixels.v, changes.change, changes.listed, changes.fired
    firing = ZERO
    for n in unsigned_range(ZERO, number):
        y, x = listed[n] >> SHIFT, listed[n] & LOW
        pixel = np.int64(y) * scene.sensor.width + np.int64(x)
        if v[y, x] == 0:
            begin_block(np.int64(y), np.int64(x), model, scene.source, pixels)
        state = np.int64(v[y, x]) - BIAS
        _, off, on, left = integrate_and_fire(state, np.int64(change[y, x]), model.threshold, model.to_zero)
        change[y, x], v[y, x] = 0, left + BIAS
        if (left < -model.threshold) | (left > model.threshold):
            pixels.pending[pixels.numbers[PENDING]] = pixel
            pixels.numbers[PENDING] += 1
        fired[firing] = 2 * pixel + np.int64(on)
        firing += np.int64(off | on)
    return firing


@compiled
def keep(step, number, scene, fired):
    """Event noise: keep what it does not drop of the events of a step; how many are left."""
    source, left = scene.source, ZERO
    for n in unsigned_range(ZERO, number):
        word = words(source.seed, fired[n] // 2, step, source.index, EVENT)[0]
        fired[left] = fired[n]
        left += np.int64(not dropped(word, scene.noise.drop_below))
    return left


@compiled
def merge(first_key, fired, picked, room, made):
    """Put the events of a step, and its background noise, into the room in the order of keys; the events so far.

    An event of the signal takes the place of one of background noise with the same key.
    """
    i, j, keys, background = ZERO, ZERO, room.keys, room.background
    while i < len(fired) and j < len(picked):
        event, noise = first_key + fired[i], picked[j]
        keys[made], background[made] = min(event, noise), noise < event
        i += np.int64(event <= noise)
        j += np.int64(noise <= event)
        made += 1
    for n in range(i, len(fired)):
        keys[made], background[made] = first_key + fired[n], False
        made += 1
    for n in range(j, len(picked)):
        keys[made], background[made] = picked[n], True
        made += 1
    return made


@compiled
def begin_recording(area, scene, pixels, changes):
    """The first picture is compared with nothing and fires nothing; stationary integrators look at it."""
    if scene.model.stationary:
        begin_covered(area, scene, pixels, changes)
    discard(area, changes)


@inlined
def run_steps(coefficients, steps, fresh, scene, old, new, pixels, changes, draws, scratch, room):
    """Run one recording over the frames at `steps`, as long as there is room for what one more step could bring.

    Puts the keys and background flags of the events at steps >= 0 into `room`; how many steps were done, how many
    events there are.

    With `fresh`, the first frame is the one before the first step: it is compared with nothing and fires nothing.
    """
    sensor, made = scene.sensor, ZERO
    if fresh:
        forget(pixels)
    for i in range(len(steps)):
        if made + 2 * sensor.height * sensor.width > len(room.keys):  # in a step, a pixel fires once, and noise once
            return i, made
        step, reference = steps[i], fresh and i == 0
        find_crossings(scene.pieces, coefficients[i], sensor, new)
        area = find_changes(step, reference, scene, old, new, pixels, changes, draws, scratch)
        old, new = new, old
        if reference:
            begin_recording(area, scene, pixels, changes)
            continue
        area = touch_pending(area, pixels, changes)
        number = 0
        if scene.noise.has_background and step >= 0:
            table, groups = scene.noise.background, groups_of(sensor)
            number = scattered(scene.source, step, BACKGROUND, table, sensor, ZERO, groups, draws)
        made = fire(step, area, scene, pixels, changes, draws.picked, number, room, made)
    return len(steps), made


@compiled
def simulate_steps(coefficients, steps, fresh, scene, old, new, pixels, changes, draws, scratch, room):
    """`run_steps` of plain tuples, as `compiled.py` hands them over."""
    sensor, pieces, model, noise, source = scene
    nearer, seen_before, seen_after, cover_before, cover_after, lists, sums = scratch
    return run_steps(
        coefficients, steps, fresh,
        Scene(Sensor(*sensor), Pieces(*pieces), Model(*model), Noise(*noise), Source(*source)),
        Crossings(*old), Crossings(*new), Pixels(*pixels), Changes(*changes), Draws(*draws),
        Scratch(nearer, seen_before, seen_after, Crossings(*cover_before), Crossings(*cover_after), lists, Sums(*sums)),
        Room(*room),
    )  # fmt: skip


ENTRIES = (simulate_steps,)  # what can be called from Python

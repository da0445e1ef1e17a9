"""The compiled part of the `cpu` backend: one recording, step by step, visiting only what changes.

For each step the crossings of every sub-row are found, compared with those of the step before, and the
difference is added up in the pixels between old and new crossings; no other pixel is looked at, except those that
still hold more than a threshold from an earlier step. Order of operations and names are those of `torch_backend.py`.

Compiled by `numba_backend.py`. What an edit of another file could change comes in as an argument, or is checked there,
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
INITIAL, SHAPE, EVENT, BACKGROUND = 2, 3, 4, 5  # purposes
BLOCK = 32
END = np.int64(2**40)  # beyond every column
MOST_SPLIT = 4  # pieces that meet in a row and are cut by each other; more of them are walked through
BIAS = 2**30  # integrators are kept with this added, so that 0 means: not touched yet

NONE, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # each 6-bit window is another number
BIT_NUMBERS = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_NUMBERS[((1 << _bit) * int(DE_BRUIJN) & (2**64 - 1)) >> 58] = _bit

compiled: Any = njit(nogil=True, error_model="numpy")
inlined: Any = njit(nogil=True, error_model="numpy", forceinline=True)  # a call passes every array field by field


@inlined
def words(key, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`."""
    a, b = np.uint64(element) & LOW, np.uint64(step) & LOW
    c, d = np.uint64(index) & LOW, np.uint64(purpose)
    key_a, key_b = np.uint64(key) & LOW, np.uint64(key) >> SHIFT
    for _ in range(ROUNDS):
        first, second = a * MULTIPLIER_A, c * MULTIPLIER_B
        a, b, c, d = (second >> SHIFT) ^ b ^ key_a, second & LOW, (first >> SHIFT) ^ d ^ key_b, first & LOW
        key_a, key_b = (key_a + KEY_STEP_A) & LOW, (key_b + KEY_STEP_B) & LOW
    return a, b, c, d


@inlined
def ceiling(value, most):
    """ceil(value) as an integer, clipped to 0 … most. A crossing at x is the column ceiling(x - 0.5, …)."""
    if value <= 0.0:
        return 0
    if value >= most:
        return most
    return math.ceil(value)


@compiled
def find_crossings(pieces, coefficients, width_fine, rows, frame):
    """Sort the crossings of each piece into its rows, low[piece] … high[piece]: cols[row, slot …], count[piece, row].

    total[row] is the number of all crossings, and only[row] the piece that has them, or -1 if several have.
    """
    cols, count, total, only, low, high = frame
    first, is_ellipse, slot = pieces
    for piece in range(len(is_ellipse)):
        for r in range(low[piece], high[piece]):
            count[piece, r] = 0
            total[r] = 0
    for piece in range(len(is_ellipse)):
        base, begin, end = slot[piece], rows, 0
        if is_ellipse[piece]:
            ellipse = coefficients[first[piece]]
            centre_y, reach, centre_x, tilt, width = ellipse[0], ellipse[1], ellipse[2], ellipse[3], ellipse[4]
            extent = math.sqrt(reach)
            begin = ceiling(centre_y - extent - 1.5, rows)
            end = ceiling(centre_y + extent + 0.5, rows)
            for r in range(begin, end):
                dy = (r + 0.5) - centre_y
                gap = reach - dy * dy
                if gap > 0:
                    half = width * math.sqrt(gap)
                    middle = centre_x + tilt * dy
                    cols[r, base] = ceiling(middle - half - 0.5, width_fine)
                    cols[r, base + 1] = ceiling(middle + half - 0.5, width_fine)
                    count[piece, r] = 2
        else:
            for side in range(first[piece], first[piece + 1]):
                top, bottom = coefficients[side, 0], coefficients[side, 1]
                x_top, slope = coefficients[side, 2], coefficients[side, 3]
                side_begin, side_end = ceiling(top - 0.5, rows), ceiling(bottom - 0.5, rows)
                begin, end = min(begin, side_begin), max(end, side_end)
                for r in range(side_begin, side_end):
                    x = x_top + ((r + 0.5) - top) * slope
                    k = base + count[piece, r]
                    found = ceiling(x - 0.5, width_fine)
                    while k > base and cols[r, k - 1] > found:
                        cols[r, k] = cols[r, k - 1]
                        k -= 1
                    cols[r, k] = found
                    count[piece, r] += 1
        low[piece], high[piece] = begin, max(begin, end)
        for r in range(begin, end):
            if count[piece, r] > 0:
                only[r] = piece if total[r] == 0 else -1
                total[r] += count[piece, r]


@inlined
def difference(a0, b0, a1, b1, bright):
    """The columns in which the span a1 … b1 differs from a0 … b0, as two times (begin, end, change per sub-pixel)."""
    if b0 <= a1 or b1 <= a0:
        return a0, b0, -bright, a1, b1, bright
    left, right = bright if a1 < a0 else -bright, bright if b0 < b1 else -bright
    return min(a0, a1), max(a0, a1), left, min(b0, b1), max(b0, b1), right


@compiled
def compare_rows(pieces, intensity, geometry, old, new, change, touched, pixel_of, scratch):
    """Add up in `change` how the activation of each pixel differs between the old and the new crossings.

    Returns the pixel rows that may have changed, as first and end.
    """
    _, height, f = geometry
    begins, ends, amounts, active, lefts, rights, spans, seen = scratch
    slot = pieces[2]
    old_cols, old_count, old_total, old_only, old_low, old_high = old
    new_cols, new_count, new_total, new_only, new_low, new_high = new
    begin, end = height * f, 0
    for piece in range(len(intensity)):
        if old_low[piece] < old_high[piece]:
            begin, end = min(begin, old_low[piece]), max(end, old_high[piece])
        if new_low[piece] < new_high[piece]:
            begin, end = min(begin, new_low[piece]), max(end, new_high[piece])
    if begin >= end:
        return height, 0
    for y in range(begin // f, (end - 1) // f + 1):
        for r in range(y * f, (y + 1) * f):
            was, now = old_total[r], new_total[r]
            if was == 0 and now == 0:
                continue
            piece = new_only[r] if now else old_only[r]
            meet, simple, found = False, True, 1  # may spans of pieces meet; has each at most one; how many pieces
            active[0] = piece
            if piece < 0 or was > 2 or now > 2 or (was > 0 and old_only[r] != piece):
                found = 0
                for piece in range(len(intensity)):
                    was, now = old_count[piece, r], new_count[piece, r]
                    if was == 0 and now == 0:
                        continue
                    base = slot[piece]
                    lefts[found] = min(old_cols[r, base] if was else END, new_cols[r, base] if now else END)
                    rights[found] = max(
                        old_cols[r, base + was - 1] if was else -1, new_cols[r, base + now - 1] if now else -1
                    )
                    simple = simple and was <= 2 and now <= 2
                    for k in range(found):
                        meet = meet or (lefts[found] < rights[k] and lefts[k] < rights[found])
                    active[found] = piece
                    found += 1
            meet = meet or not simple
            parts = 0
            if meet and simple and found <= MOST_SPLIT:
                # What is seen of a piece is its span without the spans of nearer ones: take them away one by one, each
                # cutting every part into what is left and what is right of it. Parts are compared in pairs.
                for k in range(found):
                    piece = active[k]
                    base, bright = slot[piece], np.int64(intensity[piece])
                    spans[0, k] = spans[1, k] = spans[2, k] = spans[3, k] = END
                    if old_count[piece, r]:
                        spans[0, k], spans[1, k] = old_cols[r, base], old_cols[r, base + 1]
                    if new_count[piece, r]:
                        spans[2, k], spans[3, k] = new_cols[r, base], new_cols[r, base + 1]
                for k in range(found):
                    bright = np.int64(intensity[active[k]])
                    for side in range(4):
                        seen[side, 0] = spans[side, k]
                    number = 1
                    for nearer in range(k + 1, found):
                        for i in range(number):
                            for frame in range(0, 4, 2):
                                left, right = seen[frame, i], seen[frame + 1, i]
                                cut_left, cut_right = spans[frame, nearer], spans[frame + 1, nearer]
                                before, after = min(right, cut_left), max(left, cut_right)
                                some = left < before
                                seen[frame, i] = left if some else END
                                seen[frame + 1, i] = before if some else END
                                some = after < right
                                seen[frame, number + i] = after if some else END
                                seen[frame + 1, number + i] = right if some else END
                        number *= 2
                    for i in range(number):
                        one = difference(seen[0, i], seen[1, i], seen[2, i], seen[3, i], bright)
                        if one[0] < one[1]:
                            begins[parts], ends[parts], amounts[parts] = one[0], one[1], one[2]
                            parts += 1
                        if one[3] < one[4]:
                            begins[parts], ends[parts], amounts[parts] = one[3], one[4], one[5]
                            parts += 1
            elif meet:  # walk along the row through the crossings of both frames, in order
                here = before = after = np.int64(0)
                for k in range(found):
                    lefts[k] = rights[k] = 0  # crossings of the old and of the new frame that lie behind
                while True:
                    there = END
                    for k in range(found):
                        piece = active[k]
                        if lefts[k] < old_count[piece, r]:
                            there = min(there, old_cols[r, slot[piece] + lefts[k]])
                        if rights[k] < new_count[piece, r]:
                            there = min(there, new_cols[r, slot[piece] + rights[k]])
                    if before != after and there > here:
                        begins[parts], ends[parts], amounts[parts] = here, there, after - before
                        parts += 1
                    if there == END:
                        break
                    before = after = np.int64(0)
                    for k in range(found):  # nearer pieces overwrite farther ones
                        piece = active[k]
                        base = slot[piece]
                        while lefts[k] < old_count[piece, r] and old_cols[r, base + lefts[k]] == there:
                            lefts[k] += 1
                        while rights[k] < new_count[piece, r] and new_cols[r, base + rights[k]] == there:
                            rights[k] += 1
                        before = np.int64(intensity[piece]) if lefts[k] % 2 == 1 else before
                        after = np.int64(intensity[piece]) if rights[k] % 2 == 1 else after
                    here = there
            else:
                for k in range(found):
                    piece = active[k]
                    base, bright = slot[piece], np.int64(intensity[piece])
                    a0 = b0 = a1 = b1 = np.int64(0)
                    if old_count[piece, r]:
                        a0, b0 = np.int64(old_cols[r, base]), np.int64(old_cols[r, base + 1])
                    if new_count[piece, r]:
                        a1, b1 = np.int64(new_cols[r, base]), np.int64(new_cols[r, base + 1])
                    one = difference(a0, b0, a1, b1, bright)
                    begins[parts], ends[parts], amounts[parts] = one[0], one[1], one[2]
                    begins[parts + 1], ends[parts + 1], amounts[parts + 1] = one[3], one[4], one[5]
                    parts += 2
            for k in range(parts):
                start, stop, amount = begins[k], ends[k], amounts[k]
                if start >= stop:
                    continue
                left, right = pixel_of[start], pixel_of[stop - 1]
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
    return begin // f, (end - 1) // f + 1


@compiled
def scattered(key, step, index, purpose, table, width, rows, begin, end, picked, found):
    """Append what a scattered noise picks from blocks begin … end - 1 of some rows, by the rule of `noise.py`.

    A pixel is appended to `picked` as pixel · 2 + polarity; returns how many it holds then.
    """
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + 3) // 4
    for y in range(rows[0], rows[1]):
        for group in range(begin // 4, (end + 3) // 4):
            four = words(key, y * groups + group, step, index, purpose)
            for lane in range(4):
                block = group * 4 + lane
                if block < begin or block >= end:
                    continue
                last = 1 if block == blocks - 1 else 0
                word = np.int64(four[0] if lane == 0 else four[1] if lane == 1 else four[2] if lane == 2 else four[3])
                if word < table[last, 0]:
                    continue
                count = 1
                size = width - block * BLOCK if last else BLOCK
                while count < size and word >= table[last, count]:
                    count += 1
                chosen, bits = choose(key, y * blocks + block, step, index, purpose, size, count)
                for x in range(size):
                    if (chosen >> np.uint64(x)) & ONE:
                        picked[found] = (y * width + block * BLOCK + x) * 2 + np.int64((bits >> np.uint64(x)) & ONE)
                        found += 1
    return found


@compiled
def choose(key, element, step, index, purpose, size, count):
    """Floyd's sample of `count` out of `size` pixels as a mask, and the mask of polarities."""
    chosen = bits = NONE
    four = words(key, element, step, index, purpose + 256)
    for i in range(count + 1):
        if i % 4 == 0 and i > 0:
            four = words(key, element, step, index, purpose + 256 * (1 + i // 4))
        lane = i % 4
        word = four[0] if lane == 0 else four[1] if lane == 1 else four[2] if lane == 2 else four[3]
        if i == 0:
            bits = word
            continue
        j = size - count + (i - 1)
        bit = ONE << ((word * np.uint64(j + 1)) >> SHIFT)
        if chosen & bit:
            bit = ONE << np.uint64(j)
        chosen |= bit
    return chosen, bits


@compiled
def covered(pieces, new, pixel_of, y, f, width):
    """First pixel and end of the part of row y that crossings enclose."""
    cols, count, total, _, _, _ = new
    slot = pieces[2]
    left, right = width, 0
    for r in range(y * f, (y + 1) * f):
        if total[r] > 0:
            for piece in range(len(count)):
                n = count[piece, r]
                if n > 0 and cols[r, slot[piece]] < cols[r, slot[piece] + n - 1]:
                    left = min(left, pixel_of[cols[r, slot[piece]]])
                    right = max(right, pixel_of[cols[r, slot[piece] + n - 1] - 1] + 1)
    return left, right


@inlined
def bit_number(bit):
    """Which bit of a word with one bit set it is."""
    return BIT_NUMBERS[(bit * DE_BRUIJN) >> np.uint64(58)]


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
def hide(key, step, index, table, pieces, geometry, new, pixel_of, activation, change, touched, hidden, picked):
    """Shape noise: take the pixels that are missing in this frame out of it; how many there are.

    `hidden` keeps the pixel and the activation of each of them.
    """
    width, height, f = geometry
    begin, end = height * f, 0
    for piece in range(len(pieces[1])):
        if new[4][piece] < new[5][piece]:
            begin, end = min(begin, new[4][piece]), max(end, new[5][piece])
    now = 0
    for y in range(begin // f, (end + f - 1) // f):
        left, right = covered(pieces, new, pixel_of, y, f, width)
        if left >= right:
            continue
        first, last = left // BLOCK, (right - 1) // BLOCK + 1
        found = scattered(key, step, index, SHAPE, table, width, (y, y + 1), first, last, picked, 0)
        for i in range(found):
            x = picked[i] // 2 - y * width
            if activation[y, x] != 0:
                hidden[0, now], hidden[1, now] = picked[i] // 2, activation[y, x]
                now += 1
                change[y, x] -= activation[y, x]
                touched[y, x >> 6] |= ONE << np.uint64(x & 63)
    return now


@compiled
def most_events(touched, first, last):
    """More than the number of marked pixels, at little cost: 64 for each word with a mark."""
    found = 0
    for y in range(first, last):
        for word in range(touched.shape[1]):
            if touched[y, word]:
                found += 64
    return found


@compiled
def larger(keys, background, room):
    """Arrays with the same events and room for at least `room` of them."""
    more_keys, more_background = np.empty(room + len(keys), np.int64), np.empty(room + len(keys), np.bool_)
    more_keys[: len(keys)] = keys
    more_background[: len(keys)] = background
    return more_keys, more_background


@compiled
def simulate_steps(coefficients, steps, fresh, pieces, intensity, geometry, model, noise, identity, state, scratch):
    """Run one recording over the frames at `steps`; keys and background flags of the events at steps >= 0.

    With `fresh`, the first frame is the one before the first step: it is compared with nothing and fires nothing.
    """
    width, height, f = geometry
    threshold, to_zero, initial, drawn = model
    shape_table, has_shape, drop_below, background_table, has_background = noise
    key, index = identity
    old, new, v, activation, change, touched, hidden, pending, counts, picked, pixel_of = state
    keys, background, made = np.empty(4096, np.int64), np.empty(4096, np.bool_), 0
    blocks = (width + BLOCK - 1) // BLOCK
    for i in range(len(steps)):
        step = steps[i]
        find_crossings(pieces, coefficients[i], width * f, height * f, new)
        reference = fresh and i == 0
        first, last = height, 0
        if has_shape or not reference:
            first, last = compare_rows(pieces, intensity, geometry, old, new, change, touched, pixel_of, scratch)
        if has_shape:
            show(width, first, last, activation, change, touched, hidden, counts[1])
            counts[1] = hide(
                key, step, index, shape_table, pieces, geometry, new, pixel_of,
                activation, change, touched, hidden, picked,
            )  # fmt: skip
            first, last = 0, height
        old, new = new, old
        if reference:
            change[first:last] = 0
            touched[first:last] = 0
            continue
        for k in range(counts[0]):
            y, x = pending[k] // width, pending[k] % width
            touched[y, x >> 6] |= ONE << np.uint64(x & 63)
            first, last = min(first, y), max(last, y + 1)
        counts[0] = 0
        found, other = 0, 0
        if has_background and step >= 0:
            found = scattered(key, step, index, BACKGROUND, background_table, width, (0, height), 0, blocks, picked, 0)
        # Made room for once per step: rebinding arrays where events are written would count references there.
        room = made + found + most_events(touched, first, last)
        if room > len(keys):
            keys, background = larger(keys, background, room)
        offset = step * height * width * 2
        for y in range(first, last):
            for word in range(touched.shape[1]):
                rest = touched[y, word]
                touched[y, word] = NONE
                while rest:
                    bit = rest & (~rest + ONE)
                    rest ^= bit
                    x = word * 64 + bit_number(bit)
                    pixel = y * width + x
                    held = v[y, x]
                    if held == 0:
                        held = initial + BIAS
                        if drawn > 0:
                            chance = words(key, pixel, 0, index, INITIAL)[0]
                            held = np.int64((chance * np.uint64(2 * drawn + 1)) >> SHIFT) - drawn + BIAS
                    now = held - BIAS + change[y, x]
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
    return keys[:made].copy(), background[:made].copy()

"""The compiled part of the `cpu` backend: one recording, step by step, visiting only what changes.

For each step the crossings of every sub-row are found, compared with those of the step before, and the
difference is added up in the pixels between old and new crossings; no other pixel is looked at, except those that
still hold more than a threshold from an earlier step. Order of operations and names are those of `torch_backend.py`.

Plain functions here, compiled by `numba_backend.py`. Everything that an edit of another file could change comes in as an
argument, or is checked there, because numba's cache looks at one file only.
"""

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

compiled: Any = njit(nogil=True)


@compiled
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


@compiled
def column(x, right):
    """The integer column of a crossing at x."""
    x = x - 0.5
    if x <= 0.0:
        return 0
    if x >= right:
        return right
    return int(math.ceil(x))


@compiled
def row_bound(y, rows):
    """ceil(y) as a row, clipped to 0 … rows."""
    if y <= 0.0:
        return 0
    if y >= rows:
        return rows
    return int(math.ceil(y))


@compiled
def find_crossings(pieces, coefficients, width_fine, rows, cols, count, total, only, low, high):
    """Sort the crossings of each piece into its rows: cols[row, slot …], count[piece, row].

    total[row] is the number of all crossings, and only[row] the piece that has them, or -1 if several have.
    """
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
            begin = row_bound(centre_y - extent - 1.5, rows)
            end = row_bound(centre_y + extent + 0.5, rows)
            for r in range(begin, end):
                dy = (r + 0.5) - centre_y
                gap = reach - dy * dy
                if gap > 0:
                    half = width * math.sqrt(gap)
                    middle = centre_x + tilt * dy
                    cols[r, base] = column(middle - half, width_fine)
                    cols[r, base + 1] = column(middle + half, width_fine)
                    count[piece, r] = 2
        else:
            for side in range(first[piece], first[piece + 1]):
                top, bottom = coefficients[side, 0], coefficients[side, 1]
                x_top, slope = coefficients[side, 2], coefficients[side, 3]
                side_begin, side_end = row_bound(top - 0.5, rows), row_bound(bottom - 0.5, rows)
                begin, end = min(begin, side_begin), max(end, side_end)
                for r in range(side_begin, side_end):
                    x = x_top + ((r + 0.5) - top) * slope
                    k = base + count[piece, r]
                    found = column(x, width_fine)
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


@compiled
def add(change, touched, bounds, pixel_of, f, width, y, begin, end, amount):
    """Add `amount` for each sub-pixel of the columns begin … end - 1 of a sub-row of pixel row y."""
    if begin >= end:
        return
    left, right = pixel_of[begin], pixel_of[end - 1]
    if left == right:
        change[y, left] += amount * (end - begin)
    else:
        change[y, left] += amount * ((left + 1) * f - begin)
        for x in range(left + 1, right):
            change[y, x] += amount * f
        change[y, right] += amount * (end - right * f)
    for x in range(left, right + 1):
        touched[y, x] = 1
    bounds[y, 0] = min(bounds[y, 0], left)
    bounds[y, 1] = max(bounds[y, 1], right + 1)


@compiled
def visible(pieces, intensity, cols, count, r, at, value, cursor):
    """The picture along one sub-row: value[i] holds from column at[i] up to at[i + 1]. Nearer pieces hide farther."""
    _, is_ellipse, slot = pieces
    length = 0
    present = np.int64(0)
    for piece in range(len(is_ellipse)):
        cursor[piece] = 0
    while True:
        nearest = np.int64(2**62)
        for piece in range(len(is_ellipse)):
            if cursor[piece] < count[piece, r]:
                nearest = min(nearest, np.int64(cols[r, slot[piece] + cursor[piece]]))
        if nearest == 2**62:
            return length
        present = 0
        for piece in range(len(is_ellipse)):
            while cursor[piece] < count[piece, r] and cols[r, slot[piece] + cursor[piece]] == nearest:
                cursor[piece] += 1
            if cursor[piece] % 2 == 1:
                present = intensity[piece]
        at[length], value[length] = nearest, present
        length += 1


@compiled
def compare_rows(pieces, intensity, geometry, old, new, change, touched, bounds, pixel_of, scratch):
    """Add up in `change` how the activation of each pixel differs between the old and the new crossings."""
    width, height, f = geometry
    old_cols, old_count, old_total, old_only, old_low, old_high = old
    new_cols, new_count, new_total, new_only, new_low, new_high = new
    old_at, old_value, new_at, new_value, cursor = scratch
    slot = pieces[2]
    begin, end = height * f, 0
    for piece in range(len(intensity)):
        if old_low[piece] < old_high[piece]:
            begin, end = min(begin, old_low[piece]), max(end, old_high[piece])
        if new_low[piece] < new_high[piece]:
            begin, end = min(begin, new_low[piece]), max(end, new_high[piece])
    if begin >= end:
        return 0, 0
    for y in range(begin // f, (end - 1) // f + 1):
        for r in range(y * f, (y + 1) * f):
            was, now = old_total[r], new_total[r]
            if was == 0 and now == 0:
                continue
            piece = new_only[r] if now else old_only[r]
            if piece >= 0 and was <= 2 and now <= 2 and (was == 0 or now == 0 or old_only[r] == piece):
                base, bright = slot[piece], intensity[piece]
                a0 = b0 = a1 = b1 = np.int32(0)
                if was:
                    a0, b0 = old_cols[r, base], old_cols[r, base + 1]
                if now:
                    a1, b1 = new_cols[r, base], new_cols[r, base + 1]
                if b0 <= a1 or b1 <= a0:
                    add(change, touched, bounds, pixel_of, f, width, y, a0, b0, -bright)
                    add(change, touched, bounds, pixel_of, f, width, y, a1, b1, bright)
                else:
                    add(change, touched, bounds, pixel_of, f, width, y, a1, a0, bright)
                    add(change, touched, bounds, pixel_of, f, width, y, a0, a1, -bright)
                    add(change, touched, bounds, pixel_of, f, width, y, b0, b1, bright)
                    add(change, touched, bounds, pixel_of, f, width, y, b1, b0, -bright)
                continue
            olds = visible(pieces, intensity, old_cols, old_count, r, old_at, old_value, cursor)
            news = visible(pieces, intensity, new_cols, new_count, r, new_at, new_value, cursor)
            i = j = 0
            here = np.int64(0)
            before = after = np.int64(0)
            while i < olds or j < news:
                there = old_at[i] if j >= news or (i < olds and old_at[i] <= new_at[j]) else new_at[j]
                if before != after:
                    add(change, touched, bounds, pixel_of, f, width, y, here, there, after - before)
                if i < olds and old_at[i] == there:
                    before = old_value[i]
                    i += 1
                if j < news and new_at[j] == there:
                    after = new_value[j]
                    j += 1
                here = there
    return begin // f, (end - 1) // f + 1


@compiled
def scattered(key, step, index, purpose, table, width, y, begin, end, pixels, polarities, found):
    """Append the pixels of row y that a scattered noise picks, by the rule of `noise.py`, from blocks begin … end - 1."""
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + 3) // 4
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
                if (chosen >> np.uint64(x)) & np.uint64(1):
                    pixels[found] = y * width + block * BLOCK + x
                    polarities[found] = (bits >> np.uint64(x)) & np.uint64(1)
                    found += 1
    return found


@compiled
def choose(key, element, step, index, purpose, size, count):
    """Floyd's sample of `count` out of `size` pixels as a mask, and the mask of polarities."""
    one = np.uint64(1)
    chosen = np.uint64(0)
    bits = np.uint64(0)
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
        bit = one << ((word * np.uint64(j + 1)) >> SHIFT)
        if chosen & bit:
            bit = one << np.uint64(j)
        chosen |= bit
    return chosen, bits


@compiled
def touch(touched, bounds, y, x):
    touched[y, x] = 1
    bounds[y, 0] = min(bounds[y, 0], x)
    bounds[y, 1] = max(bounds[y, 1], x + 1)


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


@compiled
def show(geometry, rows, activation, change, touched, bounds, hidden):
    """Bring `activation` up to date, and let what was missing in the last frame reappear."""
    width = geometry[0]
    for y in range(rows[0], rows[1]):
        for x in range(bounds[y, 0], bounds[y, 1]):
            activation[y, x] += change[y, x]
    pixels, amounts, was = hidden
    for i in range(was):
        y, x = pixels[i] // width, pixels[i] % width
        change[y, x] += amounts[i]
        touch(touched, bounds, y, x)


@compiled
def hide(key, step, index, table, pieces, geometry, new, pixel_of, activation, change, touched, bounds, hidden, space):
    """Shape noise: take the pixels that are missing in this frame out of it; how many there are.

    `hidden` keeps (pixel, activation) of each of them.
    """
    width, height, f = geometry
    pixels, amounts, _ = hidden
    picked, polarities = space
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
        found = scattered(key, step, index, SHAPE, table, width, y, first, last, picked, polarities, 0)
        for i in range(found):
            x = picked[i] - y * width
            amount = activation[y, x]
            if amount != 0:
                pixels[now], amounts[now] = picked[i], amount
                now += 1
                change[y, x] -= amount
                touch(touched, bounds, y, x)
    return now


@compiled
def larger(keys, background):
    """The same events with twice the room."""
    more_keys = np.empty(2 * len(keys), np.int64)
    more_background = np.empty(2 * len(keys), np.bool_)
    more_keys[: len(keys)] = keys
    more_background[: len(keys)] = background
    return more_keys, more_background


@compiled
def simulate_steps(coefficients, steps, fresh, pieces, intensity, geometry, model, noise, identity, state, scratch, space):
    """Run one recording over the frames at `steps`; keys and background flags of the events at steps >= 0.

    With `fresh`, the first frame is the one before the first step: it is compared with nothing and fires nothing.
    """
    width, height, f = geometry
    threshold, to_zero, initial, drawn = model
    shape_table, has_shape, drop_below, background_table, has_background = noise
    key, index = identity
    old, new, v, seen, activation, change, touched, bounds, pixels, amounts, pending, counts, pixel_of = state
    keys, background, made = np.empty(1024, np.int64), np.empty(1024, np.bool_), 0
    picked, polarities = space
    blocks = (width + BLOCK - 1) // BLOCK
    for i in range(len(steps)):
        step = steps[i]
        find_crossings(
            pieces, coefficients[i], width * f, height * f, new[0], new[1], new[2], new[3], new[4], new[5]
        )
        reference = fresh and i == 0
        first, last = height, 0
        if has_shape or not reference:
            first, last = compare_rows(
                pieces, intensity, geometry, old, new, change, touched, bounds, pixel_of, scratch
            )
        if has_shape:
            show(geometry, (first, last), activation, change, touched, bounds, (pixels, amounts, counts[1]))
            counts[1] = hide(
                key, step, index, shape_table, pieces, geometry, new, pixel_of, activation, change, touched, bounds,
                (pixels, amounts, counts[1]), space,
            )  # fmt: skip
            first, last = 0, height
        old, new = new, old
        if reference:
            for y in range(first, last):
                for x in range(bounds[y, 0], bounds[y, 1]):
                    change[y, x] = 0
                    touched[y, x] = 0
                bounds[y, 0], bounds[y, 1] = width, 0
            continue
        for k in range(counts[0]):
            y = pending[k] // width
            touch(touched, bounds, y, pending[k] % width)
            first, last = min(first, y), max(last, y + 1)
        counts[0] = 0
        found = 0
        if has_background and step >= 0:
            for y in range(height):
                found = scattered(
                    key, step, index, BACKGROUND, background_table, width, y, 0, blocks, picked, polarities, found
                )
        other = 0
        for y in range(first, last):
            for x in range(bounds[y, 0], bounds[y, 1]):
                if touched[y, x] == 0:
                    continue
                touched[y, x] = 0
                pixel = y * width + x
                if seen[y, x] == 0:
                    seen[y, x] = 1
                    v[y, x] = initial
                    if drawn > 0:
                        word = words(key, pixel, 0, index, INITIAL)[0]
                        v[y, x] = np.int64((word * np.uint64(2 * drawn + 1)) >> SHIFT) - drawn
                now = v[y, x] + change[y, x]
                change[y, x] = 0
                polarity = 1 if now > threshold else 0 if now < -threshold else -1
                if polarity >= 0:
                    if to_zero:
                        now = 0
                    else:
                        now += -threshold if polarity == 1 else threshold
                        if now > threshold or now < -threshold:
                            pending[counts[0]] = pixel
                            counts[0] += 1
                v[y, x] = now
                if polarity < 0 or step < 0:
                    continue
                if drop_below > 0 and np.int64(words(key, pixel, step, index, EVENT)[0]) < drop_below:
                    continue
                while other < found and picked[other] * 2 + polarities[other] <= pixel * 2 + polarity:
                    if picked[other] * 2 + polarities[other] < pixel * 2 + polarity:
                        if made == len(keys):
                            keys, background = larger(keys, background)
                        keys[made] = step * height * width * 2 + picked[other] * 2 + polarities[other]
                        background[made] = True
                        made += 1
                    other += 1
                if made == len(keys):
                    keys, background = larger(keys, background)
                keys[made] = (step * height * width + pixel) * 2 + polarity
                background[made] = False
                made += 1
            bounds[y, 0], bounds[y, 1] = width, 0
        while other < found:
            if made == len(keys):
                keys, background = larger(keys, background)
            keys[made] = step * height * width * 2 + picked[other] * 2 + polarities[other]
            background[made] = True
            made += 1
            other += 1
    return keys[:made], background[:made]

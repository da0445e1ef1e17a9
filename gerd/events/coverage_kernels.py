"""The compiled part of `coverage.py`: outlines in; what is seen of each actor, and whose edges changed a pixel, out.

A frame is the picture at one instant. Its crossings are found as in `cpu_kernels.py`, and only pixels between them are
looked at. Compiled by `compiled.py`, together with the kernels that this file uses.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu_kernels import (
    MOST_SPLIT,
    NONE,
    NOTHING,
    ONE,
    WORD_BITS,
    WORD_MASK,
    WORD_SHIFT,
    ZERO,
    Crossings,
    Pieces,
    Sensor,
    bit_number,
    find_crossings,
    find_nearer,
    hull,
    split,
    unhidden,
    unsigned_range,
)

BACKGROUND = np.int32(-1)
BLOCK = np.uint64(8)  # pixels of a row that are written together

# What stays as it is: the actor of each piece; the first piece of each actor, and the end; the pixel of each column.
Scene = namedtuple("Scene", "sensor pieces actor first_piece pixel_of")
# Room: for pieces, for crossings of what is seen of one, for crossings in a sub-row, for ends of spans of pixels in a
# row, and for the pieces that are seen in the sub-pixels of a pixel's sub-row (2, f).
Scratch = namedtuple("Scratch", "nearer visible ends spare spans labels")
# A frame: its crossings; by how much the number of sub-pixels that are seen of an actor rises from one pixel to the
# next, (actors, height, width + 2); bits for pixels in which, or right of which, it does, (actors, height, words); and
# that number, (actors, height, width), where it is needed.
View = namedtuple("View", "crossings rises marks counts")


@inlined
def box(piece, scene, frame):
    """The pixels that a piece may cover: first row and end, first column and end."""
    left, right = frame.left[piece], frame.right[piece]
    if left >= right:
        return ZERO, ZERO, NOTHING, NOTHING
    return frame.low[piece], frame.high[piece], scene.pixel_of[left], scene.pixel_of[right - 1] + np.int32(1)


@compiled
def box_of_actor(actor, scene, frame):
    """The same for all copies of an actor together."""
    low, high, left, right = ZERO, ZERO, np.int32(scene.sensor.width), NOTHING
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        top, bottom, begin, end = box(piece, scene, frame)
        low, high = hull(low, high, top, bottom)
        if top < bottom:
            left, right = min(left, begin), max(right, end)
    return low, high, left, right


@compiled
def look(coefficients, scene, scratch, view):
    """Find the crossings of a frame, and what is seen of each actor."""
    for actor in range(len(scene.first_piece) - 1):
        low, high, left, right = box_of_actor(actor, scene, view.crossings)
        for y in unsigned_range(low, high):
            for x in unsigned_range(left, right + 2):
                view.rises[actor, y, x] = 0
            for word in range(view.marks.shape[2]):
                view.marks[actor, y, word] = NONE
            if len(view.counts) > 0:
                for x in unsigned_range(left, right):
                    view.counts[actor, y, x] = 0
    find_crossings(scene.pieces, coefficients, scene.sensor, view.crossings)
    for piece in range(len(scene.actor)):
        add_piece(piece, scene, scratch, view)


@inlined
def add_piece(piece, scene, scratch, view):
    """Add what is seen of a piece to its actor: what nearer pieces leave of it."""
    frame, pieces, actor = view.crossings, scene.pieces, scene.actor[piece]
    low, high, _, _ = box(piece, scene, frame)
    if low >= high:
        return
    rises, marks = view.rises[actor], view.marks[actor]
    cols = frame.cols[pieces.slot[piece] : pieces.slot[piece + 1]]
    covering, simple = find_nearer(piece, low, high, pieces, frame, frame, scratch.nearer)
    nearer = scratch.nearer[:covering]
    if covering == 0:
        add_spans(cols, 0, len(cols), low, high, scene, rises, marks)
    elif simple and covering <= MOST_SPLIT:
        split(nearer, cols, frame, pieces.slot, low, high, scratch.visible)
        add_spans(scratch.visible, 0, 2, low, high, scene, rises, marks)
        for cut in range(covering):  # the parts that it splits off end where it does
            top, bottom = max(frame.low[nearer[cut]], low), min(frame.high[nearer[cut]], high)
            add_spans(scratch.visible, 2 << cut, 4 << cut, top, bottom, scene, rises, marks)
    else:
        add_unhidden(nearer, cols, frame, low, high, scene, scratch, rises, marks)


@compiled
def add_spans(cols, first, last, low, high, scene, rises, marks):
    """Add the spans between crossings of even and odd numbers, first … last - 1, in the rows low … high - 1."""
    f, pixel_of = np.int32(scene.sensor.f), scene.pixel_of
    for k in range(first, last - 1, 2):
        for s in range(f):
            begins, ends = cols[k, s], cols[k + 1, s]
            for y in unsigned_range(low, high):
                if begins[y] < ends[y]:
                    add_span(begins[y], ends[y], f, pixel_of, rises[y], marks[y])


@compiled
def add_unhidden(nearer, cols, frame, low, high, scene, scratch, rises, marks):
    """Add what many nearer pieces, or concave ones, leave of a piece: sub-row by sub-row."""
    f, ends = np.int32(scene.sensor.f), scratch.ends
    for y in range(low, high):
        for s in range(f):
            for k in range(0, unhidden(nearer, cols, frame, scene.pieces.slot, y, s, ends, scratch.spare), 2):
                add_span(ends[k], ends[k + 1], f, scene.pixel_of, rises[y], marks[y])


@inlined
def add_span(begin, end, f, pixel_of, rises, marks):
    """Note where the columns begin … end - 1 raise a running sum along a row of pixels, and where they end."""
    first, last = np.uint64(pixel_of[np.uint64(begin)]), np.uint64(pixel_of[np.uint64(end)])
    before, after = begin - np.int32(first) * f, end - np.int32(last) * f
    rises[first] += f - before
    rises[first + ONE] += before
    rises[last] -= f - after
    rises[last + ONE] -= after
    marks[first >> WORD_SHIFT] |= ONE << (first & WORD_MASK)
    marks[last >> WORD_SHIFT] |= ONE << (last & WORD_MASK)


@compiled
def find_spans(rises, marks, least, spans):
    """Put the spans of pixels in a row with at least so many sub-pixels into `spans`; how many ends they have."""
    number, count, carried = 0, NOTHING, NONE
    for word in range(len(marks)):
        rest = marks[word] | (marks[word] << ONE) | carried
        carried = marks[word] >> WORD_MASK
        while rest:
            bit = rest & (~rest + ONE)
            rest ^= bit
            x = word * WORD_BITS + bit_number(bit)
            was = count >= least
            count += rises[np.uint64(x)]
            if was != (count >= least):
                spans[number] = x
                number += 1
    return number


@compiled
def put_counts(scene, view, counts):
    """counts (actors, height, …): in how many sub-pixels of each pixel an actor is seen, in the actor's box."""
    for actor in range(len(counts)):
        low, high, left, right = box_of_actor(actor, scene, view.crossings)
        for y in unsigned_range(low, high):
            row, rises, count = counts[actor, y], view.rises[actor, y], NOTHING
            for x in unsigned_range(left, right):
                count += rises[x]
                row[x] = count


@compiled
def put_masks(least, scene, scratch, view, masks):
    """Mark the pixels of which an actor takes up at least so many sub-pixels."""
    for actor in range(len(masks)):
        low, high, _, _ = box_of_actor(actor, scene, view.crossings)
        for y in unsigned_range(low, high):
            row = masks[actor, y]
            for k in range(0, find_spans(view.rises[actor, y], view.marks[actor, y], least, scratch.spans), 2):
                fill_mask(scratch.spans[k], scratch.spans[k + 1], row)


@compiled
def fill_mask(begin, end, row):
    """Mark the pixels begin … end - 1: in blocks of a fixed length, the last two of which may overlap."""
    first, stop = np.uint64(begin), np.uint64(end)
    if end - begin < BLOCK:
        for x in range(first, stop):
            row[x] = True
        return
    while first < stop:
        first = min(first, stop - BLOCK)
        for i in range(BLOCK):
            row[first + i] = True
        first += BLOCK


@compiled
def put_flow(least, scene, scratch, view, motion, flow):
    """The velocity of the actor that takes up at least so many sub-pixels of a pixel."""
    spans = scratch.spans
    for actor in range(len(view.rises)):
        low, high, _, _ = box_of_actor(actor, scene, view.crossings)
        for y in unsigned_range(low, high):
            for k in range(0, find_spans(view.rises[actor, y], view.marks[actor, y], least, spans), 2):
                put_velocity(actor, y, spans[k], spans[k + 1], scene, scratch, view.crossings, motion, flow)


@inlined
def put_velocity(actor, y, begin, end, scene, scratch, frame, motion, flow):
    """The velocity of an actor in the pixels begin … end - 1 of a row: of the copy that is seen there."""
    while begin < end:
        piece, stop = copy_at(actor, y, begin, end, scene, scratch, frame)
        moves = motion[piece]
        down = float(np.int32(y)) + 0.5 - moves[7]
        fill_flow(moves[0], moves[6], moves[1] * down, moves[4], begin, stop, flow[0, y])
        fill_flow(moves[2], moves[6], moves[3] * down, moves[5], begin, stop, flow[1, y])
        begin = stop


@inlined
def copy_at(actor, y, x, end, scene, scratch, frame):
    """The piece of an actor that is seen in most of a pixel, and the end of the pixels for which that is true."""
    found, stop, number = scene.first_piece[actor], end, 0
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        low, high, left, right = box(piece, scene, frame)
        if low <= y < high and x < right:
            stop = min(stop, np.int64(right if left <= x else left))
            if left <= x:
                found, number = piece, number + 1
    if number > 1:  # hardly ever: copies of an actor are a frame apart
        found, stop = most_seen(actor, y, x, scene, scratch.labels[0], frame), x + 1
    return found, stop


@compiled
def most_seen(actor, y, x, scene, labels, frame):
    found, most = scene.first_piece[actor], 0
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        count = 0
        for s in range(scene.sensor.f):
            put_labels(y, s, x, scene, frame, labels)
            for label in labels:
                count += label == piece
        if count > most:
            found, most = piece, count
    return found


@compiled
def fill_flow(slope, centre, part, speed, begin, end, row):
    """One component of L · (q - c) + velocity at the centres of the pixels begin … end - 1 of a row."""
    for x in unsigned_range(begin, end):
        row[x] = (slope * (float(np.int32(x)) + 0.5 - centre) + part) + speed


@compiled
def put_edge_flow(scene, scratch, before, now, motion_before, motion, best, flow):
    """The velocity of the actor that takes up most of a pixel in the two frames together, the nearest of equals.

    Pixels of which an actor takes up half now are left to `put_flow`.
    """
    full = np.int32(scene.sensor.f * scene.sensor.f)
    for actor in range(len(now.counts)):
        low, high, left, right = box_of_both(actor, scene, before, now)
        for y in unsigned_range(low, high):
            for x in unsigned_range(left, right):
                best[y, x] = 0
    for actor in range(len(now.counts)):
        low, high, left, right = box_of_both(actor, scene, before, now)
        for y in unsigned_range(low, high):
            was_seen, is_seen = before.counts[actor, y], now.counts[actor, y]
            for x in unsigned_range(left, right):
                score = was_seen[x] + is_seen[x]
                if 2 * is_seen[x] < full and score > 0 and score >= best[y, x]:
                    best[y, x] = score
                    at = np.int64(x)
                    if is_seen[x] > 0:
                        put_velocity(actor, y, at, at + 1, scene, scratch, now.crossings, motion, flow)
                    else:
                        put_velocity(actor, y, at, at + 1, scene, scratch, before.crossings, motion_before, flow)


@inlined
def box_of_both(actor, scene, before, now):
    """The pixels that an actor may cover in one of two frames."""
    low, high, left, right = box_of_actor(actor, scene, before.crossings)
    top, bottom, begin, end = box_of_actor(actor, scene, now.crossings)
    low, high = hull(low, high, top, bottom)
    return low, high, min(left, begin), max(right, end)


@inlined
def named(scene, scratch, before, now):
    """Named tuples again: at a call from Python, numba finds the types of plain ones faster."""
    sensor, pieces, actor, first_piece, pixel_of = scene
    return (
        Scene(Sensor(*sensor), Pieces(*pieces), actor, first_piece, pixel_of),
        Scratch(*scratch),
        View(Crossings(*before[0]), before[1], before[2], before[3]),
        View(Crossings(*now[0]), now[1], now[2], now[3]),
    )


@compiled
def fill(value, frame):
    """A frame is filled when it is worked on, so that it is in the processor's cache by then."""
    for plane in range(frame.shape[0]):
        for y in range(frame.shape[1]):
            for x in range(frame.shape[2]):
                frame[plane, y, x] = value


@inlined
def half(scene):
    """The least number of sub-pixels that are half of a pixel."""
    return np.int32((scene.sensor.f * scene.sensor.f + 1) // 2)


@compiled
def count_frames(coefficients, scene, scratch, before, now, counts):
    """counts (frames, actors, height, width): in how many sub-pixels of each pixel each actor is seen."""
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(coefficients)):
        look(coefficients[i], scene, scratch, now)
        put_counts(scene, now, counts[i])


@compiled
def mask_frames(coefficients, edges, scene, scratch, before, now, masks):
    """masks (frames, actors, height, width): what each actor covers; with `edges` any part, and in the frame before.

    With `edges` there is one frame more than masks: the one before the first.
    """
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(coefficients)):
        look(coefficients[i], scene, scratch, now)
        if not edges:
            put_masks(half(scene), scene, scratch, now, masks[i])
            continue
        if i > 0:
            put_masks(np.int32(1), scene, scratch, now, masks[i - 1])
        if i < len(masks):
            put_masks(np.int32(1), scene, scratch, now, masks[i])


@compiled
def flow_frames(coefficients, edges, motion_before, motion, best, scene, scratch, before, now, flow):
    """flow (frames, 2, height, width): the velocity of what is seen; with `edges` also of what was in the frame before.

    `motion` (frames, pieces, 8) is that of each piece, `motion_before` that of the pieces of the frame before at the
    time of the frame: on a torus a copy may change its number in between.
    """
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(coefficients)):
        look(coefficients[i], scene, scratch, now)
        at = i - 1 if edges else i
        if edges and at >= 0:
            fill(np.float32(np.nan), flow[at])
        if edges:
            put_counts(scene, now, now.counts)
        if edges and i > 0:
            put_edge_flow(scene, scratch, before, now, motion_before[at], motion[at], best, flow[at])
        if at >= 0:
            put_flow(half(scene), scene, scratch, now, motion[at], flow[at])
        if edges:
            before, now = now, before


@inlined
def put_labels(y, s, x, scene, crossings, labels):
    """The piece that is seen in each sub-pixel of sub-row s of a pixel, or BACKGROUND."""
    pieces, f = scene.pieces, scene.sensor.f
    left, right = np.int32(x * f), np.int32(x * f + f)
    for c in range(f):
        labels[c] = BACKGROUND
    for piece in range(len(scene.actor)):
        if crossings.low[piece] <= y < crossings.high[piece]:
            for k in range(pieces.slot[piece], pieces.slot[piece + 1] - 1, 2):
                begin, end = max(crossings.cols[k, s, y], left), min(crossings.cols[k + 1, s, y], right)
                for c in range(begin, end):
                    labels[c - left] = piece


@inlined
def intensity_of(piece, pieces):
    return pieces.intensity[piece] if piece >= 0 else np.int32(0)


@compiled
def find_gains(y, x, hidden, scene, before, now, labels, gains):
    """Add up in gains (2, pieces) by how much the edge of each piece has raised the count of a pixel.

    An edge has passed a sub-pixel if another piece is seen there than before. It is that of the nearer of the two: it
    has come (gains[1]) or gone (gains[0]). `hidden` has a bit for each frame in which shape noise takes the pixel out.
    """
    gains[:] = 0
    pieces = scene.pieces
    for s in range(scene.sensor.f):
        put_labels(y, s, x, scene, before, labels[0])
        put_labels(y, s, x, scene, now, labels[1])
        for c in range(scene.sensor.f):
            was = BACKGROUND if hidden & 1 else labels[0, c]
            is_now = BACKGROUND if hidden & 2 else labels[1, c]
            if was > is_now:
                gains[0, was] += intensity_of(is_now, pieces) - intensity_of(was, pieces)
            elif is_now > was:
                gains[1, is_now] += intensity_of(is_now, pieces) - intensity_of(was, pieces)


@compiled
def strongest(sign, scene, gains):
    """What has changed a pixel: by how much, the actor that did most in the direction of `sign`, which of its copies.

    The nearest of several that did as much. The last result tells whether the copy is one of the later frame.
    """
    change, most, actor = np.int64(0), np.int64(0), np.int64(-1)
    for candidate in range(len(scene.first_piece) - 1):
        gain = np.int64(0)
        for piece in range(scene.first_piece[candidate], scene.first_piece[candidate + 1]):
            gain += gains[0, piece] + gains[1, piece]
        change += gain
        if gain != 0 and sign * gain >= most:
            most, actor = sign * gain, np.int64(candidate)
    best, copy, later = np.int64(0), np.int64(-1), False
    if actor >= 0:
        for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
            for when in range(2):
                if sign * gains[when, piece] > best:
                    best, copy, later = sign * gains[when, piece], np.int64(piece), when == 1
    return change, actor, copy, later


@compiled
def explain(coefficients, queries, scene, scratch, before, now, gains, answers):
    """answers (queries, 4): change of the count, actor, its copy, and whether as in the later of two frames.

    queries (queries, 5): frame, y, x, sign, hidden. A pixel is compared between the frame and the one before; queries
    are sorted by frame.
    """
    scene, scratch, before, now = named(scene, scratch, before, now)
    held = -1  # the frame that is in `now`
    for i in range(len(queries)):
        frame, y, x = queries[i, 0], queries[i, 1], queries[i, 2]
        if held != frame:
            before, now = now, before
            if held != frame - 1:
                find_crossings(scene.pieces, coefficients[frame - 1], scene.sensor, before.crossings)
            find_crossings(scene.pieces, coefficients[frame], scene.sensor, now.crossings)
            held = frame
        find_gains(y, x, queries[i, 4], scene, before.crossings, now.crossings, scratch.labels, gains)
        change, actor, copy, later = strongest(queries[i, 3], scene, gains)
        answers[i, 0], answers[i, 1], answers[i, 2], answers[i, 3] = change, actor, copy, later


ENTRIES = (count_frames, mask_frames, flow_frames, explain)

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
    Crossings,
    Pieces,
    Sensor,
    find_crossings,
    find_nearer,
    split,
    unhidden,
    unsigned_range,
)

BACKGROUND = np.int32(-1)

# What stays as it is: the actor of each piece; the first piece of each actor, and the end; the pixel of each column.
Scene = namedtuple("Scene", "sensor pieces actor first_piece pixel_of")
# Room for pieces, for crossings of what is seen of one, and for crossings in a sub-row.
Scratch = namedtuple("Scratch", "nearer visible ends spare")
# One of the two frames that are held: its crossings, and how many sub-pixels are seen of each piece, (pieces, height,
# width + 2), which is 0 outside of the piece's box.
View = namedtuple("View", "crossings seen")


@inlined
def box(piece, scene, view):
    """The pixels that a piece may cover: first row and end, first column and end."""
    frame, pixel_of = view.crossings, scene.pixel_of
    left, right = frame.left[piece], frame.right[piece]
    if left >= right:
        return 0, 0, 0, 0
    return frame.low[piece], frame.high[piece], pixel_of[left], pixel_of[right - 1] + 1


@compiled
def look(coefficients, scene, scratch, view):
    """Find the crossings of a frame, and count what is seen of each piece."""
    clear(scene, view)
    find_crossings(scene.pieces, coefficients, scene.sensor, view.crossings)
    for piece in range(len(scene.actor)):
        count_piece(piece, scene, scratch, view)


@inlined
def clear(scene, view):
    for piece in range(len(scene.actor)):
        low, high, left, right = box(piece, scene, view)
        for y in unsigned_range(low, high):
            row = view.seen[piece, y]
            for x in unsigned_range(left, right + 2):
                row[x] = 0


@inlined
def count_piece(piece, scene, scratch, view):
    """Count the sub-pixels of each pixel in which a piece is seen: what nearer pieces leave of it."""
    frame, pieces, seen = view.crossings, scene.pieces, view.seen[piece]
    low, high, left, right = box(piece, scene, view)
    if low >= high:
        return
    cols = frame.cols[pieces.slot[piece] : pieces.slot[piece + 1]]
    covering, simple = find_nearer(piece, low, high, pieces, frame, frame, scratch.nearer)
    nearer = scratch.nearer[:covering]
    if covering == 0:
        add_spans(cols, len(cols), low, high, scene, seen)
    elif simple and covering <= MOST_SPLIT:
        split(nearer, cols, frame, pieces.slot, low, high, scratch.visible)
        add_spans(scratch.visible, 2 << covering, low, high, scene, seen)
    else:
        add_unhidden(nearer, cols, frame, low, high, scene, scratch, seen)
    for y in unsigned_range(low, high):
        row, count = seen[y], np.int32(0)
        for x in unsigned_range(left, right):
            count += row[x]
            row[x] = count
        row[np.uint64(right)] = row[np.uint64(right + 1)] = 0


@compiled
def add_spans(cols, slots, low, high, scene, seen):
    """Add the spans between crossings of even and odd numbers, in the rows low … high - 1."""
    f, pixel_of = np.int32(scene.sensor.f), scene.pixel_of
    for k in range(0, slots - 1, 2):
        for s in range(f):
            begins, ends = cols[k, s], cols[k + 1, s]
            for y in unsigned_range(low, high):
                if begins[y] < ends[y]:
                    add_span(seen[y], begins[y], ends[y], f, pixel_of)


@compiled
def add_unhidden(nearer, cols, frame, low, high, scene, scratch, seen):
    """Add what many nearer pieces, or concave ones, leave of a piece: sub-row by sub-row."""
    f, ends = np.int32(scene.sensor.f), scratch.ends
    for y in range(low, high):
        for s in range(f):
            for k in range(0, unhidden(nearer, cols, frame, scene.pieces.slot, y, s, ends, scratch.spare), 2):
                add_span(seen[y], ends[k], ends[k + 1], f, scene.pixel_of)


@inlined
def add_span(row, begin, end, f, pixel_of):
    """Note where the columns begin … end - 1 raise a running sum along a row of pixels, and where they end."""
    first, last = pixel_of[np.uint64(begin)], pixel_of[np.uint64(end)]
    before, after = begin - first * f, end - last * f
    row[np.uint64(first)] += f - before
    row[np.uint64(first + 1)] += before
    row[np.uint64(last)] -= f - after
    row[np.uint64(last + 1)] -= after


@inlined
def total(actor, y, x, scene, view):
    """In how many sub-pixels of a pixel an actor is seen, whichever copy of it."""
    count = np.int32(0)
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        count += view.seen[piece, y, x]
    return count


@inlined
def copy_of(actor, y, x, scene, view):
    """The piece of an actor that is seen in most of a pixel."""
    best = scene.first_piece[actor]
    for piece in range(best + 1, scene.first_piece[actor + 1]):
        if view.seen[piece, y, x] > view.seen[best, y, x]:
            best = piece
    return best


@compiled
def is_single(actor, scene, view):
    """Whether at most one piece of an actor can be seen, so that its counts are those of the actor."""
    number = 0
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        low, high, _, _ = box(piece, scene, view)
        number += low < high
    return number <= 1


@compiled
def put_counts(scene, view, counts):
    for piece in range(len(scene.actor)):
        low, high, left, right = box(piece, scene, view)
        for y in unsigned_range(low, high):
            row, seen = counts[scene.actor[piece], y], view.seen[piece, y]
            for x in unsigned_range(left, right):
                row[x] += seen[x]


@compiled
def put_masks(scene, view, masks):
    """Mark the pixels of which an actor takes up half or more."""
    full = np.int32(scene.sensor.f * scene.sensor.f)
    for piece in range(len(scene.actor)):
        actor = scene.actor[piece]
        single = is_single(actor, scene, view)
        low, high, left, right = box(piece, scene, view)
        for y in unsigned_range(low, high):
            row, seen = masks[actor, y], view.seen[piece, y]
            if single:  # a loop that compiles to vector instructions
                for x in unsigned_range(left, right):
                    row[x] = 2 * seen[x] >= full
            else:
                for x in unsigned_range(left, right):
                    row[x] = 2 * total(actor, y, x, scene, view) >= full


@compiled
def put_touched(scene, view, masks):
    """Mark the pixels of which an actor takes up anything."""
    for piece in range(len(scene.actor)):
        low, high, left, right = box(piece, scene, view)
        for y in unsigned_range(low, high):
            row, seen = masks[scene.actor[piece], y], view.seen[piece, y]
            for x in unsigned_range(left, right):
                row[x] |= seen[x] > 0


@inlined
def velocity(motion, y, x):
    """What is at the centre of a pixel moves by L · (q - c) + velocity."""
    across, down = float(np.int32(x)) + 0.5 - motion[6], float(np.int32(y)) + 0.5 - motion[7]
    return (motion[0] * across + motion[1] * down) + motion[4], (motion[2] * across + motion[3] * down) + motion[5]


@compiled
def put_flow(scene, view, motion, flow):
    """The velocity of the actor that takes up half of a pixel or more."""
    full = np.int32(scene.sensor.f * scene.sensor.f)
    for piece in range(len(scene.actor)):
        actor = scene.actor[piece]
        single = is_single(actor, scene, view)
        low, high, left, right = box(piece, scene, view)
        for y in unsigned_range(low, high):
            if single:
                put_flow_row(view.seen[piece, y], full, motion[piece], y, left, right, flow[0, y], flow[1, y])
                continue
            for x in unsigned_range(left, right):
                if 2 * total(actor, y, x, scene, view) >= full:
                    vx, vy = velocity(motion[copy_of(actor, y, x, scene, view)], y, x)
                    flow[0, y, x], flow[1, y, x] = vx, vy


@compiled
def put_flow_row(seen, full, motion, y, left, right, along_x, along_y):
    """The same for a row of pixels and a single piece: run by run, in loops that compile to vector instructions."""
    while left < right:
        while left < right and 2 * seen[np.uint64(left)] < full:
            left += 1
        end = left
        while end < right and 2 * seen[np.uint64(end)] >= full:
            end += 1
        fill_flow(motion[0], motion[1], motion[4], motion, y, left, end, along_x)
        fill_flow(motion[2], motion[3], motion[5], motion, y, left, end, along_y)
        left = end


@compiled
def fill_flow(from_x, from_y, speed, motion, y, left, right, row):
    """One component of the velocity at the pixels left … right - 1 of a row, as in `velocity`."""
    centre, part = motion[6], from_y * (float(np.int32(y)) + 0.5 - motion[7])
    for x in unsigned_range(left, right):
        row[x] = (from_x * (float(np.int32(x)) + 0.5 - centre) + part) + speed


@compiled
def put_edge_flow(scene, before, now, motion_before, motion, best, flow):
    """The velocity of the actor that takes up most of a pixel in the two frames together, the nearest of equals.

    Pixels of which an actor takes up half now are left to `put_flow`.
    """
    full = np.int32(scene.sensor.f * scene.sensor.f)
    for view in (before, now):
        for piece in range(len(scene.actor)):
            low, high, left, right = box(piece, scene, view)
            for y in unsigned_range(low, high):
                for x in unsigned_range(left, right):
                    best[y, x] = 0
    for actor in range(len(scene.first_piece) - 1):
        for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
            for view in (before, now):
                low, high, left, right = box(piece, scene, view)
                for y in unsigned_range(low, high):
                    for x in unsigned_range(left, right):
                        is_seen = total(actor, y, x, scene, now)
                        if 2 * is_seen >= full:
                            continue
                        score = is_seen + total(actor, y, x, scene, before)
                        if score > 0 and score >= best[y, x]:
                            best[y, x] = score
                            if is_seen > 0:
                                vx, vy = velocity(motion[copy_of(actor, y, x, scene, now)], y, x)
                            else:
                                vx, vy = velocity(motion_before[copy_of(actor, y, x, scene, before)], y, x)
                            flow[0, y, x], flow[1, y, x] = vx, vy


@inlined
def named(scene, scratch, before, now):
    """Named tuples again: at a call from Python, numba finds the types of plain ones faster."""
    sensor, pieces, actor, first_piece, pixel_of = scene
    return (
        Scene(Sensor(*sensor), Pieces(*pieces), actor, first_piece, pixel_of),
        Scratch(*scratch),
        View(Crossings(*before[0]), before[1]),
        View(Crossings(*now[0]), now[1]),
    )


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
            put_masks(scene, now, masks[i])
            continue
        if i > 0:
            put_touched(scene, before, masks[i - 1])
            put_touched(scene, now, masks[i - 1])
        before, now = now, before


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
        if edges and i > 0:
            put_edge_flow(scene, before, now, motion_before[at], motion[at], best, flow[at])
        if at >= 0:
            put_flow(scene, now, motion[at], flow[at])
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
def explain(coefficients, queries, scene, scratch, before, now, labels, gains, answers):
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
        find_gains(y, x, queries[i, 4], scene, before.crossings, now.crossings, labels, gains)
        change, actor, copy, later = strongest(queries[i, 3], scene, gains)
        answers[i, 0], answers[i, 1], answers[i, 2], answers[i, 3] = change, actor, copy, later


ENTRIES = (count_frames, mask_frames, flow_frames, explain)

"""The compiled part of `coverage.py`: outlines in; what is seen of each actor, and whose edges changed a pixel, out.

The pixels in which an actor is seen are found by `spans.py`.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import numpy as np

from gerd.events.compiled import apart, compiled, inlined
from gerd.events.cpu.arguments import Crossings, Pieces, Sensor
from gerd.events.cpu.crossings import NONE, NOTHING, crossings_at, find_crossings, hull, unsigned_range
from gerd.events.cpu.outlines import Sides
from gerd.events.labels.spans import TOGETHER, add_row, box, box_of_actor, find_seen, find_spans

BACKGROUND = np.int32(-1)
BLOCK = np.uint64(8)  # pixels of a row that are written together

# What stays as it is: the actor of each piece; the first piece of each actor, and the end; the pixel of each column;
# and the x of the middle of each pixel.
Scene = namedtuple("Scene", "sensor pieces actor first_piece pixel_of middle")
# Room: for pieces, for crossings of what is seen of one, for crossings in a sub-row (4, …); for a row of pixels: by how
# much the number of sub-pixels that are seen rises from one pixel to the next (width + 2), 0 between uses, and bits for
# pixels in which, or right of which, it does; for spans of pixels; for the pieces that are seen in the sub-pixels of a
# pixel's sub-row (2, f); and for the sides of a piece, as in `outlines.py`.
Scratch = namedtuple("Scratch", "nearer visible lists rises marks spans labels sides")
# Spans of pixels in each row: their ends (rows, width + 2) and the number of ends; the pixels of which something is
# seen beside each (rows, 2 · parts); whether the row is worked out by itself; and room for numbers of rows (7, rows).
Spans = namedtuple("Spans", "ends number outer rough room")
# A frame: its crossings; and in how many sub-pixels each actor is seen, (actors, height, width), where that is needed.
View = namedtuple("View", "crossings counts")


@compiled
def put_counts(scene, scratch, view, counts):
    """counts (actors, height, …): in how many sub-pixels of each pixel an actor is seen, in the boxes of its copies."""
    for piece in range(len(scene.actor)):
        way, covering, low, high, left, right = find_seen(piece, scene, scratch, view.crossings)
        for y in unsigned_range(low, high):
            add_row(way, covering, piece, np.int64(y), scene, scratch, view.crossings)
            row, count = counts[scene.actor[piece], y], NOTHING
            for x in unsigned_range(left, right):
                count += scratch.rises[x]
                row[x] = count
            for x in unsigned_range(left, right + 2):
                scratch.rises[x] = 0
            for word in range(len(scratch.marks)):
                scratch.marks[word] = NONE


@compiled
def put_masks(least, scene, scratch, view, masks):
    """Mark the pixels of which an actor takes up at least so many sub-pixels, in each of `masks` (…, actors, …)."""
    for piece in range(len(scene.actor)):
        _, low, high = find_spans(piece, least, scene, scratch, view.crossings)
        for frame in range(len(masks)):
            for y in unsigned_range(low, high):
                row, ends = masks[frame, scene.actor[piece], y], scratch.spans.ends[y]
                for k in range(0, scratch.spans.number[y], 2):
                    fill_mask(ends[k], ends[k + 1], row)


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
    for piece in range(len(scene.actor)):
        way, low, high = find_spans(piece, least, scene, scratch, view.crossings)
        for y in unsigned_range(low, high):
            ends = scratch.spans.ends[y]
            for k in range(0, scratch.spans.number[y], 2):
                if way == TOGETHER:
                    begin, end = np.int64(ends[k]), np.int64(ends[k + 1])
                    put_velocities(scene.actor[piece], y, begin, end, scene, scratch, view.crossings, motion, flow)
                else:
                    put_velocity(motion[piece], y, ends[k], ends[k + 1], scene.middle, flow)


@inlined
def put_velocities(actor, y, begin, end, scene, scratch, frame, motion, flow):
    """The velocity of an actor in the pixels begin … end - 1 of a row: of the copy that is seen there."""
    while begin < end:
        piece, stop = copy_at(actor, y, begin, end, scene, scratch, frame)
        put_velocity(motion[piece], y, begin, stop, scene.middle, flow)
        begin = stop


@inlined
def put_velocity(moves, y, begin, end, middle, flow):
    """The velocity of a piece there."""
    fill_flow(moves, float(np.int32(y)) + 0.5 - moves[7], begin, end, middle, flow[0, y], flow[1, y])


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
        found, stop = most_seen(actor, y, x, scene, scratch.labels[0], frame, scratch.lists[3]), x + 1
    return found, stop


@compiled
def most_seen(actor, y, x, scene, labels, frame, pair):
    found, most = scene.first_piece[actor], 0
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        count = 0
        for s in range(scene.sensor.f):
            put_labels(y, s, x, scene, frame, labels, pair)
            for label in labels:
                count += label == piece
        if count > most:
            found, most = piece, count
    return found


@apart
def fill_flow(moves, down, begin, end, middle, vx, vy):
    """L · (q - c) + velocity at the centres of the pixels begin … end - 1 of a row, `down` pixels below c."""
    part_x, part_y = moves[1] * down, moves[3] * down
    for x in unsigned_range(begin, end):
        along = middle[x] - moves[6]
        vx[x] = (moves[0] * along + part_x) + moves[4]
        vy[x] = (moves[2] * along + part_y) + moves[5]


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
                        put_velocities(actor, y, at, at + 1, scene, scratch, now.crossings, motion, flow)
                    else:
                        put_velocities(actor, y, at, at + 1, scene, scratch, before.crossings, motion_before, flow)


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
    sensor, pieces, actor, first_piece, pixel_of, middle = scene
    nearer, visible, lists, rises, marks, spans, labels, sides = scratch
    return (
        Scene(Sensor(*sensor), Pieces(*pieces), actor, first_piece, pixel_of, middle),
        Scratch(nearer, visible, lists, rises, marks, Spans(*spans), labels, Sides(*sides)),
        View(Crossings(*before[0]), before[1]),
        View(Crossings(*now[0]), now[1]),
    )


@compiled
def look(maps, scene, scratch, view):
    """Find the crossings of a frame, and forget the counts of the one before."""
    if len(view.counts) > 0:
        for actor in range(len(scene.first_piece) - 1):
            low, high, left, right = box_of_actor(actor, scene, view.crossings)
            for y in unsigned_range(low, high):
                for x in unsigned_range(left, right):
                    view.counts[actor, y, x] = 0
    find_crossings(maps, scene.pieces, scene.sensor, scratch.sides, view.crossings)


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
def count_frames(maps, scene, scratch, before, now, counts):
    """counts (frames, actors, height, width): in how many sub-pixels of each pixel each actor is seen."""
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(maps)):
        look(maps[i], scene, scratch, now)
        put_counts(scene, scratch, now, counts[i])


@compiled
def mask_frames(maps, edges, scene, scratch, before, now, masks):
    """masks (frames, actors, height, width): what each actor covers; with `edges` any part, and in the frame before.

    With `edges` there is one frame more than masks: the one before the first.
    """
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(maps)):
        look(maps[i], scene, scratch, now)
        if edges:
            put_masks(np.int32(1), scene, scratch, now, masks[max(i - 1, 0) : i + 1])
        else:
            put_masks(half(scene), scene, scratch, now, masks[i : i + 1])


@compiled
def flow_frames(maps, edges, blank, motion_before, motion, best, scene, scratch, before, now, flow):
    """flow (frames, 2, height, width): the velocity of what is seen; with `edges` also of what was in the frame before.

    `blank` says that `flow` is filled already. `motion` (frames, pieces, 8) is that of each piece, `motion_before` that
    of the pieces of the frame before at the time of the frame: on a torus a copy may change its number in between.
    """
    scene, scratch, before, now = named(scene, scratch, before, now)
    for i in range(len(maps)):
        look(maps[i], scene, scratch, now)
        at = i - 1 if edges else i
        if at >= 0 and not blank:
            fill(np.float32(np.nan if edges else 0.0), flow[at])
        if edges:
            put_counts(scene, scratch, now, now.counts)
        if edges and i > 0:
            put_edge_flow(scene, scratch, before, now, motion_before[at], motion[at], best, flow[at])
        if at >= 0:
            put_flow(half(scene), scene, scratch, now, motion[at], flow[at])
        if edges:
            before, now = now, before


@inlined
def put_labels(y, s, x, scene, crossings, labels, pair):
    """The piece that is seen in each sub-pixel of sub-row s of a pixel, or BACKGROUND. `pair` is room for two."""
    pieces, f = scene.pieces, scene.sensor.f
    left, right = np.int32(x * f), np.int32(x * f + f)
    for c in range(f):
        labels[c] = BACKGROUND
    for piece in range(len(scene.actor)):
        ends = crossings_at(piece, y, s, crossings, pieces, pair)
        for k in range(0, len(ends), 2):
            for c in range(max(ends[k], left), min(ends[k + 1], right)):
                labels[c - left] = piece


@inlined
def intensity_of(piece, pieces):
    return pieces.intensity[piece] if piece >= 0 else np.int32(0)


@compiled
def find_gains(y, x, hidden, scene, scratch, before, now, gains):
    """Add up in gains (2, pieces) by how much the edge of each piece has raised the count of a pixel.

    An edge has passed a sub-pixel if another piece is seen there than before. It is that of the nearer of the two: it
    has come (gains[1]) or gone (gains[0]). `hidden` has a bit for each frame in which shape noise takes the pixel out.
    """
    gains[:] = 0
    pieces, labels = scene.pieces, scratch.labels
    for s in range(scene.sensor.f):
        put_labels(y, s, x, scene, before, labels[0], scratch.lists[3])
        put_labels(y, s, x, scene, now, labels[1], scratch.lists[3])
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
def explain(maps, queries, scene, scratch, before, now, gains, answers):
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
                find_crossings(maps[frame - 1], scene.pieces, scene.sensor, scratch.sides, before.crossings)
            find_crossings(maps[frame], scene.pieces, scene.sensor, scratch.sides, now.crossings)
            held = frame
        find_gains(y, x, queries[i, 4], scene, scratch, before.crossings, now.crossings, gains)
        change, actor, copy, later = strongest(queries[i, 3], scene, gains)
        answers[i, 0], answers[i, 1], answers[i, 2], answers[i, 3] = change, actor, copy, later


ENTRIES = (count_frames, mask_frames, flow_frames, explain)

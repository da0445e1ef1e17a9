"""What is seen of a piece of outline in a frame, as spans of pixels; a part of `seen.py`.

A frame is the picture at one instant. Its crossings are found as in `cpu/crossings.py`, and only pixels between them
are looked at.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import apart, compiled, inlined
from gerd.events.cpu.crossings import (
    NEAR,
    NONE,
    NOTHING,
    WORD_BITS,
    WORD_MASK,
    WORD_SHIFT,
    ZERO,
    bit_number,
    hull,
    unsigned_range,
)
from gerd.events.cpu.hidden import MOST_SPLIT, find_nearer, seen_of, split
from gerd.events.cpu.outlines import vector_range
from gerd.events.cpu.rules import ONE

ALONE, CUT, WALKED, TOGETHER = range(4)  # what is seen of a piece: see `find_seen`


@inlined
def box(piece, scene, frame):
    """The pixels that a piece may cover: first row and end, first column and end."""
    left, right = frame.left[piece], frame.right[piece]
    if left >= right:
        return ZERO, ZERO, NOTHING, NOTHING
    return frame.low[piece], frame.high[piece], scene.pixel_of[left], scene.pixel_of[right - 1] + np.int32(1)


@compiled
def box_of_actor(actor, scene, frame):
    """The pixels that an actor may cover, in all of its copies: first row and end, first column and end."""
    low, high, left, right = ZERO, ZERO, np.int32(scene.sensor.width), NOTHING
    for piece in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
        top, bottom, begin, end = box(piece, scene, frame)
        low, high = hull(low, high, top, bottom)
        if top < bottom:
            left, right = min(left, begin), max(right, end)
    return low, high, left, right


@compiled
def meets_copy(piece, scene, frame):
    """Whether another copy of the same actor may cover some of the same pixels, and whether one of those is farther."""
    low, high, left, right = box(piece, scene, frame)
    meets, farther = False, False
    for copy in range(scene.first_piece[scene.actor[piece]], scene.first_piece[scene.actor[piece] + 1]):
        top, bottom, begin, end = box(copy, scene, frame)
        if copy != piece and top < high and low < bottom and begin < right and left < end:
            meets, farther = True, farther or copy < piece
    return meets, farther


@compiled
def find_seen(piece, scene, scratch, frame):
    """How to find what is seen of a piece, how many nearer ones there are, and its box.

    ALONE: its crossings say it. CUT: `scratch.visible` has the crossings of its parts. WALKED: it is concave, or many
    nearer pieces or concave ones leave something of it, sub-row by sub-row; they are in `scratch.nearer`. TOGETHER: it
    may share pixels with other copies of its actor. All of them are looked at with the first one, and the others have
    no box then.
    """
    low, high, left, right = box(piece, scene, frame)
    if low >= high:
        return WALKED, 0, low, high, left, right
    meets, farther = meets_copy(piece, scene, frame)
    if meets:
        low, high, left, right = box_of_actor(scene.actor[piece], scene, frame)
        return TOGETHER, 0, low, low if farther else high, left, right
    pieces = scene.pieces
    covering, simple = find_nearer(piece, low, high, pieces, frame, frame, scratch.nearer)
    if not simple or covering > MOST_SPLIT:
        return WALKED, covering, low, high, left, right
    if covering == 0:
        return ALONE, 0, low, high, left, right
    cols = frame.cols[pieces.slot[piece] : pieces.slot[piece] + 2]
    split(scratch.nearer[:covering], cols, frame, pieces.slot, low, high, scratch.visible)
    return CUT, covering, low, high, left, right


@compiled
def add_row(way, covering, piece, y, scene, scratch, frame):
    """Add what is seen of a piece in a row of pixels, or of all copies of its actor, to `scratch.rises`."""
    pieces, f, nearer = scene.pieces, np.int32(scene.sensor.f), scratch.nearer
    if way == TOGETHER:
        actor = scene.actor[piece]
        for copy in range(scene.first_piece[actor], scene.first_piece[actor + 1]):
            if frame.low[copy] <= y < frame.high[copy]:
                number, _ = find_nearer(copy, y, y + 1, pieces, frame, frame, nearer)
                add_unhidden(copy, nearer[:number], y, scene, scratch, frame)
        return
    if way == WALKED:
        add_unhidden(piece, nearer[:covering], y, scene, scratch, frame)
        return
    parts, number = frame.cols[pieces.slot[piece] : pieces.slot[piece] + 2], 2
    if way == CUT:
        parts, number = scratch.visible, 2 << covering
    for k in range(0, number, 2):
        for s in range(f):
            if parts[k, s, y] < parts[k + 1, s, y]:
                add_span(parts[k, s, y], parts[k + 1, s, y], f, scene.pixel_of, scratch.rises, scratch.marks)


@compiled
def add_unhidden(piece, nearer, y, scene, scratch, frame):
    """Add what nearer pieces leave of a piece in a row of pixels, sub-row by sub-row."""
    f = np.int32(scene.sensor.f)
    for s in range(f):
        ends = seen_of(piece, nearer, y, s, frame, scene.pieces, scratch.lists)
        for k in range(0, len(ends), 2):
            add_span(ends[k], ends[k + 1], f, scene.pixel_of, scratch.rises, scratch.marks)


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
def take_spans(rises, marks, least, spans):
    """Put the spans of pixels in a row with at least so many sub-pixels into `spans`; how many ends they have.

    `rises` and `marks` are 0 again afterwards.
    """
    number, count, carried = 0, NOTHING, NONE
    for word in range(len(marks)):
        rest = marks[word] | (marks[word] << ONE) | carried
        carried = marks[word] >> WORD_MASK
        marks[word] = NONE
        while rest:
            bit = rest & (~rest + ONE)
            rest ^= bit
            x = word * WORD_BITS + bit_number(bit)
            was = count >= least
            count += rises[np.uint64(x)]
            rises[np.uint64(x)] = 0
            if was != (count >= least):
                spans[number] = x
                number += 1
    return number


@compiled
def find_spans(piece, least, scene, scratch, frame):
    """Put the spans of pixels of which a piece takes up at least so many sub-pixels into `scratch.spans`, by rows.

    Returns how it is seen, and the rows, first and end. Most are worked out many at a time, by `find_plain`, and the
    rest one by one.
    """
    spans, slot = scratch.spans, scene.pieces.slot[piece]
    way, covering, low, high, _, _ = find_seen(piece, scene, scratch, frame)
    top, bottom = max(low, frame.whole_low[piece]), min(high, frame.whole_high[piece])
    if way > CUT:
        top = bottom = high
    for y in unsigned_range(low, high):
        spans.number[y] = 0
        spans.rough[y] = np.int64(y) < top or np.int64(y) >= bottom
    if way == CUT:
        find_plain(scratch.visible[0], scratch.visible[1], top, bottom, least, scene, spans)
        for cut in range(covering):  # the parts that it splits off end where it does
            first, last = frame.low[scratch.nearer[cut]], frame.high[scratch.nearer[cut]]
            first, last = max(first, top), min(last, bottom)
            for k in range(2 << cut, 4 << cut, 2):
                find_plain(scratch.visible[k], scratch.visible[k + 1], first, last, least, scene, spans)
    elif way == ALONE:
        find_plain(frame.cols[slot], frame.cols[slot + 1], top, bottom, least, scene, spans)
    for y in unsigned_range(low, high):
        if spans.rough[y]:
            add_row(way, covering, piece, np.int64(y), scene, scratch, frame)
            spans.number[y] = take_spans(scratch.rises, scratch.marks, least, spans.ends[y])
    return way, low, high


@compiled
def find_plain(begins, ends, low, high, least, scene, spans):
    """The span of each row between crossings, where each of its sides touches few pixels, and no pixel has two sides.

    In the pixels that one side touches, the sub-pixels beyond it are those that are seen: so the span begins and ends
    where a sum over the sub-rows says. Rows that are not like that are marked as rough.
    """
    if low >= high:
        return
    f, room = np.int32(scene.sensor.f), spans.room
    first, first_end, last, last_end, length = room[0], room[1], room[2], room[3], room[4]
    if add_lengths(begins, ends, low, high, length) == 0:
        return
    find_pixels(begins, low, high, scene.pixel_of, first, first_end)
    find_pixels(ends, low, high, scene.pixel_of, last, last_end)
    widest = NOTHING
    for y in unsigned_range(low, high):
        if length[y] == 0:
            continue
        wide = max(first_end[y] - first[y], last_end[y] - last[y])
        if wide > NEAR or first_end[y] > last[y] or meets_span(first[y], last_end[y], spans.number[y], spans.outer[y]):
            spans.rough[y], length[y] = True, 0
        else:
            widest = max(widest, wide)
            spans.outer[y, spans.number[y]] = first[y]
            spans.outer[y, spans.number[y] + 1] = last_end[y]
    move_on(begins, low, high, f * f - least, widest, room[5], room[6], first)
    move_on(ends, low, high, least - np.int32(1), widest, room[5], room[6], last)
    for y in unsigned_range(low, high):
        if length[y] > 0:
            number = spans.number[y]
            spans.ends[y, number] = first[y]
            spans.ends[y, number + 1] = last[y]
            spans.number[y] = number + 2


@inlined
def meets_span(begin, end, number, outer):
    """Whether a span of pixels shares one with those of a row that are there already."""
    meets = False
    for k in range(0, number, 2):
        meets |= begin < outer[k + 1] and outer[k] < end
    return meets


@apart
def add_lengths(begins, ends, low, high, length):
    """How many columns there are between crossings, in all sub-rows of each row; and the largest of these numbers."""
    for i in vector_range(low, high):
        length[np.uint64(low) + i] = 0
    for s in range(len(begins)):
        for i in vector_range(low, high):
            y = np.uint64(low) + i
            length[y] += ends[s, y] - begins[s, y]
    longest = NOTHING
    for y in unsigned_range(low, high):
        longest = max(longest, length[y])
    return longest


@apart
def find_pixels(cols, low, high, pixel_of, first, end):
    """The pixels of each row that a side touches: the first, and the one behind the last."""
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        first[y] = end[y] = cols[0, y]
    for s in range(1, len(cols)):
        for i in vector_range(low, high):
            y = np.uint64(low) + i
            first[y], end[y] = min(first[y], cols[s, y]), max(end[y], cols[s, y])
    for y in unsigned_range(low, high):
        first[y], end[y] = pixel_of[np.uint64(first[y])], pixel_of[np.uint64(max(end[y], 1) - 1)] + 1


@apart
def move_on(cols, low, high, most, widest, edge, total, pixel):
    """Move each row's pixel on, by up to `widest`, over those of which a side has more than `most` on its left."""
    f = np.int32(len(cols))
    for i in vector_range(low, high):
        y = np.uint64(low) + i
        edge[y] = pixel[y] * f
    for _ in range(widest):
        for i in vector_range(low, high):
            total[np.uint64(low) + i] = 0
        for s in range(f):
            for i in vector_range(low, high):
                y = np.uint64(low) + i
                total[y] += min(max(cols[s, y] - edge[y], NOTHING), f)
        for i in vector_range(low, high):
            y = np.uint64(low) + i
            pixel[y] += np.int32(total[y] > most)
            edge[y] += f

"""Outlines on a GPU: T in, where outlines cross sub-rows out, and which tiles of the frame they change.

place       the outlines in the frame, and a box about each piece
spans       where each sub-row enters and leaves each piece
mark        which tiles of the frame a moving outline can touch at each step, as bits
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import triton
import triton.language as tl

from gerd.events.cuda.kernels import ROWS, TILE, columns

FARTHEST = tl.constexpr(2.0**30)  # pixel of a box

# T has six entries (6, recordings, actors, frames); ends, as `unit_ends`, are the same for all recordings or not;
# offsets are pixels to the right and down.
Placing = namedtuple("Placing", "T actors ends of_each actor offsets")


@triton.jit
def placed_sides(a, b, x, c, d, y, ends, some):
    """Coefficients of sides, as in `rasterise.py`, and the least and the largest x of each; `ends` are pointers."""
    from_x, from_y = tl.load(ends, mask=some, other=0.0), tl.load(ends + 1, mask=some, other=0.0)
    to_x, to_y = tl.load(ends + 2, mask=some, other=0.0), tl.load(ends + 3, mask=some, other=0.0)
    x0, y0 = (a * from_x + b * from_y) + x, (c * from_x + d * from_y) + y
    x1, y1 = (a * to_x + b * to_y) + x, (c * to_x + d * to_y) + y
    upward = y0 > y1
    top, bottom = tl.minimum(y0, y1), tl.maximum(y0, y1)
    x_top, x_bottom = tl.where(upward, x1, x0), tl.where(upward, x0, x1)
    rise = bottom - top
    slope = tl.where(rise > 0, (x_bottom - x_top) / tl.where(rise > 0, rise, 1.0), 0.0)
    return top, bottom, x_top, slope, tl.zeros_like(top), tl.minimum(x0, x1), tl.maximum(x0, x1), top, bottom


@triton.jit
def placed_ellipse(a, b, x, c, d, y, ends, some):
    """Coefficients of a circle of radius ½ under T, if it is there, and the box about it: x, then y."""
    there = tl.load(ends, mask=some, other=0.0) != 0
    spread = c * c + d * d
    safe = tl.where(spread > 0, spread, 1.0)
    tilt, width = (a * c + b * d) / safe, tl.abs(a * d - b * c) / safe
    reach = tl.where(there, 0.25 * spread, 0.0)
    tall, wide = tl.sqrt(reach), tl.sqrt(reach * (tilt * tilt + width * width))
    flat = reach * 0.0
    return flat + y, reach, flat + x, flat + tilt, flat + width, x - wide, x + wide, y - tall, y + tall


@triton.jit
def whole_pixels(low, high, F: tl.constexpr):
    """From a pixel below `low` to one above `high`, both in sub-pixels."""
    low = tl.minimum(tl.maximum(tl.floor(low / F) - 1.0, -FARTHEST), FARTHEST)
    high = tl.minimum(tl.maximum(tl.ceil(high / F) + 1.0, -FARTHEST), FARTHEST)
    return low.to(tl.int32), high.to(tl.int32)


@triton.jit
def place(outlines, sizes, placing, F: tl.constexpr, AT_ONCE: tl.constexpr):
    """The coefficients of all pieces in one frame, and a box about each in pixels: x from and to, y from and to."""
    recording = tl.program_id(1).to(tl.int64)
    frame = recording * sizes.frames + tl.program_id(0)
    plane = tl.num_programs(1).to(tl.int64) * placing.actors * sizes.frames  # from one entry of T to the next
    for piece in range(sizes.pieces):
        at = placing.T + (recording * placing.actors + tl.load(placing.actor + piece)) * sizes.frames + tl.program_id(0)
        right, down = tl.load(placing.offsets + piece * 2), tl.load(placing.offsets + piece * 2 + 1)
        a, b, x = tl.load(at) * F, tl.load(at + plane) * F, (tl.load(at + 2 * plane) + right) * F
        c, d, y = tl.load(at + 3 * plane) * F, tl.load(at + 4 * plane) * F, (tl.load(at + 5 * plane) + down) * F
        begin, end = tl.load(outlines.first + piece), tl.load(outlines.first + piece + 1)
        low_x, low_y = x, y  # every outline is about its own centre, or the box reaches to there
        high_x, high_y = x, y
        for start in range(begin, end, AT_ONCE):
            entry = start + tl.arange(0, AT_ONCE)
            some = entry < end
            ends = placing.ends + (recording * placing.of_each * sizes.entries + entry) * 4
            if tl.load(outlines.is_ellipse + piece) != 0:
                one, two, three, four, five, left, right_end, top, bottom = placed_ellipse(a, b, x, c, d, y, ends, some)
            else:
                one, two, three, four, five, left, right_end, top, bottom = placed_sides(a, b, x, c, d, y, ends, some)
            to = outlines.coefficients + (frame * sizes.entries + entry) * 5
            tl.store(to, one, mask=some)
            tl.store(to + 1, two, mask=some)
            tl.store(to + 2, three, mask=some)
            tl.store(to + 3, four, mask=some)
            tl.store(to + 4, five, mask=some)
            low_x = tl.minimum(low_x, tl.min(tl.where(some, left, x)))
            high_x = tl.maximum(high_x, tl.max(tl.where(some, right_end, x)))
            low_y = tl.minimum(low_y, tl.min(tl.where(some, top, y)))
            high_y = tl.maximum(high_y, tl.max(tl.where(some, bottom, y)))
        box = outlines.boxes + (frame * sizes.pieces + piece) * 4
        left_pixel, right_pixel = whole_pixels(low_x, high_x, F)
        top_pixel, bottom_pixel = whole_pixels(low_y, high_y, F)
        tl.store(box, left_pixel)
        tl.store(box + 1, right_pixel)
        tl.store(box + 2, top_pixel)
        tl.store(box + 3, bottom_pixel)


@triton.jit
def spans(outlines, sizes, F: tl.constexpr, FINE: tl.constexpr, AT_ONCE: tl.constexpr):
    """The first and the last crossing of each piece in each sub-row near its box; -1 where none is.

    Sub-rows are numbered y · FINE + k, with FINE the upsampling F rounded up to a power of two.
    """
    frame = tl.program_id(1).to(tl.int64) * sizes.frames + tl.program_id(0)
    right = sizes.width * F
    for piece in range(sizes.pieces):
        box = outlines.boxes + (frame * sizes.pieces + piece) * 4
        begin, end = tl.load(outlines.first + piece), tl.load(outlines.first + piece + 1)
        is_ellipse = tl.load(outlines.is_ellipse + piece) != 0
        top = tl.maximum(tl.load(box + 2), 0) // ROWS * (ROWS * FINE)
        bottom = tl.minimum((tl.load(box + 3) + ROWS - 1) // ROWS * (ROWS * FINE), sizes.sub_rows)
        lefts = outlines.crossings + (frame * sizes.pieces + piece) * 2 * sizes.sub_rows
        for sub0 in range(top, bottom, AT_ONCE):
            sub = sub0 + tl.arange(0, AT_ONCE)
            real = (sub % FINE < F) & (sub // FINE < sizes.height)
            centre = (sub // FINE * F + sub % FINE).to(tl.float64) + 0.5
            leftmost = tl.zeros((AT_ONCE,), tl.int32) + right
            rightmost = tl.zeros((AT_ONCE,), tl.int32) - 1
            for entry in range(begin, end):
                side = outlines.coefficients + (frame * sizes.entries + entry) * 5
                one, two, crosses = columns(side, is_ellipse, centre, right)
                crosses = crosses & real
                leftmost = tl.where(crosses, tl.minimum(leftmost, one), leftmost)
                rightmost = tl.where(crosses, tl.maximum(rightmost, two), rightmost)
            tl.store(lefts + sub, tl.where(rightmost < 0, -1, leftmost), mask=sub < bottom)
            tl.store(lefts + sizes.sub_rows + sub, rightmost, mask=sub < bottom)


@triton.jit
def set_bits(marks, band, leftmost, rightmost, some, across, words_per_tile, bit, word, F: tl.constexpr):
    """Set `bit` for the tiles of `band` from the column `leftmost` to `rightmost`, both in sub-pixels."""
    begin = leftmost // (TILE * F)
    end = tl.minimum(rightmost // (TILE * F), across - 1)
    wide = tl.max(tl.where(some, end - begin, -1))
    k = 0
    while k <= wide:
        tile = (band * across + begin + k).to(tl.int64)
        tl.atomic_or(marks + tile * words_per_tile + word, bit, mask=some & (begin + k <= end), sem="relaxed")
        k += 1


@triton.jit
def mark(marks, outlines, sizes, BANDS: tl.constexpr, F: tl.constexpr, FINE: tl.constexpr):
    """Mark the tiles in which the picture can differ between frame i - 1 and frame i of a recording, band by band."""
    crossings, boxes, sub_rows, words_per_tile = (
        outlines.crossings,
        outlines.boxes,
        sizes.sub_rows,
        sizes.words_per_tile,
    )
    frames, pieces, width, height = sizes.frames, sizes.pieces, sizes.width, sizes.height
    recording = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) + 1
    across = (width + TILE - 1) // TILE
    marks += recording * across * ((height + ROWS - 1) // ROWS) * words_per_tile
    bit = tl.full((BANDS,), 1, tl.int32) << (i % 32)
    right = width * F
    for piece in range(pieces):
        before, now = (recording * frames + i - 1) * pieces + piece, (recording * frames + i) * pieces + piece
        old_top, old_bottom = tl.load(boxes + before * 4 + 2) // ROWS, tl.load(boxes + before * 4 + 3)
        new_top, new_bottom = tl.load(boxes + now * 4 + 2) // ROWS, tl.load(boxes + now * 4 + 3)
        old_end, new_end = (old_bottom + ROWS - 1) // ROWS, (new_bottom + ROWS - 1) // ROWS
        begin = tl.maximum(tl.minimum(old_top, new_top), 0)
        end = tl.minimum(tl.maximum(old_end, new_end), (height + ROWS - 1) // ROWS)
        simple = tl.load(outlines.convex + piece)
        for band0 in range(begin, end, BANDS):
            band = band0 + tl.arange(0, BANDS)
            sub = band[:, None] * (ROWS * FINE) + tl.arange(0, ROWS * FINE)[None, :]
            real = (sub % FINE < F) & (sub // FINE < height)
            old_rows = real & (band >= old_top)[:, None] & (band < old_end)[:, None]
            new_rows = real & (band >= new_top)[:, None] & (band < new_end)[:, None]
            left_0 = tl.load(crossings + before * 2 * sub_rows + sub, mask=old_rows, other=0) + 0
            right_0 = tl.load(crossings + (before * 2 + 1) * sub_rows + sub, mask=old_rows, other=-1)
            left_1 = tl.load(crossings + now * 2 * sub_rows + sub, mask=new_rows, other=0) + 0
            right_1 = tl.load(crossings + (now * 2 + 1) * sub_rows + sub, mask=new_rows, other=-1)
            in_0, in_1 = right_0 >= 0, right_1 >= 0
            # Over the sub-rows of a band: whether some or all of them meet the piece in both frames, and where.
            some = tl.max((in_0 | in_1).to(tl.int32), axis=1) > 0
            whole = tl.min(tl.where(real, (in_0 & in_1).to(tl.int32), 1), axis=1) * simple
            low = tl.min(tl.minimum(tl.where(in_0, left_0, right), tl.where(in_1, left_1, right)), axis=1)
            left_high = tl.max(tl.maximum(tl.where(in_0, left_0, 0), tl.where(in_1, left_1, 0)), axis=1)
            right_low = tl.min(tl.minimum(tl.where(in_0, right_0, right), tl.where(in_1, right_1, right)), axis=1)
            high = tl.max(tl.maximum(right_0, right_1), axis=1)
            # Between the two sides of a convex piece nothing changes.
            sides = whole > 0
            reach = tl.where(sides, left_high, high)
            set_bits(marks, band, low, reach, some, across, words_per_tile, bit, i // 32, F)
            set_bits(marks, band, right_low, high, some & sides, across, words_per_tile, bit, i // 32, F)

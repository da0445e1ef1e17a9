"""The kernels of the `cuda` backend, in Triton.

The rules come first, `words` to `passage_us`, as in `definition.py`. The rest is the walk:

    place       the outlines in the frame, and a box about each piece
    spans       where each sub-row enters and leaves each piece
    mark        which tiles of the frame a moving outline can touch at each step, as bits
    signal      one program per recording and tile: integrators stay in registers while it visits the marked steps
    between     the same from instant to instant, in exact timing; events go into frames, or into a list
    count       background noise: how many pixels of each block fire
    scatter     and which
    tally       how many events each frame has
    gather      the events of frames as keys, in order

Signal and background noise write only where something fires, into an output that is zero: frames of bytes, or, where
events are wanted, of bits. A word of 32 bits has 16 pixels of a row, OFF before ON of each, so that its bits are in the
order of the events; each tile has words of its own. What is skipped
changes no bit: in a tile that no outline touches the counts stay as they are, and an integrator whose count stays as it
is, within the threshold, does not fire. The only float64 is that of outlines and crossings; the
launches forbid fused multiply-add, which would round once where the definition rounds twice.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import triton
import triton.language as tl

MULTIPLIER_A, MULTIPLIER_B = tl.constexpr(0xD2511F53), tl.constexpr(0xCD9E8D57)  # of Philox
KEY_STEP_A, KEY_STEP_B = tl.constexpr(0x9E3779B9), tl.constexpr(0xBB67AE85)
ROUNDS = tl.constexpr(10)
INITIAL, SHAPE = tl.constexpr(2), tl.constexpr(3)  # purposes
EVENT, BACKGROUND = tl.constexpr(4), tl.constexpr(5)
BLOCK, GROUP, ROUND = tl.constexpr(32), tl.constexpr(4), tl.constexpr(256)  # of scattered noise, see `noise.py`
TILE, ROWS = tl.constexpr(16), tl.constexpr(8)  # pixels across and down a tile
LANES, EACH = tl.constexpr(32), tl.constexpr(4)  # a tile as a warp sees it: each lane has so many pixels of one row
FARTHEST = tl.constexpr(2.0**30)  # pixel of a box

# Arguments that go together. Tensors are passed as pointers; `Outlines` are `Borders` and what is made of them here.
# T has six entries (6, recordings, actors, frames); ends, as `unit_ends`, are the same for all recordings or not;
# offsets are pixels to the right and down.
Placing = namedtuple("Placing", "T actors ends of_each actor offsets")
Outlines = namedtuple("Outlines", "crossings coefficients boxes first is_ellipse convex intensity")
Sizes = namedtuple("Sizes", "frames pieces entries width height sub_rows words_per_tile")
Part = namedtuple("Part", "start recorded fresh")  # step of frame 0, steps that are recorded, whether it is the first
# largest: of an initial state that is uniform, or 0; actors, dark: how many actors each recording has, and how many of
# them are darker than the background
Model = namedtuple("Model", "threshold initial largest drop_below actors dark")
# Of exact timing: own times of the frames (recordings, frames) and, for shape noise, their steps, a tensor with the
# microseconds in a unit of own time, the length of a step, the tick at which the recording ends, and how many steps
# there is room for in frames.
Moments = namedtuple("Moments", "own steps us_per_unit step_us end recorded fresh")
# What exact timing carries from call to call, read and written apart so that a call can be repeated: integrators, and
# the events that each pixel has fired.
Carried = namedtuple("Carried", "state next_state fired next_fired")
Source = namedtuple("Source", "seed indices tables")  # of random words and scattered noise


@triton.jit
def words(seed, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`."""
    a, key_a, key_b = element.to(tl.uint32), seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    b, c, d = (a * 0 + step).to(tl.uint32), (a * 0 + index).to(tl.uint32), (a * 0 + purpose).to(tl.uint32)
    for _ in tl.static_range(ROUNDS):
        first_high, first = tl.umulhi(a, MULTIPLIER_A), a * MULTIPLIER_A
        second_high, second = tl.umulhi(c, MULTIPLIER_B), c * MULTIPLIER_B
        a, b, c, d = second_high ^ b ^ key_a, second, first_high ^ d ^ key_b, first
        key_a, key_b = key_a + KEY_STEP_A, key_b + KEY_STEP_B
    return a, b, c, d


@triton.jit
def column(x, right):
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … right."""
    return tl.minimum(tl.maximum(tl.ceil(x - 0.5), 0.0), right).to(tl.int32)


@triton.jit
def crossing_of_side(y, top, bottom, x_top, slope):
    """Where a side crosses the line at y, and whether it does."""
    return x_top + (y - top) * slope, (top <= y) & (y < bottom)


@triton.jit
def crossings_of_ellipse(y, centre_y, reach, centre_x, tilt, width):
    """Where the line at y enters and leaves an ellipse, and whether it does."""
    dy = y - centre_y
    gap = reach - dy * dy
    half = width * tl.sqrt(tl.maximum(gap, 0.0))
    middle = centre_x + tilt * dy
    return middle - half, middle + half, gap > 0


@triton.jit
def initial_state(word, largest):
    """An integrator before the first step: -largest … largest."""
    return tl.umulhi(word, (word * 0 + (2 * largest + 1)).to(tl.uint32)).to(tl.int32) - largest


@triton.jit
def stationary_state(word, threshold, upward):
    """An integrator after shapes have passed: 0 … threshold - 1 after a change upward, otherwise its negative."""
    state = tl.umulhi(word, (word * 0 + threshold).to(tl.uint32)).to(tl.int32)
    return tl.where(upward, state, -state)


@triton.jit
def how_many(word, table):
    """How many pixels of a block a word picks: the number of bounds in the block's table that it reaches."""
    count, value = tl.zeros(word.shape, tl.int32), word.to(tl.int64)
    more = value >= tl.load(table)
    while tl.max(more.to(tl.int32)) > 0:
        count += more.to(tl.int32)
        more = more & (count < BLOCK) & (value >= tl.load(table + tl.minimum(count, BLOCK - 1)))
    return count


@triton.jit
def pick(word, last, chosen):
    """Floyd's pick out of the pixels 0 … last: any of them, or the last one if that is in the mask `chosen`."""
    pixel = tl.umulhi(word, (last + 1).to(tl.uint32)).to(tl.int32)
    return tl.where(((chosen >> pixel.to(tl.uint32)) & 1) != 0, last, pixel)


@triton.jit
def integrate_and_fire(state, change, threshold, to_zero: tl.constexpr):
    """An integrator with its change, whether it fires OFF or ON, and what the reset leaves."""
    integrated = state + change
    off, on = integrated < -threshold, integrated > threshold
    reset = integrated - threshold * (on.to(tl.int32) - off.to(tl.int32))
    if to_zero:
        reset = integrated * 0
    return integrated, off, on, tl.where(off | on, reset, integrated)


@triton.jit
def dropped(word, bound):
    """Whether event noise drops an event."""
    return word.to(tl.int64) < bound


@triton.jit
def passages(state, change, threshold):
    """How often an integrator passes its threshold while its count changes, and what is left."""
    along, size = tl.where(change < 0, -state, state), tl.abs(change)
    number = tl.where(size > 0, tl.maximum((along + size) // threshold, 0), 0)
    return number, state + change - threshold * tl.where(change < 0, -number, number)


@triton.jit
def passage_us(begin, length, missing, size, us_per_unit):
    """When a change by `size`, which takes `length` from `begin`, has come to `missing`: in µs, rounded up."""
    share = missing.to(tl.float64) / size.to(tl.float64)
    return tl.ceil((begin + length * share) * us_per_unit).to(tl.int64)


@triton.jit
def columns(coefficients, is_ellipse, y, right):
    """The columns where an entry crosses the sub-rows at y, and whether it does; a side has one column, given twice."""
    a, b, c = tl.load(coefficients), tl.load(coefficients + 1), tl.load(coefficients + 2)
    d, e = tl.load(coefficients + 3), tl.load(coefficients + 4)
    limit = y * 0.0 + right
    if is_ellipse:
        low, high, crosses = crossings_of_ellipse(y, a, b, c, d, e)
    else:
        low, crosses = crossing_of_side(y, a, b, c, d)
        high = low
    return column(low, limit), column(high, limit), crosses


@triton.jit
def bits_from(shift, F: tl.constexpr):
    """The sub-pixels of a pixel from number `shift` (0 … F) on, as bits."""
    full = tl.full(shift.shape, 0xFFFFFFFF >> (32 - F), tl.uint32)
    return tl.where(shift >= F, 0, (full << tl.minimum(shift, 31).to(tl.uint32)) & full)


@triton.jit
def left_of(column, x_fine, F: tl.constexpr):
    """(EACH, LANES): how many sub-pixels of each pixel lie left of a column, given per lane."""
    return tl.minimum(tl.maximum(column[None, :] - x_fine, 0), F)


@triton.jit
def share_left_of(columns, x, F: tl.constexpr):
    """(EACH, LANES): which share of each pixel's sub-pixels lies left of a column, given per lane.

    Columns are in sub-pixels and x in pixels, both measured from the tile's left. This is float32, whose product,
    difference and clipping are one instruction: exact if F is a power of two, and otherwise within a millionth.
    """
    inverse = tl.full(x.shape, 1.0 / F, tl.float32)
    return tl.minimum(
        tl.maximum(tl.fma(tl.broadcast_to(columns.to(tl.float32)[None, :], x.shape), inverse, -x), 0.0), 1.0
    )


@triton.jit
def covered_share(left, right, x, F: tl.constexpr):
    """(EACH, LANES): which share of each pixel's sub-pixels lies from column `left` up to `right`, given per lane."""
    return tl.maximum(share_left_of(right, x, F) - share_left_of(left, x, F), 0.0)


@triton.jit
def number_of(shares, F: tl.constexpr):
    """The whole number of sub-pixels that is nearest to a sum of shares.

    The float32 numbers from 2^23 to 2^24 are the whole ones, and their bits count them.
    """
    return (shares * F + 8388608.0).to(tl.int32, bitcast=True) - 0x4B000000


@triton.jit
def ones(word):
    """The number of bits set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def any_of(four, lane):
    """One of four words, chosen by a number that is known at run time only."""
    return tl.where(lane == 0, four[0], tl.where(lane == 1, four[1], tl.where(lane == 2, four[2], four[3])))


@triton.jit
def add_pick(word, size, count, i, chosen):
    """Pick number i (from 1) of a block, and the mask with it added."""
    pixel = pick(word, size - count + (i - 1), chosen)
    bit = tl.full(chosen.shape, 1, tl.uint32) << pixel.to(tl.uint32)
    return pixel, tl.where(i <= count, chosen | bit, chosen)


@triton.jit
def missing_pixels(seed, step, index, tables, y, block, width):
    """Masks of the pixels that shape noise takes out of one block of the rows y."""
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + GROUP - 1) // GROUP
    word = any_of(words(seed, y * groups + block // GROUP, step, index, SHAPE), block % GROUP)
    size = tl.zeros(y.shape, tl.int32) + tl.minimum(width - block * BLOCK, BLOCK)
    last = tl.zeros(y.shape, tl.int32) + (block == blocks - 1).to(tl.int32)
    count = how_many(word, tables + last * BLOCK)
    chosen = tl.zeros(y.shape, tl.uint32)
    most = tl.max(count)
    i = 0
    while i <= most:
        four = words(seed, y * blocks + block, step, index, SHAPE + ROUND * (1 + i // 4))
        if i > 0:
            _, chosen = add_pick(four[0], size, count, i, chosen)
        _, chosen = add_pick(four[1], size, count, i + 1, chosen)
        _, chosen = add_pick(four[2], size, count, i + 2, chosen)
        _, chosen = add_pick(four[3], size, count, i + 3, chosen)
        i += 4
    return tl.where(count > 0, chosen, 0)


@triton.jit
def near(box, x0, y0):
    """Whether a piece's box meets the tile at (x0, y0)."""
    across = (tl.load(box) < x0 + TILE) & (tl.load(box + 1) > x0)
    return across & (tl.load(box + 2) < y0 + ROWS) & (tl.load(box + 3) > y0)


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
    """Likewise of a circle of radius ½ under T, if it is there."""
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


@triton.jit
def row_of_pieces(outlines, sizes, recording, frame, y, k, x0, y0, x_fine, F: tl.constexpr, FINE: tl.constexpr):
    """(EACH, LANES): the visible sub-pixels, times their intensity, in sub-row k of each pixel row of a tile."""
    right = sizes.width * F
    occupied = tl.zeros((EACH, LANES), tl.uint32)
    total = tl.zeros((EACH, LANES), tl.int32)
    for away in range(sizes.pieces):  # from the nearest
        piece = sizes.pieces - 1 - away
        if near(outlines.boxes + (frame * sizes.pieces + piece) * 4, x0, y0):
            covered = tl.zeros((EACH, LANES), tl.uint32)
            if tl.load(outlines.convex + piece) != 0:
                lefts = outlines.crossings + (frame * sizes.pieces + piece) * 2 * sizes.sub_rows + y * FINE + k
                one, two = left_of(tl.load(lefts), x_fine, F), left_of(tl.load(lefts + sizes.sub_rows), x_fine, F)
                covered = bits_from(one, F) & ~bits_from(two, F)
            else:
                centre = (y * F + k).to(tl.float64) + 0.5
                for entry in range(tl.load(outlines.first + piece), tl.load(outlines.first + piece + 1)):
                    side = outlines.coefficients + (frame * sizes.entries + entry) * 5
                    one, two, crosses = columns(side, False, centre, right)
                    covered ^= bits_from(left_of(tl.where(crosses, one, right), x_fine, F), F)
            total += ones(covered & ~occupied) * tl.load(outlines.intensity + recording * sizes.pieces + piece)
            occupied |= covered
    return total


@triton.jit
def one_piece(lefts, sub_rows, y, x0, y0, F: tl.constexpr, FINE: tl.constexpr):
    """(EACH, LANES): how many sub-pixels a convex piece covers. `lefts` are its left crossings; the right ones follow.

    Most tiles see one side of a shape: the other lies beyond the tile in all sub-rows.
    """
    x, tile_left = x_in_tile().to(tl.float32), x0 * F
    shares = tl.zeros((EACH, LANES), tl.float32)
    every = lefts + y0 * FINE + tl.arange(0, ROWS * FINE)
    if tl.min(tl.load(every + sub_rows)) >= tile_left + TILE * F:
        shares += F
    else:
        for k in tl.static_range(F):
            shares += share_left_of(tl.load(lefts + y * FINE + sub_rows + k) - tile_left, x, F)
    if tl.max(tl.load(every)) > tile_left:
        for k in tl.static_range(F):
            shares -= share_left_of(tl.load(lefts + y * FINE + k) - tile_left, x, F)
    return number_of(shares, F)


@triton.jit
def two_pieces(near_lefts, far_lefts, sub_rows, y, x0, F: tl.constexpr, FINE: tl.constexpr):
    """(EACH, LANES), twice: the sub-pixels of the nearer of two convex pieces, and what is seen of the other."""
    x, tile_left = x_in_tile().to(tl.float32), x0 * F
    front, behind = tl.zeros((EACH, LANES), tl.float32), tl.zeros((EACH, LANES), tl.float32)
    for k in range(F):
        left_0 = tl.load(far_lefts + y * FINE + k) - tile_left
        right_0 = tl.load(far_lefts + y * FINE + sub_rows + k) - tile_left
        left_1 = tl.load(near_lefts + y * FINE + k) - tile_left
        right_1 = tl.load(near_lefts + y * FINE + sub_rows + k) - tile_left
        front += covered_share(left_1, right_1, x, F)
        behind += covered_share(left_0, right_0, x, F)
        behind -= covered_share(tl.maximum(left_0, left_1), tl.minimum(right_0, right_1), x, F)
    return number_of(front, F), number_of(behind, F)


@triton.jit
def pieces_near(outlines, sizes, frame, x0, y0):
    """How many pieces are near a tile, each that is not convex counted three times, and the last two of them."""
    close, far, nearest = 0, 0, 0
    for first in range(0, sizes.pieces, LANES):
        piece = first + tl.arange(0, LANES)
        there = piece < sizes.pieces
        box = outlines.boxes + (frame * sizes.pieces + piece) * 4
        across = (tl.load(box, mask=there, other=0) < x0 + TILE) & (tl.load(box + 1, mask=there, other=0) > x0)
        down = (tl.load(box + 2, mask=there, other=0) < y0 + ROWS) & (tl.load(box + 3, mask=there, other=0) > y0)
        some = there & across & down
        weight = tl.where(tl.load(outlines.convex + piece, mask=some, other=1) != 0, 1, 3)
        close += tl.sum(tl.where(some, weight, 0))
        last = tl.max(tl.where(some, piece, -1))
        before = tl.max(tl.where(some & (piece < last), piece, -1))
        far = tl.where(before >= 0, before, tl.where(last >= 0, nearest, far))
        nearest = tl.where(last >= 0, last, nearest)
    return close, far, nearest


@triton.jit
def activation(outlines, sizes, recording, frame, y, x0, y0, x_fine, F: tl.constexpr, FINE: tl.constexpr):
    """(EACH, LANES): the visible sub-pixels of each pixel of a tile, times their intensity."""
    close, far, nearest = pieces_near(outlines, sizes, frame, x0, y0)
    total = tl.zeros((EACH, LANES), tl.int32)
    bright = tl.load(outlines.intensity + recording * sizes.pieces + nearest)
    lefts = outlines.crossings + (frame * sizes.pieces + nearest) * 2 * sizes.sub_rows
    if close == 1:
        total = one_piece(lefts, sizes.sub_rows, y, x0, y0, F, FINE) * bright
    elif close == 2:
        far_lefts = outlines.crossings + (frame * sizes.pieces + far) * 2 * sizes.sub_rows
        front, behind = two_pieces(lefts, far_lefts, sizes.sub_rows, y, x0, F, FINE)
        total = front * bright + behind * tl.load(outlines.intensity + recording * sizes.pieces + far)
    elif close > 2:
        for k in range(F):
            total += row_of_pieces(outlines, sizes, recording, frame, y, k, x0, y0, x_fine, F, FINE)
    return total


@triton.jit
def next_marked(marks, i, words_per_tile):
    """The first marked frame of a tile from frame i on; 32 · `words_per_tile` if there is none."""
    k = i // 32
    word = tl.load(marks + tl.minimum(k, words_per_tile - 1)).to(tl.uint32, bitcast=True) >> (i % 32)
    at = i
    if (word == 0) | (k >= words_per_tile):
        word = word * 0
        while (word == 0) & (k < words_per_tile - 1):
            k += 1
            word = tl.load(marks + k).to(tl.uint32, bitcast=True)
        at = k * 32
    return tl.where(word == 0, 32 * words_per_tile, at + ones((word & (0 - word)) - 1))


@triton.jit
def beyond(v, threshold, inside):
    """1 if some integrator of a tile holds more than a threshold."""
    return tl.max((((v > threshold) | (v < -threshold)) & inside).to(tl.int32))


@triton.jit
def after_shapes(visible, seed, pixel, index, model, recording):
    """The stationary states of integrators that see `visible` at first."""
    four = words(seed, pixel, 0, index, INITIAL)
    chosen = tl.umulhi(four[1], (four[1] * 0 + tl.load(model.actors + recording)).to(tl.uint32)).to(tl.int64)
    left_by_dark = chosen < tl.load(model.dark + recording)
    return stationary_state(four[0], model.threshold, (visible > 0) | ((visible == 0) & left_by_dark))


@triton.jit
def without_missing(visible, seed, step, index, tables, y, x, x0, width):
    """What is seen after shape noise."""
    masks = missing_pixels(seed, step, index, tables, y, x0 // BLOCK, width)
    gone = (masks[None, :] >> (x % BLOCK).to(tl.uint32)) & 1
    return tl.where(gone != 0, 0, visible)


@triton.jit
def x_in_tile():
    """(EACH, LANES): where each pixel lies in its row of a tile.

    Neighbouring pixels are of neighbouring lanes: so the compiler does not move them between lanes to write them.
    """
    step = TILE // EACH
    return (tl.arange(0, LANES) % step)[None, :] + (tl.arange(0, EACH) * step)[:, None]


@triton.jit
def tile_at(sizes):
    """Where a program's tile is; of its pixels y (LANES,) and x (EACH, LANES), their numbers, and which exist."""
    across = (sizes.width + TILE - 1) // TILE
    x0, y0 = tl.program_id(0) % across * TILE, tl.program_id(0) // across * ROWS
    y = y0 + tl.arange(0, LANES) // (TILE // EACH)
    x = x0 + x_in_tile()
    inside = (y < sizes.height)[None, :] & (x < sizes.width)
    return x0, y0, y, x, y[None, :] * sizes.width + x, inside


@triton.jit
def put_in_list(packed, kept, out, room, filled):
    """Add events to a recording's list; `filled` counts on where there is no room."""
    hits = kept.to(tl.int32)
    of_lane = tl.sum(hits, axis=0)
    begin = tl.atomic_add(filled, tl.sum(of_lane))
    place = begin + (tl.cumsum(of_lane, axis=0) - of_lane)[None, :] + tl.cumsum(hits, axis=0) - hits
    tl.store(out + place, packed, mask=kept & (place < room))


@triton.jit
def put_in_frames(tick, p, kept, out, moments, area, pixel, COUNTED: tl.constexpr):
    """Write events into a recording's frames of steps: 1, or COUNTED one more than there is, up to 255.

    Microseconds are below 2^53, so that the quotient of two numbers of them rounds down to the whole number below it;
    on a GPU this takes a fraction of the time that a division of integers takes.
    """
    step = tl.floor(tick.to(tl.float64) / moments.step_us).to(tl.int64)
    kept = kept & (step < moments.recorded)
    at = out + (step * 2 + p) * area + pixel
    value = tl.full(tick.shape, 1, tl.uint8)
    if COUNTED:
        value = tl.minimum(tl.load(at, mask=kept, other=0).to(tl.int32) + 1, 255).to(tl.uint8)
    tl.store(at, value, mask=kept)


@triton.jit
def put_in_words(fired, on, row, across, rows_left):
    """Write which pixels of a tile fire as bits, a word for each row of it; `row` is where the first one lies."""
    shift = 2 * x_in_tile() + on.to(tl.int32)
    bits = tl.where(fired, tl.full(shift.shape, 1, tl.int32) << shift, 0)  # all different: their sum has them all
    word = tl.sum(tl.reshape(tl.sum(bits, axis=0), (ROWS, TILE // EACH)), axis=1)
    y = tl.arange(0, ROWS)
    tl.store(row + y * across, word, mask=(word != 0) & (y < rows_left))


@triton.jit
def between(
    out, room, filled, carried, marks, outlines, sizes, moments, model, source,
    F: tl.constexpr, FINE: tl.constexpr, STATIONARY: tl.constexpr, HAS_SHAPE: tl.constexpr, HAS_EVENT: tl.constexpr,
    CARRY: tl.constexpr, LISTED: tl.constexpr, COUNTED: tl.constexpr,
):  # fmt: skip
    """Exact timing: one tile of one recording passes its thresholds between frames 0, 1, ….

    With LISTED, `out` has room for `room` packed events of each recording, of which `filled` says how many there are;
    otherwise it has frames.
    """
    recording = tl.program_id(1).to(tl.int64)
    marks += (recording * tl.num_programs(0) + tl.program_id(0)) * sizes.words_per_tile
    first = next_marked(marks, tl.program_id(0) * 0 + 1, sizes.words_per_tile)  # a tensor: what loops carry is one
    if (first >= sizes.frames) & (CARRY == 0):
        return
    seed, index, us_per_unit = tl.load(source.seed), tl.load(source.indices + recording), tl.load(moments.us_per_unit)
    x0, y0, y, x, pixel, inside = tile_at(sizes)
    area = sizes.height * sizes.width
    at = recording * area + pixel

    v = tl.zeros((EACH, LANES), tl.int32) + model.initial
    fired = tl.zeros((EACH, LANES), tl.int32)
    if moments.fresh:
        if model.largest > 0:
            v = initial_state(words(seed, pixel, 0, index, INITIAL)[0], model.largest)
        if STATIONARY & CARRY:  # a tile that nothing moves in does not look at the picture later
            seen = activation(outlines, sizes, recording, recording * sizes.frames, y, x0, y0, x * F, F, FINE)
            v = after_shapes(seen, seed, pixel, index, model, recording)
    else:
        v = tl.load(carried.state + at, mask=inside, other=0)
        if HAS_EVENT:
            fired = tl.load(carried.fired + at, mask=inside, other=0)
    shown, begun = tl.zeros((EACH, LANES), tl.int32), 0  # what frame i - 1 shows, and whether it is known

    i = tl.where(first < sizes.frames, first - 1, sizes.frames)  # the frame before the first change
    while i < sizes.frames:
        frame = recording * sizes.frames + i
        visible = activation(outlines, sizes, recording, frame, y, x0, y0, x * F, F, FINE)
        if HAS_SHAPE:
            step = tl.load(moments.steps + frame)
            visible = without_missing(visible, seed, step, index, source.tables, y, x, x0, sizes.width)
        if begun == 0:
            if STATIONARY & (moments.fresh != 0):
                v = after_shapes(visible, seed, pixel, index, model, recording)
        else:
            begin = tl.load(moments.own + frame - 1)
            duration = tl.load(moments.own + frame) - begin
            change = visible - shown
            number, left = passages(v, change, model.threshold)
            number = tl.where(inside, number, 0)
            along, size = tl.where(change < 0, -v, v), tl.maximum(tl.abs(change), 1)
            p = (change > 0).to(tl.int64)
            most = tl.max(number)
            nth = 0
            while nth < most:
                missing = (nth + 1) * model.threshold - along
                tick = passage_us(begin, duration, missing, size, us_per_unit) + (moments.step_us - 1)
                kept = (nth < number) & (tick >= moments.step_us) & (tick < moments.end)
                if HAS_EVENT:
                    kept = kept & (dropped(words(seed, pixel, fired + nth, index, EVENT)[0], model.drop_below) == 0)
                if LISTED:
                    packed = ((tick * area + pixel) * 2 + p) * 2
                    put_in_list(packed, kept, out + recording * room, room, filled + recording)
                else:
                    planes = out + recording * moments.recorded * 2 * area
                    put_in_frames(tick, p, kept, planes, moments, area, pixel, COUNTED)
                nth += 1
            v = left
            fired += number
        shown = visible
        begun = 1
        i = next_marked(marks, i + 1, sizes.words_per_tile)
    if CARRY:
        tl.store(carried.next_state + at, v, mask=inside)
        if HAS_EVENT:
            tl.store(carried.next_fired + at, fired, mask=inside)


@triton.jit
def signal(
    out, state, marks, outlines, sizes, part, model, source,
    F: tl.constexpr, FINE: tl.constexpr, TO_ZERO: tl.constexpr, STATIONARY: tl.constexpr, HAS_SHAPE: tl.constexpr,
    HAS_EVENT: tl.constexpr, CARRY: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Integrate and fire: one tile of one recording over frames 1 …; frame 0 is the one before them.

    FINE is F rounded up to a power of two. With BITS, `out` has words; otherwise it has bytes.
    """
    recording = tl.program_id(1).to(tl.int64)
    marks += (recording * tl.num_programs(0) + tl.program_id(0)) * sizes.words_per_tile
    first = next_marked(marks, tl.program_id(0) * 0 + 1, sizes.words_per_tile)  # a tensor: what loops carry is one
    if (first >= sizes.frames) & (part.fresh != 0) & (CARRY == 0):
        return
    seed, index = tl.load(source.seed), tl.load(source.indices + recording)
    x0, y0, y, x, pixel, inside = tile_at(sizes)

    carried = state + recording * sizes.height * sizes.width + pixel
    v = tl.zeros((EACH, LANES), tl.int32) + model.initial
    pending = 0  # whether some integrator still holds more than a threshold
    if part.fresh:
        if model.largest > 0:
            v = initial_state(words(seed, pixel, 0, index, INITIAL)[0], model.largest)
        if STATIONARY & CARRY:  # a tile that nothing moves in does not look at the picture later
            seen = activation(outlines, sizes, recording, recording * sizes.frames, y, x0, y0, x * F, F, FINE)
            v = after_shapes(seen, seed, pixel, index, model, recording)
    else:
        v = tl.load(carried, mask=inside, other=0)
        pending = beyond(v, model.threshold, inside)
    shown, begun = tl.zeros((EACH, LANES), tl.int32), 0  # what frame i - 1 shows, and whether it is known

    i = tl.where(first < sizes.frames, first - 1, sizes.frames)  # the frame before the first change
    if pending != 0:
        i = part.fresh * 0
    while i < sizes.frames:
        step = part.start + i
        frame = recording * sizes.frames + i
        visible = activation(outlines, sizes, recording, frame, y, x0, y0, x * F, F, FINE)
        if HAS_SHAPE:
            visible = without_missing(visible, seed, step, index, source.tables, y, x, x0, sizes.width)
        if begun == 0:
            if STATIONARY & (part.fresh != 0):
                v = after_shapes(visible, seed, pixel, index, model, recording)
        else:
            _, off, on, v = integrate_and_fire(v, visible - shown, model.threshold, TO_ZERO)
            if not TO_ZERO:
                pending = beyond(v, model.threshold, inside)
            fired = (off | on) & inside
            if step >= 0:
                if HAS_EVENT:
                    word = words(seed, pixel, step, index, EVENT)[0]
                    fired = fired & (dropped(word, model.drop_below) == 0)
                recorded = recording * part.recorded + (i - (sizes.frames - part.recorded))
                if BITS:
                    across = (sizes.width + TILE - 1) // TILE
                    row = out + (recorded * sizes.height + y0) * across + x0 // TILE
                    put_in_words(fired, on, row, across, sizes.height - y0)
                else:
                    area = sizes.height * sizes.width
                    tl.store(out + recorded * 2 * area + (on.to(tl.int32) * area + pixel), 1, mask=fired)
        shown = visible
        begun = 1
        i += 1
        if pending == 0:
            i = next_marked(marks, i, sizes.words_per_tile)
    if CARRY:
        tl.store(carried, v, mask=inside)


@triton.jit
def has_noise(word, exists, block, blocks, tables):
    """Whether background noise picks at least one pixel of a block."""
    bound = tl.where(block == blocks - 1, tl.load(tables + BLOCK), tl.load(tables))
    return exists & (block < blocks) & (word.to(tl.int64) >= bound)


@triton.jit
def count(listed, room, filled, source, steps, start, width, lanes, AT_ONCE: tl.constexpr):
    """List the blocks in which background noise fires: recording · steps + step, y · blocks + block, and their word.

    One lane for each group of four blocks of a row, at one step of one recording.
    """
    frame = tl.program_id(0).to(tl.int64)
    recording, step = frame // steps, start + frame % steps
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + GROUP - 1) // GROUP
    element = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    y, group = element // groups, element % groups
    four = words(tl.load(source.seed), element, step, tl.load(source.indices + recording), BACKGROUND)
    hits = tl.zeros((AT_ONCE,), tl.int32)
    for lane in tl.static_range(GROUP):
        hits += has_noise(four[lane], element < lanes, group * GROUP + lane, blocks, source.tables).to(tl.int32)
    total = tl.sum(hits)
    if total > 0:
        place = tl.atomic_add(filled, total.to(tl.int64)) + tl.cumsum(hits, axis=0) - hits
        for lane in tl.static_range(GROUP):
            block = group * GROUP + lane
            some = has_noise(four[lane], element < lanes, block, blocks, source.tables)
            kept = some & (place < room)
            tl.store(listed + place * 3, frame, mask=kept)
            tl.store(listed + place * 3 + 1, (y * blocks + block).to(tl.int64), mask=kept)
            tl.store(listed + place * 3 + 2, four[lane].to(tl.int64), mask=kept)
            place += some.to(tl.int64)


@triton.jit
def scatter(
    out, noise, listed, filled, source, steps, start, width, height,
    AT_ONCE: tl.constexpr, BITS: tl.constexpr, COUNTED: tl.constexpr,
):  # fmt: skip
    """Choose the pixels of the listed blocks, one lane for each block, and write those in which nothing fired.

    COUNTED frames have one more event in each chosen pixel, up to 255. BITS: what fired is read from the words `out`,
    and the noise is written into words of its own; otherwise both are the same bytes.
    """
    seed = tl.load(source.seed)
    item = tl.program_id(0).to(tl.int64) * AT_ONCE + tl.arange(0, AT_ONCE)
    some = item < tl.load(filled)
    frame = tl.load(listed + item * 3, mask=some, other=0)
    element = tl.load(listed + item * 3 + 1, mask=some, other=0).to(tl.int32)
    word = tl.load(listed + item * 3 + 2, mask=some, other=0)
    blocks = (width + BLOCK - 1) // BLOCK
    y, block = element // blocks, element % blocks
    size = tl.minimum(width - block * BLOCK, BLOCK)
    table = source.tables + (block == blocks - 1).to(tl.int32) * BLOCK
    number = tl.where(some, how_many(word.to(tl.uint32), table), 0)
    index, step = tl.load(source.indices + frame // steps), (start + frame % steps).to(tl.int32)
    chosen = tl.zeros((AT_ONCE,), tl.uint32)
    four = words(seed, element, step, index, BACKGROUND + ROUND)
    polarities = four[0]
    most = tl.max(number)
    i = 1
    while i <= most:
        if i % 4 == 0:
            four = words(seed, element, step, index, BACKGROUND + ROUND * (1 + i // 4))
        pixel, chosen = add_pick(any_of(four, i % 4), size, number, i, chosen)
        p = ((polarities >> pixel.to(tl.uint32)) & 1).to(tl.int64)
        x = block * BLOCK + pixel
        if BITS:
            at = (frame * height + y) * ((width + TILE - 1) // TILE) + x // TILE
            bit = tl.full(x.shape, 1, tl.int32) << (x % TILE * 2 + p.to(tl.int32))
            there = tl.load(out + at, mask=i <= number, other=0) & bit
            tl.atomic_or(noise + at, bit, mask=(i <= number) & (there == 0), sem="relaxed")
        else:
            at = (frame * 2 + p) * height * width + y * width + x
            there = tl.load(out + at, mask=i <= number, other=1)
            if COUNTED:
                tl.store(noise + at, tl.minimum(there.to(tl.int32) + 1, 255).to(tl.uint8), mask=i <= number)
            else:
                tl.store(noise + at, 1, mask=(i <= number) & (there == 0))
        i += 1


@triton.jit
def words_at(words, first, number, AT_ONCE: tl.constexpr):
    """Some of the words of a frame, from `first` on; 0 beyond their `number`."""
    k = first + tl.arange(0, AT_ONCE)
    return tl.load(words + k, mask=k < number, other=0).to(tl.uint32, bitcast=True)


@triton.jit
def tally(counts, out, noise, number, AT_ONCE: tl.constexpr):
    """How many events a frame of `number` words has, signal and noise."""
    frame = tl.program_id(0).to(tl.int64)
    total = tl.zeros((AT_ONCE,), tl.int32)
    for first in range(0, number, AT_ONCE):
        signal_words = words_at(out + frame * number, first, number, AT_ONCE)
        total += ones(signal_words | words_at(noise + frame * number, first, number, AT_ONCE))
    tl.store(counts + frame, tl.sum(total))


@triton.jit
def gather(
    keys, background, begins, first_frame, out, noise, number, steps, start, width, height, AT_ONCE: tl.constexpr
):  # fmt: skip
    """The events of a frame, in order, and whether they are noise; `begins` says how many come before it."""
    frame = first_frame + tl.program_id(0).to(tl.int64)
    place = tl.load(begins + frame) - tl.load(begins + first_frame)
    top = (start + frame % steps) * height
    across = (width + TILE - 1) // TILE
    for first in range(0, number, AT_ONCE):
        noise_words = words_at(noise + frame * number, first, number, AT_ONCE)
        left = words_at(out + frame * number, first, number, AT_ONCE) | noise_words
        count = ones(left)
        total = tl.sum(count)
        if total > 0:
            at = place + tl.cumsum(count, axis=0) - count
            k = first + tl.arange(0, AT_ONCE)
            pixel = (top + k // across) * width + k % across * TILE
            most = tl.max(count)
            i = 0
            while i < most:
                bit = ones((left & (0 - left)) - 1)  # the number of the lowest one
                tl.store(keys + at, pixel * 2 + bit, mask=i < count)
                tl.store(background + at, (noise_words >> (bit & 31).to(tl.uint32)) & 1, mask=i < count)
                left = left & (left - 1)
                at += 1
                i += 1
            place += total

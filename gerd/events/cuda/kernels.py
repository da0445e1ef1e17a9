"""The kernels of the `cuda` backend that integrate and fire:

    signal      one program per recording and tile: integrators stay in registers while it visits the marked steps
    between     the same from instant to instant, in exact timing; events go into frames, or into a list

What comes before is in `outlines.py`, and what comes after in `output.py`. Signal and background noise write
only where something fires, into an output that is zero: frames of bytes, or, where events are wanted, of bits. A word
of 32 bits has 16 pixels of a row, OFF before ON of each, so that its bits are in the order of the events; each tile has
words of its own. What is skipped changes no bit: in a tile that no outline touches the counts stay as they are, and an
integrator whose count stays as it is, within the threshold, does not fire. The only float64 is that of outlines and
crossings; the launches forbid fused multiply-add, which would round once where the definition rounds twice.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import triton
import triton.language as tl

from gerd.events.cuda.rules import (
    BLOCK,
    EVENT,
    INITIAL,
    column,
    crossing_of_side,
    crossings_of_ellipse,
    dropped,
    gain,
    initial_state,
    integrate_and_fire,
    next_event,
    passage_us,
    passages,
    response,
    stationary_state,
    threshold_ahead,
    words,
)
from gerd.events.cuda.scattered import missing_pixels, ones

NEVER = tl.constexpr(-(2**62))  # µs before all events
TILE, ROWS = tl.constexpr(16), tl.constexpr(8)  # pixels across and down a tile
LANES, EACH = tl.constexpr(32), tl.constexpr(4)  # a tile as a warp sees it: each lane has so many pixels of one row

# Arguments that go together. Tensors are passed as pointers; `Outlines` are `Borders` and what is made of them here.
Outlines = namedtuple("Outlines", "crossings coefficients boxes first is_ellipse convex intensity")
Sizes = namedtuple("Sizes", "frames pieces entries width height sub_rows words_per_tile")
# The steps of a launch: that of frame 0, how many are recorded, and whether none came before; the µs of a step.
Window = namedtuple("Window", "start recorded fresh step_us")
# on, off, least, most: of `Thresholds`. If pixels or polarities differ, tensors with the numbers of each pixel,
# otherwise numbers, of which `off` is not looked at. actors, dark: how many actors each recording has, and how many of
# them are darker than the background. table, lowest: of `Response`. rest: how long a pixel rests after an event, in
# steps or µs. leak: a tensor with how many ON thresholds leak into an integrator per µs.
Model = namedtuple("Model", "on off least most drop_below actors dark table lowest rest leak")
# Of exact timing: own times of the frames (recordings, frames) and, for shape noise, their steps, a tensor with the
# microseconds in a unit of own time, the length of a step, the tick at which the recording ends, and how many steps
# there is room for in frames.
Moments = namedtuple("Moments", "own steps us_per_unit step_us end recorded fresh")
# What exact timing carries from call to call, read and written apart so that a call can be repeated: integrators, the
# events that each pixel has fired, and the µs from which on it may fire again.
Carried = namedtuple("Carried", "state next_state fired next_fired ready next_ready")
Chance = namedtuple("Chance", "seed indices tables")  # of random words and scattered noise


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
def near(box, x0, y0):
    """Whether a piece's box meets the tile at (x0, y0)."""
    across = (tl.load(box) < x0 + TILE) & (tl.load(box + 1) > x0)
    return across & (tl.load(box + 2) < y0 + ROWS) & (tl.load(box + 3) > y0)


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
def of_pixels(number, pixel, inside, OWN: tl.constexpr):
    """(EACH, LANES): a number that all pixels share, or with OWN that of each pixel of a tile, and 1 outside."""
    result = tl.zeros((EACH, LANES), tl.int32)
    if OWN:
        result = tl.load(number + pixel, mask=inside, other=1)
    else:
        result += number
    return result


@triton.jit
def thresholds_of(model, pixel, inside, OWN: tl.constexpr):
    """(EACH, LANES), twice: the thresholds of ON and of OFF events."""
    on = of_pixels(model.on, pixel, inside, OWN)
    off = on
    if OWN:
        off = of_pixels(model.off, pixel, inside, OWN)
    return on, off


@triton.jit
def felt(visible, model, IS_LOG: tl.constexpr):
    """What integrators see of what is visible."""
    if IS_LOG:
        visible = response(visible, model.table, model.lowest)
    return visible


@triton.jit
def beyond(v, on, off, inside):
    """1 if some integrator of a tile holds more than a threshold."""
    return tl.max((((v > on) | (v < -off)) & inside).to(tl.int32))


@triton.jit
def waiting(v, on, off, inside):
    """1 if some integrator of a tile is at a threshold in exact timing: it has to rest."""
    return tl.max((((v >= on) | (v <= -off)) & inside).to(tl.int32))


@triton.jit
def after_shapes(visible, seed, pixel, index, on, off, model, recording):
    """The stationary states of integrators that see `visible` at first."""
    four = words(seed, pixel, 0, index, INITIAL)
    chosen = tl.umulhi(four[1], (four[1] * 0 + tl.load(model.actors + recording)).to(tl.uint32)).to(tl.int64)
    left_by_dark = chosen < tl.load(model.dark + recording)
    return stationary_state(four[0], on, off, (visible > 0) | ((visible == 0) & left_by_dark))


@triton.jit
def without_missing(visible, seed, step, index, tables, y, x0, sizes):
    """What is seen after shape noise. A row of a tile lies in one block, or in two."""
    first, pixels = y * sizes.width + x0, sizes.height * sizes.width
    place = (first % BLOCK).to(tl.uint64)
    masks = missing_pixels(seed, step, index, tables, first // BLOCK, pixels) >> place
    if tl.max(first % BLOCK) > BLOCK - TILE:
        more = missing_pixels(seed, step, index, tables, first // BLOCK + 1, pixels)
        masks |= (more << 1) << (tl.full(place.shape, BLOCK - 1, tl.uint64) - place)
    gone = (masks[None, :] >> x_in_tile().to(tl.uint64)) & 1
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
    out, room, filled, carried, marks, outlines, sizes, moments, model, chance,
    F: tl.constexpr, FINE: tl.constexpr, STATIONARY: tl.constexpr, HAS_SHAPE: tl.constexpr, HAS_EVENT: tl.constexpr,
    CARRY: tl.constexpr, LISTED: tl.constexpr, COUNTED: tl.constexpr, OWN: tl.constexpr, IS_LOG: tl.constexpr,
    RESTS: tl.constexpr, TO_ZERO: tl.constexpr, LEAKS: tl.constexpr,
):  # fmt: skip
    """Exact timing: one tile of one recording passes its thresholds between frames 0, 1, ….

    With LISTED, `out` has room for `room` packed events of each recording, of which `filled` says how many there are;
    otherwise it has frames.
    """
    recording = tl.program_id(1).to(tl.int64)
    marks += (recording * tl.num_programs(0) + tl.program_id(0)) * sizes.words_per_tile
    first = next_marked(marks, tl.program_id(0) * 0 + 1, sizes.words_per_tile)  # a tensor: what loops carry is one
    if (first >= sizes.frames) & (CARRY == 0) & (LEAKS == 0):
        return
    seed, index, us_per_unit = tl.load(chance.seed), tl.load(chance.indices + recording), tl.load(moments.us_per_unit)
    x0, y0, y, x, pixel, inside = tile_at(sizes)
    area = sizes.height * sizes.width
    at = recording * area + pixel

    on, off = thresholds_of(model, pixel, inside, OWN)
    v = tl.zeros((EACH, LANES), tl.int32)
    fired = tl.zeros((EACH, LANES), tl.int32)
    ready = tl.full((EACH, LANES), NEVER, tl.int64)
    pending = 0  # whether some integrator waits until it has rested
    if moments.fresh:
        if not STATIONARY:
            least, most = of_pixels(model.least, pixel, inside, OWN), of_pixels(model.most, pixel, inside, OWN)
            v = initial_state(words(seed, pixel, 0, index, INITIAL)[0], least, most)
        elif CARRY:  # a tile that nothing moves in does not look at the picture later
            seen = activation(outlines, sizes, recording, recording * sizes.frames, y, x0, y0, x * F, F, FINE)
            v = after_shapes(seen, seed, pixel, index, on, off, model, recording)
    else:
        v = tl.load(carried.state + at, mask=inside, other=0)
        if HAS_EVENT:
            fired = tl.load(carried.fired + at, mask=inside, other=0)
        if RESTS:
            ready = tl.load(carried.ready + at, mask=inside, other=NEVER)
            pending = waiting(v, on, off, inside)
    shown, begun = tl.zeros((EACH, LANES), tl.int32), 0  # what frame i - 1 shows, and whether it is known

    i = tl.where(first < sizes.frames, first - 1, sizes.frames)  # the frame before the first change
    if RESTS:
        i = tl.where(pending != 0, 0, i)
    if LEAKS:  # into every pixel, all the time
        i = i * 0
    while i < sizes.frames:
        frame = recording * sizes.frames + i
        visible = activation(outlines, sizes, recording, frame, y, x0, y0, x * F, F, FINE)
        if HAS_SHAPE:
            step = tl.load(moments.steps + frame)
            visible = without_missing(visible, seed, step, index, chance.tables, y, x0, sizes)
        if begun == 0:
            if STATIONARY & (moments.fresh != 0):
                v = after_shapes(visible, seed, pixel, index, on, off, model, recording)
        visible = felt(visible, model, IS_LOG)
        if begun != 0:
            begin = tl.load(moments.own + frame - 1)
            duration = tl.load(moments.own + frame) - begin
            change = visible - shown
            leaks = (change <= 0) & (v <= on)  # whether an ON event is put down to the leak
            if LEAKS:
                per_us, until = tl.load(model.leak), tl.load(moments.own + frame) * us_per_unit
                change += (gain(on, per_us, until) - gain(on, per_us, begin * us_per_unit)).to(tl.int32)
            planes = out + recording * moments.recorded * 2 * area
            if RESTS:
                end = tl.load(moments.own + frame)
                done = tl.zeros((EACH, LANES), tl.int32)
                more = tl.max(inside.to(tl.int32))
                while more != 0:
                    fires, us, is_on, v, done, ready = next_event(
                        v, done, ready, change, on, off, begin, end, us_per_unit, TO_ZERO, model.rest
                    )
                    fires = fires & inside
                    tick, p = us + (moments.step_us - 1), is_on.to(tl.int64)
                    kept = fires & (tick >= moments.step_us) & (tick < moments.end)
                    if HAS_EVENT:
                        kept = kept & (dropped(words(seed, pixel, fired, index, EVENT)[0], model.drop_below) == 0)
                    if LISTED:
                        packed = ((tick * area + pixel) * 2 + p) * 2
                        if LEAKS:
                            packed += p * leaks.to(tl.int64)
                        put_in_list(packed, kept, out + recording * room, room, filled + recording)
                    else:
                        put_in_frames(tick, p, kept, planes, moments, area, pixel, COUNTED)
                    fired += fires.to(tl.int32)
                    more = tl.max(fires.to(tl.int32))
                pending = waiting(v, on, off, inside)
            else:
                ahead = threshold_ahead(change, on, off)
                number, left = passages(v, change, ahead)
                number = tl.where(inside, number, 0)
                along, size = tl.where(change < 0, -v, v), tl.maximum(tl.abs(change), 1)
                p = (change > 0).to(tl.int64)
                passes = tl.max(number)  # of the pixel that passes its threshold most often
                nth = 0
                while nth < passes:
                    missing = (nth + 1) * ahead - along
                    tick = passage_us(begin, duration, missing, size, us_per_unit) + (moments.step_us - 1)
                    kept = (nth < number) & (tick >= moments.step_us) & (tick < moments.end)
                    if HAS_EVENT:
                        kept = kept & (dropped(words(seed, pixel, fired + nth, index, EVENT)[0], model.drop_below) == 0)
                    if LISTED:
                        packed = ((tick * area + pixel) * 2 + p) * 2
                        if LEAKS:
                            packed += p * leaks.to(tl.int64)
                        put_in_list(packed, kept, out + recording * room, room, filled + recording)
                    else:
                        put_in_frames(tick, p, kept, planes, moments, area, pixel, COUNTED)
                    nth += 1
                v = left
                fired += number
        shown = visible
        begun = 1
        i += 1
        if (pending == 0) & (LEAKS == 0):
            i = next_marked(marks, i, sizes.words_per_tile)
    if CARRY:
        tl.store(carried.next_state + at, v, mask=inside)
        if HAS_EVENT:
            tl.store(carried.next_fired + at, fired, mask=inside)
        if RESTS:
            tl.store(carried.next_ready + at, ready, mask=inside)


@triton.jit
def signal(
    out, leaked, state, ready, marks, outlines, sizes, window, model, chance,
    F: tl.constexpr, FINE: tl.constexpr, TO_ZERO: tl.constexpr, STATIONARY: tl.constexpr, HAS_SHAPE: tl.constexpr,
    HAS_EVENT: tl.constexpr, CARRY: tl.constexpr, BITS: tl.constexpr, OWN: tl.constexpr, IS_LOG: tl.constexpr,
    RESTS: tl.constexpr, LEAKS: tl.constexpr,
):  # fmt: skip
    """Integrate and fire: one tile of one recording over frames 1 …; frame 0 is the one before them.

    FINE is F rounded up to a power of two. With BITS, `out` has words, as has `leaked` for what is put down to the
    leak; otherwise it has bytes.
    """
    recording = tl.program_id(1).to(tl.int64)
    marks += (recording * tl.num_programs(0) + tl.program_id(0)) * sizes.words_per_tile
    first = next_marked(marks, tl.program_id(0) * 0 + 1, sizes.words_per_tile)  # a tensor: what loops carry is one
    if (first >= sizes.frames) & (window.fresh != 0) & (CARRY == 0) & (LEAKS == 0):
        return
    seed, index = tl.load(chance.seed), tl.load(chance.indices + recording)
    x0, y0, y, x, pixel, inside = tile_at(sizes)

    carried = state + recording * sizes.height * sizes.width + pixel
    readied = ready + recording * sizes.height * sizes.width + pixel
    on, off = thresholds_of(model, pixel, inside, OWN)
    v = tl.zeros((EACH, LANES), tl.int32)
    pending = 0  # whether some integrator still holds more than a threshold
    may_fire = tl.full((EACH, LANES), -(2**30), tl.int32)  # the step from which on each may
    if window.fresh:
        if not STATIONARY:
            least, most = of_pixels(model.least, pixel, inside, OWN), of_pixels(model.most, pixel, inside, OWN)
            v = initial_state(words(seed, pixel, 0, index, INITIAL)[0], least, most)
        elif CARRY:  # a tile that nothing moves in does not look at the picture later
            seen = activation(outlines, sizes, recording, recording * sizes.frames, y, x0, y0, x * F, F, FINE)
            v = after_shapes(seen, seed, pixel, index, on, off, model, recording)
    else:
        v = tl.load(carried, mask=inside, other=0)
        if RESTS:
            may_fire = tl.load(readied, mask=inside, other=0)
        pending = beyond(v, on, off, inside)
    shown, begun = tl.zeros((EACH, LANES), tl.int32), 0  # what frame i - 1 shows, and whether it is known

    i = tl.where(first < sizes.frames, first - 1, sizes.frames)  # the frame before the first change
    if (pending != 0) | (LEAKS != 0):
        i = window.fresh * 0
    while i < sizes.frames:
        step = window.start + i
        frame = recording * sizes.frames + i
        visible = activation(outlines, sizes, recording, frame, y, x0, y0, x * F, F, FINE)
        if HAS_SHAPE:
            visible = without_missing(visible, seed, step, index, chance.tables, y, x0, sizes)
        if begun == 0:
            if STATIONARY & (window.fresh != 0):
                v = after_shapes(visible, seed, pixel, index, on, off, model, recording)
        visible = felt(visible, model, IS_LOG)
        if begun != 0:
            rested = True
            if RESTS:
                rested = step >= may_fire
            change = visible - shown
            leaks = (change <= 0) & (v <= on)  # whether an ON event is put down to the leak
            if LEAKS:
                per_us, us = tl.load(model.leak), (i * 0 + step).to(tl.float64) * window.step_us
                before = (i * 0 + step - 1).to(tl.float64) * window.step_us
                change += (gain(on, per_us, us) - gain(on, per_us, before)).to(tl.int32)
            _, is_off, is_on, v = integrate_and_fire(v, change, on, off, TO_ZERO, rested)
            if RESTS or not TO_ZERO:
                pending = beyond(v, on, off, inside)
            fired = (is_off | is_on) & inside
            if RESTS:
                may_fire = tl.where(fired, step + model.rest, may_fire)
            if step >= 0:
                if HAS_EVENT:
                    word = words(seed, pixel, step, index, EVENT)[0]
                    fired = fired & (dropped(word, model.drop_below) == 0)
                recorded = recording * window.recorded + (i - (sizes.frames - window.recorded))
                if BITS:
                    across = (sizes.width + TILE - 1) // TILE
                    row = out + (recorded * sizes.height + y0) * across + x0 // TILE
                    put_in_words(fired, is_on, row, across, sizes.height - y0)
                    if LEAKS:
                        row = leaked + (recorded * sizes.height + y0) * across + x0 // TILE
                        put_in_words(fired & is_on & leaks, is_on, row, across, sizes.height - y0)
                else:
                    area = sizes.height * sizes.width
                    tl.store(out + recorded * 2 * area + (is_on.to(tl.int32) * area + pixel), 1, mask=fired)
        shown = visible
        begun = 1
        i += 1
        if (pending == 0) & (LEAKS == 0):
            i = next_marked(marks, i, sizes.words_per_tile)
    if CARRY:
        tl.store(carried, v, mask=inside)
        if RESTS:
            tl.store(readied, may_fire, mask=inside)

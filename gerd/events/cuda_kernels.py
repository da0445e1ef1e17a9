"""The kernels of the `cuda` backend, in Triton. Names and order of operations are those of `definition.py`.

    spans       where each sub-row enters and leaves each piece
    mark        which tiles of the frame a moving outline can touch at each step, as bits
    signal      one program per recording and tile: integrators stay in registers while it visits the marked steps
    count       background noise: how many pixels of each block fire
    scatter     and which

Signal and background noise write only the bytes where something fires, into an output that is zero. The only float64
is that of the crossings, in `columns`; the launches forbid fused multiply-add.
"""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = tl.constexpr(32)  # pixels of a row that share a draw of scattered noise
TILE, ROWS = tl.constexpr(16), tl.constexpr(8)  # pixels across and down a tile
LANES, EACH = tl.constexpr(32), tl.constexpr(4)  # a tile as a warp sees it: each lane has neighbours in one pixel row
INITIAL, SHAPE = tl.constexpr(2), tl.constexpr(3)  # purposes
EVENT, BACKGROUND = tl.constexpr(4), tl.constexpr(5)


@triton.jit
def words(key_a, key_b, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`."""
    a = element.to(tl.uint32)
    b = (a * 0 + step).to(tl.uint32)
    c = (a * 0 + index).to(tl.uint32)
    d = (a * 0 + purpose).to(tl.uint32)
    for _ in tl.static_range(10):
        first_high, first_low = tl.umulhi(a, 0xD2511F53), a * 0xD2511F53
        second_high, second_low = tl.umulhi(c, 0xCD9E8D57), c * 0xCD9E8D57
        a = second_high ^ b ^ key_a
        b = second_low
        c = first_high ^ d ^ key_b
        d = first_low
        key_a += 0x9E3779B9
        key_b += 0xBB67AE85
    return a, b, c, d


@triton.jit
def columns(coefficients, is_ellipse, y, right):
    """The columns where an entry crosses the sub-rows at y, and whether it does; a side has one column, given twice."""
    a, b, c = tl.load(coefficients), tl.load(coefficients + 1), tl.load(coefficients + 2)
    d, e = tl.load(coefficients + 3), tl.load(coefficients + 4)
    limit = y * 0.0 + right
    if is_ellipse:
        dy = y - a
        gap = b - dy * dy
        half = e * tl.sqrt(tl.maximum(gap, 0.0))
        middle = c + d * dy
        low, high = middle - half, middle + half
        crosses = gap > 0
    else:
        low = c + (y - a) * d
        high = low
        crosses = (a <= y) & (y < b)
    one = tl.minimum(tl.maximum(tl.ceil(low - 0.5), 0.0), limit).to(tl.int32)
    two = tl.minimum(tl.maximum(tl.ceil(high - 0.5), 0.0), limit).to(tl.int32)
    return one, two, crosses


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
def covered_count(left, right, x_fine, F: tl.constexpr):
    """(EACH, LANES): how many sub-pixels of each pixel lie from column `left` up to `right`, given per lane."""
    return tl.maximum(left_of(right, x_fine, F) - left_of(left, x_fine, F), 0)


@triton.jit
def ones(word):
    """The number of bits set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def pick(word, size, count, i, chosen):
    """Pick number i (from 1) of Floyd's sample, and the mask with it added."""
    j = size - count + (i - 1)
    place = tl.umulhi(word, tl.maximum(j + 1, 1).to(tl.uint32)).to(tl.int32)
    taken = ((chosen >> place.to(tl.uint32)) & 1) != 0
    place = tl.where(taken, tl.maximum(j, 0), place)
    bit = tl.full(chosen.shape, 1, tl.uint32) << place.to(tl.uint32)
    return place, tl.where(i <= count, chosen | bit, chosen)


@triton.jit
def how_many(word, tables, last, size):
    """How many of a block's pixels a word picks."""
    count = tl.zeros(word.shape, tl.int32)
    value = word.to(tl.int64)
    more = value >= tl.load(tables + last * BLOCK)
    while tl.max(more.to(tl.int32)) > 0:
        count += more.to(tl.int32)
        more = more & (count < size) & (value >= tl.load(tables + last * BLOCK + tl.minimum(count, BLOCK - 1)))
    return count


@triton.jit
def missing_pixels(key_a, key_b, step, index, tables, y, block, width):
    """Masks of the pixels that shape noise takes out of one block of the rows y."""
    blocks = (width + BLOCK - 1) // BLOCK
    size = tl.minimum(width - block * BLOCK, BLOCK)
    groups = (blocks + 3) // 4
    four = words(key_a, key_b, y * groups + block // 4, step, index, SHAPE)
    lane = block % 4
    word = tl.where(lane == 0, four[0], tl.where(lane == 1, four[1], tl.where(lane == 2, four[2], four[3])))
    sizes = tl.zeros(y.shape, tl.int32) + size
    count = how_many(word, tables, tl.zeros(y.shape, tl.int32) + (block == blocks - 1).to(tl.int32), sizes)
    chosen = tl.zeros(y.shape, tl.uint32)
    most = tl.max(count)
    i = 0
    while i <= most:
        four = words(key_a, key_b, y * blocks + block, step, index, SHAPE + 256 * (1 + i // 4))
        if i > 0:
            _, chosen = pick(four[0], sizes, count, i, chosen)
        _, chosen = pick(four[1], sizes, count, i + 1, chosen)
        _, chosen = pick(four[2], sizes, count, i + 2, chosen)
        _, chosen = pick(four[3], sizes, count, i + 3, chosen)
        i += 4
    return tl.where(count > 0, chosen, 0)


@triton.jit
def near(box, x0, y0):
    """Whether a piece's box meets the tile at (x0, y0)."""
    across = (tl.load(box) < x0 + TILE) & (tl.load(box + 1) > x0)
    return across & (tl.load(box + 2) < y0 + ROWS) & (tl.load(box + 3) > y0)


@triton.jit
def spans(
    out, coefficients, boxes, first, ellipse, frames, pieces, entries, width, height, sub_rows,
    F: tl.constexpr, FINE: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """The first and the last crossing of each piece in each sub-row near its box; -1 where none is.

    Sub-rows are numbered y · FINE + k, with FINE the upsampling F rounded up to a power of two.
    """
    frame = tl.program_id(1).to(tl.int64) * frames + tl.program_id(0)
    right = width * F
    for piece in range(pieces):
        box = boxes + (frame * pieces + piece) * 4
        begin, end = tl.load(first + piece), tl.load(first + piece + 1)
        kind = tl.load(ellipse + piece) != 0
        top = tl.maximum(tl.load(box + 2), 0) // ROWS * (ROWS * FINE)
        bottom = tl.minimum((tl.load(box + 3) + ROWS - 1) // ROWS * (ROWS * FINE), sub_rows)
        place = out + (frame * pieces + piece) * 2 * sub_rows
        for sub0 in range(top, bottom, AT_ONCE):
            sub = sub0 + tl.arange(0, AT_ONCE)
            real = (sub % FINE < F) & (sub // FINE < height)
            centre = (sub // FINE * F + sub % FINE).to(tl.float64) + 0.5
            leftmost = tl.zeros((AT_ONCE,), tl.int32) + right
            rightmost = tl.zeros((AT_ONCE,), tl.int32) - 1
            for entry in range(begin, end):
                one, two, crosses = columns(coefficients + (frame * entries + entry) * 5, kind, centre, right)
                crosses = crosses & real
                leftmost = tl.where(crosses, tl.minimum(leftmost, one), leftmost)
                rightmost = tl.where(crosses, tl.maximum(rightmost, two), rightmost)
            tl.store(place + sub, tl.where(rightmost < 0, -1, leftmost), mask=sub < bottom)
            tl.store(place + sub_rows + sub, rightmost, mask=sub < bottom)


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
def mark(
    marks, crossings, boxes, convex, frames, pieces, width, height, sub_rows, words_per_tile,
    BANDS: tl.constexpr, F: tl.constexpr, FINE: tl.constexpr,
):  # fmt: skip
    """Mark the tiles in which the picture can differ between frame i - 1 and frame i of a recording, band by band."""
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
        simple = tl.load(convex + piece)
        for band0 in range(begin, end, BANDS):
            band = band0 + tl.arange(0, BANDS)
            sub = band[:, None] * (ROWS * FINE) + tl.arange(0, ROWS * FINE)[None, :]
            there = (sub % FINE < F) & (sub // FINE < height)
            old_here = there & (band >= old_top)[:, None] & (band < old_end)[:, None]
            new_here = there & (band >= new_top)[:, None] & (band < new_end)[:, None]
            left_0 = tl.load(crossings + before * 2 * sub_rows + sub, mask=old_here, other=0) + 0
            right_0 = tl.load(crossings + (before * 2 + 1) * sub_rows + sub, mask=old_here, other=-1)
            left_1 = tl.load(crossings + now * 2 * sub_rows + sub, mask=new_here, other=0) + 0
            right_1 = tl.load(crossings + (now * 2 + 1) * sub_rows + sub, mask=new_here, other=-1)
            in_0, in_1 = right_0 >= 0, right_1 >= 0
            # Over the sub-rows of a band: whether some or all of them meet the piece in both frames, and where.
            some = tl.max((in_0 | in_1).to(tl.int32), axis=1) > 0
            whole = tl.min(tl.where(there, (in_0 & in_1).to(tl.int32), 1), axis=1) * simple
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
def visible_row(
    crossings, coefficients, boxes, intensity, first, convex, recording, frame, pieces, entries, sub_rows,
    y, k, x0, y0, x_fine, right, F: tl.constexpr, FINE: tl.constexpr,
):  # fmt: skip
    """(EACH, LANES): the visible sub-pixels, times their intensity, in sub-row k of each pixel row of a tile."""
    occupied = tl.zeros((EACH, LANES), tl.uint32)
    total = tl.zeros((EACH, LANES), tl.int32)
    for away in range(pieces):  # from the nearest
        piece = pieces - 1 - away
        if near(boxes + (frame * pieces + piece) * 4, x0, y0):
            covered = tl.zeros((EACH, LANES), tl.uint32)
            if tl.load(convex + piece) != 0:
                place = crossings + (frame * pieces + piece) * 2 * sub_rows + y * FINE + k
                one, two = left_of(tl.load(place), x_fine, F), left_of(tl.load(place + sub_rows), x_fine, F)
                covered = bits_from(one, F) & ~bits_from(two, F)
            else:
                centre = (y * F + k).to(tl.float64) + 0.5
                for entry in range(tl.load(first + piece), tl.load(first + piece + 1)):
                    one, two, crosses = columns(coefficients + (frame * entries + entry) * 5, False, centre, right)
                    covered ^= bits_from(left_of(tl.where(crosses, one, right), x_fine, F), F)
            total += ones(covered & ~occupied) * tl.load(intensity + recording * pieces + piece)
            occupied |= covered
    return total


@triton.jit
def signal(
    out, state, marks, crossings, coefficients, boxes, intensity, first, convex, keys, indices, tables, frames, start,
    recorded, pieces, entries, width, height, sub_rows, words_per_tile, threshold, initial, drawn, drop_below, fresh,
    F: tl.constexpr, FINE: tl.constexpr, TO_ZERO: tl.constexpr, HAS_SHAPE: tl.constexpr,
    HAS_EVENT: tl.constexpr, CARRY: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    """Integrate and fire: one tile of one recording over frames 1 …; frame 0, at step `start`, is the one before them.

    FINE is F rounded up to a power of two.
    """
    recording = tl.program_id(1).to(tl.int64)
    across = (width + TILE - 1) // TILE
    x0, y0 = tl.program_id(0) % across * TILE, tl.program_id(0) // across * ROWS
    marks += (recording * tl.num_programs(0) + tl.program_id(0)) * words_per_tile
    any_mark = 0
    for word in range(words_per_tile):
        any_mark |= tl.load(marks + word)
    if (any_mark == 0) & (fresh != 0) & (CARRY == 0):
        return
    key_a, key_b = tl.load(keys).to(tl.uint32), tl.load(keys + 1).to(tl.uint32)
    index = tl.load(indices + recording)

    lane = tl.arange(0, LANES)
    y = y0 + lane // (TILE // EACH)
    x = x0 + (lane % (TILE // EACH) * EACH)[None, :] + tl.arange(0, EACH)[:, None]
    pixel = y[None, :] * width + x
    inside = (y < height)[None, :] & (x < width)
    right = width * F
    x_fine = x * F

    here = state + recording * height * width
    v = tl.zeros((EACH, LANES), tl.int32) + initial
    shown = tl.zeros((EACH, LANES), tl.int32)
    pending = 0  # whether some integrator still holds more than a threshold
    if fresh:
        if drawn > 0:
            chance = words(key_a, key_b, pixel, 0, index, INITIAL)[0]
            v = tl.umulhi(chance, (chance * 0 + (2 * drawn + 1)).to(tl.uint32)).to(tl.int32) - drawn
    else:
        v = tl.load(here + pixel, mask=inside, other=0)
        pending = tl.max(((v > threshold) | (v < -threshold)).to(tl.int32))
    begun = 0  # whether `shown` is what frame i - 1 shows

    i = fresh * 0
    while i < frames:
        marked = (tl.load(marks + i // 32) >> (i % 32)) & 1
        if begun == 0:  # the frame before the first marked one
            marked = (tl.load(marks + tl.minimum((i + 1) // 32, words_per_tile - 1)) >> ((i + 1) % 32)) & 1
        if (i > 0) | (begun == 0):
            if (marked != 0) | (pending != 0):
                step = start + i
                frame = recording * frames + i
                close, far, nearest = 0, 0, 0  # how many pieces are near the tile, and the last two of them
                for piece in range(pieces):
                    if near(boxes + (frame * pieces + piece) * 4, x0, y0):
                        close += 1 + 2 * (tl.load(convex + piece) == 0).to(tl.int32)
                        far, nearest = nearest, piece
                visible = tl.zeros((EACH, LANES), tl.int32)
                bright = tl.load(intensity + recording * pieces + nearest)
                place = crossings + (frame * pieces + nearest) * 2 * sub_rows + y * FINE
                if close == 1:
                    # Most tiles see one side of a shape: the other lies beyond the tile in all sub-rows.
                    every = crossings + (frame * pieces + nearest) * 2 * sub_rows + y0 * FINE
                    every += tl.arange(0, ROWS * FINE)
                    if tl.min(tl.load(every + sub_rows)) >= (x0 + TILE) * F:
                        visible += F * F
                    else:
                        for k in tl.static_range(F):
                            visible += left_of(tl.load(place + sub_rows + k), x_fine, F)
                    if tl.max(tl.load(every)) > x0 * F:
                        for k in tl.static_range(F):
                            visible -= left_of(tl.load(place + k), x_fine, F)
                    visible *= bright
                elif close == 2:
                    behind = tl.zeros((EACH, LANES), tl.int32)
                    other = crossings + (frame * pieces + far) * 2 * sub_rows + y * FINE
                    for k in range(F):
                        left_0, right_0 = tl.load(other + k), tl.load(other + sub_rows + k)
                        left_1, right_1 = tl.load(place + k), tl.load(place + sub_rows + k)
                        visible += covered_count(left_1, right_1, x_fine, F)
                        behind += covered_count(left_0, right_0, x_fine, F)
                        left_1, right_1 = tl.maximum(left_0, left_1), tl.minimum(right_0, right_1)
                        behind -= covered_count(left_1, right_1, x_fine, F)
                    visible = visible * bright + behind * tl.load(intensity + recording * pieces + far)
                elif close > 2:
                    for k in range(F):
                        visible += visible_row(
                            crossings, coefficients, boxes, intensity, first, convex, recording, frame, pieces, entries,
                            sub_rows, y, k, x0, y0, x_fine, right, F, FINE,
                        )  # fmt: skip
                if HAS_SHAPE:
                    masks = missing_pixels(key_a, key_b, step, index, tables, y, x0 // BLOCK, width)
                    gone = (masks[None, :] >> (x % BLOCK).to(tl.uint32)) & 1
                    visible = tl.where(gone != 0, 0, visible)
                if begun != 0:
                    v += visible - shown
                    on = (v > threshold) & inside
                    off = (v < -threshold) & inside
                    if TO_ZERO:
                        v = tl.where(on | off, 0, v)
                    else:
                        v = v - threshold * on.to(tl.int32) + threshold * off.to(tl.int32)
                        pending = tl.max((((v > threshold) | (v < -threshold)) & inside).to(tl.int32))
                    fired = on | off
                    if step >= 0:
                        if HAS_EVENT:
                            chance = words(key_a, key_b, pixel, step, index, EVENT)[0]
                            fired = fired & (chance.to(tl.int64) >= drop_below)
                        plane = (recording * recorded + (i - (frames - recorded))) * 2 + on.to(tl.int64)
                        tl.store(out + plane * height * width + pixel, VALUE, mask=fired)
                shown = visible
                begun = 1
        i += 1
    if CARRY:
        tl.store(here + pixel, v, mask=inside)


@triton.jit
def fires(word, there, block, blocks, tables):
    """Whether background noise picks at least one pixel of a block."""
    bound = tl.where(block == blocks - 1, tl.load(tables + BLOCK), tl.load(tables))
    return there & (block < blocks) & (word.to(tl.int64) >= bound)


@triton.jit
def count(
    found, room, filled, keys, indices, tables, steps, start, width, lanes, AT_ONCE: tl.constexpr
):  # fmt: skip
    """List the blocks in which background noise fires: recording · steps + step, y · blocks + block, and their word.

    One lane for each group of four blocks of a row, at one step of one recording.
    """
    frame = tl.program_id(0).to(tl.int64)
    recording, step = frame // steps, start + frame % steps
    key_a, key_b = tl.load(keys).to(tl.uint32), tl.load(keys + 1).to(tl.uint32)
    index = tl.load(indices + recording)
    blocks = (width + BLOCK - 1) // BLOCK
    groups = (blocks + 3) // 4
    element = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    y, group = element // groups, element % groups
    four = words(key_a, key_b, element, step, index, BACKGROUND)
    hits = tl.zeros((AT_ONCE,), tl.int32)
    for lane in tl.static_range(4):
        hits += fires(four[lane], element < lanes, group * 4 + lane, blocks, tables).to(tl.int32)
    total = tl.sum(hits)
    if total > 0:
        place = tl.atomic_add(filled, total.to(tl.int64)) + tl.cumsum(hits, axis=0) - hits
        for lane in tl.static_range(4):
            block = group * 4 + lane
            some = fires(four[lane], element < lanes, block, blocks, tables)
            kept = some & (place < room)
            tl.store(found + place * 3, frame, mask=kept)
            tl.store(found + place * 3 + 1, (y * blocks + block).to(tl.int64), mask=kept)
            tl.store(found + place * 3 + 2, four[lane].to(tl.int64), mask=kept)
            place += some.to(tl.int64)


@triton.jit
def scatter(
    out, found, filled, keys, indices, tables, steps, start, width, height, AT_ONCE: tl.constexpr, VALUE: tl.constexpr
):  # fmt: skip
    """Choose the pixels of the listed blocks, one lane for each block, and write those in which nothing fired."""
    key_a, key_b = tl.load(keys).to(tl.uint32), tl.load(keys + 1).to(tl.uint32)
    item = tl.program_id(0).to(tl.int64) * AT_ONCE + tl.arange(0, AT_ONCE)
    some = item < tl.load(filled)
    frame = tl.load(found + item * 3, mask=some, other=0)
    element = tl.load(found + item * 3 + 1, mask=some, other=0).to(tl.int32)
    word = tl.load(found + item * 3 + 2, mask=some, other=0)
    blocks = (width + BLOCK - 1) // BLOCK
    y, block = element // blocks, element % blocks
    size = tl.minimum(width - block * BLOCK, BLOCK)
    number = tl.where(some, how_many(word.to(tl.uint32), tables, (block == blocks - 1).to(tl.int32), size), 0)
    index, step = tl.load(indices + frame // steps), (start + frame % steps).to(tl.int32)
    chosen = tl.zeros((AT_ONCE,), tl.uint32)
    four = words(key_a, key_b, element, step, index, BACKGROUND + 256)
    polarity = four[0]
    most = tl.max(number)
    i = 1
    while i <= most:
        if i % 4 == 0:
            four = words(key_a, key_b, element, step, index, BACKGROUND + 256 * (1 + i // 4))
        turn = i % 4
        chance = tl.where(turn == 0, four[0], tl.where(turn == 1, four[1], tl.where(turn == 2, four[2], four[3])))
        place, chosen = pick(chance, size, number, i, chosen)
        p = ((polarity >> place.to(tl.uint32)) & 1).to(tl.int64)
        at = (frame * 2 + p) * height * width + y * width + block * BLOCK + place
        free = (i <= number) & (tl.load(out + at, mask=i <= number, other=1) == 0)
        tl.store(out + at, VALUE, mask=free)
        i += 1

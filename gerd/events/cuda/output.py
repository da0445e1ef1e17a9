"""The output on a GPU: memory that is zero, background noise in it, and the events of it as keys.

clear       fills the output with zeros
count       background noise: how many pixels of each block fire
scatter     and which
tally       how many events each frame has
gather      the events of frames as keys, in order
"""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from gerd.events.cuda.kernels import TILE
from gerd.events.cuda.rules import BACKGROUND, BLOCK, GROUP, ROUND, how_many, words
from gerd.events.cuda.scattered import add_pick, any_of, ones


@triton.jit
def clear(out, size, AT_ONCE: tl.constexpr):
    """Zeros in `size` words. A few programs do it all, so that there is room for others beside them."""
    first = tl.program_id(0).to(tl.int64) * AT_ONCE
    while first < size:
        at = first + tl.arange(0, AT_ONCE)
        tl.store(out + at, 0, mask=at < size)
        first += tl.num_programs(0).to(tl.int64) * AT_ONCE


@triton.jit
def has_noise(word, block, blocks, tables):
    """Whether background noise picks at least one pixel of a block."""
    bound = tl.where(block == blocks - 1, tl.load(tables + BLOCK), tl.load(tables))
    return (block < blocks) & (word.to(tl.int64) >= bound)


@triton.jit
def count(listed, room, filled, chance, steps, start, blocks, AT_ONCE: tl.constexpr):
    """List the blocks in which background noise fires: recording · steps + step, number of the block, its word.

    One lane for each group of four blocks, at one step of one recording.
    """
    frame = tl.program_id(0).to(tl.int64)
    recording, step = frame // steps, start + frame % steps
    group = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    four = words(tl.load(chance.seed), group, step, tl.load(chance.indices + recording), BACKGROUND)
    hits = tl.zeros((AT_ONCE,), tl.int32)
    for lane in tl.static_range(GROUP):
        hits += has_noise(four[lane], group * GROUP + lane, blocks, chance.tables).to(tl.int32)
    total = tl.sum(hits)
    if total > 0:
        place = tl.atomic_add(filled, total.to(tl.int64)) + tl.cumsum(hits, axis=0) - hits
        for lane in tl.static_range(GROUP):
            block = group * GROUP + lane
            some = has_noise(four[lane], block, blocks, chance.tables)
            kept = some & (place < room)
            tl.store(listed + place * 3, frame, mask=kept)
            tl.store(listed + place * 3 + 1, block.to(tl.int64), mask=kept)
            tl.store(listed + place * 3 + 2, four[lane].to(tl.int64), mask=kept)
            place += some.to(tl.int64)


@triton.jit
def scatter(
    out, noise, listed, filled, chance, steps, start, width, height,
    AT_ONCE: tl.constexpr, BITS: tl.constexpr, COUNTED: tl.constexpr,
):  # fmt: skip
    """Choose the pixels of the listed blocks, one lane for each block, and write those in which nothing fired.

    COUNTED frames have one more event in each chosen pixel, up to 255. BITS: what fired is read from the words `out`,
    and the noise is written into words of its own; otherwise both are the same bytes.
    """
    seed = tl.load(chance.seed)
    item = tl.program_id(0).to(tl.int64) * AT_ONCE + tl.arange(0, AT_ONCE)
    some = item < tl.load(filled)
    frame = tl.load(listed + item * 3, mask=some, other=0)
    block = tl.load(listed + item * 3 + 1, mask=some, other=0).to(tl.int32)
    word = tl.load(listed + item * 3 + 2, mask=some, other=0)
    pixels = height * width
    size = tl.minimum(pixels - block * BLOCK, BLOCK)
    table = chance.tables + (block == (pixels - 1) // BLOCK).to(tl.int32) * BLOCK
    number = tl.where(some, how_many(word.to(tl.uint32), table), 0)
    index, step = tl.load(chance.indices + frame // steps), (start + frame % steps).to(tl.int32)
    chosen = tl.zeros((AT_ONCE,), tl.uint64)
    four = words(seed, block, step, index, BACKGROUND + ROUND)
    most = tl.max(number)
    i = 0
    while i < most:
        if (i > 0) & (i % 4 == 0):
            four = words(seed, block, step, index, BACKGROUND + ROUND * (1 + i // 4))
        choice = any_of(four, i % 4)
        pick, chosen = add_pick(choice, size, number, i, chosen)
        pixel, p = block * BLOCK + pick, (choice & 1).to(tl.int32)
        if BITS:
            y, x = pixel // width, pixel % width
            at = (frame * height + y) * ((width + TILE - 1) // TILE) + x // TILE
            bit = tl.full(x.shape, 1, tl.int32) << (x % TILE * 2 + p)
            there = tl.load(out + at, mask=i < number, other=0) & bit
            tl.atomic_or(noise + at, bit, mask=(i < number) & (there == 0), sem="relaxed")
        else:
            at = (frame * 2 + p) * pixels + pixel
            there = tl.load(out + at, mask=i < number, other=1)
            if COUNTED:
                tl.store(noise + at, tl.minimum(there.to(tl.int32) + 1, 255).to(tl.uint8), mask=i < number)
            else:
                tl.store(noise + at, 1, mask=(i < number) & (there == 0))
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

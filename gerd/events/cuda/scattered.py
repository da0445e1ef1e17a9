"""Scattered noise on a GPU: which pixels a noise picks at a step, by the numbers of `pixel/noise.py`."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from gerd.events.cuda.rules import BLOCK, GROUP, ROUND, SHAPE, how_many, pick, words


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
    """Pick number i (from 0) of a block, and the mask with it added."""
    pixel = pick(word, size - count + i, chosen)
    bit = tl.full(chosen.shape, 1, tl.uint64) << pixel.to(tl.uint64)
    return pixel, tl.where(i < count, chosen | bit, chosen)


@triton.jit
def missing_pixels(seed, step, index, tables, block, pixels):
    """Masks of the pixels that shape noise takes out of some blocks of a frame; none of a block beyond its pixels."""
    word = any_of(words(seed, block // GROUP, step, index, SHAPE), block % GROUP)
    size = tl.minimum(pixels - block * BLOCK, BLOCK)
    last = (block == (pixels - 1) // BLOCK).to(tl.int32)
    count = tl.where(size > 0, how_many(word, tables + last * BLOCK), 0)
    chosen = tl.zeros(block.shape, tl.uint64)
    most = tl.max(count)
    i = 0
    while i < most:
        four = words(seed, block, step, index, SHAPE + ROUND * (1 + i // 4))
        _, chosen = add_pick(four[0], size, count, i, chosen)
        _, chosen = add_pick(four[1], size, count, i + 1, chosen)
        _, chosen = add_pick(four[2], size, count, i + 2, chosen)
        _, chosen = add_pick(four[3], size, count, i + 3, chosen)
        i += 4
    return chosen

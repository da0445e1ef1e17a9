"""Scattered noise on the CPU: which pixels a noise picks at a step, by the numbers of `pixel/noise.py`."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.crossings import NONE, ZERO, bit_number, unsigned_range
from gerd.events.cpu.rules import ONE, how_many, key, pick, words
from gerd.events.pixel.noise import BLOCK, GROUP, ROUND


@compiled
def scattered(chance, step, purpose, table, sensor, first, last, draws):
    """What a scattered noise picks from some blocks, as `noise.py` says: how many keys it puts into `draws.picked`.

    Blocks go in groups of four; the groups first … last - 1 are taken. The blocks in which something is picked are
    listed first, so that their words, too, are drawn in one loop.
    """
    most, number, pixels = len(draws.largest), 0, sensor.height * sensor.width
    for begin in range(first, last, most):
        groups = min(most, last - begin)
        draw_counts(chance, begin, step, purpose, groups, draws)
        hits = list_blocks(begin, groups, table, pixels, draws)
        draw_choices(chance, step, purpose, hits, draws)
        for i in range(hits):
            block = np.int64(draws.block[i])
            size = min(pixels - block * BLOCK, BLOCK)
            count = how_many(draws.word[i], table[0 if size == BLOCK else 1])
            chosen, polarities = choose(chance, block, step, purpose, size, count, draws.choosing[:, i])
            while chosen:
                bit = chosen & (~chosen + ONE)
                chosen ^= bit
                p = 1 if polarities & bit else 0
                draws.picked[number] = key(step, block * BLOCK + bit_number(bit), p, sensor)
                number += 1
    return number


@inlined
def groups_of(sensor):
    """How many groups of blocks a frame has."""
    return (sensor.height * sensor.width + GROUP * BLOCK - 1) // (GROUP * BLOCK)


@compiled
def draw_counts(chance, begin, step, purpose, number, draws):
    """Philox for consecutive groups, and the largest of the words, in a loop that compiles to vector instructions."""
    drawn, largest = draws.counting, draws.largest
    for i in unsigned_range(ZERO, number):
        a, b, c, d = words(chance.seed, np.uint64(begin) + i, step, chance.index, purpose)
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i], largest[i] = a, b, c, d, max(max(a, b), max(c, d))


@compiled
def list_blocks(begin, groups, table, pixels, draws):
    """List the blocks of some groups in which something is picked; how many they are.

    Few are, and where is hard to foresee. So each is put down, and the next one in its place if it is none of them.
    """
    hits, found, blocks = ZERO, ZERO, (pixels + BLOCK - 1) // BLOCK
    rare = np.uint64(min(table[0, 0], table[1, 0]))
    for i in unsigned_range(ZERO, groups):
        draws.group[found] = i
        found += np.int64(draws.largest[i] >= rare)
    for n in unsigned_range(ZERO, found):
        i = draws.group[n]
        first = (begin + np.int64(i)) * GROUP
        for block in range(first, first + GROUP):
            word, is_whole = draws.counting[block - first, i], (block + 1) * BLOCK <= pixels
            draws.block[hits], draws.word[hits] = np.uint64(block), np.int64(word)
            hits += np.int64((np.int64(word) >= table[0 if is_whole else 1, 0]) & (block < blocks))
    return hits


@compiled
def draw_choices(chance, step, purpose, number, draws):
    """Philox for the listed blocks, likewise."""
    drawn = draws.choosing
    for i in unsigned_range(ZERO, number):
        a, b, c, d = words(chance.seed, draws.block[i], step, chance.index, purpose + ROUND)
        drawn[0, i], drawn[1, i], drawn[2, i], drawn[3, i] = a, b, c, d


@inlined
def choose(chance, block, step, purpose, size, count, four):
    """Floyd's sample of `count` out of `size` pixels, as masks: all of them, and those that are ON.

    `four` has the words of round 1, and is used up.
    """
    chosen, polarities = NONE, NONE
    for i in range(count):
        if i % 4 == 0 and i > 0:
            later = purpose + ROUND * (1 + i // 4)
            four[0], four[1], four[2], four[3] = words(chance.seed, block, step, chance.index, later)
        number = pick(four[i % 4], size - count + i, chosen)
        chosen |= ONE << number
        polarities |= (four[i % 4] & ONE) << number
    return chosen, polarities

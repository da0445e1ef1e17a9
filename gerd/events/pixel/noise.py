"""The numbers behind the noises, shared by all backends.

Background and shape noise pick pixels at random, each with the same probability p and independently. Drawing a
number per pixel would cost as much as the frame; instead one word decides how many of a block of `BLOCK` pixels
are picked (binomial, by inversion of a table), and only then are the picked ones chosen. Pixels are numbered row by
row, y · width + x, and block b has those from b · BLOCK on. At a step its words are, in the notation of `philox.py`:

    count     word b mod GROUP of element b // GROUP, round 0
    choice    words 0, 1, … of element b, rounds 1, 2, …: one for each pick of a Floyd sample, whose lowest bit is the
              polarity (1 = ON)

Floyd's sample of `count` out of n pixels: for j from n - count to n - 1, take a random t in 0 … j, as
(word · (j + 1)) >> 32, or j itself if t is taken already.

A dropped event costs one word: word 0 of element y · width + x; it is dropped if the word is below p · 2³². In exact
timing the place of the step is taken by the number of events that the pixel has fired before, warm-up included. There,
a background event is (word 0 of element y · width + x) · step_us >> 32 microseconds after the first of its step.

The initial integrator state is word 0 of element y · width + x at step 0, scaled to -m … m, where m belongs to the
threshold of each side. A stationary one is the word scaled to 0 … θ - 1, in a pixel that is brighter than the
background, and its negative in a darker one, where θ is the threshold of ON, or of OFF events. On the background it is
as after a shape has left, one of the actors: of a dark one if (word 1 · actors) >> 32 is below the number of dark
actors; then it is not negative, and otherwise not positive.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Whole = TypeVar("Whole", int, NDArray[np.int32])

WORD = 2**32
BLOCK = 64  # pixels that share a draw
GROUP = 4  # blocks whose counts are the four words of one draw
ROUND = 256  # added to a purpose for each further round of words for the same element


@cache
def binomial_table(probability: float, pixels: int) -> NDArray[np.int64]:
    """(BLOCK,) bounds: a word picks as many pixels as there are bounds at or below it. Exact to 2⁻³²."""
    p = Fraction(probability)
    below = Fraction(0)
    table = np.full(BLOCK, WORD, np.int64)
    for picked in range(pixels):
        below += comb(pixels, picked) * p**picked * (1 - p) ** (pixels - picked)
        table[picked] = int(below * WORD)
    return table


def block_tables(probability: float, pixels: int) -> NDArray[np.int64]:
    """(2, BLOCK): the table of a whole block, and that of the last block of a frame with so many pixels."""
    return np.stack([binomial_table(probability, BLOCK), binomial_table(probability, last_block(pixels))])


def last_block(pixels: int) -> int:
    """Pixels in the last block of a frame."""
    return (pixels - 1) % BLOCK + 1


def drop_bound(probability: float) -> int:
    """An event is dropped if its word is below this."""
    return int(Fraction(probability) * WORD)


def largest_initial(threshold: Whole) -> Whole:
    """m, the largest integer below 0.9 thresholds."""
    return (9 * threshold - 1) // 10

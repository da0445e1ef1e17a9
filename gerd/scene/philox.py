"""Counter-based randomness: Philox 4x32-10, the only source of chance in recordings, splits and windows.

A word is a function of (seed; element, step, recording index, purpose), so it does not matter who asks for
it, in which order or in which batch. The key is the 64-bit seed. The four counter words are

    element     what is drawn: a slot of the scene, a pixel, a block of pixels
    step        the step (two's complement where it is negative)
    index       the recording's index
    purpose     one of the constants below, plus 256 · round where one element needs more than four words

Each backend has this function in its own language; this file is the numpy one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.geometry import exactmath

SCENE, ACCELERATION, INITIAL, SHAPE, EVENT, BACKGROUND, SPLIT, WINDOW, TIME = range(9)  # purposes

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

Words = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]


def words(seed: int, element: ArrayLike, step: ArrayLike, index: ArrayLike, purpose: int) -> Words:
    """Four independent 32-bit words (held in uint64) for each element of the broadcast arguments."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    counters = [np.asarray(value, np.int64).astype(np.uint64) & low for value in (element, step, index, purpose)]
    a, b, c, d = np.broadcast_arrays(*counters)
    key_a, key_b = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(ROUNDS):
        first = a * np.uint64(MULTIPLIERS[0])
        second = c * np.uint64(MULTIPLIERS[1])
        a, b, c, d = (
            (second >> shift) ^ b ^ np.uint64(key_a),
            second & low,
            (first >> shift) ^ d ^ np.uint64(key_b),
            first & low,
        )
        key_a = (key_a + KEY_STEPS[0]) & 0xFFFFFFFF
        key_b = (key_b + KEY_STEPS[1]) & 0xFFFFFFFF
    return a, b, c, d


def unit(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Two words as a float64 in [0, 1), a multiple of 2⁻⁵³."""
    return ((high >> np.uint64(5)) * 2.0**26 + (low >> np.uint64(6))) * 2.0**-53


def gaussian(drawn: Words) -> NDArray[np.float64]:
    """A standard normal number from four words (Box and Muller), the same bits everywhere."""
    radius = np.sqrt(-2.0 * exactmath.log(1.0 - unit(drawn[0], drawn[1])))
    _, cosine = exactmath.sincos(4.0 * exactmath.HALF_PI * unit(drawn[2], drawn[3]))
    return radius * cosine

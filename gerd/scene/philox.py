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

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.geometry import exactmath

PURPOSES = range(16)
SCENE, ACCELERATION, INITIAL, SHAPE, EVENT, BACKGROUND, SPLIT, WINDOW, TIME, CAMERA, HOT, THRESHOLD = PURPOSES[:12]
OF_POLARITY = PURPOSES[12:14]  # OFF, ON
JITTER, RECORDED = PURPOSES[14:]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)

Words = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]


def words(seed: int, element: ArrayLike, step: ArrayLike, index: ArrayLike, purpose: int) -> Words:
    """Four independent 32-bit words (held in uint64) for each element of the broadcast arguments."""
    a, b, c, d = (np.asarray(value, np.int64).astype(np.uint64) & LOW for value in (element, step, index, purpose))
    state = np.empty((4, *np.broadcast_shapes(a.shape, b.shape, c.shape)), np.uint64)
    state[0], state[1], state[2], state[3] = a, c, b, d
    ac, bd = state[:2], state[2:]  # halves of a round are worked out together
    pair = (2, *(1,) * (state.ndim - 1))
    multipliers = np.array(MULTIPLIERS, np.uint64).reshape(pair)
    for key in _keys(seed):
        products = (ac * multipliers)[::-1]
        ac, bd = (products >> SHIFT) ^ bd ^ key.reshape(pair), products & LOW
    return ac[0], bd[0], ac[1], bd[1]


@lru_cache
def _keys(seed: int) -> NDArray[np.uint64]:
    """(ROUNDS, 2): the key of each round."""
    halves = np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint64)
    return (halves + np.arange(ROUNDS, dtype=np.uint64)[:, None] * np.array(KEY_STEPS, np.uint64)) & LOW


def unit(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Two words as a float64 in [0, 1), a multiple of 2⁻⁵³."""
    return ((high >> np.uint64(5)) * 2.0**26 + (low >> np.uint64(6))) * 2.0**-53


def gaussian(drawn: Words) -> NDArray[np.float64]:
    """A standard normal number from four words (Box and Muller), the same bits everywhere."""
    radius = np.sqrt(-2.0 * exactmath.log(1.0 - unit(drawn[0], drawn[1])))
    _, cosine = exactmath.sincos(4.0 * exactmath.HALF_PI * unit(drawn[2], drawn[3]))
    return radius * cosine

"""The slow, obvious definition of a recording, independent of the kernels, of `rasterise.py` and of `philox.py`.

One scene in, its events out. Every sub-pixel centre is taken back into each shape's unit frame and looked up there;
the integrators are a loop over pixels; the randomness is Philox in Python's integers. What it shares with the package
is the scene (numbers), its trajectory T(t), and the constants that say how randomness is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from gerd.geometry.shapes import Outline
from gerd.scene.scenes import Scenes

Event = tuple[int, int, int, int, bool]  # step, y, x, p, background

BLOCK = 32
INITIAL, SHAPE, EVENT, BACKGROUND = 2, 3, 4, 5  # purposes


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4x32-10 (Salmon et al. 2011)."""
    (a, b, c, d), (k0, k1), low = counter, key, 2**32 - 1
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (second >> 32) ^ b ^ k0, second & low, (first >> 32) ^ d ^ k1, first & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return a, b, c, d


def words(scenes: Scenes, element: int, step: int, purpose: int, round: int = 0) -> tuple[int, int, int, int]:
    counter = (element, step % 2**32, int(scenes.indices[0]), purpose + 256 * round)
    return philox(counter, (scenes.seed % 2**32, scenes.seed // 2**32))


def inside(outline: Outline, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether the points (u, v) of the unit frame lie in the circle, or right of an odd number of a polygon's sides."""
    if not outline.rings:
        return u * u + v * v < 0.25
    odd = np.zeros(u.shape, bool)
    for ring in outline.rings:
        for (ax, ay), (bx, by) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            if ay != by:
                odd ^= ((ay <= v) != (by <= v)) & (u >= ax + (v - ay) / (by - ay) * (bx - ax))
    return odd


def picture(scenes: Scenes, step: int) -> np.ndarray:
    """(height, width) integers: the activation of each pixel before any noise."""
    f, height, width = scenes.upsampling, scenes.height, scenes.width
    x, y = np.meshgrid((np.arange(width * f) + 0.5) / f, (np.arange(height * f) + 0.5) / f)
    fine = np.zeros(x.shape, np.int64)
    for actor, outline in enumerate(scenes.outlines):  # a nearer one paints over a farther one
        back = np.linalg.inv(scenes.trajectory.T([step])[0, actor, 0])
        around = (-1, 0, 1) if scenes.wraps[actor] else (0,)
        for right in around:
            for down in around:
                px, py = x - right * width, y - down * height
                u, v = (back[i, 0] * px + back[i, 1] * py + back[i, 2] for i in (0, 1))
                fine[inside(outline, u, v)] = scenes.intensity[0, actor]
    return fine.reshape(height, f, width, f).sum(axis=(1, 3))


def scattered(scenes: Scenes, step: int, p: float, purpose: int) -> dict[tuple[int, int], int]:
    """The pixels (y, x) that a noise of probability `p` picks at a step, each with a random bit."""
    blocks = -(-scenes.width // BLOCK)
    picked: dict[tuple[int, int], int] = {}
    for y in range(scenes.height):
        for block in range(blocks):
            n = min(BLOCK, scenes.width - block * BLOCK)
            word = words(scenes, y * -(-blocks // 4) + block // 4, step, purpose)[block % 4]
            count = sum(word >= bound for bound in binomial_bounds(p, n))
            drawn = [w for i in range(9) for w in words(scenes, y * blocks + block, step, purpose, 1 + i)]
            chosen: set[int] = set()
            for i, j in enumerate(range(n - count, n), start=1):  # Floyd
                t = drawn[i] * (j + 1) >> 32
                chosen.add(j if t in chosen else t)
            picked |= {(y, block * BLOCK + lane): drawn[0] >> lane & 1 for lane in chosen}
    return picked


@cache
def binomial_bounds(p: float, n: int) -> list[int]:
    """A word is worth k picked pixels if it reaches k of these: P(at most 0), P(at most 1), … in units of 2⁻³²."""
    q = Fraction(p)
    shares = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n)]
    return [int(sum(shares[: k + 1]) * 2**32) for k in range(n)]


def rendered(scenes: Scenes, step: int) -> np.ndarray:
    """The picture that the integrators see: some covered pixels are missing."""
    frame = picture(scenes, step)
    if scenes.shape_noise:
        for place in scattered(scenes, step, scenes.shape_noise, SHAPE):
            frame[place] = 0
    return frame


def initial(scenes: Scenes) -> list[list[int]]:
    if scenes.initial is not None:
        return [[scenes.initial] * scenes.width for _ in range(scenes.height)]
    m = -(-9 * scenes.threshold // 10) - 1  # the largest integer below 0.9 thresholds
    pixels = [[y * scenes.width + x for x in range(scenes.width)] for y in range(scenes.height)]
    return [[(words(scenes, pixel, 0, INITIAL)[0] * (2 * m + 1) >> 32) - m for pixel in row] for row in pixels]


def fired(scenes: Scenes) -> Iterator[tuple[int, int, int, int]]:
    """What the integrators fire, as (step, y, x, p), from the first step of the warm-up on."""
    state, previous, threshold = initial(scenes), rendered(scenes, -scenes.warmup - 1), scenes.threshold
    for step in range(-scenes.warmup, scenes.steps):
        current = rendered(scenes, step)
        change, previous = (current - previous).tolist(), current
        for y in range(scenes.height):
            for x in range(scenes.width):
                v = state[y][x] + change[y][x]
                sign = (v > threshold) - (v < -threshold)
                if sign:
                    yield step, y, x, int(sign > 0)
                    v = 0 if scenes.reset_to_zero else v - sign * threshold
                state[y][x] = v


def events(scenes: Scenes) -> list[Event]:
    """The events of a batch of one, sorted by (step, y, x, p)."""
    assert len(scenes) == 1
    drop = int(Fraction(scenes.event_noise) * 2**32)
    signal = {
        (step, y, x, p)
        for step, y, x, p in fired(scenes)
        if step >= 0 and words(scenes, y * scenes.width + x, step, EVENT)[0] >= drop
    }
    noise = set()
    if scenes.background:
        for step in range(scenes.steps):
            picked = scattered(scenes, step, scenes.background, BACKGROUND)
            noise |= {(step, y, x, p) for (y, x), p in picked.items()}
    return sorted((*event, event not in signal) for event in signal | noise)

"""Sources: what adds events of its own to those of the integrators. Scenes and steps in, keys out.

A source is a function (scenes, row, steps) that gives the keys of its events in a recording at some steps, in ascending
order; `SOURCES` has all of them. Background noise of which ON and OFF are equally likely is a source, too, but has
kernels of its own in every backend: it is the one that most scenes have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.events.pixel.camera import HOT, odd_pixels
from gerd.events.pixel.empty_scene import events_of
from gerd.events.pixel.noise import BLOCK, GROUP, ROUND, block_tables, drop_bound, last_block
from gerd.events.shared import FROM_BACKGROUND, FROM_HOT
from gerd.plan.plan import Pixel
from gerd.scene import philox
from gerd.scene.scenes import Scenes

WORDS_AT_ONCE = 2**20  # pixels · steps whose words are held together


class Source(NamedTuple):
    """A source, the question whether a scene has it, and the number that says so of an event."""

    is_there: Callable[[Pixel], bool]
    keys: Callable[[Scenes, int, range], NDArray[np.int64]]
    number: int  # of its events, in `SOURCE_NAMES`


def hot(scenes: Scenes, row: int, steps: range) -> NDArray[np.int64]:
    """Hot pixels: each fires ON at a step with probability rate · duration of a step, whatever it sees.

    Its word 0 of (seed; pixel, step, index, purpose HOT) is then below probability · 2³². In exact timing the event
    comes (word 1) · step_us >> 32 microseconds after the first of the step, and step 0 has none.
    """
    pixels = odd_pixels(scenes.camera(row), HOT, scenes.pixel.hot_share, scenes.width * scenes.height)
    noisy = _with_events(scenes, steps)
    at_once = max(1, WORDS_AT_ONCE // max(1, len(pixels)))
    keys = [np.empty(0, np.int64)]
    for begin in range(0, len(noisy), at_once):
        step = np.array(noisy[begin : begin + at_once], np.int64)[:, None]
        chance, when, *_ = philox.words(scenes.seed, pixels, step, scenes.indices[row], philox.HOT)
        fires = chance < drop_bound(scenes.pixel.hot_rate_hz * scenes.step_us * 1e-6)
        at, which = np.nonzero(fires)
        tick = step[at, 0] * scenes.ticks + (when[fires].astype(np.int64) * scenes.ticks >> 32)
        keys.append(Keys.of(scenes).encoded(tick, *np.divmod(pixels[which], scenes.width), 1))
    return np.sort(np.concatenate(keys))


def background(scenes: Scenes, row: int, steps: range) -> NDArray[np.int64]:
    """Background noise of ON and of OFF events, each by itself.

    Which pixels fire is scattered by the rule of `noise.py`, with purposes OF_POLARITY. In exact timing an event comes
    (word 1 + p of purpose TIME) · step_us >> 32 microseconds after the first of the step, and step 0 has none.
    """
    keys = [np.empty(0, np.int64)]
    index, area = scenes.indices[row], scenes.width * scenes.height
    for p, probability in enumerate((scenes.pixel.background_off, scenes.pixel.background_on)):
        for step in _with_events(scenes, steps) if probability > 0 else ():
            pixel = scattered(scenes.seed, index, step, philox.OF_POLARITY[p], probability, area)
            tick = np.full(len(pixel), step)
            if scenes.exact:
                when = philox.words(scenes.seed, pixel, step, index, philox.TIME)[1 + p]
                tick = tick * scenes.step_us + (when.astype(np.int64) * scenes.step_us >> 32)
            keys.append(Keys.of(scenes).encoded(tick, *np.divmod(pixel, scenes.width), p))
    return np.sort(np.concatenate(keys))


def _with_events(scenes: Scenes, steps: range) -> range:
    """Those of some steps that can have events."""
    return range(max(steps.start, scenes.first_step), steps.stop)


def scattered(seed: int, index: int, step: int, purpose: int, probability: float, pixels: int) -> NDArray[np.int64]:
    """The pixels that a noise picks at a step, by the rule of `noise.py`, whose polarities are not used."""
    blocks = -(-pixels // BLOCK)
    word = np.stack(philox.words(seed, np.arange(-(-blocks // GROUP)), step, index, purpose), axis=1).ravel()[:blocks]
    whole, last = block_tables(probability, pixels)
    count = np.searchsorted(whole, word.astype(np.int64), side="right")
    count[-1] = np.searchsorted(last, np.int64(word[-1]), side="right")
    block = np.flatnonzero(count)
    count = count[block]
    size = np.where(block == blocks - 1, last_block(pixels), BLOCK)
    taken = np.zeros((len(block), BLOCK), np.bool_)
    for i in range(int(count.max(initial=0))):
        more = np.flatnonzero(count > i)
        of_round = philox.words(seed, block[more], step, index, purpose + ROUND * (1 + i // 4))[i % 4]
        end = (size - count)[more] + i  # Floyd: one of the pixels up to here, or this one
        place = (of_round.astype(np.int64) * (end + 1)) >> 32
        taken[more, np.where(taken[more, place], end, place)] = True
    at, place = np.nonzero(taken)
    return block[at] * BLOCK + place


def recorded(scenes: Scenes, row: int, steps: range) -> NDArray[np.int64]:
    """The events of a real, empty scene: those of a file, from a time on that belongs to the recording's index.

    It is (words 0 and 1 of (seed; 0, 0, index, purpose RECORDED), as a share) · the file's length; after the end comes
    the beginning. An event so many microseconds later has the time of the step in which that is; in exact timing it
    comes 1 µs later and is counted from the first step on, and step 0 has none. A frame that is larger than the sensor
    is cut to its middle.
    """
    assert scenes.pixel.recorded is not None
    noise = events_of(scenes.pixel.recorded)
    share = philox.unit(*philox.words(scenes.seed, 0, 0, scenes.indices[row], philox.RECORDED)[:2])
    start = int(share * noise.length_us)
    first, stop = (max(0, step - scenes.first_step) * scenes.step_us for step in (steps.start, steps.stop))
    us, y, x, p = noise.between(start + first, start + stop, scenes.height, scenes.width)
    tick = (us - start) // (scenes.step_us // scenes.ticks) + scenes.first_step * scenes.ticks
    return np.unique(Keys.of(scenes).encoded(tick, y, x, p))


SOURCES = (
    Source(lambda pixel: pixel.hot_share > 0 and pixel.hot_rate_hz > 0, hot, FROM_HOT),
    Source(lambda pixel: pixel.background_on > 0 or pixel.background_off > 0, background, FROM_BACKGROUND),
    Source(lambda pixel: pixel.recorded is not None, recorded, FROM_BACKGROUND),
)

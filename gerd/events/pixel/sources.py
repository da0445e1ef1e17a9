"""Sources: what adds events of its own to those of the integrators. Scenes and steps in, keys out.

A source is a function (scenes, row, steps) that gives the keys of its events in a recording at some steps, in ascending
order; `SOURCES` has all of them, each with the question whether a scene has any. Background noise is a source, too, but
has kernels of its own in every backend, because it can pick any pixel at any step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.events.pixel.camera import HOT, odd_pixels
from gerd.events.pixel.noise import drop_bound
from gerd.plan.plan import Pixel
from gerd.scene import philox
from gerd.scene.scenes import Scenes


class Source(NamedTuple):
    """A source, and the question whether a scene has it."""

    is_there: Callable[[Pixel], bool]
    keys: Callable[[Scenes, int, range], NDArray[np.int64]]


def hot(scenes: Scenes, row: int, steps: range) -> NDArray[np.int64]:
    """Hot pixels: each fires ON at a step with probability rate · duration of a step, whatever it sees.

    Its word 0 of (seed; pixel, step, index, purpose HOT) is then below probability · 2³². In exact timing the event
    comes (word 1) · step_us >> 32 microseconds after the first of the step, and step 0 has none.
    """
    pixels = odd_pixels(scenes.pixel.camera, HOT, scenes.pixel.hot_share, scenes.width * scenes.height)
    first = max(steps.start, 1) if scenes.exact else steps.start
    step = np.arange(first, steps.stop)[:, None]
    chance, when, *_ = philox.words(scenes.seed, pixels, step, scenes.indices[row], philox.HOT)
    fires = chance < drop_bound(scenes.pixel.hot_rate_hz * scenes.step_us * 1e-6)
    at, which = np.nonzero(fires)
    tick = at + first
    if scenes.exact:
        tick = tick * scenes.step_us + (when[fires].astype(np.int64) * scenes.step_us >> 32)
    y, x = np.divmod(pixels[which], scenes.width)
    return np.sort(Keys.of(scenes).encoded(tick, y, x, 1))


SOURCES = (Source(lambda pixel: pixel.hot_share > 0 and pixel.hot_rate_hz > 0, hot),)

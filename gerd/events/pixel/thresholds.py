"""The thresholds of a camera's pixels, and the states between which their integrators start: counts, as integers.

A camera whose pixels are all alike has one number for all of them, others a table. A pixel's threshold of ON events is
their mean plus `spread` times a Gaussian number, from the words of (camera's number; pixel, 1, 0, purpose THRESHOLD);
for that of OFF events they are those of (…; pixel, 0, 0, …). None is below `LEAST`, or below the mean if that is less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.events.pixel.noise import largest_initial
from gerd.plan.plan import Pixel
from gerd.scene import philox
from gerd.scene.scenes import Scenes

LEAST = 0.01  # of a full count
AT_ONCE = 2**20  # pixels whose thresholds are drawn together

Counts = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Tables with a number for every pixel (height, width), or with one for all of them (1, 1)."""

    on: Counts
    off: Counts
    least: Counts  # between which an integrator starts, both included, if its state is not stationary
    most: Counts

    @property
    def differ(self) -> bool:
        """Whether each pixel has numbers of its own."""
        return self.on.size > 1

    @property
    def are_one(self) -> bool:
        """Whether a single number is the threshold of all pixels, for ON and for OFF events."""
        return not self.differ and bool(self.on[0, 0] == self.off[0, 0])

    @classmethod
    def of(cls, scenes: Scenes) -> Thresholds:
        """The thresholds of the one camera of some scenes."""
        pixel, size = scenes.pixel, (scenes.height, scenes.width)
        spread, least = pixel.spread * scenes.full_count, round(LEAST * scenes.full_count)
        off, on = (
            _table(mean, spread, least, scenes.camera(0) if spread > 0 else 0, polarity, size)
            for polarity, mean in enumerate((pixel.threshold_off, pixel.threshold_on))
        )
        return cls(on, off, *_initial(pixel, on, off))


def _initial(pixel: Pixel, on: Counts, off: Counts) -> tuple[Counts, Counts]:
    """The least and the most that an integrator holds at the start."""
    if isinstance(pixel.initial, str):
        return -largest_initial(off), largest_initial(on)
    state = np.rint(pixel.initial * (on if pixel.initial >= 0 else off)).astype(np.int32)
    return state, state


@lru_cache(maxsize=16)
def _table(mean: int, spread: float, least: int, camera: int, polarity: int, size: tuple[int, int]) -> Counts:
    """The thresholds of a polarity; `size` is that of the frame."""
    if spread == 0:
        return np.full((1, 1), mean, np.int32)
    result = np.empty(size[0] * size[1], np.int32)
    for begin in range(0, len(result), AT_ONCE):
        part = result[begin : begin + AT_ONCE]
        pixels = np.arange(begin, begin + len(part))
        drawn = philox.gaussian(philox.words(camera, pixels, polarity, 0, philox.THRESHOLD))
        part[:] = np.maximum(np.rint(mean + spread * drawn), max(1, min(mean, least)))
    return result.reshape(size)

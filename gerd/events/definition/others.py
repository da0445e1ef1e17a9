"""Pictures that somebody else made, before the pixels of the definition: counts and their times in, events out.

The pictures are taken one after the other, and of each only the counts of its pixels are held. In step timing picture i
is that of step i. In exact timing a pixel's count is linear from each picture to the next, so that the times of the
pictures are the instants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.events import exact
from gerd.events.definition import walk
from gerd.events.pixel.response import logarithm
from gerd.events.shared import Chunk
from gerd.scene.scenes import Scenes

HELD = 2**22  # counts of pixels that are worked on together


def run(
    scenes: Scenes, counts: Iterator[NDArray[np.int32]], times_us: NDArray[np.int64], device: str = "cpu"
) -> Iterator[Chunk]:
    """The events of a batch of one, whose pixels see `counts` (height, width), each from its time on.

    times_us: ascending, from 0 up to the last step; in step timing a step apart.
    """
    most = max(1, HELD // (scenes.width * scenes.height))
    background = scenes.pixel.log_response
    if background > 0:  # a table of logarithms would have to reach from the darkest to the brightest
        felt = partial(logarithm, full=scenes.full_count, background=background)
        counts, scenes = map(felt, counts), replace(scenes, pixel=replace(scenes.pixel, log_response=0.0))
    if scenes.exact:
        grid = _Times(scenes, times_us, most)
        return walk.run_pictures(scenes, _Pictures(counts, times_us), grid, device, most)
    return walk.run_pictures(scenes, _Pictures(counts, np.arange(scenes.steps)), None, device, most)


class _Pictures:
    """The counts at ascending times, of which each call may begin with the last time of the call before."""

    def __init__(self, counts: Iterator[NDArray[np.int32]], times: NDArray[np.int64]):
        self._counts, self._times = counts, times
        self._number = -1
        self._last: NDArray[np.int32]

    def __call__(self, _: Scenes, times: NDArray[np.integer | np.floating], device: str) -> Tensor:
        numbers = np.searchsorted(self._times, times.ravel())  # before the first picture: as in the first
        return torch.from_numpy(np.stack([self._at(number) for number in numbers.tolist()])[None]).to(device)

    def _at(self, number: int) -> NDArray[np.int32]:
        while self._number < number:
            self._last = next(self._counts)
            self._number += 1
        return self._last


class _Times:
    """The times of pictures as instants, of which at most `most` are given together."""

    def __init__(self, scenes: Scenes, times_us: NDArray[np.int64], most: int):
        self._scenes, self._times, self._most = scenes, times_us, max(2, most)
        self._reached = 0  # the number of a picture

    def until(self, stop: int) -> Iterator[tuple[Scenes, exact.Instants]]:
        """The pictures up to the first that comes when the steps below `stop` are over."""
        beyond = int(np.searchsorted(self._times, (stop - 1) * self._scenes.step_us))
        last = min(beyond, len(self._times) - 1)
        while self._reached < last:
            end = min(self._reached + self._most - 1, last)
            own = self._times[None, self._reached : end + 1].astype(np.float64)
            yield self._scenes, exact.Instants(own, float(self._scenes.step_us), 1.0)  # own time in microseconds
            self._reached = end

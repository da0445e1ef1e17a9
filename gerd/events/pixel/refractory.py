"""Refractory time as a filter: of a pixel's events, those that follow another too soon are lost.

The integrators know nothing of it: what they have passed is counted, whether its event is lost or not. A pixel's event
is kept if its last one that was kept is `refractory_us` ago, or longer; in step timing so many steps, rounded up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.events.shared import Chunk
from gerd.plan.plan import Pixel
from gerd.scene.scenes import Scenes

Whole = NDArray[np.int64]


def drops_refractory(pixel: Pixel) -> bool:
    """Whether events are lost that follow another of their pixel too soon."""
    return pixel.drops_refractory and pixel.refractory_us > 0


class Refractory:
    """The refractory time of the pixels of one recording, with what has fired just before from chunk to chunk."""

    def __init__(self, scenes: Scenes, _row: int):
        self._codec = Keys.of(scenes)
        self._ticks = ticks_of(scenes.pixel.refractory_us, scenes)
        self._recent = np.empty(0, np.int64)  # keys of events that were kept, and that others may follow too soon

    def __call__(self, chunk: Chunk) -> Chunk:
        area = self._codec.height * self._codec.width
        keys = np.concatenate([self._recent, chunk.keys])
        kept = np.zeros(len(keys), np.bool_)
        tick, pixel = np.divmod(keys >> 1, area)
        order = np.argsort(pixel, kind="stable")
        kept[order] = far_apart(pixel[order], tick[order], self._ticks)
        end = chunk.steps.stop * self._codec.ticks
        self._recent = keys[kept & (tick > end - self._ticks)]
        return chunk.kept(kept[len(keys) - len(chunk.keys) :])


def ticks_of(us: float, scenes: Scenes) -> int:
    """So many microseconds in ticks, rounded up."""
    return -int(-us // (scenes.step_us // scenes.ticks))


def far_apart(group: Whole, tick: Whole, least: int) -> NDArray[np.bool_]:
    """Which events are kept: those that come `least` ticks or more after the last of their group that is kept.

    Events ascend by group and tick, and the first of a group is kept. All groups go on to their next event together.
    """
    kept = np.zeros(len(group), np.bool_)
    if not len(group):
        return kept
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(begins[1:], len(group))
    first = int(tick.min())
    longest = int(tick.max()) - first + 1
    places = np.repeat(np.arange(len(begins)), ends - begins) * (longest + 1) + (tick - first)
    at = begins
    while len(at):
        kept[at] = True
        wanted = np.minimum(tick[at] - first + least, longest)
        at = np.searchsorted(places, places[at] - (tick[at] - first) + wanted)
        more = at < ends
        at, ends = at[more], ends[more]
    return kept

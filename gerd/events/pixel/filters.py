"""Filters: what happens to events behind the pixels, in order of time. Events in, events out.

A filter is made for one recording, and called with one chunk of its events after the other; what it has to remember
from chunk to chunk, it keeps. `FILTERS` has all of them in the order in which they act, each with the question whether
a scene has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gerd.events.keys import Keys
from gerd.events.pixel.camera import DEAD, odd_pixels
from gerd.events.pixel.readout import Readout
from gerd.events.pixel.refractory import Refractory, drops_refractory
from gerd.events.shared import Chunk
from gerd.plan.plan import Pixel
from gerd.scene.scenes import Scenes


class Filter(NamedTuple):
    """A filter, and the question whether a scene has it."""

    is_there: Callable[[Pixel], bool]
    make: Callable[[Scenes, int], Callable[[Chunk], Chunk]]  # for a recording of some scenes


def dead(scenes: Scenes, row: int) -> Callable[[Chunk], Chunk]:
    """Dead pixels never fire, whatever they see."""
    codec = Keys.of(scenes)
    alive = np.ones(scenes.width * scenes.height, np.bool_)
    alive[odd_pixels(scenes.camera(row), DEAD, scenes.pixel.dead, len(alive))] = False
    return lambda chunk: chunk.kept(alive[codec.pixels(chunk.keys) >> 1])


FILTERS = (
    Filter(lambda pixel: pixel.dead > 0, dead),
    Filter(drops_refractory, Refractory),
    Filter(lambda pixel: pixel.is_read_out, Readout),
)

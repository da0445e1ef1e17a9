"""The codec of event keys: an event is the number ((tick · height + y) · width + x) · 2 + p.

A step has `ticks` ticks: one in step timing, one for each microsecond in exact timing, of which the last is the step
itself. Keys of a recording ascend, so events are sorted by (time, y, x, p); in exact timing a key may come twice. All
methods work on integers, numpy arrays and PyTorch tensors alike. Outside of this module keys are written by the kernels
(the rule `key` of `cpu/rules.py`, `gather` of `cuda/output.py` and `between` of `cuda/kernels.py`), and `cpu/steps.py`
and `cpu/instants.py` take the keys of noise apart that they have just drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from torch import Tensor

    # The same kind in and out; keys that come from a file have 32 bits where that is enough.
    Integers = TypeVar("Integers", int, NDArray[np.int64], NDArray[np.integer], Tensor)


@dataclass(frozen=True)
class Keys:
    """The keys of events on a sensor of this size."""

    height: int  # pixels
    width: int
    ticks: int = 1  # per step

    @classmethod
    def of(cls, scenes: Scenes) -> Keys:
        """The keys of the events of some scenes."""
        return cls(scenes.height, scenes.width, scenes.ticks)

    @property
    def per_step(self) -> int:
        """How many different keys a step has."""
        return 2 * self.height * self.width * self.ticks

    def encoded(self, tick: Integers, y: Integers, x: Integers, p: Integers | int) -> Integers:
        """The key of each event."""
        return ((tick * self.height + y) * self.width + x) * 2 + p

    def decoded(self, keys: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """step, y, x and p of each event."""
        pixel = keys >> 1
        row = pixel // self.width
        tick = row // self.height
        step = tick // self.ticks if self.ticks > 1 else tick
        return step, row - tick * self.height, pixel - row * self.width, keys & 1

    def times(self, keys: Integers, step_us: int, first: int = 0) -> Integers:
        """The time of each event in microseconds; step 0 of the keys is step `first` of the recording."""
        return self.elapsed(keys, step_us) + first * step_us + (1 - self.ticks) * (step_us // self.ticks)

    def since_first(self, keys: Integers) -> Integers:
        """How many ticks after step 0 of the keys each event happens; before it, in exact timing, less than 0."""
        return keys // (2 * self.height * self.width) - (self.ticks - 1)

    def elapsed(self, keys: Integers, step_us: int) -> Integers:
        """The whole microseconds between the beginning of step 0 of the keys and each event.

        Step i has i · step_us and those after it, up to (i + 1) · step_us.
        """
        tick = keys // (2 * self.height * self.width)
        return tick * (step_us // self.ticks)

    def pixels(self, keys: Integers) -> Integers:
        """Pixel and polarity of each event as one number, (y · width + x) · 2 + p."""
        return keys % (2 * self.height * self.width)

    def steps(self, keys: Integers) -> Integers:
        """The step of each event."""
        return keys // self.per_step

    def bounds(self, keys: NDArray[np.integer], steps: ArrayLike) -> NDArray[np.int64]:
        """How many events come before each of `steps`: those of step i are keys[bounds[i] : bounds[i + 1]]."""
        return np.searchsorted(keys, np.asarray(steps, np.int64) * self.per_step)

    def moved(self, keys: Integers, steps: int) -> Integers:
        """The keys of these events if they came `steps` later."""
        return keys + steps * self.per_step if steps else keys

    def places(self, keys: Integers) -> Integers:
        """Where each event lies in frames (steps, 2, height, width) that are laid out flat."""
        pixel = keys >> 1
        area = self.height * self.width
        tick = pixel // area
        return (tick // self.ticks * 2 + (keys & 1) - tick) * area + pixel

    def fit_int32(self, steps: int) -> bool:
        """Whether every key of a recording of so many steps fits into 32 bits."""
        return steps * self.per_step <= 2**31


def polarities(keys: Integers) -> Integers:
    """p of each event: 1 ON, 0 OFF."""
    return keys & 1


def in_both_polarities(codec: Keys, keys: NDArray[np.int64]) -> bool:
    """Whether some pixel has an ON and an OFF event in the same step."""
    on = polarities(keys) == 1
    places = codec.places(keys)
    return bool(np.isin(places[on] - codec.height * codec.width, places[~on]).any())


def add_events(frames: NDArray[np.bool_] | NDArray[np.uint8], places: NDArray[np.int64]) -> None:
    """Count events at `places` of flat frames: boolean ones say whether there is one, others stop at 255."""
    if frames.dtype == np.bool_:
        frames[places] = True
    else:
        places, counts = np.unique(places, return_counts=True)
        frames[places] = np.minimum(counts, 255)

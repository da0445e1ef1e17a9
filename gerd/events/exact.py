"""Exact timing: scenes in, the instants at which their picture is looked at; passages of the threshold in, events out.

The integrators run in the motion's own time u. A grid cuts each unit of it into equal parts, so many that no point of
an outline moves by more than `stride` from one instant to the next; between instants a pixel's count is linear. The
grid is a function of the path alone: neither the time scale nor the length of a step shows in it. So the events of a
scene that runs s times as fast are the same, at times divided by s. (Shape noise belongs to steps: with it, the end of
each step is an instant, too.)

All integrators start at own time -warmup, with the picture of that instant; what they fire is recorded from 0 on. An
event at own time u has the time t = u / s in steps, in microseconds the next whole number at or above it. Step i holds
the events with i - 1 < t <= i, so that step 0 has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.events.shared import FROM_BACKGROUND, FROM_LEAK, Chunk, chunks
from gerd.scene import philox
from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from gerd.events.keys import Integers

Whole = NDArray[np.int64]

MOST_PARTS = 2**10  # of a unit of own time; outlines that are faster than this many strides take longer ones
ROUNDING = 1e-12  # by which the end of a step may lie beyond it
LEAST_STRIDE = 1 / 16  # pixels
UNITS = 256  # of own time, whose instants are worked out together


@dataclass(frozen=True)
class Instants:
    """Consecutive instants of each recording. The first is the last of those before: what follows is compared with it.

    A recording with fewer of them than another repeats its last, at which nothing changes.
    """

    own: NDArray[np.float64]  # (recordings, instants)
    rate: float  # of own time: units in a step
    us_per_unit: float

    @property
    def steps(self) -> NDArray[np.int64]:
        """The step that holds each instant."""
        time = self.own / self.rate
        return np.ceil(time - ROUNDING * np.abs(time)).astype(np.int64)


class Pixels(Protocol):
    """The pixels of a backend, whose state is carried from call to call."""

    def passages(self, scenes: Scenes, instants: Instants, /) -> list[NDArray[np.int64]]:
        """For each recording the flagged keys of what its integrators fire, in any order; see `flagged`."""
        ...

    def background(self, scenes: Scenes, steps: range, /) -> list[NDArray[np.int64]]:
        """For each recording the flagged keys of the background noise of some steps."""
        ...


def flagged(codec: Keys, us: Integers, y: Integers, x: Integers, p: Integers | int, flag: Integers | int) -> Integers:
    """Flagged keys of events at times in whole microseconds: the key, with a flag as one more bit.

    It says of what integrators fire whether it has leaked in, and of background noise that it is noise.
    """
    return codec.encoded(us + (codec.ticks - 1), y, x, p) * 2 + flag


def background_events(scenes: Scenes, row: Whole, step: Whole, y: Whole, x: Whole, p: Whole) -> list[Whole]:
    """For each recording the flagged keys of its background noise, from arrays sorted by the recording's row."""
    words = philox.words(scenes.seed, y * scenes.width + x, step, scenes.indices[row], philox.TIME)
    us = (step - 1) * scenes.step_us + 1 + (words[0].astype(np.int64) * scenes.step_us >> 32)
    return np.split(flagged(Keys.of(scenes), us, y, x, p, 1), np.searchsorted(row, np.arange(1, len(scenes))))


class Grid(Protocol):
    """The instants of a recording, which follow each other from call to call."""

    def until(self, stop: int, /) -> Iterator[tuple[Scenes, Instants]]:
        """Those that events of the steps below `stop` can come from, and the scenes carried on to them."""
        ...


class OfMotion:
    """The instants that the motion of scenes asks for, of which at most about `most` are held."""

    def __init__(self, scenes: Scenes, most: int):
        self._scenes, self._most = scenes, most
        self._own = scenes.in_own_time()
        self._reached = -scenes.warmup

    def until(self, stop: int) -> Iterator[tuple[Scenes, Instants]]:
        target = max(self._reached, last_unit(self._scenes, stop))
        for own, moments in slabs(self._own, self._scenes.trajectory.rate, self._reached, target, self._most):
            self._own = own
            yield own, moments
        self._reached = target


def run(scenes: Scenes, pixels: Pixels, chunk: int, most: int) -> Iterator[Chunk]:
    """The events of a batch, `chunk` steps at a time, from instants of which at most about `most` are held."""
    return run_at(scenes, pixels, chunk, OfMotion(scenes, most))


def run_at(scenes: Scenes, pixels: Pixels, chunk: int, grid: Grid) -> Iterator[Chunk]:
    """The events of a batch, `chunk` steps at a time, from the instants of a grid."""
    codec = Keys.of(scenes)
    held: list[Whole] = [np.empty(0, np.int64)] * len(scenes)
    for steps in chunks(0, scenes.steps, chunk):
        parts = [[events] for events in held]
        noise = [np.empty(0, np.int64)] * len(scenes)
        for resumed, moments in grid.until(steps.stop):
            for part, events in zip(parts, pixels.passages(resumed, moments), strict=True):
                part.append(events)
        if scenes.pixel.background > 0 and steps.stop > 1:  # step 0 has no events
            noise = pixels.background(scenes, steps)
        for row, part in enumerate(parts):
            events = np.sort(np.concatenate(part))
            begin, end = np.searchsorted(events, np.array([max(1, steps.start), steps.stop]) * codec.per_step * 2)
            held[row] = events[end:]
            keys, leaked = events[begin:end] >> 1, (events[begin:end] & 1).astype(np.uint8)
            of_noise = noise[row] >> 1
            of_noise = of_noise[of_noise >= max(1, steps.start) * codec.per_step]
            yield Chunk(row, steps, keys, FROM_LEAK * leaked).beside(of_noise, FROM_BACKGROUND)


def last_unit(scenes: Scenes, stop: int) -> int:
    """The own time up to which events of the steps below `stop` can come.

    One unit more than there is, because rounding may bring an event that is just beyond the last step into it; but no
    farther than the path is recorded.
    """
    return min(math.floor(scenes.trajectory.rate * (stop - 1)) + 1, scenes.path_end)


def slabs(own: Scenes, rate: float, first: int, stop: int, most: int) -> Iterator[tuple[Scenes, Instants]]:
    """The instants of the units first … stop - 1, at most about `most` at a time, and the scenes carried on to them.

    However slow or fast the motion is: the ends of steps in a unit, or the parts of a unit, are not held all at once.
    """
    us_per_unit = own.step_us / rate
    while first < stop:
        end = min(stop, first + UNITS)
        own = own.resumed(np.array([first, end]))
        parts = sub_steps(own, first, end)
        fitting = np.searchsorted(np.cumsum(parts.max(axis=0)), most, side="right")
        parts = parts[:, : max(1, fitting)]
        grid = instants(parts, first)
        for moments in _with_ends_of_steps(grid, rate, most) if own.pixel.shape_noise > 0 else [grid]:
            for begin in range(0, moments.shape[1] - 1, max(1, most)):
                yield own, Instants(moments[:, begin : begin + max(1, most) + 1], rate, us_per_unit)
        first += parts.shape[1]


def stride(upsampling: int) -> float:
    """How many pixels an outline moves between two instants, at most.

    A quarter, or two sub-pixels if that is less, but no less than a sixteenth: in so short a way counts are linear to
    within a sub-pixel of the finest grid.
    """
    return min(0.25, max(2 / upsampling, LEAST_STRIDE))


def sub_steps(own: Scenes, first: int, stop: int) -> NDArray[np.int64]:
    """(recordings, units): into how many parts each unit of own time is cut, a power of two."""
    speeds = own.trajectory.fastest(own.reach, first, stop)
    fastest = np.where(own.present[..., None], speeds, 0.0).max(axis=1, initial=0.0)
    share, power = np.frexp(np.minimum(fastest / stride(own.upsampling), MOST_PARTS))
    parts = np.int64(1) << np.maximum(power - (share == 0.5), 0).astype(np.int64)
    return np.broadcast_to(parts, (len(own), stop - first))


def instants(parts: NDArray[np.int64], first: int) -> NDArray[np.float64]:
    """(recordings, instants): those of units from `first` on, each cut into `parts` (recordings, units)."""
    counts = parts.sum(axis=1, keepdims=True)
    own = np.zeros((len(parts), int(counts.max()) + 1))
    own[:, 0] = first
    own[:, 1:][np.arange(counts.max()) < counts] = np.repeat(1 / parts.ravel(), parts.ravel())
    return np.cumsum(own, axis=1, out=own)  # of powers of two: exact


def _with_ends_of_steps(own: NDArray[np.float64], rate: float, most: int) -> Iterator[NDArray[np.float64]]:
    """These instants and those at which steps end, each recording with as many as the one with most.

    They are cut at ends of steps, so that no piece has many more than `most` such ends: where the motion is slow, a
    unit of own time has more steps than memory could hold. Each piece begins with the last instant of the one before.
    """
    first = float(own[0, 0])
    stop = float(own[0, -1])
    step, last = math.floor(first / rate), math.ceil(stop / rate)
    begin = first
    while begin < stop:
        ends = np.arange(step, min(step + max(2, most), last) + 1) * rate
        step += len(ends) - 1
        end = stop if step >= last else min(float(ends[-1]), stop)
        ends = ends[(ends > begin) & (ends < end)]
        rows = [np.concatenate([[begin], np.union1d(row[(row > begin) & (row < end)], ends), [end]]) for row in own]
        longest = max(map(len, rows))
        yield np.stack([np.concatenate([row, np.full(longest - len(row), end)]) for row in rows])
        begin = end

"""Readout: events in order of the times at which their pixels fire, out in order of the times at which they arrive.

An event is ready `latency_us` + `jitter_us` · g microseconds after its pixel has fired, rounded, and never before; g is
a Gaussian number from the words of (seed; 2 · pixel + p, tick, index, purpose JITTER). Then it waits for a serial bus
that each event takes up for `bus_us`. Those that are ready first go first; of those that are ready in the same
microsecond those with the smaller y, x and p, and then those that have fired first. An event arrives as it gets the
bus, in microseconds the next whole number, and is lost if it would wait for longer than `queue_us`. The bus is free
when a recording begins.

A chunk of steps gives what arrives in it: events that are on their way when it ends come with a later one, and those
that are on their way when the recording ends are not recorded.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.events.shared import Chunk, joined
from gerd.scene import philox
from gerd.scene.scenes import Scenes

PART = 2**24  # of a microsecond, in which the bus counts
AT_ONCE = 2**20  # events whose turns on the bus are worked out together
LONGEST = 2**37  # microseconds between the first and the last of them

Whole = NDArray[np.int64]


class Readout:
    """The readout of one recording, with the events that are on their way from chunk to chunk."""

    def __init__(self, scenes: Scenes, row: int):
        self._codec = Keys.of(scenes)
        self._pixel = scenes.pixel
        self._seed, self._index = scenes.seed, int(scenes.indices[row])
        self._per_tick = self._codec.per_step // self._codec.ticks
        self._bus = Bus(scenes.pixel.bus_us, scenes.pixel.queue_us) if scenes.pixel.bus_us > 0 else None
        self._not_ready: list[Chunk] = []
        self._not_there: list[Chunk] = []

    def __call__(self, chunk: Chunk) -> Chunk:
        """What arrives in the steps of a chunk, of which the events that happen in them are given."""
        end = chunk.steps.stop * self._codec.per_step
        delay = self._delay(chunk.keys)
        ready = chunk._replace(keys=chunk.keys + delay * self._per_tick, delay=delay)
        now, later = joined([*self._not_ready, ready]).in_order().cut(end)
        self._not_ready = [later]
        if self._bus is not None:
            now = self._sent(self._bus, now)
        there, later = joined([*self._not_there, now]).in_order().cut(end)
        self._not_there = [later]
        return there._replace(steps=chunk.steps)

    def _delay(self, keys: Whole) -> Whole:
        """How many microseconds after its pixel has fired each event is ready."""
        if self._pixel.jitter_us == 0:
            return np.full(len(keys), round(self._pixel.latency_us), np.int64)
        drawn = philox.words(self._seed, self._codec.pixels(keys), keys // self._per_tick, self._index, philox.JITTER)
        late = self._pixel.latency_us + self._pixel.jitter_us * philox.gaussian(drawn)
        return np.maximum(np.rint(late), 0).astype(np.int64)

    def _sent(self, bus: Bus, chunk: Chunk) -> Chunk:
        """The events of a chunk when they get the bus."""
        ready = chunk.keys // self._per_tick
        arrival, taken = bus.turns(ready)
        wait = arrival - ready
        assert chunk.delay is not None
        return chunk._replace(keys=chunk.keys + wait * self._per_tick, delay=chunk.delay + wait).kept(taken)


class Bus:
    """A serial bus with a queue: one event after the other, each for the same time."""

    def __init__(self, us_per_event: float, queue_us: float):
        self._takes = math.ceil(us_per_event * PART)
        self._patience = math.floor(queue_us * PART)
        self._free = 0  # from when on, in parts of a microsecond

    def turns(self, ready: Whole) -> tuple[Whole, NDArray[np.bool_]]:
        """When events that are ready at these times, which ascend, get the bus; and which of them get it at all."""
        arrival, taken = ready.copy(), np.ones(len(ready), np.bool_)
        begin = 0
        while begin < len(ready):
            base = int(ready[begin])
            end = min(begin + AT_ONCE, int(np.searchsorted(ready, base + LONGEST)))
            free = max(self._free - base * PART, 0)
            start, some, free = self._scheduled((ready[begin:end] - base) * PART, free)
            arrival[begin:end], taken[begin:end] = base - (-start // PART), some
            self._free = base * PART + free
            begin = end
        return arrival, taken

    def _scheduled(self, ready: Whole, free: int) -> tuple[Whole, NDArray[np.bool_], int]:
        """The same in parts of a microsecond, for a bus that is taken until `free`; and until when it is taken then."""
        ahead = np.arange(len(ready)) * self._takes
        start = np.maximum.accumulate(np.maximum(ready, free) - ahead) + ahead
        taken = np.ones(len(ready), np.bool_)
        if (start - ready <= self._patience).all():
            return start, taken, int(start[-1]) + self._takes
        for i, time in enumerate(ready.tolist()):  # whether one is lost depends on all those before it
            turn = max(time, free)
            if turn - time > self._patience:
                taken[i] = False
            else:
                start[i], free = turn, turn + self._takes
        return start, taken, free

"""The `cpu` backend: scenes in, events out, at a cost that follows the number of events.

The kernels are loaded at first use by `compiled.py`, and `known.py` has the events that they must give before they are
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import RLock
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from gerd.events import exact, rasterise
from gerd.events.compiled import Kernel, argument
from gerd.events.cpu import known
from gerd.events.cpu.arguments import Chance, Scene, Sensor
from gerd.events.cpu.pieces import PieceTable
from gerd.events.cpu.room import Rooms, fresh_room, model_of, noise_of, takes_fresh
from gerd.events.shared import Chunk, chunks
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]

_LOADING = RLock()


@dataclass(frozen=True)
class Limits:
    """How much is held at a time: memory and speed depend on it, events never do."""

    steps: int = 1024  # whose outlines are worked out together
    values: int = 2**22  # numbers in the outlines of a chunk, or of the recordings that are worked out together
    events: int = 2**17  # that are handed over together, at least


LIMITS = Limits()


def run(scenes: Scenes, chunk: int | None = None, limits: Limits = LIMITS) -> Iterator[Chunk]:
    """The events of `scenes`, recording by recording, `chunk` steps at a time."""
    with _LOADING:
        _check("exact" if scenes.exact else "step")
    return _run(scenes, chunk, limits)


def _run(scenes: Scenes, chunk: int | None = None, limits: Limits = LIMITS) -> Iterator[Chunk]:
    numbers = numbers_of(scenes)
    fitting = max(1, limits.values // numbers)
    chunk = chunk or min(limits.steps, fitting)
    if scenes.exact:
        pixels = _Pixels(limits)
        for row in range(len(scenes)):
            pixels.begin(scenes, row)
            for part in exact.run(scenes[row : row + 1], pixels, chunk, fitting):
                yield part._replace(row=row)
        pixels.end()
        return
    first = -scenes.warmup - 1
    whole = max(-first, scenes.steps) <= chunk
    together = max(1, limits.values // (numbers * (scenes.steps - first))) if whole else 1
    state: _State | None = None
    for row in range(len(scenes)):
        if row % together == 0:
            group = scenes[row : row + together]
        for piece in chunks(first, scenes.steps, chunk):
            if row % together == 0:
                steps = np.array(piece)
                group = group.resumed(steps)
                maps = rasterise.maps(group, steps)
            state = state or _State(scenes, limits)
            if piece.start == first:
                state.begin(row)
            keys, source = state.run(maps[row % together], steps, piece.start == first)
            recorded = piece[max(0, -piece.start) :]
            if len(recorded):
                yield Chunk(row, recorded, keys, source)
    if state:  # not if the caller has not gone on to the end
        state.end()


class _State:
    """What a recording carries from step to step, and room to work in; used for one recording after the other."""

    def __init__(self, scenes: Scenes, limits: Limits):
        self._scenes = scenes
        self._pieces = PieceTable(scenes)
        self._sensor = argument(Sensor(scenes.width, scenes.height, scenes.upsampling))
        self._noise = noise_of(scenes)
        stationary = scenes.pixel.initial == "stationary"
        self._model = None if stationary else argument(model_of(scenes, 0))
        self._seed = argument(np.uint64(scenes.seed))
        self._rooms = Rooms.of(scenes, self._pieces, limits.events)
        self._frames = list(self._rooms.frames)
        self._carried = self._rooms.carried
        self._takes_fresh = takes_fresh(scenes)
        self._kernels = kernels("cpu.instants" if scenes.exact else "cpu.steps")

    def begin(self, row: int) -> None:
        """Go on with another recording: forget the shapes of the one before; the kernel forgets its integrators."""
        scenes, rooms = self._scenes, self._rooms
        self._pieces.choose(scenes, row)
        self._chance = argument(Chance(self._seed, scenes.indices[row]))
        model = self._model or argument(model_of(scenes, row))
        self._scene = argument(Scene(self._sensor, self._pieces.pieces, model, self._noise, self._chance))
        if self._takes_fresh:
            self._carried = argument(fresh_room(rooms.pixels, scenes))
        rooms.rows[:] = 0

    def end(self) -> None:
        """Leave the room to others."""
        self._rooms.keep()

    def _make_room(self, maps: Array) -> None:
        """Room for the crossings of all frames."""
        needed = self._pieces.crossings_of_lists(maps, self._scenes.upsampling, self._scenes.height)
        rooms = self._rooms.with_room_for(self._frames, needed)
        if rooms is not self._rooms:
            self._rooms = rooms
            self._frames = list(rooms.frames)

    def run(self, maps: Array, steps: NDArray[np.int64], fresh: bool) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Keys and sources of the events at some steps, from T (steps, actors, 6)."""
        self._make_room(maps)
        keys: list[NDArray[np.int64]] = []
        source: list[NDArray[np.uint8]] = []
        begin = 0
        while begin < len(steps):  # once, unless there are more events than the room holds
            done, made = self._kernels.simulate_steps(
                maps[begin:], steps[begin:], self._scenes.step_us, fresh and begin == 0, self._scene,
                *self._frames, self._carried, *self._rooms.others,
            )  # fmt: skip
            keys.append(self._rooms.events.keys[:made].copy())
            source.append(self._rooms.events.source[:made].copy())
            begin += done
            if done % 2:
                self._frames.reverse()
        return (keys[0], source[0]) if len(keys) == 1 else (np.concatenate(keys), np.concatenate(source))

    def run_instants(self, maps: Array, instants: exact.Instants, fresh: bool) -> NDArray[np.int64]:
        """What fires between the instants of one recording, from T (instants, actors, 6), as `exact.flagged`."""
        self._make_room(maps)
        own, steps = instants.own[0], instants.steps[0]
        clock = (self._scenes.step_us, instants.us_per_unit, self._scenes.steps * self._scenes.step_us)
        parts = []
        begin = 0
        done = 0
        while done < len(own):  # again where there are more events than the room holds
            begin = max(done - 1, 0)
            resumed = done > 0
            done, swaps, made = self._kernels.simulate_instants(
                maps[begin:], own[begin:], steps[begin:], clock, fresh and not resumed, resumed, self._scene,
                *self._frames, self._carried, *self._rooms.others,
            )  # fmt: skip
            done += begin
            parts.append(self._rooms.events.keys[:made].copy())
            if swaps % 2:
                self._frames.reverse()
        return np.concatenate(parts)

    def run_noise(self, steps: range) -> NDArray[np.int64]:
        """The background noise of some steps in exact timing, as `exact.flagged`."""
        parts = []
        step = steps.start
        _, draws, _, room = self._rooms.others
        given = (self._scenes.step_us, self._sensor, self._noise, self._chance, draws, room)
        while step < steps.stop:
            step, made = self._kernels.simulate_noise(step, steps.stop, *given)
            parts.append(self._rooms.events.keys[:made].copy())
        return np.concatenate(parts)


class _Pixels:
    """The pixels in exact timing, of one recording after the other, each as a batch of one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._state: _State | None = None

    def begin(self, scenes: Scenes, row: int) -> None:
        """Go on with another recording."""
        self._batch = scenes
        self._row = row
        self._fresh = True

    def end(self) -> None:
        """Leave the room to others."""
        if self._state:
            self._state.end()

    def passages(self, scenes: Scenes, instants: exact.Instants) -> list[NDArray[np.int64]]:
        maps = rasterise.maps(scenes, instants.own)
        self._state = self._state or _State(self._batch, self._limits)
        if self._fresh:
            self._state.begin(self._row)
        fresh, self._fresh = self._fresh, False
        return [self._state.run_instants(maps[0], instants, fresh)]

    def background(self, _scenes: Scenes, steps: range) -> list[NDArray[np.int64]]:
        assert self._state is not None
        return [self._state.run_noise(steps)]


def kernels(module: str) -> SimpleNamespace:
    """The kernels of a module that can be called from here, as machine code: loaded or compiled at their first call."""
    with _LOADING:  # by one thread
        return _kernels(module)


@cache
def _kernels(module: str) -> SimpleNamespace:
    entries = import_module(f"gerd.events.{module}").ENTRIES
    return SimpleNamespace(**{entry.__name__: Kernel(entry) for entry in entries})


def are_kept(exact: bool) -> bool:
    """Whether there is machine code for this timing; then it is soon loaded."""
    kernel = kernels("cpu.instants").simulate_instants if exact else kernels("cpu.steps").simulate_steps
    return bool(kernel.is_kept())


@cache
def _check(timing: str) -> None:
    """An error unless known events of a timing come out."""
    known.check(_run, "the backend cpu", timing)


def numbers_of(scenes: Scenes) -> int:
    """How many numbers say where the outlines of one recording are at one step, and a few more: it is never 0."""
    return 6 * (len(scenes.shapes) + 1)

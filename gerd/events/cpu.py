"""The `cpu` backend: scenes in, events out, at a cost that follows the number of events.

The kernels are loaded at first use by `compiled.py`, and `known.py` has the events that they must give before they are
used.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import RLock
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.events import change_kernels, cpu_kernels, exact, known, noise, rasterise, step_kernels
from gerd.events.compiled import Kernel, packed
from gerd.events.shared import Events, chunks
from gerd.scene import philox
from gerd.scene.scenes import Scenes

AT_ONCE = 256  # random words drawn in one loop
LANES = 8  # rows that a kernel may look at beyond the last

_LOADING = RLock()


@dataclass(frozen=True)
class Limits:
    """How much is held at a time, which decides over memory and speed, and never over events."""

    steps: int = 1024  # whose outlines are worked out together
    values: int = 2**22  # numbers in the outlines of a chunk, or of the recordings that are worked out together
    events: int = 2**17  # that are handed over together, at least


LIMITS = Limits()


def run(scenes: Scenes, chunk: int | None = None, limits: Limits = LIMITS) -> Iterator[Events]:
    """The events of `scenes`, recording by recording, `chunk` steps at a time."""
    with _LOADING:
        _check("exact" if scenes.exact else "step")
    return _run(scenes, chunk, limits)


def _run(scenes: Scenes, chunk: int | None = None, limits: Limits = LIMITS) -> Iterator[Events]:
    numbers = numbers_of(scenes)
    fitting = max(1, limits.values // numbers)
    chunk = chunk or min(limits.steps, fitting)
    if scenes.exact:
        camera = _Camera(limits)
        for row in range(len(scenes)):
            camera.begin(scenes, row)
            for part in exact.run(scenes[row : row + 1], camera, chunk, fitting):
                yield part._replace(row=row)
        return
    first = -scenes.warmup - 1
    whole = max(-first, scenes.steps) <= chunk
    together = max(1, limits.values // (numbers * (scenes.steps - first))) if whole else 1
    state: _State | None = None
    for row in range(len(scenes)):
        if row % together == 0:
            group = scenes[row : row + together]
        for piece in chunks(first, scenes.steps, chunk):
            steps = np.array(piece)
            if row % together == 0:
                group = group.resumed(steps)
                borders = rasterise.borders(group, steps)
            state = state or _State(scenes, borders, limits)
            if piece.start == first:
                state.begin(row)
            keys, background = state.run(borders.coefficients[row % together], steps, piece.start == first)
            recorded = piece[max(0, -piece.start) :]
            if len(recorded):
                yield Events(row, recorded, keys, background)


class _State:
    """What a recording carries from step to step, and room to work in; used for one recording after the other."""

    def __init__(self, scenes: Scenes, borders: rasterise.Borders, limits: Limits):
        height, width, f = scenes.height, scenes.width, scenes.upsampling
        area = height * width
        slots = slots_of(borders.first, borders.convex)
        sizes = np.diff(slots)
        self._scenes, self._actor = scenes, borders.actor
        self._sensor = packed((width, height, f))
        self._intensity = np.empty(len(sizes), scenes.intensity.dtype)
        outlines = (borders.first, borders.is_ellipse, borders.convex, slots)
        self._pieces = packed(cpu_kernels.Pieces(*outlines, self._intensity))
        largest = noise.largest_initial(scenes.threshold) if scenes.initial == "uniform" else 0
        initial = 0 if isinstance(scenes.initial, str) else scenes.initial
        stationary = scenes.initial == "stationary"
        self._model = tuple(map(packed, (scenes.threshold, scenes.reset_to_zero, initial, largest, stationary)))
        shape, background = (noise.block_tables(p, area) for p in (scenes.shape_noise, scenes.background))
        dropped = noise.drop_bound(scenes.event_noise)
        self._noise = packed((shape, scenes.shape_noise > 0, dropped, background, scenes.background > 0))
        self._crossings = [crossings_room(slots, f, height) for _ in range(2)]
        self._frames = [packed(room) for room in self._crossings]
        blocks = height * -(-width // step_kernels.TOGETHER)
        lists = (np.empty(count, np.int64) for count in (area, area, area, blocks))
        counted = (height, width) if scenes.exact and scenes.event_noise > 0 else (1, 1)
        rooms = (np.zeros(3, np.int64), *lists, _blank(*counted))
        self._pixels = cpu_kernels.Pixels(packed(_blank(height, width)), _blank(1, 1), *map(packed, rooms))
        self._carried = packed(self._pixels)
        changes = cpu_kernels.Changes(
            _blank(height, width + cpu_kernels.NEAR),
            np.zeros((height, width // cpu_kernels.WORD_BITS + 2), np.uint64),
            np.arange(width * f + 1, dtype=np.int32) // np.int32(f),
            np.zeros(width + 2, np.int32),
            np.empty(area + 1, np.uint64),
            np.empty(area + 1, np.int64),
        )
        listed = noise.GROUP * AT_ONCE + 1
        draws = cpu_kernels.Draws(
            np.empty((4, AT_ONCE), np.uint64),
            np.empty(AT_ONCE, np.uint64),
            np.empty(AT_ONCE + 1, np.uint64),
            np.empty((4, listed), np.uint64),
            np.empty(listed, np.uint64),
            np.empty(listed, np.int64),
            np.empty(area, np.int64),
        )
        covers = (cpu_kernels.Crossings(*crossings_room(change_kernels.LAYER_SLOTS, f, height)) for _ in range(2))
        scratch = cpu_kernels.Scratch(
            np.empty(len(sizes), np.int64),
            np.empty((2 << change_kernels.MOST_SPLIT, f, height + LANES), np.int32),
            np.empty((2 << change_kernels.MOST_SPLIT, f, height + LANES), np.int32),
            next(covers),
            next(covers),
            np.empty((3, 2 * slots[-1] + 2), np.int32),
            cpu_kernels.Sums(*(np.empty(height + LANES, np.int32) for _ in range(6))),
        )
        events = 2 * area + limits.events
        self._room = cpu_kernels.Room(np.empty(events, np.int64), np.empty(events, np.bool_))
        self._rooms = [packed(group) for group in (changes, draws, scratch, self._room)]

    def begin(self, row: int) -> None:
        """Go on with another recording: forget the shapes of the one before; the kernel forgets its integrators."""
        scenes = self._scenes
        self._intensity[:] = scenes.intensity[row][self._actor]
        self._source = (np.uint64(scenes.seed), scenes.indices[row])
        model = (*self._model, int(scenes.present[row].sum()), int(scenes.dark[row]))
        self._scene = packed((self._sensor, self._pieces, model, self._noise, self._source))
        if scenes.shape_noise > 0:
            self._carried = packed(self._pixels._replace(activation=_blank(scenes.height, scenes.width)))
        for _, *rows, _, _ in self._crossings:
            for row_numbers in rows:
                row_numbers[:] = 0

    def run(self, coefficients: Any, steps: NDArray[np.int64], fresh: bool) -> tuple[Any, Any]:
        """Keys and background flags of the events at some steps."""
        keys: list[Any] = []
        background: list[Any] = []
        begin = 0
        while begin < len(steps):  # once, unless there are more events than the room holds
            done, made = kernels("step_kernels").simulate_steps(
                coefficients[begin:], steps[begin:], fresh and begin == 0, self._scene,
                *self._frames, self._carried, *self._rooms,
            )  # fmt: skip
            keys.append(self._room.keys[:made].copy())
            background.append(self._room.background[:made].copy())
            begin += done
            if done % 2:
                self._frames.reverse()
        return (keys[0], background[0]) if len(keys) == 1 else (np.concatenate(keys), np.concatenate(background))

    def run_instants(self, coefficients: Any, instants: exact.Instants, fresh: bool) -> NDArray[np.int64]:
        """What fires between the instants of one recording, as `exact.packed`."""
        own, steps = instants.own[0], instants.steps[0]
        clock = (self._scenes.step_us, instants.us_per_unit, self._scenes.steps * self._scenes.step_us)
        parts, begin, done = [], 0, 0
        while done < len(own):  # again where there are more events than the room holds
            begin, resumed = max(done - 1, 0), done > 0
            done, swaps, made = kernels("exact_kernels").simulate_instants(
                coefficients[begin:], own[begin:], steps[begin:], clock, fresh and not resumed, resumed, self._scene,
                *self._frames, self._carried, *self._rooms,
            )  # fmt: skip
            done += begin
            parts.append(self._room.keys[:made].copy())
            if swaps % 2:
                self._frames.reverse()
        return np.concatenate(parts)

    def run_noise(self, steps: range) -> NDArray[np.int64]:
        """The background noise of some steps in exact timing, likewise."""
        parts, step, (_, draws, _, room) = [], steps.start, self._rooms
        given = (self._scenes.step_us, self._sensor, self._noise, self._source, draws, room)
        while step < steps.stop:
            step, made = kernels("exact_kernels").simulate_noise(step, steps.stop, *given)
            parts.append(self._room.keys[:made].copy())
        return np.concatenate(parts)


class _Camera:
    """Exact timing of one recording after the other, each as a batch of one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._state: _State | None = None

    def begin(self, scenes: Scenes, row: int) -> None:
        """Go on with another recording."""
        self._batch, self._row, self._fresh = scenes, row, True

    def passages(self, scenes: Scenes, instants: exact.Instants) -> list[NDArray[np.int64]]:
        borders = rasterise.borders(scenes, instants.own)
        self._state = self._state or _State(self._batch, borders, self._limits)
        if self._fresh:
            self._state.begin(self._row)
        fresh, self._fresh = self._fresh, False
        return [self._state.run_instants(borders.coefficients[0], instants, fresh)]

    def background(self, _scenes: Scenes, steps: range) -> list[NDArray[np.int64]]:
        assert self._state is not None
        return [self._state.run_noise(steps)]


def slots_of(first: NDArray[np.int32], convex: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(pieces + 1,): where the crossings of each piece lie among those of a sub-row."""
    return np.concatenate([[0], np.cumsum(np.where(convex, 2, np.diff(first) // 2 * 2))])


def crossings_room(slots: NDArray[np.int64], f: int, height: int) -> tuple[NDArray[Any], ...]:
    """Room for the crossings of a frame, as in `Crossings` of the kernels."""
    pieces = len(slots) - 1
    rows = (np.zeros(pieces, np.int64) for _ in range(4))
    columns = (np.zeros(pieces, np.int32) for _ in range(2))
    return np.empty((slots[-1], f, height + LANES), np.int32), *rows, *columns


def _blank(height: int, width: int) -> NDArray[np.int32]:
    """Zeros that, if they are many, cost nothing until they are touched: np.zeros may clear memory that was in use."""
    if height * width < 2**18:
        return np.zeros((height, width), np.int32)
    private = mmap.mmap(-1, 4 * height * width, access=mmap.ACCESS_COPY)  # a forked process has its own
    return np.frombuffer(private, np.int32).reshape(height, width)


def kernels(module: str) -> Any:
    """The kernels of a module that can be called from here, as machine code: loaded or compiled at their first call."""
    with _LOADING:  # by one thread
        return _kernels(module)


@cache
def _kernels(module: str) -> Any:
    entries = import_module(f"gerd.events.{module}").ENTRIES
    return SimpleNamespace(**{entry.__name__: Kernel(entry) for entry in entries})


def are_kept(exact: bool) -> bool:
    """Whether there is machine code for this timing; then it is soon loaded."""
    kernel = kernels("exact_kernels").simulate_instants if exact else kernels("step_kernels").simulate_steps
    return bool(kernel.is_kept())


@cache
def _check(timing: str) -> None:
    """An error unless kernels repeat other modules' constants as they are, and known events of a timing come out."""
    repeated = {
        "MULTIPLIER_A": philox.MULTIPLIERS[0],
        "MULTIPLIER_B": philox.MULTIPLIERS[1],
        "KEY_STEP_A": philox.KEY_STEPS[0],
        "KEY_STEP_B": philox.KEY_STEPS[1],
        **{name: getattr(philox, name) for name in ("ROUNDS", "INITIAL", "SHAPE", "EVENT", "BACKGROUND", "TIME")},
        **{name: getattr(noise, name) for name in ("BLOCK", "GROUP", "ROUND")},
        "LANES": LANES,
    }
    for name, value in repeated.items():
        if int(getattr(cpu_kernels, name)) != value:
            raise AssertionError(f"{name} in cpu_kernels.py is not {value}, as in the module it is repeated from")
    known.check(_run, "the backend cpu", timing)


def numbers_of(scenes: Scenes) -> int:
    """In the outlines of one recording at one step, and a few more, so that it is never 0."""
    return 5 * (rasterise.entry_count(scenes) + 1)

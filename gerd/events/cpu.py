"""The `cpu` backend: scenes in, events out, at a cost that follows the number of events.

Compiles the kernels at first use; `compiled.py` keeps their machine code between runs, and `known.py` has the events
that they must give before they are used.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.events import compiled, known, noise, rasterise
from gerd.events.shared import Events, chunks
from gerd.scene import philox
from gerd.scene.scenes import Scenes

AT_ONCE = 256  # random words drawn in one loop
CHUNK = 1024  # steps whose outlines are worked out together
ROOM = 2**17  # events that are handed over together, at least
CHUNK_VALUES = 2**22  # numbers in the outlines of a chunk, or of the recordings that are worked out together

_LOADING = Lock()


def run(scenes: Scenes, chunk: int | None = None) -> Iterator[Events]:
    """The events of `scenes`, recording by recording, `chunk` steps at a time."""
    return _run(_kernels(), scenes, chunk)


def _run(kernels: Any, scenes: Scenes, chunk: int | None = None) -> Iterator[Events]:
    numbers = _numbers(scenes)
    chunk = chunk or max(1, min(CHUNK, CHUNK_VALUES // numbers))
    first = -scenes.warmup - 1
    whole = max(-first, scenes.steps) <= chunk
    together = max(1, CHUNK_VALUES // (numbers * (scenes.steps - first))) if whole else 1
    state: _State | None = None
    for row in range(len(scenes)):
        if row % together == 0:
            group = scenes[row : row + together]
        for piece in chunks(first, scenes.steps, chunk):
            steps = np.array(piece)
            if row % together == 0:
                group = group.resumed(steps)
                borders = rasterise.borders(group, steps)
            state = state or _State(kernels, scenes, borders)
            if piece.start == first:
                state.begin(row)
            keys, background = state.run(borders.coefficients[row % together], steps, piece.start == first)
            recorded = piece[max(0, -piece.start) :]
            if len(recorded):
                yield Events(row, recorded, keys, background)


class _State:
    """What a recording carries from step to step, and room to work in; used for one recording after the other."""

    def __init__(self, kernels: Any, scenes: Scenes, borders: rasterise.Borders):
        height, width, f = scenes.height, scenes.width, scenes.upsampling
        area = height * width
        sizes = np.where(borders.convex, 2, np.diff(borders.first) // 2 * 2)
        slots = np.concatenate([[0], np.cumsum(sizes)])
        self._kernels, self._scenes, self._actor = kernels, scenes, borders.actor
        self._sensor = (width, height, f)
        self._pieces = kernels.Pieces(borders.first, borders.is_ellipse, borders.convex, slots, None)
        largest = noise.largest_initial(scenes.threshold) if scenes.initial is None else 0
        self._model = (scenes.threshold, scenes.reset_to_zero, scenes.initial or 0, largest)
        shape, background = (noise.block_tables(p, width) for p in (scenes.shape_noise, scenes.background))
        dropped = noise.drop_bound(scenes.event_noise)
        self._noise = (shape, scenes.shape_noise > 0, dropped, background, scenes.background > 0)
        self._frames = [
            kernels.Crossings(
                np.empty((slots[-1], f, height), np.int32),
                *(np.zeros(len(sizes), np.int64) for _ in range(4)),
                *(np.zeros(len(sizes), np.int32) for _ in range(2)),
            )
            for _ in range(2)
        ]
        blocks = height * -(-width // kernels.TOGETHER)
        lists = (np.empty(count, np.int64) for count in (area, area, area, blocks))
        self._pixels = kernels.Pixels(_blank(height, width), None, np.zeros(3, np.int64), *lists)
        changes = kernels.Changes(
            _blank(height, width),
            np.zeros((height, -(-width // kernels.WORD_BITS)), np.uint64),
            np.arange(width * f + 1, dtype=np.int32) // np.int32(f),
        )
        listed = noise.GROUP * AT_ONCE
        draws = kernels.Draws(
            np.empty((4, AT_ONCE), np.uint64),
            np.empty(AT_ONCE, np.uint64),
            np.empty((4, listed), np.uint64),
            *(np.empty(listed, np.int64) for _ in range(4)),
            np.empty(area, np.int64),
        )
        scratch = kernels.Scratch(
            np.empty(len(sizes), np.int64),
            np.empty((2 << kernels.MOST_SPLIT, f, height), np.int32),
            np.empty((2 << kernels.MOST_SPLIT, f, height), np.int32),
            np.empty((3, 2 * slots[-1] + 2), np.int32),
            kernels.Sums(*(np.empty(height, np.int32) for _ in range(4))),
        )
        self._room = kernels.Room(np.empty(2 * area + ROOM, np.int64), np.empty(2 * area + ROOM, np.bool_))
        self._rooms = [_plain(group) for group in (changes, draws, scratch, self._room)]

    def begin(self, row: int) -> None:
        """Go on with another recording: forget the shapes of the one before; the kernel forgets its integrators."""
        scenes = self._scenes
        pieces = self._pieces._replace(intensity=scenes.intensity[row][self._actor])
        source = (np.uint64(scenes.seed), scenes.indices[row])
        self._scene = (self._sensor, tuple(pieces), self._model, self._noise, source)
        seen = (scenes.height, scenes.width) if scenes.shape_noise > 0 else (1, 1)
        self._pixels = self._pixels._replace(activation=_blank(*seen))
        for frame in self._frames:
            for rows in (frame.low, frame.high, frame.whole_low, frame.whole_high):
                rows[:] = 0

    def run(self, coefficients: Any, steps: NDArray[np.int64], fresh: bool) -> tuple[Any, Any]:
        """Keys and background flags of the events at some steps."""
        keys: list[Any] = []
        background: list[Any] = []
        begin = 0
        while begin < len(steps):  # once, unless there are more events than the room holds
            done, made = self._kernels.simulate_steps(
                coefficients[begin:], steps[begin:], fresh and begin == 0, self._scene,
                *map(tuple, self._frames), tuple(self._pixels), *self._rooms,
            )  # fmt: skip
            keys.append(self._room.keys[:made].copy())
            background.append(self._room.background[:made].copy())
            begin += done
            if done % 2:
                self._frames.reverse()
        return (keys[0], background[0]) if len(keys) == 1 else (np.concatenate(keys), np.concatenate(background))


def _plain(group: tuple[Any, ...]) -> tuple[Any, ...]:
    """A named tuple, and those in it, without the names."""
    return tuple(_plain(part) if isinstance(part, tuple) else part for part in group)


def _blank(height: int, width: int) -> NDArray[np.int32]:
    """Zeros that, if they are many, cost nothing until they are touched: np.zeros may clear memory that was in use."""
    if height * width < 2**18:
        return np.zeros((height, width), np.int32)
    private = mmap.mmap(-1, 4 * height * width, access=mmap.ACCESS_COPY)  # a forked process has its own
    return np.frombuffer(private, np.int32).reshape(height, width)


def _kernels() -> Any:
    """The kernels, compiled unless their machine code was kept, and seen to give the right events."""
    with _LOADING:  # by one thread
        return _loaded()


@cache
def _loaded() -> Any:
    from gerd.events import cpu_kernels

    compiled.keep(cpu_kernels.simulate_steps, cpu_kernels)
    repeated = {
        "MULTIPLIER_A": philox.MULTIPLIERS[0],
        "MULTIPLIER_B": philox.MULTIPLIERS[1],
        "KEY_STEP_A": philox.KEY_STEPS[0],
        "KEY_STEP_B": philox.KEY_STEPS[1],
        **{name: getattr(philox, name) for name in ("ROUNDS", "INITIAL", "SHAPE", "EVENT", "BACKGROUND")},
        **{name: getattr(noise, name) for name in ("BLOCK", "GROUP", "ROUND")},
    }
    for name, value in repeated.items():
        if int(getattr(cpu_kernels, name)) != value:
            raise AssertionError(f"{name} in cpu_kernels.py is not {value}, as in the module it is repeated from")
    known.check(lambda scenes: _run(cpu_kernels, scenes), "the backend cpu")
    return cpu_kernels


def _numbers(scenes: Scenes) -> int:
    """In the outlines of one recording at one step, and a few more, so that it is never 0."""
    sides = 1
    for outline, wraps in zip(scenes.outlines, scenes.wraps, strict=True):
        sides += (len(rasterise.COPIES) if wraps else 1) * (1 if outline.is_circle else len(outline.segments))
    return 5 * sides

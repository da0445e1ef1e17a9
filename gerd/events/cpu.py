"""The `cpu` backend: scenes in, events out, at a cost that follows the number of events.

Compiles the kernels at first use and keeps the machine code in the user's cache folder, under a name made from the
source, its place and numba's version, so that an edited kernel is never mistaken for the compiled one.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
from collections.abc import Iterator
from functools import cache
from multiprocessing import parent_process
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.events import noise, rasterise
from gerd.events.parts import Events, chunks
from gerd.scene import philox
from gerd.scene.scenes import BLOCK, Scenes

AT_ONCE = 256  # random words drawn in one loop
CHUNK = 1024  # steps whose outlines are worked out together
ROOM = 2**17  # events that are handed over together, at least
CHUNK_VALUES = 2**22  # numbers in the outlines of a chunk, or of the recordings that are worked out together

_LOADING = Lock()


def run(scenes: Scenes, chunk: int | None = None) -> Iterator[Events]:
    """The events of `scenes`, recording by recording, `chunk` steps at a time."""
    kernels = _kernels()
    numbers = _numbers(scenes)
    chunk = chunk or max(1, min(CHUNK, CHUNK_VALUES // numbers))
    tables = [noise.block_tables(p, scenes.width) for p in (scenes.shape_noise, scenes.background)]
    model = (
        scenes.threshold,
        scenes.reset_to_zero,
        scenes.initial or 0,
        noise.largest_initial(scenes.threshold) if scenes.initial is None else 0,
    )
    noises = (
        tables[0],
        scenes.shape_noise > 0,
        noise.drop_bound(scenes.event_noise),
        tables[1],
        scenes.background > 0,
    )
    geometry = (scenes.width, scenes.height, scenes.upsampling)
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
            state = state or _State(scenes, borders, kernels.TOGETHER)
            if piece.start == first:
                state.begin()
            keys: list[Any] = []
            background: list[Any] = []
            begin = 0
            while begin < len(steps):  # once, unless there are more events than `room` holds
                done, made = kernels.simulate_steps(
                    borders.coefficients[row % together][begin:],
                    steps[begin:],
                    piece[begin] == first,
                    state.pieces,
                    scenes.intensity[row][borders.actor],
                    geometry,
                    model,
                    noises,
                    (np.uint64(scenes.seed), scenes.indices[row]),
                    state.carried(),
                    state.scratch,
                    state.room,
                )
                keys.append(state.room[0][:made].copy())
                background.append(state.room[1][:made].copy())
                begin += done
                if done % 2:
                    state.frames.reverse()
            recorded = piece[max(0, -piece.start) :]
            if len(recorded):
                yield Events(row, recorded, _joined(keys), _joined(background))


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _State:
    """What a recording carries from step to step, and room to work in; used for one recording after the other."""

    def __init__(self, scenes: Scenes, borders: rasterise.Borders, together: int):
        height, width, f = scenes.height, scenes.width, scenes.upsampling
        sizes = np.where(borders.convex, 2, np.diff(borders.first) // 2 * 2)
        slots = np.concatenate([[0], np.cumsum(sizes)])
        self.pieces = (borders.first, borders.is_ellipse, borders.convex, slots)
        self.frames = [
            (
                np.empty((slots[-1], f, height), np.int32),  # cols
                *(np.zeros(len(sizes), np.int64) for _ in range(4)),  # low, high, whole_low, whole_high
                *(np.zeros(len(sizes), np.int32) for _ in range(2)),  # left, right
            )
            for _ in range(2)
        ]
        self._drawn = (height, width) if scenes.shape_noise > 0 else (1, 1)  # size of `activation`
        self._carried = (
            _blank(height, width),  # v
            np.empty(height * -(-width // together), np.int64),  # first pixels of the blocks of v that are begun
            np.zeros(3, np.int64),  # how many pending, how many hidden, how many begun
            _blank(height, width),  # change
            np.zeros((height, -(-width // 64)), np.uint64),  # touched
        )
        room = 2 * height * width + ROOM
        self.room = (np.empty(room, np.int64), np.empty(room, np.bool_))  # for events
        self.scratch = (
            np.empty((2, height * width), np.int64),  # hidden pixels and their activations
            np.empty(height * width, np.int64),  # pixels that still hold more than a threshold
            (  # of a scattered noise
                np.empty((5, AT_ONCE), np.uint64),  # four words for each group of blocks, and the largest of them
                np.empty((4, 4 * AT_ONCE), np.uint64),  # four words for each block in which something is picked
                np.empty((4, 4 * AT_ONCE), np.int64),  # which block it is, the word for its count, first pixel, size
            ),
            np.empty(height * width, np.int64),  # picked by it
            np.arange(width * f + 1, dtype=np.int32) // np.int32(f),  # pixel of a column
            np.empty(len(sizes), np.int64),  # nearer pieces
            np.empty((16, f, height), np.int32),  # crossings of what is seen of a piece, before
            np.empty((16, f, height), np.int32),  # and after
            np.empty((3, 2 * slots[-1] + 2), np.int32),  # crossings in a sub-row
            *(np.empty(height, np.int32) for _ in range(4)),  # sums, more, least, most
        )

    def begin(self) -> None:
        """Forget the shapes of the recording before; the kernel forgets its integrators."""
        self._activation = _blank(*self._drawn)
        for frame in self.frames:
            for bounds in frame[1:5]:
                bounds[:] = 0

    def carried(self) -> tuple[Any, ...]:
        return (*self.frames, self._activation, *self._carried)


def _blank(height: int, width: int) -> NDArray[np.int32]:
    """Zeros that, if they are many, cost nothing until they are touched: np.zeros may clear memory that was in use."""
    if height * width < 2**18:
        return np.zeros((height, width), np.int32)
    private = mmap.mmap(-1, 4 * height * width, access=mmap.ACCESS_COPY)  # a forked process has its own
    return np.frombuffer(private, np.int32).reshape(height, width)


def _kernels() -> Any:
    """The kernels, compiled at their first call unless the cache holds them."""
    with _LOADING:  # by one thread: it changes a setting of numba's for a moment
        return _loaded()


@cache
def _loaded() -> Any:
    import numba

    settings: Any = numba.config
    source = Path(__file__).with_name("cpu_kernels.py")
    # Numba itself asks for its version and for the place of the source, so that nothing else is ever found there.
    key = hashlib.sha256(f"{numba.__version__} {source.resolve()} ".encode() + source.read_bytes()).hexdigest()
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "gerd"
    folder = Path(settings.CACHE_DIR or default) / f"numba-{key[:16]}"
    kept = settings.CACHE_DIR
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if sys.stderr.isatty() and parent_process() is None and not any(folder.rglob("*.nbi")):
        print("compiling the kernels, once for each installation: about 15 seconds", file=sys.stderr, flush=True)
    try:
        settings.CACHE_DIR = str(folder) if writable else kept
        from gerd.events import cpu_kernels

        if writable:
            cpu_kernels.simulate_steps.enable_caching()
    finally:
        settings.CACHE_DIR = kept
    same = (
        (int(cpu_kernels.MULTIPLIER_A), int(cpu_kernels.MULTIPLIER_B)) == philox.MULTIPLIERS
        and (int(cpu_kernels.KEY_STEP_A), int(cpu_kernels.KEY_STEP_B)) == philox.KEY_STEPS
        and cpu_kernels.ROUNDS == philox.ROUNDS
        and [int(cpu_kernels.INITIAL), int(cpu_kernels.SHAPE)] == [philox.INITIAL, philox.SHAPE]
        and [int(cpu_kernels.EVENT), int(cpu_kernels.BACKGROUND)] == [philox.EVENT, philox.BACKGROUND]
        and cpu_kernels.BLOCK == BLOCK
    )
    if not same:
        raise AssertionError("cpu_kernels.py repeats constants of other modules, and they no longer agree")
    return cpu_kernels


def _numbers(scenes: Scenes) -> int:
    """In the outlines of one recording at one step, and a few more, so that it is never 0."""
    sides = 1
    for outline, wraps in zip(scenes.outlines, scenes.wraps, strict=True):
        sides += (len(rasterise.COPIES) if wraps else 1) * (1 if outline.is_circle else len(outline.segments))
    return 5 * sides

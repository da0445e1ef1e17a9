"""The `cpu` backend: scenes in, events out, at a cost that follows the number of events.

Compiles the kernels at first use and keeps the machine code in the user's cache folder, under a name made from the
source, so that an edited kernel is never mistaken for the compiled one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gerd import noise, philox, rasterise
from gerd.kernels.events import Events, chunks
from gerd.scene import BLOCK, Scenes

CHUNK = 1024  # steps whose outlines are worked out together
CHUNK_VALUES = 2**22  # numbers in the outlines of a chunk


def run(scenes: Scenes, chunk: int | None = None) -> Iterator[Events]:
    """The events of `scenes`, recording by recording, `chunk` steps at a time."""
    kernels = _kernels()
    chunk = chunk or _chunk(scenes)
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
    common = rasterise.borders(scenes, np.arange(first, scenes.steps)) if whole else None
    for row in range(len(scenes)):
        alone = scenes[row : row + 1]
        state = None
        for piece in chunks(first, scenes.steps, chunk):
            steps = np.array(piece)
            alone = alone if whole else alone.resumed(steps)
            borders = common or rasterise.borders(alone, steps)
            pieces = (borders.first, borders.is_ellipse, borders.crossings)
            state = state or _State(scenes, borders)
            keys, background = kernels.simulate_steps(
                borders.coefficients[row if common else 0],
                steps,
                piece.start == first,
                pieces,
                scenes.intensity[row][borders.actor],
                geometry,
                model,
                noises,
                (np.uint64(scenes.seed), scenes.indices[row]),
                state.arrays(),
                state.scratch,
            )
            if len(steps) % 2:
                state.frames.reverse()
            recorded = piece[max(0, -piece.start) :]
            if len(recorded):
                yield Events(row, recorded, keys, background)


class _State:
    """What one recording carries from step to step. Fresh pages cost nothing until they are touched."""

    def __init__(self, scenes: Scenes, borders: rasterise.Borders):
        height, width, f = scenes.height, scenes.width, scenes.upsampling
        pieces, slots, rows = len(borders.actor), int(borders.crossings[-1]), height * f
        self.frames = [
            (
                np.empty((rows, slots), np.int32),  # cols
                np.zeros((pieces, rows), np.int32),  # count
                np.zeros(rows, np.int32),  # total
                np.zeros(rows, np.int32),  # only
                np.zeros(pieces, np.int64),  # low
                np.zeros(pieces, np.int64),  # high
            )
            for _ in range(2)
        ]
        self._rest = (
            np.zeros((height, width), np.int32),  # v
            np.zeros((height, width) if scenes.shape_noise > 0 else (1, 1), np.int32),  # activation
            np.zeros((height, width), np.int32),  # change
            np.zeros((height, -(-width // 64)), np.uint64),  # touched
            np.empty((2, height * width), np.int64),  # hidden pixels and their activations
            np.empty(height * width, np.int64),  # pixels that still hold more than a threshold
            np.zeros(2, np.int64),  # how many pending, how many hidden
            np.empty(height * width, np.int64),  # picked by a scattered noise
            np.arange(width * f + 1, dtype=np.int32) // np.int32(f),  # pixel of a column
        )
        room = 2 * (slots + pieces) + 32
        self.scratch = (
            *(np.empty(room, np.int64) for _ in range(6)),  # begins, ends, amounts, active, lefts, rights
            np.empty((4, 8), np.int64),  # spans
            np.empty((4, 16), np.int64),  # seen
        )

    def arrays(self) -> tuple[Any, ...]:
        return (*self.frames, *self._rest)


@cache
def _kernels() -> Any:
    """The kernels, compiled at their first call unless the cache holds them."""
    import numba

    settings: Any = numba.config
    source = Path(__file__).with_name("numba_kernels.py").read_bytes()
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "gerd"
    folder = Path(settings.CACHE_DIR or default) / f"numba-{hashlib.sha256(source).hexdigest()[:16]}"
    kept = settings.CACHE_DIR
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    try:
        settings.CACHE_DIR = str(folder) if writable else kept
        from gerd.kernels import numba_kernels

        if writable:
            numba_kernels.simulate_steps.enable_caching()
    finally:
        settings.CACHE_DIR = kept
    same = (
        (int(numba_kernels.MULTIPLIER_A), int(numba_kernels.MULTIPLIER_B)) == philox.MULTIPLIERS
        and (int(numba_kernels.KEY_STEP_A), int(numba_kernels.KEY_STEP_B)) == philox.KEY_STEPS
        and numba_kernels.ROUNDS == philox.ROUNDS
        and (numba_kernels.INITIAL, numba_kernels.SHAPE) == (philox.INITIAL, philox.SHAPE)
        and (numba_kernels.EVENT, numba_kernels.BACKGROUND) == (philox.EVENT, philox.BACKGROUND)
        and numba_kernels.BLOCK == BLOCK
    )
    if not same:
        raise AssertionError("numba_kernels.py repeats constants of other modules, and they no longer agree")
    return numba_kernels


def _chunk(scenes: Scenes) -> int:
    sides = sum((1 if outline.is_circle else len(outline.segments)) for outline in scenes.outlines) + 1
    return max(1, min(CHUNK, CHUNK_VALUES // (5 * sides)))

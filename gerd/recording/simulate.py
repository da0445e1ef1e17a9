"""Config and index to recording: the one entry to the simulator, whatever backend does the work."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import LARGEST_KEY, Config
from gerd.config.sweep import with_values
from gerd.events.backends import run
from gerd.events.keys import Keys
from gerd.events.shared import Events
from gerd.recording.recording import Recording
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]

CHUNK = 256  # steps of a window, by default
MOST_STEPS = 2**32 - 1  # the random counter has 32 bits for the step


def simulate(
    config: Config,
    index: int = 0,
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int | None = None,
    **values: Any,
) -> Recording:
    """Recording number `index` of `config`.

    `values` are fields to set, by path: the swept values of one member, say. The draws do not depend on them.
    `device` is where to compute, `chunk` how many steps at a time; neither shows in the result.
    """
    return simulate_batch(config, [index], device=device, backend=backend, chunk=chunk, values=values)[0]


def simulate_batch(
    config: Config,
    indices: Sequence[int],
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int | None = None,
    values: Mapping[str, Any] | None = None,
) -> list[Recording]:
    """Several recordings at once, each with the same bits as alone."""
    if len(indices) == 0:
        return []
    config = with_values(config, values or {}, "values")
    scenes = draw(config, indices)
    parts: list[list[Events]] = [[] for _ in indices]
    for part in run(scenes, device=device, backend=backend, chunk=chunk):
        parts[part.row].append(part)
    truth = scenes.truth(np.arange(scenes.steps))
    return [_recording(config, int(index), scenes, parts[i], truth[i]) for i, index in enumerate(indices)]


def simulate_chunks(
    config: Config,
    index: int = 0,
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int = CHUNK,
    endless: bool = False,
    **values: Any,
) -> Iterator[Recording]:
    """The recording of `simulate`, window by window of `chunk` steps, in memory that does not grow with its length.

    The windows follow each other without a gap, and have the bits of the whole. An endless recording goes on beyond
    its configured steps, up to step 2³² - 1, or in exact timing to the last whose events have keys of 62 bits.
    """
    config = with_values(config, values, "values")
    scenes = draw(config, [index])
    if endless:
        codec = Keys.of(scenes)
        scenes = replace(scenes, steps=min(MOST_STEPS, LARGEST_KEY // codec.per_step), path_end=sys.maxsize)
    return _windows(config, index, scenes, run(scenes, device=device, backend=backend, chunk=chunk))


def _windows(config: Config, index: int, scenes: Scenes, parts: Iterator[Events]) -> Iterator[Recording]:
    for part in parts:
        steps = np.arange(part.steps.start, part.steps.stop)
        scenes = scenes.resumed(steps)
        yield _recording(config, index, scenes, [part], scenes.truth(steps)[0])


def _recording(config: Config, index: int, scenes: Scenes, parts: list[Events], truth: Array) -> Recording:
    """From the events of consecutive steps, and the ground truth (steps, actors, 3, 6) at these steps."""
    first = parts[0].steps.start
    keys = np.concatenate([part.keys for part in parts]) if len(parts) > 1 else parts[0].keys
    keys = Keys.of(scenes).moved(keys, -first)
    background = np.concatenate([part.background for part in parts])
    return Recording.of(config, index, truth, keys, background, first=first)

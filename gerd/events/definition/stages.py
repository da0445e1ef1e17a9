"""What a recording goes through, stage by stage: a scene in, arrays for some of its steps out.

The arrays are those of the definition, `definition/walk.py`, and all of them are exact: counts are integers,
`full` of them being a pixel that an actor of intensity 1 covers. With θ = `thresholds`, for consecutive steps:

    picture ──sum over the pixel──▶ coverage ──shape noise──▶ seen ──response, minus the step before──▶ difference
            ──added to what the reset left──▶ integrator ──beyond ±θ──▶ fired ──event noise──▶ kept
            ──background noise, and what surrounds the pixels──▶ events

In exact timing all this happens from instant to instant. The stages are then those of the moment at which a step ends:
`difference` since the end of the step before, `integrator` after its resets, and the events of the step as frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.events.definition import walk
from gerd.events.definition.picture import activation, visible
from gerd.events.keys import Keys, add_events
from gerd.events.pixel.surroundings import has_surroundings, surrounded
from gerd.events.pixel.thresholds import Thresholds
from gerd.events.shared import Chunk
from gerd.scene.scenes import Scenes

Counts = NDArray[np.int32]
Mask = NDArray[np.bool_]

MOST_SUB_PIXELS = 2**30  # of a picture


@dataclass(frozen=True, eq=False)
class Stages:
    """Some consecutive steps of one recording. Masks have the axes of `Recording.frames()`: channel 0 OFF, 1 ON."""

    scene: Scenes
    steps: NDArray[np.int64]  # their numbers
    coverage: Counts  # (steps, height, width): sub-pixels times intensity
    seen: Counts  # the same after shape noise
    difference: Counts  # the response to what is seen now, minus that of one step ago, and what has leaked in since
    integrator: Counts  # after the difference was added and before an event resets it
    fired: Mask  # (steps, 2, height, width)
    kept: Mask  # after event noise
    events: Mask  # with background noise, and what else the camera adds and loses

    @property
    def full(self) -> int:
        """The count of a pixel that an actor of intensity 1 covers."""
        return self.scene.full_count

    @property
    def thresholds(self) -> Counts:
        """(2, height, width): the threshold of each pixel for OFF and for ON events."""
        tables = Thresholds.of(self.scene)
        return np.stack([np.broadcast_to(table, self.seen.shape[1:]) for table in (tables.off, tables.on)])

    @cached_property
    def picture(self) -> Counts:
        """(steps, height · upsampling, width · upsampling): what is visible in each sub-pixel, 1024 for intensity 1."""
        ends, jumps = visible(self.scene, self.steps, "cpu")
        columns = self.scene.width * self.scene.upsampling
        numbers = len(self.steps) * self.scene.height * self.scene.upsampling * columns
        if numbers > MOST_SUB_PIXELS:
            got = f"the picture of {len(self.steps)} steps has {numbers} sub-pixels"
            how = "with fewer steps, a smaller frame or a smaller upsampling"
            raise GerdError(f"{got}; allowed: up to {MOST_SUB_PIXELS}, {how}")
        rises = torch.zeros((*ends.shape[1:3], columns + 1), dtype=torch.int32)
        return rises.scatter_add_(2, ends[0].long(), jumps[0]).cumsum(2, dtype=torch.int32)[..., :columns].numpy()


def stages_of(scene: Scenes, start: int, stop: int) -> Stages:
    """The stages of a batch of one at the steps from `start` up to `stop`; all before them are worked out, too."""
    if scene.exact:
        return _exact_stages(scene, np.arange(start, stop))
    steps = np.arange(start, stop)
    short = replace(scene, steps=max(1, stop))
    parts: dict[str, list[Any]] = {name: [] for name in walk.Worked._fields[1:-1]}
    for done in walk.stages(short):
        low, high = np.clip([start, stop], done.steps[0], done.steps[-1] + 1) - done.steps[0]
        for name, arrays in parts.items():
            arrays.append(getattr(done, name)[0, low:high].numpy())
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    if has_surroundings(scene.pixel):
        joined["events"] = _frames(short, surrounded(short, walk.run(short)), steps)
    return Stages(scene, steps, **joined)


def _exact_stages(scene: Scenes, steps: NDArray[np.int64]) -> Stages:
    shown = np.arange(steps[0] - 1, steps[-1] + 1) if len(steps) else np.array([-1])
    coverage = activation(scene, shown)
    seen = walk.what_is_seen(scene, coverage, shown)[0].numpy()
    short = replace(scene, steps=int(shown[-1]) + 1 or 1)
    without_background = _with(short, background=0.0)
    without_noise = _with(without_background, event_noise=0.0)
    fired, kept = (_frames(each, walk.run(each), steps) for each in (without_noise, without_background))
    events = _frames(short, surrounded(short, walk.run(short)), steps)
    integrator = walk.states_at(short, shown[1:], seen[1:])
    on = torch.tensor(Thresholds.of(scene).on)[None]
    leaked = walk.leak(scene, on, torch.from_numpy(shown * scene.step_us))
    differences = (walk.responded(scene, torch.from_numpy(seen)) + leaked).diff(dim=0).numpy()
    return Stages(scene, steps, coverage[0, 1:].numpy(), seen[1:], differences, integrator, fired, kept, events)


def _with(scene: Scenes, **noise: Any) -> Scenes:
    return replace(scene, pixel=replace(scene.pixel, **noise))


def _frames(scene: Scenes, chunks: Iterator[Chunk], steps: NDArray[np.int64]) -> Mask:
    """(steps, 2, height, width): where there are events in the chunks."""
    result = np.zeros((len(steps), 2, scene.height, scene.width), np.bool_)
    codec = Keys.of(scene)
    for part in chunks if len(steps) else ():
        low, high = codec.bounds(part.keys, [steps[0], steps[-1] + 1])
        add_events(result.reshape(-1), codec.places(codec.moved(part.keys[low:high], -int(steps[0]))))
    return result

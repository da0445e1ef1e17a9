"""What a recording goes through, stage by stage: a scene in, arrays for some of its steps out.

The arrays are those of the definition, `events/definition.py`, and all of them are exact: counts are integers,
`full` of them being a pixel that an actor of intensity 1 covers. With θ = `threshold`, for consecutive steps:

    picture ──sum over the pixel──▶ coverage ──shape noise──▶ seen ──minus the step before──▶ difference
            ──added to what the reset left──▶ integrator ──beyond ±θ──▶ fired ──event noise──▶ kept
            ──background noise──▶ events
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.events.parts import Steps
from gerd.scene.scenes import Scenes

Counts = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stages:
    """Some consecutive steps of one recording. Masks have the axes of `Recording.frames()`: channel 0 OFF, 1 ON."""

    scene: Scenes
    steps: NDArray[np.int64]  # their numbers
    coverage: Counts  # (steps, height, width): sub-pixels times intensity
    seen: Counts  # the same after shape noise
    difference: Counts  # seen now minus seen one step ago
    integrator: Counts  # after the difference was added and before an event resets it
    fired: Mask  # (steps, 2, height, width)
    kept: Mask  # after event noise
    events: Mask  # after background noise

    @property
    def full(self) -> int:
        """The count of a pixel that an actor of intensity 1 covers."""
        return self.scene.full_count

    @property
    def threshold(self) -> int:
        """The integrator's threshold, as a count."""
        return self.scene.threshold

    @cached_property
    def picture(self) -> Counts:
        """(steps, height · upsampling, width · upsampling): what is visible in each sub-pixel, 1024 for intensity 1."""
        import torch

        from gerd.events import definition

        ends, jumps = definition.visible(self.scene, self.steps, "cpu")
        columns = self.scene.width * self.scene.upsampling
        rises = torch.zeros((*ends.shape[1:3], columns + 1), dtype=torch.int32)
        return rises.scatter_add_(2, ends[0].long(), jumps[0]).cumsum(2, dtype=torch.int32)[..., :columns].numpy()


def stages_of(scene: Scenes, start: int, stop: int) -> Stages:
    """The stages of a batch of one at the steps from `start` up to `stop`; all before them are worked out, too."""
    from gerd.events import definition

    parts: list[list[Any]] = [[] for _ in Steps._fields[1:]]
    for done in definition.stages(replace(scene, steps=max(1, stop))):
        low, high = np.clip([start, stop], done.numbers[0], done.numbers[-1] + 1) - done.numbers[0]
        for part, tensor in zip(parts, done[1:], strict=True):
            part.append(tensor[0, low:high].numpy())
    coverage, seen, difference, integrator, *masks = map(np.concatenate, parts)
    fired, kept, events = (np.moveaxis(mask, -1, 1) for mask in masks)
    return Stages(scene, np.arange(start, stop), coverage, seen, difference, integrator, fired, kept, events)

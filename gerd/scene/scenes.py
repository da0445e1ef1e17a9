"""A scene: numbers only, everything a recording is made of. The stages after the draw see this and no config."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gerd.geometry.shapes import Outline
from gerd.geometry.trajectory import Trajectory

INTENSITY_ONE = 1024  # an intensity of 1, in the integers that the kernels add up


@dataclass(frozen=True)
class Scenes:
    """A batch of draws of one config. Arrays have the recordings first; the rest is common to all of them."""

    seed: int
    indices: NDArray[np.int64]  # (recordings,)
    width: int  # pixels
    height: int
    steps: int
    step_us: int
    exact: bool  # whether events have times inside their step
    warmup: int  # steps; in exact timing units of own time
    upsampling: int
    threshold: int  # in units of sub-pixels · INTENSITY_ONE
    reset_to_zero: bool
    initial: int | str  # integrator state in the threshold's unit; "uniform" or "stationary": drawn, see `noise.py`
    background: float  # probabilities
    shape_noise: float
    event_noise: float
    outlines: tuple[Outline, ...]  # one per actor, from the farthest to the nearest
    wraps: tuple[bool, ...]  # whether the actor is drawn on a torus
    intensity: NDArray[np.int32]  # (recordings, actors) in units of 1 / INTENSITY_ONE
    trajectory: Trajectory  # leading axes (recordings, actors)
    path_end: int = sys.maxsize  # own time up to which exact timing records events

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Scenes:
        """A smaller batch."""
        return replace(
            self, indices=self.indices[rows], intensity=self.intensity[rows], trajectory=self.trajectory[rows]
        )

    def resumed(self, steps: NDArray[np.int64]) -> Scenes:
        """The same scenes, their motion carried on to `steps`: each chunk of a long recording goes on from the last."""
        return replace(self, trajectory=self.trajectory.resumed(int(steps[0]), int(steps[-1])))

    def in_own_time(self) -> Scenes:
        """The same scenes, whose motion is asked for its own time instead of steps."""
        return replace(self, trajectory=self.trajectory.in_own_time())

    @property
    def ticks(self) -> int:
        """How many different times a step's events can have."""
        return self.step_us if self.exact else 1

    @property
    def dark(self) -> NDArray[np.int64]:
        """(recordings,): how many actors are darker than the background."""
        return (self.intensity < 0).sum(axis=1)

    @property
    def full_count(self) -> int:
        """The activation of a pixel that an actor of intensity 1 covers."""
        return self.upsampling * self.upsampling * INTENSITY_ONE

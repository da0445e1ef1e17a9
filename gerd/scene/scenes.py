"""A scene: numbers only, everything that events are made of. Backends see nothing else."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.shapes import Outline
from gerd.geometry.trajectory import Trajectory
from gerd.plan.plan import INTENSITY_ONE, Pixel

ABSENT = -1


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
    pixel: Pixel
    shapes: tuple[tuple[Outline, ...], ...]  # those that each actor can have, from the farthest to the nearest actor
    chosen: NDArray[np.int64]  # (recordings, actors): which of them it has; ABSENT: the actor is not in the recording
    wraps: tuple[bool, ...]  # whether the actor is drawn on a torus
    intensity: NDArray[np.int32]  # (recordings, actors) in units of 1 / INTENSITY_ONE
    trajectory: Trajectory  # leading axes (recordings, actors)
    path_end: int = sys.maxsize  # own time up to which exact timing records events

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: slice) -> Scenes:
        """The scenes of some rows, as a smaller batch."""
        return replace(
            self,
            indices=self.indices[rows],
            chosen=self.chosen[rows],
            intensity=self.intensity[rows],
            trajectory=self.trajectory[rows],
        )

    def outlines(self, row: int = 0) -> list[Outline | None]:
        """The outline of each actor of a recording, none where it is absent."""
        return [
            None if which == ABSENT else shapes[which]
            for shapes, which in zip(self.shapes, self.chosen[row], strict=True)
        ]

    def truth(self, steps: ArrayLike) -> NDArray[np.float64]:
        """(recordings, steps, actors, 3, 6): parameters, velocities, accelerations; NaN for an actor that is absent."""
        result = self.trajectory.parameters(steps)
        result[~self.present] = np.nan
        return result.swapaxes(1, 2)

    def at_rest(self) -> Scenes:
        """These scenes without their motion: all actors rest at the origin."""
        return replace(self, trajectory=Trajectory.at_rest(np.zeros((*self.chosen.shape, PARAMETER_COUNT))))

    def resumed(self, steps: NDArray[np.int64]) -> Scenes:
        """These scenes, whose motion is carried on to `steps`: each chunk of a long recording goes on from the last."""
        return replace(self, trajectory=self.trajectory.resumed(int(steps[0]), int(steps[-1])))

    def in_own_time(self) -> Scenes:
        """These scenes with times in units of the motion's own time instead of steps."""
        return replace(self, trajectory=self.trajectory.in_own_time())

    @property
    def ticks(self) -> int:
        """How many different times a step's events can have."""
        return self.step_us if self.exact else 1

    @property
    def first_step(self) -> int:
        """The first step that has events: in exact timing those of step i lie between the steps i - 1 and i."""
        return 1 if self.exact else 0

    def camera(self, row: int) -> int:
        """The number of the camera that a recording is taken with."""
        return int(self.indices[row]) if self.pixel.camera is None else self.pixel.camera

    @property
    def rest(self) -> int:
        """How long a pixel whose integrator goes on has no second event: in steps, or in microseconds in exact timing.

        0 if it never has to wait.
        """
        us = 0 if self.pixel.drops_refractory else math.ceil(self.pixel.refractory_us)
        steps = -(-us // self.step_us)
        return us if self.exact else steps * (steps > 1)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(recordings, actors): whether the actor is in the recording."""
        return self.chosen != ABSENT

    @property
    def reach(self) -> NDArray[np.float64]:
        """(recordings, actors): how far each outline goes from its origin in the unit frame, 0 if it is absent."""
        columns = ([*(outline.reach for outline in shapes), 0.0] for shapes in self.shapes)
        reached = [np.array(column)[self.chosen[:, i]] for i, column in enumerate(columns)]
        return np.stack(reached, axis=1) if reached else np.zeros((len(self), 0))

    @property
    def dark(self) -> NDArray[np.int64]:
        """(recordings,): how many of the actors that are there are darker than the background."""
        return ((self.intensity < 0) & self.present).sum(axis=1)

    @property
    def full_count(self) -> int:
        """The activation of a pixel that an actor of intensity 1 covers."""
        return self.upsampling * self.upsampling * INTENSITY_ONE

"""Config and indices to scenes: every random choice of a scene's content is made here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.config.actor import BRIGHTEST, DIMMEST
from gerd.config.config import Config
from gerd.config.sweep import KEPT_MEMBERS, config_of, relatives
from gerd.errors import GerdError, shorten
from gerd.geometry import shapes
from gerd.geometry.trajectory import PARAMETER_COUNT, Trajectory
from gerd.scene.motion import motion
from gerd.scene.sampling import INTENSITY, Source
from gerd.scene.scenes import INTENSITY_ONE, Scenes
from gerd.scene.transformation import configured


def draw(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The scenes of some indices of a member, in one batch. Members of a family that differ in size share positions."""
    config = config_of(config)
    resting = appearance(config, indices)
    sources = [Source(config.seed, resting.indices, i) for i in range(len(config.actors))]
    family = relatives(config.family)
    motions = [motion(config, source, resting.outlines[source.actor], family) for source in sources]
    scenes = replace(resting, trajectory=Trajectory.joined(motions, len(resting), config.rate))
    if config.transform:
        scenes = configured(config)(scenes)
    return scenes.resumed(np.array([-scenes.warmup - 1, scenes.steps - 1]))


def appearance(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The same scenes without their motion: all actors rest at the origin. Runs no code that the config names."""
    for index in indices:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < 2**32:
            raise GerdError(f"index {shorten(index)}: allowed: a whole number from 0 to {2**32 - 1}")
    config = config.in_steps
    rows = np.asarray(indices, np.int64)
    sources = [Source(config.seed, rows, i) for i in range(len(config.actors))]
    intensity = np.zeros((len(rows), len(sources)))
    for i, source in enumerate(sources):
        intensity[:, i] = source.sample(config.actors[i].intensity, INTENSITY)
    full = config.upsampling * config.upsampling * INTENSITY_ONE
    threshold = max(1, round(config.integrator.threshold * full))
    initial = config.initial
    return Scenes(
        seed=config.seed,
        indices=rows,
        width=config.sensor.width,
        height=config.sensor.height,
        steps=config.steps,
        step_us=config.step_us,
        exact=config.timing == "exact",
        warmup=config.integrator.warmup,
        upsampling=config.upsampling,
        threshold=threshold,
        reset_to_zero=config.integrator.reset == "zero",
        initial=initial if isinstance(initial, str) else round(initial * threshold),
        background=config.noise.background,
        shape_noise=config.noise.shape,
        event_noise=config.noise.event,
        outlines=_outlines(config),
        wraps=tuple(actor.translation.border == "wrap" for actor in config.actors),
        intensity=np.rint(np.clip(intensity, DIMMEST, BRIGHTEST) * INTENSITY_ONE).astype(np.int32),
        trajectory=Trajectory.at_rest(np.zeros((len(rows), len(sources), PARAMETER_COUNT))),
        path_end=sys.maxsize if config.origin.path is None else config.origin.path.steps - 1,
    )


@lru_cache(maxsize=KEPT_MEMBERS)
def _outlines(config: Config) -> tuple[shapes.Outline, ...]:
    return tuple(shapes.outline(actor.rings) for actor in config.actors)

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
from gerd.errors import check_whole
from gerd.geometry import shapes
from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.trajectory import Trajectory
from gerd.scene.motion import motion
from gerd.scene.sampling import INTENSITY, LOOKS, Source
from gerd.scene.scenes import ABSENT, INTENSITY_ONE, Scenes
from gerd.scene.transformation import configured

MOST_INDICES = 2**32  # the random counter has 32 bits for the index


def draw(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The scenes of some indices of a member, in one batch. Members of a family that differ in size share positions."""
    config = config_of(config)
    resting = appearance(config, indices)
    sources = [Source(config.seed, resting.indices, *place) for place in config.cast]
    family = relatives(config.family)
    motions = [motion(config, *each, family) for each in zip(sources, resting.shapes, strict=True)]
    scenes = replace(resting, trajectory=Trajectory.joined(motions, len(resting), config.rate))
    if config.transform:
        scenes = configured(config)(scenes)
    return scenes.resumed(np.array([-scenes.warmup - 1, scenes.steps - 1]))


def appearance(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The same scenes without their motion: all actors rest at the origin. Runs no code that the config names."""
    for index in indices:
        check_whole("index", index, 0, MOST_INDICES - 1)
    config = config.in_steps
    rows = np.asarray(indices, np.int64)
    actors = [config.actors[entry] for entry, _ in config.cast]
    intensity, chosen = np.zeros((len(rows), len(actors))), np.zeros((len(rows), len(actors)), np.int64)
    for i, (actor, place) in enumerate(zip(actors, config.cast, strict=True)):
        source = Source(config.seed, rows, *place)
        intensity[:, i] = source.sample(actor.intensity, LOOKS, INTENSITY)
        chosen[:, i] = np.where(source.is_there(actor.repeat), source.shape(len(actor.shapes)), ABSENT)
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
        shapes=tuple(_outlines(config)[entry] for entry, _ in config.cast),
        chosen=chosen,
        wraps=tuple(actor.translation.border == "wrap" for actor in actors),
        intensity=np.rint(np.clip(intensity, DIMMEST, BRIGHTEST) * INTENSITY_ONE).astype(np.int32),
        trajectory=Trajectory.at_rest(np.zeros((len(rows), len(actors), PARAMETER_COUNT))),
        path_end=sys.maxsize if config.origin.path is None else config.origin.path.steps - 1,
    )


@lru_cache(maxsize=KEPT_MEMBERS)
def _outlines(config: Config) -> tuple[tuple[shapes.Outline, ...], ...]:
    """Of the shapes that each entry of `actors` can have."""
    return tuple(tuple(shapes.outline(shape) for shape in actor.rings) for actor in config.actors)

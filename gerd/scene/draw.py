"""Config and indices to scenes: every random choice of a scene's content is made here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.config.actor import BRIGHTEST, DIMMEST, Actor
from gerd.config.config import Config
from gerd.config.sweep import KEPT_MEMBERS, config_of, relatives
from gerd.errors import check_whole
from gerd.geometry import shapes
from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.seen import MovingMap
from gerd.geometry.trajectory import Trajectory
from gerd.scene.motion import motion
from gerd.scene.sampling import INTENSITY, LOOKS, Source
from gerd.scene.scenes import ABSENT, INTENSITY_ONE, Scenes
from gerd.scene.transformation import configured

MOST_INDICES = 2**32  # the random counter has 32 bits for the index
SMALLEST_MAP, LARGEST_MAP, FLATTEST_MAP = 1e-50, 1e50, 1e-12  # of what `transform` does to the plane


def draw(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The scenes of some indices of a member, in one batch. Members of a family that differ in size share positions."""
    config = config_of(config)
    resting = appearance(config, indices)
    sources = [Source(config.seed, resting.indices, *place) for place in config.cast]
    family = relatives(config.family)
    motions = [motion(config, *each, family) for each in zip(sources, resting.shapes, strict=True)]
    scenes = replace(resting, trajectory=Trajectory.joined(motions, len(resting), config.rate))
    if config.transform:
        g = configured(config)
        _check_map(config, g.space)
        scenes = g(scenes)
    return scenes.resumed(np.array([-scenes.warmup - 1, scenes.steps - 1]))


def _check_map(config: Config, space: MovingMap) -> None:
    """An error unless the parameters of G·T can be computed: G must not press the plane onto a line, or a point."""
    (a, b), (c, d) = space.linear
    size = max(map(abs, (a, b, c, d)))
    if SMALLEST_MAP <= size <= LARGEST_MAP and abs((a / size) * (d / size) - (b / size) * (c / size)) >= FLATTEST_MAP:
        return
    allowed = f"factors from {SMALLEST_MAP:g} to {LARGEST_MAP:g}, the smaller at least {FLATTEST_MAP:g} of the larger"
    message = f"all of it makes the map [[{a:g}, {b:g}], [{c:g}, {d:g}]]; allowed: {allowed}"
    raise config.error("transform", message, [part.model_dump(mode="json") for part in config.transform])


def appearance(config: Config, indices: Sequence[int] | NDArray[np.int64]) -> Scenes:
    """The same scenes without their motion: all actors rest at the origin. Runs no code that the config names."""
    for index in [*indices[:1], *indices[-1:]] if isinstance(indices, range) else indices:  # of a range, its ends
        check_whole("index", index, 0, MOST_INDICES - 1)
    config, rows = config.in_steps, np.asarray(indices, np.int64)
    first, differing = _first_appearance(config)
    intensity, chosen = np.repeat(first.intensity, len(rows), axis=0), np.repeat(first.chosen, len(rows), axis=0)
    for actor in differing:
        intensity[:, actor], chosen[:, actor] = _looks(config, rows, actor)
    trajectory = Trajectory.at_rest(np.zeros((*chosen.shape, PARAMETER_COUNT)))
    path_end = sys.maxsize if config.origin.path is None else config.origin.path.steps - 1
    return replace(first, indices=rows, chosen=chosen, intensity=intensity, trajectory=trajectory, path_end=path_end)


def _looks(config: Config, rows: NDArray[np.int64], actor: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Intensity, in units of 1 / INTENSITY_ONE, and shape of an actor in each recording."""
    entry, copy = config.cast[actor]
    written, source = config.actors[entry], Source(config.seed, rows, entry, copy)
    intensity = np.clip(source.sample(written.intensity, LOOKS, INTENSITY), DIMMEST, BRIGHTEST)
    chosen = np.where(source.is_there(written.repeat), source.shape(len(written.shapes)), ABSENT)
    return np.rint(intensity * INTENSITY_ONE), chosen


@lru_cache(maxsize=KEPT_MEMBERS)
def _first_appearance(config: Config) -> tuple[Scenes, list[int]]:
    """The appearance of index 0, and the actors that may look different in other recordings."""
    rows, actors = np.zeros(1, np.int64), [config.actors[entry] for entry, _ in config.cast]
    outlines = [tuple(shapes.outline(shape) for shape in actor.rings) for actor in config.actors]
    intensity, chosen = np.zeros((1, len(actors)), np.int32), np.zeros((1, len(actors)), np.int64)
    for actor in range(len(actors)):
        intensity[:, actor], chosen[:, actor] = _looks(config, rows, actor)
    full = config.upsampling * config.upsampling * INTENSITY_ONE
    threshold = max(1, round(config.integrator.threshold * full))
    initial = config.initial
    scenes = Scenes(
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
        shapes=tuple(outlines[entry] for entry, _ in config.cast),
        chosen=chosen,
        wraps=tuple(actor.translation.border == "wrap" for actor in actors),
        intensity=intensity,
        trajectory=Trajectory.at_rest(np.zeros((1, len(actors), PARAMETER_COUNT))),
    )
    return scenes, [actor for actor, written in enumerate(actors) if not _looks_fixed(written)]


def _looks_fixed(actor: Actor) -> bool:
    return isinstance(actor.intensity, int | float) and isinstance(actor.repeat, int) and len(actor.shapes) == 1

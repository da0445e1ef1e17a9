"""The pictures of a stimulus: what a `Stimulus` says in, a grey picture for each frame out, (height, width), uint8.

Scenes are not enlarged but drawn anew at the screen's resolution, from the same T(t): with s screen pixels to a pixel
of the scene, positions and sizes are multiplied by s. Brightness b becomes light between that of the two levels, and
light becomes a grey value by the screen's gamma, so that a pixel that an edge cuts has the light of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gerd.config.sweep import member
from gerd.errors import GerdError
from gerd.events.labels import coverage
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.screen.stimulus import Frames, Shown, Spot, Stimulus

Picture = NDArray[np.uint8]

PIXELS_AT_ONCE = 2**23  # of all actors in the steps that are drawn together
GREYS = 4096  # brightnesses that are told apart


def pictures(stimulus: Stimulus) -> Iterator[Picture]:
    """The picture of each frame. One that is shown again is the same array, which nobody may change."""
    blank = np.full(stimulus.screen[::-1], stimulus.levels[0], np.uint8)
    bright = np.full_like(blank, stimulus.levels[1])
    spots = [(spot, _disc(stimulus, spot)) for spot in (*stimulus.dots, *stimulus.marks)]
    changes = _changes(stimulus)
    scenes = iter(stimulus.scenes)
    scene = next(scenes, None)
    for start, stop in pairwise(changes):
        if any(_is_lit(lit, start) for lit in stimulus.flashes):
            yield from [bright] * (stop - start)
            continue
        picture = blank.copy()
        for spot, (window, disc) in spots:
            if _is_lit(spot.lit, start):
                picture[window] = np.where(disc > 0, _greys(stimulus, disc), picture[window])
        if scene is not None and start >= scene.hold:
            # A scene ends where something changes, and its marks may change within.
            yield from _with_scene(stimulus, scene, picture, start, stop)
            scene = next(scenes, None) if stop == scene.stop else scene
        else:
            yield from [picture] * (stop - start)


def _changes(stimulus: Stimulus) -> list[int]:
    """The frames at which a light goes on or off, or a scene begins or ends, with both ends of the video."""
    lit: list[Frames] = [*stimulus.flashes[0], *stimulus.flashes[1]]
    for spot in (*stimulus.dots, *stimulus.marks):
        lit += spot.lit
    lit += [(scene.hold, scene.stop) for scene in stimulus.scenes]
    return sorted({0, stimulus.frames, *(frame for part in lit for frame in part)})


def _is_lit(lit: Iterable[Frames], frame: int) -> bool:
    return any(start <= frame < stop for start, stop in lit)


def _disc(stimulus: Stimulus, spot: Spot) -> tuple[tuple[slice, slice], NDArray[np.float64]]:
    """Where a spot is on the screen, and its brightness there: its border is smooth over a pixel."""
    reach = spot.radius + 1
    left, right = (int(np.clip(spot.x + side * reach, 0, stimulus.screen[0])) for side in (-1, 1))
    top, bottom = (int(np.clip(spot.y + side * reach, 0, stimulus.screen[1])) for side in (-1, 1))
    y, x = np.mgrid[top : bottom + 1, left : right + 1] + 0.5
    away = np.hypot(x - spot.x, y - spot.y)
    window = np.s_[top : bottom + 1, left : right + 1]
    inside = (x < stimulus.screen[0]) & (y < stimulus.screen[1])
    shape = (inside.any(axis=1).sum(), inside.any(axis=0).sum())
    return window, np.clip(spot.radius - away + 0.5, 0, 1)[: shape[0], : shape[1]]


def _with_scene(stimulus: Stimulus, shown: Shown, around: Picture, start: int, stop: int) -> Iterator[Picture]:
    """The frames from `start` up to `stop`, with the scene in its place."""
    scene, truth = drawn(stimulus, shown)
    zoom = stimulus.zoom
    left, top = stimulus.corner
    large = replace(scene.at_rest(), width=scene.width * zoom, height=scene.height * zoom)
    at_once = max(1, PIXELS_AT_ONCE // (large.height * large.width * max(1, truth.shape[1])))
    first, last = max(0, start - shown.first), max(0, stop - 1 - shown.first)
    for begin in range(first, last + 1, at_once):
        enlarged = truth[begin : min(begin + at_once, last + 1)].copy()
        enlarged[..., :4] *= zoom
        activation = np.einsum("tahw,a->thw", coverage.counts(large, enlarged), scene.intensity[0])
        for step, greys in enumerate(_greys(stimulus, activation / large.full_count), begin):
            picture = around.copy()
            picture[top : top + large.height, left : left + large.width] = greys
            yield picture
            if step == 0:  # it stands still
                yield from [picture] * (min(stop, shown.first + 1) - start - 1)


def drawn(stimulus: Stimulus, shown: Shown) -> tuple[Scenes, NDArray[np.float64]]:
    """The scene of a recording that is shown, and its ground truth (steps, actors, 3, 6), in pixels of the scene."""
    scene = draw(plan_of(member(stimulus.family, shown.member).sampled), [shown.index])
    scene = scene.resumed(np.array([0, scene.steps - 1]))
    return scene, scene.truth(np.arange(scene.steps))[0]


def _greys(stimulus: Stimulus, brightness: NDArray[np.float64]) -> Picture:
    """The grey value of each brightness."""
    low, high = min(0.0, float(brightness.min())), max(1.0, float(brightness.max()))
    dark, bright = ((level / 255) ** stimulus.gamma for level in stimulus.levels)
    light = dark + (bright - dark) * np.linspace(low, high, GREYS)
    if light.min() < 0 or light.max() > 1 + 1e-12:
        raise GerdError(
            f"brightness from {low:g} to {high:g} does not fit between the darkest and the brightest that a screen "
            f"shows; choose other levels than {stimulus.levels[0]} and {stimulus.levels[1]} for brightness 0 and 1"
        )
    table = np.rint(255 * np.minimum(light, 1) ** (1 / stimulus.gamma)).astype(np.uint8)
    return table[np.rint((brightness - low) / (high - low) * (GREYS - 1)).astype(np.int64)]

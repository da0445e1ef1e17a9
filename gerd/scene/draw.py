"""A plan and indices to scenes: every random choice of a scene's content is made here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import BRIGHTEST, DIMMEST, LARGEST_HELD
from gerd.errors import check_whole
from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.seen import MovingMap
from gerd.geometry.trajectory import Trajectory
from gerd.plan.plan import INTENSITY_ONE, ActorPlan, Plan
from gerd.scene.motion import accelerations, motion
from gerd.scene.sampling import INTENSITY, LOOKS, ActorDraws, SceneWords
from gerd.scene.scenes import ABSENT, Scenes
from gerd.scene.transformation import planned

MOST_INDICES = 2**32  # the random counter has 32 bits for the index
SMALLEST_MAP, LARGEST_MAP, FLATTEST_MAP = 1e-50, 1e50, 1e-12  # of what `transform` does to the plane
FINEST_LOGARITHM = 64  # upsampling with a logarithmic response
WIDEST_LOGARITHM = 44.0  # full counts between the logarithms of the least brightness that there is and the most
FARTHEST = 7.0  # standard deviations of a Gaussian number from 32 random bits, at most
KEPT_PLANS = 1024  # whose first appearance is not drawn again

Rows = NDArray[np.int64]


def draw(plan: Plan, indices: Sequence[int] | Rows) -> Scenes:
    """The scenes of some indices, in one batch."""
    resting = appearance(plan, indices)
    rows = resting.indices
    words = SceneWords(plan.seed, rows, _slots(plan))
    cast = [(actor, ActorDraws(plan.seed, rows, actor.number, copy, words)) for actor, copy in plan.cast]
    motions = [motion(plan, actor, draws) for actor, draws in cast]

    def push(first: int, count: int) -> NDArray[np.float64]:
        return accelerations(cast, np.arange(first, first + count))

    is_pushed = any(actor.is_pushed for actor, _ in cast)
    trajectory = Trajectory.joined(motions, len(rows), plan.rate, push if is_pushed else None)
    scenes = replace(resting, trajectory=trajectory)
    if plan.operations:
        g = planned(plan)
        _check_map(plan, g.space)
        scenes = g(scenes)
    return scenes.resumed(np.array([-scenes.warmup - 1, scenes.steps - 1]))


def _check_map(plan: Plan, space: MovingMap) -> None:
    """An error unless the parameters of G·T can be computed: G must not press the plane onto a line, or a point."""
    (a, b), (c, d) = space.linear
    size = max(map(abs, (a, b, c, d)))
    if SMALLEST_MAP <= size <= LARGEST_MAP and abs((a / size) * (d / size) - (b / size) * (c / size)) >= FLATTEST_MAP:
        return
    allowed = f"factors from {SMALLEST_MAP:g} to {LARGEST_MAP:g}, the smaller at least {FLATTEST_MAP:g} of the larger"
    raise plan.error("transform", f"all of it makes the map [[{a:g}, {b:g}], [{c:g}, {d:g}]]; allowed: {allowed}")


def appearance(plan: Plan, indices: Sequence[int] | Rows) -> Scenes:
    """The scenes of some indices without their motion: all actors rest at the origin. Runs no code of the user's."""
    for index in [*indices[:1], *indices[-1:]] if isinstance(indices, range) else indices:  # of a range, its ends
        check_whole("index", index, 0, MOST_INDICES - 1)
    rows = np.asarray(indices, np.int64)
    first = _first_appearance(plan)
    intensity = np.repeat(first.intensity, len(rows), axis=0)
    chosen = np.repeat(first.chosen, len(rows), axis=0)
    for i, (actor, copy) in enumerate(plan.cast):
        if not actor.always_looks_the_same:
            intensity[:, i], chosen[:, i] = _looks(plan, actor, copy, rows)
    _check_counts(plan, intensity)
    trajectory = Trajectory.at_rest(np.zeros((*chosen.shape, PARAMETER_COUNT)))
    return replace(first, indices=rows, chosen=chosen, intensity=intensity, trajectory=trajectory)


def _looks(plan: Plan, actor: ActorPlan, copy: int, rows: Rows) -> tuple[NDArray[np.float64], Rows]:
    """Intensity, in units of 1 / INTENSITY_ONE, and shape of an actor in each recording."""
    draws = ActorDraws(plan.seed, rows, actor.number, copy)
    drawn = draws.sample(actor.intensity, LOOKS, INTENSITY)
    intensity = np.clip(drawn, DIMMEST, BRIGHTEST)  # a Gaussian one may fall outside
    chosen = np.where(draws.is_there(actor.repeat), draws.shape(len(actor.shapes)), ABSENT)
    counts = np.rint(intensity * INTENSITY_ONE)
    _check_brightness(plan, actor, counts)
    return counts, chosen


def _check_brightness(plan: Plan, actor: ActorPlan, counts: NDArray[np.float64]) -> None:
    """An error if a drawn intensity has no logarithm on the background."""
    background, darkest = plan.pixel.log_response, float(counts.min(initial=np.inf)) / INTENSITY_ONE
    if background > 0 and darkest <= -background:
        message = f"{darkest:g} was drawn, which has no logarithm with integrator.response {{log: {background:g}}}"
        raise plan.error(f"actors.{actor.number}.intensity", f"{message}; allowed: above {-background:g}")


@lru_cache(maxsize=KEPT_PLANS)
def _slots(_: Plan) -> dict[int, None]:
    """The slots whose random words the motions of a plan have needed so far, in the order in which they were drawn."""
    return {}


def _check_counts(plan: Plan, intensity: NDArray[np.int32]) -> None:
    """An error unless everything that integrators can hold fits into 32 bits.

    That is the whole range of what they see, and up to two thresholds: they begin within one, and fire beyond one.
    """
    pixel, area = plan.pixel, plan.upsampling * plan.upsampling
    full = area * INTENSITY_ONE
    if pixel.log_response > 0 and plan.upsampling > FINEST_LOGARITHM:
        why = f"with integrator.response {{log: {pixel.log_response:g}}}, which has a table of all counts"
        raise plan.error("upsampling", f"{why}; allowed: up to {FINEST_LOGARITHM}")
    bright, dark = (int(bound) for bound in (intensity.max(initial=0), intensity.min(initial=0)))
    seen = WIDEST_LOGARITHM * full if pixel.log_response > 0 else float(area * (bright - dark))
    held = seen + 2 * (max(pixel.threshold_on, pixel.threshold_off) + FARTHEST * pixel.spread * full)
    if held > LARGEST_HELD:
        allowed = math.floor(plan.upsampling * math.sqrt(LARGEST_HELD / held))
        what = f"intensities from {dark / INTENSITY_ONE:g} to {bright / INTENSITY_ONE:g} and these thresholds"
        raise plan.error(
            "upsampling", f"with {what}, counts do not fit into 32 bits; allowed with them: up to {allowed}"
        )


@lru_cache(maxsize=KEPT_PLANS)
def _first_appearance(plan: Plan) -> Scenes:
    """The appearance of index 0."""
    rows = np.zeros(1, np.int64)
    cast = plan.cast
    intensity = np.zeros((1, len(cast)), np.int32)
    chosen = np.zeros((1, len(cast)), np.int64)
    for i, (actor, copy) in enumerate(cast):
        intensity[:, i], chosen[:, i] = _looks(plan, actor, copy, rows)
    return Scenes(
        seed=plan.seed,
        indices=rows,
        width=plan.width,
        height=plan.height,
        steps=plan.steps,
        step_us=plan.step_us,
        exact=plan.exact,
        warmup=plan.warmup,
        upsampling=plan.upsampling,
        pixel=plan.pixel,
        shapes=tuple(actor.shapes for actor, _ in cast),
        chosen=chosen,
        wraps=tuple(actor.border == "wrap" for actor, _ in cast),
        intensity=intensity,
        trajectory=Trajectory.at_rest(np.zeros((1, len(cast), PARAMETER_COUNT))),
        path_end=plan.path_end,
    )

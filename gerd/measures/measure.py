"""Which symmetries a model respects: a model and pairs of recordings in, numbers with sample sizes and intervals out.

    g = gerd.transformation.rotation(30)
    gerd.measure.equivariance_error(model, config, g, acts="coordinates")     # a number
    gerd.measure.assert_equivariant(model, config, g, tolerance=0.05)         # a verdict
    speeds = [gerd.transformation.time_scale(s) for s in (0.25, 1, 4)]
    gerd.measure.generalisation_curve(model, config, speeds).invariance()     # a number: largest over smallest error
    gerd.measure.assert_flat(model, config, speeds, bound=2)                  # a verdict
    print(gerd.measure.accuracy_curve(classifier, config, speeds))            # how often it is right, and by chance

A model is any function of frames (batch, steps, 2, height, width). In each pair g·x is rendered from the transformed
scene with the same draws, and never resampled from pixels. Distances are in pixels, intervals are 95 % bootstrap
intervals; docs/measures.md has a formula for each measure, and its limits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.calls import explained
from gerd.errors import GerdError
from gerd.measures.acted import Acted, act_on_events
from gerd.measures.action import (
    Action,
    act_on_coordinates,
    act_on_heat_maps,
    act_on_matrices,
    act_on_scores,
    action,
    numbers_of_one,
)
from gerd.measures.answers import Measured, check_bounds, count_different, measured
from gerd.measures.asking import Model, Options, exact, output, with_axis
from gerd.measures.chance import chance_of_dependence
from gerd.measures.comparison import Difference, EventComparison, Matches, compare
from gerd.measures.conformance import Conformance, ConformanceCurve, conformance, each_conformance
from gerd.measures.curves import Accuracy, AccuracyCurve, Covariance, Curve, Invariance, covariance_matrix
from gerd.measures.errors import (
    Channelled,
    accuracy_curve,
    assert_flat,
    chance_error,
    channel_errors,
    generalisation_curve,
    recorded_curve,
    truth_error,
)
from gerd.measures.layers import Layer, layer
from gerd.measures.lie import LieDerivative, lie_derivative
from gerd.measures.pairs import WHICH, EventOptions, Stimuli, check_enough, joined, pairs
from gerd.measures.statistics import Effect, Summary, bootstrap, effect_size, summary, wilcoxon
from gerd.scene.transformation import Transformation

Array = NDArray[np.float64]

__all__ = [
    "Accuracy",
    "AccuracyCurve",
    "Acted",
    "Action",
    "Channelled",
    "Conformance",
    "ConformanceCurve",
    "Covariance",
    "Curve",
    "Difference",
    "Effect",
    "EventComparison",
    "EventOptions",
    "Invariance",
    "Layer",
    "LieDerivative",
    "Matches",
    "Measured",
    "Model",
    "Options",
    "Summary",
    "accuracy_curve",
    "act_on_coordinates",
    "act_on_events",
    "act_on_heat_maps",
    "act_on_matrices",
    "act_on_scores",
    "assert_equivariant",
    "assert_flat",
    "assert_invariant",
    "bootstrap",
    "chance_error",
    "channel_errors",
    "compare",
    "conformance",
    "covariance_matrix",
    "each_conformance",
    "effect_size",
    "equivariance_error",
    "generalisation_curve",
    "invariance_error",
    "layer",
    "lie_derivative",
    "recorded_curve",
    "summary",
    "truth_error",
    "wilcoxon",
]


class BoundedOptions(EventOptions, total=False):
    """`Options` and the bounds of `assert_equivariant`."""

    tolerance: float  # of the relative error
    absolute: float  # of the error in the unit of the output


@explained
def equivariance_error(
    model: Model,
    config: Stimuli,
    transformation: Transformation,
    *,
    acts: str | Action = "coordinates",
    **options: Unpack[EventOptions],
) -> Measured:
    """‖f(g·x) - ρ(g) f(x)‖ on recordings of `config`, or on a list of events.

    It is in units of what ρ(g) f(x) of different recordings differ by: 0 is the same answer, 1 one as different as that
    to an unrelated scene. Beside it stands the error in the unit of the output. Of a config g·x is rendered anew; of
    events it is `act_on_events`, or was recorded, too.

    acts: how ρ(g) acts on the output: `coordinates` (batch, steps, …, 2) in pixels, `T` (batch, steps, …, 3, 3),
        `heat map` (batch, steps, …, rows, columns) over the whole frame, `scores` (batch, …), which stay as they are,
        or a function of (g, f(x), (width, height)). All but scores may lack the steps: then it is the last one.
    options: see `Options` and, of events, `EventOptions`. For ρ the steps before `first_step` are not numbers.

    A module is measured in its evaluation mode. All answers are in memory until the last one is there.
    """
    act, least = action(acts)
    gaps = []
    all_expected = []
    all_said = []
    truths = []
    parts, first_step = pairs(config, transformation, acts, **options)
    rounding = 0.0
    changed = 0
    rounded = False
    for part in parts:
        changed += int(_differ(part.frames, part.frames_g).sum())
        answer = output(model, part.frames)
        out, out_g = (with_axis(exact(each)) for each in (answer, output(model, part.frames_g)))
        late = slice(first_step if out.ndim > least and out.shape[1] == part.steps else 0, None)
        settled = out.clone()
        settled[:, : late.start] = math.nan
        expected = act(transformation, settled, part.size)
        if expected.shape != out_g.shape:
            shapes = f"ρ(g) f(x) has shape {tuple(expected.shape)} and f(g·x) {tuple(out_g.shape)}"
            raise GerdError(f"{shapes}; allowed: the same")
        gaps.append(_gaps(out_g[:, late], expected[:, late]).cpu())
        all_expected.append(expected[:, late].cpu())
        all_said.append(out[:, late].cpu())
        truths.append(part.numbers)
        rounding = torch.finfo(answer.dtype).eps / 2 if answer.is_floating_point() else 0.0
        rounded |= part.rounded
    said = torch.cat(all_said)
    chance = _dependence(said.mean(1) if said.ndim > least else said, joined(truths), acts == WHICH)
    different = count_different(said, rounding)
    found = measured(
        transformation, torch.cat(gaps), torch.cat(all_expected), changed, different, chance, numbers_of_one(acts)
    )
    return replace(found, rounded=rounded)


def _differ(frames: Tensor, frames_g: Tensor) -> Tensor:
    """(batch,): of which recordings a transformation changes the frames."""
    if frames.shape != frames_g.shape:
        return torch.ones(len(frames), dtype=torch.bool)
    return (frames != frames_g).flatten(1).any(1)


def _dependence(answers: Tensor, truth: Array, by_class: bool) -> float | None:
    """How likely answers that know nothing of the truth would vary with it as much as these (recordings, …)."""
    known = np.isfinite(truth).all(axis=0)  # an actor that is not in every recording has no place in some
    if not known.any() or (by_class and answers.shape[1] != truth.shape[1]):
        return None
    return chance_of_dependence(answers.flatten(1).numpy(), truth[:, known])


@explained
def invariance_error(
    model: Model, config: Stimuli, transformation: Transformation, **options: Unpack[EventOptions]
) -> Measured:
    """How much the output changes at all: `equivariance_error` with ρ(g) = 1."""
    return equivariance_error(model, config, transformation, acts=_unchanged, **options)


@explained
def assert_equivariant(
    model: Model,
    config: Stimuli,
    transformation: Transformation,
    *,
    tolerance: float = math.inf,
    absolute: float = math.inf,
    acts: str | Action = "coordinates",
    **options: Unpack[EventOptions],
) -> Measured:
    """Fails unless the error, up to the end of its interval, is within its bound, and where nothing can be said.

    `tolerance` bounds the relative error, `absolute` the one in the unit of the output; give one or both. Nothing can
    be said of a model that says the same of every recording, or of one whose answers about places (`acts` coordinates
    or T) or classes (scores) do not vary with the truth, nor by a transformation that changes hardly any frames.
    """
    check_bounds(tolerance, absolute)
    check_enough(config, options)
    found = equivariance_error(model, config, transformation, acts=acts, **options)
    verdict = found.verdict(tolerance, absolute)
    if verdict == "holds":
        return found
    bounds = [f"{bound:g}{unit}" for bound, unit in ((tolerance, ""), (absolute, " absolute")) if bound < math.inf]
    symmetry = f"{'invariant' if acts is _unchanged else 'equivariant'} within {' and '.join(bounds)}"
    if verdict == "no verdict":
        raise AssertionError(f"no verdict on whether the model is {symmetry}: {found.why_no_verdict}: {found}")
    words = "the model is not" if verdict == "does not hold" else "it is undecided whether the model is"
    raise AssertionError(f"{words} {symmetry}: {found}")


@explained
def assert_invariant(
    model: Model, config: Stimuli, transformation: Transformation, **options: Unpack[BoundedOptions]
) -> Measured:
    """Fails unless the output stays within its bound of what it was; options as in `assert_equivariant`.

    The output may be about anything, so that no truth of it is known. Of a classifier `assert_equivariant` with `acts`
    scores asks the same, and gives no verdict where it is at chance.
    """
    return assert_equivariant(model, config, transformation, acts=_unchanged, **options)


def _unchanged(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG001
    """The action under which an output that is equivariant is invariant."""
    return out


def _gaps(out_g: Tensor, expected: Tensor) -> Tensor:
    """(pairs,): root mean squares. Where nothing is expected (not a number) nothing is compared."""
    known = torch.isfinite(expected)
    compared = known.flatten(1).sum(1)
    if not bool((compared > 0).all()):
        raise GerdError("nothing of f(g·x) and f(x) can be compared; allowed: longer recordings, a smaller amount")
    return torch.where(known, out_g - expected, 0.0).flatten(1).norm(dim=1) / compared.sqrt()

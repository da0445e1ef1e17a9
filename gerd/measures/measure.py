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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import classes
from gerd.errors import GerdError, check_whole, counted
from gerd.events import backends
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
from gerd.measures.asking import Model, Options, evaluating, exact, output, stimuli, with_axis
from gerd.measures.chance import chance_of, chance_of_dependence
from gerd.measures.comparison import Difference, EventComparison, Matches, compare
from gerd.measures.conformance import Conformance, ConformanceCurve, conformance, each_conformance
from gerd.measures.curves import Accuracy, AccuracyCurve, Covariance, Curve, Invariance, covariance_matrix
from gerd.measures.lie import LieDerivative, lie_derivative
from gerd.measures.pairs import WHICH, EventOptions, Stimuli, check_enough, class_numbers, joined, pairs
from gerd.measures.statistics import Effect, Summary, bootstrap, effect_size, summary, wilcoxon
from gerd.plan.make import plan_of
from gerd.recording.events import Events
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation, identity

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
    rounding, changed, rounded = 0.0, 0, False
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


@explained
def truth_error(
    model: Model, config: Stimuli, transformation: Transformation, **options: Unpack[EventOptions]
) -> Array:
    """(count,): the mean distance in pixels from the truth of a model that gives places (batch, steps, [actors,] 2).

    Actors that are absent are left out.
    """
    return truth_and_chance_errors(model, config, transformation, **options)[0]


@explained
def truth_and_chance_errors(
    model: Model, config: Stimuli, transformation: Transformation, **options: Unpack[EventOptions]
) -> tuple[Array, Array]:
    """(count,) each: the errors of `truth_error`, and those of the best answer that is the same for every recording."""
    parts = []
    truths = []
    shown, first_step = pairs(config, transformation, **options)
    for part in shown:
        if part.places is None:
            raise GerdError(
                "nobody knows where things are in these events; allowed: truth=…, or recordings with theirs"
            )
        out = exact(output(model, part.frames_g)).cpu().numpy()
        truth = part.places
        if out.shape == (*truth.shape[:2], 2):
            out = out[:, :, None]
            truth = truth[:, :, :1]
        if out.shape != truth.shape:
            allowed = f"{truth.shape} or one place per step, {(*truth.shape[:2], 2)}"
            raise GerdError(f"the model gave an output of shape {out.shape}; allowed: {allowed}")
        away = np.linalg.norm(out - truth, axis=-1)[:, first_step:]
        if not (known := np.isfinite(away).any(axis=(1, 2))).all():
            empty = counted(int((~known).sum()), "recording")
            raise GerdError(
                f"{empty} of {len(known)} with no actor, and so no error; allowed: one actor or more in each"
            )
        parts.append(np.nanmean(away, axis=(1, 2)))
        truths.append(truth[:, first_step:])
    return np.concatenate(parts), chance_of(np.concatenate(truths))


@explained
def generalisation_curve(
    model: Model,
    config: Stimuli,
    transformations: Sequence[Transformation],
    *,
    trained: float | None = None,
    **options: Unpack[EventOptions],
) -> Curve:
    """The error against the truth for each of several amounts of one transformation, on the same recordings.

    Of events without a truth of their own, `truth` has their places; g acts on events and places.

    trained: the amount in the model's training; by default the one that changes nothing.
    """
    _check_kind(transformations)
    measured = [truth_and_chance_errors(model, config, g, **options) for g in transformations]
    errors, chance = zip(*measured, strict=True)
    neutral = transformations[0].neutral
    return Curve(tuple(g.amount for g in transformations), errors, neutral if trained is None else trained, chance)


@explained
def recorded_curve(
    model: Model,
    family: Mapping[float, Sequence[Events]],
    *,
    trained: float = 1.0,
    truth: Mapping[float, ArrayLike] | None = None,
    **options: Unpack[Options],
) -> Curve:
    """The error against the truth for each of several amounts at which recordings were made, such as speeds.

    family: for each amount its recordings, as `Recordings.family` of registered ones gives them for each index, or
        events of which `truth` has the places, under the same amount.
    trained: the amount in the model's training.
    """
    if not family:
        raise GerdError("family: has no amounts; allowed: one or more, each with its recordings")
    errors, chance = [], []
    for amount, some in family.items():
        known = None if truth is None else truth[amount]
        found = truth_and_chance_errors(model, some, identity(), truth=known, **options)
        errors.append(found[0])
        chance.append(found[1])
    return Curve(tuple(map(float, family)), tuple(errors), trained, tuple(chance))


@explained
def accuracy_curve(
    model: Model,
    config: AnyConfig,
    transformations: Sequence[Transformation],
    *,
    trained: float | None = None,
    **options: Unpack[Options],
) -> AccuracyCurve:
    """How often a classifier names the shape, for each of several amounts of a transformation, on the same recordings.

    The model gives a score for each of the classes, which are those of `Dataset.classes`: (batch, classes), or
    (batch, steps, classes), of which the mean from `first_step` on counts. The largest score is its answer. The config
    has one actor.

    trained: the amount in the model's training; by default the one that changes nothing.
    """
    _check_kind(transformations)
    chosen = as_config(config)
    names = classes(chosen.family)
    found = tuple(Accuracy(g.amount, _confusion(model, chosen, names, g, options)) for g in transformations)
    return AccuracyCurve(names, found, transformations[0].neutral if trained is None else trained)


def _confusion(
    model: Model, config: Config, names: Sequence[str], transformation: Transformation, options: Options
) -> NDArray[np.int64]:
    """(classes, classes): the recordings of each class (row) by the class that they were taken for."""
    result = np.zeros((len(names), len(names)), np.int64)
    batches, first_step, device = stimuli(config, **options)
    for scenes in batches:
        numbers = class_numbers(config, scenes)
        if numbers is None:
            raise GerdError("accuracy is of configs in which every recording has one actor")
        out = output(model, backends.frames(transformation(scenes), device))
        allowed = (len(scenes), len(names)), (len(scenes), scenes.steps, len(names))
        if tuple(out.shape) not in allowed:
            wanted = f"{allowed[0]}, a score for each class of {', '.join(names)}, or {allowed[1]}"
            raise GerdError(f"the model gave an output of shape {tuple(out.shape)}; allowed: {wanted}")
        scores = exact(out)
        if scores.ndim == 3:
            scores = scores[:, first_step:].mean(1)
        np.add.at(result, (numbers, scores.argmax(1).cpu().numpy()), 1)
    return result


def _check_kind(transformations: Sequence[Transformation]) -> None:
    if not transformations or len({g.kind for g in transformations}) > 1:
        raise GerdError("a curve goes over one kind of transformation; allowed: some of the same kind")


@explained
def assert_flat(
    model: Model,
    config: Stimuli,
    transformations: Sequence[Transformation],
    *,
    bound: float,
    **options: Unpack[EventOptions],
) -> Curve:
    """Fails unless the error against the truth varies by a factor of `bound` at most, up to the end of its interval.

    The curve is that of `generalisation_curve`; a model that is at chance at any of the amounts fails, too.
    """
    check_enough(config, options)
    if len(set(transformations)) < 2:
        raise GerdError("the error at one amount says nothing of another; allowed: two amounts or more")
    curve = generalisation_curve(model, config, transformations, **options)
    flatness = curve.invariance()
    verdict = flatness.verdict(bound)
    if verdict != "invariant":
        raise AssertionError(f"{transformations[0].kind}: {verdict} within a factor of {bound:g}: {flatness}")
    return curve


@explained
def chance_error(config: AnyConfig, first: int, count: int, first_step: int = 0) -> Summary:
    """The errors in pixels of the best answer that is the same for every recording, at each step and for each actor."""
    scenes = draw(plan_of(as_config(config)), range(first, first + count))
    check_whole("first_step", first_step, 0, scenes.steps - 1)
    return summary(chance_of(scenes.truth(np.arange(first_step, scenes.steps))[..., 0, :2]))


class Channelled(Protocol):
    """What a network with several channels says of some recordings; `gerd.models.Reading` is one."""

    @property
    def places(self) -> Tensor: ...  # (batch, channels, steps, 2), in pixels: of each channel alone
    @property
    def weights(self) -> Tensor: ...  # (batch, channels, steps): its share in the answer


@explained
def channel_errors(
    read: Callable[[Tensor], Channelled], config: AnyConfig, transformation: Transformation, **options: Unpack[Options]
) -> tuple[Array, Array]:
    """(channels, count) each: mean distances of the channels from the first actor in pixels, and their mean shares.

    `read` is a function of frames, such as `network.read` of the networks in `gerd.models`.
    """
    errors = []
    shares = []
    batches, first_step, device = stimuli(config, **options)
    for scenes in batches:
        seen = transformation(scenes)
        with torch.no_grad(), evaluating(read):
            reading = read(backends.frames(seen, device).float())
        truth = torch.from_numpy(seen.trajectory.parameters(np.arange(seen.steps))[:, 0, :, 0, :2])
        places = reading.places.cpu().double()
        weights = reading.weights.cpu().double()
        if places.shape != (len(truth), weights.shape[1], *truth.shape[1:]) or weights.shape != places.shape[:3]:
            shapes = f"places of shape {tuple(places.shape)} and weights of shape {tuple(weights.shape)}"
            raise GerdError(f"the model gave {shapes}; allowed: (batch, channels, steps, 2), and without the 2")
        errors.append((places - truth[:, None]).norm(dim=-1)[..., first_step:].mean(-1).T)
        shares.append(weights[..., first_step:].mean(-1).T)
    return torch.cat(errors, dim=1).numpy(), torch.cat(shares, dim=1).numpy()

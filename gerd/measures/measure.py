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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import classes
from gerd.errors import GerdError, check_whole
from gerd.events import backends
from gerd.measures.action import (
    Action,
    act_on_coordinates,
    act_on_heat_maps,
    act_on_matrices,
    act_on_scores,
    action,
    numbers_of_one,
)
from gerd.measures.answers import Measured, count_different, measured
from gerd.measures.chance import chance_of, chance_of_dependence
from gerd.measures.conformance import Conformance, ConformanceCurve, conformance, each_conformance
from gerd.measures.curves import Accuracy, AccuracyCurve, Covariance, Curve, Invariance, covariance_matrix
from gerd.measures.statistics import LEAST, Effect, Summary, bootstrap, effect_size, summary, wilcoxon
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.scene.transformation import Transformation

Array = NDArray[np.float64]
Model = Callable[[Tensor], Tensor]

COUNT = 64  # recordings, unless told
WHERE = ("coordinates", "T")  # outputs that say where something is: the truth is known

__all__ = [
    "Accuracy",
    "AccuracyCurve",
    "Action",
    "Channelled",
    "Conformance",
    "ConformanceCurve",
    "Covariance",
    "Curve",
    "Effect",
    "Invariance",
    "Measured",
    "Model",
    "Options",
    "Summary",
    "accuracy_curve",
    "act_on_coordinates",
    "act_on_heat_maps",
    "act_on_matrices",
    "act_on_scores",
    "assert_equivariant",
    "assert_flat",
    "assert_invariant",
    "bootstrap",
    "chance_error",
    "channel_errors",
    "conformance",
    "covariance_matrix",
    "each_conformance",
    "effect_size",
    "equivariance_error",
    "generalisation_curve",
    "invariance_error",
    "summary",
    "truth_error",
    "wilcoxon",
]


class Options(TypedDict, total=False):
    """Which recordings of a config a model is measured on, and how: what every measure takes by name."""

    count: int  # of recordings: 64 by default
    first: int  # the index of the first of them: 0
    first_step: int  # steps before this one are not compared: 0
    device: str  # where the frames are: cpu
    batch: int  # recordings that the model gets at once: 16


class BoundedOptions(Options, total=False):
    """`Options` and the bounds of `assert_equivariant`."""

    tolerance: float  # of the relative error
    absolute: float  # of the error in the unit of the output


def equivariance_error(
    model: Model,
    config: AnyConfig,
    transformation: Transformation,
    *,
    acts: str | Action = "coordinates",
    **options: Unpack[Options],
) -> Measured:
    """‖f(g·x) - ρ(g) f(x)‖ on recordings of `config`, in units of what ρ(g) f(x) of different recordings differ by.

    0 is the same answer, 1 one as different as that to an unrelated scene. Beside it stands the error in the unit of
    the output.

    acts: how ρ(g) acts on the output: `coordinates` (batch, steps, …, 2) in pixels, `T` (batch, steps, …, 3, 3),
        `heat map` (batch, steps, …, rows, columns) over the whole frame, `scores` (batch, …), which stay as they are,
        or a function of (g, f(x), (width, height)). All but scores may lack the steps: then it is the last one.
    options: see `Options`. For ρ the steps before `first_step` are not numbers.

    A module is measured in its evaluation mode. All answers are in memory until the last one is there.
    """
    act, least = action(acts)
    gaps = []
    all_expected = []
    all_said = []
    truths = []
    batches, first_step, device = _stimuli(config, **options)
    rounding = 0.0
    for scenes in batches:
        answer = _output(model, backends.frames(scenes, device))
        out = _exact(answer)
        out_g = _exact(_output(model, backends.frames(transformation(scenes), device)))
        late = slice(first_step if out.ndim > least and out.shape[1] == scenes.steps else 0, None)
        settled = out.clone()
        settled[:, : late.start] = math.nan
        expected = act(transformation, settled, (scenes.width, scenes.height))
        if expected.shape != out_g.shape:
            shapes = f"ρ(g) f(x) has shape {tuple(expected.shape)} and f(g·x) {tuple(out_g.shape)}"
            raise GerdError(f"{shapes}; allowed: the same")
        gaps.append(_gaps(out_g[:, late], expected[:, late]).cpu())
        all_expected.append(expected[:, late].cpu())
        all_said.append(out[:, late].cpu())
        truths.append(scenes.truth(np.arange(min(first_step, scenes.steps - 1), scenes.steps))[..., 0, :])
        rounding = torch.finfo(answer.dtype).eps / 2 if answer.is_floating_point() else 0.0
    said = torch.cat(all_said)
    chance = _dependence(said, said.ndim > least, np.concatenate(truths)) if acts in WHERE else None
    different = count_different(said, rounding)
    axes = numbers_of_one(acts)
    return measured(transformation, torch.cat(gaps), torch.cat(all_expected), different, chance, axes)


def _dependence(said: Tensor, has_steps: bool, truth: Array) -> float | None:
    """How likely answers about places would vary with where the shapes are as much as these, if they knew nothing."""
    places = truth.reshape(*truth.shape[:2], -1)
    present = np.isfinite(places).all(axis=(0, 1))  # an actor that is not in every recording has no place in some
    if not present.any():
        return None
    answers = said.mean(1) if has_steps else said
    return chance_of_dependence(answers.flatten(1).numpy(), places[..., present].mean(axis=1))


def invariance_error(
    model: Model, config: AnyConfig, transformation: Transformation, **options: Unpack[Options]
) -> Measured:
    """How much the output changes at all: `equivariance_error` with ρ(g) = 1."""
    return equivariance_error(model, config, transformation, acts=_unchanged, **options)


def assert_equivariant(
    model: Model,
    config: AnyConfig,
    transformation: Transformation,
    *,
    tolerance: float = math.inf,
    absolute: float = math.inf,
    acts: str | Action = "coordinates",
    **options: Unpack[Options],
) -> Measured:
    """Fails unless the median error, up to the end of its interval, is within its bound, and where nothing can be said.

    `tolerance` bounds the relative error, `absolute` the one in the unit of the output; give one or both. Nothing can
    be said of a model that says the same of every recording, or of one whose answers about places (`acts` coordinates
    or T) do not vary with the truth.
    """
    if min(tolerance, absolute) == math.inf:
        raise GerdError("there is no bound to judge by: allowed: tolerance=… and absolute=…")
    check_whole("count", options.get("count", COUNT), LEAST)
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


def assert_invariant(
    model: Model, config: AnyConfig, transformation: Transformation, **options: Unpack[BoundedOptions]
) -> Measured:
    """Fails unless the output stays within its bound of what it was; options as in `assert_equivariant`."""
    return assert_equivariant(model, config, transformation, acts=_unchanged, **options)


def _unchanged(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG001
    """The action under which an output that is equivariant is invariant."""
    return out


def _stimuli(
    config: AnyConfig, *, count: int = COUNT, first: int = 0, first_step: int = 0, device: str = "cpu", batch: int = 16
) -> tuple[list[Scenes], int, str]:
    """The recordings that `Options` name, in batches; the first step to compare, and the device."""
    check_whole("count", count, 1)
    check_whole("batch", batch, 1)
    scenes = draw(plan_of(as_config(config)), range(first, first + count))
    return [scenes[begin : begin + batch] for begin in range(0, count, batch)], first_step, device


def _output(model: Model, frames: Tensor) -> Tensor:
    try:
        with torch.no_grad(), _evaluating(model):
            out = model(frames.float())
    except GerdError:
        raise
    except Exception as error:  # whatever a user's model may raise
        shape = tuple(frames.shape)
        raise GerdError(f"the model failed on frames of shape {shape}: {type(error).__name__}: {error}") from error
    if not isinstance(out, Tensor) or out.shape[:1] != frames.shape[:1]:
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        several = "" if isinstance(out, Tensor) else "; of several outputs give a function that returns one"
        wanted = "a tensor with one row for each"
        raise GerdError(f"the model gave {shape} for {len(frames)} recordings; allowed: {wanted}{several}")
    finite = torch.isfinite(out).flatten(1).all(1)
    if not bool(finite.all()):
        bad = f"{int((~finite).sum())} of {len(frames)} recordings"
        raise GerdError(
            f"the model gave numbers that are not finite for {bad}; nothing can be said of the others alone"
        )
    return out


def _exact(out: Tensor) -> Tensor:
    return (out.cpu() if out.device.type == "mps" else out).double()  # which has no float64


@contextmanager
def _evaluating(model: object) -> Iterator[None]:
    """While each part of a module is in its evaluation mode; then all are as they were."""
    modes = [(part, part.training) for part in model.modules()] if isinstance(model, torch.nn.Module) else []
    try:
        for part, _ in modes:
            part.training = False
        yield
    finally:
        for part, training in modes:
            part.training = training


def _gaps(out_g: Tensor, expected: Tensor) -> Tensor:
    """(pairs,): root mean squares. Where nothing is expected (not a number) nothing is compared."""
    known = torch.isfinite(expected)
    compared = known.flatten(1).sum(1)
    if not bool((compared > 0).all()):
        raise GerdError("nothing of f(g·x) and f(x) can be compared; allowed: longer recordings, a smaller amount")
    return torch.where(known, out_g - expected, 0.0).flatten(1).norm(dim=1) / compared.sqrt()


def truth_error(model: Model, config: AnyConfig, transformation: Transformation, **options: Unpack[Options]) -> Array:
    """(count,): the mean distance in pixels from the truth of a model that gives places (batch, steps, [actors,] 2).

    Actors that are absent are left out.
    """
    return truth_and_chance_errors(model, config, transformation, **options)[0]


def truth_and_chance_errors(
    model: Model, config: AnyConfig, transformation: Transformation, **options: Unpack[Options]
) -> tuple[Array, Array]:
    """(count,) each: the errors of `truth_error`, and those of the best answer that is the same for every recording."""
    parts = []
    truths = []
    batches, first_step, device = _stimuli(config, **options)
    for scenes in batches:
        seen = transformation(scenes)
        out = _exact(_output(model, backends.frames(seen, device))).cpu().numpy()
        truth = seen.truth(np.arange(seen.steps))[..., 0, :2]
        if out.shape == (*truth.shape[:2], 2):
            out = out[:, :, None]
            truth = truth[:, :, :1]
        if out.shape != truth.shape:
            allowed = f"{truth.shape} or one place per step, {(*truth.shape[:2], 2)}"
            raise GerdError(f"the model gave an output of shape {out.shape}; allowed: {allowed}")
        parts.append(np.nanmean(np.linalg.norm(out - truth, axis=-1)[:, first_step:], axis=(1, 2)))
        truths.append(truth[:, first_step:])
    return np.concatenate(parts), chance_of(np.concatenate(truths))


def generalisation_curve(
    model: Model,
    config: AnyConfig,
    transformations: Sequence[Transformation],
    *,
    trained: float | None = None,
    **options: Unpack[Options],
) -> Curve:
    """The error against the truth for each of several amounts of one transformation, on the same recordings.

    trained: the amount in the model's training; by default the one that changes nothing.
    """
    _check_kind(transformations)
    measured = [truth_and_chance_errors(model, config, g, **options) for g in transformations]
    errors, chance = zip(*measured, strict=True)
    neutral = transformations[0].neutral
    return Curve(tuple(g.amount for g in transformations), errors, neutral if trained is None else trained, chance)


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
    batches, first_step, device = _stimuli(config, **options)
    for scenes in batches:
        if len(config.cast) != 1 or not scenes.present.all():
            raise GerdError("accuracy is of configs in which every recording has one actor")
        number_of = np.array([names.index(name) for name in config.actors[0].shape_names])
        out = _output(model, backends.frames(transformation(scenes), device))
        allowed = (len(scenes), len(names)), (len(scenes), scenes.steps, len(names))
        if tuple(out.shape) not in allowed:
            wanted = f"{allowed[0]}, a score for each class of {', '.join(names)}, or {allowed[1]}"
            raise GerdError(f"the model gave an output of shape {tuple(out.shape)}; allowed: {wanted}")
        if first_step >= scenes.steps:
            raise GerdError(f"first_step {first_step}: allowed: less than the {scenes.steps} steps of a recording")
        scores = _exact(out)
        if scores.ndim == 3:
            scores = scores[:, first_step:].mean(1)
        np.add.at(result, (number_of[scenes.chosen[:, 0]], scores.argmax(1).cpu().numpy()), 1)
    return result


def _check_kind(transformations: Sequence[Transformation]) -> None:
    if not transformations or len({g.kind for g in transformations}) > 1:
        raise GerdError("a curve goes over one kind of transformation; allowed: some of the same kind")


def assert_flat(
    model: Model,
    config: AnyConfig,
    transformations: Sequence[Transformation],
    *,
    bound: float,
    **options: Unpack[Options],
) -> Curve:
    """Fails unless the error against the truth varies by a factor of `bound` at most, up to the end of its interval.

    The curve is that of `generalisation_curve`; a model that is at chance at any of the amounts fails, too.
    """
    check_whole("count", options.get("count", COUNT), LEAST)
    curve = generalisation_curve(model, config, transformations, **options)
    flatness = curve.invariance()
    verdict = flatness.verdict(bound)
    if verdict != "invariant":
        raise AssertionError(f"{transformations[0].kind}: {verdict} within a factor of {bound:g}: {flatness}")
    return curve


def chance_error(config: AnyConfig, first: int, count: int, first_step: int = 0) -> Summary:
    """The errors in pixels of the best answer that is the same for every recording, at each step and for each actor."""
    scenes = draw(plan_of(as_config(config)), range(first, first + count))
    return summary(chance_of(scenes.truth(np.arange(first_step, scenes.steps))[..., 0, :2]))


class Channelled(Protocol):
    """What a network with several channels says of some recordings; `gerd.models.Reading` is one."""

    @property
    def places(self) -> Tensor: ...  # (batch, channels, steps, 2), in pixels: of each channel alone
    @property
    def weights(self) -> Tensor: ...  # (batch, channels, steps): its share in the answer


def channel_errors(
    read: Callable[[Tensor], Channelled], config: AnyConfig, transformation: Transformation, **options: Unpack[Options]
) -> tuple[Array, Array]:
    """(channels, count) each: mean distances of the channels from the first actor in pixels, and their mean shares.

    `read` is a function of frames, such as `network.read` of the networks in `gerd.models`.
    """
    errors = []
    shares = []
    batches, first_step, device = _stimuli(config, **options)
    for scenes in batches:
        seen = transformation(scenes)
        with torch.no_grad(), _evaluating(getattr(read, "__self__", None)):
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

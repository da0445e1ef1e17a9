"""How far a model is from the truth: a model and recordings of a config, or events, in; errors and their curves out.

Errors are mean distances in pixels, of recordings that are transformed by several amounts of one transformation. Each
comes with the error of the best answer that looks at nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from gerd.measures.asking import Model, Options, evaluating, exact, output, stimuli
from gerd.measures.chance import chance_of
from gerd.measures.curves import Accuracy, AccuracyCurve, Curve
from gerd.measures.pairs import EventOptions, Stimuli, check_enough, class_numbers, pairs
from gerd.measures.statistics import Summary, summary
from gerd.plan.make import plan_of
from gerd.recording.events import Events
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation, identity

Array = NDArray[np.float64]


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
            raise GerdError("these events have no ground truth; allowed: truth=…, or recordings, which have it")
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
    """Return the error against the truth for several amounts of one transformation, on the same recordings.

    For events without ground truth, `truth` gives their places; g acts on events and places.

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
    """Return how often a classifier names the shape, for several amounts of a transformation, on the same recordings.

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
            raise GerdError("accuracy needs a config in which every recording has exactly one actor")
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
        raise GerdError(
            "a curve is over amounts of one kind of transformation; allowed: transformations of the same kind"
        )


@explained
def assert_flat(
    model: Model,
    config: Stimuli,
    transformations: Sequence[Transformation],
    *,
    bound: float,
    **options: Unpack[EventOptions],
) -> Curve:
    """Fail unless the error against the truth varies by a factor of `bound` at most, up to the end of its interval.

    The curve is that of `generalisation_curve`; a model that is at chance at any of the amounts fails, too.
    """
    check_enough(config, options)
    if len(set(transformations)) < 2:
        raise GerdError("the error at one amount says nothing about another; allowed: two amounts or more")
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

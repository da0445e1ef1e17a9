"""Which symmetries a model respects: a model and pairs of recordings in, numbers with sample sizes and intervals out.

    g = gerd.transformation.rotation(30)
    gerd.measure.equivariance_error(model, config, g, acts="coordinates")     # a number
    gerd.measure.assert_equivariant(model, config, g, tolerance=0.05)         # a verdict

A model is any function of frames (batch, steps, 2, height, width). In each pair g·x is rendered from the transformed
scene with the same draws, and never resampled from pixels. Distances are in pixels, intervals are 95 % bootstrap
intervals; docs/measures.md has a formula for each measure, and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gerd.config.config import Config
from gerd.errors import GerdError
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
from gerd.measures.statistics import (
    Effect,
    Summary,
    bootstrap,
    effect_size,
    interval,
    medians,
    resampled,
    summary,
    wilcoxon,
)
from gerd.measures.transformation import Transformation
from gerd.recording.simulate import scenes_of
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]
Model = Callable[[Tensor], Tensor]

__all__ = [
    "Action",
    "Channelled",
    "Covariance",
    "Curve",
    "Effect",
    "Measured",
    "Model",
    "Summary",
    "act_on_coordinates",
    "act_on_heat_maps",
    "act_on_matrices",
    "act_on_scores",
    "assert_equivariant",
    "assert_invariant",
    "bootstrap",
    "chance_error",
    "channel_errors",
    "covariance_matrix",
    "effect_size",
    "equivariance_error",
    "generalisation_curve",
    "invariance_error",
    "summary",
    "truth_error",
    "wilcoxon",
]


@dataclass(frozen=True)
class Measured:
    """An error of a model under a transformation, for each pair of recordings."""

    transformation: Transformation
    relative: Summary  # ‖f(g·x) - ρ(g) f(x)‖ / ‖f(x)‖, each norm as a root mean square over what is compared
    absolute: Summary  # root mean square of f(g·x) - ρ(g) f(x), in the unit of the output; of coordinates a distance
    values: Array  # (pairs, 2): relative and absolute

    def __str__(self) -> str:
        return f"{self.transformation}: relative error: {self.relative}; absolute: {self.absolute}"


def equivariance_error(
    model: Model,
    config: Config,
    transformation: Transformation,
    *,
    acts: str | Action = "coordinates",
    count: int = 64,
    first: int = 0,
    first_step: int = 0,
    device: str = "cpu",
    batch: int = 16,
) -> Measured:
    """‖f(g·x) - ρ(g) f(x)‖ / ‖f(x)‖ on the recordings `first` to `first + count - 1` of `config` and their partners.

    acts: how ρ(g) acts on the output: `coordinates` (batch, steps, …, 2) in pixels, `T` (batch, steps, …, 3, 3),
        `heat map` (batch, steps, …, rows, columns) over the whole frame, `scores` (batch, …), which stay as they are,
        or a function of (g, f(x), (width, height)). All but scores may lack the steps: then it is the last one.
    first_step: steps before this one are not compared: for ρ they are not numbers.

    A module is measured in its evaluation mode.
    """
    act, least = action(acts)
    rows = []
    for scenes in _batches(config, first, count, batch):
        out = _output(model, backends.frames(scenes, device))
        out_g = _output(model, backends.frames(transformation(scenes), device))
        late = slice(first_step if out.ndim > least and out.shape[1] == scenes.steps else 0, None)
        settled = out.clone()
        settled[:, : late.start] = math.nan
        expected = act(transformation, settled, (scenes.width, scenes.height))
        if expected.shape != out_g.shape:
            found = f"ρ(g) f(x) has shape {tuple(expected.shape)} and f(g·x) {tuple(out_g.shape)}"
            raise GerdError(f"{found}; allowed: the same")
        rows.append(_distances(out_g[:, late], expected[:, late], out[:, late], numbers_of_one(acts)))
    values = torch.cat(rows).cpu().numpy()
    return Measured(transformation, summary(values[:, 0]), summary(values[:, 1]), values)


def invariance_error(model: Model, config: Config, transformation: Transformation, **options: Any) -> Measured:
    """‖f(g·x) - f(x)‖ / ‖f(x)‖: how much the output changes at all; options as in `equivariance_error`."""
    return equivariance_error(model, config, transformation, acts=lambda g, out, size: out, **options)


def assert_equivariant(
    model: Model,
    config: Config,
    transformation: Transformation,
    *,
    tolerance: float = math.inf,
    absolute: float = math.inf,
    **options: Any,
) -> Measured:
    """Fails unless the median error is within its bound, up to the end of its interval.

    `tolerance` bounds the relative error, `absolute` the one in the unit of the output; give one or both.
    """
    found = equivariance_error(model, config, transformation, **options)
    return _judged("equivariant", found, tolerance, absolute)


def assert_invariant(
    model: Model,
    config: Config,
    transformation: Transformation,
    *,
    tolerance: float = math.inf,
    absolute: float = math.inf,
    **options: Any,
) -> Measured:
    """Fails unless the output stays the same; bounds as in `assert_equivariant`."""
    found = invariance_error(model, config, transformation, **options)
    return _judged("invariant", found, tolerance, absolute)


def _judged(what: str, found: Measured, tolerance: float, absolute: float) -> Measured:
    if min(tolerance, absolute) == math.inf:
        raise GerdError("there is no bound to judge by: allowed are tolerance=… and absolute=…")
    if not (found.relative.interval[1] <= tolerance and found.absolute.interval[1] <= absolute):
        bounds = [f"{tolerance:g}"] * (tolerance < math.inf) + [f"{absolute:g} absolute"] * (absolute < math.inf)
        raise AssertionError(f"the model is not {what} within {' and '.join(bounds)}: {found}")
    return found


def _batches(config: Config, first: int, count: int, batch: int) -> list[Scenes]:
    if count < 1 or batch < 1:
        raise GerdError(f"count {count}, batch {batch}: allowed are whole numbers, 1 or more")
    scenes = scenes_of(config, range(first, first + count), {})
    return [scenes[begin : begin + batch] for begin in range(0, count, batch)]


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
        raise GerdError(f"the model gave {shape} for {len(frames)} recordings; allowed: a tensor with one row for each")
    if not bool(torch.isfinite(out).all()):
        raise GerdError("the model gave numbers that are not finite")
    return out.double()


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


def _distances(out_g: Tensor, expected: Tensor, out: Tensor, axes: int) -> Tensor:
    """(pairs, 2): relative and absolute. Where nothing is expected (not a number) nothing is compared."""
    known = torch.isfinite(expected)
    compared = known.flatten(1).sum(1)
    if not bool((compared > 0).all()):
        raise GerdError("nothing of f(g·x) and f(x) can be compared; allowed: longer recordings, a smaller amount")
    gap = torch.where(known, out_g - expected, 0.0).flatten(1).norm(dim=1) / compared.sqrt()
    size = out.flatten(1).square().mean(1).sqrt()
    if bool(((size == 0) & (gap > 0)).any()):
        raise GerdError("the model gave 0 throughout for a recording; an error relative to that is not defined")
    return torch.stack([gap / torch.where(size > 0, size, 1.0), gap * axes**0.5], dim=1)


def truth_error(
    model: Model,
    config: Config,
    transformation: Transformation,
    *,
    count: int = 64,
    first: int = 0,
    first_step: int = 0,
    device: str = "cpu",
    batch: int = 16,
) -> Array:
    """(count,): the mean distance in pixels from the truth of a model that gives places (batch, steps, [actors,] 2)."""
    parts = []
    for scenes in _batches(config, first, count, batch):
        seen = transformation(scenes)
        out = _output(model, backends.frames(seen, device)).cpu().numpy()
        truth = np.moveaxis(seen.trajectory.parameters(np.arange(seen.steps))[..., 0, :2], 1, 2)
        if out.shape == (*truth.shape[:2], 2):
            out = out[:, :, None]
            truth = truth[:, :, :1]
        if out.shape != truth.shape:
            allowed = f"{truth.shape} or one place per step, {(*truth.shape[:2], 2)}"
            raise GerdError(f"the model gave an output of shape {out.shape}; allowed: {allowed}")
        parts.append(np.linalg.norm(out - truth, axis=-1)[:, first_step:].mean(axis=(1, 2)))
    return np.concatenate(parts)


@dataclass(frozen=True)
class Curve:
    """Errors against the amount of a transformation: how far beyond its training a model works."""

    amounts: tuple[float, ...]
    errors: tuple[Array, ...]  # for each amount, that of each recording: (count,), or (trainings, count)
    trained: float | None = None  # the amount in the training data
    chance: Summary | None = None  # the errors of always saying the mean place, without a transformation

    @cached_property
    def summaries(self) -> list[Summary]:
        return [summary(each) for each in self.errors]

    def ratio(self) -> tuple[float, tuple[float, float]]:
        """The largest median over the smallest, and its interval: 1 if the error does not depend on the amount.

        It is never below 1, nor is its interval: that of a model whose error is the same everywhere lies above 1.
        """
        return self._from_medians(lambda found: found.max(axis=0) / np.maximum(found.min(axis=0), np.finfo(float).tiny))

    def slope(self, neutral: float = 1.0) -> tuple[float, tuple[float, float]]:
        """Error gained per factor of two in the amount, away from `neutral`: least squares, and its interval."""
        if not all(amount > 0 for amount in self.amounts):
            raise GerdError(f"amounts {self.amounts}: allowed for a slope against the logarithm are positive numbers")
        away = np.abs(np.log2(np.array(self.amounts) / neutral))
        centred = away - away.mean()
        if not centred.any():
            raise GerdError(f"amounts {self.amounts}: allowed for a slope are different distances from {neutral}")
        weights = centred / (centred**2).sum()
        return self._from_medians(lambda found: weights @ found)

    def _from_medians(self, number: Callable[[Array], Array]) -> tuple[float, tuple[float, float]]:
        """A number made of the medians (amounts, …) with its interval."""
        return float(number(np.array([np.median(each) for each in self.errors]))), interval(number(self._resampled))

    @cached_property
    def _resampled(self) -> Array:
        """(amounts, resamples): medians over resampled recordings, the same ones wherever there are as many of them."""
        tables = [np.atleast_2d(each) for each in self.errors]
        return np.array([resampled(partial(medians, table), table.shape[1]) for table in tables])


def generalisation_curve(
    model: Model,
    config: Config,
    transformations: Sequence[Transformation],
    *,
    trained: float | None = None,
    **options: Any,
) -> Curve:
    """The error against the truth for each of several amounts of one transformation, on the same recordings.

    trained: the amount in the model's training; the one that changes nothing, unless given.
    """
    if not transformations or len({g.kind for g in transformations}) > 1:
        raise GerdError("a curve goes over one kind of transformation; allowed: some of the same kind")
    found = tuple(truth_error(model, config, g, **options) for g in transformations)
    count, first = options.get("count", 64), options.get("first", 0)
    return Curve(
        tuple(g.amount for g in transformations),
        found,
        transformations[0].neutral if trained is None else trained,
        chance_error(config, first, count, options.get("first_step", 0)),
    )


def chance_error(config: Config, first: int, count: int, first_step: int = 0) -> Summary:
    """The errors in pixels of always saying the mean place."""
    scenes = scenes_of(config, range(first, first + count), {})
    places = scenes.trajectory.parameters(np.arange(scenes.steps))[:, :, first_step:, 0, :2]
    away = np.linalg.norm(places - places.mean(axis=(0, 2), keepdims=True), axis=-1)
    return summary(away.mean(axis=(1, 2)))


@dataclass(frozen=True)
class Covariance:
    """Which channel of a model suits which amount of a transformation."""

    channels: tuple[float, ...]  # what the channels are tuned to
    amounts: tuple[float, ...]
    matched: tuple[int, ...]  # for each amount, the channel that should be best
    errors: tuple[Array, ...]  # for each amount (channels, recordings): the error of a channel alone
    shares: tuple[Array, ...]  # likewise: its share in what the model says

    @property
    def counts(self) -> list[int]:
        """Recordings for each amount."""
        return [each.shape[1] for each in self.errors]

    @property
    def medians(self) -> Array:
        """(channels, amounts): the median error of a channel alone."""
        return np.stack([np.median(each, axis=1) for each in self.errors], axis=1)

    @property
    def weights(self) -> Array:
        """(channels, amounts): the mean share of a channel."""
        return np.stack([each.mean(axis=1) for each in self.shares], axis=1)

    def intervals(self) -> tuple[Array, Array]:
        """(channels, amounts, 2) each: the intervals of `medians` and of `weights`."""

        def of(tables: tuple[Array, ...], statistic: Any) -> Array:
            def ends(row: Array) -> tuple[float, float]:
                return bootstrap(lambda rows: statistic(row[rows], axis=-1), len(row))

            return np.array([[ends(row) for row in column] for column in zip(*tables, strict=True)])

        return of(self.errors, np.median), of(self.shares, np.mean)

    @property
    def best(self) -> list[int]:
        """For each amount, the channel with the smallest median error."""
        return self.medians.argmin(axis=0).tolist()

    @property
    def selected(self) -> list[int]:
        """For each amount, the channel to which the model gives the largest share."""
        return self.weights.argmax(axis=0).tolist()

    def on_diagonal(self, which: Sequence[int], within: int = 0) -> int:
        """For how many amounts a channel lies at most `within` channels from the matched one."""
        return sum(abs(found - wanted) <= within for found, wanted in zip(which, self.matched, strict=True))


class Channelled(Protocol):
    """What a network with several channels says of some recordings; `gerd.models.Reading` is one."""

    @property
    def places(self) -> Tensor: ...  # (batch, channels, steps, 2), in pixels: of each channel alone
    @property
    def weights(self) -> Tensor: ...  # (batch, channels, steps): its share in the answer


def channel_errors(
    read: Callable[[Tensor], Channelled],
    config: Config,
    transformation: Transformation,
    *,
    count: int = 64,
    first: int = 0,
    first_step: int = 0,
    device: str = "cpu",
    batch: int = 16,
) -> tuple[Array, Array]:
    """(channels, count) each: mean distances of the channels from the first actor in pixels, and their mean shares.

    `read` is a function of frames, such as `network.read` of the networks in `gerd.models`.
    """
    errors, shares = [], []
    for scenes in _batches(config, first, count, batch):
        seen = transformation(scenes)
        with torch.no_grad(), _evaluating(getattr(read, "__self__", None)):
            reading = read(backends.frames(seen, device).float())
        truth = torch.from_numpy(seen.trajectory.parameters(np.arange(seen.steps))[:, 0, :, 0, :2])
        places, weights = reading.places.double().cpu(), reading.weights.double().cpu()
        if places.shape != (len(truth), weights.shape[1], *truth.shape[1:]) or weights.shape != places.shape[:3]:
            found = f"places of shape {tuple(places.shape)} and weights of shape {tuple(weights.shape)}"
            raise GerdError(f"the model gave {found}; allowed: (batch, channels, steps, 2), and without the 2")
        errors.append((places - truth[:, None]).norm(dim=-1)[..., first_step:].mean(-1).T)
        shares.append(weights[..., first_step:].mean(-1).T)
    return torch.cat(errors, dim=1).numpy(), torch.cat(shares, dim=1).numpy()


def covariance_matrix(
    errors: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    channels: Sequence[float],
    amounts: Sequence[float],
    matched: Sequence[int],
) -> Covariance:
    """From errors and weights (channels, recordings) of each amount, as `channel_errors` gives them."""
    table = [np.asarray(each, np.float64) for each in errors]
    shares = [np.asarray(each, np.float64) for each in weights]
    if not len(table) == len(shares) == len(amounts) == len(matched):
        raise GerdError("errors, weights, amounts and matched channels: allowed is one of each for every amount")
    for each, share in zip(table, shares, strict=True):
        if each.ndim != 2 or each.shape[0] != len(channels) or each.shape != share.shape or each.shape[1] == 0:
            wanted = f"({len(channels)}, recordings) of both, with one recording or more"
            raise GerdError(f"errors of shape {each.shape} and weights of shape {share.shape}; allowed: {wanted}")
    return Covariance(
        tuple(channels),
        tuple(amounts),
        tuple(matched),
        tuple(table),
        tuple(shares),
    )

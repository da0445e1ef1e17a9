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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gerd.config import Config
from gerd.effect import RESAMPLES, TAILS, Effect, Summary, bootstrap, effect_size, summary, wilcoxon
from gerd.errors import GerdError
from gerd.scene import Scenes
from gerd.simulation import scenes_of
from gerd.transformation import Transformation, frames_of

Array = NDArray[np.float64]
Model = Callable[[Tensor], Tensor]
Action = Callable[[Transformation, Tensor, tuple[int, int]], Tensor]  # g, f(x), (width, height) → ρ(g) f(x)

__all__ = [
    "Action",
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
    relative: Summary  # ‖f(g·x) - ρ(g) f(x)‖ / ‖f(x)‖
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
    """
    act = _action(acts)
    rows = []
    for scenes in _batches(config, first, count, batch):
        out = _output(model, frames_of(scenes, device))
        out_g = _output(model, frames_of(transformation(scenes), device))
        late = slice(first_step if out.ndim > 1 and out.shape[1] == scenes.steps else 0, None)
        settled = out.clone()
        settled[:, : late.start] = math.nan
        expected = act(transformation, settled, (scenes.width, scenes.height))
        if expected.shape != out_g.shape:
            found = f"ρ(g) f(x) has shape {tuple(expected.shape)} and f(g·x) {tuple(out_g.shape)}"
            raise GerdError(f"{found}; allowed: the same")
        rows.append(_distances(out_g[:, late], expected[:, late], out[:, late], _axes(acts)))
    values = torch.cat(rows).cpu().numpy()
    return Measured(transformation, summary(values[:, 0]), summary(values[:, 1]), values)


def invariance_error(model: Model, config: Config, transformation: Transformation, **options: Any) -> Measured:
    """‖f(g·x) - f(x)‖ / ‖f(x)‖: how much the output changes at all; options as in `equivariance_error`."""
    return equivariance_error(model, config, transformation, acts=lambda g, out, size: out, **options)


def assert_equivariant(
    model: Model, config: Config, transformation: Transformation, *, tolerance: float, **options: Any
) -> Measured:
    """Fails unless the median of the relative error is within `tolerance`, up to the end of its interval."""
    return _judged("equivariant", equivariance_error(model, config, transformation, **options), tolerance)


def assert_invariant(
    model: Model, config: Config, transformation: Transformation, *, tolerance: float, **options: Any
) -> Measured:
    """Fails unless the output stays the same within `tolerance`, up to the end of the interval of the median."""
    return _judged("invariant", invariance_error(model, config, transformation, **options), tolerance)


def _judged(what: str, found: Measured, tolerance: float) -> Measured:
    if not found.relative.interval[1] <= tolerance:
        raise AssertionError(f"the model is not {what} within {tolerance:g}: {found}")
    return found


def _batches(config: Config, first: int, count: int, batch: int) -> list[Scenes]:
    if count < 1 or batch < 1:
        raise GerdError(f"count {count}, batch {batch}: allowed are whole numbers, 1 or more")
    scenes = scenes_of(config, range(first, first + count), {})
    return [scenes[begin : begin + batch] for begin in range(0, count, batch)]


def _output(model: Model, frames: Tensor) -> Tensor:
    with torch.no_grad():
        out = model(frames.float())
    if not isinstance(out, Tensor) or len(out) != len(frames):
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise GerdError(f"the model gave {shape} for {len(frames)} recordings; allowed: a tensor with one row for each")
    if not bool(torch.isfinite(out).all()):
        raise GerdError("the model gave numbers that are not finite")
    return out.double()


def _distances(out_g: Tensor, expected: Tensor, out: Tensor, axes: int) -> Tensor:
    """(pairs, 2): relative and absolute. Where nothing is expected (not a number) nothing is compared."""
    known = torch.isfinite(expected)
    gap = torch.where(known, out_g - expected, 0.0).flatten(1)
    size = torch.where(known, out, 0.0).flatten(1).norm(dim=1)
    compared = known.flatten(1).sum(1) / axes
    if not bool((compared > 0).all()):
        raise GerdError("there is no step at which f(g·x) and f(x) can be compared; allowed: longer recordings")
    length = gap.norm(dim=1)
    return torch.stack([length / size.clamp(min=torch.finfo(size.dtype).tiny), length / compared.sqrt()], dim=1)


def _axes(acts: str | Action) -> int:
    """How many numbers of the output make one: the absolute error of coordinates is a distance in the plane."""
    return 2 if acts == "coordinates" else 1


def _action(acts: str | Action) -> Action:
    if callable(acts):
        return acts
    built_in: dict[str, Action] = {
        "coordinates": act_on_coordinates,
        "T": act_on_matrices,
        "heat map": act_on_heat_maps,
        "scores": act_on_scores,
    }
    if acts not in built_in:
        raise GerdError(f"acts {acts!r}: allowed: {', '.join(built_in)}, or a function")
    return built_in[acts]


def act_on_coordinates(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """Places (batch, steps, …, 2), or (batch, 2) at the last step."""
    out, G = _retimed(g, out, 2), _matrices(g, out, size, 2)
    return (G[..., :2, :2] @ out[..., None])[..., 0] + G[..., :2, 2]


def act_on_matrices(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """T (batch, steps, …, 3, 3), or (batch, 3, 3) at the last step: G·T."""
    return _matrices(g, out, size, 3) @ _retimed(g, out, 3)


def act_on_heat_maps(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """Maps (batch, steps, …, rows, columns) of the whole frame: at p the value that was at G⁻¹p, interpolated."""
    flat = _retimed(g, out, 3)
    if not g.moves:
        return flat
    width, height = size
    rows, columns = out.shape[-2:]
    back = torch.linalg.inv(_matrices(g, out, size, 3))
    x = (torch.arange(columns, device=out.device, dtype=out.dtype) + 0.5) * (width / columns)
    y = (torch.arange(rows, device=out.device, dtype=out.dtype) + 0.5) * (height / rows)
    here = torch.stack([x.expand(rows, columns), y[:, None].expand(rows, columns)], dim=-1)
    source = torch.einsum("...ij,rcj->...rci", back[..., :2, :2], here) + back[..., None, None, :2, 2]
    frame = torch.tensor([width, height], device=out.device, dtype=out.dtype)
    maps = flat.reshape(-1, 1, rows, columns)
    grid = (source * 2 / frame - 1).expand(*out.shape, 2).reshape(-1, rows, columns, 2)
    half = torch.tensor([1 / columns, 1 / rows], device=out.device, dtype=out.dtype)  # beyond the last centres
    outside = (grid.abs() > 1 - half + 1e-9).any(-1)
    moved = F.grid_sample(maps, grid, mode="bilinear", padding_mode="border", align_corners=False)[:, 0]
    return moved.masked_fill(outside, math.nan).reshape(out.shape)


def act_on_scores(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG001
    """Scores (batch, classes), which stay; or (batch, steps, classes), which follow the time scale."""
    return _retimed(g, out, 2)


def _matrices(g: Transformation, out: Tensor, size: tuple[int, int], least: int) -> Tensor:
    """G at each step of an output, shaped to act on it; `least` is the number of its axes without steps."""
    steps = out.shape[1] if out.ndim > least else 1
    last = g.frame(*size).G(np.arange(steps) if out.ndim > least else _last_step(g))
    G = torch.from_numpy(last).to(out.device, out.dtype)
    return G.reshape(steps, *[1] * max(0, out.ndim - least - 1), 3, 3) if out.ndim > least else G[0]


def _last_step(g: Transformation) -> list[float]:
    if any(g.velocity) or any(g.acceleration):
        raise GerdError(f"{g}: acts differently at each step; allowed is an output (batch, steps, …)")
    return [0.0]


def _retimed(g: Transformation, out: Tensor, least: int) -> Tensor:
    """f(x) at s·t for each step t, between steps interpolated; not a number where the recording had ended."""
    s = g.time_scale
    if s == 1.0:
        return out
    if out.ndim <= least:
        raise GerdError(f"{g}: compares different steps; allowed is an output (batch, steps, …)")
    at = torch.arange(out.shape[1], device=out.device, dtype=out.dtype) * s
    low = at.floor().long().clamp(max=out.shape[1] - 1)
    high = (low + 1).clamp(max=out.shape[1] - 1)
    share = (at - low).reshape(-1, *[1] * (out.ndim - 2))
    mixed = out[:, low] * (1 - share) + out[:, high] * share
    return torch.where((at <= out.shape[1] - 1).reshape(share.shape), mixed, math.nan)


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
        out = _output(model, frames_of(seen, device)).cpu().numpy()
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
    errors: tuple[Array, ...]  # for each amount, that of each recording
    trained: float | None = None  # the amount in the training data
    chance: float | None = None  # the error of the best answer that does not look at the events

    @property
    def summaries(self) -> list[Summary]:
        return [summary(each) for each in self.errors]

    @property
    def ratio(self) -> float:
        """The largest median over the smallest: 1 if the error does not depend on the amount."""
        medians = [float(np.median(each)) for each in self.errors]
        return max(medians) / max(min(medians), np.finfo(float).tiny)

    def slope(self, neutral: float = 1.0) -> tuple[float, tuple[float, float]]:
        """Error gained per factor of two in the amount, away from `neutral`: least squares, and its interval."""
        if not all(amount > 0 for amount in self.amounts):
            raise GerdError(f"amounts {self.amounts}: allowed for a slope against the logarithm are positive numbers")
        away = np.abs(np.log2(np.array(self.amounts) / neutral))
        centred = away - away.mean()
        if not centred.any():
            raise GerdError(f"amounts {self.amounts}: allowed for a slope are different distances from {neutral}")
        weights = centred / (centred**2).sum()
        rng = np.random.default_rng(0)
        medians = [np.median(each[rng.integers(0, len(each), (RESAMPLES, len(each)))], axis=1) for each in self.errors]
        low, high = np.quantile(weights @ np.array(medians), TAILS).tolist()
        return float(weights @ [np.median(each) for each in self.errors]), (low, high)


def generalisation_curve(
    model: Model, config: Config, transformations: Sequence[Transformation], **options: Any
) -> Curve:
    """The error against the truth for each of several amounts of one transformation, on the same recordings."""
    if not transformations or len({g.kind for g in transformations}) > 1:
        raise GerdError("a curve goes over one kind of transformation; allowed: some of the same kind")
    found = tuple(truth_error(model, config, g, **options) for g in transformations)
    count, first = options.get("count", 64), options.get("first", 0)
    return Curve(
        tuple(g.amount for g in transformations),
        found,
        transformations[0].neutral,
        chance_error(config, first, count, options.get("first_step", 0)),
    )


def chance_error(config: Config, first: int, count: int, first_step: int = 0) -> float:
    """The median error in pixels of always saying the mean place."""
    scenes = scenes_of(config, range(first, first + count), {})
    places = scenes.trajectory.parameters(np.arange(scenes.steps))[:, :, first_step:, 0, :2]
    away = np.linalg.norm(places - places.mean(axis=(0, 2), keepdims=True), axis=-1)
    return float(np.median(away.mean(axis=(1, 2))))


@dataclass(frozen=True)
class Covariance:
    """Which channel of a model suits which amount of a transformation."""

    channels: tuple[float, ...]  # what the channels are tuned to
    amounts: tuple[float, ...]
    matched: tuple[int, ...]  # for each amount, the channel that should be best
    count: int  # recordings for each amount
    medians: Array  # (channels, amounts): the error of a channel alone
    weights: Array  # (channels, amounts): its mean share in what the model says

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


def covariance_matrix(
    errors: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    channels: Sequence[float],
    amounts: Sequence[float],
    matched: Sequence[int],
) -> Covariance:
    """From errors and weights (channels, recordings) of each amount."""
    table = [np.asarray(each, np.float64) for each in errors]
    shares = [np.asarray(each, np.float64) for each in weights]
    if not len(table) == len(shares) == len(amounts) == len(matched) or any(len(e) != len(channels) for e in table):
        raise GerdError("errors, weights, amounts and matched channels: allowed is one of each for every amount")
    return Covariance(
        tuple(channels),
        tuple(amounts),
        tuple(matched),
        table[0].shape[1],
        np.stack([np.median(each, axis=1) for each in table], axis=1),
        np.stack([each.mean(axis=1) for each in shares], axis=1),
    )

"""What follows from the errors: results in, comparisons and sentences out.

Nothing is concluded from fewer than LEAST trainings of a network, from short ones, nor of one that has learnt nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gerd.errors import counted
from gerd.measures.chance import surely_below
from gerd.measures.curves import Invariance
from gerd.measures.statistics import Effect, effect_size
from gerd.studies.demonstration.trials import (
    BASELINE,
    EQUAL,
    EVIDENCE,
    SCALES,
    SHORTER,
    SHORTEST,
    SIZES,
    SPEEDS,
    TRAINED,
    UNSEEN,
    WEIGHTED,
    choices_of,
    said,
)
from gerd.studies.lab.comparison import LARGE, Comparison, compared, each_seed
from gerd.studies.lab.drawing import capitalised, flatness, smaller
from gerd.studies.lab.results import Results

LEAST = 3  # trainings of each network
LEAST_UPDATES = 1000  # in each: after 220 of a small network, five channels were not yet better than one at most speeds
SLOWER = tuple(scale for scale in SCALES if scale < TRAINED)
FASTER = tuple(scale for scale in SCALES if scale > TRAINED)[::-1]  # each the inverse of the slower one at its place


def versus(results: Results, reference: str, model: str) -> list[Comparison]:
    """How much smaller the errors of `model` are than those of `reference`, at each scale."""
    theirs, ours = results.curve(reference, SPEEDS, beside=model), results.curve(model, SPEEDS, beside=reference)
    return compared(theirs, ours)


def no_conclusion(results: Results, *models: str) -> str:
    """Why nothing can be concluded of some networks; empty if something can."""
    for model in models:
        if model not in results.models:
            return f"{said(results, model)} was not trained"
    done = results.settings.size.updates
    if done < LEAST_UPDATES:
        return f"{counted(done, 'update')} in each training, and {LEAST_UPDATES} are the least"
    common = set.intersection(*({run.seed for run in results.of(model)} for model in models))
    if len(common) < LEAST:
        return f"{counted(len(common), 'training')} of each, and {LEAST} are the least"
    for model in models:
        curve = results.curve(model, SPEEDS)
        place = SCALES.index(TRAINED)
        seeds = curve.errors[place]
        if lost := sum(not surely_below(errors, curve.chance[place]) for errors in seeds):
            return f"{said(results, model)} at chance at s = 1 in {lost} of {counted(len(seeds), 'seed')}"
    return ""


@dataclass(frozen=True)
class Outcome:
    """A network against a reference at the unseen scales."""

    comparisons: list[Comparison]  # at the unseen scales
    trained: Comparison  # at the scale of the training

    @property
    def better(self) -> list[float]:
        """Where the network is surely better in every seed."""
        return [each.amount for each in self.comparisons if each.better]

    @property
    def worse(self) -> list[float]:
        return [each.amount for each in self.comparisons if each.worse]

    @property
    def lost(self) -> list[float]:
        """Where both are at chance in some seed."""
        return [each.amount for each in self.comparisons if each.at_chance]

    @property
    def large(self) -> list[float]:
        """Where d is large in every seed."""
        return [each.amount for each in self.comparisons if each.large]

    @property
    def smallest(self) -> tuple[Effect, float]:
        """The smallest d of all seeds and unseen scales, and where it is."""
        every = [(effect, each.amount) for each in self.comparisons for effect in each.effects]
        return min(every, key=lambda pair: pair[0].d)

    @property
    def seeds(self) -> str:
        return counted(len(self.trained.effects), "seed")

    def counts(self) -> str:
        """Better and worse in words."""
        better, worse = _which(self.better), _which(self.worse)
        neither = f", both at chance at {_which(self.lost)}," if self.lost else ""
        return f"surely better at {better} and surely worse at {worse}{neither} of {len(UNSEEN)} unseen scales"


def outcome(results: Results, reference: str, model: str) -> Outcome:
    every = versus(results, reference, model)
    unseen = [each for each in every if each.amount != TRAINED]
    return Outcome(unseen, next(each for each in every if each.amount == TRAINED))


def _which(scales: Sequence[float]) -> str:
    """How many of the unseen scales, and which if not all or none."""
    listed = f" (s = {', '.join(f'{scale:g}' for scale in scales)})" if 0 < len(scales) < len(UNSEEN) else ""
    return f"{len(scales)}{listed}"


def _d(found: Outcome) -> str:
    """The smallest d in words."""
    effect, scale = found.smallest
    low, high = effect.d_interval
    return f"smallest d {effect.d:.2f} ({low:.2f} to {high:.2f}), at s = {scale:g}"


def opening(results: Results) -> list[str]:
    """Three sentences: the paper's claim, on what it depends, and how far it goes."""
    return [_claim(results), _against_shortest(results), _how_flat(results)]


def _claim(results: Results) -> str:
    """The paper: the invariant network substantially outperforms the baseline as the velocity deviates."""
    five = f"{said(results, WEIGHTED)} (weighted sum, weights learnt)"
    baseline = f"{said(results, BASELINE)}, the baseline"
    if reason := no_conclusion(results, WEIGHTED, BASELINE):
        return f"Whether {five} work better at unseen speeds than {baseline}: no conclusion ({reason})."
    found = outcome(results, BASELINE, WEIGHTED)
    result = "The paper's result"
    if smaller(results, SIZES["full"]):
        result = "In this smaller experiment the paper's result"
    large = f"{_which(found.large)} of {len(UNSEEN)} unseen scales ({_d(found)})"
    numbers = f"against {baseline}, {five} have d > {LARGE} in every one of {found.seeds} at {large}"
    numbers = f"{numbers}, and are {found.counts()}"
    if len(found.large) == len(UNSEEN):
        return f"{result} holds: {numbers}."
    if len(found.better) == len(UNSEEN):
        return f"{result} holds, but not with a large effect everywhere: {numbers}."
    if len(found.better) > len(found.worse):
        return f"{result} holds at some speeds only: {numbers}."
    return f"{result} is not found: {numbers}."


def _against_shortest(results: Results) -> str:
    """What the paper does not test: another time constant of the baseline."""
    alone, five = said(results, SHORTEST), said(results, WEIGHTED)
    if reason := no_conclusion(results, SHORTEST, WEIGHTED):
        return f"Whether {alone} does better than {five}: no conclusion ({reason})."
    found = outcome(results, WEIGHTED, SHORTEST)
    at_one = "surely better" if found.trained.better else "surely worse" if found.trained.worse else "neither"
    numbers = (
        f"{alone} is {found.counts()} than {five}, in every one of {found.seeds} ({_d(found)}); at s = 1 it is {at_one}"
    )
    if len(found.better) == len(UNSEEN):
        return f"But the baseline's μ decides: {numbers}."
    if found.better:
        return f"The baseline's μ matters: {numbers}."
    return f"Another μ of the baseline does not change that: {numbers}."


def invariances(results: Results, model: str) -> list[Invariance]:
    """How little the error depends on the scale, in each seed."""
    return [curve.invariance() for curve in each_seed(results.curve(model, SPEEDS))]


def _how_flat(results: Results) -> str:
    """By how much the error grows away from the training: the paper calls the five channels robust and accurate."""
    models = [model for model in (WEIGHTED, BASELINE, SHORTEST) if model in results.models]
    parts = [f"{flatness(invariances(results, model))} for {said(results, model)}" for model in models]
    speeds = f"From {SCALES[0]:g} to {SCALES[-1]:g} times the speed of the training"
    return f"{speeds} the median error varies by a factor of {', of '.join(parts)}."


def conclusions(results: Results) -> list[str]:
    """What else the paper says of its figure, and the other networks."""
    lines = [_slower(results), _best_at_training(results)]
    lines += [_other(results, model) for model in (SHORTER, EQUAL, EVIDENCE) if model in results.models]
    if WEIGHTED not in results.models:
        return lines
    lines.append(_shares(results))
    if learnt := [mu for run in results.of(WEIGHTED) for mu in run.learnt]:
        ends = f"{min(learnt):.1f} to {max(learnt):.1f}"
        began = choices_of(results).middle
        lines.append(f"The middle time constants have been learnt as {ends} steps; they began at {began:g}.")
    return lines


def _slower(results: Results) -> str:
    """The paper: at lower velocities the baseline is comparatively strong, but the advantage is limited."""
    baseline, five = said(results, BASELINE), said(results, WEIGHTED)
    if reason := no_conclusion(results, WEIGHTED, BASELINE):
        return f"Whether the baseline is comparatively strong at lower velocities: no conclusion ({reason})."
    smaller, nearer = slower_than_faster(results)
    holds = "holds" if smaller == nearer == len(SLOWER) else "holds in part" if smaller + nearer else "does not hold"
    better = [scale for scale in outcome(results, BASELINE, WEIGHTED).better if scale in SLOWER]
    return (
        f"That the baseline is comparatively strong at lower velocities {holds}: the error of {baseline} is surely "
        f"smaller at the slower of two speeds s and 1/s in {smaller} of {len(SLOWER)} pairs, and so is in {nearer} "
        f"what it lies behind {five}, in pixels. At the lower velocities {five} are surely better than it at "
        f"{len(better)} of {len(SLOWER)}."
    )


def slower_than_faster(results: Results) -> tuple[int, int]:
    """In how many pairs of speeds the slower one is surely better: the baseline's error, and how far it is behind."""
    theirs = results.curve(BASELINE, SPEEDS, beside=WEIGHTED)
    ours = results.curve(WEIGHTED, SPEEDS, beside=BASELINE)
    smaller = 0
    nearer = 0
    for slow, fast in zip(SLOWER, FASTER, strict=True):
        slow_place, fast_place = SCALES.index(slow), SCALES.index(fast)
        pairs = zip(theirs.errors[fast_place], theirs.errors[slow_place], strict=True)
        smaller += all(effect_size(a, b).difference_interval[0] > 0 for a, b in pairs)
        behind = [their - our for their, our in zip(theirs.errors, ours.errors, strict=True)]
        pairs = zip(behind[fast_place], behind[slow_place], strict=True)
        nearer += all(effect_size(a, b).difference_interval[0] > 0 for a, b in pairs)
    return smaller, nearer


def _best_at_training(results: Results) -> str:
    parts = []
    for model in (WEIGHTED, BASELINE):
        if model in results.models:
            runs = results.of(model)
            best = [SCALES[int(np.argmin([np.mean(each) for each in run.test(SPEEDS).errors]))] for run in runs]
            parts.append(f"{said(results, model)} in {best.count(TRAINED)} of {counted(len(best), 'seed')}")
    return f"The smallest mean error is at the speed of the training with {' and with '.join(parts)}."


def _other(results: Results, model: str) -> str:
    """Another network against the five channels with their weighted sum."""
    name = capitalised(said(results, model))
    five = f"{said(results, WEIGHTED)} with their weighted sum"
    if reason := no_conclusion(results, WEIGHTED, model):
        return f"{name} against {five}: no conclusion ({reason})."
    found = outcome(results, WEIGHTED, model)
    return f"{name} against {five}: {found.counts()}, in every one of {found.seeds}."


def _shares(results: Results) -> str:
    shares = np.array([run.shares for run in results.of(WEIGHTED)])
    numbers = zip(choices_of(results).mus, shares.mean(0), shares.min(0), shares.max(0), strict=True)
    each = ", ".join(f"{middle:.2f} ({low:.2f} to {high:.2f}) for μ = {mu:g}" for mu, middle, low, high in numbers)
    return (
        f"The learnt weights of the sum are {each}: means of the seeds, the lowest and the highest; they began at 0.2."
    )

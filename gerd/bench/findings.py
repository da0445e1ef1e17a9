"""From errors of recordings to the numbers of the benchmark: arrays in, `FactorResult` out; no network is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.bench.results import LEARNT, FactorResult, Number, verdict_of
from gerd.measures.chance import surely_below
from gerd.measures.curves import Curve
from gerd.measures.statistics import interval as ends_of
from gerd.measures.statistics import means, resampled

Array = NDArray[np.float64]

REFERENCE = "relu-8"  # the network whose errors are 1 in the mean transformation error


@dataclass(frozen=True)
class Outcome:
    """The networks of all seeds on one split; recordings in which nothing counts are left out."""

    errors: Array  # (seeds, recordings)
    chance: Array  # (recordings,)

    @classmethod
    def of(cls, errors: Array, chance: Array) -> Outcome:
        known = np.isfinite(chance)
        return cls(errors[:, known], chance[known])


def factor_result(
    factor: str, unit: str, neutral: float, trained: Sequence[float], tested: Mapping[float, Outcome]
) -> FactorResult:
    """What the errors at each amount say of one factor."""
    amounts = tuple(tested)
    chance = tuple(each.chance for each in tested.values())
    whole = Curve(amounts, tuple(each.errors for each in tested.values()), neutral, chance, middle="mean")
    seeds = range(len(next(iter(tested.values())).errors))
    alone = [replace(whole, errors=tuple(each[seed] for each in whole.errors)) for seed in seeds]
    lost = {amount for curve in alone for amount in _at_chance(curve)}
    at_chance = tuple(amount for amount in amounts if amount in lost)
    factor_of, ends = whole.ratio()
    ratio = Number(_rounded(factor_of), (_rounded(ends[0]), _rounded(ends[1])), min(map(len, chance)))
    return FactorResult(
        factor=factor,
        unit=unit,
        neutral=neutral,
        trained=tuple(trained),
        amounts=amounts,
        errors=_numbers(whole),
        of_seeds=tuple(_numbers(curve) for curve in alone),
        chance=tuple(_rounded(each.mean()) for each in chance),
        at_chance=at_chance,
        ratio=ratio,
        verdict=verdict_of(ratio, neutral, at_chance),
    )


def _at_chance(curve: Curve) -> set[float]:
    """The amounts at which the mean error is not surely below LEARNT of that of chance."""
    each = zip(curve.amounts, curve.errors, curve.chance, strict=True)
    return {amount for amount, errors, chance in each if not surely_below(errors, LEARNT * chance)}


def _numbers(curve: Curve) -> tuple[Number, ...]:
    counts = (each.shape[-1] for each in curve.errors)
    return tuple(
        Number(_rounded(value), (_rounded(low), _rounded(high)), count)
        for value, (low, high), count in zip(curve.middles, curve.intervals(), counts, strict=True)
    )


def number_of(errors: Array) -> Number:
    """The mean of errors (seeds, recordings) with its interval."""
    low, high = ends_of(resampled(partial(means, errors), errors.shape[1]))
    return Number(_rounded(errors.mean()), (_rounded(low), _rounded(high)), errors.shape[1])


def transformation_error(
    tested: Mapping[str, Mapping[float, Outcome]], reference: Mapping[str, Mapping[float, float]]
) -> Number:
    """mTE: the mean over factors of Σ error / Σ error of the reference network; sums are over the amounts.

    reference: for each factor and amount the frozen mean error of the reference network, which has the mTE 1.
    """
    shares = [_share(amounts, reference[factor]) for factor, amounts in tested.items()]
    values, samples = zip(*shares, strict=True)
    low, high = ends_of(np.mean(samples, axis=0))
    counts = [each.errors.shape[1] for amounts in tested.values() for each in amounts.values()]
    return Number(_rounded(np.mean(values)), (_rounded(low), _rounded(high)), min(counts))


def _share(tested: Mapping[float, Outcome], reference: Mapping[float, float]) -> tuple[float, Array]:
    """Σ error / Σ error of the reference for one factor, and the same of resamples."""
    whole = sum(reference[amount] for amount in tested)
    drawn = [resampled(partial(means, each.errors), each.errors.shape[1]) for each in tested.values()]
    return sum(float(each.errors.mean()) for each in tested.values()) / whole, np.sum(drawn, axis=0) / whole


def _rounded(value: float | np.floating[Any]) -> float:
    """As it is written: to six digits behind the point, of which the last may be rounding."""
    return round(min(float(value), 1e9), 6)

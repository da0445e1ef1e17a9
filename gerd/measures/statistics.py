"""Samples of numbers: what is in them, in short, and how two of them differ. Every number comes with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.errors import GerdError

Array = NDArray[np.float64]

RESAMPLES = 2000  # of a bootstrap
MOST = 2**22  # numbers drawn at once
EXACT_UP_TO = 50  # differences, as in SciPy: up to here Wilcoxon's test counts all signs that they could have
TAILS = (0.025, 0.975)  # what an interval leaves out: it has 95 %
NORMAL_TAIL = NormalDist().inv_cdf(TAILS[1])
LEAST = 6  # recordings of a verdict: all of fewer are on one side of the true median with more than 5 % (2 · 2^-n)


@dataclass(frozen=True)
class Summary:
    """Some numbers of the same kind, in short."""

    count: int
    mean: float
    sd: float
    median: float
    quartiles: tuple[float, float]
    interval: tuple[float, float]  # of the median

    def __str__(self) -> str:
        low, high = self.interval
        return f"median {self.median:.4g} (95 % interval {low:.4g} to {high:.4g}, n = {self.count})"


@dataclass(frozen=True)
class Estimate:
    """A number that was made of a sample."""

    value: float
    interval: tuple[float, float]
    count: int

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4g} (95 % interval {low:.4g} to {high:.4g}, n = {self.count})"


def estimate(statistic: Callable[[NDArray[np.int64]], Array], count: int) -> Estimate:
    """A statistic of a sample with its interval; `statistic` is as in `bootstrap`."""
    return Estimate(float(statistic(np.arange(count))), bootstrap(statistic, count), count)


def summary(values: ArrayLike) -> Summary:
    """Mean, median, quartiles and the interval of the median.

    values: (count,), or (repeats, count) for repeats on the same `count` things: what is resampled is the things.
    """
    numbers = np.asarray(values, np.float64)
    _sample(numbers.ravel() if numbers.ndim == 2 else numbers)
    table = np.atleast_2d(numbers)
    low, high = np.quantile(table, [0.25, 0.75]).tolist()
    sd = float(table.std(ddof=1)) if table.size > 1 else 0.0
    ends = bootstrap(partial(medians, table), table.shape[1])
    return Summary(table.shape[1], float(table.mean()), sd, float(np.median(table)), (low, high), ends)


def medians(table: Array, rows: NDArray[np.int64]) -> Array:
    """The median of everything in (repeats, count), for each of some resamples: rows (resamples, count)."""
    result: Array = np.median(table[:, rows], axis=(0, 2))
    return result


def means(table: Array, rows: NDArray[np.int64]) -> Array:
    """The mean of everything in (repeats, count), for each of some resamples: rows (resamples, count)."""
    result: Array = table.mean(axis=0)[rows].mean(axis=-1)
    return result


def bootstrap(statistic: Callable[[NDArray[np.int64]], Array], count: int, seed: int = 0) -> tuple[float, float]:
    """The interval of a statistic of a sample: it takes rows (resamples, count) and gives a number for each."""
    return interval(resampled(statistic, count, seed))


def resampled(statistic: Callable[[NDArray[np.int64]], Array], count: int, seed: int = 0) -> Array:
    """(…, RESAMPLES): a statistic of resamples; two samples of the same size are resampled in the same way."""
    draws = np.random.default_rng(seed)
    at_once = max(1, MOST // count)
    numbers = [min(at_once, RESAMPLES - begin) for begin in range(0, RESAMPLES, at_once)]
    return np.concatenate([statistic(draws.integers(0, count, (number, count))) for number in numbers], axis=-1)


def interval(values: Array) -> tuple[float, float]:
    """What lies between the tails of resampled numbers, of which some may be infinite."""
    low, high = np.quantile(values, TAILS, method="inverted_cdf").tolist()
    return low, high


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share, of which `hits` of `count` were seen: Wilson's, which is sound at 0 and 1, too."""
    if not 0 <= hits <= count or count < 1:
        raise GerdError(f"{hits} of {count}: allowed: a share of one or more")
    z = NORMAL_TAIL
    share = hits / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    whole = 1 + z * z / count
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)


def _sample(values: ArrayLike) -> Array:
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or len(numbers) == 0 or not np.isfinite(numbers).all():
        raise GerdError(f"a sample of shape {numbers.shape}: allowed: a list of finite numbers, one or more")
    return numbers


@dataclass(frozen=True)
class Effect:
    """How much smaller the errors `b` are than the errors `a` of the same recordings."""

    count: int
    difference: float  # mean of a - b, in the unit of the errors
    difference_interval: tuple[float, float]
    d: float  # Cohen's, with the pooled SD over samples
    d_interval: tuple[float, float]
    d_z: float  # mean of a - b over its own SD: of pairs
    d_z_interval: tuple[float, float]
    p: float  # Wilcoxon's signed-rank test, two-sided

    def __str__(self) -> str:
        (low, high), (d_low, d_high), (z_low, z_high) = self.difference_interval, self.d_interval, self.d_z_interval
        return (
            f"{self.difference:.3g} ({low:.3g} to {high:.3g}); d = {self.d:.2f} ({d_low:.2f} to {d_high:.2f}), "
            f"d_z = {self.d_z:.2f} ({z_low:.2f} to {z_high:.2f}), p = {self.p:.2g}, n = {self.count}"
        )


def effect_size(a: ArrayLike, b: ArrayLike) -> Effect:
    """Errors `a` against errors `b` of another model on the same recordings, in the same order."""
    first, second = _sample(a), _sample(b)
    if len(first) != len(second) or len(first) < 2:
        raise GerdError(f"{len(first)} and {len(second)} errors: allowed: two or more pairs")

    def statistics(rows: NDArray[np.int64]) -> Array:
        x, y = first[rows], second[rows]
        mean = (x - y).mean(axis=-1)
        pooled = np.sqrt((x.var(axis=-1, ddof=1) + y.var(axis=-1, ddof=1)) / 2)
        return np.stack([mean, _ratio(mean, pooled), _ratio(mean, (x - y).std(axis=-1, ddof=1))])

    difference, d, d_z = statistics(np.arange(len(first))).tolist()
    ends = [interval(each) for each in resampled(statistics, len(first))]
    return Effect(len(first), difference, ends[0], d, ends[1], d_z, ends[2], wilcoxon(first - second))


def _ratio(top: Array, bottom: Array) -> Array:
    """top / bottom; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), 0.0, np.asarray(top) / bottom)


def wilcoxon(differences: ArrayLike) -> float:
    """The two-sided p of the signed-rank test; zeros are left out, ties share ranks.

    It is exact for up to EXACT_UP_TO differences other than 0, and by the normal approximation for more.
    """
    numbers = _sample(differences)
    numbers = numbers[numbers != 0]
    if len(numbers) == 0:
        return 1.0
    _, group, sizes = np.unique(np.abs(numbers), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(sizes) - sizes + 1)[group]  # twice the ranks, which ties make halves
    above = int(doubled[numbers > 0].sum())
    if len(numbers) <= EXACT_UP_TO:
        return _signed_rank_p(doubled, above)
    spread = math.sqrt(float((doubled.astype(np.float64) ** 2).sum()))
    return math.erfc(abs(2 * above - int(doubled.sum())) / spread / math.sqrt(2))


def _signed_rank_p(ranks: NDArray[np.int64], above: int) -> float:
    """How likely it is that ranks with random signs are as one-sided as those of which the positive sum to `above`."""
    total = int(ranks.sum())
    choices = np.zeros(total + 1)  # choices[s]: in how many ways some of the ranks sum to s
    choices[0] = 1
    for rank in ranks.tolist():
        choices[rank:] = choices[rank:] + choices[:-rank]
    tail = float(choices[: min(above, total - above) + 1].sum())
    return min(1.0, 2 * tail / 2 ** len(ranks))

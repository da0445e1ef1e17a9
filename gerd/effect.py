"""Samples of numbers: what is in them, in short, and how two of them differ. Every number comes with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.errors import GerdError

Array = NDArray[np.float64]

RESAMPLES = 2000  # of a bootstrap
TAILS = (0.025, 0.975)  # what an interval leaves out: it has 95 %


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


def summary(values: ArrayLike) -> Summary:
    """Mean, median, quartiles and the interval of the median.

    values: (count,), or (repeats, count) for repeats on the same `count` things: what is resampled is the things.
    """
    numbers = np.asarray(values, np.float64)
    _sample(numbers.ravel() if numbers.ndim == 2 else numbers)
    table = np.atleast_2d(numbers)
    low, high = np.quantile(table, [0.25, 0.75]).tolist()
    sd = float(table.std(ddof=1)) if table.size > 1 else 0.0
    interval = bootstrap(lambda rows: medians(table, rows), table.shape[1])
    return Summary(table.shape[1], float(table.mean()), sd, float(np.median(table)), (low, high), interval)


def medians(table: Array, rows: NDArray[np.int64]) -> Array:
    """The median of everything in (repeats, count), for each of some resamples: rows (resamples, count)."""
    found: Array = np.median(table[:, rows], axis=(0, 2))
    return found


def bootstrap(statistic: Callable[[NDArray[np.int64]], Array], count: int, seed: int = 0) -> tuple[float, float]:
    """The interval of a statistic by resampling: `statistic` takes rows (resamples, count) of the sample."""
    low, high = np.quantile(statistic(resamples(count, seed)), TAILS).tolist()
    return low, high


@lru_cache(maxsize=4)
def resamples(count: int, seed: int = 0) -> NDArray[np.int64]:
    """(RESAMPLES, count): rows of a sample, drawn with replacement."""
    rows = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    rows.setflags(write=False)
    return rows


def _sample(values: ArrayLike) -> Array:
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or len(numbers) == 0 or not np.isfinite(numbers).all():
        raise GerdError(f"a sample of shape {numbers.shape}: allowed is a list of finite numbers, one or more")
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
        raise GerdError(f"{len(first)} and {len(second)} errors: allowed are two or more pairs")
    gap = first - second

    def d(rows: NDArray[np.int64]) -> Array:
        pooled = np.sqrt((first[rows].var(axis=-1, ddof=1) + second[rows].var(axis=-1, ddof=1)) / 2)
        return _ratio(gap[rows].mean(axis=-1), pooled)

    def d_z(rows: NDArray[np.int64]) -> Array:
        return _ratio(gap[rows].mean(axis=-1), gap[rows].std(axis=-1, ddof=1))

    every = np.arange(len(first))
    return Effect(
        len(first),
        float(gap.mean()),
        bootstrap(lambda rows: gap[rows].mean(axis=-1), len(gap)),
        float(d(every)),
        bootstrap(d, len(gap)),
        float(d_z(every)),
        bootstrap(d_z, len(gap)),
        wilcoxon(gap),
    )


def _ratio(top: Any, bottom: Any) -> Array:
    """top / bottom; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), 0.0, np.asarray(top) / bottom)


def wilcoxon(differences: ArrayLike) -> float:
    """The two-sided p of the signed-rank test, by its normal approximation; zeros are left out, ties share ranks."""
    numbers = _sample(differences)
    numbers = numbers[numbers != 0]
    if len(numbers) == 0:
        return 1.0
    _, place, sizes = np.unique(np.abs(numbers), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[place]
    n = len(numbers)
    spread = n * (n + 1) * (2 * n + 1) / 24 - float((sizes.astype(np.float64) ** 3 - sizes).sum()) / 48
    z = (float(ranks[numbers > 0].sum()) - n * (n + 1) / 4) / math.sqrt(spread)
    return math.erfc(abs(z) / math.sqrt(2))

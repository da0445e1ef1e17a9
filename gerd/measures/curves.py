"""Errors against the amounts of a transformation: arrays in, numbers with intervals out; no model is asked here.

`Curve` is of a model as a whole, `Invariance` says how flat it is, `Covariance` is of each channel. Errors are in the
unit of the model's output, pixels for places; intervals are 95 % bootstrap intervals over recordings. `AccuracyCurve`
is of a classifier: shares of right answers, with Wilson's intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.calls import explained
from gerd.errors import GerdError
from gerd.measures.chance import surely_below
from gerd.measures.statistics import LEAST, Summary, interval, means, medians, resampled, summary, wilson

Array = NDArray[np.float64]
Number = tuple[float, tuple[float, float]]  # with its interval


Verdict = Literal["invariant", "not invariant", "undecided", "at chance", "too few recordings"]


@dataclass(frozen=True)
class Invariance:
    """How little the error of a model depends on the amount of a transformation, as one number with its interval."""

    ratio: float  # the largest median error over the smallest, or of means where the curve is of means
    interval: tuple[float, float]
    best: float  # the amount with the smallest of them, and that with the largest
    worst: float
    amounts: tuple[float, float]  # the lowest and the highest that were tested
    count: int  # recordings for each amount
    at_chance: tuple[float, ...]  # the amounts at which the error is not surely below that of chance

    def verdict(self, bound: float) -> Verdict:
        """Invariant if the whole interval is at most `bound`, not invariant if it is all above, else undecided.

        A model that is at chance has learnt nothing that could be invariant, and a few recordings say nothing.
        """
        if not bound >= 1:
            raise GerdError(f"bound {bound:g}: allowed: a factor, 1 or more")
        if self.count < LEAST:
            return "too few recordings"
        if self.at_chance:
            return "at chance"
        low, high = self.interval
        return "invariant" if high <= bound else "not invariant" if low > bound else "undecided"

    def __str__(self) -> str:
        low, high = self.interval
        lowest, highest = self.amounts
        chance = f"; at chance at {', '.join(f'{amount:g}' for amount in self.at_chance)}" if self.at_chance else ""
        return (
            f"from {lowest:g} to {highest:g} the median error varies by a factor of {self.ratio:.3g} (95 % interval "
            f"{low:.3g} to {high:.3g}, n = {self.count}): smallest at {self.best:g}, largest at {self.worst:g}{chance}"
        )


@dataclass(frozen=True)
class Curve:
    """Errors against the amount of a transformation: how far beyond its training a model works."""

    amounts: tuple[float, ...]
    errors: tuple[Array, ...]  # for each amount, that of each recording: (count,), or (trainings, count)
    trained: float | None = None  # the amount in the training data
    chance: tuple[Array, ...] = ()  # for each amount, the errors (count,) of the best answer that looks at nothing
    middle: Literal["median", "mean"] = "median"  # what the curve is of: means where an error is 0 or 1

    @cached_property
    def summaries(self) -> list[Summary]:
        return [summary(each) for each in self.errors]

    def ratio(self) -> Number:
        """The largest middle over the smallest, and its interval: 1 if the error does not depend on the amount.

        Neither it nor its interval is ever below 1; if the true error is the same everywhere, the interval is above 1.
        """

        def spread(middle: Array) -> Array:
            some = np.maximum(middle, np.finfo(float).tiny)
            return some.max(axis=0) / some.min(axis=0)

        return self._from_middles(spread)

    def invariance(self) -> Invariance:
        """The ratio, and where it comes from."""
        ratio, ends = self.ratio()
        middle = self.middles
        return Invariance(
            ratio,
            ends,
            self.amounts[int(np.argmin(middle))],
            self.amounts[int(np.argmax(middle))],
            (min(self.amounts), max(self.amounts)),
            min(each.count for each in self.summaries),
            self.at_chance(),
        )

    def at_chance(self, margin: float = 0.0) -> tuple[float, ...]:
        """The amounts at which the mean error is not surely below that of chance by more than `margin`.

        Chance is not the same at all amounts: at half the scale, all places are twice as near to each other.
        """
        if not self.chance:
            return ()
        each = zip(self.amounts, self.errors, self.chance, strict=True)
        return tuple(amount for amount, errors, chance in each if not surely_below(errors, chance, margin))

    def slope(self, neutral: float = 1.0) -> Number:
        """Error gained per factor of two in the amount, away from `neutral`: least squares, and its interval."""
        if not all(amount > 0 for amount in self.amounts):
            raise GerdError(f"amounts {self.amounts}: allowed for a slope against the logarithm: positive numbers")
        away = np.abs(np.log2(np.array(self.amounts) / neutral))
        centred = away - away.mean()
        if not centred.any():
            raise GerdError(f"amounts {self.amounts}: allowed for a slope: different distances from {neutral}")
        weights = centred / (centred**2).sum()
        return self._from_middles(lambda middle: weights @ middle)

    @property
    def middles(self) -> tuple[float, ...]:
        """The median, or the mean, of the errors at each amount."""
        of = np.median if self.middle == "median" else np.mean
        return tuple(float(of(each)) for each in self.errors)

    def intervals(self) -> tuple[tuple[float, float], ...]:
        """The interval of each of `middles`."""
        return tuple(map(interval, self._resampled))

    def _from_middles(self, number: Callable[[Array], Array]) -> Number:
        """A number made of the middles (amounts, …) with its interval."""
        return float(number(np.array(self.middles))), interval(number(self._resampled))

    @cached_property
    def _resampled(self) -> Array:
        """(amounts, resamples): middles over resampled recordings, the same ones wherever there are as many of them."""
        of = medians if self.middle == "median" else means
        tables = [np.atleast_2d(each) for each in self.errors]
        return np.array([resampled(partial(of, table), table.shape[1]) for table in tables])


@dataclass(frozen=True)
class Accuracy:
    """How often a classifier is right at one amount of a transformation."""

    amount: float
    confusion: NDArray[np.int64]  # (classes, classes): recordings of each class (row) by what they were taken for

    @property
    def count(self) -> int:
        """Recordings."""
        return int(self.confusion.sum())

    @property
    def right(self) -> int:
        """Recordings whose class was named."""
        return int(self.confusion.trace())

    @property
    def share(self) -> float:
        return self.right / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share, Wilson's."""
        return wilson(self.right, self.count)

    @property
    def chance(self) -> float:
        """The share of the most frequent class: what the best answer that looks at nothing gets right."""
        return float(self.confusion.sum(axis=1).max()) / self.count

    @property
    def at_chance(self) -> bool:
        """Whether the share is not surely above that of chance."""
        return self.interval[0] <= self.chance

    def __str__(self) -> str:
        low, high = self.interval
        chance = "; at chance" if self.at_chance else ""
        return (
            f"{self.amount:g}: {self.right} of {self.count} right, {self.share:.1%} (95 % interval {low:.1%} to "
            f"{high:.1%}; chance {self.chance:.1%}){chance}"
        )


@dataclass(frozen=True)
class AccuracyCurve:
    """How often a classifier is right against the amount of a transformation."""

    classes: tuple[str, ...]  # in the order of the rows and columns of `confusion`
    accuracies: tuple[Accuracy, ...]  # one for each amount
    trained: float | None = None  # the amount in the training data

    @property
    def amounts(self) -> tuple[float, ...]:
        return tuple(each.amount for each in self.accuracies)

    @property
    def worst(self) -> Accuracy:
        """Where the share of right answers is the smallest."""
        return min(self.accuracies, key=lambda each: each.share)

    def at_chance(self) -> tuple[float, ...]:
        """The amounts at which the classifier is not surely better than the best answer that looks at nothing."""
        return tuple(each.amount for each in self.accuracies if each.at_chance)

    def __str__(self) -> str:
        return "\n".join(map(str, self.accuracies))


@dataclass(frozen=True)
class Covariance:
    """Which channel of a model suits which amount of a transformation."""

    channels: tuple[float, ...]  # what the channels are tuned to
    amounts: tuple[float, ...]
    matched: tuple[int, ...]  # for each amount, the channel that should be best
    errors: tuple[Array, ...]  # for each amount (channels, recordings): the error of a channel alone
    shares: tuple[Array, ...]  # for each amount (channels, recordings): its share in what the model says

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

        def of(tables: tuple[Array, ...], statistic: Callable[..., Array]) -> Array:
            def ends(table: Array) -> list[tuple[float, float]]:
                drawn = resampled(lambda rows: statistic(table[:, rows], axis=-1), table.shape[1])
                return [interval(channel) for channel in drawn]

            return np.array([ends(table) for table in tables]).swapaxes(0, 1)

        return of(self.errors, np.median), of(self.shares, np.mean)

    @property
    def best(self) -> list[int]:
        """For each amount, the channel with the smallest median error."""
        return self.medians.argmin(axis=0).tolist()

    @property
    def selected(self) -> list[int]:
        """For each amount, the channel to which the model gives the largest share."""
        return self.weights.argmax(axis=0).tolist()

    def of_matched(self, numbers: Array) -> Array:
        """(amounts,): those of the matched channels, of (channels, amounts)."""
        return numbers[self.matched, range(len(self.amounts))]

    def on_diagonal(self, which: Sequence[int], within: int = 0) -> int:
        """For how many amounts a channel lies at most `within` channels from the matched one."""
        return sum(abs(channel - wanted) <= within for channel, wanted in zip(which, self.matched, strict=True))


@explained
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
        raise GerdError("errors, weights, amounts and matched channels: allowed: one of each for every amount")
    for each, share in zip(table, shares, strict=True):
        if each.ndim != 2 or each.shape[0] != len(channels) or each.shape != share.shape or each.shape[1] == 0:
            wanted = f"({len(channels)}, recordings) of both, with one recording or more"
            raise GerdError(f"errors of shape {each.shape} and weights of shape {share.shape}; allowed: {wanted}")
        if not (np.isfinite(each).all() and np.isfinite(share).all()):
            raise GerdError("errors or weights that are not finite; allowed: numbers")
    return Covariance(tuple(channels), tuple(amounts), tuple(matched), tuple(table), tuple(shares))

"""How two sets of recordings differ, simulated or real: events in, numbers with their scatter and a verdict each out.

    print(gerd.measure.compare(simulated, real))

Of each number there is a value for every recording, or for every part of the time where there are few recordings. How
much these scatter says how far apart the two means can be by chance: a permutation test, at a level that is shared out
over all numbers, so that two sets of the same kind are told apart in 1 of 100 comparisons at most. What scatters
between recordings of one kind has to be in the sets: of a single recording only the scatter in time is known, and
another scene may well be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError, check_whole
from gerd.measures.matching import matched
from gerd.measures.stream_numbers import NUMBERS, UNSPECIFIC, dead_pixels, hot_pixels, looked_at, parts_of, pixel_counts
from gerd.recording.events import Events

LEVEL = 0.01  # the probability that anything is said to differ between two sets of the same kind
LEAST_PARTS = 16  # values of each number that a set has at least
LEAST_VALUES = 8  # that are not NaN, for a verdict
ONE_RECORDING = f"{LEAST_PARTS} parts of a recording"
PERMUTATIONS = 10_000
NEAR_US = 5_000


@dataclass(frozen=True)
class Difference:
    """One number of both sets."""

    name: str
    unit: str
    effect: str  # what a difference suggests
    a: float  # mean
    b: float
    a_error: float  # standard error of the mean
    b_error: float
    p: float | None  # the probability of so large a difference by chance; None where there are too few values

    @property
    def errors_apart(self) -> float:
        """How many standard errors of the difference there are between the means."""
        error = math.hypot(self.a_error, self.b_error)
        return 0.0 if self.a == self.b else abs(self.a - self.b) / error if error else math.inf


@dataclass(frozen=True)
class Matches:
    """How far the events of two sets of recordings of the same scenes are the same ones."""

    window_us: int  # how far apart matched events can be
    of_a: float  # the share of the events of A that have a partner in B
    of_b: float
    by_chance: float  # the share of A if B is moved in time by half of each recording
    lag_us: float  # median of how much later those of B are
    spread_us: float  # of |lag|, the value below which 95 % are

    def __str__(self) -> str:
        if not self.of_a:
            return f"No event has a partner of its pixel and polarity within {self.window_us} µs."
        return (
            f"Within {self.window_us} µs {self.of_a:.1%} of the events of A have a partner of their pixel and polarity "
            f"in B ({self.by_chance:.1%} by chance), and {self.of_b:.1%} of those of B; median lag "
            f"{self.lag_us:+.4g} µs, 95 % within {self.spread_us:.4g} µs."
        )


@dataclass(frozen=True)
class EventComparison:
    """Two sets of recordings, held against each other."""

    names: tuple[str, str]
    values_of: tuple[str, str]  # what there is a value of, in words
    same: bool  # whether the events are the same, one for one
    differences: tuple[Difference, ...]
    matches: Matches | None = None  # if both are of the same scenes

    @property
    def bound(self) -> float:
        """The probability below which a number differs: the level, shared out over all numbers."""
        return LEVEL / len(self.differences)

    @property
    def differing(self) -> list[Difference]:
        """What is told apart, the most certain first."""
        found = [each for each in self.differences if each.p is not None and each.p < self.bound]
        return sorted(found, key=lambda each: -each.errors_apart)

    @property
    def effects(self) -> list[str]:
        """What the differences suggest, the most certain first; last what every effect changes."""
        specific = sorted(self.differing, key=lambda each: each.name in UNSPECIFIC)
        return list(dict.fromkeys(each.effect for each in specific))

    def __str__(self) -> str:
        """A table, and sentences below it."""
        widths = [max(len(row[k]) for row in self.table) for k in range(len(self.table[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in self.table]
        return "\n".join([*lines, "", self.verdict])

    @property
    def table(self) -> list[tuple[str, ...]]:
        """Below a header a row for each number: both means and their standard errors, how far apart, and a verdict."""
        header = (f"{side}: {name}" for side, name in zip("AB", self.names, strict=True))
        return [("", *header, "apart", ""), *map(self._row, self.differences)]

    def _row(self, each: Difference) -> tuple[str, ...]:
        name = f"{each.name} ({each.unit})"
        ends = [
            "none" if math.isnan(mean) else f"{mean:.4g}" + ("" if math.isnan(error) else f" ± {error:.2g}")
            for mean, error in ((each.a, each.a_error), (each.b, each.b_error))
        ]
        if each.p is None:
            return name, *ends, "", "too few values"
        return name, *ends, f"{each.errors_apart:.1f} SE", "differs" if each.p < self.bound else "as one"

    @property
    def verdict(self) -> str:
        """What the numbers say, in sentences."""
        scatter = f"Scatter: A between {self.values_of[0]}, B between {self.values_of[1]}."
        if ONE_RECORDING in self.values_of:
            scatter += " Of one recording only the scatter in time is known: another scene may be told apart, too."
        chance = f"by chance in 1 of {round(1 / LEVEL)} comparisons at most"
        if self.same:
            said = "The events are the same, one for one."
        elif self.differing:
            first, *others = self.effects
            said = f"Told apart, which happens {chance}. It suggests {first}"
            said += f"; then, perhaps only because of it, {'; '.join(others)}." if others else "."
        else:
            untold = " (some have too few values to tell)" if any(each.p is None for each in self.differences) else ""
            said = f"Nothing is told apart{untold}; that something is would happen {chance}."
        return " ".join([said, *([str(self.matches)] if self.matches else []), scatter])


def compare(
    a: Events | Sequence[Events],
    b: Events | Sequence[Events],
    *,
    names: tuple[str, str] = ("A", "B"),
    same_scenes: bool = False,
    near_us: int = NEAR_US,
) -> EventComparison:
    """How two sets of recordings differ, of which no ground truth is needed.

    same_scenes: whether recording i of both is of the same scene, at the same times: their events are matched, too.
    near_us: events of a pixel and those around it are of one edge if no more microseconds are between them; what is
        alone is noise. It has to be longer than an edge takes from pixel to pixel.
    """
    check_whole("near_us", near_us, 1)
    sets = [[each] if isinstance(each, Events) else list(each) for each in (a, b)]
    for name, recordings in zip(names, sets, strict=True):
        if not recordings:
            raise GerdError(f"{name}: has no recordings to compare")
        frames = {(each.width, each.height) for each in recordings}
        if len(frames) > 1:
            sizes = " and ".join(f"{width}×{height}" for width, height in sorted(frames)[:2])
            raise GerdError(f"{name}: has frames of {sizes} pixels; allowed: one size")
    counts = [pixel_counts(recordings) for recordings in sets]
    tables, words = zip(*map(_values, sets, counts, [near_us] * 2), strict=True)
    differences = [
        _difference(number.name, number.unit, number.effect, *(table[:, k] for table in tables))
        for k, number in enumerate(NUMBERS)
    ]
    hot = [(int(hot_pixels(each).sum()), each.size) for each in counts]
    dead = [(int(dead_pixels(each).sum()), int(looked_at(each).sum())) for each in counts]
    differences += [
        _of_shares("hot pixels", "share", "hot pixels", *hot),
        _of_shares("silent pixels among active ones", "share", "dead pixels", *dead),
    ]
    same = [each.digest for each in sets[0]] == [each.digest for each in sets[1]]
    matches = _matches(names, sets[0], sets[1], near_us) if same_scenes else None
    return EventComparison(names, (words[0], words[1]), same, tuple(differences), matches)


def _matches(names: tuple[str, str], a: list[Events], b: list[Events], window_us: int) -> Matches:
    """The events of two sets of recordings of the same scenes, paired."""
    if len(a) != len(b):
        raise GerdError(f"{names[0]} has {len(a)} recordings and {names[1]} {len(b)}: of the same scenes are as many")
    lags, found, of_a, of_b = [], 0, 0, 0
    for one, other in zip(a, b, strict=True):
        if (one.width, one.height) != (other.width, other.height):
            sizes = f"{one.width}×{one.height} and {other.width}×{other.height}"
            raise GerdError(
                f"{one.name} and {other.name}: frames of {sizes} pixels; allowed with the same scenes: one size"
            )
        length = max(one.steps * one.step_us, other.steps * other.step_us)
        (sites, times), (other_sites, other_times) = (_in_time(each) for each in (one, other))
        rows, columns = matched(sites, times, other_sites, other_times, window_us)
        lags.append(other_times[columns] - times[rows])
        moved = (other_times + length // 2) % length
        found += len(matched(sites, times, other_sites, moved, window_us)[0])
        of_a, of_b = of_a + len(times), of_b + len(other_times)
    joined = np.concatenate(lags)
    if not len(joined):
        return Matches(window_us, 0.0, 0.0, 0.0, math.nan, math.nan)
    spread = float(np.quantile(np.abs(joined), 0.95))
    return Matches(window_us, len(joined) / of_a, len(joined) / of_b, found / of_a, float(np.median(joined)), spread)


def _in_time(recording: Events) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixel and polarity of each event as one number, and its time."""
    keys = recording.keys
    return recording.codec.pixels(keys), recording.codec.times(keys, recording.step_us, recording.first)


def _values(recordings: list[Events], counts: NDArray[np.int64], near_us: int) -> tuple[NDArray[np.float64], str]:
    """(values, numbers), and what there is a value of, in words."""
    each = -(-LEAST_PARTS // len(recordings))
    hot = hot_pixels(counts)
    parts = [part for recording in recordings for part in parts_of(recording, hot, near_us, each)]
    table = np.array([[number.of(part) for number in NUMBERS] for part in parts], np.float64)
    if len(recordings) == 1:
        return table, ONE_RECORDING
    many = f"{len(recordings)} recordings"
    return table, many if each == 1 else f"{each} parts of each of {many}"


def _difference(name: str, unit: str, effect: str, a: NDArray[np.float64], b: NDArray[np.float64]) -> Difference:
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    means = [float(each.mean()) if len(each) else math.nan for each in (a, b)]
    errors = [float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else math.nan for each in (a, b)]
    p = _by_chance(a, b) if min(len(a), len(b)) >= LEAST_VALUES else None
    return Difference(name, unit, effect, means[0], means[1], errors[0], errors[1], p)


def _by_chance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The share of permutations of all values whose means are at least as far apart."""
    joined = np.concatenate([a, b])
    found = abs(a.mean() - b.mean())
    order = np.random.default_rng(0).permuted(np.tile(joined, (PERMUTATIONS, 1)), axis=1)
    apart = np.abs(order[:, : len(a)].mean(axis=1) - order[:, len(a) :].mean(axis=1))
    slack = 1e-12 * np.abs(joined).max(initial=0)
    return float((1 + (apart >= found - slack).sum()) / (1 + PERMUTATIONS))


def _of_shares(name: str, unit: str, effect: str, a: tuple[int, int], b: tuple[int, int]) -> Difference:
    """The difference of two shares, each as (how many, of how many), by the normal approximation of their counts."""
    if not a[1] or not b[1]:
        return Difference(name, unit, effect, math.nan, math.nan, math.nan, math.nan, None)
    shares = [hits / total for hits, total in (a, b)]
    errors = [math.sqrt(max(hits, 1)) / total for hits, total in (a, b)]  # of a count as of a Poisson number
    p = math.erfc(abs(shares[0] - shares[1]) / math.hypot(*errors) / math.sqrt(2))
    return Difference(name, unit, effect, shares[0], shares[1], errors[0], errors[1], p)

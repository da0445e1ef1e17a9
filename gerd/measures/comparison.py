"""How two sets of recordings differ, simulated or real: events in, numbers with their scatter and a verdict each out.

    print(gerd.measure.compare(simulated, real))

Of each number there is a value for every recording. How much these scatter says how far apart the two means can be by
chance: a permutation test, at a level that is shared out over all numbers, so that two sets of the same kind are told
apart in 1 of 100 comparisons at most.

Of a few recordings only the scatter in time is known, from parts of each. It says enough of what does not depend on the
scene: noise, hot and dead pixels. That all else is apart may come from another scene as well, so it is named but is no
verdict, unless both sets are of the same scenes: then it is the differences of the parts, pair by pair, that scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.calls import explained
from gerd.errors import GerdError, check_whole
from gerd.measures.matching import matched
from gerd.measures.stream_numbers import (
    BACKGROUND,
    BUS,
    CLOCK,
    JITTER,
    LEAK,
    MEDIAN,
    NOISE_OFF,
    NOISE_ON,
    NUMBERS,
    OF_MEDIAN,
    ON_BEYOND_OFF,
    REFRACTORY,
    SHORTEST,
    THRESHOLDS,
    TOGETHER,
    UNEVEN,
    UNSPECIFIC,
    Number,
    dead_pixels,
    hot_pixels,
    looked_at,
    parts_of,
    pixel_counts,
)
from gerd.recording.events import Events

Values = NDArray[np.float64]

LEVEL = 0.01  # the probability that anything is said to differ between two sets of the same kind
LEAST_RECORDINGS = 8  # of a set whose recordings show how much scenes scatter
LEAST_PARTS = 16  # values of each number that a set of fewer recordings has at least
LEAST_VALUES = 8  # that are not NaN, for a verdict
PERMUTATIONS = 10_000
AT_ONCE = 2**22  # numbers of permutations that are held together
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
    error: float  # of the difference of the means; smaller than those of the means where values are of pairs
    p: float | None  # the probability of so large a difference by chance; None where there are too few values
    of_scene: bool = False  # whether another scene can be the reason, too: the scatter between scenes is not known

    @property
    def errors_apart(self) -> float:
        """How many standard errors of the difference there are between the means."""
        return 0.0 if self.a == self.b else abs(self.a - self.b) / self.error if self.error else math.inf


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
        return [each for each in self._apart if not each.of_scene]

    @property
    def perhaps(self) -> list[Difference]:
        """What is apart by more than it scatters in time, for which another scene can be the reason, too."""
        return [each for each in self._apart if each.of_scene]

    @property
    def _apart(self) -> list[Difference]:
        found = [each for each in self.differences if each.p is not None and each.p < self.bound]
        return sorted(found, key=lambda each: -each.errors_apart)

    @property
    def effects(self) -> list[str]:
        """What the differences suggest: first what explains others, and of the rest the most certain first."""
        differing = {each.name: each for each in self.differing}
        named = _named(differing)
        specific = REFRACTORY in named.values() or JITTER in named.values() or named.get(NOISE_ON.name) == LEAK
        together = differing.get(TOGETHER.name)
        sampled = together is not None and abs(together.a - together.b) > 0.5

        def rank(effect: str) -> int:
            if effect == BUS or (effect == CLOCK and sampled):
                return 0  # everything may come from it
            if effect in (THRESHOLDS, CLOCK) and specific:
                return 2
            return 3 if effect in UNSPECIFIC else 1

        return list(dict.fromkeys(sorted(named.values(), key=rank)))

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
        verdict = "as one" if each.p >= self.bound else "differs, or the scenes do" if each.of_scene else "differs"
        return name, *ends, f"{each.errors_apart:.1f} SE", verdict

    @property
    def verdict(self) -> str:
        """What the numbers say, in sentences."""
        scatter = f"Scatter: A between {self.values_of[0]}, B between {self.values_of[1]}."
        if any(each.of_scene for each in self.differences):
            few = f"fewer than {LEAST_RECORDINGS} recordings"
            scatter += f" How much scenes differ is not known from {few}: noise, hot and dead pixels have a verdict"
            if self.perhaps:
                names = ", ".join(each.name for each in self.perhaps)
                scatter += f", and other scenes can be the reason that these are apart, too: {names}"
            scatter += "."
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


def _named(differing: dict[str, Difference]) -> dict[str, str]:
    """What each number that differs suggests, the most certain first; for some numbers it depends on others.

    A refractory time takes the short intervals away and leaves the others, a threshold stretches all of them, and
    jitter spreads them both ways, also within a pixel's passage. A leak adds ON noise; OFF noise does not rise with it.
    """
    named = {name: each.effect for name, each in differing.items()}
    rises = {name: each.b > each.a for name, each in differing.items()}
    if ON_BEYOND_OFF.name in named:
        if NOISE_ON.name in named and rises.get(NOISE_OFF.name) != rises[NOISE_ON.name]:
            named |= dict.fromkeys({NOISE_ON.name, NOISE_OFF.name} & set(named), LEAK)
        elif NOISE_ON.name not in named and NOISE_OFF.name in named:
            named[ON_BEYOND_OFF.name] = BACKGROUND
    if SHORTEST.name in named:
        longer = rises[SHORTEST.name]
        same_way = {name for name, rise in rises.items() if rise == longer}
        if {OF_MEDIAN.name, MEDIAN.name} <= same_way:
            timing = REFRACTORY
        elif rises.get(UNEVEN.name) == (not longer) and MEDIAN.name not in same_way:
            timing = JITTER
        else:
            return named
        named |= dict.fromkeys({SHORTEST.name, OF_MEDIAN.name, UNEVEN.name} & set(named), timing)
    return named


@explained
def compare(
    a: Events | Sequence[Events],
    b: Events | Sequence[Events],
    *,
    names: tuple[str, str] = ("A", "B"),
    same_scenes: bool = False,
    near_us: int = NEAR_US,
) -> EventComparison:
    """Return how two sets of recordings differ; no ground truth is needed.

    same_scenes: whether recording i of both shows the same scene at the same times; then their events are matched, too.
    near_us: events of a pixel and those around it belong to one edge if at most so many microseconds are between them;
        an event that is alone is noise. It must be longer than an edge takes from pixel to pixel.
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
    if same_scenes and len(sets[0]) != len(sets[1]):
        raise GerdError(
            f"{names[0]} has {len(sets[0])} recordings and {names[1]} {len(sets[1])}; "
            "allowed with the same scenes: the same number"
        )
    counts = [pixel_counts(recordings) for recordings in sets]
    few = min(map(len, sets)) < LEAST_RECORDINGS
    spans = [[_span(each) for each in recordings] for recordings in sets]
    if same_scenes:  # parts of the same time
        spans = [[(min(one[0], other[0]), max(one[1], other[1])) for one, other in zip(*spans, strict=True)]] * 2
    tables, words = zip(*map(_values, sets, counts, spans, [near_us] * 2, [few] * 2), strict=True)
    test = _by_pairs if same_scenes else _by_chance
    differences = [
        _difference(number, table_a[:, k], table_b[:, k], test, few and not same_scenes and number.of_scene)
        for k, number in enumerate(NUMBERS)
        for table_a, table_b in [tables]
    ]
    hot = [(int(hot_pixels(each).sum()), each.size) for each in counts]
    dead = [(int(dead_pixels(each).sum()), int(looked_at(each).sum())) for each in counts]
    differences += [
        _of_shares("hot pixels", "share", "hot pixels", *hot),
        _of_shares("silent pixels among active ones", "share", "dead pixels", *dead),
    ]
    same = [len(each) for each in sets[0]] == [len(each) for each in sets[1]] and all(
        (one.width, one.height) == (other.width, other.height) and np.array_equal(one.events, other.events)
        for one, other in zip(*sets, strict=True)
    )
    matches = _matches(sets[0], sets[1], near_us) if same_scenes else None
    return EventComparison(names, (words[0], words[1]), same, tuple(differences), matches)


def _matches(a: list[Events], b: list[Events], window_us: int) -> Matches:
    """The events of two sets of recordings of the same scenes, paired."""
    lags = []
    found = 0
    of_a = 0
    of_b = 0
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


def _span(recording: Events) -> tuple[int, int]:
    """When a recording begins and ends, in microseconds."""
    return recording.first * recording.step_us, (recording.first + recording.steps) * recording.step_us


def _values(
    recordings: list[Events], counts: NDArray[np.int64], spans: list[tuple[int, int]], near_us: int, few: bool
) -> tuple[NDArray[np.float64], str]:
    """(values, numbers), and what there is a value of, in words."""
    each = -(-LEAST_PARTS // len(recordings)) if few else 1
    hot = hot_pixels(counts)
    parts = [
        part
        for recording, span in zip(recordings, spans, strict=True)
        for part in parts_of(recording, hot, span, near_us, each)
    ]
    table = np.array([[number.of(part) for number in NUMBERS] for part in parts], np.float64)
    if each == 1:
        return table, f"{len(recordings)} recordings"
    return table, f"{each} parts of " + ("a recording" if len(recordings) == 1 else f"each of {len(recordings)}")


def _difference(
    number: Number, a: Values, b: Values, test: Callable[[Values, Values], float], of_scene: bool
) -> Difference:
    """The difference of one number, whose values may be NaN; those of `_by_pairs` are where both sets have one."""
    if test is _by_pairs:
        both = ~np.isnan(a) & ~np.isnan(b)
        a, b = a[both], b[both]
    else:
        a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    means = [float(each.mean()) if len(each) else math.nan for each in (a, b)]
    errors = [float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else math.nan for each in (a, b)]
    paired = test is _by_pairs and len(a) > 1
    error = float((a - b).std(ddof=1) / math.sqrt(len(a))) if paired else math.hypot(*errors)
    p = test(a, b) if min(len(a), len(b)) >= LEAST_VALUES else None
    (mean_a, mean_b), (error_a, error_b) = means, errors
    return Difference(number.name, number.unit, number.effect, mean_a, mean_b, error_a, error_b, error, p, of_scene)


def _by_chance(a: Values, b: Values) -> float:
    """The share of permutations of all values whose means are at least as far apart."""
    joined = np.concatenate([a, b])

    def apart(random: np.random.Generator, count: int) -> Values:
        order = random.permuted(np.tile(joined, (count, 1)), axis=1)
        return order[:, : len(a)].mean(axis=1) - order[:, len(a) :].mean(axis=1)

    return _share_beyond(abs(a.mean() - b.mean()), apart, joined)


def _by_pairs(a: Values, b: Values) -> float:
    """The share of random signs of the differences with which their mean is at least as large."""
    differences = a - b

    def apart(random: np.random.Generator, count: int) -> Values:
        return (differences * random.choice([-1, 1], (count, len(a)))).mean(axis=1)

    return _share_beyond(abs(differences.mean()), apart, differences)


def _share_beyond(found: float, apart: Callable[[np.random.Generator, int], Values], values: Values) -> float:
    random = np.random.default_rng(0)
    slack = 1e-12 * np.abs(values).max(initial=0)
    at_once = max(1, AT_ONCE // len(values))
    counts = [min(at_once, PERMUTATIONS - begun) for begun in range(0, PERMUTATIONS, at_once)]
    beyond = sum(int((np.abs(apart(random, count)) >= found - slack).sum()) for count in counts)
    return (1 + beyond) / (1 + PERMUTATIONS)


def _of_shares(name: str, unit: str, effect: str, a: tuple[int, int], b: tuple[int, int]) -> Difference:
    """The difference of two shares, each as (how many, of how many), by the normal approximation of their counts."""
    if not a[1] or not b[1]:
        return Difference(name, unit, effect, math.nan, math.nan, math.nan, math.nan, math.nan, None)
    shares = [hits / total for hits, total in (a, b)]
    errors = [math.sqrt(max(hits, 1)) / total for hits, total in (a, b)]  # of a count as of a Poisson number
    p = math.erfc(abs(shares[0] - shares[1]) / math.hypot(*errors) / math.sqrt(2))
    return Difference(name, unit, effect, shares[0], shares[1], errors[0], errors[1], math.hypot(*errors), p)

"""The readout of a camera: edges that are known to pass its pixels in, with their events; latency and jitter out.

From one event of a pixel to the next its brightness changes by a threshold. So what the truth says of brightness while
edges pass, up and down, gives the times at which the pixel fires, but for its two thresholds and what it held at first.
These three are fitted for each pixel and recording, and with them how much later events come, the same for all: were it
more, ON events would fit at higher levels and OFF events at lower ones. What is left over is jitter.

Jitter makes events change places, and none comes before it happens; so what is found is less than there is. It is
therefore found again in events that the fitted pixels have by a readout that is known, and that is changed until it is
found to be the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.screen.edges import Passed
from gerd.screen.thresholds import CERTAIN, Estimate

Array = NDArray[np.float64]

LEAST_PASSED = 50  # pixels, each in one recording
MOST_PASSED = 800
ROUNDS = 8  # of a fit
FARTHEST = 0.05  # of brightness, in a round
OUTLIER = 4.0  # times the usual scatter: noise was among the events
ROUNDED_US = 2.0  # by so much times and delays may be off that are rounded
AGAIN = 16  # times at most that the readout is found in events whose readout is known
CLOSE = 0.1  # microseconds, or their square: what is found then is the same
MIXED = 2.2  # times what is found: where jitter is more, too many events have changed places
DOUBTED = 0.2  # of the jitter that is not found at first
HALF_US = 0.5  # readout takes whole microseconds, so that less is not told from nothing


@dataclass(frozen=True)
class ReadoutFit:
    """How long events are under way, in microseconds."""

    latency_us: Estimate | None  # None: it is not known
    jitter_us: Estimate | None
    unknown: str = ""  # why something is not known

    @property
    def seen(self) -> bool:
        """Whether there is any latency or jitter."""
        return any(each is not None and each.low > 0 for each in (self.latency_us, self.jitter_us))


def fit_readout(passed: Sequence[Passed], refractory_us: float) -> ReadoutFit:
    """The readout, from ordinary pixels that rest for `refractory_us` after an event, 0 if not at all."""
    free = [each for each in passed if refractory_us == 0 or each.shortest_us > refractory_us + ROUNDED_US]
    if len(free) < LEAST_PASSED:
        return ReadoutFit(None, None, "too few pixels became brighter and darker by edges slower than they are")
    found = _Found.of(free[:: -(-len(free) // MOST_PASSED)])
    latency, variance = found.latency, found.variance
    for _ in range(AGAIN):
        again = _Found.of(found.made(latency, math.sqrt(variance)))
        later, more = found.latency - again.latency, found.variance - again.variance
        if abs(later) < found.latency_deviation / 2 + CLOSE and abs(more) < found.variance_deviation / 2 + CLOSE:
            break
        latency = max(0.0, latency + later)
        variance *= found.variance / again.variance
    jitter = math.sqrt(variance)
    narrowed = max(1.0, jitter / math.sqrt(found.variance))
    # Events that are made are left to chance as much as those seen; what is not the same yet is uncertain, too.
    unsure = math.sqrt(2) * found.latency_deviation + abs(later) / CERTAIN
    unlike = math.sqrt(2) * found.variance_deviation + abs(more) / CERTAIN
    least = math.sqrt(found.variance)
    doubt = HALF_US + DOUBTED * max(0.0, jitter - least)
    late = _estimate(latency, unsure, doubt)
    if narrowed > MIXED:
        return ReadoutFit(
            late, None, f"jitter_us is more than {least:.0f}, too much for edges whose events come so fast"
        )
    return ReadoutFit(late, _estimate(jitter, narrowed * unlike / (2 * least), doubt))


def _estimate(value: float, deviation: float, doubt: float) -> Estimate:
    """What chance and other doubt leave open, together."""
    reach = CERTAIN * deviation + doubt
    return Estimate(value, max(0.0, value - reach), value + reach)


@dataclass(frozen=True)
class _Found:
    """A latency and the variance of what is left over, with their standard deviations, and all that was fitted."""

    latency: float
    variance: float
    latency_deviation: float
    variance_deviation: float
    passed: Sequence[Passed]
    numbers: Array  # (pixels, 3): first level, ON and OFF threshold of each
    kept: NDArray[np.bool_]  # which had no noise among their events

    @classmethod
    def of(cls, passed: Sequence[Passed]) -> _Found:
        latency = float(np.median([edge.late_us for each in passed for edge in each.edges]))
        parts, events = [each.parts for each in passed], [each.events_us for each in passed]
        numbers = np.array([_first_numbers(each, own, latency) for each, own in zip(passed, parts, strict=True)])
        freedom = np.array([len(each) - numbers.shape[1] for each in events])
        for _ in range(ROUNDS):
            rows = []
            for each, own, times, known in zip(passed, parts, events, numbers, strict=True):
                fired, later = each.times(own @ known)
                rows.append(_Row.of(times - latency - fired, later[:, None] * own))
            weight, pull, left = (np.array([getattr(row, name) for row in rows]) for name in ("weight", "pull", "left"))
            scatter = np.sqrt(left / freedom)
            kept = scatter < OUTLIER * np.median(scatter) + ROUNDED_US
            more = float(pull[kept].sum() / weight[kept].sum())
            latency += more
            numbers = numbers + np.clip([row.change - more * row.of_latency for row in rows], -FARTHEST, FARTHEST)
        variance = float(left[kept].sum() / freedom[kept].sum())
        unlike = pull[kept] - more * weight[kept], left[kept] - variance * freedom[kept]
        deviations = [float(np.sqrt((each**2).sum())) for each in unlike]
        return cls(
            latency,
            variance,
            deviations[0] / float(weight[kept].sum()),
            deviations[1] / float(freedom[kept].sum()),
            passed,
            numbers,
            kept,
        )

    def made(self, latency: float, jitter: float) -> list[Passed]:
        """The pixels with the events that a readout like this would give them; the chance is the same each time."""
        chance = np.random.default_rng(0)
        result = []
        for each, known, kept in zip(self.passed, self.numbers, self.kept, strict=True):
            if not kept:
                continue
            fired = np.ceil(each.times(each.parts @ known)[0])
            delay = np.maximum(np.rint(latency + jitter * chance.standard_normal(len(fired))), 0)
            result.append(each.with_events(fired + delay))
        return result


def _first_numbers(passed: Passed, parts: Array, latency: float) -> Array:
    """First level and thresholds of a pixel, from its levels when it has fired about."""
    levels = [edge.levels_at(edge.events_us - latency) for edge in passed.edges]
    return np.asarray(np.linalg.lstsq(parts, np.concatenate(levels), rcond=None)[0])


@dataclass(frozen=True)
class _Row:
    """What the events of a pixel say of the latency, whatever its own numbers are, in a linear fit."""

    weight: float
    pull: float  # weight times the latency that fits best
    left: float  # squares that are left over with the pixel's own best numbers
    change: Array  # of the pixel's numbers
    of_latency: Array  # what this loses for each microsecond of latency

    @classmethod
    def of(cls, late: Array, slopes: Array) -> _Row:
        both = np.stack([late, np.ones(len(late))], axis=1)
        solved = np.linalg.lstsq(slopes, both, rcond=None)[0]
        rest = both - slopes @ solved
        return cls(
            float(rest[:, 1] @ rest[:, 1]), float(rest[:, 1] @ rest[:, 0]), float(rest[:, 0] @ rest[:, 0]), *solved.T
        )

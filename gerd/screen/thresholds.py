"""Thresholds of a camera's pixels from what they fired while edges passed them: passages in, a fit with intervals out.

What a pixel's integrator holds in a quiet time is what it held in an earlier one, plus the change of its brightness,
minus a threshold for each ON event, plus one for each OFF event; and it lies between the thresholds. For given
thresholds of a pixel this leaves an interval for what it held at first, and its length, by that of all that there could
be, is the probability of the events that were seen. The thresholds of the pixels of a camera are normally distributed
about a mean for ON and one for OFF, with one spread; means and spread are those that make all that was seen most
probable. No event's time is used, so that it does not matter whether brightness changes smoothly or in jumps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.screen.passages import ABOVE, BELOW, UNIFORM, Passages

Array = NDArray[np.float64]

LEAST_DOUBT = 5e-4  # the least probability of events of something else among those of a chain
THEN = 0.3  # the probability of what is seen then
MOST_PIXELS = 3000  # that are looked at, spread evenly over the camera
LEAST_PIXELS = 20
MOST_ROWS = 12  # of a pixel: more would tell its thresholds to less than the steps of a grid
LOWEST, HIGHEST, COARSE = 0.03, 8.0, 60  # of the first grid of thresholds, in steps of one factor
FEW = 150  # pixels that are looked at for it
FINE = 41  # thresholds of either polarity in a finer grid
NARROW = 3.5  # spreads by which a finer grid reaches to either side
LEAST_SPREAD = 0.004  # of the mean: no smaller one is told from none
STEP = 0.01  # of the parameters, for the curvature
CERTAIN = 1.96  # standard deviations of an interval that holds the truth in 95 of 100 cases


@dataclass(frozen=True)
class Estimate:
    """A number and the interval that holds it in 95 of 100 cases."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, deviation: float) -> Estimate:
        return cls(value, max(0.0, value - CERTAIN * deviation), value + CERTAIN * deviation)

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class ThresholdFit:
    """Thresholds of a camera, in the unit of what its integrators are given."""

    on: Estimate
    off: Estimate
    spread: Estimate
    pixels: int  # that were looked at
    passages: int


def fit_thresholds(passages: Passages, left_out: NDArray[np.bool_], doubt: float) -> ThresholdFit | None:
    """The thresholds, without the pixels `left_out`; None where too few pixels were passed by edges.

    doubt: the probability that noise is among the events of a passage.
    """
    few, chosen = (_Chosen.of(passages, left_out, most, doubt) for most in (FEW, MOST_PIXELS))
    if few is None or chosen is None:
        return None
    grid = np.geomspace(LOWEST, HIGHEST, COARSE)
    start = np.array([*_best(few, grid, grid), np.log(0.1)])
    for _ in range(2):  # ever finer about the best
        reach = max(NARROW * float(np.exp(start[2])), 0.04)
        grids = [np.exp(start[k]) * np.linspace(max(0.02, 1 - reach), 1 + reach, FINE) for k in (0, 1)]
        start, deviations = _most_probable(chosen, grids, start)
    on, off, spread = (float(np.exp(value)) for value in start)
    mean = (on + off) / 2
    return ThresholdFit(
        Estimate.of(on, on * deviations[0]),
        Estimate.of(off, off * deviations[1]),
        Estimate.of(spread * mean, spread * mean * deviations[2]),
        chosen.pixels,
        len(chosen.level),
    )


@dataclass(frozen=True)
class _Chosen:
    """Rows behind the first of each chain, counted from that; and where chains and pixels begin among them."""

    level: Array
    on: Array
    off: Array
    side: NDArray[np.int64]
    chains: NDArray[np.int64]  # the first row of each
    begun: NDArray[np.int64]  # the side at which each begins
    of_pixels: NDArray[np.int64]  # the pixel of each chain, numbered from 0 on
    pixels: int
    doubt: Array  # of each chain, the probability of what is seen if it is none of what passed

    @classmethod
    def of(cls, rows: Passages, left_out: NDArray[np.bool_], most: int, doubt: float) -> _Chosen | None:
        """The chains of `most` pixels, spread evenly over the camera; None if too few pixels have any."""
        kept = ~left_out[rows.pixel] if len(rows.pixel) else np.zeros(0, np.bool_)
        there = np.unique(rows.pixel[kept])
        there = there[:: max(1, -(-len(there) // most))]
        kept &= np.isin(rows.pixel, there) & (_rank(rows.pixel) < MOST_ROWS)
        chain, level, on, off, side, pixel = (
            each[kept] for each in (rows.chain, rows.level, rows.on, rows.off, rows.side, rows.pixel)
        )
        first = np.searchsorted(chain, chain)
        later = first != np.arange(len(chain))
        if len(np.unique(pixel[later])) < LEAST_PIXELS:
            return None
        begins = np.unique(chain[later], return_index=True)[1]
        numbers = np.unique(pixel[later][begins], return_inverse=True)[1]
        return cls(
            (level - level[first])[later],
            (on - on[first])[later].astype(np.float64),
            (off - off[first])[later].astype(np.float64),
            side[later],
            begins,
            side[first][later][begins],
            numbers,
            int(numbers.max()) + 1,
            THEN * np.maximum(LEAST_DOUBT, 1 - (1 - doubt) ** np.diff(np.r_[begins, later.sum()])),
        )

    def probability(self, on: float, off: float) -> Array:
        """(pixels,): the logarithm of the probability of what each has seen, if these are its thresholds."""
        added = self.level - on * self.on + off * self.off
        low = np.where(self.side == ABOVE, 0.0, -off) - added
        high = np.where(self.side == BELOW, 0.0, on) - added
        bottom = np.maximum.reduceat(low, self.chains)
        top = np.minimum.reduceat(high, self.chains)
        first = np.select([self.begun == ABOVE, self.begun == UNIFORM], [0.0, -0.9 * off], -off)
        last = np.select([self.begun == BELOW, self.begun == UNIFORM], [0.0, 0.9 * on], on)
        share = np.maximum(np.minimum(top, last) - np.maximum(bottom, first), 0) / (last - first)
        every = np.bincount(self.of_pixels, np.log(self.doubt + (1 - self.doubt) * share), self.pixels)
        return np.asarray(every, np.float64)


def _rank(pixel: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows,): how many rows of the same pixel come before each."""
    order = np.argsort(pixel, kind="stable")
    result = np.empty(len(pixel), np.int64)
    result[order] = np.arange(len(pixel)) - np.searchsorted(pixel[order], pixel[order])
    return result


def _best(chosen: _Chosen, on: Array, off: Array) -> tuple[float, float]:
    """The logarithms of the thresholds of a grid that are most probable if all pixels have the same."""
    table = np.array([[chosen.probability(a, b).sum() for b in off] for a in on])
    i, j = np.unravel_index(int(table.argmax()), table.shape)
    return float(np.log(on[i])), float(np.log(off[j]))


def _most_probable(chosen: _Chosen, grids: list[Array], start: Array) -> tuple[Array, Array]:
    """The logarithms of both means and of the spread's share of the mean, and their standard deviations."""
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise GerdError("gerd fit needs the package scipy: pip install 'gerd-events[camera]'") from None
    table = np.array([[chosen.probability(a, b) for b in grids[1]] for a in grids[0]])  # (on, off, pixels)
    most = table.max(axis=(0, 1))
    shares = np.exp(table - most)

    def cost(point: Array) -> float:
        on, off, share = np.exp(point)
        spread = max(share, LEAST_SPREAD) * (on + off) / 2
        weights = [np.exp(-(((grid - mean) / spread) ** 2) / 2) for grid, mean in zip(grids, (on, off), strict=True)]
        if min(each.sum() for each in weights) <= 0:
            return 1e12
        a, b = (each / each.sum() for each in weights)
        seen = np.tensordot(np.tensordot(a, shares, (0, 0)), b, (0, 0))
        return -float(np.log(np.maximum(seen, 1e-300)).sum())

    bounds = [(np.log(grid[0]), np.log(grid[-1])) for grid in grids] + [(np.log(LEAST_SPREAD), 0.0)]
    begun = np.clip(start, *np.array(bounds).T)
    found = minimize(cost, begun, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-4, "fatol": 1e-3})
    return np.asarray(found.x), _deviations(cost, np.asarray(found.x))


def _deviations(cost: Callable[[Array], float], at: Array) -> Array:
    """Standard deviations of parameters, from the curvature of a negative logarithm of a probability."""
    size = len(at)
    steps = np.eye(size) * STEP
    curvature = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            corners = [cost(at + a * steps[i] + b * steps[j]) * a * b for a in (1, -1) for b in (1, -1)]
            curvature[i, j] = sum(corners) / (4 * STEP**2)
    values = np.linalg.pinv(curvature).diagonal()
    return np.sqrt(np.maximum(values, 0))

"""The refractory time of pixels: the times between their events go in, the least that is no chance comes out.

A pixel that has just fired does not fire again for a while, so that shorter times between its events come from noise
only. Where there is no such time, edges that are too slow to give events one soon after another have a shortest one,
too; but then few are nearly as short. If the integrator goes on in the meantime, many pixels fire just when it is over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.screen.thresholds import Estimate

NEARLY = 1.25  # times the shortest: what is nearly as short
LEAST = 30  # intervals that are
SHARP = 0.3  # of what lies from there on, up to as much longer again
PILED = 0.5  # of what is nearly as short: such a share fires just when the time is over, if the integrator goes on
SURELY = 4.0  # standard deviations by which there are more than noise alone makes
CERTAIN = 3.0  # mean distances between intervals, in which there is one with 95 %


@dataclass(frozen=True)
class RefractoryFit:
    """For how long pixels do not fire again."""

    us: Estimate | None  # None: none is seen
    at_most_us: float  # infinite where too few events tell
    loses_events: bool = False  # or they wait until it is over


def fit_refractory(intervals_us: NDArray[np.int64], noise_per_s: float) -> RefractoryFit:
    """The refractory time. `noise_per_s`: how many events of noise a pixel has in a second."""
    times = np.sort(intervals_us)
    if len(times) < LEAST:
        return RefractoryFit(None, float("inf"))
    # So many of them are shorter than each, where noise alone makes them so: an event of it comes before or after.
    expected = 2 * len(times) * noise_per_s * times * 1e-6
    first = int((np.arange(len(times)) > expected + SURELY * np.sqrt(expected)).argmax())
    shortest = float(times[first])

    def between(low: float, high: float) -> int:
        return int(((times >= low * shortest) & (times < high * shortest)).sum())

    near, beyond = between(1.0, NEARLY), between(NEARLY, 2 * NEARLY - 1)
    piled = int(((times >= shortest) & (times <= shortest + 1)).sum()) > PILED * near
    if shortest <= 0 or near < LEAST or (near < SHARP * beyond and not piled):
        return RefractoryFit(None, shortest)
    apart = (NEARLY - 1) * shortest / near
    reach = apart * (CERTAIN + SURELY * np.sqrt(expected[first])) + 1  # and a microsecond, to which times are rounded
    estimate = Estimate(shortest, max(0.0, float(shortest - reach)), shortest + 1)
    return RefractoryFit(estimate, shortest, not piled)

"""The camera's clock against that of a video: events in; when the camera saw each frame out.

The flashes are found in the number of events per millisecond, by their code. The final clock comes from many small
spots that go on and off, since a whole screen may give more events at once than a camera can send in time. A screen may
show its lower rows later than its upper ones, and its pixels may need longer to become dark than bright, or the camera
to see it; both are found, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.screen.source import Windows, split
from gerd.screen.stimulus import Frames, Stimulus

Array = NDArray[np.float64]

BIN_US = 1000
MOST_BINS = 2**27  # of a recording: 37 hours
MOST_DRIFT = 0.01  # by which two clocks can differ
LEAST_SHARE = 0.02  # of the camera's pixels that a flash has to reach
ALIKE = 0.6  # how well flashes have to agree with their code: 1 is altogether, 0 not at all
EACH_EDGE = 0.25  # and each beginning and end of one
OUTLIER = 4.0  # standard deviations


@dataclass(frozen=True)
class Clock:
    """When, by the camera's clock, it sees what a frame changes."""

    offset_us: float  # of frame 0, in the middle of the screen
    frame_us: float  # from a frame to the next
    across_us: float = 0.0  # how much later the right border of the screen changes than the left one
    down_us: float = 0.0  # and the lower border than the upper one
    lag_us: float = 0.0  # how much later the end of a light is seen than its beginning

    @overload
    def at(self, frame: float) -> float: ...

    @overload
    def at(self, frame: Array | float, place: Array, ends: Array | float = ...) -> Array: ...

    def at(
        self, frame: Array | float, place: Array | tuple[float, float] = (0.5, 0.5), ends: Array | float = 0.5
    ) -> Array | float:
        """The time in µs at which a frame is seen; `place` is that on the screen, from 0 to 1 in x and y."""
        across, down = np.moveaxis(np.asarray(place, np.float64), -1, 0)
        scanned = self.across_us * (across - 0.5) + self.down_us * (down - 0.5)
        return self.offset_us + self.frame_us * frame + scanned + self.lag_us * (ends - 0.5)

    def drift_ppm(self, stimulus: Stimulus) -> float:
        """How much faster the camera's clock is than that of the video, in millionths."""
        return (self.frame_us / stimulus.frame_us - 1) * 1e6


@dataclass(frozen=True)
class Edges:
    """Lights that went on or off: rows of the same number."""

    frame: Array  # of the video
    place: Array  # (n, 2): where on the screen, from 0 to 1
    ends: Array  # 1 where the light went off, 0 where it went on
    seen_us: Array  # when the camera saw it

    def __len__(self) -> int:
        return len(self.frame)

    @staticmethod
    def joined(*parts: Edges) -> Edges:
        return Edges(*(np.concatenate([getattr(each, name) for each in parts]) for name in Edges.__annotations__))


@dataclass(frozen=True)
class ClockFit:
    """A clock and how well it is known."""

    clock: Clock
    edges: Edges
    kept: NDArray[np.bool_]  # which edges were taken into account

    @cached_property
    def residuals_us(self) -> Array:
        edges = self.edges
        return edges.seen_us - self.clock.at(edges.frame, edges.place, edges.ends)

    @cached_property
    def rms_us(self) -> float:
        return float(np.sqrt((self.residuals_us[self.kept] ** 2).mean()))

    def uncertainty_us(self, stimulus: Stimulus) -> float:
        """How far off the clock may be, in one standard deviation, at the frame where it is known least."""
        rows = _rows(self.edges)[self.kept]
        covariance = self.rms_us**2 * np.linalg.pinv(rows.T @ rows)
        ends = np.array([[1.0, frame, 0, 0, 0] for frame in (0, stimulus.frames)])
        return float(np.sqrt(np.einsum("ni,ij,nj->n", ends, covariance, ends).max()))


@dataclass(frozen=True)
class FoundFlashes:
    """How well the flashes of a stimulus were found, and the clock that they give, if they were."""

    before: float  # agreement, 1 at the most
    after: float
    clock: Clock | None


def rates(windows: Windows, sign: int) -> tuple[int, Array, Array]:
    """Where the first bin begins, and of each bin the events of the kind that light gives minus the others; and all."""
    began = None
    parts = []
    for events in windows(0, None):
        bins = events["t"] // BIN_US
        if began is None:
            began = int(bins[0])
        number = bins - began
        parts.append((number, np.where(events["p"], sign, -sign)))
    if began is None:
        return 0, np.zeros(0), np.zeros(0)
    length = int(parts[-1][0][-1]) + 1
    if length > MOST_BINS:
        span = f"{length * BIN_US / 3.6e9:.3g} hours from the first event to the last"
        raise GerdError(f"{span}; allowed: up to {MOST_BINS * BIN_US / 3.6e9:.0f}, or a part, by start_us and stop_us")
    signed, every = np.zeros(length), np.zeros(length)
    for number, weight in parts:
        low = int(number[0])
        size = int(number[-1] - number[0]) + 1
        signed[low : low + size] += np.bincount(number - low, weight, size)
        every[low : low + size] += np.bincount(number - low, minlength=size)
    return began * BIN_US, signed, every


def find_flashes(stimulus: Stimulus, began_us: int, signed: Array, every: Array, pixels: int) -> FoundFlashes:
    """The clock by the flashes before and after the scenes, from what `rates` gives."""
    slot_us = _slot(stimulus) * stimulus.frame_us
    reach = max(2, round(0.6 * slot_us / BIN_US))  # bins in which a change shows
    kernel = np.ones(reach)
    change = np.convolve(signed, kernel)[reach - 1 :]  # of the bins from each on
    purity = change / (np.convolve(every, kernel)[reach - 1 :] + LEAST_SHARE * pixels)
    scores = [_agreement(stimulus, flashes, purity) for flashes in stimulus.flashes]
    before, after = (float(score.max(initial=0)) for score in scores)
    candidates = [np.flatnonzero(score > ALIKE) for score in scores]
    length = stimulus.flashes[1][0][0] - stimulus.flashes[0][0][0]
    bins = length * stimulus.frame_us / BIN_US
    most = 0.0
    pair = None
    for start in candidates[0]:
        near = candidates[1][np.abs(candidates[1] - start - bins) <= MOST_DRIFT * bins + 2]
        if len(near):
            stop = near[scores[1][near].argmax()]
            if (score := scores[0][start] + scores[1][stop]) > most:
                most = score
                pair = (start, stop)
    if pair is None:
        return FoundFlashes(before, after, None)
    frame_us = (pair[1] - pair[0]) * BIN_US / length
    offset = began_us + pair[0] * BIN_US - frame_us * stimulus.flashes[0][0][0]
    return FoundFlashes(before, after, Clock(float(offset), float(frame_us)))


def _agreement(stimulus: Stimulus, flashes: tuple[Frames, ...], purity: Array) -> Array:
    """How well what follows each bin agrees with flashes that begin in it; 0 where any of their edges is missing."""
    per_frame = stimulus.frame_us / BIN_US
    edges = [(frame - flashes[0][0], sign) for flash in flashes for frame, sign in zip(flash, (1, -1), strict=True)]
    shifts = [round(frame * per_frame) for frame, _ in edges]
    length = len(purity) - shifts[-1]
    if length <= 0:
        return np.zeros(0)
    seen = [sign * purity[shift : shift + length] for shift, (_, sign) in zip(shifts, edges, strict=True)]
    return np.where(np.min(seen, axis=0) > EACH_EDGE, np.mean(seen, axis=0), 0.0)


def flash_edges(stimulus: Stimulus, clock: Clock, windows: Windows, sign: int) -> Edges:
    """When the camera saw each flash begin and end: the median time of the events that this gave."""
    slot_us = _slot(stimulus) * clock.frame_us
    found = []
    edges = [(frame, ends) for flashes in stimulus.flashes for flash in flashes for ends, frame in enumerate(flash)]
    spans = [(clock.at(frame) - 0.4 * slot_us, clock.at(frame) + 0.6 * slot_us) for frame, _ in edges]
    for (frame, ends), events in zip(edges, split(windows, spans), strict=True):
        times = events["t"][events["p"] == ((sign > 0) != bool(ends))]
        if len(times):
            found.append((frame, ends, float(np.median(times))))
    frames, ended, seen = np.array(found, np.float64).reshape(-1, 3).T
    return Edges(frames, np.full((len(frames), 2), 0.5), ended, seen)


def fit_clock(edges: Edges, *, scan: bool = True) -> ClockFit:
    """The clock that agrees with most edges; without `scan` the whole screen changes at once."""
    rows = _rows(edges)
    if not scan:
        rows[:, 2:4] = 0
    kept = np.ones(len(edges), bool)
    for _ in range(8):
        middle = rows[kept].mean(axis=0) * [0, 1, 0, 0, 0]
        solution = np.linalg.lstsq(rows[kept] - middle, edges.seen_us[kept], rcond=None)[0]
        solution[0] -= middle[1] * solution[1]
        away = np.abs(edges.seen_us - rows @ solution)
        again = away <= max(OUTLIER * 1.4826 * float(np.median(away)), 1.0)
        if np.array_equal(again, kept):
            break
        kept = again
    return ClockFit(Clock(*solution.tolist()), edges, kept)


def _rows(edges: Edges) -> Array:
    one = np.ones(len(edges))
    return np.stack([one, edges.frame, *(edges.place - 0.5).T, edges.ends - 0.5], axis=1)


def _slot(stimulus: Stimulus) -> int:
    """The shortest time for which anything is lit, in frames."""
    return min(stop - start for flashes in stimulus.flashes for start, stop in flashes)

"""What streams of events are like, in numbers that need no ground truth: events in, numbers of a part of them out.

Each number looks at what one effect of a camera changes, and as little else as possible: pixels that fire far more than
those around them are set aside first, and events that are alone are noise and not of an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gerd.recording.events import Events

Whole = NDArray[np.int64]

HOT_FACTOR, HOT_LEAST = 5, 10  # a hot pixel has more than so many times the events of its neighbours, and so many more
DEAD_LEAST = 5  # events that the median neighbour of a dead pixel has at least
LEAST_INTERVALS = 20  # of which something is said
SECOND = 1_000_000
SPAN = 2**40  # microseconds between the times of one pixel and the next, where all are put into one order


@dataclass(frozen=True)
class Part:
    """Some time of a recording, without hot pixels; its events are in the order of (pixel, time)."""

    width: int
    height: int
    pixels: int  # without hot ones
    duration_us: int
    pixel: Whole
    time: Whole  # microseconds since the part began
    on: NDArray[np.bool_]
    alone: NDArray[np.bool_]  # whether no event of the pixel or of the eight around it is near in time
    near_us: int


@dataclass(frozen=True)
class Number:
    """One of the numbers that parts have."""

    name: str
    unit: str
    effect: str  # what a difference suggests
    of: Callable[[Part], float]  # NaN where there is nothing to say
    of_scene: bool = True  # whether it depends on what is seen, too


def pixel_counts(recordings: Sequence[Events]) -> Whole:
    """(height, width): the events of each pixel, of both polarities."""
    height, width = recordings[0].height, recordings[0].width
    result = np.zeros(height * width, np.int64)
    for each in recordings:
        result += np.bincount(each.codec.pixels(each.keys) >> 1, minlength=height * width)
    return result.reshape(height, width)


def hot_pixels(counts: Whole) -> NDArray[np.bool_]:
    """(height, width): which pixels fire far more than the median of those around them."""
    around = _median_around(counts)
    return (counts > HOT_FACTOR * around) & (counts >= around + HOT_LEAST)


def dead_pixels(counts: Whole) -> NDArray[np.bool_]:
    """(height, width): which pixels are silent although those around them fire."""
    return (counts == 0) & looked_at(counts)


def looked_at(counts: Whole) -> NDArray[np.bool_]:
    """(height, width): the pixels around which there are events, so that silence says something."""
    return _median_around(counts) >= DEAD_LEAST


def _median_around(counts: Whole) -> NDArray[np.float64]:
    padded = np.pad(counts.astype(np.float64), 1, constant_values=np.nan)
    height, width = counts.shape
    rows, columns = np.mgrid[0:3, 0:3].reshape(2, 9)
    around = [
        padded[row : row + height, column : column + width]
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        if (row, column) != (1, 1)
    ]
    if height * width == 1:
        return np.zeros((1, 1))
    return np.nanmedian(np.stack(around), axis=0)


def parts_of(recording: Events, hot: NDArray[np.bool_], span: tuple[int, int], near_us: int, count: int) -> list[Part]:
    """The recording in `count` parts of equal time between two times in microseconds, without events of hot pixels."""
    keys = recording.keys[~hot.reshape(-1)[recording.codec.pixels(recording.keys) >> 1]]
    place = recording.codec.pixels(keys)
    time = recording.codec.elapsed(keys, recording.step_us) + recording.first * recording.step_us - span[0]
    order = np.lexsort((time, place >> 1))
    pixel, on, time = (place >> 1)[order], (place[order] & 1) == 1, time[order]
    alone = _alone(pixel, time, recording.width, near_us)
    length = max(span[1] - span[0], count)  # no part is empty
    bounds = [length * k // count for k in range(count + 1)]
    result = []
    for begin, end in pairwise(bounds):
        some = (time >= begin) & (time < end)
        area = recording.width * recording.height - int(hot.sum())
        shape = recording.width, recording.height, area, end - begin
        result.append(Part(*shape, pixel[some], time[some] - begin, on[some], alone[some], near_us))
    return result


def _alone(pixel: Whole, time: Whole, width: int, near_us: int) -> NDArray[np.bool_]:
    """Which events, in the order of (pixel, time), have no other event near them in place and time."""
    moment = pixel * SPAN + time
    result = np.ones(len(pixel), np.bool_)
    column = pixel % width
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            there = moment + (down * width + right) * SPAN
            found = np.searchsorted(moment, there + near_us, side="right") - np.searchsorted(moment, there - near_us)
            inside = (column + right >= 0) & (column + right < width)
            result &= ~inside | (found <= (down == right == 0))
    return result


def _rate(part: Part) -> float:
    return len(part.time) / part.pixels / part.duration_us * SECOND


def _noise(part: Part, on: bool) -> float:
    """Events that are alone, per pixel and second of the time in which an event would be alone."""
    quiet = (part.pixels * part.duration_us - _busy(part)) / SECOND
    return float((part.alone & (part.on == on)).sum() / quiet) if quiet > 0 else np.nan


def _on_beyond_off(part: Part) -> float:
    return _noise(part, True) - _noise(part, False)


def _busy(part: Part) -> int:
    """The microseconds of all pixels in which an event of an edge is near."""
    pixel, time, _ = _edge(part)
    x, y = pixel % part.width, pixel // part.width
    near = np.array([(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)])
    rows, columns = y + near[:, :1], x + near[:, 1:]
    inside = (rows >= 0) & (rows < part.height) & (columns >= 0) & (columns < part.width)
    place = (rows * part.width + columns)[inside]
    moment = np.broadcast_to(time, rows.shape)[inside]
    order = np.lexsort((moment, place))
    place, moment = place[order], moment[order]
    begin, end = np.maximum(moment - part.near_us, 0), np.minimum(moment + part.near_us, part.duration_us)
    follows = np.diff(place) == 0
    begin[1:][follows] = np.maximum(begin[1:][follows], end[:-1][follows])
    return int((end - begin).sum())


def _edge(part: Part) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    return part.pixel[~part.alone], part.time[~part.alone], part.on[~part.alone]


def _on_share(part: Part) -> float:
    _, _, on = _edge(part)
    return float(on.mean()) if len(on) else np.nan


def _per_passage(part: Part) -> float:
    """How many events of one polarity a pixel has in a row, with no pause between them."""
    _, follows = _passages(part)
    return (len(follows) + 1) / (1 + int((~follows).sum())) if len(follows) else np.nan


def _passages(part: Part) -> tuple[Whole, NDArray[np.bool_]]:
    """Between events of edges in the order of (pixel, time): microseconds, and whether both are of one passage."""
    pixel, time, on = _edge(part)
    intervals = np.diff(time)
    return intervals, (np.diff(pixel) == 0) & (on[1:] == on[:-1]) & (intervals <= part.near_us)


def _intervals(part: Part) -> Whole:
    """Between events of an edge that follow each other at a pixel, in microseconds; of the same time: 0."""
    pixel, time, _ = _edge(part)
    return np.diff(time)[np.diff(pixel) == 0]


def _shortest(part: Part) -> float:
    intervals = _intervals(part)
    return float(np.quantile(intervals, 0.01)) if len(intervals) >= LEAST_INTERVALS else np.nan


def _median_interval(part: Part) -> float:
    intervals = _intervals(part)
    return float(np.median(intervals)) if len(intervals) else np.nan


def _shortest_of_median(part: Part) -> float:
    """The shortest intervals of passages as a share of the median, which no threshold changes; mean of ON and OFF."""
    intervals, follows = _passages(part)
    on = _edge(part)[2][1:]
    groups = [intervals[follows & (on == polarity)] for polarity in (True, False)]
    if min(map(len, groups)) < LEAST_INTERVALS:
        return np.nan
    return float(np.mean([np.quantile(each, 0.01) / max(np.median(each), 1) for each in groups]))


def _uneven(part: Part) -> float:
    """By which share of their mean the next two intervals of a passage differ, beyond rounding; median."""
    intervals, follows = _passages(part)
    both = follows[1:] & follows[:-1]
    one, other = intervals[:-1][both], intervals[1:][both]
    if len(one) < LEAST_INTERVALS:
        return np.nan
    apart = np.maximum(np.abs(one - other) - 2, 0)  # each of the three times is rounded
    return float(np.median(2 * apart / np.maximum(one + other, 1)))


def _shortest_pause(part: Part) -> float:
    """Between any two events of the frame, where there are so many that some would fall on one time by chance."""
    if len(part.time) ** 2 < 4 * part.duration_us:  # two pairs, if all were spread evenly
        return np.nan
    return float(np.diff(np.sort(part.time)).min())


def _together(part: Part) -> float:
    """The share of events of edges that have their time in common with another event of an edge."""
    _, time, _ = _edge(part)
    if not len(time):
        return np.nan
    _, counts = np.unique(time, return_counts=True)
    return float(counts[counts > 1].sum() / len(time))


THRESHOLDS = "thresholds, of ON, of OFF or both, or from pixel to pixel, or the contrast"
BACKGROUND = "background noise"
LEAK = "a leak, or background noise of ON alone"
BUS = "a readout bus that sends one event after the other"
CLOCK = "the clock: readout, or pictures that were sampled"
REFRACTORY = "a refractory time"
JITTER = "jitter"
SPEED = "speed, or thresholds"

NOISE_ON = Number("noise, ON", "per pixel and s", BACKGROUND, lambda part: _noise(part, True), of_scene=False)
NOISE_OFF = Number("noise, OFF", "per pixel and s", BACKGROUND, lambda part: _noise(part, False), of_scene=False)
ON_BEYOND_OFF = Number("noise, ON beyond OFF", "per pixel and s", LEAK, _on_beyond_off, of_scene=False)
TOGETHER = Number("events at one time", "share", CLOCK, _together)
SHORTEST = Number("shortest intervals", "µs, 1 %", THRESHOLDS, _shortest)
OF_MEDIAN = Number("shortest of a passage", "of the median", THRESHOLDS, _shortest_of_median)
UNEVEN = Number("unevenness of a passage", "of an interval", THRESHOLDS, _uneven)
MEDIAN = Number("median interval", "µs", SPEED, _median_interval)
RATE = Number("rate", "per pixel and s", "what is seen, and how fast it moves", _rate)
PAUSE = Number("shortest pause of the frame", "µs", BUS, _shortest_pause)
NUMBERS = (
    NOISE_ON,
    NOISE_OFF,
    ON_BEYOND_OFF,
    Number("ON events of edges", "share", THRESHOLDS, _on_share),
    Number("events of an edge's passage", "per pixel", THRESHOLDS, _per_passage),
    TOGETHER,
    PAUSE,
    SHORTEST,
    OF_MEDIAN,
    UNEVEN,
    MEDIAN,
    RATE,
)
UNSPECIFIC = (MEDIAN.effect, RATE.effect)  # of what nearly every effect changes

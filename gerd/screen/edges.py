"""Edges that are known to pass pixels, and the events of these: a recording with its truth in, both out.

In exact timing the truth tells at which times a pixel has which brightness while an edge passes it. A pixel's edges
follow each other as long as brightness only rises, or only falls, from one quiet time to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gerd.events import exact
from gerd.recording.derived import images_at
from gerd.recording.recording import Recording

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_PIXELS = 3000  # that are looked at, spread evenly over the camera
AT_ONCE = 2**22  # pixels of pictures that are looked at together, or instants
LEAST_CHANGE = 1e-6  # of brightness, from one instant to the next
LEAST_EVENTS = 5  # of a pixel


@dataclass(frozen=True)
class Edge:
    """An edge that passes a pixel, and its events."""

    times_us: Array  # at which the pixel has these levels
    levels: Array  # that ascend, negated if brightness falls
    sign: int
    events_us: Array  # when they come

    def times(self, levels: Array) -> tuple[Array, Array]:
        """When the pixel has these levels, and how much later it has higher ones."""
        ends = np.clip(np.searchsorted(self.levels, self.sign * levels), 1, len(self.levels) - 1)
        slopes = (self.times_us[ends] - self.times_us[ends - 1]) / (self.levels[ends] - self.levels[ends - 1])
        return self.times_us[ends - 1] + slopes * (self.sign * levels - self.levels[ends - 1]), self.sign * slopes

    def levels_at(self, times_us: Array) -> Array:
        return self.sign * np.interp(times_us, self.times_us, self.levels)

    @property
    def late_us(self) -> float:
        """How much later than the middle of the edge its events come."""
        middle = np.interp((self.levels[0] + self.levels[-1]) / 2, self.levels, self.times_us)
        return float(self.events_us.mean() - middle)


@dataclass(frozen=True)
class Passed:
    """A pixel, and edges with events that pass it in one recording, with nothing unknown in between."""

    pixel: int
    edges: tuple[Edge, ...]

    @property
    def events_us(self) -> Array:
        return np.concatenate([edge.events_us for edge in self.edges])

    @property
    def _ends(self) -> Integers:
        return np.cumsum([len(edge.events_us) for edge in self.edges])[:-1]

    @property
    def shortest_us(self) -> float:
        """The shortest time between events of the same edge."""
        return min(float(np.diff(edge.events_us).min(initial=np.inf)) for edge in self.edges)

    @property
    def parts(self) -> Array:
        """(events, 3): in the level of each event, how often are the first level, the ON and the OFF threshold."""
        signs = np.concatenate([np.full(len(edge.events_us), edge.sign) for edge in self.edges])
        return np.stack([np.ones(len(signs)), (signs > 0).cumsum(), -(signs < 0).cumsum()], axis=1)

    def times(self, levels: Array) -> tuple[Array, Array]:
        """When the pixel has the level of each event, and how much later it has higher ones."""
        found = [edge.times(part) for edge, part in zip(self.edges, np.split(levels, self._ends), strict=True)]
        return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])

    def with_events(self, events_us: Array) -> Passed:
        """The passage of the same edges with events that come at other times."""
        parts = zip(self.edges, np.split(events_us, self._ends), strict=True)
        return replace(self, edges=tuple(replace(edge, events_us=np.sort(own)) for edge, own in parts))


def passed_pixels(part: Recording, quiet: NDArray[np.bool_], light_of_background: float) -> list[Passed]:
    """Pixels that become brighter and darker in some steps of a recording in exact timing.

    quiet: (steps, pixels), where nothing changes near a pixel, and its late events have come.
    """
    pixels = np.arange(0, quiet.shape[1], max(1, -(-quiet.shape[1] // MOST_PIXELS)))
    moments = _instants(part)
    levels = _levels(part, moments + part.first, pixels, light_of_background)
    step, y, x, p = part.coordinates.T
    place = y * part.width + x
    times = part.codec.times(part.keys, part.step_us)
    order = np.argsort(place, kind="stable")
    order = order[~quiet[step, place][order]]
    begins, ends = (np.searchsorted(place[order], pixels, side) for side in ("left", "right"))
    result = []
    for i in np.flatnonzero(ends - begins >= LEAST_EVENTS):
        own = order[begins[i] : ends[i]]
        still = np.flatnonzero(quiet[:, pixels[i]])
        run: list[Edge] = []
        for last in np.flatnonzero(np.diff(still) > 1):
            begin, end = still[last], still[last + 1]
            there = own[(step[own] > begin) & (step[own] < end)]
            span = slice(np.searchsorted(moments, begin), np.searchsorted(moments, end, "right"))
            edge = _edge(moments[span] * part.step_us, levels[span, i], times[there], p[there])
            if edge is None:
                result.append(Passed(int(pixels[i]), tuple(run)))
                run = []
            elif len(edge.events_us):
                run.append(edge)
        result.append(Passed(int(pixels[i]), tuple(run)))
    return [each for each in result if _tells(each)]


def _instants(part: Recording) -> Array:
    """Times in steps, from the first of a part to its last, between which brightness is linear."""
    scene = part.scene
    rate = scene.trajectory.rate
    first, stop = math.floor(rate * part.first), exact.last_unit(scene, part.first + part.steps)
    parts = [each for _, each in exact.slabs(scene.in_own_time(), rate, first, stop, AT_ONCE)]
    times = np.unique(np.concatenate([each.own[0] for each in parts])) / rate - part.first
    return np.asarray(times[(times >= 0) & (times <= part.steps - 1)])


def _levels(part: Recording, moments: Array, pixels: NDArray[np.int64], light_of_background: float) -> Array:
    """(moments, pixels): what integrators see."""
    at_once = max(1, AT_ONCE // (part.height * part.width))
    blocks = (moments[begin : begin + at_once] for begin in range(0, len(moments), at_once))
    seen = [images_at(part, block).reshape(len(block), -1)[:, pixels] for block in blocks]
    pictures = np.concatenate(seen).astype(np.float64)
    return np.log1p(pictures / light_of_background) if light_of_background else pictures


def _edge(times: Array, levels: Array, events: NDArray[np.int64], polarity: NDArray[np.int64]) -> Edge | None:
    """None if brightness does not only rise, or only fall, or if events say that it does something else."""
    sign = 1 if levels[-1] > levels[0] else -1
    ascending = sign * levels
    moved = np.diff(ascending) > LEAST_CHANGE
    other_way = (np.diff(ascending) < -LEAST_CHANGE).any() or (2 * polarity - 1 != sign).any()
    if other_way or (len(events) and not moved.any()):
        return None
    kept = np.r_[moved, False] | np.r_[False, moved]
    return Edge(times[kept], ascending[kept], sign, events.astype(np.float64))


def _tells(passed: Passed) -> bool:
    return len({edge.sign for edge in passed.edges}) == 2 and len(passed.events_us) >= LEAST_EVENTS

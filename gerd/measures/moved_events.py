"""What a transformation does to events: those of x and of g·x in, how far they are apart out.

An event at p and t of x belongs at G(t / s) p and t / s in g·x, where G and s are those of the transformation. Where
that takes pixels to pixels, an event of g·x is there or it is not; elsewhere it can only be near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.measures.matching import matched
from gerd.recording.events import Events
from gerd.scene.transformation import Transformation

Array = NDArray[np.float64]

NEAR = 1e-6  # pixels within which a place is the centre of a pixel
STEP = 0.25  # pixels that a step counts as, about as far as shapes move in it
AT_ONCE = 2**22  # distances that are held together


@dataclass(frozen=True)
class Located:
    """Events at places in pixels (not only at the centres of pixels) and times in microseconds."""

    x: Array
    y: Array
    t: Array
    p: NDArray[np.bool_]

    @classmethod
    def of(cls, events: Events) -> Located:
        """Events where they are: in the middle of their pixels."""
        array = events.events
        return cls(array["x"] + 0.5, array["y"] + 0.5, array["t"].astype(np.float64), array["p"])

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: NDArray[np.bool_]) -> Located:
        return Located(self.x[rows], self.y[rows], self.t[rows], self.p[rows])

    def moved(self, g: Transformation, width: int, height: int, step_us: int) -> Located:
        """Where these events belong after a transformation of a frame of this size."""
        t = self.t / g.time_scale
        x, y = g.frame(width, height).takes(self.x, self.y, t / step_us)
        return Located(x, y, t, self.p)

    def inside(self, width: int, height: int, end: float) -> NDArray[np.bool_]:
        """Which of them lie in a frame, and up to a time."""
        within = (self.x > 0) & (self.x < width) & (self.y > 0) & (self.y < height)
        result: NDArray[np.bool_] = within & (self.t <= end)
        return result

    def fewer(self, count: int) -> Located:
        """So many of these events, evenly spread over their order; all of them if there are no more."""
        rows = np.zeros(len(self), np.bool_)
        rows[np.linspace(0, len(self) - 1, min(count, len(self))).round().astype(np.int64)] = True
        return self[rows]


def twins(x: Events, g_x: Events, g: Transformation) -> tuple[Located, Located]:
    """Where events of x belong after a transformation, and those of g·x, without what only one of both could have."""
    size = (x.width, x.height)
    step_us = x.step_us
    end = (x.steps - 1) * step_us * min(1.0, 1 / g.time_scale)  # up to where both show the same path
    expected = Located.of(x).moved(g, *size, step_us)
    found = Located.of(g_x)
    back = found.moved(g.inverse(), *size, step_us)
    return expected[expected.inside(*size, end)], found[found.inside(*size, end) & back.inside(*size, np.inf)]


def share_alone(expected: Located, found: Located, width: int, window_us: int) -> float:
    """The share of the events of both that have no counterpart: one of the same pixel and polarity, near in time.

    Each event is the counterpart of one other at most. All events have to be in the middle of a pixel.
    """
    for each in (expected, found):
        if not _at_centres(each):
            raise GerdError(
                "events between pixels have no counterparts; allowed: a transformation that takes pixels to pixels"
            )
    sites, others = (_sites(each, width) for each in (expected, found))
    times, other_times = (np.rint(each.t).astype(np.int64) for each in (expected, found))
    pairs, _ = matched(sites, times, others, other_times, window_us)
    count = len(expected) + len(found)
    return 1 - 2 * len(pairs) / count if count else 0.0


def distance(expected: Located, found: Located, step_us: int, cap: float) -> float:
    """How far, in pixels, an event is from the nearest of the others of its polarity: the mean, both ways.

    cap: the largest distance that counts, also where there is no such event at all.
    """
    away = np.concatenate([_nearest(expected, found, step_us, cap), _nearest(found, expected, step_us, cap)])
    return float(away.mean()) if len(away) else 0.0


def _at_centres(events: Located) -> bool:
    """Whether all events are in the middle of a pixel."""
    return all(bool((np.abs(part % 1 - 0.5) < NEAR).all()) for part in (events.x, events.y))


def _sites(events: Located, width: int) -> NDArray[np.int64]:
    """A number for each event's pixel and polarity."""
    x, y = (np.floor(part).astype(np.int64) for part in (events.x, events.y))
    return (y * width + x) * 2 + events.p


def _nearest(some: Located, others: Located, step_us: int, cap: float) -> Array:
    """(some,): the distance from each event to the nearest of the others of its polarity, at most `cap`."""
    result = np.full(len(some), cap)
    for polarity in (False, True):
        rows = np.flatnonzero(some.p == polarity)
        points, targets = (
            torch.from_numpy(np.stack([each.x, each.y, each.t * (STEP / step_us)], axis=1)[each.p == polarity])
            for each in (some, others)
        )
        if not len(targets):
            continue
        at_once = max(1, AT_ONCE // len(targets))
        for begin in range(0, len(points), at_once):
            nearest = torch.cdist(points[begin : begin + at_once], targets).amin(1).numpy()
            result[rows[begin : begin + at_once]] = np.minimum(nearest, cap)
    return result

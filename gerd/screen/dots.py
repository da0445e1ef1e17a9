"""The blinking dots of a stimulus in the events of a camera: which is where, and when it was seen to go on and off.

A pixel that sees a dot has events of one polarity whenever this goes on, and of the other whenever it goes off. How
many it has in each of the slots tells which dot's code it follows; the pixels of a code that hang together are the dot,
and their middle, weighted by their events, is its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.screen.clock import Clock, Edges
from gerd.screen.source import Rows, Windows
from gerd.screen.stimulus import Frames, Spot, Stimulus
from gerd.screen.view import Size, View

Array = NDArray[np.float64]

BEFORE_SLOT, IN_SLOT = 0.3, 0.7  # of a slot: how early and how late its events may come
FOLLOWS = 0.75  # how well a pixel has to follow a code: 1 is altogether, and that of another dot 0.5 at the most
LEAST_EVENTS = 6  # of a pixel that are told from noise
LEAST_PIXELS = 3  # of a dot
LEAST_OF_EDGE = 3  # events by which the time of an edge is known


@dataclass(frozen=True)
class SeenDots:
    """The dots of one grid that were found."""

    number: NDArray[np.int64]  # of each, in `stimulus.dots`
    places: Array  # (n, 2): its middle in the camera
    edges: Edges

    def __len__(self) -> int:
        return len(self.number)


def grids(stimulus: Stimulus) -> tuple[list[Frames], list[Frames]]:
    """When anything of the grid before the scenes, and of that after them, is lit."""
    slots = sorted({lit for dot in stimulus.dots for lit in dot.lit})
    begin = stimulus.scenes[0].hold
    return [each for each in slots if each[0] < begin], [each for each in slots if each[0] >= begin]


def find_dots(stimulus: Stimulus, slots: Sequence[Frames], clock: Clock, camera: Size, windows: Windows) -> SeenDots:
    """The dots of the grid that is lit in these slots."""
    slot = slots[0][1] - slots[0][0]
    bounds = (clock.at(slots[0][0] - slot), clock.at(slots[-1][1] + slot))
    events = _between(windows, *bounds)
    sign = 1 if stimulus.levels[1] > stimulus.levels[0] else -1
    evidence = np.stack([_evidence(events, clock, lit, slot, sign, camera) for lit in slots])
    codes = np.array([[1.0 if lit in dot.lit else -1.0 for lit in slots] for dot in stimulus.dots])
    follows, agreement = _followed(evidence, codes)
    found: list[tuple[int, float, float]] = []
    edges = []
    for number in np.unique(follows[follows >= 0]).tolist():
        weight = np.where(follows == number, agreement, 0).reshape(camera[::-1])
        piece = _largest_piece(weight > 0)
        if piece.sum() < LEAST_PIXELS:
            continue
        y, x = np.nonzero(piece)
        weights = weight[y, x]
        found.append((number, *(float((weights * (at + 0.5)).sum() / weights.sum()) for at in (x, y))))
        edges.append(spot_edges(stimulus, stimulus.dots[number], _only(stimulus, number, slots), clock, events, piece))
    table = np.array(found, np.float64).reshape(-1, 3)
    empty = Edges(np.zeros(0), np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    return SeenDots(table[:, 0].astype(np.int64), table[:, 1:], Edges.joined(empty, *edges))


def find_marks(stimulus: Stimulus, clock: Clock, view: View, windows: Windows) -> Edges:
    """When the marks beside the scenes were seen to go on and off, where the camera sees them."""
    found = [Edges(np.zeros(0), np.zeros((0, 2)), np.zeros(0), np.zeros(0))]
    pieces = [(mark, piece) for mark in stimulus.marks if (piece := _disc(view, mark)) is not None]
    if not pieces:
        return found[0]
    either = np.any([piece for _, piece in pieces], axis=0)
    first, last = (clock.at(frame) for frame in (stimulus.scenes[0].hold - 30, stimulus.scenes[-1].stop + 30))
    events = _between(windows, first, last, either)
    for mark, piece in pieces:
        found.append(spot_edges(stimulus, mark, mark.lit, clock, events, piece))
    return Edges.joined(*found)


def spot_edges(
    stimulus: Stimulus,
    spot: Spot,
    lit: Sequence[Frames],
    clock: Clock,
    events: Rows,
    piece: NDArray[np.bool_],
) -> Edges:
    """When the pixels of a spot had the events of its going on and off: the median of their times."""
    sign = 1 if stimulus.levels[1] > stimulus.levels[0] else -1
    own = events[piece[events["y"], events["x"]]]
    length = max(stop - start for start, stop in lit)
    place = np.array([spot.x / stimulus.screen[0], spot.y / stimulus.screen[1]])
    found = []
    for frame, ends in [(frame, ends) for part in lit for ends, frame in enumerate(part)]:
        at = clock.at(frame)
        reach = min(length, 6) * clock.frame_us
        low, high = np.searchsorted(own["t"], [at - BEFORE_SLOT * reach, at + IN_SLOT * reach])
        times = own["t"][low:high][own["p"][low:high] == ((sign > 0) != bool(ends))]
        if len(times) >= max(LEAST_OF_EDGE, piece.sum() / 4):
            found.append((frame, ends, float(np.median(times))))
    frames, ended, seen = np.array(found, np.float64).reshape(-1, 3).T
    return Edges(frames, np.tile(place, (len(frames), 1)), ended, seen)


def _only(stimulus: Stimulus, number: int, slots: Sequence[Frames]) -> list[Frames]:
    return [lit for lit in stimulus.dots[number].lit if lit in slots]


def _between(windows: Windows, begin: float, end: float, where: NDArray[np.bool_] | None = None) -> Rows:
    """The events of a time, those of some pixels only."""
    every = windows(max(0, round(begin)), max(1, round(end)))
    parts = [part if where is None else part[where[part["y"], part["x"]]] for part in every]
    if not parts:
        raise GerdError("the recording has no events where the dots of the stimulus should be")
    return np.concatenate(parts)


def _evidence(events: Rows, clock: Clock, lit: Frames, slot: int, sign: int, camera: Size) -> Array:
    """How many events of each pixel are as from a light that goes on and off in this slot, minus the others."""
    result = np.zeros(camera[0] * camera[1])
    for frame, wanted in zip(lit, (sign, -sign), strict=True):
        at = clock.at(frame)
        length = slot * clock.frame_us
        low, high = np.searchsorted(events["t"], [at - BEFORE_SLOT * length, at + IN_SLOT * length])
        part = events[low:high]
        weights = np.where(part["p"], wanted, -wanted)
        result += np.bincount(part["y"].astype(np.int64) * camera[0] + part["x"], weights, len(result))
    return np.maximum(result, 0)


def _followed(evidence: Array, codes: Array) -> tuple[NDArray[np.int64], Array]:
    """The dot whose code each pixel follows, -1 for none, and by how many events it does."""
    follows = np.full(evidence.shape[1], -1)
    agreement = np.zeros(evidence.shape[1])
    busy = np.flatnonzero(evidence.sum(axis=0) >= LEAST_EVENTS)
    if not len(busy):
        return follows, agreement
    scores = codes @ evidence[:, busy]
    best = scores.argmax(axis=0)
    score = scores[best, np.arange(len(busy))]
    sure = score >= FOLLOWS * evidence[:, busy].sum(axis=0)
    follows[busy[sure]] = best[sure]
    agreement[busy[sure]] = score[sure]
    return follows, agreement


def _largest_piece(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The largest of the pieces of pixels that touch each other, at corners too."""
    try:
        from scipy import ndimage
    except ImportError:
        raise GerdError("finding dots needs the package scipy: pip install 'gerd-events[camera]'") from None
    labels, count = ndimage.label(pixels, np.ones((3, 3)))
    if count < 2:
        return pixels
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return np.asarray(labels == sizes.argmax())


def _disc(view: View, spot: Spot) -> NDArray[np.bool_] | None:
    """The pixels of the camera whose middles are on a spot; None if it sees too little of it."""
    width, height = view.camera
    y, x = np.mgrid[:height, :width] + 0.5
    on_screen = view.unproject(np.stack([x.ravel(), y.ravel()], axis=1))
    away = np.hypot(*(on_screen - [spot.x, spot.y]).T)
    piece = np.asarray(away < spot.radius).reshape(height, width)
    return piece if piece.sum() >= LEAST_PIXELS else None

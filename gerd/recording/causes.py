"""Why each event happened: the actor whose edge caused it, how that moves there, and whether the event is an echo.

A recording in; a row for each of its events out. An edge of an actor has passed a sub-pixel in a step if another actor
(or the background) is seen there than one step ago: it is the edge of the nearer of the two, which has come or gone. So
each edge has its share in the change of a pixel's count. An event is caused in the latest step, up to its own, in which
the count changed in the event's direction, by the actor whose edges had the largest share in that; see "The cause of an
event" in docs/conventions.md. In exact timing instants take the place of steps, and the cause is in the event's own,
unless the pixel had to rest.

The motion before the recording's first step is worked out anew from the config, as far as an event needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gerd.events import exact
from gerd.events.cpu.run import LIMITS, numbers_of
from gerd.events.labels import coverage
from gerd.recording.derived import laps, motion
from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from gerd.recording.recording import Recording

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PIXELS_AT_ONCE = 2**22  # of pictures for which shape noise is drawn together
NONE = -1  # no actor; no earlier event


@dataclass(frozen=True, eq=False)
class Causes:
    """A row for each event of a recording."""

    actor: Integers  # whose edge caused the event; -1 for background noise
    flow: Array  # (events, 2): velocity of that actor at the pixel's centre, pixels per step; NaN where it is unknown
    echo: NDArray[np.bool_]  # whether the pixel's count did not change in the step of the event


@dataclass(frozen=True, eq=False)
class _Moments:
    """The numbered moments between which pixels change: steps, or in exact timing instants."""

    scene: Scenes  # whose motion is asked for their times
    of_events: Integers  # the moment up to which each event has happened
    least: int  # the first that has another before it
    own: Array | None = None  # in exact timing, their own times
    step: Integers | None = None  # and the steps that hold them

    @classmethod
    def of(cls, recording: Recording) -> _Moments:
        scene = recording.scene
        if not scene.exact:
            return cls(scene, recording.coordinates[:, 0] + recording.first, -scene.warmup)
        rate = scene.trajectory.rate
        own = scene.in_own_time()
        fired = recording.fired_us
        begin = min(recording.first, int(fired.min(initial=recording.first * scene.step_us)) // scene.step_us)
        first = max(-scene.warmup, math.floor(rate * (begin - 1)) - 1)
        if scene.rest > 0:  # an event may have waited for long
            first = -scene.warmup
        stop = exact.last_unit(scene, recording.first + recording.steps)
        if stop <= first:
            return cls(own, np.zeros(0, np.int64), 1, np.zeros(1), np.zeros(1, np.int64))
        parts = [each for _, each in exact.slabs(own, rate, first, stop, LIMITS.values)]
        times, steps = (
            np.concatenate([getattr(each, name)[0, i > 0 :] for i, each in enumerate(parts)])
            for name in ("own", "steps")
        )
        # The last interval that an event of this microsecond can be of; the cause is looked for from there back.
        at = np.searchsorted(times, fired / (scene.step_us / rate))
        at = np.minimum(at, len(times) - 1)
        return cls(own, at, 1, times, steps)

    def times(self, numbers: Integers) -> NDArray[Any]:
        """The times for which the scene's motion is asked."""
        return numbers if self.own is None else self.own[numbers]

    def steps(self, numbers: Integers) -> Integers:
        """The steps that hold these moments."""
        return numbers if self.step is None else self.step[numbers]


def causes_of(recording: Recording) -> Causes:
    """The cause of each event."""
    _, y, x, p = recording.coordinates.T
    moments = _Moments.of(recording)
    own = moments.of_events
    asked = np.stack([own, y, x, 2 * p - 1], axis=1)
    signal = np.flatnonzero(~recording.background)
    earlier = _earlier(recording, signal)
    actor, piece, moment = (np.full(len(own), NONE) for _ in range(3))
    source = np.arange(len(own))
    echo = np.zeros(len(own), np.bool_)
    pending = signal
    while len(pending):
        change, whose, copy, later = _changes(moments, asked[pending]).T
        at, sign = asked[pending, 0], asked[pending, 3]
        echo[pending] |= (change == 0) & (at == own[pending])
        caused = change * sign > 0
        done = pending[caused]
        actor[done], piece[done], moment[done] = whose[caused], copy[caused], (at + later - 1)[caused]
        pending = pending[~caused]
        asked[pending, 0] -= 1
        # Back at an earlier event of the same pixel and polarity: what caused that one has caused this one, too.
        met = (earlier[pending] != NONE) & (asked[pending, 0] <= own[earlier[pending]])
        source[pending[met]] = earlier[pending[met]]
        pending = pending[~met & (asked[pending, 0] >= moments.least)]
    while (source != source[source]).any():
        source = source[source]
    actor, piece, moment = actor[source], piece[source], moment[source]
    rate = 1.0 if moments.own is None else recording.scene.trajectory.rate
    began = moments.times(np.where(actor == NONE, 0, moment)) / rate
    return Causes(actor, _velocities(recording, actor, piece, began), echo & (moments.own is None))


def _earlier(recording: Recording, events: Integers) -> Integers:
    """For each of these events, the one of them that fired before it at the same pixel, with the same polarity."""
    if recording.delay is not None:
        events = events[np.argsort(recording.fired_us[events], kind="stable")]
    place = recording.codec.pixels(recording.keys[events])
    order = np.argsort(place, kind="stable")
    again = place[order][1:] == place[order][:-1]
    result = np.full(len(recording), NONE)
    result[events[order[1:][again]]] = events[order[:-1][again]]
    return result


def _changes(moments: _Moments, asked: Integers) -> Integers:
    """What `coverage.causes` says of pixels up to moments: asked (pixels, 4) are the moment, y, x and the direction."""
    scene = moments.scene
    order = np.argsort(asked[:, 0], kind="stable")
    result = np.empty_like(asked)
    first = np.unique(asked[order, 0], return_index=True)[1]  # place of each moment in the order
    at_once = max(1, min(LIMITS.values // (2 * numbers_of(scene)), PIXELS_AT_ONCE // (scene.height * scene.width)))
    for begin, end in pairwise([*first[::at_once], len(order)]):
        moment, y, x, sign = asked[order[begin:end]].T
        numbers = np.unique(np.concatenate([moment - 1, moment]))
        frame = np.searchsorted(numbers, moment)
        hidden = np.zeros_like(moment)
        if scene.pixel.shape_noise > 0:
            from gerd.events.definition import walk as definition  # needs torch

            missing = definition.missing(scene, moments.steps(numbers))[0].numpy()
            hidden += missing[frame - 1, y, x] + 2 * missing[frame, y, x]
        pixels = np.stack([frame, y, x, sign, hidden], axis=1)
        result[order[begin:end]] = coverage.causes(scene, moments.times(numbers), pixels)
    return result


def _velocities(recording: Recording, actor: Integers, piece: Integers, moment: Array) -> Array:
    """(events, 2): the velocity of each event's actor at its pixel and time; `piece` is its copy on a torus.

    A copy goes on beyond the frame while another takes its place: it is the one of that number at `moment`, in steps.
    """
    result = np.full((len(actor), 2), np.nan)
    known = np.flatnonzero(actor != NONE)
    if not len(known):
        return result
    events, actor = recording.events[known], actor[known]
    times, at = np.unique(recording.fired_us[known] / recording.step_us, return_inverse=True)
    truth = np.moveaxis(recording.scene.trajectory.parameters(times)[0], 1, 0)
    linear, velocity, centre = (part[at, actor] for part in motion(truth))
    moments, begun = np.unique(moment[known], return_inverse=True)
    rounds = laps(recording, times)[at, actor] - laps(recording, moments)[begun, actor]
    shift = coverage.pieces(recording.scene)[1][piece[known]]
    centre = centre + rounds * (recording.width, recording.height) + shift
    away = np.stack([events["x"], events["y"]], axis=1) + 0.5 - centre
    result[known] = (linear * away[:, None, :]).sum(axis=2) + velocity
    return result

"""What each pixel fired while edges passed it, and while nothing did: recordings with their truth in, tables out.

A pixel is quiet while nothing changes near it, once it has no more late events of what has changed before. What it
fires then is noise. From one quiet time to the next its brightness has changed by an amount that the truth tells, and
it has fired so many ON and OFF events. Each stretch of quiet time is a row; what the integrator still holds in it lies
between the two thresholds, and on the side of the last event if the brightness has only risen since the stretch before,
or only fallen. If it has done both, nothing is followed further: what happened in between is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gerd.recording.recording import Recording
from gerd.screen.edges import Passed, passed_pixels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NEAR = 2  # pixels: what changes so near a pixel may be seen by it, too
LATE = 1  # steps after a change, in which its events may still come
AT_ONCE = 2**24  # pixels of pictures that are looked at together
LEAST_STEPS = 100  # of a part
LEAST_CHANGE = 1e-4  # of brightness
ENOUGH = 3000  # pixels whose brightness is known at all times
WIDELY = 0.6  # of the greatest level: by such a passage every pixel has to fire
# Where an integrator can be: between its thresholds, at 0 or above, at 0 or below; or within 0.9 of the thresholds.
ANY, ABOVE, BELOW, UNIFORM = 0, 1, -1, 2


@dataclass(frozen=True)
class Passages:
    """Quiet stretches of pixels, in the order of pixels and time; a chain is what hangs together."""

    chain: Integers  # which chain each row is of, ascending; of the first row of each it is known where it can be
    pixel: Integers  # of each row
    level: Array  # what the integrator has been given, in the unit of thresholds
    on: Integers  # events up to here, without noise
    off: Integers
    side: Integers  # ANY, ABOVE, BELOW, and of the first row of a chain also UNIFORM

    @staticmethod
    def joined(parts: Sequence[Passages]) -> Passages:
        """The rows of all parts, one after another."""
        return Passages(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Passages)))


@dataclass(frozen=True)
class Quiet:
    """What pixels fired while nothing passed them."""

    on: Integers  # (height · width,): events of each pixel
    off: Integers
    seconds: Array  # for how long each was quiet
    looked_s: float  # how long each was looked at
    step_s: float  # how long a step is


@dataclass(frozen=True)
class SeenByPixels:
    """What the recordings of a camera tell of its pixels."""

    passages: Passages
    quiet: Quiet
    rose: Integers  # (height · width,): how often each was passed by an edge of high contrast
    fired: Integers  # and how many events it had altogether
    passed: int  # how often anything passed a pixel from one quiet time to the next
    intervals_us: Integers  # in exact timing, from each event of an edge to the next of its pixel
    interval_pixel: Integers  # of which pixel each is
    passed_in_time: list[Passed]  # in exact timing, pixels whose brightness is known at all times; none if recorded


def seen_by_pixels(
    recordings: Iterable[Recording], pixels: int, light_of_background: float, recorded: bool
) -> SeenByPixels:
    """What so many pixels saw; `light_of_background`: 0 if they integrate brightness, else b of the response log.

    recorded: whether by a camera, whose pixels hold what shapes have left in them when a scene begins.
    """
    rows: list[Passages] = []
    intervals = [np.zeros((2, 0), np.int64)]
    in_time: list[Passed] = []
    on, off, rose, fired = (np.zeros(pixels, np.int64) for _ in range(4))
    seconds = np.zeros(pixels)
    chains = 0
    passed = 0
    step_s = 0.0
    looked_s = 0.0
    for recording in recordings:
        step_s = recording.step_us * 1e-6
        looked_s += recording.steps * step_s
        for part in _parts(recording):
            looked = _Looked.at(part, light_of_background, _start(part, recorded))
            on += looked.quiet_events(1)
            off += looked.quiet_events(0)
            seconds += looked.quiet.sum(axis=0) * step_s
            fired += np.bincount(part.codec.pixels(part.keys) >> 1, minlength=pixels)
            own, widely, often = looked.stretches()
            rose += np.bincount(widely, minlength=pixels)
            passed += often
            rows.append(replace(own, chain=own.chain + chains))
            chains += int(own.chain.max(initial=0)) + 1
            if part.exact:
                intervals.append(_intervals(part, looked.quiet))
                if not recorded and len(in_time) < ENOUGH:
                    in_time += passed_pixels(part, looked.quiet, light_of_background)
    quiet = Quiet(on, off, seconds, looked_s, step_s)
    intervals_us, interval_pixel = np.concatenate(intervals, axis=1)
    return SeenByPixels(Passages.joined(rows), quiet, rose, fired, passed, intervals_us, interval_pixel, in_time)


def _intervals(part: Recording, quiet: NDArray[np.bool_]) -> Integers:
    """(2, n): microseconds from an event to the next of its pixel, where an edge passes; and which pixel it is."""
    step, y, x, _ = part.coordinates.T
    pixel = y * part.width + x
    busy = ~quiet[step, pixel]
    pixel = pixel[busy]
    times = part.codec.times(part.keys[busy], part.step_us)
    order = np.argsort(pixel, kind="stable")
    pixel, times = pixel[order], times[order]
    same = pixel[1:] == pixel[:-1]
    return np.stack([np.diff(times)[same], pixel[1:][same]])


def _parts(recording: Recording) -> Iterator[Recording]:
    at_once = max(LEAST_STEPS, AT_ONCE // (recording.height * recording.width))
    for begin in range(0, recording.steps, at_once):
        yield recording.window(begin, begin + at_once)


@dataclass(frozen=True)
class _Looked:
    """Some steps of a recording, (steps, pixels) each."""

    level: Array  # at the end of each step
    quiet: NDArray[np.bool_]
    counts: Integers  # (2, steps, pixels): events by polarity
    start: int  # where an integrator over the background is at first, ANY if that is not known

    @classmethod
    def at(cls, part: Recording, light_of_background: float, start: int) -> _Looked:
        pictures = part.images().astype(np.float64)
        steps, height, width = pictures.shape
        changed = np.zeros(pictures.shape, np.bool_)
        changed[1:] = np.abs(np.diff(pictures, axis=0)) > LEAST_CHANGE
        level = np.log((pictures + light_of_background) / light_of_background) if light_of_background else pictures
        step, y, x, p = part.coordinates.T
        places = ((p * steps + step) * height + y) * width + x
        counts = np.bincount(places, minlength=2 * steps * height * width)
        flat = (steps, height * width)
        counts = counts.reshape(2, *flat)
        return cls(level.reshape(flat), _quiet(near(changed).reshape(flat), counts.sum(axis=0)), counts, start)

    def quiet_events(self, polarity: int) -> Integers:
        return np.asarray(np.where(self.quiet, self.counts[polarity], 0).sum(axis=0))

    def stretches(self) -> tuple[Passages, Integers, int]:
        """The quiet stretches, the pixel of each passage of high contrast, and how many there are of any."""
        pixels = self.quiet.shape[1]
        last = self.quiet & ~np.vstack([self.quiet[1:], np.zeros((1, pixels), np.bool_)])
        pixel, step = np.nonzero(last.T)
        signal = np.where(self.quiet, 0, self.counts).cumsum(axis=1)
        way = np.vstack([np.zeros((1, pixels)), np.abs(np.diff(self.level, axis=0))]).cumsum(axis=0)
        level, moved = self.level[step, pixel], way[step, pixel]
        off, on = (signal[p, step, pixel] for p in (0, 1))
        follows = np.r_[False, pixel[1:] == pixel[:-1]]
        rise, went, more_on, more_off = (
            np.where(follows, np.diff(each, prepend=each[:1]), 0) for each in (level, moved, on, off)
        )
        straight = follows & (np.abs(np.abs(rise) - went) < LEAST_CHANGE)
        side = np.where(straight & (rise > 0) & (more_on > 0) & (more_off == 0), ABOVE, ANY)
        side = np.where(straight & (rise < 0) & (more_off > 0) & (more_on == 0), BELOW, side)
        widely = pixel[follows & (went > WIDELY * self.level.max(initial=0))]
        known = side != ANY
        if self.start != ANY:
            known = ~follows & (moved < LEAST_CHANGE) & (on + off == 0)  # nothing has passed it yet
            bright = np.where(level > LEAST_CHANGE, ABOVE, BELOW) if self.start == BELOW else self.start
            side = np.where(known, bright, side)
        chain = np.cumsum(~straight) - 1  # brightness that went up and down tells less than its two ends
        begun = np.maximum.accumulate(np.where(known, np.arange(len(side)), -1))
        used = begun >= np.searchsorted(chain, chain)  # from the first row on whose side is known
        found = Passages(chain[used], pixel[used], level[used], on[used], off[used], side[used])
        return found, widely, int((follows & (went > LEAST_CHANGE)).sum())


def _start(part: Recording, recorded: bool) -> int:
    """Where integrators over the background are when the recording begins."""
    initial = "stationary" if recorded else part.config.integrator.initial
    if part.first or not (part.intensities[part.present] > 0).all():
        return ANY
    if initial == "stationary" or (initial == "usual" and part.exact):
        return BELOW
    return UNIFORM if initial in ("uniform", "usual") else ANY


def _quiet(changed: NDArray[np.bool_], events: Integers) -> NDArray[np.bool_]:
    """(steps, pixels): nothing changes, and an earlier step has shown that no more events of a change come."""
    quiet = np.zeros(changed.shape, np.bool_)
    settled = np.zeros(changed.shape[1], np.bool_)
    since = np.zeros(changed.shape[1], np.int64)  # steps without a change
    for step in range(len(changed)):
        quiet[step] = settled & ~changed[step]
        since = np.where(changed[step], 0, since + 1)
        settled = (settled & ~changed[step]) | ((since > LATE) & (events[step] == 0))
    return quiet


def near(changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(steps, height, width): where something has changed near a pixel."""
    for axis in (1, 2):
        size = changed.shape[axis]
        padded = np.pad(changed, [(NEAR, NEAR) if i == axis else (0, 0) for i in range(3)])
        changed = np.logical_or.reduce([np.take(padded, range(k, k + size), axis) for k in range(2 * NEAR + 1)])
    return changed


def light_of_background(levels: tuple[int, int], gamma: float) -> float:
    """b of the response log for a screen with these grey values of the brightnesses 0 and 1."""
    dark, bright = ((level / 255) ** gamma for level in levels)
    return math.inf if bright == dark else dark / (bright - dark)

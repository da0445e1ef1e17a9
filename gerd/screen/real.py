"""The events that a camera had of a screen to recordings in the scene's frame: view and clock in, `Recording`s out.

Each pixel of the scene gets the events of one pixel of the camera, that in which its middle is seen; where the camera
is coarser than the scene, the pixels of the scene that are left over get none. So what a pixel of the dataset fires is
what one real pixel has fired, with its own thresholds and noise.

A picture stands still for a whole frame, and what changes from frame i - 1 to frame i is seen at once. These events get
the time half way between the steps i - 1 and i, so that they lie in step i, and on average where T(t) is at their time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gerd.config.sweep import member
from gerd.events.keys import Keys
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw
from gerd.screen.clock import Clock
from gerd.screen.passages import near
from gerd.screen.source import Rows, Windows, split
from gerd.screen.stimulus import Shown, Stimulus
from gerd.screen.view import Size, View

Integers = NDArray[np.int64]

BEFORE_STEP = 0.5  # steps: how long before step i what changes with frame i is seen
LATE = 1  # steps: what is not near anything that has changed in its step, or so many before it, is noise
STEPS_AT_ONCE = 64


def scene_pixels(size: Size, zoom: int, corner: Size, view: View) -> Integers:
    """(height, width): the number of the camera's pixel whose events a pixel of the scene gets, -1 for none."""
    width, height = size
    y, x = np.mgrid[:height, :width] + 0.5
    at = np.stack([x.ravel(), y.ravel()], axis=1) * zoom + corner
    seen = view.project(at)
    with np.errstate(invalid="ignore"):
        back = view.unproject(seen)
    pixel = np.floor(seen).astype(np.int64)
    inside = ((pixel >= 0) & (pixel < view.camera)).all(axis=1) & (np.hypot(*(back - at).T) < 0.01)
    number = np.where(inside, pixel[:, 1] * view.camera[0] + pixel[:, 0], -1)
    away = np.hypot(*(seen - pixel - 0.5).T)
    order = np.lexsort([away, number])  # of those that share a pixel, the nearest is first
    again = np.r_[False, number[order][1:] == number[order][:-1]]
    number[order[again]] = -1
    return number.reshape(height, width)


def real_recordings(stimulus: Stimulus, view: View, clock: Clock, windows: Windows) -> Iterator[Recording]:
    """The real recordings of what was shown, in the order of the rows."""
    pixels = scene_pixels(stimulus.size, stimulus.zoom, stimulus.corner, view).ravel()
    place = np.full(view.camera[0] * view.camera[1], -1)
    place[pixels[pixels >= 0]] = np.flatnonzero(pixels >= 0)
    scan = _scan(stimulus, clock)
    spans = [(clock.at(shown.first - 1), clock.at(shown.stop + 1)) for shown in stimulus.scenes]
    for shown, events in zip(stimulus.scenes, split(windows, spans), strict=True):
        yield _real(stimulus, shown, clock, events, place.reshape(view.camera[::-1]), scan)


def _scan(stimulus: Stimulus, clock: Clock) -> NDArray[np.float64]:
    """How many frames later than the middle of the screen each pixel of the scene changes."""
    width, height = stimulus.size
    y, x = np.mgrid[:height, :width] + 0.5
    at = np.stack([x.ravel(), y.ravel()], axis=1) * stimulus.zoom + stimulus.corner
    return np.asarray(clock.at(0, at / stimulus.screen) - clock.at(0)) / clock.frame_us


def _real(
    stimulus: Stimulus, shown: Shown, clock: Clock, events: Rows, place: Integers, scan: NDArray[np.float64]
) -> Recording:
    """place: of each pixel of the camera, the pixel of the scene that gets its events, -1 for none."""
    config = member(stimulus.family, shown.member).sampled
    scene = draw(plan_of(config), [shown.index])
    scene = scene.resumed(np.array([0, scene.steps - 1]))
    truth = scene.truth(np.arange(scene.steps))[0]
    step_us = config.step_us
    codec = Keys.of(scene)
    pixel = place[events["y"], events["x"]]
    frame = (events["t"] - clock.at(0)) / clock.frame_us - scan[pixel] - shown.first
    t = np.ceil((frame - BEFORE_STEP) * step_us).astype(np.int64)
    inside = (pixel >= 0) & (t > 0) & (t <= (shown.steps - 1) * step_us)
    y, x = np.divmod(pixel[inside], config.sensor.width)
    keys = np.sort(codec.encoded(t[inside] + step_us - 1, y, x, events["p"][inside].astype(np.int64)))
    recording = Recording.of(config, shown.index, truth, keys, np.zeros(len(keys), np.uint8))
    return replace(recording, source=noise_of(recording).astype(np.uint8))


def noise_of(recording: Recording) -> NDArray[np.bool_]:
    """Whether each event is noise: nothing near it has changed in its step, or just before."""
    step, y, x, _ = recording.coordinates.T
    result = np.zeros(len(step), np.bool_)
    for begin in range(0, recording.steps, STEPS_AT_ONCE):
        end = min(begin + STEPS_AT_ONCE, recording.steps)
        first = max(0, begin - LATE - 1)
        pictures = recording.images(first, end)
        changed = near((pictures[1:] != pictures[:-1]).astype(bool))  # of the steps from first + 1 on
        low, high = np.searchsorted(step, [begin, end])
        known = np.zeros(high - low, bool)
        for late in range(LATE + 1):
            at = step[low:high] - late - first - 1
            known |= (at >= 0) & changed[np.maximum(at, 0), y[low:high], x[low:high]] if len(changed) else False
        result[low:high] = ~known
    return result

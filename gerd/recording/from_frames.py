"""Pictures of another renderer to events, by the pixels of a config: pictures and their times in, `Events` out.

In place of the sub-pixels that a scene covers, a pixel counts brightness. All else is as in a simulation: the pixels
and what surrounds them, the random numbers, and the order of events. Pictures are taken one by one and not kept, so
that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.bounds import LARGEST_KEY
from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import Which, config_of
from gerd.errors import GerdError, counted
from gerd.events.backends import run_pictures
from gerd.events.keys import Keys
from gerd.events.shared import Chunk
from gerd.plan.make import plan_of
from gerd.recording.events import LARGEST_SIDE, Events
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

Progress = Callable[[int], None]

LARGEST_COUNT = 2**29  # of a pixel, so that changes and integrators fit into 32 bits


@explained
@explained
def from_frames(
    frames: Iterable[ArrayLike],
    times_us: ArrayLike,
    config: AnyConfig | None = None,
    *,
    index: int = 0,
    member: Which | None = None,
    device: str = "cpu",
    progress: Progress = lambda taken: None,
    title: str = "",
    **values: Any,
) -> Events:
    """Return the events that the pixels of a config give for pictures (height, width) which another program rendered.

    frames: an array (pictures, height, width) or an iterable of pictures. Numbers are brightnesses, and thresholds of
        the config are shares of brightness 1; uint8 and uint16 are divided by 255 and 65535.
    times_us: when each picture is seen, in whole microseconds, ascending. In step timing they are multiples of the
        time from one to the next, each picture is a step, and a pixel fires at most once at its time; in exact timing
        brightness is linear in between, and a pixel fires whenever it passes its threshold.
    config: its seed, camera, timing, integrator and noises are used; its scene, frame and number of steps are not, so
        it need not have actors. `values` are other values for fields of the config, by path.
    index: chooses the draw of initial states and noises, as in `gerd.simulate`.
    progress: called with the number of pictures that were taken since the last call.

    Nothing is known about the time before the first picture: it causes no events, and integrators start as
    `integrator.initial` says; `usual` is `uniform` in both timings.
    """
    run = _Run(frames, times_us, config, index, member, device, progress, values)
    parts = list(run.chunks)
    keys = np.concatenate([part.keys for part in parts])
    return run.events(0, run.scenes.steps, keys, np.concatenate([part.source for part in parts]), title)


@explained
@explained
def windows_from_frames(
    frames: Iterable[ArrayLike],
    times_us: ArrayLike,
    config: AnyConfig | None = None,
    *,
    index: int = 0,
    member: Which | None = None,
    device: str = "cpu",
    progress: Progress = lambda taken: None,
    title: str = "",
    **values: Any,
) -> Iterator[Events]:
    """Yield the events of `from_frames`, window by window, in memory that does not grow with their number.

    The windows follow each other without a gap; how many steps each has depends on the size of the pictures.
    """
    run = _Run(frames, times_us, config, index, member, device, progress, values)
    codec = Keys.of(run.scenes)
    for part in run.chunks:
        keys = codec.moved(part.keys, -part.steps.start)
        yield run.events(part.steps.start, len(part.steps), keys, part.source, title)


class _Run:
    """Pictures before pixels: the scenes without actors that stand for them, and the chunks of their events."""

    scenes: Scenes
    chunks: Iterator[Chunk]

    def __init__(
        self,
        frames: Iterable[ArrayLike],
        times_us: ArrayLike,
        config: AnyConfig | None,
        index: int,
        member: Which | None,
        device: str,
        progress: Progress,
        values: Mapping[str, Any],
    ):
        chosen = config_of(as_config({} if config is None else config, scene=False), member, values)
        times = _times(times_us)
        pictures = iter(frames)
        first = _picture(next(pictures, None), 0, None)
        step_us = chosen.step_us if chosen.timing == "exact" else _step_us(times)
        self._before = int(times[0]) // step_us  # steps before the first picture
        relative = times - self._before * step_us
        steps = -(-int(relative[-1]) // step_us) + 1
        self.scenes = _scenes(chosen, first.shape, index, steps, step_us)
        arrays = _whole(chain([first], pictures), len(times), first.shape, progress)
        counts = (_counts(array, number, self.scenes) for number, array in enumerate(arrays))
        self.chunks = _to_the_end(run_pictures(self.scenes, counts, relative, device=device), counts)

    def events(self, start: int, steps: int, keys: NDArray[np.int64], source: NDArray[np.uint8], title: str) -> Events:
        """Events of some steps, whose keys count from the step `start`."""
        scenes = self.scenes
        return Events(
            width=scenes.width,
            height=scenes.height,
            steps=steps,
            step_us=scenes.step_us,
            exact=scenes.exact,
            keys=keys,
            source=source,
            first=self._before + start,
            title=title,
        )


def _to_the_end(chunks: Iterator[Chunk], counts: Iterator[NDArray[np.int32]]) -> Iterator[Chunk]:
    """The chunks; after the last of them there is an error if there are pictures left."""
    yield from chunks
    next(counts, None)


def _times(times_us: ArrayLike) -> NDArray[np.int64]:
    """The times as integers; an error unless they ascend from 0 or later."""
    times = np.asarray(times_us)
    if times.ndim != 1 or times.dtype.kind not in "iu" or not len(times):
        got = f"an array of {times.dtype} with the axes {times.shape}"
        raise GerdError(f"times_us: {got}; allowed: one whole number of microseconds for each picture")
    if times[0] < 0:
        raise GerdError(f"times_us: begins with {times[0]}; allowed: 0 or more")
    late = np.flatnonzero(times[1:] <= times[:-1])
    if len(late):
        where = f"picture {late[0] + 1} at {times[late[0] + 1]} µs comes after one at {times[late[0]]} µs"
        raise GerdError(f"times_us: {where}; allowed: ascending times")
    return times.astype(np.int64)


def _step_us(times: NDArray[np.int64]) -> int:
    """How long a step is whose ends are the times of the pictures."""
    apart = np.diff(times)
    if not len(apart):
        return max(1, int(times[0]))
    if apart.min() != apart.max() or times[0] % apart[0]:
        got = f"pictures from {times[0]} µs on are {apart.min()} to {apart.max()} µs apart"
        how = "multiples of the time from one to the next; timing='exact' takes any times"
        raise GerdError(f"times_us: {got}; allowed in step timing: {how}")
    return int(apart[0])


def _scenes(config: Config, shape: tuple[int, ...], index: int, steps: int, step_us: int) -> Scenes:
    """A scene of nothing, with the config's pixels, for pictures of this shape."""
    if config.noise.shape:
        message = "is a noise of rendered shapes, of which pictures of others have none; allowed here: 0"
        raise config.error("noise.shape", message, config.noise.shape)
    if config.integrator.initial == "stationary":
        message = "depends on shapes that have passed; allowed for pictures of others: uniform, usual, a number"
        raise config.error("integrator.initial", message, config.integrator.initial)
    height, width = shape
    fields: dict[str, Any] = {"sensor.width": width, "sensor.height": height, "step_us": step_us, "steps": 1}
    fields |= {"actors": [], "transform": [], "time_scale": 1.0, "integrator.warmup": 0}
    if config.integrator.initial == "usual":
        fields["integrator.initial"] = "uniform"
    scenes = replace(draw(plan_of(config.with_values(fields)), [index]), steps=steps)
    most = LARGEST_KEY // Keys.of(scenes).per_step
    if steps > most:
        raise GerdError(
            f"times_us: pictures of {width}×{height} pixels over {counted(steps, 'step')} of {step_us} µs; allowed: "
            f"up to {counted(most, 'step')}"
        )
    return scenes


def _whole(
    frames: Iterable[ArrayLike], count: int, shape: tuple[int, ...], progress: Progress
) -> Iterator[NDArray[Any]]:
    """The pictures as arrays, as many as there are times, each with its axes and type looked at."""
    number = 0
    for frame in frames:
        if number == count:
            raise GerdError(f"frames: there are more than the {counted(count, 'time')} in times_us; allowed: as many")
        yield _picture(frame, number, shape)
        progress(1)
        number += 1
    if number < count:
        raise GerdError(f"frames: there are {number}, and {counted(count, 'time')} in times_us; allowed: as many")


def _picture(frame: Any, number: int, shape: tuple[int, ...] | None) -> NDArray[Any]:
    if frame is None:
        raise GerdError("frames: there are none; allowed: one or more")
    array = np.asarray(frame)
    if array.ndim != 2 or array.dtype.kind not in "buf" or array.dtype in (np.uint32, np.uint64):
        got = f"{array.dtype} with the axes {array.shape}"
        how = "(height, width) of floats, bool, uint8 or uint16; of colours a grey picture has to be made first"
        raise GerdError(f"frames: picture {number} is {got}; allowed: {how}")
    if min(array.shape) < 1 or max(array.shape) > LARGEST_SIDE:
        raise GerdError(f"frames: picture {number} has the axes {array.shape}; allowed: 1 to {LARGEST_SIDE} pixels")
    if shape is not None and array.shape != shape:
        raise GerdError(
            f"frames: picture {number} has the axes {array.shape}, and picture 0 {shape}; allowed: one size"
        )
    return array


def _counts(array: NDArray[Any], number: int, scenes: Scenes) -> NDArray[np.int32]:
    """The counts of a picture's pixels: brightness in units of 1 / `full_count`, rounded."""
    full, background = scenes.full_count, scenes.pixel.log_response
    brightest = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    counts = np.rint(array.astype(np.float64) * full / brightest)
    sound = np.abs(counts) <= LARGEST_COUNT  # not where it is NaN
    if background > 0:
        sound &= counts > -background * full
    if not sound.all():
        y, x = np.argwhere(~sound)[0]
        most = LARGEST_COUNT // full
        least = f"more than {-background:g}, up" if background > 0 else f"{-most}"
        got = f"picture {number} has the brightness {array[y, x]:g} at x {x}, y {y}"
        raise GerdError(f"frames: {got}; allowed with these pixels: {least} to {most}")
    return counts.astype(np.int32)

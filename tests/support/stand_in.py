"""A camera before a screen, of other people's programs: ffmpeg decodes the video, eventcv (or evlib) has the pixels.

Between the two stand a screen that holds each frame until the next, line after line, and a lens that is drawn at
random: a homography and a radial distortion. The camera's clock has an offset and a drift, and a share of its events
is noise. None of it shares code with gerd.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

Array = NDArray[np.float64]
EVENT = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", np.bool_)])
FINER = 3  # samples a side of a pixel
RISE_US = 500  # how long a screen's pixel takes to change
THRESHOLD, SPREAD = 0.5, 0.03  # of the pixels, in logarithms
ROOM = 0.02  # the light of what is not screen


@dataclass(frozen=True)
class Lens:
    """From pixels of the screen to those of the camera: `homography`, then r → r (1 + k1 r²) in half diagonals."""

    camera: tuple[int, int]
    homography: Array
    k1: float

    @classmethod
    def drawn(
        cls,
        chance: np.random.Generator,
        camera: tuple[int, int],
        box: tuple[float, float, float, float],
        *,
        k1: float = 0.08,
        turns: int = 0,
        mirrored: bool = False,
    ) -> Lens:
        """A view in which the corners of a box of the screen lie near those of the camera's frame."""
        left, top, right, bottom = box
        corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
        width, height = camera
        seen = np.array([[0.08, 0.08], [0.92, 0.08], [0.92, 0.92], [0.08, 0.92]]) * [width, height]
        seen += chance.uniform(-0.06, 0.06, (4, 2)) * min(camera)
        seen = np.roll(seen, -turns, axis=0)
        if mirrored:
            seen = seen * [-1, 1] + [width, 0]
        rows, values = [], []
        for (x, y), (u, v) in zip(corners, seen, strict=True):
            rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
            values += [u, v]
        solved = np.linalg.solve(np.array(rows), np.array(values))
        return cls(camera, np.append(solved, 1).reshape(3, 3), float(chance.uniform(-k1, k1)))

    @property
    def _half(self) -> float:
        return float(np.hypot(*self.camera)) / 2

    def project(self, points: Array) -> Array:
        """(n, 2) on the screen to the camera."""
        u, v, w = self.homography @ np.column_stack([points, np.ones(len(points))]).T
        away = (np.column_stack([u / w, v / w]) - np.array(self.camera) / 2) / self._half
        away = away * (1 + self.k1 * (away**2).sum(axis=1, keepdims=True))
        return away * self._half + np.array(self.camera) / 2

    def unproject(self, points: Array) -> Array:
        """(n, 2) in the camera to the screen, by a table of the distortion."""
        away = (points - np.array(self.camera) / 2) / self._half
        inner = np.linspace(0, 1.6, 100_001)
        r = np.hypot(*away.T)
        flat = np.interp(r, inner * (1 + self.k1 * inner**2), inner)
        away = away * np.where(r > 0, flat / np.maximum(r, 1e-12), 1)[:, None]
        plain = away * self._half + np.array(self.camera) / 2
        u, v, w = np.linalg.inv(self.homography) @ np.column_stack([plain, np.ones(len(plain))]).T
        return np.column_stack([u / w, v / w])


def frames_of(video: Path, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """The pictures that a player has, one by one."""
    import imageio_ffmpeg

    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        str(video),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "gray",
        "-",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as player:
        assert player.stdout is not None
        while len(data := player.stdout.read(size[0] * size[1])) == size[0] * size[1]:
            yield np.frombuffer(data, np.uint8).reshape(size[::-1])


def through_lens(
    pictures: Iterator[NDArray[np.uint8]], lens: Lens, gamma: float, hidden: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """(changes, height, width): the light that the camera's pixels get, and the frame from which on they get it.

    hidden: pixels of the screen that something stands before.
    """
    width, height = lens.camera
    y, x = (np.mgrid[: height * FINER, : width * FINER] + 0.5) / FINER
    on_screen = lens.unproject(np.column_stack([x.ravel(), y.ravel()]))
    lights, since, before = [], [], None
    for frame, picture in enumerate(pictures):
        if before is not None and np.array_equal(picture, before):
            continue
        before = picture
        light = (picture / 255.0) ** gamma
        if hidden is not None:
            light = np.where(hidden, ROOM, light)
        samples = map_coordinates(light, on_screen.T[::-1] - 0.5, order=1, mode="constant", cval=ROOM)
        lights.append(samples.reshape(height, FINER, width, FINER).mean(axis=(1, 3)).astype(np.float32))
        since.append(frame)
    return np.stack(lights), np.array(since)


def eventcv_pixels(lights: NDArray[np.float32], times: Array, threshold: float, spread: float, seed: int) -> Any:
    """The events of v2e's pixels, as eventcv has them, of a light that changes within RISE_US before each time."""
    import eventcv

    encoded = np.where(lights <= 0.0031308, 12.92 * lights, 1.055 * lights ** (1 / 2.4) - 0.055)
    held = np.repeat(encoded, 2, axis=0)[1:]  # of each light the first and the last moment
    numbered = np.arange(len(held)) * 1000.0  # eventcv wants even times
    true = np.stack([times, np.append(times[1:] - RISE_US, times[-1] + 1)], axis=1).ravel()[1:]
    off = {"leak_rate_hz": 0.0, "shot_noise_rate_hz": 0.0, "cutoff_hz": 0.0, "refractory_us": 0}
    made = eventcv.simulate(
        held, fps=1000.0, pos_thres=threshold, neg_thres=threshold, sigma_thres=spread, seed=seed, **off
    )
    x, y, t, p = made.numpy().astype(np.int64).T
    return _events(x, y, np.interp(t, numbered, true), p > 0)


def evlib_pixels(lights: NDArray[np.float32], times: Array, threshold: float, spread: float, seed: int) -> Any:  # noqa: ARG001
    """The events of ESIM's pixels, as evlib has them; they have no spread."""
    from evlib.simulation import ESIMConfig, ESIMSimulator

    settings: Any = {"device": "cpu", "dtype": "float64", "refractory_period_ms": 0.0}
    pixels = ESIMSimulator(ESIMConfig(positive_threshold=threshold, negative_threshold=threshold, **settings))
    made = [pixels.process_frame(light * 255, at * 1e-6) for light, at in zip(lights, times, strict=True)]
    x, y, t, p = (np.concatenate([part[i] for part in made]) for i in range(4))
    return _events(x, y, t * 1e6, np.asarray(p) > 0)


def _events(x: Any, y: Any, t: Any, p: Any) -> NDArray[Any]:
    events = np.empty(len(t), EVENT)
    events["x"], events["y"], events["t"], events["p"] = x, y, np.rint(t), p
    return events[np.argsort(events["t"], kind="stable")]


@dataclass(frozen=True)
class CameraClock:
    """The camera's time of a frame of the video, whose rows come one after the other."""

    offset_us: float
    drift: float  # a share
    frame_us: float  # by the video's clock
    down_us: float = 0.0

    def at(self, frame: Any) -> Any:
        return self.offset_us + frame * self.frame_us * (1 + self.drift)


def filmed(
    video: Path,
    screen: tuple[int, int],
    gamma: float,
    lens: Lens,
    clock: CameraClock,
    *,
    noise: float = 0.0,
    hidden: NDArray[np.bool_] | None = None,
    pixels: Any = eventcv_pixels,
    seed: int = 1,
) -> NDArray[Any]:
    """The events of a camera that has filmed a video. `noise` is the share of them that nothing has caused."""
    lights, since = through_lens(frames_of(video, screen), lens, gamma, hidden)
    events = pixels(lights, np.asarray(clock.at(since), np.float64), THRESHOLD, SPREAD, seed)
    if clock.down_us:
        width, height = lens.camera
        y, x = np.mgrid[:height, :width] + 0.5
        row = lens.unproject(np.column_stack([x.ravel(), y.ravel()]))[:, 1].reshape(height, width)
        late = (np.clip(row / screen[1], 0, 1) - 0.5) * clock.down_us
        events["t"] += np.rint(late[events["y"], events["x"]]).astype(np.int64)
    chance = np.random.default_rng(seed)
    number = int(len(events) * noise / (1 - noise))
    added = np.empty(number, EVENT)
    added["x"], added["y"] = chance.integers(0, lens.camera[0], number), chance.integers(0, lens.camera[1], number)
    added["t"] = chance.integers(int(clock.at(0)), int(clock.at(since[-1] + 30)), number)
    added["p"] = chance.integers(0, 2, number)
    events = np.concatenate([events, added])
    return events[np.argsort(events["t"], kind="stable")]

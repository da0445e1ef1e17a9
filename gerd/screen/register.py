"""A camera's recording of a screen to a dataset of real events with the ground truth that was shown.

Events and the file of a stimulus in; out come view and clock, how well they are known, and if they are known well
enough the dataset. What is not good enough is refused, and said with what is allowed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gerd.calls import explained
from gerd.errors import GerdError, StorageError, counted
from gerd.exchange.reading import ReadOptions
from gerd.files import read_regular
from gerd.recording.events import Events
from gerd.screen.clock import ALIKE, ClockFit, Edges, find_flashes, fit_clock, flash_edges, rates
from gerd.screen.dots import SeenDots, find_dots, find_marks, grids
from gerd.screen.picture import check, draw
from gerd.screen.real import real_recordings, scene_pixels
from gerd.screen.source import CameraEvents, Windows
from gerd.screen.stimulus import Stimulus, read_stimulus
from gerd.screen.view import LEAST_POINTS, Fit, Size, fit_view
from gerd.storage.json_files import json_bytes
from gerd.storage.recorded import write_recorded
from gerd.version import __version__

Array = NDArray[np.float64]

LARGEST_STIMULUS = 2**28  # bytes of its file
MOST_ACROSS_GRID = 7  # lines by which it is looked at how well the view is known over the scene


@dataclass(frozen=True)
class Allowed:
    """The worst fit that is not refused."""

    view_px: float = 0.3  # uncertainty of the view, rms over the scene
    dots_px: float = 1.0  # of the dots from where they should be, rms
    moved_px: float = 0.5  # of the dots after the scenes from those before
    outliers: float = 0.3  # share of the dots that are not where they should be
    clock_frames: float = 0.1  # uncertainty of the clock
    edges_frames: float = 0.5  # of lights that go on or off, rms
    scan_frames: float = 1.2  # that a screen takes to be drawn
    scene: float = 0.5  # share of the scene's pixels that the camera has to see


@dataclass(frozen=True)
class Registration:
    """How a camera saw a stimulus."""

    stimulus: Stimulus
    camera: Size
    view: Fit
    clock: ClockFit
    dots: tuple[SeenDots, SeenDots]  # before and after the scenes
    late_marks: int  # that were seen more than half a frame late or early
    marks: int

    @cached_property
    def pixels(self) -> NDArray[np.int64]:
        """(height, width): for each pixel of the scene the pixel of the camera whose events it gets, -1 for none."""
        return scene_pixels(self.stimulus.size, self.stimulus.zoom, self.stimulus.corner, self.view.view)

    @cached_property
    def view_px(self) -> float:
        """How well the view is known, in pixels of the camera, rms over the scene."""
        left, top = self.stimulus.corner
        zoom = self.stimulus.zoom
        width, height = self.stimulus.size
        x, y = np.meshgrid(
            left + zoom * np.linspace(0, width, MOST_ACROSS_GRID), top + zoom * np.linspace(0, height, MOST_ACROSS_GRID)
        )
        return self.view.uncertainty(np.stack([x.ravel(), y.ravel()], axis=1))

    @cached_property
    def moved_px(self) -> float:
        """How far the dots after the scenes are from those before them: the median."""
        a, b = self.dots
        both = np.intersect1d(a.number, b.number)
        apart = a.places[np.searchsorted(a.number, both)] - b.places[np.searchsorted(b.number, both)]
        return float(np.median(np.hypot(*apart.T))) if len(both) else 0.0

    @property
    def mirrored(self) -> bool:
        return bool(np.linalg.det(self._turn) < 0)

    @property
    def turned(self) -> float:
        """By how many degrees, -180 to 180, the camera sees the screen turned clockwise, after any mirroring."""
        turn = self._turn * [-1, 1] if self.mirrored else self._turn
        return math.degrees(math.atan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1]))

    @cached_property
    def _turn(self) -> Array:
        width, height = self.stimulus.screen
        return self.view.view.derivative((width / 2, height / 2))

    def __str__(self) -> str:
        frame_us = self.stimulus.frame_us
        clock = self.clock.clock
        number = sum(map(len, self.dots))
        of = 2 * len(self.stimulus.dots)
        scale = math.sqrt(abs(np.linalg.det(self._turn))) * self.stimulus.zoom
        lines = [
            f"view        {number} of {of} dots, {int(self.view.kept.sum())} of them within {self.view.rms:.2g} px "
            f"(rms); known to {self.view_px:.2g} px over the scene; k1 {self.view.view.k1:+.3g}",
            f"            {scale:.3g} camera pixels to a pixel of the scene, turned by {self.turned:.3g}°"
            + (", mirrored" if self.mirrored else ""),
            f"clock       {int(self.clock.kept.sum())} of {counted(len(self.clock.edges), 'light')} on or off within "
            f"{self.clock.rms_us:.3g} µs (rms); known to {self.clock.uncertainty_us(self.stimulus):.2g} µs",
            f"            frame 0 at {clock.offset_us:.0f} µs, drift {clock.drift_ppm(self.stimulus):+.3g} ppm; the "
            f"screen changes {clock.down_us:+.3g} µs from top to bottom, {clock.across_us:+.3g} µs from left to right; "
            f"dark comes {clock.lag_us:+.3g} µs after bright",
            f"pixels      {int((self.pixels >= 0).sum())} of {self.pixels.size} of the scene have one of the camera",
        ]
        if self.marks:
            lines.append(f"frames      {self.late_marks} of {self.marks} marks more than half a frame late or early")
        else:
            lines.append("frames      no marks are seen, so that frames that the player has dropped are not noticed")
        lines += [f"note        {each}" for each in self._notes(frame_us)]
        return "\n".join(lines)

    def _notes(self, frame_us: float) -> Iterator[str]:
        if self.mirrored:
            yield "the camera sees the screen in a mirror; the dataset has the scene the right way round"
        if abs(self.turned) > 135:
            yield "the view is upside down; the dataset has the scene the right way up"
        elif abs(self.turned) > 45:
            yield "the view is turned on its side; the dataset has the scene the right way up"
        share = float((self.pixels < 0).mean())
        if share > 0.01:
            yield f"{share:.0%} of the scene's pixels have no pixel of the camera of their own, and no events"
        if abs(self.clock.clock.lag_us) > frame_us / 2:
            yield "the screen or the camera is slower than half a frame; a lower --fps would give sharper edges"

    def problems(self, allowed: Allowed = Allowed()) -> list[str]:  # noqa: B008
        """What is not good enough for a dataset, in words; empty if everything is."""
        frame_us = self.stimulus.frame_us
        clock = self.clock
        outliers = 1 - float(self.view.kept.mean())
        unknown = clock.uncertainty_us(self.stimulus)
        scan = max(abs(clock.clock.down_us), abs(clock.clock.across_us))
        seen = float((self.pixels >= 0).mean())
        measured = (
            (self.view_px, allowed.view_px, "px", "the view over the scene is known to"),
            (self.view.rms, allowed.dots_px, "px", "the dots are off from where they should be by (rms)"),
            (self.moved_px, allowed.moved_px, "px", "between the dots before and after, camera or screen moved by"),
            (outliers, allowed.outliers, "of 1", "the share of dots that are not where they should be is"),
            (unknown, allowed.clock_frames * frame_us, "µs", "the clock is known to"),
            (clock.rms_us, allowed.edges_frames * frame_us, "µs", "lights go on and off at other times, by (rms)"),
            (scan, allowed.scan_frames * frame_us, "µs", "from one border of the screen to the other it takes"),
            (self.late_marks, 0, "", "marks that were not seen within half a frame, so that frames were dropped:"),
        )
        wrong = [
            f"{what} {value:.3g} {unit}".rstrip() + f"; allowed: up to {most:.3g}"
            for value, most, unit, what in measured
            if not value <= most
        ]
        if seen < allowed.scene:
            wrong.append(f"the camera sees {seen:.0%} of the scene's pixels; allowed: {allowed.scene:.0%} or more")
        return wrong

    def to_bytes(self, recording: dict[str, str]) -> bytes:
        """The file `registration.json` of a dataset."""
        clock = self.clock.clock
        view = self.view.view
        return json_bytes(
            {
                "format": "gerd registration",
                "gerd_version": __version__,
                "recording": recording,
                "camera": list(self.camera),
                "screen": list(self.stimulus.screen),
                "corner": list(self.stimulus.corner),
                "zoom": self.stimulus.zoom,
                "levels": list(self.stimulus.levels),
                "gamma": self.stimulus.gamma,
                "frames_per_second": list(self.stimulus.frames_per_second),
                "scenes": [scene.model_dump() for scene in self.stimulus.scenes],
                "view": {
                    "homography": view.homography.tolist(),
                    "k1": view.k1,
                    "parameters": list(view.parameters),
                    "dots": int(self.view.kept.sum()),
                    "rms_px": self.view.rms,
                    "known_to_px": self.view_px,
                    "turned": self.turned,
                    "mirrored": self.mirrored,
                },
                "clock": {
                    **vars(clock),
                    "rms_us": self.clock.rms_us,
                    "known_to_us": self.clock.uncertainty_us(self.stimulus),
                },
                "marks": {"seen": self.marks, "late": self.late_marks},
            }
        )


@explained
def register(
    recording: Events | str | os.PathLike[str],
    stimulus: Stimulus | str | os.PathLike[str],
    dataset: str | os.PathLike[str],
    *,
    picture: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] = lambda made: None,
    **options: Unpack[ReadOptions],
) -> Registration:
    """Find when and where a camera saw what of a stimulus, write its scenes as a dataset, and return how well they fit.

    The dataset has the real events of each recording that was shown, in the frame of the scene, with the exact ground
    truth of its config. `recording` is a file of events, or events; `options` say how a file is read. `picture` is a
    PNG, SVG or PDF that shows how well the dots and the clock fit; it is drawn even if they do not. A bad fit is an
    error, and then no dataset is written.
    """
    if picture is not None:
        check(Path(picture))
    shown = stimulus if isinstance(stimulus, Stimulus) else _read_stimulus(Path(stimulus))
    source = CameraEvents.of(recording, options)
    found = locate(shown, source.camera, source.windows, source.name)
    if picture is not None:
        draw(found, Path(picture))
    if wrong := found.problems():
        raise GerdError("\n".join(f"{source.name}: {each}" for each in wrong))
    parts = real_recordings(shown, found.view.view, found.clock.clock, source.windows)
    write_recorded(shown.family, os.fspath(dataset), shown.count, parts, found.to_bytes(source.identity), progress)
    return found


def locate(stimulus: Stimulus, camera: Size, windows: Windows, name: str) -> Registration:
    """Where and when a camera saw a stimulus; an error if it did not."""
    sign = 1 if stimulus.levels[1] > stimulus.levels[0] else -1
    flashes = find_flashes(stimulus, *rates(windows, sign), camera[0] * camera[1])
    if flashes.clock is None:
        raise GerdError(
            f"{name}: the flashes of this stimulus are not found: those before the scenes agree to "
            f"{flashes.before:.2f} with their code, those after to {flashes.after:.2f}; allowed: {ALIKE} or more, at "
            "the distance of this video; is it another video, or played at another rate, or is a part of it missing?"
        )
    rough = fit_clock(flash_edges(stimulus, flashes.clock, windows, sign), scan=False).clock
    before, after = (find_dots(stimulus, slots, rough, camera, windows) for slots in grids(stimulus))
    places = np.array([[dot.x, dot.y] for dot in stimulus.dots])
    numbers = np.concatenate([before.number, after.number])
    fit = fit_view(stimulus.screen, camera, places[numbers], np.concatenate([before.places, after.places]))
    if fit is None:
        raise GerdError(
            f"{name}: the view is not found: {len(before)} of {len(places)} dots are seen before the scenes and "
            f"{len(after)} after; allowed: {LEAST_POINTS} or more of both together that agree with one view"
        )
    marks = find_marks(stimulus, rough, fit.view, windows)
    clock = fit_clock(Edges.joined(before.edges, after.edges, marks))
    late = np.abs(clock.residuals_us[len(clock.edges) - len(marks) :]) > stimulus.frame_us / 2
    return Registration(stimulus, camera, fit, clock, (before, after), int(late.sum()), len(marks))


def _read_stimulus(path: Path) -> Stimulus:
    try:
        return read_stimulus(read_regular(path, LARGEST_STIMULUS), str(path))
    except FileNotFoundError:
        raise StorageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None

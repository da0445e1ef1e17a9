"""How near an emulator of event cameras comes to exact events: its function and a config in, numbers per rate out.

An emulator is given pictures of a scene and their times, and answers with events. The exact events of the same scene
are known, so what it made of the pictures can be compared with them, one by one, at every rate of pictures.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.calls import explained
from gerd.config.base import at, plain
from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import Which, config_of
from gerd.errors import GerdError, check_whole, counted, shorten
from gerd.measures.matching import matched
from gerd.plan.make import plan_of
from gerd.plan.plan import AMOUNTS, WRITTEN
from gerd.recording import derived
from gerd.recording.events import check_events
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate

Whole = NDArray[np.int64]
Emulator = Callable[[NDArray[np.float32], Whole], NDArray[np.void]]

SECOND = 1_000_000  # microseconds: more pictures than that in a second have no times of their own
MOST_BYTES = 2**34  # of pictures
AT_REST: dict[str, Any] = {
    "timing": "exact",
    "integrator.initial": 0.0,
    "integrator.warmup": 0,
}  # as an emulator starts
HARMLESS = ("noise.hot.rate_hz",)  # without hot pixels
COLUMNS = ("pictures/s", "exact", "events", "ON", "OFF", "same time", "median", "95 %", "missed", "invented")
WIDTHS = (10, 9, 9, 7, 7, 17, 10, 10, 8, 8)


@dataclass(frozen=True)
class Conformance:
    """An emulator's events at one rate of pictures, held against the exact events of the same time."""

    frames_per_second: float
    pictures: int
    duration_us: int  # from the first picture to the last
    window_us: int  # how far apart matched events can be
    exact_on: int
    exact_off: int
    on: int  # of the emulator
    off: int
    exact_same_time: float  # the share of events that have their time in common with others; NaN without events
    same_time: float  # of the emulator's
    gaps_us: Whole  # |Δt| of matched events, ascending

    @property
    def on_ratio(self) -> float:
        """The emulator's ON events for each exact one; NaN if there is no exact one."""
        return _ratio(self.on, self.exact_on)

    @property
    def off_ratio(self) -> float:
        """The emulator's OFF events for each exact one; NaN if there is no exact one."""
        return _ratio(self.off, self.exact_off)

    @property
    def matched(self) -> int:
        """Pairs of an exact event and one of the emulator's."""
        return len(self.gaps_us)

    @property
    def missed(self) -> int:
        """Exact events that the emulator has not."""
        return self.exact_on + self.exact_off - self.matched

    @property
    def invented(self) -> int:
        """Events of the emulator that are none of the exact ones."""
        return self.on + self.off - self.matched

    @property
    def missed_share(self) -> float:
        """The share of the exact events that the emulator misses; NaN if there are none."""
        return _ratio(self.missed, self.exact_on + self.exact_off)

    @property
    def invented_share(self) -> float:
        """The share of the emulator's events that it invents; NaN if there are none."""
        return _ratio(self.invented, self.on + self.off)

    @property
    def median_us(self) -> float:
        """The smallest |Δt| that half of the matched events do not exceed; NaN without any."""
        return self._quantile(0.5)

    @property
    def percentile_95_us(self) -> float:
        """The smallest |Δt| that 95 % of the matched events do not exceed; NaN without any."""
        return self._quantile(0.95)

    def _quantile(self, share: float) -> float:
        return float(np.quantile(self.gaps_us, share, method="inverted_cdf")) if self.matched else math.nan

    @property
    def numbers(self) -> dict[str, int | float | None]:
        """All numbers by name, as a row of a table; None where there is none."""
        values = {
            "frames_per_second": self.frames_per_second,
            "pictures": self.pictures,
            "duration_us": self.duration_us,
            "window_us": self.window_us,
            "exact_on": self.exact_on,
            "exact_off": self.exact_off,
            "on": self.on,
            "off": self.off,
            "on_ratio": self.on_ratio,
            "off_ratio": self.off_ratio,
            "exact_same_time": self.exact_same_time,
            "same_time": self.same_time,
            "matched": self.matched,
            "median_us": self.median_us,
            "percentile_95_us": self.percentile_95_us,
            "missed": self.missed,
            "invented": self.invented,
            "missed_share": self.missed_share,
            "invented_share": self.invented_share,
        }
        return {name: None if math.isnan(value) else value for name, value in values.items()}

    def __str__(self) -> str:
        cells = (
            f"{self.frames_per_second:g}",
            f"{self.exact_on + self.exact_off}",
            f"{self.on + self.off}",
            _word("{:.3f}", self.on_ratio),
            _word("{:.3f}", self.off_ratio),
            f"{_word('{:.1%}', self.same_time)} ({_word('{:.1%}', self.exact_same_time)})",
            _word("{:.0f} µs", self.median_us),
            _word("{:.0f} µs", self.percentile_95_us),
            _word("{:.1%}", self.missed_share),
            _word("{:.1%}", self.invented_share),
        )
        return _line(cells)


HEADER = " ".join(word.rjust(width) for word, width in zip(COLUMNS, WIDTHS, strict=True))  # of lines of `Conformance`


@dataclass(frozen=True)
class ConformanceCurve:
    """What an emulator makes of pictures, for each rate at which it got them."""

    points: tuple[Conformance, ...]

    def __str__(self) -> str:
        return "\n".join([HEADER, *map(str, self.points)])

    def json(self) -> str:
        """The numbers of each point as text: a list of objects, null where there is no number."""
        return json.dumps([point.numbers for point in self.points], indent=1) + "\n"

    def csv(self) -> str:
        """The numbers of each point as text: a line for each, below their names; empty where there is no number."""
        text = io.StringIO()
        writer = csv.DictWriter(
            text, [field for point in self.points[:1] for field in point.numbers], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(point.numbers for point in self.points)
        return text.getvalue()


@explained
def conformance(
    emulator: Emulator,
    config: AnyConfig,
    frames_per_second: float | Sequence[float],
    *,
    index: int = 0,
    member: Which | None = None,
    window_us: int | None = None,
) -> ConformanceCurve:
    """Return how near an emulator's events come to the exact events of the same scene, at each rate of pictures.

    emulator: takes the pictures (pictures, height, width), float32, and their times in whole microseconds, int64, the
        first at 0. The background of a picture is 0, and a shape its intensity. It gives a structured array with the
        fields x, y, t (whole microseconds) and p (1 ON, 0 OFF), in the order of time.
    index, member: which recording of the config, as in `gerd.simulate`. Noises have to be off.
    window_us: how far apart an exact event and one of the emulator's can be and still be the same; by default the time
        from one picture to the next, or a step if that is longer. Of the ways to match events of the same pixel and
        polarity, it is one with as many pairs as possible, and of these with the least sum of |Δt|.

    The exact events are those of the config in exact timing, of pixels that start at 0 at the first picture.
    """
    return ConformanceCurve(
        tuple(each_conformance(emulator, config, frames_per_second, index=index, member=member, window_us=window_us))
    )


def each_conformance(
    emulator: Emulator,
    config: AnyConfig,
    frames_per_second: float | Sequence[float],
    *,
    index: int = 0,
    member: Which | None = None,
    window_us: int | None = None,
) -> Iterator[Conformance]:
    """The points of `conformance`, one after the other, as soon as each is known; mistakes are found before."""
    rates = _rates(frames_per_second)
    if window_us is not None:
        check_whole("window_us", window_us, 0)
    if not callable(emulator):
        raise GerdError(f"the emulator is {shorten(emulator)}; allowed: a function of pictures and their times")
    chosen = as_config(config)
    _check_quiet(config_of(chosen, member))
    exact = simulate(chosen, index, member, **AT_REST)
    for rate in rates:
        _check_pictures(exact, rate)
    return (_measured(emulator, exact, rate, window_us) for rate in rates)


def _rates(given: object) -> list[float]:
    """The rates as numbers; an error if one of them is none."""
    rates = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    numbers = []
    for rate in rates:
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < float(rate) <= SECOND:
            raise GerdError(f"frames_per_second {shorten(rate)}: allowed: more than 0, up to {SECOND}")
        numbers.append(float(rate))
    if not numbers:
        raise GerdError("frames_per_second: is empty; allowed: a number or several")
    return numbers


def _check_quiet(config: Config) -> None:
    """An error if there is something in the events that no emulator can see in pictures."""
    pixel = plan_of(config).pixel
    for name, path in AMOUNTS.items():
        if path not in HARMLESS and getattr(pixel, name):
            message = "no emulator can know it from pictures; leave it at its default here"
            raise config.error(WRITTEN[name], message, plain(at(config, WRITTEN[name])))
    if pixel.recorded is not None:
        raise config.error("noise.recorded", "no emulator can know it from pictures", config.noise.recorded)


def _duration(recording: Recording) -> int:
    """The time up to which events are recorded, in microseconds."""
    scene = recording.scene
    return math.floor(min(recording.steps - 1, scene.path_end / scene.trajectory.rate) * recording.step_us)


def _times(recording: Recording, rate: float) -> Whole:
    """The times of the pictures, in microseconds."""
    last = math.floor(_duration(recording) * rate / SECOND * (1 + 1e-12))
    return np.minimum(np.rint(np.arange(last + 1) * (SECOND / rate)).astype(np.int64), _duration(recording))


def _check_pictures(recording: Recording, rate: float) -> None:
    pictures = math.floor(_duration(recording) * rate / SECOND * (1 + 1e-12)) + 1
    if pictures < 2:
        took = f"{_duration(recording)} µs"
        raise GerdError(f"frames_per_second {rate:g}: 1 picture of a recording of {took}; allowed: two or more")
    size = pictures * recording.height * recording.width * 4
    if size > MOST_BYTES:
        frame = f"{pictures} pictures of {recording.width}×{recording.height}"
        raise GerdError(
            f"frames_per_second {rate:g}: {frame} take {size / 1e9:.3g} GB; allowed: up to {MOST_BYTES / 1e9:.3g} GB"
        )


def _measured(emulator: Emulator, exact: Recording, rate: float, window_us: int | None) -> Conformance:
    times = _times(exact, rate)
    made = _emulated(emulator, exact, times, rate)
    truth = exact.events
    truth = truth[truth["t"] <= times[-1]]
    window = max(math.ceil(SECOND / rate), exact.step_us) if window_us is None else int(window_us)
    t, of_truth = made["t"].astype(np.int64), truth["t"]
    longest = max(int(t.max(initial=0)), int(of_truth.max(initial=0)))  # no two events are farther apart
    sites = _sites(truth, exact.width), _sites(made, exact.width)
    first, second = matched(sites[0], of_truth, sites[1], t, min(window, longest))
    on, exact_on = int(made["p"].sum()), int(truth["p"].sum())
    return Conformance(
        frames_per_second=rate,
        pictures=len(times),
        duration_us=int(times[-1]),
        window_us=window,
        exact_on=exact_on,
        exact_off=len(truth) - exact_on,
        on=on,
        off=len(made) - on,
        exact_same_time=_same_time(of_truth),
        same_time=_same_time(t),
        gaps_us=np.sort(np.abs(of_truth[first] - t[second])),
    )


def _emulated(emulator: Emulator, exact: Recording, times: Whole, rate: float) -> NDArray[np.void]:
    """What the emulator makes of the pictures, checked."""
    pictures = derived.images_at(exact, times / exact.step_us)
    what = f"the emulator at {rate:g} pictures per second"
    try:
        events = emulator(pictures, times.copy())
    except GerdError:
        raise
    except Exception as error:  # whatever a user's emulator may raise
        shape = f"{counted(len(times), 'picture')} of {exact.width}×{exact.height}"
        raise GerdError(f"{what} failed on {shape}: {type(error).__name__}: {error}") from error
    if not isinstance(events, np.ndarray) or events.ndim != 1 or events.dtype.names is None:
        given = f"{events.dtype} of shape {events.shape}" if isinstance(events, np.ndarray) else type(events).__name__
        allowed = "a structured array of one axis with the fields x, y, t (microseconds) and p (1 ON, 0 OFF)"
        raise GerdError(f"{what} gave {given}; allowed: {allowed}")
    check_events(what, events, exact.width, exact.height, 0)
    back = np.flatnonzero(events["t"][1:] < events["t"][:-1])
    if len(back):
        earlier, later = events["t"][back[0]], events["t"][back[0] + 1]
        raise GerdError(f"{what} gave event {back[0] + 1}, of {later} µs, after one of {earlier} µs; allowed: in order")
    return events


def _sites(events: NDArray[np.void], width: int) -> Whole:
    """A number for each event's pixel and polarity."""
    x, y, p = (events[name].astype(np.int64) for name in "xyp")
    return (y * width + x) * 2 + p


def _same_time(times: Whole) -> float:
    """The share of events whose time another one has, too."""
    _, counts = np.unique(times, return_counts=True)
    return _ratio(int(counts[counts > 1].sum()), len(times))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _word(form: str, value: float) -> str:
    return "-" if math.isnan(value) else form.format(value)


def _line(cells: Sequence[str]) -> str:
    return " ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))

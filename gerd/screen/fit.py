"""A camera from its recordings: a dataset with exact ground truth in, the fields of a config for its pixels out.

Thresholds come from what pixels fire while edges pass them, noise from what they fire while nothing does; of both the
truth tells when that is. The dataset may be a registered one, or a simulated one, of which only events and truth are
used (and how its integrators respond and start, which no recording tells).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError, StorageError, check_whole, counted
from gerd.recording.recording import Recording
from gerd.screen.passages import Quiet, SeenByPixels, light_of_background, seen_by_pixels
from gerd.screen.readout import ReadoutFit, fit_readout
from gerd.screen.real import scene_pixels
from gerd.screen.refractory import RefractoryFit, fit_refractory
from gerd.screen.thresholds import CERTAIN, Estimate, ThresholdFit, fit_thresholds
from gerd.screen.view import PARAMETERS, View
from gerd.storage.json_files import parsed_json
from gerd.storage.manifest import REGISTRATION
from gerd.storage.recordings import Recordings

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGEST = 1e6  # of a number in a registration
COUNT = 100  # recordings that are looked at, by default
FALSE_ALARM = 0.01  # the probability that any ordinary pixel is taken for a hot one
ROUNDS = 20  # in which hot pixels are found and left out of the background
SURELY = 3  # passages after which a pixel without any event is dead
LATEST = 2  # steps by which events may come late and still count as those of their edge
DIGITS = 4


@dataclass(frozen=True)
class CameraFit:
    """What the recordings of a camera say about its pixels."""

    source: str
    recordings: int
    pixels: int
    step_us: int
    response: float  # b of the response log, 0 where integrators see brightness itself
    thresholds: ThresholdFit | None  # None: too few pixels were passed by edges
    background_on: Estimate | None  # events per pixel and step; None: no pixel was ever quiet
    background_off: Estimate | None
    hot: Estimate  # share of the pixels
    hot_rate_hz: Estimate | None  # None: there is no hot pixel
    dead: Estimate | None  # share of the pixels; None: too few were passed often enough
    refractory: RefractoryFit
    readout: ReadoutFit | None  # None: in step timing events have no time of their own

    @property
    def yaml(self) -> str:
        """The fields of a config that you can paste, with the intervals as comments."""
        return "\n".join([*self._head(), *self._integrator(), *self._noise(), *self._readout(), ""])

    def __str__(self) -> str:
        return self.yaml

    def _head(self) -> Iterator[str]:
        yield f"# Fitted to {counted(self.recordings, 'recording')} of {self.source}."
        yield "# In brackets: the interval that holds the truth in 95 of 100 cases."

    def _integrator(self) -> Iterator[str]:
        if self.thresholds is None:
            yield "# integrator: too few pixels were passed by edges"
            return
        fit = self.thresholds
        yield "integrator:"
        if self.refractory.us is not None:
            yield f"  refractory_us: {self.refractory.us.value:.0f}  # {self.refractory.us}"
            if self.refractory.loses_events:
                yield "  refractory: drop  # events are lost in it, so that the thresholds below are too high"
        elif math.isfinite(self.refractory.at_most_us):
            yield f"  refractory_us: 0  # none is seen; at most {self.refractory.at_most_us:.0f}"
        if self.response:
            yield f"  response: {{log: {_short(self.response)}}}"
        numbers = ", ".join(f"{name}: {_short(getattr(fit, name).value)}" for name in ("on", "off", "spread"))
        yield f"  threshold: {{{numbers}}}"
        yield f"    # on {fit.on}, off {fit.off}, spread {fit.spread}; {fit.passages} passages of {fit.pixels} pixels"

    def _noise(self) -> Iterator[str]:
        yield "noise:"
        if self.background_on is None or self.background_off is None:
            yield "  # background, hot: no pixel was ever quiet"
        else:
            on, off = self.background_on, self.background_off
            yield f"  background: {{on: {_short(on.value)}, off: {_short(off.value)}}}"
            yield f"    # per pixel and step of {self.step_us} µs: on {on}, off {off}"
        if self.hot_rate_hz is not None:
            yield f"  hot: {{share: {_short(self.hot.value)}, rate_hz: {_short(self.hot_rate_hz.value)}}}"
            yield f"    # share {self.hot}, rate_hz {self.hot_rate_hz}"
        if self.dead is None:
            yield "  # dead: too few pixels were passed by edges often enough"
        else:
            yield f"  dead: {_short(self.dead.value)}  # {self.dead}"

    def _readout(self) -> Iterator[str]:
        if self.readout is None:
            return
        fit = self.readout
        if fit.unknown:
            yield f"# readout: {fit.unknown}"
        known = {"latency_us": fit.latency_us, "jitter_us": fit.jitter_us}
        given = {name: each for name, each in known.items() if each is not None}
        if fit.latency_us is not None and fit.latency_us.value > LATEST * self.step_us:
            yield "# readout: events come so many steps late that thresholds and noise above may be wrong"
        if fit.seen:
            yield "readout:"
            yield from (f"  {name}: {_short(each.value if each.low else 0)}  # {each}" for name, each in given.items())
        elif not fit.unknown:
            most = ", ".join(f"{name} at most {each.high:.2g}" for name, each in given.items())
            yield f"# readout: none is seen; {most}"


def fit(
    dataset: Recordings | str | os.PathLike[str],
    *,
    count: int = COUNT,
    progress: Callable[[int], None] = lambda looked_at: None,
) -> CameraFit:
    """Estimate the camera of a dataset: the thresholds and the noise of its pixels, and its readout.

    The dataset was written by `gerd.register`, or is a simulated one; of a simulated sweep only the first member is
    used. `count` is the most recordings to use; `progress` is called with 1 after each.
    """
    data = dataset if isinstance(dataset, Recordings) else Recordings(os.fspath(dataset))
    check_whole("count", count, 1)
    config = data.config
    if config.timing == "step" and config.integrator.reset == "zero":
        raise GerdError(f"{data.path}: integrator.reset is 'zero'; allowed: subtract, or timing exact")
    about = _registration(data) if data.recorded else None
    response = config.integrator.log_response if about is None else _light(data, about)
    there = np.ones(config.sensor.width * config.sensor.height, np.bool_)
    if about is not None:
        there = _seen_pixels(data, about)
    rows = range(0, len(data), 1 if data.recorded else data.manifest.members)[:count]

    def looked_at() -> Iterator[Recording]:
        for row in rows:
            yield data[row]
            progress(1)

    seen = seen_by_pixels(looked_at(), len(there), response, data.recorded)
    dead = there & (seen.rose >= SURELY) & (seen.fired == 0)
    on, off, hot = _background(seen.quiet, there & ~dead)
    noise = sum(0.0 if each is None else each.value for each in (on, off))
    doubt = 1 - math.exp(-_noise_in_a_passage(seen, noise, there))
    thresholds = fit_thresholds(seen.passages, hot | dead | ~there, doubt)
    refractory = fit_refractory(seen.intervals_us[~hot[seen.interval_pixel]], noise)
    return CameraFit(
        str(data.path),
        len(rows),
        int(there.sum()),
        config.step_us,
        response,
        thresholds,
        None if on is None else _scaled(on, seen.quiet.step_s),
        None if off is None else _scaled(off, seen.quiet.step_s),
        _share(int(hot.sum()), int(there.sum())),
        _rate(seen.quiet, hot, on),
        _dead(seen, there, dead),
        refractory,
        _late(data, seen, hot, refractory) if config.timing == "exact" else None,
    )


def _late(data: Recordings, seen: SeenByPixels, hot: Mask, refractory: RefractoryFit) -> ReadoutFit:
    """How late events come, where anything tells it."""
    if data.recorded:
        return ReadoutFit(
            None, None, "latency is a part of the clock's offset, and jitter not told from the time a screen takes"
        )
    if refractory.loses_events:
        return ReadoutFit(None, None, "the events that are lost leave open when the others have happened")
    rest = 0.0 if refractory.us is None else refractory.us.value
    return fit_readout([each for each in seen.passed_in_time if not hot[each.pixel]], rest)


def _background(quiet: Quiet, there: Mask) -> tuple[Estimate | None, Estimate | None, Mask]:
    """Events of each polarity per second of an ordinary pixel, and which pixels are hot."""
    from scipy.stats import poisson

    hot = np.zeros(len(there), np.bool_)
    looked = there & (quiet.seconds > 0)
    if not looked.any():
        return None, None, hot
    for _ in range(ROUNDS):
        ordinary = looked & ~hot
        if not ordinary.any():
            break
        rate = quiet.on[ordinary].sum() / quiet.seconds[ordinary].sum()
        chance = poisson.sf(quiet.on - 1, max(rate, 1e-12) * quiet.seconds)
        again = looked & (chance < FALSE_ALARM / looked.sum()) & (quiet.on > 1)
        if np.array_equal(again, hot):
            break
        hot = again
    ordinary = looked & ~hot
    seconds = float(quiet.seconds[ordinary].sum())
    on, off = (_per_second(int(events[ordinary].sum()), seconds) for events in (quiet.on, quiet.off))
    return on, off, hot


def _noise_in_a_passage(seen: SeenByPixels, noise_per_s: float, there: Mask) -> float:
    """How many events of noise an ordinary pixel has from one quiet time to the next."""
    busy = seen.quiet.looked_s * there.sum() - float(seen.quiet.seconds[there].sum())
    return noise_per_s * busy / max(1, seen.passed)


def _rate(quiet: Quiet, hot: Mask, on: Estimate | None) -> Estimate | None:
    if not hot.any() or on is None:
        return None
    found = _per_second(int(quiet.on[hot].sum()), float(quiet.seconds[hot].sum()))
    return Estimate(*(max(0.0, value - on.value) for value in (found.value, found.low, found.high)))


def _dead(seen: SeenByPixels, there: Mask, dead: Mask) -> Estimate | None:
    asked = int((there & (seen.rose >= SURELY)).sum())
    return _share(int(dead.sum()), asked) if asked else None


def _per_second(events: int, seconds: float) -> Estimate:
    """Events that come independently of each other, by the chi-squared intervals of their number."""
    from scipy.stats import chi2

    low = chi2.ppf(0.025, 2 * events) / 2 if events else 0.0
    high = chi2.ppf(0.975, 2 * events + 2) / 2
    return Estimate(events / seconds, float(low) / seconds, float(high) / seconds)


def _share(some: int, of: int) -> Estimate:
    """Wilson's interval of a share."""
    if of == 0:
        return Estimate(0.0, 0.0, 1.0)
    share = some / of
    z = CERTAIN**2 / of
    middle = (share + z / 2) / (1 + z)
    reach = math.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return Estimate(share, max(0.0, middle - reach), min(1.0, middle + reach))


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.value * factor, estimate.low * factor, estimate.high * factor)


def _short(value: float) -> str:
    return f"{value:.{DIGITS}g}"


@dataclass(frozen=True)
class _Registered:
    """What is needed of the file `registration.json`."""

    view: View
    zoom: int  # screen pixels a side of a pixel of the scene
    corner: tuple[int, int]  # of the scene on the screen
    levels: tuple[int, int]  # grey values of brightness 0 and 1
    gamma: float  # of the screen


def _registration(data: Recordings) -> _Registered:
    """How the recordings of a camera were shown and seen."""
    name = data.place.at(REGISTRATION)
    try:
        about = parsed_json(data.place.read(REGISTRATION))
        numbers = [*about["view"]["parameters"], about["zoom"], *about["corner"], *about["camera"], *about["screen"]]
        numbers += [*about["levels"], about["gamma"]]
        sound = len(numbers) == PARAMETERS + 10 and all(abs(each) < LARGEST for each in numbers)
        whole = [about["zoom"], *about["corner"], *about["camera"], *about["screen"]]
        sound = sound and all(type(each) is int and each >= 0 for each in whole) and min(about["camera"]) > 0
        sound = sound and min(about["screen"]) > 0 and 0.2 <= about["gamma"] <= 5
        sound = sound and abs(np.linalg.det(View.inner(tuple(about["view"]["parameters"])))) > 0
    except (ValueError, TypeError, KeyError, RecursionError, json.JSONDecodeError):
        sound = False
    if not sound:
        raise StorageError(f"{name}: is damaged: it is not what gerd register writes")
    view = View(tuple(about["camera"]), tuple(about["screen"]), tuple(about["view"]["parameters"]))
    return _Registered(view, about["zoom"], tuple(about["corner"]), tuple(about["levels"]), about["gamma"])


def _light(data: Recordings, about: _Registered) -> float:
    """How bright the background is, for the response of the camera's pixels to what the screen has shown."""
    dark, bright = about.levels
    if bright <= dark:
        allowed = "allowed: a stimulus whose brightness 1 is brighter than 0, by --levels"
        raise GerdError(f"{data.path}: grey values {dark} and {bright} of the brightnesses 0 and 1; {allowed}")
    return light_of_background((dark, bright), about.gamma)


def _seen_pixels(data: Recordings, about: _Registered) -> Mask:
    """Which pixels of the scene have the events of a pixel of the camera."""
    size = data.config.sensor.width, data.config.sensor.height
    return np.asarray(scene_pixels(size, about.zoom, about.corner, about.view).ravel() >= 0)

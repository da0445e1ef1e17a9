"""How near emulators come to the exact events of configs/benchmarks/emulators.yaml, at several rates of pictures.

    python benchmarks/conformance.py [--json FILE] [--emulators FOLDER] [NAME ...]
    PYTHONPATH=out/emulators gerd conform benchmarks/conformance.py:NAME configs/benchmarks/emulators.yaml   one of them

Each function below gives the pictures to one program as that wants them, with its noise off, and returns its events.
Those of PyPI are installed into out/emulators (as by benchmarks/emulators.py), unless FOLDER holds them already:

    eventcv, evlib, eventify

The others are run if they can be imported, that is with their checkout in PYTHONPATH, and with what they import:

    v2e         https://github.com/SensorsINI/v2e             PYTHONPATH=v2e
    voltmeter   https://github.com/Lynn0306/DVS-Voltmeter     PYTHONPATH=DVS-Voltmeter
    iebcs       https://github.com/neuromorphicsystems/IEBCS  PYTHONPATH=IEBCS/src
    openeb      https://github.com/prophesee-ai/openeb        as it is installed

All of them respond to the logarithm of light, and our pixels to brightness itself. So light is made such that its
logarithm *is* the brightness: DARK · (BRIGHT / DARK)^brightness, and a threshold of 0.3 is one of
0.3 · ln(BRIGHT / DARK). `lines` is none of these programs, but what ESIM does between two pictures.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "configs" / "benchmarks" / "emulators.yaml"
RATES = [100, 250, 500, 1000, 2000, 4000]
DARK, BRIGHT = 64.0, 192.0
CONTRAST = float(np.log(BRIGHT / DARK))
THRESHOLD = 0.3 * CONTRAST  # of the config, in logarithms of light
KIND = [("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", np.bool_)]

Array = np.ndarray[Any, Any]


def light(pictures: Array) -> Array:
    """From 0 to 255, as emulators of 8-bit videos expect, but not rounded."""
    return DARK * np.exp(CONTRAST * pictures.astype(np.float64))


def in_order(rows: Iterable[tuple[Any, Any, Any, Any]]) -> Array:
    """Events from columns x, y, t in microseconds and p (positive: ON), for each picture."""
    found = [np.empty(0, KIND)]
    for x, y, t, p in rows:
        events = np.empty(len(t), KIND)
        events["x"], events["y"], events["t"], events["p"] = x, y, np.rint(t), np.asarray(p) > 0
        found.append(events)
    events = np.concatenate(found)
    return events[np.argsort(events["t"], kind="stable")]


def lines(pictures: Array, times: Array) -> Array:
    """ESIM's pixel, written here: a straight line from picture to picture, an event wherever it passes a threshold."""
    levels = np.log(light(pictures))
    reference = levels[0].copy()  # at each pixel's last event
    found: list[tuple[Array, Array, Array, Array]] = []
    for (before, after), (begin, end) in zip(pairwise(levels), pairwise(times.tolist()), strict=True):
        passed = (after - reference) / THRESHOLD
        for number in range(1, int(np.abs(passed).max()) + 1):
            y, x = np.nonzero(np.abs(passed) >= number)
            sign = np.sign(passed[y, x])
            level = reference[y, x] + sign * number * THRESHOLD
            share = (level - before[y, x]) / (after - before)[y, x]
            found.append((x, y, begin + share * (end - begin), sign))
        reference += np.trunc(passed) * THRESHOLD
    return in_order(found)


def evlib(pictures: Array, times: Array) -> Array:
    """ESIM on PyTorch, which gives events the time of a picture."""
    from evlib.simulation import ESIMConfig, ESIMSimulator

    settings = {"device": "cpu", "dtype": "float64", "refractory_period_ms": 0.0}
    simulator = ESIMSimulator(ESIMConfig(positive_threshold=THRESHOLD, negative_threshold=THRESHOLD, **settings))
    made = [simulator.process_frame(frame, t * 1e-6) for frame, t in zip(light(pictures), times, strict=True)]
    return in_order((x, y, t * 1e6, p) for x, y, t, p in made)


def eventcv(pictures: Array, times: Array) -> Array:
    """The pixel of v2e in Rust, from grey values that it takes for sRGB, at even times."""
    import eventcv

    linear = light(pictures) / 255
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    off = {"sigma_thres": 0.0, "leak_rate_hz": 0.0, "shot_noise_rate_hz": 0.0, "cutoff_hz": 0.0, "refractory_us": 0}
    rate = (len(times) - 1) / float(times[-1] * 1e-6)
    events = eventcv.simulate(encoded, fps=rate, pos_thres=THRESHOLD, neg_thres=THRESHOLD, **off)
    x, y, t, p = events.numpy().astype(np.int64).T
    return in_order([(x, y, t, p)])


def eventify(pictures: Array, times: Array) -> Array:
    """The difference of two logarithms, cut into thresholds."""
    from eventify import frame_to_event_tuples

    pairs = zip(pairwise(light(pictures)), pairwise(times.tolist()), strict=True)
    made = [frame_to_event_tuples(*both, *when, c_thresh=THRESHOLD, eps=1e-9) for both, when in pairs]
    return in_order((each["x"], each["y"], each["t"], each["p"]) for each in made)


def v2e(pictures: Array, times: Array) -> Array:
    """The pixels of v2e, without a network that makes pictures in between."""
    from v2ecore.emulator import EventEmulator

    off = {"sigma_thres": 0.0, "leak_rate_hz": 0.0, "shot_noise_rate_hz": 0.0, "cutoff_hz": 0.0}
    pixels = EventEmulator(pos_thres=THRESHOLD, neg_thres=THRESHOLD, refractory_period_s=0.0, device="cpu", **off)
    made = [pixels.generate_events(frame, t * 1e-6) for frame, t in zip(light(pictures), times, strict=True)]
    return in_order((each[:, 1], each[:, 2], each[:, 0] * 1e6, each[:, 3]) for each in made if each is not None)


def voltmeter(pictures: Array, times: Array) -> Array:
    """DVS-Voltmeter, with a Brownian motion so small that its drift alone is left."""
    from types import SimpleNamespace

    from src.simulator import EventSim

    least = 1e-9  # 0 would be divided by
    dark_light = 20.0
    constants = [1 / THRESHOLD, dark_light, 0.0, 0.0, 0.0, least]
    pixels = EventSim(SimpleNamespace(SENSOR=SimpleNamespace(K=constants)), output_folder="", video_name="")
    frames = light(pictures) - dark_light
    made = [pixels.generate_events(frame, int(t)) for frame, t in zip(frames, times, strict=True)]
    return in_order((each[:, 1], each[:, 2], each[:, 0], each[:, 3]) for each in made if each is not None)


def iebcs(pictures: Array, times: Array) -> Array:
    """IEBCS without latency and refractory period, with the time constant of its example: 40 µs at 1000 lux."""
    from dvs_sensor import DvsSensor

    never = 1e-9  # Hz: 0 would be divided by
    _, height, width = pictures.shape
    pixels = DvsSensor("")
    pixels.initCamera(
        width,
        height,
        lat=0,
        jit=0,
        ref=0,
        tau=40,
        th_pos=THRESHOLD,
        th_neg=THRESHOLD,
        th_noise=0,
        bgnp=never,
        bgnn=never,
    )
    frames = light(pictures) * 1000 / DARK - 1  # lux
    pixels.init_image(frames[0])
    made = [pixels.update(frame, int(dt)) for frame, dt in zip(frames[1:], np.diff(times), strict=True)]
    return in_order((each.get_x(), each.get_y(), each.get_ts().astype(np.int64), each.get_p()) for each in made)


def openeb(pictures: Array, times: Array) -> Array:
    """The pixels of OpenEB's video to events, on the CPU, without a refractory period."""
    from metavision_core_ml.video_to_event.simulator import EventSimulator

    _, height, width = pictures.shape
    pixels = EventSimulator(height, width, THRESHOLD, THRESHOLD, refractory_period=0)
    for frame, t in zip(light(pictures), times.tolist(), strict=True):
        pixels.image_callback(frame, t)
    events = pixels.get_events()
    return in_order([(events["x"], events["y"], events["t"], events["p"])])


EMULATORS: dict[str, Callable[[Array, Array], Array]] = {
    each.__name__: each for each in (lines, evlib, eventcv, eventify, v2e, voltmeter, iebcs, openeb)
}


def main() -> None:
    from emulators import install

    from gerd import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EMULATORS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--emulators", type=Path, default=ROOT / "out" / "emulators")
    chosen = parser.parse_args()
    install(chosen.emulators)
    warnings.simplefilter("ignore")  # evlib complains about packages for parts of it that are not used here
    logging.disable(logging.WARNING)

    found = {}
    for name in chosen.names or EMULATORS:
        print(f"\n{name}")
        try:
            with redirect_stdout(sys.stderr):
                curve = measure.conformance(EMULATORS[name], CONFIG, RATES)
        except Exception as error:  # it cannot be imported
            print(error)
            continue
        print(curve)
        found[name] = [point.numbers for point in curve.points]
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

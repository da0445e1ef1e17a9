"""What the camera of a config makes of its scenes: whether they reach its thresholds, and beside an ideal camera."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.events.pixel.thresholds import Thresholds
from gerd.plan.plan import INTENSITY_ONE, Pixel
from gerd.scene.scenes import Scenes

# Amounts that an ideal camera has not. Its response is that of the config, in whose units thresholds are.
IDEAL = ("spread", "hot_share", "dead", "leak_hz", "refractory_us", "latency_us", "jitter_us", "bus_us")
FEW = 0.5  # pixels that a contrast reaches, as a share


def contrasts(scenes: Scenes) -> NDArray[np.float64]:
    """(recordings, actors): what integrators see of each actor on the background, in shares of a full count."""
    brightness = scenes.intensity / INTENSITY_ONE
    background = scenes.pixel.log_response
    return np.log1p(brightness / background) if background > 0 else brightness


def ideal(pixel: Pixel) -> Pixel:
    """The pixel of a camera that is ideal but for its thresholds, its response and the noises of each step."""
    absent: dict[str, Any] = dict.fromkeys(IDEAL, 0.0)
    return replace(pixel, **absent)


def too_faint(config: Config, scenes: Scenes) -> Iterator[str]:
    """A sentence on each actor whose contrast reaches the threshold of no pixel, or of few."""
    tables = Thresholds.of(scenes)
    seen = contrasts(scenes)
    mean = {"ON": scenes.pixel.threshold_on, "OFF": scenes.pixel.threshold_off}
    for actor, (entry, _) in enumerate(config.cast):
        there = seen[scenes.present[:, actor], actor]
        if not there.any():  # one of intensity 0 only hides others
            continue
        reached = {"ON": (there.max(), tables.on), "OFF": (-there.min(), tables.off)}
        shares = {name: float((table <= most * scenes.full_count).mean()) for name, (most, table) in reached.items()}
        if max(shares.values()) >= FEW:
            continue
        name = "ON" if there.max() >= -there.min() else "OFF"
        most = abs(reached[name][0])
        threshold = mean[name] / scenes.full_count
        text = (
            f"actors.{entry}.intensity: the contrast with the background, {most:.3g}, is below the {name} threshold, "
        )
        share = shares[name]
        what = f"of {100 * (1 - share):.3g} % of the pixels" if share > 0 else f"{threshold:.3g}"
        first = "no events" if scenes.pixel.initial == "stationary" else "no events but for those of initial states"
        yield f"{text}{what}: {'few events' if share > 0 else first}"

"""The effects of a camera, one at a time, and the transformations that they may break: plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gerd.config.document import PlainData

IDEAL = "ideal"
THRESHOLD = 0.4  # a pixel fires twice while a shape covers it, well before it is covered


@dataclass(frozen=True)
class Effect:
    """One effect: what a config has with it, and how strong it is in words."""

    name: str
    strength: str
    values: Mapping[str, PlainData] = field(default_factory=dict)


EFFECTS = (
    Effect(IDEAL, "nothing"),
    Effect(
        "logarithmic response",
        "b = 0.1, threshold 0.4 of ln 11",
        {"integrator.response": {"log": 0.1}, "integrator.threshold": THRESHOLD * math.log(11)},
    ),
    Effect("unequal thresholds", "ON 0.4, OFF 0.3", {"integrator.threshold": {"on": THRESHOLD, "off": 0.3}}),
    Effect(
        "threshold spread",
        "0.04, a tenth of the threshold",
        {"integrator.threshold": {"on": THRESHOLD, "off": THRESHOLD, "spread": 0.04}},
    ),
    Effect("refractory hold", "3 ms", {"integrator.refractory_us": 3000}),
    Effect("refractory drop", "3 ms", {"integrator.refractory_us": 3000, "integrator.refractory": "drop"}),
    Effect("leak", "5 Hz", {"integrator.leak_hz": 5.0}),
    Effect("latency", "100 µs", {"readout.latency_us": 100}),
    Effect("jitter", "50 µs, after a latency of 200 µs", {"readout.latency_us": 200, "readout.jitter_us": 50}),
    Effect("readout bus", "30 events per ms", {"readout.events_per_ms": 30}),
    Effect("dead pixels", "1 % of the pixels", {"noise.dead": 0.01}),
    Effect("hot pixels", "0.5 % of the pixels, 300 Hz", {"noise.hot": {"share": 0.005, "rate_hz": 300.0}}),
    Effect("background", "5 Hz per pixel", {"noise.background": 0.005}),
)


@dataclass(frozen=True)
class Element:
    """A transformation of the whole scene, as a config has it, and whether it takes pixels to pixels."""

    name: str
    operation: Mapping[str, PlainData]
    amount: float
    on_grid: bool


ELEMENTS = (
    Element("translation by (5, 3) px", {"translate": [5, 3]}, 5.0, on_grid=True),
    Element("rotation by 90°", {"rotate": 90}, 90.0, on_grid=True),
    Element("time scale 2", {"time_scale": 2}, 2.0, on_grid=True),
    Element("scale 1.5", {"scale": 1.5}, 1.5, on_grid=False),
    Element("boost by (0.5, 0.25) px/step", {"boost": [0.5, 0.25]}, 0.5, on_grid=False),
)

"""The stimuli of the studies: a square in a square frame, as a config; lengths are in pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gerd.config.config import Config
from gerd.config.load import parse


def square(side: int, seed: int, steps: int, noise: Mapping[str, float], timing: str = "step", **motion: Any) -> Config:
    """A square in a frame of `side` pixels; `motion` has its transformations as a config has them."""
    actor = {"shape": "square", **{name: {"acceleration": 0, **fields} for name, fields in motion.items()}}
    sensor = {"width": side, "height": side}
    return parse({"seed": seed, "sensor": sensor, "steps": steps, "timing": timing, "noise": noise, "actors": [actor]})

"""The stimuli: a circle, a square and a triangle, each with events of its own, at four sizes or at four speeds.

As in the data of the study that this one repeats, no shape hides another: each is simulated by itself, with the
background noise of its own, and a frame has the events of all three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.load import parse
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.studies.lab.training import Data, recordings

SHAPES = ("circle", "square", "triangle")
STEPS = 60
FIRST_STEP = 20  # of the 40 that count
BACKGROUND = 0.001  # per pixel and step, with each shape
SIZES = (10.0, 20.0, 40.0, 80.0)  # pixels
SPEEDS = (0.16, 0.32, 0.64, 1.28)  # pixels per step along each axis
SPEED = 0.2  # where the sizes differ


@dataclass(frozen=True)
class Scaling:
    """One of the two experiments: networks are trained on all of the amounts together, and tested at each."""

    name: str
    unit: str
    amounts: tuple[float, ...]
    motion: Callable[[float], dict[str, object]]  # of a shape, at an amount


def _moving(speed: float, size: object) -> dict[str, object]:
    return {
        "translation": {"start": "uniform", "velocity": {"choice": [-speed, speed]}, "acceleration": 0},
        "scale": {"start": size, "velocity": 0, "acceleration": 0},
    }


SPATIAL = Scaling("spatial", "size, px", SIZES, lambda size: _moving(SPEED, size))
TEMPORAL = Scaling("temporal", "speed, px per step", SPEEDS, lambda speed: _moving(speed, {"uniform": [10, 80]}))
SCALINGS = (SPATIAL, TEMPORAL)


def stimuli(scaling: Scaling, amount: float, shape: str, side: int, seed: int = 0) -> Config:
    """The config of one shape. Each shape has a seed of its own, so that their places have nothing in common."""
    return parse(
        {
            "seed": len(SHAPES) * seed + SHAPES.index(shape),
            "sensor": {"width": side, "height": side},
            "steps": STEPS,
            "noise": {"background": BACKGROUND},
            "actors": [{"shape": shape, **scaling.motion(amount)}],
        }
    )


def simulated(configs: Sequence[Config], first: int, count: int, device: str) -> Data:
    """Recordings of one shape each, seen together; places are (recordings, steps, shapes, 2)."""
    parts = [recordings(config, first, count, device) for config in configs]
    frames = parts[0].frames
    for part in parts[1:]:
        frames |= part.frames
    return Data(frames, torch.stack([part.places for part in parts], dim=2))


def places(configs: Sequence[Config], first: int, count: int) -> NDArray[np.float64]:
    """(recordings, steps, shapes, 2): those of `simulated`, without simulating anything."""
    parts = []
    for config in configs:
        scenes = draw(plan_of(config), range(first, first + count))
        parts.append(scenes.trajectory.parameters(np.arange(scenes.steps))[:, 0, :, 0, :2])
    return np.stack(parts, axis=2)

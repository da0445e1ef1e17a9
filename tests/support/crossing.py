"""One shape that crosses the frame in exact timing, as we record it and as a camera in continuous time sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import gerd
from gerd.recording.recording import Recording
from support import continuous
from support.scenes import actor, config

SIDE = 120  # of the frame, pixels
Passages = dict[tuple[int, int], list[tuple[float, int]]]  # the events of each pixel (y, x): time in steps, polarity
SQUARE = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def by_pixel(recording: Recording) -> Passages:
    result: Passages = {}
    for x, y, t, p in recording.events.tolist():
        result.setdefault((y, x), []).append((t / recording.step_us, int(p)))
    return result


@dataclass(frozen=True)
class Crossing:
    """A shape that crosses the frame."""

    shape: str
    speed: float  # pixels per step
    threshold: float
    turn: float = 0.0
    angle: float = 0.4
    size: float = 48.3
    state: float = 0.13  # of all integrators, in thresholds

    @property
    def steps(self) -> int:
        return math.ceil(60 / self.speed) + 1

    @property
    def velocity(self) -> np.ndarray:
        return self.speed * np.array([math.cos(self.angle), math.sin(self.angle)])

    @property
    def start(self) -> np.ndarray:
        return SIDE / 2 + np.array([0.31, 0.17]) - self.velocity * (self.steps - 1) / 2

    def recorded(self, upsampling: int) -> Passages:
        """What we make of it."""
        at, velocity = self.start.tolist(), self.velocity.tolist()
        moving = actor(self.shape, at=at, velocity=velocity, size=self.size, turn=self.turn)
        integrator = {"threshold": self.threshold, "initial": self.state, "warmup": 0}
        fields: dict[str, Any] = {"width": SIDE, "height": SIDE, "upsampling": upsampling, "integrator": integrator}
        return by_pixel(gerd.simulate(config(moving, timing="exact", steps=self.steps, **fields)))

    def area(self, time: float) -> np.ndarray:
        centre, radius = self.start + self.velocity * time, self.size / 2
        if self.shape == "circle":
            return continuous.ellipse_area((centre[0], centre[1]), (radius, radius), SIDE, SIDE)
        cosine, sine = math.cos(math.radians(self.turn)), math.sin(math.radians(self.turn))
        points = self.size * SQUARE @ np.array([[cosine, sine], [-sine, cosine]]) + centre
        return continuous.polygon_area(points, SIDE, SIDE)

    def truth(self) -> Passages:
        """What a camera in continuous time makes of it, which knows the areas."""
        begin, end, apart = 0.0, self.steps - 1.0, 0.03 / self.speed
        return continuous.passages(self.area, begin, end, apart, self.threshold, self.state * self.threshold)


def agreement(made: Passages, truth: Passages) -> tuple[float, float]:
    """The share of the pixels that fire with the same polarities, and the rms difference of times in these."""
    pixels = set(made) | set(truth)
    alike = [at for at in pixels if [p for _, p in made.get(at, [])] == [p for _, p in truth.get(at, [])]]
    apart = [one[0] - other[0] for at in alike for one, other in zip(made.get(at, []), truth.get(at, []), strict=True)]
    return len(alike) / len(pixels), float(np.sqrt(np.mean(np.square(apart))))

"""Recordings whose events are known: what compiled code has to give before anything that it gives is believed.

Small, but with every kind of outline, shapes that hide each other, a torus, and all noises; in a second one also with
a logarithmic response, thresholds of each pixel's own, a refractory time and a leak: code that was damaged after
it was compiled, or compiled wrongly, is unlikely to get it right. It costs some milliseconds, once for each process.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from gerd.errors import GerdError
from gerd.events.shared import Chunk
from gerd.geometry.shapes import outline
from gerd.plan.plan import AMOUNTS, INTENSITY_ONE, ActorPlan, Pixel, Plan
from gerd.plan.values import Normal, Size, Value
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

_STAR = [[0.0, -0.5], [0.29, 0.4], [-0.48, -0.15], [0.48, -0.15], [-0.29, 0.4]]
_STILL = (0.0, 0.0)


def _plan(exact: bool, every_rule: bool) -> Plan:
    full = 3 * 3 * INTENSITY_ONE
    threshold = round(0.3 * full)
    quiet: dict[str, Any] = dict.fromkeys(AMOUNTS, 0.0)
    noise = {**quiet, "background": 0.02, "shape_noise": 0.05, "event_noise": 0.1}
    pixel = Pixel(
        threshold_on=threshold,
        threshold_off=threshold,
        reset_to_zero=False,
        initial="stationary" if exact else "uniform",
        **noise,
    )
    if every_rule:
        pixel = replace(pixel, log_response=1.0, spread=0.03, refractory_us=1500.0, leak_hz=120.0)
    circle = _actor(0, "circle", 1.0, (66.0, 9.0), (1.3, 0.4), 15.0, growth=0.0, border="wrap")
    star = _actor(1, [_STAR], -0.7, (31.0, 11.0), (0.6, 0.2), (22.0, 17.0), growth=0.3, turn=4.0)
    square = _actor(2, "square", 1.0, (25.0, 8.0), (0.9, 0.9), 20.0, turn=11.0)
    triangle = _actor(3, "triangle", 2.5, (36.0, 10.0), _STILL, 20.0, shear=0.07)
    return Plan(
        seed=2**63 + 11,
        width=70,
        height=21,
        steps=7,
        step_us=1000,
        exact=exact,
        rate=1.0,
        warmup=2,
        path_end=sys.maxsize,
        upsampling=3,
        pixel=pixel,
        actors=(circle, star, square, triangle),
        operations=(),
        error=lambda path, message: GerdError(f"{path}: {message}"),
    )


def _actor(
    number: int,
    shape: str | list[list[list[float]]],
    intensity: float,
    position: tuple[float, float],
    velocity: tuple[float, float],
    size: Size,
    *,
    growth: float | None = None,
    turn: float | None = None,
    shear: float | None = None,
    border: Literal["bounce", "wrap"] = "bounce",
) -> ActorPlan:
    """An actor; what of it has a velocity, 0 included, is pushed at random."""
    of_size: Value = 0.0 if growth is None else Normal(0.0, 0.05)
    of_rotation: Value = 0.0 if turn is None else Normal(0.0, 0.5)
    of_shear: Value = 0.0 if shear is None else Normal(0.0, 0.002)
    return ActorPlan(
        number=number,
        shapes=(outline(shape),),
        intensity=intensity,
        repeat=(1,),
        border=border,
        position=position,
        size=size,
        rotation=0.0,
        shear=0.0,
        velocity=(velocity, growth or 0.0, turn or 0.0, shear or 0.0),
        acceleration=(Normal(0.0, 0.1), Normal(0.0, 0.1), of_size, None, of_rotation, of_shear),
        low=(0.0, 0.0, 1.0, 1.0, -math.inf, -1.0),
        high=(70.0, 21.0, math.inf, math.inf, math.inf, 1.0),
    )


DIGESTS = {  # for each timing, by the backend that is the definition
    "step": "06581b34800640f32cd331a54aa8f4284706ab214fce2d52b496697b1008e27a",
    "exact": "157d4d7ed3d68ba4030317b834f33d2a246b4742f3455cf0fd75945a977dcf4b",
}


def check(run: Callable[[Scenes], Iterable[Chunk]], what: str, timing: str = "step") -> None:
    """An error unless `run` gives the known events."""
    if digest(run, timing) != DIGESTS[timing]:
        raise GerdError(f"{what} gives wrong events, which a test at its start has shown; the backend torch needs none")


def scenes(timing: str, every_rule: bool = False) -> Scenes:
    """The scenes of the known recordings, with pixels as they usually are or with every rule that there is."""
    return draw(_plan(timing == "exact", every_rule), [2**32 - 1] if every_rule else [0, 2**32 - 1])


def digest(run: Callable[[Scenes], Iterable[Chunk]], timing: str) -> str:
    """sha256 over the keys of the known recordings, and over where they come from."""
    result = hashlib.sha256()
    for part in chain(run(scenes(timing)), run(scenes(timing, every_rule=True))):
        result.update(part.row.to_bytes(1) + part.keys.astype("<i8").tobytes() + part.source.tobytes())
    return result.hexdigest()

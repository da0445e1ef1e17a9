"""A recording whose events are known: what compiled code has to give before anything that it gives is believed.

Small, but with every kind of outline, shapes that hide each other, a torus, and all noises: code that was damaged after
it was compiled, or compiled wrongly, is unlikely to get it right. It costs some milliseconds, once for each process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np

from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.events.shared import Events
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

_STAR = [[0.0, -0.5], [0.29, 0.4], [-0.48, -0.15], [0.48, -0.15], [-0.29, 0.4]]
CONFIG = {
    "seed": 2**63 + 11,
    "sensor": {"width": 70, "height": 21},
    "steps": 7,
    "upsampling": 3,
    "integrator": {"warmup": 2, "threshold": 0.3},
    "noise": {"background": 0.02, "shape": 0.05, "event": 0.1},
    "actors": [
        {
            "shape": "circle",
            "translation": {"start": [66, 9], "velocity": [1.3, 0.4], "border": "wrap"},
            "scale": {"start": 15},
        },
        {
            "shape": {"polygon": _STAR},
            "intensity": -0.7,
            "translation": {"start": [31, 11], "velocity": [0.6, 0.2]},
            "scale": {"start": [22, 17], "velocity": 0.3},
            "rotation": {"velocity": 4},
        },
        {"shape": "square", "translation": {"start": [25, 8], "velocity": 0.9}, "rotation": {"velocity": 11}},
        {"shape": "triangle", "intensity": 2.5, "translation": {"start": [36, 10]}, "shear": {"velocity": 0.07}},
    ],
}
DIGESTS = {  # for each timing, by the backend that is the definition
    "step": "d8c462d1ede7657610d25ccd2b698c7a64c611761a779b092513e653a151af95",
    "exact": "5ce052fe39a9e94ee5027c2ca8d7e358170d6efa1e16cf560e6e5521dd643682",
}


def check(run: Callable[[Scenes], Iterable[Events]], what: str, timing: str = "step") -> None:
    """An error unless `run` gives the known events."""
    if digest(run, timing) != DIGESTS[timing]:
        raise GerdError(f"{what} gives wrong events, which a test at its start has shown; the backend torch needs none")


def scenes(timing: str) -> Scenes:
    """Of the known recordings."""
    return draw(Config.model_validate({**CONFIG, "timing": timing}), [0, 2**32 - 1])


def digest(run: Callable[[Scenes], Iterable[Events]], timing: str) -> str:
    """sha256 over the keys of the known recordings, and over what of them is background noise."""
    result = hashlib.sha256()
    for part in run(scenes(timing)):
        result.update(part.row.to_bytes(1) + part.keys.astype("<i8").tobytes() + np.packbits(part.background).tobytes())
    return result.hexdigest()

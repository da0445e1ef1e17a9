"""What integrators see of a pixel's count: the count itself, or its logarithm, as integers in a table.

On a background of brightness b a pixel with the count c has the brightness c / F + b, where F is the count of a pixel
that an actor of intensity 1 covers. Integrators see L(c) = F · (ln(c / F + b) - ln b), rounded to the nearest integer,
in place of c. The table has L for all counts that a scene can have: no backend computes a logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.geometry import exactmath
from gerd.plan.plan import INTENSITY_ONE
from gerd.scene.scenes import Scenes

LEAST = 1e-12  # brightness; rounding may bring counts below it that no scene has
AT_ONCE = 2**20  # counts whose logarithms are worked out together


@dataclass(frozen=True, eq=False)
class Response:
    """L of the counts from `lowest` on; with a linear response there is nothing in the table."""

    table: NDArray[np.int32]
    lowest: int = 0

    @classmethod
    def of(cls, scenes: Scenes) -> Response:
        """The response of the pixels of some scenes."""
        background = scenes.pixel.log_response
        if background == 0:
            return LINEAR
        bright, dark = (int(bound) for bound in (scenes.intensity.max(initial=0), scenes.intensity.min(initial=0)))
        if dark <= -background * INTENSITY_ONE:
            message = f"intensity {dark / INTENSITY_ONE:g} has no logarithm on a background of {background:g}"
            raise GerdError(f"{message}; allowed: above {-background:g}")
        area = scenes.upsampling * scenes.upsampling
        return _logarithm(scenes.full_count, background, -_rounded_up(-dark) * area, _rounded_up(bright) * area)


LINEAR = Response(np.zeros(0, np.int32))


def _rounded_up(intensity: int) -> int:
    """A power of two at or above it, or 0: so that scenes with similar intensities share a table."""
    return 1 << (intensity - 1).bit_length() if intensity > 0 else 0


@lru_cache(maxsize=4)
def _logarithm(full: int, background: float, lowest: int, highest: int) -> Response:
    first = max(lowest, math.floor(-background * full) + 1)  # no count that a scene has is lower
    table = np.empty(highest - first + 1, np.int32)
    for begin in range(0, len(table), AT_ONCE):
        part = table[begin : begin + AT_ONCE]
        counts = np.arange(begin, begin + len(part)) + first
        part[:] = logarithm(counts, full, background)
    return Response(table, first)


def logarithm(counts: NDArray[np.integer], full: int, background: float) -> NDArray[np.int32]:
    """L of some counts."""
    brightness = np.maximum(counts / full + background, LEAST)
    return np.rint(full * (exactmath.log(brightness) - exactmath.log(background))).astype(np.int32)

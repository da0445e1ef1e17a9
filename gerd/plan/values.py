"""Numbers that chance decides, as plain frozen values. What draws them is in `scene/sampling.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Uniform:
    """Any number from `low` up to `high`, all equally likely."""

    low: float
    high: float


@dataclass(frozen=True)
class Normal:
    """A Gaussian number."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Choice:
    """One of some numbers, all equally likely."""

    options: tuple[float, ...]


@dataclass(frozen=True)
class PairChoice:
    """One of some pairs of numbers, all equally likely."""

    options: tuple[tuple[float, float], ...]


Value = float | Uniform | Normal | Choice
Pair = tuple[Value, Value] | PairChoice  # each axis by itself, or whole pairs
Size = Value | Pair  # a single value is drawn once, for both sides


@dataclass(frozen=True)
class Boundary:
    """A velocity that moves the outline by so many pixels along its normal, on average, at t = 0."""

    pixels: Value


@dataclass(frozen=True)
class Growth:
    """A size that is multiplied by this factor in each step."""

    factor: Value


Series = Callable[[Array], Array]  # an acceleration that is the same in all recordings, at whole own times

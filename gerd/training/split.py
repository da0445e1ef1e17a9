"""Which recordings belong to which part of a dataset: what a hold-out may ask of them, and shares by chance.

Nothing here reads events. A share depends on the seed, on the shares asked for and on the numbers of the recordings,
so it is the same in every process and whatever was asked for before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.document import PlainData
from gerd.errors import GerdError, shorten
from gerd.recording.events import Structured
from gerd.recording.recording import Recording
from gerd.scene import philox
from gerd.storage.recordings import Recordings

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Member:
    """What the sweep says of a recording."""

    member: int  # its number in the family
    config: Config  # with the swept values of this member

    @property
    def labels(self) -> Mapping[str, PlainData]:
        """The swept values by their path."""
        return self.config.origin.labels


M = TypeVar("M", bound=Member)


@dataclass(frozen=True, eq=False)
class Header(Member):
    """What is known of a recording without its events. Quantities that were drawn are read when asked for."""

    index: int
    data: Recordings

    @property
    def truth(self) -> NDArray[np.float64]:
        return self._bare.truth

    @property
    def parameters(self) -> Structured:
        """(steps, actors) with the fields x, y, scale_x, scale_y, rotation, shear."""
        return self._bare.parameters

    @property
    def parameters_velocity(self) -> Structured:
        return self._bare.parameters_velocity

    @property
    def parameters_acceleration(self) -> Structured:
        return self._bare.parameters_acceleration

    @property
    def intensity(self) -> NDArray[np.float64]:
        """(actors,)"""
        return self._bare.intensities

    @property
    def shapes(self) -> list[str | None]:
        """The name of each actor's shape, None for one that is absent."""
        return self._bare.shapes

    @cached_property
    def _bare(self) -> Recording:
        """The recording without its events."""
        manifest = self.data.manifest
        truth = self.data.truth(self.index * manifest.members + self.member)
        return Recording.of(self.config, self.index, truth, made_by=manifest.gerd_version)


def holds(predicate: Callable[[M], object], candidate: M) -> bool:
    """Whether the predicate is true for the candidate."""
    if not callable(predicate):
        raise GerdError(f"the predicate is {shorten(predicate)}; allowed: a function of a recording, such as a lambda")
    answer: Any = predicate(candidate)
    if np.ndim(answer):
        shape = np.shape(answer)
        raise GerdError(f"the predicate gave an array of shape {shape}; allowed: one yes or no: use .any() or .all()")
    return bool(answer)


def shares(units: Rows, fractions: Sequence[float], seed: int) -> list[Rows]:
    """The units dealt out by chance, as many to each part as its fraction says; the fractions add up to 1."""
    numbers = all(isinstance(part, int | float) and part > 0 for part in fractions)
    if not fractions or not numbers or abs(sum(fractions) - 1) > 1e-9:
        allowed = "numbers above 0 that add up to 1, such as 0.7, 0.15, 0.15"
        raise GerdError(f"fractions {tuple(fractions)}: allowed: {allowed}")
    high, low, *_ = philox.words(seed, units & 0xFFFFFFFF, units >> 32, 0, philox.SPLIT)
    dealt = units[np.lexsort([units, low, high])]
    bounds = np.rint(np.cumsum(fractions) * len(units)).astype(np.int64)
    parts = np.split(dealt, bounds[:-1])
    for fraction, part in zip(fractions, parts, strict=True):
        if not len(part):
            raise GerdError(f"fraction {fraction:g}: is less than one of {len(units)} recordings (or families)")
    return parts


def drawn_windows(counts: Rows, seed: int, epoch: int) -> tuple[Rows, Rows]:
    """For each recording with `counts` windows one of them, and an order of the recordings; new in each epoch."""
    high, low, third, _ = philox.words(seed, np.arange(len(counts)), epoch, 0, philox.WINDOW)
    window = (third * counts.astype(np.uint64)) >> np.uint64(32)
    return window.astype(np.int64), np.lexsort([low, high])

"""The draws of one actor: a value as written in the config in, numbers for a batch of recordings out.

Each quantity has a slot of its own in the random counter, so that changing, adding or removing one draw leaves all
others as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import MOST_ACTORS
from gerd.geometry.parameters import SCALE_X
from gerd.plan.values import Choice, Normal, Pair, PairChoice, Size, Uniform, Value
from gerd.scene import philox

Array = NDArray[np.float64]

USES = 3
LOOKS, START, VELOCITY = range(USES)  # what a draw is for
SLOTS = 8  # of each use, one for each parameter; two are free
INTENSITY, SHAPE, REPEAT = range(3)  # the parameters of LOOKS


@dataclass(frozen=True)
class ActorDraws:
    """All that chance decides of one actor, for a batch of recordings."""

    seed: int
    rows: NDArray[np.int64]  # recording indices
    actor: int  # its entry in the config
    copy: int = 0  # which it is of the actors of that entry

    @property
    def _number(self) -> int:
        """The actor's own number, whatever other entries there are, and however often they are repeated."""
        return self.actor + MOST_ACTORS * self.copy

    def shape(self, count: int) -> NDArray[np.int64]:
        """(rows,): which of so many shapes the actor has, drawn once per recording."""
        return _picked(self._words(LOOKS, SHAPE), count) if count > 1 else np.zeros(self.rows.shape, np.int64)

    def is_there(self, repeat: tuple[int, ...]) -> NDArray[np.bool_]:
        """(rows,): whether the number of actors that is drawn for the entry includes this one."""
        if len(repeat) == 1:
            return np.full(self.rows.shape, self.copy < repeat[0])
        drawn = _picked(replace(self, copy=0)._words(LOOKS, REPEAT), len(repeat))
        return self.copy < np.array(repeat)[drawn]

    def sample(self, value: Value, use: int, parameter: int = 0) -> Array:
        """(rows,) numbers, drawn once per recording."""
        return _sampled(value, lambda: self._words(use, parameter), self.rows.shape)

    def pair(self, value: Pair, use: int, parameter: int) -> Array:
        """(rows, 2) numbers: each axis drawn by itself, unless the value lists whole pairs."""
        if isinstance(value, PairChoice):
            return np.array(value.options)[_picked(self._words(use, parameter), len(value.options))]
        words = cache(partial(self._words, use, np.array([[parameter], [parameter + 1]])))  # of both at once

        def of_axis(i: int) -> philox.Words:
            a, b, c, d = words()
            return a[i], b[i], c[i], d[i]

        result = np.empty((*self.rows.shape, 2))
        for i in range(2):
            result[:, i] = _sampled(value[i], partial(of_axis, i), self.rows.shape)
        return result

    def size(self, value: Size, use: int) -> Array:
        """(rows, 2) numbers, equal for both sides unless they are given as a pair."""
        if isinstance(value, tuple | PairChoice):
            return self.pair(value, use, SCALE_X)
        return np.repeat(self.sample(value, use, SCALE_X)[:, None], 2, axis=1)

    def each_step(self, value: Value, parameter: int, steps: NDArray[np.int64]) -> Array:
        """(rows, steps) numbers, drawn anew for each step."""
        element = self._number * SLOTS + parameter

        def draw() -> philox.Words:
            return philox.words(self.seed, element, steps, self.rows[:, None], philox.ACCELERATION)

        return _sampled(value, draw, (len(self.rows), len(steps)))

    def _words(self, use: int, parameter: int | NDArray[np.int64]) -> philox.Words:
        slot = (self._number * USES + use) * SLOTS + parameter
        return philox.words(self.seed, slot, 0, self.rows, philox.SCENE)


def _sampled(value: Value, draw: Callable[[], philox.Words], shape: tuple[int, ...]) -> Array:
    """Numbers of this shape; the random words are drawn only if the value depends on them."""
    match value:
        case Uniform(low, high):
            drawn = draw()
            return low + (high - low) * philox.unit(drawn[0], drawn[1])
        case Normal(mean, deviation):
            return mean + deviation * philox.gaussian(draw())
        case Choice(options):
            return np.array(options)[_picked(draw(), len(options))]
    return np.full(shape, value)


def _picked(drawn: philox.Words, count: int) -> NDArray[np.int64]:
    return np.floor(philox.unit(drawn[0], drawn[1]) * count).astype(np.int64)

"""The draws of one actor: a value as written in the config in, numbers for a batch of recordings out.

Each quantity has a slot of its own in the random counter, so that changing, adding or removing one draw leaves all
others as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

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
AT_ONCE = 2**14  # numbers that are worked out together, so that they stay in the processor's cache


class SceneWords:
    """The random words behind the scenes of a batch, drawn together as far as it is known which of them are needed."""

    def __init__(self, seed: int, rows: NDArray[np.int64], slots: dict[int, None]):
        """`slots` are those that scenes of the same plan have needed before; others are added when they are."""
        self._seed, self._rows, self._slots = seed, rows, slots
        self._drawn: dict[int, philox.Words] = {}
        known = list(slots)
        together = max(1, AT_ONCE // max(1, len(rows)))
        for first in range(0, len(known), together):
            some = known[first : first + together]
            a, b, c, d = philox.words(seed, np.array(some)[:, None], 0, rows, philox.SCENE)
            self._drawn.update((slot, (a[i], b[i], c[i], d[i])) for i, slot in enumerate(some))

    def of(self, slot: int) -> philox.Words:
        """Four words for each recording."""
        if slot not in self._drawn:
            self._drawn[slot] = philox.words(self._seed, slot, 0, self._rows, philox.SCENE)
            self._slots[slot] = None
        return self._drawn[slot]


@dataclass(frozen=True)
class ActorDraws:
    """All that chance decides of one actor, for a batch of recordings."""

    seed: int
    rows: NDArray[np.int64]  # recording indices
    actor: int  # its entry in the config
    copy: int = 0  # which it is of the actors of that entry
    words: SceneWords | None = None  # of the batch; None: of this actor alone

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
        result = np.empty((*self.rows.shape, 2))
        for i in range(2):
            result[:, i] = self.sample(value[i], use, parameter + i)
        return result

    def size(self, value: Size, use: int) -> Array:
        """(rows, 2) numbers, equal for both sides unless they are given as a pair."""
        if isinstance(value, tuple | PairChoice):
            return self.pair(value, use, SCALE_X)
        return np.repeat(self.sample(value, use, SCALE_X)[:, None], 2, axis=1)

    def each_step(self, value: Value, parameter: int, steps: NDArray[np.int64]) -> Array:
        """(rows, steps) numbers, drawn anew for each step."""

        def draw() -> philox.Words:
            return philox.words(self.seed, self.element(parameter), steps, self.rows[:, None], philox.ACCELERATION)

        return _sampled(value, draw, (len(self.rows), len(steps)))

    def element(self, parameter: int) -> int:
        """What the random words of each step of a parameter are drawn for."""
        return self._number * SLOTS + parameter

    def _words(self, use: int, parameter: int) -> philox.Words:
        slot = (self._number * USES + use) * SLOTS + parameter
        return (self.words or SceneWords(self.seed, self.rows, {})).of(slot)


def normal_each_step(
    values: Sequence[Normal], seed: int, elements: Sequence[int], rows: NDArray[np.int64], steps: NDArray[np.int64]
) -> Iterator[tuple[slice, slice, Array]]:
    """What `ActorDraws.each_step` gives for several Gaussian values, each with its element, worked out together.

    In pieces: which rows, which steps, and the numbers (rows, values, steps).
    """
    mean, deviation = (np.array([getattr(value, name) for value in values])[:, None] for name in ("mean", "deviation"))
    numbers = np.array(elements)[:, None]
    long = max(1, AT_ONCE // len(values))
    wide = max(1, long // max(1, len(steps)))
    for first in range(0, len(rows), wide):
        for begin in range(0, len(steps), long):
            some, part = slice(first, first + wide), slice(begin, begin + long)
            words = philox.words(seed, numbers, steps[part], rows[some, None, None], philox.ACCELERATION)
            yield some, part, mean + deviation * philox.gaussian(words)


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

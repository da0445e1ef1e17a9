"""Two networks at each amount of a transformation, trained from the same seeds and tested on the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gerd.measures.curves import Curve
from gerd.measures.statistics import Effect, effect_size

Array = NDArray[np.float64]

LARGE = 0.8  # Cohen's d from which an effect is called large


@dataclass(frozen=True)
class Comparison:
    """One network against a reference at one amount."""

    amount: float
    ours: Array  # (seeds, recordings): errors
    theirs: Array  # those of the reference
    effects: tuple[Effect, ...]  # for each seed, how much smaller our errors are
    at_chance: bool = False  # whether both are, in any seed: then neither is better

    @property
    def p(self) -> float | None:
        """The largest p of the seeds; none where they do not agree on which network is better."""
        signs = {np.sign(effect.difference) for effect in self.effects}
        return max(effect.p for effect in self.effects) if len(signs) == 1 else None

    @property
    def better(self) -> bool:
        """Whether the difference is surely positive for every seed, and one of them has learnt anything."""
        return not self.at_chance and all(effect.difference_interval[0] > 0 for effect in self.effects)

    @property
    def worse(self) -> bool:
        return not self.at_chance and all(effect.difference_interval[1] < 0 for effect in self.effects)

    @property
    def large(self) -> bool:
        """Whether d is large for every seed, and one of the two networks has learnt anything."""
        return not self.at_chance and all(effect.d > LARGE for effect in self.effects)


def each_seed(curve: Curve) -> list[Curve]:
    """A curve whose errors are (seeds, recordings), as one for each seed."""
    return [replace(curve, errors=errors) for errors in zip(*curve.errors, strict=True)]


def at_chance(curve: Curve) -> set[float]:
    """The amounts at which the network of any seed is at chance."""
    return {amount for each in each_seed(curve) for amount in each.at_chance()}


def compared(theirs: Curve, ours: Curve) -> list[Comparison]:
    """Amount by amount; each error of a curve is (seeds, recordings)."""
    neither = at_chance(theirs) & at_chance(ours)
    return [
        Comparison(
            amount, our, their, tuple(effect_size(a, b) for a, b in zip(their, our, strict=True)), amount in neither
        )
        for amount, their, our in zip(ours.amounts, theirs.errors, ours.errors, strict=True)
    ]


def surely(comparisons: Sequence[Comparison]) -> str:
    """At how many amounts a network is better or worse than the reference."""
    better = sum(each.better for each in comparisons)
    worse = sum(each.worse for each in comparisons)
    lost = sum(each.at_chance for each in comparisons)
    neither = f", both at chance at {lost}," if lost else ""
    return f"surely better at {better} and surely worse at {worse}{neither} of {len(comparisons)}"

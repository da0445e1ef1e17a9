"""What follows from the numbers: which effect breaks which symmetry, and what it does to the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gerd.measures.curves import Array
from gerd.measures.statistics import LEAST, Estimate, estimate
from gerd.studies.camera.effects import EFFECTS, ELEMENTS, IDEAL, Element
from gerd.studies.camera.trials import EVENTS, NETWORK, SPEEDS, SWEEPS
from gerd.studies.lab.results import Results, SweepResult

LEAST_EVENTS = 50  # of a pair of recordings: fewer say little about an effect
SHARE = 0.001  # of the events without a counterpart, up to which a symmetry is kept
DISTANCE = 0.05  # pixels by which events may be farther apart than those of the ideal camera
Verdict = Literal["kept", "broken", "undecided", "too few"]


@dataclass(frozen=True)
class Cell:
    """One effect under one transformation."""

    effect: str
    element: Element
    number: Estimate  # the share without a counterpart, or how much farther apart events are than without the effect
    events: float  # the mean number that was compared
    verdict: Verdict


def cells(results: Results) -> dict[str, list[Cell]]:
    """For each effect a cell for each transformation."""
    tests = {test.sweep: test for test in results.of(EVENTS)[0].tests}
    return {effect.name: [_cell(tests[effect.name], column) for column in range(len(ELEMENTS))] for effect in EFFECTS}


def _cell(test: SweepResult, column: int) -> Cell:
    element = ELEMENTS[column]
    values, bound = (test.alone, SHARE) if element.on_grid else (test.errors, DISTANCE)
    number = _mean(np.array(values[column]))
    counts = np.array(test.events[column])
    low, high = number.interval
    verdict: Verdict = "kept" if high <= bound else "broken" if low > bound else "undecided"
    if number.count < LEAST or counts.min() < LEAST_EVENTS:
        verdict = "too few"
    return Cell(test.sweep, element, number, float(counts.mean()), verdict)


def _mean(values: Array) -> Estimate:
    return estimate(lambda rows: values[rows].mean(axis=-1), len(values))


def by_verdict(table: dict[str, list[Cell]], element: Element, verdict: Verdict) -> list[str]:
    """The effects that have a verdict under a transformation, the ideal camera left out."""
    return [
        name
        for name, row in table.items()
        for cell in row
        if name != IDEAL and cell.element == element and cell.verdict == verdict
    ]


def growth(results: Results, effect: str) -> list[Estimate]:
    """At each speed, by how many pixels the effect makes the network's error grow, in the median; over all seeds."""
    sweeps = {sweep.name: sweep for sweep in SWEEPS}
    with_effect, without = (results.curve(NETWORK, sweeps[name]) for name in (effect, IDEAL))
    return [
        _median(some - others)  # (seeds, recordings), of the same recordings
        for some, others in zip(with_effect.errors, without.errors, strict=True)
    ]


def _median(table: Array) -> Estimate:
    return estimate(lambda rows: np.median(np.moveaxis(table[:, rows], 0, -1), axis=(-1, -2)), table.shape[1])


def worst(results: Results) -> tuple[str, float, Estimate]:
    """The effect, and the speed, at which the network's error grows most."""
    found = [
        (effect.name, speed, each)
        for effect in EFFECTS
        if effect.name != IDEAL
        for speed, each in zip(SPEEDS, growth(results, effect.name), strict=True)
    ]
    return max(found, key=lambda each: each[2].value)

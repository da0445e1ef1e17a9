"""What can be had without looking: truths in, the errors of the best answer that is the same for every recording out.

Two questions are told apart. Is a model's error surely below that of the best answer that looks at nothing
(`surely_below`)? And do its answers vary with the truth at all (`chance_of_dependence`), however far they are from it?
Each says so of a model that has learnt nothing with a probability of FALSE_ALARM at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gerd.measures.statistics import MOST, RESAMPLES, TAILS, bootstrap

Array = NDArray[np.float64]

FALSE_ALARM = TAILS[0]  # the lower end of a 95 % interval is too high with this probability
ROUNDS = 300  # of the search for the best answer, at most
CLOSE = 1e-4  # of the typical distance: where that search ends, and how near to a truth all are as near


def best_answer(truth: Array, weights: Array | None = None) -> Array:
    """The answer with the smallest mean distance from the truths of all recordings: of each step and actor by itself.

    truth: (recordings, …, 2), not a number where there is none; the answer has no recordings. It is the geometric
    median, found by Weiszfeld's iteration: means in which each truth weighs one over its distance.
    weights: (recordings, …), by how much each distance counts; default: all the same.
    """
    known = np.isfinite(truth.sum(axis=-1))
    points = np.where(known[..., None], truth, 0.0)
    counts = known * (1.0 if weights is None else weights)
    best = _mean(points, counts)
    typical = float(_distances(points, best).mean(where=known))
    if typical == 0.0:
        return best
    tiny = CLOSE * typical
    for _ in range(ROUNDS):
        moved = _mean(points, counts / np.maximum(_distances(points, best), tiny))
        shift = float(_distances(moved, best).max())
        best = moved
        if shift <= tiny:
            break
    return best


def _mean(points: Array, weights: Array) -> Array:
    total = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    result: Array = (weights[..., None] * points).sum(axis=0) / total[..., None]
    return result


def _distances(a: Array, b: Array) -> Array:
    result: Array = np.linalg.norm(a - b, axis=-1)
    return result


def chance_of(truth: Array) -> Array:
    """(recordings,): the mean distances of the best answer that is the same for every recording; see `best_answer`."""
    away = _distances(truth, best_answer(truth)).reshape(len(truth), -1)
    result: Array = np.nanmean(away, axis=1)
    return result


def surely_below(errors: Array, chance: Array, margin: float = 0.0) -> bool:
    """Whether the mean error is below the mean of `chance` by more than `margin`, up to the end of its 95 % interval.

    errors: (recordings,) or (trainings, recordings); chance: of the same recordings, as `chance_of` gives them. No
    answer that is the same for all recordings has a smaller mean error than `chance`, so that none is ever below it.
    """
    gained = chance - np.atleast_2d(errors).mean(axis=0)
    return bootstrap(lambda rows: gained[rows].mean(axis=-1), len(gained))[0] > margin


def chance_of_dependence(answers: Array, truth: Array) -> float | None:
    """How likely answers that know nothing of the truth would vary with it as much as these: a permutation test.

    answers, truth: (recordings, numbers) each. What is compared is the sum of all squared covariances between a number
    of the answer and one of the truth, which no offset, turn or mirror image of the answers changes much; with the same
    after the truths were exchanged among the recordings. None where all truths are the same.
    """
    said, known = answers - answers.mean(axis=0), truth - truth.mean(axis=0)
    if not known.any():
        return None
    draws = np.random.default_rng(0)
    at_once = max(1, MOST // (len(known) * known.shape[1]))
    covariance = float(((said.T @ known) ** 2).sum())
    as_large = 0
    for begin in range(0, RESAMPLES, at_once):
        orders = np.argsort(draws.random((min(at_once, RESAMPLES - begin), len(known))), axis=1)
        exchanged = ((said.T @ known[orders]) ** 2).sum(axis=(1, 2))
        as_large += int((exchanged >= covariance * (1 - 1e-9)).sum())
    return (1 + as_large) / (1 + RESAMPLES)

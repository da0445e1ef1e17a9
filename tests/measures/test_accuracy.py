"""Accuracy against the amount of a transformation: classifiers whose right answers can be counted by other means."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from support.scenes import actor, config
from torch import Tensor

import gerd
from gerd import measure
from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.measures.statistics import wilson
from gerd.scene.transformation import rotation, scale

COUNT = 40
BAR = {"polygon": [[-0.5, -0.1], [0.5, -0.1], [0.5, 0.1], [-0.5, 0.1]], "name": "bar"}
SIZES = [scale(s) for s in (0.4, 1.0, 1.5)]


def shapes() -> Config:
    """Squares and bars of the same width that move to the right from the middle of the frame."""
    mixed = {"choice": ["square", BAR]}
    return config({**actor(velocity=[0.8, 0.0], size=12.0), "shape": mixed}, width=48, height=48, steps=8)


def by_its_events(frames: Tensor) -> Tensor:
    """Says square of many events in a recording, and bar of few: right at the size for which the bound was chosen."""
    events = frames.sum(dim=(1, 2, 3, 4))
    return torch.stack([events, torch.full_like(events, 80.0)], dim=1)


def counted_by_hand(size: float) -> np.ndarray:
    """The same from whole recordings of a config with the size written into it."""
    shape = {"choice": ["square", BAR]}
    resized_actor = {**actor(velocity=[0.8 * size, 0.0], size=12.0 * size), "shape": shape}
    resized = config(resized_actor, width=48, height=48, steps=8)
    result = np.zeros((2, 2), int)
    for index in range(COUNT):
        recording = gerd.simulate(resized, index)
        square = recording.shapes == ["square"]
        frames = int(recording.frames().sum())
        result[0 if square else 1, 0 if frames >= 80 else 1] += 1
    return result


def test_right_answers_are_counted_at_each_amount() -> None:
    """A shape that is scaled about the middle, where it starts, is one of another size and speed."""
    curve = measure.accuracy_curve(by_its_events, shapes(), SIZES, count=COUNT)
    assert curve.classes == ("square", "bar")
    assert curve.amounts == (0.4, 1.0, 1.5)
    assert curve.trained == 1.0
    for size, found in zip(curve.amounts, curve.accuracies, strict=True):
        assert np.array_equal(found.confusion, counted_by_hand(size))
        assert found.count == COUNT
    small, usual, _ = curve.accuracies
    assert usual.share == 1.0
    assert small.share == small.confusion[1].sum() / COUNT  # all are taken for bars
    assert curve.worst is small
    assert curve.at_chance() == (0.4,)
    assert str(usual).startswith("1: 40 of 40 right, 100.0% (95 % interval 91.2% to 100.0%; chance ")
    assert "at chance" in str(small)


@pytest.mark.parametrize("answer", [0, 1])
def test_a_constant_answer_is_at_chance(answer: int) -> None:
    def constant(frames: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(torch.full((len(frames),), answer), 2)

    curve = measure.accuracy_curve(constant, shapes(), [rotation(0), rotation(90)], count=COUNT)
    names = [gerd.simulate(shapes(), index).shapes[0] for index in range(COUNT)]
    for found in curve.accuracies:
        assert found.right == names.count(curve.classes[answer])
        assert found.chance == max(names.count("square"), names.count("bar")) / COUNT
    assert curve.at_chance() == (0, 90)


def test_scores_of_steps_are_averaged_from_the_first_that_counts() -> None:
    def late(frames: Tensor) -> Tensor:
        """Says bar of everything with great confidence until step 4, and then the truth."""
        scores = by_its_events(frames)[:, None].repeat(1, frames.shape[1], 1)
        scores[:, :4, 1] = 1e6
        return scores

    before = measure.accuracy_curve(late, shapes(), [scale(1)], count=COUNT).accuracies[0]
    after = measure.accuracy_curve(late, shapes(), [scale(1)], count=COUNT, first_step=4).accuracies[0]
    assert before.confusion[:, 0].sum() == 0
    assert after.share == 1.0


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (3, 7), (7, 7), (1, 1), (499, 1000)])
def test_the_interval_is_wilson_s(hits: int, count: int) -> None:
    wanted = scipy.stats.binomtest(hits, count).proportion_ci(method="wilson")
    assert wilson(hits, count) == pytest.approx((wanted.low, wanted.high))


def test_mistakes_are_explained() -> None:
    def three(frames: Tensor) -> Tensor:
        return torch.zeros(len(frames), 3)

    with pytest.raises(GerdError, match=r"\(16, 2\), a score for each class of square, bar, or \(16, 8, 2\)"):
        measure.accuracy_curve(three, shapes(), SIZES)
    with pytest.raises(GerdError, match="transformations of the same kind"):
        measure.accuracy_curve(by_its_events, shapes(), [scale(1), rotation(3)])
    with pytest.raises(GerdError, match="transformations of the same kind"):
        measure.accuracy_curve(by_its_events, shapes(), [])
    with pytest.raises(GerdError, match="every recording has exactly one actor"):
        measure.accuracy_curve(by_its_events, config(actor(), actor()), SIZES)
    maybe = config({**actor(), "repeat": {"choice": [0, 1]}})
    with pytest.raises(GerdError, match="every recording has exactly one actor"):
        measure.accuracy_curve(lambda frames: torch.zeros(len(frames), 1), maybe, SIZES)
    with pytest.raises(GerdError, match="first_step 8: allowed: a whole number from 0 to 7"):
        measure.accuracy_curve(by_its_events, shapes(), SIZES, first_step=8)
    with pytest.raises(GerdError, match="3 of 2: allowed"):
        wilson(3, 2)

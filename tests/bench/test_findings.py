"""From errors to the numbers of the benchmark, against numbers from pencil and paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gerd import transformation
from gerd.bench.findings import Outcome, factor_result, transformation_error
from gerd.bench.results import BOUND
from gerd.bench.split_table import split
from gerd.bench.symmetry import act_on_motions
from gerd.geometry.parameters import derivatives, matrix
from gerd.plan.make import plan_of
from gerd.scene.draw import draw

CHANCE = np.full(100, 8.0)


def outcome(*means: float, chance: float = 8.0) -> Outcome:
    """Errors of seeds that scatter by a tenth around their means."""
    scatter = np.random.default_rng(round(1000 * sum(means))).normal(0, 0.1, (len(means), 100))
    return Outcome.of(np.array(means)[:, None] * (1 + scatter - scatter.mean(1, keepdims=True)), np.full(100, chance))


def found(amounts: dict[float, Outcome]) -> Any:
    return factor_result("scale", "", 1.0, (1.0,), amounts)


def test_the_numbers_are_means_of_seeds_and_recordings() -> None:
    result = found({0.5: outcome(2, 4), 1.0: outcome(1, 1), 2.0: outcome(1, 2)})
    assert [each.value for each in result.errors] == pytest.approx([3, 1, 1.5], abs=1e-5)
    of_seeds = [[each.value for each in seed] for seed in result.of_seeds]
    np.testing.assert_allclose(of_seeds, [[2, 1, 1], [4, 1, 2]], atol=1e-5)
    assert result.ratio.value == pytest.approx(3, abs=1e-4)
    low, high = result.ratio.interval
    assert 2.8 < low < 3 < high < 3.2
    assert [each.count for each in result.errors] == [100, 100, 100]
    assert result.chance == (8.0, 8.0, 8.0)


def test_verdicts() -> None:
    flat, at_chance = outcome(1, 1), outcome(1, 7.9)
    assert found({1.0: flat, 2.0: outcome(1.2, 1.2)}).verdict == "invariant"
    assert found({1.0: flat, 2.0: outcome(BOUND, BOUND)}).verdict == "undecided"
    assert found({1.0: flat, 2.0: outcome(2, 2)}).verdict == "not invariant"
    lost = found({1.0: at_chance, 2.0: outcome(1, 1)})
    assert (lost.verdict, lost.at_chance) == ("at chance", (1.0,))  # one seed is enough
    # What has learnt something and fails elsewhere is not invariant, and is said to be at chance there.
    far = found({1.0: flat, 2.0: outcome(8, 8)})
    assert (far.verdict, far.at_chance) == ("not invariant", (2.0,))
    # A flat error where chance is as low says nothing.
    near = found({1.0: flat, 2.0: outcome(1, 1, chance=1.1)})
    assert (near.verdict, near.at_chance) == ("at chance", (2.0,))


def test_recordings_in_which_nothing_counts_are_left_out() -> None:
    errors, chance = np.ones((2, 100)), np.full(100, 8.0)
    errors[:, 7] = chance[7] = math.nan
    result = found({1.0: Outcome.of(errors, chance), 2.0: outcome(1, 1)})
    assert [each.count for each in result.errors] == [99, 100]


def test_the_mean_transformation_error_is_one_for_the_reference_itself() -> None:
    reference = {"scale": {0.5: 2.0, 1.0: 1.0}, "rotation": {0.0: 1.0, 90.0: 4.0}}
    same = {factor: {a: outcome(e, e) for a, e in each.items()} for factor, each in reference.items()}
    assert transformation_error(same, reference).value == pytest.approx(1, abs=1e-5)
    half = {"scale": {0.5: outcome(1, 1), 1.0: outcome(0.5, 0.5)}, "rotation": same["rotation"]}
    number = transformation_error(half, reference)
    assert number.value == pytest.approx((0.5 + 1) / 2, abs=1e-5)
    assert number.interval[0] < 0.75 < number.interval[1]


@pytest.mark.parametrize(
    "g",
    [
        transformation.translation(3, -2),
        transformation.rotation(25),
        transformation.scale(1.3),
        transformation.shear(0.2),
        transformation.velocity(0.3, -0.1, epoch=20),
        transformation.acceleration(0.02, epoch=20),
        transformation.time_scale(0.5),
    ],
    ids=str,
)
def test_motions_are_taken_where_those_of_the_transformed_scene_are(g: transformation.Transformation) -> None:
    """ρ(g) of the true T and T′ of a scene is the true T and T′ of the scene after g."""
    scenes = draw(plan_of(split("transform", "test").config), range(3))
    steps = np.arange(scenes.steps)

    def motions(of: Any) -> torch.Tensor:
        truth = of.truth(steps)[:, :, 0]
        return torch.from_numpy(np.stack([matrix(truth), derivatives(truth)[0]], axis=2)[..., :2, :])

    expected, acted = motions(g(scenes)), act_on_motions(g, motions(scenes), (scenes.width, scenes.height))
    known = torch.isfinite(acted)
    assert known.float().mean() > 0.4
    if g.time_scale == 1:
        torch.testing.assert_close(acted[known], expected[known], atol=1e-9, rtol=1e-9)
    else:  # steps fall between others, and T is interpolated there, which is wrong where the shape turns back
        assert torch.isclose(acted[known], expected[known], atol=0.02, rtol=0.02).double().mean() > 0.99

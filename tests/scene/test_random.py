"""Randomness against published vectors and distributions, and elementary functions against arbitrary precision.

Each statistical test may fail with a probability of `FALSE_ALARM` if the program is right; its seed is fixed.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from support import oracle
from support.scenes import FALSE_ALARM, actor, config, drawn

import gerd
from gerd.config.sweep import with_values
from gerd.geometry import exactmath
from gerd.geometry.parameters import ROTATION, SCALE_X, SHEAR, X
from gerd.plan.make import plan_of
from gerd.plan.values import Choice, Normal, PairChoice, Uniform
from gerd.scene import philox
from gerd.scene.draw import draw
from gerd.scene.sampling import START, VELOCITY, ActorDraws, normal_each_step
from gerd.scene.scenes import Scenes

ONES = 2**32 - 1
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
KNOWN = [  # counter, key, words: the test vectors of Random123 for philox4x32-10
    ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (PI, (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


# Philox


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]) -> None:
    assert oracle.philox(counter, key) == expected
    assert tuple(int(word) for word in philox.words(key[0] + (key[1] << 32), *counter)) == expected


@given(st.integers(0, 2**64 - 1), *[st.integers(0, ONES)] * 3, st.integers(0, 6 + 9 * 256))
def test_words_are_philox(seed: int, element: int, step: int, index: int, purpose: int) -> None:
    expected = oracle.philox((element, step, index, purpose), (seed % 2**32, seed >> 32))
    assert tuple(int(word) for word in philox.words(seed, element, step, index, purpose)) == expected


def test_words_broadcast_and_take_negative_steps() -> None:
    steps, indices = np.array([-3, 0, 7]), np.array([[5], [6]])
    drawn = np.stack(philox.words(9, 2, steps, indices, philox.SHAPE))
    assert drawn.shape == (4, 2, 3)
    for i, index in enumerate((5, 6)):
        for j, step in enumerate((2**32 - 3, 0, 7)):
            assert tuple(drawn[:, i, j].tolist()) == oracle.philox((2, step, index, philox.SHAPE), (9, 0))


def test_purposes_are_those_of_the_noises() -> None:
    expected = (oracle.INITIAL, oracle.SHAPE, oracle.EVENT, oracle.BACKGROUND)
    assert expected == (philox.INITIAL, philox.SHAPE, philox.EVENT, philox.BACKGROUND)
    assert len({philox.SCENE, philox.ACCELERATION, *expected}) == 6


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [(0, 0, 0.0), (ONES, ONES, 1 - 2**-53), (2**31, 0, 0.5), (0, 2**6, 2**-53), (2**5, 0, 2**-27), (31, 63, 0.0)],
)
def test_unit_numbers(high: int, low: int, expected: float) -> None:
    assert philox.unit(np.array(high, np.uint64), np.array(low, np.uint64)) == expected


def test_a_gaussian_number_is_finite_for_any_words() -> None:
    ends = [np.array(word, np.uint64) for word in (0, ONES)]
    numbers = [philox.gaussian((a, a, b, b)) for a in ends for b in ends]
    assert np.isfinite(numbers).all()
    assert max(np.abs(numbers)) == pytest.approx(math.sqrt(106 * math.log(2)))  # 2⁻⁵³ in the tail


# Elementary functions


@given(st.floats(-10, 10))
@example(math.pi / 4)
@example(-3 * math.pi / 4)
@example(1e-300)
def test_sine_and_cosine(angle: float) -> None:
    sine, cosine = exactmath.sincos(angle)
    assert abs(float(mpmath.sin(mpmath.mpf(angle)) - mpmath.mpf(float(sine)))) < 2e-15
    assert abs(float(mpmath.cos(mpmath.mpf(angle)) - mpmath.mpf(float(cosine)))) < 2e-15


@given(st.integers(-(10**6), 10**6))
def test_multiples_of_a_right_angle_are_exact(quarters: int) -> None:
    sine, cosine = exactmath.sincos(exactmath.radians(90.0 * quarters))
    expected = [(0, 1), (1, 0), (0, -1), (-1, 0)][quarters % 4]
    assert (float(sine), float(cosine)) == expected


@given(st.floats(-1e5, 1e5))
def test_many_turns_keep_the_angle(degrees: float) -> None:
    """The error of a rotation is that of the angle's last bit, not one that grows with π's missing digits."""
    sine, cosine = exactmath.sincos(exactmath.radians(degrees))
    exact = mpmath.mpf(degrees) * mpmath.mp.pi / 180
    bound = 2e-15 + 3 * 2**-53 * abs(math.radians(degrees))
    assert abs(float(mpmath.sin(exact) - mpmath.mpf(float(sine)))) < bound
    assert abs(float(mpmath.cos(exact) - mpmath.mpf(float(cosine)))) < bound


@given(st.floats(-700, 700))
def test_exponential(x: float) -> None:
    exact = mpmath.exp(mpmath.mpf(x))
    assert abs(float((mpmath.mpf(float(exactmath.exp(x))) - exact) / exact)) < 2e-15


@given(st.floats(1e-300, 1e300))
@example(1 + 2**-52)
@example(1 - 2**-53)
@example(math.sqrt(0.5))
@example(5e-324)
def test_logarithm(x: float) -> None:
    exact = mpmath.log(mpmath.mpf(x))
    assert (
        abs(float((mpmath.mpf(float(exactmath.log(x))) - exact) / exact)) < 2e-15 if x != 1 else exactmath.log(x) == 0
    )


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
@example(1.0, math.sqrt(2) - 1)
@example(-1e-300, 1e300)
@example(-3.0, -3.0)
def test_angle(x: float, y: float) -> None:
    exact = mpmath.atan2(mpmath.mpf(y), mpmath.mpf(x)) if x or y else 0
    assert abs(float(exactmath.angle(x, y)) - exact) < 2e-15


def test_angles_along_the_axes_are_exact() -> None:
    found = exactmath.angle([1, 0, -1, 0, 0], [0, 1, 0, -1, 0])
    assert found.tolist() == [0, exactmath.HALF_PI, 2 * exactmath.HALF_PI, -exactmath.HALF_PI, 0]


def test_ends_of_the_range() -> None:
    with np.errstate(all="raise"):
        assert exactmath.log([1.0, 0.0, math.inf]).tolist() == [0, -math.inf, math.inf]
        assert np.isnan(exactmath.log([-1.0, math.nan])).all()
        assert exactmath.exp([0.0, -math.inf, -1e9, math.inf, 800.0]).tolist() == [1, 0, 0, math.inf, math.inf]
        assert exactmath.exp(709.7) == pytest.approx(math.exp(709.7), rel=2e-15)
        assert exactmath.exp(-744.0) == math.exp(-744.0)
        assert np.isnan(exactmath.exp(math.nan))


# Draws

ROWS = np.arange(100_000)
SOURCE = ActorDraws(seed=5, rows=ROWS, actor=1)


@pytest.mark.parametrize(
    ("value", "law"),
    [
        (Uniform(-3.0, 5.0), stats.uniform(-3, 8)),
        (Normal(2.0, 0.5), stats.norm(2, 0.5)),
    ],
)
@pytest.mark.parametrize("slot", [(START, X), (START, SHEAR), (VELOCITY, ROTATION)])
def test_continuous_draws_follow_their_law(value: Any, law: Any, slot: tuple[int, int]) -> None:
    assert stats.kstest(SOURCE.sample(value, *slot), law.cdf).pvalue > FALSE_ALARM
    each_step = ActorDraws(5, ROWS[:10_000], 1).each_step(value, slot[1], np.arange(-5, 5))
    assert each_step.shape == (10_000, 10)
    assert stats.kstest(each_step.ravel(), law.cdf).pvalue > FALSE_ALARM


def test_the_moments_of_a_gaussian() -> None:
    """Mean, spread, and the tails: a third of a thousandth lies beyond 3.6 standard deviations."""
    z = (SOURCE.sample(Normal(2.0, 0.5), START, X) - 2.0) / 0.5
    count = len(z)
    assert abs(z.mean()) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(count)
    assert stats.chi2.ppf(FALSE_ALARM / 2, count) < (z**2).sum() < stats.chi2.isf(FALSE_ALARM / 2, count)
    assert stats.binomtest(int((np.abs(z) > 3.6).sum()), count, 2 * stats.norm.sf(3.6)).pvalue > FALSE_ALARM


def test_choices_are_equally_likely() -> None:
    drawn = SOURCE.sample(Choice((1.0, 2.0, 5.0, 5.5, -1.0)), START, X)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [-1, 1, 2, 5, 5.5]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    pairs = SOURCE.pair(PairChoice(((1.0, 1.0), (1.0, -1.0), (-2.0, 3.0))), VELOCITY, X)
    values, counts = np.unique(pairs, axis=0, return_counts=True)
    assert values.tolist() == [[-2, 3], [1, -1], [1, 1]]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_draws_of_different_quantities_are_independent() -> None:
    """Every pair of quantities, actors, steps, seeds and recordings: correlations within the Gaussian bound."""
    value, rows = Uniform(0.0, 1.0), ROWS[:5000]
    columns = []
    for draws in (ActorDraws(5, rows, place) for place in range(4)):
        columns += [draws.sample(value, what, parameter) for what in range(3) for parameter in range(6)]
        columns += [column for i in range(6) for column in draws.each_step(value, i, np.array([-1, 0, 1])).T]
    columns += [ActorDraws(6, rows, 0).sample(value, START, X), ActorDraws(5, rows + 5000, 0).sample(value, START, X)]
    columns += [ActorDraws(5 + 2**32, rows, 0).sample(value, START, X)]
    off_diagonal = np.corrcoef(columns)[np.triu_indices(len(columns), 1)]
    assert len(columns) == 4 * 36 + 3
    assert np.abs(off_diagonal).max() < stats.norm.isf(FALSE_ALARM / 2 / len(off_diagonal)) / math.sqrt(len(rows))


def test_a_fixed_number_is_that_number() -> None:
    assert set(SOURCE.sample(0.1, START).tolist()) == {0.1}
    assert np.unique(SOURCE.size(Uniform(1.0, 2.0), START)[:, 0]).size > 99_000


RANDOM: dict[str, Any] = {
    "intensity": {"uniform": [0.5, 1.5]},
    "translation": {
        "start": {"uniform": [2, 10]},
        "velocity": {"normal": [0, 1]},
        "acceleration": {"normal": [0, 0.1]},
        "border": "free",
    },
    "scale": {"start": {"uniform": [3, 6]}, "velocity": {"uniform": [-0.1, 0.1]}, "acceleration": {"normal": [0, 0.1]}},
    "rotation": {"start": "uniform", "velocity": {"normal": [0, 5]}, "acceleration": {"normal": [0, 1]}},
    "shear": {"start": "uniform", "velocity": {"normal": [0, 0.05]}, "acceleration": {"normal": [0, 0.01]}},
}
CHANGES: dict[str, Any] = {
    "intensity": 0.7,
    "translation.start": [5.0, 6.0],
    "translation.velocity": {"choice": [[1, 1], [1, -1]]},
    "translation.acceleration": {"uniform": [-1, 1]},
    "scale.start": [{"uniform": [3, 6]}, 4.0],
    "scale.velocity": 0.0,
    "scale.acceleration": 0.0,
    "rotation.start": 0.0,
    "rotation.velocity": {"uniform": [0, 1]},
    "rotation.acceleration": {"profile": "sine", "amplitude": 0.1},
    "shear.start": {"choice": [0.1, 0.2]},
    "shear.velocity": 0.1,
    "shear.acceleration": 0.1,
}


def quantities(scenes: Scenes, place: int) -> dict[str, Any]:
    """What was drawn for one actor, by the name of the quantity."""
    path, result = scenes.trajectory, {"intensity": scenes.intensity[:, place]}
    parts = {"translation": slice(0, 2), "scale": slice(SCALE_X, 4), "rotation": ROTATION, "shear": SHEAR}
    assert path.knots is not None
    drawn = {"start": path.start, "velocity": path.velocity, "acceleration": path.knots.acceleration}
    for name, rows in parts.items():
        for field, numbers in drawn.items():
            result[f"{name}.{field}"] = numbers[:, place, rows]
    return result


@pytest.mark.parametrize("changed", list(CHANGES))
def test_changing_one_draw_leaves_all_others(changed: str) -> None:
    made = config(actor(**RANDOM), actor("circle", **RANDOM))
    before = drawn(made, range(4))
    after = drawn(with_values(made, {f"actors.0.{changed}": CHANGES[changed]}), range(4))
    for place in (0, 1):
        old, new = quantities(before, place), quantities(after, place)
        different = {name for name in old if not np.array_equal(old[name], new[name])}
        assert different == ({changed} if place == 0 else set())


def test_adding_an_actor_leaves_the_others() -> None:
    one, two = (drawn(config(*[actor(**RANDOM)] * count), [3]) for count in (1, 2))
    for name, numbers in quantities(one, 0).items():
        np.testing.assert_array_equal(numbers, quantities(two, 0)[name])
    assert quantities(two, 0)["rotation.start"] != quantities(two, 1)["rotation.start"]


def test_no_global_generator_is_read_or_written() -> None:
    made = gerd.load(Path(__file__).parents[2] / "configs" / "outlines.yaml")
    digests = set()
    for seed in (0, 1):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
        digests.add(gerd.simulate(made, backend="torch", steps=3).digest)
        after = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
        assert before == after
    assert len(digests) == 1


@pytest.mark.parametrize(("rows", "steps"), [(9_000, 2), (3, 20_000)])
def test_what_is_drawn_together_is_what_is_drawn_alone(rows: int, steps: int) -> None:
    values, times = [Normal(0.5, 2.0), Normal(-1.0, 0.1), Normal(0.0, 1.0)], np.arange(-5, steps - 5)
    draws = ActorDraws(5, np.arange(rows), 2)
    wanted = [draws.each_step(value, parameter, times) for parameter, value in enumerate(values)]
    elements = [draws.element(parameter) for parameter in range(3)]
    found = np.full((rows, 3, steps), np.nan)
    for some, part, numbers in normal_each_step(values, 5, elements, draws.rows, times):
        assert numbers.nbytes < found.nbytes
        found[some, :, part] = numbers
    assert np.array_equal(found, np.stack(wanted, axis=1))


def test_a_plan_whose_slots_are_known_draws_what_it_drew_before() -> None:
    noisy = {"normal": [0, 0.1]}
    first = actor(velocity={"uniform": [-1, 1]}, size={"normal": [9, 1]}, rotation={"acceleration": noisy})
    plan = plan_of(config(first, actor("circle", at="uniform"), steps=9))
    one, again = (draw(plan, [3, 1]).trajectory for _ in range(2))
    assert np.array_equal(one.start, again.start)
    assert np.array_equal(one.velocity, again.velocity)
    assert len(np.unique(one.start)) > 8

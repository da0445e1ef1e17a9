"""Motion against calculus: matrices, derivatives, time scales, boosts, borders, limits and accelerations."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.scenes import FALSE_ALARM, SHAPES, actor, config, drawn, generic, moving_actors, rings, sent, simulated

import gerd
from gerd.config.config import Config
from gerd.geometry.parameters import PARAMETERS, ROTATION, SCALE_X, SCALE_Y, SHEAR, X, Y, derivatives, matrix
from gerd.geometry.trajectory import Trajectory

LINES = {"translation": X, "scale": SCALE_X, "rotation": ROTATION, "shear": SHEAR}


def motion(given_actor: dict[str, Any], index: int = 0, **fields: Any) -> Trajectory:
    """The trajectory of a scene's only actor."""
    return drawn(config(given_actor, **fields), [index]).trajectory[0, 0]


def moved(part: str, border: str = "free", **given_part: Any) -> dict[str, Any]:
    """A square that moves in one transformation only."""
    start = {"translation": "centre", "scale": 6.0, "rotation": 0.0, "shear": 0.0}[part]
    extra = {"border": border} if part == "translation" else {}
    return actor(**{part: {"start": start, "acceleration": 0.0, **extra, **given_part}})


parameter_rows = st.tuples(
    generic(-20, 40), generic(-20, 40), generic(1, 30), generic(1, 30), generic(-9, 9), generic(-2, 2)
).map(np.array)
paths = moving_actors(16, 12).map(motion)
times = st.lists(generic(-6, 9), min_size=1, max_size=5).map(np.array)


# T and its derivatives


@given(parameter_rows)
def test_T_is_translate_rotate_shear_scale(row: np.ndarray) -> None:
    x, y, a, b, turn, slant = row
    c, s = math.cos(turn), math.sin(turn)
    translate = [[1, 0, x], [0, 1, y], [0, 0, 1]]
    rotate = [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    shear = [[1, slant, 0], [0, 1, 0], [0, 0, 1]]
    expected = np.array(translate) @ rotate @ shear @ np.diag([a, b, 1])
    np.testing.assert_allclose(matrix(np.stack([row, row, row])), expected, rtol=0, atol=1e-12)


@given(paths, times)
def test_derivatives_are_those_of_T(path: Trajectory, t: np.ndarray) -> None:
    """Central differences, away from reflections, wraps and whole times."""
    h = 1e-3
    t = t[np.abs(t - np.rint(t)) > 2 * h]
    before, at, after = (path.parameters(t + shift) for shift in (-h, 0, h))
    smooth = (np.abs(after[:, 1] - before[:, 1]) <= 4 * h * np.abs(at[:, 2]) + 1e-9).all(axis=1)
    smooth &= (np.abs(after[:, 0] - before[:, 0]) < 1).all(axis=1)
    first, second = derivatives(at[smooth])
    low, middle, high = (matrix(values[smooth]) for values in (before, at, after))
    np.testing.assert_allclose(first, (high - low) / (2 * h), rtol=0, atol=1e-4)
    np.testing.assert_allclose(second, (high - 2 * middle + low) / h**2, rtol=0, atol=1e-3)


@given(paths, times)
def test_T_is_made_of_the_parameters(path: Trajectory, t: np.ndarray) -> None:
    np.testing.assert_array_equal(path.T(t), matrix(path.parameters(t)))


@pytest.mark.parametrize("part", list(LINES))
@pytest.mark.parametrize("how", [{"velocity": 0.25}, {"acceleration": 0.25}])
def test_T_moves_with_each_parameter_alone(part: str, how: dict[str, float]) -> None:
    path = motion(moved(part, **how))
    start, later = path.T([0.0, 1.0])
    assert (start != later).any()
    np.testing.assert_array_equal([start, later], matrix(path.parameters([0.0, 1.0])))


@given(st.sampled_from(list(SHAPES)), parameter_rows)
def test_T_at_0_is_the_start(shape: str, row: np.ndarray) -> None:
    x, y, a, b, turn, slant = row.tolist()
    made = motion(actor(shape, (x, y), (1.0, 2.0), (a, b), math.degrees(turn), slant / 2))
    start = made.parameters([0.0])[0, 0]
    np.testing.assert_array_equal(start[[X, Y, SCALE_X, SCALE_Y, SHEAR]], [x, y, a, b, slant / 2])
    assert start[ROTATION] == pytest.approx(turn, rel=1e-15)


# Time scales and boosts


@given(paths, times, generic(0.05, 8))
def test_a_time_scale_is_exact(path: Trajectory, t: np.ndarray, s: float) -> None:
    np.testing.assert_array_equal(path.scaled(s).T(t), path.T(s * t))


@given(paths, times, generic(0.05, 8), generic(0.05, 8))
def test_time_scales_form_a_group(path: Trajectory, t: np.ndarray, a: float, b: float) -> None:
    np.testing.assert_array_equal(path.scaled(a).scaled(b).T(t), path.scaled(a * b).T(t))
    np.testing.assert_array_equal(path.scaled(4.0).scaled(0.25).T(t), path.T(t))


@given(paths, times, generic(0.05, 8))
def test_derivatives_scale_with_time(path: Trajectory, t: np.ndarray, s: float) -> None:
    fast, slow = derivatives(path.scaled(s).parameters(t)), derivatives(path.parameters(s * t))
    np.testing.assert_allclose(fast[0], s * slow[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast[1], s * s * slow[1], rtol=1e-12, atol=1e-12)


# Borders and limits


@given(moving_actors(16, 12), times, st.sampled_from([1.0, 300.0]))
def test_a_path_stays_inside(given_actor: dict[str, Any], t: np.ndarray, speed: float) -> None:
    given_actor["translation"]["velocity"] = (speed, -speed / 3)
    values = motion(given_actor).parameters(t)[:, 0]
    smallest, largest = given_actor["scale"]["limits"]
    assert (values[:, [SCALE_X, SCALE_Y]] >= smallest).all()
    assert (values[:, [SCALE_X, SCALE_Y]] <= largest).all()
    assert (np.abs(values[:, SHEAR]) <= 1).all()
    border = given_actor["translation"]["border"]
    if border != "free":
        assert (values[:, :2] >= 0).all()
        assert (values[:, :2] <= (16, 12)).all()
    if border == "wrap":
        assert (values[:, :2] < (16, 12)).all()


def test_a_time_does_not_depend_on_the_others_asked_for() -> None:
    """The largest number below a limit: its distance from -1 rounds to 2, but the limit is not reached yet."""
    below = math.nextafter(1, 0)
    path = motion(moved("shear", start=below, velocity=0.25, limits=[-1.0, 1.0]))
    for times_asked in ([0.0], [0.0, 5.0]):
        assert path.parameters(times_asked)[0, :2, SHEAR].tolist() == [below, 0.25]
        assert path.T(times_asked)[0, 0, 1] == 6 * below


def test_rounding_does_not_lead_outside() -> None:
    size, speed = 0.41549613430869914, 0.010490011715303971
    touching = motion(moved("scale", start=size, velocity=speed, limits=[0.1, 7.8])).parameters([(0.1 - size) / speed])
    assert touching[0, 0, SCALE_X] >= 0.1
    below = motion(moved("translation", "wrap", start=(0.0, 6.0), velocity=(-1e-18, 0.0))).parameters([1.0])
    assert 0 <= below[0, 0, X] < 16


@given(generic(0, 16), st.one_of(generic(-9, 9), generic(-4000, 4000)), times)
def test_a_bounce_is_a_triangle_wave(x: float, v: float, t: np.ndarray) -> None:
    """A ball between walls at 0 and 16: to and fro is a period of 32, and the speed never changes."""
    values = motion(moved("translation", "bounce", start=(x, 6.0), velocity=(v, 0.0))).parameters(t)
    phase = np.mod(x + v * t, 32.0)
    np.testing.assert_allclose(values[:, 0, X], np.minimum(phase, 32 - phase), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(values[:, 1, X], np.where(phase < 16, v, -v))


@pytest.mark.parametrize(
    ("start", "velocity", "instant", "place"),
    [(10.0, 2.0, 3.0, 16.0), (10.0, -2.0, 5.0, 0.0), (10.0, 2.0, -5.0, 0.0), (0.0, -1.0, 0.0, 0.0)],
)
def test_at_a_bounce_the_later_side_counts(start: float, velocity: float, instant: float, place: float) -> None:
    path = motion(moved("translation", "bounce", start=(start, 6.0), velocity=(velocity, 0.0)))
    (before, at, after) = path.parameters([instant - 2**-20, instant, instant + 2**-20])[..., X]
    away = abs(velocity) if place == 0 else -abs(velocity)
    assert at.tolist() == [place, away, 0]
    assert before.tolist() == [place + 2**-20 * away, -away, 0]
    assert after.tolist() == [place + 2**-20 * away, away, 0]


def test_a_margin_moves_the_walls() -> None:
    path = motion(moved("translation", "bounce", start=(3.0, 6.0), velocity=(-1.0, 2.5), margin=1.0))
    assert path.parameters([2.0, 12.0])[:, :2, X].tolist() == [[1, 1], [11, 1]]  # from 1 to 15
    assert path.parameters([2.0, 6.0])[:, :2, Y].tolist() == [[11, -2.5], [1, 2.5]]  # from 1 to 11
    outside = motion(moved("translation", "bounce", start=(3.0, 6.0), velocity=(-1.0, 0.0), margin=-4.0))
    assert outside.parameters([7.0])[0, :2, X].tolist() == [-4, 1]


def test_a_bounce_turns_the_acceleration_around() -> None:
    """The free path 12 + 2 t + t² / 4 meets 15, which is a margin of 1, at t = 2 (√7 - 2)."""
    path = motion(moved("translation", "bounce", start=(12.0, 6.0), velocity=(2.0, 0.0), acceleration=0.5, margin=1.0))
    instant = 2 * (math.sqrt(7) - 2)
    before, after = path.parameters([instant - 1e-6, instant + 1e-6])[..., X]
    assert before == pytest.approx([15, 2 + instant / 2, 0.5], abs=1e-5)
    assert after == pytest.approx([15, -2 - instant / 2, -0.5], abs=1e-5)


def test_pushed_away_from_rest_at_the_wall() -> None:
    path = motion(moved("translation", "bounce", start=(0.0, 6.0), acceleration=[-1.0, 0.0]))
    assert path.parameters([0.0, 2.0])[..., X].tolist() == [[0, 0, 1], [2, 2, 1]]


@given(generic(0, 16), generic(-9, 9), times)
def test_a_wrap_moves_by_the_frame(x: float, v: float, t: np.ndarray) -> None:
    values = motion(moved("translation", "wrap", start=(x, 6.0), velocity=(v, 0.0))).parameters(t)
    turns = (x + v * t - values[:, 0, X]) / 16
    np.testing.assert_allclose(turns, np.rint(turns), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(values[:, 1, X], v)


def test_a_wrap_at_its_instant() -> None:
    path = motion(moved("translation", "wrap", start=(10.0, 6.0), velocity=(2.0, 0.0)))
    assert path.parameters([2.5, 3.0, -5.0])[:, 0, X].tolist() == [15, 0, 0]
    back = motion(moved("translation", "wrap", start=(10.0, 6.0), velocity=(-2.0, 0.0)))
    assert back.parameters([5.0, 5.5])[:, :2, X].tolist() == [[0, -2], [15, -2]]


@pytest.mark.parametrize(
    ("part", "start", "velocity", "limits", "expected"),
    [
        ("scale", 3.0, -1.0, [1.0, None], [[3, -1], [2, -1], [1, 1], [2, 1], [3, 1], [4, 1]]),
        ("scale", 3.0, -1.0, [1.0, 3.0], [[3, -1], [2, -1], [1, 1], [2, 1], [3, -1], [2, -1]]),
        ("scale", 3.0, 1.0, [1.0, 4.0], [[3, 1], [4, -1], [3, -1], [2, -1], [1, 1], [2, 1]]),
        ("shear", 0.0, 0.25, [None, 0.5], [[0, 0.25], [0.25, 0.25], [0.5, -0.25], [0.25, -0.25], [0, -0.25]]),
        ("shear", 0.0, -0.25, [-0.5, None], [[0, -0.25], [-0.25, -0.25], [-0.5, 0.25], [-0.25, 0.25], [0, 0.25]]),
        ("shear", 0.0, 0.75, [None, None], [[0, 0.75], [0.75, 0.75], [1.5, 0.75], [2.25, 0.75]]),
    ],
)
def test_limits_reflect(part: str, start: float, velocity: float, limits: Any, expected: Any) -> None:
    path = motion(moved(part, start=start, velocity=velocity, limits=limits))
    assert path.parameters(np.arange(len(expected)))[:, :2, LINES[part]].tolist() == expected


@pytest.mark.parametrize("border", ["bounce", "wrap"])
def test_a_start_beyond_the_border_keeps_its_velocity(border: str) -> None:
    """A Gaussian start may lie outside the frame. It is folded back, and moves as the config says."""
    wide = moved("translation", border, start={"normal": [8.0, 30.0]}, velocity=(0.5, -0.25))
    made = drawn(config(wide), range(200)).trajectory.parameters([0.0])[:, 0, 0]
    assert (made[:, 0, :2] >= 0).all()
    assert (made[:, 0, :2] <= (16, 12)).all()
    np.testing.assert_array_equal(made[:, 1, :2], np.tile([0.5, -0.25], (200, 1)))


def test_a_natural_start_lies_inside_the_margin() -> None:
    near = moved("translation", "bounce", start="uniform", velocity=(0.5, -0.25), margin=5.0)
    near["scale"]["start"] = 2.0
    made = drawn(config(near, width=30, height=20), range(500)).trajectory.parameters([0.0])[:, 0, 0]
    np.testing.assert_array_equal(made[:, 1, :2], np.tile([0.5, -0.25], (500, 1)))
    share = (made[:, 0, :2] - 5) / [20, 10]
    assert stats.kstest(share[:, 0], "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(share[:, 1], "uniform").pvalue > FALSE_ALARM


# Natural ranges


def test_a_natural_form() -> None:
    """Sizes of 0.1 to 0.4 of the smaller side, any angle, shears of -0.5 to 0.5, each uniform."""
    natural = actor(size="uniform", turn="uniform", slant="uniform")
    forms = drawn(config(natural, width=60, height=40), range(3000)).trajectory.parameters([0.0])[:, 0, 0, 0]
    for column, low, high in ((SCALE_X, 4, 16), (ROTATION, 0, 2 * math.pi), (SHEAR, -0.5, 0.5)):
        assert stats.kstest(forms[:, column], stats.uniform(low, high - low).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_natural_place_has_the_shape_inside_the_frame(shape: str) -> None:
    """And anywhere there: the free way to the left and to the top is a uniform share of all free way."""
    natural = actor(shape, at="uniform", size=[14.0, 9.0], turn=25.0, slant=0.3)
    paths = drawn(config(natural, width=60, height=40), range(3000)).trajectory.T([0.0])[:, 0, 0]
    outline = np.concatenate(rings(SHAPES[shape])) @ paths[0, :2, :2].T
    before = paths[:, :2, 2] + outline.min(axis=0)
    after = (60, 40) - paths[:, :2, 2] - outline.max(axis=0)
    assert min(before.min(), after.min()) > -1e-6
    share = before / (before + after)
    assert stats.kstest(share[:, 0], "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(share[:, 1], "uniform").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(share.T)[0, 1]) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(3000)


def test_a_shape_that_is_too_large_lies_in_the_middle() -> None:
    path = motion(actor("triangle", at="uniform", size=[30.0, 4.0]))
    x, y = path.parameters([0.0])[0, 0, :2]
    assert x == 8
    assert 2 <= y <= 10


def test_the_members_of_a_family_share_a_natural_place() -> None:
    """A place that is natural for the largest of them, whichever size is shown."""
    swept = config(actor(at="uniform"), width=40, height=30, sweep={"actors.0.scale.start": [4.0, 20.0, 9.0]})
    for index in range(20):
        places = [
            gerd.simulate(swept, index, backend="torch", **{"actors.0.scale.start": size}).positions[0, 0]
            for size in (4.0, 20.0, 9.0)
        ]
        np.testing.assert_array_equal(places, [places[0]] * 3)
        assert (places[0] >= 10).all()
        assert (places[0] <= (30, 20)).all()


# Sizes


@given(generic(2, 30), generic(0.8, 1.25), times)
def test_a_factor_multiplies_the_size(size: float, factor: float, t: np.ndarray) -> None:
    path = motion(moved("scale", start=size, velocity={"factor": factor}, limits=[0.001, None]))
    values = path.parameters(t)[..., SCALE_X]
    np.testing.assert_allclose(values[:, 0], size * factor**t, rtol=1e-13)
    np.testing.assert_allclose(values[:, 1], math.log(factor) * size * factor**t, rtol=1e-13)
    np.testing.assert_allclose(values[:, 2], math.log(factor) ** 2 * size * factor**t, rtol=1e-13)


def test_a_factor_reflects_at_the_limit() -> None:
    sizes = motion(moved("scale", start=8.0, velocity={"factor": 0.5}, limits=[2.0, None])).parameters(np.arange(5))
    np.testing.assert_allclose(sizes[:, 0, SCALE_X], [8, 4, 2, 4, 8], rtol=1e-14)


def test_gaussian_sizes_and_factors_give_sizes() -> None:
    """A Gaussian size may be drawn below 0, and a Gaussian factor too: neither gives a shape without a size."""
    wild = moved("scale", start={"normal": [2.0, 3.0]}, velocity={"factor": {"normal": [1.0, 0.8]}}, limits=[1.0, 50.0])
    sizes = drawn(config(wild), range(300)).trajectory.parameters(np.arange(-3, 9))[:, 0, :, 0, SCALE_X]
    assert np.isfinite(sizes).all()
    assert sizes.min() >= 1 - 1e-12
    assert sizes.max() <= 50 + 1e-9


def test_growth_without_a_limit_stays_a_number() -> None:
    made = simulated(moved("scale", start=6.0, velocity={"factor": 1e6}), steps=100)
    assert np.isfinite(made.truth).all()
    assert made.parameters["scale_x"].max() <= 1e9 * (1 + 1e-9)


@given(generic(2, 9), generic(-0.3, 0.3), generic(-0.05, 0.05), times)
def test_one_size_is_a_pair_of_equal_sizes(size: float, speed: float, push: float, t: np.ndarray) -> None:
    one = motion(moved("scale", start=size, velocity=speed, acceleration=push))
    two = motion(moved("scale", start=(size, size), velocity=(speed, speed), acceleration=(push, push)))
    np.testing.assert_array_equal(one.T(t), two.T(t))


def test_one_random_size_is_the_same_for_both_sides_and_a_pair_is_not() -> None:
    noisy = {"normal": [0.0, 0.2]}
    one = motion(moved("scale", start={"uniform": [4, 9]}, velocity={"uniform": [0, 1]}, acceleration=noisy))
    two = motion(
        moved("scale", start=[{"uniform": [4, 9]}] * 2, velocity=[{"uniform": [0, 1]}] * 2, acceleration=[noisy] * 2)
    )
    a, b = (path.parameters(np.arange(4.0)) for path in (one, two))
    np.testing.assert_array_equal(a[..., SCALE_X], a[..., SCALE_Y])
    assert (b[..., SCALE_X] != b[..., SCALE_Y]).all()


# Accelerations


@pytest.mark.parametrize(
    ("acceleration", "value"),
    [
        ({"expression": "0.1 * t - t ** 2 / 50"}, lambda k: 0.1 * k - k**2 / 50),
        ({"expression": "sin(t / 3) + exp(-t / 9)"}, lambda k: math.sin(k / 3) + math.exp(-k / 9)),
        (lambda t: 0.25 * t, lambda k: 0.25 * k),
        (0.3, lambda k: 0.3),
        ({"profile": "sine", "amplitude": 0.3, "period": 7.0}, lambda k: 0.3 * math.sin(2 * math.pi * k / 7)),
        ({"profile": "sine", "amplitude": 0.3, "phase": 90.0}, lambda k: 0.3 * math.cos(2 * math.pi * k / 20)),
        ({"profile": "square", "amplitude": 0.3, "period": 6.0}, lambda k: 0.3 if k % 6 < 3 else -0.3),
        ({"profile": "square", "amplitude": 0.3, "period": 2.0}, lambda k: 0.3 if k % 2 < 1 else -0.3),
        ({"profile": "pulse", "amplitude": 0.3, "at": 2.0, "duration": 3.0}, lambda k: 0.3 if 2 <= k < 5 else 0.0),
    ],
)
@pytest.mark.parametrize("part", list(LINES))
def test_the_acceleration_of_a_step_is_the_value_at_its_start(part: str, acceleration: Any, value: Any) -> None:
    limits = {"scale": {"limits": [0.001, None], "start": 500.0}, "shear": {"limits": [None, None]}}.get(part, {})
    path = motion(moved(part, velocity=0.5, acceleration=acceleration, **limits), steps=12, integrator={"warmup": 4})
    unit = math.radians(1) if part == "rotation" else 1.0
    pushes = {k: unit * value(k) for k in range(-5, 12)}
    for t in (-4.75, -1.0, -0.25, 0.0, 0.5, 3.0, 3.999, 10.25):
        begin, now = path.parameters([0.0, t])[..., LINES[part]]
        gained, way = _integrals(pushes, t)
        assert now[2] == pytest.approx(pushes[math.floor(t)], abs=1e-14)
        assert now[1] == pytest.approx(0.5 * unit + gained, abs=1e-13)
        assert now[0] - begin[0] == pytest.approx(0.5 * unit * t + way, abs=1e-11)


def _integrals(pushes: dict[int, float], t: float) -> tuple[float, float]:
    """∫₀ᵗ a(u) du and ∫₀ᵗ (t - u) a(u) du of a function that is constant on each [k, k + 1)."""
    ends = sorted({0.0, t, *(float(k) for k in pushes if min(t, 0) < k < max(t, 0))})
    pieces = [(b - a, (a + b) / 2) for a, b in pairwise(ends)]
    sign = math.copysign(1, t)
    gained = sign * sum(pushes[math.floor(middle)] * length for length, middle in pieces)
    way = sign * sum(pushes[math.floor(middle)] * length * (t - middle) for length, middle in pieces)
    return gained, way


@settings(max_examples=60)
@given(paths)
def test_tensors_have_the_bits_of_arrays(path: Trajectory) -> None:
    """What a GPU works out itself, here on PyTorch's CPU."""
    t = np.arange(-3, 60) * 0.7
    for array, tensor in zip(path.entries(t), path.entries(t, sent), strict=True):
        np.testing.assert_array_equal(np.broadcast_to(array, t.shape), np.broadcast_to(tensor.numpy(), t.shape))


def test_the_motion_goes_on_beyond_the_recording() -> None:
    """A recording of steps 0 to 3 draws accelerations for -1 to 3; any other time draws its own."""
    path = motion(moved("translation", velocity=(1.0, 0.0), acceleration=0.5))
    for t in (-30.0, -3.0, -0.5, 3.5, 4.0, 60.0):
        assert path.parameters([t])[0, :, X].tolist() == [8 + t + 0.25 * t * t, 1 + 0.5 * t, 0.5]
    pushed = moved("translation", velocity=(1.0, 0.0), acceleration={"normal": [0.0, 0.2]})
    t = np.linspace(-20, 50, 141)
    short, long = (motion(pushed, steps=steps, integrator={"warmup": 25}) for steps in (4, 60))
    np.testing.assert_array_equal(short.T(t), long.T(t))
    np.testing.assert_array_equal(short.scaled(5.0).T(t / 5), motion(pushed, steps=60, time_scale=5.0).T(t / 5))


@pytest.mark.parametrize(
    "acceleration", [{"expression": "log(t + 1)"}, {"expression": "1e12 * t"}, lambda t: math.inf, lambda t: 1e10]
)
def test_an_acceleration_that_is_no_usable_number_is_refused(acceleration: Any) -> None:
    with pytest.raises(gerd.ConfigError, match=r"actors\.0\.translation\.acceleration.* at t = "):
        motion(moved("translation", acceleration=acceleration))


def test_random_accelerations_have_their_mean_and_deviation() -> None:
    """The mean by its Gaussian, the deviation by chi², each with a false alarm of 1e-6; x and y are independent."""
    pushed = moved("translation", acceleration={"normal": [0.05, 0.3]})
    pushes = motion(pushed, steps=4000).parameters(np.arange(4000.0))[:, 2, :2]
    for axis in (0, 1):
        drawn = pushes[:, axis]
        assert stats.kstest(drawn, "norm", args=(0.05, 0.3)).pvalue > FALSE_ALARM
        assert abs(drawn.mean() - 0.05) < stats.norm.isf(FALSE_ALARM / 2) * 0.3 / math.sqrt(4000)
        spread = ((drawn - 0.05) ** 2).sum() / 0.3**2
        assert stats.chi2.ppf(FALSE_ALARM / 2, 4000) < spread < stats.chi2.isf(FALSE_ALARM / 2, 4000)
    assert abs(np.corrcoef(pushes.T)[0, 1]) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(4000)


@pytest.mark.parametrize("border", ["free", "bounce"])
@pytest.mark.parametrize("part", list(LINES))
def test_a_speed_limit_holds_at_all_times(part: str, border: str) -> None:
    sizes = {"limits": [1.0, None]} if part == "scale" else {}
    wild = moved(part, border, velocity=5.0, acceleration={"normal": [0.0, 2.0]}, speed_limit=1.5, **sizes)
    speeds = motion(wild, steps=200).parameters(np.arange(-1, 199, 1 / 16))[:, 1]
    limit = math.radians(1.5) if part == "rotation" else 1.5
    speed = np.hypot(speeds[:, X], speeds[:, Y]) if part == "translation" else np.abs(speeds[:, LINES[part]])
    assert speed.max() <= limit * (1 + 1e-9)
    assert speed.max() > 0.99 * limit  # the limit is reached, and
    assert speed.min() < 0.5 * limit  # left again


@settings(max_examples=25)
@given(moving_actors(16, 12), st.booleans())
def test_a_path_does_not_depend_on_how_much_of_it_is_shown(given_actor: dict[str, Any], limited: bool) -> None:
    """Longer, with more warm-up, or at another time scale: the same bits at the same own time."""
    if limited:
        given_actor["translation"]["speed_limit"] = 1.0
    shown = motion(given_actor, steps=8)
    t = np.array([-0.9, 0.0, 1.0, 2.3, 6.99])
    for other in (
        motion(given_actor, steps=80),
        motion(given_actor, steps=8, integrator={"warmup": 9}),
        replace(motion(given_actor, steps=8, time_scale=2.7), rate=1.0),
        replace(motion(given_actor, steps=40, time_scale=0.25), rate=1.0),
    ):
        np.testing.assert_array_equal(other.parameters(t), shown.parameters(t))


# Velocities given by how fast the outline moves

ALMOST_ROUND = {"polygon": [[0.5 * math.cos(i * math.pi / 32), 0.5 * math.sin(i * math.pi / 32)] for i in range(64)]}


@pytest.mark.parametrize(
    ("shape", "part", "size", "turn", "slant"),
    [
        ("square", "rotation", 9.0, 0.0, 0.0),
        ("square", "rotation", (12.0, 5.0), 33.0, 0.2),
        ("triangle", "rotation", 8.0, 10.0, 0.0),
        ("concave", "rotation", 8.0, 10.0, 0.3),
        ("circle", "scale", 7.0, 0.0, 0.0),
        ("circle", "scale", 7.0, 20.0, 0.6),
        ("square", "scale", 6.0, 45.0, -0.3),
        ("triangle", "shear", 9.0, 0.0, 0.0),
        ("circle", "shear", 9.0, 50.0, 0.1),
        (ALMOST_ROUND, "rotation", 9.0, 0.0, 0.0),
    ],
)
def test_a_boundary_velocity_moves_the_outline_that_fast(
    shape: Any, part: str, size: Any, turn: float, slant: float
) -> None:
    """The mean distance along the normal, measured at many points of the outline over a short time."""
    asked = actor(shape, (8.0, 6.0), size=size, turn=turn, slant=slant)
    asked[part]["velocity"] = {"boundary": 0.7}
    h = 1e-6
    before, after = motion(asked).T([0.0, h])
    corners = rings(asked["shape"])[0]
    share = np.linspace(0, 1, 80_000 // len(corners), endpoint=False)[:, None]
    points = np.concatenate([a + (b - a) * share for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)])
    placed = points @ before[:2, :2].T
    tangent = np.roll(placed, -1, axis=0) - placed
    length = np.linalg.norm(tangent, axis=1)
    middle = (points + np.roll(points, -1, axis=0)) / 2
    step = middle @ (after - before)[:2, :2].T / h
    along_normal = np.abs(step[:, 0] * tangent[:, 1] - step[:, 1] * tangent[:, 0])
    assert along_normal.sum() / length.sum() == pytest.approx(0.7, rel=1e-3)


def test_a_velocity_that_moves_no_outline_is_refused() -> None:
    turning = actor("circle", rotation={"velocity": {"boundary": 1.0}, "acceleration": 0.0})
    with pytest.raises(gerd.ConfigError, match=r"actors\.0\.rotation\.velocity\.boundary"):
        motion(turning)


def test_names() -> None:
    assert PARAMETERS == ("x", "y", "scale_x", "scale_y", "rotation", "shear")


def test_a_config_without_actors_has_an_empty_trajectory() -> None:
    empty: Config = config()
    assert drawn(empty, [0, 1]).trajectory.T([0.0, 1.0]).shape == (2, 0, 2, 3, 3)

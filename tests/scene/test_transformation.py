"""Transformations of the whole scene: against closed forms, as a group, exact on events, and the same in text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenes import actor, config, generic, moving_actors, same

import gerd
from gerd.config.config import Config
from gerd.config.sweep import labels, member_count
from gerd.events import backends
from gerd.geometry.parameters import derivatives as product_rule
from gerd.geometry.parameters import matrix
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.transformation import (
    Transformation,
    acceleration,
    affine,
    composed,
    identity,
    mirror,
    planned,
    rotation,
    scale,
    shear,
    time_scale,
    translation,
    velocity,
)

FAMILIES = Path(__file__).parents[2] / "configs" / "families"
Motion = Callable[[float], np.ndarray]  # t → T, 3×3
WIDTH, HEIGHT = 40, 30
CENTRE = (WIDTH / 2, HEIGHT / 2)

RESTLESS: dict[str, Any] = {
    "shape": "triangle",
    "translation": {"start": [17, 14], "velocity": [0.7, -0.4], "acceleration": {"normal": [0, 0.1]}},
    "scale": {"start": [9, 12], "velocity": [0.1, -0.2], "acceleration": 0.01},
    "rotation": {"start": 400, "velocity": -7, "acceleration": {"normal": [0, 1]}},
    "shear": {"start": 0.2, "velocity": 0.02, "acceleration": 0},
}


def transformed(*parts: dict[str, Any], **fields: Any) -> Config:
    return config(RESTLESS, width=WIDTH, height=HEIGHT, transform=list(parts), **{"steps": 8, **fields})


def by_hand(motion: Motion, part: dict[str, Any]) -> Motion:
    """What an entry of the list makes of a motion: matrices about a point, written down here once more."""
    moved, about = np.eye(3), np.eye(3)
    about[:2, 2] = part.get("about", CENTRE)
    since = part.get("epoch", 0)
    match part:
        case {"time_scale": factor}:
            return lambda t: motion(factor * t)
        case {"boost": v}:
            return lambda t: np.array([[0, 0, v[0] * (t - since)], [0, 0, v[1] * (t - since)], [0, 0, 0]]) + motion(t)
        case {"accelerate": a}:
            half = lambda t: (t - since) ** 2 / 2  # noqa: E731
            return lambda t: np.array([[0, 0, a[0] * half(t)], [0, 0, a[1] * half(t)], [0, 0, 0]]) + motion(t)
        case {"translate": shift}:
            moved[:2, 2] = shift
        case {"rotate": degrees}:
            r = np.radians(degrees)
            moved[:2, :2] = [[np.cos(r), -np.sin(r)], [np.sin(r), np.cos(r)]]
        case {"scale": factors}:
            moved[:2, :2] = np.diag(np.broadcast_to(factors, 2))
        case {"shear": factor}:
            moved[0, 1] = factor
        case {"mirror": axis}:
            moved[:2, :2] = np.diag({"x": (-1, 1), "y": (1, -1), "none": (1, 1)}[axis])
        case {"affine": rows}:
            moved[:2] = rows
    return lambda t: about @ moved @ np.linalg.inv(about) @ motion(t)


def derivatives(motion: Motion, t: float, h: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """T' and T'' by differences of fourth order; t lies inside a step, where T is smooth."""
    m2, m1, p0, p1, p2 = (motion(t + k * h) for k in range(-2, 3))
    return (m2 - 8 * m1 + 8 * p1 - p2) / (12 * h), (-m2 + 16 * m1 - 30 * p0 + 16 * p1 - p2) / (12 * h * h)


SINGLE: list[dict[str, Any]] = [
    {"translate": [3.5, -2]},
    {"rotate": 33},
    {"rotate": -200, "about": [3, 25]},
    {"scale": 1.3},
    {"scale": [-1.2, 0.6], "about": [0, 0]},
    {"shear": 0.4},
    {"mirror": "x"},
    {"mirror": "y", "about": [10, 8]},
    {"mirror": "none"},
    {"affine": [[1.1, 0.3, 2], [-0.4, 0.7, -3]]},
    {"affine": [[0.2, 1, 0], [1, -0.5, 0]], "about": [5, 5]},
    {"boost": [0.5, -0.3], "epoch": 4},
    {"accelerate": [0.05, 0.01], "epoch": 3},
    {"time_scale": 1.7},
]
LISTS = [
    *([part] for part in SINGLE),
    [{"rotate": 30}, {"boost": [1, 0]}, {"mirror": "x"}],
    [{"boost": [1, 0.5], "epoch": 2}, {"time_scale": 0.6}, {"shear": -0.3}, {"accelerate": [0, 0.1]}, {"rotate": 70}],
    SINGLE,
]


@pytest.mark.parametrize("parts", LISTS, ids=lambda parts: "-".join(next(iter(part)) for part in parts))
def test_the_ground_truth_is_that_of_the_transformed_scene(parts: list[dict[str, Any]]) -> None:
    own = draw(plan_of(transformed()), [5]).trajectory
    motion: Motion = lambda t: own.T([t])[0, 0, 0]  # noqa: E731
    for part in parts:
        motion = by_hand(motion, part)
    recording = gerd.simulate(transformed(*parts), 5, backend="torch")
    size = max(np.abs(motion(t)).max() for t in range(8))
    for step in range(8):
        np.testing.assert_allclose(recording.T[step, 0], motion(step), atol=1e-13 * size)
        np.testing.assert_allclose(recording.scene.trajectory.T([step])[0, 0, 0], motion(step), atol=1e-13 * size)
    for t in np.arange(8) + 0.137:
        found = recording.scene.trajectory.parameters([t])[0, 0]
        np.testing.assert_allclose(matrix(found)[0], motion(t), atol=1e-13 * size)
        for order, expected in zip(product_rule(found), derivatives(motion, t), strict=True):
            np.testing.assert_allclose(order[0], expected, atol=1e-6 * size)


def test_truth_has_the_derivatives_at_the_steps_themselves() -> None:
    """By the product rule on G·T, from matrices that are written down here."""
    g = np.array([[0.6, 1.1, 0], [-0.2, 0.9, 0], [0, 0, 1]])
    parts: list[dict[str, Any]] = [{"affine": g[:2].tolist(), "about": [0, 0]}, {"boost": [0.5, -0.3], "epoch": 4}]
    plain, recording = (gerd.simulate(transformed(*some), 2, backend="torch") for some in ([], parts))
    boost = np.zeros((3, 3))
    boost[:2, 2] = 0.5, -0.3
    np.testing.assert_allclose(recording.T_velocity, g @ plain.T_velocity + boost, atol=1e-13)
    np.testing.assert_allclose(recording.T_acceleration, g @ plain.T_acceleration, atol=1e-13)


def test_parameters_are_those_of_the_transformed_matrix() -> None:
    plain = gerd.simulate(transformed(), backend="torch").parameters
    turned = gerd.simulate(transformed({"rotate": 30}), backend="torch").parameters
    np.testing.assert_allclose(turned["rotation"], plain["rotation"] + np.radians(30))  # no turn is lost
    for name in ("scale_x", "scale_y", "shear"):
        np.testing.assert_allclose(turned[name], plain[name], rtol=1e-14)
    mirrored = gerd.simulate(transformed({"mirror": "y"}), backend="torch").parameters
    for name, sign in (("scale_x", 1), ("scale_y", -1), ("rotation", -1), ("shear", -1)):
        np.testing.assert_allclose(mirrored[name], sign * plain[name], rtol=1e-14)
    np.testing.assert_allclose(mirrored["y"], HEIGHT - plain["y"])


def test_a_shape_may_pass_through_size_0_and_be_turned() -> None:
    card = actor(
        "square", at=CENTRE, scale={"start": [4, 8], "velocity": [-1, 0], "acceleration": 0, "limits": [-9, 9]}
    )
    recording = gerd.simulate(
        config(card, width=WIDTH, height=HEIGHT, steps=8, transform=[{"rotate": 30}, {"scale": [2, 1]}]),
        backend="torch",
    )
    plain = gerd.simulate(config(card, width=WIDTH, height=HEIGHT, steps=8), backend="torch")
    assert recording.truth.shape == (8, 1, 3, 6)
    assert np.isfinite(recording.truth).all()
    r = np.radians(30)
    A = np.diag([2, 1]) @ [[np.cos(r), -np.sin(r)], [np.sin(r), np.cos(r)]]
    np.testing.assert_allclose(recording.T[:, 0, :2, :2], A @ plain.T[:, 0, :2, :2], atol=1e-14)
    np.testing.assert_allclose(recording.T_velocity[:, 0, :2, :2], A @ plain.T_velocity[:, 0, :2, :2], atol=1e-14)
    assert np.sign(recording.parameters["scale_x"][:, 0]).tolist() == [1, 1, 1, 1, 0, -1, -1, -1]


@st.composite
def transformations(draw: Any) -> Transformation:
    """Compositions of any kinds in any order."""
    number, factor = generic(-2, 2), generic(0.4, 2.5)
    kinds = (
        st.builds(translation, number, number),
        st.builds(rotation, generic(-400, 400)),
        st.builds(scale, factor, factor.map(lambda x: -x)),
        st.builds(shear, number),
        st.builds(mirror, st.sampled_from(["x", "y", "none"])),
        st.builds(velocity, number, number, number),
        st.builds(acceleration, number, number, number),
        st.builds(time_scale, factor),
        st.builds(lambda a, b, c: affine((1.0, a, b), (c * 0.2, 1.0 + 0.2 * abs(a * c), a)), number, number, number),
    )
    return composed(*draw(st.lists(st.one_of(*kinds), min_size=1, max_size=4)))


def numbers(g: Transformation) -> np.ndarray:
    space = (g.space.linear, g.space.shift, g.space.velocity, g.space.acceleration)
    return np.concatenate([np.ravel(part) for part in (*space, g.time_scale)])


def assert_same(one: Transformation, other: Transformation, size: float = 1.0) -> None:
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-9 * size)


@given(transformations(), transformations(), transformations())
def test_they_are_a_group(f: Transformation, g: Transformation, h: Transformation) -> None:
    size = np.prod([np.abs(numbers(each)).max() for each in (f, g, h)])
    assert_same(f.then(g).then(h), f.then(g.then(h)), size)
    assert_same(composed(f, g, h), f.then(g).then(h))
    assert_same(identity().then(f), f)
    assert_same(f.then(identity()), f)
    back = f.inverse()
    size = np.abs(numbers(f)).max() * np.abs(numbers(back)).max()
    assert_same(f.then(back), identity(), size)
    assert_same(back.then(f), identity(), size)


@given(transformations(), transformations())
def test_a_composition_does_what_its_parts_do(f: Transformation, g: Transformation) -> None:
    scenes, t = draw(plan_of(transformed()), [0, 3]), np.array([-2.5, 0.0, 1.3, 4.0])
    one, other = g(f(scenes)).trajectory, f.then(g)(scenes).trajectory
    expected = other.parameters(t)
    np.testing.assert_allclose(one.T(t), other.T(t), rtol=1e-9, atol=1e-9 * np.abs(other.T(t)).max())
    np.testing.assert_allclose(matrix(one.parameters(t)), other.T(t), rtol=1e-9, atol=1e-9 * np.abs(other.T(t)).max())
    for order in range(3):
        found = one.parameters(t)[..., order, :2]
        np.testing.assert_allclose(found, expected[..., order, :2], rtol=1e-9, atol=1e-9 * np.abs(found).max())


def test_the_order_counts() -> None:
    turned_first, moved_first = rotation(90).then(translation(5)), translation(5).then(rotation(90))
    assert turned_first.frame(10, 10).G([0])[0, :2, 2].tolist() == [15, 0]
    assert moved_first.frame(10, 10).G([0])[0, :2, 2].tolist() == [10, 5]
    assert str(turned_first) == "rotation 90 then translation 5"
    assert velocity(1).then(time_scale(2)).space.velocity == (2, 0)
    assert time_scale(2).then(velocity(1)).space.velocity == (1, 0)


SIDE = 24


@st.composite
def quiet_configs(draw: Any) -> dict[str, Any]:
    """Any scene whose events depend on its geometry alone; a square frame that no torus is in."""
    actors = draw(st.lists(moving_actors(SIDE, SIDE), min_size=1, max_size=3))
    for each in actors:
        each["translation"]["border"] = draw(st.sampled_from(["free", "bounce"]))
        each["translation"]["start"] = [min(max(x, 0), SIDE) for x in each["translation"]["start"]]
    return {"actors": actors, "threshold": draw(st.sampled_from([0.13, 0.5, 0.77])), "seed": draw(st.integers(0, 999))}


def events_of(quiet: dict[str, Any], *parts: dict[str, Any], sign: float = 1.0) -> set[tuple[int, ...]]:
    """(step, y, x, p) of each event."""
    actors = [{**each, "intensity": sign * each["intensity"]} for each in quiet["actors"]]
    integrator = {"initial": 0.0, "warmup": 2, "threshold": quiet["threshold"]}
    chosen = config(
        *actors, width=SIDE, height=SIDE, steps=6, transform=parts, integrator=integrator, seed=quiet["seed"]
    )
    return set(map(tuple, gerd.simulate(chosen, backend="torch").coordinates.tolist()))


@settings(max_examples=20, deadline=None)
@given(quiet_configs(), st.integers(-9, 9), st.integers(-9, 9))
def test_symmetries_of_the_grid_act_exactly_on_events(quiet: dict[str, Any], right: int, down: int) -> None:
    events, last = events_of(quiet), SIDE - 1
    assert events_of(quiet, {"mirror": "x"}) == {(t, y, last - x, p) for t, y, x, p in events}
    assert events_of(quiet, {"mirror": "y"}) == {(t, last - y, x, p) for t, y, x, p in events}
    assert events_of(quiet, {"rotate": 90}) == {(t, x, last - y, p) for t, y, x, p in events}
    assert events_of(quiet, {"rotate": 180}) == {(t, last - y, last - x, p) for t, y, x, p in events}
    assert events_of(quiet, {"rotate": -90}, {"mirror": "x"}) == {(t, last - x, last - y, p) for t, y, x, p in events}
    assert events_of(quiet, sign=-1.0) == {(t, y, x, 1 - p) for t, y, x, p in events}
    moved = {(t, y + down, x + right, p) for t, y, x, p in events}
    rows, columns = (range(max(0, by), SIDE + min(0, by)) for by in (down, right))  # of which both frames know
    both = (moved, events_of(quiet, {"translate": [right, down]}))
    expected, found = ({event for event in each if event[1] in rows and event[2] in columns} for each in both)
    assert found == expected


def test_a_boost_by_whole_pixels_moves_the_events_of_each_step() -> None:
    """The integrators do not move along: with as many events as there are changes, only the first step differs."""
    resting = actor("square", at=[8.03, 8.07], size=5.3)
    boosted = gerd.simulate(config(resting, width=SIDE, height=SIDE, transform=[{"boost": [2, 1]}]), backend="torch")
    moving = actor("square", at=[8.03, 8.07], velocity=[2.0, 1.0], size=5.3)
    assert boosted.digest == gerd.simulate(config(moving, width=SIDE, height=SIDE), backend="torch").digest
    assert len(boosted) > 50


class TestInText:
    FAMILY = gerd.load(FAMILIES / "turned.yaml", overrides=["steps=8", "sensor={width: 40, height: 40}"])

    def test_config_and_measures_mean_the_same(self) -> None:
        chosen = transformed(*LISTS[-2], noise={"background": 0.01})
        base = transformed(noise={"background": 0.01})
        g = composed(velocity(1, 0.5, epoch=2), time_scale(0.6), shear(-0.3), acceleration(0, 0.1), rotation(70))
        assert planned(plan_of(chosen)) == g
        assert torch.equal(gerd.simulate(chosen, 4).frames(), backends.frames(g(draw(plan_of(base), [4])))[0])

    def test_a_time_scale_in_the_list_is_that_of_the_config(self) -> None:
        listed, field = transformed({"time_scale": 2.5}), transformed(time_scale=2.5)
        one, other = gerd.simulate(listed, 1, backend="torch"), gerd.simulate(field, 1, backend="torch")
        assert one.digest == other.digest
        assert np.array_equal(one.truth, other.truth)

    def test_a_recording_says_what_was_applied(self) -> None:
        recording = gerd.simulate(transformed({"rotate": 30}, {"boost": [1, 0]}, {"mirror": "x"}), backend="torch")
        assert recording.transform == composed(rotation(30), velocity(1), mirror("x"))
        assert str(recording.transform) == "rotation 30 then velocity 1 then mirror x"
        plain = gerd.simulate(transformed(), backend="torch")
        assert plain.transform == identity()
        G = recording.transform.frame(WIDTH, HEIGHT).G(np.arange(8))
        np.testing.assert_allclose(recording.T, G[:, None] @ plain.T, atol=1e-13)

    def test_all_backends_batches_and_chunks_agree(self) -> None:
        chosen = transformed({"affine": [[1.1, 0.3, 2], [-0.4, 0.7, -3]]}, {"boost": [0.5, 0]}, steps=9)
        whole = gerd.simulate(chosen, 3, backend="torch")
        assert whole.digest == gerd.simulate(chosen, 3).digest == gerd.simulate_batch(chosen, [1, 3])[1].digest
        parts = list(gerd.simulate_chunks(chosen, 3, chunk=4))
        assert np.array_equal(np.concatenate([part.events for part in parts]), whole.events)
        assert np.array_equal(np.concatenate([part.truth for part in parts]), whole.truth)
        stages = whole.stages()
        assert (stages.events == whole.frames().numpy()).all()

    def test_a_family_is_stored_read_and_streamed(self, tmp_path: Path) -> None:
        gerd.generate(self.FAMILY, tmp_path / "data", 1, workers=1)
        stored = gerd.Recordings(tmp_path / "data")
        assert len(stored) == member_count(self.FAMILY) == 10
        assert stored.config.digest == self.FAMILY.digest
        for number, recording in enumerate(stored):
            again = gerd.simulate(self.FAMILY, **labels(self.FAMILY, number))
            assert (recording.digest, recording.identity) == (again.digest, again.identity)
            assert np.array_equal(recording.truth, again.truth)
            angle = labels(self.FAMILY, number)["transform.0.rotate"]
            assert str(recording.transform).startswith(f"rotation {angle} then velocity")
        assert [faults for _, faults in gerd.verify(tmp_path / "data", regenerate=True) if faults] == []
        data = gerd.Dataset(tmp_path / "data", label=("T", "sweep"))
        batch = gerd.Stream(self.FAMILY, 10, label=("T", "sweep")).batch(0)
        assert same(gerd.collate([data[i] for i in range(10)]), batch)
        assert batch[1][1]["transform.0.rotate"].tolist() == [0, 0, 15, 15, 30, 30, 60, 60, 90, 90]

    def test_members_of_a_group_lie_on_its_orbit(self) -> None:
        """The truth of the member turned by 30° is that of the first one, turned by 30°."""
        first, *_, turned = (
            gerd.simulate(self.FAMILY, **{"transform.0.rotate": angle, "transform.1.boost": [0, 0]})
            for angle in (0, 30)
        )
        np.testing.assert_allclose(turned.T, rotation(30).frame(40, 40).G([0])[0] @ first.T, atol=1e-12)

    def test_an_empty_list_is_no_part_of_the_digest(self) -> None:
        plain = gerd.parse("actors: [{shape: square}]")
        assert plain.digest == gerd.parse("transform: []\nactors: [{shape: square}]").digest
        assert plain.digest != gerd.parse("transform: [{rotate: 0}]\nactors: [{shape: square}]").digest
        assert plain.resolved()["transform"] == []

    def test_whole_entries_and_lists_can_be_swept(self) -> None:
        chosen = gerd.parse(
            "actors: [{shape: square}]\ntransform: [{rotate: 1}]\nsweep: {transform: [[], [{mirror: x}, {rotate: 5}]]}"
        )
        assert [str(gerd.simulate(chosen, steps=1, **labels(chosen, k)).transform) for k in range(2)] == [
            "identity",
            "mirror x then rotation 5",
        ]

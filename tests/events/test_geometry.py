"""Pictures and events against what geometry says: moved edges, areas, the symmetries of the pixel grid, the torus."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenes import SHAPES, actor, config, generic, moving_actors, rings, simulated

import gerd
from gerd.config.config import Config

Point = tuple[float, float]


def rows(*columns: np.ndarray) -> list[list[int]]:
    """Columns step, y, x, p as a sorted list of events."""
    return sorted(np.stack(columns, axis=1).tolist())


# A scene at rest


@given(
    st.lists(st.tuples(st.sampled_from(list(SHAPES)), generic(0, 16), generic(0, 12), generic(1, 20)), max_size=3),
    st.sampled_from(["uniform", 0.0, 1.0, -1.0]),
)
def test_nothing_moves_and_nothing_fires(placed: list[Any], initial: Any) -> None:
    actors = [actor(shape, at=(x, y), size=size) for shape, x, y, size in placed]
    assert len(simulated(*actors, steps=6, integrator={"initial": initial, "threshold": 0.05, "warmup": 2})) == 0


def test_a_frame_without_actors_is_empty() -> None:
    assert len(simulated()) == 0
    assert not simulated().images().any()


# Edges, by hand


@pytest.mark.parametrize("side", [3, 4])
@pytest.mark.parametrize(("dx", "dy"), [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_square_moves_by_one_pixel(side: int, dx: int, dy: int) -> None:
    """Each step turns on the line of pixels ahead of the square and turns off the line behind it."""
    left, top = 6, 5  # its first pixels at time -1
    moving = actor(at=[left + dx + side / 2, top + dy + side / 2], velocity=[float(dx), float(dy)], size=float(side))
    expected = []
    for step in range(3):
        before = {(top + dy * step + i, left + dx * step + j) for i in range(side) for j in range(side)}
        after = {(y + dy, x + dx) for y, x in before}
        expected += [[step, y, x, 1] for y, x in after - before] + [[step, y, x, 0] for y, x in before - after]
    found = simulated(moving, width=16, height=16, steps=3, upsampling=8)
    assert len(expected) == 3 * 2 * side
    assert found.coordinates.tolist() == sorted(expected)


def test_a_pixel_that_is_covered_and_left_fires_once() -> None:
    """+1 fires ON and leaves 1/2; -1 then gives -1/2, which is not below a threshold of 1/2: it has to be passed."""
    found = simulated(actor(at=[6.5, 5.5], velocity=[1.0, 0.0], size=1.0), steps=3)
    ahead, behind = [[0, 5, 6, 1], [1, 5, 7, 1], [2, 5, 8, 1]], [[0, 5, 5, 0]]
    assert found.coordinates.tolist() == sorted(ahead + behind)


def test_half_a_pixel_a_step_fires_every_second_step() -> None:
    """A change of 1/2 is not above a threshold of 1/2. The second half is, and the 1/2 that stays fires no more."""
    found = simulated(actor(at=[5.5, 6.0], velocity=[0.5, 0.0], size=4.0), steps=5)
    # The right edge is at 7 and the left edge at 3 at step -1; both are half a pixel further at each step.
    edges = [(1, 7, 1), (1, 3, 0), (3, 8, 1), (3, 4, 0)]
    assert found.coordinates.tolist() == sorted([step, y, x, p] for step, x, p in edges for y in range(4, 8))


@pytest.mark.parametrize(("reset", "fired"), [("subtract", [0, 1, 2, 3]), ("zero", [0])])
def test_a_big_change_stays_in_the_integrator(reset: str, fired: list[int]) -> None:
    """A change by 4.5 thresholds: subtraction fires once a step until 0.5 are left, a reset to zero fires once."""
    jump = actor(at=[6.0, 6.0], size=4.0)  # 106 pixels to the left at step -1, at rest from step 0 on
    jump["translation"]["acceleration"] = [{"profile": "pulse", "amplitude": -212.0, "at": -1.0}, 0.0]
    integrator = {"threshold": 1 / 4.5, "reset": reset, "initial": 0.0, "warmup": 0}
    found = simulated(jump, steps=6, integrator=integrator)
    covered = [(y, x) for y in range(4, 8) for x in range(4, 8)]
    assert found.coordinates.tolist() == [[step, y, x, 1] for step in fired for y, x in covered]


def test_intensity_scales_the_picture() -> None:
    at: dict[str, Any] = {"at": [5.3, 6.1], "turn": 20.0}
    one = simulated(actor(**at)).images()
    assert one.max() == 1
    for intensity in (0.5, 2.0, -1.0, 0.0):
        np.testing.assert_array_equal(simulated(actor(**at, intensity=intensity)).images(), intensity * one)


def test_polarity_follows_the_intensity() -> None:
    moved: dict[str, Any] = {"at": [5.3, 6.1], "velocity": [1.2, 0.3]}
    bright, dark = simulated(actor(**moved)), simulated(actor(**moved, intensity=-1.0))
    step, y, x, p = dark.coordinates.T
    assert len(bright) > 20
    assert bright.coordinates.tolist() == rows(step, y, x, 1 - p)


def test_the_nearer_hides_the_farther() -> None:
    far, near = actor("circle", at=[7.2, 6.3], size=9.0), actor(at=[8.1, 6.6], size=4.0, intensity=0.5)
    both, front, back = simulated(far, near), simulated(near), simulated(far)
    covered = front.coverage()[:, 0]
    assert (covered == 1).sum() > 20
    assert (both.images()[covered == 1] == 0.5).all()  # neither 1.5 nor the circle behind
    np.testing.assert_array_equal(both.images()[covered == 0], back.images()[covered == 0])
    assert simulated(near, far).images().sum() > both.images().sum()  # the order decides


# Areas


@settings(max_examples=30)
@given(
    st.sampled_from(["square", "circle", "triangle"]),
    st.tuples(generic(4, 9), generic(4, 9)),
    generic(0, 360),
    generic(-0.9, 0.9),
    st.tuples(generic(14, 18), generic(14, 18)),
)
def test_coverage_is_the_area(shape: str, size: Point, turn: float, slant: float, at: Point) -> None:
    """The sum over the frame is within 3 · perimeter / f of the closed form.

    Only a sub-pixel that the outline passes through can be counted wrongly. An outline of length L crosses at most
    √2 · L · f lines of the fine grid, and a few at the turning points; each crossing enters one more sub-pixel of area
    1 / f². On average errors cancel, so with 32 sub-pixels the sum is much closer than that.
    """
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    points = rings(shape)[0] @ (np.array([[c, -s], [s, c]]) @ [[1, slant], [0, 1]] @ np.diag(size)).T
    perimeter = np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1).sum()
    area = {"square": 1.0, "circle": math.pi / 4, "triangle": 0.5}[shape] * size[0] * size[1]
    for f, bound in ((1, 3.0), (4, 3 / 4), (32, 0.01)):
        shown = actor(shape, at, size=size, turn=turn, slant=slant)
        image = simulated(shown, width=32, height=32, upsampling=f, steps=1).images()
        assert abs(image.sum(dtype=np.float64) - area) <= bound * perimeter


def test_a_hole_is_empty() -> None:
    image = simulated(actor("hole", at=[8.1, 6.1], size=10.0), upsampling=32).images()[0]
    hole = abs(0.55 * 0.55 - 0.4 * -0.1) / 2  # the triangle (-0.3, -0.2), (0.25, -0.3), (0.1, 0.35)
    assert image.sum() == pytest.approx(100 * (1 - hole), rel=2e-3)
    assert image[6, 8] == 0
    assert image[2, 8] == 1


# Symmetries of the pixel grid: noise off, initial state 0, and no sub-pixel centre on an outline

SIDE = 14


def changed(given_actor: dict[str, Any], shift: Point = (0, 0), mirror: bool = False, quarter: bool = False) -> Any:
    """The actor moved by whole pixels, mirrored left to right, or turned clockwise by 90° about the frame's centre."""
    move, turn, shear = given_actor["translation"], given_actor["rotation"], given_actor["shear"]
    (x, y), sign = move["start"], -1 if mirror else 1
    x, y = (SIDE - y, x) if quarter else (SIDE - x if mirror else x, y)

    def vector(pair: Point) -> Point:
        return (-pair[1], pair[0]) if quarter else (sign * pair[0], pair[1])

    flipped = {name: sign * turn[name] for name in ("start", "velocity", "acceleration")}
    return {
        **given_actor,
        "shape": mirrored(given_actor["shape"]) if mirror else given_actor["shape"],
        "translation": {
            **move,
            "start": (x + shift[0], y + shift[1]),
            "velocity": vector(move["velocity"]),
            "acceleration": vector(move["acceleration"]),
        },
        "rotation": {**flipped, "start": flipped["start"] + (90 if quarter else 0)},
        "shear": {**shear, "start": sign * shear["start"], "velocity": sign * shear["velocity"]},
    }


def mirrored(shape: Any) -> Any:
    return shape if shape == "circle" else {"polygon": [(ring * (-1, 1)).tolist() for ring in rings(shape)]}


steady_scenes = st.lists(moving_actors(SIDE, SIDE, steady=True), min_size=1, max_size=3)
FIELDS: dict[str, Any] = {"width": SIDE, "height": SIDE, "steps": 6, "upsampling": 3}


@given(steady_scenes, st.integers(-9, 9), st.integers(-9, 9))
def test_translation_moves_the_events(actors: list[Any], right: int, down: int) -> None:
    for free in actors:
        free["translation"]["border"] = "free"
    step, y, x, p = simulated(*actors, **FIELDS).coordinates.T
    moved = simulated(*(changed(a, shift=(right, down)) for a in actors), **FIELDS).coordinates
    still_seen = (x + right >= 0) & (x + right < SIDE) & (y + down >= 0) & (y + down < SIDE)
    seen_before = (
        (moved[:, 1] >= down) & (moved[:, 1] < SIDE + down) & (moved[:, 2] >= right) & (moved[:, 2] < SIDE + right)
    )
    expected = rows(*(column[still_seen] for column in (step, y + down, x + right, p)))
    assert moved[seen_before].tolist() == expected


@given(steady_scenes)
def test_a_quarter_turn_turns_the_events(actors: list[Any]) -> None:
    step, y, x, p = simulated(*actors, **FIELDS).coordinates.T
    turned = simulated(*(changed(a, quarter=True) for a in actors), **FIELDS)
    assert turned.coordinates.tolist() == rows(step, x, SIDE - 1 - y, p)


@given(steady_scenes)
def test_a_mirror_mirrors_the_events(actors: list[Any]) -> None:
    step, y, x, p = simulated(*actors, **FIELDS).coordinates.T
    seen = simulated(*(changed(a, mirror=True) for a in actors), **FIELDS)
    assert seen.coordinates.tolist() == rows(step, y, SIDE - 1 - x, p)


def test_symmetric_scenes_have_events() -> None:
    """The three tests above compare something: an actor in the frame that moves."""
    seen = {"start": (6.1, 7.3), "velocity": (1.2, 0.4), "acceleration": (0.1, 0.0), "border": "bounce"}
    moving = actor("triangle", translation=seen, rotation={"start": 20.0, "velocity": 5.0, "acceleration": 0.1})
    moving["shear"]["velocity"] = 0.1
    original = simulated(moving, **FIELDS)
    assert len(original) > 50
    others = [changed(moving, shift=(1, 0)), changed(moving, mirror=True), changed(moving, quarter=True)]
    assert all(simulated(other, **FIELDS).digest != original.digest for other in others)


# Time


@given(st.lists(moving_actors(16, 12), min_size=1, max_size=3))
def test_twice_as_fast_shows_every_second_picture(actors: list[Any]) -> None:
    made: Config = config(*actors, steps=9)
    slow, fast = gerd.simulate(made, backend="torch"), gerd.simulate(made, backend="torch", time_scale=2.0)
    np.testing.assert_array_equal(fast.images(0, 5), slow.images()[::2])


# Mirrored outlines


@given(
    st.sampled_from([name for name in SHAPES if name != "circle"]),
    st.tuples(generic(2, 12), generic(2, 12)),
    generic(0, 360),
    generic(-1, 1),
)
def test_a_negative_size_is_a_mirrored_outline(shape: str, size: Point, turn: float, slant: float) -> None:
    form: dict[str, Any] = {"at": (8.03, 6.07), "turn": turn, "slant": slant, "velocity": [0.7, 0.3]}
    any_size = {"start": [-size[0], size[1]], "acceleration": 0.0, "limits": [None, None]}
    mirrored = {"polygon": [[[-x, y] for x, y in ring.tolist()] for ring in rings(SHAPES[shape])]}
    negative, other = simulated(actor(shape, **form, scale=any_size)), simulated(actor(mirrored, **form, size=size))
    assert negative.digest == other.digest
    np.testing.assert_array_equal(negative.images(), other.images())
    assert np.linalg.det(negative.T[0, 0, :2, :2]) == pytest.approx(-size[0] * size[1])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_turns_over_like_a_card(shape: str) -> None:
    """Its width goes from 10 to -10 and back, 1 a step; its area is width times height times that of the unit."""
    flipping = {"start": [10, 8], "velocity": [-1, 0], "acceleration": 0.0, "limits": [-10, 10]}
    recording = simulated(actor(shape, at=(8.03, 6.07), turn=20, scale=flipping), steps=41, upsampling=32)
    step = np.arange(41)
    np.testing.assert_array_equal(recording.parameters["scale_x"][:, 0], np.abs(step - 20) - 10)
    np.testing.assert_array_equal(recording.parameters_velocity["scale_x"][:40, 0], np.where(step < 20, -1, 1)[:40])
    r, width = math.radians(20), np.abs(step - 20) - 10
    expected = np.zeros((41, 2, 2))
    expected[:, :, 0] = width[:, None] * np.array([math.cos(r), math.sin(r)])
    expected[:, :, 1] = 8 * np.array([-math.sin(r), math.cos(r)])
    np.testing.assert_allclose(recording.T[:, 0, :2, :2], expected, atol=1e-14)
    areas = recording.images().sum(axis=(1, 2))
    np.testing.assert_allclose(areas, np.abs(width) * 8 * recording.shown.shapes[0][0].area, atol=0.8)
    assert areas[10] == areas[30] == 0  # seen from the edge
    assert len(recording) > 50
    assert np.isfinite(recording.flow()).all()


# The torus


LARGE: dict[str, Any] = {"width": 32, "height": 32, "steps": 12}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"size": [100, 3], "turn": 20}, r"the shape is 95×37\.02 pixels at time -1, larger than the torus of 32×32"),
        ({"size": [4, 33]}, "is 4×33 pixels at time -1"),
        ({"size": 26.0, "turn": 45}, r"is 36\.77×36\.77 pixels"),
        ({"scale": {"start": 30, "velocity": 0.4, "acceleration": 0}}, r"is 32\.4×32\.4 pixels at time 6"),
        ({"scale": {"start": 30, "velocity": {"factor": 1.02}, "acceleration": 0}}, "pixels at time 4"),
        ({"size": 25.0, "rotation": {"velocity": 3, "acceleration": 0}}, "pixels at time 7"),
        ({"shape": {"polygon": [[3, 3], [3.2, 3], [3, 3.2]]}, "size": 11.0}, r"is 35\.2×35\.2 pixels"),
    ],
)
@pytest.mark.parametrize("backend", ["torch", "cpu"])
def test_a_shape_larger_than_its_torus_is_refused(form: dict[str, Any], message: str, backend: str) -> None:
    if backend == "cpu":
        pytest.importorskip("numba")
    with pytest.raises(gerd.GerdError, match=rf"^actors\.0\.translation\.border: got 'wrap': .*{message}"):
        gerd.simulate(config(actor(border="wrap", **form), **LARGE), backend=backend)


@pytest.mark.parametrize(
    "form",
    [
        {"size": 32.0},
        {"size": 32.0, "turn": 90},
        {"size": 22.6, "turn": 45},
        {"size": 22.0, "shear": {"start": 0.1, "velocity": 0.02, "acceleration": 0}},  # one entry of T changes
    ],
)
def test_a_shape_that_just_fits_its_torus_covers_its_area(form: dict[str, Any]) -> None:
    images = simulated(actor(border="wrap", at=(3.3, 30.7), velocity=[1.3, 0.4], **form), **LARGE).images()
    np.testing.assert_allclose(images.sum(axis=(1, 2)), form["size"] ** 2, rtol=0.01)


@given(st.sampled_from(list(SHAPES)), generic(2, 7), generic(0, 360), generic(5, 7))
def test_a_wrapped_half_lies_on_the_other_side(shape: str, size: float, turn: float, y: float) -> None:
    form: dict[str, Any] = {"size": size, "turn": turn}
    wrapped = simulated(actor(shape, (0.01, y), border="wrap", **form)).images()
    halves = [simulated(actor(shape, (x, y), **form)).images() for x in (0.01, 16.01)]
    np.testing.assert_array_equal(wrapped, halves[0] + halves[1])
    assert halves[0].any()
    assert halves[1].any()


@given(st.sampled_from(list(SHAPES)), generic(2, 9), generic(0, 360), st.tuples(generic(0, 16), generic(0, 12)))
def test_the_picture_turns_around_the_torus(shape: str, size: float, turn: float, at: Point) -> None:
    """Whole pixels a step: the picture of step t is that of step 0, rolled; its sum never changes."""
    images = simulated(actor(shape, at, velocity=[1.0, -1.0], size=size, turn=turn, border="wrap"), steps=50).images()
    for step, image in enumerate(images):
        np.testing.assert_array_equal(image, np.roll(images[0], (-step, step), axis=(0, 1)))
    assert images[0].any()

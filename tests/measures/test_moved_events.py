"""Events of transformed scenes against transformed events: what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import gerd
from gerd import transformation
from gerd.errors import GerdError
from gerd.measures.moved_events import STEP, Located, distance, share_alone, twins
from gerd.recording.events import EVENT_DTYPE, Events
from gerd.scene.transformation import Transformation

SIDE, STEPS, STEP_US = 32, 21, 1000
SCENE = {
    "sensor": {"width": SIDE, "height": SIDE},
    "steps": STEPS,
    "timing": "exact",
    "integrator": {"initial": 0, "warmup": 0},
    "actors": [
        {
            "shape": "triangle",
            "translation": {"start": [14.3, 15.1], "velocity": [0.31, -0.17], "acceleration": 0, "border": "free"},
            "scale": {"start": 9, "acceleration": 0},
            "rotation": {"start": 12, "velocity": 1.3, "acceleration": 0},
        }
    ],
}


def events(*rows: tuple[int, int, int, bool]) -> Events:
    """Events (x, y, t, p) in a frame of 32×32 pixels."""
    array = np.array(list(rows), EVENT_DTYPE)
    return Events.from_array(array, width=SIDE, height=SIDE, step_us=STEP_US, duration=(STEPS - 1) * STEP_US)


ONE = (10, 12, 4000, True)


def pair(g: Transformation, *rows: tuple[int, int, int, bool]) -> tuple[Located, Located]:
    """Of a single event at (10, 12), ON, after 4000 µs, and what is recorded of the transformed scene."""
    return twins(events(ONE), events(*rows), g)


def alone(g: Transformation, *rows: tuple[int, int, int, bool]) -> float:
    return share_alone(*pair(g, *rows), SIDE, window_us=20)


def away(g: Transformation, *rows: tuple[int, int, int, bool]) -> float:
    return distance(*pair(g, *rows), STEP_US, cap=2.0)


@pytest.mark.parametrize(
    ("operation", "words"),
    [({"translate": [5, 3]}, "translation"), ({"rotate": 90}, "rotation"), ({"time_scale": 2}, "time_scale")],
)
def test_the_ideal_camera_has_every_event_where_pixels_go_to_pixels(operation: dict[str, object], words: str) -> None:
    x, g_x = gerd.simulate(SCENE), gerd.simulate({**SCENE, "transform": [operation]})
    expected, found = twins(x, g_x, g_x.transform)
    assert words in str(g_x.transform)
    assert len(found) > 50
    assert share_alone(expected, found, SIDE, window_us=2) == 0
    assert distance(expected, found, STEP_US, cap=2.0) < STEP * 2 / STEP_US  # times are rounded up to microseconds


def test_an_event_belongs_where_the_transformation_takes_it() -> None:
    quarter = transformation.rotation(90)  # (x, y) from the middle goes to (-y, x), clockwise on the screen
    assert alone(quarter, (19, 10, 4000, True)) == 0
    assert alone(transformation.translation(3, -2), (13, 10, 4000, True)) == 0
    assert alone(transformation.time_scale(2), (10, 12, 2000, True)) == 0
    assert alone(transformation.time_scale(2), (10, 12, 2021, True)) == 1


def test_what_has_no_counterpart_counts_on_both_sides() -> None:
    stay = transformation.identity()
    assert alone(stay, (10, 12, 4020, True), (11, 12, 4000, True)) == pytest.approx(1 / 3)
    assert alone(stay, (10, 12, 4000, False)) == 1  # another polarity
    assert alone(stay, (10, 12, 4021, True)) == 1
    assert alone(stay, (10, 12, 4000, True), (10, 12, 4001, True)) == pytest.approx(1 / 3)  # one each


def test_distances_are_in_pixels_and_capped() -> None:
    stay = transformation.identity()
    assert away(stay, (11, 12, 4000, True)) == pytest.approx(1)
    assert away(stay, (10, 12, 6000, True)) == pytest.approx(2 * STEP)
    assert away(stay, (20, 12, 4000, True)) == 2.0
    assert away(stay, (10, 12, 4000, False)) == 2.0
    larger = transformation.scale(2), (4, 8, 4000, True)  # (10.5, 12.5) goes to (5, 9), between pixels
    assert away(*larger) == pytest.approx(np.hypot(0.5, 0.5))
    with pytest.raises(GerdError, match="between pixels have no counterparts"):
        alone(*larger)
    boost = transformation.velocity(0.25)  # after four steps a pixel farther right
    assert away(boost, (11, 12, 4000, True)) == pytest.approx(0)


def test_what_only_one_of_both_could_have_is_left_out() -> None:
    far = transformation.translation(-11, 0)  # (10, 12) is taken out of the frame, and what enters comes from outside
    assert list(map(len, pair(far, (30, 5, 4000, True)))) == [0, 0]
    assert alone(far, (30, 5, 4000, True)) == away(far, (30, 5, 4000, True)) == 0
    late = transformation.time_scale(2)  # shows the path of 20 steps in 10
    assert list(map(len, pair(late, (10, 12, 2000, True), (10, 12, 10_001, True)))) == [1, 1]


def test_fewer_events_are_spread_over_all() -> None:
    some = Located.of(events(*((3, 3, t, True) for t in range(1000, 2000, 100))))
    assert some.fewer(4).t.tolist() == [1000, 1300, 1600, 1900]
    assert len(some.fewer(0)) == 0
    assert len(some.fewer(99)) == 10

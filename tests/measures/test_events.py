"""Measures on lists of events: what g does to events, against scenes that are simulated anew; verdicts; families."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gerd
from gerd import measure
from gerd.measures.acted import act_on_events
from gerd.recording.events import EVENT_DTYPE
from gerd.scene.transformation import (
    Transformation,
    acceleration,
    background,
    composed,
    identity,
    mirror,
    rotation,
    scale,
    time_scale,
    translation,
    velocity,
)

SIDE, STEPS = 48, 12
MOVED = translation(3, 0)
EXACT = [
    translation(3, -2),
    rotation(90),
    rotation(180),
    mirror("x"),
    mirror("y"),
    velocity(-1, 0),
    composed(mirror("x"), rotation(270), translation(-1, 0)),
]


def config(timing: str = "step", count: int = 1, speed: float = 1.0) -> gerd.Config:
    """A square that starts anywhere near the middle, without noise, from integrators at 0; its edges hit no centre."""
    return gerd.parse(
        {
            "sensor": {"width": SIDE, "height": SIDE},
            "steps": STEPS,
            "timing": timing,
            "time_scale": speed,
            "integrator": {"initial": 0.0, "warmup": 0},
            "actors": [
                {
                    "shape": "square",
                    "repeat": count,
                    "translation": {
                        "start": {"uniform": [18, 30]},
                        "velocity": [0.7013, 0.3011],
                        "acceleration": 0,
                        "border": "free",
                    },
                    "scale": {"start": 9.3007, "acceleration": 0},
                }
            ],
        }
    )


def mean_place(frames: Tensor) -> Tensor:
    seen = frames.cumsum(1).sum(2)
    x, y = torch.arange(frames.shape[-1]) + 0.5, torch.arange(frames.shape[-2]) + 0.5
    total = seen.sum((-1, -2)).clamp(min=1)
    return torch.stack([(seen.sum(-2) * x).sum(-1), (seen.sum(-1) * y).sum(-1)], dim=-1) / total[..., None]


def plain(recordings: list[gerd.Recording]) -> list[gerd.Events]:
    """The same events, of which nothing else is known."""
    size = {"width": SIDE, "height": SIDE}
    duration = (STEPS - 1) * recordings[0].step_us
    return [gerd.Events.from_array(each.events, **size, duration=duration) for each in recordings]


def transformed(g: Transformation, timing: str, index: int) -> gerd.Recording:
    """The recording of g·scene, simulated; `g` has one of the forms that a config knows."""
    words: dict[str, Any] = {
        "translation": {"translate": list(g.space.shift)},
        "rotation": {"rotate": g.amount},
        "mirror": {"mirror": g.name[-1:]},
        "velocity": {"boost": list(g.space.velocity)},
        "time_scale": {"time_scale": g.amount},
    }
    return gerd.simulate(config(timing), index, transform=[words[g.kind]])


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("g", [translation(3, -2), rotation(90), rotation(180), mirror("x"), mirror("y")], ids=str)
def test_whole_pixels_quarter_turns_and_mirrors_give_the_events_of_the_transformed_scene(
    g: Transformation, timing: str
) -> None:
    for index in range(3):
        acted = act_on_events(g, gerd.simulate(config(timing), index))
        assert len(acted.events) > 50
        assert not acted.rounded
        assert acted.lost == 0
        assert acted.events.digest == transformed(g, timing, index).digest


@pytest.mark.parametrize("factor", [0.5, 0.3, 2.0])
def test_time_scales_give_the_events_of_the_faster_or_slower_scene(factor: float) -> None:
    """To the microseconds to which the times of the events were rounded up before they were scaled."""
    before = gerd.simulate(config("exact"), 2)
    acted = act_on_events(time_scale(factor), before)
    wanted = transformed(time_scale(factor), "exact", 2).events
    wanted = wanted[wanted["t"] <= (STEPS - 1) * 1000 / max(1.0, factor) - 5]  # what x shows of the path
    found = acted.events.events
    found = found[found["t"] <= (STEPS - 1) * 1000 / max(1.0, factor) - 5]
    assert not acted.rounded
    assert len(found) == len(wanted) > 20
    order = [np.lexsort((each["t"], each["p"], each["x"], each["y"])) for each in (found, wanted)]
    found, wanted = found[order[0]], wanted[order[1]]
    assert all(np.array_equal(found[name], wanted[name]) for name in "xyp")
    assert np.abs(found["t"] - wanted["t"]).max() <= np.ceil(1 / factor)


@pytest.mark.parametrize("g", EXACT, ids=str)
def test_what_is_taken_back_is_as_it_was(g: Transformation) -> None:
    events = gerd.simulate(config("step"), 1)
    there = act_on_events(g, events)
    back = act_on_events(g.inverse(), there.events)
    assert (there.rounded, back.rounded) == (False, False)
    assert there.lost == 0
    assert back.events.digest == events.digest
    assert act_on_events(identity(), events).events.digest == events.digest


def test_every_event_goes_where_G_takes_its_pixel() -> None:
    """By hand: 1.5 times as large about (8, 6), a boost in microseconds, what leaves the frame, and what rounds."""
    rows = np.array([(8, 6, 1000, 1), (9, 7, 2000, 0), (15, 0, 3000, 1)], EVENT_DTYPE)
    events = gerd.Events.from_array(rows, width=16, height=12, duration=5000)

    def acted(g: Transformation) -> tuple[list[Any], bool, int]:
        found = act_on_events(g, events)
        return found.events.events.tolist(), found.rounded, found.lost

    # (8.5, 6.5) - (8, 6) = (0.5, 0.5) → (8.75, 6.75); (9.5, 7.5) → (10.25, 8.25); the third at (19.25, …) is outside.
    assert acted(scale(1.5)) == ([(8, 6, 1000, True), (10, 8, 2000, False)], True, 1)
    assert acted(velocity(1)) == ([(9, 6, 1000, True), (11, 7, 2000, False)], False, 1)  # 18 is outside
    assert acted(velocity(0.25)) == ([(8, 6, 1000, True), (10, 7, 2000, False)], True, 1)
    assert acted(acceleration(0, 2)) == ([(8, 7, 1000, True), (9, 11, 2000, False), (15, 9, 3000, True)], False, 0)
    assert acted(time_scale(0.5)) == ([(8, 6, 2000, True), (9, 7, 4000, False)], False, 1)
    assert acted(rotation(90))[1:] == (False, 1)  # of 16 by 12 pixels, about a corner of four of them
    later = gerd.Events.from_array(rows, width=16, height=12, first=1, duration=5000)
    assert act_on_events(time_scale(0.5), later).events.events["t"].tolist() == [
        1000,
        3000,
        5000,
    ]  # from its own step 0
    with pytest.raises(gerd.GerdError, match=r"changes the camera \(background"):
        acted(background(0.1))
    steps = gerd.simulate(config(), 0)
    assert act_on_events(time_scale(0.5), steps).rounded is False
    assert act_on_events(time_scale(1.5), steps).rounded is True


def test_errors_of_a_list_are_those_of_the_config_where_g_is_exact() -> None:
    recordings = gerd.simulate_batch(config(), range(20))
    for g in (translation(3, -2), rotation(90)):
        of_config = measure.equivariance_error(mean_place, config(), g, count=20)
        of_list = measure.equivariance_error(mean_place, recordings, g)
        assert np.array_equal(of_list.values, of_config.values)
        assert of_list.chance == of_config.chance
        assert (of_list.relative, of_list.changed, of_list.rounded) == (of_config.relative, 20, False)
        assert np.array_equal(
            measure.invariance_error(mean_place, recordings, g).values,
            measure.invariance_error(mean_place, config(), g, count=20).values,
        )
    assert (
        measure.assert_equivariant(
            mean_place, plain(recordings), translation(3, -2), tolerance=0.01, first_step=3
        ).chance
        is None
    )
    rounded = measure.equivariance_error(mean_place, recordings, rotation(30))
    assert rounded.rounded
    assert "events were rounded to pixels" in str(rounded)
    part = measure.equivariance_error(mean_place, recordings, rotation(90), first=5, count=8, batch=3)
    whole = measure.equivariance_error(mean_place, recordings, rotation(90))
    assert np.allclose(part.values[:, 1], whole.values[5:13, 1])


def test_the_rules_of_a_verdict_hold() -> None:
    recordings = gerd.simulate_batch(config(), range(12))
    truth = np.stack([each.truth[:, 0, 0, :2] for each in recordings])

    def why(model: Any, some: Any, g: Transformation = MOVED, **options: Any) -> str | None:
        return measure.equivariance_error(model, some, g, **options).why_no_verdict

    def guess(frames: Tensor) -> Tensor:
        """Somewhere that depends on the events, but not on where they are."""
        return torch.sin(frames.sum((1, 2, 3, 4))[:, None, None] * torch.tensor([13.7, 71.3])).expand(-1, STEPS, 2)

    events = plain(recordings)
    assert why(mean_place, recordings) is None
    assert why(mean_place, recordings[:5]) == "5 recordings: allowed for a verdict: 6 or more"
    assert "the transformation changes the frames of none" in str(why(mean_place, events, rotation(360)))
    assert (
        why(lambda frames: torch.zeros(len(frames), STEPS, 2), events) == "the model says the same of every recording"
    )
    assert "the model is at chance" in str(why(guess, recordings))
    assert "the model is at chance" in str(why(guess, events, truth=truth))
    assert why(mean_place, events, truth=truth) is None
    with pytest.raises(AssertionError, match="no verdict on whether"):
        measure.assert_equivariant(guess, recordings, translation(3, 0), tolerance=9)

    classes = np.arange(12) % 2
    scores = lambda frames: frames.sum((1, 3, 4))  # noqa: E731  # OFF, ON: knows nothing of these classes
    assert "the model is at chance" in str(why(scores, events, rotation(90), acts="scores", truth=classes))


def test_curves_of_events_have_the_truth_that_g_moves() -> None:
    recordings = gerd.simulate_batch(config(), range(12))
    amounts = [translation(x) for x in (-4, 0, 4)]
    of_config = measure.generalisation_curve(mean_place, config(), amounts, count=12)
    of_list = measure.generalisation_curve(mean_place, recordings, amounts)
    truth = np.stack([each.truth[:, 0, 0, :2] for each in recordings])
    given = measure.generalisation_curve(mean_place, plain(recordings), amounts, truth=truth)
    for one, other, third in zip(of_config.errors, of_list.errors, given.errors, strict=True):
        assert np.allclose(one, other)
        assert np.allclose(one, third)
    assert np.allclose(of_config.chance, of_list.chance)
    assert (of_list.trained, of_list.at_chance()) == (0.0, of_config.at_chance())
    measure.assert_flat(mean_place, recordings, amounts, bound=1.01)


def test_a_family_that_was_recorded_is_measured_like_a_simulated_one() -> None:
    """As `gerd register` gives it: recordings of a camera with their truth, of one stimulus at several speeds."""
    speeds = (0.5, 1.0, 2.0)
    family = {s: gerd.simulate_batch(config("exact", speed=s), range(12)) for s in speeds}
    curve = measure.recorded_curve(mean_place, family)
    wanted = measure.generalisation_curve(mean_place, config("exact"), [time_scale(s) for s in speeds], count=12)
    assert curve.amounts == wanted.amounts == speeds
    assert all(np.allclose(one, other) for one, other in zip(curve.errors, wanted.errors, strict=True))
    assert np.allclose(curve.chance, wanted.chance)
    assert curve.trained == 1.0
    pair = measure.equivariance_error(mean_place, family[1.0], time_scale(0.5), transformed=family[0.5])
    again = measure.equivariance_error(mean_place, config("exact"), time_scale(0.5), count=12)
    assert np.allclose(pair.values, again.values)


def test_wrong_lists_say_what_is_allowed() -> None:
    recordings = gerd.simulate_batch(config(), range(6))
    for message, some, options in [
        ("count", recordings, {"count": 7}),
        ("first", recordings, {"first": 6}),
        ("truth: has 5, and there are 6 recordings", recordings, {"truth": np.zeros((5, STEPS, 2))}),
        (r"truth: has the axes \(3, 2\) .*allowed: places \(12, 2\)", recordings, {"truth": np.zeros((6, 3, 2))}),
        ("transformed: has 1", recordings, {"transformed": recordings[:1]}),
        ("events: has recordings of 48×48 pixels in 5 steps and", [*recordings[:3], recordings[3].window(0, 5)], {}),
        ("count", [], {}),
        ("truth.*goes with a list of events", config(), {"truth": np.zeros(3)}),
    ]:
        with pytest.raises(gerd.GerdError, match=message):
            measure.equivariance_error(mean_place, some, translation(1), **options)
    with pytest.raises(gerd.GerdError, match="these events have no ground truth"):
        measure.generalisation_curve(mean_place, plain(recordings), [translation(1)])
    with pytest.raises(gerd.GerdError, match="a class, 0 or more"):
        measure.equivariance_error(mean_place, recordings, translation(1), acts="scores", truth=np.zeros((6, 2)))
    with pytest.raises(gerd.GerdError, match="family: has no amounts"):
        measure.recorded_curve(mean_place, {})

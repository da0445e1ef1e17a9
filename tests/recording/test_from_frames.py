"""Pictures to events: a simulation's own pictures, closed forms, and what is refused."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import gerd

# At rest until step 0, so that nothing happens before the first picture.
SCENE = """
sensor: {width: 40, height: 36}
steps: 40
seed: 5
camera: {number: 3}
actors:
  - shape: square
    intensity: 0.7
    scale: {start: 12, acceleration: 0}
    translation: {start: [15, 15], velocity: 0, acceleration: {expression: "0.05 * max(sign(t), 0)"}}
  - shape: circle
    intensity: -0.4
    scale: {start: 10, acceleration: 0}
    translation: {start: [25, 22], velocity: 0, acceleration: {expression: "-0.03 * max(sign(t), 0)"}}
"""
CAMERAS: list[dict[str, Any]] = [
    {},
    {"integrator.initial": 0.5, "integrator.reset": "zero", "upsampling": 4},
    {"integrator.threshold": {"on": 0.3, "off": 0.4, "spread": 0.05}, "noise.hot.share": 0.02},
    {"integrator.response": {"log": 0.5}, "integrator.threshold": 0.2},
    {"integrator.refractory_us": 2500, "integrator.threshold": 0.1},
    {"noise.background": {"on": 0.002, "off": 0.001}, "noise.event": 0.1, "noise.dead": 0.05, "step_us": 700},
]


def events_of(brightness: list[float], times: list[int], **values: Any) -> list[tuple[int, bool]]:
    """The events of one pixel whose integrator starts at 0."""
    frames = np.array(brightness, np.float64)[:, None, None]
    made = gerd.from_frames(frames, times, timing="exact", **{"integrator.initial": 0.0, **values})
    return [(int(each["t"]), bool(each["p"])) for each in made.events]


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_pictures_of_a_simulation_give_its_events(camera: dict[str, Any]) -> None:
    recording = gerd.simulate(SCENE, 7, **camera)
    made = gerd.from_frames(recording.images(), np.arange(40) * recording.step_us, SCENE, index=7, **camera)
    assert len(made) > 100
    assert made.digest == recording.digest
    assert np.array_equal(made.background, recording.background)
    assert (made.steps, made.step_us, made.exact) == (40, recording.step_us, False)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_so_it_is_in_exact_timing_where_brightness_is_linear_between_pictures(camera: dict[str, Any]) -> None:
    """At a quarter of a pixel per step a simulation looks at its picture at whole steps."""
    family = {
        "sensor": {"width": 24, "height": 20},
        "steps": 30,
        "integrator": {"warmup": 0},
        "actors": [
            {
                "shape": "square",
                "intensity": 0.7,
                "scale": {"start": 6, "acceleration": 0},
                "translation": {"start": [8, 9], "velocity": [0.25, 0], "acceleration": 0},
            }
        ],
    }
    fields = {"integrator.initial": "uniform", **camera, "timing": "exact"}
    recording = gerd.simulate(gerd.parse(family), 3, **fields)
    made = gerd.from_frames(recording.images(), np.arange(30) * recording.step_us, family, index=3, **fields)
    assert len(made) > 40
    assert made.digest == recording.digest
    assert np.array_equal(made.background, recording.background)


def test_a_ramp_passes_thresholds_at_known_times() -> None:
    rising = [(250 * k, True) for k in (1, 2, 3, 4)]
    assert events_of([0, 1], [0, 1000], **{"integrator.threshold": 0.25}) == rising
    assert events_of([0, 1], [0, 999], **{"integrator.threshold": 0.25}) == [
        (250, True),
        (500, True),
        (750, True),
        (999, True),
    ]
    # Up by 1 in 1 ms, still for 3 ms, down by 1 in 2 ms, with pictures at no equal times; OFF events at 0.125.
    thresholds = {"integrator.threshold": {"on": 0.25, "off": 0.125}}
    falling = [(4000 + 250 * k, False) for k in range(1, 9)]
    assert events_of([0, 0.5, 1, 1, 0], [0, 500, 1000, 4000, 6000], **thresholds) == rising + falling
    assert events_of([1, 0], [7000, 8000], **thresholds) == [(7000 + 125 * k, False) for k in range(1, 9)]
    assert events_of([0.25], [3]) == []
    # From 0.5 to 8 the logarithm rises by 4 ln 2, and is linear in between.
    log = {"integrator.response": {"log": 0.5}, "integrator.threshold": 0.6931}
    assert events_of([0, 7.5], [0, 400], **log) == [(100 * k, True) for k in (1, 2, 3, 4)]


def test_brightness_may_have_any_type_and_come_one_by_one() -> None:
    times = np.arange(20) * 1000
    grey = np.random.default_rng(1).integers(0, 256, (20, 9, 11), dtype=np.uint8)
    wanted = gerd.from_frames(grey, times).digest
    for same in (grey / 255, list(grey), torch.from_numpy(grey), (grey.astype(np.uint16) * 257), iter(grey)):
        assert gerd.from_frames(same, times).digest == wanted
    assert gerd.from_frames(grey > 99, times).digest == gerd.from_frames((grey > 99).astype(np.float32), times).digest
    assert gerd.from_frames(grey, times, {"seed": 1}).digest != wanted
    assert gerd.from_frames(grey, times, index=1).digest != wanted


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_windows_are_the_whole_and_pictures_are_not_kept(timing: str) -> None:
    times, taken, told = 5000 + np.arange(400) * 1000, [], []
    random = np.random.default_rng(2)
    pictures = np.cumsum(random.normal(0, 0.1, (400, 160, 160)), axis=0, dtype=np.float32)

    def one_by_one() -> Iterator[np.ndarray[Any, Any]]:
        for number, picture in enumerate(pictures):
            taken.append(number)
            yield picture

    noisy = {"timing": timing, "noise.background": 0.0001, "noise.event": 0.1}
    whole = gerd.from_frames(pictures, times, title="it", **noisy)
    windows = gerd.windows_from_frames(one_by_one(), times, progress=told.append, **noisy)
    parts = [next(windows)]
    assert len(taken) < 350
    parts += windows
    assert sum(told) == 400
    assert np.array_equal(np.concatenate([each.events for each in parts]), whole.events)
    assert np.array_equal(np.concatenate([each.background for each in parts]), whole.background)
    assert [each.first for each in parts] == [5, *np.cumsum([each.steps for each in parts])[:-1] + 5]
    assert (whole.first, whole.name, len(parts) > 2) == (5, "it", True)
    assert whole.events["t"].min() > 5000 - (timing == "step")


def test_what_is_wrong_with_pictures_is_named() -> None:
    def refused(message: str, frames: Any, times: Any, config: Any = None, **values: Any) -> None:
        with pytest.raises(gerd.GerdError, match=message):
            gerd.from_frames(frames, times, config, **values)

    good = np.zeros((3, 4, 5))
    times = [0, 1000, 2000]
    refused("there are 3, and 4 times in times_us; allowed: as many", good, [*times, 3000])
    refused("more than the 2 times in times_us", good, [0, 1000])
    refused("there are none", [], times)
    refused(r"picture 1 has the axes \(4, 6\), and picture 0 \(4, 5\)", [good[0], np.zeros((4, 6)), good[0]], times)
    refused(r"picture 0 is uint8 with the axes \(4, 5, 3\); allowed: .* grey", np.zeros((3, 4, 5, 3), np.uint8), times)
    refused("picture 0 is int64", good.astype(int), times)
    refused(
        "picture 2 has the brightness nan at x 3, y 1",
        [good[0], good[0], np.where(np.arange(20) == 8, np.nan, 0).reshape(4, 5)],
        times,
    )
    refused("allowed with these pixels: -8192 to 8192", good + 1e5, times)
    log = {"integrator.response": {"log": 0.1}}
    refused("brightness -0.1 .*allowed with these pixels: more than -0.1, up to 8192", good - 0.1, times, **log)
    refused("one whole number of microseconds for each picture", good, [0.0, 1.0, 2.0])
    refused("picture 2 at 5 µs comes after one at 5 µs; allowed: ascending", good, [0, 5, 5])
    refused("begins with -1; allowed: 0 or more", good, [-1, 0, 1])
    refused("1000 to 2000 µs apart; allowed in step timing: .*timing='exact'", good, [0, 1000, 3000])
    refused("noise.shape.*allowed here: 0", good, times, {"noise": {"shape": 0.1}})
    refused("integrator.initial.*allowed for pictures of others", good, times, **{"integrator.initial": "stationary"})
    refused("actors", good, times, {"actor": []})
    refused("up to .* steps", good, [0, 2**62, 2**62 + 1], timing="exact")

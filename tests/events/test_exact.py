"""Exact timing: events at the instants at which thresholds are passed, as often as they are.

Truths from elsewhere: a camera in continuous time with closed-form areas (`support.continuous`), the group laws, and a
fit of optical flow that needs good times. That all backends agree, and with an oracle, is tested with the others.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import continuous
from support.crossing import SQUARE, Crossing, agreement, by_pixel
from support.scenes import FALSE_ALARM, actor, config, generic, moving_actors

import gerd
from gerd.config.config import Config
from gerd.config.sweep import with_values
from gerd.errors import GerdError

SCALES = [0.25, 0.35, 0.5, 0.7, 1.4, 2.0, 2.8, 4.0]


def exact(*actors: dict[str, Any], **fields: Any) -> Config:
    return config(*actors, timing="exact", **fields)


def test_the_continuous_camera_knows_areas() -> None:
    """The checker itself: areas add up, and a camera that is late or deaf is noticed."""
    points = 9.0 * SQUARE @ np.array([[0.8, 0.6], [-0.6, 0.8]]) + 10.3
    assert continuous.polygon_area(points, 20, 20).sum() == pytest.approx(81.0)
    assert continuous.ellipse_area((9.3, 10.1), (5.0, 3.0), 20, 20).sum() == pytest.approx(15 * math.pi)
    scene = Crossing("circle", 4, 0.3)
    made, truth = scene.recorded(8), scene.truth()
    share, apart = agreement(made, truth)
    late = {at: [(t + 0.1, p) for t, p in events] for at, events in made.items()}
    assert agreement(late, truth)[1] > apart + 0.09
    deaf = {at: events[:-1] for at, events in made.items()}
    assert agreement(deaf, truth)[0] < share / 2


@pytest.mark.parametrize(
    "scene",
    [
        Crossing("square", 1.0, 0.5, turn=17.0),
        Crossing("circle", 2.0, 0.1),
        Crossing("square", 8.0, 0.1, turn=17.0),
        Crossing("circle", 8.0, 0.7),
    ],
    ids=lambda scene: f"{scene.shape}-{scene.speed:g}-{scene.threshold:g}",
)
def test_events_are_those_of_a_camera_in_continuous_time(scene: Crossing) -> None:
    """In number and time; what is left is the grid of sub-pixels, and shrinks with it."""
    truth = scene.truth()
    found = []
    for upsampling, least in ((2, 0.9), (8, 0.99), (32, 0.999)):
        share, apart = agreement(scene.recorded(upsampling), truth)
        assert share >= least
        assert upsampling == 2 or apart <= max(0.03, 0.5 / (upsampling * scene.speed))
        found.append((share, -apart))
    assert found == sorted(found)


@settings(max_examples=30)
@given(st.data(), st.sampled_from(SCALES))
def test_a_family_is_exactly_covariant(data: st.DataObject, scale: float) -> None:
    """The events of a scene that runs `scale` times as fast are the same, pixel by pixel, at times divided by it."""
    made = exact(
        *data.draw(st.lists(moving_actors(21, 15), min_size=1, max_size=3)),
        width=21,
        height=15,
        steps=4,
        integrator={"threshold": 0.3, "warmup": 2},
    )
    base = by_pixel(gerd.simulate(made, 5))
    scaled = by_pixel(gerd.simulate(made, 5, time_scale={"factor": scale, "keep": "path"}))
    assert scaled.keys() == base.keys()
    for at, events in base.items():
        assert [p for _, p in scaled[at]] == [p for _, p in events]
        for (fast, _), (slow, _) in zip(scaled[at], events, strict=True):
            assert abs(fast * scale - slow) * 1000 <= max(1.0, scale)


def test_a_plain_time_scale_shows_more_of_the_same_events() -> None:
    made = exact(actor(at=[3.3, 6.1], velocity=[0.9, 0.2]), steps=5, integrator={"warmup": 1})
    slow, fast = (gerd.simulate(made, time_scale=scale).events for scale in (0.5, 2.0))
    assert 0 < len(slow) < len(fast)
    whole = np.sort(slow[["x", "y", "p"]])
    beginning = np.sort(fast[fast["t"] * 2.0 <= 2000][["x", "y", "p"]])
    assert np.array_equal(whole, beginning)


@settings(max_examples=15)
@given(st.data())
def test_symmetries_act_on_events_and_times(data: st.DataObject) -> None:
    """Shifts by whole pixels, quarter turns, mirrors; and a negative of the scene swaps the polarities."""
    side = 17
    place = [data.draw(generic(5, 12)), data.draw(generic(5, 12))]
    moving = actor(
        data.draw(st.sampled_from(["square", "circle", "triangle", "concave"])),
        at=place,
        velocity=[data.draw(generic(-2, 2)), data.draw(generic(-2, 2))],
        size=data.draw(generic(3, 6)),
        turn=data.draw(generic(0, 360)),
    )
    made = exact(moving, width=side, height=side, steps=4, integrator={"threshold": 0.3, "initial": 0.0, "warmup": 0})
    events = gerd.simulate(made).events
    x, y, t, p = (events[name].astype(int) for name in ("x", "y", "t", "p"))
    end = side - 1
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"translate": [3.0, -2.0]}, (x + 3, y - 2, t, p)),
        ({"rotate": 90.0}, (end - y, x, t, p)),
        ({"mirror": "x"}, (end - x, y, t, p)),
    ]
    for transform, (gx, gy, gt, gp) in cases:
        moved = gerd.simulate(made, transform=[transform]).events
        seen = (gx >= 0) & (gx < side) & (gy >= 0) & (gy < side)
        expected = sorted(zip(gt[seen], gy[seen], gx[seen], gp[seen], strict=True))
        found = sorted((int(e["t"]), int(e["y"]), int(e["x"]), int(e["p"])) for e in moved)
        if transform.get("translate"):  # what comes in from outside was not seen before
            inside = lambda e: 0 <= e[2] - 3 < side and 0 <= e[1] + 2 < side  # noqa: E731
            found = [event for event in found if inside(event)]
        assert found == expected
    negative = gerd.simulate(made, **{"actors.0.intensity": -1.0}).events
    assert np.array_equal(negative["t"], events["t"])
    assert np.array_equal(negative["p"], ~events["p"])


def plane_fits(events: np.ndarray, velocity: np.ndarray, side: int) -> tuple[float, float]:
    """Failures and median relative error of the flow from planes fitted to the times of ON events, 3×3 pixels."""
    first = np.full((side, side), np.inf)
    on = events[events["p"]]
    np.minimum.at(first, (on["y"], on["x"]), on["t"] / 1000)
    errors, failures, grid = [], 0, np.stack([*np.mgrid[-1:2, -1:2], np.ones((3, 3))], -1).reshape(-1, 3)
    for y in range(1, side - 1):
        for x in range(1, side - 1):
            times = first[y - 1 : y + 2, x - 1 : x + 2].ravel()
            if not np.isfinite(times).all() or times.max() - times.min() > 5 / np.linalg.norm(velocity):
                continue  # not one moving edge
            (down, right, _), *_ = np.linalg.lstsq(grid, times, rcond=None)
            gradient = np.array([right, down])
            size = gradient @ gradient
            if size < 1e-6:
                failures += 1
                continue
            normal = gradient / np.sqrt(size)
            errors.append(abs(1 / np.sqrt(size) / (normal @ velocity) - 1))
    return failures / (failures + len(errors)), float(np.median(errors))


def test_planes_fit_the_times_of_a_fast_edge() -> None:
    """Local plane fits of optical flow at 4 px/step: none fails, and they are as good as with 16 sub-steps."""
    velocity, side = np.array([3.9, 0.87]), 90
    made = config(
        actor(at=[18.3, 33.1], velocity=velocity.tolist(), size=30.0, turn=12.0),
        width=side,
        height=side,
        steps=11,
        integrator={"threshold": 0.3, "initial": 0.0, "warmup": 0},
    )
    step = plane_fits(gerd.simulate(made).events, velocity, side)
    finer = gerd.simulate(made, time_scale=1 / 16, steps=161).events
    finer["t"] //= 16
    sub_steps = plane_fits(finer, velocity, side)
    exactly = plane_fits(gerd.simulate(made, timing="exact").events, velocity, side)
    assert step[0] > 0.1  # the fit does notice times that are all the same
    assert exactly[0] == 0
    assert exactly[1] <= sub_steps[1]


def test_stationary_integrators_fire_alike_from_the_first_pass_on() -> None:
    """ON and OFF events of the first pass balance, with a probability of a false alarm of 1e-6."""
    passing = actor("circle", at=[-20.3, 30.1], velocity=[4.1, 0.0], size=23.0)
    fields: dict[str, Any] = {"width": 60, "height": 60, "steps": 26}
    counts = []
    for initial in ("stationary", "uniform"):
        made = exact(passing, integrator={"threshold": 0.4, "initial": initial, "warmup": 0}, **fields)
        polarity = np.concatenate([gerd.simulate(made, index).events["p"] for index in range(4)])
        counts.append((int(polarity.sum()), len(polarity)))
    (on, total), (uneven, of) = counts
    allowed = 4.9 * math.sqrt(total) / 2  # standard deviations at FALSE_ALARM, if events were independent
    assert FALSE_ALARM == 1e-6
    assert abs(on - total / 2) < allowed
    assert abs(uneven - of / 2) > 4.9 * math.sqrt(of) / 2


def test_fast_edges_lose_no_events() -> None:
    """A bar of 2 px at 4 px/step: step timing sees one pixel in two; exact timing sees all of them rise and fall."""
    bar = actor(at=[4.3, 8.0], velocity=[4.0, 0.0], size=[2.0, 10.0])
    made = config(bar, width=64, height=16, steps=12, integrator={"threshold": 0.3, "initial": 0.0, "warmup": 0})
    rows = slice(4, 12)
    for timing, expected in (("step", None), ("exact", 6.0)):
        counts = gerd.simulate(made, timing=timing).frames(counts=True)[:, :, rows, 12:40].sum((0, 1)).float()
        if expected is None:
            assert counts.mean() < 4
        else:
            assert torch_equal(counts, expected)


def torch_equal(counts: Any, value: float) -> bool:
    return bool((counts == value).all())


CROWD = exact(
    actor("circle", at=[9.3, 6.4], velocity=[1.7, 0.6], size=7.0),
    actor("square", at=[20.2, 7.1], velocity=[-2.6, 0.2], size=6.5, turn=20.0, intensity=-0.7),
    width=30,
    height=14,
    steps=7,
    step_us=90,
    integrator={"threshold": 0.1, "warmup": 1},
    noise={"background": 0.01, "event": 0.1, "shape": 0.02},
)


def test_times_of_a_recording() -> None:
    recording = gerd.simulate(CROWD, 3)
    t = recording.events["t"]
    assert (np.diff(t) >= 0).all()
    assert t.min() > 0
    assert t.max() <= 6 * 90
    steps = recording.coordinates[:, 0]
    assert np.array_equal(steps, -(-t // 90))
    assert len(np.unique(t % 90)) > 60  # times are not those of steps
    part = recording.window(2, 5)
    inside = (steps >= 2) & (steps < 5)
    assert np.array_equal(part.events, recording.events[inside])
    assert recording.digest != gerd.simulate(CROWD, 3, timing="step").digest


def test_frames_are_bins_of_time() -> None:
    recording = gerd.simulate(CROWD, 3)
    events = recording.events
    counts = np.zeros((7, 2, 14, 30), np.int64)
    np.add.at(counts, (-(-events["t"] // 90), events["p"].astype(int), events["y"], events["x"]), 1)
    assert counts.max() > 1
    assert np.array_equal(recording.frames(counts=True).numpy(), counts)
    assert np.array_equal(recording.frames().numpy(), counts > 0)
    assert np.array_equal(recording.sparse().to_dense().numpy(), counts > 0)
    fine = recording.frames(1, counts=True, bin_us=10).numpy()
    assert fine.shape == (54, 2, 14, 30)
    assert np.array_equal(fine.reshape(6, 9, 2, 14, 30).sum(1), counts[1:])
    late = events[(events["t"] > 90) & (events["t"] <= 100)]
    assert fine[9].sum() == len(late)
    uneven = recording.frames(bin_us=200)
    assert len(uneven) == math.ceil(7 * 90 / 200)
    for wrong in (0, 1.5, True):
        with pytest.raises(GerdError, match="bin_us"):
            recording.frames(bin_us=wrong)  # type: ignore[arg-type]
    stepwise = gerd.simulate(CROWD, 3, timing="step")
    assert np.array_equal(stepwise.frames(bin_us=90), stepwise.frames())


def test_counts_stop_at_255() -> None:
    bright = actor(at=[3.0, 3.0], velocity=[2.0, 0.0], size=4.0, intensity=8.0)
    made = exact(bright, width=12, height=6, steps=4, integrator={"threshold": 0.01, "initial": 0.0, "warmup": 0})
    counts = gerd.simulate(made).frames(counts=True)
    assert counts.max() == 255


def test_chunks_and_endless_recordings_have_the_same_events() -> None:
    whole = gerd.simulate(with_values(CROWD, {"time_scale": 0.7}), 2)
    for chunk in (1, 3):
        windows = list(gerd.simulate_chunks(CROWD, 2, chunk=chunk, time_scale=0.7))
        assert np.array_equal(np.concatenate([window.events for window in windows]), whole.events)
    endless = gerd.simulate_chunks(CROWD, 2, chunk=5, endless=True, time_scale=0.7)
    first, second = next(endless), next(endless)
    joined = np.concatenate([first.events, second.events])
    assert np.array_equal(joined[joined["t"] <= 540], whole.events)


def test_a_step_that_is_too_long_for_keys_is_refused() -> None:
    with pytest.raises(gerd.ConfigError, match="steps"):
        gerd.parse("steps: 100000000\nstep_us: 1000000000\ntiming: exact\nactors: []")


def test_datasets_carry_the_times(tmp_path: Path) -> None:
    """Files, windows, items, streams and verify; to the microsecond."""
    data = gerd.generate(CROWD, tmp_path / "data", count=3, workers=1)
    for index, recording in enumerate(data):
        made = gerd.simulate(CROWD, index)
        assert np.array_equal(recording.events, made.events)
        assert recording.digest == made.digest
    assert not any(faults for _, faults in gerd.verify(tmp_path / "data", regenerate=True))
    window = gerd.Dataset(tmp_path / "data", item="events", label=None, steps=3)[1][0]
    made = gerd.simulate(CROWD, 0).window(3, 6).events
    assert np.array_equal(window["t"], made["t"] - 2 * 90 - 1)
    counts = gerd.Dataset(tmp_path / "data", item="counts", label=None)[1][0]
    assert np.array_equal(counts, gerd.simulate(CROWD, 1).frames(counts=True))
    summed = gerd.Dataset(tmp_path / "data", item="counts", label=None, sum=7)[1][0]
    assert np.array_equal(summed[0], gerd.simulate(CROWD, 1).frames(counts=True).sum(0))
    batch, _ = next(iter(gerd.Stream(CROWD, batch_size=2, item="counts", label=None)))
    assert np.array_equal(batch[1], gerd.simulate(CROWD, 1).frames(counts=True))


def test_stages_are_those_at_the_end_of_each_step() -> None:
    """Conservation: what a pixel has seen change is in its integrator, or was fired; and none holds a threshold."""
    recording = gerd.simulate(CROWD, 3)
    stages = recording.stages(1, 6)
    assert np.array_equal(stages.events, recording.frames(1, 6))
    assert (stages.fired >= stages.kept).all()
    assert (stages.events >= stages.kept).all()
    threshold = stages.thresholds[0, 0, 0]
    assert (stages.thresholds == threshold).all()
    assert (np.abs(stages.integrator) < threshold).all()
    loud = gerd.simulate(CROWD, 3, **{"noise.event": 0.0, "noise.background": 0.0}).frames(1, 6, counts=True).numpy()
    net = loud[1:, 1].astype(int) - loud[1:, 0]
    assert np.array_equal(np.diff(stages.integrator, axis=0) + threshold * net, stages.difference[1:])
    assert np.array_equal(stages.coverage / stages.full, gerd.simulate(CROWD, 3).images(1, 6))


def test_shape_noise_is_seen_in_every_step_at_every_scale() -> None:
    """Slow scenes have fewer instants than steps: the ends of steps are instants, too."""
    slow = actor("square", at=[16.2, 16.3], velocity=[0.1, 0.0], size=20.0)
    made = exact(slow, width=32, height=32, steps=41, noise={"shape": 0.05}, integrator={"threshold": 0.4})
    counts = [len(gerd.simulate(made, time_scale={"factor": s, "keep": "path"})) for s in (1, 0.25, 0.1)]
    assert max(counts) < 1.2 * min(counts)
    assert (gerd.simulate(made, time_scale=0.1).frames().sum((1, 2, 3))[1:] > 0).all()


def test_every_event_has_a_cause_however_short_a_step_is() -> None:
    for step_us in (1, 7):
        recording = gerd.simulate(with_values(CROWD, {"step_us": step_us, "noise.background": 0.0}), 3)
        assert len(recording) > 100
        assert set(recording.actor) == {0, 1}
        assert np.isfinite(recording.event_flow).all()


def test_what_lies_beyond_the_last_step_is_not_recorded() -> None:
    """The simulation runs a little farther; times there may be too large for a key."""
    fields: dict[str, Any] = {"width": 600, "height": 40, "steps": 3, "time_scale": 0.001}
    fast = actor("circle", at=[20.0, 20.0], velocity=[60.0, 0.0], size=20.0)
    made = exact(fast, integrator={"threshold": 0.3, "warmup": 0}, **fields)
    recordings = [
        gerd.simulate(made, step_us=step_us, backend=name) for step_us in (1000, 10**9) for name in ("cpu", "torch")
    ]
    assert len({len(recording) for recording in recordings}) == 1
    assert len(recordings[0]) > 0


def test_short_and_endless_paths() -> None:
    kept: dict[str, Any] = {"time_scale": {"factor": 2.0, "keep": "path"}}
    still = with_values(CROWD, {"steps": 1, "integrator.warmup": 0, "noise.background": 0.5, **kept})
    assert len(gerd.simulate(still)) == 0
    endless = gerd.simulate_chunks(CROWD, 3, chunk=5, endless=True, **kept)
    _, later = next(endless), next(endless)
    assert len(later) > 0
    assert (later.actor[~later.background] >= 0).all()
    assert np.array_equal(later.stages(0, 2).events, later.frames(0, 2))
    with pytest.raises(GerdError, match="take wider bins"):
        gerd.simulate(with_values(CROWD, {"step_us": 10**9})).frames(bin_us=1)

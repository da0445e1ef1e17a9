"""What happens behind pixels, against the slow definition, closed forms and statistics; however recordings are made.

Each statistical test may fail with a probability of `FALSE_ALARM` if the program is right; seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support import oracle
from support.scenes import FALSE_ALARM, actor, config, filtered_configs

import gerd
from gerd.config.config import Config
from gerd.events import backends
from gerd.events.pixel.readout import Bus
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene import transformation
from gerd.scene.draw import draw

FIELDS = ("t", "y", "x", "p")
NOISE = {"background": 0.02, "hot": {"share": 0.05, "rate_hz": 500.0}}


def rows(recording: Recording) -> list[tuple[int, ...]]:
    """Of each event its time, place, polarity and source, and when it fired."""
    columns = (*(recording.events[name] for name in FIELDS), recording.source, recording.fired_us)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def passing(readout: dict[str, Any], **fields: Any) -> Config:
    """Two shapes that pass each other, in exact timing, with noise."""
    shapes = (actor(velocity=[0.9, 0.2], at=[4.1, 5.3]), actor("circle", velocity=[-0.8, 0.1], at=[13.2, 6.1]))
    fields = {"steps": 12, "noise": NOISE, **fields}
    fields = {"timing": "exact", **fields}
    return config(*shapes, integrator={"threshold": 0.1}, readout=readout, **fields)


def noisy(readout: dict[str, Any], **fields: Any) -> Recording:
    """Background noise only, thousands of events."""
    fields = {"steps": 60, "noise": {"background": 0.3}, **fields}
    return gerd.simulate(config(width=40, height=30, timing="exact", readout=readout, **fields))


@settings(max_examples=40, deadline=None)
@given(filtered_configs(), st.integers(0, 2**32 - 1), st.sampled_from([1, 3]))
def test_any_camera_of_any_scene(made: Config, index: int, chunk: int) -> None:
    truth = gerd.simulate(made, index, backend="torch")
    assert rows(truth) == oracle.events(truth.scene)
    for other in (gerd.simulate(made, index, chunk=chunk), gerd.simulate_batch(made, [5, index])[1]):
        assert rows(other) == rows(truth)


def test_the_comparison_can_fail() -> None:
    readout = {"latency_us": 200.0, "jitter_us": 50.0, "events_per_ms": 60.0}
    truth = gerd.simulate(passing(readout))
    assert rows(truth) == oracle.events(truth.scene)
    for change in ({"latency_us": 201.0}, {"jitter_us": 50.5}, {"events_per_ms": 60.5}):
        assert rows(truth) != oracle.events(gerd.simulate(passing({**readout, **change})).scene)


def test_a_latency_moves_all_events_and_nothing_else() -> None:
    plain, late = gerd.simulate(passing({})), gerd.simulate(passing({"latency_us": 2345.0}))
    arrive = plain.events["t"] + 2345 <= 11_000  # before the recording ends
    assert 0 < arrive.sum() < len(plain)
    assert np.array_equal(late.events["t"], plain.events["t"][arrive] + 2345)
    assert np.array_equal(late.fired_us, plain.fired_us[arrive])
    for name in ("x", "y", "p"):
        assert np.array_equal(late.events[name], plain.events[name][arrive])
    assert np.array_equal(late.source, plain.source[arrive])
    assert np.array_equal(late.truth, plain.truth)


def test_jitter_is_normal() -> None:
    recording = noisy({"latency_us": 2000.0, "jitter_us": 300.0}, steps=90)
    delay = (recording.events["t"] - recording.fired_us)[recording.fired_us < 80_000]
    assert len(delay) > 20_000
    assert stats.kstest(delay, stats.norm(2000, 300).cdf).pvalue > FALSE_ALARM  # rounding moves less than a fifth of it
    pixels = recording.events["y"].astype(int) * 40 + recording.events["x"]
    first, again = (delay_of_first(recording, pixels, half) for half in (0, 1))
    both = stats.pearsonr(first, again)
    assert both.pvalue > FALSE_ALARM  # of a pixel's events, each has its own


def delay_of_first(recording: Recording, pixels: np.ndarray, half: int) -> np.ndarray:
    """Of every pixel, the delay of the first event that it fires in one half of the recording."""
    inside = np.flatnonzero(recording.fired_us // 40_000 == half)
    inside = inside[np.argsort(recording.fired_us[inside], kind="stable")]
    found, at = np.unique(pixels[inside], return_index=True)
    assert len(found) == 40 * 30
    return np.asarray((recording.events["t"] - recording.fired_us)[inside[at]])


def test_no_event_arrives_before_it_happens() -> None:
    recording = noisy({"jitter_us": 200.0})
    delay = recording.events["t"] - recording.fired_us
    assert delay.min() == 0
    early = int((delay == 0).sum())  # half of the Gaussian numbers, and those that are rounded to 0
    assert stats.binomtest(early, len(delay), 0.5 + 0.5 / 200 / (2 * np.pi) ** 0.5).pvalue > FALSE_ALARM


@pytest.mark.parametrize("most", [1, 7, 30.5, 170, 300])
def test_a_bus_never_sends_more_than_it_can(most: float) -> None:
    """360 events are ready in each millisecond: all of these buses are full all the time."""
    recording = noisy({"events_per_ms": most, "queue_us": 5000.0})
    t = recording.events["t"]
    n = int(most)
    assert (t[n:] - t[:-n] >= 1000 * n / most - 1 + 1e-9).all()
    if most == n:
        assert (t[n:] - t[:-n] >= 1000).all()
    assert (t - recording.fired_us).max() <= 5001
    assert abs(len(t) / (59 * most) - 1) < 0.03  # it is never idle


def test_a_bus_that_is_fast_enough_loses_nothing() -> None:
    plain, sent = noisy({}), noisy({"events_per_ms": 1e6})
    assert len(sent) == len(plain)
    assert (sent.events["t"] - sent.fired_us).max() <= 1


def test_only_events_that_would_wait_too_long_are_lost() -> None:
    bus = Bus(10.0, 25.0)
    ready = np.array([0, 0, 0, 0, 0, 6, 100, 2**40, 2**40], np.int64)
    arrival, taken = bus.turns(ready)
    assert taken.tolist() == [True, True, True, False, False, True, True, True, True]
    assert arrival[taken].tolist() == [0, 10, 20, 30, 100, 2**40, 2**40 + 10]
    arrival, taken = bus.turns(np.array([2**40 + 1]))
    assert (arrival.tolist(), taken.tolist()) == ([2**40 + 20], [True])


def test_many_events_at_once_are_as_one_by_one() -> None:
    random = np.random.default_rng(0)
    ready = np.sort(random.integers(0, 22_000_000, 1_200_000))
    (arrival, taken), parts = Bus(20.0, 1e5).turns(ready), Bus(20.0, 1e5)
    pieces = [parts.turns(piece) for piece in np.array_split(ready, 7)]
    assert np.array_equal(taken, np.concatenate([some for _, some in pieces]))
    assert np.array_equal(arrival[taken], np.concatenate([sent[some] for sent, some in pieces]))
    assert 0 < taken.sum() < len(ready)
    assert (np.diff(arrival[taken]) >= 20).all()


READOUT = {"latency_us": 1500.0, "jitter_us": 700.0, "events_per_ms": 30.0, "queue_us": 900.0}


def test_windows_follow_each_other_and_an_endless_recording_goes_on() -> None:
    made = passing(READOUT)
    whole, longer = gerd.simulate(made), gerd.simulate(made, steps=24)
    for chunk in (1, 5):
        windows = list(gerd.simulate_chunks(made, chunk=chunk))
        assert [row for window in windows for row in rows(window)] == rows(whole)
        endless = islice(gerd.simulate_chunks(made, chunk=chunk, endless=True), -(-24 // chunk))
        found = [row for window in endless for row in rows(window) if row[0] <= 23_000]
        assert found == rows(longer)
        truths = np.concatenate([window.truth for window in windows])
        assert np.array_equal(truths, gerd.simulate(passing({})).truth)


def test_stored_windows_are_those_of_the_whole(tmp_path: Path) -> None:
    made = passing(READOUT)
    data = gerd.generate(made, tmp_path / "data", 2, workers=1)
    whole = gerd.simulate(made, 1)
    assert rows(data[1]) == rows(whole)
    assert rows(data.window(1, 3, 9)) == rows(whole.window(3, 9))
    assert not [fault for _, faults in gerd.verify(tmp_path / "data", regenerate=True) for fault in faults]
    events, fired = gerd.Dataset(tmp_path / "data", "events", "fired_us", steps=4)[1]
    part = data.window(0, 4, 8)
    assert np.array_equal(events["t"] - fired.numpy(), part.events["t"] - part.fired_us)


def test_causes_are_those_at_the_time_when_pixels_fire() -> None:
    readout = {**READOUT, "events_per_ms": None}
    plain, late = gerd.simulate(passing({})), gerd.simulate(passing(readout))
    known = dict(zip([(row[5], *row[1:5]) for row in rows(plain)], range(len(plain)), strict=True))
    at = [known[row[5], *row[1:5]] for row in rows(late)]
    assert len(at) > 100
    assert np.array_equal(late.actor, plain.actor[at])
    assert np.array_equal(late.event_flow, plain.event_flow[at], equal_nan=True)
    window = late.window(6, 9)
    inside = (late.coordinates[:, 0] >= 6) & (late.coordinates[:, 0] < 9)
    assert np.array_equal(window.actor, late.actor[inside])
    assert np.array_equal(window.event_flow, late.event_flow[inside], equal_nan=True)


def test_stages_show_when_pixels_fire_and_events_when_they_arrive() -> None:
    plain, late = gerd.simulate(passing({})), gerd.simulate(passing({"latency_us": 3000.0}))
    assert np.array_equal(plain.stages().fired, late.stages().fired)
    assert np.array_equal(late.stages().events, late.frames().numpy())
    assert np.array_equal(late.stages().events[3:], plain.stages().events[:-3])
    assert not (plain.stages().kept & (plain.stages().fired ^ plain.stages().kept)).any()


# Refractory times


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("refractory_us", [700, 2500])
def test_no_interval_of_a_pixel_is_below_the_refractory_time(timing: str, refractory_us: int) -> None:
    made = passing({}, timing=timing)
    late = gerd.simulate(made, **{"integrator.refractory": "drop", "integrator.refractory_us": refractory_us})
    plain = gerd.simulate(made)
    assert len(late) < len(plain)
    allowed = refractory_us if timing == "exact" else -(-refractory_us // 1000) * 1000
    assert min(intervals(late)) >= allowed
    assert min(intervals(plain)) < 700 or timing == "step"
    assert set(rows(late)) <= set(rows(plain))


def intervals(recording: Recording) -> list[int]:
    """Of each event that has one before it at the same pixel, the time between the two."""
    last: dict[tuple[int, int], int] = {}
    found = []
    for t, y, x, *_ in rows(recording):
        if (y, x) in last:
            found.append(t - last[y, x])
        last[y, x] = t
    return found


def test_passages_within_the_refractory_time_are_counted() -> None:
    """Eight thresholds in 4 ms, of which each third gives an event; the integrator has passed all eight at the end."""
    square = actor(at=[-3.0, 4.0], velocity=[0.25, 0.0], size=[6.0, 20.0])
    integrator = {"initial": 0.0, "warmup": 0, "threshold": 0.125, "refractory": "drop", "refractory_us": 1100}
    recording = gerd.simulate(config(square, width=1, height=1, steps=6, timing="exact", integrator=integrator))
    assert recording.events["t"].tolist() == [500, 2000, 3500]
    whole = gerd.simulate(recording.config, **{"integrator.refractory_us": 0})
    assert whole.events["t"].tolist() == list(range(500, 4001, 500))
    assert recording.stages().integrator.tolist() == whole.stages().integrator.tolist()


# On a GPU, or in Triton's interpreter


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_the_events_of_a_gpu_go_the_same_way() -> None:
    """All filters, and a camera for each index, whose thresholds differ."""
    made = config(
        actor("circle", at=[5.3, 4.4], velocity=[0.4, 0.1], size=5.0),
        width=12,
        height=9,
        upsampling=2,
        steps=4,
        timing="exact",
        camera={"number": "each"},
        integrator={
            "threshold": {"on": 0.1, "off": 0.2, "spread": 0.03},
            "warmup": 1,
            "refractory": "drop",
            "refractory_us": 300,
        },
        noise={"background": 0.05, "hot": {"share": 0.1, "rate_hz": 500}, "dead": 0.1},
        readout={"latency_us": 700.0, "jitter_us": 300.0, "events_per_ms": 20.0},
    )
    truth = gerd.simulate_batch(made, [1, 2], backend="torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = gerd.simulate_batch(made, [1, 2], backend="cuda", device=device, chunk=2)
    assert min(map(len, truth)) > 20
    assert list(map(rows, truth)) == list(map(rows, found))
    assert not np.array_equal(*(each.stages(0, 1).thresholds for each in truth))


# As amounts that measures vary


@pytest.mark.parametrize(
    ("g", "fields"),
    [
        (transformation.latency(300.0), {"readout.latency_us": 300.0}),
        (transformation.jitter(40.0), {"readout.jitter_us": 40.0}),
        (transformation.bus(250.0), {"readout.events_per_ms": 4.0}),
    ],
    ids=str,
)
def test_transformations_are_the_fields(g: transformation.Transformation, fields: dict[str, float]) -> None:
    made = passing({})
    changed = backends.frames(g(draw(plan_of(made), [0])), counts=True)[0]
    assert np.array_equal(changed, gerd.simulate(made, **fields).frames(counts=True))
    assert not np.array_equal(changed, gerd.simulate(made).frames(counts=True))
    with pytest.raises(gerd.GerdError, match="allowed with timing: exact"):
        g(draw(plan_of(passing({}, timing="step")), [0]))


@pytest.mark.parametrize("make", [transformation.latency, transformation.jitter, transformation.bus])
def test_amounts_that_are_none_are_refused(make: Callable[[float], Any]) -> None:
    for amount in (-1.0, 1e7):
        with pytest.raises(gerd.GerdError, match="allowed: microseconds from 0 to 1000000"):
            make(amount)

"""Events without a ground truth: from arrays and from files of others, in everything that needs no truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gerd
from gerd.exchange import live
from gerd.recording.events import EVENT_DTYPE

ORIGINAL = Path(__file__).parents[1] / "exchange" / "original_0_5_1.dat"
WIDTH, HEIGHT, STEP_US = 7, 5, 300

EXACT = """
sensor: {width: 24, height: 18}
steps: 20
timing: exact
noise: {background: 0.002}
actors: [{shape: circle, translation: {velocity: [0.6, 0.2]}, scale: {start: 9, acceleration: 0}}]
"""


def rows(*events: tuple[int, int, int, int]) -> np.ndarray:
    """Events from tuples (t, x, y, p)."""
    result = np.zeros(len(events), EVENT_DTYPE)
    for i, event in enumerate(events):
        result["t"][i], result["x"][i], result["y"][i], result["p"][i] = event
    return result


anywhere = st.tuples(
    st.integers(0, 5 * STEP_US), st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), st.integers(0, 1)
)


@given(st.lists(anywhere, max_size=40), st.integers(0, 6), st.integers(0, 6))
def test_events_and_frames_are_those_of_the_array(
    given: list[tuple[int, int, int, int]], start: int, stop: int
) -> None:
    """Against loops over single events, in any order, several at one time and place among them."""
    events = gerd.Events.from_array(rows(*given), width=WIDTH, height=HEIGHT, step_us=STEP_US)
    ordered = sorted(given, key=lambda event: (event[0], event[2], event[1], event[3]))
    assert [(t, x, y, p) for x, y, t, p in events.events.tolist()] == ordered
    step_of = [-(-t // STEP_US) for t, *_ in ordered]
    assert events.steps == max(step_of, default=0) + 1
    counts = torch.zeros(events.steps, 2, HEIGHT, WIDTH, dtype=torch.uint8)
    for step, (_, x, y, p) in zip(step_of, ordered, strict=True):
        counts[step, p, y, x] += 1
    assert torch.equal(events.frames(counts=True), counts)
    assert torch.equal(events.frames(), counts > 0)
    window = events.window(start, stop)
    kept = [event for step, event in zip(step_of, ordered, strict=True) if start <= step < stop]
    assert [(t, x, y, p) for x, y, t, p in window.events.tolist()] == kept
    assert torch.equal(window.frames(counts=True), counts[start:stop])


def test_a_recording_read_as_events_is_the_same_events() -> None:
    recording = gerd.simulate(EXACT)
    duration = (recording.steps - 1) * recording.step_us
    shuffled = np.random.default_rng(1).permutation(recording.events)
    events = gerd.Events.from_array(shuffled, width=24, height=18, duration=duration)
    assert events.digest == recording.digest
    assert np.array_equal(events.events, recording.events)
    assert torch.equal(events.voxels(5), recording.voxels(5))
    assert torch.equal(events.time_surface(tau_us=2000), recording.time_surface(tau_us=2000))
    assert torch.equal(events.sparse().to_dense(), recording.frames())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"events": rows((1, 7, 0, 1))}, r"a\.raw: x of the events is 7 to 7; allowed: 0 to 6"),
        ({"events": rows((1, 0, -1, 1))}, r"a\.raw: y of the events is -1 to -1; allowed: 0 to 4"),
        ({"events": rows((-5, 0, 0, 1))}, r"a\.raw: t of the events is -5 to -5; allowed: 0 or more"),
        ({"events": np.zeros(3)}, r"a\.raw: events: allowed: a structured array"),
        (
            {"events": rows((2**60, 0, 0, 1))},
            r"a\.raw: times from 0 to 1152921504606846976 µs: allowed with 7×5 pixels",
        ),
        ({"duration": 9}, r"a\.raw: duration 9: allowed: a whole number, 20 or more"),
        ({"width": 0}, r"a\.raw: width 0: allowed: a whole number from 1 to 32768"),
        ({"step_us": 1.5}, r"a\.raw: step_us 1.5: allowed: a whole number, 1 or more"),
    ],
)
def test_what_are_no_events_of_the_frame_is_refused(changed: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"events": rows((20, 0, 0, 1)), "width": WIDTH, "height": HEIGHT, "title": "a.raw"}
    events = gerd.Events.from_array(**usual)
    assert repr(events) == "<Events a.raw: 7×5, 2 steps of 1000 µs, 1 events (1 ON, 0 OFF)>"
    with pytest.raises(gerd.GerdError, match=message):
        gerd.Events.from_array(**{**usual, **changed})


def test_events_of_others_are_drawn_written_and_sent(tmp_path: Path) -> None:
    """A file of the authors' program, which has no ground truth but places."""
    original = gerd.read_original(ORIGINAL, step_us=500)
    for name in ("sheet.png", "video.gif", "page.html"):
        gerd.render(original, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    for kind in ("frame", "cloud", "rate"):
        gerd.render(original, tmp_path / f"{kind}.png", kind)
    gerd.render([original, original.window(0, 3)], tmp_path / "two.gif")
    assert original.window(2, 4).positions.tolist() == original.positions[2:4].tolist()
    assert "data:image/gif" in original._repr_html_()
    gerd.write_events(tmp_path / "a.csv", original, format="csv")
    sent = live.send(original, str(tmp_path / "b.csv"), speed=float("inf"))
    assert sent.events == len(original)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_what_needs_a_ground_truth_says_so(tmp_path: Path) -> None:
    original = gerd.read_original(ORIGINAL)
    for name, options in {
        "a.gif": {"overlay": True},
        "b.gif": {"side_by_side": True},
        "c.png": {"kind": "curves"},
        "d.png": {"kind": "stages"},
        "e.png": {"kind": "frame", "overlay": True},
    }.items():
        with pytest.raises(gerd.GerdError, match=r"needs ground truth, which <Events original_0_5_1\.dat: "):
            gerd.render(original, tmp_path / name, **options)
    with pytest.raises(gerd.GerdError, match="has no ground truth to send"):
        live.send(original, str(tmp_path / "a.csv"), truth_to=str(tmp_path / "truth"))
    with pytest.raises(gerd.GerdError, match="width, height and duration go with an array"):
        gerd.write_events(tmp_path / "a.csv", original, width=3, height=4, format="csv")
    assert not list(tmp_path.iterdir())

"""Emulators whose numbers are known: exact events that were moved, dropped and added, and a slow camera of our own.

The matching is compared with the assignment problem of SciPy, and with all matchings that there are.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from support.processes import run_here
from support.scenes import actor, config

import gerd
from gerd import measure
from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.measures.matching import matched
from gerd.recording.events import EVENT_DTYPE

THRESHOLD = 0.3
STEP_US = 1024
INSTANTS = 4 * 1e6 / STEP_US  # a second, at speeds of more than half a pixel per step and up to one


def crossing(**fields: Any) -> Config:
    """A turned square and a circle that pass each other, in exact timing's own words."""
    fields = {"steps": 30, "step_us": STEP_US, "integrator": {"threshold": THRESHOLD}, **fields}
    square = actor("square", at=[8.3, 9.1], velocity=[0.6, 0.17], size=7.0, turn=17.0)
    circle = actor("circle", at=[24.2, 14.7], velocity=[-0.7, 0.11], size=9.0, intensity=0.75)
    return config(square, circle, width=34, height=24, **fields)


def exact_events(made: Config) -> np.ndarray:
    """What `conformance` says the exact events are."""
    return gerd.simulate(made, timing="exact", **{"integrator.initial": 0.0, "integrator.warmup": 0}).events


def answering(events: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """An emulator that has its events from elsewhere, and puts them in order."""
    return lambda frames, times: events[np.argsort(events["t"], kind="stable")]


def slow_camera(frames: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Each pixel by itself, in whole numbers: a line from picture to picture, an event where it passes a threshold."""
    unit = 64 * 1024
    levels = np.rint(frames.astype(np.float64) * unit).astype(int)
    assert np.array_equal(levels / unit, frames)
    threshold = round(THRESHOLD * unit)
    events = []
    for y, x in np.ndindex(frames.shape[1:]):
        left = 0
        for before, after, begin, end in zip(levels[:, y, x], levels[1:, y, x], times, times[1:], strict=False):
            change = int(after) - int(before)
            sign = 1 if change > 0 else -1
            passed = 0
            while change and sign * (left + change) >= (passed + 1) * threshold:
                passed += 1
                share = (passed * threshold - sign * left) * int(end - begin)
                events.append((x, y, int(begin) - (-share // abs(change)), sign > 0))
            left += change - sign * passed * threshold
    found = np.array(events, EVENT_DTYPE)
    return found[np.argsort(found["t"], kind="stable")]


def test_exact_events_conform() -> None:
    made = crossing()
    truth = exact_events(made)
    truth = truth[truth["t"] <= 29_000]
    (point,) = measure.conformance(answering(truth), made, 1000).points
    on = int(truth["p"].sum())
    assert on > 300
    assert len(truth) - on > 300
    assert (point.exact_on, point.exact_off, point.on, point.off) == (on, len(truth) - on, on, len(truth) - on)
    assert (point.on_ratio, point.off_ratio, point.missed, point.invented) == (1, 1, 0, 0)
    assert (point.median_us, point.percentile_95_us) == (0, 0)
    assert (point.pictures, point.duration_us, point.window_us) == (30, 29_000, STEP_US)
    times = truth["t"].tolist()
    shared = sum(times.count(t) > 1 for t in times) / len(times)
    assert 0 < shared < 1
    assert point.same_time == point.exact_same_time == shared


def test_a_slow_camera_conforms_where_pictures_are_the_instants_between_which_counts_are_linear() -> None:
    """It shares no code with the reference, and has every event in its microsecond; with fewer pictures it has not."""
    curve = measure.conformance(slow_camera, crossing(), [INSTANTS / 16, INSTANTS / 4, INSTANTS])
    coarse, steps, best = curve.points
    assert best.exact_on + best.exact_off > 600
    assert (best.on, best.off) == (best.exact_on, best.exact_off)
    assert (best.missed, best.invented, best.percentile_95_us) == (0, 0, 0)
    assert coarse.percentile_95_us > steps.percentile_95_us > 0
    assert coarse.missed > 0


def test_what_was_done_to_exact_events_is_what_is_found() -> None:
    """Moved, dropped, added: each in numbers that are known."""
    made = crossing()
    truth = exact_events(made)
    truth = truth[truth["t"] <= 29_000]
    number = len(truth)
    sites = (truth["y"].astype(int) * made.sensor.width + truth["x"]) * 2 + truth["p"]
    ordered = truth["t"][np.lexsort((truth["t"], sites))]
    same_site = np.diff(np.sort(sites)) == 0
    window = int(np.diff(ordered)[same_site].min()) - 1  # so that no event is near two of the other stream
    assert window >= 15

    late = truth.copy()
    late["t"] += 5
    late["t"][::10] += 2  # 10 %
    late["t"][::40] += 3  # 2.5 % of all, among these
    (point,) = measure.conformance(answering(late), made, 1000, window_us=7).points
    beyond = len(late["t"][::40])
    assert (point.missed, point.invented) == (beyond, beyond)
    assert (point.median_us, point.percentile_95_us) == (5, 7)
    assert point.gaps_us.tolist() == [5] * (number - len(late[::10])) + [7] * (len(late[::10]) - beyond)
    (point,) = measure.conformance(answering(late), made, 1000, window_us=10).points
    assert (point.missed, point.invented) == (0, 0)
    assert (point.median_us, point.percentile_95_us) == (5, 7)
    assert int(point.gaps_us.max()) == 10

    dropped = np.delete(truth, np.s_[::7])
    (point,) = measure.conformance(answering(dropped), made, 1000).points
    assert (point.missed, point.invented, point.percentile_95_us) == (number - len(dropped), 0, 0)
    assert point.missed_share == (number - len(dropped)) / number

    added = np.concatenate([truth, truth[:40]])  # once more: of two at the same time one is invented
    silent = np.array([(0, 0, t, True) for t in range(1, 12)], EVENT_DTYPE)  # where nothing happens
    assert not ((truth["x"] == 0) & (truth["y"] == 0)).any()
    (point,) = measure.conformance(answering(np.concatenate([added, silent])), made, 1000).points
    assert (point.missed, point.invented) == (0, 51)
    assert point.invented_share == 51 / (number + 51)
    on = int(truth["p"].sum())
    assert point.on_ratio == (on + int(truth["p"][:40].sum()) + 11) / on

    swapped = truth.copy()
    swapped["p"] = ~swapped["p"]
    (point,) = measure.conformance(answering(swapped), made, 1000, window_us=window).points
    assert point.missed == point.invented
    assert point.missed_share > 0.9
    on, off = point.exact_on, point.exact_off
    assert (point.on_ratio, point.off_ratio) == (off / on, on / off)


def test_an_emulator_without_events_has_no_times() -> None:
    curve = measure.conformance(answering(np.empty(0, EVENT_DTYPE)), crossing(), 1000)
    (point,) = curve.points
    assert (point.on_ratio, point.off_ratio, point.missed_share) == (0, 0, 1)
    assert all(map(math.isnan, (point.median_us, point.percentile_95_us, point.same_time, point.invented_share)))
    assert json.loads(curve.json())[0]["median_us"] is None
    (row,) = csv.DictReader(curve.csv().splitlines())
    assert (row["median_us"], row["missed_share"]) == ("", "1.0")
    nothing = config(steps=5)  # no actors
    (point,) = measure.conformance(answering(np.empty(0, EVENT_DTYPE)), nothing, 1000).points
    assert math.isnan(point.on_ratio)
    assert point.missed == 0
    assert "-" in str(point)


def test_the_emulator_gets_the_pictures_of_the_times() -> None:
    """At a step they are the recording's; between steps a shape covers as much, half a step farther on."""
    asked = []

    def emulator(frames: np.ndarray, times: np.ndarray) -> np.ndarray:
        asked.append((frames, times))
        return np.empty(0, EVENT_DTYPE)

    square = actor("square", at=[6.0, 6.0], velocity=[0.5, 0.0], size=4.0, intensity=0.5)
    made = config(square, steps=6, step_us=1000, upsampling=8)
    measure.conformance(emulator, made, [1000, 2000, 300])
    (frames, times), (finer, half), (few, rounded) = asked
    assert times.tolist() == [0, 1000, 2000, 3000, 4000, 5000]
    assert np.array_equal(frames, gerd.simulate(made).images())
    assert half.tolist() == list(range(0, 5001, 500))
    assert np.array_equal(finer[::2], frames)
    assert finer[1].sum() == 0.5 * 16
    assert finer[1][6, 4] == pytest.approx(0.5 * 0.75)  # the square begins at 4.25
    assert rounded.tolist() == [0, 3333]
    assert few.dtype == np.float32


def test_times_and_events_end_with_the_path() -> None:
    """Of a family that keeps its path: no events are recorded beyond it, so no pictures are shown."""
    last = []

    def emulator(frames: np.ndarray, times: np.ndarray) -> np.ndarray:
        last.append(int(times[-1]))
        return slow_camera(frames, times)

    made = crossing(time_scale={"factor": 4, "keep": "path"}, steps=27)  # 26 units of own time in 6.5 steps
    (point,) = measure.conformance(emulator, made, 4 * INSTANTS).points
    assert last == [6.5 * STEP_US]
    assert gerd.simulate(made).steps == 8
    assert point.missed == point.invented == point.percentile_95_us == 0


Times = dict[int, list[int]]  # of each site
streams = st.dictionaries(st.integers(0, 2), st.lists(st.integers(0, 25), max_size=6), max_size=3)


def flat(times: Times) -> tuple[np.ndarray, np.ndarray]:
    pairs = sorted((t, site) for site, each in times.items() for t in each)  # in the order of time, as events are
    return np.array([site for _, site in pairs], np.int64), np.array([t for t, _ in pairs], np.int64)


@settings(max_examples=300)
@given(streams, streams, st.integers(0, 12))
def test_the_matching_is_the_best_assignment(one: Times, other: Times, window: int) -> None:
    (sites, times), (other_sites, other_times) = flat(one), flat(other)
    first, second = matched(sites, times, other_sites, other_times, window)
    assert len(set(first.tolist())) == len(first)
    assert len(set(second.tolist())) == len(second)
    assert np.array_equal(sites[first], other_sites[second])
    gaps = np.abs(times[first] - other_times[second])
    assert (gaps <= window).all()
    far = np.abs(times[:, None] - other_times)
    allowed = (sites[:, None] == other_sites) & (far <= window)
    cost = np.where(allowed, far - 10_000, 0)
    rows, columns = linear_sum_assignment(cost)
    taken = allowed[rows, columns]
    assert len(first) == taken.sum()
    assert gaps.sum() == far[rows, columns][taken].sum()


def all_matchings(times: list[int], others: list[int], window: int) -> list[tuple[tuple[int, int], ...]]:
    """All in the order of time, by trying each partner of the last event, or none."""
    if not times:
        return [()]
    last = len(times) - 1
    found = all_matchings(times[:-1], others, window)
    for partner, t in enumerate(others):
        if abs(times[last] - t) <= window:
            found += [(*rest, (last, partner)) for rest in all_matchings(times[:-1], others[:partner], window)]
    return found


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 12), max_size=4).map(sorted),
    st.lists(st.integers(0, 12), max_size=4).map(sorted),
    st.integers(0, 8),
)
def test_of_several_as_good_it_is_the_one_that_is_said(times: list[int], others: list[int], window: int) -> None:
    def order(pairs: tuple[tuple[int, int], ...]) -> tuple[Any, ...]:
        partner = dict(pairs)
        total = sum(abs(times[i] - others[j]) for i, j in pairs)
        backwards = [partner.get(i, -1) for i in reversed(range(len(times)))]
        return -len(pairs), total, backwards

    wanted = min(all_matchings(times, others, window), key=order)
    zeros = np.zeros(len(times), np.int64), np.zeros(len(others), np.int64)
    found = matched(zeros[0], np.array(times, np.int64), zeros[1], np.array(others, np.int64), window)
    assert tuple(zip(*(each.tolist() for each in found), strict=True)) == wanted


def test_many_events_of_one_pixel_are_matched_or_refused() -> None:
    storm = np.arange(0, 300_000, 3)
    alone = np.arange(0, 300_000, 3_000) + 1
    sites = np.zeros(len(alone), np.int64), np.zeros(len(storm), np.int64)
    first, second = matched(sites[0], alone, sites[1], storm, 3)
    assert len(first) == len(alone)
    assert (alone[first] - storm[second] == 1).all()
    with pytest.raises(GerdError, match=r"100 and 100000 events of one pixel .* window of 3 µs: allowed: a smaller"):
        matched(sites[0], alone, sites[1], storm, 3, most=10**6)


NOTHING = np.empty(0, EVENT_DTYPE)
ONE = np.array([(3, 3, 10, True)], EVENT_DTYPE)
AS_FLOATS = np.array([(1, 1, math.nan, 1)], [("x", "i2"), ("y", "i2"), ("t", "f8"), ("p", "i1")])
SIGNED = np.array([(1, 1, 5, -1)], [("x", "i2"), ("y", "i2"), ("t", "i8"), ("p", "i1")])


def changed(**values: int) -> np.ndarray:
    events = ONE.copy()
    for name, value in values.items():
        events[name] = value
    return events


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "gave NoneType; allowed: a structured array"),
        ([(1, 1, 5, 1)], "gave list; allowed"),
        (np.zeros((5, 4)), r"gave float64 of shape \(5, 4\); allowed"),
        (ONE[["x", "y", "t"]], "fields x, y, t"),
        (ONE.reshape(1, 1), r"of shape \(1, 1\); allowed"),
        (AS_FLOATS, "t of the events is float64; allowed: a type of whole numbers, in microseconds"),
        (SIGNED, "p of the events is -1 to -1; allowed: whole numbers 0 and 1"),
        (changed(x=34), "x of the events is 34 to 34; allowed: 0 to 33"),
        (changed(y=-1), "y of the events is -1 to -1; allowed: 0 to 23"),
        (changed(t=-1), "t of the events is -1 to -1; allowed: 0 or more"),
        (np.concatenate([ONE, changed(t=9)]), "gave event 1, of 9 µs, after one of 10 µs; allowed: in order"),
    ],
)
def test_what_an_emulator_must_not_give(given: Any, message: str) -> None:
    with pytest.raises(GerdError, match=f"the emulator at 500 pictures per second:? .*{message}"):
        measure.conformance(lambda frames, times: given, crossing(), 500)


def test_an_emulator_that_fails_is_named() -> None:
    def broken(*_: np.ndarray) -> np.ndarray:
        raise ValueError("no such pixel")

    with pytest.raises(GerdError, match=r"the emulator at 500 pictures per second failed on 15 .*ValueError: no such"):
        measure.conformance(broken, crossing(), 500)


@pytest.mark.parametrize(
    ("rates", "options", "message"),
    [
        (0, {}, "frames_per_second 0: allowed: more than 0"),
        ([100, math.nan], {}, "frames_per_second nan: allowed"),
        ("100", {}, "frames_per_second '100': allowed"),
        (True, {}, "frames_per_second True: allowed"),
        ([], {}, "frames_per_second: is empty"),
        (2e6, {}, r"frames_per_second 2000000.0: allowed: .* up to 1000000"),
        (10, {}, "frames_per_second 10: 1 picture of a recording of 29696 µs; allowed: two or more"),
        (1000, {"window_us": 1.5}, "window_us 1.5: allowed: a whole number"),
        (1000, {"window_us": -1}, "window_us -1: allowed"),
    ],
)
def test_wishes_that_make_no_sense(rates: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(GerdError, match=message):
        measure.conformance(slow_camera, crossing(), rates, **options)


def test_pictures_that_no_memory_holds_are_refused_before_anything_runs() -> None:
    long = crossing(steps=40_000)
    with pytest.raises(GerdError, match=r"40958977 pictures of 34×24 take 134 GB; allowed: up to 17.2 GB"):
        measure.each_conformance(slow_camera, long, [1000, 1e6])


@pytest.mark.parametrize(
    "noise", [{"background": 0.01}, {"shape": 0.1}, {"event": 0.1}, {"hot": {"share": 0.1}}, {"dead": 0.2}]
)
def test_noise_is_refused(noise: dict[str, Any]) -> None:
    with pytest.raises(GerdError, match=r"noise\..*no emulator can know it from pictures; leave it at its default"):
        measure.conformance(slow_camera, crossing(noise=noise), 1000)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(GerdError, match="the emulator is 3; allowed: a function"):
        measure.conformance(3, crossing(), 1000)  # type: ignore[arg-type]


EMULATORS = """
import numpy as np
KIND = [("x", "i2"), ("y", "i2"), ("t", "i8"), ("p", "?")]
number = 3


def silent(frames, times):
    return np.empty(0, KIND)


def fails_later(frames, times):
    assert len(times) < 20, "too many"
    return np.empty(0, KIND)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy_free.py").write_text(EMULATORS)
    (tmp_path / "scene.yaml").write_text(crossing().resolved_yaml())
    (tmp_path / "swept.yaml").write_text(crossing(sweep={"integrator.threshold": [0.3, 0.4]}).resolved_yaml())
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_command_prints_and_writes_the_curve(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("conform", "numpy_free:silent", "scene.yaml", "--fps", "500,1000", "--out", "found.json") == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["pictures/s", "exact", "events"]
    assert [row.split()[0] for row in rows] == ["500", "1000"]
    assert all(row.split()[-2:] == ["100.0%", "-"] for row in rows)
    written = json.loads(Path("found.json").read_text())
    assert [each["frames_per_second"] for each in written] == [500, 1000]
    assert all(each["missed_share"] == 1 for each in written)
    assert run_here("conform", "numpy_free.py:silent", "swept.yaml", "--member", "1", "--out", "found.csv") == 0
    rows = list(csv.DictReader(Path("found.csv").read_text().splitlines()))
    assert [row["frames_per_second"] for row in rows] == ["250.0", "500.0", "1000.0", "2000.0", "4000.0"]
    assert {float(row["on_ratio"]) for row in rows} == {0}


@pytest.mark.usefixtures("folder")
def test_what_is_known_is_kept_when_an_emulator_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("conform", "numpy_free:fails_later", "scene.yaml", "--fps", "500,1000", "--out", "found.csv") == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[1].split()[0] == "500"
    assert "error: the emulator at 1000 pictures per second failed on 30 pictures" in told.err
    assert "AssertionError: too many" in told.err
    assert len(Path("found.csv").read_text().splitlines()) == 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["numpy_free", "scene.yaml"], "emulator 'numpy_free': allowed: module:function or file.py:function", 1),
        (["nowhere:f", "scene.yaml"], "emulator 'nowhere:f': cannot be imported: ModuleNotFoundError", 1),
        (["nowhere.py:f", "scene.yaml"], "there is no file nowhere.py", 1),
        (["numpy_free:f", "scene.yaml"], "cannot be imported: AttributeError", 1),
        (["numpy_free:number", "scene.yaml"], "emulator 'numpy_free:number': is 3; allowed: a function", 1),
        (["numpy_free:silent", "scene.yaml", "--fps", "many"], "--fps many: allowed: numbers, such as", 1),
        (["numpy_free:silent", "scene.yaml", "--out", "found.txt"], "--out found.txt: allowed: a name that ends", 1),
        (["numpy_free:silent", "scene.yaml", "--out", "no/found.csv"], "--out no/found.csv: there is no folder no", 1),
        (["numpy_free:silent", "scene.yaml", "--set", "noise.dead=0.1"], "noise.dead: got 0.1: no emulator", 2),
        (["numpy_free:silent", "missing.yaml"], "missing.yaml", 2),
    ],
)
def test_mistakes_are_named(words: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("conform", *words) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_a_file_may_be_called_as_a_package_that_it_needs(folder: Path) -> None:
    needing = EMULATORS.replace("    return np", "    import wave\n\n    assert wave.Wave_read\n    return np", 1)
    (folder / "wave.py").write_text(needing)
    assert run_here("conform", "wave.py:silent", "scene.yaml", "--fps", "1000") == 0

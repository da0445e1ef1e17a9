"""Two sets of events held against each other: closed forms, what chance makes of it, and effects that were changed."""

import copy
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gerd
from gerd.cli.app import app
from gerd.measures.comparison import LEVEL, EventComparison, compare
from gerd.measures.stream_numbers import (
    BACKGROUND,
    BUS,
    CLOCK,
    JITTER,
    LEAK,
    NUMBERS,
    REFRACTORY,
    THRESHOLDS,
    dead_pixels,
    hot_pixels,
    parts_of,
    pixel_counts,
)
from gerd.recording.events import EVENT_DTYPE

SCENE: dict[str, Any] = {
    "sensor": {"width": 64, "height": 64},
    "steps": 200,
    "noise": {"background": 0.0005},
    "actors": [
        {
            "shape": "square",
            "scale": {"start": 20, "velocity": 0, "acceleration": 0},
            "translation": {"start": "uniform", "velocity": [0.5, 0.3], "acceleration": 0},
        }
    ],
}
COUNT = 16


def recordings(first: int, count: int = COUNT, **changes: Any) -> list[gerd.Recording]:
    data = copy.deepcopy(SCENE)
    for path, value in changes.items():
        place = data
        *folders, name = path.split("__")
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return gerd.simulate_batch(gerd.parse(data), range(first, first + count))


def made(rows: list[tuple[int, int, int, int]], width: int = 9, height: int = 7, duration: int = 16_000) -> gerd.Events:
    return gerd.Events.from_array(np.array(rows, EVENT_DTYPE), width=width, height=height, duration=duration)


def numbers(events: gerd.Events, near_us: int = 1000) -> dict[str, float]:
    span = 0, events.steps * events.step_us
    (part,) = parts_of(events, np.zeros((events.height, events.width), np.bool_), span, near_us, 1)
    return {number.name: number.of(part) for number in NUMBERS}


def test_numbers_of_events_that_can_be_counted_by_hand() -> None:
    """An edge passes two neighbours, with two ON events and one OFF each; two events far away are alone."""
    edge = [(3, 3, 5000, 1), (3, 3, 5400, 1), (4, 3, 5400, 1), (4, 3, 5900, 1), (3, 3, 9000, 0), (4, 3, 9100, 0)]
    alone = [(8, 6, 2000, 1), (0, 0, 2500, 0), (0, 0, 12_000, 0)]
    found = numbers(made([*edge, *alone]))
    assert found["rate"] == pytest.approx(9 / 63 / 0.017)  # 17 steps of 1 ms
    assert found["ON events of edges"] == pytest.approx(4 / 6)
    assert found["events of an edge's passage"] == pytest.approx(6 / 4)  # two rows of two ON events, two OFF alone
    assert found["events at one time"] == pytest.approx(2 / 6)
    assert found["median interval"] == pytest.approx(np.median([400, 3600, 500, 3200]))
    assert math.isnan(found["shortest intervals"])  # of four intervals there is no 1 %
    # Nine pixels are near (3, 3) and nine near (4, 3), six of them near both: 4.0 to 6.4 ms and 8.0 to 10.0 ms are busy
    # at three pixels, 4.4 to 6.9 ms and 8.1 to 10.1 ms at three, 4.0 to 6.9 ms and 8.0 to 10.1 ms at six.
    busy = 3 * (2.4 + 2.0) + 3 * (2.5 + 2.0) + 6 * (2.9 + 2.1)
    quiet = 63 * 0.017 - busy / 1000
    assert found["noise, ON"] == pytest.approx(1 / quiet)
    assert found["noise, OFF"] == pytest.approx(2 / quiet)
    assert found["noise, ON beyond OFF"] == pytest.approx(-1 / quiet)
    for name in ("shortest of a passage", "unevenness of a passage", "shortest pause of the frame"):
        assert math.isnan(found[name])  # of a few events


def test_intervals_of_passages_that_can_be_counted_by_hand() -> None:
    """Intervals of 300 and 100 µs in turn, of 600 and 200 with OFF: the shortest are a third of the median one."""
    steps = np.resize([300, 100], 41)
    times = np.concatenate([[0], steps.cumsum()])
    rows = [(4, 3, int(time), 1) for time in times] + [(4, 3, int(20_000 + 2 * time), 0) for time in times]
    found = numbers(made(rows, duration=40_000))
    assert found["shortest of a passage"] == pytest.approx(1 / 3)
    assert found["unevenness of a passage"] == pytest.approx(np.mean([2 * 198 / 400, 2 * 398 / 800]))
    assert found["events of an edge's passage"] == 42
    even = numbers(made([(4, 3, 301 * k + k % 2, 1) for k in range(42)]))  # rounded to whole microseconds
    assert even["unevenness of a passage"] == 0


def test_a_pause_of_the_frame_is_looked_at_where_chance_leaves_none() -> None:
    rows = [(k % 9, k % 7, 9 * k, k % 2) for k in range(100)]
    assert numbers(made(rows, duration=1000))["shortest pause of the frame"] == 9
    assert math.isnan(numbers(made(rows, duration=9000))["shortest pause of the frame"])


def test_events_at_opposite_sides_of_the_frame_are_not_neighbours() -> None:
    """The last pixel of a row and the first of the next follow each other in memory only."""
    assert math.isnan(
        numbers(made([(8, 2, 5000, 1), (0, 3, 5000, 1), (8, 3, 9000, 0), (0, 4, 9000, 0)]))["events at one time"]
    )


def test_hot_and_dead_pixels_are_found_where_they_are() -> None:
    counts = np.random.default_rng(0).poisson(20, (40, 50))
    hot, dead = (np.zeros(counts.shape, np.bool_) for _ in range(2))
    hot[[0, 10, 39], [0, 20, 49]] = True
    dead[[0, 5, 39], [49, 30, 0]] = True
    counts[hot], counts[dead] = 200, 0
    assert np.array_equal(hot_pixels(counts), hot)
    assert np.array_equal(dead_pixels(counts), dead)
    assert not hot_pixels(np.zeros((4, 4), np.int64)).any()
    assert not dead_pixels(np.zeros((4, 4), np.int64)).any()
    assert pixel_counts([made([(3, 4, 5, 1), (3, 4, 5, 0), (0, 0, 9, 1)])])[4, 3] == 2


def test_a_set_and_itself_are_the_same() -> None:
    some = recordings(0)
    result = compare(some, some, same_scenes=True)
    assert result.same
    assert all(each.errors_apart == 0 for each in result.differences if each.p is not None)
    assert result.differing == []
    assert result.matches is not None
    assert (result.matches.of_a, result.matches.of_b, result.matches.lag_us) == (1.0, 1.0, 0.0)
    assert result.matches.by_chance < 0.2
    assert str(result).partition("\n\n")[2].startswith("The events are the same, one for one.")


def test_sets_of_one_kind_are_seldom_told_apart() -> None:
    """Of 24 comparisons at a level of 0.01 each, 4 or more are told apart in 1 of 10 000 such tests."""
    assert LEVEL == 0.01
    everything = recordings(0, 48 * 8)
    sets = [everything[k * 8 : k * 8 + 8] for k in range(48)]
    told = [compare(one, other).effects for one, other in zip(sets[::2], sets[1::2], strict=True)]
    assert sum(map(bool, told)) < 4, told


WANDERING: dict[str, Any] = {
    "timing": "exact",
    "actors": [
        {"shape": "triangle", "scale": {"start": 16, "acceleration": 0}, "translation": {"velocity": [0.3, 0.1]}}
    ],
}


def test_a_few_recordings_are_told_apart_by_what_no_scene_decides() -> None:
    """The scatter in time says nothing of other scenes: of single recordings of one kind, some rates are far apart."""
    some = recordings(0, 48, **WANDERING)
    results = [compare(one, other) for one, other in zip(some[::2], some[1::2], strict=True)]
    assert sum(bool(each.perhaps) for each in results) >= 4
    assert not any(each.differing for each in results)
    apart = next(each for each in results if each.perhaps)
    assert "differs, or the scenes do" in str(apart)
    assert f"these are apart, too: {apart.perhaps[0].name}" in apart.verdict
    noisy = recordings(99, 1, **WANDERING, noise__background=0.003)
    assert compare(some[0], noisy).effects == ["background noise"]
    assert not compare(some[:8], some[8:16]).perhaps


def test_two_recordings_of_one_scene_are_compared_pair_by_pair() -> None:
    """The scene's own scatter in time is in both, so that one recording is enough."""
    result = compare(
        recordings(3, 1, **WANDERING), recordings(3, 1, **WANDERING, integrator__threshold=0.4), same_scenes=True
    )
    assert result.effects[0] == THRESHOLDS, str(result)
    assert not result.perhaps
    (whole,) = recordings(3, 1, **WANDERING)
    later = whole.window(50)
    unaligned = gerd.Events.from_array(later.events, width=64, height=64)
    assert compare(later, unaligned, same_scenes=True).differing == []  # parts are of the same times
    assert compare(whole, gerd.Events.from_array(whole.events, width=64, height=64), same_scenes=True).same


SLOW: dict[str, Any] = {  # a pixel fires four times in a row, at several speeds of the edges
    "timing": "exact",
    "integrator__threshold": 0.2,
    "actors": [
        {
            "shape": "triangle",
            "scale": {"start": 16, "acceleration": 0},
            "translation": {"velocity": [0.15, 0.05]},
            "rotation": {"velocity": 1.0},
        }
    ],
}
FEW = 10
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"integrator__threshold": 0.4}, THRESHOLDS),
    ({"integrator__threshold": {"on": 0.2, "off": 0.3}}, THRESHOLDS),
    ({"integrator__threshold": {"on": 0.2, "off": 0.2, "spread": 0.05}}, THRESHOLDS),
    ({"noise__background": 0.001}, BACKGROUND),
    ({"noise__hot": {"share": 0.01}}, "hot pixels"),
    ({"noise__dead": 0.02}, "dead pixels"),
    ({"integrator__refractory_us": 3000}, REFRACTORY),
    ({"integrator__refractory_us": 3000, "integrator__refractory": "drop"}, REFRACTORY),
    ({"readout": {"events_per_ms": 20}}, BUS),
    ({"readout": {"jitter_us": 200}}, JITTER),
    ({"integrator__leak_hz": 10}, LEAK),
    ({"timing": "step"}, CLOCK),
]


@pytest.fixture(scope="module")
def unchanged() -> list[gerd.Recording]:
    return recordings(0, FEW, **SLOW)


@pytest.mark.parametrize(("changes", "effect"), CHANGES, ids=str)
def test_the_effect_that_was_changed_is_named_first(
    unchanged: list[gerd.Recording], changes: dict[str, Any], effect: str
) -> None:
    changed = recordings(100, FEW, **(SLOW | changes))
    result = compare(unchanged, changed)
    assert result.effects[0] == effect, str(result)
    assert f"It suggests {effect}" in result.verdict
    assert compare(changed, unchanged).effects[0] == effect


def test_halves_of_one_config_suggest_nothing(unchanged: list[gerd.Recording]) -> None:
    assert compare(unchanged, recordings(FEW, FEW, **SLOW)).effects == []


@pytest.mark.parametrize(
    ("changes", "effect"),
    [
        ({"integrator__refractory_us": 3000}, REFRACTORY),
        ({"integrator__threshold": 0.3}, THRESHOLDS),
    ],
    ids=str,
)
def test_effects_are_named_where_all_edges_are_equally_fast(changes: dict[str, Any], effect: str) -> None:
    """Then every interval is a multiple of few lengths, with a refractory time and without one."""
    actors = copy.deepcopy(SCENE["actors"])
    actors[0]["translation"]["velocity"] = [0.12, 0.07]
    square = {"timing": "exact", "integrator__threshold": 0.2, "actors": actors}
    assert compare(recordings(0, **square), recordings(100, **(square | changes))).effects[0] == effect


def test_a_latency_of_all_events_shows_only_in_the_same_scenes(unchanged: list[gerd.Recording]) -> None:
    late = recordings(0, FEW, **SLOW, readout={"latency_us": 200})
    assert compare(unchanged, late).effects == []
    matches = compare(unchanged, late, same_scenes=True).matches
    assert matches is not None
    assert matches.lag_us == 200


def test_thresholds_of_on_and_off_are_told_apart_by_their_share() -> None:
    one = recordings(0, timing="exact", integrator__threshold=0.3)
    result = compare(one, recordings(100, timing="exact", integrator__threshold={"on": 0.3, "off": 0.6}))
    share = {each.name: each for each in result.differing}["ON events of edges"]
    assert share.b > share.a + 0.1
    assert result.effects[0] == THRESHOLDS


def test_the_noise_beside_edges_is_the_rate_of_the_config() -> None:
    """Half of 0.0005 per pixel and step of each polarity; a two-hundredth of it comes near other noise."""
    for each in compare(recordings(0), recordings(100)).differences[:2]:
        assert each.name.startswith("noise")
        for mean, error in ((each.a, each.a_error), (each.b, each.b_error)):
            assert abs(mean - 0.25) < 4 * error + 0.005


def test_matches_find_what_was_moved_and_lost() -> None:
    some = [each.events for each in recordings(0, 4, timing="exact", noise__background=0.0)]
    lost = np.random.default_rng(1)
    others = []
    for events in some:
        kept = events[lost.random(len(events)) < 0.75].copy()
        kept["t"] += 120
        others.append(kept)
    ours, theirs = (
        [gerd.Events.from_array(each, width=64, height=64, duration=250_000) for each in group]
        for group in (some, others)
    )
    matches = compare(ours, theirs, same_scenes=True).matches
    assert matches is not None
    share = sum(map(len, others)) / sum(map(len, some))
    assert matches.of_a == pytest.approx(share, abs=0.01)
    assert matches.of_b > 0.99
    assert matches.lag_us == pytest.approx(120, abs=1)
    assert matches.by_chance < 0.1


def test_what_cannot_be_told_is_not() -> None:
    """Recordings without events, and single ones: no number of theirs has a verdict without values."""
    nothing = made([])
    result = compare(nothing, nothing)
    assert result.same
    result = compare(nothing, made([(1, 1, 5, 1)]))
    silent = [each for each in result.differences if each.name == "ON events of edges"]
    assert silent[0].p is None
    assert "too few values" in str(result)
    assert "How much scenes differ is not known from fewer than 8 recordings" in result.verdict
    assert compare(made([], duration=0), made([], duration=0)).same


def test_wrong_sets_say_what_is_allowed() -> None:
    one = made([(1, 1, 5, 1)])
    with pytest.raises(gerd.GerdError, match="B: has no recordings to compare"):
        compare(one, [])
    with pytest.raises(gerd.GerdError, match="A: has frames of 9×7 and 10×7 pixels; allowed: one size"):
        compare([one, made([], width=10)], one)
    with pytest.raises(
        gerd.GerdError, match="A has 1 recordings and B 2; allowed with the same scenes: the same number"
    ):
        compare(one, [one, one], same_scenes=True)
    with pytest.raises(gerd.GerdError, match="frames of 9×7 and 10×7 pixels; allowed with the same scenes: one size"):
        compare(one, made([], width=10), same_scenes=True)
    with pytest.raises(gerd.GerdError, match="near_us"):
        compare(one, one, near_us=0)


def test_the_command_compares_configs_datasets_and_files(tmp_path: Path) -> None:
    config, data, file = tmp_path / "c.yaml", tmp_path / "data", tmp_path / "one.raw"
    config.write_text(gerd.parse(SCENE).to_yaml())
    gerd.generate(gerd.load(config), data, 16, workers=1)
    gerd.write_events(file, gerd.simulate(config, 0), format="evt3")

    def said(*words: Any) -> str:
        result = CliRunner().invoke(app, ["compare", *map(str, words)])
        assert result.exit_code == 0, result.exception
        return result.stdout

    assert "The events are the same, one for one." in said(config, data, "--same-scenes")
    assert "It suggests dead pixels" in said(data, config, "--set", "noise.dead=0.03")
    assert "16 parts of a recording" in said(file, config)
    page = tmp_path / "page.html"
    assert f"wrote {page}" in said(config, config, "--first", 16, "--out", page)
    text = page.read_text()
    assert len(re.findall("<tr>", text)) == len(NUMBERS) + 3  # a header, and the shares of hot and dead pixels
    assert "data:image/svg+xml;base64," in text
    assert 'src="http' not in text
    for words, message in [
        ((config, config, "--out", tmp_path / "a.png"), "allowed: a name that ends in .html"),
        ((config, data, "--first", 16), "has the indices 0 to 15"),
        ((config, data, "--set", "steps=3"), "steps|dataset|config"),
        ((config, file, "--first", 3), "is a file of events"),
    ]:
        error = CliRunner().invoke(app, ["compare", *map(str, words)]).exception
        assert isinstance(error, gerd.GerdError)
        assert re.search(message, str(error)), error


def test_a_comparison_is_public() -> None:
    assert isinstance(gerd.measure.compare(made([]), made([])), EventComparison)

"""An index and a member name a recording: the same one wherever it is asked for, and never one that no dataset has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gerd
from gerd.cli.words import parse_member
from gerd.config.config import Config
from gerd.config.sweep import labels, member_count, member_number
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw

TEXT = """
seed: 5
sensor: {width: 14, height: 12}
steps: 6
time_scale: 1
actors: [{shape: square, translation: {velocity: [0.9, 0.4]}, scale: {start: 5}}]
sweep: {time_scale: [0.5, 2], noise.background: [0.02, 0.2, 0.1]}
"""
FAMILY = gerd.parse(TEXT)
COUNT = 2


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> gerd.Recordings:
    folder = tmp_path_factory.mktemp("members")
    (folder / "family.yaml").write_text(TEXT)
    return gerd.generate(folder / "family.yaml", folder / "data", COUNT, workers=1)


@pytest.mark.parametrize("index", range(COUNT))
@pytest.mark.parametrize("number", range(6))
def test_one_recording_has_many_ways_to_it(index: int, number: int, data: gerd.Recordings) -> None:
    stored, values = data[6 * index + number], labels(FAMILY, number)
    (of_batch,) = gerd.simulate_batch(FAMILY, [index], values)
    chunks = list(gerd.simulate_chunks(FAMILY, index, number, chunk=4))
    ways: list[Recording] = [
        data.at(index, number),
        data.at(index, values),
        data.family(index)[number],
        gerd.simulate(FAMILY, index, number),
        gerd.simulate(data.path.parent / "family.yaml", index, member=values),  # type: ignore[union-attr]
        gerd.simulate(TEXT, index, **values),
        gerd.simulate(FAMILY.member(values), index),
        gerd.simulate_family(FAMILY, index)[number],
        of_batch,
    ]
    for recording in ways:
        assert recording.digest == stored.digest
        assert np.array_equal(recording.truth, stored.truth)
        assert recording.identity == stored.identity
        assert recording.member == number
        assert recording.config.time_scale == values["time_scale"]
    assert sum(map(len, chunks)) == len(stored)
    assert {chunk.member for chunk in chunks} == {number}
    frames, _ = gerd.Stream(FAMILY, 1).batch(6 * index + number)
    assert bool((frames[0] == stored.frames()).all())
    assert gerd.Dataset(data.path).headers()[6 * index + number].member == number


def test_what_is_written_beside_a_sweep_is_no_recording(data: gerd.Recordings) -> None:
    """time_scale 1 is in no dataset of this config, so that nobody gets it without asking for it."""
    model: Any = lambda frames: frames[:, :, 0, 0, :2]  # noqa: E731
    turn = gerd.transformation.rotation(90)
    for ask in (
        lambda: gerd.simulate(FAMILY),
        lambda: gerd.simulate(FAMILY, time_scale=2),
        lambda: gerd.simulate_batch(FAMILY, [0, 1]),
        lambda: next(gerd.simulate_chunks(FAMILY)),
        lambda: draw(plan_of(FAMILY), [0]),
        lambda: gerd.measure.equivariance_error(model, FAMILY, turn, count=2),
        lambda: gerd.render(FAMILY, data.path.parent / "x.gif"),  # type: ignore[union-attr]
    ):
        with pytest.raises(gerd.GerdError, match="config: is swept; say which member, as in config"):
            ask()
    asked_for = gerd.simulate(FAMILY, time_scale=1, **{"noise.background": 0.02})
    assert asked_for.digest not in {recording.digest for recording in data}
    assert (asked_for.member, asked_for.name) == (None, "index 0 (time_scale=1, noise.background=0.02)")
    single = FAMILY.model_copy(update={"sweep": {"time_scale": (2,)}})
    assert gerd.simulate(single).config.time_scale == 2


def test_names_say_which(data: gerd.Recordings) -> None:
    assert data.at(1, 4).name == "data, index 1, member 4 (time_scale=2, noise.background=0.2)"
    assert repr(gerd.simulate(FAMILY, 1, 4)).startswith("<Recording index 1, member 4 (time_scale=2, noise.")
    alone = gerd.simulate("actors: []\nsteps: 1")
    assert (alone.name, alone.member) == ("index 0", 0)


grids = st.dictionaries(
    st.sampled_from(["time_scale", "noise.event", "noise.shape", "upsampling", "integrator.threshold"]),
    st.lists(st.integers(1, 9).map(lambda k: k / 9), min_size=1, max_size=3, unique=True),
    max_size=3,
).filter(lambda sweep: "upsampling" not in sweep)


@given(grids)
def test_numbers_and_values_name_the_same_member(sweep: dict[str, list[float]]) -> None:
    config = Config(actors=[], steps=1, sweep=sweep)
    count = math.prod(map(len, sweep.values()))
    assert member_count(config) == count
    found = [member_number(config, labels(config, k)) for k in range(count)]
    assert found == [member_number(config, k) for k in range(count)] == list(range(count))
    assert len({config.member(k).digest for k in range(count)}) == count


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (6, "member 6: allowed: 0 to 5, or swept values"),
        (-1, "member -1: allowed: 0 to 5"),
        (True, "member True: allowed: 0 to 5"),
        ("fast", "member 'fast': allowed: 0 to 5"),
        ({"time_scale": 2}, "say which member, .*noise.background .0.02, 0.2, 0.1.$"),
        ({"time_scale": 1}, "member time_scale=1: allowed: 0.5, 2"),
        ({"time_scal": 2}, "member time_scal=2: time_scal is not swept; did you mean time_scale"),
    ],
)
def test_a_member_that_there_is_not_is_refused(which: Any, message: str, data: gerd.Recordings) -> None:
    for ask in (lambda: gerd.simulate(FAMILY, 0, which), lambda: data.at(0, which), lambda: FAMILY.member(which)):
        with pytest.raises(gerd.GerdError, match=message):
            ask()


@pytest.mark.parametrize("index", [COUNT, -1, 1.5, True])
def test_an_index_that_there_is_not_is_refused(index: Any, data: gerd.Recordings) -> None:
    with pytest.raises(gerd.GerdError, match=rf"data: index {index}: allowed: 0 to {COUNT - 1}"):
        data.at(index, 0)


def test_a_config_without_a_sweep_has_member_0() -> None:
    config = gerd.parse({"actors": [], "steps": 2})
    assert gerd.simulate(config, 3, 0).identity == gerd.simulate(config, 3).identity
    assert [recording.member for recording in gerd.simulate_family(config)] == [0]
    with pytest.raises(gerd.GerdError, match="member 1: allowed: 0, the only one without a sweep"):
        gerd.simulate(config, 3, 1)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], None),
        (["12"], 12),
        (["time_scale=2"], {"time_scale": 2}),
        (["time_scale=0.5", "noise.event=1e-2"], {"time_scale": 0.5, "noise.event": 0.01}),
        (["actors.0.shape={text: A}"], {"actors.0.shape": {"text": "A"}}),
        (["actors.0.shape=circle"], {"actors.0.shape": "circle"}),
    ],
)
def test_what_the_command_line_takes(words: list[str], meant: Any) -> None:
    assert parse_member(words) == meant


@pytest.mark.parametrize("words", [["one"], ["1", "2"], ["-1"], ["a=1", "a=2"], ["a={"]])
def test_what_it_does_not_take(words: list[str]) -> None:
    with pytest.raises(gerd.GerdError, match="--member"):
        parse_member(words)

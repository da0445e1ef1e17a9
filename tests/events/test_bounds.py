"""Exact timing of any motion, however slow or fast, takes bounded memory, and its bits are what they were."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import bounded

import gerd
from gerd.events import exact
from gerd.events.cpu import run as cpu
from gerd.plan.make import plan_of
from gerd.scene.draw import draw

SLOW = (
    "{sensor: {width: 17, height: 40}, steps: 1, timing: exact, time_scale: %s, noise: {shape: 0.001}, "
    "actors: [{shape: circle}]%s}\n"
)


@pytest.mark.parametrize(
    ("rate", "more", "message"),
    [
        ("5e-324", "", "time_scale: got 5e-324: allowed: from 1e-09 to 1e+06"),
        ("1e-300", "", "time_scale: got 1e-300: allowed: from 1e-09 to 1e+06"),
        (
            "1e-8",
            "",
            "integrator.warmup: got 5: at this time scale, takes 6e+08 steps of shape noise; allowed: up to 1",
        ),
        ("5e-324", ", transform: [{time_scale: 0.5}]", "time_scale: got 5e-324: with those in transform makes a time "),
        ("1e-9", ", transform: [{time_scale: 0.5}]", "makes a time scale of 5e-10; allowed: from 1e-09 to 1e+06"),
        ("1000", ", transform: [{time_scale: 1000}, {time_scale: 1000}]", "makes a time scale of 1e+09; allowed: from"),
    ],
)
def test_a_rate_that_cannot_be_computed_with_is_refused(rate: str, more: str, message: str) -> None:
    with pytest.raises(gerd.ConfigError, match=re.escape(message)):
        gerd.parse(SLOW % (rate, more))


@pytest.mark.parametrize(
    "transform",
    [
        [{"affine": [[5e-324, 1e9, 0], [0, 1, 0]]}],
        [{"scale": [1, 5e-324]}],
        [{"scale": 1e-30}, {"scale": 1e-30}],
        [{"scale": 1e9}] * 6,
    ],
)
def test_a_map_onto_a_line_or_a_point_is_refused(transform: list[dict[str, Any]]) -> None:
    """Its parameters would be no numbers."""
    config = gerd.Config(steps=2, transform=transform, actors=[{"shape": "circle", "rotation": {"velocity": 1}}])
    with pytest.raises(
        gerd.ConfigError, match=r"transform: .*all of it makes the map \[\[.*allowed: factors from 1e-50"
    ):
        gerd.simulate(config)


def test_a_map_that_can_be_taken_back_is_not() -> None:
    config = gerd.Config(steps=2, transform=[{"scale": [1e-9, 1]}, {"rotate": 30}], actors=[{"shape": "circle"}])
    assert np.isfinite(gerd.simulate(config).truth).all()


def test_a_check_of_a_very_slow_motion_takes_little_memory(tmp_path: Path) -> None:
    """There are half a billion ends of steps in the warm-up; listed all at once they would take gigabytes."""
    (tmp_path / "slow.yaml").write_text(SLOW % ("1e-8", ""))
    result = bounded(tmp_path, "check", "slow.yaml", gigabytes=3)
    assert (result.returncode, "takes 6e+08 steps of shape noise" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    "fields",
    [
        {"time_scale": {"factor": 5e-324, "keep": "path"}},
        {"time_scale": 1e-9, "timing": "exact", "step_us": 10**9, "integrator": {"warmup": 100_000}},
        {"sweep": {"time_scale": [1, 1e-300]}},
    ],
    ids=["a path", "microseconds", "a member"],
)
def test_so_are_paths_members_and_times(fields: dict[str, Any]) -> None:
    with pytest.raises(gerd.ConfigError, match=r"allowed: (from 1e-09|up to 4\.61e)"):
        gerd.Config(actors=[{"shape": "circle"}], **fields)


WANDERING: dict[str, Any] = {
    "sensor": {"width": 20, "height": 17},
    "steps": 40,
    "timing": "exact",
    "noise": {"shape": 0.02, "background": 0.001},
    "actors": [
        {"shape": "circle", "scale": {"start": 8}, "translation": {"velocity": {"uniform": [-1, 1]}}},
        {"shape": "square", "scale": {"start": 5}, "translation": {}, "rotation": {}},
    ],
}
BITS = {  # sha256 of the events of index 2, as they were when all ends of steps were listed at once
    0.01: "4860d07d83e0d8475364668dc00e117fde83ba9f6006dbeda51bfbfe38adcc1e",
    0.3: "47d62d172f95a65617dbc1ee729e0a2b9c8039254f2d16fe3652acbbc61e9a8c",
    7.0: "8a8abb3b7b8bd13d4a3e8cd4c5e72eb9104f4c1ff97567cb79f815422cc61522",
}


@pytest.mark.parametrize("rate", BITS)
def test_the_bits_are_what_they_were(rate: float) -> None:
    config = gerd.Config(**WANDERING, time_scale=rate)
    assert gerd.simulate(config, 2).digest == BITS[rate]
    assert gerd.simulate(config, 2, backend="torch").digest == BITS[rate]


@pytest.mark.parametrize("rate", BITS)
def test_they_do_not_depend_on_how_many_instants_are_held(rate: float) -> None:
    config = gerd.Config(**WANDERING, time_scale=rate)
    scenes = draw(plan_of(config), range(3))
    few = cpu.run(scenes, limits=cpu.Limits(values=2**10))
    for row, parts in itertools.groupby(few, lambda part: part.row):
        keys = np.concatenate([part.keys for part in parts])
        assert np.array_equal(keys, gerd.simulate(config, row).keys)


@pytest.mark.parametrize(("rate", "units"), [(1e-6, 1), (0.3, 40), (1.0, 300), (500.0, 5000)])
@pytest.mark.parametrize("most", [5, 1000])
def test_no_more_instants_are_held_than_asked_for(rate: float, units: int, most: int) -> None:
    """Each piece begins where the one before it has ended, and all of them are the parts of units and ends of steps."""
    config = gerd.Config(**{**WANDERING, "steps": 2}, time_scale=rate)
    scenes = draw(plan_of(config), [2])
    pieces = exact.slabs(scenes.in_own_time(), rate, 0, units, most)
    last = 0.0
    for number, (_, moments) in enumerate(pieces):
        own = moments.own[0]
        assert len(own) <= most + 1
        assert own[0] == last
        assert (np.diff(own) > 0).all()
        ends = np.arange(np.ceil(own[0] / rate), np.floor(own[-1] / rate) + 1) * rate
        assert np.isin(ends[(ends > own[0]) & (ends < own[-1])], own).all()
        last = own[-1]
        if number == 50:  # a unit of a slow motion has a million of them
            break
    else:
        assert last == units

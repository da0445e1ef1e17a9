"""Cameras by name: they fill in what is not written, and a config with a name is one with its numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.config.camera import NAMED

PAGE = (Path(__file__).parents[2] / "docs" / "cameras.md").read_text("utf-8")
SCENE = """
timing: exact
sensor: {width: 24, height: 18}
steps: 12
actors: [{shape: circle, translation: {velocity: [1, 0.3]}, scale: {start: 10, acceleration: 0}}]
"""


def named(camera: str, more: str = "") -> gerd.Config:
    return gerd.parse(f"camera: {camera}\n{more}{SCENE}")


def rows_of_the_page() -> dict[str, list[str]]:
    """The cells of the table of values, by the camera's name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    values = [row for row in rows if len(row) == 6 and row[0].startswith("`") and row[0] != "`camera`"]
    return {row[0].strip("`"): row[1:] for row in values}


def number(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


@pytest.mark.parametrize("name", NAMED)
def test_the_table_of_the_documents_is_what_a_name_stands_for(name: str) -> None:
    thresholds, spread, response, refractory, other = rows_of_the_page()[name]
    config = named(name)
    integrator = config.integrator
    assert [integrator.thresholds.on, integrator.thresholds.off] == [float(part) for part in thresholds.split(",")]
    assert integrator.thresholds.spread == float(spread)
    assert integrator.log_response == (0 if response == "linear" else number(response.removeprefix("log ")))
    words = re.findall(r"[\d.]+|hold|drop", refractory)
    assert integrator.refractory_us == float(words[0])
    assert len(words) == 1 or integrator.refractory == words[1]
    said = {key: float(value) for key, value in re.findall(r"`(\w+)` ([\d.]+)", other)}
    assert config.noise.background == pytest.approx(said.pop("background", 0) * 1e-3)
    fields = {"leak_hz": integrator, "latency_us": config.readout, "jitter_us": config.readout, "dead": config.noise}
    assert {field: getattr(model, field) for field, model in fields.items()} == {**dict.fromkeys(fields, 0.0), **said}


def test_the_table_has_every_camera() -> None:
    assert list(rows_of_the_page()) == list(NAMED)


def test_what_is_written_wins_field_by_field() -> None:
    config = named("v2e-noisy", "integrator: {threshold: {on: 0.6}, warmup: 9}\nnoise: {background: 0, event: 0.1}\n")
    assert (config.integrator.thresholds.on, config.integrator.thresholds.off) == (0.6, 0.2)
    assert config.integrator.thresholds.spread == 0.05
    assert (config.integrator.warmup, config.integrator.refractory_us) == (9, 500)
    assert (config.noise.background, config.noise.event) == (0, 0.1)
    assert named("esim", "integrator: {threshold: 0.3}\n").integrator.thresholds.spread == 0


@pytest.mark.parametrize("name", NAMED)
def test_a_name_is_its_numbers(name: str) -> None:
    """Short or long, resolved or written again: the same config, with the same recordings."""
    config = named(name)
    assert "like" not in config.resolved()["camera"]
    for other in (
        named(f"{{like: {name}}}"),
        gerd.parse(config.resolved()),
        gerd.parse(config.to_yaml()),
        gerd.parse(SCENE, overrides=[f"camera={name}"]),
    ):
        assert other.resolved() == config.resolved()
        assert other.digest == config.digest


def test_numbers_that_are_overwritten_by_defaults_survive() -> None:
    config = named("v2e-noisy", "integrator: {threshold: 0.5, refractory_us: 0}\n")
    assert gerd.parse(config.to_yaml()).digest == config.digest


def test_the_ideal_camera_is_the_default() -> None:
    assert named("ideal").digest == gerd.parse(SCENE).digest


def test_noise_per_second_is_that_of_a_step() -> None:
    assert named("v2e-noisy", "step_us: 200\n").noise.background == pytest.approx(0.001)


def test_each_recording_has_a_camera_of_its_own() -> None:
    """Recording i has camera i, alone and in a batch; in a batch all of them have others."""
    pattern = "noise: {hot: {share: 0.1, rate_hz: 900}, dead: 0.1}\n"
    each = named("{like: esim, number: each}", pattern)
    batch = gerd.simulate_batch(each, [3, 4])
    for index, recording in zip((3, 4), batch, strict=True):
        wanted = gerd.simulate(named(f"{{like: esim, number: {index}}}", pattern), index)
        alone = gerd.simulate(each, index, chunk=5)
        for other in (wanted, alone, gerd.simulate(each, index, backend="torch")):
            assert np.array_equal(recording.keys, other.keys)
            assert np.array_equal(recording.source, other.source)
    tables = [recording.stages(0, 1).thresholds for recording in batch]
    assert not np.array_equal(*tables)


BAD: list[tuple[str, str]] = [
    ("camera: esin", r"camera\.like: got 'esin': did you mean esim\? allowed: ideal, esim, v2e-clean"),
    ("camera: {like: [1]}", r"camera\.like: got \[1\]: allowed: ideal"),
    (
        "camera: iebcs",
        r"camera\.like: got 'iebcs': iebcs has a latency.*timing: exact only; allowed: timing: exact, or",
    ),
    ("camera: {number: -1}", r"camera\.number: got -1: allowed: greater than or equal to 0"),
    ("camera: {number: some}", r"camera\.number: got 'some': .*allowed: a whole number from 0 to 4294967295, each"),
    ("camera: {like: esim, numbr: 3}", r"camera\.numbr: got 3: unknown key; did you mean number\?"),
    (
        "camera: esim\nsweep: {camera.like: [esim]}",
        r"sweep\.camera\.like\.0: got 'esim': a named camera stands for many",
    ),
    ("sweep: {camera: [esim, ideal]}", r"sweep\.camera\.0: got 'esim': a named camera stands for many fields"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_no_camera_is_told(text: str, message: str) -> None:
    with pytest.raises(gerd.ConfigError, match=message):
        gerd.parse(f"{text}\nactors: []")


def test_a_latency_may_be_taken_away_in_step_timing() -> None:
    config: Any = gerd.parse("{camera: iebcs, readout: {latency_us: 0, jitter_us: 0}, actors: []}")
    assert config.integrator.thresholds.on == 0.4


def test_a_name_is_no_value_to_set() -> None:
    with pytest.raises(gerd.ConfigError, match="a named camera stands for many fields"):
        gerd.simulate(SCENE, camera="esim")
    assert gerd.simulate(SCENE, **{"camera.number": 5}).config.camera.number == 5

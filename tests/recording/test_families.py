"""Families whose members differ in length or by a transformation, in everything that takes recordings."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.cli.describe import describe
from gerd.cli.dry_run import dry_run
from gerd.config.sweep import labels, lengths
from gerd.exchange.live import windows_of
from gerd.page.answers import Editor, save_page
from gerd.page.render import render

TEXT = """\
seed: 2
sensor: {width: 20, height: 16}
steps: 13
time_scale: {factor: 1, keep: path}
noise: {background: 0.002}
transform: [{rotate: 0}]
actors:
  - shape: square
    translation: {start: [8, 7], velocity: [0.6, 0.3], acceleration: 0, border: free}
    scale: {start: 6, acceleration: 0}
sweep: {time_scale.factor: [0.5, 1, 3], transform.0.rotate: [0, 50]}
"""
FAMILY = gerd.parse(TEXT)
LENGTHS = [25, 25, 13, 13, 5, 5]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("families") / "data"
    gerd.generate(FAMILY, path, 2, workers=1)
    return path


def test_lengths_are_those_of_the_recordings(dataset: Path) -> None:
    assert lengths(FAMILY) == LENGTHS
    assert [recording.steps for recording in gerd.Recordings(dataset)] == LENGTHS * 2
    assert lengths(gerd.parse(TEXT.replace("factor: 1,", "factor: 2,"), overrides=["sweep={upsampling: [1, 2]}"])) == [
        7,
        7,
    ]


@pytest.mark.parametrize("format", ["csv", "npz", "evt2", "parquet", "frames"])
def test_a_dataset_is_exported(format: str, dataset: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert gerd.export_dataset(dataset, tmp_path / "out", format) == 12
    if format != "parquet":
        index = json.loads((tmp_path / "out" / "export.json").read_text())
        truths = [(tmp_path / "out" / entry["truth"]).read_text().splitlines() for entry in index["files"]]
        assert [len(lines) - 1 for lines in truths] == LENGTHS * 2


def test_sizes_are_told(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(dataset)
    assert "frame       20×16, 5 to 25 steps of 1000 µs but for what is swept" in capsys.readouterr().out
    dry_run(FAMILY, 3)
    assert "frame       20×16, 25 steps, upsampling 8, in member 0" in capsys.readouterr().out


def test_too_much_ground_truth_counts_the_steps_that_are_run(tmp_path: Path) -> None:
    chosen = gerd.parse(TEXT, overrides=["steps=500000", "sweep={time_scale.factor: [1, 0.02]}"])
    with pytest.raises(gerd.ConfigError, match=r"steps: got 249999\d\d: makes .* GiB of ground truth in a shard"):
        gerd.generate(chosen, tmp_path / "data", 1, workers=1)


def test_a_loop_goes_on_after_the_steps_that_are_run() -> None:
    chosen = gerd.parse(TEXT, overrides=["time_scale.factor=3", "sweep={}"])
    first, second = islice(windows_of(chosen, loop=True), 2)
    assert (first.first, first.steps, second.first) == (0, 5, 5)
    assert np.array_equal(second.coordinates, first.coordinates)


def head_of(packed: bytes) -> Any:
    return json.loads(packed[8 : 8 + int.from_bytes(packed[4:8], "little")])


def test_the_page_shows_each_member(tmp_path: Path) -> None:
    file = tmp_path / "family.yaml"
    file.write_text(TEXT)
    for number, length in enumerate(LENGTHS):
        asked: dict[str, Any] = {"text": TEXT, "overrides": [], "index": 1, "member": number}
        data = Editor.of(file).recording(asked)
        head = head_of(data)
        shown = gerd.simulate(FAMILY, 1, **labels(FAMILY, number))
        assert (head["steps"], head["digest"]) == (length, shown.digest)
        values = labels(FAMILY, number)
        assert head["values"]["time_scale"] == {"factor": values["time_scale.factor"], "keep": "path"}
        assert head["values"]["transform"] == [{"rotate": values["transform.0.rotate"], "about": "centre"}]
    changed = {"text": TEXT, "overrides": ["transform.0.rotate=20", "sweep={}"], "index": 1, "member": 0}
    data = Editor.of(file).recording(changed)
    head = head_of(data)
    assert head["digest"] == gerd.simulate(FAMILY, 1, **{"transform.0.rotate": 20, "time_scale.factor": 1}).digest


def test_pictures_and_pages_of_members(dataset: Path, tmp_path: Path) -> None:
    recordings = gerd.Recordings(dataset)
    render(recordings[5], tmp_path / "short.gif", overlay=True)
    render(recordings[1], tmp_path / "long.png", "curves")
    save_page(recordings[:6], tmp_path / "all.html")
    assert min(file.stat().st_size for file in tmp_path.iterdir()) > 500


def test_a_split_by_the_sweep(dataset: Path) -> None:
    data = gerd.Dataset(dataset, steps=4, label="positions")
    train, test = data.hold_out(lambda r: r.labels["transform.0.rotate"] == 50)
    assert len(train) == len(test) == 2 * (7 + 4 + 2)
    fast, _ = data.hold_out(lambda r: r.config.time_scale != 3)
    assert {recording.config.steps for recording in (fast.recordings[i] for i in fast.served)} == {5}

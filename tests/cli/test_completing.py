"""What a shell is given to complete."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from gerd.cli import completing
from gerd.cli.app import app

FILES = (
    "square.yaml", "circle.yml", "configs/deep/three.yaml", "data/manifest.json", "notes.md", "camera.raw", "list.csv",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with configs, a dataset, files of events, and things that nobody means."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".hidden.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What bash offers for the last word of a line."""
    for name, value in (("_GERD_COMPLETE", "complete_bash"), ("COMP_WORDS", line), ("COMP_CWORD", line.count(" "))):
        monkeypatch.setenv(name, str(value))
    with pytest.raises(SystemExit):
        app(prog_name="gerd")
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gerd ren", ["render"]),
        ("gerd render square.yaml a.png --kind c", ["cloud", "curves"]),
        ("gerd export data out --format hdf", ["hdf5-dsec", "hdf5"]),
        ("gerd play data --format ", ["csv", "binary", "aestream"]),
        ("gerd study ", list(completing.STUDIES)),
        ("gerd generate square.yaml data --engine r", ["ray"]),
        ("gerd bench make data --kind v", ["validate"]),
        ("gerd check ", ["circle.yml", "configs/deep/three.yaml", "square.yaml"]),
        ("gerd check configs/de", ["configs/deep/three.yaml"]),
        ("gerd verify ", ["data"]),
        ("gerd render ca", ["camera.raw"]),
        (
            "gerd view ",
            ["camera.raw", "circle.yml", "configs/deep/three.yaml", "data", "list.csv", "square.yaml"],
        ),
    ],
)
def test_values_are_completed(
    line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(line, monkeypatch, capsys) == offered


def test_paths_from_the_root(folder: Path) -> None:
    assert completing.configs(f"{folder}/sq") == [f"{folder}/square.yaml"]
    assert completing.configs("/nowhere/at/all") == []


def test_the_names_are_those_that_the_commands_take() -> None:
    from gerd.bench.baselines import BASELINES
    from gerd.bench.split_table import KINDS as SPLITS
    from gerd.bench.split_table import REGIMES
    from gerd.bench.task_table import tasks
    from gerd.exchange.export import PARQUET
    from gerd.exchange.formats import FORMATS
    from gerd.exchange.live import PACKETS
    from gerd.exchange.video import VIDEOS
    from gerd.page.render import KINDS
    from gerd.studies.lab.running import STUDIES

    assert set(completing.KINDS) == set(KINDS)
    assert set(completing.FORMATS) == {*FORMATS, PARQUET, *VIDEOS}
    assert set(completing.LIVE_FORMATS) == {"csv", *PACKETS}
    assert completing.STUDIES == STUDIES
    assert tuple(BASELINES) == completing.BASELINES
    assert (tasks(), REGIMES, SPLITS) == (completing.TASKS, completing.REGIMES, completing.SPLITS)
    for name in STUDIES:
        importlib.import_module(f"gerd.studies.{name.replace('-', '_')}")

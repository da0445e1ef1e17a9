"""Every program in examples/ runs, small; those that train get better at what they do."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SMALL = {  # options that let an example end in seconds
    "train_from_disk": ["--count", "30"],
    "train_from_stream": ["--count", "960"],
    "hold_out": ["--count", "60", "--epochs", "5"],
    "with_tonic": ["--count", "30", "--epochs", "4"],
    "with_hugging_face": ["--count", "40", "--epochs", "8"],
    "with_norse": ["--count", "960"],
    "with_sinabs": ["--count", "90"],
}
WITHOUT_DEPENDENCIES = ["norse", "sinabs"]  # `make setup` installs them so; they ask for what can take gigabytes


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in WITHOUT_DEPENDENCIES:
        if example.stem == f"with_{package}":
            pytest.importorskip(package, reason=f"{package} is not in the dev extra; `make setup` installs it")
    monkeypatch.setattr(sys, "argv", [str(example), *SMALL.get(example.stem, ["--count", "2"])])
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        runpy.run_path(str(example), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown
    assert not list(tmp_path.iterdir())  # it has cleared away what it wrote
    before = [float(number) for number in re.findall(r"before training: ([\d.]+)", shown)]
    after = [float(number) for number in re.findall(r"after training[^:]*: ([\d.]+)", shown)]
    if example.stem == "hold_out":
        rows = re.findall(r"^ +[\d.]+ +([\d.]+) +([\d.]+)   (?:seen|held out)$", shown, re.MULTILINE)
        before, after = ([float(number) for number in column] for column in zip(*rows, strict=True))
        assert len(rows) == 5
    assert len(before) == len(after)
    assert all(end < begin / 2 for begin, end in zip(before, after, strict=True)), shown
    assert before or "train" not in example.stem


def test_all_uses_have_an_example() -> None:
    wanted = {"train_from_disk", "train_from_stream", "hold_out", "export_and_read_back"}
    assert wanted | {"with_tonic", "with_norse", "with_sinabs", "with_hugging_face"} <= {
        example.stem for example in EXAMPLES
    }

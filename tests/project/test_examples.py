"""Every program and notebook in examples/ runs, small; those that train get better at what they do."""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot
import pytest
import torch

import gerd

FOLDER = Path(__file__).parents[2] / "examples"
SHARED = FOLDER / "three_shapes.py"  # what several import
EXAMPLES = sorted(set(FOLDER.glob("*.py")) - {SHARED})
SMALL = {  # options that let an example end in seconds
    "train_from_disk": ["--count", "30"],
    "train_from_stream": ["--count", "960"],
    "pretrain_then_fine_tune": [
        "--count",
        "300",
        "--steps",
        "60",
        "--seeds",
        "1",
        "--seen",
        "0",
        "10",
        "--tests",
        "30",
    ],
    "hold_out": ["--count", "60", "--epochs", "5"],
    "with_tonic": ["--count", "90", "--epochs", "8"],
    "with_hugging_face": ["--count", "120", "--epochs", "8"],
    "with_norse": ["--count", "960"],
    "with_sinabs": ["--count", "270"],
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
    monkeypatch.syspath_prepend(FOLDER)  # as Python does for a program
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


def shown_by(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell of a notebook; the value of its last line, which the notebook shows."""
    lines = ast.parse(source)
    last = lines.body.pop() if isinstance(lines.body[-1], ast.Expr) else None
    exec(compile(lines, "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace) if isinstance(last, ast.Expr) else None


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((EXAMPLES[0].parent / "tour.ipynb").read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it from its beginning"
    stored = [output for cell in cells for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in stored) == 4
    assert {output["output_type"] for output in stored} == {"stream", "execute_result", "display_data"}  # and no error
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "notebook"}
    with matplotlib.rc_context({"backend": "Agg"}), torch.random.fork_rng():
        matplotlib.pyplot.close("all")  # what other tests left open
        values = [shown_by("".join(cell["source"]), namespace) for cell in cells]
        pictures = [namespace["plt"].figure(number) for number in namespace["plt"].get_fignums()]
        assert len(pictures) == 4
        for picture in pictures:
            picture.savefig(tmp_path / "picture.png")
        namespace["plt"].close("all")
    (recording,) = (value for value in values if isinstance(value, gerd.Recording))
    assert [repr(recording)] in [output.get("data", {}).get("text/plain") for output in stored], (
        "store what it shows now"
    )
    assert "data:image/gif" in recording._repr_html_()
    assert namespace["off"].median() < namespace["losses"][0] / 4
    errors = dict(zip(namespace["speeds"], namespace["errors"], strict=True))
    assert errors[4] > 1.3 * errors[1]
    assert not Path(namespace["folder"].name).exists()


def test_examples_say_how_long_they_take_and_limit_their_threads() -> None:
    for example in EXAMPLES:
        text = example.read_text("utf-8")
        assert re.search(r"It takes about \d+ (seconds|minutes)", ast.get_docstring(ast.parse(text)) or "")
        if "from three_shapes import" in text:
            text += SHARED.read_text("utf-8")
        assert ("import torch" in text) == ("torch.set_num_threads(1)" in text)


def test_all_uses_have_an_example() -> None:
    wanted = {"train_from_disk", "train_from_stream", "hold_out", "export_and_read_back"}
    assert wanted | {"with_tonic", "with_norse", "with_sinabs", "with_hugging_face"} <= {
        example.stem for example in EXAMPLES
    }

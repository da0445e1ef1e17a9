"""A command in a stranger's folder: no code that lies there is run, and no settings are taken from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.datasets import SMALL
from support.processes import DEADLINE
from support.traps import lay_traps, run_among_traps, trapped

from gerd.surroundings import environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lay_traps(tmp_path)
    return tmp_path


def test_the_traps_work(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", "import csv, yaml"], cwd=folder, check=True, timeout=DEADLINE)
    assert trapped(folder) >= {"csv", "yaml"}


def test_nothing_is_imported_and_no_setting_is_read_from_the_folder(folder: Path) -> None:
    """By the command and by its workers. matplotlib would wait for what a pipe says, numba stop at what is no YAML."""
    os.mkfifo(folder / "matplotlibrc")
    (folder / ".numba_config.yaml").write_text("- [\n")
    (folder / "config.yaml").write_text(SMALL.replace("shape: square", "shape: {text: g}"))
    pictures = (f"render config.yaml {out}" for out in ("page.html", "video.mp4", "sheet.png"))
    run_among_traps(folder, "generate config.yaml data -n 70 --workers 2", "verify data --regenerate", *pictures)


def test_variables_are_set_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GERD_OLD", "before")
    with environment(GERD_OLD="meanwhile", GERD_NEW="1"):
        assert (os.environ["GERD_OLD"], os.environ["GERD_NEW"]) == ("meanwhile", "1")
    assert os.environ["GERD_OLD"] == "before"
    assert "GERD_NEW" not in os.environ

"""A command in a stranger's folder: no code that lies there is run, and no settings are taken from there.

Each module that a start of Python, of a worker or of a library might import lies there as a trap, which leaves a file.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.datasets import SMALL
from support.processes import DEADLINE
from support.ray_cluster import running

TRAP = "open('trapped-{name}', 'w').close()\n"


@pytest.fixture
def gerd(tmp_path: Path) -> list[str]:
    """The command, as the script that pip installs: Python looks for modules beside it, and not where it is run."""
    script = tmp_path / "bin" / "gerd"
    script.parent.mkdir()
    script.write_text("from gerd.cli.app import main\nmain()\n")
    return [sys.executable, str(script)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a config, and a trap for each module of Python and of the packages that are installed."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "config.yaml").write_text(SMALL)
    for name in {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), "gerd", "sitecustomize"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(TRAP.format(name=name))
    return folder


def run(command: list[str], folder: Path, *arguments: str) -> None:
    result = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0, result.stderr
    assert sorted(file.name for file in folder.glob("trapped-*")) == []


def test_the_traps_work(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", "import csv, yaml"], cwd=folder, check=True, timeout=DEADLINE)
    assert {file.name for file in folder.glob("trapped-*")} >= {"trapped-csv", "trapped-yaml"}


def test_workers_import_nothing_from_the_folder(gerd: list[str], folder: Path) -> None:
    run(gerd, folder, "generate", "config.yaml", "data", "-n", "130", "--workers", "2")
    run(gerd, folder, "verify", "data", "--regenerate")


@pytest.mark.parametrize("out", ["sheet.png", "video.mp4", "page.html"])
def test_pictures_import_nothing_from_the_folder(out: str, gerd: list[str], folder: Path) -> None:
    run(gerd, folder, "render", "config.yaml", out)


def test_workers_of_a_cluster_import_nothing_from_the_folder(gerd: list[str], folder: Path) -> None:
    pytest.importorskip("ray")
    with running(1) as cluster:
        address = ("--engine", "ray", "--address", cluster.address)
        run(gerd, folder, "generate", "config.yaml", "data", "-n", "130", *address)


def test_settings_in_the_folder_are_not_read(gerd: list[str], folder: Path) -> None:
    """matplotlib would wait for what a pipe says, and numba would stop at what is no YAML."""
    os.mkfifo(folder / "matplotlibrc")
    (folder / ".numba_config.yaml").write_text("- [\n")
    (folder / "config.yaml").write_text(SMALL.replace("shape: square", "shape: {text: g}"))
    run(gerd, folder, "render", "config.yaml", "sheet.png")
    run(gerd, folder, "generate", "config.yaml", "data", "-n", "70", "--workers", "2")

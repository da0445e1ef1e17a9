"""A dataset to look at or to spoil; commands in the background, and workers held in the middle of a shard."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import processes
from support.datasets import TWO_SHAPES, content, make
from support.held import HELD, HOLD

import gerd

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 × 2 recordings in three shards."""
    folder = tmp_path_factory.mktemp("storage") / "family"
    make(folder, TWO_SHAPES, 70)
    return folder


@pytest.fixture
def dataset(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "dataset"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`gerd generate config.yaml data` with these options, in the background; it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> subprocess.Popen[str]:
        arguments = ("generate", "config.yaml", "data", "-n", "320", "--trust", *options)
        started.append(processes.start(tmp_path, *arguments))
        return started[-1]

    yield begin
    for process in started:
        processes.stop(process)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder with a config whose workers stop after the first shard until the file `go` is there."""
    (tmp_path / "hold.py").write_text(HOLD)
    (tmp_path / "config.yaml").write_text(HELD)
    yield tmp_path
    (tmp_path / "go").touch()


@pytest.fixture(scope="session")
def never_held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that the config of `held` gives in one go."""
    folder = tmp_path_factory.mktemp("never_held")
    (folder / "go").touch()
    (folder / "hold.py").write_text(HOLD)
    gerd.generate(gerd.parse(HELD, directory=folder, trust=True), folder / "data", 320, workers=1)
    return content(folder / "data")

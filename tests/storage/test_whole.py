"""Files that are written whole, or not at all."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.datasets import content

import gerd
from gerd.storage.whole import is_temporary, write_whole, written_whole


def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files and folders that are flushed to the disk, as it happens."""
    names: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_a_file_takes_the_place_of_an_older_one_once_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "file", b"old")
    names = flushed(monkeypatch)
    with written_whole(tmp_path / "file") as temporary:
        temporary.write_bytes(b"new")
        assert is_temporary(temporary.name)
        assert (tmp_path / "file").read_bytes() == b"old"
    assert content(tmp_path) == {"file": b"new"}
    assert names == [temporary.name, tmp_path.name]  # the file, and then its name


def test_a_folder_appears_with_all_that_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = flushed(monkeypatch)
    with written_whole(tmp_path / "out") as temporary:
        (temporary / "below").mkdir(parents=True)
        (temporary / "below" / "file").write_bytes(b"content")
    assert content(tmp_path / "out" / "below") == {"file": b"content"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert names[-2:] == [temporary.name, tmp_path.name]
    assert set(names[:-2]) == {"below", "file"}


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_failure_leaves_what_was_there(
    kind: str, call: str, problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_bytes(b"old")

    def fail(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(os, call, fail)
    target = tmp_path / ("old" if kind == "file" else "new")

    def write() -> None:
        with written_whole(target) as temporary:
            file = temporary
            if kind == "folder":
                temporary.mkdir()
                file = temporary / "file"
            file.write_bytes(b"new")

    with pytest.raises((gerd.StorageError, KeyboardInterrupt)) as error:
        write()
    assert content(tmp_path) == {"old": b"old"}
    if isinstance(problem, OSError):
        assert str(error.value) == f"{target}: cannot be written: No space left on device"


def test_what_stands_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"mine")
    for path, message in (
        (tmp_path / "folder", "it is a folder"),
        (tmp_path / "none" / "file", f"there is no folder {tmp_path / 'none'}"),
        (tmp_path / "file" / "file", f"there is no folder {tmp_path / 'file'}"),
        (Path("/"), "it is a folder"),
    ):
        with pytest.raises(gerd.StorageError) as error:
            write_whole(path, b"content")
        assert str(error.value) == f"{path}: cannot be written: {message}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_temporary_file_that_another_run_removes_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that starts where there are no locks takes it for a leftover."""
    real = os.replace
    removed: list[Path] = []

    def replace(temporary: Path, path: Path) -> None:
        if len(removed) < often:
            removed.append(temporary)
            os.unlink(temporary)
        real(temporary, path)

    monkeypatch.setattr(os, "replace", replace)
    often = 2
    write_whole(tmp_path / "file", b"content")
    assert len(set(removed)) == 2
    often = 1000
    with pytest.raises(gerd.StorageError, match="cannot be written: No such file or directory"):
        write_whole(tmp_path / "file", b"other")
    assert content(tmp_path) == {"file": b"content"}


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    """As machines do whose processes have the same number."""
    data = os.urandom(2**20)
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(write_whole, tmp_path / "file", data) for _ in range(64)]:
            written.result()
    assert content(tmp_path) == {"file": data}

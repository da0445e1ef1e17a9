"""In the folder of an export there may be a pipe, a device or a link: nobody waits for it, and no link is followed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.datasets import content
from support.scenes import actor, config

import gerd
from gerd.exchange import export
from gerd.exchange.export import export_dataset

CONFIG = config(actor(velocity=[1, 0]), steps=3)
INDEX, NOTES, SHARDS = "export.json", ".finished.jsonl", "data"
SPECIAL: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "link": lambda file: (file.with_name("target").write_text("{}\n"), file.symlink_to("target")),
    "folder": Path.mkdir,
}
WHY = {
    "pipe": "it is not a plain file",
    "device": "it is a symbolic link",
    "link": "it is a symbolic link",
    "folder": "Is a directory",
}


def begun(folder: Path, monkeypatch: pytest.MonkeyPatch, format: str = "csv") -> Path:
    """An export of two recordings that was stopped after the first file."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(export.truth_lines, "header", stop)
        with pytest.raises(KeyboardInterrupt):
            export_dataset(CONFIG, folder, format, indices=[0, 1])
    return folder


def exported(folder: Path, format: str = "csv") -> None:
    """The export; a hang is an error, on whatever the program waits."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            export_dataset(CONFIG, folder, format, indices=[0, 1])
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for ever"
    if failed:
        raise failed[0]


@pytest.mark.parametrize("name", [INDEX, NOTES])
@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_plain_file_is_refused_and_left(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begun(tmp_path / "out", monkeypatch)
    (folder / name).unlink()
    SPECIAL[kind](folder / name)
    before = set(os.listdir(folder))
    with pytest.raises(gerd.StorageError, match=rf"{name}: cannot be read: {WHY[kind]}"):
        exported(folder)
    assert set(os.listdir(folder)) == before
    if kind == "link":
        assert (folder / "target").read_text() == "{}\n"


def test_a_link_that_appears_meanwhile_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, precious = begun(tmp_path / "out", monkeypatch), tmp_path / "precious"
    precious.write_text("mine")
    real = export.write_events

    def linked(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        (folder / NOTES).unlink(missing_ok=True)
        (folder / NOTES).symlink_to(precious)

    monkeypatch.setattr(export, "write_events", linked)
    with pytest.raises(gerd.StorageError, match=f"{NOTES}: cannot be written: it is a symbolic link"):
        exported(folder)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("format", ["csv", "frames"])
def test_under_the_name_of_an_exported_file_it_is_replaced(
    format: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the link leads to a copy of what was written: the export's own file is one that nobody else changes."""
    exported(tmp_path / "whole", format)
    folder = begun(tmp_path / "out", monkeypatch, format)
    name = "000000" if format == "frames" else "000000.csv"
    (folder / name).rename(tmp_path / "elsewhere")
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(tmp_path / "elsewhere")
    exported(folder, format)
    assert not (folder / name).is_symlink()
    everything = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    whole = tmp_path / "whole"
    assert everything == {
        str(file.relative_to(whole)): file.read_bytes() for file in whole.rglob("*") if file.is_file()
    }


def test_a_link_as_the_folder_of_shards_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ".mine.0123456789abcdef.tmp").write_text("mine")
    folder = tmp_path / "out"
    exported(folder, "parquet")
    (folder / SHARDS).rename(tmp_path / "old")
    (folder / SHARDS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(gerd.StorageError, match=f"{SHARDS}: is a symbolic link; allowed: a folder of the export"):
        exported(folder, "parquet")
    assert content(tmp_path / "elsewhere") == {".mine.0123456789abcdef.tmp": b"mine"}

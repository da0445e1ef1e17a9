"""Splits on disk, and the commands `gerd bench list`, `make` and `verify`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.processes import run_here

import gerd
from gerd.bench import Split
from gerd.bench.making import check_dataset, folder_of


def quick(name: str) -> Split:
    return gerd.bench.split("locate", name, quick=True)


SPLITS = [quick(name) for name in ("validate-one", "test", "test/rotation/135", "validate-inner/leak/8")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some splits, made by a run that was interrupted and by another that continued it."""
    folder = tmp_path_factory.mktemp("bench") / "data"
    stop_after = [100, 50]

    def interrupt(count: int) -> None:
        assert count == stop_after.pop(0)
        if not stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gerd.bench.make(folder, SPLITS, progress=interrupt)
    assert sorted(path.name for path in (folder / "quick" / "locate").iterdir()) == ["test", "validate-one"]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert gerd.bench.make(folder, SPLITS) == tuple(folder / folder_of(split) for split in SPLITS)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    return folder


def test_what_is_on_disk_is_what_the_stream_gives(made: Path) -> None:
    for split in SPLITS[:3]:
        data = gerd.Recordings(made / folder_of(split))
        assert len(data) == split.count
        frames, positions = gerd.bench.stream("locate", split, 10).batch(1)
        assert (frames[3] == data[13].frames()).all()
        assert (positions[3, :, 0].numpy() == data[13].positions[:, 0].astype("f4")).all()


def test_a_dataset_that_is_another_is_refused(made: Path, tmp_path: Path) -> None:
    """By its config, where it is made; by its digest, where it is compared."""
    upright, turned, few = SPLITS[1:]
    with pytest.raises(gerd.StorageError, match=r"is not quick/locate/test/rotation/135 of version 1: .*digest"):
        check_dataset(made / folder_of(upright), turned)
    path = tmp_path / "data" / folder_of(few)
    gerd.generate(few.config.replace(seed=1), path, few.count)
    with pytest.raises(gerd.StorageError, match=r"holds a different dataset: seed is 1 there and \d+ here"):
        gerd.bench.make(tmp_path / "data", [few])


def test_a_damaged_file_is_made_anew(made: Path) -> None:
    shard = made / folder_of(SPLITS[3]) / "shard-000000.safetensors"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-9] + bytes(9))
    gerd.bench.make(made, SPLITS[3:])
    assert shard.read_bytes() == whole


def test_other_places_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        gerd.StorageError, match=r"holds other files, such as 'notes.txt'; give an empty or a new folder"
    ):
        gerd.bench.make(tmp_path, SPLITS)
    with pytest.raises(gerd.StorageError, match=r"notes.txt: is a file; give a folder"):
        gerd.bench.make(tmp_path / "notes.txt", SPLITS)
    with pytest.raises(gerd.StorageError, match="cannot be"):
        gerd.bench.make(tmp_path / "notes.txt" / "below", SPLITS)
    with pytest.raises(gerd.StorageError, match=r"s3://bucket/data: allowed: a folder"):
        gerd.bench.make("s3://bucket/data", SPLITS)
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(gerd.StorageError, match="cannot be written: Permission denied"):
        gerd.bench.make(tmp_path / "data", SPLITS)


# Commands


def test_the_list_names_tasks_factors_and_splits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("bench", "list") == 0
    shown = capsys.readouterr().out
    for name in (*gerd.bench.tasks(), *(factor.name for factor in gerd.bench.factors())):
        assert f"\n{name} " in shown
    assert "-135 -90 -60 60 90" in shown
    assert run_here("bench", "list", "--task", "flow", "--regime", "inner", "--quick") == 0
    shown = capsys.readouterr().out
    splits = gerd.bench.splits("flow", True, "inner")
    assert all(split.name in shown for split in splits)
    assert shown.endswith(f"{len(splits)} splits, {sum(split.count for split in splits)} recordings\n")


def test_make_goes_on_and_says_what_there_is(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("bench", "make", str(made), "--task", "locate", "--kind", "validate", "--quick") == 0
    assert capsys.readouterr().out == f"{made}: 1 split, 100 recordings, all with the digests of version 1\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "--task", "lokate"], "task 'lokate': did you mean locate? allowed: locate, transform"),
        (["list", "--regime", "outer"], "regime 'outer': "),
        (["make", "out", "--task", "flo"], "task 'flo': did you mean flow?"),
        (["make", "out", "--kind", "tests"], "--kind tests: did you mean test? allowed: train, validate, test"),
        (["verify", "--task", "nose", "--quick"], "task 'nose': did you mean noise?"),
        (["make", "out", "--device", "tpu"], "device 'tpu'"),
    ],
)
def test_mistakes_are_told_in_a_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_here("bench", *words) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert not os.listdir()


@pytest.mark.long
def test_verify_makes_all_again_and_compares(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("bench", "verify", "--task", "locate", "--quick") == 0
    assert capsys.readouterr().out.endswith("2150 recordings: all with the digests of version 1\n")

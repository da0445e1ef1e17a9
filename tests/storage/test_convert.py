"""Datasets of version 1 of the format, as that version wrote them: read, checked, and made into version 2."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.datasets import TWO_SHAPES, change_manifest, content, faults, make

import gerd
from gerd.storage.convert import convert
from gerd.storage.manifest import MANIFEST, shard_name

OLD = Path(__file__).parent / "version1"  # 12 recordings: 3 of a sweep of time_scale and steps
ALL = "d7866d13312e5d022648ef2da09c5df2933ac2f962a515c8f487a0682cca5d8c"  # by the program that wrote them


def digest_of(data: gerd.Recordings) -> str:
    """Over keys, flags and ground truth of all recordings."""
    result = hashlib.sha256()
    for recording in data:
        for array in (recording.keys, recording.background, recording.truth):
            result.update(array.tobytes())
    return result.hexdigest()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_old_files_are_read_as_they_were_written() -> None:
    data = gerd.Recordings(OLD)
    assert data.manifest.format_version == 1
    assert data.manifest.code_digest == ""
    assert digest_of(data) == ALL
    assert [recording.steps for recording in data[:4]] == [6, 9, 6, 9]
    assert [recording.digest for recording in data] == list(data.manifest.shards[0].recordings)
    assert faults(OLD) == []


def test_windows_and_ground_truth_of_old_files() -> None:
    data = gerd.Recordings(OLD)
    for position, recording in enumerate(data):
        part = data.window(position, 2, 5)
        assert np.array_equal(part.keys, recording.window(2, 5).keys)
        assert np.array_equal(part.truth, recording.truth[2:5])
        assert np.array_equal(data.truth(position), recording.truth)


def test_no_flipped_bit_of_an_old_file_gives_wrong_numbers(old: Path) -> None:
    """Nor does any in a window, or in the ground truth alone, although the checksum is over whole recordings."""
    wanted = list(gerd.Recordings(OLD))
    sound = (old / shard_name(0)).read_bytes()
    messages: list[str] = []
    for place in range(0, len(sound), 83):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        (old / shard_name(0)).write_bytes(damaged)
        data = gerd.Recordings(old)
        for position in (place % 12, (place + 5) % 12):
            try:
                assert data.window(position, 1, 4).keys.tolist() == wanted[position].window(1, 4).keys.tolist()
                assert data.truth(position).tobytes() == wanted[position].truth.tobytes()
            except gerd.StorageError as error:
                messages.append(str(error))
    assert len(messages) > 100
    assert all(str(old / shard_name(0)) in message for message in messages)


def test_a_converted_dataset_holds_the_same_in_fewer_bytes(old: Path, tmp_path: Path) -> None:
    progress: list[int] = []
    new = convert(old, tmp_path / "new", progress=progress.append)
    assert sum(progress) == len(new) == 12
    assert (new.manifest.format_version, new.manifest.complete, new.manifest.code_digest) == (2, True, "")
    assert digest_of(new) == ALL
    assert faults(tmp_path / "new") == []
    assert new.manifest.shards[0].recordings == gerd.Recordings(old).manifest.shards[0].recordings
    before, after = content(old), content(tmp_path / "new")
    assert len(after[shard_name(0)]) < 0.6 * len(before[shard_name(0)])
    assert {name for name in before if before[name] != after[name]} == {MANIFEST, shard_name(0)}


def test_conversion_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Of three shards; what is in the new format already is converted to itself, byte for byte."""
    make(tmp_path / "old", TWO_SHAPES, 70)
    convert(tmp_path / "old", tmp_path / "new")
    assert content(tmp_path / "new") == content(tmp_path / "old")
    (tmp_path / "new" / shard_name(1)).unlink()
    kept = (tmp_path / "new" / shard_name(0)).stat().st_mtime_ns
    change_manifest(tmp_path / "new", complete=False, shards=[])
    convert(tmp_path / "old", tmp_path / "new")
    assert content(tmp_path / "new") == content(tmp_path / "old")
    assert (tmp_path / "new" / shard_name(0)).stat().st_mtime_ns == kept


def test_what_cannot_be_converted_is_refused(old: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    (tmp_path / "full" / ".notes.0123456789abcdef.tmp").write_text("mine")
    with pytest.raises(gerd.StorageError, match="full: holds something else"):
        convert(old, tmp_path / "full")
    with pytest.raises(gerd.StorageError, match="old: holds something else"):
        convert(old, old)
    assert sorted(content(tmp_path / "full")) == [".notes.0123456789abcdef.tmp", "notes"]
    damaged = bytearray((old / shard_name(0)).read_bytes())
    damaged[-5000] ^= 1
    (old / shard_name(0)).write_bytes(damaged)
    with pytest.raises(gerd.StorageError, match=f"{shard_name(0)}: is damaged: index"):
        convert(old, tmp_path / "new")
    change_manifest(old, complete=False, shards=[])
    with pytest.raises(gerd.StorageError, match="old: is not complete"):
        convert(old, tmp_path / "newer")
    assert not (tmp_path / "newer").exists()


def test_a_recording_that_differs_from_its_digest_is_not_converted(old: Path, tmp_path: Path) -> None:
    """The digests of version 1 are under no checksum."""
    digest = bytes.fromhex(gerd.Recordings(old)[5].digest)
    forged = (old / shard_name(0)).read_bytes().replace(digest, digest[::-1])
    (old / shard_name(0)).write_bytes(forged)
    with pytest.raises(gerd.StorageError, match="index 1: the events differ from their digest"):
        convert(old, tmp_path / "new")
    assert not gerd.Recordings(tmp_path / "new").manifest.complete


def test_an_old_dataset_is_not_continued_and_a_complete_one_left_alone(old: Path) -> None:
    config = gerd.load(old / "config.yaml")
    before = content(old)
    gerd.generate(config, old, 3, workers=1)
    assert content(old) == before
    change_manifest(old, complete=False, shards=[])
    with pytest.raises(gerd.StorageError, match=r"begun by other code, .* unknown there"):
        gerd.generate(config, old, 3, workers=1)

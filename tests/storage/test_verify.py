"""What `verify` finds: every byte and every field that is not as it was written, and forgeries with valid hashes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from support.datasets import RAGGED, TWO_SHAPES, change_manifest, faults, make, noticed

import gerd
from gerd.events.cpu import run as cpu
from gerd.storage.code import code_digest
from gerd.storage.json_files import json_bytes
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, shard_name
from gerd.storage.shard import shard_bytes
from gerd.storage.verify import NOT_OURS


@pytest.mark.parametrize("regenerate", [False, True])
def test_verify_passes_a_sound_dataset(regenerate: bool, pristine: Path) -> None:
    looked_at, found = zip(*gerd.verify(pristine, regenerate=regenerate), strict=True)
    assert sum(looked_at) == 140
    assert not any(found)


@pytest.mark.parametrize("text", RAGGED.values(), ids=RAGGED)
def test_verify_passes_ragged_datasets(text: str, tmp_path: Path) -> None:
    make(tmp_path / "data", text, 2)
    assert faults(tmp_path / "data", regenerate=True) == []


@pytest.mark.parametrize("tensor", ["events", "truth", "digest", "index", "blocks", "block_steps", "checksum"])
def test_verify_finds_a_flipped_byte(tensor: str, dataset: Path) -> None:
    file = dataset / shard_name(2)
    content = bytearray(file.read_bytes())
    with safe_open(file, framework="numpy") as opened:
        part = opened.get_tensor(tensor).tobytes()
    content[content.index(part) + len(part) // 2] ^= 1
    file.write_bytes(content)
    found = faults(dataset)
    assert any("sha256" in line for line in found)
    assert all(line.startswith(f"{file}: ") for line in found)
    if tensor in ("events", "truth"):
        assert any("row 1" in line and "has changed" in line for line in found)


def test_verify_finds_swapped_shards(dataset: Path) -> None:
    a, b = dataset / shard_name(0), dataset / shard_name(1)
    a.rename(dataset / "spare")
    b.rename(a)
    (dataset / "spare").rename(b)
    with pytest.raises(gerd.StorageError, match=f"{a.name}: does not hold the rows 0 to 63"):
        gerd.Recordings(dataset)[0]
    assert {line.partition(": ")[0] for line in faults(dataset)} == {str(a), str(b)}


def test_verify_finds_a_shard_too_many(dataset: Path) -> None:
    shutil.copy(dataset / shard_name(0), dataset / shard_name(3))
    assert faults(dataset) == [f"{dataset / shard_name(3)}: {NOT_OURS}"]


def test_verify_finds_a_dataset_cut_short(dataset: Path) -> None:
    """The last shard is gone, and the manifest was made to look as if it had never been."""
    change_manifest(dataset, shards=json.loads((dataset / MANIFEST).read_text())["shards"][:2])
    (dataset / shard_name(2)).unlink()
    assert any("does not list the 3 shards" in line for line in faults(dataset))


def edits(node: Any, path: tuple[Any, ...] = ()) -> Any:
    """Every leaf of a JSON document, changed one at a time: (path, changed document)."""
    if isinstance(node, dict | list) and node:
        for key in node if isinstance(node, dict) else range(len(node)):
            for below, changed in edits(node[key], (*path, key)):
                copy = dict(node) if isinstance(node, dict) else list(node)
                copy[key] = changed
                yield below, copy
    elif isinstance(node, bool):
        yield path, not node
    elif isinstance(node, int | float):
        yield path, node + 1
    elif isinstance(node, str):
        yield path, ("0" if node[:1] != "0" else "1") + node[1:]
    else:
        yield path, "something"


@pytest.mark.parametrize("name", [MANIFEST, RESOLVED])
def test_verify_finds_every_edit_of_a_json_file(name: str, tmp_path: Path) -> None:
    make(tmp_path / "data", TWO_SHAPES, 2)
    file = tmp_path / "data" / name
    content = file.read_bytes()
    count = 0
    for path, changed in edits(json.loads(content)):
        file.write_bytes(json_bytes(changed))
        assert any(str(tmp_path / "data") in line for line in noticed(tmp_path / "data")), path
        count += 1
    assert count > 10
    file.write_bytes(content)
    assert not faults(tmp_path / "data")


def test_verify_finds_an_edited_or_missing_config_text(dataset: Path) -> None:
    (dataset / CONFIG).write_text(TWO_SHAPES + "# more\n")
    assert faults(dataset) == [f"{dataset / CONFIG}: the file differs from the sha256 in the manifest"]
    (dataset / CONFIG).unlink()
    assert faults(dataset) == [f"{dataset / CONFIG}: is missing"]


FORGERIES = {
    "the events differ": lambda r: {"keys": np.append(r.keys[0] - 1, r.keys[1:])},
    "the sources of events differ": lambda r: {"source": 1 - r.source},
    "the ground truth differs": lambda r: {"given_truth": np.nextafter(r.truth, np.inf)},
}


def store(folder: Path, content: bytes, digests: list[str]) -> None:
    """Put a shard in the place of the first, with a manifest that says so."""
    (folder / shard_name(0)).write_bytes(content)
    entry = {"file": shard_name(0), "sha256": hashlib.sha256(content).hexdigest(), "recordings": digests}
    change_manifest(folder, shards=[entry])


def test_a_forged_digest_is_found(tmp_path: Path) -> None:
    digests = [recording.digest for recording in make(tmp_path, TWO_SHAPES, 1)]
    forged = list(gerd.Recordings(tmp_path))
    forged[1].__dict__["digest"] = "00" * 32
    store(tmp_path, shard_bytes(forged, [0, 1], code_digest()), [digests[0], "00" * 32])
    assert faults(tmp_path) == [f"{tmp_path / shard_name(0)}: row 1: the events differ from their digest"]


@pytest.mark.parametrize("message", FORGERIES)
def test_regenerate_finds_a_forgery_with_valid_hashes(message: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    recordings = list(make(folder, TWO_SHAPES, 3))
    recordings[4] = dataclasses.replace(recordings[4], **FORGERIES[message](recordings[4]))
    store(folder, shard_bytes(recordings, [0, 1] * 3, code_digest()), [recording.digest for recording in recordings])
    assert not faults(folder)
    assert faults(folder, regenerate=True) == [f"{folder / shard_name(0)}: row 4: made again, {message}"]


@pytest.mark.parametrize("field", ["labels", "step_us"])
def test_a_recording_that_is_not_the_configs_is_found_and_not_read(field: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    recordings = list(make(folder, TWO_SHAPES, 1))
    identity = dataclasses.replace(recordings[1].identity, labels={"time_scale": 3})
    change = {"labels": {"identity": identity}, "step_us": {"step_us": recordings[1].step_us + 1}}
    recordings[1] = dataclasses.replace(recordings[1], **change[field])
    store(folder, shard_bytes(recordings, [0, 1], code_digest()), [recording.digest for recording in recordings])
    message = "is damaged: index 0, member 1, is not a recording of the dataset's config"
    assert faults(folder) == [f"{folder / shard_name(0)}: row 1: {message}"]
    with pytest.raises(gerd.StorageError, match="is not a recording of the dataset's config"):
        gerd.Recordings(folder)[1]


def test_an_unfinished_dataset_of_any_size_is_looked_through_at_once(dataset: Path) -> None:
    """What is there is looked at, not each of the billions of shards that could be."""
    change_manifest(dataset, count=2**32, complete=False, shards=[])
    found = faults(dataset)
    assert "the dataset is not complete" in found[0]
    assert "shard-000002.safetensors: does not hold the rows" in found[-1]


def test_a_kernel_that_is_wrong_does_not_vouch_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same wrong machine code has made the dataset and makes it again; the definition has another opinion."""
    right = cpu.run

    def wrong(scenes: Any, chunk: int | None = None) -> Any:
        for part in right(scenes, chunk):
            yield part._replace(keys=part.keys[:-1], source=part.source[:-1])

    monkeypatch.setattr(cpu, "run", wrong)
    make(tmp_path / "data", TWO_SHAPES, 40)
    found = faults(tmp_path / "data", regenerate=True)
    events = [line.partition(": row ")[2] for line in found if "the events differ" in line]
    assert events == [f"{first}: made again by the definition, the events differ" for first in (0, 64)]

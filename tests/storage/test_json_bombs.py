"""The JSON of a stranger's dataset: small files that would take hours or gigabytes are refused, and ours never are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import bombs
from support.datasets import SMALL, change_manifest, make
from support.processes import bounded

import gerd
from gerd.config.digest import digest_of
from gerd.storage.json_files import BYTES_OF_SHARD, LARGEST_JSON, check_values, json_bytes, parsed_json
from gerd.storage.manifest import MANIFEST, RESOLVED, SHARD_SIZE, Entry, config_files, read_manifest, shard_name
from gerd.storage.places import Folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs") / "data"
    make(folder, SMALL, 3)
    return folder


@pytest.fixture
def data(small: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small, tmp_path / "data"))


MANIFESTS: dict[str, tuple[Any, str]] = {
    "a key that stands twice": (lambda: bombs.repeated_key(150_000), "is damaged: it has the key 'key149999' twice"),
    "empty objects": (lambda: bombs.empty_objects(60_000_000), "values in 60000055 bytes; at most 3000000 are read"),
    "some empty objects": (lambda: bombs.empty_objects(500_000), "is damaged: it has no valid 'shards.0'"),
    "numbers": (lambda: bombs.manifest_of_numbers(2_900_000), "is damaged: it has no valid 'shards.0.recordings.0'"),
    "more objects": (lambda: bombs.empty_objects(1_000_000), "has 333335 objects in 1000054 bytes; at most 200000 are"),
    "keys": (lambda: bombs.many_keys(1_000_000), "has 1000000 keys in 15888890 bytes; at most 250000 are read"),
    "digits": (lambda: b"1" * 100_000, "manifest.json: is "),
    "brackets": (lambda: b"[" + b"[]," * 10_000_000 + b"[]]", "values in 30000004 bytes; at most 3000000 are read"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_that_is_a_bomb_is_refused(kind: str, data: Path) -> None:
    make_bomb, message = MANIFESTS[kind]
    (data / MANIFEST).write_bytes(make_bomb())
    result = bounded(data.parent, "info", "data", gigabytes=1.7, seconds=30)
    assert result.returncode == 1, result.stderr
    assert message in result.stderr


def forge(data: Path, **fields: Any) -> None:
    """Change the stored config, and the manifest so that it names that."""
    resolved = {**json.loads((data / RESOLVED).read_text()), **fields}
    (data / RESOLVED).write_bytes(json_bytes(resolved))
    change_manifest(data, config_digest=digest_of(resolved))


def test_a_stored_grid_is_refused_before_its_members_are_made(data: Path) -> None:
    values = [round(0.5 + 0.01 * number, 2) for number in range(300)]
    sweep = {"noise.background": [value / 1000 for value in values], "actors.0.rotation.velocity": values}
    forge(data, time_scale={"factor": 2, "keep": "path"}, sweep=sweep)
    result = bounded(data.parent, "info", "data", gigabytes=3, seconds=30)
    assert result.returncode == 1, result.stderr
    assert "resolved.json: is damaged: " in result.stderr


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1_000_000, "resolved.json: has 1000000 keys in 15888890 bytes; at most 250000 are read"),
        (200_000, "resolved.json: is damaged: key0: unknown key; "),
    ],
)
def test_a_stored_config_of_unknown_keys_takes_little_memory(data: Path, number: int, message: str) -> None:
    """pydantic holds some kilobytes for each of them."""
    (data / RESOLVED).write_bytes(bombs.many_keys(number))
    result = bounded(data.parent, "info", "data", gigabytes=1.7, seconds=30)
    assert (result.returncode, message in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("number", [0, 1, 200])
def test_a_key_that_stands_twice_is_found_wherever_it_is(number: int) -> None:
    keys = [f'"key{i}": {i}' for i in range(300)]
    assert parsed_json(("{" + ", ".join(keys) + "}").encode())["key299"] == 299
    with pytest.raises(ValueError, match=f"'key{number}' twice"):
        parsed_json(("{" + ", ".join([*keys, keys[number]]) + "}").encode())


def test_what_is_written_can_be_read() -> None:
    ring = [[0.1 * i, 0.001 * i * i] for i in range(200)]
    config = gerd.parse({"steps": 2, "actors": [{"shape": {"polygon": ring}}]})
    size = len(config_files(config)[RESOLVED])
    assert config_files(config, most=size)
    message = f"takes {size} bytes with all outlines written out; .* up to {size - 1}: take "
    with pytest.raises(gerd.StorageError, match=message):
        config_files(config, most=size - 1)


def test_the_manifest_of_a_large_dataset_can_be_read(data: Path) -> None:
    """A quarter of a million recordings in one folder, whose shards are empty files; their manifest is larger than
    that of a dataset without shards may be, and has fewer values than would make it suspicious."""
    shards = LARGEST_JSON // (74 * SHARD_SIZE) + 200
    digests = tuple(f"{number:064x}" for number in range(SHARD_SIZE))
    entries = tuple(Entry(file=shard_name(k), sha256="0" * 64, recordings=digests) for k in range(shards))
    sound = read_manifest(Folder(data))
    content = sound.model_copy(update={"count": shards * SHARD_SIZE, "shards": entries}).to_bytes()
    assert len(content) > LARGEST_JSON
    assert len(content) < BYTES_OF_SHARD * shards
    check_values(content, MANIFEST)
    (data / MANIFEST).write_bytes(content)
    with pytest.raises(gerd.StorageError, match=f"bytes; at most {LARGEST_JSON + BYTES_OF_SHARD * 4} are allowed"):
        read_manifest(Folder(data))
    for number in range(shards):
        (data / shard_name(number)).touch()
    assert read_manifest(Folder(data)).shard_count == shards

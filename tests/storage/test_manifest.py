"""The manifest: the bytes that it has, and a clear error for any other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pydantic
import pytest
from support.datasets import TWO_SHAPES, change_manifest, content, faults, noticed

import gerd
from gerd.storage.code import code_digest
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, read_manifest, shard_name, shard_number
from gerd.storage.places import Folder


def test_the_manifest_is_json_in_this_order(pristine: Path) -> None:
    """Byte for byte: datasets are compared by their files."""
    files, config = content(pristine), gerd.parse(TWO_SHAPES)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    recordings = [gerd.simulate(config, i, time_scale=scale).digest for i in range(70) for scale in (0.5, 2)]
    wanted = {
        "format": "gerd",
        "format_version": 1,
        "gerd_version": gerd.__version__,
        "code_digest": code_digest(),
        "config_digest": config.digest,
        "seed": 3,
        "count": 70,
        "members": 2,
        "sweep": {"time_scale": [0.5, 2]},
        "files": {name: digests[name] for name in (CONFIG, RESOLVED)},
        "complete": True,
        "shards": [
            {"file": shard_name(n), "sha256": digests[shard_name(n)], "recordings": recordings[64 * n : 64 * n + 64]}
            for n in range(3)
        ],
    }
    assert files[MANIFEST].decode() == json.dumps(wanted, indent=1, ensure_ascii=False) + "\n"
    manifest = read_manifest(Folder(pristine))
    assert manifest.to_bytes() == files[MANIFEST]
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        manifest.complete = False


DAMAGED, FOREIGN = "is damaged: ", "is not the manifest of a GERD dataset"
GARBAGE = {
    "empty": (b"", DAMAGED),
    "cut": (b'{"format": "gerd", ', DAMAGED),
    "list": (b"[]", FOREIGN),
    "null": (b"null", FOREIGN),
    "binary": (bytes(range(256)), DAMAGED),
    "deep": (b"[" * 100_000, DAMAGED),
    "foreign": (b'{"name": "a package"}', FOREIGN),
    "newer": (b'{"format": "gerd", "format_version": 2}', "has format version 2; this version of gerd reads 1"),
    "bare": (b'{"format": "gerd", "format_version": 1}', "is damaged: it has no valid 'gerd_version'"),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_garbage_manifest_is_named(kind: str, dataset: Path) -> None:
    data, message = GARBAGE[kind]
    (dataset / MANIFEST).write_bytes(data)
    for use in (gerd.Recordings, faults):
        with pytest.raises(gerd.StorageError) as error:
            use(dataset)
        assert str(error.value).startswith(f"{dataset / MANIFEST}: {message}")


@pytest.mark.parametrize("key", ["count", "members", "seed", "sweep", "complete", "files", "shards"])
@pytest.mark.parametrize("value", [None, "a", -1, 2.5, [1], [{"file": 3}], 10**40], ids=repr)
def test_a_manifest_with_a_wrong_field_is_noticed(key: str, value: Any, dataset: Path) -> None:
    change_manifest(dataset, **{key: value})
    assert any(MANIFEST in line and key in line for line in noticed(dataset))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 2**32, "members": 2**32}, "it has no valid 'members'"),
        ({"complete": 1}, "it has no valid 'complete'"),
        ({"seed": True}, "it has no valid 'seed'"),
        ({"shards": [{"file": "a", "sha256": "b", "recordings": [7]}]}, r"no valid 'shards\.0\.recordings\.0'"),
    ],
)
def test_an_error_names_the_field(fields: dict[str, Any], message: str, dataset: Path) -> None:
    change_manifest(dataset, **fields)
    with pytest.raises(gerd.StorageError, match=message):
        gerd.Recordings(dataset)


def test_names_of_shards_are_known() -> None:
    assert [shard_number(shard_name(number)) for number in (0, 7, 999_999, 1_000_000)] == [0, 7, 999_999, 1_000_000]
    for text in ("1", "", "00000a", "1" * 99):
        assert shard_number(f"shard-{text}.safetensors") is None
    assert shard_number("shard-000001") is None

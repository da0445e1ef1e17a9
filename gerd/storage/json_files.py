"""The JSON files of a dataset: bytes in, plain data out, and the other way round.

A stranger's file is not read unless it could be one of ours: its size is bounded, and so is how many values it has for
its size, before they become objects, of which a small one takes as much memory as fifty bytes of text. Our own files
are held to the same bounds when they are written, so that whatever is written can be read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from gerd.errors import StorageError, shorten
from gerd.storage.places import LARGEST_FILE, MissingError, Readable

LARGEST_JSON = 2**26  # bytes of a file; a config of as many vertices as one may have takes less
BYTES_OF_SHARD = 2**13  # more for each shard that is there: 74 bytes for each of its 64 recordings, and its name
MOST_VALUES = 3_000_000  # in a file of LARGEST_JSON bytes or less
BYTES_OF_VALUE = 32  # beyond that; digests take twice as many
MOST_OBJECTS = 200_000  # {…} in a config: as many as it may have values, written and repeated
BYTES_OF_OBJECT = 128  # beyond that; a shard has one
MOST_KEYS = 250_000  # twice as many as a config may have, written and repeated, and more for defaults
BYTES_OF_KEY = 512  # beyond that; a shard has three


class RepeatedKeyError(ValueError):
    """A key stands twice in a JSON object; readers differ in which of the two they take."""


def read_json(place: Readable, name: str) -> bytes:
    """A JSON file of a dataset, if it is no larger than what is written for as many shards as there are."""
    try:
        content = place.read(name, most=LARGEST_JSON)
    except MissingError:
        raise
    except StorageError:
        shards = 0
        with suppress(StorageError):
            shards = len(place.names())
        content = place.read(name, most=min(LARGEST_FILE, LARGEST_JSON + BYTES_OF_SHARD * shards))
    check_values(content, place.at(name))
    return content


def check_values(content: bytes, name: str) -> None:
    """An error if a file has more values than any file that is written here."""
    values = content.count(b",") + content.count(b"[")
    for what, number, most, size in (
        ("values", values, MOST_VALUES, BYTES_OF_VALUE),
        ("objects", content.count(b"{"), MOST_OBJECTS, BYTES_OF_OBJECT),
        ("keys", content.count(b":"), MOST_KEYS, BYTES_OF_KEY),
    ):
        allowed = most + max(0, len(content) - LARGEST_JSON) // size
        if number > allowed:
            raise StorageError(f"{name}: has {number} {what} in {len(content)} bytes; at most {allowed} are read")


def parsed_json(content: bytes) -> Any:
    """JSON as plain data; ValueError if it is not JSON, if a key stands twice, or if a text cannot be written again."""

    def unique(items: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(items)
        if len(result) < len(items):
            seen = set[str]()
            for key, _ in items:
                if key in seen:
                    raise RepeatedKeyError(f"it has the key {shorten(key)} twice")
                seen.add(key)
        return result

    result = json.loads(content, object_pairs_hook=unique)
    if b"\\u" in content:
        json.dumps(result, ensure_ascii=False).encode()  # half of a surrogate pair cannot be written
    return result


def json_bytes(data: object) -> bytes:
    """The bytes of a JSON file of a dataset."""
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()

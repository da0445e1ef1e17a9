"""The files of a dataset, and what its manifest says about them.

    manifest.json            what the dataset is; sha256 of every file and of every recording's events
    config.yaml              the config as the user wrote it, --set options as comments
    resolved.json            the config with every default filled in, and no files or fonts left to look up
    registration.json        of real recordings: how they were recorded (`gerd/screen`)
    shard-000000.safetensors recordings 0 … SHARD_SIZE - 1, and so on; `shard.py` says what is in one
    shard-000007.grown.safetensors  while a dataset grows: what its last shard, which is not full, becomes
    .part-1-of-3.json        the entries of one part's shards, until all parts are made

A dataset of `count` recordings of a config with M members holds count · M recordings; number i · M + k is member k
of recording i. JSON goes in and frozen models come out; a file that is not sound is a `StorageError` that names the
file and the field.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gerd.config.config import MOST_MEMBERS, Config
from gerd.config.sweep import member_count
from gerd.errors import StorageError
from gerd.recording.recording import FORMAT_VERSION
from gerd.scene.draw import MOST_INDICES
from gerd.storage.code import code_digest
from gerd.storage.json_files import (
    LARGEST_JSON,
    RepeatedKeyError,
    check_values,
    json_bytes,
    parsed_json,
    read_json,
)
from gerd.storage.places import File, MissingError, Readable
from gerd.version import __version__

SHARD_SIZE = 64  # recordings
MANIFEST, CONFIG, RESOLVED = "manifest.json", "config.yaml", "resolved.json"
REGISTRATION = "registration.json"
PIECE = 2**22  # bytes read at once
UNFINISHED = "the dataset is not complete; run the same generate command to finish it"


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    def to_bytes(self) -> bytes:
        return json_bytes(self.model_dump())


class Entry(_Json):
    """What the manifest says about one shard."""

    file: str
    sha256: str
    recordings: tuple[str, ...]  # the sha256 of each recording's events


class Part(_Json):
    """What one of several independent commands has made."""

    config_digest: str
    code_digest: str
    shards: tuple[Entry, ...]


class Manifest(_Json):
    """What a dataset is."""

    format: Literal["gerd"]
    format_version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)]
    gerd_version: str
    code_digest: str  # of the sources that decide the bits
    config_digest: str
    seed: int
    count: Annotated[int, Field(ge=1, le=MOST_INDICES)]
    members: Annotated[int, Field(ge=1, le=MOST_MEMBERS)]
    sweep: dict[str, list[Any]]
    files: dict[str, str]  # name: sha256
    complete: bool
    shards: tuple[Entry, ...]  # none before the dataset is complete
    recorded: bool = False  # whether a camera has recorded the events; the file does not say so if they were simulated

    def to_bytes(self) -> bytes:
        return json_bytes(self.model_dump(exclude=None if self.recorded else {"recorded"}))

    @property
    def recordings(self) -> int:
        return self.count * self.members

    @property
    def shard_count(self) -> int:
        return -(-self.recordings // SHARD_SIZE)

    def file(self, number: int) -> str:
        """The name of shard `number`; while a dataset grows, the manifest may list the grown one beside the old one."""
        grown = number < len(self.shards) and self.shards[number].file == grown_name(number)
        return grown_name(number) if grown else shard_name(number)

    def rows(self, number: int) -> range:
        """The rows of the dataset that shard `number` holds."""
        return range(number * SHARD_SIZE, min((number + 1) * SHARD_SIZE, self.recordings))


def new_manifest(config: Config, count: int) -> Manifest:
    """The manifest of a dataset of which no shard is made yet."""
    return Manifest(
        format="gerd",
        format_version=FORMAT_VERSION,
        gerd_version=__version__,
        code_digest=code_digest(),
        config_digest=config.digest,
        seed=config.seed,
        count=count,
        members=member_count(config),
        sweep={path: list(values) for path, values in config.resolved()["sweep"].items()},
        files={name: hashlib.sha256(data).hexdigest() for name, data in config_files(config).items()},
        complete=False,
        shards=(),
    )


def config_files(config: Config, most: int = LARGEST_JSON) -> dict[str, bytes]:
    """The two files that say what a dataset is made from; an error if `resolved` takes more than `most` bytes."""
    resolved = json_bytes(config.resolved())
    if len(resolved) > most:
        raise StorageError(
            f"{config.name or 'config'}: takes {len(resolved)} bytes with all outlines written out; a dataset stores "
            f"up to {most}: take fewer shapes, or outlines with fewer vertices"
        )
    check_values(resolved, config.name or "config")
    return {CONFIG: config.text.encode(), RESOLVED: resolved}


def read_manifest(place: Readable) -> Manifest:
    """The manifest of the dataset at `place`, its fields checked."""
    try:
        content = read_json(place, MANIFEST)
        try:
            wrong = _wrong_entry(parsed_json(content))
        except RepeatedKeyError:
            raise
        except (ValueError, RecursionError):
            wrong = None  # the model says what is wrong with it
        if wrong is not None:
            raise StorageError(f"{place.at(MANIFEST)}: is damaged: it has no valid 'shards.{wrong}'")
        return Manifest.model_validate_json(content)
    except RepeatedKeyError as error:
        raise StorageError(f"{place.at(MANIFEST)}: is damaged: {error}") from None
    except MissingError:
        problem = "has no manifest.json, so it is not a GERD dataset" if place.exists() else "there is no such dataset"
        raise StorageError(f"{place}: {problem}") from None
    except ValidationError as error:
        raise StorageError(f"{place.at(MANIFEST)}: {_problem(error)}") from None


def _wrong_entry(data: object) -> str | None:
    """The first thing in the list of shards that is not of its type: pydantic would list every one of millions."""
    shards = data.get("shards") if isinstance(data, dict) and data.get("format") == "gerd" else None
    for number, entry in enumerate(shards if isinstance(shards, list) else ()):
        if not isinstance(entry, dict) or not isinstance(recordings := entry.get("recordings"), list):
            return f"{number}"
        for own, digest in enumerate(recordings):
            if not isinstance(digest, str):
                return f"{number}.recordings.{own}"
    return None


def _problem(error: ValidationError) -> str:
    """The first thing that is wrong with a manifest; `format` and its version come before all else."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] == "json_invalid":
        return f"is damaged: {first['msg']}"
    if field in ("", "format"):
        return "is not the manifest of a GERD dataset"
    if field == "format_version" and first["type"] != "missing":
        return f"has format version {first['input']}; this version of gerd reads {FORMAT_VERSION}"
    return f"is damaged: it has no valid {field!r}"


def shard_name(number: int) -> str:
    return f"shard-{number:06d}.safetensors"


def grown_name(number: int) -> str:
    """The name of a shard that takes the place of a shorter one, until the shorter one is no longer needed."""
    return f"shard-{number:06d}.grown.safetensors"


def shard_number(name: str) -> int | None:
    """The number of the shard that a file of this name is; None if it is something else."""
    digits = name.removeprefix("shard-").removesuffix(".safetensors")
    return int(digits) if digits.isdecimal() and len(digits) < 20 and shard_name(int(digits)) == name else None


def file_digest(file: File) -> str:
    """The sha256 of a file, read in pieces."""
    result = hashlib.sha256()
    for begin in range(0, file.size, PIECE):
        result.update(file.read(begin, min(begin + PIECE, file.size)))
    return result.hexdigest()

"""Datasets on disk or in an object store: shards, a manifest, and the config they were made from.

    manifest.json            what the dataset is; sha256 of every file and of every recording's events
    config.yaml              the config as the user wrote it, --set options as comments
    resolved.json            the config with every default filled in, and no files or fonts left to look up
    shard-000000.safetensors recordings 0 … SHARD_SIZE - 1, and so on; `shard.py` says what is in one

A dataset of `count` recordings of a config with M members holds count · M recordings; number i · M + k is member k
of recording i. Nothing here is ever unpickled or run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index as whole_number
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gerd.config.config import MOST_MEMBERS, Config, digest_of
from gerd.config.sweep import labels, member_count
from gerd.errors import StorageError
from gerd.recording.recording import FORMAT_VERSION, Recording
from gerd.storage.places import File, Folder, MissingError, Store, store_at
from gerd.storage.shard import Shard

SHARD_SIZE = 64  # recordings
MANIFEST, CONFIG, RESOLVED = "manifest.json", "config.yaml", "resolved.json"
OPEN_SHARDS = 64  # shards kept open by one reader
PIECE = 2**22  # bytes read at once
UNFINISHED = "the dataset is not complete; run the same generate command to finish it"


def shard_name(number: int) -> str:
    return f"shard-{number:06d}.safetensors"


def shard_positions(number: int, recordings: int) -> range:
    """The positions in the dataset of the recordings in a shard."""
    return range(number * SHARD_SIZE, min((number + 1) * SHARD_SIZE, recordings))


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


def json_bytes(data: Any) -> bytes:
    """The bytes of a JSON file of a dataset."""
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def read_manifest(store: Store) -> dict[str, Any]:
    """The manifest of a dataset, its fields checked."""
    file = store.at(MANIFEST)
    try:
        manifest = json.loads(store.read(MANIFEST))
    except MissingError:
        what = "has no manifest.json, so it is not a GERD dataset" if store.exists() else "there is no such dataset"
        raise StorageError(f"{store}: {what}") from None
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{file}: is damaged: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "gerd":
        raise StorageError(f"{file}: is not the manifest of a GERD dataset")
    if manifest.get("format_version") != FORMAT_VERSION:
        found = manifest.get("format_version")
        raise StorageError(f"{file}: has format version {found}; this version of gerd reads {FORMAT_VERSION}")
    for key, valid in _FIELDS.items():
        if not valid(manifest.get(key)):
            raise StorageError(f"{file}: is damaged: it has no valid {key!r}")
    return manifest


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 2**32


def is_entry(value: Any) -> bool:
    """Whether `value` is what the manifest says about one shard."""
    if not (isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("file", "sha256"))):
        return False
    digests = value.get("recordings")
    return isinstance(digests, list) and all(isinstance(digest, str) for digest in digests)


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "gerd_version": lambda value: isinstance(value, str),
    "config_digest": lambda value: isinstance(value, str),
    "seed": lambda value: type(value) is int,
    "count": _is_count,
    "members": lambda value: _is_count(value) and value <= MOST_MEMBERS,
    "complete": lambda value: isinstance(value, bool),
    "files": lambda value: isinstance(value, dict),
    "shards": lambda value: isinstance(value, list) and all(is_entry(entry) for entry in value),
}


class Recordings(Sequence[Recording]):
    """The recordings of a dataset, read one at a time from a folder or from a URL such as s3://bucket/name."""

    def __init__(self, path: str | Path):
        self.store = store_at(path)
        self.path = self.store.path if isinstance(self.store, Folder) else str(path)
        self.manifest = read_manifest(self.store)
        self._shards: dict[int, Shard] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_shards": {}}  # another process opens its own files

    def __repr__(self) -> str:
        return f"<Recordings {self.path}: {len(self)} of config {self.manifest['config_digest'][:8]}>"

    @cached_property
    def config(self) -> Config:
        """The config that the recordings were made from, sweep and all."""
        file = self.store.at(RESOLVED)
        try:
            data = json.loads(self.store.read(RESOLVED))
            if digest_of(data) != self.manifest["config_digest"]:
                raise StorageError(f"{file}: is not the config that the manifest names")
            return Config.model_validate(data)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ValidationError) as error:
            raise StorageError(f"{file}: is damaged: {str(error).splitlines()[0]}") from None

    def __len__(self) -> int:
        return self.manifest["count"] * self.manifest["members"]

    @property
    def shard_count(self) -> int:
        return -(-len(self) // SHARD_SIZE)

    def shard(self, number: int) -> Shard:
        """Shard number `number`, which stays open for the next recording that is asked for."""
        opened = self._shards.get(number)
        if opened is not None:
            return opened
        try:
            shard = Shard(self.store.open(shard_name(number)))
        except MissingError as error:
            raise error if self.manifest["complete"] else MissingError(f"{error}: {UNFINISHED}") from None
        positions, members = shard_positions(number, len(self)), self.manifest["members"]
        here = all(getattr(shard, key) == self.manifest[key] for key in ("config_digest", "seed", "gerd_version"))
        if not here or list(zip(shard.index, shard.member, strict=True)) != [divmod(i, members) for i in positions]:
            wanted = f"{positions.start} to {positions.stop - 1}"
            raise StorageError(f"{shard.path}: does not hold the recordings {wanted} of this dataset")
        self._shards[number] = shard
        if len(self._shards) > OPEN_SHARDS:
            self._shards.pop(next(iter(self._shards)), None)
        return shard

    @overload
    def __getitem__(self, position: int) -> Recording: ...
    @overload
    def __getitem__(self, position: slice) -> list[Recording]: ...
    def __getitem__(self, position: int | slice) -> Recording | list[Recording]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        shard, row = self._place(position)
        return shard.recording(row, self.config)

    def window(self, position: int, start: int, stop: int) -> Recording:
        """The steps from `start` up to `stop` of a recording; nothing else of it is read."""
        shard, row = self._place(position)
        return shard.window(row, self.config, start, stop)

    def truth(self, position: int) -> NDArray[np.float64]:
        """(steps, actors, 3, 6): the ground truth of a recording; nothing else of it is read."""
        shard, row = self._place(position)
        return shard.truth(row)

    def _place(self, position: int) -> tuple[Shard, int]:
        """Where the recording is."""
        wanted = whole_number(position)
        if not -len(self) <= wanted < len(self):
            raise IndexError(f"{self.path}: there is no recording {wanted}; it holds {len(self)}, numbered from 0")
        number, row = divmod(wanted % len(self), SHARD_SIZE)
        return self.shard(number), row


@dataclass(frozen=True)
class Fault:
    """Something that `verify` found."""

    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def verify(path: str | Path, *, regenerate: bool = False, trust: bool = False) -> Iterator[tuple[int, list[Fault]]]:
    """Check a dataset shard by shard: yields how many recordings were looked at, and what is wrong with them.

    Compares each file with the manifest's sha256, each recording's events with their digest, and the manifest with the
    config. With `regenerate` it also makes every recording again from the stored config and compares all bits. Code
    that the config names is run only with `trust`; it is looked for in the current folder, too.
    """
    data = Recordings(path)
    try:
        config: Config | None = data.config.trusted(str(Path.cwd()) if trust else None)
        faults = _manifest_faults(data, data.config)
    except StorageError as error:
        config, faults = None, [_fault(data.store.at(RESOLVED), error)]
    found = {name for name in data.store.names() if name.startswith("shard-")}
    yield 0, faults + _file_faults(data, found)
    listed = {entry["file"]: entry for entry in data.manifest["shards"]}
    if data.manifest["complete"]:
        numbers = list(range(min(data.shard_count, len(listed))))
    else:  # those that are not made yet were mentioned above
        numbers = sorted(n for n in map(shard_number, found) if n is not None and n < data.shard_count)
    for number in numbers:
        entry = listed.get(shard_name(number))
        looked_at = len(shard_positions(number, len(data)))
        yield looked_at, list(_shard_faults(data, config, number, entry, regenerate))


def _fault(file: str, error: StorageError) -> Fault:
    return Fault(file, str(error).removeprefix(f"{file}: "))


def _manifest_faults(data: Recordings, config: Config) -> list[Fault]:
    """Where the manifest contradicts the config."""
    sweep = {path: list(values) for path, values in config.resolved()["sweep"].items()}
    wanted = {"seed": config.seed, "members": member_count(config), "sweep": sweep}
    return [
        Fault(data.store.at(MANIFEST), f"{key} is {data.manifest.get(key)}, but {value} by the config")
        for key, value in wanted.items()
        if data.manifest.get(key) != value
    ]


def _file_faults(data: Recordings, shards: set[str]) -> list[Fault]:
    """What is wrong with the set of files, and with those that are not shards."""
    faults = []
    for name in (CONFIG, RESOLVED):
        file = data.store.at(name)
        try:
            if hashlib.sha256(data.store.read(name)).hexdigest() != data.manifest["files"].get(name):
                faults.append(Fault(file, "the file differs from the sha256 in the manifest"))
        except StorageError as error:
            faults.append(_fault(file, error))
    listed = [entry["file"] for entry in data.manifest["shards"]]
    if not data.manifest["complete"]:
        faults.append(Fault(data.store.at(MANIFEST), UNFINISHED))
    elif len(listed) != data.shard_count or listed != [shard_name(number) for number in range(len(listed))]:
        message = f"does not list the {data.shard_count} shards of {len(data)} recordings"
        faults.append(Fault(data.store.at(MANIFEST), message))
    strange = (name for name in shards if shard_number(name) not in range(data.shard_count))
    return faults + [Fault(data.store.at(name), "does not belong to the dataset") for name in sorted(strange)]


def _shard_faults(
    data: Recordings, config: Config | None, number: int, entry: dict[str, Any] | None, regenerate: bool
) -> Iterator[Fault]:
    file = data.store.at(shard_name(number))
    try:
        if entry is not None and file_digest(data.store.open(shard_name(number))) != entry["sha256"]:
            yield Fault(file, "the file differs from the sha256 in the manifest")
        shard = data.shard(number)
    except StorageError as error:
        yield _fault(file, error)
        return
    if entry is not None and entry["recordings"] != [bytes(digest).hex() for digest in shard.digest]:
        yield Fault(file, "the digests of its recordings differ from those in the manifest")
    if config is None:
        return
    for row, position in enumerate(shard_positions(number, len(data))):
        index, member = divmod(position, data.manifest["members"])
        for message in _recording_faults(shard, row, config, index, member, regenerate):
            yield Fault(file, f"recording {position}: {message}")


def _recording_faults(
    shard: Shard, row: int, config: Config, index: int, member: int, regenerate: bool
) -> Iterator[str]:
    from gerd.recording.simulate import simulate

    try:
        recording = shard.recording(row, config)
    except StorageError:
        yield "differs from its checksum"
        return
    if recording.digest != bytes(shard.digest[row]).hex():
        yield "the events differ from their digest"
    if member >= member_count(config):
        return
    wanted = labels(config, member)
    if json.dumps(recording.identity.labels) != json.dumps(wanted):
        yield f"has the labels {recording.identity.labels}, not {wanted}"
    if regenerate:
        again = simulate(config, index, **wanted)
        for what, fields in (
            ("the size differs", ("width", "height", "steps", "step_us")),
            ("the events differ", ("digest",)),
            ("the background flags differ", ("background",)),
            ("the ground truth differs", ("truth",)),
        ):
            if any(_bits(getattr(again, name)) != _bits(getattr(recording, name)) for name in fields):
                yield f"made again, {what}"


def _bits(value: Any) -> bytes:
    return np.asarray(value).tobytes()

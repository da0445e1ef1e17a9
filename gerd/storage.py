"""Datasets on disk: a directory of safetensors shards, a manifest, and the config they were made from.

    manifest.json            what the dataset is; sha256 of every shard and of every recording's events
    config.yaml              the config as the user wrote it
    resolved.json            the config with every default filled in, and no files or fonts left to look up
    shard-000000.safetensors recordings 0 … SHARD_SIZE - 1, and so on

A dataset of `count` recordings of a config with M members holds count · M recordings; number i · M + k is member k
of recording i. A shard's tensors (ragged rows are concatenated, with offsets):

    index, member            (n,) int64          recording index, and member of the family
    shape                    (n, 4) int64        steps, height, width, actors
    event_offsets            (n + 1,) int64      rows of `keys` and bits of `background`
    keys                     int32 or int64      ((step · height + y) · width + x) · 2 + p, ascending
    background               uint8, packed bits  whether the event is background noise, first event = highest bit
    truth_offsets            (n + 1,) int64      rows of `truth`
    truth                    (rows, 3, 6) f64    step-major rows of (step, actor): parameters, velocities, accelerations
    digest                   (n, 32) uint8       sha256 of the events

Nothing here is ever unpickled or run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gerd.config import Config
from gerd.errors import StorageError
from gerd.recording import FORMAT_VERSION, Identity, Recording
from gerd.sweep import labels, member_count

SHARD_SIZE = 64  # recordings
MANIFEST, CONFIG, RESOLVED = "manifest.json", "config.yaml", "resolved.json"
OPEN_SHARDS = 64  # shards kept open by one reader

_TENSORS = {  # name: (dtypes, dimensions)
    "index": (("int64",), 1),
    "member": (("int64",), 1),
    "shape": (("int64",), 2),
    "event_offsets": (("int64",), 1),
    "keys": (("int32", "int64"), 1),
    "background": (("uint8",), 1),
    "truth_offsets": (("int64",), 1),
    "truth": (("float64",), 3),
    "digest": (("uint8",), 2),
}


def shard_name(number: int) -> str:
    return f"shard-{number:06d}.safetensors"


def shard_positions(number: int, recordings: int) -> range:
    """The positions in the dataset of the recordings in a shard."""
    return range(number * SHARD_SIZE, min((number + 1) * SHARD_SIZE, recordings))


def shard_bytes(recordings: Sequence[Recording], members: Sequence[int]) -> bytes:
    """A shard as the bytes of its file: the same for the same recordings, whoever writes it."""
    from safetensors.numpy import save

    small = all(r.steps * 2 * r.height * r.width <= 2**31 for r in recordings)
    truth = [r.truth.reshape(-1, 3, 6) for r in recordings]
    tensors: dict[str, NDArray[Any]] = {
        "index": np.array([r.identity.index for r in recordings], np.int64),
        "member": np.array(members, np.int64),
        "shape": np.array([(r.steps, r.height, r.width, r.actors) for r in recordings], np.int64),
        "event_offsets": _offsets([len(r) for r in recordings]),
        "keys": np.concatenate([r.keys for r in recordings]).astype(np.int32 if small else np.int64),
        "background": np.packbits(np.concatenate([r.background for r in recordings])),
        "truth_offsets": _offsets([len(rows) for rows in truth]),
        "truth": np.ascontiguousarray(np.concatenate(truth)),
        "digest": np.array([list(bytes.fromhex(r.digest)) for r in recordings], np.uint8),
    }
    first = recordings[0].identity
    about = {
        "format_version": FORMAT_VERSION,
        "gerd_version": first.gerd_version,
        "config_digest": first.config_digest,
        "seed": first.seed,
        "step_us": [r.step_us for r in recordings],
        "labels": [r.identity.labels for r in recordings],
    }
    # One metadata key only: safetensors writes several in no fixed order.
    return save(tensors, metadata={"gerd": json.dumps(about)})


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def write_atomically(path: Path, data: bytes) -> None:
    """All of the file or none of it, on the disk when this returns."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the dataset in the folder `path`."""
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        what = "has no manifest.json, so it is not a GERD dataset" if path.is_dir() else "there is no such dataset"
        raise StorageError(f"{path}: {what}") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise StorageError(f"{file}: cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "gerd":
        raise StorageError(f"{file}: is not the manifest of a GERD dataset")
    if manifest.get("format_version") != FORMAT_VERSION:
        found = manifest.get("format_version")
        raise StorageError(f"{file}: has format version {found}; this version of gerd reads {FORMAT_VERSION}")
    for key, kind in (("count", int), ("members", int), ("config_digest", str), ("complete", bool), ("shards", list)):
        if not isinstance(manifest.get(key), kind):
            raise StorageError(f"{file}: has no valid {key!r}")
    return manifest


class Shard:
    """One shard, memory-mapped; reads only what is asked for."""

    def __init__(self, path: Path):
        from safetensors import SafetensorError, safe_open

        self.path = path
        try:
            self._file = safe_open(path, framework="numpy")
            about = json.loads((self._file.metadata() or {})["gerd"])
            self._slices = {name: self._file.get_slice(name) for name in _TENSORS}
            for name, (dtypes, dimensions) in _TENSORS.items():
                found = self._slices[name]
                if _DTYPES.get(found.get_dtype()) not in dtypes or len(found.get_shape()) != dimensions:
                    raise StorageError(f"{path}: tensor {name} has the wrong type or shape")
            self.index, self.member = self._whole("index"), self._whole("member")
            self.shape, self.digest = self._whole("shape"), self._whole("digest")
            self.events, self.rows = self._whole("event_offsets"), self._whole("truth_offsets")
            self.step_us, self.labels = about["step_us"], about["labels"]
            self.config_digest, self.gerd_version = about["config_digest"], about["gerd_version"]
            self.seed = about["seed"]
        except FileNotFoundError:
            raise StorageError(f"{path}: is missing") from None
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{path}: is damaged: {error}") from None
        self._check()

    def _whole(self, name: str) -> NDArray[Any]:
        return np.array(self._file.get_tensor(name))

    def _check(self) -> None:
        """That the parts fit each other, so that reading a recording cannot run over an end."""
        n = len(self.index)
        size = {name: part.get_shape() for name, part in self._slices.items()}
        steps, height, width, actors = self.shape.T if self.shape.shape[1:] == (4,) else (np.array([-1]),) * 4
        sound = (
            size["member"] == [n]
            and size["shape"] == [n, 4]
            and size["digest"] == [n, 32]
            and len(self.step_us) == len(self.labels) == n
            and all(len(o) == n + 1 and o[0] == 0 and (np.diff(o) >= 0).all() for o in (self.events, self.rows))
            and size["keys"] == [self.events[-1]]
            and size["background"] == [-(-self.events[-1] // 8)]
            and size["truth"] == [self.rows[-1], 3, 6]
            and bool(((steps > 0) & (height > 0) & (width > 0) & (actors >= 0)).all())
            and bool((np.diff(self.rows) == steps * actors).all())
        )
        if not sound:
            raise StorageError(f"{self.path}: is damaged: its parts do not fit each other")

    def __len__(self) -> int:
        return len(self.index)

    def recording(self, row: int, config: Config) -> Recording:
        steps, height, width, actors = (int(part) for part in self.shape[row])
        low, high = int(self.events[row]), int(self.events[row + 1])
        bits = np.unpackbits(self._slices["background"][low // 8 : -(-high // 8)]) if high > low else np.zeros(0)
        truth = self._slices["truth"][int(self.rows[row]) : int(self.rows[row + 1])]
        keys = np.asarray(self._slices["keys"][low:high])
        if len(keys) and not (keys[0] >= 0 and keys[-1] < steps * height * width * 2 and (keys[1:] > keys[:-1]).all()):
            raise StorageError(f"{self.path}: is damaged: the events of recording {row} are not in order")
        return Recording(
            identity=Identity(
                self.config_digest, self.seed, int(self.index[row]), self.labels[row], self.gerd_version, FORMAT_VERSION
            ),
            config=config,
            width=width,
            height=height,
            steps=steps,
            step_us=int(self.step_us[row]),
            keys=keys,
            background=bits[low % 8 : low % 8 + high - low].astype(np.bool_),
            truth=np.asarray(truth).reshape(steps, actors, 3, 6),
        )


_DTYPES = {"I32": "int32", "I64": "int64", "U8": "uint8", "F64": "float64"}  # safetensors' names


class Recordings(Sequence[Recording]):
    """The recordings of a dataset, read from disk one at a time."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.manifest = read_manifest(self.path)
        self._shards: OrderedDict[int, Shard] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_shards": OrderedDict()}  # another process opens its own files

    def __repr__(self) -> str:
        return f"<Recordings {self.path}: {len(self)} of config {self.manifest['config_digest'][:8]}>"

    @cached_property
    def config(self) -> Config:
        file = self.path / RESOLVED
        try:
            config = Config.model_validate(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, RecursionError, ValidationError) as error:
            raise StorageError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None
        if config.digest != self.manifest["config_digest"]:
            raise StorageError(f"{file}: is not the config that the manifest names")
        return config

    def __len__(self) -> int:
        return self.manifest["count"] * self.manifest["members"]

    @property
    def shard_count(self) -> int:
        return -(-len(self) // SHARD_SIZE)

    def shard(self, number: int) -> Shard:
        if number in self._shards:
            self._shards.move_to_end(number)
            return self._shards[number]
        shard = Shard(self.path / shard_name(number))
        if (
            len(shard) != len(shard_positions(number, len(self)))
            or shard.config_digest != self.manifest["config_digest"]
        ):
            raise StorageError(f"{shard.path}: belongs to another dataset")
        self._shards[number] = shard
        if len(self._shards) > OPEN_SHARDS:
            self._shards.popitem(last=False)
        return shard

    @overload
    def __getitem__(self, position: int) -> Recording: ...
    @overload
    def __getitem__(self, position: slice) -> list[Recording]: ...
    def __getitem__(self, position: int | slice) -> Recording | list[Recording]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            raise IndexError(f"{self.path}: there is no recording {position}; it holds {len(self)}")
        number, row = divmod(position, SHARD_SIZE)
        return self.shard(number).recording(row, self.config)


@dataclass(frozen=True)
class Fault:
    """Something that `verify` found."""

    file: Path
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def verify(path: str | Path, *, regenerate: bool = False, trust: bool = False) -> Iterator[tuple[int, list[Fault]]]:
    """Check a dataset shard by shard: yields how many recordings were looked at, and what is wrong with them.

    Compares each file with the manifest's sha256 and each recording's events with its digest. With `regenerate` it
    also makes every recording again from the stored config and compares all bits. Code that the config names is run
    only with `trust`.
    """
    data = Recordings(path)
    if not data.manifest["complete"]:
        yield (
            0,
            [Fault(data.path / MANIFEST, "the dataset is not complete; run the same generate command to finish it")],
        )
    config = data.config
    config._trusted = str(data.path) if trust else None
    listed = {entry["file"]: entry for entry in data.manifest["shards"]}
    for number in range(data.shard_count):
        positions = shard_positions(number, len(data))
        entry = listed.get(shard_name(number))
        if entry is None and not (data.path / shard_name(number)).exists():
            continue  # not made yet, and said so above
        try:
            faults = _verify_shard(data, config, number, entry, regenerate)
        except StorageError as error:
            faults = [Fault(data.path / shard_name(number), str(error).partition(": ")[2])]
        yield len(positions), faults


def _verify_shard(
    data: Recordings, config: Config, number: int, entry: dict[str, Any] | None, regenerate: bool
) -> list[Fault]:
    from gerd.simulation import simulate

    faults = []
    file = data.path / shard_name(number)
    if entry is not None:
        with open(file, "rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() != entry["sha256"]:
                faults.append(Fault(file, "the file differs from the sha256 in the manifest"))
    shard = data.shard(number)
    members = member_count(config)
    for row, position in enumerate(shard_positions(number, len(data))):
        recording = shard.recording(row, config)
        index, member = divmod(position, members)
        if recording.digest != shard.digest[row].tobytes().hex():
            faults.append(Fault(file, f"recording {position}: the events differ from their digest"))
        if (recording.identity.index, int(shard.member[row])) != (index, member):
            faults.append(Fault(file, f"recording {position}: is index {recording.identity.index}, not {index}"))
        if regenerate:
            again = simulate(config, index, **labels(config, member))
            if again.digest != recording.digest:
                faults.append(Fault(file, f"recording {position}: made again, its events differ"))
            if again.truth.tobytes() != recording.truth.tobytes():
                faults.append(Fault(file, f"recording {position}: made again, its ground truth differs"))
            if again.background.tobytes() != recording.background.tobytes():
                faults.append(Fault(file, f"recording {position}: made again, its background flags differ"))
    return faults

"""Recordings to the bytes of one shard, and back.

A shard is a safetensors file of n recordings. Rows of different lengths are concatenated, with offsets:

    index, member            (n,) int64          recording index, and member of the family
    shape                    (n, 4) int64        steps, height, width, actors
    event_offsets            (n + 1,) int64      rows of `keys` and bits of `background`
    keys                     int32 or int64      ((step · height + y) · width + x) · 2 + p, ascending
    background               uint8, packed bits  whether the event is background noise, first event = highest bit
    truth_offsets            (n + 1,) int64      rows of `truth`
    truth                    (rows, 3, 6) f64    step-major rows of (step, actor): parameters, velocities, accelerations
    digest                   (n, 32) uint8       sha256 of the events
    checksum                 (n,) uint32         crc32 of everything above; compared whenever a whole recording is read

and one metadata entry `gerd`, JSON: format_version, gerd_version, config_digest, seed, and for each recording its
step_us and its labels. Nothing here is ever unpickled or run.
"""

from __future__ import annotations

import json
import math
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.sweep import member, member_count
from gerd.errors import StorageError, shorten
from gerd.events.keys import Keys
from gerd.geometry.trajectory import ORDERS, PARAMETER_COUNT
from gerd.recording.recording import FORMAT_VERSION, Recording
from gerd.storage.manifest import Manifest
from gerd.storage.places import File

LONGEST_HEADER = 100_000_000  # bytes, as safetensors has it
LARGEST = 2**31  # steps, height, width and actors
_NUMPY = {"I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "u1", "F64": "<f8"}
_TENSORS = {  # name: (safetensors' names of the types allowed, dimensions)
    "index": (("I64",), 1),
    "member": (("I64",), 1),
    "shape": (("I64",), 2),
    "event_offsets": (("I64",), 1),
    "keys": (("I32", "I64"), 1),
    "background": (("U8",), 1),
    "truth_offsets": (("I64",), 1),
    "truth": (("F64",), 3),
    "digest": (("U8",), 2),
    "checksum": (("U32",), 1),
}


def shard_bytes(recordings: Sequence[Recording], members: Sequence[int]) -> bytes:
    """A shard as the bytes of its file: the same for the same recordings, whoever writes it."""
    from safetensors.numpy import save

    small = all(r.codec.fit_int32(r.steps) for r in recordings)
    truth = [r.truth.reshape(-1, ORDERS, PARAMETER_COUNT) for r in recordings]
    tensors: dict[str, NDArray[Any]] = {
        "index": np.array([r.identity.index for r in recordings], np.int64),
        "member": np.array(members, np.int64),
        "shape": np.array([(r.steps, r.height, r.width, r.actors) for r in recordings], np.int64),
        "event_offsets": _offsets([len(r) for r in recordings]),
        "keys": np.concatenate([r.keys for r in recordings], dtype=np.int32 if small else np.int64, casting="unsafe"),
        "background": np.packbits(np.concatenate([r.background for r in recordings])),
        "truth_offsets": _offsets([len(rows) for rows in truth]),
        "truth": np.ascontiguousarray(np.concatenate(truth)),
        "digest": np.array([list(bytes.fromhex(r.digest)) for r in recordings], np.uint8),
        "checksum": np.array([_checksum(r, k) for r, k in zip(recordings, members, strict=True)], np.uint32),
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


def _checksum(r: Recording, member: int) -> int:
    about = [r.identity.index, member, r.steps, r.height, r.width, r.actors, r.step_us, r.identity.labels]
    result = zlib.crc32(json.dumps(about).encode())
    for part, kind in ((r.keys, "<i8"), (r.background, "u1"), (r.truth, "<f8")):
        result = zlib.crc32(np.ascontiguousarray(part, kind).data, result)
    return result


class Shard:
    """One shard; reads only what is asked for."""

    def __init__(self, file: File):
        self.path, self._file = file.name, file
        try:
            self._tensors, about = _header(file)
            self.index, self.member = self._whole("index"), self._whole("member")
            self.shape, self.checksum = self._whole("shape"), self._whole("checksum")
            self.event_offsets, self.truth_offsets = self._whole("event_offsets"), self._whole("truth_offsets")
            self.digests = tuple(digest.tobytes().hex() for digest in self._whole("digest"))
            self.step_us, self.labels = about["step_us"], about["labels"]
            self.config_digest, self.gerd_version = about["config_digest"], about["gerd_version"]
            self.seed = about["seed"]
            if about["format_version"] != FORMAT_VERSION:
                raise ValueError(f"it has format version {about['format_version']}, not {FORMAT_VERSION}")
            if not self._fits():
                raise ValueError("its parts do not fit each other")
        except KeyError as error:
            raise StorageError(f"{self.path}: is damaged: {error} is missing") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise StorageError(f"{self.path}: is damaged: {error}") from None

    def _whole(self, name: str) -> NDArray[Any]:
        return self._rows(name, 0, self._tensors[name].shape[0])

    def _fits(self) -> bool:
        """Whether the parts fit each other, so that reading a recording cannot run over an end."""
        n = len(self.index)
        size = {name: list(tensor.shape) for name, tensor in self._tensors.items()}
        if size["shape"] != [n, 4] or not ((self.shape >= 0) & (self.shape <= LARGEST)).all():
            return False
        steps, actors = self.shape[:, 0], self.shape[:, 3]
        most_events = [count * Keys(height, width).per_step for count, height, width, _ in self.shape.tolist()]
        offsets = (self.event_offsets, self.truth_offsets)
        return (
            size["member"] == size["checksum"] == [n]
            and size["digest"] == [n, 32]
            and isinstance(self.step_us, list)
            and isinstance(self.labels, list)
            and len(self.step_us) == len(self.labels) == n
            and all(type(step_us) is int for step_us in self.step_us)
            and all(type(labels) is dict for labels in self.labels)
            and all(len(o) == n + 1 and o[0] == 0 and (np.diff(o) >= 0).all() for o in offsets)
            and size["keys"] == [self.event_offsets[-1]]
            and size["background"] == [-(-self.event_offsets[-1] // 8)]
            and size["truth"] == [self.truth_offsets[-1], ORDERS, PARAMETER_COUNT]
            and bool((self.shape[:, :3] > 0).all())
            and all(n <= most < 2**62 for n, most in zip(np.diff(self.event_offsets), most_events, strict=True))
            and bool((np.diff(self.truth_offsets) == steps * actors).all())
        )

    def __len__(self) -> int:
        return len(self.index)

    def is_shard(self, number: int, manifest: Manifest) -> bool:
        """Whether this is shard `number` of the dataset of this manifest."""
        wanted = [divmod(position, manifest.members) for position in manifest.positions(number)]
        return list(zip(self.index, self.member, strict=True)) == wanted and all(
            getattr(self, key) == getattr(manifest, key) for key in ("config_digest", "seed", "gerd_version")
        )

    def recording(self, row: int, config: Config) -> Recording:
        """The recording in row `row`; StorageError if it is not what was written."""
        recording = self._read(row, config, 0, int(self.shape[row, 0]))
        if _checksum(recording, int(self.member[row])) != self.checksum[row]:
            raise self._damaged(row)
        return recording

    def window(self, row: int, config: Config, start: int, stop: int) -> Recording:
        """The steps from `start` up to `stop` of a recording, and no more, are read.

        The checksum is over the whole recording, so of a part only the order and the range of its events are checked.
        """
        steps = int(self.shape[row, 0])
        if not 0 <= start <= stop <= steps:
            raise StorageError(f"{self.path}: row {row} has the steps 0 to {steps - 1}, not {start} to {stop - 1}")
        return self.recording(row, config) if stop - start == steps else self._read(row, config, start, stop)

    def truth(self, row: int) -> NDArray[np.float64]:
        """(steps, actors, 3, 6): the ground truth of a recording, without its events."""
        steps, _, _, actors = self.shape[row]
        low, high = self.truth_offsets[row : row + 2].tolist()
        return self._rows("truth", low, high).reshape(steps, actors, ORDERS, PARAMETER_COUNT)

    def _read(self, row: int, config: Config, start: int, stop: int) -> Recording:
        steps, height, width, actors = (int(part) for part in self.shape[row])
        low, high = self.event_offsets[row : row + 2].tolist()
        codec, first = Keys(height, width), int(self.truth_offsets[row])
        if stop - start < steps:
            low = bisect_left(range(high), start * codec.per_step, low, high, key=self._key)
            high = bisect_left(range(high), stop * codec.per_step, low, high, key=self._key)
        bits = np.unpackbits(self._rows("background", low // 8, -(-high // 8)))
        keys = codec.moved(self._rows("keys", low, high).astype(np.int64), -start)
        inside = not len(keys) or 0 <= keys[0] <= keys[-1] < (stop - start) * codec.per_step
        if not (inside and (keys[1:] > keys[:-1]).all()):
            raise self._damaged(row)
        truth = self._rows("truth", first + start * actors, first + stop * actors)
        truth = truth.reshape(stop - start, actors, ORDERS, PARAMETER_COUNT)
        background = bits[low % 8 : low % 8 + high - low].astype(np.bool_)
        index, made_by = int(self.index[row]), self.gerd_version
        return Recording.of(self._config(row, config), index, truth, keys, background, first=start, made_by=made_by)

    def _config(self, row: int, family: Config) -> Config:
        """The config of the recording in a row; StorageError if the family's config describes another one."""
        number = int(self.member[row])
        if 0 <= number < member_count(family):
            config = member(family, number)
            shape = [config.steps, config.sensor.height, config.sensor.width, len(config.actors)]
            described = (config.origin.labels, shape, config.step_us)
            if described == (self.labels[row], self.shape[row].tolist(), self.step_us[row]):
                return config
        raise self._damaged(row, "is not a recording of the dataset's config")

    def _key(self, number: int) -> int:
        return int(self._rows("keys", number, number + 1)[0])

    def _damaged(self, row: int, problem: str = "has changed") -> StorageError:
        return StorageError(f"{self.path}: is damaged: row {row}, recording {self.index[row]}, {problem}")

    def _rows(self, name: str, low: int, high: int) -> NDArray[Any]:
        """Rows `low` to `high` of a tensor, in memory of their own."""
        tensor = self._tensors[name]
        size = tensor.type.itemsize * math.prod(tensor.shape[1:])
        data = self._file.read(tensor.start + low * size, tensor.start + high * size)
        return np.frombuffer(data, tensor.type).reshape(high - low, *tensor.shape[1:])


@dataclass(frozen=True)
class _Tensor:
    type: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # of its first byte in the file


def _header(file: File) -> tuple[dict[str, _Tensor], dict[str, Any]]:
    """The tensors that a safetensors file holds, and the JSON of its entry `gerd`; ValueError if it is not sound.

    The file is the length of the header (8 bytes), the header (JSON) and the tensors one after the other.
    """
    if file.size < 8:
        raise ValueError("it is too short")
    begin = 8 + int.from_bytes(file.read(0, 8), "little")
    if begin > min(file.size, LONGEST_HEADER):
        raise ValueError("its header is longer than the file, or than is allowed")
    header = json.loads(file.read(8, begin))
    if not isinstance(header, dict):
        raise ValueError("its header is not a mapping")
    about = json.loads(header.pop("__metadata__")["gerd"])
    spans, tensors = [], {}
    for name, entry in header.items():
        if name not in _TENSORS:
            raise ValueError(f"it holds {shorten(name)}, which is no tensor of a shard")
        shape, (low, high), (types, dimensions) = entry["shape"], entry["data_offsets"], _TENSORS[name]
        if entry["dtype"] not in types or len(shape) != dimensions:
            raise ValueError(f"the tensor {name} has the wrong type or shape")
        kind = np.dtype(_NUMPY[entry["dtype"]])
        if not all(type(number) is int and number >= 0 for number in (*shape, low)):
            raise ValueError(f"the tensor {name} has no valid size")
        if high - low != kind.itemsize * math.prod(shape):
            raise ValueError(f"the tensor {name} does not have the size of its shape")
        spans.append((low, high))
        tensors[name] = _Tensor(kind, tuple(shape), begin + low)
    ends = [0, *(high for _, high in sorted(spans))]
    if [low for low, _ in sorted(spans)] != ends[:-1] or begin + ends[-1] != file.size:
        raise ValueError("its tensors do not fill the file")
    if missing := _TENSORS.keys() - tensors.keys():
        raise ValueError(f"the tensor {min(missing)} is missing")
    return tensors, about

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
    checksum                 (n,) uint32         crc32 of everything above; compared whenever a recording is read

and one metadata entry `gerd`, JSON: format_version, gerd_version, config_digest, seed, and for each recording its
step_us and its labels. Nothing here is ever unpickled or run.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config import Config
from gerd.errors import StorageError
from gerd.recording import FORMAT_VERSION, Identity, Recording

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
        result = zlib.crc32(np.ascontiguousarray(part, kind).tobytes(), result)
    return result


class Shard:
    """One shard, memory-mapped; reads only what is asked for."""

    def __init__(self, path: Path):
        from safetensors import SafetensorError, safe_open

        self.path = path
        try:
            self._file = safe_open(path, framework="numpy")
            about = json.loads((self._file.metadata() or {})["gerd"])
            self._slices = {name: self._file.get_slice(name) for name in _TENSORS}
            for name, (types, dimensions) in _TENSORS.items():
                found = self._slices[name]
                if found.get_dtype() not in types or len(found.get_shape()) != dimensions:
                    raise ValueError(f"the tensor {name} has the wrong type or shape")
            self.index, self.member = self._whole("index"), self._whole("member")
            self.shape, self.digest = self._whole("shape"), self._whole("digest")
            self.events, self.rows = self._whole("event_offsets"), self._whole("truth_offsets")
            self.checksum = self._whole("checksum")
            self.step_us, self.labels = about["step_us"], about["labels"]
            self.config_digest, self.gerd_version = about["config_digest"], about["gerd_version"]
            self.seed = about["seed"]
            if about["format_version"] != FORMAT_VERSION:
                raise ValueError(f"it has format version {about['format_version']}, not {FORMAT_VERSION}")
            if not self._fits():
                raise ValueError("its parts do not fit each other")
        except FileNotFoundError:
            raise StorageError(f"{path}: is missing") from None
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{path}: is damaged: {error}") from None

    def _whole(self, name: str) -> NDArray[Any]:
        return np.array(self._file.get_tensor(name))

    def _fits(self) -> bool:
        """Whether the parts fit each other, so that reading a recording cannot run over an end."""
        n = len(self.index)
        size = {name: part.get_shape() for name, part in self._slices.items()}
        steps, height, width, actors = self.shape.T if self.shape.shape[1:] == (4,) else (np.array([-1]),) * 4
        return (
            size["member"] == size["checksum"] == [n]
            and size["shape"] == [n, 4]
            and size["digest"] == [n, 32]
            and isinstance(self.step_us, list)
            and isinstance(self.labels, list)
            and len(self.step_us) == len(self.labels) == n
            and all(type(step_us) is int for step_us in self.step_us)
            and all(type(labels) is dict for labels in self.labels)
            and all(len(o) == n + 1 and o[0] == 0 and (np.diff(o) >= 0).all() for o in (self.events, self.rows))
            and size["keys"] == [self.events[-1]]
            and size["background"] == [-(-self.events[-1] // 8)]
            and size["truth"] == [self.rows[-1], 3, 6]
            and bool(((steps > 0) & (height > 0) & (width > 0) & (actors >= 0)).all())
            and bool((np.diff(self.rows) == steps * actors).all())
        )

    def __len__(self) -> int:
        return len(self.index)

    def recording(self, row: int, config: Config) -> Recording:
        """The recording in row `row`; StorageError if it is not what was written."""
        steps, height, width, actors = (int(part) for part in self.shape[row])
        low, high = int(self.events[row]), int(self.events[row + 1])
        bits = np.unpackbits(self._rows("background", low // 8, -(-high // 8)))
        keys = self._rows("keys", low, high).astype(np.int64)
        recording = Recording(
            identity=Identity(
                self.config_digest, self.seed, int(self.index[row]), self.labels[row], self.gerd_version, FORMAT_VERSION
            ),
            config=config,
            width=width,
            height=height,
            steps=steps,
            step_us=self.step_us[row],
            keys=keys,
            background=bits[low % 8 : low % 8 + high - low].astype(np.bool_),
            truth=self._rows("truth", int(self.rows[row]), int(self.rows[row + 1])).reshape(steps, actors, 3, 6),
        )
        ordered = not len(keys) or (
            keys[0] >= 0 and keys[-1] < steps * height * width * 2 and bool((keys[1:] > keys[:-1]).all())
        )
        if not ordered or _checksum(recording, int(self.member[row])) != self.checksum[row]:
            raise StorageError(f"{self.path}: is damaged: row {row}, recording {recording.identity.index}, has changed")
        return recording

    def _rows(self, name: str, low: int, high: int) -> NDArray[Any]:
        """Rows `low` to `high` of a tensor; safetensors cannot slice nothing at its end."""
        part = self._slices[name]
        if high > low:
            return np.asarray(part[low:high])
        return np.empty((0, *part.get_shape()[1:]), {"truth": np.float64}.get(name, np.uint8))

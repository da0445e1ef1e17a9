"""Version 1 of the format, which is read and no longer written: 32-bit keys and float64, with a checksum per recording.

    index, member            (n,) int64          recording index, and member of the family
    shape                    (n, 4) int64        steps, height, width, actors
    event_offsets            (n + 1,) int64      rows of `keys` and bits of `background`
    keys                     int32 or int64      ((step · height + y) · width + x) · 2 + p, ascending
    background               uint8, packed bits  whether the event is background noise, first event = highest bit
    truth_offsets            (n + 1,) int64      rows of `truth`
    truth                    (rows, 3, 6) f64    step-major rows of (step, actor): parameters, velocities, accelerations
    digest                   (n, 32) uint8       sha256 of the events
    checksum                 (n,) uint32         crc32 of everything above but `digest`

The checksum is over a whole recording, so that windows and ground truth are read from whole recordings, too. What
differs from it is a `ValueError`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT
from gerd.storage.blocks import Part, Truth
from gerd.storage.tensors import Tensor, check_kinds

KINDS = {  # name: (safetensors' names of the types allowed, axes)
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


class Version1:
    """The recordings of a file."""

    def __init__(self, tensors: Mapping[str, Tensor], about: Mapping[str, Any]):
        check_kinds(tensors, KINDS)
        self._tensors, self._about = tensors, about
        self._index, self._member, self._shape = (tensors[name].whole() for name in ("index", "member", "shape"))
        self._events, self._truth = (tensors[name].whole() for name in ("event_offsets", "truth_offsets"))
        self._checksums = tensors["checksum"].whole()
        n, sizes = len(self._index), {name: list(tensor.shape) for name, tensor in tensors.items()}
        if not (
            sizes["shape"] == [n, 4]
            and sizes["checksum"] == [n]
            and all(len(o) == n + 1 and o[0] == 0 and (np.diff(o) >= 0).all() for o in (self._events, self._truth))
            and sizes["keys"] == [self._events[-1]]
            and sizes["background"] == [-(-self._events[-1] // 8)]
            and sizes["truth"] == [self._truth[-1], ORDERS, PARAMETER_COUNT]
            and np.diff(self._truth).tolist() == [steps * actors for steps, _, _, actors in self._shape.tolist()]
        ):
            raise ValueError("its parts do not fit each other")
        self.lengths = np.diff(self._events)
        self.shape = np.column_stack([self._shape, np.ones(n, np.int64)])  # one tick per step

    def part(self, row: int, start: int, stop: int) -> Part:
        """All events, and the ground truth of the steps from `start` up to `stop`; no part can be checked alone."""
        low, high = self._events[row : row + 2].tolist()
        keys = self._tensors["keys"].rows(low, high).astype(np.int64)
        bits = np.unpackbits(self._tensors["background"].rows(low // 8, -(-high // 8)))
        background = bits[low % 8 : low % 8 + high - low].view(np.bool_)
        steps, _, _, actors = self._shape[row].tolist()
        rows = self._tensors["truth"].rows(*self._truth[row : row + 2].tolist())
        truth = rows.copy().reshape(steps, actors, ORDERS, PARAMETER_COUNT)
        own = [self._about[name][row] for name in ("step_us", "labels")]
        described = [int(self._index[row]), int(self._member[row]), *self._shape[row].tolist(), *own]
        checksum = zlib.crc32(json.dumps(described).encode())
        for part, kind in ((keys, "<i8"), (background, "u1"), (truth, "<f8")):
            checksum = zlib.crc32(np.ascontiguousarray(part, kind).data, checksum)
        if checksum != self._checksums[row]:
            raise ValueError("has changed")
        return range(steps), keys, background, truth[start:stop]

    def truth(self, row: int) -> Truth:
        """(steps, actors, 3, 6): all of the ground truth."""
        return np.asarray(self.part(row, 0, int(self._shape[row, 0]))[-1])

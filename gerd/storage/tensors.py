"""The container of a shard: named arrays and a JSON entry to the bytes of a safetensors file, and back.

The file is the length of the header (8 bytes), the header (JSON, with the entry `gerd` in its metadata) and the tensors
one after the other, in the order in which they are given. It is written here, because safetensors itself promises no
order. What is not sound is a `ValueError` that says why; nothing is read or allocated before its size was checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from gerd.errors import shorten
from gerd.storage.places import File

LONGEST_HEADER = 100_000_000  # bytes, as safetensors has it
CHECKSUM = "checksum"  # the tensor (1,) uint64 that holds the hash of all bytes of the file before it
_NUMPY = {"I64": "<i8", "U64": "<u8", "U8": "|u1"}
_NAMES = {kind: name for name, kind in _NUMPY.items()}


def hash_of(data: bytes | memoryview) -> int:
    """A checksum: XXH3 with 64 bits."""
    return xxhash.xxh3_64_intdigest(data)


@dataclass(frozen=True)
class Tensor:
    """One array of an open file."""

    file: File
    type: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # of its first byte in the file

    def rows(self, low: int, high: int) -> NDArray[Any]:
        """Rows `low` to `high`; they cannot be written to."""
        size = self.type.itemsize * math.prod(self.shape[1:])
        array = np.frombuffer(self.bytes(low * size, high * size), self.type)
        return array.reshape(high - low, *self.shape[1:]) if len(self.shape) > 1 else array

    def bytes(self, low: int, high: int) -> bytes:
        """Bytes `low` to `high`, counted from its first."""
        return self.file.read(self.start + low, self.start + high)

    def whole(self) -> NDArray[Any]:
        return self.rows(0, self.shape[0])


def tensors_bytes(tensors: Mapping[str, NDArray[Any] | list[bytes]], about: Mapping[str, object]) -> bytes:
    """A safetensors file of these arrays, and of `about` as JSON; the checksum, which is one of them, is filled in.

    Bytes may be given in pieces.
    """
    header: dict[str, object] = {"__metadata__": {"gerd": json.dumps(about)}}
    end = 0
    for name, array in tensors.items():
        size = sum(map(len, array)) if isinstance(array, list) else array.nbytes
        kind, shape = ("U8", (size,)) if isinstance(array, list) else (_NAMES[array.dtype.str], array.shape)
        begin = end
        end += size
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": (begin, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"its swept values take {len(text)} bytes; allowed: {LONGEST_HEADER}")
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    for name, array in tensors.items():
        if name == CHECKSUM:
            parts.append(hash_of(b"".join(parts)).to_bytes(8, "little"))
        else:
            parts += array if isinstance(array, list) else [array.data]
    return b"".join(parts)


def read_header(file: File) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors that a file holds, and the JSON of its entry `gerd`."""
    if file.size < 8:
        raise ValueError("it is too short")
    begin = 8 + int.from_bytes(file.read(0, 8), "little")
    if begin > min(file.size, LONGEST_HEADER):
        raise ValueError("its header is longer than the file, or than is allowed")
    header = json.loads(file.read(8, begin))
    if not isinstance(header, dict):
        raise ValueError("its header is not a mapping")
    about = json.loads(header.pop("__metadata__")["gerd"])
    if not isinstance(about, dict):
        raise ValueError("its metadata is not a mapping")
    spans = []
    tensors = {}
    for name, entry in header.items():
        shape = entry["shape"]
        low, high = entry["data_offsets"]
        kind = _NUMPY.get(entry["dtype"])
        if kind is None:
            raise ValueError(f"the tensor {shorten(name)} is of a type that no shard has")
        if not all(type(number) is int and number >= 0 for number in (*shape, low)):
            raise ValueError(f"the tensor {shorten(name)} has no valid size")
        if high - low != np.dtype(kind).itemsize * math.prod(shape):
            raise ValueError(f"the tensor {shorten(name)} does not have the size of its shape")
        spans.append((low, high))
        tensors[name] = Tensor(file, np.dtype(kind), tuple(shape), begin + low)
    ends = [0, *(high for _, high in sorted(spans))]
    if [low for low, _ in sorted(spans)] != ends[:-1] or begin + ends[-1] != file.size:
        raise ValueError("its tensors do not fill the file")
    return tensors, about


def check_kinds(
    tensors: Mapping[str, Tensor], kinds: Mapping[str, tuple[str, int]], optional: Mapping[str, tuple[str, int]]
) -> None:
    """`ValueError` unless these are the tensors of a shard: `kinds` has the type and the number of axes of each.

    All or none of the `optional` ones are there.
    """
    if optional.keys() & tensors.keys():
        kinds = {**kinds, **optional}
    if missing := kinds.keys() - tensors.keys():
        raise ValueError(f"the tensor {min(missing)} is missing")
    for name, tensor in tensors.items():
        if name not in kinds:
            raise ValueError(f"it holds {shorten(name)}, which is no tensor of a shard")
        kind, axes = kinds[name]
        if _NAMES[tensor.type.str] != kind or len(tensor.shape) != axes:
            raise ValueError(f"the tensor {name} has the wrong type or shape")

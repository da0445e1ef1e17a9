"""Version 2 of the format: a recording to blocks of steps with a checksum each, and from a file's blocks back.

`shard.py` says which tensors a file has, and `blocks.py` what the bytes of a block are. A block that differs from its
checksum, or that contradicts itself, is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events.keys import Keys
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT
from gerd.recording.recording import Recording
from gerd.storage.blocks import (
    BITS,
    COUNT_BYTES,
    LONGEST,
    Part,
    Truth,
    in_order,
    pack_events,
    pack_truth,
    unpack_events,
    unpack_truth,
)
from gerd.storage.places import File
from gerd.storage.tensors import CHECKSUM, Tensor, check_kinds, hash_of

KINDS = {  # name: (safetensors' names of the types allowed, axes)
    "index": (("I64",), 1),
    "member": (("I64",), 1),
    "shape": (("I64",), 2),
    "block_steps": (("I64",), 1),
    "blocks": (("U64",), 2),
    "digest": (("U8",), 2),
    CHECKSUM: (("U64",), 1),
    "truth": (("U8",), 1),
    "events": (("U8",), 1),
}


class Entry(NamedTuple):
    """A row of the tensor `blocks`."""

    truth_bytes: int
    truth_checksum: int
    event_bytes: int
    event_checksum: int
    events: int
    bits: int  # of a key
    count_bytes: int  # of the number of events in a range of keys


class Block(NamedTuple):
    entry: Entry
    truth: bytes
    events: bytes


def packed(recording: Recording, size: int) -> Iterator[Block]:
    """The blocks of a recording, of `size` steps each."""
    codec, firsts = recording.codec, range(0, recording.steps, size)
    per_step = codec.per_step
    if not in_order(recording.keys, 0, recording.steps * per_step, recording.config.timing == "step"):
        raise ValueError("its events are not in order")
    bounds = [0, *codec.bounds(recording.keys, firsts[1:]).tolist(), len(recording)]
    for first, (low, high) in zip(firsts, pairwise(bounds), strict=True):
        own, span = slice(low, high), min(size, recording.steps - first) * per_step
        keys, background = recording.keys[own], recording.background[own]
        events, bits, count_bytes = pack_events(keys, background, first * per_step, span)
        truth = pack_truth(recording.truth[first : first + size])
        sizes = (len(truth), hash_of(truth), len(events), hash_of(events))
        yield Block(Entry(*sizes, len(keys), bits, count_bytes), truth, events)


class Version2:
    """The recordings of a file."""

    def __init__(self, file: File, tensors: Mapping[str, Tensor]):
        check_kinds(tensors, KINDS)
        checksum = tensors[CHECKSUM]
        if [hash_of(file.read(0, checksum.start))] != checksum.whole().tolist():
            raise ValueError("its header has changed")
        self.shape, sizes, blocks = (tensors[name].whole() for name in ("shape", "block_steps", "blocks"))
        self._truth, self._events = tensors["truth"], tensors["events"]
        if sizes.shape != self.shape[:, 0].shape or not ((sizes > 0) & (sizes <= LONGEST)).all():
            raise ValueError("its blocks have no valid length")
        counts = -(-self.shape[:, 0] // sizes)
        if blocks.shape != (counts.sum(), 7) or not (blocks[:, [0, 2, 4]] <= file.size).all():
            raise ValueError("its blocks do not fit its recordings")
        if not (np.isin(blocks[:, 5], list(BITS)).all() and np.isin(blocks[:, 6], COUNT_BYTES).all()):
            raise ValueError("its blocks are of no kind that is known")
        self._shapes, self._sizes = self.shape.tolist(), sizes.tolist()
        self._blocks = [Entry(*row) for row in blocks.tolist()]
        self._firsts = [0, *accumulate(counts.tolist())]
        self._truth_ends = [0, *accumulate(block.truth_bytes for block in self._blocks)]
        self._event_ends = [0, *accumulate(block.event_bytes for block in self._blocks)]
        if (self._truth_ends[-1], self._event_ends[-1]) != (*self._truth.shape, *self._events.shape):
            raise ValueError("its blocks do not fill the file")
        ends = [0, *accumulate(block.events for block in self._blocks)]
        self.lengths = np.diff([ends[first] for first in self._firsts])

    def part(self, row: int, start: int, stop: int) -> Part:
        """The blocks that hold the steps from `start` up to `stop`; events outside of these may be left out."""
        steps, height, width, _, ticks = self._shapes[row]
        size, per_step = self._sizes[row], Keys(height, width, ticks).per_step
        low, high = self._firsts[row] + start // size, self._firsts[row] + -(-stop // size)
        ends, first = self._event_ends[low : high + 1], start // size * size
        data, keys, flags = self._events.rows(ends[0], ends[-1]), [], []
        for step, block, (begin, end) in zip(
            range(first, stop, size), self._blocks[low:high], pairwise(ends), strict=True
        ):
            part = data[begin - ends[0] : end - ends[0]]
            if hash_of(part) != block.event_checksum:
                raise ValueError("has changed")
            span = min(size, steps - step) * per_step
            own = (block.events, block.bits, block.count_bytes, step * per_step, span)
            of_keys, of_flags = unpack_events(part, *own, start * per_step, stop * per_step)
            keys.append(of_keys)
            flags.append(of_flags)
        truth = self._truths(row, low, high)
        return first, _joined(keys, np.int64), _joined(flags, np.bool_), truth

    def truth(self, row: int) -> Truth:
        """(steps, actors, 3, 6): all of the ground truth."""
        return self._truths(row, self._firsts[row], self._firsts[row + 1])

    def _truths(self, row: int, low: int, high: int) -> Truth:
        """The ground truth of some blocks of a recording."""
        steps, _, _, actors, _ = self._shapes[row]
        size, first = self._sizes[row], (low - self._firsts[row]) * self._sizes[row]
        data, at = self._truth.rows(self._truth_ends[low], self._truth_ends[high]), 0
        result = np.empty((min((high - low) * size, steps - first), actors, ORDERS, PARAMETER_COUNT))
        for number, block in enumerate(self._blocks[low:high]):
            part = data[at : at + block.truth_bytes]
            at += len(part)
            if hash_of(part) != block.truth_checksum:
                raise ValueError("has changed")
            unpack_truth(part, result[number * size : (number + 1) * size])
        return result


def _joined(parts: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])

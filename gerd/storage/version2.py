"""Version 2 of the format: a recording to blocks of steps with a checksum each, and from a file's blocks back.

`shard.py` says which tensors a file has, and `blocks.py` what the bytes of a block are. A block that differs from its
checksum, or that contradicts itself, is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from gerd.geometry.trajectory import ORDERS, PARAMETER_COUNT
from gerd.recording.recording import Recording
from gerd.storage.blocks import (
    BITS,
    LONGEST,
    Part,
    Truth,
    events_size,
    pack_events,
    pack_truth,
    truth_size,
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
    events: int
    bits: int  # of a difference of keys
    large: int  # differences that do not fit into these bits
    events_checksum: int

    @property
    def events_bytes(self) -> int:
        return events_size(self.events, self.bits, self.large)


class Block(NamedTuple):
    entry: Entry
    truth: bytes
    events: bytes


def packed(recording: Recording, size: int) -> Iterator[Block]:
    """The blocks of a recording, of `size` steps each."""
    codec, firsts = recording.codec, range(0, recording.steps, size)
    bounds = [0, *codec.bounds(recording.keys, firsts[1:]).tolist(), len(recording)]
    for first, (low, high) in zip(firsts, pairwise(bounds), strict=True):
        events, bits, large = pack_events(
            recording.keys[low:high], recording.background[low:high], codec.moved(0, first)
        )
        truth = pack_truth(recording.truth[first : first + size])
        yield Block(Entry(len(truth), hash_of(truth), high - low, bits, large, hash_of(events)), truth, events)


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
        if blocks.shape != (counts.sum(), 6) or not (blocks[:, [0, 2, 4]] <= 2 * file.size).all():
            raise ValueError("its blocks do not fit its recordings")
        self._sizes, self._firsts = sizes.tolist(), [0, *np.cumsum(counts).tolist()]
        self._blocks = [Entry(*row) for row in blocks.tolist()]
        self._truth_ends = [0, *accumulate(block.truth_bytes for block in self._blocks)]
        self._event_ends = [0, *accumulate(block.events_bytes for block in self._blocks)]
        filled = (self._truth_ends[-1], self._event_ends[-1]) == (*self._truth.shape, *self._events.shape)
        if not (filled and np.isin(blocks[:, 3], BITS).all()):
            raise ValueError("its blocks do not fill the file")
        ends = [0, *accumulate(block.events for block in self._blocks)]
        self.lengths = np.diff([ends[first] for first in self._firsts])

    def part(self, row: int, start: int, stop: int) -> Part:
        """The blocks that hold the steps from `start` up to `stop`."""
        height, width, ticks = self.shape[row, [1, 2, 4]].tolist()
        size, begin = self._sizes[row], self._firsts[row]
        low, high = begin + start // size, begin + -(-stop // size)
        blocks = self._blocks[low:high]
        data, at, count = self._events.rows(self._event_ends[low], self._event_ends[high]), 0, 0
        keys = np.empty(sum(block.events for block in blocks), np.int64)
        background = np.empty(len(keys), np.bool_)
        for number, block in enumerate(blocks, start // size):
            part = data[at : at + block.events_bytes]
            at += len(part)
            if hash_of(part) != block.events_checksum:
                raise ValueError("has changed")
            own = slice(count, count := count + block.events)
            base = number * size * 2 * height * width * ticks
            unpack_events(part, block.bits, block.large, base, keys[own], background[own])
        first = start // size * size
        return first, keys, background, self._truths(row, low, high)

    def truth(self, row: int) -> Truth:
        """(steps, actors, 3, 6): all of the ground truth."""
        return self._truths(row, self._firsts[row], self._firsts[row + 1])

    def _truths(self, row: int, low: int, high: int) -> Truth:
        """The ground truth of some blocks of a recording."""
        steps, actors = self.shape[row, [0, 3]].tolist()
        size, first = self._sizes[row], (low - self._firsts[row]) * self._sizes[row]
        data, at = self._truth.rows(self._truth_ends[low], self._truth_ends[high]), 0
        result = np.empty((min((high - low) * size, steps - first), actors, ORDERS, PARAMETER_COUNT))
        for number, block in enumerate(self._blocks[low:high]):
            part, target = data[at : at + block.truth_bytes], result[number * size : (number + 1) * size]
            at += len(part)
            if hash_of(part) != block.truth_checksum or truth_size(part, len(target), actors) != len(part):
                raise ValueError("has changed")
            unpack_truth(part, target)
        return result

"""What a shard holds: a recording to blocks of steps with a checksum each, and from a file's blocks back.

`shard.py` says which tensors a file has, and `blocks.py` what the bytes of a block are. A block that differs from its
checksum, or that contradicts itself, is a `ValueError`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gerd.errors import StorageError
from gerd.events.keys import Keys
from gerd.events.shared import FROM_EDGE
from gerd.recording.recording import Recording
from gerd.storage.blocks import (
    BITS,
    COUNT_BYTES,
    LONGEST,
    Integers,
    PackedTruth,
    Truth,
    in_order,
    is_storable,
    pack_events,
    pack_truths,
    unpack_events,
)
from gerd.storage.details import DELAY_BYTES, SOURCE_BITS, Delays, DetailEntry, Sources, pack_details, unpack_details
from gerd.storage.places import File
from gerd.storage.tensors import CHECKSUM, Tensor, check_kinds, hash_of

Kind = TypeVar("Kind", bound=np.generic)

KINDS = {  # name: (safetensors' name of its type, axes)
    "index": ("I64", 1),
    "member": ("I64", 1),
    "shape": ("I64", 2),
    "block_steps": ("I64", 1),
    "blocks": ("U64", 2),
    "digest": ("U8", 2),
    CHECKSUM: ("U64", 1),
    "truth": ("U8", 1),
    "events": ("U8", 1),
}
DETAILS = {"detail_blocks": ("U64", 2), "details": ("U8", 1)}  # only where there are any


class BlockEntry(NamedTuple):
    """A row of the tensor `blocks`."""

    truth_bytes: int
    truth_checksum: int
    event_bytes: int
    event_checksum: int
    events: int
    bits: int  # of a key
    count_bytes: int  # of the number of events in a range of keys


class Window(NamedTuple):
    """Some steps of a recording, as they are read."""

    covered: range  # the steps of all blocks that were read
    keys: Integers  # of events in these steps: all of those in the steps that were asked for, and maybe more
    source: Sources  # of each of them, a number of `SOURCE_NAMES`
    delay: Delays | None  # of each of them, in microseconds; None without readout
    truth: PackedTruth  # of the steps that were asked for


class Block(NamedTuple):
    entry: BlockEntry
    truth: bytes
    events: bytes
    details: bytes
    detail_entry: DetailEntry


def packed_blocks(recordings: Sequence[Recording], sizes: Sequence[int]) -> Iterator[Block]:
    """The blocks of all recordings, of so many steps each; StorageError if a recording cannot be stored."""
    truths = _packed_truths(recordings, sizes)
    for recording, size, of_recording in zip(recordings, sizes, truths, strict=True):
        for truth, (part, events, *how) in zip(of_recording, _packed_events(recording, size), strict=True):
            entry = BlockEntry(len(truth), hash_of(truth), len(events), hash_of(events), part.stop - part.start, *how)
            delay = None if recording.delay is None else recording.delay[part]
            details, *kinds = pack_details(recording.source[part], delay)
            yield Block(entry, truth, events, details, DetailEntry(len(details), hash_of(details), *kinds))


def _packed_events(recording: Recording, size: int) -> Iterator[tuple[slice, bytes, int, int]]:
    """For each block which events it has, their bytes, `bits` and `count_bytes`."""
    codec = recording.codec
    steps = recording.steps
    keys = recording.keys
    per_step = codec.per_step
    firsts = range(0, steps, size)
    if not in_order(keys, 0, steps * per_step, recording.config.timing == "step"):
        raise _unfit(recording, "its events are not in order")
    bounds = [0, *codec.bounds(keys, firsts[1:]).tolist(), len(keys)] if len(firsts) > 1 else [0, len(keys)]
    for first, (low, high) in zip(firsts, pairwise(bounds), strict=True):
        span = min(size, steps - first) * per_step
        flags = recording.source[low:high] != FROM_EDGE
        yield slice(low, high), *pack_events(keys[low:high], flags, first * per_step, span)


def _packed_truths(recordings: Sequence[Recording], sizes: Sequence[int]) -> list[list[bytes]]:
    """The ground truth of each recording, block by block; recordings of one shape are packed together."""
    result: list[list[bytes]] = [[] for _ in recordings]
    alike = defaultdict(list)
    for recording, size, blocks in zip(recordings, sizes, result, strict=True):
        if not is_storable(recording.truth):
            raise _unfit(recording, "its ground truth is not finite")
        alike[recording.truth.shape, size].append((recording.truth, blocks))
    for ((steps, *_), size), group in alike.items():
        for first in range(0, steps, size):
            together = pack_truths([truth[first : first + size] for truth, _ in group])
            for (_, blocks), data in zip(group, together, strict=True):
                blocks.append(data)
    return result


def _unfit(recording: Recording, problem: str) -> StorageError:
    return StorageError(f"index {recording.identity.index}: cannot be stored: {problem}")


class Content:
    """The recordings of a file."""

    def __init__(self, file: File, tensors: Mapping[str, Tensor]):
        check_kinds(tensors, KINDS, DETAILS)
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
        self._shapes = self.shape.tolist()
        self._sizes = sizes.tolist()
        self._blocks = [BlockEntry(*row) for row in blocks.tolist()]
        self._firsts = [0, *accumulate(counts.tolist())]
        self._truth_ends = [0, *accumulate(block.truth_bytes for block in self._blocks)]
        self._event_ends = [0, *accumulate(block.event_bytes for block in self._blocks)]
        if (self._truth_ends[-1], self._event_ends[-1]) != (*self._truth.shape, *self._events.shape):
            raise ValueError("its blocks do not fill the file")
        self._details = _Details(tensors, len(blocks)) if DETAILS.keys() <= tensors.keys() else None
        ends = [0, *accumulate(block.events for block in self._blocks)]
        self.lengths = np.diff([ends[first] for first in self._firsts])

    def window(self, row: int, start: int, stop: int) -> Window:
        """The steps from `start` up to `stop` of a recording, from the blocks that hold them."""
        steps, height, width, _, ticks = self._shapes[row]
        per_step = Keys(height, width, ticks).per_step
        size = self._sizes[row]
        first = start // size * size
        low = self._firsts[row] + start // size
        high = self._firsts[row] + -(-stop // size)
        keys, source, delay = [], [], []
        for number, data in enumerate(_pieces(self._events, self._event_ends[low : high + 1])):
            step = first + number * size
            block = self._blocks[low + number]
            if hash_of(data) != block.event_checksum:
                raise ValueError("has changed")
            span = min(size, steps - step) * per_step
            base = step * per_step
            wanted = (base, base + span) if self._details else (start * per_step, stop * per_step)
            own = (block.events, block.bits, block.count_bytes, base, span)
            of_keys, of_flags = unpack_events(data, *own, *wanted)
            of_source, of_delay = of_flags.view(np.uint8), None
            if self._details is not None:
                of_source, of_delay = self._details.of(low + number, of_flags)
            keys.append(of_keys)
            source.append(of_source)
            delay.append(of_delay)
        covered = range(first, min(first + len(keys) * size, steps))
        truth = self._packed_truth(row, low, high, slice(start - first, stop - first))
        return Window(covered, _joined(keys, np.int64), _joined(source, np.uint8), _delays(source, delay), truth)

    def truth(self, row: int) -> Truth:
        """(steps, actors, 3, 6): all of the ground truth."""
        return self._packed_truth(row, self._firsts[row], self._firsts[row + 1], slice(0, self._shapes[row][0]))()

    def _packed_truth(self, row: int, low: int, high: int, chosen: slice) -> PackedTruth:
        """The ground truth of the chosen steps of the blocks from `low` up to `high`."""
        steps, _, _, actors, _ = self._shapes[row]
        size = self._sizes[row]
        blocks = _pieces(self._truth, self._truth_ends[low : high + 1])
        for data, block in zip(blocks, self._blocks[low:high], strict=True):
            if hash_of(data) != block.truth_checksum:
                raise ValueError("has changed")
        covered = min((high - low) * size, steps - (low - self._firsts[row]) * size)
        return PackedTruth(blocks, size, covered, actors, chosen)


class _Details:
    """What the blocks of a file say of their events besides keys and flags."""

    def __init__(self, tensors: Mapping[str, Tensor], blocks: int):
        entries, self._bytes = tensors["detail_blocks"].whole(), tensors["details"]
        if entries.shape != (blocks, 4) or not (entries[:, 0] <= self._bytes.shape[0]).all():
            raise ValueError("its details do not fit its blocks")
        if not (np.isin(entries[:, 2], SOURCE_BITS).all() and np.isin(entries[:, 3], DELAY_BYTES).all()):
            raise ValueError("its details are of no kind that is known")
        self._entries = [DetailEntry(*row) for row in entries.tolist()]
        self._ends = [0, *accumulate(entry.bytes for entry in self._entries)]
        if self._ends[-1] != self._bytes.shape[0]:
            raise ValueError("its details do not fill the file")

    def of(self, block: int, flags: NDArray[np.bool_]) -> tuple[Sources, Delays | None]:
        """Sources and delays of a block's events, of which `flags` says whether they are noise."""
        entry, data = self._entries[block], self._bytes.bytes(*self._ends[block : block + 2])
        if hash_of(data) != entry.checksum:
            raise ValueError("has changed")
        source, delay = unpack_details(data, len(flags), entry.source_bits, entry.delay_bytes)
        if source is None:
            return flags.view(np.uint8), delay
        if not np.array_equal(source != FROM_EDGE, flags):
            raise ValueError("has changed")
        return source, delay


def _delays(sources: list[Sources], delays: list[Delays | None]) -> Delays | None:
    """The delays of all blocks, 0 in those that have none; None if none has."""
    if all(part is None for part in delays):
        return None
    filled = (
        np.zeros(len(source), np.int64) if part is None else part for source, part in zip(sources, delays, strict=True)
    )
    return np.concatenate(list(filled))


def _pieces(tensor: Tensor, ends: list[int]) -> list[bytes]:
    """The bytes of a tensor between one end and the next, read at once."""
    data = tensor.bytes(ends[0], ends[-1])
    first = ends[0]
    return [data[begin - first : end - first] for begin, end in pairwise(ends)]


def _joined(parts: list[NDArray[Kind]], kind: type[np.generic]) -> NDArray[Kind]:
    """All parts as one array; one of `kind` if there are none."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])

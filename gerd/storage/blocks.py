"""Blocks of steps to bytes and back: the events of some steps, and the ground truth at these steps.

Events. The keys that a block's steps can have are cut into ranges of 2^bits. How many events are in each range is
stored once, so that of each key the lower `bits` bits are enough. The bytes are

    counts   an integer of `count_bytes` bytes for each range: its events
    low      an integer for each event: the lower bits of its key, counted from the first key of the block
    extra    bits 8 to 11 (of 12) or 16 to 19 (of 20), half a byte for each event: those of the first half of the
             events, rounded up, are the lower halves of these bytes, the others the upper; or bits 16 to 23 (of 24)
    flags    one bit for each event: whether it is background noise; the first event is the highest bit of a byte

Ground truth. A column is one number of one actor (C = actors · 18 of them, in the order of `recording.truth`) over the
steps. It is constant, or given as it is, or predicted: a velocity as the block's first plus the accelerations of the
steps since then, a parameter as the first plus velocity and half of the acceleration of each, added one after another.
What the prediction lacks, in units of the last bit (both taken as 64-bit integers), fits into a byte. The bytes are

    first    (C,) float64                    the numbers of the first step
    sizes    (3,) uint32                     how many columns are given, are predicted velocities, predicted parameters
    columns  uint32 each                     which they are, in this order; the others are constant
    numbers  (columns, steps - 1) float64    of those that are given
    lacks    (columns, steps - 1) int8       of those that are predicted

Integers are unsigned but for the last, and little-endian. The same arrays give the same bytes on every machine, with
every version of every library.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT

# Bits of a key that are stored: bytes of `low`, half bytes of `extra`.
BITS = {8: (1, 0), 12: (1, 1), 16: (2, 0), 20: (2, 1), 24: (2, 2), 32: (4, 0), 63: (8, 0)}
COUNT_BYTES = (1, 2, 4)
UNSIGNED = {size: np.dtype(name) for size, name in ((1, "u1"), (2, "<u2"), (4, "<u4"), (8, "<i8"))}  # none has a sign
CROWD = 16  # events in a range, at least, on average
TARGET = 2**18  # bytes of keys (as 16 bits) and ground truth (as float64) in a block, at most, unless one step has more
LONGEST = 4096  # steps of a block
FLOAT = np.dtype("<f8")
LARGEST_TRUTH = 1e300  # so that no prediction overflows

Bytes = NDArray[np.uint8]
Integers = NDArray[np.integer]  # of a size that the numbers decide
Numbers = NDArray[np.float64]
Truth = NDArray[np.float64]  # (steps, actors, 3, 6)


def block_steps(steps: int, events: int, actors: int, target: int = TARGET) -> int:
    """How many steps go into a block of at most `target` bytes: a power of two."""
    size = 1
    weight = 2 * events + 8 * actors * ORDERS * PARAMETER_COUNT * steps
    while size < min(steps, LONGEST) and 2 * size * weight <= target * steps:
        size *= 2
    return size


def events_size(events: int, bits: int, count_bytes: int, span: int) -> int:
    """How many bytes a block of events takes whose steps have `span` keys."""
    low, halves = BITS[bits]
    extra = (halves * events + 1) // 2
    return _ranges(span, bits) * count_bytes + low * events + extra + (events + 7) // 8 if events else 0


def _ranges(span: int, bits: int) -> int:
    return -(-span // 2**bits)


def in_order(keys: Integers, base: int, span: int, once: bool) -> bool:
    """Whether keys ascend, from `base` on and below `base` + `span`; with `once`, whether none comes twice."""
    if not len(keys):
        return True
    ascend = keys[1:] > keys[:-1] if once else keys[1:] >= keys[:-1]
    return bool(base <= keys[0] and keys[-1] < base + span and ascend.all())


def pack_events(keys: NDArray[np.int64], background: NDArray[np.bool_], base: int, span: int) -> tuple[bytes, int, int]:
    """The bytes of a block whose steps have the keys from `base` up to `base` + `span`; bits; count_bytes."""
    bits = next(bits for bits in BITS if bits == max(BITS) or _ranges(span, bits) * CROWD <= len(keys))
    if not len(keys):
        return b"", bits, 1
    bounds = np.searchsorted(keys, base + (np.arange(1, _ranges(span, bits)) << bits))
    counts = np.append(bounds, len(keys))
    counts[1:] -= bounds
    count_bytes = next(size for size in COUNT_BYTES if counts.max() < 256**size)
    low, halves = BITS[bits]
    middle = (len(keys) + 1) // 2
    lower = (keys - base if base else keys).astype(UNSIGNED[min(2 * low, 8)])  # bits of a key that are stored, and more
    extra = (lower >> (8 * low)).astype(np.uint8) if halves else np.empty(0, np.uint8)
    if halves == 1:
        extra, upper = extra[:middle] & np.uint8(15), extra[middle:]
        extra[: len(upper)] |= upper << 4
    parts = (
        counts.astype(UNSIGNED[count_bytes]),
        lower.astype(UNSIGNED[low], copy=False),
        extra,
        np.packbits(background),
    )
    return b"".join(part.data for part in parts), bits, count_bytes


def unpack_events(
    data: bytes, events: int, bits: int, count_bytes: int, base: int, span: int, start: int, stop: int
) -> tuple[Integers, NDArray[np.bool_]]:
    """Keys and flags of a block from its bytes: those of the ranges that reach into the keys from `start` to `stop`.

    Keys have 32 bits where that is enough. ValueError if there are too few or many bytes, or if the counts are not
    those of its events.
    """
    if len(data) != events_size(events, bits, count_bytes, span):
        raise ValueError("has changed")
    if not events:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    ranges = _ranges(span, bits)
    low, halves = BITS[bits]
    counts = np.frombuffer(data, UNSIGNED[count_bytes], ranges).astype(np.int64)
    if counts.sum() != events:
        raise ValueError("has changed")
    first = max(start - base, 0) >> bits
    end = min(-(-(stop - base) >> bits), ranges)
    i = int(counts[:first].sum()) if first else 0
    at = ranges * count_bytes
    j = events - (int(counts[end:].sum()) if end < ranges else 0)
    kept: Integers = np.frombuffer(data, UNSIGNED[low], j - i, at + low * i)
    at += low * events
    if halves == 1:
        kept = _with_halves(kept, np.frombuffer(data, np.uint8, (events + 1) // 2, at), i, 8 * low)
    elif halves == 2:
        kept = (np.frombuffer(data, np.uint8, j - i, at + i).astype(np.int32) << 16) | kept
    kind = np.dtype(np.int32 if base + (ranges << bits) <= 2**31 else np.int64)
    firsts: Integers = np.arange(first, end, dtype=kind)
    keys = np.repeat((firsts << bits) + base, counts[first:end])
    keys += kept
    at += (halves * events + 1) // 2 + i // 8
    flags = np.unpackbits(np.frombuffer(data, np.uint8, -(-j // 8) - i // 8, at))
    return keys, flags[i % 8 : i % 8 + j - i].view(np.bool_)


def _with_halves(kept: Integers, extra: Bytes, i: int, shift: int) -> Integers:
    """The lower bits of keys from event `i` on: those in `kept`, and above them, at `shift`, half a byte of `extra`."""
    kind = np.dtype(np.uint16 if shift == 8 else np.int32)
    wide = extra.astype(kind)
    result = np.empty(len(kept), kind)
    middle = len(extra)
    j = i + len(kept)
    split = max(min(j, middle) - i, 0)
    np.left_shift(wide[i:middle][:split], shift, out=result[:split])
    np.left_shift(wide[max(i - middle, 0) : max(j - middle, 0)], shift - 4, out=result[split:])
    result &= 15 << shift
    result |= kept.astype(kind)
    return result


def is_storable(truth: Truth) -> bool:
    """Whether ground truth is finite; an actor that is absent has none at all."""
    if np.abs(truth).max(initial=0.0) < LARGEST_TRUTH:
        return True
    absent = np.isnan(truth).all(axis=(2, 3), keepdims=True)
    return bool(((np.abs(truth) < LARGEST_TRUTH) | absent).all())


def pack_truths(truths: Sequence[Truth]) -> list[bytes]:
    """The bytes of a block of each of several recordings, whose ground truths (steps, actors, 3, 6) have one shape."""
    steps, count = len(truths[0]), truths[0][0].size  # columns of a recording
    columns = np.array([truth.transpose(1, 2, 3, 0) for truth in truths], order="C").reshape(-1, steps)
    bits = columns.view(np.int64)
    order_of = np.arange(len(columns)) // PARAMETER_COUNT % ORDERS
    given = (bits != bits[:, :1]).any(axis=1)
    chosen: list[NDArray[np.intp]] = []
    content: list[NDArray[np.int8] | Numbers] = []
    for order in (1, 0):
        tried = np.flatnonzero(given & (order_of == order))
        lack = bits[tried, 1:] - _predicted(columns, tried, order)
        fits = ((lack >= -128) & (lack < 128)).all(axis=1)
        chosen.append(tried[fits])
        content.append(lack[fits].astype(np.int8))
        given[chosen[-1]] = False
    chosen.insert(0, np.flatnonzero(given))
    content.insert(0, columns[given, 1:].astype(FLOAT))
    ends = np.array([np.searchsorted(part, np.arange(len(truths) + 1) * count) for part in chosen])
    first = columns[:, 0].astype(FLOAT).reshape(len(truths), count)
    sizes = np.diff(ends).T.astype(UNSIGNED[4], order="C")
    which = [(part % max(count, 1)).astype(UNSIGNED[4]) for part in chosen]
    result = []
    for number, bounds in enumerate(pairwise(ends.T.tolist())):
        own = [slice(*both) for both in zip(*bounds, strict=True)]
        listed = (part[rows] for part, rows in zip([*which, *content], own * 2, strict=True))
        result.append(b"".join(part.data for part in (first[number], sizes[number], *listed)))
    return result


class PackedTruth:
    """The ground truth of some steps of a recording: bytes that are unpacked when it is asked for."""

    def __init__(self, blocks: Sequence[bytes], size: int, covered: int, actors: int, steps: slice):
        """Blocks of `size` steps (the last may have fewer), `covered` in all; `steps` counts from the first."""
        self._blocks = blocks
        self._size = size
        self._actors = actors
        self._steps = steps
        self._columns = (actors * ORDERS * PARAMETER_COUNT, covered)
        for number, data in enumerate(blocks):
            _check_truth(data, self._columns[0], min(size, covered - number * size))

    def __len__(self) -> int:
        return self._steps.stop - self._steps.start

    def __call__(self) -> Truth:
        """(steps, actors, 3, 6)."""
        columns = np.empty(self._columns)
        for number, data in enumerate(self._blocks):
            _unpack_truth(data, columns[:, number * self._size : (number + 1) * self._size])
        return columns.T[self._steps].reshape(len(self), self._actors, ORDERS, PARAMETER_COUNT)


def _check_truth(data: bytes, count: int, steps: int) -> None:
    """`ValueError` unless these are the bytes of a block of so many columns and steps, which can be unpacked."""
    at = 8 * count + 12
    sizes = np.frombuffer(data, UNSIGNED[4], 3, at - 12).tolist()
    columns = sum(sizes)
    if len(data) != at + 4 * columns + (8 * sizes[0] + sizes[1] + sizes[2]) * (steps - 1):
        raise ValueError("has changed")
    which = np.frombuffer(data, UNSIGNED[4], columns, at).tolist()
    for behind, size in enumerate(sizes):  # what is predicted has columns of its derivatives behind it
        own = which[:size]
        which = which[size:]
        if own and max(own) + behind * PARAMETER_COUNT >= count:
            raise ValueError("has changed")


def _unpack_truth(data: bytes, columns: Numbers) -> None:
    """Fill in the columns (C, steps) of a block."""
    count = len(columns)
    rest = columns.shape[1] - 1
    at = 8 * count + 12
    given, velocities, parameters = np.frombuffer(data, UNSIGNED[4], 3, at - 12).tolist()
    which = np.frombuffer(data, UNSIGNED[4], given + velocities + parameters, at).astype(np.intp)
    at += 4 * len(which)
    columns[:] = np.frombuffer(data, FLOAT, count)[:, None]
    columns[which[:given], 1:] = np.frombuffer(data, FLOAT, given * rest, at).reshape(given, rest)
    at += 8 * given * rest
    for order, begin, size in ((1, given, velocities), (0, given + velocities, parameters)):
        if size:
            predicted = _predicted(columns, which[begin : begin + size], order)
            predicted += np.frombuffer(data, np.int8, size * rest, at).reshape(size, rest)
            columns[which[begin : begin + size], 1:] = predicted.view(np.float64)
            at += size * rest


def _predicted(columns: Numbers, chosen: NDArray[np.intp], order: int) -> NDArray[np.int64]:
    """What is predicted for some columns of this order at all steps but the first, as integers."""
    growth = columns.take(chosen + PARAMETER_COUNT, axis=0)
    if order == 0:
        half = columns.take(chosen + 2 * PARAMETER_COUNT, axis=0)
        half *= 0.5
        growth += half
    growth[:, 0] += columns[:, 0].take(chosen)
    return np.add.accumulate(growth, axis=1, out=growth)[:, :-1].view(np.int64)

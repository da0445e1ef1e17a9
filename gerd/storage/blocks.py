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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT

# Bits of a key that are stored: bytes of `low`, half bytes of `extra`.
BITS = {8: (1, 0), 12: (1, 1), 16: (2, 0), 20: (2, 1), 24: (2, 2), 32: (4, 0), 63: (8, 0)}
COUNT_BYTES = (1, 2, 4)
CROWD = 16  # events in a range, at least, on average
TARGET = 2**18  # bytes of keys (as 16 bits) and ground truth (as float64) in a block, at most
LONGEST = 4096  # steps of a block
LARGEST_TRUTH = 1e300  # so that no prediction overflows

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.float64]
Truth = NDArray[np.float64]  # (steps, actors, 3, 6)
Part = tuple[int, NDArray[np.int64], NDArray[np.bool_], Truth]  # its first step, keys, background flags, ground truth


def block_steps(steps: int, events: int, actors: int) -> int:
    """How many steps go into a block: a power of two."""
    size, weight = 1, 2 * events + 8 * actors * ORDERS * PARAMETER_COUNT * steps
    while size < min(steps, LONGEST) and 2 * size * weight <= TARGET * steps:
        size *= 2
    return size


def events_size(events: int, bits: int, count_bytes: int, span: int) -> int:
    """The bytes of a block of events whose steps have `span` keys."""
    low, halves = BITS[bits]
    extra = (halves * events + 1) // 2
    return _ranges(span, bits) * count_bytes + low * events + extra + (events + 7) // 8 if events else 0


def _ranges(span: int, bits: int) -> int:
    return -(-span // 2**bits)


def in_order(keys: NDArray[np.int64], base: int, span: int, once: bool) -> bool:
    """Whether keys are among the `span` ones from `base` on, and ascend; with `once`, whether none comes twice."""
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
    counts = np.diff(bounds, prepend=0, append=len(keys))
    count_bytes = next(size for size in COUNT_BYTES if counts.max() < 256**size)
    (low, halves), relative = BITS[bits], keys - base
    extra = (relative >> (8 * low)).astype(np.uint8) if halves else np.empty(0, np.uint8)
    if halves == 1:
        extra, upper = np.split(extra & np.uint8(15), [(len(keys) + 1) // 2])
        extra[: len(upper)] |= upper << 4
    parts = (counts.astype(f"<u{count_bytes}"), relative.astype(f"<u{low}"), extra, np.packbits(background))
    return b"".join(part.tobytes() for part in parts), bits, count_bytes


def unpack_events(
    data: Bytes, events: int, bits: int, count_bytes: int, base: int, span: int, start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Keys and flags of a block from its bytes: those of the ranges that reach into the keys from `start` to `stop`.

    ValueError if there are too few or many bytes, or if the counts are not those of its events.
    """
    if len(data) != events_size(events, bits, count_bytes, span):
        raise ValueError("has changed")
    if not events:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    ranges, (low, halves), middle = _ranges(span, bits), BITS[bits], (events + 1) // 2
    counts = data[: ranges * count_bytes].view(f"<u{count_bytes}").astype(np.int64)
    if counts.sum() != events:
        raise ValueError("has changed")
    first, end = max(start - base, 0) >> bits, min(-(-(stop - base) >> bits), ranges)
    i, at = int(counts[:first].sum()) if first else 0, ranges * count_bytes
    j = events - (int(counts[end:].sum()) if end < ranges else 0)
    kept: NDArray[Any] = data[at + low * i : at + low * j].view(f"<u{low}" if low < 8 else "<i8")
    at += low * events
    if halves:
        kind, shift = np.dtype(np.uint16 if low == 1 else np.uint32), 8 * low
        kept = kept.astype(kind)
        if halves == 1:
            below, above = data[at + i : at + min(j, middle)], data[at + max(i - middle, 0) : at + max(j - middle, 0)]
            kept[: len(below)] |= (below & 15).astype(kind) << shift
            kept[len(kept) - len(above) :] |= (above >> 4).astype(kind) << shift
        else:
            kept |= data[at + i : at + j].astype(kind) << shift
    keys = np.repeat((np.arange(first, end) << bits) + base, counts[first:end])
    keys += kept
    at += (halves * events + 1) // 2 + i // 8
    return keys, np.unpackbits(data[at : at + 1 + j // 8 - i // 8])[i % 8 : i % 8 + j - i].view(np.bool_)


def pack_truth(truth: Truth) -> bytes:
    """The bytes of the ground truth (steps, actors, 3, 6) of a block."""
    absent = np.isnan(truth).all(axis=(2, 3), keepdims=True)
    if not ((np.abs(truth) < LARGEST_TRUTH) | absent).all():
        raise ValueError("its ground truth is not finite")
    columns = np.ascontiguousarray(truth.reshape(len(truth), -1).T)
    bits = columns.view(np.int64)
    given = (bits != bits[:, :1]).any(axis=1)
    chosen, lacks = [], []
    for order in (1, 0):
        tried = np.flatnonzero(given & (np.arange(len(given)) // PARAMETER_COUNT % ORDERS == order))
        lack = bits[tried, 1:] - _predicted(columns, tried, order)
        fits = ((lack >= -128) & (lack < 128)).all(axis=1)
        chosen.append(tried[fits])
        lacks.append(lack[fits].astype(np.int8))
        given[chosen[-1]] = False
    chosen.insert(0, np.flatnonzero(given))
    which = np.concatenate([[len(part) for part in chosen], *chosen]).astype("<u4")
    parts = [columns[:, 0].astype("<f8"), which, columns[given, 1:].astype("<f8"), *lacks]
    return b"".join(part.tobytes() for part in parts)


def unpack_truth(data: Bytes, truth: Truth) -> None:
    """Fill in the ground truth (steps, actors, 3, 6) of a block; `ValueError` if there are too few or many bytes."""
    rest, count = len(truth) - 1, truth[0].size
    first, at = data[: 8 * count].view("<f8"), 8 * count + 12
    given, velocities, parameters = data[8 * count : at].view("<u4").tolist()
    predicted = velocities + parameters
    numbers_at = at + 4 * (given + predicted)
    lacks_at = numbers_at + 8 * given * rest
    if len(data) != lacks_at + predicted * rest:
        raise ValueError("has changed")
    which = data[at:numbers_at].view("<u4").astype(np.intp)
    columns = np.empty((count, rest + 1))
    columns[:] = first[:, None]
    if given:
        columns[which[:given], 1:] = data[numbers_at:lacks_at].view("<f8").reshape(given, rest)
    lacks = data[lacks_at:].view(np.int8).reshape(predicted, rest)
    for order, chosen, lack in (
        (1, which[given : given + velocities], lacks[:velocities]),
        (0, which[given + velocities :], lacks[velocities:]),
    ):
        if len(chosen):
            columns[chosen, 1:] = (_predicted(columns, chosen, order) + lack).view(np.float64)
    truth.reshape(rest + 1, count)[:] = columns.T


def _predicted(columns: Numbers, chosen: NDArray[np.intp], order: int) -> NDArray[np.int64]:
    """Some columns of this order, but for the first step, from their first number and derivatives; as integers."""
    growth = columns[chosen + PARAMETER_COUNT]
    if order == 0:
        growth += columns[chosen + 2 * PARAMETER_COUNT] * 0.5
    growth[:, 0] += columns[chosen, 0]
    return np.add.accumulate(growth, axis=1, out=growth)[:, :-1].view(np.int64)

"""Blocks of steps to bytes and back: the events of some steps, and the ground truth at these steps.

Events. The keys of a block ascend, so their differences are small: the first is counted from the first key that the
block's first step could have. Differences have `bits` bits each, of which all ones stand for a difference that is in
the list of large ones. The bytes are

    byte 0 of each difference, byte 1 of each, …    for each 8 of `bits`
    a half byte of each                             if 4 bits are left: those of the first half of the events, rounded
                                                    up, are the lower halves of these bytes, the others the upper
    the large differences, int64
    one bit per event: whether it is background noise; the first event is the highest bit of the first byte

Ground truth. A velocity is predicted as the block's first one plus the accelerations since then, a parameter as the
first one plus velocity and half of the acceleration of each step since then, added one after the other; an acceleration
as the one before. Number and prediction are taken as 64-bit integers, and their difference, which is mostly small, is
what is stored. Over C = actors · 18 columns (actor, order, parameter) the bytes are

    widths      (C,) uint8                          bytes per difference: 0 (all are 0), 1, 2, 4 or 8
    first       (C,) float64                        the numbers of the first step
    1, 2, 4, 8  (columns of this width, steps - 1)  differences, as signed integers; none of those of width 0

Integers are little-endian. The same arrays give the same bytes on every machine, with every version of every library.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.geometry.trajectory import ORDERS, PARAMETER_COUNT

BITS = range(4, 33, 4)  # of a difference of keys
WIDTHS = (1, 2, 4, 8)  # bytes of a difference of the ground truth, where there is one
TARGET = 2**16  # bytes of keys (as 16 bits) and ground truth (as float64) in a block, about
LONGEST = 4096  # steps of a block
LARGEST_TRUTH = 1e300  # so that no prediction overflows

Bytes = NDArray[np.uint8]
Truth = NDArray[np.float64]  # (steps, actors, 3, 6)
Part = tuple[int, NDArray[np.int64], NDArray[np.bool_], Truth]  # its first step, keys, background flags, ground truth


def block_steps(steps: int, events: int, actors: int) -> int:
    """How many steps go into a block: a power of two."""
    size, weight = 1, 2 * events + 8 * _columns(actors) * steps
    while size < min(steps, LONGEST) and 2 * size * weight <= TARGET * steps:
        size *= 2
    return size


def _columns(actors: int) -> int:
    return actors * ORDERS * PARAMETER_COUNT


def events_size(events: int, bits: int, large: int) -> int:
    """The bytes of a block of events."""
    return bits // 8 * events + (bits % 8 and (events + 1) // 2) + 8 * large + (events + 7) // 8


def pack_events(keys: NDArray[np.int64], background: NDArray[np.bool_], base: int) -> tuple[bytes, int, int]:
    """The bytes of a block of events whose first step begins at the key `base`; bits; how many are large."""
    differences = np.diff(keys, prepend=base)
    clipped = np.minimum(differences.view(np.uint64), 2**32 - 1).astype(np.uint32)  # what does not ascend is large
    large_with = {bits: int(np.count_nonzero(clipped >= 2**bits - 1)) for bits in BITS}
    bits = min(BITS, key=lambda bits: events_size(len(keys), bits, large_with[bits]))
    whole, large = bits // 8, clipped >= 2**bits - 1
    small = np.where(large, np.uint32(2**bits - 1), clipped)
    parts = [(small >> (8 * k)).astype(np.uint8).tobytes() for k in range(whole)]
    if bits % 8:
        half = (small >> (8 * whole)).astype(np.uint8)
        middle = (len(keys) + 1) // 2
        halves = half[:middle].copy()
        halves[: len(keys) - middle] |= half[middle:] << 4
        parts.append(halves.tobytes())
    parts += [differences[large].astype("<i8").tobytes(), np.packbits(background).tobytes()]
    return b"".join(parts), bits, large_with[bits]


def unpack_events(
    data: Bytes, bits: int, large: int, base: int, keys: NDArray[np.int64], background: NDArray[np.bool_]
) -> None:
    """Fill in the keys and flags of a block."""
    events, (whole, rest) = len(keys), divmod(bits, 8)
    differences: NDArray[Any] = np.zeros(events, np.uint16 if bits <= 16 else np.uint32)
    for k in range(whole):
        differences |= data[k * events : (k + 1) * events].astype(differences.dtype) << (8 * k)
    at = whole * events
    if rest:
        middle = (events + 1) // 2
        halves = data[at : at + middle].astype(differences.dtype)
        differences[:middle] |= (halves & 15) << (8 * whole)
        differences[middle:] |= (halves[: events - middle] >> 4) << (8 * whole)
        at += middle
    summands = differences.astype(np.int64)
    if large:
        summands[differences == 2**bits - 1] = data[at : at + 8 * large].view("<i8")
    summands[:1] += base
    np.cumsum(summands, out=keys)
    background[:] = np.unpackbits(data[at + 8 * large :], count=events).view(np.bool_)


def pack_truth(truth: Truth) -> bytes:
    """The bytes of the ground truth (steps, actors, 3, 6) of a block."""
    if not (np.abs(truth) < LARGEST_TRUTH).all():
        raise ValueError("its ground truth is not finite")
    columns = np.ascontiguousarray(np.moveaxis(truth, 0, -1))  # (actors, 3, 6, steps)
    parameters, velocities, accelerations = (columns[:, order] for order in range(ORDERS))
    predicted = np.stack(
        [
            _summed(parameters, velocities + accelerations * 0.5),
            _summed(velocities, accelerations),
            np.concatenate([accelerations[..., :1], accelerations[..., :-1]], axis=-1),
        ],
        axis=1,
    )
    differences = (columns.view(np.int64) - predicted.view(np.int64)).reshape(-1, len(truth))[:, 1:]
    low, high = differences.min(axis=1, initial=0), differences.max(axis=1, initial=0)
    widths = np.zeros(len(differences), np.uint8)
    widths[(low < 0) | (high > 0)] = WIDTHS[0]
    for width, wider in pairwise(WIDTHS):
        most = 2 ** (8 * width - 1)
        widths[(low < -most) | (high >= most)] = wider
    parts = [widths.tobytes(), columns[..., 0].astype("<f8").tobytes()]
    parts += [differences[widths == width].astype(f"<i{width}").tobytes() for width in WIDTHS]
    return b"".join(parts)


def truth_size(data: Bytes, steps: int, actors: int) -> int:
    """The bytes that a block of ground truth has by its widths; -1 if it has no valid widths."""
    widths = data[: _columns(actors)]
    if len(widths) < _columns(actors) or not np.isin(widths, (0, *WIDTHS)).all():
        return -1
    return 9 * len(widths) + int(widths.sum(dtype=np.int64)) * (steps - 1)


def unpack_truth(data: Bytes, truth: Truth) -> None:
    """Fill in the ground truth (steps, actors, 3, 6) of a block."""
    steps, actors = truth.shape[:2]
    count = _columns(actors)
    widths, at = data[:count], 9 * count
    bits = np.zeros((count, steps), np.int64)
    for width in WIDTHS:
        (chosen,) = np.nonzero(widths == width)
        size = len(chosen) * (steps - 1) * width
        if size:
            bits[chosen, 1:] = data[at : at + size].view(f"<i{width}").reshape(len(chosen), steps - 1)
        at += size
    bits[:, 0] = data[count : 9 * count].view("<i8")
    columns = bits.reshape(actors, ORDERS, PARAMETER_COUNT, steps)
    numbers = columns.view(np.float64)
    np.cumsum(columns[:, 2], axis=-1, out=columns[:, 2])
    columns[:, 1, :, 1:] += _summed(numbers[:, 1], numbers[:, 2]).view(np.int64)[..., 1:]
    columns[:, 0, :, 1:] += _summed(numbers[:, 0], numbers[:, 1] + numbers[:, 2] * 0.5).view(np.int64)[..., 1:]
    truth[:] = np.moveaxis(numbers, -1, 0)


def _summed(start: NDArray[Any], growth: NDArray[Any]) -> NDArray[Any]:
    """The first number of each row, and the growth of each step added to it, one after the other."""
    return np.cumsum(np.concatenate([start[..., :1], growth[..., :-1]], axis=-1), axis=-1)

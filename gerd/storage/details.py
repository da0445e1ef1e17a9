"""What a shard says of events besides their keys and flags, where there is more to say: their sources and delays.

A block of a recording whose events come from edges and background noise only, each when its pixel fires, has no bytes
here, and a shard of such recordings no tensor. The bytes of any other block are

    sources  2 bits for each event, where the block has hot pixels or leaks: its number in `SOURCE_NAMES`; the first
             event is in the highest bits of a byte
    delays   an integer of `delay_bytes` bytes for each event, where it is not 0: the microseconds of readout
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events.shared import FROM_BACKGROUND
from gerd.storage.blocks import UNSIGNED

SOURCE_BITS = (0, 2)
DELAY_BYTES = (0, 1, 2, 4)

Sources = NDArray[np.uint8]
Delays = NDArray[np.int64]


class DetailEntry(NamedTuple):
    """A row of the tensor `detail_blocks`."""

    bytes: int
    checksum: int
    source_bits: int  # of an event
    delay_bytes: int


def pack_details(source: Sources, delay: Delays | None) -> tuple[bytes, int, int]:
    """The bytes of a block, `source_bits` and `delay_bytes`."""
    source_bits = 2 if source.max(initial=0) > FROM_BACKGROUND else 0
    longest = 0 if delay is None else int(delay.max(initial=0))
    delay_bytes = next(size for size in DELAY_BYTES if longest < 256**size)
    bits = np.unpackbits(source[:, None], axis=1)[:, 8 - source_bits :] if source_bits else np.empty(0, np.uint8)
    late = delay.astype(UNSIGNED[delay_bytes]) if delay is not None and delay_bytes else np.empty(0, np.uint8)
    return np.packbits(bits).tobytes() + late.tobytes(), source_bits, delay_bytes


def details_size(events: int, source_bits: int, delay_bytes: int) -> int:
    """How many bytes the details of a block of events take."""
    return -(-source_bits * events // 8) + delay_bytes * events


def unpack_details(
    data: bytes, events: int, source_bits: int, delay_bytes: int
) -> tuple[Sources | None, Delays | None]:
    """Sources and delays of a block's events from its bytes, None where it has none; ValueError if they do not fit."""
    if len(data) != details_size(events, source_bits, delay_bytes):
        raise ValueError("has changed")
    at = -(-source_bits * events // 8)
    source = delay = None
    if source_bits:
        bits = np.unpackbits(np.frombuffer(data, np.uint8, at), count=source_bits * events).reshape(events, source_bits)
        source = np.packbits(bits, axis=1).ravel() >> np.uint8(8 - source_bits)
    if delay_bytes:
        delay = np.frombuffer(data, UNSIGNED[delay_bytes], events, at).astype(np.int64)
    return source, delay

"""Events to the bytes of Prophesee's formats: EVT 2.0, EVT 3.0 and DAT 2, from their public description.

In: events with the fields x, y, t (microseconds) and p, in order of time, that fit the format; width and height. Out:
the bytes of a file. They depend on the events alone: no date is written.

EVT 3.0 is written without vector words. The sensor maker's decoder takes those in whole triples of 12, 12 and 8 pixels
only, and drops the others without a word. Its clock has 24 bits and wraps every 16.8 s, which decoders count by seeing
it wrap: so a TIME_HIGH is written for every 4096 µs from 0 on, also where nothing happens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.void]  # with the fields x, y, t, p
Words = NDArray[np.int64]

EVT2_LOW_BITS = 6  # of the time, in every event
EVT2_OFF, EVT2_ON, EVT2_TIME_HIGH = 0x0, 0x1, 0x8  # kinds of words
EVT3_LOW_BITS = 12  # of the time, in a TIME_LOW
EVT3_ADDR_Y, EVT3_ADDR_X, EVT3_TIME_LOW, EVT3_TIME_HIGH = 0x0, 0x2, 0x6, 0x8
DAT_CD_EVENT = 12  # kind of event: a change of brightness
DAT_EVENT = np.dtype([("t", "<u4"), ("address", "<u4")])


def evt2(events: Rows, width: int, height: int) -> bytes:
    """32-bit words. A TIME_HIGH of 0 comes first, and another wherever the high part of the time changes.

    So the data never begins with a %, which some readers would take for the header in spite of its end.
    """
    x, y, t, p = _fields(events)
    high = t >> EVT2_LOW_BITS
    kind = np.where(p == 1, EVT2_ON, EVT2_OFF)
    event = kind << 28 | (t & (1 << EVT2_LOW_BITS) - 1) << 22 | x << 11 | y
    changed = np.flatnonzero(np.diff(high, prepend=0))
    words = np.insert(event, changed, EVT2_TIME_HIGH << 28 | high[changed])
    return _header("2.0", width, height) + np.insert(words, 0, EVT2_TIME_HIGH << 28).astype("<u4").tobytes()


def evt3(events: Rows, width: int, height: int) -> bytes:
    """16-bit words that change what the next event has: the time, the row; an ADDR_X is an event."""
    x, y, t, p = _fields(events)
    later = np.diff(t, prepend=-1) != 0
    other_row = later | (np.diff(y, prepend=-1) != 0)
    high = t >> EVT3_LOW_BITS
    ticks = np.arange(int(high[-1]) + 1 if len(t) else 1)
    words = np.stack(
        [
            EVT3_TIME_LOW << 12 | (t & (1 << EVT3_LOW_BITS) - 1),
            EVT3_ADDR_Y << 12 | y,
            EVT3_ADDR_X << 12 | p << 11 | x,
        ],
        axis=1,
    )
    written = np.stack([later, other_row, np.ones_like(later)], axis=1)
    before = np.concatenate([[0], np.cumsum(written.sum(axis=1))])  # words before each event
    places = before[np.searchsorted(high, ticks)]
    result = np.insert(words[written], places, EVT3_TIME_HIGH << 12 | (ticks & 0xFFF))
    return _header("3.0", width, height) + result.astype("<u2").tobytes()


def dat(events: Rows, width: int, height: int) -> bytes:
    """8 bytes for each event: the time, and x, y and p in one word."""
    x, y, t, p = _fields(events)
    result = np.empty(len(events), DAT_EVENT)
    result["t"], result["address"] = t, p << 28 | y << 14 | x
    header = _lines("Data file containing CD events", "Version 2", f"Width {width}", f"Height {height}")
    return header + bytes([DAT_CD_EVENT, DAT_EVENT.itemsize]) + result.tobytes()


def _fields(events: Rows) -> tuple[Words, Words, Words, Words]:
    x, y, t, p = (events[name].astype(np.int64) for name in "xytp")
    return x, y, t, p


def _header(version: str, width: int, height: int) -> bytes:
    """Ends with `% end`, because the data may begin with a %, too."""
    name = f"EVT{version[0]}"
    return _lines(f"evt {version}", f"format {name};height={height};width={width}", f"geometry {width}x{height}", "end")


def _lines(*texts: str) -> bytes:
    return "".join(f"% {text}\n" for text in texts).encode()

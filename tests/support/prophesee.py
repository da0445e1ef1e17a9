"""Readers of Prophesee's formats: from their public description, and by other people's libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Columns = tuple[Any, Any, Any, Any]  # t, x, y, p
VECTOR = (0x4, 0x4, 0x5)  # kinds of the words that describe 12, 12 and 8 pixels: only a whole triple counts


def data_of(path: Path) -> bytes:
    """What follows the header, whose last line is `% end`."""
    data = path.read_bytes()
    line = b""
    while line != b"% end":
        assert data.startswith(b"% ")
        line, _, data = data.partition(b"\n")
    return data


def evt2_by_its_definition(path: Path) -> Columns:
    """EVT 2.0: words of 32 bits, those of kind 8 hold the upper bits of the time."""
    words = np.frombuffer(data_of(path), "<u4").astype(np.int64)
    kind = words >> 28
    assert set(kind.tolist()) <= {0, 1, 8}
    assert kind[0] == 8  # the time is known before the first event
    event = kind != 8
    latest = np.maximum.accumulate(np.where(event, 0, np.arange(len(words))))  # the word of kind 8 before each event
    t = ((words[latest] & 0xFFFFFFF) << 6) + (words >> 22 & 0x3F)
    return t[event], (words >> 11 & 0x7FF)[event], (words & 0x7FF)[event], kind[event]


def evt3_by_its_definition(path: Path) -> Columns:
    """EVT 3.0, word by word. Vector words count in whole triples, as the sensor maker's decoder takes them."""
    high = low = y = laps = 0
    rows: list[tuple[int, int, int, int]] = []
    words = np.frombuffer(data_of(path), "<u2").tolist()
    kinds = [word >> 12 for word in words]
    assert kinds[0] == 0x8
    position = 0
    while position < len(words):
        kind, value = kinds[position], words[position] & 0xFFF
        if kind == 0x8:
            assert (value - high) % 4096 <= 1, "a TIME_HIGH is missing: a lap of the clock could go uncounted"
            laps += value < high
            low, high = (low if value == high else 0), value
        elif kind == 0x6:
            low = value
        elif kind == 0x0:
            y = value & 0x7FF
        elif kind == 0x2:
            rows.append(((laps << 24 | high << 12) + low, value & 0x7FF, y, value >> 11))
        elif kind == 0x3 and tuple(kinds[position + 1 : position + 4]) == VECTOR:
            for start, word in zip((0, 12, 24), words[position + 1 : position + 4], strict=True):
                bits = [k for k in range(12) if word & 0xFFF & 1 << k]
                rows += [((laps << 24 | high << 12) + low, (value & 0x7FF) + start + k, y, value >> 11) for k in bits]
            position += 3
        position += 1
    t, x, y_, p = np.array(rows, np.int64).reshape(-1, 4).T
    return t, x, y_, p


def dat_by_its_definition(path: Path) -> Columns:
    """DAT 2: 8 bytes for each event."""
    data = path.read_bytes()
    header = []
    while data.startswith(b"% "):
        line, _, data = data.partition(b"\n")
        header.append(line)
    assert b"% Data file containing CD events" in header
    assert b"% Version 2" in header
    assert data[:2] == bytes([12, 8])  # CD events of eight bytes
    t, place = np.frombuffer(data[2:], "<u4").reshape(-1, 2).T
    return t, place & 0x3FFF, place >> 14 & 0x3FFF, place >> 28 & 1


def expelliarmus(path: Path, encoding: str) -> Columns:
    from expelliarmus import Wizard

    events = Wizard(encoding=encoding).read(str(path))
    empty = np.zeros(0, np.int64)
    return (empty,) * 4 if events is None else tuple(events[name] for name in "txyp")


def faery(path: Path, encoding: str) -> Columns:
    import faery

    kind, version = ("dat", "dat2") if encoding == "dat" else ("evt", encoding)
    parts = [part.copy() for part in faery.events_stream_from_file(path, version_fallback=version, file_type=kind)]
    events = np.concatenate(parts) if parts else np.zeros(0, faery.EVENTS_DTYPE)
    return events["t"], events["x"], events["y"], events["on"]


def evlib(path: Path) -> Columns:
    import evlib

    events = evlib.load_events(str(path)).collect()
    t, x, y, p = (events[name].to_physical().to_numpy() for name in ("t", "x", "y", "polarity"))
    return t, x, y, p > 0


READERS = {
    "evt2": [evt2_by_its_definition, lambda path: expelliarmus(path, "evt2"), lambda path: faery(path, "evt2"), evlib],
    "evt3": [evt3_by_its_definition, lambda path: faery(path, "evt3"), evlib],
    "dat": [dat_by_its_definition, lambda path: expelliarmus(path, "dat"), lambda path: faery(path, "dat")],
}

"""Prophesee's files: RAW with EVT 2.0, 2.1 or 3.0, and DAT 2, from their public description.

A header of lines that begin with a % says the format and the size of the frame; binary words follow. In the EVT
formats a word has a type in its highest four bits, and most of the time comes in words of its own, TIME_HIGH. Its bits
are few, so the clock wraps, which shows as a TIME_HIGH that is far below the one before. Words before the first
TIME_HIGH have no time, and are passed over. EVT 3.0 goes further: row, column and low part of the time are words, and
an event has what came last. Here all of that is done for a block of words at a time, by carrying the last such word
forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import StorageError
from gerd.exchange.decoders.columns import side
from gerd.exchange.decoders.opened import ROWS_AT_ONCE, Damage, Opened, Rows, rows_of

Words = NDArray[Any]  # of 16, 32 or 64 bits
Whole = NDArray[np.int64]

MAGIC = b"%"
MOST_HEADER = 2**16  # bytes
END = "end"  # the header's last line, where it has one

EVT2_OFF, EVT2_ON, EVT2_TIME_HIGH = 0x0, 0x1, 0x8
EVT2_LOW_BITS, EVT2_HIGH_BITS = 6, 28
MASK_BITS = 32  # pixels of an event of EVT 2.1
EVT3_ROW, EVT3_OTHER_ROW, EVT3_EVENT, EVT3_BASE = 0x0, 0x1, 0x2, 0x3  # the other row is of no changes of brightness
EVT3_VECTOR12, EVT3_VECTOR8, EVT3_LOW, EVT3_HIGH = 0x4, 0x5, 0x6, 0x8
EVT3_LOW_BITS, EVT3_HIGH_BITS = 12, 12
DAT_CHANGE_OF_BRIGHTNESS = (0x00, 0x0C)  # kinds of events
DAT_CLOCK_BITS = 32


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """A RAW or DAT file, from its beginning on."""
    header = _header(file, damage)
    kind = _kind(header)
    if kind is None:
        first = file.read(2)
        if header.get("version") == "2" and len(first) == 2 and first[0] in DAT_CHANGE_OF_BRIGHTNESS and first[1] == 8:
            return Opened("dat", _size(header), _blocks(file, np.dtype("<u8"), damage, _Dat()))
        raise StorageError(f"{damage.path}: its header names no format that is known: EVT 2.0, 2.1, 3.0 or DAT 2")
    if kind == "evt2":
        return Opened(kind, _size(header), _blocks(file, np.dtype("<u4"), damage, _Evt2()))
    if kind == "evt2.1":
        swapped = header.get("endianness") == "legacy"  # then the halves of a word have changed places
        return Opened(kind, _size(header), _blocks(file, np.dtype("<u8"), damage, _Evt21(swapped)))
    return Opened(kind, _size(header), _blocks(file, np.dtype("<u2"), damage, _Evt3()))


def _header(file: IO[bytes], damage: Damage) -> dict[str, str]:
    """What the lines of the header say, by their keys in small letters; the file is then at its first word."""
    said: dict[str, str] = {}
    read = 0
    while True:
        place = file.tell()
        line = file.readline(MOST_HEADER)
        read += len(line)
        if not line.startswith(b"% ") or not line.endswith(b"\n"):
            file.seek(place)
            return said
        if read > MOST_HEADER:
            raise StorageError(f"{damage.path}: its header has more than {MOST_HEADER} bytes")
        text = line[2:].decode("latin-1").strip()
        if text.lower() == END:
            return said
        key, _, value = text.partition(" ")
        said[key.lower()] = value
        if key.lower() == "format":
            name, *options = value.split(";")
            said["format"] = name
            said |= {k.lower(): v for k, _, v in (option.partition("=") for option in options)}


def _kind(header: dict[str, str]) -> str | None:
    """Which of the EVT formats the header names."""
    version = header.get("evt") or header.get("format", "").upper().removeprefix("EVT")
    return {"2.0": "evt2", "2": "evt2", "2.1": "evt2.1", "21": "evt2.1", "3.0": "evt3", "3": "evt3"}.get(version)


def _size(header: dict[str, str]) -> tuple[int, int] | None:
    words = header["geometry"].split("x", 1) if "geometry" in header else [header.get("width", "")]
    width, height = side(words[0]), side(words[1] if len(words) > 1 else header.get("height", ""))
    return None if width is None or height is None else (width, height)


def _blocks(
    file: IO[bytes], kind: np.dtype[np.generic], damage: Damage, decode: Callable[[Words], Rows]
) -> Iterator[Rows]:
    while data := file.read(ROWS_AT_ONCE * kind.itemsize):
        rest = len(data) % kind.itemsize
        if rest:
            damage.found("bytes at the end", rest, f"ends in the middle of an event, after {rest} of its bytes")
        if whole := len(data) // kind.itemsize:
            yield decode(np.frombuffer(data, kind, whole))


@dataclass
class _Clock:
    """The high part of the time, which is written in few bits and wraps."""

    bits: int
    high: int = -1  # of the last word that had it; -1 before the first
    rounds: int = 0

    def after(self, values: Whole, at: NDArray[np.bool_]) -> Whole:
        """For each word the high part that holds there, with all rounds; -1 before the first that `at` marks."""
        given = values[at]
        before = np.concatenate([[self.high], given[:-1]]) if len(given) else given
        wrapped = (before >= 0) & (before - given > 1 << self.bits - 1)
        rounds = self.rounds + np.cumsum(wrapped)
        known = np.concatenate(
            [[self.high + (self.rounds << self.bits) if self.high >= 0 else -1], given + (rounds << self.bits)]
        )
        if len(given):
            self.high, self.rounds = int(given[-1]), int(rounds[-1])
        return known[np.cumsum(at)]


class _Evt2:
    """32-bit words, of which each event is one: type, low part of the time, x, y."""

    def __init__(self) -> None:
        self.clock = _Clock(EVT2_HIGH_BITS)

    def __call__(self, words: Words) -> Rows:
        words = words.astype(np.int64)
        kind = words >> 28
        high = self.clock.after(words & (1 << EVT2_HIGH_BITS) - 1, kind == EVT2_TIME_HIGH)
        events = np.flatnonzero((kind <= EVT2_ON) & (high >= 0))
        words, high = words[events], high[events]
        t = high << EVT2_LOW_BITS | words >> 22 & (1 << EVT2_LOW_BITS) - 1
        return rows_of(words >> 11 & 0x7FF, words & 0x7FF, t, kind[events] == EVT2_ON)


class _Evt21:
    """64-bit words: as in EVT 2.0, with a mask of the 32 pixels from x on that have the event."""

    def __init__(self, swapped: bool) -> None:
        self.clock = _Clock(EVT2_HIGH_BITS)
        self.swapped = swapped

    def __call__(self, words: Words) -> Rows:
        upper, lower = (words >> 32).astype(np.int64), (words & 0xFFFFFFFF).astype(np.int64)
        word, mask = (lower, upper) if self.swapped else (upper, lower)
        kind = word >> 28
        high = self.clock.after(word & (1 << EVT2_HIGH_BITS) - 1, kind == EVT2_TIME_HIGH)
        events = np.flatnonzero((kind <= EVT2_ON) & (high >= 0))
        which, pixel = np.nonzero(mask[events, None] >> np.arange(MASK_BITS) & 1)
        event = events[which]
        t = high[event] << EVT2_LOW_BITS | word[event] >> 22 & (1 << EVT2_LOW_BITS) - 1
        return rows_of((word[event] >> 11 & 0x7FF) + pixel, word[event] & 0x7FF, t, kind[event] == EVT2_ON)


class _Evt3:
    """16-bit words that change what the next event has; an ADDR_X is an event, and a vector up to twelve."""

    def __init__(self) -> None:
        self.clock = _Clock(EVT3_HIGH_BITS)
        self.last: dict[str, int] = {"high": -1, "row": -1, "low": 0, "base": -1, "passed": 0, "since": 0}

    def __call__(self, words: Words) -> Rows:
        words = words.astype(np.int64)
        kind, content = words >> 12, words & 0xFFF
        is_high = kind == EVT3_HIGH
        high = self.clock.after(content, is_high)
        # A new high part begins with a low part of 0, until a TIME_LOW follows.
        turned = is_high & (np.diff(high, prepend=self.last["high"]) != 0)
        self.last["high"] = int(high[-1])
        low = self._held("low", np.where(turned, 0, content), (kind == EVT3_LOW) | turned)
        row = self._held("row", np.where(kind == EVT3_ROW, content, -1), (kind == EVT3_ROW) | (kind == EVT3_OTHER_ROW))
        base = self._held("base", content, kind == EVT3_BASE)
        length = np.select([kind == EVT3_VECTOR12, kind == EVT3_VECTOR8], [12, 8], 0)
        passed = self.last["passed"] + np.cumsum(length) - length  # pixels of vectors before each word
        since = self._held("since", passed, kind == EVT3_BASE)
        self.last["passed"] = int(passed[-1] + length[-1])

        known = (high >= 0) & (row >= 0)
        single = known & (kind == EVT3_EVENT)
        vector = np.flatnonzero(known & (length > 0) & (base >= 0))
        which, bit = np.nonzero(content[vector, None] >> np.arange(12) & (np.arange(12) < length[vector, None]))
        place = np.concatenate([np.flatnonzero(single), vector[which]])
        x = np.concatenate([content[single] & 0x7FF, ((base & 0x7FF) + passed - since)[vector[which]] + bit])
        on = np.concatenate([content[single] >> 11, base[vector[which]] >> 11])
        order = np.argsort(place, kind="stable")
        place = place[order]
        t = high[place] << EVT3_LOW_BITS | low[place]
        return rows_of(x[order], row[place] & 0x7FF, t, on[order])

    def _held(self, name: str, values: Whole, at: NDArray[np.bool_]) -> Whole:
        """For each word the value of the last word up to it that is marked by `at`."""
        known = np.concatenate([[self.last[name]], values[at]])
        self.last[name] = int(known[-1])
        return known[np.cumsum(at)]


class _Dat:
    """64-bit words, the time in the lower half; x, y and p in the upper one."""

    def __init__(self) -> None:
        self.clock = _Clock(DAT_CLOCK_BITS)

    def __call__(self, words: Words) -> Rows:
        address = (words >> 32).astype(np.int64)
        t = self.clock.after((words & 0xFFFFFFFF).astype(np.int64), np.ones(len(words), np.bool_))
        return rows_of(address & 0x3FFF, address >> 14 & 0x3FFF, t[: len(words)], address >> 28 & 1)

"""What a decoder gives: the size of the frame as far as the file tells it, and the events, block by block.

A block is a structured array with the fields of `ROW`, in the order of the file. Nothing is checked but what the format
itself says: that events lie in the frame and in order of time is the business of `exchange/reading.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError, StorageError

ROW = np.dtype([("x", np.int64), ("y", np.int64), ("t", np.int64), ("p", np.int8)])  # p: 1 ON, 0 OFF; t: microseconds
ROWS_AT_ONCE = 2**18
EVENTS_IN_ANY_FILE, EVENTS_OF_BYTE = 2**23, 16  # at most; a megabyte of nothing but zeros could stand for gigabytes
MOST_UNPACKED = 2**28  # bytes that are unpacked at once
LONGEST_REASON = 200  # characters of what another library says

Rows = NDArray[np.void]


@dataclass
class Damage:
    """What is wrong with a file: an error, or with `repair` a number of events that are left out."""

    path: Path
    repair: bool = False
    dropped: Counter[str] = field(default_factory=Counter)  # what was wrong, and how many events (or bytes) it cost

    def found(self, what: str, count: int, message: str) -> None:
        """`count` things are wrong, which `message` tells; with `repair` they are counted as `what`."""
        if count and not self.repair:
            raise StorageError(f"{self.path}: {message}; repair=True leaves it out and counts it")
        self.dropped[what] += count


@dataclass(frozen=True)
class Opened:
    """A file of events."""

    format: str
    size: tuple[int, int] | None  # width and height, if the file tells them
    blocks: Iterator[Rows]


def most_events(size: int) -> int:
    """How many events a file of so many bytes may hold: more than any camera could put into it."""
    return EVENTS_IN_ANY_FILE + EVENTS_OF_BYTE * size


@contextmanager
def read_by_others(path: Path, kind: str) -> Iterator[None]:
    """What another library raises of a damaged file, which can be of any type, is an error of ours."""
    try:
        yield
    except GerdError:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [repr(error)]
        raise StorageError(f"{path}: cannot be read as {kind}: {lines[0][:LONGEST_REASON]}") from None


def rows_of(x: NDArray[np.generic], y: NDArray[np.generic], t: NDArray[np.generic], p: NDArray[np.generic]) -> Rows:
    """A block from arrays of whole numbers."""
    result = np.empty(len(t), ROW)
    result["x"], result["y"], result["t"], result["p"] = x, y, t, p
    return result

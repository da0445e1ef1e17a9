"""Files of events of any origin: a path in, `Events` out, as a whole or window by window.

What format a file has is seen in its first bytes, whatever its name. A decoder of `decoders/` gives the events block
by block, and here they are looked at: whether they lie in the frame and come in order of time. What is wrong is an
error, or with `repair` it is left out and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypedDict, Unpack

import numpy as np

from gerd.calls import explained
from gerd.errors import GerdError, StorageError, check_whole, shorten
from gerd.exchange.decoders import aedat, arrays, event_stream, hdf5, parquet, prophesee, text
from gerd.exchange.decoders.opened import ROW, Damage, Opened, Rows, most_events
from gerd.files import open_regular
from gerd.recording.events import LARGEST_SIDE, STEP_US, Events

START = 4096  # bytes in which a format is seen
KNOWN = "EVT 2.0, 2.1 and 3.0, DAT 2, AEDAT 4, ES, HDF5, npy, npz, Parquet of gerd export, and text"
FOREIGN = {  # what is known and not read, by its first bytes
    b"#!AER-DAT": "is an AEDAT file of an older version than 4; dv-processing and aedat-tools convert it",
    b"#ROSBAG": "is a ROS bag; its events have to be written as text, npz or HDF5 first",
}


class ReadOptions(TypedDict, total=False):
    """How a file of events is read: what `read_events` and `event_windows` take by name.

    size: width and height of the frame, for files that do not tell them.
    step_us: how long a step of frames, windows and pictures is, in microseconds. Default 1000.
    start_us, stop_us: read the events from the one time of the file up to the other.
    repair: leave out what is damaged, outside of the frame, or earlier than an event before it; `dropped` of the result
        says how much. Otherwise that is an error.
    columns: the order of the columns of text without a header, such as "xypt".
    row: which recording of a Parquet file.
    """

    size: tuple[int, int] | None
    step_us: int
    start_us: int | None
    stop_us: int | None
    repair: bool
    columns: str | None
    row: int | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReadEvents(Events):
    """Events of a file. Their times are those of the file, and `first` is the step of the first of them."""

    format: str
    dropped: Mapping[str, int] = field(default_factory=dict)  # by `repair`: what was wrong, and how much it has cost


@explained
def read_events(path: str | os.PathLike[str], **options: Unpack[ReadOptions]) -> ReadEvents:
    """Return the events in a file: EVT 2.0, 2.1 and 3.0, DAT 2, AEDAT 4, ES, HDF5, npy, npz, Parquet, text.

    options: see `ReadOptions`. Steps are counted from `start_us`, by default from the step of the first event, and
        reach up to `stop_us`, by default to the last event.
    """
    with _reading(Path(path), options) as file:
        parts = list(file.blocks)
        begin, stop = options.get("start_us"), options.get("stop_us")
        if begin is None:
            begin = int(parts[0]["t"][0]) if parts else 0
        return file.events(parts, -(-begin // file.step_us), None if stop is None else stop - 1)


@explained
def event_windows(path: str | os.PathLike[str], steps: int, **options: Unpack[ReadOptions]) -> Iterator[ReadEvents]:
    """Yield the events in a file in windows of `steps` steps, in memory that does not grow with the length of the file.

    The windows begin at `start_us`, by default with the step of the first event. Windows without events are left out.
    `dropped` of a window counts what `repair` has left out from the beginning up to its end.
    """
    check_whole("steps", steps, 1)
    with _reading(Path(path), options) as file:
        start = options.get("start_us")
        first = None if start is None else -(-start // file.step_us)
        parts: list[Rows] = []
        for block in file.blocks:
            while len(block):
                step = -(-int(block["t"][0]) // file.step_us)
                if first is None:
                    first = step
                if step >= first + steps:
                    if parts:
                        yield file.events(parts, first, (first + steps - 1) * file.step_us)
                    parts = []
                    first += (step - first) // steps * steps
                cut = int(np.searchsorted(block["t"], (first + steps - 1) * file.step_us, side="right"))
                parts.append(block[:cut])
                block = block[cut:]
        if first is not None and parts:
            yield file.events(parts, first, (first + steps - 1) * file.step_us)


def is_event_file(path: Path) -> bool:
    """Whether a file begins like one of events, even if `read_events` does not read it and only says why."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            start = file.read(START)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False
    return _format(start) is not None or any(start.startswith(first) for first in FOREIGN)


@dataclass(frozen=True)
class _File:
    """A file of events that is being read, block by block; its blocks are checked."""

    path: Path
    format: str
    width: int
    height: int
    step_us: int
    blocks: Iterator[Rows]
    damage: Damage

    def events(self, parts: list[Rows], first: int, last: int | None) -> ReadEvents:
        """Some blocks as events, whose steps are counted from `first` and reach up to the time `last`."""
        rows = np.concatenate(parts) if parts else np.empty(0, ROW)
        size = {"width": self.width, "height": self.height, "step_us": self.step_us}
        made = Events.from_array(rows, **size, first=first, duration=last, title=self.path.name)
        return ReadEvents(**vars(made), format=self.format, dropped=dict(+self.damage.dropped))


@contextmanager
def _reading(path: Path, options: ReadOptions) -> Iterator[_File]:
    start, stop = options.get("start_us"), options.get("stop_us")
    step_us = options.get("step_us", STEP_US)
    check_whole(f"{path}: step_us", step_us, 1)
    if start is not None:
        check_whole(f"{path}: start_us", start, 0)
    if stop is not None:
        check_whole(f"{path}: stop_us", stop, (start or 0) + 1)
    damage = Damage(path, options.get("repair", False))
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            opened = _opened(file, damage, options)
            width, height = _size(path, opened.size, options.get("size"))
            blocks = _bounded(opened.blocks, path, os.fstat(file.fileno()).st_size)
            blocks = _between(_checked(blocks, damage, width, height), start, stop)
            yield _File(path, opened.format, width, height, step_us, blocks, damage)
    except FileNotFoundError:
        raise StorageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None


def _format(start: bytes) -> str | None:
    """The kind of decoder for a file that begins like this."""
    magic = {
        prophesee.MAGIC: "prophesee",
        aedat.MAGIC: "aedat",
        event_stream.MAGIC: "es",
        hdf5.MAGIC: "hdf5",
        arrays.NPY: "numpy",
        arrays.ZIP: "numpy",
        parquet.MAGIC: "parquet",
    }
    found = next((kind for first, kind in magic.items() if start.startswith(first)), None)
    return "text" if found is None and text.looks_like_events(start) else found


def _opened(file: IO[bytes], damage: Damage, options: ReadOptions) -> Opened:
    start = file.read(START)
    file.seek(0)
    match _format(start):
        case "prophesee":
            return prophesee.open_file(file, damage)
        case "aedat":
            return aedat.open_file(file, damage)
        case "es":
            return event_stream.open_file(damage)
        case "hdf5":
            return hdf5.open_file(file, damage)
        case "numpy":
            return arrays.open_file(file, damage)
        case "parquet":
            return parquet.open_file(file, damage, options.get("row"))
        case "text":
            return text.open_file(file, damage, options.get("columns"))
        case _:
            raise _refusal(damage.path, start)


def _refusal(path: Path, start: bytes) -> StorageError:
    """Why a file with this beginning is not read."""
    if not start:
        return StorageError(f"{path}: is empty; allowed: {KNOWN}")
    for first, why in FOREIGN.items():
        if start.startswith(first):
            return StorageError(f"{path}: {why}")
    return StorageError(f"{path}: begins with {shorten(start[:16])}, as no file of events does; allowed: {KNOWN}")


def _size(path: Path, told: tuple[int, int] | None, given: tuple[int, int] | None) -> tuple[int, int]:
    """The size of the frame."""
    size = given if given is not None else told
    if size is None:
        raise GerdError(
            f"{path}: does not contain the size of its frame; allowed: size=(width, height), or --read size=WxH"
        )
    if not (isinstance(size, tuple | list) and len(size) == 2):
        raise GerdError(f"{path}: size {shorten(size)}: allowed: (width, height)")
    for name, value in zip(("width", "height"), size, strict=True):
        check_whole(f"{path}: {name}", value, 1, LARGEST_SIDE)
    return size[0], size[1]


def _bounded(blocks: Iterator[Rows], path: Path, size: int) -> Iterator[Rows]:
    """The blocks, as long as they have no more events than a file of so many bytes can hold."""
    read = 0
    most = most_events(size)
    for block in blocks:
        read += len(block)
        if read > most:
            raise StorageError(f"{path}: has more than {most} events in {size} bytes, which no camera can")
        yield block


def _checked(blocks: Iterator[Rows], damage: Damage, width: int, height: int) -> Iterator[Rows]:
    """The blocks without events outside of the frame, or earlier than one before them: see `Damage`."""
    latest = read = 0
    for block in blocks:
        x, y, t = block["x"], block["y"], block["t"]
        outside = (x < 0) | (x >= width) | (y < 0) | (y >= height)
        negative = ~outside & (t < 0)
        sound = ~(outside | negative)
        before = np.maximum.accumulate(np.concatenate([[latest], np.where(sound, t, 0)]))[:-1]
        late = sound & (t < before)
        kinds = (
            (outside, "events outside of the frame", f"outside of a frame of {width}×{height} pixels"),
            (negative, "events before time 0", "before time 0"),
            (late, "events out of order", "earlier than an event before it"),
        )
        found = [(int(bad.argmax()), int(bad.sum()), what, why) for bad, what, why in kinds if bad.any()]
        for first, count, what, why in sorted(found):
            place = f"event {read + first} at x {x[first]}, y {y[first]}, t {t[first]} µs"
            damage.found(what, count, f"{place} is {why}")
        read += len(block)
        kept = block[sound & ~late] if found else block
        if len(kept):
            latest = int(kept["t"][-1])
            yield kept


def _between(blocks: Iterator[Rows], start: int | None, stop: int | None) -> Iterator[Rows]:
    """The events from `start` up to `stop`; the rest of the file is not read."""
    for block in blocks:
        low, high = np.searchsorted(block["t"], [start or 0, 2**63 - 1 if stop is None else stop])
        if high > low:
            yield block[low:high]
        if high < len(block):
            return

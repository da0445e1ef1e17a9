"""Events to one file in a format that other tools read.

In: `Events`, or a structured array with the fields x, y, t (microseconds) and p (1 ON, 0 OFF) and the sensor's width
and height.
Formats with room for them take the causes of events, too: the fields actor, vx, vy (pixels per step), echo, source and
fired_us (microseconds).
Out: a file that is whole and checked, or none. x counts to the right and y down in every format.

Events are sorted by time, and what a format cannot hold is refused before anything is written. `prophesee.py` writes
EVT2, EVT3 and DAT. AEDAT4 and ES are written by faery and read back: faery 0.7.1 turns y of ES files upside down, by
default stores a time origin that only faery itself honours, and says nothing if the last bytes do not fit on the disk.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gerd.calls import explained
from gerd.errors import GerdError, StorageError, check_whole
from gerd.events.shared import SOURCE_NAMES
from gerd.exchange import prophesee
from gerd.exchange.packages import package
from gerd.exchange.reading import read_events
from gerd.recording.events import EVENT_DTYPE, Events, Structured, check_fields, check_flags, check_range
from gerd.recording.recording import CAUSE_FIELDS
from gerd.storage.whole import written_whole

Rows = Structured  # with the fields of EVENT_DTYPE, and perhaps those of CAUSE_FIELDS
CAUSES = tuple(name for name, _ in CAUSE_FIELDS)


@dataclass(frozen=True)
class Format:
    """How to write one kind of file, and what it can hold."""

    suffix: str
    about: str
    write: Callable[..., None]  # path, events, width, height; and, if it says where a recording ends, its duration
    package: str | None = None  # that writes it
    read: Callable[[Path, int, int], Rows] | None = None  # to compare the file with the events
    side: int = 2**15  # pixels: the largest width and height
    until: int = 2**63  # microseconds: times are below
    has_end: bool = False  # whether the file says where the recording ends
    has_causes: bool = False  # whether it has room for the causes of events


@explained
def write_events(
    path: str | Path,
    events: Events | Rows,
    *,
    format: str,
    width: int | None = None,
    height: int | None = None,
    duration: int | None = None,
) -> None:
    """Write `events` to a new file at `path`; `format` is one of FORMATS.

    events: `Events`, such as a recording, whose frame and duration are known; or a structured array with the fields x,
        y, t (microseconds) and p (1 ON, 0 OFF), on a frame of `width` by `height` pixels.
    duration: how long the recording lasts in microseconds, for formats that say so. Default: until the last event.
    """
    path = Path(path)
    chosen = format_named(format)
    if isinstance(events, Events):
        if (width, height, duration) != (None, None, None):
            raise GerdError(f"{path}: width, height and duration go with an array; {events!r} has its own")
        width = events.width
        height = events.height
        duration = (events.first + events.steps) * events.step_us
        events = events.events
    for name, value in (("width", width), ("height", height)):
        check_whole(f"{path}: {name}", value, 1)
    assert width is not None
    assert height is not None
    if duration is not None:
        check_whole(f"{path}: duration", duration, 0)
    _check_causes(path, events)
    events = _checked(path, events, width, height, format, chosen)
    shortest = int(events["t"][-1]) + 1 if len(events) else 0
    if duration is not None and duration < shortest:
        raise GerdError(f"{path}: duration {duration} µs: the last event is at {shortest - 1} µs")
    end = {"duration": shortest if duration is None else duration} if chosen.has_end else {}
    if path.exists():
        raise StorageError(f"{path}: exists already; give another name")
    with written_whole(path) as temporary:
        chosen.write(temporary, events, width, height, **end)
        if not _reads_back(chosen, temporary, events, width, height):
            reason = "did not read back as it was written, so it was not kept"
            advice = "the disk may be full; if it is not, use evt2"
            raise GerdError(f"{path}: the {format} file {reason}: {advice}")


def _reads_back(chosen: Format, path: Path, events: Rows, width: int, height: int) -> bool:
    """Whether a file that was just written has its end and holds the events, if its format can be read."""
    try:
        return chosen.read is None or np.array_equal(chosen.read(path, width, height), events)
    except GerdError:
        return False


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise GerdError(f"format {name!r}: allowed: {', '.join(FORMATS)}")
    return FORMATS[name]


def format_of(path: Path) -> str:
    """The format that the name of a file suggests: the first that ends like it."""
    found = next((name for name, each in FORMATS.items() if each.suffix == path.suffix.lower()), None)
    if found is None:
        endings = ", ".join(dict.fromkeys(each.suffix for each in FORMATS.values()))
        raise GerdError(f"{path}: allowed: a name that ends with {endings}; or --format")
    return found


def check_installed(format: str) -> None:
    """A clear error if the package that writes `format` is missing."""
    needed = "pyarrow" if format == "parquet" else format_named(format).package
    if needed is not None:
        package(needed)


def _check_causes(path: Path, events: Rows) -> None:
    """An error unless the fields of events and of their causes have numbers of the kinds that they stand for."""
    check_fields(str(path), events)
    for name in CAUSES:
        kind = events.dtype[name] if name in (events.dtype.names or ()) else None
        if kind is None:
            continue
        if name in ("actor", "source", "fired_us") and kind.kind not in "iu":
            raise GerdError(f"{path}: {name} of the events is {kind}; allowed: a type of whole numbers")
        if name in ("vx", "vy") and kind.kind not in "iuf":
            raise GerdError(f"{path}: {name} of the events is {kind}; allowed: a type of real numbers")
        if name == "echo":
            check_flags(str(path), events, name)


def _checked(path: Path, events: Rows, width: int, height: int, name: str, chosen: Format) -> Rows:
    """The events in order of time, if the format can hold them."""
    if max(width, height) > chosen.side:
        raise GerdError(f"{path}: {name} holds frames of up to {chosen.side}×{chosen.side}, not {width}×{height}")
    bounds = {"x": (0, width), "y": (0, height), "actor": (-1, 2**15), "source": (0, len(SOURCE_NAMES))}
    for field in bounds.keys() & set(events.dtype.names or ()):
        check_range(str(path), events, field, *bounds[field])
    t = events["t"]
    if len(t) and not 0 <= t.min() <= t.max() < chosen.until:
        spread = f"{t.min()} to {t.max()}"
        raise GerdError(f"{path}: times of the events are {spread} µs; {name} holds 0 to {chosen.until - 1}")
    causes = [(field, kind) for field, kind in CAUSE_FIELDS if field in (events.dtype.names or ())]
    if causes and not chosen.has_causes:
        raise GerdError(f"{path}: {name} has no room for the causes of events; allowed: {', '.join(WITH_CAUSES)}")
    result = np.empty(len(events), [*EVENT_DTYPE.descr, *causes])
    for field in result.dtype.names or ():
        result[field] = events[field]
    return result if (t[1:] >= t[:-1]).all() else result[np.argsort(t, kind="stable")]


def _write_faery(path: Path, events: Rows, width: int, height: int, *, kind: str) -> None:
    library = package("faery")
    theirs = np.empty(len(events), library.EVENTS_DTYPE)
    theirs["t"], theirs["x"], theirs["on"] = events["t"], events["x"], events["p"]
    theirs["y"] = height - 1 - events["y"] if kind == "es" else events["y"]  # faery turns it back
    try:
        library.file_encoder.events_to_file(
            [theirs], path, dimensions=(width, height), zero_t0=False, file_type=kind, use_write_suffix=False
        )
    except (RuntimeError, ValueError) as error:  # faery's, such as a full disk
        raise GerdError(f"{path}: faery cannot write it: {error}") from None


def _read_back(path: Path, width: int, height: int) -> Rows:
    return read_events(path, size=(width, height)).events


def _faery(suffix: str, about: str, kind: str) -> Format:
    return Format(suffix, about, partial(_write_faery, kind=kind), "faery", _read_back)


def _prophesee(suffix: str, about: str, encoded: Callable[[Rows, int, int], bytes], side: int, until: int) -> Format:
    def write(path: Path, events: Rows, width: int, height: int) -> None:
        path.write_bytes(encoded(events, width, height))

    return Format(suffix, about, write, side=side, until=until)


def _write_dsec(path: Path, events: Rows, width: int, height: int, duration: int) -> None:
    """`ms_to_idx[m]` is the first event at or after m milliseconds; the last m is the recording's end, rounded up."""
    h5py = package("h5py")
    milliseconds = np.arange(-(-duration // 1000) + 1) * 1000
    content = io.BytesIO()  # h5py does not survive a full disk
    with h5py.File(content, "w") as file:
        for field, kind in (("p", "u1"), ("x", "u2"), ("y", "u2"), ("t", "u4")):
            file.create_dataset(f"events/{field}", data=events[field].astype(kind), compression="gzip")
        file["ms_to_idx"] = np.searchsorted(events["t"], milliseconds).astype(np.uint64)
        file["t_offset"] = np.int64(0)
        file.attrs.update(width=width, height=height)
    path.write_bytes(content.getbuffer())


def _write_hdf5(path: Path, events: Rows, width: int, height: int) -> None:
    h5py = package("h5py")
    plain = np.dtype([(field, _of_hdf5(events.dtype[field])) for field in events.dtype.names or ()])
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        stored = file.create_dataset("events", data=events.astype(plain), compression="gzip")
        stored.attrs.update(width=width, height=height, unit_of_t="microseconds", p="1 ON, 0 OFF")
    path.write_bytes(content.getbuffer())


def _of_hdf5(kind: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The type of a field in a file: flags as bytes, and numbers as they are, little-endian."""
    return np.dtype(np.uint8) if kind == np.bool_ else kind.newbyteorder("<")


def _write_npz(path: Path, events: Rows, width: int, height: int) -> None:
    with open(path, "wb") as file:
        fields: dict[str, Any] = {field: events[field] for field in events.dtype.names or ()}
        np.savez_compressed(file, **fields, width=np.int64(width), height=np.int64(height))


def csv_lines(events: Rows) -> bytes:
    """A line t,x,y,p for each event."""
    rows = zip(*(events[field].tolist() for field in "txyp"), strict=True)
    return "".join([f"{t},{x},{y},{p:d}\n" for t, x, y, p in rows]).encode()


CSV_HEADER = b"t,x,y,p\n"


def _write_csv(path: Path, events: Rows, width: int, height: int) -> None:  # noqa: ARG001
    causes = [field for field in CAUSES if field in (events.dtype.names or ())]
    if not causes:
        path.write_bytes(CSV_HEADER + csv_lines(events))
        return
    names = ["t", "x", "y", "p", *causes]
    columns = [events[field].astype(int) if events[field].dtype == np.bool_ else events[field] for field in names]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    path.write_text("".join([",".join(map(str, row)) + "\n" for row in [names, *rows]]), "ascii")


def _write_rpg(path: Path, events: Rows, width: int, height: int) -> None:  # noqa: ARG001
    rows = zip(*(events[field].tolist() for field in "txyp"), strict=True)
    lines = [f"{t // 1_000_000}.{t % 1_000_000:06d} {x} {y} {p:d}\n" for t, x, y, p in rows]
    path.write_text("".join(lines), "ascii")


FORMATS = {
    "evt2": _prophesee(".raw", "Prophesee RAW, EVT 2.0", prophesee.evt2, side=2048, until=2**34),
    "aedat4": _faery(".aedat4", "iniVation AEDAT 4 (lz4)", "aedat"),
    "evt3": _prophesee(".raw", "Prophesee RAW, EVT 3.0", prophesee.evt3, side=2048, until=2**34),
    "dat": _prophesee(".dat", "Prophesee DAT 2", prophesee.dat, side=16384, until=2**32),
    "es": _faery(".es", "Event Stream 2", "es"),
    "hdf5-dsec": Format(".h5", "HDF5 as in DSEC", _write_dsec, "h5py", until=2**32, has_end=True),
    "hdf5": Format(".h5", "HDF5, one table", _write_hdf5, "h5py", has_causes=True),
    "rpg": Format(".txt", "text: seconds x y p", _write_rpg),
    "csv": Format(".csv", "text: t,x,y,p with a header", _write_csv, has_causes=True),
    "npz": Format(".npz", "NumPy arrays x, y, t, p", _write_npz, has_causes=True),
}
WITH_CAUSES = (*(name for name, chosen in FORMATS.items() if chosen.has_causes), "parquet")

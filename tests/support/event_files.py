"""Files of events of all formats that `read_events` knows: sound ones, and what comes of damaged copies of them.

What a sound one holds is `drawn()`; `SIZED` are the formats that tell the size of the frame.
"""

from __future__ import annotations

import io
import random
import resource
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet

import gerd
from gerd.recording.events import EVENT_DTYPE
from support.damage import damaged
from support.forked import Outcome

WIDTH, HEIGHT = 40, 30
COUNT = 300
UNTIL = 400_000  # microseconds
WRITTEN = ("evt2", "evt3", "dat", "aedat4", "es", "hdf5", "csv", "npz", "rpg")  # by write_events
WITH_CHECKSUM = ("npz", "npz, compressed", "HDF5 with checksums")  # what is read of them is what was written
MOST = 2**30  # bytes that may be needed for a file of some kilobytes
BYTES = 1024 if sys.platform == "linux" else 1  # of the unit in which the system counts memory


def drawn(count: int = COUNT, seed: int = 0, until: int = UNTIL) -> np.ndarray:
    """Events in order of time, and of those at the same time in the order of pixels."""
    chance = np.random.default_rng(seed)
    result = np.zeros(count, EVENT_DTYPE)
    for name, size in (("t", until), ("x", WIDTH), ("y", HEIGHT), ("p", 2)):
        result[name] = chance.integers(0, size, count)
    return result[np.lexsort((result["p"], result["x"], result["y"], result["t"]))]


@cache
def sound() -> dict[str, bytes]:
    """A file of each format, of ours and of others."""
    events, result = drawn(), {}
    with TemporaryDirectory() as folder:
        for format in WRITTEN:
            path = Path(folder) / format
            gerd.write_events(path, events, width=WIDTH, height=HEIGHT, format=format)
            result[format] = path.read_bytes()
    columns = {name: events[name] for name in "txyp"}
    return {
        **result,
        "EVT 2.1": evt21(events),
        "npy": saved(np.save, events),
        "npz, compressed": saved(np.savez_compressed, events=events),
        "HDF5 of DSEC": hdf5({f"events/{name}": column for name, column in columns.items()}, t_offset=0),
        "HDF5 table": hdf5({"table": events}, chunks=(100,), compression="gzip"),
        "HDF5 with checksums": hdf5(columns, libver="latest", chunks=(100,), fletcher32=True),
        "Parquet": parquet(columns),
        "text in seconds": "".join(f"{t / 1e6:.6f} {x} {y} {p:d}\n" for x, y, t, p in events.tolist()).encode(),
    }


def evt21(events: np.ndarray) -> bytes:
    """A word for each event, and one for the time before it."""
    words = []
    for x, y, t, p in events.tolist():
        words.append((0x8 << 28 | t >> 6) << 32)
        words.append(((p << 28 | (t & 63) << 22 | (x & ~31) << 11 | y) << 32) | 1 << (x & 31))
    return (
        f"% evt 2.1\n% format EVT21;height={HEIGHT};width={WIDTH}\n% end\n".encode() + np.array(words, "<u8").tobytes()
    )


def saved(save: Callable[..., None], *arrays: np.ndarray, **named: np.ndarray) -> bytes:
    made = io.BytesIO()
    save(made, *arrays, **named)
    return made.getvalue()


def hdf5(columns: dict[str, Any], t_offset: int | None = None, libver: str = "earliest", **options: Any) -> bytes:
    made = io.BytesIO()
    with h5py.File(made, "w", libver=libver) as file:
        for name, column in columns.items():
            file.create_dataset(name, data=column, **options)
        if t_offset is not None:
            file["t_offset"] = t_offset
    return made.getvalue()


def parquet(columns: dict[str, np.ndarray]) -> bytes:
    made = pyarrow.BufferOutputStream()
    lists = {name: [column.astype(np.int32)] for name, column in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table({"width": [WIDTH], "height": [HEIGHT], **lists}), made)
    return bytes(made.getvalue())


def try_file(folder: Path, chance: random.Random, kinds: tuple[str, ...] = ()) -> Outcome:
    """Read a damaged copy of a file: as a whole or in windows, with `repair` or without."""
    files = sound()
    kind = chance.choice(kinds or tuple(files))
    data = damaged(chance, files[kind])
    path = folder / "events"
    path.write_bytes(data)
    repair, before = chance.random() < 0.5, needed()
    size = chance.choice([(WIDTH, HEIGHT), None]) if kind in SIZED else (WIDTH, HEIGHT)
    try:
        if chance.random() < 0.3:
            parts = list(gerd.event_windows(path, 50, size=size, repair=repair))
        else:
            parts = [gerd.read_events(path, size=size, repair=repair)]
    except gerd.GerdError:
        return "refused" if needed() - before < MOST else "greedy"
    if needed() - before >= MOST:
        return "greedy"
    rows = np.concatenate([part.events for part in parts] or [drawn(0)])
    width, height = size or (2**15, 2**15)
    assert (rows["t"][1:] >= rows["t"][:-1]).all(), "events are out of order"
    assert ((rows["x"] >= 0) & (rows["x"] < width) & (rows["y"] >= 0) & (rows["y"] < height)).all(), "outside"
    if kind in WITH_CHECKSUM:
        assert np.array_equal(rows, drawn()), "events are wrong, in spite of a checksum"
    return "read"


SIZED = ("evt2", "evt3", "EVT 2.1", "dat", "aedat4", "es", "Parquet")


def needed() -> int:
    """Bytes of memory that this process has needed at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES

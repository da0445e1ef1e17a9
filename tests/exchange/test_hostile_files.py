"""Files of events that are damaged, or made to do harm: they give events or an error of ours, in bounded memory."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from support import event_files
from support.forked import FAULTS, in_processes

import gerd

SIZE = (9, 9)
ROWS = {name: np.ones(4, np.int64) for name in "txyp"}
FIELDS = [(name, "<i8") for name in "txyp"]


@pytest.mark.parametrize("copies", [12, pytest.param(10_000, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("kind", event_files.sound())
def test_damaged_copies_are_read_or_refused(kind: str, copies: int, tmp_path: Path) -> None:
    outcomes = in_processes(kind, partial(event_files.try_file, tmp_path, kinds=(kind,)), copies, seed=0)
    assert sum(outcomes.values()) == copies
    assert not outcomes.keys() & set(FAULTS), outcomes


@pytest.mark.parametrize("kind", event_files.sound())
def test_their_originals_are_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "events").write_bytes(event_files.sound()[kind])
    size = None if kind in event_files.SIZED else (event_files.WIDTH, event_files.HEIGHT)
    assert np.array_equal(gerd.read_events(tmp_path / "events", size=size).events, event_files.drawn())


def refused(path: Path, message: str, **options: Any) -> None:
    """Neither read as a whole nor in windows."""
    with pytest.raises(gerd.GerdError, match=f"{path.name}:.*{message}"):
        gerd.read_events(path, **{"size": SIZE, **options})
    with pytest.raises(gerd.GerdError, match=f"{path.name}:.*{message}"):
        list(gerd.event_windows(path, 10, **{"size": SIZE, **options}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"t,x,y,p\n1180591620717411303424,1,1,1\n", "line 2: '1180591620717411303424,1,1,1': allowed: four numbers"),
        (b"t,x,y,p\n1_0,1,1,1\n", "line 2: '1_0,1,1,1': allowed: four numbers"),
        (b"t,x,y,p\n1,1,1,1," + b"7" * 5000, r"line 2: '\(1000 bytes or more\)'"),
        (b"t,x,y,p\n1,1,1,1\n" + b"\0" * 5000, r"line 3: '\(1000 bytes or more\)'"),
        (b"0.5 1 2 1\n1e300 1 1 1\n", "t of an event is .*; allowed: whole numbers of at most 62 bits"),
        (b"t,x,y,p\n4611686018427387904,1,1,1\n", "t of an event is 4611686018427387904"),
        (b"t,x,y,p\n1,-9223372036854775808,1,1\n", "x of an event is -9223372036854775808"),
        (b"% evt 2.0\n% geometry " + b"9" * 5000 + b"x9\n% end\n", "does not contain the size of its frame"),
        (b"% evt 2.0\n" + b"% a b\n" * 20_000, "its header has more than 65536 bytes"),
    ],
)
def test_numbers_and_lines_without_an_end(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(content)
    refused(path, message, **({"size": None} if content.startswith(b"%") else {}))


def test_a_long_line_is_one_line(tmp_path: Path) -> None:
    """None of its pieces is taken for an event, nor is a piece of a comment."""
    path = tmp_path / "events"
    path.write_bytes(
        b"#" + b" " * 999 + b"1,1,1,1\nt,x,y,p\n2,3,4,1\n#" + b"2," * 3000 + b"\n9" + b",9" * 3000 + b"\n5,5,5,0"
    )
    with pytest.raises(gerd.StorageError, match=r"line 5: '\(1000 bytes or more\)'"):
        gerd.read_events(path, size=SIZE)
    events = gerd.read_events(path, size=SIZE, repair=True)
    assert events.events.tolist() == [(3, 4, 2, True), (5, 5, 5, False)]
    assert events.dropped == {"lines": 1}


Content = dict[str, Any]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({**ROWS, "t": np.array(list("1234"))}, "its column t has the type <U1; allowed: real numbers"),
        ({**ROWS, "x": np.ones(4, complex)}, "its column x has the type complex128"),
        ({**ROWS, "t": np.ones(4, "M8[us]")}, r"its column t has the type datetime64\[us\]"),
        ({**ROWS, "t": np.array([{}] * 4)}, "cannot be read as an array of numpy: Object arrays cannot be loaded"),
        ({"events": np.zeros(4, [("t", "V8"), *FIELDS[1:]])}, r"its column t has the type \|V8"),
        ({**ROWS, "t": np.ones((4, 2))}, "its columns have the shapes"),
        ({**ROWS, "width": np.nan, "height": "a"}, "does not contain the size of its frame"),
    ],
)
def test_arrays_of_anything_else(arrays: Content, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    refused(tmp_path / "a.npz", message, **({"size": None} if "width" in arrays else {}))


def test_an_array_that_says_that_it_is_shorter(tmp_path: Path) -> None:
    """What is not read has no part in the checksum of a zip file, unless the file is read to its end."""
    np.savez(tmp_path / "a.npz", events=np.zeros(60, FIELDS))
    data = (tmp_path / "a.npz").read_bytes()
    assert data.count(b"(60,)") == 1
    (tmp_path / "a.npz").write_bytes(data.replace(b"(60,)", b"(20,)"))
    refused(tmp_path / "a.npz", "cannot be read as an array of numpy")
    np.save(tmp_path / "a.npy", np.zeros(60, FIELDS))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes().replace(b"(60,)", b"(20,)"))
    refused(tmp_path / "a.npy", "something follows the array")


def header(count: int, dtype: Any = "<i8") -> bytes:
    """Of a .npy file that has so many numbers, as it says."""
    about = {"descr": dtype, "fortran_order": False, "shape": (count,)}
    return b"\x93NUMPY\x01\x00\xf6\x00" + repr(about).ljust(245).encode() + b"\n"


def zipped(path: Path) -> None:
    """An array of two gigabytes, as its directory says."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("events.npy", header(2**26, FIELDS) + bytes(10**6))
        file.filelist[0].file_size = 2**31


def empty_hdf5(path: Path) -> None:
    """A hundred billion rows, none of which is written."""
    with h5py.File(path, "w") as file:
        for name in "txyp":
            file.create_dataset(name, (10**11,), "i8", chunks=(2**16,))


def one_part_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name in "txyp":
            file.create_dataset(name, (3 * 10**9,), "u1", chunks=(3 * 10**9,), fillvalue=1)


def many_groups(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for number in range(1100):
            file.create_group(str(number))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (zipped, "unpacks to 2147483648 bytes; allowed for a file of its size: up to"),
        (lambda path: path.write_bytes(header(10**11) + bytes(99)), "cannot be read as an array of numpy"),
        (empty_hdf5, "has more than 84[0-9]{5} events in [0-9]{4} bytes, which no camera can"),
        (one_part_hdf5, "t is kept in parts of 3000000000 bytes; allowed: up to 268435456"),
        (many_groups, "has no events among its first 1000 groups and data sets"),
    ],
)
def test_small_files_that_stand_for_much(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    make(tmp_path / "events")
    refused(tmp_path / "events", message)


def elsewhere(file: Any, folder: Path, how: str) -> None:
    """Rows of events whose times are in another file, or nowhere."""
    other = folder / "other"
    for name in "xyp":
        file[name] = ROWS[name]
    if how == "storage":
        other.write_bytes(struct.pack("<4q", 1, 2, 3, 4))
        file.create_dataset("t", (4,), "i8", external=[(str(other), 0, 32)])
    elif how == "pipe":
        os.mkfifo(other)
        file.create_dataset("t", (4,), "i8", external=[(str(other), 0, 32)])
    elif how == "loop":
        file["t"] = h5py.SoftLink("/t")
    else:
        with h5py.File(other, "w") as target:
            target["t"] = ROWS["t"]
        if how == "link":
            file["t"] = h5py.ExternalLink(str(other), "t")
        else:
            layout = h5py.VirtualLayout((4,), "i8")
            layout[:] = h5py.VirtualSource(str(other), "t", (4,))
            file.create_virtual_dataset("t", layout)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("storage", "t has its values elsewhere"),
        ("pipe", "t has its values elsewhere"),
        ("virtual", "t has its values elsewhere"),
        ("link", "t is a link"),
        ("loop", "t is a link"),
    ],
)
def test_hdf5_opens_no_other_file(how: str, message: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        elsewhere(file, tmp_path, how)
    refused(tmp_path / "a.h5", f"{message}.*; allowed: a data set in the file itself")


HUGE = np.uint64(2**64 - 1)


@pytest.mark.parametrize(
    ("content", "attributes", "message"),
    [
        ({**ROWS, "t_offset": np.inf}, {}, "t_offset: allowed: a whole number"),
        ({**ROWS, "t_offset": HUGE}, {}, "t_offset: allowed: a whole number"),
        ({**ROWS, "t_offset": "abc"}, {}, "t_offset: allowed: a whole number"),
        ({**ROWS, "t": np.full(4, -(2**63)), "t_offset": -1}, {}, "t of an event is -9223372036854775808"),
        ({**ROWS, "t": h5py.Empty("i4")}, {}, "its columns have the shapes"),
        ({**dict.fromkeys("txyp", 3)}, {}, "its columns have the shapes"),
        ({**ROWS, "t": ["a"] * 4}, {}, "its column t has the type object"),
        ({"a": np.zeros((2, 3), FIELDS)}, {}, "its table of events has the shape"),
        ({"a": np.zeros((), FIELDS)}, {}, "its table of events has the shape"),
        ({"a": np.dtype(FIELDS)}, {}, "has no group with t, x, y and p"),
        (ROWS, {"width": "x", "height": h5py.Empty("i4")}, "does not contain the size"),
        (ROWS, {"sensor_resolution": 5}, "does not contain the size"),
        (ROWS, {"width": [1, 2], "height": np.nan}, "does not contain the size"),
    ],
)
def test_hdf5_of_anything_else(content: Content, attributes: Content, message: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, value in content.items():
            file[name] = value
        file.attrs.update(attributes)
    refused(tmp_path / "a.h5", message, **({"size": None} if attributes else {}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"t": [[None]]}, "its column t has the type object"),
        ({"t": [1]}, "its column t has int64, or nothing; allowed: lists of numbers"),
        ({"t": pyarrow.array([None], pyarrow.list_(pyarrow.int64()))}, "or nothing; allowed: lists of numbers"),
        ({"t": [[[1]]]}, "its column t has the type object"),
        ({"width": [None]}, "width None: allowed: a whole number"),
        ({"height": [9.5]}, "height 9.5: allowed: a whole number"),
    ],
)
def test_parquet_of_anything_else(columns: Content, message: str, tmp_path: Path) -> None:
    sound = {"width": [9], "height": [9], **{name: [[1]] for name in "txyp"}}
    pyarrow.parquet.write_table(pyarrow.table({**sound, **columns}), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", message, size=None)


@pytest.mark.parametrize("row", ["a", 0.5, -1])
def test_rows_are_whole_numbers(row: Any, tmp_path: Path) -> None:
    sound = {"width": [9], "height": [9], **{name: [[1]] for name in "txyp"}}
    pyarrow.parquet.write_table(pyarrow.table(sound), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "row .*: allowed: a whole number, 0 or more", row=row)


def test_an_event_that_is_far_too_late(tmp_path: Path) -> None:
    """It makes any number of steps, for which there is neither memory nor time."""
    (tmp_path / "a.csv").write_text("t,x,y,p\n0,1,1,1\n1000000000000000,2,2,0\n")
    events = gerd.read_events(tmp_path / "a.csv", size=SIZE)
    assert [part.first for part in gerd.event_windows(tmp_path / "a.csv", 10, size=SIZE)] == [0, 10**12]
    with pytest.raises(
        gerd.GerdError, match=r"a\.csv: steps 10: makes 100000000000 windows .* allowed: up to 100000000"
    ):
        gerd.EventFiles(tmp_path / "a.csv", steps=10, read={"size": SIZE})
    with pytest.raises(gerd.GerdError, match=r"a video of 1000000000001 steps; allowed: up to 1000000"):
        gerd.render(events, tmp_path / "a.gif")
    with pytest.raises(gerd.GerdError, match=r"has 1000000000001 steps; the page shows at most 10000000 steps"):
        gerd.render(events, tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]

"""Files of events, written by this program, by others, and by hand from the descriptions of the formats."""

import struct
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import faery
import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gerd
from gerd.exchange.formats import FORMATS
from gerd.exchange.reading import is_event_file
from gerd.recording.events import EVENT_DTYPE

WIDTH, HEIGHT = 90, 60
SIZED = ("evt2", "evt3", "dat", "aedat4", "es", "hdf5", "hdf5-dsec", "npz")  # formats that tell the size of the frame


def drawn(count: int, seed: int = 0, until: int = 400_000) -> Any:
    """Events in the order of (t, y, x, p)."""
    chance = np.random.default_rng(seed)
    result = np.zeros(count, EVENT_DTYPE)
    for name, size in (("t", until), ("x", WIDTH), ("y", HEIGHT), ("p", 2)):
        result[name] = chance.integers(0, size, count)
    return result[np.lexsort((result["p"], result["x"], result["y"], result["t"]))]


def size_for(format: str) -> Any:
    return {} if format in SIZED else {"size": (WIDTH, HEIGHT)}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_what_is_written_is_read_event_for_event(format: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.anything"
    gerd.write_events(path, drawn(count), width=WIDTH, height=HEIGHT, format=format)
    if count == 0 and format == "rpg":  # has no header
        with pytest.raises(gerd.StorageError, match="is empty; allowed: EVT"):
            gerd.read_events(path)
        return
    events = gerd.read_events(path, **size_for(format))
    assert np.array_equal(events.events, drawn(count))
    assert (events.width, events.height) == (WIDTH, HEIGHT)
    assert events.dropped == {}
    assert is_event_file(path)
    if format not in SIZED:
        with pytest.raises(
            gerd.GerdError, match=r"a\.anything: does not contain the size of its frame; allowed: size="
        ):
            gerd.read_events(path)


@pytest.mark.parametrize("kind", ["evt2", "evt3"])
def test_raw_files_of_another_writer(kind: str, tmp_path: Path) -> None:
    """faery's encoders, over times at which the clock of EVT 3.0 wraps several times."""
    given = drawn(4000, until=60_000_000)
    theirs = np.empty(len(given), faery.EVENTS_DTYPE)
    for name, ours in (("t", "t"), ("x", "x"), ("y", "y"), ("on", "p")):
        theirs[name] = given[ours]
    path = tmp_path / "a.raw"
    options = {"dimensions": (WIDTH, HEIGHT), "version": kind, "file_type": "evt", "zero_t0": False}
    faery.file_encoder.events_to_file([theirs], path, use_write_suffix=False, **options)
    assert np.array_equal(gerd.read_events(path).events, given)


def raw(header: str, *words: int, bits: int) -> bytes:
    return header.encode() + b"".join(word.to_bytes(bits // 8, "little") for word in words)


def test_vectors_of_evt3_are_pixels_in_a_row(tmp_path: Path) -> None:
    """By hand: time 1 · 4096 + 5, row 7, from column 10 on ON at bits 0 and 2 of twelve, then bit 1 of eight."""
    words = (0x8001, 0x6005, 0x0007, 0x3800 | 10, 0x4005, 0x5002, 0x2000 | 33, 0x8002, 0x2000 | 34)
    (tmp_path / "a.raw").write_bytes(raw("% evt 3.0\n% geometry 64x32\n% end\n", *words, bits=16))
    rows = gerd.read_events(tmp_path / "a.raw").events.tolist()
    assert rows == [
        (10, 7, 4101, True),
        (12, 7, 4101, True),
        (23, 7, 4101, True),
        (33, 7, 4101, False),
        (34, 7, 8192, False),
    ]


@pytest.mark.parametrize("swapped", [False, True])
def test_masks_of_evt21_are_pixels_in_a_row(swapped: bool, tmp_path: Path) -> None:
    """By hand: time high 3, then OFF at time 3 · 64 + 9, row 2, at columns 32 and 63."""
    words = [(0x8 << 28 | 3) << 32, ((9 << 22 | 32 << 11 | 2) << 32) | 0x80000001]
    if swapped:
        words = [word >> 32 | (word & 0xFFFFFFFF) << 32 for word in words]
    option = ";endianness=legacy" if swapped else ""
    header = f"% evt 2.1\n% format EVT21;height=32;width=64{option}\n% end\n"
    (tmp_path / "a.raw").write_bytes(raw(header, *words, bits=64))
    assert gerd.read_events(tmp_path / "a.raw").events.tolist() == [(32, 2, 201, False), (63, 2, 201, False)]


def slowly(words: list[int]) -> list[tuple[int, int, int, bool]]:
    """The events of EVT 3.0 by a machine that looks at one word after the other."""
    result = []
    high = row = base = None
    rounds = low = on = 0
    for word in words:
        kind, content = word >> 12, word & 0xFFF
        if kind == 0x8:
            if high is not None and high - content > 2**11:
                rounds += 1
            low = low if content == high else 0
            high = content
        elif kind == 0x6:
            low = content
        elif kind in (0x0, 0x1):
            row = content & 0x7FF if kind == 0x0 else None
        elif kind == 0x3:
            base, on = content & 0x7FF, content >> 11
        elif kind == 0x2 and high is not None and row is not None:
            result.append((content & 0x7FF, row, (rounds << 24) + (high << 12) + low, content >> 11 == 1))
        elif kind in (0x4, 0x5) and base is not None:
            length = 12 if kind == 0x4 else 8
            if high is not None and row is not None:
                pixels = [base + bit for bit in range(length) if content >> bit & 1]
                result += [(x, row, (rounds << 24) + (high << 12) + low, on == 1) for x in pixels]
            base += length
    return result


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 2, 3, 4, 5, 6, 8, 10, 14, 15]), st.integers(0, 0xFFF)), max_size=60)
)
def test_any_words_of_evt3(tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int]]) -> None:
    words = [kind << 12 | content for kind, content in parts]
    path = tmp_path_factory.getbasetemp() / "words.raw"
    path.write_bytes(raw("% evt 3.0\n% geometry 4096x2048\n% end\n", *words, bits=16))
    expected = slowly(words)
    in_order = all(one[2] <= other[2] for one, other in pairwise(expected))
    if in_order and all(x < 4096 for x, *_ in expected):
        found = gerd.read_events(path).events.tolist()
        assert found == sorted(expected, key=lambda row: (row[2], row[1], row[0], row[3]))


def test_clocks_wrap(tmp_path: Path) -> None:
    """DAT counts 2³² µs, EVT 2.0 2³⁴: what comes after is later and not earlier."""
    header = b"% Version 2\n% Width 9\n% Height 9\n" + bytes([12, 8])
    (tmp_path / "a.dat").write_bytes(header + struct.pack("<IIII", 2**32 - 1, 1, 4, 1 << 28))
    events = gerd.read_events(tmp_path / "a.dat").events
    assert events["t"].tolist() == [2**32 - 1, 2**32 + 4]
    high = 2**28 - 1
    words = (0x8 << 28 | high, 63 << 22, 0x8 << 28, 1 << 28 | 2 << 22)
    (tmp_path / "a.raw").write_bytes(raw("% evt 2.0\n% geometry 9x9\n% end\n", *words, bits=32))
    assert gerd.read_events(tmp_path / "a.raw").events["t"].tolist() == [2**34 - 1, 2**34 + 2]


def test_long_files_are_decoded_as_short_ones(tmp_path: Path) -> None:
    """More words than a block has, so that clock and row are carried over."""
    given = drawn(150_000, until=40_000_000)
    for format in ("evt2", "evt3", "dat"):
        gerd.write_events(tmp_path / format, given, width=WIDTH, height=HEIGHT, format=format)
        assert np.array_equal(gerd.read_events(tmp_path / format).events, given)


TEXTS = [
    ("0.001500 3 4 1\n0.002000 5 6 0\n", {}),  # the Event-Camera Dataset
    ("# seconds x y p\n1.5e-3 3 4 1\n0.002 5 6 -1\n", {}),
    ("t,x,y,p\n1500,3,4,1\n2000,5,6,0\n", {}),
    ("x;y;polarity;timestamp\n3;4;1;1500\n5;6;0;2000\n", {}),
    ("3,4,1,1500\n5,6,0,2000", {"columns": "xypt"}),
    ("1500 3 4 1 9.5\n\n2000 5 6 0 7.5\n", {"columns": "txyp"}),
]


@pytest.mark.parametrize(("written", "options"), TEXTS)
def test_text(written: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(written)
    events = gerd.read_events(tmp_path / "events.txt", size=(9, 9), **options)
    assert events.events.tolist() == [(3, 4, 1500, True), (5, 6, 2000, False)]


def test_arrays_and_tables_of_others(tmp_path: Path) -> None:
    wanted = [(3, 4, 1500, True), (5, 6, 2000, False)]
    table = np.array([(1500, 3, 4, 1), (2000, 5, 6, 0)], [("ts", "f8"), ("x", "u2"), ("y", "u2"), ("pol", "i1")])
    seconds = table.copy()
    seconds["ts"] /= 1e6
    np.save(tmp_path / "a.npy", seconds)
    np.savez(tmp_path / "b.npz", events=seconds)
    np.savez(tmp_path / "c.npz", xs=table["x"], ys=table["y"], ts=[1500, 2000], ps=[True, False])
    with h5py.File(tmp_path / "d.h5", "w") as file:
        for name, values in (("x", [3, 5]), ("y", [4, 6]), ("t", [500, 1000]), ("p", [1, 0])):
            file[f"events/{name}"] = values
        file["t_offset"] = 1000
        file.attrs["sensor_resolution"] = (9, 9)
    for name in ("a.npy", "b.npz", "c.npz"):
        assert gerd.read_events(tmp_path / name, size=(9, 9)).events.tolist() == wanted
    assert gerd.read_events(tmp_path / "d.h5").events.tolist() == wanted


def test_a_recording_of_a_parquet_file(tmp_path: Path) -> None:
    config = gerd.parse("{sensor: {width: 20, height: 16}, steps: 6, actors: [{shape: circle, translation: {}}]}")
    gerd.export_dataset(config, tmp_path / "all", "parquet", indices=[0, 1])
    (path,) = (tmp_path / "all").rglob("*.parquet")
    assert np.array_equal(gerd.read_events(path, row=1).events, gerd.simulate(config, 1).events)
    with pytest.raises(gerd.GerdError, match=r"has 2 recordings; allowed: row= of one of them"):
        gerd.read_events(path)
    with pytest.raises(gerd.GerdError, match="row 2: allowed: 0 to 1"):
        gerd.read_events(path, row=2)


@pytest.mark.parametrize("format", ["evt3", "csv", "hdf5", "aedat4"])
def test_part_of_a_file_and_windows_of_it(format: str, tmp_path: Path) -> None:
    given = drawn(2000)
    path = tmp_path / "a"
    gerd.write_events(path, given, width=WIDTH, height=HEIGHT, format=format)
    part = gerd.read_events(path, start_us=100_000, stop_us=101_500, **size_for(format))
    t = given["t"]
    assert np.array_equal(part.events, given[(t >= 100_000) & (t < 101_500)])
    assert (part.first, part.steps) == (100, 3)
    windows = list(gerd.event_windows(path, 25, **size_for(format)))
    assert np.array_equal(np.concatenate([window.events for window in windows]), given)
    assert {window.steps for window in windows} == {25}
    assert {(window.first - windows[0].first) % 25 for window in windows} == {0}
    whole = gerd.read_events(path, **size_for(format))
    assert windows[3].digest == whole.window(75, 100).digest


def rows(*events: tuple[int, int, int]) -> bytes:
    """A csv file from tuples (t, x, y)."""
    return b"t,x,y,p\n" + b"".join(b"%d,%d,%d,1\n" % event for event in events)


@pytest.mark.parametrize(
    ("content", "message", "left", "dropped"),
    [
        (
            rows((1, 0, 0), (2, 9, 0), (3, 1, 1)),
            "event 1 at x 9, y 0, t 2 µs is outside of a frame of 9×9 pixels",
            2,
            "events outside of the frame",
        ),
        (
            rows((5, 0, 0), (4, 0, 0), (5, 1, 1)),
            "event 1 at x 0, y 0, t 4 µs is earlier than an event before it",
            2,
            "events out of order",
        ),
        (rows((-1, 0, 0), (4, 0, 0)), "event 0 at x 0, y 0, t -1 µs is before time 0", 1, "events before time 0"),
        (b"t,x,y,p\n1,2,3,1\n4,5\n6,7,8,0\n", r"line 3: '4,5': allowed: four numbers", 2, "lines"),
        (
            b"t,x,y,p\n1,2,3,7\n2,2,3,0\n",
            "p of an event is 7; allowed: 1 for ON, and 0 or -1 for OFF",
            1,
            "events by their p",
        ),
        (
            raw("% evt 2.0\n% geometry 9x9\n% end\n", 8 << 28, 1 << 28, bits=32) + b"\0",
            "ends in the middle of an event",
            1,
            "bytes at the end",
        ),
    ],
)
def test_damage_is_an_error_or_counted(content: bytes, message: str, left: int, dropped: str, tmp_path: Path) -> None:
    path = tmp_path / "a.file"
    path.write_bytes(content)
    options: dict[str, Any] = {} if content.startswith(b"%") else {"size": (9, 9)}
    with pytest.raises(gerd.StorageError, match=f"a.file: {message}.*; repair=True leaves it out and counts it"):
        gerd.read_events(path, **options)
    events = gerd.read_events(path, repair=True, **options)
    assert len(events) == left
    assert events.dropped == {dropped: 1}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", {}, "is empty"),
        (b"seed: 7\nactors: []\n", {}, "begins with b'seed: 7"),
        (b"#!AER-DAT3.1\r\n", {}, "older version than 4"),
        (b"#ROSBAG V2.0\n", {}, "is a ROS bag"),
        (b"% evt 9.0\n% end\n", {}, "its header names no format that is known"),
        (b"1 2 3 1\n", {"size": (9, 9)}, "no header says which is which; allowed: columns="),
        (b"1 2 3 1\n", {"size": (9, 9), "columns": "txy"}, "columns 'txy': allowed: the letters t, x, y and p"),
        (b"t,x,y,p\n", {"size": 9}, r"size 9: allowed: \(width, height\)"),
        (b"t,x,y,p\n", {"size": (0, 9)}, "width 0: allowed: a whole number from 1 to 32768"),
        (b"t,x,y,p\n", {"size": (9, 9), "start_us": 5, "stop_us": 5}, "stop_us 5: allowed: a whole number, 6 or more"),
        (b"\x93NUMPY\x01\x00", {}, "cannot be read as an array of numpy"),
        (b"\x89HDF\r\n\x1a\n", {}, "cannot be read as HDF5"),
        (b"PAR1", {}, "cannot be read as Parquet"),
        (b"Event Stream\2", {}, "faery cannot read it"),
        (b"#!AER-DAT4.0\r\n\1\0", {}, "its header cannot be read"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.file").write_bytes(content)
    with pytest.raises(gerd.GerdError, match=rf"a\.file: .*{message}"):
        gerd.read_events(tmp_path / "a.file", **options)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(gerd.StorageError, match="nothing: there is no such file"):
        gerd.read_events(tmp_path / "nothing")
    with pytest.raises(gerd.StorageError, match="cannot be read: Is a directory"):
        gerd.read_events(tmp_path)


class Sound(dict[str, bytes]):
    """A small file of each format, which a failing example does not print."""

    def __repr__(self) -> str:
        return "sound files"


@pytest.fixture(scope="module")
def sound() -> Sound:
    result = Sound()
    for format in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            gerd.write_events(Path(folder) / "a", drawn(60), width=WIDTH, height=HEIGHT, format=format)
            result[format] = (Path(folder) / "a").read_bytes()
    return result


@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(sound: Sound, tmp_path_factory: Any, data: st.DataObject) -> None:
    """Whatever is cut off or changed, there are events of the frame in order, or an error of ours."""
    content = bytearray(sound[data.draw(st.sampled_from(sorted(sound)))])
    content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 4)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content)
    for repair in (False, True):
        try:
            events = gerd.read_events(path, size=(WIDTH, HEIGHT), repair=repair)
        except gerd.GerdError:
            continue
        t, x, y = (events.events[name] for name in "txy")
        assert (np.diff(t) >= 0).all()
        assert ((x >= 0) & (x < WIDTH) & (y >= 0) & (y < HEIGHT)).all()

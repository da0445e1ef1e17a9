"""Export: other people's libraries read the same events from our files, and the ground truth beside them is exact."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from support import prophesee
from support.datasets import unfinish
from support.processes import DEADLINE
from support.scenes import actor, config, simulated, two_moving
from typer.testing import CliRunner

import gerd
from gerd.cli.app import app
from gerd.cli.words import parse_indices
from gerd.exchange import formats
from gerd.exchange.export import export_dataset
from gerd.exchange.formats import FORMATS, write_events
from gerd.recording.events import EVENT_DTYPE
from gerd.recording.recording import Recording

Columns = tuple[Any, Any, Any, Any]  # t, x, y, p


# Readers that share nothing with the writer


def dv_processing(path: Path) -> Columns:
    import dv_processing

    reader, store = dv_processing.io.MonoCameraRecording(str(path)), dv_processing.EventStore()
    while reader.isRunning() and (batch := reader.getNextEventBatch()) is not None:
        store.add(batch)
    found = store.numpy()
    return found["timestamp"], found["x"], found["y"], found["polarity"]


def event_stream(path: Path) -> Columns:
    import event_stream

    with event_stream.Decoder(str(path)) as decoder:
        parts = [part.copy() for part in decoder]
    if not parts:
        return (np.zeros(0, np.int64),) * 4
    found = np.concatenate(parts)
    return found["t"], found["x"], found["y"], found["on"]


def hdf5_dsec(path: Path) -> Columns:
    import h5py

    with h5py.File(path) as file:
        kinds = {name: file[f"events/{name}"].dtype for name in "txyp"}
        assert kinds == {"t": np.uint32, "x": np.uint16, "y": np.uint16, "p": np.uint8}
        assert file["t_offset"][()] == 0
        t, index = file["events/t"][:].astype(np.int64), file["ms_to_idx"][:].astype(np.int64)
        for millisecond, first in enumerate(index.tolist()):  # as DSEC defines it
            assert (t[first:] >= 1000 * millisecond).all()
            assert (t[:first] < 1000 * millisecond).all()
        assert not len(t) or index[-1] == len(t)  # so that the last millisecond has an end
        return t, file["events/x"][:], file["events/y"][:], file["events/p"][:]


class EventSlicer:
    """What DSEC's reader does with its files: events from a time up to another, found through `ms_to_idx`."""

    def __init__(self, path: Path) -> None:
        import h5py

        with h5py.File(path) as file:
            self.t, self.index = file["events/t"][:].astype(np.int64), file["ms_to_idx"][:].astype(np.int64)

    def times(self, start: int, end: int) -> np.ndarray | None:
        """None if the index does not have the millisecond before `start` or that after `end`."""
        first, last = start // 1000, -(-end // 1000)
        if last >= len(self.index):
            return None
        t = self.t[self.index[first] : self.index[last]]
        return t[(t >= start) & (t < end)]


def hdf5(path: Path) -> Columns:
    import h5py

    with h5py.File(path) as file:
        found = file["events"][:]
        return found["t"], found["x"], found["y"], found["p"]


def rpg(path: Path) -> Columns:
    rows = np.array([line.split() for line in path.read_text().splitlines()], np.float64).reshape(-1, 4)
    return np.rint(rows[:, 0] * 1e6), rows[:, 1], rows[:, 2], rows[:, 3]


def csv(path: Path) -> Columns:
    header, *lines = path.read_text().splitlines()
    assert header == "t,x,y,p"
    t, x, y, p = np.array([line.split(",") for line in lines], np.int64).reshape(-1, 4).T
    return t, x, y, p


def csv_by_faery(path: Path) -> Columns:
    import faery

    parts = [part.copy() for part in faery.events_stream_from_file(path, dimensions_fallback=(2048, 2048))]
    found = np.concatenate(parts) if parts else np.zeros(0, faery.EVENTS_DTYPE)
    return found["t"], found["x"], found["y"], found["on"]


def npz(path: Path) -> Columns:
    found = np.load(path, allow_pickle=False)
    return found["t"], found["x"], found["y"], found["p"]


READERS: dict[str, list[Callable[[Path], Columns]]] = {
    **prophesee.READERS,
    "aedat4": [dv_processing],
    "es": [event_stream],
    "hdf5-dsec": [hdf5_dsec],
    "hdf5": [hdf5],
    "rpg": [rpg],
    "csv": [csv, csv_by_faery],
    "npz": [npz],
}


def events(*rows: tuple[int, int, int, int]) -> Any:
    """From rows of (t, x, y, p)."""
    result = np.zeros(len(rows), EVENT_DTYPE)
    for i, (t, x, y, p) in enumerate(rows):
        result[i] = (x, y, t, p)
    return result


def assert_holds(path: Path, format: str, wanted: Any) -> None:
    """Each reader finds these events, all fields, in this order."""
    for read in READERS[format]:
        columns = read(path)
        for name, found in zip("txyp", columns, strict=True):
            assert np.array_equal(np.asarray(found).astype(np.int64), wanted[name].astype(np.int64)), (format, name)


def test_every_format_has_a_reader() -> None:
    assert set(READERS) == set(FORMATS)


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("format", FORMATS)
def test_others_read_what_was_simulated(format: str, timing: str, tmp_path: Path) -> None:
    recording = simulated(
        actor("triangle", at=[20, 17], velocity=[1.3, 0.4], turn=20.0, size=15.0),
        width=64,
        height=48,
        steps=25,
        step_us=1700,
        timing=timing,
        noise={"background": 0.01},
    )
    assert len(recording) > 300
    assert (len(np.unique(recording.events["t"])) > 200) == (timing == "exact")
    path = tmp_path / f"a{FORMATS[format].suffix}"
    write_events(path, recording.events, width=64, height=48, format=format)
    assert_holds(path, format, recording.events)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("format", FORMATS)
def test_a_recording_without_events(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{FORMATS[format].suffix}"
    write_events(path, events(), width=64, height=48, format=format)
    assert_holds(path, format, events())


@pytest.mark.parametrize("format", FORMATS)
def test_times_keep_their_origin_and_corners_their_place(format: str, tmp_path: Path) -> None:
    """The first event is late; y is not turned upside down; the largest coordinates and both polarities are there."""
    path = tmp_path / f"a{FORMATS[format].suffix}"
    side = min(FORMATS[format].side, 2048)
    wanted = events(
        (1_000_000, 0, 0, 1), (1_000_000, side - 1, 0, 0), (1_000_003, 0, 5, 0), (2_500_000, side - 1, side - 1, 1)
    )
    write_events(path, wanted, width=side, height=side, format=format)
    assert_holds(path, format, wanted)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=12)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 40_000_000), st.integers(0, 36), st.integers(0, 24), st.integers(0, 1)), max_size=30
    )
)
def test_any_events_in_any_order(format: str, rows: list[tuple[int, int, int, int]]) -> None:
    """Unsorted events are sorted by time, those of the same time keep their order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{FORMATS[format].suffix}"
        wanted = events(*sorted(rows, key=lambda row: row[0]))
        write_events(path, events(*rows), width=37, height=25, format=format)
        assert_holds(path, format, wanted)


@pytest.mark.parametrize("format", ["aedat4", "dat"])
def test_aestream_reads_them_too(format: str, tmp_path: Path) -> None:
    import aestream

    wanted = events((0, 1, 2, 1), (1000, 63, 0, 0), (1000, 0, 47, 1), (2_000_003, 5, 5, 0))
    path = tmp_path / f"a{FORMATS[format].suffix}"
    write_events(path, wanted, width=64, height=48, format=format)
    found = aestream.FileInput(str(path), (64, 48)).load()
    for name, theirs in zip("txyp", ("timestamp", "x", "y", "polarity"), strict=True):
        assert np.array_equal(found[theirs], wanted[name].astype(np.int64))


def test_the_guard_is_needed(tmp_path: Path) -> None:
    """What faery 0.7.1 does by itself. Where this fails, faery has changed, and the guard can become smaller."""
    import faery
    from faery.file_encoder import events_to_file

    def written(name: str, *rows: tuple[int, int, int, int], **options: Any) -> Path:
        given = np.zeros(len(rows), faery.EVENTS_DTYPE)
        given["t"], given["x"], given["y"], given["on"] = np.array(rows).T
        events_to_file([given], tmp_path / name, dimensions=(3000, 48), use_write_suffix=False, **options)
        return tmp_path / name

    assert event_stream(written("y.es", (0, 1, 1, 1)))[2].tolist() == [47 - 1]
    assert event_stream(written("z.es", (1000, 1, 1, 1)))[0].tolist() == [0]


# What a format cannot hold


@pytest.mark.parametrize(
    ("format", "row", "width", "message"),
    [
        ("evt2", (0, 1, 1, 1), 2049, "evt2 holds frames of up to 2048×2048, not 2049×9"),
        ("evt3", (0, 2500, 1, 1), 3000, "evt3 holds frames of up to 2048×2048, not 3000×9"),
        ("dat", (2**32, 1, 1, 1), 9, r"times of the events are 4294967296 to 4294967296 µs; dat holds 0 to 4294967295"),
        ("evt2", (2**34, 1, 1, 1), 9, "evt2 holds 0 to 17179869183"),
        ("evt3", (2**34, 1, 1, 1), 9, "evt3 holds 0 to 17179869183"),
        ("hdf5-dsec", (2**32, 1, 1, 1), 9, "hdf5-dsec holds 0 to 4294967295"),
        ("csv", (-1, 1, 1, 1), 9, "times of the events are -1 to -1 µs"),
        ("csv", (0, 9, 1, 1), 9, "x of the events is 9 to 9; allowed: 0 to 8"),
        ("npz", (0, 1, -3, 1), 9, "y of the events is -3 to -3; allowed: 0 to 8"),
        ("nothing", (0, 1, 1, 1), 9, "format 'nothing': allowed: evt2, aedat4"),
    ],
)
def test_what_does_not_fit_is_refused(
    format: str, row: tuple[int, int, int, int], width: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(gerd.GerdError, match=message):
        write_events(tmp_path / "a", events(row), width=width, height=9, format=format)
    assert not list(tmp_path.iterdir())


def other_types(**kinds: Any) -> Any:
    """Two events with fields of these types."""
    return np.zeros(2, [(name, kinds.get(name, kind)) for name, kind in EVENT_DTYPE.descr])


@pytest.mark.parametrize(
    ("kinds", "values", "message"),
    [
        ({"p": "i1"}, {"p": [1, -1]}, r"p of the events is -1 to 1; allowed: whole numbers 0 and 1 \(1 ON, 0 OFF\)"),
        ({"p": "u1"}, {"p": [0, 2]}, "p of the events is 0 to 2; allowed: whole numbers 0 and 1"),
        ({"p": "f4"}, {"p": [1, np.nan]}, "p of the events is float32; allowed: whole numbers 0 and 1"),
        ({"t": "f8"}, {"t": [0.1, 0.2]}, "t of the events is float64; allowed: a type of whole numbers, in microsec"),
        ({"x": "f8"}, {"x": [1.7, 2]}, "x of the events is float64; allowed: a type of whole numbers"),
        ({"y": "O"}, {"y": [None, 1]}, "y of the events is object; allowed: a type of whole numbers"),
        ({"t": "u8"}, {"t": [0, 2**63]}, "times of the events are 0 to 9223372036854775808 µs"),
    ],
)
def test_numbers_that_would_have_to_be_rounded_or_cut_are_refused(
    kinds: dict[str, str], values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = other_types(**kinds)
    for field, column in values.items():
        given[field] = column
    for format in ("csv", "evt2", "aedat4"):
        with pytest.raises(gerd.GerdError, match=message):
            write_events(tmp_path / "a", given, width=9, height=9, format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["u1", "i8", "?", ">i4"])
def test_whole_numbers_of_any_type_are_taken(kind: str, tmp_path: Path) -> None:
    given = other_types(p=kind, x="u2", y=">i4", t="u4")
    given["p"], given["x"], given["y"], given["t"] = [1, 0], [3, 4], [5, 6], [7, 8]
    write_events(tmp_path / "a.csv", given, width=9, height=9, format="csv")
    assert (tmp_path / "a.csv").read_text() == "t,x,y,p\n7,3,5,1\n8,4,6,0\n"


def test_what_are_no_events_is_refused(tmp_path: Path) -> None:
    wrong: list[Any] = [np.zeros((3, 4)), np.zeros(3, [("x", "i2"), ("y", "i2"), ("t", "i8")]), [(1, 2, 3, True)], None]
    for refused in (*wrong, np.zeros((2, 2), EVENT_DTYPE)):
        with pytest.raises(gerd.GerdError, match=r"allowed: a structured array of one axis with the fields x, y, t"):
            write_events(tmp_path / "a", refused, width=9, height=9, format="csv")
    for size in ({"width": 9.5, "height": 9}, {"width": 9, "height": 0}, {"width": True, "height": 9}):
        with pytest.raises(gerd.GerdError, match=r"(width|height) \S+: allowed: a whole number, 1 or more"):
            write_events(tmp_path / "a", events(), **size, format="csv")
    with pytest.raises(gerd.GerdError, match=r"duration 0\.5: allowed: a whole number"):
        write_events(tmp_path / "a", events(), width=9, height=9, format="hdf5-dsec", duration=0.5)  # type: ignore[arg-type]


LIMITED = """
import resource, signal, sys
import numpy as np
import gerd
from gerd.exchange.formats import FORMATS, write_events
from gerd.recording.events import EVENT_DTYPE

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
format, chance = sys.argv[1], np.random.default_rng(1)
events = np.zeros(700, EVENT_DTYPE)
events["t"] = np.sort(chance.integers(0, 10**6, 700))
events["x"], events["y"], events["p"] = (chance.integers(0, n, 700) for n in (100, 80, 2))
write_events("whole", events, width=100, height=80, format=format)
import os
size = os.path.getsize("whole")
for limit in sorted({*range(0, size, 1024), size // 2, *range(size - 130, size)}):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        write_events("cut", events, width=100, height=80, format=format)
    except gerd.GerdError as error:
        print(type(error).__name__, limit)
    else:
        print("kept", limit)
    assert not os.path.exists("cut"), limit
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
write_events("cut", events, width=100, height=80, format=format)
assert open("cut", "rb").read() == open("whole", "rb").read()
"""


@pytest.mark.parametrize("format", FORMATS)
def test_a_disk_that_is_full_leaves_an_error_and_no_file(format: str, tmp_path: Path) -> None:
    """At any byte of the file, its last ones included; with room for all of it, it is written."""
    command = [sys.executable, "-c", LIMITED, format]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0, result.stdout[-300:] + result.stderr
    assert len(result.stdout.splitlines()) > 130
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cut", "whole"]


def test_the_last_moment_that_fits(tmp_path: Path) -> None:
    for format, until in (("evt2", 2**34), ("evt3", 2**28), ("dat", 2**32), ("hdf5-dsec", 10**7)):
        wanted = events((0, 1, 1, 1), (until - 1, 2, 3, 0))
        path = tmp_path / f"{format}{FORMATS[format].suffix}"
        write_events(path, wanted, width=9, height=9, format=format)
        assert_holds(path, format, wanted)


def test_a_file_that_does_not_read_back_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard is tried on writers that lose an event, or change one field of one."""
    whole = FORMATS["aedat4"]
    wanted = events((3, 1, 2, 1), (5, 4, 3, 0))
    for change in (lambda e: e[:1], *(lambda e, field=field: _changed(e, field) for field in "xytp")):
        broken = replace(whole, write=lambda path, e, w, h, change=change: whole.write(path, change(e), w, h))
        monkeypatch.setitem(FORMATS, "aedat4", broken)
        with pytest.raises(gerd.GerdError, match=r"a\.aedat4: the aedat4 file did not read back as it was written"):
            write_events(tmp_path / "a.aedat4", wanted, width=9, height=9, format="aedat4")
        assert not list(tmp_path.iterdir())


def _changed(given: Any, field: str) -> Any:
    result = given.copy()
    result[field][-1] = 1 if field == "p" else result[field][-1] + 1
    return result


def test_nothing_is_overwritten_and_a_bad_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(gerd.GerdError, match=r"a\.csv: exists already"):
        write_events(tmp_path / "a.csv", events(), width=9, height=9, format="csv")
    assert (tmp_path / "a.csv").read_text() == "mine"
    for format in ("csv", "evt2", "npz"):
        with pytest.raises(gerd.GerdError, match=r"cannot be written: there is no folder .*no$"):
            write_events(tmp_path / "no" / "a", events(), width=9, height=9, format=format)


@pytest.mark.parametrize(("format", "package"), [("aedat4", "faery"), ("hdf5", "h5py"), ("hdf5-dsec", "h5py")])
def test_a_missing_package_is_named(
    format: str, package: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(gerd.GerdError, match=rf"needs the package {package}: pip install 'gerd-events\[export\]'"):
        export_dataset(dataset, tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


# Whole datasets


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "squares"
    gerd.generate(two_moving({"time_scale": [1, 2.5]}), path, 2, workers=1)
    return path


def test_a_dataset_is_exported_with_its_truth(dataset: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    assert export_dataset(dataset, tmp_path / "out", progress=seen.append) == 4
    assert seen == [1, 1, 1, 1]
    index = json.loads((tmp_path / "out" / "export.json").read_text())
    assert index["complete"]
    assert [entry["labels"]["time_scale"] for entry in index["files"]] == [1, 2.5, 1, 2.5]
    names = {"export.json"} | {entry[key] for entry in index["files"] for key in ("file", "truth")}
    assert {file.name for file in (tmp_path / "out").iterdir()} == names
    for entry, recording in zip(index["files"], gerd.Recordings(dataset), strict=True):
        assert_holds(tmp_path / "out" / entry["file"], "evt2", recording.events)
        assert_true(tmp_path / "out" / entry["truth"], recording, entry["file"])


def assert_true(path: Path, recording: Recording, file: str) -> None:
    """The lines say what the recording says, to the last bit."""
    about, *lines = map(json.loads, path.read_text().splitlines())
    assert (about["index"], about["labels"], about["file"]) == (
        recording.identity.index,
        recording.identity.labels,
        file,
    )
    assert about["shapes"] == ["square", "circle"]
    assert {"t", "T", "box", "background"} <= set(about["meaning"])
    assert len(lines) == recording.steps
    noise: list[int] = []
    for step, line in enumerate(lines):
        assert (line["step"], line["t"]) == (step, step * recording.step_us)
        here = recording.events[line["first_event"] : line["first_event"] + line["events"]]
        assert (here["t"] == line["t"]).all()
        noise += [line["first_event"] + i for i in line["background"]]
        for number, found in enumerate(line["actors"]):
            names = ("x", "y", "scale_x", "scale_y", "rotation", "shear")
            parts = (found, found["velocity"], found["acceleration"])
            assert [[part[name] for name in names] for part in parts] == recording.truth[step, number].tolist()
            assert found["T"] == recording.T[step, number].tolist()
            assert found["T_velocity"] == recording.T_velocity[step, number].tolist()
            assert found["T_acceleration"] == recording.T_acceleration[step, number].tolist()
            assert found["box"] == recording.boxes()[step, number].tolist()
    assert sum(line["events"] for line in lines) == len(recording)
    assert np.array_equal(noise, np.flatnonzero(recording.background))
    assert len(noise) > 10


def test_dsec_slices_reach_the_end_of_the_recording(tmp_path: Path) -> None:
    """The square leaves the frame before the recording ends; a step is no whole number of milliseconds."""
    leaving = actor(at=[2, 6], velocity=[-1, 0], size=4.0, border="free")
    gerd.generate(config(leaving, width=16, height=12, steps=9, step_us=1300), tmp_path / "data", 1, workers=1)
    export_dataset(tmp_path / "data", tmp_path / "out", "hdf5-dsec")
    recording, slicer = gerd.Recordings(tmp_path / "data")[0], EventSlicer(tmp_path / "out" / "000000.h5")
    assert 0 < recording.events["t"].max() < 6 * 1300
    for step in range(9):
        found = slicer.times(step * 1300, (step + 1) * 1300)
        assert found is not None, step
        assert len(found) == (recording.events["t"] == step * 1300).sum()
    assert np.array_equal(slicer.times(0, 9 * 1300), recording.events["t"])
    assert slicer.times(0, 9 * 1300 + 1000) is None


def test_a_duration_holds_all_events(tmp_path: Path) -> None:
    one = {"width": 9, "height": 9, "format": "hdf5-dsec"}
    with pytest.raises(gerd.GerdError, match=r"a\.h5: duration 5000 µs: the last event is at 5000 µs"):
        write_events(tmp_path / "a.h5", events((5000, 1, 1, 1)), duration=5000, **one)
    assert not list(tmp_path.iterdir())
    write_events(tmp_path / "a.h5", events((5000, 1, 1, 1)), duration=5001, **one)
    write_events(tmp_path / "b.h5", events((5000, 1, 1, 1)), **one)
    write_events(tmp_path / "c.h5", events(), duration=2000, **one)
    ends = [len(EventSlicer(tmp_path / f"{name}.h5").index) for name in "abc"]
    assert ends == [7, 7, 3]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("format", ["npz", "frames"])
def test_an_interrupted_export_goes_on(format: str, dataset: Path, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "whole", format)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_dataset(dataset, tmp_path / "out", format, progress=stop)
    assert not json.loads((tmp_path / "out" / "export.json").read_text())["complete"]
    (tmp_path / "out" / ".000001.npz.0123456789abcdef.tmp").write_text("left by a run that was killed")
    (tmp_path / "out" / ".000001.0123456789abcdef.tmp" / "imgs").mkdir(parents=True)
    (tmp_path / "out" / "000000.truth.jsonl").unlink()
    export_dataset(dataset, tmp_path / "out", format)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize("format", ["npz", "frames", "parquet"])
@pytest.mark.parametrize("complete", [True, False])
def test_a_damaged_file_is_written_again(format: str, complete: bool, dataset: Path, tmp_path: Path) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    out, made = tmp_path / "out", []
    export_dataset(dataset, tmp_path / "whole", format)

    def stop(number: int) -> None:
        made.append(number)
        if not complete and len(made) == 2:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        export_dataset(dataset, out, format, progress=stop)
    first = {"npz": "000000.npz", "frames": "000000/imgs/00000000.png", "parquet": "data/shard-000000.parquet"}[format]
    untouched = {"npz": "000001.npz", "frames": "000001", "parquet": "export.json"}[format]
    before = (out / untouched).stat().st_ino
    (out / first).write_bytes((out / first).read_bytes()[:-1] + b"?")
    export_dataset(dataset, out, format)
    assert contents(out) == contents(tmp_path / "whole")
    assert format == "parquet" or (out / untouched).stat().st_ino == before
    for file, sha256 in json.loads((out / "export.json").read_text())["sha256"].items():
        assert (out / file).is_dir() or hashlib.sha256((out / file).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--index", "1"], [2, 3]),
        (["--index", "0:2", "--member", "1"], [1, 3]),
        (["--member", "time_scale=2.5", "--index", "1,0,1"], [1, 3]),
    ],
)
def test_a_part_of_a_dataset_is_the_same_straight_from_its_config(
    format: str, options: list[str], wanted: list[int], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are what the export of the whole has for these rows."""
    if format == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    shutil.copy(dataset / "config.yaml", "config.yaml")
    export_dataset(dataset, "whole", format)
    for source, out in ((str(dataset), "part"), ("config.yaml", "straight")):
        result = CliRunner().invoke(app, ["export", source, out, "--format", format, *options])
        assert result.exit_code == 0, result.output
    part, straight, whole = (contents(Path(name)) for name in ("part", "straight", "whole"))
    assert part == straight
    if format == "csv":
        names = {f"{row:06d}.{kind}" for row in wanted for kind in ("csv", "truth.jsonl")}
        assert part.keys() == {"export.json", *names}
        assert all(part[name] == whole[name] for name in names)
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table("whole/data").take(wanted)
        assert pq.read_table("part/data").equals(rows)
    again = CliRunner().invoke(app, ["export", str(dataset), "part", "--format", format])
    assert f"recordings is {len(wanted)} there and 4 here" in str(again.exception)


def test_what_cannot_be_chosen_is_refused(dataset: Path, tmp_path: Path) -> None:
    family = gerd.load(dataset / "config.yaml")
    assert export_dataset(family, tmp_path / "first", "csv") == 2  # index 0, all members
    for indices, member, message in (
        ([2], None, "index 2: allowed: 0 to 1"),
        ([], None, "indices: got none; allowed: 0 to 1"),
        (None, 5, "member 5: allowed: 0 to 1"),
        (None, {"time_scale": 3}, "member time_scale=3: allowed: 1, 2.5"),
    ):
        with pytest.raises(gerd.GerdError, match=message):
            export_dataset(dataset, tmp_path / "out", "csv", indices=indices, member=member)
    for text in ("", "a", "-1", "3:3", "5:2", "1,,2", "0:99999999999", "4294967296"):
        with pytest.raises(gerd.GerdError, match="allowed: numbers and ranges, such as 3 or 1,4,7 or 10:20"):
            parse_indices(text)
    assert parse_indices("7, 1:4,2") == [7, 1, 2, 3, 2]
    assert not (tmp_path / "out").exists()


def test_two_exports_into_one_folder_do_not_meet(dataset: Path, tmp_path: Path) -> None:
    def second(_: int) -> None:
        with pytest.raises(gerd.StorageError, match="out: another run is writing here"):
            export_dataset(dataset, tmp_path / "out", "csv")

    export_dataset(dataset, tmp_path / "out", "csv", progress=second)
    assert not list((tmp_path / "out").glob(".*"))


def test_a_refused_folder_is_left_as_it_is(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    (tmp_path / ".notes.0123456789abcdef.tmp").write_text("mine")
    with pytest.raises(gerd.StorageError, match="holds files that are not an export"):
        export_dataset(dataset, tmp_path, "csv")
    assert (tmp_path / ".notes.0123456789abcdef.tmp").read_text() == "mine"


def test_what_is_in_the_way_is_refused(dataset: Path, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", "csv")
    with pytest.raises(gerd.StorageError, match="holds a different export: format is csv there and npz here"):
        export_dataset(dataset, tmp_path / "out", "npz")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(gerd.StorageError, match="mine: holds files that are not an export"):
        export_dataset(dataset, tmp_path / "mine", "csv")
    with pytest.raises(gerd.StorageError, match=r"thesis\.txt: is a file; a folder is needed to write into"):
        export_dataset(dataset, tmp_path / "mine" / "thesis.txt", "csv")
    with pytest.raises(gerd.StorageError, match="there is no such dataset"):
        export_dataset(tmp_path / "nothing", tmp_path / "new", "csv")
    with pytest.raises(gerd.GerdError, match=r"format 'mp4': allowed: .*npz, parquet, frames, voltmeter"):
        export_dataset(dataset, tmp_path / "new", "mp4")
    (tmp_path / "out" / "export.json").write_text("[1")
    with pytest.raises(gerd.StorageError, match=r"export\.json: cannot be read"):
        export_dataset(dataset, tmp_path / "out", "csv")
    assert not (tmp_path / "new").exists()


def test_an_unfinished_dataset_is_refused(dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "data")
    unfinish(tmp_path / "data")
    with pytest.raises(gerd.StorageError, match="the dataset is not complete"):
        export_dataset(tmp_path / "data", tmp_path / "out", "csv")


def test_a_refused_format_leaves_the_folder_free_for_another(tmp_path: Path) -> None:
    wide = config(actor(size=3.0), width=2100, height=4, steps=1)
    gerd.generate(wide, tmp_path / "wide", 1, workers=1)
    with pytest.raises(gerd.GerdError, match=r"000000\.raw: evt2 holds frames of up to 2048×2048, not 2100×4"):
        export_dataset(tmp_path / "wide", tmp_path / "out", "evt2")
    assert export_dataset(tmp_path / "wide", tmp_path / "out", "aedat4") == 1


# The grey-level video


@pytest.fixture
def still(tmp_path: Path) -> Path:
    """A square of 4 × 4 pixels that covers half of the pixels at its left and right."""
    chosen = config(actor(at=[8.5, 6], size=4.0, intensity=0.5), width=16, height=12, steps=3, step_us=250)
    gerd.generate(chosen, tmp_path / "still", 1, workers=1)
    return tmp_path / "still"


def test_frames_show_the_brightness(still: Path, tmp_path: Path) -> None:
    export_dataset(still, tmp_path / "out", "frames", levels=(40, 240))
    folder = tmp_path / "out" / "000000"
    assert (folder / "timestamps.txt").read_text().split() == ["0.000000", "0.000250", "0.000500"]
    wanted = np.full((12, 16), 40)
    wanted[4:8, 7:10] = 140
    wanted[4:8, [6, 10]] = 90
    pictures = sorted((folder / "imgs").iterdir())
    assert [file.name for file in pictures] == ["00000000.png", "00000001.png", "00000002.png"]  # v2e: nothing else
    for file in pictures:
        with Image.open(file) as picture:
            assert picture.mode == "L"
            assert np.array_equal(np.asarray(picture), wanted)
    assert sorted(file.name for file in folder.iterdir()) == ["imgs", "timestamps.txt"]  # rpg_vid2e: nothing else
    assert len((tmp_path / "out" / "000000.truth.jsonl").read_text().splitlines()) == 4


def test_voltmeter_finds_each_picture_and_its_time(
    still: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its main.py takes the two words of each line: what it hands to OpenCV, and a whole number of microseconds."""
    monkeypatch.chdir(tmp_path)
    export_dataset(still, Path("out"), "voltmeter", levels=(40, 240))
    export_dataset(still, Path("frames"), "frames", levels=(40, 240))
    monkeypatch.chdir(still)  # it may run anywhere
    lines = (tmp_path / "out" / "000000" / "info.txt").read_text().splitlines()
    assert [int(line.split()[1]) for line in lines] == [0, 250, 500]
    wanted = sorted((tmp_path / "frames" / "000000" / "imgs").iterdir())
    for line, other in zip(lines, wanted, strict=True):
        path, _ = line.split()
        with Image.open(path) as picture, Image.open(other) as same:
            assert picture.mode == "L"
            assert np.array_equal(np.asarray(picture), np.asarray(same))


def test_voltmeter_would_not_find_a_path_with_a_blank(still: Path, tmp_path: Path) -> None:
    with pytest.raises(gerd.GerdError, match=r"my data/000000/00000000\.png: DVS-Voltmeter takes no blanks in a path"):
        export_dataset(still, tmp_path / "my data", "voltmeter")
    assert not (tmp_path / "my data" / "000000").exists()


def test_grey_values_that_do_not_fit_are_refused(still: Path, tmp_path: Path) -> None:
    with pytest.raises(gerd.GerdError, match="grey values from 100 to 300 do not fit into 8 bits; choose other levels"):
        export_dataset(still, tmp_path / "out", "frames", levels=(100, 500))
    assert not (tmp_path / "out" / "000000").exists()


def caused(format: str, path: Path) -> dict[str, Any]:
    """The columns of a file, read by programs that did not write it."""
    if format == "csv":
        table = pd.read_csv(path)
        assert list(table.columns) == ["t", "x", "y", "p", "actor", "vx", "vy", "echo", "source", "fired_us"]
        return {name: table[name].to_numpy() for name in table.columns}
    if format == "npz":
        found = np.load(path, allow_pickle=False)
        return {name: found[name] for name in found.files}
    import h5py

    with h5py.File(path) as file:
        found = file["events"][:]
        return {name: found[name] for name in found.dtype.names}


@pytest.mark.parametrize("format", ["csv", "npz", "hdf5"])
def test_the_causes_of_events_are_columns(format: str, dataset: Path, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", format, causes=True)
    for i, recording in enumerate(gerd.Recordings(dataset)):
        found = caused(format, tmp_path / "out" / f"{i:06d}{FORMATS[format].suffix}")
        for name in ("t", "x", "y", "p"):
            np.testing.assert_array_equal(found[name], recording.events[name])
        np.testing.assert_array_equal(found["actor"], recording.actor)
        np.testing.assert_array_equal(found["echo"].astype(bool), recording.echo)
        np.testing.assert_array_equal(found["source"], recording.source)
        np.testing.assert_array_equal(found["fired_us"], recording.fired_us)
        np.testing.assert_array_equal(np.stack([found["vx"], found["vy"]], axis=1), recording.event_flow)
    with pytest.raises(gerd.StorageError, match="holds a different export: causes is True there and None here"):
        export_dataset(dataset, tmp_path / "out", format)


def test_a_format_without_room_for_causes_says_so(dataset: Path, tmp_path: Path) -> None:
    message = "evt2 has no room for them; allowed with hdf5, csv, npz, parquet"
    with pytest.raises(gerd.GerdError, match=message):
        export_dataset(dataset, tmp_path / "out", "evt2", causes=True)
    with pytest.raises(gerd.GerdError, match="frames has no room for them"):
        export_dataset(dataset, tmp_path / "out", "frames", causes=True)
    assert not (tmp_path / "out").exists()
    table = gerd.Recordings(dataset)[0].events_with_causes
    with pytest.raises(gerd.GerdError, match="rpg has no room for the causes of events"):
        write_events(tmp_path / "events.txt", table, width=99, height=99, format="rpg")


def test_the_command_lists_every_format() -> None:
    from typer.testing import CliRunner

    from gerd.cli.app import app

    shown = CliRunner().invoke(app, ["export", "--help"], terminal_width=200).output
    for name in (*formats.FORMATS, "parquet", "frames", "voltmeter"):
        assert name in shown

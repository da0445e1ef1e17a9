"""Parquet: pandas and Hugging Face's `datasets` read every event and every number of the ground truth."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.scenes import actor, config, two_moving

import gerd
from gerd.exchange import parquet
from gerd.recording.recording import Recording

COUNT = 33  # of two members: two shards


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "shapes"
    gerd.generate(two_moving({"actors.0.shape": ["square", "triangle"], "time_scale": [2.5]}), path, COUNT, workers=1)
    return path


@pytest.fixture(scope="module")
def exported(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parquet") / "out"
    made: list[int] = []
    assert gerd.export_dataset(dataset, out, "parquet", progress=made.append) == 2 * COUNT
    assert made == [64, 2]
    return out


def wanted(recording: Recording) -> dict[str, Any]:
    """What a row has to hold in its lists."""
    names = ("parameters", "parameters_velocity", "parameters_acceleration")
    return {
        **{name: recording.events[name] for name in "txyp"},
        "background": recording.background,
        **{name: recording.truth[:, :, order] for order, name in enumerate(names)},
        "matrix": recording.T,
        "matrix_velocity": recording.T_velocity,
        "matrix_acceleration": recording.T_acceleration,
        "boxes": recording.boxes(),
    }


def test_times_of_a_recording_that_the_path_makes_longer_than_int32_are_whole(tmp_path: Path) -> None:
    """Of 20 minutes at a quarter of the speed: 80 minutes, of which 32 bits of microseconds hold 35."""
    slow = {"factor": 0.25, "keep": "path"}
    family = config(actor(velocity=[0.1, 0]), steps=20, step_us=60_000_000, time_scale=slow)
    assert gerd.export_dataset(family, tmp_path / "out", "parquet") == 1
    (file,) = (tmp_path / "out" / "data").iterdir()
    (row,) = pq.read_table(file).to_pylist()
    assert row["t"] == gerd.simulate(family).events["t"].tolist()
    assert max(row["t"]) > 2**31


def assert_row(row: Any, position: int, recording: Recording) -> None:
    """A mapping of columns says what the recording says, to the last bit."""
    index, member = divmod(position, 2)
    assert (row["recording"], row["index"], row["member"]) == (position, index, member)
    assert (row["sweep.actors.0.shape"], row["sweep.time_scale"]) == (["square", "triangle"][member], 2.5)
    assert (row["width"], row["height"], row["steps"], row["step_us"]) == (40, 30, 6, 1000)
    assert list(row["shapes"]) == [["square", "triangle"][member], "circle"]
    assert row["digest"] == recording.digest
    for name, values in wanted(recording).items():
        assert np.array_equal(_plain(row[name]), values), name


def _plain(values: Any) -> list[Any]:
    """pandas gives arrays of arrays."""
    return [_plain(value) if isinstance(value, np.ndarray | list) else value for value in values]


def test_the_files_are_those_of_the_shards(dataset: Path, exported: Path) -> None:
    index = json.loads((exported / "export.json").read_text())
    assert index["complete"]
    assert index["format"] == "parquet"
    files = [("data/shard-000000.parquet", 0, 64), ("data/shard-000001.parquet", 64, 2)]
    assert [(entry["file"], entry["first"], entry["recordings"]) for entry in index["files"]] == files
    assert set(contents(exported)) == {"export.json", *(name for name, *_ in files)}
    assert [pq.read_metadata(exported / name).num_rows for name, *_ in files] == [64, 2]
    about = json.loads(pq.read_schema(exported / "data" / "shard-000001.parquet").metadata[b"gerd"])
    assert about["config_digest"] == gerd.Recordings(dataset).manifest.config_digest
    assert about["parameters"] == ["x", "y", "scale_x", "scale_y", "rotation", "shear"]


def test_integers_are_small_and_everything_is_compressed(exported: Path) -> None:
    schema = pq.read_schema(exported / "data" / "shard-000000.parquet")
    kinds = {name: schema.field(name).type.value_type for name in ("t", "x", "y", "p", "background")}
    assert kinds == {"t": pa.int32(), "x": pa.int16(), "y": pa.int16(), "p": pa.int8(), "background": pa.bool_()}
    group = pq.read_metadata(exported / "data" / "shard-000000.parquet").row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}
    names = [name.lower() for name in schema.names]
    assert len(set(names)) == len(names)  # some readers do not tell t from T


def test_pandas_reads_them(dataset: Path, exported: Path) -> None:
    table = pd.read_parquet(exported / "data")
    recordings = gerd.Recordings(dataset)
    assert len(table) == len(recordings)
    for position, recording in enumerate(recordings):
        assert len(recording) > 50
        assert_row(table.iloc[position], position, recording)
    events = table[["recording", "t", "x", "y", "p"]].explode(["t", "x", "y", "p"])
    assert len(events) == sum(map(len, recordings))
    seventh = events[events["recording"] == 7]
    assert seventh["x"].tolist() == recordings[7].events["x"].tolist()


@pytest.mark.parametrize("streaming", [False, True])
def test_hugging_face_reads_them(streaming: bool, dataset: Path, exported: Path, tmp_path: Path) -> None:
    files = str(exported / "data" / "*.parquet")
    data = datasets.load_dataset(
        "parquet", data_files=files, split="train", streaming=streaming, cache_dir=str(tmp_path)
    )
    recordings = gerd.Recordings(dataset)
    rows = list(data)
    assert len(rows) == len(recordings)
    for position, (row, recording) in enumerate(zip(rows, recordings, strict=True)):
        assert_row(row, position, recording)


def test_hugging_face_gives_tensors(dataset: Path, exported: Path, tmp_path: Path) -> None:
    data = datasets.load_dataset(str(exported), split="train", cache_dir=str(tmp_path))  # the folder will do
    recording = gerd.Recordings(dataset)[65]
    row = data.with_format("numpy", dtype=np.float64)[65]
    assert row["matrix"].shape == (6, 2, 3, 3)
    assert np.array_equal(row["matrix"], recording.T)
    tensors = data.select_columns(["t", "p", "y", "x", "boxes"]).with_format("torch")[65]
    assert tensors["boxes"].shape == (6, 2, 4)
    frames = np.zeros((6, 2, 30, 40), bool)
    frames[tensors["t"] // 1000, tensors["p"], tensors["y"], tensors["x"]] = True
    assert np.array_equal(frames, recording.frames().numpy())


def test_the_step_of_an_exact_event_is_its_time_rounded_up(tmp_path: Path) -> None:
    """The recipe of the documents, on both timings."""
    for timing in ("exact", "step"):
        chosen = config(actor(velocity=[1.3, 0.4]), steps=9, step_us=700, timing=timing)
        gerd.export_dataset(chosen, tmp_path / timing, "parquet")
        table = pd.read_parquet(tmp_path / timing / "data")
        row = table.iloc[0]
        counts = np.zeros((9, 2, 12, 16), int)
        step = -(-row["t"] // row["step_us"])
        np.add.at(counts, (step, row["p"], row["y"], row["x"]), 1)
        recording = gerd.simulate(chosen)
        assert np.array_equal(counts, recording.frames(counts=True).numpy())
        assert counts.sum() == len(recording) > 20
        assert (recording.events["t"] % 700).any() == (timing == "exact")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_an_interrupted_export_goes_on(
    dataset: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gerd.export_dataset(dataset, tmp_path / "out", "parquet", progress=stop)
    assert set(contents(tmp_path / "out")) == {"export.json", ".finished.jsonl", "data/shard-000000.parquet"}
    (tmp_path / "out" / "data" / ".shard-000001.parquet.0123456789abcdef.tmp").write_text("left by a killed run")
    whole = parquet.write_rows
    written: list[str] = []

    def watched(path: Path, *rest: Any) -> None:
        written.append(path.name)
        whole(path, *rest)

    monkeypatch.setattr(parquet, "write_rows", watched)
    gerd.export_dataset(dataset, tmp_path / "out", "parquet")
    assert written == ["shard-000001.parquet"]
    assert contents(tmp_path / "out") == contents(exported)


def test_a_shard_is_written_whole_or_not_at_all(dataset: Path, tmp_path: Path) -> None:
    """The last of the recordings cannot be read."""
    schema = parquet.schema_of(gerd.Recordings(dataset).config)

    def broken() -> Any:
        yield 0, gerd.Recordings(dataset)[0]
        raise gerd.StorageError("gone")

    with pytest.raises(gerd.StorageError, match="gone"):
        parquet.write_rows(tmp_path / "a.parquet", schema, broken())
    assert not list(tmp_path.iterdir())


def test_the_causes_of_events_are_columns(dataset: Path, tmp_path: Path) -> None:
    gerd.export_dataset(dataset, tmp_path / "out", "parquet", causes=True)
    table = pd.read_parquet(tmp_path / "out" / "data")
    recordings = gerd.Recordings(dataset)
    for position in (0, 7, 65):
        row, recording = table.iloc[position], recordings[position]
        assert_row(row, position, recording)
        np.testing.assert_array_equal(row["actor"], recording.actor)
        np.testing.assert_array_equal(row["echo"], recording.echo)
        np.testing.assert_array_equal(row["source"], recording.source)
        np.testing.assert_array_equal(row["fired_us"], recording.fired_us)
        np.testing.assert_array_equal(np.stack([row["vx"], row["vy"]], axis=1), recording.event_flow)
        assert 0 < recording.background.sum() == np.isnan(row["vx"]).sum()
    kinds = pq.read_schema(tmp_path / "out" / "data" / "shard-000000.parquet")
    assert kinds.field("actor").type.value_type == pa.int16()


def test_many_events_are_written_in_pieces(dataset: Path, exported: Path, tmp_path: Path) -> None:
    data = gerd.Recordings(dataset)
    file = tmp_path / "shard-000000.parquet"
    parquet.write_rows(file, parquet.schema_of(data.config), enumerate(data[:64]), at_once=1000)
    assert 5 < pq.read_metadata(file).num_row_groups < 64
    assert pq.read_table(file).equals(pq.read_table(exported / "data" / file.name))


def test_long_recordings_without_events_and_mixed_sweeps(tmp_path: Path) -> None:
    outline = {"polygon": [[0, 0], [1, 0], [0, 1]]}
    still = config(
        actor(),
        width=16,
        height=12,
        steps=3,
        step_us=10**9,
        sweep={"actors.0.shape": ["circle", outline], "steps": [2, 3]},
    )
    gerd.generate(still, tmp_path / "data", 1, workers=1)
    gerd.export_dataset(tmp_path / "data", tmp_path / "out", "parquet")
    table = pq.read_table(tmp_path / "out" / "data" / "shard-000000.parquet")
    assert table.schema.field("t").type.value_type == pa.int64()
    rows, recordings = table.to_pylist(), list(gerd.Recordings(tmp_path / "data"))
    shapes = [row["sweep.actors.0.shape"] for row in rows]
    assert shapes[:2] == ["circle", "circle"]
    assert json.loads(shapes[3]) == recordings[3].identity.labels["actors.0.shape"]
    assert [row["sweep.steps"] for row in rows] == [2, 3, 2, 3]
    for row, recording in zip(rows, recordings, strict=True):
        assert len(row["parameters"]) == recording.steps
        for name, values in wanted(recording).items():
            assert row[name] == values.tolist()
    assert not len(recordings[0])


def test_a_missing_package_is_named(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(gerd.GerdError, match=r"needs the package pyarrow: pip install 'gerd-events\[export\]'"):
        gerd.export_dataset(dataset, tmp_path / "out", "parquet")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_of_the_shards_is_named(dataset: Path, tmp_path: Path) -> None:
    gerd.export_dataset(dataset, tmp_path / "out", "parquet")
    shutil.rmtree(tmp_path / "out" / "data")
    (tmp_path / "out" / "data").touch()
    with pytest.raises(gerd.StorageError, match="data: is a file; a folder is needed to write into"):
        gerd.export_dataset(dataset, tmp_path / "out", "parquet")

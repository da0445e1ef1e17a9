"""Recordings to Parquet files, which pandas, Polars, DuckDB and Hugging Face's `datasets` read: a row is a recording.

A row says what the recording is, has its events as the lists t, x, y, p and background, and its ground truth as nested
lists (steps, actors, …). Times are in microseconds, lengths in pixels, angles in radians, derivatives per step. Numbers
are those of `Recording`, to the last bit. All files of a dataset have the same columns. The causes of events are six
columns more: the lists actor, vx, vy, echo, source and fired_us.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.sweep import lengths, member_count
from gerd.geometry.parameters import PARAMETERS
from gerd.recording.recording import CAUSE_FIELDS, Recording
from gerd.storage.whole import written_whole

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]  # by column: a number, a text, a list or an array

AT_ONCE = 2**20  # events and parameters in the rows that are written together
LEVEL = 9  # of zstd; higher ones hardly gain anything
IN_DICTIONARY = ("t", "x", "y", "p", "actor", "source", "fired_us")
REPEATED = [f"{name}.list.element" for name in IN_DICTIONARY]  # columns that a dictionary makes smaller
SWEPT = "sweep."  # and the path: the name of a column of swept values


def schema_of(config: Config, causes: bool = False) -> pa.Schema:
    """The columns for recordings of a config; times are int32 if the longest recording allows it."""
    import pyarrow as pa

    last = max(lengths(config)) * max([config.step_us, *config.sweep.get("step_us", [])])  # microseconds
    columns = {
        **dict.fromkeys(("recording", "index", "member"), pa.int64()),
        **{SWEPT + path: _type_of(list(values)) for path, values in config.sweep.items()},
        **dict.fromkeys(("width", "height", "steps", "step_us"), pa.int32()),
        "shapes": pa.list_(pa.string()),
        "digest": pa.string(),
        "t": pa.list_(pa.int32() if last <= 2**31 else pa.int64()),
        **dict.fromkeys(("x", "y"), pa.list_(pa.int16())),
        "p": pa.list_(pa.int8()),
        "background": pa.list_(pa.bool_()),
        **({name: pa.list_(pa.from_numpy_dtype(kind)) for name, kind in CAUSE_FIELDS} if causes else {}),
        **dict.fromkeys(("parameters", "parameters_velocity", "parameters_acceleration"), _nested(3)),
        **dict.fromkeys(("matrix", "matrix_velocity", "matrix_acceleration"), _nested(4)),
        "boxes": _nested(3),
    }
    about = {"config_digest": config.digest, "parameters": PARAMETERS}
    return pa.schema(list(columns.items()), {"gerd": json.dumps(about)})


def _type_of(values: list[object]) -> pa.DataType:
    """The type of a column of swept values: text, for lines of JSON, if they are not of one kind."""
    import pyarrow as pa

    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.string()
    return column.type if column.to_pylist() == values else pa.string()


def _nested(depth: int) -> pa.DataType:
    import pyarrow as pa

    return pa.float64() if depth == 0 else pa.list_(_nested(depth - 1))


def write_rows(
    path: Path, schema: pa.Schema, recordings: Iterable[tuple[int, Recording]], at_once: int = AT_ONCE
) -> None:
    """Write recordings, each with its row in the dataset, to one file; `at_once` numbers or more at a time."""
    from pyarrow.parquet import ParquetWriter

    with (
        written_whole(path) as temporary,
        ParquetWriter(temporary, schema, compression="zstd", compression_level=LEVEL, use_dictionary=REPEATED) as file,
    ):
        rows = []
        size = 0
        for number, recording in recordings:
            rows.append(_row(schema, number, recording))
            size += len(recording) + recording.truth.size
            if size >= at_once:
                file.write_table(_table(schema, rows))
                rows = []
                size = 0
        if rows:
            file.write_table(_table(schema, rows))


def _row(schema: pa.Schema, number: int, recording: Recording) -> Row:
    import pyarrow as pa

    labels = {SWEPT + path: value for path, value in recording.identity.labels.items()}
    for name, value in labels.items():
        if schema.field(name).type == pa.string() and not isinstance(value, str):
            labels[name] = json.dumps(value)
    causes = [name for name, _ in CAUSE_FIELDS if name in schema.names]
    events = recording.events_with_causes if causes else recording.events
    return {
        "recording": number,
        "index": recording.identity.index,
        "member": number % member_count(recording.config.family),
        **labels,
        **{name: getattr(recording, name) for name in ("width", "height", "steps", "step_us", "digest")},
        "shapes": recording.shapes,
        **{name: events[name] for name in (*"txyp", *causes)},
        "background": recording.background,
        "parameters": recording.truth[:, :, 0],
        "parameters_velocity": recording.truth[:, :, 1],
        "parameters_acceleration": recording.truth[:, :, 2],
        "matrix": recording.T,
        "matrix_velocity": recording.T_velocity,
        "matrix_acceleration": recording.T_acceleration,
        "boxes": recording.boxes(),
    }


def _table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        is_array = isinstance(values[0], np.ndarray)
        columns.append(_lists(values).cast(field.type) if is_array else pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _lists(arrays: Sequence[NDArray[np.generic]]) -> pa.ListArray:
    """Arrays with the same number of axes, each as a list of lists."""
    import pyarrow as pa

    values = pa.array(np.concatenate([array.ravel() for array in arrays]))
    for axis in reversed(range(arrays[0].ndim)):
        lengths = [np.full(int(np.prod(array.shape[:axis])), array.shape[axis]) for array in arrays]
        ends = np.cumsum(np.concatenate(lengths))
        values = pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), values)
    return values

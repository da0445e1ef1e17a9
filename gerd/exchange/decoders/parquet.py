"""Parquet as `gerd export --format parquet` writes it: a row for each recording, with the lists t, x, y and p."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np

from gerd.errors import GerdError, StorageError, check_whole
from gerd.exchange.decoders.arrays import blocks_of
from gerd.exchange.decoders.columns import Column
from gerd.exchange.decoders.opened import Damage, Opened, read_by_others
from gerd.exchange.packages import package

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
COLUMNS = ("width", "height", "t", "x", "y", "p")


def open_file(file: IO[bytes], damage: Damage, row: int | None) -> Opened:
    """The recording in a row of a Parquet file."""
    parquet = package("pyarrow.parquet")
    if row is not None:
        check_whole(f"{damage.path}: row", row, 0)
    with read_by_others(damage.path, "Parquet"):
        content = parquet.ParquetFile(file)
        for name in COLUMNS:
            if content.schema_arrow.names.count(name) != 1:
                raise StorageError(f"{damage.path}: has no column {name}; allowed: Parquet as gerd export writes it")
        count = content.metadata.num_rows
        if row is None and count != 1:
            raise GerdError(f"{damage.path}: has {count} recordings; allowed: row= of one of them, from 0 on")
        if (row or 0) >= count:
            raise GerdError(f"{damage.path}: row {row}: allowed: 0 to {count - 1}")
        found = _row(content, row or 0, damage)
        columns = {name: _list(found[name][0], name, damage) for name in "txyp"}
        size = (found["width"][0].as_py(), found["height"][0].as_py())
    return Opened("parquet", size, blocks_of(damage, columns))


def _row(content: ParquetFile, row: int, damage: Damage) -> pa.Table:
    """A row as a table, of which no more is read than its group of rows.

    How many values that has is not looked up: where this is damaged, pyarrow ends the whole process.
    """
    for group in range(content.num_row_groups):
        count = content.metadata.row_group(group).num_rows
        if row < count:
            return content.read_row_group(group, columns=list(COLUMNS)).slice(row, 1)
        row -= count
    raise StorageError(f"{damage.path}: its groups of rows have fewer rows than it says")


def _list(value: pa.ListScalar, name: str, damage: Damage) -> Column:
    """The numbers of a list."""
    if not hasattr(value, "values") or not value.is_valid:
        raise StorageError(f"{damage.path}: its column {name} has {value.type}, or nothing; allowed: lists of numbers")
    return np.asarray(value.values)

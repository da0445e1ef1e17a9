"""Parquet as `gerd export --format parquet` writes it: a row for each recording, with the lists t, x, y and p."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from gerd.errors import GerdError, StorageError
from gerd.exchange.decoders.arrays import blocks_of
from gerd.exchange.decoders.opened import Damage, Opened, Rows
from gerd.exchange.packages import package

MAGIC = b"PAR1"
COLUMNS = ("width", "height", "t", "x", "y", "p")


def open_file(file: IO[bytes], damage: Damage, row: int | None) -> Opened:
    """The recording in a row of a Parquet file."""
    arrow = package("pyarrow")
    parquet = package("pyarrow.parquet")
    try:
        content = parquet.ParquetFile(file)
        missing = [name for name in COLUMNS if name not in content.schema_arrow.names]
        if missing:
            raise StorageError(f"{damage.path}: has no column {missing[0]}; allowed: Parquet as gerd export writes it")
        count = content.metadata.num_rows
        if row is None and count != 1:
            raise GerdError(f"{damage.path}: has {count} recordings; allowed: row= of one of them, from 0 on")
        if not 0 <= (row or 0) < count:
            raise GerdError(f"{damage.path}: row {row}: allowed: 0 to {count - 1}")
        found = _row(content, row or 0)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise StorageError(f"{damage.path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    columns = {name: np.asarray(found[name][0].values) for name in "txyp"}
    return Opened("parquet", (found["width"][0].as_py(), found["height"][0].as_py()), _blocks(damage, columns))


def _row(content: Any, row: int) -> Any:
    """A row as a table, of which no more is read than its group of rows."""
    for group in range(content.num_row_groups):
        count = content.metadata.row_group(group).num_rows
        if row < count:
            return content.read_row_group(group, columns=list(COLUMNS)).slice(row, 1)
        row -= count
    raise StorageError("its groups of rows have fewer rows than it says")


def _blocks(damage: Damage, columns: dict[str, Any]) -> Iterator[Rows]:
    yield from blocks_of(damage, columns)

"""Files of numpy: a structured array (.npy), or arrays t, x, y and p, or one of these by the name `events` (.npz).

Nothing is unpickled. The arrays are held in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import StorageError
from gerd.exchange.decoders.columns import by_name, from_columns
from gerd.exchange.decoders.opened import ROWS_AT_ONCE, Damage, Opened, Rows

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"
FIELDS = "allowed: a structured array with the fields t, x, y and p, or arrays of these names"


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """A .npy or .npz file, from its beginning on."""
    try:
        content = np.load(file, allow_pickle=False)
        arrays = {"events": content} if isinstance(content, np.ndarray) else dict(content)
    except Exception as error:  # numpy, zipfile and zlib raise many kinds for a damaged file
        raise StorageError(f"{damage.path}: cannot be read as an array of numpy: {error}") from None
    size = tuple(int(arrays[name]) for name in ("width", "height") if name in arrays and arrays[name].ndim == 0)
    columns = _columns(arrays)
    if columns is None:
        has = ", ".join(f"{name} ({array.dtype}, {array.shape})" for name, array in arrays.items())
        raise StorageError(f"{damage.path}: has {has}; {FIELDS}")
    return Opened("numpy", (size[0], size[1]) if len(size) == 2 else None, blocks_of(damage, columns))


def _columns(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]] | None:
    if (named := by_name(arrays)) is not None:
        return {name: arrays[named[name]] for name in "txyp"}
    for array in arrays.values():
        named = by_name(array.dtype.names or ())
        if named is not None and array.ndim == 1:
            return {name: array[named[name]] for name in "txyp"}
    return None


def blocks_of(damage: Damage, columns: Mapping[str, Any]) -> Iterator[Rows]:
    """The blocks of columns of equal length, which may be arrays or data sets that are read when they are sliced."""
    lengths = {name: column.shape for name, column in columns.items()}
    if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise StorageError(f"{damage.path}: its columns have the shapes {lengths}; allowed: one axis of equal length")
    (count,) = lengths["t"]
    for begin in range(0, count, ROWS_AT_ONCE):
        yield from_columns(damage, *(np.asarray(columns[name][begin : begin + ROWS_AT_ONCE]) for name in "txyp"))

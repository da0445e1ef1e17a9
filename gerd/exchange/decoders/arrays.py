"""Files of numpy: a structured array (.npy), or arrays t, x, y and p, or one of these by the name `events` (.npz).

Nothing is unpickled. The arrays are held in memory as a whole, and what would take far more of it than the file has
bytes is refused before it is unpacked.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np

from gerd.errors import StorageError
from gerd.exchange.decoders.columns import Column, Columnar, by_name, check_columns, from_columns, whole
from gerd.exchange.decoders.opened import ROW, ROWS_AT_ONCE, Damage, Opened, Rows, most_events, read_by_others

SUFFIX = ".npy"  # of the names in a zip file
NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"
FIELDS = "allowed: a structured array with the fields t, x, y and p, or arrays of these names"


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """A .npy or .npz file, from its beginning on."""
    with read_by_others(damage.path, "an array of numpy"):
        zipped = file.read(len(ZIP)) == ZIP
        file.seek(0)
        arrays = _unzipped(file, damage) if zipped else {"events": _array(file)}
    width, height = (whole(arrays.get(name)) for name in ("width", "height"))
    columns = _columns(arrays)
    if columns is None:
        has = ", ".join(f"{name} ({array.dtype}, {array.shape})" for name, array in arrays.items())
        raise StorageError(f"{damage.path}: has {has}; {FIELDS}")
    size = None if width is None or height is None else (width, height)
    return Opened("numpy", size, blocks_of(damage, columns))


def _unzipped(file: IO[bytes], damage: Damage) -> dict[str, Column]:
    """The arrays of a zip file by their names, unless they are far larger than what a file of its size can hold."""
    most = most_events(os.fstat(file.fileno()).st_size) * ROW.itemsize
    result = {}
    with zipfile.ZipFile(file) as content:
        entries = [entry for entry in content.infolist() if entry.filename.endswith(SUFFIX)]
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > most:
            allowed = f"allowed for a file of its size: up to {most}"
            raise StorageError(f"{damage.path}: unpacks to {unpacked} bytes; {allowed}")
        for entry in entries:
            with content.open(entry) as array:
                result[entry.filename.removesuffix(SUFFIX)] = _array(array)
    return result


def _array(file: IO[bytes]) -> Column:
    """The array that a file holds, and nothing else; a zip file compares its checksum when it is read to the end."""
    array: Column = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
        raise ValueError("something follows the array")
    return array


def _columns(arrays: Mapping[str, Column]) -> dict[str, Column] | None:
    if (named := by_name(arrays)) is not None:
        return {name: arrays[named[name]] for name in "txyp"}
    for array in arrays.values():
        named = by_name(array.dtype.names or ())
        if named is not None and array.ndim == 1:
            return {name: array[named[name]] for name in "txyp"}
    return None


def blocks_of(damage: Damage, columns: Mapping[str, Columnar]) -> Iterator[Rows]:
    """The blocks of columns of equal length, which may be arrays or data sets that are read when they are sliced."""
    check_columns(damage, columns)
    for begin in range(0, len(columns["t"]), ROWS_AT_ONCE):
        yield from_columns(damage, *(np.asarray(columns[name][begin : begin + ROWS_AT_ONCE]) for name in "txyp"))

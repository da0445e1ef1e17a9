"""HDF5: a group with t, x, y and p, as DSEC and others have it, or a table of events; the first that is found.

Of a group in which times count from `t_offset`, as in DSEC, that number is added. A data set whose values lie outside
of the file, or are put together from those of others, is refused: it could name any file of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import IO, TYPE_CHECKING

import numpy as np

from gerd.errors import StorageError
from gerd.exchange.decoders.arrays import blocks_of
from gerd.exchange.decoders.columns import LAST, by_name, check_columns, from_columns, whole
from gerd.exchange.decoders.opened import (
    MOST_UNPACKED,
    ROWS_AT_ONCE,
    Damage,
    Opened,
    Rows,
    read_by_others,
)
from gerd.exchange.packages import package

if TYPE_CHECKING:
    import h5py

MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_OBJECTS = 1000  # groups and data sets among which events are looked for
OFFSET = "t_offset"


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """An HDF5 file."""
    package("h5py")  # or an error that says what to install
    import h5py

    with read_by_others(damage.path, "HDF5"):
        content = h5py.File(file, "r")
        found = _found(content, damage)
        if found is None:
            raise StorageError(f"{damage.path}: has no group with t, x, y and p, and no table with these fields")
        return Opened("hdf5", _size(content, found), _blocks(content, found, damage))


def _found(content: h5py.File, damage: Damage) -> h5py.Group | h5py.Dataset | None:
    """The group or table of events."""
    import h5py

    seen = 0

    def look(_: str, item: object) -> h5py.Group | h5py.Dataset | None:
        nonlocal seen
        seen += 1
        if seen > MOST_OBJECTS:
            raise StorageError(f"{damage.path}: has no events among its first {MOST_OBJECTS} groups and data sets")
        if isinstance(item, h5py.Group):
            return item if by_name(item.keys()) is not None else None
        is_table = isinstance(item, h5py.Dataset) and by_name(item.dtype.names or ()) is not None
        return item if is_table else None

    return content if by_name(content.keys()) is not None else content.visititems(look)


def _size(content: h5py.File, found: h5py.Group | h5py.Dataset) -> tuple[int, int] | None:
    for attributes in (found.attrs, content.attrs):
        width, height = whole(attributes.get("width")), whole(attributes.get("height"))
        if width is not None and height is not None:
            return width, height
        resolution = np.asarray(attributes.get("sensor_resolution"))
        if resolution.shape == (2,) and resolution.dtype.kind in "iu":
            return int(resolution[1]), int(resolution[0])
    return None


def _blocks(content: h5py.File, found: h5py.Group | h5py.Dataset, damage: Damage) -> Iterator[Rows]:
    import h5py

    with read_by_others(damage.path, "HDF5"):
        offset = _offset(content, damage)
        if isinstance(found, h5py.Group):
            named = by_name(found.keys()) or {}
            columns = {name: _data_set(found, named[name], damage) for name in "txyp"}
            blocks = blocks_of(damage, columns)
        else:
            named = by_name(found.dtype.names) or {}
            blocks = _of_table(_data_set(found.parent, found.name, damage), named, damage)
        for block in blocks:
            block["t"] += offset
            yield block


def _of_table(table: h5py.Dataset, named: Mapping[str, str], damage: Damage) -> Iterator[Rows]:
    """The blocks of a data set each value of which is an event."""
    if len(table.shape or ()) != 1:
        raise StorageError(f"{damage.path}: its table of events has the shape {table.shape}; allowed: one axis")
    for begin in range(0, len(table), ROWS_AT_ONCE):
        rows = table[begin : begin + ROWS_AT_ONCE]
        columns = {name: rows[named[name]] for name in "txyp"}
        check_columns(damage, columns)
        yield from_columns(damage, *columns.values())


def _offset(content: h5py.File, damage: Damage) -> int:
    """The time from which times count."""
    if OFFSET not in content:
        return 0
    given = _data_set(content, OFFSET, damage)
    offset = whole(given[()]) if given.shape in ((), (1,)) else None
    if offset is None or abs(offset) >= LAST:
        raise StorageError(f"{damage.path}: {OFFSET}: allowed: a whole number within ±{LAST}")
    return offset


def _data_set(group: h5py.Group, name: str, damage: Damage) -> h5py.Dataset:
    """A data set of a group, whose values are in this file, and can be read in parts that fit into memory."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise StorageError(f"{damage.path}: {name} is a link; allowed: a data set in the file itself")
    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise StorageError(f"{damage.path}: {name} is no data set; allowed: a data set of numbers")
    if found.is_virtual or found.external:
        raise StorageError(f"{damage.path}: {name} has its values elsewhere; allowed: a data set in the file itself")
    part = prod(found.chunks or ()) * found.dtype.itemsize
    if part > MOST_UNPACKED:
        raise StorageError(f"{damage.path}: {name} is kept in parts of {part} bytes; allowed: up to {MOST_UNPACKED}")
    return found

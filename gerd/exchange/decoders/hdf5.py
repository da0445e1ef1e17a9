"""HDF5: a group with t, x, y and p, as DSEC and others have it, or a table of events; the first that is found.

Of a group in which times count from `t_offset`, as in DSEC, that number is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from gerd.errors import StorageError
from gerd.exchange.decoders.arrays import blocks_of
from gerd.exchange.decoders.columns import by_name, from_columns
from gerd.exchange.decoders.opened import ROWS_AT_ONCE, Damage, Opened, Rows
from gerd.exchange.packages import package

MAGIC = b"\x89HDF\r\n\x1a\n"


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """An HDF5 file."""
    h5py = package("h5py")
    try:
        content = h5py.File(file, "r")
        found = _found(h5py, content)
        size = None if found is None else _size(content, found)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise _unreadable(damage.path, error) from None
    if found is None:
        raise StorageError(f"{damage.path}: has no group with t, x, y and p, and no table with these fields")
    return Opened("hdf5", size, _checked(damage.path, _blocks(h5py, content, found, damage)))


def _found(h5py: Any, content: Any) -> Any:
    """The group or table of events."""

    def look(_: str, item: Any) -> Any:
        names = item.keys() if isinstance(item, h5py.Group) else item.dtype.names or ()
        return item if by_name(names) is not None else None

    return content if by_name(content.keys()) is not None else content.visititems(look)


def _size(content: Any, found: Any) -> tuple[int, int] | None:
    for attributes in (found.attrs, content.attrs):
        if "width" in attributes and "height" in attributes:
            return int(attributes["width"]), int(attributes["height"])
        if "sensor_resolution" in attributes and len(attributes["sensor_resolution"]) == 2:
            height, width = attributes["sensor_resolution"]
            return int(width), int(height)
    return None


def _blocks(h5py: Any, content: Any, found: Any, damage: Damage) -> Iterator[Rows]:
    offset = int(np.asarray(content["t_offset"]).item()) if "t_offset" in content else 0
    if isinstance(found, h5py.Group):
        named = by_name(found.keys()) or {}
        blocks = blocks_of(damage, {name: found[named[name]] for name in "txyp"})
    else:
        named = by_name(found.dtype.names) or {}
        tables = (found[begin : begin + ROWS_AT_ONCE] for begin in range(0, len(found), ROWS_AT_ONCE))
        blocks = (from_columns(damage, *(table[named[name]] for name in "txyp")) for table in tables)
    for block in blocks:
        block["t"] += offset
        yield block


def _checked(path: Path, blocks: Iterator[Rows]) -> Iterator[Rows]:
    """The blocks; what h5py says of damage is our error."""
    try:
        yield from blocks
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> StorageError:
    return StorageError(f"{path}: cannot be read as HDF5: {str(error).splitlines()[0] if str(error) else error!r}")

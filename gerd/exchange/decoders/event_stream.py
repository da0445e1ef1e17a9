"""Event Stream files, read by faery, of which 0.7.1 turns their y upside down: here it is turned back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gerd.errors import StorageError
from gerd.exchange.decoders.opened import Damage, Opened, Rows, rows_of
from gerd.exchange.packages import package

MAGIC = b"Event Stream"


def open_file(damage: Damage) -> Opened:
    """An Event Stream file."""
    library = package("faery")
    try:
        stream = library.events_stream_from_file(damage.path, file_type="es")
        width, height = stream.dimensions()
    except Exception as error:  # faery's errors are of any kind
        raise _unreadable(damage, error) from None
    return Opened("es", (width, height), _blocks(stream, height, damage))


def _blocks(stream: Iterable[NDArray[np.void]], height: int, damage: Damage) -> Iterator[Rows]:
    try:
        for part in stream:
            yield rows_of(part["x"], height - 1 - part["y"].astype(np.int64), part["t"], part["on"])
    except Exception as error:
        if not damage.repair:
            raise _unreadable(damage, error) from None
        damage.found("the rest of the file", 1, str(error))


def _unreadable(damage: Damage, error: Exception) -> StorageError:
    return StorageError(f"{damage.path}: faery cannot read it: {str(error).splitlines()[0] if str(error) else error!r}")

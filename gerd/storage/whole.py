"""The one way in which a file of this machine is written: whole, and on the disk, or not at all.

What is written gets a temporary name of its own beside its place, `.NAME.XXXXXXXXXXXXXXXX.tmp`, is flushed to the disk
and then takes its place. Whatever kills the program leaves the old file or the new one; a temporary that it leaves is
known by its name.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gerd.errors import StorageError

TRIES = 5  # to write a file whose temporary one another run took for a leftover
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is what a killed run has left."""
    return _TEMPORARY.fullmatch(name) is not None


def write_whole(path: Path, data: bytes) -> None:
    """All of the file or none of it; it is on the disk when this returns."""
    for last in (False,) * (TRIES - 1) + (True,):
        try:
            with written_whole(path) as temporary:
                temporary.write_bytes(data)
            return
        except _GoneError as error:
            if last:
                raise StorageError(str(error)) from None


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary name for a file or a folder, which takes its place, `path`, at the end of the block."""
    if not path.parent.is_dir():
        raise StorageError(f"{path}: cannot be written: there is no folder {path.parent}")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")  # its own, whichever machine writes
    try:
        yield temporary
        for part in [*temporary.rglob("*"), temporary] if temporary.is_dir() else [temporary]:
            _flush(part)
        os.replace(temporary, path)
        _flush(path.parent)
    except OSError as error:
        kind = _GoneError if isinstance(error, FileNotFoundError) and path.parent.is_dir() else StorageError
        raise kind(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class _GoneError(StorageError):
    """The temporary file was taken away before it got its name."""


def _flush(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The one way in which a file of this machine is written: whole, and on the disk, or not at all.

Bytes are written under a temporary name in the same folder, `.NAME.XXXXXXXXXXXXXXXX.tmp` with 16 hexadecimal digits,
flushed to the disk, and then given their name. Whatever kills the program leaves the old file or the new one; a
temporary file that is left behind is known by its name. What goes wrong is a `StorageError` that names the file.
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

TRIES = 5  # if another run takes the temporary file for a leftover and removes it
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is being written, or was left by a run that was killed."""
    return _TEMPORARY.fullmatch(name) is not None


def write_whole(path: Path, data: bytes) -> None:
    """Write all of the file or nothing, in place of an older one; it is on the disk when this returns."""
    for attempt in range(TRIES):
        try:
            with written_whole(path) as temporary:
                temporary.write_bytes(data)
            return
        except _GoneError:
            if attempt == TRIES - 1:
                raise


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary name under which to write a file or a folder; at the end of the block it becomes `path`."""
    try:
        if not path.parent.is_dir():
            raise StorageError(f"{path}: cannot be written: there is no folder {path.parent}")
        if path.is_dir():
            raise StorageError(f"{path}: cannot be written: it is a folder")
    except OSError as error:  # such as a name that is too long
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None
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
        with suppress(StorageError):
            remove(temporary)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless they are there; their names are on the disk when this returns."""
    try:
        new = [place for place in (path, *path.parents) if not place.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for place in reversed(new):
            _flush(place.parent)
    except FileExistsError:
        raise StorageError(f"{path}: is a file; a folder is needed to write into") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be used as a folder: {error.strerror or error}") from None


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; one that is not there is no error."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot be removed: {error.strerror or error}") from None


def tidy(folder: Path) -> None:
    """Remove what runs that were killed have left in a folder."""
    with suppress(OSError, StorageError):
        for name in os.listdir(folder):
            if is_temporary(name):
                remove(folder / name)


class _GoneError(StorageError):
    """The temporary file was removed before it got its name."""


def _flush(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

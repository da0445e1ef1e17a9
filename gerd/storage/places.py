"""The place where the files of a dataset are: a `Folder`, or a `Bucket`, a part of an object store (s3://bucket/name).

Names of files go in, bytes come out. A file appears under its name when all of it is stored, and not before; nothing
here depends on clocks or on the times of files. A lock only refuses a second writer early; nothing relies on it. What
goes wrong is a `StorageError` that names the file.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from gerd.errors import StorageError
from gerd.files import lock, open_regular, read_regular
from gerd.storage.whole import is_temporary, make_folder, remove, tidy, write_whole

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

OBJECT_STORES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "memory": "fsspec"}  # scheme: package that reads it
LARGEST_FILE = 2**30  # bytes of a file that is read whole; a manifest of ten million recordings has less
LARGEST_SHARD = 2**37  # bytes; `generate` makes none that is nearly as large
PIECE = 2**20  # bytes fetched at once from an object store
PIECES = 4  # of a file that are kept


class MissingError(StorageError):
    """There is no such file."""


class File(Protocol):
    """An open file. It is never changed after it was written, so it can be read in any order by several threads."""

    name: str  # with its folder, for messages
    size: int

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, all of them."""


class Readable(Protocol):
    """Files by their names, as far as reading the small ones goes."""

    def at(self, name: str) -> str:
        """The full name of a file, for messages."""

    def exists(self) -> bool: ...

    def names(self) -> set[str]:
        """The names of all files that are whole; none if there is no such place."""

    def read(self, name: str, *, most: int = LARGEST_FILE) -> bytes:
        """All of a file, which has at most `most` bytes."""


class Place(Readable, Protocol):
    """The files of one dataset."""

    def open(self, name: str) -> File: ...

    def write(self, name: str, data: bytes) -> None:
        """All of the file or none of it; it is safe when this returns. Replaces an older file."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""

    def tidy(self) -> None:
        """Remove what runs that were killed have left."""

    def claimed(self, alone: bool) -> AbstractContextManager[bool]:
        """Hold the place while writing; with `alone`, refuse if another run holds it. Gives whether that is certain."""


def place_at(path: str | Path) -> Place:
    """The folder or object store that a path or URL names."""
    url = re.match(r"(\w[\w+.-]*)://(.*)", str(path), re.DOTALL)
    if url is None:
        return Folder(Path(path))
    scheme, rest = url.groups()
    if scheme == "file":
        return Folder(Path(rest))
    if scheme not in OBJECT_STORES or not rest.strip("/"):
        allowed = ", ".join(f"{name}://…" for name in ("file", *OBJECT_STORES))
        raise StorageError(f"{path}: is not a place for a dataset; allowed: a folder, {allowed}")
    return Bucket(str(path).rstrip("/"))


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise MissingError(f"{name}: is missing") from None
    except OSError as error:
        raise StorageError(f"{name}: cannot be read: {error.strerror or error}") from None


@dataclass(frozen=True)
class Folder:
    """A folder of this machine, or one that it shares with others."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def at(self, name: str) -> str:
        return str(self.path / name)

    def exists(self) -> bool:
        return self.path.is_dir()

    def names(self) -> set[str]:
        with suppress(MissingError), _reading(str(self.path)):
            return {name for name in os.listdir(self.path) if not is_temporary(name)}
        return set()

    def read(self, name: str, *, most: int = LARGEST_FILE) -> bytes:
        if self.path.is_file():
            raise StorageError(f"{self.path}: is a file; a GERD dataset is a folder")
        with _reading(self.at(name)):
            return read_regular(self.path / name, most)

    def open(self, name: str) -> File:
        with _reading(self.at(name)):
            return _LocalFile(self.path / name)

    def write(self, name: str, data: bytes) -> None:
        write_whole(self.path / name, data)

    def remove(self, name: str) -> None:
        remove(self.path / name)

    def tidy(self) -> None:
        tidy(self.path)

    @contextmanager
    def claimed(self, alone: bool) -> Iterator[bool]:
        """Makes the folder if it is not there. The claim ends with the process."""
        make_folder(self.path)
        with _reading(str(self.path)):
            held = os.open(self.path, os.O_RDONLY)
        try:
            certain = alone
            try:
                lock(held, alone=alone)
            except BlockingIOError:
                raise StorageError(f"{self.path}: another run is writing here; wait for it, or stop it") from None
            except OSError:
                certain = False  # a file system without locks, or a system
            yield certain
        finally:
            os.close(held)


class _LocalFile:
    """Positioned reads, not a memory map: a file that is cut short while it is open is an error and not a crash."""

    def __init__(self, path: Path):
        self.name = str(path)
        self._descriptor = open_regular(path, LARGEST_SHARD)
        weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size
        self._one_reader = Lock()

    def read(self, start: int, stop: int) -> bytes:
        parts: list[bytes] = []
        try:
            while start < stop:
                parts.append(self._read_at(start, stop - start))  # 2 GiB of it, at most
                start += len(parts[-1])
                if not parts[-1]:
                    raise StorageError(f"{self.name}: is damaged: it ends too early")
        except OSError as error:
            raise StorageError(f"{self.name}: cannot be read: {error.strerror or error}") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_at(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, size, start)
        with self._one_reader:  # Windows: the place to read at belongs to the file
            os.lseek(self._descriptor, start, os.SEEK_SET)
            return os.read(self._descriptor, size)


@dataclass(frozen=True)
class Bucket:
    """A place in an object store, where a file that is put is whole or not there. Credentials are fsspec's matter."""

    url: str
    largest: int = LARGEST_FILE  # bytes of a file that is read whole
    piece: int = PIECE  # bytes of a file that are fetched at once

    def __str__(self) -> str:
        return self.url

    def at(self, name: str) -> str:
        return f"{self.url}/{name}"

    @contextmanager
    def _system(self, name: str, cannot: str) -> Iterator[tuple[AbstractFileSystem, str]]:
        """The file system, which fsspec makes anew in a forked process, and the full path of a file in it."""
        scheme = self.url.partition(":")[0]
        try:
            import fsspec.core

            system, root = fsspec.core.url_to_fs(self.url)
            yield system, f"{root.rstrip('/')}/{name}".rstrip("/")
        except ImportError as error:
            needed = f"pip install 'gerd-events[cluster]' {OBJECT_STORES[scheme]}"
            raise StorageError(f"{self.url}: needs a package that is not installed ({error}): {needed}") from None
        except StorageError:
            raise
        except Exception as error:  # each kind of object store has errors of its own
            if isinstance(error, FileNotFoundError) and cannot != "written":
                raise MissingError(f"{self.at(name)}: is missing") from None
            text = str(error).strip().partition("\n")[0] or type(error).__name__
            raise StorageError(f"{self.at(name).rstrip('/')}: cannot be {cannot}: {text}") from None

    def exists(self) -> bool:
        return bool(self.names())

    def names(self) -> set[str]:
        with suppress(MissingError), self._system("", "listed") as (system, root):
            system.invalidate_cache()
            return {path.rstrip("/").rpartition("/")[2] for path in system.ls(root, detail=False) if path != root}
        return set()

    def read(self, name: str, start: int | None = None, stop: int | None = None, *, most: int = LARGEST_FILE) -> bytes:
        with self._system(name, "read") as (system, path):
            most = min(most, self.largest)
            if stop is None and (size := int(system.info(path)["size"])) > most:
                raise StorageError(f"{self.at(name)}: has {size} bytes; at most {most} are read")
            return bytes(system.cat_file(path, start=start, end=stop))

    def open(self, name: str) -> File:
        with self._system(name, "read") as (system, path):
            system.invalidate_cache()
            return _RemoteFile(self, name, int(system.info(path)["size"]))

    def write(self, name: str, data: bytes) -> None:
        with self._system(name, "written") as (system, path):
            system.pipe_file(path, data)

    def remove(self, name: str) -> None:
        with suppress(MissingError), self._system(name, "removed") as (system, path):
            system.rm_file(path)

    def tidy(self) -> None:
        """There is nothing to remove: a put that did not come to its end leaves no file."""

    @contextmanager
    def claimed(self, alone: bool) -> Iterator[bool]:  # noqa: ARG002 - there are no locks
        yield False


class _RemoteFile:
    """Reads pieces of a fixed size and keeps the last few, so that neighbours do not cost a request each."""

    def __init__(self, bucket: Bucket, name: str, size: int):
        self.name = bucket.at(name)
        self.size = size
        self._length = length = bucket.piece
        self._piece = lru_cache(PIECES)(lambda k: bucket.read(name, k * length, min((k + 1) * length, size)))

    def read(self, start: int, stop: int) -> bytes:
        result = bytearray()
        for number in range(start // self._length, -(-stop // self._length)):
            begin = number * self._length
            result += self._piece(number)[max(0, start - begin) : stop - begin]
        if len(result) != stop - start:
            raise StorageError(f"{self.name}: is damaged: it ends too early")
        return bytes(result)

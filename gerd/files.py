"""How files that others may have put there are opened: plain files of a bounded size, never a pipe or a device.

A path goes in, a descriptor or bytes come out. What is refused is an `OSError` whose `strerror` says why. And how a
process keeps others away from a file (`lock`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


NOT_PLAIN = "it is not a plain file"
FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # where there are such


NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | Path, most: int | None = None, *, follow: bool = True) -> int:
    """A descriptor to read a plain file of at most `most` bytes; opening a pipe would wait for somebody to write.

    follow: whether the file may be a symbolic link to one.
    """
    return _plain(path, os.O_RDONLY, most, follow)


def open_to_append(path: str | Path) -> int:
    """A descriptor to write at the end of a plain file, which is made if it is not there; a link is not followed."""
    return _plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, None, False)


def _plain(path: str | Path, flags: int, most: int | None, follow: bool) -> int:
    try:
        descriptor = os.open(path, flags | FLAGS | (0 if follow else NO_LINKS), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and os.path.islink(path):
            raise OSError(errno.ELOOP, "it is a symbolic link") from None
        if error.errno == errno.ENXIO:  # a pipe that nobody reads, or a socket
            raise OSError(errno.EINVAL, NOT_PLAIN) from None
        raise
    try:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, NOT_PLAIN)
        if most is not None and about.st_size > most:
            raise OSError(errno.EFBIG, f"it has {about.st_size} bytes; at most {most} are allowed")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """The content of a plain file of at most `most` bytes."""
    with open(open_regular(path, most, follow=follow), "rb") as file:
        return file.read(os.fstat(file.fileno()).st_size)


def sha256_of(path: str | Path) -> str:
    """The sha256 of the content of a plain file."""
    with open(open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_own(path: str | Path, most: int) -> bytes:
    """What `read_regular` gives, of a file that belongs to this user, and that nobody else may read or write."""
    with open(open_regular(path, most, follow=False), "rb") as file:
        about = os.fstat(file.fileno())
        if about.st_uid != os.getuid() or about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OSError(errno.EPERM, "it could be another user's")
        return file.read(about.st_size)


def write_own(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read or write, whatever the umask; all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()  # of a process that was killed
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(draft, flags | FLAGS | NO_LINKS, 0o600), "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def lock(file: int | IO[str], *, alone: bool = True, wait: bool = False) -> None:
    """Hold a file until it is closed, also by the end of the process; `BlockingIOError` if another one holds it."""
    if fcntl is None:
        raise OSError(errno.ENOSYS, "files cannot be locked on this system; allowed: Linux, macOS")
    fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))

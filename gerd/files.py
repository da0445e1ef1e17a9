"""How files that others may have put there are opened: plain files of a bounded size, never a pipe or a device.

A path goes in, a descriptor or bytes come out. What is refused is an `OSError` whose `strerror` says why. And how a
process keeps others away from a file (`lock`).
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # where there are such


def open_regular(path: str | Path, most: int | None = None) -> int:
    """A descriptor to read a plain file of at most `most` bytes; opening a pipe would wait for somebody to write."""
    descriptor = os.open(path, os.O_RDONLY | FLAGS)
    try:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        if most is not None and about.st_size > most:
            raise OSError(errno.EFBIG, f"it has {about.st_size} bytes; at most {most} are allowed")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str | Path, most: int) -> bytes:
    """The content of a plain file of at most `most` bytes."""
    with open(open_regular(path, most), "rb") as file:
        return file.read(os.fstat(file.fileno()).st_size)


def lock(file: int | IO[str], *, alone: bool = True, wait: bool = False) -> None:
    """Hold a file until it is closed, also by the end of the process; `BlockingIOError` if another one holds it."""
    if fcntl is None:
        raise OSError(errno.ENOSYS, "files cannot be locked on this system; allowed: Linux, macOS")
    fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))

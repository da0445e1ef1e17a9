"""How files that others may have put there are opened: plain files of a bounded size, never a pipe or a device.

A path goes in, a descriptor or bytes come out. What is refused is an `OSError` whose `strerror` says why.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: str | Path, most: int | None = None) -> int:
    """A descriptor to read a plain file of at most `most` bytes; opening a pipe would wait for somebody to write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
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

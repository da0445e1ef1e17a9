"""Machine code of a kernel, kept between runs: a numba function in, the same function with a cache of ours out.

A file holds the code for one signature on one kind of processor, behind the sha256 of what follows. It is unpickled
only if that is right, and if nobody but this user could have written it. Whatever is wrong with the cache (a full
disk, a damaged file, a folder that others may write to) only means that the function is compiled again.

Numba's own cache believes what it finds, and cannot do without it: hence this one, which numba asks in its place.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from gerd.files import read_regular

try:
    import grp
    import pwd
except ImportError:  # Windows, where nobody can tell who may have written a file: nothing is kept
    grp = pwd = None  # type: ignore[assignment]

LARGEST = 2**28  # bytes of a file
DIGEST = hashlib.sha256().digest_size


def keep(function: Any, *modules: ModuleType) -> None:
    """Have numba keep the machine code of a function, which these modules decide, between runs, for this user."""
    import llvmlite
    import numba

    named = os.environ.get("NUMBA_CACHE_DIR")  # and not what a file of settings in the current folder says
    home = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gerd"
    sources = [Path(str(module.__file__)).resolve() for module in modules]
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    versions = f"{sys.version} {numba.__version__} {llvmlite.__version__} {settings}"
    made_by = f"{versions} {function.__name__} {sources[-1]} "
    function._cache = Cache(home.absolute(), made_by.encode() + b"".join(map(Path.read_bytes, sources)))


class Cache:
    """What numba asks for the code of a function; `source` is what it depends on, but for signature and machine."""

    def __init__(self, folder: Path, source: bytes):
        self.cache_path = str(folder)
        self._folder, self._source = folder, source
        self._prefix = f"kernel-{hashlib.sha256(source).hexdigest()[:16]}"

    def file_of(self, signature: Any, codegen: Any) -> Path:
        """The file for a signature and the processor at hand."""
        key = hashlib.sha256(repr((str(signature), codegen.magic_tuple())).encode() + self._source)
        return self._folder / f"{self._prefix}{key.hexdigest()[:16]}"

    def is_kept(self) -> bool:
        """Whether there is a file for some signature and some processor; what is in it was not looked at."""
        return any(self._folder.glob(f"{self._prefix}*"))

    def load_overload(self, signature: Any, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        with suppress(Exception):  # then it is compiled
            context.refresh()
            if is_private(self._folder):
                data = read_regular(self.file_of(signature, context.codegen()), LARGEST)
                if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST]:
                    rebuilt: Any = CompileResult._rebuild
                    return rebuilt(context, *pickle.loads(data[DIGEST:]))
        if sys.stderr.isatty():
            print("compiling the kernels, once for each installation: about 15 seconds", file=sys.stderr, flush=True)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        from numba.core import serialize

        serialised: Any = serialize.dumps
        with suppress(Exception):  # then the next run compiles it, too
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_private(self._folder):
                code, file = serialised(result._reduce()), self.file_of(signature, result.codegen)
                draft = file.with_name(f".{file.name}.{os.getpid()}")
                draft.write_bytes(hashlib.sha256(code).digest() + code)
                draft.replace(file)

    def flush(self) -> None:
        """Numba forgets what it has read; nothing is kept here."""


def is_private(folder: Path) -> bool:
    """Whether only this user, or the system's, can have put files into a folder, or the folder into its place."""
    if pwd is None:
        return False
    for place in (folder, *folder.parents):
        about = os.stat(place)
        others = bool(about.st_mode & stat.S_IWOTH) or bool(about.st_mode & stat.S_IWGRP and not _is_own(about.st_gid))
        sticky = place != folder and about.st_mode & stat.S_ISVTX  # as /tmp: nobody can replace what is another's
        if about.st_uid not in (0, os.getuid()) or (others and not sticky):
            return False
    return True


def _is_own(group: int) -> bool:
    """Whether a group is this user's alone, as many systems make one for each user."""
    try:
        name, members = grp.getgrgid(group).gr_name, grp.getgrgid(group).gr_mem
        return name == pwd.getpwuid(os.getuid()).pw_name and set(members) <= {name}
    except KeyError:
        return False

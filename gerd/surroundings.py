"""What a process takes from the folder that it runs in, which may be a stranger's: only what it was asked to read.

Python started with `-c` imports from the current folder first, and so do the processes that its own library starts;
matplotlib and numba take settings from files there, and wait for ever if such a file is a pipe.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path

SETTINGS = {"matplotlib": "matplotlibrc", "numba": ".numba_config.yaml"}  # package: the file that it would read


def ignore_settings() -> None:
    """Import now, from another folder, what would take settings from a file of this one; call it before any thread."""
    affected = [package for package, file in SETTINGS.items() if os.path.lexists(file)]
    if not affected or not hasattr(os, "fchdir"):  # Windows cannot come back to a folder by whatever name
        return
    folder = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.chdir(Path(__file__).parent)
        for package in affected:
            import_module(package)
    finally:
        os.fchdir(folder)
        os.close(folder)
    if "numba" in affected:  # it would look again before it compiles
        import_module("numba.core.config")._config_fname = ""  # type: ignore[attr-defined]


def safe_path() -> AbstractContextManager[None]:
    """Processes that are started meanwhile do not import from the current folder."""
    return environment(PYTHONSAFEPATH="1")


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Variables of the environment of processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

"""The Python functions that a config names: imported only if the user has said that the config may run code.

A config and the name of a function in; the function itself out, or a `TrustError`. No other module of the package runs
code that a config names.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gerd.config.values import Function, UserFunction
from gerd.errors import TrustError

if TYPE_CHECKING:
    from gerd.config.config import Config


def trusted_function(config: Config, value: Function, path: str, why: str = "") -> UserFunction:
    """The function itself, imported only if the user has said that the config may run code.

    why: how a refusal begins, where the config has values of the function and they are not enough.
    """
    if value._callable is not None:
        return value._callable
    if config.origin.trust is None:
        message = f"{why}runs this Python function; allow that with --trust or trust=True"
        raise TrustError(str(config.error(path, message, value.function)))
    module, _, name = value.function.partition(":")
    try:
        function: object = _module(module, config.origin.trust, dict(config.origin.code).get(module))
        for part in name.split("."):
            function = getattr(function, part)
    except Exception as error:  # whatever a user's module may raise
        message = f"cannot be imported: {type(error).__name__}: {error}"
        raise config.error(path, message, value.function) from error
    if not callable(function):
        raise config.error(path, "is not a function of t", value.function)
    return function


def import_from(folder: str | None) -> None:
    """In a worker: find modules in the folder of a trusted config, too; None: the config is not trusted."""
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)


def modules_beside(functions: Iterable[str], folder: str) -> tuple[tuple[str, str], ...]:
    """The modules of these functions that lie in `folder`, each with its sha256: what was edited is another module."""
    names = {function.partition(":")[0] for function in functions}
    files = {name: _file(name, folder) for name in names if "." not in name}
    return tuple(sorted((name, _sha256(file.read_bytes())) for name, file in files.items() if file.is_file()))


def _file(module: str, folder: str) -> Path:
    return Path(folder, f"{module}.py")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@cache
def _module(name: str, folder: str, known: str | None) -> ModuleType:
    """A module by its name: the one in `folder` if there is one, whatever has been imported under that name before.

    known: the sha256 of its file when the config was read. Python's own cache is not asked: it takes a file that was
    edited within a second, to the same size, for the old one.
    """
    sys.path.insert(0, folder)
    try:
        if known is None:
            return importlib.import_module(name)
        file = _file(name, folder)
        source = file.read_bytes()
        if _sha256(source) != known:
            raise ImportError(f"{file} has changed since the config was read; read the config again")
        unique = f"_trusted_{_sha256(f'{folder}:{known}'.encode())[:16]}_{name}"
        spec = importlib.util.spec_from_file_location(unique, file)
        assert spec is not None
        module = sys.modules[unique] = importlib.util.module_from_spec(spec)
        exec(compile(source, file, "exec"), vars(module))
        return module
    finally:
        sys.path.remove(folder)

"""The Python functions that a config names: imported only if the user has said that the config may run code.

A config and the name of a function in; the function itself out, or a `TrustError`. No other module of the package runs
code that a config names.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gerd.config.values import Function
from gerd.errors import TrustError

if TYPE_CHECKING:
    from gerd.config.config import Config


def trusted_function(config: Config, value: Function, path: str, why: str = "") -> Callable[[float], Any]:
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
        function: Any = _module(module, config.origin.trust)
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


@cache
def _module(name: str, folder: str) -> Any:
    """A module by its name: the one in `folder` if there is one, whatever has been imported under that name before."""
    sys.path.insert(0, folder)
    try:
        file = Path(folder, *name.split(".")).with_suffix(".py")
        if "." in name or not file.exists():
            return importlib.import_module(name)
        unique = f"_trusted_{hashlib.sha256(folder.encode()).hexdigest()[:16]}_{name}"
        loader = importlib.machinery.SourceFileLoader(unique, str(file))
        spec: Any = importlib.util.spec_from_file_location(loader.name, file, loader=loader)
        module = sys.modules[loader.name] = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
    finally:
        sys.path.remove(folder)

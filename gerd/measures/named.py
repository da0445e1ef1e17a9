"""A Python function of the user's that a command names: `module:function` or `file.py:function` in, the function out.

Modules of the current folder are found, and a file's own folder while it is imported. Naming a function says that it
may run.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from gerd.errors import GerdError, shorten


def named_function(what: str, name: str, example: str) -> Callable[..., Any]:
    """The function itself. what: how the command calls it in messages; example: what would have been allowed."""
    module, _, function = name.rpartition(":")
    if not module or not function:
        raise GerdError(f"{what} {name!r}: allowed: module:function or file.py:function, such as {example}")
    folder = Path(module).parent if module.endswith(".py") else Path()
    sys.path.insert(0, str(folder.absolute()))
    try:
        found: object = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # whatever a user's module may raise
        raise GerdError(f"{what} {name!r}: cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(folder.absolute()))
    if not callable(found):
        raise GerdError(f"{what} {name!r}: is {shorten(found)}; allowed: a function")
    return found


def source_of(name: str) -> Path | None:
    """The file that a function comes from, once it was imported by its name; None if it comes from none."""
    module, _, _ = name.rpartition(":")
    file = module if module.endswith(".py") else getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file)


def _from_file(path: Path) -> ModuleType:
    """The module in a file. Its name begins with an underscore: a file may be called as a package that it imports."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # before it runs, as dataclasses and pickles expect
    spec.loader.exec_module(module)
    return module

"""The packages of other people that files of other people need: a name in, the module or a clear error out."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from gerd.errors import GerdError


def package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise GerdError(f"this format needs the package {name}: pip install 'gerd-events[export]'") from None

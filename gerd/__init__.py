"""GERD: event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.

    text ─config▶ Config ─plan▶ Plan ─scene▶ Scenes ─events▶ events ─recording▶ Recording ─storage▶ dataset

The public names stand in `__init__.pyi`, and nowhere else. Each is imported at its first use, so that `import gerd`
costs almost nothing. The packages below it have to be imported by their names.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

_PUBLIC: dict[str, str] = {}  # name: the module it is imported from
for _line in Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines():
    if not _line.startswith("#"):
        _, _module, _, _name, *_ = _line.split()  # from gerd.x import y as y
        _PUBLIC[_name] = _module

__all__ = sorted(name for name in _PUBLIC if not name.startswith("_"))


def __dir__() -> list[str]:
    return sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gerd' has no attribute {name!r}")
    home = import_module(_PUBLIC[name])
    value = getattr(home, name) if hasattr(home, name) else import_module(f"{_PUBLIC[name]}.{name}")
    globals()[name] = value
    return value

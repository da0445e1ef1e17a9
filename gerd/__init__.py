"""GERD: event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.

    text ──config──▶ Config ──scene──▶ Scenes ──events──▶ events ──recording──▶ Recording ──storage──▶ dataset

The public names stand in `__init__.pyi`, and nowhere else. Each is imported at its first use, so that `import gerd`
costs almost nothing.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (gerd[\w.]*) import (\w+) as (\w+)$", re.MULTILINE)
_PUBLIC = {
    name: (module, what)
    for module, what, name in _IMPORT.findall(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
}

__all__ = sorted(name for name in _PUBLIC if not name.startswith("_"))


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gerd' has no attribute {name!r}")
    module, what = _PUBLIC[name]
    home = import_module(module)
    return getattr(home, what) if hasattr(home, what) else import_module(f"{module}.{what}")

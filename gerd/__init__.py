"""GERD: event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.

    config ──draw──▶ scene ──trajectory──▶ T(t) ──rasterise──▶ crossings ──integrate──▶ events ──▶ recording

Each name below is imported from its module at first use, so that `import gerd` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gerd.config import Config
    from gerd.errors import ConfigError, GerdError, StorageError, TrustError
    from gerd.generation import generate
    from gerd.loading import load, parse
    from gerd.recording import Recording
    from gerd.simulation import simulate, simulate_batch, simulate_chunks
    from gerd.storage import Recordings, verify

_HOME = {
    "Config": "config",
    "ConfigError": "errors",
    "GerdError": "errors",
    "StorageError": "errors",
    "TrustError": "errors",
    "generate": "generation",
    "load": "loading",
    "parse": "loading",
    "Recording": "recording",
    "simulate": "simulation",
    "simulate_batch": "simulation",
    "simulate_chunks": "simulation",
    "Recordings": "storage",
    "verify": "storage",
    "__version__": "version",
}

__all__ = [
    "Config",
    "ConfigError",
    "GerdError",
    "Recording",
    "Recordings",
    "StorageError",
    "TrustError",
    "generate",
    "load",
    "parse",
    "simulate",
    "simulate_batch",
    "simulate_chunks",
    "verify",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gerd' has no attribute {name!r}")
    return getattr(import_module(f"gerd.{_HOME[name]}"), name)

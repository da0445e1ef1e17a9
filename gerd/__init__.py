"""GERD: event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.

    config ──draw──▶ scene ──trajectory──▶ T(t) ──rasterise──▶ crossings ──integrate──▶ events ──▶ recording

Each name below is imported from its module at first use, so that `import gerd` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gerd import measure, models, plot, transformation
    from gerd.batch import collate
    from gerd.config import Config
    from gerd.dataset import Dataset
    from gerd.errors import ConfigError, GerdError, StorageError, TrustError
    from gerd.export import export_dataset
    from gerd.formats import write_events
    from gerd.generation import generate
    from gerd.loading import load, parse
    from gerd.original import read_original
    from gerd.recording import Recording
    from gerd.simulation import simulate, simulate_batch, simulate_chunks
    from gerd.storage import Recordings, verify
    from gerd.stream import Stream

_HOME = {
    "Config": "config",
    "ConfigError": "errors",
    "Dataset": "dataset",
    "GerdError": "errors",
    "StorageError": "errors",
    "TrustError": "errors",
    "export_dataset": "export",
    "write_events": "formats",
    "collate": "batch",
    "generate": "generation",
    "load": "loading",
    "parse": "loading",
    "read_original": "original",
    "Recording": "recording",
    "simulate": "simulation",
    "simulate_batch": "simulation",
    "simulate_chunks": "simulation",
    "Recordings": "storage",
    "Stream": "stream",
    "verify": "storage",
    "__version__": "version",
}

_MODULES = ("measure", "models", "plot", "transformation")

__all__ = [
    "Config",
    "ConfigError",
    "Dataset",
    "GerdError",
    "Recording",
    "Recordings",
    "StorageError",
    "Stream",
    "TrustError",
    "collate",
    "export_dataset",
    "generate",
    "load",
    "measure",
    "models",
    "parse",
    "plot",
    "read_original",
    "simulate",
    "simulate_batch",
    "simulate_chunks",
    "transformation",
    "verify",
    "write_events",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gerd.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gerd' has no attribute {name!r}")
    return getattr(import_module(f"gerd.{_HOME[name]}"), name)

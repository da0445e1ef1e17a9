"""What a shell can complete: the beginning of a word in; the values that an option or an argument can have out.

The names stand here once more, because a key that is pressed in a shell cannot wait for the packages that define them;
a test compares them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

KINDS = ("video", "frame", "sheet", "cloud", "rate", "curves", "parameters", "stages")
FORMATS = (
    "evt2", "aedat4", "evt3", "dat", "es", "hdf5-dsec", "hdf5", "rpg", "csv", "npz", "parquet", "frames", "voltmeter",
)  # fmt: skip
LIVE_FORMATS = ("csv", "binary", "aestream")
STUDIES = ("demonstration", "timescale", "covariance", "noise", "symmetry", "camera", "receptive-fields")
TASKS = ("locate", "transform", "classify", "flow", "noise")  # of GERD-Bench
REGIMES = ("one", "inner")
BASELINES = (
    "constant", "relu-1", "relu-8", "li", "lif", "conv-gru", "five-channels",
    "bank-time", "bank-boost", "bank-scale", "bank-rotation",
)  # fmt: skip
SPLITS = ("train", "validate", "test")
ENGINES = ("local", "ray")
DEVICES = ("cpu", "cuda", "mps")

CONFIGS = (".yaml", ".yml")
EVENTS = (".raw", ".dat", ".aedat4", ".es", ".h5", ".hdf5", ".npz", ".npy", ".parquet", ".csv", ".txt")
DEEPEST = 3  # folders inside each other that are looked into
MOST_LOOKED_AT = 2000  # files and folders

Complete = Callable[[str], list[str]]


def one_of(*values: str) -> Complete:
    """Completes the names of certain values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def configs(incomplete: str) -> list[str]:
    """Config files, also those in folders below."""
    return _found(incomplete, CONFIGS, datasets=False)


def datasets(incomplete: str) -> list[str]:
    """Folders with a dataset in them."""
    return _found(incomplete, (), datasets=True)


def sources(incomplete: str) -> list[str]:
    """Configs, datasets, and files that may hold events."""
    return _found(incomplete, CONFIGS + EVENTS, datasets=True)


def _found(incomplete: str, endings: tuple[str, ...], datasets: bool) -> list[str]:
    below = incomplete.rpartition("/")[0] or ("/" if incomplete.startswith("/") else "")
    result = []
    for entry, depth in islice(_below(Path(below), incomplete, DEEPEST), MOST_LOOKED_AT):
        path = str(Path(entry.path))
        if depth and entry.is_dir():
            wanted = datasets and os.path.isfile(os.path.join(entry.path, "manifest.json"))
        else:
            wanted = path.lower().endswith(endings) and bool(endings)
        if wanted and path.startswith(incomplete):
            result.append(path)
    return sorted(result)


def _below(folder: Path, incomplete: str, depth: int) -> Iterator[tuple[os.DirEntry[str], int]]:
    """What lies in a folder and the folders in it, as far as their paths begin as the word does."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = str(Path(entry.path))
        if entry.name.startswith(".") or not (path.startswith(incomplete) or incomplete.startswith(f"{path}/")):
            continue
        yield entry, depth
        if depth > 1 and entry.is_dir():
            yield from _below(Path(entry.path), incomplete, depth - 1)

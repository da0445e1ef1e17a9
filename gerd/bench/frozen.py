"""The files of version 1: what never changes, as text in the package. Names of files in, plain data out."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from gerd.config.document import parse_yaml

VERSION = 1
FOLDER = files("gerd.bench") / f"v{VERSION}"


def read_frozen(name: str) -> Any:
    """What the YAML file `name` says."""
    return parse_yaml((FOLDER / name).read_text("utf-8"), f"gerd/bench/v{VERSION}/{name}").data

"""Text to `Config`: reads YAML, applies overrides, says where a fault was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from gerd.config.config import Config, Origin
from gerd.config.document import parse_yaml, read_text
from gerd.config.overrides import overridden
from gerd.config.problems import explain
from gerd.errors import ConfigError


def load(path: str | Path, *, overrides: Sequence[str] = (), trust: bool = False) -> Config:
    """The config in the file at `path`.

    `overrides` are `path=value` strings that replace fields of the text. `trust` allows the Python functions
    that the config names to be imported, from its own folder too; without it none is ever run.
    """
    directory = Path(path).resolve().parent
    return parse(read_text(path), source=str(path), directory=directory, overrides=overrides, trust=trust)


def parse(
    text: str,
    *,
    source: str = "config",
    directory: str | Path = ".",
    overrides: Sequence[str] = (),
    trust: bool = False,
) -> Config:
    """The config written in `text`; masks are looked up in `directory`."""
    document = parse_yaml(text, source)
    for override in overrides:
        document = overridden(document, override)
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of fields"
        raise ConfigError([document.problem((), f"{what}; allowed: {', '.join(Config.model_fields)}")])
    if overrides:
        text += "".join(f"\n# --set {override}" for override in overrides) + "\n"
    origin = Origin(text, replace(document, data=None), str(directory), str(directory) if trust else None)
    try:
        return Config.of(document.data, origin)
    except ValidationError as error:
        raise explain(error, document) from None

"""Text, a file or plain data to `Config`: reads YAML, applies overrides, says at which line a field is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from gerd.calls import explained
from gerd.config.config import Config, Origin
from gerd.config.document import UNNAMED, Document, parse_yaml, read_text
from gerd.config.overrides import overridden
from gerd.config.problems import explain
from gerd.errors import ConfigError, Problem, shorten

AnyConfig = Config | str | os.PathLike[str] | Mapping[str, object]  # what is taken where a config is meant


def as_config(source: AnyConfig, *, scene: bool = True) -> Config:
    """The config that a user means: one that there is, the path of a file, YAML text, or the fields in a mapping.

    scene: whether it has to say what is seen; otherwise it need not have `actors`.
    """
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping) or (isinstance(source, str) and _is_text(source)):
        return parse(source, scene=scene)
    if not isinstance(source, str | os.PathLike):
        how = "allowed: a Config, the path of a config file, YAML text or a mapping of fields"
        raise ConfigError([Problem(UNNAMED, how, value=shorten(source))])
    return load(source, scene=scene)


def _is_text(words: str) -> bool:
    """Whether a string is YAML and not the path of a file."""
    return re.search(r"\n|:\s|:$|^\s*(\{|$)", words) is not None


@explained
def load(
    path: str | os.PathLike[str], *, overrides: Sequence[str] = (), trust: bool = False, scene: bool = True
) -> Config:
    """Return the config in the file at `path`.

    `overrides` are `path=value` strings that replace fields. `trust` allows the Python functions that the config names
    to be imported, also from the config's own folder; without it none is ever run. With `scene=False` the config need
    not have `actors`.
    """
    if not isinstance(path, str | os.PathLike) or (isinstance(path, str) and "\n" in path):
        how = "allowed: the path of a config file; text and mappings: gerd.parse"
        raise ConfigError([Problem(UNNAMED, how, value=shorten(path))])
    directory = Path(path).resolve().parent
    return parse(read_text(path), source=str(path), directory=directory, overrides=overrides, trust=trust, scene=scene)


@explained
def parse(
    text: str | Mapping[str, object],
    *,
    source: str = UNNAMED,
    directory: str | Path = ".",
    overrides: Sequence[str] = (),
    trust: bool = False,
    scene: bool = True,
) -> Config:
    """Return the config that a text, or a mapping of fields, describes; files that it names are sought in `directory`.

    With `scene=False` the config need not have `actors`.
    """
    if not isinstance(text, str | Mapping):
        how = "allowed: YAML text, or a mapping of fields; a file: gerd.load"
        raise ConfigError([Problem(source, how, value=shorten(text))])
    if isinstance(overrides, str) or not all(isinstance(override, str) for override in overrides):
        how = "allowed: a list of path=value, such as ['noise.background=0.01']"
        raise ConfigError([Problem("overrides", how, value=shorten(overrides))])
    document = parse_yaml(text, source) if isinstance(text, str) else Document(dict(text), source)
    if not scene and isinstance(document.data, dict):
        document = replace(document, data={"actors": [], **document.data})
    for override in overrides:
        document = overridden(document, override)
    if not isinstance(document.data, dict):
        wrong = "is empty" if document.data is None else "is not a mapping of fields"
        file = f"; to read a file: gerd.load({shorten(text)})" if isinstance(text, str) and not _is_text(text) else ""
        raise ConfigError([document.problem((), f"{wrong}; allowed: {', '.join(Config.model_fields)}{file}")])
    written = text if isinstance(text, str) else None
    if overrides and written is not None:
        written += "".join(f"\n# --set {override}" for override in overrides) + "\n"
    origin = Origin(written, replace(document, data=None), str(directory))
    try:
        config = Config.of(document.data, origin)
    except ValidationError as error:
        raise explain(error, document) from None
    return config.trusted(str(directory)) if trust else config

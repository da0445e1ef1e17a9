"""Text to `Config`: reads YAML, applies overrides, says where a fault was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gerd.config.config import TRANSFORMATIONS, Config
from gerd.config.document import DEEPEST, Document, parse_yaml, read_text
from gerd.config.problems import explain
from gerd.errors import ConfigError, Problem, shorten


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
        document = _override(document, override)
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of fields"
        raise ConfigError([document.problem((), f"{what}; allowed: {', '.join(Config.model_fields)}")])
    try:
        config = Config.model_validate(document.data, context={"directory": directory})
    except ValidationError as error:
        raise explain(error, document) from None
    config._text = text + "".join(f"\n# --set {override}" for override in overrides) + "\n" * bool(overrides)
    config._document = replace(document, data=None)
    config._trusted = str(directory) if trust else None
    return config


def _override(document: Document, override: str) -> Document:
    """The document with one `path=value` applied; the value is YAML."""
    path, equals, value = override.partition("=")
    source = f"--set {override}"
    if not equals or not path.strip() or path.count(".") > DEEPEST:
        raise ConfigError([Problem(source, None, "", None, "allowed: path=value, such as noise.background=0.01")])
    parts = path.strip().split(".")
    if parts[0] == "sweep" and len(parts) > 1:
        parts = ["sweep", ".".join(parts[1:])]  # a swept path is one key
    data = document.data
    if parts[0] == "actors" and len(parts) > 3:  # a transformation that the text does not name is at rest
        actor = ".".join(parts[:2])
        if parts[2] in TRANSFORMATIONS and _at_rest(data, parts):
            data = _set(data, parts[:3], {"acceleration": 0}, source, actor)
    data = _set(data, parts, parse_yaml(value, source).data, source, path)
    return replace(document, data=data, overrides={**document.overrides, tuple(parts): source})


def _at_rest(data: Any, parts: list[str]) -> bool:
    """Whether the text has the actor but not the transformation of a path actors.N.transformation.…"""
    actors = data.get("actors") if isinstance(data, dict) else None
    if not isinstance(actors, list) or not parts[1].isdecimal() or int(parts[1]) >= len(actors):
        return False
    actor = actors[int(parts[1])]
    return isinstance(actor, dict) and actor.get(parts[2]) is None


def _set(node: Any, parts: list[str], value: Any, source: str, path: str) -> Any:
    if not parts:
        return value
    key, rest = parts[0], parts[1:]
    if isinstance(node, list):
        if key in map(str, range(len(node))):
            return [_set(item, rest, value, source, path) if str(i) == key else item for i, item in enumerate(node)]
        message = f"there is no item {key}; allowed: 0 to {len(node) - 1}" if node else "the list is empty"
        raise ConfigError([Problem(source, None, path, None, message)])
    if node is None or isinstance(node, dict):
        node = node or {}
        return {**node, key: _set(node.get(key), rest, value, source, path)}
    raise ConfigError([Problem(source, None, path, None, f"there is nothing below {shorten(node)} to set")])

"""Text to `Config`: reads YAML, applies overrides, checks every field and every swept value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gerd.config import MOST_MEMBERS, Config
from gerd.errors import ConfigError, Problem
from gerd.explain import explain
from gerd.sweep import member_count, with_values
from gerd.text import Document, parse_yaml, read_text


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
    _check_sweep(config, document)
    config._text = text if not overrides else config.resolved_yaml()
    config._trusted = str(directory) if trust else None
    return config


def _check_sweep(config: Config, document: Document) -> None:
    """Every value of every swept path gives a good config by itself."""
    if member_count(config) > MOST_MEMBERS:
        message = f"makes {member_count(config)} members; at most {MOST_MEMBERS} are allowed"
        raise ConfigError([document.problem(("sweep",), message)])
    problems = []
    for path, values in config.sweep.items():
        for i, value in enumerate(values):
            try:
                with_values(config, {path: value}, document.source)
            except ConfigError as error:
                line = document.line(("sweep", path, i))
                for found in error.problems:
                    where = f"sweep.{path}" + (f" → {found.path}" if found.path not in ("", path) else "")
                    problems.append(Problem(document.source, line, where, found.value, found.message))
                break
    if problems:
        raise ConfigError(problems)


def _override(document: Document, override: str) -> Document:
    """The document with one `path=value` applied; the value is YAML."""
    path, equals, value = override.partition("=")
    source = f"--set {override}"
    if not equals or not path.strip():
        raise ConfigError([Problem(source, None, "", None, "allowed: path=value, such as noise.background=0.01")])
    parts = path.strip().split(".")
    data = _set(document.data, parts, parse_yaml(value, source).data, source, path)
    return replace(document, data=data, overrides={**document.overrides, tuple(parts): source})


def _set(node: Any, parts: list[str], value: Any, source: str, path: str) -> Any:
    if not parts:
        return value
    key, rest = parts[0], parts[1:]
    if isinstance(node, list):
        if key.isdecimal() and int(key) < len(node):
            return [_set(item, rest, value, source, path) if i == int(key) else item for i, item in enumerate(node)]
        message = f"there is no item {key}; allowed: 0 to {len(node) - 1}" if node else "the list is empty"
        raise ConfigError([Problem(source, None, path, None, message)])
    if node is None or isinstance(node, dict):
        node = node or {}
        return {**node, key: _set(node.get(key), rest, value, source, path)}
    raise ConfigError([Problem(source, None, path, None, f"there is nothing below {node!r} to set")])

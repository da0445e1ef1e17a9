"""Sweeps: the members of a family, which differ in the swept fields and in nothing else.

A config with `sweep: {a: [1, 2], b: [x, y, z]}` has six members, numbered with the last path fastest. Every
member of recording i is drawn with the same randomness, because draws depend on (seed, index) alone.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gerd.config import Config
from gerd.errors import ConfigError, shorten
from gerd.text import Document, Path_


def member_count(config: Config) -> int:
    return math.prod(len(values) for values in config.sweep.values())


def labels(config: Config, member: int) -> dict[str, Any]:
    """The swept values of one member: path → value."""
    result: dict[str, Any] = {}
    for path, values in reversed(config.sweep.items()):
        member, position = divmod(member, len(values))
        result[path] = values[position]
    return dict(reversed(result.items()))


def with_values(config: Config, values: Mapping[str, Any], source: str = "sweep") -> Config:
    """`config` with the fields at the given paths replaced and no sweep of its own; checked anew."""
    data: Any = {name: getattr(config, name) for name in Config.model_fields}
    data["sweep"] = {}
    for path, value in values.items():
        data = _replaced(data, path.split("."), value, path, source)
    try:
        result = Config.model_validate(data)
    except ValidationError as error:
        raise explain(error, Document(data, source)) from None
    result._trusted = config._trusted
    return result


def _replaced(node: Any, rest: list[str], value: Any, path: str, source: str) -> Any:
    """A copy of `node` with `value` at the end of `rest`; everything beside the path is kept as it is."""
    if not rest:
        return value
    key = rest[0]
    if isinstance(node, BaseModel):
        node = {name: getattr(node, name) for name in type(node).model_fields}
    if isinstance(node, dict) and key in node and key not in ("sweep", "seed"):
        return {**node, key: _replaced(node[key], rest[1:], value, path, source)}
    if isinstance(node, tuple | list) and key.isdecimal() and int(key) < len(node):
        changed = _replaced(node[int(key)], rest[1:], value, path, source)
        return [*node[: int(key)], changed, *node[int(key) + 1 :]]
    names = [name for name in node if name not in ("sweep", "seed")] if isinstance(node, dict) else []
    if isinstance(node, tuple | list):
        names = [str(i) for i in range(len(node))]
    close = difflib.get_close_matches(key, names, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    here = ".".join(path.split(".")[: -len(rest)]) or "the config"
    allowed = f"{hint}allowed in {here}: {', '.join(names) or 'nothing below it'}"
    raise ConfigError([Document(None, source).problem((path,), f"no such field to sweep; {allowed}")])


def explain(error: ValidationError, document: Document) -> ConfigError:
    """pydantic's errors as problems with file, line, path, value and what was allowed."""
    problems = []
    for fault in error.errors(include_url=False):
        context = fault.get("ctx", {})
        path = _written_path(document.data, fault["loc"])
        if context.get("path"):
            path += tuple(int(part) if part.isdecimal() else part for part in context["path"].split("."))
        message = "is required" if fault["type"] == "missing" else fault["msg"].replace("Input should be", "allowed:")
        value = None if fault["type"] == "missing" else shorten(_plain(_value(document.data, path, fault["input"])))
        if fault["type"] == "form" and isinstance(fault["input"], Mapping):
            message += _hint(fault["input"], message)
        problems.append(document.problem(path, message, value))
    return ConfigError(problems)


def _written_path(data: Any, location: tuple[str | int, ...]) -> Path_:
    """pydantic's location without the names of the forms that it tried, which nobody wrote."""
    path: Path_ = ()
    for i, part in enumerate(location):
        if isinstance(data, BaseModel):
            data = {name: getattr(data, name) for name in type(data).model_fields}
        if isinstance(data, Mapping) and part in data:
            path, data = (*path, part), data[part]
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            path, data = (*path, part), data[part]
        elif i == len(location) - 1 and isinstance(data, Mapping):
            path = (*path, part)
    return path


def _value(data: Any, path: Path_, otherwise: Any) -> Any:
    for part in path:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return otherwise
    return data


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _hint(value: Mapping[str, Any], message: str) -> str:
    """A suggestion for a misspelt form such as {unifrom: …}."""
    names = [name for name in ("uniform", "normal", "choice", "boundary", "factor", "profile", "expression", "function")
             if f"{{{name}:" in message]  # fmt: skip
    close = [match for key in value for match in difflib.get_close_matches(str(key), names, 1)]
    return f"; did you mean {close[0]}?" if close else ""

"""pydantic's errors to problems that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gerd.errors import ConfigError, shorten
from gerd.text import Document, Path_
from gerd.values import FORM_KEYS


def explain(error: ValidationError, document: Document) -> ConfigError:
    """Every error as a problem with file, line, path, value and what was allowed."""
    problems = []
    for fault in error.errors(include_url=False):
        path = _written_path(document.data, fault["loc"])
        below = fault.get("ctx", {}).get("path")
        if below:
            path += tuple(int(part) if part.isdecimal() else part for part in below.split("."))
        if fault["type"] == "missing":
            problems.append(document.problem(path, "is required"))
            continue
        message = fault["msg"].replace("Input should be", "allowed:")
        if fault["type"] == "form" and isinstance(fault["input"], Mapping):
            message += _hint(fault["input"], message)
        value = document.data
        for part in path:
            value = _child(value, part)
        problems.append(
            document.problem(path, message, shorten(fault["input"] if value is _NOTHING else _plain(value)))
        )
    return ConfigError(problems)


_NOTHING = object()


def _child(data: Any, part: str | int) -> Any:
    """What stands under a key, index or field of plain data or models; `_NOTHING` where nothing does."""
    if isinstance(data, BaseModel):
        return getattr(data, str(part), _NOTHING)
    if isinstance(data, Mapping):
        return data.get(part, _NOTHING)
    if isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
        return data[part]
    return _NOTHING


def _written_path(data: Any, location: tuple[str | int, ...]) -> Path_:
    """pydantic's location without the names of the forms that it tried, which nobody wrote."""
    path: Path_ = ()
    for i, part in enumerate(location):
        child = _child(data, part)
        if child is not _NOTHING:
            path, data = (*path, part), child
        elif i == len(location) - 1 and isinstance(data, Mapping):
            path = (*path, part)  # a field that is missing
    return path


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _hint(value: Mapping[str, Any], message: str) -> str:
    """A suggestion for a misspelt form such as {unifrom: …}."""
    names = [name for name in FORM_KEYS if f"{{{name}:" in message]
    close = [match for key in value for match in difflib.get_close_matches(str(key), names, 1)]
    return f"; did you mean {close[0]}?" if close else ""

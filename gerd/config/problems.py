"""pydantic's errors to problems that a user can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import ValidationError

from gerd.config.base import plain, problems_of
from gerd.config.document import Document, Location, PlainData
from gerd.errors import ConfigError, Problem, did_you_mean, shorten

MOST_PROBLEMS = 50  # that are listed


def explain(error: ValidationError, document: Document) -> ConfigError:
    """Every error as a problem with file, line, path, value and what was allowed."""
    found = dict.fromkeys(
        _problem(document, part["loc"], part["type"].type, str(part["type"]), part["input"])  # type: ignore[union-attr]
        for part in problems_of(error)
    )
    problems = sorted(found, key=lambda problem: problem.line or 0)
    if len(problems) > MOST_PROBLEMS:
        rest = Problem(document.source, f"and {len(problems) - MOST_PROBLEMS} more problems")
        problems = [*problems[:MOST_PROBLEMS], rest]
    return ConfigError(problems)


def _problem(document: Document, path: Location, kind: str, message: str, checked: object) -> Problem:
    if kind == "missing" and isinstance(path[-1], int):
        path = path[:-1]
        kind = ""
        message = "allowed: two items"
    if kind == "missing":
        return document.problem(path, "is required")
    if kind == "form" and isinstance(checked, Mapping):
        message = did_you_mean(checked, re.findall(r"\{(\w+):", message)) + message
    if kind in ("form", "literal_error") and isinstance(checked, str):
        message = did_you_mean([checked], re.findall(r"[a-z_]{3,}", message)) + message
    written = _written(document.data, path)
    value = checked if written is _NOTHING else written
    return document.problem(path, message, None if value is None and written is _NOTHING else shorten(plain(value)))


_NOTHING = object()


def _written(data: PlainData, path: Location) -> PlainData:
    """What the user has written at `path`; `_NOTHING` where that is nothing."""
    for part in path:
        if isinstance(data, list):
            there = isinstance(part, int) and part in range(len(data))
        else:
            there = isinstance(data, Mapping) and part in data
        if not there:
            return _NOTHING
        data = data[part]
    return data

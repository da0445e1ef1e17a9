"""Sweeps: the members of a family, which differ in the swept fields and in nothing else.

A config with `sweep: {a: [1, 2], b: [x, y, z]}` has six members, numbered with the last path fastest. Every
member of recording i is drawn with the same randomness, because draws depend on (seed, index) alone.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gerd.config import Config
from gerd.errors import ConfigError
from gerd.explain import explain
from gerd.text import Document


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


def relatives(config: Config) -> list[Config]:
    """One config for each way in which the sweep changes the shapes at t = 0, which natural positions depend on."""
    forms = {path: values for path, values in config.sweep.items() if path.startswith(("actors", "sensor"))}
    moving = (".velocity", ".acceleration", ".speed_limit", ".intensity")
    forms = {path: values for path, values in forms.items() if not any(part in path for part in moving)}
    if not forms or not any(actor.translation.start == "uniform" for actor in config.actors):
        return []
    return [with_values(config, dict(zip(forms, row, strict=True))) for row in itertools.product(*forms.values())]


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

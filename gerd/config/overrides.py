"""`path=value`: one field of a config set to another value, in the data or in the text itself.

A `Document` and an override in, a `Document` out (`overridden`); or text and overrides in, text that gives the same
config out (`edited`), with comments and layout kept. Each edit is parsed again and compared with what the override
means. Where it cannot be made in place (it lies below an alias, say), the whole text is written anew, without comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import yaml

from gerd.config.actor import TRANSFORMATIONS
from gerd.config.document import DEEPEST, Document, dump_yaml, parse_yaml
from gerd.errors import ConfigError, Problem, shorten


def overridden(document: Document, override: str) -> Document:
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


def edited(text: str, overrides: Sequence[str], source: str = "config") -> str:
    """`text` with each of the overrides in it; ConfigError for one that cannot be parsed."""
    for override in overrides:
        document = overridden(parse_yaml(text, source), override)
        *_, path = document.overrides
        text = _in_place(text, path, document.data) or dump_yaml(document.data)
    return text


def _in_place(text: str, path: tuple[str, ...], wanted: Any) -> str | None:
    """`text` changed at `path` so that it gives the data `wanted`; None if that does not work."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    depth = 0
    while depth < len(path) and (below := _child(node, path[depth])) is not None:
        node, depth = below, depth + 1
    if node is None:
        return None
    if depth < len(path) and isinstance(node, yaml.MappingNode):
        result = _with_entry(text, node, path[depth], _flow(_at(wanted, path[: depth + 1])))
    else:
        result = _with_value(text, node, _flow(_at(wanted, path[:depth])))
    try:
        return result if parse_yaml(result).data == wanted else None
    except ConfigError:  # the edit has broken the text
        return None


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
        return node.value[int(key)]
    return None


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data[int(key) if isinstance(data, list) else key]
    return data


def _with_value(text: str, node: yaml.Node, value: str) -> str:
    """`text` with `value` in the place of a node."""
    start, end = node.start_mark.index, _end(node)
    space = " " * (start > 0 and text[start - 1] in ":-,")
    return text[:start] + space + value + text[end:]


def _with_entry(text: str, node: yaml.MappingNode, key: str, value: str) -> str:
    """`text` with one more entry at the end of a mapping."""
    entry = f"{_flow(key)}: {value}"
    end = _end(node)
    if node.flow_style or not node.value:
        comma = ", " if node.value else ""
        return f"{text[: end - 1].rstrip()}{comma}{entry}{text[end - 1 :]}"
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    return f"{text[:line_end]}\n{' ' * node.start_mark.column}{entry}{text[line_end:]}"


def _end(node: yaml.Node) -> int:
    """Where a node's text ends; a block's own mark lies behind the comments that follow it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)


def _flow(value: Any) -> str:
    """Plain data as YAML on one line, as people write it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.]*", value):
        return value
    return json.dumps(value, ensure_ascii=False)

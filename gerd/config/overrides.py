"""Changes of a config: a field set by `path=value`, an actor added or removed.

A `Document` and an override in, a `Document` out (`overridden`). Or text and changes in, text out, with comments and
layout kept (`edited`, `with_actor`, `without_actor`). Each change of a text is parsed again and compared with what it
means. Where it cannot be made in place (it lies below an alias, say), the whole text is written anew, without comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import yaml

from gerd.config.actor import TRANSFORMATIONS
from gerd.config.camera import spelled_out
from gerd.config.document import DEEPEST, Document, PlainData, dump_yaml, parse_yaml
from gerd.errors import ConfigError, Problem, shorten


def overridden(document: Document, override: str) -> Document:
    """The document with one `path=value` applied; the value is YAML."""
    path, equals, value = override.partition("=")
    source = f"--set {override}"
    if not equals or not path.strip() or path.count(".") > DEEPEST:
        raise ConfigError([Problem(source, "allowed: path=value, such as noise.background=0.01")])
    parts = path.strip().split(".")
    if parts[0] == "sweep" and len(parts) > 1:
        parts = ["sweep", ".".join(parts[1:])]  # a swept path is one key
    data = document.data
    if parts[0] == "camera" and len(parts) > 1 and isinstance(data, dict):
        data = spelled_out(data)
    if parts[0] == "actors" and len(parts) > 3:  # a transformation that the text does not name is at rest
        actor = ".".join(parts[:2])
        if parts[2] in TRANSFORMATIONS and _at_rest(data, parts):
            data = _set(data, parts[:3], {"acceleration": 0}, source, actor)
    data = _set(data, parts, parse_yaml(value, source).data, source, path)
    return replace(document, data=data, overrides={**document.overrides, tuple(parts): source})


def _at_rest(data: PlainData, parts: list[str]) -> bool:
    """Whether the text has the actor but not the transformation of a path actors.N.transformation.…"""
    actors = data.get("actors") if isinstance(data, dict) else None
    if not isinstance(actors, list) or not parts[1].isdecimal() or int(parts[1]) >= len(actors):
        return False
    actor = actors[int(parts[1])]
    return isinstance(actor, dict) and actor.get(parts[2]) is None


def _set(node: PlainData, parts: list[str], value: PlainData, source: str, path: str) -> PlainData:
    if not parts:
        return value
    key = parts[0]
    rest = parts[1:]
    if isinstance(node, list):
        if key in map(str, range(len(node))):
            return [_set(item, rest, value, source, path) if str(i) == key else item for i, item in enumerate(node)]
        message = f"there is no item {key}; allowed: 0 to {len(node) - 1}" if node else "the list is empty"
        raise ConfigError([Problem(source, message, path=path)])
    if node is None or isinstance(node, dict):
        node = node or {}
        return {**node, key: _set(node.get(key), rest, value, source, path)}
    raise ConfigError([Problem(source, f"there is nothing below {shorten(node)} to set", path=path)])


def edited(text: str, overrides: Sequence[str], source: str = "config") -> str:
    """`text` with each of the overrides in it; ConfigError for one that cannot be parsed."""
    for override in overrides:
        document = overridden(parse_yaml(text, source), override)
        *_, path = document.overrides
        text = _in_place(text, path, document.data) or dump_yaml(document.data)
    return text


def with_actor(text: str, actor: dict[str, PlainData], source: str = "config") -> str:
    """`text` with one actor more, the nearest."""
    data, actors, node = _actors(text, source)
    wanted = {**data, "actors": [*actors, actor]}
    appended = _with_item(text, node, actor) if actors and node else None
    return _if_it_gives(appended, wanted) or _in_place(text, ("actors",), wanted) or dump_yaml(wanted)


def without_actor(text: str, number: int, source: str = "config") -> str:
    """`text` without one actor, and without what is swept of it; the actors after it are swept by their new numbers."""
    data, actors, node = _actors(text, source)
    if not 0 <= number < len(actors):
        raise ConfigError([Problem(source, f"there is no actor {number} of {len(actors)}", path="actors")])
    wanted = {**data, "actors": actors[:number] + actors[number + 1 :]}
    taken = _without_item(text, node, number) if len(actors) > 1 and node else None
    text = _if_it_gives(taken, wanted) or _in_place(text, ("actors",), wanted) or dump_yaml(wanted)
    if not isinstance(data.get("sweep"), dict):
        return text
    wanted["sweep"] = _renumbered(data["sweep"], number)
    return text if wanted["sweep"] == data["sweep"] else _in_place(text, ("sweep",), wanted) or dump_yaml(wanted)


def _actors(text: str, source: str) -> tuple[dict[str, PlainData], list[PlainData], yaml.SequenceNode | None]:
    """What a text says, its actors, and where they are written."""
    data = parse_yaml(text, source).data
    actors = (data.get("actors") or []) if isinstance(data, dict) else None
    if not isinstance(actors, list):
        raise ConfigError([Problem(source, "they are no list in the text; edit the text by hand", path="actors")])
    node = _child(yaml.compose(text, Loader=yaml.SafeLoader), "actors")
    return data, actors, node if isinstance(node, yaml.SequenceNode) else None


def _renumbered(sweep: dict[str, PlainData], gone: int) -> dict[str, PlainData]:
    """A sweep of actors from which one was taken away."""
    result = {}
    for path, values in sweep.items():
        parts = str(path).split(".")
        if parts[0] == "actors" and len(parts) > 1 and parts[1].isdecimal():
            if int(parts[1]) == gone:
                continue
            if int(parts[1]) > gone:
                parts[1] = str(int(parts[1]) - 1)
        result[".".join(parts)] = values
    return result


def _if_it_gives(text: str | None, wanted: PlainData) -> str | None:
    """An edited text, if it has the data that it should have."""
    try:
        return text if text is not None and parse_yaml(text).data == wanted else None
    except ConfigError:  # the edit has broken the text
        return None


def _in_place(text: str, path: tuple[str, ...], wanted: PlainData) -> str | None:
    """`text` changed at `path` so that it gives the data `wanted`; None if that does not work."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    depth = 0
    while depth < len(path) and (below := _child(node, path[depth])) is not None:
        node = below
        depth += 1
    if node is None:
        return None
    if depth < len(path) and isinstance(node, yaml.MappingNode):
        result = _with_entry(text, node, path[depth], _flow(_at(wanted, path[: depth + 1])))
    else:
        result = _with_value(text, node, _flow(_at(wanted, path[:depth])))
    return _if_it_gives(result, wanted)


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
        return node.value[int(key)]
    return None


def _at(data: PlainData, path: tuple[str, ...]) -> PlainData:
    for key in path:
        data = data[int(key) if isinstance(data, list) else key]
    return data


def _with_value(text: str, node: yaml.Node, value: str) -> str:
    """`text` with `value` in the place of a node."""
    start, end = node.start_mark.index, _end(node)
    before = text[:start].rstrip()
    if before.endswith(":"):  # a block begins on the line below its key
        start = len(before)
    if start > 0 and text[start - 1] in ":-,":
        value = f" {value}"
    return text[:start] + value + text[end:]


def _with_entry(text: str, node: yaml.MappingNode, key: str, value: str) -> str:
    """`text` with one more entry at the end of a mapping."""
    entry = f"{_flow(key)}: {value}"
    end = _end(node)
    if node.flow_style or not node.value:
        comma = ", " if node.value else ""
        return f"{text[: end - 1].rstrip()}{comma}{entry}{text[end - 1 :]}"
    line_end = _line_end(text, end)
    return f"{text[:line_end]}\n{' ' * node.start_mark.column}{entry}{text[line_end:]}"


def _with_item(text: str, node: yaml.SequenceNode, item: dict[str, PlainData]) -> str:
    """`text` with one more item at the end of a list that is not empty."""
    end = _end(node.value[-1])
    if node.flow_style:
        return f"{text[:end]}, {_flow(item)}{text[end:]}"
    dash = " " * node.start_mark.column
    lines = f"\n{dash}  ".join(f"{_flow(key)}: {_flow(value)}" for key, value in item.items())
    end = _line_end(text, end)
    return f"{text[:end]}\n{dash}- {lines}{text[end:]}"


def _without_item(text: str, node: yaml.SequenceNode, number: int) -> str:
    """`text` without one item of a list that has others."""
    item = node.value[number]
    start, end = item.start_mark.index, _end(item)
    if not node.flow_style:  # whole lines, comments at their ends included
        return text[: text.rfind("\n", 0, start) + 1] + text[_line_end(text, end) + 1 :]
    if number:
        return text[: _end(node.value[number - 1])] + text[end:]
    return text[:start] + text[node.value[1].start_mark.index :]


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _end(node: yaml.Node) -> int:
    """Where a node's text ends; a block's own mark lies behind the comments that follow it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)


def _flow(value: PlainData) -> str:
    """Plain data as YAML on one line, as people write it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.]*", value):
        return value
    return json.dumps(value, ensure_ascii=False)

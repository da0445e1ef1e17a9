"""Changes of a config's text: `path=value` written into the YAML itself, so that comments and layout stay.

Text and overrides, as `gerd.parse` takes them, in; text that gives the same config out. What an override means is
`loading`'s to say: each edit is parsed again and compared with that, and where it cannot be made in place (it lies
below an alias, say) the whole text is written anew, without its comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from gerd.config.document import dump_yaml, parse_yaml
from gerd.config.load import _override
from gerd.errors import ConfigError


def edited(text: str, overrides: Sequence[str], source: str = "config") -> str:
    """`text` with each of the overrides in it; ConfigError for one that can be understood by nobody."""
    for override in overrides:
        document = _override(parse_yaml(text, source), override)
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

"""YAML text in, plain data and the line of every value out.

Follows the YAML 1.2 core schema, which is what people expect: `1e-3` is a number, `on` and `no` are words,
and a key that stands twice is an error. PyYAML's own loader follows YAML 1.1 and does none of that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gerd.errors import ConfigError, Problem

LONGEST_TEXT = 16 * 2**20  # bytes; a config is read whole
MOST_VALUES = 2_000_000  # values after expanding aliases, so that a small file cannot fill the memory

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where each part of it was written."""

    data: Any
    source: str = "config"
    lines: dict[Path_, int] = field(default_factory=dict)
    overrides: dict[tuple[str, ...], str] = field(default_factory=dict)  # path → the command-line option that set it

    def line(self, path: Path_) -> int | None:
        """The line of `path`, or of the nearest enclosing value that was written."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def problem(self, path: Path_, message: str, value: str | None = None) -> Problem:
        words = tuple(map(str, path))
        for length in range(len(words), 0, -1):
            if words[:length] in self.overrides:
                return Problem(self.overrides[words[:length]], None, ".".join(words), value, message)
        return Problem(self.source, self.line(path), ".".join(words), value, message)


class _CoreLoader(yaml.SafeLoader):
    """Resolves plain scalars by the YAML 1.2 core schema."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - the base class fills it in


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


def read_text(path: str | Path) -> str:
    """The text of a config file, or a `ConfigError` that names the file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError([Problem(str(path), None, "", None, f"cannot be read: {error.strerror}")]) from None
    if len(raw) > LONGEST_TEXT:
        message = f"is {len(raw)} bytes long; at most {LONGEST_TEXT} are allowed"
        raise ConfigError([Problem(str(path), None, "", None, message)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"is not UTF-8 text: byte {raw[error.start]:#04x} at offset {error.start}"
        raise ConfigError([Problem(str(path), line, "", None, message)]) from None


def parse_yaml(text: str, source: str = "config") -> Document:
    """`text` as a `Document`; every fault is a `ConfigError` with the line."""
    if len(text) > LONGEST_TEXT:
        raise ConfigError([Problem(source, None, "", None, f"is too long; at most {LONGEST_TEXT} bytes are allowed")])
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise ConfigError([Problem(source, line, "", None, f"is not YAML: {error.problem}")]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem(source, None, "", None, f"is not YAML: {error}")]) from None
    except RecursionError:
        raise ConfigError([Problem(source, None, "", None, "is nested too deeply")]) from None
    builder = _Builder(source)
    try:
        data = None if node is None else builder.build(node, (), ())
    except RecursionError:
        raise ConfigError([Problem(source, None, "", None, "is nested too deeply")]) from None
    return Document(data, source, builder.lines)


class _Builder:
    """Turns YAML nodes into plain data, noting lines; refuses cycles, duplicates and explosions."""

    def __init__(self, source: str):
        self.source = source
        self.lines: dict[Path_, int] = {}

    def fail(self, node: yaml.Node, path: Path_, message: str) -> ConfigError:
        problem = Problem(self.source, node.start_mark.line + 1, ".".join(map(str, path)), None, message)
        return ConfigError([problem])

    def build(self, node: yaml.Node, path: Path_, ancestors: tuple[int, ...]) -> Any:
        if id(node) in ancestors:
            raise self.fail(node, path, "contains itself (a cyclic alias)")
        if len(self.lines) > MOST_VALUES:
            raise self.fail(node, path, f"holds more than {MOST_VALUES} values")
        self.lines[path] = node.start_mark.line + 1
        inside = (*ancestors, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i), inside) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                if not isinstance(key_node, yaml.ScalarNode):
                    raise self.fail(key_node, path, "has a key that is not a word")
                key = key_node.value
                if key in result:
                    raise self.fail(key_node, (*path, key), "stands twice; each key may be given once")
                result[key] = self.build(value_node, (*path, key), inside)
                self.lines[(*path, key)] = key_node.start_mark.line + 1
            return result
        return self.scalar(node, path)

    def scalar(self, node: yaml.Node, path: Path_) -> Any:
        kind, value = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
        if kind == "str":
            return value
        if kind == "null":
            return None
        if kind == "bool":
            return value.lower() == "true"
        if kind == "int":
            digits = value.lstrip("+-")
            base = {"0o": 8, "0x": 16}.get(digits[:2], 10)
            if len(digits) > 400:
                raise self.fail(node, path, "is a number with too many digits")
            return int(value, base)
        if kind == "float":
            return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))
        raise self.fail(node, path, f"has the tag {node.tag}; only plain YAML values are allowed")

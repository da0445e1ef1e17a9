"""YAML text in, plain data and the line of every value out.

Follows the YAML 1.2 core schema, which is what people expect: `1e-3` is a number, `on` and `no` are words,
and a key that stands twice is an error. PyYAML's own loader follows YAML 1.1 and does none of that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from gerd.errors import ConfigError, Problem, did_you_mean, shorten

LONGEST_TEXT = 4 * 2**20  # bytes; a config is read whole
MOST_VALUES = 100_000  # values that are written: some seconds of reading
MOST_REPEATED = 100_000  # values that aliases stand for, so that a small file cannot fill the memory
DEEPEST = 64  # lists and mappings inside each other
LONGEST_INTEGER = 400  # digits
MOST_NEIGHBOURS = 1000  # files of a folder whose names are compared with one that is not there
_TOO_LONG = f"is too long; at most {LONGEST_TEXT} bytes are allowed"
_TOO_DEEP = f"is nested too deeply; at most {DEEPEST} levels are allowed"

Location = tuple[str | int, ...]
PlainData = Any  # what YAML and JSON hold, not yet checked: dict, list, str, int, float, bool or None
UNNAMED = "config"  # the source of a config that comes from no file


@dataclass(frozen=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where each part of it was written."""

    data: PlainData
    source: str = UNNAMED
    lines: dict[Location, int] = field(default_factory=dict)
    overrides: dict[tuple[str, ...], str] = field(default_factory=dict)  # path → the command-line option that set it

    def line(self, path: Location) -> int | None:
        """The line of `path`, or of the nearest enclosing value that was written."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def problem(self, path: Location, message: str, value: str | None = None) -> Problem:
        words = tuple(map(str, path))
        for length in range(len(words), 0, -1):
            if words[:length] in self.overrides:
                return Problem(self.overrides[words[:length]], message, path=dotted(path), value=value)
        for overridden, option in self.overrides.items():
            if path and overridden[: len(words)] == words and path not in self.lines:
                return Problem(option, message, path=dotted(path), value=value)
        return Problem(self.source, message, line=self.line(path), path=dotted(path), value=value)


def dotted(path: Location) -> str:
    """A path as it is shown: `actors.0.shape`; unprintable parts are quoted."""
    return ".".join(word if word and word.isprintable() else repr(word) for word in map(str, path))


class _CoreLoader(yaml.SafeLoader):
    """Resolves plain scalars by the YAML 1.2 core schema; refuses too many and too deeply nested values."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - filled in below

    depth = values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.values += 1
        if self.depth > DEEPEST:
            raise self.refused(_TOO_DEEP)
        if self.values > MOST_VALUES:
            raise self.refused(f"holds too many values; at most {MOST_VALUES} are allowed")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def refused(self, message: str) -> ConfigError:
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        return ConfigError([Problem(str(self.name), message, line)])


class _CoreDumper(yaml.SafeDumper):
    """Quotes whatever either YAML 1.1 or 1.2 would take for something other than text."""


_SCALARS = {  # kind: (pattern, first characters)
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}
_TAG = "tag:yaml.org,2002:"
_CoreDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar(f"{_TAG}str", text, None if text.isprintable() else '"')
)
for _kind, (_pattern, _first) in _SCALARS.items():
    for _class in (_CoreLoader, _CoreDumper):
        _class.add_implicit_resolver(_TAG + _kind, re.compile(rf"^(?:{_pattern})$"), _first)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a config file, or a `ConfigError` that names the file."""
    try:
        with open(path, "rb") as file:
            raw = file.read(LONGEST_TEXT + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        reason = f"there is no such file; {_neighbour(Path(path))}" if missing else f"cannot be read: {error.strerror}"
        raise ConfigError([Problem(str(path), reason.rstrip(" ;"))]) from None
    if len(raw) > LONGEST_TEXT:
        raise ConfigError([Problem(str(path), _TOO_LONG)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"is not UTF-8 text: byte {raw[error.start]:#04x} at offset {error.start}"
        raise ConfigError([Problem(str(path), message, line)]) from None


def _neighbour(path: Path) -> str:
    """A suggestion: the file of the same folder whose name is most like that of `path`, or nothing."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, MOST_NEIGHBOURS) if entry.is_file()]
    except OSError:
        return ""
    for ending in (".yaml", ".yml"):  # rather than another ending of the same length
        if (alike := path.with_suffix(ending)).name in names:
            return f"did you mean {alike}? "
    return did_you_mean([path.name], names)


_HINTS = {  # words of PyYAML's: what has mostly happened
    "expected <block end>": "is the line indented as its neighbours are? All lines of one list or mapping begin in the "
    "same column",
    "mapping values are not allowed": "is the line indented too far, or does a text with a colon need quotes?",
    "'\\t' that cannot start": "indent with blanks, not with tabs",
}


def parse_yaml(text: str, source: str = UNNAMED) -> Document:
    """`text` as a `Document`; what is wrong is a `ConfigError` with the line."""
    if len(text) > LONGEST_TEXT:
        raise ConfigError([Problem(source, _TOO_LONG)])
    line: int | None = None
    try:
        loader = _CoreLoader(text)
        loader.name = source
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        message = ", ".join(part for part in (error.context, error.problem) if part)
        if error.context_mark and error.context_mark.line + 1 != line:
            message += f" (begun on line {error.context_mark.line + 1})"
        message += next((f"; {hint}" for words, hint in _HINTS.items() if words in message), "")
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = f"the character {chr(error.character)!a} is not allowed"
    except (ValueError, OverflowError):
        line, message = loader.line + 1, "invalid escape"  # such as "\\UFFFFFFFF"
    else:
        builder = _Builder(source)
        return Document(None if node is None else builder.build(node, (), ()), source, builder.lines)
    raise ConfigError([Problem(source, f"is not YAML: {message}", line)])


def dump_yaml(data: PlainData) -> str:
    """Plain data as YAML text that `parse_yaml` turns into the same data."""
    return yaml.dump(data, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)


class _Builder:
    """Turns YAML nodes into plain data, noting lines; refuses cycles, duplicates and explosions."""

    def __init__(self, source: str):
        self.source = source
        self.lines: dict[Location, int] = {}
        self.seen: set[int] = set()
        self.repeated = 0

    def fail(self, node: yaml.Node, path: Location, message: str) -> ConfigError:
        return ConfigError([Problem(self.source, message, line=node.start_mark.line + 1, path=dotted(path))])

    def build(self, node: yaml.Node, path: Location, ancestors: tuple[int, ...]) -> PlainData:
        if id(node) in ancestors:
            raise self.fail(node, path, "contains itself (a cyclic alias)")
        self.repeated += id(node) in self.seen
        if self.repeated > MOST_REPEATED:
            raise self.fail(node, path, f"aliases stand for too much; at most {MOST_REPEATED} values are allowed")
        if len(ancestors) > DEEPEST:
            raise self.fail(node, path, _TOO_DEEP)
        self.seen.add(id(node))
        self.lines[path] = node.start_mark.line + 1
        inside = (*ancestors, id(node))
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.build(item, (*path, i), inside) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self.mapping(node, path, inside)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, kind, path)
        raise self.tagged(node, path)

    def tagged(self, node: yaml.Node, path: Location) -> ConfigError:
        tag = node.tag.replace(_TAG, "!!")
        return self.fail(node, path, f"has the tag {tag}; only plain YAML values are allowed")

    def mapping(self, node: yaml.MappingNode, path: Location, inside: tuple[int, ...]) -> dict[str, PlainData]:
        result: dict[str, PlainData] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.fail(key_node, path, "has a list or a mapping as a key; only words are allowed")
            if key_node.tag.removeprefix(_TAG) not in ("str", *_SCALARS):
                raise self.tagged(key_node, path)
            key = key_node.value
            if key in result:
                raise self.fail(key_node, (*path, key), "is given twice; each key may be given once")
            result[key] = self.build(value_node, (*path, key), inside)
            self.lines[(*path, key)] = key_node.start_mark.line + 1
        return result

    def scalar(self, node: yaml.ScalarNode, kind: str, path: Location) -> str | int | float | bool | None:
        value = node.value
        if kind == "str":
            return value
        if kind not in _SCALARS:
            raise self.tagged(node, path)
        if not re.fullmatch(_SCALARS[kind][0], value):
            raise self.fail(node, path, f"{shorten(value)} is not what its tag says, !!{kind}")
        if kind == "null":
            return None
        if kind == "bool":
            return value.lower() == "true"
        if kind == "float":
            return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if len(value) > LONGEST_INTEGER:
            raise self.fail(node, path, f"has {len(value)} digits; at most {LONGEST_INTEGER} are allowed")
        return int(value, {"0o": 8, "0x": 16}.get(value[:2], 10))

"""YAML text to plain data: the YAML 1.2 core schema, the line of every value, and no way to break it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gerd
from gerd.config.document import dump_yaml, parse_yaml
from gerd.errors import ConfigError, Problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("-1.5e+2", -150.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1_000", "1_000"),
        ("0.1e", "0.1e"),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("False", False),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("~", None),
        ("null", None),
        ("", None),
        ("nil", "nil"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("inf", "inf"),
        ("nan", "nan"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("=", "="),
        ("<<", "<<"),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
        ("{a: 1, 2: b, true: c}", {"a": 1, "2": "b", "true": "c"}),
        ("|\n  two\n  lines", "two\nlines"),
    ],
)
def test_a_value_is_what_yaml_1_2_says(text: str, value: Any) -> None:
    found = parse_yaml(f"key: {text}").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(parse_yaml("[.nan]").data[0])


def test_every_value_has_its_line() -> None:
    document = parse_yaml("# comment\na: 1\nb:\n  - x\n  - {c: 2,\n     d: [3,\n  4]}\n")
    assert document.data == {"a": 1, "b": ["x", {"c": 2, "d": [3, 4]}]}
    lines = {
        (): 2,
        ("a",): 2,
        ("b",): 3,
        ("b", 0): 4,
        ("b", 1): 5,
        ("b", 1, "c"): 5,
        ("b", 1, "d"): 6,
        ("b", 1, "d", 1): 7,
    }
    assert {path: document.line(path) for path in lines} == lines


def test_what_is_not_written_has_the_line_of_what_encloses_it() -> None:
    document = parse_yaml("\nx: 0\na:\n  b: 1\n")
    assert document.line(("a", "c")) == 3
    assert document.line(("c",)) == 2


def test_an_alias_stands_for_what_it_names() -> None:
    assert parse_yaml("a: &x [1, {b: 2}]\nc: *x\n").data == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=100)
def test_dumped_data_is_read_as_the_same_data(data: Any) -> None:
    assert parse_yaml(dump_yaml(data)).data == data


@pytest.mark.parametrize("text", ["1e3", "0o17", "on", "1_000", "~", "", "null", "2020-01-01", "0x1F", ".5", "=", "<<"])
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    assert parse_yaml(dump_yaml({"a": text})).data == {"a": text}


# What YAML gives a meaning to, so that random text gets past the scanner often enough.
bits = st.sampled_from([*"[]{},:?-#&*!|>%@`'\"~<= \t\n\\", "\n  ", "- ", ": ", "&a ", "*a", "!!int ", "---\n", "...\n"])
words = st.sampled_from(["actors", "shape", "square", "seed", "sweep", "1", "1e3", "null", '"\\x41"', '"\\UFFFFFFFF"'])
texts = st.one_of(st.text(), st.lists(st.one_of(bits, words, st.text(max_size=3)), max_size=30).map("".join))


def problems_of(parse: Callable[[str], Any], text: str) -> tuple[Problem, ...]:
    """What is wrong with a text; nothing if it is good, and any exception but a ConfigError is passed on."""
    try:
        parse(text)
    except ConfigError as error:
        return error.problems
    return ()


@given(texts)
@settings(max_examples=1000)
def test_no_text_raises_anything_but_a_config_error(text: str) -> None:
    for parse in (parse_yaml, gerd.parse):
        for problem in problems_of(parse, text):
            assert problem.source == "config"
            assert problem.line is None or 1 <= problem.line <= len(text.splitlines()) + 1


GOOD: dict[str, Any] = {
    "seed": 3,
    "sensor": {"width": 16, "height": 12},
    "steps": 4,
    "integrator": {"threshold": 0.5, "initial": "uniform"},
    "noise": {"background": 0.01},
    "actors": [
        {
            "shape": {"polygon": [[-0.5, -0.5], [0.5, -0.5], [0, 0.5]]},
            "intensity": {"uniform": [0, 1]},
            "translation": {"start": [5, {"normal": [5, 1]}], "velocity": {"choice": [[1, 0], [0, 1]]}},
            "scale": {"start": 5, "velocity": {"factor": 0.9}, "limits": [1, None]},
            "rotation": {"velocity": {"boundary": 1}, "acceleration": {"profile": "sine", "amplitude": 1}},
            "shear": {"acceleration": {"expression": "sin(t)"}},
        },
        {"shape": "circle", "rotation": {"acceleration": {"function": "a:b"}}},
        {"shape": {"svg": "M 0 0 L 1 0 L 0 1 Z"}},
    ],
    "sweep": {"time_scale": [1, 2], "actors.0.intensity": [0, {"uniform": [0, 1]}]},
}
junk = st.one_of(
    plain,
    st.floats(),
    st.sampled_from(
        [-1, 0, 10**400, "uniform", "centre", [], {}, [[]], [1, 2], {"uniform": [2, 1]}, {"mask": "\0"}, {"text": "7"}]
    ),
)


def paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(deeper for key, child in children for deeper in paths(child, (*path, key)))]


@given(st.data())
@settings(max_examples=300)
def test_no_value_in_a_good_config_raises_anything_but_a_config_error(data: st.DataObject) -> None:
    """Whatever stands in place of a part of a config, or beside it, is accepted or refused by its place."""
    changed = copy.deepcopy(GOOD)
    *above, last = data.draw(st.sampled_from(paths(GOOD)[1:]))
    parent = changed
    for key in above:
        parent = parent[key]
    if isinstance(parent, dict) and data.draw(st.booleans()):
        last = data.draw(st.text(max_size=5))
    parent[last] = data.draw(junk)
    text = dump_yaml(changed)
    problems = problems_of(gerd.parse, text)
    assert all(problem.line is not None and problem.path for problem in problems)
    if not problems:
        config = gerd.parse(text)
        assert gerd.parse(config.resolved_yaml()).digest == config.digest


def test_the_config_that_is_changed_above_is_good() -> None:
    assert gerd.parse(dump_yaml(GOOD)).resolved()["sweep"]["time_scale"] == [1.0, 2.0]

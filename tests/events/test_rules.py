"""The three backends state the rules by the same names, in the same order, with the same arguments, and briefly."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gerd

EVENTS = Path(gerd.__file__).parent / "events"
RULES = {
    "words": "seed element step index purpose",
    "column": "x right",
    "crossing_of_side": "y top bottom x_top slope",
    "crossings_of_ellipse": "y centre_y reach centre_x tilt width",
    "initial_state": "word largest",
    "stationary_state": "word threshold upward",
    "how_many": "word table",
    "pick": "word last chosen",
    "integrate_and_fire": "state change threshold to_zero",
    "dropped": "word bound",
    "passages": "state change threshold",
    "passage_us": "begin length missing size us_per_unit",
}
MOST_LINES = 9


@pytest.mark.parametrize("name", ["definition", "cpu", "cuda"])
def test_the_rules_can_be_read_across(name: str) -> None:
    parsed = ast.parse((EVENTS / name / "rules.py").read_text())
    rules = [node for node in parsed.body if isinstance(node, ast.FunctionDef)][: len(RULES)]
    assert {rule.name: " ".join(argument.arg for argument in rule.args.args) for rule in rules} == RULES
    assert [rule.name for rule in rules] == list(RULES)
    for rule in rules:
        assert ast.get_docstring(rule)
        assert (rule.end_lineno or 0) - rule.body[1].lineno < MOST_LINES, rule.name

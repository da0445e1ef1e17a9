"""The three backends state the rules by the same names, with the same arguments."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

RULES = {
    "words": "seed element step index purpose",
    "column": "x right",
    "crossing_of_side": "y top bottom x_top slope",
    "crossings_of_ellipse": "y centre_y reach centre_x tilt width",
    "initial_state": "word least most",
    "stationary_state": "word threshold_on threshold_off upward",
    "how_many": "word table",
    "pick": "word last chosen",
    "response": "count table lowest",
    "gain": "threshold_on per_us us",
    "integrate_and_fire": "state change threshold_on threshold_off to_zero rested",
    "progress": "begin end us size us_per_unit",
    "next_event": "state done ready change threshold_on threshold_off begin end us_per_unit to_zero rest",
    "dropped": "word bound",
    "threshold_ahead": "change threshold_on threshold_off",
    "passages": "state change threshold",
    "passage_us": "begin length missing size us_per_unit",
}


@pytest.mark.parametrize("name", ["definition", "cpu", "cuda"])
def test_the_rules_have_the_same_names_and_arguments(name: str) -> None:
    if name == "cuda":
        pytest.importorskip("triton")
    module = import_module(f"gerd.events.{name}.rules")
    rules = {rule: getattr(module, rule) for rule in RULES}
    plain = {name: getattr(rule, "fn", rule) for name, rule in rules.items()}  # Triton keeps the function as `fn`
    assert {name: " ".join(inspect.signature(rule).parameters) for name, rule in plain.items()} == RULES
    assert all(rule.__doc__ for rule in plain.values())

"""Small inputs are answered soon: what is done for a part of a config does not grow with the number of its faults."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from typing import Any

import fontTools.ttLib
import pytest

import gerd
from gerd.config.config import MOST_ACTORS, Config
from gerd.geometry import shapes

Count = Callable[[Any, str], list[Any]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Lists the calls of a function from now on."""

    def counted(owner: Any, name: str) -> list[Any]:
        made: list[Any] = []
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *arguments, **named: made.append(1) or real(*arguments, **named))
        return made

    return counted


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(gerd.ConfigError) as error:
        gerd.parse(json.dumps(config))
    return str(error.value)


def test_few_of_many_misspelt_words_are_compared_with_the_right_ones(calls: Count) -> None:
    compared = calls(difflib, "get_close_matches")
    wrong = {f"shap{number}": 1 for number in range(300)}
    assert "did you mean shape?" in refused({"actors": [{"shape": "square", **wrong}] * 3})
    assert "allowed: square, circle" in refused({"actors": [{"shape": wrong}]})
    assert len(compared) <= 40
    assert "unknown key; allowed: " in refused({"x" * 1000: 1, "actors": []})
    assert len(compared) <= 40


def test_too_many_actors_are_not_looked_at(calls: Count) -> None:
    looked_at = calls(shapes, "outline"), calls(difflib, "get_close_matches")
    assert "at most 64 items, not 5000" in refused({"actors": [{"shpe": "sqare"}] * 5000})
    assert looked_at == ([], [])
    assert len(gerd.parse(json.dumps({"actors": [{"shape": "square"}] * MOST_ACTORS})).actors) == MOST_ACTORS


def test_a_font_is_read_once_for_all_texts(calls: Count) -> None:
    shapes._font.cache_clear()
    shapes._glyph.cache_clear()
    opened, drawn = calls(fontTools.ttLib, "TTFont"), calls(shapes, "_rings_of_pen")
    texts = [{"text": f"{number:03d}"} for number in range(60)]
    config = Config.model_validate({"actors": [{"shape": "square"}], "sweep": {"actors.0.shape": texts}})
    assert len(config.sweep["actors.0.shape"]) == 60
    assert len(opened) == 1
    assert len(drawn) == 10


def test_more_values_than_can_be_read_soon_are_refused() -> None:
    assert "at most 100000 are allowed" in refused({"actors": [], "x": [0] * 100_000})


def test_a_path_with_too_many_vertices_is_not_drawn_to_its_end(calls: Count) -> None:
    drawn = calls(shapes, "_bezier")
    assert "too many vertices" in refused({"actors": [{"shape": {"svg": "M0 0" + "C1 1 2 2 3 0Z" * 3000}}]})
    assert len(drawn) <= shapes.MOST_VERTICES // shapes.CURVE_PIECES

"""Overrides written into a config's text: the same config as without the detour, and the rest of the text untouched."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.family import TEXT

import gerd
from gerd.config.overrides import edited, with_actor, without_actor

OVERRIDES = st.sampled_from(
    [
        "seed=9",
        "steps=12",
        "sensor.width=40",
        "noise.background=1e-3",
        "noise.event=0.25",
        "integrator.threshold=0.4",
        "integrator.reset=zero",
        "upsampling=4",
        "actors.0.shape={text: 'a: b #1'}",
        "actors.0.shape=square",
        "actors.0.translation.velocity=[0.5, {uniform: [-1, 1]}]",
        "actors.0.translation.border=wrap",
        "actors.0.scale={start: 9}",
        "actors.0.scale.start=8",
        "actors.0.rotation.velocity={normal: [0, 2]}",
        "actors.1.translation.start=[4, 5]",
        "actors.1.intensity=-0.5",
        "sweep={}",
        "sweep.time_scale=[1, 2, 3]",
        "sweep.noise.background=[0, 0.5]",
    ]
)


@given(st.lists(OVERRIDES, min_size=1, max_size=4))
def test_an_edited_text_gives_the_config_of_the_overrides(overrides: list[str]) -> None:
    text = edited(TEXT, overrides)
    assert gerd.parse(text).digest == gerd.parse(TEXT, overrides=overrides).digest
    assert "# A family of two shapes." in text
    assert "# the nearer one" in text


@pytest.mark.parametrize(
    ("override", "changes"),
    [
        ("seed=9", {"seed: 4": "seed: 9"}),
        ("noise.background=0.5", {"background: 0.01   # a little": "background: 0.5   # a little"}),
        ("noise.event=0.5", {"0.01   # a little\n": "0.01   # a little\n  event: 0.5\n"}),
        ("sensor.width=31", {"width: 30": "width: 31"}),
        ("actors.0.translation.border=wrap", {"acceleration: 0}": "acceleration: 0, border: wrap}"}),
        ("actors.0.scale.start=8", {"start: {uniform: [6, 12]}": "start: 8"}),
        (
            "actors.1.rotation.velocity=3",
            {"# the nearer one\n": "# the nearer one\n    rotation: {acceleration: 0, velocity: 3}\n"},
        ),
    ],
)
def test_an_edit_leaves_the_rest_of_the_text_alone(override: str, changes: dict[str, str]) -> None:
    ((before, after),) = changes.items()
    assert TEXT.count(before) == 1
    assert edited(TEXT, [override]) == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("actors: [{shape: square}]", "steps=5"),
        ("actors: [{shape: square,}]\nnoise:\n", "noise.event=0.5"),
        ("actors:\n- shape: square\n  scale:\nnoise: {}\n", "actors.0.scale.start=9"),
        ("noise: {}\nactors: [{shape: square}]\n", "noise.event=0.5"),
        (
            "actors:\n  - shape: square\n    scale: &s {start: 9}\n  - shape: circle\n    scale: *s\n",
            "actors.0.scale.start=5",
        ),
        ("actors:\r\n  - shape: square\r\n    scale: {start: 9}\r\nsteps: 7\r\n", "actors.0.scale.start=5"),
        ("{actors: [{shape: square}], steps: 8}", "steps=9"),
        ("actors: [{shape: |\n  square\n}]", "steps=3"),
        ("sensor: # here\n  width: 40\nactors: [{shape: square}]", "sensor={width: 50}"),
    ],
)
def test_texts_of_other_forms_can_be_edited(text: str, override: str) -> None:
    try:
        wanted = gerd.parse(text, overrides=[override])
    except gerd.ConfigError:
        with pytest.raises(gerd.ConfigError):
            gerd.parse(edited(text, [override]))
    else:
        assert gerd.parse(edited(text, [override])).digest == wanted.digest


ACTOR = {"shape": "star", "rotation": {"velocity": 3}}
WITH_SWEEP = """\
steps: 9  # few
actors:
  - shape: square   # the farthest
    scale: {start: 8}
  # in the middle
  - shape: circle   # round
    rotation: {velocity: 1}

  - {shape: triangle}
sweep:  # of two
  actors.0.scale.start: [4, 8]
  actors.1.rotation.velocity: [1, 2]
  time_scale: [1, 2]
"""
FORMS = {
    "block": WITH_SWEEP,
    "at the end": "steps: 9\nactors:\n- shape: square\n- shape: circle",
    "flow": "actors: [{shape: square}, {shape: circle, scale: {start: 4}} , {shape: triangle}]  # three\nsteps: 9\n",
    "several lines": "actors: [\n  {shape: square},\n  {shape: circle},  # two\n]\n",
    "one": "actors:\n  - shape: square\n    intensity: 2\nsteps: 3\n",
    "none": "steps: 4  # short\nactors: []\n",
    "alias": "actors:\n  - &a {shape: square}\n  - *a\n  - shape: circle\n    scale: {start: 3}\n",
    "json": '{"actors": [{"shape": "square"}, {"shape": "circle"}], "steps": 3}',
    "dash alone": "actors:\n  -\n    shape: square\n  -\n    shape: circle\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_an_actor_can_be_added_to_a_text(name: str) -> None:
    data = yaml.safe_load(FORMS[name])
    text = with_actor(FORMS[name], ACTOR)
    assert yaml.safe_load(text) == {**data, "actors": [*data["actors"], ACTOR]}
    assert comments(text) == comments(FORMS[name])


@pytest.mark.parametrize("name", FORMS)
def test_an_actor_can_be_taken_out_of_a_text(name: str) -> None:
    data = yaml.safe_load(FORMS[name])
    for number in range(len(data["actors"])):
        left = yaml.safe_load(without_actor(FORMS[name], number))
        assert left["actors"] == [actor for i, actor in enumerate(data["actors"]) if i != number]
        assert {key: left[key] for key in left if key not in ("actors", "sweep")} == {
            key: data[key] for key in data if key not in ("actors", "sweep")
        }
    with pytest.raises(gerd.ConfigError, match=f"no actor {len(data['actors'])} of {len(data['actors'])}"):
        without_actor(FORMS[name], len(data["actors"]))


def test_what_is_swept_of_the_other_actors_has_their_new_numbers() -> None:
    without_first = without_actor(WITH_SWEEP, 0)
    assert list(yaml.safe_load(without_first)["sweep"]) == ["actors.0.rotation.velocity", "time_scale"]
    assert list(yaml.safe_load(without_actor(WITH_SWEEP, 1))["sweep"]) == ["actors.0.scale.start", "time_scale"]
    assert without_actor(WITH_SWEEP, 2) == WITH_SWEEP.replace("  - {shape: triangle}\n", "")
    assert "# in the middle\n  - shape: circle   # round\n" in without_first


def test_actors_that_are_no_list_are_left_alone() -> None:
    for text in ("actors: many\n", "[1, 2]"):
        with pytest.raises(gerd.ConfigError, match="they are no list in the text"):
            with_actor(text, ACTOR)


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)

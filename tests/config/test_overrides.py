"""Overrides written into a config's text: the same config as without the detour, and the rest of the text untouched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.family import TEXT

import gerd
from gerd.config.overrides import edited

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

"""The digest of a config is over what is not at its default, at every depth."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import create_model

import gerd
from gerd.config import actor as actors
from gerd.config import sensor as sensors
from gerd.config import transform as transforms
from gerd.config import values
from gerd.config.config import Config
from gerd.config.document import parse_yaml

PLAIN = "actors: [{shape: square, translation: {}, rotation: {acceleration: 0}}]\n"
CONFIGS = {
    "plain": PLAIN,
    "noise": f"{PLAIN}noise: {{background: 0.1}}\nintegrator: {{threshold: 0.3}}\nsensor: {{width: 9}}",
    "polygon": "actors: [{shape: {polygon: [[0, 0], [1, 0], [0, 1]], name: corner}, repeat: 2}]",
    "transform": f"{PLAIN}transform: [{{rotate: 5}}, {{boost: [1, 0]}}]",
}


def grown(model: type[Any], **fields: Any) -> Any:
    """A model with one more field, which is at its default; `fields` are those whose own models have grown."""
    return create_model(model.__name__, __base__=model, later=(float, 0.25), **fields)


def grown_config(written: dict[str, Any]) -> Any:
    """The config that plain data describes, all of whose parts have one more field each."""
    sensor, integrator, noise = grown(sensors.Sensor), grown(sensors.Integrator), grown(sensors.Noise)
    brownian = grown(values.Normal)(normal=(0.0, 0.1))
    translation, rotation = grown(actors.Translation, acceleration=(Any, brownian)), grown(actors.Rotation)
    actor = grown(
        actors.Actor,
        shape=(grown(actors.Polygon) | str, ...),
        translation=(translation, translation(acceleration=0.0)),
        rotation=(rotation, rotation(acceleration=0.0)),
    )
    config = grown(
        Config,
        sensor=(sensor, sensor()),
        integrator=(integrator, integrator()),
        noise=(noise, noise()),
        actors=(tuple[actor, ...], ...),
        transform=(tuple[grown(transforms.Rotate) | grown(transforms.Boost), ...], ()),
    )
    return config(**written)


@pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
def test_a_new_field_at_its_default_changes_no_digest(text: str) -> None:
    written = parse_yaml(text).data
    config = grown_config(written)
    later = [config, config.sensor, config.integrator, config.noise, *config.actors, *config.transform]
    assert [part.later for part in later] == [0.25] * len(later)
    assert config.digest == gerd.parse(text).digest
    assert grown_config({**written, "sensor": {**written.get("sensor", {}), "later": 0.5}}).digest != config.digest


EQUAL = [
    (PLAIN, f"{PLAIN}steps: 60"),
    (PLAIN, f"{PLAIN}sensor: {{}}\nnoise: {{event: 0}}\ntransform: []\nsweep: {{}}\nfunctions: {{}}"),
    (PLAIN, f"{PLAIN}time_scale: 1"),
    (PLAIN, f"{PLAIN}time_scale: {{factor: 1}}"),
    (PLAIN, f"{PLAIN}noise: {{background: -0.0}}"),
    (PLAIN, f"{PLAIN}noise: {{background: {{on: 0}}}}\nintegrator: {{threshold: {{spread: 0}}}}"),
    (PLAIN, PLAIN.replace("translation: {}", "translation: {start: centre, acceleration: {normal: [-0.0, 0.1]}}")),
    (PLAIN, PLAIN.replace("rotation: {acceleration: 0}", "scale: {start: 20, acceleration: 0.0}, repeat: 1")),
    (f"{PLAIN}time_scale: 2", f"{PLAIN}time_scale: {{factor: 2.0, keep: steps}}"),
    (f"{PLAIN}sweep: {{time_scale: [1, 2]}}", f"{PLAIN}sweep: {{time_scale: [1.0, 2.0]}}"),
    (
        f"{PLAIN}sweep: {{actors.0.translation: [{{}}, {{velocity: 1}}]}}",
        f"{PLAIN}sweep: {{actors.0.translation: [{{border: bounce}}, {{velocity: 1.0, start: centre}}]}}",
    ),
    (
        f"{PLAIN}sweep: {{actors.0.shape: [{{polygon: [[0, 0], [1, 0], [0, 1]]}}, circle]}}",
        f"{PLAIN}sweep: {{actors.0.shape: [{{polygon: [[-0.0, 0], [1, 0], [0, 1]], name: a}}, circle]}}",
    ),
]
DIFFERENT = [
    (PLAIN, PLAIN.replace("translation: {}, ", "")),  # named, it is Brownian
    (PLAIN, PLAIN.replace("acceleration: 0", "")),
    (f"{PLAIN}transform: [{{rotate: 0}}]", PLAIN),
    (f"{PLAIN}transform: [{{rotate: 0}}]", f"{PLAIN}transform: [{{shear: 0}}]"),
    (f"{PLAIN}time_scale: 2", f"{PLAIN}time_scale: {{factor: 2, keep: path}}"),
    (f"{PLAIN}sweep: {{steps: [60]}}", PLAIN),
    (f"{PLAIN}sweep: {{steps: [1, 2]}}", f"{PLAIN}sweep: {{steps: [2, 1]}}"),
    (f"{PLAIN}sweep: {{steps: [1], upsampling: [8]}}", f"{PLAIN}sweep: {{upsampling: [8], steps: [1]}}"),
    (
        f"{PLAIN}sweep: {{actors.0.translation: [{{}}, {{velocity: 1}}]}}",
        f"{PLAIN}sweep: {{actors.0.translation: [{{acceleration: 0}}, {{velocity: 1}}]}}",
    ),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_what_means_the_same_has_one_digest(one: str, other: str) -> None:
    assert gerd.parse(one).digest == gerd.parse(other).digest


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_has_another(one: str, other: str) -> None:
    assert gerd.parse(one).digest != gerd.parse(other).digest


def test_it_is_the_same_everywhere() -> None:
    """A digest that changes takes a line in the changelog: datasets name the configs that they were made from."""
    text = CONFIGS["polygon"] + "\nsweep: {time_scale: [1, 2.5], actors.0.rotation: [{}, {start: uniform}]}\n"
    assert gerd.parse(text).digest == "35b3a9479efc9cc8c8819188fe0eda75e1616b51a993067725b13b35fe7ab76a"


def test_equal_configs_have_one_hash() -> None:
    text = f"{PLAIN}sweep: {{time_scale: [1, 2]}}\n"
    one, other = gerd.parse(text), gerd.parse(text)
    assert one == other
    assert hash(one) == hash(other)
    assert hash(one.model_copy(update={"seed": 1})) != hash(one)
    assert len({one, other, one.member(0), one.member(1), other.member(1)}) == 3

"""A config is meant: paths, text, mappings and fields in Python all give one, or our own words say what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support.scenes import actor, config, small_configs

import gerd
from gerd.config.config import Config
from gerd.config.load import as_config

FIELDS: dict[str, Any] = {"steps": 3, "sensor": {"width": 9, "height": 8}, "actors": [{"shape": "square"}]}
TEXT = "steps: 3\nsensor: {width: 9, height: 8}\nactors: [{shape: square}]\n"
CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))


def test_one_config_in_many_forms(tmp_path: Path) -> None:
    file = tmp_path / "square.yaml"
    file.write_text(TEXT)
    line = "{steps: 3, sensor: {width: 9, height: 8}, actors: [{shape: square}]}"
    forms = [gerd.parse(TEXT), Config(**FIELDS), file, str(file), TEXT, line, FIELDS]
    assert len({as_config(form).digest for form in forms}) == 1
    made = [gerd.simulate(form, 2) for form in forms]
    assert len({recording.digest for recording in made}) == 1
    assert [recording.config.name for recording in made] == ["", "", "square.yaml", "square.yaml", "", "", ""]
    batches = [gerd.Stream(form, 2).batch(0)[0] for form in forms]
    assert all(bool((batch == batches[0]).all()) for batch in batches)
    stored = gerd.generate(str(file), tmp_path / "data", 1, workers=1)
    assert stored.manifest.config_digest == gerd.parse(FIELDS, overrides=["steps=3"]).digest


WRONG: list[tuple[Any, str]] = [
    (None, "config: got None: allowed: a Config, the path of a config file, YAML text or a mapping of fields"),
    (7, "config: got 7: allowed: a Config"),
    (["a"], "config: got ['a']: allowed: a Config"),
    ("nowhere.yaml", "nowhere.yaml: there is no such file"),
    ("", "config: is empty; allowed: seed"),
    ("actors: 3", "config:1: actors: got 3: allowed: a list"),
    ({"actors": [], "stepps": 3}, "config: stepps: got 3: unknown key; did you mean steps?"),
    ({}, "config: actors: is required"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_what_is_no_config_is_refused_in_our_words(given: Any, message: str, tmp_path: Path) -> None:
    for ask in (
        lambda: gerd.simulate(given),
        lambda: gerd.simulate_batch(given, [0]),
        lambda: gerd.simulate_family(given),
        lambda: list(gerd.simulate_chunks(given)),
        lambda: gerd.Stream(given, 1),
        lambda: gerd.generate(given, tmp_path / "data", 1),
        lambda: gerd.measure.chance_error(given, 0, 1),
    ):
        with pytest.raises(gerd.ConfigError) as told:
            ask()
        assert str(told.value).startswith(message)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Config(**FIELDS, stepz=1), "Config: stepz: got 1: unknown key; did you mean steps?"),
        (lambda: Config(actors=[{"shape": "sqare"}]), "Config: actors.0.shape: got 'sqare': did you mean square?"),
        (lambda: Config(), "Config: actors: is required"),
        (lambda: Config("x.yaml"), "Config: got 'x.yaml': allowed: fields by name, as in Config(actors=[…]); a file: "),
        (lambda: Config(FIELDS), "Config: got {'steps': 3"),
        (lambda: gerd.parse(Path("x")), "config: got PosixPath('x'): allowed: YAML text, or a mapping of fields"),
        (lambda: gerd.parse("x.yaml"), "config:1: is not a mapping of fields; allowed: seed"),
        (lambda: gerd.load(FIELDS), "config: got {'steps': 3"),
        (lambda: gerd.load(TEXT), "config: got 'steps: 3\\nsensor"),
        (lambda: gerd.load(1), "config: got 1: allowed: the path of a config file"),
    ],
)
def test_what_is_given_to_the_wrong_function_is_told(ask: Any, message: str) -> None:
    with pytest.raises(gerd.ConfigError) as told:
        ask()
    assert str(told.value).startswith(message)


# Text again


@given(small_configs())
def test_text_gives_the_same_config_again(made: Config) -> None:
    assert gerd.parse(made.to_yaml()).digest == made.digest


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_text_of_a_config_that_was_read(file: Path) -> None:
    config = gerd.load(file, overrides=["seed=77"])
    text = config.to_yaml()
    assert gerd.parse(text).digest == config.digest != gerd.load(file).digest
    assert len(text) < len(config.resolved_yaml())


def test_text_of_a_member_gives_its_recordings() -> None:
    moving = TEXT.replace("square}", "square, scale: {start: 4}, translation: {velocity: [0.9, 0.5]}}")
    family = gerd.parse(moving + "sweep: {time_scale.factor: [0.5, 2]}\ntime_scale: {factor: 1, keep: path}\n")
    for member in gerd.simulate_family(family, 3):
        text = member.config.to_yaml()
        again = gerd.simulate(text, 3)
        assert again.digest == member.digest
        assert "keep: path" in text  # as it is written, and not the steps that it is run in
        assert np.array_equal(again.truth, member.truth)
    sizes = config(actor(at="uniform"), sweep={"actors.0.scale.start": [3, 7]})
    with pytest.raises(gerd.GerdError, match=r"starts depend on the whole sweep; write config\.family\.to_yaml"):
        sizes.member(0).to_yaml()
    again = gerd.simulate(sizes.member(0).family.to_yaml(), 3, 0)
    assert again.identity == gerd.simulate(sizes, 3, 0).identity


def test_notebooks_show_a_config(tmp_path: Path) -> None:
    (tmp_path / "a&b.yaml").write_text(TEXT + "# <comment>\nsweep: {time_scale: [1, 2]}\n")
    config = gerd.load(tmp_path / "a&b.yaml")
    shown = config._repr_html_()
    assert "# &lt;comment&gt;" in shown
    assert "Config a&amp;b.yaml: 9×8, 3 steps, 1 actor, a sweep of 2 members, seed 0" in shown
    assert "width: 9" in gerd.parse(FIELDS)._repr_html_()
    assert "factor: 2" not in config.member(0)._repr_html_()


def test_a_file_with_another_name_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "square.yaml").write_text(TEXT)
    for missing in ("square.yml", "sqare.yaml"):
        with pytest.raises(gerd.ConfigError, match=r"there is no such file; did you mean .*square\.yaml\?$"):
            gerd.load(tmp_path / missing)
    with pytest.raises(gerd.ConfigError, match=r"there is no such file$"):
        gerd.load(tmp_path / "circles.yaml")


def test_center_is_centre() -> None:
    text = "transform: [{rotate: 90, about: WORD}]\nactors: [{shape: square, translation: {start: WORD}}]"
    ours, theirs = (gerd.parse(text.replace("WORD", word)) for word in ("centre", "center"))
    assert ours.digest == theirs.digest
    assert ours.to_yaml() == theirs.to_yaml()


class TestReplace:
    def test_fields_by_their_paths(self) -> None:
        config = gerd.parse(TEXT)
        changed = config.replace(steps=2, **{"noise.background": 0.25, "actors.0.rotation.start": 30})
        assert (changed.steps, changed.noise.background, changed.actors[0].rotation.start) == (2, 0.25, 30)
        assert changed.digest == gerd.parse(changed.to_yaml()).digest
        assert config.digest == gerd.parse(TEXT).digest

    def test_the_sweep_stays_and_can_be_changed(self) -> None:
        config = gerd.parse(TEXT).replace(**{"sweep.time_scale": [1, 2]})
        assert config.replace(seed=5).sweep == {"time_scale": (1, 2)}
        assert config.replace(sweep={}).digest == gerd.parse(TEXT).digest
        assert gerd.parse(config.replace(seed=5).to_yaml()).member(1).time_scale == 2

    def test_a_member_stays_a_member(self) -> None:
        member = gerd.parse(TEXT + "sweep: {time_scale: [1, 2]}\n").member(1).replace(steps=2)
        assert (member.steps, member.time_scale, member.sweep) == (2, 2, {})
        assert member.family.sweep

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"step": 3}, "replace: step: no such field; did you mean steps?"),
            ({"noise.backgrund": 0.1}, "replace: noise.backgrund: no such field; did you mean background?"),
            ({"steps": 0}, "replace: steps: got 0: allowed: greater than or equal to 1"),
            ({"sweep.time_scale": [1, 1]}, "replace: sweep.time_scale.1: got 1: stands there twice"),
        ],
    )
    def test_mistakes(self, values: dict[str, Any], message: str) -> None:
        with pytest.raises(gerd.ConfigError) as told:
            gerd.parse(TEXT).replace(**values)
        assert str(told.value).startswith(message)


def test_a_seed_can_be_set_for_a_recording() -> None:
    recording = gerd.simulate(TEXT, seed=3)
    assert recording.config.seed == 3
    assert recording.identity.labels == {"seed": 3}
    assert recording.digest == gerd.simulate(gerd.parse(TEXT).replace(seed=3)).digest

"""Good configs: every form a value may have, defaults, overrides, and the digest that stands for what a config says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import gerd
from gerd.config.config import Config

EXAMPLES = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))
RING = [[-0.5, -0.5], [0.5, -0.5], [0.0, 0.5]]
HOLE = [[-0.1, -0.2], [0.1, -0.2], [0.0, 0.1]]


def parse(actor: str = "shape: square", rest: str = "", **options: Any) -> Config:
    """A small config with one actor."""
    return gerd.parse(f"steps: 3\nsensor: {{width: 16, height: 12}}\nactors:\n  - {{{actor}}}\n{rest}\n", **options)


def plain(data: Any, path: str) -> Any:
    for word in path.split("."):
        data = data[int(word)] if isinstance(data, list) else data[word]
    return data


FORMS = [  # actor, path in it, value there when resolved
    ("shape: square", "shape", "square"),
    ("shape: circle", "shape", "circle"),
    ("shape: triangle", "shape", "triangle"),
    (f"shape: {{polygon: {RING}}}", "shape", {"polygon": [RING], "name": None}),
    (f"shape: {{polygon: [{RING}, {HOLE}]}}", "shape", {"polygon": [RING, HOLE], "name": None}),
    ("shape: {svg: M 0 0 h 4 v 2 h -4 z}", "shape.polygon.0.2", [0.5, 0.25]),
    ("shape: {text: l}", "shape.polygon.0.0.1", -0.5),
    ("shape: square, intensity: 2", "intensity", 2.0),
    ("shape: square, intensity: {uniform: [-1, 2.5]}", "intensity", {"uniform": [-1.0, 2.5]}),
    ("shape: square, intensity: {normal: [1, 0.1]}", "intensity", {"normal": [1.0, 0.1]}),
    ("shape: square, intensity: {choice: [1]}", "intensity", {"choice": [1.0]}),
    ("shape: square, translation: {start: centre}", "translation.start", "centre"),
    ("shape: square, translation: {start: uniform}", "translation.start", "uniform"),
    ("shape: square, translation: {start: 5}", "translation.start", 5.0),
    ("shape: square, translation: {start: [5, 6.5]}", "translation.start", [5.0, 6.5]),
    (
        "shape: square, translation: {start: [5, {uniform: [1, 2]}]}",
        "translation.start",
        [5.0, {"uniform": [1.0, 2.0]}],
    ),
    ("shape: square, translation: {start: {normal: [5, 1]}}", "translation.start", {"normal": [5.0, 1.0]}),
    (
        "shape: square, translation: {start: {choice: [[1, 2], [3, 4]]}}",
        "translation.start",
        {"choice": [[1.0, 2.0], [3.0, 4.0]]},
    ),
    ("shape: square, translation: {start: [-5, 99], border: free}", "translation.start", [-5.0, 99.0]),
    ("shape: square, translation: {start: [-5, 5], margin: -6}", "translation.margin", -6.0),
    ("shape: square, translation: {border: wrap}, scale: {start: 5}", "translation.border", "wrap"),
    ("shape: square, scale: {start: [-5, 4], limits: [null, null]}", "scale.start", [-5.0, 4.0]),
    ("shape: square, scale: {limits: [-30, 30]}", "scale.limits", [-30.0, 30.0]),
    ("shape: square, translation: {velocity: [1, {choice: [-1, 1]}]}", "translation.velocity.1.choice", [-1.0, 1.0]),
    ("shape: square, translation: {velocity: {choice: [[0, 1]]}}", "translation.velocity.choice", [[0.0, 1.0]]),
    ("shape: square, translation: {acceleration: [0.1, 0]}", "translation.acceleration", [0.1, 0.0]),
    (
        "shape: square, translation: {acceleration: [{expression: sin(t)}, {normal: [0, 1]}]}",
        "translation.acceleration",
        [{"expression": "sin(t)"}, {"normal": [0.0, 1.0]}],
    ),
    ("shape: square, translation: {speed_limit: 2}", "translation.speed_limit", 2.0),
    ("shape: square, scale: {start: 5}", "scale.start", 5.0),
    ("shape: square, scale: {start: uniform}", "scale.start", "uniform"),
    ("shape: square, scale: {start: [5, 7]}", "scale.start", [5.0, 7.0]),
    ("shape: square, scale: {start: {choice: [[5, 7], [6, 8]]}}", "scale.start.choice.1", [6.0, 8.0]),
    ("shape: square, scale: {velocity: {factor: 0.9}}", "scale.velocity", {"factor": 0.9}),
    ("shape: square, scale: {velocity: {factor: {normal: [1, 0.01]}}}", "scale.velocity.factor.normal", [1.0, 0.01]),
    ("shape: square, scale: {velocity: {boundary: 0.5}}", "scale.velocity", {"boundary": 0.5}),
    ("shape: square, scale: {velocity: {boundary: {choice: [1, 2]}}}", "scale.velocity.boundary.choice", [1.0, 2.0]),
    ("shape: square, scale: {limits: [5, null]}", "scale.limits", [5.0, None]),
    ("shape: square, scale: {limits: [5, 30]}", "scale.limits", [5.0, 30.0]),
    ("shape: square, rotation: {start: uniform}", "rotation.start", "uniform"),
    ("shape: square, rotation: {velocity: {boundary: 1}}", "rotation.velocity", {"boundary": 1.0}),
    ("shape: square, rotation: {acceleration: {uniform: [0, 1]}}", "rotation.acceleration", {"uniform": [0.0, 1.0]}),
    ("shape: square, rotation: {acceleration: {choice: [0, 1]}}", "rotation.acceleration", {"choice": [0.0, 1.0]}),
    (
        "shape: square, rotation: {acceleration: {profile: pulse, amplitude: 2, at: 1}}",
        "rotation.acceleration",
        {"profile": "pulse", "amplitude": 2.0, "period": 20.0, "phase": 0.0, "at": 1.0, "duration": 1.0},
    ),
    ("shape: square, rotation: {acceleration: {expression: '1e-3'}}", "rotation.acceleration.expression", "1e-3"),
    ("shape: circle, shear: {velocity: {boundary: 1}}", "shear.velocity", {"boundary": 1.0}),
    ("shape: square, shear: {limits: [null, 2]}", "shear.limits", [None, 2.0]),
]


@pytest.mark.parametrize(("actor", "path", "expected"), FORMS)
def test_every_form_is_read_drawn_and_written_again(actor: str, path: str, expected: Any) -> None:
    config = parse(actor)
    assert plain(config.resolved()["actors"][0], path) == expected
    assert np.isfinite(gerd.simulate(config).truth).all()
    assert same_again(config)


def same_again(config: Config) -> bool:
    """Whether a config survives being written as JSON and as YAML."""
    from_json = Config.model_validate(json.loads(json.dumps(config.resolved())))
    from_yaml = gerd.parse(config.resolved_yaml())
    return from_json.resolved() == config.resolved() and from_json.digest == from_yaml.digest == config.digest


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_survive_being_written_again(file: Path) -> None:
    config = gerd.load(file)
    assert same_again(config)
    assert config.text == file.read_text("utf-8")


def test_a_named_function_is_read_without_being_imported() -> None:
    config = parse("shape: square, rotation: {acceleration: {function: 'no_such_module:f'}}")
    assert config.resolved()["actors"][0]["rotation"]["acceleration"] == {"function": "no_such_module:f"}
    assert same_again(config)


def test_defaults() -> None:
    config = gerd.parse("actors: [{shape: square, translation: {}, scale: {}, rotation: {}, shear: {}}]")
    assert config.resolved() == {
        "seed": 0,
        "sensor": {"width": 128, "height": 128},
        "camera": {"number": 0},
        "steps": 60,
        "step_us": 1000,
        "time_scale": 1.0,
        "timing": "step",
        "upsampling": 8,
        "integrator": {
            "threshold": 0.5,
            "response": "linear",
            "reset": "subtract",
            "initial": "usual",
            "warmup": 5,
            "refractory_us": 0,
            "refractory": "hold",
            "leak_hz": 0.0,
        },
        "noise": {
            "background": 0.0,
            "shape": 0.0,
            "event": 0.0,
            "hot": {"share": 0.0, "rate_hz": 300.0},
            "dead": 0.0,
            "recorded": None,
        },
        "readout": {"latency_us": 0.0, "jitter_us": 0.0, "events_per_ms": None, "queue_us": 10000.0},
        "transform": [],
        "actors": [
            {
                "shape": "square",
                "intensity": 1.0,
                "translation": {
                    "start": "centre",
                    "velocity": 0.0,
                    "acceleration": {"normal": [0.0, 0.1]},
                    "border": "bounce",
                    "margin": 0.0,
                    "speed_limit": None,
                },
                "scale": {
                    "start": 20.0,
                    "velocity": 0.0,
                    "acceleration": {"normal": [0.0, 0.05]},
                    "limits": [1.0, None],
                    "speed_limit": None,
                },
                "rotation": {
                    "start": 0.0,
                    "velocity": 0.0,
                    "acceleration": {"normal": [0.0, 0.5]},
                    "speed_limit": None,
                },
                "shear": {
                    "start": 0.0,
                    "velocity": 0.0,
                    "acceleration": {"normal": [0.0, 0.002]},
                    "limits": [-1.0, 1.0],
                    "speed_limit": None,
                },
                "repeat": 1,
            }
        ],
        "sweep": {},
        "functions": {},
    }


def test_a_transformation_that_is_not_named_stays_at_rest() -> None:
    actor = parse("shape: square, rotation: {velocity: 1}").actors[0]
    at_rest = [actor.translation.acceleration, actor.scale.acceleration, actor.shear.acceleration]
    assert at_rest == [0.0, 0.0, 0.0]
    assert actor.rotation.acceleration != 0.0


def test_a_config_needs_no_actors() -> None:
    assert gerd.parse("actors: []").actors == ()


def test_the_schema_for_editors_knows_one_ring_and_several() -> None:
    one, several = Config.model_json_schema()["$defs"]["Polygon"]["properties"]["polygon"]["anyOf"]
    assert several["items"] == one
    assert one["items"]["items"] == {"type": "number"}


def test_a_config_is_frozen() -> None:
    with pytest.raises(gerd.GerdError, match=r"^seed: a config cannot be changed; config\.replace\(seed=3\) gives"):
        parse().seed = 3  # type: ignore[misc]
    with pytest.raises(gerd.GerdError, match=r"config\.replace\(\*\*\{'path\.to\.shape': 0\.5\}\) gives a new one"):
        parse().noise.shape = 0.5  # type: ignore[misc]


def test_a_config_made_in_python_equals_the_one_from_text() -> None:
    made = Config(steps=3, sensor={"width": 16, "height": 12}, actors=[{"shape": "square", "scale": {"start": (5, 6)}}])
    assert made.digest == parse("shape: square, scale: {start: [5, 6]}").digest
    assert gerd.parse(made.text).digest == made.digest


def test_a_field_of_a_config_made_in_python_is_checked() -> None:
    with pytest.raises(gerd.ConfigError, match="did you mean steps"):
        Config(step=3, actors=[])


class TestFiles:
    """Masks are found beside the config, and not needed afterwards."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "masks").mkdir()
        for name, size in (("wide", (40, 20)), ("tall", (20, 40))):
            Image.new("L", size, "white").save(tmp_path / "masks" / f"{name}.png")
        return tmp_path

    def test_a_mask_is_looked_up_in_the_folder_of_the_config(self, folder: Path) -> None:
        (folder / "c.yaml").write_text("actors: [{shape: {mask: masks/wide.png}}]")
        config = gerd.load(folder / "c.yaml")
        (folder / "masks" / "wide.png").unlink()
        assert same_again(config)
        x, y = np.array(config.actors[0].shape.polygon[0]).T
        assert np.ptp(x) == 1
        assert np.ptp(y) == 0.5

    def test_swept_masks_are_too(self, folder: Path) -> None:
        sweep = "sweep: {actors.0.shape: [{mask: masks/tall.png}, square, {text: O}]}"
        (folder / "c.yaml").write_text(f"steps: 2\nactors: [{{shape: {{mask: masks/wide.png}}}}]\n{sweep}")
        config = gerd.load(folder / "c.yaml")
        for file in (folder / "masks").iterdir():
            file.unlink()
        assert same_again(config)
        tall, square, letter = config.sweep["actors.0.shape"]
        assert np.ptp(np.array(tall["polygon"][0])[:, 0]) == 0.5
        assert (square, letter) == ("square", {"text": "O"})
        recording = gerd.simulate(config, **{"actors.0.shape": tall})
        left, top, right, bottom = recording.boxes()[0, 0]
        assert (right - left, bottom - top) == (10, 20)

    def test_an_absolute_path_works_from_anywhere(self, folder: Path) -> None:
        config = gerd.parse(f"actors: [{{shape: {{mask: '{folder}/masks/tall.png'}}}}]")
        assert len(config.actors[0].shape.polygon) == 1


class TestOverrides:
    @pytest.mark.parametrize(
        ("override", "path", "expected"),
        [
            ("steps=7", "steps", 7),
            (" steps = 7", "steps", 7),
            ("sensor.width=99", "sensor.width", 99),
            ("sensor={width: 99}", "sensor.width", 99),
            ("noise.background=1e-3", "noise.background", 0.001),
            ("integrator.initial=uniform", "integrator.initial", "uniform"),
            ("actors.0.intensity=3", "actors.0.intensity", 3.0),
            (
                "actors.0.rotation.acceleration={expression: 't * 2'}",
                "actors.0.rotation.acceleration.expression",
                "t * 2",
            ),
            ("actors=[{shape: circle}]", "actors.0.shape", "circle"),
            ("sweep={steps: [1, 2]}", "sweep.steps", [1, 2]),
            ("sweep.time_scale=[1, 2]", "sweep.time_scale", [1.0, 2.0]),
        ],
    )
    def test_an_override_sets_a_field(self, override: str, path: str, expected: Any) -> None:
        config = parse(overrides=[override])
        assert plain(config.resolved(), path) == expected
        assert config.text.startswith(parse().text)  # as it was written, with the change as a comment
        assert f"\n# --set {override}\n" in config.text

    def test_an_override_of_a_transformation_at_rest_leaves_it_at_rest(self) -> None:
        """As a sweep and `simulate` do: naming one field does not bring in random accelerations."""
        config = gerd.parse("actors: [{shape: square}]", overrides=["actors.0.scale.start=30"])
        assert config.actors[0].scale.start == 30
        assert config.actors[0].scale.acceleration == 0

    def test_a_swept_path_is_one_key(self) -> None:
        config = parse(rest="sweep: {steps: [1, 2]}", overrides=["sweep.actors.0.intensity=[1, 2]"])
        assert config.sweep == {"steps": (1, 2), "actors.0.intensity": (1.0, 2.0)}

    def test_a_value_may_hold_an_equals_sign(self) -> None:
        assert len(parse(overrides=["actors.0.shape={text: =}"]).actors[0].shape.polygon) == 2

    def test_the_last_override_wins(self) -> None:
        assert parse(overrides=["steps=7", "steps=8"]).steps == 8

    def test_overrides_can_make_up_for_an_empty_text(self) -> None:
        assert gerd.parse("", overrides=["actors=[{shape: circle}]"]).actors[0].shape == "circle"


class TestDigest:
    ONE = "{seed: 1, time_scale: 0.001, actors: [{shape: circle, scale: {start: 5}}], sweep: {upsampling: [1, 2]}}"

    @pytest.mark.parametrize(
        "text",
        [
            "# a comment\nseed: 1\ntime_scale: 1e-3\n\nactors:\n- scale: {start: 5.0}\n  shape: 'circle'\n"
            "sweep:\n  upsampling:\n  - 1\n  - 2  # two\n",
            '{"sweep": {"upsampling": [1, 2]}, "time_scale": 0.0010, "seed": 0x1, "actors": '
            '[{"shape": "circle", "scale": {"start": +5}}]}',
            "---\nseed: 1\nsteps: 60\nsensor: {}\nnoise: {event: 0}\ntime_scale: .001\nactors: "
            "[{shape: circle, scale: {start: 5}, intensity: 1}]\nsweep: {upsampling: [1, 2]}\n...\n",
            "\ufeff" + ONE,
        ],
        ids=["block", "json", "defaults", "byte_order_mark"],
    )
    def test_how_a_config_is_written_does_not_matter(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "c.yaml").write_text(text, "utf-8")
        assert gerd.load(tmp_path / "c.yaml").digest == gerd.parse(self.ONE).digest

    def test_how_a_swept_number_is_written_does_not_matter(self) -> None:
        whole, real = (parse(rest=f"sweep: {{time_scale: [{numbers}]}}") for numbers in ("1, 2", "1.0, 2e0"))
        assert whole.digest == real.digest

    def test_every_value_matters(self) -> None:
        changes = [
            "seed=5",
            "sensor.width=17",
            "sensor.height=13",
            "steps=4",
            "step_us=10",
            "time_scale=2",
            "upsampling=4",
            "integrator.threshold=0.4",
            "integrator.reset=zero",
            "integrator.initial=0",
            "integrator.warmup=6",
            "noise.background=0.1",
            "noise.shape=0.1",
            "noise.event=0.1",
            "sweep={steps: [1]}",
            "sweep={steps: [1, 2]}",
            "actors=[]",
            "actors.0.shape=circle",
            f"actors.0.shape={{polygon: {RING}}}",
            "actors.0.intensity=1.0000000000000002",
            "actors.0.translation={}",
            "actors.0.translation={border: wrap}",
            "actors.0.rotation.start=1",
            "actors.0.rotation.start={uniform: [0, 1]}",
            "actors.0.rotation.start={normal: [0, 1]}",
        ]
        digests = {parse(overrides=[change]).digest for change in changes}
        assert len(digests | {parse().digest}) == len(changes) + 1

    def test_it_does_not_depend_on_where_the_text_came_from(self, tmp_path: Path) -> None:
        assert parse(source="elsewhere", directory=tmp_path, trust=True).digest == parse().digest

    def test_a_changed_copy_has_a_digest_and_a_text_of_its_own(self) -> None:
        config = parse()
        before = config.digest
        changed = config.model_copy(update={"steps": 9})
        assert changed.digest == gerd.parse(changed.text).digest == parse(overrides=["steps=9"]).digest != before
        assert config.digest == config.model_copy().digest == before


number = st.floats(-100, 100).map(lambda x: x + 0.0)  # no negative zero
drawn = st.one_of(
    number,
    st.tuples(number, number).map(lambda pair: {"uniform": sorted(pair)}),
    st.tuples(number, st.floats(0, 10)).map(lambda pair: {"normal": list(pair)}),
    st.lists(number, min_size=1, max_size=4).map(lambda values: {"choice": values}),
)
stepped = st.one_of(
    drawn,
    st.fixed_dictionaries({"profile": st.sampled_from(["sine", "square", "pulse"]), "amplitude": number}),
    st.sampled_from(["t", "1e3", "sin(t) / 3", "0x10", ".5", "7"]).map(lambda text: {"expression": text}),
)
positions = st.one_of(drawn, st.tuples(drawn, drawn).map(list), st.just("centre"), st.just("uniform"))


@given(
    st.fixed_dictionaries(
        {
            "shape": st.sampled_from(["square", {"polygon": RING}, {"text": "é"}]),
            "translation": st.fixed_dictionaries(
                {"border": st.just("free")}, optional={"start": positions, "acceleration": stepped}
            ),
            "rotation": st.fixed_dictionaries(
                {}, optional={"start": drawn, "velocity": drawn, "acceleration": stepped}
            ),
        }
    ),
    st.lists(number, min_size=1, max_size=4, unique=True),
)
def test_any_config_survives_being_written_again(actor: dict[str, Any], turns: list[float]) -> None:
    config = Config(actors=[actor], sweep={"actors.0.rotation.velocity": turns})
    assert same_again(config)


def test_numbers_survive_to_the_last_bit() -> None:
    exact = [0.1 + 0.2, 1e-9, math.pi * 1e5, 5e-324, 123456789.12345678]
    config = gerd.parse(parse(f"shape: square, intensity: 1, rotation: {{start: {{choice: {exact}}}}}").resolved_yaml())
    assert config.resolved()["actors"][0]["rotation"]["start"]["choice"] == exact


def test_shapes_from_files_keep_their_names(tmp_path: Path) -> None:
    """In the config of a dataset, too, which has no files beside it; and they are not left as a file in a sweep."""
    (tmp_path / "heart.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><rect width="4" height="2"/></svg>')
    Image.new("RGBA", (9, 9), (0, 0, 0, 255)).resize((5, 5)).save(tmp_path / "dot.png")
    picture = Image.new("RGBA", (9, 9), (0, 0, 0, 0))
    picture.paste((0, 0, 0, 255), (2, 2, 7, 7))
    picture.save(tmp_path / "icon.png")
    text = """
actors: [{shape: {choice: [{svg: heart.svg}, {mask: icon.png, alpha: true}, {svg: M 0 0 h 4 v 4 z, name: half}]}}]
sweep: {actors.0.shape: [{svg: heart.svg}, {text: A}, {choice: [{svg: heart.svg}, circle]}]}
"""
    config = gerd.parse(text, directory=tmp_path)
    assert config.actors[0].shape_names == ("heart", "icon", "half")
    again = gerd.parse(config.resolved_yaml(), directory="/nowhere")
    assert again.actors == config.actors
    assert again.sweep == config.sweep
    assert config.sweep["actors.0.shape"][1] == {"text": "A"}
    first, _, third = config.sweep["actors.0.shape"]
    assert first["name"] == third["choice"][0]["name"] == "heart"
    assert again.digest == config.digest

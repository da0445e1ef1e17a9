"""A bad config gives one message with file, line, path, value and what is allowed, exit code 2 and no traceback."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from gerd.cli.app import main

SQUARE = "actors: [{shape: square}]\n"


def top(line: str) -> str:
    """A config that is good but for its first line."""
    return f"{line}\n{SQUARE}"


def read_out(line: str) -> str:
    """A config in exact timing that is good but for its second line, a field of its readout."""
    return f"timing: exact\nreadout: {{{line}}}\n{SQUARE}"


def actor(line: str) -> str:
    """A config that is good but for its third line, a field of its actor."""
    return f"actors:\n  - shape: square\n    {line}\n"


def shape(form: str) -> str:
    """A config that is good but for its second line, the actor's shape."""
    return f"actors:\n  - shape: {form}\n"


def push(form: str) -> str:
    """A config that is good but for an acceleration on its third line."""
    return actor(f"rotation: {{acceleration: {form}}}")


def sweep(line: str) -> str:
    """A config that is good but for a swept path on its third line."""
    return f"{SQUARE}sweep:\n  {line}\n"


class Bad(NamedTuple):
    name: str
    text: str | bytes
    line: int | None
    path: str
    allowed: str  # part of what is said to be allowed, or to be wrong
    value: str = ""  # the offending value as the message shows it


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

NOT_YAML = [
    Bad("empty", "", None, "", "is empty; allowed: seed, sensor"),
    Bad("only_comments", "# nothing\n# here\n", None, "", "is empty; allowed: seed, sensor"),
    Bad("null", "\n\n~\n", 3, "", "is empty; allowed: seed, sensor"),
    Bad("list", "- 1\n- 2\n", 1, "", "is not a mapping of fields; allowed: seed"),
    Bad("scalar", "hello\n", 1, "", "is not a mapping of fields; allowed: seed"),
    Bad("two_documents", f"{SQUARE}---\n{SQUARE}", 2, "", "expected a single document"),
    Bad("unclosed_bracket", "actors: [\n  {shape: square}\nseed: 1\n", 3, "", "expected ',' or ']'"),
    Bad("unclosed_quote", f'{SQUARE}seed: "1\n', 3, "", "found unexpected end of stream (begun on line 2)"),
    Bad("tab", "actors:\n\t- shape: square\n", 2, "", "indent with blanks, not with tabs"),
    Bad("bad_indentation", "sensor:\n    width: 3\n  height: 3\n", 3, "", "is the line indented as its neighbours"),
    Bad("indented_too_far", "steps: 3\n  seed: 3\n", 2, "", "is the line indented too far"),
    Bad("unknown_alias", "actors: *none\n", 1, "", "found undefined alias 'none'"),
    Bad("not_utf8", SQUARE.encode() + b"# caf\xe9\n", 2, "", "is not UTF-8 text: byte 0xe9"),
    Bad("utf16", SQUARE.encode("utf-16"), 1, "", "is not UTF-8 text: byte 0xff"),
    Bad("control_character", f"{SQUARE}seed: \x07\n", 2, "", "the character '\\x07' is not allowed"),
    Bad("bad_escape", f'{SQUARE}seed: "\\UFFFFFFFF"\n', 2, "", "invalid escape"),
    Bad("cyclic", "actors: &a\n  - *a\n", 1, "actors.0", "contains itself"),
    Bad("alias_bomb", BOMB, 1, "", "aliases stand for too much; at most 100000 values are allowed"),
    Bad("deep_brackets", f"seed: 1\nactors: {'[' * 10_000}\n", 2, "", "nested too deeply; at most 64"),
    Bad("deep_mappings", f"seed: 1\nactors: {'{a: ' * 10_000}\n", 2, "", "nested too deeply; at most 64"),
    Bad("duplicate_key", f"seed: 1\n{SQUARE}seed: 2\n", 3, "seed", "is given twice; each key may be given once"),
    Bad("duplicate_inner_key", top("sensor: {width: 3, width: 4}"), 1, "sensor.width", "is given twice"),
    Bad("python_object", top("seed: !!python/object:os.system {}"), 1, "seed", "only plain YAML values are allowed"),
    Bad("python_call", top("seed: !!python/object/apply:os.system [ls]"), 1, "seed", "only plain YAML values"),
    Bad("python_key", top("!!python/name:os.system seed: 1"), 1, "", "only plain YAML values are allowed"),
    Bad("own_tag", top("seed: !mine 1"), 1, "seed", "has the tag !mine; only plain YAML values are allowed"),
    Bad("wrong_tag", top("seed: !!int seven"), 1, "seed", "'seven' is not what its tag says, !!int"),
    Bad("list_as_key", top("? [a, b]\n: 1"), 1, "", "has a list or a mapping as a key"),
    Bad("endless_integer", top(f"seed: {'1' * 401}"), 1, "seed", "at most 400 are allowed"),
]

FIELDS = [
    Bad("unknown_key", top("sede: 1"), 1, "sede", "did you mean seed? allowed: seed, sensor", "1"),
    Bad("unknown_in_sensor", top("sensor: {widht: 1}"), 1, "sensor.widht", "did you mean width? allowed", "1"),
    Bad("unknown_in_integrator", top("integrator: {treshold: 1}"), 1, "integrator.treshold", "mean threshold?", "1"),
    Bad("unknown_in_noise", top("noise: {shapes: 0}"), 1, "noise.shapes", "did you mean shape? allowed", "0"),
    Bad(
        "not_indented",
        f"{actor('seed: 1')[:-12]}scale: {{}}\n",
        3,
        "scale",
        "scale is a field of an actor: is the line",
    ),
    Bad("too_deep", actor("scale: {rotation: {}}"), 3, "actors.0.scale.rotation", "rotation is a field of an actor"),
    Bad("of_the_config", actor("noise: {}"), 3, "actors.0.noise", "noise is a field of the config itself"),
    Bad("start", actor("start: 3"), 3, "actors.0.start", "is a field of translation, scale, rotation, shear", "3"),
    Bad("centred", actor("translation: {start: centred}"), 3, "actors.0.translation.start", "did you mean centre?"),
    Bad(
        "about_centred", top("transform: [{rotate: 3, about: centred}]"), 1, "transform.0.about", "did you mean centre?"
    ),
    Bad("position", actor("position: [1, 2]"), 3, "actors.0.position", "did you mean translation? allowed"),
    Bad("not_a_mapping", actor("rotation: 30"), 3, "actors.0.rotation", "such as {start: 30, acceleration: 0}", "30"),
    Bad("noise_as_number", top("noise: 0.1"), 1, "noise", "such as {background: 0.001}", "0.1"),
    Bad("bouce", actor("translation: {border: bouce}"), 3, "actors.0.translation.border", "did you mean bounce?"),
    Bad("unknown_in_actor", actor("weight: 1"), 3, "actors.0.weight", "unknown key; allowed: shape, intensity", "1"),
    Bad("other_word", actor("color: 1"), 3, "actors.0.color", "did you mean intensity? allowed: shape, intensity", "1"),
    Bad("unknown_in_motion", actor("rotation: {velocty: 1}"), 3, "actors.0.rotation.velocty", "did you mean velocity?"),
    Bad("unknown_form", actor("scale: {start: {unifrom: [2, 3]}}"), 3, "actors.0.scale.start", "did you mean uniform?"),
    Bad(
        "unknown_in_form",
        actor("scale: {start: {uniform: [2, 3], low: 1}}"),
        3,
        "actors.0.scale.start.low",
        "unknown key; allowed: uniform",
        "1",
    ),
    Bad(
        "unknown_in_profile",
        push("{profile: sine, amplitude: 1, frequency: 2}"),
        3,
        "actors.0.rotation.acceleration.frequency",
        "unknown key; allowed: profile, amplitude, period",
        "2",
    ),
    Bad("missing_in_profile", push("{profile: sine}"), 3, "actors.0.rotation.acceleration.amplitude", "is required"),
    Bad("unknown_profile", push("{profile: cosine, amplitude: 1}"), 3, "acceleration.profile", "'sine', 'square'"),
    Bad("number_as_key", top("7: 1"), 1, "7", "unknown key; allowed: seed", "1"),
    Bad("null_as_key", top("~: 1"), 1, "~", "unknown key; allowed: seed", "1"),
    Bad("dotted_key", top("sensor.width: 1"), 1, "sensor.width", "unknown key; did you mean sensor?", "1"),
    Bad("merge_key", top("<<: {seed: 1}"), 1, "<<", "unknown key; allowed: seed", "{'seed': 1}"),
    Bad("no_actors", "seed: 1\n", 1, "actors", "is required"),
    Bad("no_shape", "actors:\n  - intensity: 1\n", 2, "actors.0.shape", "is required"),
    Bad("actors_null", "actors:\n", 1, "actors", "allowed: a list", "None"),
    Bad("actors_mapping", "actors: {shape: square}\n", 1, "actors", "allowed: a list", "{'shape': 'square'}"),
    Bad("actor_word", "actors: [square]\n", 1, "actors.0", "a mapping with the fields shape, intensity", "'square'"),
    Bad("too_many_actors", f"actors: [{'{shape: square}, ' * 65}]\n", 1, "actors", "allowed: at most 64 items, not 65"),
    Bad("sensor_pair", top("sensor: [64, 64]"), 1, "sensor", "a mapping with the fields width, height", "[64, 64]"),
    Bad("wrong_type", top("steps: many"), 1, "steps", "allowed: a whole number", "'many'"),
    Bad("wrong_unit", top("sensor: {width: 128px}"), 1, "sensor.width", "allowed: a whole number", "'128px'"),
    Bad("fraction", top("sensor: {width: 128.5}"), 1, "sensor.width", "allowed: a whole number", "128.5"),
    Bad("quoted_number", top("steps: '60'"), 1, "steps", "allowed: a whole number", "'60'"),
    Bad("boolean_for_integer", top("steps: true"), 1, "steps", "allowed: a whole number", "True"),
    Bad(
        "unknown_transform",
        top("transform: [{rotat: 3}]"),
        1,
        "transform.0",
        "did you mean rotate? allowed: {",
    ),
    Bad("no_transform", top("transform: [3]"), 1, "transform.0", "{affine: [[a, b, x], [c, d, y]]}", "3"),
    Bad("no_list_of_transforms", top("transform: {rotate: 3}"), 1, "transform", "allowed: a list"),
    Bad("transform_amount", top("transform: [{rotate: x}]"), 1, "transform.0.rotate", "allowed: a number", "'x'"),
    Bad("transform_key", top("transform: [{rotate: 3, abut: [1, 2]}]"), 1, "transform.0.abut", "did you mean about?"),
    Bad("transform_about", top("transform: [{rotate: 3, about: 3}]"), 1, "transform.0.about", "centre, [x, y]", "3"),
    Bad("transform_two", top("transform: [{rotate: 3, boost: [1, 2]}]"), 1, "transform.0.boost", "unknown key"),
    Bad("transform_flat", top("transform: [{scale: [1, 0]}]"), 1, "transform.0.scale.1", "other than 0", "0"),
    Bad("transform_mirror", top("transform: [{mirror: z}]"), 1, "transform.0.mirror", "'x', 'y' or 'none'", "'z'"),
    Bad(
        "transform_rows",
        top("transform: [{affine: [[1, 2], [3, 4]]}]"),
        1,
        "transform.0.affine",
        "[[a, b, x], [c, d, y]]",
    ),
    Bad("transform_singular", top("transform: [{affine: [[1, 2, 0], [2, 4, 0]]}]"), 1, "transform.0.affine", "than 0"),
    Bad("transform_still", top("transform: [{time_scale: 0}]"), 1, "transform.0.time_scale", "greater than 0", "0"),
    Bad(
        "transformed_torus",
        actor("translation: {border: wrap}") + "transform: [{translate: [1, 0]}]\n",
        3,
        "translation.border",
        "would move the seams of the torus; allowed with transform: bounce, free",
        "'wrap'",
    ),
    Bad(
        "factor_and_sign",
        actor("scale: {velocity: {factor: 2}, limits: [-5, 30]}"),
        3,
        "scale.limits",
        "limits above 0",
    ),
    Bad("mirrored_beyond_limits", actor("scale: {start: -5}"), 3, "scale.start", "allowed: from 1 to inf", "-5"),
    Bad("boolean_for_number", top("time_scale: true"), 1, "time_scale", "allowed: a number", "True"),
    Bad(
        "time_scale_no_factor",
        top("time_scale: {keep: path}"),
        1,
        "time_scale",
        "{factor: number, keep: steps or path}",
    ),
    Bad("time_scale_keep", top("time_scale: {factor: 2, keep: it}"), 1, "time_scale.keep", "'steps' or 'path'", "'it'"),
    Bad(
        "too_noisy_for_the_path",
        top("noise: {background: 0.3}\ntime_scale: {factor: 4, keep: path}"),
        2,
        "time_scale.factor",
        "makes noise.background 1.2; allowed: less than or equal to 1",
        "4",
    ),
    Bad("boolean_for_value", actor("intensity: true"), 3, "actors.0.intensity", "allowed: a number, {uniform", "True"),
    Bad("null_for_number", top("steps:"), 1, "steps", "allowed: a whole number", "None"),
    Bad("negative_width", top("sensor: {width: -1}"), 1, "sensor.width", "greater than or equal to 1", "-1"),
    Bad("huge_width", top("sensor: {width: 100000}"), 1, "sensor.width", "less than or equal to 16384", "100000"),
    Bad("no_steps", top("steps: 0"), 1, "steps", "greater than or equal to 1", "0"),
    Bad("seed_negative", top("seed: -1"), 1, "seed", "greater than or equal to 0", "-1"),
    Bad("seed_too_big", top(f"seed: {2**64}"), 1, "seed", f"less than {2**64}", str(2**64)),
    Bad("time_scale_0", top("time_scale: 0"), 1, "time_scale", "allowed: greater than 0", "0"),
    Bad("time_scale_nan", top("time_scale: .nan"), 1, "time_scale", "allowed: a finite number", "nan"),
    Bad("time_scale_inf", top("time_scale: .inf"), 1, "time_scale", "finite number", "inf"),
    Bad("upsampling_0", top("upsampling: 0"), 1, "upsampling", "greater than or equal to 1", "0"),
    Bad("upsampling_257", top("upsampling: 257"), 1, "upsampling", "less than or equal to 256", "257"),
    Bad("threshold_0", top("integrator: {threshold: 0}"), 1, "integrator.threshold", "equal to 0.001", "0"),
    Bad("background_on", top("noise: {background: {on: 2}}"), 1, "noise.background.on", "less than or equal to 1", "2"),
    Bad("background_list", top("noise: {background: [0, 1]}"), 1, "noise.background", "{on: number", "[0, 1]"),
    Bad("threshold_on", top("integrator: {threshold: {on: 0}}"), 1, "integrator.threshold.on", "equal to 0.001", "0"),
    Bad(
        "threshold_spread",
        top("integrator: {threshold: {spread: -1}}"),
        1,
        "integrator.threshold.spread",
        "greater than or equal to 0",
        "-1",
    ),
    Bad("threshold_of", top("integrator: {threshold: {on: 1, of: 1}}"), 1, "integrator.threshold.of", "mean off?", "1"),
    Bad("threshold_text", top("integrator: {threshold: high}"), 1, "integrator.threshold", "{on: number", "'high'"),
    Bad("threshold_list", top("integrator: {threshold: [1, 2]}"), 1, "integrator.threshold", "{on: number", "[1, 2]"),
    Bad("threshold_empty", top("integrator: {threshold: {}}"), 1, "integrator.threshold", "{on: number", "{}"),
    Bad("threshold_nan", top("integrator: {threshold: .nan}"), 1, "integrator.threshold", "finite number", "nan"),
    Bad("response", top("integrator: {response: log}"), 1, "integrator.response", "linear, {log: number}", "'log'"),
    Bad("response_0", top("integrator: {response: {log: 0}}"), 1, "integrator.response.log", "equal to 0.000001", "0"),
    Bad(
        "response_dark",
        actor("intensity: -0.3\nintegrator: {response: {log: 0.3}}"),
        3,
        "actors.0.intensity",
        "-0.3 has no logarithm",
        "-0.3",
    ),
    Bad("latency", top("readout: {latency_us: 5}"), 1, "readout.latency_us", "timing: exact only; in step", "5"),
    Bad("bus_in_steps", top("readout: {events_per_ms: 9}"), 1, "readout.events_per_ms", "timing: exact only", "9"),
    Bad("latency_below", read_out("latency_us: -1"), 2, "readout.latency_us", "greater than or equal to 0", "-1"),
    Bad("jitter_nan", read_out("jitter_us: .nan"), 2, "readout.jitter_us", "finite number", "nan"),
    Bad("bus_0", read_out("events_per_ms: 0"), 2, "readout.events_per_ms", "greater than or equal to 0.01", "0"),
    Bad("bus_text", read_out("events_per_ms: many"), 2, "readout.events_per_ms", "allowed: a number", "'many'"),
    Bad("queue", read_out("queue_us: 1e9"), 2, "readout.queue_us", "less than or equal to 1", "1000000000"),
    Bad("readout_key", read_out("jiter_us: 1"), 2, "readout.jiter_us", "did you mean jitter_us", "1"),
    Bad("reset", top("integrator: {reset: none}"), 1, "integrator.reset", "'subtract' or 'zero'", "'none'"),
    Bad(
        "initial_word", top("integrator: {initial: normal}"), 1, "integrator.initial", "stationary, or a number from -1"
    ),
    Bad("initial_2", top("integrator: {initial: 2}"), 1, "integrator.initial", "less than or equal to 1", "2"),
    Bad("warmup", top("integrator: {warmup: -1}"), 1, "integrator.warmup", "greater than or equal to 0", "-1"),
    Bad("probability_above_1", top("noise: {event: 1.5}"), 1, "noise.event", "less than or equal to 1", "1.5"),
    Bad("probability_nan", top("noise: {event: .NaN}"), 1, "noise.event", "finite number", "nan"),
    Bad("intensity_9", actor("intensity: 9"), 3, "actors.0.intensity", "allowed: from -8 to 8", "9"),
    Bad("intensity_drawn", actor("intensity: {uniform: [0, 9]}"), 3, "actors.0.intensity", "allowed: from -8 to 8"),
]

VALUES = [
    Bad("nan", actor("rotation: {velocity: .nan}"), 3, "actors.0.rotation.velocity", "finite number", "nan"),
    Bad("inf", actor("rotation: {velocity: -.inf}"), 3, "actors.0.rotation.velocity", "finite number", "-inf"),
    Bad("too_large", actor("rotation: {velocity: 1e10}"), 3, "actors.0.rotation.velocity", "less than or equal to"),
    Bad("word", actor("rotation: {velocity: fast}"), 3, "actors.0.rotation.velocity", "a number, {uniform", "'fast'"),
    Bad("pair_for_angle", actor("rotation: {start: [1, 2]}"), 3, "actors.0.rotation.start", "uniform (the natural"),
    Bad("triple", actor("scale: {start: [1, 2, 3]}"), 3, "actors.0.scale.start", "at most 2 items, not 3", "[1, 2, 3]"),
    Bad("single", actor("scale: {start: [5]}"), 3, "actors.0.scale.start", "allowed: two items", "[5]"),
    Bad("bad_in_pair", actor("scale: {start: [5, x]}"), 3, "actors.0.scale.start.1", "allowed: a number", "'x'"),
    Bad("uniform_reversed", actor("scale: {start: {uniform: [9, 2]}}"), 3, "start.uniform", "low not above high"),
    Bad("uniform_one", actor("scale: {start: {uniform: [9]}}"), 3, "start.uniform", "allowed: two items", "[9]"),
    Bad("normal_negative", push("{normal: [0, -1]}"), 3, "acceleration.normal.1", "greater than or equal to 0", "-1"),
    Bad("choice_empty", actor("scale: {start: {choice: []}}"), 3, "start.choice", "allowed: 1 or more items", "[]"),
    Bad("choice_mixed", actor("scale: {start: {choice: [[2, 3], 4]}}"), 3, "start.choice.1", "allowed: a list", "4"),
    Bad("factor_0", actor("scale: {velocity: {factor: 0}}"), 3, "velocity.factor", "allowed: from 1e-06 to 1e+06", "0"),
    Bad(
        "factor_drawn",
        actor("scale: {velocity: {factor: {uniform: [-1, 1]}}}"),
        3,
        "actors.0.scale.velocity.factor",
        "-1 is not a factor; allowed: from 1e-06",
    ),
    Bad("factor_and_pair", actor("scale: {start: [20, 30], velocity: {factor: 0.9}}"), 3, "velocity", "not a pair"),
    Bad(
        "factor_and_pairs",
        actor("scale: {start: {choice: [[20, 30]]}, velocity: {factor: 0.9}}"),
        3,
        "actors.0.scale.velocity",
        "not a pair",
    ),
    Bad("factor_of_rotation", actor("rotation: {velocity: {factor: 2}}"), 3, "rotation.velocity", "{boundary: pixels}"),
    Bad("limits_reversed", actor("scale: {limits: [30, 10]}"), 3, "scale.limits", "low below high", "[30, 10]"),
    Bad("shear_limits", actor("shear: {limits: [1, 1]}"), 3, "shear.limits", "low below high", "[1, 1]"),
    Bad("size_beyond_limits", actor("scale: {start: 5, limits: [10, 30]}"), 3, "scale.start", "from 10 to 30", "5"),
    Bad(
        "sizes_beyond_limits",
        actor("scale: {start: {choice: [[10, 20], [20, 40]]}, limits: [10, 30]}"),
        3,
        "actors.0.scale.start",
        "40 is not inside the limits; allowed: from 10 to 30",
    ),
    Bad("shear_beyond_limits", actor("shear: {start: 2}"), 3, "shear.start", "allowed: from -1 to 1", "2"),
    Bad(
        "border", actor("translation: {border: stop}"), 3, "translation.border", "'bounce', 'wrap' or 'free'", "'stop'"
    ),
    Bad(
        "start_outside",
        actor("translation: {start: [64, 200]}"),
        3,
        "actors.0.translation.start",
        "200 is not inside the frame; allowed: from 0 to 128",
        "[64, 200]",
    ),
    Bad(
        "start_drawn_outside",
        actor("translation: {start: {choice: [[64, 64], [-1, 64]]}}"),
        3,
        "actors.0.translation.start",
        "-1 is not inside the frame; allowed: from 0 to 128",
    ),
    Bad(
        "start_outside_margin",
        actor("translation: {start: 5, margin: 10}"),
        3,
        "actors.0.translation.start",
        "5 is not inside the frame; allowed: from 10 to 118",
    ),
    Bad(
        "start_outside_other_axis",
        "sensor: {width: 64, height: 32}\n" + actor("translation: {start: 40}"),
        4,
        "actors.0.translation.start",
        "y = 40 is not inside the frame; allowed: from 0 to 32",
    ),
    Bad("margin_too_large", actor("translation: {margin: 64}"), 3, "translation.margin", "less than half", "64"),
    Bad("margin_wrap", actor("translation: {border: wrap, margin: 2}"), 3, "translation.margin", "border: bounce", "2"),
    Bad("speed_limit", actor("rotation: {speed_limit: 0}"), 3, "rotation.speed_limit", "allowed: greater than 0", "0"),
    Bad("period", push("{profile: sine, amplitude: 1, period: 0}"), 3, "acceleration.period", "equal to 0.001", "0"),
    Bad("boundary_word", actor("rotation: {velocity: {boundary: x}}"), 3, "velocity.boundary", "a number, {uniform"),
    Bad(
        "expression_import", push("{expression: '__import__(\"os\")'}"), 3, "acceleration.expression", "numbers, t, pi"
    ),
    Bad("expression_attribute", push("{expression: t.real}"), 3, "acceleration.expression", "numbers, t, pi"),
    Bad("expression_lambda", push("{expression: 'lambda: t'}"), 3, "acceleration.expression", "contains 'lambda: t'"),
    Bad("expression_power", push("{expression: 9 ** 9 ** 9}"), 3, "acceleration.expression", "whole number up to 16"),
    Bad("expression_long", push(f"{{expression: {'t + ' * 125}t}}"), 3, "acceleration.expression", "at most 500"),
    Bad("expression_arity", push("{expression: 'min(t)'}"), 3, "acceleration.expression", "min takes 2 arguments"),
    Bad(
        "expression_syntax", push("{expression: 't +'}"), 3, "acceleration.expression", "is not an expression", "'t +'"
    ),
    Bad("expression_number", push("{expression: 3}"), 3, "acceleration.expression", "allowed: text in quotes", "3"),
    Bad("function_form", push("{function: wobble}"), 3, "acceleration.function", "allowed: 'module:name'", "'wobble'"),
]

SHAPES = [
    Bad(
        "unknown_shape", shape("sqare"), 2, "actors.0.shape", "did you mean square? allowed: square, circle", "'sqare'"
    ),
    Bad("unlike_any_shape", shape("star"), 2, "actors.0.shape", "got 'star': allowed: square, circle", "'star'"),
    Bad("misspelt_form", shape("{plygon: []}"), 2, "actors.0.shape", "did you mean polygon? allowed: square, circle"),
    Bad("two_shapes", shape("{text: a, svg: b}"), 2, "actors.0.shape", "allowed: square, circle"),
    Bad("polygon_of_two", shape("{polygon: [[0, 0], [1, 1]]}"), 2, "shape.polygon", "has 2 vertices; allowed: [[x, y]"),
    Bad(
        "ring_of_two",
        shape("{polygon: [[[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 1]]]}"),
        2,
        "actors.0.shape.polygon.1",
        "has 2 vertices; allowed: [[x, y]",
    ),
    Bad(
        "polygon_nan",
        shape("{polygon: [[0, 0], [1, .nan], [0, 1]]}"),
        2,
        "polygon.1",
        "[x, y], each within",
        "[1, nan]",
    ),
    Bad(
        "polygon_far",
        shape("{polygon: [[0, 0], [1, 0], [0, 2e3]]}"),
        2,
        "polygon.2",
        "each within ±1000",
        "[0, 2000.0]",
    ),
    Bad(
        "polygon_triple",
        shape("{polygon: [[0, 0], [1, 0], [0, 1, 2]]}"),
        2,
        "polygon.2",
        "a vertex [x, y]",
        "[0, 1, 2]",
    ),
    Bad(
        "vertex_of_second_ring",
        shape("{polygon: [[[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 0], [0, x]]]}"),
        2,
        "actors.0.shape.polygon.1.2",
        "allowed: a vertex [x, y]",
        "[0, 'x']",
    ),
    Bad("polygon_flat", shape("{polygon: [[0, 0], [1, 0], [2, 0]]}"), 2, "shape.polygon", "do not lie on one line"),
    Bad("polygon_slanted", shape("{polygon: [[0, 0], [1, 1], [3, 3]]}"), 2, "shape.polygon", "do not lie on one line"),
    Bad("polygon_word", shape("{polygon: square}"), 2, "shape.polygon", "allowed: [[x, y], …]", "'square'"),
    Bad("polygon_huge", shape(f"{{polygon: [{'[0, 0], ' * 20_001}]}}"), 2, "shape.polygon", "at most 20000"),
    Bad("svg_word", shape("{svg: square}"), 2, "actors.0.shape.svg", "allowed: a path's d string", "'square'"),
    Bad(
        "svg_with_a_word", shape("{svg: M 0 0 L 1 0 L 1 1 foo Z}"), 2, "shape.svg", "it has the character 'f'; allowed"
    ),
    Bad("svg_no_move", shape("{svg: L 1 1 2 0 z}"), 2, "actors.0.shape.svg", "allowed: a path's d string"),
    Bad("svg_cut_off", shape("{svg: 'M 0 0 L 1'}"), 2, "actors.0.shape.svg", "allowed: a path's d string"),
    Bad("svg_line", shape("{svg: 'M 0 0 L 1 1'}"), 2, "actors.0.shape.svg", "encloses no area"),
    Bad("svg_infinite", shape("{svg: 'M 0 0 L 1e999 0 0 1'}"), 2, "actors.0.shape.svg", "allowed: up to 1e+09"),
    Bad("svg_empty", shape("{svg: ''}"), 2, "actors.0.shape.svg", "1 or more characters", "''"),
    Bad("text_number", shape("{text: 7}"), 2, "actors.0.shape.text", "allowed: text in quotes", "7"),
    Bad("text_space", shape("{text: ' '}"), 2, "actors.0.shape.text", "encloses no area", "' '"),
    Bad("text_unknown", shape('{text: "\\U0001F9FF"}'), 2, "actors.0.shape.text", "the font DejaVu Sans does not hold"),
    Bad("text_long", shape(f"{{text: {'a' * 101}}}"), 2, "actors.0.shape.text", "at most 100 characters"),
    Bad("mask_missing", shape("{mask: none.png}"), 2, "actors.0.shape.mask", "there is no file", "'none.png'"),
    Bad("mask_folder", shape("{mask: .}"), 2, "actors.0.shape.mask", "Is a directory", "'.'"),
    Bad(
        "mask_no_picture", shape("{mask: text.png}"), 2, "actors.0.shape.mask", "allowed: PNG, JPEG, PGM", "'text.png'"
    ),
    Bad("mask_cut_off", shape("{mask: cut.png}"), 2, "actors.0.shape.mask", "allowed: PNG, JPEG, PGM", "'cut.png'"),
    Bad("mask_gif", shape("{mask: white.gif}"), 2, "actors.0.shape.mask", "allowed: PNG, JPEG, PGM", "'white.gif'"),
    Bad("mask_black", shape("{mask: black.png}"), 2, "actors.0.shape.mask", "light inside the shape", "'black.png'"),
    Bad("mask_large", shape("{mask: large.png}"), 2, "actors.0.shape.mask", "at most 4096 a side", "'large.png'"),
    Bad("mask_bomb", shape("{mask: bomb.png}"), 2, "actors.0.shape.mask", "at most 4096 pixels a side", "'bomb.png'"),
    Bad(
        "mask_detailed", shape("{mask: grid.png}"), 2, "actors.0.shape.mask", "at most 20000 are allowed", "'grid.png'"
    ),
]

SWEEPS = [
    Bad(
        "unknown_path",
        sweep("time_skale: [1]"),
        3,
        "sweep.time_skale",
        "did you mean time_scale? allowed in the config",
    ),
    Bad(
        "unknown_inner_path",
        sweep("actors.0.rotation.speed: [1]"),
        3,
        "sweep.actors.0.rotation.speed",
        "no such field; did you mean velocity? allowed in actors.0.rotation: start, velocity",
    ),
    Bad("unknown_actor", sweep("actors.1.intensity: [1]"), 3, "sweep.actors.1.intensity", "allowed in actors: 0"),
    Bad("below_number", sweep("time_scale.x: [1]"), 3, "sweep.time_scale.x", "allowed in time_scale: nothing below it"),
    Bad("empty_list", sweep("time_scale: []"), 3, "sweep.time_scale", "allowed: 1 or more items", "[]"),
    Bad("no_list", sweep("time_scale: 2"), 3, "sweep.time_scale", "allowed: a list", "2"),
    Bad("no_mapping", f"{SQUARE}sweep: [1]\n", 2, "sweep", "allowed: a mapping", "[1]"),
    Bad("bad_value", sweep("time_scale:\n    - 1\n    - -2"), 5, "sweep.time_scale.1", "allowed: greater than 0", "-2"),
    Bad(
        "bad_inner_value",
        sweep("actors.0.scale.start: [5, {uniform: [3, 2]}]"),
        3,
        "sweep.actors.0.scale.start.1.uniform",
        "low not above high",
        "[3, 2]",
    ),
    Bad(
        "bad_consequence",
        "sensor: {width: 64, height: 64}\nactors:\n  - shape: square\n    translation: {start: 40}\n"
        "sweep: {sensor.width: [64, 32]}\n",
        5,
        "sweep.sensor.width.1",
        "makes actors.0.translation.start wrong: x = 40 is not inside the frame; allowed: from 0 to 32",
        "32",
    ),
    Bad(
        "bad_together",
        sweep("actors.0.scale.start: [5, 50]\n  actors.0.scale.limits: [[1, 60], [1, 30]]"),
        2,
        "sweep",
        "the member actors.0.scale.start = 50, actors.0.scale.limits = [1, 30] makes actors.0.scale.start wrong: "
        "50 is not inside the limits; allowed: from 1 to 30",
    ),
    Bad("path_below_path", sweep("sensor.width: [64]\n  sensor: [{}]"), 3, "sweep.sensor.width", "is part of sensor"),
    Bad(
        "equal_values",
        sweep("time_scale: [2, 1, 1.0]"),
        3,
        "sweep.time_scale.2",
        "as items 1 and 2; allowed: values that",
        "1.0",
    ),
    Bad(
        "equal_mappings",
        sweep("noise: [{}, {background: 0}]"),
        3,
        "sweep.noise.1",
        "stands there twice",
        "{'background': 0}",
    ),
    Bad("over_seed", sweep("seed: [1, 2]"), 3, "sweep.seed", "no such field"),
    Bad("over_sweep", sweep("sweep: [1, 2]"), 3, "sweep.sweep", "no such field"),
    Bad(
        "too_many_members",
        sweep(f"steps: [{'1, ' * 400}]\n  step_us: [{'1, ' * 400}]"),
        2,
        "sweep",
        "makes 160000 members; at most 100000 are allowed",
    ),
]


@pytest.fixture
def gerd(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Runs `gerd …` in this process, expects exit code 2, and gives the lines of its messages."""

    def run(*arguments: str | Path) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["gerd", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        message = capsys.readouterr().err
        assert exit_.value.code == 2, message
        assert "Traceback" not in message
        assert "warning" not in message.lower()
        return message.splitlines()

    return run


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures that cannot be masks."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "text.png").write_text("not a picture")
    Image.new("L", (32, 32), "black").save(folder / "black.png")
    Image.new("L", (32, 32), "white").save(folder / "white.gif")
    Image.new("1", (4097, 2)).save(folder / "large.png")
    Image.effect_noise((64, 64), 90).save(folder / "noise.png")
    (folder / "cut.png").write_bytes((folder / "noise.png").read_bytes()[:400])
    grid = Image.new("L", (300, 300))
    grid.putdata([255 * (x % 2 and y % 2) for y in range(300) for x in range(300)])
    grid.save(folder / "grid.png")
    size = (30_000).to_bytes(4, "big") * 2
    chunks = (b"IHDR" + size + bytes([8, 0, 0, 0, 0]), b"IDAT" + zlib.compress(bytes(1000)), b"IEND")
    parts = [(len(part) - 4).to_bytes(4, "big") + part + zlib.crc32(part).to_bytes(4, "big") for part in chunks]
    (folder / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    return folder


ROWS = [*NOT_YAML, *FIELDS, *VALUES, *SHAPES, *SWEEPS]


@pytest.mark.parametrize("bad", ROWS, ids=lambda bad: bad.name)
def test_a_bad_config_gives_one_message_that_says_everything(
    bad: Bad, pictures: Path, gerd: Callable[..., list[str]]
) -> None:
    file = pictures / f"{bad.name}.yaml"
    file.write_bytes(bad.text if isinstance(bad.text, bytes) else bad.text.encode())
    lines = gerd("check", file)
    assert len(lines) == 1, lines
    place = f"error: {file}" if bad.line is None else f"error: {file}:{bad.line}"
    assert lines[0].startswith(f"{place}: "), lines[0]
    path, _, rest = lines[0].removeprefix(f"{place}: ").partition(": ")
    if bad.path:
        assert path.endswith(bad.path)
        assert path == bad.path or path.startswith("actors.0.")
    if bad.value:
        assert rest.startswith(f"got {bad.value}")
    assert bad.allowed in lines[0]
    assert len(lines[0]) < len(str(file)) + 600


def test_all_problems_are_listed_and_not_only_the_first(tmp_path: Path, gerd: Callable[..., list[str]]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "steps: -1\nsensor:\n  widht: 3\n  height: 0\nactors:\n  - {shape: square, intensity: 9}\n"
        "  - {shape: circle, color: red, scale: {start: x, limits: [a, 1]}}\n"
    )
    places = [line.split(": ")[1:3] for line in gerd("check", file)]
    expected = [
        (1, "steps"),
        (3, "sensor.widht"),
        (4, "sensor.height"),
        (6, "actors.0.intensity"),
        (7, "actors.1.color"),
        (7, "actors.1.scale.start"),
        (7, "actors.1.scale.limits.0"),
    ]
    assert places == [[f"{file}:{line}", path] for line, path in expected]


def test_a_flood_of_problems_is_cut_off(tmp_path: Path, gerd: Callable[..., list[str]]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(actor(f"intensity: {{choice: [{'x, ' * 1000}]}}"))
    lines = gerd("check", file)
    assert len(lines) == 51
    assert lines[-1].endswith("and 950 more problems")


def test_files_that_cannot_be_read(tmp_path: Path, gerd: Callable[..., list[str]]) -> None:
    (huge := tmp_path / "huge.yaml").touch()
    with open(huge, "r+b") as file:
        file.truncate(4 * 2**20 + 1)
    missing = tmp_path / "missing.yaml"
    assert gerd("check", missing) == [f"error: {missing}: there is no such file"]
    assert gerd("check", tmp_path) == [f"error: {tmp_path}: cannot be read: Is a directory"]
    assert gerd("check", huge) == [f"error: {huge}: is too long; at most {4 * 2**20} bytes are allowed"]
    assert gerd("check", "/dev/zero") == [f"error: /dev/zero: is too long; at most {4 * 2**20} bytes are allowed"]


@pytest.mark.parametrize(
    ("override", "path", "allowed"),
    [
        ("steps", "", "allowed: path=value, such as noise.background=0.01"),
        ("=5", "", "allowed: path=value"),
        ("a." * 1000 + "b=5", "", "allowed: path=value"),
        ("steps=[1", "", "is not YAML: while parsing a flow sequence"),
        ("steps=many", "steps: got 'many'", "allowed: a whole number"),
        ("steps=", "steps: got None", "allowed: a whole number"),
        ("sensor.widht=5", "sensor.widht: got 5", "did you mean width?"),
        ("sensor={width: 0}", "sensor.width: got 0", "greater than or equal to 1"),
        ("actors.1.intensity=1", "actors.1.intensity", "there is no item 1; allowed: 0 to 0"),
        ("actors.last.intensity=1", "actors.last.intensity", "there is no item last; allowed: 0 to 0"),
        ("seed.x=1", "seed.x", "there is nothing below 1 to set"),
        ("sweep.time_scale=[-1]", "sweep.time_scale.0: got -1", "allowed: greater than 0"),
        ("sweep.actors.0.intensity=[9]", "sweep.actors.0.intensity.0: got 9", "allowed: from -8 to 8"),
    ],
)
def test_a_bad_override_is_named(
    override: str, path: str, allowed: str, tmp_path: Path, gerd: Callable[..., list[str]]
) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(f"seed: 1\n{SQUARE}")
    (line,) = gerd("check", file, "--set", "noise.event=0.5", "--set", override)
    assert line.startswith((f"error: --set {override}: {path}", f"error: --set {override}:1: {path}"))
    assert allowed in line


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        (
            "actors:\n  - shape: circle\n    rotation: {velocity: {boundary: 1}}\n",
            "rotation.velocity.boundary",
            "a number",
        ),
        (push("{expression: 1 / t}"), "rotation.acceleration", "is not a finite number at t = 0"),
        (push("{expression: log(t)}"), "rotation.acceleration", "is not a finite number at t = -6"),
        (push("{expression: exp(t * 100)}"), "rotation.acceleration", "is not a finite number at t = 8"),
    ],
)
def test_what_only_a_draw_can_find_is_found_by_check(
    text: str, path: str, allowed: str, tmp_path: Path, gerd: Callable[..., list[str]]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    (line,) = gerd("check", file)
    assert f"actors.0.{path}" in line
    assert allowed in line


def test_the_names_of_the_rows_differ() -> None:
    assert len({bad.name for bad in ROWS}) == len(ROWS)


def test_a_good_config_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the checks above can fail: what every row starts from is good."""
    for i, text in enumerate((top("seed: 1"), actor("intensity: 1"), shape("circle"), push("0"), sweep("steps: [5]"))):
        file = tmp_path / f"{i}.yaml"
        file.write_text(text)
        monkeypatch.setattr(sys, "argv", ["gerd", "check", str(file)])
        with pytest.raises(SystemExit) as exit_:
            main()
        assert exit_.value.code == 0
        assert "index 0" in capsys.readouterr().out

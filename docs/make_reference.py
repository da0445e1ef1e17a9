"""Writes docs/config.md from the config's models, docs/commands.md, and docs/leaderboard.md from results.

So they cannot contradict the program.

python docs/make_reference.py            write the pages
python docs/make_reference.py --check    exit with 1 if a page on disk is not what would be written
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import make_commands
import make_leaderboard
from pydantic import BaseModel, Discriminator
from pydantic.fields import FieldInfo

import gerd
from gerd.config.actor import Actor
from gerd.config.config import Config
from gerd.config.expression import ALLOWED
from gerd.config.samples import MOST_HELD, MOST_LOOKED_AT
from gerd.config.values import FunctionName

FOLDER = Path(__file__).parent

# One example for each field; every one of them is parsed before it is printed.
EXAMPLES = {
    "seed": "7",
    "sensor": "{width: 346, height: 260}",
    "sensor.width": "346",
    "sensor.height": "260",
    "steps": "200",
    "step_us": "500",
    "time_scale": "0.5",
    "timing": "exact",
    "upsampling": "16",
    "transform": "[{rotate: 30}, {boost: [1, 0]}, {mirror: x}]",
    "integrator": "{threshold: 0.3, warmup: 10}",
    "integrator.threshold": "{on: 0.4, off: 0.5, spread: 0.03}",
    "integrator.response": "{log: 0.1}",
    "integrator.reset": "zero",
    "integrator.initial": "stationary",
    "integrator.warmup": "20",
    "integrator.refractory_us": "500",
    "integrator.refractory": "drop",
    "integrator.leak_hz": "0.1",
    "noise": "{background: 0.001}",
    "noise.background": "{on: 0.001, off: 0.0005}",
    "noise.shape": "0.05",
    "noise.event": "0.1",
    "noise.hot": "{share: 0.001, rate_hz: 100}",
    "noise.hot.share": "0.001",
    "noise.hot.rate_hz": "100",
    "noise.dead": "0.001",
    "noise.recorded": "empty.npz",
    "readout": "{latency_us: 100, events_per_ms: 1000}",
    "readout.latency_us": "100",
    "readout.jitter_us": "10",
    "readout.events_per_ms": "1000",
    "readout.queue_us": "500",
    "camera": "esim",
    "camera.like": "v2e-clean",
    "camera.number": "1",
    "actors": "[{shape: circle}, {shape: square}]",
    "sweep": "{time_scale: [0.5, 1, 2]}",
    "functions": "{'wobble:push': {first: -6, values: '0 0.5 1'}}",
    "actors.0.shape": "{text: '7'}",
    "actors.0.intensity": "{uniform: [0.5, 1]}",
    "actors.0.translation": "{start: uniform, velocity: [1, 0], acceleration: 0}",
    "actors.0.translation.start": "[20, 30]",
    "actors.0.translation.velocity": "{choice: [[1, 1], [1, -1]]}",
    "actors.0.translation.acceleration": "[{normal: [0, 0.1]}, 0]",
    "actors.0.translation.border": "wrap",
    "actors.0.translation.margin": "10",
    "actors.0.translation.speed_limit": "2",
    "actors.0.scale": "{start: 30, velocity: {factor: 0.98}, acceleration: 0}",
    "actors.0.scale.start": "{uniform: [10, 40]}",
    "actors.0.scale.velocity": "{factor: 1.01}",
    "actors.0.scale.acceleration": "0",
    "actors.0.scale.limits": "[5, 60]",
    "actors.0.scale.speed_limit": "1",
    "actors.0.rotation": "{start: uniform, velocity: 3, acceleration: 0}",
    "actors.0.rotation.start": "45",
    "actors.0.rotation.velocity": "{boundary: 0.5}",
    "actors.0.rotation.acceleration": "{profile: sine, amplitude: 0.5, period: 30}",
    "actors.0.rotation.speed_limit": "10",
    "actors.0.shear": "{velocity: 0.02, acceleration: 0}",
    "actors.0.shear.start": "0.3",
    "actors.0.shear.velocity": "0.02",
    "actors.0.shear.acceleration": "{expression: '0.01 * cos(t / 3)'}",
    "actors.0.shear.limits": "[-0.5, 0.5]",
    "actors.0.shear.speed_limit": "0.1",
    "actors.0.repeat": "{uniform: [1, 5]}",
}
FORMS = {  # model: (a field that takes this form, the form, a longer word on it)
    "Uniform": ("actors.0.scale.start", "{uniform: [10, 40]}", ""),
    "Normal": ("actors.0.rotation.acceleration", "{normal: [0, 0.5]}", ""),
    "Choice": ("actors.0.rotation.velocity", "{choice: [-2, 2]}", ""),
    "PairChoice": ("actors.0.translation.velocity", "{choice: [[1, 1], [1, -1], [-1, 1], [-1, -1]]}", ""),
    "Boundary": ("actors.0.rotation.velocity", "{boundary: 0.5}", ""),
    "Factor": ("actors.0.scale.velocity", "{factor: 0.9}", ""),
    "Thresholds": (
        "integrator.threshold",
        "{on: 0.4, off: 0.5, spread: 0.03}",
        "All are shares of a full count; what is left out is 0.5, 0.5 and 0. Each can be swept, as "
        "`integrator.threshold.spread`, where the threshold is written in this way.",
    ),
    "LogResponse": (
        "integrator.response",
        "{log: 0.1}",
        "An intensity i on this background has the contrast ln(1 + i / 0.1), and intensities of -0.1 and below are "
        "refused. It can be swept, as `integrator.response.log`, where the response is written in this way.",
    ),
    "PerPolarity": ("noise.background", "{on: 0.001, off: 0.0005}", "What is left out is 0."),
    "TimeScale": (
        "time_scale",
        "{factor: 4, keep: path}",
        "With 60 steps, a warm-up of 5 and `noise.background: 0.01` this makes 16 steps, a warm-up of 2 and 0.04. In "
        "exact timing the warm-up is in own time and stays. A factor that makes a noise above 1 is an error. It is "
        "swept as a whole, or as `time_scale.factor`.",
    ),
    "Profile": (
        "actors.0.rotation.acceleration",
        "{profile: pulse, amplitude: 2, at: 10, duration: 5}",
        "The sine and the square wave have a `period` in steps and a `phase` in degrees; the pulse lasts from step "
        "`at` for `duration` steps.",
    ),
    "Expression": (
        "actors.0.rotation.acceleration",
        "{expression: '0.1 * sin(t / 10)'}",
        f"{ALLOWED.capitalize()}.".replace("*", "\\*"),
    ),
    "Function": (
        "actors.0.rotation.acceleration",
        "{function: 'wobble:push'}",
        "`wobble:push` is the function `push` of the file `wobble.py` beside the config. It is called with each whole "
        "t, and its value holds from t to t + 1; that of a translation may be a pair (x, y). It runs only with "
        "`--trust` (`trust=True` in Python), once for each t, and its values then stand for it: `config.to_yaml()` and "
        "the `resolved.json` of a dataset have them in `functions`.",
    ),
    "Sampled": (
        "functions",
        "{'wobble:push': {first: -6, values: '0 0.5 1'}}",
        "The function `wobble:push` gave 0 at t = -6, 0.5 at t = -5 and 1 at t = -4. Pairs are written `1,0 1,0.5`. "
        "Where a config has the values that its recordings need, the function is not run, and no trust is needed.",
    ),
    "Fingerprint": (
        "functions",
        "{'wobble:push': {first: -6, count: 200000, sha256: '" + 64 * "0" + "'}}",
        f"In place of the values where all functions of a config together would have more than {MOST_HELD} numbers; of "
        f"at most {MOST_LOOKED_AT} times.",
    ),
    "Translate": ("transform", "[{translate: [3.5, -2]}]", ""),
    "Rotate": ("transform", "[{rotate: 30, about: [20, 40]}]", "Without `about` it is the middle of the frame."),
    "ScaleScene": ("transform", "[{scale: [1.5, 0.7]}]", ""),
    "ShearScene": ("transform", "[{shear: 0.3}]", ""),
    "Mirror": ("transform", "[{mirror: x}]", ""),
    "Affine": ("transform", "[{affine: [[1, 0.5, 3], [0, 1, -2]]}]", ""),
    "Boost": ("transform", "[{boost: [1, 0], epoch: 30}]", ""),
    "Accelerate": ("transform", "[{accelerate: [0, 0.01]}]", ""),
    "ScaleTime": ("transform", "[{time_scale: 2}]", ""),
    "Polygon": (
        "actors.0.shape",
        "{polygon: [[-0.5, 0.5], [0, -0.5], [0.5, 0.5]], name: arrow}",
        "A `name` can be given to each of these forms; recordings, labels and `gerd info` have it.",
    ),
    "Svg": (
        "actors.0.shape",
        "{svg: 'M 0 0 L 10 0 A 5 5 0 0 1 5 9 Z'}",
        "A file is `{svg: heart.svg}`, up to 4 MiB, and its name `heart`. Paths, rectangles, circles, ellipses, "
        "polygons and polylines are taken if they are filled, with the transformations of their groups; strokes, style "
        "sheets and text are not. Where two of them overlap there is a hole, by the even-odd rule.",
    ),
    "Mask": (
        "actors.0.shape",
        "{mask: leaf.png}",
        "Its name is that of the file, `leaf`. `{mask: icon.png, alpha: true}`: what is opaque is inside, whatever its "
        "brightness. `invert: true`: what is dark is inside (with `alpha`, what is transparent).",
    ),
    "Text": ("actors.0.shape", "{text: '7'}", "Its name is the text."),
    "ShapeChoice": (
        "actors.0.shape",
        "{choice: [circle, square, {text: A}]}",
        "The names of the shapes are the [classes](data.md#classes) of a dataset.",
    ),
    "WholeUniform": ("actors.0.repeat", "{uniform: [1, 5]}", "Of `repeat` only."),
    "WholeChoice": ("actors.0.repeat", "{choice: [1, 3]}", "Of `repeat` only."),
    "Recorded": (
        "noise.recorded",
        "{file: empty.npz, sha256: 3f0a…}",
        "GERD writes this for the name of a file; [how it is used](conventions.md#noise).",
    ),
}
BASE = "actors: [{shape: square, translation: {acceleration: 0}}]"
EXACT = f"timing: exact\n{BASE}"  # for what goes with exact timing only
INTRODUCTION = """\
# The config

<!-- Written by docs/make_reference.py from the models in gerd/config/: change those, then run `make docs`. -->

This page is the reference of all fields; [Writing configs](guide.md) teaches them by example. A config is a YAML file.
Every field but `actors` has a default, and an unknown field is an error. Any field can be replaced on the command line
with `--set path=value`, where a path is written as below, with the number of an actor for `0`. `gerd schema` prints the
same as a JSON schema, for editors. [Conventions](conventions.md) defines the words and the directions of the axes.

A transformation that is not named stays at rest. One that is named without an acceleration has the random one of the
table, which makes it Brownian: write `acceleration: 0` for a constant velocity.

Text follows YAML 1.2: `1e-3` is a number, `on` and `no` are words, and a key that stands twice is an error.
"""


def page() -> str:
    """The whole page."""
    sections, forms = _models()
    parts = [INTRODUCTION]
    for path, model in sections:
        parts.append(_section(path, model))
    parts.append("## Forms of a number\n\nWhere the tables say so, a number can be written in these ways.\n")
    shown = {kind: [model for model in forms if kind in FORMS[model.__name__][0]] for kind in ("shape", "transform")}
    parts += [_form(model) for model in forms if not any(model in models for models in shown.values())]
    parts.append("## Forms of a shape\n\nBesides the names of the built-in shapes.\n")
    parts += [_form(model) for model in shown["shape"]]
    parts.append(
        "## Forms of a transformation\n\nEach changes the whole scene; "
        "[how they act together](conventions.md#transformations-of-the-whole-scene).\n"
    )
    parts += [_form(model) for model in shown["transform"]]
    return "\n".join(parts)


def _models() -> tuple[list[tuple[str, type[BaseModel]]], list[type[BaseModel]]]:
    """The models that are fields themselves, with their paths; and those that are ways to write a value."""
    sections: list[tuple[str, type[BaseModel]]] = [("", Config)]
    forms: dict[str, type[BaseModel]] = {}
    for path, model in sections:  # grows while it is walked
        for name, field in model.model_fields.items():
            below = f"{path}{name}."
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                sections.append((below, field.annotation))
            elif Actor in get_args(field.annotation):
                sections.append((f"{below}0.", Actor))
            else:
                forms.update({found.__name__: found for found in _mentioned(field.annotation)})
    return sections, list(forms.values())


def _mentioned(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation) if get_origin(annotation) is not Literal else ():
        yield from _mentioned(part)


def _section(path: str, model: type[BaseModel]) -> str:
    title = f"`{path.rstrip('.')}`" if path else "Top level"
    lines = [f"## {title}\n", f"{_docstring(model)}\n"]
    lines += ["| field | what it is | allowed | default | example |", "| --- | --- | --- | --- | --- |"]
    for name, field in model.model_fields.items():
        full = path + name
        example = EXAMPLES[full]
        if full != "noise.recorded":  # which needs a file
            gerd.parse(EXACT if full.startswith("readout") else BASE, overrides=[f"{full}={example}"])
        is_section = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        what = field.description or (_docstring(field.annotation) if is_section else "")
        cells = [f"`{full}`", what, _allowed(field), _default(field), f"`{name}: {example}`"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _form(model: type[BaseModel]) -> str:
    path, example, more = FORMS[model.__name__]
    if model.__name__ not in ("Mask", "Recorded"):  # which need a file
        gerd.parse(BASE, overrides=[f"{path}={example}"])
    name = path.rpartition(".")[2]
    return f"**`{name}: {example}`**: {_docstring(model)} {more}".rstrip() + "\n"


def _docstring(model: Any) -> str:
    text = " ".join((model.__doc__ or "").split())
    return text[:1].upper() + text[1:]


def _allowed(field: FieldInfo) -> str:
    return _described(field.annotation, field.metadata)


def _described(annotation: Any, metadata: Any = ()) -> str:
    """The values that a type takes, in words."""
    for part in metadata:
        if isinstance(part, Discriminator) and part.custom_error_message:
            return part.custom_error_message.removeprefix("allowed: ")
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [other for part in parts[1:] for other in (part.metadata if isinstance(part, FieldInfo) else [part])]
        return _described(parts[0], inner)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is Union or origin is types.UnionType:
        return " or ".join("`null`" if part is type(None) else _described(part) for part in parts)
    if origin is tuple and Actor in parts:
        return f"a list of up to {_bound(metadata, 'max_length')} actors"
    if origin is tuple and Ellipsis in parts:
        return f"a list of up to {_bound(metadata, 'max_length')} transformations"
    if origin is tuple:
        return "[" + ", ".join(_described(part) for part in parts) + "]"
    if origin is dict and FunctionName in parts:
        return "{'module:name': values, …}"
    if origin is dict:
        return "{path: [value, …], …}"
    if annotation in (int, float):
        return ("a whole number" if annotation is int else "a number") + _range(metadata)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        own = list(annotation.model_fields)
        return (
            f"{{{own[0]}: …}}" if annotation.__name__ in FORMS else f"fields {', '.join(f'`{name}`' for name in own)}"
        )
    raise TypeError(f"cannot say what {annotation} is")


def _bound(metadata: Any, name: str) -> Any:
    return next((getattr(part, name) for part in metadata if getattr(part, name, None) is not None), None)


def _range(metadata: Any) -> str:
    """Such as ` from 1 to 32`; a bound of ±1e9 is there against overflow and not worth a word."""
    low, above, high, below = (_bound(metadata, name) for name in ("ge", "gt", "le", "lt"))
    words = ""
    if low is not None and low > -1e9:
        words += f" from {_plain(low)}"
    if above is not None:
        words += f" above {_plain(above)}"
    if high is not None and not (isinstance(high, float) and high >= 1e9):
        words += f"{' to' if low is not None else ' up to'} {_plain(high)}"
    if below is not None:
        words += f" to {_plain(below - 1)}"
    return words


def _plain(number: float) -> str:
    return "2⁶⁴ - 1" if number == 2**64 - 1 else f"{number:,}".replace(",", " ").removesuffix(".0")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, BaseModel) and type(value).__name__ not in FORMS:
        changed = value.model_dump(mode="json", exclude_defaults=True)
        return f"`{_yaml(changed)}`" if changed else "its fields' defaults"
    return f"`{_yaml(value.model_dump(mode='json') if isinstance(value, BaseModel) else value)}`"


def _yaml(value: Any) -> str:
    """One line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def main() -> int:
    old = 0
    pages = {"config.md": page(), "commands.md": make_commands.page(), "leaderboard.md": make_leaderboard.page()}
    for name, written in pages.items():
        file = FOLDER / name
        if sys.argv[1:] != ["--check"]:
            file.write_text(written, "utf-8")
        elif not file.exists() or file.read_text("utf-8") != written:
            print(f"{file}: is not up to date; run make docs", file=sys.stderr)
            old = 1
    return old


if __name__ == "__main__":
    sys.exit(main())

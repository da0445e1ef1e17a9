"""Cameras by name: a name in, the fields that make a pixel like one of another simulator's out.

`camera: {like: v2e-clean}` stands for the fields below it. What is written beside it wins, field by field, so that a
config says what it changes, and a resolved one has numbers only. What each value is taken from, and what is different,
stands in docs/cameras.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Union

from pydantic import Field, Tag
from pydantic.config import JsonDict

from gerd.config.base import Model, invalid, tag
from gerd.config.document import PlainData
from gerd.config.values import forms
from gerd.errors import did_you_mean

Fields = Mapping[str, PlainData]

STEP_US = 1000  # of a config that does not say how long a step is
SHOT_NOISE_HZ = 5.0  # events of a pixel per second, of both polarities together

_V2E: Fields = {
    "integrator": {
        "threshold": {"on": 0.2, "off": 0.2, "spread": 0.02},
        "response": {"log": 1 / 255},
        "refractory_us": 500,
        "refractory": "hold",
    }
}
NAMED: dict[str, Fields] = {  # thresholds in units of ln
    "ideal": {},
    "esim": {
        "integrator": {
            "threshold": {"on": 1.0, "off": 1.0, "spread": 0.021},
            "response": {"log": 1e-3},
            "refractory_us": 0,
            "refractory": "drop",
        }
    },
    "v2e-clean": _V2E,
    "v2e-noisy": {
        "integrator": {**_V2E["integrator"], "threshold": {"on": 0.2, "off": 0.2, "spread": 0.05}, "leak_hz": 0.1},
        "noise": {"background": SHOT_NOISE_HZ},  # per second, where a config has a probability per step
    },
    "iebcs": {
        "integrator": {
            "threshold": {"on": 0.4, "off": 0.4, "spread": 0.01},
            "response": {"log": 1e-4},
            "refractory_us": 100,
            "refractory": "hold",
        },
        "readout": {"latency_us": 100.0, "jitter_us": 10.0},
    },
    "openeb": {
        "integrator": {
            "threshold": {"on": 0.1, "off": 0.1, "spread": 0.022},
            "response": {"log": 1e-5},
            "refractory_us": 10,
            "refractory": "drop",
        },
        "noise": {"dead": 5e-3},
    },
}
Name = Literal["ideal", "esim", "v2e-clean", "v2e-noisy", "iebcs", "openeb"]

WholeNumber = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
CameraNumber = Annotated[
    Union[Annotated[WholeNumber, Tag(tag("number"))], Annotated[Literal["each"], Tag(tag("each"))]],
    forms("a whole number from 0 to 4294967295, each"),
]


class Camera(Model):
    """The kind of camera, and which of the many cameras of that kind, whose pixels differ."""

    example = "{like: esim, number: 2}"

    like: Name = Field(
        "ideal",
        exclude=True,
        description="a named camera, which gives values to the fields that you do not write; `camera: esim` is short "
        "for `camera: {like: esim}`",
    )
    number: CameraNumber = Field(
        0,
        description="decides which pixels are hot or dead, and how thresholds differ (seed and index do not); each: "
        "index i has camera i",
    )


def with_named_camera(data: Fields) -> Fields:
    """A config's fields with those that a named camera stands for, where they are not written."""
    data = spelled_out(data)
    camera = data.get("camera")
    if not isinstance(camera, Mapping) or "like" not in camera:
        return data
    name = camera["like"]
    if not isinstance(name, str) or name not in NAMED:
        raise invalid(f"{did_you_mean([name], NAMED)}allowed: {', '.join(NAMED)}", "camera", "like", value=name)
    fields = dict(NAMED[name])
    delays = _merged(data.get("readout"), fields.get("readout"))
    late = "readout" in fields and isinstance(delays, Mapping) and any(delays.values())
    if late and data.get("timing", "step") == "step":
        message = (
            f"{name} has a latency, and events have times of their own with timing: exact only; allowed: timing: "
            "exact, or readout: {latency_us: 0, jitter_us: 0}"
        )
        raise invalid(message, "camera", "like", value=name)
    if "background" in fields.get("noise", {}):
        fields["noise"] = {**fields["noise"], "background": SHOT_NOISE_HZ * _step_us(data) * 1e-6}
    rest = {key: value for key, value in camera.items() if key != "like"}
    return {**data, **{key: _merged(data.get(key), part) for key, part in fields.items()}, "camera": rest}


def spelled_out(data: Fields) -> Fields:
    """The fields with a camera that is written as a name alone as a mapping."""
    camera = data.get("camera")
    return {**data, "camera": {"like": camera}} if isinstance(camera, str) else data


def _step_us(data: Fields) -> float:
    """How long a step is, as it is written; what is no time is told by its own field."""
    step_us = data.get("step_us", STEP_US)
    return step_us if isinstance(step_us, int | float) and 0 < step_us <= 1e5 else STEP_US


def _merged(written: PlainData, filled: PlainData) -> PlainData:
    """What is written, and where nothing is written what is filled in."""
    if written is None:
        return filled
    if isinstance(written, Model):
        written = {name: getattr(written, name) for name in written.model_fields_set}
    if not (isinstance(written, Mapping) and isinstance(filled, Mapping)):
        return written
    return {**filled, **{key: _merged(value, filled.get(key)) for key, value in written.items()}}


def refuse_name(path: str, value: object) -> None:
    """An error for a named camera as the value of a path: it stands for many fields, of which others may be set."""
    if path == "camera.like" or (path == "camera" and (not isinstance(value, Mapping) or "like" in value)):
        message = (
            "a named camera stands for many fields, and is written in the config itself, or with --set; its fields, "
            "such as integrator.threshold, and camera.number can be set and swept one by one"
        )
        raise invalid(message, *path.split("."), value=value)


def or_its_name(schema: JsonDict) -> None:
    """In the schema of a config a camera may be its name alone."""
    whole = {"$ref": schema.pop("$ref")}
    schema["anyOf"] = [{"type": "string", "enum": list(NAMED)}, whole]

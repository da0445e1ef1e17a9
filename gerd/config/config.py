"""The config: everything that a recording depends on besides its index, as one frozen model.

Each field's unit, default and range stand here and in `actor.py`, and nowhere else: `gerd schema`, docs/config.md and
the error messages are made from these models. `load.py` makes a `Config` from text.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from gerd.config.actor import Actor, start_outside
from gerd.config.base import Model, at, detail, details_of, fault, faults, plain, replaced
from gerd.config.document import Document, dotted, dump_yaml
from gerd.config.values import Initial, Probability
from gerd.errors import ConfigError, shorten

MOST_ACTORS = 64
MOST_MEMBERS = 100_000
NOT_SWEPT = ("seed", "sweep")  # members share their randomness


@dataclass(frozen=True)
class Origin:
    """Where a config comes from, which is no part of what it says."""

    text: str | None = None  # as the user wrote it, with overrides as comments
    document: Document = field(default_factory=lambda: Document(None))  # where each field was written
    directory: str | None = "."  # where masks are looked up; None: the config is resolved, and names no files
    trust: str | None = None  # the folder to import functions from, if the user trusts the config
    family: Config | None = None  # of a member: the config whose fields were set, sweep and all
    labels: Mapping[str, Any] = field(default_factory=dict)  # of a member: path → value of the fields that were set


class Sensor(Model):
    """The frame, in pixels."""

    width: int = Field(128, strict=True, ge=1, le=16384, description="pixels along x")
    height: int = Field(128, strict=True, ge=1, le=16384, description="pixels along y")


class Integrator(Model):
    """Each pixel's integrate-and-fire unit."""

    threshold: float = Field(
        0.5,
        strict=True,
        allow_inf_nan=False,
        ge=0.001,
        le=16,
        description="change that fires, as a share of a fully covered pixel's count",
    )
    reset: Literal["subtract", "zero"] = Field(
        "subtract", description="after an event: take the threshold off, or start again at 0"
    )
    initial: Initial = Field(
        "uniform", description="state at the start: uniform within ±0.9 thresholds, or a number of thresholds"
    )
    warmup: int = Field(5, strict=True, ge=0, le=100_000, description="steps run before step 0, not recorded")


class Noise(Model):
    """Three noises, each a probability, each absent at 0."""

    background: Probability = Field(0.0, description="a pixel fires regardless, per pixel and step")
    shape: Probability = Field(0.0, description="a covered pixel is missing in one rendered frame, per pixel and step")
    event: Probability = Field(0.0, description="an event is dropped after the integrator, per event")


class Config(Model):
    """Everything that a recording depends on, besides its index."""

    seed: int = Field(0, strict=True, ge=0, lt=2**64, description="of all randomness")
    sensor: Sensor = Sensor()
    steps: int = Field(60, strict=True, ge=1, le=100_000_000, description="length of a recording")
    step_us: int = Field(1000, strict=True, ge=1, le=10**9, description="microseconds per step, in exported times")
    time_scale: float = Field(
        1.0, strict=True, gt=0, le=1000, allow_inf_nan=False, description="the same motion, this many times as fast"
    )
    upsampling: int = Field(8, strict=True, ge=1, le=32, description="sub-pixels per pixel, along each axis")
    integrator: Integrator = Integrator()
    noise: Noise = Noise()
    actors: Annotated[
        tuple[Actor, ...],
        Field(max_length=MOST_ACTORS, description="from the farthest to the nearest"),
        BeforeValidator(lambda value: _few(value)),
    ]
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        {}, description="path of a field: list of its values; several paths make a grid"
    )

    _origin: Origin = PrivateAttr(Origin())

    @classmethod
    def of(cls, data: Any, origin: Origin) -> Config:
        """The config that plain data describes; pydantic's ValidationError if it is wrong."""
        return cls.model_validate(data, context={"origin": origin})

    @property
    def origin(self) -> Origin:
        """Where the config comes from."""
        return self._origin

    @property
    def family(self) -> Config:
        """Of a member of a sweep the config that describes the sweep, of any other the config itself."""
        return self._origin.family or self

    def trusted(self, folder: str | None) -> Config:
        """The same config, whose functions may be imported from `folder`; None: they may not run."""
        result = self.model_copy()
        result._origin = replace(self._origin, trust=folder)
        return result

    @model_validator(mode="after")
    def _starts_inside(self) -> Config:
        size = (self.sensor.width, self.sensor.height)
        problems = []
        for i, actor in enumerate(self.actors):
            move, path = actor.translation, ("actors", i, "translation")
            if move.border == "bounce" and 2 * move.margin >= min(size):
                allowed = f"allowed: less than half of the smaller frame side, {min(size) / 2:g}"
                problems.append(detail(allowed, (*path, "margin"), move.margin))
            elif move.border != "free":
                ranges = [(move.margin, side - move.margin) for side in size]
                problems += start_outside(move.start, ranges, "inside the frame", (*path, "start"))
        if problems:
            raise faults(problems)
        return self

    @model_validator(mode="after")
    def _sweep_sound(self, info: ValidationInfo) -> Config:
        """Every value of every swept path gives a good config by itself, and so does every member of a grid."""
        if info.context:
            self._origin = info.context["origin"]
        members = math.prod(len(values) for values in self.sweep.values())
        if members > MOST_MEMBERS:
            raise fault(f"makes {members} members; at most {MOST_MEMBERS} are allowed", "sweep", value=self.sweep)
        problems: list[InitErrorDetails] = []
        sweep = {}
        for path, values in self.sweep.items():
            try:
                replaced(self, path, None, NOT_SWEPT)
            except ValidationError as error:
                problems.append(detail(error.errors()[0]["msg"], ("sweep", path), values))
                continue
            above = next((other for other in self.sweep if path.startswith(f"{other}.")), None)
            if above is not None:
                problems.append(detail(f"lies below {above}, which is swept, too", ("sweep", path), values))
            sweep[path] = tuple(self._swept(path, i, value, problems) for i, value in enumerate(values))
        if not problems and len(sweep) > 1:
            problems = self._unsound_member(sweep)
        if problems:
            raise faults(problems)
        object.__setattr__(self, "sweep", sweep)  # frozen for everybody else
        return self

    def _swept(self, path: str, position: int, value: Any, problems: list[InitErrorDetails]) -> Any:
        """A swept value in plain data as its field holds it, a mask as a polygon; adds what is wrong to `problems`."""
        place, words = ("sweep", path, position), path.split(".")
        if _holds_function(value):
            message = "a Python function cannot be swept; allowed: its name, {function: 'module:name'}"
            problems.append(detail(message, place, value))
            return value
        try:
            member = self.with_values({path: value})
        except ValidationError as error:
            for problem in details_of(error):
                field = problem["loc"]
                if [str(word) for word in field[: len(words)]] == words:
                    problem["loc"] = (*place, *field[len(words) :])
                else:
                    problem = detail(f"makes {dotted(field)} wrong: {problem['type']}", place, value)
                problems.append(problem)
            return value
        if isinstance(value, dict) and ("text" in value or "svg" in value):
            return value  # says what the shape is, and needs no file
        return _as_written(plain(at(member, path)))

    def _unsound_member(self, sweep: dict[str, tuple[Any, ...]]) -> list[InitErrorDetails]:
        for row in itertools.product(*sweep.values()):
            values = dict(zip(sweep, row, strict=True))
            try:
                self.with_values(values)
            except ValidationError as error:
                first = details_of(error)[0]
                member = ", ".join(f"{path} = {shorten(value)}" for path, value in values.items())
                message = f"the member {member} makes {dotted(first['loc'])} wrong: {first['type']}"
                return [detail(message, ("sweep",), values)]
        return []

    def with_values(self, values: Mapping[str, Any]) -> Config:
        """A member of the family: the fields at the given paths replaced, and no sweep of its own; checked anew."""
        data: Any = {**{name: getattr(self, name) for name in Config.model_fields}, "sweep": {}}
        for path, value in values.items():
            data = replaced(data, path, value, NOT_SWEPT)
        labels = {**self._origin.labels, **values}
        return Config.of(data, replace(self._origin, text=None, family=self.family, labels=labels))

    def __hash__(self) -> int:
        return hash(self.digest)

    def error(self, path: str, message: str, value: Any) -> ConfigError:
        """What is wrong with the field at `path`, found only after the config was checked."""
        place = tuple(int(part) if part.isdecimal() else part for part in path.split("."))
        return ConfigError([self._origin.document.problem(place, message, shorten(value))])

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Config:
        result = super().model_copy(update=update, deep=deep)
        if update:  # what was worked out or written before no longer holds
            result.__dict__.pop("digest", None)
            result._origin = replace(self._origin, text=None, family=None, labels={})
        return result

    @property
    def text(self) -> str:
        """The YAML the config was read from, with overrides as comments; or one that gives the same config."""
        return self.resolved_yaml() if self._origin.text is None else self._origin.text

    def resolved(self) -> dict[str, Any]:
        """All fields with their values as plain data that needs no other file: masks, paths and glyphs as polygons.

        Only a swept path or glyph is left as it was written, because it is a label, too.
        """
        return self.model_dump(mode="json")

    def resolved_yaml(self) -> str:
        return dump_yaml(self.resolved())

    @cached_property
    def digest(self) -> str:
        """sha256 over the resolved config: equal for equal recordings, however the text was written."""
        return digest_of(self.resolved())


def digest_of(resolved: dict[str, Any]) -> str:
    """sha256 over a resolved config; the order of the swept paths counts, because it numbers the members."""
    ordered = {**resolved, "sweep": list(resolved["sweep"].items())}
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def _few(actors: Any) -> Any:
    """Refuse too many actors before each of them is looked at."""
    if isinstance(actors, list | tuple) and len(actors) > MOST_ACTORS:
        raise fault(f"allowed: at most {MOST_ACTORS} items, not {len(actors)}", value=actors)
    return actors


def _as_written(value: Any) -> Any:
    """Plain data with 2 for 2.0, as people write it."""
    if isinstance(value, dict):
        return {key: _as_written(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_written(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _holds_function(value: Any) -> bool:
    if isinstance(value, dict):
        value = tuple(value.values())
    return any(map(_holds_function, value)) if isinstance(value, list | tuple) else callable(value)

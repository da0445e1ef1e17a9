"""The config: what a user writes, as frozen models.

Each field's unit, default and range stand here and nowhere else: `gerd schema`, docs/config.md and the error
messages are made from these models. Lengths are in pixels, angles in degrees, velocities per step,
accelerations per step², probabilities from 0 to 1. `loading.py` makes a `Config` from text.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from gerd.config.base import Model, at, detail, details_of, did_you_mean, fault, faults, plain, replaced
from gerd.config.document import Document, dotted, dump_yaml
from gerd.config.values import (
    Acceleration,
    Factor,
    Initial,
    Normal,
    Number,
    PairAcceleration,
    PairChoice,
    PositionStart,
    PositionVelocity,
    Positive,
    Probability,
    SizeStart,
    SizeVelocity,
    Start,
    Value,
    Velocity,
    outside,
)
from gerd.errors import ConfigError, shorten
from gerd.geometry import shapes

DIMMEST, BRIGHTEST = -8.0, 8.0  # intensity
MOST_ACTORS = 64
TRANSFORMATIONS = ("translation", "scale", "rotation", "shear")
MOST_MEMBERS = 100_000
NOT_SWEPT = ("seed", "sweep")  # members share their randomness


def _brownian(deviation: float) -> Normal:
    return Normal(normal=(0.0, deviation))


class Translation(Model):
    """Where the shape's centre is, in pixels: x to the right and y down, from the frame's top left corner."""

    start: PositionStart = Field("centre", description="position at step 0, pixels")
    velocity: PositionVelocity = Field(0.0, description="pixels per step")
    acceleration: PairAcceleration = Field(_brownian(0.1), description="pixels per step²")
    border: Literal["bounce", "wrap", "free"] = Field(
        "bounce", description="at the frame's edge: reflect the centre, wrap around as on a torus, or leave"
    )
    margin: Number = Field(0.0, description="bounce this many pixels inside the frame's edge (negative: outside)")
    speed_limit: Positive | None = Field(None, description="largest speed, pixels per step")

    @model_validator(mode="after")
    def _margin_only_with_bounce(self) -> Translation:
        if self.margin and self.border != "bounce":
            raise fault(f"a margin goes with border: bounce, not {self.border}", "margin", given=self.margin)
        return self


class Scale(Model):
    """The side of the shape's unit box in pixels; one number, or [x, y] for a box with two different sides."""

    start: SizeStart = Field(20.0, description="size at step 0, pixels; uniform: 0.1 to 0.4 of the smaller frame side")
    velocity: SizeVelocity = Field(0.0, description="pixels per step, or {factor: number} per step")
    acceleration: PairAcceleration = Field(
        _brownian(0.05), description="pixels per step²; with a factor: of the size's natural logarithm per step²"
    )
    limits: tuple[Positive, Positive | None] = Field((1.0, None), description="the size is reflected at these, pixels")
    speed_limit: Positive | None = Field(
        None, description="largest speed, pixels per step; with a factor: of the size's logarithm per step"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Scale:
        high = self.limits[1]
        if high is not None and high <= self.limits[0]:
            raise fault("allowed: [low, high] with low below high, or [low, null]", "limits", given=self.limits)
        limits = (self.limits[0], math.inf if high is None else high)
        problems = _start_outside(self.start, (limits, limits), "inside the limits", ("start",))
        pairs = isinstance(self.start, tuple | PairChoice) or isinstance(self.acceleration, tuple)
        if isinstance(self.velocity, Factor) and pairs:
            message = "a factor goes with one start and one acceleration for both sides, not a pair"
            problems.append(detail(message, ("velocity",), self.velocity))
        if problems:
            raise faults(problems)
        return self


class Rotation(Model):
    """Degrees, clockwise on the screen (from x to y)."""

    start: Start = Field(0.0, description="degrees; uniform: 0 to 360")
    velocity: Velocity = Field(0.0, description="degrees per step")
    acceleration: Acceleration = Field(_brownian(0.5), description="degrees per step²")
    speed_limit: Positive | None = Field(None, description="largest speed, degrees per step")


class Shear(Model):
    """How far a point moves along x for each unit of y, before the rotation; a number without unit."""

    start: Start = Field(0.0, description="shear at step 0; uniform: -0.5 to 0.5")
    velocity: Velocity = Field(0.0, description="per step")
    acceleration: Acceleration = Field(_brownian(0.002), description="per step²")
    limits: tuple[Number | None, Number | None] = Field((-1.0, 1.0), description="the shear is reflected at these")
    speed_limit: Positive | None = Field(None, description="largest speed, per step")

    @model_validator(mode="after")
    def _consistent(self) -> Shear:
        low = -math.inf if self.limits[0] is None else self.limits[0]
        high = math.inf if self.limits[1] is None else self.limits[1]
        if high <= low:
            raise fault("allowed: [low, high] with low below high; null for none", "limits", given=self.limits)
        problems = _start_outside(self.start, ((low, high),), "inside the limits", ("start",))
        if problems:
            raise faults(problems)
        return self


def _start_outside(
    start: Any, ranges: Sequence[tuple[float, float]], where: str, path: tuple[str | int, ...]
) -> list[InitErrorDetails]:
    """What to say of a start that can lie outside the range of an axis; nothing if it cannot."""
    for axis, (low, high) in enumerate(ranges):
        if (number := outside(start, low, high, axis)) is not None:
            of_axis = f"{'xy'[axis]} = " if ranges[0] != ranges[-1] else ""
            message = f"{of_axis}{number:g} is not {where}; allowed: from {low:g} to {high:g}"
            return [detail(message, path, start)]
    return []


_RING_SCHEMA = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "minItems": 3,
}


class Polygon(Model):
    """Rings of [x, y] vertices in the unit frame, filled by the even-odd rule; concave and crossing rings allowed."""

    polygon: Annotated[
        tuple[tuple[tuple[float, float], ...], ...],
        BeforeValidator(lambda value: _rings(value)),
        WithJsonSchema({"anyOf": [_RING_SCHEMA, {"type": "array", "items": _RING_SCHEMA}]}),
    ]


def _rings(value: Any) -> tuple[tuple[tuple[float, float], ...], ...]:
    """One ring or several, as tuples; every fault named by its vertex."""
    allowed = "allowed: [[x, y], …] with three vertices or more, or several such rings"
    if not isinstance(value, list | tuple) or not value or not all(isinstance(part, list | tuple) for part in value):
        raise fault(allowed, given=value)
    several = all(isinstance(point, list | tuple) for part in value for point in part)
    rings = value if several else [value]
    if sum(len(ring) for ring in rings) > shapes.MOST_VERTICES:
        raise fault(f"has too many vertices; at most {shapes.MOST_VERTICES} are allowed", given=value)
    for k, ring in enumerate(rings):
        place = (k,) if several else ()
        if len(ring) < 3:
            raise fault(f"the ring has {len(ring)} vertices; {allowed}", *place, given=ring)
        for i, point in enumerate(ring):
            numbers = (
                isinstance(point, list | tuple) and len(point) == 2 and all(type(x) in (int, float) for x in point)
            )
            if not numbers or not all(abs(x) <= shapes.LARGEST_VERTEX for x in point):
                message = f"allowed: a vertex [x, y], each within ±{shapes.LARGEST_VERTEX:g}"
                raise fault(message, *place, i, given=point)
    result = tuple(tuple((float(x), float(y)) for x, y in ring) for ring in rings)
    if not any(shapes.encloses_area(np.array(ring)) for ring in result):
        raise fault("encloses no area; allowed: vertices that do not lie on one line", given=value)
    return result


class Svg(Model):
    """The `d` string of an SVG path, fitted into the unit box."""

    svg: Annotated[str, Field(strict=True, min_length=1, max_length=1_000_000)]


class Mask(Model):
    """A PNG or PGM picture, light inside and dark outside; the path is relative to the config's folder."""

    mask: Annotated[str, Field(strict=True, min_length=1)]


class Text(Model):
    """Characters in DejaVu Sans, fitted into the unit box."""

    text: Annotated[str, Field(strict=True, min_length=1, max_length=100)]


def _shape(value: Any, info: ValidationInfo) -> Any:
    """Outlines from files, paths and glyphs become polygons, so that a resolved config needs no file or font."""
    if isinstance(value, Polygon) or (isinstance(value, str) and value in shapes.BUILT_IN):
        return value
    kinds: dict[str, type[Model]] = {"polygon": Polygon, "svg": Svg, "mask": Mask, "text": Text}
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in kinds:
        names = ", ".join(shapes.BUILT_IN)
        words = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
        hint = did_you_mean(words, (*shapes.BUILT_IN, *kinds))
        allowed = f"{hint}allowed: {names}, {{polygon: …}}, {{svg: '…'}}, {{mask: file.png}}, {{text: '7'}}"
        raise fault(allowed, given=value)
    given = kinds[next(iter(value))].model_validate(value)
    try:
        match given:
            case Svg():
                rings = shapes.rings_of_svg(given.svg)
            case Mask():
                rings = shapes.rings_of_mask(Path((info.context or {}).get("directory", ".")) / given.mask)
            case Text():
                rings = shapes.rings_of_text(given.text)
            case _:
                return given
    except ValueError as error:
        kind = next(iter(value))
        raise fault(str(error), kind, given=value[kind]) from None
    return Polygon(polygon=tuple(tuple(map(tuple, ring.tolist())) for ring in rings))


Shape = Annotated[
    Literal["square", "circle", "triangle"] | Polygon | Svg | Mask | Text,
    Field(description="the outline"),
    BeforeValidator(_shape),
]


class Actor(Model):
    """A shape, its brightness and its motion. A transformation that is not named stays at rest."""

    shape: Shape
    intensity: Value = Field(1.0, description=f"brightness on a background of 0, from {DIMMEST:g} to {BRIGHTEST:g}")
    translation: Translation = Translation(acceleration=0.0)
    scale: Scale = Scale(acceleration=0.0)
    rotation: Rotation = Rotation(acceleration=0.0)
    shear: Shear = Shear(acceleration=0.0)

    @property
    def rings(self) -> str | tuple[tuple[tuple[float, float], ...], ...]:
        """The shape's name, or its rings: after validation a shape is one or the other."""
        return self.shape if isinstance(self.shape, str) else self.shape.polygon  # type: ignore[union-attr]

    @field_validator("intensity")
    @classmethod
    def _bright(cls, value: Value) -> Value:
        if (number := outside(value, DIMMEST, BRIGHTEST)) is not None:
            allowed = f"allowed: from {DIMMEST:g} to {BRIGHTEST:g}"
            raise fault(f"{number:g} is not an intensity; {allowed}", given=value)
        return value


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
    actors: Annotated[tuple[Actor, ...], Field(max_length=MOST_ACTORS, description="from the farthest to the nearest")]
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(
        {}, description="path of a field: list of its values; several paths make a grid"
    )

    _text: str | None = PrivateAttr(None)  # as the user wrote it
    _document: Document | None = PrivateAttr(None)  # where each field was written
    _directory: str = PrivateAttr(".")  # where masks are looked up
    _trusted: str | None = PrivateAttr(None)  # the folder to import functions from, if the user trusts the config

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
                problems += _start_outside(move.start, ranges, "inside the frame", (*path, "start"))
        if problems:
            raise faults(problems)
        return self

    @model_validator(mode="after")
    def _sweep_sound(self, info: ValidationInfo) -> Config:
        """Every value of every swept path gives a good config by itself, and so does every member of a grid."""
        self._directory = str((info.context or {}).get("directory", "."))
        members = math.prod(len(values) for values in self.sweep.values())
        if members > MOST_MEMBERS:
            raise fault(f"makes {members} members; at most {MOST_MEMBERS} are allowed", "sweep", given=self.sweep)
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
        here, words = ("sweep", path, position), path.split(".")
        if _holds_function(value):
            message = "a Python function cannot be swept; allowed: its name, {function: 'module:name'}"
            problems.append(detail(message, here, value))
            return value
        try:
            member = self.with_values({path: value})
        except ValidationError as error:
            for problem in details_of(error):
                field = problem["loc"]
                if [str(word) for word in field[: len(words)]] == words:
                    problem["loc"] = (*here, *field[len(words) :])
                else:
                    problem = detail(f"makes {dotted(field)} wrong: {problem['type']}", here, value)
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
        """The config with the fields at the given paths replaced and no sweep of its own; checked anew."""
        data: Any = {**{name: getattr(self, name) for name in Config.model_fields}, "sweep": {}}
        for path, value in values.items():
            data = replaced(data, path, value, NOT_SWEPT)
        result = Config.model_validate(data, context={"directory": self._directory})
        result._trusted, result._document = self._trusted, self._document
        return result

    def __hash__(self) -> int:
        return hash(self.digest)

    def error(self, path: str, message: str, value: Any) -> ConfigError:
        """What is wrong with the field at `path`, found only when a scene was drawn."""
        place = tuple(int(part) if part.isdecimal() else part for part in path.split("."))
        return ConfigError([(self._document or Document(None)).problem(place, message, shorten(value))])

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Config:
        result = super().model_copy(update=update, deep=deep)
        if update:  # what was worked out or written before no longer holds
            result.__dict__.pop("digest", None)
            result._text = None
        return result

    @property
    def text(self) -> str:
        """The YAML the config was read from, with overrides as comments; or one that gives the same config."""
        return self.resolved_yaml() if self._text is None else self._text

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

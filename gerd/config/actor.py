"""An actor as a config has it: shape, brightness and the four transformations, as frozen models.

Each field's unit, default and range stand here and nowhere else. Lengths are in pixels, angles in degrees, velocities
per step, accelerations per step².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator
from pydantic_core import InitErrorDetails

from gerd.config.base import Model, detail, did_you_mean, fault, faults
from gerd.config.values import (
    Acceleration,
    Factor,
    Normal,
    Number,
    PairAcceleration,
    PairChoice,
    PositionStart,
    PositionVelocity,
    Positive,
    SizeStart,
    SizeVelocity,
    Start,
    Value,
    Velocity,
    outside,
)
from gerd.geometry import shapes

DIMMEST, BRIGHTEST = -8.0, 8.0  # intensity
TRANSFORMATIONS = ("translation", "scale", "rotation", "shear")


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
            raise fault(f"a margin goes with border: bounce, not {self.border}", "margin", value=self.margin)
        return self


class Scale(Model):
    """The side of the shape's unit box in pixels; one number, or [x, y] for a box with two different sides.

    A negative side is a mirrored one. The default limits keep sizes positive; `limits: [null, null]` allows any, and
    `limits: [-20, 20]` turns a shape over and back like a card.
    """

    start: SizeStart = Field(20.0, description="size at step 0, pixels; uniform: 0.1 to 0.4 of the smaller frame side")
    velocity: SizeVelocity = Field(0.0, description="pixels per step, or {factor: number} per step")
    acceleration: PairAcceleration = Field(
        _brownian(0.05), description="pixels per step²; with a factor: of the size's natural logarithm per step²"
    )
    limits: tuple[Number | None, Number | None] = Field(
        (1.0, None), description="the size is reflected at these, pixels; null for none"
    )
    speed_limit: Positive | None = Field(
        None, description="largest speed, pixels per step; with a factor: of the size's logarithm per step"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Scale:
        limits = _range(self.limits)
        problems = start_outside(self.start, (limits, limits), "inside the limits", ("start",))
        pairs = isinstance(self.start, tuple | PairChoice) or isinstance(self.acceleration, tuple)
        if isinstance(self.velocity, Factor) and pairs:
            message = "a factor goes with one start and one acceleration for both sides, not a pair"
            problems.append(detail(message, ("velocity",), self.velocity))
        if isinstance(self.velocity, Factor) and limits[0] <= 0:
            problems.append(detail("a factor goes with limits above 0", ("limits",), self.limits))
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
        problems = start_outside(self.start, (_range(self.limits),), "inside the limits", ("start",))
        if problems:
            raise faults(problems)
        return self


def _range(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    """Limits as numbers, if they are in order."""
    low = -math.inf if limits[0] is None else limits[0]
    high = math.inf if limits[1] is None else limits[1]
    if high <= low:
        raise fault("allowed: [low, high] with low below high; null for none", "limits", value=limits)
    return low, high


def start_outside(
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
        raise fault(allowed, value=value)
    several = all(isinstance(point, list | tuple) for part in value for point in part)
    rings = value if several else [value]
    if sum(len(ring) for ring in rings) > shapes.MOST_VERTICES:
        raise fault(f"has too many vertices; at most {shapes.MOST_VERTICES} are allowed", value=value)
    for k, ring in enumerate(rings):
        place = (k,) if several else ()
        if len(ring) < 3:
            raise fault(f"the ring has {len(ring)} vertices; {allowed}", *place, value=ring)
        for i, point in enumerate(ring):
            numbers = (
                isinstance(point, list | tuple) and len(point) == 2 and all(type(x) in (int, float) for x in point)
            )
            if not numbers or not all(abs(x) <= shapes.LARGEST_VERTEX for x in point):
                message = f"allowed: a vertex [x, y], each within ±{shapes.LARGEST_VERTEX:g}"
                raise fault(message, *place, i, value=point)
    result = tuple(tuple((float(x), float(y)) for x, y in ring) for ring in rings)
    if not any(shapes.encloses_area(np.array(ring)) for ring in result):
        raise fault("encloses no area; allowed: vertices that do not lie on one line", value=value)
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
        raise fault(allowed, value=value)
    named = kinds[next(iter(value))].model_validate(value)
    try:
        match named:
            case Svg():
                rings = shapes.rings_of_svg(named.svg)
            case Mask():
                folder = info.context["origin"].directory if info.context else "."
                if folder is None:
                    raise ValueError("a resolved config names no files; allowed: the polygon of the picture")
                rings = shapes.rings_of_mask(Path(folder) / named.mask)
            case Text():
                rings = shapes.rings_of_text(named.text)
            case _:
                return named
    except ValueError as error:
        kind = next(iter(value))
        raise fault(str(error), kind, value=value[kind]) from None
    return Polygon(polygon=tuple(tuple(map(tuple, ring.tolist())) for ring in rings))


Shape = Annotated[
    Literal["square", "circle", "triangle"] | Polygon | Svg | Mask | Text,
    Field(description="the outline"),
    BeforeValidator(_shape),
]


class Actor(Model):
    """A shape, its brightness and its motion. A transformation that is not named stays at rest."""

    shape: Shape
    intensity: Value = Field(
        1.0, description=f"brightness on a background of 0, from {DIMMEST:g} to {BRIGHTEST:g}, in multiples of 1/1024"
    )
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
            raise fault(f"{number:g} is not an intensity; {allowed}", value=value)
        return value

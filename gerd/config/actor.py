"""An actor as a config has it: shape, brightness and the four transformations, as frozen models.

Each field's unit, default and range stand here and nowhere else. Lengths are in pixels, angles in degrees, velocities
per step, accelerations per step².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from gerd.bounds import BRIGHTEST, DIMMEST
from gerd.config.base import Model, invalid, problem, refuse
from gerd.config.document import PlainData
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
    Repeat,
    SizeStart,
    SizeVelocity,
    Start,
    Value,
    Velocity,
    outside,
    within,
    without_sign,
)
from gerd.errors import did_you_mean
from gerd.geometry import shapes
from gerd.reading import once, spend

MOST_SHAPES = 1000  # to choose from
KEPT_PATHS = 64  # SVG paths whose outlines are not worked out again
VERTEX_WORK = 4  # of a vertex that is checked, in units of `spend`
TRANSFORMATIONS = ("translation", "scale", "rotation", "shear")


class Translation(Model):
    """Where the shape's centre is, in pixels: x to the right and y down, from the frame's top left corner."""

    part = "translation"
    example = "{start: [20, 30], velocity: [1, 0], acceleration: 0}"
    start: PositionStart = Field("centre", description="position at step 0, pixels")
    velocity: PositionVelocity = Field(0.0, description="pixels per step")
    acceleration: PairAcceleration = Field(Normal(normal=(0.0, 0.1)), description="pixels per step²")
    border: Literal["bounce", "wrap", "free"] = Field(
        "bounce", description="at the frame's edge: reflect the centre, wrap around as on a torus, or leave"
    )
    margin: Number = Field(0.0, description="bounce this many pixels inside the frame's edge (negative: outside)")
    speed_limit: Positive | None = Field(None, description="largest speed, pixels per step")

    @model_validator(mode="after")
    def _margin_only_with_bounce(self) -> Translation:
        if self.margin and self.border != "bounce":
            raise invalid(f"a margin goes with border: bounce, not {self.border}", "margin", value=self.margin)
        return self


class Scale(Model):
    """The side of the shape's unit box in pixels; one number, or [x, y] for a box with two different sides.

    A negative side is a mirrored one. The default limits keep sizes positive; `limits: [null, null]` allows any, and
    `limits: [-20, 20]` turns a shape over and back like a card.
    """

    part = "scale"
    example = "{start: 20, acceleration: 0}"
    start: SizeStart = Field(20.0, description="size at step 0, pixels; uniform: 0.1 to 0.4 of the smaller frame side")
    velocity: SizeVelocity = Field(0.0, description="pixels per step, or {factor: number} per step")
    acceleration: PairAcceleration = Field(
        Normal(normal=(0.0, 0.05)),
        description="pixels per step²; with a factor: of the size's natural logarithm per step²",
    )
    limits: tuple[Number | None, Number | None] = Field(
        (1.0, None), description="smallest and largest size, pixels, at which it is reflected; null for none"
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
            problems.append(problem(message, ("velocity",), self.velocity))
        if isinstance(self.velocity, Factor) and limits[0] <= 0:
            problems.append(problem("a factor goes with limits above 0", ("limits",), self.limits))
        refuse(problems)
        return self


class Rotation(Model):
    """Degrees, clockwise on the screen (from x to y)."""

    part = "rotation"
    example = "{start: 30, acceleration: 0}"
    start: Start = Field(0.0, description="degrees; uniform: 0 to 360")
    velocity: Velocity = Field(0.0, description="degrees per step")
    acceleration: Acceleration = Field(Normal(normal=(0.0, 0.5)), description="degrees per step²")
    speed_limit: Positive | None = Field(None, description="largest speed, degrees per step")


class Shear(Model):
    """How far a point moves along x for each unit of y, before the rotation; a number without unit."""

    part = "shear"
    example = "{start: 0.2, acceleration: 0}"
    start: Start = Field(0.0, description="shear at step 0; uniform: -0.5 to 0.5")
    velocity: Velocity = Field(0.0, description="per step")
    acceleration: Acceleration = Field(Normal(normal=(0.0, 0.002)), description="per step²")
    limits: tuple[Number | None, Number | None] = Field(
        (-1.0, 1.0), description="smallest and largest shear, at which it is reflected"
    )
    speed_limit: Positive | None = Field(None, description="largest speed, per step")

    @model_validator(mode="after")
    def _consistent(self) -> Shear:
        refuse(start_outside(self.start, (_range(self.limits),), "inside the limits", ("start",)))
        return self


def _range(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    """Limits as numbers, if they are in order."""
    low = -math.inf if limits[0] is None else limits[0]
    high = math.inf if limits[1] is None else limits[1]
    if high <= low:
        raise invalid("allowed: [low, high] with low below high; null for none", "limits", value=limits)
    return low, high


def start_outside(
    start: object, ranges: Sequence[tuple[float, float]], where: str, path: tuple[str | int, ...]
) -> list[InitErrorDetails]:
    """What to say of a start that can lie outside the range of an axis; nothing if it cannot."""
    for axis, (low, high) in enumerate(ranges):
        if (number := outside(start, low, high, axis)) is not None:
            of_axis = f"{'xy'[axis]} = " if ranges[0] != ranges[-1] else ""
            message = f"{of_axis}{number:g} is not {where}; allowed: from {low:g} to {high:g}"
            return [problem(message, path, start)]
    return []


_RING_SCHEMA = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "minItems": 3,
}


def _printable(name: str) -> str:
    if not name.isprintable():  # it is shown on terminals
        raise invalid("allowed: a name of printable characters", value=name)
    return name


LONGEST_NAME = 100
Name = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=LONGEST_NAME, description="what the shape is called"),
    AfterValidator(_printable),
]


class Polygon(Model):
    """Rings of [x, y] vertices in the unit frame, filled by the even-odd rule; concave and crossing rings allowed."""

    polygon: Annotated[
        tuple[tuple[tuple[float, float], ...], ...],
        BeforeValidator(lambda value: _rings(value)),
        WithJsonSchema({"anyOf": [_RING_SCHEMA, {"type": "array", "items": _RING_SCHEMA}]}),
    ]
    name: Name | None = None


def _rings(value: object) -> tuple[tuple[tuple[float, float], ...], ...]:
    """One ring or several, as tuples; every problem named by its vertex."""
    allowed = "allowed: [[x, y], …] with three vertices or more, or several such rings"
    if not isinstance(value, list | tuple) or not value or not all(isinstance(part, list | tuple) for part in value):
        raise invalid(allowed, value=value)
    several = all(isinstance(point, list | tuple) for part in value for point in part)
    rings = value if several else [value]
    if sum(len(ring) for ring in rings) > shapes.MOST_VERTICES:
        raise invalid(f"has too many vertices; at most {shapes.MOST_VERTICES} are allowed", value=value)
    try:
        spend(VERTEX_WORK * sum(len(ring) for ring in rings))
    except ValueError as error:
        raise invalid(str(error), value=value) from None
    for k, ring in enumerate(rings):
        place = (k,) if several else ()
        if len(ring) < 3:
            raise invalid(f"the ring has {len(ring)} vertices; {allowed}", *place, value=ring)
        for i, point in enumerate(ring):
            is_pair = isinstance(point, list | tuple) and len(point) == 2
            if not is_pair or not all(type(x) in (int, float) and abs(x) <= shapes.LARGEST_VERTEX for x in point):
                message = f"allowed: a vertex [x, y], each within ±{shapes.LARGEST_VERTEX:g}"
                raise invalid(message, *place, i, value=point)
    result = tuple(tuple((without_sign(x), without_sign(y)) for x, y in ring) for ring in rings)
    if not any(shapes.encloses_area(np.array(ring)) for ring in result):
        raise invalid("encloses no area; allowed: vertices that do not lie on one line", value=value)
    return result


class Svg(Model):
    """The `d` string of an SVG path, or an SVG file: all that is filled in it. Fitted into the unit box."""

    svg: Annotated[str, Field(strict=True, min_length=1, max_length=1_000_000)]
    name: Name | None = None


class Mask(Model):
    """A PNG, JPEG or PGM picture, light inside and dark outside; the path is relative to the config's folder."""

    mask: Annotated[str, Field(strict=True, min_length=1)]
    alpha: bool = Field(False, strict=True, description="opaque pixels are inside, whatever their brightness")
    invert: bool = Field(False, strict=True, description="exchange inside and outside")
    name: Name | None = None


class Text(Model):
    """Characters in DejaVu Sans, fitted into the unit box."""

    text: Annotated[str, Field(strict=True, min_length=1, max_length=100)]
    name: Name | None = None


KINDS: dict[str, type[Polygon | Svg | Mask | Text]] = {"polygon": Polygon, "svg": Svg, "mask": Mask, "text": Text}


def _single_shape(value: PlainData, info: ValidationInfo) -> object:
    """Outlines from files, paths and glyphs become polygons, so that a resolved config needs no file or font."""
    if isinstance(value, Polygon) or (isinstance(value, str) and value in shapes.BUILT_IN):
        return value
    kinds = [kind for kind in KINDS if isinstance(value, dict) and kind in value]
    if len(kinds) != 1:
        raise invalid(_allowed(value), value=value)
    shape = KINDS[kinds[0]].model_validate(value)
    name: str | None = None
    try:
        match shape:
            case Svg() if is_svg_file(shape.svg):
                file = _file(shape.svg, info)
                name = _stem(shape.svg)
                outline = once(("svg", file), lambda: _polygon(shapes.rings_of_svg_file(file)))
            case Svg():
                outline = once(("path", shape.svg), lambda: _polygon_of_path(shape.svg))
            case Mask():
                file = _file(shape.mask, info)
                name = _stem(shape.mask)
                key = ("mask", file, shape.alpha, shape.invert)
                outline = once(key, lambda: _polygon(shapes.rings_of_mask(file, shape.alpha, shape.invert)))
            case Text():
                name = shape.text
                outline = once(("text", shape.text), lambda: _polygon(shapes.rings_of_text(shape.text)))
            case _:
                return shape
    except ValueError as error:
        raise invalid(str(error), kinds[0], value=value[kinds[0]]) from None
    return outline.model_copy(update={"name": shape.name or name or None})


def _polygon(rings: Sequence[shapes.Array]) -> Polygon:
    """What a resolved config has in place of a drawing, still without its name."""
    return Polygon(polygon=tuple(tuple(map(tuple, ring.tolist())) for ring in rings))


@lru_cache(KEPT_PATHS)
def _polygon_of_path(path: str) -> Polygon:
    """The polygon of the `d` string of an SVG path."""
    return _polygon(shapes.rings_of_svg(path))


def _allowed(value: object) -> str:
    """What to say of something that is no shape."""
    names = ", ".join(shapes.BUILT_IN)
    words = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
    hint = did_you_mean(words, (*shapes.BUILT_IN, *KINDS, "choice"))
    forms = "{polygon: …}, {svg: file.svg}, {mask: file.png}, {text: '7'}, {choice: [circle, square]}"
    return f"{hint}allowed: {names}, {forms}"


def _file(name: str, info: ValidationInfo) -> Path:
    """Where a file lies that a config names."""
    folder = info.context["origin"].directory if info.context else "."
    if folder is None:
        raise ValueError("a resolved config names no files; allowed: the polygon of the drawing")
    return Path(folder) / name


def _stem(file: str) -> str:
    """The name of a shape from a file."""
    return "".join(filter(str.isprintable, Path(file).stem))[:LONGEST_NAME]


def is_svg_file(svg: str) -> bool:
    """Whether what is written for `svg` is the name of a file and not a path's `d` string, which has no g."""
    return svg[-4:].lower() == ".svg"


def says_what_it_is(value: object) -> bool:
    """Whether a shape in plain data needs no file, and is best kept as it is written: a text, a path, a choice."""
    if not isinstance(value, dict):
        return False
    if isinstance(options := value.get("choice"), list | tuple):
        return all(part in shapes.BUILT_IN if isinstance(part, str) else says_what_it_is(part) for part in options)
    return "text" in value or ("svg" in value and not is_svg_file(value["svg"]))


BuiltIn = Literal["square", "circle", "triangle"]
SingleShape = Annotated[BuiltIn | Polygon | Svg | Mask | Text, BeforeValidator(_single_shape)]


class ShapeChoice(Model):
    """One of the listed shapes, all equally likely, drawn for each recording."""

    choice: Annotated[tuple[SingleShape, ...], Field(min_length=1, max_length=MOST_SHAPES)]

    @field_validator("choice")
    @classmethod
    def _few_vertices(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        vertices = sum(len(ring) for shape in value if isinstance(shape, Polygon) for ring in shape.polygon)
        if vertices > shapes.MOST_VERTICES:
            message = f"have {vertices} vertices together; at most {shapes.MOST_VERTICES} are allowed"
            raise invalid(message, value=f"{len(value)} shapes")
        return value


def _shape(value: object, info: ValidationInfo) -> object:
    if isinstance(value, ShapeChoice):
        return value
    if isinstance(value, dict) and "choice" in value:
        return ShapeChoice.model_validate(value, context=info.context)
    return _single_shape(value, info)


Shape = Annotated[
    BuiltIn | Polygon | Svg | Mask | Text | ShapeChoice,
    Field(description="the outline, or a choice of several, drawn for each recording"),
    BeforeValidator(_shape),
]


class Actor(Model):
    """A shape, its brightness and its motion. A transformation that is not named stays at rest."""

    part = "an actor"
    example = "{shape: square}"
    shape: Shape
    intensity: Annotated[Value, within(DIMMEST, BRIGHTEST, "an intensity")] = Field(
        1.0, description=f"brightness on a background of 0, from {DIMMEST:g} to {BRIGHTEST:g}, in multiples of 1/1024"
    )
    translation: Translation = Translation(acceleration=0.0)
    scale: Scale = Scale(acceleration=0.0)
    rotation: Rotation = Rotation(acceleration=0.0)
    shear: Shear = Shear(acceleration=0.0)
    repeat: Repeat = Field(
        1,
        description="how many such actors there are, each with its own draws; if the number is drawn, it may differ "
        "from recording to recording",
    )

    @property
    def shapes(self) -> tuple[str | Polygon, ...]:
        """The shapes that it can have: one, unless they are a choice. A built-in one is its name."""
        return self.shape.choice if isinstance(self.shape, ShapeChoice) else (self.shape,)  # type: ignore[return-value]

    @property
    def rings(self) -> tuple[str | tuple[tuple[tuple[float, float], ...], ...], ...]:
        """The name of each shape that is built in, and the rings of any other."""
        return tuple(shape if isinstance(shape, str) else shape.polygon for shape in self.shapes)

    @property
    def shape_names(self) -> tuple[str, ...]:
        """The names of the shapes; those without a name are numbered."""
        number = (f" {i}" for i in range(len(self.shapes))) if len(self.shapes) > 1 else iter([""])
        return tuple(
            shape if isinstance(shape, str) else shape.name or f"polygon{rest}"
            for shape, rest in zip(self.shapes, number, strict=True)
        )

    @property
    def most(self) -> int:
        """How many actors the entry can stand for."""
        return self.repeat if isinstance(self.repeat, int) else max(self.repeat.options)

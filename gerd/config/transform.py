"""Transformations of the whole scene, as a config writes them: a list of mappings in, frozen models out.

Each entry has one key that says what it does, and may have another that says about which point or from which step on.
Lengths are in pixels, angles in degrees, velocities per step. What the entries do is in `scene/transformation.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import AfterValidator, BeforeValidator, Field, Tag, ValidatorFunctionWrapHandler, field_validator

from gerd.config.base import Model, invalid, tag
from gerd.config.values import Number, TimeFactor, forms, our_spelling

Point = tuple[Number, Number]


def _not_zero(value: float) -> float:
    if value == 0:
        raise invalid("allowed: a factor other than 0", value=value)
    return value


_Factor = Annotated[Number, AfterValidator(_not_zero)]
_Factors = Annotated[
    Union[Annotated[_Factor, Tag(tag("number"))], Annotated[tuple[_Factor, _Factor], Tag(tag("pair"))]],
    forms("a number, [x, y]"),
]
_About = Annotated[
    Union[Annotated[Literal["centre"], Tag(tag("centre"))], Annotated[Point, Tag(tag("pair"))]],
    Field(description="the point that stays"),
    forms("centre, [x, y]"),
    BeforeValidator(our_spelling),
]


class Translate(Model):
    """Everything moved right and down by pixels; fractions count."""

    translate: Point


class Rotate(Model):
    """Everything turned by degrees, clockwise on the screen."""

    rotate: Number
    about: _About = "centre"


class ScaleScene(Model):
    """Everything so many times as large and as far away; a pair for x and y, negative to mirror."""

    scale: _Factors
    about: _About = "centre"


class ShearScene(Model):
    """Everything moved right by so many times its distance below the point that stays."""

    shear: Number
    about: _About = "centre"


class Mirror(Model):
    """Left and right exchanged (`x`), or top and bottom (`y`), or neither (`none`)."""

    mirror: Literal["x", "y", "none"]
    about: _About = "centre"


class Affine(Model):
    """Any affine map, as the first two rows of its matrix, with points measured from `about`."""

    affine: tuple[tuple[Number, Number, Number], tuple[Number, Number, Number]]
    about: _About = "centre"

    @field_validator("affine", mode="wrap")
    @classmethod
    def _can_be_taken_back(cls, value: object, handler: ValidatorFunctionWrapHandler) -> object:
        allowed = "allowed: [[a, b, x], [c, d, y]] with a·d - b·c other than 0"
        rows = value if isinstance(value, list | tuple) else ()
        if len(rows) != 2 or not all(isinstance(row, list | tuple) and len(row) == 3 for row in rows):
            raise invalid(allowed, value=value)
        (a, b, _), (c, d, _) = matrix = handler(value)
        if a * d == b * c:
            raise invalid(allowed, value=value)
        return matrix


class Boost(Model):
    """A Galilean boost: everything moves by so many pixels per step more; nothing has moved yet at step `epoch`."""

    boost: Point
    epoch: Number = Field(0.0, description="step")


class Accelerate(Model):
    """Everything is accelerated by so many pixels per step² more, from rest at step `epoch`."""

    accelerate: Point
    epoch: Number = Field(0.0, description="step")


class ScaleTime(Model):
    """All that comes before it in the list runs so many times as fast."""

    time_scale: TimeFactor


Transform = Annotated[
    Union[
        Annotated[Translate, Tag(tag("{translate}"))],
        Annotated[Rotate, Tag(tag("{rotate}"))],
        Annotated[ScaleScene, Tag(tag("{scale}"))],
        Annotated[ShearScene, Tag(tag("{shear}"))],
        Annotated[Mirror, Tag(tag("{mirror}"))],
        Annotated[Affine, Tag(tag("{affine}"))],
        Annotated[Boost, Tag(tag("{boost}"))],
        Annotated[Accelerate, Tag(tag("{accelerate}"))],
        Annotated[ScaleTime, Tag(tag("{time_scale}"))],
    ],
    forms(
        "{translate: [x, y]}, {rotate: degrees}, {scale: factor or [x, y]}, {shear: factor}, {mirror: x, y or none}, "
        "{affine: [[a, b, x], [c, d, y]]}, {boost: [x, y]}, {accelerate: [x, y]}, {time_scale: factor}"
    ),
]

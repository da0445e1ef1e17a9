"""The forms in which a config gives a number: plain, drawn from a distribution, or changing from step to step.

Data in, frozen models out; a form that is not understood gives one error that lists the forms allowed there.
The models dump to the text they were read from, so a resolved config is written in the config's own language.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gerd import expression

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e9, le=1e9)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e9)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]


def fault(message: str, path: str = "", **context: Any) -> PydanticCustomError:
    """A validation error at `path` below the model that raises it."""
    return PydanticCustomError("fault", "{message}", {"message": message, "path": path, **context})


class Model(BaseModel):
    """Frozen; an unknown key is refused, with a suggestion."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        for key in data if isinstance(data, Mapping) else ():
            if key not in cls.model_fields:
                close = difflib.get_close_matches(str(key), cls.model_fields, 1)
                hint = f"did you mean {close[0]}? " if close else ""
                raise fault(f"unknown key; {hint}allowed: {', '.join(cls.model_fields)}", str(key))
        return data


class Uniform(Model):
    """Any number from low up to high, all equally likely."""

    uniform: Annotated[tuple[Number, Number], Field(description="low, high")]

    @field_validator("uniform")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise fault("allowed: [low, high] with low not above high")
        return value


class Normal(Model):
    """A Gaussian number."""

    normal: Annotated[tuple[Number, Annotated[Number, Field(ge=0)]], Field(description="mean, standard deviation")]


class Choice(Model):
    """One of the listed numbers, all equally likely."""

    choice: Annotated[tuple[Number, ...], Field(min_length=1, max_length=10_000)]


class PairChoice(Model):
    """One of the listed pairs, all equally likely."""

    choice: Annotated[tuple[tuple[Number, Number], ...], Field(min_length=1, max_length=10_000)]


def _form(value: Any) -> str | None:
    """Which of the forms below a value is written in; the tag of the unions."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return {"uniform": "natural", "centre": "centre"}.get(value)
    if isinstance(value, list | tuple):
        return "pair"
    keys = list(
        type(value).model_fields if isinstance(value, BaseModel) else value if isinstance(value, Mapping) else ()
    )
    if keys == ["choice"]:
        options = getattr(value, "choice", None) if isinstance(value, BaseModel) else value["choice"]
        if isinstance(options, list | tuple) and options and isinstance(options[0], list | tuple):
            return "pairs"
    return next((key for key in keys if key in FORM_KEYS), None)


FORM_KEYS = ("uniform", "normal", "choice", "boundary", "factor", "profile", "expression", "function")
_DRAWN = "a number, {uniform: [low, high]}, {normal: [mean, sd]}, {choice: [a, b, …]}"
_STEPPED = f"{_DRAWN} drawn anew each step, {{profile: …}}, {{expression: '…'}}, {{function: 'module:name'}}"


def _forms(allowed: str) -> Discriminator:
    return Discriminator(_form, custom_error_type="form", custom_error_message=f"allowed: {allowed}")


_Number = Annotated[Number, Tag("number")]
_Uniform = Annotated[Uniform, Tag("uniform")]
_Normal = Annotated[Normal, Tag("normal")]
_Choice = Annotated[Choice, Tag("choice")]
_Pairs = Annotated[PairChoice, Tag("pairs")]

Value = Annotated[Union[_Number, _Uniform, _Normal, _Choice], _forms(_DRAWN)]
_ValuePair = Annotated[tuple[Value, Value], Tag("pair")]


class Boundary(Model):
    """A velocity given by its effect: the mean distance the outline moves along its normal at t = 0, in pixels."""

    boundary: Value


class Factor(Model):
    """Multiplicative growth: the size is multiplied by this number in each step; 0.9 shrinks by 10 %."""

    factor: Value

    @field_validator("factor")
    @classmethod
    def _positive(cls, value: Value) -> Value:
        return within(value, 1e-6, 1e6, "a factor")


def within(value: Any, low: float, high: float, what: str) -> Any:
    """`value`, if every number it can give (a Gaussian's mean) lies in [low, high]."""
    match value:
        case Uniform():
            numbers: tuple[float, ...] = value.uniform
        case Normal():
            numbers = value.normal[:1]
        case Choice():
            numbers = value.choice
        case int() | float():
            numbers = (value,)
        case _:
            numbers = ()
    for number in numbers:
        if not low <= number <= high:
            raise fault(f"{number:g} is not {what}; allowed: from {low:g} to {high:g}")
    return value


class Profile(Model):
    """A named acceleration: a sine, a square wave, or one pulse."""

    profile: Literal["sine", "square", "pulse"]
    amplitude: Number
    period: Positive = 20.0  # steps; of the sine and the square wave
    phase: Number = 0.0  # degrees; of the sine and the square wave
    at: Number = 0.0  # step at which the pulse starts
    duration: Positive = 1.0  # steps; of the pulse


class Expression(Model):
    """An acceleration as arithmetic in t (steps): its value at t = k holds from k to k + 1."""

    expression: Annotated[str, Field(strict=True)]

    @field_validator("expression")
    @classmethod
    def _sound(cls, value: str) -> str:
        try:
            expression.check(value)
        except ValueError as error:
            raise fault(str(error)) from None
        return value


class Function(Model):
    """An acceleration as a Python function of t; named in text, it is imported only where the user trusts it."""

    function: Annotated[str, Field(strict=True, pattern=r"^[\w.<>]+:[\w.<>]+$", description="module:name")]
    _callable: Callable[[float], float] | None = PrivateAttr(None)

    @classmethod
    def of(cls, function: Callable[[float], float]) -> Function:
        result = cls(function=f"{function.__module__}:{getattr(function, '__qualname__', 'function')}")
        result._callable = function
        return result


def _wrap_callable(value: Any) -> Any:
    return Function.of(value) if callable(value) and not isinstance(value, BaseModel) else value


_Profile = Annotated[Profile, Tag("profile")]
_Expression = Annotated[Expression, Tag("expression")]
_Function = Annotated[Function, Tag("function")]

_Natural = Annotated[Literal["uniform"], Tag("natural")]
_Centre = Annotated[Literal["centre"], Tag("centre")]
_Boundary = Annotated[Boundary, Tag("boundary")]
_Factor = Annotated[Factor, Tag("factor")]

Start = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Natural],
    _forms(f"uniform (the natural range), {_DRAWN}"),
]
PositionStart = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Pairs, _Natural, _Centre, _ValuePair],
    _forms(f"centre, uniform (any place where the shape lies inside the frame), [x, y], {_DRAWN}"),
]
SizeStart = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Pairs, _Natural, _ValuePair],
    _forms(f"uniform (the natural range), [x, y], {_DRAWN}"),
]
Velocity = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Boundary],
    _forms(f"{_DRAWN}, {{boundary: pixels}}"),
]
PositionVelocity = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Pairs, _ValuePair],
    _forms(f"[x, y], {_DRAWN}"),
]
SizeVelocity = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Pairs, _ValuePair, _Boundary, _Factor],
    _forms(f"[x, y], {_DRAWN}, {{boundary: pixels}}, {{factor: number}}"),
]
Acceleration = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Profile, _Expression, _Function],
    _forms(_STEPPED),
    BeforeValidator(_wrap_callable),
]
_AccelerationPair = Annotated[tuple[Acceleration, Acceleration], Tag("pair")]
PairAcceleration = Annotated[
    Union[_Number, _Uniform, _Normal, _Choice, _Profile, _Expression, _Function, _AccelerationPair],
    _forms(f"[x, y], {_STEPPED}"),
    BeforeValidator(_wrap_callable),
]

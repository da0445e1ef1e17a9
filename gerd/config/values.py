"""The forms in which a config gives a number: plain, drawn from a distribution, or changing from step to step.

Data in, frozen models out; a form that is not understood gives one error that lists the forms allowed there.
The models dump to the text they were read from, so a resolved config is written in the config's own language.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, PrivateAttr, Tag, field_validator

from gerd.bounds import GROWTH, MOST_ACTORS
from gerd.config import expression
from gerd.config.base import TAGS, Model, invalid, tag


def without_sign(value: float) -> float:
    """The number, with -0.0 as 0.0: a zero has no sign."""
    return value + 0.0


LARGEST_NUMBER = 1e9  # of the numbers in a config, and of what its functions give
ZeroWithoutSign = AfterValidator(without_sign)
Number = Annotated[
    float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER), ZeroWithoutSign
]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=LARGEST_NUMBER), ZeroWithoutSign]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e9)]
TimeFactor = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1000)]
Period = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e9)]  # as many turns as sincos can tell
Probability = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1), ZeroWithoutSign]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_ACTORS)]


def _in_order(value: tuple[float, float]) -> tuple[float, float]:
    if value[0] > value[1]:
        raise invalid("allowed: [low, high] with low not above high", value=value)
    return value


class Uniform(Model):
    """Any number from low up to high, all equally likely."""

    uniform: Annotated[tuple[Number, Number], Field(description="low, high"), AfterValidator(_in_order)]


class Normal(Model):
    """A Gaussian number."""

    normal: Annotated[tuple[Number, NotNegative], Field(description="mean, standard deviation")]


class Choice(Model):
    """One of the listed numbers, all equally likely."""

    choice: Annotated[tuple[Number, ...], Field(min_length=1, max_length=10_000)]


class PairChoice(Model):
    """One of the listed pairs, all equally likely."""

    choice: Annotated[tuple[tuple[Number, Number], ...], Field(min_length=1, max_length=10_000)]


class WholeUniform(Model):
    """Any whole number from low to high, both included, all equally likely."""

    uniform: Annotated[tuple[Count, Count], Field(description="low, high"), AfterValidator(_in_order)]

    @property
    def options(self) -> tuple[int, ...]:
        return tuple(range(self.uniform[0], self.uniform[1] + 1))


class WholeChoice(Model):
    """One of the listed whole numbers, all equally likely."""

    choice: Annotated[tuple[Count, ...], Field(min_length=1, max_length=10_000)]

    @property
    def options(self) -> tuple[int, ...]:
        return self.choice


WORDS = ("uniform", "centre", "usual", "stationary", "linear", "each")
OTHER_SPELLINGS = {"center": "centre"}


def our_spelling(value: object) -> object:
    """A word as we write it."""
    return OTHER_SPELLINGS.get(value, value) if isinstance(value, str) else value


POLARITIES = {"on", "off", "spread"}  # fields of a value that has a number for each polarity


def _form(value: object) -> str | None:
    """Which form a value is written in; the tag of the unions here and in `transform.py`."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return tag("number")
    if isinstance(value, str):
        return tag(value) if value in WORDS else None
    if isinstance(value, list | tuple):
        return tag("pair")
    fields = dict(value) if isinstance(value, BaseModel | Mapping) else {}
    options = fields.get("choice")
    if len(fields) == 1 and isinstance(options, list | tuple) and options and isinstance(options[0], list | tuple):
        return tag("{choice of pairs}")
    if fields.keys() & POLARITIES:
        return tag("{on}")
    return next((TAGS[f"{{{key}}}"] for key in fields if f"{{{key}}}" in TAGS), None)


_DRAWN = "a number, {uniform: [low, high]}, {normal: [mean, sd]}, {choice: [a, b, …]}"
_STEPPED = f"{_DRAWN} drawn anew each step, {{profile: …}}, {{expression: '…'}}, {{function: 'module:name'}}"


def forms(allowed: str) -> Discriminator:
    return Discriminator(_form, custom_error_type="form", custom_error_message=f"allowed: {allowed}")


_Number = Annotated[Number, Tag(tag("number"))]
_Uniform = Annotated[Uniform, Tag(tag("{uniform}"))]
_Normal = Annotated[Normal, Tag(tag("{normal}"))]
_Choice = Annotated[Choice, Tag(tag("{choice}"))]
_Pairs = Annotated[PairChoice, Tag(tag("{choice of pairs}"))]

Repeat = Annotated[
    Union[
        Annotated[Count, Tag(tag("number"))],
        Annotated[WholeUniform, Tag(tag("{uniform}"))],
        Annotated[WholeChoice, Tag(tag("{choice}"))],
    ],
    forms(f"a whole number from 0 to {MOST_ACTORS}, {{uniform: [low, high]}}, {{choice: [a, b, …]}}"),
]

_Drawn = Union[_Number, _Uniform, _Normal, _Choice]
Value = Annotated[_Drawn, forms(_DRAWN)]
_ValuePair = Annotated[tuple[Value, Value], Tag(tag("pair"))]


def within(low: float, high: float, what: str) -> AfterValidator:
    """Refuses a value that can be a number outside of [low, high], which is not `what`."""

    def checked(value: object) -> object:
        if (number := outside(value, low, high)) is not None:
            raise invalid(f"{number:g} is not {what}; allowed: from {low:g} to {high:g}", value=value)
        return value

    return AfterValidator(checked)


class Boundary(Model):
    """A velocity given by its effect: the mean distance the outline moves along its normal at t = 0, in pixels."""

    boundary: Value


class Factor(Model):
    """Multiplicative growth: the size is multiplied by this number in each step; 0.9 shrinks by 10 %."""

    factor: Annotated[Value, within(*GROWTH, "a factor")]


class TimeScale(Model):
    """The same motion, `factor` times as fast, and what stays: the number of steps, or the path.

    With `keep: path` every factor shows the same part of the path: the time from the first step to the last, and in
    step timing the warm-up, are divided by the factor, rounded up to whole steps, and the noises per step are
    multiplied by it.
    `keep: steps` is what a plain number means.
    """

    factor: TimeFactor
    keep: Literal["steps", "path"] = "steps"

    def intervals(self, count: int) -> int:
        """How many steps of time are left of `count`, rounded up unless the quotient is rounding itself."""
        return math.ceil(count / self.factor * (1 - 1e-12))


def numbers(value: object, axis: int = 0) -> tuple[float, ...]:
    """The numbers that a value can take on one axis: the ends of a range, the mean of a Gaussian."""
    match value:
        case Uniform():
            return value.uniform
        case Normal():
            return value.normal[:1]
        case Choice():
            return value.choice
        case PairChoice():
            return tuple(pair[axis] for pair in value.choice)
        case tuple():
            return numbers(value[axis])
        case int() | float():
            return (float(value),)
    return ()


def outside(value: object, low: float, high: float, axis: int = 0) -> float | None:
    """The first number that a value can take on one axis and that is not in [low, high], if there is one."""
    return next((number for number in numbers(value, axis) if not low <= number <= high), None)


class Profile(Model):
    """A named acceleration: a sine, a square wave, or one pulse."""

    profile: Literal["sine", "square", "pulse"]
    amplitude: Number
    period: Period = 20.0  # steps; of the sine and the square wave
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
            raise invalid(str(error), value=value) from None
        return value


def _named(value: str) -> str:
    if not re.fullmatch(r"[\w.]+:[\w.<>]+", value):
        allowed = "'module:name', such as 'wobble:push' for the function push of wobble.py"
        raise invalid(f"allowed: {allowed}", value=value)
    return value


FunctionName = Annotated[str, Field(strict=True, description="module:name"), AfterValidator(_named)]


UserFunction = Callable[[float], Any]  # what it gives is checked where it is called


class Function(Model):
    """An acceleration as a Python function of t; named in text, it is imported only where the user trusts it."""

    function: FunctionName
    _callable: UserFunction | None = PrivateAttr(None)
    _handed_over: int = PrivateAttr(0)  # when the callable was: the same one may give other values the next time
    _sampled: bool = PrivateAttr(False)  # whether `functions` of the config has the values of the callable

    @classmethod
    def of(cls, function: UserFunction) -> Function:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__  # numpy 1's own have none
        result = cls(function=f"{module}:{name}")
        result._callable = function
        result._handed_over = next(_TIMES)
        return result


_TIMES = itertools.count(1)


def _wrap_callable(value: object) -> object:
    return Function.of(value) if callable(value) and not isinstance(value, BaseModel) else value


_Profile = Annotated[Profile, Tag(tag("{profile}"))]
_Expression = Annotated[Expression, Tag(tag("{expression}"))]
_Function = Annotated[Function, Tag(tag("{function}"))]

_Natural = Annotated[Literal["uniform"], Tag(tag("uniform"))]
_Centre = Annotated[Literal["centre"], Tag(tag("centre"))]
_Boundary = Annotated[Boundary, Tag(tag("{boundary}"))]
_Factor = Annotated[Factor, Tag(tag("{factor}"))]

Start = Annotated[Union[_Drawn, _Natural], forms(f"uniform (the natural range), {_DRAWN}")]
PositionStart = Annotated[
    Union[_Drawn, _Pairs, _Natural, _Centre, _ValuePair],
    forms(f"centre, uniform (any place where the shape lies inside the frame), [x, y], {_DRAWN}"),
    BeforeValidator(our_spelling),
]
SizeStart = Annotated[
    Union[_Drawn, _Pairs, _Natural, _ValuePair],
    forms(f"uniform (the natural range), [x, y], {_DRAWN}"),
]
Initial = Annotated[
    Union[
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1, le=1), ZeroWithoutSign, Tag(tag("number"))],
        Annotated[Literal["usual"], Tag(tag("usual"))],
        _Natural,
        Annotated[Literal["stationary"], Tag(tag("stationary"))],
    ],
    forms("usual, uniform, stationary, or a number from -1 to 1"),
]
Speed = Annotated[
    Union[Annotated[TimeFactor, Tag(tag("number"))], Annotated[TimeScale, Tag(tag("{factor}"))]],
    forms("a number above 0 up to 1000, {factor: number, keep: steps or path}"),
]
Velocity = Annotated[Union[_Drawn, _Boundary], forms(f"{_DRAWN}, {{boundary: pixels}}")]
PositionVelocity = Annotated[Union[_Drawn, _Pairs, _ValuePair], forms(f"[x, y], {_DRAWN}")]
SizeVelocity = Annotated[
    Union[_Drawn, _Pairs, _ValuePair, _Boundary, _Factor],
    forms(f"[x, y], {_DRAWN}, {{boundary: pixels}}, {{factor: number}}"),
]
_Stepped = Union[_Drawn, _Profile, _Expression, _Function]
Acceleration = Annotated[_Stepped, forms(_STEPPED), BeforeValidator(_wrap_callable)]
_AccelerationPair = Annotated[tuple[Acceleration, Acceleration], Tag(tag("pair"))]
PairAcceleration = Annotated[
    Union[_Stepped, _AccelerationPair],
    forms(f"[x, y], {_STEPPED}"),
    BeforeValidator(_wrap_callable),
]

"""What the paper leaves open, as the study takes it; and words such as `size_velocity=1` that take it otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from gerd.errors import GerdError, did_you_mean

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the channels' time constants to the middle one


@dataclass(frozen=True)
class Choices:
    """One reading of the paper. The sizes of the study (frame, epochs, batches, layers) are not among it."""

    velocity: Annotated[float, Field(gt=0, le=8)] = (
        1.0  # of the translation: pixels per step along each axis, either way
    )
    size_velocity: Annotated[float, Field(ge=0, le=8)] = 0.25  # of the side: pixels per step, either way
    smallest: Annotated[float, Field(gt=0, le=1)] = 0.1  # side, as a share of the frame's
    largest: Annotated[float, Field(gt=0, le=1)] = 0.4
    kept: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of the events
    background: Annotated[float, Field(ge=0, le=1)] = 0.001  # probability of a noise event, per pixel and step
    middle: Annotated[float, Field(gt=0)] = 5.0  # time constant of the middle channel and of the baseline, in steps
    time_constants: Literal["fixed", "learnt"] = "fixed"

    def __post_init__(self) -> None:
        if self.smallest > self.largest:
            raise GerdError(f"--set smallest={self.smallest:g}: allowed: at most largest, which is {self.largest:g}")

    @property
    def mus(self) -> tuple[float, ...]:
        """The time constants of the five channels."""
        return tuple(self.middle * ratio for ratio in RATIOS)


def chosen(words: Sequence[str]) -> Choices:
    """The choices with some replaced, each by a word NAME=VALUE."""
    values: dict[str, str] = {}
    names = [field.name for field in fields(Choices)]
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise GerdError(f"--set {word}: allowed: NAME=VALUE, such as size_velocity=1")
        if name not in names:
            raise GerdError(f"--set {word}: {did_you_mean([name], names)}allowed: {', '.join(names)}")
        values[name] = value
    try:
        return TypeAdapter(Choices).validate_strings(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise GerdError(f"--set {name}={values[name]}: {first['msg']}") from None

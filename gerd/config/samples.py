"""What a config has of its Python functions: their values as text, or of too many values a sha256; frozen models."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Union

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, Tag, field_validator

from gerd.config.base import Model, invalid, tag
from gerd.config.values import LARGEST_NUMBER, forms

Array = NDArray[np.float64]

MOST_HELD = 100_000  # numbers that all functions of a config give together
LONGEST_NUMBER = 25  # characters, with the blank before it
MOST_LOOKED_AT = 10_000_000  # values of a longer function that its sha256 is made of: some seconds of calls
KEPT_TEXTS = 16  # of values that are not read again: at most some megabytes each

_Time = Annotated[int, Field(strict=True, ge=-(10**12), le=10**12, description="t of the first value")]
_NUMBER = r"-?[0-9]{1,20}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,3})?"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*|{_NUMBER},{_NUMBER}(?: {_NUMBER},{_NUMBER})*")


class Sampled(Model):
    """What a Python function gives at t = `first` and at every whole t after it; these values stand for the function.

    They are one text, because YAML is slow to read long lists, and JSON with a number in each line is long to look at.
    """

    first: _Time
    values: Annotated[
        str,
        Field(
            strict=True,
            max_length=MOST_HELD * LONGEST_NUMBER,
            description="numbers, or pairs x,y, with blanks between them",
        ),
    ]

    @field_validator("values")
    @classmethod
    def _are_numbers(cls, value: str) -> str:
        value = " ".join(value.split())
        if not _NUMBERS.fullmatch(value):
            raise invalid("allowed: numbers such as '0 0.5 -1e-3', or pairs such as '0,1 0.5,1'", value=value)
        if not (np.abs(_numbers_in(value)) <= LARGEST_NUMBER).all():
            raise invalid(f"allowed: numbers within ±{LARGEST_NUMBER:g}", value=value)
        return value

    @classmethod
    def of(cls, first: int, numbers: Array) -> Sampled:
        """From numbers (times,) or pairs (times, 2), each written in the fewest digits that give it again."""
        rows = numbers.reshape(len(numbers), -1).tolist()
        return cls(first=first, values=" ".join(",".join(repr(x).removesuffix(".0") for x in row) for row in rows))

    @property
    def numbers(self) -> Array:
        """(times,) or (times, 2): the values."""
        return _numbers_in(self.values)

    @property
    def times(self) -> range:
        return range(self.first, self.first + len(self.numbers))

    def within(self, times: range) -> Sampled:
        """The values at some of its times."""
        begin = times.start - self.first
        return self if times == self.times else Sampled.of(times.start, self.numbers[begin : begin + len(times)])


class Fingerprint(Model):
    """For a Python function with too many values to keep: at which times it was called, and the sha256 of the values.

    The values are float64, little-endian, and of pairs x comes first. Simulating such a config takes the function.
    """

    first: _Time
    count: Annotated[int, Field(strict=True, ge=1, le=MOST_LOOKED_AT, description="number of times")]
    sha256: Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$", description="of the values")]

    @property
    def times(self) -> range:
        return range(self.first, self.first + self.count)


@lru_cache(maxsize=KEPT_TEXTS)
def _numbers_in(text: str) -> Array:
    rows = text.split(" ")
    if "," not in rows[0]:
        return np.array([float(row) for row in rows]) + 0.0  # a zero has no sign
    return np.array([[float(part) for part in row.split(",")] for row in rows]) + 0.0


FunctionValues = Annotated[
    Union[Annotated[Sampled, Tag(tag("{values}"))], Annotated[Fingerprint, Tag(tag("{sha256}"))]],
    forms("{first: 0, values: '0 0.5 1'}, {first: 0, count: 200000, sha256: '…'}"),
]

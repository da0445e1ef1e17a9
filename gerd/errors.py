"""The errors a user can cause. Each message says what was wrong, where, and what was allowed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import SupportsFloat, SupportsIndex

MOST_WORDS = 10  # of one place that are compared with what is allowed there
LONGEST_WORD = 40  # characters of such a word
ALIKE = 0.67  # from 0 to 1: how like a word has to be what it is taken for; below, suggestions mislead
CALLED_ELSEWHERE = {  # words of other programs, and ours
    "position": "translation",
    "location": "translation",
    "size": "scale",
    "angle": "rotation",
    "orientation": "rotation",
    "brightness": "intensity",
    "color": "intensity",
    "colour": "intensity",
    "resolution": "sensor",
    "speed": "velocity",
    "length": "steps",
    "duration": "steps",
    "rotate": "rotation",
    "translate": "translation",
}


class GerdError(Exception):
    """A mistake in the input, and not in the program; commands print it without a traceback."""

    exit_code = 1


class TrustError(GerdError):
    """A config names Python code that it has not been allowed to run."""

    exit_code = 2


class StorageError(GerdError):
    """A dataset on disk is missing, damaged, or not the one that was asked for."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a config."""

    source: str  # the file, or another name for where the text came from
    message: str  # what was expected
    line: int | None = None
    path: str = ""  # such as actors.0.scale.start; empty for the whole document
    value: str | None = None  # the offending value, shortened

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        parts = [place, self.path, "" if self.value is None else f"got {self.value}", self.message]
        return ": ".join(part for part in parts if part)


class ConfigError(GerdError):
    """A config cannot be used; the message lists every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # so that it survives the way out of a worker process


def check_whole(name: str, value: object, least: int | None = None, most: int | None = None) -> None:
    """An error unless `value`, which is called `name`, is a whole number from `least` to `most`."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if (least is None or number >= least) and (most is None or number <= most):
            return
    bounds = "" if least is None else f", {least} or more" if most is None else f" from {least} to {most}"
    raise GerdError(f"{name} {shorten(value)}: allowed: a whole number{bounds}")


def check_number(name: str, value: object) -> None:
    """An error unless `value`, which is called `name`, is a finite number."""
    if isinstance(value, SupportsFloat | SupportsIndex) and not isinstance(value, str | bytes | bool):
        try:
            if math.isfinite(float(value)):
                return
        except (TypeError, ValueError, OverflowError):
            pass
    raise GerdError(f"{name} {shorten(value)}: allowed: a finite number")


def did_you_mean(words: Iterable[object], names: Iterable[str]) -> str:
    """A suggestion to put into a message, or nothing."""
    known = list(names)
    unknown = [str(word) for word in islice(words, MOST_WORDS) if word not in known and len(str(word)) <= LONGEST_WORD]
    for word in unknown:
        for meant in (CALLED_ELSEWHERE.get(word), word.partition(".")[0]):
            if meant in known:
                return f"did you mean {meant}? "
        if close := difflib.get_close_matches(word, known, 1, ALIKE):
            return f"did you mean {close[0]}? "
    return ""


def counted(number: int, word: str, several: str | None = None) -> str:
    """A number of things: 1 seed, 2 seeds; 1 index, 2 indices."""
    return f"{number} {word if number == 1 else several or word + 's'}"


def shorten(value: object, limit: int = 60) -> str:
    """`value` as text for a message, cut so that a huge value does not fill the screen."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"

"""What the reading of one config may cost, whatever stands in it: seconds, and memory that a machine has.

Whoever reads a config does so within `reading()`. What takes time says so before it is done: `spend(work)` is a
`ValueError` once all of it together is more than is allowed. Work is counted in units of about a microsecond and is a
function of what was written, so that a config is read on every machine or on none. Outside of a reading nothing is
counted. What was made of a file is kept until the reading ends (`once`), so that a file that is named a thousand times
is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

MOST_WORK = 10_000_000
TOO_MUCH = (
    "takes too long to read; allowed, all in all, are about 25000 members of a sweep, 10 MB of SVG paths, or pictures "
    "of 50 million pixels"
)


@dataclass
class _Reading:
    """How far one reading has got."""

    left: int
    made: dict[Hashable, Any] = field(default_factory=dict)  # of each key what was made, or the ValueError


_READING: ContextVar[_Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(work: int = MOST_WORK) -> Iterator[None]:
    """What is read inside is one config, which may cost so much; a reading within another is part of it."""
    if _READING.get() is not None:
        yield
        return
    token = _READING.set(_Reading(work))
    try:
        yield
    finally:
        _READING.reset(token)


def spend(work: int) -> None:
    """`work` is about to be done; ValueError if that is more than a config may cost."""
    current = _READING.get()
    if current is None:
        return
    if work > current.left:
        raise ValueError(TOO_MUCH)
    current.left -= work


def once(key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, which may be a ValueError; made once in a reading for each key."""
    current = _READING.get()
    made = {} if current is None else current.made
    if key not in made:
        made[key] = _tried(make)
    if isinstance(made[key], ValueError):
        raise made[key]
    return made[key]


def _tried(make: Callable[[], T]) -> T | ValueError:
    try:
        return make()
    except ValueError as error:
        return error

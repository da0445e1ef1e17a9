"""Whether the members of a sweep are sound: a config with a sweep in, its values as their fields hold them out.

Every value of every swept path has to give a good config by itself, and so does every member of a grid. What that costs
is worked out before it is done.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from gerd.config.actor import says_what_it_is
from gerd.config.base import at, checked_with, invalid, plain, problem, problems_of, refuse, replaced, size_of
from gerd.config.document import PlainData, dotted
from gerd.config.values import TimeScale
from gerd.errors import counted, shorten
from gerd.reading import spend

if TYPE_CHECKING:
    from gerd.config.config import Config

NOT_SWEPT = ("seed", "sweep", "functions")  # members share their randomness
MEMBER_WORK = 300  # of a config that is checked once more, in units of `spend`
VALUE_WORK = 2  # of each value in it that is checked again


def checked_sweep(config: Config, members: int) -> dict[str, tuple[PlainData, ...]]:
    """The sweep of a config of so many members, in plain data: a mask as a polygon, 2 for 2.0."""
    _pay_for(config, members)
    problems: list[InitErrorDetails] = []
    sweep: dict[str, tuple[PlainData, ...]] = {}
    held: dict[str, list[object]] = {}  # the same values as the fields hold them, which need not be checked again
    for path, values in config.sweep.items():
        try:
            replaced(config, path, None, NOT_SWEPT)
        except ValidationError as error:
            problems.append(problem(error.errors()[0]["msg"], ("sweep", path), values))
            continue
        above = next((other for other in config.sweep if path.startswith(f"{other}.")), None)
        if above is not None:
            problems.append(problem(f"is part of {above}, which is swept, too", ("sweep", path), values))
        pairs = [_checked(config, path, i, value, problems) for i, value in enumerate(values)]
        sweep[path] = tuple(kept for kept, _ in pairs)
        problems += _equal(path, sweep[path])
        held[path] = [value for _, value in pairs]
    if not problems and len(sweep) > 1:
        problems = _unsound_member(config, sweep, held)
    refuse(problems)
    return sweep


def _pay_for(config: Config, members: int) -> None:
    """An error if it takes too long to check every value of the sweep, and every member of a grid."""
    swept = config.sweep
    configs = 2 if isinstance(config.time_scale, TimeScale) else 1
    each = configs * (MEMBER_WORK + VALUE_WORK * sum(checked_with(config, path, NOT_SWEPT) for path in swept))
    number = sum(map(len, swept.values()))
    if len(swept) > 1:
        number += members
    values = sum(size_of(value) for of_path in swept.values() for value in of_path)
    try:
        spend(number * each + VALUE_WORK * values)
    except ValueError as error:
        raise invalid(f"makes {counted(members, 'member')}, which {error}", "sweep", value=swept) from None


def _checked(
    config: Config, path: str, number: int, value: PlainData, problems: list[InitErrorDetails]
) -> tuple[PlainData, object]:
    """A swept value in plain data and as its field holds it; adds what is wrong to `problems`."""
    place = ("sweep", path, number)
    words = path.split(".")
    if _holds_function(value):
        message = "a Python function cannot be swept; allowed: its name, {function: 'module:name'}"
        problems.append(problem(message, place, value))
        return value, value
    try:
        member = config.with_values({path: value})
    except ValidationError as error:
        for own in problems_of(error):
            field = own["loc"]
            if [str(word) for word in field[: len(words)]] == words:
                own["loc"] = (*place, *field[len(words) :])
            else:
                own = problem(f"makes {dotted(field)} wrong: {own['type']}", place, value)
            problems.append(own)
        return value, value
    held = at(member, path)
    return (value if says_what_it_is(value) else with_whole_numbers(plain(held))), held


def _equal(path: str, values: tuple[PlainData, ...]) -> list[InitErrorDetails]:
    """What to say of the first value that stands twice: its recordings would be the same, under two names."""
    places: dict[str, int] = {}
    for number, value in enumerate(values):
        first = places.setdefault(json.dumps(value, sort_keys=True, default=repr), number)
        if first != number:
            message = f"stands there twice, as items {first} and {number}; allowed: values that differ"
            return [problem(message, ("sweep", path, number), value)]
    return []


def _unsound_member(
    config: Config, sweep: dict[str, tuple[PlainData, ...]], held: dict[str, list[object]]
) -> list[InitErrorDetails]:
    for row in itertools.product(*(range(len(values)) for values in sweep.values())):
        try:
            config.with_values({path: held[path][i] for path, i in zip(sweep, row, strict=True)})
        except ValidationError as error:
            first = problems_of(error)[0]
            values = {path: sweep[path][i] for path, i in zip(sweep, row, strict=True)}
            member = ", ".join(f"{path} = {shorten(value)}" for path, value in values.items())
            message = f"the member {member} makes {dotted(first['loc'])} wrong: {first['type']}"
            return [problem(message, ("sweep",), values)]
    return []


def with_whole_numbers(value: PlainData) -> PlainData:
    """Plain data with 2 for 2.0, as people write it."""
    if isinstance(value, dict):
        return {key: with_whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _holds_function(value: object) -> bool:
    if isinstance(value, dict):
        value = tuple(value.values())
    return any(map(_holds_function, value)) if isinstance(value, list | tuple) else callable(value)

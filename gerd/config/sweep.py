"""Sweeps: a config in, the configs of its members out, which differ in the swept fields and in nothing else.

A config with `sweep: {a: [1, 2], b: [x, y, z]}` has six members, numbered with the last path fastest. An index and a
member name a recording. All members of an index have the same draw, which depends on (seed, index) alone.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gerd.config.base import plain
from gerd.config.document import Document, PlainData
from gerd.config.problems import explain
from gerd.errors import GerdError, did_you_mean, shorten

if TYPE_CHECKING:
    from gerd.config.config import Config

KEPT_MEMBERS = 1024  # whose configs are not checked again
MOST_LISTED = 12  # values of a path in a message
LONGEST_LABEL = 24  # characters of a swept value in a name

Which = int | Mapping[str, object]  # how a user names a member: its number, or swept values that only it has


@lru_cache(maxsize=KEPT_MEMBERS)
def member(family: Config, number: int) -> Config:
    """The config of one member, which has no sweep; without a sweep, number 0 is the only one."""
    return with_values(family, labels(family, number))


def member_count(config: Config) -> int:
    return math.prod(len(values) for values in config.sweep.values())


def lengths(family: Config) -> list[int]:
    """How many steps the recordings of each member have."""
    if any(path.split(".")[0] in ("steps", "time_scale") for path in family.sweep):
        return [member(family, number).steps for number in range(member_count(family))]
    return [family.in_steps.steps] * member_count(family)


def most_actors(family: Config) -> int:
    """How many actors a recording can have."""
    if any(re.fullmatch(r"actors(\.\d+(\.repeat.*)?)?", path) for path in family.sweep):
        return max(len(member(family, number).cast) for number in range(member_count(family)))
    return len(family.cast)


def labels(config: Config, number: int) -> dict[str, PlainData]:
    """The swept values of one member: path → value."""
    result: dict[str, PlainData] = {}
    for path, values in reversed(config.sweep.items()):
        number, which = divmod(number, len(values))
        result[path] = values[which]
    return dict(reversed(result.items()))


def member_number(family: Config, which: Which | None) -> int:
    """The number of the member that a user names; None: the only one that there is."""
    source = family.origin.document.source
    sweep = family.sweep
    count = member_count(family)
    if which is None or isinstance(which, Mapping):
        chosen = {path: _number_of_value(family, path, value) for path, value in (which or {}).items()}
        open_paths = [path for path, values in sweep.items() if path not in chosen and len(values) > 1]
        if open_paths:
            raise _not_named(family, open_paths)
        number = 0
        for path, values in sweep.items():
            number = number * len(values) + chosen.get(path, 0)
        return number
    if isinstance(which, bool) or not hasattr(which, "__index__") or not 0 <= (number := int(which)) < count:
        allowed = f"0 to {count - 1}, or swept values" if sweep else "0, the only one without a sweep"
        raise GerdError(f"{source}: member {shorten(which)}: allowed: {allowed}")
    return number


def _number_of_value(family: Config, path: str, value: object) -> int:
    """Where a value stands in the list of those that `path` takes, from 0 on."""
    source = family.origin.document.source
    sweep = family.sweep
    value = plain(value)
    if path not in sweep:
        swept = f"{did_you_mean([path], sweep)}swept: {', '.join(sweep)}" if sweep else "there is no sweep"
        raise GerdError(f"{source}: member {path}={shorten(value)}: {path} is not swept; {swept}")
    for number, known in enumerate(sweep[path]):
        if known == value and isinstance(known, bool) == isinstance(value, bool):
            return number
    raise GerdError(f"{source}: member {path}={shorten(value)}: allowed: {_listed(sweep[path])}")


def _not_named(family: Config, paths: list[str]) -> GerdError:
    """An error for a swept config of which nobody has said which member is meant."""
    values = " and ".join(f"{path} ({_listed(family.sweep[path])})" for path in paths)
    allowed = f"a number from 0 to {member_count(family) - 1}, or its value of {values}"
    return GerdError(f"{family.origin.document.source}: is swept; say which member, as in config.member(0): {allowed}")


def _listed(values: Sequence[object]) -> str:
    listed = ", ".join(map(shorten, values[:MOST_LISTED]))
    return listed if len(values) <= MOST_LISTED else f"{listed}, …"


def number_of(config: Config) -> int | None:
    """Which member of its family a config is; None if other fields were set, or to values that are not swept."""
    labelled = config.origin.labels
    if labelled.keys() != config.family.sweep.keys():
        return None
    try:
        return member_number(config.family, labelled)
    except GerdError:
        return None


def named(config: Config, index: int | str) -> str:
    """Which recording it is, in words: the index, and in a sweep the member and its values."""
    labelled, number = in_words(config.origin.labels), number_of(config)
    member = f", member {number}" if labelled and number is not None else ""
    return f"index {index}{member}{f' ({labelled})' if labelled else ''}"


def in_words(labels: Mapping[str, object], separator: str = ", ") -> str:
    return separator.join(f"{path}={shorten(value, LONGEST_LABEL)}" for path, value in labels.items())


def config_of(config: Config, which: Which | None = None, values: Mapping[str, object] | None = None) -> Config:
    """The config of one recording: that of a member, with the fields at the given paths replaced.

    Of a swept config every swept field has to be named, by the member or by `values`: the value that is written beside
    a sweep is that of no recording.
    """
    values = values or {}
    if config.sweep and which is None and (open_paths := [path for path in config.sweep if path not in values]):
        if any(len(config.sweep[path]) > 1 for path in open_paths):
            raise _not_named(config, open_paths)
        which = 0
    labelled = labels(config, member_number(config, which)) if which is not None else {}
    return with_values(config, {**labelled, **values}, "values")


def with_values(config: Config, values: Mapping[str, object], source: str = "sweep") -> Config:
    """`config` with the fields at the given paths replaced, in steps and with no sweep of its own; checked anew."""
    if not values and not config.sweep:
        return config.in_steps
    try:
        return config.with_values(values).in_steps
    except ValidationError as error:
        raise explain(error, Document(None, source)) from None


@lru_cache(maxsize=16)
def classes(family: Config) -> tuple[str, ...]:
    """The names of the shapes that recordings of a config show, those of all members, in the order of the config."""
    swept = {path: values for path, values in family.sweep.items() if re.fullmatch(r"actors(\.\d+(\.shape.*)?)?", path)}
    configs = _all_of(family, swept)
    return tuple(dict.fromkeys(name for each in configs for actor in each.actors for name in actor.shape_names))


@lru_cache(maxsize=16)
def relatives(family: Config) -> list[Config]:
    """One config for each way in which the sweep changes the shapes at t = 0, which natural positions depend on."""
    later = (".velocity", ".acceleration", ".speed_limit", ".intensity")  # what does not show at t = 0
    swept = {
        path: values
        for path, values in family.sweep.items()
        if path.startswith(("actors", "sensor")) and not any(part in path for part in later)
    }
    if not swept or not any(actor.translation.start == "uniform" for actor in family.actors):
        return []
    return _all_of(family, swept)


def _all_of(family: Config, swept: Mapping[str, Sequence[object]]) -> list[Config]:
    """The family's config with each choice of these swept values."""
    return [with_values(family, dict(zip(swept, row, strict=True))) for row in itertools.product(*swept.values())]

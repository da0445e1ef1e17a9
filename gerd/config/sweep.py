"""Sweeps: a config in, the configs of its members out, which differ in the swept fields and in nothing else.

A config with `sweep: {a: [1, 2], b: [x, y, z]}` has six members, numbered with the last path fastest. Every
member of recording i is drawn with the same randomness, because draws depend on (seed, index) alone.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from gerd.config.config import Config
from gerd.config.document import Document
from gerd.config.problems import explain

KEPT_MEMBERS = 1024  # whose configs are not checked again


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


def labels(config: Config, number: int) -> dict[str, Any]:
    """The swept values of one member: path → value."""
    result: dict[str, Any] = {}
    for path, values in reversed(config.sweep.items()):
        number, position = divmod(number, len(values))
        result[path] = values[position]
    return dict(reversed(result.items()))


def with_values(config: Config, values: Mapping[str, Any], source: str = "sweep") -> Config:
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
    members = [with_values(family, dict(zip(swept, row, strict=True))) for row in itertools.product(*swept.values())]
    return tuple(dict.fromkeys(name for each in members for actor in each.actors for name in actor.shape_names))


@lru_cache(maxsize=16)
def relatives(family: Config) -> list[Config]:
    """One config for each way in which the sweep changes the shapes at t = 0, which natural positions depend on."""
    forms = {path: values for path, values in family.sweep.items() if path.startswith(("actors", "sensor"))}
    moving = (".velocity", ".acceleration", ".speed_limit", ".intensity")
    forms = {path: values for path, values in forms.items() if not any(part in path for part in moving)}
    if not forms or not any(actor.translation.start == "uniform" for actor in family.actors):
        return []
    return [with_values(family, dict(zip(forms, row, strict=True))) for row in itertools.product(*forms.values())]

"""Sweeps: the members of a family, which differ in the swept fields and in nothing else.

A config with `sweep: {a: [1, 2], b: [x, y, z]}` has six members, numbered with the last path fastest. Every
member of recording i is drawn with the same randomness, because draws depend on (seed, index) alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from gerd.config.config import Config
from gerd.config.document import Document
from gerd.config.problems import explain


def member_count(config: Config) -> int:
    return math.prod(len(values) for values in config.sweep.values())


def labels(config: Config, member: int) -> dict[str, Any]:
    """The swept values of one member: path → value."""
    result: dict[str, Any] = {}
    for path, values in reversed(config.sweep.items()):
        member, position = divmod(member, len(values))
        result[path] = values[position]
    return dict(reversed(result.items()))


def with_values(config: Config, values: Mapping[str, Any], source: str = "sweep") -> Config:
    """`config` with the fields at the given paths replaced and no sweep of its own; checked anew."""
    try:
        return config.with_values(values)
    except ValidationError as error:
        raise explain(error, Document(None, source)) from None


@lru_cache(maxsize=16)
def relatives(config: Config) -> list[Config]:
    """One config for each way in which the sweep changes the shapes at t = 0, which natural positions depend on."""
    forms = {path: values for path, values in config.sweep.items() if path.startswith(("actors", "sensor"))}
    moving = (".velocity", ".acceleration", ".speed_limit", ".intensity")
    forms = {path: values for path, values in forms.items() if not any(part in path for part in moving)}
    if not forms or not any(actor.translation.start == "uniform" for actor in config.actors):
        return []
    return [with_values(config, dict(zip(forms, row, strict=True))) for row in itertools.product(*forms.values())]

"""The digest of a config: a config in, a sha256 over what is not at its default out, equal for equal recordings.

A field that is at its default does not show in the digest, at any depth. So a new field changes no digest, as long as
its default changes no recording.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gerd.config.actor import says_what_it_is
from gerd.config.base import at, plain
from gerd.config.document import PlainData
from gerd.config.members import with_whole_numbers
from gerd.config.values import TimeScale

if TYPE_CHECKING:
    from gerd.config.config import Config


def digest_of_config(config: Config) -> str:
    """sha256 over what is not at its default: equal for equal recordings, however the text was written."""
    shortest = config.sampled_whole
    if isinstance(config.time_scale, TimeScale) and config.time_scale.keep == "steps":  # what a plain number means
        shortest = shortest.model_copy(update={"time_scale": config.rate})
    for part, key in (("integrator", "threshold"), ("noise", "background")):
        single = getattr(at(config, f"{part}.{key}"), "as_one", None)
        if single is not None:
            shortest = shortest.model_copy(update={part: at(config, part).model_copy(update={key: single})})
    fields = shortest.not_at_defaults()
    fields["sweep"] = {
        path: [_swept_value(config, path, value) for value in config.sweep[path]] for path in config.sweep
    }
    return digest_of(fields)


def _swept_value(config: Config, path: str, value: PlainData) -> PlainData:
    """A swept value without what is at its default."""
    if not isinstance(value, dict | list | tuple) or says_what_it_is(value):
        return value
    return with_whole_numbers(plain(at(config.with_values({path: value}), path), exclude_defaults=True))


def digest_of(fields: Mapping[str, PlainData]) -> str:
    """sha256 over the fields of a config that are not at their defaults.

    The names of polygons do not count, nor do those of functions whose values are known: these stand in their place. A
    file of recorded noise counts by its sha256.
    The order of the swept paths counts, because it numbers the members.
    """
    values = fields.get("functions", {})
    ordered = _without_names({key: value for key, value in fields.items() if key not in ("functions", "sweep")}, values)
    if swept := fields.get("sweep"):
        ordered["sweep"] = [[path, _swept(path, options, values)] for path, options in swept.items()]
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def _swept(path: str, options: Sequence[PlainData], values: Mapping[str, PlainData]) -> list[PlainData]:
    """The values of a swept path, which may be names of functions themselves."""
    if path.endswith(".function"):
        return [values.get(name, name) for name in options]
    return [_without_names(option, values) for option in options]


def _without_names(data: PlainData, values: Mapping[str, PlainData]) -> PlainData:
    """Plain data whose polygons have no names, and whose functions have values in the place of theirs."""
    if isinstance(data, dict):
        if "polygon" in data:
            return {"polygon": data["polygon"]}
        if "sha256" in data and "file" in data:
            return {"sha256": data["sha256"]}
        name = data.get("function")
        if isinstance(name, str) and name in values:
            return {"function": values[name]}
        return {key: _without_names(value, values) for key, value in data.items()}
    return [_without_names(part, values) for part in data] if isinstance(data, list | tuple) else data

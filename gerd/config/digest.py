"""The digest of a config: a resolved config as plain data in, a sha256 out that is equal for equal recordings."""

from __future__ import annotations

import hashlib
import json
from typing import Any

# Fields that older datasets do not have, with the values that change nothing.
LATER: dict[str, Any] = {"transform": [], "timing": "step"}


def digest_of(resolved: dict[str, Any]) -> str:
    """sha256 over a resolved config but for the names of polygons.

    The order of the swept paths counts, because it numbers the members.
    """
    resolved = _without_names(resolved)
    ordered = {**without_later(resolved), "sweep": list(resolved["sweep"].items())}
    scale = ordered["time_scale"]
    if isinstance(scale, dict) and scale["keep"] == "steps":
        ordered["time_scale"] = scale["factor"]
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def _without_names(value: Any) -> Any:
    """Plain data whose polygons have no names."""
    if isinstance(value, dict):
        kept = ["polygon"] if "polygon" in value else list(value)
        return {key: value[key] if key == "polygon" else _without_names(value[key]) for key in kept}
    return [_without_names(part) for part in value] if isinstance(value, list | tuple) else value


def without_later(resolved: dict[str, Any]) -> dict[str, Any]:
    """A resolved config without what older datasets do not have, where it changes nothing."""
    result = {key: value for key, value in resolved.items() if key not in LATER or value != LATER[key]}
    if "timing" not in result and "timing" not in resolved["sweep"] and resolved["integrator"]["initial"] == "usual":
        result["integrator"] = {**resolved["integrator"], "initial": "uniform"}
    return result

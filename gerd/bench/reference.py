"""The frozen errors of the reference network, to which the mean transformation error relates others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from gerd.bench.findings import REFERENCE
from gerd.bench.frozen import FOLDER

FILE = "reference.json"
WHY_NONE = (
    f"the mean transformation error (mTE) is left out: it relates errors to those of {REFERENCE}, which have not been "
    "measured at full size yet"
)
WHY_NOT_QUICK = "the mean transformation error (mTE) is left out: it is defined for the full size only"

Errors = Mapping[str, Mapping[float, float]]  # by factor and amount


def reference_errors(task: str, regime: str) -> Errors | None:
    """The mean errors of the reference network, by factor and amount; none if they have not been measured."""
    known = _read().get(f"{task}/{regime}")
    if known is None:
        return None
    return {factor: {float(amount): error for amount, error in errors.items()} for factor, errors in known.items()}


@lru_cache
def _read() -> dict[str, dict[str, dict[str, float]]]:
    """By task and regime; the file is put into the package once the reference is measured."""
    file = FOLDER / FILE
    known: dict[str, dict[str, dict[str, float]]] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return known

"""`gerd study`: compute what a study has not computed yet, then draw its report."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import gerd.studies.lab.folder as store
from gerd.errors import GerdError
from gerd.studies.lab.drawing import write_report
from gerd.studies.lab.training import Clock

STUDIES = ("timescale", "sparse", "covariance", "noise", "symmetry")


def run_study(
    name: str | None,
    out: Path | None,
    source: Path | None,
    size: str,
    changes: dict[str, int | None],
    *,
    device: str,
    seed: int,
    minutes: float | None,
    **own: Any,
) -> Path:
    """Where the report is. `source` is a finished folder to draw again; `own` is the user's model, for symmetry."""
    given = {option: value for option, value in own.items() if value is not None}
    if source is not None and name is None:
        name = store.study_of(source)
    name = name or ("symmetry" if given else None)
    if name not in STUDIES:
        raise GerdError(f"study {name or '(none)'}: allowed: {', '.join(STUDIES)}")
    if given and name != "symmetry":
        raise GerdError(f"--{next(iter(given))}: goes with the study symmetry, not with {name}")
    if name == "symmetry" and changes.get("seeds") is not None:
        raise GerdError("--seeds: goes with the other studies; symmetry is of one network")
    if "checkpoint" in given and "model" not in given:
        raise GerdError("--checkpoint: goes with --model, which says whose weights they are")
    study = import_module(f"gerd.studies.{name}")
    if source is not None:
        if given:
            raise GerdError(f"--{next(iter(given))}: goes with computing, and --from computes nothing")
        return write_report(study.report, store.read_results(source, name), out or source)
    folder = out or Path("out") / name
    order = store.order(study.SIZES, size, changes, device=device, seed=seed, clock=Clock.of(minutes), say=store.say)
    return write_report(study.report, study.compute(folder, order, **given), folder)

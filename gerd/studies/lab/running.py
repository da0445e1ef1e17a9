"""Studies by their names: `compute_study` computes what is missing, `run_study` also draws the report.

`gerd study` calls `run_study`. A machine that has PyTorch, but neither typer nor matplotlib, computes by

    from gerd.studies.lab.running import compute_study
    compute_study("timescale", "out/timescale", device="cuda", minutes=8)
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypedDict, Unpack

from gerd.config.config import Config
from gerd.config.document import PlainData
from gerd.errors import GerdError, check_whole, did_you_mean
from gerd.events.backends import check_device
from gerd.studies.lab.drawing import write_report
from gerd.studies.lab.fitting import Deadline
from gerd.studies.lab.folder import read_results
from gerd.studies.lab.results import Results
from gerd.studies.lab.training import Order

STUDIES = ("demonstration", "timescale", "covariance", "noise", "symmetry", "camera", "receptive-fields")
OPTIONS_OF = {"model": "symmetry", "checkpoint": "symmetry", "config": "symmetry", "set": "demonstration"}
WRITES = """\
Writes a folder: report.md and page.html (the same in one file that needs no other), the figures as PNG and SVG,
summary.csv, results.json with every number, the config, seeds and versions, and under runs/ the weights and errors of
each network. The same command continues what was stopped; several processes with the same command share the work;
--from DIR draws the report again.
"""
OWN_NETWORK = """\
A network of your own: --model my_module:build calls build(), from the current folder, which gives a module or a
function. It gets frames as float32 (batch, steps, 2, height, width), 1 where there is an event, OFF before ON, and
gives places (batch, steps, 2), x and y in pixels from the left upper corner. --checkpoint are its weights, a state
dict of PyTorch or safetensors. The stimuli are one square in a frame of {full}×{full} pixels (--quick
{quick}×{quick}, --smoke {smoke}×{smoke}) for 40 steps; --config CONFIG takes others, of any size and with more than
{first_step} steps. The places of the first actor are compared.
"""


class OwnOptions(TypedDict, total=False):
    """Options that only one study has."""

    model: str | None  # of symmetry: a network of the user, module:function
    checkpoint: Path | str | None  # of symmetry: its weights
    config: Config | None  # of symmetry: other stimuli
    set: Sequence[str] | None  # of demonstration: what the paper leaves open, NAME=VALUE


def compute_study(
    name: str,
    out: Path | str,
    *,
    size: str = "full",
    device: str = "cpu",
    seed: int = 0,
    minutes: float | None = None,
    epochs: int | None = None,
    seeds: int | None = None,
    **own: Unpack[OwnOptions],
) -> Results:
    """Compute what is not yet in the folder `out`; a call that was stopped goes on when it is made again.

    size: full, quick or smoke. epochs, seeds: in place of those of the size.
    minutes: after which an OutOfTimeError ends the computing.
    own: options that only this study has.
    """
    study = _study(name)
    if size not in study.SIZES:
        raise GerdError(f"size {size!r}: allowed: {', '.join(study.SIZES)}")
    changes: dict[str, int] = {
        key: number for key, number in (("epochs", epochs), ("seeds", seeds)) if number is not None
    }
    for key, number in changes.items():
        check_whole(key, number, 1)
    if name == "symmetry" and seeds is not None:
        raise GerdError("--seeds: goes with the other studies; symmetry has one network")
    check_device(device)
    given = {option: value for option, value in own.items() if value is not None}
    command = _command(name, size, {"device": device, "seed": seed, **changes, **given})
    say = partial(print, file=sys.stderr, flush=True)  # lines that a log can hold
    order = Order(replace(study.SIZES[size], **changes), device, seed, Deadline.after(minutes), say, command)
    return study.compute(out, order, **given)


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
    **own: Unpack[OwnOptions],
) -> Path:
    """Where the report is. `source` is a finished folder to draw again; `own` are options that only one study has."""
    options = [option for option, value in own.items() if value is not None]
    results = None if source is None else read_results(source, name)
    name = name or (results.settings.study if results else OPTIONS_OF[options[0]] if options else None)
    study = _study(name)
    for option in options:
        if name != OPTIONS_OF[option]:
            raise GerdError(f"--{option}: goes with the study {OPTIONS_OF[option]}, not with {name}")
    if "checkpoint" in options and "model" not in options:
        raise GerdError("--checkpoint: goes with --model, which says whose weights they are")
    if options and source is not None:
        raise GerdError(f"--{options[0]}: goes with computing, and --from computes nothing")
    folder = out or source or Path("out") / str(name)
    if results is None:
        results = compute_study(
            str(name), folder, size=size, device=device, seed=seed, minutes=minutes, **changes, **own
        )
    return write_report(study.report, results, folder)


def about(name: str) -> str:
    """What a study asks, what it writes, how long it takes, and what a network of the user gets."""
    study = _study(name)
    question, _, details = (study.__doc__ or "").partition("\n")
    takes = "; ".join(f"{'' if size == 'full' else f'--{size} '}{time}" for size, time in study.TAKES.items())
    parts = [question, details.strip(), WRITES, f"Takes {takes}."]
    if name == "symmetry":
        sizes = {size: each.side for size, each in study.SIZES.items()}
        parts.append(OWN_NETWORK.format(**sizes, first_step=study.SIZES["full"].first_step))
    return "\n\n".join(part.strip() for part in parts)


def _study(name: str | None) -> ModuleType:
    """The module of a study."""
    if name not in STUDIES:
        reason = did_you_mean([name], STUDIES) if name else ""
        raise GerdError(f"study {name or '(none)'}: {reason}allowed: {', '.join(STUDIES)}")
    module = str(name).replace("-", "_")
    return import_module(f"gerd.studies.{module}")


def _command(name: str, size: str, options: Mapping[str, PlainData]) -> str:
    """The command that gives the same numbers; stimuli of the user are in the study's folder."""
    words = ["gerd", "study", name]
    if size != "full":
        words.append(f"--{size}")
    defaults = {"device": "cpu", "seed": 0}
    for option, value in options.items():
        if option == "set":
            words += [word for each in value for word in ("--set", each)]
        elif value != defaults.get(option):
            words += [f"--{option}", "config.yaml" if option == "config" else str(value)]
    return shlex.join(words)

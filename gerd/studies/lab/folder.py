"""A study's folder: what it was asked, what has been computed so far, and its results.

settings.json     what the numbers depend on; a folder goes on only with the same settings
config.yaml       the stimuli
runs/             for each trained network its weights (.pt) and its errors (.json)
results.json      every number, once all is computed
report.md, *.png, *.svg, *.csv     drawn from results.json
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gerd.config.config import Config
from gerd.errors import GerdError, shorten
from gerd.events.backends import check_device
from gerd.measures.statistics import Summary
from gerd.storage.whole import write_whole
from gerd.studies.lab.training import Clock, Order, Size
from gerd.version import __version__

Results = dict[str, Any]


class Folder:
    """The folder of one study."""

    def __init__(self, path: Path | str, study: str, order: Order, config: Config, **more: Any):
        self.path, self.study, self.order, self._news = Path(path), study, order, False
        known = self.path / "settings.json"
        in_recipe = ("first_step", "rate")
        size = {name: value for name, value in asdict(order.size).items() if name not in in_recipe and value != ()}
        settings = {"seed": order.seed, **size, "recipe": asdict(order.recipe), "config": config.digest, **more}
        self.settings = json.loads(json.dumps(settings))
        wanted = {"study": study, **self.settings}
        if known.exists():
            found = _read(known)
            different = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
            if different:
                first = different[0]
                raise GerdError(
                    f"{self.path}: was begun with {first} = {shorten(found.get(first))}, and this is "
                    f"{shorten(wanted.get(first))}; give another folder with --out"
                )
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
            (self.path / "config.yaml").write_text(config.resolved_yaml(), "utf-8")
        except OSError as error:
            raise GerdError(f"{self.path}: cannot be written: {error.strerror}") from None
        write_json(wanted, known)

    def state(self, run: str) -> Path:
        """Where the weights of a run are."""
        return self.path / "runs" / f"{run}.pt"

    def found(self, run: str) -> Results | None:
        """What a finished run gave."""
        file = self.path / "runs" / f"{run}.json"
        return _read(file) if file.exists() else None

    def keep(self, run: str, results: Results) -> None:
        self._news = True
        write_json(results, self.path / "runs" / f"{run}.json")

    def finish(self, results: Results, seconds: float) -> Results:
        """Write all results, with what they were made by and in which time; if nothing is new, those that are there."""
        if not self._news and (self.path / "results.json").exists():
            return read_results(self.path, self.study)
        device = self.order.device
        made = {
            "date": time.strftime("%Y-%m-%d"),
            "command": command(),
            "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine(),
            "seconds": round(seconds, 1),
            "versions": {
                "gerd": __version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }
        whole = {"study": self.study, "made": made, "settings": self.settings, **results}
        write_json(whole, self.path / "results.json")
        return whole


def command() -> str:
    """How the program was called; not for how long, which the results do not depend on."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name if spec is not None else ""
    program = ["python", "-m", module] if module.startswith("gerd.studies.") else ["gerd"]
    given = re.sub(r" --minutes[= ]\S+", "", f" {shlex.join(sys.argv[1:])}")
    return shlex.join(program) + given.rstrip()


def study_of(path: Path | str) -> Any:
    """Which study the results in a folder are of."""
    return _finished(path).get("study")


def _finished(path: Path | str) -> Results:
    file = Path(path) / "results.json"
    if not file.exists():
        raise GerdError(f"{file}: is not there; allowed is the folder of a finished study")
    return _read(file)


def read_results(path: Path | str, study: str) -> Results:
    """The results in a folder."""
    file, results = Path(path) / "results.json", _finished(path)
    if results.get("study") != study:
        raise GerdError(f"{file}: is of the study {results.get('study')!r}, and not of {study!r}")
    return results


def chance_of(results: Results) -> Summary:
    """The errors of always saying the mean place."""
    found: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in results["chance"].items()}
    return Summary(**found)


def write_json(data: Any, file: Path) -> None:
    """Whole or not at all."""
    write_whole(file, (json.dumps(data, ensure_ascii=False) + "\n").encode())


def _read(file: Path) -> Results:
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise GerdError(f"{file}: cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise GerdError(f"{file}: is not what a study writes")
    return data


def order(sizes: dict[str, Size], size: str, changes: dict[str, int | None], **options: Any) -> Order:
    """An order of one of the study's sizes, with some of its numbers replaced."""
    if size not in sizes:
        raise GerdError(f"size {size!r}: allowed: {', '.join(sizes)}")
    given = {name: number for name, number in changes.items() if number is not None}
    for name, number in given.items():
        if number < 1:
            raise GerdError(f"{name} {number}: allowed is a whole number, 1 or more")
    check_device(options.get("device", "cpu"))
    chosen: Any = given
    return Order(replace(sizes[size], **chosen), **options)


def bare_command(compute: Callable[[str, Order], Results], sizes: dict[str, Size], study: str) -> None:
    """`python -m gerd.studies.NAME`: computes, and needs neither typer nor matplotlib."""
    parser = argparse.ArgumentParser(
        f"python -m gerd.studies.{study}", description="Compute a study, without a report."
    )
    parser.add_argument("--out", default=f"out/{study}", help="the folder to write; continued if it was begun")
    parser.add_argument("--device", default="cpu", help="where to compute: cpu, cuda, cuda:1 …")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", default="full", choices=sizes)
    parser.add_argument("--epochs", type=int, help="of training; as the size says unless told")
    parser.add_argument("--seeds", type=int, help="networks of each kind; as the size says unless told")
    parser.add_argument("--minutes", type=float, help="stop after this time; the same command goes on")
    given = parser.parse_args()
    try:
        changes = {"epochs": given.epochs, "seeds": given.seeds}
        clock = Clock.of(given.minutes)
        compute(
            given.out, order(sizes, given.size, changes, device=given.device, seed=given.seed, clock=clock, say=say)
        )
        say(f"computed; draw the report with: gerd study {study} --from {given.out}")
    except GerdError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say(f"stopped; {given.out} keeps what is finished, and the same command continues")
        sys.exit(130)


def say(message: str) -> None:
    """Progress, as lines that a log can hold."""
    print(message, file=sys.stderr, flush=True)

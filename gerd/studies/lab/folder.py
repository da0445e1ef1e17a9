"""A study's folder: what it was asked, what has been computed so far, and its results.

settings.json     what the numbers depend on; a folder goes on only with the same settings
config.yaml       the stimuli
runs/             for each trained network its weights (.pt) and its errors (.json)
results.json      every number, once all is computed, as `results` describes it
report.md, page.html, *.png, *.svg, *.gif, *.csv     drawn from results.json

Several processes may compute in one folder: each takes the runs that no other one has.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from gerd.config.config import Config
from gerd.errors import GerdError, counted, shorten
from gerd.files import lock
from gerd.measures.statistics import Summary
from gerd.storage.whole import write_whole
from gerd.studies.lab.results import Example, Made, Results, Run, Settings
from gerd.studies.lab.training import Order, OutOfTimeError
from gerd.version import __version__

Kept = TypeVar("Kept")  # a dataclass


class StudyFolder:
    """The folder of one study; `own` are settings that only this study has."""

    def __init__(self, path: Path | str, study: str, order: Order, config: Config, **own: object):
        self.path = Path(path)
        self.order = order
        self._anything_new = False
        self.missing = 0  # networks for which there was no time
        self.settings = Settings(study, order.seed, order.size, config.digest, own)
        file = self.path / "settings.json"
        wanted = self.settings.flat()
        before = read_settings(self.path).flat() if file.exists() else wanted
        for name in {**wanted, **before}:
            if wanted.get(name) != before.get(name):
                raise GerdError(
                    f"{self.path}: was begun with {name} = {shorten(before.get(name))}, and this is "
                    f"{shorten(wanted.get(name))}; give another folder with --out"
                )
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
            (self.path / "config.yaml").write_text(config.resolved_yaml(), "utf-8")
        except OSError as error:
            raise GerdError(f"{self.path}: cannot be written: {error.strerror}") from None
        _write(self.settings, file)

    def weights(self, run: str) -> Path:
        """Where the weights of a run are."""
        return self.path / "runs" / f"{run}.pt"

    def kept(self, run: str, kind: type[Kept], make: Callable[[], Kept]) -> Kept:
        """What a finished run has left here; if it is not finished, what `make` gives, which is then kept."""
        file = self.path / "runs" / f"{run}.json"
        if not file.exists():
            with self._alone(run):
                if not file.exists():
                    _write(make(), file)
                    self._anything_new = True
        return _read(file, kind)

    def is_free(self, run: str) -> bool:
        """Whether no other process works on a run that is not finished."""
        if (self.path / "runs" / f"{run}.json").exists():
            return True
        try:
            with self._alone(run, wait=False):
                return True
        except BlockingIOError:
            return False

    @contextmanager
    def _alone(self, run: str, wait: bool = True) -> Iterator[None]:
        """While no other process has the run; the end of a process, also by a kill, lets go of it."""
        with open(self.path / "runs" / f"{run}.lock", "w") as held:
            lock(held, wait=wait)
            yield

    def finish(self, chance: Summary, runs: Sequence[Run], examples: Sequence[Example] = ()) -> Results:
        """The results, which are written if anything is new, with what made them.

        If the time was over before all networks were trained, they are those of the others.
        """
        file = self.path / "results.json"
        device = self.order.device
        if file.exists() and not self._anything_new and read_results(self.path).missing == self.missing:
            return read_results(self.path)
        made = Made(
            date=time.strftime("%Y-%m-%d"),
            command=self.order.command,
            device=torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine(),
            seconds=round(sum(run.seconds for run in runs), 1),
            versions={
                "gerd": __version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        )
        _write(Results(self.settings, made, chance, tuple(runs), tuple(examples), self.missing), file)
        if self.missing:
            raise OutOfTimeError(
                f"the time is over before {counted(self.missing, 'network')}; the same command continues, and --from "
                f"{self.path} draws a report of the others"
            )
        return read_results(self.path)


def read_settings(path: Path | str) -> Settings:
    """What a folder was asked for, also before anything is computed."""
    return _read(Path(path) / "settings.json", Settings)


def read_results(path: Path | str, study: str | None = None) -> Results:
    """The results in a folder, of any study or of the one that is named."""
    file = Path(path) / "results.json"
    if not file.exists():
        raise GerdError(f"{file}: is not there; allowed: the folder of a finished study")
    results = _read(file, Results)
    if study is not None and results.settings.study != study:
        raise GerdError(f"{file}: is of the study {results.settings.study!r}, and not of {study!r}")
    return results


def _write(data: Any, file: Path) -> None:
    write_whole(file, (json.dumps(asdict(data), ensure_ascii=False) + "\n").encode())


def _read(file: Path, kind: type[Kept]) -> Kept:
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise GerdError(f"{file}: cannot be read: {error}") from None
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "all"
        raise GerdError(f"{file}: is not what this version of gerd writes ({field}: {first['msg']})") from None

"""A study's folder: what it was asked, what has been computed so far, and its results.

settings.json     what the numbers depend on; a folder goes on only with the same settings
config.yaml       the stimuli
runs/             for each trained network its weights (.pt) and its errors (.json)
results.json      every number, once all is computed, as `results` describes it
report.md, page.html, *.png, *.svg, *.gif, *.csv     drawn from results.json

Several processes may compute in one folder: each takes the runs that no other one has.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from gerd.config.config import Config
from gerd.errors import GerdError, counted
from gerd.measures.statistics import Summary
from gerd.studies.lab.fitting import OutOfTimeError
from gerd.studies.lab.kept import RunFolder, check_same, read_data, write_data
from gerd.studies.lab.results import Example, Made, Results, Run, Settings
from gerd.studies.lab.training import Order
from gerd.version import __version__


class StudyFolder(RunFolder):
    """The folder of one study; `own` are settings that only this study has."""

    def __init__(self, path: Path | str, study: str, order: Order, config: Config, **own: object):
        super().__init__(path)
        self.order = order
        self.missing = 0  # networks for which there was no time
        self.settings = Settings(study, order.seed, order.size, config.digest, own)
        file = self.path / "settings.json"
        if file.exists():
            check_same(self.path, self.settings.flat(), read_settings(self.path).flat())
        try:
            (self.path / "config.yaml").write_text(config.resolved_yaml(), "utf-8")
        except OSError as error:
            raise GerdError(f"{self.path}: cannot be written: {error.strerror}") from None
        write_data(self.settings, file)

    def finish(self, chance: Summary, runs: Sequence[Run], examples: Sequence[Example] = ()) -> Results:
        """The results, which are written if anything is new, with what made them.

        If the time was over before all networks were trained, they are those of the others.
        """
        file = self.path / "results.json"
        device = self.order.device
        if file.exists() and not self.anything_new and read_results(self.path).missing == self.missing:
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
        write_data(Results(self.settings, made, chance, tuple(runs), tuple(examples), self.missing), file)
        if self.missing:
            raise OutOfTimeError(
                f"the time is over before {counted(self.missing, 'network')}; the same command continues, and --from "
                f"{self.path} draws a report of the others"
            )
        return read_results(self.path)


def read_settings(path: Path | str) -> Settings:
    """What a folder was asked for, also before anything is computed."""
    return read_data(Path(path) / "settings.json", Settings)


def read_results(path: Path | str, study: str | None = None) -> Results:
    """The results in a folder, of any study or of the one that is named."""
    file = Path(path) / "results.json"
    if not file.exists():
        raise GerdError(f"{file}: is not there; allowed: the folder of a finished study")
    results = read_data(file, Results)
    if study is not None and results.settings.study != study:
        raise GerdError(f"{file}: is of the study {results.settings.study!r}, and not of {study!r}")
    return results

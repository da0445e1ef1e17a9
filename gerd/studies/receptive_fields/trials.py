"""The networks, their training and their tests: an order in, errors at every size and speed out, in pixels."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from gerd.measures.statistics import summary
from gerd.studies.lab.fitting import OutOfTimeError, rounded
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, SweepResult
from gerd.studies.lab.training import Order, Size
from gerd.studies.models import Layers
from gerd.studies.receptive_fields.learning import Array, Material, errors, errors_of_a_guess, train
from gerd.studies.receptive_fields.networks import KINDS, OCTAVES, SIGMAS, STARTS, Design, Kind, Network
from gerd.studies.receptive_fields.stimuli import (
    BACKGROUND,
    FIRST_STEP,
    SCALINGS,
    SHAPES,
    SPATIAL,
    STEPS,
    Scaling,
    stimuli,
)

STUDY = "receptive-fields"
GUESS = "the mean place"
SLOWEST_FIRST: tuple[Kind, ...] = (
    "LIF",
    "LI",
    "ReLU-8",
    "ReLU-1",
)  # so that processes that share the work end at about the same time


def named(kind: str, start: str, scaling: Scaling) -> str:
    """What a network is called in the results."""
    return f"{kind}, {start}, {scaling.name}"


def guess_at(scaling: Scaling) -> str:
    return f"{GUESS}, {scaling.name}"


EVERY = tuple(named(kind, start, scaling) for scaling in SCALINGS for kind in KINDS for start in STARTS)
QUICK = tuple(named(kind, start, SPATIAL) for kind in KINDS for start in STARTS)
WIDE = Layers((2, 24, 24, len(SHAPES)), (9, 7, 5), (2, 2, 2))
NARROW = Layers((2, 12, 12, len(SHAPES)), (7, 5, 5), (4, 2, 1))
TINY = Layers((2, 6, 4, len(SHAPES)), (5, 5, 5), (8, 2, 1))
SIZES = {
    "full": Size(
        128, 1600, 64, epochs=6, batch=4, seeds=3, layers=WIDE, first_step=FIRST_STEP, models=EVERY, rate=5e-3
    ),
    "quick": Size(
        96, 400, 16, epochs=3, batch=4, seeds=1, layers=NARROW, first_step=FIRST_STEP, models=QUICK, rate=5e-3
    ),
    "smoke": Size(
        96,
        4,
        2,
        epochs=2,
        batch=4,
        seeds=1,
        layers=TINY,
        first_step=FIRST_STEP,
        models=EVERY,
        rate=5e-3,
        conclusive=False,
    ),
}
TAKES = {
    "full": "9 minutes on an NVIDIA H200 with eight processes",
    "quick": "about 10 minutes on two CPU cores, by an estimate",
    "smoke": "half a minute",
}


class Trials:
    """All networks of one order. The recordings of one scaling at a time are on the device."""

    def __init__(self, folder: StudyFolder):
        self.folder = folder
        self.order = folder.order
        self.size = folder.order.size
        self._material: dict[str, Material] = {}

    def material(self, scaling: Scaling) -> Material:
        if scaling.name not in self._material:
            self._material.clear()
            self._material[scaling.name] = Material(scaling, self.size, self.order.seed, self.order.device)
        return self._material[scaling.name]

    def runs(self) -> list[Run]:
        """Guesses and networks, but for those for which there was no time.

        What another process works on comes last, when that one may have finished.
        """
        todo = self._todo()
        done: dict[str, Run] = {}
        for wait in (False, True):
            for run, make in todo.items():
                if run not in done and (wait or self.folder.is_free(run)):
                    with suppress(OutOfTimeError):
                        done[run] = self.folder.kept(run, Run, make)
        self.folder.missing = len(todo) - len(done)
        order = [guess_at(scaling) for scaling in SCALINGS] + list(EVERY)
        return sorted(done.values(), key=lambda run: (order.index(run.model), run.seed))

    def _todo(self) -> dict[str, Callable[[], Run]]:
        """What gives each run, by its name in the folder, in the order in which they are begun."""
        todo: dict[str, Callable[[], Run]] = {}
        wanted = [
            (scaling, Design(kind, start, self.size.layers))
            for scaling in SCALINGS
            for kind in SLOWEST_FIRST
            for start in STARTS
            if named(kind, start, scaling) in self.size.models
        ]
        seeds = range(self.order.seed, self.order.seed + self.size.seeds)
        names = [(scaling, design, seed) for scaling, design in wanted for seed in seeds]
        for number, (scaling, design, seed) in enumerate(names, 1):
            model = named(design.kind, design.start, scaling)
            title = f"[{number}/{len(names)}] {model}, seed {seed}"
            run = _file_name(f"{model} {seed}")
            todo[run] = partial(self._trained_and_tested, scaling, design, model, seed, run, title)
        for scaling in dict.fromkeys(scaling for scaling, _ in wanted):
            todo[_file_name(guess_at(scaling))] = partial(self._guessed, scaling)
        return todo

    def _trained_and_tested(self, scaling: Scaling, design: Design, model: str, seed: int, run: str, title: str) -> Run:
        self.order.deadline.check()
        network = Network(design, seed)
        material = self.material(scaling)
        training = train(network, material, self.order, seed, self.folder.weights(run), title)
        measured = [errors(network, data) for data in material.tests]
        tests = (_result(scaling, measured),)
        return Run(model, seed, training.validation, training.seconds, tests, learnt=rounded(network.learnt()))

    def _guessed(self, scaling: Scaling) -> Run:
        measured = errors_of_a_guess(scaling, self.size, self.order.seed)
        return Run(guess_at(scaling), self.order.seed, (), 0.0, (_result(scaling, measured),))


def _result(scaling: Scaling, measured: list[Array]) -> SweepResult:
    return SweepResult(scaling.name, scaling.amounts, errors=tuple(rounded(each) for each in measured))


def _file_name(run: str) -> str:
    return "-".join(re.findall(r"[A-Za-z0-9]+", run))


def compute(out: Path | str, order: Order) -> Results:
    config = stimuli(SPATIAL, SPATIAL.amounts[0], "square", order.size.side, order.seed)
    own = {
        "shapes": list(SHAPES),
        "steps": STEPS,
        "background": BACKGROUND,
        "amounts": {scaling.name: list(scaling.amounts) for scaling in SCALINGS},
        "time_constants": list(OCTAVES),
        "sigmas": list(SIGMAS),
    }
    folder = StudyFolder(out, STUDY, order, config, **own)
    runs = Trials(folder).runs()
    guesses = [error for run in runs if run.model.startswith(GUESS) for error in np.ravel(run.tests[0].errors)]
    return folder.finish(summary(guesses), runs)

"""The loop of all studies that train networks: each is trained from each seed, tested at every amount, and kept.

What was kept in the study's folder is not computed again, and a training that was stopped goes on after its last epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from gerd.config.config import Config
from gerd.measures.errors import chance_error
from gerd.measures.statistics import Summary
from gerd.studies.lab.fitting import OutOfTimeError, load_weights, rounded
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Run, Sweep, SweepResult
from gerd.studies.lab.training import Data, Loss, errors, joined, recordings, train
from gerd.studies.models import Channels


@dataclass(frozen=True)
class Network:
    """One kind of network, and how it is trained."""

    build: Callable[[int], Channels]  # from a seed
    loss: Loss
    stimuli: Sequence[Config]  # of its training, in which each has an equal part


class Experiment:
    """Networks on the stimuli `config`.

    The first recordings are for training, the next for validation, and those behind for all of the tests.
    """

    def __init__(self, folder: StudyFolder, config: Config, sweeps: Sequence[Sweep]):
        self.folder = folder
        self.order = folder.order
        self.size = folder.order.size
        self.config = config
        self.sweeps = sweeps
        self._data: dict[str, tuple[Data, Data | None]] = {}  # of the last config that was trained with

    def runs(self, networks: Mapping[str, Network]) -> list[Run]:
        """Train and test what is not yet in the folder: all runs in their order, but for those without time.

        What another process works on comes last, when that one may have finished.
        """
        seeds = range(self.order.seed, self.order.seed + self.size.seeds)
        names = [(model, seed) for model in networks for seed in seeds]
        done: dict[tuple[str, int], Run] = {}
        for wait in (False, True):
            for number, (model, seed) in enumerate(names, 1):
                run = _file_name(model, seed)
                if wait or self.folder.is_free(run):
                    title = f"[{number}/{len(names)}] {model}, seed {seed}"
                    make = partial(self._trained_and_tested, networks[model], model, seed, title)
                    with suppress(OutOfTimeError):
                        done[model, seed] = self.folder.kept(run, Run, make)
        self.folder.missing += len(names) - len(done)
        return [done[name] for name in names if name in done]

    def chance(self, count: int | None = None) -> Summary:
        """The errors of the best answer that is the same for every recording, at the amount of the training."""
        return chance_error(self.config, self.size.first_test, count or self.size.tests, self.size.first_step)

    def trained(self, kind: Network, model: str, seed: int) -> Channels:
        """A network whose training is finished, with its weights from the folder."""
        network = kind.build(seed)
        load_weights(network, self.folder.weights(_file_name(model, seed)), self.order.device)
        return network

    def _trained_and_tested(self, kind: Network, model: str, seed: int, title: str) -> Run:
        self.order.deadline.check()
        network = kind.build(seed)
        weights = self.folder.weights(_file_name(model, seed))
        data, validation = self._training(kind.stimuli)
        training = train(network, data, kind.loss, self.order, seed, weights, title, validation)
        self.order.say(f"{title}: testing")
        tests = tuple(self._tested(network, each) for each in self.sweeps)
        return Run(
            model,
            seed,
            training.losses,
            training.seconds,
            tests,
            learnt=rounded(network.learnt()),
            shares=rounded(network.shares()),
            validation=training.validation,
        )

    def _training(self, stimuli: Sequence[Config]) -> tuple[Data, Data | None]:
        """Recordings for training and for validation; those of one kind of network are on the device at a time."""
        key = " ".join(config.digest for config in stimuli)
        if key not in self._data:
            self._data.clear()
            training = self._shared(stimuli, 0, self.size.training)
            validation = None
            if self.size.validation:
                validation = self._shared(stimuli, self.size.training, self.size.validation)
            self._data[key] = (training, validation)
        return self._data[key]

    def _shared(self, stimuli: Sequence[Config], first: int, count: int) -> Data:
        """The recordings `first` to `first + count - 1`, of which each of the stimuli has an equal part."""
        borders = [first + count * k // len(stimuli) for k in range(len(stimuli) + 1)]
        parts = zip(stimuli, pairwise(borders), strict=True)
        return joined([recordings(config, begin, end - begin, self.order.device) for config, (begin, end) in parts])

    def _tested(self, network: Channels, sweep: Sweep) -> SweepResult:
        measured = []
        for amount in sweep.amounts:
            data, first_step = self.test_data(sweep, amount)
            measured.append(errors(network, data, first_step))
        return SweepResult(
            sweep.name,
            sweep.amounts,
            errors=tuple(rounded(each.fused) for each in measured),
            channels=tuple(rounded(each.channels, 3) for each in measured),
            weights=tuple(rounded(each.weights) for each in measured),
            chance=tuple(rounded(each.chance) for each in measured),
        )

    def test_data(self, sweep: Sweep, amount: float, count: int | None = None) -> tuple[Data, int]:
        """The recordings for the test at this amount, or the first `count`, and the step from which on errors count."""
        config = self.config
        first_step = self.size.first_step
        if sweep.stimuli:
            config = sweep.stimuli(config, amount)
        if sweep.first_step:
            first_step = sweep.first_step(first_step, amount)
        g = sweep.transformation(amount)
        which = sweep.test_recordings(self.size, amount)[:count]
        return recordings(config, which.start, len(which), self.order.device, g), first_step


def _file_name(model: str, seed: int) -> str:
    return f"{'-'.join(re.findall(r'[A-Za-z0-9.]+', model))}-{seed}"

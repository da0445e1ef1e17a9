"""The loop of all studies that train networks: each is trained from each seed, tested at every amount, and kept.

What was kept in the study's folder is not computed again, and a training that was stopped goes on after its last epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gerd.config.config import Config
from gerd.measures.measure import chance_error
from gerd.measures.statistics import Summary
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, Sweep, SweepResult
from gerd.studies.lab.training import Data, Loss, errors, recordings, rounded, train
from gerd.studies.models import Channels


@dataclass(frozen=True)
class Network:
    """One kind of network, and how it is trained."""

    build: Callable[[int], Channels]  # from a seed
    loss: Loss
    config: Config  # the stimuli of its training


class Experiment:
    """Networks on the stimuli `config`: the first recordings are for training, the next for validation, then for tests.

    `held_out` is the number of recordings for validation, and for the test at the amount of the training; without it
    there is no validation, and every test has as many recordings as the study's size says.
    """

    def __init__(self, folder: StudyFolder, config: Config, sweeps: Sequence[Sweep], held_out: int = 0):
        self.folder, self.order, self.size = folder, folder.order, folder.order.size
        self.config, self.sweeps, self.held_out = config, sweeps, held_out
        self.first_test = self.size.training + held_out
        self._data: dict[str, Data] = {}  # of the last config that was trained with

    def run(self, networks: Mapping[str, Network]) -> Results:
        """Train and test what is not yet in the folder."""
        return self.folder.finish(self.chance(), self.runs(networks))

    def runs(self, networks: Mapping[str, Network]) -> list[Run]:
        """All of them, in their order. What another process works on comes last, when that one may have finished."""
        seeds = range(self.order.seed, self.order.seed + self.size.seeds)
        names = [(model, seed) for model in networks for seed in seeds]
        for must in (False, True):
            for number, (model, seed) in enumerate(names, 1):
                if must or self.folder.is_free(_file_name(model, seed)):
                    self._kept(networks[model], model, seed, f"[{number}/{len(names)}] {model}, seed {seed}")
        return [self._kept(networks[model], model, seed, "") for model, seed in names]

    def chance(self) -> Summary:
        """The errors of always saying the mean place, in the test at the amount of the training."""
        return chance_error(self.config, self.first_test, self.held_out or self.size.tests, self.size.first_step)

    def trained(self, kind: Network, model: str, seed: int) -> Channels:
        """A network whose training is finished, from the folder."""
        network = kind.build(seed)
        data = self._training(kind.config)
        train(network, data, kind.loss, self.order, seed, self.folder.weights(_file_name(model, seed)), model)
        return network

    def _kept(self, kind: Network, model: str, seed: int, title: str) -> Run:
        make = partial(self._trained_and_tested, kind, model, seed, title)
        return self.folder.kept(_file_name(model, seed), Run, make)

    def _trained_and_tested(self, kind: Network, model: str, seed: int, title: str) -> Run:
        data, network, training = self._training(kind.config), kind.build(seed), self.size.training
        weights = self.folder.weights(_file_name(model, seed))
        losses, seconds = train(network, data[:training], kind.loss, self.order, seed, weights, title)
        validation = ()
        if self.held_out:
            validated = errors(network, data[training:], self.size.first_step).fused
            self.order.say(f"{title}: {validated.mean():.2f} px on the validation part")
            validation = rounded(validated)
        tests = tuple(self._tested(network, each) for each in self.sweeps)
        return Run(model, seed, losses, seconds, tests, validation, rounded(network.learnt()))

    def _training(self, config: Config) -> Data:
        """The recordings for training and validation; those of one config are on the device at a time."""
        if config.digest not in self._data:
            self._data.clear()
            self._data[config.digest] = recordings(config, 0, self.first_test, self.order.device)
        return self._data[config.digest]

    def _tested(self, network: Channels, sweep: Sweep) -> SweepResult:
        measured = []
        for amount in sweep.amounts:
            count = self.held_out if self.held_out and amount == sweep.trained else self.size.tests
            data, first_step = self.test_data(sweep, amount, count)
            measured.append(errors(network, data, first_step))
        return SweepResult(
            sweep.name,
            sweep.amounts,
            errors=tuple(rounded(each.fused) for each in measured),
            channels=tuple(rounded(each.channels, 3) for each in measured),
            weights=tuple(rounded(each.weights) for each in measured),
        )

    def test_data(self, sweep: Sweep, amount: float, count: int) -> tuple[Data, int]:
        """The first `count` recordings for the test at this amount, and the step from which on errors count."""
        config = sweep.stimuli(self.config, amount) if sweep.stimuli else self.config
        first_step = self.size.first_step
        first_step = sweep.first_step(first_step, amount) if sweep.first_step else first_step
        g = sweep.transformation(amount)
        return recordings(config, self.first_test, count, self.order.device, g), first_step


def _file_name(model: str, seed: int) -> str:
    return f"{'-'.join(re.findall(r'[A-Za-z0-9.]+', model))}-{seed}"

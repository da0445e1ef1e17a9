"""What a study finds, and how it stands in results.json: the fields of `Results`, by their names.

Amounts are in the order in which they were tested, and so is what was measured at them. Errors are in pixels, seconds
are those of the training.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from gerd.config.config import Config
from gerd.config.document import PlainData
from gerd.errors import GerdError
from gerd.measures.curves import Curve
from gerd.measures.statistics import Summary
from gerd.scene.transformation import Transformation
from gerd.studies.lab.training import Size

Numbers = tuple[float, ...]
Table = tuple[Numbers, ...]


@dataclass(frozen=True)
class Sweep:
    """A transformation, and the amounts of it at which networks are tested.

    Where they are not the same for all amounts, `stimuli` gives the config to transform, `first_step` the step from
    which on errors count, and `which` the numbers of the recordings.
    """

    name: str
    amounts: Numbers
    transformation: Callable[[float], Transformation]
    trained: float  # the amount in the training
    stimuli: Callable[[Config, float], Config] | None = None
    first_step: Callable[[int, float], int] | None = None
    which: Callable[[Size, float], range] | None = None

    def test_recordings(self, size: Size, amount: float) -> range:
        """The numbers of the recordings for the test at an amount."""
        return self.which(size, amount) if self.which else range(size.first_test, size.first_test + size.tests)


@dataclass(frozen=True)
class SweepResult:
    """One network at several amounts of one transformation; what a study does not measure is empty."""

    sweep: str  # the name of what was changed
    amounts: Numbers
    errors: Table  # (amounts, recordings): distances from the truth
    channels: tuple[Table, ...] = ()  # (amounts, channels, recordings): distances of each channel alone
    weights: tuple[Table, ...] = ()  # (amounts, channels, recordings): the mean share of a channel
    chance: Table = ()  # (amounts, recordings): the errors of the best answer that is the same for every recording
    absolute: Table = ()  # (amounts, recordings): the equivariance error, in pixels
    apart: Table = ()  # (amounts, recordings): how far the transformed answer is from the mean of all, in pixels
    alone: Table = ()  # (amounts, recordings): the share of events without a counterpart; empty where none can be had
    events: Table = ()  # (amounts, recordings): how many events were compared
    different: int | None = None  # recordings of which the network says something else than of most


@dataclass(frozen=True)
class Run:
    """One network, trained from one seed."""

    model: str
    seed: int
    losses: Numbers  # the mean of each epoch
    seconds: float
    tests: tuple[SweepResult, ...]
    learnt: Numbers = ()  # the middle time constant of each layer, where it is learnt
    shares: Numbers = ()  # of each channel in the answer, where they are learnt and the same for all inputs
    validation: Numbers = ()  # the mean error in pixels after each epoch, where recordings for validation choose one

    def test(self, sweep: Sweep) -> SweepResult:
        return next(test for test in self.tests if test.sweep == sweep.name)


@dataclass(frozen=True)
class Example:
    """What one network says of one recording, step by step."""

    amount: float  # of the transformation
    heat: tuple[str, ...]  # the fused heat map of each step, as bytes (rows · columns) in base 64, the largest 255
    rows: int
    columns: int
    places: Table  # (steps, 2): in pixels
    truth: Table
    shares: Table  # (steps, channels)


@dataclass(frozen=True)
class Settings:
    """What the numbers depend on."""

    study: str
    seed: int
    size: Size
    config: str  # the digest of the stimuli
    own: dict[str, PlainData]  # what only this study has

    def flat(self) -> dict[str, object]:
        """Every setting by its name."""
        return {"study": self.study, "seed": self.seed, "config": self.config, **asdict(self.size), **self.own}

    @property
    def digest(self) -> str:
        """sha256 over every setting; as long as it stays, the same command asks for the same numbers."""
        return hashlib.sha256(json.dumps(self.flat(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Made:
    """What the numbers were made by."""

    date: str
    command: str
    device: str
    seconds: float
    versions: dict[str, str]


@dataclass(frozen=True)
class Results:
    """Everything that a study has found."""

    settings: Settings
    made: Made
    chance: Summary  # the errors of the best answer that is the same for every recording, at the training's amount
    runs: tuple[Run, ...]
    examples: tuple[Example, ...] = ()
    missing: int = 0  # networks for which there was no time

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(run.model for run in self.runs))

    def of(self, model: str) -> list[Run]:
        """The runs of one model, in the order of their seeds."""
        runs = [run for run in self.runs if run.model == model]
        if not runs:
            raise GerdError(f"the results have no network {model!r}; allowed: {', '.join(self.models) or 'none'}")
        return runs

    def curve(self, model: str, sweep: Sweep, beside: str | None = None) -> Curve:
        """The errors of a model, (seeds, recordings) at each amount; of the seeds that the model `beside` has, too."""
        seeds = {run.seed for run in self.of(beside or model)}
        tests = [run.test(sweep) for run in self.of(model) if run.seed in seeds]
        pooled = tuple(np.array(errors) for errors in zip(*(test.errors for test in tests), strict=True))
        chance = tuple(np.array(errors) for errors in tests[0].chance)  # of the same recordings in all trainings
        return Curve(tests[0].amounts, pooled, sweep.trained, chance)

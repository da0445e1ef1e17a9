"""A run of the benchmark: a task and a network in; a folder with results.json out, and what it was made of.

settings.json    what the numbers depend on; a folder goes on only with the same settings
runs/            the weights of each seed (seed-0.pt), and what is finished: data, errors, local equivariance errors
results.json     the result

The same command goes on where it was stopped.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gerd.bench.digests import digest, expected_digest
from gerd.bench.examples import Examples, examples_of
from gerd.bench.factor_table import Factor, factors
from gerd.bench.findings import Outcome, factor_result, number_of, transformation_error
from gerd.bench.metrics import METRICS
from gerd.bench.models import Network, answer, candidate, cost, load_checkpoint, weights_digest
from gerd.bench.reference import WHY_NONE, WHY_NOT_QUICK, reference_errors
from gerd.bench.results import (
    BENCHMARK,
    BenchResult,
    Cost,
    FactorResult,
    LieResult,
    Made,
    Number,
    Regime,
    SeedResult,
    SplitUsed,
    write_result,
)
from gerd.bench.split_table import Split, splits
from gerd.bench.symmetry import check_layer, lie_results
from gerd.bench.task_table import task as task_named
from gerd.bench.training import Material, errors, train
from gerd.errors import GerdError
from gerd.measures.named import source_of
from gerd.studies.lab.fitting import Deadline, Say, Training
from gerd.studies.lab.kept import RunFolder, check_same, read_data, write_data
from gerd.version import __version__

Row = tuple[float | None, ...]  # a number for each recording; none where nothing in it counts
LOOKED_AT = 2  # recordings on which the shape of an answer is tried
LIE_COUNT = {False: 64, True: 16}  # recordings of a local equivariance error; True: quick
NEUTRAL = "test"  # the split in which nothing is changed


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    task: str
    model: str  # a baseline, or module:function
    regime: Regime = "one"
    quick: bool = False
    seeds: int = 1
    training: bool = False
    checkpoints: tuple[Path, ...] = ()  # one for each seed, where nothing is trained
    layers: tuple[str, ...] = ()  # whose local equivariance errors are wanted, too
    device: str = "cpu"
    command: str = ""

    def settings(self) -> dict[str, object]:
        """What the numbers depend on; seeds and layers may be added to a folder."""
        source = source_of(self.model) if ":" in self.model else None
        return {
            "benchmark": BENCHMARK,
            "gerd": __version__,
            "task": self.task,
            "regime": self.regime,
            "quick": self.quick,
            "model": self.model,
            "model_sha256": None if source is None else _sha256_of(source),
            "training": self.training,
            "checkpoints": [_sha256_of(file) for file in self.checkpoints],
        }


@dataclass(frozen=True)
class Kept:
    """The file settings.json."""

    settings: dict[str, object]


@dataclass(frozen=True)
class Data:
    """What is kept of the recordings of a split."""

    sha256: str
    chance: Row = ()


@dataclass(frozen=True)
class Errors:
    """What is kept of the networks of all seeds on one split."""

    errors: tuple[Row, ...]


@dataclass(frozen=True)
class Lie:
    """What is kept of local equivariance errors."""

    found: tuple[LieResult, ...]


def run(wish: Wish, out: Path | str, *, minutes: float | None = None, say: Say = print) -> BenchResult:
    """Compute what is not yet in the folder `out`, and write results.json there."""
    return _Running(wish, Path(out), Deadline.after(minutes), say).result()


class _Running:
    """One run, from the wish to the result."""

    def __init__(self, wish: Wish, out: Path, deadline: Deadline, say: Say):
        self.wish, self.deadline, self.say = wish, deadline, say
        self.task = task_named(wish.task)
        self.splits = splits(wish.task, wish.quick, wish.regime)
        self.kind = candidate(wish.model, self.task)
        self.seeds = range(len(wish.checkpoints) or wish.seeds)
        self._check_answer()
        self.folder = RunFolder(out)
        file = out / "settings.json"
        settings = wish.settings()
        if file.exists():
            check_same(out, settings, read_data(file, Kept).settings)
        write_data(Kept(settings), file)

    def _check_answer(self) -> None:
        """An error at once if the network cannot answer, or if nothing says which weights it has."""
        network = self.kind.build(0)
        has_weights = isinstance(network, torch.nn.Module) and any(True for _ in network.parameters())
        if has_weights and not (self.wish.training or self.wish.checkpoints):
            raise GerdError(f"{self.wish.model}: has weights; allowed: --train, or --checkpoint with trained ones")
        if not has_weights and (self.wish.training or self.wish.checkpoints):
            option = "--train" if self.wish.training else "--checkpoint"
            raise GerdError(f"{option}: {self.wish.model} has no weights; leave it out")
        for file in self.wish.checkpoints:
            load_checkpoint(network, self.wish.model, file)
        some = self._examples(NEUTRAL, LOOKED_AT)
        answer(_on(network, self.wish.device), some, self.task)
        for layer in self.wish.layers:
            check_layer(network, self.task, layer, some.inputs)

    def result(self) -> BenchResult:
        """Everything, of which nothing is computed twice."""
        trainings = {seed: self._training(seed) for seed in self.seeds}
        tested = {split.name: self._tested(split) for split in self._tests()}
        seeds = tuple(self._seed_result(seed, trainings[seed]) for seed in self.seeds)
        spent = self.folder.kept("cost", Cost, self._cost)
        by_factor = {factor.name: self._amounts(factor, tested) for factor in factors()}
        found = self._transformation_error(by_factor)
        result = BenchResult(
            benchmark=BENCHMARK,
            gerd=__version__,
            quick=self.wish.quick,
            task=self.task.name,
            regime=self.wish.regime,
            model=self.wish.model,
            unit=self.task.unit,
            seeds=seeds,
            neutral=number_of(tested[NEUTRAL].errors),
            chance=round(float(tested[NEUTRAL].chance.mean()), 6),
            factors=tuple(self._factor_result(factor, by_factor[factor.name]) for factor in factors()),
            transformation_error=found if isinstance(found, Number) else None,
            why_no_transformation_error=found if isinstance(found, str) else None,
            cost=spent,
            splits=tuple(self._split_used(split) for split in self._used()),
            made=self._made(),
        )
        write_result(result, self.folder.path / "results.json")
        return result

    def _used(self) -> Iterator[Split]:
        return (split for split in self.splits if self.wish.training or split.kind == "test")

    def _tests(self) -> Iterator[Split]:
        return (split for split in self.splits if split.kind == "test")

    def _examples(self, name: str, count: int | None = None) -> Examples:
        (found,) = examples_of([split for split in self.splits if split.name == name], self.wish.device, count)
        return found

    def _training(self, seed: int) -> Training:
        """What the training of a seed was like; the weights are in the folder."""
        if not self.wish.training:
            return Training((), (), 0.0)
        return self.folder.kept(f"training-{seed}", Training, partial(self._trained, seed))

    def _trained(self, seed: int) -> Training:
        return train(
            self.kind.build(seed),
            self.kind,
            self.task,
            self._material,
            seed,
            self.folder.weights(f"seed-{seed}"),
            quick=self.wish.quick,
            device=self.wish.device,
            deadline=self.deadline,
            say=self.say,
        )

    @cached_property
    def _material(self) -> Material:
        """The recordings for training and validation, once they are known to be the right ones."""
        parts = {}
        for kind in ("train", "validate"):
            chosen = [split for split in self.splits if split.kind == kind]
            self.say(f"{self.task.name}: making {sum(split.count for split in chosen)} recordings to {kind}")
            for split in chosen:
                self._data(split)
            parts[kind] = examples_of(chosen, self.wish.device)
        return Material(parts["train"], parts["validate"])

    def _data(self, split: Split, examples: Examples | None = None) -> Data:
        """The digest of a split, which has to be the expected one, and of a test the errors of chance."""

        def made() -> Data:
            found = digest(split, self.wish.device)
            if found != expected_digest(split):
                raise GerdError(
                    f"{split.key}: its sha256 is {found[:12]}… and should be {expected_digest(split)[:12]}…; these are "
                    "not the recordings of the benchmark"
                )
            return Data(found, () if examples is None else _row(METRICS[self.task.name].chance(examples)))

        return self.folder.kept(f"data-{_file_name(split)}", Data, made)

    def _network(self, seed: int) -> Network:
        """The network of a seed with the weights that are tested."""
        network = self.kind.build(seed)
        if self.wish.training:
            load_checkpoint(network, self.wish.model, self.folder.weights(f"seed-{seed}"))
        elif self.wish.checkpoints:
            load_checkpoint(network, self.wish.model, self.wish.checkpoints[seed])
        return _on(network, self.wish.device)

    @cached_property
    def _networks(self) -> list[Network]:
        return [self._network(seed) for seed in self.seeds]

    def _tested(self, split: Split) -> Outcome:
        """All networks on one split."""
        self.deadline.check()

        def made() -> Errors:
            examples = self._examples(split.name)
            self._data(split, examples)
            self.say(f"{self.task.name}, {self.wish.model}: testing on {split.name}")
            return Errors(tuple(_row(errors(network, self.task, examples)) for network in self._networks))

        found = self.folder.kept(f"errors-of-{len(self.seeds)}-{_file_name(split)}", Errors, made)
        return Outcome.of(np.array(found.errors, np.float64), np.array(self._data(split).chance, np.float64))

    def _amounts(self, factor: Factor, tested: dict[str, Outcome]) -> dict[float, Outcome]:
        names = {split.amount: split.name for split in self._tests() if split.factor == factor.name}
        names[factor.neutral] = NEUTRAL
        return {amount: tested[names[amount]] for amount in factor.amounts if amount in names}

    def _factor_result(self, factor: Factor, tested: dict[float, Outcome]) -> FactorResult:
        trained = (factor.neutral,) if self.wish.regime == "one" else (factor.neutral, *factor.inner)
        return factor_result(factor.name, factor.unit, factor.neutral, tuple(sorted(trained)), tested)

    def _transformation_error(self, tested: dict[str, dict[float, Outcome]]) -> Number | str:
        """The mTE, or why there is none."""
        if self.wish.quick:
            return WHY_NOT_QUICK
        reference = reference_errors(self.task.name, self.wish.regime)
        return WHY_NONE if reference is None else transformation_error(tested, reference)

    def _seed_result(self, seed: int, training: Training) -> SeedResult:
        network = self._networks[seed]
        lie: list[LieResult] = []
        for layer in ("", *self.wish.layers):
            run = f"lie-{seed}{f'-{layer}' if layer else ''}"
            lie += self.folder.kept(run, Lie, partial(self._lie, seed, layer)).found
        return SeedResult(seed, weights_digest(network), training.seconds, training.validation, tuple(lie))

    def _lie(self, seed: int, layer: str) -> Lie:
        self.deadline.check()
        neutral = next(split for split in self.splits if split.name == NEUTRAL)
        self.say(
            f"{self.task.name}, {self.wish.model}, seed {seed}: local equivariance errors{f' of {layer}' * bool(layer)}"
        )
        return Lie(
            lie_results(self._networks[seed], self.task, neutral, LIE_COUNT[self.wish.quick], self.wish.device, layer)
        )

    def _cost(self) -> Cost:
        return cost(self._networks[0], self._examples(NEUTRAL), self.task, self.wish.device)

    def _split_used(self, split: Split) -> SplitUsed:
        return SplitUsed(split.name, split.config.digest, self._data(split).sha256, split.count)

    def _made(self) -> Made:
        versions = {
            "gerd": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        return Made(time.strftime("%Y-%m-%d"), self.wish.command, self.wish.device, versions)


def _on(network: Network, device: str) -> Network:
    return network.to(device).eval() if isinstance(network, torch.nn.Module) else network


def _file_name(split: Split) -> str:
    return split.name.replace("/", "-")


def _row(values: NDArray[np.float64]) -> Row:
    return tuple(None if np.isnan(each) else round(float(each), 6) for each in values)


def _sha256_of(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise GerdError(f"{file}: cannot be read: {error.strerror}") from None

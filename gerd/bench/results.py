"""What a run of the benchmark has found, as plain data; results.json is this, and is read with every number checked.

Errors are means over recordings; intervals are 95 % bootstrap intervals over recordings. `of_seeds` of a factor are the
networks of each seed alone, everything else is of all seeds together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from gerd.errors import GerdError
from gerd.measures.curves import Verdict
from gerd.measures.statistics import LEAST
from gerd.studies.lab.kept import read_data, write_data

Interval = tuple[float, float]
BENCHMARK = "gerd-bench-1"  # the name of the benchmark with its version
BOUND = 1.5  # by which factor an error may vary that is called invariant
LEARNT = 0.75  # of the error of chance: a network whose error is not surely below that has learnt next to nothing
CLOSE = 1e-6  # relative: rounding of what was made of other numbers of the file
Regime = Literal["one", "inner"]


@dataclass(frozen=True)
class Number:
    """A mean or what is made of means, over so many recordings."""

    value: float
    interval: Interval
    count: int


@dataclass(frozen=True)
class FactorResult:
    """Errors against the amounts of one factor."""

    factor: str
    unit: str
    neutral: float
    trained: tuple[float, ...]  # the amounts that the training has seen
    amounts: tuple[float, ...]
    errors: tuple[Number, ...]  # one for each amount, as all that follow
    of_seeds: tuple[tuple[Number, ...], ...]  # for each seed one for each amount
    chance: tuple[float, ...]  # the mean error of the best answer that is the same for every recording
    at_chance: tuple[float, ...]  # the amounts at which the network of some seed is not surely better than that
    ratio: Number  # the largest error over the smallest
    verdict: Verdict


@dataclass(frozen=True)
class LieResult:
    """The local equivariance error for one generator; it is for the seed's network, or for a layer of it."""

    generator: str
    unit: str  # of the generator: the error is per unit of it
    absolute: Number
    relative: Number | None
    why_nothing: str | None
    layer: str = ""  # empty: the network's answer


@dataclass(frozen=True)
class SeedResult:
    """The network of one seed."""

    seed: int
    weights: str  # sha256 of its weights
    seconds: float  # of its training; 0: it was trained elsewhere
    validation: tuple[float, ...]  # errors after each epoch
    lie: tuple[LieResult, ...]


@dataclass(frozen=True)
class SplitUsed:
    """A split as it was made for this run."""

    name: str
    config: str  # the digest of its config
    sha256: str  # of its recordings
    count: int


@dataclass(frozen=True)
class Cost:
    """What the network takes."""

    parameters: int
    operations: int  # of a recording: two for each multiplication with an addition in products and convolutions
    seconds: float  # for a recording, in a batch
    batch: int
    machine: str
    steps: int  # of the recording


@dataclass(frozen=True)
class Made:
    """What the numbers were made by."""

    date: str
    command: str
    device: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class BenchResult:
    """Everything that a run has found."""

    benchmark: str
    gerd: str
    quick: bool
    task: str
    regime: Regime
    model: str
    unit: str  # of the errors
    seeds: tuple[SeedResult, ...]
    neutral: Number  # the error where nothing is changed
    chance: float
    factors: tuple[FactorResult, ...]
    transformation_error: Number | None  # mTE
    why_no_transformation_error: str | None
    cost: Cost
    splits: tuple[SplitUsed, ...]
    made: Made

    def factor(self, name: str) -> FactorResult:
        """The errors against one factor."""
        for each in self.factors:
            if each.factor == name:
                return each
        raise GerdError(f"factor {name!r}: allowed: {', '.join(each.factor for each in self.factors)}")

    @property
    def is_at_chance(self) -> bool:
        """Whether some network has learnt nothing: whether it is at chance where nothing is changed."""
        first = self.factors[0]
        return first.neutral in first.at_chance


def verdict_of(ratio: Number, neutral: float, at_chance: Sequence[float]) -> Verdict:
    """Whether an error varies by no more than BOUND; a network that has learnt nothing is at chance and no more."""
    low, high = ratio.interval
    if ratio.count < LEAST:
        return "too few recordings"
    if neutral in at_chance:
        return "at chance"
    if low > BOUND:
        return "not invariant"
    if at_chance:
        return "at chance"
    return "invariant" if high <= BOUND else "undecided"


def write_result(result: BenchResult, file: Path) -> None:
    """Write results.json."""
    write_data(result, file)


def read_result(file: Path | str) -> BenchResult:
    """The results in a file, if every number in it can be one."""
    path = Path(file)
    result = read_data(path, BenchResult)
    try:
        check_numbers(result)
    except GerdError as error:
        raise GerdError(f"{path}: {error}") from None
    return result


def check_numbers(result: BenchResult) -> None:
    """An error if a number cannot be what it is said to be, or contradicts another one."""
    for place, value in _numbers(result, "all"):
        if not math.isfinite(value):
            raise GerdError(f"{place}: is {value}; allowed: a finite number")
    if result.benchmark != BENCHMARK:
        raise GerdError(f"benchmark {result.benchmark!r}: allowed: {BENCHMARK}")
    if not result.seeds:
        raise GerdError("seeds: are none; allowed: one or more")
    if len({each.weights for each in result.seeds}) < len({each.seed for each in result.seeds}) > 1 and _learns(result):
        raise GerdError("seeds: some have the same weights; allowed: networks that were trained one by one")
    for factor in result.factors:
        _check_factor(factor, result)


def _learns(result: BenchResult) -> bool:
    return result.cost.parameters > 0


def _check_factor(factor: FactorResult, result: BenchResult) -> None:
    place = f"factors.{factor.factor}"
    rows = {
        "errors": factor.errors,
        "chance": factor.chance,
        **{f"of_seeds.{k}": each for k, each in enumerate(factor.of_seeds)},
    }
    for name, row in rows.items():
        if len(row) != len(factor.amounts):
            raise GerdError(f"{place}.{name}: has {len(row)} numbers; allowed: one for each of {len(factor.amounts)}")
    if len(factor.of_seeds) != len(result.seeds):
        raise GerdError(f"{place}.of_seeds: are {len(factor.of_seeds)}; allowed: one for each of {len(result.seeds)}")
    most = 1.0 if result.unit == "" else math.inf
    for name, numbers in (("errors", factor.errors), *((f"of_seeds.{k}", e) for k, e in enumerate(factor.of_seeds))):
        for amount, number in zip(factor.amounts, numbers, strict=True):
            _check_error(f"{place}.{name} at {amount:g}", number, most)
    for amount, mean, seeds in zip(factor.amounts, factor.errors, zip(*factor.of_seeds, strict=True), strict=True):
        expected = sum(each.value for each in seeds) / len(seeds)
        if not _same(mean.value, expected):
            raise GerdError(
                f"{place}.errors at {amount:g}: is {mean.value:g}, and the mean of the seeds is {expected:g}"
            )
    values = [each.value for each in factor.errors]
    if min(values) > 0 and not _same(factor.ratio.value, max(values) / min(values)):
        raise GerdError(f"{place}.ratio: is {factor.ratio.value:g}, and the errors say {max(values) / min(values):g}")
    at_neutral = factor.errors[factor.amounts.index(factor.neutral)] if factor.neutral in factor.amounts else None
    if at_neutral is None or not _same(at_neutral.value, result.neutral.value):
        raise GerdError(f"{place}.errors: at the neutral amount it is another number than for the other factors")
    if verdict_of(factor.ratio, factor.neutral, factor.at_chance) != factor.verdict:
        said = verdict_of(factor.ratio, factor.neutral, factor.at_chance)
        raise GerdError(f"{place}.verdict: is {factor.verdict}, and the numbers say {said}")
    for amount, chance, seeds in zip(factor.amounts, factor.chance, zip(*factor.of_seeds, strict=True), strict=True):
        if amount not in factor.at_chance and max(each.value for each in seeds) >= LEARNT * chance:
            raise GerdError(f"{place}.at_chance: {amount:g} is missing, where the error is as large as that of chance")


def _check_error(place: str, number: Number, most: float) -> None:
    low, high = number.interval
    if not 0 <= low <= high <= most or not 0 <= number.value <= most:
        raise GerdError(f"{place}: is {number.value:g} ({low:g} to {high:g}); allowed: an error, with its interval")
    margin = CLOSE * max(1.0, number.value)
    if not low - margin <= number.value <= high + margin:
        raise GerdError(f"{place}: {number.value:g} is outside of its own interval, {low:g} to {high:g}")
    if number.count < 1:
        raise GerdError(f"{place}: is of {number.count} recordings; allowed: one or more")


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4)


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """Every number in the data, with the path to it."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _numbers(getattr(value, field.name), f"{place}.{field.name}".removeprefix("all."))
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            yield from _numbers(each, f"{place}.{number}")
    elif isinstance(value, float | int) and not isinstance(value, bool):
        yield place, value

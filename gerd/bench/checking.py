"""Whether results.json can be believed as far as that can be seen: a file in, what was checked out, or an error.

Without the weights: are its data those of the benchmark, and can its numbers be true? With them: does a random part,
computed again, give the same?
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from gerd.bench.digests import digest, expected_digest
from gerd.bench.examples import examples_of
from gerd.bench.factor_table import factors
from gerd.bench.findings import Outcome
from gerd.bench.metrics import METRICS
from gerd.bench.models import candidate, load_checkpoint, weights_digest
from gerd.bench.results import BenchResult, FactorResult, read_result
from gerd.bench.split_table import Split, splits
from gerd.bench.task_table import task as task_named
from gerd.bench.training import errors
from gerd.errors import GerdError, counted
from gerd.studies.lab.fitting import Say

PART = 3  # splits that are computed again
CLOSE = 0.01  # of chance: by how much errors may differ that were computed on another machine


def check(file: Path | str, checkpoint: Path | None = None, *, model: str | None = None, part: int = PART,
          seed: int | None = None, device: str = "cpu", say: Say = print) -> BenchResult:  # fmt: skip
    """What a file of results says, if nothing in it is wrong.

    checkpoint: weights of one of its seeds, with which `part` splits are computed again, which `seed` chooses.
    model: what builds the network, if it is called otherwise here.
    """
    path = Path(file)
    result = read_result(path)
    try:
        expected = {each.name: each for each in splits(result.task, result.quick, result.regime)}
        check_data(result, expected)
        say(f"{path}: its numbers agree, and its {len(result.splits)} splits are those of the benchmark")
        if checkpoint is not None:
            _check_again(result, expected, checkpoint, model or result.model, part, seed, device, say)
    except GerdError as error:
        raise GerdError(f"{path}: {error}") from None
    return result


def check_data(result: BenchResult, expected: dict[str, Split]) -> None:
    """An error unless splits, factors and amounts are those of the benchmark."""
    used = {each.name: each for each in result.splits}
    tests = {name: split for name, split in expected.items() if split.kind == "test"}
    for name in {**tests, **used}:
        if name not in used or name not in expected:
            raise GerdError(f"splits: {name} is {'missing' if name in expected else 'not of the benchmark'}")
        split, made = expected[name], used[name]
        if made.config != split.config.digest:
            raise GerdError(f"splits.{name}: its config is another one, {made.config[:12]}…")
        if made.sha256 != expected_digest(split):
            raise GerdError(f"splits.{name}: its recordings are others, sha256 {made.sha256[:12]}…")
        if made.count != split.count:
            raise GerdError(f"splits.{name}: has {made.count} recordings; allowed: {split.count}")
    if [each.factor for each in result.factors] != [each.name for each in factors()]:
        raise GerdError(f"factors: allowed: {', '.join(each.name for each in factors())}, in this order")
    for found in result.factors:
        amounts = _amounts(found.factor, expected)
        if list(found.amounts) != sorted(amounts):
            said, allowed = (", ".join(f"{amount:g}" for amount in each) for each in (found.amounts, sorted(amounts)))
            raise GerdError(f"factors.{found.factor}: has the amounts {said}; allowed: {allowed}")
        for amount, number in zip(found.amounts, found.errors, strict=True):
            if number.count > expected[amounts[amount]].count:
                raise GerdError(f"factors.{found.factor} at {amount:g}: is of {number.count} recordings: too many")


def _amounts(factor: str, expected: dict[str, Split]) -> dict[float, str]:
    """The split of each amount of a factor."""
    neutral = next(each.neutral for each in factors() if each.name == factor)
    tests = {split.amount: name for name, split in expected.items() if split.factor == factor and split.kind == "test"}
    return {neutral: "test", **{amount: name for amount, name in tests.items() if amount is not None}}


def _check_again(result: BenchResult, expected: dict[str, Split], checkpoint: Path, model: str, part: int,
                 seed: int | None, device: str, say: Say) -> None:  # fmt: skip
    """An error unless a random part of the numbers comes out again."""
    task = task_named(result.task)
    kind = candidate(model, task)
    network = kind.build(0)
    load_checkpoint(network, model, checkpoint)
    if hasattr(network, "to"):
        network.to(device)
    weights = weights_digest(network)
    numbers = [number for number, each in enumerate(result.seeds) if each.weights == weights]
    if not numbers:
        raise GerdError(f"{checkpoint}: has the sha256 {weights[:12]}…, and the results are of other weights")
    seed = random.randrange(2**31) if seed is None else seed
    cells = [(found, amount) for found in result.factors for amount in found.amounts]
    chosen = random.Random(seed).sample(cells, min(part, len(cells)))
    for found, amount in chosen:
        split = expected[_amounts(found.factor, expected)[amount]]
        if digest(split, device) != expected_digest(split):
            raise GerdError(f"{split.key}: this machine makes other recordings; nothing can be checked on it")
        (examples,) = examples_of([split], device)
        tested = Outcome.of(errors(network, task, examples)[None], METRICS[task.name].chance(examples))
        _compare(found, amount, numbers[0], tested)
        say(f"{split.name}: {counted(split.count, 'recording')} made again, with the same sha256, error and chance")
    say(f"{counted(len(chosen), 'number')} of {len(cells)} came out again; --seed {seed} chooses the same ones")


def _compare(found: FactorResult, amount: float, seed: int, tested: Outcome) -> None:
    at = found.amounts.index(amount)
    error, chance = float(tested.errors.mean()), float(np.mean(tested.chance))
    pairs = (("error", found.of_seeds[seed][at].value, error), ("chance", found.chance[at], chance))
    for what, said, again in pairs:
        if abs(said - again) > CLOSE * chance:
            place = f"factors.{found.factor} at {amount:g}"
            raise GerdError(f"{place}: the {what} is said to be {said:g}, and computed again it is {again:g}")

"""The splits of a task: which recordings are for training, for validation and for each test.

A split is a config and a number of recordings, those with the indices from 0 on. The seed says what they are for, so
that training, validation and test have no draw in common, and the camera has a number of its own in each. All tests
have one seed: at each amount of each factor they show the same scenes with the same noise, and differ in that alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

from gerd.bench import task_table
from gerd.bench.factor_table import Factor, factors
from gerd.bench.frozen import read_frozen
from gerd.bench.task_table import Task
from gerd.calls import explained
from gerd.config.config import Config
from gerd.errors import GerdError, did_you_mean, shorten

if TYPE_CHECKING:
    from gerd.training.stream import Stream

REGIMES = ("one", "inner")
KINDS = ("train", "validate", "test")
NEUTRAL = "neutral"


@dataclass(frozen=True)
class Split:
    """Some recordings of a task that belong together."""

    task: str
    name: str  # train-one, train-inner/rotation/15, validate-one, test, test/rotation/60
    kind: str  # train, validate or test
    regime: str | None  # one or inner; a test belongs to both
    quick: bool
    config: Config = field(repr=False)
    count: int  # of recordings: the indices from 0 on
    factor: str | None  # what is not neutral
    amount: float | None  # and how much of it there is

    @property
    def key(self) -> str:
        """A name that no other split has: locate/test/rotation/60, quick/locate/test/rotation/60."""
        return f"{'quick/' if self.quick else ''}{self.task}/{self.name}"

    @cached_property
    def steps(self) -> int:
        """The length of its recordings."""
        return self.config.in_steps.steps

    @property
    def first_step(self) -> int | None:
        """The first step that counts, in steps of its recordings; None: an answer is of a whole recording."""
        first = task_table.task(self.task).first_step
        return None if first is None else ceil(first / self.config.rate)


@explained
def splits(task: str, quick: bool = False, regime: str = "one") -> tuple[Split, ...]:
    """Those that a regime has: for training, for validation, and all tests.

    In the regime `one` training sees the neutral amounts alone, in one split. In the regime `inner` there is a split
    for each inner amount of each factor, and one that is neutral, and together they have as many recordings.
    """
    if regime not in REGIMES:
        raise GerdError(f"regime {shorten(regime)}: {did_you_mean([regime], REGIMES)}allowed: {', '.join(REGIMES)}")
    return _splits(task_table.task(task).name, bool(quick), regime)


def all_splits(task: str, quick: bool = False) -> tuple[Split, ...]:
    """Those of all regimes, each once."""
    return tuple({split.name: split for regime in REGIMES for split in splits(task, quick, regime)}.values())


@explained
def split(task: str, name: str, quick: bool = False) -> Split:
    """The split of this name."""
    return _named(task, name, bool(quick))


@explained
def stream(task: str, split: str | Split, batch_size: int, device: str = "cpu", quick: bool = False) -> Stream:
    """Batches of a split, the items and labels of which are those of the task.

    It has `count / batch_size` of them: `stream.batch(k)`. What a loop over the stream gives after these is not of
    the split.
    """
    from gerd.training.stream import Stream

    chosen = split if isinstance(split, Split) else _named(task, split, bool(quick))
    about = task_table.task(task)
    if chosen.task != about.name:
        raise GerdError(f"split {chosen.name}: is one of {chosen.task}, not of {about.name}")
    result = Stream(chosen.config, batch_size, about.item, about.label, device=device)
    if chosen.count % batch_size:
        fit = [size for size in range(1, chosen.count + 1) if chosen.count % size == 0]
        allowed = f"a number that divides the {chosen.count} recordings of {chosen.name}: {', '.join(map(str, fit))}"
        raise GerdError(f"batch_size {batch_size}: allowed: {allowed}")
    return result


def _named(task: str, name: str, quick: bool) -> Split:
    known = {each.name: each for each in all_splits(task, quick)}
    if isinstance(name, str) and name in known:
        return known[name]
    below = [other for other in known if other.startswith(f"{name}/")]
    hint = f"it has parts, from {below[0]} to {below[-1]}; " if below else did_you_mean([name], known)
    where = f"gerd.bench.splits({task!r}{', quick=True' if quick else ''})"
    raise GerdError(f"{task}: split {shorten(name)}: {hint}allowed: the names of {where}")


@lru_cache
def _splits(name: str, quick: bool, regime: str) -> tuple[Split, ...]:
    return tuple(_Making(task_table.task(name), quick, regime).all())


@dataclass(frozen=True)
class _Making:
    """Splits in the making, of a task at a size."""

    task: Task
    quick: bool
    regime: str

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Counts, seeds and cameras."""
        numbers: dict[str, Any] = read_frozen("splits.yaml")["quick" if self.quick else "full"]
        return numbers

    def all(self) -> Iterator[Split]:
        for kind in ("train", "validate"):
            yield from self._inner(kind) if self.regime == "inner" else [self._split(f"{kind}-one", kind)]
        yield self._split("test", "test")
        for factor in factors():
            for amount in factor.outermost if self.quick else factor.amounts:
                if amount != factor.neutral:
                    yield self._split(f"test/{factor.name}/{amount:g}", "test", factor, amount)

    def _inner(self, kind: str) -> Iterator[Split]:
        """The neutral part, and one for each inner amount."""
        inner = [(factor, amount) for factor in factors() for amount in factor.inner]
        each = self.numbers["part"][kind]
        rest = self.numbers["counts"][kind] - each * len(inner)
        yield self._split(f"{kind}-inner/{NEUTRAL}", kind, count=rest)
        for part, (factor, amount) in enumerate(inner, 1):
            yield self._split(f"{kind}-inner/{factor.name}/{amount:g}", kind, factor, amount, count=each, part=part)

    def _split(
        self,
        name: str,
        kind: str,
        factor: Factor | None = None,
        amount: float | None = None,
        *,
        count: int | None = None,
        part: int = 0,
    ) -> Split:
        seed, camera = (self.numbers[what][kind] for what in ("seeds", "cameras"))
        config = self.task.config.replace(seed=seed + part, **{"camera.number": camera})
        return Split(
            task=self.task.name,
            name=name,
            kind=kind,
            regime=None if kind == "test" else self.regime,
            quick=self.quick,
            config=config if factor is None or amount is None else factor.set(config, amount),
            count=self.numbers["counts"][kind] if count is None else count,
            factor=None if factor is None else factor.name,
            amount=amount,
        )

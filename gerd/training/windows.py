"""Windows of recordings as PyTorch's loaders want them: what `Dataset` and `EventFiles` share.

Item number i is window i of the recordings that are served, one after the other. An item is a function of its number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from operator import index as whole_number
from typing import Any, Self

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler

from gerd.calls import explained, names_of
from gerd.errors import GerdError, check_whole, did_you_mean, shorten
from gerd.training.batch import collate
from gerd.training.items import ItemSpec, Sample
from gerd.training.labels import Tensors
from gerd.training.random_windows import RandomWindows, RandomWindowsLoader
from gerd.training.split import Rows, shares
from gerd.training.state import State

Transform = Callable[[Tensors], Tensors] | None  # of the item or of the label
Joint = Callable[[Tensors, Tensors], Sample] | None  # of both
REST = ("overlap", "drop")


class Windows(torch.utils.data.Dataset[Sample]):
    """Windows of recordings, or of files of events: items with labels.

    name: what messages call the recordings.
    lengths: the steps of the recordings; those of recording `row` are `lengths[row % len(lengths)]`.
    """

    def __init__(
        self,
        name: str,
        spec: ItemSpec,
        lengths: Sequence[int],
        recordings: int,
        *,
        steps: int | None,
        stride: int | None,
        rest: str,
        transform: Transform,
        target_transform: Transform,
        transforms: Joint,
    ):
        for option, value in (("steps", steps), ("stride", stride)):
            if value is not None:
                check_whole(option, value, 1)
        for name_of, change in (
            ("transform", transform),
            ("target_transform", target_transform),
            ("transforms", transforms),
        ):
            if change is not None and not callable(change):
                raise GerdError(f"{name_of} {shorten(change)}: allowed: a function, or None")
        if rest not in REST:
            raise GerdError(f"rest {shorten(rest)}: allowed: {', '.join(REST)}")
        self.name = name
        self.spec = spec
        self.steps = steps
        self.stride = stride
        self.rest = rest
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = transforms
        known = {length: self.spec.starts(length, steps, stride, rest) for length in set(lengths)}
        self._windows = [known[length] for length in lengths]  # where the parts of each begin, and how long they are
        self._serve(np.arange(recordings), np.arange(recordings))

    @abstractmethod
    def _view(self, number: int) -> Sample:
        """Item and label of window `number`, before any transform."""

    @abstractmethod
    def _gathered(self, pad: bool, numbers: list[int]) -> Sample:
        """The batch of some windows."""

    @property
    @abstractmethod
    def nature(self) -> State:
        """What the recordings are a function of, so that the state of a loader is not taken for that of another."""

    def _serve(self, served: Rows, universe: Rows) -> None:
        """`served`: the recordings in this dataset; `universe`: those that a split shares out, before any `where`."""
        self.served = served
        self._universe = universe
        of_each = np.array([len(starts) for starts, _ in self._windows], np.int64)
        self.counts = of_each[served % max(1, len(of_each))]  # windows of each recording
        self.firsts = np.concatenate([[0], np.cumsum(self.counts)])  # number of each recording's first item

    def _of(self, served: Rows, universe: Rows) -> Self:
        result = copy(self)
        result._serve(served, universe)
        return result

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def place(self, number: int) -> tuple[int, int, int]:
        """The row of the recording of item `number`, its first labelled step, and how many labelled steps there are."""
        try:
            number = whole_number(number)
        except TypeError:
            raise GerdError(f"{self.name}: item {shorten(number)}: allowed: a whole number") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.name}: there is no item {number}; there are {len(self)}, from 0")
        number %= len(self)
        which = int(np.searchsorted(self.firsts, number, side="right")) - 1
        row = int(self.served[which])
        starts, steps = self._windows[row % len(self._windows)]
        return row, int(starts[number - self.firsts[which]]), steps

    def __getitem__(self, number: int) -> Sample:
        item, label = self._view(number)
        if self.transform is not None:
            item = self.transform(item)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return (item, label) if self.transforms is None else self.transforms(item, label)

    def _shared_out(self, fractions: Sequence[float], seed: int, of_unit: int) -> tuple[Self, ...]:
        """Parts by chance, of which each has whole units of `of_unit` recordings; see `split`."""
        parts = []
        for units in shares(np.unique(self._universe // of_unit), fractions, seed):
            universe = self._universe[np.isin(self._universe // of_unit, units)]
            served = np.intersect1d(self.served, universe)
            if not len(served):
                left = f"{len(self.served)} recordings of {len(self._universe)} are left to split"
                raise GerdError(f"{self.name}: {left}, and a part would be empty; split first, then choose")
            parts.append(self._of(served, universe))
        return tuple(parts)

    @explained
    def loader(self, batch_size: int, *, pad: bool = False, **options: Any) -> DataLoader[Sample]:
        """A DataLoader with `gerd.collate`; `options` are its own, such as `shuffle=True` and `num_workers=2`.

        pad: whether events, and dense items of different lengths, are padded, with a mask; see `collate`.

        Without transforms, workers send frames as events, which is faster than a plain DataLoader. With random windows
        it can be resumed; see `RandomWindows`.
        """
        check_whole("batch_size", batch_size, 1)
        check_loader_options(options)
        if options.get("shuffle") and options.get("generator") is None:
            # PyTorch would draw the shuffle and the seed of the workers from the same generator. The latter is drawn
            # once with persistent workers, so that they would change the shuffle of all later epochs.
            generator = torch.Generator()
            generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
            options = {**options, "shuffle": None, "sampler": RandomSampler(self, generator=generator)}
        kind = RandomWindowsLoader if isinstance(options.get("sampler"), RandomWindows) else DataLoader
        if self.transform or self.target_transform or self.transforms:
            return kind(self, batch_size, collate_fn=partial(collate, pad=pad), **options)
        # Windows are read where a batch is made of several at once. To PyTorch a range is a Dataset of its numbers.
        numbers: Any = range(len(self))
        return kind(numbers, batch_size, collate_fn=partial(self._gathered, pad), **options)

    def random_windows(self, *, seed: int = 0, rank: int = 0, ranks: int = 1) -> RandomWindows:
        """A sampler for `DataLoader(sampler=…)`: one window of each recording, in random order, new in each epoch.

        Use it with `stride=1`, so that every window can be drawn. It can be resumed; see `RandomWindows`.
        """
        return RandomWindows(self, seed, rank, ranks)


def check_loader_options(options: Mapping[str, object]) -> None:
    """An error for an option that PyTorch's DataLoader does not take, or that is given already."""
    known = [name for name in names_of(DataLoader.__init__) if name not in ("dataset", "batch_size", "collate_fn")]
    for name in options:
        if name not in known:
            raise GerdError(f"loader: no option {name}; {did_you_mean([name], known)}allowed: pad, {', '.join(known)}")


def named(wish: object) -> str:
    """An item or a label in words."""
    if isinstance(wish, dict):
        return ", ".join(f"{key}: {named(part)}" for key, part in wish.items())
    if isinstance(wish, tuple | list):
        return ", ".join(map(named, wish))
    return wish if isinstance(wish, str) else "a function"

"""A dataset on disk as PyTorch's loaders want it: item number i is a window of a recording, and its label.

    data = gerd.Dataset("data", steps=20, label="positions")
    train, test = data.hold_out(lambda r: r.config.time_scale != 1)
    loader = torch.utils.data.DataLoader(train, batch_size=32, shuffle=True, collate_fn=gerd.collate)

An item is a function of its number. Only the steps of its window are read from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from operator import index as whole_number
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler, get_worker_info

from gerd.config.sweep import classes, lengths, member
from gerd.errors import GerdError, check_whole, shorten
from gerd.recording.facts import table
from gerd.storage.recordings import Recordings, check_complete
from gerd.training.batch import Window, collate, gather
from gerd.training.items import Item, ItemOptions, ItemSpec
from gerd.training.labels import Label
from gerd.training.random_windows import RandomWindows, RandomWindowsLoader
from gerd.training.split import Header, Rows, holds, shares

Transform = Callable[[Any], Any] | None
REST = ("overlap", "drop")


class Dataset(torch.utils.data.Dataset[tuple[Any, Any]]):
    """Windows of the recordings of a dataset, with labels.

    item, label, options: what a window becomes; see `ItemOptions`.
    steps: length of the labelled part of a window. Default: all steps that can be labelled.
    stride: from window to window. Default: `steps`. Every step that can be labelled is in a window: if the last window
        does not end with the recording, one more is taken that does. `rest="drop"` leaves it out.
    transform, target_transform, transforms: applied to the item, to the label, to both, as in Tonic and torchvision.
    """

    def __init__(
        self,
        path: str | Path,
        item: Item = "frames",
        label: Label = "positions",
        *,
        steps: int | None = None,
        stride: int | None = None,
        rest: str = "overlap",
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        **options: Unpack[ItemOptions],
    ):
        self.spec = ItemSpec(item, label, **options)
        for name, value in (("steps", steps), ("stride", stride)):
            if value is not None:
                check_whole(name, value, 1)
        if rest not in REST:
            raise GerdError(f"rest {shorten(rest)}: allowed: {', '.join(REST)}")
        self.steps, self.stride, self.rest = steps, stride, rest
        self.transform, self.target_transform, self.transforms = transform, target_transform, transforms
        self.recordings = Recordings(path)
        check_complete(self.recordings)
        of_members = lengths(self.recordings.config)
        known = {length: self.spec.starts(length, steps, stride, rest) for length in set(of_members)}
        self._windows = [known[length] for length in of_members]  # where the parts of each member begin, and how long
        self._serve(np.arange(len(self.recordings)), np.arange(len(self.recordings)))

    def _serve(self, served: Rows, universe: Rows) -> None:
        """`served`: the recordings in this dataset; `universe`: those that a split shares out, before any `where`."""
        self.served, self._universe = served, universe
        of_member = np.array([len(starts) for starts, _ in self._windows])
        self._counts = of_member[served % self._members]  # windows of each recording
        self._firsts = np.concatenate([[0], np.cumsum(self._counts)])  # number of each recording's first item

    def __repr__(self) -> str:
        windows = f"{len(self)} windows of {len(self.served)} recordings"
        return f"<Dataset {self.recordings.path}: {windows}, as {_named(self.spec.item)}>"

    def _repr_html_(self) -> str:
        """What there is, and the first recording, for notebooks."""
        recordings, manifest = self.recordings, self.recordings.manifest
        swept = (f"{path}: {shorten(list(values))}" for path, values in recordings.config.sweep.items())
        facts = {
            "dataset": f"{recordings.path}: {manifest.count} indices × {manifest.members} members",
            "sweep": "; ".join(swept) or "none",
            "here": f"{len(self)} windows of {len(self.served)} recordings",
            "item": _named(self.spec.item),
            "label": _named(self.spec.label),
        }
        return table(facts) + recordings[int(self.served[0])]._repr_html_()

    @property
    def sensor_size(self) -> tuple[int, int, int]:
        """Width, height and polarities, in the order in which Tonic's transforms want them."""
        sensor = self.recordings.config.sensor
        return sensor.width, sensor.height, 2

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the shapes; the label "shape" counts them from 0."""
        return classes(self.recordings.config)

    @property
    def step_us(self) -> int:
        return self.recordings.config.step_us

    @property
    def _members(self) -> int:
        return self.recordings.manifest.members

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def place(self, number: int) -> tuple[int, int, int]:
        """The row of the recording of item `number`, its first labelled step, and how many labelled steps there are."""
        number = whole_number(number)
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.recordings.path}: there is no item {number}; there are {len(self)}, from 0")
        number %= len(self)
        which = int(np.searchsorted(self._firsts, number, side="right")) - 1
        row = int(self.served[which])
        starts, steps = self._windows[row % self._members]
        return row, int(starts[number - self._firsts[which]]), steps

    def window(self, number: int) -> Window:
        """What item `number` is made from: a window of a recording, its first labelled step, and how many there are."""
        row, at, steps = self.place(number)
        return self.recordings.window(row, *self.spec.span(at, steps)), at, steps

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        item, label = self.spec.view(*self.window(number))
        if self.transform is not None:
            item = self.transform(item)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return (item, label) if self.transforms is None else self.transforms(item, label)

    def headers(self) -> list[Header]:
        """What is known of each recording without reading its events; see `where`."""
        return list(self._headers())

    def _headers(self) -> Iterator[Header]:
        """The headers one at a time, so that what a predicate has read can be forgotten."""
        for row in self.served.tolist():
            index, number = divmod(row, self._members)
            yield Header(number, member(self.recordings.config, number), index, self.recordings)

    def where(self, predicate: Callable[[Header], Any]) -> Dataset:
        """The recordings for which `predicate` is true.

        Its argument is a header: `config` (with the swept values of that recording), `labels` (the swept values by
        their path), `index`, `member`; and what was drawn: `parameters`, `parameters_velocity` and
        `parameters_acceleration` with the fields x, y, scale_x, scale_y, rotation and shear for each step and actor,
        `intensity`, and `shapes`, the name of each actor's shape, None for one that is absent.
        """
        kept = np.array([holds(predicate, header) for header in self._headers()], np.bool_)
        if not kept.any():
            raise GerdError(f"{self.recordings.path}: the predicate is true for none of {len(kept)} recordings")
        return self._of(self.served[kept], self._universe)

    def hold_out(self, predicate: Callable[[Header], Any]) -> tuple[Dataset, Dataset]:
        """The recordings to train on, and those held out: those for which `predicate` is true; see `where`."""
        held = self.where(predicate)
        rest = np.setdiff1d(self.served, held.served)
        if not len(rest):
            raise GerdError(f"{self.recordings.path}: the predicate holds out all of {len(held.served)} recordings")
        return self._of(rest, self._universe), held

    def split(self, *fractions: float, seed: int = 0, families: bool = True) -> tuple[Dataset, ...]:
        """Parts by chance, such as `split(0.7, 0.15, 0.15)`; the same in every call, and disjoint.

        All members of a family go into the same part, unless `families` is False. Which part a recording goes into
        does not depend on `where` and `hold_out`, so that these and `split` may come in any order. A part can be split
        again.
        """
        of_unit = self._members if families else 1
        parts = []
        for units in shares(np.unique(self._universe // of_unit), fractions, seed):
            universe = self._universe[np.isin(self._universe // of_unit, units)]
            served = np.intersect1d(self.served, universe)
            if not len(served):
                left = f"{len(self.served)} recordings of {len(self._universe)} are left to split"
                raise GerdError(f"{self.recordings.path}: {left}, and a part would be empty; split first, then choose")
            parts.append(self._of(served, universe))
        return tuple(parts)

    def _of(self, served: Rows, universe: Rows) -> Dataset:
        result = copy(self)
        result._serve(served, universe)
        return result

    def loader(self, batch_size: int, *, pad: bool = False, **options: Any) -> DataLoader[Any]:
        """A DataLoader with `gerd.collate`; `options` are its own, such as `shuffle=True` and `num_workers=2`.

        pad: whether events, and dense items of different lengths, are padded, with a mask; see `collate`.

        Without transforms, workers send frames as events, which is faster than a plain DataLoader. With random windows
        it can be resumed; see `RandomWindows`.
        """
        if options.get("shuffle") and options.get("generator") is None:
            # PyTorch would draw the shuffle and the seed of the workers from the same generator. The latter is drawn
            # once with persistent workers, so that they would change the shuffle of all later epochs.
            generator = torch.Generator()
            generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
            options = {**options, "shuffle": None, "sampler": RandomSampler(self, generator=generator)}
        kind = RandomWindowsLoader if isinstance(options.get("sampler"), RandomWindows) else DataLoader
        if self.transform or self.target_transform or self.transforms:
            return kind(self, batch_size, collate_fn=partial(collate, pad=pad), **options)
        numbers: Any = range(len(self))  # windows are read where a batch is made of several at once
        return kind(numbers, batch_size, collate_fn=partial(self._gathered, pad), **options)

    def _gathered(self, pad: bool, numbers: list[int]) -> tuple[Any, Any]:
        windows = [self.window(number) for number in numbers]
        return gather(self.spec, windows, pad, travels=get_worker_info() is not None)

    def random_windows(self, *, seed: int = 0, rank: int = 0, ranks: int = 1) -> RandomWindows:
        """A sampler for `DataLoader(sampler=…)`: one window of each recording, in random order, new in each epoch.

        Use it with `stride=1`, so that every window can be drawn. It can be resumed; see `RandomWindows`.
        """
        return RandomWindows(self, seed, rank, ranks)


def _named(wish: Any) -> str:
    """An item or a label in words."""
    if isinstance(wish, dict):
        return ", ".join(f"{key}: {_named(part)}" for key, part in wish.items())
    if isinstance(wish, tuple | list):
        return ", ".join(map(_named, wish))
    return wish if isinstance(wish, str) else "a function"

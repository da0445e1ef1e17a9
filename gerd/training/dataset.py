"""A dataset on disk as PyTorch's loaders want it: item number i is a window of a recording, and its label.

    data = gerd.Dataset("data", steps=20, label="positions")
    train, test = data.hold_out(lambda r: r.config.time_scale != 1)
    loader = torch.utils.data.DataLoader(train, batch_size=32, shuffle=True, collate_fn=gerd.collate)

An item is a function of its number. Only the steps of its window are read from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self, Unpack

import numpy as np
from torch.utils.data import get_worker_info

from gerd.calls import explained
from gerd.config.sweep import classes, lengths, member
from gerd.errors import GerdError, shorten
from gerd.exchange.reading import is_event_file
from gerd.recording.facts import table
from gerd.storage.recordings import Recordings, check_complete
from gerd.training.batch import Window, gather
from gerd.training.items import Item, ItemOptions, ItemSpec, Sample, with_options
from gerd.training.labels import Label
from gerd.training.split import Header, holds
from gerd.training.state import State
from gerd.training.windows import Joint, Transform, Windows, named


@with_options
class Dataset(Windows):
    """Windows of the recordings of a dataset, with labels.

    item, label, options: how a window becomes an item and its label; see `ItemOptions` below.
    steps: length of the labelled part of a window. Default: all steps that can be labelled.
    stride: steps from one window to the next. Default: `steps`. Every step that can be labelled is in a window: if the
        last window does not end with the recording, one more is added that does. `rest="drop"` leaves it out.
    transform, target_transform, transforms: applied to the item, to the label, to both, as in Tonic and torchvision.
    """

    @explained
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
        transforms: Joint = None,
        **options: Unpack[ItemOptions],
    ):
        if is_event_file(Path(path)) or "*" in str(path):
            raise GerdError(f"{path}: Dataset reads what gerd generate has written; EventFiles reads files of events")
        self.recordings = Recordings(path)
        check_complete(self.recordings)
        super().__init__(
            str(self.recordings.path),
            ItemSpec(item, label, **options),
            lengths(self.recordings.config),
            len(self.recordings),
            steps=steps,
            stride=stride,
            rest=rest,
            transform=transform,
            target_transform=target_transform,
            transforms=transforms,
        )

    def __repr__(self) -> str:
        windows = f"{len(self)} windows of {len(self.served)} recordings"
        return f"<Dataset {self.recordings.path}: {windows}, as {named(self.spec.item)}>"

    def _repr_html_(self) -> str:
        """What there is, and the first recording, for notebooks."""
        recordings = self.recordings
        manifest = self.recordings.manifest
        swept = (f"{path}: {shorten(list(values))}" for path, values in recordings.config.sweep.items())
        facts = {
            "dataset": f"{recordings.path}: {manifest.count} indices × {manifest.members} members",
            "sweep": "; ".join(swept) or "none",
            "here": f"{len(self)} windows of {len(self.served)} recordings",
            "item": named(self.spec.item),
            "label": named(self.spec.label),
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

    @property
    def nature(self) -> State:
        return {"config": self.recordings.config.digest}

    def window(self, number: int) -> Window:
        """What item `number` is made from: a window of a recording, its first labelled step, and how many there are."""
        row, at, steps = self.place(number)
        return self.recordings.window(row, *self.spec.span(at, steps)), at, steps

    def _view(self, number: int) -> Sample:
        return self.spec.view(*self.window(number))

    def _gathered(self, pad: bool, numbers: list[int]) -> Sample:
        windows = [self.window(number) for number in numbers]
        return gather(self.spec, windows, pad, travels=get_worker_info() is not None)

    def headers(self) -> list[Header]:
        """What is known of each recording without reading its events; see `where`."""
        return list(self._headers())

    def _headers(self) -> Iterator[Header]:
        """The headers one at a time, so that what a predicate has read can be forgotten."""
        for row in self.served.tolist():
            index, number = divmod(row, self._members)
            yield Header(number, member(self.recordings.config, number), index, self.recordings)

    def where(self, predicate: Callable[[Header], object]) -> Self:
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

    def hold_out(self, predicate: Callable[[Header], object]) -> tuple[Self, Self]:
        """The recordings to train on, and those held out: those for which `predicate` is true; see `where`."""
        held = self.where(predicate)
        rest = np.setdiff1d(self.served, held.served)
        if not len(rest):
            raise GerdError(f"{self.recordings.path}: the predicate holds out all of {len(held.served)} recordings")
        return self._of(rest, self._universe), held

    def split(self, *fractions: float, seed: int = 0, families: bool = True) -> tuple[Self, ...]:
        """Parts by chance, such as `split(0.7, 0.15, 0.15)`; the same in every call, and disjoint.

        All members of a family go into the same part, unless `families` is False. Which part a recording goes into
        does not depend on `where` and `hold_out`, so that these and `split` may come in any order. A part can be split
        again.
        """
        return self._shared_out(fractions, seed, self._members if families else 1)

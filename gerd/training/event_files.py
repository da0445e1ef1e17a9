"""Files of events as PyTorch's loaders want them: item number i is a window of a file, and the label of the file.

    data = gerd.EventFiles("recordings/*.raw", item="voxels", bins=5, steps=50)
    loader = data.loader(32, shuffle=True, num_workers=2)

What is known of real recordings is at most what they show, so a label is a function of the file's path. Recordings with
the ground truth behind them are the business of `Dataset`.
"""

from __future__ import annotations

import glob
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, Unpack

import numpy as np
from torch.utils.data import get_worker_info

from gerd.calls import explained
from gerd.errors import GerdError, check_whole
from gerd.exchange.reading import ReadEvents, ReadOptions, read_events
from gerd.recording.events import Events
from gerd.training.batch import collate_labels, gather_items
from gerd.training.items import Item, ItemOptions, ItemSpec, Sample, with_options
from gerd.training.labels import Tensors
from gerd.training.state import State
from gerd.training.windows import Joint, Transform, Windows, named

MEMORY = 2**30  # bytes of events that a process keeps
PER_EVENT = 9  # bytes of an event that is kept: its key, and whether it is noise


@dataclass(frozen=True)
class _File:
    path: Path
    steps: int
    size: int  # bytes, so that the state of a loader is not taken for that of other files
    frame: tuple[int, int]
    label: Tensors


@with_options
class EventFiles(Windows):
    """Windows of files of events, with a label for each file.

    files: the paths, or one pattern such as "recordings/*/*.raw"; `**` reaches into folders at any depth. What a
        pattern finds comes in the order of the names.
    item, options: how a window becomes an item; see `ItemOptions` below.
    label: a function of a file's path. Default: no label, an empty tuple.
    read: how files are read, by the names of `ReadOptions`, such as `{"size": (240, 180), "step_us": 10_000}`.
    steps: length of a window. Default: the whole file, counted from the step of its first event.
    stride, rest, transform, target_transform, transforms: as for `Dataset`.
    memory: how many bytes of events each process keeps; other files are read again when they are needed.
    progress: called with the number of files just read. All are read once, to find out how long they are.
    """

    @explained
    def __init__(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        item: Item = "frames",
        label: Callable[[Path], Tensors] | None = None,
        *,
        read: ReadOptions | None = None,
        steps: int | None = None,
        stride: int | None = None,
        rest: str = "overlap",
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Joint = None,
        memory: int = MEMORY,
        progress: Callable[[int], None] = lambda read: None,
        **options: Unpack[ItemOptions],
    ):
        if label is not None and not callable(label):
            raise GerdError(f"label {label!r}: allowed: a function of a file's path, or None")
        check_whole("memory", memory, 0)
        self._read: ReadOptions = read or {}
        self._kept: OrderedDict[Path, ReadEvents] = OrderedDict()  # the latest last
        self._memory = memory
        spec = ItemSpec(item, None, **options)
        name, paths = _found(files)
        self.files: list[_File] = []
        for path in paths:
            events = self._events(path)
            try:
                spec.starts(events.steps, steps, stride, rest)
            except GerdError as error:
                raise GerdError(f"{path}: {error}") from None
            value = () if label is None else label(path)
            self.files.append(_File(path, events.steps, path.stat().st_size, (events.width, events.height), value))
            progress(1)
        super().__init__(
            name,
            spec,
            [file.steps for file in self.files],
            len(self.files),
            steps=steps,
            stride=stride,
            rest=rest,
            transform=transform,
            target_transform=target_transform,
            transforms=transforms,
        )

    def __repr__(self) -> str:
        return f"<EventFiles {self.name}: {len(self)} windows of {len(self.served)} files, as {named(self.spec.item)}>"

    def __getstate__(self) -> dict[str, object]:
        """Without the events: each process of a loader reads its own."""
        return {**self.__dict__, "_kept": OrderedDict()}

    @property
    def sensor_size(self) -> tuple[int, int, int]:
        """Width, height and polarities, in the order in which Tonic's transforms want them."""
        frames = sorted({self.files[row].frame for row in self.served.tolist()})
        if len(frames) > 1:
            raise GerdError(f"{self.name}: frames of {frames[0]} and {frames[1]} pixels; choose files of one size")
        return *frames[0], 2

    @property
    def nature(self) -> State:
        return {"files": [[file.path.name, file.size] for file in self.files]}

    def window(self, number: int) -> Events:
        """The events that item `number` is made from."""
        row, at, steps = self.place(number)
        events = self._events(self.files[row].path)
        return self.spec.part(events, events.first + at, steps)

    def where(self, predicate: Callable[[Path], object]) -> Self:
        """The files for whose path `predicate` is true."""
        kept = np.array([bool(predicate(self.files[row].path)) for row in self.served.tolist()], np.bool_)
        if not kept.any():
            raise GerdError(f"{self.name}: the predicate is true for none of {len(kept)} files")
        return self._of(self.served[kept], self._universe)

    def split(self, *fractions: float, seed: int = 0) -> tuple[Self, ...]:
        """Parts by chance, such as `split(0.7, 0.15, 0.15)`; the same in every call, and without a common file."""
        return self._shared_out(fractions, seed, 1)

    def _events(self, path: Path) -> ReadEvents:
        """The events of a file, which are kept as long as there is room for them."""
        if path in self._kept:
            self._kept.move_to_end(path)
        else:
            self._kept[path] = read_events(path, **self._read)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) * PER_EVENT > self._memory:
                self._kept.popitem(last=False)
        return self._kept[path]

    def _view(self, number: int) -> Sample:
        row, _, _ = self.place(number)
        return self.spec.item_of(self.window(number)), self.files[row].label

    def _gathered(self, pad: bool, numbers: list[int]) -> Sample:
        parts = [self.window(number) for number in numbers]
        labels = [self.files[self.place(number)[0]].label for number in numbers]
        items = gather_items(self.spec, parts, pad, travels=get_worker_info() is not None)
        return items, collate_labels(labels, pad)


def _found(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, list[Path]]:
    """What messages call the files, and their paths."""
    if not isinstance(files, str | os.PathLike):
        paths = [Path(file) for file in files]
        if not paths:
            raise GerdError("files: got none; allowed: paths, or a pattern such as recordings/*.raw")
        return f"{paths[0]}, …" if len(paths) > 1 else str(paths[0]), paths
    pattern = os.fspath(files)
    if os.path.isdir(pattern):
        raise GerdError(f"{pattern}: is a folder; allowed: a pattern of its files, such as {Path(pattern) / '*.raw'}")
    paths = sorted(Path(path) for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path))
    if not paths:
        raise GerdError(f"{pattern}: there is no such file; allowed: paths, or a pattern such as recordings/*.raw")
    return pattern, paths

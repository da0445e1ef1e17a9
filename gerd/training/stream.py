"""Training data without a disk: batches of new recordings, simulated where and when they are needed, without an end.

    for frames, positions in gerd.Stream(config, batch_size=64, device="cuda"):
        ...

Batch k is a function of the config and of k. Its recordings are those that a dataset of the same config has in the
rows k · batch_size and following. DataLoader workers and the ranks of torch.distributed take turns, so that each
batch is made once, and comes at the same place as without them. The state of a stream is therefore a number: how many
batches were used, whatever was made ahead.
"""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property, partial
from itertools import count, islice
from typing import Any, NoReturn, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import classes, member, member_count
from gerd.errors import GerdError, check_whole
from gerd.events import backends
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_batch
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.training.batch import gather, labels_of, stack_padded
from gerd.training.items import Item, ItemOptions, ItemSpec, Sample, with_options
from gerd.training.labels import Label, Labelled, Tensors
from gerd.training.split import Member, holds
from gerd.training.state import State, check_nature, of_one_rank
from gerd.training.windows import check_loader_options

Indices = NDArray[np.int64]
# What a stream shares with its workers, in batches of its rank: how many were used; the one that workers begin with;
# and whether workers whose batches nobody counts have begun with it.
USED, BEGIN, UNCOUNTED = range(3)


@with_options
class Stream(IterableDataset[Sample]):
    """An endless series of batches (item, label).

    item, label, options: how a recording becomes an item and its label; see `ItemOptions` below.
    batch_size: recordings in a batch. The members of a sweep count as recordings of their own and follow each other, as
        in a dataset: a multiple of their number gives whole families.
    device: where batches are made.
    first: the index to begin with. A dataset that was made with `count=n` has the indices 0 to n - 1, so that
        `first=n` gives others.
    steps: length of the labelled part, which ends with the recording (or `delay` steps before its end). Default: all
        steps that can be labelled.
    pad: whether event arrays, and dense items of different lengths, are padded, with a mask; see `collate`.
    ahead: how many batches are made in the background while one is used.
    rank, ranks: take every `ranks`-th batch, from number `rank` on. Default: those of torch.distributed.
    """

    @explained
    def __init__(
        self,
        config: AnyConfig,
        batch_size: int,
        item: Item = "frames",
        label: Label = "positions",
        *,
        device: str = "cpu",
        first: int = 0,
        steps: int | None = None,
        pad: bool = False,
        ahead: int = 2,
        rank: int | None = None,
        ranks: int | None = None,
        **options: Unpack[ItemOptions],
    ):
        self.spec = ItemSpec(item, label, **options)
        for name, value, least in (("batch_size", batch_size, 1), ("first", first, 0), ("ahead", ahead, 0)):
            check_whole(name, value, least)
        if steps is not None:
            check_whole("steps", steps, 1)
        self.config = as_config(config)
        self.batch_size = batch_size
        self.device = str(device)
        self.first = first
        self.steps = steps
        self.pad = pad
        self.ahead = ahead
        backends.check_device(self.device)
        if (rank is None) != (ranks is None) or (ranks is not None and not 0 <= (rank or 0) < ranks):
            raise GerdError(f"rank {rank}, ranks {ranks}: allowed: both or none, with rank from 0 to ranks - 1")
        self._place = None if rank is None or ranks is None else (rank, ranks)
        self.members = tuple(range(member_count(self.config)))
        self._window(member(self.config, 0).steps)  # refuses what does not fit
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._process = os.getpid()
        self._next = 0  # in a worker: the next batch that it makes
        self._resume_at: int | None = None  # in a worker: the batch to begin with, from a state

    def __repr__(self) -> str:
        return f"<Stream of config {self.config.digest[:8]}: batches of {self.batch_size} on {self.device}>"

    def __getitem__(self, number: object) -> NoReturn:
        raise GerdError(f"a stream has no items to number; allowed: stream.batch({number}), or a loop over the stream")

    def __len__(self) -> int:
        """How many batches come before the first recording comes again; a loop goes on after them.

        Loaders that know a length need not look one batch ahead for the end, as Lightning else does. So their
        checkpoints count what was used.
        """
        return 2**32 * len(self.members) // self.batch_size // self.place[1]

    def __getstate__(self) -> dict[str, object]:
        place = self._place
        if place is None and self.place != (0, 1):
            place = self.place  # a worker knows nothing of torch.distributed
        return {**self.__dict__, "_place": place}

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the shapes; the label "shape" counts them from 0."""
        return classes(self.config)

    @property
    def _progress(self) -> Tensor:
        """What is shared with workers, and with nobody else: a rank that was given the stream counts for itself."""
        if self._process != os.getpid() and get_worker_info() is None:
            self._shared = self._shared.clone().share_memory_()
            self._process = os.getpid()
        return self._shared

    @property
    def place(self) -> tuple[int, int]:
        """The rank of this process, and how many there are."""
        distributed = torch.distributed
        if self._place is None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return self._place or (0, 1)

    def where(self, predicate: Callable[[Member], object]) -> Stream:
        """The stream of some members of the sweep only.

        The argument of the predicate is a member: `config`, `labels` (the swept values by their path) and its number,
        `member`.
        """
        result = copy.copy(self)
        result._place = self._place
        result.members = tuple(k for k in self.members if holds(predicate, Member(k, member(self.config, k))))
        if not result.members:
            raise GerdError(f"the predicate is true for none of the {len(self.members)} members of the sweep")
        result._shared = self._progress.clone().share_memory_()
        result._process = os.getpid()
        return result

    def __iter__(self) -> Iterator[Sample]:
        """Batches from where the last iteration has stopped, or from the state that was loaded."""
        return self._batches(counted=False)

    def loader(self, num_workers: int = 0, **options: Any) -> DataLoader[Sample]:
        """A DataLoader of the batches; `options` are its own.

        It has `state_dict` and `load_state_dict`, which are those of the stream and count the batches that came out of
        it. Workers send frames as events, which is faster than a plain DataLoader.
        """
        check_loader_options(options)
        return _Loader(_Travelling(self), None, num_workers=num_workers, collate_fn=_unchanged, **options)

    def _batches(self, counted: bool) -> Iterator[Sample]:
        """`counted`: whether the loader that drives the workers counts what is used."""
        worker = get_worker_info()
        if worker is None:
            return self._in_this_process()
        if not self.device.startswith("cpu"):
            raise GerdError(f"device {self.device!r}: batches for it are not made in workers; allowed: num_workers=0")
        begin = self._resume_at
        self._resume_at = None
        if begin is None:
            if worker.id == 0 and not counted:
                self._claim()
            begin = int(self._progress[BEGIN]) + worker.id
        self._next = begin  # at once: the main process may change the shared numbers before the first batch is made
        return self._in_worker(worker.num_workers, travels=counted)

    def _in_this_process(self) -> Iterator[Sample]:
        rank, ranks = self.place
        for batch in self._made(count(int(self._progress[USED]) * ranks + rank, ranks)):
            self._progress[USED] += 1
            self._progress[BEGIN] = self._progress[USED]
            yield batch

    def _in_worker(self, workers: int, travels: bool) -> Iterator[Sample]:
        rank, ranks = self.place
        while True:
            batch = self._batch(self._next * ranks + rank, travels)
            self._next += workers
            yield batch

    def _claim(self) -> None:
        if self._progress[UNCOUNTED]:
            raise GerdError(
                "this stream has been read by workers, and would give them the same batches again; use "
                "stream.loader(num_workers), which counts what was used, or say where to go on with "
                "stream.load_state_dict({'batch': the number of batches so far})"
            )
        self._progress[UNCOUNTED] = 1

    def state_dict(self) -> State:
        """Where the stream stands: `batch` is the number of batches that all ranks together have used.

        In a worker it is where the worker stands, for torchdata's StatefulDataLoader.
        """
        ranks = self.place[1]
        if get_worker_info() is not None:
            return {"batch": self._next * ranks, **self._nature}
        if self._progress[UNCOUNTED]:
            raise GerdError(
                "workers make batches ahead, so the stream does not know how many were used; use "
                "stream.loader(num_workers), which counts them, or torchdata's StatefulDataLoader; or count them, and "
                "go on with stream.load_state_dict({'batch': the number of batches so far})"
            )
        return {"batch": int(self._progress[USED]) * ranks, **self._nature}

    @property
    def _nature(self) -> State:
        """What a batch is a function of, besides its number."""
        members = list(self.members)
        digest = self.config.digest
        nature = {"batch_size": self.batch_size, "first": self.first, "members": members, "config": digest}
        worker = get_worker_info()
        return nature if worker is None else nature | {"worker": worker.id, "workers": worker.num_workers}

    def load_state_dict(self, state: State) -> None:
        """Go on from `state`; its `batch` is enough."""
        check_nature(state, self._nature, "stream")
        batch = of_one_rank(state, "batch", self.place[1])
        if get_worker_info() is not None:
            self._resume_at = batch
            return
        self._progress[USED] = self._progress[BEGIN] = batch
        self._progress[UNCOUNTED] = 0

    def _made(self, numbers: Iterator[int]) -> Iterator[Sample]:
        """The batches with these numbers, `ahead` of them made in advance, on a CUDA stream of their own."""
        if not self.ahead:
            yield from map(self._batch, numbers)
            return
        side = torch.cuda.Stream(self.device) if self.device.startswith("cuda") else None

        def make(number: int) -> tuple[Sample, torch.cuda.Event | None]:
            with torch.cuda.stream(side) if side else nullcontext():
                return self._batch(number), side.record_event() if side else None

        maker = ThreadPoolExecutor(1, "gerd-stream")
        waiting = deque(maker.submit(make, number) for number in islice(numbers, self.ahead))
        try:
            for number in numbers:
                batch, finished = waiting.popleft().result()
                waiting.append(maker.submit(make, number))
                if finished is not None:
                    _hand_over(batch, finished, torch.cuda.current_stream(self.device))
                yield batch
        finally:
            maker.shutdown(cancel_futures=True)

    def batch(self, number: int) -> Sample:
        """Batch `number`, counted over all ranks and workers."""
        check_whole("batch", number, 0)
        return self._batch(number)

    def _batch(self, number: int, travels: bool = False) -> Sample:
        if self._makes_frames and not self.spec.needs_events:
            return self.batch_from_frames(number)
        groups, order = self._groups(number)
        made = []
        for number, indices in groups:
            made += simulate_batch(member(self.config, number), indices.tolist(), device=self.device)
        windows = [(made[i], *self._window(made[i].steps)) for i in order]
        device = self.device if self._makes_frames else "cpu"
        return _moved(gather(self.spec, windows, self.pad, travels, device), self.device)

    @cached_property
    def _makes_frames(self) -> bool:
        """Whether the device makes frames itself, of all members."""
        finest = max(member(self.config, number).upsampling for number in self.members)
        return backends.makes_frames(self.device, finest)

    def _groups(self, number: int) -> tuple[list[tuple[int, Indices]], Indices]:
        """For each member its recordings in a batch, to be simulated together; and the order of all in the batch."""
        places = np.arange(number * self.batch_size, (number + 1) * self.batch_size)
        indices = (self.first + places // len(self.members)) % 2**32
        of_member = places % len(self.members)
        groups = [(self.members[k], indices[of_member == k]) for k in np.unique(of_member)]
        return groups, np.argsort(np.argsort(of_member, kind="stable"))

    def _window(self, length: int) -> tuple[int, int]:
        """Where the labelled part of a recording of `length` steps begins, and how long it is."""
        starts, steps = self.spec.starts(length, self.steps, None, "overlap")
        return int(starts[-1]), steps

    def batch_from_frames(self, number: int) -> Sample:
        """Batch `number`, from frames that never leave the device they are made on."""
        groups, order = self._groups(number)
        frames: list[Tensor] = []
        labelled: list[Labelled] = []
        for number, indices in groups:
            config = member(self.config, number)
            scenes = draw(plan_of(config), indices)
            at, steps = self._window(scenes.steps)
            try:
                whole = backends.frames(scenes, self.device, counts=scenes.exact and self.spec.item == "counts")
                frames.append(self.spec.combined(whole[:, at - self.spec.lead : at + steps]))
            except torch.OutOfMemoryError:
                reason = f"does not fit into the memory of {self.device}"
                raise GerdError(f"batch_size {self.batch_size}: {reason}") from None
            labelled += self._labelled(config, scenes, at + self.spec.delay, steps)
        items = stack_padded(frames, self.pad, torch.from_numpy(order).to(self.device))
        labels = labels_of(self.spec.label, [labelled[i] for i in order], self.spec.every, self.pad)
        return items, _moved(labels, self.device)

    def _labelled(self, config: Config, scenes: Scenes, begin: int, steps: int) -> Iterator[Labelled]:
        """What the labels of scenes are made from, without their events: `steps` steps from `begin` on."""
        truth = scenes.truth(np.arange(begin, begin + steps))
        looks = scenes.at_rest()
        for row, index in enumerate(scenes.indices.tolist()):
            part = partial(Recording.of, config, index, truth[row], first=begin, drawn=looks[row : row + 1])
            yield Labelled(truth[row], part, part)


class _Travelling(IterableDataset[Sample]):
    """A stream whose batches go straight from a worker to the process that uses them."""

    def __init__(self, stream: Stream):
        self.stream = stream

    def __iter__(self) -> Iterator[Sample]:
        return self.stream._batches(counted=True)


class _Loader(DataLoader[Sample]):
    """A loader of a stream that counts the batches that come out of it, so that the stream knows what was used."""

    dataset: _Travelling

    def __len__(self) -> int:
        return len(self.dataset.stream)

    def __iter__(self) -> Iterator[Sample]:  # type: ignore[override]
        batches = super().__iter__
        progress = self.dataset.stream._progress
        if not self.num_workers:  # then the stream counts
            yield from batches()
            return
        progress[BEGIN] = progress[USED]
        try:
            for batch in batches():
                progress[USED] += 1
                yield batch
        finally:
            progress[BEGIN] = progress[USED]

    def state_dict(self) -> State:
        if not self.in_order:
            raise GerdError("in_order=False: batches come in any order, so that no number says which were used")
        return self.dataset.stream.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.dataset.stream.load_state_dict(state)


def _unchanged(batch: Tensors) -> Tensors:
    return batch


def tensors_of(batch: object) -> Iterator[Tensor]:
    """The dense tensors that a batch consists of."""
    if isinstance(batch, Tensor):
        yield from (batch.indices(), batch.values()) if batch.layout == torch.sparse_coo else (batch,)
    elif isinstance(batch, Mapping | tuple):
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from tensors_of(part)


def _moved(batch: Tensors, device: str) -> Tensors:
    """The batch with all its tensors on the device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: _moved(part, device) for key, part in batch.items()}
    return tuple(_moved(part, device) for part in batch) if isinstance(batch, tuple) else batch


def _hand_over(batch: Sample, finished: torch.cuda.Event, user: torch.cuda.Stream) -> None:
    """Let the stream that uses the batch wait until it is made, and its memory live until it is used."""
    user.wait_event(finished)
    for tensor in tensors_of(batch):
        if tensor.is_cuda:
            tensor.record_stream(user)

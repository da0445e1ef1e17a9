"""Random windows of recordings, in epochs that can be resumed after any batch.

    sampler = data.random_windows(seed=0)
    loader = data.loader(32, sampler=sampler, num_workers=2)
    state = loader.state_dict()  # the epoch, and how many of its windows were used

The windows of an epoch are a function of the seed and the epoch, so a state is these numbers, and what they belong to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from torch.utils.data import DataLoader, Sampler

from gerd.errors import GerdError, check_whole
from gerd.training.items import Sample
from gerd.training.split import drawn_windows
from gerd.training.state import State, check_nature, of_one_rank

if TYPE_CHECKING:
    from gerd.training.windows import Windows


class RandomWindows(Sampler[int]):
    """One window of each recording in random order, from the seed and the epoch; each iteration is one epoch more.

    `state_dict` tells the epoch and how many of its windows all ranks together have drawn (`item`). A loader with
    workers draws ahead of what is used: take the loader's state then, that of the dataset's `loader` or of torchdata's
    StatefulDataLoader.
    """

    def __init__(self, data: Windows, seed: int, rank: int, ranks: int):
        check_whole("seed", seed, 0)
        check_whole("ranks", ranks, 1)
        if not 0 <= rank < ranks:
            raise GerdError(f"rank {rank}: allowed with ranks={ranks}: 0 to {ranks - 1}")
        self.data = data
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self.epoch = 0  # of the next iteration
        self._skip = 0  # windows of that epoch that were drawn before the state was taken
        self._now: tuple[int, int] | None = None  # epoch and drawn windows of the latest iteration
        self._nature = {  # what the windows of an epoch are a function of
            "seed": seed,
            **data.nature,
            "recordings": len(data.served),
            "windows": len(data),
            "chosen": hashlib.sha256(data.served.astype("<i8").tobytes()).hexdigest(),
        }

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that comes next; after `load_state_dict`, the epoch of the state is still resumed within."""
        check_whole("epoch", epoch, 0)
        if epoch != self.epoch:
            self.epoch, self._skip = epoch, 0
        self._now = None

    def __len__(self) -> int:
        return -(-len(self.data.served) // self.ranks)

    def __iter__(self) -> DrawnWindows:
        return DrawnWindows(self)

    def numbers(self, epoch: int) -> list[int]:
        """The items that this rank draws in an epoch."""
        window, order = drawn_windows(self.data.counts, self.seed, epoch)
        numbers = (self.data.firsts[:-1] + window)[order]
        numbers = np.resize(numbers, len(self) * self.ranks)  # the same number for each rank: some come twice
        return numbers[self.rank :: self.ranks].tolist()

    def state_dict(self) -> State:
        return self._state(*(self._now or (self.epoch, self._skip)))

    def load_state_dict(self, state: State) -> None:
        """Go on from `state`: the next iteration is the rest of its epoch, or the next epoch if nothing is left."""
        epoch, drawn = self._place(state)
        if drawn >= len(self):
            epoch, drawn = epoch + 1, 0
        self.epoch, self._skip, self._now = epoch, drawn, None

    def _state(self, epoch: int, drawn: int) -> State:
        return {"epoch": epoch, "item": drawn * self.ranks, **self._nature}

    def _place(self, state: State) -> tuple[int, int]:
        """The epoch of a state, and how many windows this rank has drawn of it."""
        check_nature(state, self._nature, "sampler")
        return of_one_rank(state, "epoch", 1), of_one_rank(state, "item", self.ranks)


class DrawnWindows(Iterator[int]):
    """One epoch of random windows. It begins when the first is drawn: a loader may make iterators it does not use."""

    def __init__(self, sampler: RandomWindows):
        self.sampler = sampler
        self._epoch, self._drawn = 0, 0
        self._numbers: list[int] | None = None

    def _begin(self, epoch: int, drawn: int) -> None:
        self._epoch, self._drawn = epoch, drawn
        self._numbers = self.sampler.numbers(epoch)
        self.sampler.epoch, self.sampler._skip = epoch + 1, 0

    def __next__(self) -> int:
        if self._numbers is None:
            self._begin(self.sampler.epoch, self.sampler._skip)
        if not self._numbers or self._drawn >= len(self._numbers):
            raise StopIteration
        self._drawn += 1
        self.sampler._now = self._epoch, self._drawn
        return self._numbers[self._drawn - 1]

    def state_dict(self) -> State:
        if self._numbers is None:
            return self.sampler._state(self.sampler.epoch, self.sampler._skip)
        return self.sampler._state(self._epoch, self._drawn)

    def load_state_dict(self, state: State) -> None:
        """Unlike the sampler, which goes on with the next epoch, this ends where the epoch of the state ends."""
        epoch, drawn = self.sampler._place(state)
        self._begin(epoch, drawn)
        self.sampler._now = epoch, drawn


class RandomWindowsLoader(DataLoader[Sample]):
    """A loader of random windows whose state counts the batches that came out of it, whatever workers draw ahead.

    An epoch begins when its first batch is asked for: Lightning makes iterators before it tells the sampler the epoch.
    """

    sampler: RandomWindows
    _used: tuple[int, int] = (0, 0)  # epoch, and windows of the batches that came out

    def __iter__(self) -> Iterator[Sample]:  # type: ignore[override]
        sampler = self.sampler
        batch_size = self.batch_size or 1
        if not isinstance(sampler, RandomWindows):
            raise GerdError(
                "something has replaced the sampler of this loader; for Lightning take "
                "Trainer(use_distributed_sampler=False), and for several ranks random_windows(rank=…, ranks=…)"
            )
        epoch, used = sampler.epoch, sampler._skip
        self._used = epoch, used
        for batch in super().__iter__():
            used += batch_size
            if used + (batch_size if self.drop_last else 1) > len(sampler):  # this was the last batch
                used = len(sampler)
            self._used = epoch, used
            yield batch

    def state_dict(self) -> State:
        if not self.in_order:
            raise GerdError("in_order=False: batches come in any order, so that no number says which were used")
        if self.sampler._now is None:  # nothing was drawn since the epoch was set or a state was loaded
            return self.sampler.state_dict()
        return self.sampler._state(*self._used)

    def load_state_dict(self, state: State) -> None:
        self.sampler.load_state_dict(state)

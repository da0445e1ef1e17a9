"""What a backend gives, and how it cuts a recording into chunks of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Chunk(NamedTuple):
    """The events of one recording in some steps; the chunks of a recording come in order of time."""

    row: int  # the recording's number in the batch
    steps: range
    keys: NDArray[np.int64]  # ascending; see `keys.py`
    background: NDArray[np.bool_]  # noise that no moving edge caused

    def kept(self, which: NDArray[np.bool_]) -> Chunk:
        """The chunk with those events only for which `which` is true."""
        return self._replace(keys=self.keys[which], background=self.background[which])

    def with_noise(self, keys: NDArray[np.int64]) -> Chunk:
        """The chunk and events of these keys, which no edge caused; a key that it has already does not come twice."""
        both = np.concatenate([self.keys, keys[~np.isin(keys, self.keys)]])
        flags = np.concatenate([self.background, np.ones(len(both) - len(self.keys), np.bool_)])
        order = np.argsort(both, kind="stable")
        return self._replace(keys=both[order], background=flags[order])


def chunks(first: int, steps: int, chunk: int) -> Iterator[range]:
    """The steps from `first`, in the warm-up, up to `steps`, cut at every multiple of `chunk` but 0.

    So the recorded steps of each piece are a window that does not depend on the warm-up.
    """
    while first < steps:
        stop = min((first // chunk + 1) * chunk or chunk, steps)
        yield range(first, stop)
        first = stop

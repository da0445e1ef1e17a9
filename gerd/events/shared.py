"""What a backend gives, and how it cuts a recording into chunks of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SOURCE_NAMES = ("edge", "background", "hot", "leak")  # where an event can come from
FROM_EDGE, FROM_BACKGROUND, FROM_HOT, FROM_LEAK = range(4)  # a background flag is the number of one of the first two


class Chunk(NamedTuple):
    """The events of one recording in some steps; the chunks of a recording come in order of time."""

    row: int  # the recording's number in the batch
    steps: range
    keys: NDArray[np.int64]  # ascending; see `keys.py`
    source: NDArray[np.uint8]  # where each comes from: a number of `SOURCE_NAMES`
    delay: NDArray[np.int64] | None = None  # by how many microseconds readout has delayed each; None without readout

    def kept(self, which: slice | NDArray[np.bool_] | NDArray[np.int64]) -> Chunk:
        """The chunk with some of its events: a slice, those for which a mask is true, or those of these numbers."""
        delay = None if self.delay is None else self.delay[which]
        return self._replace(keys=self.keys[which], source=self.source[which], delay=delay)

    def cut(self, end: int) -> tuple[Chunk, Chunk]:
        """The events with keys below `end`, and those that follow."""
        at = int(np.searchsorted(self.keys, end))
        return self.kept(slice(at)), self.kept(slice(at, None))

    def in_order(self) -> Chunk:
        """The events in order of their keys, equal ones in the order in which they are."""
        return self.kept(np.argsort(self.keys, kind="stable"))

    def with_more(self, keys: NDArray[np.int64], source: int) -> Chunk:
        """The chunk and events of these keys from a source; a key that it has already does not come twice."""
        keys = np.sort(keys)
        at = np.searchsorted(self.keys, keys)
        there = at < len(self.keys)
        there[there] = self.keys[at[there]] == keys[there]
        return self.beside(keys[~there], source)

    def beside(self, keys: NDArray[np.int64], source: int) -> Chunk:
        """The chunk and events of these keys, in any order, from a source; a key may come twice."""
        if not len(keys):
            return self
        keys = np.sort(keys)
        at = np.searchsorted(self.keys, keys, side="right")
        return self._replace(keys=np.insert(self.keys, at, keys), source=np.insert(self.source, at, np.uint8(source)))


def joined(parts: Sequence[Chunk]) -> Chunk:
    """Consecutive chunks of a recording as one."""
    if len(parts) == 1:
        return parts[0]
    keys, source = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "source"))
    delays = [part.delay for part in parts if part.delay is not None]
    steps = range(parts[0].steps.start, parts[-1].steps.stop)
    return Chunk(parts[0].row, steps, keys, source, np.concatenate(delays) if delays else None)


def chunks(first: int, steps: int, chunk: int) -> Iterator[range]:
    """The steps from `first`, in the warm-up, up to `steps`, cut at every multiple of `chunk` but 0.

    So the recorded steps of each piece are a window that does not depend on the warm-up.
    """
    while first < steps:
        stop = min((first // chunk + 1) * chunk or chunk, steps)
        yield range(first, stop)
        first = stop

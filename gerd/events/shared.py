"""Types that all backends share, and how they cut a recording into chunks of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Events(NamedTuple):
    """Events of one recording in some steps; the parts of a recording come in order of time."""

    row: int  # the recording's place in the batch
    steps: range
    keys: NDArray[np.int64]  # ascending; see `keys.py`
    background: NDArray[np.bool_]  # noise that no moving edge caused


def chunks(first: int, steps: int, chunk: int) -> Iterator[range]:
    """The steps from `first`, in the warm-up, up to `steps`, cut at every multiple of `chunk` but 0.

    So the recorded steps of each piece are a window that does not depend on the warm-up.
    """
    while first < steps:
        stop = min((first // chunk + 1) * chunk or chunk, steps)
        yield range(first, stop)
        first = stop

"""What every backend gives, events of a recording as keys, in which pieces; and what the definition gives before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


class Events(NamedTuple):
    """Events of one recording in some steps; the parts of a recording come in order of time."""

    row: int  # the recording's place in the batch
    steps: range
    keys: NDArray[np.int64]  # ascending; see `keys.py`
    background: NDArray[np.bool_]  # noise that no moving edge caused


class Steps(NamedTuple):
    """What becomes of some consecutive steps; tensors are (recordings, steps, height, width)."""

    numbers: NDArray[np.int64]
    coverage: Tensor  # activations: sub-pixels times intensity
    seen: Tensor  # activations after shape noise
    change: Tensor  # of what is seen since one step ago
    state: Tensor  # of the integrators, with the change, before the reset
    fired: Tensor  # (…, 2): by the integrators, OFF and ON
    kept: Tensor  # (…, 2): after event noise
    events: Tensor  # (…, 2): with background noise


def chunks(first: int, steps: int, chunk: int) -> Iterator[range]:
    """The steps from `first`, in the warm-up, up to `steps`, cut at every multiple of `chunk` but 0.

    So the recorded steps of each piece are a window that does not depend on the warm-up.
    """
    while first < steps:
        stop = min((first // chunk + 1) * chunk or chunk, steps)
        yield range(first, stop)
        first = stop

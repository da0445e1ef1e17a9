"""What every backend gives: events of a recording, as keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Events(NamedTuple):
    """Events of one recording in some steps; the parts of a recording come in order of time."""

    row: int  # the recording's place in the batch
    keys: NDArray[np.int64]  # ((step · height + y) · width + x) · 2 + p, ascending
    background: NDArray[np.bool_]  # noise that no moving edge caused

"""What every backend gives: the events of a batch of recordings, as coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Coordinates = NDArray[np.int64]


@dataclass(frozen=True)
class Events:
    """Events sorted by (row, step, y, x, p), where row is the recording's place in the batch."""

    row: Coordinates
    step: Coordinates
    y: Coordinates
    x: Coordinates
    p: Coordinates  # 1 ON, 0 OFF
    background: NDArray[np.bool_]  # noise that no moving edge caused

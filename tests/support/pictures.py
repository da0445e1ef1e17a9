"""How much two pictures differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

LARGEST_DIFFERENCE = 4.0  # mean over the pixels, of 255: fonts may be drawn a little differently elsewhere


def difference(one: Path, other: Path) -> float:
    with Image.open(one) as first, Image.open(other) as second:
        if first.size != second.size:
            return np.inf
        a, b = (np.asarray(picture.convert("RGB"), np.float64) for picture in (first, second))
    return float(np.abs(a - b).mean())

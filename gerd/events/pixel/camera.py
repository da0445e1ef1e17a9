"""The fixed pattern of a camera: which of its pixels are odd, and how. A function of the camera's number alone.

A pixel's pattern is drawn from the words of (camera's number; pixel, 0, 0, purpose CAMERA), in which neither the seed
nor the index of a recording has a part: all recordings of a camera have the same odd pixels. Each property has a word
of its own, and a pixel has it if the word is below share · 2³². So the dead pixels of a smaller share are among those
of a larger one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gerd.events.pixel.noise import drop_bound
from gerd.scene import philox

HOT, DEAD = range(2)  # words of a pixel


@lru_cache(maxsize=16)
def odd_pixels(camera: int, which: int, share: float, pixels: int) -> NDArray[np.int64]:
    """The numbers, y · width + x, of the pixels of a camera that are HOT, or DEAD, in ascending order."""
    word = philox.words(camera, np.arange(pixels), 0, 0, philox.CAMERA)[which]
    odd = np.flatnonzero(word < drop_bound(share))
    odd.flags.writeable = False
    return odd

"""Memory for large batches of frames, used again: a shape and a type in, an array of zeros out."""

from __future__ import annotations

import math
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

SMALLEST_KEPT = 2**22  # bytes: less is not worth keeping
LARGEST_KEPT = 2**30  # bytes of one array, and of all of them together
MOST_ARRAYS = 4

_Bytes = NDArray[np.uint8]
_kept: list[tuple[_Bytes, weakref.ref[_Bytes]]] = []  # memory, and the array over it that was handed out


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """np.zeros, in the memory of an earlier call if nobody holds its result any more.

    Memory that the process has already is set to zero several times as fast as fresh memory comes from the system, and
    a training loop drops its batches one after the other. So the memory of the latest few large results is kept.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not SMALLEST_KEPT <= size <= LARGEST_KEPT:
        return np.zeros(shape, dtype)
    in_use, fitting = [], []
    with suppress(IndexError):  # popped one by one until none is left, so that no two threads get the same
        while True:
            memory, user = _kept.pop(0)
            if user() is not None:
                in_use.append((memory, user))
            elif len(memory) == size:  # memory of other sizes goes back to the system
                fitting.append((memory, user))
    if fitting:
        memory, _ = fitting.pop()
        memory[:] = 0
    else:
        memory = np.zeros(size, np.uint8)
    array = np.frombuffer(memory.data, np.uint8)  # an object that all views of it, and only they, keep alive
    keep = [*in_use, *fitting, (memory, weakref.ref(array))]
    while len(keep) > MOST_ARRAYS or sum(len(memory) for memory, _ in keep) > LARGEST_KEPT:
        keep.pop(0)
    _kept.extend(keep)
    return array.view(dtype).reshape(shape)

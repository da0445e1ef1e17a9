"""Borders and limits: the free path of a parameter in, the path folded back into its bounds out.

A mirror (`bounce`, limits) turns the path round at its bounds, a torus (`wrap`) lets it go on at the other one. Either
bound may be infinite. Arrays may be of numpy or of PyTorch, with the same bits; `xp` is the package that they are of.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from gerd.geometry.exactmath import Values

Array = NDArray[np.float64]


def folded(u: Array, low: Array, high: Array, wrap: NDArray[np.bool_]) -> Array:
    """`u` (…, times) folded into [low, high], either of which may be infinite."""
    outside = ~((u >= low) & (u < high)).all(axis=-1)
    if not outside.any():
        return u
    result = u.copy()
    result[outside] = fold(np, u[outside], low[outside], high[outside], wrap[outside])
    return result


def fold(xp: ModuleType, u: Values, low: Values, high: Values, wrap: NDArray[np.bool_] | Tensor) -> Values:
    """`u` folded into [low, high]; all of them have shapes that broadcast."""
    cells, anchor, size, has_low, has_high = _cells(xp, u, low, high)
    cell = xp.floor(cells)
    bounded = has_low & has_high
    rest = u - cell * size
    odd = xp.remainder(cell, 2.0) == 1.0
    mirrored = xp.clip(xp.where(odd, (anchor + xp.where(bounded, high, 0.0)) - rest, rest), low, high)  # of rounding
    cyclic = xp.where((cells == cell) | (rest < low) | (rest >= high), anchor, rest)  # in [low, high)
    beyond = xp.where(has_low, u < low, u > high)  # one limit only: reflect there once
    once = xp.where(beyond, anchor - (u - anchor), u)
    inside = xp.where(bounded, xp.where(wrap, cyclic, mirrored), once)
    return xp.where((u >= low) & (u < high), u, inside)  # cells are rounded: what is inside stays as it is


def flipped(
    u: Array, speed: Array, push: Array, low: Array, high: Array, wrap: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """Whether the folded path (…, times) runs against the free one, on the later side of an instant of reflection.

    None if it does so nowhere. Velocity and acceleration may be (…, 1) where they are alike at all times.
    """
    touching = ~((u > low) & (u < high)).all(axis=-1)
    if not touching.any():
        return None
    result = np.zeros(u.shape, np.bool_)
    u, speed, push, low, high = (each[touching] for each in (u, speed, push, low, high))
    result[touching] = _flipped(u, speed, push, low, high, wrap[touching])
    return result


def _flipped(
    u: Array, speed: Array, push: Array, low: Array, high: Array, wrap: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    cells, _, _, has_low, has_high = _cells(np, u, low, high)
    cell = np.floor(cells)
    leaving = (speed < 0) | ((speed == 0) & (push < 0))
    cell = np.where((cells == cell) & leaving, cell - 1, cell)  # on the edge, about to be in the cell below
    beyond = np.where(has_low, cell < 0, has_high & (cell >= 0))
    inside = (u > low) & (u < high)
    return ~inside & np.where(has_low & has_high, ~wrap & (np.mod(cell, 2.0) == 1.0), beyond)


def _cells(xp: ModuleType, u: Values, low: Values, high: Values) -> tuple[Any, ...]:
    """How many sizes `u` is away from its anchor; the anchor; the size; whether there is each of the bounds."""
    has_low = low > -np.inf
    has_high = high < np.inf
    bounded = has_low & has_high
    size = xp.where(bounded, high, 1.0) - xp.where(bounded, low, 0.0)
    anchor = xp.where(has_low, low, xp.where(has_high, high, 0.0))
    return (u - anchor) / size, anchor, size, has_low, has_high

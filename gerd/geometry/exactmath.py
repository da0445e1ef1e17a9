"""sin, cos, exp, log and angles of float64 arrays, with the same last bit on every machine.

The C and vector libraries behind `numpy.sin` differ in the last bit from one processor to the next, and one
such bit can move a shape's edge across a sub-pixel centre. These use only +, -, ×, / and exact operations
(rounding, powers of two), each of which IEEE 754 defines to the bit. They are accurate to about 1e-15: sine and
cosine for an angle in units of `HALF_PI`, which is a right angle here although it is 6e-17 short of π/2.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
if TYPE_CHECKING:
    from torch import Tensor

    Values = TypeVar("Values", Array, Tensor)  # numbers of numpy or of PyTorch: the same kind in and out

HALF_PI = 1.5707963267948966
_LN2_HIGH = 0.693147180369123816490  # the first 33 bits of ln 2, so that k · _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10

# The factors of both series, the last term first: 1 / (2k · (2k+1)) and 1 / ((2k-1) · 2k).
OF_SINE = (1 / 272, 1 / 210, 1 / 156, 1 / 110, 1 / 72, 1 / 42, 1 / 20, 1 / 6)
OF_COSINE = (1 / 306, 1 / 240, 1 / 182, 1 / 132, 1 / 90, 1 / 56, 1 / 30, 1 / 12, 1 / 2)


def radians(degrees: ArrayLike) -> Array:
    """Degrees to radians such that a multiple of 90° becomes exactly that multiple of `HALF_PI`."""
    return np.asarray(degrees, np.float64) / 90.0 * HALF_PI


def sincos(angle: Values, xp: ModuleType = np) -> tuple[Values, Values]:
    """Sine and cosine of `angle` in radians; exactly 0 and ±1 at the multiples of `HALF_PI`.

    They are NaN where an angle is so large (beyond 1e15) that its rest after whole turns means nothing. `xp` is the
    package that `angle` is an array of: numpy or torch.
    """
    quarter = xp.round(angle / HALF_PI)
    rest = angle - quarter * HALF_PI
    rest = xp.where(xp.abs(rest) < 1.0, rest, np.nan)  # of a quarter turn it would be 0.785 at most
    square = rest * rest
    sine = xp.ones_like(rest)
    for factor in OF_SINE:
        sine = 1.0 - square * factor * sine
    sine = rest * sine
    cosine = xp.ones_like(rest)
    for factor in OF_COSINE:
        cosine = 1.0 - square * factor * cosine
    turn = xp.remainder(quarter, 4.0)
    swap = (turn == 1) | (turn == 3)
    one, other = xp.where(swap, cosine, sine), xp.where(swap, sine, cosine)
    return xp.where(turn >= 2, -one, one), xp.where((turn == 1) | (turn == 2), -other, other)


def exp(x: ArrayLike) -> Array:
    """e to the power `x`; exactly 1 at 0, and infinite or 0 where a float64 cannot hold it."""
    x = np.clip(np.asarray(x, np.float64), -746.0, 710.0)
    twos = np.rint(x / 0.6931471805599453)
    rest = (x - twos * _LN2_HIGH) - twos * _LN2_LOW
    series = np.ones_like(rest)
    for k in range(14, 0, -1):
        series = 1.0 + rest / k * series
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.ldexp(series, twos.astype(np.int32))


def log(x: ArrayLike) -> Array:
    """Natural logarithm of `x`; exactly 0 at 1, minus infinity at 0, and no number below."""
    x = np.asarray(x, np.float64)
    mantissa, twos = np.frexp(np.where((x > 0) & (x < np.inf), x, 1.0))
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, mantissa * 2.0, mantissa)
    twos = np.where(low, twos - 1, twos).astype(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for k in range(25, 0, -2):
        series = 1.0 / k + square * series
    result = twos * _LN2_HIGH + (2.0 * ratio * series + twos * _LN2_LOW)
    return np.where(x > 0, np.where(x < np.inf, result, np.inf), np.where(x == 0, -np.inf, np.nan))


def angle(x: ArrayLike, y: ArrayLike) -> Array:
    """The direction of (x, y) in radians, from -2 to 2 `HALF_PI`; exact along the axes, and 0 for (0, 0)."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    large, small = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    tangent = small / np.where(large > 0, large, 1.0)
    steep = tangent > 0.4142135623730951  # more than half of 45°
    rest = np.where(steep, (tangent - 1.0) / (tangent + 1.0), tangent)
    square = rest * rest
    series = np.zeros_like(rest)
    for k in range(45, 0, -2):
        series = 1.0 / k - square * series
    result = np.where(steep, HALF_PI / 2, 0.0) + rest * series
    result = np.where(np.abs(y) > np.abs(x), HALF_PI - result, result)
    result = np.where(x < 0, 2 * HALF_PI - result, result)
    return np.where(y < 0, -result, result)

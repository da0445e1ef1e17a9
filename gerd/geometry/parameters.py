"""The six parameters of T: their names, order and units; parameters in, the matrices T, T' and T'' out.

    T = Translate(x, y) · Rotate(rotation) · Shear(shear) · Scale(scale_x, scale_y)

takes a shape's unit frame to sensor pixels. Angles are in radians, derivatives per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.geometry import exactmath

if TYPE_CHECKING:
    from gerd.geometry.exactmath import Values

Array = NDArray[np.float64]

PARAMETERS = ("x", "y", "scale_x", "scale_y", "rotation", "shear")
PARAMETER_COUNT = len(PARAMETERS)
X, Y, SCALE_X, SCALE_Y, ROTATION, SHEAR = range(PARAMETER_COUNT)
PARAMETERS_OF = {"translation": [X, Y], "scale": [SCALE_X, SCALE_Y], "rotation": [ROTATION], "shear": [SHEAR]}
ORDERS = 3  # the parameter itself, its velocity, its acceleration
UNITS = dict(zip(PARAMETERS, ("px", "px", "px", "px", "°", ""), strict=True))  # as they are shown to people


def affine(values: Sequence[Values], xp: ModuleType | None = np) -> tuple[Values, ...]:
    """The six entries a, b, x, c, d, y of T = ((a, b, x), (c, d, y), (0, 0, 1)) from the six parameters.

    `xp` is the package that the values are arrays of, or None if the rotation is known to be 0.
    """
    x, y, scale_x, scale_y, rotation, shear = values
    across = shear * scale_y
    if xp is None or (xp is np and not rotation.any()):  # sine 0 and cosine 1, as below
        return scale_x, across, x, scale_x * 0.0, scale_y, y
    sine, cosine = exactmath.sincos(rotation, xp)
    return (
        cosine * scale_x,
        cosine * across - sine * scale_y,
        x,
        sine * scale_x,
        sine * across + cosine * scale_y,
        y,
    )


def from_entries(entries: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """T (…, 3, 3) with leading axes of this shape, from the entries that `affine` gives."""
    result = np.zeros((*shape, 3, 3))
    for k, entry in enumerate(entries):
        result[..., k // 3, k % 3] = entry
    result[..., 2, 2] = 1.0
    return result


def matrix(parameters: Array) -> Array:
    """T (…, 3, 3) from parameters (…, 3, 6)."""
    return from_entries(affine([parameters[..., 0, i] for i in range(PARAMETER_COUNT)]), parameters.shape[:-2])


def derivatives(parameters: Array) -> tuple[Array, Array]:
    """T' and T'' (…, 3, 3) per step, by the product rule on Rotate · (Shear · Scale)."""
    value = parameters[..., 0, :]
    speed = parameters[..., 1, :]
    push = parameters[..., 2, :]
    sine, cosine = exactmath.sincos(value[..., ROTATION])
    turn = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)
    quarter = np.stack([np.stack([-sine, -cosine], -1), np.stack([cosine, -sine], -1)], -2)
    spin, spin_push = speed[..., ROTATION, None, None], push[..., ROTATION, None, None]
    turn_1 = spin * quarter
    turn_2 = spin_push * quarter - spin * spin * turn

    k = value[..., SHEAR]
    k1 = speed[..., SHEAR]
    k2 = push[..., SHEAR]
    s = value[..., SCALE_Y]
    s1 = speed[..., SCALE_Y]
    s2 = push[..., SCALE_Y]
    upper = _upper(value[..., SCALE_X], k * s, s)
    upper_1 = _upper(speed[..., SCALE_X], k1 * s + k * s1, s1)
    upper_2 = _upper(push[..., SCALE_X], k2 * s + 2.0 * k1 * s1 + k * s2, s2)

    first = np.zeros((*value.shape[:-1], 3, 3))
    second = np.zeros_like(first)
    first[..., :2, :2] = _product(turn_1, upper) + _product(turn, upper_1)
    second[..., :2, :2] = _product(turn_2, upper) + 2.0 * _product(turn_1, upper_1) + _product(turn, upper_2)
    first[..., :2, 2] = speed[..., :2]
    second[..., :2, 2] = push[..., :2]
    return first, second


def _upper(a: Array, b: Array, d: Array) -> Array:
    """The matrices ((a, b), (0, d))."""
    return np.stack([np.stack([a, b], -1), np.stack([np.zeros_like(d), d], -1)], -2)


def _product(m: Array, n: Array) -> Array:
    """m · n of 2×2 matrices in plain arithmetic: a BLAS may fuse or reorder, and then bits depend on the machine."""
    return m[..., :, 0, None] * n[..., None, 0, :] + m[..., :, 1, None] * n[..., None, 1, :]

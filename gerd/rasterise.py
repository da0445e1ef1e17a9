"""Outlines in the frame: T in, the coefficients from which a backend finds where each sub-row crosses an outline.

This is the only floating point behind the picture, and its last bit decides which sub-pixel a crossing falls on. So
it is done once, here, in plain float64 numpy; a backend adds one multiplication and one addition (and for the circle a
square root) per crossing, without contraction, and rounds to integers.

Coordinates are in sub-pixels: pixel coordinates times `upsampling`. Sub-row r is sampled at y = r + 0.5, and the
sub-pixel in column c at x = c + 0.5 is inside when an odd number of crossings lies at or left of it. A crossing at x
therefore *is* the integer column ceil(x - 0.5), clipped to [0, width · upsampling].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.scene import Scenes
from gerd.shapes import RADIUS

Array = NDArray[np.float64]

TOP, BOTTOM, X_TOP, SLOPE = range(4)  # coefficients of a side: crosses rows with TOP <= y < BOTTOM
CENTRE_Y, REACH, CENTRE_X, TILT, WIDTH = range(5)  # of an ellipse: crosses rows with (y - CENTRE_Y)² < REACH


@dataclass(frozen=True)
class Borders:
    """The outlines of a batch of scenes at some steps.

    A piece is a closed border of one actor; an actor on a torus has nine, one in each direction. A piece is either one
    ellipse or several sides, which are the entries `first[piece]` to `first[piece + 1]` of the coefficients:

        side       x = X_TOP + (y - TOP) · SLOPE
        ellipse    x = (CENTRE_X + TILT · (y - CENTRE_Y)) ∓ WIDTH · sqrt(REACH - (y - CENTRE_Y)²)
    """

    coefficients: Array  # (recordings, steps, entries, 5)
    first: NDArray[np.int32]  # (pieces + 1,)
    is_ellipse: NDArray[np.bool_]  # (pieces,)
    actor: NDArray[np.int32]  # (pieces,); pieces lie from the farthest to the nearest

    @property
    def crossings(self) -> NDArray[np.int32]:
        """(pieces + 1,): where each piece's crossings start if every entry of it crossed a row."""
        sizes = np.where(self.is_ellipse, 2, np.diff(self.first))
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def borders(scenes: Scenes, steps: NDArray[np.int64]) -> Borders:
    """The outlines of `scenes` at the given steps."""
    T = scenes.trajectory.T(steps)  # (recordings, actors, steps, 3, 3)
    parts: list[Array] = []
    sizes, is_ellipse, owner = [0], [], []
    for actor, outline in enumerate(scenes.outlines):
        for down, right in _COPIES if scenes.wraps[actor] else ((0, 0),):
            placed = T[:, actor].copy()
            placed[..., 0, 2] += right * scenes.width
            placed[..., 1, 2] += down * scenes.height
            placed[..., :2, :] *= scenes.upsampling
            part = _ellipse(placed) if outline.is_circle else _sides(placed, outline.segments)
            parts.append(part)
            sizes.append(part.shape[2])
            is_ellipse.append(outline.is_circle)
            owner.append(actor)
    nothing = np.zeros((len(scenes), len(steps), 0, 5))
    return Borders(
        np.concatenate(parts, axis=2) if parts else nothing,
        np.cumsum(sizes).astype(np.int32),
        np.array(is_ellipse, np.bool_),
        np.array(owner, np.int32),
    )


_COPIES = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))


def _sides(T: Array, segments: Array) -> Array:
    """(recordings, steps, sides, 5) from T (recordings, steps, 3, 3) and sides (sides, 2, 2) in the unit frame."""
    px, py = segments[..., 0], segments[..., 1]
    T = T[..., None, None, :, :]
    x = (T[..., 0, 0] * px + T[..., 0, 1] * py) + T[..., 0, 2]
    y = (T[..., 1, 0] * px + T[..., 1, 1] * py) + T[..., 1, 2]
    upward = y[..., 0] > y[..., 1]
    result = np.zeros((*upward.shape, 5))
    result[..., TOP] = np.where(upward, y[..., 1], y[..., 0])
    result[..., BOTTOM] = np.where(upward, y[..., 0], y[..., 1])
    result[..., X_TOP] = np.where(upward, x[..., 1], x[..., 0])
    rise = result[..., BOTTOM] - result[..., TOP]
    run = np.where(upward, x[..., 0], x[..., 1]) - result[..., X_TOP]
    result[..., SLOPE] = np.where(rise > 0, run / np.where(rise > 0, rise, 1.0), 0.0)
    return result


def _ellipse(T: Array) -> Array:
    """(recordings, steps, 1, 5): the circle under T. With A = M·Mᵀ, its points satisfy qᵀ·A⁻¹·q = RADIUS²."""
    a, b, c, d = T[..., 0, 0], T[..., 0, 1], T[..., 1, 0], T[..., 1, 1]
    spread = c * c + d * d
    safe = np.where(spread > 0, spread, 1.0)
    result = np.zeros((*spread.shape, 1, 5))
    result[..., 0, CENTRE_Y] = T[..., 1, 2]
    result[..., 0, REACH] = RADIUS * RADIUS * spread
    result[..., 0, CENTRE_X] = T[..., 0, 2]
    result[..., 0, TILT] = (a * c + b * d) / safe
    result[..., 0, WIDTH] = np.abs(a * d - b * c) / safe
    return result

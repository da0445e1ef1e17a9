"""Outlines in the frame: T in, the coefficients from which a backend finds where each sub-row crosses an outline.

This is the only floating point behind the picture, and its last bit decides which sub-pixel a crossing falls on. So
it is done once, here, in plain float64 arithmetic, one operation at a time: numpy's, or PyTorch's on the device that
needs the result, with the same bits. A backend adds one multiplication and one addition (and for the circle a square
root) per crossing, without contraction, and rounds to integers.

Coordinates are in sub-pixels: pixel coordinates times `upsampling`. Sub-row r is sampled at y = r + 0.5, and the
sub-pixel in column c at x = c + 0.5 is inside when an odd number of crossings lies at or left of it. A crossing at x
therefore *is* the integer column ceil(x - 0.5), clipped to [0, width · upsampling].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.geometry.shapes import RADIUS
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]

COPIES = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))  # of an actor on a torus, in frames
ROUNDING = 1e-9  # by which a shape that just fits a torus may be larger
TOP, BOTTOM, X_TOP, SLOPE = range(4)  # coefficients of a side: crosses rows with TOP <= y < BOTTOM
CENTRE_Y, REACH, CENTRE_X, TILT, WIDTH = range(5)  # of an ellipse: crosses rows with (y - CENTRE_Y)² < REACH
LARGEST = 1e100  # of the numbers in T: what is made of them, where a row crosses an outline, is finite


@dataclass(frozen=True)
class Borders:
    """The outlines of a batch of scenes at some steps.

    A piece is a closed border of one actor; an actor on a torus has nine, one in each direction. A piece is either one
    ellipse or several sides, which are the entries `first[piece]` to `first[piece + 1]` of the coefficients:

        side       x = X_TOP + (y - TOP) · SLOPE
        ellipse    x = (CENTRE_X + TILT · (y - CENTRE_Y)) ∓ WIDTH · sqrt(REACH - (y - CENTRE_Y)²)
    """

    coefficients: Any  # (recordings, steps, entries, 5) float64: a numpy array, or a tensor on a device
    first: NDArray[np.int32]  # (pieces + 1,)
    is_ellipse: NDArray[np.bool_]  # (pieces,)
    convex: NDArray[np.bool_]  # (pieces,): no row meets the piece in more than one span
    actor: NDArray[np.int32]  # (pieces,); pieces lie from the farthest to the nearest


def borders(scenes: Scenes, times: NDArray[Any], device: str | None = None) -> Borders:
    """The outlines of `scenes` at the given steps, or at times (recordings, times) of each recording.

    With `device`, their coefficients are a PyTorch tensor there.
    """
    count = times.shape[-1]
    xp: Any = np
    if device is not None:
        import torch as xp
    with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused
        entries = scenes.trajectory.entries(times if times.ndim == 1 else times[:, None], device)  # (…, actors, times)
    _check(xp, entries, scenes, times)
    parts = []
    sizes, is_ellipse, convex, owner = [0], [], [], []
    for actor, outline in enumerate(scenes.outlines):
        a, b, x, c, d, y = (entry[:, actor, :, None] for entry in entries)
        f = scenes.upsampling
        if scenes.wraps[actor]:
            _check_fits(scenes, actor, (a, b, c, d), times)
        for down, right in COPIES if scenes.wraps[actor] else ((0, 0),):
            placed = (a * f, b * f, (x + right * scenes.width) * f, c * f, d * f, (y + down * scenes.height) * f)
            part = _ellipse(xp, placed) if outline.is_circle else _sides(xp, placed, outline.segments)
            parts.append(xp.broadcast_to(part, (len(scenes), count, *part.shape[2:])))
            sizes.append(part.shape[2])
            is_ellipse.append(outline.is_circle)
            convex.append(outline.is_convex)
            owner.append(actor)
    nothing = xp.zeros((len(scenes), count, 0, 5), dtype=xp.float64)
    coefficients = xp.concatenate(parts, 2) if parts else nothing
    return Borders(
        np.ascontiguousarray(coefficients) if xp is np else coefficients,  # of one layout: kernels are compiled for it
        np.cumsum(sizes).astype(np.int32),
        np.array(is_ellipse, np.bool_),
        np.array(convex, np.bool_),
        np.array(owner, np.int32),
    )


def entry_count(scenes: Scenes) -> int:
    """How many entries the outlines of a scene have."""
    return sum(
        (len(COPIES) if wraps else 1) * (1 if outline.is_circle else len(outline.segments))
        for outline, wraps in zip(scenes.outlines, scenes.wraps, strict=True)
    )


def _check_fits(scenes: Scenes, actor: int, linear: tuple[Any, ...], times: NDArray[Any]) -> None:
    """A shape on a torus is drawn once in each of nine frames: an error if it is larger than one."""
    a, b, c, d = (np.asarray(entry if isinstance(entry, np.ndarray) else entry.cpu())[..., 0] for entry in linear)
    form = np.stack([np.stack(np.broadcast_arrays(*row), -1) for row in ((a, b), (c, d))], -2)  # (rows, steps, 2, 2)
    frame, outline = np.array([scenes.width, scenes.height]), scenes.outlines[actor]
    if (2 * outline.reach * np.sqrt((form * form).sum(axis=-1)) <= frame).all():
        return  # however it is turned
    for of_recording, time in zip(form, np.broadcast_to(times, (len(form), times.shape[-1])), strict=True):
        low, high = outline.extent(of_recording)
        size = np.maximum(high - low, np.maximum(-low, high))  # of one that lies beside its own centre: its reach
        large = np.flatnonzero((size > frame * (1 + ROUNDING)).any(axis=-1))
        if len(large):
            (x, y), step = size[large[0]], time[large[0]]
            raise GerdError(
                f"actors.{actor}.translation.border: got 'wrap': the shape is {x:.4g}×{y:.4g} pixels at time {step:g}, "
                f"larger than the torus of {scenes.width}×{scenes.height}; allowed: a smaller shape, bounce, free"
            )


def _check(xp: Any, entries: tuple[Any, ...], scenes: Scenes, times: NDArray[Any]) -> None:
    """An error if a number of T is none, or too large to compute with: a kernel would take it for a place in memory."""
    shape = (len(scenes), len(scenes.outlines), times.shape[-1])
    if 0 in shape or float(xp.stack([xp.abs(entry).max() for entry in entries]).max()) <= LARGEST:
        return
    T = np.stack([np.broadcast_to(entry if xp is np else entry.cpu().numpy(), shape) for entry in entries])
    wrong = ~(np.abs(T) <= LARGEST)
    step, row, actor, entry = np.argwhere(np.moveaxis(wrong, (3, 1, 2, 0), (0, 1, 2, 3)))[0]  # the earliest
    time = np.broadcast_to(times, shape[::2])[row, step]
    raise GerdError(
        f"index {scenes.indices[row]}: actor {actor} cannot be drawn at time {time:g}: its T has the number "
        f"{T[entry, row, actor, step]:g}; allowed: within ±{LARGEST:g}, and fewer turns than a number has digits for"
    )


def _sides(xp: Any, T: tuple[Any, ...], segments: Array) -> Any:
    """(recordings, steps, sides, 5) from the entries of T, each (recordings, steps, 1), and sides (sides, 2, 2)."""
    a, b, x, c, d, y = T
    points = segments if xp is np else xp.from_numpy(segments).to(a.device)
    (x0, y0), (x1, y1) = (
        ((a * points[:, end, 0] + b * points[:, end, 1]) + x, (c * points[:, end, 0] + d * points[:, end, 1]) + y)
        for end in range(2)
    )
    upward = y0 > y1
    top, bottom = xp.minimum(y0, y1), xp.maximum(y0, y1)
    x_top, x_bottom = xp.where(upward, x1, x0), xp.where(upward, x0, x1)
    rise = bottom - top
    slope = xp.where(rise > 0, (x_bottom - x_top) / xp.where(rise > 0, rise, 1.0), 0.0)
    return _stacked(xp, (top, bottom, x_top, slope, xp.zeros_like(top)))


def _ellipse(xp: Any, T: tuple[Any, ...]) -> Any:
    """(recordings, steps, 1, 5): the circle under T. With A = M·Mᵀ, its points satisfy qᵀ·A⁻¹·q = RADIUS²."""
    a, b, x, c, d, y = T
    spread = c * c + d * d
    safe = xp.where(spread > 0, spread, 1.0)
    tilt, width = (a * c + b * d) / safe, xp.abs(a * d - b * c) / safe
    return _stacked(xp, (y, RADIUS * RADIUS * spread, x, tilt, width))


def _stacked(xp: Any, parts: tuple[Any, ...]) -> Any:
    shape = np.broadcast_shapes(*(tuple(part.shape) for part in parts))
    return xp.stack([xp.broadcast_to(part, shape) for part in parts], -1)

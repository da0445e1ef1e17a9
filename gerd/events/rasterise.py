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

from collections.abc import Sequence
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
    """The outlines of a batch of scenes at some steps, in pieces.

    A piece is either one ellipse or several sides, which are the entries `first[piece]` to `first[piece + 1]` of the
    coefficients:

        side       x = X_TOP + (y - TOP) · SLOPE
        ellipse    x = (CENTRE_X + TILT · (y - CENTRE_Y)) ∓ WIDTH · sqrt(REACH - (y - CENTRE_Y)²)
    """

    coefficients: Any  # (recordings, steps, entries, 5) float64: a numpy array, or a tensor on a device
    first: NDArray[np.int32]  # (pieces + 1,)
    is_ellipse: NDArray[np.bool_]  # (pieces,)
    convex: NDArray[np.bool_]  # (pieces,): no row meets the piece in more than one span
    actor: NDArray[np.int32]  # (pieces,); pieces lie from the farthest to the nearest


@dataclass(frozen=True)
class Piece:
    """A closed border of one actor, in one of the frames of a torus: an ellipse or sides.

    An actor that can have either has a piece of each kind. Where it is drawn as the other, or is absent, all points of
    the piece lie in one place, and no row crosses it.
    """

    actor: int
    is_ellipse: bool
    down: int  # frames
    right: int


def layout(scenes: Scenes) -> list[Piece]:
    """The pieces of a scene, from the farthest to the nearest; the same for all recordings of a batch."""
    return [
        Piece(actor, is_ellipse, down, right)
        for actor, shapes in enumerate(scenes.shapes)
        for is_ellipse in sorted({outline.is_circle for outline in shapes})
        for down, right in (COPIES if scenes.wraps[actor] else ((0, 0),))
    ]


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
    check(scenes, entries, times, xp)
    parts, f, pieces = [], scenes.upsampling, layout(scenes)
    outlines = {(piece.actor, piece.is_ellipse): outline(scenes, piece, xp, device) for piece in pieces}
    for piece in pieces:
        a, b, x, c, d, y = (entry[:, piece.actor, :, None] for entry in entries)
        right, down = piece.right * scenes.width, piece.down * scenes.height
        placed = (a * f, b * f, (x + right) * f, c * f, d * f, (y + down) * f)
        part = (_ellipse if piece.is_ellipse else _sides)(xp, placed, outlines[piece.actor, piece.is_ellipse])
        parts.append(xp.broadcast_to(part, (len(scenes), count, *part.shape[2:])))
    nothing = xp.zeros((len(scenes), count, 0, 5), dtype=xp.float64)
    coefficients = xp.concatenate(parts, 2) if parts else nothing
    convex = [piece.is_ellipse or all(outline.is_convex for outline in scenes.shapes[piece.actor]) for piece in pieces]
    return Borders(
        np.ascontiguousarray(coefficients) if xp is np else coefficients,  # of one layout: kernels are compiled for it
        np.cumsum([0, *(part.shape[2] for part in parts)]).astype(np.int32),
        np.array([piece.is_ellipse for piece in pieces], np.bool_),
        np.array(convex, np.bool_),
        np.array([piece.actor for piece in pieces], np.int32),
    )


def entry_count(scenes: Scenes) -> int:
    """How many entries the outlines of a scene have."""
    return sum(1 if piece.is_ellipse else _most_sides(scenes, piece.actor) for piece in layout(scenes))


def values_of_picture(scenes: Scenes) -> int:
    """About how many numbers the definition holds for one picture of one recording."""
    slots = 2 * entry_count(scenes) + 1
    return scenes.height * (2 * scenes.width + scenes.upsampling * slots * 4)


def _most_sides(scenes: Scenes, actor: int) -> int:
    return max(len(outline.segments) for outline in scenes.shapes[actor] if not outline.is_circle)


def outline(scenes: Scenes, piece: Piece, xp: Any = np, device: str | None = None) -> Any:
    """What a piece is in the unit frame: its sides (sides, 2, 2); of an ellipse, whether it is there (1,).

    Where that differs between recordings, the axes (recordings, 1) come first. A shape with fewer sides than another
    has some without length in addition, at one of its vertices.
    """
    shapes, chosen = scenes.shapes[piece.actor], scenes.chosen[:, piece.actor]
    of_shapes: NDArray[Any]  # the last is for an actor that is absent
    if piece.is_ellipse:
        of_shapes = np.array([*([shape.is_circle] for shape in shapes), [False]])
    else:
        of_shapes = np.zeros((len(shapes) + 1, _most_sides(scenes, piece.actor), 2, 2))
        for sides, shape in zip(of_shapes, shapes, strict=False):
            if not shape.is_circle:
                sides[:] = shape.segments[0, 0]
                sides[: len(shape.segments)] = shape.segments
    alike = len(np.unique(chosen)) == 1
    result = of_shapes[chosen[0]] if alike else of_shapes[chosen][:, None]
    return result if xp is np else xp.from_numpy(result).to(device)


def check(scenes: Scenes, entries: Sequence[Any], times: NDArray[Any], xp: Any = np) -> None:
    """An error if a scene cannot be drawn, from the entries of T that `affine` gives, each (recordings, actors, …)."""
    _check_numbers(xp, entries, scenes, times)
    for actor in np.flatnonzero(scenes.wraps).tolist():
        _check_fits(scenes, actor, tuple(entries[i][:, actor] for i in (0, 1, 3, 4)), times)


def _check_fits(scenes: Scenes, actor: int, linear: tuple[Any, ...], times: NDArray[Any]) -> None:
    """A shape on a torus is drawn once in each of nine frames: an error if it is larger than one."""
    entries = [np.asarray(entry if isinstance(entry, np.ndarray) else entry.cpu()) for entry in linear]
    maps = np.stack(np.broadcast_arrays(*entries), -1)  # some of them may be the same at all times
    maps = maps.reshape(*maps.shape[:2], 2, 2)  # (rows, steps, 2, 2)
    frame = np.array([scenes.width, scenes.height])
    if (2 * scenes.reach[:, actor, None, None] * np.sqrt((maps * maps).sum(axis=-1)) <= frame).all():
        return  # however it is turned
    of_times = np.broadcast_to(times, (len(maps), times.shape[-1]))
    for row, (of_recording, time) in enumerate(zip(maps, of_times, strict=True)):
        outline = scenes.outlines(row)[actor]
        if outline is None:
            continue
        low, high = outline.extent(of_recording)
        size = np.maximum(high - low, np.maximum(-low, high))  # of one that lies beside its own centre: its reach
        large = np.flatnonzero((size > frame * (1 + ROUNDING)).any(axis=-1))
        if len(large):
            (x, y), step = size[large[0]], time[large[0]]
            raise GerdError(
                f"actors.{actor}.translation.border: got 'wrap': the shape is {x:.4g}×{y:.4g} pixels at time {step:g}, "
                f"larger than the torus of {scenes.width}×{scenes.height}; allowed: a smaller shape, bounce, free"
            )


def _check_numbers(xp: Any, entries: Sequence[Any], scenes: Scenes, times: NDArray[Any]) -> None:
    """An error if a number of T is none, or too large to compute with: a kernel would take it for a place in memory."""
    shape = (len(scenes), len(scenes.shapes), times.shape[-1])
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


def _sides(xp: Any, T: tuple[Any, ...], sides: Any) -> Any:
    """(recordings, steps, sides, 5) from the entries of T, each (recordings, steps, 1), and sides (…, sides, 2, 2)."""
    a, b, x, c, d, y = T
    (x0, y0), (x1, y1) = (
        ((a * sides[..., end, 0] + b * sides[..., end, 1]) + x, (c * sides[..., end, 0] + d * sides[..., end, 1]) + y)
        for end in range(2)
    )
    upward = y0 > y1
    top, bottom = xp.minimum(y0, y1), xp.maximum(y0, y1)
    x_top, x_bottom = xp.where(upward, x1, x0), xp.where(upward, x0, x1)
    rise = bottom - top
    slope = xp.where(rise > 0, (x_bottom - x_top) / xp.where(rise > 0, rise, 1.0), 0.0)
    return _stacked(xp, (top, bottom, x_top, slope, xp.zeros_like(top)))


def _ellipse(xp: Any, T: tuple[Any, ...], is_there: Any) -> Any:
    """(recordings, steps, 1, 5): the circle under T, if it is there.

    With A = M·Mᵀ, its points satisfy qᵀ·A⁻¹·q = RADIUS².
    """
    a, b, x, c, d, y = T
    spread = c * c + d * d
    safe = xp.where(spread > 0, spread, 1.0)
    tilt, width = (a * c + b * d) / safe, xp.abs(a * d - b * c) / safe
    return _stacked(xp, (y, xp.where(is_there, RADIUS * RADIUS * spread, 0.0), x, tilt, width))


def _stacked(xp: Any, parts: tuple[Any, ...]) -> Any:
    shape = np.broadcast_shapes(*(tuple(part.shape) for part in parts))
    if xp is not np:
        return xp.stack([xp.broadcast_to(part, shape) for part in parts], -1)
    result = np.empty((*shape, len(parts)))
    for i, part in enumerate(parts):  # half of the time that `stack` takes
        result[..., i] = part
    return result

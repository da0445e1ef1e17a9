"""Outlines in the frame: T in, the coefficients from which a backend finds where each sub-row crosses an outline.

This is the only floating point behind the picture, and its last bit decides which sub-pixel a crossing falls on. So
it is plain float64 arithmetic, one operation at a time, which has the same bits wherever it is done: here, or on a GPU
by the kernel `place`. A backend adds one multiplication and one addition (and for the circle a square root) per
crossing, without contraction, and rounds to integers.

Coordinates are in sub-pixels: pixel coordinates times `upsampling`. Sub-row r is sampled at y = r + 0.5, and the
sub-pixel in column c at x = c + 0.5 is inside when an odd number of crossings lies at or left of it. A crossing at x
therefore *is* the integer column ceil(x - 0.5), clipped to [0, width · upsampling].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.geometry.shapes import RADIUS
from gerd.geometry.trajectory import Send
from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float64]
Times = Array | NDArray[np.int64]  # steps, or times between them
Entries = tuple[Any, ...]  # of T, as `parameters.affine` gives them: arrays of numpy or of PyTorch

COPIES = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))  # of an actor on a torus, in frames
ROUNDING = 1e-9  # by which a shape that just fits a torus may be larger
TOP, BOTTOM, X_TOP, SLOPE = range(4)  # coefficients of a side: crosses rows with TOP <= y < BOTTOM
CENTRE_Y, REACH, CENTRE_X, TILT, WIDTH = range(5)  # of an ellipse: crosses rows with (y - CENTRE_Y)² < REACH
LARGEST_ENTRY = 1e100  # of the numbers in T: what is made of them, where a row crosses an outline, is finite


@dataclass(frozen=True)
class Borders:
    """The outlines of a batch of scenes at some steps, in pieces.

    A piece is either one ellipse or several sides, which are the entries `first[piece]` to `first[piece + 1]` of the
    coefficients:

        side       x = X_TOP + (y - TOP) · SLOPE
        ellipse    x = (CENTRE_X + TILT · (y - CENTRE_Y)) ∓ WIDTH · sqrt(REACH - (y - CENTRE_Y)²)
    """

    coefficients: Array  # (recordings, steps, entries, 5)
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


def borders(scenes: Scenes, times: Times) -> Borders:
    """The outlines of `scenes` at the given steps, or at times (recordings, times) of each recording."""
    entries = placed(scenes, times)
    f = scenes.upsampling
    pieces = layout(scenes)
    parts = []
    outlines = {(piece.actor, piece.is_ellipse): _outline(scenes, piece) for piece in pieces}
    for piece in pieces:
        a, b, x, c, d, y = (entry[:, piece.actor, :, None] for entry in entries)
        right, down = piece.right * scenes.width, piece.down * scenes.height
        T = (a * f, b * f, (x + right) * f, c * f, d * f, (y + down) * f)
        part = (_ellipse if piece.is_ellipse else _sides)(T, outlines[piece.actor, piece.is_ellipse])
        parts.append(np.broadcast_to(part, (len(scenes), times.shape[-1], *part.shape[2:])))
    nothing = np.zeros((len(scenes), times.shape[-1], 0, 5))
    coefficients = np.concatenate(parts, 2) if parts else nothing
    return Borders(np.ascontiguousarray(coefficients), *numbered(scenes))  # of one layout: kernels are compiled for it


def placed(scenes: Scenes, times: Times, send: Send | None = None) -> Entries:
    """The entries of T, each (recordings, actors, times), or with 1 where they are alike; an error if one is too large.

    With `send` they are PyTorch tensors on the device to which it sends arrays.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused
        entries = scenes.trajectory.entries(times if times.ndim == 1 else times[:, None], send)
    check(scenes, entries, times)
    return entries


def maps(scenes: Scenes, times: Times) -> Array:
    """(recordings, times, actors, 6): the entries of T, as `placed` gives them, in one piece."""
    shape = (len(scenes), len(scenes.shapes), times.shape[-1])
    result = np.empty((shape[0], shape[2], shape[1], 6))
    for i, entry in enumerate(placed(scenes, times)):
        result[..., i] = np.broadcast_to(entry, shape).swapaxes(1, 2)
    return result


def numbered(scenes: Scenes) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int32]]:
    """Arrays with a number for each piece: its first entry, whether it is an ellipse, whether convex, and its actor."""
    pieces = layout(scenes)
    return (
        np.cumsum([0, *(_entries(scenes, piece) for piece in pieces)]).astype(np.int32),
        np.array([piece.is_ellipse for piece in pieces], np.bool_),
        are_convex(scenes, pieces),
        np.array([piece.actor for piece in pieces], np.int32),
    )


def are_convex(scenes: Scenes, pieces: list[Piece]) -> NDArray[np.bool_]:
    """(pieces,): whether no row meets a piece in more than one span, whichever of its shapes it has."""
    convex = [piece.is_ellipse or all(outline.is_convex for outline in scenes.shapes[piece.actor]) for piece in pieces]
    return np.array(convex, np.bool_)


def offsets(scenes: Scenes) -> Array:
    """(pieces, 2): how far right and down of its actor each piece lies, in pixels."""
    pieces = [(piece.right * scenes.width, piece.down * scenes.height) for piece in layout(scenes)]
    return np.array(pieces, np.float64).reshape(-1, 2)


def unit_ends(scenes: Scenes) -> Array:
    """(recordings or 1, entries, 4): x and y of both ends of each side in the unit frame.

    Of an ellipse the first of them is 1 if it is there, or else 0.
    """
    parts = []
    for piece in layout(scenes):
        outline = _outline(scenes, piece)
        of_piece = np.pad(outline[..., None], ((0, 0),) * outline.ndim + ((0, 3),)) if piece.is_ellipse else outline
        parts.append(of_piece.reshape(-1, _entries(scenes, piece), 4))
    rows = max((len(part) for part in parts), default=1)
    return np.concatenate([np.zeros((rows, 0, 4)), *(np.broadcast_to(p, (rows, *p.shape[1:])) for p in parts)], axis=1)


def entry_count(scenes: Scenes) -> int:
    """How many entries the outlines of a scene have."""
    return sum(_entries(scenes, piece) for piece in layout(scenes))


def _entries(scenes: Scenes, piece: Piece) -> int:
    return 1 if piece.is_ellipse else _most_sides(scenes, piece.actor)


def values_of_picture(scenes: Scenes) -> int:
    """About how many numbers the definition holds for one picture of one recording."""
    slots = 2 * entry_count(scenes) + 1
    return scenes.height * (2 * scenes.width + scenes.upsampling * slots * 4)


def _most_sides(scenes: Scenes, actor: int) -> int:
    return max(len(outline.segments) for outline in scenes.shapes[actor] if not outline.is_circle)


def _outline(scenes: Scenes, piece: Piece) -> Array:
    """What a piece is in the unit frame: its sides (sides, 2, 2); of an ellipse 1 if it is there, or else 0 (1,).

    Where that differs between recordings, the axes (recordings, 1) come first. A shape with fewer sides than another
    has some without length in addition, at one of its vertices.
    """
    shapes = scenes.shapes[piece.actor]
    chosen = scenes.chosen[:, piece.actor]  # ABSENT takes the last of what is made for each shape
    if piece.is_ellipse:
        of_shapes = np.array([*([outline.is_circle] for outline in shapes), [False]], np.float64)
    else:
        of_shapes = np.zeros((len(shapes) + 1, _most_sides(scenes, piece.actor), 2, 2))
        for sides, outline in zip(of_shapes, shapes, strict=False):
            if not outline.is_circle:
                sides[:] = outline.segments[0, 0]
                sides[: len(outline.segments)] = outline.segments
    alike = len(np.unique(chosen)) == 1
    return of_shapes[chosen[0]] if alike else of_shapes[chosen][:, None]


def check(scenes: Scenes, entries: Entries, times: Times) -> None:
    """An error if a scene cannot be drawn; `entries` are those of T, as `placed` gives them."""
    _check_numbers(entries, scenes, times)
    for actor in np.flatnonzero(scenes.wraps).tolist():
        _check_fits(scenes, actor, tuple(entries[i][:, actor] for i in (0, 1, 3, 4)), times)


def _check_fits(scenes: Scenes, actor: int, linear: Entries, times: Times) -> None:
    """A shape on a torus is drawn once in each of nine frames: an error if it is larger than one."""
    maps = np.stack(np.broadcast_arrays(*map(_on_host, linear)), -1)  # some of them may be the same at all times
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


def _on_host(entry: Array | Tensor) -> Array:
    return entry if isinstance(entry, np.ndarray) else entry.cpu().numpy()


def _check_numbers(entries: Entries, scenes: Scenes, times: Times) -> None:
    """An error if a number of T is not finite, or too large: a kernel would make an address in memory of it."""
    shape = (len(scenes), len(scenes.shapes), times.shape[-1])
    if 0 in shape or float(sum(abs(entry).max() for entry in entries)) <= LARGEST_ENTRY:
        return
    T = np.stack([np.broadcast_to(_on_host(entry), shape) for entry in entries])
    wrong = ~(np.abs(T) <= LARGEST_ENTRY)
    if not wrong.any():
        return
    step, row, actor, entry = np.argwhere(np.moveaxis(wrong, (3, 1, 2, 0), (0, 1, 2, 3)))[0]  # the earliest
    time = np.broadcast_to(times, shape[::2])[row, step]
    raise GerdError(
        f"index {scenes.indices[row]}: actor {actor} cannot be drawn at time {time:g}: its T has the number "
        f"{T[entry, row, actor, step]:g}; allowed: within ±{LARGEST_ENTRY:g}, "
        "and fewer turns than a number has digits for"
    )


def _sides(T: tuple[Array, ...], sides: Array) -> Array:
    """(recordings, steps, sides, 5) from the entries of T, each (recordings, steps, 1), and sides (…, sides, 2, 2)."""
    a, b, x, c, d, y = T
    (x0, y0), (x1, y1) = (
        ((a * sides[..., end, 0] + b * sides[..., end, 1]) + x, (c * sides[..., end, 0] + d * sides[..., end, 1]) + y)
        for end in range(2)
    )
    upward = y0 > y1
    top, bottom = np.minimum(y0, y1), np.maximum(y0, y1)
    x_top, x_bottom = np.where(upward, x1, x0), np.where(upward, x0, x1)
    rise = bottom - top
    slope = np.where(rise > 0, (x_bottom - x_top) / np.where(rise > 0, rise, 1.0), 0.0)
    return _stacked((top, bottom, x_top, slope, np.zeros_like(top)))


def _ellipse(T: tuple[Array, ...], is_there: Array) -> Array:
    """(recordings, steps, 1, 5): the circle under T, where `is_there` is not 0.

    With A = M·Mᵀ, its points satisfy qᵀ·A⁻¹·q = RADIUS².
    """
    a, b, x, c, d, y = T
    spread = c * c + d * d
    safe = np.where(spread > 0, spread, 1.0)
    tilt = (a * c + b * d) / safe
    width = np.abs(a * d - b * c) / safe
    return _stacked((y, np.where(is_there, RADIUS * RADIUS * spread, 0.0), x, tilt, width))


def _stacked(parts: tuple[Array, ...]) -> Array:
    result = np.empty((*np.broadcast_shapes(*(part.shape for part in parts)), len(parts)))
    for i, part in enumerate(parts):  # half of the time that `stack` takes
        result[..., i] = part
    return result

"""What is seen of each actor, and why a pixel changed: scenes and instants in, arrays out.

A frame is the picture of a scene at an instant, a time in steps; several scenes at several instants give a frame for
each pair, the instant fastest. Counts are of sub-pixels, `upsampling`² in a pixel, without noise. All is worked out by
compiled code, which finds the same crossings as that of the events, and visits the boxes of the outlines only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.events import rasterise
from gerd.events.cpu import crossings_room, kernels, slots_of
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def pieces(scenes: Scenes) -> tuple[Integers, Array]:
    """The actor of each piece of outline, and how far right and down of it the piece lies, in pixels (pieces, 2)."""
    layout = rasterise.layout(scenes)
    shifts = [(piece.right * scenes.width, piece.down * scenes.height) for piece in layout]
    return np.array([piece.actor for piece in layout], np.int64), np.array(shifts, np.float64).reshape(-1, 2)


def counts(scenes: Scenes, instants: NDArray[Any]) -> NDArray[np.int32]:
    """(frames, actors, height, width): in how many sub-pixels of each pixel each actor is seen."""
    coefficients, room = _prepared(scenes, instants)
    result = np.zeros((len(coefficients), len(scenes.shapes), scenes.height, scenes.width), np.int32)
    kernels("coverage_kernels").count_frames(coefficients, *room, result)
    return result


def masks(scenes: Scenes, instants: NDArray[Any], edges: bool = False) -> NDArray[np.bool_]:
    """(frames, actors, height, width): whether an actor is seen in at least half of the pixel.

    With `edges`: whether it is seen in any part of the pixel, or was in the frame before. The first frame then has no
    mask of its own.
    """
    coefficients, room = _prepared(scenes, instants)
    result = np.zeros((len(coefficients) - edges, len(scenes.shapes), scenes.height, scenes.width), np.bool_)
    kernels("coverage_kernels").mask_frames(coefficients, edges, *room, result)
    return result


def flow(
    scenes: Scenes, instants: NDArray[Any], motion: Array, motion_before: Array | None = None
) -> NDArray[np.float32]:
    """(frames, 2, height, width): the velocity of the actor that is seen in at least half of a pixel, 0 elsewhere.

    motion: (frames, pieces, 8): the four numbers of L, row by row, a velocity, and the place c of the piece's centre.
        What is at q moves by L · (q - c) + velocity.
    motion_before: the same for the pieces of the frame before, at the instant of the frame. Then the first frame has no
        flow of its own. Where no actor takes up half of a pixel, it is the flow of the one that takes up most of it in
        the two frames together, the nearest of equals, and NaN where none does.
    """
    edges = motion_before is not None
    coefficients, room = _prepared(scenes, instants, views=1 + edges)
    shape = (len(coefficients) - edges, 2, scenes.height, scenes.width)
    result = np.empty(shape, np.float32) if edges else np.zeros(shape, np.float32)
    best = np.empty(shape[2:] if edges else (0, 0), np.int32)
    motions = [np.ascontiguousarray(part) for part in (motion if motion_before is None else motion_before, motion)]
    kernels("coverage_kernels").flow_frames(coefficients, edges, *motions, best, *room, result)
    return result


def causes(scenes: Scenes, instants: NDArray[Any], pixels: Integers) -> Integers:
    """Whose edges have changed some pixels of one scene, each between an instant and the one before in the list.

    pixels: (pixels, 5), sorted by the first column: the number of the later instant, y, x, the direction (1 brighter,
    -1 darker), and whether shape noise takes the pixel out (0 no, 1 of the earlier frame, 2 of the later, 3 of both).

    Returns (pixels, 4): the change of the count, in units of sub-pixels · INTENSITY_ONE; the actor whose edges did most
    in that direction, or -1; which of the actor's pieces did most; 1 if that is one of the later frame, 0 of the
    earlier.
    """
    coefficients, room = _prepared(scenes, instants, views=0)
    gains = np.empty((2, len(pieces(scenes)[0])), np.int64)
    result = np.empty((len(pixels), 4), np.int64)
    kernels("coverage_kernels").explain(coefficients, pixels, *room, gains, result)
    return result


def _prepared(scenes: Scenes, instants: NDArray[Any], views: int = 1) -> tuple[Array, tuple[Any, ...]]:
    """The outlines of each frame (frames, entries, 5), and what the kernels call scene, scratch, before and now.

    views: of how many frames it is held what is seen; of two, its counts, too; 0: crossings only.
    """
    borders = rasterise.borders(scenes, instants)
    f, height, width, slots = scenes.upsampling, scenes.height, scenes.width, slots_of(borders)
    actors, compiled = len(scenes.shapes), kernels("coverage_kernels")
    intensity = scenes.intensity[:1].sum(axis=0, dtype=np.int32)[borders.actor]  # there may be no scene at all
    scene = (
        (width, height, f),
        (borders.first, borders.is_ellipse, borders.convex, slots, intensity),
        borders.actor,
        np.searchsorted(borders.actor, np.arange(actors + 1)),
        np.arange(width * f + 1, dtype=np.int32) // np.int32(f),
    )
    scratch = (
        np.empty(len(borders.actor), np.int64),
        np.empty((2 << compiled.MOST_SPLIT, f, height), np.int32),
        *np.empty((2, 2 * slots[-1] + 2), np.int32),
        np.empty(width + 2, np.int64),
        np.empty((2, f), np.int32),
    )

    def view(number: int) -> tuple[Any, ...]:
        held, counted = actors * (number < views), actors * (views == 2)
        rises = np.zeros((held, height, width + 2), np.int32)
        marks = np.zeros((held, height, -(-(width + 2) // compiled.WORD_BITS)), np.uint64)
        return crossings_room(slots, f, height), rises, marks, np.zeros((counted, height, width), np.int32)

    coefficients = borders.coefficients.reshape(len(scenes) * len(instants), *borders.coefficients.shape[2:])
    return np.ascontiguousarray(coefficients), (scene, scratch, view(1), view(0))

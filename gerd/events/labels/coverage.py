"""What is seen of each actor, and why a pixel changed: a scene, and its ground truth in some frames, in; arrays out.

A frame is the picture of a scene at an instant. Truth (frames, actors, 3, 6) is that of `Recording`, NaN for an actor
that is absent. Counts are of sub-pixels, `upsampling`² in a pixel, without noise. All is worked out by compiled code,
which finds the same crossings as that of the events, and visits the boxes of the outlines only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from threading import local
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events import rasterise
from gerd.events.compiled import argument
from gerd.events.cpu.crossings import WORD_BITS
from gerd.events.cpu.hidden import MOST_SPLIT
from gerd.events.cpu.outlines import LANES
from gerd.events.cpu.pieces import PieceTable
from gerd.events.cpu.room import crossings_room, room_for_lists, sides_room
from gerd.events.cpu.run import kernels
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

KEPT = 4  # rooms of a thread
FRESH = 2**25  # bytes: more come from the system as zeros, and cost nothing where they are not touched
_THREAD = local()


class Placed(NamedTuple):
    """Where the outlines of a scene are in some frames, and how they move."""

    maps: Array  # (frames, actors, 6): the entries of T, as of `rasterise.maps`
    motion: Array  # (frames, pieces, 8): the four numbers of L, row by row, a velocity, and the centre c.
    # What is at q moves by L · (q - c) + velocity.


def pieces(scenes: Scenes) -> tuple[Integers, Array]:
    """The actor of each piece of outline, and how far right and down of it the piece lies, in pixels (pieces, 2)."""
    return np.array([piece.actor for piece in rasterise.layout(scenes)], np.int64), rasterise.offsets(scenes)


def placed(scenes: Scenes, truth: Array) -> Placed:
    """Where the outlines of one scene are, from its truth."""
    room = _Room.of(scenes)
    frames = len(truth)
    maps, motion = np.empty((*truth.shape[:2], 6)), np.empty((frames, room.pieces, 8))
    given = np.require(truth, np.float64, ["C", "W"])
    (wrong,) = kernels("labels.placing").place(given, scenes.present[0], *room.layout, maps, motion)
    if wrong or any(scenes.wraps):
        rasterise.check(scenes, tuple(maps.T[:, None]), np.arange(frames))
    return Placed(maps, motion)


def counts(scenes: Scenes, truth: Array) -> NDArray[np.int32]:
    """(frames, actors, height, width): in how many sub-pixels of each pixel each actor is seen."""
    result = np.zeros((len(truth), len(scenes.shapes), scenes.height, scenes.width), np.int32)
    maps = placed(scenes, truth).maps
    kernels("labels.seen").count_frames(maps, *_Room.of(scenes).parts(maps), result)
    return result


def masks(scenes: Scenes, truth: Array, edges: bool = False) -> NDArray[np.bool_]:
    """(frames, actors, height, width): whether an actor is seen in at least half of the pixel.

    With `edges`: whether it is seen in any part of the pixel, or was in the frame before. The first frame then has no
    mask of its own.
    """
    result = np.zeros((len(truth) - edges, len(scenes.shapes), scenes.height, scenes.width), np.bool_)
    maps = placed(scenes, truth).maps
    kernels("labels.seen").mask_frames(maps, edges, *_Room.of(scenes).parts(maps), result)
    return result


def flow(
    scenes: Scenes, truth: Array, centres_before: Array | None = None, fresh_from: int = FRESH
) -> NDArray[np.float32]:
    """(frames, 2, height, width): the velocity of the actor that is seen in at least half of a pixel, 0 elsewhere.

    centres_before: (frames, pieces, 2): where the pieces of the frame before have their centres at the instant of the
        frame. Then the first frame of the truth has no flow of its own. Where no actor takes up half of a pixel, it is
        the flow of the one that takes up most of it in the two frames together, the nearest of equals, and NaN where
        none does.
    fresh_from: above so many bytes, memory is expected to come as zeros.
    """
    maps, motion = placed(scenes, truth)
    edges = centres_before is not None
    motion = motion_before = motion[int(edges) :]
    if centres_before is not None:
        motion_before = motion.copy()
        motion_before[..., 6:] = centres_before
    shape = (len(motion), 2, scenes.height, scenes.width)
    blank = not edges and 4 * math.prod(shape) > fresh_from
    result = np.zeros(shape, np.float32) if blank else np.empty(shape, np.float32)
    best = np.empty(shape[2:] if edges else (0, 0), np.int32)
    room = _Room.of(scenes).parts(maps, counted=edges)
    kernels("labels.seen").flow_frames(maps, edges, blank, motion_before, motion, best, *room, result)
    return result


def causes(scenes: Scenes, instants: Array | Integers, pixels: Integers) -> Integers:
    """Whose edges have changed some pixels of one scene, each between an instant and the one before in the list.

    instants: times in steps.
    pixels: (pixels, 5), sorted by the first column: the number of the later instant, y, x, the direction (1 brighter,
    -1 darker), and whether shape noise takes the pixel out (0 no, 1 of the earlier frame, 2 of the later, 3 of both).

    Returns (pixels, 4): the change of the count, in units of sub-pixels · INTENSITY_ONE; the actor whose edges did most
    in that direction, or -1; which of the actor's pieces did most; 1 if that is one of the later frame, 0 of the
    earlier.
    """
    room = _Room.of(scenes)
    gains = np.empty((2, room.pieces), np.int64)
    result = np.empty((len(pixels), 4), np.int64)
    maps = rasterise.maps(scenes, instants)[0]
    kernels("labels.seen").explain(maps, pixels, *room.parts(maps), gains, result)
    return result


class _Room:
    """What the kernels call scene, scratch, before and now, for scenes with the same actors and size.

    It is used again and again by one thread: to make it takes as long as a label.
    """

    @staticmethod
    def of(scenes: Scenes) -> _Room:
        """This thread's room for a scene, a batch of one."""
        kept: dict[Hashable, _Room] = _THREAD.__dict__.setdefault("rooms", {})
        key = (scenes.shapes, scenes.wraps, scenes.height, scenes.width, scenes.upsampling)
        kept[key] = room = kept.pop(key) if key in kept else _Room(scenes)  # the latest is the last
        if len(kept) > KEPT:
            kept.pop(next(iter(kept)))
        room._table.choose(scenes, 0)
        return room

    def __init__(self, scenes: Scenes):
        self._table = table = PieceTable(scenes)
        self.pieces = table.sizes.pieces
        actor, offset = pieces(scenes)
        self.layout = argument(actor), argument(offset)
        actors = len(scenes.shapes)
        self._size = (actors, scenes.height, scenes.width)
        self._f = f = scenes.upsampling
        height = scenes.height
        width = scenes.width
        self._scene = argument(
            (
                (width, height, f),
                table.pieces,
                actor,
                np.searchsorted(actor, np.arange(actors + 1)),
                np.arange(width * f + 1, dtype=np.int32) // np.int32(f),
                np.arange(width) + 0.5,
            )
        )
        rows = height + LANES
        parts = 2 << MOST_SPLIT
        spans = (
            np.empty((rows, width + 2), np.int32),
            np.empty(rows, np.int64),
            np.empty((rows, parts), np.int32),
            np.empty(rows, np.bool_),
            np.empty((7, rows), np.int32),
        )
        self._scratch = argument(
            (
                np.empty(self.pieces, np.int64),
                np.empty((parts, f, rows), np.int32),
                np.empty((4, table.sizes.crossings), np.int32),
                np.zeros(width + 2, np.int32),
                np.zeros(-(-(width + 2) // WORD_BITS), np.uint64),
                spans,
                np.empty((2, f), np.int32),
                sides_room(table.sizes.sides),
            )
        )
        self._crossings = [argument(crossings_room(table.sizes, f, height)) for _ in range(2)]

    def parts(self, maps: Array, counted: bool = False) -> tuple[object, ...]:
        """The arguments of a kernel for frames with these maps. `counted`: there is room for the counts of two."""
        shape = self._size if counted else (0, 0, 0)
        needed = self._table.crossings_of_lists(maps, self._f, self._size[1])
        self._crossings = [room_for_lists(frame, needed) for frame in self._crossings]
        return self._scene, self._scratch, *((crossings, np.zeros(shape, np.int32)) for crossings in self._crossings)

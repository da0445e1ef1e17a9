"""The arguments of the compiled code: what stays as it is over a recording, and room for what does not.

Room is used by one recording after the other, and kept for the next call: to make it would take longer than a small
recording.
"""

from __future__ import annotations

import mmap
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from gerd.events.compiled import Argument, argument
from gerd.events.cpu.arguments import (
    Changes,
    Crossings,
    Draws,
    Model,
    Noise,
    Pixels,
    Room,
    Scratch,
    Sums,
)
from gerd.events.cpu.crossings import NEAR, WORD_BITS
from gerd.events.cpu.hidden import MOST_SPLIT
from gerd.events.cpu.outlines import AT_ONCE as AT_ONCE_PLACED
from gerd.events.cpu.outlines import LANES, Sides
from gerd.events.cpu.pieces import PieceTable, Sizes
from gerd.events.cpu.steps import TOGETHER
from gerd.events.pixel import noise
from gerd.events.pixel.response import Response
from gerd.events.pixel.thresholds import Thresholds
from gerd.scene.scenes import Scenes

NEVER = -(2**62)  # a step or µs before all events
AT_ONCE = 256  # random words drawn in one loop
KEPT, LARGEST_KEPT = 4, 2**24  # rooms that nobody uses now, and the bytes that one of them may have


@dataclass(frozen=True, eq=False)
class Rooms:
    """All the room that a recording needs."""

    key: tuple[object, ...]  # what their sizes depend on
    rows: NDArray[np.int64]  # which rows of both frames have crossings; none if all are 0
    frames: tuple[Argument, Argument]  # crossings of the frame before and of the next one
    pixels: Pixels
    carried: Argument  # the pixels of a recording that takes no arrays besides
    events: Room
    others: tuple[Argument, ...]  # changes, draws, scratch and events
    bytes: int

    @classmethod
    def of(cls, scenes: Scenes, pieces: PieceTable, least: int) -> Rooms:
        """Room for recordings of a batch and at least so many events, which nobody else uses until it is kept."""
        f, height = scenes.upsampling, scenes.height
        key = (height, scenes.width, f, pieces.sizes, _counts_firing(scenes), least)
        with _TAKING:
            for rooms in _KEPT:
                if rooms.key == key:
                    _KEPT.remove(rooms)
                    return rooms
        rows = np.zeros((2, 4, pieces.sizes.pieces), np.int64)
        before, after = (argument(crossings_room(pieces.sizes, f, height, of_frame)) for of_frame in rows)
        pixels, events = pixels_room(scenes), events_room(scenes, least)
        carried = argument(pixels)
        others = (changes_room(scenes), draws_room(scenes), scratch_room(scenes, pieces.sizes), events)
        size = sum(map(_size, (before, after, carried, *others)))
        return cls(key, rows, (before, after), pixels, carried, events, tuple(map(argument, others)), size)

    def with_room_for(self, frames: list[Argument], needed: int) -> Rooms:
        """These rooms with room for at least so many crossings in the lists of each of their frames."""
        before, after = (room_for_lists(frame, needed) for frame in frames)
        if before is frames[0] and after is frames[1]:
            return self
        grown = _size(before) + _size(after) - sum(map(_size, frames))
        return replace(self, frames=(before, after), bytes=self.bytes + grown)

    def keep(self) -> None:
        """Leave it to a later call, unless it is large."""
        if self.bytes <= LARGEST_KEPT:
            with _TAKING:
                _KEPT.append(self)


_KEPT: deque[Rooms] = deque(maxlen=KEPT)
_TAKING = Lock()


def _size(part: object) -> int:
    """The bytes of an array, or of all arrays of an argument."""
    if isinstance(part, Argument):
        return _size(part.plain)
    return sum(map(_size, part)) if isinstance(part, tuple) else getattr(part, "nbytes", 0)


def model_of(scenes: Scenes, row: int) -> Model:
    """The integrators of a recording, the same for all of a batch unless they begin in a stationary state."""
    pixel, tables, response = scenes.pixel, Thresholds.of(scenes), Response.of(scenes)
    on, off, least, most = (table.ravel() for table in (tables.on, tables.off, tables.least, tables.most))
    stationary = pixel.initial == "stationary"
    return Model(
        on=on,
        off=off,
        least=least,
        most=most,
        own=int(tables.differ),
        to_zero=pixel.reset_to_zero,
        response=response.table,
        lowest=response.lowest,
        is_log=pixel.log_response > 0,
        rest=scenes.rest,
        leak=pixel.leak_hz * 1e-6,
        stationary=stationary,
        actors=int(scenes.present[row].sum()) if stationary else 0,
        dark=int(scenes.dark[row]) if stationary else 0,
    )


def noise_of(scenes: Scenes) -> Argument:
    """The numbers behind the noises of a batch."""
    pixel = scenes.pixel
    return _noise(pixel.shape_noise, pixel.event_noise, pixel.background, scenes.height * scenes.width)


@lru_cache(maxsize=16)
def _noise(of_shape: float, of_event: float, background: float, area: int) -> Argument:
    return argument(
        Noise(
            shape=noise.block_tables(of_shape, area),
            has_shape=of_shape > 0,
            drop_below=noise.drop_bound(of_event),
            background=noise.block_tables(background, area),
            has_background=background > 0,
        )
    )


def crossings_room(sizes: Sizes, f: int, height: int, rows: NDArray[np.int64] | None = None) -> Crossings:
    """Room for the crossings of a frame, of which `rows` (4, pieces) says in which rows there are any.

    Those of the pieces that have lists get it when it is known how many there are; see `room_for_lists`.
    """
    pieces = sizes.pieces
    low, high, whole_low, whole_high = np.zeros((4, pieces), np.int64) if rows is None else rows
    return Crossings(
        cols=np.empty((sizes.slots, f, height + LANES), np.int32),
        low=low,
        high=high,
        whole_low=whole_low,
        whole_high=whole_high,
        left=np.zeros(pieces, np.int32),
        right=np.zeros(pieces, np.int32),
        first=np.zeros((sizes.lists, height * f + 1), np.int64),
        columns=np.empty(0, np.int32),
    )


def room_for_lists(frame: Argument, needed: int) -> Argument:
    """The crossings of a frame, an argument, with room for at least so many in lists; those that it has are kept."""
    assert isinstance(frame.plain, tuple)
    crossings = Crossings(*frame.plain)
    if len(crossings.columns) >= needed:
        return frame
    columns = np.empty(needed + needed // 4, np.int32)
    columns[: len(crossings.columns)] = crossings.columns
    return argument(crossings._replace(columns=columns))


def sides_room(sides: int) -> Sides:
    """Room for the sides of a piece, of which there are at most so many."""
    return Sides(
        begin=np.empty(sides, np.int32),
        end=np.empty(sides, np.int32),
        **{name: np.empty(sides) for name in ("top", "bottom", "x_top", "slope")},
        heights=np.empty((2, AT_ONCE_PLACED)),
        rows=np.empty((2, AT_ONCE_PLACED), np.int32),
        crossed=np.empty(AT_ONCE_PLACED + 1, np.int32),
    )


def pixels_room(scenes: Scenes) -> Pixels:
    """Room for what a recording carries from step to step, as arguments; see `fresh_room` for the rest."""
    height, width = scenes.height, scenes.width
    area = height * width
    blocks = height * -(-width // TOGETHER)
    counted = _counts_firing(scenes)
    return Pixels(
        v=argument(blank(height, width)),
        activation=blank(1, 1),
        numbers=argument(np.zeros(3, np.int64)),
        pending=argument(np.empty(area, np.int64)),
        hidden=argument(np.empty(area, np.int64)),
        hidden_counts=argument(np.empty(area, np.int64)),
        begun=argument(np.empty(blocks, np.int64)),
        fired=argument(blank(max(2, height), width) if counted else blank(1, 1)),  # two rows say that it is there
        shown=blank(1, 1),
        ready=np.zeros((1, 1), np.int64),
        leaked=np.zeros((1, 1), np.bool_),
    )


def _counts_firing(scenes: Scenes) -> bool:
    """Whether the events of each pixel are counted."""
    return scenes.exact and scenes.pixel.event_noise > 0


def takes_fresh(scenes: Scenes) -> bool:
    """Whether a recording needs arrays of its own; see `fresh_room`."""
    pixel = scenes.pixel
    return pixel.shape_noise > 0 or pixel.log_response > 0 or pixel.leak_hz > 0 or scenes.rest > 0


def fresh_room(pixels: Pixels, scenes: Scenes) -> Pixels:
    """This room for another recording, with new arrays of what is needed of each pixel from its beginning on."""
    size = (scenes.height, scenes.width)
    if scenes.pixel.shape_noise > 0:
        pixels = pixels._replace(activation=blank(*size))
    if scenes.pixel.log_response > 0:
        pixels = pixels._replace(shown=blank(*size))
    if scenes.pixel.leak_hz > 0:
        pixels = pixels._replace(leaked=np.zeros(size, np.bool_))
    return pixels._replace(ready=np.full(size, NEVER)) if scenes.rest > 0 else pixels


def changes_room(scenes: Scenes) -> Changes:
    """Room for what changes from one frame to the next."""
    height, width, f = scenes.height, scenes.width, scenes.upsampling
    return Changes(
        change=blank(height, width + NEAR),
        touched=np.zeros((height, width // WORD_BITS + 2), np.uint64),
        pixel_of=np.arange(width * f + 1, dtype=np.int32) // np.int32(f),
        rises=np.zeros(width + 2, np.int32),
        marks=np.zeros(width // WORD_BITS + 2, np.uint64),
        listed=np.empty(height * width + 1, np.uint64),
        fired=np.empty(height * width + 1, np.int64),
    )


def draws_room(scenes: Scenes) -> Draws:
    """Room for scattered noise."""
    blocks = noise.GROUP * AT_ONCE + 1
    return Draws(
        counting=np.empty((4, AT_ONCE), np.uint64),
        largest=np.empty(AT_ONCE, np.uint64),
        group=np.empty(AT_ONCE + 1, np.uint64),
        choosing=np.empty((4, blocks), np.uint64),
        block=np.empty(blocks, np.uint64),
        word=np.empty(blocks, np.int64),
        picked=np.empty(scenes.height * scenes.width, np.int64),
    )


def scratch_room(scenes: Scenes, sizes: Sizes) -> Scratch:
    """Room for comparing two frames."""
    f, rows = scenes.upsampling, scenes.height + LANES
    parts = (2 << MOST_SPLIT, f, rows)
    layers = Sizes(pieces=MOST_SPLIT, slots=2 * MOST_SPLIT, lists=0, sides=0, crossings=0)
    return Scratch(
        nearer=np.empty(sizes.pieces, np.int64),
        seen_before=np.empty(parts, np.int32),
        seen_after=np.empty(parts, np.int32),
        cover_before=crossings_room(layers, f, scenes.height),
        cover_after=crossings_room(layers, f, scenes.height),
        lists=np.empty((4, sizes.crossings), np.int32),
        sums=Sums(*(np.empty(rows, np.int32) for _ in Sums._fields)),
        sides=sides_room(sizes.sides),
    )


def events_room(scenes: Scenes, least: int) -> Room:
    """Room for at least so many events, and for those of one step, in which every pixel can fire and have noise."""
    size = 2 * scenes.height * scenes.width + least
    return Room(keys=np.empty(size, np.int64), source=np.empty(size, np.uint8))


def blank(height: int, width: int) -> NDArray[np.int32]:
    """Zeros that, if they are many, cost nothing until they are touched: np.zeros may clear memory that was in use."""
    if height * width < 2**18:
        return np.zeros((height, width), np.int32)
    private = mmap.mmap(-1, 4 * height * width, access=mmap.ACCESS_COPY)  # a forked process has its own
    return np.frombuffer(private, np.int32).reshape(height, width)

"""The pieces of outline of a batch of scenes, as the compiled code takes them; a recording's own are filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gerd.events import rasterise
from gerd.events.compiled import Argument, argument
from gerd.events.cpu.arguments import Pieces
from gerd.events.cpu.outlines import LANES
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

ROUNDING = 1e-9  # by which sums of lengths may be wrong
KEPT = 64  # tables
_KEPT: dict[tuple[object, ...], _Table] = {}


class Sizes(NamedTuple):
    """How much room the pieces of a batch need."""

    pieces: int
    slots: int  # of all convex pieces, two for each
    lists: int  # how many pieces are not convex
    sides: int  # of a piece, at most
    crossings: int  # of all pieces with a sub-row, at most, and a few more


@dataclass(frozen=True, eq=False)
class _Table:
    """What the actors of a batch can look like: arrays have a row for each piece, and a column for each shape."""

    sizes: Sizes
    actor: Whole  # (pieces,)
    listed: NDArray[np.bool_]  # (pieces,): those that are not convex
    first: Whole  # (pieces, shapes + 1), with none as the last: numbers of sides, see `Pieces`
    end: Whole
    lengths: Array  # (sides + 1,): in the unit frame, of all sides before each
    fixed: dict[str, Argument]  # those parts of `Pieces` that all recordings share


class PieceTable:
    """The pieces of a batch: `pieces` is an argument, in which `choose` fills in what a recording's own look like."""

    def __init__(self, scenes: Scenes):
        self._table = table = _table_of(scenes)
        self.sizes = table.sizes
        self._rows = np.arange(self.sizes.pieces)
        self._first, self._end = np.zeros((2, self.sizes.pieces), np.int64)
        self._intensity = np.zeros(self.sizes.pieces, np.int32)
        own = {"first": self._first, "end": self._end, "intensity": self._intensity}
        self.pieces = argument(Pieces(**table.fixed, **own))

    def choose(self, scenes: Scenes, row: int) -> None:
        """Fill in what the actors of a recording look like."""
        table = self._table
        chosen = scenes.chosen[row, table.actor]  # ABSENT takes the last of each row, which is none
        self._first[:] = table.first[self._rows, chosen]
        self._end[:] = table.end[self._rows, chosen]
        self._intensity[:] = scenes.intensity[row, table.actor]

    def crossings_of_lists(self, maps: Array, f: int, height: int) -> int:
        """How many crossings the pieces that have lists can have in one frame, from T (frames, actors, 6).

        A side of length l is at most l · |(c, d)| high, where c and d are the lower row of T.
        """
        if self.sizes.lists == 0 or len(maps) == 0:
            return 0
        along, down = maps[:, :, 3], maps[:, :, 4]
        stretch = f * np.sqrt((along * along + down * down).max(axis=0))[self._table.actor]
        sides = self._end - self._first
        lengths = self._table.lengths[self._end] - self._table.lengths[self._first]
        most = np.minimum(lengths * stretch * (1 + ROUNDING) + 2 * sides, sides * float(f * height))
        return int(np.ceil(most[self._table.listed].sum()))


def _table_of(scenes: Scenes) -> _Table:
    """The table of some scenes, which is kept: to make it takes as long as a small recording."""
    key = (scenes.shapes, scenes.wraps, scenes.width, scenes.height)
    if key not in _KEPT:
        if len(_KEPT) >= KEPT:
            _KEPT.clear()
        _KEPT[key] = _made(scenes)
    return _KEPT[key]


def _made(scenes: Scenes) -> _Table:
    layout = rasterise.layout(scenes)
    actor = np.array([piece.actor for piece in layout], np.int64)
    is_ellipse = np.array([piece.is_ellipse for piece in layout], np.bool_)
    convex = rasterise.are_convex(scenes, layout)
    first, end, sides = _tabulated(scenes, layout)
    most = (end - first).max(axis=1, initial=0)
    unit = np.zeros((4, len(sides) + LANES))
    unit[:, : len(sides)] = sides.T
    lengths = np.sqrt(((sides[:, 2:] - sides[:, :2]) ** 2).sum(axis=1))
    fixed = {
        "unit": unit,
        "is_ellipse": is_ellipse,
        "convex": convex,
        "slot": 2 * (np.cumsum(convex) - convex),
        "listed": np.cumsum(~convex) - ~convex,
        "actor": actor,
        "offset": rasterise.offsets(scenes),
    }
    sizes = Sizes(
        pieces=len(layout),
        slots=2 * int(convex.sum()),
        lists=int((~convex).sum()),
        sides=int(most.max(initial=0, where=~is_ellipse)),
        crossings=2 * len(layout) + int(most.sum()) + 2,
    )
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    return _Table(sizes, actor, ~convex, first, end, before, {name: argument(part) for name, part in fixed.items()})


def _tabulated(scenes: Scenes, layout: list[rasterise.Piece]) -> tuple[Whole, Whole, Array]:
    """(pieces, shapes + 1), twice: which sides each shape has that a piece can be, first and end; and all sides."""
    most = max(map(len, scenes.shapes), default=0)
    first, end = np.zeros((2, len(layout), most + 1), np.int64)
    parts = [np.zeros((0, 4))]
    known: dict[int, tuple[int, int]] = {}
    total = 0
    for number, piece in enumerate(layout):
        for which, outline in enumerate(scenes.shapes[piece.actor]):
            if piece.is_ellipse:
                end[number, which] = int(outline.is_circle)
            elif not outline.is_circle:
                if id(outline) not in known:
                    parts.append(outline.segments.reshape(-1, 4))
                    known[id(outline)] = (total, total + len(parts[-1]))
                    total += len(parts[-1])
                first[number, which], end[number, which] = known[id(outline)]
    return first, end, np.concatenate(parts)

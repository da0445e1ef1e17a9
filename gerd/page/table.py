"""The table of recordings on the page: recordings in, columns of plain data out; no events are read.

Angles are in degrees, all other numbers as in the ground truth. A column of classes has the names of shapes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from gerd.config.sweep import labels, member
from gerd.errors import StorageError
from gerd.geometry.parameters import ORDERS, PARAMETERS, ROTATION
from gerd.plan.make import plan_of
from gerd.recording.events import Events
from gerd.recording.recording import Recording, named_shapes
from gerd.scene.draw import appearance
from gerd.storage.recordings import Recordings

MOST_COLUMNS = 40
MOST_ROWS = 100_000  # the first ones of a dataset that has more

TableColumn = TypedDict("TableColumn", {"name": str, "swept": bool, "class": bool, "values": Sequence[object]})


def table(recordings: Sequence[Events]) -> list[TableColumn]:
    """By columns: index, swept values, classes, events, and what differs between the first steps."""
    if isinstance(recordings, Recordings):
        return _columns(list(itertools.islice(_rows_of_dataset(recordings), MOST_ROWS)))
    return _columns([_row(i, each) for i, each in enumerate(recordings)])


@dataclass(frozen=True)
class _Row:
    """What the table says of a recording; of one that cannot be read, only which it is."""

    index: int
    labels: Mapping[str, object]
    events: int | None = None
    start: NDArray[np.float64] | None = None  # (actors, 3, 6): the ground truth of the first step
    shapes: Sequence[str | None] = ()  # the class of each actor


def _row(number: int, events: Events) -> _Row:
    """What the table says of one of several recordings, or of events without a ground truth."""
    if not isinstance(events, Recording):
        return _Row(number, {}, len(events))
    return _Row(events.identity.index, events.identity.labels, len(events), events.truth[0], events.shapes)


def _rows_of_dataset(data: Recordings) -> Iterator[_Row]:
    members = [member(data.config, number) for number in range(data.manifest.members)]
    count = min(data.manifest.count, -(-MOST_ROWS // len(members)))
    chosen = [appearance(plan_of(config), range(count)).chosen for config in members]

    def shapes(index: int, number: int) -> list[str | None]:
        return named_shapes(members[number], chosen[number][index]) if index < count else []

    for number in range(data.shard_count):
        try:
            shard = data.shard(number)
            for row in range(len(shard)):
                events = int(shard.lengths[row])
                index = int(shard.index[row])
                names = shapes(index, int(shard.member[row]))
                yield _Row(index, shard.labels[row], events, shard.truth(row)[0], names)
        except StorageError:  # the page says why when the row is clicked
            for row in data.manifest.rows(number):
                index, which = divmod(row, data.manifest.members)
                yield _Row(index, labels(data.config, which), shapes=shapes(index, which))


def _columns(rows: Sequence[_Row]) -> list[TableColumn]:
    paths = dict.fromkeys(path for row in rows for path in row.labels)
    result: dict[str, Sequence[object]] = {"index": [row.index for row in rows]}
    result |= {path: [row.labels.get(path) for row in rows] for path in paths}
    classes = _classes(rows)
    result |= classes
    result["events"] = [row.events for row in rows]
    actors = max((len(row.start) for row in rows if row.start is not None), default=0)
    absent = np.full((actors, ORDERS, len(PARAMETERS)), np.nan)
    for actor, order, k in itertools.product(range(actors), range(2), range(len(PARAMETERS))):
        unit = 180 / math.pi if k == ROTATION else 1.0
        starts = [row.start if row.start is not None and actor < len(row.start) else absent for row in rows]
        values = [start[actor, order, k] * unit for start in starts]
        column = [None if math.isnan(value) else float(f"{value:.5g}") for value in values]
        if len(set(column)) > 1 and len(result) < MOST_COLUMNS:
            result[f"{actor}.{PARAMETERS[k]}" + "'" * order] = column
    return [
        {"name": name, "swept": name in paths, "class": name in classes, "values": values}
        for name, values in result.items()
    ]


def _classes(rows: Sequence[_Row]) -> dict[str, list[str | None]]:
    """The classes of each actor of which there are several; an actor that is absent has none."""
    actors = max((len(row.shapes) for row in rows), default=0)
    columns = [[row.shapes[actor] if actor < len(row.shapes) else None for row in rows] for actor in range(actors)]
    names = ["class"] if actors == 1 else [f"{actor}.class" for actor in range(actors)]
    return {name: column for name, column in zip(names, columns, strict=True) if len(set(column)) > 1}

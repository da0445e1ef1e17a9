"""The table of recordings on the page: recordings in, columns of plain data out; no events are read.

Angles are in degrees, all other numbers as in the ground truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.sweep import labels
from gerd.errors import StorageError
from gerd.geometry.parameters import ORDERS, PARAMETERS, ROTATION
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.storage.recordings import Recordings

MOST_COLUMNS = 40
MOST_ROWS = 100_000  # the first ones of a dataset that has more


def table(recordings: Sequence[Events]) -> list[dict[str, Any]]:
    """By columns: index, swept values, events, and what differs between the first steps."""
    if isinstance(recordings, Recordings):
        return _columns(list(itertools.islice(_rows_of_dataset(recordings), MOST_ROWS)))
    return _columns([_row(i, each) for i, each in enumerate(recordings)])


@dataclass(frozen=True)
class _Row:
    """What the table says of a recording; of one that cannot be read, only which it is."""

    index: int
    labels: dict[str, Any]
    events: int | None = None
    start: NDArray[np.float64] | None = None  # (actors, 3, 6): the ground truth of the first step


def _row(number: int, events: Events) -> _Row:
    """What the table says of one of several recordings, or of events without a ground truth."""
    if not isinstance(events, Recording):
        return _Row(number, {}, len(events))
    return _Row(events.identity.index, events.identity.labels, len(events), events.truth[0])


def _rows_of_dataset(data: Recordings) -> Iterator[_Row]:
    for number in range(data.shard_count):
        try:
            shard = data.shard(number)
            for row in range(len(shard)):
                events = int(shard.lengths[row])
                yield _Row(int(shard.index[row]), shard.labels[row], events, shard.truth(row)[0])
        except StorageError:  # the page says why when the row is clicked
            for row in data.manifest.rows(number):
                index, member = divmod(row, data.manifest.members)
                yield _Row(index, labels(data.config, member))


def _columns(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    paths = dict.fromkeys(path for row in rows for path in row.labels)
    result: dict[str, list[Any]] = {"index": [row.index for row in rows]}
    result |= {path: [row.labels.get(path) for row in rows] for path in paths}
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
    return [{"name": name, "swept": name in paths, "values": values} for name, values in result.items()]

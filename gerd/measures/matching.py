"""Which events of two streams are the same event: times at sites in, pairs out.

A site is a pixel and a polarity. Two events may be paired if they are of the same site and no more than a window apart.
Of all ways to pair them, each event once at most, the one taken has as many pairs as possible, and of these the least
sum of |Δt|. Such pairs never cross, so that they are found by going through each site in the order of time.

Where several ways are as good, the last event of the first stream goes without a partner if it can, and otherwise takes
the earliest that it can have; then the one before it is looked at, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError

Whole = NDArray[np.int64]

AT_ONCE = 2**22  # entries of the tables that are worked out together
MOST = 2**26  # of one table
LARGEST_PRODUCT = 2**62


def matched(
    sites: Whole, times: Whole, other_sites: Whole, other_times: Whole, window: int, most: int = MOST
) -> tuple[Whole, Whole]:
    """The pairs: for each the number of its event in the first stream, and that in the other.

    An error if the events of a site that follow each other within the window would take a table of more than `most`
    entries, about as many as the product of their two numbers.
    """
    found: list[tuple[Whole, Whole]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for one, other in _groups(sites, times, other_sites, other_times, window):
        rows, columns = one.shape[1], other.shape[1]
        size = (rows + 1) * (columns + 1)
        if size > most or min(rows, columns) ** 2 * (window + 1) > LARGEST_PRODUCT:
            begin, end = times[one[0, 0]], times[one[0, -1]]
            raise GerdError(
                f"{rows} and {columns} events of one pixel and polarity, from {begin} to {end} µs, follow each other "
                f"within a window of {window} µs: allowed: a smaller window"
            )
        at_once = max(1, AT_ONCE // size)
        for first in range(0, len(one), at_once):
            some, others = one[first : first + at_once], other[first : first + at_once]
            group, row, column = _pairs(times[some], other_times[others], window)
            found.append((some[group, row], others[group, column]))
    firsts, seconds = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(firsts)
    return firsts[order], seconds[order]


def _groups(
    sites: Whole, times: Whole, other_sites: Whole, other_times: Whole, window: int
) -> Iterator[tuple[Whole, Whole]]:
    """Events between which pairs are possible: (groups, rows) of the one and (groups, columns) of the other stream.

    A group ends where no event of its site follows within the window. Those with as many of both are given together.
    """
    site, time = np.concatenate([sites, other_sites]), np.concatenate([times, other_times])
    is_other = np.arange(len(site)) >= len(sites)
    order = np.lexsort((time, site))
    site, time, is_other = site[order], time[order], is_other[order]
    begins = np.ones(len(site), np.bool_)
    begins[1:] = (np.diff(site) != 0) | (np.diff(time) > window)
    group = np.cumsum(begins) - 1
    number = int(begins.sum())
    events = order[~is_other], order[is_other] - len(sites)
    counts = np.stack([np.bincount(group[which], minlength=number) for which in (~is_other, is_other)], axis=1)
    first = np.cumsum(counts, axis=0) - counts
    for rows, columns in np.unique(counts[(counts > 0).all(axis=1)], axis=0).tolist():
        alike = first[(counts == (rows, columns)).all(axis=1)]
        yield events[0][alike[:, :1] + np.arange(rows)], events[1][alike[:, 1:] + np.arange(columns)]


def _pairs(times: Whole, others: Whole, window: int) -> tuple[Whole, Whole, Whole]:
    """Group, row and column of each pair, from ascending times (groups, rows) and (groups, columns)."""
    groups = len(times)
    rows = times.shape[1]
    columns = others.shape[1]
    worth = min(rows, columns) * window + 1  # of a pair: more than all |Δt| together
    best = np.zeros((groups, rows + 1, columns + 1), np.int64)  # of the first events of both streams
    for row in range(rows):
        gaps = np.abs(times[:, row, None] - others)
        gains = np.where(gaps <= window, worth - gaps, -1)
        without = best[:, row, 1:]
        paired = best[:, row, :-1] + gains
        best[:, row + 1, 1:] = np.maximum.accumulate(np.maximum(without, paired), axis=1)
    group = np.arange(groups)
    left = np.full(groups, columns)
    found = []
    for row in range(rows - 1, -1, -1):
        reached = best[group, row + 1, left]
        has_one = best[group, row, left] < reached
        column = (best[:, row + 1] >= reached[:, None]).argmax(axis=1) - 1
        left = np.where(has_one, column, left)
        found.append((group[has_one], np.full(has_one.sum(), row), column[has_one]))
    of_group, of_row, of_column = (np.concatenate(each) for each in zip(*found, strict=True))
    return of_group, of_row, of_column

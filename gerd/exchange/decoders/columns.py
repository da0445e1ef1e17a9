"""Columns of numbers to rows of events: what their names are, and what other people's polarities and times mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.exchange.decoders.opened import Damage, Rows, rows_of

Column = NDArray[Any]

NAMES = {  # of columns, in small letters
    **dict.fromkeys(("t", "ts", "time", "times", "timestamp", "timestamps"), "t"),
    **dict.fromkeys(("x", "xs"), "x"),
    **dict.fromkeys(("y", "ys"), "y"),
    **dict.fromkeys(("p", "ps", "pol", "pols", "polarity", "polarities", "on"), "p"),
}
MICROSECONDS = 1_000_000
LAST = 2.0**62  # microseconds


def from_columns(damage: Damage, t: Column, x: Column, y: Column, p: Column) -> Rows:
    """Rows from columns of any numbers: decimal times are seconds, and polarities 1 and 0, or 1 and -1."""
    if t.dtype.kind == "f":
        t = np.rint(t * MICROSECONDS)
    good = np.ones(len(t), np.bool_)
    for name, column in (("t", t), ("x", x), ("y", y), ("p", p)):
        if column.dtype.kind == "f":
            bad = ~(np.isfinite(column) & (np.abs(column) < LAST) & (column == np.rint(column)))
        elif column.dtype.kind == "u":
            bad = column > np.uint64(2**62)
        else:
            bad = np.zeros(len(column), np.bool_)
        if name == "p" and column.dtype.kind != "b":
            bad |= ~np.isin(column, (-1, 0, 1))
        allowed = "1 for ON, and 0 or -1 for OFF" if name == "p" else "finite whole numbers"
        first = column[bad][0] if bad.any() else 0
        damage.found(
            f"events by their {name}", int((bad & good).sum()), f"{name} of an event is {first}; allowed: {allowed}"
        )
        good &= ~bad
    on = p[good] > 0
    return rows_of(x[good], y[good], t[good], on)


def by_name(names: Iterable[str]) -> dict[str, str] | None:
    """Which of these names are the columns t, x, y and p, if all four are there."""
    found = {NAMES[name.lower()]: name for name in names if name.lower() in NAMES}
    return found if set(found) == set("txyp") else None

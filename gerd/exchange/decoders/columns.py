"""Columns of numbers to rows of events: what their names are, and what other people's polarities and times mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gerd.errors import StorageError
from gerd.exchange.decoders.opened import Damage, Rows, rows_of

Column = NDArray[Any]  # of any numbers


class Columnar(Protocol):
    """A column in memory, or a data set of a file, which is read where it is sliced."""

    @property
    def shape(self) -> tuple[int, ...] | None: ...

    @property
    def dtype(self) -> np.dtype[np.generic]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Column: ...


NAMES = {  # of columns, in small letters
    **dict.fromkeys(("t", "ts", "time", "times", "timestamp", "timestamps"), "t"),
    **dict.fromkeys(("x", "xs"), "x"),
    **dict.fromkeys(("y", "ys"), "y"),
    **dict.fromkeys(("p", "ps", "pol", "pols", "polarity", "polarities", "on"), "p"),
}
MICROSECONDS = 1_000_000
LAST = 2**62  # of any number, so that a time that counts from another one is a number of 64 bits, too
MOST_DIGITS = 9  # of the width or height of a frame
NUMBERS = "biuf"  # kinds of arrays


def from_columns(damage: Damage, t: Column, x: Column, y: Column, p: Column) -> Rows:
    """Rows from columns of any numbers: decimal times are seconds, and polarities 1 and 0, or 1 and -1."""
    if t.dtype.kind == "f":
        t = np.rint(t * MICROSECONDS)
    good = np.ones(len(t), np.bool_)
    for name, column in (("t", t), ("x", x), ("y", y), ("p", p)):
        if column.dtype.kind == "f":
            bad = ~(np.isfinite(column) & (np.abs(column) < LAST) & (column == np.rint(column)))
        elif column.dtype.itemsize == 8:
            bad = (column >= LAST) | (column <= -LAST) if column.dtype.kind == "i" else column >= LAST
        else:
            bad = np.zeros(len(column), np.bool_)
        if name == "p" and column.dtype.kind != "b":
            bad |= ~np.isin(column, (-1, 0, 1))
        allowed = "1 for ON, and 0 or -1 for OFF" if name == "p" else "whole numbers of at most 62 bits"
        first = column[bad][0] if bad.any() else 0
        damage.found(
            f"events by their {name}", int((bad & good).sum()), f"{name} of an event is {first}; allowed: {allowed}"
        )
        good &= ~bad
    on = p[good] > 0
    return rows_of(x[good], y[good], t[good], on)


def check_columns(damage: Damage, columns: Mapping[str, Columnar]) -> None:
    """An error unless these are columns of numbers, all of one length."""
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or any(shape is None or len(shape) != 1 for shape in shapes.values()):
        raise StorageError(f"{damage.path}: its columns have the shapes {shapes}; allowed: one axis of equal length")
    for name, column in columns.items():
        if column.dtype.kind not in NUMBERS:
            raise StorageError(f"{damage.path}: its column {name} has the type {column.dtype}; allowed: real numbers")


def whole(value: object) -> int | None:
    """A whole number that a file has in any kind of scalar; None if it is something else."""
    array = np.asarray(value)
    return int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None


def side(text: str) -> int | None:
    """The width or height of a frame that stands as text in a header; None if it is something else."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def by_name(names: Iterable[str]) -> dict[str, str] | None:
    """Which of these names are the columns t, x, y and p, if all four are there."""
    found = {NAMES[name.lower()]: name for name in names if name.lower() in NAMES}
    return found if set(found) == set("txyp") else None

"""Text: a line for each event, with commas or blanks between the numbers, and perhaps a header that names the columns.

Without a header the columns are those of the Event-Camera Dataset, seconds x y p, if the first number of the first
line has a decimal point; four whole numbers could mean anything, so that their columns have to be named. Times with a
decimal point are seconds, others microseconds. Polarities are 1 and 0, or 1 and -1.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import IO

import numpy as np

from gerd.errors import GerdError, StorageError, shorten
from gerd.exchange.decoders.columns import NAMES, from_columns
from gerd.exchange.decoders.opened import ROWS_AT_ONCE, Damage, Opened, Rows

LONGEST_LINE = 1000  # bytes
TOO_LONG = b"(1000 bytes or more)"  # in the place of such a line
ORDER_OF_SECONDS = "txyp"
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")
DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
BLANKS = bytes.maketrans(b",;\r", b"   ")  # what stands between numbers


def looks_like_events(start: bytes) -> bool:
    """Whether text begins with a line of numbers, or with one that names the columns of events."""
    try:
        text = start.decode("ascii")
    except UnicodeDecodeError:
        return False
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    words = _words(first)
    return len(words) >= 4 and (_columns_named(words) is not None or _are_numbers(words))


def open_file(file: IO[bytes], damage: Damage, columns: str | None) -> Opened:
    """A text file, from its beginning on; `columns` names its columns in order, such as xypt, where it does not."""
    at = file.tell()
    read = partial(file.readline, LONGEST_LINE)
    for number, line in enumerate(_whole(iter(read, b""), read), 1):
        words = _words(line.decode("ascii", "replace"))
        if not words or words[0].startswith("#"):
            at = file.tell()
            continue
        named = _columns_named(words)
        if named is not None:
            return Opened("text", None, _blocks(file, damage, named, number))
        if not _are_numbers(words):
            raise StorageError(f"{damage.path}:{number}: {shorten(line.decode('ascii', 'replace').strip())}: {ALLOWED}")
        file.seek(at)
        return Opened("text", None, _blocks(file, damage, _order(damage, columns, words), number - 1))
    return Opened("text", None, iter(()))


ALLOWED = "allowed: a header that names the columns t, x, y and p, or numbers"


def _order(damage: Damage, columns: str | None, words: Sequence[str]) -> dict[str, int]:
    """Which column is which, of a file that does not say it."""
    if columns is None and "." in words[0]:
        columns = ORDER_OF_SECONDS
    if columns is None:
        message = "its lines are whole numbers, and no header says which is which; allowed: columns= in their order"
        raise GerdError(f"{damage.path}: {message}, such as columns='txyp' or columns='xypt'")
    if not isinstance(columns, str) or sorted(columns) != sorted("txyp") or len(words) < len(columns):
        raise GerdError(
            f"{damage.path}: columns {shorten(columns)}: allowed: the letters t, x, y and p, in their order"
        )
    return {name: columns.index(name) for name in "txyp"}


def _words(line: str) -> list[str]:
    return line.replace(",", " ").replace(";", " ").split()


def _columns_named(words: Sequence[str]) -> dict[str, int] | None:
    """Where the columns of events stand in a header, if it is one."""
    found = {NAMES[word.strip('"').lower()]: i for i, word in enumerate(words) if word.strip('"').lower() in NAMES}
    return found if set(found) == set("txyp") else None


def _are_numbers(words: Sequence[str]) -> bool:
    try:
        return all(map(np.isfinite, map(float, words)))
    except ValueError:
        return False


def _blocks(file: IO[bytes], damage: Damage, places: dict[str, int], before: int) -> Iterator[Rows]:
    """The events after `before` lines."""
    in_seconds: bool | None = None
    for begin, lines in _lines(file, before):
        texts = [line.translate(BLANKS) for line in lines]
        if in_seconds is None:
            in_seconds = _is_in_seconds(texts, places["t"])
        try:
            numbers = _numbers(texts, places, in_seconds)
        except ValueError:
            numbers, bad = _good_rows(texts, places, in_seconds)
            first = bad[0] if bad else 0
            shown = shorten(lines[first].decode("ascii", "replace").strip())
            damage.found("lines", len(bad), f"line {begin + first + 1}: {shown}: allowed: four numbers")
        yield from_columns(damage, *numbers)


def _lines(file: IO[bytes], before: int) -> Iterator[tuple[int, list[bytes]]]:
    """Some thousand lines at a time, and how many come before them."""
    read = partial(file.readline, LONGEST_LINE)
    while lines := list(islice(iter(read, b""), ROWS_AT_ONCE)):
        if max(map(len, lines)) == LONGEST_LINE:
            lines = list(_whole(lines, read))
        yield before, lines
        before += len(lines)


def _whole(parts: Iterable[bytes], read: Callable[[], bytes]) -> Iterator[bytes]:
    """The lines that begin in these parts; what is too long is read to its end, and something else stands for it."""
    parts = iter(parts)
    for part in parts:
        line = part
        if len(part) == LONGEST_LINE:
            line = b"#" if part.lstrip().startswith(b"#") else TOO_LONG
        while not part.endswith(b"\n") and (part := next(parts, b"") or read()):
            pass
        yield line


def _is_in_seconds(texts: Sequence[bytes], place: int) -> bool | None:
    """Whether the first time has a decimal point; None if there is none."""
    times = (words[place] for text in texts if len(words := text.split()) > place)
    return next((b"." in time for time in times if DECIMAL.fullmatch(time)), None)


def _numbers(texts: Sequence[bytes], places: dict[str, int], in_seconds: bool | None) -> list[np.ndarray]:
    """The columns t, x, y and p of some lines; ValueError if one of them has something else."""
    with warnings.catch_warnings(action="ignore"):  # of lines without events
        table = np.loadtxt(texts, _types(in_seconds), usecols=[places[name] for name in "txyp"], comments="#", ndmin=1)
    return [table[name] for name in "txyp"]


def _types(in_seconds: bool | None) -> list[tuple[str, type]]:
    return [(name, np.float64 if name == "t" and in_seconds else np.int64) for name in "txyp"]


def _good_rows(
    texts: Sequence[bytes], places: dict[str, int], in_seconds: bool | None
) -> tuple[list[np.ndarray], list[int]]:
    """The columns t, x, y and p of the lines that are rows, and which lines are none, though they have something."""
    kinds = {name: (float, DECIMAL) if name == "t" and in_seconds else (int, WHOLE) for name in "txyp"}
    rows, bad = [], []
    for number, text in enumerate(texts):
        words = text.split()
        if not words or words[0].startswith(b"#"):
            continue
        needed = [words[places[name]] for name in kinds] if len(words) > max(places.values()) else []
        if needed and all(like.fullmatch(word) for word, (_, like) in zip(needed, kinds.values(), strict=True)):
            rows.append(tuple(kind(word) for word, (kind, _) in zip(needed, kinds.values(), strict=True)))
        else:
            bad.append(number)
    table = np.array(rows, _types(in_seconds))
    return [table[name] for name in "txyp"], bad

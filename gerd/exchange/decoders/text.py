"""Text: a line for each event, with commas or blanks between the numbers, and perhaps a header that names the columns.

Without a header the columns are those of the Event-Camera Dataset, seconds x y p, if the first number of the first
line has a decimal point; four whole numbers could mean anything, so that their columns have to be named. Times with a
decimal point are seconds, others microseconds. Polarities are 1 and 0, or 1 and -1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO

import numpy as np

from gerd.errors import GerdError, StorageError, shorten
from gerd.exchange.decoders.columns import NAMES, from_columns
from gerd.exchange.decoders.opened import ROWS_AT_ONCE, Damage, Opened, Rows

LONGEST_LINE = 1000  # characters
ORDER_OF_SECONDS = "txyp"
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
    number = 0
    for line in iter(lambda: file.readline(LONGEST_LINE), b""):
        number += 1
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
    if sorted(columns) != sorted("txyp") or len(words) < len(columns):
        raise GerdError(f"{damage.path}: columns {columns!r}: allowed: the letters t, x, y and p, in their order")
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
    while lines := list(islice(file, ROWS_AT_ONCE)):
        texts = [line.translate(BLANKS) for line in lines]
        if in_seconds is None:
            in_seconds = b"." in texts[0].split()[places["t"]] if len(texts[0].split()) > places["t"] else False
        try:
            numbers = _numbers(texts, places, in_seconds)
        except ValueError:
            good = [_is_row(text, places, in_seconds) for text in texts]
            bad = good.index(False) if False in good else 0
            shown = shorten(lines[bad].decode("ascii", "replace").strip())
            damage.found("lines", good.count(False), f"line {before + bad + 1}: {shown}: allowed: four numbers")
            numbers = _numbers([text for text, is_good in zip(texts, good, strict=True) if is_good], places, in_seconds)
        yield from_columns(damage, *numbers)
        before += len(lines)


def _numbers(texts: Sequence[bytes], places: dict[str, int], in_seconds: bool) -> list[np.ndarray]:
    """The columns t, x, y and p of some lines; ValueError if one of them has something else."""
    kinds = [(name, np.float64 if name == "t" and in_seconds else np.int64) for name in "txyp"]
    with warnings.catch_warnings(action="ignore"):  # of lines without events
        table = np.loadtxt(texts, kinds, usecols=[places[name] for name in "txyp"], comments="#", ndmin=1)
    return [table[name] for name in "txyp"]


def _is_row(text: bytes, places: dict[str, int], in_seconds: bool) -> bool:
    words = text.split()
    if not words or words[0].startswith(b"#"):
        return True
    try:
        for name, place in places.items():
            float(words[place]) if name == "t" and in_seconds else int(words[place])
    except (ValueError, IndexError):
        return False
    return True

"""Words of the command line to values, and values to words; a `GerdError` names the option that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from gerd.config.document import PlainData, parse_yaml
from gerd.config.sweep import Which
from gerd.errors import GerdError, shorten
from gerd.scene.draw import MOST_INDICES

if TYPE_CHECKING:
    from gerd.exchange.reading import ReadOptions


def parse_member(words: Sequence[str]) -> Which | None:
    """What `--member` says, a number or path=value, several of them for several swept paths; None if nothing."""
    if not words:
        return None
    if len(words) == 1 and words[0].strip().isdecimal():
        return int(words[0])
    named: dict[str, PlainData] = {}
    for word in words:
        path, equals, value = word.partition("=")
        if not equals or path.strip() in named:
            raise GerdError(f"--member {word}: allowed: a number, or path=value once for each swept path")
        named[path.strip()] = parse_yaml(value, f"--member {word}").data
    return named


def parse_indices(text: str) -> list[int]:
    """What `--index` says: 3, or 1,4,7, or 10:20 without the 20."""
    result: list[int] = []
    for word in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,10})(?::(\d{1,10}))?\s*", word)
        first, stop = (int(ends[1]), int(ends[2] or int(ends[1]) + 1)) if ends else (0, 0)
        if not first < stop <= MOST_INDICES:
            allowed = "numbers and ranges, such as 3 or 1,4,7 or 10:20 (without the 20)"
            raise GerdError(f"--index {text}: allowed: {allowed}")
        result += range(first, stop)
    return result


def parse_part(text: str) -> tuple[int, int]:
    """What `--shard` says: I/N, part I of N."""
    part = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not part or not 1 <= int(part[1]) <= int(part[2]):
        raise GerdError(f"--shard {text}: allowed: I/N with I from 1 to N, such as 3/10 for the third of ten parts")
    return int(part[1]), int(part[2])


def parse_read(words: Sequence[str]) -> ReadOptions:
    """What `--read` says, NAME=VALUE for each option of `read_events`."""
    result: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        said = f"--read {shorten(word)}"
        if not equals or name not in READ or name in result:
            raise GerdError(f"{said}: allowed: NAME=VALUE once for each of {', '.join(READ)}")
        pattern, allowed, meaning = READ[name]
        if not re.fullmatch(pattern, value):
            raise GerdError(f"{said}: allowed: {name}={allowed}")
        result[name] = meaning(value)
    return cast("ReadOptions", result)


def _size(value: str) -> tuple[int, int]:
    width, height = value.split("x")
    return int(width), int(height)


WHOLE = r"\d{1,18}"
READ: dict[str, tuple[str, str, Callable[[str], object]]] = {  # of each option: a pattern, in words, and what it means
    "size": (r"\d{1,5}x\d{1,5}", "WIDTHxHEIGHT, such as size=640x480", _size),
    "step_us": (WHOLE, "a whole number of microseconds", int),
    "start_us": (WHOLE, "a whole number of microseconds", int),
    "stop_us": (WHOLE, "a whole number of microseconds", int),
    "repair": ("true|false", "true or false", lambda value: value == "true"),
    "columns": ("[a-z]+", "the columns of text in their order, such as columns=txyp", str),
    "row": (WHOLE, "the number of a recording in a Parquet file", int),
}


def parse_rates(text: str) -> list[float]:
    """What `--fps` says: numbers of pictures per second, such as 250,1000."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise GerdError(f"--fps {text}: allowed: numbers, such as 250,1000,4000") from None


def parse_fps(text: str) -> Fraction:
    """What `--fps` says of one rate, as a number or a fraction: 30, 29.97, 30000/1001."""
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 0 < rate <= 1_000_000:
        raise GerdError(f"--fps {text}: allowed: a number above 0, up to 1000000, such as 30, 29.97 or 30000/1001")
    return rate


def parse_size(option: str, text: str) -> tuple[int, int]:
    """What an option such as `--screen` says: WIDTHxHEIGHT, in pixels."""
    size = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text.strip())
    if not size:
        raise GerdError(f"{option} {text}: allowed: WIDTHxHEIGHT in pixels, such as 1920x1080")
    return int(size[1]), int(size[2])


def in_bytes(size: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def in_seconds(seconds: float) -> str:
    """A time as people read it."""
    units = (
        ("µs", 1e-6, 1e-3),
        ("ms", 1e-3, 1.0),
        ("s", 1.0, 120.0),
        ("min", 60.0, 7200.0),
        ("hours", 3600.0, 172800.0),
    )
    for unit, size, up_to in units:
        if seconds < up_to:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds / 86400:.2g}'):g} days"

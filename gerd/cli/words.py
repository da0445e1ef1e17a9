"""Words of the command line to values: text in, numbers, ranges and members out; a `GerdError` names the option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gerd.config.document import parse_yaml
from gerd.config.sweep import Which
from gerd.errors import GerdError
from gerd.scene.draw import MOST_INDICES


def parse_member(words: Sequence[str]) -> Which | None:
    """What `--member` says, a number or path=value, several of them for several swept paths; None if nothing."""
    if not words:
        return None
    if len(words) == 1 and words[0].strip().isdecimal():
        return int(words[0])
    named: dict[str, Any] = {}
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

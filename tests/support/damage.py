"""Bytes in, the same bytes with the faults that disks, networks and people make."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

NONSENSE: tuple[Any, ...] = (
    0,
    1,
    -1,
    2**31,
    2**40,
    2**63,
    0.5,
    1e308,
    None,
    True,
    "",
    "x" * 99,
    "\ud800",
    [],
    {},
    [[]],
)


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Bytes with the faults that disks, networks and people make; JSON also with nonsense in place of a value."""
    if data.startswith(b"{") and chance.random() < 0.5:
        document = json.loads(data)
        place, key = chance.choice(list(places(document)))
        place[key] = chance.choice(NONSENSE)
        return json.dumps(document).encode()
    result = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at, length = chance.randrange(len(result) or 1), chance.choice([1, 8, 64, 512])
        kind = chance.choice(["flip"] * 5 + ["cut", "drop", "zeros", "word", "move"])
        if kind == "flip" and result:
            result[at] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del result[at:]
        elif kind == "drop":
            del result[at : at + length]
        elif kind == "zeros":
            result[at : at + length] = bytes(length)
        elif kind == "word":
            result[at : at + 8] = chance.choice([0, 2**31, 2**40, 2**63 - 1, 2**64 - 1]).to_bytes(8, "little")
        else:
            result[at : at + length] = result[:length]
    return bytes(result)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from places(node[key])

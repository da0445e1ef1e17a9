"""Small files that stand for a great deal: aliases, grids, pictures and JSON, as an adversary would write them."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def repeated_path(times: int, good: bool = True) -> str:
    """A config that sweeps one SVG path by an alias, under so many names."""
    path = "M0 0 " + "L 1 0.5 " * 3000 + ("L 1 1 Z" if good else "Z") + " " * 10_000
    uses = ", ".join(f"{{svg: *a, name: n{number}}}" for number in range(times))
    return f"actors: [{{shape: {{svg: &a '{path}'}}}}]\nsweep: {{actors.0.shape: [{uses}]}}\n"


def grid(side: int, path: str = "actors.0.rotation.velocity") -> str:
    """A config with a sweep of two paths, each with so many values."""
    values = [round(0.5 + 0.01 * number, 2) for number in range(side)]
    noise = [round(value / 1000, 5) for value in values]
    return f"actors: [{{shape: circle}}]\nsweep: {{noise.background: {noise}, {path}: {values}}}\n"


def scans(side: int, number: int) -> bytes:
    """A progressive JPEG picture whose last scan stands so many times more."""
    made = io.BytesIO()
    Image.fromarray(np.pad(np.full((side // 2, side // 2), 255, np.uint8), side // 4)).save(
        made, "JPEG", progressive=True
    )
    data = made.getvalue()
    begin = data.rfind(b"\xff\xda")
    return data[:-2] + data[begin:-2] * number + data[-2:]


def repeated_key(number: int) -> bytes:
    """A JSON object of so many keys, the last of which stands twice."""
    keys = [f'"key{i}": 0' for i in range(number)]
    return ("{" + ", ".join([*keys, keys[-1]]) + "}").encode()


def many_keys(number: int) -> bytes:
    """A JSON object of so many keys, none of which stands twice."""
    return ("{" + ", ".join(f'"key{i}": 0' for i in range(number)) + "}").encode()


def empty_objects(size: int) -> bytes:
    """A manifest of about so many bytes whose shards are all {}."""
    return b'{"format": "gerd", "format_version": 2, "shards": [' + b"{}," * (size // 3) + b"{}]}"


def manifest_of_numbers(number: int) -> bytes:
    """A manifest of a shard with so many digests, all of which are 0."""
    about = b'{"format": "gerd", "format_version": 2, "shards": [{"file": "a", "sha256": "b", "recordings": ['
    return about + b"0," * number + b"0]}]}"

"""Which code this is: a digest of the sources that decide the bits of a dataset.

Two installations of the same version can hold different code. Their recordings may differ in bits, so that a dataset
names the code that made it, and is not continued by any other.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

# What a recording's events and ground truth are computed by, and how they become bytes. Files of packages that only
# look at recordings may change without a trace.
DECISIVE = (
    *("bounds.py", "geometry", "config", "plan", "scene", "events"),
    *(f"recording/{name}.py" for name in ("events", "recording", "simulate")),
    *(f"storage/{name}.py" for name in ("blocks", "content", "details", "manifest", "shard", "tensors", "work")),
)


@lru_cache(1)
def code_digest() -> str:
    """The digest of the sources that are installed here."""
    return digest_of_sources(Path(__file__).parents[1])


def digest_of_sources(root: Path) -> str:
    """The sha256 over the names and contents of the decisive sources below `root`, whatever their line endings."""
    result = hashlib.sha256()
    paths = [root / name for name in DECISIVE]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    for file in sorted(files, key=lambda file: file.relative_to(root).as_posix()):
        content = file.read_bytes().replace(b"\r\n", b"\n")
        result.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        result.update(content)
    return result.hexdigest()


def other_code(digest: str) -> str:
    """The words for a dataset that cannot go on here, because the code of this digest has begun it."""
    theirs = digest[:12] or "unknown"
    ours = code_digest()[:12]
    return (
        f"was begun by other code, whose recordings may differ in bits (code_digest {theirs} there and {ours} here): "
        "finish it with the code that began it, or make all of it anew in another folder"
    )

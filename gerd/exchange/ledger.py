"""Which files of an export are finished: names go in, and whether what stands under them is what was written comes out.

While an export is made, a line of JSON in `.finished.jsonl` gives the sha256 of each file, or folder of files, that is
whole; when it is complete, `export.json` has them all. A line that was cut off is as good as none: its file is written
again.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from gerd.errors import StorageError
from gerd.files import open_regular
from gerd.storage.whole import remove

NAME = ".finished.jsonl"


class Ledger:
    """The finished files of the export in a folder; `known` are the digests of one that was complete."""

    def __init__(self, folder: Path, known: dict[str, Any]):
        self.digests: dict[str, str] = {}  # of files that are there, as this run has seen them
        self._folder, self._noted = folder, dict(known)
        with suppress(OSError):
            for line in (folder / NAME).read_bytes().splitlines():
                with suppress(ValueError, TypeError):
                    self._noted.update(json.loads(line))

    def has(self, name: str) -> bool:
        """Whether a file is there as it was finished; what is there instead is removed."""
        path = self._folder / name
        with suppress(OSError):
            if self._noted.get(name) == digest(path):
                self.digests[name] = self._noted[name]
                return True
        remove(path)
        return False

    def finish(self, name: str) -> None:
        """Note that a file is whole."""
        path = self._folder / name
        try:
            self.digests[name] = digest(path)
            with open(self._folder / NAME, "a", encoding="utf-8") as lines:
                lines.write("\n" + json.dumps({name: self.digests[name]}) + "\n")
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """The export is complete, and says all that is noted here."""
        (self._folder / NAME).unlink(missing_ok=True)


def digest(path: Path) -> str:
    """sha256 of a file, or of the names and files in a folder."""
    result = hashlib.sha256()
    for file in sorted(part for part in path.rglob("*") if not part.is_dir()) if path.is_dir() else [path]:
        if file != path:
            result.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with open(open_regular(file), "rb") as content:
            hashlib.file_digest(content, lambda: result)  # goes on with the same hash
    return result.hexdigest()

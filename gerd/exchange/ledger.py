"""Which files of an export are finished: names go in, and whether what stands under them is what was written comes out.

While an export is made, a line of JSON in `.finished.jsonl` gives the sha256 of each file, or folder of files, that is
whole; when it is complete, `export.json` has them all. A line that was cut off is as good as none: its file is written
again. Only plain files are read and written, and no link is followed: what else stands under the name of an exported
file is replaced, and under a name of this ledger it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gerd.config.document import PlainData
from gerd.errors import StorageError
from gerd.files import open_regular, open_to_append, read_regular
from gerd.storage.whole import remove

NOTES = ".finished.jsonl"
LARGEST_FILE = 2**30  # bytes; of ten million files


class Ledger:
    """The finished files of the export in a folder; `known` are the digests of one that was complete."""

    def __init__(self, folder: Path, known: Mapping[str, PlainData]):
        self.digests: dict[str, str] = {}  # of files that are there, as this run has seen them
        self._folder = folder
        self._noted = dict(known)
        for line in read_plain(folder / NOTES).splitlines():
            with suppress(ValueError, TypeError, RecursionError):
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
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from None
        notes = self._folder / NOTES
        try:
            with open(open_to_append(notes), "a", encoding="utf-8") as lines:
                lines.write("\n" + json.dumps({name: self.digests[name]}) + "\n")
        except OSError as error:
            raise StorageError(f"{notes}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """The export is complete, and says all that is noted here."""
        (self._folder / NOTES).unlink(missing_ok=True)


def read_plain(path: Path) -> bytes:
    """The bytes of a file of this folder, none if it is not there; StorageError if it is something else."""
    try:
        return read_regular(path, LARGEST_FILE, follow=False)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from None


def digest(path: Path) -> str:
    """sha256 of a file, or of the names and files in a folder; OSError if there is a link among them."""
    result = hashlib.sha256()
    is_folder = path.is_dir() and not path.is_symlink()
    for file in sorted(part for part in path.rglob("*") if not part.is_dir()) if is_folder else [path]:
        if file != path:
            result.update(f"{file.relative_to(path)}\0{file.lstat().st_size}\0".encode())
        with open(open_regular(file, follow=False), "rb") as content:
            hashlib.file_digest(content, lambda: result)  # goes on with the same hash
    return result.hexdigest()

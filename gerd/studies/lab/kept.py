"""What has been computed, kept in files: a name and what makes it in, the result out, made once.

Results are dataclasses of plain data, written as JSON under `runs/`. Several processes may compute in one folder: each
takes the runs that no other one has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from gerd.errors import GerdError, shorten
from gerd.files import lock
from gerd.storage.whole import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kept = TypeVar("Kept", bound="DataclassInstance")


class RunFolder:
    """A folder with the results of runs, and with the weights of those that train something."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.anything_new = False
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GerdError(f"{self.path}: cannot be written: {error.strerror}") from None

    def weights(self, run: str) -> Path:
        """Where the weights of a run are."""
        return self.path / "runs" / f"{run}.pt"

    def kept(self, run: str, kind: type[Kept], make: Callable[[], Kept]) -> Kept:
        """What a finished run has left here; if it is not finished, what `make` gives, which is then kept."""
        file = self.path / "runs" / f"{run}.json"
        if not file.exists():
            with self._alone(run):
                if not file.exists():
                    write_data(make(), file)
                    self.anything_new = True
        return read_data(file, kind)

    def is_free(self, run: str) -> bool:
        """Whether no other process works on a run that is not finished."""
        if (self.path / "runs" / f"{run}.json").exists():
            return True
        try:
            with self._alone(run, wait=False):
                return True
        except BlockingIOError:
            return False

    @contextmanager
    def _alone(self, run: str, wait: bool = True) -> Iterator[None]:
        """While no other process has the run; the end of a process, also by a kill, lets go of it."""
        with open(self.path / "runs" / f"{run}.lock", "w") as held:
            lock(held, wait=wait)
            yield


def check_same(path: Path, wanted: Mapping[str, object], before: Mapping[str, object]) -> None:
    """An error unless a folder was begun with the same settings."""
    for name in {**wanted, **before}:
        if wanted.get(name) != before.get(name):
            raise GerdError(
                f"{path}: was begun with {name} = {shorten(before.get(name))}, and this is "
                f"{shorten(wanted.get(name))}; give another folder with --out"
            )


def write_data(data: DataclassInstance, file: Path) -> None:
    """A dataclass as JSON."""
    write_whole(file, (json.dumps(asdict(data), ensure_ascii=False) + "\n").encode())


def read_data(file: Path, kind: type[Kept]) -> Kept:
    """A dataclass that `write_data` has written."""
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise GerdError(f"{file}: cannot be read: {error}") from None
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "all"
        raise GerdError(f"{file}: is not what this version of gerd writes ({field}: {first['msg']})") from None

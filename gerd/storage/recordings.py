"""The recordings of a dataset as a sequence: a folder or a URL goes in, `Recording`s come out, one at a time.

Only what is asked for is read, and all of it is compared with its checksums. Nothing is unpickled or run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import index as whole_number
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gerd.config.config import Config, Origin
from gerd.config.document import Document
from gerd.config.sweep import Which, member_count, member_number
from gerd.errors import GerdError, StorageError, shorten
from gerd.recording.recording import Recording
from gerd.storage.json_files import parsed_json, read_json
from gerd.storage.manifest import MANIFEST, RESOLVED, SHARD_SIZE, UNFINISHED, Manifest, read_manifest
from gerd.storage.places import Folder, MissingError, Readable, place_at
from gerd.storage.shard import Shard

OPEN_SHARDS = 64
NOT_CHANGED = "is a dataset, whose fields cannot be changed; --set goes with a config"


def check_complete(data: Recordings) -> None:
    """An error unless the dataset is complete, with a shard for all recordings that its manifest counts."""
    manifest = data.manifest
    file = data.place.at(MANIFEST)
    if not manifest.complete:
        raise StorageError(f"{data.path}: {UNFINISHED}")
    if len(manifest.shards) != manifest.shard_count:
        raise StorageError(f"{file}: is damaged: it lists {len(manifest.shards)} shards of {manifest.shard_count}")
    if manifest.members != (members := member_count(data.config)):
        raise StorageError(f"{file}: is damaged: members is {manifest.members}, but {members} by the config")


def read_config(place: Readable, manifest: Manifest, source: str, text: str | None = None) -> Config:
    """The resolved config of a dataset, checked; `source` is what messages call it, `text` how its user wrote it."""
    file = place.at(RESOLVED)
    try:
        data = parsed_json(read_json(place, RESOLVED))
        config = Config.of(data, Origin(text, document=Document(None, source), directory=None))
    except ValidationError as error:
        first = ": ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise StorageError(f"{file}: is damaged: {first}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StorageError(f"{file}: is damaged: {str(error).splitlines()[0]}") from None
    if config.digest != manifest.config_digest:
        raise StorageError(f"{file}: is not the config that the manifest names")
    return config


class Recordings(Sequence[Recording]):
    """The recordings of a dataset, read one at a time from a folder or from a URL such as s3://bucket/name."""

    def __init__(self, path: str | Path, *, open_shards: int = OPEN_SHARDS):
        """`open_shards` is how many files are kept open."""
        self.place = place_at(path)
        self.path = self.place.path if isinstance(self.place, Folder) else str(path)
        self.manifest = read_manifest(self.place)
        self._open_shards = open_shards
        self._shards: dict[int, Shard] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_shards": {}}  # another process opens its own files

    def __repr__(self) -> str:
        return f"<Recordings {self.path}: {len(self)} of config {self.manifest.config_digest[:8]}>"

    @cached_property
    def config(self) -> Config:
        """The config that the recordings were made from, sweep and all."""
        return read_config(self.place, self.manifest, str(self.path))

    @property
    def recorded(self) -> bool:
        """Whether the events were recorded by a camera, and not simulated."""
        return self.manifest.recorded

    def __len__(self) -> int:
        return self.manifest.recordings

    @property
    def shard_count(self) -> int:
        return self.manifest.shard_count

    def shard(self, number: int) -> Shard:
        """Shard number `number`, which stays open for the next recording that is asked for."""
        opened = self._shards.get(number)
        if opened is not None:
            return opened
        try:
            shard = Shard(self.place.open(self.manifest.file(number)))
        except MissingError as error:
            raise error if self.manifest.complete else MissingError(f"{error}: {UNFINISHED}") from None
        except StorageError as error:
            rows = self.manifest.rows(number)
            raise StorageError(f"{error} (rows {rows.start} to {rows.stop - 1})") from None
        if difference := shard.difference(number, self.manifest):
            raise StorageError(f"{shard.path}: {difference}")
        self._shards[number] = shard
        if len(self._shards) > self._open_shards:
            self._shards.pop(next(iter(self._shards)), None)
        return shard

    @overload
    def __getitem__(self, row: int) -> Recording: ...
    @overload
    def __getitem__(self, row: slice) -> list[Recording]: ...
    def __getitem__(self, row: int | slice) -> Recording | list[Recording]:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        if isinstance(row, bool) or not hasattr(row, "__index__"):
            raise GerdError(f"{self.path}: row {shorten(row)}: allowed: a whole number, or a slice such as 10:20")
        shard, own_row = self._shard_and_row(row)
        return shard.recording(own_row, self.config)

    def at(self, index: int, member: Which | None = None) -> Recording:
        """The recording with an index and a member; `member` is its number, or swept values.

        It is in row index · members + member of the dataset; without a sweep that is the index.
        """
        return self[self.row(index, member)]

    def row(self, index: int, member: Which | None = None) -> int:
        """The row of the recording with an index and a member."""
        manifest = self.manifest
        if isinstance(index, bool) or not hasattr(index, "__index__") or not 0 <= int(index) < manifest.count:
            raise GerdError(f"{self.path}: index {shorten(index)}: allowed: 0 to {manifest.count - 1}")
        return int(index) * manifest.members + member_number(self.config, member)

    def family(self, index: int) -> list[Recording]:
        """The recordings of an index, one for each member of the sweep."""
        first = self.row(index, 0)
        return self[first : first + self.manifest.members]

    def window(self, row: int, start: int, stop: int) -> Recording:
        """The steps from `start` up to `stop` of a recording; only the blocks that hold them are read."""
        shard, own_row = self._shard_and_row(row)
        return shard.window(own_row, self.config, start, stop)

    def truth(self, row: int) -> NDArray[np.float64]:
        """(steps, actors, 3, 6): the ground truth of a recording; nothing else of it is read."""
        shard, own_row = self._shard_and_row(row)
        return shard.truth(own_row)

    def _shard_and_row(self, row: int) -> tuple[Shard, int]:
        """The shard that holds a row of the dataset, and which row of the shard it is."""
        wanted, count = whole_number(row), len(self)
        if not -count <= wanted < count:
            raise IndexError(f"{self.path}: there is no row {wanted}; it has {count}, numbered from 0")
        number, own_row = divmod(wanted % count, SHARD_SIZE)
        return self.shard(number), own_row

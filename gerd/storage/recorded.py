"""Real recordings to a dataset: events that a camera has recorded, with the ground truth of what it was shown.

The files are those of a simulated dataset, but for two things: the manifest says that the events were recorded, so that
nobody makes them again or adds simulated ones to them, and `registration.json` says how they were recorded. A file is
whole or not there, and the manifest is complete when all shards are there; the same call goes on where one was stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from gerd.config.config import Config
from gerd.config.functions import to_store
from gerd.errors import StorageError
from gerd.recording.recording import Recording
from gerd.storage.code import code_digest
from gerd.storage.manifest import (
    MANIFEST,
    REGISTRATION,
    Entry,
    Manifest,
    config_files,
    new_manifest,
    read_manifest,
    shard_name,
)
from gerd.storage.places import Place, place_at
from gerd.storage.recordings import Recordings
from gerd.storage.shard import shard_bytes

ABOUT = ("format_version", "gerd_version", "code_digest", "config_digest", "count", "recorded", "files")


def write_recorded(
    config: Config,
    out: str | Path,
    count: int,
    recordings: Iterable[Recording],
    registration: bytes,
    progress: Callable[[int], None] = lambda made: None,
) -> Recordings:
    """Write real recordings of the indices 0 … count - 1 of a config, in the order of the rows, as a dataset.

    `registration` is the JSON that says how they were recorded. A place that holds anything else is refused.
    """
    config = to_store(config)
    files = config_files(config) | {REGISTRATION: registration}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = new_manifest(config, count).model_copy(update={"recorded": True, "files": digests})
    place = place_at(out)
    with place.claimed(True):
        if _is_there(place, manifest):
            return Recordings(out)
        place.tidy()
        place.write(MANIFEST, manifest.to_bytes())
        for name, data in files.items():
            place.write(name, data)
        entries = []
        parts = iter(recordings)
        for number in range(manifest.shard_count):
            rows = manifest.rows(number)
            some = list(islice(parts, len(rows)))
            data = shard_bytes(some, [row % manifest.members for row in rows], code_digest())
            place.write(shard_name(number), data)
            digest = hashlib.sha256(data).hexdigest()
            entries.append(Entry(file=shard_name(number), sha256=digest, recordings=tuple(r.digest for r in some)))
            progress(len(some))
        complete = manifest.model_copy(update={"complete": True, "shards": tuple(entries)})
        place.write(MANIFEST, complete.to_bytes())
        place.tidy()
    return Recordings(out)


def _is_there(place: Place, wanted: Manifest) -> bool:
    """Whether the dataset is complete already; an error if the place holds something else."""
    names = place.names()
    if names and MANIFEST not in names:
        raise StorageError(f"{place}: holds files that are not a GERD dataset; give an empty or a new folder")
    if not names:
        return False
    stored = read_manifest(place)
    if any(getattr(stored, name) != getattr(wanted, name) for name in ABOUT):
        raise StorageError(f"{place}: holds a different dataset; give an empty or a new folder")
    return stored.complete

"""A dataset of an older version of the format to one of this version: the same recordings, in fewer bytes.

Nothing is simulated: events and ground truth are read, compared with their digests, and written anew. The new dataset
names the version of gerd that made the recordings, and its code if the old one did.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gerd.errors import StorageError
from gerd.recording.recording import FORMAT_VERSION
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, Entry, Manifest, read_manifest, shard_name
from gerd.storage.places import Place, place_at
from gerd.storage.recordings import Recordings
from gerd.storage.shard import shard_bytes
from gerd.storage.work import Job, Progress, kept_shard

EMPTY = {"complete": False, "shards": ()}  # what a manifest says before any shard is written


def convert(old: str | Path, new: str | Path, *, progress: Progress = lambda made: None) -> Recordings:
    """Write the dataset at `old` to `new`, a folder or a URL, in this version of the format.

    Continues what an interrupted call has left; refuses a place that holds something else. `progress` is called with
    the number of recordings just written.
    """
    data, place = Recordings(old), place_at(new)
    if not data.manifest.complete:
        raise StorageError(f"{old}: is not complete; finish it first, with the code that began it")
    manifest = data.manifest.model_copy(update={"format_version": FORMAT_VERSION, **EMPTY})
    job = Job(data.config, place, manifest)
    with place.claimed(True):
        _begin(place, manifest)
        place.tidy()
        for name in (CONFIG, RESOLVED):
            place.write(name, data.place.read(name))
        entries = tuple(
            kept_shard(job, number, progress) or _written(data, job, number, progress)
            for number in range(manifest.shard_count)
        )
        place.write(MANIFEST, manifest.model_copy(update={"complete": True, "shards": entries}).to_bytes())
    return Recordings(new)


def _begin(place: Place, manifest: Manifest) -> None:
    """Write the manifest before anything else, unless this conversion was begun before."""
    names = place.names()
    begun = MANIFEST in names and read_manifest(place).model_copy(update=EMPTY) == manifest
    if names and not begun:
        raise StorageError(f"{place}: holds something else; give an empty or a new folder")
    if not names:
        place.write(MANIFEST, manifest.to_bytes())


def _written(data: Recordings, job: Job, number: int, progress: Progress) -> Entry:
    """The entry of a shard that was read, compared and written."""
    shard = data.shard(number)
    recordings = [shard.recording(row, job.config) for row in range(len(shard))]
    for recording, digest in zip(recordings, shard.digests, strict=True):
        if recording.digest != digest:
            index = recording.identity.index
            raise StorageError(f"{shard.path}: index {index}: the events differ from their digest")
    content = shard_bytes(recordings, shard.member.tolist(), job.manifest.code_digest)
    job.place.write(shard_name(number), content)
    progress(len(recordings))
    return Entry(file=shard_name(number), sha256=hashlib.sha256(content).hexdigest(), recordings=shard.digests)

"""Finish shards: keep a shard if it was finished before, make it if not.

A `Job` and numbers of shards go in, the entries of the shards in the manifest come out, each when its shard is stored.
The processes of one machine, the workers of a cluster and independent commands do this and nothing else, in any order
and as often as they like: a shard has the same bytes whoever makes it, and it appears under its name only when it is
whole. While one is written, the next is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gerd.config.config import Config
from gerd.config.sweep import member, named
from gerd.errors import GerdError, StorageError
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_batch
from gerd.storage.code import code_digest, other_code
from gerd.storage.manifest import Entry, Manifest, file_digest, grown_name, shard_name
from gerd.storage.places import Place
from gerd.storage.shard import Shard, shard_bytes

BATCH_PIXELS = 2**20  # pixels of all frames simulated together, so that memory does not grow with the shard
GPU_BATCH_PIXELS = 2**24  # the same on a GPU, which needs more to be busy

Progress = Callable[[int], None]  # called with a number of recordings that are done


@dataclass(frozen=True)
class Job:
    """What is needed to make any shard of a dataset."""

    config: Config
    place: Place
    manifest: Manifest  # without entries
    device: str = "cpu"
    batch_pixels: int | None = None  # of all frames simulated together; None: as many as suit the device
    grown: int | None = None  # the number of a shard that is made beside an older one of fewer recordings

    def file(self, number: int) -> str:
        """The name under which shard `number` is made."""
        return grown_name(number) if number == self.grown else shard_name(number)


def finish_shards(job: Job, numbers: Iterable[int], progress: Progress) -> Iterator[Entry]:
    """The entries of shards, in any order; the shard of an entry is stored. One is written beside the next one."""
    writing: tuple[Entry, Future[None]] | None = None
    with ThreadPoolExecutor(1) as disk:
        for number in numbers:
            if entry := kept_shard(job, number, progress):
                yield entry
                continue
            entry, data = made_shard(job, number, progress)
            if writing:
                yield _stored(*writing)
            writing = entry, disk.submit(job.place.write, entry.file, data)
        if writing:
            yield _stored(*writing)


def _stored(entry: Entry, writing: Future[None]) -> Entry:
    """The entry of a shard, as soon as it is written; the error if it cannot be."""
    writing.result()
    return entry


def kept_shard(job: Job, number: int, progress: Progress) -> Entry | None:
    """The entry of a shard that was finished before, compared bit by bit with its digests; None if there is none."""
    try:
        file = job.place.open(job.file(number))
        shard = Shard(file)
        if shard.difference(number, job.manifest):
            return None
        for row, digest in enumerate(shard.digests):
            if shard.recording(row, job.config).digest != digest:
                return None
        entry = Entry(file=job.file(number), sha256=file_digest(file), recordings=shard.digests)
    except StorageError:
        return None
    progress(len(shard))
    return entry


def made_shard(job: Job, number: int, progress: Progress) -> tuple[Entry, bytes]:
    """Simulate one shard: its entry, and the bytes of its file, which are still to be written."""
    if code_digest() != job.manifest.code_digest:
        raise StorageError(f"{job.place}: {other_code(job.manifest.code_digest)}")
    rows = job.manifest.rows(number)
    members = job.manifest.members
    made: dict[int, Recording] = {}
    pixels = job.batch_pixels or (BATCH_PIXELS if job.device == "cpu" else GPU_BATCH_PIXELS)
    at_once = max(1, pixels // (job.config.sensor.width * job.config.sensor.height))
    for k in sorted({row % members for row in rows}):
        of_member = [row for row in rows if row % members == k]
        for begin in range(0, len(of_member), at_once):
            batch = of_member[begin : begin + at_once]
            recordings = _simulated(job, member(job.config, k), [row // members for row in batch])
            made.update(zip(batch, recordings, strict=True))
            progress(len(batch))
    recordings = [made[row] for row in rows]
    data = shard_bytes(recordings, [row % members for row in rows], code_digest())
    digests = tuple(recording.digest for recording in recordings)
    return Entry(file=job.file(number), sha256=hashlib.sha256(data).hexdigest(), recordings=digests), data


def _simulated(job: Job, config: Config, indices: Sequence[int]) -> list[Recording]:
    """A batch of recordings; an error says in which of them it occurred."""
    try:
        return simulate_batch(config, indices, device=job.device)
    except Exception as error:
        culprit = _culprit(job, config, indices, error)
        if not isinstance(error, GerdError):
            error.add_note(f"while making {culprit}")
            raise
        named = GerdError("\n".join(f"{culprit}: {line}" for line in str(error).splitlines()))
        named.exit_code = error.exit_code
        raise named from None


def _culprit(job: Job, config: Config, indices: Sequence[int], error: Exception) -> str:
    """Which recording of a batch gives this kind of error when it is made alone."""
    for index in indices if not isinstance(error, MemoryError) else ():
        try:
            simulate_batch(config, [index], device=job.device)
        except type(error):
            return named(config, index)
        except Exception:
            continue
    return named(config, f"{indices[0]} to {indices[-1]}")

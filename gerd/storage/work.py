"""One shard's work: keep the shard if it was finished before, make it if not.

A `Job` and the number of a shard go in, the shard's entry in the manifest comes out. The processes of one machine,
the workers of a cluster and independent commands do this and nothing else, in any order and as often as they like:
a shard has the same bytes whoever makes it, and it appears under its name only when it is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gerd.config.config import Config
from gerd.config.sweep import labels, member_count
from gerd.errors import GerdError, StorageError
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_batch
from gerd.storage.places import Store
from gerd.storage.recordings import SHARD_SIZE, file_digest, shard_name, shard_positions
from gerd.storage.shard import Shard, shard_bytes
from gerd.version import __version__

BATCH_PIXELS = 2**20  # pixels of all frames simulated together, so that memory does not grow with the shard
GPU_BATCH_PIXELS = 2**24  # the same on a GPU, which needs more to be busy

Progress = Callable[[int], None]  # called with a number of recordings that are done
Entry = dict[str, Any]  # what the manifest says about a shard
Entries = Iterator[tuple[int, Entry]]  # shard number, entry


@dataclass(frozen=True)
class Job:
    """What is needed to make any shard of a dataset."""

    config: Config
    store: Store
    recordings: int  # of the whole dataset, with all members of the sweep
    device: str = "cpu"
    gerd_version: str = __version__

    @property
    def shards(self) -> int:
        return -(-self.recordings // SHARD_SIZE)


def finish_shard(job: Job, number: int, progress: Progress) -> Entry:
    """The entry of a shard that is stored when this returns."""
    return kept_shard(job, number, progress) or make_shard(job, number, progress)


def kept_shard(job: Job, number: int, progress: Progress) -> Entry | None:
    """The entry of a shard that was finished before, compared bit by bit with its digests; None if there is none."""
    members = member_count(job.config)
    try:
        file = job.store.open(shard_name(number))
        shard = Shard(file)
        found = list(zip(shard.index, shard.member, strict=True))
        if (shard.config_digest, shard.gerd_version) != (job.config.digest, job.gerd_version):
            return None
        if found != [divmod(position, members) for position in shard_positions(number, job.recordings)]:
            return None
        for row in range(len(shard)):
            if shard.recording(row, job.config).digest != bytes(shard.digest[row]).hex():
                return None
        entry = _entry(number, file_digest(file), [bytes(digest).hex() for digest in shard.digest])
    except StorageError:
        return None
    progress(len(shard))
    return entry


def make_shard(job: Job, number: int, progress: Progress) -> Entry:
    """Simulate and store one shard."""
    members = member_count(job.config)
    positions = shard_positions(number, job.recordings)
    made: dict[int, Recording] = {}
    pixels = BATCH_PIXELS if job.device == "cpu" else GPU_BATCH_PIXELS
    at_once = max(1, pixels // (job.config.sensor.width * job.config.sensor.height))
    for member in sorted({position % members for position in positions}):
        mine = [position for position in positions if position % members == member]
        for begin in range(0, len(mine), at_once):
            batch = mine[begin : begin + at_once]
            recordings = _simulated(job, labels(job.config, member), [position // members for position in batch])
            made.update(zip(batch, recordings, strict=True))
            progress(len(batch))
    recordings = [made[position] for position in positions]
    data = shard_bytes(recordings, [position % members for position in positions])
    job.store.write(shard_name(number), data)
    return _entry(number, hashlib.sha256(data).hexdigest(), [recording.digest for recording in recordings])


def _entry(number: int, digest: str, recordings: list[str]) -> Entry:
    return {"file": shard_name(number), "sha256": digest, "recordings": recordings}


def _simulated(job: Job, values: dict[str, Any], indices: Sequence[int]) -> list[Recording]:
    """A batch of recordings; an error says in which of them it occurred."""
    try:
        return simulate_batch(job.config, indices, device=job.device, values=values)
    except Exception as error:
        culprit = _culprit(job, values, indices, error)
        if not isinstance(error, GerdError):
            error.add_note(f"while making {culprit}")
            raise
        named = GerdError("\n".join(f"{culprit}: {line}" for line in str(error).splitlines()))
        named.exit_code = error.exit_code
        raise named from None


def _culprit(job: Job, values: dict[str, Any], indices: Sequence[int], error: Exception) -> str:
    """Which recording of a batch gives this kind of error when it is made alone."""
    member = f" ({', '.join(f'{path}={value}' for path, value in values.items())})" if values else ""
    for index in indices if not isinstance(error, MemoryError) else ():
        try:
            simulate_batch(job.config, [index], device=job.device, values=values)
        except type(error):
            return f"recording {index}{member}"
        except Exception:
            continue
    return f"recordings {indices[0]} to {indices[-1]}{member}"

"""Check a dataset: the place where it is goes in, what is wrong with its files and recordings comes out.

Nothing is changed, and the first fault does not end the search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gerd.calls import explained
from gerd.config.config import Config
from gerd.errors import StorageError
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_batch, simulate_chunks
from gerd.storage.manifest import (
    CONFIG,
    MANIFEST,
    REGISTRATION,
    RESOLVED,
    UNFINISHED,
    Entry,
    file_digest,
    new_manifest,
    shard_number,
)
from gerd.storage.recordings import Recordings
from gerd.storage.shard import Shard

DEFINED_PIXELS = 2**22  # of all steps that the definition makes again of one recording in a shard
NOT_OURS = "does not belong to the dataset; if that was to grow, the same generate command finishes it"
DIFFERS = "the file differs from the sha256 in the manifest"


@dataclass(frozen=True)
class Fault:
    """Something that `verify` found."""

    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


@explained
def verify(path: str | Path, *, regenerate: bool = False, trust: bool = False) -> Iterator[tuple[int, list[Fault]]]:
    """Check a dataset shard by shard; yield how many recordings were checked, and what is wrong with them.

    Compares each file with the manifest's sha256, each recording's events with their digest, and the manifest with the
    config. With `regenerate` it also makes every recording again from the stored config and compares all bits; the
    first steps of one in each shard are also made by the definition, so that no kernel vouches for itself. If the
    events were recorded by a camera, only the ground truth is made again. Code that the config names is run only with
    `trust`; it is looked for in the current folder, too.
    """
    data = Recordings(path)
    try:
        config: Config | None = data.config.trusted(str(Path.cwd()) if trust else None)
        faults = _manifest_faults(data, data.config)
    except StorageError as error:
        config = None
        faults = [_fault(data.place.at(RESOLVED), error)]
    shards = {name for name in data.place.names() if name.startswith("shard-")}
    yield 0, faults + _file_faults(data, shards)
    entries = {entry.file: entry for entry in data.manifest.shards}
    if data.manifest.complete:
        numbers = list(range(min(data.shard_count, len(entries))))
    else:  # those that are not made yet were mentioned above
        numbers = sorted(n for n in map(shard_number, shards) if n is not None and n < data.shard_count)
    for number in numbers:
        entry = entries.get(data.manifest.file(number))
        yield len(data.manifest.rows(number)), list(_shard_faults(data, config, number, entry, regenerate))


def _fault(file: str, error: StorageError) -> Fault:
    return Fault(file, str(error).removeprefix(f"{file}: "))


def _manifest_faults(data: Recordings, config: Config) -> list[Fault]:
    """Where the manifest contradicts the config."""
    stored = data.manifest
    wanted = new_manifest(config, data.manifest.count)
    return [
        Fault(data.place.at(MANIFEST), f"{key} is {getattr(stored, key)}, but {getattr(wanted, key)} by the config")
        for key in ("seed", "members", "sweep")
        if getattr(stored, key) != getattr(wanted, key)
    ]


def _file_faults(data: Recordings, shards: set[str]) -> list[Fault]:
    """What is wrong with the set of files, and with those that are not shards."""
    faults = []
    for name in (CONFIG, RESOLVED, *([REGISTRATION] if data.manifest.recorded else [])):
        file = data.place.at(name)
        try:
            if hashlib.sha256(data.place.read(name)).hexdigest() != data.manifest.files.get(name):
                faults.append(Fault(file, DIFFERS))
        except StorageError as error:
            faults.append(_fault(file, error))
    listed = [entry.file for entry in data.manifest.shards]
    problem = None
    if not data.manifest.complete:
        problem = UNFINISHED
    elif len(listed) != data.shard_count or listed != [data.manifest.file(number) for number in range(len(listed))]:
        problem = f"does not list the {data.shard_count} shards of {len(data)} recordings"
    if problem:
        faults.append(Fault(data.place.at(MANIFEST), problem))
    known = {data.manifest.file(number) for number in range(len(listed))}
    strangers = sorted(name for name in shards - known if shard_number(name) not in range(data.shard_count))
    return faults + [Fault(data.place.at(name), NOT_OURS) for name in strangers]


def _shard_faults(
    data: Recordings, config: Config | None, number: int, entry: Entry | None, regenerate: bool
) -> Iterator[Fault]:
    name = data.manifest.file(number)
    file = data.place.at(name)
    try:
        if entry is not None and file_digest(data.place.open(name)) != entry.sha256:
            yield Fault(file, DIFFERS)
        shard = data.shard(number)
    except StorageError as error:
        yield _fault(file, error)
        return
    if entry is not None and entry.recordings != shard.digests:
        yield Fault(file, "the digests of its recordings differ from those in the manifest")
    if config is None:
        return
    for own_row, row in enumerate(data.manifest.rows(number)):
        for message in _recording_faults(shard, own_row, config, regenerate, data.manifest.recorded):
            yield Fault(file, f"row {row}: {message}")


def _recording_faults(shard: Shard, row: int, config: Config, regenerate: bool, recorded: bool) -> Iterator[str]:
    try:
        recording = shard.recording(row, config)
    except StorageError as error:
        yield _fault(shard.path, error).message
        return
    if recording.digest != shard.digests[row]:
        yield "the events differ from their digest"
    if recorded:
        truth = recording.scene.truth(np.arange(recording.steps))[0] if regenerate else recording.truth
        if truth.tobytes() != recording.truth.tobytes():
            yield "made again, the ground truth differs"
        return
    if regenerate:
        (again,) = simulate_batch(recording.config, [recording.identity.index])
        yield from _differences(recording, again, "made again")
    pixels = recording.height * recording.width
    steps = min(recording.steps, DEFINED_PIXELS // pixels - recording.config.integrator.warmup)
    if regenerate and row == 0 and steps > 0:
        again = next(simulate_chunks(recording.config, recording.identity.index, backend="torch", chunk=steps))
        yield from _differences(recording.window(0, steps), again, "made again by the definition")


def _differences(stored: Recording, again: Recording, how: str) -> Iterator[str]:
    for problem, name in (
        ("the events differ", "keys"),
        ("the sources of events differ", "source"),
        ("the times before readout differ", "fired_us"),
        ("the ground truth differs", "truth"),
    ):
        if getattr(stored, name).tobytes() != getattr(again, name).tobytes():
            yield f"{how}, {problem}"

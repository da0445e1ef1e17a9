"""Config to dataset: says what there is to make, has it made shard by shard, and writes the manifest.

A shard is the unit of work. It appears under its name only when it is whole, so whatever a killed run has left is
either a finished shard or nothing; starting again makes the missing ones. Shards are made by processes of this machine
(`local.py`), by the workers of a Ray cluster (`ray_workers.py`) or by independent commands that make a part each. The
files are byte for byte the same, whoever makes them and after any number of interruptions.

A complete dataset grows when more recordings are asked for: recordings depend on their index only. Its files stay as
they are until all new shards are there. If its last shard was not full, the grown one is made beside it. Then one
rename, that of the manifest, makes the old dataset the new one; only after that does the grown shard get the name of
the old one. Whoever stops this leaves a complete dataset, the old one or the new one, and the same call goes on.

Independent commands do not wait for each other. Each writes the entries of its part into a file of its own, and the
one that then finds all shards in place joins them; if two find that at the same instant, they write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from pydantic import ValidationError

from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.functions import differences_of_functions, to_store
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import lengths, member, member_count, most_actors
from gerd.errors import GerdError, StorageError, check_whole, shorten
from gerd.events.backends import check_device, workers_of_device
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT
from gerd.plan.make import plan_of
from gerd.scene.draw import MOST_INDICES, draw
from gerd.storage.code import other_code
from gerd.storage.json_files import parsed_json, read_json
from gerd.storage.local import finish_in_processes
from gerd.storage.manifest import (
    MANIFEST,
    RESOLVED,
    SHARD_SIZE,
    Entry,
    Manifest,
    Part,
    config_files,
    file_digest,
    grown_name,
    new_manifest,
    read_manifest,
    shard_name,
)
from gerd.storage.places import Place, place_at
from gerd.storage.ray_workers import connected, finish_on_ray
from gerd.storage.recordings import Recordings
from gerd.storage.work import Job, Progress, kept_shard

BYTES_OF_TRUTH = ORDERS * PARAMETER_COUNT * 8  # of an actor at one step
MOST_BYTES = 2**35  # of a shard's ground truth
TRIED_MEMBERS = 100  # drawn before anything is written: planning them does not find all that can be wrong
ALL = (1, 1)  # the part of a dataset that is all of it
IDENTITY = ("config_digest", "count", "format_version", "gerd_version", "code_digest")  # of a dataset
_PART = re.compile(r"\.part-\d+-of-\d+\.json")
_GROWN = re.compile(r"shard-\d{6,}\.grown\.safetensors")


@explained
def generate(
    config: AnyConfig,
    out: str | Path,
    count: int,
    *,
    workers: int | None = None,
    device: str | None = None,
    engine: str = "local",
    address: str | None = None,
    part: tuple[int, int] = ALL,
    progress: Progress = lambda made: None,
) -> Recordings:
    """Write the indices 0 … count - 1 (with all members of a sweep) as a dataset into `out`, a folder or URL.

    This continues what an interrupted call has left, adds what is missing to a complete dataset of fewer recordings,
    and refuses a place that contains something else. `engine` says who does the work: `local` is `workers` processes
    (None: one per core, on a GPU if its memory is enough), `ray` the cluster at `address`, on its GPUs if it has any.
    `part` (I, N) makes the I-th of N parts: N such calls, in any order and on any machines, make one dataset, which is
    complete when the last of them has ended. `progress` is called with the number of recordings just made.
    """
    config = to_store(as_config(config))
    _check(config, count, workers, engine, address, part)
    if engine == "local":
        check_device(device or "cpu")
    place = place_at(out)
    alone = part == ALL
    with connected(address) if engine == "ray" else nullcontext(), place.claimed(alone) as certain:
        stored = _begin(config, place, count, certain, alone)  # nothing is touched in a place that is refused
        if alone:
            place.tidy()
        try:
            wanted = stored.model_copy(update={"count": count, "shards": ()})
            stored = _settled(place, stored)
            grown = stored.shard_count - 1 if _has_short_end(stored) and count > stored.count else None
            job = Job(config, place, wanted, device or "cpu", grown=grown)
            numbers = range(part[0] - 1, wanted.shard_count, part[1])
            entries = _sound(job, stored, numbers)
            missing = [number for number in numbers if job.file(number) not in entries]
            new = [number for number in missing if number >= stored.shard_count]
            for some in (new, missing[: len(missing) - len(new)]):  # what readers may have comes last
                if engine == "ray":
                    made = finish_on_ray(job, some, device, workers, progress)
                else:
                    made = _finish_here(job, some, workers, progress)
                entries.update((entry.file, entry) for entry in made)
            _complete(job, stored, entries, part)
        finally:
            if alone:
                place.tidy()
    return Recordings(out)


def recordings_of_part(recordings: int, part: tuple[int, int]) -> int:
    """How many of all recordings a part makes: it has every N-th shard."""
    numbers = range(part[0] - 1, -(-recordings // SHARD_SIZE), part[1])
    short = -recordings % SHARD_SIZE if numbers and numbers[-1] == (recordings - 1) // SHARD_SIZE else 0
    return len(numbers) * SHARD_SIZE - short


def _check(
    config: Config, count: int, workers: int | None, engine: str, address: str | None, part: tuple[int, int]
) -> None:
    """Refuse what cannot be made before anything is written."""
    check_whole("count", count, 1, MOST_INDICES)
    if workers is not None:
        check_whole("workers", workers, 1)
    if not 1 <= part[0] <= part[1]:
        raise GerdError(f"part {part[0]}/{part[1]}: allowed: 1/N to N/N, with N the number of parts")
    if engine not in ("local", "ray"):
        raise GerdError(f"engine {engine!r}: allowed: local, ray")
    if address is not None and engine != "ray":
        raise GerdError(f"address {address}: goes with the engine ray")
    steps = max(lengths(config))
    truth = SHARD_SIZE * steps * most_actors(config) * BYTES_OF_TRUTH
    if truth > MOST_BYTES:
        message = f"makes {truth / 2**30:.3g} GiB of ground truth in a shard, which is written in one piece; allowed: "
        message += f"{MOST_BYTES >> 30} GiB. gerd.simulate_chunks and gerd play give recordings of any length"
        raise config.error("steps", message, steps)
    config_files(config)  # an error if they are larger than what is read again
    for number in range(min(member_count(config), TRIED_MEMBERS)):
        draw(plan_of(member(config, number)), [0])


def _begin(config: Config, place: Place, count: int, certain: bool, alone: bool) -> Manifest:
    """The manifest of the dataset, read from its place or written there before anything else.

    alone: whether this call makes all of it; certain: whether it is sure that nobody else writes there.
    """
    manifest = wanted = new_manifest(config, count)
    names = place.names()
    if names and MANIFEST not in names:
        raise StorageError(f"{place}: holds files that are not a GERD dataset; give an empty or a new folder")
    if names:
        stored = read_manifest(place)
        same_text = stored.files == wanted.files
        grows = _grows(stored, wanted)
        if grows and alone:
            wanted = wanted.model_copy(update={"count": stored.count})
        differences = _differences(stored, wanted, place, config)
        if grows and not alone:
            how = "recordings are added by one command, without --shard"
            differences.append(f"count is {stored.count} there and {wanted.count} here; {how}")
        if not (certain or same_text or stored.complete or differences):  # another run relies on its own text
            differences = ["the text of the config differs, although it means the same"]
        begun = stored.complete or any(name.startswith("shard-") for name in names)
        if differences and (begun or not certain):
            raise StorageError(f"{place}: holds a different dataset: {'; '.join(differences)}")
        if stored.complete or (same_text and not differences):
            manifest = stored
    if manifest is wanted:
        place.write(MANIFEST, manifest.to_bytes())
    for name, data in config_files(config).items():
        ours = manifest.files.get(name) == wanted.files[name]
        if ours and (name not in names or place.read(name) != data):
            place.write(name, data)
    return manifest


def _grows(stored: Manifest, wanted: Manifest) -> bool:
    """Whether more recordings can be added to the dataset of the manifest `stored`: the code must be the same."""
    same = all(getattr(stored, key) == getattr(wanted, key) for key in IDENTITY if key != "count")
    same = same and not stored.recorded
    return stored.complete and same and stored.count < wanted.count


def _differences(stored: Manifest, wanted: Manifest, place: Place, config: Config) -> list[str]:
    """What sets the dataset at `place` apart from the one that is asked for."""
    if stored.recorded:
        return ["its events were recorded by a camera"]
    could_grow = stored.complete and stored.count < wanted.count  # more recordings alone are no difference
    differences = [
        f"{key} is {getattr(stored, key)} there and {getattr(wanted, key)} here"
        for key in ("format_version", "gerd_version", *(() if could_grow else ("count",)))
        if getattr(stored, key) != getattr(wanted, key)
    ]
    needed = not stored.complete or stored.count < wanted.count  # something from this code
    if needed and stored.code_digest != wanted.code_digest:
        differences.append(f"it {other_code(stored.code_digest)}")
    if stored.config_digest != wanted.config_digest:
        try:
            stored_config = parsed_json(read_json(place, RESOLVED))
        except (StorageError, ValueError, RecursionError):
            stored_config = None
        changed = list(_changes(stored_config, json.loads(config_files(config)[RESOLVED]), "")) if stored_config else []
        differences += changed[:5] or ["the config differs"]
        if len(changed) > 5:
            differences.append(f"and {len(changed) - 5} more")
    return differences


def _changes(stored: object, wanted: object, path: str) -> Iterator[str]:
    """What sets two resolved configs apart at a path and below it, in words."""
    if path == "functions":
        yield from differences_of_functions(stored, wanted)
    elif isinstance(stored, dict) and isinstance(wanted, dict):
        for key in {**stored, **wanted}:
            yield from _changes(stored.get(key), wanted.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(stored, list) and isinstance(wanted, list) and len(stored) == len(wanted):
        for i, (a, b) in enumerate(zip(stored, wanted, strict=True)):
            yield from _changes(a, b, f"{path}.{i}")
    elif stored != wanted:
        yield f"{path} is {shorten(stored)} there and {shorten(wanted)} here"


def _sound(job: Job, stored: Manifest, numbers: Sequence[int]) -> dict[str, Entry]:
    """The entries, by file, of those of the shards `numbers` that are listed, unchanged and as long as wanted."""
    result = {}
    lengths = {job.file(number): len(job.manifest.rows(number)) for number in numbers}
    for entry in stored.shards:
        if lengths.get(entry.file) == len(entry.recordings):
            with suppress(StorageError):
                if file_digest(job.place.open(entry.file)) == entry.sha256:
                    result[entry.file] = entry
    return result


def _finish_here(job: Job, numbers: Sequence[int], workers: int | None, progress: Progress) -> Iterator[Entry]:
    """Finish shards by processes of this machine: by this one alone if the dataset is in its memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if str(job.place).startswith("memory:"):
        workers = 1
    if workers is None:
        workers = cores if job.device == "cpu" else min(cores, workers_of_device(job.device))
    return finish_in_processes(job, numbers, min(workers, max(1, len(numbers))), progress)


def _complete(job: Job, stored: Manifest, entries: dict[str, Entry], part: tuple[int, int]) -> None:
    """Write the manifest that lists all shards, unless some are still to be made by others; never one with holes."""
    place = job.place
    if part != ALL and not stored.complete:
        made = Part(config_digest=job.config.digest, code_digest=stored.code_digest, shards=tuple(entries.values()))
        place.write(f".part-{part[0]}-of-{part[1]}.json", made.to_bytes())
    names = place.names()
    numbers = range(job.manifest.shard_count)
    if gone := entries.keys() - names:
        message = "was written by a worker, but is not there; the folder must be one that all machines share"
        raise StorageError(f"{place.at(min(gone))}: {message}")
    if not all(job.file(number) in names for number in numbers):
        return  # whoever makes the last shard will come here, too
    now = read_manifest(place)
    if any(getattr(now, key) != getattr(stored, key) for key in IDENTITY):
        raise StorageError(f"{place}: another run has begun a different dataset here at the same time")
    if part != ALL:
        entries = {entry.file: entry for entry in now.shards} if now.complete else _joined(job, entries)
    if not all(job.file(number) in entries for number in numbers):
        return  # what stands under the name of a shard is not the shard: its own part will make it
    shards = tuple(entries[job.file(number)] for number in numbers)
    if (now.complete, now.shards) != (True, shards):
        now = job.manifest.model_copy(update={"complete": True, "shards": shards})
        place.write(MANIFEST, now.to_bytes())
    _settled(place, now)
    for name in names:
        if _PART.fullmatch(name) or (part == ALL and _GROWN.fullmatch(name)):
            place.remove(name)


def _has_short_end(manifest: Manifest) -> bool:
    return manifest.complete and manifest.recordings % SHARD_SIZE != 0


def _settled(place: Place, manifest: Manifest) -> Manifest:
    """Give a grown shard that the manifest lists the name of the shard that it takes the place of.

    At any time the manifest lists a file that is whole: the grown one, until its copy is there, and then the copy. A
    grown one that is damaged is left to be made anew.
    """
    number = next((n for n, entry in enumerate(manifest.shards) if entry.file == grown_name(n)), None)
    if number is None:
        return manifest
    entry = manifest.shards[number]
    data = b""
    with suppress(StorageError):
        file = place.open(entry.file)
        data = file.read(0, file.size)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        return manifest
    place.write(shard_name(number), data)
    shards = list(manifest.shards)
    shards[number] = entry.model_copy(update={"file": shard_name(number)})
    manifest = manifest.model_copy(update={"shards": tuple(shards)})
    place.write(MANIFEST, manifest.to_bytes())
    place.remove(entry.file)
    return manifest


def _joined(job: Job, entries: dict[str, Entry]) -> dict[str, Entry]:
    """All known entries: ours, those in part files, and those of shards whose part file is already gone."""
    result = dict(entries)
    of_part: dict[str, str] = {}  # by the file of a shard: that of the part that lists it
    wanted = {shard_name(number) for number in range(job.manifest.shard_count)}
    for name in filter(_PART.fullmatch, job.place.names()):
        with suppress(StorageError, ValidationError):
            part = Part.model_validate_json(read_json(job.place, name))
            if (part.config_digest, part.code_digest) == (job.config.digest, job.manifest.code_digest):
                others = [entry for entry in part.shards if entry.file in wanted and entry.file not in entries]
                result.update((entry.file, entry) for entry in others)
                of_part.update((entry.file, name) for entry in others)
    for file, name in of_part.items():
        if file_digest(job.place.open(file)) != result[file].sha256:
            its_part = "/".join(re.findall(r"\d+", name))
            raise StorageError(f"{job.place.at(file)}: has changed since it was made; run --shard {its_part} again")
    for number in range(job.manifest.shard_count):
        if shard_name(number) not in result and (entry := kept_shard(job, number, lambda made: None)):
            result[entry.file] = entry
    return result

"""Config to dataset: says what there is to make, has it made shard by shard, and writes the manifest.

A shard is the unit of work. It appears under its name only when it is whole, so whatever a killed run has left is
either a finished shard or nothing; starting again makes the missing ones. Who makes which shard does not show: the
processes of this machine (`pool.py`), the workers of a Ray cluster (`cluster.py`) or independent commands that make a
part each. The files are byte for byte the same as after one undisturbed run.

Independent commands do not wait for each other. Each writes the entries of its part into a file of its own, and the
one that then finds all shards in place joins them; if two find that at the same instant, they write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gerd.config.config import TRANSFORMATIONS, Config
from gerd.config.sweep import labels, member_count
from gerd.config.values import Function
from gerd.errors import GerdError, StorageError, shorten
from gerd.events.backends import check_device
from gerd.recording.recording import FORMAT_VERSION
from gerd.recording.simulate import scenes_of
from gerd.storage.local import finish_in_processes
from gerd.storage.places import Store, store_at
from gerd.storage.recordings import (
    CONFIG,
    MANIFEST,
    RESOLVED,
    SHARD_SIZE,
    Recordings,
    file_digest,
    is_entry,
    json_bytes,
    read_manifest,
    shard_name,
    shard_number,
)
from gerd.storage.work import Entries, Entry, Job, Progress, kept_shard
from gerd.version import __version__

BYTES_OF_TRUTH = 3 * 6 * 8  # of an actor at one step
MOST_BYTES = 2**35  # of a shard's ground truth
TRIED_MEMBERS = 100  # drawn once before anything is written
WHOLE = (1, 1)  # the part that is all of it
_PART = re.compile(r"\.part-\d+-of-\d+\.json")


def generate(
    config: Config,
    out: str | Path,
    count: int,
    *,
    workers: int | None = None,
    device: str | None = None,
    engine: str = "local",
    address: str | None = None,
    part: tuple[int, int] = WHOLE,
    progress: Progress = lambda made: None,
) -> Recordings:
    """Write recordings 0 … count - 1 (with all members of a sweep) as a dataset into `out`, a folder or a URL.

    Continues what an interrupted call has left; refuses a place that holds something else. `engine` is who does the
    work: `local`, `workers` processes (as many as there are cores unless told, and one if the device is not the CPU),
    or `ray`, the cluster at `address`, on its GPUs if it has any. `part` (I, N) makes the I-th of N parts: N such
    calls, in any order and on any machines, make one dataset, which is complete when the last of them has ended.
    `progress` is called with the number of recordings just made.
    """
    _check(config, count, workers, engine, address, part)
    if engine == "local":
        check_device(device or "cpu")
    store = store_at(out)
    alone = part == WHOLE
    with _engine(engine, address), store.claimed(alone) as certain:
        if alone:
            store.tidy()
        try:
            manifest = _begin(config, store, count, certain)
            job = Job(config, store, manifest["count"] * manifest["members"], device or "cpu")
            numbers = range(part[0] - 1, job.shards, part[1])
            entries = _sound(store, manifest, numbers)
            missing = [number for number in numbers if number not in entries]
            if engine == "ray":
                from gerd.storage.ray_workers import finish_on_ray

                entries.update(finish_on_ray(job, missing, device, workers, progress))
            else:
                entries.update(_finish_here(job, missing, workers, progress))
            _complete(job, manifest, entries, part)
        finally:
            if alone:
                store.tidy()
    return Recordings(out)


def parse_part(text: str) -> tuple[int, int]:
    """A part as it is written, I/N."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise GerdError(f"--shard {text}: allowed is I/N with I from 1 to N, such as 3/10 for the third of ten parts")
    return int(found[1]), int(found[2])


def recordings_of_part(recordings: int, part: tuple[int, int]) -> int:
    """How many of all recordings a part makes: it has every N-th shard."""
    numbers = range(part[0] - 1, -(-recordings // SHARD_SIZE), part[1])
    short = -recordings % SHARD_SIZE if numbers and numbers[-1] == (recordings - 1) // SHARD_SIZE else 0
    return len(numbers) * SHARD_SIZE - short


def _check(
    config: Config, count: int, workers: int | None, engine: str, address: str | None, part: tuple[int, int]
) -> None:
    """Refuse what cannot be made before anything is written."""
    if not 1 <= count <= 2**32:
        raise GerdError(f"count {count}: allowed is 1 to {2**32}")
    if workers is not None and workers < 1:
        raise GerdError(f"workers {workers}: allowed is 1 or more")
    if not 1 <= part[0] <= part[1]:
        raise GerdError(f"part {part[0]}/{part[1]}: allowed is 1/N to N/N, with N the number of parts")
    if engine not in ("local", "ray"):
        raise GerdError(f"engine {engine!r}: allowed are local and ray")
    if address is not None and engine != "ray":
        raise GerdError(f"address {address}: goes with the engine ray")
    truth = SHARD_SIZE * config.steps * len(config.actors) * BYTES_OF_TRUTH
    if truth > MOST_BYTES:
        message = f"makes {truth / 2**30:.3g} GiB of ground truth in a shard, which is written in one piece; allowed: "
        message += f"{MOST_BYTES >> 30} GiB. gerd.simulate_chunks and gerd play give recordings of any length"
        raise config.error("steps", message, config.steps)
    _importable(config)
    for member in range(min(member_count(config), TRIED_MEMBERS)):
        scenes_of(config, [0], labels(config, member))


def _engine(engine: str, address: str | None) -> AbstractContextManager[None]:
    if engine == "local":
        return nullcontext()
    from gerd.storage.ray_workers import connected

    return connected(address)


def _begin(config: Config, store: Store, count: int, alone: bool) -> dict[str, Any]:
    """The manifest of the dataset, found in the store or written into it before anything else."""
    files = {CONFIG: config.text.encode(), RESOLVED: json_bytes(config.resolved())}
    manifest: dict[str, Any] = {
        "format": "gerd",
        "format_version": FORMAT_VERSION,
        "gerd_version": __version__,
        "config_digest": config.digest,
        "seed": config.seed,
        "count": count,
        "members": member_count(config),
        "sweep": {path: list(values) for path, values in config.resolved()["sweep"].items()},
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "complete": False,
        "shards": [],
    }
    names = store.names()
    if names and MANIFEST not in names:
        raise StorageError(f"{store}: holds files that are not a GERD dataset; give an empty or a new folder")
    found = read_manifest(store) if names else None
    if found is not None:
        differences = _differences(found, manifest, store, config)
        same_text = found["files"] == manifest["files"]
        if not (alone or same_text or found["complete"] or differences):  # another run relies on its own text
            differences = ["the text of the config differs, although it means the same"]
        begun = found["complete"] or any(name.startswith("shard-") for name in names)
        if differences and (begun or not alone):
            raise StorageError(f"{store}: holds a different dataset: {'; '.join(differences)}")
        if found["complete"] or (same_text and not differences):
            manifest = found
    if manifest is not found:
        store.write(MANIFEST, json_bytes(manifest))
    for name, data in files.items():
        ours = manifest["files"].get(name) == hashlib.sha256(data).hexdigest()
        if ours and (name not in names or store.read(name) != data):
            store.write(name, data)
    return manifest


def _differences(found: dict[str, Any], wanted: dict[str, Any], store: Store, config: Config) -> list[str]:
    """What sets the dataset in `store` apart from the one that is asked for."""
    differences = [
        f"{key} is {found[key]} there and {wanted[key]} here"
        for key in ("count", "gerd_version")
        if found[key] != wanted[key]
    ]
    if found["config_digest"] != wanted["config_digest"]:
        try:
            there = json.loads(store.read(RESOLVED))
        except (StorageError, ValueError, RecursionError):
            there = None
        changed = list(_changes(there, json.loads(json_bytes(config.resolved())), "")) if there else []
        differences += changed[:5] or ["the config differs"]
        if len(changed) > 5:
            differences.append(f"and {len(changed) - 5} more")
    return differences


def _changes(there: Any, here: Any, path: str) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            yield from _changes(there.get(key), here.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for i, (a, b) in enumerate(zip(there, here, strict=True)):
            yield from _changes(a, b, f"{path}.{i}")
    elif there != here:
        yield f"{path} is {shorten(there)} there and {shorten(here)} here"


def _sound(store: Store, manifest: dict[str, Any], numbers: Sequence[int]) -> dict[int, Entry]:
    """Of a complete dataset, the entries of the shards `numbers` that are still as they were written."""
    result = {}
    for number, entry in enumerate(manifest["shards"] if manifest["complete"] else ()):
        if number not in numbers or entry["file"] != shard_name(number):
            continue
        try:
            if file_digest(store.open(entry["file"])) == entry["sha256"]:
                result[number] = entry
        except StorageError:
            continue
    return result


def _finish_here(job: Job, numbers: Sequence[int], workers: int | None, progress: Progress) -> Entries:
    """By processes of this machine; a store that lives in the memory of this process cannot be shared with others."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if str(job.store).startswith("memory:"):
        workers = 1
    workers = workers or (cores if job.device == "cpu" else 1)
    return finish_in_processes(job, numbers, min(workers, max(1, len(numbers))), progress)


def _complete(job: Job, manifest: dict[str, Any], entries: dict[int, Entry], part: tuple[int, int]) -> None:
    """Write the manifest that lists all shards, unless some are still to be made by others; never one with holes."""
    store = job.store
    if part != WHOLE and not manifest["complete"]:
        mine = {"config_digest": job.config.digest, "shards": list(entries.values())}
        store.write(f".part-{part[0]}-of-{part[1]}.json", json_bytes(mine))
    names, numbers = store.names(), range(job.shards)
    gone = [shard_name(number) for number in entries if shard_name(number) not in names]
    if gone:
        message = "was written by a worker, but is not there; the folder must be one that all machines share"
        raise StorageError(f"{store.at(gone[0])}: {message}")
    if not all(shard_name(number) in names for number in numbers):
        return  # whoever makes the last shard will come here, too
    now = read_manifest(store)
    if any(now[key] != manifest[key] for key in ("config_digest", "count", "gerd_version")):
        raise StorageError(f"{store}: another run has begun a different dataset here at the same time")
    if part != WHOLE:
        entries = dict(enumerate(now["shards"])) if now["complete"] else _joined(job, entries)
    shards = [entries.get(number) for number in numbers]
    if None in shards:
        return  # what stands under the name of a shard is not the shard: its own part will make it
    if (now["complete"], now["shards"]) != (True, shards):
        store.write(MANIFEST, json_bytes({**manifest, "complete": True, "shards": shards}))
    for name in filter(_PART.fullmatch, names):
        store.remove(name)


def _joined(job: Job, entries: dict[int, Entry]) -> dict[int, Entry]:
    """These entries, those that other parts have left, and of what is not among them those of the shards themselves.

    (The parts of others are gone if one of them joins them at this moment, too.)
    """
    result = dict(entries)
    for name in filter(_PART.fullmatch, job.store.names()):
        try:
            there = json.loads(job.store.read(name))
            if there["config_digest"] == job.config.digest:
                numbered = {shard_number(entry["file"]): entry for entry in there["shards"] if is_entry(entry)}
                result.update((number, entry) for number, entry in numbered.items() if number is not None)
        except (StorageError, ValueError, KeyError, TypeError, RecursionError):
            continue
    for number in range(job.shards):
        if number not in result and (entry := kept_shard(job, number, lambda made: None)):
            result[number] = entry
    return result


def _importable(config: Config) -> None:
    """A dataset's config must say all of it: a function without a name that can be imported cannot be stored."""
    for i, actor in enumerate(config.actors):
        for name in TRANSFORMATIONS:
            given = getattr(actor, name).acceleration
            for value in given if isinstance(given, tuple) else (given,):
                if isinstance(value, Function) and value._callable is not None:
                    module, _, function = value.function.partition(":")
                    if getattr(sys.modules.get(module), function, None) is not value._callable or module == "__main__":
                        raise GerdError(
                            f"actors.{i}.{name}.acceleration: {value.function} cannot be imported by its name, so a "
                            "dataset cannot say what it was made from; put the function into a module"
                        )

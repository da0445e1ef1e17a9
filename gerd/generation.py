"""Config to dataset: makes the recordings shard by shard, in several processes, and can be stopped at any moment.

A shard is the unit of work. It appears under its name only when it is whole and on the disk, so whatever a killed run
has left is either a finished shard or nothing; starting again makes the missing ones. Which process makes which shard
does not show: the directory is byte for byte the same as after one undisturbed run.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from gerd.config import Config
from gerd.errors import GerdError, StorageError
from gerd.recording import FORMAT_VERSION, Recording
from gerd.simulation import simulate_batch
from gerd.storage import (
    CONFIG,
    MANIFEST,
    RESOLVED,
    SHARD_SIZE,
    Recordings,
    Shard,
    read_manifest,
    shard_bytes,
    shard_name,
    shard_positions,
    write_atomically,
)
from gerd.sweep import labels, member_count
from gerd.values import Function

BATCH_PIXELS = 2**20  # pixels of all frames simulated together, so that memory does not grow with the shard

Progress = Callable[[int], None]


def generate(
    config: Config,
    out: str | Path,
    count: int,
    *,
    workers: int | None = None,
    device: str = "cpu",
    progress: Progress = lambda made: None,
) -> Recordings:
    """Write recordings 0 … count - 1 (with all members of a sweep) as a dataset into the folder `out`.

    Continues what an interrupted call has left; refuses a folder that holds something else. `workers` is the number
    of processes, as many as there are cores unless told. `progress` is called with the number of recordings just made.
    """
    if count < 1:
        raise GerdError(f"count {count}: allowed is 1 or more")
    if workers is not None and workers < 1:
        raise GerdError(f"workers {workers}: allowed is 1 or more")
    _importable(config)
    folder = Path(out)
    manifest = _begin(config, folder, count)
    total = count * member_count(config)
    numbers = range(-(-total // SHARD_SIZE))
    if not manifest["complete"]:
        entries = {entry["file"]: entry for entry in _kept(folder, config, numbers, total, progress)}
        missing = [number for number in numbers if shard_name(number) not in entries]
        workers = min(workers or os.cpu_count() or 1, max(1, len(missing)))
        for entry in _make(config, folder, missing, total, workers, device, progress):
            entries[entry["file"]] = entry
        manifest = {**manifest, "complete": True, "shards": [entries[shard_name(number)] for number in numbers]}
        _write_json(folder / MANIFEST, manifest)
    return Recordings(folder)


def _begin(config: Config, folder: Path, count: int) -> dict[str, Any]:
    """Claim `folder` for this dataset; the manifest that says so is the first thing in it."""
    manifest: dict[str, Any] = {
        "format": "gerd",
        "format_version": FORMAT_VERSION,
        "gerd_version": metadata.version("gerd"),
        "config_digest": config.digest,
        "seed": config.seed,
        "count": count,
        "members": member_count(config),
        "sweep": {path: list(values) for path, values in config.resolved()["sweep"].items()},
        "complete": False,
        "shards": [],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(file for file in folder.iterdir() if not _leftover(file))
    except OSError as error:
        raise StorageError(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    if not empty:
        if not (folder / MANIFEST).exists():
            raise StorageError(f"{folder}: holds files that are not a GERD dataset; give an empty or a new folder")
        found = read_manifest(folder)
        differences = _differences(found, manifest, folder, config)
        if differences:
            raise StorageError(f"{folder}: holds a different dataset: {'; '.join(differences)}")
        manifest = found
    if not manifest["complete"]:
        write_atomically(folder / CONFIG, config.text.encode())
        _write_json(folder / RESOLVED, config.resolved())
        _write_json(folder / MANIFEST, manifest)
    return manifest


def _leftover(file: Path) -> bool:
    """Whether `file` is a temporary one of a process that is gone; removes it if so."""
    parts = file.name.split(".")
    if not (file.name.startswith(".") and parts[-1] == "tmp" and parts[-2].isdecimal()):
        return False
    try:
        os.kill(int(parts[-2]), 0)
    except (ProcessLookupError, OverflowError):
        with suppress(OSError):
            file.unlink()
    except PermissionError:
        pass
    return True


def _differences(found: dict[str, Any], wanted: dict[str, Any], folder: Path, config: Config) -> list[str]:
    """What sets the dataset in `folder` apart from the one that is asked for."""
    differences = [
        f"{key} is {found.get(key)} there and {wanted[key]} here"
        for key in ("count", "gerd_version")
        if found.get(key) != wanted[key]
    ]
    if found["config_digest"] != wanted["config_digest"]:
        try:
            there = json.loads((folder / RESOLVED).read_text("utf-8"))
        except (OSError, ValueError):
            there = {}
        changed = list(_changes(there, config.resolved(), ""))
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
        yield f"{path} is {str(there)[:40]} there and {str(here)[:40]} here"


def _kept(folder: Path, config: Config, numbers: range, total: int, progress: Progress) -> Iterator[dict[str, Any]]:
    """The entries of the shards that an earlier run has finished; damaged ones are made again."""
    for number in numbers:
        file = folder / shard_name(number)
        if file.exists():
            try:
                shard = Shard(file)
                whole = len(shard) == len(shard_positions(number, total)) and shard.config_digest == config.digest
                for row in range(len(shard)):
                    whole = whole and shard.recording(row, config).digest == shard.digest[row].tobytes().hex()
            except StorageError:
                whole = False
            if whole:
                progress(len(shard))
                yield _entry(number, file.read_bytes(), shard.digest)


def _entry(number: int, data: bytes, digests: Any) -> dict[str, Any]:
    return {
        "file": shard_name(number),
        "sha256": hashlib.sha256(data).hexdigest(),
        "recordings": [bytes(digest).hex() for digest in digests],
    }


def _make(
    config: Config, folder: Path, numbers: list[int], total: int, workers: int, device: str, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Make the shards `numbers`, in this process or in several."""
    if workers == 1:
        for number in numbers:
            yield make_shard(config, folder, number, total, device, progress)
        return
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    pool = ProcessPoolExecutor(workers, context, _start_worker, (counter, config._trusted))
    seen = 0
    try:
        waiting: set[Future[dict[str, Any]]] = {
            pool.submit(_make_in_worker, config, folder, number, total, device) for number in numbers
        }
        while waiting:
            done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            progress(counter.value - seen)
            seen = counter.value
            for future in done:
                yield future.result()
        progress(counter.value - seen)
    except BrokenProcessPool:
        raise GerdError(
            f"{folder}: a worker process died, perhaps for lack of memory; finished shards are kept, and the same "
            "command continues"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_counter: Any = None  # recordings made by all workers together; set in a worker when it starts


def _start_worker(counter: Any, trusted: str | None) -> None:
    global _counter
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    torch.set_num_threads(1)
    if trusted is not None and trusted not in sys.path:
        sys.path.insert(0, trusted)
    _counter = counter


def _count(made: int) -> None:
    with _counter.get_lock():
        _counter.value += made


def _make_in_worker(config: Config, folder: Path, number: int, total: int, device: str) -> dict[str, Any]:
    return make_shard(config, folder, number, total, device, _count)


def make_shard(
    config: Config, folder: Path, number: int, total: int, device: str, progress: Progress
) -> dict[str, Any]:
    """Simulate and write one shard; its entry in the manifest."""
    members = member_count(config)
    positions = shard_positions(number, total)
    made: dict[int, Recording] = {}
    at_once = max(1, BATCH_PIXELS // (config.sensor.width * config.sensor.height))
    for member in range(members):
        mine = [position for position in positions if position % members == member]
        for begin in range(0, len(mine), at_once):
            batch = mine[begin : begin + at_once]
            indices = [position // members for position in batch]
            recordings = simulate_batch(config, indices, device=device, values=labels(config, member))
            made.update(zip(batch, recordings, strict=True))
            progress(len(batch))
    recordings = [made[position] for position in positions]
    data = shard_bytes(recordings, [position % members for position in positions])
    write_atomically(folder / shard_name(number), data)
    return _entry(number, data, [bytes.fromhex(recording.digest) for recording in recordings])


def _write_json(path: Path, data: Any) -> None:
    write_atomically(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


def _importable(config: Config) -> None:
    """A dataset's config must say all of it: a function without a name that can be imported cannot be stored."""
    for i, actor in enumerate(config.actors):
        for name in ("translation", "scale", "rotation", "shear"):
            given = getattr(actor, name).acceleration
            for value in given if isinstance(given, tuple) else (given,):
                if isinstance(value, Function) and value._callable is not None:
                    module, _, function = value.function.partition(":")
                    if getattr(sys.modules.get(module), function, None) is not value._callable or module == "__main__":
                        raise GerdError(
                            f"actors.{i}.{name}.acceleration: {value.function} cannot be imported by its name, so a "
                            "dataset cannot say what it was made from; put the function into a module"
                        )

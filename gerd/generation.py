"""Config to dataset: makes the recordings shard by shard, in several processes, and can be stopped at any moment.

A shard is the unit of work. It appears under its name only when it is whole and on the disk, so whatever a killed run
has left is either a finished shard or nothing; starting again makes the missing ones. Which process makes which shard
does not show: the directory is byte for byte the same as after one undisturbed run.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from gerd.config import TRANSFORMATIONS, Config
from gerd.errors import GerdError, StorageError, shorten
from gerd.recording import FORMAT_VERSION, Recording
from gerd.shard import Shard, shard_bytes
from gerd.simulation import check_device, scenes_of, simulate_batch
from gerd.storage import (
    CONFIG,
    MANIFEST,
    RESOLVED,
    SHARD_SIZE,
    Recordings,
    json_bytes,
    read_manifest,
    shard_name,
    shard_positions,
    write_atomically,
)
from gerd.sweep import labels, member_count
from gerd.values import Function
from gerd.version import __version__

TRIED_MEMBERS = 100  # drawn once before anything is written
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
    of processes: as many as there are cores unless told, and one if the device is not the CPU. `progress` is called
    with the number of recordings just made.
    """
    if not 1 <= count <= 2**32:
        raise GerdError(f"count {count}: allowed is 1 to {2**32}")
    if workers is not None and workers < 1:
        raise GerdError(f"workers {workers}: allowed is 1 or more")
    _importable(config)
    for member in range(min(member_count(config), TRIED_MEMBERS)):  # what cannot be drawn is refused at once
        scenes_of(config, [0], labels(config, member))
    check_device(device)
    folder = Path(out)
    with _claimed(folder):
        try:
            manifest = _begin(config, folder, count)
            if not manifest["complete"]:
                _fill(config, folder, manifest, workers, device, progress)
        finally:
            _remove_leftovers(folder)
    return Recordings(folder)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold the folder, made if it is not there, so that no two runs write into it; the claim ends with the process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY)
    except FileExistsError:
        raise StorageError(f"{folder}: is a file; a dataset is written into a folder") from None
    except OSError as error:
        raise StorageError(f"{folder}: cannot be used as a folder: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(f"{folder}: another run is writing here; wait for it, or stop it") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(held)


def _begin(config: Config, folder: Path, count: int) -> dict[str, Any]:
    """The manifest of the dataset, found in the folder or written into it before anything else."""
    text, resolved = config.text.encode(), json_bytes(config.resolved())
    manifest: dict[str, Any] = {
        "format": "gerd",
        "format_version": FORMAT_VERSION,
        "gerd_version": __version__,
        "config_digest": config.digest,
        "seed": config.seed,
        "count": count,
        "members": member_count(config),
        "sweep": {path: list(values) for path, values in config.resolved()["sweep"].items()},
        "files": {CONFIG: hashlib.sha256(text).hexdigest(), RESOLVED: hashlib.sha256(resolved).hexdigest()},
        "complete": False,
        "shards": [],
    }
    _remove_leftovers(folder)
    try:
        names = {file.name for file in folder.iterdir()}
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror or error}") from None
    if names and MANIFEST not in names:
        raise StorageError(f"{folder}: holds files that are not a GERD dataset; give an empty or a new folder")
    if names:
        found = read_manifest(folder)
        begun = found["complete"] or any(name.startswith("shard-") for name in names)
        differences = _differences(found, manifest, folder, config) if begun else []
        if differences:
            raise StorageError(f"{folder}: holds a different dataset: {'; '.join(differences)}")
        if found["complete"] and _all_sound(folder, found):
            return found
    write_atomically(folder / MANIFEST, json_bytes(manifest))
    write_atomically(folder / CONFIG, text)
    write_atomically(folder / RESOLVED, resolved)
    return manifest


def _all_sound(folder: Path, manifest: dict[str, Any]) -> bool:
    """Whether every shard of a complete dataset is there, as it was written."""
    for entry in manifest["shards"]:
        try:
            with open(folder / entry["file"], "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                    return False
        except OSError:
            return False
    return True


def _fill(
    config: Config, folder: Path, manifest: dict[str, Any], workers: int | None, device: str, progress: Progress
) -> None:
    """Make the shards that are missing, then write the manifest that lists them all."""
    total = manifest["count"] * manifest["members"]
    numbers = range(-(-total // SHARD_SIZE))
    entries = dict(_kept(folder, config, numbers, total, progress))
    missing = [number for number in numbers if number not in entries]
    workers = min(workers or _cores(device), max(1, len(missing)))
    entries.update(_make(config, folder, missing, total, workers, device, progress))
    complete = {**manifest, "complete": True, "shards": [entries[number] for number in numbers]}
    write_atomically(folder / MANIFEST, json_bytes(complete))


def _cores(device: str) -> int:
    if device != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of runs that were killed."""
    ours = re.compile(r"\.(manifest\.json|config\.yaml|resolved\.json|shard-\d+\.safetensors)\.\d+\.tmp")
    with suppress(OSError):
        for file in folder.iterdir():
            if ours.fullmatch(file.name):
                file.unlink(missing_ok=True)


def _differences(found: dict[str, Any], wanted: dict[str, Any], folder: Path, config: Config) -> list[str]:
    """What sets the dataset in `folder` apart from the one that is asked for."""
    differences = [
        f"{key} is {found[key]} there and {wanted[key]} here"
        for key in ("count", "gerd_version")
        if found[key] != wanted[key]
    ]
    if found["config_digest"] != wanted["config_digest"]:
        try:
            there = json.loads((folder / RESOLVED).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
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


Entries = Iterator[tuple[int, dict[str, Any]]]  # shard number, and what the manifest says about the shard


def _kept(folder: Path, config: Config, numbers: range, total: int, progress: Progress) -> Entries:
    """The entries of the shards that an earlier run has finished; damaged ones are made again."""
    members = member_count(config)
    for number in numbers:
        file, positions = folder / shard_name(number), shard_positions(number, total)
        if not file.exists():
            continue
        try:
            shard = Shard(file)
            found = list(zip(shard.index, shard.member, strict=True))
            whole = shard.config_digest == config.digest and found == [divmod(i, members) for i in positions]
            for row in range(len(shard)):
                whole = whole and shard.recording(row, config).digest == bytes(shard.digest[row]).hex()
        except StorageError:
            whole = False
        if whole:
            progress(len(shard))
            yield number, _entry(number, file.read_bytes(), shard.digest)


def _entry(number: int, data: bytes, digests: Any) -> dict[str, Any]:
    return {
        "file": shard_name(number),
        "sha256": hashlib.sha256(data).hexdigest(),
        "recordings": [bytes(digest).hex() for digest in digests],
    }


def _make(
    config: Config, folder: Path, numbers: list[int], total: int, workers: int, device: str, progress: Progress
) -> Entries:
    """Make the shards `numbers`, in this process or in several."""
    if workers == 1:
        for number in numbers:
            yield number, make_shard(config, folder, number, total, device, progress)
        return
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    alive, hold = context.Pipe(duplex=False)  # workers see its end when this process lets go of it or dies
    pool = ProcessPoolExecutor(workers, context, _start_worker, (counter, alive, config._trusted))
    seen = 0
    try:
        with _starting_workers():
            jobs: dict[Future[dict[str, Any]], int] = {
                pool.submit(_make_in_worker, config, folder, number, total, device): number for number in numbers
            }
        waiting = set(jobs)
        while waiting:
            done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            progress(counter.value - seen)
            seen = counter.value
            for job in done:
                yield jobs[job], job.result()
    except BrokenProcessPool:
        raise GerdError(
            f"{folder}: a worker process died, perhaps for lack of memory; finished shards are kept, and the same "
            "command continues"
        ) from None
    except BaseException:
        hold.close()  # stops the workers at once: a shard is either whole or not there
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        hold.close()
        alive.close()


@contextmanager
def _starting_workers() -> Iterator[None]:
    """While workers start: they do not run the user's script again, and Ctrl-C waits and is for this process alone."""
    main, pressed = sys.modules["__main__"], []
    ours = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda *_: pressed.append(True)) if ours else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # what the workers inherit
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if pressed and callable(handler):
        handler(signal.SIGINT, None)


_counter: Any = None  # recordings made by all workers together; set in a worker when it starts


def _start_worker(counter: Any, alive: Any, trusted: str | None) -> None:
    global _counter
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    if trusted is not None and trusted not in sys.path:
        sys.path.insert(0, trusted)
    _counter = counter


def _end_with(alive: Any) -> None:
    """End this worker when the process that started it has let go of the other end of the pipe, or is gone."""
    with suppress(EOFError, OSError):
        alive.recv_bytes()
    os._exit(1)


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
    for member in sorted({position % members for position in positions}):
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

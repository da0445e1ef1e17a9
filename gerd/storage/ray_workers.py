"""Shards made by the workers of a Ray cluster.

A `Job` and the numbers of its shards go in, their entries in the manifest come out. The workers write the shards
themselves, into a folder that all machines share or into an object store; only entries travel. A range of shards is
handed out at a time, long enough (`TASK_SECONDS`) that handing it out costs little, and only as many ranges as keep
all workers busy. When a worker or its machine dies, Ray gives its range to another, which keeps the finished shards.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gerd.config.trust import import_from
from gerd.errors import GerdError
from gerd.storage.manifest import MANIFEST, Entry
from gerd.storage.places import Folder
from gerd.storage.work import Job, Progress, finish_shards
from gerd.version import __version__

if TYPE_CHECKING:
    from ray import ObjectRef

    Task = ObjectRef[tuple[float, list[Entry]]]  # stands for what `_finish_range` returns

TASK_SECONDS = 2.0  # how long a worker should be busy with one range
RETRIES = 5  # of a range whose worker or machine has died
TIMEOUT = 10.0  # seconds to reach the cluster
PATIENCE = 30.0  # seconds without a single worker in the cluster
CONTINUES = "finished shards are kept, and the same command continues"


def finish_on_ray(
    job: Job,
    numbers: Sequence[int],
    device: str | None,
    workers: int | None,
    progress: Progress,
    task_seconds: float = TASK_SECONDS,
) -> Iterator[Entry]:
    """Finish the shards `numbers` on the connected cluster, with its GPUs if it has any and `device` is not cpu.

    A worker should be busy for `task_seconds` with one range; `progress` is called once for each range.
    """
    import ray

    if isinstance(job.place, Folder):
        job = replace(job, place=Folder(job.place.path.resolve()))  # workers run in other folders
    elif str(job.place).startswith("memory:"):
        raise GerdError(f"{job.place}: lives in the memory of one process, which a cluster cannot write to")
    resource, device = choose_device(ray.cluster_resources(), device)
    pickled = ray.put(pickle.dumps(replace(job, device=device)))
    each = {"num_cpus": int(resource == "CPU"), "num_gpus": int(resource == "GPU")}
    task = ray.remote(_finish_range).options(max_retries=RETRIES, **each)
    waiting = deque(numbers)
    flying: dict[Task, list[int]] = {}
    size = 1
    # When this ends early, ranges are under way: they end with the connection, or make whole shards. (To cancel them
    # would crash Ray 2.60 now and then.)
    while waiting or flying:
        slots = int(ray.cluster_resources().get(resource, 0))
        while waiting and len(flying) < (workers or 2 * max(1, slots)):
            handed_out = [waiting.popleft() for _ in range(min(size, len(waiting)))]
            flying[task.remote(pickled, job.config.origin.trust, handed_out)] = handed_out
        done = _first_done(ray, list(flying), job)
        if not done and not ray.cluster_resources().get(resource, 0):
            raise GerdError(f"{job.place}: the cluster has no {resource} left; {CONTINUES}")
        for finished in done:
            made = flying.pop(finished)
            seconds, entries = _result(ray, finished, job, made)
            fair = max(1, len(waiting) // (2 * max(1, slots)))  # so that no worker is left with a long last range
            size = min(fair, max(1, int(task_seconds * len(made) / max(seconds, 1e-3))))
            progress(sum(len(entry.recordings) for entry in entries))
            yield from entries


class _Nothing(list[str]):
    """The folders from which Ray's workers import besides their own, and to which nothing can be added.

    Ray adds the folder that the command runs in, and has no option against it that leaves its workers as they are.
    """

    def extend(self, folders: Iterable[str]) -> None:
        pass


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """While connected to the cluster at `address`, or to the one that the caller is connected to already."""
    try:
        import ray
    except ImportError:
        raise GerdError("engine ray: Ray is not installed: pip install 'gerd-events[cluster]'") from None
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "auto"
    try:
        host_and_port = re.fullmatch(r"(?:ray://)?\[?([^\]]+?)\]?:(\d+)", address)
        if host_and_port:  # Ray itself would try for ever
            socket.create_connection((host_and_port[1], int(host_and_port[2])), timeout=TIMEOUT).close()
        job = ray.job_config.JobConfig()
        job._py_driver_sys_path = _Nothing()
        ray.init(address=address, job_config=job, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray's own errors, gRPC's, a bad address
        start = "start one with `ray start --head`, or name one with --address HOST:PORT"
        reason = str(error).strip().partition("\n")[0]
        raise GerdError(f"engine ray: there is no cluster at {address} ({reason}); {start}") from None
    try:
        yield
    finally:
        ray.shutdown()


def choose_device(resources: Mapping[str, float], device: str | None) -> tuple[str, str]:
    """The resource of the cluster that each worker takes one of, and the device on which it computes."""
    wanted = {None: "GPU" if resources.get("GPU", 0) >= 1 else "CPU", "cpu": "CPU", "cuda": "GPU"}
    if device not in wanted:
        raise GerdError(f"device {device!r}: allowed with the engine ray: cpu, cuda; each worker has one GPU")
    resource = wanted[device]
    if resources.get(resource, 0) < 1:
        raise GerdError(f"engine ray: the cluster has no {resource}")
    return resource, "cuda" if resource == "GPU" else "cpu"


def _first_done(ray: ModuleType, flying: list[Task], job: Job) -> list[Task]:
    """The first task that is done, or none after PATIENCE; an error if the head of the cluster is gone.

    Ray itself would wait for the head for a minute, and then end the process with words of its own.
    """
    address = ray.get_runtime_context().gcs_address
    host, _, port = address.rpartition(":")
    for _ in range(int(PATIENCE)):
        done, _ = ray.wait(flying, num_returns=1, timeout=1.0)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT).close()
        except OSError:
            raise GerdError(f"{job.place}: the head of the cluster, {address}, does not answer; {CONTINUES}") from None
        if done:
            break
    return done


def _result(ray: ModuleType, finished: Task, job: Job, numbers: list[int]) -> tuple[float, list[Entry]]:
    """What a task has returned; a user's mistake is raised here as it was there."""
    try:
        return ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, GerdError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        first = job.manifest.rows(numbers[0])[0]
        last = job.manifest.rows(numbers[-1])[-1]
        reason = str(error).strip().partition("\n")[0]
        tried = f"tried {RETRIES + 1} times"
        raise GerdError(f"{job.place}: rows {first} to {last}, {tried}: {reason}; {CONTINUES}") from None


def _finish_range(pickled: bytes, trusted: str | None, numbers: list[int]) -> tuple[float, list[Entry]]:
    """In a worker: finish some shards; how many seconds that took, and their entries."""
    begun = time.perf_counter()
    import_from(trusted)
    job = _unpickled(pickled)
    worker = f"{socket.gethostname()}: this worker of the cluster"
    version = job.manifest.gerd_version
    if version != __version__:
        raise GerdError(f"{worker} has gerd {__version__}, and the command {version}; install one of them on both")
    if isinstance(job.place, Folder) and not Path(job.place.at(MANIFEST)).exists():
        raise GerdError(f"{worker} does not see {job.place.at(MANIFEST)}; all machines must share the folder")
    entries = list(finish_shards(job, numbers, lambda made: None))
    return time.perf_counter() - begun, entries


@lru_cache(maxsize=2)
def _unpickled(pickled: bytes) -> Job:
    return pickle.loads(pickled)

"""Shards made by several processes of this machine.

A `Job` and the numbers of its shards go in, their entries in the manifest come out. The processes end with this one,
whatever ends it; Ctrl-C reaches this one only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING

from gerd.config.sweep import member
from gerd.config.trust import import_from
from gerd.errors import GerdError
from gerd.events.backends import needs_compiling, run
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.storage.manifest import Entry
from gerd.storage.work import Job, Progress, finish_shards
from gerd.surroundings import environment, ignore_settings, safe_path

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.sharedctypes import Synchronized

LONGEST_SHARE = 8  # shards that a worker makes without saying so


def finish_in_processes(job: Job, numbers: Sequence[int], workers: int, progress: Progress) -> Iterator[Entry]:
    """Finish the shards `numbers`; with one worker, in this process."""
    if workers == 1:
        yield from finish_shards(job, numbers, progress)
        return
    if job.device == "cpu" and needs_compiling(scenes := draw(plan_of(member(job.config, 0)), [0])):
        run(scenes)  # compiles once and not in each worker, and says so
    context = multiprocessing.get_context("spawn")
    with safe_path():
        counter = context.Value("q", 0)  # starts a process that tidies up
    alive, hold = context.Pipe(duplex=False)  # workers see its end when this process lets go of it or dies
    pool = ProcessPoolExecutor(workers, context, _start_worker, (counter, alive, job.config.origin.trust))
    threads = os.environ.get("OMP_NUM_THREADS", "1")  # of each library: there is a worker for each core
    seen = 0
    try:
        with starting_workers(), environment(OMP_NUM_THREADS=threads):
            waiting: set[Future[list[Entry]]] = {pool.submit(_finish, job, some) for some in _shares(numbers, workers)}
        while waiting:
            done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            progress(counter.value - seen)
            seen = counter.value
            for finished in done:
                yield from finished.result()
    except BrokenProcessPool:
        _kill(pool)
        raise GerdError(
            f"{job.place}: a worker process died, perhaps for lack of memory; finished shards are kept, and the same "
            "command continues"
        ) from None
    except BaseException:
        _kill(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        hold.close()
        alive.close()


def _shares(numbers: Sequence[int], workers: int) -> Iterator[Sequence[int]]:
    """The shards that a worker makes at a time: ever fewer, so that at the end none waits long for another."""
    while numbers:
        size = min(LONGEST_SHARE, max(1, len(numbers) // (3 * workers)))
        yield numbers[:size]
        numbers = numbers[size:]


def _kill(pool: ProcessPoolExecutor) -> None:
    """End the workers at once, even those that are stopped: a shard is either whole or not there."""
    for process in list((pool._processes or {}).values()):
        process.kill()


@contextmanager
def starting_workers() -> Iterator[None]:
    """While workers start: they run neither the user's script nor what lies in the folder, and Ctrl-C waits."""
    main = sys.modules["__main__"]
    pressed = []
    ours = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda *_: pressed.append(True)) if ours else None
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()  # what the workers inherit
    sys.modules["__main__"] = ModuleType("__main__")  # else the workers run the script: multiprocessing has no option
    try:
        with safe_path():
            yield
    finally:
        sys.modules["__main__"] = main
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if pressed and callable(handler):
        handler(signal.SIGINT, None)


_counter: Synchronized[int]  # recordings made by all workers together; set in a worker when it starts


def _start_worker(counter: Synchronized[int], alive: Connection, trusted: str | None) -> None:
    """Prepare a process that has just started: its imports, the common counter, and its end with the one above."""
    global _counter
    ignore_settings()
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    import_from(trusted)
    _counter = counter


def _end_with(alive: Connection) -> None:
    """End this worker when the process that started it has let go of the other end of the pipe, or is gone."""
    with suppress(EOFError, OSError):
        alive.recv_bytes()
    os._exit(1)


def _count(made: int) -> None:
    with _counter.get_lock():
        _counter.value += made


def _finish(job: Job, numbers: Sequence[int]) -> list[Entry]:
    return list(finish_shards(job, numbers, _count))

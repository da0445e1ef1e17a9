"""From a config to a dataset on disk: its rate against the bare kernel's, bytes per event, and memory.

    python benchmarks/to_disk.py [--count N] [--rounds N] [--json FILE]

The bare kernel is what makes the events, without ground truth, digests and files, in a process for each core.
`gerd.generate` runs as it does by default. Its processes take a while to start, which counts the less the more they
make: the steady rate is that of the recordings beyond the first quarter, from two runs. All take turns, and of each the
best round counts. On a machine that others use, too, compare the processor time.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import gerd
from gerd.config.config import Config
from gerd.events.backends import run
from gerd.events.shared import Chunk
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.storage.manifest import SHARD_SIZE

CONFIG = Path(__file__).parent.parent / "configs" / "bouncing.yaml"


load = functools.cache(gerd.load)


def kernel_only(begin: int) -> tuple[int, float]:
    """The events of one shard's worth of recordings, made and thrown away: how many, and seconds of the processor."""
    began = time.process_time()
    scenes = draw(plan_of(load(CONFIG)), range(begin, begin + SHARD_SIZE))
    parts: list[Chunk] = list(run(scenes))
    return sum(len(part.keys) for part in parts), time.process_time() - began


def kernel_seconds(count: int, workers: int) -> tuple[float, float, int]:
    """Seconds to make the events of `count` recordings, those of the processor, and how many events there are."""
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(kernel_only, range(0, workers * SHARD_SIZE, SHARD_SIZE)))  # imports and compiles
        begun = time.perf_counter()
        made = list(pool.map(kernel_only, range(0, count, SHARD_SIZE)))
        taken = time.perf_counter() - begun
    return taken, sum(used for _, used in made), sum(events for events, _ in made)


def generate_seconds(config: Config, folder: Path, count: int) -> tuple[float, float, int]:
    """Seconds to make a dataset, those of the processor, and the bytes that it has."""
    begun, used = time.perf_counter(), processor_seconds()
    gerd.generate(config, folder, count)
    taken, used = time.perf_counter() - begun, processor_seconds() - used
    size = sum(file.stat().st_size for file in folder.iterdir())
    shutil.rmtree(folder)
    return taken, used, size


def processor_seconds() -> float:
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    config, workers = gerd.load(CONFIG), len(os.sched_getaffinity(0))
    counts = (chosen.count // 4, chosen.count)
    folder = Path(tempfile.mkdtemp(prefix="gerd-bench-"))
    memory = []  # the largest of all child processes so far: no others may come before
    rounds = []
    try:
        generate_seconds(config, folder / "warm", SHARD_SIZE * workers)
        for _ in range(chosen.rounds):
            made = []
            for count in counts:
                made.append(generate_seconds(config, folder / "data", count))
                memory.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
            rounds.append([*made, kernel_seconds(chosen.count, workers)])
    finally:
        shutil.rmtree(folder)
    (quarter_s, quarter_used, _), (all_s, all_used, size), (kernel_s, needed, events) = (
        [min(numbers) for numbers in zip(*of_rounds, strict=True)] for of_rounds in zip(*rounds, strict=True)
    )
    kernel, rate, steady = chosen.count / kernel_s, chosen.count / all_s, (counts[1] - counts[0]) / (all_s - quarter_s)
    steady_used = (all_used - quarter_used) / (1 - counts[0] / counts[1])
    result = {
        "kernel_per_s": kernel,
        "generate_per_s": rate,
        "share": rate / kernel,
        "share_of_processor_time": needed / all_used,
        "steady_per_s": steady,
        "steady_share": steady / kernel,
        "steady_share_of_processor_time": needed / steady_used,
        "bytes_per_event": size / events,
        "worker_memory_mb": memory[:2],
    }
    print("\n| what | measured |\n| --- | --- |")
    print(f"| bare kernel, {workers} processes | {kernel:,.0f} recordings/s |")
    for what, per_s, used in (("start-up included", rate, all_used), ("steady", steady, steady_used)):
        print(f"| gerd generate, {what} | {per_s:,.0f} recordings/s = {per_s / kernel:.0%} |")
        print(f"| the kernel's share of the processor time of generate, {what} | {needed / used:.0%} |")
    print(f"| on disk, ground truth included | {size / events:.2f} bytes per event |")
    print(f"| largest worker at {counts[0]} and {counts[1]} recordings | {memory[0]:.0f} and {memory[1]:.0f} MB |")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

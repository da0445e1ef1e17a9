"""What a cluster costs and what one machine gives: the figures that docs/cluster.md extrapolates from.

    python benchmarks/cluster.py [--seconds S] [--json FILE] [--folder FOLDER] [--device cuda]

One core: recordings per second of its time, from a config to a shard on the disk, for three sizes of recordings; with
`--device cuda` the same for a GPU and the core beside it, by the clock. One disk: shards written and synced, and read
and compared with their checksums, in FOLDER. Ray, if it is installed: a cluster of one-core nodes is started on this
machine; scheduling is the time in which a worker is not busy although there is work, from the first result to the
last. It is the share that counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import gerd
from gerd.config.config import Config
from gerd.storage import ray_workers as engine
from gerd.storage.generate import generate
from gerd.storage.manifest import SHARD_SIZE, new_manifest
from gerd.storage.places import Folder
from gerd.storage.work import Job, made_shard


def case(width: int, height: int, steps: int, shapes: tuple[str, ...]) -> Config:
    actors = [
        {
            "shape": shape,
            "translation": {"start": "uniform", "velocity": {"uniform": [-0.5, 0.5]}, "acceleration": 0},
            "scale": {"start": min(width, height) / 5, "velocity": 0.1, "acceleration": 0},
        }
        for shape in shapes
    ]
    fields = {"sensor": {"width": width, "height": height}, "steps": steps, "noise": {"background": 0.001}}
    return Config.model_validate({**fields, "actors": actors})


THREE = ("circle", "square", "triangle")
CASES = {
    "64×64, 60 steps, one shape": case(64, 64, 60, ("square",)),
    "300×300, 128 steps, three shapes": case(300, 300, 128, THREE),
    "1280×720, 128 steps, three shapes": case(1280, 720, 128, THREE),
}


def seconds_each(work: Callable[[int], object], limit: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median time of one call, of as many as fit into the limit and at least three."""
    work(0)
    taken: list[float] = []
    while len(taken) < 3 or sum(taken) < limit:
        begun = clock()
        work(len(taken) + 1)
        taken.append(clock() - begun)
    return statistics.median(taken)


def one_worker(config: Config, folder: Path, limit: float, device: str) -> dict[str, float]:
    """A core or a GPU that makes shard after shard."""
    job = Job(config, Folder(folder), new_manifest(config, 10**9), device)
    clock = time.process_time if device == "cpu" else time.perf_counter

    def work(number: int) -> None:
        entry, data = made_shard(job, number % 8, lambda made: None)
        job.place.write(entry.file, data)

    taken = seconds_each(work, limit, clock)
    size = (folder / "shard-000000.safetensors").stat().st_size
    return {"recordings_per_s": SHARD_SIZE / taken, "bytes": size / SHARD_SIZE}


def one_disk(config: Config, folder: Path, limit: float) -> dict[str, float]:
    """Bytes per second: written and synced, and read with every checksum compared."""
    data = generate(config, folder / "read", 8 * SHARD_SIZE)
    content = (folder / "read" / "shard-000000.safetensors").read_bytes()
    written = len(content) / seconds_each(lambda number: Folder(folder).write(f"file-{number % 8}", content), limit)
    sizes = [file.stat().st_size for file in (folder / "read").glob("shard-*")]
    read = sum(sizes) / len(data) / seconds_each(lambda number: data[number * 67 % len(data)], limit)
    begun = time.perf_counter()
    recordings = sum(looked_at for looked_at, _ in gerd.verify(folder / "read"))
    return {
        "written_per_s": written,
        "read_per_s": read,
        "verified_per_s": recordings / (time.perf_counter() - begun),
    }


def on_ray(config: Config, folder: Path, shards: int, nodes: int) -> dict[str, float]:
    """Start-up, and the share of the workers' time that goes into scheduling after it."""
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    results: list[tuple[float, float, int]] = []  # when it came, how long the worker was busy, shards
    get = engine._result

    def result(*arguments: Any) -> Any:
        seconds, entries = get(*arguments)
        results.append((time.perf_counter(), seconds, len(entries)))
        return seconds, entries

    try:
        for _ in range(nodes - 1):
            cluster.add_node(**node)
        cluster.wait_for_nodes()
        engine._result = result
        begun = time.perf_counter()
        generate(config, folder / "ray", shards * SHARD_SIZE, engine="ray", address=cluster.address, device="cpu")
        whole = time.perf_counter() - begun
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        nothing = ray.remote(max_retries=0)(lambda: None)
        ray.get([nothing.remote() for _ in range(20)])
        empty = seconds_each(lambda _: ray.get(nothing.remote()), 2.0)
    finally:
        engine._result = get
        ray.shutdown()
        cluster.shutdown()
    # After each worker has returned its first range, all of them are up.
    first, last = results[nodes - 1][0], results[-1][0]
    busy = sum(min(seconds, end - first) for end, seconds, _ in results[nodes:])
    return {
        "whole_s": whole,
        "start_s": results[0][0] - begun - results[0][1],
        "ranges": len(results),
        "range_s": busy / max(1, len(results) - nodes),
        "share": 1 - busy / (nodes * (last - first)),
        "empty_task_s": empty,
        "recordings_per_s": sum(n for _, _, n in results[nodes:]) * SHARD_SIZE / (last - first),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each figure of one core and one disk")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; a temporary one unless told")
    parser.add_argument("--shards", type=int, default=600, help="of the small case, on Ray")
    parser.add_argument("--nodes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gerd-bench-", dir=chosen.folder))
    result: dict[str, Any] = {}
    try:
        print("\n| what | measured |\n| --- | --- |")
        for name, config in CASES.items():
            (folder / "one").mkdir(exist_ok=True)
            found = result[name] = one_worker(config, folder / "one", chosen.seconds, chosen.device)
            rate = f"{found['recordings_per_s']:.3g} recordings/s"
            print(f"| one {chosen.device} worker, {name} | {rate}, {found['bytes'] / 1000:.0f} kB each |", flush=True)
        disk = result["disk"] = one_disk(CASES["300×300, 128 steps, three shapes"], folder / "disk", chosen.seconds)
        print(f"| shards written and synced | {disk['written_per_s'] / 1e6:.0f} MB/s |")
        print(f"| recordings read in any order, checksums compared | {disk['read_per_s'] / 1e6:.0f} MB/s |")
        print(f"| gerd verify | {disk['verified_per_s']:.3g} recordings/s |", flush=True)
        try:
            import ray  # noqa: F401
        except ImportError:
            print("| Ray | not installed |")
            return
        cost = result["ray"] = on_ray(next(iter(CASES.values())), folder, chosen.shards, chosen.nodes)
        print(f"| Ray, {chosen.nodes} workers, until the first starts | {cost['start_s']:.1f} s |")
        print(f"| Ray, a task that does nothing | {cost['empty_task_s'] * 1000:.2f} ms |")
        print(f"| Ray, {cost['ranges']} ranges | {cost['range_s']:.2f} s each, {cost['share']:.1%} for scheduling |")
        print(f"| Ray, {chosen.nodes} workers, the smallest recordings | {cost['recordings_per_s']:.3g} recordings/s |")
    finally:
        shutil.rmtree(folder)
        if chosen.json:
            chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

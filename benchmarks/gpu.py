"""On a GPU: a batch of recordings from the config to frames on the device, against a plain memset of the same frames.

    python benchmarks/gpu.py [--batch N] [--json FILE] [--to FOLDER --count N]

The scene is the three-shape case of `against_original.py`, at random places, background noise 0.001. Kernel times are
the device's own (from PyTorch's profiler): of each kernel, and of all together, the time in which at least one of them
or a fill is running. Whole times are the clock's; medians, per recording. With --to, `gerd.generate` writes datasets of
N / 4 and of N recordings there, in a RAM disk if that is to be no limit; the difference of both is without the start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import gerd
from gerd.scene.scenes import Scenes

IN_A_ROW = 6  # batches
KERNELS = ("clear", "place", "spans", "mark", "signal", "count", "scatter")
TEXT = """
sensor: {width: 300, height: 300}
steps: 128
noise: {background: 0.001}
actors:
""" + "".join(
    f"""
  - shape: {shape}
    translation: {{start: uniform, velocity: {{uniform: [-0.5, 0.5]}}, acceleration: 0}}
    scale: {{start: 60, velocity: 0.1, acceleration: 0}}
"""
    for shape in ("circle", "square", "triangle")
)


def seconds(work: Callable[[], object], repeats: int = 7) -> float:
    work()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def device_seconds(work: Callable[[], object], repeats: int = 5) -> dict[str, float]:
    """Time on the device: of each of our kernels, and in which anything but a copy runs."""
    work()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(repeats):
            work()
        torch.cuda.synchronize()
    on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    ranges = sorted((e.time_range.start, e.time_range.end, e.name) for e in on_device if "Memcpy" not in e.name)
    times, until = dict.fromkeys(KERNELS, 0.0), 0.0
    busy = 0.0
    for begin, end, name in ranges:
        if name in times:
            times[name] += (end - begin) / repeats / 1e6
        busy += max(0.0, end - max(begin, until)) / repeats / 1e6
        until = max(until, end)
    if not all(times.values()):
        raise SystemExit(f"a kernel was not seen: {times}")
    return {**{f"kernel {name}": taken for name, taken in times.items()}, "all kernels": busy}


def in_a_row(config: gerd.Config, batch: int) -> None:
    """Several batches, each begun while the device still works on the one before."""
    from gerd.events import backends

    for first in range(0, IN_A_ROW * batch, batch):
        backends.frames(drawn(config, batch, first), "cuda")


def drawn(config: gerd.Config, batch: int, first: int = 0) -> Scenes:
    from gerd.plan.make import plan_of
    from gerd.scene.draw import draw

    return draw(plan_of(config), range(first, first + batch))


def to_disk(folder: Path, count: int) -> None:
    """Print how fast recordings come from the config to shards."""
    config, taken, size = gerd.parse(TEXT), [], 0
    for number in (count // 4, count):
        out = folder / f"gerd-bench-{number}"
        try:
            begun = time.perf_counter()
            gerd.generate(config, out, number, device="cuda")
            taken.append(time.perf_counter() - begun)
            size = sum(file.stat().st_size for file in out.iterdir())
        finally:
            shutil.rmtree(out, ignore_errors=True)
    rate, whole = (count - count // 4) / (taken[1] - taken[0]), count / taken[1]
    print(f"\ngerd generate --device cuda: {rate:,.0f} recordings/s, {rate * size / count / 1e6:,.0f} MB/s")
    print(f"with the start of its processes: {whole:,.0f} recordings/s of {count:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--to", type=Path)
    parser.add_argument("--count", type=int, default=40_000)
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: benchmarks/gpu.py has nothing to measure")
        return
    from gerd.events import backends

    config, batch = gerd.parse(TEXT), chosen.batch
    scenes = drawn(config, batch)
    plain = torch.empty((batch, 128, 2, 300, 300), dtype=torch.bool, device="cuda")
    memset = seconds(plain.zero_) / batch
    del plain
    times = {
        "memset of the same frames": memset,
        **{name: taken / batch for name, taken in device_seconds(lambda: backends.frames(scenes, "cuda")).items()},
        "config to frames on the device": seconds(lambda: backends.frames(drawn(config, batch), "cuda")) / batch,
        "the same, batch after batch": seconds(lambda: in_a_row(config, batch), 3) / (IN_A_ROW * batch),
        "config to events on the host": seconds(lambda: list(backends.run(drawn(config, batch), device="cuda")), 3)
        / batch,
    }
    print(f"\n| {torch.cuda.get_device_name()}, batch {batch} | µs per recording | × memset |\n| --- | --- | --- |")
    for name, taken in times.items():
        print(f"| {name} | {taken * 1e6:.1f} | {taken / memset:.1f} |")
    if chosen.json:
        chosen.json.write_text(json.dumps(times, indent=1) + "\n")
    if chosen.to:
        torch.cuda.empty_cache()  # the processes that share the GPU need it
        to_disk(chosen.to, chosen.count)


if __name__ == "__main__":
    main()

"""Small recordings, one by one and in batches: how many times as long they take as the machine code that they run.

    python benchmarks/small.py [--rounds N] [--json FILE]

One square of 64×64 pixels and 60 steps, of a config that is parsed. The machine code alone is the kernel of the `cpu`
backend; the rest is to draw scenes, to work out motion and outlines, and to make `Recording`s. Times are those of the
processor, the least of many rounds in which both take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from against_original import CASES

import gerd
from gerd.events.cpu.run import kernels

CONFIG = CASES["one square"]
BATCHES = (1, 16, 64)


class Clock:
    """The seconds that a function takes each time, added up."""

    def __init__(self, timed: Callable[[Any], int]):
        self.timed = timed
        self.seconds = 0.0

    def __call__(self, memory: Any) -> int:
        begun = time.thread_time()
        status = self.timed(memory)
        self.seconds += time.thread_time() - begun
        return status


def seconds(batch: int) -> float:
    """Of the processor, to make a batch."""
    begun = time.thread_time()
    made = [gerd.simulate(CONFIG, 0)] if batch == 1 else gerd.simulate_batch(CONFIG, range(batch))
    return (time.thread_time() - begun) / len(made)


def kernel_seconds(batch: int) -> float:
    """The part of them that the machine code takes."""
    kernel = kernels("cpu.steps").simulate_steps
    loaded = dict(kernel.loaded)
    clocks = {kinds: Clock(entry) for kinds, entry in loaded.items()}
    kernel.loaded.update(clocks)
    seconds(batch)
    kernel.loaded.update(loaded)
    return sum(clock.seconds for clock in clocks.values()) / batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    seconds(1)  # loads the machine code
    result = {}
    for batch in BATCHES:
        rounds = [(seconds(batch), kernel_seconds(batch)) for _ in range(chosen.rounds)]
        whole, kernel = (min(times) for times in zip(*rounds, strict=True))
        result[str(batch)] = {"ms": whole * 1e3, "kernel_ms": kernel * 1e3, "ratio": whole / kernel}
    print("\n| recordings at once | each | machine code alone | ratio |\n| --- | --- | --- | --- |")
    for name, found in result.items():
        print(f"| {name} | {found['ms']:.3f} ms | {found['kernel_ms']:.3f} ms | {found['ratio']:.2f} × |")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

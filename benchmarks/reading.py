"""Recordings and windows of them from disk, in any order.

    python benchmarks/reading.py [--count N] [--json FILE]

The file is in the system's cache; one process, one thread. The ground truth of a recording is unpacked when it is first
asked for, so recordings are measured with and without it. Times are those of the best of several rounds for each call,
as multiples of the time of a recording whose ground truth nobody asks for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from against_original import CASES

import gerd
from gerd.config.config import Config
from gerd.storage.manifest import shard_name
from gerd.storage.tensors import hash_of

ROUNDS = 25
WINDOW = 10  # steps


def rates(readers: dict[str, Callable[[int], Any]], count: int) -> dict[str, float]:
    """Calls per second of each, with the numbers below `count` in a random order; of each call its best round."""
    order = np.random.default_rng(0).permutation(count).tolist()
    taken = {name: np.full(count, np.inf) for name in readers}
    for _ in range(ROUNDS):
        for name, read in readers.items():
            for number in order:
                begun = time.perf_counter()
                read(number)
                taken[name][number] = min(taken[name][number], time.perf_counter() - begun)
    return {name: count / float(times.sum()) for name, times in taken.items()}


def measured(config: Config, count: int, folder: Path) -> dict[str, Any]:
    """The size of a file of so many recordings, and how many of them are read per second."""
    data = gerd.generate(config, folder / "data", count, workers=1)
    start = [int(at) for at in np.random.default_rng(1).integers(0, config.steps - WINDOW, count)]
    content = memoryview((folder / "data" / shard_name(0)).read_bytes())
    each = len(content) // count
    found = rates(
        {
            "whole": lambda row: data[row],
            "with truth": lambda row: data[row].truth,
            "window": lambda row: data.window(row, start[row], start[row] + WINDOW),
            "checksums": lambda row: hash_of(content[row * each : (row + 1) * each]),
        },
        count,
    )
    return {
        "bytes per event": len(content) / sum(map(len, data)),
        "recordings per second": found["whole"],
        "recording with its ground truth, time": found["whole"] / found["with truth"],
        f"window of {WINDOW} steps, time": found["whole"] / found["window"],
        "its checksums alone, time": found["whole"] / found["checksums"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=64, help="recordings, at most 64")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    bouncing = gerd.load(Path(__file__).parent.parent / "configs" / "bouncing.yaml")
    cases = {"three shapes, 300×300": CASES["three shapes"], "configs/bouncing.yaml": bouncing}
    result = {}
    for case, config in cases.items():
        folder = Path(tempfile.mkdtemp(prefix="gerd-bench-"))
        try:
            result[case] = measured(config, min(chosen.count, 64), folder)
        finally:
            shutil.rmtree(folder)
    print(f"\n| | {' | '.join(cases)} |\n| --- {'| --- ' * len(cases)}|")
    for name in result["configs/bouncing.yaml"]:
        print(f"| {name} | {' | '.join(f'{found[name]:,.3g}' for found in result.values())} |")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How the cost of a recording grows: with upsampling, resolution, steps, actors and noise, on one CPU core.

    python benchmarks/growth.py [--json FILE]

Every row is a ratio to the first row of its group, measured in turns in one run (the least CPU time of several), so
that the machine's mood cancels. Resolution is grown at a fixed number of signal events: the same square in an ever
larger frame. Actors overlap, each shifted by 4 pixels.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import torch

import gerd
from gerd.config.config import Config

REPEATS = 9
BATCH = 8


def config(**changes: Any) -> Config:
    side, actors = changes.pop("side", 128), changes.pop("actors", 1)
    fields = {
        "sensor": {"width": side, "height": side},
        "steps": 60,
        "actors": [
            {
                "shape": "square",
                "translation": {"start": [40 + 4 * k, 40 + 4 * k], "velocity": [0.5, 0.3], "acceleration": 0},
                "scale": {"start": 30, "acceleration": 0},
                "rotation": {"velocity": 1, "acceleration": 0},
            }
            for k in range(actors)
        ],
        **changes,
    }
    return Config.model_validate(fields)


GROUPS: dict[str, dict[str, Config]] = {
    "upsampling": {str(f): config(upsampling=f) for f in (2, 4, 8, 16, 32)},
    "resolution": {f"{side}×{side}": config(side=side) for side in (128, 256, 512, 1024, 2048)},
    "steps": {str(steps): config(steps=steps) for steps in (60, 120, 240, 480)},
    "actors": {str(actors): config(actors=actors) for actors in (1, 2, 4, 8)},
    "background": {f"{p:g}": config(noise={"background": p}) for p in (0.0, 0.0001, 0.001, 0.01, 0.1)},
}


def seconds(group: dict[str, Config]) -> dict[str, float]:
    """The least CPU seconds per recording of each config, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in group}
    for chosen in group.values():
        gerd.simulate_batch(chosen, range(BATCH))
    for repeat in range(REPEATS):
        for name, chosen in group.items():
            begun = time.process_time()
            gerd.simulate_batch(chosen, range(repeat * BATCH, (repeat + 1) * BATCH))
            taken[name].append((time.process_time() - begun) / BATCH)
    return {name: min(values) for name, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    print("\n| grows | value | ms per recording | ratio |\n| --- | --- | --- | --- |")
    for name, group in GROUPS.items():
        found = seconds(group)
        first = next(iter(found.values()))
        results[name] = found
        for value, taken in found.items():
            print(f"| {name} | {value} | {taken * 1e3:.3g} | {taken / first:.2f} × |")
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How the cost of a recording grows: with upsampling, resolution, steps, actors, sides and noise, on one CPU core.

    python benchmarks/growth.py [--json FILE]

Every row is a ratio to the first row of its group, measured in turns in one run (the least CPU time of several), so
that the machine's mood cancels. Resolution is grown at a fixed number of signal events: the same square in an ever
larger frame. Actors overlap, each shifted by 4 pixels. The outlines with more and more sides are a star with ever more
vertices on its sides; their times are per event, as are those of a square, a letter and forty disks of 124 sides.
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

import numpy as np
import torch

import gerd
from gerd.config.config import Config

REPEATS = 9
BATCH = 8


def config(**changes: Any) -> Config:
    side, actors = changes.pop("side", 128), changes.pop("actors", 1)
    shape, scale = changes.pop("shape", "square"), changes.pop("scale", {"start": 30, "acceleration": 0})
    fields = {
        "sensor": {"width": side, "height": side},
        "steps": 60,
        "actors": [
            {
                "shape": shape,
                "translation": {"start": [40 + 4 * k, 40 + 4 * k], "velocity": [0.5, 0.3], "acceleration": 0},
                "scale": scale,
                "rotation": {"velocity": 1, "acceleration": 0},
            }
            for k in range(actors)
        ],
        **changes,
    }
    return Config.model_validate(fields)


def star(sides: int) -> dict[str, Any]:
    """A star of ten sides, each of which is cut into equal parts."""
    angles = np.arange(11) * np.pi / 5
    corners = np.where(np.arange(11) % 2, 0.2, 0.5)[:, None] * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    at = np.arange(sides) * 10 / sides
    ring = [np.interp(at, np.arange(11), corners[:, axis]) for axis in range(2)]
    return {"polygon": np.stack(ring, axis=1).tolist()}


def disks() -> dict[str, Any]:
    """Forty disks in seven rows, each a polygon of 124 sides."""
    angles = np.arange(124) * np.pi / 62
    disk = 0.06 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centres = [np.array([k % 6 / 6 - 0.42, k // 6 / 7 - 0.43]) for k in range(40)]
    return {"polygon": [(disk + centre).tolist() for centre in centres]}


def outlines(timing: str) -> dict[str, Config]:
    shapes = {"10 (star)": star(10), "4 (square)": "square", **{str(n): star(n) for n in (60, 500, 4100)}}
    shapes |= {"455 (the letter &)": {"text": "&"}, "4960 (disks)": disks()}
    scale = {"start": 60, "acceleration": 0}
    return {name: config(shape=shape, side=256, timing=timing, scale=scale) for name, shape in shapes.items()}


GROUPS: dict[str, dict[str, Config]] = {
    "upsampling": {str(f): config(upsampling=f) for f in (2, 4, 8, 16, 32, 64, 128, 256)},
    "resolution": {f"{side}×{side}": config(side=side) for side in (128, 256, 512, 1024, 2048)},
    "steps": {str(steps): config(steps=steps) for steps in (60, 120, 240, 480)},
    "actors": {str(actors): config(actors=actors) for actors in (1, 2, 4, 8)},
    "sides, per event": outlines("step"),
    "sides, per event in exact timing": outlines("exact"),
    "background": {f"{p:g}": config(noise={"background": p}) for p in (0.0, 0.0001, 0.001, 0.01, 0.1)},
}


def seconds(group: dict[str, Config], per_event: bool) -> dict[str, float]:
    """The least CPU seconds per recording, or per event, of each config, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in group}
    parts = dict.fromkeys(group, 1.0)
    for name, chosen in group.items():
        made = gerd.simulate_batch(chosen, range(BATCH))
        if per_event:
            parts[name] = sum(map(len, made)) / BATCH
    for repeat in range(REPEATS):
        for name, chosen in group.items():
            begun = time.process_time()
            gerd.simulate_batch(chosen, range(repeat * BATCH, (repeat + 1) * BATCH))
            taken[name].append((time.process_time() - begun) / BATCH)
    return {name: min(values) / parts[name] for name, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    print("\n| grows | value | ms per recording, or µs per event | ratio |\n| --- | --- | --- | --- |")
    for name, group in GROUPS.items():
        per_event = "per event" in name
        found = seconds(group, per_event)
        first = next(iter(found.values()))
        results[name] = found
        for value, taken in found.items():
            print(f"| {name} | {value} | {taken * (1e6 if per_event else 1e3):.3g} | {taken / first:.2f} × |")
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Labels that are rendered: milliseconds of CPU time per item, for masks, flow and the causes of events, in one run.

    python benchmarks/labels.py [--items N] [--json FILE]

An item is a window of 40 steps of a recording of three shapes, 128×128 pixels, as `Dataset` gives it. What a label
costs is the time of an item with it, less that of the same item without a label. For comparison, masks and flow are
worked out by the dense definition, too, as they were before there were kernels for them: for each actor a picture of
the whole frame, from all sub-rows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import torch
from gpu import TEXT as THREE_SHAPES

import gerd
from gerd.events import definition
from gerd.geometry.trajectory import Trajectory
from gerd.recording.recording import Recording
from gerd.scene.scenes import INTENSITY_ONE

STEPS = 40
LABELS = ("masks", "flow", "masks_with_edges", "flow_with_edges", "images")
PER_EVENT = ("actor", "event_flow", "echo")


def dense_masks(recording: Recording) -> np.ndarray:
    """(steps, actors, height, width), by the definition: the picture of each actor with all others black."""
    steps, shown = recording.steps, recording.shown
    result = np.empty((steps, recording.actors, recording.height, recording.width), np.bool_)
    for actor in range(recording.actors):
        intensity = np.zeros((steps, recording.actors), np.int32)
        intensity[:, actor] = INTENSITY_ONE
        scenes = replace(
            shown,
            indices=np.zeros(steps, np.int64),
            intensity=intensity,
            trajectory=Trajectory.at_rest(recording.truth[:, :, 0]),
        )
        seen = definition.activation(scenes, np.zeros(1, np.int64))[:, 0].numpy()
        result[:, actor] = seen / shown.full_count >= 0.5
    return result


def dense_flow(recording: Recording) -> np.ndarray:
    masks = dense_masks(recording)
    x, y = np.meshgrid(np.arange(recording.width) + 0.5, np.arange(recording.height) + 0.5)
    result = np.zeros((recording.steps, 2, recording.height, recording.width), np.float32)
    for step in range(recording.steps):
        for actor in range(recording.actors):
            along_x, along_y, drift = (recording.T_velocity[step, actor] @ np.linalg.inv(recording.T[step, actor]))[
                :2
            ].T
            velocity = along_x[:, None, None] * x + along_y[:, None, None] * y + drift[:, None, None]
            result[step] = np.where(masks[step, actor], velocity, result[step])
    return result


def milliseconds(made: Callable[[int], Any], items: int) -> float:
    """CPU time: the median over some items; the first one compiles."""
    made(0)
    times = []
    for number in range(items):
        begun = time.process_time()
        made(number)
        times.append(time.process_time() - begun)
    return 1e3 * statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    config = gerd.parse(THREE_SHAPES, overrides=["sensor.width=128", "sensor.height=128"])
    costs: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="gerd-bench-") as folder:
        gerd.generate(config, Path(folder) / "data", chosen.items)

        def cost(label: Any, item: str = "frames") -> float:
            data = gerd.Dataset(Path(folder) / "data", item, label, steps=STEPS, stride=128, rest="drop")
            return milliseconds(data.__getitem__, chosen.items)

        def dense(label: Callable[[Recording], Any]) -> float:
            return cost(lambda part: torch.from_numpy(label(part)))

        bare, bare_events = cost(None), cost(None, "events")
        costs["masks, dense"], costs["flow, dense"] = dense(dense_masks) - bare, dense(dense_flow) - bare
        costs.update({label: cost(label) - bare for label in LABELS})
        costs["actor, event_flow, echo"] = cost(PER_EVENT, "events") - bare_events
        recording = gerd.Recordings(Path(folder) / "data")[0]
        costs[f"causes of a recording of {len(recording)} events"] = milliseconds(
            lambda _: replace(recording).actor, chosen.items
        )
        part = recording.window(0, STEPS)
        assert np.array_equal(dense_masks(part), part.masks())
        assert np.allclose(dense_flow(part), part.flow(), atol=1e-5)
    print("\n| label | ms per item |\n| --- | --- |")
    for name, value in costs.items():
        print(f"| {name} | {value:.2f} |")
    ratios = [costs[f"{name}, dense"] / costs[name] for name in ("masks", "flow")]
    print(f"\nmasks are {ratios[0]:.0f} and flow is {ratios[1]:.0f} times as fast as by the dense definition")
    if chosen.json:
        chosen.json.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()

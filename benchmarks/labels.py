"""Labels that are rendered: milliseconds of CPU time per item, for masks, flow and the causes of events, in one run.

    python benchmarks/labels.py [--items N] [--json FILE]

An item is a window of 40 steps of a recording of 128×128 pixels, as `Dataset` gives it: one of configs/bouncing.yaml,
whose three shapes are 12 to 44 pixels large, and one of three shapes of 60 pixels that are always in view. What a label
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


def costs_of(config: gerd.Config, folder: Path, items: int) -> dict[str, float]:
    """Milliseconds of each label, by name."""
    gerd.generate(config, folder, items)

    def cost(label: Any, item: str = "frames") -> float:
        data = gerd.Dataset(folder, item, label, steps=STEPS, stride=config.steps, rest="drop")
        return milliseconds(data.__getitem__, items)

    def dense(label: Callable[[Recording], Any]) -> float:
        return cost(lambda part: torch.from_numpy(label(part)))

    recording = gerd.Recordings(folder)[0]
    part = recording.window(0, STEPS)
    assert np.array_equal(dense_masks(part), part.masks())
    assert np.allclose(dense_flow(part), part.flow(), atol=1e-5)
    bare, bare_events = cost(None), cost(None, "events")
    return {
        "masks, dense": dense(dense_masks) - bare,
        "flow, dense": dense(dense_flow) - bare,
        **{label: cost(label) - bare for label in LABELS},
        "actor, event_flow, echo": cost(PER_EVENT, "events") - bare_events,
        "causes of a whole recording": milliseconds(lambda _: replace(recording).actor, items),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    frame = ["sensor.width=128", "sensor.height=128"]
    bouncing = gerd.load(Path(__file__).parents[1] / "configs" / "bouncing.yaml", overrides=frame)
    scenes = {"bouncing": bouncing, "60-pixel shapes": gerd.parse(THREE_SHAPES, overrides=frame)}
    with tempfile.TemporaryDirectory(prefix="gerd-bench-") as folder:
        costs = {name: costs_of(config, Path(folder) / name, chosen.items) for name, config in scenes.items()}
    print(f"\n| label, ms per item | {' | '.join(costs)} |\n| --- |{' --- |' * len(costs)}")
    for label in costs["bouncing"]:
        print(f"| {label} | {' | '.join(f'{each[label]:.2f}' for each in costs.values())} |")
    print()
    for name, each in costs.items():
        masks, flow = (each[f"{label}, dense"] / each[label] for label in ("masks", "flow"))
        print(f"{name}: masks are {masks:.0f} and flow is {flow:.0f} times as fast as by the dense definition")
    if chosen.json:
        chosen.json.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()

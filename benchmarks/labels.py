"""Labels that are rendered: milliseconds of CPU time per item, for masks, flow and the causes of events, in one run.

    python benchmarks/labels.py [--items N] [--rounds N] [--dense] [--json FILE]

An item is a window of 40 steps of a recording of 128×128 pixels, as `Dataset` gives it: one of configs/bouncing.yaml,
whose three shapes are 12 to 44 pixels large, and one of three shapes of 60 pixels that are always in view. What a label
costs is the time of an item with it, less that of the same item without a label.

All kinds of items take turns, round by round, so that whatever else the machine does meets all of them. Of each item
the minimum over the rounds is taken, the nearest to what it costs when nothing disturbs it, and the median, which is
what it cost here; both are averaged over the items. Beside them stands how many times that is of what it costs to set
the label's own array to a value, in memory that the process has already: nothing that hands over such an array can be
faster, and the ratio depends less on the machine than the milliseconds do. The bar is 2 ms for masks and for flow.

With `--dense` masks and flow are also worked out by the dense definition, as they were before there were kernels for
them: for each actor a picture of the whole frame, from all sub-rows.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import torch
from gpu import TEXT as THREE_SHAPES

import gerd
from gerd.events.definition import walk as definition
from gerd.geometry.trajectory import Trajectory
from gerd.plan.plan import INTENSITY_ONE
from gerd.recording.recording import Recording

STEPS = 40
LABELS = ("masks", "flow", "masks_with_edges", "flow_with_edges", "images", "visibility")
PER_EVENT = ("actor", "event_flow", "echo")
BAR = 2.0  # milliseconds
BARRED = ("masks", "flow")


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


@dataclass(frozen=True)
class Cost:
    """Milliseconds of CPU time per item: in the least disturbed round, and in the median one."""

    least: float
    median: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.least - other.least, self.median - other.median)


def in_turns(made: dict[str, Callable[[int], Any]], items: int, rounds: int) -> dict[str, Cost]:
    """What each of several things costs, for items 0 … items - 1; the first round compiles, and does not count."""
    taken = {name: np.empty((rounds + 1, items)) for name in made}
    for turn in range(rounds + 1):
        for name, make in made.items():
            for number in range(items):
                begun = time.process_time()
                make(number)
                taken[name][turn, number] = time.process_time() - begun
    counted = {name: 1e3 * times[1:] for name, times in taken.items()}
    return {name: Cost(float(t.min(0).mean()), float(np.median(t, 0).mean())) for name, t in counted.items()}


def costs_of(config: gerd.Config, folder: Path, items: int, rounds: int, dense: bool) -> dict[str, Cost]:
    """The cost of each label, and of setting its array, by name."""
    gerd.generate(config, folder, items)

    def item_with(label: Any, item: str = "frames") -> Callable[[int], Any]:
        return gerd.Dataset(folder, item, label, steps=STEPS, stride=config.steps, rest="drop").__getitem__

    def memset(label: str) -> Callable[[int], Any]:
        array = item_with(label)(0)[1]
        return lambda _: array.fill_(0)

    recordings = gerd.Recordings(folder)
    made = {"bare": item_with(None), "bare events": item_with(None, "events")}
    made |= {label: item_with(label) for label in LABELS}
    made |= {f"{label}, set": memset(label) for label in LABELS}
    made |= {", ".join(PER_EVENT): item_with(PER_EVENT, "events")}
    made |= {"causes of a whole recording": lambda number: recordings[number].actor}
    if dense:
        part = recordings[0].window(0, STEPS)
        assert np.array_equal(dense_masks(part), part.masks())
        assert np.allclose(dense_flow(part), part.flow(), atol=1e-5)
        made |= {"masks, dense": item_with(lambda part: torch.from_numpy(dense_masks(part)))}
        made |= {"flow, dense": item_with(lambda part: torch.from_numpy(dense_flow(part)))}
    costs = in_turns(made, items, rounds)
    bare = {", ".join(PER_EVENT): costs["bare events"]}
    labels = [name for name in made if not name.startswith("bare") and not name.endswith(", set")]
    whole = {"causes of a whole recording": Cost(0, 0)}
    result = {name: costs[name] - bare.get(name, whole.get(name, costs["bare"])) for name in labels}
    return {**result, **{name: cost for name, cost in costs.items() if name.endswith(", set")}}


def line(name: str, of_scenes: list[dict[str, Cost]]) -> str:
    """A row of the table: in each scene minimum, median, and how many times the setting of the array that is."""
    cells = []
    for costs in of_scenes:
        cost, memset = costs[name], costs.get(f"{name}, set")
        ratio = f"{cost.least / memset.least:.1f} ×" if memset else ""
        cells.append(f"{cost.least:.2f} | {cost.median:.2f} | {ratio}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--dense", action="store_true")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    frame = ["sensor.width=128", "sensor.height=128"]
    bouncing = gerd.load(Path(__file__).parents[1] / "configs" / "bouncing.yaml", overrides=frame)
    scenes = {"bouncing": bouncing, "60-pixel shapes": gerd.parse(THREE_SHAPES, overrides=frame)}
    with tempfile.TemporaryDirectory(prefix="gerd-bench-") as folder:
        costs = {
            name: costs_of(config, Path(folder) / name, chosen.items, chosen.rounds, chosen.dense)
            for name, config in scenes.items()
        }
    heads = " | ".join(f"{name}: least | median | of setting it" for name in costs)
    print(f"\n| label, ms per item | {heads} |\n| --- |{' --- |' * 3 * len(costs)}")
    for label in costs["bouncing"]:
        if not label.endswith(", set"):
            print(line(label, list(costs.values())))
    print()
    for label in BARRED:
        least, median = (max(getattr(each[label], kind) for each in costs.values()) for kind in ("least", "median"))
        verdict = "under" if median < BAR else "only at its least under" if least < BAR else "NOT under"
        cost = f"{least:.2f} ms at least, {median:.2f} ms in the median, of the slower scene"
        print(f"{label}: {cost}: {verdict} {BAR:g} ms")
    if chosen.json:
        table = {name: {label: asdict(cost) for label, cost in each.items()} for name, each in costs.items()}
        chosen.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()

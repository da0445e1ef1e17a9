"""How exact times and labels are, as numbers: against a camera in continuous time, and at the events. Nothing is timed.

    python benchmarks/exactness.py [--json FILE]

Exact timing: a square and a circle of 48 pixels cross the frame at several speeds and thresholds, as in
`tests/events/test_exact.py`. The truth is a camera in continuous time that knows areas in closed form and shares no
code with the program. Beside it, the share of the events of a moving square at which the flow of the step says rest, or
is unknown, for the two kinds of flow.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import gerd

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.crossing import Crossing, agreement

CROSSINGS = [
    Crossing(shape, speed, threshold, turn=17.0)
    for shape, speed, threshold in product(("square", "circle"), (1.0, 2.0, 4.0, 8.0), (0.1, 0.3, 0.5, 0.7))
]
UPSAMPLINGS = (8, 32)
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # pixels per step


def crossings() -> dict[str, dict[str, list[float]]]:
    """For each upsampling: percent of the pixels with the same events, and rms difference of times in steps."""
    found: dict[str, dict[str, list[float]]] = {str(f): {"same_percent": [], "apart": []} for f in UPSAMPLINGS}
    for scene in CROSSINGS:
        truth = scene.truth()
        for upsampling in UPSAMPLINGS:
            share, apart = agreement(scene.recorded(upsampling), truth)
            found[str(upsampling)]["same_percent"].append(100 * share)
            found[str(upsampling)]["apart"].append(apart)
    return found


def flow_at_events(speed: float) -> dict[str, float]:
    """Percent of the events of a square at which the flow is 0, and at which the flow with edges is not a number."""
    recording = gerd.simulate(
        {
            "sensor": {"width": 128, "height": 128},
            "steps": 60,
            "actors": [
                {
                    "shape": "square",
                    "translation": {"start": "centre", "velocity": [speed, 0.3 * speed], "acceleration": 0},
                    "scale": {"start": 30, "acceleration": 0},
                    "rotation": {"start": 20, "acceleration": 0},
                }
            ],
        }
    )
    events = recording.events
    at = (events["t"] // recording.step_us, slice(None), events["y"], events["x"])
    rest = (recording.flow()[at] == 0).all(-1)
    unknown = np.isnan(recording.flow(edges=True)[at]).any(-1)
    return {"rest_percent": 100 * float(rest.mean()), "unknown_percent": 100 * float(unknown.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    result: dict[str, Any] = {"crossings": crossings(), "flow": {f"{v:g}": flow_at_events(v) for v in SPEEDS}}
    print("\n| sub-pixels | pixels with the same events | times apart, steps (rms) |\n| --- | --- | --- |")
    for upsampling, found in result["crossings"].items():
        same, apart = found["same_percent"], found["apart"]
        ends = f"{min(same):.2f} to {max(same):.2f} % | {min(apart):.4f} to {max(apart):.4f}"
        print(f"| {upsampling}×{upsampling} | {ends} |")
    print("\n| pixels per step | events where the flow is 0 | where it is unknown with edges |\n| --- | --- | --- |")
    for speed, shares in result["flow"].items():
        print(f"| {speed} | {shares['rest_percent']:.0f} % | {shares['unknown_percent']:.1f} % |")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

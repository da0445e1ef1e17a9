"""Exact timing against step timing: milliseconds per recording of the same scenes, in one run.

    python benchmarks/timing.py [--device cuda] [--json FILE]

Three shapes of 60 pixels move through 300×300 pixels for 128 steps, at the given speed; the ratio is what counts, and
the bar is 4 times up to 1 pixel per step. On the CPU it is CPU time from the config to the recording: the two timings
take turns, and of each the minimum is taken, the nearest to what it costs undisturbed, and the median. On a GPU it is
the median time from the config to frames on the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from against_original import our_seconds

import gerd
from gerd.config.config import Config
from gerd.config.sweep import with_values

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # pixels per step
TIMINGS = ("step", "exact")
BATCH, ROUNDS = 4, 15  # on the CPU
BAR, BARRED_SPEED = 4.0, 1.0


def case_config(speed: float) -> Config:
    actors = [
        {
            "shape": shape,
            "translation": {"start": [100, 100 + 37 * k], "velocity": [0.8 * speed, 0.6 * speed], "acceleration": 0},
            "scale": {"start": 60, "acceleration": 0},
        }
        for k, shape in enumerate(("circle", "square", "triangle"))
    ]
    sensor = {"width": 300, "height": 300}
    data = {"sensor": sensor, "steps": 128, "noise": {"background": 0.001}, "actors": actors}
    return Config.model_validate(data)


def on_cpu(config: Config) -> list[tuple[float, float]]:
    """Milliseconds per recording in each timing, the least and the median; the first round compiles."""
    taken: dict[str, list[float]] = {timing: [] for timing in TIMINGS}
    for turn in range(ROUNDS + 1):
        for timing, times in taken.items():
            begun = time.process_time()
            gerd.simulate_batch(with_values(config, {"timing": timing}), range(turn * BATCH, (turn + 1) * BATCH))
            times.append(1e3 * (time.process_time() - begun) / BATCH)
    return [(min(times[1:]), statistics.median(times[1:])) for times in taken.values()]


def on_gpu(config: Config, device: str) -> list[tuple[float, float]]:
    seconds = (our_seconds(with_values(config, {"timing": timing}), device) for timing in TIMINGS)
    return [(1e3 * each, 1e3 * each) for each in seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    device = chosen.device
    torch.set_num_threads(1)
    print(f"\n| three shapes ({device}) | step | exact | ratio | of medians |\n| --- | --- | --- | --- | --- |")
    barred = []
    result = {}
    for speed in SPEEDS:
        config = case_config(speed)
        (step, step_median), (exact, exact_median) = on_cpu(config) if device == "cpu" else on_gpu(config, device)
        ratios = f"{exact / step:.2f} × | {exact_median / step_median:.2f} ×"
        print(f"| {speed:g} px per step | {step:.3g} ms | {exact:.3g} ms | {ratios} |", flush=True)
        result[f"{speed:g}"] = {"step": step, "exact": exact}
        barred += [exact / step] if speed <= BARRED_SPEED else []
    verdict = "within" if max(barred) <= BAR else "NOT within"
    print(f"\nup to {BARRED_SPEED:g} px per step at most {max(barred):.2f} times: {verdict} {BAR:g} times")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

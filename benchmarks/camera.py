"""What each effect of a camera costs: milliseconds per recording of the same scenes with it and without it, in one run.

    python benchmarks/camera.py [--device cuda] [--json FILE]

Three shapes of 60 pixels move through 300×300 pixels for 128 steps, by 1 pixel per step; the ratios are what counts.
The bars are 1.3 times for thresholds of each pixel, and 3 times for all effects together but for the leak, which visits
every pixel. On the CPU it is CPU time from the config to the recording: the effects take turns, and of each the minimum
is taken, the nearest to what it costs undisturbed. On a GPU it is the median time from the config to frames on the
device.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from against_original import our_seconds
from timing import case_config

import gerd
from gerd.config.config import Config
from gerd.config.sweep import with_values

SPEED = 1.0  # pixels per step
BATCH, ROUNDS = 2, 9  # on the CPU
NOTHING = "nothing"
THRESHOLDS: dict[str, Any] = {"integrator.threshold": {"on": 0.5, "off": 0.45, "spread": 0.03}}
RESPONSE: dict[str, Any] = {"integrator.response": {"log": 0.1}, "integrator.threshold": 1.2}  # half of ln 11
REFRACTORY: dict[str, Any] = {"integrator.refractory_us": 2500}
LEAK: dict[str, Any] = {"integrator.leak_hz": 0.1}
TOGETHER: dict[str, Any] = {
    **RESPONSE,
    **REFRACTORY,
    "integrator.threshold": {"on": 1.2, "off": 1.1, "spread": 0.07},
    "noise.hot": {"share": 0.001},
    "noise.dead": 0.001,
}
EFFECTS: dict[str, dict[str, Any]] = {
    NOTHING: {},
    "thresholds of each pixel": THRESHOLDS,
    "logarithmic response": RESPONSE,
    "refractory time, hold": REFRACTORY,
    "leak": LEAK,
    "all but the leak": TOGETHER,
    "all": {**TOGETHER, **LEAK},
}
BARS = {"thresholds of each pixel": 1.3, "all but the leak": 3.0}


def on_cpu(configs: dict[str, Config]) -> dict[str, float]:
    """The least milliseconds per recording with each effect; the first round compiles."""
    taken: dict[str, list[float]] = {name: [] for name in configs}
    for turn in range(ROUNDS + 1):
        for name, times in taken.items():
            begun = time.process_time()
            gerd.simulate_batch(configs[name], range(turn * BATCH, (turn + 1) * BATCH))
            times.append(1e3 * (time.process_time() - begun) / BATCH)
    return {name: min(times[1:]) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, dict[str, float]] = {}
    for timing in ("step", "exact"):
        ideal = with_values(case_config(SPEED), {"timing": timing})
        configs = {name: with_values(ideal, values) for name, values in EFFECTS.items()}
        if chosen.device == "cpu":
            made = on_cpu(configs)
        else:
            made = {name: 1e3 * our_seconds(config, chosen.device) for name, config in configs.items()}
        print(f"\n| {timing} timing ({chosen.device}) | ms | ratio | events |\n| --- | --- | --- | --- |")
        for name, milliseconds in made.items():
            bar = f" (bar: {BARS[name]:g})" if name in BARS else ""
            number = len(gerd.simulate(configs[name]))
            print(f"| {name} | {milliseconds:.3g} | {milliseconds / made[NOTHING]:.2f}{bar} | {number} |", flush=True)
        result[timing] = made
    missed = [
        f"{name} in {timing} timing"
        for timing, made in result.items()
        for name, bar in BARS.items()
        if made[name] / made[NOTHING] > bar
    ]
    print(f"\nbars: {'kept' if not missed else 'NOT kept by ' + ', '.join(missed)}")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Exact timing against step timing: seconds per recording of the same scenes, in one run.

    python benchmarks/timing.py [--device cuda]

On the CPU from the config to the recording, on a GPU from the config to frames on the device. Shapes move at up to the
given speed; the ratio is what counts.
"""

from __future__ import annotations

import argparse

import torch
from against_original import our_seconds

from gerd.config.config import Config
from gerd.config.sweep import with_values

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # pixels per step


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    print(f"\n| three shapes ({device}) | step | exact | ratio |\n| --- | --- | --- | --- |")
    for speed in SPEEDS:
        step, exact = (
            our_seconds(with_values(case_config(speed), {"timing": timing}), device) for timing in ("step", "exact")
        )
        print(
            f"| {speed:g} px per step | {step * 1e3:.3g} ms | {exact * 1e3:.3g} ms | {exact / step:.2f} × |", flush=True
        )


if __name__ == "__main__":
    main()

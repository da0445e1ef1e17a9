"""GERD against the program it replaces, gerd 0.5.1: seconds per recording of the same content, in one run.

    python benchmarks/against_original.py [--device cuda] [--json FILE] [--original FOLDER]

The original is installed into out/original (without its dependencies; PyTorch is the one of this environment), unless
FOLDER holds it already. Both use one CPU thread; on a GPU ours makes recordings in batches (as many as have 12 GB of
frames, and at most 8192), from the config to frames on the device, draws included. Times are medians, on a CPU of the
processor's time, so that a busy machine is unfair to neither; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import torch

import gerd
from gerd.config.config import Config

HERE = Path(__file__).parent
STILL = {"acceleration": 0}
PACKAGES = ["gerd==0.5.1", "torchvision==0.28.0"]


def case_config(side: int, steps: int, shapes: list[str], all_transformations: bool) -> Config:
    actors = []
    for k, shape in enumerate(shapes):
        actor = {
            "shape": shape,
            "translation": {"start": [side / 3, side / 3 + k * side / 8], "velocity": [0.5, 0.25], **STILL},
            "scale": {"start": side / 5, "velocity": 0.1, **STILL},
        }
        if all_transformations:
            actor["rotation"] = {"velocity": 1, **STILL}
            actor["shear"] = {"velocity": 0.002, **STILL}
        actors.append(actor)
    sensor = {"width": side, "height": side}
    return Config.model_validate({"sensor": sensor, "steps": steps, "noise": {"background": 0.001}, "actors": actors})


THREE = ["circle", "square", "triangle"]
CASES = {
    "three shapes": case_config(300, 128, THREE, False),
    "three shapes, all transformations": case_config(300, 128, THREE, True),
    "one square": case_config(64, 60, ["square"], False),
}


def original_seconds(case: str, device: str, repeats: int, folder: Path) -> float:
    if not (folder / "gerd").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *PACKAGES]
        subprocess.run(command, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(HERE / "original.py"), case, device, str(repeats)]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def our_seconds(config: Config, device: str) -> float:
    from gerd.events import backends
    from gerd.plan.make import plan_of
    from gerd.scene.draw import draw

    bytes_each = 2 * config.steps * config.sensor.height * config.sensor.width
    batch = 16 if device == "cpu" else min(12 * 10**9 // bytes_each, 8192)
    clock = time.process_time if device == "cpu" else time.perf_counter

    def make(first: int) -> object:
        indices = range(first, first + batch)
        if device == "cpu":
            return gerd.simulate_batch(config, indices)
        frames = backends.frames(draw(plan_of(config), indices), device)
        torch.cuda.synchronize()
        return frames

    held = [make(0)]  # compiles
    seconds: list[float] = []
    while len(seconds) < 9 or sum(seconds) * batch < 2:  # long enough for a disturbance not to decide
        begun = clock()
        held[0] = make(len(seconds) * batch)  # until then those before are held, as in a loop that uses them
        seconds.append((clock() - begun) / batch)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--original", type=Path, default=HERE.parent / "out" / "original")
    parser.add_argument("--repeats", type=int, default=3, help="of the original; ours is repeated more")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for case, config in CASES.items():
        ours = our_seconds(config, chosen.device)
        original = original_seconds(case, chosen.device, chosen.repeats, chosen.original)
        rows.append({"case": case, "original_s": original, "ours_s": ours, "ratio": original / ours})
    print(f"\n| case ({chosen.device}) | original | ours | ratio |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['case']} | {row['original_s']:.3g} s | {row['ours_s'] * 1e3:.3g} ms | {row['ratio']:,.0f} × |")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

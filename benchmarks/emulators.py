"""GERD against programs that turn video into events: frames per CPU-second of the same content, in one run.

    python benchmarks/emulators.py [--json FILE] [--emulators FOLDER]

The emulators are those that PyPI has and that take frames from memory; they are installed into out/emulators
(without their dependencies; PyTorch and numpy are those of this environment), unless FOLDER holds them already:

    eventcv       the pixel of v2e, in Rust: bandwidth, leak, shot noise, thresholds that differ from pixel to pixel
    evlib         ESIM, on PyTorch: log intensity, thresholds, a refractory period
    eventify-dvs  the bare idea, on numpy: the logarithms of two frames, their difference cut into thresholds

Read the table with care, for they do another job. They take any video and model a sensor's pixel, which GERD does not;
every pixel of every frame is new to them. GERD takes a config and knows where the edges are, so it looks at little
else. The emulators' frames are rendered beforehand, by `recording.images()`, and cost them nothing; GERD's time runs
from the config to the events, with the picture in it. The frames have grey values from 64 to 192, and the
thresholds are such that an edge from one to the other is worth two events, as it is in GERD; eventify-dvs gives fewer,
because it forgets what a frame leaves below the threshold.

All use one thread. CPU-seconds are medians of what the process used, measured in turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import torch
from against_original import CASES

import gerd

PACKAGES = [
    "eventcv==1.0.8",
    "evlib==0.13.2",
    "eventify-dvs==0.2.0",
    "opencv-python-headless==5.0.0.93",  # evlib and eventify-dvs import it
    "polars==2.1.0",  # evlib does
]
CASE = CASES["three shapes"]
STEP = CASE.step_us * 1e-6  # seconds
DARK, BRIGHT = 64, 192
REPEATS = 9
IDEAL = {"sigma_thres": 0.0, "leak_rate_hz": 0.0, "shot_noise_rate_hz": 0.0, "cutoff_hz": 0.0, "refractory_us": 0}


def make_emulators(frames: np.ndarray) -> dict[str, Callable[[], int]]:
    """By name, a function that turns the frames into events and counts them."""
    warnings.simplefilter("ignore")  # evlib complains about packages for parts of it that are not used here
    logging.disable(logging.WARNING)
    import cv2
    import eventcv
    from eventify import frame_to_event_tuples
    from evlib.simulation import ESIMConfig, ESIMSimulator

    cv2.setNumThreads(1)
    half = float(np.log((BRIGHT + 1) / (DARK + 1))) / 2 - 1e-3
    half_of_light = 1.4  # eventcv takes grey values for sRGB, in which the same edge is steeper

    def v2e_pixel(**settings: Any) -> int:
        return len(eventcv.simulate(frames, fps=1 / STEP, pos_thres=half_of_light, neg_thres=half_of_light, **settings))

    def esim() -> int:
        simulator = ESIMSimulator(
            ESIMConfig(positive_threshold=half, negative_threshold=half, device="cpu", dtype="float32")
        )
        return sum(len(simulator.process_frame(frame, i * STEP)[0]) for i, frame in enumerate(frames))

    def differences() -> int:
        pairs = enumerate(pairwise(frames))
        step_us = CASE.step_us
        return sum(
            len(frame_to_event_tuples(before, after, i * step_us, (i + 1) * step_us, c_thresh=half))
            for i, (before, after) in pairs
        )

    return {
        "eventcv, noisy pixels, sub-steps as needed": v2e_pixel,
        "eventcv, ideal pixels, no sub-steps": lambda: v2e_pixel(**IDEAL, upsample="off"),
        "evlib": esim,
        "eventify-dvs": differences,
    }


def cpu_seconds(work: dict[str, Callable[[], int]]) -> dict[str, tuple[float, int]]:
    """Median CPU-seconds of each, measured in turns, and the number of its events."""
    events = {name: make() for name, make in work.items()}  # compiles
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(REPEATS):
        for name, make in work.items():
            begun = time.process_time()
            make()
            taken[name].append(time.process_time() - begun)
    return {name: (statistics.median(taken[name]), events[name]) for name in work}


def install(folder: Path) -> None:
    """Make the emulators importable from a folder; they are installed there if it does not exist."""
    if not (folder / "eventcv").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        subprocess.run([*command, *PACKAGES], check=True)
    sys.path.append(str(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--emulators", type=Path, default=Path(__file__).parent.parent / "out" / "emulators")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    install(chosen.emulators)

    ours = "GERD, picture included"
    images = gerd.simulate(CASE).images()
    frames = np.rint(DARK + (BRIGHT - DARK) * images).astype(np.uint8)
    found = cpu_seconds({**make_emulators(frames), ours: lambda: len(gerd.simulate(CASE).events)})
    rows = [
        {
            "program": name,
            "frames_per_cpu_s": len(frames) / seconds,
            "events_per_frame": events / len(frames),
            "ratio": seconds / found[ours][0],
        }
        for name, (seconds, events) in found.items()
    ]
    print(f"\n| {len(frames)} frames of {images.shape[2]}×{images.shape[1]} | frames per CPU-second ", end="")
    print("| events per frame | GERD is faster by |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['program']} | {row['frames_per_cpu_s']:,.0f} | {row['events_per_frame']:.0f} ", end="")
        print(f"| {row['ratio']:,.1f} × |")
    print("\nThe emulators model a sensor's pixel and take any video, rendered for them beforehand; GERD renders, too.")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

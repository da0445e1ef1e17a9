"""Train on recordings that are simulated as they are needed, on the CPU or on a GPU, and never stored.

Run it with `python examples/train_from_stream.py [--device cuda]`. The network estimates how fast a triangle turns. It
prints the error in degrees per step before and after training, on recordings that it was not trained on.
It takes about 10 seconds on one core.
"""

from __future__ import annotations

import argparse
import math
from itertools import islice

import torch
from torch import Tensor, nn

import gerd

CONFIG = """
seed: 2
sensor: {width: 32, height: 32}
steps: 20
noise: {background: 0.001}
actors:
  - shape: triangle
    translation: {start: centre, velocity: {uniform: [-0.2, 0.2]}, acceleration: 0}
    scale: {start: {uniform: [16, 24]}, acceleration: 0}
    rotation: {start: uniform, velocity: {uniform: [-8, 8]}, acceleration: 0}
"""
BATCH = 32


def turning(parameters: Tensor) -> Tensor:
    """Degrees per step at the last step, from the velocities of x, y, scale_x, scale_y, rotation, shear."""
    return parameters[:, -1, 0, 4] * 180 / math.pi


def main(count: int, device: str) -> None:
    torch.manual_seed(0)
    config = gerd.parse(CONFIG)
    # The last step is labelled; its frame holds four sums of five steps each as channels.
    form = {"item": "counts", "label": "parameters_velocity", "sum": 5, "every": 5, "stack": 4, "dtype": torch.float32}
    train = gerd.Stream(config, BATCH, device=device, **form)
    frames, parameters = gerd.Stream(config, 256, device=device, first=10**6, **form).batch(0)  # other recordings
    network = nn.Sequential(
        nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 1),
    ).to(device)  # fmt: skip
    optimiser = torch.optim.Adam(network.parameters(), 0.002)

    def error(frames: Tensor, parameters: Tensor) -> Tensor:
        return (network(frames[:, -1])[:, 0] - turning(parameters)).abs().mean()

    print(f"before training: {error(frames, parameters):.2f} degrees per step off")
    for batch in islice(train, count // BATCH):
        optimiser.zero_grad()
        error(*batch).backward()
        optimiser.step()
    print(f"after training on {train.state_dict()['batch'] * BATCH} recordings: ", end="")
    print(f"{error(frames, parameters):.2f} degrees per step off")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=6400, help="recordings to train on")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    main(chosen.count, chosen.device)

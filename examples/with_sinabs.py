"""A convolutional spiking network of Sinabs that tells a square from a circle and a triangle.

Needs the package sinabs, without the samna that it asks for and that only SynSense's chips need:
`pip install nir nirtorch pbr` and `pip install --no-deps sinabs`. Run it with `python examples/with_sinabs.py`. It
prints the share of shapes that the network gets wrong, before and after training.
It takes about 10 seconds on one core.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import sinabs
import sinabs.layers
import torch
from torch import Tensor, nn

import gerd

CONFIG = """
seed: 4
sensor: {width: 32, height: 32}
steps: 16
actors:
  - shape: square
    translation: {start: centre, velocity: {uniform: [-0.2, 0.2]}, acceleration: 0}
    scale: {start: {uniform: [14, 22]}, acceleration: 0}
    rotation: {start: 20, velocity: {choice: [-3, 3]}, acceleration: 0}
sweep:
  actors.0.shape: [square, circle, triangle]
"""
SHAPES = ["square", "circle", "triangle"]
STEPS = 16


def shape_number(recording: Any) -> int:
    return SHAPES.index(recording.identity.labels["actors.0.shape"])


def made() -> nn.Module:
    """Layers whose name ends in Squeeze take the batch and the steps as one axis, so that convolutions fit between."""
    return nn.Sequential(
        nn.Conv2d(2, 8, 6, stride=4),
        sinabs.layers.LIFSqueeze(tau_mem=10.0, num_timesteps=STEPS),
        nn.Flatten(),
        nn.Linear(8 * 7 * 7, len(SHAPES)),
        sinabs.layers.ExpLeakSqueeze(tau_mem=20.0, num_timesteps=STEPS),
    )


def answers(network: nn.Module, frames: Tensor) -> Tensor:
    """What the output neurons say after the last step."""
    sinabs.reset_states(network)  # the neurons remember the last batch otherwise
    potentials = network(frames.float().flatten(0, 1))  # (batch, steps, 2, height, width) to (batch · steps, 2, …)
    return potentials.unflatten(0, (-1, STEPS))[:, -1]


def main(count: int, epochs: int, folder: Path) -> None:
    torch.manual_seed(0)
    gerd.generate(gerd.parse(CONFIG), folder / "shapes", count, workers=1)
    train, test = gerd.Dataset(folder / "shapes", label=shape_number).split(0.8, 0.2)
    network = made()
    optimiser = torch.optim.Adam(network.parameters(), 0.01)

    def wrong() -> float:
        with torch.no_grad():
            frames, shapes = next(iter(test.loader(len(test))))
            return float((answers(network, frames).argmax(1) != shapes).float().mean())

    print(f"before training: {wrong():.0%} wrong")
    for _ in range(epochs):
        for frames, shapes in train.loader(16, shuffle=True):
            optimiser.zero_grad()
            nn.functional.cross_entropy(answers(network, frames), shapes).backward()
            optimiser.step()
    print(f"after training: {wrong():.0%} wrong")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=90, help="recordings of each shape")
    parser.add_argument("--epochs", type=int, default=6)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

"""A spiking network of Norse that tells a square from a circle and a triangle, trained on new recordings only.

Needs the package norse, without the torchvision that it asks for: `pip install nir nirtorch` and
`pip install --no-deps norse`. Run it with `python examples/with_norse.py`. It prints the share of shapes that the
network gets wrong, before and after training. It takes about 10 seconds on one core.
"""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import norse.torch as norse
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
BATCH = 24  # eight families of three shapes


def shape_number(recording: Any) -> int:
    return SHAPES.index(recording.identity.labels["actors.0.shape"])


def answers(network: nn.Module, frames: Tensor) -> Tensor:
    """What the output neurons say after the last step."""
    by_step = frames.float().transpose(0, 1)  # (batch, steps, 2, height, width): Norse wants the steps first
    potentials, _state = network(by_step)
    return potentials[-1]


def main(count: int) -> None:
    torch.manual_seed(0)
    config = gerd.parse(CONFIG)
    train = gerd.Stream(config, BATCH, label=shape_number)
    test = gerd.Stream(config, 90, label=shape_number, first=10**6).batch(0)
    network = norse.SequentialState(
        nn.Flatten(2), nn.Linear(2 * 32 * 32, 64), norse.LIF(), nn.Linear(64, len(SHAPES)), norse.LI()
    )
    optimiser = torch.optim.Adam(network.parameters(), 0.002)

    def wrong() -> float:
        frames, shapes = test
        with torch.no_grad():
            return float((answers(network, frames).argmax(1) != shapes).float().mean())

    print(f"before training: {wrong():.0%} wrong")
    for frames, shapes in islice(train, count // BATCH):
        optimiser.zero_grad()
        nn.functional.cross_entropy(answers(network, frames), shapes).backward()
        optimiser.step()
    print(f"after training: {wrong():.0%} wrong")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1440, help="recordings to train on")
    main(parser.parse_args().count)

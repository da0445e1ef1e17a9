"""Make a dataset, split it, and train a small network to find the square in each frame.

Run it with `python examples/train_from_disk.py`. It prints how far off the network is, in pixels, before and after.
It takes about 40 seconds on one core.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import gerd

CONFIG = """
seed: 1
sensor: {width: 32, height: 24}
steps: 40
noise: {background: 0.002}
actors:
  - shape: square
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: {normal: [0, 0.05]}, margin: 3}
    scale: {start: {uniform: [5, 9]}, acceleration: 0}
    rotation: {start: uniform, velocity: {uniform: [-3, 3]}, acceleration: 0}
"""


class Locator(nn.Module):
    """Two convolutions give a probability for each pixel; their expectation is the position."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Conv2d(2, 8, 7, padding=3), nn.ReLU(), nn.Conv2d(8, 1, 7, padding=3))

    def forward(self, frames: Tensor) -> Tensor:
        score = self.score(frames.flatten(0, 1))[:, 0]
        chance = score.flatten(1).softmax(1).view_as(score)
        x = torch.arange(score.shape[2]) + 0.5
        y = torch.arange(score.shape[1]) + 0.5
        position = torch.stack([chance.sum(1) @ x, chance.sum(2) @ y], dim=-1)
        return position.unflatten(0, frames.shape[:2])


def distance(network: nn.Module, frames: Tensor, positions: Tensor) -> Tensor:
    return (network(frames) - positions[:, :, 0]).norm(dim=-1).mean()  # of the only actor


def main(count: int, epochs: int, folder: Path) -> None:
    torch.manual_seed(0)
    gerd.generate(gerd.parse(CONFIG), folder / "squares", count, workers=1)
    # Windows of 12 steps; each frame holds the events of its own step and of the three before.
    data = gerd.Dataset(folder / "squares", "counts", "positions", steps=12, sum=4, dtype=torch.float32)
    train, test = data.split(0.8, 0.2)
    network = Locator()
    optimiser = torch.optim.Adam(network.parameters(), 0.01)

    def test_error() -> float:
        with torch.no_grad():
            return sum(float(distance(network, *batch)) for batch in test.loader(len(test)))

    print(f"{len(train)} windows to train on, {len(test)} of other recordings to test with")
    print(f"before training: {test_error():.2f} pixels off")
    for _ in range(epochs):
        for frames, positions in train.loader(16, shuffle=True):
            optimiser.zero_grad()
            distance(network, frames, positions).backward()
            optimiser.step()
    print(f"after training: {test_error():.2f} pixels off")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=150, help="recordings")
    parser.add_argument("--epochs", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

"""Does a network that has seen one speed work at others? Train on one time scale, test on those held out.

Run it with `python examples/hold_out.py`. All members of a family share their path and their noise and differ in speed
only, so what differs between the lines of the table is due to the speed. It takes about 20 seconds on one core.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import gerd

CONFIG = """
seed: 3
sensor: {width: 32, height: 32}
steps: 30
noise: {background: 0.001}
actors:
  - shape: square
    translation: {start: uniform, velocity: {choice: [[0.4, 0.3], [-0.4, 0.3], [0.3, -0.4]]}, acceleration: 0}
    scale: {start: 10, acceleration: 0}
sweep:
  time_scale: [0.25, 0.5, 1, 2, 4]
"""
SEEN = 1


class Locator(nn.Module):
    """Leaky integration over time, and a convolution that gives a probability for each pixel."""

    def __init__(self, steps: int):
        super().__init__()
        age = torch.arange(steps)[:, None] - torch.arange(steps)
        self.register_buffer("decay", torch.exp(-age / 3.0).where(age >= 0, 0.0))
        self.score = nn.Sequential(nn.Conv2d(2, 6, 7, padding=3), nn.ReLU(), nn.Conv2d(6, 1, 7, padding=3))

    def forward(self, frames: Tensor) -> Tensor:
        memory = torch.einsum("ts,bscyx->btcyx", self.decay, frames)[:, -10:]  # the first steps warm it up
        score = self.score(memory.flatten(0, 1))[:, 0]
        chance = score.flatten(1).softmax(1).view_as(score)
        place = torch.arange(score.shape[1]) + 0.5
        return torch.stack([chance.sum(1) @ place, chance.sum(2) @ place], dim=-1).unflatten(0, memory.shape[:2])


def main(count: int, epochs: int, folder: Path) -> None:
    torch.manual_seed(0)
    gerd.generate(gerd.parse(CONFIG), folder / "speeds", count, workers=1)
    data = gerd.Dataset(folder / "speeds", warmup=20, steps=10, dtype=torch.float32)
    train, test = data.split(0.8, 0.2)  # whole families: no path is in both
    train, _ = train.hold_out(lambda r: r.config.time_scale != SEEN)
    network = Locator(30)
    optimiser = torch.optim.Adam(network.parameters(), 0.01)

    def distance(frames: Tensor, positions: Tensor) -> Tensor:
        return (network(frames) - positions[:, :, 0]).norm(dim=-1).mean()

    def errors() -> dict[float, float]:
        scales = data.recordings.config.sweep["time_scale"]
        parts = {scale: test.where(lambda r, scale=scale: r.config.time_scale == scale) for scale in scales}
        with torch.no_grad():
            return {scale: float(distance(*next(iter(part.loader(len(part)))))) for scale, part in parts.items()}

    before = errors()
    for _ in range(epochs):
        for batch in train.loader(16, shuffle=True):
            optimiser.zero_grad()
            distance(*batch).backward()
            optimiser.step()
    print("time scale   pixels off before training   after")
    for scale, after in errors().items():
        print(f"{scale:10g} {before[scale]:28.2f} {after:7.2f}   {'seen' if scale == SEEN else 'held out'}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="recordings of each time scale")
    parser.add_argument("--epochs", type=int, default=8)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

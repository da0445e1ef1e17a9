"""Tonic's transforms and cache, and a spiking network of snnTorch that tells a square from a circle and a triangle.

Needs the packages tonic and snntorch. Run it with `python examples/with_tonic.py`. It prints the share of shapes that
the network gets wrong, before and after training. It takes about 20 seconds on one core.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import snntorch
import tonic
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import gerd

CONFIG = """
seed: 4
sensor: {width: 32, height: 32}
steps: 24
noise: {background: 0.002}
actors:
  - shape: square
    translation: {start: centre, velocity: {uniform: [-0.2, 0.2]}, acceleration: 0}
    scale: {start: {uniform: [14, 22]}, acceleration: 0}
    rotation: {start: 20, velocity: {choice: [-3, 3]}, acceleration: 0}
sweep:
  actors.0.shape: [square, circle, triangle]
"""
SHAPES = ["square", "circle", "triangle"]


class Spiking(nn.Module):
    """Two layers of leaky integrate-and-fire neurons; the class is the output neuron with the highest potential."""

    def __init__(self, pixels: int):
        super().__init__()
        self.hidden, self.out = nn.Linear(pixels, 64), nn.Linear(64, len(SHAPES))
        self.lif = snntorch.Leaky(beta=0.8)
        self.readout = snntorch.Leaky(beta=0.9, reset_mechanism="none")

    def forward(self, frames: Tensor) -> Tensor:
        hidden, out = self.lif.reset_mem(), self.readout.reset_mem()
        for frame in frames.flatten(2).unbind(1):
            spikes, hidden = self.lif(self.hidden(frame), hidden)
            _, out = self.readout(self.out(spikes), out)
        return out


def shape_number(sweep: dict[str, str]) -> int:
    return SHAPES.index(sweep["actors.0.shape"])


def main(count: int, epochs: int, folder: Path) -> None:
    torch.manual_seed(0)
    config = gerd.parse(CONFIG)
    gerd.generate(config, folder / "shapes", count, workers=1)
    data = gerd.Dataset(folder / "shapes", "events", "sweep", target_transform=shape_number)
    data.transform = tonic.transforms.Compose([
        tonic.transforms.Denoise(filter_time=3 * data.step_us),
        # Tonic's other forms of ToFrame drop or shift frames.
        tonic.transforms.ToFrame(
            data.sensor_size, time_window=data.step_us, start_time=0, end_time=config.steps * data.step_us
        ),
    ])  # fmt: skip
    train, test = data.split(0.8, 0.2)
    train = tonic.DiskCachedDataset(train, str(folder / "train"))
    test = tonic.DiskCachedDataset(test, str(folder / "test"))
    network = Spiking(2 * 32 * 32)
    optimiser = torch.optim.Adam(network.parameters(), 0.002)

    def wrong() -> float:
        with torch.no_grad():
            frames, shapes = next(iter(DataLoader(test, len(test))))
            return float((network(frames.float()).argmax(1) != shapes).float().mean())

    print(f"before training: {wrong():.0%} wrong")
    for _ in range(epochs):
        for frames, shapes in DataLoader(train, 16, shuffle=True):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(frames.float()), shapes).backward()
            optimiser.step()
    print(f"after training: {wrong():.0%} wrong")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=150, help="recordings of each shape")
    parser.add_argument("--epochs", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

"""Tonic's transforms and cache, and a spiking network of snnTorch that tells a square from a circle and a triangle.

Needs the packages tonic and snntorch. Run it with `python examples/with_tonic.py`. It prints the share of shapes that
the network gets wrong, before and after training. It takes about 20 seconds on one core.
"""

from __future__ import annotations

from pathlib import Path

import snntorch
import tonic
from three_shapes import CONFIG, LONGER_AND_NOISY, SHAPES, of_the_actor, run, train
from torch import Tensor, nn
from torch.utils.data import DataLoader

import gerd


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


def main(count: int, epochs: int, folder: Path) -> None:
    config = gerd.parse(CONFIG, overrides=LONGER_AND_NOISY)
    gerd.generate(config, folder / "shapes", count, workers=1)
    data = gerd.Dataset(folder / "shapes", "events", "shape", target_transform=of_the_actor)
    data.transform = tonic.transforms.Compose([
        tonic.transforms.Denoise(filter_time=3 * data.step_us),
        # Tonic's other forms of ToFrame drop or shift frames.
        tonic.transforms.ToFrame(
            data.sensor_size, time_window=data.step_us, start_time=0, end_time=config.steps * data.step_us
        ),
    ])  # fmt: skip
    parts = zip(data.split(0.8, 0.2), ("seen", "unseen"), strict=True)
    seen, unseen = (tonic.DiskCachedDataset(part, str(folder / name)) for part, name in parts)
    test = next(iter(DataLoader(unseen, len(unseen))))
    network = Spiking(2 * 32 * 32)

    def answers(frames: Tensor) -> Tensor:
        return network(frames.float())

    train(network, answers, lambda: DataLoader(seen, 16, shuffle=True), test, rate=0.002, epochs=epochs)


if __name__ == "__main__":
    run(main, __doc__, count=450, epochs=10)

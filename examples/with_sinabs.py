"""A convolutional spiking network of Sinabs that tells a square from a circle and a triangle.

Needs the package sinabs, without the samna that it asks for and that only SynSense's chips need:
`pip install nir nirtorch pbr` and `pip install --no-deps sinabs`. Run it with `python examples/with_sinabs.py`. It
prints the share of shapes that the network gets wrong, before and after training.
It takes about 10 seconds on one core.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import sinabs
import sinabs.layers
from three_shapes import CONFIG, SHAPES, of_the_actor, run, train
from torch import Tensor, nn

import gerd

STEPS = 16


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
    gerd.generate(gerd.parse(CONFIG), folder / "shapes", count, workers=1)
    data = gerd.Dataset(folder / "shapes", label="shape", target_transform=of_the_actor)
    seen, unseen = data.split(0.8, 0.2)
    test = next(iter(unseen.loader(len(unseen))))
    network = made()
    train(network, partial(answers, network), lambda: seen.loader(16, shuffle=True), test, rate=0.01, epochs=epochs)


if __name__ == "__main__":
    run(main, __doc__, count=270, epochs=6)

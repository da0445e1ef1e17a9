"""A spiking network of Norse that tells a square from a circle and a triangle, trained on new recordings only.

Needs the package norse, without the torchvision that it asks for: `pip install nir nirtorch` and
`pip install --no-deps norse`. Run it with `python examples/with_norse.py`. It prints the share of shapes that the
network gets wrong, before and after training. It takes about 10 seconds on one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import norse.torch as norse
from three_shapes import CONFIG, SHAPES, Batch, run, train
from torch import Tensor, nn

import gerd

BATCH = 24


def with_class(batch: Batch) -> Batch:
    """Frames, and the class of the only actor of each recording."""
    frames, classes = batch
    return frames, classes[:, 0]


def answers(network: nn.Module, frames: Tensor) -> Tensor:
    """What the output neurons say after the last step."""
    by_step = frames.float().transpose(0, 1)  # (batch, steps, 2, height, width): Norse wants the steps first
    potentials, _state = network(by_step)
    return potentials[-1]


def main(count: int, epochs: int, _: Path) -> None:
    config = gerd.parse(CONFIG)
    stream = gerd.Stream(config, BATCH, label="shape")
    test = with_class(gerd.Stream(config, 90, label="shape", first=10**6).batch(0))
    network = norse.SequentialState(
        nn.Flatten(2), nn.Linear(2 * 32 * 32, 64), norse.LIF(), nn.Linear(64, len(SHAPES)), norse.LI()
    )
    new = count // BATCH  # batches in each epoch, of recordings that have not been there before

    def batches() -> Iterator[Batch]:
        return map(with_class, islice(stream, new))

    train(network, partial(answers, network), batches, test, rate=0.002, epochs=epochs)


if __name__ == "__main__":
    run(main, __doc__, count=1440, epochs=1)

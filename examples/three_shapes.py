"""What the examples with other libraries share: recordings of three shapes, and a training that shows what it gains.

It is no program of its own: `with_hugging_face.py`, `with_norse.py`, `with_sinabs.py` and `with_tonic.py` use it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

CONFIG = """
seed: 4
sensor: {width: 32, height: 32}
steps: 16
actors:
  - shape: {choice: [square, circle, triangle]}
    translation: {start: centre, velocity: {uniform: [-0.2, 0.2]}, acceleration: 0}
    scale: {start: {uniform: [14, 22]}, acceleration: 0}
    rotation: {start: 20, velocity: {choice: [-3, 3]}, acceleration: 0}
"""
LONGER_AND_NOISY = ("steps=24", "noise.background=0.002")  # overrides of the config
SHAPES = ["square", "circle", "triangle"]  # the classes, in the order of the config

Batch = tuple[Tensor, Tensor]  # frames (batch, steps, 2, height, width), and the classes (batch,)


def of_the_actor(classes: Tensor) -> Tensor:
    """The class of the only actor, from the label "shape", which has one for each."""
    return classes[0]


def train(
    network: nn.Module,
    answers: Callable[[Tensor], Tensor],
    batches: Callable[[], Iterable[Batch]],
    test: Batch,
    *,
    rate: float,
    epochs: int = 1,
) -> None:
    """Train `network` on `batches`; prints the share of shapes that `answers` gets wrong in `test`, before and after.

    `answers` gives (batch, shapes), the largest number for the shape that the network takes it for.
    """
    optimiser = torch.optim.Adam(network.parameters(), rate)

    def wrong() -> float:
        frames, shapes = test
        with torch.no_grad():
            return float((answers(frames).argmax(1) != shapes).float().mean())

    print(f"before training: {wrong():.0%} wrong")
    for _ in range(epochs):
        for frames, shapes in batches():
            optimiser.zero_grad()
            nn.functional.cross_entropy(answers(frames), shapes).backward()
            optimiser.step()
    print(f"after training: {wrong():.0%} wrong")


def run(main: Callable[[int, int, Path], None], about: str, *, count: int, epochs: int) -> None:
    """Call `main` with what the command line says, or these numbers, and a temporary folder."""
    torch.set_num_threads(1)  # the networks are small: more threads would wait for each other
    torch.manual_seed(0)
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--count", type=int, default=count, help="recordings to train and test with")
    parser.add_argument("--epochs", type=int, default=epochs)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

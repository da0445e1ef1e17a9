"""Training on all amounts together, with a validation after each epoch, and the errors at each amount.

The same number of updates for every network. The weights that count are those of the epoch with the smallest error in
validation. A file holds the state after each epoch, so that a training that was stopped goes on from there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from gerd.studies.lab.fitting import Recipe, Training, fit
from gerd.studies.lab.training import BETA, Data, Order, Size, joined
from gerd.studies.receptive_fields.networks import Network
from gerd.studies.receptive_fields.stimuli import FIRST_STEP, SHAPES, Scaling, places, simulated, stimuli

Array = NDArray[np.float64]
TESTED_AT_ONCE = 16  # recordings


class Material:
    """The recordings of one scaling on a device: for training, for validation and for the test, at each amount."""

    def __init__(self, scaling: Scaling, size: Size, seed: int, device: str):
        each = size.training // len(scaling.amounts)
        parts = []
        for amount in scaling.amounts:
            configs = [stimuli(scaling, amount, shape, size.side, seed) for shape in SHAPES]
            parts.append(simulated(configs, 0, each + 2 * size.tests, device))
        self.training = joined([part[:each] for part in parts])
        self.validation = joined([part[each : each + size.tests] for part in parts])
        self.tests = [part[each + size.tests :] for part in parts]


def loss_of(network: Network, batch: Data) -> Tensor:
    """SmoothL1 on the places, in units of half the frame, at every step that counts."""
    height, width = batch.frames.shape[-2:]
    half = torch.tensor([width / 2, height / 2], device=batch.places.device)
    found = network(batch.frames, FIRST_STEP)
    return F.smooth_l1_loss(found / half, batch.places[:, FIRST_STEP:] / half, beta=BETA)


def train(network: Network, data: Material, order: Order, seed: int, file: Path, title: str) -> Training:
    """Train `network` in place, to the weights that are best in validation."""
    size = order.size
    return fit(
        network,
        [data.training],
        lambda batch, _: loss_of(network, batch),
        Recipe(size.epochs, size.batch, size.rate),
        device=torch.device(order.device),
        seed=seed,
        file=file,
        title=title,
        error=lambda: float(errors(network, data.validation).mean()),
        deadline=order.deadline,
        say=order.say,
    )


@torch.no_grad()
def errors(network: Network, data: Data) -> Array:
    """(recordings,): distances from the truth in pixels, the mean over shapes and over the steps that count."""
    device = data.frames.device
    parts = []
    for rows in torch.arange(len(data), device=device).split(TESTED_AT_ONCE):
        batch = data[rows]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            found = network(batch.frames, FIRST_STEP)
        parts.append((found - batch.places[:, FIRST_STEP:]).norm(dim=-1).mean((1, 2)))
    return torch.cat(parts).cpu().double().numpy()


def errors_of_a_guess(scaling: Scaling, size: Size, seed: int) -> list[Array]:
    """For each amount (recordings,): the errors of always saying the mean place in training, for all shapes."""
    each = size.training // len(scaling.amounts)
    training, tests = [], []
    for amount in scaling.amounts:
        configs = [stimuli(scaling, amount, shape, size.side, seed) for shape in SHAPES]
        training.append(places(configs, 0, each)[:, FIRST_STEP:])
        tests.append(places(configs, each + size.tests, size.tests)[:, FIRST_STEP:])
    guess = np.mean(training, axis=(0, 1, 2, 3))
    return [np.linalg.norm(test - guess, axis=-1).mean((1, 2)) for test in tests]

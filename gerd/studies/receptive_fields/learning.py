"""Training on all amounts together, with a validation after each epoch, and the errors at each amount.

The same number of updates for every network. The weights that count are those of the epoch with the smallest error in
validation. A file holds the state after each epoch, so that a training that was stopped goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError
from gerd.storage.whole import written_whole
from gerd.studies.lab.training import BETA, CLIP, SEED_STRIDE, Data, Order, Size, joined, rounded
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


def train(
    network: Network, data: Material, order: Order, seed: int, file: Path, title: str
) -> tuple[list[float], float]:
    """Train `network` in place, to the weights that are best in validation.

    The result is the mean error in validation after each epoch, in pixels, and the seconds that all epochs took.
    """
    size, device, begun = order.size, torch.device(order.device), time.monotonic()
    torch.backends.cudnn.benchmark = True
    network.to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=size.rate)
    updates = -(-len(data.training) // size.batch) * size.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, size.rate, total_steps=max(2, updates))
    state = _resumed(network, optimiser, schedule, file, device)
    validated: list[float] = state["validated"]
    begun -= state["seconds"]
    seconds, best = state["seconds"], state["best"]
    for epoch in range(len(validated), size.epochs):
        order.deadline.check()
        draws = torch.Generator().manual_seed(seed * SEED_STRIDE + epoch)
        rows = torch.randperm(len(data.training), generator=draws).to(device)
        for some in rows.split(size.batch):
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                value = loss_of(network, data.training[some])
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
            schedule.step()
        error = float(errors(network, data.validation).mean())
        if not np.isfinite(error):
            raise GerdError(f"{title}: the error is not a number after epoch {epoch + 1}; try another seed")
        if not validated or error < min(validated):
            best = {name: value.detach().clone() for name, value in network.state_dict().items()}
        validated.append(error)
        seconds, left = time.monotonic() - begun, size.epochs - epoch - 1
        state = {"network": network.state_dict(), "best": best, "validated": validated, "seconds": seconds}
        if left:
            state |= {"optimiser": optimiser.state_dict(), "schedule": schedule.state_dict()}
        with written_whole(file) as temporary:
            torch.save(state, temporary)
        time_left = seconds / (epoch + 1) * left
        order.say(f"{title}: epoch {epoch + 1}/{size.epochs}, {error:.2f} px in validation, {time_left:.0f} s left")
    network.load_state_dict(best)
    return rounded(validated), round(seconds, 2)


def _resumed(network: Network, optimiser: Any, schedule: Any, file: Path, device: torch.device) -> Mapping[str, Any]:
    """What `file` has of the epochs that are over; the other arguments take their part of it."""
    if not file.exists():
        return {"validated": [], "seconds": 0.0, "best": network.state_dict()}
    try:
        state: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
    except Exception as error:  # whatever PyTorch raises for a file that is not its own
        raise GerdError(f"{file}: cannot be read; delete it to train anew: {str(error).splitlines()[0]}") from None
    network.load_state_dict(state["network"])
    if "optimiser" in state:
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
    return state


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
    """(recordings,) for each amount: likewise, of always saying the mean place in training, for all shapes."""
    each = size.training // len(scaling.amounts)
    training, tests = [], []
    for amount in scaling.amounts:
        configs = [stimuli(scaling, amount, shape, size.side, seed) for shape in SHAPES]
        training.append(places(configs, 0, each)[:, FIRST_STEP:])
        tests.append(places(configs, each + size.tests, size.tests)[:, FIRST_STEP:])
    guess = np.mean(training, axis=(0, 1, 2, 3))
    return [np.linalg.norm(test - guess, axis=-1).mean((1, 2)) for test in tests]

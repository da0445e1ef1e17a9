"""What the studies share: data on the device, training that survives a kill, errors in pixels.

A run is one network trained from one seed. Its state is written to a file after every epoch, and training goes on from
there when it is started again, to the same weights as without the interruption (on a GPU up to the rounding of sums
that are taken in any order). Nothing here needs more than PyTorch, so that a bare machine can do the computing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.events import backends
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation
from gerd.storage.whole import written_whole
from gerd.studies.models import Channels, Layers, Reading

NOTHING = Transformation("nothing", 0.0)
SIMULATED_AT_ONCE = 125  # recordings
TESTED_AT_ONCE = 25  # recordings
CLIP = 1.0  # the largest norm of a gradient
BETA = 0.1  # of SmoothL1, in units of half the frame
SMALLEST_SHARE = 1e-6  # of which a logarithm is taken
Say = Callable[[str], None]
Loss = Callable[[Reading, Tensor], Tensor]  # of what a network reads and where the shape is, in units of the frame


@dataclass(frozen=True)
class Size:
    """How much of everything a study takes."""

    side: int  # of the frame, pixels
    training: int  # recordings
    tests: int  # recordings for each amount
    epochs: int
    batch: int
    seeds: int  # networks of each kind
    layers: Layers
    first_step: int = 20  # losses and errors count from here on: before, the integrators are filling
    models: tuple[str, ...] = ()  # which of the study's networks; none named: all
    rate: float = 2e-3  # of learning, at its highest


FULL = Layers()
SMALL = Layers((2, 6, 12, 8, 8, 1), (5, 5, 5, 5, 5), (4, 1, 1, 1, 1))
TINY = Layers((2, 6, 4, 1), (5, 5, 5), (4, 1, 1))


@dataclass(frozen=True)
class Data:
    """Recordings on a device."""

    frames: Tensor  # bool (recordings, steps, 2, height, width)
    places: Tensor  # float32 (recordings, steps, 2): where the first actor is, in pixels

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, rows: Any) -> Data:
        return Data(self.frames[rows], self.places[rows])


class OutOfTimeError(GerdError):
    """The time that the user allowed is over; the same command goes on."""

    exit_code = 75


@dataclass(frozen=True)
class Deadline:
    """When to stop."""

    end: float = float("inf")  # seconds of the monotonic clock

    @classmethod
    def after(cls, minutes: float | None) -> Deadline:
        if minutes is not None and not 0 <= minutes < float("inf"):
            raise GerdError(f"minutes {minutes:g}: allowed is a number, 0 or more")
        return cls() if minutes is None else cls(time.monotonic() + 60 * minutes)

    def check(self) -> None:
        if time.monotonic() > self.end:
            raise OutOfTimeError("the time is over; the same command continues where this one has stopped")


@dataclass(frozen=True)
class Order:
    """What a study was asked to do: where to compute, from which seed, until when, and whom to tell."""

    size: Size
    device: str = "cpu"
    seed: int = 0
    deadline: Deadline = Deadline()
    say: Say = print
    command: str = ""  # that asks for the same


def recordings(config: Config, first: int, count: int, device: str, g: Transformation = NOTHING) -> Data:
    """Recordings `first` to `first + count - 1`, transformed: the draws are the same for every g."""
    parts = []
    for begin in range(first, first + count, SIMULATED_AT_ONCE):
        scenes = g(draw(config, range(begin, min(begin + SIMULATED_AT_ONCE, first + count))))
        places = scenes.trajectory.parameters(np.arange(scenes.steps))[:, 0, :, 0, :2]
        parts.append((backends.frames(scenes, device), torch.from_numpy(places).float().to(device)))
    return Data(*(torch.cat(column) for column in zip(*parts, strict=True)))


def place_loss(reading: Reading, truth: Tensor) -> Tensor:
    """SmoothL1 on the fused place."""
    return F.smooth_l1_loss(reading.place, truth, beta=BETA)


def anchored_loss(anchor: int, guidance: float = 0.1) -> Loss:
    """The channel `anchor` alone has to be right, and is the one to be chosen: the others get no own purpose."""

    def loss(reading: Reading, truth: Tensor) -> Tensor:
        right = F.smooth_l1_loss(reading.places[:, anchor], truth, beta=BETA)
        return right - guidance * reading.weights[:, anchor].clamp(min=SMALLEST_SHARE).log().mean()

    return loss


def train(
    network: Channels, data: Data, loss: Loss, order: Order, seed: int, file: Path, title: str
) -> tuple[Any, float]:
    """Train `network` in place. `file` holds its state after each epoch, also when it is finished.

    The result is the mean loss of each epoch, and how many seconds all epochs took.
    """
    size, device, begun = order.size, data.frames.device, time.monotonic()
    torch.backends.cudnn.benchmark = True  # the shapes stay the same: look for the fastest convolution once
    network.to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=size.rate)
    steps = max(2, -(-len(data) // size.batch) * size.epochs)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, size.rate, total_steps=steps)
    losses, seconds = _resumed(network, optimiser, schedule, file, device)
    begun -= seconds
    for epoch in range(len(losses), size.epochs):
        order.deadline.check()
        total = torch.zeros((), device=device)
        for batch in _batches(data, size.batch, seed, epoch):
            value = _loss_of(network, batch, loss, size.first_step)
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
            schedule.step()
            total += value.detach() * len(batch)
        losses.append(float(total) / len(data))
        if not np.isfinite(losses[-1]):
            raise GerdError(f"{title}: the loss is not a number after epoch {epoch + 1}; try another seed")
        seconds, left = time.monotonic() - begun, size.epochs - epoch - 1
        state = {"network": network.state_dict(), "losses": losses, "seconds": seconds}
        if left:
            state |= {"optimiser": optimiser.state_dict(), "schedule": schedule.state_dict()}
        with written_whole(file) as temporary:
            torch.save(state, temporary)
        time_left = seconds / (epoch + 1) * left
        order.say(f"{title}: epoch {epoch + 1}/{size.epochs}, loss {losses[-1]:.4f}, {time_left:.0f} s left")
    return rounded(losses, 6), round(seconds, 2)


def _resumed(network: Channels, optimiser: Any, schedule: Any, file: Path, device: Any) -> tuple[list[float], float]:
    """The losses and the seconds of the epochs that `file` has, whose state the other arguments take."""
    if not file.exists():
        return [], 0.0
    try:
        state: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
    except Exception as error:  # whatever PyTorch raises for a file that is not its own
        raise GerdError(f"{file}: cannot be read; delete it to train anew: {str(error).splitlines()[0]}") from None
    network.load_state_dict(state["network"])
    if "optimiser" in state:
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
    return state["losses"], state["seconds"]


def rounded(values: Any, digits: int = 4) -> Any:
    """Numbers as they are written: an array as lists."""
    return np.round(np.asarray(values, np.float64), digits).tolist()


def _batches(data: Data, size: int, seed: int, epoch: int) -> Iterator[Data]:
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed * 100_003 + epoch))
    for rows in order.to(data.frames.device).split(size):
        yield data[rows]


def _loss_of(network: Channels, batch: Data, loss: Loss, first_step: int) -> Tensor:
    height, width = batch.frames.shape[-2:]
    half = torch.tensor([width / 2, height / 2], device=batch.frames.device)
    with torch.autocast(batch.frames.device.type, torch.bfloat16, enabled=batch.frames.is_cuda):
        reading = network.read(batch.frames)
    late = slice(first_step, None)
    scaled = Reading(reading.place[:, late] / half, reading.places[:, :, late] / half, reading.weights[..., late])
    return loss(scaled, batch.places[:, late] / half)


@dataclass(frozen=True)
class Errors:
    """Distances from the truth in pixels, each the mean over the steps that count."""

    fused: NDArray[np.float64]  # (recordings,)
    channels: NDArray[np.float64]  # (channels, recordings): of each channel alone
    weights: NDArray[np.float64]  # (channels, recordings): its mean share in the fused heat map


@torch.no_grad()
def errors(network: Channels, data: Data, first_step: int) -> Errors:
    """How far off the network is in each recording."""
    network.to(data.frames.device)
    parts = []
    for rows in torch.arange(len(data), device=data.frames.device).split(TESTED_AT_ONCE):
        batch = data[rows]
        reading = network.read(batch.frames)
        truth = batch.places[:, first_step:]
        fused = (reading.place[:, first_step:] - truth).norm(dim=-1).mean(-1)
        channels = (reading.places[:, :, first_step:] - truth[:, None]).norm(dim=-1).mean(-1)
        parts.append((fused, channels.T, reading.weights[..., first_step:].mean(-1).T))
    fused, channels, weights = (torch.cat(part, dim=-1).double().cpu().numpy() for part in zip(*parts, strict=True))
    return Errors(fused, channels, weights)

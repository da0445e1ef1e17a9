"""What the studies share: stimuli, data on the device, training that survives a kill, errors in pixels.

A run is one network trained from one seed. Its state is written to a file after every epoch, and training goes on from
there when it is started again, to the same weights as without the interruption (on a GPU up to the rounding of sums
that are taken in any order). Nothing here needs more than PyTorch, so that a bare machine can do the computing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import GerdError
from gerd.events import backends
from gerd.measures.chance import chance_of
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation
from gerd.storage.whole import written_whole
from gerd.studies.models import Channels, Layers, TraceChannels

NOTHING = Transformation("nothing", 0.0)
SIMULATED_AT_ONCE = 125  # recordings
TESTED_AT_ONCE = 7500  # heat maps
INSTANTS = 40  # of a recording, at which a test looks
CLIP = 1.0  # the largest norm of a gradient
SEED_STRIDE = 100_003  # more than there are epochs: no two seeds draw the same in any of theirs
BETA = 0.1  # of SmoothL1, in units of half the frame
Say = Callable[[str], None]


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
    validation: int = 0  # recordings that choose the checkpoint; none: the last one counts
    rate: float = 2e-3  # of learning, at its highest
    conclusive: bool = True  # whether the numbers mean anything

    @property
    def first_test(self) -> int:
        """The number of the first recording that is neither for training nor for validation."""
        return self.training + self.validation

    @property
    def updates(self) -> int:
        """How often the weights of each network are changed in its training."""
        return -(-self.training // self.batch) * self.epochs


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

    def __getitem__(self, rows: Tensor | slice) -> Data:
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
            raise GerdError(f"minutes {minutes:g}: allowed: a number, 0 or more")
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


def square(
    side: int, seed: int, steps: int, noise: Mapping[str, float], timing: str = "step", **motion: Mapping[str, object]
) -> Config:
    """The stimuli: a square in a frame of `side` pixels; `motion` has its transformations as a config has them."""
    actor = {"shape": "square", **{name: {"acceleration": 0, **fields} for name, fields in motion.items()}}
    sensor = {"width": side, "height": side}
    return parse({"seed": seed, "sensor": sensor, "steps": steps, "timing": timing, "noise": noise, "actors": [actor]})


def recordings(config: Config, first: int, count: int, device: str, g: Transformation = NOTHING) -> Data:
    """Recordings `first` to `first + count - 1`, transformed: the draws are the same for every g."""
    parts = []
    for begin in range(first, first + count, SIMULATED_AT_ONCE):
        scenes = g(draw(plan_of(config), range(begin, min(begin + SIMULATED_AT_ONCE, first + count))))
        places = scenes.trajectory.parameters(np.arange(scenes.steps))[:, 0, :, 0, :2]
        parts.append(Data(backends.frames(scenes, device), torch.from_numpy(places).float().to(device)))
    return joined(parts)


def joined(parts: Sequence[Data]) -> Data:
    """Recordings of the same size, one after another."""
    return Data(torch.cat([part.frames for part in parts]), torch.cat([part.places for part in parts]))


Loss = Callable[[Any, Data, int, torch.Generator], Tensor]  # of a network, a batch, its first step that counts, draws


def place_loss(network: Channels, batch: Data, first_step: int, draws: torch.Generator) -> Tensor:  # noqa: ARG001
    """SmoothL1 on the fused place, at every step that counts."""
    return _distance(network.read(batch.frames).place[:, first_step:], batch.places[:, first_step:], batch)


def abstaining_loss(anchor: int, others: Sequence[int], sampled: int, weight: float = 0.02) -> Loss:
    """The channel `anchor` has to be right and to speak; one of `others`, another one each time, has to be silent.

    Evidence speaks above 0, and is silent below. A batch is seen at `sampled` steps, other ones each time.
    """

    def loss(network: TraceChannels, batch: Data, first_step: int, draws: torch.Generator) -> Tensor:
        other = others[int(torch.randint(len(others), (), generator=draws))]
        late = torch.randperm(batch.frames.shape[1] - first_step, generator=draws)[:sampled] + first_step
        steps = late.sort().values.to(batch.frames.device)
        reading = network.read(batch.frames, [anchor, other], steps)
        right = _distance(reading.places[:, 0], batch.places[:, steps], batch)
        speaking = F.softplus(-reading.evidence[:, 0])
        silent = F.softplus(reading.evidence[:, 1])
        return right + weight * (speaking.mean() + silent.mean())

    return loss


def _distance(places: Tensor, truth: Tensor, batch: Data) -> Tensor:
    """SmoothL1, in units of half the frame."""
    height, width = batch.frames.shape[-2:]
    half = torch.stack([truth.new_full((), side / 2) for side in (width, height)])  # made on the device: no waiting
    return F.smooth_l1_loss(places / half, truth / half, beta=BETA)


class State(TypedDict, total=False):
    """What the file of a training holds."""

    losses: list[float]  # one for each epoch that is finished
    validation: list[float]
    seconds: float
    network: dict[str, Tensor]  # weights
    best: dict[str, Tensor]  # those of the epoch with the smallest error in the validation
    optimiser: dict[str, object]  # this and the next only while epochs are left
    schedule: dict[str, object]


@dataclass(frozen=True)
class Training:
    """What a training was like, one number for each epoch."""

    losses: tuple[float, ...]  # means over the recordings
    validation: tuple[float, ...]  # mean errors in pixels after the epoch; empty without recordings for validation
    seconds: float  # of all epochs together


def train(
    network: Channels,
    data: Data,
    loss: Loss,
    order: Order,
    seed: int,
    file: Path,
    title: str,
    validation: Data | None = None,
) -> Training:
    """Train `network` in place. `file` holds its state after each epoch, also when it is finished.

    With recordings for validation, the network ends with the weights of the epoch whose mean error on them is the
    smallest, and so does the file; without, with those of the last epoch.
    """
    size = order.size
    device = data.frames.device
    begun = time.monotonic()
    torch.backends.cudnn.benchmark = True  # the shapes stay the same: look for the fastest convolution once
    network.to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=size.rate)
    steps = max(2, -(-len(data) // size.batch) * size.epochs)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, size.rate, total_steps=steps)
    state = _resumed(network, optimiser, schedule, file, device)
    begun -= state["seconds"]
    for epoch in range(len(state["losses"]), size.epochs):
        order.deadline.check()
        draws = torch.Generator().manual_seed(seed * SEED_STRIDE + epoch)
        state["losses"].append(_epoch(network, data, loss, size, draws, optimiser, schedule))
        if not np.isfinite(state["losses"][-1]):
            raise GerdError(f"{title}: the loss is not a number after epoch {epoch + 1}; try another seed")
        if validation is not None:
            _validate(network, validation, size.first_step, state)
        left = size.epochs - epoch - 1
        if left:
            state |= {"optimiser": optimiser.state_dict(), "schedule": schedule.state_dict()}
        else:
            _end(network, state)
        state |= {"network": network.state_dict(), "seconds": time.monotonic() - begun}
        with written_whole(file) as temporary:
            torch.save(state, temporary)
        order.say(f"{title}: epoch {epoch + 1}/{size.epochs}, {_progress(state, left)}")
    losses = rounded(state["losses"], 6)
    errors_in_px = rounded(state["validation"])
    return Training(tuple(losses), tuple(errors_in_px), round(state["seconds"], 2))


def _epoch(
    network: Channels,
    data: Data,
    loss: Loss,
    size: Size,
    draws: torch.Generator,
    optimiser: Optimizer,
    schedule: LRScheduler,
) -> float:
    """One epoch of training; the mean loss."""
    device = data.frames.device
    total = torch.zeros((), device=device)
    for batch in batches(data, size.batch, draws):
        with _in_training_precision(device):
            value = loss(network, batch, size.first_step, draws)
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        total += value.detach() * len(batch)
    return float(total) / len(data)


def _validate(network: Channels, data: Data, first_step: int, state: State) -> None:
    """Add the error of this epoch to the state, and the weights, if they are the best so far."""
    with _in_training_precision(data.frames.device):
        error = float(errors(network, data, first_step).fused.mean())
    if error < min(state["validation"], default=float("inf")):
        state["best"] = {name: value.clone() for name, value in network.state_dict().items()}
    state["validation"].append(error)


def _end(network: Channels, state: State) -> None:
    """What a finished training leaves: the best weights, and nothing to go on with."""
    if "best" in state:
        network.load_state_dict(state.pop("best"))
    state.pop("optimiser", None)
    state.pop("schedule", None)


def _progress(state: State, left: int) -> str:
    """The last epoch in words."""
    error = f", validation {state['validation'][-1]:.2f} px" if state["validation"] else ""
    time_left = state["seconds"] / len(state["losses"]) * left
    return f"loss {state['losses'][-1]:.4f}{error}, {time_left:.0f} s left"


def _in_training_precision(device: torch.device) -> torch.autocast:
    """On a GPU bfloat16, except where a network says otherwise."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def _resumed(network: Channels, optimiser: Optimizer, schedule: LRScheduler, file: Path, device: torch.device) -> State:
    """What `file` has of the epochs so far; its state goes into the other arguments."""
    if not file.exists():
        return {"losses": [], "validation": [], "seconds": 0.0}
    state = load_weights(network, file, device)
    if "optimiser" in state:
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
    return state


def load_weights(network: Channels, file: Path, device: torch.device | str) -> State:
    """Put the weights of a file that `train` has written into a network, on a device; all that the file has."""
    try:
        state: State = torch.load(file, map_location=device, weights_only=True)
    except Exception as error:  # whatever PyTorch raises for a file that is not its own
        raise GerdError(f"{file}: cannot be read; delete it to train anew: {str(error).splitlines()[0]}") from None
    network.to(device).load_state_dict(state["network"])
    return state


def rounded(values: ArrayLike, digits: int = 4) -> Any:
    """Numbers as they are written to a file: one number, or an array as lists, nested as deep as it has axes."""
    return np.round(np.asarray(values, np.float64), digits).tolist()


def batches(data: Data, size: int, draws: torch.Generator) -> Iterator[Data]:
    order = torch.randperm(len(data), generator=draws)
    for rows in order.to(data.frames.device).split(size):
        yield data[rows]


@dataclass(frozen=True)
class Errors:
    """Distances from the truth in pixels, each the mean over the steps that count."""

    fused: NDArray[np.float64]  # (recordings,)
    channels: NDArray[np.float64]  # (channels, recordings): of each channel alone
    weights: NDArray[np.float64]  # (channels, recordings): its mean share in the fused heat map
    chance: NDArray[np.float64]  # (recordings,): of the best answer that is the same for every recording


@torch.no_grad()
def errors(network: Channels, data: Data, first_step: int) -> Errors:
    """How far off the network is in each recording, at up to INSTANTS steps, evenly spaced from `first_step` on."""
    network.to(data.frames.device)
    total = data.frames.shape[1]
    steps = torch.linspace(first_step, total - 1, min(INSTANTS, total - first_step)).round().long()
    steps = steps.to(data.frames.device)
    parts = []
    at_once = max(1, TESTED_AT_ONCE // (len(network) * total))
    for rows in torch.arange(len(data), device=data.frames.device).split(at_once):
        batch = data[rows]
        reading = network.read_at(batch.frames, steps)
        truth = batch.places[:, steps]
        fused = (reading.place - truth).norm(dim=-1).mean(-1)
        channels = (reading.places - truth[:, None]).norm(dim=-1).mean(-1)
        parts.append((fused, channels.T, reading.weights.mean(-1).T))
    fused, channels, weights = (torch.cat(part, dim=-1).cpu().double().numpy() for part in zip(*parts, strict=True))
    return Errors(fused, channels, weights, chance_of(data.places[:, steps].cpu().double().numpy()))

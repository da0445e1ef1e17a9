"""What the studies share: stimuli, data on the device, losses, errors in pixels.

A run is one network trained from one seed. Nothing here needs more than PyTorch, so that a bare machine can do the
computing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from gerd.config.config import Config
from gerd.config.load import parse
from gerd.events import backends
from gerd.measures.chance import chance_of
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation
from gerd.studies.lab.fitting import Deadline, Recipe, Say, Training, fit
from gerd.studies.models import Channels, Layers, TraceChannels

NOTHING = Transformation("nothing", 0.0)
SIMULATED_AT_ONCE = 125  # recordings
TESTED_AT_ONCE = 7500  # heat maps
INSTANTS = 40  # of a recording, at which a test looks
BETA = 0.1  # of SmoothL1, in units of half the frame


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


@dataclass(frozen=True)
class Order:
    """What a study was asked to do: where to compute, from which seed, until when, and whom to tell."""

    size: Size
    device: str = "cpu"
    seed: int = 0
    deadline: Deadline = Deadline()  # noqa: RUF009
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
    """Train `network` in place, as `fit` says; with recordings for validation, their mean error in pixels chooses."""
    size = order.size
    error = None
    if validation is not None:
        error = lambda: float(errors(network, validation, size.first_step).fused.mean())  # noqa: E731
    return fit(
        network,
        [data],
        lambda batch, draws: loss(network, batch, size.first_step, draws),
        Recipe(size.epochs, size.batch, size.rate),
        device=data.frames.device,
        seed=seed,
        file=file,
        title=title,
        error=error,
        deadline=order.deadline,
        say=order.say,
    )


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

"""The baselines: a name and a task in, an untrained network out.

Each network is a way to see time, which gives maps of features at every step, and a head that makes the task's answer
of them. For `locate` there are the networks of `gerd.models`, too, which read a place from heat maps themselves.

    constant          the same for every recording
    relu-1, relu-8    convolutions and rectifiers, on one frame, or on the latest eight side by side
    li, lif           leaky integrators; leaky integrate-and-fire neurons with surrogate gradients; in four channels
    conv-gru          a gated recurrent unit in which products are convolutions
    five-channels     the paper's network: five time constants, whose heat maps are added up
    bank-time, bank-boost, bank-scale, bank-rotation    channels that are covariant under one group
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from gerd.bench.examples import EventArrays, Examples, recording_of
from gerd.bench.metrics import HALF, METRICS
from gerd.errors import GerdError, did_you_mean
from gerd.studies.lab.training import Data, abstaining_loss
from gerd.studies.models import (
    TIME_BANK,
    TIME_CONSTANTS,
    Layers,
    PoseChannels,
    ScaleChannels,
    TimeChannels,
    TraceChannels,
    VelocityChannels,
    place_of,
)
from gerd.studies.receptive_fields.networks import Design, Kind, Network

Loss = Callable[[nn.Module, Examples, torch.Generator], Tensor]
SIDE = 64  # of the frame, pixels
STEP_US = 1000
FEATURES = 12
COARSE = Layers((2, 8, FEATURES), (7, 5), (4, 1))  # of what asks for one answer at each step: maps of 16×16
FINE = Layers((2, 8, FEATURES), (5, 5), (2, 1))  # of what asks for one answer at each event: maps of 32×32
CHANNELS = Layers((2, 6, 12, 8, 8, 1), (5, 5, 5, 5, 5), (4, 1, 1, 1, 1))  # of the networks of `gerd.models`
KINDS: Mapping[str, Kind] = {"relu-1": "ReLU-1", "relu-8": "ReLU-8", "li": "LI", "lif": "LIF"}
OUTPUTS = {"locate": 2, "transform": 12, "classify": 10, "flow": 2, "noise": 1}
PER_EVENT = ("flow", "noise")
GRID = 8  # along each side, to which maps are averaged before all of them are looked at together
HIDDEN = 64
SAMPLED = 8  # steps at which a bank sees a recording in an epoch


@dataclass(frozen=True)
class Baseline:
    """A network by its name; `loss` is its own, where the task's would train what a bank must not learn."""

    name: str
    title: str
    build: Callable[[str, int], nn.Module]  # from a task and a seed
    tasks: tuple[str, ...] = tuple(METRICS)
    loss: Loss | None = None


class Constant(nn.Module):
    """The same answer, whatever it gets; the answer is what is learnt."""

    def __init__(self, task: str):
        super().__init__()
        self.task = task
        self.answer = nn.Parameter(torch.zeros(OUTPUTS[task]))

    def forward(self, inputs: Tensor | EventArrays) -> Tensor:
        if isinstance(inputs, Tensor):
            shape = (len(inputs),) if self.task == "classify" else inputs.shape[:2]
            return shaped(self.answer.expand(*shape, -1), self.task)
        return shaped(self.answer.expand(len(inputs["t"]), -1), self.task)


class ConvGRU(nn.Module):
    """Maps of a gated recurrent unit, in which products are convolutions, of what a convolution sees of each frame."""

    def __init__(self, layers: Layers):
        super().__init__()
        _, width, features = layers.widths
        seen, kernel = layers.kernels
        self.pool = layers.pools[0]
        self.seen = nn.Conv2d(2, width, seen, padding=seen // 2)
        self.gates = nn.Conv2d(width + features, 2 * features, kernel, padding=kernel // 2)
        self.new = nn.Conv2d(width + features, features, kernel, padding=kernel // 2)
        self.features = features

    def maps(self, frames: Tensor) -> Tensor:
        """(batch, 1, steps, rows, columns, features)."""
        flat = F.avg_pool2d(frames.flatten(0, 1).float(), self.pool)
        seen = F.relu(self.seen(flat)).unflatten(0, frames.shape[:2])
        state = seen.new_zeros(len(frames), self.features, *seen.shape[-2:])
        states = []
        for x in seen.unbind(1):
            update, reset = self.gates(torch.cat([x, state], 1)).sigmoid().chunk(2, 1)
            proposed = self.new(torch.cat([x, reset * state], 1)).tanh()
            state = state + update * (proposed - state)
            states.append(state)
        return torch.stack(states, 1).permute(0, 1, 3, 4, 2)[:, None]


class Placed(nn.Module):
    """The place of a shape: the expectation of a heat map that is made of a body's maps."""

    def __init__(self, body: ConvGRU):
        super().__init__()
        self.body = body
        self.heat = nn.Conv2d(body.features, 1, 5, padding=2)

    def forward(self, frames: Tensor) -> Tensor:
        maps = self.body.maps(frames)[:, 0].movedim(-1, 2)
        logits = self.heat(maps.flatten(0, 1))[:, 0].unflatten(0, frames.shape[:2])
        heat = logits.flatten(-2).softmax(-1).unflatten(-1, logits.shape[-2:])
        return place_of(heat, frames.shape[-1], frames.shape[-2])


class OnePlace(nn.Module):
    """A network that gives a place for each of several shapes, of which there is one."""

    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def forward(self, frames: Tensor) -> Tensor:
        places: Tensor = self.network(frames)
        return places[:, :, 0]


class Overall(nn.Module):
    """An answer that is made of all maps of a step together: of T and T′, or of a class, as the mean over the steps."""

    def __init__(self, body: ConvGRU | Network, task: str):
        super().__init__()
        self.body, self.task = body, task
        self.hidden = nn.Linear(GRID * GRID * FEATURES, HIDDEN)
        self.last = nn.Linear(HIDDEN, OUTPUTS[task])

    def forward(self, frames: Tensor) -> Tensor:
        maps = self.body.maps(frames)[:, 0].movedim(-1, 2)
        x = F.adaptive_avg_pool2d(maps.flatten(0, 1), GRID).flatten(1)
        x = self.last(F.relu(self.hidden(x))).unflatten(0, frames.shape[:2])
        return shaped(x[:, len(x[0]) // 3 :].mean(1) if self.task == "classify" else x, self.task)


class AtEvents(nn.Module):
    """An answer for each event, made of the maps of its step at its place, of its polarity, and of where it is."""

    def __init__(self, body: ConvGRU | Network, task: str):
        super().__init__()
        self.body, self.task = body, task
        self.hidden = nn.Linear(FEATURES + 3, HIDDEN)
        self.last = nn.Linear(HIDDEN, OUTPUTS[task])

    def forward(self, events: EventArrays) -> Tensor:
        frames, of, step = frames_of(events)
        maps = self.body.maps(frames)[:, 0]
        x, y, p = (events[name].long() for name in ("x", "y", "p"))
        rows, columns = maps.shape[2:4]
        seen = maps[of, step, y * rows // SIDE, x * columns // SIDE]
        place = torch.stack([x / HALF - 1, y / HALF - 1, p * 2.0 - 1], -1)
        return shaped(self.last(F.relu(self.hidden(torch.cat([seen, place], -1)))), self.task)


def frames_of(events: EventArrays) -> tuple[Tensor, Tensor, Tensor]:
    """Frames (recordings, steps, 2, height, width) of events, and the recording and the step of each event."""
    of, step = recording_of(events), (events["t"] // STEP_US).long()
    steps = int(step.max()) + 1 if len(step) else 1
    frames = torch.zeros(len(events["offsets"]) - 1, steps, 2, SIDE, SIDE, device=step.device)
    frames[of, step, events["p"].long(), events["y"].long(), events["x"].long()] = 1
    return frames, of, step


def shaped(x: Tensor, task: str) -> Tensor:
    """The last numbers of a network (…, outputs) as an answer of the task, in its units."""
    if task == "locate":
        return HALF + HALF * x
    if task == "transform":
        T, T_velocity = x.unflatten(-1, (2, 2, 3)).unbind(-3)
        size = x.new_tensor([HALF / 2, HALF / 2, HALF])
        return torch.stack([size * T + x.new_tensor([0.0, 0.0, HALF]), T_velocity], -3)
    return x[..., 0] if task == "noise" else x


def _constant(task: str, seed: int) -> nn.Module:  # noqa: ARG001
    return Constant(task)


def _body(name: str, task: str, seed: int) -> ConvGRU | Network:
    layers = FINE if task in PER_EVENT else COARSE
    if name == "conv-gru":
        return ConvGRU(layers)
    return Network(Design(KINDS[name], "receptive fields", layers), seed, reads=False)


def _with_head(name: str, task: str, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):  # PyTorch's own layers begin with what the global generator says
        torch.manual_seed(seed)
        if task in PER_EVENT:
            return AtEvents(_body(name, task, seed), task)
        if task != "locate":
            return Overall(_body(name, task, seed), task)
        if name == "conv-gru":
            return Placed(ConvGRU(COARSE))
    single = Layers((*COARSE.widths, 1), (*COARSE.kernels, 5), (*COARSE.pools, 1))
    return OnePlace(Network(Design(KINDS[name], "receptive fields", single), seed))


def _five_channels(task: str, seed: int) -> nn.Module:  # noqa: ARG001
    return ScaleChannels(TIME_CONSTANTS, layers=CHANNELS, seed=seed)


def _bank(make: Callable[..., TraceChannels], task: str, seed: int) -> nn.Module:  # noqa: ARG001
    return make(layers=CHANNELS, seed=seed)


def _apart(anchor: int, others: list[int]) -> Loss:
    """The loss that makes channels abstain which suit other amounts than that of the training."""
    own = abstaining_loss(anchor, others, SAMPLED)

    def loss(network: nn.Module, examples: Examples, draws: torch.Generator) -> Tensor:
        return own(network, Data(examples.inputs, examples.truth), examples.first_step, draws)

    return loss


BOOSTS = tuple(k / 4 for k in range(-6, 7))  # px per step along x
FACTORS = tuple(2.0 ** (k / 4) for k in range(-6, 7))
ANGLES = tuple(11.25 * k for k in range(8))  # degrees; a square is the same after 90
ANCHOR = TIME_BANK.index(TIME_CONSTANTS[2])


def _away(count: int, anchor: int, by: int) -> list[int]:
    """The channels of `count` that are so many away from the anchor, or more."""
    return [k for k in range(count) if abs(k - anchor) >= by]


NETWORKS = {
    "relu-1": "ReLU on one frame",
    "relu-8": "ReLU on eight frames",
    "li": "leaky integrators",
    "lif": "LIF, surrogate gradients",
    "conv-gru": "ConvGRU",
}
BASELINES: Mapping[str, Baseline] = {
    each.name: each
    for each in (
        Baseline("constant", "constant", _constant),
        *(Baseline(name, title, partial(_with_head, name)) for name, title in NETWORKS.items()),
        Baseline("five-channels", "the paper's five channels", _five_channels, ("locate",)),
        Baseline(
            "bank-time",
            "bank of time constants",
            partial(_bank, TimeChannels),
            ("locate",),
            _apart(ANCHOR, _away(len(TIME_BANK), ANCHOR, 2)),
        ),
        Baseline(
            "bank-boost",
            "bank of velocities",
            partial(_bank, partial(VelocityChannels, [(u, 0.0) for u in BOOSTS])),
            ("locate",),
            _apart(BOOSTS.index(0.0), _away(len(BOOSTS), BOOSTS.index(0.0), 3)),
        ),
        Baseline(
            "bank-scale",
            "bank of scales",
            partial(_bank, partial(PoseChannels, [(factor, 0.0) for factor in FACTORS])),
            ("locate",),
            _apart(FACTORS.index(1.0), _away(len(FACTORS), FACTORS.index(1.0), 2)),
        ),
        Baseline(
            "bank-rotation",
            "bank of angles",
            partial(_bank, partial(PoseChannels, [(1.0, angle) for angle in ANGLES])),
            ("locate",),
            _apart(0, list(range(2, len(ANGLES) - 1))),
        ),
    )
}


def baseline(name: str, task: str) -> Baseline:
    """A baseline by its name, if there is one for the task."""
    found = BASELINES.get(name)
    if found is None or task not in found.tasks:
        names = [each.name for each in BASELINES.values() if task in each.tasks]
        allowed = f"{', '.join(names)}, or module:function"
        raise GerdError(f"baseline {name!r}: {did_you_mean([name], names)}allowed for {task}: {allowed}")
    return found

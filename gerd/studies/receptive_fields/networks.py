"""The four networks, with either initialisation: event frames in, a place for each shape out, at every step.

    frames (batch, steps, 2, height, width)  →  places (batch, steps, shapes, 2), x and y in pixels

Three convolutions, each behind a pooling by two and each before the network's own way to see time; a last convolution;
and of each heat map the expectation. What differs is how a layer sees time:

    ReLU-1, ReLU-8   not at all: a rectifier; the first layer gets one frame, or the latest eight side by side
    LI               leaky integrators and a rectifier, in four channels that share all convolutions
    LIF              leaky integrate-and-fire neurons in the same four channels

The channels differ in their time constants, which are learnt, and the means of their last layers are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from gerd.studies.models import Layers, gaussian_derivatives, place_of
from gerd.studies.receptive_fields.neurons import spikes, voltages

Kind = Literal["ReLU-1", "ReLU-8", "LI", "LIF"]
Start = Literal["receptive fields", "uniform"]
KINDS: tuple[Kind, ...] = ("LI", "LIF", "ReLU-8", "ReLU-1")  # from the smallest published error to the largest
STARTS: tuple[Start, ...] = ("receptive fields", "uniform")
STACKED = {"ReLU-1": 1, "ReLU-8": 8}  # frames that a network without time sees at once
OCTAVES = (5.5, 11.0, 22.0, 44.0)  # time constants in steps
SIGMAS = (0.7, 1.0, 1.4, 2.0)  # of the Gaussians, in pixels of the layer's grid
READ_BY = 5  # pixels of the last grid along a side: the last convolution


@dataclass(frozen=True)
class Design:
    """What one of the networks is."""

    kind: Kind
    start: Start
    layers: Layers

    @property
    def temporal(self) -> bool:
        return self.kind not in STACKED


class Network(nn.Module):
    """A network of one design; `seed` decides its initial weights. One that does not read has `maps` only."""

    def __init__(self, design: Design, seed: int = 0, reads: bool = True):
        super().__init__()
        self.design = design
        layers = design.layers
        draws = torch.Generator().manual_seed(seed)
        widths = [layers.widths[0] * STACKED.get(design.kind, 1), *layers.widths[1:]]
        kernels = [*layers.kernels]
        if reads:
            widths, kernels = [*widths, layers.widths[-1]], [*kernels, READ_BY]
        self.weights = nn.ParameterList(
            nn.Parameter(initial(design.start, inputs, outputs, size, draws))
            for (inputs, outputs), size in zip(pairwise(widths), kernels, strict=True)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for width in widths[1:])
        self.log_last: nn.Parameter | None = None
        if design.temporal:
            constants = time_constants(design.start, draws)
            self.log_constants = nn.Parameter(constants.log())
            if reads:
                self.log_last = nn.Parameter(constants.min().log().reshape(1))  # of the last layer

    def learnt(self) -> tuple[float, ...]:
        """The channels' time constants in steps, and that of the last layer."""
        if not self.design.temporal:
            return ()
        last = () if self.log_last is None else (self.log_last.exp().item(),)
        return (*self.log_constants.exp().tolist(), *last)

    def forward(self, frames: Tensor, first_step: int = 0) -> Tensor:
        """Places from `first_step` on."""
        height, width = frames.shape[-2:]
        x = self.maps(frames, first_step)
        with torch.autocast(x.device.type, enabled=False):  # the heat maps are exponentiated: in full precision
            x = self._convolved(x, len(self.weights) - 1)
            if self.log_last is not None:
                x = voltages(x, leaks(self.log_last))
            logits = x[:, 0].movedim(-1, 2)
            heat = logits.flatten(-2).softmax(-1).unflatten(-1, logits.shape[-2:])
            places = place_of(heat, width, height)
            return places[:, first_step:] if self.design.temporal else places

    def maps(self, frames: Tensor, first_step: int = 0) -> Tensor:
        """(batch, 1, steps, rows, columns, features) of the last layer but one, the mean of the channels.

        Those of a network without time begin with `first_step`; the others need all steps, and have them.
        """
        x = self._features(frames)
        x = x if self.design.temporal else x[:, :, first_step:]  # what came before is not seen again
        for number, pool in enumerate(self.design.layers.pools):
            x = self._convolved(self._pooled(x, pool), number)
            x = self._over_time(x)
        return x.float().mean(1, keepdim=True)

    def _features(self, frames: Tensor) -> Tensor:
        """(batch, 1, steps, rows, columns, features); before the first frame there is nothing."""
        count = STACKED.get(self.design.kind, 1)
        steps = frames.shape[1]
        device = frames.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else self.weights[0].dtype
        before = F.pad(frames, (0, 0, 0, 0, 0, 0, count - 1, 0)) if count > 1 else frames
        seen = torch.cat([before[:, late : late + steps] for late in range(count)], dim=2)
        return seen.permute(0, 1, 3, 4, 2).to(kind, memory_format=torch.contiguous_format)[:, None]

    def _pooled(self, x: Tensor, pool: int) -> Tensor:
        return x.unflatten(4, (-1, pool)).unflatten(3, (-1, pool)).mean((4, 6)) if pool > 1 else x

    def _convolved(self, x: Tensor, number: int) -> Tensor:
        weight = self.weights[number]
        bias = self.biases[number]
        flat = F.conv2d(x.flatten(0, 2).permute(0, 3, 1, 2), weight, bias, padding=weight.shape[-1] // 2)
        return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:3])

    def _over_time(self, x: Tensor) -> Tensor:
        if not self.design.temporal:
            return F.relu(x)
        if self.design.kind == "LI":
            return F.relu(voltages(x, leaks(self.log_constants)))
        return spikes(x, leaks(self.log_constants))


def leaks(log_constants: Tensor) -> Tensor:
    """What share of a voltage is lost in a step, from the logarithm of the time constant in steps."""
    return 1 - torch.exp(-torch.exp(-log_constants))


def initial(start: Start, inputs: int, outputs: int, size: int, draws: torch.Generator) -> Tensor:
    """Weights (outputs, inputs, size, size); either way they have He's variance, so that only their form differs.

    A receptive field is a Gaussian or a derivative of one. An output has the same field for all of its inputs, each
    times a random number.
    """
    if start == "uniform":
        limit = (6.0 / (inputs * size * size)) ** 0.5
        return (2 * torch.rand(outputs, inputs, size, size, generator=draws) - 1) * limit
    bank = gaussian_derivatives(size, SIGMAS)
    fields = bank[torch.arange(outputs) % len(bank)][:, None]
    mix = torch.randn(outputs, inputs, 1, 1, generator=draws) * (2.0 / inputs) ** 0.5
    return fields * mix


def time_constants(start: Start, draws: torch.Generator) -> Tensor:
    """In steps: octaves, or as many whose rates are uniform between those of the shortest and the longest octave."""
    octaves = torch.tensor(OCTAVES)
    if start == "receptive fields":
        return octaves
    slowest, fastest = 1 / octaves.max(), 1 / octaves.min()
    return 1 / (slowest + (fastest - slowest) * torch.rand(len(octaves), generator=draws))

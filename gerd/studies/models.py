"""Small networks for studies: event frames in, the place of a shape in pixels out, at every step.

    frames (batch, steps, 2, height, width)  →  (x, y) (batch, steps, 2)

Five convolutions with leaky integrators between them give a heat map; (x, y) is its expectation. The same weights run
in several channels that differ in their time constant (`ScaleChannels`) or in the velocity along which they integrate
(`VelocityChannels`), and the channels' heat maps are fused into one. With a single channel they are the baseline.

A leaky integrator has the time constant μ in steps and α = exp(-1 / μ):

    unit gain   v ← α·v + (1 - α)·x      the mean of the past: keeps the amplitude of what changes slowly
    trace       v ← α·v + x              the sum of the past: counts events

A train of events that is run s times as fast is s·f(s·t), more events per step and fewer steps. Its trace at μ / s is
that of f at μ; its mean is not. So the first layer, which sees events, takes the trace, and the others the mean. Then a
channel with μ / s sees, at time scale s, what the channel with μ sees at 1, up to the grid of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from gerd.errors import GerdError

TIME_CONSTANTS = (1.25, 2.5, 5.0, 10.0, 20.0)  # steps; the middle one is that of the baseline
Fusion = Literal["evidence", "uniform"]


@dataclass(frozen=True)
class Layers:
    """Sizes of the convolutional layers."""

    widths: tuple[int, ...] = (2, 12, 36, 16, 16, 1)  # features before, between and after the layers
    kernels: tuple[int, ...] = (7, 7, 9, 9, 9)  # pixels of the layer's own grid
    pools: tuple[int, ...] = (2, 2, 1, 1, 1)  # by how much the grid is made coarser before each layer

    def __post_init__(self) -> None:
        if not len(self.widths) - 1 == len(self.kernels) == len(self.pools) >= 2:
            raise GerdError(f"{self}: allowed is one kernel and one pool for each layer, and one width more")
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise GerdError(f"kernels {self.kernels}: allowed are odd sizes, which have a middle")


@dataclass(frozen=True)
class Reading:
    """What a network says, and how it comes to it."""

    place: Tensor  # (batch, steps, 2): x, y in pixels
    places: Tensor  # (batch, channels, steps, 2): of each channel alone
    weights: Tensor  # (batch, channels, steps): the share of each channel in the fused heat map; they sum to 1


def integration_matrices(mus: Tensor, steps: int, trace: bool = False) -> Tensor:
    """(channels, steps, steps): the leaky integrator with each time constant as a matrix over time."""
    step = torch.arange(steps, device=mus.device, dtype=torch.float64)
    age = step[:, None] - step
    past = torch.exp(-age.clamp(min=0) / mus[:, None, None]) * (age >= 0)
    return past if trace else past * (1.0 - torch.exp(-1.0 / mus))[:, None, None]


def integrate(x: Tensor, mus: Tensor, trace: bool = False) -> Tensor:
    """The leaky integrator over axis 2 of `x` (batch, channels or 1, steps, …), one time constant per channel.

    One multiplication by a triangular matrix does all steps.
    """
    matrices = integration_matrices(mus.double(), x.shape[2], trace).to(x.dtype)
    if x.shape[1] == 1:  # all channels see the same: one matrix for all of them, and no copies
        flat = (matrices.flatten(0, 1) @ x[:, 0].flatten(2)).unflatten(1, matrices.shape[:2])
    else:
        flat = matrices @ x.flatten(3)
    return flat.unflatten(3, x.shape[3:])


def gaussian_derivatives(size: int, sigmas: Sequence[float] = (1.0, 1.6)) -> Tensor:
    """(6 · sigmas, size, size): a Gaussian and its derivatives up to the second order, each of norm 1."""
    x = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    kernels = []
    for sigma in sigmas:
        bell = torch.exp(-x * x / (2 * sigma * sigma))
        orders = (bell, -x / sigma**2 * bell, (x * x / sigma**4 - 1 / sigma**2) * bell)
        kernels += [orders[down][:, None] * orders[right] for down, right in _ORDERS]
    return torch.stack([kernel / kernel.norm() for kernel in kernels]).float()


_ORDERS = ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0))  # of the derivatives by y and by x


def place_of(heat: Tensor, width: int, height: int) -> Tensor:
    """(…, 2): the expectation in pixels of a distribution (…, rows, columns) that covers the whole frame."""
    rows, columns = heat.shape[-2:]
    x = (torch.arange(columns, device=heat.device, dtype=heat.dtype) + 0.5) * (width / columns)
    y = (torch.arange(rows, device=heat.device, dtype=heat.dtype) + 0.5) * (height / rows)
    return torch.stack([(heat.sum(-2) * x).sum(-1), (heat.sum(-1) * y).sum(-1)], dim=-1)


class Channels(nn.Module):
    """Convolutions whose weights all channels share; how a channel integrates over time is for the subclass to say."""

    def __init__(self, layers: Layers, fusion: Fusion, seed: int):
        super().__init__()
        if fusion not in ("evidence", "uniform"):
            raise GerdError(f"fusion {fusion!r}: allowed: evidence, uniform")
        self.layers, self.fusion = layers, fusion
        draws = torch.Generator().manual_seed(seed)
        self.weights = nn.ParameterList(
            nn.Parameter(_initial(layers, number, draws)) for number in range(len(layers.kernels))
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for width in layers.widths[1:])

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, steps, 2): x and y in pixels."""
        return self.read(frames).place

    def read(self, frames: Tensor) -> Reading:
        """What all channels say, and what they say together."""
        height, width = frames.shape[-2:]
        return fused(self.logits(frames), width, height, self.fusion)

    def logits(self, frames: Tensor) -> Tensor:
        """(batch, channels, steps, rows, columns): the logarithm of each channel's heat map, up to a constant."""
        raise NotImplementedError

    def convolved(self, x: Tensor, number: int) -> Tensor:
        """Layer `number` without its bias; x (batch, channels, steps, rows, columns, features), as is the result.

        Features come last in memory, so that convolutions are fast and integration over time needs no copy.
        """
        flat = x.flatten(0, 2).permute(0, 3, 1, 2)
        pool, kernel = self.layers.pools[number], self.layers.kernels[number]
        flat = F.max_pool2d(flat, pool) if pool > 1 else flat
        flat = F.conv2d(flat, self.weights[number], padding=kernel // 2)
        return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:3])


class ScaleChannels(Channels):
    """Channels that differ in the time constant of all their leaky integrators: covariant under time scaling."""

    mus: Tensor

    def __init__(
        self,
        mus: Sequence[float] = TIME_CONSTANTS,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        if not mus or not all(0 < mu < float("inf") for mu in mus):
            raise GerdError(f"mus {mus}: allowed are positive time constants in steps, one or more")
        self.register_buffer("mus", torch.tensor(mus, dtype=torch.float64), persistent=False)

    def logits(self, frames: Tensor) -> Tensor:
        x = _as_features(frames, self.weights[0])
        last = len(self.weights) - 1
        for number in range(last):
            x = integrate(self.convolved(x, number), self.mus, trace=number == 0)
            x = F.relu(x + self.biases[number].to(x.dtype))
        return _summed(self, x, last)


class VelocityChannels(Channels):
    """Channels that integrate events along different velocities: covariant under a Galilean boost.

    Each channel keeps a trace that moves by its velocity in each step; without an own motion in that frame an edge
    leaves no smear. The convolutions see the traces of one step at a time.
    """

    def __init__(
        self,
        velocities: Sequence[tuple[int, int]],
        mu: float = 5.0,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        if not velocities or any(part != int(part) for velocity in velocities for part in velocity):
            raise GerdError(f"velocities {velocities}: allowed are pairs (x, y) of whole pixels per step, one or more")
        self.velocities, self.mu = [(int(x), int(y)) for x, y in velocities], mu

    def logits(self, frames: Tensor) -> Tensor:
        x = _as_features(frames, self.weights[0])[:, 0]
        x = torch.stack([moving_trace(x, self.mu, velocity) for velocity in self.velocities], dim=1)
        last = len(self.weights) - 1
        for number in range(last):
            x = F.relu(self.convolved(x, number) + self.biases[number].to(x.dtype))
        return _summed(self, x, last)


def moving_trace(x: Tensor, mu: float, velocity: tuple[int, int]) -> Tensor:
    """v ← α · (v moved by `velocity` whole pixels) + x, over axis 1 of x (batch, steps, rows, columns, features)."""
    alpha = float(torch.exp(torch.tensor(-1.0 / mu, dtype=torch.float64)))
    state, states = torch.zeros_like(x[:, 0]), []
    right, down = velocity
    for step in range(x.shape[1]):
        moved = F.pad(state, (0, 0, max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)))
        moved = moved[:, max(-down, 0) :, max(-right, 0) :][:, : x.shape[2], : x.shape[3]]
        state = alpha * moved + x[:, step]
        states.append(state)
    return torch.stack(states, dim=1)


def fused(logits: Tensor, width: int, height: int, fusion: Fusion) -> Reading:
    """Heat maps (batch, channels, steps, rows, columns) to places.

    With `evidence` the fused map is the softmax over all pixels of all channels at once, that is Σ wₖ·pₖ with the
    weights wₖ ∝ Σ exp(logits): a channel that is surer of its place counts for more. With `uniform` all count the same.
    """
    evidence = logits.flatten(-2).logsumexp(-1)
    heat = torch.exp(logits - evidence[..., None, None])
    weights = evidence.softmax(dim=1) if fusion == "evidence" else torch.full_like(evidence, 1 / logits.shape[1])
    places = place_of(heat, width, height)
    return Reading((weights[..., None] * places).sum(1), places, weights)


def _as_features(frames: Tensor, like: Tensor) -> Tensor:
    """(batch, 1, steps, rows, columns, 2) in the type that the network computes in."""
    if frames.ndim != 5 or frames.shape[2] != like.shape[1]:
        shape, polarities = tuple(frames.shape), like.shape[1]
        raise GerdError(f"frames of shape {shape}: allowed: (batch, steps, {polarities}, height, width)")
    kind = torch.get_autocast_dtype(frames.device.type) if torch.is_autocast_enabled(frames.device.type) else like.dtype
    return frames.permute(0, 1, 3, 4, 2).to(kind, memory_format=torch.contiguous_format)[:, None]


def _summed(network: Channels, x: Tensor, last: int) -> Tensor:
    """The last layer, in full precision: its result is exponentiated."""
    with torch.autocast(x.device.type, enabled=False):
        logits = network.convolved(x.to(network.weights[last].dtype), last) + network.biases[last]
    return logits[..., 0].float()


def _initial(layers: Layers, number: int, draws: torch.Generator) -> Tensor:
    """Weights of a layer: Gaussian derivatives in the first two, mixed at random, and He's normal in the others."""
    inputs, outputs, size = layers.widths[number], layers.widths[number + 1], layers.kernels[number]
    if number > 1:
        scale = (2.0 / (inputs * size * size)) ** 0.5
        return torch.randn(outputs, inputs, size, size, generator=draws) * scale
    bank = gaussian_derivatives(size)
    fields = bank[torch.arange(outputs) % len(bank)][:, None]
    mix = torch.randn(outputs, inputs, 1, 1, generator=draws) * (2.0 / inputs) ** 0.5
    return fields * mix

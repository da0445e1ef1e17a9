"""Convolutions whose weights all channels share, and how the channels' heat maps become one place in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from gerd.errors import GerdError

Fusion = Literal["weighted", "uniform", "evidence"]


@dataclass(frozen=True)
class Layers:
    """Sizes of the convolutional layers."""

    widths: tuple[int, ...] = (2, 12, 36, 16, 16, 1)  # features before, between and after the layers
    kernels: tuple[int, ...] = (7, 7, 9, 9, 9)  # pixels of the layer's own grid
    pools: tuple[int, ...] = (2, 2, 1, 1, 1)  # by how much the grid is made coarser before each layer

    def __post_init__(self) -> None:
        if not len(self.widths) - 1 == len(self.kernels) == len(self.pools) >= 2:
            raise GerdError(f"{self}: allowed: one kernel and one pool for each layer, and one width more")
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise GerdError(f"kernels {self.kernels}: allowed: odd sizes, which have a middle")


@dataclass(frozen=True)
class Reading:
    """What a network says, and how it comes to it."""

    place: Tensor  # (batch, steps, 2): x, y in pixels
    places: Tensor  # (batch, channels, steps, 2): of each channel alone
    weights: Tensor  # (batch, channels, steps): the share of each channel in the fused heat map; they sum to 1
    evidence: Tensor  # (batch, channels, steps): log Σ exp of each channel's logits


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


class ChannelOptions(TypedDict, total=False):
    """What all networks take by name."""

    fusion: Fusion  # how the channels' heat maps become one: weighted (ScaleChannels), evidence (the others)
    layers: Layers  # sizes of the convolutions: Layers()
    seed: int  # of the initial weights: 0


class Channels(nn.Module):
    """Convolutions whose weights all channels share; how a channel integrates over time is for the subclass to say."""

    def __init__(
        self,
        channels: int,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__()
        if fusion not in get_args(Fusion):
            raise GerdError(f"fusion {fusion!r}: allowed: {', '.join(get_args(Fusion))}")
        self.layers = layers
        self.fusion = fusion
        self.channels = channels
        draws = torch.Generator().manual_seed(seed)
        self.weights = nn.ParameterList(
            nn.Parameter(_initial(layers, number, draws)) for number in range(len(layers.kernels))
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for width in layers.widths[1:])
        self.log_shares = nn.Parameter(torch.zeros(channels)) if fusion == "weighted" else None

    def __len__(self) -> int:
        """The number of channels."""
        return self.channels

    def learnt(self) -> tuple[float, ...]:
        """The middle time constant of each layer in steps, where it is trained."""
        return ()

    def shares(self) -> tuple[float, ...]:
        """The weight of each channel in a weighted sum, where it is trained; they sum to 1."""
        return () if self.log_shares is None else tuple(self.log_shares.softmax(0).tolist())

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, steps, 2): x and y in pixels."""
        return self.read(frames).place

    def read(self, frames: Tensor) -> Reading:
        """What all channels say, and what they say together."""
        height, width = frames.shape[-2:]
        return fused(self.logits(frames), width, height, self.fusion, self.log_shares)

    def read_at(self, frames: Tensor, steps: Tensor) -> Reading:
        """The answer at some steps only."""
        whole = self.read(frames)
        return Reading(
            whole.place[:, steps], whole.places[:, :, steps], whole.weights[..., steps], whole.evidence[..., steps]
        )

    def logits(self, frames: Tensor) -> Tensor:
        """(batch, channels, steps, rows, columns): the logarithm of each channel's heat map, up to a constant."""
        raise NotImplementedError

    def convolved(self, x: Tensor, number: int, pooled: bool = False) -> Tensor:
        """Layer `number` without its bias; x (batch, channels, steps, rows, columns, features), as is the result.

        Features come last in memory, so that convolutions are fast and integration over time needs no copy.
        `pooled`: x has the layer's own grid already.
        """
        flat = x.flatten(0, 2).permute(0, 3, 1, 2)
        pool = self.layers.pools[number]
        kernel = self.layers.kernels[number]
        flat = F.max_pool2d(flat, pool) if pool > 1 and not pooled else flat
        flat = F.conv2d(flat, self.weights[number], padding=kernel // 2)
        return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:3])

    def features(self, frames: Tensor) -> Tensor:
        """(batch, 1, steps, rows, columns, 2) in the type that the network computes in."""
        polarities = self.layers.widths[0]
        device = frames.device.type
        if frames.ndim != 5 or frames.shape[2] != polarities:
            allowed = f"(batch, steps, {polarities}, height, width)"
            raise GerdError(f"frames of shape {tuple(frames.shape)}: allowed: {allowed}")
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else self.weights[0].dtype
        return frames.permute(0, 1, 3, 4, 2).to(kind, memory_format=torch.contiguous_format)[:, None]

    def last_layer(self, x: Tensor) -> Tensor:
        """The logits, in full precision: they are exponentiated."""
        with torch.autocast(x.device.type, enabled=False):
            logits = self.convolved(x.to(self.weights[-1].dtype), len(self.weights) - 1) + self.biases[-1]
        return logits[..., 0].float()


def fused(logits: Tensor, width: int, height: int, fusion: Fusion, log_shares: Tensor | None = None) -> Reading:
    """Heat maps (batch, channels, steps, rows, columns) to places: those of the fused map Σ wₖ·pₖ.

    With `weighted` the weights wₖ are the softmax of `log_shares`, one for each channel, and the same for all inputs;
    with `uniform` all channels count the same. With `evidence` the fused map is the softmax over all pixels of all
    channels at once, so that wₖ ∝ Σ exp(logits): a channel that is surer of its place counts for more.
    """
    heat, evidence = normalised(logits)
    return weighted(place_of(heat, width, height), evidence, fusion, log_shares)


def normalised(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The channels' heat maps, which sum to 1, and their evidence."""
    evidence = logits.flatten(-2).logsumexp(-1)
    return torch.exp(logits - evidence[..., None, None]), evidence


def weighted(places: Tensor, evidence: Tensor, fusion: Fusion, log_shares: Tensor | None = None) -> Reading:
    """The channels' places with their weights; the expectation of a sum of heat maps is that of the places."""
    if fusion == "evidence":
        weights = evidence.softmax(dim=1)
    elif log_shares is None:
        weights = torch.full_like(evidence, 1 / evidence.shape[1])
    else:
        weights = log_shares.to(evidence.dtype).softmax(0)[:, None].expand_as(evidence)
    return Reading((weights[..., None] * places).sum(1), places, weights, evidence)


def _initial(layers: Layers, number: int, draws: torch.Generator) -> Tensor:
    """Weights of a layer: Gaussian derivatives in the first two, mixed at random, and He's normal in the others."""
    inputs = layers.widths[number]
    outputs = layers.widths[number + 1]
    size = layers.kernels[number]
    if number > 1:
        scale = (2.0 / (inputs * size * size)) ** 0.5
        return torch.randn(outputs, inputs, size, size, generator=draws) * scale
    bank = gaussian_derivatives(size)
    fields = bank[torch.arange(outputs) % len(bank)][:, None]
    mix = torch.randn(outputs, inputs, 1, 1, generator=draws) * (2.0 / inputs) ** 0.5
    return fields * mix

"""Small networks for studies: event frames in, the place of a shape in pixels out, at every step.

    frames (batch, steps, 2, height, width)  →  (x, y) (batch, steps, 2)

Five convolutions give a heat map; (x, y) is its expectation. The same weights run in several channels, and the
channels' heat maps are fused into one. There are two designs:

`ScaleChannels`, as in the paper, has a leaky integrator behind each convolution but the last; a channel is a time
constant. With a single channel it is the baseline.

`TraceChannels` keeps time out of the convolutions. A channel sees the *input* in its own way and once: as a trace with
its own time constant (`TimeChannels`), along its own velocity (`VelocityChannels`), or through its own scaling and
rotation (`PoseChannels`); the convolutions see one step of that.

A leaky integrator has the time constant μ in steps and α = exp(-1 / μ):

    unit gain   v ← α·v + (1 - α)·x      the mean of the past: keeps the amplitude of what changes slowly
    trace       v ← α·v + x              the sum of the past: counts events

A train of events that is run s times as fast is s·f(s·t), more events per step and fewer steps. Its trace at μ / s is
that of f at μ; its mean is not. So what sees events takes the trace, and later layers the mean. Then a channel with
μ / s sees, at time scale s, what the channel with μ sees at 1, up to the grid of steps.
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
TIME_BANK = tuple(5.0 * 2.0 ** (k / 2) for k in range(-6, 7))  # steps: half an octave apart, wider than ¼ … 4 times
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
    evidence: Tensor  # (batch, channels, steps): log Σ exp of each channel's logits


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
    return _over_time(x, integration_matrices(mus.double(), x.shape[2], trace))


def _over_time(x: Tensor, matrices: Tensor) -> Tensor:
    """`matrices` (channels, steps out, steps in) over axis 2 of `x` (batch, channels or 1, steps in, …)."""
    matrices = matrices.to(x.dtype)
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

    def __len__(self) -> int:
        """The number of channels."""
        raise NotImplementedError

    def learnt(self) -> tuple[float, ...]:
        """The middle time constant of each layer in steps, where it is trained."""
        return ()

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, steps, 2): x and y in pixels."""
        return self.read(frames).place

    def read(self, frames: Tensor) -> Reading:
        """What all channels say, and what they say together."""
        height, width = frames.shape[-2:]
        return fused(self.logits(frames), width, height, self.fusion)

    def read_at(self, frames: Tensor, steps: Tensor) -> Reading:
        """The same at some steps only."""
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
        pool, kernel = self.layers.pools[number], self.layers.kernels[number]
        flat = F.max_pool2d(flat, pool) if pool > 1 and not pooled else flat
        flat = F.conv2d(flat, self.weights[number], padding=kernel // 2)
        return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:3])


class ScaleChannels(Channels):
    """Channels that differ in the time constant of all their leaky integrators.

    learnt: each layer's time constants may be multiplied by a factor of its own, which is trained, so that the middle
    one is learnt and the others keep their ratios to it.
    """

    mus: Tensor

    def __init__(
        self,
        mus: Sequence[float] = TIME_CONSTANTS,
        *,
        fusion: Fusion = "evidence",
        learnt: bool = False,
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        self.register_buffer("mus", _time_constants(mus), persistent=False)
        integrators = len(layers.kernels) - 1
        self.log_factors = nn.Parameter(torch.zeros(integrators)) if learnt else None

    def __len__(self) -> int:
        return len(self.mus)

    def time_constants(self, number: int) -> Tensor:
        """(channels,): those of the integrators behind layer `number`, in steps."""
        return self.mus if self.log_factors is None else self.mus * self.log_factors[number].double().exp()

    def learnt(self) -> tuple[float, ...]:
        layers = () if self.log_factors is None else range(len(self.log_factors))
        return tuple(self.time_constants(number)[len(self) // 2].item() for number in layers)

    def logits(self, frames: Tensor) -> Tensor:
        x = _as_features(frames, self.weights[0])
        last = len(self.weights) - 1
        for number in range(last):
            x = integrate(self.convolved(x, number), self.time_constants(number), trace=number == 0)
            x = F.relu(x + self.biases[number].to(x.dtype))
        return _summed(self, x, last)


class TraceChannels(Channels):
    """Channels that see the input each in its own way; the convolutions see one step at a time.

    So a few channels and a few steps can be asked for alone, which is what makes the training cheap: `channels` and
    `steps` are their numbers, none given: all.
    """

    def read(self, frames: Tensor, channels: Sequence[int] | None = None, steps: Tensor | None = None) -> Reading:
        """What these channels say at these steps, and what they say together."""
        channels, steps = self._asked(frames, channels, steps)
        height, width = frames.shape[-2:]
        heat, evidence = _normalised(self.logits(frames, channels, steps))
        places = self.in_frame(place_of(heat, width, height), channels, steps, (width, height))
        return _weighted(places, evidence, self.fusion)

    def read_at(self, frames: Tensor, steps: Tensor) -> Reading:
        return self.read(frames, steps=steps)

    def logits(self, frames: Tensor, channels: Sequence[int] | None = None, steps: Tensor | None = None) -> Tensor:
        """(batch, channels, steps, rows, columns), each channel's in its own view."""
        channels, steps = self._asked(frames, channels, steps)
        x = self.traces(_as_features(frames, self.weights[0])[:, 0], channels, steps)
        last = len(self.weights) - 1
        for number in range(last):
            x = F.relu(self.convolved(x, number, pooled=number == 0) + self.biases[number].to(x.dtype))
        return _summed(self, x, last)

    def _asked(
        self, frames: Tensor, channels: Sequence[int] | None, steps: Tensor | None
    ) -> tuple[Sequence[int], Tensor]:
        channels = range(len(self)) if channels is None else channels
        return channels, torch.arange(frames.shape[1], device=frames.device) if steps is None else steps

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        """(batch, channels, steps, rows, columns, features) on the grid of the first layer.

        x: (batch, all steps, rows, columns, features) on the grid of the frame.
        """
        raise NotImplementedError

    def in_frame(self, places: Tensor, channels: Sequence[int], steps: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG002
        """Places (batch, channels, steps, 2) as the channels see them, as pixels of the frame."""
        return places


class TimeChannels(TraceChannels):
    """Channels that differ in the time constant of their trace of the input: covariant under time scaling.

    The trace is multiplied by μ·(1 - α), which makes its gain over a long time μ, whatever the step.
    """

    mus: Tensor

    def __init__(
        self,
        mus: Sequence[float] = TIME_BANK,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        self.register_buffer("mus", _time_constants(mus), persistent=False)

    def __len__(self) -> int:
        return len(self.mus)

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        mus = self.mus[list(channels)]
        matrices = integration_matrices(mus, x.shape[1])[:, steps] * mus[:, None, None]
        return _over_time(_summed_over(x, self.layers.pools[0])[:, None], matrices)


class VelocityChannels(TraceChannels):
    """Channels that integrate events along different velocities: covariant under a Galilean boost.

    Each channel keeps a trace that moves by its velocity in each step; without an own motion in that frame an edge
    leaves no smear. A trace moves by whole pixels, at most half of one away from its velocity; what is left of that is
    added to the channel's place, and half a step of motion: by so much the events of a step are old at its end.
    """

    def __init__(
        self,
        velocities: Sequence[tuple[float, float]],
        mu: float = 5.0,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        if not velocities or not all(abs(part) < float("inf") for velocity in velocities for part in velocity):
            raise GerdError(f"velocities {velocities}: allowed are pairs (x, y) of pixels per step, one or more")
        self.velocities, self.mu = [(float(x), float(y)) for x, y in velocities], mu

    def __len__(self) -> int:
        return len(self.velocities)

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        along = [moving_trace(x, self.mu, self.velocities[channel])[:, steps] for channel in channels]
        return torch.stack([_summed_over(trace, self.layers.pools[0]) for trace in along], dim=1)

    def in_frame(self, places: Tensor, channels: Sequence[int], steps: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG002
        velocities = torch.tensor([self.velocities[channel] for channel in channels], dtype=torch.float64)[:, None]
        way = velocities.to(places.device) * steps[:, None]  # (channels, steps, 2)
        return places + (velocities.to(places.device) / 2 + way - _whole(way)).to(places.dtype)


def moving_trace(x: Tensor, mu: float, velocity: tuple[float, float]) -> Tensor:
    """v ← α · (v moved by `velocity`, to whole pixels) + x; x has (batch, steps, rows, columns, features)."""
    alpha = float(torch.exp(torch.tensor(-1.0 / mu, dtype=torch.float64)))
    way = _whole(torch.arange(x.shape[1])[:, None] * torch.tensor(velocity, dtype=torch.float64))
    state, states = torch.zeros_like(x[:, 0]), []
    for step, (right, down) in enumerate(way.diff(dim=0, prepend=way[:1]).long().tolist()):
        moved = F.pad(state, (0, 0, max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)))
        moved = moved[:, max(-down, 0) :, max(-right, 0) :][:, : x.shape[2], : x.shape[3]]
        state = alpha * moved + x[:, step]
        states.append(state)
    return torch.stack(states, dim=1)


class PoseChannels(TraceChannels):
    """Channels that see the frame scaled and turned about its middle: covariant under spatial scaling and rotation.

    A channel is (factor, degrees). What it sees of a scene that is `factor` times as large and turned by `degrees`
    (clockwise on the screen) is the scene itself, up to the grid of pixels and to what is outside the frame.
    """

    maps: Tensor  # (channels, 2, 2)

    def __init__(
        self,
        poses: Sequence[tuple[float, float]],
        mu: float = 5.0,
        *,
        fusion: Fusion = "evidence",
        layers: Layers = Layers(),  # noqa: B008
        seed: int = 0,
    ):
        super().__init__(layers, fusion, seed)
        if not poses or not all(0 < factor <= MOST_SCALE and abs(angle) < float("inf") for factor, angle in poses):
            raise GerdError(
                f"poses {poses}: allowed are pairs of a factor, up to {MOST_SCALE}, and degrees, one or more"
            )
        factors, angles = torch.tensor(poses, dtype=torch.float64).T
        sine, cosine = angles.deg2rad().sin() * factors, angles.deg2rad().cos() * factors
        maps = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        self.register_buffer("maps", maps, persistent=False)
        self.mu = mu

    def __len__(self) -> int:
        return len(self.maps)

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        mus = torch.full((1,), self.mu, dtype=torch.float64, device=x.device)
        trace = _over_time(x[:, None], integration_matrices(mus, x.shape[1], trace=True)[:, steps])[:, 0]
        flat = trace.flatten(0, 1).permute(0, 3, 1, 2)
        seen = [self._through(flat, self.maps[channel]) for channel in channels]
        return torch.stack([each.permute(0, 2, 3, 1).unflatten(0, trace.shape[:2]) for each in seen], dim=1)

    def _through(self, flat: Tensor, linear: Tensor) -> Tensor:
        """What a channel sees, summed over the pixels of the first layer's grid.

        There are SAMPLES² samples for each pixel, so that none of a frame that is seen smaller is left out.
        """
        pool = self.layers.pools[0]
        half = torch.tensor([flat.shape[3] / 2, flat.shape[2] / 2], device=flat.device, dtype=linear.dtype)
        theta = F.pad(linear * half / half[:, None], (0, 1)).to(flat.dtype)[None]
        size = [1, 1, flat.shape[2] * SAMPLES, flat.shape[3] * SAMPLES]
        grid = F.affine_grid(theta, size, align_corners=False).expand(len(flat), -1, -1, -1)
        return F.avg_pool2d(F.grid_sample(flat, grid, align_corners=False), SAMPLES * pool) * pool**2

    def in_frame(self, places: Tensor, channels: Sequence[int], steps: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG002
        middle = torch.tensor(size, device=places.device, dtype=places.dtype) / 2
        maps = self.maps[list(channels), None].to(places.dtype)  # (channels, 1, 2, 2)
        return middle + (maps * (places - middle)[..., None, :]).sum(-1)  # no matrix product: autocast would round it


SAMPLES, MOST_SCALE = 2, 4.0


def fused(logits: Tensor, width: int, height: int, fusion: Fusion) -> Reading:
    """Heat maps (batch, channels, steps, rows, columns) to places.

    With `evidence` the fused map is the softmax over all pixels of all channels at once, that is Σ wₖ·pₖ with the
    weights wₖ ∝ Σ exp(logits): a channel that is surer of its place counts for more. With `uniform` all count the same.
    """
    heat, evidence = _normalised(logits)
    return _weighted(place_of(heat, width, height), evidence, fusion)


def _normalised(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The channels' heat maps, which sum to 1, and their evidence."""
    evidence = logits.flatten(-2).logsumexp(-1)
    return torch.exp(logits - evidence[..., None, None]), evidence


def _weighted(places: Tensor, evidence: Tensor, fusion: Fusion) -> Reading:
    weights = evidence.softmax(dim=1) if fusion == "evidence" else torch.full_like(evidence, 1 / evidence.shape[1])
    return Reading((weights[..., None] * places).sum(1), places, weights, evidence)


def _time_constants(mus: Sequence[float]) -> Tensor:
    if not mus or not all(0 < mu < float("inf") for mu in mus):
        raise GerdError(f"mus {mus}: allowed are positive time constants in steps, one or more")
    return torch.tensor(mus, dtype=torch.float64)


def _summed_over(x: Tensor, pool: int) -> Tensor:
    """x (batch, steps, rows, columns, features) with pool × pool pixels added up."""
    if pool == 1:
        return x
    flat = F.avg_pool2d(x.flatten(0, 1).permute(0, 3, 1, 2), pool, divisor_override=1)
    return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


def _whole(way: Tensor) -> Tensor:
    """The nearest whole pixels."""
    return (way + 0.5).floor()


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

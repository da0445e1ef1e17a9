"""Networks whose channels see the input each in its own way, and whose convolutions see one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from gerd.errors import GerdError
from gerd.studies.models.channels import ChannelOptions, Channels, Reading, normalised, place_of, weighted
from gerd.studies.models.integrators import TIME_BANK, checked, integration_matrices, over_time

SAMPLES = 2  # along each axis of a pixel, of a frame that is seen scaled or turned
EVENTS_SEEN = 400.0  # to which the views of velocities are scaled
NO_EVENT, FLOOR = 1e-3, 1e-4  # keep the scaling finite, and the slope of the root
MOST_SCALE = 4.0  # beyond which so few samples would leave pixels out


class TraceChannels(Channels):
    """Channels that see the input each in its own way; the convolutions see one step at a time.

    So a few channels and a few steps can be asked for alone, which is what makes the training cheap: `channels` and
    `steps` are their numbers; by default all.
    """

    def read(self, frames: Tensor, channels: Sequence[int] | None = None, steps: Tensor | None = None) -> Reading:
        """What these channels say at these steps, and what they say together."""
        channels, steps = self._asked(frames, channels, steps)
        height, width = frames.shape[-2:]
        heat, evidence = normalised(self.logits(frames, channels, steps))
        places = self.in_frame(place_of(heat, width, height), channels, steps, (width, height))
        log_shares = None if self.log_shares is None else self.log_shares[list(channels)]
        return weighted(places, evidence, self.fusion, log_shares)

    def read_at(self, frames: Tensor, steps: Tensor) -> Reading:
        return self.read(frames, steps=steps)

    def logits(self, frames: Tensor, channels: Sequence[int] | None = None, steps: Tensor | None = None) -> Tensor:
        """(batch, channels, steps, rows, columns), each channel's in its own view."""
        channels, steps = self._asked(frames, channels, steps)
        x = self.traces(self.features(frames)[:, 0], channels, steps)
        for number in range(len(self.weights) - 1):
            x = F.relu(self.convolved(x, number, pooled=number == 0) + self.biases[number].to(x.dtype))
        return self.last_layer(x)

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

    def __init__(self, mus: Sequence[float] = TIME_BANK, **options: Unpack[ChannelOptions]):
        super().__init__(len(mus), **options)
        self.register_buffer("mus", checked(mus), persistent=False)

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        mus = self.mus[list(channels)]
        matrices = integration_matrices(mus, x.shape[1])[:, steps] * mus[:, None, None]
        return over_time(_summed_over(x, self.layers.pools[0])[:, None], matrices)


class VelocityChannels(TraceChannels):
    """Channels that integrate events along different velocities: covariant under a Galilean boost.

    Each channel keeps a trace that moves by its velocity in each step; without an own motion in that frame an edge
    leaves no smear. A trace moves by whole pixels, at most half of one away from its velocity; what is left of that is
    added to the channel's place, and half a step of motion: by so much the events of a step are old at its end.

    How many events an edge makes, and of which polarity, depends on its velocity in the sensor's frame, which a boost
    changes. So both polarities count alike, a view is scaled to a number of events that is always the same, and its
    square root is taken, after which edges of different speed differ less.
    """

    def __init__(self, velocities: Sequence[tuple[float, float]], mu: float = 5.0, **options: Unpack[ChannelOptions]):
        super().__init__(len(velocities), **options)
        if not velocities or not all(abs(part) < float("inf") for velocity in velocities for part in velocity):
            raise GerdError(f"velocities {velocities}: allowed: pairs (x, y) of pixels per step, one or more")
        self.velocities = [(float(x), float(y)) for x, y in velocities]
        self.mu = mu

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        both = x.sum(-1, keepdim=True).expand_as(x)
        along = [moving_trace(both, self.mu, self.velocities[channel])[:, steps] for channel in channels]
        counts = torch.stack([_summed_over(trace, self.layers.pools[0]) for trace in along], dim=1).float()
        total = counts.sum(dim=(-3, -2, -1), keepdim=True)
        return (counts * (EVENTS_SEEN / (total + NO_EVENT)) + FLOOR).sqrt() - FLOOR**0.5

    def in_frame(self, places: Tensor, channels: Sequence[int], steps: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG002
        velocities = torch.tensor([self.velocities[channel] for channel in channels], dtype=torch.float64)[:, None]
        way = velocities.to(places.device) * steps[:, None]  # (channels, steps, 2)
        return places + (velocities.to(places.device) / 2 + way - _whole(way)).to(places.dtype)


def moving_trace(x: Tensor, mu: float, velocity: tuple[float, float]) -> Tensor:
    """v ← α · (v moved by `velocity`, to whole pixels) + x; x has (batch, steps, rows, columns, features)."""
    alpha = float(torch.exp(torch.tensor(-1.0 / mu, dtype=torch.float64)))
    way = _whole(torch.arange(x.shape[1])[:, None] * torch.tensor(velocity, dtype=torch.float64))
    state = torch.zeros_like(x[:, 0])
    states = []
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

    def __init__(self, poses: Sequence[tuple[float, float]], mu: float = 5.0, **options: Unpack[ChannelOptions]):
        super().__init__(len(poses), **options)
        if not poses or not all(0 < factor <= MOST_SCALE and abs(angle) < float("inf") for factor, angle in poses):
            raise GerdError(f"poses {poses}: allowed: pairs of a factor, up to {MOST_SCALE}, and degrees, one or more")
        factors, angles = torch.tensor(poses, dtype=torch.float64).T
        sine, cosine = angles.deg2rad().sin() * factors, angles.deg2rad().cos() * factors
        maps = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        self.register_buffer("maps", maps, persistent=False)
        self.mu = mu

    def traces(self, x: Tensor, channels: Sequence[int], steps: Tensor) -> Tensor:
        mus = torch.full((1,), self.mu, dtype=torch.float64, device=x.device)
        trace = over_time(x[:, None], integration_matrices(mus, x.shape[1], trace=True)[:, steps])[:, 0]
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


def _summed_over(x: Tensor, pool: int) -> Tensor:
    """x (batch, steps, rows, columns, features) with pool × pool pixels added up."""
    if pool == 1:
        return x
    flat = F.avg_pool2d(x.flatten(0, 1).permute(0, 3, 1, 2), pool, divisor_override=1)
    return flat.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


def _whole(way: Tensor) -> Tensor:
    """The nearest whole pixels."""
    return (way + 0.5).floor()

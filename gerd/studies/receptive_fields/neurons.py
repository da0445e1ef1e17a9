"""Leaky integrators, and those that fire, over a whole recording: currents in, voltages or spikes out.

    v ← v + leak · (x - v);  of those that fire: a spike, and v = 0, where v is above the threshold

A spike has no derivative. In its place the gradient takes 1 / (1 + SLOPE · |v - THRESHOLD|)², and the reset passes on
none. `neurons_cuda` does the same on a GPU. Arrays are (batch, channels, steps, …); currents may be the same for all
channels: (batch, 1, steps, …). `leaks` (channels,) are the shares of its voltage that a neuron loses in a step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

THRESHOLD = 0.1
SLOPE = 10.0


def voltages(currents: Tensor, leaks: Tensor) -> Tensor:
    """The voltages of leaky integrators, in every channel."""
    result: Tensor = _Neurons.apply(currents, leaks, False)  # type: ignore[no-untyped-call]
    return result


def spikes(currents: Tensor, leaks: Tensor) -> Tensor:
    """0 and 1, of leaky integrate-and-fire neurons, in every channel."""
    result: Tensor = _Neurons.apply(currents, leaks, True)  # type: ignore[no-untyped-call]
    return result


class _Neurons(torch.autograd.Function):
    """The voltages before the resets are kept for the way back."""

    @staticmethod
    def forward(ctx: Any, currents: Tensor, leaks: Tensor, spiking: bool) -> Tensor:
        if currents.is_cuda:
            from gerd.studies.receptive_fields import neurons_cuda

            kept, outputs = neurons_cuda.forward(currents, leaks, THRESHOLD, spiking)
        else:
            kept, outputs = forward(currents, leaks, spiking)
        ctx.save_for_backward(currents, leaks, kept)
        ctx.spiking = spiking
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        currents, leaks, kept = ctx.saved_tensors
        (of_outputs,) = gradients
        if currents.is_cuda:
            from gerd.studies.receptive_fields import neurons_cuda

            found = neurons_cuda.backward(currents, leaks, kept, of_outputs, THRESHOLD, SLOPE, ctx.spiking)
        else:
            found = backward(currents, leaks, kept, of_outputs, ctx.spiking)
        of_currents, of_leaks = found
        if currents.shape[1] == 1:
            of_currents = of_currents.sum(1, keepdim=True)
        return of_currents, of_leaks.to(leaks.dtype), None


def forward(currents: Tensor, leaks: Tensor, spiking: bool) -> tuple[Tensor, Tensor]:
    """Voltages before the resets, and the output."""
    batch, _, steps, *shape = currents.shape
    rates = _beside(leaks, len(shape))
    kept = currents.new_empty((batch, len(leaks), steps, *shape))
    v = torch.zeros((batch, len(leaks), *shape))
    for step in range(steps):
        v += rates * (currents[:, :, step] - v)
        kept[:, :, step] = v
        if spiking:
            v.masked_fill_(v > THRESHOLD, 0)
    return kept, (kept > THRESHOLD).to(currents.dtype) if spiking else kept


def backward(currents: Tensor, leaks: Tensor, kept: Tensor, of_outputs: Tensor, spiking: bool) -> tuple[Tensor, Tensor]:
    """Gradients of the currents, in all channels, and of the leaks."""
    _, channels, steps, *shape = kept.shape
    rates = _beside(leaks, len(shape))
    of_currents = torch.empty_like(kept)
    of_leaks = torch.zeros(channels)
    later = torch.zeros_like(kept[:, :, 0])  # what comes back from the next step
    for step in reversed(range(steps)):
        of_voltage = of_outputs[:, :, step]
        before = kept[:, :, step - 1] if step else torch.zeros_like(later)
        if spiking:
            v = kept[:, :, step]
            of_voltage = of_voltage / (1 + SLOPE * (v - THRESHOLD).abs()).square() + later * (v <= THRESHOLD)
            before = before * (before <= THRESHOLD)
        else:
            of_voltage = of_voltage + later
        of_currents[:, :, step] = rates * of_voltage
        of_leaks += (of_voltage * (currents[:, :, step] - before)).transpose(0, 1).flatten(1).sum(1)
        later = (1 - rates) * of_voltage
    return of_currents, of_leaks


def _beside(leaks: Tensor, dimensions: int) -> Tensor:
    """(channels, 1, …): beside the voltages of one step."""
    return leaks.detach().reshape(-1, *[1] * dimensions)

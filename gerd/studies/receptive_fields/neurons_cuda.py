"""The neurons of `neurons` on a GPU: a program goes through the steps of some of them.

Arrays are contiguous: currents (batch, channels or 1, steps, neurons), all others (batch, channels, steps, neurons).
"""
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

AT_ONCE = 512  # neurons of a program


@triton.jit
def run(
    currents, leaks, voltages, fired,
    threshold, steps, neurons, channels, shared, SPIKING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Voltages before the resets, and of spiking neurons 1 where they are above the threshold."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < neurons
    leak = tl.load(leaks + row % channels)
    source = row // channels if shared else row
    v = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        x = tl.load(currents + (source * steps + step) * neurons + place, mask=inside, other=0.0).to(tl.float32)
        v += leak * (x - v)
        kept = v.to(voltages.dtype.element_ty)  # as it is stored, so that the way back sees the same spikes
        at = (row * steps + step) * neurons + place
        tl.store(voltages + at, kept, mask=inside)
        if SPIKING:
            spike = kept.to(tl.float32) > threshold
            tl.store(fired + at, spike.to(fired.dtype.element_ty), mask=inside)
            v = tl.where(spike, 0.0, v)


@triton.jit
def run_back(
    currents, leaks, voltages, of_outputs, of_currents, of_leaks,
    threshold, slope, steps, neurons, channels, shared, SPIKING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of the currents, and for each program that of its leak."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < neurons
    leak = tl.load(leaks + row % channels)
    source = row // channels if shared else row
    later = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for back in range(steps):
        step = steps - 1 - back
        at = (row * steps + step) * neurons + place
        x = tl.load(currents + (source * steps + step) * neurons + place, mask=inside, other=0.0).to(tl.float32)
        has_past = inside & (place + step * neurons >= neurons)
        before = tl.load(voltages + at - neurons, mask=has_past, other=0.0).to(tl.float32)
        of_voltage = tl.load(of_outputs + at, mask=inside, other=0.0).to(tl.float32)
        if SPIKING:
            v = tl.load(voltages + at, mask=inside, other=0.0).to(tl.float32)
            wide = 1.0 + slope * tl.abs(v - threshold)
            of_voltage = of_voltage / (wide * wide) + tl.where(v > threshold, 0.0, later)
            before = tl.where(before > threshold, 0.0, before)
        else:
            of_voltage += later
        tl.store(of_currents + at, (leak * of_voltage).to(of_currents.dtype.element_ty), mask=inside)
        total += of_voltage * (x - before)
        later = (1.0 - leak) * of_voltage
    tl.store(of_leaks + row * tl.num_programs(1) + tl.program_id(1), tl.sum(tl.where(inside, total, 0.0)))


def forward(currents: Tensor, leaks: Tensor, threshold: float, spiking: bool) -> tuple[Tensor, Tensor]:
    """Voltages before the resets, and spikes, in the type and shape of the currents with all channels."""
    batch, beside, steps, *shape = currents.shape
    voltages = currents.new_empty((batch, len(leaks), steps, *shape))
    fired = torch.empty_like(voltages) if spiking else voltages
    neurons = voltages[0, 0, 0].numel()
    grid = (batch * len(leaks), triton.cdiv(neurons, AT_ONCE))
    run[grid](
        currents.contiguous(), leaks, voltages, fired,
        threshold, steps, neurons, len(leaks), beside == 1, spiking, AT_ONCE,
    )  # fmt: skip
    return voltages, fired


def backward(
    currents: Tensor,
    leaks: Tensor,
    voltages: Tensor,
    of_outputs: Tensor,
    threshold: float,
    slope: float,
    spiking: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the currents, in all channels, and of the leaks."""
    batch, channels, steps, *_ = voltages.shape
    of_currents = torch.empty_like(voltages)
    neurons = voltages[0, 0, 0].numel()
    grid = (batch * channels, triton.cdiv(neurons, AT_ONCE))
    of_leaks = torch.empty((batch, channels, grid[1]), device=voltages.device)
    run_back[grid](
        currents.contiguous(), leaks, voltages, of_outputs.contiguous(), of_currents, of_leaks,
        threshold, slope, steps, neurons, channels, currents.shape[1] == 1, spiking, AT_ONCE,
    )  # fmt: skip
    return of_currents, of_leaks.sum((0, 2))

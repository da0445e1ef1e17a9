"""Leaky integrators as matrices over time; time constants are in steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gerd.errors import GerdError, check_number

TIME_CONSTANTS = (1.25, 2.5, 5.0, 10.0, 20.0)  # the middle one is that of the baseline
TIME_BANK = tuple(5.0 * 2.0 ** (k / 2) for k in range(-6, 7))  # half an octave apart, wider than ¼ … 4 times


def checked(mus: Sequence[float]) -> Tensor:
    """(channels,): time constants, or an error."""
    for mu in mus:
        check_number("mu", mu)
    if not mus or not all(0 < mu < float("inf") for mu in mus):
        raise GerdError(f"mus {mus}: allowed: positive time constants in steps, one or more")
    return torch.tensor(mus, dtype=torch.float64)


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
    return over_time(x, integration_matrices(mus.double(), x.shape[2], trace))


def over_time(x: Tensor, matrices: Tensor) -> Tensor:
    """`matrices` (channels, steps out, steps in) over axis 2 of `x` (batch, channels or 1, steps in, …)."""
    matrices = matrices.to(x.dtype)
    if x.shape[1] == 1:  # all channels see the same: one matrix for all of them, and no copies
        flat = (matrices.flatten(0, 1) @ x[:, 0].flatten(2)).unflatten(1, matrices.shape[:2])
    else:
        flat = matrices @ x.flatten(3)
    return flat.unflatten(3, x.shape[3:])

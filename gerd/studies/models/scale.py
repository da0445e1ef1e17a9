"""The paper's network: a leaky integrator behind each convolution but the last, a time constant for each channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from gerd.studies.models.channels import ChannelOptions, Channels
from gerd.studies.models.integrators import TIME_CONSTANTS, checked, integrate


class ScaleChannels(Channels):
    """Channels that differ in the time constant of all their leaky integrators.

    As in the paper, their softmaxed heat maps are combined by a weighted sum whose weights are learnt, unless `fusion`
    says otherwise.

    learnt: each layer's time constants may be multiplied by a factor of its own, which is trained, so that the middle
    one is learnt and the others keep their ratios to it.
    """

    mus: Tensor

    def __init__(
        self, mus: Sequence[float] = TIME_CONSTANTS, *, learnt: bool = False, **options: Unpack[ChannelOptions]
    ):
        options.setdefault("fusion", "weighted")
        super().__init__(len(mus), **options)
        self.register_buffer("mus", checked(mus), persistent=False)
        integrators = len(self.layers.kernels) - 1
        self.log_factors = nn.Parameter(torch.zeros(integrators)) if learnt else None

    def time_constants(self, number: int) -> Tensor:
        """(channels,): those of the integrators behind layer `number`, in steps."""
        return self.mus if self.log_factors is None else self.mus * self.log_factors[number].double().exp()

    def learnt(self) -> tuple[float, ...]:
        layers = () if self.log_factors is None else range(len(self.log_factors))
        return tuple(self.time_constants(number)[len(self) // 2].item() for number in layers)

    def logits(self, frames: Tensor) -> Tensor:
        x = self.features(frames)
        for number in range(len(self.weights) - 1):
            x = integrate(self.convolved(x, number), self.time_constants(number), trace=number == 0)
            x = F.relu(x + self.biases[number].to(x.dtype))
        return self.last_layer(x)

"""A layer of a network as a model of its own: what it says of frames, which every measure can look at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gerd.calls import explained
from gerd.errors import GerdError, did_you_mean, shorten


@explained
def layer(network: nn.Module, name: str) -> Layer:
    """What the part of `network` with this name says of frames, in place of what the whole network says.

    name: as in `network.named_modules()`, such as "body.0".

    Its answer is (batch, steps, …): a part that gets all steps as one batch, or is called once for each step, is asked
    for all of them. Of several outputs the first one counts.

        measure.lie_derivative(measure.layer(network, "conv1"), config, "rotation", acts="heat map")
    """
    return Layer(network, name)


class Layer(nn.Module):
    """See `layer`."""

    def __init__(self, network: nn.Module, name: str):
        super().__init__()
        if not isinstance(network, nn.Module):
            raise GerdError(f"network {shorten(network)}: allowed: a torch module")
        names = [each for each, _ in network.named_modules() if each]
        if name not in names:
            some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "") or "none: it has no parts"
            raise GerdError(f"layer {name!r}: {did_you_mean([name], names)}allowed: {some}")
        self.network, self.name = network, name

    def forward(self, frames: Tensor) -> Tensor:
        said: list[Any] = []
        part = self.network.get_submodule(self.name)
        hook = part.register_forward_hook(lambda _module, _inputs, output: said.append(output))
        try:
            self.network(frames)
        finally:
            hook.remove()
        answers = [each[0] if isinstance(each, tuple | list) and each else each for each in said]
        if not answers or not all(isinstance(each, Tensor) for each in answers):
            what = "is never called" if not answers else f"gives {shorten(answers[0])}"
            raise GerdError(f"layer {self.name!r}: {what}; allowed: a part that gives a tensor whenever it is called")
        batch, steps = frames.shape[:2]
        if len(answers) == steps > 1:
            return torch.stack(answers, dim=1)
        (answer, *others) = answers
        if others:
            raise GerdError(
                f"layer {self.name!r}: is called {len(answers)} times in {steps} steps; allowed: once, or for each"
            )
        return answer.unflatten(0, (batch, steps)) if len(answer) == batch * steps and steps > 1 else answer

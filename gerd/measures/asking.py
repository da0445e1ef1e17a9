"""A model and recordings of a config in, what it says of them out; or an error that says why that is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypedDict

import torch
from torch import Tensor

from gerd.config.load import AnyConfig, as_config
from gerd.errors import GerdError, check_whole
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

Model = Callable[[Tensor], Tensor]

COUNT = 64  # recordings, unless told


class Options(TypedDict, total=False):
    """Which recordings of a config a model is measured on, and how: what every measure takes by name."""

    count: int  # of recordings: 64 by default
    first: int  # the index of the first of them: 0
    first_step: int  # steps before this one are not compared: 0
    device: str  # where the frames are: cpu
    batch: int  # recordings that the model gets at once: 16


def stimuli(
    config: AnyConfig, *, count: int = COUNT, first: int = 0, first_step: int = 0, device: str = "cpu", batch: int = 16
) -> tuple[list[Scenes], int, str]:
    """The recordings that `Options` name, in batches; the first step to compare, and the device."""
    check_whole("count", count, 1)
    check_whole("batch", batch, 1)
    scenes = draw(plan_of(as_config(config)), range(first, first + count))
    check_whole("first_step", first_step, 0, scenes.steps - 1)
    return [scenes[begin : begin + batch] for begin in range(0, count, batch)], first_step, device


def output(model: Model, frames: Tensor) -> Tensor:
    """(batch, …): what a model says of frames, if all of it is finite."""
    try:
        with torch.no_grad(), evaluating(model):
            out = model(frames.float())
    except GerdError:
        raise
    except Exception as error:  # whatever a user's model may raise
        shape = tuple(frames.shape)
        raise GerdError(f"the model failed on frames of shape {shape}: {type(error).__name__}: {error}") from error
    if not isinstance(out, Tensor) or out.shape[:1] != frames.shape[:1]:
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        several = "" if isinstance(out, Tensor) else "; of several outputs give a function that returns one"
        wanted = "a tensor with one row for each"
        raise GerdError(f"the model gave {shape} for {len(frames)} recordings; allowed: {wanted}{several}")
    if out.is_complex():
        raise GerdError("the model gave complex numbers; allowed: real ones")
    finite = torch.isfinite(with_axis(out)).flatten(1).all(1)
    if not bool(finite.all()):
        bad = f"{int((~finite).sum())} of {len(frames)} recordings"
        raise GerdError(
            f"the model gave numbers that are not finite for {bad}; nothing can be said about the others alone"
        )
    return out


def exact(out: Tensor) -> Tensor:
    """An output in float64, on the model's device if that has it."""
    return (out.cpu() if out.device.type == "mps" else out).double()


def with_axis(out: Tensor) -> Tensor:
    """An output of one number for each recording as rows of one number."""
    return out[:, None] if out.ndim == 1 else out


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """While each part of a module, or of that of a method, is in its evaluation mode; then all are as they were."""
    module = getattr(model, "__self__", model)
    modes = [(part, part.training) for part in module.modules()] if isinstance(module, torch.nn.Module) else []
    try:
        for part, _ in modes:
            part.training = False
        yield
    finally:
        for part, training in modes:
            part.training = training

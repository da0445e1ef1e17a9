"""The local equivariance error of a network for each generator: how fast its answer leaves the orbit of a symmetry.

Answers at each step, and scores, have one. Answers to single events have none: the events of a scene that was moved by
a little are others, and nothing says which of them belong together.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from gerd.bench.models import Network
from gerd.bench.results import Interval, LieResult, Number
from gerd.bench.split_table import Split
from gerd.bench.task_table import Task
from gerd.errors import GerdError
from gerd.measures.action import Action, act_on_matrices
from gerd.measures.asking import Options, output
from gerd.measures.layers import Layer, layer
from gerd.measures.lie import LieDerivative, lie_derivative
from gerd.measures.statistics import Estimate
from gerd.scene.transformation import Transformation

GENERATORS = ("translation", "rotation", "scale", "shear", "velocity", "time_scale")
PER_EVENT = "answers to single events have none: the events of a scene that was moved by a little are others"
AT_ONCE = 8  # recordings
LEAST_GRID = 3  # rows, and columns, of a map
ROW = (0.0, 0.0, 1.0)  # the last of T


def act_on_motions(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """ρ(g) of T and T′ (batch, steps, 2, 2, 3): G·T at the time s·t, and the derivative of that."""
    last = out.new_tensor([ROW, (0.0, 0.0, 0.0)]).expand(*out.shape[:2], 2, 3)
    T, T_velocity = torch.cat([out, last[..., None, :]], -2).unbind(2)
    moved, turned = act_on_matrices(g, T, size), g.time_scale * act_on_matrices(g, T_velocity, size)
    steps = np.arange(out.shape[1])
    G, after, before = (torch.from_numpy(g.frame(*size).G(steps + late)).to(out) for late in (0.0, 0.5, -0.5))
    drifting = (after - before) @ torch.linalg.inv(G) @ moved  # G′·T: G is at most quadratic in time
    return torch.stack([moved, turned + drifting], 2)[..., :2, :]


def maps_of(network: Network, part: str) -> Layer:
    """A layer of a network, if it can have one."""
    if not isinstance(network, nn.Module):
        raise GerdError(f"--layer {part}: the model is not a torch module, and has no layers")
    return layer(network, part)


def check_layer(network: Network, task: Task, part: str, frames: Tensor) -> None:
    """An error unless a layer gives maps, of which it is known how they move with the scene."""
    if task.name not in ACTIONS:
        raise GerdError(f"--layer {part}: {task.name} has no local equivariance error: {PER_EVENT}")
    maps = output(maps_of(network, part), frames)
    if maps.ndim < 4 or min(maps.shape[-2:]) < LEAST_GRID:
        raise GerdError(
            f"--layer {part}: gives the shape {tuple(maps.shape)}; allowed: maps (recordings, steps, …, rows, columns)"
        )


ACTIONS: dict[str, str | Action] = {"locate": "coordinates", "transform": act_on_motions, "classify": "scores"}


def lie_results(
    network: Network, task: Task, split: Split, count: int, device: str, part: str = ""
) -> tuple[LieResult, ...]:
    """For each generator, of the network's answer, or of the maps of a part of it."""
    if task.name not in ACTIONS:
        return ()
    asked, acts = (maps_of(network, part), "heat map") if part else (network, ACTIONS[task.name])
    options: Options = {"count": count, "first_step": split.first_step or 0, "device": device, "batch": AT_ONCE}
    return tuple(
        _written(lie_derivative(asked, split.config, generator, acts=acts, **options), part) for generator in GENERATORS
    )


def _written(found: LieDerivative, name: str) -> LieResult:
    relative = None if found.relative is None else _number(found.relative)
    return LieResult(found.generator, found.unit, _number(found.absolute), relative, found.why_nothing, name)


def _number(found: Estimate) -> Number:
    ends: Interval = (round(found.interval[0], 6), round(found.interval[1], 6))
    return Number(round(found.value, 6), ends, found.count)

"""The recipe of version 1: a network and the recordings for training and validation in, trained in place.

It is the same for every network: AdamW with one cycle of the learning rate, batches of BATCH, as many passes as come
nearest to a fixed number of updates, and the weights of the pass with the smallest mean error in validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gerd.bench.examples import Examples
from gerd.bench.metrics import METRICS
from gerd.bench.models import AT_ONCE, Candidate, Network, answer
from gerd.bench.task_table import Task
from gerd.errors import GerdError
from gerd.studies.lab.fitting import Deadline, Recipe, Say, Training, fit

BATCH = 16  # recordings
UPDATES = {False: 2500, True: 500}  # of the weights; True: quick
RATE = 4e-3  # of learning, at its highest


@dataclass(frozen=True)
class Material:
    """What networks are trained with."""

    training: Sequence[Examples]
    validation: Sequence[Examples]


def recipe(data: Sequence[Examples], quick: bool) -> Recipe:
    """How often these recordings are gone through."""
    in_a_pass = sum(-(-len(part) // BATCH) for part in data)
    return Recipe(max(1, round(UPDATES[quick] / in_a_pass)), BATCH, RATE, mixed=False)


def train(
    network: Network,
    kind: Candidate,
    task: Task,
    material: Material,
    seed: int,
    file: Path,
    *,
    quick: bool = False,
    device: str = "cpu",
    deadline: Deadline = Deadline(),  # noqa: B008
    say: Say = print,
) -> Training:
    """Train a network; `file` holds the state after each pass, from which the same call goes on."""
    if not isinstance(network, nn.Module) or not any(each.requires_grad for each in network.parameters()):
        raise GerdError(f"--train: {kind.name} has no weights to be trained; leave --train out")
    trained: nn.Module = network.train()  # which a network of a user's may look at
    return fit(
        trained,
        material.training,
        partial(kind.loss, trained),
        recipe(material.training, quick),
        device=torch.device(device),
        seed=seed,
        file=file,
        title=f"{task.name}, {kind.name}, seed {seed}",
        error=lambda: float(np.nanmean(np.concatenate([errors(trained, task, each) for each in material.validation]))),
        unit=task.unit,
        deadline=deadline,
        say=say,
    )


def errors(network: Network, task: Task, examples: Examples) -> NDArray[np.float64]:
    """(recordings,): how far off a network is; not a number of a recording in which nothing counts."""
    metric = METRICS[task.name]
    parts = [metric.errors(answer(network, part, task), part) for part in examples.parts(AT_ONCE)]
    return torch.cat(parts).cpu().double().numpy()

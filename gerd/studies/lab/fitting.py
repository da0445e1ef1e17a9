"""Training that survives a kill: a network, data and a loss in, its weights out; whatever the network is about.

The state of a training is written to a file after every epoch, and training goes on from there when it is started
again, to the same weights as without the interruption (on a GPU up to the rounding of sums that are taken in any
order).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gerd.errors import GerdError
from gerd.storage.whole import written_whole

CLIP = 1.0  # the largest norm of a gradient
SEED_STRIDE = 100_003  # more than there are epochs: no two seeds draw the same in any of theirs
Say = Callable[[str], None]


class Batched(Protocol):
    """Recordings of one length, of which some can be taken by their rows."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor, /) -> Self: ...


Batch = TypeVar("Batch", bound=Batched)


@dataclass(frozen=True)
class Recipe:
    """How long a network is trained, and in which steps."""

    epochs: int
    batch: int  # recordings
    rate: float  # of learning, at its highest
    mixed: bool = True  # bfloat16 on a GPU, where PyTorch thinks it safe


class OutOfTimeError(GerdError):
    """The time that the user allowed is over; the same command goes on."""

    exit_code = 75


@dataclass(frozen=True)
class Deadline:
    """When to stop."""

    end: float = float("inf")  # seconds of the monotonic clock

    @classmethod
    def after(cls, minutes: float | None) -> Deadline:
        if minutes is not None and not 0 <= minutes < float("inf"):
            raise GerdError(f"minutes {minutes:g}: allowed: a number, 0 or more")
        return cls() if minutes is None else cls(time.monotonic() + 60 * minutes)

    def check(self) -> None:
        if time.monotonic() > self.end:
            raise OutOfTimeError("the time is over; the same command continues where this one has stopped")


class State(TypedDict, total=False):
    """What the file of a training holds."""

    losses: list[float]  # one for each epoch that is finished
    validation: list[float]
    seconds: float
    network: dict[str, Tensor]  # weights
    best: dict[str, Tensor]  # those of the epoch with the smallest error in the validation
    optimiser: dict[str, object]  # this and the next only while epochs are left
    schedule: dict[str, object]


@dataclass(frozen=True)
class Training:
    """What a training was like, one number for each epoch."""

    losses: tuple[float, ...]  # means over the recordings
    validation: tuple[float, ...]  # mean errors after the epoch; empty without recordings for validation
    seconds: float  # of all epochs together


def fit(
    network: nn.Module,
    data: Sequence[Batch],
    loss: Callable[[Batch, torch.Generator], Tensor],
    recipe: Recipe,
    *,
    device: torch.device,
    seed: int,
    file: Path,
    title: str,
    error: Callable[[], float] | None = None,
    unit: str = "px",
    deadline: Deadline = Deadline(),  # noqa: B008
    say: Say = print,
) -> Training:
    """Train `network` in place. `file` holds its state after each epoch, also when it is finished.

    data: recordings of one length each; no batch has some of two of them.

    With `error`, which says how far off the network is in validation, it ends with the weights of the epoch where that
    is the smallest, and so does the file; without, with those of the last epoch.
    """
    begun = time.monotonic()
    torch.backends.cudnn.benchmark = True  # the shapes stay the same: look for the fastest convolution once
    network.to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate)
    updates = max(2, sum(-(-len(part) // recipe.batch) for part in data) * recipe.epochs)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.rate, total_steps=updates)
    state = _resumed(network, optimiser, schedule, file, device)
    begun -= state["seconds"]
    for epoch in range(len(state["losses"]), recipe.epochs):
        deadline.check()
        draws = torch.Generator().manual_seed(seed * SEED_STRIDE + epoch)
        state["losses"].append(_epoch(network, data, loss, recipe, draws, optimiser, schedule, device))
        if not np.isfinite(state["losses"][-1]):
            raise GerdError(f"{title}: the loss is not a number after epoch {epoch + 1}; try another seed")
        if error is not None:
            with _in_training_precision(device, recipe.mixed):
                _validate(network, error(), state)
        left = recipe.epochs - epoch - 1
        if left:
            state |= {"optimiser": optimiser.state_dict(), "schedule": schedule.state_dict()}
        else:
            _end(network, state)
        state |= {"network": network.state_dict(), "seconds": time.monotonic() - begun}
        with written_whole(file) as temporary:
            torch.save(state, temporary)
        say(f"{title}: epoch {epoch + 1}/{recipe.epochs}, {_progress(state, left, unit)}")
    losses = rounded(state["losses"], 6)
    errors = rounded(state["validation"])
    return Training(tuple(losses), tuple(errors), round(state["seconds"], 2))


def _epoch(
    network: nn.Module,
    data: Sequence[Batch],
    loss: Callable[[Batch, torch.Generator], Tensor],
    recipe: Recipe,
    draws: torch.Generator,
    optimiser: Optimizer,
    schedule: LRScheduler,
    device: torch.device,
) -> float:
    """One epoch of training; the mean loss."""
    total = torch.zeros((), device=device)
    for batch in batches(data, recipe.batch, draws, device):
        with _in_training_precision(device, recipe.mixed):
            value = loss(batch, draws)
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        total += value.detach() * len(batch)
    return float(total) / sum(map(len, data))


def _validate(network: nn.Module, error: float, state: State) -> None:
    """Add the error of this epoch to the state, and the weights, if they are the best so far."""
    if error < min(state["validation"], default=float("inf")):
        state["best"] = {name: value.clone() for name, value in network.state_dict().items()}
    state["validation"].append(error)


def _end(network: nn.Module, state: State) -> None:
    """What a finished training leaves: the best weights, and nothing to go on with."""
    if "best" in state:
        network.load_state_dict(state.pop("best"))
    state.pop("optimiser", None)
    state.pop("schedule", None)


def _progress(state: State, left: int, unit: str) -> str:
    """The last epoch in words."""
    error = f", validation {state['validation'][-1]:.2f} {unit}".rstrip() if state["validation"] else ""
    time_left = state["seconds"] / len(state["losses"]) * left
    return f"loss {state['losses'][-1]:.4f}{error}, {time_left:.0f} s left"


def _in_training_precision(device: torch.device, mixed: bool) -> torch.autocast:
    """On a GPU bfloat16, except where a network or the recipe says otherwise."""
    return torch.autocast(device.type, torch.bfloat16, enabled=mixed and device.type == "cuda")


def _resumed(
    network: nn.Module, optimiser: Optimizer, schedule: LRScheduler, file: Path, device: torch.device
) -> State:
    """What `file` has of the epochs so far; its state goes into the other arguments."""
    if not file.exists():
        return {"losses": [], "validation": [], "seconds": 0.0}
    state = load_weights(network, file, device)
    if "optimiser" in state:
        optimiser.load_state_dict(state["optimiser"])
        schedule.load_state_dict(state["schedule"])
    return state


def load_weights(network: nn.Module, file: Path, device: torch.device | str) -> State:
    """Put the weights of a file that `fit` has written into a network, on a device; all that the file has."""
    try:
        state: State = torch.load(file, map_location=device, weights_only=True)
    except Exception as error:  # whatever PyTorch raises for a file that is not its own
        raise GerdError(f"{file}: cannot be read; delete it to train again: {str(error).splitlines()[0]}") from None
    network.to(device).load_state_dict(state["network"])
    return state


def rounded(values: ArrayLike, digits: int = 4) -> Any:
    """Numbers as they are written to a file: one number, or an array as lists, nested as deep as it has axes."""
    return np.round(np.asarray(values, np.float64), digits).tolist()


def batches(data: Sequence[Batch], size: int, draws: torch.Generator, device: torch.device) -> Iterator[Batch]:
    """All recordings once, in random order."""
    every = [(part, rows) for part in data for rows in torch.randperm(len(part), generator=draws).split(size)]
    order = torch.randperm(len(every), generator=draws).tolist() if len(data) > 1 else range(len(every))
    for part, rows in (every[number] for number in order):
        yield part[rows.to(device)]

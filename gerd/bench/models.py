"""A network to be judged: its name in; what builds it, what it costs and whether its answers can be answers out.

A name is that of a baseline, or `module:function` of the user's, which gives a torch module (or, if nothing is to be
trained, any function).
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gerd.bench.baselines import Loss, baseline
from gerd.bench.examples import EventArrays, Examples
from gerd.bench.metrics import METRICS
from gerd.bench.results import Cost
from gerd.bench.task_table import Task
from gerd.errors import GerdError, shorten
from gerd.measures.asking import evaluating
from gerd.studies.symmetry import load_model, load_weights_into

Network = Callable[[Any], Any]
TIMED = 5  # rounds, of which the quickest counts
AT_ONCE = 16  # recordings that a network gets at once


@dataclass(frozen=True)
class Candidate:
    """A kind of network."""

    name: str
    build: Callable[[int], Network]  # from a seed
    loss: Loss


def candidate(name: str, task: Task) -> Candidate:
    """A baseline, or a network of the user's."""
    if ":" not in name:
        found = baseline(name, task.name)
        return Candidate(name, lambda seed: found.build(task.name, seed), found.loss or _task_loss(task))

    def build(seed: int) -> Network:
        with torch.random.fork_rng(devices=[]):  # weights begin with what PyTorch's global generator says
            torch.manual_seed(seed)
            return load_model(name, None, "cpu")

    return Candidate(name, build, _task_loss(task))


def _task_loss(task: Task) -> Loss:
    def loss(network: nn.Module, examples: Examples, draws: torch.Generator) -> Tensor:  # noqa: ARG001
        return METRICS[task.name].loss(network(as_given(examples.inputs)), examples)

    return loss


def load_checkpoint(network: Network, name: str, file: Path) -> None:
    """Put the weights of a file into a network."""
    if not isinstance(network, nn.Module):
        raise GerdError(f"--checkpoint {file}: {name} is not a torch module, and has no weights")
    load_weights_into(network, file)


def as_given(inputs: Tensor | EventArrays) -> Tensor | EventArrays:
    """What a network is called with: frames as float32, events as they are."""
    return inputs.float() if isinstance(inputs, Tensor) else inputs


def answer(network: Network, examples: Examples, task: Task) -> Tensor:
    """What a network says of some recordings, if it is an answer to the task."""
    given = as_given(examples.inputs)
    try:
        with torch.no_grad(), evaluating(network):
            out = network(given)
    except GerdError:
        raise
    except Exception as error:  # whatever a user's network may raise
        what = f"frames of shape {tuple(given.shape)}" if isinstance(given, Tensor) else _events_in_words(given)
        raise GerdError(f"the model failed on {what}: {type(error).__name__}: {error}") from error
    if not isinstance(out, Tensor):
        raise GerdError(f"the model gave {shorten(out)}; allowed for {task.name}: a tensor {task.shape}: {task.answer}")
    events = len(given["t"]) if isinstance(given, Mapping) else 0
    task.check_answer(tuple(out.shape), recordings=len(examples), steps=examples.steps, events=events)
    if not bool(torch.isfinite(out).all()):
        raise GerdError("the model gave numbers that are not finite")
    return out.detach()


def _events_in_words(events: EventArrays) -> str:
    return f"{len(events['t'])} events of {len(events['offsets']) - 1} recordings"


def weights_digest(network: Network) -> str:
    """sha256 over the names, types, shapes and bytes of all weights, whatever file they come from."""
    digest = hashlib.sha256()
    state: Mapping[str, Tensor] = network.state_dict() if isinstance(network, nn.Module) else {}
    for name in sorted(state):
        value = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def cost(network: Network, examples: Examples, task: Task, device: str) -> Cost:
    """Parameters, operations and time per recording, on recordings where nothing is changed."""
    from torch.utils.flop_counter import FlopCounterMode

    first, some = examples.first(1), examples.first(AT_ONCE)
    with FlopCounterMode(display=False) as counter:
        answer(network, first, task)
    seconds = min(_timed(network, some, task, device) for _ in range(TIMED)) / len(some)
    weights = network.parameters() if isinstance(network, nn.Module) else ()
    return Cost(
        parameters=sum(each.numel() for each in weights),
        operations=int(counter.get_total_flops()),
        seconds=round(seconds, 7),
        batch=len(some),
        machine=machine(device),
        steps=examples.steps,
    )


def _timed(network: Network, examples: Examples, task: Task, device: str) -> float:
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.synchronize(device)
    begun = time.perf_counter()
    answer(network, examples, task)
    if on_gpu:
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun


def machine(device: str) -> str:
    """What computes, in words."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    threads = torch.get_num_threads()
    return f"{name}, {threads} thread{'' if threads == 1 else 's'}"

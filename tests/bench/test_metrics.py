"""Errors and the level of chance of each task, against numbers from pencil and paper, and against all constants."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from gerd import bench
from gerd.bench.baselines import BASELINES, baseline
from gerd.bench.examples import Examples, examples_of
from gerd.bench.findings import Outcome, factor_result
from gerd.bench.metrics import METRICS, corners
from gerd.bench.training import errors

TASKS = bench.tasks()


@cache
def some(task: str, count: int = 50) -> Examples:
    """The first recordings of a test in which nothing is changed."""
    (found,) = examples_of([bench.split(task, "test", quick=True)], "cpu", count)
    return found


def of_frames(truth: Tensor, first_step: int = 0) -> Examples:
    return Examples(torch.zeros(len(truth), 1), truth, first_step, truth.shape[1] if truth.ndim > 1 else 1, 1000)


def of_events(truth: Tensor, lengths: list[int], steps: list[int] | None = None, first_step: int = 0) -> Examples:
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    t = 1000 * torch.tensor(steps or [first_step] * len(truth))
    return Examples({"t": t, "offsets": offsets}, truth, first_step, 1 + first_step, 1000)


def test_a_place_is_off_by_its_distance_from_the_first_step_that_counts_on() -> None:
    truth = torch.zeros(2, 4, 2)
    answer = torch.tensor([3.0, 4.0]).expand(2, 4, 2).clone()
    answer[:, 0] = 1000.0
    answer[1, 3] = 0.0
    found = METRICS["locate"].errors(answer, of_frames(truth, 1))
    assert found.tolist() == pytest.approx([5.0, 10 / 3])


def test_a_map_is_off_by_its_corners_now_and_after_eight_steps() -> None:
    truth = torch.tensor([[10.0, 0.0, 32.0], [0.0, 10.0, 32.0]])
    both = torch.stack([truth, torch.zeros(2, 3)]).expand(3, 1, 2, 2, 3)
    answer = both.clone()
    answer[0, :, 0, :, 2] += torch.tensor([3.0, 4.0])  # a shift of T: three of six corners are 5 px off
    answer[1, :, 1, :, 2] += torch.tensor([0.3, 0.4])  # of T′: they drift by 0.5 px per step, for 8 steps
    answer[2, :, 0, 0, 0] += 2.0  # a wider box: each corner is half of that off
    found = METRICS["transform"].errors(answer, of_frames(both))
    assert found.tolist() == pytest.approx([2.5, 2.0, 0.5])
    assert corners(both)[0, 0, :3].tolist() == [[27.0, 27.0], [37.0, 27.0], [27.0, 37.0]]


def test_a_class_is_right_or_wrong() -> None:
    scores = torch.eye(10)[[0, 3, 9]]
    assert METRICS["classify"].errors(scores, of_frames(torch.tensor([0, 4, 9]))).tolist() == [0, 1, 0]


def test_a_velocity_counts_where_it_is_known() -> None:
    truth = torch.tensor([[1.0, 0.0], [math.nan, math.nan], [0.0, 1.0], [0.0, 0.0], [5.0, 5.0]])
    answer = torch.tensor([[0.0, 0.0], [9.0, 9.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    examples = of_events(truth, [3, 2, 0], steps=[2, 2, 2, 2, 1], first_step=2)  # the last event comes too early
    assert METRICS["flow"].errors(answer, examples).tolist() == pytest.approx([1.0, 5.0, math.nan], nan_ok=True)


def test_signal_and_noise_count_the_same_however_many_there_are() -> None:
    truth = torch.tensor([True, False, False, False, False, False])
    said = torch.tensor([2.0, -1.0, -1.0, -1.0, 0.5, 0.5])
    examples = of_events(truth, [5, 1])
    assert METRICS["noise"].errors(said, examples).tolist() == pytest.approx([1 / 8, 1.0])


@pytest.mark.parametrize("task", TASKS)
def test_no_constant_is_better_than_chance(task: str) -> None:
    """Constants that were drawn, and the one that descends to the least error from the best of them."""
    examples, metric = some(task), METRICS[task]
    chance = float(np.nanmean(metric.chance(examples)))
    shape = {"locate": (49, 2), "transform": (49, 2, 2, 3), "classify": (10,), "flow": (2,), "noise": ()}[task]
    of = len(examples.truth) if examples.of_events else len(examples)
    truth = examples.truth[torch.isfinite(examples.truth.reshape(len(examples.truth), -1)).all(1)].double()
    middle, spread = (truth.mean(0), truth.std(0)) if task not in ("classify", "noise") else (torch.zeros(shape), 1.0)
    draws = torch.Generator().manual_seed(1)
    found = []
    for width in (0.0, 0.05, 0.2, 1.0):
        for _ in range(12):
            constant = middle + width * spread * torch.randn(shape, generator=draws, dtype=torch.float64)
            found.append(float(metric.errors(constant.expand(of, *shape), examples).nanmean()))
    assert min(found) >= chance * (1 - 1e-4)
    assert min(found) <= 1.25 * chance  # and some come near


@pytest.mark.parametrize("kind", ["untrained", "constant", "blind"])
@pytest.mark.parametrize("task", TASKS)
def test_what_has_learnt_nothing_is_at_chance_and_never_invariant(task: str, kind: str) -> None:
    """An untrained network; a constant; and an answer that varies and has nothing to do with what is seen."""
    examples = some(task)
    network = baseline("constant" if kind == "constant" else "relu-1", task).build(task, 0)
    if kind == "blind":
        network = Blind(network)
    row = errors(network, bench.task(task), examples)[None]
    tested = Outcome.of(row, METRICS[task].chance(examples))
    result = factor_result("rotation", "°", 0.0, (0.0,), {-90.0: tested, 0.0: tested, 90.0: tested})
    assert result.verdict == "at chance"
    assert result.ratio.value == 1  # it is as flat as can be


class Blind(torch.nn.Module):
    """Shuffles what it sees, so that the answers are to other recordings, or to other events."""

    def __init__(self, network: torch.nn.Module):
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor | dict[str, Tensor]) -> Tensor:
        draws = torch.Generator().manual_seed(3)
        answer: Tensor = self.network(inputs)
        return 3 * answer[torch.randperm(len(answer), generator=draws)]


@pytest.mark.parametrize("task", TASKS)
def test_an_answer_that_is_nearly_right_is_not_at_chance(task: str) -> None:
    examples = some(task)
    truth = examples.truth.nan_to_num(0.0)
    answer = {"classify": lambda: torch.eye(10)[truth], "noise": lambda: truth.double() - 0.5}.get(
        task, lambda: truth + 0.05
    )()
    row = METRICS[task].errors(answer, examples).numpy()[None]
    tested = Outcome.of(row, METRICS[task].chance(examples))
    result = factor_result("rotation", "°", 0.0, (0.0,), {0.0: tested, 90.0: tested})
    assert result.verdict == "invariant"
    assert result.at_chance == ()


@pytest.mark.parametrize("task", TASKS)
def test_baselines_answer_at_every_length_and_learn_from_what_they_are_given(task: str) -> None:
    """Whatever the time scale; and each weight gets a gradient."""
    names = [name for name, each in BASELINES.items() if task in each.tasks]
    for name in names:
        kind = BASELINES[name]
        network = kind.build(task, 0)
        for split in ("test", "test/time_scale/4"):
            (examples,) = examples_of([bench.split(task, split, quick=True)], "cpu", 2)
            answer = network(examples.inputs if examples.of_events else examples.inputs.float())
            events = len(examples.truth) if examples.of_events else 0
            bench.task(task).check_answer(answer.shape, recordings=2, steps=examples.steps, events=events)
        if kind.loss is None:
            METRICS[task].loss(answer, examples).backward()
        else:
            kind.loss(network, examples, torch.Generator().manual_seed(0)).backward()
        without = [weight for weight, value in network.named_parameters() if value.grad is None]
        assert without == [], name


def test_some_recordings_of_events_are_those_recordings() -> None:
    examples = some("flow")
    some_of_them = examples[torch.tensor([4, 1])]
    source = bench.stream("flow", "test", 1, quick=True)
    begin = 0
    for number in (4, 1):
        events, truth = source.batch(number)
        end = begin + len(truth)
        assert torch.equal(some_of_them.inputs["x"][begin:end], events["x"])
        assert torch.equal(some_of_them.truth[begin:end].nan_to_num(9.0), truth.nan_to_num(9.0))
        begin = end
    assert some_of_them.offsets.tolist()[-1] == begin == len(some_of_them.truth)
    assert [len(part) for part in examples.parts(16)] == [16, 16, 16, 2]

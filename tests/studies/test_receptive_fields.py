"""Covariant receptive fields: neurons against definitions, networks by what they can see, findings on known numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gerd.measures.statistics import summary
from gerd.studies import receptive_fields
from gerd.studies.lab.fitting import Deadline, OutOfTimeError
from gerd.studies.lab.folder import read_results
from gerd.studies.lab.results import Made, Results, Run, Settings, SweepResult
from gerd.studies.lab.running import compute_study
from gerd.studies.lab.training import Order
from gerd.studies.models import gaussian_derivatives
from gerd.studies.receptive_fields import findings, neurons, neurons_cuda
from gerd.studies.receptive_fields.learning import Material, errors, errors_of_a_guess, train
from gerd.studies.receptive_fields.networks import KINDS, OCTAVES, STARTS, Design, Kind, Network, Start, initial
from gerd.studies.receptive_fields.stimuli import FIRST_STEP, SCALINGS, SPATIAL, TEMPORAL, simulated, stimuli
from gerd.studies.receptive_fields.trials import EVERY, SIZES, TINY, guess_at, named

LEAKS = torch.tensor([0.5, 0.2, 0.1])
SMOKE = SIZES["smoke"]


class Step(torch.autograd.Function):
    """1 above the threshold, with the gradient that the literature gives it."""

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        ctx.save_for_backward(v)
        return (v > neurons.THRESHOLD).to(v.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        return gradient / (1 + neurons.SLOPE * (v - neurons.THRESHOLD).abs()) ** 2


def defined(currents: Tensor, leaks: Tensor, spiking: bool) -> Tensor:
    """Step by step, with gradients by PyTorch."""
    v, outputs = torch.zeros(()), []
    for step in range(currents.shape[2]):
        v = v + leaks[:, None, None] * (currents[:, :, step] - v)
        fired = Step.apply(v)
        outputs.append(fired if spiking else v)
        v = v * (1 - fired.detach()) if spiking else v
    return torch.stack(outputs, 2)


@pytest.mark.parametrize("spiking", [True, False])
@pytest.mark.parametrize("beside", [1, 3])
def test_neurons_and_their_gradients_are_those_of_the_definition(spiking: bool, beside: int) -> None:
    torch.manual_seed(0)
    of_outputs = torch.randn(2, 3, 9, 4, 5)
    found: list[tuple[Tensor, ...]] = []
    ours = neurons.spikes if spiking else neurons.voltages
    for run in (ours, lambda x, a: defined(x, a, spiking)):
        torch.manual_seed(1)
        currents = (0.6 * torch.rand(2, beside, 9, 4, 5)).requires_grad_()
        leaks = LEAKS.clone().requires_grad_()
        outputs = run(currents, leaks)
        (outputs * of_outputs).sum().backward()
        assert currents.grad is not None
        assert leaks.grad is not None
        found.append((outputs.detach(), currents.grad, leaks.grad))
    assert 0.1 < found[0][0].mean() < 0.9
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("spiking", [True, False])
@pytest.mark.parametrize("beside", [1, 3])
def test_the_kernels_of_a_gpu_do_the_same(spiking: bool, beside: int) -> None:
    """More neurons than a program takes, and not a multiple of it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    currents = 0.6 * torch.rand(2, beside, 5, neurons_cuda.AT_ONCE + 7)
    of_outputs = torch.randn(2, 3, 5, neurons_cuda.AT_ONCE + 7)
    kept, outputs = neurons.forward(currents, LEAKS, spiking)
    wanted = [kept, outputs, *neurons.backward(currents, LEAKS, kept, of_outputs, spiking)]
    there = [each.to(device) for each in (currents, LEAKS, of_outputs)]
    theirs = neurons_cuda.forward(*there[:2], neurons.THRESHOLD, spiking)
    back = neurons_cuda.backward(*there[:2], theirs[0], there[2], neurons.THRESHOLD, neurons.SLOPE, spiking)
    for one, other in zip([*theirs, *back], wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other)


def network(kind: Kind, start: Start = "receptive fields", seed: int = 0) -> Network:
    return Network(Design(kind, start, TINY), seed)


def past_that_matters(kind: Kind) -> list[int]:
    """How many steps before the last one an event may be that the last place depends on."""
    torch.manual_seed(0)
    frames = torch.rand(1, 24, 2, 32, 32) < 0.05
    model = network(kind).eval()
    with torch.no_grad():
        before = model(frames)[0, -1]
        steps = []
        for age in range(20):
            changed = frames.clone()
            changed[0, -1 - age] = ~changed[0, -1 - age]
            if not torch.equal(model(changed)[0, -1], before):
                steps.append(age)
    return steps


@pytest.mark.parametrize(("kind", "steps"), [("ReLU-1", 1), ("ReLU-8", 8), ("LI", 20)])
def test_a_network_sees_as_much_of_the_past_as_its_name_says(kind: Kind, steps: int) -> None:
    assert past_that_matters(kind) == list(range(steps))


def test_spiking_neurons_see_beyond_a_frame() -> None:
    assert max(past_that_matters("LIF")) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_out_the_first_steps_changes_no_other(kind: Kind) -> None:
    torch.manual_seed(0)
    frames = torch.rand(2, 12, 2, 32, 32) < 0.05
    model = network(kind)
    torch.testing.assert_close(model(frames, 9), model(frames)[:, 9:])
    assert model(frames, 9).shape == (2, 3, 3, 2)


def test_the_initialisations_differ_in_their_form_and_not_in_their_variance() -> None:
    fields, uniform = (initial(start, 40, 240, 9, torch.Generator().manual_seed(0)) for start in STARTS)
    he = 2 / (40 * 81)
    assert fields.var().item() == pytest.approx(he, rel=0.1)
    assert uniform.var().item() == pytest.approx(he, rel=0.02)
    bank = gaussian_derivatives(9, (0.7, 1.0, 1.4, 2.0)).flatten(1)
    for output in range(len(bank)):
        ratios = fields[output].flatten(1) @ torch.linalg.pinv(bank[output][None])
        torch.testing.assert_close(ratios * bank[output], fields[output].flatten(1), atol=1e-6, rtol=1e-4)


def test_time_constants_are_octaves_or_between_them() -> None:
    assert network("LI").learnt() == pytest.approx((*OCTAVES, OCTAVES[0]))
    drawn = network("LI", "uniform", 3).learnt()
    assert all(OCTAVES[0] <= each <= OCTAVES[-1] for each in drawn)
    assert drawn != network("LI", "uniform", 4).learnt()
    assert network("ReLU-8").learnt() == ()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_frame_has_the_events_of_three_shapes_that_move_as_the_scaling_says(scaling: Any) -> None:
    amount = scaling.amounts[1]
    configs = [stimuli(scaling, amount, shape, 96) for shape in ("circle", "square", "triangle")]
    data, alone = simulated(configs, 5, 2, "cpu"), [simulated([config], 5, 2, "cpu") for config in configs]
    assert torch.equal(data.frames, alone[0].frames | alone[1].frames | alone[2].frames)
    moved = data.places[:, 1:] - data.places[:, :-1]
    speed = 0.2 if scaling is SPATIAL else amount
    assert (moved.abs().median() - speed).abs() < 1e-5  # but where a shape is reflected
    assert len(torch.unique(data.places[:, 0].flatten())) == 12  # each at a place of its own


def test_recordings_are_in_one_of_training_validation_and_test() -> None:
    material = Material(SPATIAL, SMOKE, 0, "cpu")
    parts = [material.training, material.validation, *material.tests]
    assert [len(part) for part in parts] == [4, 8, 2, 2, 2, 2]
    starts = torch.cat([part.places[:, 0].flatten(1) for part in parts])
    assert len(torch.unique(starts, dim=0)) == len(starts)
    places = [part.places[:, FIRST_STEP:] for part in (material.training, *material.tests)]
    guess, tests = places[0].mean((0, 1, 2)), places[1:]
    for found, test in zip(errors_of_a_guess(SPATIAL, SMOKE, 0), tests, strict=True):
        np.testing.assert_allclose(found, (test - guess).square().sum(-1).sqrt().mean((1, 2)), rtol=1e-5)


def test_a_training_that_was_stopped_ends_with_the_same_best_weights(tmp_path: Path) -> None:
    material = Material(SPATIAL, SMOKE, 0, "cpu")
    order = Order(replace(SMOKE, epochs=3), say=lambda _: None)
    design = Design("LIF", "uniform", TINY)
    whole = Network(design, 1)
    validated = train(whole, material, order, 1, tmp_path / "whole.pt", "").validation
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    again = Network(design, 1)
    for say in (stop, stop, lambda _: None):
        again = Network(design, 1)
        try:
            found = train(again, material, replace(order, say=say), 1, tmp_path / "again.pt", "").validation
        except KeyboardInterrupt:
            continue
    assert len(lines) == 2
    assert found == validated
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in whole.state_dict().items())
    assert errors(again, material.validation).mean() == pytest.approx(min(validated), abs=1e-3)
    with pytest.raises(OutOfTimeError):
        train(Network(design, 1), material, replace(order, deadline=Deadline(0.0)), 1, tmp_path / "new.pt", "")


def test_the_weights_that_count_are_the_best_and_not_the_last(tmp_path: Path) -> None:
    """At this rate the training does not settle."""
    material = Material(SPATIAL, SMOKE, 0, "cpu")
    order = Order(replace(SMOKE, epochs=6, rate=1.0), say=lambda _: None)
    model = network("ReLU-1")
    validated = train(model, material, order, 0, tmp_path / "a.pt", "").validation
    assert min(validated) < validated[-1] - 0.1
    assert errors(model, material.validation).mean() == pytest.approx(min(validated), abs=1e-3)


def test_a_training_learns(tmp_path: Path) -> None:
    """One recording is learnt by heart; before, the network is about as good as a guess."""
    size = replace(SMOKE, epochs=20, rate=1e-2)
    material = Material(TEMPORAL, size, 0, "cpu")
    material.validation = material.training
    order = Order(size, say=lambda _: None)
    validated = train(network("ReLU-1"), material, order, 0, tmp_path / "a.pt", "").validation
    assert min(validated) < 0.9 * validated[0]


# What follows from numbers


def results_of(error: Callable[[str, str, str, int], float], seeds: int = 3) -> Results:
    """Results in which networks have these errors at every amount."""
    runs = []
    for scaling in SCALINGS:
        flat = [SweepResult(scaling.name, scaling.amounts, ((40.0, 40.0),) * 4)]
        runs.append(Run(guess_at(scaling), 0, (), 0.0, tuple(flat)))
        for kind in KINDS:
            for start in STARTS:
                for seed in range(seeds):
                    px = error(scaling.name, kind, start, seed)
                    test = SweepResult(scaling.name, scaling.amounts, ((px, px),) * 4)
                    runs.append(Run(named(kind, start, scaling), seed, (2 * px, px), 1.0, (test,)))
    size = replace(SIZES["full"], seeds=seeds)
    made = Made("2026-01-01", "gerd study receptive-fields", "nothing", 1.0, {"gerd": "1"})
    return Results(Settings("receptive-fields", 0, size, "", {}), made, summary([40.0]), tuple(runs))


def as_published(scaling: str, kind: str, start: str, seed: int) -> float:
    return findings.PUBLISHED[scaling, kind][STARTS.index(start)] + 0.01 * seed  # type: ignore[arg-type]


def test_what_was_published_would_be_found() -> None:
    text = " ".join(findings.opening(results_of(as_published)))
    assert text.count("LI < LIF, LIF < ReLU-8 and ReLU-8 < ReLU-1 come out") == 2
    assert text.count("better than uniform initialisation with LI, LIF, ReLU-8 and ReLU-1") == 2
    assert "cannot be told apart" not in text


def test_the_opposite_and_what_cannot_be_told_are_said_too() -> None:
    def other(scaling: str, kind: str, start: str, seed: int) -> float:
        if scaling == "temporal":  # as large as the seeds differ
            return 10 + (3 * seed if start == "uniform" else -3 * seed) * (-1) ** seed + KINDS.index(kind) * (seed - 1)
        return 40 - as_published(scaling, kind, start, seed)

    text = " ".join(findings.opening(results_of(other)))
    assert "over sizes LI > LIF, LIF > ReLU-8 and ReLU-8 > ReLU-1 come out the other way round" in text
    assert "(the means are in the order ReLU-1 < ReLU-8 < LIF < LI)" in text
    assert (
        "Receptive fields are over sizes worse with LI, LIF, ReLU-8 and ReLU-1; over speeds neither clearly better"
        in text
    )
    assert "over speeds LI – LIF, LIF – ReLU-8 and ReLU-8 – ReLU-1 cannot be told apart" in text
    assert "neither clearly better nor clearly worse" in text


def test_an_interval_over_seeds_is_students() -> None:
    """The three numbers 1, 2, 3: mean 2, standard error 1/√3, t of two degrees of freedom 4.303."""
    found = findings.OverSeeds((1.0, 2.0, 3.0))
    assert found.interval == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))
    assert found.sign == 0
    assert findings.OverSeeds((2.9, 3.0, 3.1)).sign == 1
    assert findings.OverSeeds((-2.9, -3.0, -3.1)).sign == -1
    assert findings.OverSeeds((5.0,)).interval is None
    assert findings.OverSeeds((5.0,)).sign == 0


def test_differences_are_taken_seed_by_seed() -> None:
    """Seeds differ by more than the initialisations, and by the same with both."""
    found = findings.gains(
        results_of(lambda _, kind, start, seed: 10.0 * seed + (0.5 if start == "uniform" else 0) + 0.001 * seed),
        SPATIAL,
    )
    assert all(each.sign == 1 and each.mean == pytest.approx(0.5) for _, each in found)


def test_one_seed_gives_no_finding(tmp_path: Path) -> None:
    text = receptive_fields.report(results_of(as_published, seeds=1), tmp_path)
    assert "comes out" not in text
    assert "come out" not in text
    assert "clearly larger" not in text
    assert "of one seed" in text


def test_the_report_puts_published_numbers_beside_ours(tmp_path: Path) -> None:
    text = receptive_fields.report(results_of(as_published), tmp_path)
    row = next(line for line in text.splitlines() if line.startswith("| temporal | ReLU-8"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:4] == ["14", "20.3"]
    assert cells[4].startswith("14.01 (")
    assert cells[5].startswith("20.31 (")
    assert cells[6].startswith("6.30 (")
    assert cells[7] == "35%"
    assert re.findall(r"!\[\w+\]\((\w+)\.png\)", text) == ["errors", "training"]
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 4 * (2 + len(EVERY) * 3)


def test_a_study_that_ran_out_of_time_is_continued_by_the_same_call(tmp_path: Path) -> None:
    with pytest.raises(OutOfTimeError, match="16 networks"):
        compute_study("receptive-fields", tmp_path, size="smoke", minutes=0)
    assert read_results(tmp_path, "receptive-fields").missing > 0

"""The paper's demonstration: what is trained on what, and what is said of numbers that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from typer.testing import CliRunner

from gerd.cli.app import app
from gerd.errors import GerdError
from gerd.measures.statistics import summary
from gerd.recording.simulate import simulate
from gerd.studies import demonstration
from gerd.studies.demonstration import findings
from gerd.studies.demonstration.choices import Choices, chosen
from gerd.studies.demonstration.taken import taken
from gerd.studies.demonstration.trials import (
    BASELINE,
    EQUAL,
    EVIDENCE,
    MODELS,
    SCALES,
    SHORTER,
    SHORTEST,
    SIZES,
    SPEEDS,
    UNSEEN,
    WEIGHTED,
    build,
    recordings_of,
    stimuli,
)
from gerd.studies.lab.folder import read_results, read_settings
from gerd.studies.lab.results import Made, Results, Run, Settings, SweepResult
from gerd.studies.lab.training import TINY, Order, recordings

Error = Callable[[float], float]  # of a scale, the mean error
SD = 0.5
# The means that an earlier trial had, in words: each grows with the distance from s = 1.
FIVE: Error = lambda s: 1.4 + 3 * abs(np.log2(s))  # noqa: E731
ONE: Error = lambda s: 1.1 + 5 * abs(np.log2(s))  # noqa: E731
SHORT: Error = lambda s: 0.8 + 1 * abs(np.log2(s))  # noqa: E731


def invented(errors: dict[str, Error], seeds: int = 5, chance: float = 40.0) -> Results:
    """Results with these mean errors and an SD of SD, in 200 recordings of each scale."""

    def run(model: str, seed: int) -> Run:
        rng = np.random.default_rng([seed, MODELS.index(model)])
        noise = [rng.normal(0, 1, 200) for _ in SCALES]
        table = [
            errors[model](s) + SD * (each - each.mean()) / each.std(ddof=1)
            for s, each in zip(SCALES, noise, strict=True)
        ]
        shares = (0.4, 0.3, 0.1, 0.1, 0.1) if model == WEIGHTED else ()
        flat = ((chance,) * 200,) * len(SCALES)
        test = SweepResult("speed", SCALES, tuple(tuple(each) for each in table), chance=flat)
        return Run(model, seed, (1.0, 0.5), 1.0, (test,), shares=shares, validation=(2.0, 1.5))

    runs = tuple(run(model, seed) for model in MODELS if model in errors for seed in range(seeds))
    size = replace(SIZES["full"], seeds=seeds)
    settings = Settings("demonstration", 0, size, "digest", Choices().__dict__)
    return Results(
        settings, Made("2026-01-01", "gerd", "x", 1.0, {}), summary([chance - 1, chance, chance + 1] * 20), runs
    )


THREE = {WEIGHTED: FIVE, BASELINE: ONE, SHORTEST: SHORT}


def test_the_opening_says_that_the_result_holds_and_what_it_depends_on() -> None:
    claim, limit, factor = findings.opening(invented(THREE))
    assert claim.startswith("The paper's result holds: ")
    assert "have d > 0.8 in every one of 5 seeds at 8 of 8 unseen scales" in claim
    assert "surely better at 8 and surely worse at 0 of 8 unseen scales" in claim
    nearest = (ONE(0.7) - FIVE(0.7)) / SD  # of 0.7 and 1.4, the one whose logarithm is nearer to 0; both SDs are SD
    other = (ONE(1.4) - FIVE(1.4)) / SD
    assert f"smallest d {min(nearest, other):.2f} (" in claim
    assert limit.startswith(
        "But the baseline's μ decides: one channel with μ = 1.25 is surely better at 8 and surely worse at 0 of 8"
    )
    assert "at s = 1 it is surely better" in limit
    largest = FIVE(0.25) / FIVE(1)
    assert float(factor.split("by a factor of ")[1].split(" ")[0]) == pytest.approx(largest, rel=0.1)


def test_the_opening_follows_the_numbers_where_they_are_otherwise() -> None:
    small: Error = lambda s: ONE(s) - 0.2 * (s != 1)  # noqa: E731 - surely better, by d = 0.4
    claim, limit, _ = findings.opening(invented({WEIGHTED: small, BASELINE: ONE, SHORTEST: ONE}))
    assert claim.startswith("The paper's result holds, but not with a large effect everywhere: ")
    assert "in every one of 5 seeds at 0 of 8 unseen scales" in claim
    assert limit.startswith("Another μ of the baseline does not change that: ")

    slow: Error = lambda s: ONE(s) - 1.0 * (s < 1)  # noqa: E731
    claim, limit, _ = findings.opening(invented({WEIGHTED: slow, BASELINE: ONE, SHORTEST: slow}))
    assert claim.startswith("The paper's result holds at some speeds only: ")
    assert "surely better at 4 (s = 0.25, 0.35, 0.5, 0.7) and surely worse at 0 of 8" in claim

    claim, limit, _ = findings.opening(invented({WEIGHTED: ONE, BASELINE: FIVE, SHORTEST: slow}))
    assert claim.startswith("The paper's result is not found: ")
    assert limit.startswith("The baseline's μ matters: ")


def test_a_smaller_experiment_is_called_that() -> None:
    size = replace(SIZES["quick"], epochs=23, seeds=5)
    results = invented(THREE)
    claim = findings.opening(replace(results, settings=replace(results.settings, size=size)))[0]
    assert claim.startswith("In this smaller experiment the paper's result holds: ")


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (invented(THREE, seeds=2), "2 trainings of each, and 3 are the least"),
        (
            replace(invented(THREE), settings=replace(invented(THREE).settings, size=SIZES["quick"])),
            "352 updates in each training, and 1000 are the least",
        ),
        (invented(THREE, chance=1.3), "the five channels at chance at s = 1 in 5 of 5 seeds"),
        (invented({WEIGHTED: FIVE}), "one channel with μ = 5 was not trained"),
    ],
)
def test_nothing_is_concluded_of_few_trainings_or_of_networks_at_chance(results: Results, reason: str) -> None:
    claim, limit, _ = findings.opening(results)
    assert f"no conclusion ({reason})" in claim
    assert "no conclusion (" in limit
    assert "surely" not in claim + limit
    assert f"comparatively strong at lower velocities: no conclusion ({reason})" in findings.conclusions(results)[0]


def test_of_two_networks_at_chance_neither_has_a_large_effect() -> None:
    """At s = 4 both are worse than an answer that looks at nothing, the five channels by much less."""
    found = findings.outcome(invented(THREE, chance=7.0), BASELINE, WEIGHTED)
    assert found.comparisons[-1].effects[0].d > 0.8
    assert found.lost == [0.25, 4.0]
    assert found.better == found.large == [0.35, 0.5, 0.7, 1.4, 2.0, 2.8]
    claim, _, factor = findings.opening(invented(THREE, chance=7.0))
    assert claim.startswith("The paper's result holds at some speeds only: ")
    assert "d > 0.8 in every one of 5 seeds at 6 (s = 0.35, 0.5, 0.7, 1.4, 2, 2.8) of 8 unseen scales" in claim
    assert "surely worse at 0, both at chance at 2 (s = 0.25, 4), of 8 unseen scales" in claim
    assert factor.count("(at chance at some amount in 5 of 5 seeds)") == 2


def test_whether_the_baseline_is_stronger_at_lower_velocities() -> None:
    steep: Error = lambda s: ONE(s) + 4 * (s > 1)  # noqa: E731
    holds = invented({**THREE, BASELINE: steep})
    assert findings.slower_than_faster(holds) == (4, 4)
    assert findings.conclusions(holds)[0].startswith(
        "That the baseline is comparatively strong at lower velocities holds:"
    )
    both = invented({WEIGHTED: lambda s: FIVE(s) + 9 * (s > 1), BASELINE: steep})  # the five channels get worse by more
    assert findings.slower_than_faster(both) == (4, 0)
    assert "holds in part" in findings.conclusions(both)[0]
    neither = invented({**THREE, BASELINE: lambda s: ONE(s) + 4 * (s < 1)})
    assert findings.slower_than_faster(neither) == (0, 0)
    assert "does not hold" in findings.conclusions(neither)[0]


def test_conclusions_have_the_other_networks_and_the_learnt_weights() -> None:
    more = {SHORTER: SHORT, EQUAL: lambda s: FIVE(s) + 0.3, EVIDENCE: FIVE}
    text = " ".join(findings.conclusions(invented({**THREE, **more})))
    assert "The smallest mean error is at the speed of the training with the five channels in 5 of 5 seeds" in text
    against = "against the five channels with their weighted sum: surely better at"
    assert f"One channel with μ = 2.5 {against} 8 and surely worse at 0 of 8" in text
    assert f"The five with equal weights {against} 0 and surely worse at 8 of 8" in text
    assert "0.40 (0.40 to 0.40) for μ = 1.25" in text
    apart = invented({**THREE, WEIGHTED: lambda s: 5 - s})
    assert "with the five channels in 0 of 5 seeds" in findings.conclusions(apart)[1]


def test_the_recordings_are_shared_out_as_in_the_paper() -> None:
    size = SIZES["full"]
    at_one = recordings_of(size, 1.0)
    assert (size.training, size.validation, len(at_one)) == (1400, 300, 300)
    assert at_one == range(1700, 2000)
    assert {recordings_of(size, scale) for scale in UNSEEN} == {range(2000, 2400)}
    assert size.seeds == 5
    assert {*size.models} == {*MODELS}


def test_the_stimuli_move_as_the_table_says() -> None:
    config = stimuli(96, 0, Choices())
    assert config.steps == 60
    assert config.noise.event == 0
    for scale in (0.25, 1.0, 4.0):
        g = SPEEDS.transformation(scale)
        data = recordings(config, 0, 40, "cpu", g)
        assert data.frames.shape == (40, 60, 2, 96, 96)
        moved = data.places.diff(dim=1).abs()
        steady = moved.isclose(torch.tensor(scale), atol=1e-4)
        assert steady.float().mean() > (0.98 if scale <= 1 else 0.9)  # but where a square turns back
    still = simulate(config, 3)
    sides = still.parameters["scale_x"][:, 0]
    assert np.isclose(np.abs(np.diff(sides)), 0.25).mean() > 0.9
    assert 0.1 * 96 - 1e-9 <= sides.min() <= sides.max() <= 0.4 * 96 + 1e-9


def test_every_network_gets_the_same_number_of_updates(tmp_path: Path) -> None:
    size = replace(SIZES["smoke"], training=10, epochs=3)
    counts: list[int] = []
    told: list[str] = []
    hook = register_optimizer_step_post_hook(lambda *_: counts.append(len(told)))
    try:
        demonstration.compute(tmp_path, Order(size, say=told.append))
    finally:
        hook.remove()
    assert size.updates == 9  # three batches, of 4, 4 and 2, in each of three epochs
    assert len(counts) == 9 * len(MODELS)
    results = read_results(tmp_path)
    assert [run.model for run in results.runs] == list(MODELS)
    assert all(len(run.losses) == len(run.validation) == 3 for run in results.runs)
    assert [len(errors) for errors in results.runs[0].tests[0].errors] == [5, 5, 5, 5, 4, 5, 5, 5, 5]
    assert len(results.of(WEIGHTED)[0].shares) == 5
    assert results.of(EQUAL)[0].shares == results.of(BASELINE)[0].shares == ()


def test_a_network_is_what_it_is_called() -> None:
    networks = {model: build(model, Choices(middle=4.0), TINY, seed=3) for model in MODELS}
    mus = {model: network.mus.tolist() for model, network in networks.items()}
    assert mus[WEIGHTED] == mus[EQUAL] == mus[EVIDENCE] == [1, 2, 4, 8, 16]
    assert (mus[BASELINE], mus[SHORTER], mus[SHORTEST]) == ([4], [2], [1])
    assert [networks[model].fusion for model in (WEIGHTED, EQUAL, EVIDENCE)] == ["weighted", "uniform", "evidence"]
    assert networks[WEIGHTED].learnt() == ()
    assert build(BASELINE, Choices(time_constants="learnt"), TINY, 0).learnt() == (5.0, 5.0)


def test_what_the_paper_leaves_open_can_be_taken_otherwise(tmp_path: Path) -> None:
    runner = CliRunner()
    arguments = ["study", "demonstration", "--smoke", "--minutes", "0"]
    runner.invoke(app, [*arguments, "--out", str(tmp_path / "a")])
    runner.invoke(app, [*arguments, "--out", str(tmp_path / "b"), "--set", "size_velocity=1", "--set", "kept=0.5"])
    usual, other = read_settings(tmp_path / "a"), read_settings(tmp_path / "b")
    assert other.own == {**usual.own, "size_velocity": 1.0, "kept": 0.5}
    assert usual.config != other.config
    assert usual.digest != other.digest
    results = read_results(tmp_path / "b")
    assert results.made.command == "gerd study demonstration --smoke --set size_velocity=1 --set kept=0.5"
    table = taken(results)
    assert "the side changes by ±1 px per step" in table
    assert "50% of them are kept" in table
    config = stimuli(32, 0, chosen(["size_velocity=1", "kept=0.5"]))
    assert np.isclose(np.abs(np.diff(simulate(config, 0).parameters["scale_x"][:5, 0])), 1).any()
    assert config.noise.event == 0.5


def test_every_field_stands_in_the_table() -> None:
    table = taken(invented(THREE))
    for name in Choices().__dict__:
        assert f"`{name}`" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demonstration", "--set", "size_velocty=1"], "did you mean size_velocity? allowed: velocity, size_velocity"),
        (["demonstration", "--set", "kept"], "--set kept: allowed: NAME=VALUE"),
        (["demonstration", "--set", "kept=2"], "--set kept=2: Input should be less than or equal to 1"),
        (["demonstration", "--set", "kept=some"], "--set kept=some: Input should be a valid number"),
        (["demonstration", "--set", "time_constants=free"], "Input should be 'fixed' or 'learnt'"),
        (["demonstration", "--set", "smallest=0.5"], "--set smallest=0.5: allowed: at most largest, which is 0.4"),
        (["noise", "--set", "kept=0.5"], "--set: goes with the study demonstration, not with noise"),
        (["demonstration", "--model", "a:b"], "--model: goes with the study symmetry, not with demonstration"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["study", *arguments, "--smoke"])
    assert isinstance(result.exception, GerdError), result.output
    assert message in str(result.exception)


@pytest.mark.long
def test_the_quick_study_says_the_same_or_nothing(tmp_path: Path) -> None:
    """Ten minutes on two cores, which are too few for a conclusion; another size may come to the same."""
    result = CliRunner().invoke(app, ["study", "demonstration", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    claim, limit, _ = findings.opening(read_results(tmp_path))
    assert claim.startswith("The paper's result holds") or "no conclusion" in claim
    assert limit.startswith(("But the baseline's μ decides", "The baseline's μ matters")) or "no conclusion" in limit

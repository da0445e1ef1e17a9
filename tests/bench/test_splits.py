"""Tasks, factors and splits: who sees what, and that a test differs from the neutral one in one thing."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gerd
from gerd.bench import Factor, Split

TASKS = gerd.bench.tasks()
SIZES = [(regime, quick) for regime in ("one", "inner") for quick in (False, True)]


def named(name: str) -> Factor:
    return gerd.bench.factor(name)


def test_there_are_five_tasks_and_thirteen_factors() -> None:
    assert TASKS == ("locate", "transform", "classify", "flow", "noise")
    assert [factor.name for factor in gerd.bench.factors()] == [
        "translation", "rotation", "scale", "shear", "boost", "acceleration", "time_scale",
        "density", "background", "contrast", "threshold_spread", "refractory", "leak",
    ]  # fmt: skip


@pytest.mark.parametrize("factor", gerd.bench.factors(), ids=lambda factor: factor.name)
def test_the_neutral_amount_is_that_of_every_task_and_training_keeps_clear_of_the_outer_ones(factor: Factor) -> None:
    amounts = np.array(factor.amounts)
    assert (np.diff(amounts) > 0).all()
    assert factor.neutral in factor.amounts
    assert set(factor.inner) | set(factor.outer) | {factor.neutral} == set(factor.amounts)
    for side in (amounts[amounts < factor.neutral][::-1], amounts[amounts > factor.neutral]):
        inner = [amount in factor.inner for amount in side]
        assert inner == sorted(inner, reverse=True)  # the inner ones come first
        assert len(side) in (0, 3, 5)
        assert len(side) == 0 or not inner[-1]
    for task in TASKS:
        config = gerd.bench.task(task).config
        assert factor.set(config, factor.neutral).digest == config.digest
        others = {factor.set(config, amount).digest for amount in factor.amounts}
        assert len(others) == len(factor.amounts)


@pytest.mark.parametrize("task", TASKS)
def test_no_recording_is_in_two_of_training_validation_and_test(task: str) -> None:
    """The draw of a recording is a function of seed and index, so no seed is in two of them; nor is any camera."""
    for quick in (False, True):
        every = [*gerd.bench.splits(task, quick), *gerd.bench.splits(task, quick, "inner")]
        for one, other in itertools.combinations(("train", "validate", "test"), 2):
            drawn = [{split.config.seed for split in every if split.kind == kind} for kind in (one, other)]
            cameras = [{split.config.camera.number for split in every if split.kind == kind} for kind in (one, other)]
            assert drawn[0].isdisjoint(drawn[1])
            assert cameras[0].isdisjoint(cameras[1])
    seeds = [{split.config.seed for split in gerd.bench.splits(task, quick, "inner")} for quick in (False, True)]
    assert seeds[0].isdisjoint(seeds[1])
    starts = [gerd.simulate(split.config.replace(steps=1)).truth for split in gerd.bench.splits(task, True)[:3]]
    for one, other in itertools.combinations(starts, 2):
        assert (one[0, :, 0, :2] != other[0, :, 0, :2]).all()


@pytest.mark.parametrize(("regime", "quick"), SIZES)
def test_training_sees_what_its_regime_allows_and_the_test_all_the_rest(regime: str, quick: bool) -> None:
    splits = gerd.bench.splits("locate", quick, regime)
    seen = {(split.factor, split.amount) for split in splits if split.kind != "test"}
    inner = {(factor.name, amount) for factor in gerd.bench.factors() for amount in factor.inner}
    assert seen == ({(None, None)} if regime == "one" else {(None, None)} | inner)
    tested = [(split.factor, split.amount) for split in splits if split.kind == "test"]
    outer = {(factor.name, amount) for factor in gerd.bench.factors() for amount in factor.outer}
    outermost = {(factor.name, amount) for factor in gerd.bench.factors() for amount in factor.outermost}
    assert set(tested) == ({(None, None)} | outermost if quick else {(None, None)} | inner | outer)
    assert len(tested) == len(set(tested))
    counts = {kind: sum(each.count for each in splits if each.kind == kind) for kind in ("train", "validate")}
    assert counts == ({"train": 400, "validate": 100} if quick else {"train": 2000, "validate": 300})
    assert {split.count for split in splits if split.kind == "test"} == {50 if quick else 200}
    assert all(split.count > 0 for split in splits)


def test_a_test_differs_from_the_neutral_one_in_its_amount_alone() -> None:
    neutral = gerd.bench.split("flow", "test").config
    for split in gerd.bench.splits("flow"):
        if split.kind == "test" and split.factor is not None and split.amount is not None:
            factor = named(split.factor)
            assert factor.set(split.config, factor.neutral).digest == neutral.digest != split.config.digest
            assert gerd.bench.split("flow", f"test/{split.factor}/{split.amount:g}") == split


def simulated(split: Split, count: int = 2) -> list[gerd.Recording]:
    return [gerd.simulate(split.config, index) for index in range(count)]


def test_factors_do_what_they_are_called() -> None:
    """Of the ground truth and the events, in the closed form of each."""
    still = simulated(gerd.bench.split("locate", "test"))

    def at(name: str) -> list[gerd.Recording]:
        return simulated(gerd.bench.split("locate", f"test/{name}"))

    t = np.arange(49)[:, None, None]
    middle = np.array([32, 32])
    for before, moved, turned, large, sheared, boosted, pushed in zip(
        still, at("translation/16"), at("rotation/90"), at("scale/0.5"), at("shear/0.6"), at("boost/-0.6"),
        at("acceleration/0.05"), strict=True,
    ):  # fmt: skip
        places = before.positions
        around = places - middle
        assert np.allclose(moved.positions, places + np.array([16, 0]))
        assert np.allclose(turned.positions, middle + np.stack([-around[..., 1], around[..., 0]], -1))
        assert np.allclose(large.positions, middle + around / 2)
        assert np.allclose(sheared.positions, places + 0.6 * around[..., 1:] * [1, 0])
        assert np.allclose(boosted.positions, places - 0.6 * (t - 24) * [1, 0])
        assert np.allclose(pushed.positions, places + 0.05 / 2 * (t - 24) ** 2 * [1, 0])
    for before, fast in zip(still, at("time_scale/4"), strict=True):
        assert (fast.steps, gerd.bench.split("locate", "test/time_scale/4").first_step) == (13, 4)
        assert np.array_equal(fast.positions, before.positions[::4])
        edges, sooner = before.events[before.source == 0], fast.events[fast.source == 0]
        assert all(np.array_equal(np.sort(edges[name]), np.sort(sooner[name])) for name in "xyp")
    for before, few in zip(still, at("density/0.1"), strict=True):
        edges = int((before.source == 0).sum())
        assert abs(int((few.source == 0).sum()) - 0.1 * edges) < 5 * np.sqrt(0.09 * edges)


def test_answers_of_another_shape_are_refused_with_the_one_that_is_meant() -> None:
    frames, positions = gerd.bench.stream("locate", "train-one", 4, quick=True).batch(0)
    assert isinstance(frames, torch.Tensor)
    assert (frames.shape, positions.shape) == ((4, 49, 2, 64, 64), (4, 49, 1, 2))
    task = gerd.bench.task("locate")
    task.check_answer((4, 49, 2), recordings=4, steps=49)
    with pytest.raises(gerd.GerdError, match=r"\(4, 49, 3\); allowed: \(recordings, steps, 2\), here \(4, 49, 2\): x"):
        task.check_answer((4, 49, 3), recordings=4, steps=49)
    for name in ("flow", "noise"):
        events, truth = gerd.bench.stream(name, "test", 2, quick=True).batch(0)
        gerd.bench.task(name).check_answer(truth.shape, events=len(events["t"]))


def test_what_a_split_holds_depends_on_neither_batch_nor_loop() -> None:
    split = gerd.bench.split("transform", "validate-inner/leak/8", quick=True)
    one, two = (gerd.bench.stream("transform", split, size, quick=True) for size in (1, 2))
    (first, _), (second, _), (both, truth) = one.batch(0), one.batch(1), two.batch(0)
    assert torch.equal(torch.cat([first, second]), both)
    alone = gerd.simulate(split.config, 1)
    assert torch.equal(alone.frames(), both[1])
    assert torch.equal(torch.from_numpy(alone.T).float(), truth["T"][1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gerd.bench.task("lokate"), "task 'lokate': did you mean locate"),
        (lambda: gerd.bench.factor("rotate"), "factor 'rotate': did you mean rotation"),
        (lambda: gerd.bench.splits("locate", regime="iner"), "regime 'iner': did you mean inner"),
        (lambda: gerd.bench.split("locate", "test/rotaion/60"), "did you mean test/rotation/60"),
        (lambda: gerd.bench.split("locate", "train-inner"), "it has parts, from train-inner/neutral to"),
        (lambda: gerd.bench.split("locate", None), "split None: allowed"),  # type: ignore[arg-type]
        (lambda: gerd.bench.split("locate", ["test"]), r"split \['test'\]: allowed"),  # type: ignore[arg-type]
        (lambda: gerd.bench.splits({}), "task {}: allowed"),  # type: ignore[arg-type]
        (lambda: gerd.bench.stream("locate", "test", 7), "that divides the 200 recordings of test: 1, 2, 4"),
        (lambda: gerd.bench.stream("locate", "test", 0), "batch_size 0"),
        (lambda: gerd.bench.stream("locate", gerd.bench.split("flow", "test"), 5), "is one of flow, not of locate"),
    ],
)
def test_mistakes_are_told(call: Any, message: str) -> None:
    with pytest.raises(gerd.GerdError, match=message):
        call()


def test_the_page_has_the_tables_of_the_package() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")
    for factor in gerd.bench.factors():
        (row,) = re.findall(rf"^\| `{factor.name}` \| (.*) \|$", page, re.MULTILINE)
        _, unit, *amounts = row.split(" | ")
        assert unit.strip() == factor.unit
        lists = [[factor.neutral], factor.inner, factor.outer]
        assert amounts == [", ".join(f"{amount:g}" for amount in each) for each in lists]
    for name in TASKS:
        about = gerd.bench.task(name)
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", page, re.MULTILINE)
        assert row.startswith(f"{about.title} | {about.item} | {about.shape}: {about.answer} | {about.error}")
    for kind, full, quick in re.findall(r"^\| (training|validation|each test).*\| (\d+) \| (\d+)", page, re.MULTILINE):
        for size, count in ((False, full), (True, quick)):
            splits = gerd.bench.splits("locate", size)
            counts = {split.count for split in splits if kind.removeprefix("each ").startswith(split.kind[:5])}
            assert counts == {int(count)}

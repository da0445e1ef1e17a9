"""Verdicts: none of models that have learnt nothing, and the right one of models known by construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from support.scenes import FALSE_ALARM, actor, config
from torch import Tensor

from gerd import measure
from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.events import backends
from gerd.measures import chance
from gerd.measures.answers import between_recordings, relative_error
from gerd.measures.curves import Curve
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.transformation import Transformation, background, density, rotation, scale, time_scale, translation

COUNT = 16


def scattered(**fields: Any) -> Config:
    """Squares of one size, upright, that start anywhere near the middle and move on a straight path."""
    square = actor("square", at={"uniform": [18.0, 30.0]}, velocity=(0.37, 0.61), size=9.0)
    return config(square, width=48, height=48, steps=8, **{"integrator": {"initial": 0.0, "warmup": 4}, **fields})


def centroid(frames: Tensor) -> Tensor:
    """(batch, steps, 2): the mean place of the events up to each step. Moves with them by construction."""
    heat = frames.double().cumsum(1).sum(2)
    x, y = torch.arange(heat.shape[-1]) + 0.5, torch.arange(heat.shape[-2]) + 0.5
    total = heat.sum((-1, -2))
    return torch.stack([(heat.sum(-2) * x).sum(-1), (heat.sum(-1) * y).sum(-1)], dim=-1) / total[..., None]


def constant(frames: Tensor) -> Tensor:
    return torch.tensor([0.3, -1.2, 0.7]).expand(len(frames), 3)


def untrained(seed: int) -> Any:
    """Three scores of random convolutions, in which the bias of the last layer is nearly everything."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = torch.nn.Sequential(
            torch.nn.Conv2d(2, 8, 5, 2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 16, 5, 2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(16, 3),
        )
    return lambda frames: layers(frames.mean(1))


def sizes(frames: Tensor) -> Tensor:
    """(batch, 2): how many events there are of each polarity, beside a number that is always the same and large."""
    counts = frames.sum((1, 3, 4))
    return torch.cat([counts, torch.full((len(frames), 1), 1e6)], dim=1)


def several_sizes() -> Config:
    square = actor("square", at={"uniform": [18.0, 30.0]}, velocity=(0.37, 0.61), size={"uniform": [6.0, 12.0]})
    return config(square, width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4})


@pytest.mark.parametrize("model", [constant, *map(untrained, range(9))])
def test_none_of_ten_networks_that_have_learnt_nothing_is_called_invariant(model: Any) -> None:
    """All but a few of them passed as long as the error was taken relative to the size of the answer."""
    with pytest.raises(AssertionError) as failed:
        measure.assert_invariant(model, scattered(), rotation(37), tolerance=0.02, count=COUNT)
    said = str(failed.value)
    if model is constant:
        assert "no verdict on whether the model is invariant within 0.02: the model says the same of every" in said
        return
    assert "the model is not invariant within 0.02" in said
    found = measure.invariance_error(model, scattered(), rotation(37), count=COUNT)
    assert found.relative is not None
    assert 0.3 < found.relative.value < 3  # as different as unrelated scenes
    assert f"between recordings: {found.between:.4g}" in said
    answers = model(backends.frames(draw(plan_of(scattered()), range(COUNT))).float())
    assert found.absolute.value < 0.02 * answers.square().mean().sqrt()  # what was small before


@pytest.mark.parametrize("bounds", [{"tolerance": 10.0}, {"absolute": 10.0}, {"tolerance": 10.0, "absolute": 10.0}])
def test_no_bound_is_wide_enough_for_a_model_that_says_the_same_of_everything(bounds: dict[str, float]) -> None:
    def nearly(frames: Tensor) -> Tensor:
        """The same but for the last bits, which the order of a sum decides."""
        noise = (frames.sum((1, 2, 3, 4)) % 3 - 1)[:, None] * torch.finfo(torch.float32).eps
        return constant(frames) * (1 + noise)

    def brief(frames: Tensor) -> Tensor:
        return nearly(frames).bfloat16()

    def place(frames: Tensor) -> Tensor:
        return torch.full((*frames.shape[:2], 2), 24.0)

    for model in (constant, nearly, brief):
        with pytest.raises(AssertionError, match=r"no verdict on .* the model says the same of every recording:"):
            measure.assert_invariant(model, several_sizes(), rotation(90), count=COUNT, **bounds)

    for g in (rotation(90), translation(1)):
        with pytest.raises(AssertionError, match=r"no verdict on .* equivariant .*says the same of every recording:"):
            measure.assert_equivariant(place, scattered(), g, count=COUNT, **bounds)
    found = measure.equivariance_error(place, scattered(), translation(3, 4), count=COUNT)
    assert found.relative is None
    assert np.isnan(found.values[:, 0]).all()
    assert found.absolute.value == pytest.approx(5.0)
    assert "the same answer to every recording; absolute 5 " in str(found)


def test_a_model_that_says_the_same_of_all_but_a_few_recordings_gets_no_verdict() -> None:
    """Resampled recordings often have none of the few; with four they have one in all but 1.8 % of the cases."""

    def rare(few: int) -> Any:
        def model(frames: Tensor) -> Tensor:
            return (torch.arange(len(frames)) < few).float()[:, None]

        return model

    for few in (1, 3):
        with pytest.raises(AssertionError, match=f"says the same of every recording but {few}: "):
            measure.assert_invariant(rare(few), scattered(), rotation(90), tolerance=0.1, count=COUNT)
    measure.assert_invariant(rare(4), scattered(), rotation(90), tolerance=0.1, count=COUNT)


def test_an_exactly_equivariant_model_passes_and_one_that_was_broken_does_not() -> None:
    """The events of a scene that is moved by whole pixels or turned by 90° are the same ones, elsewhere."""
    for g in (translation(3, -2), rotation(90)):
        found = measure.assert_equivariant(centroid, scattered(), g, tolerance=1e-9, absolute=1e-6, count=COUNT)
        assert found.verdict(1e-9) == "holds"
        assert found.relative is not None
        assert found.chance is not None
        assert found.chance < 0.01
    broken = {
        "stretched": lambda frames: 24 + 1.2 * (centroid(frames) - 24),
        "stuck in x": lambda frames: centroid(frames) * torch.tensor([0.0, 1.0]),
        "on a grid": lambda frames: (centroid(frames) / 8).round() * 8,
        "exchanged": lambda frames: centroid(frames).flip(-1),
        "mirrored": lambda frames: 48 - centroid(frames),
    }
    for model in broken.values():
        with pytest.raises(AssertionError, match=r"the model is not equivariant within 0\.05: translation"):
            measure.assert_equivariant(model, scattered(), translation(7, -3), tolerance=0.05, count=COUNT)


def test_an_exactly_invariant_model_passes_and_one_that_was_broken_does_not() -> None:
    """A constant beside what varies makes the error no smaller: with it, a hundredth of the events more was 1e-5."""
    g = translation(3, -2)
    assert measure.assert_invariant(sizes, several_sizes(), g, tolerance=0, count=COUNT).different >= COUNT - 1
    with pytest.raises(AssertionError, match=r"the model is not invariant within 0\.05"):
        measure.assert_invariant(sizes, several_sizes(), density(0.9), tolerance=0.05, count=COUNT)
    with pytest.raises(AssertionError, match=r"the model is not invariant within 0\.5"):
        measure.assert_invariant(centroid, scattered(), translation(12), tolerance=0.5, count=COUNT)


def test_a_model_that_draws_its_answers_is_as_far_from_itself_as_from_other_scenes() -> None:
    draws = torch.Generator().manual_seed(1)

    def drawn(frames: Tensor) -> Tensor:
        return 100 + torch.randn(len(frames), 50, generator=draws)

    found = measure.invariance_error(drawn, scattered(), translation(1), count=64)
    assert found.relative is not None
    assert found.relative.value == pytest.approx(1, abs=0.1)
    assert found.between == pytest.approx(2**0.5, abs=0.1)
    with pytest.raises(AssertionError, match=r"not invariant within 0\.5"):
        measure.assert_invariant(drawn, scattered(), translation(1), tolerance=0.5, count=64)


def answering(config: Config, count: int, order: Any, *gs: Any) -> Any:
    """A model that knows the truths, of x and then of each g·x, and gives those of the recordings in this order."""
    answers = iter(
        [torch.from_numpy(scenes.truth(np.arange(scenes.steps))[..., 0, 0, :2][order])]
        for scenes in (g(draw(plan_of(config), range(count))) for g in gs)
    )
    return lambda _: next(answers)[0]


def test_answers_to_other_recordings_are_at_chance_however_equivariant_they_are() -> None:
    """Of truths that were exchanged, ρ(g) f(x) is f(g·x) exactly."""
    g, order = translation(2, 1), np.roll(np.arange(COUNT), 5)
    right = answering(scattered(), COUNT, np.arange(COUNT), translation(0), g)
    measure.assert_equivariant(right, scattered(), g, tolerance=1e-9, count=COUNT, batch=COUNT)
    exchanged = answering(scattered(), COUNT, order, translation(0), g)
    with pytest.raises(AssertionError, match=r"no verdict .* at chance: its answers do not vary with the truth \(p = "):
        measure.assert_equivariant(exchanged, scattered(), g, tolerance=0.1, count=COUNT, batch=COUNT)


def test_a_network_that_was_trained_with_shuffled_labels_is_at_chance() -> None:
    """Least squares from coarse pictures to the places of other recordings; with the right ones it is not at chance."""
    training = draw(plan_of(scattered()), range(100, 300))

    def features(frames: Tensor) -> Tensor:
        coarse = torch.nn.functional.avg_pool2d(frames.sum((1, 2)), 6).flatten(1).double()
        return torch.cat([coarse, torch.ones(len(frames), 1, dtype=torch.float64)], dim=1)

    places = torch.from_numpy(training.truth([4])[:, 0, 0, 0, :2])
    seen = features(backends.frames(training).float())
    shuffled = places[torch.randperm(len(places), generator=torch.Generator().manual_seed(0))]

    def trained(labels: Tensor) -> Any:
        weights = torch.linalg.solve(seen.T @ seen + 1e-2 * torch.eye(seen.shape[1]), seen.T @ labels)
        return lambda frames: (features(frames) @ weights)[:, None].repeat(1, 8, 1)

    speeds = [time_scale(s) for s in (0.5, 1.0)]
    learnt = measure.generalisation_curve(trained(places), scattered(), speeds, count=32)
    assert learnt.at_chance() == ()
    assert learnt.invariance().verdict(20) == "invariant"
    with pytest.raises(AssertionError, match=r"time_scale: at chance within a factor of 20: .*; at chance at 0\.5, 1"):
        measure.assert_flat(trained(shuffled), scattered(), speeds, bound=20, count=32)


def test_chance_is_that_of_the_transformed_scene() -> None:
    """At half the scale places are half as far apart: an error that is less than chance at 1 may be chance at 0.5."""
    truths = draw(plan_of(scattered()), range(COUNT)).truth(np.arange(8))[..., 0, 0, :2]
    gap = 0.75 * chance.chance_of(truths).mean()
    sizes = [scale(1.0), scale(0.5)]
    paths = [g(draw(plan_of(scattered()), range(COUNT))).truth(np.arange(8))[..., 0, 0, :2] for g in sizes]
    answers = iter([torch.from_numpy(path + np.array([gap, 0])) for path in paths])
    curve = measure.generalisation_curve(lambda _: next(answers), scattered(), sizes, count=COUNT)
    assert curve.chance[1].mean() == pytest.approx(curve.chance[0].mean() / 2, rel=1e-3)
    assert curve.at_chance() == (0.5,)
    assert curve.invariance().verdict(2) == "at chance"


def test_no_verdict_from_fewer_recordings_than_have_an_interval() -> None:
    """The least and the largest of five are on the same side of the true median with a probability of 2/2⁵ > 5 %."""
    g = translation(3, -2)
    with pytest.raises(GerdError, match="count 5: allowed: a whole number, 6 or more"):
        measure.assert_equivariant(centroid, scattered(), g, tolerance=0.1, count=5)
    found = measure.equivariance_error(centroid, scattered(), g, count=5)
    assert found.verdict(0.1) == "no verdict"
    assert found.why_no_verdict == "5 recordings: allowed for a verdict: 6 or more"
    alone = measure.equivariance_error(centroid, scattered(), g, count=1)
    assert alone.relative is None
    assert str(alone).startswith("translation 3.60555: no relative error; absolute 0 (95 % ")
    measure.assert_equivariant(centroid, scattered(), g, tolerance=0.1, count=6)
    with pytest.raises(GerdError, match="no bound to judge by"):
        found.verdict()


def test_undecided_is_said_where_the_bound_lies_within_the_interval() -> None:
    found = measure.invariance_error(untrained(0), scattered(), rotation(37), count=COUNT)
    assert found.relative is not None
    low, high = found.relative.interval
    assert [found.verdict(bound) for bound in (0.9 * low, (low + high) / 2, 1.1 * high)] == [
        "does not hold",
        "undecided",
        "holds",
    ]
    with pytest.raises(AssertionError, match="it is undecided whether the model is invariant within "):
        measure.assert_invariant(untrained(0), scattered(), rotation(37), tolerance=(low + high) / 2, count=COUNT)


def test_one_answer_that_is_far_away_makes_no_error_small() -> None:
    """It makes the unit large; the interval, in which it is missing now and then, says how little that means."""
    rng = np.random.default_rng(0)
    absolute, apart = rng.exponential(1, 64), rng.exponential(1, 64)
    apart[7] = 1e4
    found = relative_error(absolute, apart)
    assert found is not None
    assert found.value < 0.01
    assert found.interval[1] > 0.2


def test_the_unit_is_the_distance_between_two_answers() -> None:
    answers = np.random.default_rng(2).normal(0, 3, (40, 7))
    apart = np.sqrt(((answers - answers.mean(0)) ** 2).mean(1))
    between = [np.sqrt(((a - b) ** 2).mean()) for k, a in enumerate(answers) for b in answers[:k]]
    assert between_recordings(apart) == pytest.approx(np.sqrt(np.mean(np.square(between))))


def test_the_interval_of_the_relative_error_covers_the_true_one() -> None:
    """Errors of root mean square 0.2 · √2 (exponential ones), answers with spread 1, between which the distance is √2.

    A percentile interval of 64 skewed numbers is a little too narrow: it covers about nine in ten.
    """
    rng = np.random.default_rng(0)
    trials, covered = 200, 0
    for _ in range(trials):
        answers = rng.normal(0, 1, 64)
        found = relative_error(rng.exponential(0.2, 64), np.abs(answers - answers.mean()))
        assert found is not None
        covered += found.interval[0] <= 0.2 <= found.interval[1]
    assert scipy.stats.binom.ppf(FALSE_ALARM, trials, 0.88) <= covered < trials


@pytest.mark.parametrize("spread", [1.0, 2.0, 3.0, 4.0])
def test_answers_that_have_nothing_to_do_with_each_other_are_one_apart_however_they_are_distributed(
    spread: float,
) -> None:
    """Most answers are alike and a few are far away: the median error was a hundredth of the distance, and passed."""
    draws = np.random.default_rng(4)
    for count in (16, 64, 512):
        x, image = np.exp(spread * draws.normal(size=(2, count)))
        found = relative_error(np.abs(x - image), np.abs(x - x.mean()))
        assert found is not None
        assert found.interval[1] > 0.7


def one_hot(labels: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(labels, 2).float()


def test_a_model_that_changes_its_mind_in_a_part_of_the_recordings_is_not_invariant() -> None:
    """The error of most pairs is 0, and so is its median."""
    for every in (3, 8):
        calls = iter(range(2))

        def model(frames: Tensor, every: int = every, calls: Any = calls) -> Tensor:
            numbers = torch.arange(len(frames))
            changed = (numbers % every == 0) & (next(calls) == 1)
            return one_hot((numbers // 2 % 2) ^ changed.long())

        with pytest.raises(AssertionError, match=r"the model is not invariant within 0\.1: "):
            measure.assert_invariant(model, scattered(), rotation(37), tolerance=0.1, count=64, batch=64)


@pytest.mark.parametrize("g", [translation(0), rotation(360), background(0.0), translation(1e-6)], ids=str)
def test_no_verdict_of_a_transformation_that_changes_nothing(g: Transformation) -> None:
    """Whatever the model is, it gives the same answers to the same frames."""
    found = measure.invariance_error(untrained(0), scattered(), g, count=COUNT)
    assert found.changed == 0
    with pytest.raises(AssertionError, match=r"no verdict on .*: the transformation changes the frames of none of 16"):
        measure.assert_invariant(untrained(0), scattered(), g, tolerance=0.1, count=COUNT)


def test_no_verdict_of_a_transformation_that_changes_few_recordings() -> None:
    square = actor(
        "square", at=[{"choice": [-90.0, -90.0, -90.0, 24.0]}, 24.0], velocity=(0.5, 0.0), size=9.0
    )  # most are out of sight
    seldom = config(square, width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4})
    found = measure.invariance_error(sizes, seldom, scale(2.0), count=64)
    assert 0 < found.changed <= 32
    assert found.why_no_verdict == f"the transformation changes the frames of {found.changed} of 64 recordings"
    assert found.verdict(10) == "no verdict"


def test_a_classifier_that_knows_nothing_of_the_classes_gets_no_verdict() -> None:
    """Its answers vary with the place, and stay as they are under a turn by 90°, but know nothing of shapes."""
    two = actor({"choice": ["square", "triangle"]}, at={"uniform": [18.0, 30.0]}, velocity=(0.3, 0.2), size=12.0)
    shapes = config(two, width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4})

    def knowing(frames: Tensor) -> Tensor:
        """More events for a square."""
        return one_hot((frames.sum((1, 2, 3, 4)) < 66).long())

    def of_the_place(frames: Tensor) -> Tensor:
        away = (centroid(frames)[:, -1] - 24).norm(dim=-1)
        return one_hot((away > 5).long())

    measured = measure.equivariance_error(of_the_place, shapes, rotation(90), acts="scores", count=48)
    assert measured.verdict(0.5) == "no verdict"
    assert "the model is at chance: its answers do not vary with the truth" in str(measured.why_no_verdict)
    assert measure.invariance_error(of_the_place, shapes, rotation(90), count=48).chance is None  # about anything
    known = measure.equivariance_error(knowing, shapes, rotation(90), acts="scores", count=48)
    assert known.chance is not None
    assert known.chance < 0.01
    assert known.why_no_verdict is None
    three = measure.equivariance_error(
        lambda frames: torch.cat([of_the_place(frames)] * 2, 1), shapes, rotation(90), acts="scores", count=48
    )
    assert three.chance is None  # not one number for each class


def test_one_number_for_each_recording_is_an_answer() -> None:
    found = measure.assert_invariant(
        lambda frames: frames.sum((1, 2, 3, 4)), several_sizes(), translation(3), tolerance=0, count=COUNT
    )
    assert found.values.shape == (COUNT, 2)


@pytest.mark.parametrize("bounds", [{"tolerance": -0.1}, {"tolerance": np.nan}, {"tolerance": 1, "absolute": np.nan}])
def test_bounds_that_are_none_are_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(GerdError, match=r"(tolerance|absolute) (-0\.1|nan): allowed: a number, 0 or more"):
        measure.assert_invariant(sizes, several_sizes(), translation(3), count=COUNT, **bounds)


def test_numbers_that_would_mislead_are_refused() -> None:

    def nowhere(frames: Tensor) -> Tensor:
        return torch.full((*frames.shape[:2], 2), 24.0)

    turns = [rotation(0), rotation(90)]
    with pytest.raises(
        GerdError, match="the error at one amount says nothing about another; allowed: two amounts or more"
    ):
        measure.assert_flat(centroid, scattered(), [time_scale(1)] * 2, bound=2, count=COUNT)
    with pytest.raises(GerdError, match="the model gave complex numbers"):
        measure.invariance_error(lambda frames: sizes(frames) * 1j, scattered(), rotation(90), count=COUNT)
    for first_step in (-1, 8):
        with pytest.raises(GerdError, match=f"first_step {first_step}: allowed: a whole number from 0 to 7"):
            measure.generalisation_curve(centroid, scattered(), turns, count=COUNT, first_step=first_step)
        with pytest.raises(GerdError, match=f"first_step {first_step}: allowed: a whole number from 0 to 7"):
            measure.chance_error(scattered(), 0, COUNT, first_step)
    seldom = {"actors.0.repeat": {"choice": [0, 1]}}
    with pytest.raises(GerdError, match=r"recordings? of 16 with no actor, and so no error"):
        measure.truth_error(nowhere, scattered().with_values(seldom), rotation(90), count=COUNT)
    with pytest.raises(GerdError, match="errors or weights that are not finite"):
        measure.covariance_matrix([[[np.nan, 1.0]]], [[[0.5, 0.5]]], [1.0], [1.0], [0])


def test_errors_of_nothing_are_flat() -> None:
    """A factor is never below 1, nor is 0 / 0 a factor."""
    curve = Curve((1.0, 2.0), (np.zeros(8), np.zeros(8)))
    assert curve.ratio() == (1.0, (1.0, 1.0))


def test_a_curve_of_means_is_of_means() -> None:
    """Errors that are 0 or 1, of which the median says nothing; seeds of a pair count the same."""
    draws = np.random.default_rng(3)
    tables = [(draws.random((2, 200)) < share).astype(np.float64) for share in (0.1, 0.2, 0.4)]
    curve = Curve((1.0, 2.0, 3.0), tuple(tables), 1.0, middle="mean")
    shares = [table.mean() for table in tables]
    assert curve.middles == pytest.approx(shares)
    assert curve.invariance().ratio == pytest.approx(shares[2] / shares[0])
    assert (curve.invariance().best, curve.invariance().worst) == (1.0, 3.0)
    for share, table, (low, high) in zip(shares, tables, curve.intervals(), strict=True):
        spread = table.mean(axis=0).std() / np.sqrt(200)
        assert (low, high) == pytest.approx((share - 1.96 * spread, share + 1.96 * spread), abs=0.4 * spread)
    assert Curve((1.0, 2.0), tuple(tables[:2])).middles == (0.0, 0.0)


def test_the_best_answer_with_weights_is_that_of_as_many_copies() -> None:
    truth = np.random.default_rng(1).normal(size=(9, 4, 2))
    copies = np.repeat(truth, [1, 2, 3] * 3, axis=0)
    weights = np.broadcast_to(np.array([1.0, 2.0, 3.0] * 3)[:, None], truth.shape[:2])
    np.testing.assert_allclose(chance.best_answer(truth, weights), chance.best_answer(copies), atol=2e-3)
    assert np.abs(chance.best_answer(truth) - chance.best_answer(copies)).max() > 0.02


def test_the_best_answer_is_the_geometric_median() -> None:
    """Compared with a minimum found by SciPy; of a corner that most have, that corner; NaN is left out."""
    rng = np.random.default_rng(3)
    truth = rng.exponential(5, (30, 4, 2))
    best = chance.best_answer(truth)
    for step in range(4):

        def distance(place: Any, step: int = step) -> float:
            return float(np.linalg.norm(truth[:, step] - place, axis=1).mean())

        least = scipy.optimize.minimize(distance, truth[:, step].mean(0), method="Nelder-Mead").fun
        assert distance(best[step]) == pytest.approx(least, rel=1e-5)
    truth[3, 2] = np.nan
    assert np.isfinite(chance.best_answer(truth)).all()
    assert np.isfinite(chance.chance_of(truth)).all()
    corner = np.concatenate([np.full((9, 1, 2), 4.0), np.full((3, 1, 2), 40.0)])
    np.testing.assert_allclose(chance.best_answer(corner), [[4, 4]], atol=0.01)
    assert (chance.chance_of(np.full((5, 3, 2), 7.0)) == 0).all()


def test_nothing_that_looks_at_nothing_is_below_chance() -> None:
    """The best constant there is, the same with noise, and answers to other scenes; an answer a little better is."""
    rng = np.random.default_rng(1)
    trials, alarms, dependent = 100, np.zeros(3), 0
    for _ in range(trials):
        truth = rng.uniform(0, 64, (24, 1, 2)) + np.zeros((24, 5, 2))
        known = chance.chance_of(truth)
        answers = (np.full_like(truth, 32.0), 32 + rng.normal(0, 3, truth.shape), rng.permutation(truth))
        alarms += [chance.surely_below(np.linalg.norm(each - truth, axis=-1).mean(1), known) for each in answers]
        other = rng.uniform(0, 64, (24, 2))
        dependent += (chance.chance_of_dependence(other, truth[:, 0]) or 0) <= chance.FALSE_ALARM
    assert (alarms <= scipy.stats.binom.ppf(1 - FALSE_ALARM, trials, chance.FALSE_ALARM)).all()
    assert dependent <= scipy.stats.binom.ppf(1 - FALSE_ALARM, trials, chance.FALSE_ALARM)
    nearer = np.linalg.norm(0.6 * (truth - 32), axis=-1).mean(1)
    assert chance.surely_below(nearer, known)
    assert not chance.surely_below(nearer, known, margin=20)
    turned = truth[:, 0] @ np.array([[0.0, -1.0], [1.0, 0.0]]) + 100
    assert (chance.chance_of_dependence(turned, truth[:, 0]) or 1) < 0.001
    assert chance.chance_of_dependence(turned, np.ones((24, 2))) is None

"""Transformations against closed forms, and measures on models whose symmetry is known by construction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from support.scenes import FALSE_ALARM, actor, config, sent
from torch import Tensor

import gerd
from gerd import measure
from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.events import backends
from gerd.geometry.parameters import derivatives, matrix
from gerd.measures.measure import Curve
from gerd.plan.make import plan_of
from gerd.scene.draw import draw
from gerd.scene.transformation import (
    KINDS,
    Transformation,
    acceleration,
    affine,
    background,
    composed,
    density,
    mirror,
    rotation,
    scale,
    shape_noise,
    shear,
    time_scale,
    translation,
    velocity,
)
from gerd.studies.lab.training import TINY, recordings
from gerd.studies.lab.training import errors as studied_errors
from gerd.studies.models import Reading, ScaleChannels

SPATIAL = [
    translation(3.25, -1.5),
    rotation(33),
    scale(1.3),
    shear(0.4),
    velocity(0.5, -0.3, epoch=4),
    acceleration(0.05, 0.01, epoch=3),
    mirror("x"),
    affine((1.1, 0.3, 2.0), (-0.4, 0.7, -3.0)),
    composed(rotation(33), velocity(0.5, -0.3, epoch=4), mirror("y"), acceleration(0.05), scale(1.2, 0.8)),
]


def turning(border: str = "bounce") -> Config:
    """A shape whose every parameter moves, some of them at random."""
    return Config.model_validate(
        {
            "sensor": {"width": 64, "height": 48},
            "steps": 12,
            "actors": [
                {
                    "shape": "triangle",
                    "translation": {"velocity": [1.5, 0.7], "acceleration": {"normal": [0, 0.1]}, "border": border},
                    "scale": {"start": [9, 14], "velocity": 0.1, "acceleration": 0.01},
                    "rotation": {"start": 20, "velocity": 3, "acceleration": {"normal": [0, 0.2]}},
                    "shear": {"start": 0.2, "velocity": 0.01, "acceleration": 0},
                }
            ],
        }
    )


def sliding(velocity: Any = (1.0, 0.0), size: float = 9.0) -> Config:
    """A square on a straight path in the middle of the frame; exact events: no noise, no random states."""
    square = actor("square", at={"uniform": [20.0, 28.0]}, velocity=velocity, size=size)
    return config(square, width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4})


def centroid(frames: Tensor) -> Tensor:
    """(batch, 2): the mean place of all events. Moves with them by construction."""
    heat = frames.double().sum((1, 2))
    x, y = torch.arange(heat.shape[2]) + 0.5, torch.arange(heat.shape[1]) + 0.5
    return torch.stack([(heat.sum(1) * x).sum(1), (heat.sum(2) * y).sum(1)], dim=1) / heat.sum((1, 2))[:, None]


def steady_centroid(frames: Tensor) -> Tensor:
    """(batch, steps, 2): the mean place of the events up to each step."""
    return torch.stack([centroid(frames[:, : t + 1]) for t in range(frames.shape[1])], dim=1)


def picture(frames: Tensor) -> Tensor:
    """(batch, steps, height, width): the events of each step, of either polarity."""
    return frames.sum(2)


@pytest.mark.parametrize("g", SPATIAL, ids=str)
def test_a_transformed_scene_moves_by_G_times_T(g: Transformation) -> None:
    """T, T' and T'' by the product rule, from a G(t) that is written down here once more."""
    scenes = draw(plan_of(turning()), [0, 1, 2])
    t = np.linspace(-3, 11, 29)
    seen, own = g(scenes).trajectory, scenes.trajectory.parameters(t)
    G, G1, G2 = (np.zeros((len(t), 3, 3)) for _ in range(3))
    centre = np.array([32.0, 24.0])
    A, b, v, a = (np.array(getattr(g.space, part)) for part in ("linear", "shift", "velocity", "acceleration"))
    since = t[:, None]
    G[:, :2, :2], G[:, 2, 2] = A, 1
    G[:, :2, 2] = centre - A @ centre + b + v * since + a * since**2 / 2
    G1[:, :2, 2], G2[:, :2, 2] = v + a * since, a
    T, (T1, T2) = matrix(own), derivatives(own)
    np.testing.assert_allclose(seen.T(t), G @ T, atol=1e-12)
    found = seen.parameters(t)
    np.testing.assert_allclose(matrix(found), G @ T, atol=1e-12)
    first, second = derivatives(found)
    np.testing.assert_allclose(first, G @ T1 + G1 @ T, atol=1e-12)
    np.testing.assert_allclose(second, G @ T2 + 2 * G1 @ T1 + G2 @ T, atol=1e-12)


@pytest.mark.parametrize("g", SPATIAL, ids=str)
def test_what_a_device_works_out_has_the_same_bits(g: Transformation) -> None:
    seen = g(draw(plan_of(turning()), [0, 1])).trajectory
    for here, there in zip(seen.entries(np.arange(-2, 9)), seen.entries(np.arange(-2, 9), sent), strict=True):
        assert np.array_equal(np.broadcast_to(here, there.shape), there.numpy())


def test_whole_pixels_and_quarter_turns_move_the_events_exactly() -> None:
    scenes = draw(plan_of(sliding((0.37, 0.61), size=9.3)), range(3))
    frames = backends.frames(scenes)
    assert torch.equal(backends.frames(translation(3, -2)(scenes)), frames.roll((-2, 3), (-2, -1)))
    assert torch.equal(backends.frames(rotation(90)(scenes)), frames.rot90(-1, (-2, -1)))
    assert torch.equal(backends.frames(rotation(180)(scenes)), frames.flip((-2, -1)))


def test_frames_are_those_of_the_recordings() -> None:
    chosen = turning()
    frames = backends.frames(draw(plan_of(chosen), [4, 5]))
    for row, index in enumerate((4, 5)):
        assert torch.equal(frames[row], gerd.simulate(chosen, index).frames())


@pytest.mark.parametrize(
    ("g", "values"),
    [
        (time_scale(1.7), {"time_scale": 1.7}),
        (background(0.02), {"noise.background": 0.02}),
        (shape_noise(0.1), {"noise.shape": 0.1}),
        (density(0.25), {"noise.event": 0.75}),
    ],
    ids=str,
)
def test_time_and_noise_are_those_of_a_family(g: Transformation, values: dict[str, Any]) -> None:
    chosen = turning()
    frames = backends.frames(g(draw(plan_of(chosen), [3])))
    assert torch.equal(frames[0], gerd.simulate(chosen, 3, **values).frames())


def test_fewer_events_are_among_more() -> None:
    scenes = draw(plan_of(sliding()), [0])
    few, more, whole = (backends.frames(density(kept)(scenes)) for kept in (0.2, 0.6, 1.0))
    assert 0 < int(few.sum()) < int(more.sum()) < int(whole.sum())
    assert bool((few <= more).all())
    assert bool((more <= whole).all())


@pytest.mark.parametrize("kind", KINDS)
def test_the_neutral_amount_changes_nothing(kind: str) -> None:
    scenes = draw(plan_of(turning()), [0, 1])
    g = KINDS[kind](KINDS[kind](1.0).neutral)
    assert torch.equal(backends.frames(g(scenes)), backends.frames(scenes))


def test_the_centroid_of_events_is_equivariant_under_whole_pixels_and_turns() -> None:
    """Exactly: the events are the same ones, elsewhere. What is left is the rounding of a mean."""
    for g in (translation(3, -2), rotation(90), rotation(-90), translation(-5)):
        found = measure.equivariance_error(centroid, sliding((0.37, 0.61)), g, count=6)
        assert found.absolute.count == 6
        assert found.values.max() < 48 * 50 * np.finfo(float).eps
        measure.assert_equivariant(centroid, sliding((0.37, 0.61)), g, tolerance=1e-12, count=6)


def test_under_parts_of_a_pixel_the_centroid_stays_within_a_derived_bound() -> None:
    """With these integrators each pixel that the square reaches fires once. The reached region is a box, each side of
    which is off by at most half a pixel, in x and in g·x: the means of both differ by at most 1 along each axis."""
    for part in (0.1, 0.25, 0.5, 0.77):
        found = measure.equivariance_error(centroid, sliding(), translation(part, part / 2), count=12)
        assert found.values[:, 1].max() <= 2**0.5
    assert found.values[:, 1].max() > 1e-3  # pixels do matter


def test_the_absolute_error_of_a_model_that_ignores_its_input_is_that_of_the_transformation() -> None:
    def fixed(frames: Tensor) -> Tensor:
        return torch.full((len(frames), 2), 10.0)

    g = translation(3, -4)
    assert measure.invariance_error(fixed, sliding(), g, count=4).values[:, 1].max() == 0
    found = measure.equivariance_error(fixed, sliding(), g, count=4)
    np.testing.assert_allclose(found.values[:, 1], 5.0)  # the length of the translation
    stepwise = measure.equivariance_error(lambda frames: fixed(frames)[:, None].repeat(1, 8, 1), sliding(), g, count=4)
    np.testing.assert_allclose(stepwise.values[:, 1], 5.0)  # however many steps there are


@pytest.mark.parametrize(
    "broken",
    [
        lambda frames: centroid(frames).flip(1),  # x and y exchanged
        lambda frames: centroid(frames) * 1.02,  # another scale
        lambda frames: 48 - centroid(frames),  # mirrored
        lambda frames: centroid(frames[..., 12:, :]),  # blind in a quarter of the frame, and off by it
        lambda frames: centroid(frames).round(),  # a coarse grid
    ],
)
def test_a_broken_model_is_caught(broken: Any) -> None:
    with pytest.raises(AssertionError, match=r"not equivariant within 0\.001: translation 7\.07.*n = 8"):
        measure.assert_equivariant(broken, sliding((0.37, 0.61)), translation(5.3, -4.68), tolerance=1e-3, count=8)
    # the same verdict lets the right model pass where its error is known to be 0
    measure.assert_equivariant(centroid, sliding((0.37, 0.61)), translation(5, -4), tolerance=1e-3, count=8)


def test_the_verdict_of_invariance() -> None:
    with pytest.raises(AssertionError, match="not invariant within"):
        measure.assert_invariant(centroid, sliding(), translation(4), tolerance=0.01, count=6)


@pytest.mark.parametrize("g", [*SPATIAL, time_scale(2), time_scale(0.5), background(0.1)], ids=str)
def test_built_in_actions_take_the_truth_of_x_to_that_of_its_image(g: Transformation) -> None:
    """On straight paths also between steps. T's linear part is at rest here, and so it is interpolated exactly."""
    chosen = config(
        actor("square", at=[20.0, 22.0], velocity=[0.5, 0.25], turn=20, slant=0.2), width=48, height=40, steps=9
    )
    scenes = draw(plan_of(chosen), [0])
    truths = [matrix(s.trajectory.parameters(np.arange(9)))[:, 0] for s in (scenes, g(scenes))]
    T, T_g = (torch.from_numpy(truth) for truth in truths)
    moved = measure.act_on_matrices(g, T, (48, 40))
    known = torch.isfinite(moved[0, :, 0, 0])
    assert known.sum() == (5 if g.time_scale == 2 else 9)
    torch.testing.assert_close(moved[:, known], T_g[:, known])
    places = measure.act_on_coordinates(g, T[..., :2, 2], (48, 40))
    torch.testing.assert_close(places[:, known], T_g[:, known][..., :2, 2])
    several = measure.act_on_coordinates(g, T[..., :2, 2][:, :, None].expand(1, 9, 3, 2), (48, 40))
    torch.testing.assert_close(several[:, known][:, :, 1], T_g[:, known][..., :2, 2])


def test_heat_maps_move_with_the_events() -> None:
    for g in (translation(3, -2), rotation(90)):
        found = measure.equivariance_error(picture, sliding((0.37, 0.61)), g, acts="heat map", count=4)
        assert found.values.max() < 1e-9, g
    still = measure.invariance_error(picture, sliding((0.37, 0.61)), translation(3, -2), count=4)
    assert still.values[:, 0].min() > 0.5
    coarse = measure.equivariance_error(
        lambda frames: torch.nn.functional.avg_pool2d(picture(frames).flatten(0, 1), 4).unflatten(0, frames.shape[:2]),
        sliding((0.37, 0.61)),
        translation(4, -8),
        acts="heat map",
        count=4,
    )
    assert coarse.values.max() < 1e-6


def test_heat_maps_follow_a_boost_step_by_step() -> None:
    maps = torch.rand(2, 5, 12, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = measure.act_on_heat_maps(velocity(2, -1, epoch=2), maps, (16, 12))
    for t in range(5):
        known = torch.isfinite(moved[:, t])
        right, down = 2 * (t - 2), -(t - 2)
        assert known.sum() == 2 * (16 - abs(right)) * (12 - abs(down))  # what came into the frame is not known
        expected = maps[:, t].roll((down, right), (1, 2))
        torch.testing.assert_close(moved[:, t][known], expected[known])


def test_scores_stay() -> None:
    def counts(frames: Tensor) -> Tensor:
        return frames.sum((1, 3, 4))

    exact = measure.equivariance_error(counts, sliding((0.37, 0.61)), translation(2, 5), acts="scores", count=4)
    assert exact.values.max() == 0
    thinned = measure.equivariance_error(counts, sliding((0.37, 0.61)), density(0.5), acts="scores", count=40)
    whole = counts(backends.frames(draw(plan_of(sliding()), range(40)))).double().square().mean(1).sqrt().numpy()
    assert 0.4 < np.median(thinned.values[:, 1] / whole) < 0.6


def test_scores_without_steps_stay_at_any_speed_and_keep_all_classes() -> None:
    """As many classes as there are steps: none is taken for a step that is too early."""

    def scores(frames: Tensor) -> Tensor:
        return torch.arange(8.0).expand(len(frames), 8) + 1

    for g in (time_scale(2), translation(1)):
        found = measure.equivariance_error(scores, sliding(), g, acts="scores", count=2, first_step=3)
        assert (found.values[:, 1] == 0).all()

    def first_differs(frames: Tensor) -> Tensor:
        return torch.cat([frames.sum((1, 2, 3, 4))[:, None], scores(frames)[:, 1:]], dim=1)

    changed = measure.equivariance_error(first_differs, sliding(), density(0.5), acts="scores", count=2, first_step=3)
    assert changed.absolute.value > 0


def test_a_heat_map_that_moves_far_is_compared_with_all_of_it() -> None:
    """Exactly equivariant, by a shift so large that little of the frame has an image in it."""
    square = actor("square", at=12.0, velocity=(0.5, 0.0), size=9.0)
    far = config(square, width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4})
    for shift in (8, 20):
        found = measure.equivariance_error(picture, far, translation(shift), acts="heat map", count=2)
        assert found.absolute.value < 1e-12
        still = measure.equivariance_error(
            lambda frames: picture(frames) * 0 + 1, far, translation(shift), acts="heat map", count=2
        )
        assert still.absolute.value < 1e-12
    lost = measure.equivariance_error(lambda f: picture(f).flip(-1), far, translation(20), acts="heat map", count=2)
    assert lost.absolute.value > 0.01


def test_a_module_is_measured_in_its_evaluation_mode_and_left_as_it_was() -> None:
    class Noisy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept, self.frozen = torch.nn.Dropout(0.5), torch.nn.Dropout(0.5).eval()

        def forward(self, frames: Tensor) -> Tensor:
            return centroid(self.frozen(self.kept(frames)))

    model = Noisy()
    for asked in (model, model.forward):
        found = measure.invariance_error(asked, sliding(), translation(0), count=3)
        assert (found.values == 0).all()
    assert (model.training, model.kept.training, model.frozen.training) == (True, True, False)


def test_a_bound_in_pixels() -> None:
    """A model that is off by exactly 1 px in x: a part of what recordings differ by, and a distance."""

    def off(frames: Tensor) -> Tensor:
        places = centroid(frames)
        return places + torch.stack([(places[:, 0] > 24).double(), 0 * places[:, 0]], dim=1)

    square = config(
        actor("square", at=[26.0, {"uniform": [16.0, 32.0]}], velocity=(1.0, 0.0), size=9.0),
        width=48, height=48, steps=8, integrator={"initial": 0.0, "warmup": 4},
    )  # fmt: skip
    found = measure.equivariance_error(off, square, translation(-8), count=6)
    assert found.absolute.value == pytest.approx(1.0)
    measure.assert_equivariant(off, square, translation(-8), tolerance=0.5, count=6)
    with pytest.raises(AssertionError, match=r"not equivariant within 0\.5 and 0\.5 absolute"):
        measure.assert_equivariant(off, square, translation(-8), tolerance=0.5, absolute=0.5, count=6)
    with pytest.raises(GerdError, match="no bound to judge by"):
        measure.assert_invariant(off, square, translation(-8), count=6)


def test_errors_of_the_channels_of_any_network() -> None:
    """Two channels, one of which says the truth at rest and the other a place that is 3 px away."""
    still = config(actor("square", at=[20.0, 24.0], velocity=(0.0, 0.0), size=9.0), width=48, height=48, steps=8)

    def read(frames: Tensor) -> Any:
        place = torch.tensor([20.0, 24.0]).expand(len(frames), 8, 2)
        shares = torch.tensor([0.25, 0.75])[None, :, None].expand(len(frames), 2, 8)
        return Reading(place, torch.stack([place, place + torch.tensor([0.0, 3.0])], dim=1), shares, shares.log())

    errors, shares = measure.channel_errors(read, still, translation(0), count=3)
    np.testing.assert_array_equal(errors, [[0] * 3, [3] * 3])
    np.testing.assert_array_equal(shares, [[0.25] * 3, [0.75] * 3])
    moved, _ = measure.channel_errors(read, still, translation(0, 3), count=3, first_step=5)
    np.testing.assert_allclose(moved, [[3] * 3, [0] * 3], atol=1e-12)
    with pytest.raises(GerdError, match=r"allowed: \(batch, channels, steps, 2\), and without the 2"):
        measure.channel_errors(lambda f: replace(read(f), weights=f[:, :2]), still, translation(0), count=3)
    network = ScaleChannels(layers=TINY, seed=1)
    data = recordings(sliding(), 0, 3, "cpu")
    wanted = studied_errors(network, data, 2)
    errors, shares = measure.channel_errors(network.read, sliding(), translation(0), count=3, first_step=2)
    np.testing.assert_allclose(errors, wanted.channels, rtol=1e-4)
    np.testing.assert_allclose(shares, wanted.weights, rtol=1e-4)


def test_an_own_action() -> None:
    def edges(frames: Tensor) -> Tensor:
        """Only x, as a column of its own."""
        return centroid(frames)[:, :1]

    found = measure.equivariance_error(
        edges, sliding(), translation(3), acts=lambda g, out, size: out + g.space.shift[0], count=4
    )
    assert found.values.max() < 1e-10


def test_steps_before_the_first_are_not_compared() -> None:
    def late(frames: Tensor) -> Tensor:
        """Wrong at the first two steps, and right then."""
        places = steady_centroid(frames)
        places[:, :2] = 0
        return places

    for g in (translation(3), time_scale(2), time_scale(0.5)):
        whole = measure.equivariance_error(late, sliding((1.0, 0.5)), g, count=4)
        later = measure.equivariance_error(late, sliding((1.0, 0.5)), g, count=4, first_step=2)
        assert later.absolute.value < 0.2 * whole.absolute.value, g


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": lambda frames: centroid(frames)[:1]}, "one row for each"),
        ({"model": lambda frames: "nothing"}, "the model gave str"),
        ({"model": lambda frames: centroid(frames) * np.nan}, "not finite for 3 of 3 recordings"),
        ({"acts": "colours"}, "allowed: coordinates, T, heat map, scores, or a function"),
        ({"acts": lambda g, out, size: out[:, :1]}, "allowed: the same"),
        ({"count": 0}, "count 0: allowed: a whole number, 1 or more"),
        ({"transformation": time_scale(2)}, "allowed: an output (batch, steps, …)"),
        ({"transformation": velocity(1)}, "acts differently at each step"),
        ({"model": steady_centroid, "transformation": time_scale(4), "first_step": 6}, "longer recordings"),
        ({"model": lambda frames: {"place": centroid(frames)}}, "gave dict for 3 recordings"),
        ({"model": lambda frames: (centroid(frames), 0)}, "of several outputs give a function that returns one"),
        ({"model": lambda frames: centroid(frames)[:, :1]}, "allowed for coordinates: (batch, steps, …, 2)"),
        ({"model": centroid, "acts": "T"}, "allowed for T: (batch, steps, …, 3, 3)"),
        ({"model": lambda frames: frames.view(7, -1)}, "the model failed on frames of shape (3, 8, 2, 48, 48): "),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], message: str) -> None:
    given = {"model": centroid, "config": sliding(), "transformation": translation(1), "count": 3, **arguments}
    with pytest.raises(GerdError) as caught:
        measure.equivariance_error(given.pop("model"), given.pop("config"), given.pop("transformation"), **given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scale(0), "allowed: factors other than 0"),
        (lambda: mirror("z"), "allowed: x, y, none"),
        (lambda: affine((1, 2, 0), (2, 4, 0)), "a map that can be taken back"),
        (lambda: density(0.5).inverse(), "what the camera does cannot be taken back"),
        (lambda: time_scale(-1), "allowed: a positive factor"),
        (lambda: density(1.5), "a probability from 0 to 1"),
        (lambda: translation(float("nan")), "allowed: a finite number"),
        (lambda: translation(1)(draw(plan_of(turning("wrap")), [0])), "allowed: bounce, free"),
    ],
)
def test_impossible_transformations_are_refused(make: Any, message: str) -> None:
    with pytest.raises(GerdError) as caught:
        make()
    assert message in str(caught.value)


def test_errors_against_the_truth_follow_the_transformed_scene() -> None:
    """A model that always says the middle is as far off as the shape is from there, in closed form."""

    def middle(frames: Tensor) -> Tensor:
        return torch.full((*frames.shape[:2], 2), 24.0)

    chosen = config(actor("square", at=[24.0, 24.0]), width=48, height=48, steps=5)
    for g, away in ((translation(3, 4), 5.0), (velocity(0, 2), (0 + 2 + 4 + 6 + 8) / 5), (rotation(50), 0.0)):
        np.testing.assert_allclose(measure.truth_error(middle, chosen, g, count=3), away, atol=1e-12)
    late = measure.truth_error(middle, chosen, velocity(0, 2), count=1, first_step=4)
    np.testing.assert_allclose(late, 8.0)
    with pytest.raises(GerdError, match="one place per step"):
        measure.truth_error(lambda frames: frames.sum((2, 3, 4)), chosen, translation(0), count=2)


def test_a_generalisation_curve() -> None:
    chosen = sliding((2.5, 1.3))
    curve = measure.generalisation_curve(steady_centroid, chosen, [time_scale(s) for s in (0.5, 1, 2)], count=8)
    assert curve.amounts == (0.5, 1, 2)
    assert curve.trained == 1
    assert all(found.count == 8 for found in curve.summaries)
    medians = [found.median for found in curve.summaries]
    assert curve.ratio()[0] == max(medians) / min(medians)
    assert medians[2] > medians[0]  # the mean of the past lags behind what is fast
    with pytest.raises(GerdError, match="transformations of the same kind"):
        measure.generalisation_curve(steady_centroid, chosen, [time_scale(1), scale(1)])


def curve_of(*medians: float, chance: float | None = None, spread: float = 0.01) -> measure.Curve:
    """At the amounts 1, 2, 4 …, from 40 recordings with these medians."""
    around = np.linspace(-spread, spread, 41)
    amounts = tuple(2.0**k for k in range(len(medians)))
    by_chance = () if chance is None else tuple(chance + around for _ in medians)
    errors = tuple(median * (1 + np.roll(around, 7 * k)) for k, median in enumerate(medians))
    return measure.Curve(amounts, errors, chance=by_chance)


def test_invariance_is_one_number_and_a_verdict() -> None:
    found = curve_of(1.0, 1.5, 0.75).invariance()
    assert found.ratio == pytest.approx(2)
    assert (found.best, found.worst, found.amounts, found.count) == (4, 2, (1, 4), 41)
    low, high = found.interval
    assert 1.98 < low < 2 < high < 2.02
    assert [found.verdict(bound) for bound in (1.5, 2.0, 2.5)] == ["not invariant", "undecided", "invariant"]
    assert "from 1 to 4 the median error varies by a factor of 2 (95 % interval " in str(found)
    assert "n = 41): smallest at 4, largest at 2" in str(found)
    at_chance = curve_of(9.0, 9.1, chance=9.0).invariance()
    assert at_chance.verdict(2) == "at chance"  # flat, and nothing learnt
    assert at_chance.at_chance == (1, 2)
    assert curve_of(8.0, 9.1, chance=9.0).invariance().at_chance == (2,)
    few = Curve((1.0, 2.0), (np.ones(5), np.ones(5))).invariance()
    assert few.verdict(2) == "too few recordings"
    assert curve_of(8.0, 8.1, chance=9.0).invariance().verdict(2) == "invariant"
    with pytest.raises(GerdError, match=r"bound 0\.5: allowed: a factor, 1 or more"):
        found.verdict(0.5)


def test_a_flat_curve_is_told_from_one_that_is_not() -> None:
    """A model that knows the truth up to a distance of 1 is flat; one whose distance is the speed is not."""
    config = sliding((0.37, 0.61))
    speeds = [time_scale(s) for s in (0.5, 1.0, 2.0)]
    truths = [g(draw(plan_of(config), range(6))).trajectory.parameters(np.arange(8))[:, 0, :, 0, :2] for g in speeds]

    def off_by(distances: list[float]) -> Any:
        gaps = [np.array([distance, 0]) for distance in distances]
        answers = iter([torch.from_numpy(truth + gap) for truth, gap in zip(truths, gaps, strict=True)])
        return lambda _: next(answers)

    curve = measure.assert_flat(off_by([1.0, 1.0, 1.2]), config, speeds, bound=1.25, count=6)
    assert curve.ratio()[0] == pytest.approx(1.2)
    with pytest.raises(AssertionError, match=r"time_scale: not invariant within a factor of 1\.25: from 0\.5 to 2 the"):
        measure.assert_flat(off_by([0.25, 0.5, 1.0]), config, speeds, bound=1.25, count=6)
    with pytest.raises(GerdError, match="count 5: allowed: a whole number, 6 or more"):
        measure.assert_flat(off_by([1.0, 1.0, 1.2]), config, speeds, bound=1.25, count=5)


def test_the_slope_of_a_known_curve() -> None:
    """error = 2 + 3·|log2 s|, the same in every recording."""
    scales = (0.25, 0.5, 1.0, 2.0, 4.0)
    curve = Curve(scales, tuple(np.full(20, 2 + 3 * abs(np.log2(s))) for s in scales))
    slope, (low, high) = curve.slope()
    assert (slope, low, high) == pytest.approx((3, 3, 3))
    ratio, (low, high) = curve.ratio()
    assert (ratio, low, high) == pytest.approx((4, 4, 4))
    trained_twice = Curve(scales, tuple(np.stack([each, each]) for each in curve.errors))
    assert trained_twice.slope() == curve.slope()
    with pytest.raises(GerdError, match="positive numbers"):
        Curve((0.0, 1.0), (np.ones(3), np.ones(3))).slope()
    with pytest.raises(GerdError, match="different distances"):
        Curve((0.5, 2.0), (np.ones(3), np.ones(3))).slope()


def test_the_interval_of_a_ratio_is_that_of_recordings() -> None:
    """Ten times more recordings, or the same ones in ten trainings: only the first makes it narrower."""
    rng = np.random.default_rng(5)
    few, many = rng.exponential(1, (2, 1, 40)) + 1, rng.exponential(1, (2, 1, 4000)) + 1
    again = np.repeat(few, 10, axis=1)

    def width(errors: Any) -> float:
        ratio, (low, high) = Curve((1.0, 2.0), tuple(errors)).ratio()
        assert low <= ratio <= high
        return high - low

    assert width(again) == pytest.approx(width(few), rel=0.25)  # a median of ten copies is one of the middle two
    assert width(many) < width(few) / 3


def test_chance_is_the_error_of_the_best_answer_that_looks_at_nothing() -> None:
    """On a line that is the median. It goes with the mean motion: the path that all have in common is known, too."""
    spread = {"uniform": [4.0, 44.0]}
    chosen = config(actor("square", at=[spread, 24.0], velocity=(0.0, 3.0)), width=48, height=48, steps=3)
    xs = [gerd.simulate(chosen, i).positions[0, 0, 0] for i in range(41)]
    found = measure.chance_error(chosen, 0, 41)
    assert found.median == pytest.approx(np.median(np.abs(xs - np.median(xs))), abs=0.05)
    assert found.mean == pytest.approx(np.mean(np.abs(xs - np.median(xs))), abs=0.01)
    assert found.count == 41
    assert found.interval[0] <= found.median <= found.interval[1]


def test_effect_sizes_are_those_of_the_textbook_and_of_scipy() -> None:
    rng = np.random.default_rng(3)
    a = rng.gamma(3, size=60)
    b = 0.6 * a + rng.normal(0, 0.3, 60)
    found = measure.effect_size(a, b)
    pooled = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    assert found.d == pytest.approx((a.mean() - b.mean()) / pooled)
    assert found.d_z == pytest.approx(scipy.stats.ttest_rel(a, b).statistic / np.sqrt(60))
    assert found.difference == pytest.approx((a - b).mean())
    assert found.difference_interval[0] < found.difference < found.difference_interval[1]
    assert found.d_interval[0] < found.d < found.d_interval[1]
    assert found.d_z_interval[0] < found.d_z < found.d_z_interval[1]
    spread = np.sqrt(1 / 60 + found.d_z**2 / 120)  # of d_z in samples of this size, if they were normal
    assert (found.d_z_interval[1] - found.d_z_interval[0]) / (4 * spread) == pytest.approx(1, abs=0.3)
    assert found.count == 60
    assert measure.effect_size(b, a).d == pytest.approx(-found.d)
    same = measure.effect_size(a, a)
    assert (same.d, same.d_z, same.p) == (0, 0, 1)


@pytest.mark.parametrize("n", range(1, 61))
def test_the_signed_rank_test_is_that_of_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        gaps = rng.normal(0.4, 2, n)
        assert measure.wilcoxon(gaps) == pytest.approx(scipy.stats.wilcoxon(gaps).pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 7, 9, 10, 20, 35, 50, 65, 80])
def test_ties_and_zeros_are_treated_as_in_scipy(n: int) -> None:
    """With ties and zeros SciPy is exact for small n, by going through all signs, and approximates beyond 13.

    We approximate beyond 50.
    """
    rng = np.random.default_rng(n)
    for _ in range(3):
        tied = np.append(np.round(rng.normal(0.4, 2, n - 1)), 1)
        known = scipy.stats.wilcoxon(tied).pvalue
        same = n <= 13 or np.count_nonzero(tied) > 50
        assert measure.wilcoxon(tied) == (pytest.approx(known, rel=1e-9) if same else pytest.approx(known, abs=0.05))


def test_the_signed_rank_test_is_exact_for_small_samples() -> None:
    assert measure.wilcoxon([1, 2, 3, 4, 5]) == 0.0625  # 2 of 32 choices of signs
    assert measure.wilcoxon([1, 2, 3, 4, 5, 0, 0]) == 0.0625
    assert measure.wilcoxon([-3]) == 1
    assert measure.wilcoxon([0, 0]) == 1
    tied = np.round(np.random.default_rng(0).normal(0.8, 2, 12))  # here SciPy approximates, if it is not asked to count
    counted = scipy.stats.wilcoxon(tied, method=scipy.stats.PermutationMethod(n_resamples=2**13)).pvalue
    assert measure.wilcoxon(tied) == pytest.approx(counted, rel=1e-9)
    for n, positive in ((20, 14), (37, 12), (50, 33)):  # differences of one size: the signs alone decide
        signs = np.where(np.arange(n) < positive, 1, -1)
        assert measure.wilcoxon(signs) == pytest.approx(scipy.stats.binomtest(positive, n).pvalue, rel=1e-9)


def test_intervals_cover_the_true_median_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    trials, covered = 300, 0
    for _ in range(trials):
        low, high = measure.summary(rng.exponential(1, 60)).interval
        covered += low <= np.log(2) <= high
    least = scipy.stats.binom.ppf(FALSE_ALARM, trials, 0.92)  # the bootstrap of a median of 60 is a little too narrow
    assert least <= covered
    assert covered < trials  # and not for nothing


def test_samples_that_are_none() -> None:
    for values in ([], [[]], [[[1.0, 2.0]]], [1.0, np.nan], [[1.0], [np.inf]]):
        with pytest.raises(GerdError, match="a list of finite numbers"):
            measure.summary(values)
    few = measure.effect_size([1.0, 2.0, 3.0], [0.0, 1.5, 1.0])  # some resamples have no spread at all
    assert few.d_interval[1] == few.d_z_interval[1] == np.inf
    assert few.d_interval[0] < few.d
    assert measure.summary(np.arange(30_000.0)).median == 14999.5  # many, but not all resamples at once
    with pytest.raises(GerdError, match="two or more pairs"):
        measure.effect_size([1.0, 2.0], [1.0])


def test_repeats_on_the_same_recordings_are_no_more_recordings() -> None:
    values = np.random.default_rng(2).exponential(1, 80)
    once, thrice = measure.summary(values), measure.summary([values] * 3)
    assert (thrice.count, thrice.median, thrice.quartiles) == (80, once.median, pytest.approx(once.quartiles, abs=0.05))
    assert np.subtract(*thrice.interval) == pytest.approx(np.subtract(*once.interval), rel=0.1)
    assert np.subtract(*measure.summary(np.tile(values, 3)).interval) > 0.75 * np.subtract(*once.interval)  # too narrow


def test_the_covariance_matrix_finds_a_diagonal_and_the_lack_of_one() -> None:
    rng = np.random.default_rng(1)
    channels, amounts = (1.0, 2.0, 4.0), (4.0, 2.0, 1.0)
    matched = [2, 1, 0]
    diagonal = [np.abs(np.arange(3)[:, None] - m) + 1 + 0.1 * rng.random((3, 30)) for m in matched]
    shares = [np.where(np.arange(3)[:, None] == m, 0.8, 0.1) * np.ones((3, 30)) for m in matched]
    found = measure.covariance_matrix(diagonal, shares, channels, amounts, matched)
    assert found.best == found.selected == matched
    assert found.on_diagonal(found.best) == 3
    assert found.counts == [30, 30, 30]
    assert found.medians.shape == found.weights.shape == (3, 3)
    of_errors, of_shares = found.intervals()
    np.testing.assert_allclose(
        of_shares, np.stack([found.weights] * 2, axis=-1), rtol=1e-12
    )  # all recordings are the same
    for (i, j), median in np.ndenumerate(found.medians):
        known = measure.summary(diagonal[j][i])
        assert (known.median, known.interval) == (median, tuple(of_errors[i, j]))
    collapsed = measure.covariance_matrix([diagonal[0]] * 3, [shares[0]] * 3, channels, amounts, matched)
    assert collapsed.on_diagonal(collapsed.best) == 1
    assert collapsed.on_diagonal(collapsed.selected, within=1) == 2
    with pytest.raises(GerdError, match="one of each for every amount"):
        measure.covariance_matrix(diagonal[:2], shares, channels, amounts, matched)
    for wrong in (diagonal[0][:2], diagonal[0][:, :20], diagonal[0][:, :0], diagonal[0][None]):
        with pytest.raises(GerdError, match=r"allowed: \(3, recordings\) of both"):
            measure.covariance_matrix([wrong, *diagonal[1:]], shares, channels, amounts, matched)


def test_pairs_share_their_draws() -> None:
    """Random integrator states and background noise stay where they are when the scene moves away."""
    chosen = config(actor("square", at=[24.0, 24.0]), width=48, height=48, steps=6, noise={"background": 0.01})
    scenes = draw(plan_of(chosen), [5])
    assert torch.equal(
        backends.frames(translation(200)(scenes)),
        backends.frames(
            replace(
                scenes,
                shapes=(),
                chosen=scenes.chosen[:, :0],
                wraps=(),
                intensity=scenes.intensity[:, :0],
                trajectory=scenes.trajectory[:, :0],
            )
        ),
    )

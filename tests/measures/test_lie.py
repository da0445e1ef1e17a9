"""Lie derivatives of models that are known with pencil and paper."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from support.scenes import actor, config
from torch import Tensor

from gerd import measure, transformation
from gerd.config.config import Config
from gerd.errors import GerdError

MIDDLE = 24.0


def scattered(turn: float = 3.1) -> Config:
    """Squares of one size that start anywhere near the middle and move on a straight path."""
    square = actor("square", at={"uniform": [19.0, 29.0]}, velocity=(0.37, 0.61), size=9.0, turn=turn)
    return config(square, width=48, height=48, steps=10, timing="exact", integrator={"initial": 0.0, "warmup": 4})


def centroid(frames: Tensor) -> Tensor:
    """(batch, steps, 2): the mean place of the events up to each step. Moves, turns and grows with them."""
    heat = frames.double().cumsum(1).sum(2)
    x, y = torch.arange(heat.shape[-1]) + 0.5, torch.arange(heat.shape[-2]) + 0.5
    total = heat.sum((-1, -2)).clamp(min=1)
    return torch.stack([(heat.sum(-2) * x).sum(-1), (heat.sum(-1) * y).sum(-1)], dim=-1) / total[..., None]


def twice(frames: Tensor) -> Tensor:
    """Twice as far from the middle as it should be."""
    return 2 * (centroid(frames) - MIDDLE) + MIDDLE


def same(frames: Tensor) -> Tensor:
    """The place (30, 27), whatever it sees."""
    return torch.tensor([30.0, 27.0], dtype=torch.float64).expand(*frames.shape[:2], 2)


def unchanged(g: object, out: Tensor, size: object) -> Tensor:  # noqa: ARG001
    return out


def lie(model: Any, generator: Any, count: int = 48, **options: Any) -> measure.LieDerivative:
    return measure.lie_derivative(model, scattered(), generator, count=count, first_step=4, **options)


def test_an_equivariant_model_has_none() -> None:
    low, high = lie(centroid, "translation").absolute.interval
    assert low <= 0 <= high


@pytest.mark.parametrize("generator", ["rotation", "scale", "shear"])
def test_the_grid_of_pixels_is_all_that_is_left(generator: str) -> None:
    """The mean place of the events turns and grows with the scene, but lags behind it by a part of a pixel."""
    assert lie(centroid, generator).absolute.interval[1] < 0.2 * lie(same, generator).absolute.value


def test_a_wrong_model_has_the_value_of_pencil_and_paper() -> None:
    # ρ(g)⁻¹ f(g·x) of a model that is twice as far off: 2 (p + ε) - ε along x, which grows by 1 px per px.
    assert lie(twice, "translation").absolute.value == pytest.approx(1, abs=0.05)
    # A place that never moves is taken back by ε, turned back about the middle, from which it is √45 px away, …
    assert lie(same, "translation").absolute.value == pytest.approx(1, abs=1e-9)
    turned = 2 * math.sin(math.radians(0.7 * 4)) * 2 * math.sin(math.radians(4)) * 45 / (8 * 5.6)
    assert lie(same, "rotation").absolute.value == pytest.approx(math.sqrt(turned), rel=1e-9)
    assert lie(same, "rotation", epsilon=0.1).absolute.value == pytest.approx(math.sqrt(45) * math.pi / 180, rel=1e-5)
    # … shrunk towards it by e^-ε, and moved by ε times its 3 px below the middle.
    assert lie(same, "scale", epsilon=0.001).absolute.value == pytest.approx(math.sqrt(45), rel=1e-5)
    assert lie(same, "shear").absolute.value == pytest.approx(3, rel=1e-9)
    # A boost takes it back by ε for each step, 4 … 9: root mean square 6.7.
    steps = math.sqrt(sum(step**2 for step in range(4, 10)) / 6)
    assert lie(same, "velocity").absolute.value == pytest.approx(steps, rel=1e-9)


def test_models_that_should_be_invariant() -> None:
    def height(frames: Tensor) -> Tensor:
        """(batch, steps, 1): how far down the mean place is."""
        return centroid(frames)[..., 1:]

    assert lie(height, "translation", acts=unchanged).absolute.value == pytest.approx(0, abs=0.02)
    down = lie(height, lambda e: transformation.translation(0, e), epsilon=1.0, acts=unchanged)
    assert down.absolute.value == pytest.approx(1, abs=0.05)


def test_nothing_is_said_of_a_model_that_says_the_same_of_everything() -> None:
    found = lie(same, "scale", acts=unchanged, count=8)
    assert found.absolute.value == 0
    assert found.relative is None
    assert not found.is_found
    assert "the same of every recording" in str(found.why_nothing)
    for few, reason in ((3, "the model says the same of every recording but 3"), (4, None)):
        rare = torch.tensor([1.0] * few + [0.0] * (8 - few))[:, None]
        assert lie(lambda _, rare=rare: rare, "scale", acts=unchanged, count=8).why_nothing == reason
    assert lie(twice, "translation", count=5).why_nothing == "5 recordings: allowed: 6 or more"
    assert lie(twice, "translation", count=8).is_found
    assert lie(twice, "translation", count=8).why_nothing is None


def test_a_generator_of_ones_own() -> None:
    down = lie(twice, lambda e: transformation.translation(0, e), epsilon=1.0)
    assert down.absolute.value == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("generator", "options", "message"),
    [
        ("rotate", {}, "generator 'rotate': allowed: translation, rotation, scale,"),
        (transformation.rotation, {}, "or a function of ε with epsilon="),
        (3, {"epsilon": 1.0}, "generator 3: allowed: a name"),
        ("scale", {"epsilon": 0.0}, "epsilon 0.0: allowed: a positive number"),
        ("scale", {"epsilon": math.nan}, "epsilon nan: allowed: a positive number"),
        (lambda e: e, {"epsilon": 1.0}, "gave 1.0 for 1; allowed: a transformation"),
        (transformation.density, {"epsilon": 0.5}, "what the camera does cannot be taken back"),
    ],
)
def test_mistakes(generator: Any, options: dict[str, float], message: str) -> None:
    with pytest.raises(GerdError) as error:
        lie(twice, generator, count=2, **options)
    assert message in str(error.value)


class Layered(torch.nn.Module):
    """The place of the events, by way of a map of them; a part for what is wrong, which moves twice as far."""

    def __init__(self) -> None:
        super().__init__()
        self.summed = torch.nn.Identity()
        self.placed = torch.nn.Identity()
        self.of_a_step = torch.nn.Identity()
        self.unused = torch.nn.Identity()

    def forward(self, frames: Tensor) -> Tensor:
        seen = self.summed(frames.double().cumsum(1).sum(2).flatten(0, 1)).unflatten(0, frames.shape[:2])
        places = self.placed(centroid(frames))
        steps = [self.of_a_step(place) for place in places.unbind(1)]
        return 2 * (torch.stack(steps, 1) - MIDDLE) + MIDDLE + 0 * seen.sum((-1, -2))[..., None]


def test_a_layer_is_a_model_of_its_own() -> None:
    network = Layered()
    assert lie(network, "translation").absolute.value == pytest.approx(1, abs=0.05)
    for name in ("placed", "of_a_step"):  # which is given (batch, steps, 2) at once, and (batch, 2) at each step
        whole, part = lie(centroid, "translation"), lie(measure.layer(network, name), "translation")
        assert part.absolute.value == pytest.approx(whole.absolute.value, rel=1e-12)
    frames = torch.rand(2, 5, 2, 8, 8)
    assert torch.equal(measure.layer(network, "summed")(frames), frames.double().cumsum(1).sum(2))
    network.train()
    lie(measure.layer(network, "placed"), "translation", count=2)
    assert network.training


@pytest.mark.parametrize(
    ("name", "message"),
    [("sumed", "did you mean summed?"), ("unused", "layer 'unused': is never called"), ("", "layer ''")],
)
def test_layers_that_are_none(name: str, message: str) -> None:
    with pytest.raises(GerdError) as error:
        lie(measure.layer(Layered(), name), "translation", count=2)
    assert message in str(error.value)

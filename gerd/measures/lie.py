"""How fast a model's answer leaves the orbit of a symmetry: the Lie derivative, by differences of rendered scenes.

    L f (x) = d/dε ρ(g_ε)⁻¹ f(g_ε·x)   at ε = 0

is 0 of a model that is equivariant, and otherwise says how much the answer goes wrong per unit of the transformation.
Its size over recordings is the local equivariance error of Gruver et al. (2022). Here g_ε·x is rendered anew from the
scene, at ε and -ε.

Pixels and steps make every difference somewhat wrong, so that the mean square of one difference would never be 0. What
is given is the mean product of two, taken at two distances ε whose errors have little to do with each other: they
average out, and an interval around 0 means that no departure from equivariance was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.config.load import AnyConfig
from gerd.errors import GerdError, shorten
from gerd.events import backends
from gerd.measures.action import Action, action, numbers_of_one
from gerd.measures.answers import between_recordings, count_different, distances_from_mean, why_too_alike
from gerd.measures.asking import Model, Options, exact, output, stimuli, with_axis
from gerd.measures.statistics import LEAST, Estimate, estimate
from gerd.scene.scenes import Scenes
from gerd.scene.transformation import (
    Transformation,
    acceleration,
    rotation,
    scale,
    shear,
    time_scale,
    translation,
    velocity,
)

Array = NDArray[np.float64]

NEARER = 0.7  # the second distance, as a share of the first; the pixels that both look at differ


class Generator(NamedTuple):
    """A one-parameter group of transformations."""

    at: Callable[[float], Transformation]  # the element that is so many units away from doing nothing
    epsilon: float  # how far to go, unless told
    unit: str


GENERATORS = {
    "translation": Generator(translation, 1.0, "px"),
    "rotation": Generator(rotation, 4.0, "°"),
    "scale": Generator(lambda e: scale(math.exp(e)), 0.1, "of the logarithm of the factor"),
    "shear": Generator(shear, 0.1, "of shear"),
    "velocity": Generator(velocity, 0.1, "px/step"),
    "acceleration": Generator(acceleration, 0.01, "px/step²"),
    "time_scale": Generator(lambda e: time_scale(math.exp(e)), 0.1, "of the logarithm of the factor"),
}


@dataclass(frozen=True)
class LieDerivative:
    """The size of the Lie derivative of a model over recordings, per unit of the generator."""

    generator: str
    unit: str
    epsilon: float  # the larger of the two distances
    absolute: Estimate  # in the unit of the output; below 0 only by chance
    relative: Estimate | None  # in units of what answers to different recordings differ by; none where they do not
    different: int  # recordings of which the model says something else than of most

    @property
    def why_nothing(self) -> str | None:
        """Why nothing can be said of the symmetry of this model; none where something can."""
        if self.absolute.count < LEAST:
            return f"{self.absolute.count} recordings: allowed: {LEAST} or more"
        return why_too_alike(self.different)

    @property
    def is_found(self) -> bool:
        """Whether the model surely departs from equivariance: whether the whole interval is above 0."""
        return self.why_nothing is None and self.absolute.interval[0] > 0

    def __str__(self) -> str:
        relative = "the same answer to every recording" if self.relative is None else f"relative {self.relative}"
        return f"{self.generator}, per unit {self.unit}: {self.absolute}; {relative}"


def lie_derivative(
    model: Model,
    config: AnyConfig,
    generator: str | Callable[[float], Transformation],
    *,
    epsilon: float | None = None,
    acts: str | Action = "coordinates",
    **options: Unpack[Options],
) -> LieDerivative:
    """How much a model's answer departs from equivariance per unit of a transformation: 0 if it is equivariant.

    generator: translation (along x), rotation, scale, shear, velocity (a boost along x), acceleration or time_scale; or
        a function of ε that gives the transformation, such as `lambda e: gerd.transformation.translation(0, e)`.
    epsilon: how far the scene is transformed either way, in the generator's unit. The larger, the less do pixels and
        steps matter, and the more does what is not linear in ε.
    acts, options: as in `equivariance_error`; `acts=lambda g, out, size: out` for a model that should be invariant.
    """
    name, chosen = _generator(generator, epsilon)
    act, least = action(acts)
    products: list[Tensor] = []
    answers: list[Tensor] = []
    rounding = 0.0
    batches, first_step, device = stimuli(config, **options)
    for scenes in batches:
        plain = output(model, backends.frames(scenes, device))
        rounding = torch.finfo(plain.dtype).eps / 2 if plain.is_floating_point() else 0.0
        answers.append(_late(with_axis(exact(plain)), scenes, first_step, least).cpu())
        pair = [
            _difference(model, scenes, chosen, share * chosen.epsilon, act, least, first_step, device)
            for share in (1.0, NEARER)
        ]
        products.append(_mean_product(*pair).cpu())
    axes = numbers_of_one(acts)
    squares = torch.cat(products).numpy() * axes
    said = torch.cat(answers)
    different = count_different(said, rounding)
    apart = distances_from_mean(said).numpy() * math.sqrt(axes)
    absolute = estimate(lambda rows: _root(squares[rows].mean(axis=-1)), len(squares))
    relative = None
    if different and len(squares) > 1:
        relative = estimate(lambda rows: _relative(squares[rows], apart[rows]), len(squares))
    return LieDerivative(name, chosen.unit, chosen.epsilon, absolute, relative, different)


def _generator(given: str | Callable[[float], Transformation], epsilon: float | None) -> tuple[str, Generator]:
    """The name of a generator, and what it is, with the distance that was asked for."""
    if isinstance(given, str):
        if given not in GENERATORS:
            raise GerdError(f"generator {given!r}: allowed: {', '.join(GENERATORS)}, or a function of ε")
        name, chosen = given, GENERATORS[given]
    elif callable(given) and epsilon is not None:
        name, chosen = "generator", Generator(given, epsilon, "of ε")
    else:
        raise GerdError(f"generator {shorten(given)}: allowed: a name, or a function of ε with epsilon=…")
    distance = chosen.epsilon if epsilon is None else epsilon
    if not 0 < distance < math.inf:
        raise GerdError(f"epsilon {distance}: allowed: a positive number")
    return name, chosen._replace(epsilon=distance)


def _difference(
    model: Model,
    scenes: Scenes,
    generator: Generator,
    epsilon: float,
    act: Action,
    least: int,
    first_step: int,
    device: str,
) -> Tensor:
    """(batch, …): the central difference of ρ(g)⁻¹ f(g·x), per unit; not a number where it is not known."""
    ends = []
    for signed in (epsilon, -epsilon):
        g: Any = generator.at(signed)
        if not isinstance(g, Transformation):
            raise GerdError(f"generator: gave {shorten(g)} for {signed:g}; allowed: a transformation")
        out = with_axis(exact(output(model, backends.frames(g(scenes), device))))
        settled = out.clone()
        if out.ndim > least and out.shape[1] == scenes.steps:
            settled[:, :first_step] = math.nan
        ends.append(act(g.inverse(), settled, (scenes.width, scenes.height)))
    above, below = (_late(end, scenes, first_step, least) for end in ends)
    return (above - below) / (2 * epsilon)


def _late(out: Tensor, scenes: Scenes, first_step: int, least: int) -> Tensor:
    """The steps of an answer that count."""
    return out[:, first_step:] if out.ndim > least and out.shape[1] == scenes.steps else out


def _mean_product(one: Tensor, other: Tensor) -> Tensor:
    """(batch,): the mean over all numbers of an answer that are known in both."""
    product = (one * other).flatten(1)
    known = torch.isfinite(product)
    if not bool(known.any(1).all()):
        raise GerdError("nothing of the answers can be compared; allowed: longer recordings, a smaller epsilon")
    return torch.where(known, product, 0.0).sum(1) / known.sum(1)


def _root(squares: Array) -> Array:
    """The square root, with the sign of what is below 0."""
    result: Array = np.sign(squares) * np.sqrt(np.abs(squares))
    return result


def _relative(squares: Array, apart: Array) -> Array:
    """The root of the mean square (…, recordings), in units of what answers to two recordings differ by."""
    between = between_recordings(apart)
    result: Array = _root(squares.mean(axis=-1)) / np.where(between > 0, between, np.inf)
    return result

"""Does a network with several time constants work at speeds that it was not trained at?

The paper's demonstration: a square under translation and scaling, trained at time scale 1 and tested at eight others.
The network with five time constants is compared with the one that has the middle one only, as in the paper; and, so
that the reason for a difference can be seen, with each time constant alone, with channels that all count the same, and
with a variant whose middle channel is made to be the right one at scale 1.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gerd.studies.lab.folder as store
from gerd.config.config import Config
from gerd.config.load import parse
from gerd.measures.measure import Covariance, Curve, chance_error, covariance_matrix
from gerd.measures.transformation import time_scale
from gerd.studies.lab import comparison
from gerd.studies.lab.comparison import Comparison
from gerd.studies.lab.training import (
    FULL,
    SMALL,
    TINY,
    Data,
    Loss,
    Order,
    Size,
    anchored_loss,
    errors,
    place_loss,
    recordings,
    rounded,
    train,
)
from gerd.studies.networks import TIME_CONSTANTS, Channels, Layers, ScaleChannels

Array = NDArray[np.float64]

SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
TRAINED = 1.0
MIDDLE = len(TIME_CONSTANTS) // 2
BASELINE = f"single {TIME_CONSTANTS[MIDDLE]:g}"
SINGLES = tuple(f"single {mu:g}" for mu in TIME_CONSTANTS)
MULTI, UNIFORM, ANCHORED = "multi-scale", "uniform", "anchored"
MODELS = (MULTI, *SINGLES, ANCHORED, UNIFORM)
KEPT = 0.25  # of the events

SIZES = {
    "full": Size(side=128, training=1400, tests=400, epochs=8, batch=16, seeds=3, layers=FULL),
    "quick": Size(  # a batch of 4 and a fast rate: as many steps of training as a few minutes allow
        side=64,
        training=1000,
        tests=100,
        epochs=8,
        batch=4,
        seeds=1,
        layers=SMALL,
        models=(MULTI, SINGLES[0], BASELINE),
        rate=4e-3,
    ),
    "smoke": Size(side=32, training=24, tests=6, epochs=3, batch=8, seeds=1, layers=TINY),
}


def stimuli(side: int, seed: int = 0, kept: float = KEPT) -> Config:
    """The config: sparse events of a square that moves by ±1 px per step along both axes and changes its size."""
    smallest, largest = 0.1 * side, 0.4 * side
    return parse(
        f"""
        seed: {seed}
        sensor: {{width: {side}, height: {side}}}
        steps: 60
        noise: {{background: 0.001, event: {1 - kept}}}
        actors:
          - shape: square
            translation: {{start: uniform, velocity: {{choice: [-1, 1]}}, acceleration: 0, border: bounce}}
            scale:
              start: {{uniform: [{smallest}, {largest}]}}
              velocity: {{choice: [-0.25, 0.25]}}
              acceleration: 0
              limits: [{smallest}, {largest}]
        """
    )


def build(model: str, layers: Layers, seed: int) -> Channels:
    """An untrained network by its name."""
    if model.startswith("single "):
        return ScaleChannels([float(model.split()[1])], layers=layers, seed=seed)
    return ScaleChannels(fusion="uniform" if model == UNIFORM else "evidence", layers=layers, seed=seed)


def held_out(size: Size) -> int:
    """Recordings for validation, and as many for the test at scale 1: the training is 70 % of the whole."""
    return round(size.training * 0.15 / 0.7)


def compute(out: Path | str, order: Order, study: str = "timescale", kept: float = KEPT) -> store.Results:
    """Train and test everything that is not yet in `out`; the results, which are also in its results.json."""
    size, config = order.size, stimuli(order.size.side, order.seed, kept)
    folder = store.Folder(out, study, order, config, kept=kept)
    models = size.models or MODELS
    names = [(model, order.seed + k) for k in range(size.seeds) for model in models]
    found: dict[str, dict[str, Any]] = {model: {} for model in models}
    data: Data | None = None
    for number, (model, seed) in enumerate(names):
        run = f"{model.replace(' ', '-')}-{seed}"
        result = folder.found(run)
        if result is None:
            data = data or recordings(config, 0, size.training + held_out(size), order.device)
            network = build(model, size.layers, seed)
            title = f"[{number + 1}/{len(names)}] {model}, seed {seed}"
            result = train(network, data[: size.training], _loss(model, order), order, seed, folder.state(run), title)
            validated = errors(network, data[size.training :], order.recipe.first_step)
            order.say(f"{title}: {validated.fused.mean():.2f} px on the validation part")
            result |= {"validation": rounded(validated.fused), **_tested(network, config, order)}
            folder.keep(run, result)
        found[model][str(seed)] = result
    first = size.training + held_out(size)
    chance = chance_error(config, first, held_out(size), order.recipe.first_step)
    seconds = sum(run["seconds"] for runs in found.values() for run in runs.values())
    return folder.finish({"scales": SCALES, "chance": asdict(chance), "runs": found}, seconds)


def _loss(model: str, order: Order) -> Loss:
    return anchored_loss(order.recipe, MIDDLE) if model == ANCHORED else place_loss(order.recipe)


def _tested(network: Channels, config: Config, order: Order) -> dict[str, Any]:
    """Errors and weights at every scale, on recordings that were not in the training."""
    first = order.size.training + held_out(order.size)
    tested: dict[str, Any] = {"errors": {}, "channels": {}, "weights": {}}
    for scale in SCALES:
        count = held_out(order.size) if scale == TRAINED else order.size.tests
        data = recordings(config, first, count, order.device, time_scale(scale))
        part = errors(network, data, order.recipe.first_step)
        tested["errors"][f"{scale:g}"] = rounded(part.fused)
        tested["channels"][f"{scale:g}"] = rounded(part.channels, 3)
        tested["weights"][f"{scale:g}"] = rounded(part.weights)
    return tested


def errors_of(results: store.Results, model: str) -> dict[str, list[Array]]:
    """For each seed, the errors in pixels at each scale."""
    runs = results["runs"][model]
    return {seed: [np.array(run["errors"][f"{scale:g}"]) for scale in SCALES] for seed, run in runs.items()}


def curve_of(results: store.Results, model: str) -> Curve:
    """All seeds together."""
    pooled = [np.array(column) for column in zip(*errors_of(results, model).values(), strict=True)]
    return Curve(SCALES, tuple(pooled), TRAINED, store.chance_of(results))


def curves_of(results: store.Results, model: str) -> list[Curve]:
    """Each seed by itself."""
    return comparison.each_seed(curve_of(results, model))


def matrix_of(results: store.Results, model: str, seed: str) -> Covariance:
    """Channels against scales, in one training.

    Which channel is right at scale 1 is up to the training, but for the anchored variant; the others follow from it.
    """
    run = results["runs"][model][seed]
    errors, weights = ([np.array(run[what][f"{scale:g}"]) for scale in SCALES] for what in ("channels", "weights"))
    at_home = np.median(errors[SCALES.index(TRAINED)], axis=1)
    anchor = MIDDLE if model == ANCHORED else int(at_home.argmin())
    matched = [matched_channel(scale, anchor) for scale in SCALES]
    return covariance_matrix(errors, weights, TIME_CONSTANTS, SCALES, matched)


def matched_channel(scale: float, anchor: int = MIDDLE) -> int:
    """The channel that sees, at this scale, what the channel `anchor` sees at scale 1: the one nearest to μ / s."""
    wanted = np.log(TIME_CONSTANTS[anchor] / scale)
    return int(np.argmin(np.abs(np.log(TIME_CONSTANTS) - wanted)))


def compared(results: store.Results, reference: str, model: str) -> list[Comparison]:
    """How much smaller the errors of `model` are than those of `reference`, at each scale."""
    return comparison.compared(curve_of(results, reference), curve_of(results, model))


def singles_of(results: store.Results) -> list[str]:
    """The time constants that were trained alone."""
    return [model for model in results["runs"] if model in SINGLES]


def best_single(results: store.Results) -> str:
    """The one of them that is best: the smallest mean, over the unseen scales, of the median error."""
    unseen = [i for i, scale in enumerate(SCALES) if scale != TRAINED]

    def score(model: str) -> float:
        return float(np.mean([np.median(curve_of(results, model).errors[i]) for i in unseen]))

    return min(singles_of(results), key=score)


def report(results: store.Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    from gerd.studies.timescale_report import write

    return write(results, out)


if __name__ == "__main__":
    store.bare_command(compute, SIZES, "timescale")

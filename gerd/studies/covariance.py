"""Do channels that integrate along a velocity make a network covariant under a Galilean boost?

A square moves slowly in the training. In the test the whole scene moves along x, by up to two pixels per step more.
Each channel of the network integrates events along a velocity of its own. If the network is covariant, the channel that
is right is the one that moves with the scene, and the network chooses it; one channel at rest is the baseline.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import gerd.studies.lab.folder as store
from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import counted
from gerd.measures.measure import Covariance, Curve, chance_error, covariance_matrix, summary
from gerd.measures.transformation import velocity
from gerd.studies.lab.comparison import Comparison, compared, each_seed
from gerd.studies.lab.training import (
    FULL,
    SMALL,
    TINY,
    Data,
    Order,
    Size,
    anchored_loss,
    errors,
    place_loss,
    recordings,
    rounded,
    train,
)
from gerd.studies.networks import VelocityChannels

BOOSTS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)  # pixels per step along x
TRAINED = 0.0
CHANNELS = (-2, -1, 0, 1, 2)
AT_REST = CHANNELS.index(0)
MULTI, BASELINE = "five velocities", "at rest only"
STEPS, FIRST_STEP = 32, 12
MIDDLE_STEP = (STEPS + FIRST_STEP) / 2  # at which the boosted scene is where it was
SIZES = {
    "full": Size(side=128, training=1000, tests=300, epochs=8, batch=16, seeds=3, layers=FULL, first_step=FIRST_STEP),
    "quick": Size(side=64, training=160, tests=60, epochs=10, batch=8, seeds=1, layers=SMALL, first_step=FIRST_STEP),
    "smoke": Size(side=32, training=16, tests=6, epochs=2, batch=8, seeds=1, layers=TINY, first_step=FIRST_STEP),
}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: a square near the middle that moves slowly and changes its size."""
    near, far, middle = 0.15 * side, 0.3 * side, side / 2
    return parse(
        f"""
        seed: {seed}
        sensor: {{width: {side}, height: {side}}}
        steps: {STEPS}
        noise: {{background: 0.001, event: 0.5}}
        actors:
          - shape: square
            translation:
              start: {{uniform: [{middle - 0.12 * side}, {middle + 0.12 * side}]}}
              velocity: {{uniform: [-0.5, 0.5]}}
              acceleration: 0
              border: free
            scale: {{start: {{uniform: [{near}, {far}]}}, velocity: {{choice: [-0.1, 0.1]}}, acceleration: 0}}
        """
    )


def build(model: str, order: Order, seed: int) -> VelocityChannels:
    channels = [(u, 0) for u in CHANNELS] if model == MULTI else [(0, 0)]
    return VelocityChannels(channels, layers=order.size.layers, seed=seed)


def compute(out: Path | str, order: Order) -> store.Results:
    """Train and test what is not yet in `out`; the results, which are also in its results.json."""
    size, config = order.size, stimuli(order.size.side, order.seed)
    folder = store.Folder(out, "covariance", order, config)
    found: dict[str, dict[str, Any]] = {MULTI: {}, BASELINE: {}}
    data: Data | None = None
    for seed in range(order.seed, order.seed + size.seeds):
        for model in found:
            run = f"{model.replace(' ', '-')}-{seed}"
            result = folder.found(run)
            if result is None:
                data = data or recordings(config, 0, size.training, order.device)
                loss = anchored_loss(order.recipe, AT_REST) if model == MULTI else place_loss(order.recipe)
                network = build(model, order, seed)
                result = train(network, data, loss, order, seed, folder.state(run), f"{model}, seed {seed}")
                result |= _tested(network, config, order)
                folder.keep(run, result)
            found[model][str(seed)] = result
    chance = chance_error(config, size.training, size.tests, FIRST_STEP)
    seconds = sum(run["seconds"] for runs in found.values() for run in runs.values())
    return folder.finish({"boosts": BOOSTS, "chance": asdict(chance), "runs": found}, seconds)


def _tested(network: VelocityChannels, config: Config, order: Order) -> dict[str, Any]:
    tested: dict[str, Any] = {"errors": {}, "channels": {}, "weights": {}}
    for boost in BOOSTS:
        g = velocity(boost, epoch=MIDDLE_STEP)
        part = errors(network, recordings(config, order.size.training, order.size.tests, order.device, g), FIRST_STEP)
        tested["errors"][f"{boost:g}"] = rounded(part.fused)
        tested["channels"][f"{boost:g}"] = rounded(part.channels, 3)
        tested["weights"][f"{boost:g}"] = rounded(part.weights)
    return tested


def curve_of(results: store.Results, model: str) -> Curve:
    """All seeds together."""
    runs = results["runs"][model].values()
    errors = [np.array([run["errors"][f"{boost:g}"] for run in runs]) for boost in BOOSTS]
    return Curve(BOOSTS, tuple(errors), TRAINED, store.chance_of(results))


def matrix_of(results: store.Results, seed: str) -> Covariance:
    """Channels against boosts in one training. Between two channels either is right: the slower one is named."""
    run = results["runs"][MULTI][seed]
    errors, weights = ([np.array(run[what][f"{boost:g}"]) for boost in BOOSTS] for what in ("channels", "weights"))
    matched = [CHANNELS.index(int(boost)) for boost in BOOSTS]  # int() goes towards rest
    return covariance_matrix(errors, weights, CHANNELS, BOOSTS, matched)


def comparisons(results: store.Results) -> list[Comparison]:
    """How much smaller the errors are with five velocities than at rest only, at each boost."""
    return compared(curve_of(results, BASELINE), curve_of(results, MULTI))


def conclusions(results: store.Results) -> list[str]:
    """What the numbers say."""
    from gerd.studies.lab.drawing import over_seeds

    whole = [boost for boost in BOOSTS if boost.is_integer()]
    found = [matrix_of(results, seed) for seed in results["runs"][MULTI]]
    on, chosen = (
        sum(getattr(each, what)[BOOSTS.index(b)] == each.matched[BOOSTS.index(b)] for each in found for b in whole)
        for what in ("best", "selected")
    )
    cells = len(whole) * len(found)
    moving = [each for each in comparisons(results) if each.amount != TRAINED]
    better, worse = sum(each.better for each in moving), sum(each.worse for each in moving)
    ratios = {
        model: over_seeds(curve.ratio() for curve in each_seed(curve_of(results, model))) for model in (MULTI, BASELINE)
    }
    return [
        f"At boosts of whole pixels the channel that moves with the scene has the smallest error in {on} of {cells} "
        f"cases ({len(whole)} boosts × {counted(len(found), 'seed')}), and the network gives it the largest share in "
        f"{chosen}.",
        f"Five velocities are surely better than one channel at rest at {better}, and surely worse at {worse}, of "
        f"{len(moving)} boosts that were not in the training.",
        "From the best to the worst boost the median error grows, in the mean of the seeds (with the lowest and the "
        f"highest end of their intervals), by a factor of {ratios[MULTI]} with five velocities and {ratios[BASELINE]} "
        "at rest only.",
    ]


def report(results: store.Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    from gerd.studies.lab import drawing

    rows = [
        {"model": model, "seed": seed, "boost": boost, **drawing.row_of(summary(run["errors"][f"{boost:g}"]))}
        for model, runs in results["runs"].items()
        for seed, run in runs.items()
        for boost in BOOSTS
    ]
    drawing.write_csv(out, rows)
    figure = drawing.new_figure(7.5, 3.0)
    left, middle, right = figure.subplots(1, 3)
    drawing.draw_curves(left, {m: curve_of(results, m) for m in (MULTI, BASELINE)}, label="boost, px per step")
    found = matrix_of(results, next(iter(results["runs"][MULTI])))
    drawing.draw_matrix(middle, found.medians, found, title="median error, px", best=found.best)
    drawing.draw_matrix(right, found.weights, found, title="mean share", digits=2, best=found.selected)
    middle.set(ylabel="velocity of the channel", xlabel="boost, px per step")
    right.set(xlabel="boost, px per step")
    cells = [{"seed": s, **cell} for s in results["runs"][MULTI] for cell in drawing.cells_of(matrix_of(results, s))]
    drawing.write_csv(out, cells, "channels.csv")
    return "\n".join(
        [
            "# Do channels that integrate along a velocity make a network covariant under a Galilean boost?\n",
            drawing.provenance(results),
            f"Trained without a boost ({results['settings']['training']} recordings, own velocities within ±0.5 px per "
            f"step along each axis) and tested with one, on the same {results['settings']['tests']} recordings at each "
            "boost. The scene is rendered anew, with the same draws.\n",
            "## Conclusions\n",
            *(f"- {line}" for line in conclusions(results)),
            f"\n{drawing.SURELY}",
            "\n## Errors\n",
            drawing.save(figure, out, "covariance"),
            "A frame marks the channel that moves with the scene (or, between two, the slower one); bold is the "
            "smallest error or the largest share, in the first seed; every cell of every seed, with intervals, is in "
            f"channels.csv. Chance: {drawing.chance(results).lower()}. In the table: {drawing.OVER_SEEDS} Differences "
            "and d are positive where five velocities are better. Each seed by itself is in summary.csv.\n",
            drawing.versus("boost", MULTI, BASELINE, comparisons(results)),
            "## Limits\n",
            "The two networks differ in their loss, too: with five velocities the channel at rest alone has to be "
            "right and is the one to be chosen (as in the anchored variant of the time scale study), so that the "
            "choice is guided at rest. A faster scene gives more events per step, so that a boost changes more than "
            "the frame of reference: events are not Galilean invariant, whatever the network does. Channels move by "
            "whole pixels.\n",
        ]
    )


if __name__ == "__main__":
    store.bare_command(compute, SIZES, "covariance")

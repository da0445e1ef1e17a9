"""Do channels that integrate along a velocity make a network covariant under a Galilean boost?

A square moves slowly in the training. In the test the whole scene moves along x, by up to two pixels per step more.
Each channel of the network integrates events along a velocity of its own. If the network is covariant, the channel that
is right is the one that moves with the scene, and the network chooses it; one channel at rest is the baseline.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import counted
from gerd.measures.curves import Covariance, covariance_matrix
from gerd.scene.transformation import velocity
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import Comparison, compared, each_seed, surely
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, anchored_loss, place_loss
from gerd.studies.models import VelocityChannels

TITLE = "Do channels that integrate along a velocity make a network covariant under a Galilean boost?"
BOOSTS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)  # pixels per step along x
TRAINED = 0.0
CHANNELS = (-2, -1, 0, 1, 2)
AT_REST = CHANNELS.index(0)
MULTI, BASELINE = "five velocities", "at rest only"
STEPS, FIRST_STEP = 32, 12
MIDDLE_STEP = (STEPS + FIRST_STEP) / 2  # at which the boosted scene is where it was
SWEEP = Sweep("velocity", BOOSTS, partial(velocity, epoch=MIDDLE_STEP), TRAINED)
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


def compute(out: Path | str, order: Order) -> Results:
    """Train and test what is not yet in `out`; the results, which are also in its results.json."""
    config, layers = stimuli(order.size.side, order.seed), order.size.layers
    networks = {
        MULTI: Network(
            lambda seed: VelocityChannels([(u, 0) for u in CHANNELS], layers=layers, seed=seed),
            anchored_loss(AT_REST),
            config,
        ),
        BASELINE: Network(lambda seed: VelocityChannels([(0, 0)], layers=layers, seed=seed), place_loss, config),
    }
    return Experiment(StudyFolder(out, "covariance", order, config), config, [SWEEP]).run(networks)


def matrix_of(run: Run) -> Covariance:
    """Channels against boosts in one training. Between two channels either is right: the slower one is named."""
    test = run.test(SWEEP)
    matched = [CHANNELS.index(int(boost)) for boost in test.amounts]  # int() goes towards rest
    return covariance_matrix(test.channels, test.weights, CHANNELS, test.amounts, matched)


def comparisons(results: Results) -> list[Comparison]:
    """How much smaller the errors are with five velocities than at rest only, at each boost."""
    return compared(results.curve(BASELINE, SWEEP), results.curve(MULTI, SWEEP))


def conclusions(results: Results) -> list[str]:
    """What the numbers say."""
    whole = [k for k, boost in enumerate(BOOSTS) if boost.is_integer()]
    matrices = [matrix_of(run) for run in results.of(MULTI)]
    best = sum(each.best[k] == each.matched[k] for each in matrices for k in whole)
    chosen = sum(each.selected[k] == each.matched[k] for each in matrices for k in whole)
    moving = [each for each in comparisons(results) if each.amount != TRAINED]
    ratios = {
        model: drawing.over_seeds(curve.ratio() for curve in each_seed(results.curve(model, SWEEP)))
        for model in (MULTI, BASELINE)
    }
    return [
        f"At boosts of whole pixels the channel that moves with the scene has the smallest error in {best} of "
        f"{len(whole) * len(matrices)} cases ({len(whole)} boosts × {counted(len(matrices), 'seed')}), and the network "
        f"gives it the largest share in {chosen}.",
        f"Five velocities, against one channel at rest: {surely(moving)} boosts that were not in the training.",
        "From the best to the worst boost the median error grows, in the mean of the seeds (with the lowest and the "
        f"highest end of their intervals), by a factor of {ratios[MULTI]} with five velocities and {ratios[BASELINE]} "
        "at rest only.",
    ]


def report(results: Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    curves = {model: results.curve(model, SWEEP) for model in (MULTI, BASELINE)}
    rows = [row for model in curves for row in drawing.rows_of(results.of(model), each_seed(curves[model]), "boost")]
    drawing.write_csv(out, rows)
    matrices = {run.seed: matrix_of(run) for run in results.of(MULTI)}
    cells = [{"seed": seed, **cell} for seed, matrix in matrices.items() for cell in drawing.cells_of(matrix)]
    drawing.write_csv(out, cells, "channels.csv")
    figure = drawing.new_figure(7.5, 3.0)
    left, middle, right = figure.subplots(1, 3)
    drawing.draw_curves(left, curves, xlabel="boost, px per step")
    drawing.draw_covariance(middle, right, next(iter(matrices.values())))
    middle.set(ylabel="velocity of the channel", xlabel="boost, px per step")
    right.set(xlabel="boost, px per step")
    size = results.settings.size
    return drawing.assembled(
        results,
        TITLE,
        f"Trained without a boost ({size.training} recordings, own velocities within ±0.5 px per step along each axis) "
        f"and tested with one, on the same {size.tests} recordings at each boost. The scene is rendered anew, with the "
        "same draws.\n",
        conclusions(results),
        drawing.SURELY,
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
    )

"""Does a network with several time constants work at speeds that it was not trained at?

The paper's demonstration: a square under translation and scaling, trained at time scale 1 and tested at eight others.
The network with five time constants is compared with the one that has the middle one only, as in the paper; and, so
that the reason for a difference can be seen, with each time constant alone, with channels that all count the same, and
with a variant whose middle channel is made to be the right one at scale 1.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import counted
from gerd.measures.curves import Covariance, Curve, covariance_matrix
from gerd.scene.transformation import time_scale
from gerd.studies.lab import comparison, drawing
from gerd.studies.lab.comparison import LARGE, Comparison, each_seed, surely
from gerd.studies.lab.drawing import over_seeds, px
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, anchored_loss, place_loss
from gerd.studies.models import TIME_CONSTANTS, Channels, Layers, ScaleChannels

SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
TRAINED = 1.0
UNSEEN = [scale for scale in SCALES if scale != TRAINED]
SWEEP = Sweep("time scale", SCALES, time_scale, TRAINED)
MIDDLE = len(TIME_CONSTANTS) // 2
BASELINE = f"single {TIME_CONSTANTS[MIDDLE]:g}"
SINGLES = tuple(f"single {mu:g}" for mu in TIME_CONSTANTS)
MULTI, UNIFORM, ANCHORED = "multi-scale", "uniform", "anchored"
MODELS = (MULTI, *SINGLES, ANCHORED, UNIFORM)
QUICK = (MULTI, SINGLES[0], BASELINE)
STEPS = 60
KEPT = 0.25  # of the events
TITLE = "Does a network with several time constants work at speeds it was not trained at?"

SIZES = {
    "full": Size(side=128, training=1400, tests=400, epochs=8, batch=16, seeds=3, layers=FULL),
    # a batch of 4 and a fast rate: as many steps of training as a few minutes allow
    "quick": Size(side=64, training=1000, tests=100, epochs=8, batch=4, seeds=1, layers=SMALL, models=QUICK, rate=4e-3),
    "smoke": Size(side=32, training=24, tests=6, epochs=3, batch=8, seeds=1, layers=TINY),
}


def stimuli(side: int, seed: int = 0, kept: float = KEPT) -> Config:
    """The config: sparse events of a square that moves by ±1 px per step along both axes and changes its size."""
    smallest, largest = 0.1 * side, 0.4 * side
    return parse(
        f"""
        seed: {seed}
        sensor: {{width: {side}, height: {side}}}
        steps: {STEPS}
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
    if model in SINGLES:
        return ScaleChannels([TIME_CONSTANTS[SINGLES.index(model)]], layers=layers, seed=seed)
    return ScaleChannels(fusion="uniform" if model == UNIFORM else "evidence", layers=layers, seed=seed)


def held_out(size: Size) -> int:
    """Recordings for validation, and as many for the test at scale 1: the training is 70 % of the whole."""
    return round(size.training * 0.15 / 0.7)


def compute(out: Path | str, order: Order, study: str = "timescale", kept: float = KEPT) -> Results:
    """Train and test everything that is not yet in `out`; the results, which are also in its results.json."""
    size, config = order.size, stimuli(order.size.side, order.seed, kept)
    folder = StudyFolder(out, study, order, config, kept=kept)
    losses = {ANCHORED: anchored_loss(MIDDLE)}
    networks = {
        model: Network(partial(build, model, size.layers), losses.get(model, place_loss), config)
        for model in size.models or MODELS
    }
    return Experiment(folder, config, [SWEEP], held_out(size)).run(networks)


def matrix_of(run: Run) -> Covariance:
    """Channels against scales, in one training.

    Which channel is right at scale 1 is up to the training, except in the anchored variant; the others follow from it.
    """
    test = run.test(SWEEP)
    at_home = np.median(test.channels[test.amounts.index(TRAINED)], axis=1)
    anchor = MIDDLE if run.model == ANCHORED else int(at_home.argmin())
    matched = [matched_channel(scale, anchor) for scale in test.amounts]
    return covariance_matrix(test.channels, test.weights, TIME_CONSTANTS, test.amounts, matched)


def matched_channel(scale: float, anchor: int = MIDDLE) -> int:
    """The channel that sees, at this scale, what the channel `anchor` sees at scale 1: the one nearest to μ / s."""
    wanted = np.log(TIME_CONSTANTS[anchor] / scale)
    return int(np.argmin(np.abs(np.log(TIME_CONSTANTS) - wanted)))


def compared(results: Results, reference: str, model: str) -> list[Comparison]:
    """How much smaller the errors of `model` are than those of `reference`, at each scale."""
    return comparison.compared(results.curve(reference, SWEEP), results.curve(model, SWEEP))


def compared_unseen(results: Results, reference: str, model: str) -> list[Comparison]:
    """The same, at the scales that were not in the training."""
    return [each for each in compared(results, reference, model) if each.amount != TRAINED]


def singles_of(results: Results) -> list[str]:
    """The time constants that were trained alone."""
    return _trained(results, *SINGLES)


def best_single(results: Results) -> str:
    """The one of them that is best: the smallest mean, over the unseen scales, of the median error."""

    def score(model: str) -> float:
        curve = results.curve(model, SWEEP)
        return float(np.mean([np.median(curve.errors[curve.amounts.index(scale)]) for scale in UNSEEN]))

    return min(singles_of(results), key=score)


def _trained(results: Results, *models: str) -> list[str]:
    """Those of the models that were trained, each once."""
    return [model for model in dict.fromkeys(models) if model in results.models]


def report(results: Results, out: Path, title: str = TITLE) -> str:
    """Figures and tables into `out`; the text of the report."""
    best, singles, channelled = best_single(results), singles_of(results), _trained(results, MULTI, ANCHORED)
    curves = {model: each_seed(results.curve(model, SWEEP)) for model in results.models}
    rows = [row for model in curves for row in drawing.rows_of(results.of(model), curves[model], "scale")]
    drawing.write_csv(out, rows)
    matrices = {model: [matrix_of(run) for run in results.of(model)] for model in channelled}
    cells = [
        {"model": model, "seed": run.seed, **cell}
        for model in channelled
        for run, matrix in zip(results.of(model), matrices[model], strict=True)
        for cell in drawing.cells_of(matrix)
    ]
    drawing.write_csv(out, cells, "channels.csv")
    return drawing.assembled(
        results,
        title,
        _setting(results),
        conclusions(results),
        drawing.SURELY,
        "\n## The paper's comparison\n",
        f"The five time constants against the middle one alone ({_mu(BASELINE)}). {drawing.OVER_SEEDS} Differences "
        "and d are positive where five are better.\n",
        _versus(results, BASELINE, MULTI),
        _curves(results, out, _trained(results, MULTI, BASELINE, best, ANCHORED, UNIFORM), "curves"),
        *_against_best(results, best),
        f"## {'Every time constant' if singles == [*SINGLES] else 'Time constants'} alone\n",
        _all(curves),
        _curves(results, out, [MULTI, *singles], "singles"),
        "## Which channel is right, and which is used\n",
        "Errors of each channel alone, and its mean share in the fused heat map, of the first seed. A frame "
        "marks the channel that matches the one which is right at s = 1: with μ nearest to μ / s. In an "
        f"anchored network that is μ = {TIME_CONSTANTS[MIDDLE]:g}, otherwise the one with the smallest error. "
        "Bold is the smallest error or the largest share. Every cell of every seed, with the intervals of both "
        "numbers, is in channels.csv.\n",
        _matrices(out, matrices),
        _diagonals(results, matrices),
        "## Limits\n",
        "One shape, one kind of motion and one sensor; the recordings have the same length at every scale, so a "
        "slow one shows less of its path. Background noise does not scale with time. All seeds share the "
        "recordings, and an interval is over test recordings; what depends on the training shows in how far the "
        "seeds are apart.\n",
        "Every number is in the study's results.json, each summary (model, seed, scale) with the interval of its "
        "median in summary.csv.\n",
    )


def _setting(results: Results) -> str:
    size, kept = results.settings.size, results.settings.own["kept"]
    return (
        f"A square of 0.1 to 0.4 of a frame of {size.side}×{size.side} pixels moves by ±s px per step along each axis "
        f"and changes its size by ±s/4, for {STEPS} steps; {kept:.0%} of the events are kept, and the background noise "
        f"is 0.001. Training: {size.training} recordings at s = 1, {size.epochs} epochs, "
        f"{counted(size.seeds, 'seed')}; test: {held_out(size)} others at s = 1 and {size.tests} at each other scale. "
        f"The error of a recording is the mean distance from the truth over steps {size.first_step} to {STEPS - 1}. "
        f"{drawing.chance(results)} at s = 1.\n"
    )


def conclusions(results: Results) -> list[str]:
    """What the numbers say."""
    best, singles = best_single(results), singles_of(results)
    against = {single: compared_unseen(results, single, MULTI) for single in singles}
    lines = [
        _paper(against[BASELINE]),
        f"Five time constants: {_verdict(against[best], f'the best single one, {_mu(best)}')}",
        _beyond_singles(against),
    ]
    names = {MULTI: "five time constants", best: f"{_mu(best)} alone", BASELINE: f"{_mu(BASELINE)} alone"}
    ratios = [
        f"{over_seeds(curve.ratio() for curve in each_seed(results.curve(model, SWEEP)))} with {name}"
        for model, name in names.items()
    ]
    lines.append(
        "From the best to the worst scale the median error grows, in the mean of the seeds (with the lowest and the "
        f"highest end of their intervals), by a factor of {', '.join(ratios[:-1])} and {ratios[-1]}."
    )
    lines += [_covariant(results, model) for model in _trained(results, MULTI, ANCHORED)]
    variants = {ANCHORED: "Anchored variant", UNIFORM: "Uniform weights, the negative control"}
    for model in _trained(results, *variants):
        for reference in dict.fromkeys((BASELINE, best)):
            unseen = compared_unseen(results, reference, model)
            lines.append(f"{variants[model]}: {_verdict(unseen, f'{_mu(reference)} alone')}")
        theirs = compared_unseen(results, model, MULTI)
        lines.append(f"Five time constants: {_verdict(theirs, f'{model} channels')}")
    return lines


def _mu(single: str) -> str:
    """What a single time constant is called in a sentence."""
    return f"μ = {single.removeprefix('single ')}"


def _paper(unseen: list[Comparison]) -> str:
    """Whether five time constants have a large effect against the middle one, as in the paper."""
    several_seeds = len(unseen[0].effects) > 1
    in_mean, in_every = (sum(each.d[k] > LARGE for each in unseen) for k in (0, 1))
    holds, counts, of_a_seed = "does not hold at every scale", f"at {in_mean} of {len(unseen)} unseen scales", ""
    if in_every == len(unseen):
        holds = "holds, in every seed" if several_seeds else "holds"
    elif in_mean == len(unseen) and several_seeds:
        holds = "holds on average, and not in every seed"
    if several_seeds:
        counts += f" in the mean of the seeds, and at {in_every} in every seed"
        of_a_seed = " of a seed"
    d, ends, scale = min((effect.d, effect.d_interval, each.amount) for each in unseen for effect in each.effects)
    return (
        f"The paper's result {holds}: against {_mu(BASELINE)} alone, five time constants have d > {LARGE} {counts}. "
        f"The smallest d{of_a_seed} is {d:.2f} ({drawing.between(ends)}), at s = {scale:g}."
    )


def _beyond_singles(against: dict[str, list[Comparison]]) -> str:
    """Whether the gain of five time constants could be that of a better single one."""
    everywhere = sum(all(each.better for each in one_scale) for one_scale in zip(*against.values(), strict=True))
    which = ""
    if len(against) < len(SINGLES):
        which = f"of μ = {' and '.join(single.removeprefix('single ') for single in against)} "
    text = (
        f"Five time constants are surely better than every single one {which}at {everywhere} of {len(UNSEEN)} unseen "
        "scales."
    )
    if everywhere == len(UNSEEN) and not which:
        text += " So the gain is not that of a better time constant."
    return text


def _verdict(unseen: list[Comparison], name: str) -> str:
    return f"against {name}, {surely(unseen)} unseen scales."


def _covariant(results: Results, model: str) -> str:
    matrices = [matrix_of(run) for run in results.of(model)]
    cells = len(SCALES) * len(matrices)
    name = "multi-scale network" if model == MULTI else "anchored variant"
    best, near = (sum(each.on_diagonal(each.best, within) for each in matrices) for within in (0, 1))
    chosen, near_chosen = (sum(each.on_diagonal(each.selected, within) for each in matrices) for within in (0, 1))
    return (
        f"Covariance of the {name}, over {len(SCALES)} scales × {counted(len(matrices), 'seed')}: the channel with the "
        f"smallest error is the matched one in {best} of {cells} cases, and at most one channel away in {near}; the "
        f"channel with the largest share is the matched one in {chosen}, and at most one away in {near_chosen}."
    )


def _against_best(results: Results, best: str) -> list[str]:
    heading = "## Against the best time constant alone\n"
    text = f"Of those that were trained alone, the best at the unseen scales is {_mu(best)}"
    if best == BASELINE:
        return [heading, f"{text}, as above.\n"]
    return [heading, f"{text}.\n", _versus(results, best, MULTI)]


def _versus(results: Results, reference: str, model: str) -> str:
    return drawing.versus("s", model, reference, compared(results, reference, model), TRAINED)


def _all(curves: dict[str, list[Curve]]) -> str:
    rows = []
    for model, seeds in curves.items():
        medians = [px(summaries) for summaries in zip(*(curve.summaries for curve in seeds), strict=True)]
        ratio, slope = over_seeds(curve.ratio() for curve in seeds), over_seeds(curve.slope() for curve in seeds)
        rows.append([model, *medians, ratio, slope])
    text = drawing.table(["median px at s =", *(f"{s:g}" for s in SCALES), "max/min", "px per octave"], rows)
    return text + (
        "\nMedians, their maximum over their minimum, and their slope against the distance from s = 1 are means of the "
        "seeds, with the lowest and the highest end of the seeds' 95 % intervals, over as many recordings as above; an "
        "octave is a factor of two.\n"
    )


def _curves(results: Results, out: Path, models: list[str], name: str) -> str:
    figure = drawing.new_figure(6.5, 3.6)
    ax = figure.subplots()
    drawing.draw_curves(ax, {model: results.curve(model, SWEEP) for model in models}, xlabel="time scale s")
    if name == "curves":
        top = ax.get_ylim()[1]
        for each in compared_unseen(results, BASELINE, MULTI):
            ax.text(each.amount, top * 1.03, f"{each.d[0]:.1f}", ha="center", va="bottom", fontsize=6)
        ax.set_title(f"Cohen's d of {MULTI} against {BASELINE}:", fontsize=7, loc="left", pad=16)
    ax.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing.save(figure, out, name)


def _matrices(out: Path, matrices: dict[str, list[Covariance]]) -> str:
    """Those of the first seed, drawn."""
    figure = drawing.new_figure(7.5, 1.9 * len(matrices) + 0.4)
    grid: Any = figure.subplots(len(matrices), 2, squeeze=False)
    for (left, right), (model, seeds) in zip(grid, matrices.items(), strict=True):
        drawing.draw_covariance(left, right, seeds[0], model)
        left.set_ylabel("μ, steps")
    for ax in grid[-1]:
        ax.set_xlabel("time scale s")
    return drawing.save(figure, out, "channels")


def _diagonals(results: Results, matrices: dict[str, list[Covariance]]) -> str:
    rows = []
    for model, seeds in matrices.items():
        for run, matrix in zip(results.of(model), seeds, strict=True):
            choices = {
                "should be right": matrix.matched,
                "has the smallest error": matrix.best,
                "has the largest share": matrix.selected,
            }
            for what, channels in choices.items():
                rows.append([model, str(run.seed), what, *(f"{TIME_CONSTANTS[channel]:g}" for channel in channels)])
    return drawing.table(["model", "seed", "μ that", *(f"s = {s:g}" for s in SCALES)], rows)

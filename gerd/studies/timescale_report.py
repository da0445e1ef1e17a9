"""The report of the time scale study: every sentence in it follows from the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gerd.errors import counted
from gerd.measures.measure import Curve
from gerd.studies.lab.comparison import LARGE, Comparison
from gerd.studies.lab.drawing import (
    OVER_SEEDS,
    SURELY,
    between,
    cells_of,
    chance,
    draw_curves,
    draw_matrix,
    new_figure,
    over_seeds,
    provenance,
    px,
    row_of,
    save,
    table,
    versus,
    write_csv,
)
from gerd.studies.lab.folder import Results
from gerd.studies.networks import TIME_CONSTANTS
from gerd.studies.timescale import (
    ANCHORED,
    BASELINE,
    MIDDLE,
    MULTI,
    SCALES,
    SINGLES,
    TRAINED,
    UNIFORM,
    best_single,
    compared,
    curve_of,
    curves_of,
    matrix_of,
    singles_of,
)

UNSEEN = [scale for scale in SCALES if scale != TRAINED]


TITLE = "Does a network with several time constants work at speeds it was not trained at?"


def write(results: Results, out: Path, title: str = TITLE) -> str:
    """Figures and tables into `out`; the text of the report."""
    models = list(results["runs"])
    best, singles = best_single(results), singles_of(results)
    curves = {model: curves_of(results, model) for model in models}
    rows = [
        {"model": model, "seed": seed, "scale": scale, **row_of(found)}
        for model in models
        for seed, curve in zip(results["runs"][model], curves[model], strict=True)
        for scale, found in zip(SCALES, curve.summaries, strict=True)
    ]
    write_csv(out, rows)
    cells = [
        {"model": model, "seed": seed, **cell}
        for model in _of(results, MULTI, ANCHORED)
        for seed in results["runs"][model]
        for cell in cells_of(matrix_of(results, model, seed))
    ]
    write_csv(out, cells, "channels.csv")
    return "\n".join(
        [
            f"# {title}\n",
            provenance(results),
            _setting(results),
            "## Conclusions\n",
            *(f"- {line}" for line in conclusions(results)),
            f"\n{SURELY}",
            "\n## The paper's comparison\n",
            f"The five time constants against the middle one alone (μ = {TIME_CONSTANTS[MIDDLE]:g}). {OVER_SEEDS} "
            "Differences and d are positive where five are better.\n",
            _versus(results, BASELINE, MULTI),
            _curves(results, out, _of(results, MULTI, BASELINE, best, ANCHORED, UNIFORM), "curves"),
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
            _matrices(results, out, _of(results, MULTI, ANCHORED)),
            _diagonals(results, _of(results, MULTI, ANCHORED)),
            "## Limits\n",
            "One shape, one kind of motion and one sensor; the recordings have the same length at every scale, so a "
            "slow one shows less of its path. Background noise does not scale with time. All seeds share the "
            "recordings, and an interval is over test recordings; what depends on the training shows in how far the "
            "seeds are apart.\n",
            "Every number is in the study's results.json, each summary (model, seed, scale) with the interval of its "
            "median in summary.csv.\n",
        ]
    )


def _setting(results: Results) -> str:
    size = results["settings"]
    held_out = len(results["runs"][MULTI][str(size["seed"])]["errors"][f"{TRAINED:g}"])
    seeds = counted(size["seeds"], "seed")
    return (
        f"A square of 0.1 to 0.4 of a frame of {size['side']}×{size['side']} pixels moves by ±s px per step along "
        f"each axis and changes its size by ±s/4, for 60 steps; {size['kept']:.0%} of the events are kept, and the "
        f"background noise is 0.001. Training: {size['training']} recordings at s = 1, {size['epochs']} epochs, "
        f"{seeds}; test: {held_out} others at s = 1 and {size['tests']} at "
        "each other scale. The error of a recording is the mean distance from the truth over steps 20 to 59. "
        f"{chance(results)} at s = 1.\n"
    )


def conclusions(results: Results) -> list[str]:
    """What the numbers say."""
    best, singles = best_single(results), singles_of(results)
    against = {single: _unseen(compared(results, single, MULTI)) for single in singles}
    paper = against[BASELINE]
    several = len(paper[0].effects) > 1
    mean, always = (sum(each.d[k] > LARGE for each in paper) for k in (0, 1))
    holds = "holds, in every seed" if several else "holds"
    if always < len(paper):
        average = mean == len(paper) and several
        holds = "holds on average, and not in every seed" if average else "does not hold at every scale"
    counts = f"at {mean} of {len(paper)} unseen scales"
    if several:
        counts += f" in the mean of the seeds, and at {always} in every seed"
    d, ends, scale = min((effect.d, effect.d_interval, each.amount) for each in paper for effect in each.effects)
    lines = [
        f"The paper's result {holds}: against μ = {TIME_CONSTANTS[MIDDLE]:g} alone, five time constants have d > "
        f"{LARGE} {counts}. The smallest d{' of a seed' * several} is {d:.2f} ({between(ends)}), at s = {scale:g}.",
        f"Five time constants: {_verdict(against[best], f'the best single one, μ = {best.split()[1]}')}",
    ]
    everywhere = sum(all(each.better for each in one_scale) for one_scale in zip(*against.values(), strict=True))
    lines.append(
        f"Five time constants are surely better than every single one {_these(singles)}at {everywhere} of "
        f"{len(UNSEEN)} unseen scales."
        + " So the gain is not that of a better time constant."
        * (everywhere == len(UNSEEN) and singles == [*SINGLES])
    )
    ratios = [
        f"{over_seeds(curve.ratio() for curve in curves_of(results, model))} with {name}"
        for model, name in {
            MULTI: "five time constants",
            best: f"μ = {best.split()[1]} alone",
            BASELINE: f"μ = {TIME_CONSTANTS[MIDDLE]:g} alone",
        }.items()
    ]
    lines.append(
        "From the best to the worst scale the median error grows, in the mean of the seeds (with the lowest and the "
        f"highest end of their intervals), by a factor of {', '.join(ratios[:-1])} and {ratios[-1]}."
    )
    lines += [_covariant(results, model) for model in _of(results, MULTI, ANCHORED)]
    named = {ANCHORED: "Anchored variant", UNIFORM: "Uniform weights, the negative control"}
    for model in _of(results, *named):
        for reference in dict.fromkeys((BASELINE, best)):
            found = _unseen(compared(results, reference, model))
            lines.append(f"{named[model]}: {_verdict(found, f'μ = {reference.split()[1]} alone')}")
        theirs = _unseen(compared(results, model, MULTI))
        lines.append(f"Five time constants: {_verdict(theirs, f'{model} channels')}")
    return lines


def _these(singles: list[str]) -> str:
    """Which time constants were trained alone, unless all were."""
    mus = " and ".join(f"{single.split()[1]}" for single in singles)
    return "" if len(singles) == len(SINGLES) else f"of μ = {mus} "


def _against_best(results: Results, best: str) -> list[str]:
    found = f"Of those that were trained alone, the best at the unseen scales is μ = {best.split()[1]}"
    table = [f"{found}.\n", _versus(results, best, MULTI)] if best != BASELINE else [f"{found}, as above.\n"]
    return ["## Against the best time constant alone\n", *table]


def _of(results: Results, *models: str) -> list[str]:
    """Those of the models that were trained, each once."""
    return [model for model in dict.fromkeys(models) if model in results["runs"]]


def _unseen(comparisons: list[Comparison]) -> list[Comparison]:
    return [each for each in comparisons if each.amount != TRAINED]


def _verdict(found: list[Comparison], name: str) -> str:
    better, worse = sum(each.better for each in found), sum(each.worse for each in found)
    return f"against {name}, surely better at {better} and surely worse at {worse} of {len(found)} unseen scales."


def _covariant(results: Results, model: str) -> str:
    found = [matrix_of(results, model, seed) for seed in results["runs"][model]]
    cells = len(SCALES) * len(found)
    name = "multi-scale network" if model == MULTI else "anchored variant"
    best, near = (sum(each.on_diagonal(each.best, within) for each in found) for within in (0, 1))
    chosen, near_chosen = (sum(each.on_diagonal(each.selected, within) for each in found) for within in (0, 1))
    return (
        f"Covariance of the {name}, over {len(SCALES)} scales × {counted(len(found), 'seed')}: the channel with the "
        f"smallest error is the matched one in {best} of {cells} cases, and at most one channel away in {near}; the "
        f"channel with the largest share is the matched one in {chosen}, and at most one away in {near_chosen}."
    )


def _versus(results: Results, reference: str, model: str) -> str:
    return versus("s", model, reference, compared(results, reference, model), {TRAINED: " (training)"})


def _all(curves: dict[str, list[Curve]]) -> str:
    rows = []
    for model, several in curves.items():
        medians = [px(found) for found in zip(*(curve.summaries for curve in several), strict=True)]
        ratio, slope = over_seeds(curve.ratio() for curve in several), over_seeds(curve.slope() for curve in several)
        rows.append([model, *medians, ratio, slope])
    text = table(["median px at s =", *(f"{s:g}" for s in SCALES), "max/min", "px per octave"], rows)
    return text + (
        "\nMedians, their maximum over their minimum, and their slope against the distance from s = 1 are means of the "
        "seeds, with the lowest and the highest end of the seeds' 95 % intervals, over as many recordings as above; an "
        "octave is a factor of two.\n"
    )


def _curves(results: Results, out: Path, models: list[str], name: str) -> str:
    figure = new_figure(6.5, 3.6)
    ax = figure.subplots()
    draw_curves(ax, {model: curve_of(results, model) for model in models}, label="time scale s")
    if name == "curves":
        top = ax.get_ylim()[1]
        for each in _unseen(compared(results, BASELINE, MULTI)):
            ax.text(each.amount, top * 1.03, f"{each.d[0]:.1f}", ha="center", va="bottom", fontsize=6)
        ax.set_title(f"Cohen's d of {MULTI} against {BASELINE}:", fontsize=7, loc="left", pad=16)
    ax.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save(figure, out, name)


def _matrices(results: Results, out: Path, models: list[str]) -> str:
    figure = new_figure(7.5, 1.9 * len(models) + 0.4)
    grid: Any = figure.subplots(len(models), 2, squeeze=False)
    for (left, right), model in zip(grid, models, strict=True):
        found = matrix_of(results, model, next(iter(results["runs"][model])))
        draw_matrix(left, found.medians, found, title=f"{model}: median error, px", best=found.best)
        draw_matrix(right, found.weights, found, title=f"{model}: mean share", digits=2, best=found.selected)
        left.set_ylabel("μ, steps")
    for ax in grid[-1]:
        ax.set_xlabel("time scale s")
    return save(figure, out, "channels")


def _diagonals(results: Results, models: list[str]) -> str:
    rows = []
    for model in models:
        for seed in results["runs"][model]:
            found = matrix_of(results, model, seed)
            for what, channels in (("match", found.matched), ("error", found.best), ("share", found.selected)):
                rows.append([model, seed, what, *(f"{TIME_CONSTANTS[channel]:g}" for channel in channels)])
    header = ["model", "seed", "μ that", *(f"s = {s:g}" for s in SCALES)]
    named = {"match": "should be right", "error": "has the smallest error", "share": "has the largest share"}
    return table(header, [[model, seed, named[what], *mus] for model, seed, what, *mus in rows])

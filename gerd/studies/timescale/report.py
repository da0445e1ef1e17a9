"""The report: results in, text, tables, figures and an animation out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gerd.errors import counted
from gerd.studies.demonstration.trials import SCALES, STEPS, TRAINED
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import each_seed
from gerd.studies.lab.results import Results, Sweep
from gerd.studies.models import TIME_CONSTANTS
from gerd.studies.timescale import findings, pictures
from gerd.studies.timescale.findings import IN, matrix_of, said, trained, versus
from gerd.studies.timescale.trials import (
    BASELINE,
    EQUAL,
    EVIDENCE,
    EXACT,
    INVARIANT,
    KEPT,
    SAMPLED,
    SINGLES,
    SIZES,
    SWEEPS,
    TITLE,
    named,
)


def report(results: Results, out: Path) -> str:
    _write_tables(results, out)
    shares = [kept for kept in KEPT if trained(results, kept)]
    counts = [len(results.of(model)) for model in results.models]
    seeds = ("" if min(counts) == max(counts) else f"{min(counts)} to ") + counted(max(counts), "seed")
    parts = [
        *(_bars(results) if results.settings.size.conclusive else []),
        "## At work\n",
        "The first test recording at three speeds, in own time: the latest events, the fused heat map (green), "
        "where the square is and where the invariant network says it is; below, the share of each channel. The "
        "matched one, μ nearest to 5/s, is orange.\n",
        pictures.animation(results, out),
        "## The networks\n",
        pictures.networks(results, out),
        _networks(results),
        "## Errors\n",
        *(_all(results, kept, sweep) for kept in shares for sweep in SWEEPS),
        f"Medians in pixels and their maximum over their minimum are means of the seeds ({seeds}), with the "
        "lowest and the highest end of the seeds' 95 % intervals.\n",
        *_singles(results, out),
        "## Against equal weights and against μ = 5 alone\n",
        f"{drawing.OVER_SEEDS} Differences and d are positive where the network that is named first is better.\n",
        *(part for sweep in SWEEPS for part in _against(results, sweep)),
        "## Which channel is right, and which is used\n",
        "Errors of each channel of the invariant network alone, and its mean share, of the first seed. A frame "
        "marks the matched channel; bold is the smallest error or the largest share. Every cell of every seed, with "
        "intervals, is in channels.csv.\n",
        _matrices(results, out),
        *_where(results),
        "## Limits\n",
        _limits(results),
    ]
    figure = _curves(results, out, shares) + "\nMedians and quartiles of all seeds together.\n"
    return drawing.assembled(
        results,
        TITLE,
        _setting(results),
        findings.conclusions(results),
        *parts,
        full=SIZES["full"],
        opening=findings.opening(results),
        figure=figure,
    )


def _setting(results: Results) -> str:
    size = results.settings.size
    own = results.settings.own
    levels = ", ".join(f"{level:g}" for level in own["background"][:-1]) + f" or {own['background'][-1]:g}"
    return (
        "The question is that of the paper's demonstration, which `gerd study demonstration` repeats as the paper has "
        "it. Here events are sparse, noise has three levels, and there are two ways to test. The networks: the "
        "invariant one; five time constants whose softmaxed heat maps are averaged with equal weights (1/5), or fused "
        "by evidence, their middle one learnt; and each of these five time constants alone, as it is.\n\n"
        f"A square of 0.1 to 0.4 of a frame of {size.side}×{size.side} pixels moves by ±s px per step along each "
        f"axis and changes its size by ±s/4. {' or '.join(f'{kept:.0%}' for kept in own['kept'])} of the events are "
        f"kept. Training: {size.training} recordings of {STEPS} steps at s = 1, {counted(size.seeds, 'seed')}, with "
        f"a background noise of {levels} per pixel and step: at one level, its amount in a trace would tell the time "
        f"scale. Test: {size.tests} other recordings, the same ones at every scale. *In own time* they show the same "
        f"path at every speed: {STEPS}/s steps, errors from step {size.first_step}/s on, background 0.001·s. In "
        f"recordings *of the same length*, {STEPS} steps, errors from step {size.first_step} on, background 0.001, "
        "slow ones show less of the path and have more noise for each event. The error of a recording is the mean "
        "distance from the truth at up to 40 steps, evenly spaced. *Exact timing* is the same network, trained and "
        "tested with recordings of `timing: exact`, in which events that event noise leaves out are the same at every "
        f"speed; it sees them, as all, in frames of steps. {drawing.chance(results)} at s = 1.\n"
    )


def _bars(results: Results) -> list[str]:
    words = {True: "yes", False: "**no**", None: "not tested"}
    rows = [[bar.claim, bar.in_seeds, words[bar.held]] for bar in findings.bars(results)]
    return [
        "\n## What has to hold\n",
        f"Of the invariant network, with {KEPT[0]:.0%} of the events, in every seed:\n",
        drawing.table(["claim", "in each seed", "holds"], rows),
    ]


def _networks(results: Results) -> str:
    size = results.settings.size
    return (
        "With five channels every convolution but the last is followed by a leaky integrator. In discrete time "
        "that delays by about μ − ½ steps, so that each layer is half a step wrong at other speeds. In the "
        "invariant network time enters once, as a trace of the input with gain μ(1 − e^(−1/μ)), which hardly "
        "depends on the step; behind it the convolutions see one step at a time. What channel μ sees at speed 1, "
        "channel μ/s sees at speed s. The bank is wider than the speeds tested, on both sides, and half an octave "
        "fine. Its training shows it two channels at a time: the anchor, μ = 5, has to be right (SmoothL1), and "
        "another one, at least an octave away and drawn anew for each batch, has to abstain: + 0.02·(softplus(its "
        f"evidence) + softplus(−evidence of the anchor)). AdamW, OneCycle to {size.rate:g}, batches of {size.batch}; "
        f"{size.epochs} epochs, which are {size.updates} updates, for every network. In each the invariant one "
        f"computes {2 * SAMPLED} heat maps of a recording, {SAMPLED} steps of two channels, and the five channels "
        f"compute {len(TIME_CONSTANTS) * STEPS}.\n"
    )


def _write_tables(results: Results, out: Path) -> None:
    rows, cells = [], []
    for name in results.models:
        for sweep in SWEEPS:
            rows += drawing.rows_of(results, name, sweep, "scale", test=sweep.name)
    for name in (named(model, kept) for kept in KEPT for model in trained(results, kept, (INVARIANT, EXACT))):
        for sweep in SWEEPS:
            for run in results.of(name):
                cells += drawing.cells_of(matrix_of(run, sweep), model=name, test=sweep.name, seed=run.seed)
    drawing.write_csv(out, rows)
    drawing.write_csv(out, cells, "channels.csv")


def _curves(results: Results, out: Path, shares: list[float]) -> str:
    figure = drawing.new_figure(7.5, 2.9 * len(shares))
    grid = figure.subplots(len(shares), len(SWEEPS), squeeze=False, sharey="row")
    for row, kept in zip(grid, shares, strict=True):
        for ax, sweep in zip(row, SWEEPS, strict=True):
            shown = (INVARIANT, EXACT, EQUAL, EVIDENCE, BASELINE, SINGLES[0])
            models = trained(results, kept, shown)
            curves = {model: results.curve(named(model, kept), sweep) for model in models}
            drawing.draw_curves(ax, curves, xlabel="time scale s", among=shown)
            ax.set_title(f"{kept:.0%} of the events, {IN[sweep.name].removeprefix('in recordings of ')}", fontsize=8)
    return drawing.save(figure, out, "curves")


def _all(results: Results, kept: float, sweep: Sweep) -> str:
    rows = []
    for model in trained(results, kept):
        seeds = each_seed(results.curve(named(model, kept), sweep))
        medians = [drawing.px(summaries) for summaries in zip(*(curve.summaries for curve in seeds), strict=True)]
        rows.append([model, *medians, drawing.flatness([curve.invariance() for curve in seeds])])
    header = [f"{kept:.0%}, {sweep.name}: s =", *(f"{s:g}" for s in SCALES), "max/min"]
    return drawing.table(header, rows)


def _singles(results: Results, out: Path) -> list[str]:
    singles = trained(results, KEPT[0], SINGLES)
    if len(singles) < 2:
        return []
    figure = drawing.new_figure(7.5, 2.9)
    for ax, sweep in zip(figure.subplots(1, 2, sharey=True), SWEEPS, strict=True):
        curves = {model: results.curve(named(model, KEPT[0]), sweep) for model in (INVARIANT, *singles)}
        drawing.draw_curves(ax, curves, xlabel="time scale s")
        ax.set_title(f"{sweep.name}", fontsize=8)
    return ["Each time constant alone:\n", drawing.save(figure, out, "singles")]


def _against(results: Results, sweep: Sweep) -> list[str]:
    parts = []
    known = {*trained(results, KEPT[0])}
    for model, reference in ((INVARIANT, EQUAL), (INVARIANT, BASELINE), (EQUAL, BASELINE), (SINGLES[0], EQUAL)):
        if {model, reference} <= known:
            name = f"{said(model).capitalize()} against {said(reference)}, {IN[sweep.name]}"
            table = drawing.versus("s", model, reference, versus(results, reference, model, KEPT[0], sweep), TRAINED)
            parts += [f"{name}:\n", table]
    return parts


def _matrices(results: Results, out: Path) -> str:
    """The drawing of the channels of the first seed, as Markdown."""
    run = results.of(named(INVARIANT, KEPT[0]))[0]
    figure = drawing.new_figure(7.5, 6.2)
    grid = figure.subplots(len(SWEEPS), 2, squeeze=False)
    for (left, right), sweep in zip(grid, SWEEPS, strict=True):
        drawing.draw_covariance(left, right, matrix_of(run, sweep), sweep.name, "μ, steps")
    for ax in grid[-1]:
        ax.set_xlabel("time scale s")
    return drawing.save(figure, out, "channels")


def _where(results: Results) -> list[str]:
    """Whether an error grows because another channel is used, or because the matched one sees worse."""
    rows = []
    ours = [(model, kept) for kept in KEPT for model in trained(results, kept, (INVARIANT, EXACT))]
    for model, kept in ours:
        for sweep in SWEEPS:
            runs = results.of(named(model, kept))
            matrices = [matrix_of(run, sweep) for run in runs]
            measured = {
                "the network, px": [np.median(run.test(sweep).errors, axis=1) for run in runs],
                "its matched channel alone, px": [each.of_matched(each.medians) for each in matrices],
                "share of that channel": [each.of_matched(each.weights) for each in matrices],
            }
            kind = f"{kept:.0%}, {sweep.name}{', exact timing' if model == EXACT else ''}"
            for name, seeds in measured.items():
                rows.append([f"{kind}: {name}", *(f"{value:.2f}" for value in np.mean(seeds, axis=0))])
    return [
        "Where an error grows although the matched channel has the largest share, that channel itself sees less well; "
        "where its share falls, the choice is at fault. Means of the seeds:\n",
        drawing.table(["s =", *(f"{s:g}" for s in SCALES)], rows),
    ]


def _limits(results: Results) -> str:
    exact = ""
    if trained(results, KEPT[0], (EXACT,)):
        ratio = drawing.flatness(findings.invariances(results, EXACT, KEPT[0], SWEEPS[0]))
        exact = f" With exact timing, which has neither limit, max/min in own time is {ratio}."
    return (
        "One shape, one kind of motion and one sensor. With `timing: step` a scene that is four times as fast moves "
        "by four pixels within a step, of which nothing tells the order, and a pixel gives at most one event per "
        "step, so that the second of two comes a step late: that, and not the network, is why the error grows "
        f"towards s = 4 in own time.{exact} In recordings of the same length the trace with μ = 20 has not filled at "
        "s = 0.25. All seeds share the recordings, and an interval is over test recordings; what depends on the "
        "training shows in how far the seeds are apart.\n\nEvery number is in the study's results.json, each "
        "summary with the interval of its median in summary.csv.\n"
    )

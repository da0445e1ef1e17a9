"""The two halves of the paper's figure, drawn from the results: the architecture (a) and the performance (b)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gerd.pictures.colours import SERIES
from gerd.studies.demonstration.findings import versus
from gerd.studies.demonstration.trials import (
    BASELINE,
    MODELS,
    SCALES,
    SHORTEST,
    SPEEDS,
    TRAINED,
    WEIGHTED,
    choices_of,
    titled,
)
from gerd.studies.lab.comparison import LARGE
from gerd.studies.lab.drawing import new_figure, save
from gerd.studies.lab.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IN_FRONT = (WEIGHTED, BASELINE, SHORTEST)  # with their SD; the other networks are thin lines
EVENTS, CHANNEL, SUM = "#f6d9c3", "#cfe3f2", "#d5ead9"  # colours of what all channels see, have alone, and say together


def performance(results: Results, out: Path) -> str:
    """Errors of all networks against the time scale, and below them how large the effects are, in each seed."""
    from matplotlib.ticker import LogLocator

    figure = new_figure(7.5, 5.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.6])
    places = range(len(SCALES))
    for number, model in enumerate(MODELS):
        if model in results.models:
            _errors(above, results, model, number)
    _chance(above, results)
    _effects(below, results, WEIGHTED, BASELINE, -0.12)
    _effects(below, results, SHORTEST, WEIGHTED, 0.12)
    below.axhline(LARGE, color="0.3", linewidth=0.8, linestyle="--", label=f"d = {LARGE}, a large effect")
    below.axhline(0, color="0.3", linewidth=0.6)
    for ax in (above, below):
        ax.axvline(SCALES.index(TRAINED), color="0.3", linewidth=0.8, linestyle=":")
    above.set_yscale("log")
    above.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    above.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    above.yaxis.set_minor_formatter("")
    above.set(ylabel="error in px: mean, SD over recordings")
    above.legend(fontsize=6, frameon=False, ncols=2)
    below.set_yscale("symlog", linthresh=2)
    below.margins(y=0.3)  # for the numbers at the points
    limits = below.get_ylim()
    ticks = [-20, -10, -5, -2, 0, LARGE, 2, 5, 10, 20]
    below.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    below.set_ylim(limits)
    below.set_xticks(places, [f"{scale:g}" for scale in SCALES])
    below.set(xlabel="s, the speed as a multiple of that in the training", ylabel="Cohen's d")
    below.legend(fontsize=6, frameon=False, loc="best")
    return save(figure, out, "performance")


def _errors(ax: Axes, results: Results, model: str, number: int) -> None:
    curve = results.curve(model, SPEEDS)
    means = np.array([each.mean() for each in curve.errors])
    places = np.arange(len(means))
    colour = SERIES[number % len(SERIES)]
    in_front = model in IN_FRONT
    style = {"marker": "o", "markersize": 3.0} if in_front else {"linewidth": 0.8, "linestyle": "-."}
    ax.plot(places, means, color=colour, label=titled(results, model), **style)  # type: ignore[arg-type]
    if in_front:
        sds = np.array([np.mean([seed.std(ddof=1) for seed in each]) for each in curve.errors])
        ax.fill_between(places, np.maximum(means - sds, means / 4), means + sds, color=colour, alpha=0.15, linewidth=0)


def _chance(ax: Axes, results: Results) -> None:
    """Draw what is chance for the recordings of the errors, so that it depends on the scale."""
    means = [each.mean() for each in results.curve(results.models[0], SPEEDS).chance]
    ax.plot(range(len(means)), means, color="0.5", linewidth=0.8, linestyle="--", label="chance")


def _effects(ax: Axes, results: Results, model: str, reference: str, aside: float) -> None:
    """A point for each seed, and the mean of the seeds as a number."""
    if not {model, reference} <= {*results.models}:
        return
    colour = SERIES[MODELS.index(model) % len(SERIES)]
    label = f"{titled(results, model)}, against {titled(results, reference)}"
    for place, each in enumerate(versus(results, reference, model)):
        d = [effect.d for effect in each.effects]
        ax.plot([place + aside] * len(d), d, ".", color=colour, markersize=4, label=label if place == 0 else None)
        above = aside < 0
        ax.annotate(
            f"{np.mean(d):.1f}",
            (place + aside, max(d) if above else min(d)),
            (0, 4 if above else -4),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=6,
            color=colour,
        )


def architecture(results: Results, out: Path) -> str:
    """From events to a place: a lane for each channel, and the weights that the sum has learnt."""
    layers = results.settings.size.layers
    mus = choices_of(results).mus
    runs = results.of(WEIGHTED) if WEIGHTED in results.models else []
    shares = np.mean([run.shares for run in runs], axis=0) if runs else None
    figure = new_figure(7.5, 3.2)
    ax = figure.subplots()
    middle = (len(mus) - 1) / 2
    _box(ax, 0, middle, "events\n2 polarities", EVENTS, height=1.3)
    columns = [f"{k}×{k}, {width}" for k, width in zip(layers.kernels, layers.widths[1:], strict=True)]
    last = 1.6 + 1.35 * len(columns)
    for lane, mu in enumerate(reversed(mus)):
        _arrow(ax, (0.55, middle), (1.05, lane))
        for number, words in enumerate(columns):
            integrates = number < len(columns) - 1
            lines = f"conv {words}\nLI, μ = {mu:g}" if integrates else f"conv {words}\nsoftmax"
            _box(ax, 1.6 + 1.35 * number, lane, lines, CHANNEL)
            if number:
                _arrow(ax, (1.6 + 1.35 * number - 0.8, lane), (1.6 + 1.35 * number - 0.55, lane))
        weight = "" if shares is None else f"{shares[len(mus) - 1 - lane]:.2f}"
        _arrow(ax, (last - 0.8, lane), (last + 0.05, middle))
        ax.text(last - 0.74, lane + (0.2 if lane >= middle else -0.2), weight, fontsize=6, va="center")
    _box(ax, last + 0.6, middle, "weighted\nsum", SUM, height=1.3)
    _box(ax, last + 1.95, middle, "centre of\nmass: x, y", SUM, height=1.3)
    _arrow(ax, (last + 1.15, middle), (last + 1.4, middle))
    ax.set(xlim=(-0.7, last + 2.6), ylim=(-0.7, len(mus) - 0.3))
    ax.set_axis_off()
    return save(figure, out, "architecture")


def _box(ax: Axes, x: float, y: float, words: str, colour: str, height: float = 0.72) -> None:
    """A box around a place, with words in it."""
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0.01,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x - 0.55, y - height / 2), 1.1, height, style, fc=colour, ec="0.35", lw=0.8))
    ax.text(x, y, words, ha="center", va="center", fontsize=5.4)


def _arrow(ax: Axes, begin: Sequence[float], end: Sequence[float]) -> None:
    style = {"arrowstyle": "-|>", "lw": 0.7, "color": "0.3", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (end[0], end[1]), (begin[0], begin[1]), arrowprops=style)

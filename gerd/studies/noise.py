"""How far does a network work beyond the noise it was trained with?

One network is trained without noise and one with all three, on the same recordings. Both are tested at several levels
of each noise by itself: events in the background, pixels that are missing from the shape, events that are dropped. And
with all three at once, at several multiples of their levels in the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.sweep import with_values
from gerd.measures.curves import Array, Curve
from gerd.measures.statistics import bootstrap
from gerd.scene.transformation import Transformation, background, density, shape_noise
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import Comparison, at_chance, compared, surely
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, place_loss, square
from gerd.studies.models import ScaleChannels

TITLE = "How far does a network work beyond the noise it was trained with?"
CLEAN, NOISY = "trained without noise", "trained with noise"
LEVELS = {"background": 0.01, "shape": 0.1, "event": 0.5}  # in the noisy training


def mixed(multiple: float) -> Transformation:
    """All three noises, at a multiple of their levels in the noisy training."""
    background, shape, event = (multiple * LEVELS[name] for name in ("background", "shape", "event"))
    amounts = (("background", background), ("shape_noise", shape), ("event_noise", event))
    return Transformation("mixed", multiple, amounts=amounts)


SWEEPS = (  # each from a scene without noise; `trained` is the level in the noisy training
    Sweep("background", (0.0, 0.001, 0.003, 0.01, 0.03, 0.1), background, LEVELS["background"]),
    Sweep("shape", (0.0, 0.03, 0.1, 0.2, 0.4), shape_noise, LEVELS["shape"]),
    Sweep("event", (0.0, 0.25, 0.5, 0.75, 0.9, 0.97), lambda dropped: density(1 - dropped), LEVELS["event"]),
    Sweep("mixed", (0.0, 0.25, 0.5, 1.0, 1.5), mixed, 1.0),
)
MU = 2.5  # steps
SIZES = {
    "full": Size(side=128, training=1400, tests=400, epochs=8, batch=16, seeds=3, layers=FULL),
    "quick": Size(side=64, training=240, tests=60, epochs=12, batch=8, seeds=1, layers=SMALL),
    "smoke": Size(side=32, training=16, tests=6, epochs=2, batch=8, seeds=1, layers=TINY, conclusive=False),
}
TAKES = {"full": "3 minutes on an NVIDIA H200", "quick": "5 minutes on two CPU cores", "smoke": "half a minute"}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: a square that moves, turns and changes its size, without noise."""
    limits = [0.1 * side, 0.4 * side]
    return square(
        side,
        seed,
        60,
        {},
        translation={"start": "uniform", "velocity": {"uniform": [-1, 1]}},
        scale={"start": {"uniform": limits}, "velocity": {"uniform": [-0.25, 0.25]}, "limits": limits},
        rotation={"start": "uniform", "velocity": {"uniform": [-2, 2]}},
    )


def compute(out: Path | str, order: Order) -> Results:
    clean = stimuli(order.size.side, order.seed)
    noisy = with_values(clean, {f"noise.{name}": level for name, level in LEVELS.items()})
    networks = {
        model: Network(lambda seed: ScaleChannels([MU], layers=order.size.layers, seed=seed), place_loss, [config])
        for model, config in ((CLEAN, clean), (NOISY, noisy))
    }
    folder = StudyFolder(out, "noise", order, clean, levels=LEVELS)
    experiment = Experiment(folder, clean, SWEEPS)
    return folder.finish(experiment.chance(), experiment.runs(networks))


def curve_of(results: Results, model: str, sweep: Sweep) -> Curve:
    return results.curve(model, sweep if model == NOISY else replace(sweep, trained=0.0))


def comparisons(results: Results, sweep: Sweep) -> list[Comparison]:
    """How much smaller the errors are after a training with noise, at each level."""
    return compared(curve_of(results, CLEAN, sweep), curve_of(results, NOISY, sweep))


def doubled(curve: Curve) -> float | None:
    """The lowest level from which on the median error is surely, and in every seed, more than twice that at level 0."""

    def growth(noisy: Array, clean: Array, rows: NDArray[np.int64]) -> Array:
        return np.median(noisy[rows], axis=-1) / np.median(clean[rows], axis=-1)

    lowest = None
    for level, several in zip(curve.amounts[:0:-1], curve.errors[:0:-1], strict=True):
        for noisy, clean in zip(several, curve.errors[0], strict=True):
            if bootstrap(partial(growth, noisy, clean), len(noisy))[0] <= 2:
                return lowest
        lowest = level
    return lowest


def opening(results: Results) -> list[str]:
    """Three sentences: what noise does to a clean network, and what a training with noise is worth, mixed and not."""
    *single, mixture = SWEEPS
    both = comparisons(results, mixture)
    alone = [each for sweep in single for each in comparisons(results, sweep)]
    return [
        _what_noise_does(results, single),
        "Trained with all three noises and tested with all three, a network is "
        f"{surely([each for each in both if each.amount > 0])} multiples of the levels of its training.",
        f"Tested with one noise at a time, it is {surely([each for each in alone if each.amount > 0])} levels above 0.",
    ]


def _what_noise_does(results: Results, single: Sequence[Sweep]) -> str:
    curves = {sweep.name: curve_of(results, CLEAN, sweep) for sweep in single}
    if any(0.0 in at_chance(curve) for curve in curves.values()):
        return "Trained without noise, the network is at chance even without noise: nothing follows about noise."
    levels = {name: doubled(curve) for name, curve in curves.items()}
    said = [f"no level of {name} noise" if at is None else f"{name} noise {at:g}" for name, at in levels.items()]
    return (
        "The median error of a network that was trained without noise is surely more than doubled from "
        f"{', '.join(said[:-1])} and {said[-1]} on."
    )


def conclusions(results: Results) -> list[str]:
    lines = []
    for sweep in SWEEPS:
        clean = curve_of(results, CLEAN, sweep)
        level = doubled(clean)
        at = "not at the highest level tested" if level is None else f"from a level of {level:g} on"
        above = [each for each in comparisons(results, sweep) if each.amount > 0]
        grown = f"the median error is surely more than twice that without noise {at}"
        if 0.0 in at_chance(clean):
            grown = "the network is at chance even without noise, so that nothing can be said of what noise does to it"
        lines.append(
            f"{sweep.name.capitalize()} noise: trained without noise, {grown}. The training with noise is "
            f"{surely(above)} levels above 0."
        )
    return lines


def report(results: Results, out: Path) -> str:
    figure = drawing.new_figure(7.5, 5.4)
    rows, tables = [], []
    for ax, sweep in zip(figure.subplots(2, 2, sharey=True).flat, SWEEPS, strict=True):
        curves = {model: curve_of(results, model, sweep) for model in (CLEAN, NOISY)}
        for model in curves:
            rows += drawing.rows_of(results, model, sweep, "level", noise=sweep.name)
        drawing.draw_curves(ax, curves, xlabel=f"{sweep.name} noise", even=True)
        tables.append(drawing.versus(f"{sweep.name} noise", NOISY, CLEAN, comparisons(results, sweep)))
    drawing.write_csv(out, rows)
    size = results.settings.size
    levels = results.settings.own["levels"]
    setting = (
        f"A network with one time constant (μ = {MU}) finds a square that moves, turns and changes its size. "
        f"{CLEAN.capitalize()}, and {NOISY} ({', '.join(f'{noise} {level:g}' for noise, level in levels.items())}), on "
        f"{size.training} recordings; tested on {size.tests} others with one noise at a time, each a probability, and "
        "with all three (*mixed*) at multiples of these levels.\n"
    )
    shown = drawing.save(figure, out, "noise")
    parts = [
        "\n## Errors\n",
        f"{drawing.OVER_SEEDS} Differences and d are positive where the training with noise is better. Each seed "
        f"by itself is in summary.csv. Chance: {drawing.chance(results).lower()}.\n",
        *tables,
        "## Limits\n",
        "The noises are those of the simulator, independent from pixel to pixel and step to step; a camera's are "
        "not.\n",
    ]
    return drawing.assembled(
        results,
        TITLE,
        setting,
        conclusions(results),
        *parts,
        full=SIZES["full"],
        opening=opening(results),
        figure=shown,
    )


if __name__ == "__main__":
    raise SystemExit("error: this module is no program; the command is: gerd study noise")

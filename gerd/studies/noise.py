"""How far does a network work beyond the noise it was trained with?

One network is trained without noise and one with all three, on the same recordings. Both are tested at several levels
of each noise by itself: events in the background, pixels that are missing from the shape, events that are dropped. And
with all three at once, at several multiples of their levels in the training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gerd.studies.lab.folder as store
from gerd.config.config import Config
from gerd.config.load import parse
from gerd.config.sweep import with_values
from gerd.measures.measure import Curve, bootstrap, chance_error, summary
from gerd.measures.transformation import Transformation, background, density, shape_noise
from gerd.studies.lab.comparison import Comparison, compared
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, errors, place_loss, recordings, rounded, train
from gerd.studies.networks import ScaleChannels

CLEAN, NOISY = "trained without noise", "trained with noise"
LEVELS = {"background": 0.01, "shape": 0.1, "event": 0.5}  # in the noisy training


def mixed(multiple: float) -> Transformation:
    """All three noises, at a multiple of their levels in the noisy training."""
    background, shape, event = (multiple * LEVELS[name] for name in ("background", "shape", "event"))
    return Transformation("mixed", multiple, background=background, shape_noise=shape, event_noise=event)


SWEEPS: dict[str, tuple[Callable[[float], Transformation], tuple[float, ...], float]] = {
    # name: what it does to a scene without noise, at which levels, and which of them is in the noisy training
    "background": (background, (0.0, 0.001, 0.003, 0.01, 0.03, 0.1), LEVELS["background"]),
    "shape": (shape_noise, (0.0, 0.03, 0.1, 0.2, 0.4), LEVELS["shape"]),
    "event": (lambda dropped: density(1 - dropped), (0.0, 0.25, 0.5, 0.75, 0.9, 0.97), LEVELS["event"]),
    "mixed": (mixed, (0.0, 0.25, 0.5, 1.0, 1.5), 1.0),
}
MU = 2.5
SIZES = {
    "full": Size(side=128, training=1400, tests=400, epochs=8, batch=16, seeds=3, layers=FULL),
    "quick": Size(side=64, training=240, tests=60, epochs=12, batch=8, seeds=1, layers=SMALL),
    "smoke": Size(side=32, training=16, tests=6, epochs=2, batch=8, seeds=1, layers=TINY),
}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: a square that moves, turns and changes its size, without noise."""
    return parse(
        f"""
        seed: {seed}
        sensor: {{width: {side}, height: {side}}}
        steps: 60
        actors:
          - shape: square
            translation: {{start: uniform, velocity: {{uniform: [-1, 1]}}, acceleration: 0, border: bounce}}
            scale:
              start: {{uniform: [{0.1 * side}, {0.4 * side}]}}
              velocity: {{uniform: [-0.25, 0.25]}}
              acceleration: 0
              limits: [{0.1 * side}, {0.4 * side}]
            rotation: {{start: uniform, velocity: {{uniform: [-2, 2]}}, acceleration: 0}}
        """
    )


def compute(out: Path | str, order: Order) -> store.Results:
    """Train and test what is not yet in `out`; the results, which are also in its results.json."""
    size, clean = order.size, stimuli(order.size.side, order.seed)
    folder = store.Folder(out, "noise", order, clean)
    noisy = with_values(clean, {f"noise.{name}": level for name, level in LEVELS.items()})
    found: dict[str, dict[str, Any]] = {CLEAN: {}, NOISY: {}}
    for model, config in ((CLEAN, clean), (NOISY, noisy)):
        seeds = range(order.seed, order.seed + size.seeds)
        names = {seed: f"{model.replace(' ', '-')}-{seed}" for seed in seeds}
        todo = [seed for seed in seeds if folder.found(names[seed]) is None]
        data = recordings(config, 0, size.training, order.device) if todo else None
        for seed in seeds:
            result = folder.found(names[seed])
            if result is None and data is not None:
                network = ScaleChannels([MU], layers=size.layers, seed=seed)
                state, title = folder.state(names[seed]), f"{model}, seed {seed}"
                result = train(network, data, place_loss(order.recipe), order, seed, state, title)
                result |= {"errors": _tested(network, clean, order)}
                folder.keep(names[seed], result)
            found[model][str(seed)] = result
    chance = chance_error(clean, size.training, size.tests, size.first_step)
    seconds = sum(run["seconds"] for runs in found.values() for run in runs.values())
    return folder.finish({"chance": asdict(chance), "levels": LEVELS, "runs": found}, seconds)


def _tested(network: ScaleChannels, config: Config, order: Order) -> dict[str, Any]:
    size = order.size
    return {
        noise: {
            f"{level:g}": rounded(
                errors(
                    network, recordings(config, size.training, size.tests, order.device, g(level)), size.first_step
                ).fused
            )
            for level in levels
        }
        for noise, (g, levels, _) in SWEEPS.items()
    }


def curve_of(results: store.Results, model: str, noise: str) -> Curve:
    """All seeds together."""
    _, levels, trained = SWEEPS[noise]
    runs = results["runs"][model].values()
    pooled = [np.array([run["errors"][noise][f"{level:g}"] for run in runs]) for level in levels]
    return Curve(levels, tuple(pooled), trained if model == NOISY else 0.0, store.chance_of(results))


def comparisons(results: store.Results, noise: str) -> list[Comparison]:
    """How much smaller the errors are after a training with noise, at each level."""
    return compared(curve_of(results, CLEAN, noise), curve_of(results, NOISY, noise))


def doubled(curve: Curve) -> float | None:
    """The lowest level from which on the median error is surely, and in every seed, more than twice that at level 0."""
    found = None
    for level, several in zip(curve.amounts[:0:-1], curve.errors[:0:-1], strict=True):
        for pair in zip(several, curve.errors[0], strict=True):
            if bootstrap(partial(_growth, np.stack(pair)), several.shape[1])[0] <= 2:
                return found
        found = level
    return found


def _growth(pair: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    noisy, clean = np.median(pair[:, rows], axis=-1)
    growth: NDArray[np.float64] = noisy / clean
    return growth


def conclusions(results: store.Results) -> list[str]:
    """What the numbers say."""
    lines = []
    for noise in SWEEPS:
        level = doubled(curve_of(results, CLEAN, noise))
        at = "not at the highest level tested" if level is None else f"from a level of {level:g} on"
        above = [each for each in comparisons(results, noise) if each.amount > 0]
        better, worse = sum(each.better for each in above), sum(each.worse for each in above)
        lines.append(
            f"{noise.capitalize()} noise: trained without noise, the median error is surely more than twice that "
            f"without noise {at}. The training with noise is surely better at {better} and surely worse at {worse} of "
            f"{len(above)} levels above 0."
        )
    return lines


def report(results: store.Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    from gerd.studies.lab import drawing

    rows = [
        {"noise": noise, "model": model, "seed": seed, "level": level, **drawing.row_of(summary(found))}
        for noise, (_, levels, _) in SWEEPS.items()
        for model, runs in results["runs"].items()
        for seed, run in runs.items()
        for level, found in zip(levels, run["errors"][noise].values(), strict=True)
    ]
    drawing.write_csv(out, rows)
    figure = drawing.new_figure(7.5, 5.4)
    tables = []
    for ax, noise in zip(figure.subplots(2, 2, sharey=True).flat, SWEEPS, strict=True):
        curves = {model: curve_of(results, model, noise) for model in (CLEAN, NOISY)}
        drawing.draw_curves(ax, curves, label=f"{noise} noise", even=True)
        tables.append(drawing.versus(f"{noise} noise", NOISY, CLEAN, comparisons(results, noise)))
    levels_of = ", ".join(f"{noise} {level:g}" for noise, level in results["levels"].items())
    return "\n".join(
        [
            "# How far does a network work beyond the noise it was trained with?\n",
            drawing.provenance(results),
            f"A network with one time constant (μ = {MU}) finds a square that moves, turns and changes its size. "
            f"{CLEAN.capitalize()}, and {NOISY} ({levels_of}), on {results['settings']['training']} recordings; "
            f"tested on {results['settings']['tests']} others with one noise at a time, each a probability, and with "
            "all three (*mixed*) at multiples of these levels.\n",
            "## Conclusions\n",
            *(f"- {line}" for line in conclusions(results)),
            f"\n{drawing.SURELY}",
            "\n## Errors\n",
            drawing.save(figure, out, "noise"),
            f"{drawing.OVER_SEEDS} Differences and d are positive where the training with noise is better. Each seed "
            f"by itself is in summary.csv. Chance: {drawing.chance(results).lower()}.\n",
            *tables,
            "## Limits\n",
            "The noises are those of the simulator, independent from pixel to pixel and step to step; a camera's are "
            "not.\n",
        ]
    )


if __name__ == "__main__":
    store.bare_command(compute, SIZES, "noise")

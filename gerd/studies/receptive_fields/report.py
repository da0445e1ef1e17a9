"""The report: results in, figures, tables and sentences out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gerd.measures.statistics import summary
from gerd.pictures.colours import SERIES
from gerd.studies.lab import drawing
from gerd.studies.lab.results import Results
from gerd.studies.receptive_fields.findings import (
    FIELDS,
    OVER,
    PUBLISHED,
    OverSeeds,
    conclusions,
    error_of,
    gains,
    guess_of,
    has,
    opening,
)
from gerd.studies.receptive_fields.networks import KINDS, OCTAVES, SIGMAS, STARTS
from gerd.studies.receptive_fields.stimuli import (
    BACKGROUND,
    FIRST_STEP,
    SCALINGS,
    SHAPES,
    SPATIAL,
    SPEED,
    STEPS,
    TEMPORAL,
    Scaling,
)
from gerd.studies.receptive_fields.trials import SIZES, guess_at, named

TITLE = "Do networks with receptive fields in space and time find shapes better, over sizes and over speeds?"
PUBLISHED_SIDE = 300  # pixels of the published frame
PAPER = (
    "J. E. Pedersen, J. Conradt, T. Lindeberg, *Covariant spatio-temporal receptive fields for spiking neural "
    "networks*, Nature Communications 16:8231, 2025"
)


def shown(results: Results) -> list[Scaling]:
    """The scalings of which there is any network."""
    return [each for each in SCALINGS if any(model.endswith(f", {each.name}") for model in results.models)]


def report(results: Results, out: Path) -> str:
    _write_table(results, out)
    parts = [
        "\n## Published and ours\n",
        _beside(results),
        "\n## At each size and speed\n",
        *(_at_each(results, scaling) for scaling in shown(results)),
        "\n## During training\n",
        "The error in validation after each epoch, the mean of the seeds.\n",
        _training(results, out),
        "\n## What the study says, and what we took\n",
        _taken(results),
        "\n## Likely reasons, and limits\n",
        _limits(results),
    ]
    return drawing.assembled(
        results,
        TITLE,
        _setting(results) + "\n",
        conclusions(results),
        *parts,
        full=SIZES["full"],
        opening=opening(results) if results.settings.size.seeds > 1 else [],
        figure=_curves(results, out),
    )


def _setting(results: Results) -> str:
    size = results.settings.size
    return (
        f"This repeats, smaller, an experiment of {PAPER}. Four networks find a circle, a square and a triangle in the "
        "same frame: convolutions with rectifiers on one frame (ReLU-1) and on eight (ReLU-8), leaky integrators "
        "(LI), and leaky integrate-and-fire neurons with surrogate gradients (LIF). Each begins with receptive "
        "fields (Gaussian derivatives in space, time constants in octaves) or with uniform numbers of the same "
        f"variance. They are trained on all amounts together, every one with {size.updates} updates of {size.batch} "
        f"recordings, and count with the weights that are best in validation. Numbers are mean errors in pixels "
        f"in a frame of {size.side}×{size.side}, with 95 % "
        f"intervals over {size.seeds} seeds by Student's t; *clearly* means that the interval of the difference, "
        "seed by seed, leaves out 0. Several comparisons are not corrected for."
    )


def _beside(results: Results) -> str:
    rows = []
    for scaling in shown(results):
        found = dict(gains(results, scaling)) if all(has(results, k, s, scaling) for k in KINDS for s in STARTS) else {}
        guess = guess_of(results, scaling)
        for kind in KINDS:
            published = PUBLISHED[scaling.name, kind]
            ours = [
                error_of(results, kind, start, scaling) if has(results, kind, start, scaling) else None
                for start in STARTS
            ]
            share = "–" if ours[0] is None else f"{ours[0].mean / guess:.0%}"
            numbers = [f"{each:g}" for each in published] + [_or_dash(each) for each in ours]
            rows.append([scaling.name, kind, *numbers, _or_dash(found.get(kind)), share])
    header = [
        "scaling",
        "network",
        "published, receptive fields",
        "published, uniform",
        "ours, receptive fields",
        "ours, uniform",
        "uniform − receptive fields",
        "share of a guess",
    ]
    guesses = " and ".join(f"{guess_of(results, each):.1f} px {OVER[each.name]}" for each in shown(results))
    text = (
        f"Published errors are in pixels of a frame of {PUBLISHED_SIDE}×{PUBLISHED_SIDE}, read from the figure, and "
        "without intervals. A "
        f"guess, always the mean place, has {guesses} in our frame; the last column is the error with receptive "
        "fields as a share of it.\n"
    )
    return text + "\n" + drawing.table(header, rows)


def _or_dash(number: OverSeeds | None) -> str:
    return "–" if number is None else str(number)


def _at_each(results: Results, scaling: Scaling) -> str:
    rows = []
    for kind in KINDS:
        for start in STARTS:
            if has(results, kind, start, scaling):
                runs = results.of(named(kind, start, scaling))
                cells = [
                    str(OverSeeds(tuple(float(np.mean(run.tests[0].errors[place])) for run in runs)))
                    for place in range(len(scaling.amounts))
                ]
                rows.append([kind, start, *cells])
    guess = results.of(guess_at(scaling))[0].tests[0]
    rows.append(["a guess", "", *(f"{np.mean(errors):.2f}" for errors in guess.errors)])
    return drawing.table(["network", "initialisation", *(f"{scaling.unit} {a:g}" for a in scaling.amounts)], rows)


def _curves(results: Results, out: Path) -> str:
    scalings = shown(results)
    figure = drawing.new_figure(7.5, 3.2)
    axes = figure.subplots(1, len(scalings), squeeze=False, sharey=True)[0]
    for ax, scaling in zip(axes, scalings, strict=True):
        for number, kind in enumerate(KINDS):
            for start in STARTS:
                if not has(results, kind, start, scaling):
                    continue
                runs = results.of(named(kind, start, scaling))
                each = np.array([[np.mean(errors) for errors in run.tests[0].errors] for run in runs])
                solid = start == FIELDS
                ax.plot(
                    scaling.amounts,
                    each.mean(0),
                    color=SERIES[number],
                    linestyle="-" if solid else "--",
                    marker="o",
                    markersize=3,
                    label=kind if solid else None,
                )
                if solid:
                    ax.fill_between(
                        scaling.amounts, each.min(0), each.max(0), color=SERIES[number], alpha=0.15, linewidth=0
                    )
        guess = [np.mean(errors) for errors in results.of(guess_at(scaling))[0].tests[0].errors]
        ax.plot(scaling.amounts, guess, color="0.5", linewidth=0.8, linestyle=":", label="a guess")
        ax.set(xscale="log", yscale="log", xlabel=scaling.unit, title=f"{scaling.name} scaling")
        ax.minorticks_off()
        ax.set_xticks(scaling.amounts, [f"{amount:g}" for amount in scaling.amounts])
        ax.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    axes[0].set_ylabel("mean error, px")
    axes[0].legend(fontsize=6, frameon=False)
    caption = "Receptive fields: solid, with the range of the seeds; uniform: dashed.\n"
    return drawing.save(figure, out, "errors") + "\n" + caption


def _training(results: Results, out: Path) -> str:
    scalings = shown(results)
    figure = drawing.new_figure(7.5, 2.9)
    axes = figure.subplots(1, len(scalings), squeeze=False, sharey=True)[0]
    for ax, scaling in zip(axes, scalings, strict=True):
        for number, kind in enumerate(KINDS):
            for start in STARTS:
                if has(results, kind, start, scaling):
                    validated = np.mean([run.losses for run in results.of(named(kind, start, scaling))], axis=0)
                    epochs = range(1, len(validated) + 1)
                    solid = start == FIELDS
                    style = {"color": SERIES[number], "linestyle": "-" if solid else "--"}
                    ax.plot(epochs, validated, label=kind if solid else None, **style)
        ax.set(yscale="log", xlabel="epoch", title=f"{scaling.name} scaling")
        ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
        ax.minorticks_off()
    axes[0].set_ylabel("error in validation, px")
    axes[0].legend(fontsize=6, frameon=False)
    return drawing.save(figure, out, "training")


def _taken(results: Results) -> str:
    size = results.settings.size
    each = size.training // len(SPATIAL.amounts)
    pools, kernels = ("×".join(map(str, values)) for values in (size.layers.pools, size.layers.kernels))
    rows = [
        ["frame", f"{PUBLISHED_SIDE}×{PUBLISHED_SIDE}", f"{size.side}×{size.side}"],
        ["shapes", "circle, square, triangle; their events are added up", "the same"],
        [
            "spatial scaling",
            "sizes 10, 20, 40, 80 px, moving by 0.2 px per step",
            f"the same; speed {SPEED:g} along each axis",
        ],
        [
            "temporal scaling",
            "0.16, 0.32, 0.64, 1.28 px per step; the published script switches scaling on, and translation not",
            f"translation by ±{TEMPORAL.amounts[0]:g} … ±{TEMPORAL.amounts[-1]:g} along each axis; sizes 10 to 80 px",
        ],
        [
            "steps",
            "40 that count, after 40 to fill the integrators",
            f"{STEPS - FIRST_STEP} that count, after {FIRST_STEP}",
        ],
        ["background noise", "0.001 per pixel, step and shape", f"{BACKGROUND:g} likewise"],
        [
            "recordings",
            "500 (sizes) or 2 000 (speeds) for each amount, a fifth of them for validation, which is the test",
            f"{each} for each amount in training; {size.tests} others in validation; {size.tests} others in the test",
        ],
        [
            "receptive fields",
            "192: four scales, four angles, three ratios, derivatives of up to first order along each axis",
            f"Gaussians of σ = {', '.join(f'{sigma:g}' for sigma in SIGMAS)} px of the layer's grid, derivatives "
            "up to second order, each of norm 1; an output has the same field for all inputs, times random numbers",
        ],
        ["uniform", "PyTorch's default", "uniform with the same variance as the receptive fields"],
        [
            "time constants",
            "5.5, 11, 22 and 44 steps; uniform: rates drawn between those",
            f"{', '.join(f'{mu:g}' for mu in OCTAVES)} steps; uniform likewise; learnt",
        ],
        [
            "layers",
            "three convolutions of 9, 7, 5 px, each behind a pooling by two; a last pooling; a transposed convolution",
            f"convolutions of {kernels} px behind poolings by {pools}, {size.layers.widths[1]} features; no last "
            "pooling; a convolution of 5 px",
        ],
        [
            "place",
            "softmax, centre of mass, for LI and LIF through a leaky integrator that forgets 90 % in a step",
            "softmax, centre of mass",
        ],
        ["regularisers", "Jensen–Shannon with weight 10⁻⁸, mean activity, dropout 0.05", "none"],
        [
            "training",
            "50 epochs of batches of 4 to 12; Adam at 0.005",
            f"{size.epochs} epochs of batches of {size.batch} for all; AdamW, OneCycle to {size.rate:g}",
        ],
    ]
    return drawing.table(["", "the study and its code", "this one"], rows)


def _limits(results: Results) -> str:
    side = results.settings.size.side
    noise, theirs = (round(len(SHAPES) * BACKGROUND * pixels**2) for pixels in (side, PUBLISHED_SIDE))
    edge = 40  # px
    return (
        "Two likely reasons for differences from the published order, neither of which was tested by itself. A frame, "
        "or eight, "
        f"says more here than in the published data: in each step there are about {noise} events of the background, "
        f"and {theirs} in the published frame, while a square of {edge} px that moves by {SPEED:g} px along both axes "
        f"sweeps {4 * edge * SPEED:g} pixels in either. And uniform numbers have the variance of the receptive fields "
        "here, which is six times that of PyTorch's default, so that a network that begins with them has less to catch "
        "up.\n\nTrainings are a fraction of the published ones, at one rate of learning for all networks. The frame is "
        "smaller, so that a shape of 80 px has little room: numbers in pixels cannot be compared with the "
        "published ones, only their order. All seeds share the recordings.\n\n"
        "Every number is in the study's results.json, each summary in summary.csv.\n"
    )


def _write_table(results: Results, out: Path) -> None:
    rows = [
        {"model": run.model, "seed": run.seed, "amount": amount, **drawing.row_of(summary(errors))}
        for run in results.runs
        for amount, errors in zip(run.tests[0].amounts, run.tests[0].errors, strict=True)
    ]
    drawing.write_csv(out, rows)

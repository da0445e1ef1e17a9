"""The report: results in, text, tables and figures out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gerd.errors import counted
from gerd.measures.curves import Array
from gerd.studies.demonstration import findings, pictures
from gerd.studies.demonstration.taken import taken
from gerd.studies.demonstration.trials import (
    BASELINE,
    EQUAL,
    EVIDENCE,
    MODELS,
    SCALES,
    SHORTER,
    SHORTEST,
    SIZES,
    SPEEDS,
    STEPS,
    TITLE,
    TRAINED,
    WEIGHTED,
    choices_of,
    said,
    titled,
)
from gerd.studies.lab import drawing
from gerd.studies.lab.results import Results


def report(results: Results, out: Path) -> str:
    models = [model for model in MODELS if model in results.models]
    drawing.write_csv(out, [row for model in models for row in drawing.rows_of(results, model, SPEEDS, "scale")])
    parts = [
        "\n## What the paper says, and what we took\n",
        taken(results),
        "A field is replaced by `--set NAME=VALUE`; *size* is what `--quick` and `--smoke` make smaller.\n",
        "## The network\n",
        pictures.architecture(results, out),
        "The five channels, with the kernels and features of each layer. They have the same convolutions. At the "
        "arrows stand the learnt weights of the sum, means of the seeds.\n",
        "## Errors\n",
        drawing.table(["s =", *(f"{scale:g}" for scale in SCALES)], _errors(results, models)),
        "Pixels: mean ± SD over the recordings, both as means of the seeds; in brackets the lowest and the highest of "
        "the seeds' means.\n",
        *_against(results),
        "## The trainings\n",
        drawing.table(
            ["network", "seed", "best epoch", "validation after each epoch, px", "weights"], _trainings(results)
        ),
        "The weights of the best epoch in validation are those that were tested.\n",
        "## Limits\n",
        _limits(results),
    ]
    return drawing.assembled(
        results,
        TITLE,
        _setting(results),
        findings.conclusions(results),
        *parts,
        full=SIZES["full"],
        opening=findings.opening(results),
        figure=pictures.performance(results, out) + "\n" + _caption(results),
    )


def _caption(results: Results) -> str:
    return (
        "Above, the errors of networks that were trained at s = 1 (dotted): means of "
        f"{counted(results.settings.size.seeds, 'seed')}, bands of one SD over the recordings; dashed, chance: "
        "the best answer that is the same for every recording. Below, Cohen's d of "
        "each seed at each scale, the mean as a number; above 0 the network that is named first is better.\n"
    )


def _setting(results: Results) -> str:
    size = results.settings.size
    return (
        f"Section 3.2 of the paper, done again. A square under translation and scaling, {STEPS} steps, is seen at one "
        f"velocity (s = 1) in {size.training} recordings for training; {size.validation} more choose the checkpoint, "
        f"{size.validation} are the test at s = 1, and {size.tests} others that at each of eight unseen velocities. "
        f"Every network gets the same {size.updates} updates from the same recordings, from each of "
        f"{counted(size.seeds, 'seed')}. {drawing.chance(results)} at s = 1.\n"
    )


def _errors(results: Results, models: Sequence[str]) -> list[list[str]]:
    return [
        [titled(results, model), *(_cell(each) for each in results.curve(model, SPEEDS).errors)] for model in models
    ]


def _cell(errors: Array) -> str:
    """Errors (seeds, recordings) in short."""
    means = errors.mean(axis=1)
    sd = float(np.mean([seed.std(ddof=1) for seed in errors]))
    return f"{means.mean():.2f} ± {sd:.2f} ({means.min():.2f} to {means.max():.2f})"


def _against(results: Results) -> list[str]:
    parts = [
        "## One against another\n",
        f"{drawing.OVER_SEEDS} Positive is better for the network that is named first.\n",
    ]
    pairs = [(WEIGHTED, BASELINE), (SHORTEST, WEIGHTED), (SHORTER, WEIGHTED), (EQUAL, WEIGHTED), (EVIDENCE, WEIGHTED)]
    for model, reference in pairs:
        if {model, reference} <= {*results.models}:
            parts.append(f"{drawing.capitalised(said(results, model))} against {said(results, reference)}:\n")
            found = findings.versus(results, reference, model)
            parts.append(drawing.versus("s", titled(results, model), titled(results, reference), found, TRAINED))
    return parts


def _trainings(results: Results) -> list[list[str]]:
    return [
        [
            titled(results, run.model),
            str(run.seed),
            f"{int(np.argmin(run.validation)) + 1} of {len(run.validation)}",
            ", ".join(f"{error:.2f}" for error in run.validation),
            ", ".join(f"{share:.2f}" for share in run.shares) or "–",
        ]
        for model in MODELS
        if model in results.models
        for run in results.of(model)
    ]


def _limits(results: Results) -> str:
    other = f"`gerd study demonstration --set size_velocity=1` in place of {choices_of(results).size_velocity:g}"
    return (
        "All seeds share the recordings: what depends on the training shows in how far the seeds are apart, and what "
        "depends on the recordings in the intervals. Cohen's d is large wherever recordings are alike, as those of one "
        "square are; read it beside the pixels. At another velocity recordings have as many steps and as much noise as "
        "at s = 1, so that slow ones show less of the path, and have more noise for each event. What the paper leaves "
        f"open may decide; other readings are a `--set` away, such as {other}.\n\n"
        "Every number is in the study's results.json, each summary with the interval of its median in summary.csv.\n"
    )

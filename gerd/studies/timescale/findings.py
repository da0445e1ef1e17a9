"""What follows from the errors: results in, curves, comparisons, bars and sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gerd.measures.curves import Covariance, Invariance, covariance_matrix
from gerd.studies.lab.comparison import LARGE, Comparison, compared, each_seed
from gerd.studies.lab.drawing import ratios, verdicts
from gerd.studies.lab.results import Results, Run, Sweep
from gerd.studies.models import TIME_BANK, TIME_CONSTANTS
from gerd.studies.timescale.trials import (
    BASELINE,
    EVIDENCE,
    EXACT,
    INVARIANT,
    KEPT,
    MODELS,
    OWN_TIME,
    PAPER,
    SAME_LENGTH,
    SCALES,
    SINGLES,
    SWEEPS,
    TRAINED,
    matched_channel,
    named,
)

BOUNDS = {OWN_TIME.name: 1.5, SAME_LENGTH.name: 2.0}  # by which factor the error of the invariant network may vary
UNSEEN = [scale for scale in SCALES if scale != TRAINED]
IN = {OWN_TIME.name: "in own time", SAME_LENGTH.name: "in recordings of the same length"}


@dataclass(frozen=True)
class Bar:
    """What has to hold in every seed, and whether it does."""

    claim: str
    in_seeds: str  # the number of each seed, as text
    held: bool | None  # none: not tested


def trained(results: Results, kept: float = KEPT[0], models: Sequence[str] = MODELS) -> list[str]:
    """Those of the networks that were trained with this share of the events."""
    return [model for model in models if named(model, kept) in results.models]


def said(model: str) -> str:
    """What a network is called in a sentence."""
    names = {
        INVARIANT: "the invariant network",
        EXACT: "the invariant network in exact timing",
        PAPER: "the paper's network",
        EVIDENCE: "its variant with evidence",
    }
    return names.get(model) or f"μ = {model.removeprefix('single ')} alone"


def invariances(results: Results, model: str, kept: float, sweep: Sweep) -> list[Invariance]:
    """How little the error depends on the scale, in each seed."""
    return [curve.invariance() for curve in each_seed(results.curve(named(model, kept), sweep))]


def versus(results: Results, reference: str, model: str, kept: float, sweep: Sweep) -> list[Comparison]:
    """How much smaller the errors of `model` are than those of `reference`, at each scale."""
    theirs, ours = named(reference, kept), named(model, kept)
    return compared(results.curve(theirs, sweep, beside=ours), results.curve(ours, sweep, beside=theirs))


def large(comparisons: Sequence[Comparison]) -> int:
    """At how many unseen scales d is large in every seed."""
    unseen = [each for each in comparisons if each.amount != TRAINED]
    return sum(all(effect.d > LARGE for effect in each.effects) for each in unseen)


def matrix_of(run: Run, sweep: Sweep) -> Covariance:
    """Channels of the invariant network against scales, in one training."""
    test = run.test(sweep)
    matched = [matched_channel(scale) for scale in test.amounts]
    return covariance_matrix(test.channels, test.weights, TIME_BANK, test.amounts, matched)


def bars(results: Results) -> list[Bar]:
    """What has to hold of the invariant network with a quarter of the events, in every seed."""
    kept = KEPT[0]
    matrices = [matrix_of(run, OWN_TIME) for run in results.of(named(INVARIANT, kept))]
    right = [matrix.on_diagonal(matrix.selected) for matrix in matrices]
    claim = f"the channel that is used is the matched one, μ nearest to 5/s, at all {len(SCALES)} scales in own time"
    return [
        *(_flat(results, kept, sweep) for sweep in SWEEPS),
        Bar(claim, _listed(right, "d"), all(count == len(SCALES) for count in right)),
        *(_better(results, reference, kept, sweep) for reference in (PAPER, BASELINE) for sweep in SWEEPS),
    ]


def _flat(results: Results, kept: float, sweep: Sweep) -> Bar:
    bound, seeds = BOUNDS[sweep.name], invariances(results, INVARIANT, kept, sweep)
    claim = f"largest over smallest median error at most {bound:g}, nowhere at chance, {IN[sweep.name]}"
    held = all(each.ratio <= bound and not each.at_chance for each in seeds)
    return Bar(claim, _listed([each.ratio for each in seeds], ".2f"), held)


def _better(results: Results, reference: str, kept: float, sweep: Sweep) -> Bar:
    claim = f"Cohen's d above {LARGE} against {said(reference)} at all {len(UNSEEN)} unseen scales, {IN[sweep.name]}"
    if reference not in trained(results, kept):
        return Bar(claim, "that network is missing", None)
    unseen = [each for each in versus(results, reference, INVARIANT, kept, sweep) if each.amount != TRAINED]
    smallest = [min(each.effects[seed].d for each in unseen) for seed in range(len(unseen[0].effects))]
    return Bar(claim, f"smallest d {_listed(smallest, '.2f')}", all(d > LARGE for d in smallest))


def _listed(values: Sequence[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def conclusions(results: Results) -> list[str]:
    kept = KEPT[0]
    ours = [(model, share) for share in KEPT for model in trained(results, share, (INVARIANT, EXACT))]
    lines = [_how_flat(results, model, share) for model, share in ours]
    lines += [_how_flat_others(results, kept, sweep) for sweep in SWEEPS]
    for model in trained(results, kept, (PAPER, EVIDENCE)):
        if BASELINE in trained(results, kept):
            lines.append(_paper(results, model))
    lines += [_chosen(results, model, share) for model, share in ours]
    if singles := trained(results, kept, SINGLES):
        lines.append(_beyond_singles(results, singles))
    if learnt := [mu for run in results.of(named(PAPER, kept)) for mu in run.learnt]:
        middle = TIME_CONSTANTS[len(TIME_CONSTANTS) // 2]
        ends = f"{min(learnt):.1f} to {max(learnt):.1f}"
        lines.append(f"The paper's network has learnt middle time constants of {ends} steps; they began at {middle:g}.")
    return lines


def _how_flat(results: Results, model: str, kept: float) -> str:
    parts = []
    for sweep in SWEEPS:
        seeds, bound = invariances(results, model, kept, sweep), BOUNDS[sweep.name]
        held = f"within {bound:g}: {verdicts(seeds, bound)}"
        parts.append(f"by a factor of {ratios(seeds)} {IN[sweep.name]} ({held})")
    return (
        f"With {kept:.0%} of the events, the median error of {said(model)} varies from a quarter to four "
        f"times the speed of its training {' and '.join(parts)}."
    )


def _how_flat_others(results: Results, kept: float, sweep: Sweep) -> str:
    others = trained(results, kept, (PAPER, EVIDENCE, BASELINE))
    parts = [f"{ratios(invariances(results, model, kept, sweep))} with {said(model)}" for model in others]
    return f"The same factor {IN[sweep.name]} is {', '.join(parts)}."


def _paper(results: Results, model: str) -> str:
    """The paper's own claim: several time constants against the middle one alone."""
    counts = [
        f"{large(versus(results, BASELINE, model, KEPT[0], sweep))} of {len(UNSEEN)} unseen scales {IN[sweep.name]}"
        for sweep in SWEEPS
    ]
    return f"Against {said(BASELINE)}, {said(model)} has d > {LARGE} in every seed at {' and at '.join(counts)}."


def _chosen(results: Results, model: str, kept: float) -> str:
    parts = []
    for sweep in SWEEPS:
        matrices = [matrix_of(run, sweep) for run in results.of(named(model, kept))]
        cells = len(SCALES) * len(matrices)
        chosen, near = (sum(each.on_diagonal(each.selected, within) for each in matrices) for within in (0, 1))
        parts.append(f"in {chosen} of {cells} cases {IN[sweep.name]} (at most half an octave away in {near})")
    return (
        f"With {kept:.0%} of the events {said(model)} gives the largest share to the channel that matches the "
        f"scale {' and '.join(parts)}."
    )


def _beyond_singles(results: Results, singles: Sequence[str]) -> str:
    parts = []
    for sweep in SWEEPS:
        against = [versus(results, single, INVARIANT, KEPT[0], sweep) for single in singles]
        everywhere = sum(
            all(each.better for each in one_scale)
            for one_scale in zip(*against, strict=True)
            if one_scale[0].amount != TRAINED
        )
        parts.append(f"at {everywhere} of {len(UNSEEN)} unseen scales {IN[sweep.name]}")
    all_of_them = len(singles) == len(SINGLES)
    which = "each of the single time constants" if all_of_them else " and ".join(map(said, singles))
    return f"The invariant network is surely better than {which} {' and '.join(parts)}."

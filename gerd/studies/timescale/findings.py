"""What follows from the errors: results in, curves, comparisons, bars and sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gerd.measures.curves import Covariance, Invariance, covariance_matrix
from gerd.studies.demonstration.trials import SCALES, TRAINED, UNSEEN
from gerd.studies.lab.comparison import LARGE, Comparison, compared, each_seed, surely
from gerd.studies.lab.drawing import capitalised, flatness, ratios, verdicts
from gerd.studies.lab.results import Results, Run, Sweep
from gerd.studies.models import TIME_BANK, TIME_CONSTANTS
from gerd.studies.timescale.trials import (
    BASELINE,
    EQUAL,
    EVIDENCE,
    EXACT,
    INVARIANT,
    KEPT,
    MODELS,
    OWN_TIME,
    SAME_LENGTH,
    SHORT,
    SINGLES,
    SWEEPS,
    matched_channel,
    named,
)

BOUNDS = {OWN_TIME.name: 1.5, SAME_LENGTH.name: 2.0}  # by which factor the error of the invariant network may vary
IN = {OWN_TIME.name: "in own time", SAME_LENGTH.name: "in recordings of the same length"}


@dataclass(frozen=True)
class Bar:
    """What has to hold in every seed, and whether it does."""

    claim: str
    in_seeds: str  # the number of each seed, as text
    held: bool | None  # none: not tested


def trained(results: Results, kept: float = KEPT[0], models: Sequence[str] = MODELS) -> list[str]:
    """The names of the networks that were trained with this share of the events."""
    return [model for model in models if named(model, kept) in results.models]


def said(model: str) -> str:
    """What a network is called in a sentence."""
    names = {
        INVARIANT: "the invariant network",
        EXACT: "the invariant network in exact timing",
        EQUAL: "five channels with equal weights",
        EVIDENCE: "five channels by evidence",
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
    return sum(each.large for each in comparisons if each.amount != TRAINED)


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
        *(_better(results, reference, kept, sweep) for reference in (EQUAL, BASELINE) for sweep in SWEEPS),
    ]


def _flat(results: Results, kept: float, sweep: Sweep) -> Bar:
    bound = BOUNDS[sweep.name]
    seeds = invariances(results, INVARIANT, kept, sweep)
    claim = f"largest over smallest median error at most {bound:g}, nowhere at chance, {IN[sweep.name]}"
    held = all(each.ratio <= bound and not each.at_chance for each in seeds)
    return Bar(claim, _listed([each.ratio for each in seeds], ".2f"), held)


def _better(results: Results, reference: str, kept: float, sweep: Sweep) -> Bar:
    claim = f"Cohen's d above {LARGE} against {said(reference)} at all {len(UNSEEN)} unseen scales, {IN[sweep.name]}"
    if reference not in trained(results, kept):
        return Bar(claim, "that network is missing", None)
    unseen = _unseen(results, reference, INVARIANT, sweep)
    smallest = [min(each.effects[seed].d for each in unseen) for seed in range(len(unseen[0].effects))]
    return Bar(claim, f"smallest d {_listed(smallest, '.2f')}", all(d > LARGE for d in smallest))


def _listed(values: Sequence[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def opening(results: Results) -> list[str]:
    """Three sentences: how flat the invariant network is, how flat the others are, and whether it is the better one."""
    kept = KEPT[0]
    if INVARIANT not in trained(results, kept):
        return []
    others = trained(results, kept, (EQUAL, EVIDENCE, *SINGLES))
    return [
        _how_flat(results, INVARIANT, kept),
        *([_how_flat_others(results, kept, SAME_LENGTH)] if others else []),
        *([_beyond(results, others)] if others else []),
    ]


def conclusions(results: Results) -> list[str]:
    kept = KEPT[0]
    ours = [(model, share) for share in KEPT for model in trained(results, share, (INVARIANT, EXACT))]
    fives = trained(results, kept, (EQUAL, EVIDENCE))
    lines = [_how_flat(results, model, share) for model, share in ours]
    if trained(results, kept, (*fives, *SINGLES)):
        lines += [_how_flat_others(results, kept, sweep) for sweep in SWEEPS]
    if BASELINE in trained(results, kept):
        lines += [_beyond_the_middle(results, model) for model in fives]
    lines += [_shorter(results, model, single) for model in fives for single in trained(results, kept, SHORT)]
    lines += [_chosen(results, model, share) for model, share in ours]
    if singles := trained(results, kept, SINGLES):
        lines.append(_beyond(results, singles))
    if fives:
        lines.append(_learnt(results, fives[0]))
    return lines


def _learnt(results: Results, model: str) -> str:
    """Where the middle time constants have gone."""
    learnt = [mu for run in results.of(named(model, KEPT[0])) for mu in run.learnt]
    ends = f"{min(learnt):.1f} to {max(learnt):.1f}"
    began = f"they began at {TIME_CONSTANTS[len(TIME_CONSTANTS) // 2]:g}"
    return f"{capitalised(said(model))} have learnt middle time constants of {ends} steps; {began}."


def _how_flat(results: Results, model: str, kept: float) -> str:
    parts = []
    for sweep in SWEEPS:
        seeds = invariances(results, model, kept, sweep)
        bound = BOUNDS[sweep.name]
        held = f"within {bound:g}: {verdicts(seeds, bound)}"
        parts.append(f"by a factor of {ratios(seeds)} {IN[sweep.name]} ({held})")
    return (
        f"With {kept:.0%} of the events, the median error of {said(model)} varies from a quarter to four "
        f"times the speed of its training {' and '.join(parts)}."
    )


def _how_flat_others(results: Results, kept: float, sweep: Sweep) -> str:
    others = trained(results, kept, (EQUAL, EVIDENCE, BASELINE, *SHORT))
    parts = [f"{flatness(invariances(results, model, kept, sweep))} with {said(model)}" for model in others]
    return f"The same factor {IN[sweep.name]} is {', '.join(parts)}."


def _shorter(results: Results, model: str, single: str) -> str:
    """Several time constants against one that is shorter than their middle."""
    parts = [f"{surely(_unseen(results, model, single, sweep))} unseen scales {IN[sweep.name]}" for sweep in SWEEPS]
    return f"Against {said(model)}, {said(single)} is {' and '.join(parts)}."


def _unseen(results: Results, reference: str, model: str, sweep: Sweep) -> list[Comparison]:
    return [each for each in versus(results, reference, model, KEPT[0], sweep) if each.amount != TRAINED]


def _beyond_the_middle(results: Results, model: str) -> str:
    """The paper's own claim: several time constants against the middle one alone."""
    counts = [
        f"{large(versus(results, BASELINE, model, KEPT[0], sweep))} of {len(UNSEEN)} unseen scales {IN[sweep.name]}"
        for sweep in SWEEPS
    ]
    return f"Against {said(BASELINE)}, {said(model)} have d > {LARGE} in every seed at {' and at '.join(counts)}."


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


def _beyond(results: Results, others: Sequence[str]) -> str:
    """Where the invariant network is better than each one of the others."""
    parts = []
    for sweep in SWEEPS:
        against = [_unseen(results, other, INVARIANT, sweep) for other in others]
        everywhere = sum(all(each.better for each in one_scale) for one_scale in zip(*against, strict=True))
        parts.append(f"at {everywhere} of {len(UNSEEN)} unseen scales {IN[sweep.name]}")
    names = [said(other) for other in others if other not in SINGLES]
    singles = [other for other in others if other in SINGLES]
    names += ["each single time constant"] if len(singles) == len(SINGLES) else [said(single) for single in singles]
    return f"The invariant network is surely better than {_enumerated(names)} {' and '.join(parts)}."


def _enumerated(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

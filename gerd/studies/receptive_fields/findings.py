"""What follows from the errors: results in, differences with intervals over seeds, and sentences, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gerd.studies.lab.results import Results, Run
from gerd.studies.receptive_fields.networks import KINDS, STARTS
from gerd.studies.receptive_fields.stimuli import SCALINGS, SPATIAL, TEMPORAL, Scaling
from gerd.studies.receptive_fields.trials import guess_at, named

# Student's t that leaves out 2.5 % on each side, by degrees of freedom; from 10 on that of the normal distribution is
# near enough.
T_OF_FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
T_OF_MANY = 1.96

PUBLISHED = {  # px in a frame of 300×300, read from the published figure: receptive fields, uniform
    (SPATIAL.name, "ReLU-1"): (26.0, 27.3),
    (SPATIAL.name, "ReLU-8"): (7.4, 8.3),
    (SPATIAL.name, "LI"): (1.1, 1.7),
    (SPATIAL.name, "LIF"): (4.1, 5.0),
    (TEMPORAL.name, "ReLU-1"): (31.6, 34.3),
    (TEMPORAL.name, "ReLU-8"): (14.0, 20.3),
    (TEMPORAL.name, "LI"): (3.7, 5.0),
    (TEMPORAL.name, "LIF"): (13.2, 15.2),
}
FIELDS, UNIFORM = STARTS
OVER = {SPATIAL.name: "over sizes", TEMPORAL.name: "over speeds"}


@dataclass(frozen=True)
class OverSeeds:
    """A mean over seeds, and its 95 % interval by Student's t; one seed has none."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def interval(self) -> tuple[float, float] | None:
        count = len(self.values)
        if count < 2:
            return None
        t = T_OF_FEW[count - 2] if count - 2 < len(T_OF_FEW) else T_OF_MANY
        half = t * float(np.std(self.values, ddof=1)) / count**0.5
        return self.mean - half, self.mean + half

    @property
    def sign(self) -> int:
        """1 or -1 where the whole interval is on that side of 0, else 0."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return 1 if low > 0 else -1 if high < 0 else 0

    def __str__(self) -> str:
        ends = "" if self.interval is None else " ({:.2f} to {:.2f})".format(*self.interval)
        return f"{self.mean:.2f}{ends}"


def has(results: Results, kind: str, start: str, scaling: Scaling) -> bool:
    return named(kind, start, scaling) in results.models


def tested(results: Results) -> list[Scaling]:
    """The scalings of which there are all networks."""
    return [each for each in SCALINGS if all(has(results, kind, start, each) for kind in KINDS for start in STARTS)]


def overall(run: Run) -> float:
    """The mean error over all amounts, of one network, in pixels."""
    return float(np.mean(run.tests[0].errors))


def error_of(
    results: Results, kind: str, start: str, scaling: Scaling, measure: Callable[[Run], float] = overall
) -> OverSeeds:
    return OverSeeds(tuple(measure(run) for run in results.of(named(kind, start, scaling))))


def guess_of(results: Results, scaling: Scaling) -> float:
    """The error of always saying the mean place."""
    return overall(results.of(guess_at(scaling))[0])


def more(results: Results, first: tuple[str, str], second: tuple[str, str], scaling: Scaling) -> OverSeeds:
    """By how much the error of the second (kind, initialisation) is larger, seed by seed; of the seeds of both."""
    one = {run.seed: overall(run) for run in results.of(named(*first, scaling))}
    other = {run.seed: overall(run) for run in results.of(named(*second, scaling))}
    return OverSeeds(tuple(other[seed] - one[seed] for seed in one if seed in other))


def steps_of_order(results: Results, scaling: Scaling) -> list[tuple[str, str, OverSeeds]]:
    """Neighbours in the published order, with receptive fields, and by how much the later one's error is larger."""
    return [
        (first, second, more(results, (first, FIELDS), (second, FIELDS), scaling)) for first, second in pairwise(KINDS)
    ]


def gains(results: Results, scaling: Scaling) -> list[tuple[str, OverSeeds]]:
    """By how much the error with uniform initialisation is larger than with receptive fields."""
    return [(kind, more(results, (kind, FIELDS), (kind, UNIFORM), scaling)) for kind in KINDS]


def opening(results: Results) -> list[str]:
    """What came out of what was published, and what did not: a sentence each on order, start and training."""
    said = (
        (f"Of the published order {' < '.join(KINDS)}, ", _of_order),
        ("Receptive fields are ", _of_start),
        ("In validation, in the mean of the four networks, receptive fields are clearly ahead ", _early),
    )
    return [f"{begin}{'; '.join(say(results, scaling) for scaling in tested(results))}." for begin, say in said]


def _of_order(results: Results, scaling: Scaling) -> str:
    steps = steps_of_order(results, scaling)
    came = [f"{first} < {second}" for first, second, each in steps if each.sign > 0]
    against = [f"{first} > {second}" for first, second, each in steps if each.sign < 0]
    unclear = [f"{first} – {second}" for first, second, each in steps if each.sign == 0]
    found = sorted(KINDS, key=lambda kind: error_of(results, kind, FIELDS, scaling).mean)
    parts = _counted(came, "comes out", "come out")
    parts += _counted(against, "comes out the other way round", "come out the other way round")
    parts += _counted(unclear, "cannot be told apart", "cannot be told apart")
    return f"{OVER[scaling.name]} {', '.join(parts)} (the means are in the order {' < '.join(found)})"


def _of_start(results: Results, scaling: Scaling) -> str:
    found = gains(results, scaling)
    better = [kind for kind, each in found if each.sign > 0]
    worse = [kind for kind, each in found if each.sign < 0]
    unclear = [kind for kind, each in found if each.sign == 0]
    parts = [f"better than uniform initialisation with {listed(better)}"] if better else []
    parts += [f"worse with {listed(worse)}"] if worse else []
    parts += [f"neither clearly better nor clearly worse with {listed(unclear)}"] if unclear else []
    return f"{OVER[scaling.name]} {', '.join(parts)}"


def _counted(names: Sequence[str], one: str, several: str) -> list[str]:
    return [f"{listed(names)} {one if len(names) == 1 else several}"] if names else []


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def lead_by_epoch(results: Results, scaling: Scaling) -> list[OverSeeds]:
    """After each epoch, how much larger the error in validation is with uniform initialisation: the mean of the "
    "kinds."""
    seeds = {run.seed for run in results.of(named(KINDS[0], FIELDS, scaling))}
    leads = []
    for seed in sorted(seeds):
        of_kinds = []
        for kind in KINDS:
            pair = [
                next((run for run in results.of(named(kind, start, scaling)) if run.seed == seed), None)
                for start in STARTS
            ]
            if pair[0] and pair[1]:
                of_kinds.append(np.array(pair[1].losses) - np.array(pair[0].losses))
        leads.append(np.mean(of_kinds, axis=0))
    return [OverSeeds(tuple(each)) for each in np.transpose(leads).tolist()]


def conclusions(results: Results) -> list[str]:
    lines = []
    for scaling in tested(results):
        where = OVER[scaling.name].capitalize()
        for first, second, each in steps_of_order(results, scaling):
            lines.append(f"{where}, with receptive fields, {second} minus {first}: {_said(each)}.")
        for kind, each in gains(results, scaling):
            lines.append(f"{where}, {kind}, uniform minus receptive fields: {_said(each)}.")
        lines.append(_still_falling(results, scaling))
    return lines


def _said(difference: OverSeeds) -> str:
    """A difference in words; one seed has no interval, and nothing follows from it."""
    if difference.interval is None:
        return f"{difference} px, of one seed"
    words = {1: "clearly larger", -1: "clearly smaller", 0: "not clearly different"}
    return f"{difference} px: {words[difference.sign]}"


def _early(results: Results, scaling: Scaling) -> str:
    leads = lead_by_epoch(results, scaling)
    ahead = [str(epoch) for epoch, each in enumerate(leads, 1) if each.sign > 0]
    when = f"after epoch {listed(ahead)} of {len(leads)}" if ahead else "after none of the epochs"
    numbers = ", ".join(f"{each.mean:.1f}" for each in leads)
    return f"{OVER[scaling.name]} {when} (by {numbers} px after each epoch)"


def _still_falling(results: Results, scaling: Scaling) -> str:
    """By which share the error in validation has fallen in the last epoch: whether training was over."""
    parts = []
    for kind in KINDS:
        runs = [run for start in STARTS for run in results.of(named(kind, start, scaling))]
        if any(len(run.losses) < 2 for run in runs):
            continue
        fall = np.mean([1 - run.losses[-1] / run.losses[-2] for run in runs])
        parts.append(f"{kind} {fall:.0%}")
    return f"In the last epoch the error in validation {OVER[scaling.name]} fell by: {', '.join(parts)}."

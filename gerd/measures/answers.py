"""What a model says of pairs of recordings, judged: answers in, an error, its unit and a verdict out.

An error between f(g·x) and ρ(g) f(x) means something beside the distance between ρ(g) f(x) of two *different*
recordings: 0 is the same answer, 1 an answer as different as that to an unrelated scene. Where a model says the same of
every recording there is no such unit, and no verdict. Error and distance are both root mean squares, so that answers
that have nothing to do with each other are 1 apart however they are distributed, also where most are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError, counted
from gerd.measures.chance import FALSE_ALARM
from gerd.measures.statistics import LEAST, Estimate, estimate
from gerd.scene.transformation import Transformation

Array = NDArray[np.float64]

ROUNDING = 16  # steps of the number format: what differs by less may be rounding
LEAST_DIFFERENT = (
    4  # recordings: of fewer, a resample has none with a probability of more than FALSE_ALARM (e^-4 < 0.025)
)
Found = Literal["holds", "does not hold", "undecided", "no verdict"]


@dataclass(frozen=True)
class Measured:
    """An error of a model under a transformation, for each pair of recordings."""

    transformation: Transformation
    relative: Estimate | None  # absolute / between; none where the model says the same of every recording
    absolute: Estimate  # root mean square of f(g·x) - ρ(g) f(x), in the unit of the output; of coordinates a distance
    between: float  # root mean square distance between ρ(g) f(x) of two recordings, in the same unit
    changed: int  # recordings of which the transformation changes the frames
    different: int  # recordings of which the model says something else than of most
    chance: float | None  # how likely answers that know nothing of the truth vary with it as much; none: no truth known
    values: Array  # (pairs, 2): relative (not a number where there is none) and absolute
    apart: Array  # (pairs,): how far ρ(g) f(x) is from its mean over the recordings, in the unit of the output
    rounded: bool = False  # whether g acted on events whose new places, or steps, had to be rounded

    @property
    def why_no_verdict(self) -> str | None:
        """Why nothing can be said of the symmetry of this model from these recordings; none where something can."""
        count = self.absolute.count
        if count < LEAST:
            return f"{counted(count, 'recording')}: allowed for a verdict: {LEAST} or more"
        if 2 * self.changed <= count:
            return f"the transformation changes the frames of {self.changed or 'none'} of {count} recordings"
        if alike := why_too_alike(self.different):
            return alike
        if self.chance is not None and self.chance > FALSE_ALARM:
            return f"the model is at chance: its answers do not vary with the truth (p = {self.chance:.2g})"
        return None

    def verdict(self, tolerance: float = math.inf, absolute: float = math.inf) -> Found:
        """Whether the error is within `tolerance` (relative) and `absolute`, and its whole interval with it."""
        check_bounds(tolerance, absolute)
        if self.relative is None or self.why_no_verdict is not None:
            return "no verdict"
        judged = ((self.relative.interval, tolerance), (self.absolute.interval, absolute))
        if all(high <= bound for (_, high), bound in judged):
            return "holds"
        return "does not hold" if any(low > bound for (low, _), bound in judged) else "undecided"

    def __str__(self) -> str:
        if self.relative is None:
            relative = "no relative error" if self.absolute.count == 1 else "the same answer to every recording"
        else:
            relative = f"relative error {self.relative}"
        between = "" if self.relative is None else f"; between recordings: {self.between:.4g}"
        rounded = "; events were rounded to pixels" if self.rounded else ""
        return f"{self.transformation}: {relative}; absolute {self.absolute}{between}{rounded}"


def why_too_alike(different: int) -> str | None:
    """Why nothing can be said of a model that says something else of so many recordings than of most; or none."""
    if different >= LEAST_DIFFERENT:
        return None
    return f"the model says the same of every recording{f' but {different}' if different else ''}"


def check_bounds(tolerance: float, absolute: float) -> None:
    """An error unless there is something to judge by."""
    for name, bound in (("tolerance", tolerance), ("absolute", absolute)):
        if not bound >= 0:
            raise GerdError(f"{name} {bound:g}: allowed: a number, 0 or more")
    if min(tolerance, absolute) == math.inf:
        raise GerdError("there is no bound to judge by: allowed: tolerance=… and absolute=…")


def measured(
    g: Transformation, gaps: Tensor, expected: Tensor, changed: int, different: int, chance: float | None, axes: int
) -> Measured:
    """From root mean square gaps (pairs,) and ρ(g) f(x) (pairs, …), of which `axes` numbers make one of the output."""
    errors = (gaps * math.sqrt(axes)).numpy()
    apart = (distances_from_mean(expected) * math.sqrt(axes)).numpy()
    relative = relative_error(errors, apart) if different else None
    between = float(between_recordings(apart)) if len(apart) > 1 else 0.0
    shares = errors / between if relative is not None else np.full(len(errors), math.nan)
    absolute = estimate(lambda rows: root_mean_square(errors[rows]), len(errors))
    values = np.stack([shares, errors], axis=1)
    return Measured(g, relative, absolute, between, changed, different, chance, values, apart)


def root_mean_square(errors: Array) -> Array:
    """Over the last axis."""
    result: Array = np.sqrt((errors**2).mean(axis=-1))
    return result


def distances_from_mean(answers: Tensor) -> Tensor:
    """(pairs,): how far each answer is from the mean of all, as a root mean square over what is a number."""
    flat = answers.flatten(1)
    return (flat - flat.nanmean(0)).square().nanmean(1).sqrt()


def between_recordings(apart: Array) -> Array:
    """The root mean square distance between two answers, from their distances (…, recordings) from the mean of all."""
    count = apart.shape[-1]
    result: Array = np.sqrt(2 * count / (count - 1) * (apart**2).mean(axis=-1))
    return result


def relative_error(errors: Array, apart: Array) -> Estimate | None:
    """The error of pairs in units of what answers to different recordings differ by; none where they do not differ.

    errors, apart: (recordings,); both are resampled together.
    """
    if len(apart) < 2 or not apart.any():
        return None

    def statistic(rows: NDArray[np.int64]) -> Array:
        error = root_mean_square(errors[rows])
        between = between_recordings(apart[rows])
        unit = np.where(between > 0, between, 1.0)
        return np.where((between > 0) | (error == 0), error / unit, np.inf)

    return estimate(statistic, len(apart))


def count_different(answers: Tensor, rounding: float) -> int:
    """How many recordings have an answer other than the median one, number by number and beyond rounding.

    rounding: half of the step from 1 to the next number of the model's own format, 0 for whole numbers.
    """
    if len(answers) < 2:
        return 0
    flat = answers.flatten(1)
    away = (flat - flat.median(0).values).abs()
    return int((away > ROUNDING * rounding * flat.abs().amax(0)).any(1).sum())

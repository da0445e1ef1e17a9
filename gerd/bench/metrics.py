"""What an answer of each task is worth: its error, what the best constant answer has, and the loss of the training.

Each error is defined here and nowhere else, and is one number for a recording, the mean over the steps, or the events,
from the first step that counts on:

    locate      px: how far the place is from the true one
    transform   px: how far off three corners of the unit square are that T puts into the frame, and as many that
                would be off after HORIZON steps by the error of T′; the mean of the six
    classify    0 or 1: whether the class with the highest score is another one
    flow        px per step: how far the velocity of an event is from the true one, where that is known
    noise       1 − balanced accuracy: the mean of the share of signal that is taken for noise, and the reverse

The *chance* of a task is the error of the best answer that is the same for all recordings, found on the same
recordings. So no answer that looks at nothing has a smaller mean error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from gerd.bench.examples import Examples
from gerd.bench.task_table import HORIZON
from gerd.measures.chance import best_answer, chance_of

Array = NDArray[np.float64]

CORNERS = ((-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5))  # of the unit square: the images of three say what an affine map is
HALF = 32.0  # half the frame, in pixels: the unit of the losses of places
BETA = 0.1  # of SmoothL1, in units of half the frame, or pixels per step


@dataclass(frozen=True)
class Metric:
    """How answers to one task are judged. What is no number is no error: of recordings in which nothing counts."""

    errors: Callable[[Tensor, Examples], Tensor]  # of answers: (recordings,)
    chance: Callable[[Examples], Array]  # (recordings,): the errors of the best constant
    loss: Callable[[Tensor, Examples], Tensor]  # a number


def corners(both: Tensor) -> Tensor:
    """(…, 6, 2): where T puts three corners, and how far T′ takes each of them in HORIZON steps.

    both: (…, 2, 2, 3), the first two rows of T and of T′.
    """
    unit = torch.tensor(CORNERS, dtype=both.dtype, device=both.device).T
    at = both[..., :2] @ unit + both[..., 2:]  # (…, 2, 2, 3): of T and T′, x and y of each corner
    at = at * at.new_tensor([1.0, HORIZON])[:, None, None]
    return at.transpose(-1, -2).flatten(-3, -2)


def _places(answer: Tensor) -> Tensor:
    """(…, 1, 2)."""
    return answer[..., None, :]


def _of_points(points: Callable[[Tensor], Tensor]) -> Metric:
    """For answers at each step that stand for points in the frame."""

    def late(values: Tensor, examples: Examples) -> Tensor:
        return points(values)[:, examples.first_step :]

    def errors(answer: Tensor, examples: Examples) -> Tensor:
        away = late(answer.double(), examples) - late(examples.truth.double(), examples)
        return away.norm(dim=-1).flatten(1).mean(1)

    def chance(examples: Examples) -> Array:
        return chance_of(late(examples.truth.double(), examples).cpu().numpy())

    def loss(answer: Tensor, examples: Examples) -> Tensor:
        found, truth = late(answer.float(), examples), late(examples.truth.float(), examples)
        return F.smooth_l1_loss(found / HALF, truth / HALF, beta=BETA)

    return Metric(errors, chance, loss)


def _wrong(answer: Tensor, examples: Examples) -> Tensor:
    return (answer.argmax(-1) != examples.truth).double()


def _most_frequent(examples: Examples) -> Array:
    truth = examples.truth.cpu().numpy()
    best = np.bincount(truth).argmax()
    return (truth != best).astype(np.float64)


def _cross_entropy(answer: Tensor, examples: Examples) -> Tensor:
    return F.cross_entropy(answer.float(), examples.truth)


def _mean_of_each(values: Tensor, examples: Examples, which: Tensor) -> Tensor:
    """(recordings,): the mean of some of the values (events,), not a number where there are none."""
    zeros = torch.zeros(len(examples), dtype=torch.float64, device=values.device)
    of = examples.recording[which]
    total = zeros.index_add(0, of, values[which].double())
    return total / zeros.index_add(0, of, torch.ones_like(of, dtype=torch.float64))


def _known(examples: Examples) -> Tensor:
    """(events,): whether the flow is known and counts."""
    return examples.counts & torch.isfinite(examples.truth).all(-1)


def _endpoint(answer: Tensor, examples: Examples) -> Tensor:
    away = (answer.double() - examples.truth.double()).norm(dim=-1)
    return _mean_of_each(away, examples, _known(examples))


def _best_flow(examples: Examples) -> Array:
    known = _known(examples)
    of, truth = examples.recording[known].cpu().numpy(), examples.truth[known].double().cpu().numpy()
    weights = 1.0 / np.bincount(of, minlength=len(examples))[of]
    best = torch.from_numpy(best_answer(truth, weights)).to(examples.truth.device)
    return _endpoint(best.expand_as(examples.truth), examples).cpu().numpy()


def _flow_loss(answer: Tensor, examples: Examples) -> Tensor:
    known = _known(examples)
    return F.smooth_l1_loss(answer[known].float(), examples.truth[known].float(), beta=BETA)


def _unbalanced(taken_for_noise: Tensor, examples: Examples) -> Tensor:
    """1 − balanced accuracy; of a recording with one kind only, the share of that which is wrong."""
    wrong = taken_for_noise != examples.truth
    shares = [_mean_of_each(wrong, examples, examples.counts & (examples.truth == kind)) for kind in (True, False)]
    return torch.stack(shares).nanmean(0)


def _best_kind(examples: Examples) -> Array:
    constants = [_unbalanced(torch.full_like(examples.truth, kind), examples) for kind in (True, False)]
    return min((each.cpu().numpy() for each in constants), key=np.nanmean)


def _noise_loss(answer: Tensor, examples: Examples) -> Tensor:
    """Both kinds count the same, however many there are of each."""
    score, truth = answer[examples.counts].float(), examples.truth[examples.counts]
    share = truth.float().mean().clamp(1e-3, 1 - 1e-3)
    weights = torch.where(truth, 0.5 / share, 0.5 / (1 - share))
    return F.binary_cross_entropy_with_logits(score, truth.float(), weights)


METRICS = {
    "locate": _of_points(_places),
    "transform": _of_points(corners),
    "classify": Metric(_wrong, _most_frequent, _cross_entropy),
    "flow": Metric(_endpoint, _best_flow, _flow_loss),
    "noise": Metric(lambda answer, examples: _unbalanced(answer > 0, examples), _best_kind, _noise_loss),
}

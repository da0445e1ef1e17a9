"""What the label of a window is: the one definition behind `Dataset` and `Stream`.

The ground truth of a window comes in, and a recording where a label needs more than that; out come tensors with the
step as their first axis. Labels are float32 (masks are boolean), lengths in pixels, angles in radians, derivatives per
step. Labels of single events are tensors with a row for each event of the item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.geometry.parameters import derivatives, matrix
from gerd.recording.recording import Recording

Array = NDArray[np.float64]

Tensors = Any  # a tensor, or tuples and mappings of tensors; what a function of the user gives can be anything

OF_TRUTH: dict[str, Callable[[Array], Array]] = {  # of (…, steps, actors, 3, 6), so of a whole batch at once
    "positions": lambda truth: truth[..., 0, :2],
    "T": matrix,
    "T_velocity": lambda truth: derivatives(truth)[0],
    "T_acceleration": lambda truth: derivatives(truth)[1],
    "parameters": lambda truth: truth[..., 0, :],
    "parameters_velocity": lambda truth: truth[..., 1, :],
    "parameters_acceleration": lambda truth: truth[..., 2, :],
}
OF_PICTURES: dict[str, Callable[[Recording], NDArray[np.generic]]] = {  # arrays with the step as their first axis
    "boxes": lambda r: r.boxes(),
    "visibility": lambda r: r.visibility(),
    "masks": lambda r: r.masks(),
    "flow": lambda r: r.flow(),
    "masks_with_edges": lambda r: r.masks(edges=True),
    "flow_with_edges": lambda r: r.flow(edges=True),
    "images": lambda r: r.images(),
}
PER_RECORDING: dict[str, Callable[[Recording], object]] = {
    "sweep": lambda r: r.identity.labels,
    "index": lambda r: r.identity.index,
    "shape": lambda r: torch.from_numpy(r.shape),
}
# Arrays with the event as their first axis, and the types of their labels.
PER_EVENT: dict[str, tuple[Callable[[Recording], NDArray[np.generic]], type[np.generic]]] = {
    "actor": (lambda r: r.actor, np.int64),
    "event_flow": (lambda r: r.event_flow, np.float32),
    "echo": (lambda r: r.echo, np.bool_),
    "source": (lambda r: r.source, np.int64),
    "fired_us": (lambda r: r.fired_us - r.codec.times(0, r.step_us, r.first), np.int64),
}
LABELS = (*OF_TRUTH, *OF_PICTURES, *PER_RECORDING, *PER_EVENT)

Label = str | Callable[[Recording], Tensors] | Sequence["Label"] | Mapping[str, "Label"] | None


class PerEvent(Tensor):
    """A tensor with a row for each event of an item; `collate` joins or pads it as it does the events.

    What is computed from it is a plain tensor, of which nobody knows whether it still has a row for each event.
    """

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Tensors],
        types: Iterable[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Tensors:
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


@dataclass(frozen=True, eq=False)
class Labelled:
    """What the label of a window is made from."""

    truth: Array  # (steps, actors, 3, 6): of the labelled part
    cut: Callable[[], Recording]  # makes the labelled part, which only some labels need
    seen: Callable[[], Recording]  # gives the part that the item is made from

    @cached_property
    def part(self) -> Recording:
        return self.cut()


def label_of(label: Label, window: Labelled, every: int) -> Tensors:
    """The label of one window; of the steps of its labelled part every `every`-th is kept."""
    if label is None:
        return ()
    if isinstance(label, Mapping):
        return {name: label_of(below, window, every) for name, below in label.items()}
    if callable(label):
        return label(window.part)
    if not isinstance(label, str):
        return tuple(label_of(below, window, every) for below in label)
    if label in PER_RECORDING:
        return PER_RECORDING[label](window.part)
    if label in PER_EVENT:
        values, kind = PER_EVENT[label]
        return torch.from_numpy(np.array(values(window.seen()), kind)).as_subclass(PerEvent)
    array = OF_TRUTH[label](window.truth) if label in OF_TRUTH else OF_PICTURES[label](window.part)
    return _tensor(array[every - 1 :: every])


def label_of_truths(label: str, truths: Sequence[Array], every: int) -> Tensor:
    """One of the labels `OF_TRUTH` of several windows of the same length, worked out at once."""
    return _tensor(OF_TRUTH[label](np.stack(truths))[:, every - 1 :: every])


def _tensor(array: NDArray[np.generic]) -> Tensor:
    kind = array.dtype if array.dtype == np.bool_ else np.float32
    return torch.from_numpy(np.require(array, kind, ["C", "W"]))


def leaves(label: object) -> Iterator[object]:
    """The names and functions that a label consists of."""
    if isinstance(label, Mapping | list | tuple):
        for part in label.values() if isinstance(label, Mapping) else label:
            yield from leaves(part)
    elif label is not None:
        yield label

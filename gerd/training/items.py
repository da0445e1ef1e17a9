"""What an item of training data is, and what its label is: the one definition behind `Dataset` and `Stream`.

In come recordings, or dense frames from a device; out come tensors or event arrays, with the step as their first axis.
Labels are float32 tensors (masks are boolean), lengths in pixels, angles in radians, derivatives per step.

A window has a labelled part, `steps` long, that begins at step `at` of the recording. Before it lie `warmup` steps and
as many more as the first frame needs (`sum`, `stack`); its label lies `delay` steps later.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError, shorten
from gerd.recording.recording import Recording

_NUMPY = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
}
DENSE = ("frames", "counts")
ITEMS = (*DENSE, "sparse", "events")

PER_STEP: dict[str, Callable[[Recording], Any]] = {  # arrays with the step as their first axis
    "positions": lambda r: r.positions,
    "T": lambda r: r.T,
    "T_velocity": lambda r: r.T_velocity,
    "T_acceleration": lambda r: r.T_acceleration,
    "parameters": lambda r: r.truth[:, :, 0],
    "parameters_velocity": lambda r: r.truth[:, :, 1],
    "parameters_acceleration": lambda r: r.truth[:, :, 2],
    "boxes": lambda r: r.boxes(),
    "visibility": lambda r: r.visibility(),
    "masks": lambda r: r.masks(),
    "flow": lambda r: r.flow(),
    "images": lambda r: r.images(),
}
PER_RECORDING: dict[str, Callable[[Recording], Any]] = {
    "sweep": lambda r: r.identity.labels,
    "index": lambda r: r.identity.index,
}

Label = str | Callable[[Recording], Any] | Sequence["Label"] | Mapping[str, "Label"] | None
Item = str | Callable[[Recording], Any]


@dataclass(frozen=True)
class Form:
    """How a window of a recording becomes an item and a label; lengths are in steps of the recording."""

    item: Item = "frames"
    label: Label = "positions"
    warmup: int = 0
    delay: int = 0
    sum: int = 1
    every: int = 1
    stack: int = 1
    dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if not (callable(self.item) or self.item in ITEMS):
            raise GerdError(f"item {shorten(self.item)}: allowed: {', '.join(ITEMS)}, or a function of the recording")
        _check_label(self.label)
        for name, least in (("warmup", 0), ("sum", 1), ("every", 1), ("stack", 1), ("delay", None)):
            check_whole(name, getattr(self, name), least)
        if not isinstance(self.dtype, torch.dtype | None):
            raise GerdError(f"dtype {shorten(self.dtype)}: allowed is a type of PyTorch, such as torch.float32")
        if not self.is_dense:
            for name, usual in (("sum", 1), ("every", 1), ("stack", 1), ("dtype", None)):
                if getattr(self, name) != usual:
                    raise GerdError(f"{name}: goes with the items {' and '.join(DENSE)}, not with {shorten(self.item)}")
        if self.warmup % self.every:
            raise GerdError(f"warmup {self.warmup}: allowed with every={self.every} is a multiple of it")

    @property
    def is_dense(self) -> bool:
        return self.item in DENSE

    @property
    def needs_events(self) -> bool:
        """Whether anything but dense frames and the ground truth is looked at."""
        return not self.is_dense or _has_function(self.label)

    @property
    def lead(self) -> int:
        """How many steps before its labelled part an item begins; negative if it begins later."""
        return self.warmup + self.sum + (self.stack - 2) * self.every

    def earliest(self) -> int:
        """The first step at which a labelled part may begin."""
        return max(self.warmup, self.lead, -self.delay)

    def starts(self, length: int, steps: int | None, stride: int | None, rest: str) -> tuple[np.ndarray, int]:
        """Where the labelled parts of a recording of `length` steps begin, and how long they are."""
        low = self.earliest()
        room = length - max(self.delay, 0) - low  # steps that can be labelled
        chosen = room // self.every * self.every if steps is None else steps
        if chosen % self.every:
            raise GerdError(f"steps {chosen}: allowed with every={self.every} is a multiple of it")
        if not 0 < chosen <= room:
            needed = f"{low} before the labelled part and {max(self.delay, 0)} after it"
            raise GerdError(
                f"steps {chosen if steps else self.every}: the recording has {length}, of which {needed} are needed"
            )
        result = np.arange(low, low + room - chosen + 1, stride or chosen)
        last = low + room - chosen
        if rest == "overlap" and result[-1] != last:
            result = np.append(result, last)
        return result, chosen

    def span(self, at: int, steps: int) -> tuple[int, int]:
        """The steps that are needed for the window whose labelled part begins at `at`: from and up to."""
        return min(at - self.lead, at + self.delay), max(at, at + self.delay) + steps

    def view(self, recording: Recording, at: int, steps: int) -> tuple[Any, Any]:
        """Item and label; `recording` may be a window of the whole one, in which `at` is counted."""
        return self.item_of(recording, at, steps), self.label_of(recording, at, steps)

    def part(self, recording: Recording, at: int, steps: int) -> Recording:
        """The steps that an item is made from."""
        begin = at - recording.first
        return recording.window(begin - self.lead, begin + steps)

    def item_of(self, recording: Recording, at: int, steps: int) -> Any:
        """The item alone."""
        part = self.part(recording, at, steps)
        if self.is_dense:
            return self.frames_at(part.places, (part.steps, 2, part.height, part.width))
        if callable(self.item):
            return self.item(part)
        if self.item == "sparse":
            return part.sparse()
        events = part.events
        events["t"] -= part.first * part.step_us
        return events

    def frames_at(self, places: NDArray[np.int64], shape: tuple[int, ...]) -> Tensor:
        """Dense frames from the places of the events in them; `shape` is that of the boolean frames, (…, steps, …)."""
        wanted = self.dtype or (torch.uint8 if self.item == "counts" else torch.bool)
        straight = self.sum == self.every == self.stack == 1 and wanted in _NUMPY  # spares a pass through the memory
        frames = zeros(shape, _NUMPY[wanted] if straight else np.bool_)
        frames.reshape(-1)[places] = 1
        return torch.from_numpy(frames) if straight else self.combined(torch.from_numpy(frames))

    def combined(self, frames: Tensor) -> Tensor:
        """Boolean frames (…, steps, 2, height, width), summed, thinned out and stacked."""
        kept = (frames.shape[-4] - self.sum) // self.every + 1
        ends = kept * self.every
        parts = [frames[..., i : i + ends : self.every, :, :, :] for i in range(self.sum)]
        result = parts[0]
        if self.item == "counts":
            result = result.to(torch.uint8 if self.sum < 256 else torch.int32)
            for part in parts[1:]:
                result += part
        else:
            for part in parts[1:]:
                result = result | part
        if self.stack > 1:
            count = kept - self.stack + 1
            result = torch.cat([result[..., i : i + count, :, :, :] for i in range(self.stack)], dim=-3)
        return result if self.dtype is None else result.to(self.dtype)

    def label_of(self, recording: Recording, at: int, steps: int) -> Any:
        """The label alone."""
        begin = at + self.delay - recording.first
        return self._labelled(recording.window(begin, begin + steps), self.label)

    def _labelled(self, part: Recording, label: Label) -> Any:
        if label is None:
            return ()
        if isinstance(label, Mapping):
            return {name: self._labelled(part, below) for name, below in label.items()}
        if callable(label):
            return label(part)
        if not isinstance(label, str):
            return tuple(self._labelled(part, below) for below in label)
        if label in PER_RECORDING:
            return PER_RECORDING[label](part)
        array = np.asarray(PER_STEP[label](part))[self.every - 1 :: self.every]
        return torch.from_numpy(np.array(array, array.dtype if array.dtype == np.bool_ else np.float32))


_Kept = tuple[NDArray[np.uint8], "weakref.ref[NDArray[np.uint8]]"]  # memory, and what of it was given out
_KEPT: list[_Kept] = []
_LEAST, _MOST, _MOST_BYTES = 2**22, 4, 2**30  # what is worth keeping, how many, and how many bytes in all


def zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """np.zeros, in the memory of an earlier call if nobody holds its result any more.

    To zero memory that is in use is several times as fast as to get fresh memory from the system, and a training loop
    drops its batches one after the other. The latest few large results are kept for that.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not _LEAST <= size <= _MOST_BYTES:
        return np.zeros(shape, dtype)
    held: list[_Kept] = []
    free: list[_Kept] = []
    while _KEPT:  # each thread takes them for itself
        with suppress(IndexError):
            entry = _KEPT.pop(0)
            (held if entry[1]() is not None else free).append(entry)
    fitting = [entry for entry in free if len(entry[0]) == size]  # memory of other sizes goes back to the system
    if fitting:
        memory = fitting.pop()[0]
        memory[:] = 0
    else:
        memory = np.zeros(size, np.uint8)
    given = np.frombuffer(memory.data, np.uint8)  # an object that all views of it, and only they, keep alive
    kept = [*held, *fitting, (memory, weakref.ref(given))]
    while len(kept) > _MOST or sum(len(entry[0]) for entry in kept) > _MOST_BYTES:
        kept.pop(0)
    _KEPT.extend(kept)
    return given.view(dtype).reshape(shape)


def check_whole(name: str, value: Any, least: int | None) -> None:
    """A clear error unless `value` is a whole number, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (least is not None and value < least):
        allowed = "a whole number" if least is None else f"a whole number, {least} or more"
        raise GerdError(f"{name} {shorten(value)}: allowed is {allowed}")


def _check_label(label: Any) -> None:
    if label is None or callable(label) or (isinstance(label, str) and label in {**PER_STEP, **PER_RECORDING}):
        return
    if isinstance(label, Mapping | list | tuple):
        for below in label.values() if isinstance(label, Mapping) else label:
            _check_label(below)
        return
    names = ", ".join([*PER_STEP, *PER_RECORDING])
    raise GerdError(f"label {shorten(label)}: allowed: {names}, a function of the recording, or several of these")


def _has_function(label: Label) -> bool:
    if isinstance(label, Mapping):
        label = tuple(label.values())
    return any(map(_has_function, label)) if isinstance(label, list | tuple) else callable(label)

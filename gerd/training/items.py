"""What an item of training data is: the one definition behind `Dataset` and `Stream`.

In come recordings, or dense frames from a device; out come tensors or event arrays, with the step as their first axis.
What labels there are stands in `labels.py`.

A window has a labelled part, `steps` long, that begins at step `at` of the recording. Before it lie `warmup` steps and
as many more as the first frame needs (`sum`, `stack`); its label lies `delay` steps later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError, check_whole, did_you_mean, shorten
from gerd.events.keys import add_events
from gerd.recording import representations
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.recording.representations import Bins, check_tau
from gerd.training.labels import LABELS, PER_EVENT, Label, Labelled, Tensors, label_of, leaves
from gerd.training.memory import zeros

_NUMPY = {getattr(torch, name): np.dtype(name) for name in ("bool", "uint8", "float16", "float32", "float64")}
DENSE = ("frames", "counts")
BINNED = ("voxels", "time_surface")
ITEMS = (*DENSE, *BINNED, "sparse", "events")
MOST_WINDOWS = 100_000_000  # of one recording: a file of one event that is far too late would have any number
# EVENT_DTYPE with p as a number: Tonic writes -1 into p for OFF, which a boolean takes as ON.
ITEM_DTYPE = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", np.int8)])

Item = str | Callable[[Any], Tensors]  # of a recording, or of events without a ground truth
Sample = tuple[Tensors, Tensors]  # item and label, of a window or of a batch
Cut = TypeVar("Cut", bound=Events)
T = TypeVar("T")


class ItemOptions(TypedDict, total=False):
    """What `Dataset` and `Stream` make of a window of a recording.

    The first two can be given without their names, the others only by name.

    item: "frames": boolean (steps, 2, height, width). "counts": how many events there are, as uint8 (255: or more); in
        step timing that is 0 or 1 for each step. "sparse": the frames as a sparse COO tensor. "events": an array with
        the fields x, y, t, p, with t in whole microseconds since the window began, so that t // step_us is the step
        in both timings, and p 1 for ON and 0 for OFF, as int8. "voxels": float32 (bins, height, width), the events
        with their sign, shared by the two bins that are nearest in time. "time_surface": (steps, 2, height, width), for
        each pixel and polarity the time of the latest event, or with `tau_us` its exponential decay. Or a function of
        the window, which is a recording. Default "frames".
    label: "positions", "T", "T_velocity", "T_acceleration", "parameters", "parameters_velocity",
        "parameters_acceleration", "boxes", "visibility", "masks", "flow", "masks_with_edges", "flow_with_edges",
        "images", "sweep", "index", "shape" (actors,), int64: for each actor the place of its shape's name in `classes`,
        -1 if it is absent; for each event of the item, including its warm-up and whatever the delay: "actor",
        "event_flow", "echo", "source", "fired_us" (counted as t is); a function of the labelled part, which is a
        recording; a tuple or a mapping of these; None. Default "positions".
    warmup: steps before the labelled part, which are in the item and not in the label. Default 0.
    delay: the label of step t is the truth at step t + delay. May be negative. Default 0.
    sum: each frame is the sum of this many steps, up to its own (of boolean frames: whether any has an event).
        Default 1.
    every: keep only the last of every so many frames, and its label. Default 1.
    stack: each frame has the channels of this many kept frames, its own last. Default 1.
    bins: cut the item's time into so many equal parts, for frames, counts and time surfaces; voxels need it.
    bin_us: cut it into parts of so many microseconds instead, for frames, counts and time surfaces.
    bin_events: cut it into parts of so many events instead, for frames and counts; the last may have fewer.
    tau_us: the time constant of decaying time surfaces, in microseconds. Default: they hold times.
    dtype: the type of frames and counts. Default torch.bool for frames, torch.uint8 for counts.
    """

    warmup: int
    delay: int
    sum: int
    every: int
    stack: int
    bins: int | None
    bin_us: int | None
    bin_events: int | None
    tau_us: float | None
    dtype: torch.dtype | None


def with_options(kind: type[T]) -> type[T]:
    """A class that takes `ItemOptions`, whose `help` has them, too."""
    kind.__doc__ = f"{(kind.__doc__ or '').rstrip()}\n\n    {ItemOptions.__doc__}"
    return kind


@dataclass(frozen=True)
class ItemSpec:
    """How a window of a recording becomes an item and a label; the fields are those of `ItemOptions`."""

    item: Item = "frames"
    label: Label = "positions"
    warmup: int = 0
    delay: int = 0
    sum: int = 1
    every: int = 1
    stack: int = 1
    bins: int | None = None
    bin_us: int | None = None
    bin_events: int | None = None
    tau_us: float | None = None
    dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if not (callable(self.item) or self.item in ITEMS):
            hint = did_you_mean([self.item], ITEMS)
            allowed = f"{', '.join(ITEMS)}, or a function of the recording"
            raise GerdError(f"item {shorten(self.item)}: {hint}allowed: {allowed}")
        for leaf in leaves(self.label):
            if not (callable(leaf) or (isinstance(leaf, str) and leaf in LABELS)):
                allowed = f"{', '.join(LABELS)}, a function of the recording, or several of these"
                raise GerdError(f"label {shorten(leaf)}: {did_you_mean([leaf], LABELS)}allowed: {allowed}")
            if not callable(leaf) and leaf in PER_EVENT and not callable(self.item) and self.item != "events":
                raise GerdError(
                    f"label {leaf}: belongs to single events, and goes with the item events, not {self.item}"
                )
        for name, least in (("warmup", 0), ("sum", 1), ("every", 1), ("stack", 1), ("delay", None)):
            check_whole(name, getattr(self, name), least)
        if not isinstance(self.dtype, torch.dtype | None):
            raise GerdError(f"dtype {shorten(self.dtype)}: allowed: a type of PyTorch, such as torch.float32")
        self._check_bins()
        for name in ("sum", "every", "stack", "dtype"):
            if self.item not in DENSE and getattr(self, name) not in (1, None):
                raise GerdError(f"{name}: goes with the items {' and '.join(DENSE)}, not with {shorten(self.item)}")
            if self.item in DENSE and not self.is_dense and name != "dtype" and getattr(self, name) != 1:
                raise GerdError(f"{name}: goes with frames of steps, not with bins, bin_us or bin_events")
        if self.warmup % self.every:
            raise GerdError(f"warmup {self.warmup}: allowed with every={self.every}: a multiple of it")

    def _check_bins(self) -> None:
        """The options of bins go together, and with the item."""
        check_tau(self.tau_us)
        goes_with = {
            "bins": (*DENSE, *BINNED),
            "bin_us": (*DENSE, "time_surface"),
            "bin_events": DENSE,
            "tau_us": ("time_surface",),
        }
        for name, items in goes_with.items():
            if getattr(self, name) is not None and self.item not in items:
                raise GerdError(f"{name}: goes with the items {', '.join(items)}, not with {shorten(self.item)}")
        if self.item == "voxels" and self.bins is None:
            raise GerdError("item voxels: needs bins=, the number of bins")
        Bins(self.bins, self.bin_us, self.bin_events)  # refuses two of them

    @property
    def cut(self) -> Bins:
        """The bins of frames, counts and time surfaces."""
        return Bins(self.bins, self.bin_us, self.bin_events)

    @property
    def is_binned(self) -> bool:
        """Whether the item is made by `representations`."""
        return self.item in BINNED or (self.item in DENSE and not self.cut.are_steps)

    @property
    def is_dense(self) -> bool:
        """Whether the item is made of frames of steps."""
        return self.item in DENSE and not self.is_binned

    @property
    def needs_events(self) -> bool:
        """Whether anything but dense frames and the ground truth is looked at."""
        return not self.is_dense or any(map(callable, leaves(self.label)))

    @property
    def lead(self) -> int:
        """How many steps before its labelled part an item begins; negative if it begins later."""
        return self.warmup + self.sum + (self.stack - 2) * self.every

    def earliest(self) -> int:
        """The first step at which a labelled part can begin."""
        return max(self.warmup, self.lead, -self.delay)

    def starts(self, length: int, steps: int | None, stride: int | None, rest: str) -> tuple[np.ndarray, int]:
        """Where the labelled parts of a recording of `length` steps begin, and how long they are."""
        low = self.earliest()
        room = length - max(self.delay, 0) - low  # steps that can be labelled
        if steps is None:
            steps = max(room // self.every, 1) * self.every
        if steps % self.every:
            raise GerdError(f"steps {steps}: allowed with every={self.every}: a multiple of it")
        if steps > room:
            needed = f"{low} before the labelled part and {max(self.delay, 0)} after it"
            raise GerdError(f"steps {steps}: the recording has {length}, of which {needed} are needed")
        last = low + room - steps
        windows = (last - low) // (stride or steps) + 1
        if windows > MOST_WINDOWS:
            raise GerdError(f"steps {steps}: makes {windows} windows of {length} steps; allowed: up to {MOST_WINDOWS}")
        result = np.arange(low, last + 1, stride or steps)
        if rest == "overlap" and result[-1] != last:
            result = np.append(result, last)
        return result, steps

    def span(self, at: int, steps: int) -> tuple[int, int]:
        """The steps that are needed for the window whose labelled part begins at `at`: from and up to."""
        return min(at - self.lead, at + self.delay), max(at, at + self.delay) + steps

    def view(self, recording: Recording, at: int, steps: int) -> Sample:
        """Item and label; `recording` may be a window of the whole one, in which `at` is counted."""
        part = self.part(recording, at, steps)
        return self.item_of(part), label_of(self.label, self.labelled(recording, at, steps, part), self.every)

    def part(self, recording: Cut, at: int, steps: int) -> Cut:
        """The steps that an item is made from."""
        begin = at - recording.first
        return recording.window(begin - self.lead, begin + steps)

    def labelled(self, recording: Recording, at: int, steps: int, part: Recording) -> Labelled:
        """What a label is made from; `part` is what its item is made from."""
        begin = at + self.delay - recording.first
        end = begin + steps
        return Labelled(recording.truth[begin:end], lambda: recording.window(begin, end), lambda: part)

    def item_of(self, part: Events) -> Tensors:
        """The item that is made from these steps."""
        if self.is_dense:
            return self.frames_at(part.places, (part.steps, 2, part.height, part.width), part.exact)
        if callable(self.item):
            return self.item(part)
        if self.is_binned:
            return self.represented([part])[0][0]
        if self.item == "sparse":
            return part.sparse()
        events = part.events.view(ITEM_DTYPE)
        events["t"] = part.codec.elapsed(part.keys, part.step_us)
        return events

    def represented(self, parts: Sequence[Events], device: str = "cpu") -> tuple[Tensor, Tensor]:
        """(items, longest, …), made on the device, and the length of each: the items that are binned."""
        windows = representations.Windows.of(parts, device)
        if self.item == "time_surface":
            return representations.time_surfaces(windows, self.cut, self.tau_us)
        if self.bins is not None and self.item == "voxels":
            return representations.voxels(windows, self.bins), torch.full_like(windows.counts, self.bins)
        result, lengths = representations.frames(windows, self.cut, self.item == "counts")
        return result if self.dtype is None else result.to(self.dtype), lengths

    def frames_at(self, places: NDArray[np.int64], shape: tuple[int, ...], repeated: bool) -> Tensor:
        """Dense frames from the places of the events in them; `shape` is that of the boolean frames, (…, steps, …).

        `repeated` says that a place can have several events, as in exact timing.
        """
        dtype = self.dtype or (torch.uint8 if self.item == "counts" else torch.bool)
        straight = self.sum == self.every == self.stack == 1 and dtype in _NUMPY  # spares a pass through the memory
        counted = repeated and self.item == "counts"
        frames = zeros(shape, _NUMPY[dtype] if straight else np.uint8 if counted else np.bool_)
        if counted:
            add_events(frames.reshape(-1), places)
        else:
            frames.reshape(-1)[places] = 1
        return torch.from_numpy(frames) if straight else self.combined(torch.from_numpy(frames))

    def kept(self, steps: int) -> int:
        """How many frames an item of so many steps has, where they are frames of steps."""
        return (steps - self.sum) // self.every + 2 - self.stack

    def combined(self, frames: Tensor) -> Tensor:
        """Frames (…, steps, 2, height, width), boolean or counts as uint8, summed, thinned out and stacked."""
        kept = (frames.shape[-4] - self.sum) // self.every + 1
        ends = kept * self.every
        result, *others = (frames[..., i : i + ends : self.every, :, :, :] for i in range(self.sum))
        if self.item == "counts":
            small = self.sum < 256 if frames.dtype == torch.bool else self.sum == 1
            result = result.to(torch.uint8 if small else torch.int32)
        for other in others:
            result = result.add_(other) if self.item == "counts" else result | other
        if self.stack > 1:
            count = kept - self.stack + 1
            result = torch.cat([result[..., i : i + count, :, :, :] for i in range(self.stack)], dim=-3)
        if frames.dtype == torch.uint8 and self.sum < 256:
            result = result.clamp_(max=255).to(torch.uint8)
        return result if self.dtype is None else result.to(self.dtype)

"""Dense representations of events: windows of recordings in; frames, voxel grids and time surfaces out, as tensors.

All of them are made from whole numbers by operations of PyTorch, on the device on which the tensors are wanted. Sums
are those of whole numbers, so they do not depend on the order, the device or the batch. Times are counted from the
window's beginning, as docs/conventions.md defines it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gerd.errors import GerdError, check_whole, shorten
from gerd.events.keys import Keys

if TYPE_CHECKING:
    from gerd.recording.events import Events

MOST_CELLS = 2**34  # in the bins of a window
LARGEST_PRODUCT = 2**62  # of the products of times


@dataclass(frozen=True)
class Windows:
    """The events of some windows of the same size, one window after the other, as int64 tensors on one device."""

    item: Tensor  # (events,): the window of each event
    t: Tensor  # (events,): microseconds since that window began
    y: Tensor
    x: Tensor
    p: Tensor
    counts: Tensor  # (items,): the events of each window
    duration: Tensor  # (items,): of each window, in microseconds
    step_us: Tensor  # (items,)
    tick_us: Tensor  # (items,): the time from one possible time of an event to the next
    longest: int  # microseconds, of all windows
    height: int
    width: int

    @classmethod
    def of(cls, windows: Sequence[Events], device: str = "cpu") -> Windows:
        """The events of recordings, or of windows of them, which have the same width and height."""
        height, width = windows[0].height, windows[0].width
        keys = torch.from_numpy(np.concatenate([each.keys for each in windows]).astype(np.int64)).to(device)
        counts, steps, step_us, ticks = (
            torch.tensor(numbers, device=device)
            for numbers in (
                [len(each) for each in windows],
                [each.steps for each in windows],
                [each.step_us for each in windows],
                [each.codec.ticks for each in windows],
            )
        )
        item = torch.repeat_interleave(torch.arange(len(windows), device=device), counts)
        tick_us = step_us // ticks
        tick, y, x, p = Keys(height, width).decoded(keys)
        longest = max(each.steps * each.step_us for each in windows)
        return cls(
            item=item,
            t=tick * tick_us[item],
            y=y,
            x=x,
            p=p,
            counts=counts,
            duration=steps * step_us,
            step_us=step_us,
            tick_us=tick_us,
            longest=longest,
            height=height,
            width=width,
        )

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.counts)

    def cells(self, which: Tensor, bins: int) -> Tensor:
        """Where each event lies in (items, bins, 2, height, width), laid out flat, if it is in bin `which`."""
        plane = (self.item * bins + which) * 2 + self.p
        return (plane * self.height + self.y) * self.width + self.x


@dataclass(frozen=True)
class Bins:
    """How windows are cut along time. At most one of these is given; without any, a bin is a step."""

    bins: int | None = None  # so many, which share the window's time equally
    bin_us: int | None = None  # of so many microseconds each; the last may reach beyond the window
    bin_events: int | None = None  # of so many events each; the last may have fewer

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        for name, value in given.items():
            check_whole(name, value, 1)
        if len(given) > 1:
            raise GerdError(f"{' and '.join(given)}: allowed: one of them")

    @property
    def are_steps(self) -> bool:
        return self.bins is self.bin_us is self.bin_events is None

    def cut(self, windows: Windows) -> tuple[Tensor, Tensor]:
        """(events,): the bin of each event; (items,): how many bins each window has."""
        if self.bins is not None:
            _check_product("bins", self.bins, windows)
            return windows.t * self.bins // windows.duration[windows.item], torch.full_like(windows.counts, self.bins)
        if self.bin_us is not None:
            return windows.t // self.bin_us, -(-windows.duration // self.bin_us)
        if self.bin_events is not None:
            before = windows.counts.cumsum(0) - windows.counts
            number = torch.arange(len(windows.t), device=windows.t.device) - before[windows.item]
            return number // self.bin_events, -(-windows.counts // self.bin_events)
        return windows.t // windows.step_us[windows.item], windows.duration // windows.step_us

    def ends(self, windows: Windows, most: int) -> Tensor:
        """(items, most): when each bin ends, in microseconds; of bins that are cut by time."""
        number = torch.arange(1, most + 1, device=windows.t.device, dtype=torch.float64)
        if self.bins is not None:
            return number * (windows.duration[:, None] / self.bins)
        length = windows.step_us if self.bin_us is None else torch.full_like(windows.step_us, self.bin_us)
        return number * length[:, None]

    def _most(self, lengths: Tensor, windows: Windows) -> int:
        most = int(lengths.max())
        if most * 2 * windows.height * windows.width > MOST_CELLS:
            given = ", ".join(f"{name} {value}" for name, value in vars(self).items() if value is not None)
            size = f"{windows.width}×{windows.height}"
            raise GerdError(f"{given or 'steps'}: makes {most} frames of {size}; take wider bins")
        return most


def frames(windows: Windows, bins: Bins, counts: bool) -> tuple[Tensor, Tensor]:
    """(items, longest, 2, height, width), and how many bins each window has; empty bins follow in the shorter ones.

    Boolean: whether there is an event; or with `counts` how many, as uint8, 255 standing for any more.
    """
    which, lengths = bins.cut(windows)
    most = bins._most(lengths, windows)
    shape = (len(windows), most, 2, windows.height, windows.width)
    cells = windows.cells(which, most)
    if not counts:
        result = torch.zeros(shape, dtype=torch.bool, device=cells.device)
        result.view(-1)[cells] = True
        return result, lengths
    summed = torch.zeros(shape, dtype=torch.int32, device=cells.device)
    summed.view(-1).index_add_(0, cells, torch.ones_like(cells, dtype=torch.int32))
    return summed.clamp_(max=255).to(torch.uint8), lengths


def voxels(windows: Windows, bins: int) -> Tensor:
    """(items, bins, height, width), float32: ON counts 1 and OFF -1, shared by the two bins that are nearest in time.

    Of Zhu et al. (2019): with the time t of an event scaled to t* from 0 to bins - 1 over the window, bin b gets
    max(0, 1 - |b - t*|) of it. 0 and bins - 1 are the first and the last time that an event of the window can have.
    """
    check_whole("bins", bins, 1)
    Bins(bins)._most(torch.full_like(windows.counts, bins), windows)
    _check_product("bins", max(bins, len(windows.t)), windows)
    span = (windows.duration - windows.tick_us).clamp(min=1)
    of_event = span[windows.item]
    scaled = windows.t * (bins - 1)
    low = scaled // of_event
    above = scaled - low * of_event  # the part of the higher bin, in shares of `span`
    sign = 2 * windows.p - 1
    pixel = windows.y * windows.width + windows.x
    area = windows.height * windows.width
    summed = torch.zeros((len(windows), bins, windows.height, windows.width), dtype=torch.int64, device=low.device)
    for which, share in ((low, of_event - above), ((low + 1).clamp(max=bins - 1), above)):
        summed.view(-1).index_add_(0, (windows.item * bins + which) * area + pixel, sign * share)
    return (summed.double() / span[:, None, None, None]).float()


def time_surfaces(windows: Windows, bins: Bins, tau_us: float | None) -> tuple[Tensor, Tensor]:
    """(items, longest, 2, height, width): of each pixel and polarity, the latest event up to the end of each bin.

    Without `tau_us` its time in microseconds since the window began, as int64, and -1 where there was none. With it
    exp(-(end of the bin - that time) / tau_us), as float32, and 0 where there was none (Lagorce et al., 2016). Also how
    many bins each window has; zeros follow in the shorter ones.
    """
    which, lengths = bins.cut(windows)
    most = bins._most(lengths, windows)
    shape = (len(windows), most, 2, windows.height, windows.width)
    latest = torch.full(shape, -1, dtype=torch.int64, device=which.device)
    latest.view(-1).scatter_reduce_(0, windows.cells(which, most), windows.t, "amax")
    if most:
        latest = latest.cummax(dim=1).values
    result = latest
    if tau_us is not None:
        ends = bins.ends(windows, most)[:, :, None, None, None]
        result = torch.where(latest >= 0, torch.exp((latest - ends) / tau_us), 0.0).float()
    return result * present(lengths, most)[:, :, None, None, None], lengths


def check_tau(tau_us: float | None) -> None:
    """A clear error unless it is a time, or none."""
    if tau_us is not None and not 0 < tau_us < math.inf:
        raise GerdError(f"tau_us {shorten(tau_us)}: allowed: a number of microseconds above 0, or None")


def present(lengths: Tensor, most: int) -> Tensor:
    """(items, most): which places of padded items are theirs."""
    return torch.arange(most, device=lengths.device) < lengths[:, None]


def _check_product(name: str, factor: int, windows: Windows) -> None:
    if windows.longest * factor > LARGEST_PRODUCT:
        raise GerdError(f"{name} {factor}: too many for a window of {windows.longest} µs; take a shorter window")

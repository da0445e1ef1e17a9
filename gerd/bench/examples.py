"""Recordings of a split as a network takes them: what it gets, and what is true; on a device, some at a time.

Frames are boolean (recordings, steps, 2, height, width). Events are a mapping of tensors as `gerd.Stream` gives them:
x, y, t and p of all recordings one after the other, and `offsets`, so that recording i has the events from offset i to
offset i + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gerd.bench.split_table import Split, stream
from gerd.bench.task_table import Task, task

SIMULATED_AT_ONCE = 50  # recordings
EventArrays = Mapping[str, Tensor]


@dataclass(frozen=True)
class Examples:
    """Some recordings, and what is true of them."""

    inputs: Any  # frames, or `EventArrays`
    truth: Tensor  # (recordings, …), or (events, …) of events
    first_step: int  # the first that counts
    steps: int  # the length of each recording
    step_us: int

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.of_events else len(self.inputs)

    @property
    def of_events(self) -> bool:
        """Whether the network gets events."""
        return isinstance(self.inputs, Mapping)

    @property
    def offsets(self) -> Tensor:
        """(recordings + 1,): where the events of each recording begin."""
        result: Tensor = self.inputs["offsets"]
        return result

    @property
    def recording(self) -> Tensor:
        """(events,): the recording of each event."""
        return recording_of(self.inputs)

    @property
    def counts(self) -> Tensor:
        """(events,): whether an event comes from the first step that counts on."""
        late: Tensor = self.inputs["t"] >= self.first_step * self.step_us
        return late

    def __getitem__(self, rows: Tensor) -> Examples:
        """The recordings with these numbers, in this order."""
        if not self.of_events:
            return replace(self, inputs=self.inputs[rows], truth=self.truth[rows])
        begins, ends = self.offsets[:-1][rows], self.offsets[1:][rows]
        lengths = ends - begins
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        at = torch.arange(int(offsets[-1]), device=offsets.device)
        which = at + (begins - offsets[:-1]).repeat_interleave(lengths)
        inputs = {name: values[which] for name, values in self.inputs.items() if name != "offsets"}
        return replace(self, inputs={**inputs, "offsets": offsets}, truth=self.truth[which])

    def first(self, count: int) -> Examples:
        """So many of them, or all if there are fewer."""
        return self[torch.arange(min(count, len(self)), device=self.truth.device)]

    def parts(self, size: int) -> Iterator[Examples]:
        """All recordings in their order, so many at a time."""
        for rows in torch.arange(len(self), device=self.truth.device).split(size):
            yield self[rows]


def recording_of(events: EventArrays) -> Tensor:
    """(events,): the number of the recording that each event belongs to, counted from 0."""
    lengths = events["offsets"].diff()
    return torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)


def examples_of(splits: Sequence[Split], device: str, count: int | None = None) -> list[Examples]:
    """The recordings of some splits of a task, or the first `count` of each, those of one length together."""
    groups: dict[tuple[int, int], list[Examples]] = {}
    for each in splits:
        made = _examples(each, device, each.count if count is None else min(count, each.count))
        groups.setdefault((made.steps, made.first_step), []).append(made)
    return [_joined(parts) for parts in groups.values()]


def _examples(split: Split, device: str, count: int) -> Examples:
    of = task(split.task)
    size = max(number for number in range(1, SIMULATED_AT_ONCE + 1) if count % number == split.count % number == 0)
    source = stream(of.name, split, size, device)
    parts = []
    for number in range(count // size):
        inputs, label = source.batch(number)
        truth = _truth(of, label).to(device)
        parts.append(Examples(inputs, truth, split.first_step or 0, split.steps, split.config.step_us))
    return _joined(parts)


def _truth(task: Task, label: Any) -> Tensor:
    """What `METRICS` compare answers with, from the label of a batch."""
    truth: Tensor
    if task.name == "locate":
        truth = label[:, :, 0]
    elif task.name == "transform":
        truth = torch.stack([label["T"], label["T_velocity"]], dim=3)[:, :, 0, :, :2]
    elif task.name == "classify":
        truth = label[:, 0]
    else:
        truth = label != 0 if task.name == "noise" else label
    return truth


def _joined(parts: Sequence[Examples]) -> Examples:
    """Examples of the same kind, one after another."""
    first = parts[0]
    truth = torch.cat([part.truth for part in parts])
    if not first.of_events:
        return replace(first, inputs=torch.cat([part.inputs for part in parts]), truth=truth)
    lengths = torch.cat([part.offsets.diff() for part in parts])
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    names = [name for name in first.inputs if name != "offsets"]
    inputs = {name: torch.cat([part.inputs[name] for part in parts]) for name in names}
    return replace(first, inputs={**inputs, "offsets": offsets}, truth=truth)

"""Items to a batch: dense tensors are stacked, and event lists of different lengths are joined or padded.

`collate` goes into `DataLoader(collate_fn=…)`. It takes tensors, sparse tensors, event arrays, numbers, strings, and
tuples and mappings of these; anything else becomes a list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.calls import explained
from gerd.errors import GerdError
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.recording.representations import present
from gerd.training.items import ItemSpec, Sample
from gerd.training.labels import OF_TRUTH, Label, Labelled, PerEvent, Tensors, label_of, label_of_truths

Window = tuple[Recording, int, int]  # a recording, its first labelled step, and how many there are


@explained
def collate(items: Sequence[Tensors], pad: bool = False) -> Tensors:
    """Return one batch of the items.

    Event arrays become a mapping of their fields x, y, t and p: one after the other with `offsets`, so that item i has
    the rows from offset i to offset i + 1; or, with `pad`, (items, longest) with zeros at the end and a `mask` of what
    is an event. Labels of events are joined or padded in the same way. Sparse tensors become one sparse tensor with the
    item as its first axis.

    With `pad`, dense items of pairs (item, label) become a mapping, too: `values` (items, longest, …) with zeros at the
    end, and a `mask` (items, longest) of what is there. Their labels get NaN at the end, or zeros if they are not
    floats.
    """
    if not items:
        raise GerdError("there are no items to make a batch of")
    first = items[0]
    if pad and isinstance(first, tuple) and len(first) == 2 and _is_dense(first[0]):
        dense, labels = zip(*items, strict=True)
        values = _stacked(_padded_with(dense, 0))
        lengths = torch.tensor([len(item) for item in dense])
        return {"values": values, "mask": present(lengths, values.shape[1])}, collate_labels(labels, pad)
    return collate_labels(items, pad)


def _is_dense(item: object) -> bool:
    return isinstance(item, Tensor) and item.layout == torch.strided and item.ndim > 0


def collate_labels(items: Sequence[Tensors], pad: bool) -> Tensors:
    """A batch of labels, or of other parts of items."""
    first = items[0]
    if isinstance(first, PerEvent):
        rows = [item.numpy() for item in items]
        return _padded(rows, _mask(rows)) if pad else torch.from_numpy(np.concatenate(rows))
    if isinstance(first, Tensor):
        if first.layout == torch.sparse_coo:
            return _sparse(items)
        return _stacked(_padded_with(items, math.nan) if pad else items)
    if isinstance(first, np.ndarray):
        if first.dtype.names and first.ndim == 1:
            return _padded_events(items) if pad else _concatenated(items)
        if first.dtype.names:
            return {name: collate_labels([item[name] for item in items], pad) for name in first.dtype.names}
        return _stacked([torch.from_numpy(np.ascontiguousarray(item)) for item in items])
    if isinstance(first, Mapping):
        return {key: collate_labels([item[key] for item in items], pad) for key in first}
    if isinstance(first, tuple):
        return tuple(collate_labels(column, pad) for column in zip(*items, strict=True))
    if isinstance(first, int | float | np.number):
        return torch.as_tensor(items)
    return list(items)


def gather(
    spec: ItemSpec, windows: Sequence[Window], pad: bool = False, travels: bool = False, device: str = "cpu"
) -> Sample:
    """The batch of the items and labels of some windows; see `gather_items`."""
    parts = [spec.part(*window) for window in windows]
    labelled = [spec.labelled(*window, part) for window, part in zip(windows, parts, strict=True)]
    labels = labels_of(spec.label, labelled, spec.every, pad)
    return gather_items(spec, parts, pad, travels, device), labels


def gather_items(
    spec: ItemSpec, parts: Sequence[Events], pad: bool = False, travels: bool = False, device: str = "cpu"
) -> Tensors:
    """The batch of the items that are made from these steps.

    Frames are written straight into the batch. A batch of them that `travels` to another process is sent as events,
    which takes a fraction of the time and memory, and becomes frames there. What is binned is made on the `device`.
    """
    if not (spec.is_dense or spec.is_binned):
        return collate_labels([spec.item_of(part) for part in parts], pad)
    check_shapes((part.height, part.width) for part in parts)
    if spec.is_binned:
        return _with_mask(*spec.represented(parts, device), pad)
    longest = max(part.steps for part in parts)
    shape = (longest, 2, parts[0].height, parts[0].width)
    if not pad:
        check_shapes((part.steps, *shape[1:]) for part in parts)
    size = math.prod(shape)
    places = np.concatenate([part.places + i * size for i, part in enumerate(parts)])
    repeated = any(part.exact for part in parts)
    frames = (replace(spec, label=None), places, (len(parts), *shape), repeated)
    if travels and not pad:
        return _Frames(frames)
    kept = torch.tensor([spec.kept(part.steps) for part in parts])
    return _with_mask(ItemSpec.frames_at(*frames), kept, pad)


def labels_of(label: Label, windows: Sequence[Labelled], every: int, pad: bool) -> Tensors:
    """The batch of the labels of some windows, each of their truths worked out at once where all are of one shape."""
    if isinstance(label, Mapping):
        return {name: labels_of(below, windows, every, pad) for name, below in label.items()}
    if isinstance(label, tuple | list):
        return tuple(labels_of(below, windows, every, pad) for below in label)
    truths = [window.truth for window in windows]
    if isinstance(label, str) and label in OF_TRUTH and len({truth.shape for truth in truths}) == 1:
        return label_of_truths(label, truths, every)
    return collate_labels([label_of(label, window, every) for window in windows], pad)


def _with_mask(values: Tensor, lengths: Tensor, pad: bool) -> Tensors:
    """Dense items of these lengths: the tensor itself, or with `pad` a mapping of it and its mask."""
    if not pad:
        check_shapes((length, *values.shape[2:]) for length in lengths.unique().tolist())
        return values
    mask = present(lengths, values.shape[1])
    values[~mask] = 0  # sums reach beyond the end
    return {"values": values, "mask": mask}


def stack_padded(parts: Sequence[Tensor], pad: bool, order: Tensor) -> Tensors:
    """Batches of dense items as one, in this order; with `pad` a mapping with a mask, and lengths may differ."""
    if not pad:
        check_shapes(part.shape[1:] for part in parts)
        return parts[0] if len(parts) == 1 else torch.cat(list(parts))[order]
    most = max(part.shape[1] for part in parts)
    lengths = torch.cat([part.new_full((len(part),), part.shape[1], dtype=torch.int64) for part in parts])
    values = torch.cat([_lengthened(part, 1, most, 0) for part in parts])
    return {"values": values[order], "mask": present(lengths, most)[order]}


def _padded_with(items: Sequence[Tensor], filling: float) -> list[Tensor]:
    """The items, all as long as the longest; at the end of floats is the filling, and otherwise zeros."""
    if items[0].ndim == 0:
        return list(items)
    most = max(len(item) for item in items)
    return [_lengthened(item, 0, most, filling if item.is_floating_point() else 0) for item in items]


def _lengthened(item: Tensor, axis: int, length: int, filling: float) -> Tensor:
    if item.shape[axis] == length:
        return item
    shape = list(item.shape)
    shape[axis] = length - shape[axis]
    return torch.cat([item, item.new_full(shape, filling)], axis)


@dataclass(frozen=True)
class _Frames:
    """A batch of frames, as the places of the events in it; it becomes a tensor on its way to another process."""

    of: tuple[ItemSpec, NDArray[np.int64], tuple[int, ...], bool]  # what `frames_at` takes

    def __reduce__(self) -> tuple[object, ...]:
        return ItemSpec.frames_at, self.of


def check_shapes(shapes: Iterable[Sequence[int]]) -> None:
    """A clear error unless all shapes are the same."""
    different = sorted({tuple(shape) for shape in shapes})
    if len(different) > 1:
        shown = " and ".join(map(str, different[:2]))
        advice = "choose recordings of one size; pad=True pads items of different lengths"
        raise GerdError(f"items of the shapes {shown} do not fit into one batch; {advice}")


def _stacked(items: Sequence[Tensor]) -> Tensor:
    check_shapes(item.shape for item in items)
    return torch.utils.data.default_collate(list(items))  # straight into shared memory, in a worker


def _sparse(items: Sequence[Tensor]) -> Tensor:
    check_shapes(item.shape for item in items)
    items = [item.coalesce() for item in items]
    rows = torch.repeat_interleave(torch.tensor([item.values().shape[0] for item in items]))
    indices = torch.cat([rows[None], torch.cat([item.indices() for item in items], dim=1)])
    values = torch.cat([item.values() for item in items])
    shape = (len(items), *items[0].shape)
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False, is_coalesced=True)


def _concatenated(items: Sequence[np.ndarray]) -> dict[str, Tensor]:
    joined = np.concatenate(items)
    lengths = torch.tensor([0, *map(len, items)])
    fields = {name: torch.from_numpy(np.ascontiguousarray(joined[name])) for name in joined.dtype.fields or ()}
    return {**fields, "offsets": lengths.cumsum(0)}


def _mask(items: Sequence[np.ndarray]) -> NDArray[np.bool_]:
    """(items, longest): which places of padded items are rows of theirs."""
    lengths = np.array([len(item) for item in items])
    return np.arange(lengths.max()) < lengths[:, None]


def _padded(items: Sequence[np.ndarray], mask: NDArray[np.bool_]) -> Tensor:
    result = np.zeros((*mask.shape, *items[0].shape[1:]), items[0].dtype)
    result[mask] = np.concatenate(items)
    return torch.from_numpy(result)


def _padded_events(items: Sequence[np.ndarray]) -> dict[str, Tensor]:
    mask = _mask(items)
    fields = {name: _padded([item[name] for item in items], mask) for name in items[0].dtype.fields or ()}
    return {**fields, "mask": torch.from_numpy(mask)}

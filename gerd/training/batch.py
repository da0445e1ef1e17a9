"""Items to a batch: dense tensors are stacked, and event lists of different lengths are joined or padded.

`collate` goes into `DataLoader(collate_fn=…)`. It takes tensors, sparse tensors, event arrays, numbers, strings, and
tuples and mappings of these; anything else becomes a list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError
from gerd.recording.recording import Recording
from gerd.training.items import ItemSpec, PerEvent

Window = tuple[Recording, int, int]  # a recording, its first labelled step, and how many there are


def collate(items: Sequence[Any], pad: bool = False) -> Any:
    """One batch of the items.

    Event arrays become a mapping of their fields x, y, t and p: one after the other with `offsets`, so that item i has
    the rows from offset i to offset i + 1; or, with `pad`, (items, longest) with zeros at the end and a `mask` of what
    is an event. Labels of events are joined or padded in the same way. Sparse tensors become one sparse tensor with the
    item as its first axis.
    """
    if not items:
        raise GerdError("there are no items to make a batch of")
    first = items[0]
    if isinstance(first, PerEvent):
        rows = [item.numpy() for item in items]
        return _padded(rows, _mask(rows)) if pad else torch.from_numpy(np.concatenate(rows))
    if isinstance(first, Tensor):
        return _sparse(items) if first.layout == torch.sparse_coo else _stacked(items)
    if isinstance(first, np.ndarray):
        if first.dtype.names and first.ndim == 1:
            return _padded_events(items) if pad else _concatenated(items)
        if first.dtype.names:
            return {name: collate([item[name] for item in items]) for name in first.dtype.names}
        return _stacked([torch.from_numpy(np.ascontiguousarray(item)) for item in items])
    if isinstance(first, Mapping):
        return {key: collate([item[key] for item in items], pad) for key in first}
    if isinstance(first, tuple):
        return tuple(collate(column, pad) for column in zip(*items, strict=True))
    if isinstance(first, int | float | np.number):
        return torch.as_tensor(items)
    return list(items)


def gather(spec: ItemSpec, windows: Sequence[Window], pad: bool = False, travels: bool = False) -> tuple[Any, Any]:
    """The batch of the items and labels of some windows.

    Frames are written straight into the batch. A batch that `travels` to another process is sent as events, which takes
    a fraction of the time and memory, and becomes frames there.
    """
    labels = collate([spec.label_of(*window) for window in windows], pad)
    if not spec.is_dense:
        return collate([spec.item_of(*window) for window in windows], pad), labels
    parts = [spec.part(*window) for window in windows]
    shapes = [(part.steps, 2, part.height, part.width) for part in parts]
    check_shapes(shapes)
    size = math.prod(shapes[0])
    places = np.concatenate([part.places + i * size for i, part in enumerate(parts)])
    repeated = any(part.config.timing == "exact" for part in parts)
    frames = (replace(spec, label=None), places, (len(parts), *shapes[0]), repeated)
    return _Frames(frames) if travels else ItemSpec.frames_at(*frames), labels


@dataclass(frozen=True)
class _Frames:
    """A batch of frames, as the places of the events in it; it becomes a tensor on its way to another process."""

    of: tuple[ItemSpec, NDArray[np.int64], tuple[int, ...], bool]  # what `frames_at` takes

    def __reduce__(self) -> tuple[Any, ...]:
        return ItemSpec.frames_at, self.of


def check_shapes(shapes: Iterable[Sequence[int]]) -> None:
    """A clear error unless all shapes are the same."""
    different = sorted({tuple(shape) for shape in shapes})
    if len(different) > 1:
        shown = " and ".join(map(str, different[:2]))
        raise GerdError(f"items of the shapes {shown} do not fit into one batch; choose recordings of one size")


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

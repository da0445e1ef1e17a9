"""The picture that a scene shows: outlines in, counts of sub-pixels out, dense over the frame, on any device.

Crossings are found on the host, because some devices have no float64, and sent as integers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gerd.events import rasterise
from gerd.events.definition.rules import column, crossing_of_side, crossings_of_ellipse
from gerd.scene.scenes import Scenes

MOST_SIDES = 2**22  # sides, times sub-rows, that are asked at once


def activation(scenes: Scenes, steps: np.ndarray, device: str = "cpu") -> Tensor:
    """(recordings, steps, height, width) int32: the visible sub-pixels of each pixel, times their intensity."""
    ends, jumps = visible(scenes, steps, device)
    f, width = scenes.upsampling, scenes.width
    pixel = ends // f
    rest = ends % f
    # A jump at column c raises its own pixel by the part right of c and every later pixel in full: a running sum.
    batch, count, rows, slots = ends.shape
    rises = torch.zeros((batch * count, scenes.height, width + 2), dtype=torch.int32, device=device)
    row = (torch.arange(rows, device=device) // f)[:, None] * (width + 2)
    flat_pixel = (row + pixel).long().reshape(batch * count, rows * slots)
    flat = rises.view(batch * count, -1)
    flat.scatter_add_(1, flat_pixel, (jumps * (f - rest)).reshape(flat_pixel.shape))
    flat.scatter_add_(1, flat_pixel + 1, (jumps * rest).reshape(flat_pixel.shape))
    return rises.cumsum(-1, dtype=torch.int32)[..., :width].reshape(batch, count, scenes.height, width)


def visible(scenes: Scenes, steps: np.ndarray, device: str) -> tuple[Tensor, Tensor]:
    """(recordings, steps, sub-rows, slots): columns where the picture changes along a sub-row, and by how much."""
    borders = rasterise.borders(scenes, steps)
    runs = [_crossings(scenes, borders, piece).to(device) for piece in range(len(borders.actor))]
    shape = (len(scenes), steps.shape[-1], scenes.height * scenes.upsampling, 0)
    intensity = torch.from_numpy(scenes.intensity).to(device)
    ends = torch.cat([torch.zeros(shape, dtype=torch.int32, device=device), *runs], dim=-1).sort(dim=-1).values
    before, after = torch.zeros_like(ends), torch.zeros_like(ends)  # the picture's value left and right of each end
    for piece, run in enumerate(runs):  # nearer pieces overwrite farther ones
        bright = intensity[:, borders.actor[piece]].view(-1, 1, 1, 1)
        before = torch.where(torch.searchsorted(run, ends) % 2 == 1, bright, before)
        after = torch.where(torch.searchsorted(run, ends, right=True) % 2 == 1, bright, after)
    again = torch.zeros_like(ends, dtype=torch.bool)  # of several ends in one column, the first stands for all
    again[..., 1:] = ends[..., 1:] == ends[..., :-1]
    return ends, torch.where(again, 0, after - before)


def _crossings(scenes: Scenes, borders: rasterise.Borders, piece: int) -> Tensor:
    """(recordings, steps, sub-rows, crossings) int32: a piece's crossings, the unused ones at the right border."""
    coefficients = borders.coefficients[:, :, borders.first[piece] : borders.first[piece + 1]]
    part = torch.from_numpy(np.ascontiguousarray(np.moveaxis(coefficients, -1, 0)[..., None, :]))
    right = scenes.width * scenes.upsampling
    rows = (torch.arange(scenes.height * scenes.upsampling, dtype=torch.float64) + 0.5)[:, None]
    some = max(1, MOST_SIDES // max(1, part[0].numel()))  # sub-rows in which all sides are asked at once
    columns = [_columns(y, part, bool(borders.is_ellipse[piece]), right) for y in rows.split(some)]
    most = max(block.shape[-1] for block in columns)
    padded = [torch.nn.functional.pad(block, (0, most - block.shape[-1]), value=right) for block in columns]
    return torch.cat(padded, dim=-2)


def _columns(y: Tensor, part: Tensor, is_ellipse: bool, right: int) -> Tensor:
    """(recordings, steps, sub-rows, crossings) int32: those of a piece with the sub-rows at `y`."""
    a, b, c, d, e = part
    if is_ellipse:
        enters, leaves, crosses = crossings_of_ellipse(y, a, b, c, d, e)
        x = torch.cat([enters, leaves], dim=-1)
        crosses = crosses.expand(*crosses.shape[:-1], 2)
    else:
        x, crosses = crossing_of_side(y, a, b, c, d)
    columns = torch.where(crosses, column(x, right), right).sort(dim=-1).values
    most = int(crosses.sum(-1).max()) if crosses.numel() else 0
    return columns[..., :most].contiguous()

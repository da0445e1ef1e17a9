"""How a transformation acts on what a model says: g and f(x) in, ρ(g) f(x) out.

Places, matrices T, heat maps and scores are built in. The result is not a number where nothing is known of it: beyond
the frame, or at steps that the recording of x does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from gerd.errors import GerdError
from gerd.scene.transformation import Transformation

Action = Callable[[Transformation, Tensor, tuple[int, int]], Tensor]  # g, f(x), (width, height) → ρ(g) f(x)


def numbers_of_one(acts: str | Action) -> int:
    """How many numbers of the output make one: the absolute error of coordinates is a distance in the plane."""
    return 2 if acts == "coordinates" else 1


def action(acts: str | Action) -> tuple[Action, int]:
    """How ρ(g) acts, and how many axes an output without steps has."""
    if callable(acts):
        return acts, 1
    built_in: dict[str, tuple[Action, int]] = {
        "coordinates": (act_on_coordinates, 2),
        "T": (act_on_matrices, 3),
        "heat map": (act_on_heat_maps, 3),
        "scores": (act_on_scores, 2),
    }
    if acts not in built_in:
        raise GerdError(f"acts {acts!r}: allowed: {', '.join(built_in)}, or a function")
    return built_in[acts]


def act_on_coordinates(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """Places (batch, steps, …, 2), or (batch, 2) at the last step."""
    _check_end(out, (2,), "coordinates: (batch, steps, …, 2)")
    G = _matrices(g, out, size, 2)
    at = _retimed(g, out, 2)
    return (G[..., :2, :2] @ at[..., None])[..., 0] + G[..., :2, 2]


def act_on_matrices(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """T (batch, steps, …, 3, 3), or (batch, 3, 3) at the last step: G·T."""
    _check_end(out, (3, 3), "T: (batch, steps, …, 3, 3)")
    return _matrices(g, out, size, 3) @ _retimed(g, out, 3)


def act_on_heat_maps(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:
    """Maps (batch, steps, …, rows, columns) of the whole frame: at p the value that was at G⁻¹p, interpolated."""
    flat = _retimed(g, out, 3)
    if not g.moves:
        return flat
    width, height = size
    rows, columns = out.shape[-2:]
    back = torch.linalg.inv(_matrices(g, out, size, 3))
    x = (torch.arange(columns, device=out.device, dtype=out.dtype) + 0.5) * (width / columns)
    y = (torch.arange(rows, device=out.device, dtype=out.dtype) + 0.5) * (height / rows)
    centres = torch.stack([x.expand(rows, columns), y[:, None].expand(rows, columns)], dim=-1)
    source = torch.einsum("...ij,rcj->...rci", back[..., :2, :2], centres) + back[..., None, None, :2, 2]
    frame = torch.tensor([width, height], device=out.device, dtype=out.dtype)
    maps = flat.reshape(-1, 1, rows, columns)
    grid = (source * 2 / frame - 1).expand(*out.shape, 2).reshape(-1, rows, columns, 2)
    half = torch.tensor([1 / columns, 1 / rows], device=out.device, dtype=out.dtype)  # beyond the last centres
    outside = (grid.abs() > 1 - half + 1e-9).any(-1)
    moved = F.grid_sample(maps, grid, mode="bilinear", padding_mode="border", align_corners=False)[:, 0]
    return moved.masked_fill(outside, math.nan).reshape(out.shape)


def act_on_scores(g: Transformation, out: Tensor, size: tuple[int, int]) -> Tensor:  # noqa: ARG001
    """Scores (batch, classes), which stay; or (batch, steps, classes), which follow the time scale."""
    return out if out.ndim <= 2 else _retimed(g, out, 2)


def _check_end(out: Tensor, end: tuple[int, ...], allowed: str) -> None:
    if out.shape[1:][-len(end) :] != end:
        raise GerdError(f"the model gave an output of shape {tuple(out.shape)}; allowed for {allowed}")


def _matrices(g: Transformation, out: Tensor, size: tuple[int, int], least: int) -> Tensor:
    """G at each step of an output, shaped to act on it; `least` is the number of its axes without steps."""
    if out.ndim <= least and not g.space.is_steady:
        raise GerdError(f"{g}: acts differently at each step; allowed: an output (batch, steps, …)")
    steps = out.shape[1] if out.ndim > least else 1
    G = torch.from_numpy(g.frame(*size).G(np.arange(steps))).to(out.device, out.dtype)
    return G.reshape(steps, *[1] * (out.ndim - least - 1), 3, 3) if out.ndim > least else G[0]


def _retimed(g: Transformation, out: Tensor, least: int) -> Tensor:
    """f(x) at s·t for each step t, between steps interpolated; not a number where the recording had ended."""
    s = g.time_scale
    if s == 1.0:
        return out
    if out.ndim <= least:
        raise GerdError(f"{g}: compares different steps; allowed: an output (batch, steps, …)")
    at = torch.arange(out.shape[1], device=out.device, dtype=out.dtype) * s
    low = at.floor().long().clamp(max=out.shape[1] - 1)
    high = (low + 1).clamp(max=out.shape[1] - 1)
    share = (at - low).reshape(-1, *[1] * (out.ndim - 2))
    mixed = out[:, low] * (1 - share) + out[:, high] * share
    return torch.where((at <= out.shape[1] - 1).reshape(share.shape), mixed, math.nan)

"""The `torch` backend: the definition, dense over the frame, on any device that PyTorch has.

Scenes in; for each chunk of steps, the events of a batch out. Everything after the crossings is integer arithmetic.
The other backends do the same with the same names, and skip what cannot change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from gerd.events import noise, rasterise
from gerd.events.keys import Keys
from gerd.events.parts import Events, Steps, chunks
from gerd.scene import philox
from gerd.scene.scenes import BLOCK, Scenes

CHUNK_VALUES = 2**24  # numbers in the largest intermediate tensor of a chunk


def run(scenes: Scenes, device: str = "cpu", chunk: int | None = None) -> Iterator[Events]:
    """The events of `scenes`, `chunk` steps at a time; the state of the pixels is carried from chunk to chunk."""
    for steps in stages(scenes, device, chunk):
        for row in range(len(scenes)):
            step, y, x, p = place = steps.events[row].nonzero(as_tuple=True)
            keys = Keys(scenes.height, scenes.width).encoded(step + int(steps.numbers[0]), y, x, p)
            shown = range(int(steps.numbers[0]), int(steps.numbers[-1]) + 1)
            yield Events(row, shown, keys.cpu().numpy(), (~steps.kept[row][place]).cpu().numpy())


def stages(scenes: Scenes, device: str = "cpu", chunk: int | None = None) -> Iterator[Steps]:
    """Every stage from the picture to the events, `chunk` steps at a time."""
    chunk = chunk or _chunk(scenes)
    state = initial_state(scenes, device)
    before = np.array([-scenes.warmup - 1])
    previous = _seen(scenes, activation(scenes, before, device), before)
    for piece in chain(chunks(-scenes.warmup, 0, chunk), chunks(0, scenes.steps, chunk)):
        steps = np.array(piece)
        scenes = scenes.resumed(steps)
        coverage = activation(scenes, steps, device)
        seen = _seen(scenes, coverage, steps)
        change = seen.diff(dim=1, prepend=previous)
        previous = seen[:, -1:]
        integrated, fired = torch.empty_like(change), torch.empty((*change.shape, 2), dtype=torch.bool, device=device)
        for i in range(len(steps)):
            integrated[:, i] = state = state + change[:, i]
            off, on = state < -scenes.threshold, state > scenes.threshold
            fired[:, i, ..., 0], fired[:, i, ..., 1] = off, on
            rest = 0 if scenes.reset_to_zero else state - scenes.threshold * (on.int() - off.int())
            state = torch.where(on | off, rest, state)
        if piece.start >= 0:  # before that, the warm-up
            yield Steps(steps, coverage, seen, change, integrated, fired, *_noisy(scenes, fired, steps))


def activation(scenes: Scenes, steps: np.ndarray, device: str = "cpu") -> Tensor:
    """(recordings, steps, height, width) int32: the visible sub-pixels of each pixel, times their intensity."""
    ends, jumps = visible(scenes, steps, device)
    f, width = scenes.upsampling, scenes.width
    pixel, rest = ends // f, ends % f
    # A jump at column c raises its own pixel by the part right of c and every later pixel in full: a running sum.
    batch, count, rows, slots = ends.shape
    rises = torch.zeros((batch * count, scenes.height, width + 2), dtype=torch.int32, device=device)
    row = (torch.arange(rows, device=device) // f)[:, None] * (width + 2)
    place = (row + pixel).long().reshape(batch * count, rows * slots)
    flat = rises.view(batch * count, -1)
    flat.scatter_add_(1, place, (jumps * (f - rest)).reshape(place.shape))
    flat.scatter_add_(1, place + 1, (jumps * rest).reshape(place.shape))
    return rises.cumsum(-1, dtype=torch.int32)[..., :width].reshape(batch, count, scenes.height, width)


def visible(scenes: Scenes, steps: np.ndarray, device: str) -> tuple[Tensor, Tensor]:
    """(recordings, steps, sub-rows, slots): columns where the picture changes along a sub-row, and by how much."""
    borders = rasterise.borders(scenes, steps)
    runs = [_crossings(scenes, borders, piece, device) for piece in range(len(borders.actor))]
    shape = (len(scenes), len(steps), scenes.height * scenes.upsampling, 0)
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


def _crossings(scenes: Scenes, borders: rasterise.Borders, piece: int, device: str) -> Tensor:
    """(recordings, steps, sub-rows, crossings) int32: a piece's crossings, the unused ones at the right border."""
    part = borders.coefficients[:, :, borders.first[piece] : borders.first[piece + 1]]
    a, b, c, d, e = torch.from_numpy(np.ascontiguousarray(np.moveaxis(part, -1, 0)[..., None, :])).to(device)
    y = (torch.arange(scenes.height * scenes.upsampling, device=device, dtype=torch.float64) + 0.5)[:, None]
    if borders.is_ellipse[piece]:
        dy = y - a
        gap = b - dy * dy
        crosses = (gap > 0).expand(*gap.shape[:-1], 2)
        half = e * torch.sqrt(gap.clamp(min=0))
        middle = c + d * dy
        x = torch.cat([middle - half, middle + half], dim=-1)
    else:
        crosses = (a <= y) & (y < b)
        x = c + (y - a) * d
    right = scenes.width * scenes.upsampling
    column = torch.ceil(x - 0.5).clamp(0, right)
    column = torch.where(crosses, column, right).int().sort(dim=-1).values
    most = int(crosses.sum(-1).max()) if crosses.numel() else 0
    return column[..., :most].contiguous()


def initial_state(scenes: Scenes, device: str = "cpu") -> Tensor:
    """(recordings, height, width) int32: the integrators before the first warm-up step."""
    shape = (len(scenes), scenes.height, scenes.width)
    if scenes.initial is not None:
        return torch.full(shape, scenes.initial, dtype=torch.int32, device=device)
    m = noise.largest_initial(scenes.threshold)
    pixel = torch.arange(scenes.height * scenes.width, device=device)
    index = torch.from_numpy(scenes.indices).to(device)[:, None]
    word = _words(scenes.seed, pixel, torch.zeros_like(pixel), index, philox.INITIAL)[0]
    return (((word * (2 * m + 1)) >> 32) - m).int().reshape(shape)


def _seen(scenes: Scenes, coverage: Tensor, steps: np.ndarray) -> Tensor:
    """The activations after shape noise."""
    if scenes.shape_noise == 0:
        return coverage
    missing, _ = _scattered(scenes, steps, scenes.shape_noise, philox.SHAPE, str(coverage.device))
    return torch.where(missing, 0, coverage)


def _noisy(scenes: Scenes, fired: Tensor, steps: np.ndarray) -> tuple[Tensor, Tensor]:
    """What is left of what the integrators fired after event noise, and that with background noise."""
    device, kept = str(fired.device), fired.clone()
    if scenes.event_noise > 0:
        row, step, y, x, p = fired.nonzero(as_tuple=True)
        index = torch.from_numpy(scenes.indices).to(device)[row]
        word = _words(scenes.seed, y * scenes.width + x, step + int(steps[0]), index, philox.EVENT)[0]
        kept[row, step, y, x, p] = word >= noise.drop_bound(scenes.event_noise)
    if scenes.background == 0:
        return kept, kept
    picked, polarity = _scattered(scenes, steps, scenes.background, philox.BACKGROUND, device)
    return kept, kept | torch.stack([picked & ~polarity, picked & polarity], dim=-1)


def _scattered(
    scenes: Scenes, steps: np.ndarray, probability: float, purpose: int, device: str
) -> tuple[Tensor, Tensor]:
    """Two (recordings, steps, height, width) masks, by the rule of `noise.py`: picked pixels, and polarities."""
    blocks = -(-scenes.width // BLOCK)
    groups = -(-blocks // 4)
    y = torch.arange(scenes.height, device=device)[:, None]
    block = torch.arange(blocks, device=device)
    step = torch.from_numpy(steps).to(device)[:, None, None]
    index = torch.from_numpy(scenes.indices).to(device)[:, None, None, None]
    four = _words(scenes.seed, y * groups + block[::4] // 4, step, index, purpose)
    word = torch.stack(four, dim=-1).flatten(-2)[..., :blocks]
    tables = torch.from_numpy(noise.block_tables(probability, scenes.width)).to(device)
    table = torch.cat([tables[:1].expand(blocks - 1, -1), tables[1:]])
    count = (word[..., None] >= table).sum(-1)
    pixels = torch.full((blocks,), BLOCK, device=device)
    pixels[-1] = noise.last_block(scenes.width)
    chosen = torch.zeros_like(count)
    polarity = torch.zeros_like(count)
    for i in range(int(count.max()) + 1 if count.any() else 0):
        if i % 4 == 0:
            four = _words(scenes.seed, y * blocks + block, step, index, purpose + 256 * (1 + i // 4))
        if i == 0:
            polarity = four[0]
            continue
        j = pixels - count + (i - 1)
        bit = torch.ones_like(count) << ((four[i % 4] * (j + 1)) >> 32)
        bit = torch.where(chosen & bit != 0, torch.ones_like(count) << j.clamp(0, BLOCK), bit)
        chosen = torch.where(i <= count, chosen | bit, chosen)
    lane = torch.arange(BLOCK, device=device)
    spread = [(mask[..., None] >> lane & 1).bool().flatten(-2)[..., : scenes.width] for mask in (chosen, polarity)]
    return spread[0], spread[1]


def _words(seed: int, element: Tensor, step: Tensor, index: Tensor, purpose: int) -> list[Tensor]:
    """Philox 4x32-10 as in `philox.py`, on int64 tensors that hold 32-bit words."""
    low = 0xFFFFFFFF
    a, b, c = torch.broadcast_tensors(element & low, step & low, index & low)
    d = torch.full_like(a, purpose)
    key_a, key_b = seed & low, seed >> 32
    for _ in range(philox.ROUNDS):
        first, second = a * philox.MULTIPLIERS[0], c * philox.MULTIPLIERS[1]  # wraps as 64 bits: high word intact
        a, b, c, d = (second >> 32 & low) ^ b ^ key_a, second & low, (first >> 32 & low) ^ d ^ key_b, first & low
        key_a, key_b = (key_a + philox.KEY_STEPS[0]) & low, (key_b + philox.KEY_STEPS[1]) & low
    return [a, b, c, d]


def _chunk(scenes: Scenes) -> int:
    """Steps per chunk that keep the largest intermediate tensor near `CHUNK_VALUES` numbers."""
    slots = sum(2 if outline.is_circle else len(outline.segments) for outline in scenes.outlines) + 1
    per_step = scenes.height * (2 * scenes.width + scenes.upsampling * slots * 4)
    return max(1, CHUNK_VALUES // (per_step * max(1, len(scenes))))

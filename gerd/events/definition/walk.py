"""The `torch` backend: the definition, dense over the frame, on any device that PyTorch has.

Scenes in; for each chunk of steps, the events of a batch out. What the pixels see are the counts of `picture.py`, or
those of pictures that somebody else made. From there on everything is integer arithmetic but for the times of exact
timing, which are found on the host, because some devices have no float64.

The walk over the rules skips nothing here: every pixel, every step or, in exact timing, every instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gerd.events import exact, rasterise
from gerd.events.definition.picture import activation
from gerd.events.definition.rules import (
    dropped,
    gain,
    how_many,
    initial_state,
    integrate_and_fire,
    next_event,
    passage_us,
    passages,
    pick,
    response,
    stationary_state,
    threshold_ahead,
    words,
)
from gerd.events.keys import Keys
from gerd.events.pixel import noise
from gerd.events.pixel.response import Response
from gerd.events.pixel.thresholds import Thresholds
from gerd.events.shared import FROM_LEAK, Chunk, chunks
from gerd.scene import philox
from gerd.scene.scenes import Scenes

NEVER = -(2**62)  # microseconds: before all events
CHUNK_VALUES = 2**24  # numbers in the largest intermediate tensor of a chunk

# Of scenes at some times, on a device, (recordings, times, height, width) int32: the counts of their pixels.
Pictures = Callable[[Scenes, np.ndarray, str], Tensor]


class Worked(NamedTuple):
    """What happens at some steps of a batch: tensors (recordings, steps, height, width), masks with an axis OFF, ON."""

    steps: np.ndarray  # their numbers
    coverage: Tensor  # counts: sub-pixels times intensity
    seen: Tensor  # counts after shape noise
    difference: Tensor  # the response to what is seen now minus that of one step ago, and what has leaked in since
    integrator: Tensor  # after the difference was added and before an event resets it
    fired: Tensor  # masks
    kept: Tensor  # after event noise
    events: Tensor  # after background noise
    leaked: Tensor  # (recordings, steps, height, width): whether an ON event is put down to the leak


def run(scenes: Scenes, device: str = "cpu", chunk: int | None = None) -> Iterator[Chunk]:
    """The events of `scenes`, `chunk` steps at a time; the state of the pixels is carried from chunk to chunk."""
    if scenes.exact:
        fitting = _chunk(scenes)
        yield from exact.run(scenes, _Pixels(device), chunk or fitting, fitting)
    else:
        yield from _in_steps(scenes, stages(scenes, device, chunk))


def run_pictures(
    scenes: Scenes, pictures: Pictures, grid: exact.Grid | None, device: str, chunk: int
) -> Iterator[Chunk]:
    """The events of scenes before other pictures than their own; the grid is that of exact timing."""
    if grid is None:
        yield from _in_steps(scenes, stages(scenes, device, chunk, pictures))
    else:
        yield from exact.run_at(scenes, _Pixels(device, pictures), chunk, grid)


def _in_steps(scenes: Scenes, worked: Iterator[Worked]) -> Iterator[Chunk]:
    codec = Keys.of(scenes)
    for done in worked:
        first = int(done.steps[0])
        events, kept = (mask.movedim(2, -1) for mask in (done.events, done.kept))
        for row in range(len(scenes)):
            step, y, x, p = fired = events[row].nonzero(as_tuple=True)
            keys = codec.encoded(step + first, y, x, p)
            background = ~kept[row][fired]
            source = background.cpu().numpy().view(np.uint8)
            leaked = (done.leaked[row][step, y, x] & (p == 1)).cpu().numpy() & ~background.cpu().numpy()
            source = np.where(leaked, np.uint8(FROM_LEAK), source)
            yield Chunk(row, range(first, first + len(done.steps)), keys.cpu().numpy(), source)


def stages(
    scenes: Scenes, device: str = "cpu", chunk: int | None = None, pictures: Pictures = activation
) -> Iterator[Worked]:
    """Every stage from the picture to the events of a batch, `chunk` steps at a time."""
    chunk = chunk or _chunk(scenes)
    before = np.array([-scenes.warmup - 1])
    first = what_is_seen(scenes, pictures(scenes, before, device), before)
    state = _initial_states(scenes, first[:, 0])
    previous = responded(scenes, first)
    thresholds = _thresholds(scenes, device)
    ready = torch.full_like(state, -scenes.warmup)  # the step from which on a pixel may fire
    for piece in chain(chunks(-scenes.warmup, 0, chunk), chunks(0, scenes.steps, chunk)):
        steps = np.array(piece)
        scenes = scenes.resumed(steps)
        coverage = pictures(scenes, steps, device)
        seen = what_is_seen(scenes, coverage, steps)
        felt = responded(scenes, seen)
        difference = felt.diff(dim=1, prepend=previous)
        previous = felt[:, -1:]
        integrator = torch.empty_like(difference)
        fired = torch.empty((*seen.shape[:2], 2, *seen.shape[2:]), dtype=torch.bool, device=device)
        leaked = torch.zeros_like(seen, dtype=torch.bool)
        for i in range(len(steps)):
            if scenes.pixel.leak_hz > 0:
                leaked[:, i] = (difference[:, i] <= 0) & (state <= thresholds[0])
                at = torch.tensor([steps[i] - 1, steps[i]]) * scenes.step_us
                difference[:, i] += leak(scenes, thresholds[0], at).diff(dim=0).to(device)
            integrator[:, i], fired[:, i, 0], fired[:, i, 1], state = integrate_and_fire(
                state, difference[:, i], *thresholds, scenes.pixel.reset_to_zero, ready <= int(steps[i])
            )
            ready = torch.where(fired[:, i].any(dim=1), int(steps[i]) + scenes.rest, ready)
        if piece.start >= 0:  # before that, the warm-up
            yield Worked(steps, coverage, seen, difference, integrator, fired, *_noisy(scenes, fired, steps), leaked)


def states_at(scene: Scenes, steps: np.ndarray, seen_then: np.ndarray) -> np.ndarray:
    """(steps, height, width): the integrators of a batch of one in exact timing as steps end, with `seen_then`."""
    quiet = replace(scene, pixel=replace(scene.pixel, event_noise=0.0))
    own = quiet.in_own_time()
    pixels = _Pixels("cpu", from_start=True)
    rate = scene.trajectory.rate
    begin = exact.Instants(np.full((1, 1), float(-scene.warmup)), rate, scene.step_us / rate)
    first = what_is_seen(own, activation(own, begin.own), begin.steps)[:, 0]
    since = responded(scene, torch.from_numpy(seen_then)) - responded(scene, first)
    at = torch.tensor([-scene.warmup * begin.us_per_unit, *(steps * scene.step_us)])
    leaked = leak(scene, _thresholds(scene, "cpu")[0], at)
    result = (_initial_states(scene, first) + since + leaked[1:] - leaked[:1]).numpy()
    for resumed, instants in exact.slabs(own, rate, -scene.warmup, exact.last_unit(scene, scene.steps), _chunk(scene)):
        _, flagged, taken_off = (part.numpy() for part in pixels.fired(resumed, instants))
        step, y, x, _ = Keys.of(scene).decoded(flagged >> 1)
        for i, end in enumerate(steps):
            np.subtract.at(result[i], (y[step <= end], x[step <= end]), taken_off[step <= end])
    return result


class _Pixels:
    """The pixels of a batch in exact timing: their integrators, and how many events each has fired."""

    _state: Tensor
    _fired: Tensor
    _ready: Tensor  # microseconds from which on a pixel may fire
    _thresholds: tuple[Tensor, Tensor]

    def __init__(self, device: str, pictures: Pictures = activation, from_start: bool = False):
        self._device = device
        self._pictures = pictures
        self._from_start = from_start  # whether the warm-up's events are given, too
        self._begun = False  # whether there are a state, and numbers of events

    def passages(self, scenes: Scenes, instants: exact.Instants) -> list[np.ndarray]:
        """What the integrators fire between the instants, as `exact.flagged`."""
        row, events, _ = self.fired(scenes, instants)
        return [events[row == i].cpu().numpy() for i in range(len(scenes))]

    def fired(self, scenes: Scenes, instants: exact.Instants) -> tuple[Tensor, Tensor, Tensor]:
        """Three numbers of each event: its recording, its flagged key, and what it takes off its integrator."""
        seen = what_is_seen(scenes, self._pictures(scenes, instants.own, self._device), instants.steps)
        if not self._begun:
            self._begun = True
            self._state = _initial_states(scenes, seen[:, 0]).long()
            self._fired = torch.zeros_like(self._state)
            self._ready = torch.full_like(self._state, NEVER)
            self._thresholds = _thresholds(scenes, self._device)
        own = torch.from_numpy(instants.own)
        felt = responded(scenes, seen).long()
        between = self._held if scenes.rest > 0 else self._passed
        parts = [
            part
            for i in range(1, seen.shape[1])
            for part in between(scenes, own[:, i - 1], own[:, i], felt[:, i] - felt[:, i - 1], instants.us_per_unit)
        ]
        row, events, taken_off = (torch.cat(part) for part in zip(*parts, strict=True))
        return row, events, taken_off

    def _passed(
        self, scenes: Scenes, begin: Tensor, end: Tensor, change: Tensor, us_per_unit: float
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each passage of each pixel between two instants."""
        leaks, change = self._leaked(scenes, begin * us_per_unit, end * us_per_unit, change)
        ahead = threshold_ahead(change, *self._thresholds)
        number, left = passages(self._state, change, ahead)
        times = number[number > 0]
        row, y, x = (part.repeat_interleave(times) for part in number.nonzero(as_tuple=True))
        nth = torch.arange(len(row), device=self._device) - (times.cumsum(0) - times).repeat_interleave(times)
        move, threshold = change[row, y, x], ahead[row, y, x]
        state = self._state[row, y, x]
        missing = (nth + 1) * threshold - torch.where(move < 0, -state, state)
        own_row, wanted, size = (part.cpu() for part in (row, missing, move.abs()))
        us = passage_us(begin[own_row], (end - begin)[own_row], wanted, size, us_per_unit).to(self._device)
        taken_off = torch.where(move < 0, -threshold, threshold)
        yield self._events(scenes, row, y, x, us, move > 0, leaks[row, y, x], nth, taken_off)
        self._state = left
        self._fired = self._fired + number

    def _held(
        self, scenes: Scenes, begin: Tensor, end: Tensor, change: Tensor, us_per_unit: float
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The events of pixels that rest after each, between two instants: the first of each pixel, the second, …"""
        leaks, change = self._leaked(scenes, begin * us_per_unit, end * us_per_unit, change)
        done = torch.zeros_like(change)
        fires = done == 0
        on, off = (table.expand(change.shape).cpu() for table in self._thresholds)
        begin, end = (times[:, None, None].expand(change.shape) for times in (begin, end))
        to_zero, rest = scenes.pixel.reset_to_zero, scenes.rest
        while fires.any():
            before, seen = self._state, done
            v, ready, d = self._state.cpu(), self._ready.cpu(), change.cpu()  # for float64, which not all devices have
            made = next_event(v, done.cpu(), ready, d, on, off, begin, end, us_per_unit, to_zero, rest)
            fires, us, is_on, self._state, done, self._ready = (part.to(self._device) for part in made)
            taken_off = before + change.sign() * (done - seen) - self._state
            row, y, x = at = fires.nonzero(as_tuple=True)
            nth = torch.zeros_like(row)
            yield self._events(scenes, row, y, x, us[at], is_on[at], leaks[at], nth, taken_off[at])
            self._fired = self._fired + fires

    def _leaked(self, scenes: Scenes, begin: Tensor, end: Tensor, change: Tensor) -> tuple[Tensor, Tensor]:
        """Whether ON events between two times in µs are put down to the leak; and the change with what leaks in."""
        if scenes.pixel.leak_hz == 0:
            return torch.zeros_like(change, dtype=torch.bool), change
        on = self._thresholds[0]
        leaks = (change <= 0) & (self._state <= on)
        return leaks, change + (leak(scenes, on, end) - leak(scenes, on, begin)).to(self._device)

    def _events(
        self,
        scenes: Scenes,
        row: Tensor,
        y: Tensor,
        x: Tensor,
        us: Tensor,
        on: Tensor,
        leaks: Tensor,
        nth: Tensor,
        taken_off: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Row, flagged key and what is taken off, of the events that are recorded and kept."""
        index = torch.from_numpy(scenes.indices).to(self._device)[row]
        word = words(scenes.seed, y * scenes.width + x, self._fired[row, y, x] + nth, index, philox.EVENT)[0]
        recorded = ((us > 0) | self._from_start) & (us <= (scenes.steps - 1) * scenes.step_us)
        kept = recorded & ~dropped(word, noise.drop_bound(scenes.pixel.event_noise))
        events = exact.flagged(Keys.of(scenes), us, y, x, on.long(), (on & leaks).long())
        return row[kept], events[kept], taken_off[kept]

    def background(self, scenes: Scenes, steps: range) -> list[np.ndarray]:
        """Background noise at some steps, as `exact.flagged`."""
        picked, polarity = _scattered(scenes, np.array(steps), scenes.pixel.background, philox.BACKGROUND, self._device)
        row, at, y, x = picked.nonzero().cpu().numpy().T
        return exact.background_events(scenes, row, at + steps.start, y, x, polarity[picked].long().cpu().numpy())


def _initial_states(scenes: Scenes, seen: Tensor) -> Tensor:
    """(recordings, height, width) int32: the integrators before the first warm-up step, which sees `seen`."""
    pixel = torch.arange(scenes.height * scenes.width, device=seen.device)
    index = torch.from_numpy(scenes.indices).to(seen.device)[:, None]
    word, other, *_ = words(scenes.seed, pixel, torch.zeros_like(pixel), index, philox.INITIAL)
    word = word.reshape(seen.shape)
    if scenes.pixel.initial != "stationary":
        tables = Thresholds.of(scenes)
        least, most = (torch.tensor(table, device=seen.device) for table in (tables.least, tables.most))
        return initial_state(word, least, most).int()
    dark, actors = (torch.from_numpy(part).to(seen.device)[:, None] for part in (scenes.dark, scenes.present.sum(1)))
    left_by_dark = (other * actors >> 32 < dark).reshape(seen.shape)
    upward = (seen > 0) | ((seen == 0) & left_by_dark)
    return stationary_state(word, *_thresholds(scenes, str(seen.device)), upward).int()


def _thresholds(scenes: Scenes, device: str) -> tuple[Tensor, Tensor]:
    """(1, height, width): those of ON and those of OFF events."""
    tables, size = Thresholds.of(scenes), (1, scenes.height, scenes.width)
    on, off = (torch.tensor(table, device=device).expand(size) for table in (tables.on, tables.off))
    return on, off


def what_is_seen(scenes: Scenes, coverage: Tensor, steps: np.ndarray) -> Tensor:
    """The activations after shape noise."""
    if scenes.pixel.shape_noise == 0:
        return coverage
    return torch.where(missing(scenes, steps, str(coverage.device)), 0, coverage)


def leak(scenes: Scenes, threshold_on: Tensor, us: Tensor) -> Tensor:
    """(times, height, width) on the host: what has leaked into integrators with these thresholds (1, height, width)."""
    return gain(threshold_on.cpu(), scenes.pixel.leak_hz * 1e-6, us[:, None, None])


def responded(scenes: Scenes, seen: Tensor) -> Tensor:
    """What the integrators see of the counts: these, or their logarithms."""
    if scenes.pixel.log_response == 0:
        return seen
    tables = Response.of(scenes)
    return response(seen, torch.tensor(tables.table, device=seen.device), tables.lowest)


def missing(scenes: Scenes, steps: np.ndarray, device: str = "cpu") -> Tensor:
    """(recordings, steps, height, width): the pixels that shape noise takes out."""
    return _scattered(scenes, steps, scenes.pixel.shape_noise, philox.SHAPE, device)[0]


def _noisy(scenes: Scenes, fired: Tensor, steps: np.ndarray) -> tuple[Tensor, Tensor]:
    """The events that event noise leaves, and these with background noise added."""
    device = str(fired.device)
    kept = fired.clone()
    if scenes.pixel.event_noise > 0:
        row, step, p, y, x = fired.nonzero(as_tuple=True)
        index = torch.from_numpy(scenes.indices).to(device)[row]
        word = words(scenes.seed, y * scenes.width + x, step + int(steps[0]), index, philox.EVENT)[0]
        kept[row, step, p, y, x] = ~dropped(word, noise.drop_bound(scenes.pixel.event_noise))
    if scenes.pixel.background == 0:
        return kept, kept
    picked, polarity = _scattered(scenes, steps, scenes.pixel.background, philox.BACKGROUND, device)
    return kept, kept | torch.stack([picked & ~polarity, picked & polarity], dim=2)


def _scattered(
    scenes: Scenes, steps: np.ndarray, probability: float, purpose: int, device: str
) -> tuple[Tensor, Tensor]:
    """Two (recordings, steps, height, width) masks, by the rule of `noise.py`: picked pixels, and polarities."""
    pixels = scenes.height * scenes.width
    blocks = -(-pixels // noise.BLOCK)
    block = torch.arange(blocks, device=device)
    step = torch.from_numpy(steps).to(device)[..., None]
    index = torch.from_numpy(scenes.indices).to(device)[:, None, None]
    four = words(scenes.seed, block[: -(-blocks // noise.GROUP)], step, index, purpose)
    word = torch.stack(four, dim=-1).flatten(-2)[..., :blocks]
    tables = torch.from_numpy(noise.block_tables(probability, pixels)).to(device)
    count = how_many(word, torch.cat([tables[:1].expand(blocks - 1, -1), tables[1:]]))
    size = torch.full((blocks,), noise.BLOCK, device=device)
    size[-1] = noise.last_block(pixels)
    chosen, polarity = torch.zeros_like(count), torch.zeros_like(count)
    for i in range(int(count.max())):
        if i % 4 == 0:
            four = words(scenes.seed, block, step, index, purpose + noise.ROUND * (1 + i // 4))
        last = (size - count + i).clamp(max=noise.BLOCK - 1)  # more only where there is no pick number i
        bit = (i < count) * (torch.ones_like(count) << pick(four[i % 4], last, chosen))
        chosen = chosen | bit
        polarity = polarity | bit * (four[i % 4] & 1)
    number = torch.arange(noise.BLOCK, device=device)
    picked, is_on = ((mask[..., None] >> number & 1).bool().flatten(-2)[..., :pixels] for mask in (chosen, polarity))
    frame = (scenes.height, scenes.width)
    return picked.unflatten(-1, frame), is_on.unflatten(-1, frame)


def _chunk(scenes: Scenes) -> int:
    """Steps per chunk that keep the largest intermediate tensor near `CHUNK_VALUES` numbers."""
    return max(1, CHUNK_VALUES // (rasterise.values_of_picture(scenes) * max(1, len(scenes))))

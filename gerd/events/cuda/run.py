"""The `cuda` backend: scenes in, events out, or whole batches as frames that never leave the device.

A call makes a zeroed output, writes the signal into it, and then background noise where there is none. Frames have a
byte for each pixel and polarity. Where events are wanted, both are written as bits, from which a last kernel lists the
events in order; they come to the host in pinned memory, a piece at a time. Batches are cut to a memory budget. In
exact timing events are listed as they happen, and sorted on the host, or counted in frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gerd.errors import GerdError
from gerd.events import exact, rasterise
from gerd.events.cuda import kernels, output
from gerd.events.cuda import outlines as outline_kernels
from gerd.events.pixel import noise
from gerd.events.pixel.response import Response
from gerd.events.pixel.thresholds import Thresholds
from gerd.events.shared import FROM_LEAK, Chunk, chunks
from gerd.scene.scenes import Scenes

TILE, ROWS = 16, 8  # pixels across and down a tile, as the kernels have it
BANDS = 8  # bands of tiles that one step of `mark` looks at
WORDS_AT_ONCE = 512  # words of a frame that one program looks at
AT_ONCE = 128  # sub-rows, or blocks of noise, that one program looks at
REGISTERS = 64  # of a program for a tile: with more of them, fewer programs run at once
PIECE = 2**24  # events that are listed on the device before they come to the host
KINDS = {np.dtype(name): getattr(torch, name) for name in ("float64", "int64", "int32", "bool")}


def run(scenes: Scenes, device: str, chunk: int | None = None, budget: int | None = None) -> Iterator[Chunk]:
    """The events of `scenes`, in batches and chunks of steps that fit into `budget` bytes of device memory."""
    rows, fitting = _fit(scenes, device, budget)
    chunk = chunk or fitting
    for begin in range(0, len(scenes), rows):
        batch = scenes[begin : begin + rows]
        if scenes.exact:
            for events in exact.run(batch, _Pixels(batch, device), chunk, _instants(batch, device, budget)):
                yield events._replace(row=begin + events.row)
            continue
        for steps, words in _chunks(batch, device, chunk, bits=True):
            keys, background, bounds = _listed(words, batch, steps)
            source = background.view(np.uint8)
            for leaked in words[2:]:
                source[_are_among(leaked, keys, bounds, batch, steps)] = FROM_LEAK
            for i in range(len(batch)):
                part = slice(bounds[i], bounds[i + 1])
                yield Chunk(begin + i, steps, keys[part], source[part])


def frames(scenes: Scenes, device: str, counts: bool = False) -> Tensor:
    """The frames of all scenes (recordings, steps, 2, height, width) on the device, boolean or uint8 counts."""
    if scenes.exact:
        return _exact_frames(scenes, device, counts)
    ((_, result),) = _chunks(scenes, device, max(scenes.steps, scenes.warmup), bits=False)
    return result if counts else result.view(torch.bool)


def _exact_frames(scenes: Scenes, device: str, counts: bool) -> Tensor:
    shape = (len(scenes), scenes.steps, 2, scenes.height, scenes.width)
    result = torch.zeros(shape, dtype=torch.uint8, device=device)
    _, chance, _ = _chances(scenes, device)
    background = _Background(scenes, device, range(scenes.steps), chance) if scenes.pixel.background > 0 else None
    pixels = _Pixels(scenes, device)
    most = _instants(scenes, device)
    end = exact.last_unit(scenes, scenes.steps)
    for own, instants in exact.slabs(scenes.in_own_time(), scenes.trajectory.rate, -scenes.warmup, end, most):
        pixels.into_frames(own, instants, result, counts, last=bool(instants.own[:, -1].min() >= end))
    if background is not None:
        background.scatter(result, result, counted=counts)
        result[:, 0] = 0
    return result if counts else result.view(torch.bool)


def _fit(scenes: Scenes, device: str, budget: int | None) -> tuple[int, int]:
    """How many recordings, and how many steps of them, are made at once."""
    budget = budget or _budget(device)
    size = scenes.height * scenes.width
    bits = 20 if scenes.pixel.leak_hz > 0 else 8  # a bit for each event, twice; with a leak more of them, for a while
    per_step = bits * scenes.height * -(-scenes.width // TILE) + _outline_bytes(scenes)
    per_step += per_step // 2  # what is in between
    fixed = 4 * size * (1 + (scenes.rest > 0))  # the integrators, and since when they rest
    steps = scenes.steps + scenes.warmup + 1
    rows = int(budget // (fixed + per_step * steps))
    if rows >= 1:
        return min(rows, 65535), steps
    fitting = int((budget - fixed) // (2 * per_step))  # the chunk about step 0 may be as long as two
    if fitting < 1:
        needed = fixed + 2 * per_step
        raise GerdError(
            f"{scenes.width}×{scenes.height}: one step needs {needed} bytes of device memory, and {budget} are allowed"
        )
    return 1, fitting


def _budget(device: str) -> int:
    """Bytes of device memory that may be used."""
    return int(torch.cuda.mem_get_info(device)[0]) // 2 if device.startswith("cuda") else 2**30


def _outline_bytes(scenes: Scenes) -> int:
    """What the outlines of a recording need in one frame."""
    pieces = len(rasterise.layout(scenes))
    rows = (scenes.height + ROWS) * _fine(scenes.upsampling)
    return 40 * rasterise.entry_count(scenes) + pieces * (16 + 8 * rows)


def _instants(scenes: Scenes, device: str, budget: int | None = None) -> int:
    """At how many instants the outlines of a batch fit into half of the budget."""
    return max(1, (budget or _budget(device)) // (2 * len(scenes) * (_outline_bytes(scenes) + 1)))


def _chunks(scenes: Scenes, device: str, chunk: int, bits: bool) -> Iterator[tuple[range, Tensor]]:
    """The recorded steps of each chunk and their output: (recordings, steps, 2, height, width) uint8.

    With `bits` (2, recordings, steps, height, words of a row) int32, the signal and the noise; with
    a leak a third, what of the signal is put down to it.
    """
    height, width, f = scenes.height, scenes.width, scenes.upsampling
    whole = chunk >= max(scenes.steps, scenes.warmup)
    state = torch.empty((1,) if whole else (len(scenes), height, width), dtype=torch.int32, device=device)
    ready = torch.empty_like(state) if scenes.rest > 0 else state  # is looked at only then
    beside = _Beside(device)
    with beside:
        shape_chance, background_chance, model = _chances(scenes, device)
    for piece in chunks(-scenes.warmup, scenes.steps, chunk):
        begin = piece.start
        recorded = piece[max(0, -piece.start) :]
        if bits:
            shape = (2 + (scenes.pixel.leak_hz > 0), len(scenes), len(recorded), height, -(-width // TILE))
        else:
            shape = (len(scenes), len(recorded), 2, height, width)
        out = _zeros(shape, torch.int32 if bits else torch.uint8, device)
        with beside:  # noise and outlines are worked out while memory is filled, or earlier work goes on
            noisy = scenes.pixel.background > 0 and len(recorded) > 0
            background = _Background(scenes, device, recorded, background_chance) if noisy else None
            shown = np.arange(begin - 1, piece.stop)
            scenes = scenes.resumed(shown)
            outlines, sizes, marks = _outlines(scenes, shown, device)
        beside.lend(marks, *outlines, *model, *shape_chance)
        kernels.signal[(marks.shape[1], len(scenes))](
            out, out[-1], state, ready, marks, outlines, sizes,
            kernels.Window(begin - 1, len(recorded), int(begin == -scenes.warmup), scenes.step_us), model, shape_chance,
            F=f, FINE=_fine(f), TO_ZERO=scenes.pixel.reset_to_zero, STATIONARY=scenes.pixel.initial == "stationary",
            HAS_SHAPE=scenes.pixel.shape_noise > 0, HAS_EVENT=scenes.pixel.event_noise > 0, CARRY=not whole, BITS=bits,
            OWN=isinstance(model.on, Tensor), IS_LOG=scenes.pixel.log_response > 0, RESTS=scenes.rest > 0,
            LEAKS=scenes.pixel.leak_hz > 0,
            num_warps=1, maxnreg=REGISTERS, enable_fp_fusion=False,
        )  # fmt: skip
        if background is not None:
            beside.lend(*background.tensors)
            signal, into = (out[0], out[1]) if bits else (out, out)
            background.scatter(signal, into, bits=bits)
        if len(recorded):
            yield recorded, out


def _zeros(shape: tuple[int, ...], kind: torch.dtype, device: str) -> Tensor:
    """Like `torch.zeros`. On a GPU it is limited by the memory and not by the programs that run, as few will do."""
    if not device.startswith("cuda"):
        return torch.zeros(shape, dtype=kind, device=device)
    size = math.prod(shape)
    words = torch.empty(-(-size * kind.itemsize // 16) * 4, dtype=torch.int32, device=device)
    programs = torch.cuda.get_device_properties(device).multi_processor_count
    output.clear[(programs,)](words, len(words), AT_ONCE=4096, num_warps=8)
    return words.view(kind)[:size].view(shape)


class _Beside:
    """On a GPU, another stream of higher priority, for what depends on no work of the current one.

    The current one goes on after it. What is made on it and used by the current one has to be lent: memory that is
    freed is given out again on its own stream at once, and would be written over while the other one still reads it.
    """

    def __init__(self, device: str):
        self._current = torch.cuda.current_stream(device) if device.startswith("cuda") else None
        if self._current is not None:
            self._other = _other_stream(device, self._current.cuda_stream)

    def __enter__(self) -> None:
        if self._current is not None:
            self._entered = torch.cuda.stream(self._other)
            self._entered.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._current is not None:
            self._entered.__exit__(*error)
            self._current.wait_stream(self._other)

    def lend(self, *parts: object) -> None:
        """Keep the tensors among `parts` until the current stream has done all the work that it was given so far."""
        for part in parts:
            if self._current is not None and isinstance(part, Tensor):
                part.record_stream(self._current)


@cache
def _other_stream(device: str, current: int) -> torch.cuda.Stream:  # noqa: ARG001 - one for each
    return torch.cuda.Stream(device, priority=-1)


def _listed(
    words: Tensor, scenes: Scenes, steps: range
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Keys and background flags of all events in order of recordings and keys, and where each recording begins."""
    signal, noise = words[:2]
    frames = signal.shape[0] * signal.shape[1]
    number = signal[0, 0].numel()
    counts = torch.empty(frames, dtype=torch.int32, device=words.device)
    output.tally[(frames,)](counts, signal, noise, number, AT_ONCE=WORDS_AT_ONCE, num_warps=4)
    begins = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    before = begins.cpu().numpy()
    keys, background = (_host(int(before[-1]), kind, words.device) for kind in (torch.int64, torch.bool))
    first = 0
    while first < frames:
        end = max(first + 1, int(np.searchsorted(before, before[first] + PIECE, side="right")) - 1)
        part = slice(before[first], before[end])
        of_device = [torch.empty_like(host[part], device=words.device) for host in (keys, background)]
        output.gather[(end - first,)](
            *of_device, begins, first, signal, noise, number, len(steps), steps.start, scenes.width, scenes.height,
            AT_ONCE=WORDS_AT_ONCE, num_warps=4,
        )  # fmt: skip
        for host, made in zip((keys, background), of_device, strict=True):
            host[part].copy_(made, non_blocking=True)
        first = end
    if words.is_cuda:
        torch.cuda.current_stream(words.device).synchronize()
    return keys.numpy(), background.numpy(), before[:: len(steps)]


def _are_among(
    words: Tensor, keys: NDArray[np.int64], bounds: NDArray[np.int64], scenes: Scenes, steps: range
) -> NDArray[np.bool_]:
    """Which of the events of a batch are among those of some words."""
    some, _, begins = _listed(torch.stack([words, torch.zeros_like(words)]), scenes, steps)
    parts = (
        np.isin(keys[bounds[i] : bounds[i + 1]], some[begins[i] : begins[i + 1]], assume_unique=True)
        for i in range(len(scenes))
    )
    return np.concatenate(list(parts))


def _host(size: int, kind: torch.dtype, device: torch.device) -> Tensor:
    """An empty tensor on the host, in pinned memory if it is for a GPU, which is many times as fast to copy to."""
    return torch.empty(size, dtype=kind, pin_memory=device.type == "cuda")


def _sent(device: str, *arrays: NDArray[Any]) -> list[Tensor]:
    """Arrays on the device. They go there in one copy, for which nobody waits: that is quicker than one for each."""
    ends = list(accumulate((-(-array.nbytes // 16) * 16 for array in arrays), initial=0))
    host = _host(ends[-1], torch.uint8, torch.device(device))
    memory = host.numpy()
    for array, begin in zip(arrays, ends, strict=False):
        memory[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    sent = host.to(device, non_blocking=True)
    return [
        sent[begin : begin + array.nbytes].view(KINDS[array.dtype]).view(array.shape)
        for array, begin in zip(arrays, ends, strict=False)
    ]


def _chances(scenes: Scenes, device: str) -> tuple[kernels.Chance, kernels.Chance, kernels.Model]:
    """What shape noise and background noise are drawn from, and the model of the integrators."""
    pixels = scenes.height * scenes.width
    tables = (
        noise.block_tables(probability, pixels) for probability in (scenes.pixel.shape_noise, scenes.pixel.background)
    )
    thresholds = Thresholds.of(scenes)
    numbers = (thresholds.on, thresholds.off, thresholds.least, thresholds.most)
    each = () if thresholds.are_one else (np.broadcast_to(part, (scenes.height, scenes.width)) for part in numbers)
    response = Response.of(scenes)
    seed, indices, actors, dark, shape_table, background_table, responses, leak, *sent = _sent(
        device, np.array([scenes.seed], np.uint64).view(np.int64), scenes.indices, scenes.present.sum(axis=1),
        scenes.dark, *tables, response.table, np.array([scenes.pixel.leak_hz * 1e-6]), *each,
    )  # fmt: skip
    shape, background = (kernels.Chance(seed, indices, table) for table in (shape_table, background_table))
    on, off, least, most = sent or (number.item() for number in numbers)
    drop_below = noise.drop_bound(scenes.pixel.event_noise)
    model = kernels.Model(on, off, least, most, drop_below, actors, dark, responses, response.lowest, scenes.rest, leak)
    return shape, background, model


class _Pixels:
    """The pixels of a batch in exact timing: what it carries from call to call."""

    def __init__(self, scenes: Scenes, device: str):
        self._device, self._fresh = device, True
        self._shape, self._background, self._model = _chances(scenes, device)
        pixels = (len(scenes), scenes.height, scenes.width)
        counted = pixels if scenes.pixel.event_noise > 0 else (1,)
        rested = pixels if scenes.rest > 0 else (1,)
        self._carried = [torch.empty(s, dtype=torch.int32, device=device) for s in (pixels, pixels, counted, counted)]
        self._carried += [torch.empty(rested, dtype=torch.int64, device=device) for _ in range(2)]
        self._room = 2**12

    def passages(self, scenes: Scenes, instants: exact.Instants) -> list[NDArray[np.int64]]:
        """What the integrators fire between the instants, as `exact.flagged`."""
        launch = self._prepared(scenes, instants, 0)
        while True:
            out = torch.empty((len(scenes), self._room), dtype=torch.int64, device=self._device)
            filled = torch.zeros(len(scenes), dtype=torch.int32, device=self._device)
            launch(out, self._room, filled, CARRY=True, LISTED=True, COUNTED=False)
            counts = filled.cpu().numpy()
            if counts.max() <= self._room:
                break
            self._room = 2 * int(counts.max())
        self._go_on()
        made = out[:, : counts.max()].contiguous()
        host = _host(made.numel(), made.dtype, made.device).view(made.shape).copy_(made).numpy()
        return [row[:count] for row, count in zip(host, counts, strict=True)]

    def into_frames(self, scenes: Scenes, instants: exact.Instants, frames: Tensor, counted: bool, last: bool) -> None:
        """Write what the integrators fire into frames of all steps; `last`: nothing follows these instants."""
        launch = self._prepared(scenes, instants, frames.shape[1])
        launch(frames, 0, self._model.dark, CARRY=not (self._fresh and last), LISTED=False, COUNTED=counted)
        self._go_on()

    def _prepared(self, scenes: Scenes, instants: exact.Instants, recorded: int) -> Callable[..., None]:
        """A function that launches the kernel, once it is told where events go."""
        outlines, sizes, marks = _outlines(scenes, instants.own, self._device)
        held_steps = instants.steps if scenes.pixel.shape_noise > 0 else np.empty(0, np.int64)
        own, steps, us_per_unit = _sent(self._device, instants.own, held_steps, np.array([instants.us_per_unit]))
        moments = kernels.Moments(
            own, steps, us_per_unit, scenes.step_us, scenes.steps * scenes.step_us, recorded, int(self._fresh)
        )
        carried = kernels.Carried(*self._carried)

        def launch(out: Tensor, room: int, filled: Tensor, **options: bool) -> None:
            kernels.between[(marks.shape[1], len(scenes))](
                out, room, filled, carried, marks, outlines, sizes, moments, self._model, self._shape,
                F=scenes.upsampling, FINE=_fine(scenes.upsampling), STATIONARY=scenes.pixel.initial == "stationary",
                HAS_SHAPE=scenes.pixel.shape_noise > 0, HAS_EVENT=scenes.pixel.event_noise > 0,
                OWN=isinstance(self._model.on, Tensor), IS_LOG=scenes.pixel.log_response > 0, RESTS=scenes.rest > 0,
                TO_ZERO=scenes.pixel.reset_to_zero, LEAKS=scenes.pixel.leak_hz > 0, **options,
                num_warps=1, maxnreg=REGISTERS, enable_fp_fusion=False,
            )  # fmt: skip

        return launch

    def _go_on(self) -> None:
        state, next_state, fired, next_fired, ready, next_ready = self._carried
        self._carried = [next_state, state, next_fired, fired, next_ready, ready]
        self._fresh = False

    def background(self, scenes: Scenes, steps: range) -> list[NDArray[np.int64]]:
        """Background noise at some steps, as `exact.flagged`."""
        shape = (len(scenes), len(steps), 2, scenes.height, scenes.width)
        out = torch.zeros(shape, dtype=torch.uint8, device=self._device)
        _Background(scenes, self._device, steps, self._background).scatter(out, out)
        row, at, p, y, x = out.nonzero().cpu().numpy().T
        return exact.background_events(scenes, row, at + steps.start, y, x, p)


def _fine(f: int) -> int:
    """The upsampling rounded up to a power of two."""
    return 1 << (f - 1).bit_length()


def _outlines(scenes: Scenes, shown: rasterise.Times, device: str) -> tuple[kernels.Outlines, kernels.Sizes, Tensor]:
    """The outlines in some frames with their crossings, the sizes of both, and marks for what changes, tile by tile."""
    height = scenes.height
    width = scenes.width
    f = scenes.upsampling
    fine = _fine(scenes.upsampling)
    frames = shown.shape[-1]
    shape = (len(scenes), len(scenes.shapes), shown.shape[-1])
    T = torch.stack([entry.expand(shape) for entry in rasterise.placed(scenes, shown, partial(_sent, device))])
    first, is_ellipse, convex, actor = rasterise.numbered(scenes)
    marked_whole = convex & (scenes.pixel.shape_noise == 0)  # with noise, what is inside a convex piece changes, too
    numbers = (part.astype(np.int32) for part in (first, is_ellipse, convex, marked_whole, actor))
    tables = (rasterise.unit_ends(scenes), rasterise.offsets(scenes), scenes.intensity[:, actor])
    first_entry, ellipse, simple, marked, actors, ends, offsets, intensity = _sent(device, *numbers, *tables)
    pieces = len(actor)
    entries = int(first[-1])
    words = -(-frames // 32)
    tiles = -(-width // TILE) * -(-height // ROWS)
    marks = torch.zeros((len(scenes), tiles, words), dtype=torch.int32, device=device)
    sub_rows = -(-height // ROWS) * ROWS * fine
    crossings = torch.empty((len(scenes), frames, pieces, 2, sub_rows), dtype=torch.int32, device=device)
    coefficients = torch.empty((len(scenes), frames, entries, 5), dtype=torch.float64, device=device)
    boxes = torch.empty((len(scenes), frames, pieces, 4), dtype=torch.int32, device=device)
    outlines = kernels.Outlines(crossings, coefficients, boxes, first_entry, ellipse, simple, intensity)
    sizes = kernels.Sizes(frames, pieces, entries, width, height, sub_rows, words)
    placing = outline_kernels.Placing(T, len(scenes.shapes), ends, int(len(ends) > 1), actors, offsets)
    outline_kernels.place[(frames, len(scenes))](
        outlines, sizes, placing, F=f, AT_ONCE=32, num_warps=1, enable_fp_fusion=False
    )
    outline_kernels.spans[(frames, len(scenes))](
        outlines, sizes, F=f, FINE=fine, AT_ONCE=AT_ONCE, num_warps=AT_ONCE // 32, enable_fp_fusion=False
    )
    outline_kernels.mark[(frames - 1, len(scenes))](
        marks, outlines._replace(convex=marked), sizes, BANDS=BANDS, F=f, FINE=fine, num_warps=2
    )
    return outlines, sizes, marks


class _Background:
    """Background noise of a chunk: the blocks where it fires are listed at once, and written after the signal."""

    def __init__(self, scenes: Scenes, device: str, recorded: range, chance: kernels.Chance):
        self._device, self._chance = device, chance
        self._size = len(recorded), recorded.start, scenes.width, scenes.height
        self._recordings = len(scenes)
        self._blocks = -(-scenes.height * scenes.width // noise.BLOCK)
        most = len(scenes) * len(recorded) * self._blocks
        expected = most * min(1.0, noise.BLOCK * scenes.pixel.background)
        self._list(min(most, int(expected + 10 * expected**0.5) + 1024))

    def _list(self, room: int) -> None:
        steps, first, _, _ = self._size
        self._listed = torch.empty((room, 3), dtype=torch.int64, device=self._device)
        self._filled = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._needed = _host(1, torch.int64, self._filled.device)
        programs = -(-self._blocks // (noise.GROUP * AT_ONCE))
        output.count[(self._recordings * steps, programs)](
            self._listed, room, self._filled, self._chance, steps, first, self._blocks, AT_ONCE=AT_ONCE, num_warps=1
        )
        self._needed.copy_(self._filled, non_blocking=True)
        self._known = torch.cuda.Event() if self._filled.is_cuda else None
        if self._known is not None:
            self._known.record()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What `scatter` needs."""
        return self._listed, self._filled, *self._chance

    def scatter(self, out: Tensor, into: Tensor, bits: bool = False, counted: bool = False) -> None:
        """Write into `into` where noise fires and the signal `out` does not, or add 1 to counts."""
        if self._known is not None:
            self._known.synchronize()  # with the listing, and not with what came after it
        if int(self._needed) > len(self._listed):
            self._list(int(self._needed))
        output.scatter[(-(-len(self._listed) // AT_ONCE),)](
            out, into, self._listed, self._filled, self._chance, *self._size,
            AT_ONCE=AT_ONCE, BITS=bits, COUNTED=counted, num_warps=AT_ONCE // 32,
        )  # fmt: skip

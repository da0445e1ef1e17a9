"""The rules of a pixel and of an outline, on tensors: this is the definition of what happens.

The other backends have them by the same names and with the same arguments, each in its language: `cpu/rules.py` and
`cuda/rules.py`. Everything behind the crossings is integer arithmetic, but for the times of exact timing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gerd.scene import philox

LOW = 0xFFFFFFFF  # the bits of a word


def words(seed: int, element: Tensor, step: Tensor, index: Tensor, purpose: int) -> tuple[Tensor, ...]:
    """Philox 4x32-10 as in `philox.py`, on int64 tensors that hold 32-bit words."""
    a, b, c = torch.broadcast_tensors(element & LOW, step & LOW, index & LOW)
    d, key_a, key_b = torch.full_like(a, purpose), seed & LOW, seed >> 32
    for _ in range(philox.ROUNDS):
        first, second = a * philox.MULTIPLIERS[0], c * philox.MULTIPLIERS[1]  # wraps as 64 bits: high word intact
        a, b, c, d = (second >> 32 & LOW) ^ b ^ key_a, second & LOW, (first >> 32 & LOW) ^ d ^ key_b, first & LOW
        key_a, key_b = (key_a + philox.KEY_STEPS[0]) & LOW, (key_b + philox.KEY_STEPS[1]) & LOW
    return a, b, c, d


def column(x: Tensor, right: int) -> Tensor:
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … right."""
    return torch.ceil(x - 0.5).clamp(0, right).int()


def crossing_of_side(y: Tensor, top: Tensor, bottom: Tensor, x_top: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Where a side crosses the line at y, and whether it does."""
    return x_top + (y - top) * slope, (top <= y) & (y < bottom)


def crossings_of_ellipse(
    y: Tensor, centre_y: Tensor, reach: Tensor, centre_x: Tensor, tilt: Tensor, width: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Where the line at y enters and leaves an ellipse, and whether it does."""
    dy = y - centre_y
    gap = reach - dy * dy
    half = width * torch.sqrt(gap.clamp(min=0))
    middle = centre_x + tilt * dy
    return middle - half, middle + half, gap > 0


def initial_state(word: Tensor, least: Tensor, most: Tensor) -> Tensor:
    """An integrator before the first step: least … most."""
    return ((word * (most - least + 1)) >> 32) + least


def stationary_state(word: Tensor, threshold_on: Tensor, threshold_off: Tensor, upward: Tensor) -> Tensor:
    """An integrator after shapes have passed: 0 … ON threshold - 1 after a rise, else 0 … 1 - OFF threshold."""
    return torch.where(upward, (word * threshold_on) >> 32, -((word * threshold_off) >> 32))


def how_many(word: Tensor, table: Tensor) -> Tensor:
    """How many pixels of a block a word picks: the number of bounds in the block's table that it reaches."""
    return (word[..., None] >= table).sum(-1)


def pick(word: Tensor, last: Tensor, chosen: Tensor) -> Tensor:
    """Floyd's pick out of the pixels 0 … last: any of them, or the last one if that is in the mask `chosen`."""
    pixel = (word * (last + 1)) >> 32
    return torch.where((chosen >> pixel) & 1 != 0, last, pixel)


def response(count: Tensor, table: Tensor, lowest: int) -> Tensor:
    """What an integrator sees of a count, from the table of the counts from `lowest` on."""
    return table[(count - lowest).long()]


def gain(threshold_on: Tensor, per_us: float, us: Tensor) -> Tensor:
    """What has leaked into an integrator after so many µs, to the nearest integer."""
    return torch.floor(threshold_on.double() * per_us * us.double() + 0.5).long()


def integrate_and_fire(
    state: Tensor, change: Tensor, threshold_on: Tensor, threshold_off: Tensor, to_zero: bool, rested: Tensor | bool
) -> tuple[Tensor, ...]:
    """An integrator with its change, whether it fires OFF or ON if it has rested, and what the reset leaves."""
    integrated = state + change
    off, on = (integrated < -threshold_off) & rested, (integrated > threshold_on) & rested
    reset = 0 if to_zero else integrated - threshold_on * on.int() + threshold_off * off.int()
    return integrated, off, on, torch.where(off | on, reset, integrated)


def dropped(word: Tensor, bound: int) -> Tensor:
    """Whether event noise drops an event."""
    return word < bound


def threshold_ahead(change: Tensor, threshold_on: Tensor, threshold_off: Tensor) -> Tensor:
    """The threshold that a change leads to."""
    return torch.where(change < 0, threshold_off, threshold_on)


def passages(state: Tensor, change: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """How often an integrator passes the threshold ahead while its count changes, and what is left."""
    along, size = torch.where(change < 0, -state, state), change.abs()
    number = torch.where(size > 0, ((along + size) // threshold).clamp(min=0), 0)
    return number, state + change - threshold * torch.where(change < 0, -number, number)


def passage_us(begin: Tensor, length: Tensor, missing: Tensor, size: Tensor, us_per_unit: float) -> Tensor:
    """When a change by `size`, which takes `length` from `begin`, has come to `missing`: in µs, rounded up."""
    return torch.ceil((begin + length * (missing.double() / size.double())) * us_per_unit).long()


def progress(begin: Tensor, end: Tensor, us: Tensor, size: Tensor, us_per_unit: float) -> Tensor:
    """How far a change by `size` from `begin` to `end` has come after so many µs, rounded down."""
    return torch.floor(size.double() * ((us.double() / us_per_unit - begin) / (end - begin))).long()


def next_event(
    state: Tensor,
    done: Tensor,
    ready: Tensor,
    change: Tensor,
    threshold_on: Tensor,
    threshold_off: Tensor,
    begin: Tensor,
    end: Tensor,
    us_per_unit: float,
    to_zero: bool,
    rest: int,
) -> tuple[Tensor, ...]:
    """The next event of an integrator that rests after each, while its count changes from `begin` to `end`.

    Of the change it has seen `done`, and it may fire from `ready` on, in µs. Whether it fires; when, and whether ON;
    state, `done` and `ready` after that.
    """
    way, size = torch.where(change < 0, -1, 1), change.abs()
    waits, ends = ready > begin * us_per_unit, ready <= end * us_per_unit
    reached = progress(begin, end, ready, size, us_per_unit).clamp(min=done, max=size)
    stop = torch.where(waits, torch.where(ends, reached, size), done)
    then = state + way * (stop - done)
    on, off = waits & ends & (then >= threshold_on), waits & ends & (then <= -threshold_off)
    left = 0 if to_zero else then - threshold_on * on.int() + threshold_off * off.int()
    missing = (threshold_ahead(change, threshold_on, threshold_off) - way * then).clamp(min=0)
    passes = ~(on | off) & (ends | ~waits) & (size > 0) & (missing <= size - stop)
    passed = torch.maximum(passage_us(begin, end - begin, stop + missing, size, us_per_unit), ready)
    fires = on | off | passes
    us = torch.where(passes, passed, ready)
    remains = torch.where(passes, 0, torch.where(fires, left, then + way * (size - stop)))
    done = torch.where(passes, stop + missing, torch.where(fires, stop, size))
    return fires, us, torch.where(passes, change > 0, on), remains, done, torch.where(fires, us + rest, ready)

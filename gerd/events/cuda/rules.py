"""The rules of `definition/rules.py` in Triton."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from gerd.events.pixel import noise
from gerd.scene import philox

MULTIPLIER_A, MULTIPLIER_B = map(tl.constexpr, philox.MULTIPLIERS)
KEY_STEP_A, KEY_STEP_B = map(tl.constexpr, philox.KEY_STEPS)
ROUNDS = tl.constexpr(philox.ROUNDS)
INITIAL, SHAPE = tl.constexpr(philox.INITIAL), tl.constexpr(philox.SHAPE)
EVENT, BACKGROUND = tl.constexpr(philox.EVENT), tl.constexpr(philox.BACKGROUND)
BLOCK, GROUP, ROUND = tl.constexpr(noise.BLOCK), tl.constexpr(noise.GROUP), tl.constexpr(noise.ROUND)


@triton.jit
def words(seed, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`."""
    a, key_a, key_b = element.to(tl.uint32), seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    b, c, d = (a * 0 + step).to(tl.uint32), (a * 0 + index).to(tl.uint32), (a * 0 + purpose).to(tl.uint32)
    for _ in tl.static_range(ROUNDS):
        first_high, first = tl.umulhi(a, MULTIPLIER_A), a * MULTIPLIER_A
        second_high, second = tl.umulhi(c, MULTIPLIER_B), c * MULTIPLIER_B
        a, b, c, d = second_high ^ b ^ key_a, second, first_high ^ d ^ key_b, first
        key_a, key_b = key_a + KEY_STEP_A, key_b + KEY_STEP_B
    return a, b, c, d


@triton.jit
def column(x, right):
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … right."""
    return tl.minimum(tl.maximum(tl.ceil(x - 0.5), 0.0), right).to(tl.int32)


@triton.jit
def crossing_of_side(y, top, bottom, x_top, slope):
    """Where a side crosses the line at y, and whether it does."""
    return x_top + (y - top) * slope, (top <= y) & (y < bottom)


@triton.jit
def crossings_of_ellipse(y, centre_y, reach, centre_x, tilt, width):
    """Where the line at y enters and leaves an ellipse, and whether it does."""
    dy = y - centre_y
    gap = reach - dy * dy
    half = width * tl.sqrt(tl.maximum(gap, 0.0))
    middle = centre_x + tilt * dy
    return middle - half, middle + half, gap > 0


@triton.jit
def initial_state(word, least, most):
    """An integrator before the first step: least … most."""
    return tl.umulhi(word, (most - least + 1).to(tl.uint32)).to(tl.int32) + least


@triton.jit
def stationary_state(word, threshold_on, threshold_off, upward):
    """An integrator after shapes have passed: 0 … ON threshold - 1 after a rise, else 0 … 1 - OFF threshold."""
    state = tl.umulhi(word, tl.where(upward, threshold_on, threshold_off).to(tl.uint32)).to(tl.int32)
    return tl.where(upward, state, -state)


@triton.jit
def how_many(word, table):
    """How many pixels of a block a word picks: the number of bounds in the block's table that it reaches."""
    count, value = tl.zeros(word.shape, tl.int32), word.to(tl.int64)
    more = value >= tl.load(table)
    while tl.max(more.to(tl.int32)) > 0:
        count += more.to(tl.int32)
        more = more & (count < BLOCK) & (value >= tl.load(table + tl.minimum(count, BLOCK - 1)))
    return count


@triton.jit
def pick(word, last, chosen):
    """Floyd's pick out of the pixels 0 … last: any of them, or the last one if that is in the mask `chosen`."""
    pixel = tl.umulhi(word, (last + 1).to(tl.uint32)).to(tl.int32)
    return tl.where(((chosen >> pixel.to(tl.uint64)) & 1) != 0, last, pixel)


@triton.jit
def response(count, table, lowest):
    """What an integrator sees of a count, from the table of the counts from `lowest` on."""
    return tl.load(table + (count - lowest))


@triton.jit
def gain(threshold_on, per_us, us):
    """What has leaked into an integrator after so many µs, to the nearest integer."""
    return tl.floor(threshold_on.to(tl.float64) * per_us * us + 0.5).to(tl.int64)


@triton.jit
def integrate_and_fire(state, change, threshold_on, threshold_off, to_zero: tl.constexpr, rested):
    """An integrator with its change, whether it fires OFF or ON if it has rested, and what the reset leaves."""
    integrated = state + change
    off, on = (integrated < -threshold_off) & rested, (integrated > threshold_on) & rested
    reset = integrated - threshold_on * on.to(tl.int32) + threshold_off * off.to(tl.int32)
    if to_zero:
        reset = integrated * 0
    return integrated, off, on, tl.where(off | on, reset, integrated)


@triton.jit
def dropped(word, bound):
    """Whether event noise drops an event."""
    return word.to(tl.int64) < bound


@triton.jit
def threshold_ahead(change, threshold_on, threshold_off):
    """The threshold that a change leads to."""
    return tl.where(change < 0, threshold_off, threshold_on)


@triton.jit
def passages(state, change, threshold):
    """How often an integrator passes the threshold ahead while its count changes, and what is left."""
    along, size = tl.where(change < 0, -state, state), tl.abs(change)
    number = tl.where(size > 0, tl.maximum((along + size) // threshold, 0), 0)
    return number, state + change - threshold * tl.where(change < 0, -number, number)


@triton.jit
def passage_us(begin, length, missing, size, us_per_unit):
    """When a change by `size`, which takes `length` from `begin`, has come to `missing`: in µs, rounded up."""
    share = missing.to(tl.float64) / size.to(tl.float64)
    return tl.ceil((begin + length * share) * us_per_unit).to(tl.int64)


@triton.jit
def progress(begin, end, us, size, us_per_unit):
    """How far a change by `size` from `begin` to `end` has come after so many µs, rounded down."""
    share = (us.to(tl.float64) / us_per_unit - begin) / (end - begin)
    return tl.floor(size.to(tl.float64) * share)


@triton.jit
def next_event(
    state, done, ready, change, threshold_on, threshold_off, begin, end, us_per_unit, to_zero: tl.constexpr, rest
):  # fmt: skip
    """The next event of an integrator that rests after each, while its count changes from `begin` to `end`.

    Of the change it has seen `done`, and it may fire from `ready` on, in µs. Whether it fires; when, and whether ON;
    state, `done` and `ready` after that.
    """
    way, size = tl.where(change < 0, -1, 1), tl.abs(change)
    waits, ends = ready.to(tl.float64) > begin * us_per_unit, ready.to(tl.float64) <= end * us_per_unit
    reached = tl.where(waits & ends, progress(begin, end, ready, size, us_per_unit), 0.0)
    reached = tl.minimum(tl.maximum(reached, 0.0), size.to(tl.float64)).to(tl.int32)
    stop = tl.where(waits, tl.where(ends, tl.maximum(reached, done), size), done)
    then = state + way * (stop - done)
    on, off = waits & ends & (then >= threshold_on), waits & ends & (then <= -threshold_off)
    left = then - threshold_on * on.to(tl.int32) + threshold_off * off.to(tl.int32)
    if to_zero:
        left = left * 0
    missing = tl.maximum(threshold_ahead(change, threshold_on, threshold_off) - way * then, 0)
    passes = ((on | off) == 0) & (ends | (waits == 0)) & (size > 0) & (missing <= size - stop)
    passed = tl.maximum(passage_us(begin, end - begin, stop + missing, tl.maximum(size, 1), us_per_unit), ready)
    fires = on | off | passes
    us = tl.where(passes, passed, ready)
    remains = tl.where(passes, 0, tl.where(fires, left, then + way * (size - stop)))
    done = tl.where(passes, stop + missing, tl.where(fires, stop, size))
    return fires, us, tl.where(passes, change > 0, on), remains, done, tl.where(fires, us + rest, ready)

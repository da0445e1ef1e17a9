"""The rules of `definition/rules.py` as the compiled code of the `cpu` backend has them."""
# mypy: ignore-errors

from __future__ import annotations

import math

import numpy as np

from gerd.events.compiled import inlined
from gerd.events.pixel.noise import BLOCK
from gerd.scene import philox

LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
ONE = np.uint64(1)
MULTIPLIER_A, MULTIPLIER_B = map(np.uint64, philox.MULTIPLIERS)
KEY_STEP_A, KEY_STEP_B = map(np.uint64, philox.KEY_STEPS)
ROUNDS = philox.ROUNDS
PURPOSES = (philox.INITIAL, philox.SHAPE, philox.EVENT, philox.BACKGROUND, philox.TIME)
INITIAL, SHAPE, EVENT, BACKGROUND, TIME = map(np.int64, PURPOSES)


@inlined
def words(seed, element, step, index, purpose):
    """Philox 4x32-10 as in `philox.py`. Only the lower halves count; they are taken where it costs nothing."""
    a, b, c, d = np.uint64(element), np.uint64(step), np.uint64(index), np.uint64(purpose)
    key_a, key_b = np.uint64(seed), np.uint64(seed) >> SHIFT
    for _ in range(ROUNDS):
        first, second = (a & LOW) * MULTIPLIER_A, (c & LOW) * MULTIPLIER_B
        a, b, c, d = (second >> SHIFT) ^ b ^ key_a, second, (first >> SHIFT) ^ d ^ key_b, first
        key_a, key_b = key_a + KEY_STEP_A, key_b + KEY_STEP_B
    return a & LOW, b & LOW, c & LOW, d & LOW


@inlined
def column(x, right):
    """The column of a crossing at x: ceil(x - 0.5), clipped to 0 … right."""
    return np.int32(min(max(np.ceil(x - 0.5), 0.0), right))


@inlined
def crossing_of_side(y, top, bottom, x_top, slope):
    """Where a side crosses the line at y, and whether it does."""
    return x_top + (y - top) * slope, (top <= y) & (y < bottom)


@inlined
def crossings_of_ellipse(y, centre_y, reach, centre_x, tilt, width):
    """Where the line at y enters and leaves an ellipse, and whether it does."""
    dy = y - centre_y
    gap = reach - dy * dy
    half = width * math.sqrt(max(gap, 0.0))
    middle = centre_x + tilt * dy
    return middle - half, middle + half, gap > 0.0


@inlined
def initial_state(word, least, most):
    """An integrator before the first step: least … most."""
    return np.int64((word * np.uint64(np.int64(most) - least + 1)) >> SHIFT) + least


@inlined
def stationary_state(word, threshold_on, threshold_off, upward):
    """An integrator after shapes have passed: 0 … ON threshold - 1 after a rise, else 0 … 1 - OFF threshold."""
    state = np.int64((word * np.uint64(threshold_on if upward else threshold_off)) >> SHIFT)
    return state if upward else -state


@inlined
def how_many(word, table):
    """How many pixels of a block a word picks: the number of bounds in the block's table that it reaches."""
    count = 0
    while count < BLOCK and word >= table[count]:
        count += 1
    return count


@inlined
def pick(word, last, chosen):
    """Floyd's pick out of the pixels 0 … last: any of them, or the last one if that is in the mask `chosen`."""
    pixel = (word * np.uint64(last + 1)) >> SHIFT
    return np.uint64(last) if chosen & (ONE << pixel) else pixel


@inlined
def response(count, table, lowest):
    """What an integrator sees of a count, from the table of the counts from `lowest` on."""
    return np.int64(table[np.int64(count) - lowest])


@inlined
def gain(threshold_on, per_us, us):
    """What has leaked into an integrator after so many µs, to the nearest integer."""
    return np.int64(np.floor(float(threshold_on) * per_us * us + 0.5))


@inlined
def integrate_and_fire(state, change, threshold_on, threshold_off, to_zero, rested):
    """An integrator with its change, whether it fires OFF or ON if it has rested, and what the reset leaves."""
    integrated = state + change
    off, on = (integrated < -threshold_off) & rested, (integrated > threshold_on) & rested
    reset = 0 if to_zero else integrated - threshold_on * np.int64(on) + threshold_off * np.int64(off)
    return integrated, off, on, reset if off | on else integrated


@inlined
def dropped(word, bound):
    """Whether event noise drops an event."""
    return np.int64(word) < bound


@inlined
def threshold_ahead(change, threshold_on, threshold_off):
    """The threshold that a change leads to."""
    return np.int64(threshold_off) if change < 0 else np.int64(threshold_on)


@inlined
def passages(state, change, threshold):
    """How often an integrator passes the threshold ahead while its count changes, and what is left."""
    along, size = -state if change < 0 else state, abs(change)
    number = max((along + size) // threshold, 0) if size > 0 else 0
    return number, state + change - threshold * (-number if change < 0 else number)


@inlined
def passage_us(begin, length, missing, size, us_per_unit):
    """When a change by `size`, which takes `length` from `begin`, has come to `missing`: in µs, rounded up."""
    return np.int64(np.ceil((begin + length * (float(missing) / float(size))) * us_per_unit))


@inlined
def progress(begin, end, us, size, us_per_unit):
    """How far a change by `size` from `begin` to `end` has come after so many µs, rounded down."""
    return np.int64(np.floor(float(size) * ((float(us) / us_per_unit - begin) / (end - begin))))


@inlined
def next_event(state, done, ready, change, threshold_on, threshold_off, begin, end, us_per_unit, to_zero, rest):
    """The next event of an integrator that rests after each, while its count changes from `begin` to `end`.

    Of the change it has seen `done`, and it may fire from `ready` on, in µs. Whether it fires; when, and whether ON;
    state, `done` and `ready` after that.
    """
    way, size = np.int64(-1 if change < 0 else 1), abs(change)
    fires, on, us, stop = False, False, ready, done
    waits, ends = ready > begin * us_per_unit, ready <= end * us_per_unit
    if waits:
        stop = size
        if ends:
            stop = min(max(progress(begin, end, ready, size, us_per_unit), done), size)
    then = state + way * (stop - done)
    if waits and ends:
        on, off = then >= threshold_on, then <= -threshold_off
        fires = on | off
        if fires:
            left = then - threshold_on * np.int64(on) + threshold_off * np.int64(off)
            then, done = np.int64(0) if to_zero else left, stop
    if not fires:
        missing = max(threshold_ahead(change, threshold_on, threshold_off) - way * then, 0)
        if (ends or not waits) and size > 0 and missing <= size - stop:
            fires, on, then, done = True, change > 0, np.int64(0), stop + missing
            us = max(passage_us(begin, end - begin, done, size, us_per_unit), ready)
        else:
            then, done = then + way * (size - stop), size
    return fires, us, on, then, done, us + rest if fires else ready


@inlined
def key(tick, pixel, p, sensor):
    """The key of an event, as in `keys.py`."""
    return (tick * sensor.height * sensor.width + pixel) * 2 + p

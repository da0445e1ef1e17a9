"""The compiled part of exact timing: one recording, instant by instant, at a cost that follows what changes.

The way from one picture to the next is that of `steps.py`. Here a pixel fires as often as it passes its
threshold between two instants, and each event has its own time.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.arguments import Area, Chance, Draws, Noise, Room, Sensor
from gerd.events.cpu.crossings import BIAS, NONE, WORD_BITS, ZERO, bit_number, find_crossings, named
from gerd.events.cpu.rules import (
    BACKGROUND,
    EVENT,
    ONE,
    SHIFT,
    TIME,
    dropped,
    key,
    next_event,
    passage_us,
    passages,
    threshold_ahead,
    words,
)
from gerd.events.cpu.scattered import groups_of, scattered
from gerd.events.cpu.steps import (
    PENDING,
    begin_block,
    begin_recording,
    find_changes,
    forget,
    leak_in,
    respond,
    touch_pending,
)

Clock = namedtuple("Clock", "step_us us_per_unit end")  # of exact timing; ticks from `end` on are not recorded


@inlined
def fire_passages(begin, length, clock, y, x, ahead, number, scene, pixels, changes, room, made):
    """Put what one integrator fires between two instants into the room; how many events are there."""
    chance, pixel, bound = scene.chance, y * scene.sensor.width + x, scene.noise.drop_below
    change = np.int64(changes.change[y, x])
    state = np.int64(pixels.v[y, x]) - BIAS
    along, p = (-state, 0) if change < 0 else (state, 1)
    for nth in range(number):
        missing = (nth + 1) * ahead - along
        tick = passage_us(begin, length, missing, abs(change), clock.us_per_unit) + (clock.step_us - 1)
        if tick < clock.step_us or tick >= clock.end:
            continue
        if bound > 0 and dropped(words(chance.seed, pixel, pixels.fired[y, x] + nth, chance.index, EVENT)[0], bound):
            continue
        leaks = scene.model.leak > 0 and p == 1 and pixels.leaked[y, x]
        room.keys[made] = key(tick, pixel, p, scene.sensor) * 2 + np.int64(leaks)
        made += 1
    if bound > 0:
        pixels.fired[y, x] += number
    return made


@compiled
def fire_between(begin, length, clock, area, scene, pixels, changes, room, made):
    """Let the touched pixels of an area pass their thresholds between two instants, while there is room.

    The events so far, and whether all pixels are done; those that are not stay touched.
    """
    model = scene.model
    for y in range(area.top, area.bottom):
        for word in range(area.left, area.right):
            rest = changes.touched[y, word]
            changes.touched[y, word] = NONE
            while rest:
                bit = rest & (~rest + ONE)
                x = word * WORD_BITS + bit_number(bit)
                if pixels.v[y, x] == 0:
                    begin_block(y, x, model, scene.chance, pixels)
                state, change = np.int64(pixels.v[y, x]) - BIAS, np.int64(changes.change[y, x])
                at = (y * scene.sensor.width + x) * model.own
                ahead, left = threshold_ahead(change, model.on[at], model.off[at]), state + change
                if change != 0 and (left if change > 0 else -left) >= ahead:  # a division costs more than this test
                    number, left = passages(state, change, ahead)
                    if made + number > len(room.keys):
                        changes.touched[y, word] = rest
                        return made, False
                    made = fire_passages(begin, length, clock, y, x, ahead, number, scene, pixels, changes, room, made)
                rest ^= bit
                changes.change[y, x] = 0
                pixels.v[y, x] = np.int32(left + BIAS)
    return made, True


@compiled
def fire_and_rest(begin, end, clock, area, scene, pixels, changes, room, made):
    """`fire_between` of pixels that rest after an event; one that is beyond its threshold is visited until it fires."""
    model, chance, bound = scene.model, scene.chance, scene.noise.drop_below
    for y in range(area.top, area.bottom):
        for word in range(area.left, area.right):
            while changes.touched[y, word]:
                rest = changes.touched[y, word]
                bit = rest & (~rest + ONE)
                x = word * WORD_BITS + bit_number(bit)
                pixel = y * scene.sensor.width + x
                if pixels.v[y, x] == 0:
                    begin_block(y, x, model, chance, pixels)
                state, change = np.int64(pixels.v[y, x]) - BIAS, np.int64(changes.change[y, x])
                above, below = np.int64(model.on[pixel * model.own]), np.int64(model.off[pixel * model.own])
                if made + (abs(state) + abs(change)) // min(above, below) + 1 > len(room.keys):
                    return made, False
                done, ready, fires = ZERO, pixels.ready[y, x], True
                while fires:
                    fires, us, on, state, done, ready = next_event(
                        state,
                        done,
                        ready,
                        change,
                        above,
                        below,
                        begin,
                        end,
                        clock.us_per_unit,
                        model.to_zero,
                        model.rest,
                    )
                    tick = us + (clock.step_us - 1)
                    kept = fires and clock.step_us <= tick < clock.end
                    if fires and bound > 0:
                        word_of_event = words(chance.seed, pixel, pixels.fired[y, x], chance.index, EVENT)[0]
                        kept = kept and not dropped(word_of_event, bound)
                        pixels.fired[y, x] += 1
                    if kept:
                        leaks = model.leak > 0 and on and pixels.leaked[y, x]
                        room.keys[made] = key(tick, pixel, np.int64(on), scene.sensor) * 2 + np.int64(leaks)
                        made += 1
                changes.touched[y, word] = rest ^ bit
                changes.change[y, x] = 0
                pixels.v[y, x], pixels.ready[y, x] = np.int32(state + BIAS), ready
                if (state >= above) | (state <= -below):
                    pixels.pending[pixels.numbers[PENDING]] = pixel
                    pixels.numbers[PENDING] += 1
    return made, True


@inlined
def run_instants(
    maps, own, steps, clock, fresh, begun, scene, old, new, pixels, changes, draws, scratch, room
):  # fmt: skip
    """Run one recording in exact timing over the frames at `own`, as long as there is room for the events.

    How many of them were done, how many times old and new crossings were exchanged, how many events there are. With
    `fresh`, frame 0 is the first of all. `begun` says that frame 1 was begun before, and has pixels left that are to
    fire.
    """
    made, swaps = ZERO, 0
    everywhere = Area(ZERO, scene.sensor.height, ZERO, np.int64(changes.touched.shape[1]))
    if fresh:
        forget(pixels)
    for i in range(0 if fresh else 1, len(own)):
        area = everywhere
        if not (begun and i == 1):
            find_crossings(maps[i], scene.pieces, scene.sensor, scratch.sides, new)
            area = find_changes(steps[i], i == 0, scene, old, new, pixels, changes, draws, scratch)
            old, new, swaps = new, old, swaps + 1
            if scene.model.is_log and i > 0:
                respond(area, scene.model, pixels, changes)
            if scene.model.rest > 0 and i > 0:
                area = touch_pending(area, pixels, changes)
            if scene.model.leak > 0 and i > 0:
                begin, end = own[i - 1] * clock.us_per_unit, own[i] * clock.us_per_unit
                area = leak_in(begin, end, scene, pixels, changes)
        if i == 0:
            begin_recording(area, scene, pixels, changes)
            continue
        if scene.model.rest > 0:
            made, done = fire_and_rest(own[i - 1], own[i], clock, area, scene, pixels, changes, room, made)
        else:
            length = own[i] - own[i - 1]
            made, done = fire_between(own[i - 1], length, clock, area, scene, pixels, changes, room, made)
        if not done:
            return i, swaps, made
    return len(own), swaps, made


@compiled
def simulate_noise(step, stop, step_us, sensor, noise, chance, draws, room):
    """Background noise of exact timing from `step` up to `stop`, while there is room: the next step, the events."""
    sensor, noise, chance, draws, room = Sensor(*sensor), Noise(*noise), Chance(*chance), Draws(*draws), Room(*room)
    area, made = sensor.height * sensor.width, 0
    while step < stop and made + area <= len(room.keys):
        for i in range(scattered(chance, step, BACKGROUND, noise.background, sensor, ZERO, groups_of(sensor), draws)):
            pixel, p = draws.picked[i] // 2 - step * area, draws.picked[i] % 2
            word = words(chance.seed, pixel, step, chance.index, TIME)[0]
            tick = step * step_us + np.int64((word * np.uint64(step_us)) >> SHIFT)
            room.keys[made] = key(tick, pixel, p, sensor) * 2 + 1
            made += 1
        step += 1
    return step, made


@compiled
def simulate_instants(
    maps, own, steps, clock, fresh, begun, scene, old, new, pixels, changes, draws, scratch, room
):  # fmt: skip
    """`run_instants` of plain tuples."""
    scene, old, new, pixels, changes, draws, scratch, room = named(
        scene, old, new, pixels, changes, draws, scratch, room
    )
    return run_instants(
        maps, own, steps, Clock(*clock), fresh, begun, scene, old, new, pixels, changes, draws, scratch, room
    )


ENTRIES = (simulate_instants, simulate_noise)  # what can be called from Python

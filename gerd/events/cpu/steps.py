"""The compiled part of step timing: one recording, step by step, at a cost that follows what changes.

Only pixels are visited that change, or that still hold more than a threshold from an earlier step. That changes no bit:
an integrator whose count stays as it is, within the threshold, does not fire. Here are also the noises, and the initial
states of integrators, which are drawn when they are first visited; exact timing has both from here.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from gerd.events.compiled import compiled, inlined
from gerd.events.cpu.arguments import Area
from gerd.events.cpu.changes import compare
from gerd.events.cpu.crossings import (
    BIAS,
    NONE,
    WORD_BITS,
    WORD_SHIFT,
    ZERO,
    bit_number,
    crossings_at,
    find_crossings,
    hull,
    named,
    touch,
    touch_range,
    unsigned_range,
)
from gerd.events.cpu.rules import (
    BACKGROUND,
    EVENT,
    INITIAL,
    LOW,
    ONE,
    SHAPE,
    SHIFT,
    dropped,
    gain,
    initial_state,
    integrate_and_fire,
    key,
    response,
    stationary_state,
    words,
)
from gerd.events.cpu.scattered import groups_of, scattered
from gerd.events.pixel.noise import BLOCK, GROUP
from gerd.events.shared import FROM_BACKGROUND, FROM_EDGE, FROM_LEAK

TOGETHER = 16  # integrators that get their initial state when one of them is touched
PENDING, HIDDEN, BEGUN = 0, 1, 2  # places in `Pixels.numbers`


@compiled
def covered(pieces, frame, y, sensor, pair):
    """First pixel and end of the part of row y that crossings enclose. `pair` is room for two."""
    left, right = sensor.width, ZERO
    for piece in range(len(pieces.convex)):
        for s in range(sensor.f):
            ends = crossings_at(piece, y, s, frame, pieces, pair)
            if len(ends) > 0 and ends[0] < ends[len(ends) - 1]:
                left, right = min(left, ends[0] // sensor.f), max(right, (ends[len(ends) - 1] - 1) // sensor.f + 1)
    return left, right


@compiled
def show(area, width, pixels, changes):
    """Bring `activation` up to date, and let what was missing in the last frame reappear."""
    for y in range(area.top, area.bottom):
        for word in range(changes.touched.shape[1]):
            rest = changes.touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * WORD_BITS + bit_number(bit)
                pixels.activation[y, x] += changes.change[y, x]
    for i in range(pixels.numbers[HIDDEN]):
        y, x = pixels.hidden[i] // width, pixels.hidden[i] % width
        changes.change[y, x] += pixels.hidden_counts[i]
        touch(changes.touched, y, x)


@compiled
def hide(step, scene, frame, pixels, changes, draws, pair):
    """Shape noise: take the pixels that are missing in this frame out of it, and keep their activations."""
    sensor, pieces, activation = scene.sensor, scene.pieces, pixels.activation
    wide = GROUP * BLOCK  # pixels in a group
    begin, end, done = sensor.height, ZERO, ZERO
    for piece in range(len(pieces.convex)):
        begin, end = hull(begin, end, frame.low[piece], frame.high[piece])
    number = 0
    for y in range(begin, end):
        left, right = covered(pieces, frame, y, sensor, pair)
        if left >= right:
            continue
        first, last = max(done, (y * sensor.width + left) // wide), (y * sensor.width + right - 1) // wide + 1
        done = last  # a group may have pixels of several rows, and is asked once
        for i in range(scattered(scene.chance, step, SHAPE, scene.noise.shape, sensor, first, last, draws)):
            pixel = (draws.picked[i] - key(step, 0, 0, sensor)) // 2
            row, x = pixel // sensor.width, pixel % sensor.width
            if activation[row, x] != 0:
                pixels.hidden[number], pixels.hidden_counts[number] = pixel, activation[row, x]
                number += 1
                changes.change[row, x] -= activation[row, x]
                touch(changes.touched, row, x)
    pixels.numbers[HIDDEN] = number


@inlined
def find_changes(step, reference, scene, old, new, pixels, changes, draws, scratch):
    """Add up what differs between two frames, shape noise included; where it may. A reference is compared with none."""
    area = Area(scene.sensor.height, ZERO, ZERO, ZERO)
    if scene.noise.has_shape or scene.model.stationary or scene.model.is_log or not reference:
        area = compare(scene, old, new, changes, scratch)
    if scene.noise.has_shape:
        show(area, scene.sensor.width, pixels, changes)
        hide(step, scene, new, pixels, changes, draws, scratch.lists[3])
        area = Area(ZERO, scene.sensor.height, ZERO, np.int64(changes.touched.shape[1]))
    return area


@compiled
def discard(area, changes):
    """Forget the changes in some rows."""
    for y in range(area.top, area.bottom):
        for x in range(changes.change.shape[1]):
            changes.change[y, x] = 0
        for word in range(changes.touched.shape[1]):
            changes.touched[y, word] = NONE


@compiled
def touch_pending(area, pixels, changes):
    """Mark the pixels that still hold more than a threshold; the area with them."""
    top, bottom, left, right = area
    width = pixels.v.shape[1]
    for i in range(pixels.numbers[PENDING]):
        y, x = pixels.pending[i] // width, pixels.pending[i] % width
        touch(changes.touched, y, x)
        top, bottom = hull(top, bottom, y, y + 1)
        left, right = hull(left, right, x // WORD_BITS, x // WORD_BITS + 1)
    pixels.numbers[PENDING] = 0
    return Area(top, bottom, left, right)


@compiled
def begin_block(y, x, model, chance, pixels):
    """The initial state of the integrator at a pixel, and of some neighbours in its row."""
    width, block = pixels.v.shape[1], x // TOGETHER * TOGETHER
    pixel, v = y * width + block, pixels.v[y, block:]
    for i in unsigned_range(ZERO, min(TOGETHER, width - block)):
        word, other, _, _ = words(chance.seed, np.uint64(pixel) + i, 0, chance.index, INITIAL)
        at = (pixel + np.int64(i)) * model.own
        drawn = initial_state(word, model.least[at], model.most[at])
        if model.stationary:
            left_by_dark = np.int64((other * np.uint64(model.actors)) >> SHIFT) < model.dark
            drawn = stationary_state(word, model.on[at], model.off[at], left_by_dark)
        v[i] = np.int32(drawn + BIAS)
    pixels.begun[pixels.numbers[BEGUN]] = pixel
    pixels.numbers[BEGUN] += 1


@compiled
def begin_covered(area, scene, pixels, changes):
    """The stationary state of the integrators that a shape covers in the first picture, which is in `changes`."""
    model, chance = scene.model, scene.chance
    for y in range(area.top, area.bottom):
        for word in range(area.left, area.right):
            rest = changes.touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * WORD_BITS + bit_number(bit)
                if changes.change[y, x] != 0:
                    if pixels.v[y, x] == 0:
                        begin_block(y, x, model, chance, pixels)
                    pixel = y * scene.sensor.width + x
                    drawn, at = words(chance.seed, pixel, 0, chance.index, INITIAL)[0], pixel * model.own
                    state = stationary_state(drawn, model.on[at], model.off[at], changes.change[y, x] > 0)
                    pixels.v[y, x] = np.int32(state + BIAS)


@compiled
def forget(pixels):
    """Integrators that another recording has begun are again not touched yet, and nothing is pending or hidden."""
    width = pixels.v.shape[1]
    for i in range(pixels.numbers[BEGUN]):
        y, block = pixels.begun[i] // width, pixels.begun[i] % width
        for x in range(block, min(block + TOGETHER, width)):
            pixels.v[y, x] = 0
            if len(pixels.fired) > 1:
                pixels.fired[y, x] = 0
    pixels.numbers[PENDING] = pixels.numbers[HIDDEN] = pixels.numbers[BEGUN] = 0


@compiled
def fire(step, area, scene, pixels, changes, picked, number, room, made):
    """Let the touched pixels of an area fire; events and background noise go into the room. The events so far."""
    touched = list_touched(area, changes)
    if scene.model.rest > 0:
        firing = integrate_and_rest(step, touched, scene, pixels, changes)
    else:
        firing = integrate(touched, scene, pixels, changes)
    if step < 0:
        return made
    if scene.noise.drop_below > 0:
        firing = keep(step, firing, scene, changes.fired)
    begin, made = made, merge(key(step, 0, 0, scene.sensor), changes.fired[:firing], picked[:number], room, made)
    if scene.model.leak > 0:
        name_leaks(step, begin, made, scene.sensor, pixels, room)
    return made


@compiled
def list_touched(area, changes):
    """Put the touched pixels of an area into `changes.listed`, and touch none any more; how many they were."""
    number, touched, listed = ZERO, changes.touched, changes.listed
    for y in unsigned_range(area.top, area.bottom):
        for word in unsigned_range(area.left, area.right):
            rest, first = touched[y, word], (y << SHIFT) + (word << WORD_SHIFT)
            touched[y, word] = NONE
            while rest:
                listed[number] = first + np.uint64(bit_number(rest & (~rest + ONE)))
                rest &= rest - ONE
                number += 1
    return number


@compiled
def integrate(number, scene, pixels, changes):
    """Let the integrators of the listed pixels fire: how many do. Their keys in a step go into `changes.fired`.

    Whether one fires is hard to foresee, so nothing is skipped where it does not.
    """
    model, v, change, listed, fired = scene.model, pixels.v, changes.change, changes.listed, changes.fired
    firing = ZERO
    for n in unsigned_range(ZERO, number):
        y, x = listed[n] >> SHIFT, listed[n] & LOW
        pixel = np.int64(y) * scene.sensor.width + np.int64(x)
        if v[y, x] == 0:
            begin_block(np.int64(y), np.int64(x), model, scene.chance, pixels)
        state = np.int64(v[y, x]) - BIAS
        above, below = np.int64(model.on[pixel * model.own]), np.int64(model.off[pixel * model.own])
        _, off, on, left = integrate_and_fire(state, np.int64(change[y, x]), above, below, model.to_zero, True)
        change[y, x], v[y, x] = 0, left + BIAS
        if (left < -below) | (left > above):
            pixels.pending[pixels.numbers[PENDING]] = pixel
            pixels.numbers[PENDING] += 1
        fired[firing] = 2 * pixel + np.int64(on)
        firing += np.int64(off | on)
    return firing


@compiled
def integrate_and_rest(step, number, scene, pixels, changes):
    """The same for pixels that rest after an event; one that is beyond its threshold is visited until it fires."""
    model, listed, firing = scene.model, changes.listed, ZERO
    for n in unsigned_range(ZERO, number):
        y, x = np.int64(listed[n] >> SHIFT), np.int64(listed[n] & LOW)
        pixel = y * scene.sensor.width + x
        if pixels.v[y, x] == 0:
            begin_block(y, x, model, scene.chance, pixels)
        state, rested = np.int64(pixels.v[y, x]) - BIAS, step >= pixels.ready[y, x]
        above, below = np.int64(model.on[pixel * model.own]), np.int64(model.off[pixel * model.own])
        change = np.int64(changes.change[y, x])
        _, off, on, left = integrate_and_fire(state, change, above, below, model.to_zero, rested)
        changes.change[y, x], pixels.v[y, x] = 0, left + BIAS
        if (left < -below) | (left > above):
            pixels.pending[pixels.numbers[PENDING]] = pixel
            pixels.numbers[PENDING] += 1
        if off | on:
            pixels.ready[y, x] = step + model.rest
            changes.fired[firing] = 2 * pixel + np.int64(on)
            firing += 1
    return firing


@compiled
def keep(step, number, scene, fired):
    """Event noise: keep what it does not drop of the events of a step; how many are left."""
    chance, left = scene.chance, ZERO
    for n in unsigned_range(ZERO, number):
        word = words(chance.seed, fired[n] // 2, step, chance.index, EVENT)[0]
        fired[left] = fired[n]
        left += np.int64(not dropped(word, scene.noise.drop_below))
    return left


@compiled
def merge(first_key, fired, picked, room, made):
    """Put the events of a step, and its background noise, into the room in the order of keys; the events so far.

    An event of the signal takes the place of one of background noise with the same key.
    """
    i, j, keys, source = ZERO, ZERO, room.keys, room.source
    while i < len(fired) and j < len(picked):
        event, noise = first_key + fired[i], picked[j]
        keys[made], source[made] = min(event, noise), noise < event
        i += np.int64(event <= noise)
        j += np.int64(noise <= event)
        made += 1
    for n in range(i, len(fired)):
        keys[made], source[made] = first_key + fired[n], FROM_EDGE
        made += 1
    for n in range(j, len(picked)):
        keys[made], source[made] = picked[n], FROM_BACKGROUND
        made += 1
    return made


@compiled
def respond(area, model, pixels, changes):
    """Turn the changes of counts in an area into those of the logarithm."""
    for y in range(area.top, area.bottom):
        for word in range(area.left, area.right):
            rest = changes.touched[y, word]
            while rest:
                bit = rest & (~rest + ONE)
                rest ^= bit
                x = word * WORD_BITS + bit_number(bit)
                before = pixels.shown[y, x]
                now = before + changes.change[y, x]
                pixels.shown[y, x] = now
                changes.change[y, x] = np.int32(
                    response(now, model.response, model.lowest) - response(before, model.response, model.lowest)
                )


@compiled
def leak_in(begin, end, scene, pixels, changes):
    """Add to the change of every pixel what leaks into it between two times in µs; the area with all of them."""
    model, width = scene.model, scene.sensor.width
    for y in range(scene.sensor.height):
        touch_range(changes.touched, y, ZERO, width - 1)
        for x in range(width):
            if pixels.v[y, x] == 0:
                begin_block(y, x, model, scene.chance, pixels)
            on = model.on[(y * width + x) * model.own]
            pixels.leaked[y, x] = (changes.change[y, x] <= 0) & (pixels.v[y, x] - BIAS <= on)
            changes.change[y, x] += np.int32(gain(on, model.leak, end) - gain(on, model.leak, begin))
    return Area(ZERO, scene.sensor.height, ZERO, np.int64(changes.touched.shape[1]))


@compiled
def name_leaks(step, begin, made, sensor, pixels, room):
    """Say of the ON events of a step, which have the numbers begin … made - 1, which are put down to the leak."""
    for n in range(begin, made):
        pixel, p = (room.keys[n] - key(step, 0, 0, sensor)) // 2, room.keys[n] % 2
        if room.source[n] == FROM_EDGE and p == 1 and pixels.leaked[pixel // sensor.width, pixel % sensor.width]:
            room.source[n] = FROM_LEAK


@compiled
def begin_recording(area, scene, pixels, changes):
    """The first picture is compared with nothing and fires nothing; stationary integrators look at it."""
    if scene.model.stationary:
        begin_covered(area, scene, pixels, changes)
    if scene.model.is_log:
        respond(area, scene.model, pixels, changes)
    discard(area, changes)


@inlined
def run_steps(maps, steps, step_us, fresh, scene, old, new, pixels, changes, draws, scratch, room):
    """Run one recording over the frames at `steps`, as long as there is room for what one more step could bring.

    Puts the keys and background flags of the events at steps >= 0 into `room`; how many steps were done, how many
    events there are.

    With `fresh`, the first frame is the one before the first step: it is compared with nothing and fires nothing.
    """
    sensor, made = scene.sensor, ZERO
    if fresh:
        forget(pixels)
    for i in range(len(steps)):
        if made + 2 * sensor.height * sensor.width > len(room.keys):  # in a step, a pixel fires once, and noise once
            return i, made
        step, reference = steps[i], fresh and i == 0
        find_crossings(maps[i], scene.pieces, sensor, scratch.sides, new)
        area = find_changes(step, reference, scene, old, new, pixels, changes, draws, scratch)
        old, new = new, old
        if reference:
            begin_recording(area, scene, pixels, changes)
            continue
        if scene.model.is_log:
            respond(area, scene.model, pixels, changes)
        area = touch_pending(area, pixels, changes)
        if scene.model.leak > 0:
            area = leak_in(float((step - 1) * step_us), float(step * step_us), scene, pixels, changes)
        number = 0
        if scene.noise.has_background and step >= 0:
            table, groups = scene.noise.background, groups_of(sensor)
            number = scattered(scene.chance, step, BACKGROUND, table, sensor, ZERO, groups, draws)
        made = fire(step, area, scene, pixels, changes, draws.picked, number, room, made)
    return len(steps), made


@compiled
def simulate_steps(maps, steps, step_us, fresh, scene, old, new, pixels, changes, draws, scratch, room):
    """`run_steps` of plain tuples, as `compiled.py` hands them over."""
    scene, old, new, pixels, changes, draws, scratch, room = named(
        scene, old, new, pixels, changes, draws, scratch, room
    )
    return run_steps(maps, steps, step_us, fresh, scene, old, new, pixels, changes, draws, scratch, room)


ENTRIES = (simulate_steps,)  # what can be called from Python

"""The slow, obvious definition of a recording, independent of the kernels, of `rasterise.py` and of `philox.py`.

One scene in, its events out. Every sub-pixel centre is taken back into each shape's unit frame and looked up there;
the integrators are a loop over pixels; the randomness is Philox in Python's integers. What it shares with the package
is the scene (numbers), its trajectory T(t), the thresholds of the camera's pixels, and the constants that say how
randomness is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from gerd.events.pixel.thresholds import Thresholds
from gerd.geometry.seen import Seen
from gerd.geometry.shapes import Outline
from gerd.geometry.trajectory import Trajectory
from gerd.scene.scenes import Scenes

Event = tuple[int, int, int, int, int]  # microseconds, y, x, p, and where it comes from
Arrived = tuple[int, int, int, int, int, int]  # an event, and when its pixel fired

BLOCK = 64
INITIAL, SHAPE, EVENT, BACKGROUND, TIME, CAMERA, HOT, JITTER = 2, 3, 4, 5, 8, 9, 10, 14  # purposes
OF_POLARITY = 12, 13
OF_EDGE, OF_BACKGROUND, OF_HOT, OF_LEAK = range(4)  # where events come from


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4x32-10 (Salmon et al. 2011)."""
    (a, b, c, d), (k0, k1), low = counter, key, 2**32 - 1
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (second >> 32) ^ b ^ k0, second & low, (first >> 32) ^ d ^ k1, first & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return a, b, c, d


def words(scenes: Scenes, element: int, step: int, purpose: int, round: int = 0) -> tuple[int, int, int, int]:
    counter = (element, step % 2**32, int(scenes.indices[0]), purpose + 256 * round)
    return philox(counter, (scenes.seed % 2**32, scenes.seed // 2**32))


def inside(outline: Outline, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether the points (u, v) of the unit frame lie in the circle, or right of an odd number of a polygon's sides."""
    if not outline.rings:
        return u * u + v * v < 0.25
    odd = np.zeros(u.shape, bool)
    for ring in outline.rings:
        for (ax, ay), (bx, by) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            if ay != by:
                odd ^= ((ay <= v) != (by <= v)) & (u >= ax + (v - ay) / (by - ay) * (bx - ax))
    return odd


def copies(scenes: Scenes, step: float) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Each copy of each actor, from the farthest on: actor, frames right and down of it, the sub-pixels it covers."""
    f, height, width = scenes.upsampling, scenes.height, scenes.width
    x, y = np.meshgrid((np.arange(width * f) + 0.5) / f, (np.arange(height * f) + 0.5) / f)
    for actor, outline in enumerate(scenes.outlines()):
        if outline is None:
            continue
        back = np.linalg.inv(scenes.trajectory.T([step])[0, actor, 0])
        around = (-1, 0, 1) if scenes.wraps[actor] else (0,)
        for down in around:
            for right in around:
                px, py = x - right * width, y - down * height
                u, v = (back[i, 0] * px + back[i, 1] * py + back[i, 2] for i in (0, 1))
                yield actor, right, down, inside(outline, u, v)


def picture(scenes: Scenes, step: float) -> np.ndarray:
    """(height, width) integers: the activation of each pixel before any noise."""
    f, height, width = scenes.upsampling, scenes.height, scenes.width
    fine = np.zeros((height * f, width * f), np.int64)
    for actor, _, _, covered in copies(scenes, step):  # a nearer one paints over a farther one
        fine[covered] = scenes.intensity[0, actor]
    return fine.reshape(height, f, width, f).sum(axis=(1, 3))


def scattered(scenes: Scenes, step: int, p: float, purpose: int) -> dict[tuple[int, int], int]:
    """The pixels (y, x) that a noise of probability `p` picks at a step, each with a random bit."""
    pixels, picked = scenes.height * scenes.width, {}
    for block in range(-(-pixels // BLOCK)):
        n = min(BLOCK, pixels - block * BLOCK)
        word = words(scenes, block // 4, step, purpose)[block % 4]
        count = sum(word >= bound for bound in binomial_bounds(p, n))
        drawn = [w for i in range(-(-count // 4)) for w in words(scenes, block, step, purpose, 1 + i)]
        chosen: dict[int, int] = {}
        for word, j in zip(drawn, range(n - count, n), strict=False):  # Floyd
            t = word * (j + 1) >> 32
            chosen[j if t in chosen else t] = word % 2
        picked |= {divmod(block * BLOCK + lane, scenes.width): bit for lane, bit in chosen.items()}
    return picked


@cache
def binomial_bounds(p: float, n: int) -> list[int]:
    """A word is worth k picked pixels if it reaches k of these: P(at most 0), P(at most 1), … in units of 2⁻³²."""
    q = Fraction(p)
    shares = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n)]
    return [int(sum(shares[: k + 1]) * 2**32) for k in range(n)]


def rendered(scenes: Scenes, time: float, step: int) -> np.ndarray:
    """The picture that the integrators see at a time, which belongs to a step: some covered pixels are missing."""
    frame = picture(scenes, time)
    if scenes.pixel.shape_noise:
        for place in scattered(scenes, step, scenes.pixel.shape_noise, SHAPE):
            frame[place] = 0
    return frame


def felt(scenes: Scenes, seen: np.ndarray) -> np.ndarray:
    """What the integrators see of a picture: its counts, or their logarithms in units of a full count."""
    b, full = scenes.pixel.log_response, 1024 * scenes.upsampling**2
    if not b:
        return seen
    return np.array([[round(full * (math.log(c / full + b) - math.log(b))) for c in row] for row in seen.tolist()])


def thresholds(scenes: Scenes) -> tuple[list[list[int]], list[list[int]]]:
    """Of ON and of OFF events, for each pixel; how they are drawn has a test of its own."""
    tables, size = Thresholds.of(scenes), (scenes.height, scenes.width)
    return np.broadcast_to(tables.on, size).tolist(), np.broadcast_to(tables.off, size).tolist()


def initial(scenes: Scenes, first: np.ndarray) -> list[list[int]]:
    """The integrators before anything changes; `first` is the first picture that they see."""
    on, off = thresholds(scenes)
    return [
        [initial_state(scenes, y, x, int(first[y, x]), on[y][x], off[y][x]) for x in range(scenes.width)]
        for y in range(scenes.height)
    ]


def initial_state(scenes: Scenes, y: int, x: int, seen: int, on: int, off: int) -> int:
    if not isinstance(scenes.pixel.initial, str):
        return round(scenes.pixel.initial * (on if scenes.pixel.initial >= 0 else off))
    word, other, *_ = words(scenes, y * scenes.width + x, 0, INITIAL)
    if scenes.pixel.initial == "uniform":
        high, low = -(-9 * on // 10) - 1, -(-9 * off // 10) - 1  # the largest integers below 0.9 thresholds
        return (word * (high + low + 1) >> 32) - low
    intensities = sorted(scenes.intensity[0][scenes.chosen[0] >= 0].tolist())
    if seen == 0 and intensities:  # as an actor that has passed has left it
        seen = -1 if intensities[other * len(intensities) >> 32] >= 0 else 1
    return word * on >> 32 if seen > 0 else -(word * off >> 32)


def number(scenes: Scenes) -> int:
    """The number of the camera: it may be that of the index."""
    return int(scenes.indices[0]) if scenes.pixel.camera is None else scenes.pixel.camera


def odd(scenes: Scenes, which: int, share: float) -> set[tuple[int, int]]:
    """The pixels (y, x) of the camera that are hot (0) or dead (1)."""
    width, bound, key = scenes.width, int(Fraction(share) * 2**32), (number(scenes) % 2**32, 0)
    pixels = range(scenes.width * scenes.height)
    return {divmod(i, width) for i in pixels if philox((i, 0, 0, CAMERA), key)[which] < bound}


def background_of_polarities(scenes: Scenes) -> Iterator[tuple[int, int, int, int]]:
    """Background noise of OFF and of ON events, each by itself, as (microseconds, y, x, p)."""
    us = scenes.step_us
    for p, probability in enumerate((scenes.pixel.background_off, scenes.pixel.background_on)):
        for step in range(int(scenes.exact), scenes.steps) if probability else ():
            for y, x in scattered(scenes, step, probability, OF_POLARITY[p]):
                late = words(scenes, y * scenes.width + x, step, TIME)[1 + p] * us >> 32
                yield (step - 1) * us + 1 + late if scenes.exact else step * us, y, x, p


def hot_events(scenes: Scenes) -> Iterator[tuple[int, int, int, int]]:
    """What hot pixels fire, as (microseconds, y, x, 1)."""
    us = scenes.step_us
    bound = int(Fraction(scenes.pixel.hot_rate_hz * us * 1e-6) * 2**32)
    for y, x in odd(scenes, 0, scenes.pixel.hot_share):
        for step in range(int(scenes.exact), scenes.steps):
            chance, when, *_ = words(scenes, y * scenes.width + x, step, HOT)
            if chance < bound:
                yield (step - 1) * us + 1 + (when * us >> 32) if scenes.exact else step * us, y, x, 1


def surrounded(scenes: Scenes, events: list[Event]) -> list[Event]:
    """The events with what the camera adds and without what it loses."""
    there = {event[:4] for event in events}
    new = dict.fromkeys(background_of_polarities(scenes), OF_BACKGROUND) | dict.fromkeys(hot_events(scenes), OF_HOT)
    added = [(*event, source) for event, source in new.items() if event not in there]
    dead = odd(scenes, 1, scenes.pixel.dead)
    return sorted(event for event in events + added if event[1:3] not in dead)


def leaked(scenes: Scenes, on: int, us: float) -> int:
    """What has come into an integrator with this ON threshold after so many microseconds, whatever it has seen."""
    return math.floor(on * (scenes.pixel.leak_hz * 1e-6) * us + 0.5)


def fired(scenes: Scenes, leaks: set[tuple[int, int, int, int]] | None = None) -> Iterator[tuple[int, int, int, int]]:
    """What the integrators fire, as (step, y, x, p), from the first step of the warm-up on.

    Events that are put down to the leak are put into `leaks`, too.
    """
    before = -scenes.warmup - 1
    previous = rendered(scenes, before, before)
    state, (on, off) = initial(scenes, previous), thresholds(scenes)
    rests, latest = holding(scenes), {}
    for step in range(-scenes.warmup, scenes.steps):
        current = rendered(scenes, step, step)
        change, previous = (felt(scenes, current) - felt(scenes, previous)).tolist(), current
        for y in range(scenes.height):
            for x in range(scenes.width):
                came, us = state[y][x], scenes.step_us
                v = came + change[y][x]
                v += leaked(scenes, on[y][x], float(step * us)) - leaked(scenes, on[y][x], float((step - 1) * us))
                sign = (v > on[y][x]) - (v < -off[y][x])
                if sign and (step - latest.get((y, x), -math.inf)) * scenes.step_us >= rests:
                    latest[y, x] = step
                    if leaks is not None and scenes.pixel.leak_hz and change[y][x] <= 0 and came <= on[y][x]:
                        leaks.add((step, y, x, 1))
                    yield step, y, x, int(sign > 0)
                    v = 0 if scenes.pixel.reset_to_zero else v - on[y][x] if sign > 0 else v + off[y][x]
                state[y][x] = v


def holding(scenes: Scenes) -> int:
    """For how many microseconds after an event the integrator of a pixel has to hold what it has."""
    return 0 if scenes.pixel.drops_refractory else int(scenes.pixel.refractory_us)


def parts(scenes: Scenes, unit: int) -> int:
    """Into how many parts exact timing cuts a unit of own time: outlines move ¼ pixel or two sub-pixels at most."""
    fastest, own = 0.0, scenes.trajectory.in_own_time()
    ends = np.abs(Trajectory.parameters(own, [unit, unit + 1])[0])  # (actors, 2, 3, 6), before any transformation
    stretch, drift = 1.0, 0.0
    if isinstance(own, Seen):
        stretch = float(np.linalg.norm(np.array(own.through.linear), 2))
        push = np.array(own.through.acceleration)
        drift = max(float(np.linalg.norm(np.array(own.through.velocity) + push * end)) for end in (unit, unit + 1))
    for outline, (early, late) in zip(scenes.outlines(), ends, strict=True):
        if outline is None:
            continue
        reach = max((math.hypot(*point) for ring in outline.rings for point in ring), default=0.5)
        value, speed = np.maximum(early, late)[:2].tolist()
        wide, high, shear = (value[i] + speed[i] / 2 for i in (2, 3, 5))
        change = max(speed[2], speed[3]) + speed[5] * high + shear * speed[3]
        linear = speed[4] * (max(wide, high) + shear * high) + change
        fastest = max(fastest, stretch * (math.hypot(speed[0], speed[1]) + reach * linear) + drift)
    return min(
        1024, 2 ** max(0, math.ceil(math.log2(max(fastest, 1e-9) / min(0.25, max(2 / scenes.upsampling, 1 / 16)))))
    )


def step_at(time: float) -> int:
    """The step that a time belongs to, which may be a little beyond it by rounding."""
    return math.ceil(time - 1e-12 * abs(time))


class Held:
    """A pixel in exact timing that has no second event within the refractory time, and whose integrator goes on."""

    def __init__(self, scenes: Scenes, on: int, off: int, state: int):
        self.on, self.off, self.v, self.to_zero = on, off, state, scenes.pixel.reset_to_zero
        self.us_per_unit, self.rest = scenes.step_us / scenes.trajectory.rate, holding(scenes)
        self.latest = -math.inf  # microseconds of the latest event

    def lived(self, begin: float, end: float, change: int) -> Iterator[tuple[int, int]]:
        """What it fires while its count changes evenly from `begin` to `end`, as (microseconds, sign)."""
        sign, left = (1 if change > 0 else -1), abs(change)  # of the change that is still to come
        while True:
            again = self.latest + self.rest
            if again > end * self.us_per_unit:
                break  # the whole rest of the change comes while it has to wait
            if again > begin * self.us_per_unit:
                come = math.floor(abs(change) * ((again / self.us_per_unit - begin) / (end - begin)))
                late = max(0, min(come, abs(change)) - (abs(change) - left))
                self.v, left = self.v + sign * late, left - late
                if self.v >= self.on or self.v <= -self.off:
                    up = self.v >= self.on
                    self.v = 0 if self.to_zero else self.v - self.on if up else self.v + self.off
                    self.latest = again
                    yield int(again), 1 if up else -1
                    continue
            needed = (self.on if sign > 0 else self.off) - sign * self.v
            if change == 0 or needed > left:
                break
            left -= needed
            share = (abs(change) - left) / abs(change)
            self.v, self.latest = 0, math.ceil((begin + (end - begin) * share) * self.us_per_unit)
            self.latest = max(self.latest, again)
            yield int(self.latest), sign
        self.v += sign * left


def passed(scenes: Scenes) -> Iterator[tuple[int, int, int, int, int]]:
    """What the integrators fire in exact timing, as (microseconds, y, x, p, source), after event noise."""
    rate, own = scenes.trajectory.rate, scenes.in_own_time()
    drop, (on, off) = int(Fraction(scenes.pixel.event_noise) * 2**32), thresholds(scenes)
    begin = float(-scenes.warmup)
    previous = rendered(own, begin, step_at(begin / rate))
    state, fired = initial(scenes, previous), np.zeros((scenes.height, scenes.width), int)
    pixels = [Held(scenes, on[y][x], off[y][x], state[y][x]) for y in range(scenes.height) for x in range(scenes.width)]
    for unit in range(-scenes.warmup, min(math.ceil(rate * (scenes.steps - 1)) + 1, scenes.path_end)):
        count = parts(scenes, unit)
        ends = {unit + (part + 1) / count for part in range(count)}
        if scenes.pixel.shape_noise:
            steps = range(math.floor(unit / rate), math.ceil((unit + 1) / rate) + 1)
            ends |= {step * rate for step in steps if unit < step * rate < unit + 1}
        for end in sorted(ends):
            current = rendered(own, end, step_at(end / rate))
            now, before = felt(scenes, current), felt(scenes, previous)
            us_per_unit, may_leak = scenes.step_us / rate, scenes.pixel.leak_hz > 0
            gains = np.array(
                [
                    [leaked(scenes, o, end * us_per_unit) - leaked(scenes, o, begin * us_per_unit) for o in row]
                    for row in on
                ]
            )
            for number, pixel in enumerate(pixels) if holding(scenes) else ():
                y, x = divmod(number, scenes.width)
                rise = int(now[y, x] - before[y, x])
                is_leak = may_leak and rise <= 0 and pixel.v <= on[y][x]
                for us, sign in pixel.lived(begin, end, rise + int(gains[y, x])):
                    word = words(scenes, number, int(fired[y, x]), EVENT)[0]
                    fired[y, x] += 1
                    if word >= drop:
                        yield us, y, x, int(sign > 0), OF_LEAK if is_leak and sign > 0 else OF_EDGE
            changed = (now != before) | (gains != 0)
            for y, x in zip(*np.nonzero(changed), strict=True) if not holding(scenes) else ():
                rise, v = int(now[y, x] - before[y, x]), state[y][x]
                is_leak, change = may_leak and rise <= 0 and v <= on[y][x], rise + int(gains[y, x])
                if change == 0:
                    continue
                sign, way, threshold = (1, change, on[y][x]) if change > 0 else (-1, -change, off[y][x])
                while v * sign + way >= threshold:
                    way -= threshold - v * sign
                    v = 0
                    share = (abs(change) - way) / abs(change)
                    word = words(scenes, int(y * scenes.width + x), int(fired[y, x]), EVENT)[0]
                    fired[y, x] += 1
                    if word >= drop:
                        us = math.ceil((begin + (end - begin) * share) * us_per_unit)
                        yield us, y, x, int(sign > 0), OF_LEAK if is_leak and sign > 0 else OF_EDGE
                state[y][x] = v + sign * way
            begin, previous = end, current


def exact_events(scenes: Scenes) -> list[Event]:
    """What the integrators of a batch of one fire in exact timing, and background noise."""
    us, last = scenes.step_us, (scenes.steps - 1) * scenes.step_us
    result = [(t, int(y), int(x), p, source) for t, y, x, p, source in passed(scenes) if 0 < t <= last]
    if scenes.pixel.background:
        for step in range(1, scenes.steps):
            for (y, x), p in scattered(scenes, step, scenes.pixel.background, BACKGROUND).items():
                late = words(scenes, y * scenes.width + x, step, TIME)[0] * us >> 32
                result.append(((step - 1) * us + 1 + late, y, x, p, OF_BACKGROUND))
    return result


def rested(scenes: Scenes, events: list[Event]) -> list[Event]:
    """The events that do not follow another of their pixel within its refractory time, in step timing whole steps."""
    least, us = Fraction(scenes.pixel.refractory_us), scenes.step_us
    if not scenes.exact:
        least = Fraction(math.ceil(least / us) * us)
    last: dict[tuple[int, int], int] = {}
    result = []
    for event in events:
        t, y, x, *_ = event
        if (y, x) not in last or t - last[y, x] >= least:
            last[y, x] = t
            result.append(event)
    return result


def gaussian(drawn: tuple[int, int, int, int]) -> float:
    """A normal number from four words, by Box and Muller."""
    first, second = (((high >> 5) * 2**26 + (low >> 6)) / 2**53 for high, low in (drawn[:2], drawn[2:]))
    return math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)


def ready(scenes: Scenes, event: Event) -> int:
    """When an event is ready to be sent, in microseconds."""
    t, y, x, p, _ = event
    late = scenes.pixel.latency_us
    if scenes.pixel.jitter_us:
        drawn = words(scenes, 2 * (y * scenes.width + x) + p, (t + scenes.step_us - 1) % 2**32, JITTER)
        late += scenes.pixel.jitter_us * gaussian(drawn)
    return t + max(0, round(late))


def read_out(scenes: Scenes, events: list[Event]) -> list[Arrived]:
    """The events as they arrive: one after the other on a bus, on which those that are ready first go first."""
    takes = Fraction(math.ceil(Fraction(scenes.pixel.bus_us) * 2**24), 2**24)
    free, result = Fraction(0), []
    for at, y, x, p, fired, source in sorted(
        (ready(scenes, event), *event[1:4], event[0], event[4]) for event in events
    ):
        turn = max(Fraction(at), free) if takes else Fraction(at)
        if turn - at <= Fraction(scenes.pixel.queue_us):
            free = turn + takes
            result.append((math.ceil(turn), y, x, p, source, fired))
    last = (scenes.steps - 1) * scenes.step_us
    return sorted((event for event in result if event[0] <= last), key=lambda event: event[:4])


def events(scenes: Scenes) -> list[Arrived]:
    """The events of a batch of one, sorted by (time, y, x, p)."""
    assert len(scenes) == 1
    pixel, made = scenes.pixel, of_pixels(scenes)
    if pixel.drops_refractory:
        made = rested(scenes, made)
    if pixel.latency_us or pixel.jitter_us or pixel.bus_us:
        return read_out(scenes, made)
    return [(*event, event[0]) for event in made]


def of_pixels(scenes: Scenes) -> list[Event]:
    """The events before readout."""
    if scenes.exact:
        return surrounded(scenes, exact_events(scenes))
    drop = int(Fraction(scenes.pixel.event_noise) * 2**32)
    leaks: set[tuple[int, int, int, int]] = set()
    signal = {
        (step, y, x, p)
        for step, y, x, p in fired(scenes, leaks)
        if step >= 0 and words(scenes, y * scenes.width + x, step, EVENT)[0] >= drop
    }
    noise = set()
    if scenes.pixel.background:
        for step in range(scenes.steps):
            picked = scattered(scenes, step, scenes.pixel.background, BACKGROUND)
            noise |= {(step, y, x, p) for (y, x), p in picked.items()}
    source = dict.fromkeys(noise, OF_BACKGROUND) | dict.fromkeys(signal, OF_EDGE)
    source |= dict.fromkeys(signal & leaks, OF_LEAK)
    both = [(step * scenes.step_us, *rest, source[step, *rest]) for step, *rest in signal | noise]
    return surrounded(scenes, both)

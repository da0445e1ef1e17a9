"""What a config would make, and what that would take: a member in, events, bytes and seconds of its recordings out.

Twenty indices are looked at. First their motion alone: how much area the outlines sweep in the frame, and at how many
instants the picture has to be looked at, say about how many events there will be and how long they take, before
anything is simulated. What fits into the budget of a check is then simulated: all steps of the twenty, or as many as
fit, from which the motion tells the rest. What does not fit is not begun.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from gerd.cli.contrast import contrasts, ideal
from gerd.config.config import Config
from gerd.events import exact
from gerd.events.backends import needs_compiling, run
from gerd.events.keys import Keys
from gerd.events.rasterise import entry_count, layout, values_of_picture
from gerd.events.shared import FROM_EDGE, Chunk, joined
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT
from gerd.geometry.shapes import RADIUS, Outline
from gerd.plan.make import plan_of
from gerd.plan.plan import Pixel
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.storage.blocks import pack_events, pack_truths
from gerd.storage.details import pack_details

Array = NDArray[np.float64]

INDICES = 20
SECONDS = 5.0  # that a check may take for all members it tries, by the estimate
BYTES = 2**30  # that it may hold for them, by the estimate
MOMENTS = 64  # of a recording at which its motion is looked at
MOST_SIDES = 64  # of an outline that are looked at
PATH_UNITS = 2**21  # accelerations that are followed for it, of all actors of the twenty indices
LIMITED_UNITS = 2**15  # the same where there is a speed limit
TRUTH_VALUES = 2**16  # actors · steps of ground truth that are packed to see how well they pack
QUICK_VALUES = 2**24  # pixels and crossings that the definition sees in a second or two: nothing is compiled for them
BYTES_OF_ENTRY = 150  # of a recording, in the tables of its shard
FASTEST_SWEEP = 1e12  # pixels per step that one side of an outline can sweep
SURE = 3.88  # standard errors: 99 times in 100 and more, also for counts that are far from Gaussian
FARTHER = 0.25  # by which a range is wider on both sides where steps were not simulated
UNSEEN = 3.0  # how many times as many or as few where none were

# Seconds, as one core of a server takes them; what is simulated corrects them.
OF_INSTANT, OF_CROSSING, OF_SIDE, OF_EVENT, OF_NOISY_PIXEL = 5e-6, 4e-9, 3e-9, 1e-7, 2e-9
OF_SOURCE_STEP, OF_SCATTERED, OF_HOT_PIXEL = 1e-4, 4e-7, 7e-8  # noise that is no kernel's: a step, an event, a word
OF_LIMITED_UNIT = 3e-5  # a unit of own time of a motion with a speed limit
OF_PAIR, OF_PAIR_ROW = 1e-8, 1.3e-9  # of actors of which one may hide the other, for each line of sub-pixels in a row
CONCAVE = 4  # crossings of a convex outline that one of another costs: they are sorted and listed
# Bytes that a simulation holds at most
OF_HELD_EVENT, OF_HELD_PIXEL, OF_HELD_POSE = 50, 120, 3 * 8 * ORDERS * PARAMETER_COUNT


@dataclass(frozen=True)
class Forecast:
    """What is foretold of the recordings of a member: arrays have one number for each index that was looked at."""

    scenes: Scenes  # of these indices
    events: Array  # of a recording, background noise and all
    noise: Array  # events of these that are background noise
    size: float  # bytes of a recording in a dataset
    seconds: float  # to simulate one on a core of this machine
    memory: float  # bytes that this takes
    instants: float  # of a recording, at which its picture is looked at
    steps: int  # that were simulated; 0 if none were
    silent: bool  # whether nothing but noise was seen in index 0
    beside_ideal: float | None = None  # how many times the events of an ideal camera; None: it is one, or not known

    @property
    def whole(self) -> bool:
        return self.steps == self.scenes.steps


def forecast(config: Config, seconds: float = SECONDS) -> Forecast:
    """What the recordings of a member are like, at a cost of about so many seconds."""
    before = (config.integrator.warmup + 1) * config.fastest * max(1, len(config.cast))
    scenes = draw(plan_of(config), range(max(1, min(INDICES, int(PATH_UNITS / before)))))
    steps = scenes.steps
    signal = _signal(scenes, steps)
    cost, memory = _cost(scenes, steps, signal)
    motion = _motion(scenes, steps)
    is_ideal = scenes.pixel == ideal(scenes.pixel)
    affordable = _affordable(scenes, seconds if is_ideal else seconds / 2, signal)
    if affordable == 0:
        noise = np.full(len(scenes), _background(scenes, steps))
        events = signal + noise
        size = 2.4 * float(events.mean()) + BYTES_OF_ENTRY
        return Forecast(scenes, events, noise, size, cost + motion, memory, _instants(scenes, steps), 0, False)
    taken = scenes if not needs_compiling(scenes) else _quick(scenes, affordable)
    _simulated(taken[:1], 1)  # kernels are loaded now
    begun = time.perf_counter()
    parts = _simulated(taken, affordable)
    lasted = time.perf_counter() - begun
    noise = np.array([np.count_nonzero(part.source != FROM_EDGE) for part in parts], np.float64)
    seen = np.array([len(part.keys) for part in parts], np.float64) - noise
    if affordable < steps:
        head = _signal(taken, affordable)
        whole = signal[: len(taken)]
        seen *= np.where(head > 0, whole / np.where(head > 0, head, 1.0), steps / affordable)
        noise *= steps / affordable
    began, _ = _cost(taken, affordable, _signal(taken, affordable))
    speed = lasted / (began * len(taken)) if len(taken) == len(scenes) else 1.0
    size = _size(taken, parts, affordable, float((seen + noise).mean()))
    silent = bool((parts[0].source != FROM_EDGE).all())
    instants = _instants(scenes, steps)
    ratio = None if is_ideal else _beside_ideal(taken, parts, affordable)
    lasts = cost * speed + motion
    return Forecast(taken, seen + noise, noise, size, lasts, memory, instants, affordable, silent, ratio)


def _beside_ideal(scenes: Scenes, parts: list[Chunk], steps: int) -> float | None:
    """How many times the events that an ideal camera has of the same scenes in their first steps."""
    same = _simulated(replace(scenes, pixel=ideal(scenes.pixel)), steps)
    number = sum(len(part.keys) for part in same)
    return sum(len(part.keys) for part in parts) / number if number else None


def total(parts: list[Forecast], recordings: int, members: int) -> tuple[float, float]:
    """From how many to how many events all recordings have together: it is so 99 times in 100.

    `parts` are forecasts of some of the members; the recordings are `recordings / members` indices with all of them.
    """
    indices = min(len(part.events) for part in parts)
    of_index = np.mean([part.events[:indices] for part in parts], axis=0)
    count = recordings // members
    known, unknown = min(indices, count), max(0, count - indices)
    mean = float(of_index.mean())
    sum_ = float(of_index[:known].sum()) + unknown * mean
    spread = float(of_index.std(ddof=1)) if indices > 1 else mean
    deviation = spread * sqrt(unknown + unknown * unknown / indices)
    if len(parts) < members:  # the other members are somewhere between or beside them
        of_member = np.array([part.events.mean() for part in parts])
        deviation += count * float(of_member.std(ddof=1)) * sqrt((1 / len(parts)) * (1 - len(parts) / members))
    low, high = sum_ - SURE * deviation, sum_ + SURE * deviation
    if not all(part.whole for part in parts):
        low, high = low * (1 - FARTHER), high * (1 + FARTHER)
    if not all(part.steps for part in parts):
        low, high = sum_ / UNSEEN, high * UNSEEN
    return max(0.0, low) * members, high * members


def _quick(scenes: Scenes, steps: int) -> Scenes:
    """The recordings that the definition makes soon; all of them if it makes none, and kernels are needed."""
    values = max(1.0, _instants(scenes, steps)) * values_of_picture(scenes)
    fitting = int(QUICK_VALUES / values)
    return scenes[: min(fitting, len(scenes))] if fitting else scenes


def _simulated(scenes: Scenes, steps: int) -> list[Chunk]:
    """The events of each recording in its first steps."""
    short = replace(scenes, steps=steps)
    quick = _instants(short, steps) * values_of_picture(short) * len(short) <= QUICK_VALUES
    backend = "torch" if quick and needs_compiling(short) else None
    parts: list[list[Chunk]] = [[] for _ in range(len(short))]
    for part in run(short, backend=backend):
        parts[part.row].append(part)
    return [joined(each) for each in parts]


def _size(scenes: Scenes, parts: list[Chunk], steps: int, events: float) -> float:
    """Bytes of a recording with so many events in a dataset."""
    made = sum(len(part.keys) for part in parts)
    span = steps * Keys.of(scenes).per_step
    packed = sum(len(pack_events(part.keys, part.source != FROM_EDGE, 0, span)[0]) for part in parts)
    packed += sum(len(pack_details(part.source, part.delay)[0]) for part in parts)
    looked_at = min(steps, max(2, TRUTH_VALUES // max(1, scenes.chosen.shape[1])))
    truth = len(pack_truths([scenes[:1].truth(np.arange(looked_at))[0]])[0]) * scenes.steps / looked_at
    return packed / max(1, made) * events + truth + BYTES_OF_ENTRY


# What the motion says


def reachable(scenes: Scenes) -> float:
    """How many steps of the motion can be followed soon: accelerations are added up from the first on."""
    trajectory = scenes.trajectory
    if trajectory.push is None:
        return float(scenes.steps)
    limited = np.isfinite(trajectory.speed_limit).any()
    units = (LIMITED_UNITS if limited else PATH_UNITS) / max(1, scenes.chosen.size)
    return min(float(scenes.steps), units / trajectory.rate)


def _moments(scenes: Scenes, steps: int) -> tuple[Array, float]:
    """Times in steps, evenly over the first steps, and how far each is from the one before that it is compared with."""
    length = min(float(_with_events(scenes, steps)), reachable(scenes))
    between = scenes.exact or length < 1
    number = MOMENTS if between else min(MOMENTS, ceil(length))
    times = (np.arange(number) + 0.5) / number * length
    if between:  # no instants lie closer, and what is fast is somewhere else after any longer time
        return times, min(max(length, 1e-9), 1.0, 1 / (exact.MOST_PARTS * scenes.trajectory.rate))
    return np.ceil(times) - 1, 1.0  # the last step before these is -1, of the warm-up


def _with_events(scenes: Scenes, steps: int) -> int:
    """How many of the first steps have events."""
    return steps - scenes.first_step


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def _signal(scenes: Scenes, steps: int) -> Array:
    """(recordings,): about how many events edges and shape noise cause in the first steps.

    An outline that sweeps so many pixels in the frame lets these pixels change by its intensity. They fire once for
    each threshold in that but the first: what came before has mostly left the integrator on the other side of 0.
    Nearer actors are not looked at, nor where in a pixel an edge begins.
    """
    result = np.zeros(len(scenes))
    times, before = _moments(scenes, steps)
    if not _with_events(scenes, steps) or not scenes.present.any():
        return result
    both = np.stack([times - before, times], axis=1).ravel()
    T = scenes.trajectory.unwrapped().T(both)
    middle = 2 / (1 / scenes.pixel.threshold_on + 1 / scenes.pixel.threshold_off)  # of the passages up and down
    thresholds = np.abs(contrasts(scenes)) / (middle / scenes.full_count)
    passages = np.maximum(thresholds - (1.0 if scenes.pixel.initial == "stationary" else 0.5), 0.1 * thresholds)
    for actor, shapes in enumerate(scenes.shapes):
        for number, outline in enumerate(shapes):
            rows = np.flatnonzero(scenes.chosen[:, actor] == number)
            if len(rows):
                swept = _swept(scenes, outline, T[rows, actor], before, scenes.wraps[actor])
                result[rows] += swept.mean(axis=1) * passages[rows, actor]
    if not scenes.exact:
        result = np.minimum(result, scenes.width * scenes.height)
    return result * _with_events(scenes, steps)


def _swept(scenes: Scenes, outline: Outline, T: Array, before: float, wraps: bool) -> Array:
    """(recordings, moments): pixels that an outline sweeps per step, and that shape noise takes away and gives back.

    `T` are pairs of matrices (recordings, 2 · moments, 3, 3), `before` steps apart. Of each side the part in the frame
    counts, with the speed of its middle.
    """
    sides = _sides(outline)
    then, now = (np.einsum("rtij,msj->rtmsi", part[..., :2, :2], sides) for part in (T[:, ::2], T[:, 1::2]))
    then, now = then + T[:, ::2, None, None, :2, 2], now + T[:, 1::2, None, None, :2, 2]
    frame = np.array([scenes.width, scenes.height], np.float64)
    begin, along = now[..., 0, :], now[..., 1, :] - now[..., 0, :]
    enters, leaves = (np.zeros(begin.shape[:-1]), np.ones(begin.shape[:-1])) if wraps else _inside(begin, along, frame)
    share = np.maximum(leaves - enters, 0.0)
    middle = ((enters + leaves) / 2)[..., None]
    speeds = (now - then) / before
    speed = speeds[..., 0, :] + middle * (speeds[..., 1, :] - speeds[..., 0, :])
    crossed = np.abs(speed[..., 0] * along[..., 1] - speed[..., 1] * along[..., 0]) * share
    swept = np.minimum(np.nan_to_num(crossed), FASTEST_SWEEP).sum(axis=-1)
    if scenes.exact:  # from one instant to the next a pixel changes once, however often it is passed
        swept = np.minimum(swept, exact.MOST_PARTS * scenes.trajectory.rate * frame.prod())
    if scenes.pixel.shape_noise == 0:
        return swept
    area = np.nan_to_num(np.abs((begin[..., 0] * along[..., 1] - begin[..., 1] * along[..., 0]).sum(axis=-1)) / 2)
    return swept + 2 * scenes.pixel.shape_noise * np.minimum(area, frame.prod())


def _inside(begin: Array, along: Array, frame: Array) -> tuple[Array, Array]:
    """Which part of each line lies in the frame: from one share of its length to another; to a smaller one if none."""
    with np.errstate(divide="ignore"):
        low, high = -begin / along, (frame - begin) / along
    outside = (along == 0) & ((begin < 0) | (begin > frame))
    enters = np.where(along == 0, np.where(outside, 2.0, 0.0), np.minimum(low, high))
    leaves = np.where(along == 0, 1.0, np.maximum(low, high))
    return np.clip(enters.max(axis=-1), 0.0, 2.0), np.clip(leaves.min(axis=-1), 0.0, 1.0)


def _sides(outline: Outline) -> Array:
    """(sides, 2 ends, 2): those of an outline in its unit frame; for many of them, pieces of equal length."""
    if outline.is_circle:
        angle = np.arange(MOST_SIDES + 1) * (2 * np.pi / MOST_SIDES)
        points = RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.stack([points[:-1], points[1:]], axis=1)
    if len(outline.segments) <= MOST_SIDES:
        return outline.segments
    begin, side = outline.segments[:, 0], outline.segments[:, 1] - outline.segments[:, 0]
    length = np.sqrt((side * side).sum(axis=1))
    ends = np.cumsum(length)
    at = (np.arange(MOST_SIDES) + 0.5) / MOST_SIDES * ends[-1]
    which = np.minimum(np.searchsorted(ends, at), len(ends) - 1)
    direction = side[which] / np.where(length[which] > 0, length[which], 1.0)[:, None]
    middle = begin[which] + direction * (at - (ends[which] - length[which]))[:, None]
    half = direction * (ends[-1] / MOST_SIDES / 2)
    return np.stack([middle - half, middle + half], axis=1)


def _instants(scenes: Scenes, steps: int) -> float:
    """How often the picture of a recording is looked at in its first steps, warm-up included."""
    if not scenes.exact:
        return float(steps + scenes.warmup)
    own = scenes.in_own_time()
    rate = scenes.trajectory.rate
    times, _ = _moments(scenes, steps)
    parts = []
    for unit in np.unique(np.floor(times * rate).astype(np.int64)):
        own = own.resumed(np.array([unit, unit + 1]))
        parts.append(float(exact.sub_steps(own, int(unit), int(unit) + 1).mean()))
    units = exact.last_unit(scenes, steps) + scenes.warmup
    return units * float(np.mean(parts)) + (units / rate if scenes.pixel.shape_noise > 0 else 0.0)


def _background(scenes: Scenes, steps: int) -> float:
    """How many events of the first steps no edge causes, about."""
    pixel = scenes.pixel
    hot = pixel.hot_share * pixel.hot_rate_hz * scenes.step_us * 1e-6
    leak = pixel.leak_hz * scenes.step_us * 1e-6
    per_step = pixel.background + pixel.background_on + pixel.background_off + hot + leak
    return per_step * scenes.width * scenes.height * _with_events(scenes, steps)


def _cost(scenes: Scenes, steps: int, signal: Array) -> tuple[float, float]:
    """About how many seconds and bytes the first steps of one recording take."""
    pixels = scenes.width * scenes.height
    slots = sum(_slots(scenes.shapes[piece.actor]) for piece in layout(scenes))
    picture = scenes.height * scenes.upsampling * slots * OF_CROSSING + entry_count(scenes) * OF_SIDE
    actors = scenes.present.sum(axis=1)
    pairs = float((actors * (actors - 1) / 2).mean())
    picture += pairs * scenes.upsampling * (OF_PAIR + scenes.height * OF_PAIR_ROW)
    instants = _instants(scenes, steps)
    events = float(signal.mean()) + _background(scenes, steps)
    noisy = instants * (scenes.pixel.shape_noise > 0) + steps * (scenes.pixel.background > 0)
    poses = steps * scenes.chosen.shape[1]
    sources = steps * _sources(scenes.pixel, pixels)
    seconds = instants * (OF_INSTANT + picture) + events * OF_EVENT + noisy * pixels * OF_NOISY_PIXEL
    memory = events * OF_HELD_EVENT + pixels * OF_HELD_PIXEL + poses * OF_HELD_POSE
    return seconds + sources + pixels * OF_NOISY_PIXEL, memory


def _motion(scenes: Scenes, steps: int) -> float:
    """About how many seconds the motion takes: a speed limit looks at one unit of own time after the other."""
    trajectory = scenes.trajectory
    if trajectory.push is None or not np.isfinite(trajectory.speed_limit).any():
        return 0.0
    return (steps + scenes.warmup) * trajectory.rate * OF_LIMITED_UNIT


def _sources(pixel: Pixel, pixels: int) -> float:
    """About how many seconds hot pixels, and noise of each polarity by itself, take in one step."""
    each = (pixel.background_on, pixel.background_off)
    polarities = sum(probability > 0 for probability in each)
    scattered = polarities * (OF_SOURCE_STEP + pixels * OF_NOISY_PIXEL) + sum(each) * pixels * OF_SCATTERED
    hot = pixel.hot_share * pixels * OF_HOT_PIXEL if pixel.hot_rate_hz > 0 else 0.0
    return scattered + hot


def _slots(shapes: tuple[Outline, ...]) -> float:
    """What a sub-row of the costliest of these outlines costs: a line meets a convex one twice, and others often."""
    return max(2.0 if outline.is_convex else CONCAVE * _crossings(outline) for outline in shapes)


def _crossings(outline: Outline) -> float:
    """How often a sub-row crosses an outline, on average."""
    heights = outline.segments[..., 1]
    return float(np.abs(heights[:, 1] - heights[:, 0]).sum() / max(float(np.ptp(heights)), 1e-9))


def _affordable(scenes: Scenes, seconds: float, signal: Array) -> int:
    """How many steps of every recording can be simulated in so many seconds, and in the memory of a check."""
    steps, most = scenes.steps, scenes.steps
    least = min(scenes.first_step + 1, steps)  # with fewer there are no events
    while most >= least:
        needed, memory = _cost(scenes, most, signal if most == steps else _signal(scenes, most))
        excess = max(needed * len(scenes) / seconds, memory / BYTES, memory * len(scenes) / (4 * BYTES))
        if excess <= 1:
            return most
        most = min(most - 1, int(most / (1.2 * excess)))
    return 0

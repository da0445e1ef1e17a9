"""The slow, obvious definition of causes, masks and flow: sub-pixels are looked up one by one, and all steps walked.

It shares with the package the scene (numbers) and its trajectory T(t), and with `oracle.py` how a sub-pixel is looked
up in a shape and what shape noise takes out. A copy of an actor on a torus is followed by small steps along its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gerd.recording.recording import Recording
from gerd.scene.scenes import Scenes
from support import oracle

Copy = tuple[int, int, int]  # actor; how many frames right and down of it
NOTHING: Copy = (-1, 0, 0)
H = 1e-6  # steps, for a difference in place of a derivative


@dataclass(frozen=True)
class Cause:
    """An actor, and where the centres of the copies were whose edges may be meant, at a step."""

    actor: int
    copies: list[tuple[Copy, int]]


def labels(scenes: Scenes, step: int) -> tuple[np.ndarray, list[Copy]]:
    """What is seen in each sub-pixel, (height · f, width · f): places in a list of copies, of which 0 is nothing."""
    f = scenes.upsampling
    seen, copies = np.zeros((scenes.height * f, scenes.width * f), np.int64), [NOTHING]
    for actor, right, down, covered in oracle.copies(scenes, step):
        seen[covered] = len(copies)
        copies.append((actor, right, down))
    return seen, copies


def rendered(scenes: Scenes, step: int) -> tuple[np.ndarray, list[Copy]]:
    """The same, where nothing is seen in a pixel that shape noise takes out."""
    seen, copies = labels(scenes, step)
    f = scenes.upsampling
    if scenes.pixel.shape_noise:
        for y, x in oracle.scattered(scenes, step, scenes.pixel.shape_noise, oracle.SHAPE):
            seen[y * f : y * f + f, x * f : x * f + f] = 0
    return seen, copies


def shares(scenes: Scenes, step: int, before: Any, now: Any, y: int, x: int) -> dict[tuple[Copy, int], int]:
    """By how much the edge of each copy, of this step or the one before, has raised the count of a pixel."""
    f, copies = scenes.upsampling, now[1]
    old, new = (seen[y * f : y * f + f, x * f : x * f + f].ravel().tolist() for seen, _ in (before, now))
    brightness = [0, *(int(scenes.intensity[0, actor]) for actor, _, _ in copies[1:])]
    result: dict[tuple[Copy, int], int] = {}
    for was, is_now in zip(old, new, strict=True):
        if was != is_now:
            passed = (copies[is_now], step) if is_now > was else (copies[was], step - 1)  # the nearer of the two
            result[passed] = result.get(passed, 0) + brightness[is_now] - brightness[was]
    return result


def walked(recording: Recording) -> Iterator[tuple[Cause | None, bool]]:
    """The cause of each event, None for background noise, and whether it is an echo."""
    scenes = recording.scene
    events: dict[int, list[Any]] = {}
    for (step, y, x, p), noise in zip(recording.coordinates.tolist(), recording.background.tolist(), strict=True):
        events.setdefault(step + recording.first, []).append((y, x, p, noise))
    latest: dict[tuple[int, int, int], Cause] = {}
    before = rendered(scenes, -scenes.warmup - 1)
    for step in range(-scenes.warmup, recording.first + recording.steps):
        now = rendered(scenes, step)
        changed = set()
        for y in range(scenes.height):
            for x in range(scenes.width):
                gains = shares(scenes, step, before, now, y, x)
                if sum(gains.values()):
                    changed.add((y, x))
                    sign = 1 if sum(gains.values()) > 0 else -1
                    latest[y, x, sign] = winner(gains, sign)
        for y, x, p, noise in events.get(step, []):
            yield (None, False) if noise else (latest[y, x, 2 * p - 1], (y, x) not in changed)
        before = now


def winner(gains: dict[tuple[Copy, int], int], sign: int) -> Cause:
    of_actor: dict[int, int] = {}
    for ((actor, _, _), _), gain in gains.items():
        of_actor[actor] = of_actor.get(actor, 0) + sign * gain
    most = max(of_actor.values())
    actor = max(actor for actor, gain in of_actor.items() if gain == most)
    own = {passed: sign * gain for passed, gain in gains.items() if passed[0][0] == actor}
    return Cause(actor, [passed for passed, gain in own.items() if gain == max(own.values())])


@lru_cache(maxsize=256)
def travelled(recording: Recording, actor: int, begin: float, end: float) -> np.ndarray:
    """How far an actor has moved on the plane; a torus shows it modulo the frame."""
    path = recording.scene.trajectory[0, actor]
    places = path.T(np.linspace(begin, end, max(2, int(512 * (end - begin)))))[:, :2, 2]
    size = np.array([recording.width, recording.height])
    moves = np.diff(places, axis=0)
    if recording.scene.wraps[actor]:
        moves = (moves + size / 2) % size - size / 2
    return moves.sum(axis=0)


def velocity(recording: Recording, passed: tuple[Copy, int], time: float, y: int, x: int) -> np.ndarray:
    """Of the point of a copy that is at a pixel's centre at a time in steps, by a difference."""
    (actor, right, down), step = passed
    path, size = recording.scene.trajectory[0, actor], np.array([recording.width, recording.height])
    centre = path.T([step])[0, :2, 2] + size * (right, down) + travelled(recording, actor, step, time)
    now, later = path.T([time, time + H])
    unit = np.linalg.inv(now[:2, :2]) @ ((x + 0.5, y + 0.5) - centre)
    moved = (later[:2, :2] - now[:2, :2]) @ unit + travelled(recording, actor, time, time + H)
    return moved / H

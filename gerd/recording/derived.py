"""What follows from a recording's ground truth: boxes, outlines, pictures, visibility, flow.

A recording and steps in; arrays out, in pixels and pixels per step. Pictures are rendered from the stored ground truth,
which runs no code that the config names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.events.rasterise import COPIES
from gerd.geometry import shapes
from gerd.geometry.trajectory import Trajectory
from gerd.scene.scenes import INTENSITY_ONE, Scenes

if TYPE_CHECKING:
    from gerd.recording.recording import Recording

Array = NDArray[np.float64]
Steps = NDArray[np.int64]

VISIBLE = 0.5  # share of a pixel from which on an actor is what is seen there
CIRCLE_POINTS = 128  # of a circle's outline
PIXELS_AT_ONCE = 2**20  # rendered together, so that memory does not grow with the number of steps


def boxes(recording: Recording) -> Array:
    """(steps, actors, 4): left, top, right, bottom of each outline."""
    result = np.empty((recording.steps, recording.actors, 4))
    for actor, outline in enumerate(recording.shown.outlines):
        low, high = outline.extent(recording.T[:, actor, :2, :2])
        centre = recording.positions[:, actor]
        result[:, actor] = np.concatenate([centre + low, centre + high], axis=1)
    return result


def outlines(recording: Recording, step: int) -> list[list[Array]]:
    """For each actor, the closed rings (points, 2) of its outline."""
    turn = np.linspace(0, 2 * np.pi, CIRCLE_POINTS, endpoint=False)
    circle = shapes.RADIUS * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    result = []
    for T, outline, wraps in zip(recording.T[step], recording.shown.outlines, recording.shown.wraps, strict=True):
        rings = [ring @ T[:2, :2].T + T[:2, 2] for ring in outline.rings or (circle,)]
        if wraps:
            copies = [ring + shift for shift in _shifts(recording) for ring in rings]
            rings = [ring for ring in copies if _reaches_in(recording, ring)]
        result.append(rings)
    return result


def _shifts(recording: Recording) -> NDArray[np.int64]:
    """(copies, 2): how far right and down the copies of an actor on a torus lie."""
    return np.array([(right * recording.width, down * recording.height) for down, right in COPIES])


def _reaches_in(recording: Recording, points: Array) -> bool:
    """Whether the box of some points reaches into the frame."""
    frame = (recording.width, recording.height)
    return bool((points.max(axis=0) > 0).all() and (points.min(axis=0) < frame).all())


def images(recording: Recording, steps: Steps, only: int | None = None) -> NDArray[np.float32]:
    """(steps, height, width): the brightness of each pixel; with `only`, of one actor, which has brightness 1."""
    result = np.empty((len(steps), recording.height, recording.width), np.float32)
    at_once = max(1, PIXELS_AT_ONCE // (recording.height * recording.width))
    for begin in range(0, len(steps), at_once):
        part = steps[begin : begin + at_once]
        intensity = np.repeat(recording.shown.intensity, len(part), axis=0)
        if only is not None:
            intensity[:] = 0
            intensity[:, only] = INTENSITY_ONE
        result[begin : begin + at_once] = _rendered(
            replace(
                recording.shown,
                indices=np.zeros(len(part), np.int64),
                intensity=intensity,
                trajectory=Trajectory.at_rest(recording.truth[part, :, 0]),
            )
        )
    return result


def _rendered(resting: Scenes) -> NDArray[np.float64]:
    """(scenes, height, width): the brightness of scenes that do not move."""
    from gerd.events import definition

    return definition.activation(resting, np.zeros(1, np.int64))[:, 0].numpy() / resting.full_count


def coverage(recording: Recording, steps: Steps) -> NDArray[np.float32]:
    """(steps, actors, height, width): the share of each pixel in which each actor is visible."""
    result = np.empty((len(steps), recording.actors, recording.height, recording.width), np.float32)
    for actor in range(recording.actors):
        result[:, actor] = images(recording, steps, actor)
    return result


def visibility(recording: Recording) -> Array:
    """(steps, actors): the share of each shape's area that is in the frame and not hidden."""
    each = (coverage(recording, np.array([step]))[0] for step in range(recording.steps))
    seen = np.stack([actors.sum(axis=(1, 2), dtype=np.float64) for actors in each])
    areas = np.array([outline.area for outline in recording.shown.outlines])
    size = areas * np.abs(np.linalg.det(recording.T[:, :, :2, :2]))
    return np.clip(seen / np.where(size > 0, size, 1.0), 0.0, 1.0)


def flow(recording: Recording, steps: Steps) -> NDArray[np.float32]:
    """(steps, 2, height, width): velocity of what is visible in each pixel, 0 elsewhere."""
    masks = coverage(recording, steps) >= VISIBLE
    x, y = np.meshgrid(np.arange(recording.width) + 0.5, np.arange(recording.height) + 0.5)
    result = np.zeros((len(steps), 2, recording.height, recording.width), np.float32)
    for i, step in enumerate(steps):
        for actor in np.flatnonzero(masks[i].any(axis=(1, 2))).tolist():  # T of what is seen can be taken back
            generator = recording.T_velocity[step, actor] @ np.linalg.inv(recording.T[step, actor])
            right, down = _copy_shown(recording, step, actor) if recording.shown.wraps[actor] else (0, 0)
            along_x, along_y, drift = generator[:2, :, None, None].swapaxes(0, 1)
            velocity = along_x * (x - right) + along_y * (y - down) + drift
            result[i] = np.where(masks[i, actor], velocity, result[i])
    return result


def _copy_shown(recording: Recording, step: int, actor: int) -> NDArray[np.int64]:
    """(2, height, width): how far right and down the copy on the torus lies that covers most of each pixel."""
    shifts = _shifts(recording)
    start = np.repeat(recording.truth[step, actor, :1][None], len(shifts), axis=0)
    start[:, 0, :2] += shifts
    copies = replace(
        recording.shown,
        indices=np.zeros(len(shifts), np.int64),
        outlines=recording.shown.outlines[actor : actor + 1],
        wraps=(False,),
        intensity=np.full((len(shifts), 1), INTENSITY_ONE, np.int32),
        trajectory=Trajectory.at_rest(start),
    )
    return np.moveaxis(shifts[_rendered(copies).argmax(axis=0)], -1, 0)

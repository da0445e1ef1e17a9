"""What follows from a recording's ground truth: boxes, outlines, pictures, visibility, flow.

A recording and steps in; arrays out, in pixels and pixels per step. Pictures are rendered from the stored ground truth,
which runs no code that the config names; only where the step before the recording's first is needed (`edges`), its
motion is worked out anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gerd.events.labels import coverage as seen
from gerd.events.rasterise import COPIES
from gerd.geometry import exactmath, shapes

if TYPE_CHECKING:
    from gerd.recording.recording import Recording

Array = NDArray[np.float64]
Steps = NDArray[np.int64]

CIRCLE_POINTS = 128  # of a circle's outline
PIXELS_AT_ONCE = 2**20  # rendered together, so that memory does not grow with the number of steps


def boxes(recording: Recording) -> Array:
    """(steps, actors, 4): left, top, right, bottom of each outline."""
    result = np.empty((recording.steps, recording.actors, 4))
    for actor, outline in enumerate(recording.shown.outlines()):
        if outline is None:
            result[:, actor] = np.nan
            continue
        low, high = outline.extent(recording.T[:, actor, :2, :2])
        centre = recording.positions[:, actor]
        result[:, actor] = np.concatenate([centre + low, centre + high], axis=1)
    return result


def outlines(recording: Recording, step: int) -> list[list[Array]]:
    """For each actor, the closed rings (points, 2) of its outline."""
    turn = np.linspace(0, 2 * np.pi, CIRCLE_POINTS, endpoint=False)
    circle = shapes.RADIUS * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    shifts = np.array([(right * recording.width, down * recording.height) for down, right in COPIES])
    result = []
    for T, outline, wraps in zip(recording.T[step], recording.shown.outlines(), recording.shown.wraps, strict=True):
        unit = () if outline is None else outline.rings or (circle,)
        rings = [ring @ T[:2, :2].T + T[:2, 2] for ring in unit]
        if wraps:
            copies = [ring + shift for shift in shifts for ring in rings]
            rings = [ring for ring in copies if _reaches_in(recording, ring)]
        result.append(rings)
    return result


def _reaches_in(recording: Recording, points: Array) -> bool:
    """Whether the box of some points reaches into the frame."""
    frame = (recording.width, recording.height)
    return bool((points.max(axis=0) > 0).all() and (points.min(axis=0) < frame).all())


def _parts(recording: Recording, steps: NDArray[np.int64]) -> Iterator[slice]:
    """Steps that are rendered together."""
    at_once = max(1, PIXELS_AT_ONCE // (recording.height * recording.width * max(1, recording.actors)))
    return (slice(begin, begin + at_once) for begin in range(0, len(steps), at_once))


def _counts(recording: Recording, steps: Steps) -> NDArray[np.int32]:
    """(steps, actors, height, width): in how many sub-pixels of each pixel each actor is seen."""
    return seen.counts(recording.shown, recording.truth[steps])


def images(recording: Recording, steps: Steps) -> NDArray[np.float32]:
    """(steps, height, width): the brightness of each pixel."""
    return _pictures(recording, steps, lambda part: recording.truth[part])


def images_at(recording: Recording, times: Array) -> NDArray[np.float32]:
    """(times, height, width): the brightness of each pixel at times in steps, which may lie between them."""
    return _pictures(recording, times, lambda part: recording.scene.truth(part)[0])


def _pictures(
    recording: Recording, times: NDArray[Any], truth_at: Callable[[NDArray[Any]], Array]
) -> NDArray[np.float32]:
    result = np.empty((len(times), recording.height, recording.width), np.float32)
    for part in _parts(recording, times):
        counts = seen.counts(recording.shown, truth_at(times[part]))
        result[part] = np.einsum("tahw,a->thw", counts, recording.shown.intensity[0]) / recording.shown.full_count
    return result


def coverage(recording: Recording, steps: Steps) -> NDArray[np.float32]:
    """(steps, actors, height, width): the share of each pixel in which each actor is visible."""
    result = np.empty((len(steps), recording.actors, recording.height, recording.width), np.float32)
    for part in _parts(recording, steps):
        result[part] = _counts(recording, steps[part]) / recording.shown.upsampling**2
    return result


def visibility(recording: Recording) -> Array:
    """(steps, actors): the share of each shape's area that is in the frame and not hidden."""
    steps = np.arange(recording.steps)
    full = recording.shown.upsampling**2
    counted = [_counts(recording, steps[part]).sum(axis=(2, 3)) / full for part in _parts(recording, steps)]
    areas = np.array([0.0 if outline is None else outline.area for outline in recording.shown.outlines()])
    size = areas * np.abs(np.linalg.det(np.nan_to_num(recording.T[:, :, :2, :2])))
    return np.clip(
        np.concatenate([*counted, np.empty((0, recording.actors))]) / np.where(size > 0, size, 1.0), 0.0, 1.0
    )


def masks(recording: Recording, steps: Steps, edges: bool) -> NDArray[np.bool_]:
    """(steps, actors, height, width): see `Recording.masks`."""
    if not edges or len(steps) == 0:
        return seen.masks(recording.shown, recording.truth[steps])
    return seen.masks(recording.shown, _with_step_before(recording, steps), edges=True)


def flow(recording: Recording, steps: Steps, edges: bool) -> NDArray[np.float32]:
    """(steps, 2, height, width): see `Recording.flow`."""
    if not edges or len(steps) == 0:
        return seen.flow(recording.shown, recording.truth[steps])
    actor, shift = seen.pieces(recording.shown)
    rounds = np.diff(laps(recording, recording.first + np.arange(steps[0] - 1, steps[-1] + 1)), axis=0)
    centres = recording.positions[steps][:, actor] + rounds[:, actor] * (recording.width, recording.height) + shift
    return seen.flow(recording.shown, _with_step_before(recording, steps), centres)


def motion(truth: Array) -> tuple[Array, Array, Array]:
    """L (…, 2, 2), velocity and centre (…, 2) from parameters (…, 3, 6): L · (q - centre) + velocity is T'·T⁻¹ · q.

    With T = Translate · R · U, U being Shear · Scale, L = R'·R⁻¹ + R · (U'·U⁻¹) · R⁻¹. NaN where U has no inverse.
    """
    (_, _, a, b, angle, k), (_, _, a1, b1, spin, k1) = np.moveaxis(truth[..., :2, :], (-2, -1), (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        along, down = a1 / a, b1 / b
        across = k1 + k * (down - along)  # U'·U⁻¹ = ((along, across), (0, down))
        sine, cosine = exactmath.sincos(angle)
        mixed, half = across * sine * cosine, (along - down) * sine * cosine
        entries = (
            along * cosine * cosine + down * sine * sine - mixed,
            half + across * cosine * cosine - spin,
            half - across * sine * sine + spin,
            along * sine * sine + down * cosine * cosine + mixed,
        )
    linear = np.stack(entries, axis=-1).reshape(*a.shape, 2, 2)
    return np.where(np.isfinite(linear), linear, np.nan), truth[..., 1, :2], truth[..., 0, :2]


def _with_step_before(recording: Recording, steps: Steps) -> Array:
    """The truth of consecutive steps, and of the one before."""
    if steps[0] > 0:
        return recording.truth[np.concatenate([steps[:1] - 1, steps])]
    return np.concatenate([recording.scene.truth([recording.first - 1])[0], recording.truth[steps]])


def laps(recording: Recording, times: NDArray[Any]) -> NDArray[np.int64]:
    """(times, actors, 2): how often each actor has gone round the torus, along x and y, at times in steps."""
    if not any(recording.shown.wraps):
        return np.zeros((len(times), recording.actors, 2), np.int64)
    path = recording.scene.trajectory
    size = (recording.width, recording.height)
    far, near = (each.parameters(times)[0, :, :, 0, :2] for each in (path.unwrapped(), path))
    return np.moveaxis(np.rint((far - near) / size).astype(np.int64), 1, 0)

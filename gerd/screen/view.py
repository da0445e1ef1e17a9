"""How a camera sees a screen: pairs of points in; out comes a `View`, which takes a place on the screen to the camera.

A homography, then a radial distortion about the middle of the camera's frame: a point at the distance r from it, in
half diagonals of the frame, comes to r · (1 + k1 · r²). Places are pixels with the origin in the upper left corner,
the middle of the first pixel being (0.5, 0.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError

Array = NDArray[np.float64]
Size = tuple[int, int]

PARAMETERS = 9  # eight of a homography, and k1
LEAST_POINTS = 12
TRIES = 400  # of four points, from which a first homography is made
ROUGHLY = 0.03  # of the diagonal: how far points may lie off a first homography, which knows no distortion
OUTLIER = 4.0  # standard deviations
LEAST_TOLERANCE = 0.5  # pixels; nearer points are no outliers
STEP = 1e-6  # of the parameters, for derivatives


@dataclass(frozen=True)
class View:
    """Where a camera sees what is on a screen."""

    camera: Size  # width and height
    screen: Size
    parameters: tuple[float, ...]  # of a homography between middles of both, in half diagonals; the last is k1

    @staticmethod
    def inner(parameters: tuple[float, ...]) -> Array:
        """(3, 3): the homography between middles, in half diagonals."""
        return np.array([*parameters[:8], 1.0]).reshape(3, 3)

    @property
    def k1(self) -> float:
        return self.parameters[8]

    @property
    def homography(self) -> Array:
        """(3, 3): from pixels of the screen to those of a camera without distortion."""
        result = _scaled(self.camera) @ self.inner(self.parameters) @ np.linalg.inv(_scaled(self.screen))
        return result / result[2, 2]

    def project(self, points: Array) -> Array:
        """(n, 2) places on the screen to where the camera sees them."""
        flat = _flat(np.array(self.parameters), _inner(points, self.screen))
        return _outer(_distorted(flat, self.k1), self.camera)

    def unproject(self, points: Array) -> Array:
        """(n, 2) places in the camera to where they are on the screen; NaN where the distortion has no inverse."""
        seen = _inner(points, self.camera)
        far = np.hypot(*seen.T)
        r = far.copy()
        for _ in range(30):  # Newton's steps, from far more digits than are needed
            r -= (r * (1 + self.k1 * r**2) - far) / (1 + 3 * self.k1 * r**2)
        wrong = ~(np.abs(r * (1 + self.k1 * r**2) - far) < 1e-9) | (1 + 3 * self.k1 * r**2 <= 0)
        flat = seen * np.where(far > 0, r / np.where(far > 0, far, 1), 1)[:, None]
        inverse = np.linalg.inv(self.inner(self.parameters))
        ahead = np.c_[flat, np.ones(len(flat))] @ inverse.T
        result = _outer(ahead[:, :2] / ahead[:, 2:], self.screen)
        result[wrong | (ahead[:, 2] <= 0)] = np.nan
        return result

    def derivative(self, point: tuple[float, float]) -> Array:
        """(2, 2): how a place in the camera changes with that on the screen."""
        x, y = point
        moved = self.project(np.array([[x + 0.5, y], [x - 0.5, y], [x, y + 0.5], [x, y - 0.5]]))
        return np.stack([moved[0] - moved[1], moved[2] - moved[3]], axis=1)


@dataclass(frozen=True)
class Fit:
    """A view and how well it is known."""

    view: View
    kept: NDArray[np.bool_]  # which pairs were taken into account
    residuals: Array  # (n, 2) pixels: where the camera saw each minus where it should be
    covariance: Array  # of the parameters

    @cached_property
    def rms(self) -> float:
        """The root mean square of the distances of the pairs that were kept, in pixels."""
        return float(np.sqrt((self.residuals[self.kept] ** 2).sum(axis=1).mean()))

    def uncertainty(self, points: Array) -> float:
        """How far off the places of these points may be, in pixels: one standard deviation, rms over the points."""
        spread = _derivatives(self.view, points) @ np.linalg.cholesky(self.covariance + 1e-18 * np.eye(PARAMETERS))
        return float(np.sqrt((spread**2).sum() / len(points)))


def fit_view(screen: Size, camera: Size, on_screen: Array, seen: Array) -> Fit | None:
    """The view that takes most places on the screen to where the camera has seen them; None if there is none."""
    if len(seen) < LEAST_POINTS:
        return None
    a, b = _inner(on_screen, screen), _inner(seen, camera)
    half = math.hypot(*camera) / 2
    start = _first(a, b, 2 * ROUGHLY)
    if start is None:
        return None
    parameters = np.array([*start, 0.0])
    kept = np.hypot(*(_flat(parameters, a) - b).T) < 2 * ROUGHLY
    for loss in ("soft_l1", "linear", "linear", "linear"):
        if kept.sum() < LEAST_POINTS:
            return None
        parameters = _solved(parameters, a[kept], b[kept], 0.5 / half, loss)
        away = np.hypot(*(_seen(parameters, a) - b).T)
        spread = 1.4826 * np.median(away[kept])
        kept = away < max(OUTLIER * spread, LEAST_TOLERANCE / half)
    view = View(camera, screen, tuple(parameters.tolist()))
    residuals = seen - view.project(on_screen)
    slope = _derivatives(view, on_screen[kept])
    degrees = max(1, 2 * int(kept.sum()) - PARAMETERS)
    variance = float((residuals[kept] ** 2).sum()) / degrees
    covariance = np.asarray(variance * np.linalg.pinv(slope.T @ slope), np.float64)
    return Fit(view, kept, residuals, covariance)


def _solved(start: Array, a: Array, b: Array, scale: float, loss: str) -> Array:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise GerdError("fitting a view needs the package scipy: pip install 'gerd-events[camera]'") from None
    result = least_squares(lambda p: (_seen(p, a) - b).ravel(), start, loss=loss, f_scale=scale, x_scale="jac")
    return np.asarray(result.x)


def _first(a: Array, b: Array, tolerance: float) -> Array | None:
    """The eight numbers of the homography through four pairs that fits the most others."""
    chance = np.random.default_rng(0)  # always the same fours
    choices = (chance.choice(len(a), 4, replace=False) for _ in range(TRIES))
    found = (_homography(a[four], b[four]) for four in choices)
    best = None
    most = 0.0
    for candidate in islice((each for each in found if each is not None), TRIES):
        away = np.hypot(*(_flat(candidate, a) - b).T)
        score = float(np.maximum(0, 1 - (away / tolerance) ** 2).sum())
        if score > most:
            best = candidate
            most = score
    return best


def _homography(a: Array, b: Array) -> Array | None:
    """The homography that takes four points to four others; None if three of the points lie on a line."""
    (x, y), (u, v), none, one = a.T, b.T, np.zeros(len(a)), np.ones(len(a))
    rows = np.concatenate(
        [
            np.stack([x, y, one, none, none, none, -u * x, -u * y], axis=1),
            np.stack([none, none, none, x, y, one, -v * x, -v * y], axis=1),
        ]
    )
    if np.linalg.cond(rows) > 1e6:
        return None
    return np.linalg.solve(rows, np.concatenate([u, v]))


def _scaled(size: Size) -> Array:
    """From half diagonals about the middle to pixels."""
    half = math.hypot(*size) / 2
    return np.array([[half, 0, size[0] / 2], [0, half, size[1] / 2], [0, 0, 1]])


def _inner(points: Array, size: Size) -> Array:
    return (points - np.array(size) / 2) / (math.hypot(*size) / 2)


def _outer(points: Array, size: Size) -> Array:
    return points * (math.hypot(*size) / 2) + np.array(size) / 2


def _flat(parameters: Array, points: Array) -> Array:
    """By the homography alone; what is behind the camera is far away."""
    h = parameters
    x, y = points.T
    depth = h[6] * x + h[7] * y + 1
    depth = np.where(depth > 1e-6, depth, 1e-6)
    return np.stack([h[0] * x + h[1] * y + h[2], h[3] * x + h[4] * y + h[5]], axis=1) / depth[:, None]


def _distorted(points: Array, k1: float) -> Array:
    return points * (1 + k1 * (points**2).sum(axis=1))[:, None]


def _seen(parameters: Array, points: Array) -> Array:
    return _distorted(_flat(parameters, points), parameters[8])


def _derivatives(view: View, points: Array) -> Array:
    """(2 n, parameters): of the places in the camera, in pixels."""
    columns = []
    for number in range(PARAMETERS):
        ends = []
        for step in (STEP, -STEP):
            changed = list(view.parameters)
            changed[number] += step
            ends.append(replace(view, parameters=tuple(changed)).project(points))
        columns.append((ends[0] - ends[1]).ravel() / (2 * STEP))
    return np.stack(columns, axis=1)

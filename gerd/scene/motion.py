"""An actor's plan to a `Trajectory` for a batch of recordings.

Degrees become radians here. Boundary velocities and growth factors are worked out here. A start that is drawn beyond a
border or limit is its mirror image (on a torus: its copy) inside; its velocity is as configured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import GROWTH
from gerd.geometry import exactmath
from gerd.geometry.parameters import (
    ORDERS,
    PARAMETER_COUNT,
    PARAMETERS_OF,
    ROTATION,
    SCALE_X,
    SCALE_Y,
    SHEAR,
    X,
    derivatives,
    matrix,
)
from gerd.geometry.shapes import RADIUS, Outline
from gerd.geometry.trajectory import Trajectory, slowed
from gerd.plan.plan import ActorPlan, Anywhere, Look, Plan
from gerd.plan.values import Boundary, Growth, Normal, Size, Uniform
from gerd.scene.sampling import START, VELOCITY, ActorDraws, normal_each_step

Array = NDArray[np.float64]

LARGEST_SIZE = 1e9  # of sizes that grow by a factor
CIRCLE_SIDES = 256  # of the polygon that stands for a circle whose boundary moves
SLOWEST = 1e-9  # slower motion along the normal, relative to the speed of the points, is rounding


def motion(plan: Plan, actor: ActorPlan, draws: ActorDraws) -> Trajectory:
    """The motion of an actor, leading axis the recordings, without what `accelerations` adds to it."""
    start = np.zeros((len(draws.rows), PARAMETER_COUNT))
    start[:, SCALE_X:] = _start_but_position(actor, draws)
    start[:, X:SCALE_X] = _position(actor, draws)
    low, high, limit = (np.repeat([bound], len(start), axis=0) for bound in (actor.low, actor.high, actor.speed_limit))
    wrap = np.zeros(start.shape, np.bool_)
    wrap[:, X:SCALE_X] = actor.border == "wrap"
    base = np.zeros_like(start)
    outside = (start < low) | (start > high)
    if outside.any():
        inside = Trajectory.at_rest(start, low, high, wrap).parameters([0.0])[:, 0, 0]
        start = np.where(outside, inside, start)
    velocity = _velocity(plan, actor, draws, start)
    if isinstance(actor.velocity[1], Growth):
        sizes = PARAMETERS_OF["scale"]
        base[:, sizes] = start[:, sizes]
        low[:, sizes] = exactmath.log(low[:, sizes] / base[:, sizes])
        high[:, sizes] = exactmath.log(np.minimum(high[:, sizes], LARGEST_SIZE) / base[:, sizes])
        start[:, sizes] = 0.0
    velocity = slowed(velocity, limit) + 0.0  # 0 has no sign
    return Trajectory(start, velocity, None, limit, low, high, wrap, base)


def _start_but_position(look: ActorPlan | Look, draws: ActorDraws) -> Array:
    """(rows, 4): scale x, scale y, rotation and shear at t = 0."""
    result = np.empty((len(draws.rows), 4))
    result[:, :2] = draws.size(look.size, START)
    result[:, 2] = exactmath.radians(draws.sample(look.rotation, START, ROTATION))
    result[:, 3] = draws.sample(look.shear, START, SHEAR)
    return result


def _position(actor: ActorPlan, draws: ActorDraws) -> Array:
    """(rows, 2): the centre at t = 0."""
    if not isinstance(actor.position, Anywhere):
        return draws.pair(actor.position, START, X)
    low = np.zeros((len(draws.rows), 2))
    high = np.full((len(draws.rows), 2), np.inf)
    for look in actor.position.looks:
        parameters = np.zeros((len(draws.rows), ORDERS, PARAMETER_COUNT))
        parameters[:, 0, SCALE_X:] = _start_but_position(look, draws)
        linear = matrix(parameters)[:, :2, :2]
        extents = np.stack([np.stack(outline.extent(linear), axis=1) for outline in look.shapes])
        smallest, largest = np.moveaxis(_drawn(draws, extents), 1, 0)
        side = np.array([look.width, look.height], np.float64)
        low = np.maximum(low, np.maximum(-smallest, look.margin))
        high = np.minimum(high, side - np.maximum(largest, look.margin))
    middle = (low + high) / 2  # of a shape that does not fit into the frame
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    everywhere = Uniform(0.0, 1.0)
    share = draws.pair((everywhere, everywhere), START, X)
    return np.where(low < high, low + (high - low) * share, middle)


def _drawn(draws: ActorDraws, of_shapes: Array) -> Array:
    """(rows, …) from (shapes, rows, …): what belongs to the shape that is drawn for each recording."""
    return of_shapes[draws.shape(len(of_shapes)), np.arange(len(draws.rows))]


def _velocity(plan: Plan, actor: ActorPlan, draws: ActorDraws, start: Array) -> Array:
    position, size, rotation, shear = actor.velocity
    velocity = np.zeros_like(start)
    velocity[:, X:SCALE_X] = draws.pair(position, VELOCITY, X)
    velocity[:, SCALE_X:ROTATION] = _size_velocity(plan, actor, draws, start, size)
    if isinstance(rotation, Boundary):
        velocity[:, ROTATION] = _with_boundary(plan, actor, draws, start, "rotation", rotation)
    else:
        velocity[:, ROTATION] = exactmath.radians(draws.sample(rotation, VELOCITY, ROTATION))
    if isinstance(shear, Boundary):
        velocity[:, SHEAR] = _with_boundary(plan, actor, draws, start, "shear", shear)
    else:
        velocity[:, SHEAR] = draws.sample(shear, VELOCITY, SHEAR)
    return velocity


def _size_velocity(
    plan: Plan, actor: ActorPlan, draws: ActorDraws, start: Array, size: Size | Boundary | Growth
) -> Array:
    """(rows, 2), or (rows, 1) if both sides have the same; of the size's logarithm if it grows by a factor."""
    if isinstance(size, Boundary):
        return _with_boundary(plan, actor, draws, start, "scale", size)[:, None]
    if isinstance(size, Growth):
        factor = np.clip(draws.sample(size.factor, VELOCITY, SCALE_X), *GROWTH)  # a Gaussian one may fall outside
        return exactmath.log(factor)[:, None]
    return draws.size(size, VELOCITY)


def _with_boundary(
    plan: Plan, actor: ActorPlan, draws: ActorDraws, start: Array, name: str, velocity: Boundary
) -> Array:
    """(rows,): the velocity of the parameters of `name` that moves the outline as far as the config says."""
    moving = PARAMETERS_OF[name]
    wanted = draws.sample(velocity.pixels, VELOCITY, moving[0])
    moved = np.stack([_boundary_speed(outline, start, moving) for outline in actor.shapes])
    if not moved.all():
        path = f"actors.{actor.number}.{name}.velocity.boundary"
        raise plan.error(path, f"{name} does not move the outline of this shape; allowed: a number")
    return wanted / _drawn(draws, moved)


def _boundary_speed(outline: Outline, start: Array, moving: list[int]) -> Array:
    """(rows,): mean distance along the normal that the outline moves per unit of the parameters `moving`."""
    parameters = np.zeros((len(start), ORDERS, PARAMETER_COUNT))
    parameters[:, 0] = start
    parameters[:, 1, moving] = 1.0
    at = matrix(parameters)[:, None, :2, :2]
    speed = derivatives(parameters)[0][:, None, :2, :2]
    ends, tangent = _sides(outline)
    along_x, along_y = _mapped(at, tangent)
    length = np.sqrt(along_x * along_x + along_y * along_y)
    # the part along the normal at both ends of each side, times the side's length
    moved = (x * along_y - y * along_x for x, y in (_mapped(speed, end) for end in ends))
    swept = _mean_size(*moved)
    result = np.cumsum(swept, axis=1)[:, -1] / np.cumsum(length, axis=1)[:, -1]
    return np.where(result > SLOWEST * np.abs(speed).max(axis=(1, 2, 3)), result, 0.0)


def _mean_size(first: Array, last: Array) -> Array:
    """The mean of |x| while x runs evenly from `first` to `last`: two triangles where it passes 0."""
    a, b = np.abs(first), np.abs(last)
    total = a + b
    return np.where(first * last >= 0, total / 2, (a * a + b * b) / (2 * np.where(total > 0, total, 1.0)))


def _sides(outline: Outline) -> tuple[tuple[Array, Array], Array]:
    """The two ends of each side and the side itself as a vector; the circle as short sides about their middles."""
    if not outline.is_circle:
        sides = outline.segments
        return (sides[:, 0], sides[:, 1]), sides[:, 1] - sides[:, 0]
    sine, cosine = exactmath.sincos(np.arange(CIRCLE_SIDES, dtype=np.float64) * (4 * exactmath.HALF_PI / CIRCLE_SIDES))
    points = RADIUS * np.stack([cosine, sine], axis=1)
    return (points, points), np.stack([-sine, cosine], axis=1)


def _mapped(linear: Array, vectors: Array) -> tuple[Array, Array]:
    """x and y (rows, vectors) of the vectors under linear maps (rows, 1, 2, 2), in plain arithmetic."""
    x, y = vectors[:, 0], vectors[:, 1]
    return linear[..., 0, 0] * x + linear[..., 0, 1] * y, linear[..., 1, 0] * x + linear[..., 1, 1] * y


def accelerations(cast: Sequence[tuple[ActorPlan, ActorDraws]], steps: NDArray[np.int64]) -> Array:
    """(rows, actors, 6, steps): what holds on [k, k + 1) for each k of `steps`."""
    first = cast[0][1]
    result = np.zeros((len(first.rows), len(cast), PARAMETER_COUNT, len(steps)))
    normal: dict[tuple[int, int], Normal] = {}  # most are: they are drawn together
    for number, (actor, draws) in enumerate(cast):
        for parameter, push in enumerate(actor.acceleration):
            if isinstance(push, Normal):
                normal[number, parameter] = push
            elif push is not None and push != 0.0:
                own = push(steps.astype(np.float64)) if callable(push) else draws.each_step(push, parameter, steps)
                result[:, number, parameter] = own
    if normal:
        elements = [cast[number][1].element(parameter) for number, parameter in normal]
        numbers, parameters = np.array(list(normal)).T
        for rows, part, own in normal_each_step(list(normal.values()), first.seed, elements, first.rows, steps):
            result[rows, numbers, parameters, part] = own
    for number, (actor, _) in enumerate(cast):
        if actor.acceleration[SCALE_Y] is None:
            result[:, number, SCALE_Y] = result[:, number, SCALE_X]
    result[:, :, ROTATION] = exactmath.radians(result[:, :, ROTATION])
    return result + 0.0  # 0 has no sign, which would show only where another recording of the batch is accelerated

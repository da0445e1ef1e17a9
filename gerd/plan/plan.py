"""The plan of a recording: all that is known of it before anything is drawn, as frozen data.

Numbers are in the units of the scene: counts, pixels, probabilities per step. The only exceptions are angles that are
still to be drawn, which are in degrees: a draw is turned into radians, so that its bits do not depend on where it is.
A plan is compared by identity; `make.plan_of` gives the same one for equal configs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Literal

from gerd.errors import GerdError
from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.shapes import Outline
from gerd.plan.values import Boundary, Growth, Pair, Series, Size, Value

INTENSITY_ONE = 1024  # an intensity of 1, in the integers that are added up


@dataclass(frozen=True, eq=False)
class Look:
    """What the natural range of an actor's positions depends on, in one member of a family."""

    width: int
    height: int
    margin: float
    shapes: tuple[Outline, ...]
    size: Size
    rotation: Value  # degrees
    shear: Value


@dataclass(frozen=True, eq=False)
class Anywhere:
    """A start at any point at which the actor lies inside the frame, in all members of its family."""

    looks: tuple[Look, ...]


@dataclass(frozen=True, eq=False)
class ActorPlan:
    """An entry of `actors`, which stands for several if it is repeated."""

    number: int  # of the entry
    shapes: tuple[Outline, ...]  # those that it can have
    intensity: Value
    repeat: tuple[int, ...]  # how many there can be, all equally likely
    border: Literal["bounce", "wrap", "free"]
    position: Pair | Anywhere
    size: Size
    rotation: Value  # degrees
    shear: Value
    velocity: tuple[Pair, Size | Boundary | Growth, Value | Boundary, Value | Boundary]  # of position, size, …; degrees
    # Of each parameter, in degrees. None: that of the size along y is that of the size along x.
    acceleration: tuple[Value | Series | None, ...]
    low: tuple[float, ...] = (-math.inf,) * PARAMETER_COUNT  # where each parameter is folded back
    high: tuple[float, ...] = (math.inf,) * PARAMETER_COUNT
    speed_limit: tuple[float, ...] = (math.inf,) * PARAMETER_COUNT  # radians

    @property
    def most(self) -> int:
        """How many actors the entry can stand for."""
        return max(self.repeat)

    @property
    def always_looks_the_same(self) -> bool:
        return isinstance(self.intensity, float) and len(self.repeat) == 1 and len(self.shapes) == 1

    @property
    def is_pushed(self) -> bool:
        """Whether it is ever accelerated."""
        return any(push is not None and push != 0.0 for push in self.acceleration)


@dataclass(frozen=True)
class Operation:
    """One entry of `transform`: its name and values as they are written, and about which point, or since when."""

    kind: str
    values: tuple[float | str | tuple[float, ...], ...]
    about: tuple[float, float] | None = None  # None: the middle of the frame
    epoch: float = 0.0


def _amount(path: str, written: str = "") -> float:
    """A field with the number at a path of the config, 0 if it is absent there; a transformation can set it.

    `written` is the path of what the user writes, where that is another.
    """
    return field(metadata={"path": path, "written": written or path})


@dataclass(frozen=True)
class RecordedNoise:
    """A file with events of an empty scene, which is opened only where its events are needed."""

    path: str
    sha256: str
    least_us: int  # how long a recording is, for which it has to last


@dataclass(frozen=True)
class Pixel:
    """A pixel's integrator, and what surrounds it. Noises are probabilities, and shares those of odd pixels."""

    threshold_on: int  # in units of sub-pixels · INTENSITY_ONE
    threshold_off: int
    reset_to_zero: bool
    initial: float | Literal["uniform", "stationary"]  # in thresholds, or drawn, see `noise.py`
    spread: float = _amount("integrator.thresholds.spread", "integrator.threshold")  # as a share of a full count
    background: float = _amount("noise.of_either_polarity", "noise.background")
    background_on: float = _amount("noise.of_each_polarity.on", "noise.background")
    background_off: float = _amount("noise.of_each_polarity.off", "noise.background")
    shape_noise: float = _amount("noise.shape")
    event_noise: float = _amount("noise.event")
    hot_share: float = _amount("noise.hot.share")
    hot_rate_hz: float = _amount("noise.hot.rate_hz")
    dead: float = _amount("noise.dead")
    leak_hz: float = _amount("integrator.leak_hz")  # ON thresholds that an integrator gains per second
    log_response: float = _amount(
        "integrator.log_response", "integrator.response"
    )  # brightness of the background; 0: linear
    refractory_us: float = _amount("integrator.refractory_us")
    latency_us: float = _amount("readout.latency_us")
    jitter_us: float = _amount("readout.jitter_us")
    bus_us: float = _amount("readout.bus_us", "readout.events_per_ms")  # for which each event takes up the bus
    drops_refractory: bool = False  # whether an event within that time is lost, and does not wait for its end
    recorded: RecordedNoise | None = None
    queue_us: float = 0.0  # for which an event waits for the bus at most
    camera: int | None = 0  # the number of the camera, whose fixed pattern it is; None: that of the index

    @property
    def is_read_out(self) -> bool:
        """Whether events arrive at other times than those at which they happen."""
        return self.latency_us > 0 or self.jitter_us > 0 or self.bus_us > 0


AMOUNTS: dict[str, str] = {each.name: each.metadata["path"] for each in fields(Pixel) if each.metadata}
WRITTEN: dict[str, str] = {each.name: each.metadata["written"] for each in fields(Pixel) if each.metadata}


@dataclass(frozen=True, eq=False)
class Plan:
    """What the recordings of one member of a family are drawn from."""

    seed: int
    width: int  # pixels
    height: int
    steps: int
    step_us: int
    exact: bool  # whether events have times inside their step
    rate: float  # own time per step, before any operation
    warmup: int  # steps; in exact timing units of own time
    path_end: int  # own time up to which exact timing records events
    upsampling: int
    pixel: Pixel
    actors: tuple[ActorPlan, ...]
    operations: tuple[Operation, ...]
    error: Callable[[str, str], GerdError]  # what is wrong with the field at a path, found only when a scene is drawn

    @property
    def cast(self) -> tuple[tuple[ActorPlan, int], ...]:
        """For each actor of a recording its entry, and which of the entry's copies it is."""
        return tuple((actor, copy) for actor in self.actors for copy in range(actor.most))

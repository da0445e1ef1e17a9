"""The sensor as a config has it: its frame in pixels, its integrators and its noises, as frozen models.

Each field's unit, default and range stand here and nowhere else. Noises are probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Union

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationInfo,
    model_serializer,
)
from pydantic_core import InitErrorDetails

from gerd.config.base import Model, invalid, plain, problem, tag
from gerd.config.values import Initial, Probability, ZeroWithoutSign, forms, outside
from gerd.files import sha256_of
from gerd.reading import once

Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.001, le=16)]
Spread = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=16), ZeroWithoutSign]
MOST_LEAKED = 10_000  # events of a pixel in a unit of own time
Warmup = Annotated[int, Field(strict=True, ge=0, le=100_000)]


class Sensor(Model):
    """The frame, in pixels."""

    part = "sensor"
    example = "{width: 64, height: 48}"
    width: int = Field(128, strict=True, ge=1, le=16384, description="pixels along x")
    height: int = Field(128, strict=True, ge=1, le=16384, description="pixels along y")


class ByPolarity(Model):
    """A number for each polarity. Written, it has `on` in any case, by which this form is told from the others."""

    on: float
    off: float

    @model_serializer(mode="wrap")
    def _with_on(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"on": self.on, **handler(self)}


class Thresholds(ByPolarity):
    """Thresholds of ON and OFF events, and by how much those of the camera's pixels differ (a standard deviation)."""

    on: Share = 0.5
    off: Share = 0.5
    spread: Spread = 0.0

    @property
    def as_one(self) -> float | None:
        """The single number that says the same, if there is one."""
        return self.on if self.on == self.off and self.spread == 0 else None


Threshold = Annotated[
    Union[Annotated[Share, Tag(tag("number"))], Annotated[Thresholds, Tag(tag("{on}"))]],
    forms("a number from 0.001 to 16, {on: number, off: number, spread: number}"),
]


class LogResponse(Model):
    """Integrators see the logarithm of the brightness, of which the background has this much; a full pixel has 1."""

    log: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1000)]


Response = Annotated[
    Union[Annotated[Literal["linear"], Tag(tag("linear"))], Annotated[LogResponse, Tag(tag("{log}"))]],
    forms("linear, {log: number} with a number from 1e-6 to 1000"),
]


class Integrator(Model):
    """Each pixel's integrate-and-fire unit."""

    part = "integrator"
    example = "{threshold: 0.4}"
    threshold: Threshold = Field(
        0.5,
        description="change at which a pixel fires, as a share of a fully covered pixel's count; or one for each "
        "polarity, and how much pixels differ",
    )
    response: Response = Field(
        "linear",
        description="what is integrated: the change of a pixel's count, or of the logarithm of its brightness on a "
        "background of this brightness; thresholds are then in units of ln",
    )
    reset: Literal["subtract", "zero"] = Field(
        "subtract", description="after an event: subtract the threshold, or start again at 0"
    )
    initial: Initial = Field(
        "usual",
        description="state at the start: uniform within ±0.9 thresholds; stationary, as if shapes had passed before; "
        "usual, which is uniform in step timing and stationary in exact timing; or a number, in thresholds",
    )
    warmup: Warmup = Field(
        5, description="steps before step 0 that are not recorded; in exact timing, units of the motion's own time"
    )
    refractory_us: int = Field(
        0,
        strict=True,
        ge=0,
        le=10**9,
        description="microseconds after an event during which the pixel cannot fire again",
    )
    refractory: Literal["hold", "drop"] = Field(
        "hold",
        description="hold: the integrator goes on, and the pixel fires when the time is over if it is still beyond a "
        "threshold; drop: an event within the time is lost",
    )
    leak_hz: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6), ZeroWithoutSign] = Field(
        0.0, description="how often per second an integrator gains its ON threshold, whatever it sees"
    )

    @property
    def log_response(self) -> float:
        """The brightness of the background of which integrators see the logarithm, 0 where they see counts."""
        return self.response.log if isinstance(self.response, LogResponse) else 0.0

    def too_dark(self, intensities: Sequence[object]) -> list[InitErrorDetails]:
        """What is wrong with those of the actors: brightness has no logarithm at 0 and below.

        A Gaussian intensity may be anything; it is refused where it is drawn.
        """
        if not isinstance(self.response, LogResponse):
            return []
        darkest = -self.response.log
        allowed = f"allowed with integrator.response {{log: {self.response.log:g}}}: above {darkest:g}"
        numbers = [outside(intensity, math.nextafter(darkest, 0.0), math.inf) for intensity in intensities]
        return [
            problem(
                f"{number:g} has no logarithm on this background; {allowed}", ("actors", i, "intensity"), plain(each)
            )
            for i, (number, each) in enumerate(zip(numbers, intensities, strict=True))
            if number is not None
        ]

    def fills_up(self, step_us: int, unit_us: float | None) -> list[InitErrorDetails]:
        """What is wrong with a leak that gives more than a pixel can fire; exact timing has units of so many µs."""
        rest = self.refractory_us if self.refractory == "hold" else 0
        if unit_us is None:
            rest = max(1, -(-rest // step_us)) * step_us
        elif self.leak_hz * unit_us > MOST_LEAKED * 1e6:
            message = f"allowed with steps of {unit_us:g} µs at time scale 1: up to {MOST_LEAKED * 1e6 / unit_us:g}"
            return [problem(message, ("integrator", "leak_hz"), self.leak_hz)]
        if self.leak_hz * rest <= 1e6:
            return []
        message = f"allowed with one event of a pixel in {rest} µs: up to {1e6 / rest:g}"
        return [problem(message, ("integrator", "leak_hz"), self.leak_hz)]

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds of both polarities, where one is written, too."""
        if isinstance(self.threshold, Thresholds):
            return self.threshold
        return Thresholds(on=self.threshold, off=self.threshold)


Microseconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6), ZeroWithoutSign]
PerMillisecond = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=1e6)]


class Readout(Model):
    """What delays or loses events between the firing of a pixel and their arrival; in exact timing only."""

    part = "readout"
    example = "{latency_us: 200}"
    latency_us: Microseconds = Field(0.0, description="microseconds until an event is ready to be sent")
    jitter_us: Microseconds = Field(
        0.0, description="standard deviation of the latency, in microseconds; no event is ready before it happens"
    )
    events_per_ms: Annotated[PerMillisecond, Tag(tag("number"))] | None = Field(
        None, description="how many events a serial bus can send in a millisecond; null: any number at once"
    )
    queue_us: Microseconds = Field(
        10_000.0, description="an event that would wait longer than so many microseconds for the bus is lost"
    )

    @property
    def bus_us(self) -> float:
        """For how many microseconds each event takes up the bus, rounded up; 0 without a bus."""
        if self.events_per_ms is None:
            return 0.0
        took = 1000 / self.events_per_ms
        return took if Fraction(took) * Fraction(self.events_per_ms) >= 1000 else math.nextafter(took, math.inf)

    def without_times(self) -> list[InitErrorDetails]:
        """What is wrong with it in step timing."""
        message = (
            "allowed with timing: exact only; in step timing an event stands for its whole step, and has no time of "
            "its own that could be later"
        )
        written = self.model_dump(exclude_defaults=True, exclude={"queue_us"})
        return [problem(message, ("readout", name), value) for name, value in written.items()]


class Hot(Model):
    """Pixels of the camera that fire ON now and then, whatever they see."""

    example = "{share: 0.001}"

    share: Probability = Field(0.0, description="probability that a pixel of the camera is hot")
    rate_hz: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6)] = Field(
        300.0, description="events of a hot pixel per second, at most one per step"
    )


class PerPolarity(ByPolarity):
    """Noise of each polarity by itself: a pixel fires ON with the one probability, and OFF with the other."""

    on: Probability = 0.0
    off: Probability = 0.0

    @property
    def as_one(self) -> float | None:
        """The single number that says the same, if there is one."""
        return 0.0 if self.on == self.off == 0 else None

    def times(self, factor: float) -> dict[str, float]:
        """Its fields, so many times as likely."""
        return {"on": self.on * factor, "off": self.off * factor}


Background = Annotated[
    Union[Annotated[Probability, Tag(tag("number"))], Annotated[PerPolarity, Tag(tag("{on}"))]],
    forms("a number from 0 to 1, {on: number, off: number}"),
]


class Recorded(Model):
    """A file of events of a real, empty scene, and the sha256 of its bytes, by which it is known."""

    file: Annotated[str, Field(strict=True, min_length=1, max_length=4096)]
    sha256: Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$")]


def _recorded(value: object, info: ValidationInfo) -> object:
    """The file that a config names, with the sha256 of what is in it now."""
    if not isinstance(value, str):
        return value
    folder = info.context["origin"].directory if info.context else "."
    if folder is None:
        raise invalid("a resolved config names no file without its sha256; allowed: {file: …, sha256: …}", value=value)
    try:
        sha256 = once(("recorded", folder, value), lambda: sha256_of(Path(folder) / value))
    except OSError as error:
        raise invalid(f"cannot be read: {error.strerror or error}; allowed: the name of a file", value=value) from None
    return {"file": value, "sha256": sha256}


class Noise(Model):
    """Random events that are added, and events that are lost at random. At 0 there is none of it."""

    part = "noise"
    example = "{background: 0.001}"
    background: Background = Field(
        0.0,
        description="probability per pixel and step of an event without a cause, ON or OFF; or one for each polarity",
    )
    shape: Probability = Field(
        0.0, description="probability per pixel and step that a covered pixel is missing in a frame"
    )
    event: Probability = Field(0.0, description="probability that an event is dropped, after the integrator")
    hot: Hot = Hot()
    dead: Probability = Field(0.0, description="probability that a pixel of the camera is dead, and never fires")
    recorded: Annotated[Recorded | None, BeforeValidator(_recorded)] = Field(
        None,
        description="events of a real, empty scene, in an .npz file such as gerd export writes, beside the config; "
        "each index gets another piece of them, added to its own events",
    )

    @property
    def of_either_polarity(self) -> float:
        """Background noise of which ON and OFF are equally likely, 0 where each has a probability of its own."""
        return self.background if isinstance(self.background, float) else 0.0

    @property
    def of_each_polarity(self) -> PerPolarity:
        """Background noise of ON and OFF by themselves, 0 where one probability is that of both."""
        return self.background if isinstance(self.background, PerPolarity) else PerPolarity()

    def times(self, factor: float) -> dict[str, object]:
        """Its fields, with noise per step that is so many times as likely."""
        if isinstance(self.background, PerPolarity):
            background: object = self.background.times(factor)
        else:
            background = self.background * factor
        return {**dict(self), "background": background, "shape": self.shape * factor}

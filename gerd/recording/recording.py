"""A recording: the events of one scene, their ground truth, and what they were made from.

A config, an index, keys of events and the parameters of the actors in; views of them out. What follows from the events
alone is that of `Events`. Ground truth is per step and actor, float64, lengths in pixels, angles in radians,
derivatives per step.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.sweep import classes, named, number_of
from gerd.errors import counted
from gerd.geometry.parameters import PARAMETERS, derivatives, matrix
from gerd.plan.make import plan_of
from gerd.plan.plan import INTENSITY_ONE
from gerd.recording import derived
from gerd.recording.causes import Causes, causes_of
from gerd.recording.events import EVENT_DTYPE, Events, Structured
from gerd.scene.draw import appearance, draw
from gerd.scene.scenes import ABSENT, Scenes
from gerd.scene.transformation import Transformation, planned
from gerd.version import __version__

if TYPE_CHECKING:
    from gerd.events.definition.stages import Stages

Array = NDArray[np.float64]

FORMAT_VERSION = 1  # of recordings on disk
CAUSE_FIELDS = (
    ("actor", np.int16),
    ("vx", np.float64),
    ("vy", np.float64),
    ("echo", np.bool_),
    ("source", np.uint8),
    ("fired_us", np.int64),
)


@dataclass(frozen=True)
class Identity:
    """What a recording is a function of, and which program made it."""

    config_digest: str  # of the family's config, in which the sweep is written
    seed: int
    index: int
    labels: dict[str, Any]  # path → value of the fields that were set for this recording
    gerd_version: str
    format_version: int


class Packed(Protocol):
    """Ground truth that is still to be unpacked."""

    def __len__(self) -> int: ...  # steps
    def __call__(self) -> Array: ...


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Recording(Events):
    """The events of one scene, the ground truth behind them, and what they were made from."""

    identity: Identity
    config: Config  # the swept fields have the values of this recording
    delay: NDArray[np.int64] | None = None  # of each event, microseconds of readout; None without readout
    given_truth: Array | Packed  # `truth`, or what it is unpacked from when it is first read: many never read it
    drawn: Scenes | None = None  # what `shown` is, where that is known already

    @classmethod
    def of(
        cls,
        config: Config,
        index: int,
        truth: Array | Packed,
        keys: NDArray[np.int64] | None = None,
        source: NDArray[np.uint8] | None = None,
        delay: NDArray[np.int64] | None = None,
        *,
        first: int = 0,
        made_by: str = __version__,
        drawn: Scenes | None = None,
    ) -> Recording:
        """Recording `index` of a config, from its ground truth and its events (by default none)."""
        digest, labels = config.family.digest, dict(config.origin.labels)
        return cls(
            identity=Identity(digest, config.seed, index, labels, made_by, FORMAT_VERSION),
            config=config,
            width=config.sensor.width,
            height=config.sensor.height,
            steps=len(truth),
            step_us=config.step_us,
            exact=config.timing == "exact",
            keys=np.empty(0, np.int64) if keys is None else keys,
            source=np.empty(0, np.uint8) if source is None else source,
            delay=delay,
            given_truth=truth,
            first=first,
            drawn=drawn,
        )

    @cached_property
    def truth(self) -> Array:
        """(steps, actors, 3, 6): the parameters of each actor, their velocities and their accelerations."""
        return self.given_truth if isinstance(self.given_truth, np.ndarray) else self.given_truth()

    @cached_property
    def member(self) -> int | None:
        """Which member of the sweep it is, 0 without a sweep; None if values were set that make it none of them."""
        return number_of(self.config)

    @property
    def name(self) -> str:
        """Which recording it is, in words: the config's name, the index, and in a sweep the member and its values."""
        which = named(self.config, self.identity.index)
        return f"{self.config.name}, {which}" if self.config.name else which

    def __repr__(self) -> str:
        there = int(self.present.sum())
        actors = counted(there, "actor") if there == self.actors else f"{there} of {self.actors} actors"
        polarities = f"{self._polarities}; {int(self.background.sum())} background"
        digest = self.identity.config_digest[:8]
        return f"<Recording {self.name}: {self._size}, {actors}, {len(self)} events ({polarities}), config {digest}>"

    @property
    def actors(self) -> int:
        """The largest possible number of actors: where the config draws how many there are, some may be absent."""
        return len(self.config.cast)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(actors,): whether each is in this recording. The ground truth of an absent actor is NaN."""
        return self.shown.present[0]

    @property
    def shapes(self) -> list[str | None]:
        """The name of each actor's shape, None for an absent actor."""
        return named_shapes(self.config, self.shown.chosen[0])

    @property
    def shape(self) -> NDArray[np.int64]:
        """(actors,): the number of each actor's shape in `classes`, -1 for an absent actor."""
        return np.array([ABSENT if name is None else self.classes.index(name) for name in self.shapes], np.int64)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all shapes in the recordings of the config, over all members of a sweep."""
        return classes(self.config.family)

    @cached_property
    def _causes(self) -> Causes:
        return causes_of(self)

    @property
    def actor(self) -> NDArray[np.int64]:
        """(events,): the actor whose edge caused each event, -1 for background noise."""
        return self._causes.actor

    @property
    def event_flow(self) -> Array:
        """(events, 2): vx and vy of that actor at the event's pixel centre and time, in pixels per step.

        NaN where it is unknown: for background noise, and where T cannot be inverted.
        """
        return self._causes.flow

    @property
    def echo(self) -> NDArray[np.bool_]:
        """(events,): whether the pixel's count did not change in the event's step, but earlier."""
        return self._causes.echo

    @property
    def events_with_causes(self) -> Structured:
        """`events` with the additional fields actor, vx, vy, echo, source and fired_us."""
        result = np.empty(len(self), [*EVENT_DTYPE.descr, *CAUSE_FIELDS])
        events = self.events
        for name in EVENT_DTYPE.names or ():
            result[name] = events[name]
        result["actor"], result["echo"] = self.actor, self.echo
        result["vx"], result["vy"] = self.event_flow.T
        result["source"], result["fired_us"] = self.source, self.fired_us
        return result

    def _rest_of_window(self, steps: slice, events: slice) -> dict[str, Any]:
        delay = None if self.delay is None else self.delay[events]
        return {"given_truth": self.truth[steps], "delay": delay}

    @property
    def fired_us(self) -> NDArray[np.int64]:
        """(events,): when each event's pixel fired, before readout, in microseconds of the whole recording."""
        times = self.codec.times(self.keys.astype(np.int64, copy=False), self.step_us, self.first)
        return times if self.delay is None else times - self.delay

    @cached_property
    def T(self) -> Array:
        """(steps, actors, 3, 3): the unit frame of each shape to sensor pixels."""
        return matrix(self.truth)

    @cached_property
    def _derivatives(self) -> tuple[Array, Array]:
        return derivatives(self.truth)

    @property
    def T_velocity(self) -> Array:
        """(steps, actors, 3, 3): dT/dt per step."""
        return self._derivatives[0]

    @property
    def T_acceleration(self) -> Array:
        """(steps, actors, 3, 3): d²T/dt² per step²."""
        return self._derivatives[1]

    def _named(self, order: int) -> Structured:
        names = np.dtype([(name, np.float64) for name in PARAMETERS])
        return np.ascontiguousarray(self.truth[:, :, order]).view(names)[..., 0]

    @property
    def parameters(self) -> Structured:
        """(steps, actors) with the fields x, y, scale_x, scale_y, rotation, shear."""
        return self._named(0)

    @property
    def parameters_velocity(self) -> Structured:
        """Their velocities, per step."""
        return self._named(1)

    @property
    def parameters_acceleration(self) -> Structured:
        """Their accelerations, per step²."""
        return self._named(2)

    @property
    def positions(self) -> Array:
        """(steps, actors, 2): x and y of each shape's centre."""
        return self.truth[:, :, 0, :2]

    @cached_property
    def scene(self) -> Scenes:
        """What was drawn: a batch of one. Its trajectory gives T at any real time."""
        scene = draw(plan_of(self.config), [self.identity.index])
        endless = self.first + self.steps > self.config.steps
        return replace(scene, path_end=sys.maxsize) if endless else scene

    @cached_property
    def shown(self) -> Scenes:
        """Outlines and intensities; runs no code that the config names."""
        return appearance(plan_of(self.config), [self.identity.index]) if self.drawn is None else self.drawn

    @property
    def intensities(self) -> Array:
        """(actors,): the brightness of each actor; the background has 0."""
        return self.shown.intensity[0] / INTENSITY_ONE

    @property
    def transform(self) -> Transformation:
        """The transformation of the whole scene by the config's `transform`; the ground truth is that after it."""
        return planned(plan_of(self.config))

    def boxes(self) -> Array:
        """(steps, actors, 4): left, top, right, bottom of each outline in pixels, whether inside the frame or not."""
        return derived.boxes(self)

    def outlines(self, step: int) -> list[list[Array]]:
        """For each actor, the closed rings (points, 2) of its outline in pixels, hidden or not.

        A circle is a ring of 128 points. An actor on a torus has all of its copies that reach into the frame.
        """
        return derived.outlines(self, step)

    def images(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """(steps, height, width): the brightness of each pixel before any noise, 1 for a covered pixel."""
        return derived.images(self, np.arange(self.steps)[start:stop])

    def coverage(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """(steps, actors, height, width): the share of each pixel in which each actor is visible."""
        return derived.coverage(self, np.arange(self.steps)[start:stop])

    def masks(self, start: int = 0, stop: int | None = None, *, edges: bool = False) -> NDArray[np.bool_]:
        """(steps, actors, height, width): whether an actor is visible in at least half of the pixel.

        edges: whether the actor is visible in any part of the pixel, or was one step ago; so the mask also has the
        pixels that its edge has just left.
        """
        return derived.masks(self, np.arange(self.steps)[start:stop], edges)

    def visibility(self) -> Array:
        """(steps, actors): the share of each shape's area that is in the frame and not hidden."""
        return derived.visibility(self)

    def flow(self, start: int = 0, stop: int | None = None, *, edges: bool = False) -> NDArray[np.float32]:
        """(steps, 2, height, width): velocity (x, y) in pixels per step of what is visible in each pixel, 0 elsewhere.

        Exact at pixel centres: T'·T⁻¹ applied to the centre, for the actor that is visible in at least half of the
        pixel. On a torus it is the copy of the actor that is visible in most of the pixel.

        edges: where no actor takes up half of the pixel, the flow is that of the actor that takes up most of it in this
        step and the one before together (of equals, the nearest), and NaN where there is none. So it is known at each
        event that is neither an echo nor background noise, and 0 means rest.
        """
        return derived.flow(self, np.arange(self.steps)[start:stop], edges)

    def stages(self, start: int = 0, stop: int | None = None) -> Stages:
        """The stages that lead to the events of some steps: picture, coverage, difference, integrator state and so on.

        In exact timing they show the end of each step, with its events as a frame and integrators after their resets.
        They are computed again from the config, from the first step on, by the backend that is the definition.
        """
        from gerd.events.definition.stages import stages_of

        start, stop, _ = slice(start, stop).indices(self.steps)
        return stages_of(self.scene, self.first + start, self.first + max(start, stop))


def named_shapes(config: Config, chosen: NDArray[np.int64]) -> list[str | None]:
    """The name of each actor's shape, of which `chosen` has the numbers; None for one that is absent."""
    return [
        None if which == ABSENT else config.actors[entry].shape_names[which]
        for (entry, _), which in zip(config.cast, chosen, strict=True)
    ]

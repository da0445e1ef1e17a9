"""A recording: the events of one scene, their ground truth, and what they were made from.

A config, an index, keys of events and the parameters of the actors in; views of them out.

Events are sorted by (time, y, x, p) and held as the keys of `events.keys`. Frames are
(steps, 2, height, width), the channel being the polarity: 0 OFF, 1 ON; in exact timing step i has the events after the
time of step i - 1, up to its own. Ground truth is per step and actor, float64,
lengths in pixels, angles in radians, derivatives per step.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gerd.config.config import Config
from gerd.config.sweep import KEPT_MEMBERS, classes, named, number_of
from gerd.errors import counted
from gerd.events.keys import Keys, add_events, polarities
from gerd.geometry.parameters import PARAMETERS, derivatives, matrix
from gerd.plan.make import plan_of
from gerd.plan.plan import INTENSITY_ONE
from gerd.recording import derived
from gerd.recording.causes import Causes, causes_of
from gerd.scene.draw import appearance, draw
from gerd.scene.scenes import ABSENT, Scenes
from gerd.scene.transformation import Transformation, planned
from gerd.version import __version__

if TYPE_CHECKING:
    import torch

    from gerd.events.definition.stages import Stages

Array = NDArray[np.float64]

FORMAT_VERSION = 1  # of recordings on disk
EVENT_DTYPE = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", np.bool_)])
CAUSE_FIELDS = (("actor", np.int16), ("vx", np.float64), ("vy", np.float64), ("echo", np.bool_))


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


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The events of one scene, the ground truth behind them, and what they were made from."""

    identity: Identity
    config: Config  # the swept fields have the values of this recording
    width: int  # pixels
    height: int
    steps: int
    step_us: int
    keys: NDArray[np.int64]  # of each event, ascending
    background: NDArray[np.bool_]  # per event: noise that no moving edge caused
    given_truth: Array | Packed  # `truth`, or what it is unpacked from when it is first read: many never read it
    first: int = 0  # of a window: its first step in the whole recording; all else here counts from that step
    drawn: Scenes | None = None  # what `shown` is, where that is known already

    @classmethod
    def of(
        cls,
        config: Config,
        index: int,
        truth: Array | Packed,
        keys: NDArray[np.int64] | None = None,
        background: NDArray[np.bool_] | None = None,
        *,
        first: int = 0,
        made_by: str = __version__,
        drawn: Scenes | None = None,
    ) -> Recording:
        """Recording `index` of a config, from its ground truth and its events (by default none)."""
        digest, labels = _origin(config)
        return cls(
            identity=Identity(digest, config.seed, index, dict(labels), made_by, FORMAT_VERSION),
            config=config,
            width=config.sensor.width,
            height=config.sensor.height,
            steps=len(truth),
            step_us=config.step_us,
            keys=np.empty(0, np.int64) if keys is None else keys,
            background=np.empty(0, np.bool_) if background is None else background,
            given_truth=truth,
            first=first,
            drawn=drawn,
        )

    def __len__(self) -> int:
        """The number of events."""
        return len(self.keys)

    @cached_property
    def truth(self) -> Array:
        """(steps, actors, 3, 6): the parameters of each actor, their velocities and their accelerations."""
        return self.given_truth if isinstance(self.given_truth, np.ndarray) else self.given_truth()

    @cached_property
    def member(self) -> int | None:
        """Which member of the sweep it is, 0 without one; None if fields were set that make it none of them."""
        return number_of(self.config)

    @property
    def name(self) -> str:
        """Which recording it is, in words: the config's name, the index, and in a sweep the member and its values."""
        which = named(self.config, self.identity.index)
        return f"{self.config.name}, {which}" if self.config.name else which

    def __repr__(self) -> str:
        window = f" from step {self.first}" if self.first else ""
        on, there = int(polarities(self.keys).sum()), int(self.present.sum())
        actors = counted(there, "actor") if there == self.actors else f"{there} of {self.actors} actors"
        return (
            f"<Recording {self.name}: {self.width}×{self.height}, "
            f"{self.steps} steps{window}, {actors}, {len(self)} events "
            f"({on} ON, {len(self) - on} OFF; {int(self.background.sum())} background), config "
            f"{self.identity.config_digest[:8]}>"
        )

    def _repr_html_(self) -> str:
        """A moving picture and the facts, for notebooks."""
        from gerd.pictures.notebook import html

        return html(self)

    @property
    def actors(self) -> int:
        """The number of actors that there can be: where the config draws how many there are, some may be absent."""
        return len(self.config.cast)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(actors,): whether each is in this recording. The ground truth of one that is absent is NaN."""
        return self.shown.present[0]

    @property
    def shapes(self) -> list[str | None]:
        """The name of each actor's shape, None for one that is absent."""
        return [
            None if which == ABSENT else self.config.actors[entry].shape_names[which]
            for (entry, _), which in zip(self.config.cast, self.shown.chosen[0], strict=True)
        ]

    @property
    def shape(self) -> NDArray[np.int64]:
        """(actors,): the number of each actor's shape in `classes`, -1 for one that is absent."""
        return np.array([ABSENT if name is None else self.classes.index(name) for name in self.shapes], np.int64)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all shapes in the recordings of the config, those of all members of a sweep."""
        return classes(self.config.family)

    @property
    def codec(self) -> Keys:
        """What the keys mean."""
        return Keys(self.height, self.width, self.config.ticks)

    @property
    def coordinates(self) -> NDArray[np.int64]:
        """(events, 4): step, y, x, p."""
        return self._coordinates(np.dtype(np.int64))

    def _coordinates(self, kind: np.dtype[Any]) -> NDArray[Any]:
        keys: NDArray[Any] = self.keys.astype(np.int32 if self.codec.fit_int32(self.steps) else np.int64, copy=False)
        result = np.empty((len(self), 4), kind)
        for i, part in enumerate(self.codec.decoded(keys)):
            result[:, i] = part
        return result

    @property
    def events(self) -> NDArray[Any]:
        """Structured array with the fields x, y, t (microseconds of the whole recording) and p (ON), sorted by t."""
        _, y, x, p = self.coordinates.T
        result = np.empty(len(self), EVENT_DTYPE)
        result["x"], result["y"], result["p"] = x, y, p
        result["t"] = self.codec.times(self.keys, self.step_us, self.first)
        return result

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
    def events_with_causes(self) -> NDArray[Any]:
        """`events` with the fields actor, vx, vy and echo besides."""
        result = np.empty(len(self), [*EVENT_DTYPE.descr, *CAUSE_FIELDS])
        events = self.events
        for name in EVENT_DTYPE.names or ():
            result[name] = events[name]
        result["actor"], result["echo"] = self.actor, self.echo
        result["vx"], result["vy"] = self.event_flow.T
        return result

    def window(self, start: int = 0, stop: int | None = None) -> Recording:
        """The steps from `start` up to `stop`, counted as in a slice, as a recording of their own."""
        start, stop, _ = slice(start, stop).indices(self.steps)
        stop = max(start, stop)
        low, high = self.codec.bounds(self.keys, [start, stop])
        return replace(
            self,
            steps=stop - start,
            keys=self.codec.moved(self.keys[low:high], -start),
            background=self.background[low:high],
            given_truth=self.truth[start:stop],
            first=self.first + start,
        )

    @property
    def places(self) -> NDArray[np.int64]:
        """Where each event is in the flattened frames."""
        return self.codec.places(self.keys)

    def frames(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        counts: bool = False,
        bins: int | None = None,
        bin_us: int | None = None,
        bin_events: int | None = None,
    ) -> torch.Tensor:
        """Boolean (steps, 2, height, width), of the steps from `start` up to `stop`, counted as in a slice.

        With `counts`, how many events there are, as uint8, 255 standing for any more. Instead of every step there is a
        frame for each of `bins` equal parts of the time, for every `bin_us` microseconds from the beginning of the
        first step on, or for every `bin_events` events, of which the last frame may have fewer.
        """
        import torch

        from gerd.recording import representations as dense

        part = self.window(start, stop)
        cut = dense.Bins(bins, bin_us, bin_events)
        if not cut.are_steps:
            return dense.frames(dense.Windows.of([part]), cut, counts)[0][0]
        result: NDArray[Any] = np.zeros((part.steps, 2, self.height, self.width), np.uint8 if counts else np.bool_)
        add_events(result.reshape(-1), part.places)
        return torch.from_numpy(result)

    def voxels(self, bins: int, start: int = 0, stop: int | None = None) -> torch.Tensor:
        """(bins, height, width), float32: events with their sign, shared by the two bins that are nearest in time.

        Bin 0 is at the first time that an event of these steps can have, and the last bin at the last such time.
        """
        from gerd.recording import representations as dense

        return dense.voxels(dense.Windows.of([self.window(start, stop)]), bins)[0]

    def time_surface(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        bins: int | None = None,
        bin_us: int | None = None,
        tau_us: float | None = None,
    ) -> torch.Tensor:
        """(steps, 2, height, width): of each pixel and polarity the latest event up to the end of each step, or bin.

        Its time in microseconds since the first of these steps began, as int64, -1 where there was none yet. With
        `tau_us` exp(-age / tau_us) at the bin's end, as float32, 0 where there was none.
        """
        from gerd.recording import representations as dense

        dense.check_tau(tau_us)
        return dense.time_surfaces(dense.Windows.of([self.window(start, stop)]), dense.Bins(bins, bin_us), tau_us)[0][0]

    def sparse(self) -> torch.Tensor:
        """The frames as a sparse COO tensor; a column (t, p, y, x) of its indices is an event (or several at once)."""
        import torch

        shape = (self.steps, 2, self.height, self.width)
        places = np.unique(self.places)
        indices = torch.from_numpy(np.stack(np.unravel_index(places, shape)))
        values = torch.ones(len(places), dtype=torch.bool)
        return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False, is_coalesced=True)

    @cached_property
    def digest(self) -> str:
        """sha256 over the events as rows of four little-endian int32 (step, y, x, p).

        In exact timing over rows of four little-endian int64 (t, y, x, p), with t in microseconds since the first step.
        """
        rows = self._coordinates(np.dtype("<i4" if self.config.timing == "step" else "<i8"))
        if self.config.timing == "exact":
            rows[:, 0] = self.codec.times(self.keys, self.step_us)
        return hashlib.sha256(rows.data).hexdigest()

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

    def _named(self, order: int) -> NDArray[Any]:
        names = np.dtype([(name, np.float64) for name in PARAMETERS])
        return np.ascontiguousarray(self.truth[:, :, order]).view(names)[..., 0]

    @property
    def parameters(self) -> NDArray[Any]:
        """(steps, actors) with the fields x, y, scale_x, scale_y, rotation, shear."""
        return self._named(0)

    @property
    def parameters_velocity(self) -> NDArray[Any]:
        """Their velocities, per step."""
        return self._named(1)

    @property
    def parameters_acceleration(self) -> NDArray[Any]:
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
        """What was done to the whole scene, by the config's `transform`; T and the rest are those after it."""
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

        edges: whether it is visible in any part of the pixel, or was one step ago; so a pixel that its edge has just
        left is in the mask, too.
        """
        return derived.masks(self, np.arange(self.steps)[start:stop], edges)

    def visibility(self) -> Array:
        """(steps, actors): the share of each shape's area that is in the frame and not hidden."""
        return derived.visibility(self)

    def flow(self, start: int = 0, stop: int | None = None, *, edges: bool = False) -> NDArray[np.float32]:
        """(steps, 2, height, width): velocity (x, y) in pixels per step of what is visible in each pixel, 0 elsewhere.

        Exact at pixel centres: T'·T⁻¹ applied to the centre, for the actor that is visible in at least half of the
        pixel. On a torus it is the copy of the actor that is visible in most of the pixel.

        edges: where no actor takes up half of the pixel, the velocity of the one that takes up most of it in this step
        and the one before together, the nearest of equals; NaN where there is none. So the flow is known at each event
        that is no echo and no background noise, and 0 means rest.
        """
        return derived.flow(self, np.arange(self.steps)[start:stop], edges)

    def stages(self, start: int = 0, stop: int | None = None) -> Stages:
        """What led to the events of some steps: picture, coverage, difference, integrator state and so on.

        In exact timing they are looked at when a step ends, events in its frame, and integrators after their resets.
        They are worked out anew from the config, by the backend that is the definition, from the first step on.
        """
        from gerd.events.definition.stages import stages_of

        start, stop, _ = slice(start, stop).indices(self.steps)
        return stages_of(self.scene, self.first + start, self.first + max(start, stop))


@lru_cache(KEPT_MEMBERS)
def _origin(config: Config) -> tuple[str, Mapping[str, Any]]:
    """The digest of a config's family, and the values that were set for this member of it."""
    return config.family.digest, config.origin.labels

"""Events of an event camera on a frame of pixels, wherever they come from: a simulation, a file, another program.

Times, places and polarities in; frames, representations, windows and a digest out. Nothing here knows how the events
came about: a `Recording` is events with the ground truth behind them, and the config that they were made from.

Events are sorted by (time, y, x, p) and held as the keys of `events.keys`. Frames are (steps, 2, height, width), the
channel being the polarity: 0 OFF, 1 ON; in exact timing step i has the events after the time of step i - 1, up to its
own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import LARGEST_KEY
from gerd.errors import GerdError, check_whole
from gerd.events.keys import Keys, add_events, polarities
from gerd.events.shared import FROM_EDGE

if TYPE_CHECKING:
    import torch

EVENT_DTYPE = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", np.bool_)])
LARGEST_SIDE = 2**15  # pixels: x and y of events are 16-bit numbers
Structured = NDArray[np.void]  # an array whose rows have named fields
STEP_US = 1000  # microseconds of a step of events that have none of their own


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Events:
    """Events on a frame of pixels, in steps of equal length."""

    width: int  # pixels
    height: int
    steps: int
    step_us: int
    exact: bool  # whether events have times inside their step
    keys: NDArray[np.int64]  # of each event, ascending
    source: NDArray[np.uint8]  # per event: a number of `SOURCE_NAMES`, 0 (an edge) where it is not known
    first: int = 0  # of a window: its first step in the whole recording; all else here counts from that step
    title: str = ""  # what the events are called where they do not know better

    @staticmethod
    def from_array(
        events: Structured,
        *,
        width: int,
        height: int,
        step_us: int = STEP_US,
        first: int = 0,
        duration: int | None = None,
        title: str = "",
    ) -> Events:
        """Events from a structured array with the fields x, y, t (microseconds, 0 or more) and p (1 ON, 0 OFF).

        They may be in any order. `step_us` is the length of a step of frames, windows and pictures. Steps are counted
        from step `first` on, and reach up to the time `duration` in microseconds, by default up to the last event.
        """
        what = title or "events"
        for name, value, most in (("width", width, LARGEST_SIDE), ("height", height, LARGEST_SIDE)):
            check_whole(f"{what}: {name}", value, 1, most)
        check_whole(f"{what}: step_us", step_us, 1)
        check_whole(f"{what}: first", first, 0)
        began = max(0, (first - 1) * step_us + 1)
        check_events(what, events, width, height, began)
        last = int(events["t"].max(initial=began))
        if duration is not None:
            check_whole(f"{what}: duration", duration, last)
            last = duration
        steps = max(1, -(-last // step_us) + 1 - first)
        codec = Keys(height, width, step_us)
        if steps * codec.per_step > LARGEST_KEY:
            most = LARGEST_KEY // codec.per_step * step_us
            length = f"times from {began} to {last} µs"
            raise GerdError(f"{what}: {length}: allowed with {width}×{height} pixels: up to {most} µs together")
        tick = events["t"].astype(np.int64) - (first - 1) * step_us - 1
        y, x, p = (events[name].astype(np.int64) for name in "yxp")
        keys = np.sort(codec.encoded(tick, y, x, p))
        return Events(
            width=width,
            height=height,
            steps=steps,
            step_us=step_us,
            exact=True,
            keys=keys,
            source=np.zeros(len(keys), np.uint8),
            first=first,
            title=title,
        )

    @property
    def name(self) -> str:
        """What the events are called in pictures and messages."""
        return self.title

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"<Events {name}{self._size} of {self.step_us} µs, {len(self)} events ({self._polarities})>"

    @property
    def _size(self) -> str:
        """Frame and steps, in words."""
        return f"{self.width}×{self.height}, {self.steps} steps" + (f" from step {self.first}" if self.first else "")

    @property
    def _polarities(self) -> str:
        """How many events there are of each polarity, in words."""
        on = int(polarities(self.keys).sum())
        return f"{on} ON, {len(self) - on} OFF"

    def _repr_html_(self) -> str:
        """A moving picture and the facts, for notebooks."""
        from gerd.pictures.notebook import html

        return html(self)

    def __len__(self) -> int:
        """The number of events."""
        return len(self.keys)

    @property
    def background(self) -> NDArray[np.bool_]:
        """(events,): whether each event is noise of the camera, caused by no moving edge, as far as is known."""
        return self.source != FROM_EDGE

    @property
    def codec(self) -> Keys:
        """What the keys mean."""
        return Keys(self.height, self.width, self.step_us if self.exact else 1)

    @property
    def coordinates(self) -> NDArray[np.int64]:
        """(events, 4): step, y, x, p."""
        keys: NDArray[Any] = self.keys.astype(np.int32 if self.codec.fit_int32(self.steps) else np.int64, copy=False)
        result = np.empty((len(self), 4), np.int64)
        for i, part in enumerate(self.codec.decoded(keys)):
            result[:, i] = part
        return result

    @property
    def events(self) -> Structured:
        """Structured array with the fields x, y, t (microseconds of the whole recording) and p (ON), sorted by t."""
        _, y, x, p = self.coordinates.T
        result = np.empty(len(self), EVENT_DTYPE)
        result["x"], result["y"], result["p"] = x, y, p
        result["t"] = self.codec.times(self.keys, self.step_us, self.first)
        return result

    def window(self, start: int = 0, stop: int | None = None) -> Self:
        """The part with the steps from `start` up to `stop`, counted as in a slice."""
        start, stop, _ = slice(start, stop).indices(self.steps)
        stop = max(start, stop)
        events = slice(*self.codec.bounds(self.keys, [start, stop]).tolist())
        return replace(
            self,
            steps=stop - start,
            keys=self.codec.moved(self.keys[events], -start),
            source=self.source[events],
            first=self.first + start,
            **self._rest_of_window(slice(start, stop), events),
        )

    def _rest_of_window(self, steps: slice, events: slice) -> dict[str, Any]:  # noqa: ARG002
        """What a window of these steps and events has besides: the fields that a kind of events with a truth adds."""
        return {}

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
        """Boolean (steps, 2, height, width) for the steps from `start` up to `stop`, counted as in a slice.

        With `counts` they are the numbers of events, as uint8, in which 255 stands for 255 or more. Instead of a frame
        for each step there can be one for each of `bins` equal parts of the time, for every `bin_us` microseconds from
        the beginning of the first step on, or for every `bin_events` events (the last frame may have fewer).
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
        """(steps, 2, height, width): for each pixel and polarity the latest event up to the end of each step, or bin.

        This is the time of that event in microseconds since the first of these steps began, as int64, and -1 where
        there was none yet. With `tau_us` it is exp(-age / tau_us) at the end of the bin, as float32, and 0 where there
        was none.
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
        """sha256 over width, height, step_us and ticks per step, and then the key of each event: little-endian int64.

        The four numbers are what turns a key back into time, place and polarity. Times count from the first step here.
        """
        result = hashlib.sha256(np.array([self.width, self.height, self.step_us, self.codec.ticks], "<i8").data)
        result.update(np.ascontiguousarray(self.keys, "<i8").data)
        return result.hexdigest()


def check_events(what: str, events: Structured, width: int, height: int, began: int) -> None:
    """An error unless these are events of a frame, from a time on, in whole numbers: nothing is rounded or cut off."""
    check_fields(what, events)
    for name, size in (("x", width), ("y", height)):
        check_range(what, events, name, 0, size)
    check_range(what, events, "t", began, None)


def check_fields(what: str, events: Structured) -> None:
    """An error unless the fields x, y, t and p are there, in numbers of the kinds that they stand for."""
    fields = events.dtype.fields if isinstance(events, np.ndarray) and events.ndim == 1 else None
    if fields is None or not {*"xytp"} <= set(fields):
        allowed = "a structured array of one axis with the fields x, y, t (microseconds) and p (1 ON, 0 OFF)"
        raise GerdError(f"{what}: events: allowed: {allowed}")
    for name in "xyt":
        if fields[name][0].kind not in "iu":
            kind = fields[name][0]
            unit = ", in microseconds" if name == "t" else ""
            raise GerdError(f"{what}: {name} of the events is {kind}; allowed: a type of whole numbers{unit}")
    check_flags(what, events, "p", " (1 ON, 0 OFF)")


def check_flags(what: str, events: Structured, name: str, meaning: str = "") -> None:
    """An error unless a field says yes or no, as 1 and 0 or as booleans."""
    values = events[name]
    if values.dtype.kind not in "iub" or not np.isin(values, (0, 1)).all():
        got = f"{values.dtype}" if values.dtype.kind not in "iub" else f"{values.min()} to {values.max()}"
        raise GerdError(f"{what}: {name} of the events is {got}; allowed: whole numbers 0 and 1{meaning}, or bool")


def check_range(what: str, events: Structured, name: str, least: int, stop: int | None) -> None:
    """An error unless the values of a field lie from `least` up to `stop`."""
    values = events[name]
    if not len(values) or (values.min() >= least and (stop is None or values.max() < stop)):
        return
    allowed = f"{least} or more" if stop is None else f"{least} to {stop - 1}"
    raise GerdError(f"{what}: {name} of the events is {values.min()} to {values.max()}; allowed: {allowed}")

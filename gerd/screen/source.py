"""A camera's events, read part by part as often as is needed: a file, or events that are in memory already."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.exchange.reading import ReadOptions, event_windows
from gerd.files import open_regular
from gerd.recording.events import EVENT_DTYPE, Events

WINDOW_US, WINDOW_STEPS = 1000, 1000  # of a file that are read at once

Rows = NDArray[np.void]  # events with the fields x, y, t, p, in order of time
Windows = Callable[[int, int | None], Iterator[Rows]]  # the events from a time up to another, part by part


@dataclass(frozen=True)
class CameraEvents:
    """Events that are read part by part, as often as needed."""

    name: str
    camera: tuple[int, int]  # width and height
    windows: Windows
    identity: dict[str, str]

    @classmethod
    def of(cls, recording: Events | str | os.PathLike[str], options: ReadOptions) -> CameraEvents:
        if isinstance(recording, Events):
            events = recording.events

            def some(start_us: int, stop_us: int | None) -> Iterator[Rows]:
                low, high = np.searchsorted(events["t"], [start_us, 2**62 if stop_us is None else stop_us])
                if high > low:
                    yield events[low:high]

            identity = {"name": recording.name, "events_sha256": recording.digest}
            return cls(recording.name or "the recording", (recording.width, recording.height), some, identity)
        path = Path(recording)
        if "step_us" in options:
            raise GerdError(f"{path}: step_us: goes with pictures and windows; a step of the scene is a frame")

        def parts(start_us: int, stop_us: int | None) -> Iterator[Rows]:
            begin = max(start_us, options.get("start_us") or 0)
            own = options.get("stop_us")
            end = own if stop_us is None else stop_us if own is None else min(own, stop_us)
            if end is None or end > begin:
                given: ReadOptions = {**options, "step_us": WINDOW_US, "start_us": begin, "stop_us": end}
                for window in event_windows(path, WINDOW_STEPS, **given):
                    yield window.events

        first = next(event_windows(path, 1, **options), None)
        if first is None:
            raise GerdError(f"{path}: has no events")
        return cls(str(path), (first.width, first.height), parts, {"name": path.name, "sha256": _digest(path)})


def split(windows: Windows, spans: Sequence[tuple[float, float]]) -> Iterator[Rows]:
    """The events of each of some spans of time, which follow each other, read once."""
    begin, end = max(0, int(spans[0][0])), int(spans[-1][1]) + 1
    parts = windows(begin, end) if end > begin else iter(())
    part = next(parts, None)
    nothing = np.empty(0, EVENT_DTYPE)
    for first, last in spans:
        own = [nothing]
        while part is not None:
            low, high = np.searchsorted(part["t"], [first, last])
            own.append(part[low:high])
            if high < len(part):
                part = part[high:]
                break
            part = next(parts, None)
        yield np.concatenate(own)


def _digest(path: Path) -> str:
    with os.fdopen(open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

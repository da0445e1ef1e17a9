"""A transformation of events themselves, where there is no scene to render anew: g and events in, g·events out.

An event at time t of the motion and place p is at time t / s and place G(t / s) p. Whole pixels, quarter turns and
mirrors that take pixels to pixels are exact, and so are time scales, to the microsecond (of events in steps, where they
take steps to steps). Everything else is rounded to the pixel, or step, in which an event comes to lie, and says so:
pixels may then have two events or none where a camera would have one. What leaves the frame or the time of the
recording is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.recording.events import Events
from gerd.scene.transformation import Transformation

CLOSE = 1e-6  # of a pixel, a step or a microsecond: what is nearer to a border lies on it


@dataclass(frozen=True, eq=False)
class Acted:
    """Events on which a transformation has acted."""

    events: Events
    rounded: bool  # whether places, or steps, had to be rounded
    lost: int  # events that have left the frame or the time


def act_on_events(g: Transformation, events: Events) -> Acted:
    """g·x, in the frame and the time of x. A recording loses its ground truth, which `g` changes, too."""
    if g.amounts:
        what = ", ".join(name for name, _ in g.amounts)
        raise GerdError(f"{g}: changes the camera ({what}), which cannot be done to events that exist already")
    codec = events.codec
    _, y, x, p = codec.decoded(events.keys)
    ticks = codec.ticks
    time = codec.since_first(events.keys)  # be they a window or not
    moved = np.ceil(time / g.time_scale - CLOSE).astype(np.int64)
    across, down, between = _places(g, events, x, y, moved / ticks)
    tick = moved + (ticks - 1)
    kept = (tick >= 0) & (tick < events.steps * ticks)
    kept &= (across >= 0) & (across < events.width) & (down >= 0) & (down < events.height)
    keys = codec.encoded(tick[kept], down[kept], across[kept], p[kept])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    source = events.source[kept][order]
    if not events.exact:  # a step has one event of a pixel and polarity
        keys, first = np.unique(keys, return_index=True)
        source = source[first]
    split = not events.exact and bool((np.abs(moved * g.time_scale - time) > CLOSE).any())
    result = Events(
        width=events.width,
        height=events.height,
        steps=events.steps,
        step_us=events.step_us,
        exact=events.exact,
        keys=keys,
        source=source,
        first=events.first,
        title=f"{events.name} under {g}".lstrip(),
    )
    return Acted(result, between or split, int((~kept).sum()))


def _places(
    g: Transformation, events: Events, x: NDArray[np.int64], y: NDArray[np.int64], steps: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """The pixels (columns, rows) in which G(t) puts the centres of others at times in steps, and whether between."""
    if not g.moves:
        return x, y, False
    at = np.stack(g.frame(events.width, events.height).takes(x + 0.5, y + 0.5, steps))
    pixel = np.floor(at + CLOSE).astype(np.int64)
    return pixel[0], pixel[1], bool((np.abs(at - pixel - 0.5) > CLOSE).any())

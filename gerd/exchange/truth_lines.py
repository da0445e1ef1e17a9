"""The ground truth of a recording as lines of JSON: one about the recording, then one for each step.

Numbers are those of `Recording`, to the last bit; the first line says what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from gerd.geometry.parameters import PARAMETERS
from gerd.recording.recording import Recording

MATRICES = ("T", "T_velocity", "T_acceleration")
MEANING = {
    "t": "microseconds; the events of a step have this time, or in exact timing come after that of the step before",
    "first_event, events": "the step's events: where they begin in the recording's list of events, and how many",
    "background": "those of the step's events, counted from 0, that are noise and that no moving edge has caused",
    "shapes": "the names of the actors' shapes; null for an actor that is absent from this recording",
    "actors": "from the farthest to the nearest; null for one that is absent",
    "x, y": "the place of the shape's centre in pixels, x to the right and y down; pixel (i, j) covers [j, j + 1) × "
    "[i, i + 1)",
    "scale_x, scale_y": "the sides of the shape's unit box in pixels",
    "rotation": "radians, clockwise on the screen",
    "shear": "x per y, after scaling and before rotation",
    "velocity, acceleration": "of these parameters, per step and per step²",
    "T": "3×3: the shape's unit frame to pixels, T = Translate · Rotate · Shear · Scale; with its derivatives per step",
    "box": "left, top, right, bottom of the outline in pixels, whether inside the frame or not",
}


def header(recording: Recording, **more: object) -> str:
    """The first line: what the recording is, and what the other lines mean."""
    identity = recording.identity
    about = {
        "gerd": identity.gerd_version,
        "config_digest": identity.config_digest,
        "seed": identity.seed,
        "index": identity.index,
        "labels": identity.labels,
        "width": recording.width,
        "height": recording.height,
        "step_us": recording.step_us,
        "timing": recording.config.timing,
        "shapes": recording.shapes,
        **more,
        "meaning": MEANING,
    }
    text = json.dumps(about, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text) + "\n"  # it may go to a terminal


def lines(recording: Recording, first_event: int = 0) -> Iterator[str]:
    """A line for each step. `first_event` is the number of events that came before the recording, if it is a window."""
    bounds = recording.codec.bounds(recording.keys, np.arange(recording.steps + 1)).tolist()
    boxes = recording.boxes()
    for step, (low, high) in enumerate(pairwise(bounds)):
        number = recording.first + step
        about = {
            "step": number,
            "t": number * recording.step_us,
            "first_event": first_event + low,
            "events": high - low,
            "background": np.flatnonzero(recording.background[low:high]).tolist(),
            "actors": [
                _actor(recording, step, actor, boxes[step, actor].tolist()) if present else None
                for actor, present in enumerate(recording.present)
            ],
        }
        yield json.dumps(about) + "\n"


def _actor(recording: Recording, step: int, actor: int, box: list[float]) -> dict[str, object]:
    rows = recording.truth[step, actor].tolist()
    value, velocity, acceleration = (dict(zip(PARAMETERS, row, strict=True)) for row in rows)
    matrices = {name: getattr(recording, name)[step, actor].tolist() for name in MATRICES}
    return {**value, "velocity": velocity, "acceleration": acceleration, **matrices, "box": box}

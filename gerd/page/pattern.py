"""The fixed pattern of a camera as the page of `gerd view` shows it: a recording in, a byte for each pixel out.

Pixels are numbered row by row. A byte is the threshold of ON events, from 0 for the camera's lowest to `LEVELS` for its
highest, or what is odd about the pixel.
"""

from __future__ import annotations

import base64
from typing import TypedDict

import numpy as np

from gerd.events.pixel.camera import DEAD, HOT, odd_pixels
from gerd.events.pixel.thresholds import Thresholds
from gerd.recording.recording import Recording

LEVELS = 252
IS_HOT, IS_DEAD = 254, 255
MOST_PIXELS = 2**20  # of a camera whose pattern is shown


class Pattern(TypedDict):
    """What differs between the pixels of a camera."""

    number: int  # of the camera
    thresholds: list[float] | None  # the lowest and the highest, as shares of a full pixel; None where all are alike
    hot: int  # pixels
    dead: int
    pixels: str  # a byte for each, in base 64


def pattern_of(recording: Recording) -> Pattern | None:
    """What differs between the pixels of a recording's camera; None where nothing does, or for too large a frame."""
    scene = recording.shown
    pixel = scene.pixel
    area = scene.width * scene.height
    is_hot = pixel.hot_share > 0 and pixel.hot_rate_hz > 0
    if area > MOST_PIXELS or not (pixel.spread > 0 or is_hot or pixel.dead > 0):
        return None
    tables = Thresholds.of(scene)
    on = np.broadcast_to(tables.on, (scene.height, scene.width)).ravel()
    low, high = int(on.min()), int(on.max())
    shown = np.full(area, LEVELS // 2, np.uint8)
    if high > low:
        shown[:] = np.rint((on - low) * (LEVELS / (high - low)))
    odd = {
        name: odd_pixels(scene.camera(0), which, share, area)
        for name, which, share in (("hot", HOT, pixel.hot_share if is_hot else 0.0), ("dead", DEAD, pixel.dead))
    }
    shown[odd["hot"]] = IS_HOT
    shown[odd["dead"]] = IS_DEAD
    return {
        "number": scene.camera(0),
        "thresholds": [low / scene.full_count, high / scene.full_count] if high > low else None,
        "hot": len(odd["hot"]),
        "dead": len(odd["dead"]),
        "pixels": base64.b64encode(shown.tobytes()).decode(),
    }

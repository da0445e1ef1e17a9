"""Moving pictures of recordings, as GIF files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.recording import Recording

if TYPE_CHECKING:
    from PIL.Image import Image

BACKDROP = (250, 250, 248)
OFF, ON = (213, 94, 0), (0, 114, 178)  # vermilion and blue: told apart by colour-blind readers too
BOTH = (60, 60, 60)
CAPTION_HEIGHT = 14  # pixels
NARROWEST = 80  # pixels of a page, so that the step counter fits
ROOM_FOR_KEY = 150  # pixels of a page beside whose counter the colours' names fit
USUAL_SIDE = 384  # pixels of the frame's longer side on the page, unless told


def gif(recording: Recording, path: str | Path, *, zoom: int | None = None, frames_per_second: float = 20.0) -> None:
    """Write the events as an animated GIF, a page per step: ON blue, OFF vermilion, with a step counter.

    `zoom` is the number of screen pixels per sensor pixel. A GIF shows at most 50 frames per second.
    """
    if not frames_per_second > 0:
        raise GerdError(f"frames per second {frames_per_second}: allowed is a number above 0")
    if zoom is not None and zoom < 1:
        raise GerdError(f"zoom {zoom}: allowed is 1 or more")
    zoom = zoom or max(1, min(32, USUAL_SIDE // max(recording.width, recording.height)))
    pages = [_page(recording, step, zoom) for step in range(recording.steps)]
    try:
        duration = max(20, round(1000 / frames_per_second))
        pages[0].save(path, save_all=True, append_images=pages[1:], duration=duration, loop=0, format="GIF")
    except OSError as error:
        raise GerdError(f"{path}: cannot be written: {error.strerror or error}") from None


def _page(recording: Recording, step: int, zoom: int) -> Image:
    from PIL import Image, ImageDraw

    pixels = _labels(recording, step).repeat(zoom, axis=0).repeat(zoom, axis=1)
    height, width = pixels.shape
    page = Image.new("P", (max(width, NARROWEST), height + CAPTION_HEIGHT), 0)
    page.putpalette([channel for colour in (BACKDROP, OFF, ON, BOTH) for channel in colour])
    page.paste(Image.frombytes("P", (width, height), pixels.tobytes()), (0, 0))
    pen = ImageDraw.Draw(page)
    pen.text((3, height + 1), f"step {step}", fill=3)
    if page.width > ROOM_FOR_KEY:
        pen.text((page.width - 66, height + 1), "ON", fill=2)
        pen.text((page.width - 40, height + 1), "OFF", fill=1)
    return page


def _labels(recording: Recording, step: int) -> NDArray[np.uint8]:
    """(height, width): 0 nothing, 1 OFF, 2 ON, 3 both, at one step."""
    off, on = recording.frames(step, step + 1)[0].numpy().astype(np.uint8)
    return off + 2 * on

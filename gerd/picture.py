"""Moving pictures of recordings, as GIF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.recording import Recording

BACKDROP = (250, 250, 248)
OFF, ON = (213, 94, 0), (0, 114, 178)  # vermilion and blue: told apart by colour-blind readers too
BOTH = (60, 60, 60)
CAPTION_HEIGHT = 14  # pixels


def gif(recording: Recording, path: str | Path, *, zoom: int | None = None, frames_per_second: float = 20.0) -> None:
    """Write the events as an animated GIF: ON blue, OFF vermilion, with a step counter."""
    from PIL import Image, ImageDraw

    if frames_per_second <= 0:
        raise GerdError(f"frames per second {frames_per_second}: allowed is a number above 0")
    zoom = zoom or max(1, 384 // max(recording.width, recording.height))
    palette = [channel for colour in (BACKDROP, OFF, ON, BOTH) for channel in colour]
    pages = []
    for step in range(recording.steps):
        picture = Image.fromarray(_labels(recording, step).repeat(zoom, axis=0).repeat(zoom, axis=1), mode="P")
        page = Image.new("P", (picture.width, picture.height + CAPTION_HEIGHT), 0)
        page.putpalette(palette)
        page.paste(picture, (0, 0))
        pen = ImageDraw.Draw(page)
        pen.text((3, picture.height + 1), f"step {step}", fill=3)
        if page.width > 150:
            pen.text((page.width - 66, picture.height + 1), "ON", fill=2)
            pen.text((page.width - 40, picture.height + 1), "OFF", fill=1)
        pages.append(page)
    try:
        duration = max(20, round(1000 / frames_per_second))
        pages[0].save(path, save_all=True, append_images=pages[1:], duration=duration, loop=0, format="GIF")
    except OSError as error:
        raise GerdError(f"{path}: cannot be written: {error.strerror or error}") from None


def _labels(recording: Recording, step: int) -> NDArray[np.uint8]:
    """(height, width): 0 nothing, 1 OFF, 2 ON, 3 both, at one step."""
    off, on = recording.frames(step, step + 1)[0].numpy().astype(np.uint8)
    return off + 2 * on

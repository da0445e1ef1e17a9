"""The grey-level video that events were made from: a picture for each step, and a file that says when.

A `FolderLayout` is where an emulator looks for them: of v2e and rpg_vid2e (pictures in the folder `imgs`, times in
seconds beside it), or of DVS-Voltmeter (pictures beside `info.txt`, in which a line has the path of a picture and its
time in microseconds). The path is the whole one, so that the emulator may run in any folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.recording.recording import Recording
from gerd.storage.whole import written_whole

AT_ONCE = 64  # steps rendered together


@dataclass(frozen=True)
class FolderLayout:
    """Where pictures and times are, and how a line of the times is written."""

    pictures: str  # the folder, in that of the recording
    times: str  # the file
    line: Callable[[Path, int], str]  # of a picture that will be at this path, and its time in microseconds


def _in_seconds(_: Path, t: int) -> str:
    return f"{t // 1_000_000}.{t % 1_000_000:06d}"


def _with_path(picture: Path, t: int) -> str:
    if len(str(picture).split()) != 1:
        raise GerdError(f"{picture}: DVS-Voltmeter takes no blanks in a path; give a folder without")
    return f"{picture} {t:012d}"


VIDEOS = {
    "frames": FolderLayout("imgs", "timestamps.txt", _in_seconds),
    "voltmeter": FolderLayout("", "info.txt", _with_path),
}


def write_video(recording: Recording, path: Path, levels: tuple[int, int], layout: FolderLayout) -> None:
    """The pictures and their times, in the folder `path`."""
    from PIL import Image

    with written_whole(path) as temporary:
        (temporary / layout.pictures).mkdir(parents=True)
        lines = []
        for start in range(0, recording.steps, AT_ONCE):
            for step, pixels in enumerate(_grey(recording, start, path, levels), start):
                place = Path(layout.pictures) / f"{step:08d}.png"
                Image.fromarray(pixels).save(temporary / place)
                lines.append(layout.line(path.absolute() / place, (recording.first + step) * recording.step_us))
        (temporary / layout.times).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _grey(recording: Recording, start: int, path: Path, levels: tuple[int, int]) -> NDArray[np.uint8]:
    """(steps, height, width): some pictures from `start` on."""
    dark, bright = levels
    brightness = recording.images(start, start + AT_ONCE).astype(np.float64)
    grey = np.rint(dark + (bright - dark) * brightness)
    if grey.min() < 0 or grey.max() > 255:
        raise GerdError(
            f"{path}: grey values from {grey.min():g} to {grey.max():g} do not fit into 8 bits; choose other "
            f"levels than {dark} and {bright} for brightness 0 and 1"
        )
    return grey.astype(np.uint8)

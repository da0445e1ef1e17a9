"""Config to a video to be played before an event camera, and the file beside it that says what is in it.

The video is H.264 without loss, of full-range grey values: what is decoded is what was painted, to the last bit, in
every player that decodes the profile High 4:4:4 Predictive, as those made of ffmpeg do (mpv, VLC, ffplay, PsychoPy).
Its frames have exact times: multiples of a fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from gerd.calls import explained
from gerd.config.load import AnyConfig
from gerd.errors import GerdError
from gerd.pictures.video import ffmpeg, pack
from gerd.screen.paint import pictures
from gerd.screen.stimulus import Stimulus, plan_stimulus
from gerd.storage.whole import write_whole, written_whole

# Every player decodes 4:2:0, which loses nothing of grey, but needs even sides.
EVEN, ODD = "yuv420p", "yuv444p"
LOSSLESS = ["-qp", "0", "-preset", "veryfast", "-bf", "0"]
COLOUR_SPACE = ["-color_range", "pc", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "iec61966-2-1"]


@explained
def write_stimulus(
    config: AnyConfig,
    path: str | Path,
    screen: tuple[int, int] = (1920, 1080),
    frames_per_second: float | Fraction | str = 60,
    count: int = 1,
    *,
    zoom: int | None = None,
    levels: tuple[int, int] = (64, 192),
    gamma: float = 2.2,
    progress: Callable[[int], None] = lambda frames: None,
) -> Stimulus:
    """Write the indices 0 … count - 1 of a config as a video (MP4), and beside it a .json file that says what it shows.

    Each step is one frame. `screen` is the width and height in pixels of the screen that will show the video
    full-screen, at its own `frames_per_second`: 60, 59.94, "60000/1001". `zoom` is how many screen pixels wide a pixel
    of the scene is, by default as many as leave room for marks beside the scene. `levels` are the grey values of the
    brightnesses 0, the background's, and 1; `gamma` is the screen's. `progress` is called with the number of frames
    just written.
    """
    path = Path(path)
    if path.suffix.lower() != ".mp4":
        raise GerdError(f"{path}: allowed: a name that ends with .mp4")
    ffmpeg()  # an error if it is missing, before anything is worked out
    stimulus = plan_stimulus(config, screen, frames_per_second, count, zoom=zoom, levels=levels, gamma=gamma)

    def painted() -> Iterator[bytes]:
        for picture in pictures(stimulus):
            yield picture.tobytes()
            progress(1)

    layout = EVEN if all(side % 2 == 0 for side in screen) else ODD
    rate = f"{stimulus.rate.numerator}/{stimulus.rate.denominator}"
    times = ["-video_track_timescale", str(stimulus.rate.numerator)]
    full_range = ["-vf", f"scale=in_range=pc:out_range=pc,format={layout}"]
    with written_whole(path) as draft:
        pack(draft, screen, rate, "gray", [*LOSSLESS, *full_range, *COLOUR_SPACE, *times], painted())
    write_whole(sidecar(path), stimulus.to_bytes())
    return stimulus


def sidecar(video: Path) -> Path:
    """The file that says what a video shows."""
    return video.with_suffix(".json")

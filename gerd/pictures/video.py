"""Videos of recordings: a recording, or the members of a family, in; a GIF or MP4 out, with one picture per step.

A picture has the frame of events, enlarged, and under it a strip with a step counter, a legend and the recording's
name. The frames of a family lie side by side, each with its swept values. Pictures are made and written one at a time,
so that the length of a video does not matter. Sizes on the screen are in screen pixels.
"""

from __future__ import annotations

import math
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.errors import GerdError, check_number, check_whole
from gerd.pictures import plot
from gerd.pictures.colours import BACKDROP, BOX, EVENTS, OUTLINE, PATH
from gerd.recording.events import Events
from gerd.storage.whole import written_whole

Picture = NDArray[np.uint8]  # (height, width): places in PALETTE
Progress = Callable[[int], None]

GREYS = 247  # grey levels of the palette, after the colours
COLOURS = (*EVENTS, OUTLINE, PATH, BOX, BACKDROP)
_, AT_OFF, AT_ON, _, AT_OUTLINE, AT_PATH, AT_BOX, UNCHANGED = range(len(COLOURS))  # where they are in the palette
FIRST_GREY = len(COLOURS)
PALETTE = np.array([*COLOURS, *((g, g, g) for g in np.rint(np.linspace(0, 255, GREYS + 1)))], np.uint8)
STRIP, INK = 0.91, 0.15  # grey of the strip under the frame, and of the words on it

LINE = 20  # height of a line of the strip
COUNTER = 84  # width of the step counter
NARROWEST = 112  # width of a picture in which the counter and the legend fit
ROOM_FOR_WORDS = 330  # width of a picture whose legend says what ON and OFF are
TRAIL = 500  # steps of a centre's path that a picture shows
GAP = 8  # between frames side by side, and between entries of the legend
MARGIN = 6  # left of words
SWATCH, SWATCH_GAP = 10, 4  # width of a colour in the legend, and what is between it and its word
USUAL_SIDE = 512  # the frame's longer side if no zoom is asked for
FAMILY_SIDE = 1024  # of all frames of a family together
LARGEST_SIDE = 8192  # of a picture
MOST_ZOOM = 32  # screen pixels per sensor pixel
MOST_PICTURES = 1_000_000  # of a video: some ten hours; one event that is far too late would ask for any number


def write(
    recordings: Events | Sequence[Events],
    path: str | Path,
    *,
    zoom: int | None = None,
    fps: float = 20.0,
    overlay: bool = False,
    side_by_side: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a video, a picture per step: the events, a step counter, a legend; of several recordings side by side.

    `overlay` adds the outlines, centre paths and boxes of the ground truth, `side_by_side` the brightness behind the
    events. `zoom` is screen pixels per sensor pixel. A GIF shows at most 50 pictures per second.
    """
    path = Path(path)
    check_number("frames per second", fps)
    if not 0 < fps <= 1000:
        raise GerdError(f"frames per second {fps}: allowed: a number above 0, up to 1000")
    is_gif = path.suffix.lower() == ".gif"
    layout = Layout(recordings, zoom, overlay, side_by_side, smallest=1 if is_gif else 2)
    if layout.steps > MOST_PICTURES:
        message = f"a video of {layout.steps} steps; allowed: up to {MOST_PICTURES}; choose a part, or longer steps"
        raise GerdError(f"{path}: {message}")
    pictures = layout.pictures(range(layout.steps), progress)
    with written_whole(path) as draft:
        if is_gif:
            with open(draft, "wb") as file:
                file.writelines(gif(layout.size, pictures, fps))
        else:
            _write_mp4(draft, layout.size, pictures, fps)


@dataclass(frozen=True)
class Frame:
    """One recording on the screen: its events, and beside them the brightness behind them."""

    recording: Events
    zoom: int
    overlay: bool
    side_by_side: bool
    block: int  # sensor pixels a side that are drawn as one

    @property
    def panel(self) -> tuple[int, int]:
        """Height and width of the events alone."""
        rows, columns = _cells(self.recording, self.block)
        return rows * self.zoom, columns * self.zoom

    @property
    def width(self) -> int:
        return self.panel[1] * (1 + self.side_by_side) + GAP * self.side_by_side

    def picture(self, step: int) -> Picture:
        """What is seen at a step; after the last one nothing, on the grey of the strip."""
        height, width = self.panel
        result = np.full((height, self.width), _grey(STRIP), np.uint8)
        if step < self.recording.steps:
            codes = plot.polarity_codes(self.recording, step, self.block)
            result[:, self.width - width :] = self._panel(codes, step)
            if self.side_by_side:
                recording = plot.with_truth(self.recording, "brightness")
                low, high = plot.brightness_range(recording.intensities)
                brightness = (recording.images(step, step + 1)[0] - low) / (high - low)
                result[:, :width] = self._panel(_grey(brightness), step)
        return result

    def _panel(self, cells: Picture, step: int) -> Picture:
        """A frame on the screen, with the ground truth on top if `overlay` says so."""
        panel = cells.repeat(self.zoom, axis=0).repeat(self.zoom, axis=1)
        if not self.overlay:
            return panel
        from PIL import Image, ImageDraw

        recording = plot.with_truth(self.recording, "overlay")
        drawn = Image.frombytes("P", panel.shape[::-1], panel.tobytes())
        pen = ImageDraw.Draw(drawn)
        for left, top, right, bottom in recording.window(step, step + 1).boxes()[0]:
            pen.line(self._places([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]), AT_BOX)
        for rings in recording.outlines(step):
            for ring in rings:
                pen.line(self._places([*ring, ring[0]]), AT_OUTLINE)
        for path in plot.paths(recording, max(0, step - TRAIL), step + 1):
            pen.line(self._places(path), AT_PATH)
        for x, y in self._places(recording.positions[step]):
            pen.ellipse((x - 2, y - 2, x + 2, y + 2), AT_PATH)
        return np.asarray(drawn)

    def _places(self, points: ArrayLike) -> list[tuple[int, int]]:
        """Screen pixels in which points in sensor pixels lie, but for those that are nowhere."""
        known = np.asarray(points)[np.isfinite(points).all(axis=-1)]
        screen = np.floor(known * self.zoom).clip(-LARGEST_SIDE, 2 * LARGEST_SIDE).astype(int)
        return [(int(x), int(y)) for x, y in screen]


def _cells(recording: Events, block: int) -> tuple[int, int]:
    """Rows and columns of a drawn frame."""
    return -(-recording.height // block), -(-recording.width // block)


class Layout:
    """Where things are in the pictures of a video: frames on top, under them a strip with counter, legend and name."""

    def __init__(
        self,
        recordings: Events | Sequence[Events],
        zoom: int | None = None,
        overlay: bool = False,
        side_by_side: bool = False,
        block: int = 1,  # sensor pixels a side that are drawn as one
        smallest: int = 1,  # zoom of large frames, if none is asked for
    ):
        if zoom is not None:
            check_whole("zoom", zoom, 1, MOST_ZOOM)
        self.recordings = [recordings] if isinstance(recordings, Events) else list(recordings)
        self.first = self.recordings[0].first
        self.steps = max(recording.steps for recording in self.recordings)
        rows, columns = np.max([_cells(recording, block) for recording in self.recordings], axis=0).tolist()
        down, across = plot.grid(self.recordings, rows / (columns * (1 + side_by_side)))
        side = USUAL_SIDE if down * across == 1 else FAMILY_SIDE
        self.zoom = zoom or max(smallest, min(MOST_ZOOM, side // max(down * rows, across * columns)))
        self.frames = [Frame(each, self.zoom, overlay, side_by_side, block) for each in self.recordings]
        self.caption = LINE if len(self.frames) > 1 else 0  # height of the words under each frame
        self.cell = (rows * self.zoom + self.caption, max(frame.width for frame in self.frames))
        self.places = [(k // across * self.cell[0], k % across * (self.cell[1] + GAP)) for k in range(len(self.frames))]
        self.height = down * self.cell[0]
        wide = max(NARROWEST, across * (self.cell[1] + GAP) - GAP)
        self.strip = np.vstack([_strip(wide, overlay), _fitted(plot.name_of(self.recordings), wide)])
        high = self.height + self.strip.shape[0]
        self.size = (wide + wide % 2, high + high % 2)  # MP4 has even sides
        if max(self.size) > LARGEST_SIDE:
            size = f"{self.size[0]}×{self.size[1]} pixels"
            raise GerdError(f"zoom {self.zoom}: makes pictures of {size}; allowed: up to {LARGEST_SIDE} a side")

    def pictures(self, steps: Iterable[int], progress: Progress | None = None) -> Iterator[Picture]:
        """The picture of each of these steps; `progress` is called when it has been used."""
        wide, high = self.size
        picture = np.full((high, wide), _grey(STRIP), np.uint8)
        picture[self.height : self.height + self.strip.shape[0], : self.strip.shape[1]] = self.strip
        if self.caption:
            for recording, frame, (top, left) in zip(self.recordings, self.frames, self.places, strict=True):
                words = _fitted(plot.caption(recording), self.cell[1])
                below = top + frame.panel[0]
                picture[below : below + LINE, left : left + self.cell[1]] = words
        for step in steps:
            picture = picture.copy()
            for frame, (top, left) in zip(self.frames, self.places, strict=True):
                picture[top : top + frame.panel[0], left : left + frame.width] = frame.picture(step)
            counter = _words(f"step {self.first + step}")[:, : COUNTER - MARGIN]
            picture[self.height : self.height + LINE, MARGIN:COUNTER] = _grey(STRIP)
            picture[self.height : self.height + LINE, MARGIN : MARGIN + counter.shape[1]] = counter
            yield picture
            if progress is not None:
                progress(1)


def _strip(width: int, overlay: bool) -> Picture:
    """The strip under the frames: room for the step counter, then the legend, on as many lines as it needs."""
    entries = [("ON (brighter)", AT_ON), ("OFF (darker)", AT_OFF)]
    if width <= ROOM_FOR_WORDS:
        entries = [("ON", AT_ON), ("OFF", AT_OFF)]
    if overlay:
        entries += [("outline", AT_OUTLINE), ("path", AT_PATH), ("box", AT_BOX)]
    line = 0
    left = COUNTER
    spots = []
    for word, colour in entries:
        wide = SWATCH + SWATCH_GAP + _words(word).shape[1] + GAP
        if left + wide > width:
            line += 1
            left = MARGIN
        spots.append((line * LINE, left, word, colour))
        left += wide
    strip = np.full(((line + 1) * LINE, width), _grey(STRIP), np.uint8)
    for top, left, word, colour in spots:
        thick = SWATCH if colour in (AT_ON, AT_OFF) else 2
        above = top + (LINE - thick) // 2
        strip[above : above + thick, left : left + SWATCH] = colour
        drawn = _words(word)
        beside = left + SWATCH + SWATCH_GAP
        strip[top : top + LINE, beside : beside + drawn.shape[1]] = drawn
    return strip


def _fitted(text: str, width: int) -> Picture:
    """A line of text on the strip, of this width; cut if it is longer."""
    while (words := _words(text)).shape[1] + MARGIN > width and len(text) > 1:
        text = f"{text[:-2]}…"
    line = np.full((LINE, width), _grey(STRIP), np.uint8)
    line[:, MARGIN : MARGIN + words.shape[1]] = words[:, : max(0, width - MARGIN)]
    return line


def _words(text: str) -> Picture:
    """A line of text on the strip."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(13)
    drawn = Image.new("L", (math.ceil(font.getlength(text)) + 6, LINE), 0)
    ImageDraw.Draw(drawn).text((0, LINE // 2), text, fill=255, font=font, anchor="lm")
    return _grey(STRIP + (INK - STRIP) * np.asarray(drawn) / 255)


def _grey(share: ArrayLike) -> Picture:
    """Where the palette has the grey of this brightness, from 0 to 1."""
    return (FIRST_GREY + np.rint(np.clip(share, 0, 1) * GREYS)).astype(np.uint8)


def gif(size: tuple[int, int], pictures: Iterable[Picture], fps: float) -> Iterator[bytes]:
    """The bytes of an animated GIF, picture by picture: of each only the rectangle that differs from the one before.

    Pillow would keep all pictures until the last one is known; here it packs one at a time.
    """
    from PIL import Image
    from PIL.GifImagePlugin import getdata

    yield struct.pack("<6sHHBBB", b"GIF89a", *size, 0xF7, 0, 0) + PALETTE.tobytes()
    yield b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"  # again and again
    style = {"duration": max(20, round(1000 / fps)), "disposal": 1, "transparency": UNCHANGED}
    before = None
    for picture in pictures:
        changed = np.ones(picture.shape, bool) if before is None else picture != before
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        top, bottom = (rows[0], rows[-1] + 1) if len(rows) else (0, 1)
        left, right = (columns[0], columns[-1] + 1) if len(columns) else (0, 1)
        part = np.where(changed, picture, UNCHANGED)[top:bottom, left:right].astype(np.uint8)
        yield from getdata(Image.fromarray(part), (int(left), int(top)), **style)
        before = picture
    yield b";"


def ffmpeg(or_else: str = ", or write a GIF") -> str:
    """The program that packs MP4 files, and unpacks videos."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise GerdError(
            f"a video needs the package imageio-ffmpeg: pip install 'gerd-events[video]'{or_else}"
        ) from None


def _write_mp4(path: Path, size: tuple[int, int], pictures: Iterable[Picture], fps: float) -> None:
    """Pack pictures as H.264, which every player and browser can show."""
    colours = ["-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709", "-color_primaries", "bt709"]
    packing = ["-crf", "18", "-pix_fmt", "yuv420p", *colours, "-color_trc", "bt709"]
    pack(path, size, str(fps), "rgb24", packing, (PALETTE[picture].tobytes() for picture in pictures))


def pack(
    path: Path, size: tuple[int, int], fps: str, pixels: str, packing: Sequence[str], pictures: Iterable[bytes]
) -> None:
    """Write an MP4 of H.264 from the bytes of pictures, whose pixels have this format; `packing` are ffmpeg's words."""
    source = ["-f", "rawvideo", "-pix_fmt", pixels, "-s", f"{size[0]}x{size[1]}", "-r", fps, "-i", "-"]
    written = ["-an", "-c:v", "libx264", *packing, "-movflags", "+faststart", "-f", "mp4", str(path)]
    command = [ffmpeg(), "-y", "-v", "error", *source, *written]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as packer:
        assert packer.stdin is not None
        try:
            for picture in pictures:
                packer.stdin.write(picture)
        except BrokenPipeError:
            pass  # the packer says why, below
        except BaseException:
            packer.kill()
            raise
        said = packer.communicate()[1].decode(errors="replace").strip()
    if packer.returncode:
        raise OSError(said.splitlines()[-1] if said else f"ffmpeg stopped with code {packer.returncode}")

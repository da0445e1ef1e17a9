"""Pictures and videos of recordings, as files: what `gerd render` writes.

A recording in, a file out; its ending and the kind say what is drawn. Videos (GIF, MP4) have a page per step, made
one at a time, so that their length does not matter; stills (PNG, SVG, PDF) are the figures of `figure.py`. A file is
written whole or not at all.
"""

from __future__ import annotations

import math
import struct
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from html import escape
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError, shorten
from gerd.events.keys import polarities
from gerd.pictures import figure, plot
from gerd.pictures.plot import BACKDROP, BOTH, BOX, OFF, ON, OUTLINE, PATH
from gerd.recording.recording import Recording
from gerd.storage.whole import written_whole

Page = NDArray[np.uint8]  # (height, width): places in PALETTE
Progress = Callable[[int], None]

GREYS = 247  # grey levels of the palette, after the colours
COLOURS = (BACKDROP, OFF, ON, BOTH, OUTLINE, PATH, BOX, BACKDROP)
AT_OUTLINE, AT_PATH, AT_BOX, UNCHANGED = 4, 5, 6, 7  # places of the colours that are not those of events
FIRST_GREY = len(COLOURS)
PALETTE = np.array([*COLOURS, *((g, g, g) for g in np.rint(np.linspace(0, 255, GREYS + 1)))], np.uint8)
STRIP, INK = 0.91, 0.15  # grey of the strip under the frame, and of the words on it

LINE = 20  # screen pixels of a line of the strip
COUNTER = 84  # screen pixels for the step counter
NARROWEST = 112  # screen pixels of a page, so that the counter and the legend fit
ROOM_FOR_WORDS = 330  # screen pixels of a page whose legend says what ON and OFF are
TRAIL = 500  # steps of a centre's path that a page shows
GAP = 8  # screen pixels between frames side by side
USUAL_SIDE = 512  # screen pixels of the frame's longer side, unless told
LARGEST_PAGE = 8192  # screen pixels a side
VIDEOS, STILLS = (".gif", ".mp4"), (".png", ".svg", ".pdf")
THUMBNAIL_SIDE, THUMBNAIL_PAGES = 320, 60  # of a recording in a notebook


def render(
    recording: Recording,
    path: str | Path,
    kind: str | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Write the steps from `start` up to `stop` of a recording as a picture of this kind.

    Without a kind, a GIF or MP4 is a video and any other file a contact sheet. `options` are those of the kind: of
    `video` here, or of the function of that name in `figure.py`.
    """
    path = Path(path)
    kind = check(path, kind, options)
    part = recording.window(start, stop)
    if part.steps < 1:
        end = recording.steps if stop is None else stop
        raise GerdError(f"steps {start} up to {end}: there are none; the recording has {recording.steps} steps")
    if kind == "video":
        video(part, path, progress=progress, **options)
        return
    import matplotlib

    with written_whole(path) as draft, matplotlib.rc_context(figure.STYLE):
        figure.save(figure.KINDS[kind](part, **options), draft, path.suffix.lower()[1:])


def check(path: Path, kind: str | None, options: dict[str, Any]) -> str:
    """The kind of picture that `render` would write; a clear error if it could not."""
    ending = path.suffix.lower()
    if ending not in VIDEOS + STILLS:
        raise GerdError(f"{path}: the file to write must end in one of {', '.join(VIDEOS + STILLS)} or .html")
    kind = kind or ("video" if ending in VIDEOS else "sheet")
    if kind not in KINDS:
        raise GerdError(f"kind {kind!r}: allowed are {', '.join(KINDS)}")
    allowed = VIDEOS if kind == "video" else STILLS
    if ending not in allowed:
        raise GerdError(f"{path}: a file of the kind {kind} must end in one of {', '.join(allowed)}")
    known = [name for name, given in signature(KINDS[kind]).parameters.items() if given.kind is given.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            takes = ", ".join(name.replace("_", "-") for name in known if name not in ("progress", "names"))
            wrong = f"{name.replace('_', '-')}: is no option of the kind {kind}"
            raise GerdError(f"{wrong}; its options are {takes}" if takes else f"{wrong}, which has none")
    if ending == ".mp4":
        _ffmpeg()
    return kind


def video(
    recording: Recording,
    path: str | Path,
    *,
    zoom: int | None = None,
    fps: float = 20.0,
    overlay: bool = False,
    side_by_side: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a video, a page per step: the events, a step counter, a legend.

    `overlay` adds the outlines, centre paths and boxes of the ground truth, `side_by_side` the brightness behind the
    events. `zoom` is screen pixels per sensor pixel. A GIF shows at most 50 pages per second.
    """
    path = Path(path)
    if not 0 < fps <= 1000:
        raise GerdError(f"frames per second {fps}: allowed is a number above 0, up to 1000")
    is_gif = path.suffix.lower() == ".gif"
    layout = _Layout(recording, zoom, overlay, side_by_side, smallest=1 if is_gif else 2)
    pages = _counted(layout.pages(range(recording.steps)), progress)
    with written_whole(path) as draft:
        if not is_gif:
            _write_mp4(draft, layout.size, pages, fps)
            return
        with open(draft, "wb") as file:
            file.writelines(_gif(layout.size, pages, fps))


KINDS: dict[str, Callable[..., Any]] = {"video": video, **figure.KINDS}


class _Layout:
    """Where things are on the pages of a video: frames on top, under them a strip with counter and legend."""

    def __init__(
        self,
        recording: Recording,
        zoom: int | None = None,
        overlay: bool = False,
        side_by_side: bool = False,
        block: int = 1,  # sensor pixels a side that are drawn as one
        smallest: int = 1,  # zoom unless told
    ):
        if zoom is not None and not 1 <= zoom <= 32:
            raise GerdError(f"zoom {zoom}: allowed is a whole number from 1 to 32")
        self.recording, self.overlay, self.side_by_side, self.block = recording, overlay, side_by_side, block
        rows, columns = -(-recording.height // block), -(-recording.width // block)
        self.zoom = zoom or max(smallest, min(32, USUAL_SIDE // max(rows, columns)))
        self.height, self.width = rows * self.zoom, columns * self.zoom
        wide = max(NARROWEST, self.width * (1 + side_by_side) + GAP * side_by_side)
        self.strip = _strip(wide, overlay)
        high = self.height + self.strip.shape[0]
        self.size = (wide + wide % 2, high + high % 2)  # MP4 has even sides
        if max(self.size) > LARGEST_PAGE:
            page = f"{self.size[0]}×{self.size[1]} pixels"
            raise GerdError(f"zoom {self.zoom}: makes pages of {page}; allowed are up to {LARGEST_PAGE} a side")

    def pages(self, steps: range) -> Iterator[Page]:
        wide, high = self.size
        page = np.full((high, wide), _grey(STRIP), np.uint8)
        page[self.height : self.height + self.strip.shape[0], : self.strip.shape[1]] = self.strip
        left = self.width + GAP if self.side_by_side else 0
        for step in steps:
            page = page.copy()
            if self.side_by_side:
                page[: self.height, : self.width] = self._panel(self._brightness(step), step)
            labels = plot.labels(self.recording, step, self.block)
            page[: self.height, left : left + self.width] = self._panel(labels, step)
            counter = _words(f"step {self.recording.first + step}")[:, : COUNTER - 6]
            page[self.height : self.height + LINE, 6:COUNTER] = _grey(STRIP)
            page[self.height : self.height + LINE, 6 : 6 + counter.shape[1]] = counter
            yield page

    def _brightness(self, step: int) -> Page:
        low, high = plot.brightness_range(self.recording.intensities)
        return _grey((self.recording.images(step, step + 1)[0] - low) / (high - low))

    def _panel(self, cells: Page, step: int) -> Any:
        """A frame on the screen, with the ground truth on top if that is wanted."""
        panel = cells.repeat(self.zoom, axis=0).repeat(self.zoom, axis=1)
        if not self.overlay:
            return panel
        from PIL import Image, ImageDraw

        drawn = Image.frombytes("P", (self.width, self.height), panel.tobytes())
        pen = ImageDraw.Draw(drawn)
        for left, top, right, bottom in self.recording.window(step, step + 1).boxes()[0]:
            pen.line(self._places([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]), AT_BOX)
        for rings in self.recording.outlines(step):
            for ring in rings:
                pen.line(self._places([*ring, ring[0]]), AT_OUTLINE)
        for path in plot.paths(self.recording, max(0, step - TRAIL), step + 1):
            pen.line(self._places(path), AT_PATH)
        for x, y in self._places(self.recording.positions[step]):
            pen.ellipse((x - 2, y - 2, x + 2, y + 2), AT_PATH)
        return np.asarray(drawn)

    def _places(self, points: Any) -> list[tuple[int, int]]:
        """Screen pixels in which points in sensor pixels lie."""
        screen = np.floor(np.asarray(points) * self.zoom).clip(-LARGEST_PAGE, 2 * LARGEST_PAGE).astype(int)
        return [(int(x), int(y)) for x, y in screen]


def _strip(width: int, overlay: bool) -> Page:
    """The strip under the frames: room for the step counter, then the legend, on as many lines as it needs."""
    entries = [("ON (brighter)", 2), ("OFF (darker)", 1)] if width > ROOM_FOR_WORDS else [("ON", 2), ("OFF", 1)]
    if overlay:
        entries += [("outline", AT_OUTLINE), ("path", AT_PATH), ("box", AT_BOX)]
    line, left, spots = 0, COUNTER, []
    for word, colour in entries:
        wide = 22 + _words(word).shape[1]
        if left + wide > width:
            line, left = line + 1, 6
        spots.append((line * LINE, left, word, colour))
        left += wide
    strip = np.full(((line + 1) * LINE, width), _grey(STRIP), np.uint8)
    for top, left, word, colour in spots:
        thick = 10 if colour in (1, 2) else 2
        above = top + (LINE - thick) // 2
        strip[above : above + thick, left : left + 10] = colour
        drawn = _words(word)
        strip[top : top + LINE, left + 14 : left + 14 + drawn.shape[1]] = drawn
    return strip


def _words(text: str) -> Page:
    """A line of text on the strip."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(13)
    drawn = Image.new("L", (math.ceil(font.getlength(text)) + 6, LINE), 0)
    ImageDraw.Draw(drawn).text((0, LINE // 2), text, fill=255, font=font, anchor="lm")
    return _grey(STRIP + (INK - STRIP) * np.asarray(drawn) / 255)


def _grey(share: Any) -> Any:
    """Where the palette has the grey of this brightness, from 0 to 1."""
    return (FIRST_GREY + np.rint(np.clip(share, 0, 1) * GREYS)).astype(np.uint8)


def _counted(pages: Iterator[Page], progress: Progress | None) -> Iterator[Page]:
    for page in pages:
        yield page
        if progress is not None:
            progress(1)


def _gif(size: tuple[int, int], pages: Iterator[Page], fps: float) -> Iterator[bytes]:
    """The bytes of an animated GIF, page by page: of each only the rectangle that differs from the page before.

    Pillow would keep all pages until the last one is known; here it packs one at a time.
    """
    from PIL import Image
    from PIL.GifImagePlugin import getdata

    yield struct.pack("<6sHHBBB", b"GIF89a", *size, 0xF7, 0, 0) + PALETTE.tobytes()
    yield b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"  # again and again
    style = {"duration": max(20, round(1000 / fps)), "disposal": 1, "transparency": UNCHANGED}
    before = None
    for page in pages:
        changed = np.ones(page.shape, bool) if before is None else page != before
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        top, bottom = (rows[0], rows[-1] + 1) if len(rows) else (0, 1)
        left, right = (columns[0], columns[-1] + 1) if len(columns) else (0, 1)
        part = np.where(changed, page, UNCHANGED)[top:bottom, left:right].astype(np.uint8)
        yield from getdata(Image.fromarray(part), (int(left), int(top)), **style)
        before = page
    yield b";"


def _ffmpeg() -> str:
    """The program that packs MP4 files."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise GerdError("an MP4 needs the package imageio-ffmpeg: pip install 'gerd[video]', or write a GIF") from None


def _write_mp4(path: Path, size: tuple[int, int], pages: Iterator[Page], fps: float) -> None:
    """Pack pages as H.264, with which any player and browser can do."""
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", str(fps), "-i", "-"]
    colours = ["-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709", "-color_primaries", "bt709"]
    packing = ["-an", "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", *colours, "-color_trc", "bt709"]
    command = [_ffmpeg(), "-y", "-v", "error", *source, *packing, "-movflags", "+faststart", "-f", "mp4", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as packer:
        assert packer.stdin is not None
        try:
            for page in pages:
                packer.stdin.write(PALETTE[page].tobytes())
        except BrokenPipeError:
            pass  # the packer says why, below
        except BaseException:
            packer.kill()
            raise
        said = packer.communicate()[1].decode(errors="replace").strip()
    if packer.returncode:
        raise OSError(said.splitlines()[-1] if said else f"ffmpeg stopped with code {packer.returncode}")


def html(recording: Recording) -> str:
    """A recording as a notebook shows it: a small moving picture, and beside it the facts."""
    side = max(recording.width, recording.height)
    layout = _Layout(recording, max(1, min(32, THUMBNAIL_SIDE // side)), block=-(-side // THUMBNAIL_SIDE))
    steps = range(0, recording.steps, -(-recording.steps // THUMBNAIL_PAGES) or 1)
    data = b64encode(b"".join(_gif(layout.size, layout.pages(steps), 20.0))).decode()
    on, noise = int(polarities(recording.keys).sum()), int(recording.background.sum())
    identity = recording.identity
    facts = {
        "index": identity.index,
        **{path: shorten(value) for path, value in identity.labels.items()},
        "sensor": f"{recording.width}×{recording.height} px",
        "steps": f"{recording.steps} of {recording.step_us} µs",
        "actors": recording.actors,
        "events": f"{len(recording)}: {on} ON, {len(recording) - on} OFF; {noise} of them background noise",
        "seed": identity.seed,
        "config": identity.config_digest[:16],
        "digest": recording.digest[:16],
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(str(name))}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    picture = f'<img alt="events" src="data:image/gif;base64,{data}" style="image-rendering:pixelated">'
    return f'<div style="display:flex;gap:1em;align-items:flex-start">{picture}<table>{rows}</table></div>'

"""Outlines of shapes in their own unit frame: the built-in three, polygons, SVG paths, masks and glyphs.

An outline is a set of closed rings, filled by the even-odd rule, or the circle, which is kept analytic.
The unit frame is a box of side 1 about the origin, x to the right and y down. SVG paths, masks and glyphs are
fitted into it: centred, the longer side 1, the aspect kept. A polygon's vertices are taken as written.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gerd.files import read_regular
from gerd.geometry import svg
from gerd.reading import spend

if TYPE_CHECKING:
    from PIL import Image

Array = NDArray[np.float64]

BUILT_IN: dict[str, list[list[float]] | None] = {
    "square": [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]],
    "circle": None,
    "triangle": [[-0.5, -0.5], [0.5, 0.0], [-0.5, 0.5]],  # points right
}
RADIUS = 0.5  # of the circle
CURVE_PIECES = 16  # straight pieces per Bézier curve of a path or glyph
VERTEX_GRID = 2.0**20  # vertices from files are rounded to 1 / this, so that last bits of a library cannot show
LEAST_TURN = 1e-6  # radians; flatter corners may turn concave when T rounds them
LARGEST_MASK = 4096  # pixels a side
LARGEST_PICTURE = 2**28  # bytes of a picture file
MOST_SCANS = 100  # of a JPEG picture, each of which can pass over all of it; programs write about ten
PIXELS_OF_WORK = 8  # of a picture, for a unit of `spend`: a microsecond or so
PIXELS_OF_SCAN = 128  # of each scan of a JPEG picture, for a unit of `spend`
BYTES_OF_WORK = 256  # that are read
LARGEST_SVG = 2**22  # bytes of an SVG file
LARGEST_VERTEX = 1000.0
MOST_VERTICES = 20_000
SLABS = 1024  # into which an outline is cut for its area, at least
LARGEST_COORDINATE = 1e9  # of an SVG path, before it is fitted


@dataclass(frozen=True, eq=False)
class Outline:
    """A shape's border: rings of vertices (n, 2), or none for the circle."""

    rings: tuple[Array, ...]

    @property
    def is_circle(self) -> bool:
        return not self.rings

    @cached_property
    def is_convex(self) -> bool:
        """Whether every line meets the shape in one piece: one ring that always turns the same way, once around."""
        if self.is_circle:
            return True
        side = np.roll(self.rings[0], -1, axis=0) - self.rings[0]
        after = np.roll(side, -1, axis=0)
        turns = np.arctan2(side[:, 0] * after[:, 1] - side[:, 1] * after[:, 0], (side * after).sum(axis=1))
        same_way = bool((turns > LEAST_TURN).all() or (turns < -LEAST_TURN).all())
        return len(self.rings) == 1 and same_way and abs(abs(float(turns.sum())) - 2 * math.pi) < 0.1

    @cached_property
    def segments(self) -> Array:
        """Every ring's sides as (sides, 2 ends, 2 coordinates)."""
        return np.concatenate([np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) for ring in self.rings])

    @cached_property
    def area(self) -> float:
        """What the outline encloses in the unit frame, by the even-odd rule; rings may cross.

        Cut into slabs at every vertex, and finer: in a slab the width is linear in y, unless sides cross in it.
        """
        if self.is_circle:
            return math.pi * RADIUS**2
        (ax, ay), (bx, by) = np.moveaxis(self.segments, 0, -1)
        heights = np.unique(np.concatenate([ay, np.linspace(ay.min(), ay.max(), SLABS + 1)]))
        total = 0.0
        for top, bottom in pairwise(heights):
            y = (top + bottom) / 2
            cut = (ay <= y) != (by <= y)
            x = np.sort(ax[cut] + (y - ay[cut]) / (by[cut] - ay[cut]) * (bx[cut] - ax[cut]))
            total += (bottom - top) * float((x[1::2] - x[::2]).sum())
        return total

    @property
    def reach(self) -> float:
        """How far the outline goes from the origin."""
        return RADIUS if self.is_circle else float(np.linalg.norm(np.concatenate(self.rings), axis=-1).max())

    def extent(self, linear: Array) -> tuple[Array, Array]:
        """Smallest and largest coordinates (…, 2) of the outline under the linear maps (…, 2, 2)."""
        if self.is_circle:
            reach = RADIUS * np.sqrt(linear[..., 0] * linear[..., 0] + linear[..., 1] * linear[..., 1])
            return -reach, reach
        points = np.concatenate(self.rings)
        moved = linear[..., None, :, 0] * points[:, None, 0] + linear[..., None, :, 1] * points[:, None, 1]
        return moved.min(axis=-2), moved.max(axis=-2)


def outline(shape: str | Sequence[ArrayLike]) -> Outline:
    """The outline of a built-in shape's name or of a polygon's rings."""
    if not isinstance(shape, str):
        return Outline(tuple(np.asarray(ring, np.float64) for ring in shape))
    ring = BUILT_IN[shape]
    return Outline(() if ring is None else (np.array(ring),))


def rings_of_svg(path: str) -> list[Array]:
    """The closed sub-paths of an SVG path's `d` string, curves cut into straight pieces."""
    spend(len(path))
    return _fit(_rings_of_pen(svg.commands_of_path(path)))


def rings_of_svg_file(path: Path) -> list[Array]:
    """The closed sub-paths of all filled shapes of an SVG file, curves cut into straight pieces."""
    try:
        data = read_regular(path, LARGEST_SVG)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from None
    spend(len(data))
    return _fit(_rings_of_pen(svg.commands_of_file(data)))


def rings_of_text(text: str) -> list[Array]:
    """The outline of one or more characters in DejaVu Sans, which comes with matplotlib."""
    advance = 0.0
    rings = []
    for character in text:
        glyph, width = _glyph(character)
        rings += [ring * (1, -1) + (advance, 0) for ring in glyph]  # a font's y points up
        advance += width
    return _fit(rings)


@lru_cache(maxsize=1024)
def _glyph(character: str) -> tuple[list[Array], float]:
    """The rings of a character in the font's own units, and how far it moves the next one."""
    from fontTools.pens.recordingPen import DecomposingRecordingPen

    names, glyphs = _font()
    if ord(character) not in names:
        raise ValueError(f"has the character {character!r}, which the font DejaVu Sans does not hold")
    glyph = glyphs[names[ord(character)]]
    pen = DecomposingRecordingPen(glyphs)
    glyph.draw(pen)
    return _rings_of_pen(pen.value), float(glyph.width)


@cache
def _font() -> tuple[dict[int, str], Any]:
    """The names of the font's glyphs by character, and the glyphs."""
    from fontTools.ttLib import TTFont

    matplotlib = find_spec("matplotlib")  # found and not imported: that takes a second
    assert matplotlib is not None
    assert matplotlib.origin is not None
    file = Path(matplotlib.origin).with_name("mpl-data") / "fonts" / "ttf" / "DejaVuSans.ttf"
    font = TTFont(io.BytesIO(file.read_bytes()))
    return font.getBestCmap(), font.getGlyphSet()


def rings_of_mask(path: Path, alpha: bool = False, invert: bool = False, most: int = MOST_VERTICES) -> list[Array]:
    """Contours of a PNG, JPEG or PGM picture at half of full brightness; light is inside, transparent pixels outside.

    alpha: contours at half of full opacity instead. invert: what is dark is inside, or with alpha what is transparent.
    """
    from contourpy import contour_generator
    from PIL import Image

    refused = ""
    try:
        data = read_regular(path, LARGEST_PICTURE)
        with warnings.catch_warnings(action="ignore"), _opened(data) as picture:
            refused = _too_much(picture, data)
            light = np.zeros((0, 0)) if refused else _inside(picture, alpha, invert)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except Image.DecompressionBombError as error:
        raise ValueError(f"is too large: at most {LARGEST_MASK} pixels a side are allowed ({error})") from None
    except Exception as error:  # Pillow raises many kinds for a damaged file
        reason = getattr(error, "strerror", None) or str(error)[:80]
        raise ValueError(f"cannot be read as a picture: {reason}; allowed: PNG, JPEG, PGM") from None
    if refused:
        raise ValueError(refused)
    if not (light > 0.5).any():
        kind = "opaque" if alpha else "dark" if invert else "light"
        hint = "" if alpha else "; alpha: true takes what is opaque, invert: true what is dark"
        raise ValueError(f"has no {kind} pixel; allowed: a picture that is {kind} inside the shape{hint}")
    if alpha and (light > 0.5).all():
        raise ValueError("has no transparent pixel; leave alpha out to take what is light")
    light = np.pad(light, 1)
    inside = light > 0.5
    vertices = np.count_nonzero(inside[1:] != inside[:-1]) + np.count_nonzero(inside[:, 1:] != inside[:, :-1])
    if vertices > most:  # a contour has one between each two neighbours that differ
        raise ValueError(_TOO_MANY)
    lines = contour_generator(z=light).lines(0.5)
    return _fit([np.asarray(line)[:-1] for line in lines])


def _opened(data: bytes) -> Image.Image:
    """A picture of which nothing but the header has been looked at."""
    from PIL import Image

    return Image.open(io.BytesIO(data), formats=["PNG", "JPEG", "PPM"])


def _too_much(picture: Image.Image, data: bytes) -> str:
    """Why a picture is not to be decoded; nothing if it may be."""
    width, height = picture.size
    if max(width, height) > LARGEST_MASK:
        return f"is {width}×{height} pixels; at most {LARGEST_MASK} a side are allowed"
    scans = data.count(b"\xff\xda") if picture.format == "JPEG" else 0
    if scans > MOST_SCANS:
        return f"has {scans} scans; at most {MOST_SCANS} are allowed"
    try:
        spend(width * height // PIXELS_OF_WORK + scans * width * height // PIXELS_OF_SCAN + len(data) // BYTES_OF_WORK)
    except ValueError as error:
        return str(error)
    return ""


def _inside(picture: Image.Image, alpha: bool, invert: bool) -> Array:
    """(height, width): the brightness (or opacity) of each pixel of a Pillow picture, from 0 to 1; 0 if transparent."""
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits
        values = np.asarray(picture, np.float64)
        opaque = values != picture.info.get("transparency")
        light = values / 65535.0
    else:
        solid = picture.convert("RGBA")
        flat = Image.new("RGBA", picture.size, "white" if invert else "black")
        flat.alpha_composite(solid)
        opaque = np.asarray(solid.getchannel("A"), np.float64) / 255.0
        light = np.asarray(flat.convert("L")) / 255.0
    if alpha:
        return 1.0 - opaque if invert else opaque.astype(np.float64)
    return np.where(opaque > 0, 1.0 - light if invert else light, 0.0)


def _rings_of_pen(commands: svg.Commands) -> list[Array]:
    """Rings from the drawing commands of a fontTools pen."""
    rings: list[list[Array]] = []
    vertices = 0
    for name, raw in commands:
        vertices += {"curveTo": CURVE_PIECES, "qCurveTo": CURVE_PIECES * (len(raw) - 1)}.get(name, len(raw))
        if vertices > MOST_VERTICES:
            raise ValueError(_TOO_MANY)
        points = [np.array(point, np.float64) for point in raw if point is not None]
        if not all((np.abs(point) <= LARGEST_COORDINATE).all() for point in points):
            raise ValueError(f"has a coordinate that is too large; allowed: up to {LARGEST_COORDINATE:g}")
        if name == "moveTo":
            rings.append(points)
        elif name == "lineTo":
            rings[-1] += points
        elif name == "curveTo":
            rings[-1] += _bezier([rings[-1][-1], *points])
        elif name == "qCurveTo":
            if raw[-1] is None:  # a TrueType ring of control points only begins half-way between two of them
                rings.append([(points[-1] + points[0]) / 2])
                points.append(rings[-1][0])
            # TrueType: between two control points lies an implied point on the curve, half-way.
            while len(points) > 2:
                middle = (points[0] + points[1]) / 2
                rings[-1] += _bezier([rings[-1][-1], points[0], middle])
                points = points[1:]
            rings[-1] += _bezier([rings[-1][-1], *points])
    return [np.array(ring) for ring in rings]


def _bezier(control: list[Array]) -> list[Array]:
    """Points along a Bézier curve after its first, by repeated halfway points (de Casteljau)."""
    result = []
    for k in range(1, CURVE_PIECES + 1):
        points = control
        share = k / CURVE_PIECES
        while len(points) > 1:
            points = [a + (b - a) * share for a, b in pairwise(points)]
        result.append(points[0])
    return result


def _fit(rings: list[Array]) -> list[Array]:
    """Rings centred on the origin with the longer side of their common box 1, without vertices that stand twice."""
    if sum(map(len, rings)) > MOST_VERTICES:
        raise ValueError(_TOO_MANY)
    points = np.concatenate([*rings, np.zeros((0, 2))])
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(2), np.zeros(2))
    side = float((high - low).max())
    if not (math.isfinite(side) and side > 0):
        raise ValueError(_NO_AREA)
    rings = [np.rint((ring - (low + high) / 2) / side * VERTEX_GRID) / VERTEX_GRID for ring in rings]
    rings = [ring[(ring != np.roll(ring, -1, axis=0)).any(axis=1)] for ring in rings]
    rings = [ring for ring in rings if len(ring) >= 3]
    if not any(map(encloses_area, rings)):
        raise ValueError(_NO_AREA)
    return rings


_NO_AREA = "encloses no area; allowed: an outline that does"
_TOO_MANY = f"has too many vertices; at most {MOST_VERTICES} are allowed"


def encloses_area(ring: Array) -> bool:
    """Whether the vertices of a ring do not all lie on one line."""
    sides = ring - ring[0]
    longest = sides[np.abs(sides).max(axis=1).argmax()]
    apart = np.abs(sides[:, 0] * longest[1] - sides[:, 1] * longest[0])  # times the longest side
    return bool(apart.max() > 1e-12 * np.abs(longest).max() ** 2)

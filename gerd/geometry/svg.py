"""SVG to drawing commands: the `d` string of a path or the bytes of a file in, commands of a fontTools pen out.

Of a file everything is taken that is filled: paths and basic shapes, in groups, with their transformations, one after
the other. Strokes, style sheets, text, gradients, references to other elements (`use`) and the `viewBox` are not looked
at. Nothing is fetched, and a file that declares entities, with which a few bytes can stand for gigabytes, is refused.
Coordinates are those of the drawing, x to the right and y down. What is wrong is a `ValueError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat

if TYPE_CHECKING:
    from fontTools.misc.transform import Transform

LONGEST_PATH = 1_000_000  # characters of all `d` strings of a file
NOT_DRAWN = ("defs", "clipPath", "mask", "pattern", "marker", "symbol")
ALLOWED = "allowed: a path's d string, such as 'M 0 0 L 4 0 L 2 3 Z', or the name of an .svg file"

Commands = list[tuple[str, tuple[tuple[float, float] | None, ...]]]  # names of a pen's methods, and points


def commands_of_path(path: str) -> Commands:
    """What the `d` string of a path draws."""
    from fontTools.pens.recordingPen import RecordingPen
    from fontTools.svgLib.path import parse_path

    strange = re.search(r"[^MmZzLlHhVvCcSsQqTtAa0-9eE.,+\-\s]", path)
    if strange:
        raise ValueError(f"is not an SVG path: it has the character {strange.group()!r}; {ALLOWED}")
    pen = RecordingPen()
    try:
        parse_path(path, pen)
    except Exception as error:  # the parser raises many kinds, none of them its own
        raise ValueError(f"is not an SVG path: {(str(error) or type(error).__name__)[:80]}; {ALLOWED}") from None
    return pen.value


def commands_of_file(data: bytes) -> Commands:
    """What the filled shapes of a file draw."""
    drawing = _Drawing()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = drawing.begin, drawing.end
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"is not an SVG file: {error}") from None
    if not drawing.commands:
        raise ValueError("has no filled shape; allowed: path, rect, circle, ellipse, polygon, polyline with a fill")
    return drawing.commands


def _refuse(*_: object) -> None:
    raise ValueError("declares an entity; allowed: an SVG file without entities")


class _Group(NamedTuple):
    """What an element of the drawing passes on to the elements inside it."""

    transform: Transform  # to the coordinates of the drawing
    is_drawn: bool
    fill: str


class _Drawing:
    """Adds up what elements draw while the parser walks through them."""

    def __init__(self) -> None:
        from fontTools.misc.transform import Identity

        self.commands: Commands = []
        self._groups = [_Group(Identity, True, "black")]
        self._length = 0

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        above = self._groups[-1]
        declared = (part.partition(":") for part in attributes.get("style", "").split(";"))
        style = attributes | {property.strip(): value for property, _, value in declared}
        is_drawn = above.is_drawn and name not in NOT_DRAWN and style.get("display", "").strip() != "none"
        fill = style.get("fill", above.fill).strip()
        group = _Group(_transformed(above.transform, attributes.get("transform", "")), is_drawn, fill)
        self._groups.append(group)
        if is_drawn and fill not in ("none", "transparent") and name in _ELEMENTS:
            path = _ELEMENTS[name](attributes)
            self._length += len(path)
            if self._length > LONGEST_PATH:
                raise ValueError(f"has paths that are too long; allowed: up to {LONGEST_PATH} characters")
            for command, points in commands_of_path(path):
                self.commands.append((command, tuple(map(group.transform.transformPoint, points))))

    def end(self, _: str) -> None:
        self._groups.pop()


def _transformed(outer: Transform, text: str) -> Transform:
    """The map of coordinates inside of an element whose `transform` attribute is `text`."""
    *maps, rest = text.split(")")
    for written in maps:
        name, _, listed = written.strip(" ,\t\n").partition("(")
        numbers = [_number(word) for word in listed.replace(",", " ").split()]
        if (name.strip(), len(numbers)) not in _MAPS:
            raise ValueError(f"has the transform {text[:60]!r}; {_ALLOWED_MAPS}")
        outer = _MAPS[name.strip(), len(numbers)](outer, *numbers)
    if rest.strip():
        raise ValueError(f"has the transform {text[:60]!r}; {_ALLOWED_MAPS}")
    return outer


_ALLOWED_MAPS = "allowed: matrix, translate, scale, rotate, skewX and skewY, with their numbers in brackets"


def _turned(outer: Transform, degrees: float, x: float = 0.0, y: float = 0.0) -> Transform:
    return outer.translate(x, y).rotate(math.radians(degrees)).translate(-x, -y)


_MAPS: dict[tuple[str, int], Callable[..., Transform]] = {
    ("matrix", 6): lambda outer, *numbers: outer.transform(numbers),
    ("translate", 1): lambda outer, x: outer.translate(x),
    ("translate", 2): lambda outer, x, y: outer.translate(x, y),
    ("scale", 1): lambda outer, size: outer.scale(size),
    ("scale", 2): lambda outer, x, y: outer.scale(x, y),
    ("rotate", 1): _turned,
    ("rotate", 3): _turned,
    ("skewX", 1): lambda outer, degrees: outer.transform((1, 0, math.tan(math.radians(degrees)), 1, 0, 0)),
    ("skewY", 1): lambda outer, degrees: outer.transform((1, math.tan(math.radians(degrees)), 0, 1, 0, 0)),
}


def _number(text: str) -> float:
    try:
        return float(text.strip().removesuffix("px"))
    except ValueError:
        raise ValueError(f"has {text[:40]!r} where a number belongs; allowed: a number without a unit") from None


def _numbers(attributes: Mapping[str, str], names: str) -> list[float]:
    return [_number(attributes.get(name, "0")) for name in names.split()]


def _rectangle(attributes: Mapping[str, str]) -> str:
    x, y, width, height = _numbers(attributes, "x y width height")
    rx, ry = (_number(attributes.get(one, attributes.get(other, "0"))) for one, other in (("rx", "ry"), ("ry", "rx")))
    rx, ry = min(rx, width / 2), min(ry, height / 2)
    if not (rx > 0 and ry > 0):
        return f"M {x} {y} h {width} v {height} h {-width} z"
    across = width - 2 * rx
    down = height - 2 * ry
    arc = f"a {rx} {ry} 0 0 1"
    return (
        f"M {x + rx} {y} h {across} {arc} {rx} {ry} v {down} {arc} {-rx} {ry} "
        f"h {-across} {arc} {-rx} {-ry} v {-down} {arc} {rx} {-ry} z"
    )


def _ellipse(attributes: Mapping[str, str], sizes: str = "rx ry") -> str:
    x, y, *radii = _numbers(attributes, f"cx cy {sizes}")
    rx = radii[0]
    ry = radii[-1]
    return f"M {x - rx} {y} a {rx} {ry} 0 0 1 {2 * rx} 0 a {rx} {ry} 0 0 1 {-2 * rx} 0 z"


_ELEMENTS: dict[str, Callable[[Mapping[str, str]], str]] = {  # name of an element: its attributes to a `d` string
    "path": lambda attributes: attributes.get("d", ""),
    "rect": _rectangle,
    "circle": lambda attributes: _ellipse(attributes, "r"),
    "ellipse": _ellipse,
    "polygon": lambda attributes: f"M {attributes['points']} z" if attributes.get("points") else "",
}
_ELEMENTS["polyline"] = _ELEMENTS["polygon"]  # what is filled is closed

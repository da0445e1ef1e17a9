"""What is on the screen, where and when: a config and a screen in, a `Stimulus` out, and the file beside a video.

Lengths are screen pixels and times are frames of the video, both from 0 on; a frame's time is its number divided by
`frames_per_second`. The screen has the brightness 0 of the config's background, and is altogether at brightness 1 while
it flashes. The video has, one after the other:

    flashes     of the whole screen, whose lengths are a code of this stimulus: the clock is found by them
    dots        a grid of them, each lit by a code of its own, so that a camera's picture of one says which it is
    scenes      one after the other, the first step of each standing still for a while; a step is a frame
    dots, flashes   the same again, the flashes by the opposite code

While scenes are shown, marks beside them go on and off, twice a second, so that frames that a player has dropped are
found.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gerd.config.config import Config, Origin
from gerd.config.document import Document, PlainData
from gerd.config.functions import to_store
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import lengths, member_count
from gerd.errors import GerdError, StorageError, check_whole, shorten
from gerd.storage.json_files import json_bytes
from gerd.version import __version__

FORMAT_VERSION = 1
LARGEST_SCREEN = 16384  # pixels a side
MOST_FRAMES = 10_000_000
SLOWEST, FASTEST = 5, 2000  # frames per second
MOST_DIGITS = 10**6  # of the numbers of a fraction of frames per second

SLOT_S = 0.05  # the shortest time for which anything is lit; at least two frames
STILL_S, HOLD_S = 0.5, 0.25  # of nothing at both ends, and of the first step of a scene
MARK_S = 0.5  # that a mark is lit, and then dark
FLASHES = 8  # of a sequence; two bits each: how long it is lit, and how long it is dark then
DOTS, MOST_DOTS = 60, 127  # as many as are aimed at, and as the code has numbers
CODE_BITS = 8  # of a dot: seven of its number, and their parity
DOT_SHARE = 0.2  # radius of a dot, of the distance to the next
MARGIN_SHARE = 1 / 12  # of the scene's shorter side: a margin in which there is room for marks
SMALLEST_SPOT = 2  # screen pixels of radius

Frames = tuple[int, int]  # from a frame up to another


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Spot(_Json):
    """A disc on the screen."""

    x: float  # of its centre
    y: float
    radius: float
    lit: tuple[Frames, ...]


class Shown(_Json):
    """A recording of the config, as it is shown: step i in frame first + i, and step 0 also from `hold` on."""

    row: int
    index: int
    member: int
    hold: int
    first: int
    steps: int

    @property
    def stop(self) -> int:
        """The frame after the last step."""
        return self.first + self.steps


class Stimulus(_Json):
    """Everything about a video that is played before a camera."""

    format: Literal["gerd stimulus"]
    format_version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)]
    gerd_version: str
    screen: tuple[int, int]  # width and height
    frames_per_second: tuple[int, int]  # a fraction: numerator and denominator
    frames: int
    levels: tuple[int, int]  # grey values of brightness 0 and 1
    gamma: float  # of the screen: light is proportional to the grey value to this power
    zoom: int  # screen pixels a side of a pixel of the scene
    corner: tuple[int, int]  # the scene's upper left, from which on it has its pixels · zoom
    flashes: tuple[tuple[Frames, ...], tuple[Frames, ...]]  # when the whole screen is lit, before and after the scenes
    dots: tuple[Spot, ...]
    marks: tuple[Spot, ...]
    scenes: tuple[Shown, ...]
    config: dict[str, PlainData]  # with all its defaults, steps that last as long as a frame, and exact timing
    config_digest: str
    count: int  # of indices, each with all members of a sweep

    def to_bytes(self) -> bytes:
        return json_bytes(self.model_dump(mode="json"))

    @property
    def rate(self) -> Fraction:
        """Frames per second."""
        return Fraction(*self.frames_per_second)

    @property
    def frame_us(self) -> float:
        """How long a frame is shown, in microseconds."""
        return float(1_000_000 / self.rate)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the scene, in its own pixels."""
        return self.family.sensor.width, self.family.sensor.height

    @cached_property
    def family(self) -> Config:
        """The config whose recordings are shown."""
        return Config.of(self.config, Origin(document=Document(None, "stimulus"), directory=None))

    def seconds(self, frame: float) -> float:
        return float(frame / self.rate)


def plan_stimulus(
    config: AnyConfig,
    screen: tuple[int, int],
    frames_per_second: float | Fraction | str,
    count: int = 1,
    *,
    zoom: int | None = None,
    levels: tuple[int, int] = (64, 192),
    gamma: float = 2.2,
) -> Stimulus:
    """What a screen shows of the indices 0 … count - 1 of a config, with all members of a sweep."""
    rate = parse_rate(frames_per_second)
    for name, side in zip(("width", "height"), screen, strict=True):
        check_whole(f"{name} of the screen", side, 16, LARGEST_SCREEN)
    check_whole("count", count, 1)
    _check_levels(levels, gamma)
    family = to_be_shown(as_config(config), rate)
    size = (family.sensor.width, family.sensor.height)
    zoom = _zoom(size, screen, zoom)
    corner = _corner(size, zoom, screen)
    identity = [family.digest, count, screen, str(rate), zoom, levels, float(gamma)]
    clock = _Clock(rate, int.from_bytes(hashlib.sha256(json.dumps(identity).encode()).digest()[:4]))
    still = clock.frames(STILL_S)
    before = clock.flashes(still, inverted=False)
    begin = clock.after(before)
    spots = _grid(size, zoom, corner, screen)
    first_codes, at = clock.codes(begin, len(spots))
    scenes, at = _scenes(family, count, at + 4 * clock.slot, clock)
    marked = clock.blinks(scenes[0].hold, scenes[-1].stop)
    second_codes, at = clock.codes(at + 4 * clock.slot, len(spots))
    after = clock.flashes(at + 4 * clock.slot, inverted=True)
    frames = clock.after(after) + still
    if frames > MOST_FRAMES:
        raise GerdError(f"makes a video of {frames} frames; allowed: up to {MOST_FRAMES}. Show fewer recordings")
    dots = (Spot(**spot, lit=(*a, *b)) for spot, a, b in zip(spots, first_codes, second_codes, strict=True))
    return Stimulus(
        format="gerd stimulus",
        format_version=FORMAT_VERSION,
        gerd_version=__version__,
        screen=screen,
        frames_per_second=(rate.numerator, rate.denominator),
        frames=frames,
        levels=levels,
        gamma=float(gamma),
        zoom=zoom,
        corner=corner,
        flashes=(before, after),
        dots=tuple(dots),
        marks=tuple(Spot(**spot, lit=marked) for spot in _beside(size, zoom, corner)),
        scenes=scenes,
        config=family.resolved(),
        config_digest=family.digest,
        count=count,
    )


def read_stimulus(data: bytes, name: str) -> Stimulus:
    """The stimulus that the file `name` with these bytes describes."""
    try:
        stimulus = Stimulus.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = "is no file that gerd stimulus has written" if where in ("", "format") else "is damaged"
        raise StorageError(f"{name}: {what}: {f'{where}: ' if where else ''}{first['msg']}") from None
    try:
        digest = stimulus.family.digest
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ValidationError) as error:
        raise StorageError(f"{name}: is damaged: config: {str(error).splitlines()[0]}") from None
    if digest != stimulus.config_digest:
        raise StorageError(f"{name}: is damaged: its config is not the one of config_digest")
    _check_plan(stimulus, name)
    return stimulus


def _check_plan(stimulus: Stimulus, name: str) -> None:
    """An error unless the config and the screen give the very plan that was read."""
    try:
        again = plan_stimulus(
            stimulus.family,
            stimulus.screen,
            stimulus.rate,
            stimulus.count,
            zoom=stimulus.zoom,
            levels=stimulus.levels,
            gamma=stimulus.gamma,
        )
    except (GerdError, ZeroDivisionError) as error:
        raise StorageError(f"{name}: is damaged: {error}") from None
    free = {"gerd_version", "config"}  # another version may write more defaults; config_digest does not count them
    fields = Stimulus.model_fields.keys() - free
    wrong = sorted(field for field in fields if getattr(again, field) != getattr(stimulus, field))
    if wrong:
        raise StorageError(f"{name}: is damaged: {', '.join(wrong)}: not what its config, screen and count give")


def to_be_shown(config: Config, rate: Fraction) -> Config:
    """The config as it is shown, and as its real recordings have it: a step lasts as long as a frame.

    T(t) stays as it is. Events have times inside their step, and there is no noise, since the camera has its own.
    """
    data = to_store(config).resolved()
    data |= {"timing": "exact", "step_us": max(1, round(1_000_000 / rate))}
    data.pop("noise")
    return Config.of(data, Origin(document=Document(None, config.origin.document.source), directory=None))


def parse_rate(wish: float | Fraction | str) -> Fraction:
    """Frames per second from a number or from words: 120, 59.94, 60000/1001."""
    try:
        rate = Fraction(str(wish))
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not SLOWEST <= rate <= FASTEST or max(rate.numerator, rate.denominator) > MOST_DIGITS:
        allowed = f"a number from {SLOWEST} to {FASTEST}, such as 120, 59.94 or 60000/1001"
        raise GerdError(f"frames per second {shorten(wish)}: allowed: {allowed}")
    return rate


def _check_levels(levels: tuple[int, int], gamma: float) -> None:
    dark, bright = levels
    for name, value in (("dark", dark), ("bright", bright)):
        check_whole(f"levels: {name}", value, 0, 255)
    if dark == bright:
        raise GerdError(f"levels {dark} and {bright}: allowed: two that differ")
    if not 0.2 <= gamma <= 5:
        raise GerdError(f"gamma {gamma}: allowed: 0.2 to 5")


def _zoom(size: tuple[int, int], screen: tuple[int, int], wish: int | None) -> int:
    """How many screen pixels a side a pixel of the scene gets: the most that leave room for marks, by default."""
    most = min(side // own for side, own in zip(screen, size, strict=True))
    if most < 1:
        raise GerdError(
            f"the screen has {screen[0]}×{screen[1]} pixels and the scene {size[0]}×{size[1]}; allowed: a screen that "
            "is at least as large"
        )
    if wish is not None:
        check_whole("zoom", wish, 1, most)
        return wish
    with_room = (z for z in range(most, 0, -1) if _beside(size, z, _corner(size, z, screen)))
    return next(with_room, most)


def _corner(size: tuple[int, int], zoom: int, screen: tuple[int, int]) -> tuple[int, int]:
    return (screen[0] - zoom * size[0]) // 2, (screen[1] - zoom * size[1]) // 2


def _grid(size: tuple[int, int], zoom: int, corner: tuple[int, int], screen: tuple[int, int]) -> list[dict[str, float]]:
    """The dots: a grid over the scene and a little beyond, if there is room."""
    reach = min(size) * zoom / 6
    low = [max(0.0, c - reach) for c in corner]
    high = [min(float(s), c + zoom * own + reach) for c, own, s in zip(corner, size, screen, strict=True)]
    wide, tall = (h - w for w, h in zip(low, high, strict=True))
    distance = math.sqrt(wide * tall / DOTS)
    columns, rows = (max(3, round(side / distance)) for side in (wide, tall))
    while columns * rows > MOST_DOTS:
        columns, rows = (columns - 1, rows) if columns > rows else (columns, rows - 1)
    across, down = wide / columns, tall / rows
    radius = DOT_SHARE * min(across, down)
    if radius < SMALLEST_SPOT:
        raise GerdError(f"the screen has {screen[0]}×{screen[1]} pixels, too few for dots; allowed: a larger one")
    return [
        {"x": low[0] + (i + 0.5) * across, "y": low[1] + (j + 0.5) * down, "radius": radius}
        for j in range(rows)
        for i in range(columns)
    ]


def _beside(size: tuple[int, int], zoom: int, corner: tuple[int, int]) -> list[dict[str, float]]:
    """Marks in the margins beside the scene, as far as there is room."""
    least = MARGIN_SHARE * min(size) * zoom
    spots = []
    for axis in (0, 1):
        margin = corner[axis]
        if margin < least:
            continue
        radius = max(SMALLEST_SPOT, min(margin, 2 * least) * 0.3)
        away = min(margin / 2, 2 * radius)
        middle = corner[1 - axis] + zoom * size[1 - axis] / 2
        for place in (corner[axis] - away, corner[axis] + zoom * size[axis] + away):
            x, y = (place, middle) if axis == 0 else (middle, place)
            spots.append({"x": x, "y": y, "radius": radius})
    return spots


def _scenes(family: Config, count: int, begin: int, clock: _Clock) -> tuple[tuple[Shown, ...], int]:
    """The recordings one after the other, and the frame after the last."""
    members = member_count(family)
    of_members = lengths(family)
    scenes = []
    for row in range(count * members):
        index, number = divmod(row, members)
        first = begin + clock.frames(HOLD_S)
        scenes.append(Shown(row=row, index=index, member=number, hold=begin, first=first, steps=of_members[number]))
        begin = scenes[-1].stop
        if begin > MOST_FRAMES:
            break
    return tuple(scenes), begin


class _Clock:
    """Turns seconds and codes into frames."""

    def __init__(self, rate: Fraction, code: int):
        self.rate = rate
        self.code = code
        self.slot = max(2, self.frames(SLOT_S))

    def frames(self, seconds: float) -> int:
        return math.ceil(seconds * self.rate)

    def flashes(self, begin: int, inverted: bool) -> tuple[Frames, ...]:
        """When the screen is lit: the code's bits say how long, and how long it is dark between."""
        result = []
        code = ~self.code if inverted else self.code
        for _ in range(FLASHES):
            lit, dark = self.slot * (1 + (code & 1)), self.slot * (1 + (code >> 1 & 1))
            result.append((begin, begin + lit))
            begin += lit + dark
            code >>= 2
        return tuple(result)

    def after(self, flashes: tuple[Frames, ...]) -> int:
        """The frame at which something else may begin after flashes."""
        return flashes[-1][1] + 4 * self.slot

    def codes(self, begin: int, dots: int) -> tuple[list[tuple[Frames, ...]], int]:
        """When each of some dots is lit, and the frame after: in one of two slots for each bit of its number.

        So each is lit as often as all others, and their codes differ in at least four slots.
        """
        result = []
        for number in range(1, dots + 1):
            bits = [number >> bit & 1 for bit in range(CODE_BITS - 1)]
            slots = [2 * place + bit for place, bit in enumerate([*bits, sum(bits) % 2])]
            starts = [begin + 2 * self.slot * slot for slot in slots]
            result.append(tuple((start, start + self.slot) for start in starts))
        return result, begin + 4 * self.slot * CODE_BITS

    def blinks(self, begin: int, stop: int) -> tuple[Frames, ...]:
        """When marks are lit between two frames."""
        length = max(2, self.frames(MARK_S))
        return tuple(self._parts(begin, stop, length))

    def _parts(self, begin: int, stop: int, length: int) -> Iterator[Frames]:
        for start in range(begin, stop, 2 * length):
            yield start, min(start + length, stop)

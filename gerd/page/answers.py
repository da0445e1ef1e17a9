"""What the page of `gerd view` shows: what there is to choose from, recordings as bytes, and files to save.

The page in `web/` asks for one recording at a time, and gets it as these bytes, little-endian:

    "GERD"                        4 bytes
    length of the head            uint32, a multiple of 4
    head                          JSON in UTF-8, blanks at its end: width, height, steps, first, step_us, timing, index,
                                  member, name, labels, digest, events, has_truth, intensities, shapes (the class of
                                  each actor, null if it is absent), actors (each with its rings, none for the circle,
                                  null if it is absent; and wraps)
    offsets (steps + 1)           uint32: step i has the events offsets[i] … offsets[i + 1] - 1
    events (events)               uint32: ((y · width + x) · 2 + p) · 2 + whether it is background noise
    times (events)                float32, in exact timing only: in steps, counted from the first
    truth (steps, actors, 3, 6)   float32: as `Recording.truth`, in pixels and radians per step; NaN of an absent actor

`server.py` answers the page over HTTP. Only `save_page` writes, and only the file that it names.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from gerd.config.actor import is_svg_file
from gerd.config.base import replaced
from gerd.config.camera import spelled_out
from gerd.config.config import Config
from gerd.config.document import PlainData, parse_yaml, read_text
from gerd.config.load import load, parse
from gerd.config.overrides import edited, with_actor, without_actor
from gerd.config.sweep import labels, member, member_count, named
from gerd.errors import ConfigError, GerdError, Problem
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT
from gerd.page.limits import LIMITS, Limits
from gerd.page.pattern import pattern_of
from gerd.page.table import TableColumn, table
from gerd.pictures import video
from gerd.pictures.colours import ACTORS, BACKDROP, BOTH, OFF, ON
from gerd.pictures.figure import MOST_PANELS
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate
from gerd.storage.whole import write_whole

T = TypeVar("T")

MOST_OFFERED = 500  # members of a sweep that the page offers by name
MOST_SAVED = MOST_PANELS  # recordings in a file that is saved from the page

COLOURS = {"backdrop": BACKDROP, "on": ON, "off": OFF, "both": BOTH, "actors": ACTORS}  # for the page to draw with
NEW_ACTOR = {
    "shape": "circle",
    "translation": {"start": "uniform", "velocity": {"uniform": [-1, 1]}, "acceleration": 0},
    "scale": {"start": "uniform", "acceleration": 0},
}

Question = Mapping[str, PlainData]  # what the page asks, as it came out of JSON


def pack(recording: Events, limits: Limits = LIMITS, **more: object) -> bytes:
    """A recording, or other events, as the bytes above; `more` is added to the head."""
    if len(recording) > limits.events:
        raise _too_large(f"{len(recording)} events", limits.events, "events")
    if recording.steps > limits.steps:
        raise _too_large(f"{recording.steps} steps", limits.steps, "steps")
    codec = recording.codec
    head = {
        **{name: getattr(recording, name) for name in ("width", "height", "steps", "first", "step_us", "digest")},
        "timing": "exact" if recording.exact else "step",
        "events": len(recording),
        **(_about(recording) if isinstance(recording, Recording) else {**UNKNOWN, "name": recording.name}),
        **more,
    }
    truth = (
        recording.truth if isinstance(recording, Recording) else np.empty((recording.steps, 0, ORDERS, PARAMETER_COUNT))
    )
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    parts = (
        codec.bounds(recording.keys, np.arange(recording.steps + 1)).astype("<u4"),
        (codec.pixels(recording.keys) * 2 + recording.background).astype("<u4"),
        (codec.times(recording.keys, recording.step_us) / recording.step_us).astype("<f4") if recording.exact else b"",
        truth.astype("<f4"),
    )
    return b"".join([b"GERD", len(text).to_bytes(4, "little"), text, *map(bytes, parts)])


# What the page is told of events without a ground truth, in place of `_about`.
UNKNOWN = {"has_truth": False, "index": 0, "member": 0, "labels": {}, "intensities": [], "shapes": [], "actors": []}


def _about(recording: Recording) -> dict[str, object]:
    """Which recording it is, and what its actors look like."""
    outlines = [outline and [ring.tolist() for ring in outline.rings] for outline in recording.shown.outlines()]
    actors = zip(outlines, recording.shown.wraps, strict=True)
    return {
        "has_truth": True,
        "index": recording.identity.index,
        "member": recording.member,
        "name": named(recording.config, recording.identity.index),
        "labels": recording.identity.labels,
        "intensities": recording.intensities.tolist(),
        "shapes": recording.shapes,
        "actors": [{"rings": rings, "wraps": bool(wraps)} for rings, wraps in actors],
    }


def _too_large(size: str, most: int, unit: str) -> GerdError:
    advice = "take fewer steps, a smaller sensor, fewer actors or less noise"
    return GerdError(f"the recording has {size}; the page shows at most {most} {unit}: {advice}")


@dataclass(frozen=True)
class _Made:
    """A recording of a config that the page has sent."""

    text: str
    written: PlainData  # the text's data
    family: Config
    member: int
    recording: Recording


@dataclass(frozen=True)
class Editor:
    """A config to play with: the page sends its text and what to change in it, and gets the recording and the text."""

    text: str
    file: Path
    trust: bool = False
    limits: Limits = LIMITS

    @classmethod
    def of(cls, file: Path, overrides: Sequence[str] = (), trust: bool = False, limits: Limits = LIMITS) -> Editor:
        load(file, overrides=overrides)  # so that an error names the option and not the edited text
        return cls(edited(read_text(file), overrides, str(file)), file, trust, limits)

    def start(self) -> dict[str, object]:
        schema = Config.model_json_schema()
        del schema["properties"]["functions"]  # nobody edits values by the thousand
        return {"kind": "config", "name": self.file.name, "text": self.text, "schema": schema, "colours": COLOURS}

    def recording(self, question: Question) -> bytes:
        """The recording `index`, `member` of the sent `text` with `overrides` applied, as bytes.

        `actors` is "add" for one actor more, or the number of one to take away. Added to the head are the changed text,
        the member's values with all defaults filled in, the family, and how to make the recording without the page.
        """
        made = self._made(question)
        family = made.family
        values = labels(made.family, made.member)
        written = made.written
        sweep = family.resolved()["sweep"]
        for path, value in values.items():
            with suppress(ValidationError):  # what is not written has a default
                written = replaced(written, path, value)
        resolved = family.with_values(values).resolved()
        resolved["camera"] = {"like": "ideal", **resolved["camera"]}  # unless a name is written
        return pack(
            made.recording,
            self.limits,
            text=made.text,
            values={**_with_written(resolved, spelled_out(written)), "sweep": sweep, "functions": {}},
            pattern=pattern_of(made.recording),
            member=made.member,
            member_count=member_count(family),
            members=[labels(family, k) for k in range(min(member_count(family), MOST_OFFERED))],
            sweep=sweep,
            **_instructions(made.recording, self.file.name, runs_code=_runs_code(made.written)),
        )

    def gif(self, question: Question) -> bytes:
        """The `recordings` as a GIF, `fps` steps per second, with `outlines` and `brightness` if they are asked for."""
        return _gif([self._made(each).recording for each in _several(question)], question, self.limits)

    def html(self, question: Question) -> bytes:
        """A page in one file with the `recordings` that are asked for."""
        return _page(self.file.stem, [self._made(each).recording for each in _several(question)])

    def _made(self, question: Question) -> _Made:
        text = _field(question, "text", str)
        index = _field(question, "index", int)
        text, written, family = self._changed(text, _field(question, "overrides", list), question.get("actors"))
        number = max(0, min(_field(question, "member", int), member_count(family) - 1))
        chosen = member(family, number)
        _check_size(chosen, self.limits)
        return _Made(text, written, family, number, simulate(chosen, index))

    def _changed(self, text: str, overrides: Sequence[object], actors: object) -> tuple[str, PlainData, Config]:
        """The text with the changes in it, its data and its config; an error lists what is wrong with any of them."""
        problems: list[Problem] = []
        for override in overrides:
            try:
                text = edited(text, [str(override)], self.file.name)
            except ConfigError as error:
                path = str(override).partition("=")[0]
                problems += [replace(problem, path=path) for problem in error.problems]
        try:
            if actors == "add":
                text = with_actor(text, NEW_ACTOR, self.file.name)
            elif actors is not None:
                text = without_actor(text, _field({"actors": actors}, "actors", int), self.file.name)
            written = parse_yaml(text, self.file.name).data
            self._check_names(written)
            config = parse(text, source=self.file.name, directory=self.file.resolve().parent, trust=self.trust)
        except ConfigError as error:
            problems += error.problems
        if problems:
            raise ConfigError(problems)
        return text, written, config

    @cached_property
    def _named(self) -> set[tuple[str, str]]:
        """The functions and pictures that the file names."""
        return {(kind, name) for _, kind, name in _names(parse_yaml(self.text).data)}

    def _check_names(self, data: object) -> None:
        """An error for a function that the file does not name, or a picture outside its folder: neither is opened."""
        folder = self.file.resolve().parent
        for path, kind, name in _names(data):
            if (kind, name) in self._named:
                continue
            if kind == "function":
                message = "only functions that the file itself names are run; write it there and start gerd view again"
            elif not (folder / name).resolve().is_relative_to(folder):
                message = "only pictures in the config's folder, and those that the file itself names, are read"
            else:
                continue
            raise ConfigError([Problem(self.file.name, message, path=path, value=repr(name))])


def _field(question: Question, key: str, kind: type[T]) -> T:
    value = question.get(key) if isinstance(question, Mapping) else None
    if type(value) is not kind:
        raise GerdError(f"the page has asked for {key} {value!r}; allowed: a value of the type {kind.__name__}")
    return value


def _names(data: object, path: str = "", kind: str = "") -> Iterator[tuple[str, str, str]]:
    """Where plain data names functions and pictures, swept ones too: path, kind, name."""
    if isinstance(data, str) and (kind in ("function", "mask") or (kind == "svg" and is_svg_file(data))):
        yield path, kind, data
    for key, value in data.items() if isinstance(data, dict) else ():
        yield from _names(value, f"{path}.{key}".lstrip("."), key.rpartition(".")[2])
    for i, value in enumerate(data) if isinstance(data, list) else ():
        yield from _names(value, f"{path}.{i}", kind)


def _runs_code(data: Mapping[str, PlainData]) -> bool:
    """Whether a config in plain data names a function of which it does not have the values."""
    known = [name for name, values in (data.get("functions") or {}).items() if "values" in values]
    return any(kind == "function" and name not in known for _, kind, name in _names(data))


def _check_size(config: Config, limits: Limits) -> None:
    """An error for a config whose recording would keep the page waiting or fill the memory."""
    config = config.in_steps
    steps = config.steps + config.integrator.warmup
    pixels = steps * config.sensor.width * config.sensor.height
    if pixels > limits.pixels:
        size = f"{steps} steps of {config.sensor.width}×{config.sensor.height} pixels"
        raise _too_large(size, limits.pixels, "pixels")
    poses = math.ceil(steps * max(1.0, config.fastest)) * len(config.cast)
    if poses > limits.poses:
        size = f"{len(config.cast)} actors in {steps} steps at time scale {config.fastest:g}"
        raise _too_large(size, limits.poses, "steps of motion")


def _with_written(resolved: PlainData, written: PlainData) -> PlainData:
    """A resolved config, with what the user has written where it is written: a glyph and not its polygon."""
    if isinstance(resolved, dict) and isinstance(written, dict) and set(written) <= set(resolved):
        return {key: _with_written(value, written.get(key, value)) for key, value in resolved.items()}
    if isinstance(resolved, list) and isinstance(written, list) and len(resolved) == len(written):
        return [_with_written(*pair) for pair in zip(resolved, written, strict=True)]
    return resolved if written is None else written


@dataclass(frozen=True)
class Shelf:
    """Recordings to choose from: those of a dataset, or a list of them."""

    name: str
    recordings: Sequence[Events]
    limits: Limits = LIMITS

    def start(self) -> dict[str, object]:
        about = {"kind": "recordings", "name": self.name, "most_offered": MOST_OFFERED, "colours": COLOURS}
        return {**about, "columns": self._table}

    @cached_property
    def _table(self) -> list[TableColumn]:
        return table(self.recordings)

    def recording(self, question: Question) -> bytes:
        """The recording in `row`, as bytes; added to the head is the text of its config, with its sweep."""
        recording = self._chosen(question)
        if not isinstance(recording, Recording):
            return pack(recording, self.limits, text="", recipe="", command="")
        family = recording.config.family
        how = _instructions(recording, f"{self.name}.yaml", runs_code=_runs_code(family.resolved()))
        return pack(recording, self.limits, text=family.resolved_yaml(), **how)

    def gif(self, question: Question) -> bytes:
        return _gif([self._chosen(each) for each in _several(question)], question, self.limits)

    def html(self, question: Question) -> bytes:
        return _page(self.name, [self._chosen(each) for each in _several(question)])

    def _chosen(self, question: Question) -> Events:
        try:
            return self.recordings[_field(question, "row", int)]
        except IndexError as error:
            raise GerdError(str(error)) from None


def _instructions(recording: Recording, file: str, *, runs_code: bool) -> dict[str, str]:
    """How to make a recording from its config in `file`, in Python; and on the command line a dataset of such."""
    trust, allowed = (", trust=True", " --trust") if runs_code else ("", "")
    index = recording.identity.index
    values = recording.identity.labels
    chosen = "" if not values else f", **{values!r}" if recording.member is None else f", member={recording.member}"
    lines = (
        f"config = gerd.load({file!r}{trust})",
        f"gerd.simulate(config, index={index}{chosen}).digest",
        f"# {recording.digest}",
    )
    command = f"gerd generate {quote(file)} {quote(Path(file).stem + '-data')} -n 100{allowed}"
    return {"recipe": "\n".join(lines), "command": command}


def _gif(recordings: Sequence[Events], question: Question, limits: Limits) -> bytes:
    outlines = _field(question, "outlines", bool)
    brightness = _field(question, "brightness", bool)
    layout = video.Layout(recordings, overlay=outlines, side_by_side=brightness)
    if layout.steps * math.prod(layout.size) > limits.pixels:
        raise GerdError(f"the video has {layout.steps} pictures, which are too many here; gerd render makes long ones")
    return b"".join(video.gif(layout.size, layout.pictures(range(layout.steps)), max(1, _field(question, "fps", int))))


def _several(question: Question) -> list[Question]:
    asked: list[Question] = _field(question, "recordings", list)
    if not 1 <= len(asked) <= MOST_SAVED:
        raise GerdError(f"the page has asked for {len(asked)} recordings; allowed: 1 to {MOST_SAVED}")
    return asked


def page_files() -> dict[str, bytes]:
    """The page's files by name: all there is to serve."""
    return {file.name: file.read_bytes() for file in files("gerd.page").joinpath("web").iterdir() if file.is_file()}


def save_page(recordings: Sequence[Events], path: str | Path) -> None:
    """Write one HTML file that shows the recordings: page, scripts and data, nothing is fetched from elsewhere."""
    if not recordings:
        raise GerdError(f"{path}: there is no recording to show")
    write_whole(Path(path), _page(Path(path).stem, recordings))


def _page(name: str, recordings: Sequence[Events]) -> bytes:
    shelf = Shelf(name, recordings)
    packed = (zlib.compress(shelf.recording({"row": i}), 9) for i in range(len(recordings)))
    saved = {**shelf.start(), "packed": [base64.b64encode(data).decode() for data in packed]}
    return _in_one_file(page_files(), saved).encode()


def _in_one_file(page: Mapping[str, bytes], saved: Mapping[str, object]) -> str:
    """The page with its style and scripts inside; a script is imported by name, from a map of data addresses."""
    scripts = {}
    for name, text in page.items():
        if name.endswith(".js"):
            script = base64.b64encode(text.replace(b'from "./', b'from "page/')).decode()
            scripts[f"page/{name}"] = f"data:text/javascript;base64,{script}"
    style = f"<style>\n{page['style.css'].decode()}</style>"
    inside = (
        f'<script type="application/json" id="saved">{_json_in_html(saved)}</script>\n'
        f'<script type="importmap">{_json_in_html({"imports": scripts})}</script>\n'
        '<script type="module">import "page/main.js";</script>'
    )
    html = page["index.html"].decode().replace('<link rel="stylesheet" href="page/style.css">', style)
    return html.replace('<script type="module" src="page/main.js"></script>', inside)


def _json_in_html(data: object) -> str:
    return json.dumps(data).replace("<", "\\u003c")

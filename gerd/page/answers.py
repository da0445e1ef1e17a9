"""What the page of `gerd view` shows: what there is to choose from, recordings as bytes, and a page in one file.

The page in `web/` asks for one recording at a time, and gets it as these bytes, little-endian:

    "GERD"                        4 bytes
    length of the head            uint32, a multiple of 4
    head                          JSON in UTF-8, blanks at its end: width, height, steps, first, step_us, timing, index,
                                  labels, digest, events, actors (each with its rings, none for the circle, null if
                                  it is absent; wraps; and the name of its shape)
    offsets (steps + 1)           uint32: step i has the events offsets[i] … offsets[i + 1] - 1
    events (events)               uint32: ((y · width + x) · 2 + p) · 2 + whether it is background noise
    times (events)                float32, in exact timing only: in steps, counted from the first
    truth (steps, actors, 3, 6)   float32: as `Recording.truth`, in pixels and radians per step; NaN of an absent actor

`server.py` answers the page over HTTP. Only `save_page` writes, and only the file that it names.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.actor import is_svg_file
from gerd.config.config import Config
from gerd.config.document import parse_yaml, read_text
from gerd.config.load import load, parse
from gerd.config.overrides import edited
from gerd.config.sweep import labels, member, member_count
from gerd.errors import ConfigError, GerdError, Problem, StorageError
from gerd.geometry.trajectory import PARAMETERS, ROTATION
from gerd.pictures.colours import BACKDROP, BOTH, OFF, ON
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate
from gerd.storage.recordings import Recordings
from gerd.storage.whole import write_whole

MOST_PIXELS = 2**28  # of all steps together, warm-up included: the page is to answer at once
MOST_POSES = 1_000_000  # actors · steps of the trajectory's own time
MOST_EVENTS = 4_000_000  # in one recording: a browser turns that many points
MOST_MEMBERS = 500  # of a sweep that the page offers
MOST_COLUMNS = 40  # of the table
MOST_ROWS = 100_000  # the first ones of a dataset that has more

COLOURS = {"backdrop": BACKDROP, "on": ON, "off": OFF, "both": BOTH}  # for the page to draw with

Question = Mapping[str, Any]  # what the page asks, as it came out of JSON


def pack(recording: Recording, **more: Any) -> bytes:
    """A recording as the bytes above; `more` is added to the head."""
    if len(recording) > MOST_EVENTS:
        raise _too_large(f"{len(recording)} events", MOST_EVENTS, "events")
    codec = recording.codec
    outlines = [outline and [ring.tolist() for ring in outline.rings] for outline in recording.shown.outlines()]
    actors = zip(outlines, recording.shown.wraps, recording.shapes, strict=True)
    head = {
        **{name: getattr(recording, name) for name in ("width", "height", "steps", "first", "step_us", "digest")},
        "timing": recording.config.timing,
        "index": recording.identity.index,
        "labels": recording.identity.labels,
        "events": len(recording),
        "actors": [{"rings": rings, "wraps": wraps, "shape": shape} for rings, wraps, shape in actors],
        **more,
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    parts = (
        codec.bounds(recording.keys, np.arange(recording.steps + 1)).astype("<u4"),
        (recording.keys % (codec.per_step // codec.ticks) * 2 + recording.background).astype("<u4"),
        (codec.times(recording.keys, recording.step_us) / recording.step_us).astype("<f4")
        if recording.config.timing == "exact"
        else b"",
        recording.truth.astype("<f4"),
    )
    return b"".join([b"GERD", len(text).to_bytes(4, "little"), text, *map(bytes, parts)])


def _too_large(what: str, most: int, unit: str) -> GerdError:
    advice = "take fewer steps, a smaller sensor, fewer actors or less noise"
    return GerdError(f"the recording has {what}; the page shows at most {most} {unit}: {advice}")


@dataclass(frozen=True)
class Editor:
    """A config to play with: the page sends its text and what to change in it, and gets the recording and the text."""

    text: str
    file: Path
    trust: bool = False

    @classmethod
    def of(cls, file: Path, overrides: Sequence[str] = (), trust: bool = False) -> Editor:
        load(file, overrides=overrides)  # so that an error names the option and not the edited text
        return cls(edited(read_text(file), overrides, str(file)), file, trust)

    def start(self) -> dict[str, Any]:
        schema = Config.model_json_schema()
        return {"kind": "config", "name": self.file.name, "text": self.text, "schema": schema, "colours": COLOURS}

    def recording(self, question: Question) -> bytes:
        """The recording `index`, `member` of the sent `text` with `overrides` applied, as bytes.

        Added to the head are the changed text, its values with all defaults filled in, and the family's labels.
        """
        text = _field(question, "text", str)
        index = _field(question, "index", int)
        text, written, config = self._changed(text, _field(question, "overrides", list))
        members = member_count(config)
        number = max(0, min(_field(question, "member", int), members - 1))
        chosen = member(config, number)
        _check_size(chosen)
        recording = simulate(chosen, index)
        return pack(
            recording,
            text=text,
            values=_as_written(config.resolved(), written),
            member=number,
            members=[labels(config, k) for k in range(min(members, MOST_MEMBERS))],
        )

    def _changed(self, text: str, overrides: list[Any]) -> tuple[str, Any, Config]:
        """The text with the overrides in it, its data and its config; an error lists what is wrong with any of them."""
        problems: list[Problem] = []
        for override in overrides:
            try:
                text = edited(text, [str(override)], self.file.name)
            except ConfigError as error:
                path = str(override).partition("=")[0]
                problems += [replace(problem, path=path) for problem in error.problems]
        try:
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

    def _check_names(self, data: Any) -> None:
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
            raise ConfigError([Problem(self.file.name, None, path, repr(name), message)])


def _field(question: Question, key: str, kind: type) -> Any:
    value = question.get(key) if isinstance(question, Mapping) else None
    if type(value) is not kind:
        raise GerdError(f"the page has asked for {key} {value!r}; allowed: a value of the type {kind.__name__}")
    return value


def _names(data: Any, path: str = "", kind: str = "") -> Iterator[tuple[str, str, str]]:
    """Where plain data names functions and pictures, swept ones too: path, kind, name."""
    if isinstance(data, str) and (kind in ("function", "mask") or (kind == "svg" and is_svg_file(data))):
        yield path, kind, data
    for key, value in data.items() if isinstance(data, dict) else ():
        yield from _names(value, f"{path}.{key}".lstrip("."), key.rpartition(".")[2])
    for i, value in enumerate(data) if isinstance(data, list) else ():
        yield from _names(value, f"{path}.{i}", kind)


def _check_size(config: Config) -> None:
    """An error for a config whose recording would keep the page waiting or fill the memory."""
    config = config.in_steps
    steps = config.steps + config.integrator.warmup
    pixels = steps * config.sensor.width * config.sensor.height
    if pixels > MOST_PIXELS:
        raise _too_large(f"{steps} steps of {config.sensor.width}×{config.sensor.height} pixels", MOST_PIXELS, "pixels")
    poses = math.ceil(steps * max(1.0, config.fastest)) * len(config.cast)
    if poses > MOST_POSES:
        what = f"{len(config.cast)} actors in {steps} steps at time scale {config.fastest:g}"
        raise _too_large(what, MOST_POSES, "steps of motion")


def _as_written(resolved: Any, written: Any) -> Any:
    """A resolved config, with what the user has written where it is written: a glyph and not its polygon."""
    if isinstance(resolved, dict) and isinstance(written, dict) and set(written) <= set(resolved):
        return {key: _as_written(value, written.get(key, value)) for key, value in resolved.items()}
    if isinstance(resolved, list) and isinstance(written, list) and len(resolved) == len(written):
        return [_as_written(*pair) for pair in zip(resolved, written, strict=True)]
    return resolved if written is None else written


@dataclass(frozen=True)
class Shelf:
    """Recordings to choose from: those of a dataset, or a list of them."""

    name: str
    recordings: Sequence[Recording]

    def start(self) -> dict[str, Any]:
        return {"kind": "recordings", "name": self.name, "columns": self._table, "colours": COLOURS}

    @cached_property
    def _table(self) -> list[dict[str, Any]]:
        if isinstance(self.recordings, Recordings):
            rows = list(itertools.islice(_rows_of_dataset(self.recordings), MOST_ROWS))
        else:
            rows = [_row_of(recording) for recording in self.recordings]
        return _columns(rows)

    def recording(self, question: Question) -> bytes:
        """The recording at `position`, as bytes; added to the head is the text of its config, with its sweep."""
        position = _field(question, "position", int)
        try:
            recording = self.recordings[position]
        except IndexError as error:
            raise GerdError(str(error)) from None
        return pack(recording, text=recording.config.family.resolved_yaml())


@dataclass(frozen=True)
class _Row:
    """What the table says of a recording; of one that cannot be read, only which it is."""

    index: int
    labels: dict[str, Any]
    events: int | None = None
    start: NDArray[np.float64] | None = None  # (actors, 3, 6): the ground truth of the first step


def _row_of(recording: Recording) -> _Row:
    return _Row(recording.identity.index, recording.identity.labels, len(recording), recording.truth[0])


def _rows_of_dataset(data: Recordings) -> Iterator[_Row]:
    """The rows of a dataset; no events are read."""
    for number in range(data.shard_count):
        try:
            shard = data.shard(number)
            for row in range(len(shard)):
                events = int(shard.lengths[row])
                yield _Row(int(shard.index[row]), shard.labels[row], events, shard.truth(row)[0])
        except StorageError:  # the page says why when the row is clicked
            for position in data.manifest.positions(number):
                index, member = divmod(position, data.manifest.members)
                yield _Row(index, labels(data.config, member))


def _columns(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """The table by columns: index, swept values, events, and what differs between the first steps; degrees."""
    paths = dict.fromkeys(path for row in rows for path in row.labels)
    table: dict[str, list[Any]] = {"index": [row.index for row in rows]}
    table |= {path: [row.labels.get(path) for row in rows] for path in paths}
    table["events"] = [row.events for row in rows]
    actors = max((len(row.start) for row in rows if row.start is not None), default=0)
    for actor, order, k in itertools.product(range(actors), range(2), range(len(PARAMETERS))):
        column = [_first_value(row, actor, order, k) for row in rows]
        if len(set(column)) > 1 and len(table) < MOST_COLUMNS:
            table[f"{actor}.{PARAMETERS[k]}" + "'" * order] = column
    return [{"name": name, "swept": name in paths, "values": values} for name, values in table.items()]


def _first_value(row: _Row, actor: int, order: int, parameter: int) -> float | None:
    if row.start is None or len(row.start) <= actor or np.isnan(row.start[actor, order, parameter]):
        return None  # the actor is absent
    factor = 180 / math.pi if parameter == ROTATION else 1.0
    return float(f"{row.start[actor, order, parameter] * factor:.5g}")


def page_files() -> dict[str, bytes]:
    """The page's files by name: all there is to serve."""
    return {file.name: file.read_bytes() for file in files("gerd.page").joinpath("web").iterdir() if file.is_file()}


def save_page(recordings: Sequence[Recording], path: str | Path) -> None:
    """Write one HTML file that shows the recordings: page, scripts and data, nothing is fetched from elsewhere."""
    if not recordings:
        raise GerdError(f"{path}: there is no recording to show")
    shelf = Shelf(Path(path).stem, recordings)
    packed = (zlib.compress(shelf.recording({"position": i}), 9) for i in range(len(recordings)))
    saved = {**shelf.start(), "packed": [base64.b64encode(data).decode() for data in packed]}
    write_whole(Path(path), _in_one_file(page_files(), saved).encode())


def _in_one_file(page: Mapping[str, bytes], saved: Mapping[str, Any]) -> str:
    """The page with its style and scripts inside; a script is imported by name, from a map of data addresses."""
    scripts = {
        f"page/{name}": "data:text/javascript;base64,"
        + base64.b64encode(text.replace(b'from "./', b'from "page/')).decode()
        for name, text in page.items()
        if name.endswith(".js")
    }
    html = page["index.html"].decode()
    parts = {
        '<link rel="stylesheet" href="page/style.css">': f"<style>\n{page['style.css'].decode()}</style>",
        '<script type="module" src="page/main.js"></script>': (
            f'<script type="application/json" id="saved">{_json_in_html(saved)}</script>\n'
            f'<script type="importmap">{_json_in_html({"imports": scripts})}</script>\n'
            '<script type="module">import "page/main.js";</script>'
        ),
    }
    for tag, inside in parts.items():
        html = html.replace(tag, inside)
    return html


def _json_in_html(data: Any) -> str:
    return json.dumps(data).replace("<", "\\u003c")

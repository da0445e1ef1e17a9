"""Recordings to files that other tools read: for each one file of events, and one of ground truth beside it.

docs/formats.md says which files there are; `truth_lines.py` and `parquet.py` say what is in them. The formats `frames`
and `voltmeter` are the grey-level video that the events were made from, which `video.py` writes. What is exported is
all of a dataset or a part of it, or recordings of a config: `chosen.py`.

A file appears when it is whole. The same call again goes on where an interrupted one has stopped: `ledger.py` knows
which files were finished, and those that have changed since are written anew. One call at a time writes into a folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.document import PlainData
from gerd.config.sweep import Which
from gerd.errors import GerdError, StorageError, shorten
from gerd.exchange import parquet, truth_lines
from gerd.exchange.chosen import Chosen, choose
from gerd.exchange.formats import FORMATS, WITH_CAUSES, check_installed, format_named, write_events
from gerd.exchange.ledger import NOTES, Ledger, read_plain
from gerd.exchange.video import VIDEOS, write_video
from gerd.recording.recording import Recording
from gerd.storage.json_files import json_bytes
from gerd.storage.manifest import SHARD_SIZE
from gerd.storage.places import Folder
from gerd.storage.whole import make_folder, tidy, write_whole

PARQUET = "parquet"
INDEX = "export.json"  # says what was exported
SHARDS = "data"  # the folder of Parquet files


@explained
def export_dataset(
    dataset: str | Path | Config,
    out: str | Path,
    format: str = "evt2",
    *,
    indices: Sequence[int] | None = None,
    member: Which | None = None,
    levels: tuple[int, int] = (0, 255),
    causes: bool = False,
    progress: Callable[[int], None] = lambda made: None,
) -> int:
    """Write recordings of a dataset, or directly of a config, into the folder `out`, and return how many.

    `indices` and `member` (a number or swept values) choose recordings. By default these are all of a dataset, or index
    0 of a config with all its members.

    `format` is one of `formats.FORMATS`, `parquet`, or a video: `frames` or `voltmeter`, for which `levels` are the
    grey values of brightness 0 (the background) and 1. `causes` also writes the fields of
    `Recording.events_with_causes`, if the format has room for them. `progress` is called with the number of recordings
    just written.
    """
    if format not in VIDEOS:
        if format not in (*FORMATS, PARQUET):
            raise GerdError(f"format {format!r}: allowed: {', '.join((*FORMATS, PARQUET, *VIDEOS))}")
        check_installed(format)
    if causes and format not in WITH_CAUSES:
        raise GerdError(f"causes: {format} has no room for them; allowed with {', '.join(WITH_CAUSES)}")
    data = choose(dataset, indices, member)
    folder = Path(out)
    with Folder(folder).claimed(alone=True):
        about, known = _begin(data, folder, format, levels, causes)
        ledger = Ledger(folder, known)
        if format == PARQUET:
            files = _export_shards(data, folder, causes, ledger, progress)
        else:
            files = []
            for row in data.rows:
                files.append(_export(data.recording(row), folder, f"{row:06d}", format, levels, causes, ledger))
                progress(1)
        write_whole(folder / INDEX, json_bytes({**about, "complete": True, "files": files, "sha256": ledger.digests}))
        ledger.close()
    return len(data)


def _begin(
    data: Chosen, folder: Path, format: str, levels: tuple[int, int], causes: bool
) -> tuple[dict[str, object], dict[str, PlainData]]:
    """Begin or continue this export; what `export.json` says about it, and the digests that it had before."""
    wanted = {
        "config_digest": data.config.digest,
        "gerd_version": data.gerd_version,
        "recordings": len(data),
        "rows": None if data.all_of_dataset else list(data.rows),
        "format": format,
        "levels": list(levels) if format in VIDEOS else None,
        "causes": causes or None,
    }
    names = Folder(folder).names()
    if names and INDEX not in names:
        raise StorageError(f"{folder}: holds files that are not an export; give an empty or a new folder")
    stored: dict[str, PlainData] = {}
    if (folder / SHARDS).is_symlink():
        raise StorageError(f"{folder / SHARDS}: is a symbolic link; allowed: a folder of the export itself")
    for name in (INDEX, NOTES):
        read_plain(folder / name)  # an error for what is no plain file, before anything is changed
    if len(names) > 1:
        stored = _read_index(folder / INDEX)
        changed = [
            f"{key} is {_shown(stored.get(key))} there and {_shown(value)} here"
            for key, value in wanted.items()
            if stored.get(key) != value
        ]
        if changed:
            raise StorageError(f"{folder}: holds a different export: {'; '.join(changed)}")
    for place in (folder, folder / SHARDS):
        tidy(place)
    about = {"what": "recordings exported by gerd", **wanted, "complete": False}
    known = stored["sha256"] if isinstance(stored.get("sha256"), dict) else {}
    write_whole(folder / INDEX, json_bytes({**about, "sha256": known}))
    return about, known


def _shown(value: object) -> str:
    return shorten(value) if isinstance(value, list) else str(value)


def _read_index(file: Path) -> dict[str, PlainData]:
    try:
        index = json.loads(read_plain(file).decode())
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{file}: cannot be read: {error}") from None
    if not isinstance(index, dict):
        raise StorageError(f"{file}: is damaged")
    return index


def _export_shards(
    data: Chosen, folder: Path, causes: bool, ledger: Ledger, progress: Callable[[int], None]
) -> list[dict[str, object]]:
    """Write the shards that are not there already; what `export.json` says about each."""
    schema = parquet.schema_of(data.config, causes)
    files = []
    make_folder(folder / SHARDS)
    for number, some in groupby(data.rows, lambda row: row // SHARD_SIZE):
        rows = list(some)
        name = f"{SHARDS}/shard-{number:06d}.parquet"
        if not ledger.has(name):
            parquet.write_rows(folder / name, schema, ((row, data.recording(row)) for row in rows))
            ledger.finish(name)
        files.append({"file": name, "first": rows[0], "recordings": len(rows)})
        progress(len(rows))
    return files


def _export(
    recording: Recording, folder: Path, name: str, format: str, levels: tuple[int, int], causes: bool, ledger: Ledger
) -> dict[str, object]:
    """Write one recording, if it is not there already; what `export.json` says about it."""
    suffix = "" if format in VIDEOS else format_named(format).suffix
    main = folder / f"{name}{suffix}"
    truth = folder / f"{name}.truth.jsonl"
    if not ledger.has(main.name):
        if format in VIDEOS:
            write_video(recording, main, levels, VIDEOS[format])
        else:
            events = recording.events_with_causes if causes else recording.events
            size = {"width": recording.width, "height": recording.height}
            write_events(main, events, **size, format=format, duration=recording.steps * recording.step_us)
        ledger.finish(main.name)
    if not ledger.has(truth.name):
        header = truth_lines.header(recording, file=main.name, steps=recording.steps, digest=recording.digest)
        write_whole(truth, "".join([header, *truth_lines.lines(recording)]).encode())
        ledger.finish(truth.name)
    return {
        "file": main.name,
        "truth": truth.name,
        "index": recording.identity.index,
        "labels": recording.identity.labels,
        "events": len(recording),
    }

"""What `gerd info` prints: a dataset or a file of events in, lines on standard output out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gerd.cli.progress import Bar
from gerd.cli.terminal import Lines
from gerd.cli.words import in_bytes, in_seconds
from gerd.config.actor import Actor
from gerd.config.samples import FunctionValues, Sampled
from gerd.config.sweep import lengths
from gerd.errors import counted
from gerd.events.keys import polarities
from gerd.exchange.reading import ReadEvents, ReadOptions, event_windows, read_events
from gerd.storage.code import code_digest
from gerd.storage.manifest import MANIFEST, REGISTRATION, UNFINISHED, shard_number
from gerd.storage.recordings import Recordings

WINDOW_STEPS = 1000  # of a file that are looked at together
MOST_SHAPES_SHOWN = 12  # of those that one actor can have


def describe(path: str | Path) -> None:
    """Print what the dataset at `path`, a folder or a URL, holds."""
    console = Lines()
    data = Recordings(path)
    manifest = data.manifest
    config = data.config
    console.say(f"dataset     {path}, {'complete' if manifest.complete else UNFINISHED}")
    console.say(
        f"made by     gerd {manifest.gerd_version}, format {manifest.format_version}, {_code(manifest.code_digest)}"
    )
    if manifest.recorded:
        console.say(f"recorded    by a camera, not simulated; {data.place.at(REGISTRATION)} says how")
    console.say(f"config      {manifest.config_digest[:16]}…, seed {config.seed}")
    indices = counted(manifest.count, "index", "indices")
    family = f" ({indices} × {manifest.members} members of the sweep)" if config.sweep else ""
    console.say(f"recordings  {len(data)}{family} in {counted(data.shard_count, 'shard')}")
    for swept, values in config.sweep.items():
        console.say(f"sweep       {swept}: {', '.join(map(str, values))}")
    sensor = config.sensor
    names = ", ".join(map(_described, config.actors))
    swept = " but for what is swept" if config.sweep else ""
    of_members = lengths(config)
    steps = " to ".join(map(str, sorted({min(of_members), max(of_members)})))
    console.say(f"frame       {sensor.width}×{sensor.height}, {steps} steps of {config.step_us} µs{swept}")
    console.say(f"actors      {names or 'none'}")
    for function, known in config.functions.items():
        console.say(f"function    {function}, {_function(known)}")
    if not manifest.complete:
        numbers = map(shard_number, data.place.names())
        there = [number for number in numbers if number is not None and number < data.shard_count]
        done = sum(len(manifest.rows(number)) for number in there)
        console.say(f"done        {done} of {len(data)} recordings, {len(there)} of {data.shard_count} shards")
    else:
        counts = np.concatenate([data.shard(number).lengths for number in range(data.shard_count)])
        size = sum(data.place.open(manifest.file(number)).size for number in range(data.shard_count))
        spread = f"per recording {counts.min()} to {counts.max()}, median {np.median(counts):g}"
        console.say(f"events      {counts.sum()}; {spread}")
        console.say(f"on disk     {in_bytes(size)}; digests of files and recordings in {data.place.at(MANIFEST)}")


def describe_events(path: Path, options: ReadOptions) -> None:
    """Print what a file of events holds, which is read once from its beginning to its end, a window at a time."""
    console = Lines()
    count = on = first = last = 0
    of_pixel: NDArray[np.int64] | None = None
    window: ReadEvents | None = None
    with Bar("windows of events", None) as bar:
        for window in event_windows(path, WINDOW_STEPS, **options):
            times = window.codec.times(window.keys, window.step_us, window.first)
            if of_pixel is None:
                of_pixel = np.zeros(window.height * window.width, np.int64)
                first = int(times[0])
            count += len(window)
            on += int(polarities(window.keys).sum())
            last = int(times[-1])
            of_pixel += np.bincount(window.codec.pixels(window.keys) >> 1, minlength=len(of_pixel))
            bar(1)
    if window is None or of_pixel is None:
        window = read_events(path, **options)
    console.say(f"file        {path}, {window.format}, {in_bytes(path.stat().st_size)}")
    console.say(f"frame       {window.width}×{window.height}")
    console.say(f"events      {count}: {on} ON, {count - on} OFF")
    if of_pixel is not None:
        span = last - first + 1
        console.say(f"time        {first} to {last} µs: {in_seconds(span / 1e6)}, {count / span * 1e6:.3g} events/s")
        y, x = divmod(int(of_pixel.argmax()), window.width)
        silent = int((of_pixel == 0).sum())
        console.say(f"pixels      {silent} of {len(of_pixel)} silent; most events, {of_pixel.max()}, at x {x}, y {y}")
    for what, lost in window.dropped.items():
        console.say(f"dropped     {lost} {what}")


def _function(values: FunctionValues) -> str:
    """What a dataset has of a Python function, and whether it is still needed."""
    known = f"t = {values.times[0]} to {values.times[-1]}"
    if isinstance(values, Sampled):
        return f"of which the config has the values from {known}: it is not needed"
    return f"of which the config has a sha256 for {known}: to make recordings again takes it, and --trust"


def _code(digest: str) -> str:
    """Which code made a dataset."""
    return f"code {digest[:12]}, {'the same as' if digest == code_digest() else 'other than'} that installed here"


def _described(actor: Actor) -> str:
    """The shapes that an entry of `actors` can have, and how many actors it stands for."""
    names = " or ".join(actor.shape_names[:MOST_SHAPES_SHOWN])
    if len(actor.shapes) > MOST_SHAPES_SHOWN:
        names += f" or {len(actor.shapes) - MOST_SHAPES_SHOWN} more"
    if isinstance(actor.repeat, int):
        return names if actor.repeat == 1 else f"{actor.repeat} × {names}"
    return f"{min(actor.repeat.options)} to {actor.most} × {names}"

"""What `gerd check` and `gerd info` print: a config or a dataset in, lines on standard output out.

Lengths are in pixels, angles in degrees, velocities per step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import degrees
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from gerd.cli.terminal import printable
from gerd.config.actor import Actor
from gerd.config.config import Config
from gerd.config.samples import FunctionValues, Sampled
from gerd.config.sweep import lengths, member, member_count, named
from gerd.errors import counted
from gerd.events import exact
from gerd.events.backends import needs_compiling, run
from gerd.events.keys import Keys
from gerd.events.rasterise import values_of_picture
from gerd.geometry.parameters import PARAMETERS, ROTATION, UNITS
from gerd.geometry.shapes import BUILT_IN
from gerd.plan.make import plan_of
from gerd.plan.plan import INTENSITY_ONE
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.storage.blocks import pack_events, pack_truths
from gerd.storage.code import code_digest
from gerd.storage.generate import TRIED_MEMBERS
from gerd.storage.manifest import MANIFEST, UNFINISHED, shard_number
from gerd.storage.recordings import Recordings

SAMPLED_STEPS = 32  # steps simulated to estimate how many events a recording has
SAMPLED_PIXELS = 2**26  # fewer steps if the frame is so large that they would have more pixels than this
QUICK_VALUES = 2**24  # pixels and crossings that the definition sees in a second or two: nothing is compiled for them
BYTES_OF_ENTRY = 150  # of a recording, in the tables of its shard
SAMPLED_MEMBERS = 8  # members of a sweep simulated for the same
ACTORS_ABREAST = 4  # columns that fit a terminal
MOST_ACTORS_SHOWN = 12
MOST_SHAPES_SHOWN = 12  # of those that one actor can have


class Lines(Console):
    """Prints a line at a time, and tables, the cells of which must be `printable`."""

    def __init__(self, *, stderr: bool = False):
        super().__init__(stderr=stderr, highlight=False, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        self.print(printable(text, lines=False))


def dry_run(config: Config, count: int) -> None:
    """Print the scene of index 0 (in a sweep of member 0), and number and size of the recordings of `count` indices."""
    console = Lines()
    members = member_count(config)
    for number in range(min(members, TRIED_MEMBERS)):  # an error here if one cannot be drawn
        draw(plan_of(member(config, number)), [0])
    base, config = config, member(config, 0)
    scenes = draw(plan_of(config), [0])
    shown = min(len(config.cast), MOST_ACTORS_SHOWN)
    for first in range(0, shown, ACTORS_ABREAST):
        console.print(_start_table(config, scenes, range(first, min(first + ACTORS_ABREAST, shown))))
    if len(config.cast) > shown:
        console.say(f"and {len(config.cast) - shown} more actors")
    tried = sorted({round(k * (members - 1) / max(1, SAMPLED_MEMBERS - 1)) for k in range(SAMPLED_MEMBERS)})
    samples = {number: _sampled(member(base, number)) for number in tried}
    recordings = count * members
    size = recordings * sum(sample.bytes for sample in samples.values()) / len(samples)
    family = f" ({counted(count, 'index', 'indices')} × {members} members of the sweep)" if base.sweep else ""
    frame = f"{scenes.width}×{scenes.height}, {scenes.steps} steps, upsampling {scenes.upsampling}"
    console.say(f"frame       {frame}{', in member 0' if base.sweep else ''}")
    console.say(f"recordings  {recordings}{family}, seed {config.seed}")
    basis = f"the first steps of index 0{f' in {len(tried)} members' if base.sweep else ''}"
    console.say(f"events      about {_events(list(samples.values()))} per recording")
    console.say(f"size        about {_bytes(size)}, both by {basis}")
    warnings = Lines(stderr=True)
    for number, sample in samples.items():
        if sample.silence:
            warnings.say(f"warning: {named(member(base, number), 0)}: makes no events{sample.silence}")


@dataclass(frozen=True)
class _Sample:
    """What the first steps of index 0 say about a whole recording."""

    events: float
    noise: float  # events of those
    bytes: float
    silence: str  # if nothing but noise was seen: in which steps, and why that may be


def _sampled(config: Config) -> _Sample:
    scenes = draw(plan_of(config), [0])
    most = max(2, SAMPLED_PIXELS // (scenes.width * scenes.height))
    steps = min(scenes.steps, SAMPLED_STEPS, most)
    keys, background = _first_steps(scenes, steps)
    if background.all() and steps < scenes.steps:  # perhaps something comes later
        steps = max(steps, min(scenes.steps, QUICK_VALUES // values_of_picture(scenes)))
        keys, background = _first_steps(scenes, steps)
    packed = len(pack_events(keys, background, 0, steps * Keys.of(scenes).per_step)[0])
    packed += len(pack_truths([scenes.truth(np.arange(steps))[0]])[0])
    longer = scenes.steps / steps
    return _Sample(
        len(keys) * longer,
        int(background.sum()) * longer,
        packed * longer + BYTES_OF_ENTRY,
        _silence(scenes, steps) if background.all() else "",
    )


def _first_steps(scenes: Scenes, steps: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Keys and background flags of the events in the first steps of a batch of one."""
    scenes = replace(scenes, steps=steps)
    instants = steps + scenes.warmup
    if scenes.exact:
        instants = int(exact.sub_steps(scenes.in_own_time(), -scenes.warmup, exact.last_unit(scenes, steps)).sum())
    backend = "torch" if instants * values_of_picture(scenes) <= QUICK_VALUES and needs_compiling(scenes) else None
    parts = [(part.keys, part.background) for part in run(scenes, backend=backend)]
    keys, background = zip(*parts, strict=True)
    return np.concatenate(keys), np.concatenate(background)


def _silence(scenes: Scenes, steps: int) -> str:
    """Where a scene without events was looked at, and what may be the reason."""
    where = "" if steps == scenes.steps else f" in its first {steps} steps"
    if not scenes.present.any():
        return f"{where}: there are no actors"
    if scenes.trajectory.in_own_time().fastest(scenes.reach, 0, steps)[scenes.present].max() == 0:
        return f"{where}: nothing moves"
    return f"{where}: what moves is outside the frame, hidden, or too faint or too small to pass the threshold"


def _events(samples: list[_Sample]) -> str:
    """How many, with the share of noise; from the fewest to the most if members differ."""
    low, high = (int(float(f"{edge(sample.events for sample in samples):.2g}")) for edge in (min, max))
    total, noise = (sum(getattr(sample, name) for sample in samples) for name in ("events", "noise"))
    share = f" ({100 * noise / total:.3g} % of them background noise)" if noise else ""
    return (f"{low}" if low == high else f"{low} to {high}") + share


def _start_table(config: Config, scenes: Scenes, actors: range) -> Table:
    """The parameters of some actors at t = 0, with their velocities."""
    title = f"{named(config, 0)}, at step 0, with the change per step"
    table = Table(title=printable(title, lines=False), title_justify="left")
    table.add_column("")
    columns = []
    start = scenes.truth(np.zeros(1))[0, 0]
    for i in actors:
        table.add_column(f"actor {i}")
        value, speed = start[i, 0].copy(), start[i, 1].copy()
        value[ROTATION], speed[ROTATION] = degrees(value[ROTATION]), degrees(speed[ROTATION])
        name = printable(_drawn_shape(config, scenes, i), lines=False)
        bright = f"{scenes.intensity[0, i] / INTENSITY_ONE:.4g}"
        numbers = [f"{value[k]:.5g}  {speed[k]:+.3g}" for k in range(len(PARAMETERS))]
        columns.append([name, *([bright, *numbers] if scenes.present[0, i] else [""] * (len(PARAMETERS) + 1))])
    names = ["shape", "intensity", *(f"{name} {UNITS[name]}".strip() for name in PARAMETERS)]
    for k, name in enumerate(names):
        table.add_row(name, *(column[k] for column in columns))
    return table


def describe(path: str | Path) -> None:
    """Print what the dataset at `path`, a folder or a URL, holds."""
    console = Lines()
    data = Recordings(path)
    manifest, config = data.manifest, data.config
    console.say(f"dataset     {path}, {'complete' if manifest.complete else UNFINISHED}")
    console.say(
        f"made by     gerd {manifest.gerd_version}, format {manifest.format_version}, {_code(manifest.code_digest)}"
    )
    console.say(f"config      {manifest.config_digest[:16]}…, seed {config.seed}")
    indices = counted(manifest.count, "index", "indices")
    family = f" ({indices} × {manifest.members} members of the sweep)" if config.sweep else ""
    console.say(f"recordings  {len(data)}{family} in {counted(data.shard_count, 'shard')}")
    for swept, values in config.sweep.items():
        console.say(f"sweep       {swept}: {', '.join(map(str, values))}")
    sensor, names = config.sensor, ", ".join(map(_described, config.actors))
    swept, of_members = " but for what is swept" if config.sweep else "", lengths(config)
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
        console.say(f"on disk     {_bytes(size)}; digests of files and recordings in {data.place.at(MANIFEST)}")


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


def _drawn_shape(config: Config, scenes: Scenes, number: int) -> str:
    """What shape an actor has in a recording."""
    outline, actor = scenes.outlines()[number], config.actors[config.cast[number][0]]
    if outline is None:
        return "absent"
    name = actor.shape_names[scenes.chosen[0, number]]
    which = f", one of {len(actor.shapes)}" if len(actor.shapes) > 1 else ""
    vertices = sum(len(ring) for ring in outline.rings)
    size = f" ({vertices} vertices, {counted(len(outline.rings), 'ring')})" if name not in BUILT_IN else ""
    return f"{name}{size}{which}"


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"

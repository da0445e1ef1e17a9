"""What `gerd check` prints: a config in, lines on standard output out.

Lengths are in pixels, angles in degrees, velocities per step, accelerations per step².
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gerd.cli.contrast import too_faint
from gerd.cli.forecast import BYTES, SECONDS, Forecast, forecast, reachable, total
from gerd.cli.terminal import Lines, printable
from gerd.cli.words import in_bytes, in_seconds
from gerd.config.actor import TRANSFORMATIONS, Actor
from gerd.config.config import Config
from gerd.config.sweep import member, member_count, named
from gerd.config.values import Choice, Expression, Factor, Function, Normal, Profile, Uniform
from gerd.errors import counted, shorten
from gerd.geometry.parameters import PARAMETERS, ROTATION, UNITS
from gerd.geometry.shapes import BUILT_IN
from gerd.plan.make import plan_of
from gerd.plan.plan import INTENSITY_ONE
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes
from gerd.storage.generate import TRIED_MEMBERS

SAMPLED_MEMBERS = 8  # members of a sweep of which recordings are simulated
DRAWN_UNITS = 2**22  # accelerations before step 0 that are drawn for all members that are tried
ACTORS_ABREAST = 4  # columns that fit a terminal
MOST_ACTORS_SHOWN = 12
PERCENTILES = (5, 95)


def dry_run(config: Config, count: int) -> None:
    """Print the scene of index 0 (in a sweep of member 0), and number and size of the recordings of `count` indices."""
    console = Lines()
    members = member_count(config)
    base = config
    config = member(config, 0)
    before = (config.integrator.warmup + 1) * config.fastest * max(1, len(config.cast))
    for number in range(min(members, TRIED_MEMBERS, max(1, int(DRAWN_UNITS / before)))):
        draw(plan_of(member(base, number)), [0])  # an error here if it cannot be drawn
    tried = sorted({round(k * (members - 1) / max(1, SAMPLED_MEMBERS - 1)) for k in range(SAMPLED_MEMBERS)})
    parts = {number: forecast(member(base, number), SECONDS / len(tried)) for number in tried}
    _show_actors(console, config, parts[0].scenes)
    recordings = count * members
    family = f" ({counted(count, 'index', 'indices')} × {members} members of the sweep)" if base.sweep else ""
    scenes = parts[0].scenes
    frame = f"{scenes.width}×{scenes.height}, {scenes.steps} steps, upsampling {scenes.upsampling}"
    console.say(f"frame       {frame}{', in member 0' if base.sweep else ''}")
    console.say(f"recordings  {recordings}{family}, seed {config.seed}")
    _show_forecast(console, list(parts.values()), recordings, members)
    warnings = Lines(stderr=True)
    for number, part in parts.items():
        sentences = list(too_faint(member(base, number), part.scenes))
        if part.silent and not sentences:
            sentences = [f"makes no events{_silence(part)}"]
        for sentence in sentences:
            warnings.say(f"warning: {named(member(base, number), 0)}: {sentence}")


def _show_forecast(console: Lines, parts: list[Forecast], recordings: int, members: int) -> None:
    """Events, bytes, seconds and memory, and what they were told from."""
    events = np.concatenate([part.events for part in parts])
    noise = sum(float(part.noise.sum()) for part in parts)
    share = f", {100 * noise / float(events.sum()):.3g} % of them background noise" if noise else ""
    low, high = np.percentile(events, PERCENTILES)
    spread = f"{_about(low)} to {_about(high)} in nine of ten" if _about(low) != _about(high) else "in all of them"
    console.say(f"events      about {_about(float(events.mean()))} per recording{share}; {spread}")
    ratios = [part.beside_ideal for part in parts if part.beside_ideal is not None]
    if ratios:
        console.say(f"camera      {np.mean(ratios):.3g} times the events of an ideal one")
    least, most = total(parts, recordings, members)
    size = float(np.mean([part.size for part in parts]))
    per_event = size / max(1.0, float(events.mean()))
    if least == most:
        console.say(f"together    {round(least)} events")
    else:
        sure = "in 99 of 100 such cases" if all(part.whole for part in parts) else "roughly"
        console.say(f"together    {_about(least, -1)} to {_about(most, 1)} events, {sure}")
    console.say(f"size        about {in_bytes(recordings * size)}, {per_event:.2g} bytes per event")
    seconds = float(np.mean([part.seconds for part in parts]))
    memory = max(part.memory for part in parts)
    instants = _about(max(part.instants for part in parts))
    console.say(
        f"time        about {in_seconds(seconds)} per recording on one core, {in_seconds(recordings * seconds)} in all"
    )
    console.say(f"memory      about {in_bytes(memory)} for one recording, of {counted(instants, 'picture')}")
    console.say(f"basis       {_basis(parts)}")


def _basis(parts: list[Forecast]) -> str:
    """What was simulated to tell all this."""
    indices = counted(min(len(part.events) for part in parts), "index", "indices")
    of_members = f" of {len(parts)} members" if len(parts) > 1 else ""
    if any(part.steps == 0 for part in parts):
        return (
            f"the motion of {indices}{of_members}; nothing was simulated, because that would take more than the "
            f"{SECONDS:g} seconds or the {in_bytes(BYTES)} of a check"
        )
    if all(part.whole for part in parts):
        return f"{indices}{of_members}, simulated completely"
    steps = min(part.steps for part in parts if not part.whole)
    return (
        f"{indices}{of_members}: the first {counted(steps, 'step')} simulated, and the rest inferred from the motion, "
        f"because a check takes up to {SECONDS:g} seconds and {in_bytes(BYTES)}"
    )


def _about(number: float, way: int = 0) -> int:
    """Two digits of a number; with a way of -1 or 1 three, rounded down or up."""
    if number <= 0:
        return 0
    scale = 10.0 ** max(0, int(np.floor(np.log10(number))) - 1 - abs(way))
    return int({-1: np.floor, 0: np.rint, 1: np.ceil}[way](number / scale) * scale)


def _silence(part: Forecast) -> str:
    """Where a scene without events was looked at, and what may be the reason."""
    scenes = part.scenes
    steps = part.steps
    where = "" if part.whole else f" in its first {steps} steps"
    if not scenes.present[0].any():
        return f"{where}: there are no actors"
    if scenes.trajectory.in_own_time().fastest(scenes.reach, 0, min(steps, 1024))[scenes.present].max() == 0:
        return f"{where}: nothing moves"
    return f"{where}: what moves is outside the frame, hidden, or too faint or too small to pass the threshold"


# Actors


def _show_actors(console: Lines, config: Config, scenes: Scenes) -> None:
    """What the first actors are at step 0 and become by the end, and how they are accelerated."""
    shown = min(len(config.cast), MOST_ACTORS_SHOWN)
    for first in range(0, shown, ACTORS_ABREAST):
        console.print(_table(config, scenes, range(first, min(first + ACTORS_ABREAST, shown))))
    if shown:
        percentiles = "5th to 95th percentile of " + counted(len(scenes), "index", "indices")
        console.say(f"at the end: at step {_last(scenes)}, {percentiles}")
    if len(config.cast) > shown:
        console.say(f"and {len(config.cast) - shown} more actors")
    for entry in sorted({config.cast[i][0] for i in range(shown)}):
        for part in TRANSFORMATIONS:
            if words := _accelerated(config.actors[entry], part):
                console.say(f"actors.{entry}.{part}: {words}")


def _table(config: Config, scenes: Scenes, actors: range) -> Table:
    """The parameters of some actors at t = 0, with their velocities, and in nine of ten recordings at the end."""
    table = Table(title=printable(f"{named(config, 0)}, at step 0, with the change per step"), title_justify="left")
    table.add_column("")
    start = scenes[:1].truth(np.zeros(1))[0, 0]
    end = scenes.truth(np.array([float(_last(scenes))]))[:, 0, :, 0]
    columns = []
    for i in actors:
        table.add_column(f"actor {i}")
        value, speed, later = start[i, 0].copy(), start[i, 1].copy(), end[:, i].copy()
        for angles in (value[..., ROTATION], speed[..., ROTATION]):
            angles[...] = np.degrees(angles)
        later[:, ROTATION] = np.degrees(later[:, ROTATION])
        there = bool(scenes.present[0, i])
        cells = [printable(_drawn_shape(config, scenes, i), lines=False)]
        cells.append(f"{scenes.intensity[0, i] / INTENSITY_ONE:.4g}" if there else "")
        for k in range(len(PARAMETERS)):
            cells.append(f"{value[k]:.5g}  {speed[k]:+.3g}" if there else "")
            cells.append(_range(later[scenes.present[:, i], k]))
        columns.append(cells)
    names = ["shape", "intensity"]
    for name in PARAMETERS:
        names += [f"{name} {UNITS[name]}".strip(), "  at the end"]
    for k, name in enumerate(names):
        table.add_row(name, *(column[k] for column in columns))
    return table


def _last(scenes: Scenes) -> int:
    """The last step, or the last that the motion can be followed to in a check."""
    return max(0, min(scenes.steps - 1, ceil(reachable(scenes)) - 1))


def _range(values: NDArray[np.float64]) -> str:
    if not len(values):
        return ""
    low, high = (f"{edge:.3g}" for edge in np.percentile(values, PERCENTILES))
    return low if low == high else f"{low} to {high}"


def _accelerated(actor: Actor, part: str) -> str:
    """How a transformation is accelerated, in words; nothing if it is not."""
    transformation = getattr(actor, part)
    unit = {"translation": " px/step²", "scale": " px/step²", "rotation": " °/step²", "shear": "/step²"}[part]
    if isinstance(getattr(transformation, "velocity", None), Factor):
        unit = " of the logarithm per step²"
    written = transformation.acceleration
    axes = written if isinstance(written, tuple) else (written,)
    words = [_words(value, unit) for value in axes]
    if not any(words):
        return ""
    return (
        words[0]
        if len(words) == 1
        else "; ".join(f"{axis}: {each or 'none'}" for axis, each in zip("xy", words, strict=True))
    )


def _words(value: object, unit: str) -> str:
    match value:
        case Normal(normal=(mean, deviation)):
            about = f", mean {mean:g}{unit}" if mean else ""
            return f"random acceleration, SD {deviation:g}{unit}{about}"
        case Uniform(uniform=(low, high)):
            return f"random acceleration, from {low:g} to {high:g}{unit}"
        case Choice(choice=options):
            return f"random acceleration, one of {len(options)} values, up to {max(map(abs, options)):g}{unit}"
        case Profile():
            return f"{value.profile}, amplitude {value.amplitude:g}{unit}"
        case Expression():
            return f"acceleration {shorten(value.expression)}"
        case Function():
            return f"acceleration by the function {shorten(value.function)}"
    return f"acceleration {value:g}{unit}" if value else ""


def _drawn_shape(config: Config, scenes: Scenes, number: int) -> str:
    """What shape an actor has in index 0."""
    outline = scenes.outlines()[number]
    actor = config.actors[config.cast[number][0]]
    if outline is None:
        return "absent"
    name = actor.shape_names[scenes.chosen[0, number]]
    which = f", one of {len(actor.shapes)}" if len(actor.shapes) > 1 else ""
    vertices = sum(len(ring) for ring in outline.rings)
    size = f" ({vertices} vertices, {counted(len(outline.rings), 'ring')})" if name not in BUILT_IN else ""
    return f"{name}{size}{which}"

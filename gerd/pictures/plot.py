"""Recordings and other events on matplotlib axes, drawn in sensor pixels (x right, y down) and steps.

    fig, (left, right) = plt.subplots(1, 2)
    gerd.plot.events(recording, 12, left)
    gerd.plot.overlay(recording, 12, left)      # outlines, centre paths and boxes of the ground truth
    gerd.plot.rate(recording, right)
    gerd.plot.family("speeds.yaml", 12)         # the members of a sweep, each on its own Axes

Each function draws one thing on an Axes (without `ax`, on a new one) and returns that; `family` returns several.
Steps are counted from the first one of the recording. ON is blue and OFF vermilion everywhere, which colour-blind
readers can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gerd.config.load import AnyConfig
from gerd.config.sweep import in_words, member_count
from gerd.errors import GerdError, check_whole
from gerd.events.keys import in_both_polarities
from gerd.geometry.parameters import PARAMETERS, UNITS
from gerd.pictures.colours import ACTORS, BACKDROP, BOTH, BOX, EVENTS, OFF, ON, OUTLINE, PATH, shade
from gerd.plan.plan import INTENSITY_ONE
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_family
from gerd.scene.scenes import Scenes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage
    from mpl_toolkits.mplot3d import Axes3D

    from gerd.events.definition.stages import Stages

Panels = NDArray[Any]  # of Axes, which the types of numpy cannot say

WIDE = 1.6  # width by height of a picture of several frames
DETAIL = 480  # cells along the longer side of a drawn frame
LEGEND = 26  # points between axes and title, in which a legend fits
USUAL_CLOUD = 5.0  # inches of the width of a point cloud; points of narrower ones are smaller
MOST_POINTS = 60_000  # of a point cloud

ENTRIES = ("T00", "T01", "T02", "T10", "T11", "T12")  # of T, whose last row is 0 0 1
STAGES = {
    "picture": "upsampled picture",
    "coverage": "coverage",
    "seen": "shape noise",
    "difference": "difference",
    "integrator": "integrator",
    "fired": "fired",
    "kept": "event noise",
    "events": "background noise",
}


def polarity_codes(recording: Events, step: int, block: int = 1, window: int = 1) -> NDArray[np.uint8]:
    """(height, width): 0 nothing, 1 OFF, 2 ON, 3 both, in `window` steps; or the same of `block`×`block` pixels."""
    low, high = recording.codec.bounds(recording.keys, [step, step + window])
    _, y, x, p = recording.codec.decoded(recording.keys[low:high])
    result = np.zeros((-(-recording.height // block), -(-recording.width // block)), np.uint8)
    np.bitwise_or.at(result, (y // block, x // block), (1 << p).astype(np.uint8))
    return result


def events(
    recording: Events,
    step: int = 0,
    ax: Axes | None = None,
    *,
    window: int = 1,
    legend: bool = True,
    detail: int = DETAIL,
) -> Axes:
    """The events of a step, or of `window` steps from it on; more than `detail` pixels a side are drawn in blocks."""
    ax = _frame(recording, _axes(ax))
    step = _checked(recording, step)
    check_whole("window", window, 1, recording.steps - step)
    block = -(-max(recording.width, recording.height) // detail)
    _show(ax, np.array(EVENTS, np.uint8)[polarity_codes(recording, step, block, window)], block)
    first = recording.first + step
    ax.set_title(f"step {first}" if window == 1 else f"steps {first} to {first + window - 1}")
    if legend:
        _legend_above(ax, polarity_handles(recording))
    return ax


def family(
    members: AnyConfig | Sequence[Events],
    step: int | Sequence[int] = 0,
    axes: Panels | None = None,
    *,
    index: int = 0,
    legend: bool = True,
) -> Panels:
    """The events of one step of each member of a sweep, side by side, an Axes each; returns the array of Axes.

    `members` are recordings, or the config (or its path) of which those of `index` are simulated. `step` is one for
    all or a list with one for each.
    """
    if isinstance(members, Sequence) and not isinstance(members, str):
        recordings: Sequence[Events] = members
    else:
        recordings = simulate_family(members, index)
    steps = [step] * len(recordings) if isinstance(step, int) else list(step)
    if axes is None:
        from matplotlib import pyplot

        down, across = grid(recordings, recordings[0].height / recordings[0].width)
        axes = pyplot.subplots(down, across, squeeze=False, layout="constrained")[1]
    for ax, recording, shown in zip(np.ravel(axes), recordings, steps, strict=False):
        events(recording, shown, ax, legend=False)
        ax.set_title(literal(caption(recording, separator=",\n")) + f", {ax.get_title()}")
    for ax in np.ravel(axes)[len(recordings) :]:
        ax.set_axis_off()
    if legend:
        _legend_above(np.ravel(axes)[0], polarity_handles(*recordings))
    return axes


def grid(recordings: Sequence[Events], aspect: float, abreast: int = 1) -> tuple[int, int]:
    """Rows and columns for a panel (of this height by width) of each recording.

    Of a sweep of several paths the last one runs along the rows; else up to `abreast` panels stand in one row, and more
    of them fill a landscape picture.
    """
    count = len(recordings)
    first = recordings[0]
    if isinstance(first, Recording):
        family = first.config.family
        last = [len(values) for values in family.sweep.values() if len(values) > 1][-1:]
        if len(family.sweep) > 1 and last and count == member_count(family) and last[0] < count:
            return count // last[0], last[0]
    if count <= abreast:
        return 1, count
    across = min(count, max(1, math.ceil(math.sqrt(count * WIDE * aspect))))
    return -(-count // across), across


def caption(recording: Events, *, separator: str = ", ") -> str:
    """What tells a member from the others: the values of the fields that were set for it; of mere events their name."""
    if not isinstance(recording, Recording):
        return recording.name
    return in_words(recording.identity.labels, separator) or f"index {recording.identity.index}"


def name_of(recordings: Sequence[Events]) -> str:
    """What a picture of one or several recordings is called."""
    first = recordings[0]
    if len(recordings) == 1:
        return first.name
    if not isinstance(first, Recording):
        return f"{len(recordings)} recordings"
    which = f"index {first.identity.index}, {len(recordings)} members"
    return f"{first.config.name}, {which}" if first.config.name else which


def literal(text: str) -> str:
    """A text for matplotlib that stands there as it is: what is between two $ would be taken for a formula."""
    return text.replace("$", r"\$")


def with_truth(recording: Events, what: str) -> Recording:
    """The recording, if it has the ground truth that `what` shows; else a clear error."""
    if not isinstance(recording, Recording):
        raise GerdError(f"{what}: needs ground truth, which {recording!r} does not have; allowed: simulated recordings")
    return recording


def brightness(recording: Events, step: int = 0, ax: Axes | None = None) -> Axes:
    """What the sensor sees at one step, before any noise: the grey levels behind the events."""
    recording = with_truth(recording, "brightness")
    ax = _frame(recording, _axes(ax))
    step = _checked(recording, step)
    low, high = brightness_range(recording.intensities)
    _show(ax, recording.images(step, step + 1)[0], cmap="gray", vmin=low, vmax=high)
    ax.set_title(f"step {recording.first + step}")
    return ax


def brightness_range(intensities: Iterable[float]) -> tuple[float, float]:
    """Which brightness is drawn black and which white; the background has 0."""
    return float(min([0, *intensities])), float(max([1, *intensities]))


def overlay(recording: Events, step: int = 0, ax: Axes | None = None) -> Axes:
    """The ground truth at one step: outlines, the paths of the centres up to here, and boxes."""
    from matplotlib.patches import Rectangle

    recording = with_truth(recording, "overlay")
    ax = _frame(recording, _axes(ax))
    step = _checked(recording, step)
    for rings in recording.outlines(step):
        for ring in rings:
            ax.plot(*np.vstack([ring, ring[:1]]).T, color=shade(OUTLINE), linewidth=0.8)
    for path in paths(recording, 0, step + 1):
        ax.plot(*path.T, color=shade(PATH), linewidth=1.2)
    ax.plot(*recording.positions[step].T, "o", color=shade(PATH), markersize=3)
    for left, top, right, bottom in recording.window(step, step + 1).boxes()[0]:
        place = Rectangle((left, top), right - left, bottom - top)
        place.set(fill=False, edgecolor=shade(BOX), linestyle="--", linewidth=0.8)
        ax.add_patch(place)
    return ax


def paths(recording: Recording, start: int, stop: int) -> list[NDArray[np.float64]]:
    """The centres of the actors from step `start` up to `stop`, as lines (points, 2), cut where one wraps around."""
    lines = []
    for path in np.moveaxis(recording.positions[start:stop], 0, 1):
        jumps = np.abs(np.diff(path, axis=0)) > np.array([recording.width, recording.height]) / 2
        lines += np.split(path, np.flatnonzero(jumps.any(axis=1)) + 1)
    return lines


def cloud(
    recording: Events, ax: Axes3D | None = None, *, zoom: float = 1.0, most: int = MOST_POINTS, legend: bool = True
) -> Axes3D:
    """The events as points in (time, x, y), on an Axes with `projection="3d"`: y down, time from left to right.

    `zoom` is how much of the Axes the cloud fills. Of more events than `most` every n-th is drawn.
    """
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure().add_subplot(projection="3d")
    every = -(-len(recording) // most) or 1
    keys = recording.keys[::every]
    _, y, x, p = recording.codec.decoded(keys)
    wide = ax.get_position().width * ax.figure.get_figwidth() / USUAL_CLOUD
    area = float(np.clip(30_000 / max(1, len(keys)), 0.6, 14)) * min(1.0, wide) ** 2
    colours = np.array([shade(OFF), shade(ON)])[p]
    time = recording.codec.times(keys, recording.step_us, recording.first) / recording.step_us
    ax.scatter(time, x + 0.5, y + 0.5, c=colours, s=area, marker="s", linewidths=0, depthshade=False, rasterized=True)
    first, last = recording.first, recording.first + recording.steps - 1
    ax.set(xlim=(first - 0.5, last + 0.5), ylim=(0, recording.width), zlim=(recording.height, 0))
    ax.set(xlabel=_steps_label(recording), ylabel="x (px)", zlabel="y (px)")
    longest = max(recording.width, recording.height)
    ax.set_box_aspect((1.4, max(0.3, recording.width / longest), max(0.3, recording.height / longest)), zoom=zoom)
    ax.view_init(elev=18, azim=-56)
    for axis, most in ((ax.xaxis, 6), (ax.yaxis, 4), (ax.zaxis, 4)):
        _whole_numbers(axis, most)
    if legend:
        title = f"1 of {every} events shown" if every > 1 else None
        ax.legend(handles=polarity_handles(), loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, title=title)
    return ax


def rate(recording: Events, ax: Axes | None = None) -> Axes:
    """The number of events at each step, by polarity, and how many of both are background noise."""
    ax = _axes(ax)
    step, _, _, p = recording.codec.decoded(recording.keys)
    edges = recording.first + np.arange(recording.steps + 1) - 0.5
    for polarity, name, colour in ((1, "ON", ON), (0, "OFF", OFF)):
        counts = np.bincount(step[p == polarity], minlength=recording.steps)
        ax.stairs(counts, edges, baseline=None, color=shade(colour), label=name, linewidth=1.4)
    if recording.background.any():
        counts = np.bincount(step[recording.background], minlength=recording.steps)
        ax.stairs(counts, edges, baseline=None, color="0.45", linestyle=":", label="of them background noise")
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.08 * max(1.0, ax.dataLim.y1)))
    ax.set(xlabel=_steps_label(recording), ylabel="events per step")
    _legend_above(ax, ax.get_legend_handles_labels()[0])
    _whole_numbers(ax.xaxis)
    return ax


def curve(recording: Events, name: str, ax: Axes | None = None, *, derivative: int = 0) -> Axes:
    """One quantity of each actor over time: an entry of T such as "T02", or a parameter such as "rotation".

    `derivative` 0, 1, 2 is the quantity itself, its velocity per step and its acceleration per step². Lengths are in
    pixels; angles are drawn in degrees.
    """
    if derivative not in (0, 1, 2) or name not in (*ENTRIES, *PARAMETERS):
        allowed = f"allowed: {', '.join((*ENTRIES, *PARAMETERS))}, and as derivative 0, 1 and 2"
        raise GerdError(f"curve {name!r}, derivative {derivative}: {allowed}")
    ax = _axes(ax)
    recording = with_truth(recording, "curve")
    if name in ENTRIES:
        matrices = (recording.T, recording.T_velocity, recording.T_acceleration)[derivative]
        values = matrices[:, :, int(name[1]), int(name[2])]
    else:
        values = recording.truth[:, :, derivative, PARAMETERS.index(name)]
        values = np.degrees(values) if name == "rotation" else values
    side = {"x": recording.width, "T02": recording.width, "y": recording.height, "T12": recording.height}.get(name)
    for actor, (shape, line) in enumerate(zip(recording.shapes, values.T, strict=True)):
        if shape is None:
            continue
        if side and derivative == 0:  # what wraps around is not a line across the frame
            line = np.where(np.abs(np.diff(line, prepend=line[:1])) > side / 2, np.nan, line)
        colour = ACTORS[actor % len(ACTORS)]
        dashes = ("-", "--", ":")[actor // len(ACTORS) % 3]
        steps = recording.first + np.arange(recording.steps)
        label = f"actor {actor}: {literal(shape)}"
        marker = "." if recording.steps == 1 else ""
        ax.plot(steps, line, label=label, marker=marker, linewidth=1.2, color=colour, linestyle=dashes)
    values = values[:, recording.present]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if high - low < 1e-9 * max(1.0, abs(low)):  # a constant, but for rounding
        room = max(1.0, 0.1 * abs(low))
        ax.set_ylim(low - room, high + room)
    ax.ticklabel_format(axis="y", useOffset=False)
    unit = UNITS.get(name, "px") + ("", "/step", "/step²")[derivative]
    primes = "'" * derivative
    symbol = f"${name[0]}{primes}_{{{name[1:]}}}$" if name in ENTRIES else name + "′" * derivative
    ax.set(xlabel=_steps_label(recording), ylabel=f"{symbol} ({unit})" if unit else symbol)
    _whole_numbers(ax.xaxis)
    return ax


def stage(stages: Stages, name: str, position: int = 0, ax: Axes | None = None) -> Axes:
    """One stage of one step of `recording.stages()`: counts as shares of a full pixel, events in their colours."""
    if name not in STAGES:
        raise GerdError(f"stage {name!r}: allowed: {', '.join(STAGES)}")
    ax = _frame(stages.scene, _axes(ax))
    scene = stages.scene
    values = getattr(stages, name)[position]
    high = max(1.0, float(np.abs(scene.intensity).max(initial=0)) / INTENSITY_ONE)
    if values.dtype == bool:
        _show(ax, np.array(EVENTS, np.uint8)[values[0] + 2 * values[1]])
    elif name in ("difference", "integrator"):
        from matplotlib.colors import LinearSegmentedColormap

        diverging = LinearSegmentedColormap.from_list("gerd", [shade(OFF), shade(BACKDROP), shade(ON)])
        _show(ax, values / stages.full, cmap=diverging, vmin=-high, vmax=high)
    else:
        low, high = brightness_range(scene.intensity[0] / INTENSITY_ONE)
        unit, cell = (INTENSITY_ONE, 1 / scene.upsampling) if name == "picture" else (stages.full, 1.0)
        _show(ax, values / unit, cell, cmap="gray", vmin=low, vmax=high)
    ax.set_title(f"{STAGES[name]}, step {stages.steps[position]}")
    return ax


def polarity_handles(*recordings: Events) -> list[Artist]:
    """What a legend shows for ON and OFF; and for both in one pixel and step, if noise has made that."""
    from matplotlib.lines import Line2D

    named = [("ON (brighter)", ON), ("OFF (darker)", OFF)]
    if any(in_both_polarities(recording.codec, recording.keys) for recording in recordings):
        named.append(("both", BOTH))
    return [Line2D([], [], linestyle="", marker="s", color=shade(colour), label=name) for name, colour in named]


def truth_handles() -> list[Artist]:
    """What a legend shows for an overlay."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=shade(OUTLINE), linestyle="-", label="outline"),
        Line2D([], [], color=shade(PATH), linestyle="-", label="centre's path"),
        Line2D([], [], color=shade(BOX), linestyle="--", label="box"),
    ]


def _legend_above(ax: Axes, handles: Sequence[Artist]) -> None:
    """A legend between the axes and their title, where it hides nothing."""
    ax.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        borderaxespad=0.2,
        frameon=False,
        ncols=3,
        columnspacing=1.2,
        handletextpad=0.4,
    )
    ax.set_title(ax.get_title(), pad=LEGEND)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def _checked(recording: Events, step: int) -> int:
    """`step` from 0 on; as in a list, -1 is the last."""
    if not -recording.steps <= step < recording.steps:
        raise GerdError(f"step {step}: the recording has {recording.steps}, numbered from 0")
    return step % recording.steps


def _frame(recording: Events | Scenes, ax: Axes) -> Axes:
    """Axes that show the sensor: x to the right, y down, square pixels except for a mere line."""
    aspect = "equal" if 1 / 8 <= recording.height / recording.width <= 8 else "auto"
    ax.set(xlim=(0, recording.width), ylim=(recording.height, 0), aspect=aspect, xlabel="x (px)", ylabel="y (px)")
    _whole_numbers(ax.xaxis)
    _whole_numbers(ax.yaxis)
    return ax


def _show(
    ax: Axes,
    cells: NDArray[np.generic],
    cell: float = 1.0,
    *,
    cmap: str | Colormap | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
) -> AxesImage:
    """Draw an array with cells of this side in pixels, crisp."""
    extent = (0, cells.shape[1] * cell, cells.shape[0] * cell, 0)
    return ax.imshow(
        cells, extent=extent, interpolation="nearest", aspect=ax.get_aspect(), cmap=cmap, vmin=vmin, vmax=vmax
    )


def _steps_label(recording: Events) -> str:
    return f"step ({recording.step_us / 1000:g} ms each)"


def _whole_numbers(axis: Axis, most: int = 6) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins=most, min_n_ticks=1, steps=[1, 2, 5, 10]))

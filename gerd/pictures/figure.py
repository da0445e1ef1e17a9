"""Whole figures of a recording, made of the axes in `plot.py`: one function for each kind of still that there is.

A recording (or for `family` several) in, a matplotlib Figure out, which has its name above; `save` writes it as PNG,
SVG or PDF. Nothing here touches pyplot, so that no window opens and no figure of the caller is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gerd.config.sweep import in_words
from gerd.errors import GerdError, check_whole
from gerd.geometry.parameters import ORDERS, PARAMETER_COUNT, PARAMETERS
from gerd.pictures import plot
from gerd.recording.events import Events
from gerd.recording.recording import Recording

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

    from gerd.pictures.plot import Panels

WIDTH = 7.5  # inches of a figure
MOST_PANELS = 100
LEGEND_ENTRY = 1.2  # inches of a figure's width for each entry of its legend
AT_LEFT = 0.6  # inches, for heads and numbers at the left of panels
MOST_ABREAST = 5  # members of which one step is shown, in one row
MOST_ROWS = 8  # members of a family that have a row each
ROW_HEAD, COLUMN_HEAD = 34, 16  # points between panels and the words at the left of a row, or above a column
STYLE: dict[Any, Any] = {  # the types of matplotlib list the keys, other ones in each version
    "axes.titlesize": 8,
    "figure.dpi": 100,
    "font.size": 8,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.hashsalt": "gerd",  # the same file each time
}


def frame(recording: Events, *, step: int = 0, overlay: bool = False, side_by_side: bool = False) -> Figure:
    """One step: its events, with the ground truth's outlines, paths and boxes, beside the brightness behind them."""
    panels = 2 if side_by_side else 1
    figure = _new([recording], 4.5 * panels, 4.5 * _aspect(recording) + 0.7)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for ax, draw, what in zip(axes[::-1], (plot.events, plot.brightness), ("events", "brightness"), strict=False):
        draw(recording, step, ax)
        ax.set_title(f"{what}, {ax.get_title()}")
        if overlay:
            plot.overlay(recording, step, ax)
    axes[-1].get_legend().remove()
    _legend(figure, [recording.window(step, step % recording.steps + 1)], overlay)
    return figure


def sheet(recording: Events, *, count: int = 12, window: float = 1, overlay: bool = False) -> Figure:
    """A contact sheet: the events of `count` steps, evenly spaced over the recording, or of as many windows of steps.

    `window` is the number of steps of which a panel shows the events together; below 1, their share of all steps.
    """
    spans = _spread(recording, count, window)
    aspect = _aspect(recording)
    columns = int(np.clip(round(np.sqrt(len(spans) * 1.4 * aspect)), 1, len(spans)))
    rows = -(-len(spans) // columns)
    width = min(WIDTH, 4.5 * columns)
    figure = _new([recording], width, rows * (width / columns * aspect + 0.2) + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False)
    _draw_steps(recording, spans, axes.ravel(), overlay)
    _outer_labels(axes)
    _legend(figure, [_part(recording, span) for span in spans], overlay)
    return figure


def family(
    recordings: Sequence[Events], *, count: int | None = None, window: float = 1, overlay: bool = False
) -> Figure:
    """The members of a family: a row of `count` steps of each, evenly spaced; of many members one step each.

    `window` is that of `sheet`: a slow member has few events in a step, and more in several.
    """
    count = count or (6 if len(recordings) <= MOST_ROWS else 1)
    if len(recordings) * count > MOST_PANELS:
        raise GerdError(f"count {count}: allowed with {len(recordings)} members: 1 to {MOST_PANELS // len(recordings)}")
    if count == 1:
        return _one_step_each(recordings, window, overlay)
    aspect = max(map(_aspect, recordings))
    figure = _new(recordings, WIDTH, len(recordings) * (WIDTH / count * aspect + 0.25) + 0.9)
    axes = figure.subplots(len(recordings), count, squeeze=False)
    spans = [_spread(recording, count, window) for recording in recordings]
    for row, recording, chosen in zip(axes, recordings, spans, strict=True):
        _draw_steps(recording, chosen, row, overlay)
        _row_head(row[0], plot.caption(recording, separator="\n"))
    if all(chosen == spans[0] for chosen in spans):
        for ax, head in zip(axes[0], [ax.get_title() for ax in axes[0]], strict=True):
            _column_head(ax, head)
        for ax in axes.flat:
            ax.set_title("")
    else:
        for ax, share in zip(axes[0], np.linspace(0, 100, count), strict=True):
            _column_head(ax, f"{share:.0f} % of the way")
    _outer_labels(axes, rows_have_heads=True)
    _legend(figure, recordings, overlay)
    return figure


def _one_step_each(recordings: Sequence[Events], window: float, overlay: bool) -> Figure:
    """The step in the middle of each recording, or a window of steps around it, in a grid.

    A grid of two swept fields has the values of one at its left, and those of the other above it.
    """
    aspect = max(map(_aspect, recordings))
    down, across = plot.grid(recordings, aspect, abreast=MOST_ABREAST)
    width = min(2 * WIDTH, (2.0 if down == 1 else 2.5) * across)
    figure = _new(recordings, width, down * ((width - AT_LEFT) / across * aspect + 0.3) + 0.7)
    axes = figure.subplots(down, across, squeeze=False)
    for ax, recording in zip(axes.flat, recordings, strict=False):
        size = _window(recording, window)
        _draw_steps(
            recording, [range(start := (recording.steps - size + 1) // 2, start + size)], np.array([ax]), overlay
        )
    for ax in axes.flat[len(recordings) :]:
        ax.set_axis_off()
    titles = {ax.get_title() for ax in axes.flat[: len(recordings)]}
    if len(titles) == 1:  # said once
        figure.suptitle(f"{figure.get_suptitle()}, {titles.pop()}", fontsize=8, wrap=True)
        for ax in axes.flat:
            ax.set_title("")
    _name_panels(recordings, axes)
    _outer_labels(axes, rows_have_heads=True)
    _legend(figure, recordings, overlay)
    return figure


def _name_panels(recordings: Sequence[Events], axes: Panels) -> None:
    """What tells members apart: at rows and columns, if these are swept fields, else above each panel."""
    labels = [recording.identity.labels if isinstance(recording, Recording) else {} for recording in recordings]
    varied = [path for path in labels[0] if len({repr(each.get(path)) for each in labels}) > 1]
    rows, columns = varied[:-1], varied[-1:]
    grid = np.array(range(len(recordings))) if len(recordings) < axes.size else np.arange(axes.size).reshape(axes.shape)
    is_table = (
        bool(rows)
        and grid.ndim == 2
        and all(
            len({repr([labels[k][path] for path in paths]) for k in line}) == 1
            for paths, lines in ((rows, grid), (columns, grid.T))
            for line in lines
        )
    )
    if not is_table:
        for ax, recording in zip(axes.flat, recordings, strict=False):
            name = plot.literal(plot.caption(recording, separator=",\n"))
            ax.set_title(",\n".join(filter(None, (name, ax.get_title()))))
        return
    for ax, number in zip(axes[:, 0], grid[:, 0], strict=True):
        _row_head(ax, in_words({path: labels[number][path] for path in rows}, "\n"))
    for ax, number in zip(axes[0], grid[0], strict=True):
        _column_head(ax, in_words({path: labels[number][path] for path in columns}))


def _row_head(ax: Axes, text: str) -> None:
    """Words at the left of a row of panels, outside their numbers."""
    ax.annotate(
        plot.literal(text),
        (0, 0.5),
        (-ROW_HEAD, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="center",
        multialignment="center",
        weight="bold",
    )


def _column_head(ax: Axes, text: str) -> None:
    """Words above a column of panels, and above the title of the first."""
    above = COLUMN_HEAD if ax.get_title() else COLUMN_HEAD / 3
    ax.annotate(
        plot.literal(text),
        (0.5, 1),
        (0, above),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        va="bottom",
        weight="bold",
    )


def cloud(recording: Events) -> Figure:
    """The (x, y, t) point cloud."""
    figure = _new([recording], 6.0, 4.5, layout=None)
    plot.cloud(recording, figure.add_axes((0.0, 0.09, 0.96, 0.86), projection="3d"), zoom=1.05)
    return figure


def clouds(recordings: Sequence[Events]) -> Figure:
    """The point cloud of each member of a family, in a grid; what all axes have in common is written at one of them."""
    down, across = plot.grid(recordings, 0.75)
    width = min(2 * WIDTH, 3.0 * across)
    figure = _new(recordings, width, down * width / across * 0.75 + 0.7)
    axes = figure.subplots(down, across, squeeze=False, subplot_kw={"projection": "3d"})
    for ax, recording in zip(axes.flat, recordings, strict=False):
        plot.cloud(recording, ax, most=plot.MOST_POINTS // len(recordings), zoom=1.1, legend=False)
        if ax is not axes[-1, 0]:
            ax.set(yticklabels=[], zticklabels=[], xlabel="", ylabel="", zlabel="")
            if len({(each.first, each.steps) for each in recordings}) == 1:
                ax.set_xticklabels([])
    for ax in axes.flat[len(recordings) :]:
        ax.set_axis_off()
    _name_panels(recordings, axes)
    _legend(figure, recordings[:0], overlay=False)
    return figure


def rate(recording: Events) -> Figure:
    """Events per step over time."""
    figure = _new([recording], WIDTH, 2.6)
    plot.rate(recording, figure.subplots())
    return figure


def curves(recording: Events) -> Figure:
    """T(t), T'(t) and T''(t), entry by entry; the last row of T is constant."""
    return _curves(recording, plot.ENTRIES)


def parameters(recording: Events) -> Figure:
    """x, y, scale, rotation and shear, with their velocities and accelerations."""
    return _curves(recording, PARAMETERS)


def _curves(recording: Events, names: Iterable[str]) -> Figure:
    figure = _new([recording], 13.0, 5.4)  # inches
    axes = figure.subplots(ORDERS, PARAMETER_COUNT, sharex=True)
    for derivative in range(ORDERS):
        for ax, name in zip(axes[derivative], names, strict=True):
            plot.curve(recording, name, ax, derivative=derivative)
            ax.set_xlabel(ax.get_xlabel() if derivative == ORDERS - 1 else "")
    handles, actors = axes[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, actors, loc="outside lower center", ncols=min(10, len(handles)))
    return figure


def stages(recording: Events, *, count: int = 3, names: Iterable[str] = tuple(plot.STAGES)) -> Figure:
    """What happens at the first `count` steps, a row each: from the upsampled picture to the events."""
    names = list(names)
    recording = recording.window(0, len(_spread(recording, count)))
    worked_out = plot.with_truth(recording, "stages").stages()
    rows = len(worked_out.steps)
    side = 1.5
    figure = _new([recording], side * len(names), rows * (0.93 * side * _aspect(recording) + 0.05) + 1.2)
    grid = figure.add_gridspec(rows + 1, len(names), height_ratios=[1.0] * rows + [0.06])
    axes = np.array([[figure.add_subplot(grid[i, k]) for k in range(len(names))] for i in range(rows)])
    for k, name in enumerate(names):
        for i, step in enumerate(worked_out.steps):
            ax = plot.stage(worked_out, name, i, axes[i, k])
            ax.set(title=f"({k + 1}) {plot.STAGES[name]}" if i == 0 else "", ylabel=f"step {step}")
    _outer_labels(axes)
    axes[-1, 0].tick_params(labelleft=False)
    _bars(figure, grid, axes, names, plot.polarity_handles(recording))
    return figure


def _bars(figure: Figure, grid: GridSpec, axes: Panels, names: list[str], handles: list[Artist]) -> None:
    """Under the columns of the stages, what their colours mean."""
    grey = [k for k, name in enumerate(names) if name in ("picture", "coverage", "seen")]
    signed = [k for k, name in enumerate(names) if name in ("difference", "integrator")]
    for columns, label in ((grey, "brightness"), (signed, "share of a full pixel")):
        if columns:
            place = figure.add_subplot(grid[-1, columns[0] : columns[-1] + 1])
            image = axes[0, columns[0]].images[0]
            ticks = sorted({0.0, *image.get_clim()})
            figure.colorbar(image, cax=place, orientation="horizontal", label=label, ticks=ticks)
    if len(grey) + len(signed) < len(names):
        place = figure.add_subplot(grid[-1, len(grey) + len(signed) :])
        place.set_axis_off()
        place.legend(handles=handles, loc="center", ncols=3)


_DRAWN = (frame, sheet, cloud, rate, curves, parameters, stages)
KINDS: dict[str, Callable[..., Figure]] = {draw.__name__: draw for draw in _DRAWN}
OF_FAMILIES: dict[str, Callable[..., Figure]] = {"sheet": family, "cloud": clouds}


def save(figure: Figure, path: Path, format: str) -> None:
    """Write a figure, the same bytes each time."""
    dates = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(path, format=format, metadata=dates[format])


def _new(
    recordings: Sequence[Events], width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """A figure with the name of what it shows above, which needs some height of its own."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height + 0.2), layout=layout)
    figure.suptitle(plot.literal(plot.name_of(recordings)), fontsize=8, wrap=True)
    return figure


def _aspect(recording: Events) -> float:
    """Height by width of a panel; frames that are mere lines get some room, too."""
    return float(np.clip(recording.height / recording.width, 0.1, 4.0))


def _window(recording: Events, window: float) -> int:
    """The number of steps in a window: that itself, or below 1 a share of all steps."""
    if not (0 < window < 1 or window in range(1, max(1, recording.steps) + 1)):
        allowed = (
            f"a whole number from 1 to {recording.steps}, the steps of {recording.name}, or a share between 0 and 1"
        )
        raise GerdError(f"window {window:g}: allowed: {allowed}")
    return int(window) if window >= 1 else max(1, round(window * recording.steps))


def _spread(recording: Events, count: int, window: float = 1) -> list[range]:
    """At most `count` windows of steps, evenly spaced from the first to the last."""
    check_whole("count", count, 1, MOST_PANELS)
    size = _window(recording, window)
    last = recording.steps - size
    starts = sorted({round(float(step)) for step in np.linspace(0, last, min(count, last + 1))})
    return [range(start, start + size) for start in starts]


def _part(recording: Events, span: range) -> Events:
    return recording.window(span.start, span.stop)


def _draw_steps(recording: Events, spans: Sequence[range], axes: Panels, overlay: bool) -> None:
    """The events of some steps, an Axes each, with the ground truth of the last; those that are left over are blank."""
    for ax, span in zip(axes, spans, strict=False):
        plot.events(recording, span.start, ax, window=len(span), legend=False)
        if overlay:
            plot.overlay(recording, span[-1], ax)
    for ax in axes[len(spans) :]:
        ax.set_axis_off()


def _outer_labels(axes: Panels, *, rows_have_heads: bool = False) -> None:
    """Numbers and names only at the left and at the bottom of a grid of frames."""
    left, bottom = list(axes[:, 0]), list(axes[-1])
    for ax in axes.flat:
        ax.tick_params(labelleft=ax in left and ax in bottom, labelbottom=ax in bottom, length=2)
        if ax not in left or (rows_have_heads and ax not in bottom):
            ax.set_ylabel("")
        if ax not in bottom:
            ax.set_xlabel("")


def _legend(figure: Figure, shown: Iterable[Events], overlay: bool) -> None:
    handles = plot.polarity_handles(*shown) + (plot.truth_handles() if overlay else [])
    ncols = max(1, min(6, int(figure.get_figwidth() / LEGEND_ENTRY)))
    figure.legend(handles=handles, loc="outside lower center", ncols=ncols)

"""The picture of a registration: how well the dots and the lights fit the view and the clock, as PNG, SVG or PDF."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gerd.errors import GerdError
from gerd.pictures.colours import OFF, ON, OUTLINE, SERIES, shade
from gerd.pictures.figure import STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gerd.screen.register import Registration

KINDS = (".png", ".svg", ".pdf")
ARROW = 0.1  # of the frame's width: how long the arrow of the worst of the dots that fit is
ENDS = ((0, ON, "goes on"), (1, OFF, "goes off"))


def check(path: Path) -> None:
    """An error unless a picture can be written under this name."""
    if path.suffix not in KINDS:
        raise GerdError(f"{path}: allowed: a name that ends in {', '.join(KINDS)}")
    if not path.parent.is_dir():
        raise GerdError(f"{path}: there is no folder {path.parent}")


def draw(found: Registration, path: Path) -> None:
    """Write the picture."""
    check(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        view, lights, late = figure.subplots(1, 3, width_ratios=[1.5, 1.5, 0.7])
        _draw_view(found, view)
        _draw_clock(found, lights, late)
        save(figure, path, path.suffix[1:])


def _draw_view(found: Registration, ax: Axes) -> None:
    width, height = found.camera
    left, top = found.stimulus.corner
    zoom = found.stimulus.zoom
    columns, rows = found.stimulus.size
    fit = found.view
    places = np.array([[dot.x, dot.y] for dot in found.stimulus.dots])
    along = np.linspace(0, 1, 50)
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) * [columns * zoom, rows * zoom] + [left, top]
    sides = [a + along[:, None] * (b - a) for a, b in pairwise(corners)]
    ax.plot(*fit.view.project(np.concatenate(sides)).T, color=shade(OUTLINE), lw=0.8, label="scene")
    x, y = fit.view.project(places).T
    ax.scatter(x, y, s=8, color="#bbbbbb", label="dots")
    seen = np.concatenate([each.places for each in found.dots])
    most = float(np.hypot(*fit.residuals[fit.kept].T).max())
    longer = ARROW * width / max(most, 1e-9)
    ax.quiver(
        *seen[fit.kept].T,
        *fit.residuals[fit.kept].T,
        angles="xy",
        scale_units="xy",
        scale=1 / longer,
        width=0.004,
        color=SERIES[0],
        label=f"off by, {longer:.0f} times as long",
    )
    if not fit.kept.all():
        x, y = seen[~fit.kept].T
        ax.scatter(x, y, s=24, marker="x", color=SERIES[1], label="left out")
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xlabel="camera x (px)", ylabel="y (px)")
    ax.set_title(f"dots off by {fit.rms:.2g} px (rms), view known to {found.view_px:.2g} px")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, handlelength=1, columnspacing=1)


def _draw_clock(found: Registration, ax: Axes, beside: Axes) -> None:
    fit = found.clock
    edges = found.clock.edges
    seconds = edges.frame * found.stimulus.frame_us / 1e6
    most = 5 * max(fit.rms_us, 1e-3)
    bins = np.linspace(-most, most, 41).tolist()
    for ends, colour, name in ENDS:
        own = edges.ends == ends
        late = np.clip(fit.residuals_us[own], -most, most)
        ax.scatter(seconds[own], late, s=5, lw=0, alpha=0.5, color=shade(colour), label=name)
        beside.hist(late, bins, orientation="horizontal", histtype="step", color=shade(colour))
    begin, end = (frame * found.stimulus.frame_us / 1e6 for frame in _scenes(found))
    ax.axvspan(begin, end, color="#eeeeee", lw=0, zorder=0, label="scenes")
    ax.set(ylim=(-1.05 * most, 1.05 * most), xlabel="time of the video (s)", ylabel="seen later by (µs)")
    beside.set(ylim=ax.get_ylim(), xlabel="lights", yticklabels=[])
    known = fit.uncertainty_us(found.stimulus)
    ax.set_title(f"lights off by {fit.rms_us:.3g} µs (rms), clock known to {known:.2g} µs")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, handlelength=1, columnspacing=1)


def _scenes(found: Registration) -> tuple[int, int]:
    scenes = found.stimulus.scenes
    return scenes[0].hold, scenes[-1].stop

"""Draw the figure of axes and signs in docs/conventions.md, the map of packages, the two timings, the two routes to
event data in docs/gallery.md, and the picture in docs/tutorial.md.

    python docs/drawings.py             # into docs/
    python docs/drawings.py FOLDER      # elsewhere

Outlines and events are those of simulated recordings, so the figure cannot show another sign than the program has.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
from figures import save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import gerd
from gerd import plot
from gerd.pictures import figure
from gerd.pictures.colours import OFF, ON, shade
from gerd.recording.recording import Recording

INK, PALE, FILL = "0.15", "0.6", "0.88"
SIZE = {"width": 24, "height": 18}


def still(shape: str, **transformations: object) -> Recording:
    """A recording of a shape that rests in the middle of the frame."""
    actor = {"shape": shape, "translation": {"start": [12, 9], "velocity": 0, "acceleration": 0}}
    actor |= {name: {"start": start, "acceleration": 0} for name, start in transformations.items()}
    return gerd.simulate(gerd.Config.model_validate({"sensor": SIZE, "steps": 1, "actors": [actor]}))


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0, colour: str = INK) -> None:
    style = {
        "arrowstyle": "-|>",
        "mutation_scale": 10,
        "connectionstyle": f"arc3,rad={bend}",
        "shrinkA": 0,
        "shrinkB": 0,
    }
    ax.add_patch(FancyArrowPatch(start, end, color=colour, linewidth=1.2, clip_on=False, zorder=3, **style))


def axes_of(ax: Axes, x: float, y: float, length: float) -> None:
    """Arrows for x to the right and y down."""
    arrow(ax, (x, y), (x + length, y))
    arrow(ax, (x, y), (x, y + length))
    gap = 0.12 * length
    ax.text(x + length + gap, y, "x", ha="left", va="center")
    ax.text(x, y + length + gap, "y", ha="center", va="top")


def plain(ax: Axes, left: float, right: float, top: float, bottom: float, title: str) -> None:
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", title=title)
    ax.axis("off")


def pixels(ax: Axes) -> None:
    plain(ax, -0.4, 7.2, -0.5, 5.2, "(a) pixels")
    for i in range(7):
        ax.plot([i, i], [0, 4], color=PALE, linewidth=0.8)
    for i in range(5):
        ax.plot([0, 6], [i, i], color=PALE, linewidth=0.8)
    ax.add_patch(Rectangle((3, 1), 1, 1, color=FILL))
    ax.plot(3.5, 1.5, "o", color=INK, markersize=3)
    axes_of(ax, 0, 0, 2)
    ax.text(3.4, 4.3, "row 1, column 3: [3, 4) × [1, 2)\nits centre is at (3.5, 1.5)", ha="center", va="top")


def unit_frame(ax: Axes) -> None:
    plain(ax, -0.94, 0.94, -0.66, 0.75, "(b) the unit frame")
    (ring,) = still("triangle").outlines(0)[0]
    size = np.ptp(ring, axis=0)
    ax.add_patch(Polygon((ring - (12, 9)) / size, facecolor=FILL, edgecolor=INK))
    ax.add_patch(Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor=PALE, linestyle="--"))
    axes_of(ax, 0, 0, 0.3)
    ax.text(0, 0.56, "a box of side 1 about the origin", ha="center", va="top")


def turned(ax: Axes) -> None:
    plain(ax, 0, 24, 0, 19, "(c) position, size and rotation")
    before, after = still("triangle", scale=12), still("triangle", scale=12, rotation=30)
    ax.add_patch(Polygon(before.outlines(0)[0][0], fill=False, edgecolor=PALE, linestyle="--"))
    ax.add_patch(Polygon(after.outlines(0)[0][0], facecolor=FILL, edgecolor=INK))
    x, y = after.positions[0, 0]
    ax.plot(x, y, "o", color=INK, markersize=3)
    ax.text(x - 0.4, y - 0.5, "(x, y)", ha="right", va="bottom")
    tips = [(recording.T[0, 0] @ (0.62, 0, 1))[:2] for recording in (before, after)]
    arrow(ax, tuple(tips[0]), tuple(tips[1]), bend=-0.25)
    ax.text(20.6, 11.6, "r > 0", ha="left", va="center")
    ax.text(12, 18, "size 12, rotation 30°: clockwise", ha="center", va="top")


def sheared(ax: Axes) -> None:
    plain(ax, 0, 24, 0, 19, "(d) shear")
    before, after = still("square", scale=10), still("square", scale=10, shear=0.4)
    ax.add_patch(Polygon(before.outlines(0)[0][0], fill=False, edgecolor=PALE, linestyle="--"))
    ax.add_patch(Polygon(after.outlines(0)[0][0], facecolor=FILL, edgecolor=INK))
    arrow(ax, (19.5, 13.2), (22.5, 13.2))
    arrow(ax, (4.5, 4.8), (1.5, 4.8))
    ax.text(21, 13.7, "k > 0", ha="center", va="top")
    ax.text(12, 18, "shear 0.4: x grows by 0.4 per y", ha="center", va="top")


def events(ax: Axes) -> None:
    config = gerd.parse("""
        sensor: {width: 24, height: 18}
        steps: 6
        integrator: {initial: 0, reset: zero}
        actors:
          - shape: square
            translation: {start: [9, 8], velocity: [1, 0], acceleration: 0}
            scale: {start: 8, acceleration: 0}
    """)
    plot.events(gerd.simulate(config), 3, ax, legend=False)
    plain(ax, 0, 24, 0, 19, "(e) events")
    ax.add_patch(Rectangle((0, 0), 24, 18, fill=False, edgecolor=PALE))
    arrow(ax, (10.5, 8), (13.5, 8))
    ax.text(17.3, 8, "ON\np = 1", color=shade(ON), ha="left", va="center", fontweight="bold")
    ax.text(6.7, 8, "OFF\np = 0", color=shade(OFF), ha="right", va="center", fontweight="bold")
    ax.text(12, 18.4, "a bright square that moves right", ha="center", va="top")


def steps(ax: Axes) -> None:
    ax.set(xlim=(-4.2, 4.2), ylim=(3, -3), title="(f) steps")
    ax.axis("off")
    arrow(ax, (-3.9, 0), (4.1, 0))
    for step in range(-3, 4):
        ax.plot(step, 0, "o", color=INK if step >= 0 else PALE, markersize=4)
        ax.text(step, 0.35, str(step).replace("-", "−"), ha="center", va="top", color=INK if step >= 0 else PALE)
    ax.text(-2, -0.5, "warm-up,\nnot recorded", ha="center", va="bottom", color=PALE)
    ax.annotate(
        "step 0: T(0),\nthe start", (0, -0.15), (0, -2.6), ha="center", va="top", arrowprops={"arrowstyle": "-"}
    )
    ax.plot([1, 1, 2, 2], [1.1, 1.3, 1.3, 1.1], color=INK, linewidth=0.9)
    ax.text(1.5, 1.45, "this change gives\nthe events of step 2", ha="center", va="top")


def axes() -> Figure:
    with matplotlib.rc_context({"axes.titlesize": 9}):
        drawn = Figure(figsize=(7.5, 4.6), layout="constrained")
        panels = (pixels, unit_frame, turned, sheared, events, steps)
        for ax, panel in zip(drawn.subplots(2, 3).flat, panels, strict=True):
            panel(ax)
    return drawn


def tutorial() -> Figure:
    """What the tutorial's `gerd render` shows: the first steps of its config."""
    text = Path(__file__).with_name("tutorial.md").read_text("utf-8")
    config = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert config is not None
    return figure.sheet(gerd.simulate(gerd.parse(config[1], source="square.yaml")), count=6, overlay=True)


STAGES = {
    "config": "Config",
    "plan": "Plan",
    "scene": "Scenes",
    "events": "events",
    "recording": "Recording",
    "storage": "dataset",
}
ROOM = (1.25, 0.55)
USES = {"training": "batches", "exchange": "other formats", "measures": "numbers", "pictures": "figures, videos"}


def timing() -> Figure:
    """The events of one row of pixels, at four speeds: both timings, and the truth for an upright edge."""
    drawn = Figure(figsize=(9, 3.1), layout="constrained")
    panels, threshold, first = drawn.subplots(1, 4), 0.3, 5
    for ax, speed in zip(panels, (1, 2, 4, 8), strict=True):
        start, last = 3.0, first + 6  # of the edge at t = 0, and the last pixel that is shown
        actor = {
            "shape": "square",
            "translation": {"start": [start - 20, 6], "velocity": [speed, 0], "acceleration": 0, "border": "free"},
            "scale": {"start": 40, "acceleration": 0},
        }
        data = {"sensor": {"width": 40, "height": 12}, "steps": 12, "upsampling": 32, "actors": [actor]}
        data["integrator"] = {"threshold": threshold, "initial": 0, "warmup": 0}
        for name, marker, colour, size in (("step", "s", "0.75", 6), ("exact", "o", shade(ON), 3.5)):
            events = gerd.simulate(gerd.Config.model_validate({**data, "timing": name})).events
            shown = events[(events["y"] == 6) & events["p"] & (events["x"] >= first) & (events["x"] <= last)]
            ax.plot(shown["t"] / 1000, shown["x"], marker, color=colour, markersize=size, label=f"timing: {name}")
        x = np.arange(first, last + 1)
        for passage in range(1, int(1 / threshold) + 1):  # a pixel has `passage` thresholds when the edge is there
            label = "truth" if passage == 1 else None
            ax.plot((x - start + passage * threshold) / speed, x, "|", color=INK, markersize=11, label=label)
        ax.set(title=f"{speed} px per step", xlabel="time (steps)", yticks=x)
    panels[0].set_ylabel("pixel")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn


def room(
    ax: Axes, name: str, left: float, top: float, size: tuple[float, float] = (1.25, 0.55), fill: str = "w"
) -> None:
    """A package as a box."""
    frame = Rectangle((left, top), *size, facecolor=fill, edgecolor="0.4", linewidth=0.8)
    ax.add_patch(frame)
    ax.text(left + size[0] / 2, top + size[1] / 2, name, ha="center", va="center", weight="bold", fontsize=7.5)


def packages() -> Figure:
    """The packages of gerd/ in the order of the data; an arrow says what goes from one to the next."""
    drawn = Figure(figsize=(12.0, 2.9))
    ax = drawn.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set(xlim=(-0.7, 20.6), ylim=(4.4, -0.4))
    ax.axis("off")
    middle, left = 1.65, 0.3
    ax.text(-0.2, middle - 0.1, "text", ha="center", va="bottom")
    arrow(ax, (-0.6, middle), (left, middle))
    for name, result in STAGES.items():
        room(ax, name, left, middle - 0.275, fill="#dcebf5")
        arrow(ax, (left + 1.25, middle), (left + 2.2, middle))
        ax.text(left + 1.7, middle - 0.1, result, ha="center", va="bottom", fontsize=7)
        if name != "storage":
            arrow(ax, (left + 0.625, middle + 1.0), (left + 0.625, middle + 0.275), colour=PALE)
        left += 2.2
    room(ax, "geometry", 0.3, middle + 1.0, (10.05, 0.55), FILL)
    ax.text(5.3, middle + 1.65, "outlines and T(t) in closed form", ha="center", va="top")
    ax.plot([left, left], [0.275, 3.575], color=INK, linewidth=1.2)
    for row, (name, result) in enumerate(USES.items()):
        top = 1.1 * row
        arrow(ax, (left, top + 0.275), (left + 0.35, top + 0.275))
        room(ax, name, left + 0.35, top, fill="#e3f1e4")
        ax.text(left + 0.975, top + 0.62, result, ha="center", va="top")
    room(ax, "studies", left + 2.4, 2.2, (1.25, 1.1), "#f7ecd9")
    room(ax, "page", left + 2.4, 3.55, (1.25, 0.55), "#f7ecd9")
    room(ax, "screen", left + 2.4, 0.2, (1.25, 0.55), "#f7ecd9")
    room(ax, "bench", left + 4.3, 2.2, (1.25, 0.55), "#f7ecd9")
    arrow(ax, (left + 1.6, 1.3), (left + 2.4, 0.65))
    arrow(ax, (left + 3.65, 0.6), (left + 6.2, 1.15))
    room(ax, "cli", left + 6.2, 1.1, (0.8, 3.0), "#f3e0e8")
    to_the_right = ((1.6, 2.4, 2.475), (1.6, 6.2, 1.375), (3.65, 4.3, 2.475), (5.55, 6.2, 2.475), (3.65, 6.2, 3.1))
    for begin, end, y in (*to_the_right, (3.65, 6.2, 3.825)):
        arrow(ax, (left + begin, y), (left + end, y))
    arrow(ax, (left + 1.6, 3.45), (left + 2.4, 3.1))
    arrow(ax, (left + 1.6, 3.7), (left + 2.4, 3.825))
    return drawn


def routes() -> Figure:
    """Two routes to event data: where T(t) is given, and where it has to be worked out from a scene."""
    drawn = Figure(figsize=(7.5, 2.9))
    ax = drawn.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set(xlim=(0, 15), ylim=(5.8, 0))
    ax.axis("off")
    rows = {
        "directly": (1.0, "#dcebf5", ("a shape and T(t)", "the share of each\npixel that is covered")),
        "from scenes": (3.4, "#f7ecd9", ("a 3D scene and\na moving camera", "rendered pictures")),
    }
    for name, (top, fill, steps) in rows.items():
        ax.text(0.2, top + 0.6, name, ha="left", va="center", weight="bold")
        for number, step in enumerate(steps):
            left = 2.4 + 4.3 * number
            room(ax, step, left, top, (3.3, 1.2), fill)
        sensor = (11.0, 2.3 if top < 2 else 3.0)
        for start, end in (((5.7, top + 0.6), (6.7, top + 0.6)), ((10.0, top + 0.6), sensor)):
            arrow(ax, start, end)
    room(ax, "change of brightness,\nintegrate and fire", 11.0, 1.9, (3.5, 1.5), "#e3f1e4")
    arrow(ax, (12.75, 3.4), (12.75, 4.3))
    ax.text(12.75, 4.4, "events", ha="center", va="top", weight="bold")
    ax.text(6.2, 0.8, "T(t), T'(t), T''(t) are known at every step: labels, families", ha="center", va="bottom")
    ax.text(6.2, 4.8, "T(t) follows from camera and depth, if it exists at all", ha="center", va="top")
    return drawn


DRAWINGS = {"axes": axes, "map": packages, "routes": routes, "timing": timing, "tutorial": tutorial}


def draw(name: str, folder: Path) -> Path:
    path = folder / f"{name}.png"
    with matplotlib.rc_context(figure.STYLE):
        save(DRAWINGS[name](), path)
    with Image.open(path) as picture:  # few colours make a small file
        kept = PngInfo()
        kept.add_text("Contents", picture.text["Contents"])
        picture.convert("RGB").quantize(64).save(path, optimize=True, pnginfo=kept)
    return path


if __name__ == "__main__":
    for name in DRAWINGS:
        print(draw(name, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))

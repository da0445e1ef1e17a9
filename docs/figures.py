"""Draw the pictures of docs/gallery.md: every figure of the paper that shows a recording, and some examples.

    python docs/figures.py                      # all of them, into docs/figures/
    python docs/figures.py pipeline noise       # some of them
    python docs/figures.py --out elsewhere      # into another folder
    python docs/figures.py voxels --voltmeter events/000000.txt    # with what your DVS-Voltmeter has written

A figure of the paper is drawn from the config of its name in configs/paper/, by the function of its name below; an
example shows what a `gerd render` command of the gallery writes. What is drawn comes from `gerd.simulate` and
`recording.stages()`; nothing is simulated here. The events of DVS-Voltmeter are those of docs/voltmeter.txt: lines of
time in microseconds, x, y and polarity, as that program writes them. docs/gallery.md says how they were made.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, StepPatch

import gerd
from gerd import plot
from gerd.config.config import Config
from gerd.errors import counted
from gerd.page.render import OF_FAMILIES
from gerd.pictures import figure
from gerd.pictures.colours import OFF, ON, shade
from gerd.recording.recording import Recording

ROOT = Path(__file__).parent.parent
VOLTMETER = ROOT / "docs" / "voltmeter.txt"
SIX = ("picture", "seen", "difference", "fired", "kept", "events")  # the paper's numbers 1 to 6


def panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, list(np.ravel(drawn.subplots(rows, columns)))


def with_legend(drawn: Figure, *recordings: Recording) -> Figure:
    place = "outside lower center" if drawn.get_layout_engine() else "lower center"
    drawn.legend(handles=plot.polarity_handles(*recordings), loc=place, ncols=3)
    return drawn


def pipeline(config: Config) -> Figure:
    return figure.stages(gerd.simulate(config), names=SIX)


def scaling(config: Config) -> Figure:
    drawn, axes = panels(1, 3, 7.5, 2.9)
    for ax, recording, letter in zip(axes, gerd.simulate_family(config), "abc", strict=True):
        (factor,) = recording.identity.labels.values()
        plot.events(recording, 0, ax, legend=False)
        ax.set_title(f"({letter}) smaller by {100 * (1 - factor):.0f} %: {len(recording)} events")
    return with_legend(drawn)


def shapes(config: Config) -> Figure:
    recording = gerd.simulate(config)
    drawn, axes = panels(3, 1, 5.2, 5.6)
    plot.brightness(recording, 0, axes[0]).set_title("(a) square, circle and triangle")
    plot.brightness(recording, 1, axes[1]).set_title("(b) a step later: 1 px to the right")
    plot.stage(recording.stages(), "difference", 1, axes[2]).set_title("(c) the difference: (b) minus (a)")
    drawn.colorbar(axes[0].images[0], ax=axes[:2], label="brightness", ticks=[0, 1], aspect=30)
    drawn.colorbar(axes[2].images[0], ax=axes[2], label="share of a full pixel", ticks=[-1, 0, 1], aspect=15)
    return drawn


def upsampling(config: Config) -> Figure:
    drawn, axes = panels(1, 2, 6.6, 3.4)
    for ax, recording, letter in zip(axes, gerd.simulate_family(config), "ab", strict=True):
        factor = recording.identity.labels["upsampling"]
        plot.stage(recording.stages(), "picture", 0, ax)
        ax.set_title(f"({letter}) {counted(factor, 'sub-pixel')} along each side of a pixel")
        ax.set(xticks=range(recording.width + 1), yticks=range(recording.height + 1))
        ax.grid(color="0.5", linewidth=0.5)
    return drawn


def rotation(config: Config) -> Figure:
    recording = gerd.simulate(config)
    drawn = Figure(figsize=(7.5, 3.6))
    plot.events(recording, 0, drawn.add_axes((0.07, 0.2, 0.34, 0.71)), legend=False).set_title("(a) step 0")
    cloud(recording, drawn, (0.43, 0.06, 0.52, 0.88), "(b) steps 0 to 9")
    return with_legend(drawn)


def cloud(recording: Recording, drawn: Figure, place: tuple[float, float, float, float], title: str) -> Any:
    ax = plot.cloud(recording, drawn.add_axes(place, projection="3d"), zoom=0.95)
    ax.set_title(title, y=1.0)
    ax.get_legend().remove()
    return ax


def noise(config: Config) -> Figure:
    drawn, axes = panels(1, 3, 7.5, 2.9)
    recordings = gerd.simulate_family(config)
    for ax, recording, letter in zip(axes, recordings, "abc", strict=True):
        noises = recording.identity.labels["noise"]
        (name,) = (name for name in ("background", "shape", "event") if noises[name])
        plot.events(recording, 0, ax, legend=False).set_title(f"({letter}) 10 % {name} noise")
    return with_legend(drawn, *recordings)


def voxels(config: Config, voltmeter: Path = VOLTMETER) -> Figure:
    """What DVS-Voltmeter made of the pictures, and our events of that motion, in steps with noise and at exact times.

    `voltmeter` is the file that it wrote: time in microseconds, x, y and polarity.
    """
    in_steps = gerd.simulate(config)
    exact = gerd.simulate(config, timing="exact", **{"noise.background": 0})
    size = (in_steps.width, in_steps.height)
    given = gerd.read_events(voltmeter, columns="txyp", size=size, step_us=config.step_us).events
    drawn = Figure(figsize=(11, 3.2))
    titles = (
        f"(a) DVS-Voltmeter: {moments(given['t'])}",
        f"(b) in steps, with noise: {moments(in_steps.events['t'])}",
        f"(c) at exact times: {moments(exact.events['t'])}",
    )
    theirs = cloud(in_steps, drawn, (0.01, 0.08, 0.28, 0.84), titles[0])
    theirs.collections[0].remove()  # the same axes, with their points in place of ours
    colours = np.array([shade(OFF), shade(ON)])[given["p"].astype(int)]
    style = {"s": 14, "marker": "s", "linewidths": 0, "depthshade": False, "rasterized": True}
    theirs.scatter(given["t"] / config.step_us, given["x"] + 0.5, given["y"] + 0.5, c=colours, **style)
    cloud(in_steps, drawn, (0.345, 0.08, 0.28, 0.84), titles[1])
    cloud(exact, drawn, (0.68, 0.08, 0.28, 0.84), titles[2])
    return with_legend(drawn, in_steps)


def moments(t: Any) -> str:
    return f"{len(t)} events,\n{len(np.unique(t))} different times"


FIGURES: dict[str, Callable[[Config], Figure]] = {
    make.__name__: make for make in (pipeline, scaling, shapes, upsampling, rotation, noise, voxels)
}


EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {  # gerd render configs/CONFIG NAME.png, and its options
    "overlay": ("bouncing.yaml", {"kind": "frame", "step": 25, "overlay": True, "side_by_side": True}),
    "sheet": ("bouncing.yaml", {"kind": "sheet", "count": 6}),
    "cloud": ("bouncing.yaml", {"kind": "cloud"}),
    "rate": ("bouncing.yaml", {"kind": "rate"}),
    "parameters": ("bouncing.yaml", {"kind": "parameters"}),
    "stages": ("bouncing.yaml", {"kind": "stages", "start": 25, "count": 2}),
    "family": ("families/own_time.yaml", {"family": True, "count": 5}),
    "windows": ("families/own_time.yaml", {"family": True, "count": 5, "window": 0.1}),
    "speeds": ("families/own_time.yaml", {"family": True, "count": 1}),
    "clouds": ("families/own_time.yaml", {"kind": "cloud", "family": True}),
}


def made(name: str, voltmeter: Path = VOLTMETER) -> Figure:
    """The figure of this name."""
    if name not in EXAMPLES:
        config = gerd.load(ROOT / "configs" / "paper" / f"{name}.yaml")
        return voxels(config, voltmeter) if name == "voxels" else FIGURES[name](config)
    file, wishes = EXAMPLES[name]
    options = {"start": 0, "family": False, **wishes}
    start, path = options.pop("start"), ROOT / "configs" / file
    if options.pop("family"):
        members = [recording.window(start) for recording in gerd.simulate_family(path)]
        return OF_FAMILIES[options.pop("kind", "sheet")](members, **options)
    return figure.KINDS[options.pop("kind")](gerd.simulate(path).window(start), **options)


def contents(drawn: Figure) -> str:
    """A digest of what a figure shows: words, images, lines, areas and points, in whatever font they are drawn."""
    words, arrays = [drawn.get_suptitle()], []
    for ax in drawn.axes:
        words += [
            ax.get_title(),
            ax.get_title("left"),
            ax.get_xlabel(),
            ax.get_ylabel(),
            *(text.get_text() for text in ax.texts),
        ]
        words += [to_hex(line.get_color()) for line in ax.lines]
        arrays += [image.to_rgba(image.get_array(), bytes=True) for image in ax.images]
        arrays += [line.get_xydata() for line in ax.lines]
        arrays += [patch.get_path().vertices for patch in ax.patches if isinstance(patch, (Polygon, StepPatch))]
        arrays += [points.get_offsets() for points in ax.collections]
    digest = hashlib.sha256("\n".join(words).encode())
    for array in arrays:
        digest.update((np.round(np.asarray(array, float), 4) + 0.0).tobytes())  # + 0.0: there is no -0
    return digest.hexdigest()


def save(drawn: Figure, path: Path) -> None:
    """Write a figure as PNG, with the digest of its contents, by which a test sees whether it is up to date."""
    drawn.savefig(path, format="png", metadata={"Software": None, "Contents": contents(drawn)})


def draw(name: str, folder: Path, voltmeter: Path = VOLTMETER) -> Path:
    """Write one picture as PNG."""
    path = folder / f"{name}.png"
    with matplotlib.rc_context(figure.STYLE):
        save(made(name, voltmeter), path)
    return path


def main() -> None:
    known = [*FIGURES, *EXAMPLES]
    parser = argparse.ArgumentParser(description="Draw the paper's figures and the other pictures of the gallery.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(known)}; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", metavar="FOLDER")
    parser.add_argument(
        "--voltmeter", type=Path, default=VOLTMETER, metavar="FILE", help="events for the figure voxels"
    )
    wanted = parser.parse_args()
    unknown = sorted(set(wanted.names) - set(known))
    if unknown:
        parser.error(f"{', '.join(unknown)}: there is no such picture; there are {', '.join(known)}")
    wanted.out.mkdir(parents=True, exist_ok=True)
    for name in wanted.names or known:
        try:
            print(f"{name}: {draw(name, wanted.out, wanted.voltmeter)}")
        except gerd.GerdError as error:  # of the file of events
            parser.error(str(error))


if __name__ == "__main__":
    main()

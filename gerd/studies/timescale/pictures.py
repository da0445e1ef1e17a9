"""Two pictures of the report that are no plots: the networks as they are built, and the invariant one at work."""

from __future__ import annotations

import math
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gerd.pictures.colours import BACKDROP, OFF, ON, SERIES, shade
from gerd.studies.demonstration.trials import STEPS
from gerd.studies.lab.drawing import new_figure, save
from gerd.studies.lab.results import Example, Results
from gerd.studies.lab.training import recordings
from gerd.studies.models import TIME_BANK, TIME_CONSTANTS
from gerd.studies.timescale.trials import matched_channel, own_time, stimuli

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME_MS = 120  # of the animation
SEEN = 4.0  # events that are not older are shown, in own time
CHANNEL, SHARED, READ = "#cfe3f2", "#f6d9c3", "#d5ead9"  # colours of what channels have alone, share, and say


def networks(results: Results, out: Path) -> str:
    """The five channels and the invariant network, from events to a place."""
    layers = results.settings.size.layers
    figure = new_figure(7.5, 4.4)
    five, ours = figure.subplots(2, 1, height_ratios=[2.0, 2.8])
    convolutions = [f"{k}×{k}\n→ {width}" for k, width in zip(layers.kernels, layers.widths[1:], strict=True)]
    steps = [("events\n2 polarities", SHARED)]
    for convolution in convolutions[:-1]:
        steps += [(f"conv\n{convolution}", SHARED), ("leaky\nintegr.\nμₖ", CHANNEL)]
    steps += [(f"conv\n{convolutions[-1]}", SHARED), ("softmax", READ), ("mean\nweights\n1/5", READ), ("x, y", READ)]
    title = f"Equal weights: {len(TIME_CONSTANTS)} channels, μₖ = μ·(¼, ½, 1, 2, 4), the middle μ learnt"
    _chain(five, steps, title)
    pool = layers.pools[0]
    steps = [("events\n2 polarities", SHARED), (f"sum of\n{pool}×{pool}\npixels", SHARED), ("trace\nμₖ", CHANNEL)]
    steps += [(f"conv\n{convolution}", SHARED) for convolution in convolutions]
    steps += [("evidence\nlog Σ exp", READ), ("softmax\nover all\nchannels", READ), ("x, y", READ)]
    ends = f"from {TIME_BANK[0]:.2g} to {TIME_BANK[-1]:.0f}"
    title = f"The invariant network: {len(TIME_BANK)} channels, μₖ = 5·2^(k/2) {ends}"
    _chain(ours, steps, f"{title}; behind the trace no layer knows of time", legend=True)
    return save(figure, out, "networks")


def _chain(ax: Axes, steps: list[tuple[str, str]], title: str, legend: bool = False) -> None:
    """Boxes from left to right; what each channel has for itself is drawn as a stack."""
    from matplotlib.patches import FancyBboxPatch

    width, gap = 1.0, 0.28
    for number, (words, colour) in enumerate(steps):
        left = number * (width + gap)
        for back in (2, 1, 0) if colour == CHANNEL else (0,):
            place = (left + 0.07 * back, 0.11 * back)
            box = FancyBboxPatch(place, width, 1.5, "round,pad=0.02,rounding_size=0.08", fc=colour, ec="0.35", lw=0.8)
            ax.add_patch(box)
        ax.text(left + width / 2, 0.75, words, ha="center", va="center", fontsize=5.6)
        if number:
            arrow = {"arrowstyle": "-|>", "lw": 0.8, "color": "0.3", "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (left - 0.03, 0.75), (left - gap + 0.05, 0.75), arrowprops=arrow)
    ax.set(xlim=(-0.15, len(steps) * (width + gap)), ylim=(-0.9 if legend else -0.1, 1.9))
    ax.set_title(title, fontsize=7.5, loc="left")
    ax.set_axis_off()
    if not legend:
        return
    meanings = {CHANNEL: "one for each channel", SHARED: "the same for all channels", READ: "how the answer is read"}
    for number, (colour, text) in enumerate(meanings.items()):
        ax.add_patch(FancyBboxPatch((4.4 * number, -0.75), 0.35, 0.3, "round,pad=0.02", fc=colour, ec="0.35", lw=0.6))
        ax.text(4.4 * number + 0.55, -0.6, text, fontsize=6, va="center")


def animation(results: Results, out: Path) -> str:
    """One path at three speeds, in own time: what the invariant network sees and says, channel by channel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure = new_figure(6.6, 3.3)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(results.examples), squeeze=False, height_ratios=[3, 1])
    panels = [_Panel(results, example, *axes[:, k]) for k, example in enumerate(results.examples)]
    pictures = []
    every = 2 if results.settings.size.conclusive else STEPS - 1  # of a smoke run the first step and the last
    for time in range(0, STEPS, every):
        for panel in panels:
            panel.show(time)
        canvas.draw()
        drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
        pictures.append(drawn.quantize(96, dither=Image.Dither.NONE))
    pictures[0].save(out / "animation.gif", save_all=True, append_images=pictures[1:], duration=FRAME_MS, loop=0)
    return "![animation](animation.gif)\n"


class _Panel:
    """One speed: events, heat map, truth and answer above, and the shares of the channels below."""

    def __init__(self, results: Results, example: Example, above: Axes, below: Axes):
        size = results.settings.size
        scale = example.amount
        config = own_time(stimuli(size.side, results.settings.seed), scale)
        self.example = example
        self.above = above
        self.events = recordings(config, size.training, 1, "cpu").frames[0].numpy()
        blank = np.zeros((example.rows, example.columns))
        self.heat = [np.frombuffer(b64decode(step), np.uint8).reshape(blank.shape) for step in example.heat]
        extent = (0, size.side, size.side, 0)
        self.picture = above.imshow(np.zeros((size.side, size.side, 3)), extent=extent, interpolation="nearest")
        self.map = above.imshow(
            blank, extent=extent, cmap="Greens", vmin=0, vmax=1, alpha=blank, interpolation="bilinear"
        )
        (self.truth,) = above.plot([], [], "+", color="k", markersize=9, label="truth")
        (self.said,) = above.plot([], [], "o", mfc="none", color=SERIES[3], markersize=8, mew=1.6, label="the network")
        above.set(xticks=[], yticks=[])
        matched = matched_channel(scale)
        colours = [SERIES[1] if k == matched else "0.6" for k in range(len(TIME_BANK))]
        self.bars = below.bar(range(len(TIME_BANK)), [0.0] * len(TIME_BANK), color=colours)
        below.set(ylim=(0, 1), yticks=[0, 1], xticks=range(0, len(TIME_BANK), 2), xlabel="channel, μ in steps")
        below.set_xticklabels([f"{TIME_BANK[k]:.2g}" for k in range(0, len(TIME_BANK), 2)], fontsize=6)
        if scale == results.examples[0].amount:
            below.set_ylabel("share", fontsize=7)
            above.legend(fontsize=6, loc="upper left", frameon=True)

    def show(self, time: int) -> None:
        """The step at an own time, which is a step at scale 1."""
        example = self.example
        step = min(len(example.places) - 1, math.floor(time / example.amount + 0.5))
        colours = np.full((*self.events.shape[-2:], 3), shade(BACKDROP))
        seen = np.any(self.events[max(0, step - round(SEEN / example.amount) + 1) : step + 1], axis=0)
        for polarity, colour in ((0, OFF), (1, ON)):
            colours[seen[polarity]] = shade(colour)
        heat = np.sqrt(self.heat[step] / 255)  # so that faint parts are seen, too
        self.picture.set_data(colours)
        self.map.set_data(heat)
        self.map.set_alpha(0.85 * heat)
        self.truth.set_data([example.truth[step][0]], [example.truth[step][1]])
        self.said.set_data([example.places[step][0]], [example.places[step][1]])
        self.above.set_title(f"s = {example.amount:g}, step {step} of {len(example.places)}", fontsize=8)
        for bar, share in zip(self.bars, example.shares[step], strict=True):
            bar.set_height(share)

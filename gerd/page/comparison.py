"""Two sets of recordings on one page: what `gerd compare` writes. Recordings and their comparison in, one file out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gerd.errors import GerdError
from gerd.measures.comparison import EventComparison
from gerd.measures.stream_numbers import pixel_counts
from gerd.pictures import figure as stills
from gerd.pictures.report import as_html
from gerd.recording.events import Events
from gerd.storage.whole import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00")
TIMES = 60  # bins of the rate over time
PAUSES = np.logspace(0, 7, 57)  # microseconds: bins of the intervals


def check(path: Path) -> None:
    """A clear error if the page could not be written there."""
    if path.suffix.lower() != ".html":
        raise GerdError(f"{path}: a comparison is written as a page; allowed: a name that ends in .html")


def save_comparison(result: EventComparison, a: Sequence[Events], b: Sequence[Events], path: Path) -> None:
    """Write the numbers, the verdict and a figure as one page that needs no other file."""
    import matplotlib
    from matplotlib.figure import Figure

    check(path)
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context(stills.STYLE):
        drawn = Figure((11, 7), layout="constrained")
        _draw(drawn, result, (a, b))
        drawn.savefig(Path(folder) / "comparison.svg", format="svg", metadata={"Date": None})
        rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in result.table]
        rule = "|" + " --- |" * len(result.table[0])
        names = " and ".join(f"{side}: {name}" for side, name in zip("AB", result.names, strict=True))
        text = "\n".join(
            [
                f"# {names}",
                "",
                result.verdict,
                "",
                "![The numbers, the rate over time, the intervals and the pixels of both](comparison.png)",
                "",
                rows[0],
                rule,
                *rows[1:],
                "",
            ]
        )
        page = as_html(text, Path(folder))
    write_whole(path, page.encode())


def _draw(figure: Figure, result: EventComparison, sets: tuple[Sequence[Events], Sequence[Events]]) -> None:
    parts = figure.subplot_mosaic([["apart", "rate", "pauses"], ["apart", "A", "B"]], width_ratios=[1.3, 1, 1])
    _draw_apart(parts["apart"], result)
    most = max(1.0, *(float(np.quantile(pixel_counts(each), 0.999)) for each in sets))
    for side, name, each, colour in zip("AB", result.names, sets, COLOURS, strict=True):
        time, rate = _rate(each)
        parts["rate"].plot(time, rate, color=colour, label=f"{side}: {name}", lw=1)
        parts["pauses"].stairs(_pauses(each), PAUSES, color=colour, lw=1)
        shown = parts[side].imshow(pixel_counts(each), vmin=0, vmax=most, cmap="viridis", interpolation="nearest")
        parts[side].set(title=f"{side}: events per pixel", xlabel="x (px)", ylabel="y (px)")
        figure.colorbar(shown, ax=parts[side], shrink=0.7)
    parts["rate"].set(title="rate", xlabel="time (s)", ylabel="events per pixel and s", ylim=(0, None))
    parts["pauses"].set(
        title="intervals at a pixel", xlabel="µs", ylabel="share", xscale="log", xlim=(PAUSES[0], PAUSES[-1])
    )
    figure.legend(*parts["rate"].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _draw_apart(axes: Axes, result: EventComparison) -> None:
    """How far apart the numbers are, in standard errors; those that differ are filled."""
    shown = [each for each in reversed(result.differences) if each.p is not None]
    differing = {each.name for each in result.differing}
    for row, each in enumerate(shown):
        differs = each.name in differing
        width = min(each.errors_apart, 20.0)
        axes.barh(row, width, color="#555" if differs else "none", edgecolor="#555", height=0.6)
        if each.errors_apart > width:
            axes.text(width, row, " more", va="center", fontsize="small")
    axes.set_yticks(range(len(shown)), [each.name for each in shown])
    axes.set(title="apart; filled: differs", xlabel="standard errors", xlim=(0, 24))


def _rate(recordings: Sequence[Events]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds from the beginning, and the mean rate there of those recordings that last so long."""
    longest = max(each.steps * each.step_us for each in recordings)
    edges = np.linspace(0, longest, TIMES + 1)
    events, pixels = np.zeros(TIMES), np.zeros(TIMES)
    for each in recordings:
        events += np.histogram(each.codec.elapsed(each.keys, each.step_us), edges)[0]
        pixels += each.width * each.height * (edges[1:] <= each.steps * each.step_us + longest / TIMES / 2)
    with np.errstate(invalid="ignore"):
        return (edges[1:] + edges[:-1]) / 2e6, events / pixels / (longest / TIMES) * 1e6


def _pauses(recordings: Sequence[Events]) -> NDArray[np.float64]:
    """The shares of the intervals between events of a pixel."""
    counts = np.zeros(len(PAUSES) - 1)
    for each in recordings:
        pixel = each.codec.pixels(each.keys) >> 1
        time = each.codec.elapsed(each.keys, each.step_us)
        order = np.lexsort((time, pixel))
        counts += np.histogram(np.diff(time[order])[np.diff(pixel[order]) == 0], PAUSES)[0]
    return counts / max(1.0, counts.sum())

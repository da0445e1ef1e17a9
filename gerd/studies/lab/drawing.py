"""What reports are made of: tables in Markdown and CSV, curves and matrices as PNG and SVG."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gerd.errors import GerdError
from gerd.measures.measure import Covariance, Curve, Summary, summary
from gerd.pictures.colours import ACTORS
from gerd.pictures.figure import STYLE
from gerd.pictures.figure import save as save_figure
from gerd.studies.lab import folder as store
from gerd.studies.lab.comparison import Comparison
from gerd.studies.lab.folder import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def over_seeds(found: Iterable[tuple[float, tuple[float, float]]], digits: int = 2) -> str:
    """Numbers with their intervals, one of each seed: the mean, and the lowest and the highest end."""
    numbers = list(found)
    mean = sum(number for number, _ in numbers) / len(numbers)
    low, high = min(interval[0] for _, interval in numbers), max(interval[1] for _, interval in numbers)
    return f"{mean:.{digits}f} ({between((low, high), digits)})"


def px(found: Iterable[Summary], digits: int = 2) -> str:
    """Medians, one of each seed, with their intervals."""
    return over_seeds(((each.median, each.interval) for each in found), digits)


OVER_SEEDS = (
    "Median errors, mean differences, Cohen's d and d_z are means of the seeds, with the lowest and the highest end of "
    "the seeds' 95 % bootstrap intervals. p is the largest of the seeds', where they agree on which network is better. "
    "Networks of the same seed are compared. Figures show the medians and quartiles of all seeds together."
)


def versus(
    amounts: str, ours: str, theirs: str, found: Sequence[Comparison], marked: Mapping[float, str] | None = None
) -> str:
    """The table of a comparison: the errors of two networks, and all that tells them apart."""
    rows = [
        [
            f"{each.amount:g}{(marked or {}).get(each.amount, '')}",
            f"{each.effects[0].count}×{len(each.effects)}",
            px(map(summary, each.ours)),
            px(map(summary, each.theirs)),
            over_seeds((effect.difference, effect.difference_interval) for effect in each.effects),
            over_seeds((effect.d, effect.d_interval) for effect in each.effects),
            over_seeds((effect.d_z, effect.d_z_interval) for effect in each.effects),
            "–" if each.p is None else f"{each.p:.1g}",
        ]
        for each in found
    ]
    return table([amounts, "n × seeds", f"{ours}, px", f"{theirs}, px", "difference, px", "d", "d_z", "p"], rows)


def cells_of(found: Covariance) -> list[dict[str, float]]:
    """A covariance matrix as rows of a table, with an interval for every number."""
    error_intervals, share_intervals = found.intervals()
    medians, weights = found.medians, found.weights
    return [
        {
            "channel": channel,
            "amount": amount,
            "matched": int(found.matched[j] == i),
            "n": found.counts[j],
            "median_px": round(medians[i, j], 4),
            "median_interval_low_px": round(error_intervals[i, j, 0], 4),
            "median_interval_high_px": round(error_intervals[i, j, 1], 4),
            "mean_share": round(weights[i, j], 4),
            "share_interval_low": round(share_intervals[i, j, 0], 4),
            "share_interval_high": round(share_intervals[i, j, 1], 4),
        }
        for i, channel in enumerate(found.channels)
        for j, amount in enumerate(found.amounts)
    ]


def between(interval: tuple[float, float], digits: int = 2) -> str:
    low, high = interval
    return f"{low:.{digits}f} to {high:.{digits}f}"


def provenance(results: Results) -> str:
    """What the numbers were made by."""
    made = results["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    training = f", with {made['seconds']:.0f} s of training" if made["seconds"] else ""
    return f"Made on {made['date']} by `{made['command']}` on {made['device']}{training} ({versions}).\n"


def chance(results: Results) -> str:
    """What always saying the mean place would give."""
    found = store.chance_of(results)
    return f"Always saying the mean place gives {px([found], 1)} px (median and 95 % interval, n = {found.count})"


SURELY = (
    "*Surely*: in every seed the 95 % bootstrap interval of the mean difference, over test recordings, leaves out 0. "
    "Several comparisons are not corrected for.\n"
)


def write_csv(out: Path, rows: Sequence[Mapping[str, Any]], name: str = "summary.csv") -> None:
    with open(out / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def row_of(found: Summary) -> dict[str, float]:
    """A summary as columns of a table."""
    return {
        "n": found.count,
        "mean_px": round(found.mean, 4),
        "sd_px": round(found.sd, 4),
        "median_px": round(found.median, 4),
        "quartile_low_px": round(found.quartiles[0], 4),
        "quartile_high_px": round(found.quartiles[1], 4),
        "median_interval_low_px": round(found.interval[0], 4),
        "median_interval_high_px": round(found.interval[1], 4),
    }


def write_report(report: Callable[[Results, Path], str], results: Results, out: Path | str) -> Path:
    """Let a study draw its figures and tables into a folder, and write what it says."""
    from matplotlib import rc_context

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context(STYLE):
            text = report(results, folder)
        (folder / "report.md").write_text(text, "utf-8")
    except OSError as error:
        raise GerdError(f"{folder}: cannot be written: {error.strerror}") from None
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise GerdError(f"{folder}: results.json is not what this version writes ({error!r})") from error
    return folder / "report.md"


def new_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, out: Path, name: str) -> str:
    """Write NAME.png and NAME.svg; the line that shows it in a report."""
    for kind in ("png", "svg"):
        save_figure(figure, out / f"{name}.{kind}", kind)
    return f"![{name}]({name}.png)\n"


def draw_curves(
    ax: Axes, curves: Mapping[str, Curve], *, label: str, even: bool = False, marked: str = "training"
) -> None:
    """Medians with quartiles against the amount; the level of chance is marked, and the amount of the training.

    Where the curves differ in their training, each amount is marked in the colour of its curve. The axis is
    logarithmic where all amounts are positive, or has `even` distances between them.
    """
    from matplotlib.ticker import LogLocator

    amounts = next(iter(curves.values())).amounts
    places: list[float] = list(range(len(amounts))) if even else list(amounts)
    shared = len({curve.trained for curve in curves.values()}) == 1
    for number, (name, curve) in enumerate(curves.items()):
        found = curve.summaries
        colour = ACTORS[number % len(ACTORS)]
        ax.plot(places, [each.median for each in found], color=colour, marker="o", markersize=3, label=name)
        low, high = zip(*(each.quartiles for each in found), strict=True)
        ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        if curve.trained in amounts and (number == 0 or not shared):
            place = places[amounts.index(curve.trained)]
            label_once, tone = (marked, "0.3") if shared else (None, colour)
            ax.axvline(place, color=tone, linewidth=0.8, linestyle=":", zorder=1, label=label_once)
    chance = next(iter(curves.values())).chance
    if chance is not None:
        ax.axhline(chance.median, color="0.5", linewidth=0.8, linestyle="--", label="chance")
    if not even and min(amounts) > 0:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(places, [f"{amount:g}" for amount in amounts])
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter("")
    ax.set(xlabel=label, ylabel="error in px: median, quartiles")
    ax.legend(fontsize=6, frameon=False)


def draw_matrix(ax: Axes, values: Any, found: Covariance, *, title: str, digits: int = 1, best: Sequence[int]) -> None:
    """Channels against amounts: the matched channel has a frame, the best one a bold number."""
    table = np.asarray(values)
    ax.imshow(table, aspect="auto", cmap="viridis_r" if digits == 1 else "viridis")
    middle = (table.max() + table.min()) / 2
    for (channel, column), value in np.ndenumerate(table):
        dark = (value > middle) == (digits == 1)
        weight = "bold" if best[column] == channel else "normal"
        text = f"{value:.{digits}f}"
        ax.text(column, channel, text, ha="center", va="center", fontsize=6, weight=weight, color="w" if dark else "k")
    from matplotlib.patches import Rectangle

    for column, channel in enumerate(found.matched):
        ax.add_patch(Rectangle((column - 0.5, channel - 0.5), 1, 1, fill=False, edgecolor="#d55e00", linewidth=1.5))
    ax.set_xticks(range(len(found.amounts)), [f"{amount:g}" for amount in found.amounts])
    ax.set_yticks(range(len(found.channels)), [f"{channel:g}" for channel in found.channels])
    ax.set_title(title, fontsize=8)

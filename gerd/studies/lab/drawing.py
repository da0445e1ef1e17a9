"""What reports are made of: tables in Markdown and CSV, curves and matrices as PNG and SVG."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gerd.errors import GerdError, counted
from gerd.measures.curves import Covariance, Curve, Invariance, Number
from gerd.measures.statistics import Summary, summary
from gerd.pictures.colours import SERIES
from gerd.pictures.figure import STYLE
from gerd.pictures.figure import save as save_figure
from gerd.studies.lab.comparison import Comparison
from gerd.studies.lab.results import Results, Sweep
from gerd.studies.lab.training import Size
from gerd.studies.models import Layers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Found = TypeVar("Found")  # what a report is drawn from
MATCHED = SERIES[1]  # the colour of a matched channel's frame


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def over_seeds(numbers: Iterable[Number], digits: int = 2) -> str:
    """Numbers with their intervals, one of each seed: the mean, and the lowest and the highest end."""
    values, intervals = zip(*numbers, strict=True)
    low = min(interval[0] for interval in intervals)
    high = max(interval[1] for interval in intervals)
    return f"{sum(values) / len(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def capitalised(words: str) -> str:
    """The words with a capital at the beginning, and otherwise as they were."""
    return words[:1].upper() + words[1:]


def px(summaries: Iterable[Summary], digits: int = 2) -> str:
    """Medians, one of each seed, with their intervals."""
    return over_seeds(((each.median, each.interval) for each in summaries), digits)


def ratios(seeds: Sequence[Invariance]) -> str:
    """By which factor the error of a network varies."""
    return over_seeds((each.ratio, each.interval) for each in seeds)


def flatness(seeds: Sequence[Invariance]) -> str:
    """`ratios`, and in how many seeds they say nothing: an error that is that of chance is flat, too."""
    lost = sum(bool(seed.at_chance) for seed in seeds)
    note = f" (at chance at some amount in {lost} of {counted(len(seeds), 'seed')})" if lost else ""
    return ratios(seeds) + note


def verdicts(seeds: Sequence[Invariance], bound: float) -> str:
    """In how many seeds the factor is surely within a bound, surely not, or neither."""
    each = [seed.verdict(bound) for seed in seeds]
    counts = ", ".join(f"{verdict} in {each.count(verdict)}" for verdict in dict.fromkeys(each))
    return f"{counts} of {counted(len(seeds), 'seed')}"


OVER_SEEDS = (
    "Median errors, mean differences, Cohen's d and d_z are means of the seeds, with the lowest and the highest end of "
    "the seeds' 95 % bootstrap intervals. p is the largest of the seeds', where they agree on which network is better. "
    "Networks of the same seed are compared. Figures show the medians and quartiles of all seeds together."
)


def versus(
    amounts: str, ours: str, theirs: str, comparisons: Sequence[Comparison], trained: float | None = None
) -> str:
    """The table of a comparison: the errors of two networks, and all that tells them apart."""
    rows = [
        [
            f"{each.amount:g}{' (training)' * (each.amount == trained)}{' (both at chance)' * each.at_chance}",
            f"{each.effects[0].count}×{len(each.effects)}",
            px(map(summary, each.ours)),
            px(map(summary, each.theirs)),
            over_seeds((effect.difference, effect.difference_interval) for effect in each.effects),
            over_seeds((effect.d, effect.d_interval) for effect in each.effects),
            over_seeds((effect.d_z, effect.d_z_interval) for effect in each.effects),
            "–" if each.p is None else f"{each.p:.1g}",
        ]
        for each in comparisons
    ]
    return table([amounts, "n × seeds", f"{ours}, px", f"{theirs}, px", "difference, px", "d", "d_z", "p"], rows)


def cells_of(matrix: Covariance, **which: object) -> list[dict[str, object]]:
    """A covariance matrix as rows of a table, with an interval for every number; `which` matrix it is comes first."""
    error_intervals, share_intervals = matrix.intervals()
    medians, weights = matrix.medians, matrix.weights
    return [
        {
            **which,
            "channel": channel,
            "amount": amount,
            "matched": int(matrix.matched[j] == i),
            "n": matrix.counts[j],
            **columns("median_px", (medians[i, j], error_intervals[i, j]), "median_interval_{}_px"),
            **columns("mean_share", (weights[i, j], share_intervals[i, j]), "share_interval_{}"),
        }
        for i, channel in enumerate(matrix.channels)
        for j, amount in enumerate(matrix.amounts)
    ]


def columns(name: str, number: Number, ends: str = "", digits: int = 4) -> dict[str, float]:
    """A number with its interval as columns of a table; `ends` is how the columns of the interval are called."""
    value, (low, high) = number
    ends = ends or name + "_{}"
    values = {name: value, ends.format("low"): low, ends.format("high"): high}
    return {column: round(each, digits) for column, each in values.items()}


def assembled(
    results: Results,
    title: str,
    setting: str,
    conclusions: Sequence[str],
    *parts: str,
    full: Size,
    opening: Sequence[str] = (),
    figure: str = "",
) -> str:
    """A report: the question, what was done, what made the numbers, what follows, and the parts of this study.

    Before all that come the sentences of the opening and a figure, if there are any. A smoke run has nothing from which
    anything could follow, and says so; so does a run that has less of something than the study at its size, `full`.
    """
    conclusive = results.settings.size.conclusive
    lines = [f"# {title}\n"]
    if not conclusive:
        lines.append(f"> **{SMOKE}**\n")
    elif less := smaller(results, full):
        lines.append(f"> **{less}**\n")
    if results.missing:
        lines.append(f"> **Not finished: {counted(results.missing, 'network')} missing.**\n")
    if conclusive and opening:
        lines.append(" ".join(opening) + "\n")
    if figure:
        lines.append(figure)
    lines += [setting, provenance(results)]
    if conclusive:
        lines += ["## Conclusions\n", *(f"- {line}" for line in conclusions)]
        if any("surely" in line for line in [*opening, *conclusions]):
            lines.append(SURELY)
    return "\n".join([*lines, *parts])


def smaller(results: Results, full: Size) -> str:
    """What these results have less of than the study at its full size; empty where they have nothing less."""
    size = results.settings.size
    amounts = [
        (size.side, full.side, "pixels along a side of the frame"),
        (size.training, full.training, "recordings for training"),
        (size.validation, full.validation, "recordings for validation"),
        (size.tests, full.tests, "recordings for each test"),
        (size.updates, full.updates, "updates of each network"),
        (size.seeds, full.seeds, "seeds"),
    ]
    less = [f"{here} {what} in place of {there}" for here, there, what in amounts if here < there]
    if sum(size.layers.widths) < sum(full.layers.widths):
        less.append("layers of {} features in place of {}".format(*(_chain(each.layers) for each in (size, full))))
    if missing := [model for model in full.models if size.models and model not in size.models]:
        less.append(f"without {'; '.join(missing)}")
    if not less:
        return ""
    study = f"gerd study {results.settings.study}"
    return f"Smaller than the study itself: {', '.join(less)}. `{study}` at its full size was not run for this report."


def _chain(layers: Layers) -> str:
    return " → ".join(map(str, layers.widths))


def provenance(results: Results) -> str:
    """What made the numbers: the command, the digest of its config, the versions, the machine."""
    made = results.made
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    training = f", with {made.seconds:.0f} s of training" if made.seconds else ""
    return (
        f"Made on {made.date} by `{made.command}`, config `{results.settings.digest}` ({versions}), on "
        f"{made.device}{training}.\n"
    )


def chance(results: Results) -> str:
    """What the best answer that looks at nothing would give."""
    errors = results.chance
    given = f"{px([errors], 1)} px (median and 95 % interval, n = {errors.count})"
    return f"The best answer that is the same for every recording gives {given}"


SMOKE = "A smoke run: numbers mean nothing. It shows that the study runs, and nothing follows from it."
SURELY = (
    "\n*Surely*: in every seed the 95 % bootstrap interval of the mean difference, over test recordings, leaves out 0. "
    "Several comparisons are not corrected for.\n"
)


def write_csv(out: Path, rows: Sequence[Mapping[str, object]], name: str = "summary.csv") -> None:
    with open(out / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def row_of(errors: Summary) -> dict[str, float]:
    """A summary as columns of a table."""
    return {
        "n": errors.count,
        "mean_px": round(errors.mean, 4),
        "sd_px": round(errors.sd, 4),
        **columns("median_px", (errors.median, errors.quartiles), "quartile_{}_px"),
        **columns("median_px", (errors.median, errors.interval), "median_interval_{}_px"),
    }


def rows_of(results: Results, model: str, sweep: Sweep, amount: str, **which: str) -> list[dict[str, object]]:
    """The errors of one model as rows of a table, in which `amount` is the name of a column; `which` comes first."""
    return [
        {**which, "model": model, "seed": run.seed, amount: value, **row_of(summary(errors))}
        for run in results.of(model)
        for value, errors in zip(run.test(sweep).amounts, run.test(sweep).errors, strict=True)
    ]


def write_report(report: Callable[[Found, Path], str], results: Found, out: Path | str) -> Path:
    """Let a study draw its figures and tables into a folder, and write what it says, as Markdown and as one page."""
    from matplotlib import rc_context

    from gerd.pictures.report import as_html

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context({**STYLE, "svg.fonttype": "none"}):  # letters as text: smaller, and a reader can select them
            text = report(results, folder)
        (folder / "report.md").write_text(text, "utf-8")
        (folder / "page.html").write_text(as_html(text, folder), "utf-8")
    except OSError as error:
        raise GerdError(f"{folder}: cannot be written: {error.strerror}") from None
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
    ax: Axes,
    curves: Mapping[str, Curve],
    *,
    xlabel: str,
    even: bool = False,
    marked: str = "training",
    among: Sequence[str] = (),
) -> None:
    """Medians with quartiles against the amount; the level of chance is marked, and the amount of the training.

    Where the curves differ in their training, each amount is marked in the colour of its curve. The axis is
    logarithmic where all amounts are positive, or has `even` distances between them. `among` are all names that a
    figure may have, so that each has its colour everywhere.
    """
    from matplotlib.ticker import LogLocator

    amounts = next(iter(curves.values())).amounts
    along: list[float] = list(range(len(amounts))) if even else list(amounts)  # where each amount lies on the axis
    shared = len({curve.trained for curve in curves.values()}) == 1
    for number, (name, curve) in enumerate(curves.items()):
        summaries = curve.summaries
        colour = SERIES[(among.index(name) if among else number) % len(SERIES)]
        ax.plot(along, [each.median for each in summaries], color=colour, marker="o", markersize=3, label=name)
        low, high = zip(*(each.quartiles for each in summaries), strict=True)
        ax.fill_between(along, low, high, color=colour, alpha=0.15, linewidth=0)
        if curve.trained in amounts and (number == 0 or not shared):
            at = along[amounts.index(curve.trained)]
            label_once, tone = (marked, "0.3") if shared else (None, colour)
            ax.axvline(at, color=tone, linewidth=0.8, linestyle=":", zorder=1, label=label_once)
    if chance := next(iter(curves.values())).chance:
        ax.plot(along, [np.median(each) for each in chance], color="0.5", linewidth=0.8, ls="--", label="chance")
    if not even and min(amounts) > 0:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(along, [f"{amount:g}" for amount in amounts])
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter("")
    ax.set(xlabel=xlabel, ylabel="error in px: median, quartiles")
    ax.legend(fontsize=6, frameon=False)


def draw_covariance(left: Axes, right: Axes, matrix: Covariance, name: str, ylabel: str) -> None:
    """Channels against amounts, on the left their errors and on the right their shares."""
    left.set_title(f"{name}: median error, px", fontsize=8)
    right.set_title(f"{name}: mean share", fontsize=8)
    _draw_table(left, matrix.medians, matrix, matrix.best, digits=1, colours="viridis_r", dark_is_high=True)
    _draw_table(right, matrix.weights, matrix, matrix.selected, digits=2, colours="viridis", dark_is_high=False)
    left.set_yticks(range(len(matrix.channels)), [f"{channel:.3g}" for channel in matrix.channels])
    left.set_ylabel(ylabel)
    right.set_yticks([])


def _draw_table(
    ax: Axes,
    table: NDArray[np.float64],
    matrix: Covariance,
    best: Sequence[int],
    *,
    digits: int,
    colours: str,
    dark_is_high: bool,
) -> None:
    """A table in which the matched channel of each amount has a frame, and the best one a bold number."""
    from matplotlib.patches import Rectangle

    ax.imshow(table, aspect="auto", cmap=colours)
    middle = (table.max() + table.min()) / 2
    for (channel, column), value in np.ndenumerate(table):
        colour = "w" if (value > middle) == dark_is_high else "k"
        weight = "bold" if best[column] == channel else "normal"
        text = f"{value:.{digits}f}"
        ax.text(column, channel, text, ha="center", va="center", fontsize=6, weight=weight, color=colour)
    for column, channel in enumerate(matrix.matched):
        frame = Rectangle((column - 0.5, channel - 0.5), 1, 1, fill=False, edgecolor=MATCHED, linewidth=1.5)
        ax.add_patch(frame)
    ax.set_xticks(range(len(matrix.amounts)), [f"{amount:g}" for amount in matrix.amounts])

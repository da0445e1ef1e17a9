"""The page of a run: what it has found, in sentences, a figure and tables, as Markdown and as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gerd.bench.results import BOUND, LEARNT, BenchResult, FactorResult, LieResult, Number
from gerd.bench.task_table import task
from gerd.errors import counted
from gerd.measures.curves import Verdict
from gerd.pictures.colours import SERIES
from gerd.studies.lab import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERDICTS: tuple[Verdict, ...] = ("invariant", "not invariant", "undecided", "at chance", "too few recordings")
ACROSS = 5  # panels of the figure
LEAKS = (
    "What a network has seen in its training cannot be told from its answers: one that was trained with the amounts of "
    "the test looks better than it is, and nothing here notices it."
)


def write_page(result: BenchResult, out: Path | str) -> Path:
    """Write report.md, page.html and the figure into a folder; where the page is."""
    return drawing.write_report(report, result, out).with_name("page.html")


def report(result: BenchResult, out: Path) -> str:
    """The page as Markdown; its figure is drawn into the folder."""
    about = task(result.task)
    parts = [
        f"# {result.model} on {result.task}\n",
        *_warnings(result),
        f"{about.title} {_opening(result)}\n",
        _figure(result, out),
        "Mean errors, with 95 % intervals over the recordings; thin lines are single seeds. Dashed: chance, the best "
        "answer that is the same for every recording. Shaded: the amounts that the training has seen. Crosses: at "
        "chance.\n",
        "## Factors\n",
        _factors(result),
        f"The error: {about.error}. max/min is the largest mean error over the smallest; *invariant* means that its "
        f"whole interval is at most {BOUND:g}, *not invariant* that it is all above. A network is *at chance* where "
        f"its mean error is not surely below {LEARNT:g} of that of chance for every seed; if it is so with nothing "
        "changed, nothing else is said of it.\n",
        _transformation_error(result),
        "## Local equivariance error\n",
        _lie(result),
        "## What it takes\n",
        _cost(result),
        "## Seeds\n",
        _seeds(result),
        "## Every number\n",
        _numbers(result),
        "## How it was made\n",
        _made(result),
    ]
    return "\n".join(parts)


def _warnings(result: BenchResult) -> list[str]:
    lines = []
    if result.quick:
        lines.append("> **Quick: small splits of its own, the outermost amounts only, no place in the table.**\n")
    if result.is_at_chance:
        lines.append(
            "> **At chance: with nothing changed, the error is not surely below that of an answer that looks at "
            "nothing. What follows says nothing about symmetries.**\n"
        )
    return lines


def _opening(result: BenchResult) -> str:
    unit = _unit(result)
    found = {verdict: [each for each in result.factors if each.verdict == verdict] for verdict in VERDICTS}
    said = "; ".join(f"{verdict}: {_those(result, factors)}" for verdict, factors in found.items() if factors)
    seeds = "" if len(result.seeds) == 1 else f", {counted(len(result.seeds), 'seed')}"
    return (
        f"{_training(result)}{seeds}. With nothing changed the mean error is "
        f"**{_with_ends(result.neutral)}{unit}**; that of chance is {result.chance:.3g}{unit}. "
        f"{drawing.capitalised(said)}."
    )


def _training(result: BenchResult) -> str:
    """What the network was trained with, as far as it is known."""
    if not result.cost.parameters:
        return "Without weights"
    seen = "nothing changed" if result.regime == "one" else "the inner amounts, too"
    return f"Trained with {seen}" if result.seeds[0].validation else f"Trained elsewhere, as its owner says with {seen}"


def _those(result: BenchResult, factors: Sequence[FactorResult]) -> str:
    if len(factors) == len(result.factors):
        return "every factor"
    return ", ".join(_words(each.factor) for each in factors)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _unit(result: BenchResult) -> str:
    return f" {result.unit}" if result.unit else ""


def _with_ends(number: Number) -> str:
    low, high = number.interval
    return f"{_short(number.value)} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    return "∞" if value >= 1e6 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _named(factor: FactorResult) -> str:
    name = _words(factor.factor)
    return f"{name}, {factor.unit}" if factor.unit else name


def _listed(amounts: Sequence[float]) -> str:
    return ", ".join(f"{amount:g}" for amount in amounts) or "–"


def _factors(result: BenchResult) -> str:
    rows = []
    for each in result.factors:
        values = [number.value for number in each.errors]
        best, worst = (each.amounts[values.index(pick(values))] for pick in (min, max))
        rows.append(
            [
                _named(each),
                f"{_short(min(values))} at {best:g}",
                f"{_short(max(values))} at {worst:g}",
                _with_ends(each.ratio),
                each.verdict,
                _listed(each.at_chance),
            ]
        )
    return drawing.table(["factor", "smallest", "largest", "max/min", "verdict", "at chance at"], rows)


def _transformation_error(result: BenchResult) -> str:
    if result.transformation_error is None:
        return f"{drawing.capitalised(str(result.why_no_transformation_error))}.\n"
    return f"Mean transformation error (mTE): **{_with_ends(result.transformation_error)}**.\n"


def _lie(result: BenchResult) -> str:
    every = [lie for seed in result.seeds for lie in seed.lie]
    if not every:
        return "There is none: answers to single events have none.\n"
    rows = []
    for name, layer in dict.fromkeys((lie.generator, lie.layer) for lie in every):
        found = [lie for lie in every if (lie.generator, lie.layer) == (name, layer)]
        relative = [lie.relative for lie in found if lie.relative is not None]
        rows.append(
            [
                *([layer or "answer"] if any(lie.layer for lie in every) else []),
                _words(name),
                found[0].unit,
                drawing.over_seeds(((lie.absolute.value, lie.absolute.interval) for lie in found), 3),
                drawing.over_seeds(((each.value, each.interval) for each in relative), 3) if relative else "–",
                _why(found),
            ]
        )
    heads = ["generator", "per unit", f"size{f', {result.unit}' * bool(result.unit)}", "relative", "note"]
    whose = ["layer"] if any(lie.layer for lie in every) else []
    return drawing.table([*whose, *heads], rows) + (
        "\nHow fast the answer leaves that of a network which follows the scene, by differences of scenes that are "
        "rendered anew: 0 is equivariant. *Relative* is in units of what answers to different recordings differ by. "
        "Means of the seeds, with the lowest and the highest end of their intervals.\n"
    )


def _why(found: Sequence[LieResult]) -> str:
    reasons = dict.fromkeys(lie.why_nothing for lie in found if lie.why_nothing)
    return "; ".join(reasons)


def _cost(result: BenchResult) -> str:
    cost = result.cost
    rows = [
        ["parameters", f"{cost.parameters}"],
        ["operations per recording", _thousands(cost.operations)],
        ["time per recording", f"{1000 * cost.seconds:.3g} ms ({cost.machine})"],
    ]
    return drawing.table(["", ""], rows) + (
        f"\nA recording has {cost.steps} steps; time is that of batches of {cost.batch}, the least of some rounds. "
        "Operations are those of convolutions and matrix products, two for each multiplication with an addition.\n"
    )


def _thousands(number: int) -> str:
    for power, name in ((9, "billion"), (6, "million"), (3, "thousand")):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {name}"
    return str(number)


def _seeds(result: BenchResult) -> str:
    first = result.factors[0]
    at = first.amounts.index(first.neutral)
    rows = [
        [
            str(seed.seed),
            _with_ends(first.of_seeds[number][at]),
            _best_pass(seed.validation),
            f"{seed.seconds:.0f} s" if seed.seconds else "–",
            f"`{seed.weights[:16]}…`",
        ]
        for number, seed in enumerate(result.seeds)
    ]
    heads = ["seed", f"error{f', {result.unit}' * bool(result.unit)}", "best pass", "training", "sha256 of the weights"]
    return drawing.table(heads, rows)


def _best_pass(validation: Sequence[float]) -> str:
    return f"{validation.index(min(validation)) + 1} of {len(validation)}" if validation else "–"


def _numbers(result: BenchResult) -> str:
    rows = [
        [
            _named(each),
            f"{amount:g}{' (neutral)' * (amount == each.neutral)}",
            _with_ends(error),
            _short(chance),
            "at chance" * (amount in each.at_chance),
            str(error.count),
        ]
        for each in result.factors
        for amount, error, chance in zip(each.amounts, each.errors, each.chance, strict=True)
    ]
    return drawing.table(["factor", "amount", "error", "chance", "", "recordings"], rows)


def _made(result: BenchResult) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.made.versions.items())
    recordings = sum(split.count for split in result.splits)
    return (
        f"Made on {result.made.date} by `{result.made.command}` ({versions}; device {result.made.device}). The sha256 "
        f"of all {counted(len(result.splits), 'split')}, {recordings} recordings, are those of {result.benchmark}. "
        f"{LEAKS}\n"
    )


def _figure(result: BenchResult, out: Path) -> str:
    """A panel for each factor."""
    down = -(-len(result.factors) // ACROSS)
    figure = drawing.new_figure(10, 2.0 * down + 0.2)
    panels = figure.subplots(down, ACROSS, squeeze=False, sharey=True).ravel()
    for panel, factor in zip(panels, result.factors, strict=False):
        _draw(panel, factor)
    largest = max([result.chance, *(number.value for factor in result.factors for number in factor.errors)])
    panels[0].set_ylim(0, 1.15 * largest)  # of all panels
    for panel in panels[len(result.factors) :]:
        panel.set_axis_off()
    for panel in panels[::ACROSS]:
        panel.set_ylabel(f"error{f', {result.unit}' * bool(result.unit)}", fontsize=7)
    return drawing.save(figure, out, "factors")


def _draw(ax: Axes, factor: FactorResult) -> None:
    """Errors against amounts, which are as far apart as each other; the axis begins at 0."""
    along = range(len(factor.amounts))
    values = [each.value for each in factor.errors]
    low, high = zip(*(each.interval for each in factor.errors), strict=True)
    seen = [at for at, amount in enumerate(factor.amounts) if amount in factor.trained]
    ax.axvspan(seen[0] - 0.4, seen[-1] + 0.4, color="0.93", zorder=0)
    ax.plot(along, factor.chance, color="0.45", linewidth=0.9, linestyle="--")
    if len(factor.of_seeds) > 1:
        for numbers in factor.of_seeds:
            ax.plot(along, [each.value for each in numbers], color=SERIES[0], linewidth=0.5, alpha=0.5)
    ax.fill_between(along, low, high, color=SERIES[0], alpha=0.2, linewidth=0)
    ax.plot(along, values, color=SERIES[0], marker="o", markersize=3)
    lost = [at for at, amount in enumerate(factor.amounts) if amount in factor.at_chance]
    ax.plot(lost, [values[at] for at in lost], "x", color=SERIES[1], markersize=6, markeredgewidth=1.4)
    ax.set_xticks(list(along), [f"{amount:g}" for amount in factor.amounts], fontsize=6, rotation=60)
    ax.tick_params(axis="y", labelsize=6)
    ax.set_title(f"{_named(factor)}: {factor.verdict}", fontsize=7)

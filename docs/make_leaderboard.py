"""What docs/leaderboard.md says, from the results in docs/bench/results; `make_reference.py` writes it.

Each file is held against the benchmark as `gerd bench check` does without weights: what is wrong with one is an error,
and there is no page with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gerd import bench
from gerd.bench.checking import check
from gerd.bench.results import BenchResult, Number
from gerd.errors import GerdError
from gerd.studies.lab.drawing import table

RESULTS = Path(__file__).parent / "bench" / "results"
REGIMES = {"one": "trained with nothing changed", "inner": "trained with the inner amounts, too"}
INTRODUCTION = """\
# Leaderboard

<!-- Written by docs/make_leaderboard.py from the files in docs/bench/results: add one, then run `make docs`. -->

Networks on [GERD-Bench](bench.md), version 1. The smaller the error the better; what the columns mean stands below, and
[how to submit a result](bench-run.md#submitting) beside it.
"""
NONE = """\
**No result has been submitted yet**, not even of the baselines: results count at full size only, and nobody has run
one. This command makes one, of a baseline or of a network of yours:

```text
gerd bench run --model relu-8 --task locate --train --device cuda
```
"""
COLUMNS = """\
*Error*: the mean with nothing changed, of all seeds, with its bootstrap interval over recordings. *mTE*: the mean over
factors of Σ error / Σ error of the reference network; – where that has not been measured. *Invariant to*, *not to*: the
factors for which max/min is surely at most 1.5, or surely more; for others nothing is sure. *At chance* is a network
that is hardly better than an answer that looks at nothing: then nothing is said of any factor.
"""


def page(folder: Path = RESULTS) -> str:
    """The whole page."""
    results = [_checked(file) for file in sorted(folder.glob("*.json"))]
    if not results:
        return f"{INTRODUCTION}\n{NONE}"
    parts = [INTRODUCTION, COLUMNS]
    for name in bench.tasks():
        for regime, words in REGIMES.items():
            of = [each for each in results if (each.task, each.regime) == (name, regime)]
            if of:
                parts += [f"## {name.capitalize()}, {words}\n", _table(of)]
    return "\n".join(parts)


def _checked(file: Path) -> BenchResult:
    result = check(file, say=lambda _: None)
    if result.quick:
        raise GerdError(f"{file}: is of --quick, which has no place in the table")
    return result


def _table(results: Iterable[BenchResult]) -> str:
    heads = ["model", "seeds", "error", "chance", "mTE", "invariant to", "not to", "parameters", "operations", "made"]
    return table(heads, [_row(each) for each in sorted(results, key=_order)])


def _order(result: BenchResult) -> tuple[bool, float, float]:
    """Those at chance last; by mTE, where there is one, and by error."""
    whole = result.transformation_error
    return result.is_at_chance, float("inf") if whole is None else whole.value, result.neutral.value


def _row(result: BenchResult) -> list[str]:
    unit = f" {result.unit}" if result.unit else ""
    lost = result.is_at_chance
    return [
        f"`{result.model}`",
        str(len(result.seeds)),
        f"{_short(result.neutral)}{unit}{' (at chance)' * lost}",
        f"{result.chance:.3g}{unit}",
        "–" if result.transformation_error is None else _short(result.transformation_error),
        _listed([each.factor for each in result.factors if each.verdict == "invariant"]),
        "–" if lost else _listed([each.factor for each in result.factors if each.verdict == "not invariant"]),
        str(result.cost.parameters),
        f"{result.cost.operations:.3g}",
        f"{result.made.date}, {result.cost.machine}",
    ]


def _short(number: Number) -> str:
    low, high = number.interval
    return f"{number.value:.3g} ({low:.3g} to {high:.3g})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names) or "–"

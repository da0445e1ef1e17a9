"""What `gerd bench list` prints: tables of the tasks, of the factors and of the splits."""

from __future__ import annotations

from rich.table import Table

from gerd.bench.digests import expected_digest
from gerd.bench.factor_table import factors
from gerd.bench.frozen import VERSION
from gerd.bench.split_table import KINDS, Split, splits
from gerd.bench.task_table import task, tasks
from gerd.cli.terminal import Lines
from gerd.errors import counted


def list_benchmark(regime: str, quick: bool) -> None:
    """Print what the benchmark consists of."""
    of_one = splits(tasks()[0], quick, regime)
    console = Lines()
    console.say(f"GERD-Bench, version {VERSION}{': the quick splits, of which no result counts' if quick else ''}")
    questions = _table("tasks", "", "question", "gets", "answer", "error in")
    for about in map(task, tasks()):
        questions.add_row(about.name, about.title, about.item, about.shape, about.unit or "share")
    console.print(questions)
    amounts = _table("factors", "", "unit", "neutral", "inner", "outer: for the test only")
    for each in factors():
        amounts.add_row(each.name, each.unit, f"{each.neutral:g}", _listed(each.inner), _listed(each.outer))
    console.print(amounts)
    sizes = _table(f"splits of each task, in the regime {regime}", "", "splits", "recordings")
    for kind in KINDS:
        chosen = [split for split in of_one if split.kind == kind]
        sizes.add_row(_names(chosen), str(len(chosen)), str(sum(split.count for split in chosen)))
    console.print(sizes)
    console.say("")
    console.say("gerd bench list --task NAME names every split of a task.")


def list_splits(name: str, regime: str, quick: bool) -> None:
    """Print every split of a task."""
    chosen = splits(name, quick, regime)
    console = Lines()
    table = _table(f"{name}: {task(name).title}", "split", "recordings", "steps", "sha256")
    for split in chosen:
        table.add_row(split.name, str(split.count), str(split.steps), f"{expected_digest(split)[:16]}…")
    console.print(table)
    console.say(f"{counted(len(chosen), 'split')}, {counted(sum(split.count for split in chosen), 'recording')}")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("splits", "recordings", "steps") else "left")
    return table


def _listed(amounts: tuple[float, ...]) -> str:
    return " ".join(f"{amount:g}" for amount in amounts)


def _names(chosen: list[Split]) -> str:
    """The name of one split, or of several in short."""
    first = chosen[0].name
    if len(chosen) == 1:
        return first
    return "test, test/FACTOR/AMOUNT" if first == "test" else f"{first}, {first.partition('/')[0]}/FACTOR/AMOUNT"

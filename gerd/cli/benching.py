"""The commands `gerd bench …`: what the benchmark consists of, and its data on disk or made again and compared."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Exit, Option, Typer

from gerd.cli.completing import DEVICES, REGIMES, SPLITS, TASKS, one_of
from gerd.cli.judging import check, run
from gerd.cli.stopping import stoppable
from gerd.cli.terminal import say
from gerd.errors import GerdError, counted, did_you_mean

bench = Typer(
    name="bench",
    help="GERD-Bench: which symmetries a network respects, measured on data that everybody makes for themselves.",
    no_args_is_help=True,
)
bench.command()(run)
bench.command()(check)
TaskName = Annotated[
    str | None, Option("--task", help=f"{', '.join(TASKS)}; default: all.", autocompletion=one_of(*TASKS))
]
Regime = Annotated[
    str,
    Option(
        help="What training sees: one (neutral amounts alone) or inner (the inner ones, too).",
        autocompletion=one_of(*REGIMES),
    ),
]
Quick = Annotated[bool, Option("--quick", help="The smaller splits, of which no result counts.")]
Device = Annotated[str, Option(help="Where to simulate: cpu, cuda, cuda:1 …", autocompletion=one_of(*DEVICES))]


@bench.command("list")
def list_(task: TaskName = None, regime: Regime = "one", quick: Quick = False) -> None:
    """Print the tasks, the factors and the sizes of the splits; with --task every split of that task."""
    from gerd.cli.listing import list_benchmark, list_splits

    if task is None:
        list_benchmark(regime, quick)
    else:
        list_splits(task, regime, quick)


@bench.command()
def make(
    out: Annotated[str, Argument(metavar="DIR", help="The folder to write, or to continue.")],
    task: TaskName = None,
    regime: Regime = "one",
    quick: Quick = False,
    kind: Annotated[
        str | None, Option(help="train, validate or test; default: all three.", autocompletion=one_of(*SPLITS))
    ] = None,
    device: Device = "cpu",
    workers: Annotated[int, Option(min=1, help="Processes.")] = 1,
) -> None:
    """Write splits as datasets, read them again, and compare them with their digests; the same command continues.

    No other command needs them: data are made where they are used. Each split is a dataset in a folder of its own, such
    as DIR/locate/test/rotation/60.
    """
    from gerd.bench.making import make as write
    from gerd.bench.split_table import splits
    from gerd.bench.task_table import tasks
    from gerd.cli.progress import Bar

    if kind not in (None, *SPLITS):
        raise GerdError(f"--kind {kind}: {did_you_mean([kind], SPLITS)}allowed: {', '.join(SPLITS)}")
    every = [split for name in ([task] if task else tasks()) for split in splits(name, quick, regime)]
    wanted = [split for split in every if kind in (None, split.kind)]
    with stoppable(out), Bar("recordings", sum(split.count for split in wanted)) as bar:
        folders = write(out, wanted, device=device, workers=workers, progress=bar)
    same = f"{counted(len(folders), 'split')}, {counted(bar.done, 'recording')}"
    say(f"{out}: {same}, all with the digests of version 1")


@bench.command()
def verify(task: TaskName = None, quick: Quick = False, device: Device = "cpu") -> None:
    """Make all recordings, in memory only, and compare them with their digests; the exit code is 1 if any differs.

    So this machine, and this version of GERD, are known to make the data that others have.
    """
    from gerd.bench.digests import digest, expected_digest
    from gerd.bench.split_table import all_splits
    from gerd.bench.task_table import tasks
    from gerd.cli.progress import Bar

    wanted = [split for name in ([task] if task else tasks()) for split in all_splits(name, quick)]
    differ = 0
    with stoppable("nothing is written"), Bar("recordings", sum(split.count for split in wanted)) as bar:
        for split in wanted:
            found, expected = digest(split, device, bar), expected_digest(split)
            if found != expected:
                differ += 1
                say(f"error: {split.key}: its digest is {found}, and that of version 1 is {expected}", err=True)
    if differ:
        raise Exit(1)
    say(f"{counted(len(wanted), 'split')}, {counted(bar.done, 'recording')}: all with the digests of version 1")

"""The commands `gerd bench run` and `gerd bench check`: options in; results, or what is wrong with some, out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from gerd.cli.completing import BASELINES, DEVICES, REGIMES, TASKS, one_of
from gerd.cli.stopping import stoppable
from gerd.cli.terminal import say
from gerd.errors import GerdError, did_you_mean

if TYPE_CHECKING:
    from gerd.bench.running import Wish

SEEDS = 5  # networks, of a full run
Device = Annotated[str, Option(help="Where to compute: cpu, cuda, cuda:1 …", autocompletion=one_of(*DEVICES))]


def run(
    model: Annotated[
        str,
        Option(
            metavar="NAME|MODULE:BUILD",
            help=f"A baseline ({', '.join(BASELINES)}), or a function that builds your network.",
            autocompletion=one_of(*BASELINES),
        ),
    ],
    task: Annotated[str, Option(help=f"{', '.join(TASKS)}.", autocompletion=one_of(*TASKS))] = "locate",
    checkpoint: Annotated[
        list[Path] | None,
        Option(metavar="PATH", help="Its weights, a state dict; repeat it for networks of several seeds."),
    ] = None,
    train: Annotated[bool, Option("--train", help="Train it first, by the recipe of the benchmark.")] = False,
    regime: Annotated[
        str,
        Option(
            help="What the training has seen: one (neutral amounts alone) or inner (the inner ones, too).",
            autocompletion=one_of(*REGIMES),
        ),
    ] = "one",
    seeds: Annotated[
        int | None, Option(min=1, help="Networks that are trained; default: 5, and with --quick 1.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="The smaller splits: minutes, and no place in the table.")] = False,
    layer: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Measure the local equivariance error of this layer, too; repeatable."),
    ] = None,
    device: Device = "cpu",
    out: Annotated[Path | None, Option(help="The folder to write or continue; default: out/bench/TASK-MODEL.")] = None,
    minutes: Annotated[float | None, Option(help="Stop after this time; the same command continues.")] = None,
) -> None:
    """Measure which symmetries a network respects; writes results.json and a page. Run it again to continue.

    A network of yours is a torch module. It gets frames as float32 (recordings, steps, 2, 64, 64), 1 where there is an
    event, OFF before ON; of flow and noise a mapping of tensors: x, y, t (microseconds), p of all events, and offsets,
    so that recording i has the events from offset i to offset i + 1. `gerd bench list --task TASK` says what it has to
    answer, and the first thing that this command does is to try it.
    """
    from gerd.bench.report import write_page
    from gerd.bench.running import Wish
    from gerd.bench.running import run as compute
    from gerd.events.backends import check_device

    if regime not in REGIMES:
        raise GerdError(f"regime {regime!r}: {did_you_mean([regime], REGIMES)}allowed: {', '.join(REGIMES)}")
    if train and checkpoint:
        raise GerdError("--train, --checkpoint: allowed: one of them")
    if seeds is not None and not train:
        raise GerdError("--seeds: goes with --train; of networks that are trained repeat --checkpoint")
    check_device(device)
    number = seeds or (SEEDS if train and not quick else 1)
    files = tuple(checkpoint or ())
    chosen: Any = regime
    wish = Wish(task, model, chosen, quick, number, train, files, tuple(layer or ()), device)
    wish = replace(wish, command=_command(wish))
    folder = out or Path("out") / "bench" / _named(wish)
    with stoppable(folder):
        result = compute(wish, folder, minutes=minutes, say=partial(print, file=sys.stderr, flush=True))
        page = write_page(result, folder)
    say(f"wrote {folder / 'results.json'} and {page}")


def check(
    results: Annotated[Path, Argument(metavar="RESULTS", help="A results.json.")],
    checkpoint: Annotated[
        Path | None, Option(help="Weights of one of its seeds: compute a random part of the numbers again.")
    ] = None,
    model: Annotated[
        str | None, Option(metavar="MODULE:BUILD", help="What builds the network, if it is called otherwise here.")
    ] = None,
    part: Annotated[int, Option(min=1, help="How many numbers are computed again.")] = 3,
    seed: Annotated[int | None, Option(min=0, help="Which: the same seed, the same ones.")] = None,
    device: Device = "cpu",
) -> None:
    """Check results: are the data those of the benchmark, can the numbers be true, are they so again (with weights)?"""
    from gerd.bench.checking import check as hold_against

    hold_against(results, checkpoint, model=model, part=part, seed=seed, device=device, say=say)


def _named(wish: Wish) -> str:
    """The name of a run's folder."""
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in wish.model)
    regime = [wish.regime] if wish.regime != "one" else []
    return "-".join([wish.task, plain, *regime, *(["quick"] if wish.quick else [])])


def _command(wish: Wish) -> str:
    """The command that gives the same numbers; of files their names alone."""
    words = ["gerd", "bench", "run", "--model", wish.model, "--task", wish.task]
    words += [word for file in wish.checkpoints for word in ("--checkpoint", file.name)]
    if wish.training:
        words += ["--train", "--seeds", str(wish.seeds)]
    if wish.regime != "one":
        words += ["--regime", wish.regime]
    if wish.quick:
        words.append("--quick")
    words += [word for each in wish.layers for word in ("--layer", each)]
    return shlex.join([*words, *(["--device", wish.device] if wish.device != "cpu" else [])])

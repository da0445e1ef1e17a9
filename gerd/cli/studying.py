"""The command of `gerd` that trains and tests networks: options in; a folder with a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from gerd.cli.completing import DEVICES, STUDIES, configs, one_of
from gerd.cli.sources import load_config
from gerd.cli.stopping import stoppable
from gerd.cli.terminal import say
from gerd.errors import GerdError


def study(
    context: Context,
    name: Annotated[
        str | None,
        Argument(
            help="The study: demonstration, timescale, covariance, noise, symmetry, camera or receptive-fields.",
            autocompletion=one_of(*STUDIES),
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="The folder to write or continue; default: out/NAME.")] = None,
    from_: Annotated[
        Path | None, Option("--from", metavar="DIR", help="Only write the report of this folder again.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="A small study: minutes on two cores instead of a GPU.")] = False,
    smoke: Annotated[bool, Option("--smoke", help="A tiny study: seconds, to see that it runs.")] = False,
    device: Annotated[
        str, Option(help="Where to compute: cpu, cuda, cuda:1 …", autocompletion=one_of(*DEVICES))
    ] = "cpu",
    seed: Annotated[int, Option(min=0, max=2**31, help="Seed of the recordings and the networks.")] = 0,
    epochs: Annotated[int | None, Option(min=1, help="Epochs of training.")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Number of networks of each kind.")] = None,
    minutes: Annotated[float | None, Option(help="Stop after so many minutes; the same command continues.")] = None,
    model: Annotated[
        str | None, Option(metavar="MODULE:BUILD", help="For symmetry: the function that builds your network.")
    ] = None,
    checkpoint: Annotated[Path | None, Option(help="For --model: its weights, a state dict.")] = None,
    config: Annotated[
        Path | None, Option(metavar="CONFIG", help="For symmetry: a config with other stimuli.", autocompletion=configs)
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set", metavar="NAME=VALUE", help="For demonstration: a setting that the paper leaves open; repeatable."
        ),
    ] = None,
    help_: Annotated[
        bool, Option("-h", "--help", help="Show this message, and after NAME what that study does.")
    ] = False,
) -> None:
    """Measure which symmetries networks respect: train, test, write a report. Run it again to continue."""
    from gerd.studies.lab.running import OwnOptions, about, run_study

    if help_:
        say(context.get_help() + (f"\n{about(name)}" if name else ""))
        return
    if quick and smoke:
        raise GerdError("--quick, --smoke: allowed: one of them")
    size = "smoke" if smoke else "quick" if quick else "full"
    own: OwnOptions = {
        "model": model,
        "checkpoint": checkpoint,
        "config": None if config is None else load_config(config, None, False),
        "set": set_ or None,
    }
    with stoppable(out or "its folder"):
        report = run_study(
            name, out, from_, size, {"epochs": epochs, "seeds": seeds}, device=device, seed=seed, minutes=minutes, **own
        )
    say(f"wrote {report}")

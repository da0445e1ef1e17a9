"""The commands of `gerd` for those who publish a dataset, or a recipe of it, and for those who make it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gerd.cli.options import DatasetFolder
from gerd.cli.stopping import stoppable
from gerd.cli.terminal import say
from gerd.errors import counted


def card(
    dataset: DatasetFolder,
    name: Annotated[str, Option(help="Name of the dataset; default: that of its folder.")] = "",
    license_: Annotated[
        str, Option("--license", help="SPDX name of the licence, such as CC-BY-4.0, or its address.")
    ] = "",
    by: Annotated[list[str] | None, Option(metavar="NAME", help="Who made the dataset; repeatable.")] = None,
    url: Annotated[str, Option(help="Address where the dataset can be found.")] = "",
    published: Annotated[str, Option(metavar="DAY", help="Day of publication, such as 2026-11-19.")] = "",
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Where to write; default: into the dataset's folder.")
    ] = None,
    replace: Annotated[bool, Option("--replace", help="Replace files that exist already.")] = False,
) -> None:
    """Describe a dataset to people and programs, for publication: write README.md and croissant.json.

    Both follow from the dataset, except the name, the licence, the authors, the address and the day.
    """
    from gerd.exchange.card import write_card

    written = write_card(
        dataset,
        name=name,
        license=license_,
        creators=by or (),
        url=url,
        published=published,
        out=out,
        replace=replace,
    )
    say(f"wrote {' and '.join(map(str, written))}")


def recipe(
    dataset: DatasetFolder,
    out: Annotated[Path, Argument(metavar="RECIPE", help="The file to write.")],
) -> None:
    """Write the recipe of a dataset: a small file from which gerd make can make the same dataset anywhere."""
    from gerd.cli.words import in_bytes
    from gerd.storage.recipe import write_recipe

    written = write_recipe(dataset, out)
    size = in_bytes(out.stat().st_size)
    say(f"wrote {out}: {size} for {counted(written.manifest.recordings, 'recording')}")


def make(
    file: Annotated[Path, Argument(metavar="RECIPE", help="The file that gerd recipe has written.")],
    out: Annotated[str, Argument(metavar="OUT", help="The folder or URL (s3://…) to write, or to continue.")],
    workers: Annotated[int | None, Option(min=1, help="Processes; default: as many as there are cores.")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 …; default: cpu.")] = None,
) -> None:
    """Make the dataset of a recipe, and compare every file and every recording; run it again to continue.

    A recipe runs no code: it contains the values of all Python functions.
    """
    from gerd.cli.progress import Bar
    from gerd.storage.recipe import make as made
    from gerd.storage.recipe import read_recipe

    with stoppable(out), Bar("recordings", read_recipe(file).manifest.recordings) as bar:
        data = made(file, out, workers=workers, device=device, progress=bar)
    say(f"{out}: {counted(len(data), 'recording')}, the same as those that {file} was written for")

"""The command of `gerd` for those who publish a dataset: options in; files beside the dataset out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from gerd.cli.options import DatasetFolder
from gerd.cli.terminal import say


def card(
    dataset: DatasetFolder,
    name: Annotated[str, Option(help="What the dataset is called; default: as its folder.")] = "",
    license_: Annotated[
        str, Option("--license", help="As the list of SPDX names it, such as CC-BY-4.0, or an address.")
    ] = "",
    by: Annotated[list[str] | None, Option(metavar="NAME", help="Who made it; can be given several times.")] = None,
    url: Annotated[str, Option(help="Where it is to be found.")] = "",
    published: Annotated[str, Option(metavar="DAY", help="When it was published, as 2026-11-19.")] = "",
    out: Annotated[Path | None, Option(metavar="FOLDER", help="Where to write; default: into the dataset.")] = None,
    replace: Annotated[bool, Option("--replace", help="Replace files that are there.")] = False,
) -> None:
    """Write what a dataset is for people and programs that collect such facts: README.md and croissant.json.

    Both follow from the dataset, but for the name, the licence, the authors and the address.
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

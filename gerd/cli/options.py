"""Arguments and options that several commands of `gerd` take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gerd.cli.completing import configs, datasets, sources

ConfigFile = Annotated[Path, Argument(metavar="CONFIG", help="A config file (YAML).", autocompletion=configs)]
DatasetFolder = Annotated[
    str, Argument(metavar="DATASET", help="A dataset: a folder or a URL.", autocompletion=datasets)
]
Source = Annotated[
    Path,
    Argument(metavar="CONFIG|DATASET|EVENTS", help="A config, a dataset, or a file of events.", autocompletion=sources),
]
Count = Annotated[
    int, Option("-n", "--count", min=1, max=2**32, help="Number of indices, each with all members of a sweep.")
]
Index = Annotated[int, Option(min=0, help="Index of the recording; all members of a sweep share its draw.")]
Member = Annotated[
    list[str] | None,
    Option("--member", metavar="K|PATH=VALUE", help="Which member of a sweep; default: the first. Repeatable."),
]
Overrides = Annotated[
    list[str] | None, Option("--set", metavar="PATH=VALUE", help="Override a field of the config; repeatable.")
]
Trust = Annotated[bool, Option("--trust", help="Let the config run the Python functions that it names.")]
Read = Annotated[
    list[str] | None,
    Option(
        "--read",
        metavar="NAME=VALUE",
        help="How to read a file of events: size=640x480, step_us, start_us, stop_us, repair=true, columns, row; "
        "repeatable.",
    ),
]

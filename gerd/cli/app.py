"""The program `gerd`: its commands by name, and what it exits with. The commands are in the modules imported here."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, NoReturn

import typer

from gerd.cli.benching import bench
from gerd.cli.commands import (
    cache,
    check,
    export,
    generate,
    info,
    new,
    play,
    render,
    schema,
    stimulus,
    verify,
    view,
)
from gerd.cli.filming import fit, register
from gerd.cli.measuring import compare, conform
from gerd.cli.picturing import events
from gerd.cli.publishing import card, make, recipe
from gerd.cli.studying import study
from gerd.cli.terminal import say
from gerd.errors import GerdError
from gerd.surroundings import ignore_settings

app = typer.Typer(
    help="Event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    new, schema, check, generate, info, verify, render, export, play,
    stimulus, register, fit, events, view, conform, compare, card, recipe, make, cache,
):  # fmt: skip
    app.command()(command)
app.command(add_help_option=False)(study)  # its help depends on the study
app.add_typer(bench)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gerd.version import __version__

        say(f"gerd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What `gerd` takes before the name of a command; its help is that of the app."""


def _refuse(message: str, code: int = 1) -> NoReturn:
    for line in message.splitlines():
        say(f"error: {line}", err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line; a user's mistake is a message and an exit code, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show, and names that are no text
    try:
        ignore_settings()
        app()
    except GerdError as error:
        _refuse(str(error), error.exit_code)
    except MemoryError:
        _refuse("there is not enough memory for this")
    except KeyboardInterrupt:
        sys.exit(130)
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has seen enough
        sys.exit(0)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM):
            raise
        where = f"{error.filename}: " if error.filename else ""
        _refuse(f"{where}the system says: {error.strerror}")

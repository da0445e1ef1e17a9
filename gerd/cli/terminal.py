"""The way of all text to the terminal: what the commands print goes through here, and nothing in it can act there.

Names, values and messages come from files that others have written, and may hold characters that a terminal obeys:
they could change its title, erase lines, or make an error look like success. They are shown as Python would write them
in a string, such as \\x1b.
"""

from __future__ import annotations

import typer
from rich.console import Console


def printable(text: str, *, lines: bool = True) -> str:
    """`text` with all that cannot be seen written out; `lines`: ends of lines and tabs stay, otherwise only tabs."""
    kept = "\n\t" if lines else "\t"
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output or standard error."""
    typer.echo(printable(str(text)), err=err, nl=nl)


class Lines(Console):
    """Prints a line at a time, and tables, the cells of which must be `printable`."""

    def __init__(self, *, stderr: bool = False):
        super().__init__(stderr=stderr, highlight=False, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        self.print(printable(text, lines=False))

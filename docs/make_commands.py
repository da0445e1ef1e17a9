"""What docs/commands.md says, from the functions of the command line; `make_reference.py` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Typer
from typer.models import ArgumentInfo, OptionInfo

from gerd.cli.app import app

BAR = "\\|"  # in a cell of a table
INTRODUCTION = """\
# Commands

<!-- Written by docs/make_reference.py from the commands in gerd/cli: change these, then run `make docs`. -->

This page has everything that `gerd COMMAND --help` says. `gerd --version` prints the version.

A command that has done its work exits with 0. For each mistake it prints one line, `error: …`, on standard error (with
the usage, if an option is wrong). The exit code is 2 if the config is wrong, or if the command cannot be understood (an
unknown option, a missing argument, a number that is out of range), and otherwise 1. After Ctrl-C it is 130; finished
work is kept, and the same command continues. Progress is shown on standard error if that is a terminal. If the package
has no machine code for the processor, the first simulation says so and compiles its kernels, once; that took 23 seconds
on one core of an AMD EPYC on 2026-11-17.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(_section(name, command) for name, command in _commands(app))])


def _commands(group: Typer, before: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    """All commands with their names, those of a group, such as `bench list`, after the others."""
    for command in group.registered_commands:
        if command.callback:
            yield before + (command.name or command.callback.__name__), command.callback
    for below in group.registered_groups:
        if below.typer_instance:
            yield from _commands(below.typer_instance, f"{before}{below.typer_instance.info.name} ")


def _section(name: str, command: Callable[..., Any]) -> str:
    arguments, options = [], []
    hints = get_type_hints(command, include_extras=True)
    for parameter_name, parameter in inspect.signature(command).parameters.items():
        if get_origin(hints[parameter_name]) is not Annotated:
            continue  # the context, which is not the user's
        annotation, about = get_args(hints[parameter_name])[:2]
        if isinstance(about, ArgumentInfo):
            arguments.append(_argument(parameter_name, parameter.default, about))
        elif isinstance(about, OptionInfo):
            options.append(_option(parameter_name, annotation, parameter.default, about))
    usage = " ".join([name, *(word for word, _ in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## `{name}`\n", f"{inspect.getdoc(command)}\n", f"```text\ngerd {usage}\n```\n"]
    cells = [(f"`{word.strip('[]')}`", meaning, "") for word, meaning in arguments] + options
    rows = ["| " + " | ".join(cell.replace("|", BAR) for cell in row) + " |" for row in cells]
    if rows:
        lines.append("\n".join(["| | what it is | default |", "| --- | --- | --- |", *rows, ""]))
    return "\n".join(lines)


def _argument(name: str, default: Any, about: ArgumentInfo) -> tuple[str, str]:
    word = about.metavar or name.upper()
    meaning = about.help or ""
    if default is inspect.Parameter.empty:
        return word, meaning
    return f"[{word}]", meaning + (f" Default: `{default}`." if default is not None else "")


def _option(name: str, annotation: Any, default: Any, about: OptionInfo) -> tuple[str, str, str]:
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    kind = kinds[0] if get_origin(annotation) is UnionType else annotation
    names = [one for one in (about.default, *(about.param_decls or ())) if isinstance(one, str)]  # as typer has them
    names = names or [f"--{name.rstrip('_').replace('_', '-')}"]
    if kind is bool and default is True:
        names.append(f"--no-{name}")
    values = "" if kind is bool else f" {about.metavar or _kind(kind)}"
    shown = "" if default is None or kind is bool else f"`{' '.join(map(str, _several(default)))}`"
    meaning = about.help or ""
    if about.min is not None and about.max is not None:
        meaning += f" From {about.min:g} to {_number(about.max)}."
    elif about.min is not None:
        meaning += f" {about.min:g} or more."
    return ", ".join(f"`{one}{values}`" for one in names), meaning, shown


def _several(default: Any) -> tuple[Any, ...]:
    return default if isinstance(default, tuple) else (default,)


def _number(value: float) -> str:
    return {2**31: "2³¹", 2**32: "2³²"}.get(int(value), f"{value:g}")


def _kind(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return " ".join(map(_kind, get_args(kind)))
    return {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}[kind]

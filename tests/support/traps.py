"""A stranger's folder: each module that a start of Python, of a worker or of a library might import is a trap there."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from support.datasets import SMALL
from support.processes import DEADLINE

TRAP = "open('trapped-{name}', 'w').close()\n"
COMMANDS = """
import sys
from gerd.cli.app import main
for command in sys.argv[1:]:
    sys.argv = ["gerd", *command.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def lay_traps(folder: Path) -> None:
    """A config, and a trap for each module of Python and of the packages that are installed; it leaves a file."""
    (folder / "config.yaml").write_text(SMALL)
    for name in {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), "gerd", "sitecustomize"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(TRAP.format(name=name))


def trapped(folder: Path) -> set[str]:
    return {file.name.removeprefix("trapped-") for file in folder.glob("trapped-*")}


def run_among_traps(folder: Path, *commands: str) -> None:
    """Commands of `gerd`, one after the other, in a script as pip installs it: Python looks for modules beside it."""
    script = folder / "bin" / "gerd"
    script.parent.mkdir(exist_ok=True)
    script.write_text(COMMANDS)
    words = [sys.executable, str(script), *commands]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=DEADLINE)
    assert result.returncode == 0, result.stderr
    assert trapped(folder) == set()

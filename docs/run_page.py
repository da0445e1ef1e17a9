"""Runs what a page shows, in the order of the page, as a reader would in an empty folder, and prints what it prints.

    python docs/run_page.py docs/tutorial.md

Configs with a name are written, shell lines and Python are run; Python shares one namespace. What installs or builds
(`pip`, `make`) is left out: it has happened.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^\s*(make|pip|git clone)\b.*\n", re.MULTILINE)


def run_page(text: str) -> None:
    """In the current folder."""
    namespace: dict[str, object] = {"__name__": "document"}
    for language, block in FENCE.findall(text):
        name = re.match(r"# (\S+\.yaml)\n", block)
        if language == "yaml" and name:
            Path(name[1]).write_text(block, "utf-8")
        elif language == "sh":
            subprocess.run(["sh", "-euc", NOT_RUN.sub("", block)], check=True)
        elif language == "python":
            sys.stdout.flush()
            exec(compile(block, "page", "exec"), namespace)


def main() -> None:
    text = Path(sys.argv[1]).read_text("utf-8")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run_page(text)
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main()

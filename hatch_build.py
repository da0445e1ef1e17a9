"""Puts machine code of the CPU's kernels into the package when it is built, so that nobody has to wait for a compiler.

For each kind of processor in `PROCESSORS` of `gerd/events/compiled.py` that this machine can stand for, a process of
its own makes recordings with an empty cache, in which numba leaves the code; its events must be the known ones. The
files go into `gerd/events/machine`. An editable package is used where it is built, and gets the best kind only. Where
this fails, the package is built without them, and compiles at first use.

A wheel with machine code is named after the system and the machine that it is for; one without suits all.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIST = "import gerd.events.compiled as c; print(*c.processors())"
USE_ALL = """
import gerd
from gerd.events.cpu import known, run as cpu
for timing in known.DIGESTS:
    list(cpu.run(known.scenes(timing)))
recording = gerd.simulate("{steps: 4, actors: [{shape: circle, translation: {}}, {shape: square, rotation: {}}]}")
recording.images(), recording.masks(), recording.flow(), recording.event_flow
"""


class MachineCode(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root) / "gerd" / "events" / "machine"
        build_data["artifacts"].append("/gerd/events/machine/*")
        try:
            processors = self.run_python(LIST).split()[: 1 if version == "editable" else None]
            self._fill(folder, processors)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            self.app.display_warning(f"without machine code, kernels compile at first use: {error}")
            return
        if processors and version != "editable":
            build_data.update(pure_python=False, tag=f"py3-none-{system()}")

    def _fill(self, folder: Path, processors: list[str]) -> None:
        """Put the code for these kinds of processors into the folder, unless it is there."""
        sources = b"".join(file.read_bytes() for file in sorted(folder.parent.rglob("*.py")))
        stamp, kept = folder / "sources", [hashlib.sha256(sources).hexdigest(), *processors]
        if stamp.exists() and set(kept) <= set(stamp.read_text().split()):
            return
        with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor() as pool:  # each waits for a process of its own
            list(pool.map(lambda processor: self._compile(Path(made), processor), processors))
            (Path(made) / stamp.name).write_text(" ".join(kept))
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder)

    def _compile(self, folder: Path, processor: str) -> None:
        """Make the code for a kind of processor."""
        self.app.display_info(f"compiling the kernels for {processor}: about a minute")
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as cache:
            name = processor.partition("-")[2]
            self.run_python(USE_ALL, XDG_CACHE_HOME=cache, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES="")
            for file in (Path(cache) / "gerd").iterdir():
                shutil.copyfile(file, folder / f"{file.name.rpartition('-')[0]}-{processor}")
        self.app.display_info(f"compiled the kernels for {processor} in {time.monotonic() - begun:.0f} s")

    def run_python(self, program: str, **settings: str) -> str:
        """What a program prints that imports this package."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        command, environment = [sys.executable, "-P", "-c", program], {**kept, "PYTHONPATH": self.root, **settings}
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def system() -> str:
    """This system and machine, as wheels name them. The code calls no library, so that any glibc will do."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return name.replace("linux", "manylinux_2_17") if platform.libc_ver()[0] == "glibc" else name

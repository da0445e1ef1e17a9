"""How long a new process takes to its first recording, of the package as pip installs it: the first time, and later.

    python benchmarks/first_call.py [--repeats N] [--json FILE]

The package is built and installed into a folder of its own, with the machine code of a CPU's kernels in it
(`hatch_build.py`; the build compiles that, unless it did before). Each row is the median of new processes, as many as
`--repeats` says, in pairs: one finds the user's cache empty, the next finds what the first has left there. The rows
`cpu, compiled` are the same without the code in the package, as where none was built for the processor: numba compiles.
A GPU's kernels are compiled by Triton; the backend `torch` compiles nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "configs" / "bouncing.yaml"
COLUMNS = ("import and config", "first recording", "second recording")
PROGRAM = """
import json, sys, time
times = [time.perf_counter()]
import gerd
config = gerd.load(sys.argv[1])
times.append(time.perf_counter())
for _ in range(2):
    gerd.simulate(config, device=sys.argv[2], backend=sys.argv[3])
    times.append(time.perf_counter())
print(json.dumps([end - begin for begin, end in zip(times, times[1:])]))
"""


def seconds(device: str, backend: str, package: Path, cache: str) -> list[float]:
    """In a new process, one number for each of COLUMNS."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "TRITON_CACHE_DIR": cache, "PYTHONPATH": str(package)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-P", "-c", PROGRAM, str(CONFIG), device, backend]  # -P: not what lies in this folder
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


def install(folder: Path) -> dict[str, Path]:
    """The package as it is installed, and the same without the machine code."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    as_built, bare = folder / "built", folder / "bare"
    subprocess.run([*pip, "--no-build-isolation", "--target", str(as_built), str(ROOT)], check=True)
    shutil.copytree(as_built, bare, ignore=shutil.ignore_patterns("machine"))
    return {"": as_built, ", compiled": bare}


def measured(packages: dict[str, Path], repeats: int) -> list[dict[str, Any]]:
    """A row for each backend and state of the cache."""
    rows: list[dict[str, Any]] = []
    kinds = [("cpu", "torch", ""), ("cpu", "cpu", ""), ("cpu", "cpu", ", compiled"), ("cuda", "cuda", "")]
    for device, backend, how in kinds[: 4 if torch.cuda.is_available() else 3]:
        pairs = []
        for _ in range(max(1, repeats)):
            with tempfile.TemporaryDirectory() as cache:
                pairs.append([seconds(device, backend, packages[how], cache) for _ in ("empty", "filled")])
        for k, state in enumerate(("empty", "filled")):
            medians = [statistics.median(column) for column in zip(*(pair[k] for pair in pairs), strict=True)]
            rows.append({"backend": backend + how, "cache": state, **dict(zip(COLUMNS, medians, strict=True))})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(install(Path(folder)), chosen.repeats)
    print(f"\n| backend | cache | {' | '.join(COLUMNS)} | first, to filled |\n{'| --- ' * (len(COLUMNS) + 3)}|")
    for row in rows:
        filled = next(r for r in rows if r["backend"] == row["backend"] and r["cache"] == "filled")
        times = " | ".join(f"{row[column]:.3f} s" for column in COLUMNS)
        row["ratio"] = row["first recording"] / filled["first recording"]
        print(f"| {row['backend']} | {row['cache']} | {times} | {row['ratio']:.1f} × |")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""How long a new process takes to its first recording: with nothing in the caches of compiled code, and later.

    python benchmarks/first_call.py [--repeats N] [--json FILE]

Each row is the median of new processes, as many as `--repeats` says. A CPU's kernels are compiled by numba and a GPU's
by Triton, into a folder that is empty for the first process of each pair and filled for the second. The last column
compares the first recording with that of a process that finds the code; the backend `torch` compiles nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

CONFIG = Path(__file__).parent.parent / "configs" / "bouncing.yaml"
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


def seconds(device: str, backend: str, cache: str) -> list[float]:
    """In a new process, one number for each of COLUMNS."""
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "TRITON_CACHE_DIR": cache}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-P", "-c", PROGRAM, str(CONFIG), device, backend]  # -P: not what lies in this folder
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    backends = [("cpu", "torch"), ("cpu", "cpu"), ("cuda", "cuda")][: 3 if torch.cuda.is_available() else 2]
    for device, backend in backends:
        pairs = []
        for _ in range(max(1, chosen.repeats)):
            with tempfile.TemporaryDirectory() as cache:
                pairs.append([seconds(device, backend, cache) for _ in ("empty", "filled")])
        for k, state in enumerate(("empty", "filled")):
            medians = [statistics.median(column) for column in zip(*(pair[k] for pair in pairs), strict=True)]
            rows.append({"backend": backend, "cache": state, **dict(zip(COLUMNS, medians, strict=True))})
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

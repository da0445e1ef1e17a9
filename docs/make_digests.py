"""Writes the digests of GERD-Bench that are not there yet into gerd/bench/v1/digests.json; those that are there stay.

python docs/make_digests.py [TASK …]

A version never changes, so a digest that is there is never replaced: whatever makes other data is a mistake, or another
version. `gerd bench verify` compares. What is done is written after each task, and tasks can be made side by side.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from gerd import bench
from gerd.bench.digests import DIGESTS
from gerd.bench.frozen import VERSION
from gerd.bench.split_table import all_splits

FILE = Path(__file__).parents[1] / "gerd" / "bench" / f"v{VERSION}" / DIGESTS


def known() -> dict[str, str]:
    """The digests that are there, by the keys of the splits."""
    found: dict[str, str] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the digests of GERD-Bench that are missing.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"which of {', '.join(bench.tasks())}; default: all")
    parser.add_argument("--device", default="cpu")
    wanted = parser.parse_args()
    for task in wanted.tasks or bench.tasks():
        begun, there = time.monotonic(), known()
        missing = [split for quick in (True, False) for split in all_splits(task, quick) if split.key not in there]
        new = {split.key: bench.digest(split, wanted.device) for split in missing}
        FILE.write_text(json.dumps({**new, **known()}, indent=0, sort_keys=True) + "\n", "utf-8")
        made = sum(split.count for split in missing)
        print(f"{task}: {made} recordings in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()

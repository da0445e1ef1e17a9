"""Writes the digests of GERD-Bench that are not there yet into gerd/bench/v1/digests.json; those that are there stay.

python docs/make_digests.py

A version never changes, so a digest that is there is never replaced: whatever makes other data is a mistake, or another
version. `gerd bench verify` compares. What is done is written after each task.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from gerd import bench
from gerd.bench.digests import DIGESTS, frozen_digests
from gerd.bench.frozen import VERSION
from gerd.bench.split_table import all_splits

FILE = Path(__file__).parents[1] / "gerd" / "bench" / f"v{VERSION}" / DIGESTS


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the digests of GERD-Bench that are missing.")
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    known = dict(frozen_digests())
    for task in bench.tasks():
        begun, made = time.monotonic(), 0
        for quick in (True, False):
            for split in all_splits(task, quick):
                if split.key not in known:
                    known[split.key] = bench.digest(split, device)
                    made += split.count
        FILE.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n", "utf-8")
        print(f"{task}: {made} recordings in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()

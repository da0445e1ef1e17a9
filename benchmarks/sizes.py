"""How large datasets are: bytes per event, ground truth, digests and manifest included. Nothing is timed.

    python benchmarks/sizes.py [--count N] [--json FILE]

A recording has bytes for each event and some hundreds more whatever it holds (ground truth, counts per range of keys,
its digest), so that small ones take more bytes per event. The configs are those that the documents show, or one of
`configs/`, in the order of how many events a recording has. Beside them stands what `gerd export --format parquet`
writes of `configs/bouncing.yaml`.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet
from gpu import TEXT as THREE_SHAPES

import gerd

ROOT = Path(__file__).parent.parent
BOUNCING = "configs/bouncing.yaml"
SHARD = 64  # recordings, all of which go into one file
OF_EVENTS = ("t", "x", "y", "p", "background")  # columns of Parquet


def shown_in(document: str, name: str) -> gerd.Config:
    """The config that a document shows under this name."""
    text = (ROOT / document).read_text("utf-8")
    found = re.search(rf"```yaml\n(# {re.escape(name)}\n.*?)```", text, re.DOTALL)
    if not found:
        raise SystemExit(f"{document} shows no config {name}")
    return gerd.parse(found[1])


def on_disk(config: gerd.Config, folder: Path, count: int) -> dict[str, float]:
    data = gerd.generate(config, folder, count)
    size = sum(file.stat().st_size for file in folder.iterdir())
    events = sum(map(len, data))
    return {"events_per_recording": events / len(data), "bytes_per_event": size / events}


def as_parquet(folder: Path) -> dict[str, float]:
    """One shard of `BOUNCING` as Parquet: its size, its events, and the share of the bytes that these take."""
    gerd.export_dataset(gerd.load(ROOT / BOUNCING), folder, "parquet", indices=range(SHARD))
    (file,) = (folder / "data").iterdir()
    content = pyarrow.parquet.ParquetFile(file)
    groups = [content.metadata.row_group(number) for number in range(content.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    of_events = [column.total_compressed_size for column in columns if column.path_in_schema.split(".")[0] in OF_EVENTS]
    events = sum(map(len, content.read(columns=["t"])["t"].to_pylist()))
    return {"megabytes": file.stat().st_size / 1e6, "events": events, "bytes_per_event": sum(of_events) / events}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=256, help="recordings of each")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    configs = {
        "square.yaml of docs/tutorial.md": shown_in("docs/tutorial.md", "square.yaml"),
        "square.yaml of README.md": shown_in("README.md", "square.yaml"),
        BOUNCING: gerd.load(ROOT / BOUNCING),
        "three shapes, 300×300": gerd.parse(THREE_SHAPES),
    }
    print("\n| dataset | events per recording | bytes per event |\n| --- | --- | --- |")
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="gerd-bench-") as folder:
        for number, (name, config) in enumerate(configs.items()):
            found = result[name] = on_disk(config, Path(folder) / str(number), chosen.count)
            print(f"| {name} | {found['events_per_recording']:,.0f} | {found['bytes_per_event']:.2f} |", flush=True)
        found = result["parquet"] = as_parquet(Path(folder) / "parquet")
    print(
        f"\n{SHARD} recordings of {BOUNCING} as Parquet: {found['megabytes']:.2f} MB, {found['events']:,} events, ",
        end="",
    )
    print(f"{found['bytes_per_event']:.2f} bytes for each and the rest for everything else")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

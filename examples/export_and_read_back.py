"""Export a dataset in formats of other tools, and read the files back with the libraries of those tools.

Needs the packages faery, h5py (`pip install 'gerd-events[export]'`), expelliarmus and dv-processing. Run it with
`python examples/export_and_read_back.py`; it writes into a temporary folder. It takes about 5 seconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import dv_processing
import expelliarmus
import h5py
import numpy as np

import gerd

CONFIG = """
seed: 3
sensor: {width: 64, height: 48}
steps: 40
noise: {background: 0.001}
actors:
  - shape: triangle
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: 0}
    scale: {start: 14}
    rotation: {velocity: 3, acceleration: 0}
"""


def read_evt2(path: Path) -> tuple[np.ndarray, ...]:
    events = expelliarmus.Wizard(encoding="evt2").read(path)
    return events["t"], events["x"], events["y"], events["p"]


def read_aedat4(path: Path) -> tuple[np.ndarray, ...]:
    recording, store = dv_processing.io.MonoCameraRecording(str(path)), dv_processing.EventStore()
    while recording.isRunning() and (batch := recording.getNextEventBatch()) is not None:
        store.add(batch)
    events = store.numpy()
    return events["timestamp"], events["x"], events["y"], events["polarity"]


def read_dsec(path: Path) -> tuple[np.ndarray, ...]:
    with h5py.File(path) as file:
        return tuple(file[f"events/{name}"][:] for name in "txyp")


def main(count: int, folder: Path) -> None:
    gerd.generate(gerd.parse(CONFIG), folder / "data", count, workers=1)
    for format, read in (("evt2", read_evt2), ("aedat4", read_aedat4), ("hdf5-dsec", read_dsec)):
        gerd.export_dataset(folder / "data", folder / format, format)
        files = json.loads((folder / format / "export.json").read_text())["files"]
        for entry, recording in zip(files, gerd.Recordings(folder / "data"), strict=True):
            columns = read(folder / format / entry["file"])
            for name, found in zip("txyp", columns, strict=True):
                assert np.array_equal(found, recording.events[name])
            _, *steps = map(json.loads, (folder / format / entry["truth"]).read_text().splitlines())
            assert [step["actors"][0]["x"] for step in steps] == recording.positions[:, 0, 0].tolist()
        size = sum((folder / format / entry["file"]).stat().st_size for entry in files)
        events = sum(entry["events"] for entry in files)
        print(
            f"{format:10} {len(files)} recordings, {events} events, {size / events:.1f} bytes per event: all the same"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8, help="recordings")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, Path(temporary))

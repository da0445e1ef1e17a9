"""Small datasets for the tests: configs of them, what is in their files, and how to spoil one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gerd
from gerd.storage.json_files import json_bytes
from gerd.storage.manifest import MANIFEST

SMALL = """
seed: 8
sensor: {width: 12, height: 9}
steps: 3
upsampling: 2
noise: {background: 0.01}
actors:
  - shape: square
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: 0}
    scale: {start: 4, acceleration: 0}
"""
FAMILY = SMALL + "sweep: {time_scale: [0.5, 1, 2], noise.event: [0, 0.5]}\n"

TWO_SHAPES = """
seed: 3
sensor: {width: 23, height: 17}
steps: 6
upsampling: 4
noise: {background: 0.01, event: 0.1}
actors:
  - shape: circle
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: {normal: [0, 0.1]}}
    scale: {start: 8, acceleration: 0}
  - shape: square
    scale: {start: 5, acceleration: 0}
    rotation: {velocity: 7, acceleration: 0}
sweep: {time_scale: [0.5, 2]}
"""
TRIANGLE = """
sensor: {width: 20, height: 10}
steps: 3
seed: 5
noise: {background: 0.02}
actors: [{shape: triangle}]
"""
RAGGED = {
    "steps": TRIANGLE + "sweep: {steps: [3, 1, 12]}",
    "width": TRIANGLE + "sweep: {sensor.width: [20, 33], step_us: [1000, 7]}",
    "actors": TRIANGLE + "sweep: {actors: [[], [{shape: square}], [{shape: circle}, {shape: {text: 'g'}}]]}",
    "silent": TRIANGLE.replace("0.02", "0") + "sweep: {actors.0.intensity: [1, 0]}",  # the last recording has no events
}


def make(folder: Path, text: str, count: int) -> gerd.Recordings:
    return gerd.generate(gerd.parse(text), folder, count, workers=1)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def faults(folder: Path | str, **options: Any) -> list[str]:
    """What `verify` finds."""
    return [str(fault) for _, of_shard in gerd.verify(folder, **options) for fault in of_shard]


def noticed(folder: Path) -> list[str]:
    """What `verify` finds, or the error that it stops with."""
    try:
        return faults(folder)
    except gerd.StorageError as error:
        return [str(error)]


def change_manifest(folder: Path, **fields: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_bytes(json_bytes({**manifest, **fields}))


def unfinish(folder: Path) -> None:
    """Have a dataset look like one whose making was interrupted."""
    change_manifest(folder, complete=False, shards=[])

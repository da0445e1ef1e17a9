"""Export a dataset as Parquet, load it with Hugging Face's `datasets`, and train a network to tell three shapes apart.

Needs the packages pyarrow (`pip install 'gerd[export]'`) and datasets. Run it with
`python examples/with_hugging_face.py`; it needs no network. It prints the share of shapes that the network gets wrong,
before and after training. It takes about 10 seconds on one core.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import datasets
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import gerd

CONFIG = """
seed: 4
sensor: {width: 32, height: 32}
steps: 24
noise: {background: 0.002}
actors:
  - shape: square
    translation: {start: centre, velocity: {uniform: [-0.2, 0.2]}, acceleration: 0}
    scale: {start: {uniform: [14, 22]}, acceleration: 0}
    rotation: {start: 20, velocity: {choice: [-3, 3]}, acceleration: 0}
sweep:
  actors.0.shape: [square, circle, triangle]
"""
SHAPES = ["square", "circle", "triangle"]
COLUMNS = ["t", "x", "y", "p", "width", "height", "steps", "step_us", "sweep.actors.0.shape"]


def batch_of(rows: list[dict[str, Any]]) -> tuple[Tensor, Tensor]:
    """Frames (rows, steps, 2, height, width) and the numbers of the shapes."""
    frames = torch.zeros(len(rows), rows[0]["steps"], 2, rows[0]["height"], rows[0]["width"])
    for i, row in enumerate(rows):
        frames[i, row["t"] // row["step_us"], row["p"], row["y"], row["x"]] = 1
    return frames, torch.tensor([SHAPES.index(row["sweep.actors.0.shape"]) for row in rows])


def main(count: int, epochs: int, folder: Path) -> None:
    torch.manual_seed(0)
    gerd.generate(gerd.parse(CONFIG), folder / "shapes", count, workers=1)
    gerd.export_dataset(folder / "shapes", folder / "parquet", "parquet")
    files = str(folder / "parquet" / "data" / "*.parquet")
    table = datasets.load_dataset(
        "parquet", data_files=files, split="train", columns=COLUMNS, cache_dir=str(folder / "cache")
    )
    data = table.with_format("torch")
    first_of_test = 3 * (count - count // 5)  # the three members of a family stay together
    train, test = data.select(range(first_of_test)), data.select(range(first_of_test, len(data)))
    network = nn.Sequential(
        nn.Conv2d(2, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 5 * 5, 3),
    )  # fmt: skip
    optimiser = torch.optim.Adam(network.parameters(), 0.003)

    def wrong() -> float:
        with torch.no_grad():
            frames, shapes = next(iter(DataLoader(test, len(test), collate_fn=batch_of)))
            return float((network(frames.sum(1)).argmax(1) != shapes).float().mean())

    print(f"before training: {wrong():.0%} wrong")
    for _ in range(epochs):
        for frames, shapes in DataLoader(train, 16, shuffle=True, collate_fn=batch_of):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(frames.sum(1)), shapes).backward()
            optimiser.step()
    print(f"after training: {wrong():.0%} wrong")


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=150, help="recordings of each shape")
    parser.add_argument("--epochs", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(chosen.count, chosen.epochs, Path(temporary))

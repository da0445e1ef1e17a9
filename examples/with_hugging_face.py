"""Export a dataset as Parquet, load it with Hugging Face's `datasets`, and train a network to tell three shapes apart.

Needs the packages pyarrow (`pip install 'gerd-events[export]'`) and datasets. Run it with
`python examples/with_hugging_face.py`; it needs no network. It prints the share of shapes that the network gets wrong,
before and after training. It takes about 10 seconds on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import torch
from three_shapes import CONFIG, LONGER_AND_NOISY, SHAPES, Batch, run, train
from torch import Tensor, nn
from torch.utils.data import DataLoader

import gerd

COLUMNS = ["t", "x", "y", "p", "width", "height", "steps", "step_us", "shapes"]


def batch_of(rows: list[dict[str, Any]]) -> Batch:
    """Frames (rows, steps, 2, height, width) and the numbers of the shapes."""
    frames = torch.zeros(len(rows), rows[0]["steps"], 2, rows[0]["height"], rows[0]["width"])
    for i, row in enumerate(rows):
        step = -(-row["t"] // row["step_us"])
        frames[i, step, row["p"], row["y"], row["x"]] = 1
    return frames, torch.tensor([SHAPES.index(row["shapes"][0]) for row in rows])


def main(count: int, epochs: int, folder: Path) -> None:
    gerd.generate(gerd.parse(CONFIG, overrides=LONGER_AND_NOISY), folder / "shapes", count, workers=1)
    gerd.export_dataset(folder / "shapes", folder / "parquet", "parquet")
    files = str(folder / "parquet" / "data" / "*.parquet")
    table = datasets.load_dataset(
        "parquet", data_files=files, split="train", columns=COLUMNS, cache_dir=str(folder / "cache")
    )
    data = table.with_format("torch")
    first_of_test = count - count // 5
    seen, unseen = data.select(range(first_of_test)), data.select(range(first_of_test, len(data)))
    network = nn.Sequential(
        nn.Conv2d(2, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 5 * 5, 3),
    )  # fmt: skip

    def answers(frames: Tensor) -> Tensor:
        return network(frames.sum(1))

    def batches() -> DataLoader:
        return DataLoader(seen, 16, shuffle=True, collate_fn=batch_of)

    test = next(iter(DataLoader(unseen, len(unseen), collate_fn=batch_of)))
    train(network, answers, batches, test, rate=0.003, epochs=epochs)


if __name__ == "__main__":
    run(main, __doc__, count=450, epochs=10)

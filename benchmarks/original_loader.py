"""Runs in a process of its own with the original program (gerd 0.5.1) on its path: its loader's recordings per second.

Arguments: folder of .dat files, warm-up and labelled steps, batch size, workers. Prints one number.
"""

from __future__ import annotations

import sys
import time

import torch

if not torch.cuda.is_available():  # torchvision's compiled operators are missing beside a CPU build; none is used here
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from gerd.dataset import GerdDataset  # type: ignore[attr-defined]


def main() -> None:
    folder, steps, batch_size, workers = sys.argv[1], *map(int, sys.argv[2:])
    torch.set_num_threads(1)
    data = GerdDataset(folder, t=steps)  # of each folder it takes four fifths of the files for training
    loader = torch.utils.data.DataLoader(data, batch_size=batch_size, num_workers=workers, persistent_workers=True)
    for _ in loader:  # starts the workers, and brings the files into memory
        pass
    begun = time.perf_counter()
    for _ in loader:
        pass
    print(len(data) / (time.perf_counter() - begun))


if __name__ == "__main__":
    main()

"""Training data: recordings per second from `Dataset` and `Stream`, against the loader of gerd 0.5.1, in one run.

    python benchmarks/loading.py [--count N] [--json FILE] [--original FOLDER]

All read or make the same recordings: three shapes, 300×300 pixels, 128 steps, background noise 0.001. An item is a
window of 40 steps for warm-up and 40 labelled ones, as the original's loader gives it. The original reads files of its
own format, written here with the content of ours. Each loader has two workers and one thread per process, and is timed
over its second pass through the files, when they are in the system's cache. The original is installed as in
`against_original.py`.

On a GPU it also measures which share of its time a training step of the paper's network loses to a `Stream` that makes
its batches on the same GPU, against the same step with one batch that is there already.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import torch
from gpu import TEXT as THREE_SHAPES
from torch import Tensor, nn

import gerd
from gerd.config.config import Config

HERE = Path(__file__).parent
PACKAGES = ["gerd==0.5.1", "torchvision==0.28.0"]
STEPS, BATCH, WORKERS = 40, 4, 2


def write_as_original(data: gerd.Recordings, folder: Path) -> None:
    """Files as the original writes them: sparse float frames with x before y, and the positions."""
    folder.mkdir(parents=True)
    for i, recording in enumerate(data):
        frames = recording.frames().transpose(2, 3).float().to_sparse()
        torch.save([frames, torch.from_numpy(recording.positions.copy()).float()], folder / f"{i:05d}.dat")
    assert np.array_equal(gerd.read_original(folder / "00000.dat").events, data[0].events)


def original_rate(files: Path, folder: Path) -> float:
    if not (folder / "gerd").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *PACKAGES]
        subprocess.run(command, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(HERE / "original_loader.py"), str(files), str(STEPS), str(BATCH), str(WORKERS)]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def dataset_rate(path: Path, **form: Any) -> float:
    data = gerd.Dataset(path, steps=STEPS, warmup=STEPS, stride=128, rest="drop", **form)  # one window of each
    loader = data.loader(BATCH, num_workers=WORKERS, persistent_workers=True)
    for _ in loader:
        pass
    begun = time.perf_counter()
    for _ in loader:
        pass
    return len(data) / (time.perf_counter() - begun)


def stream_rate(batches: Iterable[Any], batch_size: int, count: int) -> float:
    iterator = iter(batches)
    for _ in islice(iterator, 2 * WORKERS):  # compiles, and fills what is made ahead
        pass
    begun = time.perf_counter()
    for _ in islice(iterator, count):
        pass
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return count * batch_size / (time.perf_counter() - begun)


class ScaleChannel(nn.Module):
    """Five convolutions, each followed by a leaky integrator over time, to a probability for each pixel."""

    def __init__(self, time_constant: float, steps: int):
        super().__init__()
        sizes = [2, 12, 36, 16, 16, 1]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 5, padding=2) for a, b in pairwise(sizes))
        age = torch.arange(steps)[:, None] - torch.arange(steps)
        self.register_buffer("decay", torch.exp(-age / time_constant).where(age >= 0, 0.0) / time_constant)

    def forward(self, frames: Tensor) -> Tensor:
        batch, steps = frames.shape[:2]
        for i, layer in enumerate(self.layers):
            mapped = layer(frames.flatten(0, 1)).unflatten(0, (batch, steps))
            frames = torch.einsum("ts,bs...->bt...", self.decay, mapped)
            frames = frames.relu() if i < len(self.layers) - 1 else frames
        return frames[:, :, 0]


class Paper(nn.Module):
    """The paper's network: five scale channels, fused to the expected position at each step."""

    def __init__(self, steps: int):
        super().__init__()
        self.channels = nn.ModuleList(ScaleChannel(2.0**k, steps) for k in range(5))
        self.weights = nn.Parameter(torch.zeros(5))

    def forward(self, frames: Tensor) -> Tensor:
        maps = torch.stack([channel(frames) for channel in self.channels], dim=-1)
        chance = (maps.flatten(2, 3).softmax(2) @ self.weights.softmax(0)).unflatten(2, maps.shape[2:4])
        x = torch.arange(maps.shape[3], device=maps.device) + 0.5
        y = torch.arange(maps.shape[2], device=maps.device) + 0.5
        return torch.stack([(chance.sum(2) * x).sum(-1), (chance.sum(3) * y).sum(-1)], dim=-1)


def share_lost(config: Config, batch_size: int, steps: int) -> dict[str, float]:
    """Seconds per training step with one batch that is there already, and with a stream; and the share lost."""
    stream = gerd.Stream(config, batch_size, device="cuda").where(lambda r: r.config.time_scale == 1)
    network = Paper(config.steps).cuda()
    optimiser = torch.optim.Adam(network.parameters())

    def seconds(batches: Iterable[Any]) -> float:
        iterator = iter(batches)
        for phase in (5, steps):  # the first few are not counted
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for frames, positions in islice(iterator, phase):
                optimiser.zero_grad()
                (network(frames.float()) - positions[:, :, 0]).square().mean().backward()
                optimiser.step()
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / steps

    here = stream.batch(0)
    alone = seconds(here for _ in range(5 + steps))
    fed = seconds(stream)
    return {"step_s": alone, "fed_step_s": fed, "share_lost": max(0.0, 1 - alone / fed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120, help="recordings on disk")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--original", type=Path, default=HERE.parent / "out" / "original")
    parser.add_argument("--no-original", action="store_true", help="where it cannot be installed")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    config, rates = gerd.parse(THREE_SHAPES), {}
    folder = Path(tempfile.mkdtemp(prefix="gerd-bench-"))
    try:
        data = gerd.generate(config, folder / "ours", chosen.count)
        if not chosen.no_original:
            write_as_original(data, folder / "original" / "three")
            rates["gerd 0.5.1, GerdDataset"] = original_rate(folder / "original", chosen.original)
        rates["Dataset, frames (bool)"] = dataset_rate(folder / "ours")
        rates["Dataset, frames as float32"] = dataset_rate(folder / "ours", dtype=torch.float32)
        rates["Dataset, events"] = dataset_rate(folder / "ours", item="events")
    finally:
        shutil.rmtree(folder)
    window = {"warmup": STEPS, "steps": STEPS}
    stream = gerd.Stream(config, BATCH, **window)
    rates["Stream on the CPU"] = stream_rate(stream, BATCH, 30)
    rates[f"Stream on the CPU, {WORKERS} workers"] = stream_rate(stream.loader(num_workers=WORKERS), BATCH, 30)
    result: dict[str, Any] = {"recordings_per_s": rates}
    if torch.cuda.is_available():
        rates["Stream on the GPU"] = stream_rate(gerd.Stream(config, 64, device="cuda", **window), 64, 40)
        timescale = gerd.load(HERE.parent / "configs" / "timescale.yaml")
        result["training"] = share_lost(timescale, 32, 100)
    print("\n| loader | recordings/s | × gerd 0.5.1 |\n| --- | --- | --- |")
    base = rates.get("gerd 0.5.1, GerdDataset", float("nan"))
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.1f} | {rate / base:,.1f} |")
    if "training" in result:
        found = result["training"]
        print(f"\ntraining step: {found['step_s'] * 1e3:.1f} ms with a batch that is there, ", end="")
        print(f"{found['fed_step_s'] * 1e3:.1f} ms from a Stream: {found['share_lost']:.1%} lost to data")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Recordings and windows of them from disk, in any order: version 2 of the file format against version 1, in one run.

    python benchmarks/reading.py [--count N] [--json FILE]

Both files hold the same recordings and are in the system's cache; one process, one thread. Version 1 is read here as it
was read when it was written: a whole recording with its checksum, and a window without any, its events found by
bisection. Version 2 unpacks the ground truth of a recording when it is first asked for, so that is measured, too. Rates
are those of the best of several rounds for each call, and versions take turns, so that a busy machine
is unfair to neither.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from against_original import CASES
from numpy.typing import NDArray
from safetensors.numpy import save

import gerd
from gerd.config.config import Config
from gerd.config.sweep import member
from gerd.events.keys import Keys
from gerd.recording.recording import Recording
from gerd.storage.manifest import shard_name
from gerd.storage.tensors import hash_of, read_header

ROUNDS = 25
WINDOW = 10  # steps


def checksum(keys: NDArray[Any], background: NDArray[Any], truth: NDArray[Any]) -> int:
    result = zlib.crc32(b"index, member, shape, step_us and labels come first")
    for part, kind in ((keys, "<i8"), (background, "u1"), (truth, "<f8")):
        result = zlib.crc32(np.ascontiguousarray(part, kind).data, result)
    return result


def version_1_bytes(recordings: list[Recording]) -> bytes:
    """What version 1 of the format has of these recordings."""
    offsets = np.cumsum([0, *map(len, recordings)])
    tensors = {
        "event_offsets": offsets,
        "keys": np.concatenate([r.keys for r in recordings]).astype(np.int32),
        "background": np.packbits(np.concatenate([r.background for r in recordings])),
        "truth": np.array([r.truth for r in recordings], order="C"),
        "digest": np.array([list(bytes.fromhex(r.digest)) for r in recordings], np.uint8),
        "checksum": np.array([checksum(r.keys, r.background, r.truth) for r in recordings], np.uint32),
    }
    return save(tensors, metadata={"gerd": json.dumps({"labels": [{} for _ in recordings]})})


class OldFile:
    """Positioned reads as they were then."""

    def __init__(self, path: Path):
        self.name, self.size, self.descriptor = str(path), path.stat().st_size, os.open(path, os.O_RDONLY)

    def read(self, start: int, stop: int) -> bytearray:
        result = bytearray(stop - start)
        rest = memoryview(result)
        with self.reading():
            while rest:
                rest = rest[os.preadv(self.descriptor, [rest], stop - len(rest)) :]
        return result

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise gerd.StorageError(f"{self.name}: cannot be read: {error}") from None


class Version1:
    """A shard of version 1, and how it was read."""

    def __init__(self, folder: Path, config: Config):
        self.tensors, _ = read_header(OldFile(folder / shard_name(0)))  # type: ignore[arg-type]
        self.offsets, self.checksums = (self.tensors[name].whole() for name in ("event_offsets", "checksum"))
        self.config, self.codec = member(config, 0), Keys(config.sensor.height, config.sensor.width)

    def window(self, row: int, start: int, stop: int) -> Recording:
        low, high = self.offsets[row : row + 2].tolist()
        whole = stop - start == self.config.steps
        if not whole:
            low = bisect_left(range(high), start * self.codec.per_step, low, high, key=self._key)
            high = bisect_left(range(high), stop * self.codec.per_step, low, high, key=self._key)
        bits = np.unpackbits(self.tensors["background"].rows(low // 8, -(-high // 8)))
        keys = self.codec.moved(self.tensors["keys"].rows(low, high).astype(np.int64), -start)
        assert (keys[1:] > keys[:-1]).all()
        background = bits[low % 8 : low % 8 + high - low].astype(np.bool_)
        tensor = self.tensors["truth"]
        size = tensor.type.itemsize * int(np.prod(tensor.shape[2:]))
        begin = tensor.start + (row * self.config.steps + start) * size
        truth = np.frombuffer(tensor.file.read(begin, begin + (stop - start) * size), tensor.type)
        truth = truth.reshape(stop - start, *tensor.shape[2:])
        if whole:
            assert checksum(keys, background, truth) == self.checksums[row]
        return Recording.of(self.config, row, truth, keys, background, first=start)

    def _key(self, number: int) -> int:
        return int(self.tensors["keys"].rows(number, number + 1)[0])


def rates(readers: dict[str, Callable[[int], Any]], count: int) -> dict[str, float]:
    """Calls per second of each, with the numbers below `count` in a random order; of each call its best round."""
    order = np.random.default_rng(0).permutation(count).tolist()
    taken = {name: np.full(count, np.inf) for name in readers}
    for _ in range(ROUNDS):
        for name, read in readers.items():
            for number in order:
                begun = time.perf_counter()
                read(number)
                taken[name][number] = min(taken[name][number], time.perf_counter() - begun)
    return {name: count / float(times.sum()) for name, times in taken.items()}


def measured(config: Config, count: int, folder: Path) -> dict[str, Any]:
    """Both files with the same recordings: their sizes and rates."""
    data = gerd.generate(config, folder / "2", count, workers=1)
    recordings = list(data)
    (folder / "1").mkdir()
    (folder / "1" / shard_name(0)).write_bytes(version_1_bytes(recordings))
    old, steps = Version1(folder / "1", config), config.steps
    start = [int(at) for at in np.random.default_rng(1).integers(0, steps - WINDOW, count)]
    for row in (0, count - 1):
        for found in (old.window(row, 0, steps), old.window(row, start[row], start[row] + WINDOW)):
            assert np.array_equal(found.keys, data.window(row, found.first, found.first + found.steps).keys)
    sizes = {version: (folder / version / shard_name(0)).stat().st_size for version in ("1", "2")}
    events = sum(map(len, recordings))
    whole = rates({"1": lambda row: old.window(row, 0, steps), "2": lambda row: data[row]}, count)
    truths = rates({"1": lambda row: old.window(row, 0, steps).truth, "2": lambda row: data[row].truth}, count)
    windows = rates(
        {
            "1": lambda row: old.window(row, start[row], start[row] + WINDOW),
            "2": lambda row: data.window(row, start[row], start[row] + WINDOW),
        },
        count,
    )
    content, each = memoryview((folder / "2" / shard_name(0)).read_bytes()), sizes["2"] // count
    hashed = rates({"2": lambda row: hash_of(content[row * each : (row + 1) * each])}, count)
    return {
        "bytes_per_event": {version: size / events for version, size in sizes.items()},
        "recordings_per_s": whole,
        "recordings_with_their_ground_truth_per_s": truths,
        "windows_per_s": windows,
        "checksum_share": whole["2"] / hashed["2"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=64, help="recordings, at most 64")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    bouncing = gerd.load(Path(__file__).parent.parent / "configs" / "bouncing.yaml")
    result = {}
    for case, config in (("three shapes", CASES["three shapes"]), ("configs/bouncing.yaml", bouncing)):
        folder = Path(tempfile.mkdtemp(prefix="gerd-bench-"))
        try:
            result[case] = measured(config, min(chosen.count, 64), folder)
        finally:
            shutil.rmtree(folder)
    print("\n| case | measure | version 1 | version 2 | ratio |\n| --- | --- | --- | --- | --- |")
    for case, found in result.items():
        for name in (name for name in found if name != "checksum_share"):
            one, two = found[name]["1"], found[name]["2"]
            print(f"| {case} | {name.replace('_', ' ')} | {one:,.4g} | {two:,.4g} | {two / one:.2f} |")
        print(f"| {case} | share of checksums in a whole recording | | {found['checksum_share']:.1%} | |")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

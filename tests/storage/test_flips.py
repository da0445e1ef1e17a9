"""A flipped bit of a shard is an error that names the file and the recording, wherever it is, and never a wrong number.

Bits are flipped one at a time, at random; after each, windows that together hold every step and the ground truth of
every recording are read, as training and `hold_out` do it. The short run takes seconds, the long one flips 100 000.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import gerd
from gerd.storage.blocks import block_steps
from gerd.storage.manifest import shard_name
from gerd.storage.recordings import Recordings
from gerd.storage.shard import Shard, shard_bytes

SEVERAL_BLOCKS = """
seed: 9
sensor: {width: 11, height: 7}
steps: 5
noise: {background: 0.03, hot: {share: 0.1, rate_hz: 900}}
actors:
  - shape: circle
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: {normal: [0, 0.1]}}
    scale: {start: 5, acceleration: 0}
sweep: {steps: [5, 12]}
"""


@dataclass
class InMemory:
    """A file that is not on a disk."""

    name: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, stop: int) -> bytes:
        assert 0 <= start <= stop <= len(self.data), "more than the file is asked for"
        return self.data[start:stop]


def items(shard: Shard, config: gerd.Config) -> list[tuple[int, bytes | str]]:
    """Of each recording, two windows and the ground truth: row, and the bytes or what the error says."""
    result: list[tuple[int, bytes | str]] = []
    for row in range(len(shard)):
        steps = int(shard.shape[row, 0])
        for read in (
            lambda row=row, steps=steps: shard.window(row, config, 0, steps - 1),
            lambda row=row, steps=steps: shard.window(row, config, steps - 2, steps),
            lambda row=row: shard.truth(row),
        ):
            try:
                found = read()
            except gerd.StorageError as error:
                result.append((row, str(error)))
                continue
            parts = [found] if isinstance(found, np.ndarray) else [found.keys, found.source, found.truth]
            result.append((row, b"".join(part.tobytes() for part in parts)))
    return result


def opened_items(content: bytes, config: gerd.Config) -> list[tuple[int, bytes | str]] | str:
    """The items of a shard, or what the error says if it cannot be opened."""
    try:
        shard = Shard(InMemory("flipped", content))
    except gerd.StorageError as error:
        return str(error)
    return items(shard, config)


@pytest.mark.parametrize("flips", [1500, pytest.param(100_000, marks=pytest.mark.long)])
def test_no_flipped_bit_reaches_anybody(flips: int) -> None:
    assert block_steps(12, 60, 1, target=2**10) == 4
    config = gerd.parse(SEVERAL_BLOCKS)
    recordings = [gerd.simulate(config, index, member) for index in range(2) for member in range(2)]
    sound = shard_bytes(recordings, [0, 1, 0, 1], "code", target=2**10)
    wanted = items(Shard(InMemory("sound", sound)), config)
    assert len(wanted) == 4 * 3
    assert all(isinstance(found, bytes) for _, found in wanted)
    begin = 8 + int.from_bytes(sound[:8], "little")
    random, at_opening, at_reading = np.random.default_rng(0), 0, 0
    for _ in range(flips):
        place = int(random.integers(8 * len(sound)))
        damaged = bytearray(sound)
        damaged[place // 8] ^= 1 << place % 8
        found = opened_items(bytes(damaged), config)
        if isinstance(found, str):
            assert found.startswith("flipped: is damaged: "), place
            at_opening += 1
            continue
        wrong = [(row, text) for (row, text), original in zip(found, wanted, strict=True) if (row, text) != original]
        assert wrong, f"bit {place} was flipped, and nobody noticed"
        for row, text in wrong:
            assert isinstance(text, str), f"bit {place} was flipped, and row {row} is silently wrong"
            assert text.startswith(f"flipped: is damaged: index {row // 2}, member {row % 2}, ")
        at_reading += 1
    assert at_opening > flips * begin / len(sound) / 2
    assert at_reading > flips * (1 - begin / len(sound)) / 4


def test_a_damaged_header_names_the_recordings_that_are_lost(tmp_path: Path) -> None:
    gerd.generate(gerd.parse(SEVERAL_BLOCKS), tmp_path / "data", 40, workers=1)
    file = tmp_path / "data" / shard_name(1)
    damaged = bytearray(file.read_bytes())
    damaged[20] ^= 2
    file.write_bytes(damaged)
    data = Recordings(tmp_path / "data")
    assert data[63].steps == 12
    for read in (lambda: data[64], lambda: data.window(70, 0, 2), lambda: data.truth(79)):
        with pytest.raises(gerd.StorageError, match=r"shard-000001\.safetensors: is damaged: .*rows 64 to 79"):
            read()

"""Sources and delays of events in a shard: any survive, whole and in windows; where there are none, no bytes are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

import gerd
from gerd.config.sweep import member
from gerd.recording.recording import Recording
from gerd.storage.details import details_size, pack_details, unpack_details
from gerd.storage.manifest import shard_name
from gerd.storage.places import Folder
from gerd.storage.shard import Shard, shard_bytes

EMPTY = """
sensor: {width: 20, height: 10}
steps: 40
timing: exact
actors: []
"""


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**32 - 1)), max_size=40), st.integers(0, 32))
def test_sources_and_delays_survive(events: list[tuple[int, int]], bits: int) -> None:
    source = np.array([source for source, _ in events], np.uint8)
    delay = np.array([late % 2**bits for _, late in events], np.int64)
    packed, source_bits, delay_bytes = pack_details(source, delay)
    assert len(packed) == details_size(len(events), source_bits, delay_bytes)
    expected, late = "", b""  # by the layout in the documentation, in Python's integers
    if source.max(initial=0) > 1:
        expected = "".join(f"{number:02b}" for number in source.tolist())
    if delay.any():
        late = b"".join(number.to_bytes(delay_bytes, "little") for number in delay.tolist())
    expected += "0" * (-len(expected) % 8)
    assert packed == bytes(int(expected[i : i + 8], 2) for i in range(0, len(expected), 8)) + late
    found, found_delay = unpack_details(packed, len(events), source_bits, delay_bytes)
    assert (found is None) == (source.max(initial=0) < 2)
    assert found is None or found.tolist() == source.tolist()
    assert (found_delay is None) == (not delay.any())
    assert found_delay is None or found_delay.tolist() == delay.tolist()
    with pytest.raises(ValueError, match="has changed"):
        unpack_details(packed + b"0", len(events), source_bits, delay_bytes)


def some_recording(source: np.ndarray, delay: np.ndarray | None) -> Recording:
    random, span = np.random.default_rng(0), 40 * 1000 * 20 * 10 * 2
    keys = np.sort(random.integers(0, span, len(source)))
    return Recording.of(member(gerd.parse(EMPTY), 0), 0, np.zeros((40, 0, 3, 6)), keys, source, delay)


def test_they_are_stored_block_by_block_and_only_where_there_are_some(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    plain = (random.random(9000) < 0.2).astype(np.uint8)
    several = random.integers(0, 4, 9000).astype(np.uint8)
    late = np.concatenate([np.zeros(3000, np.int64), random.integers(0, 70_000, 6000)])
    file = tmp_path / shard_name(0)
    file.write_bytes(shard_bytes([some_recording(plain, None)], [0], "code", target=2**12))
    assert not {"details", "detail_blocks"} & load_file(file).keys()
    recordings = [some_recording(plain, None), some_recording(several, late)]
    file.write_bytes(shard_bytes(recordings, [0, 0], "code", target=2**12))
    entries = load_file(file)["detail_blocks"]
    assert set(map(tuple, entries[:, 2:].tolist())) == {(0, 0), (2, 0), (2, 4)}
    shard = Shard(Folder(tmp_path).open(file.name))
    config = gerd.parse(EMPTY)
    for row, wanted in enumerate(recordings):
        assert np.array_equal(shard.recording(row, config).source, wanted.source)
        assert np.array_equal(shard.recording(row, config).fired_us, wanted.fired_us)
        for start in range(0, 39, 7):
            part, other = shard.window(row, config, start, start + 3), wanted.window(start, start + 3)
            assert np.array_equal(part.source, other.source)
            assert np.array_equal(part.fired_us, other.fired_us)


class AllNoise(np.ndarray):
    """Sources which, when they are compared, say of all events that no edge has caused them."""

    def __ne__(self, other: object) -> np.ndarray:
        return np.ones(len(self), np.bool_)


def test_sources_that_contradict_the_flags_are_refused(tmp_path: Path) -> None:
    recording = some_recording(np.array([0, 1, 2, 3], np.uint8).view(AllNoise), None)
    file = tmp_path / shard_name(0)
    file.write_bytes(shard_bytes([recording], [0], "code"))
    with pytest.raises(gerd.StorageError, match="is damaged: index 0, member 0, has changed"):
        Shard(Folder(tmp_path).open(file.name)).recording(0, gerd.parse(EMPTY))

"""Datasets on disk: what is written can be read by others, and what is damaged is found and named."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from safetensors import safe_open
from safetensors.numpy import load_file
from support.datasets import RAGGED, TRIANGLE, TWO_SHAPES, faults, make, unfinish

import gerd
from gerd.config.sweep import member
from gerd.errors import GerdError
from gerd.recording.recording import Recording
from gerd.storage.manifest import RESOLVED, SHARD_SIZE, shard_name
from gerd.storage.places import Folder
from gerd.storage.shard import Shard, shard_bytes
from gerd.storage.tensors import tensors_bytes

ORDER = ("index", "member", "shape", "block_steps", "blocks", "digest", "checksum", "truth", "events")


def arrays_of(recording: Recording) -> dict[str, Any]:
    """Everything that a recording is, for comparison."""
    numbers = (recording.width, recording.height, recording.steps, recording.step_us)
    names = ("keys", "source", "fired_us", "truth")
    arrays = {name: getattr(recording, name) for name in names}
    described = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return {"identity": recording.identity, "numbers": numbers, **described}


def shard_of(file: Path) -> Shard:
    return Shard(Folder(file.parent).open(file.name))


def bits_of(number: float) -> int:
    return int.from_bytes(struct.pack("<d", number), "little", signed=True)


def number_of(bits: int) -> float:
    return struct.unpack("<d", (bits % 2**64).to_bytes(8, "little"))[0]


def plain_events(data: bytes, count: int, bits: int, count_bytes: int, base: int, span: int) -> tuple[Any, Any]:
    """The events of a block by the layout in the documentation, one at a time, with Python's integers."""
    if not count:
        return [], []
    low, extra = {8: (1, 0), 12: (1, 4), 16: (2, 0), 20: (2, 4), 24: (2, 8), 32: (4, 0), 63: (8, 0)}[bits]
    ranges, middle = -(-span // 2**bits), (count + 1) // 2
    low_at = ranges * count_bytes
    extra_at = low_at + low * count
    flags_at = extra_at + (0 if extra == 0 else middle if extra == 4 else count)
    keys, background = [], []
    for number in range(ranges):
        for _ in range(int.from_bytes(data[number * count_bytes : (number + 1) * count_bytes], "little")):
            i = len(keys)
            key = int.from_bytes(data[low_at + low * i : low_at + low * (i + 1)], "little")
            if extra == 4:
                half = data[extra_at + i % middle]
                key += (half % 16 if i < middle else half // 16) << 8 * low
            elif extra == 8:
                key += data[extra_at + i] << 16
            keys.append(base + number * 2**bits + key)
            background.append(bool(data[flags_at + i // 8] >> (7 - i % 8) & 1))
    assert (len(keys), flags_at + (count + 7) // 8) == (count, len(data))
    return keys, background


def plain_truth(data: bytes, steps: int, actors: int) -> Any:
    """The ground truth of a block, one number at a time, with Python's numbers."""
    count = actors * 18
    first, sizes = struct.unpack_from(f"<{count}d", data), struct.unpack_from("<3I", data, 8 * count)
    which = iter(struct.unpack_from(f"<{sum(sizes)}I", data, 8 * count + 12))
    at = 8 * count + 12 + 4 * sum(sizes)
    columns = {column: [first[column]] * steps for column in range(count)}
    for _ in range(sizes[0]):
        column = next(which)
        columns[column] = [first[column], *struct.unpack_from(f"<{steps - 1}d", data, at)]
        at += 8 * (steps - 1)
    for column in which:
        predicted, lacks = first[column], struct.unpack_from(f"<{steps - 1}b", data, at)
        at += steps - 1
        for step in range(1, steps):
            growth = columns[column + 6][step - 1]
            if column // 6 % 3 == 0:
                growth = growth + columns[column + 12][step - 1] * 0.5
            predicted = predicted + growth
            columns[column][step] = number_of(bits_of(predicted) + lacks[step - 1])
    assert at == len(data)
    return np.array([columns[c] for c in range(count)]).reshape(actors, 3, 6, steps).transpose(3, 0, 1, 2)


def plain(file: Path, row: int) -> dict[str, Any]:
    """One recording of a shard, by the layout in the documentation, with safetensors and slow Python."""
    with safe_open(file, framework="numpy") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is not a dict
        about = json.loads(opened.metadata()["gerd"])
    steps, height, width, actors, ticks = tensors["shape"][row].tolist()
    all_truth, all_events = tensors["truth"].tobytes(), tensors["events"].tobytes()
    keys: list[int] = []
    flags: list[bool] = []
    truth, blocks = [], iter(tensors["blocks"].tolist())
    for number, size in enumerate(tensors["block_steps"].tolist()):
        for first in range(0, int(tensors["shape"][number, 0]), size):
            truth_bytes, truth_checksum, event_bytes, checksum, count, bits, count_bytes = next(blocks)
            span = min(size, int(tensors["shape"][number, 0]) - first)
            span *= int(np.prod(tensors["shape"][number, [1, 2, 4]])) * 2
            of_truth, all_truth = all_truth[:truth_bytes], all_truth[truth_bytes:]
            of_events, all_events = all_events[:event_bytes], all_events[event_bytes:]
            assert xxhash.xxh3_64(of_truth).intdigest() == truth_checksum
            assert xxhash.xxh3_64(of_events).intdigest() == checksum
            if number == row:
                base = first * ticks * height * width * 2
                more, marked = plain_events(of_events, count, bits, count_bytes, base, span)
                keys, flags = keys + more, flags + marked
                truth.append(plain_truth(of_truth, min(size, steps - first), actors))
    found = np.array(keys, np.int64)
    p, x, y, tick = found % 2, found // 2 % width, found // 2 // width % height, found // 2 // width // height
    return {
        "coordinates": np.stack([tick // ticks, y, x, p], axis=1),
        "background": np.array(flags, bool),
        "truth": np.concatenate(truth),
        "digest": tensors["digest"][row].tobytes().hex(),
        "size": (steps, height, width),
        "index": tensors["index"][row],
        "labels": about["labels"][row],
        "step_us": about["step_us"][row],
        "seed": about["seed"],
    }


@pytest.mark.parametrize("text", [TWO_SHAPES, *RAGGED.values()], ids=["two shapes", *RAGGED])
def test_files_hold_what_simulate_gives_for_us_and_for_others(text: str, tmp_path: Path) -> None:
    config = gerd.parse(text)
    data = make(tmp_path / "data", text, 5)
    members = data.manifest.members
    assert len(data) == 5 * members == len(list(data))
    for position, recording in enumerate(data):
        stored = plain(tmp_path / "data" / shard_name(0), position)
        made = gerd.simulate(config, int(stored["index"]), **stored["labels"])
        assert position // members == stored["index"]
        assert np.array_equal(stored["coordinates"], made.coordinates)
        assert np.array_equal(stored["background"], made.background)
        assert np.array_equal(stored["truth"], made.truth)
        assert stored["digest"] == made.digest
        assert stored["size"] == (made.steps, made.height, made.width)
        assert (stored["step_us"], stored["seed"]) == (made.step_us, config.seed)
        assert arrays_of(recording) == arrays_of(made)
        assert recording.config.family.digest == config.digest
        assert recording.config.digest == made.config.digest
        assert recording.keys.dtype == np.int64
    assert len({json.dumps(recording.identity.labels) for recording in data[:members]}) == members


@pytest.mark.parametrize("steps", [4, 5])
def test_keys_of_more_than_32_bits_survive(steps: int, tmp_path: Path) -> None:
    side = 16384  # 4 · 2 · side² is 2³¹
    config = gerd.parse(TRIANGLE, overrides=[f"sensor={{width: {side}, height: {side}}}", f"steps={steps}"])
    last = steps * 2 * side * side - 1
    recording = Recording.of(
        member(config, 0),
        0,
        np.arange(steps * 18.0).reshape(steps, 1, 3, 6),
        np.array([0, 77, last - 1, last]),
        np.array([1, 0, 0, 1], np.uint8),
    )
    file = tmp_path / shard_name(0)
    file.write_bytes(shard_bytes([recording], [0], "code"))
    found = shard_of(file).recording(0, config)
    assert arrays_of(found) == arrays_of(recording)
    assert found.coordinates[-1].tolist() == [steps - 1, side - 1, side - 1, 1]


def test_events_of_exact_timing_survive(tmp_path: Path) -> None:
    """A thousand ticks to a step, and several events at one tick and pixel; whole, and window by window."""
    steps, per_step = 40, 1000 * 20 * 10 * 2
    config = gerd.parse(TRIANGLE, overrides=[f"steps={steps}", "timing=exact"])
    random = np.random.default_rng(0)
    keys = np.sort(random.integers(0, steps * per_step, 30_000))
    keys[5000:5007] = keys[5000]
    flags = (random.random(len(keys)) < 0.2).astype(np.uint8)
    recording = Recording.of(member(config, 0), 0, random.normal(size=(steps, 1, 3, 6)), keys, flags)
    file = tmp_path / shard_name(0)
    file.write_bytes(shard_bytes([recording], [0], "code", target=2**14))
    shard = shard_of(file)
    assert shard.shape.tolist() == [[steps, 10, 20, 1, 1000]]
    assert len(load_file(file)["blocks"]) > 3
    found = shard.recording(0, config)
    assert arrays_of(found) == arrays_of(recording)
    for start in range(0, steps - 3, 3):
        part, inside = shard.window(0, config, start, start + 3), keys // per_step // 3 == start // 3
        assert part.keys.tolist() == (keys[inside] - start * per_step).tolist()
        assert part.source.tolist() == flags[inside].tolist()
        assert np.array_equal(part.truth, recording.truth[start : start + 3])
    stepwise = gerd.parse(TRIANGLE, overrides=[f"steps={steps}"])
    with pytest.raises(gerd.StorageError, match="is not a recording of the dataset's config"):
        shard_of(file).recording(0, stepwise)


def test_positions_count_like_those_of_a_list(pristine: Path) -> None:
    data = gerd.Recordings(pristine)
    indices = [(r.identity.index, r.identity.labels["time_scale"]) for r in data]
    assert indices == [(i, scale) for i in range(70) for scale in (0.5, 2)]
    for position in (0, 63, 64, 139, -1, -140, np.int64(3)):
        assert data[position].identity.index == indices[position][0]
    for part in (slice(3), slice(60, 70, 3), slice(-2, None), slice(5, 2), slice(None, None, -50)):
        assert [(r.identity.index, r.identity.labels["time_scale"]) for r in data[part]] == indices[part]
    for position in (140, -141, 10**30):
        with pytest.raises(IndexError, match=rf"no row {position}; it has 140"):
            data[position]
    for strange in ("3", 3.0, None):
        with pytest.raises(GerdError, match="allowed: a whole number, or a slice"):
            data[strange]  # type: ignore[call-overload]


def test_recordings_can_be_sent_to_another_process(pristine: Path) -> None:
    data = gerd.Recordings(pristine)
    before = arrays_of(data[100])  # opens a shard and reads the config
    assert arrays_of(pickle.loads(pickle.dumps(data))[100]) == before
    assert arrays_of(pickle.loads(pickle.dumps(data[100]))) == before  # its ground truth still packed


def test_more_shards_than_are_kept_open(pristine: Path) -> None:
    data = gerd.Recordings(pristine, open_shards=1)
    for position in (0, 64, 130, 1, 139, 70):
        shard = data.shard(position // 64)
        assert data[position].identity.index == position // 2
        assert data.shard(position // 64) is shard
        data.shard((position // 64 + 1) % 3)
        assert data.shard(position // 64) is not shard  # it was closed, and is opened again


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_reading_one_recording_does_not_read_the_whole_file(tmp_path: Path) -> None:
    steps = 300_000
    text = TRIANGLE + f"sweep: {{steps: [{steps}, 3]}}"
    long, short = (member(gerd.parse(text), number) for number in range(2))
    truth = np.random.default_rng(0).normal(size=(steps, 1, 3, 6))
    recordings = [
        Recording.of(long, 0, truth, np.arange(0, steps, 3), np.zeros(steps // 3, np.uint8)),
        Recording.of(short, 0, truth[:3]),
    ]
    file = tmp_path / "big.safetensors"
    file.write_bytes(shard_bytes(recordings, [0, 1], "code"))
    program = f"""
import sys
from collections.abc import Callable
from pathlib import Path
import gerd
from gerd.storage.shard import Shard
from gerd.storage.places import Folder
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * {__import__("resource").getpagesize()}
config = gerd.parse({text!r})
gerd.simulate(config, steps=3)
before = resident()
file = Path(sys.argv[1])
shard = Shard(Folder(file.parent).open(file.name))
shard.recording(1, config)
print(resident() - before)
held = shard.recording(0, config)
print(resident() - before)
"""
    result = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    one, both = map(int, result.stdout.split())
    assert file.stat().st_size > 40e6
    assert one < 10e6
    assert both > 40e6


# Damage.


def readable(folder: Path) -> tuple[list[Recording | None], str]:
    """Every recording that can be read, None for the others, and what the errors said."""
    data, messages = gerd.Recordings(folder), ""
    result: list[Recording | None] = []
    for position in range(len(data)):
        try:
            result.append(data[position])
        except gerd.StorageError as error:
            messages += f"{error}\n"
            result.append(None)
    return result, messages


def test_no_flipped_byte_of_a_shard_gives_a_wrong_recording(tmp_path: Path) -> None:
    data = make(tmp_path / "data", TRIANGLE, 4)
    wanted = [arrays_of(recording) for recording in data]
    file = tmp_path / "data" / shard_name(0)
    sound = file.read_bytes()
    header = int.from_bytes(sound[:8], "little") + 8
    places = [*range(0, header, 5), *range(header, len(sound), 37)]
    refused = 0
    for place in places:
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        found, messages = readable(tmp_path / "data")
        for recording, original in zip(found, wanted, strict=True):
            assert recording is None or arrays_of(recording) == original, place
        assert messages.count(str(file)) == found.count(None) == messages.count("\n")
        refused += None in found
        assert faults(tmp_path / "data"), place
    assert refused > len(places) // 2


@pytest.mark.parametrize("keys", [[-1, 5], [5, 3], [5, 5], [5, 3 * 2 * 20 * 10]], ids=str)
def test_events_that_cannot_be_are_not_written(keys: list[int]) -> None:
    forged = dataclasses.replace(gerd.simulate(gerd.parse(TRIANGLE)), keys=np.array(keys), source=np.zeros(2, np.uint8))
    with pytest.raises(gerd.StorageError, match="index 0: cannot be stored: its events are not in order"):
        shard_bytes([forged], [0], "code")


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e300])
def test_ground_truth_that_cannot_be_is_not_written(number: float) -> None:
    recording = gerd.simulate(gerd.parse(TRIANGLE))
    recording.truth[1, 0, 1, 2] = number
    with pytest.raises(gerd.StorageError, match="index 0: cannot be stored: its ground truth is not finite"):
        shard_bytes([recording], [0], "code")


@pytest.mark.parametrize("keys", [[5, 3], [5, 5], [5, 3 * 2 * 20 * 10]], ids=str)
def test_events_that_cannot_be_are_refused_whatever_the_checksum_says(keys: list[int], tmp_path: Path) -> None:
    config = gerd.parse(TRIANGLE)
    sound = dataclasses.replace(gerd.simulate(config), keys=np.array([3, 5]), source=np.zeros(2, np.uint8))
    file = tmp_path / "shard"
    file.write_bytes(shard_bytes([sound], [0], "code"))
    assert shard_of(file).recording(0, config).keys.tolist() == [3, 5]

    def forge(tensors: dict[str, Any], _: Any) -> None:
        data, width = tensors["events"], (len(tensors["events"]) - 2) // 2  # a count, two keys, flags
        data[1:-1] = np.frombuffer(b"".join(key.to_bytes(width, "little") for key in keys), np.uint8)
        tensors["blocks"][:, 3] = xxhash.xxh3_64(data.tobytes()).intdigest()

    rewritten(forge)(file)
    with pytest.raises(gerd.StorageError, match="index 0, member 0, has changed"):
        shard_of(file).recording(0, config)


def test_other_recordings_stay_readable(dataset: Path) -> None:
    file = dataset / shard_name(1)
    with safe_open(file, framework="numpy") as sound:
        sizes = sound.get_tensor("blocks")[:, 2].tolist()
        start = file.read_bytes().index(sound.get_tensor("events").tobytes())
    assert len(sizes) == 64  # a block each
    spoilt = bytearray(file.read_bytes())
    spoilt[start + sum(sizes[:10])] ^= 4
    file.write_bytes(spoilt)
    found, message = readable(dataset)
    assert [position for position, recording in enumerate(found) if recording is None] == [64 + 10]
    assert message.startswith(f"{file}: is damaged")


def rewritten(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Damage by whoever knows the format: tensors and what is said about them, changed, with a valid checksum."""

    def damage(file: Path) -> None:
        with safe_open(file, framework="numpy") as opened:
            tensors = {name: opened.get_tensor(name).copy() for name in opened.keys()}  # noqa: SIM118
            about = json.loads(opened.metadata()["gerd"])
        change(tensors, about)
        order = [name for name in ORDER if name in tensors]
        file.write_bytes(tensors_bytes({name: np.ascontiguousarray(tensors[name]) for name in order}, about))

    return damage


def replaced_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replaced_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def replaced_by_a_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def with_a_size_that_overflows(tensors: dict[str, Any], _: Any) -> None:
    """2⁶² actors: 4 steps of them would be 0 numbers in 64 bits."""
    tensors["shape"][:, 3] = 2**62


def with_as_many_pixels_as_overflow(tensors: dict[str, Any], _: Any) -> None:
    """2 · 2³¹ · 2³¹ keys in a step would be -2⁶³ in 64 bits, and twice as many 0."""
    tensors["shape"][:, 1:3] = 2**31


def with_smaller_frames(tensors: dict[str, Any], _: Any) -> None:
    tensors["shape"][:, 1:3] = 1


def with_blocks(column: int, value: int) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(tensors: dict[str, Any], _: Any) -> None:
        tensors["blocks"][:, column] = value

    return change


def with_columns(column: int) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Ground truth of a column that is not there, under valid checksums; `column` of the list of them."""

    def change(tensors: dict[str, Any], _: Any) -> None:
        at, count = 0, 8 * 18 * 2  # bytes of the first numbers of two actors
        for block in tensors["blocks"]:
            part = tensors["truth"][at : at + int(block[0])]
            part[count : count + 4 * column + 4][-4:] = 255
            block[1] = xxhash.xxh3_64(part.tobytes()).intdigest()
            at += len(part)

    return change


def with_other_counts(tensors: dict[str, Any], _: Any) -> None:
    """Ranges of keys that have more events than there are, under valid checksums."""
    at = 0
    for block in tensors["blocks"]:
        part = tensors["events"][at : at + int(block[2])]
        part[0] ^= 1
        block[3] = xxhash.xxh3_64(part.tobytes()).intdigest()
        at += len(part)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "cut in the header": lambda file: file.write_bytes(file.read_bytes()[:100]),
    "empty": lambda file: file.write_bytes(b""),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "text": lambda file: file.write_text("these are not the tensors you want"),
    "missing": Path.unlink,
    "a folder": replaced_by_a_folder,
    "a pipe": replaced_by_a_pipe,
    "a device": replaced_by_a_device,
    "of another place": lambda file: shutil.copy(file.with_name(shard_name(0)), file),
    "without a tensor": rewritten(lambda tensors, about: tensors.pop("truth")),
    "of another format": rewritten(lambda tensors, about: about.update(format_version=2)),
    "of another config": rewritten(lambda tensors, about: about.update(config_digest="0" * 64)),
    "of another seed": rewritten(lambda tensors, about: about.update(seed=4)),
    "strange labels": rewritten(lambda tensors, about: about.update(labels=7)),
    "strange types": rewritten(lambda tensors, about: tensors.update(blocks=tensors["blocks"].astype(np.int64))),
    "of another code": rewritten(lambda tensors, about: about.update(code_digest="0" * 64)),
    "no blocks": rewritten(lambda tensors, about: tensors.update(blocks=tensors["blocks"][:0])),
    "no shape": rewritten(lambda tensors, about: tensors.update(shape=tensors["shape"][:, :0])),
    "negative steps": rewritten(lambda tensors, about: tensors["shape"][::2, 0].__imul__(-1)),
    "blocks of no steps": rewritten(lambda tensors, about: tensors["block_steps"].fill(0)),
    "blocks of too many steps": rewritten(lambda tensors, about: tensors["block_steps"].fill(2**40)),
    "more bytes than there are": rewritten(with_blocks(2, 2**40)),
    "more events than bytes": rewritten(with_blocks(4, 2**40)),
    "events that overflow": rewritten(with_blocks(4, 2**64 - 1)),
    "fewer events": rewritten(with_blocks(4, 1)),
    "no bits": rewritten(with_blocks(5, 0)),
    "many bits": rewritten(with_blocks(5, 2**63)),
    "other bits": rewritten(with_blocks(5, 32)),
    "counts of no bytes": rewritten(with_blocks(6, 0)),
    "counts of many bytes": rewritten(with_blocks(6, 2**61)),
    "counts of other bytes": rewritten(with_blocks(6, 4)),
    "other counts": rewritten(with_other_counts),
    "truth of another length": rewritten(with_blocks(0, 1)),
    "truth of more columns": rewritten(with_columns(0)),
    "truth of columns that are not there": rewritten(with_columns(3)),
    "other checksums": rewritten(with_blocks(3, 1)),
    "a size that overflows": rewritten(with_a_size_that_overflows),
    "as many pixels as overflow": rewritten(with_as_many_pixels_as_overflow),
    "smaller frames": rewritten(with_smaller_frames),
    "ticks": rewritten(lambda tensors, about: tensors["shape"][:, 4].fill(1000)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_bad_shard_is_named_and_the_others_are_read(damage: str, dataset: Path) -> None:
    file = dataset / shard_name(1)
    DAMAGE[damage](file)
    found, messages = readable(dataset)
    assert [recording is None for recording in found] == [SHARD_SIZE <= i < 2 * SHARD_SIZE for i in range(140)]
    assert all(line.startswith(f"{file}: ") for line in messages.splitlines())
    assert [line for line in faults(dataset) if not line.startswith(f"{file}: ")] == []
    assert faults(dataset)
    for start in range(5):
        with pytest.raises(gerd.StorageError, match=str(file)):
            gerd.Recordings(dataset).window(SHARD_SIZE, start, start + 1)


CONFIGS = {
    "empty": b"",
    "list": b"[]",
    "null": b"null",
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "other": b'{"actors": []}',
    "bad": b'{"actors": 3}',
}


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS)
def test_a_garbage_config_is_named(content: bytes, dataset: Path) -> None:
    (dataset / RESOLVED).write_bytes(content)
    with pytest.raises(gerd.StorageError, match=RESOLVED):
        gerd.Recordings(dataset)[0]
    found = faults(dataset)
    assert found
    assert all(RESOLVED in line for line in found)


def test_what_is_not_a_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, message in (("none", "no such dataset"), ("file", "is a file"), ("folder", "has no manifest")):
        with pytest.raises(gerd.StorageError, match=f"{name}: .*{message}"):
            gerd.Recordings(tmp_path / name)


def test_an_unfinished_dataset_says_so(dataset: Path) -> None:
    unfinish(dataset)
    (dataset / shard_name(1)).unlink()
    data = gerd.Recordings(dataset)
    assert data[0].identity.index == 0
    with pytest.raises(gerd.StorageError, match=f"{shard_name(1)}: is missing: the dataset is not complete"):
        data[64]
    assert [line.partition(": ")[2] for line in faults(dataset)] == [
        "the dataset is not complete; run the same generate command to finish it"
    ]

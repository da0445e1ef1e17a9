"""Datasets on disk: what is written can be read by others, and what is damaged is found and named."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from support.datasets import RAGGED, TRIANGLE, TWO_SHAPES, faults, make, unfinish

import gerd
from gerd.config.sweep import member
from gerd.recording.recording import Recording
from gerd.storage.manifest import RESOLVED, SHARD_SIZE, shard_name
from gerd.storage.places import Folder
from gerd.storage.shard import Shard, shard_bytes


def arrays_of(recording: Recording) -> dict[str, Any]:
    """Everything that a recording is, for comparison."""
    numbers = (recording.width, recording.height, recording.steps, recording.step_us)
    arrays = {"keys": recording.keys, "background": recording.background, "truth": recording.truth}
    described = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return {"identity": recording.identity, "numbers": numbers, **described}


def shard_of(file: Path) -> Shard:
    return Shard(Folder(file.parent).open(file.name))


def plain(file: Path, row: int) -> dict[str, Any]:
    """One recording of a shard, by the layout in the documentation, with safetensors and numpy alone."""
    with safe_open(file, framework="numpy") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is not a dict
        about = json.loads(opened.metadata()["gerd"])
    steps, height, width, actors = tensors["shape"][row]
    low, high = tensors["event_offsets"][row : row + 2]
    keys = tensors["keys"][low:high].astype(np.int64)
    flags = np.unpackbits(tensors["background"])[low:high].astype(bool)
    first, last = tensors["truth_offsets"][row : row + 2]
    p, x = keys % 2, keys // 2 % width
    y, step = keys // 2 // width % height, keys // 2 // width // height
    return {
        "coordinates": np.stack([step, y, x, p], axis=1),
        "background": flags,
        "truth": tensors["truth"][first:last].reshape(steps, actors, 3, 6),
        "digest": tensors["digest"][row].tobytes().hex(),
        "size": (steps, height, width),
        "index": tensors["index"][row],
        "labels": about["labels"][row],
        "step_us": about["step_us"][row],
        "seed": about["seed"],
        "offset": low,
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


def test_flags_at_odd_offsets_survive(pristine: Path) -> None:
    data = gerd.Recordings(pristine)
    odd = 0
    for position in range(SHARD_SIZE):
        offset = plain(pristine / shard_name(0), position)["offset"]
        flags = data[position].background
        odd += bool(offset % 8) and flags.any() and not flags.all()
    assert odd > SHARD_SIZE // 2


@pytest.mark.parametrize(("steps", "kind"), [(4, np.int32), (5, np.int64)])
def test_keys_are_as_wide_as_they_must_be(steps: int, kind: type, tmp_path: Path) -> None:
    side = 16384  # 4 · 2 · side² is 2³¹
    config = gerd.parse(TRIANGLE, overrides=[f"sensor={{width: {side}, height: {side}}}", f"steps={steps}"])
    last = steps * 2 * side * side - 1
    recording = Recording.of(
        member(config, 0),
        0,
        np.arange(steps * 18.0).reshape(steps, 1, 3, 6),
        np.array([0, 77, last - 1, last]),
        np.array([True, False, False, True]),
    )
    file = tmp_path / shard_name(0)
    file.write_bytes(shard_bytes([recording], [0]))
    with safe_open(file, framework="numpy") as opened:
        assert opened.get_tensor("keys").dtype == kind
    found = shard_of(file).recording(0, config)
    assert arrays_of(found) == arrays_of(recording)
    assert found.coordinates[-1].tolist() == [steps - 1, side - 1, side - 1, 1]


def test_positions_count_like_those_of_a_list(pristine: Path) -> None:
    data = gerd.Recordings(pristine)
    indices = [(r.identity.index, r.identity.labels["time_scale"]) for r in data]
    assert indices == [(i, scale) for i in range(70) for scale in (0.5, 2)]
    for position in (0, 63, 64, 139, -1, -140, np.int64(3)):
        assert data[position].identity.index == indices[position][0]
    for part in (slice(3), slice(60, 70, 3), slice(-2, None), slice(5, 2), slice(None, None, -50)):
        assert [(r.identity.index, r.identity.labels["time_scale"]) for r in data[part]] == indices[part]
    for position in (140, -141, 10**30):
        with pytest.raises(IndexError, match=rf"no recording {position}; it holds 140"):
            data[position]
    for strange in ("3", 3.0, None):
        with pytest.raises(TypeError):
            data[strange]  # type: ignore[call-overload]


def test_recordings_can_be_sent_to_another_process(pristine: Path) -> None:
    data = gerd.Recordings(pristine)
    before = arrays_of(data[100])  # opens a shard and reads the config
    assert arrays_of(pickle.loads(pickle.dumps(data))[100]) == before


def test_more_shards_than_are_kept_open(pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gerd.storage.recordings.OPEN_SHARDS", 1)
    data = gerd.Recordings(pristine)
    for position in (0, 64, 130, 1, 139, 70):
        assert data[position].identity.index == position // 2
        assert len(data._shards) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_reading_one_recording_does_not_read_the_whole_file(tmp_path: Path) -> None:
    steps = 300_000
    text = TRIANGLE + f"sweep: {{steps: [{steps}, 3]}}"
    long, short = (member(gerd.parse(text), number) for number in range(2))
    truth = np.random.default_rng(0).normal(size=(steps, 1, 3, 6))
    recordings = [
        Recording.of(long, 0, truth, np.arange(0, steps, 3), np.zeros(steps // 3, bool)),
        Recording.of(short, 0, truth[:3]),
    ]
    file = tmp_path / "big.safetensors"
    file.write_bytes(shard_bytes(recordings, [0, 1]))
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
def test_events_that_cannot_be_are_refused_whatever_the_checksum_says(keys: list[int], tmp_path: Path) -> None:
    config = gerd.parse(TRIANGLE)
    forged = dataclasses.replace(gerd.simulate(config), keys=np.array(keys), background=np.zeros(2, bool))
    (tmp_path / "shard").write_bytes(shard_bytes([forged], [0]))
    with pytest.raises(gerd.StorageError, match="row 0, recording 0, has changed"):
        shard_of(tmp_path / "shard").recording(0, config)


def test_other_recordings_stay_readable(dataset: Path) -> None:
    file = dataset / shard_name(1)
    shard = shard_of(file)
    with safe_open(file, framework="numpy") as sound:
        start = file.read_bytes().index(sound.get_tensor("keys").tobytes())
    spoilt = bytearray(file.read_bytes())
    spoilt[start + 4 * int(shard.event_offsets[10])] ^= 4
    file.write_bytes(spoilt)
    found, message = readable(dataset)
    assert [position for position, recording in enumerate(found) if recording is None] == [64 + 10]
    assert message.startswith(f"{file}: is damaged")


def rewritten(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Damage by whoever knows the format: its tensors and what is said about them, changed."""

    def damage(file: Path) -> None:
        with safe_open(file, framework="numpy") as opened:
            tensors = {name: opened.get_tensor(name).copy() for name in opened.keys()}  # noqa: SIM118
            about = json.loads(opened.metadata()["gerd"])
        change(tensors, about)
        save_file(tensors, file, metadata={"gerd": json.dumps(about)})

    return damage


def replaced_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def with_truth_of_another_length(tensors: dict[str, Any], _: Any) -> None:
    tensors["truth_offsets"][5] += 1


def with_a_size_that_overflows(tensors: dict[str, Any], _: Any) -> None:
    """4 steps of 2⁶² actors would be 0 rows in 64 bits."""
    tensors["shape"][:] = [4, 1000, 1000, 2**62]
    tensors["truth_offsets"][:] = 0
    tensors["truth"] = tensors["truth"][:0]


def with_as_many_pixels_as_overflow(tensors: dict[str, Any], _: Any) -> None:
    """2 · 2³¹ · 2³¹ keys in a step would be -2⁶³ in 64 bits, and twice as many 0."""
    tensors["shape"][:, 1:3] = 2**31


def with_more_events_than_pixels(tensors: dict[str, Any], _: Any) -> None:
    tensors["shape"][:, 1:3] = 1


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "cut in the header": lambda file: file.write_bytes(file.read_bytes()[:100]),
    "empty": lambda file: file.write_bytes(b""),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "text": lambda file: file.write_text("these are not the tensors you want"),
    "missing": Path.unlink,
    "a folder": replaced_by_a_folder,
    "of another place": lambda file: shutil.copy(file.with_name(shard_name(0)), file),
    "without a tensor": rewritten(lambda tensors, about: tensors.pop("truth")),
    "of another format": rewritten(lambda tensors, about: about.update(format_version=2)),
    "of another config": rewritten(lambda tensors, about: about.update(config_digest="0" * 64)),
    "of another seed": rewritten(lambda tensors, about: about.update(seed=4)),
    "strange labels": rewritten(lambda tensors, about: about.update(labels=7)),
    "strange types": rewritten(lambda tensors, about: tensors.update(keys=tensors["keys"].astype(np.float32))),
    "offsets beyond the end": rewritten(
        lambda tensors, about: tensors.update(event_offsets=tensors["event_offsets"] * 1000)
    ),
    "unsorted keys": rewritten(lambda tensors, about: tensors.update(keys=tensors["keys"][::-1].copy())),
    "truth of another length": rewritten(with_truth_of_another_length),
    "a size that overflows": rewritten(with_a_size_that_overflows),
    "as many pixels as overflow": rewritten(with_as_many_pixels_as_overflow),
    "more events than pixels": rewritten(with_more_events_than_pixels),
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
    for start in range(5):  # of a part only the order and the range of its events are checked
        with contextlib.suppress(gerd.StorageError):
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

"""Datasets on disk: what is written can be read by others, and what is damaged is found and named."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import gerd
from gerd.recording.recording import Recording
from gerd.storage.places import Folder
from gerd.storage.recordings import CONFIG, MANIFEST, RESOLVED, SHARD_SIZE, json_bytes, shard_name
from gerd.storage.shard import Shard, shard_bytes
from gerd.storage.whole import write_whole

FAMILY = """
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
ONE = "sensor: {width: 20, height: 10}\nsteps: 3\nseed: 5\nnoise: {background: 0.02}\nactors: [{shape: triangle}]\n"
RAGGED = {
    "steps": ONE + "sweep: {steps: [3, 1, 12]}",
    "width": ONE + "sweep: {sensor.width: [20, 33], step_us: [1000, 7]}",
    "actors": ONE + "sweep: {actors: [[], [{shape: square}], [{shape: circle}, {shape: {text: 'g'}}]]}",
    "silent": ONE.replace("0.02", "0") + "sweep: {actors.0.intensity: [1, 0]}",  # the last recording has no events
}


def arrays_of(recording: Recording) -> dict[str, Any]:
    """Everything that a recording is, for comparison."""
    numbers = (recording.width, recording.height, recording.steps, recording.step_us)
    arrays = {"keys": recording.keys, "background": recording.background, "truth": recording.truth}
    described = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return {"identity": recording.identity, "numbers": numbers, **described}


def make(folder: Path, text: str, count: int) -> gerd.Recordings:
    return gerd.generate(gerd.parse(text), folder, count, workers=1)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 × 2 recordings in three shards."""
    folder = tmp_path_factory.mktemp("storage") / "family"
    make(folder, FAMILY, 70)
    return folder


@pytest.fixture
def dataset(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "dataset"))


def shard_of(file: Path) -> Shard:
    return Shard(Folder(file.parent).open(file.name))


def faults(folder: Path, **options: Any) -> list[str]:
    return [str(fault) for _, found in gerd.verify(folder, **options) for fault in found]


def noticed(folder: Path) -> list[str]:
    """What `verify` finds, or the error that it stops with."""
    try:
        return faults(folder)
    except gerd.StorageError as error:
        return [str(error)]


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


@pytest.mark.parametrize("text", [FAMILY, *RAGGED.values()], ids=["family", *RAGGED])
def test_files_hold_what_simulate_gives_and_others_can_read_them(text: str, tmp_path: Path) -> None:
    config = gerd.parse(text)
    data = make(tmp_path / "data", text, 5)
    for position in range(len(data)):
        found = plain(tmp_path / "data" / shard_name(0), position)
        made = gerd.simulate(config, int(found["index"]), **found["labels"])
        assert position // data.manifest["members"] == found["index"]
        assert np.array_equal(found["coordinates"], made.coordinates)
        assert np.array_equal(found["background"], made.background)
        assert np.array_equal(found["truth"], made.truth)
        assert found["digest"] == made.digest
        assert found["size"] == (made.steps, made.height, made.width)
        assert (found["step_us"], found["seed"]) == (made.step_us, config.seed)


@pytest.mark.parametrize("text", [FAMILY, *RAGGED.values()], ids=["family", *RAGGED])
def test_recordings_come_back_as_simulate_gives_them(text: str, tmp_path: Path) -> None:
    config = gerd.parse(text)
    data = make(tmp_path / "data", text, 5)
    assert len(data) == 5 * data.manifest["members"] == len(list(data))
    members = [{}] if not config.sweep else [data[k].identity.labels for k in range(data.manifest["members"])]
    for position, recording in enumerate(data):
        index, member = divmod(position, len(members))
        assert arrays_of(recording) == arrays_of(gerd.simulate(config, index, **members[member]))
        assert recording.config.digest == config.digest
        assert recording.keys.dtype == np.int64
    assert len({json.dumps(labels) for labels in members}) == len(members)


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
    config = gerd.parse(ONE)
    side = 16384  # 4 · 2 · side² is 2³¹
    last = steps * 2 * side * side - 1
    recording = dataclasses.replace(
        gerd.simulate(config),
        width=side,
        height=side,
        steps=steps,
        keys=np.array([0, 77, last - 1, last]),
        background=np.array([True, False, False, True]),
        truth=np.arange(steps * 18.0).reshape(steps, 1, 3, 6),
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
    config = gerd.parse(ONE)
    steps = 300_000
    long = dataclasses.replace(
        gerd.simulate(config),
        steps=steps,
        keys=np.arange(0, steps, 3),
        background=np.zeros(steps // 3, bool),
        truth=np.random.default_rng(0).normal(size=(steps, 1, 3, 6)),
    )
    short = gerd.simulate(config, 1)
    file = tmp_path / "big.safetensors"
    file.write_bytes(shard_bytes([long, short], [0, 0]))
    program = f"""
import sys
from pathlib import Path
import gerd
from gerd.storage.shard import Shard
from gerd.storage.places import Folder
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * {__import__("resource").getpagesize()}
config = gerd.parse({ONE!r})
gerd.simulate(config)
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


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_file_is_written_whole_or_not_at_all(
    problem: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "file", b"old")

    def fail(*_: Any) -> None:
        raise problem

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises((gerd.StorageError, KeyboardInterrupt)):
        write_whole(tmp_path / "file", b"new")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"file": b"old"}


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
    data = make(tmp_path / "data", ONE, 4)
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


def test_other_recordings_stay_readable(dataset: Path) -> None:
    file = dataset / shard_name(1)
    shard = shard_of(file)
    with safe_open(file, framework="numpy") as sound:
        start = file.read_bytes().index(sound.get_tensor("keys").tobytes())
    spoilt = bytearray(file.read_bytes())
    spoilt[start + 4 * int(shard.events[10])] ^= 4
    file.write_bytes(spoilt)
    found, message = readable(dataset)
    assert [position for position, recording in enumerate(found) if recording is None] == [64 + 10]
    assert message.startswith(f"{file}: is damaged")


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def cut_in_the_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def removed(file: Path) -> None:
    file.unlink()


def replaced_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def text(file: Path) -> None:
    file.write_text("these are not the tensors you want")


def of_another_place(file: Path) -> None:
    shutil.copy(file.with_name(shard_name(0)), file)


def without_a_tensor(file: Path) -> None:
    rewritten(file, lambda tensors, about: tensors.pop("truth"))


def of_another_format(file: Path) -> None:
    rewritten(file, lambda tensors, about: about.update(format_version=2))


def of_another_config(file: Path) -> None:
    rewritten(file, lambda tensors, about: about.update(config_digest="0" * 64))


def with_strange_labels(file: Path) -> None:
    rewritten(file, lambda tensors, about: about.update(labels=7))


def with_strange_types(file: Path) -> None:
    rewritten(file, lambda tensors, about: tensors.update(keys=tensors["keys"].astype(np.float32)))


def with_offsets_beyond_the_end(file: Path) -> None:
    rewritten(file, lambda tensors, about: tensors.update(event_offsets=tensors["event_offsets"] * 1000))


def with_unsorted_keys(file: Path) -> None:
    rewritten(file, lambda tensors, about: tensors.update(keys=tensors["keys"][::-1].copy()))


def with_truth_of_another_length(file: Path) -> None:
    def change(tensors: Any, _: Any) -> None:
        tensors["truth_offsets"][5] += 1

    rewritten(file, change)


def with_a_size_that_overflows(file: Path) -> None:
    """4 steps of 2⁶² actors would be 0 rows in 64 bits."""

    def change(tensors: Any, _: Any) -> None:
        tensors["shape"][:] = [4, 1000, 1000, 2**62]
        tensors["truth_offsets"][:] = 0
        tensors["truth"] = tensors["truth"][:0]

    rewritten(file, change)


def with_more_events_than_pixels(file: Path) -> None:
    rewritten(file, lambda tensors, about: tensors["shape"].__setitem__((slice(None), slice(1, 3)), 1))


def rewritten(file: Path, change: Any) -> None:
    from safetensors.numpy import save_file

    with safe_open(file, framework="numpy") as opened:
        tensors = {name: opened.get_tensor(name).copy() for name in opened.keys()}  # noqa: SIM118
        about = json.loads(opened.metadata()["gerd"])
    change(tensors, about)
    save_file(tensors, file, metadata={"gerd": json.dumps(about)})


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        cut_in_the_header,
        emptied,
        removed,
        replaced_by_a_folder,
        longer,
        text,
        of_another_place,
        without_a_tensor,
        of_another_format,
        of_another_config,
        with_strange_labels,
        with_strange_types,
        with_offsets_beyond_the_end,
        with_unsorted_keys,
        with_truth_of_another_length,
        with_a_size_that_overflows,
        with_more_events_than_pixels,
    ],
)
def test_a_bad_shard_is_named_and_the_others_are_read(damage: Any, dataset: Path) -> None:
    file = dataset / shard_name(1)
    damage(file)
    found, messages = readable(dataset)
    assert [recording is None for recording in found] == [SHARD_SIZE <= i < 2 * SHARD_SIZE for i in range(140)]
    assert all(line.startswith(f"{file}: ") for line in messages.splitlines())
    assert [line for line in faults(dataset) if not line.startswith(f"{file}: ")] == []
    assert faults(dataset)


MANIFESTS = {
    "empty": b"",
    "cut": b'{"format": "gerd", ',
    "list": b"[]",
    "null": b"null",
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "foreign": b'{"name": "a package"}',
    "newer": b'{"format": "gerd", "format_version": 2}',
    "bare": b'{"format": "gerd", "format_version": 1}',
}


@pytest.mark.parametrize("content", MANIFESTS.values(), ids=MANIFESTS)
def test_a_garbage_manifest_is_named(content: bytes, dataset: Path) -> None:
    (dataset / MANIFEST).write_bytes(content)
    for use in (gerd.Recordings, faults):
        with pytest.raises(gerd.StorageError, match=MANIFEST):
            use(dataset)


@pytest.mark.parametrize("key", ["count", "members", "seed", "complete", "files", "shards"])
@pytest.mark.parametrize("value", [None, "a", -1, 2.5, [1], [{"file": 3}], 10**40], ids=repr)
def test_a_manifest_with_a_wrong_field_is_noticed(key: str, value: Any, dataset: Path) -> None:
    manifest = json.loads((dataset / MANIFEST).read_text())
    (dataset / MANIFEST).write_text(json.dumps({**manifest, key: value}))
    assert any(MANIFEST in line for line in noticed(dataset))


def test_a_manifest_of_more_recordings_than_can_be_counted_is_refused(dataset: Path) -> None:
    manifest = json.loads((dataset / MANIFEST).read_text())
    (dataset / MANIFEST).write_text(json.dumps({**manifest, "count": 2**32, "members": 2**32}))
    with pytest.raises(gerd.StorageError, match="it has no valid 'members'"):
        gerd.Recordings(dataset)


def test_an_unfinished_dataset_of_any_size_is_looked_through_at_once(dataset: Path) -> None:
    """What is there is looked at, not each of the billions of shards that could be."""
    manifest = json.loads((dataset / MANIFEST).read_text())
    content = json_bytes({**manifest, "count": 2**32, "complete": False, "shards": []})
    (dataset / MANIFEST).write_bytes(content)
    found = faults(dataset)
    assert "the dataset is not complete" in found[0]
    assert "shard-000002.safetensors: does not hold the recordings" in found[-1]


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


# verify


@pytest.mark.parametrize("regenerate", [False, True])
def test_verify_passes_a_sound_dataset(regenerate: bool, pristine: Path) -> None:
    looked_at, found = zip(*gerd.verify(pristine, regenerate=regenerate), strict=True)
    assert sum(looked_at) == 140
    assert not any(found)


@pytest.mark.parametrize("text", RAGGED.values(), ids=RAGGED)
def test_verify_passes_ragged_datasets(text: str, tmp_path: Path) -> None:
    make(tmp_path / "data", text, 2)
    assert faults(tmp_path / "data", regenerate=True) == []


@pytest.mark.parametrize("tensor", ["keys", "truth", "background", "digest", "index", "event_offsets", "checksum"])
def test_verify_finds_a_flipped_byte(tensor: str, dataset: Path) -> None:
    file = dataset / shard_name(2)
    content = bytearray(file.read_bytes())
    with safe_open(file, framework="numpy") as opened:
        part = opened.get_tensor(tensor).tobytes()
    content[content.index(part) + len(part) // 2] ^= 1
    file.write_bytes(content)
    found = faults(dataset)
    assert any("sha256" in line for line in found)
    assert all(line.startswith(f"{file}: ") for line in found)
    if tensor in ("keys", "truth", "background"):
        assert any("recording 1" in line and "checksum" in line for line in found)


def test_verify_finds_swapped_shards(dataset: Path) -> None:
    a, b = dataset / shard_name(0), dataset / shard_name(1)
    a.rename(dataset / "spare")
    b.rename(a)
    (dataset / "spare").rename(b)
    with pytest.raises(gerd.StorageError, match=f"{a.name}: does not hold the recordings 0 to 63"):
        gerd.Recordings(dataset)[0]
    assert {line.partition(": ")[0] for line in faults(dataset)} == {str(a), str(b)}


def test_verify_finds_a_shard_too_many(dataset: Path) -> None:
    shutil.copy(dataset / shard_name(0), dataset / shard_name(3))
    assert faults(dataset) == [f"{dataset / shard_name(3)}: does not belong to the dataset"]


def test_verify_finds_a_dataset_cut_short(dataset: Path) -> None:
    """The last shard is gone, and the manifest was made to look as if it had never been."""
    manifest = json.loads((dataset / MANIFEST).read_text())
    (dataset / MANIFEST).write_bytes(json_bytes({**manifest, "shards": manifest["shards"][:2]}))
    (dataset / shard_name(2)).unlink()
    assert any("does not list the 3 shards" in line for line in faults(dataset))


def edits(node: Any, path: tuple[Any, ...] = ()) -> Any:
    """Every leaf of a JSON document, changed one at a time: (path, changed document)."""
    if isinstance(node, dict | list) and node:
        for key in node if isinstance(node, dict) else range(len(node)):
            for below, changed in edits(node[key], (*path, key)):
                copy = dict(node) if isinstance(node, dict) else list(node)
                copy[key] = changed
                yield below, copy
    elif isinstance(node, bool):
        yield path, not node
    elif isinstance(node, int | float):
        yield path, node + 1
    elif isinstance(node, str):
        yield path, ("0" if node[:1] != "0" else "1") + node[1:]
    else:
        yield path, "something"


@pytest.mark.parametrize("name", [MANIFEST, RESOLVED])
def test_verify_finds_every_edit_of_a_json_file(name: str, tmp_path: Path) -> None:
    make(tmp_path / "data", FAMILY, 2)
    file = tmp_path / "data" / name
    content = file.read_bytes()
    count = 0
    for path, changed in edits(json.loads(content)):
        file.write_bytes(json_bytes(changed))
        assert any(str(tmp_path / "data") in line for line in noticed(tmp_path / "data")), path
        count += 1
    assert count > 10
    file.write_bytes(content)
    assert not faults(tmp_path / "data")


def test_verify_finds_an_edited_or_missing_config_text(dataset: Path) -> None:
    (dataset / CONFIG).write_text(FAMILY + "# more\n")
    assert faults(dataset) == [f"{dataset / CONFIG}: the file differs from the sha256 in the manifest"]
    (dataset / CONFIG).unlink()
    assert faults(dataset) == [f"{dataset / CONFIG}: is missing"]


FORGERIES = {
    "the events differ": lambda r: {"keys": np.append(r.keys[0] - 1, r.keys[1:])},
    "the background flags differ": lambda r: {"background": ~r.background},
    "the ground truth differs": lambda r: {"truth": np.nextafter(r.truth, np.inf)},
    "the size differs": lambda r: {"step_us": r.step_us + 1},
}


@pytest.mark.parametrize("message", FORGERIES)
def test_regenerate_finds_a_forgery_with_valid_hashes(message: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    recordings = list(make(folder, FAMILY, 3))
    recordings[4] = dataclasses.replace(recordings[4], **FORGERIES[message](recordings[4]))
    content = shard_bytes(recordings, [0, 1] * 3)
    (folder / shard_name(0)).write_bytes(content)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["shards"][0]["sha256"] = hashlib.sha256(content).hexdigest()
    manifest["shards"][0]["recordings"] = [recording.digest for recording in recordings]
    (folder / MANIFEST).write_bytes(json_bytes(manifest))
    assert not faults(folder)
    assert faults(folder, regenerate=True) == [f"{folder / shard_name(0)}: recording 4: made again, {message}"]


def test_labels_that_are_not_the_configs_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    recordings = list(make(folder, FAMILY, 1))
    identity = dataclasses.replace(recordings[1].identity, labels={"time_scale": 3})
    recordings[1] = dataclasses.replace(recordings[1], identity=identity)
    (folder / shard_name(0)).write_bytes(shard_bytes(recordings, [0, 1]))
    assert any("recording 1: has the labels {'time_scale': 3}" in line for line in faults(folder))


def test_an_unfinished_dataset_says_so(dataset: Path) -> None:
    manifest = json.loads((dataset / MANIFEST).read_text())
    (dataset / MANIFEST).write_bytes(json_bytes({**manifest, "complete": False, "shards": []}))
    (dataset / shard_name(1)).unlink()
    data = gerd.Recordings(dataset)
    assert data[0].identity.index == 0
    with pytest.raises(gerd.StorageError, match=f"{shard_name(1)}: is missing: the dataset is not complete"):
        data[64]
    assert [line.partition(": ")[2] for line in faults(dataset)] == [
        "the dataset is not complete; run the same generate command to finish it"
    ]

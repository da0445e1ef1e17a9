"""Training data from disk: what an item and its label are, windows, batches, loaders, splits and hold-outs, Tonic."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import tonic
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.datasets import TWO_SHAPES, change_manifest
from support.scenes import FALSE_ALARM, actor, config, same
from torch.utils.data import DataLoader, default_collate

import gerd
from gerd.recording.recording import Recording
from gerd.training.items import ItemSpec
from gerd.training.labels import OF_PICTURES, OF_TRUTH

STEPS, COUNT = 24, 70  # two shards
BUSY = config(
    actor("square", velocity=[0.7, 0.2], size={"uniform": [4, 8]}, intensity={"uniform": [0.5, 1.0]}),
    actor("circle", at=[18, 10], velocity=[-0.5, 0.1], size=5.0, turn={"uniform": [0, 90]}),
    width=26,
    height=17,
    steps=STEPS,
    step_us=250,
    noise={"background": 0.02},
)
FAMILY = config(
    actor("square", at=[8, 8], velocity=[0.25, 0], size={"uniform": [4, 8]}),
    width=24,
    height=16,
    steps=12,
    noise={"background": 0.01},
    sweep={"time_scale": [0.5, 1, 2], "noise.event": [0, 0.5]},
)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("datasets") / "busy"
    gerd.generate(BUSY, path, COUNT, workers=1)
    return path


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("datasets") / "family"
    gerd.generate(FAMILY, path, 20, workers=1)
    return path


@pytest.fixture(scope="module")
def one() -> Recording:
    return gerd.simulate(BUSY, 3)


# What an item is


def test_every_kind_of_item_holds_the_events_of_its_window(busy: Path, one: Recording) -> None:
    kinds = {name: gerd.Dataset(busy, name, steps=8) for name in ("frames", "counts", "sparse", "events")}
    assert all(len(data) == COUNT * 3 for data in kinds.values())
    frames = one.frames()[8:16]
    items = {name: data[3 * 3 + 1][0] for name, data in kinds.items()}
    assert frames.any()
    assert same(items["frames"], frames)
    assert same(items["counts"], frames.to(torch.uint8))
    assert same(items["sparse"].to_dense(), frames)
    events = one.events[(one.events["t"] >= 8 * 250) & (one.events["t"] < 16 * 250)]
    events["t"] -= 8 * 250
    assert same(items["events"].astype(events.dtype), events)


def test_an_item_may_be_any_function_of_its_window(busy: Path, one: Recording) -> None:
    data = gerd.Dataset(busy, lambda r: (r.first, r.steps, len(r)), lambda r: r.first, steps=5, warmup=3, delay=2)
    assert data[2 * 4][0][:2] == (2 * 5 - 10, 8)
    count = int(((one.events["t"] >= 0) & (one.events["t"] < 8 * 250)).sum())
    position, at, steps = data.place(3 * 4)
    assert (position, at, steps) == (3, 3, 5)
    assert data[3 * 4] == ((0, 8, count), 5)


OPTIONS = st.fixed_dictionaries(
    {
        "item": st.sampled_from(["frames", "counts"]),
        "sum": st.integers(1, 4),
        "every": st.integers(1, 4),
        "stack": st.integers(1, 3),
        "warmup": st.integers(0, 2),
        "delay": st.integers(-4, 4),
    }
)


@given(OPTIONS, st.integers(1, 3), st.integers(1, 9), st.sampled_from(["overlap", "drop"]))
def test_frames_and_labels_step_by_step(
    one: Recording, chosen: dict[str, Any], kept: int, stride: int, rest: str
) -> None:
    """Against loops over single steps, for any sums, stacks, thinning out, warm-up and delay."""
    chosen["warmup"] *= chosen["every"]
    spec, steps = ItemSpec(**chosen), kept * chosen["every"]
    first = spec.earliest()
    assume(first + steps + max(0, spec.delay) <= STEPS)
    starts, length = spec.starts(STEPS, steps, stride, rest)
    assert length == steps
    for at in starts.tolist():
        begin, end = spec.span(at, steps)
        assert 0 <= begin < end <= STEPS
        item, label = spec.view(one.window(begin, end), at, steps)
        ends = range(at - spec.warmup + spec.every - 1, at + steps, spec.every)
        assert item.shape == (len(ends), 2 * spec.stack, 17, 26)
        for frame, last in zip(item, ends, strict=True):
            for k in range(spec.stack):
                until = last - (spec.stack - 1 - k) * spec.every + 1
                summed = one.frames()[until - spec.sum : until].sum(0)
                wanted = summed if spec.item == "counts" else summed > 0
                assert torch.equal(frame[2 * k : 2 * k + 2], wanted.to(frame.dtype))
        times = [last + spec.delay for last in ends if last >= at]
        assert torch.equal(label, torch.from_numpy(one.positions[times]).float())
    # No step that can be labelled is left out, unless asked for.
    room = STEPS - max(0, spec.delay)
    covered = {step for at in starts for step in range(at, at + steps)}
    if rest == "overlap":
        assert room - 1 in covered
        assert stride > steps or covered == set(range(first, room))
    else:
        assert starts.tolist() == [at for at in range(first, STEPS, stride) if at + steps <= room]
    # And none could begin earlier.
    assert first == spec.warmup or spec.span(first - 1, steps)[0] < 0


def test_the_type_of_frames_can_be_chosen(busy: Path) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        for item, sum in (("frames", 1), ("counts", 1), ("counts", 3), ("frames", 3)):
            frames, _ = gerd.Dataset(busy, item, dtype=dtype, sum=sum)[3]
            plain, _ = gerd.Dataset(busy, item, sum=sum)[3]
            assert same(frames, plain.to(dtype))


def test_counts_do_not_overflow() -> None:
    everywhere = config(actor(size=2.0), width=4, height=4, steps=300, noise={"background": 1.0})
    recording = gerd.simulate(everywhere)
    frames, _ = ItemSpec("counts", sum=300).view(recording, 299, 1)
    assert frames.sum() == len(recording) >= 300 * 16
    assert frames.max() > 150


# What a label is


def test_labels_of_a_motion_known_in_closed_form(tmp_path: Path) -> None:
    """x = 3 + 0.5 t, turning by 2 degrees per step, growing by 0.25 per step; the label is two steps ahead."""
    moving = actor(
        at=[3, 8],
        velocity=[0.5, 0],
        scale={"start": 4, "velocity": 0.25, "acceleration": 0},
        rotation={"start": 10, "velocity": 2, "acceleration": 0},
    )
    gerd.generate(config(moving, width=32, height=16, steps=20), tmp_path / "data", 1, workers=1)
    names = ("positions", "parameters", "parameters_velocity", "parameters_acceleration", "T", "T_velocity")
    data = gerd.Dataset(tmp_path / "data", label=names, steps=6, warmup=4, delay=2, every=2)
    position, at, _ = data.place(1)
    assert (position, at) == (0, 10)
    label = dict(zip(names, data[1][1], strict=True))
    t = np.array([11, 13, 15]) + 2
    zeros, ones = np.zeros(3), np.ones(3)
    angle, size = np.radians(10 + 2 * t), 4 + 0.25 * t
    expected = {
        "positions": np.stack([3 + 0.5 * t, 8 * ones], 1),
        "parameters": np.stack([3 + 0.5 * t, 8 * ones, size, size, angle, zeros], 1),
        "parameters_velocity": np.tile([0.5, 0, 0.25, 0.25, np.radians(2), 0], (3, 1)),
        "parameters_acceleration": np.zeros((3, 6)),
        "T": np.stack(
            [
                np.stack([size * np.cos(angle), -size * np.sin(angle), 3 + 0.5 * t], 1),
                np.stack([size * np.sin(angle), size * np.cos(angle), 8 * ones], 1),
                np.tile([0.0, 0.0, 1.0], (3, 1)),
            ],
            axis=1,
        ),
    }
    for name, wanted in expected.items():
        assert label[name].dtype == torch.float32
        np.testing.assert_allclose(label[name][:, 0].numpy(), wanted, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(label["T_velocity"][:, 0, :2, 2].numpy(), np.tile([0.5, 0], (3, 1)), atol=1e-6)


@pytest.mark.parametrize("name", [*OF_TRUTH, *OF_PICTURES])
def test_a_label_is_what_the_recording_says_of_these_steps(busy: Path, one: Recording, name: str) -> None:
    _, label = gerd.Dataset(busy, label=name, steps=4, warmup=3)[3 * 6 + 2]
    of_recording = {
        "parameters": one.truth[:, :, 0],
        "parameters_velocity": one.truth[:, :, 1],
        "parameters_acceleration": one.truth[:, :, 2],
        "masks_with_edges": one.masks(edges=True),
        "flow_with_edges": one.flow(edges=True),
    }
    whole = of_recording[name] if name in of_recording else getattr(one, name)
    whole = whole() if callable(whole) else whole
    assert label.dtype == (torch.bool if name.startswith("masks") else torch.float32)
    np.testing.assert_array_equal(label.numpy(), whole[11:15].astype(label.numpy().dtype))  # NaN is NaN here


def test_labels_of_a_recording_functions_and_several_at_once(family: Path) -> None:
    data = gerd.Dataset(family, label={"what": ("sweep", "index"), "size": lambda r: r.parameters["scale_x"][0, 0]})
    _, label = data[6 * 4 + 3]
    assert label["what"] == ({"time_scale": 1, "noise.event": 0.5}, 4)
    assert label["size"] == gerd.simulate(FAMILY, 4, 0).parameters["scale_x"][0, 0]
    assert gerd.Dataset(family, label=None)[0][1] == ()
    _, batch = gerd.collate([data[i] for i in range(6)])
    assert batch["what"][0]["time_scale"].tolist() == [0.5, 0.5, 1, 1, 2, 2]
    assert batch["what"][1].tolist() == [0] * 6
    assert batch["size"].shape == (6,)


def test_transforms_are_applied_as_in_tonic(busy: Path) -> None:
    plain, label = gerd.Dataset(busy)[5]
    data = gerd.Dataset(
        busy,
        transform=lambda frames: frames.sum(),
        target_transform=lambda positions: positions[-1],
        transforms=lambda total, last: (total + 1, (last, int(total))),
    )
    assert data[5][0] == plain.sum() + 1
    assert same(data[5][1], (label[-1], int(plain.sum())))
    first, _ = next(iter(data.loader(3)))
    assert same(first, torch.stack([data[i][0] for i in range(3)]))


# Batches


def test_a_dense_batch_is_the_items_one_after_the_other(busy: Path) -> None:
    data = gerd.Dataset(busy, steps=10, label=("positions", "masks"))
    items = [data[i] for i in (0, 7, 30)]
    for batch in (gerd.collate(items), tuple(default_collate(items))):
        frames, (positions, masks) = batch
        assert same(frames, torch.stack([item for item, _ in items]))
        assert same(positions, torch.stack([label[0] for _, label in items]))
        assert same(masks, torch.stack([label[1] for _, label in items]))


def test_event_lists_of_different_lengths(busy: Path) -> None:
    data = gerd.Dataset(busy, "events", "index", steps=3)
    items = [data[i] for i in (0, 9, 100, 101)]
    lengths = [len(events) for events, _ in items]
    assert len(set(lengths)) > 1
    joined, labels = gerd.collate(items)
    assert labels.tolist() == [0, 1, 12, 12]
    assert joined["offsets"].tolist() == [0, *np.cumsum(lengths)]
    padded, _ = gerd.collate(items, pad=True)
    assert padded["mask"].sum(1).tolist() == lengths
    for i, (events, _) in enumerate(items):
        rows = slice(joined["offsets"][i], joined["offsets"][i + 1])
        for name in "xytp":
            assert np.array_equal(joined[name][rows].numpy(), events[name])
            assert joined[name].numpy().dtype == events.dtype[name]
            assert np.array_equal(padded[name][i][padded["mask"][i]].numpy(), events[name])
            assert not padded[name][i][~padded["mask"][i]].any()


def test_labels_of_events_are_those_of_the_item(busy: Path, one: Recording) -> None:
    """With the warm-up, without the delay: a row for each event, as the whole recording has it."""
    labels = {"whose": "actor", "rest": ("event_flow", "echo", "positions"), "noise": "source", "fired": "fired_us"}
    data = gerd.Dataset(busy, "events", labels, steps=4, warmup=3, delay=2)
    number = next(i for i in range(len(data)) if data.place(i)[0] == 3) + 1
    events, label = data[number]
    at = data.place(number)[1]
    step = one.coordinates[:, 0]
    rows = (step >= at - 3) & (step < at + 4)
    assert 0 < len(events) == rows.sum()
    flow, echo, positions = label["rest"]
    for found, wanted, kind in (
        (label["whose"], one.actor, torch.int64),
        (flow, one.event_flow.astype(np.float32), torch.float32),
        (echo, one.echo, torch.bool),
        (label["noise"], one.source, torch.int64),
    ):
        assert found.dtype == kind
        np.testing.assert_array_equal(found.numpy(), wanted[rows])
    np.testing.assert_array_equal(label["fired"].numpy(), events["t"])  # without readout
    np.testing.assert_array_equal(positions.numpy(), one.positions[at + 2 : at + 6].astype(np.float32))


def test_labels_of_events_in_batches(busy: Path) -> None:
    data = gerd.Dataset(busy, "events", ("actor", "event_flow", "echo"), steps=3)
    numbers = (0, 9, 100, 101)
    items = [data[i] for i in numbers]
    lengths = [len(events) for events, _ in items]
    assert len(set(lengths)) > 1
    joined, (actor, flow, echo) = gerd.collate(items)
    assert (actor.dtype, flow.dtype, echo.dtype) == (torch.int64, torch.float32, torch.bool)
    padded, padded_labels = gerd.collate(items, pad=True)
    assert padded_labels[1].shape == (4, max(lengths), 2)
    for i, (_, label) in enumerate(items):
        rows = slice(joined["offsets"][i], joined["offsets"][i + 1])
        mask = padded["mask"][i]
        for k, values in enumerate((actor, flow, echo)):
            np.testing.assert_array_equal(values[rows].numpy(), label[k])
            np.testing.assert_array_equal(padded_labels[k][i][mask].numpy(), label[k])
            assert not padded_labels[k][i][~mask].any()
    whole = next(iter(data.loader(200, num_workers=1)))
    np.testing.assert_array_equal(whole[1][0].numpy(), np.concatenate([data[i][1][0] for i in range(200)]))
    one = gerd.collate(items[:1])  # a batch of one is a batch
    assert one[1][1].shape == (lengths[0], 2)
    function = gerd.Dataset(busy, lambda part: part.events, "actor", steps=3)
    np.testing.assert_array_equal(function[9][1], data[9][1][0])


def test_labels_of_one_item_are_tensors_all_of_them(busy: Path) -> None:
    """So that training code can treat them alike; what is computed from one is a plain tensor and no label."""
    per_event = ("actor", "event_flow", "echo")
    names = (*OF_TRUTH, *OF_PICTURES, "shape", *per_event)
    data = gerd.Dataset(busy, "events", names, steps=3)
    _, labels = data[9]
    for name, label in zip(names, labels, strict=True):
        assert isinstance(label, torch.Tensor), name
    flow = labels[names.index("event_flow")]
    assert (flow * 2).shape == flow.shape
    assert type(flow * 2) is type(flow[0]) is torch.Tensor
    averages = gerd.Dataset(busy, "events", "event_flow", steps=3, target_transform=lambda label: label.nanmean(0))
    batch, flows = gerd.collate([averages[i] for i in (0, 9, 100)])
    assert len(batch["offsets"]) == 4
    assert flows.shape == (3, 2)


def test_labels_of_events_travel_between_processes(busy: Path) -> None:
    data = gerd.Dataset(busy, "events", ("actor", "event_flow"), steps=3)
    single = DataLoader(data, batch_size=None, sampler=[0, 9, 100], num_workers=1, collate_fn=_unchanged)
    items = list(single)
    wanted = [data[i] for i in (0, 9, 100)]
    for found, (_, label) in zip(items, wanted, strict=True):
        np.testing.assert_array_equal(found[1][1].numpy(), label[1].numpy())
    joined, again = gerd.collate(items), gerd.collate(pickle.loads(pickle.dumps(wanted)))
    for batch in (joined, again):
        assert len(batch[1][0]) == len(batch[0]["x"]) == sum(len(events) for events, _ in wanted)


def _unchanged(item: Any) -> Any:
    return item


def test_batches_of_nothing(tmp_path: Path) -> None:
    """Windows in which nothing happens, and a scene without actors."""
    gerd.generate(config(width=5, height=4, steps=3), tmp_path / "empty", 2, workers=1)
    for item in ("frames", "counts", "sparse", "events"):
        data = gerd.Dataset(tmp_path / "empty", item, ("positions", "boxes"), steps=1)
        for pad in (False, True):
            batch, (positions, boxes) = next(iter(data.loader(6, pad=pad)))
            assert positions.shape == (6, 1, 0, 2)
            assert boxes.shape == (6, 1, 0, 4)
            if item == "events":
                assert batch["x"].numel() == 0
            elif item != "sparse" and pad:
                assert batch["mask"].all()
                assert not batch["values"].any()
            else:
                assert batch.shape == (6, 1, 2, 4, 5)
                assert not batch.to_dense().any()


def test_a_sparse_batch(busy: Path) -> None:
    data = gerd.Dataset(busy, "sparse", steps=6)
    frames, _ = gerd.collate([data[i] for i in range(5)])
    assert frames.is_coalesced()
    assert torch.equal(frames.indices(), frames.to_dense().nonzero().T)
    assert same(frames.to_dense(), torch.stack([gerd.Dataset(busy, steps=6)[i][0] for i in range(5)]))


@pytest.mark.parametrize("item", ["sparse", "events"])
def test_what_pytorch_cannot_stack_is_not_stacked_silently(busy: Path, item: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"default collate_fn|numpy.void"):
        next(iter(DataLoader(gerd.Dataset(busy, item), 2)))


def test_other_things_in_a_batch() -> None:
    batch = gerd.collate(
        [
            ({"name": "a", "size": 1.5, "many": np.arange(3)}, True),
            ({"name": "b", "size": 2, "many": np.ones(3, int)}, False),
        ]
    )
    assert batch[0]["name"] == ["a", "b"]
    assert batch[0]["size"].tolist() == [1.5, 2]
    assert batch[0]["many"].tolist() == [[0, 1, 2], [1, 1, 1]]
    assert batch[1].tolist() == [True, False]
    named = np.zeros((4, 2), [("x", float), ("y", float)])
    assert gerd.collate([named, named])["y"].shape == (2, 4, 2)


def test_sizes_that_differ_are_refused_with_a_reason(tmp_path: Path) -> None:
    sizes = config(actor(), steps=4, sweep={"sensor.width": [8, 9]})
    gerd.generate(sizes, tmp_path / "sizes", 2, workers=1)
    for item in ("frames", "sparse"):
        data = gerd.Dataset(tmp_path / "sizes", item)
        with pytest.raises(gerd.GerdError, match=r"\(4, 2, 12, 8\) and \(4, 2, 12, 9\)"):
            gerd.collate([data[0], data[1]])
        with pytest.raises(gerd.GerdError, match="do not fit into one batch"):
            next(iter(data.loader(2)))
    narrow = data.where(lambda r: r.config.sensor.width == 8)
    assert next(iter(narrow.loader(2)))[0].shape == (2, 4, 2, 12, 8)


def test_recordings_of_different_lengths(tmp_path: Path) -> None:
    gerd.generate(config(actor(), sweep={"steps": [4, 9]}), tmp_path / "data", 3, workers=1)
    data = gerd.Dataset(tmp_path / "data", steps=4)
    assert len(data) == 3 * (1 + 3)
    assert [data.place(i)[:2] for i in range(5)] == [(0, 0), (1, 0), (1, 4), (1, 5), (2, 0)]
    whole = gerd.Dataset(tmp_path / "data")
    assert [len(whole[i][0]) for i in range(4)] == [4, 9, 4, 9]
    with pytest.raises(gerd.GerdError, match="steps 5: the recording has 4"):
        gerd.Dataset(tmp_path / "data", steps=5)


# Loaders


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_give_the_same_batches(busy: Path, start: str) -> None:
    """Frames, which travel as events; combined frames; sparse tensors; events; and PyTorch's own way."""
    kinds: list[dict[str, Any]] = [{}, {"item": "counts", "sum": 2, "stack": 2}, {"item": "sparse"}, {"item": "events"}]
    for options in kinds if start == "fork" else kinds[:1]:
        data = gerd.Dataset(busy, label=("positions", "index"), steps=12, **options)
        data[COUNT - 1]  # a file is open when the workers are started
        alone = list(data.loader(25))
        assert len(alone) == -(-len(data) // 25)
        # spawned ones import everything anew
        workers: dict[str, Any] = {"num_workers": 2 if start == "fork" else 1, "multiprocessing_context": start}
        assert same(list(data.loader(25, **workers)), alone)
        if start == "fork":
            assert same(list(DataLoader(data, 25, collate_fn=gerd.collate, **workers)), alone)


def test_a_batch_that_has_travelled_is_a_tensor_like_any_other(busy: Path) -> None:
    data = gerd.Dataset(busy, dtype=torch.float32)
    frames, positions = next(iter(data.loader(4, num_workers=1)))
    assert type(frames) is type(positions) is torch.Tensor
    frames += 1
    assert torch.equal(frames - 1, torch.stack([data[i][0] for i in range(4)]))


def test_pickled_and_back(busy: Path) -> None:
    data = gerd.Dataset(busy, steps=6, label="T").where(lambda r: r.index % 2)
    item = data[9]
    again = pickle.loads(pickle.dumps(data))
    assert repr(again) == repr(data)
    assert same(again[9], item)


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


def test_files_do_not_stay_open(tmp_path: Path) -> None:
    gerd.generate(config(actor(), width=4, height=4, steps=1), tmp_path / "data", 6 * 64, workers=1)
    before = open_files()
    data = gerd.Dataset(tmp_path / "data")
    assert open_files() == before
    data.recordings = gerd.Recordings(tmp_path / "data", open_shards=2)
    for i in range(0, len(data), 16):
        data[i]
    assert open_files() <= before + 2
    for part in data.split(0.5, 0.5):
        part[0]
    assert open_files() <= before + 2
    del data, part
    assert open_files() == before


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux to count the bytes that are read")
def test_only_the_window_is_read(tmp_path: Path) -> None:
    """By the kernel's count of bytes, for windows at both ends and in the middle of a long recording."""
    long = config(
        actor("circle", velocity=[0.5, 0.2], border="bounce"),
        width=32,
        height=32,
        steps=4000,
        noise={"background": 0.05},
    )
    gerd.generate(long, tmp_path / "long", 2, workers=1)
    size = (tmp_path / "long" / "shard-000000.safetensors").stat().st_size
    assert size > 900_000
    data, whole = gerd.Dataset(tmp_path / "long", steps=10), gerd.simulate(long, 1)
    data[0]  # opens the file
    for number in (400, 601, 799):
        before = bytes_read()
        frames, positions = data[number]
        assert bytes_read() - before < size / 6  # the blocks of the window: two of sixteen, at most
        at = (number - 400) * 10
        assert torch.equal(frames, whole.frames(at, at + 10))
        assert torch.equal(positions, torch.from_numpy(whole.positions[at : at + 10]).float())
    before = bytes_read()
    data.where(lambda r: r.config.steps == 4000 and r.member == 0)
    assert bytes_read() - before < 1000  # nothing of the recordings
    data.where(lambda r: r.parameters["x"].max() > 0)
    assert bytes_read() - before < 2 * 4000 * 18 * 8 + 10_000  # the truth


@pytest.mark.parametrize("tensor", ["events", "truth"])
def test_a_damaged_dataset_is_noticed(tensor: str, tmp_path: Path) -> None:
    """Whole recordings, windows and what a hold-out asks for; other blocks and recordings stay as they are."""
    gerd.generate(BUSY, tmp_path / "data", 2, workers=1)
    file = tmp_path / "data" / "shard-000000.safetensors"
    content = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    content[begin + json.loads(content[8:begin])[tensor]["data_offsets"][0]] ^= 1  # of the first block
    file.write_bytes(content)
    for options in ({}, {"steps": 8}):
        with pytest.raises(gerd.StorageError, match="index 0, member 0, has changed"):
            gerd.Dataset(tmp_path / "data", **options)[0]
    data = gerd.Dataset(tmp_path / "data")
    if tensor == "truth":
        with pytest.raises(gerd.StorageError, match="index 0, member 0, has changed"):
            data.where(lambda r: r.parameters["x"].max() > 0)
    assert torch.equal(data[1][0], gerd.simulate(BUSY, 1).frames())


# Splits and hold-outs


def numbers(data: gerd.Dataset) -> set[int]:
    return set(data.served.tolist())


def test_a_split_by_fractions_is_exact_disjoint_and_complete(busy: Path) -> None:
    data = gerd.Dataset(busy, steps=8)
    parts = data.split(0.7, 0.15, 0.15)
    assert [len(part.served) for part in parts] == [49, 11, 10]
    assert [len(part) for part in parts] == [49 * 3, 11 * 3, 10 * 3]
    assert set.union(*map(numbers, parts)) == set(range(COUNT))
    assert sum(map(len, map(numbers, parts))) == COUNT
    assert [numbers(part) for part in data.split(0.7, 0.15, 0.15)] == [numbers(part) for part in parts]
    assert numbers(data.split(0.7, 0.3)[0]) == numbers(parts[0])
    assert numbers(data.split(0.7, 0.15, 0.15, seed=1)[0]) != numbers(parts[0])
    labels = [int(label) for _, label in gerd.Dataset(busy, label="index").split(0.7, 0.15, 0.15)[1]]
    assert set(labels) == numbers(parts[1])


def test_the_parts_are_taken_by_chance() -> None:
    """Each recording is equally likely to be in a part, whatever its number and whichever others are (chi-square)."""
    from gerd.training.split import shares

    splits = np.array([np.isin(np.arange(20), shares(np.arange(20), (0.3, 0.7), seed)[0]) for seed in range(2000)])
    assert (splits.sum(1) == 6).all()
    singles = splits.sum(0)
    # Counts that always sum up to 6 per split vary by 20/19 of n·f·(1 - f) in each of the 19 directions left to them.
    statistic = ((singles - 600) ** 2).sum() / (2000 * 0.3 * 0.7) * 19 / 20
    assert scipy.stats.chi2.sf(statistic, 19) > FALSE_ALARM
    together = (splits[:, :, None] & splits[:, None, :]).sum(0)[np.triu_indices(20, 1)]
    assert abs(together - 2000 * 0.3 * 5 / 19).max() < 6 * np.sqrt(2000 * 0.079 * 0.921)


def test_families_stay_together_unless_asked(family: Path) -> None:
    data = gerd.Dataset(family)
    train, test = data.split(0.8, 0.2)
    assert [len(part) for part in (train, test)] == [16 * 6, 4 * 6]
    assert {n // 6 for n in numbers(train)}.isdisjoint({n // 6 for n in numbers(test)})
    loose, rest = data.split(0.8, 0.2, families=False)
    assert len(loose) == 96
    assert {n // 6 for n in numbers(loose)} & {n // 6 for n in numbers(rest)}
    assert numbers(loose).isdisjoint(numbers(rest))


def fast(header: Any) -> bool:
    return header.config.time_scale == 2


def large(header: Any) -> bool:
    return header.parameters["scale_x"][0].max() > 6


@given(st.permutations(["split", fast, large]), st.sampled_from([0, 1, 5]))
def test_splits_and_hold_outs_in_any_order(family: Path, order: list[Any], seed: int) -> None:
    """A recording is in the same part whatever was chosen before or after: no leak between train and test."""
    parts = {"train": gerd.Dataset(family), "test": gerd.Dataset(family)}
    for what in order:
        for i, name in enumerate(parts):
            parts[name] = parts[name].split(0.5, 0.5, seed=seed)[i] if what == "split" else parts[name].where(what)
    whole = gerd.Dataset(family).split(0.5, 0.5, seed=seed)
    both = numbers(gerd.Dataset(family).where(fast).where(large))
    for part, name in zip(whole, parts, strict=True):
        assert numbers(parts[name]) == numbers(part) & both


def test_a_part_can_be_split_again(busy: Path) -> None:
    train, rest = gerd.Dataset(busy).split(0.7, 0.3)
    valid, test = rest.split(1 / 3, 2 / 3)
    assert [len(part) for part in (train, valid, test)] == [49, 7, 14]
    assert numbers(valid) | numbers(test) == numbers(rest)
    assert numbers(valid).isdisjoint(numbers(test))


def test_hold_outs_on_swept_and_drawn_quantities(family: Path, busy: Path) -> None:
    train, test = gerd.Dataset(family, label="sweep").hold_out(lambda r: r.config.time_scale != 1)
    assert {label["time_scale"] for _, label in train} == {1}
    assert {label["time_scale"] for _, label in test} == {0.5, 2}
    assert numbers(train) | numbers(test) == set(range(120))
    by_path = gerd.Dataset(family).where(lambda r: r.labels["noise.event"] == 0.5 and r.index < 3 and r.member == 1)
    assert numbers(by_path) == {1, 7, 13}
    drawn = [gerd.simulate(BUSY, i) for i in range(COUNT)]
    small, big = gerd.Dataset(busy).hold_out(lambda r: r.parameters["scale_x"][0, 0] > 7)
    assert numbers(big) == {i for i, r in enumerate(drawn) if r.parameters["scale_x"][0, 0] > 7}
    assert 0 < len(big) < COUNT
    assert numbers(small) == set(range(COUNT)) - numbers(big)
    bright = gerd.Dataset(busy).where(lambda r: r.intensity[0] > 0.75)
    assert numbers(bright) == {i for i, r in enumerate(drawn) if r.scene.intensity[0, 0] > 0.75 * 1024}
    steep = gerd.Dataset(busy).where(lambda r: r.parameters["rotation"][0, 1] < 0.5)
    assert numbers(steep) == {i for i, r in enumerate(drawn) if r.parameters["rotation"][0, 1] < 0.5}


def test_the_largest_can_be_found_from_the_headers(busy: Path) -> None:
    data = gerd.Dataset(busy)
    sizes = [header.parameters["scale_x"][0, 0] for header in data.headers()]
    limit = np.quantile(sizes, 0.9)
    _, largest = data.hold_out(lambda r: r.parameters["scale_x"][0, 0] > limit)
    assert numbers(largest) == set(np.argsort(sizes)[-7:].tolist())
    headers = largest.headers()
    assert (len(headers), headers[-1].index) == (7, max(numbers(largest)))


def test_notebooks_show_a_dataset(family: Path) -> None:
    data = gerd.Dataset(family, label={"where": "positions", "own": lambda r: 1}).where(lambda r: r.member == 3)
    shown = data._repr_html_()
    for fact in (
        "members</td>",
        "time_scale: [0.5, 1, 2]; noise.event: [0, 0.5]",
        f"{len(data)} windows of {len(data.served)} recordings",
        "where: positions, own: a function",
        "member 3 (time_scale=1, noise.event=0.5)",
        "data:image/gif;base64,",
    ):
        assert fact in shown


# Random windows


def test_random_windows(busy: Path) -> None:
    data = gerd.Dataset(busy, lambda r: r.first, "index", steps=20, stride=1).where(lambda r: r.index >= 10)
    sampler = data.random_windows(seed=4)
    epochs = [list(sampler) for _ in range(100)]
    assert {len(epoch) for epoch in epochs} == {len(sampler)} == {60}
    drawn = [[data[i] for i in epoch] for epoch in epochs]
    assert all(sorted(index for _, index in epoch) == list(range(10, 70)) for epoch in drawn)
    assert epochs[0] != epochs[1]
    begins = np.bincount([first for epoch in drawn for first, _ in epoch])
    assert len(begins) == 5
    assert scipy.stats.chisquare(begins).pvalue > FALSE_ALARM
    leading = np.bincount([epoch[0][1] - 10 for epoch in drawn], minlength=60)
    assert scipy.stats.chisquare(leading).pvalue > FALSE_ALARM
    again = data.random_windows(seed=4)
    again.set_epoch(7)
    assert list(again) == epochs[7]
    assert list(data.random_windows(seed=5)) != epochs[0]
    ranks = [list(data.random_windows(seed=4, rank=rank, ranks=7)) for rank in range(7)]
    assert {len(part) for part in ranks} == {9}
    assert {number for part in ranks for number in part} == set(epochs[0])
    batches = [first for first, _ in data.loader(60, sampler=again, num_workers=2)]
    assert sorted(batches[0].tolist()) == sorted(first for first, _ in drawn[8])


# Tonic


def test_tonic_makes_the_same_frames_of_our_events(busy: Path) -> None:
    data = gerd.Dataset(busy, "events", steps=8)
    assert data.sensor_size == (26, 17, 2)
    keep_all = {"time_window": data.step_us, "start_time": 0, "end_time": 8 * data.step_us}
    data.transform = tonic.transforms.ToFrame(data.sensor_size, **keep_all)
    dense = gerd.Dataset(busy, "counts", steps=8)
    for i in range(0, len(data), 17):
        frames, label = data[i]
        assert frames.shape == (8, 2, 17, 26)
        assert np.array_equal(frames, dense[i][0].numpy())
        assert same(label, dense[i][1])


def test_tonic_s_other_ways_lose_frames(tmp_path: Path) -> None:
    """What the documents warn of, in a recording that begins and ends with steps without any event."""
    late = config(actor(at=[-6, 6], velocity=[1, 0], size=4.0, border="free"), width=8, height=12, steps=30)
    gerd.generate(late, tmp_path / "late", 1, workers=1)
    data = gerd.Dataset(tmp_path / "late", "events")
    events, frames = data[0][0], gerd.Dataset(tmp_path / "late", "counts")[0][0].numpy()
    steps = np.flatnonzero(frames.any(axis=(1, 2, 3)))
    assert 0 < steps[0] < steps[-1] < 29
    to_frame = partial(tonic.transforms.ToFrame, data.sensor_size)
    kept = to_frame(time_window=1000, start_time=0, end_time=30_000)(events)
    assert np.array_equal(kept, frames)
    without_ends = to_frame(time_window=1000)(events)
    assert np.array_equal(without_ends, frames[steps[0] : steps[-1]])  # shifted, and the last one is missing
    bins = to_frame(n_time_bins=30)(events)
    assert bins.shape == frames.shape
    assert not np.array_equal(bins, frames)
    assert to_frame(time_window=1000, start_time=0, end_time=30_000)(events[:0]).shape == (1, 2, 8, 12)


def test_tonic_tells_on_from_off(busy: Path, one: Recording) -> None:
    """`ToVoxelGrid` counts ON as +1 and OFF as -1, which it writes into p: a boolean would take both as +1."""
    events, _ = gerd.Dataset(busy, "events")[3]
    assert events.dtype["p"] == np.int8
    assert one.events["p"].dtype == np.bool_  # a recording's own events can be chosen by their polarity
    assert np.array_equal(events["p"], one.events["p"])
    before = events.copy()
    grid = tonic.transforms.ToVoxelGrid((26, 17, 2), n_time_bins=24)(events)
    wanted = np.zeros((17, 26))
    for x, y, t, p in one.events.tolist():
        if t < one.events["t"][-1]:
            wanted[y, x] += 1 if p else -1
    assert wanted.min() < 0 < wanted.max()
    assert np.allclose(grid.sum(axis=(0, 1)), wanted)  # without the last step
    assert np.array_equal(events, before)
    for part, sign in ((events[events["p"] == 1], 1), (events[events["p"] == 0], -1)):
        alone = tonic.transforms.ToVoxelGrid((26, 17, 2), n_time_bins=8)(part)
        assert (sign * alone >= 0).all()
        assert alone.any()
    batches = [next(iter(gerd.Dataset(busy, "events").loader(4))), gerd.Stream(BUSY, 4, "events").batch(0)]
    assert all(batch["p"].dtype == torch.int8 for batch, _ in batches)
    assert same(batches[0][0]["p"], batches[1][0]["p"])


def test_tonic_s_voxels_need_two_times(busy: Path) -> None:
    """What the documents warn of: events of one step have one time, and those of the last step are not counted."""
    data = gerd.Dataset(busy, "events", steps=1)
    to_voxels = tonic.transforms.ToVoxelGrid(data.sensor_size, n_time_bins=4)
    with np.errstate(invalid="ignore"):
        assert np.isnan(to_voxels(data[3 * 24 + 5][0])).any()
    with pytest.raises(IndexError):
        to_voxels(data[0][0][:0])
    events, _ = gerd.Dataset(busy, "events", steps=2)[3 * 12 + 2]
    first = events[events["t"] == 0]
    assert 0 < len(first) < len(events)
    assert np.isclose(np.abs(to_voxels(events)).sum(), len(first))


def test_tonic_s_slices_by_count_cut_inside_a_step(busy: Path) -> None:
    events, _ = gerd.Dataset(busy, "events")[3]
    by_count, _ = tonic.slicers.SliceByEventCount(50).slice(events, None)
    assert any(left["t"][-1] == right["t"][0] for left, right in pairwise(by_count))
    by_time, _ = tonic.slicers.SliceByTime(4 * 250, start_time=0, end_time=STEPS * 250).slice(events, None)
    assert [set(part["t"] // 1000) for part in by_time] == [{0}, {1}, {2}, {3}, {4}, {5}]
    assert np.array_equal(np.concatenate(by_time), events)


def test_tonic_s_transforms_caches_and_batches(busy: Path, tmp_path: Path) -> None:
    transform = tonic.transforms.Compose(
        [
            tonic.transforms.Denoise(filter_time=1000),
            tonic.transforms.Downsample(spatial_factor=0.5),
            tonic.transforms.ToFrame((13, 9, 2), time_window=250, start_time=0, end_time=24 * 250),
        ]
    )
    data = gerd.Dataset(busy, "events", transform=transform)
    frames, positions = data[3]
    assert frames.shape == (24, 2, 9, 13)
    assert 0 < frames.sum() < len(gerd.simulate(BUSY, 3))
    memory, disk = tonic.MemoryCachedDataset(data), tonic.DiskCachedDataset(data, str(tmp_path / "cache"))
    for cached in (memory, disk, memory, disk):  # the second time from the cache
        again, label = cached[3]
        assert np.array_equal(again, frames)
        assert np.array_equal(label, positions)
    batch, labels = next(iter(DataLoader(disk, 4, collate_fn=tonic.collation.PadTensors())))
    assert np.array_equal(batch[3].numpy(), frames)
    assert np.array_equal(labels[3].numpy(), positions)


# One convention of time: exact recordings, in windows, bins, labels and Tonic


EXACT_US = 900
EXACT = config(
    actor("square", velocity=[1.7, 0.9], size=7.0, turn=25.0),
    actor("circle", at=[18, 10], velocity=[-1.3, 0.4], size=5.0),
    width=26,
    height=17,
    steps=STEPS,
    step_us=EXACT_US,
    timing="exact",
    noise={"background": 0.01},
)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("datasets") / "exact"
    gerd.generate(EXACT, path, 3, workers=1)
    return path


@pytest.mark.parametrize("bin_us", [EXACT_US, 300, 250, 7, 10 * EXACT_US])
def test_tonic_bins_exact_events_as_we_do(exact: Path, bin_us: int) -> None:
    """Every event of every window is kept, in the bin that `frames` puts it into; also whole steps."""
    data = gerd.Dataset(exact, "events", "index", steps=8)
    end = -(-8 * EXACT_US // bin_us) * bin_us
    to_frame = tonic.transforms.ToFrame(data.sensor_size, time_window=bin_us, start_time=0, end_time=end)
    kept = 0
    for number in range(len(data)):
        events, index = data[number]
        _, at, _ = data.place(number)
        recording = gerd.simulate(EXACT, index)
        theirs = to_frame(events)
        ours = recording.frames(at, at + 8, counts=True, bin_us=bin_us).numpy()
        assert np.array_equal(theirs, ours)
        assert theirs.sum() == len(events)
        if bin_us == EXACT_US:
            assert np.array_equal(theirs, recording.frames(at, at + 8, counts=True).numpy())
        kept += len(events)
    assert kept == sum(len(gerd.simulate(EXACT, index)) for index in range(3)) > 1500


def test_an_exact_window_s_times_count_from_its_beginning(exact: Path) -> None:
    """Against the rule as it is written: step i has the events with (i - 1) · step_us < t <= i · step_us."""
    data = gerd.Dataset(exact, "events", "index", steps=5, warmup=2)
    for number in range(len(data)):
        events, index = data[number]
        begin = data.place(number)[1] - 2
        t = gerd.simulate(EXACT, index).events["t"]
        inside = t[(t > (begin - 1) * EXACT_US) & (t <= (begin + 6) * EXACT_US)]
        assert np.array_equal(events["t"], inside - (begin - 1) * EXACT_US - 1)
        assert 0 <= events["t"].min() <= events["t"].max() < 7 * EXACT_US
    stream = gerd.Stream(EXACT, 2, "events", "index", steps=5)
    batch, _ = stream.batch(0)
    assert 0 <= batch["t"].min() <= batch["t"].max() < 5 * EXACT_US


def test_tonic_slices_exact_events_into_steps(exact: Path) -> None:
    data = gerd.Dataset(exact, "events", "index")
    events, index = data[1]
    slicer = tonic.slicers.SliceByTime(EXACT_US, start_time=0, end_time=STEPS * EXACT_US)
    slices, _ = slicer.slice(events, None)
    recording = gerd.simulate(EXACT, index)
    steps = -(-recording.events["t"] // EXACT_US)
    assert [len(part) for part in slices] == np.bincount(steps, minlength=STEPS).tolist()


@pytest.mark.parametrize("bin_us", [250, 50, 333, 1000, 6000])
def test_tonic_bins_the_events_of_steps_as_we_do(busy: Path, one: Recording, bin_us: int) -> None:
    data = gerd.Dataset(busy, "events")
    end = -(-STEPS * 250 // bin_us) * bin_us
    to_frame = tonic.transforms.ToFrame(data.sensor_size, time_window=bin_us, start_time=0, end_time=end)
    assert np.array_equal(to_frame(data[3][0]), one.frames(counts=True, bin_us=bin_us).numpy())


# Mistakes


BAD: list[tuple[dict[str, Any], str]] = [
    ({"item": "image"}, "item 'image': allowed: frames, counts, voxels, time_surface, sparse, events, or a function"),
    ({"label": "position"}, "label 'position': did you mean positions? allowed: positions, T, "),
    ({"label": ("T", 7)}, "label 7: allowed"),
    ({"label": {"a": ["bad"]}}, "label 'bad': allowed"),
    ({"steps": 0}, "steps 0: allowed: a whole number, 1 or more"),
    ({"steps": 25}, "steps 25: the recording has 24, of which 0 before the labelled part and 0 after it are needed"),
    ({"steps": 10, "warmup": 15}, "steps 10: the recording has 24, of which 15 before"),
    ({"delay": 24}, "the recording has 24, of which 0 before the labelled part and 24 after"),
    ({"stride": 1.5}, "stride 1.5: allowed: a whole number"),
    ({"warmup": -1}, "warmup -1: allowed: a whole number, 0 or more"),
    ({"warmup": True}, "warmup True: allowed"),
    ({"rest": "keep"}, "rest 'keep': allowed: overlap, drop"),
    ({"every": 4, "steps": 6}, "steps 6: allowed with every=4: a multiple of it"),
    ({"every": 4, "warmup": 6}, "warmup 6: allowed with every=4: a multiple of it"),
    ({"dtype": "float32"}, "dtype 'float32': allowed: a type of PyTorch, such as torch.float32"),
    ({"item": "events", "sum": 2}, "sum: goes with the items frames and counts, not with 'events'"),
    ({"item": "sparse", "dtype": torch.float32}, "dtype: goes with the items frames and counts"),
    ({"label": ("T", "actor")}, "label actor: belongs to single events, and goes with the item events, not frames"),
    (
        {"item": "sparse", "label": "echo"},
        "label echo: belongs to single events, and goes with the item events, not sparse",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda value: str(value)[:40])
def test_mistakes_are_explained(busy: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(gerd.GerdError) as error:
        gerd.Dataset(busy, **options)
    assert message in str(error.value)


def test_names_that_are_not_options_are_refused(busy: Path) -> None:
    for make in (partial(gerd.Dataset, busy), partial(gerd.Stream, BUSY, 2)):
        with pytest.raises(gerd.GerdError, match=r"there is no argument warmpu; did you mean warmup\?"):
            make(warmpu=3)


def test_mistakes_in_choosing_are_explained(busy: Path, tmp_path: Path) -> None:
    data = gerd.Dataset(busy)
    with pytest.raises(gerd.StorageError, match="there is no such dataset"):
        gerd.Dataset(tmp_path / "nowhere")
    with pytest.raises(IndexError, match="there is no item 70; there are 70, from 0"):
        data[70]
    assert same(data[-1], data[69])
    assert len(gerd.Dataset(busy, steps=np.int64(8))) == 210
    with pytest.raises(gerd.GerdError, match="there are no items"):
        gerd.collate([])
    with pytest.raises(gerd.GerdError, match="is true for none of 70 recordings"):
        data.where(lambda r: r.index > 70)
    with pytest.raises(gerd.GerdError, match="holds out all of 70 recordings"):
        data.hold_out(lambda r: True)
    with pytest.raises(gerd.GerdError, match=r"gave an array of shape \(2,\); .* use .any\(\) or .all\(\)"):
        data.where(lambda r: r.parameters["x"][0] > 3)
    for fractions in ((), (0.7, 0.2), (1.2, -0.2), ("all",), (float("nan"), 1.0)):
        with pytest.raises(gerd.GerdError, match="numbers above 0 that add up to 1"):
            data.split(*fractions)
    with pytest.raises(gerd.GerdError, match=r"fraction 0.001: is less than one of 70 recordings \(or families\)"):
        data.split(0.999, 0.001)
    with pytest.raises(gerd.GerdError, match="a part would be empty; split first, then choose"):
        data.where(lambda r: r.index == 3).split(0.5, 0.5)
    with pytest.raises(gerd.GerdError, match="rank 3: allowed with ranks=3: 0 to 2"):
        data.random_windows(rank=3, ranks=3)


def test_an_unfinished_dataset_is_refused(busy: Path, tmp_path: Path) -> None:
    for file in busy.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "complete": False, "shards": []}))
    with pytest.raises(gerd.StorageError, match="not complete; run the same generate command"):
        gerd.Dataset(tmp_path)


def test_windows_of_a_recording(one: Recording) -> None:
    part = one.window(5, 15).window(2, -3)
    assert (part.first, part.steps) == (7, 5)
    assert torch.equal(part.frames(), one.frames()[7:12])
    chosen = (one.events["t"] >= 7 * 250) & (one.events["t"] < 12 * 250)
    assert np.array_equal(part.events, one.events[chosen])
    assert np.array_equal(part.background, one.background[chosen])
    assert np.array_equal(part.flow(), one.flow()[7:12])
    assert len(one.window(9, 3)) == one.window(9, 3).steps == 0


def test_nothing_is_unpickled(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Iterator[None]:
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    list(gerd.Dataset(busy, label=("T", "boxes")).where(lambda r: r.parameters["x"].max() > 0).loader(10))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 2 * 10**9}, r"manifest\.json: is damaged: it lists \d+ shards of "),
        ({"count": 2**32, "members": 100_000}, r"manifest\.json: is damaged: it lists \d+ shards of "),
        ({"count": 1, "members": 7}, r"manifest\.json: is damaged: members is 7, but \d by the config"),
        ({"complete": False, "count": 2**32}, "the dataset is not complete"),
    ],
)
def test_a_manifest_that_counts_too_much_is_refused_before_there_is_room_for_it(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    gerd.generate(gerd.parse(TWO_SHAPES), tmp_path / "data", 3, workers=1)
    change_manifest(tmp_path / "data", **fields)
    with pytest.raises(gerd.StorageError, match=message):
        gerd.Dataset(tmp_path / "data")

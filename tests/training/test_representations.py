"""Dense representations against Tonic's and the formulas of the literature; in batches, padded, and streamed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tonic
import torch
from support.scenes import actor, config, same

import gerd
from gerd.config.config import Config
from gerd.recording.recording import Recording
from gerd.training.items import ItemSpec

WIDTH, HEIGHT, STEPS, STEP_US = 26, 17, 24, 600
ACTORS = (
    actor("square", velocity=[1.3, 0.6], size={"uniform": [4, 8]}, turn=25.0),
    actor("circle", at=[18, 10], velocity=[-1.1, 0.3], size=5.0),
)
FIELDS: dict[str, Any] = {
    "width": WIDTH,
    "height": HEIGHT,
    "steps": STEPS,
    "step_us": STEP_US,
    "noise": {"background": 0.01},
}
MOVING = config(*ACTORS, **FIELDS)
TIMINGS = ("step", "exact")
LAST = {"step": (STEPS - 1) * STEP_US, "exact": STEPS * STEP_US - 1}  # the last time an event can have in the window
KEPT = config(  # of 49, 25 and 13 steps
    *ACTORS, **{**FIELDS, "steps": 25}, sweep={"time_scale": [{"factor": s, "keep": "path"} for s in (0.5, 1, 2)]}
)


def timed(timing: str) -> Config:
    return config(*ACTORS, **FIELDS, timing=timing)


@pytest.fixture(scope="module", params=TIMINGS)
def recording(request: pytest.FixtureRequest) -> Recording:
    return gerd.simulate(timed(request.param), 3)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("representations")
    for timing in TIMINGS:
        gerd.generate(timed(timing), path / timing, 4, workers=1)
    gerd.generate(KEPT, path / "kept", 2, workers=1)
    return path


def for_tonic(recording: Recording, *marks: int) -> np.ndarray:
    """The events with window times, and events at the times `marks` in a row below the frame.

    Tonic's time begins with the first event and ends with the last: the marks say where.
    """
    item = ItemSpec("events").item_of(recording)
    extra = np.zeros(len(marks), item.dtype)
    extra["t"], extra["y"], extra["p"] = marks, HEIGHT, 1
    both = np.concatenate([extra, item])
    return both[np.argsort(both["t"], kind="stable")]


WITH_MARKS = (WIDTH, HEIGHT + 1, 2)


def times_of(recording: Recording) -> np.ndarray:
    """Of each event since the recording began, from the rule for its two timings."""
    t = recording.events["t"]
    return t if recording.config.timing == "step" else t + STEP_US - 1


# Against others


@pytest.mark.parametrize("bins", [1, 5, 24, 48])
def test_equal_parts_are_tonic_s(bins: int, recording: Recording) -> None:
    duration = STEPS * STEP_US
    assert duration % bins == 0
    events = for_tonic(recording, 0, duration)
    theirs = tonic.transforms.ToFrame(WITH_MARKS, n_time_bins=bins)(events)[:, :, :HEIGHT]
    ours = recording.frames(counts=True, bins=bins)
    assert ours.sum() == len(recording)
    assert np.array_equal(ours.numpy(), theirs)
    assert np.array_equal(recording.frames(bins=bins).numpy(), theirs > 0)


@pytest.mark.parametrize("bin_events", [1, 50, 137, 10**6])
def test_slices_of_events_are_tonic_s(bin_events: int, recording: Recording) -> None:
    events = for_tonic(recording)
    slices = tonic.slicers.SliceByEventCount(bin_events, include_incomplete=True)
    theirs, _ = slices.slice(events, None)
    ours = recording.frames(counts=True, bin_events=bin_events)
    assert len(ours) == math.ceil(len(events) / bin_events)
    for frame, part in zip(ours.numpy(), theirs, strict=True):
        wanted = np.zeros(frame.shape, int)
        np.add.at(wanted, (part["p"], part["y"], part["x"]), 1)
        assert np.array_equal(frame, wanted)


@pytest.mark.parametrize("bins", [2, 3, 8])
def test_voxels_are_tonic_s_with_one_bin_more(bins: int, recording: Recording) -> None:
    """Tonic scales times to 0 … bins, where Zhu et al. have bins - 1, and leaves out what belongs to the bin beyond."""
    events = for_tonic(recording, 0, LAST[recording.config.timing])
    theirs = tonic.transforms.ToVoxelGrid(WITH_MARKS, n_time_bins=bins)(events)[:, 0, :HEIGHT]
    ours = recording.voxels(bins + 1)
    assert ours.dtype == torch.float32
    assert ours.min() < 0 < ours.max()
    np.testing.assert_allclose(ours[:bins].numpy(), theirs, atol=1e-5)


@pytest.mark.parametrize("bins", [1, 2, 7])
def test_voxels_are_those_of_the_literature(bins: int, recording: Recording) -> None:
    scaled = times_of(recording) / LAST[recording.config.timing] * (bins - 1)
    wanted = np.zeros((bins, HEIGHT, WIDTH))
    for (x, y, _, p), at in zip(recording.events.tolist(), scaled, strict=True):
        for b in range(bins):
            wanted[b, y, x] += (1 if p else -1) * max(0.0, 1 - abs(b - at))
    np.testing.assert_allclose(recording.voxels(bins).numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("bin_us", [600, 250])
def test_time_surfaces_are_tonic_s(bin_us: int, recording: Recording) -> None:
    tau = 900.0
    events = for_tonic(recording, 0)
    theirs = tonic.transforms.ToTimesurface(WITH_MARKS, dt=bin_us, tau=tau)(events)[:, :, :HEIGHT]
    ours = recording.time_surface(bin_us=bin_us, tau_us=tau).numpy()
    assert len(theirs) >= STEPS - 2
    assert 0 < theirs.max() < 1
    np.testing.assert_allclose(ours[: len(theirs)], theirs, rtol=1e-6)
    assert len(ours) == math.ceil(STEPS * STEP_US / bin_us)


def test_time_surfaces_hold_the_latest_time(recording: Recording) -> None:
    wanted = np.full((STEPS, 2, HEIGHT, WIDTH), -1)
    for (x, y, _, p), t in zip(recording.events.tolist(), times_of(recording).tolist(), strict=True):
        wanted[t // STEP_US :, int(p), y, x] = t
    assert np.array_equal(recording.time_surface().numpy(), wanted)
    halves = recording.time_surface(bins=2)
    assert np.array_equal(halves.numpy(), wanted[[STEPS // 2 - 1, STEPS - 1]])


def test_parts_of_a_recording(recording: Recording) -> None:
    part = recording.window(5, 11)
    assert same(recording.voxels(3, 5, 11), part.voxels(3))
    assert same(recording.time_surface(5, 11, bins=4), part.time_surface(bins=4))
    assert same(recording.frames(5, 11, bin_events=20), part.frames(bin_events=20))
    assert part.voxels(3).any()
    empty = recording.window(3, 3)
    assert recording.frames(3, 3, bin_us=10).shape == (0, 2, HEIGHT, WIDTH)
    assert empty.frames(bin_events=5).shape == (0, 2, HEIGHT, WIDTH)
    assert not empty.voxels(3).any()
    assert (empty.time_surface(bins=3) == -1).all()


# As items


ITEMS: list[dict[str, Any]] = [
    {"item": "frames", "bins": 5},
    {"item": "counts", "bin_us": 250},
    {"item": "counts", "bins": 3, "dtype": torch.float32},
    {"item": "voxels", "bins": 4},
    {"item": "time_surface"},
    {"item": "time_surface", "bins": 3, "tau_us": 2000.0},
]


def by_hand(part: Recording, options: dict[str, Any]) -> torch.Tensor:
    wish = dict(options)
    item, dtype = wish.pop("item"), wish.pop("dtype", None)
    if item in ("frames", "counts"):
        frames = part.frames(counts=item == "counts", **wish)
        return frames if dtype is None else frames.to(dtype)
    return part.voxels(**wish) if item == "voxels" else part.time_surface(**wish)


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("options", ITEMS, ids=str)
def test_items_and_batches_are_those_of_the_recordings(options: dict[str, Any], timing: str, datasets: Path) -> None:
    data = gerd.Dataset(datasets / timing, label="index", steps=8, warmup=4, **options)
    wanted = []
    for number in range(len(data)):
        item, index = data[number]
        at = data.place(number)[1]
        wanted.append(by_hand(gerd.simulate(timed(timing), index).window(at - 4, at + 8), options))
        assert same(item, wanted[-1])
        assert item.any()
    together = torch.stack(wanted)
    for workers in (0, 1):
        (batch, _), *more = data.loader(len(data), num_workers=workers)
        assert not more
        assert same(batch, together)
    stream = gerd.Stream(timed(timing), 4, label="index", steps=8, warmup=4, **options)
    streamed, indices = stream.batch(0)
    for item, index in zip(streamed, indices.tolist(), strict=True):
        assert same(item, by_hand(gerd.simulate(timed(timing), index).window(STEPS - 12), options))


# Of different lengths


PADDED: list[dict[str, Any]] = [
    {"item": "frames"},
    {"item": "counts", "sum": 3},
    {"item": "frames", "every": 2, "stack": 2},
    {"item": "counts", "bin_us": 700},
    {"item": "frames", "bin_events": 100},
    {"item": "time_surface", "tau_us": 900.0},
]


@pytest.mark.parametrize("options", PADDED, ids=str)
def test_items_of_different_lengths_are_padded(options: dict[str, Any], datasets: Path) -> None:
    labels = ("positions", "masks", "index")
    data = gerd.Dataset(datasets / "kept", label=labels, **options)
    items = [data[number] for number in range(len(data))]
    lengths = [len(item) for item, _ in items]
    assert len(set(lengths)) > 1
    with pytest.raises(gerd.GerdError, match=r"do not fit into one batch; .* pad=True"):
        next(iter(data.loader(6)))
    made = [
        next(iter(data.loader(6, pad=True))),
        next(iter(data.loader(6, pad=True, num_workers=1))),
        gerd.collate(items, pad=True),
        gerd.Stream(KEPT, 6, label=labels, pad=True, **options).batch(0),
    ]
    for batch, (positions, masks, indices) in made:
        assert batch["mask"].sum(1).tolist() == lengths
        assert batch["values"].shape[:2] == batch["mask"].shape == (6, max(lengths))
        assert indices.tolist() == [0, 0, 0, 1, 1, 1]
        for row, (item, (places, shown, _)) in enumerate(items):
            assert same(batch["values"][row][batch["mask"][row]], item)
            assert not batch["values"][row][~batch["mask"][row]].any()
            assert same(positions[row, : len(places)], places)
            assert positions[row, len(places) :].isnan().all()
            assert same(masks[row, : len(shown)], shown)
            assert not masks[row, len(shown) :].any()


@pytest.mark.parametrize("options", PADDED[:3], ids=str)
def test_frames_from_a_device_are_padded_alike(options: dict[str, Any]) -> None:
    stream = gerd.Stream(KEPT, 6, label="positions", pad=True, **options)
    (one, first), (two, second) = stream.batch(1), stream.batch_from_frames(1)
    assert same(one, two)
    assert first.isnan().any()
    assert np.array_equal(first.numpy(), second.numpy(), equal_nan=True)


def test_a_number_of_bins_needs_no_padding(datasets: Path) -> None:
    data = gerd.Dataset(datasets / "kept", "voxels", "index", bins=6)
    (batch, _), *_ = data.loader(6)
    assert batch.shape == (6, 6, HEIGHT, WIDTH)
    assert same(batch, torch.stack([data[number][0] for number in range(6)]))


# Mistakes


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"item": "voxels"}, "item voxels: needs bins="),
    ({"item": "voxels", "bins": 0}, "bins 0: allowed: a whole number, 1 or more"),
    ({"item": "frames", "bins": 2, "bin_us": 10}, "bins and bin_us: allowed: one of them"),
    ({"item": "frames", "bins": 2, "sum": 2}, "sum: goes with frames of steps"),
    (
        {"item": "events", "bins": 2},
        "bins: goes with the items frames, counts, voxels, time_surface, not with 'events'",
    ),
    ({"item": "voxels", "bins": 2, "bin_us": 3}, "bin_us: goes with the items frames, counts, time_surface"),
    ({"item": "time_surface", "bin_events": 3}, "bin_events: goes with the items frames, counts, not"),
    ({"item": "frames", "tau_us": 3.0}, "tau_us: goes with the items time_surface"),
    ({"item": "time_surface", "tau_us": 0}, "tau_us 0: allowed: a number of microseconds above 0"),
    ({"item": "time_surface", "tau_us": math.nan}, "tau_us nan: allowed"),
    ({"item": "time_surface", "dtype": torch.float32}, "dtype: goes with the items frames and counts"),
    ({"item": "voxels", "bins": 2, "label": "actor"}, "label actor: belongs to single events"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(gerd.GerdError, match=message):
        gerd.Stream(MOVING, 2, **options)


def test_what_does_not_fit_is_refused(recording: Recording) -> None:
    with pytest.raises(gerd.GerdError, match=r"bins 100000000: makes 100000000 frames of 26×17; take wider bins"):
        recording.frames(bins=10**8)
    with pytest.raises(gerd.GerdError, match="take wider bins"):
        recording.voxels(10**8)

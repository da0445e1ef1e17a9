"""Windows of files of events, held against histograms of the events that were written."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gerd
from gerd.recording.events import EVENT_DTYPE

WIDTH, HEIGHT, STEP = 12, 9, 500
BEGAN = (0, 10_250, 4_000)  # microseconds of the first event of each file
LASTED = (20_000, 20_000, 26_000)


def drawn(number: int) -> Any:
    chance = np.random.default_rng(number)
    result = np.zeros(400, EVENT_DTYPE)
    for name, size in (("t", LASTED[number]), ("x", WIDTH), ("y", HEIGHT), ("p", 2)):
        result[name] = chance.integers(0, size, 400)
    result["t"][:2] = 0, LASTED[number] - 1
    result["t"] += BEGAN[number]
    return result[np.lexsort((result["p"], result["x"], result["y"], result["t"]))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    for number, (kind, format) in enumerate([("left", "evt3"), ("left", "npz"), ("right", "evt2")]):
        (place / kind).mkdir(exist_ok=True)
        path = place / kind / f"{number}.events"
        gerd.write_events(path, drawn(number), width=WIDTH, height=HEIGHT, format=format)
    return place


def opened(folder: Path, item: Any = "frames", **options: Any) -> gerd.EventFiles:
    def side(path: Path) -> int:
        return int(path.parent.name == "right")

    return gerd.EventFiles(f"{folder}/*/*.events", item, side, read={"step_us": STEP}, **options)


def expected(number: int, begin: int, steps: int) -> Any:
    """Boolean frames: step i of a file has the events after (i - 1) · STEP up to i · STEP of its own clock."""
    events = drawn(number)
    first = -(-BEGAN[number] // STEP)
    step = -(-events["t"] // STEP) - first - begin
    result = np.zeros((steps, 2, HEIGHT, WIDTH), np.bool_)
    inside = (step >= 0) & (step < steps)
    result[step[inside], events["p"][inside].astype(int), events["y"][inside], events["x"][inside]] = True
    return result


def test_every_window_holds_the_events_of_its_time(folder: Path) -> None:
    data = opened(folder, steps=10)
    assert data.sensor_size == (WIDTH, HEIGHT, 2)
    seen = []
    for number in range(len(data)):
        item, label = data[number]
        row, begin, steps = data.place(number)
        seen.append((row, begin))
        assert steps == 10
        assert label == (row == 2)
        assert np.array_equal(item.numpy(), expected(row, begin, 10)), (row, begin)
    # Steps of the files: 41, 41 and 53, of which the last window ends with the last.
    assert seen == [(row, at) for row in (0, 1) for at in (0, 10, 20, 30, 31)] + [
        (2, at) for at in (0, 10, 20, 30, 40, 43)
    ]


def test_times_of_event_items_begin_with_the_window(folder: Path) -> None:
    data = opened(folder, "events", steps=10)
    item, _ = data[6]
    assert data.place(6) == (1, 10, 10)
    frames = np.zeros((10, 2, HEIGHT, WIDTH), np.bool_)
    frames[item["t"] // STEP, item["p"], item["y"], item["x"]] = True
    assert np.array_equal(frames, expected(1, 10, 10))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_items(folder: Path, workers: int) -> None:
    data = opened(folder, steps=10, memory=0)
    batches = list(data.loader(4, num_workers=workers))
    items = torch.cat([items for items, _ in batches])
    labels = torch.cat([labels for _, labels in batches])
    assert torch.equal(items, torch.stack([data[i][0] for i in range(len(data))]))
    assert labels.tolist() == [data[i][1] for i in range(len(data))]


def test_whole_files_of_different_lengths_are_padded(folder: Path) -> None:
    data = opened(folder)
    assert [len(data[i][0]) for i in range(3)] == [41, 41, 53]
    (batch, labels) = next(iter(data.loader(3, pad=True)))
    assert batch["mask"].sum(1).tolist() == [41, 41, 53]
    assert labels.tolist() == [0, 0, 1]
    for i in range(3):
        assert torch.equal(batch["values"][i][batch["mask"][i]], data[i][0])


def test_voxels_keep_the_sum_of_the_polarities(folder: Path) -> None:
    data = opened(folder, "voxels", bins=4)
    for number in range(3):
        sign = np.where(drawn(number)["p"], 1.0, -1.0).sum()
        assert float(data[number][0].sum()) == pytest.approx(sign, abs=1e-3)


def test_what_is_kept_in_memory_does_not_show(folder: Path) -> None:
    one, other = opened(folder, steps=7), opened(folder, steps=7, memory=0)
    order = np.random.default_rng(0).permutation(len(one))
    for number in order.tolist():
        assert torch.equal(one[number][0], other[number][0])


def test_parts_have_no_common_file_and_where_chooses(folder: Path) -> None:
    data = opened(folder, steps=10)
    one, two = data.split(2 / 3, 1 / 3, seed=3)
    assert sorted([*one.served, *two.served]) == [0, 1, 2]
    right = data.where(lambda path: path.parent.name == "right")
    assert {right[i][1] for i in range(len(right))} == {1}
    with pytest.raises(gerd.GerdError, match="true for none of 3 files"):
        data.where(lambda path: path.suffix == ".raw")


def test_random_windows_resume_where_they_were(folder: Path) -> None:
    data = opened(folder, steps=5, stride=1)
    whole = [float(items.sum()) for items, _ in data.loader(1, sampler=data.random_windows(seed=1))]
    loader = data.loader(1, sampler=data.random_windows(seed=1))
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    again = data.loader(1, sampler=data.random_windows(seed=1))
    again.load_state_dict(state)
    assert [float(items.sum()) for items, _ in again] == whole[1:]
    fewer = gerd.EventFiles(f"{folder}/left/*.events", read={"step_us": STEP}, steps=5, stride=1)
    with pytest.raises(gerd.GerdError, match="files"):
        fewer.loader(1, sampler=fewer.random_windows(seed=1)).load_state_dict(state)


def test_a_copy_for_a_worker_leaves_the_events_behind(tmp_path: Path) -> None:
    rows = np.zeros(50_000, EVENT_DTYPE)
    rows["t"] = np.arange(50_000)
    gerd.write_events(tmp_path / "a.npz", rows, width=WIDTH, height=HEIGHT, format="npz")
    data = gerd.EventFiles(tmp_path / "a.npz")
    copied = pickle.dumps(data)
    assert len(copied) < 20_000
    assert torch.equal(pickle.loads(copied)[0][0], data[0][0])


def test_wrong_uses_say_what_is_allowed(folder: Path, tmp_path: Path) -> None:
    one = folder / "left" / "0.events"
    with pytest.raises(gerd.GerdError, match=r"nothing\*: there is no such file; allowed: paths, or a pattern"):
        gerd.EventFiles(str(tmp_path / "nothing*"))
    with pytest.raises(gerd.GerdError, match="is a folder; allowed: a pattern of its files"):
        gerd.EventFiles(folder)
    with pytest.raises(gerd.GerdError, match="files: got none"):
        gerd.EventFiles([])
    with pytest.raises(gerd.GerdError, match="label 'positions': allowed: a function of a file's path"):
        gerd.EventFiles(one, label="positions")  # type: ignore[arg-type]
    with pytest.raises(gerd.GerdError, match=r"0\.events: steps 50: the recording has 41"):
        gerd.EventFiles(one, read={"step_us": STEP}, steps=50)
    with pytest.raises(gerd.GerdError, match="EventFiles reads files of events"):
        gerd.Dataset(one)
    other = tmp_path / "other.npz"
    gerd.write_events(other, drawn(0), width=WIDTH + 1, height=HEIGHT, format="npz")
    data = gerd.EventFiles([one, other], read={"step_us": STEP})
    with pytest.raises(gerd.GerdError, match=r"frames of \(12, 9\) and \(13, 9\) pixels"):
        _ = data.sensor_size
    with pytest.raises(gerd.GerdError, match="do not fit into one batch"):
        next(iter(data.loader(2)))

"""Recorded noise: a real, empty scene that is laid over simulated events, against a slow program of its own."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gerd
from gerd.recording.events import EVENT_DTYPE
from gerd.scene import philox

LENGTH = 60_000  # microseconds
SCENE = """
sensor: {width: 20, height: 16}
steps: 30
seed: 11
actors: [{shape: square, translation: {velocity: [0.4, 0.3]}, scale: {start: 7, acceleration: 0}}]
noise: {recorded: empty.npz}
"""
NOTHING = {"actors": []}


def write_empty(
    path: Path, width: int = 24, height: int = 18, seed: int = 0, length: int = LENGTH
) -> np.ndarray[Any, Any]:
    """Random events of a frame that is a little larger than the sensor's, some of them at one time and place."""
    random = np.random.default_rng(seed)
    events = np.zeros(3000, EVENT_DTYPE)
    events["t"] = 5000 + np.sort(np.concatenate([[0, length - 1], random.integers(0, length, 2998)]))
    events["x"], events["y"] = random.integers(0, width, 3000), random.integers(0, height, 3000)
    events["p"] = random.random(3000) < 0.4
    events[1000:1010] = events[1000]
    path.unlink(missing_ok=True)
    gerd.write_events(path, events, format="npz", width=width, height=height)
    return events


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("empty")
    write_empty(result / "empty.npz")
    (result / "c.yaml").write_text(SCENE)
    return result


def piece(events: np.ndarray[Any, Any], index: int, exact: bool) -> set[tuple[int, int, int, bool]]:
    """t, x, y and p of what index gets: event by event."""
    high, low, *_ = (int(word) for word in philox.words(11, 0, 0, index, philox.RECORDED))
    start = int(((high >> 5) * 2.0**26 + (low >> 6)) * 2.0**-53 * LENGTH)
    result = set()
    for x, y, t, p in events.tolist():
        since = (t - 5000 - start) % LENGTH
        time = since + 1 if exact else since // 1000 * 1000
        if time <= 29_000 and 2 <= x < 22 and 1 <= y < 17:
            result.add((time, x - 2, y - 1, p))
    return result


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_each_index_gets_its_piece_of_the_file(folder: Path, timing: str) -> None:
    events = write_empty(folder / "empty-again.npz")
    pieces = set()
    for index in (0, 1, 5, 2**32 - 1):
        made = gerd.simulate(gerd.load(folder / "c.yaml"), index, timing=timing, **NOTHING)
        wanted = piece(events, index, timing == "exact")
        assert len(wanted) > 400
        assert len(made) == len(wanted)
        assert {(t, x, y, p) for x, y, t, p in made.events.tolist()} == wanted
        assert made.background.all()
        pieces.add(made.digest)
    assert len(pieces) == 4


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_it_is_laid_over_the_events_of_the_scene_everywhere_alike(folder: Path, timing: str) -> None:
    config = gerd.load(folder / "c.yaml")
    quiet = gerd.simulate(config, 3, timing=timing, **{"noise.recorded": None})
    empty = gerd.simulate(config, 3, timing=timing, **NOTHING)
    whole = gerd.simulate(config, 3, timing=timing)
    assert set(whole.keys) == set(quiet.keys) | set(empty.keys)
    assert np.array_equal(whole.background, ~np.isin(whole.keys, quiet.keys))
    batch = gerd.simulate_batch(config, [1, 3], values={"timing": timing})[1]
    for same in (gerd.simulate(config, 3, timing=timing, backend="torch", chunk=7), batch):
        assert (same.digest, same.background.sum()) == (whole.digest, whole.background.sum())
    dead = gerd.simulate(config, 3, timing=timing, **{"noise.dead": 0.5})
    assert len(dead) < 0.7 * len(whole)
    if timing == "step":
        frames = np.zeros((30, 16, 20))
        shown = gerd.from_frames(frames, np.arange(30) * 1000, config, index=3)
        assert np.array_equal(shown.keys, empty.keys)


def test_the_digest_is_that_of_the_content(folder: Path, tmp_path: Path) -> None:
    config = gerd.load(folder / "c.yaml")
    shutil.copy(folder / "empty.npz", tmp_path / "other-name.npz")
    (tmp_path / "c.yaml").write_text(SCENE.replace("empty.npz", "other-name.npz"))
    assert gerd.load(tmp_path / "c.yaml").digest == config.digest
    write_empty(tmp_path / "other-name.npz", seed=1)
    assert gerd.load(tmp_path / "c.yaml").digest != config.digest
    assert gerd.load(folder / "c.yaml", overrides=["noise.recorded=null"]).digest != config.digest
    again = gerd.parse(config.to_yaml(), directory=folder)
    assert again.digest == config.digest
    assert gerd.simulate(again).digest == gerd.simulate(config).digest


def test_a_sweep_may_choose_among_files(folder: Path) -> None:
    write_empty(folder / "noisier.npz", seed=3)
    text = SCENE + "sweep: {noise.recorded: [null, empty.npz, noisier.npz]}\n"
    family = gerd.parse(text, directory=folder)
    quiet, one, other = gerd.simulate_family(family, 4)
    assert len(quiet) < len(one)
    assert one.digest != other.digest
    assert one.digest == gerd.simulate(gerd.load(folder / "c.yaml"), 4).digest


def test_files_that_will_not_do_are_named(folder: Path, tmp_path: Path) -> None:
    def refused(message: str, **values: Any) -> None:
        with pytest.raises(gerd.GerdError, match=message):
            gerd.simulate(gerd.parse(SCENE, directory=tmp_path), **values)

    refused("noise.recorded: got 'empty.npz': cannot be read: No such file.*allowed: the name of a file")
    write_empty(tmp_path / "empty.npz", width=19)
    refused("has a frame of 19×18 pixels; allowed with this sensor: 20×16 or more")
    write_empty(tmp_path / "empty.npz", length=29_999)
    refused("lasts 29999 µs; allowed with these steps: 30000 or more")
    assert gerd.simulate(gerd.parse(SCENE, directory=tmp_path), steps=29).steps == 29
    (tmp_path / "empty.npz").write_bytes(b"no")
    refused("is no .npz file with t, x, y, p, width and height .*; write it with gerd export")
    np.savez(tmp_path / "empty.npz", t=[3, 2], x=[0, 0], y=[0, 0], p=[0, 1], width=30, height=30)
    refused("that are not in order")
    np.savez(tmp_path / "empty.npz", t=[2, 3], x=[0.0, 0.5], y=[0, 0], p=[0, 1], width=30, height=30)
    refused("no whole numbers")
    np.savez(tmp_path / "empty.npz", t=np.array([2, None]), x=[0, 0], y=[0, 0], p=[0, 1], width=30, height=30)
    refused("is no .npz file.*pickle")
    with pytest.raises(gerd.GerdError, match=r"noise\.recorded: got 7"):
        gerd.parse("actors: []\nnoise: {recorded: 7}")
    shutil.copy(folder / "empty.npz", tmp_path / "empty.npz")
    config = gerd.parse(SCENE, directory=tmp_path)
    (tmp_path / "empty.npz").unlink()
    with pytest.raises(
        gerd.GerdError, match=r"cannot be read, but is needed: No such file.*its sha256 is [0-9a-f]{64}"
    ):
        gerd.simulate(config)
    write_empty(tmp_path / "empty.npz", seed=9)
    with pytest.raises(gerd.GerdError, match="is not the file that the config was read with, whose sha256 is"):
        gerd.simulate(config)


def test_a_dataset_needs_the_file_only_to_be_made_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = gerd.generate(gerd.load(folder / "c.yaml"), tmp_path / "data", 3, workers=1)
    assert data[2].digest == gerd.simulate(gerd.load(folder / "c.yaml"), 2).digest
    monkeypatch.chdir(tmp_path)
    read = gerd.Recordings(tmp_path / "data")
    assert (read[1].actor[read[1].background] == -1).all()  # whose scene is drawn again
    faults = lambda: [fault for _, found in gerd.verify(tmp_path / "data") for fault in found]  # noqa: E731
    assert not faults()
    with pytest.raises(gerd.GerdError, match=r"empty\.npz cannot be read, but is needed"):
        list(gerd.verify(tmp_path / "data", regenerate=True))
    shutil.copy(folder / "empty.npz", tmp_path / "empty.npz")
    assert not [fault for _, found in gerd.verify(tmp_path / "data", regenerate=True) for fault in found]

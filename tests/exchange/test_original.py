"""Files of the authors' program: what one of them holds, in our conventions, and that nothing in one is ever run.

`original_0_5_1.dat` was written by gerd 0.5.1: a circle, a square and a triangle of 6 pixels on a frame of 40 (x) by
24 (y), which start at (10, 8), (13, 11) and (16, 14) and move to the right by one pixel per step, for ten steps
without noise. Six steps of warm-up come first, and the first of the ten shows the seventh move.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gerd
from gerd.exchange.original import OriginalRecording, read_original

FILE = Path(__file__).parent / "original_0_5_1.dat"


@pytest.fixture(scope="module")
def recording() -> OriginalRecording:
    return read_original(FILE, step_us=500)


def test_size_and_positions(recording: OriginalRecording) -> None:
    assert (recording.width, recording.height, recording.steps, len(recording)) == (40, 24, 10, 371)
    steps = np.arange(10)
    for shape in range(3):
        assert np.allclose(recording.positions[:, shape, 0], 10 + 3 * shape + 7 + steps)
        assert np.allclose(recording.positions[:, shape, 1], 8 + 3 * shape)


def test_a_window_has_the_positions_of_its_steps(recording: OriginalRecording) -> None:
    window = recording.window(3, 7)
    assert np.array_equal(window.positions, recording.positions[3:7])
    assert np.array_equal(window.events["t"] // 500, [t for t in recording.events["t"] // 500 if 3 <= t < 7])


def test_what_moves_to_the_right_becomes_bright_there_and_dark_on_the_left(recording: OriginalRecording) -> None:
    """Of the circle alone: above y = 8 there is nothing of the others."""
    for step in range(2, 10):
        here = recording.events[(recording.events["t"] == 500 * step) & (recording.events["y"] < 8)]
        x = recording.positions[step, 0, 0]
        on, off = here[here["p"]], here[~here["p"]]
        assert len(on) > 1
        assert len(off) > 1
        assert (on["x"] + 0.5 > x).all()
        assert (off["x"] + 0.5 < x).all()


def test_events_and_frames_are_those_of_the_file(recording: OriginalRecording) -> None:
    stored = torch.load(FILE, weights_only=True)[0].to_dense().bool()
    assert torch.equal(recording.frames(), stored.transpose(2, 3))
    order = np.lexsort([recording.events[name] for name in "pxyt"])
    assert np.array_equal(order, np.arange(len(recording)))
    assert recording.has_polarity


def test_old_data_can_be_written_in_other_formats(recording: OriginalRecording, tmp_path: Path) -> None:
    size = {"width": recording.width, "height": recording.height}
    gerd.write_events(tmp_path / "old.npz", recording.events, **size, format="npz")
    found = np.load(tmp_path / "old.npz")
    assert all(np.array_equal(found[name], recording.events[name]) for name in "xytp")


def saved(tmp_path: Path, content: Any) -> Path:
    torch.save(content, tmp_path / "a.dat")
    return tmp_path / "a.dat"


def test_one_channel_and_no_events(tmp_path: Path) -> None:
    places = torch.tensor([[1, 0, 4, 2], [2, 0, 1, 1]]).T
    images = torch.sparse_coo_tensor(
        places, torch.tensor([1.0, 0.0]), (3, 1, 5, 4), check_invariants=True
    )  # 0 is no event
    both = read_original(saved(tmp_path, [images, torch.zeros(3, 2, 2)]))
    assert not both.has_polarity
    assert both.events.tolist() == [(4, 2, 1000, True)]
    none = read_original(saved(tmp_path, [torch.zeros(3, 2, 5, 4).to_sparse(), torch.zeros(3, 2, 2)]))
    assert len(none) == 0
    assert none.frames().shape == (3, 2, 4, 5)


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("something in the file was run",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_run(protocol: int, tmp_path: Path) -> None:
    images, labels = torch.load(FILE, weights_only=True)
    with pytest.raises(gerd.StorageError, match=r"is not a file of gerd 0\.5\.1, or is damaged"):
        read_original(saved(tmp_path, [images, labels, Trap()]))
    (tmp_path / "b.dat").write_bytes(pickle.dumps([Trap(), Trap()], protocol))
    with pytest.raises(gerd.StorageError, match=r"is not a file of gerd 0\.5\.1, or is damaged"):
        read_original(tmp_path / "b.dat")


FRAMES, PLACES = torch.zeros(3, 2, 5, 4).to_sparse(), torch.zeros(3, 2, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([FRAMES, PLACES, PLACES], "does not hold a list of two tensors"),
        ({"a": 1}, "does not hold a list of two tensors"),
        ([FRAMES, "labels"], "does not hold a list of two tensors"),
        ([FRAMES.to_dense(), PLACES], r"its first tensor is not sparse \(steps, 1 or 2, x, y\)"),
        ([torch.zeros(3, 3, 5, 4).to_sparse(), PLACES], "its first tensor is not sparse"),
        ([torch.zeros(3, 2, 5).to_sparse(), PLACES], "its first tensor is not sparse"),
        ([FRAMES, PLACES[:2]], r"its second tensor is not \(steps, shapes, 2\)"),
    ],
)
def test_other_content_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(gerd.StorageError, match=message):
        read_original(saved(tmp_path, content))


def test_events_outside_the_frame_are_refused(tmp_path: Path) -> None:
    with torch.sparse.check_sparse_tensor_invariants(False):
        bad = torch.sparse_coo_tensor(torch.tensor([[0], [0], [9], [0]]), [1.0], (3, 2, 5, 4), check_invariants=False)
        path = saved(tmp_path, [bad, PLACES])
    with pytest.raises(gerd.StorageError, match="damaged"):
        read_original(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(gerd.StorageError, match="there is no such file"):
        read_original(tmp_path / "nothing.dat")
    with pytest.raises(gerd.StorageError, match="cannot be read"):
        read_original(tmp_path)
    for size in (0, 10, 8000):
        (tmp_path / "cut.dat").write_bytes(FILE.read_bytes()[:size])
        with pytest.raises(gerd.StorageError, match=r"is not a file of gerd 0\.5\.1, or is damaged"):
            read_original(tmp_path / "cut.dat")
    with pytest.raises(gerd.GerdError, match="step_us 0: allowed: a whole number, 1 or more"):
        read_original(FILE, step_us=0)


def test_what_does_not_fit_into_the_events_is_refused(tmp_path: Path) -> None:
    """A place beyond 16 bits, a time beyond 64; up to there all is as it was."""
    far = torch.sparse_coo_tensor(torch.tensor([[0], [0], [40_000], [0]]), [1.0], (3, 2, 50_000, 4))
    with pytest.raises(gerd.StorageError, match=r"frames of 50000×4 pixels; allowed: up to 32768×32768"):
        read_original(saved(tmp_path, [far, PLACES]))
    edge = torch.sparse_coo_tensor(torch.tensor([[2], [0], [2**15 - 1], [0]]), [1.0], (3, 2, 2**15, 4))
    path, most = saved(tmp_path, [edge, PLACES]), (2**63 - 1) // 3
    assert read_original(path, step_us=most).events.tolist() == [(2**15 - 1, 0, 2 * most, False)]
    with pytest.raises(
        gerd.GerdError, match=rf"step_us {most + 1}: allowed: a whole number from 1 to {most} for the 3 st"
    ):
        read_original(path, step_us=most + 1)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_plain_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / "a.dat")
    else:
        (tmp_path / "a.dat").symlink_to("/dev/zero")
    with pytest.raises(gerd.StorageError, match="cannot be read: it is not a plain file"):
        read_original(tmp_path / "a.dat")

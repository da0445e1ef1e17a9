"""EVT2, EVT3 and DAT: read back by a decoder from their description, and by three libraries that did not write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.prophesee import READERS, data_of, evt3_by_its_definition

import gerd
from gerd.exchange import prophesee
from gerd.exchange.formats import write_events
from gerd.recording.events import EVENT_DTYPE

SENSORS = ((1280, 720), (128, 96), (640, 480), (2048, 2048), (16, 16))
SPANS = (5_000, 10_000, 1_000_000, 20_000_000, 60_000_000)  # microseconds; the clock of EVT3 wraps after 16.8 s


def random_events(draws: np.random.Generator) -> tuple[Any, int, int]:
    """Some events of a sensor: with a silent start, pauses, whole milliseconds, or none at all."""
    width, height = SENSORS[draws.integers(len(SENSORS))]
    number, span = int(draws.integers(0, 300)), SPANS[draws.integers(len(SPANS))]
    start = int(draws.integers(0, 60_000_000)) if draws.random() < 0.5 else 0
    events = np.zeros(number, EVENT_DTYPE)
    t = start + draws.integers(0, span, number)
    events["t"] = np.sort(t // 1000 * 1000 if draws.random() < 0.5 else t)
    events["x"], events["y"] = draws.integers(0, width, number), draws.integers(0, height, number)
    events["p"] = draws.integers(0, 2, number)
    return events, width, height


def assert_every_reader_agrees(events: Any, width: int, height: int, folder: Path) -> None:
    for format, readers in READERS.items():
        path = folder / f"events.{'dat' if format == 'dat' else 'raw'}"
        path.unlink(missing_ok=True)
        write_events(path, events, width=width, height=height, format=format)
        assert format == "dat" or not data_of(path).startswith(b"%")  # with which one of the readers would never end
        for number, read in enumerate(readers):
            for name, column in zip("txyp", read(path), strict=True):
                wanted = events[name].astype(np.int64)
                assert np.array_equal(np.asarray(column).astype(np.int64), wanted), (format, number, name)


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.long)])
def test_any_recording(count: int, tmp_path: Path) -> None:
    draws = np.random.default_rng(count)
    for _ in range(count):
        assert_every_reader_agrees(*random_events(draws), tmp_path)


def test_a_recording_of_a_config(tmp_path: Path) -> None:
    recording = gerd.simulate(gerd.load(Path(__file__).parents[2] / "configs" / "bouncing.yaml"))
    assert len(recording) == 8542
    assert_every_reader_agrees(recording.events, recording.width, recording.height, tmp_path)


@pytest.mark.parametrize("start", [0x25 << 6, (0x25 << 6) + 63, 0x25 << 12, 0x2025 << 6])
def test_the_data_never_begins_with_a_percent_sign(start: int, tmp_path: Path) -> None:
    """It would be taken for a line of the header: by some readers in spite of `% end`, and one waits without end."""
    events = np.zeros(3, EVENT_DTYPE)
    events["t"] = start, start + 70, start + 900
    for encoded in (prophesee.evt2, prophesee.evt3):
        assert not encoded(events, 64, 48).partition(b"% end\n")[2].startswith(b"%")
    assert_every_reader_agrees(events, 64, 48, tmp_path)


def test_a_pause_of_any_length_is_counted(tmp_path: Path) -> None:
    """Also one of many laps of EVT3's clock."""
    events = np.zeros(4, EVENT_DTYPE)
    events["t"] = 7, 16_777_216, 5 * 16_777_216 + 3, 400_000_000
    assert_every_reader_agrees(events, 64, 48, tmp_path)


def test_evt3_has_no_vector_words(tmp_path: Path) -> None:
    """The sensor maker's decoder drops those that are not whole triples, and a row of neighbours invites them."""
    events = np.zeros(40, EVENT_DTYPE)
    events["x"] = np.arange(40)
    write_events(tmp_path / "a.raw", events, width=64, height=48, format="evt3")
    kinds = set((np.frombuffer(data_of(tmp_path / "a.raw"), "<u2") >> 12).tolist())
    assert kinds == {0x8, 0x6, 0x0, 0x2}


def test_the_decoder_drops_what_is_no_whole_triple(tmp_path: Path) -> None:
    """What the triple rule does to files with lone vector words: the check above could not fail without it."""
    header = prophesee.evt3(np.zeros(0, EVENT_DTYPE), 64, 48)
    words = [0x6005, 0x0003, 0x2807, 0x3010, 0x4FFF, 0x4001, 0x5002, 0x3010, 0x50FF]
    path = tmp_path / "a.raw"
    path.write_bytes(header + np.array(words, "<u2").tobytes())
    t, x, y, p = evt3_by_its_definition(path)
    assert x.tolist() == [7, *range(16, 28), 28, 41]
    assert set(t.tolist()) == {5}
    assert set(y.tolist()) == {3}
    assert p.tolist() == [1, *[0] * 14]

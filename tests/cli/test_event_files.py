"""Commands that take files of events: their own answers, held against the events that were written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import gerd
from gerd.cli.app import app
from gerd.recording.events import EVENT_DTYPE

WIDTH, HEIGHT = 20, 10


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Five events in a file that tells the size of its frame."""
    rows = [(3, 4, 1500, 1), (2, 0, 2900, 0), (3, 4, 2900, 0), (19, 9, 11_000, 1), (3, 4, 501_499, 1)]
    path = tmp_path / "five.raw"
    gerd.write_events(path, np.array(rows, EVENT_DTYPE), width=WIDTH, height=HEIGHT, format="evt3")
    return path


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def refused(*words: Any) -> str:
    result = run(*words)
    assert isinstance(result.exception, gerd.GerdError), result.output
    return str(result.exception)


def test_info_counts_what_is_in_the_file(written: Path) -> None:
    said = run("info", written).stdout
    assert "evt3, " in said
    assert f"frame       {WIDTH}×{HEIGHT}" in said
    assert "events      5: 3 ON, 2 OFF" in said
    assert "time        1500 to 501499 µs: 500 ms, 10 events/s" in said
    assert "pixels      197 of 200 silent; most events, 3, at x 3, y 4" in said
    assert "dropped" not in said


def test_info_of_a_part_and_of_a_file_without_events(written: Path, tmp_path: Path) -> None:
    assert (
        "events      2: 0 ON, 2 OFF"
        in run("info", written, "--read", "start_us=2000", "--read", "stop_us=11000").stdout
    )
    empty = tmp_path / "none.raw"
    gerd.write_events(empty, np.empty(0, EVENT_DTYPE), width=WIDTH, height=HEIGHT, format="evt2")
    said = run("info", empty).stdout
    assert "events      0: 0 ON, 0 OFF" in said
    assert "time" not in said


def test_info_of_a_damaged_file_says_where_or_what_it_has_dropped(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("t,x,y,p\n100,3,4,1\n50,3,4,0\n200,30,4,0\n300,1,1,1\n")
    assert "event 1 at x 3, y 4, t 50 µs is earlier than an event before it" in refused(
        "info", path, "--read", "size=20x40"
    )
    said = run("info", path, "--read", "size=20x40", "--read", "repair=true").stdout
    assert "events      2: 2 ON, 0 OFF" in said
    assert "dropped     1 events outside of the frame" in said
    assert "dropped     1 events out of order" in said


def test_a_file_is_written_in_another_format(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "five.csv"
    assert run("export", written, out, "--format", "csv").exit_code == 0
    assert out.read_text() == "t,x,y,p\n1500,3,4,1\n2900,2,0,0\n2900,3,4,0\n11000,19,9,1\n501499,3,4,1\n"
    assert "exists already" in refused("export", written, out, "--format", "csv")
    named = tmp_path / "named.csv"
    assert run("export", written, named).exit_code == 0
    assert named.read_bytes() == out.read_bytes()
    assert "allowed: a name that ends with .raw" in refused("export", written, tmp_path / "named.xyz")


def test_a_file_is_played(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "sent.csv"
    assert run("play", written, "--to", out, "--speed", "inf").exit_code == 0
    assert out.read_text() == "t,x,y,p\n1500,3,4,1\n2900,2,0,0\n2900,3,4,0\n11000,19,9,1\n501499,3,4,1\n"


@pytest.mark.parametrize("ending", ["png", "gif", "html"])
def test_a_file_is_shown(written: Path, tmp_path: Path, ending: str) -> None:
    by_command, by_function = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    assert "5 events" in run("render", written, by_command, "--stop", 12).stdout
    gerd.render(written, by_function, stop=12)
    assert len(by_command.read_bytes()) > 300
    if ending == "gif":
        assert by_command.read_bytes() == by_function.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["info", "FILE", "--read", "size=2x"], "--read 'size=2x': allowed: size=WIDTHxHEIGHT"),
        (["info", "FILE", "--read", "sise=2x2"], "allowed: NAME=VALUE once for each of size, step_us"),
        (["info", "FILE", "--read", "row=1", "--read", "row=2"], "allowed: NAME=VALUE once"),
        (["info", "FILE", "--read", "step_us=0"], "step_us"),
        (["render", "FILE", "OUT.gif", "--member", "1"], "--member: .* is a file of events"),
        (["render", "FILE", "OUT.gif", "--set", "steps=3"], "--set: .* is a file of events"),
        (["render", "FILE", "OUT.png", "--kind", "parameters"], "needs ground truth"),
        (["export", "FILE", "OUT.csv", "--format", "csv", "--causes"], "--causes: .* is a file of events"),
        (["export", "FILE", "OUT", "--format", "frames"], "allowed: evt2"),
        (["play", "FILE", "--truth", "OUT"], "has no ground truth"),
        (["check", "FILE"], "is a file of events; allowed: a config"),
        (["generate", "FILE", "OUT"], "is a file of events; allowed: a config"),
        (["render", "CONFIG", "OUT.gif", "--read", "size=3x3"], "--read size=3x3: goes with a file of events"),
    ],
)
def test_what_does_not_go_with_a_file_of_events(written: Path, tmp_path: Path, words: list[str], message: str) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("steps: 3\nactors: [{shape: circle}]\n")
    places = {"FILE": str(written), "CONFIG": str(config)}
    given = [places.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in words]
    with pytest.raises(gerd.GerdError, match=message):
        raise gerd.GerdError(refused(*given))
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(("start", "says"), [(b"#!AER-DAT2.0\r\n", "older version"), (b"#ROSBAG V2.0\n", "ROS bag")])
def test_files_that_are_known_and_not_read_say_why(tmp_path: Path, start: bytes, says: str) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(start + bytes(100))
    assert says in refused("info", path)

"""Playing: what is sent, when, and to whom; the receivers are other people's programs where there are any."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import processes
from support.processes import DEADLINE, errors_of, wait_for
from support.scenes import actor, config

import gerd
from gerd.exchange import live
from gerd.exchange.live import BINARY_DTYPE, Pace, Pipe, send, windows_of

SMALL = """
seed: 4
sensor: {width: 30, height: 20}
steps: 12
step_us: 2000
noise: {background: 0.02}
actors: [{shape: circle, scale: {start: 8}, translation: {velocity: [1, 0.5], acceleration: 0}}]
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path / "small.yaml"


def csv(text: str) -> Any:
    header, *lines = text.splitlines()
    assert header == "t,x,y,p"
    return np.array([line.split(",") for line in lines], np.int64).reshape(-1, 4)


def rows(events: Any, after: int = 0) -> Any:
    return np.stack([events["t"] + after, events["x"], events["y"], events["p"]], axis=1).astype(np.int64)


# The pace, with a clock of our own


class Time:
    """A clock that moves only when somebody sleeps, or when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.said: list[str] = []

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def pace(self, speed: float = 1.0) -> Pace:
        return Pace(speed, self.said.append, now=lambda: self.now, sleep=self.sleep)


class Log:
    """Receives events; each costs some time."""

    at_once: int | None = None

    def __init__(self, time: Time, cost: float = 0.0):
        self.time, self.cost, self.got = time, cost, []  # type: ignore[var-annotated]

    def send(self, events: Any) -> None:
        self.got.append((self.time.now - 100.0, events))
        self.time.now += self.cost


def played(recording: gerd.Recording, log: Any, pace: Pace, **options: Any) -> int:
    return sum(events for _, events in live.play(windows_of(recording, **options), log, pace))


@pytest.fixture
def recording() -> gerd.Recording:
    return gerd.simulate(gerd.parse(SMALL))


@pytest.mark.parametrize("speed", [0.25, 1.0, 2.0])
def test_events_come_at_their_time(speed: float, recording: gerd.Recording) -> None:
    time = Time()
    log = Log(time)
    assert played(recording, log, time.pace(speed)) == len(recording)
    assert len(log.got) == recording.steps
    for when, events in log.got:
        assert np.allclose(events["t"] / 1e6 / speed, when)
    assert np.array_equal(np.concatenate([events for _, events in log.got]), recording.events)
    assert not time.said


def test_steps_shorter_than_a_millisecond_are_sent_together_and_none_too_early() -> None:
    recording = gerd.simulate(gerd.parse(SMALL, overrides=["step_us=30", "steps=100"]))
    time = Time()
    log = Log(time)
    played(recording, log, time.pace())
    assert len(log.got) == math.ceil(100 / 34)
    for when, events in log.got:
        late = when + 33 * 30 / 1e6 - events["t"] / 1e6  # the clock starts with the first piece
        assert (late > -1e-9).all()
        assert (late < 0.0011).all()


def test_many_events_for_a_receiver_that_takes_few_are_spread_over_the_step(recording: gerd.Recording) -> None:
    time = Time()
    log = Log(time)
    log.at_once = 5
    played(recording, log, time.pace())
    assert max(len(events) for _, events in log.got) <= 5
    pieces = [(when, events["t"][0] / 1e6) for when, events in log.got if len(events)]
    assert all(0 <= when - t + 1e-9 < 0.002 for when, t in pieces)
    assert len({when for when, _ in pieces}) > recording.steps


EXACT_SMALL = ["timing=exact", "step_us=20000"]


@pytest.mark.parametrize("speed", [0.05, 1.0, 20.0])
def test_exact_events_come_at_their_own_time(speed: float) -> None:
    """Never early, and in pieces of at most a millisecond of real time, not a burst for each step of 20 ms."""
    recording = gerd.simulate(gerd.parse(SMALL, overrides=EXACT_SMALL))
    time = Time()
    log = Log(time)
    assert played(recording, log, time.pace(speed)) == len(recording) > 200
    for when, events in log.got:
        late = when - events["t"] / 1e6 / speed
        assert (late > -1e-9).all()
        assert (late < 0.001 + 1e-9).all()
    assert np.array_equal(np.concatenate([events for _, events in log.got]), recording.events)
    sent = sum(len(events) > 0 for _, events in log.got)
    most = math.ceil(recording.steps * 20 / speed)  # milliseconds of real time
    assert min(recording.steps - 1, most) <= sent <= most
    if speed == 0.05:
        assert sent > 10 * recording.steps
    assert log.got[-1][0] == pytest.approx(11 * 0.02 / speed)
    assert not time.said


def test_exact_events_for_a_receiver_that_takes_few() -> None:
    recording = gerd.simulate(gerd.parse(SMALL, overrides=EXACT_SMALL))
    time = Time()
    log = Log(time)
    log.at_once = 3
    played(recording, log, time.pace(20.0))
    assert max(len(events) for _, events in log.got) == 3
    for when, events in log.got:
        assert not len(events) or when == pytest.approx(events["t"][-1] / 1e6 / 20)
    assert np.array_equal(np.concatenate([events for _, events in log.got]), recording.events)


def test_exact_windows_go_on_in_time_and_their_truth_comes_when_a_step_is_over() -> None:
    source = gerd.parse(SMALL, overrides=EXACT_SMALL)
    recording = gerd.simulate(source)
    time = Time()
    log = Log(time)
    told: list[tuple[float, int]] = []

    def record(data: bytes) -> None:
        told.extend((time.now - 100.0, line["t"]) for line in map(json.loads, data.splitlines()) if "step" in line)

    windows = (window for window, _ in zip(windows_of(source, loop=True, window_us=60_000), range(8), strict=False))
    sending = live.play(windows, log, time.pace(), record)
    assert sum(events for _, events in sending) == 2 * len(recording)
    wanted = np.concatenate([rows(recording.events), rows(recording.events, 12 * 20_000)])
    assert np.array_equal(np.concatenate([rows(events) for _, events in log.got]), wanted)
    assert [when for when, _ in told] == pytest.approx([t / 1e6 for _, t in told])
    assert [t for _, t in told] == list(range(0, 24 * 20_000, 20_000))
    assert not time.said


def test_a_slow_receiver_is_reported_and_gets_no_burst(recording: gerd.Recording) -> None:
    """Each step takes 0.3 s instead of 2 ms: the clock is put back each time, and nothing is left out."""
    time = Time()
    log = Log(time, cost=0.3)
    pace = time.pace()
    assert played(recording, log, pace) == len(recording)
    gaps = np.diff([when for when, _ in log.got])
    assert np.allclose(gaps, 0.3)
    assert len(time.said) == recording.steps - 1
    assert time.said[0] == "at t = 0.002 s: 0.30 s behind real time; going on from there"
    assert pace.behind == pytest.approx(11 * 0.298)


def test_small_delays_are_made_up_for(recording: gerd.Recording) -> None:
    time = Time()
    log = Log(time)
    pace = time.pace()
    sent = live.play(windows_of(recording), log, pace)
    next(sent)
    time.now += 0.009
    list(sent)
    assert log.got[-1][0] == pytest.approx(11 * 0.002)
    assert (pace.behind, time.said) == (0, [])


def test_windows_are_made_no_more_than_two_ahead(recording: gerd.Recording) -> None:
    made: list[int] = []

    def windows() -> Iterator[gerd.Recording]:
        for window in windows_of(recording, loop=True):
            made.append(window.first)
            yield window

    sent = live.play(windows(), Log(Time()), Time().pace(math.inf))
    for k in range(5):
        next(sent)
        wait_for(lambda k=k: len(made) > k + live.WINDOWS_AHEAD, "windows to be made ahead")
        assert len(made) == k + 1 + live.WINDOWS_AHEAD


def test_an_error_in_the_simulation_arrives(recording: gerd.Recording) -> None:
    def windows() -> Iterator[gerd.Recording]:
        yield recording
        raise gerd.GerdError("broken")

    with pytest.raises(gerd.GerdError, match="broken"):
        list(live.play(windows(), Log(Time()), Time().pace(math.inf)))


# What to play


def test_a_loop_goes_on_in_time(recording: gerd.Recording) -> None:
    first, second, third = (window for window, _ in zip(windows_of(recording, loop=True), range(3), strict=False))
    assert np.array_equal(first.events, recording.events)
    for k, window in ((1, second), (2, third)):
        assert np.array_equal(rows(window.events), rows(recording.events, k * 12 * 2000))


@pytest.mark.parametrize("loop", [False, True])
def test_a_config_is_simulated_in_windows(loop: bool, recording: gerd.Recording) -> None:
    windows = windows_of(gerd.parse(SMALL), loop=loop, window_us=10_000)
    wanted = [recording.events] + [recording.events] * loop
    for k, events in enumerate(wanted):
        parts = [next(windows) for _ in range(3)]
        assert [window.steps for window in parts] == [5, 5, 2]
        found = np.concatenate([rows(window.events) for window in parts])
        assert np.array_equal(found, rows(events, k * 12 * 2000))
    assert loop or next(windows, None) is None


def test_an_endless_simulation_goes_on_where_the_recording_ends() -> None:
    longer = gerd.simulate(gerd.parse(SMALL, overrides=["steps=150"]))
    windows = windows_of(gerd.parse(SMALL), endless=True)
    found = np.concatenate([rows(next(windows).events) for _ in range(3)])
    assert np.array_equal(found, rows(longer.events))


# To files and pipes


def test_csv_and_binary_files_and_their_truth(small: Path, tmp_path: Path, recording: gerd.Recording) -> None:
    source = gerd.load(small)
    sent = send(source, str(tmp_path / "a.csv"), speed=math.inf, truth_to=str(tmp_path / "a.jsonl"))
    assert (sent.events, sent.steps, sent.behind) == (len(recording), 12, 0)
    assert np.array_equal(csv((tmp_path / "a.csv").read_text()), rows(recording.events))
    send(source, str(tmp_path / "a.bin"), format="binary", speed=math.inf)
    assert (tmp_path / "a.bin").stat().st_size == 13 * len(recording)
    found = np.frombuffer((tmp_path / "a.bin").read_bytes(), BINARY_DTYPE)
    assert np.array_equal(rows(found), rows(recording.events))
    about, *lines = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert about["width"] == 30
    assert [line["t"] for line in lines] == list(range(0, 24_000, 2000))
    assert [line["actors"][0]["x"] for line in lines] == recording.positions[:, 0, 0].tolist()
    assert [line["first_event"] for line in lines] == np.searchsorted(
        recording.events["t"], range(0, 24_000, 2000)
    ).tolist()


def test_truth_counts_events_over_windows_and_rounds(small: Path, recording: gerd.Recording) -> None:
    lines: list[str] = []
    sink = Pipe(os.open(os.devnull, os.O_WRONLY), "csv")
    windows = windows_of(gerd.load(small), loop=True, window_us=10_000)
    sending = live.play(windows, sink, Time().pace(math.inf), lambda data: lines.append(data.decode()))
    for _, _ in zip(range(6), sending, strict=False):
        pass
    os.close(sink.descriptor)
    found = [json.loads(line) for line in "".join(lines).splitlines()[1:]]
    assert [line["step"] for line in found] == list(range(24))
    counts = np.bincount(recording.events["t"] // 2000, minlength=12).tolist() * 2
    assert [line["events"] for line in found] == counts
    assert [line["first_event"] for line in found] == [sum(counts[:i]) for i in range(24)]


def test_a_dataset_to_standard_output(small: Path, tmp_path: Path) -> None:
    gerd.generate(gerd.load(small), tmp_path / "data", 2, workers=1)
    process = processes.start(tmp_path, "play", "data", "--index", "1", "--speed", "inf")
    sent, said = process.communicate(timeout=DEADLINE)
    second = gerd.simulate(gerd.load(small), 1)
    assert np.array_equal(csv(sent), rows(second.events))
    assert f"sent {len(second)} events of 12 steps" in said


def test_a_closed_pipe_is_not_an_error(small: Path) -> None:
    reading, writing = os.pipe()
    process = processes.start(small.parent, "play", str(small), "--endless", "--speed", "inf", stdout=writing)
    os.close(writing)
    with open(reading) as pipe:
        assert pipe.readline() == "t,x,y,p\n"
    assert errors_of(process) == []


def test_ctrl_c_ends_it_and_what_was_sent_is_whole(small: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events")
    process = processes.start(tmp_path, "play", str(small), "--endless", "--to", "events", "--truth", "truth")
    with open(tmp_path / "events") as pipe:
        lines = [pipe.readline() for _ in range(300)]
        process.send_signal(signal.SIGINT)
        lines += pipe.readlines()
    assert errors_of(process) == []
    got = csv("".join(lines))
    longer = gerd.simulate(gerd.parse(SMALL, overrides=[f"steps={got[-1, 0] // 2000 + 2}"]))
    assert np.array_equal(got, rows(longer.events)[: len(got)])
    for line in (tmp_path / "truth").read_text().splitlines():
        json.loads(line)


# Over UDP


def listening(port: int) -> bool:
    """Whether a program has bound the port, as Linux lists it."""
    text = Path("/proc/net/udp").read_text() + Path("/proc/net/udp6").read_text()
    return f":{port:04X} " in text


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


RECEIVER = """
import sys, time
import aestream, numpy as np

width, height, port, wanted = map(int, sys.argv[1:])
total = np.zeros((width, height))
with aestream.UDPInput((width, height), device="cpu", port=port) as stream:
    end = time.monotonic() + 200
    while total.sum() < wanted and time.monotonic() < end:
        time.sleep(0.01)
        total += np.asarray(stream.read())
sys.stdout.buffer.write(total.astype("<i8").tobytes())
sys.stdout.flush()
import os; os._exit(0)  # the receiving thread does not end by itself
"""


@pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="needs Linux to see that the receiver listens")
def test_aestream_receives_every_event() -> None:
    """At about 50 000 events per second; AEStream counts events per pixel and drops polarity and time."""
    chosen = config(
        actor("square", at=[30, 24], size=20.0), width=64, height=48, steps=400, noise={"background": 0.016}
    )
    recording, port = gerd.simulate(chosen), free_port()
    command = [sys.executable, "-c", RECEIVER, "64", "48", str(port), str(len(recording))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        wait_for(lambda: process.poll() is not None or listening(port), "the receiver")
        sent = send(recording, f"udp://127.0.0.1:{port}")
        assert process.stdout is not None
        counted = np.frombuffer(process.stdout.read(), "<i8").reshape(64, 48)
    assert sent.events == len(recording) > 15_000
    wanted = np.zeros((64, 48), np.int64)
    np.add.at(wanted, (recording.events["x"], recording.events["y"]), 1)
    assert np.array_equal(counted, wanted)


def test_packets_have_the_published_layout() -> None:
    recording = gerd.simulate(gerd.parse(SMALL, overrides=["noise.background=0.5", "steps=5"]))
    assert len(recording) > 5 * 128  # more than a packet holds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        send(recording, f"udp://localhost:{receiver.getsockname()[1]}")
        found, got = [], 0
        while got < len(recording):
            packet = receiver.recv(65536)
            assert len(packet) <= 512
            for low, high in np.frombuffer(packet, "<u2").reshape(-1, 2).tolist():
                assert high & 0x8000  # no time follows
                found.append((high & 0x7FFF, low & 0x7FFF, low >> 15))
            got = len(found)
    assert np.array_equal(np.array(found), rows(recording.events)[:, 1:])


def test_faery_receives_binary_packets(recording: gerd.Recording) -> None:
    import faery

    port, got = free_port(), []
    stream = iter(faery.events_stream_from_udp((30, 20), ("127.0.0.1", port)))

    def receive() -> None:
        while sum(map(len, got)) < len(recording):
            got.append(next(stream).copy())

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    wait_for(lambda: listening(port), "the receiver")
    send(recording, f"udp://127.0.0.1:{port}", format="binary")
    thread.join(30)
    found = np.concatenate(got)
    assert np.array_equal(np.stack([found[name] for name in ("t", "x", "y", "on")], 1), rows(recording.events))


# Mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0.0}, "speed 0: allowed: a number from 1e-06 on, or inf"),
        ({"speed": math.nan}, "speed nan: allowed"),
        ({"endless": True}, "endless goes with a config and without loop"),
        ({"to": "-", "truth_to": "-"}, "cannot go to the same place"),
        ({"format": "aestream"}, "format 'aestream' to .*: allowed: csv, binary; aestream goes with udp://"),
        ({"format": "json"}, "format 'json'"),
        ({"to": "udp://127.0.0.1:99999"}, r"allowed: udp://HOST:PORT with a port from 1 to 65535"),
        ({"to": "udp://"}, r"allowed: udp://HOST:PORT"),
        ({"to": "udp://nowhere.invalid:3333"}, "there is no such host"),
        ({"to": "udp://127.0.0.1:3333", "format": "csv"}, "allowed: aestream, binary"),
        ({"to": "no/such/folder"}, "no/such/folder: cannot be written: No such file"),
        ({"truth_to": "/dev/full", "speed": math.inf}, "/dev/full: cannot be written: No space left on device"),
        ({"speed": 1e-300}, "speed 1e-300: allowed: a number from 1e-06 on, or inf"),
        ({"truth_to": "no/such/folder"}, "no/such/folder: cannot be written: No such file"),
        ({"to": __file__}, "exists already; give another name"),
    ],
)
def test_mistakes_are_explained(options: dict[str, Any], message: str, recording: gerd.Recording) -> None:
    with pytest.raises(gerd.GerdError, match=message):
        send(recording, **{"to": os.devnull, **options})


def test_binary_to_a_terminal_is_refused(recording: gerd.Recording) -> None:
    master, terminal = os.openpty()
    try:
        with pytest.raises(gerd.GerdError, match="binary events would go to the terminal"):
            send(recording, os.ttyname(terminal), format="binary")
    finally:
        os.close(master)
        os.close(terminal)


def test_the_port_of_aestream_is_the_default() -> None:
    said: list[str] = []
    for address in ("udp://127.0.0.1", "udp://127.0.0.1:3333"):
        with live.opened(address, None, said.append) as sink:
            assert isinstance(sink, live.Udp)
            assert sink.address[1] == 3333
    assert said == ["udp://127.0.0.1: has no port; sending to 3333, at which AEStream listens"]

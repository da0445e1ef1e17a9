"""Recordings sent in real time: windows of steps in, events out at the pace of `step_us`, with their ground truth.

Events go to standard output, a file or a pipe as csv or binary, or over UDP as binary or as AEStream takes them (SPIF
without times); docs/formats.md has these formats. An event is sent when its time has come, never before, and no
more than TICK of real time later; in step timing the events of a step have one time. Memory stays bounded: windows are
simulated at most two ahead, and a receiver that does not read makes the sender wait. When sending falls behind by more
than LATE, this is reported, and all later events are sent that much later: they come at their pace and not all at once.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gerd.config.config import Config
from gerd.errors import GerdError, counted
from gerd.exchange import truth_lines
from gerd.exchange.formats import CSV_HEADER, csv_lines
from gerd.recording.events import Events, Structured
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_chunks

LATE = 0.25  # seconds
SLOWEST = 1e-6  # a microsecond of the recording in a second
TICK = 1_000  # microseconds of real time: what comes within it is sent together
WINDOW_US = 100_000  # microseconds that are simulated at a time
LARGEST_WINDOW = 4096  # steps
WINDOWS_AHEAD = 2
BURST = 16  # packets sent at once
AESTREAM_PORT = 3333
LONGEST_SHOWN = 80  # characters of a receiver in messages

BINARY_DTYPE = np.dtype([("t", "<u8"), ("x", "<u2"), ("y", "<u2"), ("p", "u1")])


@dataclass
class Pace:
    """Waits until it is time for an event; recorded time runs `speed` times as fast as real time."""

    speed: float
    report: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    began: float | None = None  # when `wait` was called first
    behind: float = 0.0  # seconds of all delays together
    _zero: float = field(default=0.0, repr=False)  # when t = 0 was, or would have been

    def wait(self, t: float) -> None:
        """Return at the time of an event at `t` microseconds, or at once if it is past."""
        now = self.now()
        since_zero = t / 1e6 / self.speed
        if self.began is None:
            self.began = now
            self._zero = now - since_zero
        early = self._zero + since_zero - now
        if early > 0:
            self.sleep(early)
        elif early < -LATE and self.speed != math.inf:
            self._zero -= early
            self.behind -= early
            self.report(f"at t = {t / 1e6:.3f} s: {-early:.2f} s behind real time; going on from there")


@dataclass(frozen=True)
class Pipe:
    """A file descriptor: standard output, a file or a named pipe. Nothing is buffered."""

    descriptor: int
    format: str
    at_once: int | None = None  # how many events may be sent together

    def send(self, events: Structured) -> None:
        self.write(csv_lines(events) if self.format == "csv" else binary(events))

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self.descriptor, left) :]


@dataclass(frozen=True)
class Udp:
    """Packets to a host and a port; whether they arrive is not known."""

    socket: socket.socket
    address: tuple[str | int | bytes, ...]  # as the system writes it
    encode: Callable[[Structured], bytes]
    in_packet: int  # events

    @property
    def at_once(self) -> int:
        return BURST * self.in_packet

    def send(self, events: Structured) -> None:
        for start in range(0, len(events), self.in_packet):
            self.socket.sendto(self.encode(events[start : start + self.in_packet]), self.address)


def binary(events: Structured) -> bytes:
    result = np.empty(len(events), BINARY_DTYPE)
    for name in BINARY_DTYPE.fields or ():
        result[name] = events[name]
    return result.tobytes()


def aestream(events: Structured) -> bytes:
    x, y, p = (events[name].astype(np.uint32) for name in "xyp")
    return ((x | 0x8000) << 16 | p << 15 | y).astype("<u4").tobytes()


# How events are put into packets, and how many: AEStream reads 512 bytes; 1300 bytes fit into an Ethernet frame.
PACKETS = {"aestream": (aestream, 512 // 4), "binary": (binary, 1300 // BINARY_DTYPE.itemsize)}


def opened(to: str, format: str | None, report: Callable[[str], None]) -> AbstractContextManager[Pipe | Udp]:
    """The receiver that `to` names: `-` for standard output, `udp://HOST:PORT`, or a file or pipe."""
    if to.startswith("udp://"):
        return _udp(to, format or "aestream", report)
    if "://" in to:
        raise GerdError(f"{_cut(to)}: allowed: udp://HOST:PORT, - for standard output, or the path of a file or a pipe")
    if format not in (None, "csv", "binary"):
        raise GerdError(f"format {format!r} to {to}: allowed: csv, binary; aestream goes with udp://")
    return _pipe(to, format or "csv")


@contextmanager
def _udp(to: str, format: str, report: Callable[[str], None]) -> Iterator[Udp]:
    if format not in PACKETS:
        raise GerdError(f"format {format!r} to {to}: allowed: {', '.join(PACKETS)}")
    host, _, port = to.removeprefix("udp://").rstrip("/").rpartition(":")
    if not host and not port.isdecimal():
        host, port = port, str(AESTREAM_PORT)
        report(f"{to}: has no port; sending to {port}, at which AEStream listens")
    if not host or not re.fullmatch("0*[0-9]{1,5}", port) or not 0 < int(port[-5:]) < 2**16:
        raise GerdError(f"{_cut(to)}: allowed: udp://HOST:PORT with a port from 1 to {2**16 - 1}")
    try:
        name = host.strip("[]")
        family, kind, protocol, _, address = socket.getaddrinfo(name, int(port[-5:]), type=socket.SOCK_DGRAM)[0]
        opened = socket.socket(family, kind, protocol)
    except (OSError, ValueError) as error:  # ValueError: a name that no host can have
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise GerdError(f"{_cut(to)}: there is no such host: {reason}") from None
    with opened:
        yield Udp(opened, address, *PACKETS[format])


def _cut(to: str) -> str:
    """A receiver as it is named in messages."""
    return to if len(to) <= LONGEST_SHOWN else f"{to[: LONGEST_SHOWN - 1]}…"


@contextmanager
def _pipe(to: str, format: str) -> Iterator[Pipe]:
    """Standard output, an existing pipe or device, or a new file."""
    path = Path(to)
    try:
        new = not path.exists()
        if to != "-" and path.is_file():
            raise GerdError(f"{to}: exists already; give another name")
        flags = os.O_WRONLY | (os.O_CREAT | os.O_EXCL if new else 0)
        descriptor = os.dup(1) if to == "-" else os.open(path, flags, 0o666)
    except OSError as error:
        raise GerdError(f"{to}: cannot be written: {error.strerror or error}") from None
    try:
        if format == "binary" and os.isatty(descriptor):
            raise GerdError("binary events would go to the terminal; send them into a pipe or a file")
        yield Pipe(descriptor, format)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Sent:
    """What `send` has done."""

    steps: int
    events: int
    seconds: float
    behind: float  # seconds lost because receiver or simulation was too slow

    def __str__(self) -> str:
        rate = f"{self.events / self.seconds:.3g} events/s" if self.seconds else ""
        late = f"; {self.behind:.2f} s behind real time" if self.behind else ""
        count = f"{counted(self.events, 'event')} of {counted(self.steps, 'step')}"
        return f"sent {count} in {self.seconds:.3g} s ({rate}){late}"


def send(
    source: Config | Events,
    to: str,
    *,
    format: str | None = None,
    index: int = 0,
    speed: float = 1.0,
    loop: bool = False,
    endless: bool = False,
    truth_to: str | None = None,
    report: Callable[[str], None] = lambda message: None,
) -> Sent:
    """Send a recording in real time until it ends, the receiver closes its pipe, or Ctrl-C is pressed.

    `to` is `-` for standard output, `udp://HOST:PORT`, or a file or pipe; `truth_to` the same without UDP. `speed` 2 is
    twice as fast as real time, infinity as fast as the receiver reads. `report` is called with a message when sending
    falls behind, and with the port that was taken if `to` has none.
    """
    if not speed >= SLOWEST:
        raise GerdError(f"speed {speed:g}: allowed: a number from {SLOWEST:g} on, or inf")
    if endless and (loop or isinstance(source, Events)):
        why = "a recording has an end, at which loop starts anew"
        raise GerdError(f"endless goes with a config and without loop: {why}")
    if truth_to and isinstance(source, Events) and not isinstance(source, Recording):
        raise GerdError(f"{truth_to}: {source!r} has no ground truth to send")
    if to == truth_to:
        raise GerdError(f"{to}: events and ground truth cannot go to the same place")
    pace = Pace(speed, report)
    steps = events = 0
    with opened(to, format, report) as sink, _recorder(truth_to) if truth_to else nullcontext() as record:
        windows = windows_of(source, index, loop=loop, endless=endless, speed=speed)
        try:
            if isinstance(sink, Pipe) and sink.format == "csv":
                sink.write(CSV_HEADER)
            with closing(play(windows, sink, pace, record)) as sending:
                for more_steps, more_events in sending:
                    steps, events = steps + more_steps, events + more_events
        except (KeyboardInterrupt, BrokenPipeError):
            pass
        except OSError as error:
            raise GerdError(f"{to}: cannot be sent: {error.strerror or error}") from None
    seconds = 0.0 if pace.began is None else pace.now() - pace.began
    return Sent(steps, events, seconds, pace.behind)


@contextmanager
def _recorder(to: str) -> Iterator[Callable[[bytes], None]]:
    with _pipe(to, "truth") as pipe:

        def record(data: bytes) -> None:
            try:
                pipe.write(data)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise GerdError(f"{to}: cannot be written: {error.strerror or error}") from None

        yield record


def windows_of(
    source: Config | Events,
    index: int = 0,
    *,
    loop: bool = False,
    endless: bool = False,
    speed: float = 1.0,
    window_us: float = WINDOW_US,
) -> Iterator[Events]:
    """What to send: a recording once or, with `loop`, again and again; of a config with `endless`, without an end.

    The time goes on from one round to the next. A window takes about `window_us` microseconds to send.
    """
    length = source.steps if isinstance(source, Events) else source.in_steps.steps
    simulated_us = window_us * (speed if speed != math.inf else 1.0)
    chunk = max(1, round(min(LARGEST_WINDOW, simulated_us / source.step_us)))
    for number in itertools.count():
        once = [source] if isinstance(source, Events) else simulate_chunks(source, index, chunk=chunk, endless=endless)
        for window in once:
            yield replace(window, first=window.first + number * length)
        if not loop:
            return


def play(
    windows: Iterable[Events], sink: Pipe | Udp, pace: Pace, record: Callable[[bytes], None] | None = None
) -> Generator[tuple[int, int]]:
    """Send the events of each window at their time; yields the number of steps and of events sent.

    `record` is called with the ground truth: a line of JSON about the recording, then one for each step.
    """
    events_before = 0
    for number, window in enumerate(_ahead(windows)):
        events = window.events
        lines: Iterator[str] = iter(())
        if record is not None and isinstance(window, Recording):
            lines = truth_lines.lines(window, events_before)
            if number == 0:
                record(truth_lines.header(window).encode())
        exact = window.exact
        tick = TICK * pace.speed
        together = window.steps
        if pace.speed != math.inf:
            together = max(1, math.ceil(min(window.steps, tick / window.step_us)))
        for begin in range(0, window.steps, together):
            end = min(begin + together, window.steps)
            low, high = window.codec.bounds(window.keys, [begin, end])
            steps = range(window.first + begin, window.first + end)
            if exact:
                pieces = _timed(events[low:high], steps, window.step_us, tick, sink.at_once)
            else:
                pieces = _spread(events[low:high], steps, window.step_us, sink.at_once)
            for t, piece in pieces:
                pace.wait(t)
                sink.send(piece)
            if record is not None:
                record("".join(itertools.islice(lines, end - begin)).encode())
            yield end - begin, int(high - low)
        events_before += len(events)


def _spread(events: Structured, steps: range, step_us: int, at_once: int | None) -> Iterator[tuple[float, Structured]]:
    """In step timing: when to send which events of some steps. Too many at once are spread over the steps' duration."""
    count = max(1, len(events))
    piece = at_once or count
    last = (steps.stop - 1) * step_us
    for start in range(0, count, piece):
        yield last + len(steps) * step_us * start / count, events[start : start + piece]


def _timed(
    events: Structured, steps: range, step_us: int, tick: float, at_once: int | None
) -> Iterator[tuple[float, Structured]]:
    """In exact timing: when to send which events of some steps, those of `tick` microseconds together; then their end.

    A piece is sent at the time of its last event.
    """
    begin = (steps.start - 1) * step_us
    tick_of = (events["t"] - begin - 1) // max(1, tick)
    cuts = [0, *(np.flatnonzero(np.diff(tick_of)) + 1).tolist(), len(events)]
    for low, high in itertools.pairwise(cuts):
        piece = at_once or max(1, high - low)
        for start in range(low, high, piece):
            part = events[start : min(start + piece, high)]
            yield float(part["t"][-1]), part
    yield (steps.stop - 1) * step_us, events[:0]


def _ahead(windows: Iterable[Events]) -> Iterator[Events]:
    """These windows, made by a thread while earlier ones are sent."""
    source = iter(windows)
    thread = ThreadPoolExecutor(1)
    try:
        coming = deque(thread.submit(next, source, None) for _ in range(WINDOWS_AHEAD))
        while (window := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, source, None))
            yield window
    finally:
        thread.shutdown(wait=False, cancel_futures=True)

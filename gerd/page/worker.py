"""The process that makes what the page asks for: a question goes in, bytes or a `GerdError` come out.

It answers one question at a time, and is ended when nobody waits for the answer any more, when an answer takes longer
than its limit, and with the page. On Linux its addresses are limited: an answer that takes more memory than allowed is
refused. Whatever a question does to it, the page goes on: another such process is started. It has all kernels that a
question can need before it answers the first one: to compile them, where the package came without their machine code,
takes a minute once and is kept on the disk.
"""

from __future__ import annotations

import errno
import multiprocessing
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock

from gerd.config.document import PlainData
from gerd.errors import GerdError
from gerd.page.answers import Editor, Shelf
from gerd.storage.local import starting_workers
from gerd.surroundings import ignore_settings

Answer = dict[str, object] | bytes  # what there is to choose from, or a recording or a file

LOOK = 0.05  # seconds between two looks at whether an answer is still wanted


class GoneError(Exception):
    """Nobody waits for the answer."""


class Worker:
    """The process, and who is waiting for it; `close` ends both."""

    def __init__(self, content: Editor | Shelf):
        self.limits = content.limits
        self._content = content
        self._one_at_a_time = Lock()
        self._closed = Event()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._ready = False
        with starting_workers():
            self._process = context.Process(
                target=_serve, args=(theirs, self._content, self.limits.memory), daemon=True
            )
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        """The number of the process that answers now."""
        return self._process.pid

    def close(self) -> None:
        self._closed.set()
        self._process.kill()

    def ask(self, kind: str, question: PlainData = None, gone: Event | None = None) -> Answer:
        """What `content` has to say: its `start`, or the `recording`, `gif` or `html` of a question, as bytes.

        GoneError once the event `gone` is set.
        """
        gone = gone or Event()
        while not self._one_at_a_time.acquire(timeout=LOOK):
            self._look(gone)
        try:
            return self._answer(kind, question, gone)
        except (EOFError, OSError):
            if not self._closed.is_set():
                self._start()
            raise GerdError("the process that makes recordings has died, perhaps for lack of memory") from None
        finally:
            self._one_at_a_time.release()

    def _look(self, gone: Event) -> None:
        if gone.is_set() or self._closed.is_set():
            raise GoneError

    def _answer(self, kind: str, question: PlainData, gone: Event) -> Answer:
        asked = False
        begun = time.monotonic()
        try:
            while True:
                self._look(gone)
                if self._ready and not asked:
                    self._pipe.send((kind, question))
                    asked = True
                    begun = time.monotonic()
                if self._pipe.poll(LOOK):
                    answer = self._pipe.recv()
                    if asked:
                        break
                    self._ready = True
                elif asked and time.monotonic() - begun > self.limits.seconds:
                    advice = "take fewer steps, a smaller sensor, fewer actors, or outlines with fewer vertices"
                    raise GerdError(f"this takes more than {self.limits.seconds:g} seconds to make; {advice}")
        except (GoneError, GerdError):
            if asked and not self._closed.is_set():
                self._process.kill()
                self._start()
            raise
        if isinstance(answer, GerdError):
            raise answer
        return answer


def _serve(pipe: Connection, content: Editor | Shelf, memory: int) -> None:
    """In the process: answer until the page is gone."""
    ignore_settings()
    from gerd.config.config import Config
    from gerd.recording.simulate import simulate

    simulate(Config(actors=(), steps=1, timing="exact"))
    simulate(Config(actors=(), steps=1)).images()
    _limit(memory)
    try:
        pipe.send("ready")
        while True:
            kind, question = pipe.recv()
            pipe.send(_answered(content, kind, question))
    except (EOFError, OSError):
        return


def _limit(memory: int) -> None:
    """Let this process have so many more bytes of addresses; only Linux says how many it has."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, most))


def _answered(content: Editor | Shelf, kind: str, question: PlainData) -> Answer | GerdError:
    try:
        if kind == "start":
            return content.start()
        answers = {"recording": content.recording, "gif": content.gif, "html": content.html}
        return answers[kind](question)
    except GerdError as error:
        return error
    except (MemoryError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            raise
        return GerdError("there is not enough memory for this recording")

"""The process that makes what the page asks for: a question goes in, bytes or a `GerdError` come out.

It answers one question at a time, and is ended when nobody waits for the answer any more, when an answer takes longer
than MOST_SECONDS, and with the page. On Linux its addresses are limited: an answer that takes more memory than
MOST_MEMORY is refused. Whatever a question does to it, the page goes on: another such process is started.
Kernels that a question needs are compiled before its time runs, which takes a minute once and is kept on the disk.
"""

from __future__ import annotations

import errno
import multiprocessing
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any

from gerd.errors import GerdError
from gerd.page.answers import Editor, Shelf
from gerd.storage.local import starting_workers
from gerd.surroundings import ignore_settings

MOST_SECONDS = 20.0  # for one answer
MOST_MEMORY = 2**32  # bytes of addresses for all answers, beside what the process has when it is ready
LOOK = 0.05  # seconds between two looks at whether an answer is still wanted


class GoneError(Exception):
    """Nobody waits for the answer."""


class Worker:
    """The process, and who is waiting for it; `close` ends both."""

    def __init__(self, content: Editor | Shelf):
        self._content, self._one_at_a_time = content, Lock()
        self._closed = Event()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._ready, self._compiled = False, set[str]()
        with starting_workers():
            self._process = context.Process(target=_serve, args=(theirs, self._content, MOST_MEMORY), daemon=True)
            self._process.start()
        theirs.close()

    def close(self) -> None:
        self._closed.set()
        self._process.kill()

    def ask(self, kind: str, question: Any = None, gone: Event | None = None) -> Any:
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

    def _answer(self, kind: str, question: Any, gone: Event) -> Any:
        asked, begun = False, time.monotonic()
        try:
            while True:
                self._look(gone)
                if self._ready and not asked:
                    if missing := _kernels(question) - self._compiled:
                        self._pipe.send(("compile", missing))
                        self._ready, self._compiled = False, self._compiled | missing
                        continue
                    self._pipe.send((kind, question))
                    asked, begun = True, time.monotonic()
                if self._pipe.poll(LOOK):
                    answer = self._pipe.recv()
                    if asked:
                        break
                    self._ready = True
                elif asked and time.monotonic() - begun > MOST_SECONDS:
                    raise GerdError(
                        f"this takes more than {MOST_SECONDS:g} seconds to make; take fewer steps, a smaller sensor, "
                        "fewer actors, or outlines with fewer vertices"
                    )
        except (GoneError, GerdError):
            if asked and not self._closed.is_set():
                self._process.kill()
                self._start()
            raise
        if isinstance(answer, GerdError):
            raise answer
        return answer


def _kernels(question: Any) -> set[str]:
    """Which kernels a question may need beside those that every recording does."""
    words = repr(question)
    return {name for name, sign in (("exact", "exact"), ("images", "'brightness': True")) if sign in words}


def _serve(pipe: Any, content: Editor | Shelf, memory: int) -> None:
    """In the process: answer until the page is gone."""
    ignore_settings()
    from gerd.config.config import Config
    from gerd.recording.simulate import simulate

    simulate(Config(actors=(), steps=1))
    _limit(memory)
    try:
        pipe.send("ready")
        while True:
            kind, question = pipe.recv()
            if kind != "compile":
                pipe.send(_answered(content, kind, question))
                continue
            recording = simulate(Config(actors=(), steps=1, timing="exact" if "exact" in question else "step"))
            if "images" in question:
                recording.images()
            pipe.send("ready")
    except (EOFError, OSError):
        return


def _limit(memory: int) -> None:
    """Let this process have so many more bytes of addresses; only Linux says how many it has."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, most))


def _answered(content: Editor | Shelf, kind: str, question: Any) -> Any:
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

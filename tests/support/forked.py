"""Inputs that are tried in forked processes, so that a crash ends one of them and is counted; outcomes as words."""

from __future__ import annotations

import faulthandler
import io
import os
import random
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import Any

PATIENCE = 120  # seconds after which an input counts as hanging
MEMORY = 2**33  # bytes of addresses that such a process may have, PyTorch and all
BATCH = 200  # inputs that one process tries

Outcome = str  # what came of an input; one of FAULTS, or nothing to worry about
Attempt = Callable[[random.Random], Outcome]
FAULTS = ("crashed", "hung", "lost", "wrong", "greedy", "not a GerdError", "a request without an answer")


class Hung(BaseException):
    """An input takes too long; not an `Exception`, so that no code that it comes by takes it for one of its own."""


def tried(attempt: Attempt, seed: str) -> Outcome:
    """What comes of one input."""

    def hang(*_: Any) -> None:
        raise Hung

    signal.signal(signal.SIGALRM, hang)
    signal.alarm(PATIENCE)
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)  # where Python is not asked: that is a crash
    try:
        with redirect_stderr(io.StringIO()):
            return attempt(random.Random(seed))
    except (Exception, Hung) as error:
        print(f"{seed}: {''.join(traceback.format_exception(error)[-3:])}", file=sys.stderr)
        kinds = {Hung: "hung", AssertionError: "wrong"}
        return kinds.get(type(error), "not a GerdError")
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()


def in_processes(name: str, attempt: Attempt, number: int, seed: int) -> Counter[Outcome]:
    """The outcomes of many inputs, each from a generator of its own; what ends a process is a crash."""
    outcomes: Counter[Outcome] = Counter()
    first = 0
    while first < number:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            with open(writing, "w", buffering=1) as results:
                for i in range(first, min(first + BATCH, number)):
                    results.write(tried(attempt, f"{name} {seed} {i}") + "\n")
            os._exit(0)
        os.close(writing)
        with open(reading) as results:
            made = results.read().splitlines()
        os.waitpid(child, 0)
        outcomes.update(made)
        first += len(made)
        if len(made) < min(BATCH, number - first + len(made)):
            print(f"{name} {seed} {first}: crashed", file=sys.stderr)
            outcomes["crashed"] += 1
            first += 1
    return outcomes

"""How much one question of the page may ask for, and how long it may take: numbers that a server is started with."""

from __future__ import annotations

from dataclasses import dataclass

from gerd.config.document import LONGEST_TEXT


@dataclass(frozen=True)
class Limits:
    pixels: int = 2**28  # of all steps together, warm-up included: the page is to answer at once
    poses: int = 1_000_000  # actors · steps of the trajectory's own time
    steps: int = 10_000_000  # of one recording
    events: int = 4_000_000  # in one recording: a browser turns that many points
    seconds: float = 20.0  # for one answer
    memory: int = 2**32  # bytes of addresses for all answers, beside what the process has when it is ready
    question_bytes: int = LONGEST_TEXT + 2**16
    patience: float = 5.0  # seconds for a request to arrive
    taking: float = 60.0  # seconds for an answer to be taken


LIMITS = Limits()

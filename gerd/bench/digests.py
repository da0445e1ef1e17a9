"""What the data of a split are known by: a sha256 over events and ground truth, the same on every machine.

It does not depend on how GERD stores or numbers anything. For each recording, in the order of the indices, these bytes
are added, all numbers little-endian and without gaps:

1. the number of events, as a 64-bit integer;
2. for each event x and y as 16-bit integers, t in microseconds as a 64-bit one, p and the event's source as 8-bit ones;
3. the numbers of steps and of actors, as 64-bit integers;
4. the ground truth (steps, actors, 3, 6), as 64-bit floating-point numbers; a zero has no sign;
5. for each actor the number of its shape among those to choose from, as a 64-bit integer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np

from gerd.bench.frozen import FOLDER
from gerd.bench.split_table import Split
from gerd.calls import explained
from gerd.errors import GerdError
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate_batch

DIGESTS = "digests.json"
EVENT = np.dtype([("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "u1"), ("source", "u1")])
BATCH = 50  # recordings that are simulated at once

Progress = Callable[[int], None]  # is called with the number of recordings that have just been made


@explained
def digest(split: Split, device: str = "cpu", progress: Progress = lambda made: None) -> str:
    """The sha256 of the recordings of a split, all of which are made for it."""
    return digest_of(_simulated(split, device, progress))


def expected_digest(split: Split) -> str:
    """The digest that version 1 says a split has."""
    known = frozen_digests()
    if split.key not in known:
        raise GerdError(f"{split.key}: there is no digest of it in the package")
    return known[split.key]


def digest_of(recordings: Iterable[Recording]) -> str:
    """The sha256 of some recordings, in this order."""
    result = hashlib.sha256()
    for recording in recordings:
        result.update(_bytes(recording))
    return result.hexdigest()


@lru_cache
def frozen_digests() -> dict[str, str]:
    """The digest of each split, by its key."""
    file = FOLDER / DIGESTS
    known: dict[str, str] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return known


def _simulated(split: Split, device: str, progress: Progress) -> Iterator[Recording]:
    for first in range(0, split.count, BATCH):
        made = simulate_batch(split.config, range(first, min(first + BATCH, split.count)), device=device)
        yield from made
        progress(len(made))


def _bytes(recording: Recording) -> bytes:
    found = recording.events
    events = np.empty(len(found), EVENT)
    for name in "xytp":
        events[name] = found[name]
    events["source"] = recording.source
    truth = np.asarray(recording.truth, "<f8") + 0.0  # takes the sign from a zero
    parts = (
        np.array([len(events)], "<i8"),
        events,
        np.array(truth.shape[:2], "<i8"),
        truth.astype("<f8"),
        np.asarray(recording.shape, "<i8"),
    )
    return b"".join(part.tobytes() for part in parts)

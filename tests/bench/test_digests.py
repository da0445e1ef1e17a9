"""Digests: that they are over the bytes that are documented, and that the data of version 1 are what they were."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import gerd
from gerd.bench import Split
from gerd.bench.digests import digest_of
from gerd.bench.split_table import all_splits
from gerd.errors import GerdError

TASKS = gerd.bench.tasks()


def slowly(recordings: Iterable[gerd.Recording]) -> str:
    """The digest as the documents define it, one number at a time."""
    data = b""
    for recording in recordings:
        data += struct.pack("<q", len(recording.events))
        for event, source in zip(recording.events, recording.source, strict=True):
            x, y, t, p = (int(event[name]) for name in "xytp")
            data += struct.pack("<hhqBB", x, y, t, p, int(source))
        data += struct.pack("<qq", recording.steps, recording.actors)
        for number in recording.truth.ravel().tolist():
            data += struct.pack("<d", 0.0 if number == 0 else number)
        for shape in recording.shape.tolist():
            data += struct.pack("<q", shape)
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", ["validate-inner/leak/4", "validate-inner/time_scale/1.5"])
def test_the_digest_is_over_the_bytes_that_are_documented(name: str) -> None:
    split = gerd.bench.split("noise", name, quick=True)
    recordings = [gerd.simulate(split.config, index) for index in range(split.count)]
    assert gerd.bench.digest(split) == digest_of(recordings) == slowly(recordings)
    assert digest_of(reversed(recordings)) != digest_of(recordings)


def test_a_zero_has_no_sign_and_everything_else_counts() -> None:
    recording = gerd.simulate(gerd.bench.task("classify").config.replace(steps=9))
    truth = recording.truth.copy()
    assert (truth == 0).any()
    negative = np.where(truth == 0, -0.0, truth)
    assert truth.tobytes() != negative.tobytes()
    assert digest_of([replace(recording, given_truth=negative)]) == digest_of([recording])
    shifted = truth.copy()
    shifted[3, 0, 0, 1] = np.nextafter(shifted[3, 0, 0, 1], np.inf)
    source = recording.source.copy()
    source[-1] ^= 1
    changed = [
        replace(recording, given_truth=shifted),
        replace(recording, source=source),
        replace(recording, keys=recording.keys ^ 1),  # the polarities
        recording.window(0, 8),
    ]
    assert len({digest_of([each]) for each in [recording, *changed]}) == 5


def test_every_split_has_a_digest_and_no_digest_is_without_a_split() -> None:
    known = json.loads(files("gerd.bench").joinpath("v1/digests.json").read_text("utf-8"))
    every = [split for task in TASKS for quick in (False, True) for split in all_splits(task, quick)]
    assert {split.key for split in every} == known.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())
    assert len(set(known.values())) == len(known)
    stranger = replace(every[0], name="train-two")
    with pytest.raises(GerdError, match="locate/train-two: there is no digest of it"):
        gerd.bench.expected_digest(stranger)


def differing(splits: Iterable[Split]) -> list[str]:
    return [split.key for split in splits if gerd.bench.digest(split) != gerd.bench.expected_digest(split)]


@pytest.mark.parametrize("task", TASKS)
def test_a_part_of_version_1_is_what_it_was(task: str) -> None:
    """A few recordings of each factor at each inner amount."""
    assert not differing(split for split in all_splits(task, quick=True) if split.kind == "validate")


@pytest.mark.parametrize("task", TASKS)
def test_the_backend_does_not_show(task: str) -> None:
    split = gerd.bench.split(task, "validate-inner/contrast/1.25", quick=True)
    dense = [gerd.simulate(split.config, index, backend="torch") for index in range(split.count)]
    assert digest_of(dense) == gerd.bench.expected_digest(split)


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_all_of_version_1_is_what_it_was(task: str) -> None:
    assert not differing([*all_splits(task, quick=True), *all_splits(task)])


def test_data_that_differ_in_one_amount_have_another_digest() -> None:
    split = gerd.bench.split("locate", "validate-inner/rotation/15", quick=True)
    other = replace(split, config=split.config.replace(**{"transform.1.rotate": 15.001}))
    assert gerd.bench.digest(other) != gerd.bench.expected_digest(split) == gerd.bench.digest(split)

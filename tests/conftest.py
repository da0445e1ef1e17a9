"""Hypothesis' profile and the number of threads, for all tests, and an end for those that have none."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # the frames are small, and several tests run at once; before torch is imported

import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("gerd", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("gerd")

PATIENCE = 600  # seconds after which a test fails, on however slow a machine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """No test waits without end, whatever it waits for; those that are meant to take long say so."""

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"{item.nodeid} has not ended after {PATIENCE} seconds")

    if item.get_closest_marker("long") or not hasattr(signal, "SIGALRM"):
        return (yield)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

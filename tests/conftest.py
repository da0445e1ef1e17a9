"""Hypothesis' profile and the number of threads, for all tests, their order, and an end for those that have none."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # the frames are small, and several tests run at once; before torch is imported

import gc
import signal
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest
import torch
import typer.main
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported, whichever file is the first to do so

settings.register_profile("gerd", deadline=None, derandomize=True, database=None, max_examples=25)
settings.register_profile("long", settings.get_profile("gerd"), max_examples=200)  # of `make test-long`
settings.load_profile("gerd")

typer.main.get_command = cache(typer.main.get_command)  # which reads all commands anew each time that one is run

# The files that take longest, so that of processes that share the tests none is left alone with one of them.
FIRST = (
    "test_browser.py",
    "test_studies.py",
    "test_ray_workers.py",
    "test_docs.py",
    "test_faults.py",
    "test_adversary.py",
    "test_backends.py",
    "test_resume.py",
    "test_examples.py",
    "test_video.py",
    "test_dataset.py",
    "test_page.py",
    "test_running.py",
)
PATIENCE = 1800  # seconds after which a test fails, on however slow and busy a machine


class HangError(BaseException):
    """No part of the program may catch this, and hypothesis does not look for a smaller example of it."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """No test waits without end, whatever it waits for; those that are meant to take long say so."""

    def give_up(*_: Any) -> None:
        raise HangError(f"{item.nodeid} has not ended after {PATIENCE} seconds")

    if item.get_closest_marker("long") or not hasattr(signal, "SIGALRM"):
        return (yield)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_collection_finish() -> None:
    """What all the imports have made stays, and the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()

"""Memory that is used again: only when nobody holds it, never by two threads at once, and never without bounds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from gerd.training.memory import zeros

MB = 2**20


@pytest.fixture
def traced() -> Iterator[None]:
    """Counts the memory of arrays from here on; what earlier tests left is given back first."""
    zeros((MB * 5,), np.uint8)
    tracemalloc.start()
    zeros((MB * 6,), np.uint8)
    yield
    tracemalloc.stop()


def megabytes() -> int:
    return tracemalloc.get_traced_memory()[0] // MB


def test_memory_is_used_again_only_when_nobody_holds_it() -> None:
    """Frames begin as zeros whatever was in the memory before. A view of a tensor counts as holding it."""

    def frames() -> torch.Tensor:
        return torch.from_numpy(zeros((3, MB), np.float32))

    first = frames()
    place, part = first.data_ptr(), first[1:, 5:]
    first.fill_(7)
    del first
    others = [frames() for _ in range(3)]
    assert place not in [other.data_ptr() for other in others]
    assert (part == 7).all()
    del part
    again = frames()
    assert again.data_ptr() == place
    assert not again.any()
    held = [frames() for _ in range(9)]
    assert len({tensor.data_ptr() for tensor in (again, *others, *held)}) == 13


def test_threads_do_not_get_the_same_memory() -> None:
    def fill(value: int) -> bool:
        for _ in range(60):
            mine = zeros((4 * MB,), np.uint8)
            if mine.any():
                return False
            mine[:] = value
            if not (mine == value).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fill, range(1, 5)))


@pytest.mark.usefixtures("traced")
def test_the_memory_of_four_batches_is_kept() -> None:
    held = [zeros((10 * MB,), np.uint8) for _ in range(9)]
    assert megabytes() >= 90
    held.clear()
    assert megabytes() == 40
    zeros((11 * MB,), np.uint8)
    assert megabytes() == 11  # what is free and does not fit is given back


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(("size", "kept"), [(1, 6), (300, 900), (600, 600), (1025, 6)])
def test_of_huge_batches_at_most_one_gigabyte_is_kept(size: int, kept: int) -> None:
    """The memory is not touched, so that the system does not hand it out."""
    held = [zeros((size, MB), np.uint8) for _ in range(5)]
    assert megabytes() >= 5 * size
    held.clear()
    assert megabytes() == kept  # 6 are those of the fixture

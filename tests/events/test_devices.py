"""Accelerators that lack something, and systems that do: a device without float64, Python without Unix."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from support.pretend import DEVICE, Pretend, There
from support.scenes import actor, config

import gerd

MOVING = config(
    actor("circle", at=[4.0, 5.0], velocity=[1.1, 0.3], intensity=-0.7),
    actor("hole", at=[11.0, 6.0], velocity=[-0.9, 0.2], turn=20.0),
    noise={"background": 0.05, "shape": 0.1, "event": 0.2},
    integrator={"initial": "usual", "warmup": 2},
)


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_a_device_without_float64_gives_the_same_events(timing: str) -> None:
    """Apple's `mps` is one; here a device is pretended that refuses float64."""
    either = MOVING.model_copy(update={"timing": timing})
    here = gerd.simulate_batch(either, [0, 1], backend="torch")
    with Pretend():
        there = gerd.simulate_batch(either, [0, 1], device=DEVICE)
    assert len(here[0]) > 20
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one.keys, other.keys)
        assert np.array_equal(one.background, other.background)


def test_batches_for_such_a_device() -> None:
    options = {"batch_size": 2, "label": ("positions", "boxes", "masks", "shape")}
    frames, labels = gerd.Stream(MOVING, **options).batch(0)
    with Pretend():
        frames_there, labels_there = gerd.Stream(MOVING, device=DEVICE, **options).batch(0)
    for one, other in zip((frames, *labels), (frames_there, *labels_there), strict=True):
        assert isinstance(other, There)
        assert torch.equal(one, other.held)


def test_the_pretended_device_refuses_what_it_should() -> None:
    with Pretend():
        number = torch.zeros(3, device=DEVICE)
        assert str(number.device).startswith(DEVICE)
        assert (number + 1).cpu().tolist() == [1, 1, 1]
        with pytest.raises(TypeError, match="float64"):
            number.double()
        with pytest.raises(TypeError, match="float64"):
            torch.from_numpy(np.zeros(3)).to(DEVICE)
        with pytest.raises(RuntimeError, match="on the CPU"):
            number + torch.zeros(3)


UNIX = "sched_getaffinity pread fchdir getuid geteuid fork O_CLOEXEC O_NONBLOCK openpty killpg setsid mkfifo"
MISSING = {os: UNIX, signal: "pthread_sigmask SIGKILL SIGHUP SIGUSR1 SIGALRM"}  # and some of it is on Linux only


def _ours() -> list[str]:
    return [name for name in sys.modules if name == "gerd" or name.startswith("gerd.")]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on Windows: the package imported anew where modules and functions of Unix are absent."""
    for module, names in MISSING.items():
        for name in names.split():
            monkeypatch.delattr(module, name, raising=False)
    for name in ("fcntl", "grp", "pwd", "resource", "termios"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in _ours():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in _ours():  # nobody else is to meet these
        del sys.modules[name]


def test_everything_can_be_imported_on_other_systems(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    expected = gerd.generate(MOVING, tmp_path / "data", 2, workers=1)[1].digest
    request.getfixturevalue("elsewhere")
    again = importlib.import_module("gerd")
    assert again is not gerd
    found = [module.name for module in pkgutil.walk_packages(again.__path__, "gerd.")]
    assert "gerd.storage.places" in found
    for name in found:
        importlib.import_module(name)
    assert again.Recordings(tmp_path / "data")[1].digest == expected
    moving = again.parse(MOVING.resolved_yaml())
    assert again.simulate(moving, 1, backend="torch").digest == expected
    with pytest.raises(OSError, match="cannot be locked on this system"), open(tmp_path / "file", "w") as file:
        sys.modules["gerd.files"].lock(file)
    assert not sys.modules["gerd.events.compiled"].is_private(tmp_path)

"""The kernels of the `cpu` backend where they could go wrong unseen: on the grid, beside an array, out of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.processes import DEADLINE
from support.scenes import SHAPES, actor, config

import gerd
from gerd.config.config import Config
from gerd.events import cpu

ROOT = Path(__file__).parents[2]
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@st.composite
def gridded(draw: Any) -> Config:
    """Outlines and moves on the lines and centres of sub-pixels, where a rounding or a tie decides; many overlap."""
    width, height = draw(st.sampled_from([(1, 1), (1, 9), (13, 14), (64, 3), (65, 5), (31, 12)]))
    f = draw(st.sampled_from([1, 2, 3, 8, 32]))
    side = min(width, height)

    def halves(low: float, high: float) -> Any:
        return st.integers(round(2 * f * low), round(2 * f * high)).map(lambda n: n / (2 * f))

    actors = []
    for _ in range(draw(st.integers(0, 6))):
        border = draw(st.sampled_from(["free", "bounce", "wrap"]))
        turn = draw(st.sampled_from([0.0, 0.0, 45.0, 90.0, 180.0]))
        fits = max(0.5, side / 2) if turn == 45 else side
        most = fits if border == "wrap" else 3 * max(width, height)
        actors.append(
            actor(
                draw(st.sampled_from(sorted(SHAPES))),
                at=draw(st.tuples(halves(0, width - 0.5), halves(0, height - 0.5))),
                velocity=draw(st.tuples(halves(-2, 2), halves(-2, 2))),
                size=draw(st.tuples(halves(0.5, most), halves(0.5, most)).map(lambda pair: tuple(map(float, pair)))),
                turn=turn,
                border=border,
                intensity=draw(st.sampled_from([1.0, 0.5, -1.0])),
            )
        )
    return config(
        *actors,
        width=width,
        height=height,
        upsampling=f,
        steps=draw(st.integers(1, 6)),
        integrator={
            "threshold": draw(st.sampled_from([0.1, 0.5])),
            "initial": draw(st.sampled_from(["uniform", 0.0])),
            "warmup": draw(st.integers(0, 3)),
        },
        noise={
            "background": draw(st.sampled_from([0.0, 0.1, 1.0])),
            "shape": draw(st.sampled_from([0.0, 0.0, 0.2, 1.0])),
        },
    )


@needs_numba
@settings(max_examples=60)
@given(gridded(), st.sampled_from([None, 1, 2]), st.sampled_from([0, 9, 2**17]))
def test_batches_are_the_definition_on_the_grid(any_config: Config, chunk: int | None, room: int) -> None:
    """Also where the room for events is full after each step or after a few, and the kernel is called again."""
    indices = [2**32 - 1, 0, 7]  # one after the other in the same room: none may leave anything behind
    truth = gerd.simulate_batch(any_config, indices, backend="torch")
    with patch.object(cpu, "ROOM", room):
        made = gerd.simulate_batch(any_config, indices, backend="cpu", chunk=chunk)
    for one, other in zip(truth, made, strict=True):
        assert np.array_equal(one.keys, other.keys)
        assert np.array_equal(one.background, other.background)


@needs_numba
def test_as_many_events_as_there_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A square fills the frame in one step, and every pixel has noise: there is room for both, and for no more."""
    monkeypatch.setattr(cpu, "ROOM", 0)
    filling = actor("square", at=[-40.0, 7.0], velocity=[30.0, 0.0], size=60.0)
    full = config(filling, width=13, height=14, steps=12, upsampling=2, noise={"background": 1.0})
    made = gerd.simulate(full, backend="cpu")
    assert np.array_equal(made.keys, gerd.simulate(full, backend="torch").keys)
    assert np.bincount(made.keys // (2 * 13 * 14)).max() > 13 * 14  # in one step, more than noise alone


@needs_numba
@pytest.mark.parametrize("degrees", [30.0, 45.0, 60.0])
@pytest.mark.parametrize("cuts", [(-0.375, -0.09375), (-0.25, 0.125), (0.03125, 0.46875), (-0.4375, 0.34375)])
def test_vertices_in_one_line(degrees: float, cuts: tuple[float, float]) -> None:
    """A square whose upper side has more vertices and lies on the centres of sub-pixels, but for the last bit."""
    turn = np.deg2rad(degrees)
    ring = [(-0.5, -0.5), *((cut, -0.5) for cut in cuts), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
    turned = [[x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)] for x, y in ring]
    shape = {"polygon": [[float(x), float(y)] for x, y in turned]}
    moving = config(actor(shape, at=[8.0, 8.5], velocity=[0.0, 1.0], size=10.0, turn=-degrees), upsampling=1)
    assert gerd.simulate(moving, backend="cpu").digest == gerd.simulate(moving, backend="torch").digest


CHECKED = (test_batches_are_the_definition_on_the_grid, test_as_many_events_as_there_can_be)
FIRST_USE = f"""
import sys, gerd, gerd.events.cpu as backend
from concurrent.futures import ThreadPoolExecutor
assert "numba" not in sys.modules
config = gerd.load({str(ROOT / "configs" / "square.yaml")!r})
with ThreadPoolExecutor(4) as pool:
    made = list(pool.map(lambda i: gerd.simulate(config, i, backend="cpu").digest, [0] * 4))
assert len(set(made)) == 1
import numba
assert numba.config.CACHE_DIR == ""
stats = backend.kernels().simulate_steps.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
LATER_USE = """
import sys, numba, numpy, pytest
beyond = numba.njit(lambda array: array[len(array)])
with pytest.raises(IndexError):
    beyond(numpy.zeros(3))
code = pytest.main(sys.argv[1:])
from gerd.events.cpu import kernels
stats = kernels().simulate_steps.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
sys.exit(code)
"""


def run_at_a_terminal(command: list[str], **options: Any) -> tuple[str, str]:
    """What a program prints, and what it says to whoever waits at the terminal."""
    terminal, end = os.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, text=True, timeout=10 * DEADLINE, **options)
        os.write(end, b"\n")
        said = os.read(terminal, 4000).decode().strip()
    finally:
        os.close(terminal)
        os.close(end)
    assert done.returncode == 0, done.stdout[-3000:] + said
    return done.stdout, said


@needs_numba
def test_kernels_are_compiled_once_and_reach_beyond_no_array(tmp_path: Path) -> None:
    """Importing compiles nothing; machine code is kept in one place, for the next process, also if threads begin.

    Whoever waits at a terminal is told what for. And with every access checked, which compiled code does not do by
    itself, the scenes that fill the arrays to the last place are the definition's, too.
    """
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    printed, said = run_at_a_terminal([sys.executable, "-c", FIRST_USE], env=environment)
    assert printed.split() == ["0", "1"]
    assert said.startswith("compiling the kernels, once")
    (kept,) = (tmp_path / "gerd").iterdir()

    chosen = [f"{__file__}::{test.__name__}" for test in CHECKED]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    command = [sys.executable, "-c", LATER_USE, *options, *chosen]
    printed, said = run_at_a_terminal(command, env=environment, cwd=tmp_path)
    assert "2 passed" in printed
    assert printed.split()[-2:] == ["1", "0"]
    assert "compiling" not in said
    assert list((tmp_path / "gerd").iterdir()) == [kept]


@needs_numba
@pytest.mark.parametrize("border", ["free", "wrap"])
@pytest.mark.parametrize("steps", [6, 40])
def test_memory_does_not_grow_with_the_batch(monkeypatch: pytest.MonkeyPatch, border: str, steps: int) -> None:
    """However many recordings, steps and copies on a torus: the outlines held at a time keep to their bound."""
    from gerd.events import cpu, rasterise

    crowd = config(
        actor("star", at=[8.2, 6.1], velocity={"uniform": [-1, 1]}, border=border), actor("circle"), steps=steps
    )
    truth = [recording.digest for recording in gerd.simulate_batch(crowd, range(7), backend="torch")]
    sizes, borders = [], rasterise.borders

    def noted(*arguments: Any) -> rasterise.Borders:
        made = borders(*arguments)
        sizes.append(made.coefficients.size)
        return made

    monkeypatch.setattr(rasterise, "borders", noted)
    monkeypatch.setattr(cpu, "CHUNK_VALUES", 1000)
    made = gerd.simulate_batch(crowd, range(7), backend="cpu")
    assert [recording.digest for recording in made] == truth
    assert 0 < max(sizes) <= 2 * 1000  # the chunk about step 0 may be as long as two
    assert len(sizes) > 1


FORKED = """
import os, gerd
config = gerd.parse('''
sensor: {width: 640, height: 480}
steps: 30
upsampling: 2
actors:
  - shape: square
    translation: {start: [320, 240], velocity: [1.3, 0.4], acceleration: 0}
    scale: {start: 60, velocity: 0.3, acceleration: 0}
''')
windows = gerd.simulate_chunks(config, chunk=10, backend="cpu")
wanted = [window.digest for window in gerd.simulate_chunks(config, chunk=10, backend="cpu")][1:]
next(windows)
child = os.fork()
good = [window.digest for window in windows] == wanted
if child == 0:
    os._exit(not good)
raise SystemExit(not good or os.waitpid(child, 0)[1] != 0)
"""


@needs_numba
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_recording_goes_on_in_both_processes_of_a_fork() -> None:
    """In the child and in its parent, each with integrators of its own; the frame is large."""
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=DEADLINE)

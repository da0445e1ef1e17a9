"""The kernels of the `cpu` backend where they could go wrong unseen: on the grid, beside an array, out of memory."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from support.processes import DEADLINE, run_at_a_terminal
from support.scenes import SHAPES, actor, config

import gerd
from gerd.config.config import Config
from gerd.events.compiled import Kernel, argument
from gerd.events.cpu import known
from gerd.events.cpu import run as cpu
from gerd.events.cpu.run import Limits
from gerd.events.shared import Chunk
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw

ROOT = Path(__file__).parents[2]


def comb(teeth: int) -> dict[str, Any]:
    """A polygon that a sub-row can cross twice for each tooth."""
    tips = [[[(k + 0.1) / teeth - 0.5, 0.45], [(k + 0.6) / teeth - 0.5, -0.5 + 0.1 * (k % 3)]] for k in range(teeth)]
    return {"polygon": [*itertools.chain(*tips), [0.5, 0.5], [-0.5, 0.5]]}


def round_polygon(sides: int) -> dict[str, Any]:
    """A regular polygon, which is convex."""
    angles = np.arange(sides) * 2 * np.pi / sides
    return {"polygon": np.stack([0.5 * np.cos(angles), 0.5 * np.sin(angles)], axis=1).tolist()}


MANY_SIDED = {"comb": comb(5), "round": round_polygon(11)}


class Walled(np.ndarray[Any, Any]):
    """An array as kernels have it, of which every place that is read or written must be inside, and none negative."""

    def __getitem__(self, place: Any) -> Any:
        item = super().__getitem__(self._inside(place))
        return np.int64(item) if isinstance(item, np.signedinteger) else item  # as compiled code computes

    def __setitem__(self, place: Any, value: Any) -> None:
        super().__setitem__(self._inside(place), np.asarray(value).astype(self.dtype))  # cut off, as compiled code does

    def _inside(self, place: Any) -> Any:
        for number, size in zip(place if isinstance(place, tuple) else (place,), self.shape, strict=False):
            if not isinstance(number, slice) and not 0 <= number < size:
                raise IndexError(f"{place} of an array {self.shape}")
        return place


def joined(parts: Iterable[Chunk]) -> tuple[Any, Any]:
    """Keys and sources of one recording, from its parts in order of time."""
    keys, source = zip(*((part.keys, part.source) for part in parts), strict=True)
    return np.concatenate(keys), np.concatenate(source)


@pytest.fixture(scope="module")
def kernels() -> None:
    """Loaded: the events that are checked at first use would take a minute in Python."""
    for timing in known.DIGESTS:
        cpu.run(known.scenes(timing))


@contextmanager
def in_python() -> Iterator[None]:
    """The kernels are run as what they are written in, which is slow, and looks at every access to an array."""

    def walled(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.view(Walled)
        return tuple(map(walled, value)) if isinstance(value, tuple) else value

    def call(kernel: Kernel, *values: Any) -> Any:
        return kernel.function(*walled(argument(values).plain)) or ()

    with patch.object(Kernel, "__call__", call), np.errstate(over="ignore"):  # words are multiplied modulo 2^64
        yield


@st.composite
def gridded(draw: Any, finest: int = 100) -> Config:
    """Outlines and moves on the lines and centres of sub-pixels, where a rounding or a tie decides; many overlap."""
    width, height = draw(st.sampled_from([(1, 1), (1, 9), (13, 14), (64, 3), (65, 5), (31, 12)]))
    f = draw(st.sampled_from([f for f in (1, 2, 3, 8, 32, 100) if f <= finest]))
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
                draw(st.sampled_from(sorted(SHAPES) + list(MANY_SIDED.values()))),
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


# A square fills the frame in one step, and every pixel has noise: there is room for both, and for no more.
FULL = config(
    actor("square", at=[-40.0, 7.0], velocity=[30.0, 0.0], size=60.0),
    width=13,
    height=14,
    steps=4,
    upsampling=2,
    noise={"background": 1.0},
)
HIDDEN = config(actor(velocity=[1.0, 0.0], size=60.0), width=13, height=14, upsampling=1, noise={"shape": 1.0})
IN_TIME = config(
    actor("circle", at=[5.3, 4.4], velocity=[0.4, 0.2], size=5.0, intensity=0.5),
    actor(SHAPES["hole"], at=[14.2, 4.1], velocity=[-0.5, 0.1], size=6.0, turn=20.0, border="wrap"),
    width=18,
    height=9,
    upsampling=2,
    steps=3,
    timing="exact",
    integrator={"threshold": 0.1, "warmup": 1},
    noise={"background": 0.01, "shape": 0.1, "event": 0.2},
)


@settings(max_examples=60)
@given(gridded(), st.sampled_from([None, 1, 2]), st.sampled_from([0, 9, 2**17]))
def test_batches_are_the_definition_on_the_grid(any_config: Config, chunk: int | None, room: int) -> None:
    """Also where the room for events is full after each step or after a few, and the kernel is called again."""
    indices = [2**32 - 1, 0, 7]  # one after the other in the same room: none may leave anything behind
    truth = gerd.simulate_batch(any_config, indices, backend="torch")
    parts = list(cpu.run(draw(plan_of(any_config), indices), chunk, Limits(events=room)))
    for row, recording in enumerate(truth):
        keys, source = joined(part for part in parts if part.row == row)
        assert np.array_equal(keys, recording.keys)
        assert np.array_equal(source, recording.source)


@settings(max_examples=8, phases=[Phase.explicit, Phase.generate])  # a smaller example is not looked for: it is slow
@given(gridded(finest=2), st.sampled_from([0, 9]))
@example(IN_TIME, 0)
@example(FULL, 0)
@example(HIDDEN, 0)
@pytest.mark.usefixtures("kernels")
def test_kernels_reach_beyond_no_array(any_config: Config, room: int) -> None:
    """Compiled code does not look where it reads and writes; run in Python, which does, it gives the same."""

    def results() -> list[Any]:
        scenes = draw(plan_of(any_config), [7])
        truth = scenes.truth(np.arange(scenes.steps))[0]
        made = Recording.of(any_config, 7, truth, *joined(cpu.run(scenes, limits=Limits(events=room))))
        return [made.keys, made.background, made.images(), made.masks(), made.flow(), made.event_flow, made.actor]

    with in_python():
        checked = results()
    for one, other in zip(results(), checked, strict=True):
        np.testing.assert_array_equal(one, other)


def test_as_many_events_as_there_can_be() -> None:
    keys, _ = joined(cpu.run(draw(plan_of(FULL), [0]), limits=Limits(events=0)))
    assert np.array_equal(keys, gerd.simulate(FULL, backend="torch").keys)
    assert np.bincount(keys // (2 * 13 * 14)).max() > 13 * 14  # in one step, more than noise alone


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


@pytest.mark.parametrize("apart", [True, False])
def test_what_many_nearer_actors_hide(apart: bool) -> None:
    """Those that lie apart are taken together in layers, as many as there is room for, and more; a chain is in one."""
    hidden = actor("square", at=[20.0, 8.0], velocity=[0.3, 0.4], size=[38.0, 9.0], intensity=0.5)
    for number in range(2, 7):
        distance, size = (6.0, 3.0) if apart else (2.5, 8.0)
        nearer = [
            actor(at=[4.0 + distance * k, 7.0 + k % 3], velocity=[0.2 * k, -0.3], size=size, turn=20.0 * k)
            for k in range(number)
        ]
        scene = config(hidden, *nearer, width=40, height=16)
        assert gerd.simulate(scene, backend="cpu").digest == gerd.simulate(scene, backend="torch").digest


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("shape", [comb(60), round_polygon(300)], ids=["comb", "round"])
def test_outlines_with_very_many_sides(shape: Any, timing: str) -> None:
    """Of sizes that are drawn, so that room for crossings grows from one recording to the next; hidden and hiding."""
    scene = config(
        actor("star", at=[10.0, 8.0], size=14.0, velocity=0.3),
        actor(shape, at=[12.0, 8.0], size={"uniform": [4.0, 60.0]}, turn=17.0, velocity=[0.4, -0.2], intensity=0.5),
        actor(shape, at=[20.0, 6.0], size=9.0, velocity=[-0.6, 0.3], border="wrap"),
        width=26,
        timing=timing,
    )
    truth = gerd.simulate_batch(scene, range(4), backend="torch")
    for made, wanted in zip(gerd.simulate_batch(scene, range(4), backend="cpu"), truth, strict=True):
        assert np.array_equal(made.keys, wanted.keys)


CHECKED = (
    test_outlines_with_very_many_sides,
    test_batches_are_the_definition_on_the_grid,
    test_as_many_events_as_there_can_be,
    test_what_many_nearer_actors_hide,
)
FIRST_USE = f"""
import sys, gerd, gerd.events.cpu.run as backend
from concurrent.futures import ThreadPoolExecutor
assert "numba" not in sys.modules
config = gerd.load({str(ROOT / "configs" / "square.yaml")!r})
with ThreadPoolExecutor(4) as pool:
    made = list(pool.map(lambda i: gerd.simulate(config, i, backend="cpu").digest, [0] * 4))
assert len(set(made)) == 1
print(backend.kernels('cpu.steps').simulate_steps.compilations, "numba" in sys.modules)
import numba, numpy, pytest
beyond = numba.njit(lambda array: array[len(array)])
with pytest.raises(IndexError):
    beyond(numpy.zeros(3))
"""
LATER_USE = """
import sys, pytest
code = pytest.main(sys.argv[1:])
from gerd.events.cpu.run import kernels
print(kernels('cpu.steps').simulate_steps.compilations, "numba" in sys.modules)
sys.exit(code)
"""


@pytest.mark.long
def test_kernels_are_compiled_once_and_their_code_reaches_beyond_no_array(tmp_path: Path) -> None:
    """As they are compiled, with every access checked; the scenes fill the arrays to the last place."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    printed, said = run_at_a_terminal([sys.executable, "-c", FIRST_USE], env=environment)
    assert printed.split() == ["1", "True"]
    assert said.startswith("compiling the kernels, once")
    (kept,) = (tmp_path / "gerd").iterdir()

    chosen = [f"{__file__}::{test.__name__}" for test in CHECKED]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    command = [sys.executable, "-c", LATER_USE, *options, *chosen]
    printed, said = run_at_a_terminal(command, env=environment, cwd=tmp_path)
    assert "4 passed" in printed
    assert printed.split()[-2:] == ["0", "False"]  # the compiler is not even loaded
    assert "compiling" not in said
    assert list((tmp_path / "gerd").iterdir()) == [kept]


@pytest.mark.parametrize("border", ["free", "wrap"])
@pytest.mark.parametrize("steps", [6, 40])
@pytest.mark.usefixtures("kernels")
def test_memory_does_not_grow_with_the_batch(monkeypatch: pytest.MonkeyPatch, border: str, steps: int) -> None:
    """However many recordings, steps and actors: the maps of outlines held at a time keep to their bound."""
    from gerd.events import rasterise

    crowd = config(
        actor("star", at=[8.2, 6.1], velocity={"uniform": [-1, 1]}, border=border), actor("circle"), steps=steps
    )
    truth = gerd.simulate_batch(crowd, range(7), backend="torch")
    sizes, maps = [], rasterise.maps

    def noted(*arguments: Any) -> Any:
        made = maps(*arguments)
        sizes.append(made.size)
        return made

    monkeypatch.setattr(rasterise, "maps", noted)
    parts = list(cpu.run(draw(plan_of(crowd), range(7)), limits=Limits(values=200)))
    for row, recording in enumerate(truth):
        assert np.array_equal(joined(part for part in parts if part.row == row)[0], recording.keys)
    assert 0 < max(sizes) <= 2 * 200  # the chunk about step 0 may be as long as two
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_recording_goes_on_in_both_processes_of_a_fork() -> None:
    """In the child and in its parent, each with integrators of its own; the frame is large."""
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=DEADLINE)

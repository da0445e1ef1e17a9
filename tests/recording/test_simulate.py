"""The same recording, however it is made: alone, in a batch, in pieces, again, or in another process."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes import DEADLINE
from support.scenes import actor, config

import gerd
from gerd.events.backends import run
from gerd.events.shared import chunks
from gerd.plan.make import plan_of
from gerd.scene.draw import draw

CONFIGS = Path(__file__).parents[2] / "configs"
WANDERING = actor(
    translation={"velocity": 0.5, "acceleration": {"normal": [0.0, 0.05]}, "speed_limit": 1.2},
    rotation={"velocity": 1.0, "acceleration": {"normal": [0.0, 0.3]}},
    scale={"start": 8, "velocity": {"factor": 1.01}, "acceleration": {"normal": [0.0, 0.01]}, "limits": [4, 12]},
)

BACKENDS = ["torch", None]  # None: whatever a user gets who does not ask


@pytest.fixture(params=BACKENDS, ids=str)
def backend(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture
def outlines() -> gerd.Config:
    return gerd.load(CONFIGS / "outlines.yaml", overrides=["steps=9"])


def digest(made: gerd.Config, index: int = 0, **options: Any) -> tuple[str, str]:
    """Of the events and of the background flags."""
    recording = gerd.simulate(made, index, **options)
    assert len(recording) > 500
    return recording.digest, recording.background.tobytes().hex()


def test_again(outlines: gerd.Config, backend: str | None) -> None:
    assert digest(outlines, backend=backend) == digest(outlines, backend=backend)


def test_every_index_and_seed_is_another_recording(outlines: gerd.Config, backend: str | None) -> None:
    other = gerd.load(CONFIGS / "outlines.yaml", overrides=["steps=9", "seed=12"])
    assert (
        len(
            {digest(outlines, 0, backend=backend), digest(outlines, 1, backend=backend), digest(other, backend=backend)}
        )
        == 3
    )


def test_the_backends_agree(outlines: gerd.Config) -> None:
    assert digest(outlines, 5, backend="torch") == digest(outlines, 5)


@pytest.mark.parametrize("indices", [[0], [3, 0, 2], [2**32 - 1, 7, 7]])
def test_a_batch_is_its_recordings(outlines: gerd.Config, indices: list[int], backend: str | None) -> None:
    batch = gerd.simulate_batch(outlines, indices, backend=backend)
    assert [recording.identity.index for recording in batch] == indices
    for index, recording in zip(indices, batch, strict=True):
        alone = gerd.simulate(outlines, index, backend=backend)
        assert recording.digest == alone.digest
        np.testing.assert_array_equal(recording.background, alone.background)
        np.testing.assert_array_equal(recording.truth, alone.truth)


@pytest.mark.parametrize("noise", [{"shape": 0.1}, {"event": 0.3}, {"background": 0.1}])
def test_nothing_is_left_over_from_the_recording_before(noise: dict[str, float]) -> None:
    made = config(actor(size=5, velocity=[1.0, 0.5]), WANDERING, steps=30, noise=noise, integrator={"warmup": 3})
    batch = gerd.simulate_batch(made, [4, 5, 6])
    assert [recording.digest for recording in batch] == [
        gerd.simulate(made, index, backend="torch").digest for index in (4, 5, 6)
    ]


def test_an_empty_batch() -> None:
    assert gerd.simulate_batch(config(actor()), []) == []


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_the_length_of_a_chunk_does_not_show(outlines: gerd.Config, chunk: int, backend: str | None) -> None:
    assert digest(outlines, 2, chunk=chunk, backend=backend) == digest(outlines, 2, backend=backend)


@pytest.mark.parametrize(("chunk", "time_scale"), [(1, 7.5), (64, 0.3), (64, 7.5), (100, 1.0), (1000, 0.3)])
def test_windows_are_the_recording(chunk: int, time_scale: float, backend: str | None) -> None:
    made = config(WANDERING, steps=150, time_scale=time_scale, integrator={"warmup": 70, "initial": "uniform"})
    whole = gerd.simulate(made, 3, backend=backend)
    windows = list(gerd.simulate_chunks(made, 3, chunk=chunk, backend=backend))
    assert [window.first for window in windows] == list(range(0, 150, chunk))
    np.testing.assert_array_equal(np.concatenate([window.events for window in windows]), whole.events)
    np.testing.assert_array_equal(np.concatenate([window.background for window in windows]), whole.background)
    np.testing.assert_array_equal(np.concatenate([window.truth for window in windows]), whole.truth)
    assert [window.digest for window in windows] == [
        whole.window(window.first, window.first + chunk).digest for window in windows
    ]


@pytest.mark.parametrize(("chunk", "time_scale"), [(1, 7.5), (64, 7.5), (1000, 0.3)])
def test_how_many_accelerations_are_held_does_not_show(chunk: int, time_scale: float, backend: str | None) -> None:
    """Not in the events, and not in the ground truth, where the whole does not fit into what is held."""
    made = config(WANDERING, steps=150, time_scale=time_scale, integrator={"warmup": 70, "initial": "uniform"})
    whole = gerd.simulate(made, 3, backend=backend)
    scenes = draw(plan_of(made), [3])
    few = replace(scenes, trajectory=replace(scenes.trajectory, held=64))
    parts = list(run(few, backend=backend, chunk=chunk))
    np.testing.assert_array_equal(np.concatenate([part.keys for part in parts]), whole.keys)
    np.testing.assert_array_equal(few.truth(np.arange(150))[0], whole.truth)


def test_an_endless_recording_begins_as_the_configured_one_and_goes_on() -> None:
    made = config(WANDERING, steps=40, integrator={"initial": "uniform"})
    windows = list(itertools.islice(gerd.simulate_chunks(made, 1, chunk=20, endless=True), 4))
    longer = gerd.simulate(config(WANDERING, steps=80, integrator={"initial": "uniform"}), 1)
    assert [window.digest for window in windows] == [longer.window(k, k + 20).digest for k in (0, 20, 40, 60)]
    assert list(windows[3].events["t"] // 20_000) == [3] * len(windows[3])


def test_memory_does_not_grow_with_the_length() -> None:
    """Two thousand steps, whose accelerations and ground truth would take 580 kB, need no more than 250."""
    windows = gerd.simulate_chunks(config(WANDERING, steps=100_000_000, integrator={"initial": "uniform"}), chunk=50)
    next(windows)  # compiles
    tracemalloc.start()
    try:
        peaks: list[int] = []
        for count in (5, 40):
            tracemalloc.reset_peak()
            assert sum(len(window) for window in itertools.islice(windows, count)) > 50 * count
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


@given(st.integers(-500, 0), st.integers(1, 500), st.integers(1, 300))
def test_chunks_tile_the_steps(first: int, steps: int, chunk: int) -> None:
    pieces = list(chunks(first, steps, chunk))
    assert [step for piece in pieces for step in piece] == list(range(first, steps))
    assert all(len(piece) <= 2 * chunk for piece in pieces)
    assert all(piece.stop % chunk == 0 for piece in pieces[:-1])
    assert all(piece.stop != 0 for piece in pieces)


@pytest.mark.parametrize("chunk", [0, -1, 2.5])
def test_a_chunk_that_is_no_number_of_steps_is_refused_at_once(chunk: Any) -> None:
    with pytest.raises(gerd.GerdError, match=f"chunk {chunk}"):
        gerd.simulate_chunks(config(actor()), chunk=chunk)


def test_another_process(outlines: gerd.Config) -> None:
    program = (
        "import gerd, json, sys;"
        "config = gerd.load(sys.argv[1], overrides=['steps=9']);"
        "print(json.dumps([r.digest for r in gerd.simulate_batch(config, [0, 1])]))"
    )
    command = [sys.executable, "-c", program, str(CONFIGS / "outlines.yaml")]
    surroundings = {**os.environ, "PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "3"}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings, timeout=DEADLINE)
    assert json.loads(found.stdout) == [gerd.simulate(outlines, index).digest for index in (0, 1)]


def test_a_value_is_a_field_of_the_config(backend: str | None) -> None:
    made = gerd.load(CONFIGS / "timescale.yaml")
    for scale in (0.25, 2.8):
        written = gerd.load(CONFIGS / "timescale.yaml", overrides=[f"time_scale={scale}", "sweep={}"])
        assert digest(made, 4, time_scale=scale, backend=backend) == digest(written, 4, backend=backend)
    assert digest(made, 4, time_scale=2.8) != digest(made, 4, time_scale=0.25)


def test_a_member_with_the_configs_own_value_is_the_recording_itself() -> None:
    made = gerd.load(CONFIGS / "shrinking.yaml")
    written = gerd.load(CONFIGS / "shrinking.yaml", overrides=["sweep={}"])
    assert digest(made, **{"actors.0.scale.velocity.factor": 0.9}) == digest(written)


def test_a_long_recording_in_pieces(backend: str | None) -> None:
    moving = actor("triangle", velocity=[0.31, 0.17], border="bounce", rotation={"velocity": 1.3, "acceleration": 0.0})
    made = config(moving, width=16, height=16, steps=5000, noise={"background": 0.001}, integrator={})
    whole = gerd.simulate(made, backend=backend)
    assert len(whole) > 10_000
    assert whole.coordinates[-1, 0] == 4999
    assert gerd.simulate(made, chunk=613, backend=backend).digest == whole.digest
    short = gerd.simulate(made, backend=backend, steps=500)
    assert short.keys.tolist() == whole.keys[whole.coordinates[:, 0] < 500].tolist()


MEASURE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from support.scenes import actor, config
import gerd
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
made = config(actor(velocity=[0.3, 0.1], border="bounce"), width=96, height=96, steps=50, upsampling=1)
gerd.simulate(made, backend="torch", chunk=25)
before = peak()
gerd.simulate(made, backend="torch", chunk=25, steps=2500)
print(peak() - before)
"""


def test_memory_follows_the_chunk_and_not_the_recording() -> None:
    """2,500 steps of 96 × 96 pixels would be 92 MB as int32 alone; the events are a few."""
    command = [sys.executable, "-c", MEASURE, str(Path(__file__).parents[1])]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert float(found.stdout) < 40  # MB


@pytest.mark.parametrize("index", [-1, 2**32])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(gerd.GerdError, match=f"index {index}"):
        gerd.simulate(config(actor()), index)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(gerd.GerdError, match=r"backend 'abacus' on device 'cpu': allowed: torch"):
        gerd.simulate(config(actor()), backend="abacus")


def test_an_unknown_value_is_refused() -> None:
    with pytest.raises(gerd.ConfigError, match=r"actors\.0\.speed"):
        gerd.simulate(config(actor()), **{"actors.0.speed": 3})


SIGNED = [
    "shape: square, translation: {acceleration: {choice: [-0.0, 0.114]}}",
    "shape: square, rotation: {start: {choice: [-0.0, 3]}, velocity: -0.0, acceleration: {choice: [-0.0, 1]}}",
    "shape: square, shear: {start: -0.0, acceleration: {choice: [0, -0.0, 0.01]}, limits: [-0.0, 1]}",
    "shape: square, translation: {start: [-0.0, 5], velocity: [{choice: [-0.0, 1]}, 0], acceleration: 0}",
    "shape: square, rotation: {acceleration: {expression: '-0 * t'}}, shear: {acceleration: {choice: [0, 1]}}",
    "shape: square, rotation: {acceleration: {profile: square, amplitude: 0, period: 2}}, repeat: 2",
    "shape: {polygon: [[-0.0, 0], [1, 0], [0, 1]]}, translation: {acceleration: {uniform: [-0.0, 0]}}",
]


@pytest.mark.parametrize("steps", ["steps: 1\nintegrator: {warmup: 0}", "steps: 3"])
@pytest.mark.parametrize("written", SIGNED)
def test_a_zero_has_no_sign(written: str, steps: str) -> None:
    """It would show in a recording that is made alone and not in one of a batch."""
    transform = "transform: [{boost: [-0.0, 0.1]}, {rotate: -0.0, about: [-0.0, 1]}]"
    sensor = "sensor: {width: 12, height: 12}\nupsampling: 2"
    config = gerd.parse(f"{steps}\n{sensor}\n{transform}\nactors: [{{{written}}}]")
    assert "-0.0" not in str(config.resolved())
    for index, recording in enumerate(gerd.simulate_batch(config, range(64))):
        alone = gerd.simulate(config, index)
        assert alone.truth.tobytes() == recording.truth.tobytes()
        assert alone.keys.tobytes() == recording.keys.tobytes()


def test_functions_give_zeros_without_a_sign() -> None:
    actor = {"shape": "square", "rotation": {"acceleration": lambda t: -0.0}}
    signed = gerd.simulate(gerd.Config(steps=3, actors=[actor]))
    still = gerd.simulate(gerd.Config(steps=3, actors=[{"shape": "square"}]))
    assert signed.truth.tobytes() == still.truth.tobytes()


@pytest.mark.parametrize(("timing", "height"), [("step", 12), ("exact", 12), ("exact", 1)])
def test_recordings_of_one_size_share_no_state(timing: str, height: int) -> None:
    """Whether they are made one after the other, in turns, or after one that was not made to its end."""
    noises: list[dict[str, Any]] = [{}, {"background": 0.01}, {"event": 0.3}, {"event": 0.3, "shape": 0.05}]
    moving = actor(velocity=[0.9, 0.0])
    configs = [config(moving, noise=noise, steps=12, timing=timing, seed=3, height=height) for noise in noises]
    wanted = [gerd.simulate(each, backend="torch").digest for each in configs]
    for each in configs:
        next(iter(gerd.simulate_chunks(each, chunk=5)))
        assert [gerd.simulate(other).digest for other in configs] == wanted
        assert [gerd.simulate_batch(other, [1, 0])[1].digest for other in configs] == wanted
    made = zip(*(gerd.simulate_chunks(each, chunk=5) for each in configs), strict=True)
    alone = zip(*(list(gerd.simulate_chunks(each, chunk=5)) for each in configs), strict=True)
    assert [[part.digest for part in parts] for parts in made] == [[part.digest for part in parts] for parts in alone]

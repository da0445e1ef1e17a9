"""No number that a kernel gets is unchecked: a config at the ends of all ranges gives a recording or a `GerdError`.

A number that is none was once taken for a place in memory, and ended the process.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import hostile
from support.scenes import AT_REST, actor, config

import gerd
from gerd.config.config import Config
from gerd.config.sweep import labels
from gerd.errors import GerdError
from gerd.events import rasterise
from gerd.events.backends import run
from gerd.events.cpu import run as cpu
from gerd.geometry import exactmath
from gerd.geometry.parameters import SCALE_X
from gerd.geometry.trajectory import Trajectory
from gerd.plan.make import plan_of
from gerd.scene.draw import draw

EXAMPLES = 400


def outcome(text: str, **options: Any) -> str:
    """The digest of a config's first recording, or the error that it gives."""
    try:
        parsed = gerd.parse(text)
        recording = gerd.simulate(parsed, **options, **dict(labels(parsed, 0)))
    except GerdError as error:
        return str(error)
    assert np.isfinite(recording.truth[:, recording.present]).all()
    return recording.digest


def test_extreme_configs_give_a_recording_or_an_error() -> None:
    """And the compiled kernel and the definition agree on what they give."""
    outcomes = []
    for number in range(EXAMPLES):
        text = hostile.text(random.Random(number))
        outcomes.append(outcome(text))
        if number % 5 == 0:
            assert outcome(text, backend="torch") == outcomes[-1], text
    assert sum(len(result) == 64 for result in outcomes) > EXAMPLES // 20


def test_a_turn_faster_than_numbers_can_say_is_refused_by_every_backend() -> None:
    spinning = config(actor(), actor(rotation={"velocity": 1e9, "acceleration": 1e9}), time_scale=1000.0, steps=400)
    errors = set()
    for backend in ("cpu", "torch"):
        with pytest.raises(GerdError) as raised:
            gerd.simulate(spinning, 3, backend=backend)
        errors.add(str(raised.value))
    assert len(errors) == 1
    assert errors.pop().startswith("index 3: actor 1 cannot be drawn at time ")


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101])
def test_the_error_names_recording_actor_and_time(bad: float, backend: str) -> None:
    scenes = draw(plan_of(config(actor(), actor(size=4.0), steps=9)), [5, 6, 7])

    class Spoilt(Trajectory):
        def entries(self, times: Any, send: Any = None) -> tuple[Any, ...]:
            entries = [np.broadcast_to(e, (3, 2, len(times))).copy() for e in super().entries(times, send)]
            entries[1][1:, 1, np.asarray(times) >= 4] = bad
            return tuple(entries)

    spoilt = Spoilt(**{name: getattr(scenes.trajectory, name) for name in scenes.trajectory.__dataclass_fields__})
    with pytest.raises(GerdError, match=r"^index 6: actor 1 cannot be drawn at time 4: its T has the number "):
        list(run(replace(scenes, trajectory=spoilt), backend=backend))


def test_the_largest_numbers_that_are_allowed_are_drawn() -> None:
    """Beyond every edge of the frame, but finite: the picture is empty or full, as it should be."""
    scenes = draw(plan_of(config(actor("square"), actor("circle"))), [0])
    start = scenes.trajectory.start.copy()
    start[..., SCALE_X : SCALE_X + 2] = rasterise.LARGEST_ENTRY / 2
    huge = replace(scenes, trajectory=Trajectory.at_rest(start))
    assert np.isfinite(rasterise.borders(huge, np.arange(2)).coefficients).all()
    assert [len(part.keys) for part in run(huge)] == [0]


def extreme(upsampling: int, **integrator: Any) -> Config:
    """The brightest square that there is passes the darkest, in a step."""
    return config(
        actor("square", at=[5.0, 4.0], velocity=[-7.0, 0.0], size=6.0, intensity=-8.0),
        actor("square", at=[-2.0, 4.0], velocity=[7.0, 0.0], size=6.0, intensity=8.0),
        height=8,
        steps=3,
        upsampling=upsampling,
        integrator=integrator,
    )


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize(("finest", "integrator"), [(248, {"threshold": 0.5}), (186, {"threshold": 7.0})])
def test_the_largest_counts_that_fit(finest: int, integrator: dict[str, Any], timing: str) -> None:
    largest = extreme(finest, **integrator).replace(timing=timing)
    digests = {gerd.simulate(largest, backend=backend).digest for backend in ("cpu", "torch")}
    assert len(digests) == 1
    assert len(gerd.simulate(largest)) > 0
    with pytest.raises(GerdError, match=f"upsampling: got {finest + 1}: .* allowed with them: up to {finest}$"):
        gerd.simulate(largest.replace(upsampling=finest + 1))


def test_a_logarithm_of_counts_that_need_too_large_a_table() -> None:
    made = config(actor(), upsampling=65, integrator={"response": {"log": 0.1}})
    with pytest.raises(GerdError, match=r"upsampling: got 65: .* allowed: up to 64$"):
        gerd.simulate(made)


def test_grids_that_are_too_fine_for_the_kernels_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(GerdError, match=r"upsampling: got 33: allowed with the backend cuda: up to 32"):
        gerd.simulate(config(actor(), upsampling=33), backend="cuda")


def test_a_turn_that_has_no_digits_left_is_no_number() -> None:
    angles = np.random.default_rng(0).uniform(-1, 1, 3000) * 10.0 ** np.arange(0, 30, 0.01)
    sine, cosine = exactmath.sincos(angles)
    known = np.isfinite(sine)
    assert known[np.abs(angles) < 1e15].all()
    assert not known.all()
    assert np.abs(sine[known]).max() <= 1
    assert np.abs(cosine[known]).max() <= 1


def test_all_of_them_run_the_same_machine_code() -> None:
    """Outlines have one layout in memory, with no actor, in a single pixel, at rest and moving: it is compiled once."""
    kernels = cpu.kernels("cpu.steps")
    for size, actors in (
        (16, [actor(velocity=1)]),
        (16, [actor()]),
        (1, [actor()]),
        (1, []),
        (16, []),
        (16, [actor()] * 2),
    ):
        gerd.simulate(config(*actors, width=size, height=size))
        gerd.simulate(config(*actors, width=size, height=size, noise={"shape": 0.5, "background": 0.5, "event": 0.5}))
    assert len(kernels.simulate_steps.loaded) == 1


def test_a_period_too_short_for_any_step_is_refused() -> None:
    spun = {"acceleration": {"profile": "sine", "amplitude": 1, "period": 1e-320}}
    with pytest.raises(ValueError, match=r"greater than or equal to 0\.001"):
        config(actor(rotation=spun))
    spun["acceleration"]["period"] = 0.001
    assert len(gerd.simulate(config(actor(rotation={**AT_REST, **spun})))) >= 0

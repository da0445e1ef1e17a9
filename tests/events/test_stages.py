"""The stages of a recording: against the slow definition, against the equations of the event model, and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support import oracle
from support.scenes import actor, simulated, small_configs

import gerd
from gerd.config.config import Config
from gerd.events.definition.stages import Stages
from gerd.scene.scenes import Scenes

NAMES = ("picture", "coverage", "seen", "difference", "integrator", "fired", "kept", "events")
BUSY: dict[str, Any] = {
    "steps": 9,
    "upsampling": 3,
    "integrator": {"threshold": 0.3, "warmup": 2},
    "noise": {"background": 0.05, "shape": 0.1, "event": 0.2},
}


def obeys_the_model(stages: Stages, reset_to_zero: bool) -> bool:
    """Whether difference, integrator and fired follow from `seen` by the equations, in integers, pixel by pixel."""
    difference, v = stages.difference.astype(np.int64), stages.integrator.astype(np.int64)
    seen = np.array([oracle.felt(stages.scene, picture) for picture in stages.seen])
    seen = seen + np.array([leaked(stages.scene, step) for step in stages.steps.tolist()])
    threshold_off, threshold_on = stages.thresholds
    beyond = np.stack([v < -threshold_off, v > threshold_on], axis=1)
    off, on = np.moveaxis(beyond & ~resting(stages), 1, 0)
    left = np.where(on | off, 0 if reset_to_zero else np.where(on, v - threshold_on, v + threshold_off), v)
    return (
        np.array_equal(difference[1:], seen[1:] - seen[:-1])
        and np.array_equal(v[1:], left[:-1] + difference[1:])
        and np.array_equal(stages.fired, np.stack([off, on], axis=1))
    )


def leaked(scene: Scenes, step: int) -> np.ndarray:
    """(height, width): what has leaked into the integrators up to a step."""
    us = float(step * scene.step_us)
    return np.array([[oracle.leaked(scene, on, us) for on in row] for row in oracle.thresholds(scene)[0]])


def resting(stages: Stages) -> np.ndarray:
    """(steps, 1, height, width): pixels that have fired so short a time ago that they may not; unknown at first."""
    fired, rest = stages.fired.any(axis=1, keepdims=True), oracle.holding(stages.scene) / stages.scene.step_us
    result = np.zeros_like(fired)
    for step in range(len(fired)):
        first = max(0, math.floor(step - rest) + 1)
        result[step] = fired[first:step].any(axis=0)
        if step < rest:  # an event of the warm-up may be the cause
            result[step] |= ~fired[step]
    return result


@given(small_configs())
def test_every_stage_is_what_the_definition_says(small: Config) -> None:
    recording = gerd.simulate(small, 3, backend="torch", timing="step")
    stages, scene = recording.stages(), recording.scene
    count, height, width, f = recording.steps, recording.height, recording.width, small.upsampling
    assert stages.picture.shape == (count, height * f, width * f)
    blocks = stages.picture.reshape(count, height, f, width, f).sum(axis=(2, 4))
    np.testing.assert_array_equal(blocks, stages.coverage)
    for step in range(count):
        np.testing.assert_array_equal(stages.coverage[step], oracle.picture(scene, step))
        np.testing.assert_array_equal(stages.seen[step], oracle.rendered(scene, step, step))
    before = oracle.felt(scene, oracle.rendered(scene, -1, -1)) + leaked(scene, -1)
    np.testing.assert_array_equal(stages.difference[0], oracle.felt(scene, stages.seen[0]) + leaked(scene, 0) - before)
    assert obeys_the_model(stages, small.integrator.reset == "zero")
    fired = sorted(event for event in oracle.fired(scene) if event[0] >= 0)
    assert np.argwhere(np.moveaxis(stages.fired, 1, -1)).tolist() == [list(event) for event in fired]
    assert not (stages.kept & ~stages.fired).any()
    lost = np.argwhere(stages.kept & ~stages.events)[:, 2:]
    assert set(map(tuple, lost.tolist())) <= oracle.odd(scene, 1, scene.pixel.dead)
    np.testing.assert_array_equal(stages.events, recording.frames())
    step, y, x, p = recording.coordinates.T
    np.testing.assert_array_equal(~stages.kept[step, p, y, x], recording.background)


def test_the_model_can_be_broken() -> None:
    recording = simulated(actor(velocity=[0.7, 0.2]), **BUSY)
    stages = recording.stages()
    assert obeys_the_model(stages, reset_to_zero=False)
    assert not obeys_the_model(stages, reset_to_zero=True)
    for name in ("seen", "difference", "integrator", "fired"):
        broken = recording.stages()
        getattr(broken, name)[4].flat[7] ^= 1
        assert not obeys_the_model(broken, reset_to_zero=False), name


@pytest.mark.parametrize("part", [(0, 9), (3, 7), (5, None), (-4, None), (2, -2), (8, 100), (7, 3), (0, 0)])
def test_stages_of_some_steps(part: tuple[int, int | None]) -> None:
    recording = simulated(actor(velocity=[0.7, 0.2]), actor("circle", velocity=[-0.6, 0.4], size=4.0), **BUSY)
    whole, some, window = recording.stages(), recording.stages(*part), recording.window(*part).stages()
    for name in NAMES:
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[slice(*part)])
        np.testing.assert_array_equal(getattr(window, name), getattr(some, name))
    np.testing.assert_array_equal(some.steps, np.arange(9)[slice(*part)])


def test_a_square_that_moves_right_by_hand() -> None:
    """4 px wide at x = 3 … 7, 1 px per step: its right edge covers column 7 at step 1, its left edge frees column 3."""
    stages = simulated(actor(at=[5, 5], velocity=[1.0, 0.0], size=4.0), steps=2, upsampling=4).stages()
    assert (stages.full, set(stages.thresholds.ravel().tolist())) == (16 * 1024, {8 * 1024})
    expected = np.zeros((12, 16), int)
    expected[3:7, 3:7] = stages.full
    np.testing.assert_array_equal(stages.coverage[0], expected)
    np.testing.assert_array_equal(stages.picture[0], np.kron(expected, np.ones((4, 4), int)) // 16)
    change = np.zeros((12, 16), int)
    change[3:7, 7], change[3:7, 3] = stages.full, -stages.full
    np.testing.assert_array_equal(stages.difference[1], change)
    assert np.argwhere(stages.fired[1, 1]).tolist() == [[y, 7] for y in range(3, 7)]


def test_without_actors_there_is_nothing_to_see() -> None:
    stages = simulated(steps=2).stages()
    assert not any(getattr(stages, name).any() for name in NAMES)

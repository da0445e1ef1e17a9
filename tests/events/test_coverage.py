"""What the compiled code of labels repeats from numpy has the same bits, and refuses the same scenes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scenes import actor, casts, config, drawn

from gerd.errors import GerdError
from gerd.events import rasterise
from gerd.events.labels import coverage
from gerd.events.labels import placing as placing_kernels
from gerd.geometry import exactmath, parameters
from gerd.geometry.trajectory import Trajectory
from gerd.recording import derived
from gerd.scene.scenes import Scenes

STEPS = np.array([-3, 0, 1, 7])


def maps_of(scenes: Scenes, truth: np.ndarray) -> np.ndarray:
    """T (frames, actors, 6) of a scene for each row of truth, by `rasterise`."""
    present = np.where(scenes.present[0][:, None], truth[:, :, 0], 0.0)
    frames = replace(
        scenes,
        indices=np.zeros(len(truth), np.int64),
        chosen=np.repeat(scenes.chosen, len(truth), axis=0),
        intensity=np.repeat(scenes.intensity, len(truth), axis=0),
        trajectory=Trajectory.at_rest(present),
    )
    return rasterise.maps(frames, np.zeros(1))[:, 0]


@given(casts(16, 12, 3), st.integers(0, 99), st.sampled_from([1, 3, 8]))
def test_outlines_are_placed_as_by_numpy(actors: list[dict[str, Any]], index: int, upsampling: int) -> None:
    """All shapes, tori, mirrored and absent actors: T and velocities have the same bits."""
    scenes = drawn(config(*actors, upsampling=upsampling), [index])
    truth = scenes.truth(STEPS)[0]
    maps, motion = coverage.placed(scenes, truth)
    np.testing.assert_array_equal(maps, maps_of(scenes, truth))
    owner, shift = coverage.pieces(scenes)
    linear, velocity, centre = (part[:, owner] for part in derived.motion(truth))
    expected = [linear.reshape(*velocity.shape[:2], 4), velocity, centre + shift]
    np.testing.assert_array_equal(motion, np.concatenate(expected, axis=2))


@pytest.mark.parametrize("turn", [0.0, -0.0, 1.0, -7.3, 1e5, 1e9, *(exactmath.HALF_PI * k for k in range(-5, 6))])
def test_angles_of_all_quarters(turn: float) -> None:
    scenes = drawn(config(actor("triangle"), actor("circle")), [0])
    truth = scenes.truth(STEPS)[0]
    truth[:, :, 0, parameters.ROTATION] = turn
    truth[:, :, 1] = [0.5, -0.25, 0.125, 0.3, 0.1, 0.2]
    truth[1, :, 0, parameters.SCALE_X] = 0.0  # has no inverse
    maps, motion = coverage.placed(scenes, truth)
    np.testing.assert_array_equal(maps, maps_of(scenes, truth))
    linear = derived.motion(truth)[0].reshape(*truth.shape[:2], 4)
    assert np.isnan(linear[1]).any()
    np.testing.assert_array_equal(motion[..., :4], linear)


def test_constants_are_those_of_numpy() -> None:
    repeated = {"HALF_PI": exactmath, "LARGEST_ENTRY": rasterise}
    for name, module in repeated.items():
        assert getattr(placing_kernels, name) == getattr(module, name)
    for name in parameters.PARAMETERS:
        assert getattr(placing_kernels, name.upper()) == parameters.PARAMETERS.index(name)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e101])
def test_what_cannot_be_drawn_is_refused(number: float) -> None:
    scenes = drawn(config(actor("square"), actor("circle")), [0])
    truth = scenes.truth(STEPS)[0]
    truth[2, 1, 0, parameters.X] = number
    with pytest.raises(GerdError, match="actor 1 cannot be drawn at time 2: its T has the number"):
        coverage.masks(scenes, truth)


def test_a_shape_larger_than_its_torus_is_refused() -> None:
    scenes = drawn(config(actor("square", size=6.0, border="wrap")), [0])
    truth = scenes.truth(STEPS)[0]
    assert coverage.masks(scenes, truth).any()
    truth[3, 0, 0, parameters.SCALE_X] = 17.0
    with pytest.raises(GerdError, match="larger than the torus of 16×12"):
        coverage.flow(scenes, truth)


def test_flow_in_memory_of_both_kinds() -> None:
    """That of large arrays is blank already, that of small ones is filled frame by frame."""
    scenes = drawn(config(actor("circle", velocity=[0.5, 0.0]), width=40, height=20), [0])
    truth = scenes.truth(STEPS)[0]
    filled = coverage.flow(scenes, truth)
    np.testing.assert_array_equal(coverage.flow(scenes, truth, fresh_from=0), filled)
    assert set(np.unique(filled).tolist()) == {0.0, 0.5}

"""What a recording says about itself: the forms of its events, and its ground truth against brute force."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracle
from support.scenes import SHAPES, actor, config, generic, moving_actors, rings, simulated

import gerd
from gerd.recording.recording import Recording

BUSY: dict[str, Any] = {"width": 19, "height": 13, "steps": 12, "noise": {"background": 0.02}, "step_us": 250}


@pytest.fixture(scope="module")
def busy() -> Recording:
    return simulated(actor(velocity=[0.9, 0.2]), actor("circle", velocity=[-0.6, 0.4], size=4.0), **BUSY)


# Events


def test_all_forms_hold_the_same_events(busy: Recording) -> None:
    rows = busy.coordinates
    assert len(busy) == len(rows) > 100
    assert list(map(tuple, rows.tolist())) == sorted(set(map(tuple, rows.tolist())))
    assert rows.min() >= 0
    assert (rows.max(axis=0) < (12, 13, 19, 2)).all()
    step, y, x, p = rows.T
    frames = np.zeros((12, 2, 13, 19), bool)
    frames[step, p, y, x] = True
    assert busy.frames().dtype == torch.bool
    np.testing.assert_array_equal(busy.frames().numpy(), frames)
    sparse = busy.sparse()
    assert sparse.is_coalesced()
    assert sparse.shape == (12, 2, 13, 19)
    np.testing.assert_array_equal(sparse.to_dense().numpy(), frames)
    np.testing.assert_array_equal(sparse.indices().numpy(), np.argwhere(frames).T)  # a column is (t, p, y, x)
    events = busy.events
    assert events.dtype == np.dtype([("x", "i2"), ("y", "i2"), ("t", "i8"), ("p", "?")])
    np.testing.assert_array_equal(np.stack([events["t"] / 250, events["y"], events["x"], events["p"]], axis=1), rows)
    assert (np.diff(events["t"]) >= 0).all()


def test_the_digest_by_hand(busy: Recording) -> None:
    rows = [(t // 250, y, x, p) for x, y, t, p in busy.events.tolist()]
    packed = struct.pack("<4q", 19, 13, 250, 1)  # width, height, step_us, ticks per step
    packed += b"".join(struct.pack("<q", ((t * 13 + y) * 19 + x) * 2 + p) for t, y, x, p in sorted(rows))
    assert busy.digest == hashlib.sha256(packed).hexdigest()


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_events_have_the_digest_of_what_they_are_and_not_of_how_they_are_held(timing: str) -> None:
    made = simulated(actor(velocity=[0.9, 0.2]), **BUSY, timing=timing)
    spread = np.repeat(made.keys, 2)[::2]  # not in one piece
    assert not spread.flags.contiguous
    for keys in (spread, made.keys.astype(np.int32), made.keys.astype(">i8")):
        assert dataclasses.replace(made, keys=keys).digest == made.digest
    longer = dataclasses.replace(made, steps=99, title="other", source=1 - made.source)
    assert longer.digest == made.digest  # the same events, in more steps
    others = [{"width": 20}, {"height": 14}, {"step_us": 125}, {"exact": not made.exact}, {"keys": made.keys + 2}]
    changed = {dataclasses.replace(made, **other).digest for other in [*others, {"keys": made.keys[1:]}]}
    assert len(changed - {made.digest}) == 6


@pytest.mark.parametrize("part", [(0, 12), (3, 7), (5, None), (-4, None), (2, -2), (8, 100), (7, 3), (20, 30)])
def test_frames_of_some_steps(busy: Recording, part: tuple[int, int | None]) -> None:
    np.testing.assert_array_equal(busy.frames(*part), busy.frames()[slice(*part)])
    np.testing.assert_array_equal(busy.images(*part), busy.images()[slice(*part)])
    np.testing.assert_array_equal(busy.masks(*part), busy.masks()[slice(*part)])
    np.testing.assert_array_equal(busy.flow(*part), busy.flow()[slice(*part)])


def test_background_is_told_apart(busy: Recording) -> None:
    assert busy.background.dtype == bool
    assert busy.background.shape == (len(busy),)
    assert 0 < busy.background.sum() < len(busy)


def test_repr(busy: Recording) -> None:
    on = int(busy.coordinates[:, 3].sum())
    assert repr(busy) == (
        f"<Recording index 0: 19×13, 12 steps, 2 actors, {len(busy)} events ({on} ON, {len(busy) - on} OFF; "
        f"{busy.background.sum()} background), config {busy.config.digest[:8]}>"
    )
    assert "1 actor," in repr(simulated(actor()))
    assert "Recording index 4 (time_scale=2.0):" in repr(gerd.simulate(busy.config, 4, backend="torch", time_scale=2.0))


def test_identity() -> None:
    made = config(actor(velocity=[1.0, 0.0]), seed=3)
    identity = gerd.simulate(made, 7, backend="torch", time_scale=2.0).identity
    assert (identity.config_digest, identity.seed, identity.index) == (made.digest, 3, 7)
    assert identity.labels == {"time_scale": 2.0}
    assert gerd.simulate(made, backend="torch").identity.labels == {}


# Ground truth


def test_truth_has_the_shapes_and_names_it_says(busy: Recording) -> None:
    assert busy.actors == 2
    for matrices in (busy.T, busy.T_velocity, busy.T_acceleration):
        assert matrices.shape == (12, 2, 3, 3)
        assert matrices.dtype == np.float64
    names = ("x", "y", "scale_x", "scale_y", "rotation", "shear")
    for order, named in enumerate((busy.parameters, busy.parameters_velocity, busy.parameters_acceleration)):
        assert named.dtype.names == names
        assert named.shape == (12, 2)
        for i, name in enumerate(names):
            np.testing.assert_array_equal(named[name], busy.truth[:, :, order, i])
    np.testing.assert_allclose(busy.parameters["x"][:, 0], 9.5 + 0.9 * np.arange(12))
    np.testing.assert_array_equal(busy.parameters_velocity["y"][:, 1], np.full(12, 0.4))
    np.testing.assert_array_equal(busy.parameters["scale_x"], np.tile([6.0, 4.0], (12, 1)))


@given(moving_actors(16, 12), st.sampled_from([1.0, 0.37]))
def test_truth_is_the_trajectory(given_actor: dict[str, Any], time_scale: float) -> None:
    recording = simulated(given_actor, time_scale=time_scale)
    path = recording.scene.trajectory[0, 0]
    np.testing.assert_array_equal(recording.T[:, 0], path.T(np.arange(4)))
    np.testing.assert_array_equal(recording.positions[:, 0], (recording.T[:, 0] @ [0, 0, 1])[:, :2])


@given(moving_actors(16, 12))
def test_boxes_hold_the_outline_and_nothing_more(given_actor: dict[str, Any]) -> None:
    recording = simulated(given_actor)
    points = np.concatenate(rings(given_actor["shape"]))
    for step, box in enumerate(recording.boxes()[:, 0]):
        placed = points @ recording.T[step, 0, :2, :2].T + recording.T[step, 0, :2, 2]
        np.testing.assert_allclose(box, [*placed.min(axis=0), *placed.max(axis=0)], rtol=0, atol=1e-4)


@settings(max_examples=20)
@given(st.lists(moving_actors(16, 12), min_size=1, max_size=3))
def test_coverage_tells_which_actor_is_seen(actors: list[dict[str, Any]]) -> None:
    recording = simulated(*actors)
    coverage = recording.coverage()
    assert coverage.shape == (4, len(actors), 12, 16)
    intensity = recording.scene.intensity[0] / 1024
    np.testing.assert_allclose(np.einsum("tahw,a->thw", coverage, intensity), recording.images(), atol=1e-6)
    assert (coverage.sum(axis=1) <= 1 + 1e-6).all()
    np.testing.assert_array_equal(recording.masks(), coverage >= 0.5)


def test_masks_are_the_picture_of_a_single_actor() -> None:
    recording = simulated(actor("star", at=[7.3, 6.2], velocity=[0.8, 0.1], size=9.0))
    assert recording.masks().any()
    np.testing.assert_array_equal(recording.masks()[:, 0], recording.images() >= 0.5)


def test_visibility() -> None:
    """Half over the edge; hidden by a quarter; outside; on a torus never cut off; of whatever shape."""
    half = simulated(actor(at=[0.0, 6.0], size=4.0), width=16, height=12)
    assert half.visibility() == pytest.approx(np.full((4, 1), 0.5))
    far, near = actor(at=[8.0, 6.0], size=8.0), actor(at=[10.0, 8.0], size=4.0)
    assert simulated(far, near).visibility() == pytest.approx(np.tile([0.75, 1.0], (4, 1)))
    assert (simulated(actor(at=[-20.0, 6.0])).visibility() == 0).all()
    assert simulated(actor("circle", at=[0.0, 0.0], border="wrap"), upsampling=32).visibility() == pytest.approx(
        1, rel=1e-3
    )
    for shape in SHAPES:
        whole = actor(shape, at=[8.0, 6.0], size=7.0, slant=0.2, turn=30.0)
        assert simulated(whole, upsampling=32).visibility() == pytest.approx(1, rel=3e-3)


@settings(max_examples=25)
@given(moving_actors(16, 12), st.booleans())
def test_flow_is_the_motion_of_what_is_seen(given_actor: dict[str, Any], wrap: bool) -> None:
    """Each pixel centre that lies in exactly one copy of the shape, followed for a short time on the free path."""
    given_actor["translation"] |= {"border": "wrap" if wrap else "free", "start": (0.613, 11.17), "acceleration": 0.0}
    if wrap:  # small enough for the torus, however it is turned and sheared
        given_actor["scale"] = {"start": 4.17, "velocity": 0.11, "acceleration": 0.0}
    recording = simulated(given_actor, steps=2)
    flow, mask, path = recording.flow(), recording.masks()[:, 0], recording.scene.trajectory[0, 0]
    assert not flow[:, 0][~mask].any()
    h = 1e-5
    x, y = np.meshgrid(np.arange(16) + 0.5, np.arange(12) + 0.5)
    for step in range(2):
        now, later = path.T([step, step + h])
        later[:2, 2] = now[:2, 2] + h * path.parameters([step])[0, 1, :2]  # a wrap in between is no motion
        copies = np.zeros(x.shape, np.int64)
        expected = np.zeros((2, *x.shape))
        for right in (-16, 0, 16) if wrap else (0,):
            for down in (-12, 0, 12) if wrap else (0,):
                unit = np.tensordot(np.linalg.inv(now), np.stack([x - right, y - down, np.ones_like(x)]), 1)
                inside = oracle.inside(recording.scene.outlines()[0], unit[0], unit[1])
                copies += inside
                expected += np.where(inside, np.tensordot((later - now) / h, unit, 1)[:2], 0)
        known = (copies == 1) & mask[step]
        np.testing.assert_allclose(flow[step][:, known], expected[:, known], rtol=0, atol=5e-3)


def test_flow_by_hand() -> None:
    """Turning by 0.1 rad a step about (8, 6): the velocity at q is 0.1 · (-(q_y - 6), q_x - 8)."""
    turning = actor("circle", size=9.0, rotation={"velocity": math.degrees(0.1), "acceleration": 0.0})
    recording = simulated(turning)
    flow = recording.flow()[2]
    assert flow[:, 6, 8] == pytest.approx([-0.05, 0.05])
    assert flow[:, 3, 9] == pytest.approx([0.25, 0.15])
    assert flow[:, 0, 0].tolist() == [0, 0]


@pytest.mark.parametrize("shape", list(SHAPES))
def test_flow_on_a_torus_is_that_of_the_copy_seen(shape: str) -> None:
    """The flow of a shape at the corner is the flow of the same shape in the middle, rolled."""
    form: dict[str, Any] = {"size": 7.0, "border": "wrap", "rotation": {"velocity": 9.0, "acceleration": 0.0}}
    corner = simulated(actor(shape, at=[0.0, 0.0], **form))
    middle = simulated(actor(shape, at=[8.0, 6.0], **form))
    assert middle.masks()[0].sum() >= 10
    np.testing.assert_array_equal(corner.flow(), np.roll(middle.flow(), (-6, -8), axis=(2, 3)))


# Edge cases


def test_a_recording_without_actors() -> None:
    recording = simulated(noise={"background": 0.1})
    assert recording.actors == 0
    assert recording.T.shape == recording.T_velocity.shape == (4, 0, 3, 3)
    assert recording.positions.shape == (4, 0, 2)
    assert recording.parameters.shape == (4, 0)
    assert recording.boxes().shape == (4, 0, 4)
    assert recording.coverage().shape == recording.masks().shape == (4, 0, 12, 16)
    assert recording.visibility().shape == (4, 0)
    assert recording.flow().shape == (4, 2, 12, 16)
    assert not recording.images().any()
    assert recording.background.all()
    assert len(recording) > 0


def test_a_recording_without_events() -> None:
    recording = simulated(actor())
    assert len(recording) == len(recording.events) == 0
    assert recording.coordinates.shape == (0, 4)
    assert not recording.frames().any()
    assert recording.sparse()._nnz() == 0
    assert "0 events (0 ON, 0 OFF; 0 background)" in repr(recording)


@given(generic(1, 9))
def test_the_scene_is_the_one_that_was_simulated(size: float) -> None:
    """A value set by `simulate` is part of the recording: its scene is drawn with it, and its picture shows it."""
    made = config(actor(size=20.0))
    recording = gerd.simulate(made, backend="torch", **{"actors.0.scale.start": size})
    assert recording.scene.trajectory.parameters([0.0])[0, 0, 0, 0, 2] == size == recording.parameters["scale_x"][0, 0]


def test_packed_ground_truth_is_unpacked_once_and_when_it_is_asked_for() -> None:
    made, asked = gerd.simulate({"steps": 5, "actors": [{"shape": "circle"}]}), []

    class Packed:
        def __len__(self) -> int:
            return made.steps

        def __call__(self) -> np.ndarray:
            asked.append(True)
            return made.truth

    recording = dataclasses.replace(made, given_truth=Packed())
    assert (recording.steps, recording.actors, recording.digest) == (made.steps, made.actors, made.digest)
    assert asked == []
    for _ in range(2):
        assert np.array_equal(recording.T, made.T)
        assert np.array_equal(recording.window(1, 3).truth, made.truth[1:3])
    assert asked == [True]

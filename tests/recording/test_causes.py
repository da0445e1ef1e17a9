"""The cause of every event, and masks and flow where an edge has just left, against brute force and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import causes, oracle
from support.scenes import SHAPES, actor, moving_actors, simulated, small_configs

import gerd
from gerd.config.config import Config
from gerd.geometry.parameters import derivatives
from gerd.recording.recording import Recording


def assert_explained(recording: Recording) -> None:
    """Actor, echo and velocity of each event are those of the oracle."""
    expected = list(causes.walked(recording))
    assert recording.actor.tolist() == [-1 if cause is None else cause.actor for cause, _ in expected]
    assert recording.echo.tolist() == [echo for _, echo in expected]
    assert recording.event_flow.shape == (len(recording), 2)
    rows = zip(recording.coordinates.tolist(), recording.event_flow, expected, strict=True)
    for (step, y, x, _), found, (cause, _) in rows:
        if cause is None:
            assert np.isnan(found).all()
            continue
        time = step + recording.first
        allowed = [causes.velocity(recording, passed, time, y, x) for passed in cause.copies]
        assert min(np.abs(found - each).max() for each in allowed) < 2e-3


@given(small_configs())
def test_causes_are_those_of_brute_force(made: Config) -> None:
    """All shapes, tori, overlaps, intensities, thresholds, resets, noises, warm-ups and time scales."""
    assert_explained(gerd.simulate(made, backend="torch", timing="step"))


@settings(max_examples=4, deadline=None)
@given(
    st.lists(moving_actors(16, 12), min_size=1, max_size=3),
    st.sampled_from([0.6, 1.0, 2.5]),
    st.sampled_from([0, 700]),
)
def test_causes_in_exact_timing(actors: list[dict[str, Any]], rate: float, refractory_us: int) -> None:
    """The edges that pass a pixel between two instants, looked up one sub-pixel after another.

    They are the two in which the event happens, or earlier ones if the pixel had to rest.
    """
    integrator = {"threshold": 0.3, "warmup": 1, "refractory_us": refractory_us}
    recording = simulated(*actors, steps=3, timing="exact", time_scale=rate, integrator=integrator)
    scene, own = recording.scene, recording.scene.in_own_time()
    grid = [-1.0]
    for unit in range(-1, math.ceil(2 * rate) + 1):
        count = oracle.parts(scene, unit)
        grid += [unit + (part + 1) / count for part in range(count)]
    pictures = {at: causes.labels(own, at) for at in grid}
    assert not recording.echo.any()
    for event, found, flow in zip(recording.events, recording.actor, recording.event_flow, strict=True):
        sign, time = 1 if event["p"] else -1, event["t"] / 1000
        later = next(i for i, at in enumerate(grid) if at >= (event["t"] - 0.5) / 1000 * rate)
        gains: dict[int, int] = {}
        while sum(gains.values()) * sign <= 0:
            gains = gained(scene, pictures[grid[later - 1]], pictures[grid[later]], event["y"], event["x"])
            later -= 1
        most = max(gain * sign for gain in gains.values())
        assert found == max(one for one, gain in gains.items() if gain * sign == most)
        if not scene.wraps[found]:
            T, speed = (trajectory[0, found, 0] for trajectory in (scene.trajectory.T([time]), velocities(scene, time)))
            place = np.array([event["x"] + 0.5, event["y"] + 0.5, 1.0])
            np.testing.assert_allclose(flow, (speed @ np.linalg.inv(T) @ place)[:2], rtol=1e-6, atol=1e-6)


def velocities(scene: Any, time: float) -> np.ndarray:
    return derivatives(scene.trajectory.parameters([time]))[0]


def gained(scene: Any, before: Any, after: Any, y: int, x: int) -> dict[int, int]:
    """What the edges of each actor have added to the count of a pixel between two pictures."""
    f, result = scene.upsampling, {}
    cell = (slice(y * f, (y + 1) * f), slice(x * f, (x + 1) * f))
    intensity = [*scene.intensity[0].tolist(), 0]  # the last: nothing
    for was, now in zip(before[0][cell].ravel().tolist(), after[0][cell].ravel().tolist(), strict=True):
        old, new = before[1][was][0], after[1][now][0]
        if old != new:
            nearer = max(old, new)
            result[nearer] = result.get(nearer, 0) + intensity[new] - intensity[old]
    return result


@settings(max_examples=8, deadline=None)
@given(st.lists(moving_actors(16, 12), min_size=1, max_size=3), st.sampled_from([0.05, 0.3]))
def test_causes_of_many_events(actors: list[dict[str, Any]], threshold: float) -> None:
    """A window has those of the whole, whatever happened before it; echoes of earlier steps included."""
    integrator = {"threshold": threshold, "warmup": 2}
    recording = simulated(*actors, steps=6, integrator=integrator, noise={"event": 0.2, "shape": 0.05})
    assert_explained(recording)
    window = recording.window(2, 5)
    inside = (recording.coordinates[:, 0] >= 2) & (recording.coordinates[:, 0] < 5)
    np.testing.assert_array_equal(window.actor, recording.actor[inside])
    np.testing.assert_array_equal(window.echo, recording.echo[inside])
    np.testing.assert_array_equal(window.event_flow, recording.event_flow[inside])


@pytest.mark.parametrize("shape", list(SHAPES))
def test_every_shape(shape: str) -> None:
    moving = actor(shape, at=[5.3, 6.1], velocity=[0.83, 0.21], size=7.0, turn=20.0)
    recording = simulated(moving, steps=6, integrator={"initial": 0.0, "threshold": 0.2, "warmup": 0})
    assert recording.echo.any()
    assert (recording.actor == 0).all()
    np.testing.assert_allclose(recording.event_flow, np.tile([0.83, 0.21], (len(recording), 1)), rtol=0, atol=1e-12)
    assert_explained(recording)


def bar(left: float, right: float, velocity: float = 0.0, **parts: Any) -> dict[str, Any]:
    """From column `left` to `right` over the whole height, moving to the right."""
    middle = [(left + right) / 2, 1.0]
    return actor(at=middle, velocity=[velocity, 0.0], size=[right - left, 40.0], **parts)


def row(*actors: dict[str, Any], **fields: Any) -> Recording:
    """A frame of 8×1 pixels, in which all happens along x."""
    fields = {"integrator": {"initial": 0.0, "warmup": 0, "threshold": 0.3}, **fields}
    return simulated(*actors, width=8, height=1, **fields)


def causes_at(recording: Recording, x: int) -> list[tuple[int, int, int, bool]]:
    """step, p, actor and echo of the events of one pixel."""
    step, _, column, p = recording.coordinates.T
    here = column == x
    return list(zip(step[here], p[here], recording.actor[here], recording.echo[here], strict=True))


def test_the_nearer_actor_uncovers_the_farther() -> None:
    """A dark bar leaves pixel 0, and then pixel 1, in front of a bright one that does not move."""
    recording = row(bar(0, 8), bar(1, 4, velocity=1.0, intensity=-1.0), steps=2)
    assert causes_at(recording, 0)[0] == (0, 1, 1, False)
    assert causes_at(recording, 1)[0] == (1, 1, 1, False)
    assert set(recording.actor) == {1}
    np.testing.assert_array_equal(recording.event_flow, np.tile([1.0, 0.0], (len(recording), 1)))


def test_one_actor_leaves_while_another_comes_beneath_it() -> None:
    """At step 1 a dark bar leaves pixel 4, and a bright one behind it comes: the dark one had to leave for both."""
    recording = row(bar(1, 4, velocity=1.0), bar(4, 5, velocity=1.0, intensity=-1.0), steps=2)
    assert causes_at(recording, 4) == [(0, 0, 1, False), (1, 1, 1, False)]


def test_of_two_edges_the_larger_share_counts_and_of_equals_the_nearer() -> None:
    """In step 0 two bars come into pixel 4, one from each side, until they meet."""
    still = {"steps": 1}
    equal = row(bar(2, 4.5, velocity=0.5), bar(4.5, 7, velocity=-0.5), **still)
    assert causes_at(equal, 4) == [(0, 1, 1, False)]
    other = row(bar(4.5, 7, velocity=-0.5), bar(2, 4.5, velocity=0.5), **still)
    assert causes_at(other, 4) == [(0, 1, 1, False)]
    larger = row(bar(2, 4.75, velocity=0.75), bar(4.75, 7, velocity=-0.25), **still)
    assert causes_at(larger, 4) == [(0, 1, 0, False)]
    dim = row(bar(2, 4.75, velocity=0.75, intensity=0.2), bar(4.75, 7, velocity=-0.25, intensity=2.0), **still)
    assert causes_at(dim, 4) == [(0, 1, 1, False)]


def test_only_shares_in_the_direction_of_the_event_count() -> None:
    """One bar leaves most of pixel 4, while a brighter one comes into a part of it: the count rises."""
    recording = row(bar(2, 4.25, velocity=-0.5), bar(4.5, 7, velocity=-0.5, intensity=2.0), steps=1)
    assert causes_at(recording, 4) == [(0, 1, 1, False)]


def test_echoes_keep_the_cause_of_the_change() -> None:
    """One step brings pixel 4 a full count, of which each event takes off 0.3: two echoes follow."""
    recording = row(bar(-20, 5, velocity=3.0))
    assert causes_at(recording, 4) == [(0, 1, 0, False), (1, 1, 0, True), (2, 1, 0, True)]


def test_a_change_in_the_other_direction_is_no_cause() -> None:
    """The count of pixel 4 rises by 1 at step 0, and falls by 0.1 at step 1 when a dimmer bar comes in front of it."""
    integrator = {"initial": 0.0, "warmup": 0, "threshold": 0.25}
    recording = row(bar(-20, 5, velocity=3.0), bar(-30, 3, velocity=3.0, intensity=0.9), integrator=integrator)
    assert causes_at(recording, 4) == [(0, 1, 0, False), (1, 1, 0, False), (2, 1, 0, True)]


def test_background_noise_has_no_cause() -> None:
    recording = simulated(actor(velocity=[0.9, 0.2]), noise={"background": 0.05})
    noise = recording.background
    assert noise.any()
    assert (~noise).any()
    assert (recording.actor[noise] == -1).all()
    assert not recording.echo[noise].any()
    assert np.isnan(recording.event_flow[noise]).all()
    assert (recording.actor[~noise] == 0).all()
    assert np.isfinite(recording.event_flow[~noise]).all()


def test_velocities_by_hand() -> None:
    """Turning by 0.1 rad a step about (8, 6): the velocity at q is 0.1 · (-(q_y - 6), q_x - 8)."""
    turning = actor("square", size=9.0, rotation={"velocity": math.degrees(0.1), "acceleration": 0.0})
    recording = simulated(turning, steps=6)
    _, y, x, _ = recording.coordinates.T
    expected = 0.1 * np.stack([-(y + 0.5 - 6), x + 0.5 - 8], axis=1)
    np.testing.assert_allclose(recording.event_flow, expected, rtol=0, atol=1e-12)


@given(moving_actors(16, 12))
def test_velocities_are_those_of_the_matrices(given_actor: dict[str, Any]) -> None:
    """T'·T⁻¹ at the pixel's centre, with the inverse of a library."""
    given_actor["translation"]["border"] = "free"
    recording = simulated(given_actor, integrator={"threshold": 0.2})
    step, y, x, _ = recording.coordinates.T
    generators = recording.T_velocity[:, 0] @ np.linalg.inv(recording.T[:, 0])
    places = np.stack([x + 0.5, y + 0.5, np.ones(len(x))], axis=1)
    expected = np.einsum("eij,ej->ei", generators[step], places)[:, :2]
    np.testing.assert_allclose(recording.event_flow, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_torus_has_no_place_of_its_own(shape: str) -> None:
    """A shape that goes over the corner has the events of one in the middle, rolled, with the same causes."""
    form: dict[str, Any] = {"size": 7.0, "border": "wrap", "velocity": [0.75, -0.5]}
    form["rotation"] = {"velocity": 9.0, "acceleration": 0.0}
    fields: dict[str, Any] = {"steps": 8, "integrator": {"initial": 0.0, "warmup": 0, "threshold": 0.15}}
    corner, middle = (simulated(actor(shape, at=at, **form), **fields) for at in ([15.0, 1.0], [7.0, 7.0]))
    rows = corner.coordinates
    rolled = np.stack([rows[:, 0], (rows[:, 1] + 6) % 12, (rows[:, 2] + 8) % 16, rows[:, 3]], axis=1)
    order = np.lexsort(rolled.T[::-1])
    np.testing.assert_array_equal(rolled[order], middle.coordinates)
    assert middle.echo.any()
    np.testing.assert_array_equal(corner.echo[order], middle.echo)
    np.testing.assert_allclose(corner.event_flow[order], middle.event_flow, rtol=0, atol=1e-12)
    for edges in (False, True):
        flow = np.roll(corner.flow(edges=edges), (6, 8), axis=(2, 3))
        np.testing.assert_allclose(flow, middle.flow(edges=edges), rtol=0, atol=1e-6)


def test_events_with_causes() -> None:
    recording = simulated(actor(velocity=[0.9, 0.2]), noise={"background": 0.05})
    table = recording.events_with_causes
    assert table.dtype.names == ("x", "y", "t", "p", "actor", "vx", "vy", "echo", "source", "fired_us")
    for name in ("x", "y", "t", "p"):
        np.testing.assert_array_equal(table[name], recording.events[name])
    np.testing.assert_array_equal(table["actor"], recording.actor)
    np.testing.assert_array_equal(table["echo"], recording.echo)
    np.testing.assert_array_equal(table["source"], recording.source)
    np.testing.assert_array_equal(table["fired_us"], recording.events["t"])  # without readout
    np.testing.assert_array_equal(np.stack([table["vx"], table["vy"]], axis=1), recording.event_flow)


def test_a_recording_without_events_or_actors() -> None:
    still, empty = simulated(actor()), simulated(noise={"background": 0.1})
    assert still.actor.shape == still.echo.shape == (0,)
    assert still.event_flow.shape == (0, 2)
    assert (empty.actor == -1).all()
    assert not empty.echo.any()
    assert empty.masks(edges=True).shape == (4, 0, 12, 16)
    assert np.isnan(empty.flow(edges=True)).all()
    assert still.window(2, 2).flow(edges=True).shape == (0, 2, 12, 16)
    assert still.window(2, 2).masks(edges=True).shape == (0, 1, 12, 16)


# Pictures


def counted(recording: Recording, step: int) -> np.ndarray:
    """(copies, height, width): the sub-pixels of each pixel in which each copy is seen; the first is nothing."""
    f = recording.scene.upsampling
    seen, copies = causes.labels(recording.scene, step)
    fine = seen.reshape(recording.height, f, recording.width, f)
    return np.stack([(fine == i).sum(axis=(1, 3)) for i in range(len(copies))])


def of_actors(recording: Recording, counts: np.ndarray) -> np.ndarray:
    copies = causes.labels(recording.scene, 0)[1]
    owner = np.array([actor for actor, _, _ in copies])
    return np.stack([counts[owner == i].sum(axis=0) for i in range(recording.actors)])


@settings(max_examples=25, deadline=None)
@given(small_configs().filter(lambda made: len(made.cast) > 0))
def test_pictures_are_those_of_brute_force(made: Config) -> None:
    recording = gerd.simulate(made, backend="torch", timing="step")
    full, half = made.upsampling**2, made.upsampling**2 / 2
    before = of_actors(recording, counted(recording, -1))
    for step in range(recording.steps):
        now = of_actors(recording, counted(recording, step))
        np.testing.assert_array_equal(recording.coverage(step, step + 1)[0], np.float32(now / full))
        np.testing.assert_array_equal(recording.masks(step, step + 1)[0], now >= half)
        np.testing.assert_array_equal(recording.masks(step, step + 1, edges=True)[0], now + before > 0)
        activation = oracle.picture(recording.scene, step)
        np.testing.assert_array_equal(
            recording.images(step, step + 1)[0], np.float32(activation / recording.scene.full_count)
        )
        before = now


@settings(max_examples=12, deadline=None)
@given(st.lists(moving_actors(70, 45), min_size=1, max_size=4), st.sampled_from([3, 8]))
def test_pictures_of_large_shapes(actors: list[dict[str, Any]], upsampling: int) -> None:
    """Most rows of a large shape are worked out many at a time, those at its corners and tips one by one."""
    recording = simulated(*actors, width=70, height=45, steps=1, upsampling=upsampling)
    now = of_actors(recording, counted(recording, 0))
    masks, flow = recording.masks()[0], recording.flow()[0]
    np.testing.assert_array_equal(recording.coverage()[0], np.float32(now / upsampling**2))
    np.testing.assert_array_equal(masks, 2 * now >= upsampling**2)
    y, x = np.mgrid[:45, :70] + 0.5
    expected = np.zeros((2, 45, 70))
    for i, wraps in enumerate(recording.scene.wraps):
        along_x, along_y, drift = (recording.T_velocity[0, i] @ np.linalg.inv(recording.T[0, i]))[:2].T[..., None, None]
        unknown = np.nan if wraps else 0.0  # it depends on the copy
        expected = np.where(masks[i], along_x * x + along_y * y + drift + unknown, expected)
    known = np.isfinite(expected)
    np.testing.assert_allclose(flow[known], expected[known], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("width", [0.6, 0.9, 1.4, 2.3])
def test_masks_beside_a_narrow_bar(width: float) -> None:
    """It turns in front of a square: its two sides meet in one pixel, and so do the two parts that it leaves."""
    turning = {"start": 2.0, "velocity": 6.1, "acceleration": 0.0}
    bar = actor(size=[width, 40.0], rotation=turning)
    recording = simulated(actor(size=30.0), bar, width=48, height=48, steps=30)
    masks = recording.masks()
    assert masks[:, 1].any()
    np.testing.assert_array_equal(masks, recording.coverage() >= 0.5)


@settings(max_examples=25, deadline=None)
@given(small_configs().filter(lambda made: len(made.cast) > 0))
def test_flow_is_that_of_brute_force(made: Config) -> None:
    recording = gerd.simulate(made, backend="torch", timing="step")
    copies, half = causes.labels(recording.scene, 0)[1], made.upsampling**2 / 2
    plain, whole = recording.flow(), recording.flow(edges=True)
    assert plain.dtype == whole.dtype == np.float32
    before = counted(recording, -1)
    for step in range(recording.steps):
        now = counted(recording, step)
        totals, totals_before = of_actors(recording, now), of_actors(recording, before)
        for y, x in np.ndindex(recording.height, recording.width):
            seen = [a for a in range(recording.actors) if totals[a, y, x] >= half]
            score = [int(totals[a, y, x] + totals_before[a, y, x]) for a in range(recording.actors)]
            if not seen:
                assert plain[step, :, y, x].tolist() == [0, 0]
            if not any(score):
                assert np.isnan(whole[step, :, y, x]).all()
                continue
            chosen = max(seen) if seen else max(a for a in range(len(score)) if score[a] == max(score))
            shown, at = (now, step) if totals[chosen, y, x] else (before, step - 1)
            own = [i for i, copy in enumerate(copies) if copy[0] == chosen]
            most = max(shown[i, y, x] for i in own)
            allowed = [causes.velocity(recording, (copies[i], at), step, y, x) for i in own if shown[i, y, x] == most]
            assert min(np.abs(whole[step, :, y, x] - each).max() for each in allowed) < 5e-3
            if seen:
                np.testing.assert_array_equal(plain[step, :, y, x], whole[step, :, y, x])
        before = now


@settings(max_examples=25, deadline=None)
@given(st.lists(moving_actors(16, 12), min_size=1, max_size=3))
def test_flow_is_known_at_every_event_that_is_no_echo(actors: list[dict[str, Any]]) -> None:
    recording = simulated(*actors, integrator={"threshold": 0.2, "warmup": 1})
    step, y, x, _ = recording.coordinates.T
    fresh = ~recording.echo
    assert np.isfinite(recording.flow(edges=True)[step, :, y, x][fresh]).all()
    assert recording.masks(edges=True)[step, :, y, x][fresh].any(axis=1).all()


def test_behind_a_moving_square() -> None:
    """Without edges the flow is 0 at the events of the trailing edge; with them it is the square's wherever it was."""
    recording = simulated(actor(at=[6.0, 6.0], velocity=[1.0, 0.0]), integrator={"initial": 0.0, "threshold": 0.4})
    step, y, x, p = recording.coordinates.T
    trailing = (p == 0) & ~recording.echo
    assert trailing.any()
    assert not recording.flow()[step, :, y, x][trailing].any()
    assert (recording.flow(edges=True)[step, :, y, x][trailing] == (1.0, 0.0)).all()


def test_what_needs_the_motion_before_the_recording_needs_no_code(tmp_path: Any) -> None:
    """A dataset has the values of a function from the warm-up on."""
    text = """
sensor: {width: 8, height: 8}
steps: 3
actors: [{shape: square, translation: {acceleration: {function: "math:cos"}}}]
"""
    trusted = gerd.parse(text, trust=True)
    made = gerd.simulate(trusted, backend="torch")
    untrusted = gerd.generate(trusted, tmp_path / "data", 1, workers=1)[0]
    np.testing.assert_array_equal(untrusted.flow(), made.flow())
    np.testing.assert_array_equal(untrusted.flow(edges=True), made.flow(edges=True))
    np.testing.assert_array_equal(untrusted.actor, made.actor)

"""Cameras that are not ideal: against closed forms, and against statistics.

Each statistical test may fail with a probability of `FALSE_ALARM` if the program is right; seeds are fixed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats
from support.oracle import philox
from support.scenes import FALSE_ALARM, actor, config, drawn

import gerd
from gerd.errors import GerdError
from gerd.events.backends import run
from gerd.events.pixel.thresholds import Thresholds
from gerd.events.shared import FROM_LEAK
from gerd.recording.recording import Recording
from gerd.scene import transformation

# A square that covers the whole frame and leaves it again, in steps of a quarter pixel at most.
PASSING: dict[str, Any] = {"at": [-30.0, 8.0], "velocity": [2.5, 0.0], "size": 40.0, "intensity": 1.0}


def passed(threshold: Any, *, seed: int = 0, index: int = 0, number: int = 0, **fields: Any) -> Recording:
    """A recording of the passing square in exact timing, from integrators at 0."""
    made = config(
        actor(**{**PASSING, **fields}),
        width=24,
        height=16,
        steps=44,
        seed=seed,
        timing="exact",
        camera={"number": number},
        integrator={"threshold": threshold, "initial": 0.0, "warmup": 0},
    )
    return gerd.simulate(made, index)


def counted(recording: Recording) -> np.ndarray:
    """(2, height, width): how many OFF and how many ON events each pixel has."""
    return np.asarray(recording.frames(counts=True).numpy().astype(int).sum(axis=0))


def tables(**fields: Any) -> Thresholds:
    """The thresholds of a camera with 128×96 pixels."""
    return Thresholds.of(drawn(config(width=128, height=96, **fields), [0]))


# Thresholds


@pytest.mark.parametrize(("on", "off"), [(1 / 16, 1 / 8), (1 / 4, 1 / 16)])
def test_each_polarity_has_its_own_threshold(on: float, off: float) -> None:
    """A pixel that is covered and uncovered fires 1 / on times ON and 1 / off times OFF: thresholds 1:2, events 2:1."""
    fired = counted(passed({"on": on, "off": off}))
    assert (fired[1] == round(1 / on)).all()
    assert (fired[0] == round(1 / off)).all()


def test_a_pixel_fires_as_often_as_its_own_threshold_allows() -> None:
    threshold = {"on": 0.11, "off": 0.17, "spread": 0.03}
    recording = passed(threshold)
    table, full = Thresholds.of(recording.scene), recording.scene.full_count
    fired = counted(recording)
    assert np.array_equal(fired[1], full // table.on)
    left = full - fired[1] * table.on  # is still in the integrator when the square leaves
    assert np.array_equal(fired[0], (full - left) // table.off)
    assert len(np.unique(fired[1])) > 3


def test_thresholds_are_normal_numbers() -> None:
    made = tables(integrator={"threshold": {"on": 0.5, "off": 0.3, "spread": 0.04}})
    full = 64 * 1024
    for table, mean in ((made.on, 0.5), (made.off, 0.3)):
        assert table.shape == (96, 128)
        assert stats.kstest(table.ravel() / full, stats.norm(mean, 0.04).cdf).pvalue > FALSE_ALARM
    pairs = {
        "polarities": (made.on, made.off),
        "x": (made.on[:, ::2], made.on[:, 1::2]),
        "y": (made.on[::2], made.on[1::2]),
    }
    for name, (one, other) in pairs.items():
        assert stats.pearsonr(one.ravel(), other.ravel()).pvalue > FALSE_ALARM, name


def test_thresholds_are_those_of_the_words_of_a_camera() -> None:
    """Box and Muller's rule on the words of an independent generator, with the functions of the C library."""
    made = tables(integrator={"threshold": {"on": 0.5, "off": 0.3, "spread": 0.04}}, camera={"number": 5})
    for polarity, (table, mean) in enumerate(((made.off, 0.3), (made.on, 0.5))):
        for pixel in range(0, 128 * 96, 997):
            a, b, c, d = philox((pixel, polarity, 0, 11), (5, 0))
            u, v = ((high // 32 * 2**26 + low // 64) / 2**53 for high, low in ((a, b), (c, d)))
            normal = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
            assert abs(table.ravel()[pixel] - 65536 * (mean + 0.04 * normal)) < 1


def test_no_threshold_is_below_a_hundredth_unless_its_mean_is() -> None:
    made = tables(integrator={"threshold": {"on": 0.05, "off": 0.004, "spread": 0.1}})
    assert made.on.min() == round(0.01 * 65536)
    assert made.off.min() == round(0.004 * 65536)
    assert 0.25 < (made.on == made.on.min()).mean() < 0.45  # a third of a normal distribution lies there


def test_the_fixed_pattern_depends_on_the_camera_alone() -> None:
    threshold = {"on": 0.1, "off": 0.1, "spread": 0.02}
    fired = counted(passed(threshold, number=1))
    assert np.array_equal(fired, counted(passed(threshold, number=1, seed=7, index=9)))
    assert not np.array_equal(fired, counted(passed(threshold, number=2)))


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_one_number_is_the_same_as_two_equal_ones(timing: str) -> None:
    fields: dict[str, Any] = {"timing": timing, "noise": {"background": 0.01, "event": 0.1, "shape": 0.02}, "steps": 8}
    moving = actor("circle", velocity=[0.7, 0.2])
    one = config(moving, **fields, integrator={"threshold": 0.3})
    two = config(moving, **fields, integrator={"threshold": {"on": 0.3, "off": 0.3}})
    assert gerd.simulate(one).digest == gerd.simulate(two).digest
    assert one.digest == two.digest


def test_spread_is_an_amount_and_can_be_swept() -> None:
    made = config(
        actor("circle", velocity=[0.7, 0.2]),
        steps=8,
        integrator={"threshold": {"on": 0.3, "off": 0.4}},
        sweep={"integrator.threshold.spread": [0.0, 0.05]},
    )
    ideal, other = gerd.simulate_family(made)
    assert ideal.digest != other.digest
    g = transformation.threshold_spread(0.05)
    assert g(ideal.scene).pixel == other.scene.pixel


def test_a_family_in_time_is_covariant_with_a_fixed_pattern() -> None:
    """Every event at another speed is the same event at another time: thresholds know nothing of time."""
    threshold = {"on": 0.11, "off": 0.17, "spread": 0.03}
    slow = passed(threshold)
    fast = gerd.simulate(slow.config, time_scale={"factor": 2, "keep": "path"})
    for recording in (slow, fast):
        assert len(recording) > 1000
    key = ["y", "x", "t"]
    one, two = (np.sort(recording.events, order=key) for recording in (slow, fast))
    assert np.array_equal(one[["x", "y", "p"]], two[["x", "y", "p"]])
    assert np.abs(one["t"] - 2 * two["t"]).max() <= 2


# Response


def logarithmic(brightness: float, intensity: float, threshold: float, **fields: Any) -> Recording:
    """The passing square of this intensity, on a background of this brightness."""
    made = config(
        actor(**{**PASSING, "intensity": intensity}),
        width=24,
        height=16,
        steps=44,
        timing="exact",
        **{"integrator": {**AT_ZERO, "threshold": threshold, "response": {"log": brightness}}, **fields},
    )
    return gerd.simulate(made)


AT_ZERO: dict[str, Any] = {"initial": 0.0, "warmup": 0}


@pytest.mark.parametrize(("brightness", "intensity"), [(0.1, 1.0), (0.003, 0.3), (2.0, -1.5)])
def test_a_logarithmic_pixel_fires_by_contrast(brightness: float, intensity: float) -> None:
    """A pixel that a shape covers fires ln(1 + i / b) / threshold times, and as often the other way when it leaves."""
    threshold = 0.07
    contrast = math.log(1 + round(intensity * 1024) / 1024 / brightness)
    fired = counted(logarithmic(brightness, intensity, threshold))
    first, last = (1, 0) if intensity > 0 else (0, 1)
    expected = math.floor(abs(contrast) / threshold)
    assert expected > 10
    assert (fired[first] == expected).all()
    assert (fired[last] == expected).all()  # what was left in the integrator is made up for


def test_a_logarithmic_pixel_sees_ratios() -> None:
    """Twice as much light, of shape and background, gives the same events."""
    dim, bright = logarithmic(0.125, 0.5, 0.07), logarithmic(0.25, 1.0, 0.07)
    assert len(dim) > 1000
    assert dim.digest == bright.digest
    assert dim.digest != logarithmic(0.125, 1.0, 0.07).digest


def test_times_of_logarithmic_pixels_are_those_of_the_area() -> None:
    """An upright edge covers a pixel evenly, from sub-pixel to sub-pixel: the time of each passage in closed form."""
    recording = logarithmic(0.1, 1.0, 0.3)
    events = recording.events[(recording.events["x"] == 9) & (recording.events["y"] == 8) & recording.events["p"]]
    edge = -30.0 + 20.0  # of the square at step 0
    for nth, t in enumerate(events["t"].tolist(), 1):
        covered = 0.1 * (math.exp(0.3 * nth) - 1)  # the share at which ln(1 + covered / b) is so many thresholds
        time = (9 + covered - edge) / 2.5 * 1000
        assert abs(t - time) < 1000 / 2.5 / 8  # a sub-pixel
    assert len(events) == math.floor(math.log(11) / 0.3)


def test_a_family_in_time_is_covariant_with_logarithms() -> None:
    """Every event at another speed is the same event at another time."""
    slow = logarithmic(0.1, 1.0, 0.2)
    fast = gerd.simulate(slow.config, time_scale={"factor": 2, "keep": "path"})
    key = ["y", "x", "t"]
    one, two = (np.sort(recording.events, order=key) for recording in (slow, fast))
    assert len(one) > 1000
    assert np.array_equal(one[["x", "y", "p"]], two[["x", "y", "p"]])
    assert np.abs(one["t"] - 2 * two["t"]).max() <= 2


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_logarithms_are_an_amount_and_can_be_swept(timing: str) -> None:
    made = config(
        actor("circle", velocity=[0.7, 0.2]),
        steps=8,
        timing=timing,
        integrator={"response": {"log": 0.2}},
        sweep={"integrator.response.log": [0.1, 0.3]},
    )
    one, other = gerd.simulate_family(made)
    assert one.digest != other.digest
    assert transformation.log_response(0.3)(one.scene).pixel == other.scene.pixel
    assert gerd.simulate(made, member=1, chunk=3).digest == other.digest
    linear = config(actor("circle", velocity=[0.7, 0.2]), steps=8, timing=timing, integrator={"response": "linear"})
    assert linear.digest == config(actor("circle", velocity=[0.7, 0.2]), steps=8, timing=timing, integrator={}).digest
    assert transformation.log_response(0.0)(one.scene).pixel == gerd.simulate(linear).scene.pixel


def test_what_has_no_logarithm_is_refused() -> None:
    """As it is written; where it is drawn, or by a transformation, too."""
    integrator = {"response": {"log": 0.5}}
    for intensity in (-0.5, {"uniform": [-0.6, 1]}, {"choice": [1, -2]}):
        with pytest.raises(ValidationError, match=r"no logarithm on this background; allowed with .* above -0\.5"):
            config(actor(intensity=intensity), integrator=integrator)
    drawn_too_dark = config(actor(intensity={"normal": [-0.4, 4]}), integrator=integrator)
    with pytest.raises(GerdError, match=r"actors\.0\.intensity.*was drawn, which has no logarithm"):
        gerd.simulate_batch(drawn_too_dark, range(20))
    dark = gerd.simulate(config(actor(intensity=-0.4), integrator=integrator)).scene
    with pytest.raises(GerdError, match=r"intensity -0\.4.* has no logarithm on a background of 0\.3"):
        list(run(transformation.log_response(0.3)(dark)))


# Refractory time, hold


def rested(refractory_us: int, threshold: float, *, size: float = 40.0, **fields: Any) -> Recording:
    """The passing square, which takes 400 µs to cover a pixel, seen by pixels that rest."""
    integrator = {**AT_ZERO, "threshold": threshold, "refractory_us": refractory_us, **fields.pop("integrator", {})}
    made = config(
        actor(**{**PASSING, "size": size}),
        width=24,
        height=16,
        **{"steps": 44, "timing": "exact", "integrator": integrator, **fields},
    )
    return gerd.simulate(made)


def of_pixel(recording: Recording, x: int, y: int = 8) -> tuple[list[int], list[int]]:
    """The times of the OFF and of the ON events of a pixel."""
    events = recording.events[(recording.events["x"] == x) & (recording.events["y"] == y)]
    off, on = (events["t"][events["p"] == p].tolist() for p in (False, True))
    return off, on


def shortest_interval(recording: Recording) -> int:
    """Between two events of a pixel, in microseconds."""
    events = np.sort(recording.events, order=["y", "x", "t"])
    same = (np.diff(events["x"]) == 0) & (np.diff(events["y"]) == 0)
    return int(np.diff(events["t"])[same].min())


def test_a_held_integrator_fires_at_the_end_of_each_refractory_time() -> None:
    """It is full after 400 µs, and gives its 16 thresholds one after another; so it does when it is emptied."""
    free, held = rested(0, 1 / 16), rested(900, 1 / 16)
    assert len(free) == len(held) == 24 * 16 * 32
    for x in (3, 17):
        begun_off, begun_on = (times[0] for times in of_pixel(free, x))
        assert of_pixel(held, x) == ([begun_off + 900 * i for i in range(16)], [begun_on + 900 * i for i in range(16)])


def test_a_held_integrator_that_is_reset_to_zero_loses_what_it_held() -> None:
    off, on = of_pixel(rested(900, 1 / 16, integrator={"reset": "zero"}), 5)
    assert (len(on), on[1] - on[0]) == (2, 900)
    assert (len(off), off[1] - off[0]) == (2, 900)


def test_a_held_integrator_fires_only_if_it_is_still_beyond() -> None:
    """The shape has left before the time is over: what is left is one threshold below 0, and not 0.55 above."""
    off, on = of_pixel(rested(9000, 0.45, size=5.0), 9)
    assert len(of_pixel(rested(0, 0.45, size=5.0), 9)[1]) == 2
    assert (len(on), off) == (1, [on[0] + 9000])


@pytest.mark.parametrize(("refractory_us", "steps"), [(1, 1), (1000, 1), (1001, 2), (2500, 3)])
def test_a_refractory_time_is_rounded_up_to_steps(refractory_us: int, steps: int) -> None:
    recording = rested(refractory_us, 1 / 16, timing="step", steps=60)
    _, on = of_pixel(recording, 7)
    assert set(np.diff(on).tolist()) == {1000 * steps}


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("refractory_us", [700, 3000])
def test_no_pixel_fires_again_within_its_refractory_time(timing: str, refractory_us: int) -> None:
    moving: dict[str, Any] = {"velocity": [1.3, 0.4], "border": "bounce"}
    made = config(
        actor("circle", at="uniform", size=9.0, **moving),
        actor("triangle", at="uniform", size=12.0, turn=20.0, intensity=-2.0, **moving),
        width=32,
        height=24,
        steps=40,
        timing=timing,
        noise={"shape": 0.05},
        integrator={"threshold": {"on": 0.1, "off": 0.2, "spread": 0.03}, "refractory_us": refractory_us},
    )
    for index in range(3):
        recording = gerd.simulate(made, index)
        assert len(recording) > 1000
        assert shortest_interval(recording) == max(refractory_us, 1000 if timing == "step" else 0)
        assert shortest_interval(gerd.simulate(made, index, **{"integrator.refractory_us": 0})) < refractory_us + 500


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_the_refractory_time_is_an_amount_and_can_be_swept(timing: str) -> None:
    made = config(
        actor("circle", velocity=[0.7, 0.2]),
        steps=8,
        timing=timing,
        integrator={"threshold": 0.05},
        sweep={"integrator.refractory_us": [0, 2000]},
    )
    ideal, other = gerd.simulate_family(made)
    assert len(ideal) > len(other)
    assert transformation.refractory(2000)(ideal.scene).pixel == other.scene.pixel
    assert [each.digest for each in gerd.simulate_batch(made, [2, 0], member=1)][1] == other.digest
    assert gerd.simulate(made, member=1, chunk=1).digest == other.digest
    with pytest.raises(GerdError, match=r"refractory -1: allowed: microseconds"):
        transformation.refractory(-1)


# Leak


def leaking(hz: float, seconds: int, *, timing: str = "exact", **fields: Any) -> Recording:
    """Nothing moves, for so many seconds in steps of 10 ms."""
    integrator = {"threshold": 0.3, "leak_hz": hz, **fields.pop("integrator", {})}
    return gerd.simulate(
        config(
            actor("circle", size=9.0),
            width=24,
            height=16,
            steps=100 * seconds + 1,
            step_us=10_000,
            timing=timing,
            integrator=integrator,
            **fields,
        )
    )


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_resting_scene_leaks_so_often_a_second(timing: str, spread: float) -> None:
    """ON, each pixel by itself, whatever its threshold is."""
    threshold = {"on": 0.3, "off": 0.2, "spread": spread}
    recording = leaking(5, 20, timing=timing, integrator={"threshold": threshold, "initial": 0.0})
    assert recording.events["p"].all()
    assert (recording.source == FROM_LEAK).all()
    assert recording.background.all()
    fired = counted(recording)[1]
    assert abs(fired.mean() / (5 * 20) - 1) < 0.01
    assert set(np.unique(fired)) <= {99, 100, 101}


def test_a_leak_has_the_times_of_a_straight_line() -> None:
    """From 0, a threshold is reached every 250 ms, to a count in 19 661; and the next at a whole multiple of that."""
    recording = leaking(4, 3, integrator={"initial": 0.0, "warmup": 0})
    _, on = of_pixel(recording, 1)
    assert len(on) == 12
    assert np.abs(np.array(on) - 250_000 * np.arange(1, 13)).max() <= 250_000 / 19_661 + 1


def test_a_leak_belongs_to_the_time_of_the_camera() -> None:
    """The same path at a quarter of the speed takes four times as long, and four times as much leaks in."""
    moving = actor("circle", velocity=[0.4, 0.1], size=9.0)
    fields: dict[str, Any] = {"timing": "exact", "steps": 101, "step_us": 10_000}
    usual = gerd.simulate(config(moving, **fields, integrator={**AT_ZERO, "leak_hz": 6}))
    slow = gerd.simulate(usual.config, time_scale={"factor": 0.25, "keep": "path"})
    number = [np.count_nonzero(each.source == FROM_LEAK) for each in (usual, slow)]
    assert number[0] > 500
    assert 3.5 < number[1] / number[0] < 4.5


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_events_of_edges_are_not_put_down_to_the_leak(timing: str) -> None:
    """With a leak of one threshold in some minutes, the events are those without it, and all are of the edge."""
    moving = actor("circle", velocity=[0.7, 0.2], size=7.0)
    fields: dict[str, Any] = {"timing": timing, "steps": 12, "integrator": {"threshold": 0.13}}
    ideal = gerd.simulate(config(moving, **fields))
    leaky = gerd.simulate(ideal.config, **{"integrator.leak_hz": 0.004})
    assert len(leaky) == len(ideal) > 200
    assert not leaky.background.any()
    assert (leaky.actor == 0).all()


def test_a_leak_that_cannot_be_fired_is_refused() -> None:
    """Integrators would fill up without end."""
    with pytest.raises(ValidationError, match=r"one event of a pixel in 1000 µs: up to 1000"):
        config(integrator={"leak_hz": 1001})
    with pytest.raises(ValidationError, match=r"one event of a pixel in 3000 µs: up to 333"):
        config(integrator={"leak_hz": 400, "refractory_us": 2001})
    with pytest.raises(ValidationError, match=r"one event of a pixel in 2001 µs: up to 499"):
        config(integrator={"leak_hz": 500, "refractory_us": 2001}, timing="exact")
    config(integrator={"leak_hz": 1001}, timing="exact")
    with pytest.raises(ValidationError, match=r"steps of 2e\+06 µs at time scale 1: up to 5000"):
        config(integrator={"leak_hz": 5001}, timing="exact", step_us=1_000_000, time_scale=0.5)
    config(integrator={"leak_hz": 4999}, timing="exact", step_us=1_000_000, time_scale=0.5)


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_the_leak_is_an_amount_and_can_be_swept(timing: str) -> None:
    made = config(actor("circle", velocity=[0.7, 0.2]), steps=8, timing=timing, sweep={"integrator.leak_hz": [0, 90.0]})
    ideal, other = gerd.simulate_family(made)
    assert ideal.events["p"].sum() < other.events["p"].sum()
    assert transformation.leak(90)(ideal.scene).pixel == other.scene.pixel
    with pytest.raises(GerdError, match=r"leak -1: allowed"):
        transformation.leak(-1)


# All of them


EVERYTHING: dict[str, Any] = {
    "threshold": {"on": 0.1, "off": 0.15, "spread": 0.02},
    "response": {"log": 0.3},
    "refractory_us": 1700,
    "leak_hz": 40,
}


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_alone_in_batches_in_chunks_and_endless(timing: str) -> None:
    """The same bits, and the same sources, however the recordings are cut."""
    made = config(
        actor("circle", at="uniform", velocity=[0.9, 0.3], size=7.0, border="bounce"),
        actor("square", velocity=[-0.4, 0.5], turn=20.0, size=5.0, intensity=-0.2, border="bounce"),
        steps=24,
        timing=timing,
        noise={"background": 0.01, "shape": 0.02, "event": 0.1},
        integrator=EVERYTHING,
    )
    whole = [gerd.simulate(made, index) for index in (3, 8)]
    assert {0, 1, FROM_LEAK} == set(whole[0].source.tolist())
    cut = [gerd.simulate(made, index, chunk=5) for index in (3, 8)]
    for one, two, three in zip(whole, gerd.simulate_batch(made, [3, 8]), cut, strict=True):
        for other in (two, three):
            assert np.array_equal(one.keys, other.keys)
            assert np.array_equal(one.source, other.source)
    windows = itertools.islice(gerd.simulate_chunks(made, 3, chunk=6, endless=True), 4)
    events = np.concatenate([window.events for window in windows])
    assert np.array_equal(events, whole[0].events)

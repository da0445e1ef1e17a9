"""Noise against its configured probabilities, measured on events.

Each statistical test may fail with a probability of `FALSE_ALARM` if the program is right; seeds are fixed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats
from support.scenes import FALSE_ALARM, actor, config, simulated

import gerd
from gerd.config.sensor import PerPolarity
from gerd.events.pixel import noise
from gerd.events.pixel.sources import hot
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw

RATES = [0.001, 0.05, 0.5, 1.0]
WIDTHS = [1, 7, 63, 64, 65, 131]  # of 9 rows: less than a block, whole blocks, and blocks that go on in the next row


def likely(count: int, trials: int, p: float) -> bool:
    """Whether `count` successes in `trials` independent trials of probability `p` are no cause for alarm."""
    return bool(stats.binomtest(int(count), int(trials), p).pvalue > FALSE_ALARM)


def triples(recording: Recording) -> set[tuple[int, int, int, int]]:
    return set(map(tuple, recording.coordinates.tolist()))


def test_the_measure_can_fail() -> None:
    assert likely(1000, 100_000, 0.01)
    assert not likely(1200, 100_000, 0.01)


# Background


def background(p: float, width: int, height: int = 9, steps: int = 100, index: int = 0, *actors: Any) -> np.ndarray:
    """(steps, 2, height, width) of a scene in which nothing else happens."""
    recording = simulated(
        *actors, width=width, height=height, steps=steps, noise={"background": p}, seed=width, index=index
    )
    assert recording.background.all()
    return recording.frames().numpy()


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("width", WIDTHS)
def test_background_rate(p: float, width: int) -> None:
    frames = background(p, width, steps=400)
    fired = frames.any(axis=1)
    assert likely(fired.sum(), fired.size, p)
    for polarity in (0, 1):
        assert likely(frames[:, polarity].sum(), fired.size, p / 2)
    assert not frames.all(axis=1).any()  # one event, of one polarity


@pytest.mark.parametrize("p", [0.05, 0.5])
@pytest.mark.parametrize("width", [33, 70, 131])
def test_every_column_and_row_has_the_same_rate(p: float, width: int) -> None:
    fired = background(p, width, steps=400).any(axis=1)
    for axes, lines in (((0, 1), width), ((0, 2), 9), ((1, 2), 400)):
        counts, trials = fired.sum(axis=axes), fired.size / lines
        z = (counts - trials * p) ** 2 / (trials * p * (1 - p))
        assert FALSE_ALARM / 2 < stats.chi2.sf(z.sum(), lines) < 1 - FALSE_ALARM / 2


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize(("on", "off"), [(0.02, 0.01), (0.0, 0.5), (1.0, 0.3)])
def test_each_polarity_has_its_own_rate(on: float, off: float, timing: str) -> None:
    """And fires by itself: a pixel has both in a step with the product of the probabilities."""
    recording = simulated(width=33, height=9, steps=300, timing=timing, noise={"background": {"on": on, "off": off}})
    assert recording.background.all()
    frames = recording.frames(int(timing == "exact")).numpy()
    trials = frames[:, 0].size
    assert likely(frames[:, 1].sum(), trials, on)
    assert likely(frames[:, 0].sum(), trials, off)
    assert likely((frames[:, 0] & frames[:, 1]).sum(), trials, on * off)
    assert len(recording) == frames.sum()  # each at most once in a step
    if timing == "exact":
        inside = (recording.events["t"] - 1) % 1000
        assert stats.kstest(inside, stats.randint(0, 1000).cdf).pvalue > FALSE_ALARM


def test_a_kept_path_keeps_the_noise_of_each_polarity() -> None:
    fields: dict[str, Any] = {"noise": {"background": {"on": 0.2, "off": 0.1}}, "steps": 9}
    faster = config(**fields, time_scale={"factor": 2, "keep": "path"})
    assert gerd.simulate(faster).config.noise.background == PerPolarity(on=0.4, off=0.2)
    with pytest.raises(ValidationError, match=r"makes noise\.background\.on 1\.2"):
        config(**fields, time_scale={"factor": 6, "keep": "path"})


def test_background_events_are_independent() -> None:
    """Disjoint pairs of neighbours in x, across a block's edge, in y, in time, and of recordings fire as p²."""
    p = 0.3
    fired = background(p, 70, steps=400).any(axis=1)
    other = background(p, 70, steps=400, index=1).any(axis=1)
    pixels = fired.reshape(400, -1)
    pairs = {
        "x": fired[..., 0::2] & fired[..., 1::2],
        "half a block": fired[..., :32] & fired[..., 32:64],
        "block": pixels[..., 63] & pixels[..., 64],
        "blocks": pixels[..., :64] & pixels[..., 64:128],
        "y": fired[:, 0:8:2] & fired[:, 1:8:2],
        "time": fired[0::2] & fired[1::2],
        "recording": fired & other,
    }
    for name, both in pairs.items():
        assert likely(both.sum(), both.size, p * p), name


def test_how_many_of_a_block_fire_is_binomial() -> None:
    counts = background(0.1, 64, steps=800).any(axis=1).reshape(-1, 64).sum(axis=1)
    expected = stats.binom.pmf(np.arange(15), 64, 0.1) * len(counts)
    found = np.bincount(np.minimum(counts, 14), minlength=15)
    expected[14] = len(counts) - expected[:14].sum()
    assert stats.chisquare(found, expected).pvalue > FALSE_ALARM


def test_polarities_are_independent_of_each_other() -> None:
    frames = background(1.0, 64, steps=200)[:, 1]  # every pixel fires: the polarity alone is random
    for both in (frames[..., 0::2] & frames[..., 1::2], frames[0::2] & frames[1::2], frames[:, 0] & frames[:, 1]):
        assert likely(both.sum(), both.size, 0.25)


def test_background_does_not_depend_on_the_scene() -> None:
    """With any number of actors the events are the scene's own and those of the empty frame, each once."""
    fields: dict[str, Any] = {"width": 40, "height": 20, "steps": 30}
    alone = triples(simulated(**fields, noise={"background": 0.05}))
    assert len(alone) > 1000
    for actors in (
        [actor(velocity=[0.7, 0.3])],
        [actor("circle", velocity=[-0.4, 0.2], size=s) for s in (3.0, 9.0, 5.0)],
    ):
        signal = triples(simulated(*actors, **fields))
        noisy = simulated(*actors, **fields, noise={"background": 0.05})
        assert signal
        assert triples(noisy) == alone | signal
        flagged = {tuple(row) for row in noisy.coordinates[noisy.background].tolist()}
        assert flagged == alone - signal


# Shape noise


@pytest.mark.parametrize("p", [0.001, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("width", [33, 70])
def test_shape_noise_rate(p: float, width: int) -> None:
    """A threshold of 1/2 and a reset to zero turn every change of a covered pixel into an event.

    So ON minus OFF events so far tell whether a pixel is there (the higher of two levels) or missing.
    """
    recording = simulated(
        actor(size=400.0),
        width=width,
        height=9,
        steps=400,
        noise={"shape": p},
        integrator={"initial": 0.0, "reset": "zero"},
    )
    frames = recording.frames().numpy().astype(np.int64)
    level = np.cumsum(np.concatenate([np.zeros((1, 9, width), np.int64), frames[:, 1] - frames[:, 0]]), axis=0)
    lowest, highest = level.min(axis=0), level.max(axis=0)
    assert (highest - lowest <= 1).all()
    missing = (level == lowest) & (lowest < highest)
    assert likely(missing.sum(), missing.size, p)
    for both in (missing[:, :, 0:32:2] & missing[:, :, 1:32:2], missing[1::2] & missing[2::2]):
        assert likely(both.sum(), both.size, p * p)


def test_a_shape_that_is_always_missing_is_never_seen() -> None:
    assert len(simulated(actor(velocity=[1.0, 0.3]), width=33, noise={"shape": 1.0}, integrator={})) == 0


def test_shape_noise_gives_both_polarities_inside_the_shape_and_none_outside() -> None:
    still = actor(at=[20.0, 10.0], size=12.0)
    recording = simulated(still, width=40, height=20, steps=50, noise={"shape": 0.1}, integrator={})
    covered = recording.images()[0] == 1
    frames = recording.frames().numpy()
    assert covered.sum() == 144
    assert frames[:, 0][:, covered].sum() > 100
    assert frames[:, 1][:, covered].sum() > 100
    assert not frames[:, :, ~covered].any()
    assert not recording.background.any()


# Event noise


@pytest.mark.parametrize("p", RATES)
def test_event_noise_rate(p: float) -> None:
    fields: dict[str, Any] = {"width": 70, "height": 40, "steps": 150, "integrator": {"threshold": 0.1}}
    moving = actor(velocity=[0.9, 0.4], size=20.0, border="wrap")
    clean = triples(simulated(moving, **fields))
    kept = triples(simulated(moving, **fields, noise={"event": p}))
    assert len(clean) > 20_000
    assert kept <= clean
    assert likely(len(kept), len(clean), 1 - p)


def test_dropped_events_are_independent() -> None:
    """All pixels fire at step 0: which are dropped has no pattern between neighbours or recordings."""
    kept = [
        simulated(flash(), width=128, height=128, steps=1, noise={"event": 0.4}, index=index).frames()[0, 1].numpy()
        for index in (0, 1)
    ]
    for both in (kept[0][:, 0::2] & kept[0][:, 1::2], kept[0][0::2] & kept[0][1::2], kept[0] & kept[1]):
        assert likely(both.sum(), both.size, 0.36)


# The initial state


def flash(brightness: float = 1.0) -> dict[str, Any]:
    """The whole frame turns bright between step -1 and step 0."""
    jump = actor(size=400.0, intensity=brightness)
    jump["translation"]["acceleration"] = [{"profile": "pulse", "amplitude": -4000.0, "at": -1.0}, 0.0]
    return jump


@pytest.mark.parametrize(("initial", "change", "fires"), [(0.5, 0.4, 0), (0.5, 0.6, 1), (-0.5, 1.4, 0), (-0.5, 1.6, 1)])
def test_an_initial_state_is_given_in_thresholds(initial: float, change: float, fires: int) -> None:
    given_state = {"initial": initial, "threshold": 2.0, "warmup": 0}
    fired = simulated(flash(2 * change), steps=1, integrator=given_state)
    assert len(fired) == fires * 16 * 12


@pytest.mark.parametrize(("change", "share"), [(0.1, 0.0), (0.5, 0.4 / 1.8), (1.0, 0.5), (1.4, 1.3 / 1.8), (1.9, 1.0)])
def test_the_initial_state_is_uniform(change: float, share: float) -> None:
    """Pixels that brighten by `change` thresholds fire if their state is above 1 - change, out of ±0.9."""
    uniform = {"initial": "uniform", "threshold": 1.0, "warmup": 0}
    fired = simulated(flash(change), width=128, height=128, steps=1, integrator=uniform).frames()[0, 1].numpy()
    assert likely(fired.sum(), fired.size, share) or abs(fired.mean() - share) < 0.001  # the state is a whole number
    if 0 < share < 1:
        for both in (fired[:, 0::2] & fired[:, 1::2], fired[0::2] & fired[1::2]):
            assert likely(both.sum(), both.size, share**2)


# Zero, families, tables


def test_no_noise_is_exactly_none() -> None:
    moving = actor(velocity=[0.7, 0.2])
    plain = simulated(moving, steps=20)
    assert not plain.background.any()
    zero = simulated(moving, steps=20, noise={"background": 0.0, "shape": 0.0, "event": 0.0}, seed=99)
    assert zero.digest == plain.digest  # not even the seed shows
    assert simulated(moving, steps=20, noise={"shape": 0.01}).digest != plain.digest


def test_the_members_of_a_family_share_their_noise() -> None:
    """Background: the same events. Event noise: an event that two members have is kept in both or in neither."""
    family = config(
        actor(velocity=[0.5, 0.1], size=10.0), steps=40, noise={"background": 0.02}, sweep={"time_scale": [1.0, 2.0]}
    )
    alone = triples(gerd.simulate(family, 0, 0, backend="torch", actors=[]))
    for member in (1.0, 2.0):
        recording = gerd.simulate(family, backend="torch", time_scale=member)
        assert {tuple(row) for row in recording.coordinates[recording.background].tolist()} <= alone
        assert alone <= triples(recording)
    values: list[dict[str, Any]] = [{"actors.0.intensity": member, "time_scale": 1.0} for member in (1.0, 1.1)]
    clean = [triples(gerd.simulate(family, backend="torch", **{"noise.background": 0.0}, **value)) for value in values]
    noisy: dict[str, Any] = {"noise.background": 0.0, "noise.event": 0.5}
    kept = [triples(gerd.simulate(family, backend="torch", **noisy, **value)) for value in values]
    shared = clean[0] & clean[1]
    assert len(shared) > 20
    assert kept[0] & shared == kept[1] & shared
    assert 0 < len(kept[0] & shared) < len(shared)


@pytest.mark.parametrize("p", [1e-9, 0.001, 0.3, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("pixels", [1, 2, 17, 63, 64])
def test_the_table_is_the_binomial_distribution(p: float, pixels: int) -> None:
    table = noise.binomial_table(p, pixels)
    assert table.shape == (64,)
    np.testing.assert_allclose(
        table[:pixels] / 2**32, stats.binom.cdf(np.arange(pixels), pixels, p), rtol=0, atol=2.0**-31
    )
    assert (table[pixels:] == 2**32).all()  # no word reaches these: never more than all pixels


@pytest.mark.parametrize(("pixels", "last"), [(1, 1), (63, 63), (64, 64), (65, 1), (128, 64), (259, 3)])
def test_the_last_block_has_the_rest_of_the_frame(pixels: int, last: int) -> None:
    whole, rest = noise.block_tables(0.3, pixels)
    np.testing.assert_array_equal(whole, noise.binomial_table(0.3, 64))
    np.testing.assert_array_equal(rest, noise.binomial_table(0.3, last))
    assert noise.last_block(pixels) == last


def test_bounds() -> None:
    assert [noise.drop_bound(p) for p in (0.0, 0.5, 1.0)] == [0, 2**31, 2**32]
    for threshold in (1, 2, 9, 10, 11, 32768):
        m = noise.largest_initial(threshold)
        assert m < 0.9 * threshold <= m + 1
    assert math.isclose(noise.largest_initial(32768) / 32768, 0.9, rel_tol=1e-4)


# The camera's fixed pattern


def odd_pixels(number: int, *, seed: int = 0, index: int = 0, **noise: Any) -> tuple[np.ndarray, Recording]:
    """(height, width) events of each pixel in an empty scene, and the recording."""
    recording = simulated(
        width=80, height=60, steps=200, seed=seed, index=index, camera={"number": number}, noise=noise
    )
    return recording.frames(counts=True).numpy().sum(axis=(0, 1)), recording


@pytest.mark.parametrize("timing", ["step", "exact"])
@pytest.mark.parametrize(("share", "rate_hz"), [(0.02, 50.0), (0.3, 400.0)])
def test_hot_pixels_fire_on_at_their_rate(share: float, rate_hz: float, timing: str) -> None:
    recording = simulated(
        width=80, height=60, steps=400, timing=timing, noise={"hot": {"share": share, "rate_hz": rate_hz}}
    )
    assert recording.background.all()
    assert recording.events["p"].all()
    pixels = np.unique(recording.coordinates[:, 1:3], axis=0)
    assert likely(len(pixels), 80 * 60, share)  # in 20 events or more, none of them has been silent
    steps = 400 if timing == "step" else 399  # exact timing has no events at step 0
    assert likely(len(recording), len(pixels) * steps, rate_hz * 1e-3)


def test_hot_pixels_fire_at_any_microsecond_of_a_step() -> None:
    recording = simulated(width=80, height=60, steps=50, timing="exact", noise={"hot": {"share": 0.5}})
    inside = (recording.events["t"] - 1) % 1000
    assert stats.kstest(inside, stats.randint(0, 1000).cdf).pvalue > FALSE_ALARM


def test_dead_pixels_are_silent_and_no_others() -> None:
    everywhere = {"background": 0.5}
    alive, _ = odd_pixels(3, **everywhere)
    left, _ = odd_pixels(3, **everywhere, dead=0.2)
    assert (alive > 0).all()
    assert np.array_equal(left[left > 0], alive[left > 0])  # the others fire as they did
    assert likely((left == 0).sum(), left.size, 0.2)


def test_the_fixed_pattern_is_that_of_the_camera_and_not_of_the_recording() -> None:
    noise: dict[str, Any] = {"hot": {"share": 0.1, "rate_hz": 900.0}}
    first, one = odd_pixels(1, **noise)
    again, other = odd_pixels(1, seed=5, index=7, **noise)
    assert np.array_equal(first > 0, again > 0)
    assert one.digest != other.digest
    another, _ = odd_pixels(2, **noise)
    assert likely(((first > 0) & (another > 0)).sum(), first.size, 0.01)
    more, _ = odd_pixels(1, hot={"share": 0.2, "rate_hz": 900.0})
    assert (more[first > 0] > 0).all()


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_hot_pixels_of_many_steps_are_those_of_each_step(timing: str) -> None:
    """Of so many pixels, the random numbers of a few steps are held together."""
    sensor = {"width": 512, "height": 512}
    made = gerd.Config(sensor=sensor, steps=10, timing=timing, noise={"hot": {"share": 1.0}}, actors=[])
    scenes = draw(plan_of(made), [0])
    each = [hot(scenes, 0, range(step, step + 1)) for step in range(10)]
    assert np.array_equal(hot(scenes, 0, range(10)), np.concatenate(each))


def test_dead_pixels_are_dead_although_they_are_hot() -> None:
    both, _ = odd_pixels(1, hot={"share": 1.0, "rate_hz": 900.0}, dead=1.0)
    assert not both.any()

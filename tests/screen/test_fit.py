"""Cameras that are simulated with known values, or by another program, are given back by `gerd fit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import run_here

import gerd
from gerd.config.config import Config
from gerd.screen.passages import Passages
from gerd.screen.refractory import fit_refractory
from gerd.screen.thresholds import ThresholdFit, fit_thresholds

SCENE: dict[str, Any] = {
    "sensor": {"width": 40, "height": 40},
    "steps": 240,
    "seed": 5,
    "actors": [
        {
            "shape": "square",
            "translation": {"velocity": [1.1, 0.6], "acceleration": 0},
            "scale": {"start": 13, "acceleration": 0},
        },
        {
            "shape": "circle",
            "intensity": 0.7,
            "translation": {"velocity": [-0.7, 0.8], "acceleration": 0},
            "scale": {"start": 11, "acceleration": 0},
        },
    ],
}
CAMERA: dict[str, Any] = {
    "timing": "exact",
    "integrator": {"threshold": {"on": 0.15, "off": 0.2, "spread": 0.02}, "refractory_us": 120},
    "noise": {"background": {"on": 0.0008, "off": 0.0004}, "hot": {"share": 0.015, "rate_hz": 80}, "dead": 0.02},
}


def fitted(camera: dict[str, Any], folder: Path, count: int = 10) -> gerd.CameraFit:
    gerd.generate({**SCENE, **camera}, folder / "data", count, workers=1)
    return gerd.fit(folder / "data")


def pasted(text: str) -> Config:
    """The config of the scene, in exact timing, with these lines below."""
    scene = "".join(f"{name}: {json.dumps(value)}\n" for name, value in SCENE.items())
    return gerd.parse(f"{scene}timing: exact\n{text}")


def check_thresholds(found: gerd.CameraFit, on: float, off: float, spread: float) -> None:
    fit = found.thresholds
    assert fit is not None
    assert fit.on.value == pytest.approx(on, rel=0.05)
    assert fit.off.value == pytest.approx(off, rel=0.05)
    assert fit.spread.value == pytest.approx(spread, rel=0.2)
    for estimate in (fit.on, fit.off, fit.spread):
        assert estimate.low < estimate.value < estimate.high < 1.3 * estimate.value


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> gerd.CameraFit:
    return fitted(CAMERA, tmp_path_factory.mktemp("exact"))


def test_a_camera_in_exact_timing_is_given_back(found: gerd.CameraFit) -> None:
    check_thresholds(found, 0.15, 0.2, 0.02)
    assert found.background_on is not None
    assert found.background_off is not None
    assert found.background_on.value == pytest.approx(0.0008, rel=0.1)
    assert found.background_off.value == pytest.approx(0.0004, rel=0.1)
    assert found.hot_rate_hz is not None
    assert found.hot_rate_hz.value == pytest.approx(80, rel=0.1)
    assert found.refractory.us is not None
    assert found.refractory.us.value == pytest.approx(120, rel=0.1)
    assert not found.refractory.loses_events


def test_hot_and_dead_pixels_are_all_found(found: gerd.CameraFit) -> None:
    """As many as there are, which the same camera tells that sees nothing, or has no noise."""
    size = SCENE["sensor"]["width"] * SCENE["sensor"]["height"]
    hot = gerd.simulate({**SCENE, "actors": [], "steps": 3000, "noise": {"hot": CAMERA["noise"]["hot"]}})
    assert found.hot.value * size == len(np.unique(hot.coordinates[:, 1:3], axis=0))
    alive = gerd.simulate({**SCENE, "actors": [], "steps": 3000, "noise": {"background": 0.05, "dead": 0.02}})
    assert found.dead is not None
    assert found.dead.value == pytest.approx(1 - len(np.unique(alive.coordinates[:, 1:3], axis=0)) / size, abs=0.002)
    assert found.dead.low < 0.02 < found.dead.high


def test_what_is_printed_is_a_part_of_a_config(
    found: gerd.CameraFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config = pasted(found.yaml)
    assert found.thresholds is not None
    assert config.integrator.thresholds.on == pytest.approx(found.thresholds.on.value, rel=1e-3)
    assert config.integrator.refractory_us == 120
    assert config.noise.hot.rate_hz == pytest.approx(80, rel=0.1)
    monkeypatch.chdir(tmp_path)
    gerd.generate({**SCENE, "sensor": {"width": 12, "height": 12}, "steps": 20}, "small", 2, workers=1)
    assert run_here("fit", "small", "-n", "1", "--out", "camera.yaml") == 0
    said = capfd.readouterr().out
    assert "# Fitted to 1 recording of small.\n" in said
    assert (tmp_path / "camera.yaml").read_text() == said
    pasted(said)
    assert run_here("fit", "nowhere") == 1
    assert "nowhere: there is no such dataset" in capfd.readouterr().err


def test_a_camera_in_step_timing_is_given_back(tmp_path: Path) -> None:
    camera = {"integrator": {"threshold": {"on": 0.3, "off": 0.25, "spread": 0.03}}, "noise": {"background": 0.0004}}
    found = fitted(camera, tmp_path, 12)
    check_thresholds(found, 0.3, 0.25, 0.03)
    for estimate in (found.background_on, found.background_off):
        assert estimate is not None
        assert estimate.value == pytest.approx(0.0002, rel=0.15)
        assert estimate.low < 0.0002 < estimate.high
    assert found.hot.value == 0
    assert found.hot_rate_hz is None
    assert found.refractory.us is None
    assert found.readout is None


def test_late_events_are_no_noise_and_dead_pixels_no_silence(tmp_path: Path) -> None:
    """In step timing a pixel has one event in a step, so that those of an edge come for six steps after it."""
    noise = {"background": {"on": 0.002, "off": 0.001}, "dead": 0.3}
    found = fitted({"integrator": {"threshold": 0.15}, "noise": noise}, tmp_path, 6)
    assert found.background_on is not None
    assert found.background_off is not None
    assert found.background_on.value == pytest.approx(0.002, rel=0.1)
    assert found.background_off.value == pytest.approx(0.001, rel=0.1)
    assert found.dead is not None
    assert found.dead.low < 0.3 < found.dead.high


def test_a_response_to_the_logarithm_is_taken_into_account(tmp_path: Path) -> None:
    camera = {"timing": "exact", "integrator": {"response": {"log": 0.2}, "threshold": {"on": 0.4, "off": 0.35}}}
    found = fitted(camera, tmp_path, 3)
    assert found.response == 0.2
    fit = found.thresholds
    assert fit is not None
    assert fit.on.value == pytest.approx(0.4, rel=0.02)
    assert fit.off.value == pytest.approx(0.35, rel=0.02)
    assert fit.spread.value < 0.01


QUIET: dict[str, Any] = {"timing": "exact", "integrator": {"threshold": {"on": 0.15, "off": 0.2}}}
NOISY: dict[str, Any] = {
    "timing": "exact",
    "integrator": {"threshold": {"on": 0.15, "off": 0.2, "spread": 0.02}},
    "noise": {"background": {"on": 0.0008, "off": 0.0004}},
}


@pytest.mark.parametrize(
    ("camera", "latency", "jitter"),
    [(QUIET, 300, 40), (NOISY, 300, 40), (NOISY, 600, 120)],
    ids=["alike", "noisy", "far"],
)
def test_latency_and_jitter_are_given_back(
    camera: dict[str, Any], latency: float, jitter: float, tmp_path: Path
) -> None:
    """Jitter of 120 µs is as much as the time between events of an edge, which change places then."""
    found = fitted({**camera, "readout": {"latency_us": latency, "jitter_us": jitter}}, tmp_path, 3)
    assert found.readout is not None
    late, scattered = found.readout.latency_us, found.readout.jitter_us
    assert late is not None
    assert scattered is not None
    assert late.value == pytest.approx(latency, rel=0.1)
    assert scattered.value == pytest.approx(jitter, rel=0.2)
    for estimate in (late, scattered):
        assert estimate.low < estimate.value < estimate.high < 1.25 * estimate.value
    readout = pasted(found.yaml).readout
    assert readout.latency_us == pytest.approx(late.value, rel=1e-3)
    assert readout.jitter_us == pytest.approx(scattered.value, rel=1e-3)


@pytest.mark.parametrize("camera", [QUIET, NOISY], ids=["alike", "noisy"])
def test_events_that_are_not_late_have_no_readout(camera: dict[str, Any], tmp_path: Path) -> None:
    found = fitted(camera, tmp_path, 3)
    assert found.readout is not None
    for estimate in (found.readout.latency_us, found.readout.jitter_us):
        assert estimate is not None
        assert estimate.low == 0 <= estimate.value < estimate.high < 2
    assert "# readout: none is seen; latency_us at most 0." in found.yaml
    assert pasted(found.yaml).readout == Config.model_fields["readout"].get_default(call_default_factory=True)


def test_jitter_without_a_latency_makes_events_late_only(tmp_path: Path) -> None:
    """None comes before it happens: half of them are not late at all."""
    found = fitted({**NOISY, "readout": {"jitter_us": 60}}, tmp_path, 3)
    assert found.readout is not None
    late, scattered = found.readout.latency_us, found.readout.jitter_us
    assert late is not None
    assert scattered is not None
    assert late.low <= 0 <= late.value < 12
    assert scattered.value == pytest.approx(60, rel=0.2)


def test_a_latency_of_many_steps_is_said_to_be_one(tmp_path: Path) -> None:
    found = fitted({**QUIET, "readout": {"latency_us": 2500}}, tmp_path, 2)
    assert "  latency_us: 2500  # " in found.yaml
    assert "  jitter_us: 0  # " in found.yaml
    assert "# readout: events come so many steps late that thresholds and noise above may be wrong" in found.yaml
    assert pasted(found.yaml).readout.latency_us == 2500


def test_events_that_a_refractory_time_loses_are_noticed(tmp_path: Path) -> None:
    lossy = {**CAMERA["integrator"], "threshold": 0.07, "refractory": "drop"}
    found = fitted({"timing": "exact", "integrator": lossy}, tmp_path, 4)
    assert found.refractory.us is not None
    assert found.refractory.us.value == pytest.approx(120, rel=0.1)
    assert found.refractory.loses_events
    assert "# readout: the events that are lost leave open when the others have happened" in found.yaml
    assert "refractory: drop  # events are lost in it, so that the thresholds below are too high" in found.yaml


def test_what_cannot_be_fitted_is_said(tmp_path: Path) -> None:
    nothing = fitted({"actors": [], "noise": {"background": 0.01}}, tmp_path, 1)
    assert nothing.thresholds is None
    assert nothing.dead is None
    assert nothing.background_on is not None
    assert "# integrator: too few pixels were passed by edges" in nothing.yaml
    pasted(nothing.yaml)
    dark = fitted({"timing": "exact", "actors": [], "noise": {"background": 0.01}}, tmp_path / "dark", 1)
    assert "# readout: too few pixels became brighter and darker by edges slower than they are" in dark.yaml
    gerd.generate({**SCENE, "integrator": {"reset": "zero"}}, tmp_path / "zero", 1, workers=1)
    with pytest.raises(gerd.GerdError, match=r"integrator\.reset is 'zero'; allowed: subtract, or timing exact"):
        gerd.fit(tmp_path / "zero")
    with pytest.raises(gerd.GerdError, match="count 0: allowed: a whole number, 1 or more"):
        gerd.fit(tmp_path / "zero", count=0)


def test_of_a_registered_recording_no_readout_is_known(tmp_path: Path) -> None:
    """The same dataset, said to be a camera's that has the pixels of the screen."""
    gerd.generate({**SCENE, **QUIET, "readout": {"latency_us": 300}}, tmp_path / "data", 1, workers=1)
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_bytes())
    (tmp_path / "data" / "manifest.json").write_text(json.dumps({**manifest, "recorded": True}))
    same = {"view": {"parameters": [1.0, 0, 0, 0, 1, 0, 0, 0, 0]}, "zoom": 1, "corner": [0, 0], "camera": [40, 40]}
    same |= {"screen": [40, 40], "levels": [64, 192], "gamma": 2.2}
    (tmp_path / "data" / "registration.json").write_text(json.dumps(same))
    found = gerd.fit(tmp_path / "data")
    assert (
        "# readout: latency is a part of the clock's offset, and jitter not told from the time a screen" in found.yaml
    )
    assert "\nreadout:" not in found.yaml
    pasted(found.yaml)


def test_a_damaged_registration_is_named(tmp_path: Path) -> None:
    data = gerd.generate({**SCENE, "steps": 5}, tmp_path / "data", 1, workers=1)
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_bytes())
    (tmp_path / "data" / "manifest.json").write_text(json.dumps({**manifest, "recorded": True}))
    flat = {"view": {"parameters": [0.0] * 9}, "zoom": 1, "corner": [0, 0], "camera": [9, 9], "screen": [9, 9]}
    flat |= {"levels": [64, 192], "gamma": 2.2}
    for content in ("{}", "[", '{"view": 3}', json.dumps(flat), json.dumps({**flat, "zoom": "1"})):
        (tmp_path / "data" / "registration.json").write_text(content)
        with pytest.raises(gerd.StorageError, match=r"registration.json: is damaged: it is not what gerd register"):
            gerd.fit(str(data.path))


def by_hand(seed: int) -> ThresholdFit:
    """A fit to integrators in a loop of Python: levels that go up and down, by amounts of their own."""
    chance = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {name: [] for name in ("chain", "pixel", "level", "on", "off", "side")}
    for pixel in range(400):
        theta_on, theta_off = chance.normal(0.4, 0.04), chance.normal(0.3, 0.04)
        v, level, on, off = -theta_off * chance.uniform(), 0.0, 0, 0
        for turn in range(6):
            change = 0.0 if turn == 0 else float(chance.uniform(1.0, 2.0)) * (1 if turn % 2 else -1)
            v, level = v + change, level + change
            while v >= theta_on:
                v, on = v - theta_on, on + 1
            while v <= -theta_off:
                v, off = v + theta_off, off + 1
            side = 1 if change > 0 else -1
            for name, value in zip(rows, (pixel, pixel, level, on, off, side), strict=True):
                rows[name].append(value)
    fit = fit_thresholds(Passages(*(np.array(each) for each in rows.values())), np.zeros(400, bool), 0.0)
    assert fit is not None
    return fit


def test_thresholds_of_passages_that_are_made_by_hand() -> None:
    fit = by_hand(3)
    assert fit.on.value == pytest.approx(0.4, abs=5 * 0.04 / 20)
    assert fit.off.value == pytest.approx(0.3, abs=5 * 0.04 / 20)
    assert fit.spread.value == pytest.approx(0.04, rel=0.15)


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """In 95 of 100 cases: fewer than 49 of 60 would happen by chance once in 10 000 times."""
    fits = [by_hand(seed) for seed in range(60)]
    for name, truth in (("on", 0.4), ("off", 0.3), ("spread", 0.04)):
        estimates = [getattr(fit, name) for fit in fits]
        assert sum(each.low <= truth <= each.high for each in estimates) >= 49, name


def test_the_shortest_intervals_may_be_none_of_the_pixel() -> None:
    chance = np.random.default_rng(4)
    long = chance.integers(300, 3000, 20_000)
    noise = chance.integers(1, 3000, 60)
    sharp = fit_refractory(np.concatenate([long, noise]), 1.0)
    assert sharp.us is not None
    assert sharp.us.value == pytest.approx(300, rel=0.02)
    assert sharp.us.low <= 300 <= sharp.us.high
    smooth = fit_refractory(np.rint(300 + chance.gamma(4, 300, 20_000)).astype(int), 0.0)
    assert smooth.us is None
    assert 300 <= smooth.at_most_us < 400
    assert fit_refractory(np.arange(5), 0.0).at_most_us == float("inf")

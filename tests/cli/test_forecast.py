"""What `gerd check` foretells, against what comes of it: within the range that it states, and not beyond its budget."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import bounded

import gerd
from gerd.cli.contrast import too_faint
from gerd.cli.dry_run import dry_run
from gerd.cli.forecast import INDICES, SURE, forecast, total
from gerd.config.config import Config
from gerd.config.sweep import member, member_count

COUNT = 50  # indices of a dataset that is foretold
SEEDS = 12
STATED = 0.01  # how often the truth may lie outside of the range, as check prints it

SCENES = {
    "wandering": "actors: [{shape: square, rotation: {}, scale: {start: 9}}]",
    "crossing": "actors: [{shape: circle, scale: {start: 6}, translation: {start: uniform, "
    "velocity: {uniform: [-2, 2]}}}]",
    "crowds": "actors: [{shape: {choice: [circle, square, triangle]}, repeat: {uniform: [0, 4]}, scale: {start: 5}, "
    "translation: {start: uniform, velocity: {normal: [0, 1]}}}]",
    "noisy": "noise: {background: 0.01, shape: 0.01, event: 0.2}\nactors: [{shape: triangle, translation: {}}]",
    "exact": "timing: exact\nactors: [{shape: circle, scale: {start: 8}, translation: {velocity: {uniform: [0, 1]}}}]",
    "swept": "actors: [{shape: square, scale: {start: 9}, rotation: {}}]\nsweep: {time_scale: [0.5, 1, 2]}",
}


@pytest.mark.parametrize("name", SCENES)
def test_the_truth_lies_in_the_range_that_is_stated(name: str) -> None:
    """One more miss in twelve than one in a hundred: that happens in one run of 160 if the statement is true."""
    misses = 0
    for seed in range(SEEDS):
        config = gerd.parse(f"seed: {seed}\nsensor: {{width: 24, height: 20}}\nsteps: 16\n{SCENES[name]}")
        members = member_count(config)
        parts = [forecast(member(config, number)) for number in range(members)]
        assert all(part.whole for part in parts)
        low, high = total(parts, COUNT * members, members)
        recordings = [each for k in range(members) for each in gerd.simulate_batch(config, range(COUNT), member=k)]
        misses += not low <= sum(map(len, recordings)) <= high
        assert low > 0
        assert high < 20 * low
    assert misses <= 1
    assert STATED * 100 == 1
    assert SURE > 2.861  # Student's t with 19 degrees of freedom, 99 %


def test_few_recordings_are_known_exactly() -> None:
    config = gerd.parse(f"sensor: {{width: 24, height: 20}}\nsteps: 16\n{SCENES['crowds']}")
    part = forecast(config)
    counts = [len(recording) for recording in gerd.simulate_batch(config, range(INDICES))]
    assert part.events.tolist() == counts
    assert total([part], 7, 1) == (sum(counts[:7]), sum(counts[:7]))
    assert total([part], INDICES, 1) == (sum(counts), sum(counts))


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_steps_that_are_not_simulated_are_told_from_the_motion(timing: str) -> None:
    """A random walk speeds up: the first steps alone would foretell a third of the events."""
    config = gerd.parse(
        f"sensor: {{width: 40, height: 40}}\nsteps: 400\ntiming: {timing}\n"
        "actors: [{shape: square, translation: {acceleration: {normal: [0, 0.02]}}}]"
    )
    part = forecast(config, seconds=0.03)
    assert 1 < part.steps < 200
    counts = [len(recording) for recording in gerd.simulate_batch(config, range(INDICES))]
    low, high = total([part], INDICES, 1)
    assert low <= sum(counts) <= high
    assert 0.6 < part.events.mean() / np.mean(counts) < 1.6


@pytest.mark.parametrize("timing", ["step", "exact"])
def test_a_recording_that_is_not_simulated_at_all_is_told_from_the_motion(timing: str) -> None:
    config = gerd.parse(
        f"sensor: {{width: 40, height: 40}}\nsteps: 30\ntiming: {timing}\n"
        "actors: [{shape: circle, scale: {start: 9}, translation: {velocity: {uniform: [-1, 1]}}}]"
    )
    part = forecast(config, seconds=1e-9)
    assert part.steps == 0
    counts = [len(recording) for recording in gerd.simulate_batch(config, range(INDICES))]
    low, high = total([part], INDICES, 1)
    assert low <= sum(counts) <= high


def test_a_motion_that_takes_long_by_itself_is_foretold_or_refused() -> None:
    """With a speed limit each unit of own time is looked at by itself, of which a fast motion has many in a step."""
    limited = """
sensor: {width: 20, height: 10}
steps: 20
time_scale: 1000
actors: [{shape: square, scale: {start: 6, acceleration: 0}, translation: {velocity: 1, speed_limit: 3}}]
"""
    assert forecast(gerd.parse(limited)).seconds > 0.5  # (5 + 20) · 1000 units of 30 µs
    with pytest.raises(gerd.ConfigError, match=r"integrator\.warmup: .* steps with a speed limit; allowed: 100000"):
        forecast(gerd.parse(f"{limited}transform: [time_scale: 100]"))


def test_many_actors_that_hide_each_other_take_long_for_each_pair() -> None:
    text = "sensor: {width: 9, height: 9}\nsteps: 30\nactors: [{shape: square, repeat: NUMBER}]"
    few, many = (forecast(gerd.parse(text.replace("NUMBER", str(n))), 1e-9).seconds for n in (15, 60))
    assert many > 8 * few


HUGE = {
    "fast": "sensor: {width: 100, height: 100}\nsteps: 1000\ntime_scale: 1000\ntiming: exact\n"
    "actors: [{shape: circle, translation: {velocity: 1}}]",
    "long": "sensor: {width: 2000, height: 2000}\nsteps: 100000000\nnoise: {background: 0.1}\n"
    "actors: [{shape: circle, translation: {velocity: 1}}]",
    "warm": "integrator: {warmup: 90000}\ntiming: exact\ntime_scale: 0.01\nnoise: {shape: 0.1}\n"
    "sensor: {width: 1000, height: 1000}\nactors: [{shape: circle, translation: {velocity: 1, acceleration: 0}}]",
    "hot": "steps: 1000000\nnoise: {hot: {share: 1, rate_hz: 0.001}}\nactors: []",
    "noisy": "steps: 1000000\nnoise: {background: {on: 1, off: 1}}\nactors: []",
    "crowded": "sensor: {width: 16384, height: 16384}\nupsampling: 32\nactors:\n"
    + "- {shape: {text: '@&%@&%@&%'}, scale: {start: 9000}, translation: {velocity: 50, start: uniform}}\n" * 64,
}


@pytest.mark.parametrize(
    "motion",
    ["translation: {velocity: [1.0e+7, 3.0e+6], acceleration: 0}", "shear: {acceleration: {normal: [0, 1.0e+9]}}"],
)
def test_what_is_elsewhere_at_each_instant_is_told_from_the_motion(motion: str) -> None:
    """A shape that crosses the frame many times between two instants, so that only chance says where it is."""
    config = gerd.parse(f"""
sensor: {{width: 9, height: 17}}
steps: 3
timing: exact
upsampling: 2
integrator: {{threshold: 0.3}}
actors: [{{shape: square, {motion}}}]
""")
    foretold = forecast(config, 1e-4)
    assert foretold.steps == 0
    made = np.mean([len(gerd.simulate(config, index)) for index in range(5)])
    assert made / 5 <= foretold.events.mean() <= 10 * made


@pytest.mark.parametrize("name", HUGE)
def test_a_check_does_not_exceed_its_own_budget(name: str, tmp_path: Path) -> None:
    """In a process that has four times the memory that a check may take, and much more time."""
    (tmp_path / "huge.yaml").write_text(HUGE[name])
    result = bounded(tmp_path, "check", "huge.yaml", gigabytes=6, seconds=200)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "because" in re.findall(r"basis +.*", result.stdout)[0]
    assert re.search(r"together +\d+ to \d+ events, roughly\n", result.stdout)
    assert re.search(r"memory +about [\d.e+]+ [GMT]B", result.stdout)


def test_the_memory_that_is_foretold_is_enough() -> None:
    text = "sensor: {width: 400, height: 400}\nsteps: 300\nnoise: {background: 0.05}\nactors: []"
    config = gerd.parse(text)
    gerd.simulate(config, steps=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    foretold = forecast(config, seconds=1e-9).memory
    recording = gerd.simulate(config)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert len(recording) * 9 < foretold
    assert taken < 1.5 * foretold


def test_random_acceleration_is_told_in_its_units(capsys: pytest.CaptureFixture[str]) -> None:
    """What is left out is Brownian motion: the table says so, and where it leads."""
    config = gerd.parse("steps: 60\nactors: [{shape: square, rotation: {start: 30}, translation: {}, scale: {}}]")
    dry_run(config, 1)
    shown = capsys.readouterr().out
    assert "actors.0.rotation: random acceleration, SD 0.5 °/step²" in shown
    assert "actors.0.translation: random acceleration, SD 0.1 px/step²" in shown
    assert "actors.0.scale: random acceleration, SD 0.05 px/step²" in shown
    assert "actors.0.shear" not in shown
    assert "at the end: at step 59, 5th to 95th percentile of 20 indices" in shown
    turned = [np.degrees(gerd.simulate(config, i).parameters["rotation"][-1, 0]) for i in range(INDICES)]
    low, high = np.percentile(turned, (5, 95))
    row = re.search(r"rotation ° +│ 30  \+0.*\n│ +at the end +│ +(\S+) to (\S+)", shown)
    assert row
    assert [float(part) for part in row.groups()] == pytest.approx([low, high], rel=0.01)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{uniform: [-1, 2]}", "random acceleration, from -1 to 2 °/step²"),
        ("{normal: [1, 2]}", "random acceleration, SD 2 °/step², mean 1 °/step²"),
        ("{choice: [1, -3]}", "random acceleration, one of 2 values, up to 3 °/step²"),
        ("{profile: sine, amplitude: 2}", "sine, amplitude 2 °/step²"),
        ("{expression: sin(t)}", "acceleration 'sin(t)'"),
        ("0.25", "acceleration 0.25 °/step²"),
    ],
)
def test_other_accelerations_are_told(written: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(gerd.parse(f"steps: 3\nactors: [{{shape: square, rotation: {{acceleration: {written}}}}}]"), 1)
    assert f"actors.0.rotation: {told}\n" in capsys.readouterr().out


def test_a_growing_size_and_a_pair_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    actor: dict[str, Any] = {"shape": "square", "scale": {"velocity": {"factor": 1.01}}}
    actor["translation"] = {"acceleration": [0, {"normal": [0, 2]}]}
    dry_run(gerd.Config(steps=3, actors=[actor]), 1)
    shown = capsys.readouterr().out
    assert "actors.0.scale: random acceleration, SD 0.05 of the logarithm per step²\n" in shown
    assert "actors.0.translation: x: none; y: random acceleration, SD 2 px/step²\n" in shown


# What the camera does


def crossed(intensity: float, integrator: str, timing: str = "exact") -> Config:
    """A square that crosses the frame, of this intensity."""
    return gerd.parse(
        f"sensor: {{width: 24, height: 20}}\nsteps: 60\ntiming: {timing}\nintegrator: {integrator}\n"
        f"actors: [{{shape: square, intensity: {intensity}, scale: {{start: 7, acceleration: 0}}, "
        "translation: {start: [-5, 9], velocity: [0.7, 0.1], acceleration: 0, border: free}}]"
    )


@pytest.mark.parametrize(
    ("intensity", "integrator", "said"),
    [
        (0.3, "{}", "0.3, is below the ON threshold, 0.5: no events"),
        (0.51, "{}", ""),
        (-0.3, "{threshold: {on: 0.2, off: 0.4}}", "0.3, is below the OFF threshold, 0.4: no events"),
        (0.3, "{threshold: {on: 0.2, off: 0.4}}", ""),
        (0.3, "{response: {log: 0.1}}", ""),
        (0.3, "{response: {log: 1.0}}", "0.262, is below the ON threshold, 0.5: no events"),
    ],
)
def test_a_contrast_below_the_threshold_is_told(intensity: float, integrator: str, said: str) -> None:
    """And there are events where nothing is told, and none where they are denied."""
    config = crossed(intensity, integrator)
    sentences = list(too_faint(config, forecast(config).scenes))
    assert [sentence.endswith(said) for sentence in sentences] == ([True] if said else [])
    assert (len(gerd.simulate(config)) == 0) == bool(said)


def test_a_contrast_that_few_pixels_notice_is_told() -> None:
    config = crossed(0.3, "{threshold: {on: 0.4, off: 0.4, spread: 0.07}}")
    (sentence,) = too_faint(config, forecast(config).scenes)
    assert re.search(r"below the ON threshold, of 9\d(\.\d)? % of the pixels: few events", sentence)
    assert 0 < len(gerd.simulate(config)) < len(gerd.simulate(crossed(1.0, "{}"))) / 5
    (sentence,) = too_faint(crossed(0.3, "{}", "step"), forecast(crossed(0.3, "{}", "step")).scenes)
    assert sentence.endswith("no events but for those of initial states")


def test_what_the_camera_does_to_the_number_of_events() -> None:
    """Counted against recordings of both cameras."""
    integrator = "{threshold: {on: 0.2, off: 0.2, spread: 0.1}, refractory_us: 2500, leak_hz: 9}"
    config = crossed(1.0, integrator)
    ideal_one = crossed(1.0, "{threshold: 0.2}")
    part = forecast(config)
    assert part.whole
    made, ideal = (sum(map(len, gerd.simulate_batch(each, range(INDICES)))) for each in (config, ideal_one))
    assert part.beside_ideal == made / ideal != 1
    assert forecast(ideal_one).beside_ideal is None

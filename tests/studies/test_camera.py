"""What the study of cameras concludes from numbers that are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gerd.measures.statistics import summary
from gerd.studies import camera
from gerd.studies.camera import findings, trials
from gerd.studies.camera.effects import EFFECTS, ELEMENTS, IDEAL
from gerd.studies.camera.report import conclusions, opening
from gerd.studies.lab.results import Made, Results, Run, Settings, SweepResult

COUNT = 20
NAMES = [effect.name for effect in EFFECTS]
GRID = [element.on_grid for element in ELEMENTS]


def of_events(effect: str, alone: list[float], beyond: list[float], events: float = 500.0) -> SweepResult:
    """The same numbers under each transformation."""
    return SweepResult(
        effect,
        tuple(element.amount for element in ELEMENTS),
        errors=tuple(() if on_grid else tuple(beyond) for on_grid in GRID),
        alone=tuple(tuple(alone) if on_grid else () for on_grid in GRID),
        events=((events,) * len(alone),) * len(ELEMENTS),
    )


def of_network(effect: str, error: float) -> SweepResult:
    errors = tuple(error + 0.01 * np.arange(COUNT))
    chance = (tuple(np.full(COUNT, 20.0)),) * len(trials.SPEEDS)
    return SweepResult(effect, trials.SPEEDS, errors=(errors,) * len(trials.SPEEDS), chance=chance)


def results(events: dict[str, SweepResult], errors: dict[str, float]) -> Results:
    nothing = of_events("", [0.0] * COUNT, [0.0] * COUNT)
    tests = tuple(events.get(name, replace(nothing, sweep=name)) for name in NAMES)
    networks = tuple(of_network(name, errors.get(name, 1.0)) for name in NAMES)
    runs = (Run(trials.EVENTS, 0, (), 0.0, tests), Run(trials.NETWORK, 0, (1.0,), 1.0, networks))
    made = Made("2026-01-01", "gerd study camera", "nothing", 1.0, {"gerd": "1"})
    return Results(Settings("camera", 0, trials.SIZES["full"], "", {}), made, summary([20.0]), runs)


def test_a_symmetry_is_broken_only_where_that_is_sure() -> None:
    mixed = [0.0] * (COUNT // 2) + [0.0022] * (COUNT // 2)  # on average just above what is allowed
    found = findings.cells(
        results(
            {
                "dead pixels": of_events("dead pixels", [0.004] * COUNT, [0.0] * COUNT),
                "hot pixels": of_events("hot pixels", mixed, [0.06] * COUNT),
                "background": of_events("background", [0.5] * COUNT, [-0.3] * COUNT, events=49.0),
                "threshold spread": of_events("threshold spread", [0.5] * 5, [0.5] * 5),
            },
            {},
        )
    )
    verdicts = {name: {(cell.element.on_grid, cell.verdict) for cell in row} for name, row in found.items()}
    assert verdicts[IDEAL] == {(True, "kept"), (False, "kept")}
    assert verdicts["dead pixels"] == {(True, "broken"), (False, "kept")}
    assert verdicts["hot pixels"] == {(True, "undecided"), (False, "broken")}
    assert verdicts["background"] == verdicts["threshold spread"] == {(True, "too few"), (False, "too few")}


def test_the_opening_names_what_is_broken_and_what_hurts_most() -> None:
    broken = {"dead pixels": of_events("dead pixels", [0.004] * COUNT, [0.0] * COUNT)}
    given = results(broken, {"hot pixels": 4.0})
    table = findings.cells(given)
    what, ideal, network = opening(given, table)
    assert what.startswith("Translation by (5, 3) px is broken by dead pixels; rotation by 90° by dead pixels;")
    assert what.endswith(f"{ELEMENTS[-1].name} by nothing.")
    assert "0.00%" in ideal
    assert "grows most with hot pixels" in network
    assert "by 3.00 (3.00 to 3.00) px" in network
    assert all("broken with dead pixels; kept with " in line for line in conclusions(table)[:3])


def test_nothing_follows_from_a_network_at_chance() -> None:
    given = results({}, dict.fromkeys(NAMES, 20.0))
    assert "at chance with the ideal camera" in opening(given, findings.cells(given))[2]


def test_the_report_has_every_effect_and_every_transformation(tmp_path: Path) -> None:
    text = camera.report(results({}, {}), tmp_path)
    header = next(line for line in text.splitlines() if line.startswith("| effect | strength"))
    assert all(element.name in header for element in ELEMENTS)
    assert all(text.count(f"\n| {name} |") == 2 for name in NAMES)
    assert (tmp_path / "camera.png").stat().st_size > 10_000
    assert len((tmp_path / "summary.csv").read_text("utf-8").splitlines()) == 1 + len(NAMES) * len(ELEMENTS)


@pytest.mark.parametrize("effect", EFFECTS, ids=NAMES)
def test_every_effect_can_be_seen_by_the_network(effect: object) -> None:
    sweep = trials.SWEEPS[EFFECTS.index(effect)]  # type: ignore[arg-type]
    config = trials.network_stimuli(24, 0)
    for speed in trials.SPEEDS:
        seen = sweep.stimuli(config, speed)
        assert seen.rate == speed
        assert seen.steps == round(60 / speed)

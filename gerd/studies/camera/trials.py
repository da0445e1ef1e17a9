"""The scenes, the network and its training: an order in, gaps between events and errors of the network out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gerd.config.config import Config
from gerd.config.document import PlainData
from gerd.config.load import parse
from gerd.config.sweep import with_values
from gerd.measures.moved_events import Located, distance, share_alone, twins
from gerd.recording.simulate import simulate_batch
from gerd.scene.transformation import Transformation
from gerd.studies.camera.effects import EFFECTS, ELEMENTS, THRESHOLD, Effect, Element
from gerd.studies.demonstration.trials import TRAINED
from gerd.studies.lab.experiment import Experiment
from gerd.studies.lab.fitting import rounded
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, Sweep, SweepResult
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size
from gerd.studies.timescale import trials as timescale

TITLE = "Which effect of a camera breaks which symmetry?"
EVENTS = "events"  # the run in which there is no network
NETWORK = "network"
WINDOW_US = 20  # how far apart two events may be that count as the same one
STEP_US = 1000
CAP = 2.0  # pixels: what is farther away counts as this far
SIDE = 64  # pixels of the frame in which events are compared, whatever that of the network is
SPEEDS = (0.5, 1.0, 2.0)  # time scales at which the network is tested, in its own time
SIZES = {
    "full": Size(side=96, training=1400, tests=160, epochs=8, batch=8, seeds=3, layers=FULL, models=(NETWORK,)),
    "quick": Size(
        side=64, training=400, tests=40, epochs=8, batch=8, seeds=1, layers=SMALL, models=(NETWORK,), rate=4e-3
    ),
    "smoke": Size(
        24, training=8, tests=5, epochs=2, batch=4, seeds=1, layers=TINY, models=(NETWORK,), conclusive=False
    ),
}
TAKES = {
    "full": "about 20 minutes on an NVIDIA H200, by an estimate",
    "quick": "about 10 minutes on two CPU cores, by an estimate",
    "smoke": "half a minute",
}


def scenes(seed: int = 0) -> Config:
    """Two shapes near the middle that move and turn slowly, with room for every transformation, exactly timed."""
    middle = SIDE / 2
    near = 0.1 * SIDE
    motion = {
        "translation": {
            "start": {"uniform": [middle - near, middle + near]},
            "velocity": {"uniform": [-0.4, 0.4]},
            "acceleration": 0,
            "border": "free",
        },
        "scale": {"start": {"uniform": [0.15 * SIDE, 0.25 * SIDE]}, "velocity": 0.03, "acceleration": 0},
        "rotation": {"start": "uniform", "velocity": {"uniform": [-1.5, 1.5]}, "acceleration": 0},
    }
    return parse(
        {
            "seed": seed,
            "sensor": {"width": SIDE, "height": SIDE},
            "steps": 41,
            "timing": "exact",
            "step_us": STEP_US,
            "integrator": {"threshold": THRESHOLD, "initial": 0, "warmup": 0},
            "actors": [{"shape": shape, **motion} for shape in ("circle", "triangle")],
        }
    )


def network_stimuli(side: int, seed: int) -> Config:
    """What the network is trained on: those of the study of time scales, with all events, in exact timing."""
    return timescale.stimuli(side, seed, kept=1.0, timing="exact")


def compute(out: Path | str, order: Order) -> Results:
    config = scenes(order.seed)
    effects = {each.name: dict(each.values) for each in EFFECTS}
    folder = StudyFolder(out, "camera", order, config, effects=effects, elements=[each.name for each in ELEMENTS])
    tests = []
    for number, effect in enumerate(EFFECTS, 1):
        order.deadline.check()
        tests.append(folder.kept(f"events-{effect.name.replace(' ', '-')}", SweepResult, partial(_gaps, effect, order)))
        order.say(f"[{number}/{len(EFFECTS)}] events: {effect.name}, {len(ELEMENTS)} transformations")
    experiment = Experiment(folder, network_stimuli(order.size.side, order.seed), SWEEPS)
    kind = timescale.network(timescale.EXACT, order.size, experiment.config)
    runs = experiment.runs({NETWORK: kind})
    return folder.finish(experiment.chance(), [Run(EVENTS, order.seed, (), 0.0, tuple(tests)), *runs])


def _gaps(effect: Effect, order: Order) -> SweepResult:
    """How far the events of transformed scenes are from the transformed events, with one effect.

    Distances are those beyond the ideal camera's. The more events there are, the nearer is the nearest; so as many of
    both cameras are taken.
    """
    alone: list[list[float]] = []
    beyond: list[list[float]] = []
    counts = []
    for element in ELEMENTS:
        seen = _twins(effect.values, element, order)
        if element.on_grid:
            alone.append([share_alone(*pair, SIDE, WINDOW_US) for pair in seen])
            beyond.append([])
        else:
            alone.append([])
            beyond.append([_beyond(*pairs) for pairs in zip(seen, _twins({}, element, order), strict=True)])
        counts.append([float(len(expected) + len(found)) for expected, found in seen])
    return SweepResult(
        effect.name,
        tuple(element.amount for element in ELEMENTS),
        errors=tuple(tuple(rounded(values, 6)) for values in beyond),
        alone=tuple(tuple(rounded(values, 6)) for values in alone),
        events=tuple(tuple(rounded(values, 0)) for values in counts),
    )


def _twins(values: Mapping[str, PlainData], element: Element, order: Order) -> list[tuple[Located, Located]]:
    """Events of recordings, transformed, and those of the transformed scenes, seen by a camera with these values."""
    config = with_values(scenes(order.seed), dict(values))
    which = range(order.size.tests)
    moved = simulate_batch(with_values(config, {"transform": [dict(element.operation)]}), which)
    return [twins(x, g_x, g_x.transform) for x, g_x in zip(simulate_batch(config, which), moved, strict=True)]


def _beyond(seen: tuple[Located, Located], ideal: tuple[Located, Located]) -> float:
    """By how much farther events are apart than those of the ideal camera, as many of both."""
    first, second = (min(len(some), len(others)) for some, others in zip(seen, ideal, strict=True))
    with_effect, without = (
        distance(expected.fewer(first), found.fewer(second), STEP_US, CAP) for expected, found in (seen, ideal)
    )
    return with_effect - without


def _with_effect(effect: Effect, config: Config, speed: float) -> Config:
    """The network's stimuli at a time scale in own time, seen by a camera with an effect."""
    own = timescale.own_time(config, speed)
    values: dict[str, PlainData] = dict(effect.values)
    if "noise.background" in values:  # adds to the background that the network was trained with
        values["noise.background"] += own.noise.of_either_polarity
    return with_values(own, values)


SWEEPS = tuple(
    Sweep(
        effect.name,
        SPEEDS,
        lambda s: Transformation("time_scale", s, TRAINED),
        TRAINED,
        partial(_with_effect, effect),
        lambda steps, s: int(np.floor(steps / s + 0.5)),
    )
    for effect in EFFECTS
)

"""The stimuli, the networks and their training: an order in, errors at every time scale out, in pixels."""

from __future__ import annotations

import math
from base64 import b64encode
from functools import partial
from pathlib import Path

import numpy as np
import torch

from gerd.config.config import Config
from gerd.config.sweep import with_values
from gerd.scene.transformation import Transformation, time_scale
from gerd.studies.demonstration.trials import SCALES, STEPS, TRAINED
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.fitting import rounded
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Example, Results, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, abstaining_loss, place_loss, square
from gerd.studies.models import TIME_BANK, TIME_CONSTANTS, Channels, Layers, ScaleChannels, TimeChannels

TITLE = "Is a network that was trained at one speed as good at others, from a quarter to four times it?"
KEPT = (0.25, 0.05)  # shares of the events
BACKGROUND = 0.001  # per pixel and step, in the test at scale 1
IN_TRAINING = (BACKGROUND / 4, BACKGROUND, BACKGROUND * 4)  # so that its level does not tell a network the time scale

MIDDLE = len(TIME_CONSTANTS) // 2
INVARIANT = "invariant"
EQUAL = "five, equal weights"  # five time constants, whose heat maps are averaged
EVIDENCE = "five, by evidence"
EXACT = "invariant, exact timing"  # the same network, trained and tested with events at their exact times
SINGLES = tuple(f"single {mu:g}" for mu in TIME_CONSTANTS)
BASELINE = SINGLES[MIDDLE]
SHORT = SINGLES[:MIDDLE]  # shorter than the baseline's
MODELS = (INVARIANT, EXACT, EQUAL, EVIDENCE, *SINGLES)
ANCHOR = TIME_BANK.index(TIME_CONSTANTS[MIDDLE])  # the channel that has to be right at scale 1
OTHERS = tuple(k for k in range(len(TIME_BANK)) if abs(k - ANCHOR) >= 2)  # an octave away or more: they have to abstain
SAMPLED = 20  # steps at which the invariant network looks at a recording in an epoch
EXAMPLES = (0.25, 1.0, 4.0)  # time scales of the animation


def named(model: str, kept: float) -> str:
    """What a network that was trained with this share of the events is called in the results."""
    return f"{model} at {kept:.0%}"


EVERY = (
    *(named(model, KEPT[0]) for model in MODELS),
    *(named(model, KEPT[1]) for model in (INVARIANT, EQUAL, BASELINE)),
)
QUICK = tuple(named(model, KEPT[0]) for model in (INVARIANT, EQUAL, BASELINE))
SIZES = {
    "full": Size(side=96, training=1400, tests=160, epochs=8, batch=8, seeds=5, layers=FULL, models=EVERY),
    "quick": Size(side=64, training=600, tests=40, epochs=8, batch=8, seeds=1, layers=SMALL, models=QUICK, rate=4e-3),
    "smoke": Size(24, training=8, tests=5, epochs=6, batch=4, seeds=1, layers=TINY, models=EVERY, conclusive=False),
}
TAKES = {
    "full": "about 45 minutes on an NVIDIA H200, by an estimate",
    "quick": "about 10 minutes on two CPU cores, by an estimate",
    "smoke": "a minute",
}


def own_time(config: Config, scale: float) -> Config:
    """The stimuli at a time scale, in own time: the same path, in 1 / scale times the steps, with as much noise."""
    values = {
        "time_scale": scale,
        "steps": _in_own_time(config.steps, scale),
        "integrator.warmup": _in_own_time(config.integrator.warmup, scale),
        "noise.background": config.noise.of_either_polarity * scale,
    }
    return with_values(config, values)


def _in_own_time(steps: int, scale: float) -> int:
    return math.floor(steps / scale + 0.5)


# In own time the stimuli are at their scale already, and nothing is left to transform.
OWN_TIME = Sweep(
    "own time", SCALES, lambda s: Transformation("time_scale", s, TRAINED), TRAINED, own_time, _in_own_time
)
SAME_LENGTH = Sweep("same length", SCALES, time_scale, TRAINED)
SWEEPS = (OWN_TIME, SAME_LENGTH)


def stimuli(side: int, seed: int = 0, kept: float = KEPT[0], timing: str = "step") -> Config:
    """The config: sparse events of a square that moves by ±1 px per step along both axes and changes its size."""
    limits = [0.1 * side, 0.4 * side]
    return square(
        side,
        seed,
        STEPS,
        {"background": BACKGROUND, "event": 1 - kept},
        timing,
        translation={"start": "uniform", "velocity": {"choice": [-1, 1]}},
        scale={"start": {"uniform": limits}, "velocity": {"choice": [-0.25, 0.25]}, "limits": limits},
    )


def build(model: str, layers: Layers, seed: int) -> Channels:
    """An untrained network by its name."""
    if model in (INVARIANT, EXACT):
        return TimeChannels(layers=layers, seed=seed)
    if model in SINGLES:
        return ScaleChannels([TIME_CONSTANTS[SINGLES.index(model)]], fusion="uniform", layers=layers, seed=seed)
    return ScaleChannels(fusion="uniform" if model == EQUAL else "evidence", learnt=True, layers=layers, seed=seed)


def network(model: str, size: Size, config: Config) -> Network:
    """A kind of network and its training."""
    made = partial(build, model, size.layers)
    levels = [with_values(config, {"noise.background": probability}) for probability in IN_TRAINING]
    if model not in (INVARIANT, EXACT):
        return Network(made, place_loss, levels)
    return Network(made, abstaining_loss(ANCHOR, OTHERS, SAMPLED), levels)


def compute(out: Path | str, order: Order) -> Results:
    size = order.size
    folder = StudyFolder(
        out, "timescale", order, stimuli(size.side, order.seed), kept=list(KEPT), background=list(IN_TRAINING)
    )
    runs = []
    for kept in KEPT:
        for timing in ("step", "exact"):
            experiment = Experiment(folder, stimuli(size.side, order.seed, kept, timing), SWEEPS)
            models = [model for model in MODELS if (model == EXACT) == (timing == "exact")]
            kinds = {named(model, kept): network(model, size, experiment.config) for model in models}
            runs += experiment.runs({name: kind for name, kind in kinds.items() if name in size.models})
    first = Experiment(folder, stimuli(size.side, order.seed), SWEEPS)
    example_of = named(INVARIANT, KEPT[0])
    examples = []
    if any(run.model == example_of for run in runs):
        kind = network(INVARIANT, size, first.config)
        examples = [folder.kept(f"example-{s:g}", Example, partial(_example, first, kind, s)) for s in EXAMPLES]
    return folder.finish(first.chance(), runs, examples)


def _example(experiment: Experiment, kind: Network, scale: float) -> Example:
    """What the invariant network says of the first test recording, at a time scale in own time."""
    trained = experiment.trained(kind, named(INVARIANT, KEPT[0]), experiment.order.seed)
    data, _ = experiment.test_data(OWN_TIME, scale, 1)
    with torch.no_grad():
        logits = trained.logits(data.frames)[0]
        reading = trained.read(data.frames)
    channels, _, rows, columns = logits.shape
    joint = logits.transpose(0, 1).flatten(1).softmax(-1).unflatten(1, (channels, rows, columns)).sum(1)
    brightest = joint.amax((1, 2), keepdim=True)
    heat = (255 * joint / brightest).round().byte().cpu().numpy()
    return Example(
        scale,
        tuple(b64encode(step.tobytes()).decode() for step in heat),
        rows,
        columns,
        rounded(reading.place[0].cpu(), 2),
        rounded(data.places[0].cpu(), 2),
        rounded(reading.weights[0].T.cpu(), 3),
    )


def matched_channel(scale: float) -> int:
    """The channel that sees, at this scale, what the anchor sees at scale 1."""
    return int(np.argmin(np.abs(np.log(TIME_BANK) - np.log(TIME_BANK[ANCHOR] / scale))))

"""The stimuli, the networks and their training: an order in, errors at every time scale out, in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from gerd.config.config import Config
from gerd.scene.transformation import time_scale
from gerd.studies.demonstration.choices import Choices, chosen
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, place_loss, square
from gerd.studies.models import Fusion, Layers, ScaleChannels

TITLE = "The paper's demonstration: do five time constants work over a wider range of speeds than one?"
SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
TRAINED = 1.0
UNSEEN = tuple(scale for scale in SCALES if scale != TRAINED)
STEPS = 60

WEIGHTED = "five channels, weighted sum"
EQUAL = "five channels, equal weights"
EVIDENCE = "five channels, by evidence"
FUSIONS: dict[str, Fusion] = {WEIGHTED: "weighted", EQUAL: "uniform", EVIDENCE: "evidence"}
BASELINE = "one channel, the middle μ"
SHORTER = "one channel, half the middle μ"
SHORTEST = "one channel, a quarter of the middle μ"
ALONE = {BASELINE: 2, SHORTER: 1, SHORTEST: 0}  # which of the five time constants
MODELS = (WEIGHTED, BASELINE, SHORTEST, EQUAL, EVIDENCE, SHORTER)  # in the order in which they are trained

SIZES = {
    "full": Size(96, training=1400, validation=300, tests=400, epochs=10, batch=8, seeds=5, layers=FULL, models=MODELS),
    "quick": Size(
        side=64,
        training=350,
        validation=75,
        tests=100,
        epochs=8,
        batch=8,
        seeds=2,
        layers=SMALL,
        models=MODELS[:3],
        rate=4e-3,
    ),
    "smoke": Size(
        side=24,
        training=8,
        validation=4,
        tests=5,
        epochs=2,
        batch=4,
        seeds=1,
        layers=TINY,
        models=MODELS,
        conclusive=False,
    ),
}
TAKES = {
    "full": "about 14 minutes on an NVIDIA H200, by an estimate",
    "quick": "about 10 minutes on two CPU cores",
    "smoke": "half a minute",
}


def recordings_of(size: Size, scale: float) -> range:
    """The recordings of a test: as many as for validation at the speed of the training, others at the other speeds."""
    if scale == TRAINED:
        return range(size.first_test, size.first_test + size.validation)
    first = size.first_test + size.validation
    return range(first, first + size.tests)


SPEEDS = Sweep("speed", SCALES, time_scale, TRAINED, which=recordings_of)


def stimuli(side: int, seed: int, choices: Choices) -> Config:
    """The config: events of a square that moves along both axes and changes its size, at constant velocities."""
    limits = [choices.smallest * side, choices.largest * side]
    either_way = [-choices.velocity, choices.velocity]
    wider_or_narrower = [-choices.size_velocity, choices.size_velocity]
    return square(
        side,
        seed,
        STEPS,
        {"background": choices.background, "event": 1 - choices.kept},
        translation={"start": "uniform", "velocity": {"choice": either_way}},
        scale={"start": {"uniform": limits}, "velocity": {"choice": wider_or_narrower}, "limits": limits},
    )


def build(model: str, choices: Choices, layers: Layers, seed: int) -> ScaleChannels:
    """An untrained network by its name."""
    learnt = choices.time_constants == "learnt"
    if model in FUSIONS:
        return ScaleChannels(choices.mus, learnt=learnt, fusion=FUSIONS[model], layers=layers, seed=seed)
    return ScaleChannels([choices.mus[ALONE[model]]], learnt=learnt, fusion="uniform", layers=layers, seed=seed)


def compute(out: Path | str, order: Order, set: Sequence[str] = ()) -> Results:
    size = order.size
    choices = chosen(set)
    config = stimuli(size.side, order.seed, choices)
    folder = StudyFolder(out, "demonstration", order, config, **asdict(choices))
    networks = {
        model: Network(partial(build, model, choices, size.layers), place_loss, [config]) for model in size.models
    }
    experiment = Experiment(folder, config, [SPEEDS])
    return folder.finish(experiment.chance(size.validation), experiment.runs(networks))


def choices_of(results: Results) -> Choices:
    """What the results were made with."""
    return Choices(**results.settings.own)


def said(results: Results, model: str) -> str:
    """What a network is called in a sentence."""
    if model in FUSIONS:
        return {WEIGHTED: "the five channels", EQUAL: "the five with equal weights", EVIDENCE: "the five by evidence"}[
            model
        ]
    return f"one channel with μ = {choices_of(results).mus[ALONE[model]]:g}"


def titled(results: Results, model: str) -> str:
    """What a network is called in a table or in a figure."""
    return model if model in FUSIONS else f"one channel, μ = {choices_of(results).mus[ALONE[model]]:g}"

"""Configs and scenes made in few words, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from operator import neg
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

import gerd
from gerd.config.config import Config
from gerd.config.sensor import Noise
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

GOLDEN = 0.6180339887498949
FALSE_ALARM = 1e-6  # the probability with which a statistical test may fail although the program is right
PROBABILITIES = [name for name, field in Noise.model_fields.items() if field.annotation is float]

SHAPES: dict[str, Any] = {
    "square": "square",
    "circle": "circle",
    "triangle": "triangle",
    "concave": {"polygon": [[-0.5, -0.45], [0.5, -0.5], [0.1, 0.05], [0.45, 0.5], [-0.5, 0.4], [-0.2, 0.0]]},
    "hole": {
        "polygon": [
            [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]],
            [[-0.3, -0.2], [0.25, -0.3], [0.1, 0.35]],
        ]
    },
    "star": {"polygon": [[0.0, -0.5], [0.29, 0.4], [-0.48, -0.15], [0.48, -0.15], [-0.29, 0.4]]},  # crosses itself
}
AT_REST: dict[str, Any] = {"acceleration": 0.0}


def actor(
    shape: Any = "square",
    at: Any = "centre",
    velocity: Any = 0.0,
    size: Any = 6.0,
    turn: Any = 0.0,
    slant: Any = 0.0,
    border: str = "free",
    **parts: Any,
) -> dict[str, Any]:
    """An actor that keeps its velocity and its form; `parts` replace whole transformations or set the intensity."""
    return {
        "shape": SHAPES.get(shape, shape) if isinstance(shape, str) else shape,
        "translation": {"start": at, "velocity": velocity, "border": border, **AT_REST},
        "scale": {"start": size, "limits": [0.1, None], **AT_REST},
        "rotation": {"start": turn, **AT_REST},
        "shear": {"start": slant, **AT_REST},
        **parts,
    }


def sent(*arrays: Any) -> list[torch.Tensor]:
    """What `Trajectory.entries` takes, for PyTorch's CPU."""
    return [torch.tensor(array) for array in arrays]


def config(*actors: dict[str, Any], width: int = 16, height: int = 12, **fields: Any) -> Config:
    """A config of these actors; initial state 0 and no warm-up unless `fields` says otherwise."""
    fields = {"steps": 4, "integrator": {"initial": 0.0, "warmup": 0}, **fields}
    return Config.model_validate({"sensor": {"width": width, "height": height}, "actors": list(actors), **fields})


def two_moving(sweep: dict[str, list[Any]]) -> Config:
    """A square that is turned at random and an ellipse, which pass each other, and some noise."""
    return config(
        actor("square", at="uniform", velocity=[0.7, 0.2], turn={"uniform": [0, 90]}),
        actor("circle", at=[30, 20], velocity=[-0.4, 0.3], size=[8.0, 5.0]),
        width=40,
        height=30,
        steps=6,
        noise={"background": 0.02},
        sweep=sweep,
    )


def simulated(*actors: dict[str, Any], index: int = 0, **fields: Any) -> Recording:
    """A recording of these actors, by the backend that is the definition."""
    return gerd.simulate(config(*actors, **fields), index, backend="torch")


def drawn(config: Config, indices: Sequence[int]) -> Scenes:
    """The scenes of some recordings of a config without a sweep."""
    return draw(plan_of(config), indices)


def rings(shape: Any) -> list[np.ndarray]:
    """The vertices of each ring of a shape as a config gives it, in the unit frame; many points for the circle."""
    angle = np.linspace(0, 2 * np.pi, 4096, endpoint=False)
    built_in = {
        "square": np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]),
        "triangle": np.array([[-0.5, -0.5], [0.5, 0.0], [-0.5, 0.5]]),
        "circle": 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1),
    }
    if isinstance(shape, str):
        return [built_in[shape]]
    several = isinstance(shape["polygon"][0][0], list)
    return [np.array(ring) for ring in (shape["polygon"] if several else [shape["polygon"]])]


def generic(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers without any special relation to the pixel grid, so that no sub-pixel centre lies on an outline."""
    return st.integers(1, 10_000).map(lambda n: low + (high - low) * (n * GOLDEN % 1.0))


@st.composite
def moving_actors(draw: Any, width: int, height: int, steady: bool = False) -> Any:
    """Any shape in any motion; free ones may lie outside the frame. Small enough for a torus of that size.

    `steady` ones have no random accelerations, and give a pair of numbers for each pair.
    """
    border = draw(st.sampled_from(["free", "bounce", "wrap"]))
    beyond = 1.2 if border == "free" else 0.0
    place = st.tuples(*(generic(-beyond * side, (1 + beyond) * side) for side in (width, height)))
    side = min(width, height) * (0.44 if border == "wrap" else 1.0)  # turned and sheared by 1 it still fits
    sizes = generic(0.15 * side, 0.9 * side)
    pushes = st.sampled_from([0.0, {"normal": [0.0, 0.3]}, {"profile": "sine", "amplitude": 0.4, "period": 3.7}])
    turning = generic(-1, 1) if steady else pushes
    mirrored = draw(st.booleans())  # then it may pass through size 0, too
    return {
        "shape": draw(st.sampled_from(list(SHAPES.values()))),
        "intensity": draw(st.sampled_from([1.0, 0.37, -1.0, 2.3, 0.0])),
        "translation": {
            "start": draw(place),
            "velocity": draw(st.tuples(generic(-3, 3), generic(-3, 3))),
            "acceleration": draw(st.tuples(generic(-0.3, 0.3), generic(-0.3, 0.3)) if steady else pushes),
            "border": border,
        },
        "scale": {
            "start": draw(st.tuples(sizes.map(neg), sizes) if mirrored else st.one_of(sizes, st.tuples(sizes, sizes))),
            "velocity": draw(generic(-0.2, 0.2)),
            "acceleration": 0.0,
            "limits": [(-0.95 if mirrored else 0.1) * side, 0.95 * side],
        },
        "rotation": {"start": draw(generic(0, 360)), "velocity": draw(generic(-30, 30)), "acceleration": draw(turning)},
        "shear": {"start": draw(generic(-0.7, 0.7)), "velocity": draw(generic(-0.1, 0.1)), "acceleration": 0.0},
    }


@st.composite
def casts(draw: Any, width: int, height: int, most: int) -> list[dict[str, Any]]:
    """Up to `most` entries of moving actors, some with several shapes to choose from, absent or several at a time."""
    entries = draw(st.lists(moving_actors(width, height), max_size=most))
    shapes = st.lists(st.sampled_from(list(SHAPES.values())), min_size=1, max_size=4)
    repeats = st.sampled_from([0, 1, 2, {"uniform": [0, 2]}, {"choice": [0, 1]}])
    varied = [draw(st.booleans()) for _ in entries]
    return [
        {**entry, "shape": {"choice": draw(shapes)}, "repeat": draw(repeats)} if vary else entry
        for entry, vary in zip(entries, varied, strict=True)
    ]


def thresholds(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    """One threshold, or one for each polarity, and pixels that differ by nothing, by a little or by much."""
    spreads = st.sampled_from([0.0, 0.02, 0.5])
    return st.one_of(numbers, st.fixed_dictionaries({"on": numbers, "off": numbers, "spread": spreads}))


def responses(entries: list[dict[str, Any]]) -> st.SearchStrategy[Any]:
    """Linear, or logarithms on a background so bright that all of these actors have one."""
    darkest = min([0.0, *(entry["intensity"] for entry in entries)])
    logarithms = st.sampled_from([0.003, 0.2, 40.0]).map(lambda brightness: {"log": brightness - darkest})
    return st.one_of(st.just("linear"), logarithms)


@st.composite
def small_configs(draw: Any) -> Config:
    """Anything that the oracle has the patience for."""
    width, height = draw(st.sampled_from([(1, 1), (7, 5), (13, 14), (19, 11), (20, 3), (2, 13), (33, 4), (131, 2)]))
    noises = st.sampled_from([0.0, 0.3, 1.0])
    entries = draw(casts(width, height, 3))
    return config(
        *entries,
        width=width,
        height=height,
        seed=draw(st.integers(0, 2**64 - 1)),
        steps=draw(st.integers(1, 5)),
        time_scale=draw(st.sampled_from([1.0, 0.37, 2.5])),
        timing=draw(st.sampled_from(["step", "exact"])),
        step_us=draw(st.sampled_from([1000, 1, 7])),
        upsampling=draw(st.sampled_from([1, 2, 3, 8])),
        integrator={
            "threshold": draw(thresholds(st.sampled_from([0.001, 0.2, 0.5, 0.77, 1.6]))),
            "response": draw(responses(entries)),
            "reset": draw(st.sampled_from(["subtract", "zero"])),
            "initial": draw(st.sampled_from(["usual", "uniform", "stationary", 0.0, 1.0, -0.63])),
            "warmup": draw(st.integers(0, 3)),
            "refractory_us": draw(st.sampled_from([0, 0, 1, 2, 13, 60, 1500, 4000])),
            "leak_hz": draw(st.sampled_from([0.0, 0.0, 0.7, 240.0])),
        },
        camera={"number": draw(st.integers(0, 3))},
        noise={
            "background": draw(st.one_of(noises, st.fixed_dictionaries({"on": noises, "off": noises}))),
            **{name: draw(noises) for name in PROBABILITIES},
            "hot": {"share": draw(noises), "rate_hz": draw(st.sampled_from([0.0, 300.0, 1000.0]))},
        },
    )


@st.composite
def filtered_configs(draw: Any) -> Config:
    """Many events, and all that happens behind the pixels: refractory times, and readout in exact timing.

    Delays lie within steps and reach over several; a bus is fast, slow or not there.
    """
    width, height = draw(st.sampled_from([(7, 5), (13, 8), (20, 3)]))
    timing = draw(st.sampled_from(["exact", "exact", "exact", "step"]))
    delays = st.sampled_from([2.6, 0.0, 900.0, 1700.4])
    readout = {
        "latency_us": delays,
        "jitter_us": delays,
        "events_per_ms": st.sampled_from([3.7, None, 33.3, 3000.0]),
        "queue_us": st.sampled_from([2000.0, 0.0, 2.5]),
    }
    return config(
        *draw(casts(width, height, 2)),
        width=width,
        height=height,
        seed=draw(st.integers(0, 2**64 - 1)),
        steps=draw(st.integers(3, 7)),
        timing=timing,
        upsampling=2,
        camera={"number": draw(st.sampled_from([0, 5, "each"]))},
        integrator={
            "threshold": {"on": 0.1, "off": 0.3, "spread": draw(st.sampled_from([0.0, 0.05]))},
            "refractory": draw(st.sampled_from(["drop", "hold"])),
            "refractory_us": draw(st.sampled_from([700, 0, 1, 2500])),
            "warmup": 1,
        },
        noise={
            "background": draw(st.sampled_from([0.1, 0.5])),
            "event": draw(st.sampled_from([0.0, 0.2])),
            "hot": {"share": 0.2, "rate_hz": 700.0},
            "dead": draw(st.sampled_from([0.0, 0.2])),
        },
        readout={name: draw(values) for name, values in readout.items()} if timing == "exact" else {},
    )


def same(a: Any, b: Any) -> bool:
    """Whether two items, labels or batches are the same in structure, type and every bit."""
    if isinstance(a, torch.Tensor):
        if a.layout == torch.sparse_coo:
            return b.layout == a.layout and a.dtype == b.dtype and torch.equal(a.to_dense(), b.to_dense())
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)

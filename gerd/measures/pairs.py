"""What a model is shown under a transformation: stimuli and g in, frames of x and of g·x in batches out.

Stimuli are recordings of a config, of which g·x is rendered anew from the transformed scene; or events, simulated or
real, on which g acts itself, or of which g·x was recorded, too. With events of which nothing else is known there may be
a truth: places in pixels or numbers of classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import classes
from gerd.errors import GerdError, check_whole, counted
from gerd.events import backends
from gerd.measures.acted import act_on_events
from gerd.measures.action import act_on_coordinates
from gerd.measures.asking import COUNT, Options, stimuli
from gerd.measures.statistics import LEAST
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.scene.scenes import Scenes
from gerd.scene.transformation import Transformation

Array = NDArray[np.float64]
Stimuli = AnyConfig | Sequence[Events]
WHERE = ("coordinates", "T")  # outputs that say where something is: the truth is known
WHICH = "scores"  # an output that says which shape it is: the truth is known, too


class EventOptions(Options, total=False):
    """`Options`, and what can be known of stimuli that are lists of events."""

    truth: ArrayLike | None  # of each: places (count, steps, [things,] 2) in pixels, or numbers of classes (count,)
    transformed: Sequence[Events] | None  # g·x as it was recorded; by default g acts on the events


@dataclass(frozen=True, eq=False)
class Pair:
    """Some stimuli x and g·x."""

    frames: Tensor  # (batch, steps, 2, height, width), of x
    frames_g: Tensor
    size: tuple[int, int]  # width and height
    places: Array | None  # (batch, steps, things, 2), of g·x, if they are known
    numbers: Array  # (batch, numbers): what answers to x should depend on, as far as it is known
    rounded: bool = False  # whether g has acted on events, and rounded

    @property
    def steps(self) -> int:
        return self.frames.shape[1]


def pairs(
    given: Stimuli, g: Transformation, about: object = None, **options: Unpack[EventOptions]
) -> tuple[Iterator[Pair], int]:
    """The stimuli in batches, and the first step to compare. about: `acts`, what the model's answers are about."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return _of_events(given, g, about, **options)
    if (known := {"truth", "transformed"} & set(options)) and any(options[name] is not None for name in known):  # type: ignore[literal-required]
        raise GerdError(f"{', '.join(sorted(known))}: goes with a list of events; the truth of a config is known")
    config = as_config(given)
    plain: Options = {name: value for name, value in options.items() if name not in known}  # type: ignore[assignment]
    batches, first_step, device = stimuli(config, **plain)
    return (_of_scenes(config, scenes, g, about, first_step, device) for scenes in batches), first_step


def check_enough(given: Stimuli, options: EventOptions) -> None:
    """An error if there are too few stimuli for a verdict."""
    number = len(given) if isinstance(given, Sequence) and not isinstance(given, str) else COUNT
    check_whole("count", options.get("count", number), LEAST)


def joined(numbers: Sequence[Array]) -> Array:
    """What is known of each stimulus, of several batches; classes that a batch does not show are 0 there."""
    widest = max(each.shape[1] for each in numbers)
    return np.concatenate([np.pad(each, [(0, 0), (0, widest - each.shape[1])]) for each in numbers])


def _of_scenes(config: Config, scenes: Scenes, g: Transformation, about: object, first_step: int, device: str) -> Pair:
    seen = g(scenes)
    frames, frames_g = (backends.frames(each, device) for each in (scenes, seen))
    places = seen.truth(np.arange(seen.steps))[..., 0, :2]
    numbers = np.empty((len(scenes), 0))
    if about in WHERE:
        truth = scenes.truth(np.arange(first_step, scenes.steps))[..., 0, :]
        numbers = truth.reshape(*truth.shape[:2], -1).mean(axis=1)
    elif about == WHICH:
        shown = class_numbers(config, scenes)
        names = classes(config.family)
        numbers = np.full((len(scenes), len(names)), math.nan) if shown is None else np.eye(len(names))[shown]
    return Pair(frames, frames_g, (scenes.width, scenes.height), places, numbers)


def class_numbers(config: Config, scenes: Scenes) -> NDArray[np.int64] | None:
    """(recordings,): the number of the class that each shows; none unless every recording has one actor."""
    if len(config.cast) != 1 or not scenes.present.all():
        return None
    names = classes(config.family)
    return np.array([names.index(name) for name in config.actors[0].shape_names])[scenes.chosen[:, 0]]


def _of_events(
    given: Sequence[Events],
    g: Transformation,
    about: object,
    *,
    count: int | None = None,
    first: int = 0,
    first_step: int = 0,
    device: str = "cpu",
    batch: int = 16,
    truth: ArrayLike | None = None,
    transformed: Sequence[Events] | None = None,
) -> tuple[Iterator[Pair], int]:
    check_whole("first", first, 0, max(0, len(given) - 1))
    check_whole("count", len(given) - first if count is None else count, 1, len(given) - first)
    check_whole("batch", batch, 1)
    known = None if truth is None else np.asarray(truth)
    for name, several in (("truth", known), ("transformed", transformed)):
        if several is not None and len(several) != len(given):
            raise GerdError(
                f"{name}: has {len(several)}, and there are {counted(len(given), 'recording')}; allowed: as many"
            )
    some = slice(first, None if count is None else first + count)
    chosen = given[some]
    _check_alike("events", chosen)
    check_whole("first_step", first_step, 0, chosen[0].steps - 1)
    images = None if transformed is None else transformed[some]
    if images is not None:
        _check_alike("transformed", images)
    of_chosen = None if known is None else known[some]

    def made() -> Iterator[Pair]:
        for begin in range(0, len(chosen), batch):
            own = slice(begin, begin + batch)
            seen = None if images is None else images[own]
            yield _pair(chosen[own], g, about, first_step, device, None if of_chosen is None else of_chosen[own], seen)

    return made(), first_step


def _check_alike(name: str, some: Sequence[Events]) -> None:
    """An error unless all have frames of one size, and as many steps."""
    sizes = {(each.width, each.height, each.steps) for each in some}
    if len(sizes) > 1:
        words = " and ".join(f"{width}×{height} pixels in {steps} steps" for width, height, steps in sorted(sizes)[:2])
        raise GerdError(f"{name}: has recordings of {words}; allowed: one size and length, such as windows of them")


def _pair(
    some: Sequence[Events],
    g: Transformation,
    about: object,
    first_step: int,
    device: str,
    truth: NDArray[np.generic] | None,
    transformed: Sequence[Events] | None,
) -> Pair:
    acted = [] if transformed is not None else [act_on_events(g, each) for each in some]
    seen = transformed if transformed is not None else [each.events for each in acted]
    frames, frames_g = (torch.stack([each.frames() for each in part]).to(device) for part in (some, seen))
    size = (some[0].width, some[0].height)
    numbers = np.empty((len(some), 0))
    if about == WHICH:
        numbers = _of_classes(some) if truth is None else _one_hot(truth)
        return Pair(frames, frames_g, size, None, numbers, any(each.rounded for each in acted))
    own = _places(some) if truth is None else _given_places(truth, len(some), some[0].steps)
    if own is not None and about in WHERE:
        numbers = own[:, first_step:].reshape(len(some), some[0].steps - first_step, -1).mean(axis=1)
    places = _places(transformed) if transformed is not None and truth is None else None
    if places is None and own is not None:
        places = act_on_coordinates(g, torch.from_numpy(own), size).numpy()
    return Pair(frames, frames_g, size, places, numbers, any(each.rounded for each in acted))


def _places(some: Sequence[Events]) -> Array | None:
    """(recordings, steps, actors, 2): where the actors of recordings are; none if nobody knows."""
    known = [each.truth[:, :, 0, :2] for each in some if isinstance(each, Recording)]
    return np.stack(known) if len(known) == len(some) else None


def _given_places(truth: NDArray[np.generic], count: int, steps: int) -> Array:
    places = truth.astype(np.float64)
    if places.ndim == 3:
        places = places[:, :, None]
    if places.ndim != 4 or places.shape[:2] != (count, steps) or places.shape[3] != 2:
        got = f"has the axes {truth.shape[1:]} of each recording"
        raise GerdError(f"truth: {got}; allowed: places ({steps}, 2) or ({steps}, things, 2) in pixels, of each step")
    return places


def _one_hot(truth: NDArray[np.generic]) -> Array:
    if truth.ndim != 1 or truth.dtype.kind not in "iu" or (len(truth) and truth.min() < 0):
        raise GerdError(
            f"truth: {truth.dtype} with the axes {truth.shape}; allowed with scores: a class, 0 or more, of each"
        )
    return np.eye(int(truth.max(initial=0)) + 1)[truth.astype(np.int64)]


def _of_classes(some: Sequence[Events]) -> Array:
    """The classes of recordings of one actor each; nothing is known of other events."""
    rows = []
    for each in some:
        if not isinstance(each, Recording) or len(each.config.cast) != 1 or not each.present.all():
            return np.empty((len(some), 0))
        names = classes(each.config.family)
        rows.append(np.eye(len(names))[names.index(each.shapes[0])])
    return np.stack(rows)

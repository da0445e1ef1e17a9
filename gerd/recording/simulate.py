"""Config and index to recording: the one entry to the simulator, whatever backend does the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gerd.bounds import LARGEST_KEY
from gerd.calls import explained, names_of
from gerd.config.config import NOT_SET, Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import Which, config_of, member_count
from gerd.errors import GerdError, did_you_mean, shorten
from gerd.events.backends import run
from gerd.events.keys import Keys
from gerd.events.shared import Chunk, joined
from gerd.geometry.parameters import PARAMETER_COUNT
from gerd.geometry.trajectory import Trajectory
from gerd.plan.make import plan_of
from gerd.recording.recording import Recording
from gerd.scene.draw import draw
from gerd.scene.scenes import Scenes

Array = NDArray[np.float64]

CHUNK = 256  # steps of a window, by default
MOST_STEPS = 2**32 - 1  # the random counter has 32 bits for the step


@explained
def simulate(
    config: AnyConfig,
    index: int = 0,
    member: Which | None = None,
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int | None = None,
    **values: Any,
) -> Recording:
    """Return the recording of `config` with this `index` and `member`, which is the same as in a dataset of the config.

    `config` is a Config, the path of a file, YAML text or a mapping of fields. `member` is a number or swept values,
    such as {"time_scale": 2}; a config with a sweep requires it. `values` replace fields of the config, by path; the
    draw stays that of the index. `device` is where to compute, `chunk` how many steps at a time; neither changes the
    result.
    """
    _check_names(simulate, values)
    options: Any = {"device": device, "backend": backend, "chunk": chunk}
    return simulate_batch(config, [index], member, values=values, **options)[0]


@explained
def simulate_family(config: AnyConfig, index: int = 0, *, device: str = "cpu", **values: Any) -> list[Recording]:
    """Return the recordings of an index, one for each member of the sweep: one draw; only what is swept differs."""
    _check_names(simulate_family, values)
    family = as_config(config)
    return [simulate(family, index, k, device=device, **values) for k in range(member_count(family))]


@explained
def simulate_batch(
    config: AnyConfig,
    indices: Sequence[int],
    member: Which | None = None,
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int | None = None,
    values: Mapping[str, Any] | None = None,
) -> list[Recording]:
    """Return several recordings of a member at once, each with the same bits as if it were made alone."""
    if not isinstance(indices, Sequence | np.ndarray) or isinstance(indices, str):
        raise GerdError(f"indices {shorten(indices)}: allowed: several numbers, such as [0, 1, 2] or range(3)")
    if len(indices) == 0:
        return []
    config = config_of(as_config(config), member, values).sampled
    scenes = draw(plan_of(config), indices)
    parts: list[list[Chunk]] = [[] for _ in indices]
    for part in run(scenes, device=device, backend=backend, chunk=chunk):
        parts[part.row].append(part)
    truth = scenes.truth(np.arange(scenes.steps))
    looks = _looks(scenes)
    return [_recording(config, *each) for each in zip(looks, parts, truth, strict=True)]


@explained
def simulate_chunks(
    config: AnyConfig,
    index: int = 0,
    member: Which | None = None,
    *,
    device: str = "cpu",
    backend: str | None = None,
    chunk: int = CHUNK,
    endless: bool = False,
    **values: Any,
) -> Iterator[Recording]:
    """Yield the recording of `simulate` in windows of `chunk` steps, in memory that does not grow with its length.

    The windows follow each other without a gap, and have the bits of the whole recording. An endless recording goes on
    after its configured steps, up to step 2³² - 1, or in exact timing up to the last whose events have keys of 62 bits.
    """
    _check_names(simulate_chunks, values)
    config = config_of(as_config(config), member, values).sampled
    scenes = draw(plan_of(config), [index])
    if endless:
        codec = Keys.of(scenes)
        scenes = replace(scenes, steps=min(MOST_STEPS, LARGEST_KEY // codec.per_step), path_end=sys.maxsize)
    return _windows(config, scenes, run(scenes, device=device, backend=backend, chunk=chunk))


def _check_names(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """An error for a name that is neither an argument of the function nor begins the path of a field."""
    fields = [name for name in Config.model_fields if name not in NOT_SET]
    for path in values:
        first = path.partition(".")[0]
        if first not in Config.model_fields:
            arguments = names_of(function)
            hint = did_you_mean([first], [*arguments, *fields])
            raise GerdError(
                f"{function.__name__}: there is no argument {path}, and no such field; {hint}its arguments are "
                f"{', '.join(arguments)}; fields, by their paths: {', '.join(fields)}"
            )


def _windows(config: Config, scenes: Scenes, parts: Iterator[Chunk]) -> Iterator[Recording]:
    (looks,) = _looks(scenes)
    for part in parts:
        steps = np.arange(part.steps.start, part.steps.stop)
        scenes = scenes.resumed(steps)
        yield _recording(config, looks, [part], scenes.truth(steps)[0])


def _looks(scenes: Scenes) -> Iterator[Scenes]:
    """Each scene of a batch by itself, without its motion."""
    still = Trajectory.at_rest(np.zeros((1, *scenes.chosen.shape[1:], PARAMETER_COUNT)))
    for i in range(len(scenes)):
        own = slice(i, i + 1)
        arrays = {name: getattr(scenes, name)[own] for name in ("indices", "chosen", "intensity")}
        yield replace(scenes, trajectory=still, **arrays)


def _recording(config: Config, looks: Scenes, parts: list[Chunk], truth: Array) -> Recording:
    """From a scene without its motion, events of consecutive steps, and the ground truth (steps, actors, 3, 6)."""
    whole = joined(parts)
    first = whole.steps.start
    keys = Keys.of(looks).moved(whole.keys, -first)
    return Recording.of(config, int(looks.indices[0]), truth, keys, whole.source, whole.delay, first=first, drawn=looks)

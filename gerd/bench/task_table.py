"""The five tasks: what a network gets, what it has to answer, and in which shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from gerd.bench.frozen import FOLDER
from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import GerdError, did_you_mean, shorten

if TYPE_CHECKING:
    from gerd.training.labels import Label

FIRST_STEP = 16  # the first that counts: what came before has shown how the shape moves
GLYPHS = 10
HORIZON = 8.0  # steps after which the error of a velocity is looked at


@dataclass(frozen=True)
class Task:
    """One question about recordings."""

    name: str
    title: str
    item: str  # what a network gets of a recording: "frames" or "events", as of `gerd.Stream`
    label: Label = field(hash=False)  # the truth, as of `gerd.Stream`
    axes: tuple[str | int, ...]  # of an answer: "recordings", "steps" and "events" stand for their numbers
    answer: str  # what the numbers of an answer are
    error: str  # what the error of a recording is
    unit: str  # of the error
    first_step: (
        int | None
    )  # the first that counts, in steps of the neutral config; None: an answer is of a whole recording

    @property
    def shape(self) -> str:
        """The shape of an answer, in words: (recordings, steps, 2)."""
        return f"({', '.join(map(str, self.axes))}{',' if len(self.axes) == 1 else ''})"

    @property
    def config(self) -> Config:
        """The neutral config, on which every split is based."""
        return _config(self.name)

    @property
    def classes(self) -> int:
        """How many classes an answer tells apart; 0 if it is no choice among classes."""
        return GLYPHS if self.name == "classify" else 0

    def check_answer(self, shape: Sequence[int], *, recordings: int = 0, steps: int = 0, events: int = 0) -> None:
        """An error unless an answer has this shape, for so many recordings of so many steps, or so many events."""
        sizes: dict[str | int, int] = {"recordings": recordings, "steps": steps, "events": events}
        wanted = tuple(sizes.get(axis, axis) for axis in self.axes)
        if tuple(shape) != wanted:
            meaning = f"{self.shape}, here {wanted}: {self.answer}"
            raise GerdError(f"{self.name}: the answer has the shape {tuple(shape)}; allowed: {meaning}")


_TASKS = (
    Task(
        name="locate",
        title="Where is the square?",
        item="frames",
        label="positions",
        axes=("recordings", "steps", 2),
        answer="x and y of the square's centre in pixels, at each step",
        error="mean distance from the true centre, over the steps that count",
        unit="px",
        first_step=FIRST_STEP,
    ),
    Task(
        name="transform",
        title="By which affine map does one see the L, and how does the map change?",
        item="frames",
        label={"T": "T", "T_velocity": "T_velocity"},
        axes=("recordings", "steps", 2, 2, 3),
        answer="the first two rows of T in pixels, then of its velocity T′ in pixels per step, at each step",
        error="mean distance between where the answer and the truth put three corners of the unit square, and between "
        f"how far they take these in {HORIZON:g} steps at the velocity T′; over the steps that count, half from each",
        unit="px",
        first_step=FIRST_STEP,
    ),
    Task(
        name="classify",
        title="Which of ten characters is it?",
        item="frames",
        label="shape",
        axes=("recordings", GLYPHS),
        answer="a score for each character, in the order of `stream.classes`; the highest is the answer",
        error="1 if the answer is wrong, 0 if it is right",
        unit="",
        first_step=None,
    ),
    Task(
        name="flow",
        title="How does the edge move that caused this event?",
        item="events",
        label="event_flow",
        axes=("events", 2),
        answer="vx and vy at each event, in pixels per step",
        error="mean distance from the true velocity, over the events in steps that count; noise has no velocity (the "
        "truth is NaN), and does not count",
        unit="px/step",
        first_step=FIRST_STEP,
    ),
    Task(
        name="noise",
        title="Did a moving edge cause this event, or is it noise?",
        item="events",
        label="source",
        axes=("events",),
        answer="a score for each event, above 0 for noise; the truth is noise where `source` is not 0",
        error="the share of edge events and the share of noise that are taken for the other, half from each, in the "
        "steps that count",
        unit="",
        first_step=FIRST_STEP,
    ),
)


def tasks() -> tuple[str, ...]:
    """The names of the tasks."""
    return tuple(each.name for each in _TASKS)


@explained
def task(name: str) -> Task:
    """The task of this name."""
    for each in _TASKS:
        if each.name == name:
            return each
    raise GerdError(f"task {shorten(name)}: {did_you_mean([name], tasks())}allowed: {', '.join(tasks())}")


@lru_cache
def _config(name: str) -> Config:
    return parse((FOLDER / f"{name}.yaml").read_text("utf-8"), source=f"{name}.yaml")

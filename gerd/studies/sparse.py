"""Do several time constants beat each of them alone where no single step shows the shape?

The study `timescale` keeps a quarter of the events, and one step is then enough to see where the square is: the
training settles on the shortest time constant, and for faster scenes there is no shorter one. Here one event in twenty
is kept, so that a place has to be gathered from several steps, and how many depends on the speed. Everything else is
as in `timescale`, the controls included.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gerd.config.config import Config
from gerd.studies import timescale
from gerd.studies.lab.results import Results
from gerd.studies.lab.training import Order

KEPT = 0.05  # of the events
SIZES = {**timescale.SIZES, "full": replace(timescale.SIZES["full"], epochs=10)}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: that of `timescale`, with fewer events."""
    return timescale.stimuli(side, seed, KEPT)


def compute(out: Path | str, order: Order) -> Results:
    """Train and test everything that is not yet in `out`; the results, which are also in its results.json."""
    return timescale.compute(out, order, "sparse", KEPT)


def report(results: Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    return timescale.report(results, out, "Do several time constants beat each of them alone when events are sparse?")

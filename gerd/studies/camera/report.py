"""The report: a table of effects and transformations, a figure, and what the effects do to a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gerd.measures.statistics import LEAST, summary
from gerd.studies.camera.effects import EFFECTS, ELEMENTS, IDEAL
from gerd.studies.camera.findings import (
    DISTANCE,
    LEAST_EVENTS,
    SHARE,
    Cell,
    Verdict,
    by_verdict,
    cells,
    growth,
    worst,
)
from gerd.studies.camera.trials import CAP, NETWORK, SIZES, SPEEDS, SWEEPS, TITLE, WINDOW_US
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import at_chance
from gerd.studies.lab.results import Results

MARKS: dict[Verdict, str] = {"broken": " ✗", "kept": "", "undecided": " ?", "too few": " –"}


def opening(results: Results, table: dict[str, list[Cell]]) -> list[str]:
    """Three sentences: what breaks what, what the ideal camera does, and what happens to a network."""
    first, *others = (f"by {_named(by_verdict(table, element, 'broken'))}" for element in ELEMENTS)
    broken = [f"is broken {first}", *others]
    said = "; ".join(f"{element.name} {by}" for element, by in zip(ELEMENTS, broken, strict=True))
    ideal = max(cell.number.value for cell in table[IDEAL] if cell.element.on_grid)
    effect, speed, grown = worst(results)
    network = (
        f"The error of a network that was trained with the ideal camera grows most with {effect}, at time scale "
        f"{speed:g}: by {drawing.over_seeds([(grown.value, grown.interval)])} px."
    )
    if at_chance(results.curve(NETWORK, SWEEPS[0])):
        network = "The network is at chance with the ideal camera: nothing follows about what effects do to it."
    return [
        f"{drawing.capitalised(said)}.",
        f"Of the ideal camera's events, {ideal:.2%} at most have no counterpart where the transformation takes pixels "
        "to pixels.",
        network,
    ]


def _named(effects: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(effects[:-1]), *effects[-1:]])) or "nothing"


def conclusions(table: dict[str, list[Cell]]) -> list[str]:
    lines = []
    for element in ELEMENTS:
        found = {verdict: by_verdict(table, element, verdict) for verdict in MARKS}
        said = "; ".join(f"{verdict} with {', '.join(effects)}" for verdict, effects in found.items() if effects)
        lines.append(f"{drawing.capitalised(element.name)}: {said}.")
    return lines


def report(results: Results, out: Path) -> str:
    table = cells(results)
    drawing.write_csv(out, [_row(cell) for row in table.values() for cell in row])
    drawing.write_csv(out, _network_rows(results), "network.csv")
    setting = (
        "A scene and its transformed twin are recorded with one effect of a camera, all else equal and everything "
        "random drawn alike, in exact timing. Each event of the scene is taken to where it belongs after the "
        "transformation. Translation by whole pixels, a quarter turn and a time scale take pixels to pixels. There the "
        "number is the share of the events of both recordings that have no counterpart: one of the same pixel and "
        f"polarity within {WINDOW_US} µs. Scale and boost do not take pixels to pixels. There the number is how much "
        "farther, in pixels, an event is from the nearest one of the other recording than with the ideal camera (a "
        f"step counts as a quarter of a pixel, and {CAP:g} px is the most). A symmetry is *broken* if the whole 95 % "
        f"interval of the mean is above {SHARE:g} (of scale and boost, {DISTANCE:g} px), *kept* if it is all within. "
        f"From fewer than {LEAST} recordings, or with fewer than {LEAST_EVENTS} events in one of them, nothing is "
        "concluded.\n"
    )
    parts = [
        "\n## Events\n",
        f"Means over {results.settings.size.tests} pairs of recordings. ✗ broken, ? undecided, – too few recordings or "
        "events; all else is kept.\n",
        drawing.table(
            ["effect", "strength", *(element.name for element in ELEMENTS)],
            [[effect.name, effect.strength, *map(_written, table[effect.name])] for effect in EFFECTS],
        ),
        "## A network\n",
        "Channels along time constants, which make a network indifferent to speed (`gerd study timescale`), are "
        "trained on a square with the ideal camera, and tested with each effect at three time scales, in own time. "
        "Numbers are medians in px, and how much they grow; max/min is the largest median over the smallest.\n",
        drawing.table(
            [
                "effect",
                *(f"s = {speed:g}" for speed in SPEEDS),
                *(f"grows at {speed:g}" for speed in SPEEDS),
                "max/min",
            ],
            [_network_line(results, effect.name) for effect in EFFECTS],
        ),
        f"Chance: {drawing.chance(results).lower()}.\n",
        "## Limits\n",
        "One strength of each effect, one kind of scene. Another strength may break what this one keeps. The numbers "
        "are about these events: whether a model minds is another question, and the network above is one "
        "answer to it.\n",
    ]
    return drawing.assembled(
        results,
        TITLE,
        setting,
        conclusions(table),
        *parts,
        full=SIZES["full"],
        opening=opening(results, table),
        figure=_figure(results, table, out),
    )


def _written(cell: Cell) -> str:
    value = f"{cell.number.value:.3f}" if cell.element.on_grid else f"{cell.number.value:+.2f} px"
    return value + MARKS[cell.verdict]


def _row(cell: Cell) -> dict[str, object]:
    return {
        "effect": cell.effect,
        "transformation": cell.element.name,
        "measure": "share without counterpart" if cell.element.on_grid else "farther than ideal, px",
        "n": cell.number.count,
        **drawing.columns("mean", (cell.number.value, cell.number.interval)),
        "events": round(cell.events),
        "verdict": cell.verdict,
    }


def _network_rows(results: Results) -> list[dict[str, object]]:
    return [
        row for sweep in SWEEPS for row in drawing.rows_of(results, NETWORK, sweep, "time_scale", effect=sweep.name)
    ]


def _network_line(results: Results, effect: str) -> list[str]:
    sweep = next(sweep for sweep in SWEEPS if sweep.name == effect)
    curve = results.curve(NETWORK, sweep)
    grown = growth(results, effect)
    return [
        effect,
        *(drawing.px([summary(errors)]) for errors in curve.errors),
        *(drawing.over_seeds([(each.value, each.interval)]) for each in grown),
        drawing.over_seeds([curve.ratio()]) + " (at chance)" * bool(at_chance(curve)),
    ]


def _figure(results: Results, table: dict[str, list[Cell]], out: Path) -> str:
    """On the left shares and distances, as darker cells, on the right the network's errors, effect by effect."""
    from matplotlib.ticker import LogLocator

    figure = drawing.new_figure(8.5, 0.32 * len(EFFECTS) + 1.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    most = {True: 1.0, False: 0.5}  # what is darkest: of shares, and of pixels
    shades = np.array(
        [[max(cell.number.value, 0) / most[cell.element.on_grid] for cell in row] for row in table.values()]
    )
    left.imshow(shades.clip(0, 1), cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    for y, row in enumerate(table.values()):
        for x, cell in enumerate(row):
            left.text(x, y, _written(cell), ha="center", va="center", fontsize=6)
    left.set_xticks(range(len(ELEMENTS)), [element.name.replace(" by ", "\nby ") for element in ELEMENTS], fontsize=6)
    left.set_yticks(range(len(EFFECTS)), [effect.name for effect in EFFECTS], fontsize=7)
    left.set_title("events without a counterpart; farther than ideal", fontsize=8)
    for speed, marker in zip(SPEEDS, ("v", "o", "^"), strict=True):
        medians = [np.median(results.curve(NETWORK, sweep).errors[SPEEDS.index(speed)]) for sweep in SWEEPS]
        right.plot(medians, range(len(SWEEPS)), marker, markersize=4, label=f"s = {speed:g}")
    right.set_xscale("log")
    right.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    right.xaxis.set_minor_formatter("")
    right.set_xlabel("median error of the network, px", fontsize=7)
    right.legend(fontsize=6, frameon=False)
    return drawing.save(figure, out, "camera")

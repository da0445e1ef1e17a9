"""Do banks of channels make a network indifferent to boosts, to spatial scale and to rotation?

The idea of the invariant network of the time scale study, for three other groups. A square moves slowly in the
training, upright and of about one size. In the test the whole scene moves along x, by up to three pixels per step
more; or it is half to twice as large; or it is turned. Each channel of a bank sees the scene in its own way (along a
velocity, scaled, turned) and abstains where that does not fit. The baseline has one channel of the same kind, which
sees the scene as it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gerd.config.config import Config
from gerd.measures.curves import Covariance, covariance_matrix
from gerd.scene.transformation import rotation, scale, velocity
from gerd.studies.lab import drawing
from gerd.studies.lab.comparison import Comparison, compared, each_seed, surely
from gerd.studies.lab.experiment import Experiment, Network
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, Sweep
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, abstaining_loss, place_loss, square
from gerd.studies.models import Channels, Layers, PoseChannels, VelocityChannels

TITLE = "Do banks of channels make a network indifferent to boosts, to spatial scale and to rotation?"
STEPS, FIRST_STEP = 32, 14
MIDDLE_STEP = (STEPS + FIRST_STEP) / 2  # at which a boosted scene is where it was
BOUND = 2.0  # by which factor the error of a bank may vary
SAMPLED = 9  # steps at which a bank sees a recording in an epoch
OWN_SPEEDS = (0.03, 0.1, 0.3)  # of the square along each axis, pixels per step


@dataclass(frozen=True)
class Bank:
    """Channels along one group, and the amounts of it at which they are tested."""

    sweep: Sweep
    channels: tuple[float, ...]
    build: Callable[[Sequence[float], Layers, int], Channels]
    alone: str  # the name of its baseline, which has the channel of the training only
    near: float  # channels that are not farther from the one of the training need not abstain
    period: float = 0.0  # after which the amounts begin anew
    unit: str = ""  # with a blank before it

    @property
    def name(self) -> str:
        return f"bank, {self.sweep.name}"

    def distance(self, channel: float, amount: float) -> float:
        """Between two amounts: of factors in octaves, of angles the shorter way."""
        if self.period:
            return abs((channel - amount + self.period / 2) % self.period - self.period / 2)
        return abs(channel - amount) if self.sweep.trained == 0 else abs(math.log2(channel / amount))

    @property
    def anchor(self) -> int:
        return self.channels.index(self.sweep.trained)

    @property
    def others(self) -> list[int]:
        return [k for k, each in enumerate(self.channels) if self.distance(each, self.sweep.trained) > self.near]

    def matched(self, amount: float) -> int:
        """The channel nearest to an amount; between two that are as near, the one nearer to the training."""

        def away(k: int) -> tuple[float, float]:
            channel = self.channels[k]
            return round(self.distance(channel, amount), 9), self.distance(channel, self.sweep.trained)

        return min(range(len(self.channels)), key=away)


BOOSTS = (-3.0, -2.25, -1.5, -0.75, 0.0, 0.75, 1.5, 2.25, 3.0)  # pixels per step along x
FACTORS = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0)
ANGLES = (0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 70.0, 80.0, 90.0)  # degrees; the square is the same after 90
BANKS = (
    Bank(
        Sweep("velocity", BOOSTS, partial(velocity, epoch=MIDDLE_STEP), 0.0),
        tuple(k / 2 for k in range(-8, 9)),
        lambda velocities, layers, seed: VelocityChannels([(u, 0) for u in velocities], layers=layers, seed=seed),
        alone="one channel at rest",
        near=0.6,
        unit=" px per step",
    ),
    Bank(
        Sweep("scale", FACTORS, scale, 1.0),
        tuple(2.0 ** (k / 4) for k in range(-6, 7)),
        lambda factors, layers, seed: PoseChannels([(factor, 0) for factor in factors], layers=layers, seed=seed),
        alone="one upright channel",
        near=0.3,
    ),
    Bank(
        Sweep("rotation", ANGLES, rotation, 0.0),
        tuple(11.25 * k for k in range(8)),
        lambda angles, layers, seed: PoseChannels([(1, angle) for angle in angles], layers=layers, seed=seed),
        alone="one upright channel",
        near=12.0,
        period=90.0,
        unit=" °",
    ),
)
SIZES = {
    "full": Size(side=96, training=2000, tests=160, epochs=8, batch=8, seeds=3, layers=FULL, first_step=FIRST_STEP),
    "quick": Size(
        side=96, training=600, tests=60, epochs=8, batch=8, seeds=1, layers=SMALL, rate=4e-3, first_step=FIRST_STEP
    ),
    "smoke": Size(
        side=32, training=8, tests=6, epochs=2, batch=8, seeds=1, layers=TINY, first_step=FIRST_STEP, conclusive=False
    ),
}
TAKES = {
    "full": "7 minutes on an NVIDIA H200",
    "quick": "about 20 minutes on two CPU cores, by an estimate",
    "smoke": "a minute",
}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: an upright square of about one size near the middle, which moves slowly.

    Its speeds along x and y are drawn from some that are far apart: so one pair of sides often makes many more events
    than the other, as all of them do in a scene that is boosted along x. Without background noise: where a channel sees
    more than the frame there is none, which would tell it its scale. In exact timing, since in steps a pixel's second
    event comes late, the more so the faster the scene.
    """
    near = 0.06 * side
    middle = side / 2
    start = {"uniform": [middle - near, middle + near]}
    size = {"uniform": [0.14 * side, 0.18 * side]}
    speeds = {"choice": [sign * speed for speed in OWN_SPEEDS for sign in (-1, 1)]}
    return square(
        side,
        seed,
        STEPS,
        {"event": 0.5},
        "exact",
        translation={"start": start, "velocity": speeds, "border": "free"},
        scale={"start": size, "velocity": {"choice": [-0.05, 0.05]}},
    )


def compute(out: Path | str, order: Order) -> Results:
    config = stimuli(order.size.side, order.seed)
    layers = order.size.layers
    folder = StudyFolder(out, "covariance", order, config)
    runs = []
    for bank in BANKS:
        loss = abstaining_loss(bank.anchor, bank.others, SAMPLED)
        kind = Network(partial(bank.build, bank.channels, layers), loss, [config])
        runs += Experiment(folder, config, [bank.sweep]).runs({bank.name: kind})
    for name, banks in itertools.groupby(BANKS, lambda bank: bank.alone):
        first, *others = banks
        kind = Network(partial(first.build, (first.sweep.trained,), layers), place_loss, [config])
        runs += Experiment(folder, config, [bank.sweep for bank in (first, *others)]).runs({name: kind})
    return folder.finish(Experiment(folder, config, []).chance(), runs)


def finished(results: Results) -> list[Bank]:
    """The banks that were trained, if their baselines were, too."""
    return [bank for bank in BANKS if {bank.name, bank.alone} <= {*results.models}]


def matrix_of(run: Run, bank: Bank) -> Covariance:
    """Channels against amounts in one training."""
    test = run.test(bank.sweep)
    matched = [bank.matched(amount) for amount in test.amounts]
    return covariance_matrix(test.channels, test.weights, bank.channels, test.amounts, matched)


def comparisons(results: Results, bank: Bank) -> list[Comparison]:
    """How much smaller the errors of a bank are than those of one channel, at each amount."""
    theirs = results.curve(bank.alone, bank.sweep, beside=bank.name)
    return compared(theirs, results.curve(bank.name, bank.sweep, beside=bank.alone))


def how_flat(results: Results, bank: Bank) -> tuple[str, str]:
    """By which factor the median error varies, with what that means, for the bank and for one channel."""
    seeds, alone = (
        [curve.invariance() for curve in each_seed(results.curve(name, bank.sweep))] for name in (bank.name, bank.alone)
    )
    return f"{drawing.ratios(seeds)} (within {BOUND:g}: {drawing.verdicts(seeds, BOUND)})", drawing.flatness(alone)


def opening(results: Results) -> list[str]:
    """A sentence for each group: how flat the error of its bank is, and that of one channel."""
    lines = []
    for bank in finished(results):
        ratio, baseline = how_flat(results, bank)
        span = f"from {bank.sweep.amounts[0]:g} to {bank.sweep.amounts[-1]:g}{bank.unit}"
        lines.append(
            f"With a bank of channels for {bank.sweep.name}, the median error {span} varies by a factor of {ratio}, "
            f"and with one channel by {baseline}."
        )
    return lines


def conclusions(results: Results) -> list[str]:
    lines = []
    for bank in finished(results):
        ratio, baseline = how_flat(results, bank)
        matrices = [matrix_of(run, bank) for run in results.of(bank.name)]
        cells = len(bank.sweep.amounts) * len(matrices)
        chosen, near = (sum(each.on_diagonal(each.selected, within) for each in matrices) for within in (0, 1))
        unseen = [each for each in comparisons(results, bank) if each.amount != bank.sweep.trained]
        lines.append(
            f"{bank.sweep.name.capitalize()}, {bank.sweep.amounts[0]:g} to {bank.sweep.amounts[-1]:g}{bank.unit}: "
            f"the median error varies by a factor of {ratio}, "
            f"and by {baseline} with one channel; the bank is {surely(unseen)} amounts that were not in the training. "
            f"It gives the largest share to the nearest channel in {chosen} of {cells} cases, and to one beside it in "
            f"{near - chosen}."
        )
    return lines


def report(results: Results, out: Path) -> str:
    rows, cells, tables = [], [], []
    for bank in finished(results):
        group = bank.sweep.name
        for name in (bank.name, bank.alone):
            rows += drawing.rows_of(results, name, bank.sweep, "amount", group=group)
        for run in results.of(bank.name):
            cells += drawing.cells_of(matrix_of(run, bank), group=group, seed=run.seed)
        tables.append(drawing.versus(group, bank.name, bank.alone, comparisons(results, bank), bank.sweep.trained))
    drawing.write_csv(out, rows)
    drawing.write_csv(out, cells, "channels.csv")
    size = results.settings.size
    speeds = " or ".join(f"±{speed:g}" for speed in OWN_SPEEDS)
    setting = (
        "All of this is ours, and none of it the paper's. Training: "
        f"{size.training} recordings of an upright square of 0.14 to 0.18 of a frame of {size.side}×{size.side} "
        f"pixels, which moves by {speeds} px per step along each axis. Test: the scene is boosted, scaled or "
        f"turned as a whole and rendered anew, with the same draws, for {size.tests} other recordings; errors count "
        f"from step {FIRST_STEP} of {STEPS} on.\n"
    )
    parts = [
        "\n## Errors\n",
        *tables,
        f"{drawing.OVER_SEEDS} Differences and d are positive where the bank is better. "
        f"Chance: {drawing.chance(results).lower()}.\n",
        "## Which channel is right, and which is used\n",
        "Of the first seed: errors of each channel alone, and its share. A frame marks the channel nearest to the "
        "amount; bold is the smallest error or the largest share. Every cell of every seed, with intervals, is in "
        "channels.csv.\n",
        *(_matrix(results, bank, out) for bank in finished(results)),
        "## Where it stops being exact, and why\n",
        LIMITS,
    ]
    curves = _curves(results, out)
    return drawing.assembled(
        results,
        TITLE,
        setting,
        conclusions(results),
        *parts,
        full=SIZES["full"],
        opening=opening(results),
        figure=curves,
    )


LIMITS = """\
- *Boosts.* A channel that moves with the scene undoes the boost of what it sees, and not of how it was seen. Events
  tell of motion in the sensor's frame: an edge that stood still in the training fires, and the faster, the more; edges
  along the boost fall behind; and an edge that was ON may be OFF, as the square now moves the other way. So the data
  themselves are not covariant. Channels that count events of each polarity found the velocity and were up to three
  times as far off at 3 px per step. Here both polarities count alike, a view has as many events whatever the speed, and
  a root makes strong edges less so. What is left: a pixel fires when its integrator has come to the threshold, half of
  a threshold of coverage late, which is a quarter of a pixel against the motion; and within a step an edge sweeps as
  many pixels as its speed.
- *Scale.* If the answer is covariant, its error in pixels grows with the factor, as the scene does; what is left
  below 1 is limited by the pixels. A larger scene covers more pixels, with as many events for each, and a channel
  that sees it smaller averages over them; one that sees a small scene larger has nothing to average. What leaves the
  frame is gone: beyond twice the size these scenes do.
- *Rotation.* Quarter turns are exact, as pixels map to pixels. Others are interpolated, the same for all channels,
  and the sensor counts on a grid that does not turn. The bank covers 90°, after which a square is the same.
- Channels lie half a pixel per step, a quarter of an octave and 11.25° apart, and along one direction of boosts only.
  Boosts of ±0.75 and ±2.25 lie midway between two channels, either of which is as near.
"""


def _curves(results: Results, out: Path) -> str:
    figure = drawing.new_figure(7.5, 2.8)
    banks = finished(results)
    axes = figure.subplots(1, len(banks), sharey=True, squeeze=False)
    for ax, bank in zip(axes[0], banks, strict=True):
        curves = {name: results.curve(name, bank.sweep) for name in (bank.name, bank.alone)}
        drawing.draw_curves(ax, curves, xlabel=f"{bank.sweep.name}{bank.unit}")
    return drawing.save(figure, out, "covariance")


def _matrix(results: Results, bank: Bank, out: Path) -> str:
    figure = drawing.new_figure(7.5, 0.17 * len(bank.channels) + 0.8)
    left, right = figure.subplots(1, 2)
    matrix = matrix_of(results.of(bank.name)[0], bank)
    drawing.draw_covariance(left, right, matrix, bank.sweep.name, f"channel{bank.unit}")
    return drawing.save(figure, out, bank.sweep.name)


if __name__ == "__main__":
    raise SystemExit("error: this module is no program; the command is: gerd study covariance")

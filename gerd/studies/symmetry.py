"""Which transformations does a network respect?

Every transformation of the tool is applied, in several amounts, to the same recordings. Two things are measured: how
the error against the truth changes, and how far the answer is from the transformed answer. Both have to stay small: a
network that cannot see along x may be as far off after a turn as before, and one that follows the scene exactly has
half the error in a scene of half the size. The network is the one with five time constants, trained here, or one of the
user's: a function that builds it, and its weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import numpy as np
import torch

from gerd.config.config import Config
from gerd.config.sensor import PerPolarity
from gerd.errors import GerdError, counted, shorten
from gerd.measures.answers import LEAST_DIFFERENT, relative_error
from gerd.measures.asking import Model
from gerd.measures.chance import surely_below
from gerd.measures.curves import Curve, Number
from gerd.measures.errors import chance_error, truth_and_chance_errors
from gerd.measures.measure import equivariance_error
from gerd.measures.named import named_function, source_of
from gerd.measures.pairs import EventOptions
from gerd.measures.statistics import LEAST, bootstrap, summary
from gerd.plan.make import plan_of
from gerd.scene.transformation import KINDS, UNITS, Transformation, acceleration, velocity
from gerd.studies.lab import drawing
from gerd.studies.lab.fitting import rounded
from gerd.studies.lab.folder import StudyFolder
from gerd.studies.lab.results import Results, Run, SweepResult
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, place_loss, recordings, square, train
from gerd.studies.models import ScaleChannels

TITLE = "Which transformations does a network respect?"
TOLERANCE = 1.0  # pixels: how far the answer may be from the transformed one, and by how much the error may change
BATCH = 8  # recordings that the network gets at once
TIME_SCALES = (1.0, 0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
NUMBERS = ["n", "error, px", "chance, px", "grows by, px", "equivariance error, px", "relative"]  # columns
Verdict = Literal["yes", "no", "undecided", "at chance"]
OWN = "five time constants, trained here"
OF_CAMERA = {  # transformations of what a camera does, and the numbers of `Pixel` that they set
    "hot": "hot_share",
    "dead": "dead",
    "threshold_spread": "spread",
    "log_response": "log_response",
    "refractory": "refractory_us",
    "leak": "leak_hz",
    "latency": "latency_us",
    "jitter": "jitter_us",
    "bus": "bus_us",
}
SPATIAL = ("translation", "rotation", "scale", "shear", "velocity", "acceleration")
SIZES = {
    "full": Size(side=128, training=1400, tests=200, epochs=8, batch=16, seeds=1, layers=FULL, first_step=16),
    "quick": Size(side=64, training=160, tests=24, epochs=10, batch=8, seeds=1, layers=SMALL, first_step=16),
    "smoke": Size(
        side=32, training=16, tests=6, epochs=2, batch=8, seeds=1, layers=TINY, conclusive=False, first_step=16
    ),
}
TAKES = {"full": "a minute on an NVIDIA H200", "quick": "3 minutes on two CPU cores", "smoke": "half a minute"}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: an upright square near the middle that moves slowly, with room for every transformation."""
    near = 0.15 * side
    middle = side / 2
    start = {"uniform": [middle - near, middle + near]}
    size = {"uniform": [0.15 * side, 0.3 * side]}
    return square(
        side,
        seed,
        40,
        {"background": 0.001, "event": 0.5},
        translation={"start": start, "velocity": {"uniform": [-0.7, 0.7]}},
        scale={"start": size, "velocity": {"choice": [-0.1, 0.1]}},
    )


def transformations(config: Config, first_step: int) -> dict[str, list[Transformation]]:
    """For each kind its amounts, the one that changes nothing first.

    What a camera does is among them where the config's camera does it.
    """
    side = min(config.sensor.width, config.sensor.height)
    noise = config.noise
    middle = (config.steps + first_step) / 2
    amounts: dict[str, tuple[float, ...]] = {
        "translation": (0.0, 0.25, 0.5, 1.0, 2.0, 0.05 * side, 0.1 * side),
        "rotation": (0.0, 5.0, 15.0, 30.0, 45.0, 90.0),
        "scale": (1.0, 0.5, 0.7, 1.4, 2.0),
        "shear": (0.0, 0.1, 0.25, 0.5, 1.0),
        "velocity": (0.0, 0.25, 0.5, 1.0, 2.0),
        "acceleration": (0.0, 0.01, 0.03, 0.1),
        "time_scale": tuple(s for s in TIME_SCALES if _comparable(config.steps, s, first_step)),
        "background": (noise.of_either_polarity, 0.0, 0.001, 0.003, 0.01, 0.03),
        "shape_noise": (noise.shape, 0.03, 0.1, 0.3),
        "density": (1 - noise.event, 1.0, 0.5, 0.25, 0.1, 0.05),
    }
    amounts |= _of_camera(config)
    if noise.of_each_polarity != PerPolarity():  # which none of these amounts leaves as it is
        del amounts["background"]
    if any(actor.translation.border == "wrap" for actor in config.actors):  # a torus cannot be moved or turned
        amounts = {kind: amounts[kind] for kind in amounts if kind not in SPATIAL}
    moving = {"velocity": velocity, "acceleration": acceleration}
    return {
        kind: [
            moving[kind](amount, epoch=middle) if kind in moving else KINDS[kind](amount)
            for amount in dict.fromkeys((tested[0], *sorted(tested)))
        ]
        for kind, tested in amounts.items()
    }


def _of_camera(config: Config) -> dict[str, tuple[float, ...]]:
    """The amounts of each thing that the config's camera does: its own, none, half and twice as much."""
    pixel = plan_of(config).pixel
    own = {kind: float(getattr(pixel, name)) for kind, name in OF_CAMERA.items()}
    found: dict[str, tuple[float, ...]] = {
        kind: (amount, 0.0, amount / 2, 2 * amount) for kind, amount in own.items() if amount > 0
    }
    for kind in ("hot", "dead"):
        if kind in found:
            found[kind] = tuple(min(1.0, share) for share in found[kind])
    if "log_response" in found:  # without it, thresholds would be in other units
        found["log_response"] = tuple(amount for amount in found["log_response"] if amount > 0)
    return found


def _comparable(steps: int, scale: float, first_step: int) -> bool:
    """Whether recordings at a time scale and at 1 have a common part of the path after the first steps."""
    return first_step <= (steps - 1) * min(scale, 1 / scale)


def _steps_needed(first_step: int) -> str:
    """How long recordings must be so that some time scale can be tested, and all."""
    needed = [next(n for n in count(first_step) if _comparable(n, scale, first_step)) for scale in TIME_SCALES[1:]]
    return f"{min(needed)} steps would do for some time scales, {max(needed)} for all"


def load_model(name: str, checkpoint: Path | str | None, device: str) -> Model:
    """What `module:build` makes, with the weights of a checkpoint; modules of the current folder are found."""
    build = named_function("--model", name, "my_models:build")
    try:
        network = build()
    except Exception as error:  # whatever a user's function may raise
        raise GerdError(f"--model {name!r}: cannot be made: {type(error).__name__}: {error}") from error
    if not callable(network):
        given = f"{name.rpartition(':')[2]}() gave {shorten(network)}"
        raise GerdError(f"--model {name!r}: {given}; allowed: a module or a function of frames")
    if isinstance(network, torch.nn.Module):
        if checkpoint is not None:
            load_weights_into(network, Path(checkpoint))
        network.to(device).eval()
    elif checkpoint is not None:
        raise GerdError(f"--checkpoint {checkpoint}: {name} is not a torch module, and has no weights")
    return network


def load_weights_into(network: torch.nn.Module, file: Path) -> None:
    """A state dict, as it is or below one of the usual names; from PyTorch's format or safetensors."""
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(file)
        else:
            state = torch.load(file, map_location="cpu", weights_only=True)
        for key in ("network", "state_dict", "model_state_dict", "model"):
            if isinstance(state, dict) and isinstance(state.get(key), dict):
                state = state[key]
        network.load_state_dict(state)
    except Exception as error:  # a missing file, another format, other weights
        reason = " ".join(str(error).split())  # with the names of the weights, on many lines
        if isinstance(error, UnpicklingError):  # PyTorch advises to run whatever is in the file
            code = re.search(r"GLOBAL (\S+)", reason)
            reason = f"it holds more than weights ({code[1]}), which is not unpickled" if code else "it is damaged"
            reason += "; save the weights: torch.save(net.state_dict(), FILE)"
        raise GerdError(f"--checkpoint {file}: cannot be loaded: {shorten(reason, 300)}") from None


def compute(
    out: Path | str,
    order: Order,
    *,
    model: str | None = None,
    checkpoint: Path | str | None = None,
    config: Config | None = None,
) -> Results:
    size = order.size
    config = (config or stimuli(size.side, order.seed)).in_steps
    if config.steps <= size.first_step:
        raise GerdError(f"steps: got {config.steps}: allowed with this study: more than {size.first_step}")
    network: Model | None = None if model is None else load_model(model, checkpoint, order.device)
    own = {"model": model or OWN, "checkpoint": None if checkpoint is None else str(checkpoint)}
    module = None if model is None else source_of(model)
    for name, file in (("checkpoint_sha256", checkpoint), ("model_sha256", module)):
        if file is not None:  # with other content it is another network
            own[name] = sha256(Path(file).read_bytes()).hexdigest()
    folder = StudyFolder(out, "symmetry", order, config, **own)
    losses: tuple[float, ...] = ()
    seconds = 0.0
    if network is None:
        network = ScaleChannels(fusion="evidence", layers=size.layers, seed=order.seed)
        data = recordings(config, 0, size.training, order.device)
        training = train(network, data, place_loss, order, order.seed, folder.weights("network"), "network")
        losses = training.losses
        seconds = training.seconds
    tests = tuple(
        folder.kept(kind, SweepResult, partial(tested, network, config, kind, amounts, order))
        for kind, amounts in transformations(config, size.first_step).items()
    )
    chance = chance_error(config, size.training, size.tests, size.first_step)
    return folder.finish(chance, [Run(model or OWN, order.seed, losses, seconds, tests)])


def tested(network: Model, config: Config, kind: str, amounts: list[Transformation], order: Order) -> SweepResult:
    order.deadline.check()
    size = order.size
    options: EventOptions = {
        "count": size.tests,
        "first": size.training,
        "first_step": size.first_step,
        "device": order.device,
        "batch": BATCH,
    }
    pairs = [equivariance_error(network, config, g, **options) for g in amounts]
    errors, chance = zip(*(truth_and_chance_errors(network, config, g, **options) for g in amounts), strict=True)
    tested = SweepResult(
        kind,
        tuple(g.amount for g in amounts),
        errors=tuple(map(rounded, errors)),
        chance=tuple(map(rounded, chance)),
        absolute=tuple(rounded(found.values[:, 1], 6) for found in pairs),
        apart=tuple(rounded(found.apart, 6) for found in pairs),
        different=pairs[0].different,
    )
    order.say(f"{kind}: {len(amounts)} amounts on {size.tests} recordings")
    return tested


def gained(test: SweepResult) -> list[Number]:
    """At each amount, by how many pixels the error grows, in the median over pairs of recordings, and its interval."""

    def growth(errors: tuple[float, ...]) -> Number:
        more = np.array(errors) - np.array(test.errors[0])
        return float(np.median(more)), bootstrap(lambda rows: np.median(more[rows], axis=-1), len(more))

    return list(map(growth, test.errors))


def verdicts(test: SweepResult) -> list[Verdict]:
    """For each amount but the first, which changes nothing: whether it is respected, surely within TOLERANCE.

    The answer has to stay near the transformed one, and its error neither to grow nor to fall. If the error stays as it
    was and the answer does not, that is undecided: noise of the sensor, which does not move with the scene, does this,
    too. An error that stays as large as that of chance is flat for another reason, and nothing is respected.
    """
    lost = curve_of(test).at_chance(TOLERANCE)

    def verdict(amount: float, growth: Number, absolute: tuple[float, ...]) -> Verdict:
        _, (low, high) = growth
        if low > TOLERANCE or high < -TOLERANCE:
            return "no"
        if low < -TOLERANCE or high > TOLERANCE or summary(absolute).interval[1] > TOLERANCE:
            return "undecided"
        return "at chance" if amount in lost else "yes"

    return list(map(verdict, test.amounts[1:], gained(test)[1:], test.absolute[1:]))


def why_no_verdicts(results: Results) -> str | None:
    """Why nothing can be said of any transformation; none where something can."""
    unchanged = results.runs[0].tests[0]  # its first amount changes nothing, as that of all others
    count, different = len(unchanged.errors[0]), unchanged.different or 0
    if count < LEAST:
        return f"{counted(count, 'recording')} in the test; allowed for a verdict: {LEAST} or more"
    if different < LEAST_DIFFERENT:
        but = f" but {different}" if different else ""
        return f"the network says the same of every recording{but}"
    errors, chance = np.array(unchanged.errors[0]), np.array(unchanged.chance[0])
    if surely_below(errors, chance, TOLERANCE):
        return None
    return (
        f"the network is at chance: without a transformation its mean error is {errors.mean():.1f} px, and that of the "
        f"best answer that is the same for every recording {chance.mean():.1f} px, which is not more by "
        f"{TOLERANCE:g} px up to the end of the 95 % interval"
    )


def opening(results: Results) -> list[str]:
    """Three sentences: what is respected, what changes the error most, and how large it is beside that of chance."""
    if reason := why_no_verdicts(results):
        return [f"No verdict: {reason}."]
    tests = [test for test in results.runs[0].tests if len(test.amounts) > 1]
    found = {test.sweep: set(verdicts(test)) for test in tests}
    wholly = [kind for kind, each in found.items() if each == {"yes"}]
    never = [kind for kind, each in found.items() if each == {"no"}]
    unsure = [kind for kind, each in found.items() if "yes" not in each and kind not in never]
    partly = len(tests) - len(wholly) - len(never) - len(unsure)
    growths = [
        (growth, test.sweep, amount)
        for test in tests
        for amount, growth in zip(test.amounts[1:], gained(test)[1:], strict=True)
    ]
    most, kind, amount = max(growths, key=lambda each: abs(each[0][0]))
    unchanged, chance = (summary(each[0]) for each in (tests[0].errors, tests[0].chance))
    return [
        f"Of {counted(len(tests), 'transformation')} the network respects {len(wholly)} in all amounts tested "
        f"({', '.join(wholly) or 'none'}) and {partly} in some; it does not respect {len(never)} in any amount "
        f"({', '.join(never) or 'none'}), and the other {len(unsure)} are certain to be respected in none "
        f"({', '.join(unsure) or 'none'}).",
        f"Its error changes most under {kind} {_with_unit(f'{amount:g}', kind)}, where it grows by "
        f"{drawing.over_seeds([most])} px.",
        f"Without a transformation the error is {drawing.px([unchanged])} px, and that of the best answer that is the "
        f"same for every recording {drawing.px([chance])} px (medians with their 95 % intervals).",
    ]


def conclusions(results: Results) -> list[str]:
    tests = results.runs[0].tests
    lines = [f"No verdict: {reason}."] if (reason := why_no_verdicts(results)) else _by_verdict(tests)
    if untested := [test.sweep for test in tests if len(test.amounts) == 1]:
        needed = _steps_needed(results.settings.size.first_step)
        lines.append(f"Not tested: {', '.join(untested)}; the recordings are too short for it: {needed}.")
    return lines


def _by_verdict(tests: Sequence[SweepResult]) -> list[str]:
    """Which transformations are respected, and in which amounts; what else was found of which amounts."""
    wholly: list[str] = []
    of_some: dict[Verdict, list[str]] = {"yes": [], "no": [], "undecided": [], "at chance": []}
    for test in tests:
        found = dict(zip(test.amounts[1:], verdicts(test), strict=True))
        for verdict, kinds in of_some.items():
            if some := _amounts(test, found, verdict):
                (wholly if {*found.values()} == {"yes"} else kinds).append(f"{test.sweep} {some}")
    said: dict[Verdict, str] = {
        "undecided": "Undecided",
        "at chance": "No verdict, since the network is at chance there",
    }
    return [
        f"Respected in all amounts tested: {', '.join(wholly) or 'nothing'}.",
        f"Respected in some: {', '.join(of_some['yes']) or 'nothing'}.",
        f"Not respected: {', '.join(of_some['no']) or 'nothing'}.",
        *(f"{words}: {', '.join(of_some[verdict])}." for verdict, words in said.items() if of_some[verdict]),
    ]


def _amounts(test: SweepResult, found: Mapping[float, Verdict], verdict: Verdict) -> str:
    """The amounts with this verdict, in parentheses; nothing where there are none."""
    named = ", ".join(f"{amount:g}" for amount, each in found.items() if each == verdict)
    return f"({_with_unit(named, test.sweep)})" if named else ""


def curve_of(test: SweepResult) -> Curve:
    """Errors against the truth, in order of the amount."""
    measured = zip(test.amounts, map(np.array, test.errors), map(np.array, test.chance), strict=True)
    amounts, errors, chance = zip(*sorted(measured, key=lambda each: each[0]), strict=True)
    return Curve(amounts, errors, test.amounts[0], chance)


def _with_unit(text: str, kind: str) -> str:
    return f"{text} {UNITS[kind]}" if kind in UNITS else text


def report(results: Results, out: Path) -> str:
    tests = results.runs[0].tests
    size = results.settings.size
    own = results.runs[0].model == OWN  # trained here; of another only the test is ours
    judged = why_no_verdicts(results) is None
    lines, rows = zip(*(pair for test in tests for pair in _rows(test, judged)), strict=True)
    drawing.write_csv(out, rows)
    setting = (
        f"Network: {results.runs[0].model}. Each transformation is rendered from the scene, with the same draws, on "
        f"the same {size.tests} recordings. An amount is *respected* if the answer is surely no more than "
        f"{TOLERANCE:g} px from the transformed answer, and its error surely neither grows nor falls by more: the "
        "whole 95 % intervals of the medians of both lie within. It is not if the error surely grows or falls by more. "
        "If only the answer is farther away, that is undecided: noise does not move with the scene, and may be why. "
        "There is a verdict only where the mean error, up to the end of its interval, is more than "
        f"{TOLERANCE:g} px below chance. {drawing.chance(results)}.\n"
    )
    parts = [
        "\n## Errors\n",
        "The first amount of each transformation changes nothing. Numbers are medians over the recordings, with "
        "95 % intervals. *Chance* is the error of the best answer that is the same for every recording, at that "
        "amount. The equivariance error compares the answer with the transformed answer, and not with the truth; "
        "*relative* is its root mean square over the recordings, in units of that of the distance between the answers "
        "to two different ones: 0 is the same answer, 1 one as different as that to an unrelated scene.\n",
        drawing.table(["transformation", "amount", "respected", *NUMBERS], lines),
        "## Limits\n",
        "A transformation may take the shape out of the frame or change how many events there are; then no "
        "network can respect it. What is respected on these stimuli need not be on others.\n",
    ]
    figure = _figure(results, out)
    return drawing.assembled(
        results,
        TITLE,
        setting,
        conclusions(results),
        *parts,
        full=SIZES["full"] if own else replace(size, tests=SIZES["full"].tests),
        opening=opening(results),
        figure=figure,
    )


def _rows(test: SweepResult, judged: bool) -> Iterator[tuple[list[str], dict[str, object]]]:
    """For each amount, the line of the report's table and the row of summary.csv."""
    found = verdicts(test) if judged else ["no verdict"] * (len(test.amounts) - 1)
    growths = gained(test)
    for number, (amount, verdict) in enumerate(zip(test.amounts, ["", *found], strict=True)):
        errors, chance, absolute = (summary(each[number]) for each in (test.errors, test.chance, test.absolute))
        relative = None
        if test.different:
            relative = relative_error(np.array(test.absolute[number]), np.array(test.apart[number]))
        in_units = "–" if relative is None else drawing.over_seeds([(relative.value, relative.interval)], 3)
        growth = drawing.over_seeds([growths[number]])
        numbers = [drawing.px([errors]), drawing.px([chance]), growth, drawing.px([absolute]), in_units]
        named = f"{amount:g}"
        line = [test.sweep, _with_unit(named, test.sweep), verdict, str(errors.count), *numbers]
        row = {
            "kind": test.sweep,
            "amount": named,
            **drawing.row_of(errors),
            **drawing.columns("chance_px", (chance.median, chance.interval), digits=6),
            **drawing.columns("growth_px", growths[number], digits=6),
            **drawing.columns("equivariance_px", (absolute.median, absolute.interval), digits=6),
            **(
                drawing.columns("relative", (relative.value, relative.interval), digits=6)
                if relative
                else dict.fromkeys(("relative", "relative_low", "relative_high"), "")
            ),
            "verdict": verdict,
        }
        yield line, row


def _figure(results: Results, out: Path) -> str:
    figure = drawing.new_figure(7.5, 7.5)
    panels = list(figure.subplots(4, 3, sharey=True).flat)
    tests = results.runs[0].tests
    for ax, test in zip(panels, tests, strict=False):
        xlabel = f"{test.sweep} {UNITS.get(test.sweep, '')}"
        drawing.draw_curves(ax, {"error": curve_of(test)}, xlabel=xlabel, even=True, marked="unchanged")
        ax.set_ylabel("px")
        if ax is not panels[0]:
            ax.get_legend().remove()
    for ax in panels[len(tests) :]:
        ax.remove()
    return drawing.save(figure, out, "symmetry")


if __name__ == "__main__":
    raise SystemExit("error: this module is no program; the command is: gerd study symmetry")

"""Which transformations does a network respect?

Every transformation of the tool is applied, in several amounts, to the same recordings. Two things are measured: how
much larger the error against the truth becomes, and how far the answer is from the transformed answer. The network is
the one with five time constants, trained here, or one of the user's: a function that builds it, and its weights.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gerd.studies.lab.folder as store
from gerd.config.config import Config
from gerd.config.load import parse
from gerd.errors import GerdError, shorten
from gerd.measures.measure import Curve, Model, bootstrap, chance_error, equivariance_error, summary, truth_error
from gerd.measures.transformation import KINDS, UNITS, Transformation, acceleration, velocity
from gerd.studies.lab.training import FULL, SMALL, TINY, Order, Size, place_loss, recordings, rounded, train
from gerd.studies.networks import ScaleChannels

TOLERANCE = 1.0  # pixels by which the error may grow under a transformation that is respected
TIME_SCALES = (1.0, 0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
OWN = "five time constants, trained here"
SPATIAL = ("translation", "rotation", "scale", "shear", "velocity", "acceleration")
SIZES = {
    "full": Size(side=128, training=1400, tests=200, epochs=8, batch=16, seeds=1, layers=FULL, first_step=16),
    "quick": Size(side=64, training=160, tests=24, epochs=10, batch=8, seeds=1, layers=SMALL, first_step=16),
    "smoke": Size(side=32, training=16, tests=4, epochs=2, batch=8, seeds=1, layers=TINY, first_step=16),
}


def stimuli(side: int, seed: int = 0) -> Config:
    """The config: an upright square near the middle that moves slowly, with room for every transformation."""
    middle = side / 2
    return parse(
        f"""
        seed: {seed}
        sensor: {{width: {side}, height: {side}}}
        steps: 40
        noise: {{background: 0.001, event: 0.5}}
        actors:
          - shape: square
            translation:
              start: {{uniform: [{middle - 0.15 * side}, {middle + 0.15 * side}]}}
              velocity: {{uniform: [-0.7, 0.7]}}
              acceleration: 0
              border: bounce
            scale:
              start: {{uniform: [{0.15 * side}, {0.3 * side}]}}
              velocity: {{choice: [-0.1, 0.1]}}
              acceleration: 0
        """
    )


def transformations(config: Config, first_step: int) -> dict[str, list[Transformation]]:
    """For each kind its amounts, the one that changes nothing first."""
    side, noise = min(config.sensor.width, config.sensor.height), config.noise
    middle = (config.steps + first_step) / 2
    amounts: dict[str, tuple[float, ...]] = {
        "translation": (0.0, 0.25, 0.5, 1.0, 2.0, 0.05 * side, 0.1 * side),
        "rotation": (0.0, 5.0, 15.0, 30.0, 45.0, 90.0),
        "scale": (1.0, 0.5, 0.7, 1.4, 2.0),
        "shear": (0.0, 0.1, 0.25, 0.5, 1.0),
        "velocity": (0.0, 0.25, 0.5, 1.0, 2.0),
        "acceleration": (0.0, 0.01, 0.03, 0.1),
        "time_scale": tuple(s for s in TIME_SCALES if first_step <= (config.steps - 1) * min(s, 1 / s)),  # comparable
        "background": (noise.background, 0.0, 0.001, 0.003, 0.01, 0.03),
        "shape_noise": (noise.shape, 0.03, 0.1, 0.3),
        "density": (1 - noise.event, 1.0, 0.5, 0.25, 0.1, 0.05),
    }
    if any(actor.translation.border == "wrap" for actor in config.actors):  # a torus cannot be moved or turned
        amounts = {kind: several for kind, several in amounts.items() if kind not in SPATIAL}
    moving = {"velocity": velocity, "acceleration": acceleration}
    return {
        kind: [
            moving[kind](amount, epoch=middle) if kind in moving else KINDS[kind](amount)
            for amount in dict.fromkeys((several[0], *sorted(several)))
        ]
        for kind, several in amounts.items()
    }


def load_model(name: str, checkpoint: Path | str | None, device: str) -> Model:
    """What `module:build` makes, with the weights of a checkpoint; modules of the current folder are found."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise GerdError(f"--model {name!r}: allowed is module:function, such as my_models:build")
    sys.path.insert(0, str(Path.cwd()))
    try:
        network: Any = getattr(importlib.import_module(module), function)()
    except Exception as error:  # whatever a user's module may raise
        raise GerdError(f"--model {name!r}: cannot be made: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not callable(network):
        raise GerdError(
            f"--model {name!r}: {function}() gave {shorten(network)}; allowed: a module or a function of frames"
        )
    if isinstance(network, torch.nn.Module):
        if checkpoint is not None:
            _load_weights(network, Path(checkpoint))
        network.to(device).eval()
    elif checkpoint is not None:
        raise GerdError(f"--checkpoint {checkpoint}: {name} is not a torch module, and has no weights")
    return network


def _sources(model: str | None, checkpoint: Path | str | None) -> dict[str, Path]:
    """The files that a user's network comes from, as far as they are known: with other content it is another one."""
    found = {} if checkpoint is None else {"checkpoint_sha256": Path(checkpoint)}
    written = getattr(sys.modules.get((model or "").partition(":")[0]), "__file__", None)
    return found | ({} if written is None else {"model_sha256": Path(written)})


def _load_weights(network: torch.nn.Module, file: Path) -> None:
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
        raise GerdError(f"--checkpoint {file}: cannot be loaded: {shorten(reason, 300)}") from None


def compute(
    out: Path | str,
    order: Order,
    *,
    model: str | None = None,
    checkpoint: Path | str | None = None,
    config: Config | None = None,
) -> store.Results:
    """Measure what is not yet in `out`; the results, which are also in its results.json."""
    size = order.size
    config = config or stimuli(size.side, order.seed)
    if config.steps <= size.first_step:
        raise GerdError(f"steps: got {config.steps}: allowed with this study are more than {size.first_step}")
    network: Any = None if model is None else load_model(model, checkpoint, order.device)
    own = {"model": model or OWN, "checkpoint": None if checkpoint is None else str(checkpoint)}
    own |= {name: sha256(file.read_bytes()).hexdigest() for name, file in _sources(model, checkpoint).items()}
    folder = store.Folder(out, "symmetry", order, config, **own)
    seconds, first = 0.0, size.training
    if network is None:
        network = ScaleChannels(layers=size.layers, seed=order.seed)
        data = recordings(config, 0, size.training, order.device)
        trained = train(network, data, place_loss(order.recipe), order, order.seed, folder.state("network"), "network")
        seconds = trained["seconds"]
    found: dict[str, Any] = {}
    options: Any = {
        "count": size.tests,
        "first": first,
        "first_step": size.first_step,
        "device": order.device,
        "batch": 8,
    }
    for kind, several in transformations(config, size.first_step).items():
        result = folder.found(kind)
        if result is None:
            order.clock.check()
            result = {f"{g.amount:g}": _measured(network, config, g, options) for g in several}
            folder.keep(kind, result)
            order.say(f"{kind}: {len(several)} amounts on {size.tests} recordings")
        found[kind] = result
    chance = chance_error(config, first, size.tests, size.first_step)
    results = {"model": own["model"], "tolerance": TOLERANCE, "chance": asdict(chance), "kinds": found}
    return folder.finish(results, seconds)


def _measured(network: Model, config: Config, g: Transformation, options: dict[str, Any]) -> dict[str, Any]:
    pair = equivariance_error(network, config, g, **options)
    return {
        "errors": rounded(truth_error(network, config, g, **options)),
        "relative": rounded(pair.values[:, 0], 6),
        "absolute": rounded(pair.values[:, 1]),
    }


def gained(results: store.Results, kind: str, amount: str) -> tuple[float, tuple[float, float]]:
    """By how many pixels the error grows, in the median over pairs of recordings, and its interval."""
    amounts = results["kinds"][kind]
    more = np.array(amounts[amount]["errors"]) - np.array(next(iter(amounts.values()))["errors"])
    return float(np.median(more)), bootstrap(lambda rows: np.median(more[rows], axis=-1), len(more))


def respected(results: store.Results, kind: str) -> dict[str, bool]:
    """For each amount but the neutral one, whether the error surely grows by no more than the tolerance."""
    amounts = list(results["kinds"][kind])[1:]
    return {amount: gained(results, kind, amount)[1][1] <= results["tolerance"] for amount in amounts}


def conclusions(results: store.Results) -> list[str]:
    """What the numbers say."""
    groups: dict[str, list[str]] = {"in all amounts tested": [], "in some": [], "in none": []}
    untested = []
    for kind in results["kinds"]:
        verdicts = respected(results, kind)
        if not verdicts:
            untested.append(kind)
            continue
        amounts = ", ".join(f"{float(amount):g}" for amount, good in verdicts.items() if good)
        group = (
            "in all amounts tested" if all(verdicts.values()) else "in some" if any(verdicts.values()) else "in none"
        )
        groups[group].append(f"{kind} ({amounts} {UNITS.get(kind, '')})".replace(" )", ")") if amounts else kind)
    lines = [f"Respected {group}: {', '.join(kinds) or 'nothing'}." for group, kinds in groups.items()]
    first = next(iter(results["kinds"].values()))
    unchanged, chance = summary(next(iter(first.values()))["errors"]), store.chance_of(results)
    if unchanged.interval[1] >= chance.interval[0]:
        lines.insert(
            0,
            f"Without a transformation the error ({unchanged}) is not surely below that of always saying the mean "
            f"place ({chance}): then it says little that one is respected.",
        )
    return lines + ([f"Not tested: {', '.join(untested)}; the recordings are too short for it."] if untested else [])


def curve_of(results: store.Results, kind: str) -> Curve:
    """Errors against the truth, in order of the amount."""
    amounts = results["kinds"][kind]
    ordered = sorted(amounts, key=float)
    errors = tuple(np.array(amounts[amount]["errors"]) for amount in ordered)
    return Curve(tuple(map(float, ordered)), errors, float(next(iter(amounts))), store.chance_of(results))


def _columns(name: str, number: float, ends: tuple[float, float]) -> dict[str, float]:
    return {name: round(number, 6), f"{name}_low": round(ends[0], 6), f"{name}_high": round(ends[1], 6)}


def report(results: store.Results, out: Path) -> str:
    """Figures and tables into `out`; the text of the report."""
    from gerd.studies.lab import drawing

    figure = drawing.new_figure(7.5, 7.5)
    panels = list(figure.subplots(4, 3, sharey=True).flat)
    rows, lines = [], []
    for ax, (kind, amounts) in zip(panels[: len(results["kinds"])], results["kinds"].items(), strict=True):
        label = f"{kind} {UNITS.get(kind, '')}"
        drawing.draw_curves(ax, {"error": curve_of(results, kind)}, label=label, even=True, marked="unchanged")
        ax.set_ylabel("px")
        if ax is not panels[0]:
            ax.get_legend().remove()
        verdicts = respected(results, kind)
        for amount, found in amounts.items():
            errors, relative, absolute = (summary(found[what]) for what in ("errors", "relative", "absolute"))
            more, interval = gained(results, kind, amount)
            verdict = "" if amount not in verdicts else "yes" if verdicts[amount] else "no"
            lines.append(
                [
                    kind,
                    f"{amount} {UNITS.get(kind, '')}".strip(),
                    str(errors.count),
                    drawing.px([errors]),
                    drawing.over_seeds([(more, interval)]),
                    drawing.px([absolute]),
                    drawing.px([relative], 4),
                    verdict,
                ]
            )
            row = {"kind": kind, "amount": amount, **drawing.row_of(errors)}
            rows.append(
                row
                | _columns("growth_px", more, interval)
                | _columns("equivariance_px", absolute.median, absolute.interval)
                | _columns("relative", relative.median, relative.interval)
            )
    for ax in panels[len(results["kinds"]) :]:
        ax.remove()
    drawing.write_csv(out, rows)
    header = [
        "transformation",
        "amount",
        "n",
        "error, px",
        "grows by, px",
        "equivariance error, px",
        "relative",
        "respected",
    ]
    return "\n".join(
        [
            "# Which transformations does a network respect?\n",
            drawing.provenance(results),
            f"Network: {results['model']}. Each transformation is rendered from the scene, with the same draws, on "
            f"the same {results['settings']['tests']} recordings. An amount is *respected* if the median growth of "
            f"the error, up to the end of its 95 % interval, is at most {results['tolerance']:g} px. "
            f"{drawing.chance(results)}.\n",
            "## Conclusions\n",
            *(f"- {line}" for line in conclusions(results)),
            "\n## Errors\n",
            drawing.save(figure, out, "symmetry"),
            "The first amount of each transformation changes nothing. Numbers are medians over the recordings, with "
            "95 % intervals. The equivariance error compares the answer with the transformed answer, and not with the "
            "truth.\n",
            drawing.table(header, lines),
            "## Limits\n",
            "A transformation may take the shape out of the frame or change how many events there are; then no "
            "network can respect it. What is respected on these stimuli need not be on others.\n",
        ]
    )


if __name__ == "__main__":
    store.bare_command(compute, SIZES, "symmetry")

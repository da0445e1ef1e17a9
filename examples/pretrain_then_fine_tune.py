"""Train on GERD, then fine-tune on a few recordings of another camera, against training on these alone.

Run it with `python examples/pretrain_then_fine_tune.py --figure curve.png`, after `pip install eventcv==1.0.8`. The
other camera is a stand-in that GERD had no part in: eventcv, which has the noisy pixel of v2e. It looks, through a lens
that blurs and darkens the corners, at shapes of other sizes than those in the training. Both networks are trained in
the same way; only what they start from differs. It takes about 4 minutes of one core.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import gerd
from gerd import measure

SEEN = (0, 10, 30, 100, 300)  # recordings of the other camera
BINS = 4  # frames that a network sees of a recording
SIMULATED = """
seed: 1
sensor: {width: 32, height: 24}
steps: 25
timing: exact
integrator: {threshold: {on: 0.3, off: 0.3, spread: 0.03}}
noise: {background: 0.002}
actors:
  - shape: {choice: [square, circle, triangle]}
    intensity: {uniform: [0.6, 1]}
    translation: {start: uniform, velocity: {uniform: [-0.5, 0.5]}, acceleration: 0}
    scale: {start: {uniform: [5, 12]}, acceleration: 0}
    rotation: {start: uniform, velocity: {uniform: [-3, 3]}, acceleration: 0}
"""
REAL = {"actors.0.intensity": 1.0, "actors.0.scale.start": {"uniform": [4, 9]}}
DARK, BRIGHT = 50, 190  # grey values of the background and of a shape, in the middle of the picture


class Locator(nn.Module):
    """Where the shape is at the end, in pixels: the expectation of a map of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Sequential(
            nn.Conv2d(2 * BINS, 12, 5, padding=2), nn.ReLU(),
            nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(),
            nn.Conv2d(12, 1, 5, padding=2),
        )  # fmt: skip

    def forward(self, frames: Tensor) -> Tensor:
        score = self.score(frames.flatten(1, 2))[:, 0]
        chance = score.flatten(1).softmax(1).view_as(score)
        x, y = torch.arange(score.shape[2]) + 0.5, torch.arange(score.shape[1]) + 0.5
        return torch.stack([chance.sum(1) @ x, chance.sum(2) @ y], dim=-1)


def frames_of(recordings: Sequence[gerd.Events]) -> Tensor:
    """(recordings, BINS, 2, height, width): how many events, of at most 5."""
    return torch.stack([each.frames(counts=True, bins=BINS) for each in recordings]).clamp(max=5).float()


def simulated(count: int) -> tuple[Tensor, Tensor]:
    """Recordings of GERD: what a network sees, and where the shape is at the end."""
    frames, places = [], []
    for begin in range(0, count, 500):
        some = gerd.simulate_batch(gerd.parse(SIMULATED), range(begin, min(begin + 500, count)))
        frames.append(frames_of(some))
        places += [each.truth[-1, 0, 0, :2] for each in some]
    return torch.cat(frames), torch.tensor(np.array(places), dtype=torch.float32)


def recorded(first: int, count: int) -> tuple[Tensor, Tensor]:
    """Recordings of the other camera: its events of pictures."""
    import eventcv

    config = gerd.parse(SIMULATED)
    across, down = np.linspace(-1, 1, config.sensor.width), np.linspace(-1, 1, config.sensor.height)[:, None]
    light = 1 - 0.15 * (across**2 + down**2)  # what the lens lets through
    frames, places = [], []
    for number, scene in enumerate(gerd.simulate_batch(config, range(first, first + count), values=REAL)):
        pictures = light * blurred(DARK + (BRIGHT - DARK) * scene.images().astype(np.float64))
        told = eventcv.simulate(np.rint(pictures).astype(np.uint8), fps=1e6 / scene.step_us, seed=first + number)
        x, y, t, p = told.numpy().astype(np.int64).T
        length = (scene.steps - 1) * scene.step_us
        inside = (t > 0) & (t <= length)
        events = np.empty(inside.sum(), [(name, "i8") for name in "xytp"])
        events["x"], events["y"], events["t"], events["p"] = x[inside], y[inside], t[inside], p[inside] > 0
        size = {"width": scene.width, "height": scene.height, "step_us": scene.step_us, "duration": length}
        frames.append(frames_of([gerd.Events.from_array(events, **size)]))
        places.append(scene.truth[-1, 0, 0, :2])
    return torch.cat(frames), torch.tensor(np.array(places), dtype=torch.float32)


def blurred(pictures: np.ndarray) -> np.ndarray:
    """Each pixel with its neighbours, weighed 1, 2, 1 along both axes."""
    padded = np.pad(pictures, [(0, 0), (1, 1), (1, 1)], mode="edge")
    rows = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    return (rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]) / 4


def train(network: nn.Module, frames: Tensor, places: Tensor, steps: int) -> None:
    """So many steps with 16 recordings each, which are drawn from all of them."""
    optimiser = torch.optim.Adam(network.parameters(), 0.003)
    for _ in range(steps):
        some = torch.randint(len(frames), (16,))
        optimiser.zero_grad()
        (network(frames[some]) - places[some]).norm(dim=-1).mean().backward()
        optimiser.step()


@torch.no_grad()
def errors(network: nn.Module, frames: Tensor, places: Tensor) -> np.ndarray:
    """How far off a network is in each recording, in pixels."""
    return (network(frames) - places).norm(dim=-1).double().numpy()


def main(count: int, steps: int, seeds: int, seen: Sequence[int], tested: int, figure: Path | None) -> None:
    ours = simulated(count)
    theirs, tests = recorded(1_000_000, max(seen)), recorded(2_000_000, tested)
    chance = measure.summary(np.linalg.norm(tests[1] - tests[1].median(dim=0).values, axis=1))
    found: dict[str, dict[int, list[np.ndarray]]] = {name: {n: [] for n in seen} for name in ("GERD", "scratch")}
    for seed in range(seeds):
        torch.manual_seed(seed)
        fresh = Locator()
        before = errors(fresh, *tests)
        pretrained = copy.deepcopy(fresh)
        train(pretrained, *ours, 4 * steps)
        print(f"seed {seed}: before training: {before.mean():.2f} pixels off", file=sys.stderr)
        for name, start in (("GERD", pretrained), ("scratch", fresh)):
            for n in seen:
                network = copy.deepcopy(start)
                torch.manual_seed(seed)
                if n:
                    train(network, theirs[0][:n], theirs[1][:n], steps)
                found[name][n].append(errors(network, *tests))
    results = {name: {n: measure.summary(np.array(each)) for n, each in rows.items()} for name, rows in found.items()}
    print(f"before training: {results['scratch'][0].median:.2f} pixels off; the best constant: {chance.median:.2f}")
    print(f"after training on GERD alone: {results['GERD'][0].median:.2f} pixels off, of a camera it has never seen")
    print("recordings of it   GERD, then these         these alone")
    for n in seen:
        row = [results[name][n] for name in ("GERD", "scratch")]
        cells = (f"{each.median:.2f} ({each.interval[0]:.2f} to {each.interval[1]:.2f})" for each in row)
        print(f"{n:>16}   {'   '.join(cells)}")
    if figure is not None:
        draw(results, chance.median, figure)


def draw(results: dict[str, dict[int, measure.Summary]], chance: float, path: Path) -> None:
    """The median errors with their intervals, over the number of recordings."""
    from matplotlib.figure import Figure

    drawn = Figure((6, 4), layout="constrained")
    axes = drawn.subplots()
    for (name, rows), label, colour in zip(
        results.items(), ("trained on GERD first", "these recordings alone"), ("#0072b2", "#d55e00"), strict=True
    ):
        shown = {n: each for n, each in rows.items() if n or name == "GERD"}
        middle = np.array([each.median for each in shown.values()])
        ends = np.array([each.interval for each in shown.values()]).T
        where = [max(n, 4) for n in shown]  # 0 has no logarithm
        axes.errorbar(where, middle, np.abs(ends - middle), color=colour, marker="o", capsize=3, label=label)
    axes.axhline(chance, color="#777", ls=":", label="the best constant")
    ticks = list(results["GERD"])
    axes.set(xscale="log", yscale="log", xlabel="recordings of the other camera", ylabel="median error (px)")
    axes.set_xticks([max(n, 4) for n in ticks], [str(n) for n in ticks])
    axes.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.legend(frameon=False)
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the network is small: more threads would wait for each other
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=4000, help="recordings of GERD")
    parser.add_argument("--steps", type=int, default=400, help="of fine-tuning; four times as many before")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seen", type=int, nargs="+", default=SEEN, help="numbers of recordings of the other camera")
    parser.add_argument("--tests", type=int, default=200, help="recordings of it that no network is trained on")
    parser.add_argument("--figure", type=Path, help="draw the curve into this file")
    chosen = parser.parse_args()
    main(chosen.count, chosen.steps, chosen.seeds, chosen.seen, chosen.tests, chosen.figure)

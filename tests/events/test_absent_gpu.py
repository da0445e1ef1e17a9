"""The kernels of the `cuda` backend are compiled to machine code, on machines without a GPU, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("triton")

PROGRAM = Path(__file__).parents[1] / "support" / "absent_gpu.py"
REGISTERS = 64  # that a thread of a kernel for tiles may have, so that enough of them run at once

SCENE = """
sensor: {width: 40, height: 24}
steps: 3
timing: TIMING
actors:
  - {shape: circle, translation: {velocity: [1, 0.5], acceleration: 0}}
  - {shape: {text: A}, rotation: {velocity: 5, acceleration: 0}}
"""
NOISY = SCENE + "noise: {background: 0.01, shape: 0.05, event: 0.1}\n"
EFFECTS = (
    "integrator: {threshold: {on: 0.4, off: 0.3, spread: 0.05}}\n",
    "integrator: {response: {log: 0.1}}\n",
    "integrator: {refractory_us: 2000}\n",
    "integrator: {leak_hz: 5}\n",
    "integrator: {reset: zero}\n",
    "integrator: {initial: uniform}\n",
)
ALL = "integrator: {threshold: {spread: 0.05}, response: {log: 0.1}, leak_hz: 5, initial: INITIAL}\n"
RESTING = ALL.replace("leak_hz", "refractory_us: 2000, leak_hz")


def compiled(capability: int, cache: Path, *texts: str) -> dict[str, list[dict[str, int]]]:
    """For each kernel what was made of it, each time that it was launched."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(cache)  # an empty one, so that all is compiled
    command = [sys.executable, str(PROGRAM), str(capability), *texts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    result = defaultdict(list)
    for line in done.stdout.splitlines():
        made = json.loads(line)
        result[made.pop("kernel")].append(made)
    return result


def check(made: dict[str, list[dict[str, int]]]) -> None:
    """All kernels are there, and those for tiles keep to their registers."""
    assert set(made) == {
        "clear", "place", "spans", "mark", "signal", "count", "scatter", "tally", "gather", "between"
    }  # fmt: skip
    for kernel in *made["signal"], *made["between"]:
        assert kernel["registers"] <= REGISTERS


def scenes(*effects: str) -> list[str]:
    """Scenes with each of these effects, in both timings, with and without noise."""
    each = [scene + effect for effect in effects for scene in (SCENE, NOISY)]
    return [scene.replace("TIMING", timing) for scene in each for timing in ("step", "exact")]


def test_the_kernels_are_compiled_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    of_all = NOISY + ALL.replace("INITIAL", "uniform")
    check(compiled(90, tmp_path, *(of_all.replace("TIMING", timing) for timing in ("step", "exact"))))


@pytest.mark.long
@pytest.mark.parametrize("capability", [80, 90, 120])
def test_each_effect_is_compiled_for_each_kind_of_gpu(tmp_path: Path, capability: int) -> None:
    together = [each.replace("INITIAL", initial) for each in (ALL, RESTING) for initial in ("uniform", "stationary")]
    check(compiled(capability, tmp_path, *scenes("", *EFFECTS, *together)))

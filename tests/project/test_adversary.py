"""The adversary in `support/adversary.py`: a little of it with every test run, and all of it among the long ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MACHINE = ("slow readers", "forged caches")
PROGRAM = Path(__file__).parents[1] / "support" / "adversary.py"


@pytest.mark.parametrize(
    ("inputs", "interruptions"), [(60, 3), pytest.param(100_000, 500, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_nothing_is_lost_and_nothing_crashes_hangs_or_is_wrong(inputs: int, interruptions: int, tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "--inputs", str(inputs), "--interruptions", str(interruptions)]
    command += ["--jobs", str(os.cpu_count() if inputs > 1000 else 1)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr[-4000:]
    assert result.stdout.endswith("faults: none\n")
    names = [line.partition(":")[0] for line in result.stdout.splitlines()]
    inputs_tried = [
        "damaged copies",
        "damaged files of events",
        "hostile configs",
        "checks",
        "configs that stand for much",
        "JSON bombs",
    ]
    assert names == ["interruptions", *inputs_tried, "special files", "requests", *MACHINE, "faults"]

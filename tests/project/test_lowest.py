"""The lowest versions that pyproject.toml allows make the same recordings, with kernels that they compile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from support.lowest import lowest
from support.processes import COMMAND

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "events" / "golden.json").read_text())
EXTRAS = ("export", "video", "view", "camera", "cluster")

USE = """
import json, sys
from importlib.metadata import version
import gerd
config = gerd.load(sys.argv[1])
made = {timing: gerd.simulate(config, timing=timing).digest for timing in ("step", "exact")}
made["torch"] = gerd.simulate(config, backend="torch", steps=5).digest
made["cpu"] = gerd.simulate(config, steps=5).digest
print(json.dumps({"made": made, "versions": {name: version(name) for name in sys.argv[2:]}}))
"""


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.partition("+")[0].split(".") if part.isdecimal())


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_what_is_installed_here_is_allowed(extra: str | None) -> None:
    """Every dependency has a lower bound, and what the tests run with is not below it."""
    for package, least in lowest(*filter(None, [extra])).items():
        assert numbers(version(package)) >= numbers(least), package


@pytest.mark.long
def test_the_lowest_versions_make_the_same_recordings(tmp_path: Path) -> None:
    """In an environment of their own. PyTorch, which is large, has the version that it has here."""
    wanted = {**lowest(*EXTRAS), "torch": version("torch").partition("+")[0]}
    (tmp_path / "lowest.txt").write_text("".join(f"{name}=={number}\n" for name, number in wanted.items()))
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=tmp_path, check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "-r", "lowest.txt"]
    fetched = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True)
    if fetched.returncode:
        assert "ResolutionImpossible" not in fetched.stderr, fetched.stderr[-2000:]
        pytest.skip(f"the packages cannot be fetched: {fetched.stderr.strip().splitlines()[-1]}")
    shutil.copytree(ROOT / "gerd", tmp_path / "gerd", ignore=shutil.ignore_patterns("machine", "__pycache__"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_"))}
    environment = {**kept, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*command: str) -> str:
        done = subprocess.run([python, *command], cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    config = str(ROOT / "configs" / "bouncing.yaml")
    told = json.loads(run("-c", USE, config, *wanted))
    assert {name: numbers(found) for name, found in told["versions"].items()} == {
        name: numbers(number) + (0,) * (len(numbers(told["versions"][name])) - len(numbers(number)))
        for name, number in wanted.items()
    }
    made = told["made"]
    assert made["step"] == GOLDEN["bouncing/0/0"]["cpu"]
    assert made["exact"] == GOLDEN["bouncing/0/0/exact"]["cpu"]
    assert made["torch"] == made["cpu"]
    assert any((tmp_path / "cache" / "gerd").iterdir())  # compiled, and kept
    gerd = COMMAND[1:]
    run(*gerd, "--help")
    run(*gerd, "check", config, "-n", "70")
    run(*gerd, "generate", config, "data", "-n", "70", "--workers", "2", "--set", "steps=5")
    assert "70 recordings, all sound and the same" in run(*gerd, "verify", "data", "--regenerate")
    for format in ("evt2", "aedat4", "hdf5", "parquet"):
        run(*gerd, "export", "data", format, "--format", format, "--index", "0:2")
    for ending in ("png", "gif", "html", "mp4"):
        run(*gerd, "render", "data", f"out.{ending}")
    opened = "from gerd.page.server import opened, running\nfrom pathlib import Path\n"
    run("-c", f"{opened}with running(opened(Path('data'))) as address: assert '?token=' in address")

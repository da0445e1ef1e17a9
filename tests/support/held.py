"""Runs that stop in the middle: a config whose workers wait, and how such a run is stopped and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from gerd.storage.manifest import MANIFEST
from support.datasets import content
from support.processes import descendants, errors_of, is_running, run_here, wait_for

STOPPED = "error: stopped; data keeps what is finished, and the same command continues"

# A motion by a function, so fast that it has more values than are kept: workers have to run it. Those that make a shard
# stop in it, once another shard is there, until the file `go` is there, too; if then the file `deadly` is there, they
# die. (The command runs it, too, before it writes anything.)
HELD = """
seed: 8
sensor: {width: 12, height: 9}
steps: 12
time_scale: 1000
upsampling: 2
actors:
  - shape: square
    translation: {acceleration: [{function: "hold:push"}, {function: "hold:y"}]}
    scale: {start: 4, acceleration: [{function: "hold:wide"}, {function: "hold:high"}]}
    rotation: {acceleration: {function: "hold:turn"}}
    shear: {acceleration: {function: "hold:slant"}}
"""
HOLD = """
import multiprocessing, os, signal, sys, time
from pathlib import Path

here = Path(__file__).parent
in_ray = any("default_worker" in word for word in sys.orig_argv)
in_worker = in_ray or multiprocessing.parent_process() is not None

def push(t):
    if t:
        return 1e-9
    while any((here / "data").glob("shard-*")) and not (here / "go").exists():
        (here / f"held-{os.getpid()}").touch()
        time.sleep(0.01)
    if in_worker and (here / "deadly").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return 1e-9

def y(t):
    return 1e-9

def wide(t):
    return 1e-9

def high(t):
    return 1e-9

def turn(t):
    return 1e-9

def slant(t):
    return 1e-9
"""


def workers_held(folder: Path, number: int = 1) -> None:
    wait_for(lambda: len(list(folder.glob("held-*"))) >= number, f"{number} workers in the middle of a shard")


def stop_and_continue(process: subprocess.Popen[str], how: str, folder: Path, never_held: dict[str, bytes]) -> None:
    """Stop a run whose workers are held: it does not wait for them, they end with it, and nothing is lost."""
    workers = descendants(process.pid)
    if how == "killed":
        process.kill()
        process.wait()
    else:
        (os.kill if how == "Ctrl-C" else os.killpg)(process.pid, signal.SIGINT)
        assert errors_of(process, 130) == [STOPPED]
        if workers:  # those of a cluster may end in the middle of a write: the next run tidies up after them
            assert not list((folder / "data").glob(".*.tmp"))
    wait_for(lambda: not any(map(is_running, workers)), "the workers to end")
    assert not json.loads((folder / "data" / MANIFEST).read_text())["complete"]
    continues(folder, never_held)


def continues(folder: Path, never_held: dict[str, bytes]) -> None:
    """The same command, in this process, gives what an undisturbed run gives."""
    (folder / "go").touch()
    paths = (str(folder / name) for name in ("config.yaml", "data"))
    assert run_here("generate", *paths, "-n", "320", "--trust", "--workers", "1") == 0
    assert content(folder / "data") == never_held

"""A Ray cluster of several nodes on this machine, and commands that use it, for the tests."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
COMMAND = [sys.executable, "-c", "from gerd.cli.app import main; main()"]

CONFIG = """
seed: 8
sensor: {width: 12, height: 9}
steps: 3
upsampling: 2
noise: {background: 0.01}
actors:
  - shape: square
    translation: {start: uniform, velocity: {uniform: [-1, 1]}, acceleration: 0}
    scale: {start: 4, acceleration: 0}
"""

# The same motion, by a function that lets a test hold the workers, once a shard is there, for as long as it likes. The
# driver draws once, too, before anything is written.
HELD = CONFIG.replace("acceleration: 0}\n    scale", 'acceleration: {function: "hold:push"}}\n    scale')
HOLD = """
import os, time
from pathlib import Path

here = Path(__file__).parent

def push(t):
    while any((here / "data").glob("shard-*")) and not (here / "go").exists():
        (here / f"held-{os.getpid()}").touch()
        time.sleep(0.01)
    return 0.01 * t
"""


@contextmanager
def running(nodes: int = 2) -> Iterator[Any]:
    """A cluster of nodes with one processor each, the first of which is the head."""
    from ray.cluster_utils import Cluster

    head = {**NODE, "include_dashboard": False, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def start(folder: Path, *options: str, count: int = 320) -> subprocess.Popen[str]:
    """`gerd generate` of the config in `folder`, in the background."""
    arguments = ["generate", "config.yaml", "data", "-n", str(count), "--trust", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, text=True, start_new_session=True, **pipes)


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How a command ended, and what it wrote as errors."""
    error = process.communicate(timeout=120)[1]
    return process.returncode, error


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    for _ in range(6000):
        if result := condition():
            return result
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}

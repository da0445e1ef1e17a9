"""Commands that tests run, here or in processes of their own: how they are started, waited for, and how they end."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gerd.cli.app import main

COMMAND = [sys.executable, "-c", "from gerd.cli.app import main; main()"]
DEADLINE = 300  # seconds after which a test gives up, on however slow a machine

# The background job of a shell ignores Ctrl-C, and so would the commands that tests start and stop with it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run_here(*arguments: str) -> int:
    """The exit code of `gerd ARGUMENTS`, run in this process, which has the libraries already."""
    with patch.object(sys, "argv", ["gerd", *arguments]):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def bounded(
    folder: Path, *arguments: str, gigabytes: float, seconds: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    """`gerd ARGUMENTS` in a process that can have no more memory than that, and that is ended after so much work.

    The limits are on addresses and on seconds of a processor, so that a busy machine changes neither.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2)

    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, text=True, capture_output=True, preexec_fn=limit, timeout=10 * DEADLINE
    )


def start(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command `gerd ARGUMENTS` in `folder`, in the background and in a session of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, text=True, start_new_session=True, **{**pipes, **options}
    )


def run_at_a_terminal(command: list[str], **options: Any) -> tuple[str, str]:
    """What a program prints, and what it says to whoever waits at the terminal."""
    terminal, end = os.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, text=True, timeout=10 * DEADLINE, **options)
        os.write(end, b"\n")
        said = os.read(terminal, 4000).decode().strip()
    finally:
        os.close(terminal)
        os.close(end)
    assert done.returncode == 0, done.stdout[-3000:] + said
    return done.stdout, said


def stop(process: subprocess.Popen[str]) -> None:
    """End a command that `start` began, and what it has started, whatever state it is in."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def errors_of(process: subprocess.Popen[str], code: int = 0) -> list[str]:
    """Our own lines of errors when a command has ended, which it must with this exit code and without a traceback.

    What other libraries write to standard error is theirs.
    """
    try:
        _, written = process.communicate(timeout=DEADLINE)
    finally:
        stop(process)
    assert process.returncode == code, written
    assert "Traceback" not in written, written
    return [line for line in written.splitlines() if line.startswith("error: ")]


def wait_for(condition: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """The first result of `condition` that is true; fails if there is none for too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


def descendants(parent: int) -> set[int]:
    """The processes that a process has started, and those that they have started, as Linux lists them."""
    children: dict[int, set[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, its_parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            children.setdefault(int(its_parent), set()).add(int(status.parent.name))
    found, unseen = set(), {parent}
    while unseen:
        unseen = set().union(*(children.get(process, set()) for process in unseen))
        found |= unseen
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

"""What can go wrong while a dataset is made. After each fault the same command gives the bytes of an undisturbed run.

Processes that die; commands that meet in one folder; full disks; clocks that jump; and a long run in which nothing may
pile up. What can go wrong on a cluster is in `test_ray_workers.py`.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import processes
from support.datasets import SMALL, content, faults
from support.held import STOPPED, continues, stop_and_continue, workers_held
from support.processes import COMMAND, DEADLINE, descendants, errors_of, is_running, wait_for

import gerd
from gerd.cli.words import parse_part
from gerd.storage import generate as generation
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, shard_name
from gerd.storage.places import Bucket, Folder

PARTS = [(1, 3), (2, 3), (3, 3)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of 320 recordings, made by one process in one go."""
    folder = tmp_path_factory.mktemp("faults")
    gerd.generate(gerd.parse(SMALL), folder / "data", 320, workers=1)
    return content(folder / "data")


def with_support() -> dict[str, str]:
    """An environment in which programs can import `support`."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


# Processes that die


@pytest.mark.parametrize("how", ["killed", "Ctrl-C in a terminal"])
def test_a_run_that_is_stopped_continues_to_the_same_bytes(
    how: str, held: Path, start: Any, never_held: dict[str, bytes]
) -> None:
    """It does not wait for the shards under way, whose workers are held, and they end with it."""
    process = start("--workers", "2")
    workers_held(held)
    stop_and_continue(process, how, held, never_held)


@pytest.mark.parametrize("children", [1, 3])
@pytest.mark.usefixtures("held")
def test_ctrl_c_while_workers_start(children: int, start: Any) -> None:
    process = start("--workers", "2")
    wait_for(lambda: len(descendants(process.pid)) >= children, "workers")
    os.killpg(process.pid, signal.SIGINT)
    assert errors_of(process, 130) == [STOPPED]


def test_ctrl_c_with_a_worker_that_is_stopped(held: Path, start: Any) -> None:
    process = start("--workers", "2")
    workers_held(held)
    workers = descendants(process.pid)
    for worker in held.glob("held-*"):
        os.kill(int(worker.name.removeprefix("held-")), signal.SIGSTOP)
    os.kill(process.pid, signal.SIGINT)
    assert errors_of(process, 130) == [STOPPED]
    wait_for(lambda: not any(map(is_running, workers)), "the workers to end")


def test_a_worker_that_dies_is_reported_and_finished_shards_stay(
    held: Path, start: Any, never_held: dict[str, bytes]
) -> None:
    process = start("--workers", "2")
    workers_held(held)
    first = held / "data" / shard_name(0)
    wait_for(first.exists, "the first shard")
    before = first.stat().st_mtime_ns
    (held / "deadly").touch()
    (held / "go").touch()
    message = (
        "a worker process died, perhaps for lack of memory; finished shards are kept, and the same command continues"
    )
    assert errors_of(process, 1) == [f"error: data: {message}"]
    (held / "deadly").unlink()
    continues(held, never_held)
    assert first.stat().st_mtime_ns == before


# Disks


def in_a_small_file_system(folder: Path, size: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` with a file system of that size mounted there, or skip the test."""
    mount = f"mount -t tmpfs -o size={size} tmpfs {folder}"
    unshare = ["unshare", "-rm", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*unshare, mount], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    program = f'{mount} && cd {folder} && exec "$@"'
    command = [*unshare, program, "sh", *command]
    return subprocess.run(command, capture_output=True, text=True, env=with_support(), timeout=DEADLINE)


FULL = """
import subprocess, sys
from contextlib import ExitStack
from pathlib import Path
import gerd
from support.datasets import SMALL, content, faults
from support.processes import run_here
from support.ray_cluster import running

Path("config.yaml").write_text(SMALL)
with ExitStack() as stack:
    how = ["--workers", "2"]
    if sys.argv[1] == "ray":
        how = ["--engine", "ray", "--address", stack.enter_context(running(2)).address]
    full = run_here("generate", "config.yaml", "data", "-n", "640", *how)
    names = [file.name for file in Path("data").iterdir()]
    subprocess.run(["mount", "-o", "remount,size=4m", "."], check=True)
    room = run_here("generate", "config.yaml", "data", "-n", "640", *how)
gerd.generate(gerd.load("config.yaml"), "again", 640, workers=1)
assert content(Path("data")) == content(Path("again"))
assert faults("data") == []
print(full, room, *names)
"""


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.long)])
def test_a_full_disk_gets_room_and_the_same_command_continues(engine: str, tmp_path: Path) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    result = in_a_small_file_system(tmp_path, "200k", [sys.executable, "-c", FULL, engine])
    assert result.returncode == 0, result.stderr
    full, room, *names = result.stdout.splitlines()[-1].split()
    assert (full, room) == ("1", "0"), result.stderr
    assert any(name.startswith("shard-") for name in names)  # which of them depends on the processes
    assert not [name for name in names if name.endswith(".tmp")]
    assert "cannot be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_no_part_of_a_shard(
    call: str, tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)

    def full(target: Any, *arguments: Any) -> Any:
        if shard_name(1) in (os.readlink(f"/proc/self/fd/{target}") if call == "fsync" else str(target)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(target, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(gerd.StorageError, match=f"{shard_name(1)}: cannot be written: No space left on device"):
            gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1)
    assert set(content(tmp_path)) == {MANIFEST, CONFIG, RESOLVED, shard_name(0)}
    gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1)
    assert content(tmp_path) == undisturbed


def test_files_larger_than_the_process_may_write(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """What a quota does: the write itself fails, not the sync."""
    program = (
        "import resource, signal, sys, gerd\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: gerd.generate(gerd.parse(sys.argv[1]), 'data', 320, workers=1)\n"
        "except gerd.StorageError as error: print(error)"
    )
    command = [sys.executable, "-c", program, SMALL]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"data/{shard_name(0)}: cannot be written: File too large\n"
    assert not [name for name in content(tmp_path / "data") if name.startswith((".", "shard"))]
    gerd.generate(gerd.parse(SMALL), tmp_path / "data", 320, workers=1)
    assert content(tmp_path / "data") == undisturbed


# Clocks


def test_clocks_may_jump(tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two looks at it the clock may be years off, and so may be the times of files."""
    jumps = random.Random(2)
    monkeypatch.setattr("time.time", lambda: jumps.uniform(-1e9, 5e9))
    monkeypatch.setattr("time.time_ns", lambda: jumps.randrange(-(10**18), 5 * 10**18))
    folder = tmp_path / "data"
    for part in (PARTS[1], PARTS[0], PARTS[2]):
        gerd.generate(gerd.parse(SMALL), folder, 320, workers=1, part=part)
        for file in folder.iterdir():
            os.utime(file, (jumps.uniform(0, 4e9), jumps.uniform(0, 4e9)))
    assert content(folder) == undisturbed
    (folder / shard_name(2)).write_bytes(b"damaged")
    os.utime(folder / shard_name(2), (0, 0))
    gerd.generate(gerd.parse(SMALL), folder, 320, workers=2)
    assert content(folder) == undisturbed
    assert faults(folder) == []


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { return (long)(rand() % 2000000000) - 1000000000; }
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += jump();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    now->tv_sec = t.tv_sec; now->tv_usec = t.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now) *now = t.tv_sec;
    return t.tv_sec;
}
"""


@pytest.mark.long
def test_the_clock_of_the_machine_may_jump(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """Under a C library whose clock jumps by decades at each call, processes and all."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    (tmp_path / "clock.c").write_text(CLOCK)
    (tmp_path / "config.yaml").write_text(SMALL)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"], cwd=tmp_path, check=True)
    environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "clock.so")}
    ask = [sys.executable, "-c", "import time; print(*(time.time() for _ in range(9)))"]
    times = subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert times != sorted(times, key=float)
    for part in ("2/2", "1/2"):
        arguments = ["generate", "config.yaml", "data", "-n", "320", "--workers", "2", "--shard", part]
        assert errors_of(processes.start(tmp_path, *arguments, env=environment)) == []
    assert content(tmp_path / "data") == undisturbed


# Several commands in one place


def test_independent_commands_make_one_dataset(tmp_path: Path, start: Any, undisturbed: dict[str, bytes]) -> None:
    """All at once, one of them twice; whichever is the last completes the manifest."""
    (tmp_path / "config.yaml").write_text(SMALL)
    commands = [start("--workers", "1", "--shard", f"{i}/{n}") for i, n in (*PARTS, PARTS[0])]
    assert [errors_of(command) for command in commands] == [[]] * 4
    assert content(tmp_path / "data") == undisturbed
    assert faults(tmp_path / "data") == []


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=str)
def test_parts_may_come_in_any_order(
    order: tuple[tuple[int, int], ...], tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    folder = tmp_path / "data"
    for number, part in enumerate(order):
        made: list[int] = []
        data = gerd.generate(gerd.parse(SMALL), folder, 320, workers=1, part=part, progress=made.append)
        assert data.manifest.complete == (number == 2)
        assert sum(made) == generation.recordings_of_part(320, part)
    assert content(folder) == undisturbed


def test_more_parts_than_shards_and_parts_of_different_cuts(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    folder = tmp_path / "data"
    for part in ((9, 9), (3, 9), (1, 2), (6, 9), (4, 9), (2, 9)):
        gerd.generate(gerd.parse(SMALL), folder, 320, workers=1, part=part)
    assert content(folder) == undisturbed


def test_what_others_have_left_is_believed_only_if_it_is_of_this_dataset(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """A part of another config, one that is damaged, and one with a shard that is not in the dataset."""
    gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=PARTS[0])
    sound = json.loads((tmp_path / ".part-1-of-3.json").read_text())
    wrong = [{"file": shard_name(number), "sha256": "0", "recordings": []} for number in range(9)]
    for number, content_of_part in enumerate(
        ({"config_digest": "0" * 64, "shards": wrong}, {**sound, "shards": [*wrong, 7]}, {**sound, "shards": wrong[5:]})
    ):
        (tmp_path / f".part-{number}-of-9.json").write_text(json.dumps(content_of_part))
    for part in PARTS[1:]:
        gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=part)
    assert content(tmp_path) == undisturbed


@pytest.mark.parametrize("recordings", [1, 64, 65, 1000])
@pytest.mark.parametrize("parts", [1, 2, 3, 40])
def test_the_parts_are_the_whole(recordings: int, parts: int) -> None:
    sizes = [generation.recordings_of_part(recordings, (part, parts)) for part in range(1, parts + 1)]
    assert sum(sizes) == recordings
    assert max(sizes) - min(sizes) <= 64


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/2/3", "1.5/2", "9" * 99 + "/3"])
def test_parts_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(gerd.GerdError, match=r"allowed: I/N with I from 1 to N"):
        parse_part(text)


def test_a_part_refuses_another_dataset_even_if_it_has_no_shard_yet(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    gerd.generate(gerd.parse(SMALL), folder, 64, workers=1, part=(2, 2))  # there is but one shard
    assert sorted(content(folder)) == [".part-2-of-2.json", "config.yaml", MANIFEST, "resolved.json"]
    for text, message in (
        (SMALL.replace("seed: 8", "seed: 9"), "seed is 8 there and 9 here"),
        (SMALL + "# a remark\n", "the text of the config differs"),
    ):
        with pytest.raises(gerd.StorageError, match=message):
            gerd.generate(gerd.parse(text), folder, 64, workers=1, part=(1, 2))
    gerd.generate(gerd.parse(SMALL + "# a remark\n"), folder, 64, workers=1)  # alone here, it may say so
    assert faults(folder) == []


def test_a_whole_run_and_a_part_do_not_meet(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    for lock, part in ((fcntl.LOCK_EX, PARTS[0]), (fcntl.LOCK_EX, (1, 1)), (fcntl.LOCK_SH, (1, 1))):
        fcntl.flock(held, lock)
        with pytest.raises(gerd.StorageError, match="another run is writing here"):
            gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=part)
    for part in PARTS:
        gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=part)
    assert content(tmp_path) == undisturbed
    os.close(held)


def test_a_refused_folder_is_left_as_it_is(tmp_path: Path) -> None:
    """Files that look like what a killed run leaves are somebody else's, if the folder is."""
    names = (".notes.0123456789abcdef.tmp", "thesis.txt")
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(gerd.StorageError, match="holds files that are not a GERD dataset"):
        gerd.generate(gerd.parse(SMALL), tmp_path, 3, workers=1)
    assert sorted(content(tmp_path)) == sorted(names)


def test_the_last_part_notices_that_a_shard_of_another_was_damaged(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    for part in PARTS[:2]:
        gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=part)
    shard = tmp_path / shard_name(1)
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    with pytest.raises(gerd.StorageError, match=rf"{shard.name}: has changed since it was made; run --shard 2/3 again"):
        gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=PARTS[2])
    assert not gerd.Recordings(tmp_path).manifest.complete
    gerd.generate(gerd.parse(SMALL), tmp_path, 320, workers=1, part=PARTS[1])
    assert content(tmp_path) == undisturbed


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)


OPERATIONS = ("names", "read", "open", "write", "remove", "tidy")


def interrupted(place: str, first: Callable[[], Any], second: Callable[[], Any], at: int) -> bool:
    """Do `first`, and before its operation number `at` on its place all of `second`; False if it has fewer."""
    kind = Bucket if "://" in place else Folder
    count, originals = itertools.count(), {name: getattr(kind, name) for name in OPERATIONS}
    passed = False

    def hooked(name: str) -> Callable[..., Any]:
        def operation(self: Any, *arguments: Any, **named: Any) -> Any:
            nonlocal passed
            if next(count) == at:
                restore()
                passed = True
                second()
            return originals[name](self, *arguments, **named)

        return operation

    def restore() -> None:
        for name, original in originals.items():
            setattr(kind, name, original)

    for name in OPERATIONS:
        setattr(kind, name, hooked(name))
    try:
        first()
    finally:
        restore()
    return passed


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("place", ["folder", "memory://faults"])
@pytest.mark.parametrize(
    "parts", [((1, 2), (2, 2)), ((1, 2), (1, 2)), ((1, 1), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (2, 2))], ids=str
)
def test_runs_that_meet_at_any_point_cooperate(place: str, parts: tuple[Any, Any], tmp_path: Path) -> None:
    """Where there are no locks: a second run takes place between any two steps of the first."""
    config = gerd.parse(SMALL)
    where = place if "://" in place else str(tmp_path / place)
    first, second = (lambda part=part: gerd.generate(config, where, 65, workers=1, part=part) for part in parts)
    gerd.generate(config, tmp_path / "alone", 65, workers=1)
    wanted = content(tmp_path / "alone")
    for at in itertools.count():
        if not interrupted(where, first, second, at):
            break  # the first run has no more steps
        made = gerd.Recordings(where).place
        if parts == ((1, 2), (1, 2)):
            gerd.generate(config, where, 65, workers=1, part=(2, 2))
        assert {name: made.read(name) for name in made.names()} == wanted, at
        for name in made.names():
            made.remove(name)
    assert at > 6


CRASHING = """
import os, shutil, signal, sys
from pathlib import Path
import gerd
from support.datasets import content

config, count, parts = gerd.parse(sys.argv[1]), 65, ((1, 2), (2, 2))
gerd.generate(config, "whole", count, workers=1)
whole = content(Path("whole"))

def run(crash=None, part=(1, 1)):
    child = os.fork()
    if not child:
        calls = 0
        def counted(function, *arguments):
            nonlocal calls
            if calls == crash:
                os.kill(os.getpid(), signal.SIGKILL)
            calls += 1
            return function(*arguments)
        for name in ("fsync", "replace", "unlink"):
            real = getattr(os, name)
            setattr(os, name, lambda *arguments, real=real: counted(real, *arguments))
        gerd.generate(config, "data", count, workers=1, part=part)
        os._exit(0)
    return os.waitpid(child, 0)[1]

alone = 0
while run(alone) == signal.SIGKILL:
    assert run() == 0, f"cannot be continued after crash {alone}"
    assert content(Path("data")) == whole, f"differs after crash {alone}"
    shutil.rmtree("data")
    alone += 1
shutil.rmtree("data")

in_parts = 0
while signal.SIGKILL in [run(in_parts, part) for part in parts]:
    for part in parts:
        assert run(part=part) == 0
    found = {name: data for name, data in content(Path("data")).items() if not name.endswith(".tmp")}
    assert found == whole, (in_parts, found.keys())
    assert run() == 0
    assert content(Path("data")) == whole, in_parts  # tidy, too
    shutil.rmtree("data")
    in_parts += 1
print(alone, in_parts)
"""


def test_a_crash_before_any_write_can_be_continued(tmp_path: Path) -> None:
    """By one command for all, and by two for a part each, which both crash."""
    command = [sys.executable, "-c", CRASHING, SMALL]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=with_support(), timeout=DEADLINE)
    assert result.returncode == 0, result.stderr
    assert min(map(int, result.stdout.split())) >= 6  # files are written


@pytest.mark.long
def test_the_job_array_in_the_documents(tmp_path: Path) -> None:
    """The script, run as SLURM runs it but one after the other, in the order of a lottery."""
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
    script = page[page.index("#!/bin/bash") :].partition("```")[0]
    (tmp_path / "configs").symlink_to(Path(__file__).parents[2] / "configs")
    (tmp_path / "gerd").write_text(f"#!/bin/sh\nexec '{COMMAND[0]}' -c '{COMMAND[2]}' \"$@\"\n")
    (tmp_path / "gerd").chmod(0o755)
    for task in random.Random(5).sample(range(1, 11), 10):
        variables = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
        environment = {**os.environ, **variables, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run(["sh", "-euc", script], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert faults(tmp_path / "data") == []
    assert len(gerd.Recordings(tmp_path / "data")) == 1000


# A long time


SOAK = """
import os, sys, time
from pathlib import Path
import gerd

def state():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir("/proc/self/fd"))

config, seconds = gerd.parse(sys.argv[1]), float(sys.argv[2])
begun, rounds, warm, recordings = time.monotonic(), 0, None, 0
while time.monotonic() - begun < seconds or rounds < 20:
    data = gerd.generate(config, f"data-{rounds % 3}", 70, workers=1)
    for recording in data:
        recording.frames()
    for frames, label in gerd.Dataset(f"data-{rounds % 3}").loader(16):
        pass
    for shard in Path(f"data-{rounds % 3}").iterdir():
        shard.unlink()
    rounds += 1
    recordings += 70
    if rounds == 10:
        warm = state()
memory, files = state()
print(f"{time.monotonic() - begun:.0f} s, {recordings} recordings:", f"{warm[0]:.1f} to {memory:.1f} MB,", end=" ")
print(f"{warm[1]} to {files} open files")
sys.exit(memory > warm[0] + 16 or files > warm[1])
"""


@pytest.mark.parametrize("seconds", ["0", pytest.param("3600", marks=pytest.mark.long)])
def test_memory_and_open_files_stay_flat(seconds: str, tmp_path: Path) -> None:
    """Twenty rounds, some seconds; an hour among the long tests, unless GERD_SOAK_SECONDS says less."""
    if seconds != "0":
        seconds = os.environ.get("GERD_SOAK_SECONDS", seconds)
    command = [sys.executable, "-c", SOAK, SMALL, seconds]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    print(result.stdout)


@pytest.mark.long
def test_the_soak_would_notice(tmp_path: Path) -> None:
    """The same with a reader that keeps what it reads, and with one that keeps its files open."""
    for leak in ("kept.append(b'x' * 2**21)", "kept.append(os.open(os.devnull, os.O_RDONLY))"):
        program = SOAK.replace("rounds += 1\n", f"rounds += 1\n    {leak}\n").replace(
            "begun, rounds", "kept, begun, rounds", 1
        )
        program = program.replace("= time.monotonic(), 0, None, 0", "= [], time.monotonic(), 0, None, 0", 1)
        program = program.replace("for recording in data:", "for recording in data[:1]:")
        command = [sys.executable, "-c", program, SMALL.replace("upsampling: 2", "upsampling: 1"), "0"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 1, result.stdout + result.stderr
        assert "open files" in result.stdout  # it came to its end

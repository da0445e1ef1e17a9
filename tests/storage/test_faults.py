"""What can go wrong while a dataset is made. After each fault the same command gives the bytes of an undisturbed run.

Machines and processes that die, on a real cluster of several Ray nodes; commands that meet in one folder; full disks;
clocks that jump; and a long run in which nothing may pile up.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.ray_cluster import COMMAND, CONFIG, HELD, HOLD, content, finished, running, start, wait_for

import gerd
from gerd.storage import generate as generation
from gerd.storage.places import Bucket, Folder
from gerd.storage.recordings import MANIFEST, shard_name

PARTS = [(1, 3), (2, 3), (3, 3)]


def faults(folder: Path | str) -> list[str]:
    return [str(fault) for _, found in gerd.verify(folder) for fault in found]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of 320 recordings, made by one process in one go."""
    folder = tmp_path_factory.mktemp("faults")
    gerd.generate(gerd.parse(CONFIG), folder / "data", 320, workers=1)
    return content(folder / "data")


# On a cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    with running(1) as started:
        yield started


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder with a config whose workers stop after the first shard until the file `go` is there."""
    (tmp_path / "hold.py").write_text(HOLD)
    (tmp_path / "config.yaml").write_text(HELD)
    yield tmp_path
    (tmp_path / "go").touch()


def as_if_undisturbed(folder: Path) -> bool:
    """Whether `data` in the folder is what one process makes in one go from the same config."""
    config = gerd.load(folder / "config.yaml", trust=True)
    gerd.generate(config, folder / "again", 320, workers=1)
    assert faults(folder / "data") == []
    return content(folder / "data") == content(folder / "again")


@pytest.mark.xdist_group("ray")
def test_a_node_is_killed_half_way(cluster: Any, held: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    process = start(held, "--engine", "ray", "--address", cluster.address)
    wait_for(lambda: len(list(held.glob("held-*"))) == 2, "both workers to be in the middle of a shard")
    cluster.remove_node(node, allow_graceful=False)
    (held / "go").touch()
    assert finished(process) == (0, "")
    assert as_if_undisturbed(held)


@pytest.mark.xdist_group("ray")
def test_the_driver_is_killed_and_started_again(cluster: Any, held: Path) -> None:
    options = ("--engine", "ray", "--address", cluster.address)
    process = start(held, *options)
    wait_for(lambda: list(held.glob("held-*")), "a worker to be in the middle of a shard")
    process.kill()
    process.communicate()
    assert not json.loads((held / "data" / MANIFEST).read_text())["complete"]
    (held / "go").touch()
    assert finished(start(held, *options)) == (0, "")
    assert as_if_undisturbed(held)


@pytest.mark.xdist_group("ray")
def test_ctrl_c_stops_the_cluster_and_the_same_command_continues(cluster: Any, held: Path) -> None:
    options = ("--engine", "ray", "--address", cluster.address)
    process = start(held, *options)
    wait_for(lambda: list(held.glob("held-*")), "a worker to be in the middle of a shard")
    os.killpg(process.pid, signal.SIGINT)
    stopped = "error: stopped; data keeps what is finished, and the same command continues\n"
    assert finished(process) == (130, stopped)
    (held / "go").touch()
    assert finished(start(held, *options)) == (0, "")
    assert as_if_undisturbed(held)


@pytest.mark.xdist_group("ray")
def test_a_worker_is_killed_in_the_middle_of_a_write(cluster: Any, held: Path) -> None:
    """Twice: with half of a file written, and with all of it that has not yet got its name."""
    (held / "go").touch()
    (held / "hold.py").write_text(
        HOLD
        + """
import os, signal
fsync, replace = os.fsync, os.replace

def dies(name, cut=None):
    if not (here / name).exists() and multiprocessing.current_process().name == "MainProcess" and in_worker:
        (here / name).touch()
        if cut is not None:
            os.ftruncate(cut, os.fstat(cut).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

def deadly_fsync(descriptor):
    dies("died-writing", descriptor)
    return fsync(descriptor)

def deadly_replace(*arguments):
    dies("died-naming")
    return replace(*arguments)

import multiprocessing, sys
in_worker = any("default_worker" in word for word in sys.orig_argv)
os.fsync, os.replace = deadly_fsync, deadly_replace
"""
    )
    assert finished(start(held, "--engine", "ray", "--address", cluster.address)) == (0, "")
    assert (held / "died-writing").exists()
    assert (held / "died-naming").exists()
    assert as_if_undisturbed(held)


@pytest.mark.long
@pytest.mark.xdist_group("ray")
def test_a_range_that_kills_every_worker_is_given_up(cluster: Any, held: Path) -> None:
    (held / "go").touch()
    (held / "hold.py").write_text(
        HOLD.replace("return 0.01 * t", "return os.kill(os.getpid(), 9) if 'default_worker' in str(orig_argv) else 0.0")
        + "\nfrom sys import orig_argv\n"
    )
    code, error = finished(start(held, "--engine", "ray", "--address", cluster.address))
    assert code == 1
    assert error.count("\n") == 1
    assert "recordings 0 to 63, tried 6 times: " in error


FULL = """
import subprocess, sys
import gerd
from support.ray_cluster import CONFIG, running
config = gerd.parse(CONFIG)
with running(2) as cluster:
    try:
        gerd.generate(config, "data", 640, engine="ray", address=cluster.address)
    except gerd.StorageError as error:
        print(error)
    print(gerd.Recordings("data").manifest["complete"], flush=True)
    subprocess.run(["mount", "-o", "remount,size=4m", "."], check=True)
    gerd.generate(config, "data", 640, engine="ray", address=cluster.address)
gerd.generate(config, "again", 640, workers=1)
subprocess.run(["diff", "-r", "data", "again"], check=True)
print([fault for _, found in gerd.verify("data") for fault in found])
"""


def in_a_small_file_system(folder: Path, size: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` with a file system of that size mounted there, or skip the test."""
    mount = f"mount -t tmpfs -o size={size} tmpfs {folder}"
    unshare = ["unshare", "-rm", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*unshare, mount], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    program = f'{mount} && cd {folder} && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run([*unshare, program, "sh", *command], capture_output=True, text=True, env=environment)


@pytest.mark.long
@pytest.mark.xdist_group("ray")
def test_the_disk_of_a_cluster_is_full(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    result = in_a_small_file_system(tmp_path, "200k", [sys.executable, "-c", FULL])
    assert result.returncode == 0, result.stderr
    message, complete, found = result.stdout.splitlines()
    assert "cannot be written: No space left on device" in message
    assert (complete, found) == ("False", "[]")


# One disk


def test_a_full_disk_gets_room_and_the_same_command_continues(tmp_path: Path) -> None:
    program = """
        cat > config.yaml <<'END'
{CONFIG}
END
        "$@" generate config.yaml data -n 640 --workers 1; echo $?
        mount -o remount,size=4m .
        "$@" generate config.yaml data -n 640 --workers 1 >&2; echo $?
        "$@" generate config.yaml again -n 640 --workers 1 >&2
        diff -r data again && "$@" verify data
    """.replace("{CONFIG}", CONFIG)
    result = in_a_small_file_system(tmp_path, "200k", ["sh", "-c", program, "sh", *COMMAND])
    assert result.stdout.splitlines() == ["1", "0", "data: 640 recordings, all sound"], result.stderr
    assert "cannot be written: No space left on device" in result.stderr


def test_files_larger_than_the_process_may_write(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """What a quota does: the write itself fails, not the sync."""
    program = (
        "import resource, signal, sys, gerd\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: gerd.generate(gerd.parse(sys.argv[1]), 'data', 320, workers=1)\n"
        "except gerd.StorageError as error: print(error)"
    )
    command = [sys.executable, "-c", program, CONFIG]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"data/{shard_name(0)}: cannot be written: File too large\n"
    assert not [name for name in content(tmp_path / "data") if name.startswith((".", "shard"))]
    gerd.generate(gerd.parse(CONFIG), tmp_path / "data", 320, workers=1)
    assert content(tmp_path / "data") == undisturbed


# Clocks


def test_clocks_may_jump(tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two looks at it the clock may be years off, and so may be the times of files."""
    jumps = random.Random(2)
    monkeypatch.setattr("time.time", lambda: jumps.uniform(-1e9, 5e9))
    monkeypatch.setattr("time.time_ns", lambda: jumps.randrange(-(10**18), 5 * 10**18))
    folder = tmp_path / "data"
    for part in (PARTS[1], PARTS[0], PARTS[2]):
        gerd.generate(gerd.parse(CONFIG), folder, 320, workers=1, part=part)
        for file in folder.iterdir():
            os.utime(file, (jumps.uniform(0, 4e9), jumps.uniform(0, 4e9)))
    assert content(folder) == undisturbed
    (folder / shard_name(2)).write_bytes(b"damaged")
    os.utime(folder / shard_name(2), (0, 0))
    gerd.generate(gerd.parse(CONFIG), folder, 320, workers=2)
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
    (tmp_path / "config.yaml").write_text(CONFIG)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"], cwd=tmp_path, check=True)
    environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "clock.so")}
    ask = [sys.executable, "-c", "import time; print(*(time.time() for _ in range(9)))"]
    times = subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert times != sorted(times, key=float)
    for part in ("2/2", "1/2"):
        command = [*COMMAND, "generate", "config.yaml", "data", "-n", "320", "--workers", "2", "--shard", part]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
    assert content(tmp_path / "data") == undisturbed


# Several commands in one place


def parts_in_processes(folder: Path, parts: list[tuple[int, int]]) -> list[subprocess.Popen[str]]:
    (folder / "config.yaml").write_text(CONFIG)
    return [start(folder, "--workers", "1", "--shard", f"{i}/{n}") for i, n in parts]


def test_independent_commands_make_one_dataset(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """All at once, one of them twice; whichever is the last completes the manifest."""
    commands = parts_in_processes(tmp_path, [*PARTS, PARTS[0]])
    assert [finished(command) for command in commands] == [(0, "")] * 4
    assert content(tmp_path / "data") == undisturbed
    assert faults(tmp_path / "data") == []


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=str)
def test_parts_may_come_in_any_order(
    order: tuple[tuple[int, int], ...], tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    folder = tmp_path / "data"
    for number, part in enumerate(order):
        made: list[int] = []
        data = gerd.generate(gerd.parse(CONFIG), folder, 320, workers=1, part=part, progress=made.append)
        assert data.manifest["complete"] == (number == 2)
        assert sum(made) == generation.recordings_of_part(320, part)
    assert content(folder) == undisturbed


def test_more_parts_than_shards_and_parts_of_different_cuts(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    folder = tmp_path / "data"
    for part in ((9, 9), (3, 9), (1, 2), (6, 9), (4, 9), (2, 9)):
        gerd.generate(gerd.parse(CONFIG), folder, 320, workers=1, part=part)
    assert content(folder) == undisturbed


@pytest.mark.parametrize("recordings", [1, 64, 65, 1000])
@pytest.mark.parametrize("parts", [1, 2, 3, 40])
def test_the_parts_are_the_whole(recordings: int, parts: int) -> None:
    sizes = [generation.recordings_of_part(recordings, (part, parts)) for part in range(1, parts + 1)]
    assert sum(sizes) == recordings
    assert max(sizes) - min(sizes) <= 64


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/2/3", "1.5/2", "9" * 99 + "/3"])
def test_parts_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(gerd.GerdError, match=r"allowed is I/N with I from 1 to N"):
        generation.parse_part(text)


def test_a_part_refuses_another_dataset_even_if_it_has_no_shard_yet(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    gerd.generate(gerd.parse(CONFIG), folder, 64, workers=1, part=(2, 2))  # there is but one shard
    assert sorted(content(folder)) == [".part-2-of-2.json", "config.yaml", MANIFEST, "resolved.json"]
    for text, message in (
        (CONFIG.replace("seed: 8", "seed: 9"), "seed is 8 there and 9 here"),
        (CONFIG + "# a remark\n", "the text of the config differs"),
    ):
        with pytest.raises(gerd.StorageError, match=message):
            gerd.generate(gerd.parse(text), folder, 64, workers=1, part=(1, 2))
    gerd.generate(gerd.parse(CONFIG + "# a remark\n"), folder, 64, workers=1)  # alone here, it may say so
    assert faults(folder) == []


def test_a_whole_run_and_a_part_do_not_meet(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    for lock, part in ((fcntl.LOCK_EX, PARTS[0]), (fcntl.LOCK_EX, (1, 1)), (fcntl.LOCK_SH, (1, 1))):
        fcntl.flock(held, lock)
        with pytest.raises(gerd.StorageError, match="another run is writing here"):
            gerd.generate(gerd.parse(CONFIG), tmp_path, 320, workers=1, part=part)
    for part in PARTS:
        gerd.generate(gerd.parse(CONFIG), tmp_path, 320, workers=1, part=part)
    assert content(tmp_path) == undisturbed
    os.close(held)


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)


OPERATIONS = ("names", "read", "open", "write", "remove", "tidy")


def interrupted(place: str, first: Callable[[], Any], second: Callable[[], Any], at: int) -> bool:
    """Do `first`, and before its operation number `at` on the store all of `second`; False if it has fewer."""
    kind = Bucket if "://" in place else Folder
    count, originals = itertools.count(), {name: getattr(kind, name) for name in OPERATIONS}
    passed = False

    def hooked(name: str) -> Callable[..., Any]:
        def operation(self: Any, *arguments: Any) -> Any:
            nonlocal passed
            if next(count) == at:
                restore()
                passed = True
                second()
            return originals[name](self, *arguments)

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
    config = gerd.parse(CONFIG)
    where = place if "://" in place else str(tmp_path / place)
    first, second = (lambda part=part: gerd.generate(config, where, 130, workers=1, part=part) for part in parts)
    gerd.generate(config, tmp_path / "alone", 130, workers=1)
    wanted = content(tmp_path / "alone")
    for at in itertools.count():
        if not interrupted(where, first, second, at):
            break  # the first run has no more steps
        store = gerd.Recordings(where).store
        if parts == ((1, 2), (1, 2)):
            gerd.generate(config, where, 130, workers=1, part=(2, 2))
        assert {name: store.read(name) for name in store.names()} == wanted, at
        for name in store.names():
            store.remove(name)
    assert at > 10


CRASHING = """
import os, shutil, signal, sys
from pathlib import Path
import gerd

config, count = gerd.parse(sys.argv[1]), int(sys.argv[2])
gerd.generate(config, "whole", count, workers=1)

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

def content(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}
"""
CRASHING_ALONE = """
crash = 0
while run(crash) == signal.SIGKILL:
    assert run() == 0, f"cannot be continued after crash {crash}"
    assert content("data") == content("whole"), f"differs after crash {crash}"
    shutil.rmtree("data")
    crash += 1
print(crash)
"""
CRASHING_PARTS = """
for crash in range(10**6):
    ends = [run(crash, part) for part in ((1, 2), (2, 2))]
    if signal.SIGKILL not in ends:
        break
    for part in ((1, 2), (2, 2)):
        assert run(part=part) == 0
    found = {name: data for name, data in content("data").items() if not name.endswith(".tmp")}
    assert found == content("whole"), (crash, found.keys())
    assert run() == 0
    assert content("data") == content("whole"), crash  # tidy, too
    shutil.rmtree("data")
print(crash)
"""


@pytest.mark.parametrize(
    ("how", "count", "crashes"),
    [(CRASHING_ALONE, 70, 3 * 6), (CRASHING_PARTS, 130, 16)],  # two syncs and a move for each of six files; more
    ids=["alone", "in parts"],
)
def test_a_crash_before_any_write_can_be_continued(how: str, count: int, crashes: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRASHING + how, CONFIG, str(count)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) >= crashes


def test_a_temporary_file_that_another_run_removes_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that starts where there are no locks takes it for a leftover."""
    real, removed = os.replace, []

    def replace(temporary: Path, path: Path) -> None:
        if len(removed) < 3:
            removed.append(temporary)
            os.unlink(temporary)
        real(temporary, path)

    monkeypatch.setattr(os, "replace", replace)
    Folder(tmp_path).write("file", b"content")
    assert content(tmp_path) == {"file": b"content"}
    assert len(set(removed)) == 3
    with pytest.raises(gerd.StorageError, match="cannot be written: No such file or directory"):
        Folder(tmp_path / "none").write("file", b"content")


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    """As machines do whose processes have the same number."""
    data = os.urandom(2**20)
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(Folder(tmp_path).write, "file", data) for _ in range(64)]:
            written.result()
    assert content(tmp_path) == {"file": data}


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
while time.monotonic() - begun < seconds or rounds < 40:
    data = gerd.generate(config, f"data-{rounds % 3}", 70, workers=1)
    for recording in data:
        recording.frames()
    for frames, label in gerd.Dataset(f"data-{rounds % 3}").loader(16):
        pass
    for shard in Path(f"data-{rounds % 3}").iterdir():
        shard.unlink()
    rounds += 1
    recordings += 70
    if rounds == 20:
        warm = state()
memory, files = state()
print(f"{time.monotonic() - begun:.0f} s, {recordings} recordings:", f"{warm[0]:.1f} to {memory:.1f} MB,", end=" ")
print(f"{warm[1]} to {files} open files")
sys.exit(memory > warm[0] + 16 or files > warm[1])
"""


@pytest.mark.parametrize("seconds", ["0", pytest.param("3600", marks=pytest.mark.long)])
def test_memory_and_open_files_stay_flat(seconds: str, tmp_path: Path) -> None:
    """Forty rounds, some seconds; an hour among the long tests, unless GERD_SOAK_SECONDS says less."""
    if seconds != "0":
        seconds = os.environ.get("GERD_SOAK_SECONDS", seconds)
    command = [sys.executable, "-c", SOAK, CONFIG, seconds]
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
        command = [sys.executable, "-c", program, CONFIG.replace("upsampling: 2", "upsampling: 1"), "0"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 1, result.stdout + result.stderr
        assert result.stderr == ""

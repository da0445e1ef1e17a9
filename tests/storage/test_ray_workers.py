"""Generation on a Ray cluster: the same bytes as on one machine, no more work under way than needed, clear failures.

And what can go wrong: after each fault the same command gives the bytes of an undisturbed run.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gerd
from gerd.storage import ray_workers as engine
from gerd.storage.manifest import MANIFEST, SHARD_SIZE, new_manifest, shard_name
from gerd.storage.places import Folder
from gerd.storage.ray_workers import finish_on_ray
from gerd.storage.work import Job

ray = pytest.importorskip("ray")

from support.datasets import FAMILY, SMALL, content, unfinish  # noqa: E402
from support.held import HELD, HOLD, stop_and_continue, workers_held  # noqa: E402
from support.processes import DEADLINE, errors_of  # noqa: E402
from support.ray_cluster import NODE, running  # noqa: E402
from support.traps import lay_traps, run_among_traps  # noqa: E402

# Turning does not move the outline of a circle, but it moves that of an ellipse: a few recordings cannot be drawn.
FAILING = SMALL.replace("square", "circle").replace(
    "scale: {start: 4, acceleration: 0}",
    f"scale: {{start: {{choice: {[[4, 8]] * 40 + [[5, 5]]}}}, acceleration: 0}}\n"
    "    rotation: {velocity: {boundary: 1}, acceleration: 0}",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with running(2) as started:
        yield started


def generate(folder: Path | str, cluster: Any, text: str = SMALL, count: int = 330, **options: Any) -> gerd.Recordings:
    return gerd.generate(gerd.parse(text), folder, count, engine="ray", address=cluster.address, **options)


def test_the_engine_does_not_show(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a relative folder and members of a sweep."""
    monkeypatch.chdir(tmp_path)
    made: list[int] = []
    config = gerd.parse(FAMILY)
    gerd.generate(config, "local", 60, workers=1)
    generate("ray", cluster, FAMILY, 60, progress=made.append)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert sum(made) == 360
    assert not ray.is_initialized()


@pytest.mark.long
def test_a_bug_in_a_worker_comes_with_its_traceback_and_the_recording(cluster: Any, tmp_path: Path) -> None:
    """Code of the user that spoils the program itself."""
    (tmp_path / "spoils.py").write_text(
        "from gerd.recording import simulate\n"
        "real = simulate.run\n"
        "def run(scenes, **options):\n"
        "    assert 77 not in scenes.indices, 'seventy-seven'\n"
        "    return real(scenes, **options)\n"
        "def push(t):\n"
        "    simulate.run = run\n"
        "    return 0\n"
        "y = wide = high = turn = slant = push\n"
    )
    text = HELD.replace("hold:", "spoils:")
    program = (
        "import sys, gerd; text, folder, address = sys.argv[1:]\n"
        "config = gerd.parse(text, directory=folder, trust=True)\n"
        "gerd.generate(config, f'{folder}/data', 330, engine='ray', address=address)"
    )
    command = [sys.executable, "-c", program, text, str(tmp_path), cluster.address]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert "AssertionError: seventy-seven" in result.stderr
    assert "while making index 77" in result.stderr


def test_workers_have_gpus_if_the_cluster_has() -> None:
    assert engine.choose_device({"CPU": 8.0, "GPU": 2.0}, None) == ("GPU", "cuda")
    assert engine.choose_device({"CPU": 8.0}, None) == ("CPU", "cpu")
    assert engine.choose_device({"CPU": 8.0, "GPU": 2.0}, "cpu") == ("CPU", "cpu")
    for resources, device, message in (
        ({"CPU": 8.0}, "cuda", "the cluster has no GPU"),
        ({}, None, "the cluster has no CPU"),
        ({"CPU": 8.0}, "cuda:1", "allowed with the engine ray: cpu, cuda"),
    ):
        with pytest.raises(gerd.GerdError, match=message):
            engine.choose_device(resources, device)


@pytest.mark.long
def test_workers_are_sent_to_the_gpus(cluster: Any, tmp_path: Path) -> None:
    """Where there is no GPU a node pretends to have one; what its worker says about it reaches the user."""
    import torch

    node = cluster.add_node(num_cpus=0, num_gpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    try:
        if torch.cuda.is_available():
            generate(tmp_path / "data", cluster, FAMILY, 60)
        else:
            with pytest.raises(gerd.GerdError, match=r"index 0, member 0 .*device 'cuda': cannot be used"):
                generate(tmp_path / "data", cluster, FAMILY, 60)
            generate(tmp_path / "data", cluster, FAMILY, 60, device="cpu")
        gerd.generate(gerd.parse(FAMILY), tmp_path / "local", 60, workers=1)
        assert content(tmp_path / "data") == content(tmp_path / "local")
    finally:
        cluster.remove_node(node)


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    for wrong in (address, "nonsense"):
        with pytest.raises(gerd.GerdError, match=f"there is no cluster at {wrong} .*ray start --head"):
            gerd.generate(gerd.parse(SMALL), tmp_path / "data", 1, engine="ray", address=wrong)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(gerd.GerdError, match=r"pip install 'gerd-events\[cluster\]'"):
        gerd.generate(gerd.parse(SMALL), tmp_path / "data", 1, engine="ray")
    assert not (tmp_path / "data").exists()


def test_what_a_cluster_cannot_do_is_refused(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(gerd.GerdError, match="lives in the memory of one process"):
        generate("memory://cluster", cluster)
    config = gerd.parse(SMALL)
    for options, message in (
        ({"engine": "rya"}, "engine 'rya': allowed: local, ray"),
        ({"address": "here:1"}, "address here:1: goes with the engine ray"),
    ):
        with pytest.raises(gerd.GerdError, match=message):
            gerd.generate(config, tmp_path / "data", 1, **options)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_folder_that_the_nodes_do_not_share_is_named(cluster: Any, tmp_path: Path) -> None:
    """The driver has a file system of its own mounted where the workers see an empty folder, or none."""
    mount = f"mount -t tmpfs tmpfs {tmp_path}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    program = (
        "import sys, gerd; text, folder, address = sys.argv[1:]\n"
        "try: gerd.generate(gerd.parse(text), folder, 10, engine='ray', address=address)\n"
        "except gerd.GerdError as error: print(error)"
    )
    made = [sys.executable, "-c", program, SMALL, str(tmp_path / "data"), cluster.address]
    result = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", *made], capture_output=True, text=True
    )
    assert "does not see" in result.stdout, result.stderr
    assert "all machines must share the folder" in result.stdout


def test_nothing_of_a_cluster_is_needed_on_one_machine(tmp_path: Path) -> None:
    """Neither Ray nor fsspec is imported for a dataset in a folder."""
    program = (
        "import sys, gerd; gerd.generate(gerd.parse(sys.argv[1]), 'data', 70, workers=1); gerd.Recordings('data')[69]\n"
        "print(*sorted({'ray', 'fsspec'} & sys.modules.keys()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, SMALL],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert result.stdout.strip() == ""
    assert (tmp_path / "data" / "manifest.json").exists()


# What can go wrong


def by_ray(cluster: Any) -> tuple[str, ...]:
    return ("--engine", "ray", "--address", cluster.address)


def test_workers_import_nothing_from_the_folder(cluster: Any, tmp_path: Path) -> None:
    lay_traps(tmp_path)
    run_among_traps(tmp_path, f"generate config.yaml data -n 130 {' '.join(by_ray(cluster))}")


@pytest.mark.parametrize(
    "how", ["Ctrl-C", *(pytest.param(how, marks=pytest.mark.long) for how in ("killed", "Ctrl-C in a terminal"))]
)
def test_a_run_that_is_stopped_continues_to_the_same_bytes(
    how: str, cluster: Any, held: Path, start: Any, never_held: dict[str, bytes]
) -> None:
    process = start(*by_ray(cluster))
    workers_held(held)
    stop_and_continue(process, how, held, never_held)


@pytest.mark.long
def test_a_node_is_killed_half_way(cluster: Any, held: Path, start: Any, never_held: dict[str, bytes]) -> None:
    process = start(*by_ray(cluster))
    workers_held(held, 2)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    try:
        (held / "go").touch()
        assert errors_of(process) == []
        assert content(held / "data") == never_held
    finally:
        cluster.add_node(**NODE)  # for others


def test_a_worker_is_killed_in_the_middle_of_a_write(
    cluster: Any, held: Path, start: Any, never_held: dict[str, bytes]
) -> None:
    """Twice: with half of a file written, and with all of it that has not yet got its name."""
    (held / "go").touch()
    (held / "hold.py").write_text(
        HOLD
        + """
fsync, replace = os.fsync, os.replace

def dies(name, cut=None):
    if in_ray and not (here / name).exists():
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

os.fsync, os.replace = deadly_fsync, deadly_replace
"""
    )
    assert errors_of(start(*by_ray(cluster))) == []
    assert (held / "died-writing").exists()
    assert (held / "died-naming").exists()
    assert content(held / "data") == never_held


@pytest.mark.long
def test_the_head_of_the_cluster_is_lost(held: Path, start: Any) -> None:
    """The last thing that the user reads is ours, and what is finished is kept."""
    with running(1) as lost:
        process = start(*by_ray(lost))
        workers_held(held)
        lost.head_node.kill_gcs_server()
        (error,) = errors_of(process, 1)
    assert error.startswith(f"error: {held / 'data'}: the head of the cluster, ")
    assert error.endswith("does not answer; finished shards are kept, and the same command continues")
    assert not gerd.Recordings(held / "data").manifest.complete


@pytest.mark.long
def test_a_range_that_kills_every_worker_is_given_up(cluster: Any, held: Path, start: Any) -> None:
    (held / "go").touch()
    (held / "deadly").touch()
    (error,) = errors_of(start(*by_ray(cluster)), 1)
    assert re.search(r"rows \d+ to \d+, tried 6 times: ", error)  # several are under way


# A caller that is connected


@pytest.fixture(scope="module")
def connection(cluster: Any) -> Iterator[None]:
    """One for all of these tests: the workers of another would start anew. What needs none has to stand above."""
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("connection")
def test_a_run_is_continued_and_the_caller_stays_connected(tmp_path: Path) -> None:
    config = gerd.parse(FAMILY)
    gerd.generate(config, tmp_path, 60, workers=1)
    whole = content(tmp_path)
    unfinish(tmp_path)
    (tmp_path / shard_name(1)).unlink()
    (tmp_path / shard_name(3)).write_bytes(b"half")
    gerd.generate(config, tmp_path, 60, engine="ray")
    assert content(tmp_path) == whole
    assert ray.is_initialized()


@pytest.mark.usefixtures("connection")
def test_ranges_grow_and_few_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all took no time: ranges grow as far as is fair. Two workers need no more than four."""
    under_way, made, wait = [], [], ray.wait

    def waited(references: list[Any], **options: Any) -> Any:
        under_way.append(len(references))
        return wait(references, **options)

    monkeypatch.setattr(ray, "wait", waited)
    config = gerd.parse(SMALL)
    job = Job(config, Folder(tmp_path), new_manifest(config, 32 * SHARD_SIZE))
    job.place.write(MANIFEST, job.manifest.to_bytes())
    entries = list(finish_on_ray(job, range(32), None, None, made.append, task_seconds=1e9))
    sizes = [recordings // SHARD_SIZE for recordings in made]
    assert max(under_way) == 4
    assert sum(sizes) == 32
    assert sizes[0] == 1
    assert 4 < max(sizes) <= 8
    assert sizes[-1] <= 2  # the last ranges are short, so that both workers end together
    assert sorted(entry.file for entry in entries) == [shard_name(number) for number in range(32)]


@pytest.mark.usefixtures("connection")
def test_a_failure_names_the_recording_and_the_command_fails(tmp_path: Path) -> None:
    with pytest.raises(gerd.GerdError, match="does not move the outline") as there:
        gerd.generate(gerd.parse(FAILING), tmp_path / "ray", 330, engine="ray")
    index = int(str(there.value).removeprefix("index ").partition(":")[0])
    gerd.simulate(gerd.parse(FAILING), index - 1)
    with pytest.raises(gerd.ConfigError, match="does not move the outline"):
        gerd.simulate(gerd.parse(FAILING), index)
    assert there.value.exit_code == 2
    assert not gerd.Recordings(tmp_path / "ray").manifest.complete
    with pytest.raises(gerd.GerdError, match=r"^index \d+: "):
        gerd.generate(gerd.parse(FAILING), tmp_path / "local", 330, workers=2)

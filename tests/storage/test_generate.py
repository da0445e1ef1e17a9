"""Making datasets: the same bytes whoever makes them and however often they are interrupted; nothing is overwritten."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np
import pytest
from support.datasets import FAMILY, SMALL, change_manifest, content, unfinish
from support.held import HELD
from support.processes import DEADLINE

import gerd
from gerd.cli.describe import describe
from gerd.errors import StorageError
from gerd.storage import work
from gerd.storage.local import finish_in_processes
from gerd.storage.manifest import CONFIG, MANIFEST, RESOLVED, grown_name, new_manifest, shard_name
from gerd.storage.places import Folder
from gerd.storage.work import Job, finish_shards


def generate(folder: Path, text: str = SMALL, count: int = 130, **options: Any) -> gerd.Recordings:
    return gerd.generate(gerd.parse(text), folder, count, **{"workers": 1, **options})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """130 recordings in three shards, made in one go by one process."""
    folder = tmp_path_factory.mktemp("generation") / "data"
    generate(folder)
    return folder


@pytest.fixture
def unfinished(undisturbed: Path, tmp_path: Path) -> Path:
    """What a run leaves that was stopped when it had made shards 0 and 2."""
    folder = Path(shutil.copytree(undisturbed, tmp_path / "data"))
    unfinish(folder)
    (folder / shard_name(1)).unlink()
    return folder


# The same bytes


def test_the_number_of_workers_does_not_show(tmp_path: Path) -> None:
    for name, workers in (("one", 1), ("two", 2)):
        made: list[int] = []
        generate(tmp_path / name, FAMILY, 40, workers=workers, progress=made.append)
        assert sum(made) == 240  # the progress adds up
        assert min(made) >= 0
    assert len(list((tmp_path / "one").glob("shard-*"))) == 4
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_batches_do_not_show(undisturbed: Path, tmp_path: Path) -> None:
    made: list[int] = []
    job = Job(gerd.parse(SMALL), Folder(tmp_path), gerd.Recordings(undisturbed).manifest, batch_pixels=7 * 12 * 9)
    list(finish_shards(job, [0], made.append))
    assert max(made) == 7
    assert (tmp_path / shard_name(0)).read_bytes() == (undisturbed / shard_name(0)).read_bytes()


@dataclass(frozen=True)
class Slow(Folder):
    """A folder that waits with each file until recordings of the next one are made; the disk is full at the third."""

    going_on: Semaphore = field(default_factory=lambda: Semaphore(0))
    written: list[str] = field(default_factory=list)

    def write(self, name: str, data: bytes) -> None:
        assert self.going_on.acquire(timeout=DEADLINE)
        if len(self.written) == 2:
            raise StorageError("the disk is full")
        self.written.append(name)
        super().write(name, data)


def test_a_shard_is_written_while_the_next_is_made_and_listed_when_it_is_there(tmp_path: Path) -> None:
    config = gerd.parse(SMALL)
    place = Slow(tmp_path)
    job = Job(config, place, new_manifest(config, 300))
    begun = iter([False, True, True, True, True])  # of the first, no file is waiting yet
    made = finish_shards(job, range(5), lambda _: place.going_on.release() if next(begun) else None)
    for number in (0, 1):
        assert next(made).file == shard_name(number)
        assert (tmp_path / shard_name(number)).exists()
    with pytest.raises(StorageError, match="full"):
        next(made)
    assert place.written == [shard_name(0), shard_name(1)]


def test_a_dataset_holds_what_simulate_gives(undisturbed: Path) -> None:
    data = gerd.Recordings(undisturbed)
    config = gerd.parse(SMALL)
    assert len(data) == 130
    for position in (0, 1, 64, 129):
        assert data[position].digest == gerd.simulate(config, position).digest


def test_there_is_a_worker_for_each_core_or_one_for_each_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def noted(job: Any, numbers: Any, workers: int, progress: Any) -> Any:
        if numbers:
            asked.append(workers)
        return finish_in_processes(job, numbers, 1, progress)

    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr("gerd.storage.generate.finish_in_processes", noted)
    for count in (1, 70, 260):
        generate(tmp_path / f"{count}", count=count, workers=None)
    assert asked == [1, 2, 2]


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """With as many processes as there are usually."""
    (tmp_path / "script.py").write_text(f"import gerd\nprint(len(gerd.generate(gerd.parse({SMALL!r}), 'data', 70)))\n")
    result = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    assert result.stdout == "70\n"


# Continuing


def test_missing_shards_are_made_and_the_others_kept(undisturbed: Path, unfinished: Path) -> None:
    before = (unfinished / shard_name(0)).stat().st_mtime_ns
    made: list[int] = []
    generate(unfinished, progress=made.append)
    assert content(unfinished) == content(undisturbed)
    assert (unfinished / shard_name(0)).stat().st_mtime_ns == before
    assert sum(made) == 130


@pytest.mark.parametrize("where", [20, 1000, -100, -3])
def test_a_damaged_shard_of_an_unfinished_dataset_is_made_again(
    where: int, undisturbed: Path, unfinished: Path
) -> None:
    damaged = bytearray((unfinished / shard_name(2)).read_bytes())
    damaged[where] ^= 16
    (unfinished / shard_name(2)).write_bytes(damaged)
    generate(unfinished)
    assert content(unfinished) == content(undisturbed)


def test_a_shard_in_the_wrong_place_is_made_again(undisturbed: Path, unfinished: Path) -> None:
    shutil.copy(unfinished / shard_name(0), unfinished / shard_name(1))
    generate(unfinished)
    assert content(unfinished) == content(undisturbed)


def test_leftovers_are_removed_and_other_files_are_not(undisturbed: Path, unfinished: Path) -> None:
    for name in (shard_name(1), MANIFEST, CONFIG):
        (unfinished / f".{name}.0123456789abcdef.tmp").write_bytes(b"half")
    (unfinished / ".notes.tmp").write_text("mine")
    generate(unfinished)
    assert content(unfinished) == {**content(undisturbed), ".notes.tmp": b"mine"}


def test_a_folder_with_nothing_but_leftovers_is_empty(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".manifest.json.00000000deadbeef.tmp").write_bytes(b"{")
    generate(tmp_path / "data")
    assert content(tmp_path / "data") == content(undisturbed)


@pytest.mark.parametrize("name", [CONFIG, RESOLVED])
def test_a_config_that_was_not_written_in_time_is_written(name: str, undisturbed: Path, unfinished: Path) -> None:
    (unfinished / name).unlink()
    generate(unfinished)
    assert content(unfinished) == content(undisturbed)


def test_a_complete_dataset_is_left_alone(undisturbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "simulate_batch", None)
    monkeypatch.setattr("gerd.storage.places.write_whole", None)
    made: list[int] = []
    assert len(generate(undisturbed, progress=made.append)) == 130
    assert sum(made) == 0


@pytest.mark.parametrize("damage", ["truncated", "missing", "changed"])
def test_a_complete_dataset_that_was_damaged_is_mended(damage: str, undisturbed: Path, tmp_path: Path) -> None:
    shutil.copytree(undisturbed, tmp_path / "data")
    shard = tmp_path / "data" / "shard-000001.safetensors"
    whole = shard.read_bytes()
    if damage == "missing":
        shard.unlink()
    else:
        shard.write_bytes(whole[:-100] if damage == "truncated" else whole[:-1] + bytes([whole[-1] ^ 1]))
    generate(tmp_path / "data")
    assert content(tmp_path / "data") == content(undisturbed)


# Growing: 33 × 6 recordings are 3 shards and 6 more, 60 × 6 are 5 shards and 40 more


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same family, made at once with fewer and with more recordings."""
    folder = tmp_path_factory.mktemp("growth")
    for name, count in (("small", 33), ("large", 60)):
        generate(folder / name, FAMILY, count)
    return folder / "small", folder / "large"


@pytest.fixture
def growing(small_and_large: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_and_large[0], tmp_path / "data"))


def test_a_dataset_grows(growing: Path, small_and_large: tuple[Path, Path]) -> None:
    before = (growing / shard_name(0)).stat().st_mtime_ns
    made: list[int] = []
    assert len(generate(growing, FAMILY, 60, progress=made.append)) == 360
    assert content(growing) == content(small_and_large[1])
    assert (growing / shard_name(0)).stat().st_mtime_ns == before
    assert sum(made) == 360 - 3 * 64  # the full shards stay


class StoppedError(Exception):
    pass


KILLED_WHILE_GROWING = """
import os, shutil, signal, sys
from pathlib import Path
import gerd
from support.datasets import FAMILY, content, faults

sizes = {count: [one.digest for one in gerd.generate(gerd.parse(FAMILY), str(count), count, workers=1)]
         for count in (33, 34, 60)}

def run(count, kill=None, after=False):
    child = os.fork()
    if not child:
        calls = 0
        def counted(real, *arguments):
            nonlocal calls
            calls += 1
            if calls > kill and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*arguments)
            if calls > kill:
                os.kill(os.getpid(), signal.SIGKILL)
        for name in ("replace", "unlink") if kill is not None else ():
            real = getattr(os, name)
            setattr(os, name, lambda *arguments, real=real: counted(real, *arguments))
        gerd.generate(gerd.parse(FAMILY), "data", count, workers=1)
        os._exit(0)
    return os.waitpid(child, 0)[1]

seen = set()
for more in (34, 60):  # in the same shard, and beyond it
    for after in (False, True):
        kill, status = 0, signal.SIGKILL
        while status == signal.SIGKILL:
            shutil.copytree("33", "data")
            status = run(more, kill, after)
            data, where = gerd.Recordings("data"), (more, after, kill)
            count = data.manifest.count
            assert data.manifest.complete and count in (33, more), where
            assert [one.digest for one in data] == sizes[count], where
            for entry in data.manifest.shards:
                assert data.place.open(entry.file).size, where
            wrong = [fault for fault in faults("data") if "does not belong to the dataset" not in fault]
            assert wrong == [], (where, wrong)
            seen.add((more, count))
            if kill % 2:
                assert run(60) == 0 and content(Path("data")) == content(Path("60")), where
            assert run(60 if kill % 2 else more) == 0, where
            assert content(Path("data")) == content(Path(str(60 if kill % 2 else more))), where
            assert faults("data") == [], where
            shutil.rmtree("data")
            kill += 1
        assert kill >= 6, kill
assert len(seen) == 4
"""


def test_a_dataset_that_is_killed_while_it_grows_is_whole_all_the_time(tmp_path: Path) -> None:
    """Killed before and after each rename and removal: it is the old one or the new one, and every row is read."""
    command = [sys.executable, "-c", KILLED_WHILE_GROWING]
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=600)
    assert result.returncode == 0, result.stderr


def test_a_grown_shard_that_was_damaged_is_made_anew(
    growing: Path, small_and_large: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(place: Folder, name: str, data: bytes) -> None:
        if name == shard_name(3):
            raise StoppedError
        write(place, name, data)

    write = Folder.write
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "write", stop)
        with pytest.raises(StoppedError):
            generate(growing, FAMILY, 60)
    data = gerd.Recordings(growing)
    assert (data.manifest.count, data.manifest.shards[3].file) == (60, grown_name(3))
    describe(growing)
    (growing / grown_name(3)).write_bytes(b"damaged")
    with pytest.raises(gerd.StorageError, match=re.escape(grown_name(3))):
        _ = gerd.Recordings(growing)[198]
    generate(growing, FAMILY, 60)
    assert content(growing) == content(small_and_large[1])


def test_a_dataset_does_not_grow_in_parts_or_by_other_code(growing: Path) -> None:
    assert refusal(growing, FAMILY, 32).endswith("count is 33 there and 32 here")
    with pytest.raises(gerd.StorageError, match="count is 33 there and 60 here; recordings are added by one command"):
        generate(growing, FAMILY, 60, part=(1, 2))
    change_manifest(growing, code_digest="0" * 64)
    assert "it was begun by other code" in refusal(growing, FAMILY, 60)


# Refusals


def refusal(folder: Path, text: str = SMALL, count: int = 130) -> str:
    before = content(folder) if folder.is_dir() else None
    with pytest.raises(gerd.StorageError) as refused:
        generate(folder, text, count)
    assert before is None or content(folder) == before
    assert str(folder) in str(refused.value)
    return str(refused.value)


def test_foreign_folders_and_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is a file" in refusal(tmp_path / "file")
    assert "cannot be used as a folder: Not a directory" in refusal(tmp_path / "file" / "below")
    assert "not a GERD dataset" in refusal(tmp_path)
    (tmp_path / "file").unlink()
    (tmp_path / MANIFEST).write_text("{}")
    assert "not the manifest of a GERD dataset" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("count", "workers", "message"),
    [
        (0, 1, "count 0: allowed: a whole number from 1 to 4294967296"),
        (2**32 + 1, 1, "count 4294967297: allowed: a whole number from 1 to 4294967296"),
        ("5", 1, "count '5': allowed: a whole number"),
        (True, 1, "count True: allowed: a whole number"),
        (1, 0, "workers 0: allowed: a whole number, 1 or more"),
        (1, 2.0, "workers 2.0: allowed: a whole number, 1 or more"),
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, count: int, workers: int, message: str) -> None:
    with pytest.raises(gerd.GerdError, match=message):
        gerd.generate(gerd.parse(SMALL), tmp_path / "data", count, workers=workers)
    assert not (tmp_path / "data").exists()


CHANGES = {
    "seed is 8 there and 9 here": SMALL.replace("seed: 8", "seed: 9"),
    "sensor.width is 12 there and 13 here": SMALL.replace("width: 12", "width: 13"),
    "actors.0.shape is 'square' there and 'circle' here": SMALL.replace("square", "circle"),
    "actors.0.translation.velocity.uniform.1 is 1.0 there and 2.0 here": SMALL.replace("[-1, 1]", "[-1, 2]"),
    "sweep.steps is None there and [3, 4] here": SMALL + "sweep: {steps: [3, 4]}",
}


@pytest.mark.parametrize("message", CHANGES)
@pytest.mark.parametrize("state", ["complete", "unfinished"])
def test_another_config_is_refused_with_what_differs(
    message: str, state: str, undisturbed: Path, unfinished: Path
) -> None:
    folder = undisturbed if state == "complete" else unfinished
    assert refusal(folder, CHANGES[message]) == f"{folder}: holds a different dataset: {message}"


def test_other_differences_are_named(unfinished: Path) -> None:
    assert refusal(unfinished, count=131).endswith("count is 130 there and 131 here")
    change_manifest(unfinished, gerd_version="0.1")
    assert "gerd_version is 0.1 there and " in refusal(unfinished)
    (unfinished / RESOLVED).unlink()
    assert "the config differs" in refusal(unfinished, SMALL.replace("seed: 8", "seed: 9"))


def test_a_folder_that_was_claimed_but_holds_no_shard_can_be_used(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "data"
    generate(folder, FAMILY, 1)
    unfinish(folder)
    assert "holds a different dataset" in refusal(folder)
    (folder / shard_name(0)).unlink()
    generate(folder)
    assert content(folder) == content(undisturbed)


def test_a_device_that_is_not_there_is_refused(undisturbed: Path, tmp_path: Path) -> None:
    for device in ("abacus", "cuda:99"):
        with pytest.raises(gerd.GerdError, match=f"device '{device}'"):
            generate(tmp_path / "data", device=device)
    generate(tmp_path / "data")
    assert content(tmp_path / "data") == content(undisturbed)


def test_what_cannot_be_drawn_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    endless = SMALL.replace("velocity: {uniform: [-1, 1]}, acceleration: 0", "acceleration: {expression: 1 / (t - 1)}")
    with pytest.raises(gerd.ConfigError, match=r"actors\.0\.translation\.acceleration"):
        generate(tmp_path / "data", endless)
    with pytest.raises(gerd.ConfigError, match=r"actors\.0\.translation\.acceleration"):
        generate(tmp_path / "data", endless.replace("t - 1", "t - 30") + "sweep: {steps: [3, 60]}\n")
    with pytest.raises(gerd.TrustError, match="hold:push"):
        generate(tmp_path / "data", HELD)
    assert not (tmp_path / "data").exists()


def test_a_function_without_a_name_is_stored_as_its_values(tmp_path: Path) -> None:
    data = gerd.parse(SMALL).resolved()
    data["actors"][0]["translation"]["acceleration"] = lambda t: 0.1 * t
    config = gerd.Config.model_validate(data)
    made = gerd.generate(config, tmp_path / "data", 65, workers=2)
    data["actors"][0]["translation"]["acceleration"] = {"expression": "0.1 * t"}
    assert made[64].digest == gerd.simulate(data, 64).digest == gerd.simulate(config, 64).digest
    assert made.config.functions.keys() == {f"{__name__}:<lambda>".replace("<lambda>", (lambda t: t).__qualname__)}


def test_a_function_without_a_name_and_with_too_many_values_cannot_be_stored(tmp_path: Path) -> None:
    """Neither the dataset nor anybody who reads it could say what it was made from."""
    data = {**gerd.parse(SMALL).resolved(), "steps": 200, "time_scale": 1000}
    data["actors"][0]["translation"]["acceleration"] = lambda t: 0.0
    message = r"actors\.0\.translation\.acceleration: .* gives more values than .* cannot be imported by its name"
    with pytest.raises(gerd.GerdError, match=message):
        gerd.generate(gerd.Config.model_validate(data), tmp_path / "data", 1, workers=1)
    assert not (tmp_path / "data").exists()


def push(t: float) -> float:
    return 0.1 * t


def test_functions_of_a_module_can_be_stored(tmp_path: Path) -> None:
    data = gerd.parse(SMALL).resolved()
    data["actors"][0]["translation"]["acceleration"] = push
    config = gerd.Config.model_validate(data)
    made = gerd.generate(config, tmp_path / "data", 70, workers=2)
    assert made[69].digest == gerd.simulate(config, 69).digest
    assert made[69].config.actors[0].translation.acceleration.function.endswith(":push")


# Sweeps


def test_families_share_everything_but_what_is_swept(tmp_path: Path) -> None:
    data = generate(tmp_path / "data", FAMILY, 20)
    values = [(scale, event) for scale in (0.5, 1, 2) for event in (0, 0.5)]
    places = []
    for index in range(20):
        family = data[6 * index : 6 * index + 6]
        assert [tuple(member.identity.labels.values()) for member in family] == values
        assert all(list(member.identity.labels) == ["time_scale", "noise.event"] for member in family)
        assert {member.identity.index for member in family} == {index}
        starts = np.stack([member.positions[0] for member in family])
        assert np.ptp(starts, axis=0).max() == 0
        places.append(starts[0])
        for one in family:
            noise = set(one.keys[one.background].tolist())
            assert all(noise <= set(other.keys.tolist()) for other in family)
        velocities = np.stack([member.parameters_velocity["x"][0] for member in family])[:, 0]
        assert np.allclose(velocities / velocities[2], [0.5, 0.5, 1, 1, 2, 2])
    assert np.ptp(np.stack(places), axis=0).min() > 1
    assert sum(data[i].background.sum() for i in range(120)) > 100

"""Machine code of kernels: believed only if it is whole and nobody else's; without it everything goes on."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import run_at_a_terminal, run_here

import gerd
from gerd.events import compiled
from gerd.events.compiled import Kernel, argument
from gerd.events.cpu import known
from gerd.events.cpu import run as cpu
from gerd.events.definition import walk as definition

SOURCE = """
from gerd.events.compiled import apart, compiled, inlined

@inlined
def twice(x):
    return x + x

@compiled
def fill(array, amounts):
    array[0, 1] = amounts[0] if amounts[1] else -1
    return twice(len(array)), np.int64(amounts[2])

@compiled
def nothing(array):
    if len(array) > 1:
        raise IndexError
    array[0] = 7

@compiled
def helped(array):
    array.reshape(array.size)[0] = 7

@apart
def add_one(sums, array):
    for i in range(len(array)):
        sums[i] += array[i]

@compiled
def add_any(sums, array):
    for i in range(len(array)):
        sums[i] += array[i]
"""
GIVEN = (2.5, True, np.uint64(2**63))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fresh(folder: Path, name: str = "fill") -> Kernel:
    """A kernel as another process would have it, of a package whose code is in the folder `shipped`."""
    file = folder / "tiny_kernel.py"
    file.write_text("import numpy as np\n" + SOURCE)
    spec: Any = importlib.util.spec_from_file_location("tiny_kernel", file)
    module = sys.modules["tiny_kernel"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Kernel(getattr(module, name), folder / "shipped")


@pytest.fixture
def kernel(home: Path) -> Kernel:
    return fresh(home.parent)


def lies(folder: Path) -> Any:
    """A kernel that takes the same arguments, and returns what the good one never would."""
    file = folder / "false_kernel.py"
    file.write_text(
        "import numpy as np\nfrom gerd.events.compiled import compiled\n"
        "@compiled\ndef fill(array, amounts):\n    return len(array) + 663, np.int64(0)\n"
    )
    spec: Any = importlib.util.spec_from_file_location("false_kernel", file)
    module = sys.modules["false_kernel"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.fill


def was_kept(kernel: Kernel) -> bool:
    """Whether the kernel does what it should, and without being compiled."""
    array = np.zeros((3, 2))
    assert kernel(array, GIVEN) == (6, -(2**63))
    assert array.tolist() == [[0, 2.5], [0, 0], [0, 0]]
    return kernel.compilations == 0


def files(home: Path) -> list[Path]:
    return sorted((home / "gerd").iterdir())


def ship(home: Path, processor: str) -> Path:
    """Move the one file of the cache to where a package has it."""
    (file,) = files(home)
    shipped = home.parent / "shipped"
    shipped.mkdir(exist_ok=True)
    return file.rename(shipped / f"{file.name.rpartition('-')[0]}-{processor}")


def test_a_kernel_takes_numbers_arrays_and_tuples_and_what_was_packed_before(kernel: Kernel, tmp_path: Path) -> None:
    """Arguments of other types are other code, and what would be read wrongly is refused."""
    array = np.zeros((1, 2), np.float32)
    assert kernel(array, (4.5, False, 3)) == (2, 3)
    assert array.tolist() == [[0, -1]]
    for given in (argument((4.5, True, 3)), (argument(4.5), np.bool_(True), np.int64(3))):
        assert kernel(argument(array), given) == (2, 3)
    assert array.tolist() == [[0, 4.5]]
    assert kernel(array, GIVEN) == (2, -(2**63))
    assert len(kernel.loaded) == kernel.compilations == 2
    one, nothing = np.zeros(1, np.int32), fresh(tmp_path, "nothing")
    assert nothing(one) == ()
    assert one.tolist() == [7]
    with pytest.raises(RuntimeError, match="nothing ended with status"):
        nothing(np.zeros(2, np.int32))
    still = array.copy()
    still.flags.writeable = False
    for wrong in (np.zeros((2, 3)).T, still, "text", None, [1]):
        with pytest.raises(TypeError, match="a kernel takes"):
            kernel(wrong, GIVEN)


def test_code_that_needs_the_compiler_when_it_runs_is_refused(tmp_path: Path, home: Path) -> None:
    """It would work in the process that compiles it, and end every other one that loads it."""
    with pytest.raises(TypeError, match="helped calls numba_attempt_nocopy_reshape; allowed: what it computes itself"):
        fresh(tmp_path, "helped")(np.zeros((2, 2)))
    assert not home.exists()


@pytest.mark.usefixtures("home")
def test_arrays_may_overlap_unless_the_kernel_is_for_arrays_that_are_apart(tmp_path: Path) -> None:
    sums = np.zeros(5, np.int32)
    array = np.arange(5, dtype=np.int32)
    for name in ("add_one", "add_any"):
        assert fresh(tmp_path, name)(sums, array) == ()
    assert sums.tolist() == [0, 2, 4, 6, 8]
    running = np.ones(64, np.int32)
    fresh(tmp_path, "add_any")(running[1:], running[:-1])  # each sum is the next number that is added
    assert running.tolist() == list(range(1, 65))


def test_code_is_kept_and_found_again(kernel: Kernel, home: Path, tmp_path: Path) -> None:
    assert not kernel.is_kept()
    assert not was_kept(kernel)
    (file,) = files(home)
    assert kernel.is_kept()
    assert was_kept(fresh(tmp_path))
    assert files(home) == [file]
    assert (home / "gerd").stat().st_mode & 0o777 == 0o700


def test_another_constant_makes_another_code(kernel: Kernel, tmp_path: Path) -> None:
    """A number or a tuple of numbers, which the kernel's module may have from one that has no kernels."""
    assert not was_kept(kernel)
    for constant in (7, 8, (1.0, 2.0), (1.0, 3.0)):
        function = fresh(tmp_path).function
        sys.modules["tiny_kernel"].CONSTANT = constant
        assert not Kernel(function, tmp_path / "shipped").is_kept()
        assert not was_kept(Kernel(function, tmp_path / "shipped"))
        assert was_kept(Kernel(function, tmp_path / "shipped"))


def test_the_cache_is_cleared_of_what_was_kept_there_and_of_nothing_else(
    kernel: Kernel, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_here("cache") == 0
    assert capsys.readouterr().out == f"{home / 'gerd'}: 0 files of compiled kernels, 0 bytes\n"
    assert not was_kept(kernel)
    (file,) = files(home)
    (home / "gerd" / f".{file.name}.4711").write_bytes(b"begun")  # by a process that was killed
    others = [home / "gerd" / name for name in ("mine.txt", f"{file.name}.txt", "kernel-abc")]
    for other in others:
        other.write_text("not ours")
    others.append(file.with_name(f"{file.name[:-1]}{'0' if file.name[-1] != '0' else '1'}"))
    others[-1].mkdir()
    assert run_here("cache") == 0
    size = f"{(file.stat().st_size + 5) / 1000:.3g} kB"
    assert capsys.readouterr().out == f"{home / 'gerd'}: 2 files of compiled kernels, {size}\n"
    assert was_kept(fresh(tmp_path))
    assert run_here("cache", "--clear") == 0
    assert capsys.readouterr().out == f"{home / 'gerd'}: removed 2 files of compiled kernels, {size}\n"
    assert files(home) == sorted(others)
    assert not was_kept(fresh(tmp_path))


def test_code_that_came_with_the_package_is_taken(
    kernel: Kernel, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the processor cannot run it, settings of numba ask for other code, or it is damaged."""
    was_kept(kernel)
    monkeypatch.setitem(compiled.PROCESSORS, compiled.platform.machine(), {"fast": {"magic"}, "plain": set()})
    file = ship(home, f"{sys.platform}-plain")
    assert kernel.is_kept()
    assert was_kept(fresh(tmp_path))
    assert files(home) == []
    with monkeypatch.context() as patched:
        patched.setenv("NUMBA_OPT", "1")
        assert not was_kept(fresh(tmp_path))
    ship(home, f"{sys.platform}-fast")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert not was_kept(fresh(tmp_path))


USE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import gerd.events.cpu.run, tiny_kernel
from gerd.events.compiled import Kernel
kernel = Kernel(tiny_kernel.fill)
assert "numba" not in sys.modules
with ThreadPoolExecutor(4) as pool:
    made = list(pool.map(lambda _: kernel(np.zeros((3, 2)), (2.5, True, 7)), range(4)))
assert made == [(6, 7)] * 4
print(kernel.compilations, "numba" in sys.modules)
"""


@pytest.mark.usefixtures("kernel")
def test_the_first_process_compiles_once_and_the_next_does_not_load_the_compiler(home: Path, tmp_path: Path) -> None:
    """Importing compiles nothing; threads compile once; who waits at a terminal is told what for."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}
    for result, told in (("1 True", True), ("0 False", False)):
        printed, said = run_at_a_terminal([sys.executable, "-c", USE], env=environment)
        assert printed.strip() == result
        assert said.startswith("compiling the kernels, once") == told
        assert len(files(home)) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "folder", "pipe"])
def test_damaged_code_is_compiled_again(damage: str, kernel: Kernel, home: Path, tmp_path: Path) -> None:
    was_kept(kernel)
    (file,) = files(home)
    good = file.read_bytes()
    file.unlink()
    if damage == "flip":
        file.write_bytes(good[:500] + bytes([good[500] ^ 4]) + good[501:])
    elif damage in ("cut", "empty"):
        file.write_bytes(good[: 400 * (damage == "cut")])
    elif damage == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    assert not was_kept(fresh(tmp_path))
    assert was_kept(fresh(tmp_path)) == (damage != "folder")


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_code_that_others_could_have_written_is_not_loaded(
    mode: int, kernel: Kernel, home: Path, tmp_path: Path
) -> None:
    was_kept(kernel)
    (file,) = files(home)
    (home / "gerd").chmod(mode)
    before = file.stat().st_mtime_ns
    assert not was_kept(fresh(tmp_path))
    assert file.stat().st_mtime_ns == before
    (home / "gerd").chmod(0o700)
    home.chmod(0o777)
    assert not compiled.is_private(home / "gerd")
    home.chmod(0o1777)
    assert compiled.is_private(home / "gerd")


def test_a_folder_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    assert compiled.is_private(home)
    if os.getuid() == 0:
        os.chown(home, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not compiled.is_private(home)


def test_without_a_place_for_it_code_is_compiled_each_time(kernel: Kernel, home: Path, tmp_path: Path) -> None:
    home.write_text("a file where the folder should be")
    assert not was_kept(kernel)
    assert not was_kept(fresh(tmp_path))


def test_a_full_disk_is_no_error(kernel: Kernel, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert not was_kept(kernel)
    assert files(home) == []


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_code_is_kept_for_this_user_alone_whatever_the_umask(kernel: Kernel, home: Path, tmp_path: Path) -> None:
    assert not was_kept(kernel)
    (file,) = files(home)
    assert file.stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert was_kept(fresh(tmp_path))


@pytest.mark.parametrize("forged", ["owner", "mode 666", "mode 620", "link"])
def test_a_forged_file_in_a_cache_that_can_be_trusted_is_not_loaded(
    forged: str, kernel: Kernel, home: Path, tmp_path: Path
) -> None:
    """Its sha256 is right. It is another user's, or others may write to it, or it is a link to such a file."""
    array = np.zeros((3, 2))
    was_kept(kernel)
    (file,) = files(home)
    forger = Kernel(lies(tmp_path))
    assert forger(array, GIVEN) == (666, 0)
    (false,) = {*files(home)} - {file}
    false.replace(file)
    assert fresh(tmp_path)(array, GIVEN) == (666, 0)  # the forgery is one that would be loaded
    if forged == "owner":
        if os.getuid():
            pytest.skip("only root can give a file to another user")
        os.chown(file, 12345, 12345)
    elif forged == "link":
        file.symlink_to(file.rename(tmp_path / "elsewhere"))
    else:
        file.chmod(int(forged.split()[1], 8))
    assert compiled.is_private(home / "gerd")
    assert not was_kept(fresh(tmp_path))
    (made,) = files(home)
    assert was_kept(fresh(tmp_path))  # what was compiled has replaced it
    assert not made.is_symlink()


def test_a_setting_in_the_current_folder_does_not_name_the_cache(
    kernel: Kernel, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "stranger"), raising=False)
    assert not was_kept(kernel)
    assert len(files(home)) == 1
    assert not (tmp_path / "stranger").exists()


@pytest.mark.parametrize("timing", known.DIGESTS)
def test_the_known_events_are_those_of_the_definition_and_of_the_kernels(timing: str) -> None:
    assert known.digest(definition.run, timing) == known.DIGESTS[timing]
    assert known.digest(cpu.run, timing) == known.DIGESTS[timing]


def test_kernels_that_give_wrong_events_are_not_used() -> None:
    def wrong(scenes: Any) -> Any:
        for part in cpu.run(scenes):
            part.keys[-1] += 1
            yield part

    with pytest.raises(gerd.GerdError, match="the backend cpu gives wrong events"):
        known.check(wrong, "the backend cpu")
